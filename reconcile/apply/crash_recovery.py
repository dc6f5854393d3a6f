"""Recovery: the open steps of a killed run are finished or rolled back before the next plan.

A killed run leaves staging directories, steps without a result in the journal, and perhaps a unit of which only some
files are new. Steps that it had not begun need nothing: the next plan has them again.

A run of the library holds only the locks of conversations. If these are held, the run is alive.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack, suppress
from itertools import count
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.apply.actions import Swap
from reconcile.apply.recorder import forget_untouched, restore_untouched
from reconcile.apply.staging import (
    DriftError,
    clean_staging,
    is_staged,
    remove_empty_parents,
    remove_library_staging,
    staging_name,
)
from reconcile.fs.hashing import chunks_of
from reconcile.fs.mutations import NotAFileError
from reconcile.fs.paths import directory_identity
from reconcile.model.baseline import LOST
from reconcile.model.plan import MOVES, Kind
from reconcile.model.snapshot import WHOLE, Side, is_same_directory
from reconcile.serialization.plan_json import place_from_json
from reconcile.state.journal import INTERRUPTED, StepState
from reconcile.state.schema import LIBRARY, REMOTE
from reconcile.state.vault import VaultError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from reconcile.adapters.jp.locks import Acquired
    from reconcile.apply.run import Site
    from reconcile.fs.durability import Durability
    from reconcile.fs.mutations import Root
    from reconcile.model.snapshot import Digest, Place
    from reconcile.state.database import Checkout
    from reconcile.state.journal import Run, Step
    from reconcile.state.vault import Vault, Version

_OPEN = (StepState.PLANNED, StepState.BEGUN)
_UNUSED_S = 600
"""Seconds after which an empty staging directory of the library is the leftover of a killed process."""


class CrashRecovery(Struct, frozen=True):
    """The recovery of killed runs of the store and one checkout."""

    site: Site

    def finish_all(self) -> Iterator[str]:
        """Finish all killed runs, as far as their files are in the store or this checkout; yield messages about them.

        The caller holds the run lock.
        """
        runs = self.site.state.journal.open_runs()
        if runs:
            self.site.vault.clean()
        for run in runs:
            try:
                message = self._finish(run)
            except (OSError, VaultError) as error:
                message = f"its open steps can't be cleaned up yet: {error}"
            if message:
                yield f"run {run.id} was interrupted; {message}"
        with suppress(OSError), ExitStack() as stack:  # a later run can do it
            sides = self.site.open_sides(stack).values()
            remove_library_staging(self.site.state.identity(), sides, _UNUSED_S)

    def finish_conversation(self, conversation: str) -> None:
        """Finish the steps of killed runs on one conversation, whose lock is held, and lent by the site.

        Other conversations of such a run are left to the next pass. Raises `OSError`, `VaultError`.
        """
        for run in self.site.state.journal.open_runs():
            steps = [step for step in self.site.state.journal.steps(run.id) if step.conversation == conversation]
            if steps and run.command == LIBRARY and self._finish(run):
                continue
            if begun := [step for step in steps if step.state is StepState.BEGUN]:
                self._finish_steps(run, conversation, begun)

    def _finish_steps(self, run: Run, conversation: str, begun: Sequence[Step]) -> None:
        sides = tuple(Side) if self._other_checkout(run) is None else (Side.STORE,)
        begun = [step for step in begun if _target_side(step) in sides]
        staging = f"{staging_name(self.site.state.identity(), run.id, run.command)}/{conversation}"
        with ExitStack() as stack:
            roots = {side: root for side, root in self.site.open_sides(stack).items() if side in sides}
            versions = self.site.state.versions.of_run(run.id)
            roll_back_partial_units(begun, versions, roots, self.site.vault, self.site.durability, staging)
            waiting = self._waiting(run, begun, roots)
            self._settle(run, [step for step in begun if step.action not in waiting], roots)

    def _finish(self, run: Run) -> str:
        """Finish a run, or the store's part of a run of another checkout; return a message.

        The store's part can't wait: the next run would take a partially replaced stream for an edit.
        """
        other = self._other_checkout(run)
        waits = other is not None and self._may_be_there(other)
        sides = tuple(Side) if other is None else (Side.STORE,)
        journal, mine = self.site.state.journal, None
        name = staging_name(self.site.state.identity(), run.id, run.command)
        with ExitStack() as stack:
            if run.command == LIBRARY:
                mine = stack.enter_context(self._locked(journal.steps(run.id)))
                if mine.busy or not journal.is_open(run.id):
                    return ""
            everything = journal.steps(run.id)
            steps = [step for step in everything if _target_side(step) in sides]
            roots = {side: root for side, root in self.site.open_sides(stack).items() if side in sides}
            staged = any(is_staged(root, name) for root in roots.values())
            if waits and not staged and not any(step.state in _OPEN for step in steps):
                return ""
            versions = self.site.state.versions.of_run(run.id)
            known = {version.digest for version in versions}

            def record(saved: Sequence[Version]) -> None:
                self.site.state.versions.add(version for version in saved if version.digest not in known)

            clean_staging(name, run.id, roots, lambda: everything, self.site.vault, record)
            begun = [step for step in steps if step.state is StepState.BEGUN]
            locks = mine or stack.enter_context(self._locked(begun))
            if locks.busy:
                return f"its open steps wait for a lock: {locks.busy[0].detail}"
            roll_back_partial_units(begun, versions, roots, self.site.vault, self.site.durability, name)
            entered = [step for step in steps if step.state is not StepState.PLANNED]
            remove_empty_parents(entered, roots, self.site.format)
            waiting = self._waiting(run, begun, roots)
            known_now = [step for step in (steps if waits else everything) if step.action not in waiting]
            done = self._settle(run, known_now, roots)
            if run.command == LIBRARY:
                remove_library_staging(self.site.state.identity(), roots.values())
        if waiting:
            problem = "has been replaced" if Side.STORE in roots else "is missing"
            return f"its open steps in the store wait for it: {self.site.conversations(Side.STORE)} {problem}"
        if waits and other is not None:
            return f"its open steps in the store are cleaned up; a run in {other.project} cleans up the rest"
        restore_untouched(self.site.state, run)
        forget_untouched(self.site.state, run.id, run.checkout)
        journal.finish_run(run.id, 1, self.site.clock())
        return f"{done} of its {len(everything)} steps were done, and its open steps are cleaned up"

    def _locked(self, steps: Iterable[Step]) -> Acquired:
        touched = sorted({step.conversation for step in steps}, key=self.site.format.order)
        names = (lock for key in touched if (lock := self.site.format.lock_name(key)) is not None)
        return self.site.locks.acquire(list(dict.fromkeys(names)))

    def _other_checkout(self, run: Run) -> Checkout | None:
        """Return the checkout of a run, None if it is this one or isn't recorded any more.

        A checkout with the same path or the same ``.jp`` counts as this one: it was moved or mounted again.
        """
        known = {checkout.id: checkout for checkout in self.site.state.checkouts(with_remotes=True)}
        checkout = known.get(run.checkout) if run.checkout is not None else None
        here = (os.path.realpath(self.site.where.project), self.site.where.workspace_identity)
        if checkout is None or checkout.id == self.site.checkout:
            return None
        return None if checkout.project == here[0] or is_same_directory(here[1], checkout.identity) else checkout

    def _may_be_there(self, other: Checkout) -> bool:
        """Tell whether another checkout exists, or may exist because the system can't tell.

        A remote's record knows no project, so that it leaves the runs of all checkouts to these.
        """
        if self.site.where.workspace_identity.startswith(REMOTE):
            return True
        below = os.path.relpath(self.site.where.workspace, self.site.where.project)
        try:
            return is_same_directory(directory_identity(os.path.join(other.project, below)), other.identity)
        except OSError:
            return True

    def _waiting(self, run: Run, begun: Sequence[Step], roots: Mapping[Side, Root]) -> set[str]:
        """Return the open steps in the store if it is missing, or is another directory than the recorded one.

        Its disk may not be mounted: the results of these steps are unknown, and their files can't be put back. A store
        that was really lost is recorded anew by the next complete run, and these steps end then.
        """
        there = roots[Side.STORE].identity if Side.STORE in roots else None
        row = self.site.state.checkout_row(run.checkout)
        known = row[1] if row is not None else None
        is_same = there is not None and (known in (None, LOST) or is_same_directory(there, str(known)))
        return set() if is_same else {step.action for step in begun if _target_side(step) is Side.STORE}

    def _settle(self, run: Run, steps: Sequence[Step], roots: Mapping[Side, Root]) -> int:
        """Record the results of the open steps; return the number of all steps that are done."""
        begun = [step for step in steps if step.state is StepState.BEGUN]
        done = [step.action for step in begun if _is_done(step, roots)]
        now, journal = self.site.clock(), self.site.state.journal
        journal.step_done(run.id, done, now)
        journal.step_failed(run.id, {s.action: INTERRUPTED for s in begun if s.action not in done}, now)
        planned = [step.action for step in steps if step.state is StepState.PLANNED]
        journal.step_skipped(run.id, dict.fromkeys(planned, f"{INTERRUPTED} before it started"), now)
        return len(done) + sum(step.state is StepState.DONE for step in steps)


def _target_side(step: Step) -> Side:
    return place_from_json(json.loads(step.record)["target"]).side


def _is_done(step: Step, roots: Mapping[Side, Root]) -> bool:
    """Tell whether a begun step was completed, by the files that exist now."""
    action = json.loads(step.record)
    target = place_from_json(action["target"])
    if target.side not in roots:
        return False
    root = roots[target.side]
    if step.kind in MOVES:
        source = place_from_json(action["source"])
        return root.exists(target.path) and not root.exists(source.path)
    if step.kind in (Kind.REMOVE, Kind.REMOVE_STALE) and step.unit == WHOLE:
        return not root.exists(target.path)
    wanted = expected_after(step)
    return bool(wanted) and digests_at(wanted, roots) == wanted


def expected_after(step: Step) -> dict[Place, Digest | None]:
    """Return the digest of each file that a step changes, as it is after the step; None for a removed file."""
    action = json.loads(step.record)
    wanted = {place_from_json(write["target"]): write["digest"] for write in action["writes"]}
    return wanted | {place_from_json(place): None for place in action["removes"]}


def digests_at(places: Iterable[Place], roots: Mapping[Side, Root]) -> dict[Place, Digest | None]:
    """Return the digest of the file at each place, None if there is none. Raises `OSError`."""
    return {place: _digest_at(roots[place.side], place.path) for place in places}


def roll_back_partial_units(
    steps: Iterable[Step],
    versions: Iterable[Version],
    roots: Mapping[Side, Root],
    vault: Vault,
    durability: Durability,
    staging: str,
) -> None:
    """Restore units of several files of which a killed run replaced only some.

    The next plan would take such a mixture of old and new files for an edit. The old versions are in the vault, and the
    new ones are saved there now. If a file is neither the old nor the new one, another program has written it, and all
    files stay, also if it does that meanwhile. ``staging`` is the name of the run's staging directory, which must not
    exist. Raises `OSError`, `VaultError`.
    """
    before = {(version.side, version.path): version for version in versions}
    for step in steps:
        wanted = expected_after(step)
        if json.loads(step.record)["unit"] == WHOLE or len(wanted) < 2 or any(p.side not in roots for p in wanted):
            continue
        actual = digests_at(wanted, roots)
        old = {place: version.xxh3 if (version := before.get((place.side, place.path))) else None for place in wanted}
        new = [place for place in wanted if actual[place] == wanted[place]]
        known = all(actual[place] in (wanted[place], old[place]) for place in wanted)
        if not known or len(new) in (0, len(wanted)):
            continue
        for place in new:
            if actual[place] is not None:
                vault.put_file(roots[place.side].absolute(place.path))
        vault.flush()
        there = {place: actual[place] for place in new}
        for side in {place.side for place in new}:
            mine = {place.path: digest for place, digest in there.items() if place.side is side}
            _put_back(roots[side], mine, {path: before.get((side, path)) for path in mine}, vault, durability, staging)


def _digest_at(root: Root, path: str) -> Digest | None:
    try:
        return root.digest(path)
    except (FileNotFoundError, NotADirectoryError, NotAFileError):
        return None


def _put_back(
    root: Root,
    present: Mapping[str, Digest | None],
    before: Mapping[str, Version | None],
    vault: Vault,
    durability: Durability,
    staging: str,
) -> None:
    """Restore the old content and times of files, and remove those that did not exist; all of them, or none.

    ``present`` are their digests: a file that another program writes meanwhile stays, and so do the others.
    """
    root.make_directories(staging)
    names = (f"{staging}/{number}" for number in count())
    swap, made = Swap(root, names.__next__), dict[str, str]()
    for path, version in before.items():
        if version is not None:
            made[path] = next(names)
            with vault.open(version.digest) as kept:
                root.create_file(made[path], chunks_of(kept.fileno()), version.mtime_ns, version.mode)
            durability.fsync_file(root.absolute(made[path]))
    inodes = {name: root.status(name).st_ino for name in made.values()}
    try:
        for path, digest in present.items():
            if path not in made:
                swap.remove(path, digest or "")
            elif digest is None:
                swap.add(made[path], path)
            else:
                swap.replace(made[path], path, digest)
    except (DriftError, FileExistsError):
        swap.undo()
        for name, inode in inodes.items():
            with suppress(FileNotFoundError):
                if root.status(name).st_ino == inode:
                    root.unlink(name)
    swap.finish()
    for above in {os.path.dirname(root.absolute(path)) for path in present}:
        durability.fsync_directory(above)
    root.remove_directory(staging)  # if it has a file that was written since, the next run saves that first
