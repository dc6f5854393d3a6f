"""Names of directories that every start has to know. Loads nothing."""

from __future__ import annotations

CHILDREN = "conversations"
"""Name of the directory that holds the roots of a side, and the children of a conversation."""
GIT = ".git"
"""Name of a git repository's own directory, or of the file that a worktree or a submodule has instead."""
