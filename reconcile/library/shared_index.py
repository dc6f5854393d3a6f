"""Both sides as this process knows them: looked at as a whole once, and then where something is to be done.

What is known of one conversation suffices where it, and all that it is below, is as both sides have agreed on, or
differs in its content alone; else everything is looked at again. What others do elsewhere meanwhile isn't noticed: it
doesn't matter to this conversation, or what is remembered of it says so.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.adapters.roots import refuse_link
from reconcile.library.tree import Tree, show
from reconcile.model.names import CHILDREN
from reconcile.model.snapshot import Metadata, Partition, Side
from reconcile.planning.decide import decide
from reconcile.planning.incremental.scope import Known
from reconcile.planning.incremental.status import is_settled
from reconcile.scan.reader import Spot
from reconcile.state.database import State

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from reconcile.engine.session import Session
    from reconcile.library.values import Contents
    from reconcile.model.baseline import Look, Memory
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Copy
    from reconcile.planning.incremental.side_index import KnownSide
    from reconcile.planning.rules.guards import Whole

_TRIES = 20
_PATIENCE = 60.0
"""Seconds that a read of the state waits for others."""


class Ground(Struct, frozen=True):
    """What a plan for one conversation is made from; ``at_rest``: it is as was agreed on.

    ``full``: everything was looked at for it.
    """

    look: Look
    whole: Whole
    at_rest: bool
    full: bool


class Sight:
    """What is known, for all threads.

    A look at everything is made beside what is known, by one thread at a time, and takes its place when it has ended:
    nobody waits for one but who needs it. The mutex is for what is known, and held for moments; never while anything of
    either side is looked at, read or written, however long that takes.
    """

    def __init__(self, session: Session, policy: Policy) -> None:
        """Look at both sides."""
        self.session = session
        self.policy = policy
        self._pid = os.getpid()
        self._mutex, self._looking = threading.RLock(), threading.RLock()
        self._begun = self._done = 0
        """Looks at everything: how many have begun, and the last one that has ended."""
        self._look: Look
        self._known: Known
        self._tree: Tree
        self._met: set[str] = set()
        """What was looked at by itself while a look at everything went on, which may have come by before that."""
        self._told: dict[str, Contents] = {}
        """What was written meanwhile."""
        # Another connection than that of the looks at everything: what one reads through it hides from the other what
        # has been written meanwhile.
        self._state = session.state if session.readonly else State.open(session.directory, timeout=_PATIENCE)
        try:
            self.refresh()
        except BaseException:
            self._state.close()
            raise

    def refresh(self) -> Look:
        """Look at everything again: return what a look has seen that began after this was called, whoever made it.

        Raises:
            LocateError: a symbolic link has come to be in the place of a side.
        """
        wanted = self._begun + 1
        with self._looking:
            if wanted <= self._done:
                return self._look
            with self._mutex:
                self._begun += 1
            look = self._looked()
            for attempt in range(_TRIES):
                if not (look.store.problems or look.workspace.problems):
                    break
                time.sleep(attempt / 1000)  # somebody makes and removes directories all the time
                look = self._looked()
            known, tree = Known.seen(look, self.session.rules), self._arrange(look)
            with self._mutex:
                self._take_over(look, known, tree)
            return look

    def _looked(self) -> Look:
        look = self.session.look()
        for snapshot in (look.store, look.workspace):
            if any(not problem.path for problem in snapshot.problems):
                refuse_link(self.session.site.conversations(snapshot.side))
        return look

    def _arrange(self, look: Look) -> Tree:
        rules = self.session.rules
        board = decide(look.store, look.workspace, look.memory, self.policy, rules, time.time_ns())
        return Tree({each: board.parentage[each].parent for each in board.tree.walk()}, rules.format.order)

    def _take_over(self, look: Look, known: Known, tree: Tree) -> None:
        """Know from now on what a look at everything has found, and what was learned while it went on."""
        for conversation in self._met:
            for side in Side:
                for copy in self._known.sides[side].of(conversation):
                    known.sides[side].put(copy)
        known.relate(self._met, self._remembered(self._met))
        for conversation, contents in self._told.items():
            show(tree, self.session.format, conversation, contents)
        self._look, self._known, self._tree, self._done = look, known, tree, self._begun
        self._met, self._told = set(), {}

    def tell(self, conversation: str, contents: Contents) -> None:
        """Have the tree know what was written."""
        with self._mutex:
            if self._begun != self._done:
                self._told[conversation] = contents
            show(self._tree, self.session.format, conversation, contents)

    def policy_now(self) -> Policy:
        """Return the policy, with what git is in the middle of."""
        return self.session.surroundings(self.policy)

    @property
    def tree(self) -> Tree:
        """The live conversations, with their parents."""
        return self._tree

    def taken(self) -> Collection[str]:
        """Return the ids that conversations have, or had."""
        with self._mutex:
            return self._known.conversations()

    def ground(self, conversation: str, parent: str | None = None) -> Ground:
        """Look at one conversation, or at everything where that can't suffice; ``parent``: what it is to be below."""
        if not self._has_come(conversation) and self._look_again(conversation):
            with self._mutex:
                self._known.relate({conversation}, self._remembered({conversation}))
                near = self._known.above(conversation) | self._above(parent)
                look = self._known.look(near, self._remembered(near))
                sound = self._known.suffices() and all(self._suffices(each, look.memory) for each in near)
                rest = all(self._is_at_rest(each, look.memory) for each in near)
                whole = self._known.whole
            if sound:
                return Ground(look if rest else self.session.with_events(look), whole, rest, full=False)
        return self.full_ground(conversation, parent)

    def full_ground(self, conversation: str, parent: str | None = None) -> Ground:
        """Look at everything, and return what concerns one conversation: what is above and below it, too."""
        self.refresh()
        with self._mutex:
            near = self._known.around(conversation) | self._above(parent)
            look, whole = self._known.look(near, self._remembered(near)), self._known.whole
            rest = all(self._is_at_rest(each, look.memory) for each in self._known.above(conversation))
        return Ground(self.session.with_events(look), whole, rest, full=True)

    def after(self, conversation: str, made: Mapping[Side, Sequence[str]], *, full: bool) -> Look:
        """Look at what a plan has changed; ``made`` are directories of it that are new. ``full``: some were moved."""
        if full or not self._look_again(conversation, made):
            return self.full_ground(conversation).look
        with self._mutex:
            self._known.relate({conversation}, self._remembered({conversation}))
            near = self._known.above(conversation)
            return self._known.look(near, self._remembered(near))

    def copies(self, side: Side, conversation: str) -> list[Copy]:
        """Return the directories of a conversation on a side, as they are known."""
        with self._mutex:
            return self._known.sides[side].of(conversation)

    def close(self) -> None:
        """Save what was learned of the files, and close the state."""
        with self._looking, self._mutex:
            if not self.session.readonly and self._pid == os.getpid():
                self.session.scanner.save()
            self._state.close()
            self.session.state.close()

    def _above(self, parent: str | None) -> frozenset[str]:
        return frozenset() if parent is None else self._known.above(parent)

    def _remembered(self, conversations: Collection[str]) -> Memory:
        return self._state.load(self.session.checkout, conversations)

    def _is_at_rest(self, conversation: str, memory: Memory) -> bool:
        kept, here = (side.of(conversation) for side in self._known.sides.values())
        settled = is_settled(conversation, kept, here, memory, self.session.rules)
        return settled and not any(self._awaits_its_name(copy, memory) for copy in (*kept, *here))

    def _awaits_its_name(self, copy: Copy, memory: Memory) -> bool:
        """Tell whether a run that was killed has left a directory with the name of another title."""
        if (copy.side, copy.conversation) not in memory.renames or not isinstance(copy.metadata, Metadata):
            return False
        return copy.dirname != self.session.format.dirname(copy.conversation, copy.metadata.title)

    def _suffices(self, conversation: str, memory: Memory) -> bool:
        """Tell whether nothing but its content can differ from what was agreed on."""
        if self._is_at_rest(conversation, memory):
            return True
        kept, here = (side.of(conversation) for side in self._known.sides.values())
        agreed = memory.agreed.get(conversation)
        return len(kept) == len(here) == 1 and agreed is not None and here[0].path == agreed.place

    def _has_come(self, conversation: str) -> bool:
        """Tell whether the store has a directory of what was nowhere: another process has made it since."""
        with self._mutex:
            kept, here = self._known.sides.values()
            if conversation in kept or conversation in here:
                return False
        store, id_of = self.session.site.conversations(Side.STORE), self.session.format.id_of
        with contextlib.suppress(FileNotFoundError):
            return conversation in map(id_of, os.listdir(store))
        return False

    def _look_again(self, conversation: str, made: Mapping[Side, Sequence[str]] | None = None) -> bool:
        """Know what is in the directories of one conversation now; False where one of them is gone."""
        for attempt in range(_TRIES):
            with self._mutex:
                begun, known = self._begun, dict(self._known.sides)
                paths = {
                    side: dict.fromkeys((*(copy.path for copy in each.of(conversation)), *(made or {}).get(side, ())))
                    for side, each in known.items()
                }
                spots = {side: [_spot(known[side], path, conversation) for path in paths[side]] for side in Side}
            found = [self.session.scanner.at(known[side], spots[side]) if spots[side] else () for side in Side]
            copies = [copy for each in found if each is not None for copy in each]
            if None in found:
                return False
            with self._mutex:
                if begun != self._begun and attempt < _TRIES - 1:
                    continue  # a look at everything has begun since, and this must not be older than that
                for copy in copies:
                    self._known.sides[copy.side].put(copy)
                if begun != self._done:
                    self._met.add(conversation)
                break
        return True


def _spot(known: KnownSide, path: str, conversation: str) -> Spot:
    """Return what a directory is, by its path; what is new is live."""
    if path in known.paths:
        there = known.copy(path)
        return Spot(path, conversation, there.partition, there.container)
    return Spot(path, conversation, Partition.LIVE, known.paths.get(path.rpartition(f"/{CHILDREN}/")[0]))
