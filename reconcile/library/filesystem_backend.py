"""Changes on the disk, as runs of one conversation: planned, journalled, flushed and kept as every other run's are.

The conversation's own lock is held, and no other: passes of `reconcile` find what is at work here busy.
"""

from __future__ import annotations

import contextlib
import os
import threading
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.adapters.jp.locks import LentLocks
from reconcile.adapters.roots import identity_of
from reconcile.apply.outcome import Outcome, Result
from reconcile.apply.recovery import Recovery
from reconcile.apply.run import carry_out, close, remember
from reconcile.apply.staging_cleanup import remove_library_staging
from reconcile.errors import ReconcileError
from reconcile.library.change_plan import moves_anything, plan_change, plan_run, stated_parent, store_copy
from reconcile.library.errors import ChangedError, HasChildrenError, PersistError, UnreadableError, has_children
from reconcile.library.loading import stored
from reconcile.model.policy import Children, Remove
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, WHOLE, Partition, Side
from reconcile.planning.context import RefusedError
from reconcile.planning.planner import make_plan
from reconcile.state.database import State
from reconcile.state.schema import LIBRARY
from reconcile.state.vault import Vault, Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reconcile.adapters.jp.locks import Lease, Locks
    from reconcile.apply.target import Site
    from reconcile.engine.session import Session
    from reconcile.library.backend import Change, Removal
    from reconcile.library.shared_index import Ground, Sight
    from reconcile.library.values import Contents
    from reconcile.model.baseline import Look
    from reconcile.model.plan import Plan
    from reconcile.model.snapshot import Copy, Digest


_PATIENCE = 60.0
"""Seconds that a transaction waits for those of others."""


class Sites:
    """Those of one workspace; ``others`` is how more locks than the one that is held are taken."""

    def __init__(self, session: Session, others: Locks) -> None:
        """Have none yet."""
        self._session, self._others = session, others
        self._mutex = threading.RLock()
        self._idle: list[Site] = []
        self._pid = os.getpid()

    @contextmanager
    def lend(self, lease: Lease) -> Iterator[Site]:
        """Lend a state and a vault of its own to who writes, with the lock that he has: none is for two threads."""
        mine = self._session.site
        with self._mutex:
            site = self._idle.pop() if self._idle else None
        if site is None:
            directory = self._session.directory
            state = State.open(directory, timeout=_PATIENCE)
            site = replace(mine, state=state, vault=Vault(directory, mine.durability))
        try:
            yield replace(site, locks=LentLocks(lease, self._others))
        finally:
            with self._mutex:
                self._idle.append(site)

    def close(self) -> None:
        """Give back what no thread uses now, and remove the staging directory."""
        with self._mutex, ExitStack() as stack:
            if self._idle and self._pid == os.getpid():  # in a forked child they are the parent's
                with suppress(NotADirectoryError):  # a link in a side's place; the next run removes it
                    sides = self._session.site.open_sides(stack).values()
                    remove_library_staging(self._idle[0].state.identity(), sides)
            while self._idle:
                self._idle.pop().state.close()


_TRIES = 5


