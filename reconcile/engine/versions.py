"""Versions in the vault: finds them by name, prepares them for a restore, lists and deletes the vault's objects.

A name is ``ID@RUN[:unit]``, or the beginning of a digest. Only the user deletes objects
(docs/commands.md#reconcile-vault). Of conversations that were lost with a store, the vault may have the last versions.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.engine.run_history import find_run
from reconcile.errors import ReconcileError
from reconcile.fs.files import error_text
from reconcile.fs.hashing import chunks_of
from reconcile.fs.paths import is_directory
from reconcile.model.commands import typed
from reconcile.model.past_run import Restorable, SavedFile, SavedUnit
from reconcile.model.plan import Note
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, WHOLE, Fault, Metadata, Side
from reconcile.model.units import spelled_units
from reconcile.scan.reader import LARGE
from reconcile.state.vault import VersionKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from reconcile.engine.session import Session
    from reconcile.model.format import Format, StreamContent
    from reconcile.state.database import State
    from reconcile.state.vault import Vault, Version


SHORTEST = 4
"""The least number of digits of a digest that may name a version."""


class NoVersionError(ReconcileError):
    """There is no such version, or several; the message says which."""

    exit_code = 2


_PLACE = re.compile(r"@(?=(?:store|workspace|\d{4,8}(?:-\d{0,6}(?:-[0-9a-f]{0,2})?)?)(?::|$))")
"""The separator before a side or a run: a title before it, and the name of a file after it, may have others."""


def split_version(text: str) -> tuple[str, str, str]:
    """Split a version's name as `str.rpartition` does, but at the first ``@`` that a side or a run follows.

    If neither follows any, it is the last one.
    """
    if (found := _PLACE.search(text)) is not None:
        return text[: found.start()], "@", text[found.end() :]
    return text.rpartition("@")


def find_versions(state: State, text: str, form: Format) -> list[Version]:
    """Return the vault's files that a text names, oldest first; equal contents once.

    Raises:
        NoVersionError, NoRunError: there is none, or the text is ambiguous.
    """
    name, at, rest = split_version(text)
    if at:
        run, _, unit = rest.partition(":")
        versions = _of_run(state, _identified(state, name, form), find_run(state, run).id, unit)
    else:
        versions = _with_digest(state, text)
    if not versions:
        raise NoVersionError(
            f"the vault has no version {text!r}", "list the saved versions of a run: reconcile log RUN"
        )
    return versions


def _identified(state: State, text: str, form: Format) -> str:
    """Return the conversation with an id, or with the beginning of an id; it may be gone from both sides."""
    full = form.parse_id(text)
    if full is not None and form.is_whole(text):
        return full
    matches = saved_ids(state, text, form)
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise NoVersionError(f"{text!r} is ambiguous: {', '.join(matches[:5])}", "give more of the id")
    raise NoVersionError(f"the vault has no version of {text!r}", "list the saved versions: reconcile vault -v")


def saved_ids(state: State, text: str, form: Format) -> list[str]:
    """Return the conversations with saved versions that have this id, or an id that begins with the text."""
    full, known = form.parse_id(text), state.versions.conversations()
    if full is not None and full in known:
        return [full]
    return sorted(name for name in known if text and name.startswith(text))


def _of_run(state: State, conversation: str, run: str, unit: str) -> list[Version]:
    versions = [version for version in state.versions.of_run(run) if version.conversation == conversation]
    files = [version for version in versions if version.kind is VersionKind.FILE]
    if not unit:
        return files
    named = ([version for version in files if version.unit == name] for name in spelled_units(unit))
    return next(filter(None, named), [])


def _with_digest(state: State, text: str) -> list[Version]:
    """Return the versions for the beginning of a digest, or for a stream's digests joined by ``+`` as in `status`.

    Of equal contents, the one that was kept last is returned. Joined files come from one directory, if one had them.
    """
    candidates = [versions for part in text.lower().split("+") if (versions := _with_one_digest(state, part))]
    origins = [{_origin(version) for version in versions} for versions in candidates]
    shared = set.intersection(*origins) if origins else set()
    return [
        [version for version in versions if not shared or _origin(version) in shared][-1] for versions in candidates
    ]


def _with_one_digest(state: State, text: str) -> list[Version]:
    if len(text) < SHORTEST:
        raise NoVersionError(
            f"{text!r} is not a version",
            "name one as ID@RUN, ID@RUN:metadata or ID@RUN:events; list the saved ones: reconcile vault -v",
        )
    saved = state.versions.with_digest(text)
    versions = [version for version in saved if version.kind is VersionKind.FILE or version.conversation]
    digests = sorted({version.digest for version in versions})
    if len(digests) > 1:
        hashes = ", ".join(digest[:16] for digest in digests[:5])
        raise NoVersionError(f"{text!r} is ambiguous: {hashes}", "give more digits of the hash")
    return versions


def _origin(version: Version) -> tuple[str | None, Side, str]:
    """Return the run that has kept a version, and the side and directory that it came from."""
    return version.run, version.side, version.path[: -len(version.file) - 1]


def restorable(session: Session, text: str) -> Restorable:
    """Return what the version that a text names has: one of the vault, or of a place that the session knows.

    Raises:
        NoVersionError, NoRunError, VaultError: there is none, or it can't be read or written.
    """
    if (elsewhere := session.elsewhere(text)) is not None:
        return elsewhere
    versions = find_versions(session.state, text, session.format)
    return kept_units(session.state, session.vault, versions, session.format)


def kept_units(state: State, vault: Vault, versions: Sequence[Version], form: Format) -> Restorable:
    """Return whole units of one conversation, each from one directory; a stream's other file is added.

    Of several versions of a unit, the newest valid one is taken; of equal times, the store's. A file that belongs to no
    unit lay beside the conversation's own, and is not restored.

    Raises:
        NoVersionError: no version belongs to a unit, or a unit has no valid version.
        VaultError: an object is missing or damaged.
    """
    units: dict[str, dict[tuple[str | None, Side, str], dict[str, Version]]] = {}
    for version in _with_companions(state, versions, form):
        units.setdefault(version.unit, {}).setdefault(_origin(version), {})[version.file] = version
    beside = [version for files in units.pop(WHOLE, {}).values() for version in files.values()]
    if not units:
        names = ", ".join(sorted(version.file for version in beside))
        message = f"{names}: not a file of the conversation, so it can't be restored"
        raise NoVersionError(message, f"print it: reconcile show {beside[0].digest[:16]}")
    chosen = [_newest(unit, list(places.values()), vault, form) for unit, places in sorted(units.items())]
    notes = [note for restorable in chosen for note in restorable.notes]
    chosen_units = tuple(unit for restorable in chosen for unit in restorable.units)
    return Restorable(chosen_units, (*notes, *map(_note_beside, beside)))


def _note_beside(version: Version) -> Note:
    words = f"not a file of the conversation, not restored; print it: reconcile show {version.digest[:16]}"
    return _note(version, f"{version.side}:{version.path}: {words}")


def _note(version: Version, message: str) -> Note:
    return Note(conversation=version.conversation, unit=version.unit, reason=Reason.LEFT_IN_VAULT, message=message)


def _with_companions(state: State, versions: Iterable[Version], form: Format) -> list[Version]:
    """Return the versions with the other files of their streams, kept by the same run, from the same directory."""
    completed = list(versions)
    for version in versions:
        if version.unit == STREAM and version.run is not None:
            completed += [
                other
                for other in state.versions.of_run(version.run)
                if other.conversation == version.conversation
                and other.unit == STREAM
                and _origin(other) == _origin(version)
                and other.file in form.stream_files
                and other.file != version.file
            ]
    return completed


def _newest(unit: str, places: list[dict[str, Version]], vault: Vault, form: Format) -> Restorable:
    """Return the newest valid version of a unit, and a note on every other version of it."""
    contents = {tuple(sorted((name, version.digest) for name, version in files.items())): files for files in places}
    valid: list[tuple[dict[str, Version], SavedUnit]] = []
    invalid: list[tuple[dict[str, Version], NoVersionError]] = []
    for files in sorted(contents.values(), key=_age, reverse=True):
        try:
            valid.append((files, _unit(unit, files, vault, form)))
        except NoVersionError as error:
            invalid.append((files, error))
    if not valid:
        raise invalid[0][1]
    chosen, newest = valid[0]
    notes = [_note_other(_differing(files, chosen, form), "take it instead", "restore") for files, _ in valid[1:]]
    notes += [_note_other(_differing(files, chosen, form), "print it", "show --raw") for files, _ in invalid]
    return Restorable((newest,), tuple(notes))


def _age(files: dict[str, Version]) -> tuple[int, bool]:
    return max(version.mtime_ns for version in files.values()), next(iter(files.values())).side is Side.STORE


def _differing(files: dict[str, Version], chosen: dict[str, Version], form: Format) -> Version:
    """Return the file whose digest distinguishes a version from the chosen one."""

    def position(version: Version) -> int:
        return form.stream_files.index(version.file) if version.unit == STREAM else 0

    order = sorted(files.values(), key=position)
    other = [file for file in order if file.file not in chosen or file.digest != chosen[file.file].digest]
    return (other or order)[-1]


def _note_other(version: Version, does: str, command: str) -> Note:
    way = f"{does}: reconcile {command} {version.digest[:16]}"
    return _note(version, f"{version.side}:{version.path}: the vault has another version from that run; {way}")


def _unit(unit: str, files: dict[str, Version], vault: Vault, form: Format) -> SavedUnit:
    any_of_them = next(iter(files.values()))
    saved = SavedUnit(
        conversation=any_of_them.conversation,
        unit=unit,
        dirname=_origin(any_of_them)[2].rpartition("/")[2],
        files={
            name: SavedFile(version.size, version.mtime_ns, version.xxh3, version.digest)
            for name, version in files.items()
        },
    )
    return checked_unit(saved, {name: _content(version, vault, form) for name, version in files.items()}, form)


def checked_unit(unit: SavedUnit, contents: Mapping[str, StreamContent], form: Format) -> SavedUnit:
    """Return a unit with what its contents tell of it.

    Raises:
        NoVersionError: they are invalid.
    """
    partial = unit.unit == STREAM and _lacks_its_base(contents, form)
    facts = _facts(unit.unit, {form.stream_files[0]: b"{}", **contents} if partial else contents, form)
    return replace(unit, partial=partial, title=facts.title if isinstance(facts, Metadata) else None)


def saved_titles(versions: Iterable[Version], vault: Vault, form: Format) -> dict[str, str]:
    """Return the titles in saved metadata by conversation; of two versions the later one counts.

    A version that can't be read has none.
    """
    titles: dict[str, str] = {}
    for version in versions:
        if version.unit == METADATA and version.conversation:
            try:
                facts = _facts(METADATA, {form.metadata_file: vault.read(version.digest)}, form)
            except (OSError, ReconcileError):
                continue
            if isinstance(facts, Metadata) and facts.title:
                titles[version.conversation] = facts.title
    return titles


def _content(version: Version, vault: Vault, form: Format) -> StreamContent:
    if version.size <= LARGE or version.file != form.stream_files[-1]:
        return vault.read(version.digest)
    with vault.open(version.digest) as file:
        return form.summarise(chunks_of(file.fileno()), events=False)


def _lacks_its_base(contents: Mapping[str, StreamContent], form: Format) -> bool:
    """Tell whether only the events of a stream were kept: its base configuration was not replaced."""
    alone = form.stream_files[0] not in contents
    return alone and isinstance(form.read_stream(contents, events=False), Fault)


def _facts(unit: str, contents: Mapping[str, StreamContent], form: Format) -> object:
    """Return the parsed unit; raise `NoVersionError` for invalid content (docs/design/decisions.md#rule-16)."""
    facts: object = None
    if unit == METADATA:
        content = contents[form.metadata_file]
        facts = form.read_metadata(content) if isinstance(content, bytes) else content
    elif unit == STREAM:
        facts = form.read_stream(contents, events=False)
    if isinstance(facts, Fault):
        message = f"{facts.file}: {facts.words}; an invalid version is not written"
        raise NoVersionError(message, "print it: reconcile show VERSION --raw")
    return facts


class Holding(Struct, frozen=True):
    """One object of the vault, with its size in bytes, the time of the newest run that needed it, and its versions.

    ``saved_ns`` is the time at which it was last saved; a version may be recorded a moment later. It is 0 if only the
    records of its versions are left: a removal that was killed has deleted the object, or the vault is damaged.
    """

    digest: str
    size: int
    newest_ns: int
    saved_ns: int
    versions: tuple[Version, ...]


def holdings(state: State, vault: Vault) -> tuple[Holding, ...]:
    """Return every object of the vault, sorted by the time of the newest run that needed it, oldest first."""
    started = {run.id: run.started_ns for run in state.journal.runs()}
    versions: dict[str, list[Version]] = {}
    for version in state.versions.all():
        versions.setdefault(version.digest, []).append(version)
    objects = []
    for digest, (size, stored_ns) in (dict.fromkeys(versions, (0, 0)) | vault.objects()).items():
        its_versions = tuple(versions.get(digest, ()))
        times = [started.get(version.run or "", stored_ns) for version in its_versions]
        objects.append(Holding(digest, size, max(times, default=stored_ns), stored_ns, its_versions))
    return tuple(sorted(objects, key=lambda holding: (holding.newest_ns, holding.digest)))


def older_than(objects: tuple[Holding, ...], time_ns: int) -> tuple[Holding, ...]:
    """Return the objects that no run and no library has put into the vault since that time."""
    return tuple(holding for holding in objects if max(holding.newest_ns, holding.saved_ns) < time_ns)


def find_holding(objects: tuple[Holding, ...], prefix: str) -> Holding:
    """Return the only object whose digest begins with ``prefix``.

    Raises:
        NoVersionError: there is none, or there are several.
    """
    hits = [holding for holding in objects if holding.digest.startswith(prefix.lower())] if prefix else []
    if len(hits) == 1:
        return hits[0]
    if not hits:
        hint = "list the versions: reconcile vault -v, or reconcile log RUN"
        raise NoVersionError(f"no version in the vault starts with {prefix!r}", hint)
    hashes = ", ".join(holding.digest[:16] for holding in hits[:5])
    raise NoVersionError(f"{prefix!r} is ambiguous: {hashes}", "give more digits of the hash")


def remove_objects(
    state: State, vault: Vault, objects: tuple[Holding, ...], *, only_unchanged: bool = False
) -> tuple[Holding, ...]:
    """Delete objects permanently, and return those that were deleted. Raises `OSError`, `StateError`, `VaultError`.

    The library saves versions without the lock of the runs. ``only_unchanged`` leaves an object that was saved again.
    """
    removed = []
    for holding in objects:
        vault.unfold(holding.digest)
        if state.versions.forget(holding.digest, partial(_remove, vault, holding, only_unchanged)):
            removed.append(holding)
    return tuple(removed)


def _remove(vault: Vault, holding: Holding, only_unchanged: bool, versions: tuple[Version, ...]) -> bool:
    """Delete an object, and return True; False if it was saved again, which is recorded at once or a moment later."""
    if only_unchanged and (versions != holding.versions or (vault.saved_ns(holding.digest) or 0) != holding.saved_ns):
        return False
    vault.unlink(holding.digest)
    return True


class Lost(Struct, frozen=True):
    """A conversation of a lost store that is on neither side: a text on its remaining versions, and a command."""

    conversation: str
    title: str | None
    left: str
    command: str | None


def lost_with_store(session: Session, there: AbstractSet[str]) -> tuple[Lost, ...]:
    """Return the conversations that were lost with a store, in the order of ids; ``there`` are those on a side.

    Removed conversations are left out. Only conversations that a run has seen in the store are known.
    """
    state, fmt = session.state, session.format
    missed = state.lost()
    if not missed:
        return ()
    buried = state.load(session.checkout, missed.keys()).tombstones
    ids = sorted(missed.keys() - there - buried.keys(), key=fmt.order)
    return tuple(_lost(state, session.project, fmt, conversation, missed[conversation]) for conversation in ids)


def _lost(state: State, project: str, fmt: Format, conversation: str, title: str | None) -> Lost:
    unread = ""
    for other in state.projects_with(conversation):
        try:
            is_there = other != project and is_directory(other)
        except OSError as error:
            unread += f"; {other} may have it, but can't be read ({error_text(error)})"
            continue
        if is_there:
            command = f"reconcile --workspace {typed(other)}"
            return Lost(conversation, title, f"{other} may still have it, and a run there saves it again", command)
    units: dict[str, set[str]] = {}
    for version in state.versions.of_conversation(conversation):
        if version.run is not None and version.kind is VersionKind.FILE:
            units.setdefault(version.run, set()).add(version.unit)
    whole = [run for run, kept in units.items() if kept.issuperset(fmt.required)]
    if whole:
        words = f"the vault has the version of run {max(whole)}{unread}"
        return Lost(conversation, title, words, f"reconcile restore {typed(conversation)}@{max(whole)}")
    if units:
        words = f"the vault has a part of it from run {max(units)}{unread}"
        return Lost(conversation, title, words, f"reconcile show {typed(conversation)}@{max(units)}")
    return Lost(conversation, title, f"the vault has no version of it{unread}", None)
