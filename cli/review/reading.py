"""Reads both versions of a conversation for a walk, and opens them with other programs."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from typing import TYPE_CHECKING

from reconcile.fs.files import Directory, read_files
from reconcile.inspect.markdown import to_markdown
from reconcile.model.snapshot import EXTRA, Fault, Side

from ..output.differences import compared
from .details import Reading
from .subjects import SIDES_AS_WHOLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.engine.engine import Engine
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Content
    from reconcile.model.transcript import Transcript
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.views import View

MOST_BYTES = 200_000
"""The longest file beside the managed ones that is shown."""


class Reader:
    """Reads the conversations of one plan, each when it is asked for."""

    def __init__(self, engine: Engine, policy: Policy) -> None:
        """Read what the engine knows; ``policy`` is that of the plan."""
        self._engine = engine
        self._policy = policy
        self._context: PlanningContext | None = None

    def read(self, conversation: str) -> Reading:
        """Read both versions of a conversation; one that doesn't exist yet has none, nor has a whole side.

        A person looks for minutes, in which a program may rename or remove a directory: a note tells that.
        """
        if conversation == SIDES_AS_WHOLE:
            return Reading()
        try:
            return self._read(conversation)
        except OSError as error:
            return Reading(notes=(f"it has changed since the plan was made, and can't be read ({error.strerror})",))

    def _read(self, conversation: str) -> Reading:
        view = self._views(conversation).get(conversation)
        if view is None:
            return Reading()
        session = self._engine.session
        notes: list[str] = []
        versions: list[Transcript | None] = []
        for side, contents in zip(Side, session.contents(view), strict=True):
            versions.append(self._transcript(conversation, side, contents, notes))
        store, workspace = versions
        comparison = compared(session, view) if store is not None and workspace is not None else None
        if comparison is not None:
            notes += [note for note in comparison.notes if note not in notes]
        names = [name for name, state in comparison.extras if state == "differs"] if comparison is not None else []
        files = tuple(
            (name, self._text_of(view, Side.STORE, name), self._text_of(view, Side.WORKSPACE, name)) for name in names
        )
        return Reading(store, workspace, comparison, tuple(dict.fromkeys(notes)), files)

    def _text_of(self, view: View, side: Side, name: str) -> str:
        """Return the text of another file of a conversation, or what prevents reading it."""
        unit = view.side(side).units.get(f"{EXTRA}{name}")
        if unit is None:
            return "(absent)"
        if sum(file.size for file in unit.files) > MOST_BYTES:
            return "(too long to show)"
        above, _, last = f"{unit.copy.path}/{name}".rpartition("/")
        root = Directory.open_root(self._engine.session.site.conversations(side))
        try:
            with root, root.below(above) as directory:
                read = read_files(directory, [last])
        except OSError as error:
            return f"(can't be read: {error.strerror})"
        if isinstance(read, Fault):
            return f"(can't be read: {read.words})"
        try:
            return read[last][0].decode()
        except UnicodeDecodeError:
            return "(not text)"

    def _views(self, conversation: str) -> Mapping[str, View]:
        if self._context is None or conversation not in self._context.views:
            self._context = self._engine.decide_some([conversation], self._policy)
        return self._context.views

    def _transcript(
        self, conversation: str, side: Side, contents: Mapping[str, Content], notes: list[str]
    ) -> Transcript | None:
        if not contents:
            return None
        readable = {name: content for name, content in contents.items() if isinstance(content, bytes)}
        notes += [
            f"{side}: {name or 'the file'}: {content.words}"
            for name, content in contents.items()
            if not isinstance(content, bytes)
        ]
        transcript = self._engine.session.format.transcript(conversation, readable)
        notes += [f"{side}: {note}" for note in transcript.notes]
        return transcript

    def open_with(self, conversation: str, is_tool: bool) -> str:
        """Open copies of both versions in the editor, or in git's difftool; return a message."""
        reading = self.read(conversation)
        versions = [(side, version) for side in Side if (version := reading.side(side)) is not None]
        if not versions:
            return "nothing to open: neither side has it yet"
        if is_tool and len(versions) < len(Side):
            return "nothing to compare: only one side has it"
        with tempfile.TemporaryDirectory(prefix="reconcile-review-") as directory:
            paths = []
            for side, version in versions:
                path = os.path.join(directory, f"{side}.md")
                with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                    file.write(to_markdown(version))
                os.chmod(path, 0o400)  # an edit of a copy would be lost
                paths.append(path)
            words = ["git", "difftool", "--no-prompt", "--no-index"] if is_tool else _editor()
            return _run([*words, *paths])


def _editor() -> list[str]:
    return shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")


def _run(words: list[str]) -> str:
    try:
        code = subprocess.run(words, check=False).returncode  # noqa: S603 - the user's own program
    except OSError as error:
        return f"{words[0]}: {error.strerror}; set EDITOR to the command of your editor"
    return "" if code == 0 else f"{words[0]} ended with status {code}"
