"""Reads and writes the conversations on the disk: each change is a run of one conversation, with a plan and a journal.

Only the conversation's own lock is held: other runs of `reconcile` skip the conversation as busy.
"""

from __future__ import annotations

import contextlib
import os
import threading
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.adapters.jp.locks import LentLocks
from reconcile.apply.crash_recovery import CrashRecovery
from reconcile.apply.executor import Outcome, Result
from reconcile.apply.staging import remove_library_staging
from reconcile.engine.dispatch import RequestError, plan_for_policy
from reconcile.errors import ReconcileError
from reconcile.fs.files import Directory, read_files
from reconcile.fs.paths import directory_identity
from reconcile.library.change_plan import concerns_others, plan_change, plan_conversation, stated_parent, store_copy
from reconcile.library.errors import (
    ChangedError,
    HasChildrenError,
    PersistError,
    UnreadableError,
    children_error,
    kept_note,
)
from reconcile.library.storage import FileSource
from reconcile.model.commands import typed
from reconcile.model.policy import Children, RemoveRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, Fault, Partition, Side
from reconcile.state.database import State
from reconcile.state.schema import LIBRARY
from reconcile.state.vault import Vault, Version

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from reconcile.adapters.jp.locks import Lease, Locks
    from reconcile.apply.run import Site
    from reconcile.engine.session import History, Session
    from reconcile.library.shared_index import PlanningBasis, SharedIndex
    from reconcile.library.storage import Change, PersistBackend, Removal, Tree
    from reconcile.library.values import Contents
    from reconcile.model.plan import Plan, Write
    from reconcile.model.snapshot import Copy, Digest, File
    from reconcile.planning.incremental.scope import Part


_TRIES = 5
_PATIENCE = 60.0
"""Seconds that a transaction of the database waits for the transactions of others."""


class ConnectionPool:
    """Pools a database connection and a vault for each writing thread.

    ``other_locks`` acquires the locks of further conversations.
    """

    def __init__(self, session: Session, other_locks: Locks) -> None:
        """Begin with an empty pool."""
        self._session, self._other_locks = session, other_locks
        self._mutex = threading.RLock()
        self._idle: list[Site] = []
        self._pid = os.getpid()

    @contextmanager
    def lend(self, lease: Lease) -> Iterator[Site]:
        """Yield a site with a state and a vault for this thread alone, and with the lock that it holds."""
        session_site = self._session.site
        with self._mutex:
            site = self._idle.pop() if self._idle else None
        if site is None:
            directory = self._session.directory
            state = State.open(directory, timeout=_PATIENCE)
            site = replace(session_site, state=state, vault=Vault(directory, session_site.durability))
        try:
            yield replace(site, locks=LentLocks(lease, self._other_locks))
        finally:
            with self._mutex:
                self._idle.append(site)

    def close(self) -> None:
        """Close the idle connections, and remove the staging directory."""
        is_ours = self._pid == os.getpid()  # in a forked child they belong to the parent, and so may the mutex
        with self._mutex if is_ours else nullcontext(), ExitStack() as stack:
            if self._idle and is_ours:
                with suppress(OSError):  # a link replaced a side, or its disk fails; the next run removes the directory
                    sides = self._session.site.open_sides(stack).values()
                    remove_library_staging(self._idle[0].state.identity(), sides)
            while self._idle:
                self._idle.pop().state.close()


