"""The watcher: scans, plans and applies what events name, until it is stopped (docs/watch.md)."""

from __future__ import annotations

import os
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.adapters.roots import identity_of
from reconcile.apply.target import MovedError
from reconcile.engine.passes import Passes
from reconcile.errors import ReconcileError
from reconcile.fs.git_state import git_busy
from reconcile.fs.locks import LockedError, watch_lock
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import Side
from reconcile.planning.filters import without_moving
from reconcile.watch.debounce import Settling
from reconcile.watch.fs_events import DeafError, Ears, Inbox, heard
from reconcile.watch.reporter import News, Teller, What
from reconcile.watch.store_merge import refuse_lost, refuse_merging

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from reconcile.adapters.roots import Roots
    from reconcile.apply.outcome import Outcome
    from reconcile.engine.passes import Pass
    from reconcile.engine.session import Session
    from reconcile.model.policy import Policy
    from reconcile.watch.debounce import Places
    from reconcile.watch.reporter import Standing


_SECOND = 10**9
COMMAND = "watch"
BURST = 4096
"""More events than this without a rest, and the kernel may have dropped some without a word."""
_LOCKED_NS = _SECOND // 20
"""Between two tries to get reconcile's own lock: nobody is waited for, as it may be told to stop meanwhile."""
_BUSY_NS = 2 * _SECOND
"""Between two looks whether the program that the records belong to is still at work."""
_ASLEEP_NS = 2 * _SECOND
"""By more than this, a clock that counts on while the machine is suspended is ahead after it was."""


class Pace(Struct, frozen=True):
    """How long to wait for what, in ns. ``quiet`` and ``at_most``: see `Settling`.

    ``everything``: until all is looked at again anyway; ``poll``: the same, at least, where the system gives no events;
    ``check``: between two looks at what gives no event: the sides themselves, git, JP's locks; ``grace``: until it is
    said that a file can't be read, or that git is at work.
    """

    quiet: int = 150_000_000
    at_most: int = 2 * _SECOND
    everything: int = 300 * _SECOND
    poll: int = 2 * _SECOND
    check: int = _SECOND // 4
    grace: int = 2 * _SECOND


class Watched(Struct, frozen=True):
    """A session with what was configured for it; ``lock_timeout`` in seconds.

    ``find`` finds the sides as they were found for the session: JP merges silos, and ids change.
    """

    session: Session
    policy: Policy
    lock_timeout: float
    pace: Pace
    find: Callable[[], Roots]


class _StoppedError(Exception):
    """Asked to stop between two batches of actions."""


