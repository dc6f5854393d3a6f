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
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconcile.core.decisions import decide
from reconcile.core.model import CHILDREN, Partition, Side
from reconcile.core.part import Known
from reconcile.core.quiet import is_settled
from reconcile.disk.copies import Spot
from reconcile.library.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from reconcile.core.guards import Whole
    from reconcile.core.known import KnownSide
    from reconcile.core.look import Look
    from reconcile.core.memory import Memory
    from reconcile.core.model import Copy
    from reconcile.core.policy import Policy
    from reconcile.session import Session

_TRIES = 20


@dataclass(frozen=True, slots=True)
class Ground:
    """What a plan for one conversation is made from; ``at_rest``: it is as was agreed on.

    ``full``: everything was looked at for it.
    """

    look: Look
    whole: Whole
    at_rest: bool
    full: bool


class Sight:
    """What is known, for all threads.

    The mutex is held while everything is looked at, which others wait for; never while one conversation is read or
    written, however long that takes.
    """

    def __init__(self, session: Session, policy: Policy) -> None:
        """Look at both sides."""
        self.session = session
        self.policy = policy
        self._mutex = threading.RLock()
        self._known: Known
        self._tree: Tree | None = None
        self.refresh()

    def refresh(self) -> Look:
        """Look at everything again."""
        with self._mutex:
            look = self.session.look()
            for attempt in range(_TRIES):
                if not (look.store.problems or look.workspace.problems):
                    break
                time.sleep(attempt / 1000)  # somebody makes and removes directories all the time
                look = self.session.look()
            self._look = look
            self._known = Known.seen(look, self.session.rules)
            self._tree = None
            return look

    def policy_now(self) -> Policy:
        """Return the policy, with what git is in the middle of."""
        return self.session.surroundings(self.policy)

    @property
    def tree(self) -> Tree:
        """The live conversations, with their parents."""
        with self._mutex:
            if self._tree is None:
                look, rules = self._look, self.session.rules
                board = decide(look.store, look.workspace, look.memory, self.policy, rules, time.time_ns())
                stated = {each: board.parentage[each].parent for each in board.tree.walk()}
                self._tree = Tree(stated, rules.format.order)
            return self._tree

    def taken(self) -> Collection[str]:
        """Return the ids that conversations have, or had."""
        with self._mutex:
            return self._known.conversations()

    def archived(self, conversation: str) -> bool:
        """Tell whether a conversation is there, and none of its directories is live."""
        with self._mutex:
            copies = [copy for side in self._known.sides.values() for copy in side.of(conversation)]
        return bool(copies) and all(copy.archived or copy.partition is Partition.TRASH for copy in copies)

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
        with self._mutex:
            self.refresh()
            near = self._known.around(conversation) | self._above(parent)
            look = self._known.look(near, self._remembered(near))
            rest = all(self._is_at_rest(each, look.memory) for each in self._known.above(conversation))
            return Ground(self.session.with_events(look), self._known.whole, rest, full=True)

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
        with self._mutex:
            if not self.session.readonly:
                self.session.save_indexes()
            self.session.state.close()

    def _above(self, parent: str | None) -> frozenset[str]:
        return frozenset() if parent is None else self._known.above(parent)

    def _remembered(self, conversations: Collection[str]) -> Memory:
        return self.session.state.load(self.session.checkout, conversations)

    def _is_at_rest(self, conversation: str, memory: Memory) -> bool:
        kept, here = (side.of(conversation) for side in self._known.sides.values())
        return is_settled(conversation, kept, here, memory, self.session.rules)

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
            if any(conversation in known for known in self._known.sides.values()):
                return False
        store, id_of = self.session.site.conversations(Side.STORE), self.session.format.id_of
        with contextlib.suppress(FileNotFoundError):
            return any(id_of(name) == conversation for name in os.listdir(store))
        return False

    def _look_again(self, conversation: str, made: Mapping[Side, Sequence[str]] | None = None) -> bool:
        """Know what is in the directories of one conversation now; False where one of them is gone."""
        for side in Side:
            with self._mutex:
                known = self._known.sides[side]
                paths = dict.fromkeys((*(copy.path for copy in known.of(conversation)), *(made or {}).get(side, ())))
                spots = [_spot(known, path, conversation) for path in paths]
            found = self.session.look_at(known, spots) if spots else ()
            if found is None:
                return False
            with self._mutex:
                for copy in found:
                    known.put(copy)
        return True


def _spot(known: KnownSide, path: str, conversation: str) -> Spot:
    """Return what a directory is, by its path; what is new is live."""
    if path in known.paths:
        there = known.copy(path)
        return Spot(path, conversation, there.partition, there.container)
    return Spot(path, conversation, Partition.LIVE, known.paths.get(path.rpartition(f"/{CHILDREN}/")[0]))
