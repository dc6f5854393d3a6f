"""One run with its journal: the steps are recorded, then carried out, then the staging directory is removed.

`Site` is all that a run needs: the two sides of one checkout, with the state, the vault and the locks.
"""

from __future__ import annotations

import json
import os
import stat
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.adapters.jp.locks import LockRoots, LockSet, NullLockSet
from reconcile.apply.executor import Executor, Outcome, Result
from reconcile.apply.recorder import (
    Recorder,
    achieved_update,
    asides_after,
    forget_untouched,
    planned_steps,
    planned_update,
    preserved_version,
    unfinished_requests,
)
from reconcile.apply.staging import Stage, clean_staging, folders_of, is_staged, staging_name
from reconcile.errors import ReconcileError
from reconcile.fs.mutations import Root
from reconcile.fs.paths import is_directory
from reconcile.model.baseline import records_of, with_dropped
from reconcile.model.options import Take
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import Side
from reconcile.planning.baseline_update import update_baseline
from reconcile.planning.filters import left_alone
from reconcile.state.baseline_table import BaselineUpdate

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from reconcile.adapters.jp.locks import Locks
    from reconcile.adapters.roots import Roots
    from reconcile.apply.executor import Progress
    from reconcile.fs.durability import Durability
    from reconcile.model.baseline import WorldState
    from reconcile.model.format import Format
    from reconcile.model.plan import Plan, Preserve
    from reconcile.model.snapshot import Digest
    from reconcile.model.units import Rules
    from reconcile.planning.rules.guards import Whole
    from reconcile.state.database import State
    from reconcile.state.journal import Mark
    from reconcile.state.vault import Vault

_AGAIN = "nothing was changed; run again"


def locks_of(where: Roots) -> Locks:
    """Return a format's locks of single conversations. Those of Leslie are in its workspace, and so in no remote."""
    if where.format == "jp":
        return LockSet(LockRoots(where.store, where.workspace))
    if where.format == "leslie" and not where.is_of_remote:
        from reconcile.adapters.leslie.locks import LeslieLocks  # here: most runs have another format

        return LeslieLocks(where.workspace)
    return NullLockSet()


class MovedError(ReconcileError):
    """A side was moved or replaced between the scan and the run."""

    exit_code = 4


class Site(Struct, frozen=True, kw_only=True):
    """The store and one checkout, with their state, vault and format."""

    where: Roots
    checkout: int | None
    """None for a dry run in a checkout without a record."""
    state: State
    vault: Vault
    durability: Durability
    format: Format
    clock: Callable[[], int]
    locks: Locks
    """The format's locks of single conversations."""
    since: Mark | None = None
    """The moment at which the run lock was taken. Later changes by the library update the baseline themselves."""

    def written_meanwhile(self) -> frozenset[str]:
        """Return the conversations that the library has changed since the lock was taken: their scan is outdated."""
        return frozenset() if self.since is None else self.state.journal.written_since(self.since)

    @property
    def number(self) -> int:
        """The number of the checkout in the state. Only a dry run may have none."""
        assert self.checkout is not None  # noqa: S101 - see above
        return self.checkout

    def is_private(self, side: Side) -> bool:
        """Tell whether new files of a side are for their owner alone: both sides may be in the user's home.

        A sync writes to the store as the runs of a project do; what it writes for the remote is private.
        """
        if side is Side.STORE and self.where.is_of_remote:
            return self.where.is_store_private
        return not self.where.is_in_project or (side is Side.STORE and self.where.is_store_private)

    def conversations(self, side: Side) -> str:
        """Return the directory of a side's conversations."""
        return self.where.store_conversations if side is Side.STORE else self.where.workspace_conversations

    def open_sides(self, stack: ExitStack) -> dict[Side, Root]:
        """Open the existing sides. Raises `OSError` if the system can't tell."""
        paths = {side: path for side in Side if is_directory(path := self.conversations(side))}
        return {
            side: stack.enter_context(closing(Root(path, is_private=self.is_private(side))))
            for side, path in paths.items()
        }

    def open_scanned(self, stack: ExitStack, world: WorldState, *, wanted: Collection[Side]) -> dict[Side, Root]:
        """Open the sides that were scanned, and make those ``wanted`` that did not exist.

        The identity is compared, because JP renames silos, and a `.jp` may be replaced.

        Raises:
            MovedError: a side isn't the directory any more that was scanned.
        """
        roots = {}
        for side, snapshot in ((Side.STORE, world.store), (Side.WORKSPACE, world.workspace)):
            path = self.conversations(side)
            if not snapshot.exists and side not in wanted:
                continue
            try:
                roots[side] = stack.enter_context(
                    closing(Root(path, make=not snapshot.exists, is_private=self.is_private(side)))
                )
            except (FileNotFoundError, NotADirectoryError):
                problem = "replaced by a symbolic link" if os.path.islink(path) else "deleted or moved"
                raise MovedError(f"{path}: {problem} during this run", _AGAIN) from None
            if snapshot.exists and roots[side].identity != snapshot.identity:
                raise MovedError(f"{path}: replaced by another directory during this run", _AGAIN)
        return roots


