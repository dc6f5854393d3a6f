"""The directories of Claude Code, and its processes."""
