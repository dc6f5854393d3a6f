"""A search: reads each content once, in as many processes as there are processors, and groups what it finds."""

from __future__ import annotations

import os
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from reconcile.formats.json.strict import InvalidContentError, fragments
from reconcile.fs.files import error_text
from reconcile.fs.hashing import chunks_of
from reconcile.fs.helper_process import HelperProcess
from reconcile.fs.paths import regular_descriptor
from reconcile.fs.posix import O_NOFOLLOW
from reconcile.inspect.search.matching import DAMAGED, UNREADABLE, Hit, Matcher
from reconcile.inspect.search.places import Kind, Place, places_of, titles_of
from reconcile.inspect.search.raw import RawTest
from reconcile.state.vault import VaultError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from reconcile.engine.engine import Engine
    from reconcile.inspect.search.places import Content, Places
    from reconcile.inspect.search.words import Word
    from reconcile.model.format import Format
    from reconcile.state.vault import Vault

_FEW = 200
"""Contents for which another process takes longer than it saves."""
_MOST_HELPERS = 7
LARGE = 8 << 20
"""Bytes from which on a file is searched in chunks. Several processes read at the same time."""


class Lines(Struct, frozen=True):
    """Places of a conversation that have the same matches. ``title`` is theirs, if it is not the conversation's."""

    title: str | None
    hits: tuple[Hit, ...]
    places: tuple[Place, ...]


class Match(Struct, frozen=True):
    """A conversation that has all words. ``in_title``: its title has all of them. ``last`` is its last activity."""

    conversation: str
    title: str | None
    in_title: bool
    last: str
    groups: tuple[Lines, ...]


class Result(Struct, frozen=True):
    """The conversations that were found, best first, and notes on what could not be searched.

    ``in_part`` are notes on files of which a part can't be read as events.
    """

    conversations: tuple[Match, ...]
    notes: tuple[str, ...]
    in_part: tuple[str, ...] = ()


class _Answer(Struct, frozen=True, array_like=True):
    """The hits of one content, and a note if it can't be read; ``in_part``: a part of it can."""

    number: int
    hits: list[Hit]
    note: str
    in_part: bool = False


_ANSWERS = msgspec.msgpack.Decoder(list[_Answer])


def search(engine: Engine, words: Sequence[Word]) -> Result:
    """Search titles and contents of all places for conversations that have all words.

    A conversation with all words in its title comes first, then the one that was active last.
    """
    fmt = engine.session.format
    test = RawTest(words)
    matcher = Matcher(words, test, fmt.transcript, fmt.stream_files[-1] if fmt.stream_files else "")
    places = places_of(engine)
    titles = titles_of(places.places)
    known = {title: matcher.in_title(title) for title in {_title(place, titles) for place in places.places}}
    needed = [test.all] * len(places.contents)
    for place in places.places:
        for number in place.contents:
            needed[number] &= ~known[_title(place, titles)]
    answers = _Contents(places.contents, needed, matcher, engine.session.vault).answers()
    matches = _grouped(places, titles, known, {answer.number: answer.hits for answer in answers}, test.all)
    whole, parts = (tuple(a.note for a in answers if a.note and a.in_part is part) for part in (False, True))
    return Result(tuple(sorted(matches, key=lambda match: _rank(match, fmt))), (*places.notes, *whole), parts)


def _title(place: Place, titles: Mapping[str, str]) -> str | None:
    """Return the title of a place; a saved version without metadata has its conversation's."""
    return titles.get(place.conversation) if place.title is None else place.title


def _rank(match: Match, fmt: Format) -> tuple[bool, list[int], tuple[int, list[int]]]:
    number, text = fmt.order(match.conversation)
    return not match.in_title, _descending(_comparable(match.last)), (-number, _descending(text))


def _comparable(time: str) -> str:
    return time.replace("T", " ")


def _descending(text: str) -> list[int]:
    return [-ord(char) for char in text] + [1]


def _grouped(
    places: Places, titles: Mapping[str, str], known: Mapping[str | None, int], hits: Mapping[int, list[Hit]], all_: int
) -> Iterator[Match]:
    matching: dict[str, list[tuple[Place, tuple[Hit, ...]]]] = {}
    last: dict[str, str] = {}
    for place in places.places:
        own = tuple(hit for number in place.contents for hit in hits.get(number, ()))
        words = known[_title(place, titles)]
        is_evidence = bool(own) or (place.title is not None and words)
        for hit in own:
            words |= hit.words
        if is_evidence and words == all_:
            matching.setdefault(place.conversation, []).append((place, own))
        if place.last:
            last[place.conversation] = max(last.get(place.conversation, ""), place.last, key=_comparable)
    for conversation, listed in matching.items():
        title = titles.get(conversation)
        groups: dict[tuple[str | None, tuple[Hit, ...]], list[Place]] = {}
        for place, own in listed:
            other = None if place.title in (None, title) else place.title
            groups.setdefault((other, own), []).append(place)
        times = (hit.time for _, own in listed for hit in own)
        moment = last.get(conversation) or max(times, key=_comparable, default="")
        yield Match(
            conversation,
            title,
            known[title] == all_,
            moment,
            tuple(Lines(other, own, tuple(group)) for (other, own), group in groups.items()),
        )


