"""The event files of the hybrid era."""
