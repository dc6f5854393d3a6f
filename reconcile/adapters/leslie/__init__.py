"""Leslie on disk: its files and locks."""
