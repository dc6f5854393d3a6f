"""The lines of a session. A line is one JSON object, but the program also reads files with lines that are none.

See docs/design/formats/claude-code.md#lines. Lines are only read here, never written again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Self

from msgspec import DecodeError, Raw, Struct, field, json
from msgspec.json import Decoder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LONGEST_TITLE = 200
"""Characters of a title that is made from a prompt."""
_MADE_OF_TAGS = "<"
"""The program writes commands and their output as prompts that begin with a tag."""


class Line(Struct, frozen=True, rename="camel"):
    """The members of a line that are read; each may have any value."""

    type: Any = None
    uuid: Any = None
    is_meta: Any = None
    is_sidechain: Any = None
    custom_title: Any = None
    ai_title: Any = None
    summary: Any = None
    cwd: Any = None
    git_branch: Any = None
    timestamp: Any = None
    request_session_id: Any = None
    message: Raw = Raw()


class _Message(Struct, frozen=True):
    content: Any = None


_LINE, _MESSAGE = Decoder(Line), Decoder(_Message)
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>u[dD][89a-fA-F]..)|.)", re.DOTALL)
"""An escape in a text: a whole pair of surrogates, half of one, or any other."""


def raw_lines(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield the lines of a file that are not blank, each with whether a newline ends it: only the last may have none.

    Lines are without their newline. Memory use depends on the longest line, not on the file.
    """
    begun: list[bytes] = []
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        begun.append(first)
        for other in others:
            line = b"".join(begun)
            begun = [other]
            if line.strip():
                yield line, True
    if (line := b"".join(begun)).strip():
        yield line, False


def parsed(line: bytes) -> Line | None:
    """Return a line; None if it is no JSON object. Half of a pair of surrogates is read as U+FFFD."""
    try:
        return _LINE.decode(line)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        # The program cuts texts between the two halves; msgspec refuses the line then.
        whole = _ESCAPE.sub(lambda match: b"\\ufffd" if match["half"] else match[0], line)
        return parsed(whole) if whole != line else None


class Titles(Struct):
    """Finds the title among the lines of a session: a person's, the program's, or the first prompt."""

    custom: str = ""
    generated: str = ""
    summary: str = ""
    prompt: str = ""
    task: str = ""

    def add(self, line: Line) -> None:
        """Take in the next line. Of titles, the last one counts; of prompts, the first one."""
        match line.type:
            case "custom-title":
                self.custom = _text(line.custom_title) or self.custom
            case "ai-title":
                self.generated = _text(line.ai_title) or self.generated
            case "summary":
                self.summary = _text(line.summary) or self.summary
            case "user" if line.is_sidechain and not self.task:
                self.task = prompt_of(line)
            case "user" if not (self.prompt or line.is_meta or line.is_sidechain):
                self.prompt = prompt_of(line)
            case _:
                pass

    @property
    def title(self) -> str | None:
        """The title; None if the session has no prompt yet. A subagent has that of its task."""
        return self.custom or self.generated or self.summary or self.prompt or self.task or None


class Progress(Struct):
    """The facts of the lines of a session so far: ``count`` of them have ended, and ``objects`` are JSON objects."""

    titles: Titles = field(default_factory=Titles)
    count: int = 0
    objects: int = 0

    @classmethod
    def of(cls, state: bytes) -> Progress:
        """Return what `state` has returned; empty: no line was read."""
        return _PROGRESS.decode(state) if state else cls()

    @property
    def state(self) -> bytes:
        """The same as bytes."""
        return json.encode(self)


class WholeLines:
    """An iterator that passes chunks on; ``length`` is the number of bytes up to the end of the last whole line."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks, self._size, self.length = iter(chunks), 0, 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        chunk = next(self._chunks)
        end = chunk.rfind(b"\n")
        if end >= 0:
            self.length = self._size + end + 1
        self._size += len(chunk)
        return chunk


_PROGRESS = Decoder(Progress)


def prompt_of(line: Line) -> str:
    """Return the first line of a prompt that a person typed; empty if there is none."""
    try:
        content = _MESSAGE.decode(line.message).content
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    for part in parts:
        if isinstance(part, dict) and part.get("type") == "text":
            text = _text(part.get("text"))
            if text and not text.startswith(_MADE_OF_TAGS):
                return text
    return ""


def _text(value: object) -> str:
    """Return the first line of a text that is not blank, cut to the longest title."""
    text = value if isinstance(value, str) else ""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first if len(first) <= LONGEST_TITLE else first[: LONGEST_TITLE - 1].rstrip() + "…"
