"""JP's own format."""
