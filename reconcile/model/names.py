"""Names of files and directories that every command needs; imports nothing, so that a start stays cheap."""

from __future__ import annotations

CHILDREN = "conversations"
"""The directory with the root conversations of a side, and with the children of a conversation."""
GIT = ".git"
"""The directory of a git repository, or the file that a worktree or a submodule has instead."""
MARKER = ".jp"
"""JP's workspace directory of a project."""
ID_FILE = ".id"
"""The file in `MARKER` with the id of the workspace."""
LINK = "storage"
"""JP's link in a store to the ``.jp`` that used the store last."""