class FileSystemBackend:
    """Writes to the store, and to the workspace where a conversation is projected."""

    def __init__(self, index: SharedIndex, other_locks: Locks) -> None:
        """Write to the sides of ``index``; ``other_locks`` acquires the locks of further conversations."""
        self._index = index
        self._session = index.session
        self._pool = ConnectionPool(index.session, other_locks)

    def close(self) -> None:
        """Close the idle connections, and remove the staging directory."""
        self._pool.close()

    def prepare(self, conversation: str, lease: Lease) -> Contents:
        """Finish interrupted runs, reconcile the conversation, and return its files; {} if it has none.

        A change that is made from these files contains the changes of all other writers.
        """
        with _as_persist_errors(conversation), self._pool.lend(lease) as site:
            CrashRecovery(site).finish_conversation(conversation)
        for _ in range(_TRIES):
            basis = self._index.basis(conversation)
            if basis.clean:
                return read_stored(self._index, basis, conversation)
            if self._reconcile(basis, conversation, lease):
                break
        return read_stored(self._index, self._index.basis(conversation), conversation)

    def persist(self, change: Change) -> tuple[str, ...]:
        """Write a change to the store, then to the workspace; if the store can't be written, save it to the vault."""
        try:
            with _as_persist_errors(change.conversation):
                return self._persist(change)
        except PersistError as error:
            if not error.saved:
                with contextlib.suppress(OSError, ReconcileError):
                    error.keep(self._save_to_vault(change))
            raise
        except Exception as error:
            with contextlib.suppress(OSError, ReconcileError):  # a bug must not cost the change: its scope may end now
                error.add_note(kept_note(self._save_to_vault(change)))
            raise

    def remove(self, removal: Removal) -> tuple[str, ...]:
        """Remove a conversation from both sides; the strategy applies to its children."""
        with _as_persist_errors(removal.conversation):
            return self._remove(removal)

    def _persist(self, change: Change) -> tuple[str, ...]:
        conversation, words = change.conversation, ""
        self._require_sides(change)
        parent = stated_parent(change.after, self._session.format)
        basis = self._index.basis(conversation, parent)
        for _ in range(_TRIES):
            self._refuse_overwriting(basis, change)
            plan = plan_change(self._session, basis, change, self._index.policy, self._session.now_ns())
            if concerns_others(plan.plan) and not basis.complete:
                basis = self._index.full_basis(conversation, parent)
                continue
            outcome = self._execute(plan.plan, basis, conversation, change.lease, plan.history)
            writes = [outcome.results[action.id] for action in plan.plan.actions[: plan.writes]]
            failure = next((result for result in writes if not result.is_done), None)
            if failure is None:
                return self._messages(plan.plan, outcome)
            words = failure.message
            if failure.reason is not Reason.DRIFT:
                break
            basis = self._index.full_basis(conversation, parent)
        raise PersistError(f"{conversation}: {words or 'another program changes it all the time'}")

    def _reconcile(self, basis: PlanningBasis, conversation: str, lease: Lease) -> bool:
        """Run for one conversation; return False if a side changed meanwhile, so that it must be scanned again."""
        plan, basis = plan_alone(self._index, basis, conversation)
        return not _has_drifted(self._execute(plan, basis, conversation, lease))

    def _messages(self, plan: Plan, outcome: Outcome) -> tuple[str, ...]:
        """Return messages about actions that wait. Raises `PersistError` if the workspace could not be written."""
        failed = [entry.message for entry in outcome.results.values() if entry.result is Result.FAILED]
        if failed:
            error = PersistError(f"saved in the store, but not in the workspace: {failed[0]}")
            error.saved = True
            raise error
        skipped = [entry.message for entry in outcome.results.values() if entry.result is Result.SKIPPED]
        return tuple(dict.fromkeys((*(item.message for item in plan.held), *skipped)))

    def _remove(self, removal: Removal) -> tuple[str, ...]:
        conversation = removal.conversation
        how = Children(removal.strategy.value) if removal.strategy is not None else Children.REFUSE
        policy = replace(self._index.policy, request=RemoveRequest((conversation,), how))
        for _ in range(_TRIES):
            basis = self._index.full_basis(conversation)
            try:
                plan = plan_for_policy(self._session, basis.part.world, policy, None, basis.part.whole)
            except RequestError as error:
                children = self._index.tree.children_of(conversation)
                if children and removal.strategy is None:
                    raise children_error(conversation, children) from None
                raise PersistError(error.message, error.hint and error.hint.partition("\n")[0]) from None
            # A failure is raised to the caller, so that no later run may repeat the removal.
            plan = replace(plan, waiting=tuple(entry for entry in plan.waiting if entry[1] is None))
            outcome = self._execute(plan, basis, conversation, removal.lease)
            if not _has_drifted(outcome):
                break
        if any(copy.partition is not Partition.TRASH for copy in self._index.copies(Side.STORE, conversation)):
            words = self._messages(plan, outcome)
            raise PersistError(f"{conversation} is not removed{': ' + words[0] if words else ''}")
        return self._messages(plan, outcome)

    def _execute(
        self,
        plan: Plan,
        basis: PlanningBasis,
        conversation: str,
        lease: Lease,
        history: History | None = None,
    ) -> Outcome:
        """Execute a plan of one conversation under its lock."""
        if plan.quiet:
            return Outcome()
        complete = basis.complete or concerns_others(plan)

        def rescan(_: Outcome) -> Part:
            return self._index.part_after(plan, basis.part, conversation, complete=complete)

        with self._pool.lend(lease) as site:
            outcome, _ = self._session.execute(
                plan, basis.part.world, rescan, LIBRARY, lambda *_: None, site=site, history=history
            )
        return outcome

    def _refuse_overwriting(self, basis: PlanningBasis, change: Change) -> None:
        """Check that the store holds the files that the change was made from, or the changed files already.

        Raises:
            ChangedError: the store holds other content.
        """
        stored = self._digests(store_copy(basis.part.world, change.conversation, self._session.rules))
        digest = self._session.rules.digest
        wanted = [{name: digest(content) for name, content in files.items()} for files in (change.before, change.after)]
        for name in {*stored, *change.after}:
            if stored.get(name) not in {digests.get(name) for digests in wanted}:
                raise ChangedError(
                    f"store: {change.conversation}: {name}: a program without a lock changed it since it was read",
                    "read it again, then repeat the change",
                )

    def _digests(self, copy: Copy | None) -> dict[str, Digest | None]:
        names = self._session.file_names
        return {file.name: file.digest for file in copy.files if file.name in names} if copy is not None else {}

    def _require_sides(self, change: Change) -> None:
        """Check that both sides are the directories that were opened. Raises `PersistError`.

        A missing side must not be created again as an empty store or a ``.jp`` without an id. JP may have merged the
        store, and another program may have removed the workspace.
        """
        where = self._session.roots
        gone = [where.store] if where.store_exists and not os.path.isdir(where.store) else []
        gone += [where.workspace] if directory_identity(where.workspace) != where.workspace_identity else []
        if gone:
            raise PersistError(
                f"{change.conversation}: {gone[0]}: deleted or replaced since the workspace was opened",
                "restore the directory, or open the workspace again",
            )

    def _save_to_vault(self, change: Change) -> list[str]:
        """Save the changed files to the vault, and return their names there."""
        fmt = self._session.format
        with self._pool.lend(change.lease) as site:
            saved = {name: site.vault.put_bytes(content) for name, content in change.files.items()}
            site.vault.flush()
            site.state.versions.add(
                Version(
                    digest=version.digest,
                    xxh3=version.xxh3,
                    size=version.size,
                    conversation=change.conversation,
                    unit=METADATA if name == fmt.metadata_file else STREAM,
                    file=name,
                    side=Side.STORE,
                    path=f"{change.conversation}/{name}",
                    mtime_ns=self._session.now_ns(),
                    run=None,
                    why=Reason.WRITTEN.value,
                )
                for name, version in saved.items()
            )
        return [version.digest for version in saved.values()]


