"""The file system: descriptors, durable writes, locks, git's files. Knows no format."""
