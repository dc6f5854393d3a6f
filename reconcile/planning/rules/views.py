"""Both sides of one conversation: the copy that stays on each side, and the authoritative version of each unit."""

from __future__ import annotations

from enum import Enum, auto
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord, BaselineEntry, IntentKind
from reconcile.model.names import CHILDREN
from reconcile.model.snapshot import (
    METADATA,
    STREAM,
    Metadata,
    Partition,
    Side,
    Stream,
    Unreadable,
    is_archived,
)
from reconcile.model.units import Unit, units_of
from reconcile.planning.rules.shapes import collisions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from reconcile.model.baseline import Baseline, Intent
    from reconcile.model.format import Format
    from reconcile.model.snapshot import Copy, Digest, Fault, Snapshot
    from reconcile.model.units import Rules


PLACE = "place"
"""The name under which the baseline records that a directory stays in another partition than the store's. The history
under this name lists the commits that have put it there.
"""


_MANAGED = frozenset((METADATA, STREAM))
_NO_COPIES: tuple[Copy, ...] = ()


class Lead(Enum):
    """The side that decides whether a conversation is archived, if the two sides differ."""

    STORE = auto()
    WORKSPACE = auto()
    NEITHER = auto()
    """Neither side: git manages where the workspace's directory is, so each side stays as it is."""


class SideView(Struct, frozen=True, gc=False):
    """One side of one conversation.

    ``main`` is the directory that stays (None: there is none), ``stale`` are the other directories of the same
    partition. ``units`` are the authoritative ones. ``rivals`` are valid units that differ from the baseline too and
    lost to the authoritative one.
    """

    main: Copy | None
    stale: tuple[Copy, ...]
    units: Mapping[str, Unit]
    rivals: tuple[Unit, ...]
    own: Mapping[str, Unit]
    """The units of ``main``, authoritative or not."""
    trashed: bool = False
    """The id is in the store's ``.trash/``; always False for the workspace."""
    bare_directories: tuple[Copy, ...] = ()
    """Directories in the workspace without a managed file. They are no copies, but may occupy the place of one."""
    trash: tuple[Copy, ...] = ()
    """Its directories in the workspace's ``.trash/``, in the order of their numbers there."""

    @property
    def faults(self) -> Mapping[str, Unit]:
        """The faulty units of ``main``, and those of other directories that have no valid version."""
        return {name: unit for name, unit in {**self.units, **self.own}.items() if unit.fault is not None}

    def faulty(self, name: str) -> Unit | None:
        """Return the unit of `faults` with this name; None if there is none."""
        unit = self.own.get(name) or self.units.get(name)
        return unit if unit is not None and unit.fault is not None else None

    def digest(self, name: str) -> Digest | None:
        """Return the digest of the authoritative unit; None if it is missing or faulty."""
        unit = self.units.get(name)
        return unit.digest if unit else None

    def has(self, names: Iterable[str]) -> bool:
        """Tell whether all units of these names exist and are valid."""
        return None not in [self.digest(name) for name in names]

    def raw(self, name: str) -> Digest | None:
        """Return the digest of the authoritative unit's bytes as they are."""
        unit = self.units.get(name)
        return unit.raw if unit else None

    @property
    def clash(self) -> tuple[Unit, Unit] | None:
        """A file, and a file below a directory of the same name, if two directories have them: one can't have both."""
        pairs = collisions(self.units, self.units) if self.stale else []
        return (self.units[pairs[0][0]], self.units[pairs[0][1]]) if pairs else None

    @property
    def metadata(self) -> Metadata | None:
        """The facts of the authoritative metadata, if it is valid."""
        unit = self.units.get(METADATA)
        if unit is None:
            return None
        facts = unit.copy.metadata
        return facts if isinstance(facts, Metadata) else None


_NOWHERE = SideView(None, (), {}, (), {})


