"""Everything that can be wrong in a vault."""
