"""What a rebuilt index changes, in words that name the records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconcile.formats.claudesidian.index.compare import counts_of, words_by_id
from reconcile.formats.claudesidian.index.rebuild import BLOCKS, BY_TOKEN
from reconcile.formats.claudesidian.record_files import Kind
from reconcile.formats.claudesidian.words import counted, some
from reconcile.formats.json.strict import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MANY = 8
"""So many new records are named one by one; of more a vault that is begun anew would fill the screen."""


def index_changes(kind: Kind, old: Mapping[str, Any] | None, new: Mapping[str, Any], problem: str) -> tuple[str, ...]:
    """One line for each difference between a stored index, None where ``problem`` says why, and the rebuilt one."""
    block = BLOCKS[kind]
    if old is None:
        count = len(new[block])
        return (f"{problem}: made anew of {counted(count, kind)}",)
    return tuple(_changes(kind, old, new))


def _changes(kind: Kind, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    had, has = old[BLOCKS[kind]], new[BLOCKS[kind]]
    yield from _added([id_ for id_ in has if id_ not in had], kind, has)
    words = {part: words_by_id(old[part], new[part]) for part in BY_TOKEN[kind] if old[part] != new[part]}
    for id_ in has:
        if id_ in had:
            yield from _entry(id_, had[id_], has[id_])
            for part, (before, after) in words.items():
                yield from _signs(part, id_, before.get(id_, {}), after.get(id_, {}))
            if kind is Kind.WORKSPACE:
                lists = (dict.fromkeys(map(str, each["sessionsByWorkspace"].get(id_, ()))) for each in (old, new))
                yield from _signs("sessions", id_, *lists)
    if kind is Kind.WORKSPACE:
        yield from _folders(old["byFolder"], new["byFolder"], has)
    ghosts = dict.fromkeys((*had, *(id_ for before, _ in words.values() for id_ in before), *_other_ids(kind, old)))
    for id_ in ghosts:
        if id_ not in has:
            counts = counts_of(kind, had.get(id_))
            yield f"ghost {id_} dropped" + (f", which had {counts}" if counts else "")


def _added(ids: list[str], kind: Kind, entries: Mapping[str, Any]) -> Iterator[str]:
    name = "name" if kind is Kind.WORKSPACE else "title"
    for id_ in ids[:_MANY]:
        called = entries[id_].get(name)
        yield f"{BLOCKS[kind]} + {id_}" + (f" ({quoted(called)})" if isinstance(called, str) else "")
    if len(ids) > _MANY:
        yield f"{BLOCKS[kind]} + {len(ids) - _MANY} more"


def _entry(id_: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    names = [name for name in dict.fromkeys((*new, *old)) if old.get(name, ...) != new.get(name, ...)]
    if names:
        yield f"{', '.join(names)} as in the file: {id_}"


def _signs(part: str, id_: str, old: Mapping[str, None], new: Mapping[str, None]) -> Iterator[str]:
    """The words that lead to a record from now on, and those that don't any more."""
    for sign, words in (
        ("+", [each for each in new if each not in old]),
        ("-", [each for each in old if each not in new]),
    ):
        if words:
            yield f"{part} {sign} {some(words)}: {id_}"


def _folders(old: Mapping[str, Any], new: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[str]:
    for folder in dict.fromkeys((*new, *old)):
        before, after = old.get(folder), new.get(folder)
        if before != after and (after is not None or before in known):
            yield f"byFolder {quoted(folder)}: {before or 'none'} → {after or 'none'}"


def _other_ids(kind: Kind, index: Mapping[str, Any]) -> Iterator[str]:
    if kind is Kind.WORKSPACE:
        yield from (str(id_) for id_ in index["byFolder"].values())
        yield from index["sessionsByWorkspace"]
