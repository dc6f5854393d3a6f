"""The two indexes, which follow from the records."""