class View(Struct, frozen=True, gc=False):
    """All inputs of the decisions about one conversation."""

    id: str
    store: SideView
    workspace: SideView
    agreed: BaselineEntry | None
    intent: Intent | None
    local: bool
    """Kept out of workspaces, by `reconcile local` or a legacy ``"local": true`` (docs/design/intents.md#rule-27)."""
    known_parent: str | None
    """The last parent that the store's metadata stated; JP may have stripped it since."""
    base_parent: str | None
    """The parent that both sides agreed on in this checkout, or the known one, or else the one that the store states.

    For an absent key in the workspace it stands in the content that is compared.
    """
    parent_is_known: bool
    """Whether a run has seen the store's parent, or equal metadata: a stream alone is no agreement on a parent."""
    rules: Rules
    lead: Lead = Lead.STORE

    @property
    def format(self) -> Format:
        """The format of the conversation."""
        return self.rules.format

    @property
    def title(self) -> str | None:
        """The title to print: the store's; the workspace's if the store has none."""
        for side in (self.store, self.workspace):
            if (metadata := side.metadata) is not None:
                return metadata.title or self._path
        return self._path or (self.agreed.title if self.agreed else None)

    @property
    def _path(self) -> str | None:
        """A record with a fixed place is called by its path if it has no title."""
        return self.id if self.format.places is not None else None

    @property
    def archived(self) -> bool:
        """Whether it is archived as far as this workspace is concerned; if only one side has it, that side decides."""
        main = self.store.main
        if main is None or (self.lead is not Lead.STORE and self.workspace.main is not None):
            main = self.workspace.main
        return main is not None and main.archived

    @property
    def archived_in_store(self) -> bool:
        """Whether the store's directory belongs in the store's archive."""
        if self.lead is Lead.WORKSPACE:
            return self.archived
        return self.store.main is not None and self.store.main.archived

    @property
    def has_split_archive(self) -> bool:
        """Tell whether one side has it archived and the other has it live."""
        store, workspace = self.store.main, self.workspace.main
        return store is not None and workspace is not None and store.archived != workspace.archived

    @property
    def has_two_shapes(self) -> bool:
        """Tell whether a record that both sides have is a file on one of them and a directory on the other."""
        if self.format.places is None or self.store.main is None or self.workspace.main is None:
            return False
        return (METADATA in self.store.own) is not (METADATA in self.workspace.own)

    @property
    def clash(self) -> tuple[Unit, Unit] | None:
        """The files of one side that can't be together in one directory (docs/design/decisions.md#rule-65)."""
        return self.store.clash or self.workspace.clash

    @property
    def split_record(self) -> AsideRecord:
        """Return the record that both sides keep their partitions."""
        assert self.workspace.main is not None  # noqa: S101 - it is on both sides
        partition = Partition.LIVE if self.workspace.main.archived else Partition.ARCHIVE
        return AsideRecord(AsideKind.PLACED, partition, self.workspace.main.path)

    def invalid_in_store_alone(self) -> list[tuple[str, Copy, Fault]]:
        """Return the faults of a conversation that only the store has, each with its unit and its copy.

        A file that can't be read is a problem of the side.
        """
        if self.workspace.main is not None:
            return []
        faults = [(name, unit.copy, unit.fault) for name, unit in self.store.faults.items()]
        return [
            (name, copy, fault)
            for name, copy, fault in faults
            if fault is not None and not isinstance(fault, Unreadable)
        ]

    def side(self, side: Side) -> SideView:
        """Return the view of one side."""
        return self.store if side is Side.STORE else self.workspace


def views_of(
    store: Snapshot,
    workspace: Snapshot,
    baseline: Baseline,
    rules: Rules,
    only: Collection[str] | None = None,
    leaving: Collection[str] = (),
    places: Mapping[str, str] | None = None,
) -> dict[str, View]:
    """Return the view of every id that is on a side or in the baseline, in the order of ids; or of ``only`` some.

    ``leaving`` are the conversations that `reconcile local` removes from the workspace. They are viewed like any other,
    so that all their directories are saved; only nothing is written to them. ``places``: where a plan was to leave the
    directories; these take precedence over the places of the baseline.
    """
    stored, here = _by_conversation(store), _by_conversation(workspace)
    wanted = stored.keys() | here.keys() | baseline.agreed.keys() if only is None else only
    enclosing = _Enclosing(workspace)
    managed = _managed_files(rules.format)
    views = {}
    for conversation in sorted(wanted, key=rules.format.order):
        kept, copies = stored.get(conversation, _NO_COPIES), here.get(conversation, _NO_COPIES)
        agreed = baseline.agreed.get(conversation)
        known = baseline.parents.get(conversation, agreed.parent if agreed else None)
        base = agreed.parent if agreed else known
        intent = baseline.intents.get(conversation)
        local = conversation not in leaving and not baseline.is_of_remote and _is_local(kept, intent)
        stored_view = _only_view(kept, rules, known)
        if stored_view is None:
            stored_view = _store_view(kept, _Inputs(conversation, agreed, known, baseline, rules))
        if agreed is None and conversation not in baseline.parents:
            base = _stated_parent(kept, stored_view)
        archived = stored_view.main is not None and stored_view.main.archived
        there = _only_view(copies, rules, base, managed)
        if there is None:
            lies = ((places or {}).get(conversation), agreed.place if agreed else None)
            inputs = _Inputs(conversation, agreed, base, baseline, rules, lies, enclosing, stored_view.main is not None)
            there = _workspace_view(copies, inputs, archived=archived, local=local)
        if agreed is None and baseline.seen_there and stored_view.main is not None and there.main is not None:
            agreed = _common_with_remote(conversation, stored_view, there, base, baseline)
            base = agreed.parent if agreed else base
        view = View(
            id=conversation,
            store=stored_view,
            workspace=there,
            agreed=agreed,
            intent=intent,
            local=local,
            known_parent=known,
            base_parent=base,
            parent_is_known=conversation in baseline.parents or (agreed is not None and METADATA in agreed.units),
            rules=rules,
        )
        views[conversation] = (
            replace(view, lead=_lead(view, baseline)) if view.has_split_archive and not local else view
        )
    return views


