"""Append-only files of lines: the lines that an edit has lost, and the merge of two versions."""

from __future__ import annotations

import re
from collections import Counter, deque
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

_TIME = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z")


class Line(Struct, frozen=True):
    """One line of a version. Lines of two versions are the same line if their ``key`` is equal.

    ``time`` orders the lines that only one version has; the times of a file can be compared with each other.
    """

    key: Hashable
    time: float | bytes
    text: bytes


def merged(first: Sequence[Line], second: Sequence[Line]) -> list[Line]:
    """Return the lines of both versions: the shared lines, then both tails by time, each in its own order.

    The result does not depend on the order of the two versions.
    """
    first_keys, second_keys = {line.key for line in first}, {line.key for line in second}
    left = [line for line in first if line.key not in second_keys]
    right = [line for line in second if line.key not in first_keys]
    shared = [line for line in first if line.key in second_keys]
    if [line.key for line in shared] != [line.key for line in second if line.key in first_keys]:
        # One of them was merged elsewhere before, so the shared lines are sorted by time.
        shared.sort(key=_order)
    return [*shared, *_by_time(left, right)]


def join_lines(store: bytes, workspace: bytes) -> bytes:
    """Return one log with every line of both; a truncated line is replaced by the complete one.

    A line is identified by its text and its first time alone, so equal lines are counted.
    """
    store_lines, workspace_lines = _split(store, workspace), _split(workspace, store)
    for whole, other in ((store, workspace), (workspace, store)):
        if not lacks_lines(other, whole):
            return whole
    lines = merged(_numbered(store_lines), _numbered(workspace_lines))
    return b"".join(line.text + b"\n" for line in lines)


def lacks_lines(before: bytes, after: bytes) -> bool:
    """Tell whether ``after`` has fewer of some line than ``before``, which may end in a truncated line."""
    return bool(Counter(_split(before, after)) - Counter(_lines(after)))


def _split(content: bytes, other: bytes) -> list[bytes]:
    """Return the lines of one version, without a truncated last line that is complete in the other."""
    lines = _lines(content)
    cut = lines and not content.endswith(b"\n")
    if cut and any(line_.startswith(lines[-1]) and line_ != lines[-1] for line_ in _lines(other)):
        return lines[:-1]
    return lines


def _lines(content: bytes) -> list[bytes]:
    return [line for line in (raw.rstrip(b"\r") for raw in content.split(b"\n")) if line.strip()]


def _numbered(texts: Iterable[bytes]) -> list[Line]:
    seen: Counter[bytes] = Counter()
    numbered = []
    for text in texts:
        seen[text] += 1
        numbered.append(Line((text, seen[text]), _time_in(text), text))
    return numbered


def _time_in(text: bytes) -> bytes:
    """Return the first ISO time in a line, which can be sorted as text; empty if there is none."""
    match = _TIME.search(text)
    return match[0] if match else b""


def _order(line: Line) -> tuple[float | bytes, bytes]:
    return line.time, line.text


def _by_time(left: Sequence[Line], right: Sequence[Line]) -> Iterator[Line]:
    """Yield both sequences merged, the older next line first; neither's own order changes."""
    first, second = deque(left), deque(right)
    while first and second:
        yield (first if _order(first[0]) <= _order(second[0]) else second).popleft()
    yield from first or second
