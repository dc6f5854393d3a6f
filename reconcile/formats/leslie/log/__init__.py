"""Leslie's control files: the log, and what follows from it."""
