"""Both sides of one conversation, seen together: which copy stays, and which speaks for each unit."""

from __future__ import annotations

from enum import Enum, auto
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord, IntentKind
from reconcile.model.names import CHILDREN
from reconcile.model.snapshot import METADATA, STREAM, Metadata, Partition, Side, Stream, is_archived
from reconcile.model.units import Unit, units_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from reconcile.model.baseline import Baseline, BaselineEntry, Intent
    from reconcile.model.format import Format
    from reconcile.model.snapshot import Copy, Digest, Snapshot
    from reconcile.model.units import Rules


PLACE = "place"
"""The name under which is remembered that a directory stays in another partition than the store's, and which commits
have put it where the store had it no more."""


_MANAGED = frozenset((METADATA, STREAM))
_NO_COPIES: tuple[Copy, ...] = ()


class Lead(Enum):
    """Which side says whether a conversation is archived, where the two sides differ."""

    STORE = auto()
    WORKSPACE = auto()
    NEITHER = auto()
    """Each stays as it is: git has put the workspace's directory where it is, and takes it away again."""


class SideView(Struct, frozen=True, gc=False):
    """One side of one conversation.

    ``main`` is the directory that stays (None: not there), ``stale`` are the other directories of the same
    partition, ``units`` speak for the side, ``rivals`` are valid units that differ from the baseline as well
    and lost to the one that speaks.
    """

    main: Copy | None
    stale: tuple[Copy, ...]
    units: Mapping[str, Unit]
    rivals: tuple[Unit, ...]
    own: Mapping[str, Unit]
    """The units of ``main``, whether they speak or not."""
    trashed: bool = False
    """The id is in the store's ``.trash/``; never said of the workspace."""
    bare_directories: tuple[Copy, ...] = ()
    """Directories in the workspace without a managed file: no copies, but they may stand in the way of one."""
    trash: tuple[Copy, ...] = ()
    """Its directories in the workspace's ``.trash/``, in the order of their numbers there."""

    @property
    def faults(self) -> Mapping[str, Unit]:
        """The faulty units of ``main``, and those of other directories where no sound one speaks."""
        return {name: unit for name, unit in {**self.units, **self.own}.items() if unit.fault is not None}

    def faulty(self, name: str) -> Unit | None:
        """Return the one of `faults` that has this name, None where there is none."""
        unit = self.own.get(name) or self.units.get(name)
        return unit if unit is not None and unit.fault is not None else None

    def digest(self, name: str) -> Digest | None:
        """Return the digest of the unit that speaks, None where there is none that can."""
        unit = self.units.get(name)
        return unit.digest if unit else None

    def has(self, names: Iterable[str]) -> bool:
        """Tell whether there are units of these names, all of them sound."""
        return all(self.digest(name) is not None for name in names)

    def raw(self, name: str) -> Digest | None:
        """Return the digest of the bytes of the unit that speaks, as they are."""
        unit = self.units.get(name)
        return unit.raw if unit else None

    @property
    def metadata(self) -> Metadata | None:
        """The facts of the metadata that speaks, where it is valid."""
        unit = self.units.get(METADATA)
        facts = unit.copy.metadata if unit else None
        return facts if isinstance(facts, Metadata) else None


_NOWHERE = SideView(None, (), {}, (), {})


