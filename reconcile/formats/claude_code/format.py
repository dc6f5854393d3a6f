"""Sessions of Claude Code as records: each file below the directory of a project, identified by its path.

See docs/design/formats/claude-code.md#layout. The bytes of a record are never changed: paths in them stay as they are.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from reconcile.formats.claude_code.lines import Progress, WholeLines, parsed, raw_lines
from reconcile.formats.claude_code.notes import merged_notes
from reconcile.formats.fixed import FixedPlaces, is_blank, is_odd
from reconcile.model.format import Entry, LogRead, TwoContinuations
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconcile.model.format import EventSelection, Merge
    from reconcile.model.snapshot import Metadata
    from reconcile.model.transcript import Transcript

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_LINES = ".jsonl"
_AT_THE_TOP = re.compile(rf"(?:{_UUID}|agent-[0-9A-Za-z-]+)\.jsonl")
"""A session, or a subagent of an older version, which is beside the sessions."""
_DIRECTORY = re.compile(rf"memory|{_UUID}")
_SESSION = re.compile(rf"(?P<id>{_UUID})(?:\.jsonl|/.*)", re.DOTALL)
_NOTES = "memory/"


def owner_of(conversation: str) -> str | None:
    """Return the record of the session that a record belongs to, itself for a session; None for notes."""
    match = _SESSION.fullmatch(conversation)
    return None if match is None else match["id"] + _LINES


DAY_NS = 86_400 * 10**9
_SHORTENED = 10_000
"""Older times are nearer to each other by this factor: a year is an hour."""


class LiveSessions(dict[str, int]):
    """The ids of the sessions that a running process has open, each with its number: the inputs of `Places.is_busy`."""


ANY = "*"
"""Stands for all ids where the list of processes can't be read."""