def _common_with_remote(
    conversation: str, stored: SideView, there: SideView, parent: str | None, baseline: Baseline
) -> BaselineEntry | None:
    """Return the base of a conversation that the store had before it first met the remote's; None if there is none.

    A clone or a copy has brought it (docs/design/remotes.md#rule-63). ``parent`` is the one that the store states.
    """
    units = {
        name: common
        for name in (METADATA, STREAM)
        if (common := _newest_common(conversation, name, stored, there, baseline)) is not None
    }
    if not units:
        return None
    assert stored.main is not None  # noqa: S101 - the caller asked
    assert there.main is not None  # noqa: S101 - as above
    if stored.digest(METADATA) != units.get(METADATA) == there.digest(METADATA) and there.metadata is not None:
        parent = there.metadata.parent.id
    title = stored.metadata.title if stored.metadata is not None else None
    # It was live, so that it is archived if it is so on either side.
    place = there.main.path if stored.main.archived else stored.main.path
    return BaselineEntry(units, parent, title, None, place)


def _newest_common(
    conversation: str, name: str, stored: SideView, there: SideView, baseline: Baseline
) -> Digest | None:
    """Return the newest version of a unit that this machine and one of the remote's have had; None if that is unknown.

    If each side has the version that the other one has left, both may have gone back on purpose.
    """
    seen, own = baseline.seen_there.get((conversation, name), ()), baseline.history.get((conversation, name), ())
    store, newest = stored.digest(name), there.digest(name)
    if store == newest or store is None or newest is None or (store in seen and newest in own):
        return None
    return next((each for each in (newest, *reversed(seen)) if each == store or each in own), None)


def _stated_parent(copies: Sequence[Copy], view: SideView) -> str | None:
    """Return the parent that a side states: for the other side, an absent key stands for it.

    Of several copies, the one whose metadata is used states it.
    """
    metadata = copies[0].metadata if len(copies) == 1 else view.metadata
    return metadata.parent.id if isinstance(metadata, Metadata) else None


def _by_conversation(side: Snapshot) -> dict[str, list[Copy]]:
    copies: dict[str, list[Copy]] = {}
    for copy in side.copies:
        others = copies.get(copy.conversation)
        if others is None:
            copies[copy.conversation] = [copy]
        else:
            others.append(copy)
    return copies


def _managed_files(fmt: Format) -> frozenset[str] | None:
    """Return the files of which one makes a workspace directory a copy; None if every record is a copy."""
    return None if fmt.places is not None else frozenset((fmt.metadata_file, *fmt.stream_files[-1:]))


def _only_view(
    copies: Sequence[Copy], rules: Rules, known_parent: str | None, managed: frozenset[str] | None = None
) -> SideView | None:
    """Return the view of a side with one directory or none, where nothing has to be chosen.

    None if more has to be examined: several directories, the trash, or a directory without any ``managed`` file.
    """
    if not copies:
        return _NOWHERE
    copy = copies[0]
    if len(copies) > 1 or copy.partition is Partition.TRASH:
        return None
    if managed is not None and managed.isdisjoint([file.name for file in copy.files]):
        return None
    units = units_of(copy, rules, known_parent)
    if not _MANAGED.issuperset(units):
        units = dict(sorted(units.items()))
    return SideView(copy, (), units, (), units)


