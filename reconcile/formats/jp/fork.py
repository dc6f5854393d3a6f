"""Filters the elements of a stream for a fork, so that JP can load the result.

See docs/design/formats/jp.md#stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from reconcile.formats.jp.times import instant_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reconcile.model.format import EventSelection

_PAIRS: Final = {"tool_call_request": "tool_call_response", "inquiry_request": "inquiry_response"}
_CONFIG: Final = "config_delta"
_COMPACTION: Final = "compaction"

Element = dict[str, Any]


def cut(elements: Sequence[Element], part: EventSelection) -> list[Element]:
    """Return the elements of a part of a stream, without a leading base configuration.

    ``--last`` counts turns from the end; the times are inclusive. Configuration changes before the part are kept,
    because they are in force in it. A request without its response is left out, as is a response without its request,
    and a compaction whose turns are not all at the positions that it counts.
    """
    first = _start_of_last(elements, part.last) if part.last is not None else 0
    kept = [
        element
        for number, element in enumerate(elements)
        if _is_before_end(element, part) and (_kind(element) == _CONFIG or _is_in(number, element, first, part))
    ]
    whole_from_start = len(kept) == len(elements) or kept == list(elements[: len(kept)])
    turns = len(turn_starts(kept))
    kept = [
        element_
        for element_ in kept
        if _kind(element_) != _COMPACTION or (whole_from_start and _counts(element_, turns))
    ]
    return _paired(kept)


def turn_starts(elements: Iterable[Element]) -> list[int]:
    """Return the positions where turns begin: each ``turn_start``, and each user request without one before it."""
    starts = []
    announced = False
    for number, element in enumerate(elements):
        if _kind(element) == "turn_start":
            starts.append(number)
            announced = True
        elif _kind(element) == "chat_request":
            if not announced:
                starts.append(number)
            announced = False
    return starts


def _kind(element: Element) -> str:
    return str(element["type"])


def _start_of_last(elements: Sequence[Element], last: int) -> int:
    starts = turn_starts(elements)
    if last == 0:
        return len(elements)
    return starts[-last] if last < len(starts) else 0


def _is_in(number: int, element: Element, first: int, part: EventSelection) -> bool:
    at_ns = _time(element)
    return number >= first and (part.from_ns is None or at_ns is None or at_ns >= part.from_ns)


def _is_before_end(element: Element, part: EventSelection) -> bool:
    at_ns = _time(element)
    return part.until_ns is None or at_ns is None or at_ns <= part.until_ns


def _time(element: Element) -> int | None:
    value = element["timestamp"]
    return instant_ns(value) if isinstance(value, str) else None


def _counts(compaction: Element, turns: int) -> bool:
    to = compaction.get("to_turn")
    return isinstance(to, int) and to < turns


def _paired(elements: list[Element]) -> list[Element]:
    """Leave out requests without their response and responses without their request; ids may repeat."""
    waiting: dict[tuple[str, object], list[int]] = {}
    paired: set[int] = set()
    for number, element in enumerate(elements):
        kind = _kind(element)
        key = str(element.get("id"))
        if kind in _PAIRS:
            waiting.setdefault((_PAIRS[kind], key), []).append(number)
        elif waiting.get((kind, key)):
            paired |= {number, waiting[kind, key].pop(0)}
    kinds = {*_PAIRS, *_PAIRS.values()}
    return [element for number, element in enumerate(elements) if _kind(element) not in kinds or number in paired]
