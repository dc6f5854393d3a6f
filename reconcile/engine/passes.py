"""Pass after pass over one session: about everything, or about the part that a change concerns, at the cost of that.

A part comes to the same plan as everything would (`reconcile.planning.incremental.scope`). Where that isn't certain,
everything is looked at: a side as a whole gave cause to look closer, another process has been at work in this checkout,
a conversation seems to have left a side, or too much has changed. What others remember anew of conversations (a run in
another worktree) concerns those conversations, as if they had changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.apply.outcome import Outcome
from reconcile.apply.run import close
from reconcile.engine.concurrent_writes import Others
from reconcile.model.plan import Plan
from reconcile.model.snapshot import Side
from reconcile.planning.filters import without_moving
from reconcile.planning.incremental.scope import Known
from reconcile.planning.incremental.side_index import without_events
from reconcile.planning.simulate import surprises

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reconcile.apply.executor import Progress
    from reconcile.engine.session import Session
    from reconcile.model.baseline import Baseline, WorldState
    from reconcile.model.policy import Policy
    from reconcile.planning.incremental.scope import Part
    from reconcile.state.journal import Mark

MOST = 300
"""Directories that are looked at one by one; of more, a look at everything costs less."""


class Pass(Struct, frozen=True):
    """A plan, and the look that it was made from; ``full``: both are about everything.

    ``conversations`` are those that the look is about; none where nothing has changed that wasn't known. Of a part, the
    plan's counts and the look are the part's. The plan leaves out what somebody is writing just now, ``moving``, which
    is due in the next pass that it is part of.
    """

    plan: Plan
    world: WorldState
    full: bool
    conversations: frozenset[str]
    moving: frozenset[str] = frozenset()

    def is_about(self, conversation: str | None) -> bool:
        """Tell whether the plan has the last word on a conversation; None stands for a side as a whole."""
        return conversation not in self.moving and (self.full or conversation in self.conversations)


class Passes:
    """Passes of one process. The session is open for writing; each pass is made while its lock is held."""

    def __init__(self, session: Session) -> None:
        """Know nothing yet: the first pass is about everything."""
        self.session = session
        self._known: Known | None = None
        self._policy: Policy | None = None
        self._others = Others(session.state, session.site.number, MOST)
        self._most = MOST
        self._since: Mark | None = None
        self._due: frozenset[str] = frozenset()
        """What the last pass has not done, and what wasn't concluded because of that."""
        self._open = True
        """Anything may be due: the last pass was not applied, or what it held concerns a side as a whole."""

    def resume(self, known: Known, policy: Policy, due: frozenset[str], most: int) -> None:
        """Go on from what is known already; of more than ``most`` directories everything is looked at."""
        self._known, self._policy, self._due, self._most = known, policy, due, most
        self._open = False
        self._others.begin()

    def everything(self, policy: Policy, moving: frozenset[str] = frozenset()) -> Pass:
        """Look at everything, and plan, but for what is in motion."""
        from reconcile.engine.dispatch import (
            plan_as_asked,  # here: of a part, `Session.plan_part` is all that is needed
        )

        world = self.look()
        plan = plan_as_asked(self.session, world, policy)
        self._open, self._policy = True, policy
        self._known = Known.seen(world, self.session.rules)
        about = self._known.conversations()
        return Pass(without_moving(plan, moving), world, full=True, conversations=about, moving=moving)

    def some(self, policy: Policy, dirty: Mapping[Side, Collection[str]], moving: frozenset[str] = frozenset()) -> Pass:
        """Look at some directories again, and plan what that concerns; about everything where a part can't tell.

        ``dirty`` has, by side, paths of conversations' directories and of directories of conversations, below the
        side's own. What has appeared or gone is best named itself: a directory of conversations is listed as a whole.
        """
        part = self._part(policy, dirty)
        if part is None:
            return self.everything(policy, moving)
        if not part.conversations:
            return Pass(
                Plan(layout=policy.layout.value, policy=policy, quiet=True),
                part.world,
                full=False,
                conversations=frozenset(),
            )
        self._open = True
        part = replace(part, world=self.session.with_events(part.world))
        plan = without_moving(self.session.plan_part(part, policy), moving)
        return Pass(plan, part.world, full=False, conversations=part.conversations, moving=moving)

    def look(self) -> WorldState:
        """Look at everything, for a plan that is made of that."""
        self._since = self.session.site.since
        self._others.begin()
        return self.session.look()

    def take_over(self, plan: Plan, before: WorldState, after: WorldState, outcome: Outcome) -> None:
        """Know what is there after a plan about everything that the session has carried out."""
        self._see(after)
        met = _met(before, after)
        others = met.beside(plan.concerned) if met is not None else frozenset[str]()
        self._due = others | (self.known.nowhere() if outcome.undone() else frozenset())
        self._open = met is None
        self._others.end()

    def apply(self, found: Pass, command: str, progress: Progress = lambda *_: None) -> Outcome:
        """Carry out a pass, look again at what it touched, and remember what was achieved."""
        session, plan = self.session, found.plan
        outcome, after = Outcome(), found.world
        met: _Taken | None = _NOTHING
        if not plan.quiet:
            outcome, after, met = self._carry_out(found, command, progress)
        # What somebody wrote meanwhile is known by now, and still to be acted on when it is heard of.
        surprised = surprises(plan, outcome.undone(), found.world, after) if plan.actions else frozenset[str]()
        surprised |= met.beside(plan.concerned if found.full else _about(found)) if met is not None else frozenset()
        self._due = self._left(found, outcome) | (found.moving & found.conversations) | surprised
        self._open = any(item.conversation is None for item in plan.held)
        self._open = self._open or met is None or not surprised.isdisjoint(met.left)
        if found.full:
            session.scanner.save()
            session.state.release_cache()
        self._others.end()
        return outcome

    def close(self) -> None:
        """Save what has been learned of the files since the last pass about everything."""
        self.session.scanner.save()

    @property
    def due(self) -> frozenset[str]:
        """What has to be part of the next pass, whatever changes."""
        return self._due

    @property
    def goes_on(self) -> bool:
        """Another process may go on from here: nobody else has written to the state, and a part will suffice."""
        return not self._open and not self._others.have_written()

    @property
    def known(self) -> Known:
        """Both sides as they are known; a pass has been made."""
        assert self._known is not None  # noqa: S101 - see above
        return self._known

    def _part(self, policy: Policy, dirty: Mapping[Side, Collection[str]]) -> Part | None:
        """Take in what is there now, and return what that concerns; None: everything has to be looked at."""
        if self._known is None or self._open or policy != self._policy or not _is_plain(policy):
            return None
        if self.session.format.places is not None:
            return None  # what is derived follows from everything
        if self.session.state.has_requests(self.session.site.number):
            return None  # each of them is tried by every pass
        others = self._others.changed()
        if others is None or sum(map(len, dirty.values())) > self._most:
            return None
        programs = self._written_by_programs()
        if programs and not programs <= self._known.there():
            return None
        taken = self._take_in(dirty)
        taken = taken and self._take_in_others(replace(taken, changed=taken.changed | programs), dirty)
        if taken is None or taken.left or not self._known.suffices():
            return None
        return self._known.part(taken.changed | others | self._due, self._remembered)

    def _written_by_programs(self) -> frozenset[str]:
        """Return what the library has written since the last pass began, heard of or not; both sides may have it."""
        since, self._since = self._since, self.session.site.since
        return self.session.state.journal.written_since(since) if since is not None else frozenset()

    def _take_in(self, dirty: Mapping[Side, Collection[str]]) -> _Taken | None:
        """Know what is there now in some directories; None where that can't be told without looking at everything."""
        changed: set[str] = set()
        left: set[str] = set()
        for side in dirty:
            known = self.known.sides[side]
            found = self.session.scanner.again(known, dirty[side])
            if found is None:
                return None
            there = {each for path in found.gone if known.has_whole(each := known.paths[path])}
            changed |= {known.paths[path] for path in found.gone}
            for path in found.gone:
                known.drop(path)
            for copy in found.copies:
                before = known.put(copy)
                if before != copy:
                    changed |= {copy.conversation} | ({before.conversation} if before else set())
            left |= {each for each in there if not known.has_whole(each)}
        return _Taken(changed, left)

    def _take_in_others(self, taken: _Taken, dirty: Mapping[Side, Collection[str]]) -> _Taken | None:
        """Know what is there now in all directories of what has changed: one may have gone, and is not yet heard of.

        Who moves a directory into one that was just made is heard of at the new place long before the old one.
        """
        others = {
            side: {copy.path for each in taken.changed for copy in known.of(each)}.difference(dirty.get(side, ()))
            for side, known in self.known.sides.items()
        }
        more = self._take_in(others)
        return more and _Taken(taken.changed | more.changed, taken.left | more.left)

    def _remembered(self, conversations: Collection[str]) -> Baseline:
        return self.session.state.load(self.session.site.number, conversations)

    def _carry_out(self, found: Pass, command: str, progress: Progress) -> tuple[Outcome, WorldState, _Taken | None]:
        """Carry out a pass, and know what is there then, and what is remembered.

        Return as well what is another than before. Of conversations that the plan isn't about, that is what somebody
        has made, moved or written meanwhile. None: it can't be told what that is.
        """
        session, plan = self.session, found.plan
        if found.full:
            outcome, after = session.apply(plan, found.world, command, progress)
            self._see(after)
            return outcome, after, _met(found.world, after)
        outcome = session.carry_out(plan, found.world, command, progress)
        after, met = self._after(found)
        session.remember(plan, found.world, after, outcome, self.known.whole)
        conversations = _about(found)
        self.known.relate(conversations, self._remembered(conversations))
        close(session.site, outcome)
        return outcome, after, met

    def _see(self, after: WorldState) -> None:
        """Know both sides as they were looked at, with what is remembered by now."""
        baseline = self.session.state.load(self.session.site.number)
        self._known = Known.seen(replace(after, baseline=baseline), self.session.rules)

    def _after(self, found: Pass) -> tuple[WorldState, _Taken | None]:
        """Look at a part again after a run, and load what is remembered by then; and what was met of its sides.

        Of conversations that the pass isn't about, that is what somebody has made, moved or written meanwhile. None: it
        can't be told what that is.
        """
        session = self.session
        conversations, touched = _about(found), _touched(found.plan)
        met = self._take_in(touched)
        met = met and self._take_in_others(replace(met, changed=met.changed - conversations), touched)
        if met is None:
            self._known = Known.seen(session.look(), session.rules)
        others = met.changed - conversations if met is not None else set()
        self.known.relate(others, self._remembered(others))
        return self.known.look(conversations, self._remembered(conversations)), met

    def _left(self, found: Pass, outcome: Outcome) -> frozenset[str]:
        """Return what a pass has left undone, with what is remembered although it is nowhere: that waits for it."""
        undone = set(outcome.undone())
        if not undone:
            return frozenset()
        if not found.full:
            return _about(found)
        left = {action.conversation for action in found.plan.actions if action.id in undone}
        return frozenset(left | self.known.nowhere())