class Round:
    """The inner loop; ends where it is told to stop or to reopen, or where a side is another directory."""

    def __init__(self, watched: Watched, inbox: Inbox, teller: Teller) -> None:
        self._session = watched.session
        self._watched = watched
        self._pace = watched.pace
        self._inbox = inbox
        self._teller = teller
        self._passes = Passes(watched.session)
        self._settling = Settling(self._pace.quiet, self._pace.at_most)
        self._busy: dict[str, tuple[Places, tuple[str, ...]]] = {}
        self._git: str | None = None
        self._git_at = 0
        """Since when git is in the middle of something."""
        self._git_free_at: int | None = None
        """Since when there is no sign of that any more."""
        self._locked_at: int | None = None
        """Since when another reconcile has the lock on the store."""
        self._going: frozenset[str] = frozenset()
        """What the last pass has found to be gone from the store, and since when it is just that."""
        self._going_at = 0
        self._heard = 0
        """Events since the last rest."""
        self._all_at = 0
        self._deaf_until: int | None = None
        """Where the system gives no events, until when that isn't tried again."""
        self._sides = {side: watched.session.site.conversations(side) for side in Side}
        self._identities = self._identify()

    def run(self) -> None:
        """Look at everything, and from then on at what changes."""
        with self._listening(), closing(self._passes):
            asleep = _slept()
            while not (self._inbox.stopping or self._inbox.reopening):
                now = time.monotonic_ns()
                if self._identify() != self._identities or (self._deaf_until is not None and now >= self._deaf_until):
                    return
                self._release_busy(now)
                self._teller.say_late(now)
                if not self._is_waiting(now) and not self._step(now):
                    return
                events = self._inbox.take(self._patience(time.monotonic_ns()))
                self._take_in(events, time.monotonic_ns())
                if (slept := _slept()) - asleep > _ASLEEP_NS:
                    asleep, self._all_at = slept, 0

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Have events come in, as far as the system gives any."""
        places = self._session.format.places
        tops = () if places is None else places.tops
        self._ears = Ears(self._sides, self._inbox.hear, self._inbox.reopen, tops)
        try:
            self._listen(self._ears.start)
            if self._deaf_until is None:
                self._teller.hear()
            yield
        finally:
            self._ears.stop()

    def _listen(self, how: Callable[[], None]) -> None:
        """Where the system gives no events, look at everything every few seconds."""
        try:
            how()
        except DeafError as error:
            self._deaf_until = time.monotonic_ns() + self._pace.everything
            self._teller.poll(f"{error}; looking at everything every {self._pace.poll // _SECOND} s or so instead")

    def _identify(self) -> dict[str, str]:
        """Return what tells the directories that this round is about from others, or from links in their place."""
        paths = (*self._sides.values(), self._session.directory)
        return {path: "" if os.path.islink(path) else identity_of(path) for path in paths}

    def _patience(self, now: int) -> int:
        """Return how long to wait for events, in ns; what is due while git or another is at work waits for that."""
        if self._git_free_at is not None:
            return self._through_at(self._git_free_at) - now
        if self._git is not None:
            return self._pace.check
        if self._locked_at is not None:
            return _LOCKED_NS
        dues = [now + self._pace.check, self._all_at]
        if (due := self._settling.due_at()) is not None:
            dues.append(due)
        return min(dues) - now

    def _take_in(self, events: Iterable[tuple[Side, str]], now: int) -> None:
        count = 0
        for side, path in events:
            count += 1
            if (found := heard(self._session.format, path)) is not None:
                self._settling.stir(found.conversation, side, found.places, now)
        self._heard = self._heard + count if count else 0
        if self._heard > BURST:
            self._all_at = min(self._all_at, now + self._pace.at_most)

    def _is_waiting(self, now: int) -> bool:
        """Tell whether git is in the middle of something, so that nothing in the workspace means anything yet.

        It is through once there was no sign of it for the quiet time: between two of its steps there may be none, and
        the last files that it wrote aren't heard of yet; these are waited for, so that all is taken up together.
        Nothing is said of moments: every `git status` of an editor takes the lock of the index.
        """
        before, found = self._git, git_busy(self._session.roots.project)
        if found is not None:
            self._git, self._git_free_at = found, None
            self._git_at = now if before is None else self._git_at
        elif before is not None:
            self._git_free_at = now if self._git_free_at is None else self._git_free_at
            if now >= self._through_at(self._git_free_at):
                self._git = self._git_free_at = None
                self._teller.go_on()
        if found is not None and now - self._git_at >= self._pace.grace:
            self._teller.wait_for(f"git is in the middle of something here ({self._git})")
        return self._git is not None

    def _through_at(self, free_at: int) -> int:
        """Return when git is taken to be through, if there is no sign of it since ``free_at``."""
        quiet, at_most = self._pace.quiet, self._pace.at_most
        return min(max(free_at + quiet, self._settling.all_due_at()), free_at + max(quiet, at_most))

    def _step(self, now: int) -> bool:
        """Do what is due; False where a side turned out to be another by now."""
        if now < self._all_at and not self._settling.is_due(now):
            return True
        try:
            self._pass(now)
        except LockedError as error:
            self._locked_at = now if self._locked_at is None else self._locked_at
            if now - self._locked_at >= self._watched.lock_timeout * _SECOND:
                self._teller.wait_for(error.message)
        except MovedError:
            return False
        except (ReconcileError, OSError) as error:
            words = error.message if isinstance(error, ReconcileError) else str(error)
            self._teller.wait_for(words)
            self._all_at = now + 5 * _SECOND
        return True

    def _pass(self, now: int) -> None:
        policy, settling = self._watched.policy, self._settling
        with self._session.exclusively(COMMAND, 0):
            self._locked_at = None
            places = settling.take(now)
            if now >= self._all_at:
                found = self._passes.everything(policy, settling.moving)
            else:
                found = self._passes.some(policy, places, settling.moving)
            if found.full:
                self._look_closer(found)
            found = self._without_going(found, now)
            if any(item.reason is Reason.GIT_BUSY for item in found.plan.held):
                self._all_at = now  # it has begun since, and nothing is done before its end
                return
            self._teller.begin(len(found.plan.actions))
            try:
                self._progress(0, len(found.plan.actions))
                outcome = self._passes.apply(found, COMMAND, self._progress)
            except _StoppedError as stopped:
                self._teller.say(News(what=What.ENDED, message=f"{stopped}; the rest is due"))
                self._session.finish()
                return
        if found.full:
            end = time.monotonic_ns()
            self._heard, self._all_at = 0, end + self._pause(end - now)
        if not self._going.isdisjoint(found.moving):
            self._all_at = min(self._all_at, self._going_at + self._pace.at_most)
        if any(item.reason is Reason.PROGRAM_BUSY for item in found.plan.held):
            self._all_at = min(self._all_at, time.monotonic_ns() + _BUSY_NS)  # its lock may go without an event of ours
        self._teller.go_on()
        self._tell(found, outcome)

    def _without_going(self, found: Pass, now: int) -> Pass:
        """Leave out what has gone from the store as long as more goes: all of it may be going, which is no removal."""
        going = frozenset(each.conversation for each in found.plan.actions if each.reason is Reason.REMOVED_IN_STORE)
        if going != self._going:
            self._going, self._going_at = going, now
        if not going or now >= self._going_at + self._pace.at_most:
            return found
        moving = found.moving | going
        return replace(found, plan=without_moving(found.plan, moving), moving=moving)

    def _look_closer(self, found: Pass) -> None:
        """Make sure that both sides are the right ones still, and that events come from all of them."""
        if (roots := self._watched.find()) != self._session.roots:
            raise MovedError(f"{roots.store}: it is another one now")
        refuse_merging(found.look, roots, self._session.format)
        refuse_lost(found.look, roots, self._session.format)
        if self._deaf_until is None:
            self._listen(self._ears.check)

    def _pause(self, took: int) -> int:
        """Return how long after a look at everything, which took so long, comes the next."""
        return self._pace.everything if self._deaf_until is None else max(self._pace.poll, 4 * took)

    def _progress(self, done: int, count: int) -> None:
        if self._inbox.stopping and done < count:
            raise _StoppedError(f"{done} of {count} actions done")

    def _tell(self, found: Pass, outcome: Outcome) -> None:
        for message in self._session.messages:
            self._teller.say(News(what=What.MESSAGE, message=message))
        self._session.messages.clear()
        if found.full:
            first, self._teller.conversations = not self._teller.conversations, len(found.conversations)
            if first:
                self._teller.say(News(what=What.WATCHING))
        self._teller.report(outcome, found.conversations)
        now = time.monotonic_ns()
        self._teller.hold(found.plan.held, found.is_about, now + self._pace.grace)
        self._teller.note(found.plan, found.is_about)
        for deed in outcome.deeds.values():
            conversation = deed.action.conversation
            if deed.reason is Reason.BUSY:
                self._busy[conversation] = _places_of(found, conversation), deed.action.touches
            elif deed.reason is Reason.DRIFT:
                self._settling.again(conversation, _places_of(found, conversation), now + self._pace.quiet)
            elif deed.reason is Reason.FAILED:
                self._settling.again(conversation, _places_of(found, conversation), now + 15 * _SECOND)

    def _release_busy(self, now: int) -> None:
        """Have what was busy taken up again once all the locks that it needs are free."""
        held = self._session.busy() if self._busy else {}
        for conversation, (places, touched) in list(self._busy.items()):
            if held.keys().isdisjoint(touched):
                del self._busy[conversation]
                self._settling.again(conversation, places, now + self._pace.check)


def _places_of(found: Pass, conversation: str) -> Places:
    """Return where a conversation was seen."""
    snapshots = (found.look.store, found.look.workspace)
    return {
        snapshot.side: {copy.path for copy in snapshot.copies if copy.conversation == conversation}
        for snapshot in snapshots
    }


def _slept() -> int:
    """Return how long the machine has been suspended, in ns since some moment; 0 where the system doesn't tell."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.clock_gettime_ns(clock) - time.monotonic_ns() if clock is not None else 0


_AGAIN_NS = 10**9


class Watcher:
    """One watcher over one workspace. ``opening`` opens what is watched, again whenever that may be another."""

    def __init__(self, opening: Callable[[], Watched], tell: Callable[[News, Standing], None]) -> None:
        self._opening = opening
        self._teller = Teller(tell)
        self.inbox = Inbox()

    def run(self) -> None:
        """Watch until it is told to stop.

        Raises:
            ReconcileError: there is nothing to watch to begin with.
            LockedError: another one watches this workspace.
        """
        watched: Watched | None = self._opening()
        while watched is not None:
            self.inbox.reopening = False
            with watched.session as session, watch_lock(session.directory, session.project, COMMAND):
                Round(watched, self.inbox, self._teller).run()
            watched = self._opened_again()
        self._teller.say(News(what=What.STOPPED))

    def _opened_again(self) -> Watched | None:
        """Open what is watched as soon as it can be; None where it is told to stop before."""
        while not self.inbox.stopping:
            try:
                return self._opening()
            except (ReconcileError, OSError) as error:
                self._teller.wait_for(error.message if isinstance(error, ReconcileError) else str(error))
            self.inbox.take(_AGAIN_NS)
        return None
