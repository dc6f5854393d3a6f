"""Names in a file system that every start has to know. Loads nothing."""

from __future__ import annotations

CHILDREN = "conversations"
"""Name of the directory that holds the roots of a side, and the children of a conversation."""
GIT = ".git"
"""Name of a git repository's own directory, or of the file that a worktree or a submodule has instead."""
MARKER = ".jp"
"""The directory of a project that is its workspace, as JP names it."""
ID_FILE = ".id"
"""In it: the file with the id of the workspace."""
LINK = "storage"
"""In a silo: JP's link to the ``.jp`` that last used it."""
