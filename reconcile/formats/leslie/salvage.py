"""What is left of a torn control file: every member that was complete before the cut.

See docs/design/formats/leslie.md#edge-case-17.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from reconcile.formats.leslie.log.document import Document, read_relations, written
from reconcile.formats.leslie.log.rebuild import rebuild
from reconcile.formats.leslie.log.replay import replay
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from reconcile.formats.leslie.log.document import Object

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder(strict=True)
_LEVELS = 2
"""Containers that are gone into when they are torn: the file, and each section of it."""


class Salvaged(Struct, frozen=True):
    """The complete members of a torn file. ``closed`` names the sections that are whole."""

    value: Object
    closed: frozenset[str] = field(default_factory=frozenset)

    @property
    def threads(self) -> dict[str, Object]:
        """The complete records of threads."""
        return _objects(self.value.get("threads"))

    @property
    def operations(self) -> list[Object]:
        """The complete operations."""
        found = self.value.get("operations")
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []

    @property
    def objectives(self) -> dict[str, Object]:
        """The complete objectives."""
        return _objects(self.value.get("objectives"))


def salvage(content: bytes) -> Salvaged:
    """Read a file as far as it goes."""
    text = content.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")
    closed: list[str] = []
    value, _ = _torn(text, _skip(text, 0), closed, _LEVELS)
    return Salvaged(value if isinstance(value, dict) else {}, frozenset(closed))


def from_whole_log(content: bytes) -> bytes | None:
    """The file again, where nothing but derived data was cut off: threads and operations are there to the last."""
    found = salvage(content)
    if not {"threads", "operations"} <= found.closed:
        return None
    return _written({**found.value, "relations": {}})


def proposal(*torn: bytes) -> bytes | None:
    """A file made of all that is left of several torn ones, None where that is nothing.

    See docs/design/formats/leslie.md#f2. The log is the longest one; records that no operation spawns stand for
    themselves.
    """
    pieces = sorted(map(salvage, torn), key=lambda each: (len(each.operations), len(each.threads)), reverse=True)
    threads = {thread: record for each in reversed(pieces) for thread, record in each.threads.items()}
    if not threads and not any(each.operations for each in pieces):
        return None
    best = pieces[0]
    parts = {"threads": threads, "operations": best.operations, "relations": {}}
    head: Object = {
        key: each.value[key] for key in ("version", "metadata") for each in reversed(pieces) if key in each.value
    }
    return _written({"version": "1.0", **head, **best.value, **parts})


def _written(value: Object) -> bytes | None:
    """A whole file; its derived data follow from its log."""
    found = read_relations(written(value))
    if isinstance(found, Fault):
        return None
    return _rebuilt(found)


def _rebuilt(document: Document) -> bytes:
    return rebuild(document, replay(document), frozenset()).content


def _objects(value: Any) -> dict[str, Object]:
    return {key: each for key, each in value.items() if isinstance(each, dict)} if isinstance(value, dict) else {}


def _torn(text: str, at: int, closed: list[str], levels: int) -> tuple[Any, bool]:
    """The container that begins at ``at``, as far as it goes, and whether it goes to its end."""
    opening = text[at : at + 1]
    if opening not in ("{", "[") or not opening:
        return None, False
    found: Any = {} if opening == "{" else []
    at = _skip(text, at + 1)
    if text[at : at + 1] in ("}", "]"):
        return found, True
    while True:
        key = None
        if opening == "{":
            key, at = _value(text, at)
            if not isinstance(key, str) or text[at : at + 1] != ":":
                return found, False
            at = _skip(text, at + 1)
        value, end = _value(text, at)
        whole = end >= 0
        if not whole and levels > 1:
            value, _ = _torn(text, at, closed, levels - 1)
        if whole and levels == _LEVELS and key is not None:
            closed.append(key)
        if whole or value is not None:
            _keep(found, key, value)
        if not whole or text[end : end + 1] != ",":
            return found, whole and text[end : end + 1] in ("}", "]")
        at = _skip(text, end + 1)


def _keep(container: Any, key: str | None, value: Any) -> None:
    if key is None:
        container.append(value)
    else:
        container[key] = value


def _value(text: str, at: int) -> tuple[Any, int]:
    """A whole value and the place after it and its white space; -1: there is none."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, -1
    after = _skip(text, end)
    # A number at the very end may be the beginning of a longer one.
    return (value, after) if after < len(text) or isinstance(value, (dict, list, str)) else (None, -1)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None  # noqa: S101 - it matches nothing too
    return match.end()