def _lead(view: View, baseline: Baseline) -> Lead:
    """Decide which side determines whether a conversation is archived that is archived on one side only.

    The store does, unless git has put the workspace's directory where it is. Then the later change counts. If it is the
    workspace's, by a later commit, the store follows, unless the store has replaced that very commit before. If it is
    the store's, the workspace follows, unless a commit that isn't checked out here does that already. If each side has
    stayed as it was, the store has changed nothing.
    """
    if baseline.is_of_remote:
        return _lead_of_remote(view)
    placed = baseline.asides.get((view.id, PLACE))
    if placed == view.split_record:
        return Lead.NEITHER
    committed = baseline.committed.get(view.id)
    assert view.store.main is not None  # noqa: S101 - it is on both sides
    assert view.workspace.main is not None  # noqa: S101 - as above
    if committed is None or committed.place != view.workspace.main.path:
        return Lead.STORE
    stayed = placed is not None and placed.store == view.split_record.store
    if view.agreed is not None and not stayed and is_archived(view.agreed.place) != view.store.main.archived:
        return Lead.NEITHER if committed.older is Side.WORKSPACE else Lead.STORE
    replaced = {commit for commits in baseline.history.get((view.id, PLACE), ()) for commit in commits.split("+")}
    new = not replaced.issuperset(committed.since.split("+"))
    follows = view.agreed is not None and committed.older is Side.STORE and new
    return Lead.WORKSPACE if follows else Lead.NEITHER


def _lead_of_remote(view: View) -> Lead:
    """Decide the same with a remote: the side that has changed since leads; without a common state, the archived one.

    Before its first sync a machine may have an older clone, from before another one has archived it.
    """
    assert view.store.main is not None  # noqa: S101 - it is on both sides
    was_archived = False if view.agreed is None else is_archived(view.agreed.place)
    return Lead.STORE if was_archived != view.store.main.archived else Lead.WORKSPACE


class _Enclosing:
    """The workspace directories that hold copies with content of their own. Computed on demand: few conversations need
    them.
    """

    def __init__(self, workspace: Snapshot) -> None:
        self._workspace = workspace

    @cached_property
    def paths(self) -> frozenset[str]:
        """The paths of these directories."""
        marker = f"/{CHILDREN}/"
        paths: set[str] = set()
        for copy in self._workspace.copies:
            path = copy.path if copy.metadata is not None or copy.stream is not None else ""
            while marker in path:
                path = path[: path.rfind(marker)]
                if path in paths:
                    break
                paths.add(path)
        return frozenset(paths)


def _is_local(stored: Iterable[Copy], intent: Intent | None) -> bool:
    """Tell whether the conversation is local: by intent, or by a legacy flag that `project` has not overruled.

    The flag counts in the metadata of any of the store's directories.
    """
    if intent is not None:
        if intent.kind is IntentKind.LOCAL:
            return True
        if intent.is_wish:
            return False
    for copy in stored:
        metadata = copy.metadata
        if isinstance(metadata, Metadata) and metadata.local and copy.partition is not Partition.TRASH:
            return True
    return False


class _Inputs(Struct, frozen=True):
    """The inputs of a side's view besides its copies."""

    conversation: str
    agreed: BaselineEntry | None
    known_parent: str | None
    baseline: Baseline
    rules: Rules
    places: tuple[str | None, ...] = ()
    """The places where its workspace directory should be; the first one that exists counts."""
    enclosing: _Enclosing | None = None
    stored: bool = False
    """The store has it, and can restore damage in the workspace."""


def _store_view(copies: Sequence[Copy], inputs: _Inputs) -> SideView:
    """Return the store's view. The store is flat: a live directory at the top is the one that stays."""
    there = [copy for copy in copies if copy.partition is not Partition.TRASH]
    live = [copy for copy in there if not copy.archived]
    kept = live or there
    trashed = len(there) < len(copies)
    main = min(kept, key=lambda copy: (copy.container is not None, _is_damaged(copy), copy.path), default=None)
    return replace(_view(main, kept, kept, inputs), trashed=trashed)