class View(Struct, frozen=True, gc=False):
    """Everything known about one conversation before anything is decided."""

    id: str
    store: SideView
    workspace: SideView
    agreed: BaselineEntry | None
    intent: Intent | None
    local: bool
    """Kept out of workspaces, by `reconcile local` or a legacy ``"local": true`` (docs/design/intents.md#rule-27)."""
    known_parent: str | None
    """The last parent that the store's metadata stated, which JP may have stripped since."""
    base_parent: str | None
    """The parent that both sides agreed on in this checkout; elsewhere the known one."""
    parent_is_known: bool
    rules: Rules
    lead: Lead = Lead.STORE

    @property
    def format(self) -> Format:
        """Whose conversation it is."""
        return self.rules.format

    @property
    def title(self) -> str | None:
        """The title to show: the workspace's where it was edited there alone, else the store's."""
        for side in (self.store, self.workspace):
            if side.metadata is not None:
                return side.metadata.title or self._path
        return self._path or (self.agreed.title if self.agreed else None)

    @property
    def _path(self) -> str | None:
        """A record that has one place is called by that where it has no title."""
        return self.id if self.format.places is not None else None

    @property
    def archived(self) -> bool:
        """Whether it is archived as far as this workspace goes; where one side alone has it, that one says so."""
        main = self.store.main
        if main is None or (self.lead is not Lead.STORE and self.workspace.main is not None):
            main = self.workspace.main
        return main is not None and main.archived

    @property
    def archived_in_store(self) -> bool:
        """Whether the store's directory belongs in its archive."""
        if self.lead is Lead.WORKSPACE:
            return self.archived
        return self.store.main is not None and self.store.main.archived

    @property
    def has_split_archive(self) -> bool:
        """Tell whether one side has it archived, and the other one live."""
        store, workspace = self.store.main, self.workspace.main
        return store is not None and workspace is not None and store.archived != workspace.archived

    @property
    def split_record(self) -> AsideRecord:
        """Return what is remembered where each side of a conversation that is parted stays as it is."""
        assert self.workspace.main is not None  # noqa: S101 - it is on both sides
        partition = Partition.LIVE if self.workspace.main.archived else Partition.ARCHIVE
        return AsideRecord(AsideKind.PLACED, partition, self.workspace.main.path)

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
    """Return the view of every id that is on either side or remembered, in the order of ids; or of some.

    ``leaving``: what `reconcile local` takes out of the workspace. It is seen like any other conversation, so that all
    of its directories speak and are saved; only there is nothing to be written to them. ``places``: where a plan
    was to leave them, which goes before where they were agreed on.
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
        local = conversation not in leaving and _is_local(kept, intent)
        ours = _only_view(kept, rules, known)
        if ours is None:
            ours = _store_view(kept, _Inputs(conversation, agreed, known, baseline, rules))
        archived = ours.main is not None and ours.main.archived
        theirs = _only_view(copies, rules, base, managed)
        if theirs is None:
            lies = ((places or {}).get(conversation), agreed.place if agreed else None)
            inputs = _Inputs(conversation, agreed, base, baseline, rules, lies, enclosing, ours.main is not None)
            theirs = _workspace_view(copies, inputs, archived=archived, local=local)
        view = View(
            id=conversation,
            store=ours,
            workspace=theirs,
            agreed=agreed,
            intent=intent,
            local=local,
            known_parent=known,
            base_parent=base,
            parent_is_known=agreed is not None or conversation in baseline.parents,
            rules=rules,
        )
        views[conversation] = (
            replace(view, lead=_lead(view, baseline)) if view.has_split_archive and not local else view
        )
    return views


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
    """Return the files of which one makes a directory of the workspace a copy; None where every record is one."""
    return None if fmt.places is not None else frozenset((fmt.metadata_file, *fmt.stream_files[-1:]))


def _only_view(
    copies: Sequence[Copy], rules: Rules, known_parent: str | None, managed: frozenset[str] | None = None
) -> SideView | None:
    """Return the view of a side that has one directory, or none: nothing has to be chosen there.

    None where more has to be looked at: several directories, the trash, or none of the ``managed`` files.
    """
    if not copies:
        return _NOWHERE
    copy = copies[0]
    if len(copies) > 1 or copy.partition is Partition.TRASH:
        return None
    if managed is not None and managed.isdisjoint([file.name for file in copy.files]):
        return None
    units = units_of(copy, rules, known_parent)
    if len(units) > len(_MANAGED) or not _MANAGED.issuperset(units):
        units = dict(sorted(units.items()))
    return SideView(copy, (), units, (), units)


def _lead(view: View, baseline: Baseline) -> Lead:
    """Decide which side of a conversation that is parted says whether it is archived.

    The store does, unless git has put the workspace's directory there. Then what has changed since both sides agreed
    counts: the workspace, by a later commit, which the store follows, unless it has replaced that very one before; or
    the store, which the workspace follows, but not where a commit that isn't checked out here does that already. Since
    each has stayed as it was, the store has changed nothing.
    """
    placed = baseline.asides.get((view.id, PLACE))
    if placed == view.split_record:
        return Lead.NEITHER
    found = baseline.committed.get(view.id)
    assert view.store.main is not None  # noqa: S101 - it is on both sides
    assert view.workspace.main is not None  # noqa: S101 - as above
    if found is None or found.place != view.workspace.main.path:
        return Lead.STORE
    stayed = placed is not None and placed.store == view.split_record.store
    if view.agreed is not None and not stayed and is_archived(view.agreed.place) != view.store.main.archived:
        return Lead.NEITHER if found.older is Side.WORKSPACE else Lead.STORE
    replaced = {commit for each in baseline.history.get((view.id, PLACE), ()) for commit in each.split("+")}
    new = not replaced.issuperset(found.since.split("+"))
    follows = view.agreed is not None and found.older is Side.STORE and new
    return Lead.WORKSPACE if follows else Lead.NEITHER


class _Enclosing:
    """The directories of a workspace that hold copies with content of their own; few conversations need them."""

    def __init__(self, workspace: Snapshot) -> None:
        self._workspace = workspace

    @cached_property
    def paths(self) -> frozenset[str]:
        """Their paths."""
        marker = f"/{CHILDREN}/"
        found: set[str] = set()
        for copy in self._workspace.copies:
            path = copy.path if copy.metadata is not None or copy.stream is not None else ""
            while marker in path:
                path = path[: path.rfind(marker)]
                if path in found:
                    break
                found.add(path)
        return frozenset(found)


def _is_local(stored: Iterable[Copy], intent: Intent | None) -> bool:
    """A legacy flag in the metadata of any of the store's directories counts unless `project` has overruled it."""
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
    """What a side's view depends on, apart from its copies."""

    conversation: str
    agreed: BaselineEntry | None
    known_parent: str | None
    baseline: Baseline
    rules: Rules
    places: tuple[str | None, ...] = ()
    """Where its workspace directory should be found, the first of these where it is there."""
    enclosing: _Enclosing | None = None
    stored: bool = False
    """The store has it, and can mend what is damaged in the workspace."""