def carry_out(
    site: Site,
    plan: Plan,
    world: WorldState,
    command: str,
    undoes: str | None,
    progress: Progress,
    history: Mapping[tuple[str, str], tuple[Digest, ...]] | None = None,
) -> Outcome:
    """Carry out a plan in a recorded checkout, and return the results.

    The run stays open in the journal until `finish`; a plan that concerns nothing begins no run. ``undoes`` is the run
    that this one undoes. ``history`` has digests that become the newest versions, even if the run is killed.

    Raises:
        MovedError: a side isn't the directory any more that was scanned.
    """
    kept = [v for v in plan.preserve if not site.state.versions.has(v.digest, v.conversation, v.unit)]
    if not plan.concerned and not kept:
        return Outcome()
    with ExitStack() as stack:
        wanted = {action.target.side for action in plan.actions}
        roots = site.open_scanned(stack, world, wanted=wanted)
        with site.state.transaction():
            run = _begin(site, plan, world, command, undoes)
            if history:
                site.state.save_update(site.number, BaselineUpdate(history=history))
        stage = _stage(site, roots, run, command, plan, world)
        _preserve(site, kept, stage)
        journal = site.state.journal
        recorder = Recorder(site.state, run, site.clock)
        outcome = Executor(stage, site.locks, site.format, recorder, progress).run(plan)
        outcome.run = run
        if plan.rooted:  # a step that removes a parent changes the baseline, which is read next
            recorder.ended(outcome)
        idle = left_alone(plan, outcome.undone())
        journal.record_intents(run, site.number, BaselineUpdate(), records_of(world.baseline, idle))
        _end(site, stage, outcome)
        return outcome


def _begin(site: Site, plan: Plan, world: WorldState, command: str, undoes: str | None) -> str:
    """Record the planned steps, and the changes of the baseline that must survive a kill."""
    journal, now = site.state.journal, site.clock()
    run = journal.begin_run(site.number, command, now, summary=json.dumps(plan.summary()), undoes=undoes)
    journal.plan_steps(run, planned_steps(plan), now)
    before = records_of(world.baseline, sorted(plan.concerned), plan.voided)
    if undoes is not None:
        before = with_dropped(before, world.baseline, plan.waiting)
    journal.add_records(run, before)
    planned = planned_update(plan, world, run)
    ahead = planned.without(site.written_meanwhile())
    # A person's decision holds for what is written meanwhile, too.
    decided = {key: intent for key, intent in planned.intents.items() if intent is None or not intent.is_noticed}
    ahead = replace(ahead, intents={**ahead.intents, **decided}, waiting=planned.waiting)
    journal.record_intents(run, site.number, ahead, dict(plan.remembered))
    taken = {(conflict.conversation, conflict.unit): conflict.takes for conflict in plan.conflicts}
    conflicts = [
        (note.conversation, note.unit, taken.get((note.conversation, note.unit)))
        for note in plan.notes
        if note.reason is Reason.CONFLICT and note.conversation
    ]
    site.state.add_conflicts(site.number, run, conflicts)
    choices = plan.policy.choices.items()
    answers = [(*key, Side(take.value)) for key, take in choices if take in (Take.STORE, Take.WORKSPACE)]
    site.state.add_conflicts(site.number, run, answers, chosen=True)
    return run