def _workspace_view(copies: Sequence[Copy], inputs: _Inputs, *, archived: bool, local: bool) -> SideView:
    """Return the workspace's view.

    Copies carried into ``.trash/`` inside another directory are authoritative only if there is no other copy.
    ``local``: duplicates stay too, so only the main directory is authoritative. ``archived``: the store has the
    conversation archived, so a live directory is a duplicate of an archived one. Otherwise an archived directory beside
    a live one is left alone.
    """
    has = inputs.rules.format
    managed = {has.metadata_file, *has.stream_files}
    there = list(copies) if has.places else [copy for copy in copies if _is_there(copy, inputs)]
    paths = {copy.path for copy in there}
    bare_directories = tuple(
        copy for copy in copies if copy.partition is not Partition.TRASH and copy.path not in paths
    )
    live = [copy for copy in there if not copy.archived]
    kept = there if archived else live or there
    trash = tuple(sorted((c for c in copies if c.partition is Partition.TRASH), key=lambda c: (len(c.path), c.path)))
    carried = [copy for copy in trash if copy.container is not None]

    def rank(copy: Copy) -> tuple[bool, bool, int, int, int, str]:
        damaged = _is_damaged(copy)
        # The baseline entry may end while a damaged copy waits to be saved; then another directory would stay.
        trusted = copy.path in inputs.places and (inputs.stored or not damaged)
        elsewhere = inputs.places.index(copy.path) if trusted else len(inputs.places)
        # Paths come last: they change when a directory above is moved, and the compared content with them.
        newest_ns = max((file.mtime_ns for file in copy.files if file.name in managed), default=0)
        return (copy.archived != archived, damaged, elsewhere, -newest_ns, copy.path.count("/"), copy.path)

    main = min(kept, key=rank, default=None)
    if main is None:
        return replace(_view(None, kept, carried, inputs), bare_directories=bare_directories, trash=trash)
    return replace(_view(main, kept, [main] if local else kept, inputs), bare_directories=bare_directories, trash=trash)


def _is_damaged(copy: Copy) -> bool:
    """Tell whether a managed unit is missing or faulty, so that another directory is preferred."""
    return not isinstance(copy.metadata, Metadata) or not isinstance(copy.stream, Stream)


def _is_there(copy: Copy, inputs: _Inputs) -> bool:
    """Tell whether a workspace directory is a copy.

    A directory without a managed file is none: an empty directory never publishes anything
    (docs/design/decisions.md#rule-13). The exception: the baseline has the conversation, and the directory still holds
    others. JP would move those to its trash with it (docs/design/formats/jp.md#edge-case-87). A directory that has lost
    both its metadata and its events was removed, too. No program writes half of it, and git leaves the other file if
    that is untracked.
    """
    if copy.partition is Partition.TRASH:
        return False
    fmt, names = inputs.rules.format, {file.name for file in copy.files}
    known = inputs.stored and inputs.agreed is not None
    if not names.isdisjoint((fmt.metadata_file, *fmt.stream_files[-1:])):
        return True
    if not known and not names.isdisjoint(fmt.stream_files):
        return True
    intent = inputs.baseline.intents.get(inputs.conversation)
    published = intent is None or (intent.kind is IntentKind.PROJECTED and not intent.keeps_away)
    return known and published and inputs.enclosing is not None and copy.path in inputs.enclosing.paths


def _view(main: Copy | None, kept: list[Copy], speaking: Iterable[Copy], inputs: _Inputs) -> SideView:
    voices: dict[str, list[Unit]] = {}
    own: Mapping[str, Unit] = {}
    for copy in speaking:
        own_units = units_of(copy, inputs.rules, inputs.known_parent)
        own = own_units if copy is main else own
        for name, unit in own_units.items():
            voices.setdefault(name, []).append(unit)
    units: dict[str, Unit] = {}
    rivals: list[Unit] = []
    for name in sorted(voices):
        units[name], lost = _speaker(main, voices[name], inputs)
        rivals.extend(lost)
    stale = tuple(copy for copy in kept if copy is not main)
    return SideView(main, stale, units, tuple(rivals), own)


def _speaker(main: Copy | None, units: list[Unit], inputs: _Inputs) -> tuple[Unit, list[Unit]]:
    """Choose the authoritative unit of a side: the newest valid one that differs from the baseline
    (docs/design/placement.md#rule-10).

    A version that the history has superseded is chosen only if there is no other. Return also the other valid units
    that differ from the baseline and from the chosen one.
    """
    name = units[0].name
    base = inputs.agreed.units.get(name) if inputs.agreed else None

    def rank(unit: Unit) -> tuple[bool, bool, bool, int, bool, str]:
        valid = unit.digest is not None
        current = valid and not inputs.baseline.superseded(inputs.conversation, name, unit.digest, unit.raw)
        edited = current and unit.digest != base
        return (not valid, not current, not edited, -unit.mtime_ns, unit.copy is not main, unit.copy.path)

    speaker, *others = sorted(units, key=rank)
    rivals = [u for u in others if not any(rank(u)[:3]) and u.digest != speaker.digest]
    return speaker, rivals


def without_speakers(view: View, names: Collection[str]) -> View:
    """Return the view in which ``main`` is authoritative for these units, because the authoritative version is an older
    one.
    """
    own = {name: unit for name, unit in view.workspace.own.items() if name in names}
    return replace(view, workspace=replace(view.workspace, units={**view.workspace.units, **own}))
