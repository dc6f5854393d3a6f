"""Everything that can be wrong with a ``.leslie``."""