def _has_drifted(outcome: Outcome) -> bool:
    """Return whether a file was another one than the plan was made for."""
    return any(result.reason is Reason.DRIFT for result in outcome.results.values())


@contextlib.contextmanager
def _as_persist_errors(conversation: str) -> Iterator[None]:
    """Convert errors of the engine into `PersistError`."""
    try:
        yield
    except (PersistError, HasChildrenError, UnreadableError):
        raise
    except ReconcileError as error:
        raise PersistError(f"{conversation}: {error.message}", hint=error.hint) from error
    except OSError as error:
        raise PersistError(f"{conversation}: {error}") from error


def load(index: SharedIndex, conversation: str) -> dict[str, FileSource]:
    """Return the files of a conversation without its lock; {} if no side has it. Raises `UnreadableError`."""
    session, basis = index.session, index.basis(conversation)
    if basis.clean:
        return _sources(index, basis, conversation)
    plan, basis = plan_alone(index, basis, conversation)
    sources: dict[str, FileSource] = {}
    saves = [a for a in plan.actions if a.conversation == conversation and a.target.side is Side.STORE]
    writes = {write.target.path.rpartition("/")[2]: write for action in saves for write in action.writes}
    if not writes.keys() >= {session.format.metadata_file, session.format.stream_files[-1]}:
        sources |= _sources(index, basis, conversation)
    for place in (place for action in saves for place in action.removes):
        sources.pop(place.path.rpartition("/")[2], None)
    return sources | {
        name: _planned_source(index, write) for name, write in writes.items() if name in session.file_names
    }


