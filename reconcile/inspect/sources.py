"""The versions of a conversation that can be read and compared: a side's, a saved one, another checkout's.

A source is spelled ``ID``, ``ID@store``, ``ID@workspace``, ``ID@RUN`` or ``ID@PATH``. ``RUN`` is a run that has saved
a version, and ``PATH`` another checkout of the same store. A command may know more places, such as a remote. A bare id
is the store's version, or the workspace's if the store has none. The beginning of a hash is a saved version too.
``:UNIT`` after a side or a run is a part of it; after a bare id, only the metadata and the events are.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from reconcile.engine.run_history import NoRunError
from reconcile.engine.versions import SHORTEST, NoVersionError, find_versions, split_version
from reconcile.errors import ReconcileError
from reconcile.fs.files import Directory, read_files
from reconcile.fs.paths import is_directory
from reconcile.index.file import IndexFile
from reconcile.model.snapshot import EXTRA, METADATA, STREAM, Fault, Metadata, Side, Stream
from reconcile.model.units import spelled_units, unit_text
from reconcile.scan.scan import scan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from reconcile.engine.session import Session
    from reconcile.model.format import Format
    from reconcile.model.snapshot import Copy
    from reconcile.model.transcript import Transcript
    from reconcile.planning.rules.views import View
    from reconcile.state.database import Checkout
    from reconcile.state.vault import Version

LARGEST_OTHER_FILE = 1 << 20
"""Bytes of a file beside the managed ones up to which it is read."""
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")


class NoSourceError(ReconcileError):
    """A spelling fits no version of a conversation; the message says why."""

    exit_code = 2


class SourceFile(Struct, frozen=True):
    """A file of a source. ``place`` is its side and path, ``run`` the run that has saved it."""

    name: str
    unit: str
    size: int
    mtime_ns: int
    place: str
    run: str | None = None


class Source(Struct, frozen=True):
    """One version of a conversation.

    ``label`` is a word for people: "store", "workspace", "run 2026...", or the path of a checkout. ``name`` spells it.
    ``contents`` are its files by their names below the conversation's directory, empty for a single-file record.
    ``faults`` name the files that exist and aren't read. ``files`` describes all files. ``title`` is that of the
    conversation, if the version has none. ``is_part``: it need not have all files, as a saved version has only those
    that a run has replaced. ``unit`` is the part that the spelling names. ``others`` are spellings of other versions,
    each with the reason why it matters. ``left`` are saved versions of the same files that are not in ``contents``.
    """

    conversation: str
    label: str
    name: str
    contents: Mapping[str, bytes]
    faults: tuple[Fault, ...] = ()
    files: tuple[SourceFile, ...] = ()
    title: str | None = None
    is_part: bool = False
    unit: str = ""
    others: tuple[tuple[str, str], ...] = ()
    left: tuple[tuple[SourceFile, bytes], ...] = ()


class Reading(NamedTuple):
    """The means to resolve a spelling: the session, and the conversations that a command knows.

    ``find`` returns the id of a conversation as users write it, or raises an error. ``view`` returns its view.
    ``largest`` is the size up to which files beside the managed ones are read. ``elsewhere`` returns the version of a
    conversation in a place that only the command knows, and the unit that is named; None if that is no such place.
    ``is_id`` tells whether a conversation has this id: an id may contain an ``@``, as a name of a directory may.
    """

    session: Session
    find: Callable[[str], str]
    view: Callable[[str], View]
    largest: int = LARGEST_OTHER_FILE
    elsewhere: Callable[[str, str], tuple[Source, str] | None] = lambda _name, _place: None
    is_id: Callable[[str], bool] = lambda _text: False

    def split(self, text: str) -> tuple[str, str | None]:
        """Return the conversation and the place of a spelling, as `split_spelling` does; an id has no place."""
        return (text, None) if self.is_id(text) else split_spelling(text)


def read_source(reading: Reading, text: str) -> Source:
    """Return the version that a text spells.

    Raises:
        NoSourceError, NoVersionError, NoRunError: there is none, or several.
    """
    name, place = reading.split(text)
    session = reading.session
    if place is None:
        if is_hash(session, text):
            return saved_source(session, find_versions(session.state, text, session.format), has_unit=True)
        name, unit = split_unit(text)
        return _of_either_side(reading, reading.find(name), unit)
    side, _, unit = place.partition(":")
    if side in tuple(Side):
        conversation = reading.find(name)
        view = reading.view(conversation)
        copy = view.side(Side(side)).main
        if copy is None:
            raise NoSourceError(f"{conversation} is not in the {side}", _where(view))
        source = _titled(side_source(session, copy, reading.largest), view)
        return _unit_of(session.format, source, unit) if unit else source
    if is_path(place):
        conversation = reading.find(name)
        return checkout_source(session, conversation, place, reading.largest)
    if (found := reading.elsewhere(name, place)) is not None:
        source, unit = found
        return _unit_of(session.format, source, unit) if unit else source
    try:
        return _saved(reading, name, place)
    except NoRunError:
        if is_directory(place):
            return checkout_source(session, reading.find(name), place, reading.largest)
        raise


def _unit_of(form: Format, source: Source, unit: str) -> Source:
    """Return one unit of a source."""
    named = spelled_units(unit)
    contents = {name: content for name, content in source.contents.items() if form.unit_of(name) in named}
    faults = tuple(fault for fault in source.faults if form.unit_of(fault.file) in named)
    if not contents and not faults:
        names = ", ".join(sorted({unit_text(kind) for name in source.contents if (kind := form.unit_of(name))}))
        raise NoSourceError(f"{source.name} has no {unit}", f"it has {names}")
    files = tuple(file for file in source.files if form.unit_of(file.name) in named)
    kind = form.unit_of(next(iter(contents), "")) or named[0]
    name = f"{source.name}:{unit}"
    return replace(source, name=name, contents=contents, faults=faults, files=files, is_part=True, unit=kind)


def split_spelling(text: str) -> tuple[str, str | None]:
    """Return the conversation and the place of a spelling; the place is None if none is given."""
    name, at, place = text.partition("@")
    if at and is_path(place):
        return name, place
    name, at, place = split_version(text)
    return (name, place) if at else (text, None)


def split_unit(text: str) -> tuple[str, str]:
    """Return the conversation and the unit of a spelling without a place; the unit is empty if none is named."""
    name, _, unit = text.rpartition(":")
    return (name, unit) if name and spelled_units(unit)[0] in (METADATA, STREAM) else (text, "")


def is_path(place: str) -> bool:
    """Tell whether a place can only be a path."""
    return place in (".", "..") or "/" in place.partition(":")[0] or place.startswith("~")


def is_hash(session: Session, text: str) -> bool:
    """Tell whether a text begins the hash of a saved version, and is no whole id."""
    if len(text) < SHORTEST or session.format.is_whole(text) or not _HEXADECIMAL.issuperset(text.replace("+", "")):
        return False
    return bool(session.state.versions.with_digest(text.partition("+")[0].lower()))


def is_saved(session: Session, text: str) -> bool:
    """Tell whether a text can only spell a saved version, which needs no look at the sides."""
    name, place = split_spelling(text)
    if place is None:
        return is_hash(session, text)
    if not name or place.partition(":")[0] in tuple(Side) or is_path(place):
        return False
    return any(run.id.startswith(place.partition(":")[0]) for run in session.state.journal.runs())


def _of_either_side(reading: Reading, conversation: str, unit: str) -> Source:
    view = reading.view(conversation)
    copies = {side: view.side(side).main for side in Side}
    copy = copies[Side.STORE] or copies[Side.WORKSPACE]
    if copy is None:
        raise NoSourceError(f"{conversation} is on neither side", _where(view))
    source = _titled(side_source(reading.session, copy, reading.largest), view)
    if unit:
        source = _unit_of(reading.session.format, source, unit)
    other = copies[copy.side.other]
    if other is not None and _differ(view, source.unit):
        spelled = f"{conversation}@{other.side}" + (f":{unit}" if unit else "")
        return replace(source, others=((spelled, f"the {other.side}'s version differs"),))
    return source


def _differ(view: View, unit: str) -> bool:
    """Tell whether the sides' versions differ. ``unit``: of this unit alone; empty: of any."""
    names = {unit} if unit else {*view.store.units, *view.workspace.units}
    return any(view.store.raw(name) != view.workspace.raw(name) for name in names)


