"""Files that only ever grow, line by line: the lines that an edit has lost, and two versions in one."""

from __future__ import annotations

import re
from collections import Counter, deque
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

_TIME = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z")


class Line(Struct, frozen=True):
    """One line of a version. Lines of two versions with the same ``key`` are the same line.

    ``time`` orders the lines that only one version has; any two times of a file can be compared.
    """

    key: Hashable
    time: float | bytes
    text: bytes


def merged(mine: Sequence[Line], theirs: Sequence[Line]) -> list[Line]:
    """Return the lines of both versions: what they share, then both tails, each in its own order, by time.

    The result is the same whichever version comes first.
    """
    ours, others = {line.key for line in mine}, {line.key for line in theirs}
    left = [line for line in mine if line.key not in others]
    right = [line for line in theirs if line.key not in ours]
    shared = [line for line in mine if line.key in others]
    if [line.key for line in shared] != [line.key for line in theirs if line.key in ours]:
        # An older union elsewhere made one of them: what is shared is in the order of the times.
        shared.sort(key=_order)
    return [*shared, *_by_time(left, right)]


def join_lines(store: bytes, workspace: bytes) -> bytes:
    """Return one log that has every line of both; a line that was cut off goes where the whole one is there.

    Nothing is known of a line but its text and the first time in it, so equal lines are counted.
    """
    mine, theirs = _split(store, workspace), _split(workspace, store)
    for whole, other in ((store, workspace), (workspace, store)):
        if not lacks_lines(other, whole):
            return whole
    lines = merged(_numbered(mine), _numbered(theirs))
    return b"".join(line.text + b"\n" for line in lines)


def lacks_lines(before: bytes, after: bytes) -> bool:
    """Tell whether ``after`` has fewer of some line than ``before``, which may itself end in a line that was cut."""
    return bool(Counter(_split(before, after)) - Counter(_lines(after)))


def _split(content: bytes, other: bytes) -> list[bytes]:
    """Return the lines of one version, without a cut last line that the other has as a whole."""
    lines = _lines(content)
    cut = lines and not content.endswith(b"\n")
    if cut and any(each.startswith(lines[-1]) and each != lines[-1] for each in _lines(other)):
        return lines[:-1]
    return lines


def _lines(content: bytes) -> list[bytes]:
    return [line for line in (each.rstrip(b"\r") for each in content.split(b"\n")) if line.strip()]


def _numbered(texts: Iterable[bytes]) -> list[Line]:
    seen: Counter[bytes] = Counter()
    found = []
    for text in texts:
        seen[text] += 1
        found.append(Line((text, seen[text]), _time_in(text), text))
    return found


def _time_in(text: bytes) -> bytes:
    """Return the first ISO time in a line, which sorts as it is; empty where there is none."""
    found = _TIME.search(text)
    return found[0] if found else b""


def _order(line: Line) -> tuple[float | bytes, bytes]:
    return line.time, line.text


def _by_time(left: Sequence[Line], right: Sequence[Line]) -> Iterator[Line]:
    """Yield both sequences as one, the older next line first; neither's own order changes."""
    first, second = deque(left), deque(right)
    while first and second:
        yield (first if _order(first[0]) <= _order(second[0]) else second).popleft()
    yield from first or second