class _Contents:
    """The contents of a search, searched by this process and its helpers."""

    def __init__(self, contents: Sequence[Content], needed: Sequence[int], matcher: Matcher, vault: Vault) -> None:
        self._contents, self._needed, self._matcher, self._vault = contents, needed, matcher, vault

    def answers(self) -> list[_Answer]:
        """Return the answers for all contents that have hits or notes, in their order."""
        count = len(self._contents)
        parts = 1 if count < _FEW else min(os.cpu_count() or 1, _MOST_HELPERS + 1)
        with ExitStack() as stack:
            helpers = [
                (part, stack.enter_context(HelperProcess.start(partial(self._encoded, part, parts))))
                for part in range(1, parts)
            ]
            answers = self._part(0, parts)
            for part, helper in helpers:
                encoded = helper.result()
                answers += self._part(part, parts) if encoded is None else _ANSWERS.decode(encoded)
        return sorted(answers, key=lambda answer: answer.number)

    def _encoded(self, part: int, parts: int) -> bytes:
        return msgspec.msgpack.encode(self._part(part, parts))

    def _part(self, part: int, parts: int) -> list[_Answer]:
        """Search every n-th content: neighbours are about as large."""
        answers = (self._answer(number) for number in range(part, len(self._contents), parts))
        return [answer for answer in answers if answer is not None]

    def _answer(self, number: int) -> _Answer | None:
        content = self._contents[number]
        path, in_part = content.files[0][1], False
        try:
            if content.kind is Kind.EVENTS:
                hits, note = self._events(path, self._needed[number])
            elif content.kind is Kind.TEXT:
                hits, note = self._text(content, self._needed[number]), ""
            else:
                hits, note = self._record(content, self._needed[number])
            in_part = bool(note)
            if hits:
                self._verify(content)
        except FileNotFoundError:  # removed since it was listed
            return None
        except OSError as error:
            hits, note, in_part = [], f"can't be read ({error_text(error)}); skipped", False
        except MemoryError:
            hits, note, in_part = [], "too large for the free memory; skipped", False
        except VaultError as error:
            path, _, note = str(error).partition(": ")
            hits, in_part = [], False
        return _Answer(number, hits, f"{path}: {note}" if note else "", in_part) if hits or note else None

    def _events(self, path: str, needed: int) -> tuple[list[Hit], str]:
        fd = regular_descriptor(path, os.O_RDONLY | O_NOFOLLOW)
        try:
            size = os.fstat(fd).st_size
            if size <= LARGE:
                return self._matcher.in_stream(_read(fd, size), needed)
            try:
                return self._matcher.in_chunks((part for part, _ in fragments(chunks_of(fd))), needed)
            except (InvalidContentError, *UNREADABLE):
                os.lseek(fd, 0, os.SEEK_SET)
                return self._matcher.in_text(_whole_lines(chunks_of(fd)), needed, os.path.basename(path)), DAMAGED
        finally:
            os.close(fd)

    def _text(self, content: Content, needed: int) -> list[Hit]:
        ((name, path),) = content.files
        fd = regular_descriptor(path, os.O_RDONLY | O_NOFOLLOW)
        try:
            return self._matcher.in_text(_whole_lines(chunks_of(fd)), needed, name)
        finally:
            os.close(fd)

    def _record(self, content: Content, needed: int) -> tuple[list[Hit], str]:
        contents = {}
        for name, path in content.files:
            fd = regular_descriptor(path, os.O_RDONLY | O_NOFOLLOW)
            try:
                contents[name] = _read(fd, os.fstat(fd).st_size)
            finally:
                os.close(fd)
        return self._matcher.in_record(content.record, contents, needed)

    def _verify(self, content: Content) -> None:
        """Check the objects of the vault that have hits. Raises `VaultError`."""
        for _, path in content.files:
            name = os.path.basename(path)
            if path == self._vault.path(name):
                self._vault.open(name).close()


def _read(fd: int, size: int) -> bytes:
    """Return the rest of a file, in one call if it has the size that it should have."""
    content = os.read(fd, size + 1)
    if len(content) == size:
        return content
    return content + b"".join(chunks_of(fd))


def _whole_lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield chunks that end at the end of a line, unless one line is longer than many chunks."""
    rest = b""
    for chunk in chunks:
        begin, newline, after = chunk.rpartition(b"\n")
        if newline:
            yield rest + begin + newline
            rest = after
        elif len(rest) > LARGE:
            yield rest + chunk
            rest = b""
        else:
            rest += chunk
    if rest:
        yield rest
