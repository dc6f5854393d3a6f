"""Where a format meets the disk: its two sides, its files, its program's locks."""