def plan_alone(index: SharedIndex, basis: PlanningBasis, conversation: str) -> tuple[Plan, PlanningBasis]:
    """Plan a run for one conversation; return the plan, and the basis of which it was made: the full one for a move."""
    session = index.session
    plan = plan_conversation(session, basis.part, conversation, index.policy, session.now_ns())
    if concerns_others(plan) and not basis.complete:
        basis = index.full_basis(conversation)
        plan = plan_conversation(session, basis.part, conversation, index.policy, session.now_ns())
    return plan, basis


def read_stored(index: SharedIndex, basis: PlanningBasis, conversation: str) -> Contents:
    """Read the store's files of a conversation; {} if it has none. Raises `UnreadableError`."""
    copy = _readable_copy(index, basis, conversation)
    if copy is None:
        return {}
    return _read(index, copy.side, copy.path, [file.name for file in _managed(index, copy)])


def _sources(index: SharedIndex, basis: PlanningBasis, conversation: str) -> dict[str, FileSource]:
    copy = _readable_copy(index, basis, conversation)
    if copy is None:
        return {}
    return {file.name: _source(index, copy.side, copy.path, file.name, file.digest) for file in _managed(index, copy)}


def _source(index: SharedIndex, side: Side, path: str, name: str, digest: Digest | None) -> FileSource:
    return FileSource(digest, lambda: _read(index, side, path, [name])[name])


def _managed(index: SharedIndex, copy: Copy) -> list[File]:
    return [file for file in copy.files if file.name in index.session.file_names]


def _readable_copy(index: SharedIndex, basis: PlanningBasis, conversation: str) -> Copy | None:
    copy = store_copy(basis.part.world, conversation, index.session.rules)
    if copy is None:
        return None
    for file, facts in (("metadata.json", copy.metadata), ("events.json", copy.stream)):
        if facts is None or isinstance(facts, Fault):
            words = facts.words if facts else "no such file"
            hint = f"see what is wrong: reconcile status {typed(conversation)}"
            raise UnreadableError(f"{copy.place}/{facts.file if facts else file}: {words}", hint)
    return copy


def _planned_source(index: SharedIndex, write: Write) -> FileSource:
    if write.source is None:
        return FileSource(write.digest, lambda: write.content or b"")
    path, _, name = write.source.path.rpartition("/")
    return _source(index, write.source.side, path, name, write.digest)


def _read(index: SharedIndex, side: Side, path: str, names: Iterable[str]) -> dict[str, bytes]:
    try:
        with Directory.open_root(index.session.site.conversations(side)) as root, root.below(path) as directory:
            files = read_files(directory, names)
    except OSError as error:
        raise UnreadableError(f"{side}:{path}: {error.strerror}") from None
    if isinstance(files, Fault):
        raise UnreadableError(f"{side}:{path}/{files.file}: {files.words}")
    return {name: content for name, (content, _) in files.items()}


class DiskStorage:
    """The store and the workspace on the disk."""

    def __init__(self, index: SharedIndex, others: Locks) -> None:
        self._index = index
        self._files = FileSystemBackend(index, others)
        self._pid = os.getpid()
        self.format = index.session.format

    @property
    def tree(self) -> Tree:
        """The live conversations."""
        return self._index.tree

    @property
    def backend(self) -> PersistBackend:
        """The backend of the file system."""
        return self._files

    def is_ours(self) -> bool:
        """Return whether this process opened it."""
        return self._pid == os.getpid()

    def taken_ids(self) -> Collection[str]:
        """Return the ids that are in use, or were."""
        return self._index.taken_ids()

    def refresh(self) -> None:
        """Scan both sides again."""
        self._index.refresh()

    def load(self, conversation: str) -> Mapping[str, FileSource]:
        """Return the files as a run would leave them, even if that run is still to come."""
        return load(self._index, conversation)

    def prepare(self, conversation: str, lease: Lease) -> Contents:
        """Reconcile the conversation, then read the store."""
        return self._files.prepare(conversation, lease)

    def persist(self, change: Change) -> tuple[str, ...]:
        """Write a change."""
        words = self._files.persist(change)
        self._index.record_write(change.conversation, change.after)
        return words

    def remove(self, removal: Removal) -> tuple[str, ...]:
        """Remove the conversation from both sides."""
        return self._files.remove(removal)

    def close(self) -> None:
        """Close the state."""
        self._files.close()
        self._index.close()