def _where(view: View) -> str:
    """Return the hint for a conversation that a place lacks."""
    there = [side for side in Side if view.side(side).main is not None]
    if there:
        return f"it is in the {there[0]}: {view.id}@{there[0]}"
    return "list the saved versions: reconcile vault -v"


def _titled(source: Source, view: View) -> Source:
    return replace(source, title=view.title)


def side_source(session: Session, copy: Copy, largest: int = LARGEST_OTHER_FILE) -> Source:
    """Return the version of a side as it is now. A file that can't be read is a fault."""
    name = f"{copy.conversation}@{copy.side}"
    return _of_copy(session, copy, session.site.conversations(copy.side), copy.side.value, name, largest)


def _of_copy(session: Session, copy: Copy, root: str, label: str, name: str, largest: int) -> Source:
    contents: dict[str, bytes] = {}
    known = {file.name for file in copy.files}
    # A directory that can't be read seems to have no files.
    units = (copy.metadata, copy.stream)
    faults = [unit for unit in units if isinstance(unit, Fault) and not unit.incomplete and unit.file not in known]
    above, _, alone = copy.path.rpartition("/") if "" in known else (copy.path, "", "")
    if known:
        with Directory.open_root(root) as top, top.below(above) as directory:
            for file in copy.files:
                if file.name not in session.file_names and file.size > largest:
                    faults.append(Fault(file.name, "a large file", f"at most {largest} bytes"))
                    continue
                read = read_files(directory, [file.name or alone])
                if isinstance(read, Fault):
                    faults.append(read)
                else:
                    contents[file.name] = read[file.name or alone][0]
    at = f"{copy.side}:{copy.path}"
    files = tuple(
        SourceFile(
            file.name,
            session.format.unit_of(file.name) or "",
            file.size,
            file.mtime_ns,
            f"{at}/{file.name}" if file.name else at,
        )
        for file in copy.files
    )
    return Source(copy.conversation, label, name, contents, tuple(faults), files)


