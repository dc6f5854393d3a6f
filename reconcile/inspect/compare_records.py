"""What differs between both versions of a record with a fixed place: `reconcile diff` of formats without events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from reconcile.inspect.compare import Comparison, extras_of, unread_on
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reconcile.model.snapshot import Content
    from reconcile.planning.rules.views import View


def compare_records(view: View, store: Mapping[str, Content], workspace: Mapping[str, Content]) -> Comparison:
    """Compare the file that is the record, value by value where it is JSON, else line by line.

    One that can't be read is compared with nothing.
    """
    unread = unread_on(store, workspace, "")
    contents = (store.get(""), workspace.get(""))
    ours, theirs = (None if unread or isinstance(content, Fault) else _value(content) for content in contents)
    return Comparison(
        metadata=tuple(_differences(ours, theirs)),
        common=0,
        store_only=(),
        workspace_only=(),
        base_config_differs=False,
        extras=extras_of(view),
        notes=tuple(unread),
    )


def _value(content: bytes | None) -> Any:
    """JSON as it is; lines of JSON by their ids; other lines by their numbers."""
    if content is None:
        return None
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        lines = content.decode(errors="replace").splitlines()
    found: dict[str, Any] = {}
    for number, line in enumerate(lines, 1):
        try:
            value: Any = json.loads(line)
        except (ValueError, RecursionError):
            value = line
        found[_name(value, f"line {number}")] = value
    return found


def _name(value: Any, otherwise: str) -> str:
    known = value.get("id") if isinstance(value, dict) else None
    return known if isinstance(known, str) else otherwise


def _differences(ours: Any, theirs: Any) -> Iterator[tuple[str, Any, Any]]:
    """Every value that isn't the same, with the way to it, in the order of the store's; None: it isn't there."""
    pending = [("", ours, theirs)]
    while pending:
        way, left, right = pending.pop()
        if left == right:
            continue
        here, there = _members(left), _members(right)
        if here is None or there is None:
            yield way or "content", left, right
            continue
        keys = dict.fromkeys((*here, *there))
        inner = [(f"{way}.{key}" if way else key, here.get(key), there.get(key)) for key in keys]
        if all(before == after for _, before, after in inner):
            yield way or "content", "the same in another order", None
        pending += reversed(inner)


def _members(value: Any) -> dict[str, Any] | None:
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        return {_name(each, str(number)): each for number, each in enumerate(value, 1)}
    return None
