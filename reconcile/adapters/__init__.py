"""The formats on disk: the two sides of each, its files, and the locks of its program."""