class FileSystemBackend:
    """Writes to the store, and to the workspace where a conversation is projected."""

    def __init__(self, sight: Sight, others: Locks) -> None:
        """Write what is seen by ``sight``; ``others`` is how more locks than a change's own are taken."""
        self._sight = sight
        self._session = sight.session
        self._sites = Sites(sight.session, others)

    def close(self) -> None:
        """Give back what no thread uses now, and remove the staging directory."""
        self._sites.close()

    def prepare(self, conversation: str, lease: Lease) -> Contents:
        """Bring both sides together, after whatever was killed, and read what they hold; {} for nothing.

        Who changes what was read so, changes what everybody has written.
        """
        with _as_persist_errors(conversation), self._sites.lend(lease) as site:
            Recovery(site).finish_conversation(conversation)
        for _ in range(_TRIES):
            ground = self._sight.ground(conversation)
            if ground.at_rest or self._settle(ground, conversation, lease):
                break
        return stored(self._sight, self._sight.ground(conversation), conversation)

    def persist(self, change: Change) -> tuple[str, ...]:
        """Write a change to the store, and from there to the workspace; what the store can't have, the vault gets."""
        try:
            with _as_persist_errors(change.conversation):
                return self._persist(change)
        except PersistError as error:
            if not error.saved:
                with contextlib.suppress(OSError, ReconcileError):
                    error.keep(self._save(change))
            raise

    def remove(self, removal: Removal) -> tuple[str, ...]:
        """Remove a conversation from both sides, with its children or without."""
        with _as_persist_errors(removal.conversation):
            return self._remove(removal)

    def _persist(self, change: Change) -> tuple[str, ...]:
        conversation, words = change.conversation, ""
        self._demand_sides(change)
        parent = stated_parent(change.after, self._session.format)
        ground = self._sight.ground(conversation, parent)
        for _ in range(_TRIES):
            self._refuse_overwriting(ground, change)
            planned = plan_change(
                ground, change, self._sight.policy_now(), self._session.rules, self._now(), self._session.with_events
            )
            if moves_anything(planned.plan) and not ground.full:
                ground = self._sight.full_ground(conversation, parent)
                continue
            outcome = self._carry_out(planned.plan, ground, conversation, change.lease, planned.history)
            deeds = [outcome.deeds[action.id] for action in planned.plan.actions[: planned.writes]]
            bad = next((deed for deed in deeds if deed.result is not Result.DONE), None)
            if bad is None:
                return self._told(planned.plan, outcome)
            words = bad.message
            if bad.reason is not Reason.DRIFT:
                break
            ground = self._sight.full_ground(conversation, parent)
        raise PersistError(f"{conversation}: {words or 'it kept changing while it was written'}")

    def _settle(self, ground: Ground, conversation: str, lease: Lease) -> bool:
        """Do what a run would do about one conversation; False where that has to be looked at again."""
        plan = plan_run(ground, conversation, self._sight.policy_now(), self._session.rules, self._now())
        if moves_anything(plan) and not ground.full:
            ground = self._sight.full_ground(conversation)
            plan = plan_run(ground, conversation, self._sight.policy_now(), self._session.rules, self._now())
        outcome = self._carry_out(plan, ground, conversation, lease)
        return not any(deed.reason is Reason.DRIFT for deed in outcome.deeds.values())

    def _told(self, plan: Plan, outcome: Outcome) -> tuple[str, ...]:
        """Return what has to wait. Raises `PersistError` where the workspace could not be written."""
        failed = [deed.message for deed in outcome.deeds.values() if deed.result is Result.FAILED]
        if failed:
            error = PersistError(f"saved in the store, but not everywhere: {failed[0]}")
            error.saved = True
            raise error
        skipped = [deed.message for deed in outcome.deeds.values() if deed.result is Result.SKIPPED]
        return tuple(dict.fromkeys((*(item.message for item in plan.held), *skipped)))

    def _remove(self, removal: Removal) -> tuple[str, ...]:
        conversation, rules = removal.conversation, self._session.rules
        how = Children(removal.strategy.value) if removal.strategy is not None else Children.REFUSE
        for _ in range(_TRIES):
            look = self._sight.refresh()
            policy = replace(self._sight.policy_now(), request=Remove((conversation,), how))
            try:
                plan = make_plan(look.store, look.workspace, look.memory, policy, rules, self._now())
            except RefusedError as error:
                children = self._sight.tree.children_of(conversation)
                if children and removal.strategy is None:
                    raise has_children(conversation, children) from None
                raise PersistError(str(error), hint=error.hints[0] if error.hints else None) from None
            # What fails is raised, or was killed before it returned: no later run removes it after all.
            plan = replace(plan, waiting=tuple(each for each in plan.waiting if each[1] is None))
            outcome = self._run(plan, look, removal.lease)
            if not any(deed.reason is Reason.DRIFT for deed in outcome.deeds.values()):
                break
        if any(copy.partition is not Partition.TRASH for copy in self._sight.copies(Side.STORE, conversation)):
            words = self._told(plan, outcome)
            raise PersistError(f"{conversation} stays: {words[0] if words else 'it could not be removed'}")
        return self._told(plan, outcome)

    def _run(self, plan: Plan, look: Look, lease: Lease) -> Outcome:
        """Carry out a plan about everything, and remember what came of it."""
        with self._sites.lend(lease) as site:
            outcome, _ = self._done(site, plan, look)
            after = self._sight.refresh()
            with site.state.together():
                remember(site, self._session.rules, plan, look, after, outcome)
                close(site, outcome)
        return outcome

    def _carry_out(
        self,
        plan: Plan,
        ground: Ground,
        conversation: str,
        lease: Lease,
        history: Mapping[tuple[str, str], tuple[Digest, ...]] | None = None,
    ) -> Outcome:
        """Carry out a plan of one conversation, and remember what came of it."""
        if plan.quiet:
            return Outcome()
        with self._sites.lend(lease) as site:
            outcome, moved = self._done(site, plan, ground.look, history)
            after = self._sight.after(conversation, _made(plan, conversation), full=moved or ground.full)
            with site.state.together():
                remember(site, self._session.rules, plan, ground.look, after, outcome, ground.whole)
                close(site, outcome)
        return outcome

    @staticmethod
    def _done(
        site: Site, plan: Plan, look: Look, history: Mapping[tuple[str, str], tuple[Digest, ...]] | None = None
    ) -> tuple[Outcome, bool]:
        kept = [v for v in plan.preserve if not site.state.versions.has(v.digest, v.conversation, v.unit)]
        if not plan.concerned and not kept:
            return Outcome(), False
        outcome, _ = carry_out(site, plan, look, kept, LIBRARY, None, lambda *_: None, history)
        return outcome, moves_anything(plan)

    def _refuse_overwriting(self, ground: Ground, change: Change) -> None:
        """Make sure that the store holds what the change was made from, or the change itself already.

        Raises:
            ChangedError: it holds something else.
        """
        found = self._digests(store_copy(ground.look, change.conversation, self._session.rules))
        digest = self._session.rules.digest
        wanted = [{name: digest(content) for name, content in each.items()} for each in (change.before, change.after)]
        for name in {*found, *change.after}:
            if found.get(name) not in {each.get(name) for each in wanted}:
                raise ChangedError(
                    f"store: {change.conversation}: {name} was written by a program that takes no lock, after it was "
                    "read here",
                    "read it again, and make the change anew",
                )

    def _digests(self, copy: Copy | None) -> dict[str, Digest | None]:
        names = self._session.file_names
        return {file.name: file.digest for file in copy.files if file.name in names} if copy is not None else {}

    def _demand_sides(self, change: Change) -> None:
        """Make sure that both sides are where they were when the workspace was opened. Raises `PersistError`.

        An empty store or a ``.jp`` without an id must not be made anew: JP merges silos, and others remove workspaces.
        """
        where = self._session.roots
        gone = [where.store] if where.store_exists and not os.path.isdir(where.store) else []
        gone += [where.workspace] if identity_of(where.workspace) != where.workspace_identity else []
        if gone:
            raise PersistError(
                f"{change.conversation}: {gone[0]}: found nothing, or another directory, expected the one of when the "
                "workspace was opened",
                "put it back, or open the workspace again",
            )

    def _save(self, change: Change) -> list[str]:
        """Put what was to be written into the vault; return the names that it has there."""
        fmt = self._session.format
        with self._sites.lend(change.lease) as site:
            kept = {name: site.vault.put_bytes(content) for name, content in change.files.items()}
            site.vault.flush()
            site.state.versions.add(
                Version(
                    digest=each.digest,
                    xxh3=each.xxh3,
                    size=each.size,
                    conversation=change.conversation,
                    unit=METADATA if name == fmt.metadata_file else STREAM,
                    file=name,
                    side=Side.STORE,
                    path=f"{change.conversation}/{name}",
                    mtime_ns=self._now(),
                    run=None,
                    why=Reason.WRITTEN.value,
                )
                for name, each in kept.items()
            )
        return [each.digest for each in kept.values()]

    def _now(self) -> int:
        return self._session.site.clock()


def _made(plan: Plan, conversation: str) -> dict[Side, list[str]]:
    """Return the directories that a plan makes for a conversation."""
    made: dict[Side, list[str]] = {side: [] for side in Side}
    for action in plan.actions:
        if action.unit == WHOLE and action.writes and action.conversation == conversation:
            made[action.target.side].append(action.target.path)
    return made


@contextlib.contextmanager
def _as_persist_errors(conversation: str) -> Iterator[None]:
    """Turn what goes wrong below into the library's own error."""
    try:
        yield
    except (PersistError, HasChildrenError, UnreadableError):
        raise
    except ReconcileError as error:
        raise PersistError(f"{conversation}: {error.message}", hint=error.hint) from error
    except OSError as error:
        raise PersistError(f"{conversation}: {error}") from error
