"""Sessions of Claude Code in a folder of a repository, which colleagues get with git (docs/formats.md#shared-sessions).

The folder is the workspace of a second pair of sides: the store is that of the sessions in the user's home. No run adds
a session to the folder unasked.
"""

from __future__ import annotations

from reconcile.formats.claude_code.format import DAY_NS, ClaudeCodeFormat
from reconcile.model.format import Entry

_NOTES = "memory"
_MARKERS = (b"<<<<<<< ", b"||||||| ", b">>>>>>> ")
_MIDDLE = b"======="


class SharedSessionsFormat(ClaudeCodeFormat):
    """The rules of the folder. No program works in it, and the files of others in it are never touched."""

    @property
    def name(self) -> str:
        """The name that ``--format`` takes."""
        return "claude-shared"

    @property
    def is_for_others(self) -> bool:
        """True: git brings the folder to every clone."""
        return True

    def entry(self, path: str, *, directory: bool) -> Entry:
        """Classify an entry: sessions and the files beside them are records. Notes are never shared."""
        if path.partition("/")[0] == _NOTES:
            return Entry.IGNORED
        return super().entry(path, directory=directory)

    def refused(self, line: bytes) -> str:
        """Return the reason for a marker that git leaves where it could not merge: a person chooses a version."""
        is_marker = line.startswith(_MARKERS) or line.rstrip() == _MIDDLE
        return "a git conflict marker" if is_marker else ""

    def time_here(self, mtime_ns: int, now_ns: int) -> int:  # noqa: ARG002
        """Return the mtime: no program deletes old files here."""
        return mtime_ns

    def time_there(self, mtime_ns: int, now_ns: int) -> int:
        """Return the mtime as of the day before: git's checkout has set it, and nobody has used the session here.

        Otherwise `--continue` would take it, rather than the session that this user used last.
        """
        return min(mtime_ns, now_ns) - DAY_NS

    @property
    def way_back(self) -> str:
        """`project`: it is shared again."""
        return "project"