class _Taken(Struct, frozen=True):
    """The conversations of which something is another than it was known to be, and those that have left a side."""

    changed: set[str]
    left: set[str]

    def beside(self, conversations: Collection[str]) -> frozenset[str]:
        """Return what others than these have to do with it."""
        return frozenset(self.changed | self.left).difference(conversations)


_NOTHING = _Taken(set(), set())


def _is_plain(policy: Policy) -> bool:
    return not (policy.request or policy.only or policy.below or policy.decisions)


def _about(found: Pass) -> frozenset[str]:
    """Return the conversations of a pass, with those that it has made."""
    return found.conversations | {action.conversation for action in found.plan.actions}


def _touched(plan: Plan) -> dict[Side, set[str]]:
    """Return what a plan may have changed, by side."""
    touched: dict[Side, set[str]] = {side: set() for side in Side}
    for action in plan.actions:
        for place in (action.target, action.source, *(write.target for write in action.writes), *action.removes):
            if place is not None:
                touched[place.side].add(place.path)
    return touched


def _met(before: WorldState, after: WorldState) -> _Taken | None:
    """Return the conversations of which a copy came, went, or is another.

    None: something else is another, too. That is nobody's, or said of a side as a whole.
    """
    changed: set[str] = set()
    for was, now in ((before.store, after.store), (before.workspace, after.workspace)):
        if was.foreign != now.foreign or was.problems != now.problems or (was.exists and was.identity != now.identity):
            return None
        there = {copy.path: without_events(copy) for copy in was.copies}
        for copy in now.copies:
            known = there.pop(copy.path, None)
            if known != without_events(copy):
                changed |= {copy.conversation} | ({known.conversation} if known is not None else set())
        changed.update(copy.conversation for copy in there.values())
    return _Taken(changed, set())
