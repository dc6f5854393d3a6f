"""The matches of a search in one content: the first line for each word, with its event's position and speaker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from reconcile.inspect.search.raw import RawTest
    from reconcile.inspect.search.words import Word
    from reconcile.model.transcript import Transcript, Turn

    Transcribe = Callable[[str, Mapping[str, bytes]], Transcript]

_BEFORE = 120
_AFTER = 360
"""Characters of a long line that are shown before and after the begin of its first match."""
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])
_PROBE = 8192
_WHOLE = "file"
"""The kind of a turn that is a whole file, in formats in which any text is valid."""


class _UnreadableEventError(ValueError):
    """An event that may have a word can't be read."""


UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError, _UnreadableEventError)
DAMAGED = "its events can't be read; searched as text"


class Hit(Struct, frozen=True, array_like=True):
    """A line with matches. ``words`` is the set of its words; ``marks`` are their places in the line.

    ``position`` is that of the line's event, or 0 if it belongs to none; ``file`` then names a file that is no stream.
    A long line is an excerpt with an ellipsis.
    """

    words: int
    line: str
    marks: tuple[tuple[int, int], ...]
    position: int = 0
    speaker: str = ""
    kind: str = ""
    time: str = ""
    file: str = ""


def marks_in(line: str, words: Iterable[Word]) -> tuple[tuple[int, int], ...]:
    """Return the places of all words in a line, in order; none overlaps another."""
    spans = sorted(match.span() for word in words for match in word.pattern.finditer(line))
    marks: list[tuple[int, int]] = []
    for begin, end in spans:
        if marks and begin <= marks[-1][1]:
            marks[-1] = marks[-1][0], max(end, marks[-1][1])
        else:
            marks.append((begin, end))
    return tuple(marks)


class Matcher:
    """Finds the words of a search in contents."""

    def __init__(self, words: Sequence[Word], test: RawTest, transcribe: Transcribe, events: str) -> None:
        """Prepare the search; ``events`` is the name of the file of events, as ``transcribe`` takes it."""
        self._words = words
        self._bits = [(1 << at, word) for at, word in enumerate(words)]
        self._test, self._transcribe, self._events = test, transcribe, events

    def in_title(self, title: str | None) -> int:
        """Return the words that a title has."""
        return sum(bit for bit, word in self._bits if word.pattern.search(title)) if title else 0

    def in_stream(self, data: bytes, needed: int) -> tuple[list[Hit], str]:
        """Return the first hit for each word in a stream, and a note; it is parsed only if it may have hits.

        There is no hit if not all of the ``needed`` words are found.
        """
        raw = self._test.words_in(data)
        return ([], "") if not raw or needed & ~raw else self._in_array(data, raw, needed)

    def in_chunks(self, arrays: Iterable[bytes], needed: int) -> tuple[list[Hit], str]:
        """Return what `in_stream` returns for arrays that together are a stream."""
        before, hits = 0, []
        missing = self._test.all
        for data in arrays:
            elements = _ELEMENTS.decode(data)
            if self._test.words_in(data) & missing:
                for hit in self._in_elements(elements, before, missing):
                    hits.append(hit)
                    missing &= ~hit.words
            if not missing:
                break
            before += len(elements)
        return (hits if self._has(hits, needed) else []), ""

    def _in_array(self, data: bytes, raw: int, needed: int) -> tuple[list[Hit], str]:
        try:
            hits = list(self._in_elements(_ELEMENTS.decode(data), 0, raw))
        except UNREADABLE:
            read = self._transcribe("", {self._events: data})
            if read.notes or [turn.kind for turn in read.turns] == [_WHOLE]:
                return self.in_text((data,), needed, self._events), DAMAGED if read.notes else ""
            hits = list(self._in_turns(read.turns, 0, raw))
        return (hits if self._has(hits, needed) else []), ""

    def in_record(self, record: str, contents: Mapping[str, bytes], needed: int) -> tuple[list[Hit], str]:
        """Return the first hit for each word in the files of a record, and a note."""
        transcript = self._transcribe(record, contents)
        hits = list(self._in_turns(transcript.turns, 0, self._test.all))
        notes = "; ".join(transcript.notes)
        return (hits if self._has(hits, needed) else []), notes

    def in_text(self, chunks: Iterable[bytes], needed: int, file: str) -> list[Hit]:
        """Return the first hit for each word in a text file, of which chunks end with a line; a binary one has none."""
        hits: list[Hit] = []
        missing = self._test.all
        for data in chunks:
            if b"\0" in data[:_PROBE]:
                return []
            if self._test.words_in(data) & missing:
                for hit in self._in_lines(data.decode("utf-8", "replace"), missing, file):
                    hits.append(hit)
                    missing &= ~hit.words
            if not missing:
                break
        return hits if self._has(hits, needed) else []

    @staticmethod
    def _has(hits: Iterable[Hit], needed: int) -> bool:
        for hit in hits:
            needed &= ~hit.words
        return not needed

    def _in_elements(self, elements: Sequence[msgspec.Raw], before: int, missing: int) -> Iterator[Hit]:
        for position, element in enumerate(elements, before + 1):
            content = bytes(element)
            if self._test.words_in(content) & missing:
                read = self._transcribe("", {self._events: b"[" + content + b"]"})
                if read.notes:
                    raise _UnreadableEventError
                for hit in self._in_turns(read.turns, position - 1, missing):
                    yield hit
                    missing &= ~hit.words
                if not missing:
                    return

    def _in_turns(self, turns: Iterable[Turn], before: int, missing: int) -> Iterator[Hit]:
        for turn in turns:
            for words, line in self._lines(turn.text, missing):
                yield self._hit(words, line, turn, before)
                missing &= ~words
            if not missing:
                return

    def _in_lines(self, text: str, missing: int, file: str) -> Iterator[Hit]:
        return (self._hit(words, line, file=file) for words, line in self._lines(text, missing))

    def _lines(self, text: str, missing: int) -> Iterator[tuple[int, str]]:
        """Yield the first line for each missing word, with all missing words of that line."""
        for bit, word in self._bits:
            match = word.pattern.search(text) if missing & bit else None
            if match is not None:
                line = _line_around(text, match.start(), match.end())
                words = bit | sum(other for other, each in self._bits if other != bit and each.pattern.search(line))
                missing &= ~words
                yield words, line

    def _hit(self, words: int, text: str, turn: Turn | None = None, before: int = 0, file: str = "") -> Hit:
        line = " ".join(text.split())
        marks = marks_in(line, self._words)
        if turn is None:
            return Hit(words, line, marks, file=file)
        return Hit(words, line, marks, before + turn.position, turn.speaker, turn.kind, turn.time)


def _line_around(text: str, start: int, stop: int) -> str:
    """Return the line with a match, or a part of it; a match may span several lines."""
    first, last = text.rfind("\n", 0, start) + 1, text.find("\n", stop)
    last = len(text) if last < 0 else last
    begin, end = max(first, start - _BEFORE), min(last, start + max(_AFTER, stop - start))
    return f"{'…' * (begin > first)}{text[begin:end]}{'…' * (end < last)}"