def _stage(site: Site, roots: dict[Side, Root], run: str, command: str, plan: Plan, world: WorldState) -> Stage:
    return Stage(
        roots=roots,
        vault=site.vault,
        durability=site.durability,
        run=run,
        directory=staging_name(site.state.identity(), run, command),
        unit_of=site.format.unit_of,
        id_of=site.format.id_of,
        metadata_file=site.format.metadata_file,
        saved_mode=site.state.versions.mode_of,
        has_modes={side: not site.is_private(side) for side in Side},
        folders_of=partial(folders_of, site.format),
        contents=plan.contents,
        beginnings=world.beginnings,
    )


def _preserve(site: Site, kept: Sequence[Preserve], stage: Stage) -> None:
    """Save versions to the vault that no action replaces.

    A file that has changed, or can't be read, is left to the next run.
    """
    versions = []
    for version in kept:
        try:
            fd = stage.roots[version.place.side].open_file(version.place.path)
        except OSError:
            continue
        try:
            stored, mode = site.vault.put_file(fd), stat.S_IMODE(os.fstat(fd).st_mode)
        except OSError:
            continue
        finally:
            os.close(fd)
        if stored.xxh3 == version.digest:
            versions.append(preserved_version(version, stored.digest, stage.run, mode))
    site.vault.flush()
    site.state.versions.add(versions)


def _end(site: Site, stage: Stage, outcome: Outcome) -> None:
    """Remove unused staged files and empty directories. A failure keeps the run open for the next one."""
    ours = {side: stage.roots[side] for side in stage.used}
    steps = partial(site.state.journal.steps, stage.run)
    try:
        clean_staging(stage.directory, stage.run, ours, steps, site.vault, site.state.versions.add)
        for left, folders in stage.unremoved:
            stage.roots[left.side].remove_empty_parents(left.path, folders)
        outcome.left_open = bool(outcome.unsettled) or any(is_staged(root, stage.directory) for root in ours.values())
    except OSError as error:
        outcome.left_open = True
        outcome.message = f"the temporary files of run {stage.run} can't be cleaned up yet: {error}"


def finish(
    site: Site,
    rules: Rules,
    plan: Plan,
    before: WorldState,
    after: WorldState,
    outcome: Outcome,
    whole: Whole | None = None,
) -> None:
    """Update the baseline from a new scan and the results, and close the run; both are one transaction.

    The state has the plan's own intents already. Pending renames of earlier runs and git's answers are taken from the
    baseline before the run. If the cleanup failed, the run stays open. ``whole`` is required if ``after`` is a part.
    """
    renames = after.baseline.renames | before.baseline.renames
    baseline = replace(after.baseline, renames=renames, committed=before.baseline.committed)
    idle = left_alone(plan, outcome.undone())
    plan = replace(plan, asides=tuple(aside for aside in plan.asides if aside[0][0] not in idle))
    updated = update_baseline(after.store, after.workspace, baseline, plan, rules, outcome.undone(), whole)
    changes = achieved_update(updated, outcome.run, asides_after(plan, outcome.undone()))
    if baseline.waiting:
        left = unfinished_requests(plan, outcome, baseline, changes.waiting)
        changes = replace(changes, waiting={**changes.waiting, **left})
    if changes.empty and outcome.run is None:
        return
    with site.state.transaction():
        if outcome.run is not None:
            Recorder(site.state, outcome.run, site.clock).ended(outcome)
        if not changes.empty:
            others = site.written_meanwhile()
            site.state.save_update(site.number, changes.without(others))
            outcome.known_clean = updated.known_clean - others
        if outcome.run is not None:
            if not outcome.unsettled:  # the next run does this
                forget_untouched(site.state, outcome.run, site.number)
            if not outcome.left_open:
                site.state.journal.finish_run(outcome.run, 1 if outcome.count(Result.FAILED) else 0, site.clock())