def checkout_source(session: Session, conversation: str, path: str, largest: int = LARGEST_OTHER_FILE) -> Source:
    """Return the version in another checkout of the same store; its index, if there is one, saves most of the scan."""
    checkout = _checkout(session, path)
    root = session.roots.in_checkout(checkout.project).workspace_conversations
    _, indexes = IndexFile(session.directory, checkout.identity).load_indexes()
    index = dict(zip(Side, indexes, strict=True))[Side.WORKSPACE]
    snapshot = scan(Side.WORKSPACE, root, session.format, index).snapshot
    copies = [copy for copy in snapshot.copies if copy.conversation == conversation]
    if not copies:
        raise NoSourceError(f"{conversation} is not in {checkout.project}", "list the checkouts: reconcile checkouts")
    name = f"{conversation}@{checkout.project}"
    return _of_copy(session, max(copies, key=_worth), root, checkout.project, name, largest)


def _worth(copy: Copy) -> tuple[bool, bool, int]:
    is_whole = isinstance(copy.metadata, Metadata) and isinstance(copy.stream, Stream)
    return is_whole, not copy.archived, max((file.mtime_ns for file in copy.files), default=0)


def _checkout(session: Session, path: str) -> Checkout:
    wanted = os.path.realpath(os.path.expanduser(path))
    below = [each for each in session.state.checkouts() if f"{wanted}/".startswith(f"{each.project}/")]
    there = [each for each in below if session.state_of(each) in ("here", "there")]
    if there:
        return max(there, key=lambda checkout: len(checkout.project))
    problem = "no checkout of this store" if not below else f"a checkout that is {session.state_of(below[-1])}"
    raise NoSourceError(f"{path} is {problem}", "list the checkouts: reconcile checkouts")


def _saved(reading: Reading, name: str, place: str) -> Source:
    session, unit = reading.session, place.partition(":")[2]
    try:
        versions = find_versions(session.state, f"{name}@{place}", session.format)
    except NoVersionError:
        conversation = reading.find(name)
        if conversation == name:
            raise
        versions = find_versions(session.state, f"{conversation}@{place}", session.format)
    return saved_source(session, versions, has_unit=bool(unit))


def saved_source(session: Session, versions: Sequence[Version], *, has_unit: bool = False) -> Source:
    """Return saved versions of one conversation as one version; of two versions of a file, the newer one.

    It has only the files that the run has replaced. ``has_unit``: the spelling names one unit.

    Raises:
        VaultError: an object is missing or damaged.
    """
    chosen: dict[str, Version] = {}
    for version in sorted(versions, key=lambda version: (version.mtime_ns, version.side is Side.STORE)):
        chosen[version.file] = version
    contents = {name: session.vault.read(version.digest) for name, version in chosen.items()}
    first = versions[0]
    run = "a saved version" if first.run is None else f"run {first.run}"
    left = [version for version in versions if version.digest != chosen[version.file].digest]
    return Source(
        first.conversation,
        run,
        first.digest[:16] if first.run is None else f"{first.conversation}@{first.run}",
        contents,
        files=tuple(_saved_file(version) for version in chosen.values()),
        is_part=True,
        unit=first.unit if has_unit else "",
        others=tuple((version.digest[:16], f"another version of {version.file} from that run") for version in left),
        left=tuple((_saved_file(version), session.vault.read(version.digest)) for version in left),
    )


def _saved_file(version: Version) -> SourceFile:
    place = f"{version.side}:{version.path}"
    return SourceFile(version.file, version.unit, version.size, version.mtime_ns, place, version.run)


def transcript_of(form: Format, source: Source) -> Transcript:
    """Return a source in readable form, with notes on the files that are missing or can't be read."""
    transcript = form.transcript(source.conversation, source.contents)
    faults = tuple(f"{fault.file or 'the file'}: {fault.words}" for fault in source.faults if _is_managed(form, fault))
    missing = () if source.is_part else tuple(f"{name} is missing" for name in _missing(form, source))
    notes = (*faults, *missing, *transcript.notes)
    return replace(transcript, title=transcript.title or source.title, notes=notes)


def _is_managed(form: Format, fault: Fault) -> bool:
    return form.unit_of(fault.file) != f"{EXTRA}{fault.file}" or form.places is not None


def _missing(form: Format, source: Source) -> Iterable[str]:
    """Return the names of managed files that a version lacks; the older form has no separate base configuration."""
    if not form.required:
        return ()
    there = {*source.contents, *(fault.file for fault in source.faults)}
    return [name for name in (form.metadata_file, form.stream_files[-1]) if name not in there]


def other_files(form: Format, source: Source) -> list[tuple[str, int]]:
    """Return the names and sizes of the files that the readable form doesn't show."""
    if form.places is not None:
        return []
    managed = (form.metadata_file, *form.stream_files)
    return [(file.name, file.size) for file in source.files if file.name not in managed]
