"""JSON: strict reading, streams larger than memory, and the bytes that JavaScript writes."""