class ClaudeCodeFormat(FixedPlaces):
    """The rules of the directory of one project."""

    @property
    def name(self) -> str:
        """The name that ``--format`` takes."""
        return "claude-code"

    @property
    def is_shared(self) -> bool:
        """False: a session has one live home, so that no other checkout gets it unasked."""
        return False

    def entry(self, path: str, *, directory: bool) -> Entry:
        """Classify an entry: sessions, the files beside them, and notes are records; the rest is the program's."""
        if self.is_left_out(path, directory=directory):
            return Entry.IGNORED
        top, _, below = path.partition("/")
        known = _DIRECTORY if directory or below else _AT_THE_TOP
        if known.fullmatch(top) is None:
            return Entry.IGNORED
        if is_odd(path):
            return Entry.FOREIGN
        return Entry.ENTER if directory else Entry.RECORD

    def parse_id(self, text: str) -> str | None:
        """Return the record of a session that is named by its id alone, as the program names it."""
        return owner_of(text + _LINES) if "/" not in text else None

    def owner(self, conversation: str) -> str | None:
        """Return the session of a file beside it; None for a session, and for notes."""
        owner = owner_of(conversation)
        return owner if owner != conversation else None

    def counted_as(self, conversation: str) -> str | None:
        """Return the session of a record, itself for a session. Notes are not counted: `ls` lists sessions."""
        return owner_of(conversation)

    def is_log(self, conversation: str) -> bool:
        """Tell whether a record is a file of lines: a session, or one of its subagents."""
        return conversation.endswith(_LINES)

    def read_log(self, conversation: str, chunks: Iterable[bytes], state: bytes = b"") -> LogRead:
        """Read a session, whose content is not kept. One line that is a JSON object is enough.

        A line that is none is kept as it is: the program appends to a line that was cut short. If all lines are such,
        the program has another format by now. A file without a byte is a session that was not begun.
        """
        known, contents = Progress.of(state), WholeLines(chunks)
        begin = next(contents, b"")
        if not begin and not state:
            return LogRead(self.described(None, b""))
        after = None
        for raw, is_ended in raw_lines(chain((begin,), contents)):
            if not is_ended:
                after = known.state
            line = parsed(raw)
            if line is not None:
                known.titles.add(line)
                known.objects += 1
            elif problem := self.refused(raw):
                return LogRead(Fault(conversation, problem, "one JSON object in each line"))
            known.count += is_ended
        if not known.objects:
            problem = "no line with a JSON object" if known.count else "no whole line"
            return LogRead(Fault(conversation, problem, "one JSON object in each line", incomplete=not known.count))
        after = known.state if after is None else after
        return LogRead(self.described(known.titles.title, b""), after, contents.length)

    def refused(self, line: bytes) -> str:  # noqa: ARG002
        """Return why a session with this line, which is no object, is held; empty: the line is kept as it is."""
        return ""

    def read_record(self, conversation: str, content: bytes) -> Metadata | Fault:  # noqa: ARG002
        """Accept any content: notes, results of tools, and the program's facts of a subagent."""
        return self.described(None, content)

    def time_here(self, mtime_ns: int, now_ns: int) -> int:
        """Return the mtime if it is of the last 24 hours; else one shortly before these, in the order of the mtimes.

        The program deletes files with an old mtime. `--continue` takes the newest session: one that was used since.
        """
        latest = now_ns - DAY_NS
        return mtime_ns if mtime_ns >= latest else latest - (latest - mtime_ns) // _SHORTENED

    @property
    def deletes_old(self) -> bool:
        """True: the program deletes sessions that were not used for a time; a colleague may withdraw a shared one."""
        return True

    @property
    def noun(self) -> str:
        """`session`, as the program calls it."""
        return "session"

    @property
    def way_back(self) -> str:
        """`recover`: a session that the program has deleted comes back to its one live home."""
        return "recover"

    def merge(self, conversation: str, store: bytes, workspace: bytes) -> Merge:
        """Return the version that continues the other one. Of two continuations of a session, both stay.

        Two versions of a note become one with the lines of both.
        """
        if conversation.startswith(_NOTES) and not (is_blank(store) or is_blank(workspace)):
            return merged_notes(store, workspace)
        if not self.is_log(conversation):
            return super().merge(conversation, store, workspace)
        for longer, shorter in ((store, workspace), (workspace, store)):
            if _continues(longer, shorter):
                return longer
        if owner_of(conversation) == conversation:
            return TwoContinuations()
        return Fault(conversation, "two continuations", "one version that continues the other")

    def can_fork(self, conversation: str) -> bool:
        """Tell whether a record is a session."""
        return owner_of(conversation) == conversation

    def cut_stream(self, contents: Mapping[str, bytes], part: EventSelection) -> dict[str, bytes]:
        """Return a session up to a line. Raises `ValueError` if that is no session."""
        from reconcile.formats.claude_code.forks import cut  # here, as below: hardly any run needs it

        return {name: cut(content, part) for name, content in contents.items()}

    def forked_metadata(self, content: bytes, *, parent: str, title: str | None) -> bytes:
        """Return a session with another title, as the program writes one that a person has typed."""
        from reconcile.formats.claude_code.forks import title_line

        return content if title is None else content + title_line(title, parent.removesuffix(_LINES))

    def forked(self, conversation: str, content: bytes, new: str | None = None) -> tuple[str, bytes]:
        """Return a session, or a file beside it, as the program's own fork makes it."""
        from reconcile.formats.claude_code.forks import forked, with_session

        session = (owner_of(conversation) or conversation).removesuffix(_LINES)
        if new is None:
            new, content = forked(session, content)
        elif self.is_log(conversation):
            content = with_session(content, session, new)
        return new + conversation.removeprefix(session), content

    def loses(self, conversation: str, before: bytes, after: bytes) -> bool:
        """Tell whether a version doesn't continue another one: the program only appends to files of lines."""
        if not self.is_log(conversation):
            return super().loses(conversation, before, after)
        return not _continues(after, before)

    def busy(self, inputs: object) -> str:
        """Return why no open session may be written: its program appends to the file at any moment."""
        return "Claude Code has it open" if isinstance(inputs, LiveSessions) and inputs else ""

    def is_busy(self, conversation: str, inputs: object) -> bool:
        """Tell whether a record belongs to a session that a process has open."""
        return bool(self.holder(conversation, inputs))

    def holder(self, conversation: str, inputs: object) -> str:
        """Return which process has the session of a record open."""
        owner = owner_of(conversation)
        if owner is None or not isinstance(inputs, LiveSessions):
            return ""
        process = inputs.get(owner.removesuffix(_LINES))
        if process is not None:
            return f"Claude Code (process {process})"
        return "Claude Code, whose list of processes can't be read," if ANY in inputs else ""

    def transcript(self, conversation: str, contents: Mapping[str, bytes]) -> Transcript:
        """Return a session for people to read; any other file as one text."""
        from reconcile.formats.claude_code.transcript import transcript  # here: no run needs it

        return transcript(conversation, contents)


def _continues(longer: bytes, shorter: bytes) -> bool:
    """Tell whether a version begins with the other one, but for a last line that was cut short there."""
    if longer.startswith(shorter) or is_blank(shorter):
        return True
    whole, _, last = shorter.rpartition(b"\n")
    # Since 2.1.330 the program ends such a line before it goes on.
    return bool(whole) and parsed(last) is None and longer.startswith(whole + b"\n") and len(longer) > len(shorter)