def _store_view(copies: Sequence[Copy], inputs: _Inputs) -> SideView:
    """The store is flat: a live directory at the top is the one that stays."""
    there = [copy for copy in copies if copy.partition is not Partition.TRASH]
    live = [copy for copy in there if not copy.archived]
    kept = live or there
    trashed = len(there) < len(copies)
    main = min(kept, key=lambda copy: (copy.container is not None, _is_damaged(copy), copy.path), default=None)
    return replace(_view(main, kept, kept, inputs), trashed=trashed)


def _workspace_view(copies: Sequence[Copy], inputs: _Inputs, *, archived: bool, local: bool) -> SideView:
    """Copies carried into ``.trash/`` inside another's directory speak where nothing else does, but aren't there.

    ``local``: duplicates stay too, so that only the directory that stays speaks.
    ``archived``: the conversation is, in the store; then a live directory is a duplicate of an archived one.
    Otherwise an archived directory beside a live one is left alone.
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
        # The baseline may end while a damaged one waits to be saved; then another directory would stay.
        trusted = copy.path in inputs.places and (inputs.stored or not damaged)
        elsewhere = inputs.places.index(copy.path) if trusted else len(inputs.places)
        # Paths come last: they change when a directory above is moved, and with them what is compared.
        newest_ns = max((file.mtime_ns for file in copy.files if file.name in managed), default=0)
        return (copy.archived != archived, damaged, elsewhere, -newest_ns, copy.path.count("/"), copy.path)

    main = min(kept, key=rank, default=None)
    if main is None:
        return replace(_view(None, kept, carried, inputs), bare_directories=bare_directories, trash=trash)
    return replace(_view(main, kept, [main] if local else kept, inputs), bare_directories=bare_directories, trash=trash)


def _is_damaged(copy: Copy) -> bool:
    """Tell whether a managed unit is missing or faulty, so that another directory is the better one to keep."""
    return not isinstance(copy.metadata, Metadata) or not isinstance(copy.stream, Stream)


def _is_there(copy: Copy, inputs: _Inputs) -> bool:
    """A directory without a managed file is no copy, unless its files were there and others depend on it.

    Publishing is never guessed from an empty directory (docs/design/decisions.md#rule-13); but where the baseline has
    the conversation and the directory still holds others, JP would trash them with it
    (docs/design/formats/jp.md#edge-case-87). One that has lost both its metadata and its events was removed, too:
    nobody writes half of it, and git leaves the other file where it doesn't know that.
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
        found = units_of(copy, inputs.rules, inputs.known_parent)
        own = found if copy is main else own
        for name, unit in found.items():
            voices.setdefault(name, []).append(unit)
    units: dict[str, Unit] = {}
    rivals: list[Unit] = []
    for name in sorted(voices):
        units[name], lost = _speaker(main, voices[name], inputs)
        rivals.extend(lost)
    stale = tuple(copy for copy in kept if copy is not main)
    return SideView(main, stale, units, tuple(rivals), own)


def _speaker(main: Copy | None, units: list[Unit], inputs: _Inputs) -> tuple[Unit, list[Unit]]:
    """Choose the unit that speaks for a side: the newest valid one that differs from the baseline.

    docs/design/placement.md#rule-10 has the rule.
    What the history has superseded speaks only where nothing else does. Also return the valid ones that
    differ from the baseline too and from the speaker.
    """
    name = units[0].name
    base = inputs.agreed.units.get(name) if inputs.agreed else None

    def rank(unit: Unit) -> tuple[bool, bool, bool, int, bool, str]:
        valid = unit.digest is not None
        current = valid and not inputs.baseline.superseded(inputs.conversation, name, unit.digest)
        edited = current and unit.digest != base
        return (not valid, not current, not edited, -unit.mtime_ns, unit.copy is not main, unit.copy.path)

    speaker, *others = sorted(units, key=rank)
    rivals = [u for u in others if not any(rank(u)[:3]) and u.digest != speaker.digest]
    return speaker, rivals


def without_speakers(view: View, names: Collection[str]) -> View:
    """Let the directory that stays speak for these units where it has them: what speaks now is an older version."""
    own = {name: unit for name, unit in view.workspace.own.items() if name in names}
    return replace(view, workspace=replace(view.workspace, units={**view.workspace.units, **own}))
