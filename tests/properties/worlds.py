"""Every small world: two conversations, all that may have become of each since both sides agreed, told as frames.

A world begins with what is remembered, which real runs have laid down, and ends with both sides as somebody left
them. What is varied, for each conversation by itself:

* what is remembered: nothing; in sync; local; removed from the workspace; private (local, never in the workspace);
* the store: not there, as agreed, edited, archived;
* the workspace: not there, a directory without a file of its own, as agreed, the store's edit, an edit of its own;
* the parent that each of the three states: none, or the other conversation (so that cycles are among them);

and for both together: the directory that either lies in, and the layout of the runs before and of the last one.

Where fewer are looked at than there are, it is because of these symmetries:

* The store's edit is one of the stream alone, so it states the parent that was agreed on: parents are decided from the
  metadata, and an edited stream has no say in them. The edit of the workspace (title, stream and parent) and the
  content that nobody edited go with both parents.
* Of the first conversation the workspace's edit is newer than the store's, of the second it is older. Which of the two
  is the parent is varied, so that a parent and a child are met with both.
* Where nothing is remembered, edited and archived in the store are left out: there is nothing to tell an edit from, and
  what never was in a workspace has nothing to follow.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from tests.properties.telling import Frame
from tests.support.scenarios.listing import read_tree
from tests.support.scenarios.pure_level import PureLevel
from tests.support.scenarios.trees import Folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.scenarios.trees import Tree

NUMBERS = ("1", "2")
REMEMBERED = ("nothing", "in sync", "local", "removed", "private")
NESTED, FLAT = "reconcile", "reconcile --layout flat"

_TIMES = {
    "1": {"agreed": "09:00", "store": "10:00", "own": "11:00"},
    "2": {"agreed": "09:00", "store": "11:00", "own": "10:00"},
}
_TITLES = {"agreed": "A", "store": "A", "own": "C"}
_EVENTS = {"agreed": "[1 2]", "store": "[1 2 3]", "own": "[1 4]"}


class Version(NamedTuple):
    """One content of a conversation: ``agreed``, ``store`` (edited there) or ``own`` (the workspace's edit)."""

    content: str
    child: bool
    """Whether it states the other conversation as its parent."""


class Past(NamedTuple):
    """What is remembered of a conversation, and whether as the other one's child."""

    what: str
    child: bool

    def __str__(self) -> str:
        return self.what + (" child" if self.child else "")


class Present(NamedTuple):
    """What both sides hold of a conversation."""

    store: Version | None
    archived: bool
    workspace: Version | None
    husk: bool
    """The workspace has a directory without any file of its own."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What is remembered of both, by the runs that led there."""

    pasts: tuple[Past, Past]
    command: str

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The runs: both sides in sync; then what became local, or was removed from the workspace."""
        return _frames_of(self)


@dataclass(frozen=True, slots=True)
class World:
    """One small world. ``inside``: the number of the conversation that lies in the other's directory, or none."""

    beginning: Beginning
    presents: tuple[Present, Present]
    inside: str
    command: str
    verbs: tuple[str, ...] = ()

    @property
    def end(self) -> Frame:
        """The last run, which is the one looked at."""
        store: Tree = {}
        workspace: Tree = {}
        for number, present in zip(NUMBERS, self.presents, strict=True):
            if present.store is not None:
                store |= _files(number, present.store, ".archive/" if present.archived else "")
            above = f"{_other(number)}-a/conversations/" if self.inside == number else ""
            if present.workspace is not None:
                workspace |= _files(number, present.workspace, above)
            elif present.husk:
                workspace[f"{above}{number}-a"] = Folder()
        if self.inside:
            workspace = {path: entry for path, entry in workspace.items() if path != f"{_other(self.inside)}-a"}
        return Frame({"store": store, "workspace": workspace}, self.command, self.verbs)

    def play(self) -> PureLevel:
        """Let the last run happen, with every law checked; return where it led."""
        level = _going_on(_played(self.beginning))
        self.end.play(level)
        return level

    @property
    def frames(self) -> tuple[Frame, ...]:
        return (*self.beginning.frames, self.end)


class Kind(NamedTuple):
    """The command of the runs before, that of the last one, and what is configured."""

    before: str
    after: str
    verbs: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = (
            text.rpartition(" ")[2].replace("reconcile", "nested") for text in (*self.verbs, self.before, self.after)
        )
        return "-".join(words)


PASTS = tuple(Past(what, child) for what in REMEMBERED for child in (False, True) if what != "nothing" or not child)
KINDS = (
    *(Kind(before, after) for before in (NESTED, FLAT) for after in (NESTED, FLAT)),
    Kind(NESTED, NESTED, ("config missing reproject",)),
)


def worlds() -> Iterator[World]:
    """Yield every small world."""
    for kind, past in itertools.product(KINDS, PASTS):
        yield from worlds_of(kind, past)


def worlds_of(kind: Kind, past: Past) -> Iterator[World]:
    """Yield those of one kind in which this is remembered of the first conversation."""
    for other in PASTS:
        beginning = Beginning((past, other), kind.before)
        for presents in itertools.product(_presents(past), _presents(other)):
            for inside in _insides(presents):
                yield World(beginning, presents, inside, kind.after, kind.verbs)


def some_worlds(seed: int, count: int) -> Iterator[World]:
    """Yield so many, always the same ones."""
    chance = random.Random(seed)
    for _ in range(count):
        kind, past, other = chance.choice(KINDS), chance.choice(PASTS), chance.choice(PASTS)
        presents = (chance.choice(_presents(past)), chance.choice(_presents(other)))
        inside = chance.choice(_insides(presents))
        yield World(Beginning((past, other), kind.before), presents, inside, kind.after, kind.verbs)


def _insides(presents: tuple[Present, Present]) -> tuple[str, ...]:
    there = all(present.workspace is not None or present.husk for present in presents)
    return ("", *NUMBERS) if there else ("",)


@cache
def _frames_of(beginning: Beginning) -> tuple[Frame, ...]:
    known = [(number, past) for number, past in zip(NUMBERS, beginning.pasts, strict=True) if past.what != "nothing"]
    store: Tree = {}
    workspace: Tree = {}
    for number, past in known:
        store |= _files(number, Version("agreed", past.child), local=past.what == "private")
        if past.what != "private":
            workspace |= _files(number, Version("agreed", past.child))
    first = Frame({"store": store, "workspace": workspace}, beginning.command)
    if not any(past.what in ("local", "removed") for _, past in known):
        return (first,)
    level = PureLevel()
    first.play(level)
    store, workspace = dict(level.trees["store"] or {}), dict(level.trees["workspace"] or {})
    for number, past in known:
        if past.what == "local":
            store |= _files(number, Version("agreed", past.child), local=True)
        elif past.what == "removed":
            workspace = {path: entry for path, entry in workspace.items() if f"{number}-" not in path}
    return (first, Frame({"store": store, "workspace": workspace}, beginning.command))


@cache
def _presents(past: Past) -> tuple[Present, ...]:
    agreed, own = ([Version(content, child) for child in (False, True)] for content in ("agreed", "own"))
    edited = Version("store", past.child)
    store: list[tuple[Version | None, bool]] = [(None, False), *((version, False) for version in agreed)]
    if past.what != "nothing":
        store += [(edited, False), (Version("agreed", past.child), True)]
    workspace: list[tuple[Version | None, bool]] = [(None, False), (None, True)]
    workspace += [(version, False) for version in (*agreed, edited, *own)]
    return tuple(Present(*ours, *theirs) for ours, theirs in itertools.product(store, workspace))


@cache
def _files(number: str, version: Version, above: str = "", *, local: bool = False) -> Tree:
    time = _TIMES[number][version.content]
    metadata_time = time if version.content == "own" else "09:00"
    words = [f'title "{_TITLES[version.content]}"', *(["local"] if local else [])]
    words += [f"parent {_other(number)}"] if version.child else []
    stream = f"stream {time} {_EVENTS[version.content]}"
    return read_tree([f"{above}{number}-a  metadata {metadata_time} {' '.join(words)}  {stream}"])


def _other(number: str) -> str:
    return NUMBERS[number == NUMBERS[0]]


@cache
def _played(beginning: Beginning) -> PureLevel:
    """Return where a beginning leads; it is never changed, each world goes on from a copy."""
    level = PureLevel()
    for frame in beginning.frames:
        frame.play(level)
    return level


def _going_on(level: PureLevel) -> PureLevel:
    return PureLevel(
        trees=dict(level.trees),
        memories=level.memories.copy(),
        now_ns=level.now_ns,
        removed=set(level.removed),
        stored=set(level.stored),
    )
