"""Versions in the vault by the names that people give them: ``ID@RUN[:unit]``, or the beginning of a digest."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from reconcile.engine.run_history import find_run
from reconcile.errors import ReconcileError
from reconcile.fs.hashing import chunks_of
from reconcile.model.past_run import SavedFile, SavedUnit
from reconcile.model.plan import Note
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import EXTRA, METADATA, STREAM, WHOLE, Fault, Metadata, Side
from reconcile.scan.contents import LARGE
from reconcile.state.vault import VersionKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reconcile.model.format import Format, StreamContent
    from reconcile.state.database import State
    from reconcile.state.vault import Vault, Version

SHORTEST = 4
"""Digits of a digest that may name a version."""


class NoVersionError(ReconcileError):
    """There is no such version, or several; the message says which."""

    exit_code = 2


def find_versions(state: State, text: str, form: Format) -> list[Version]:
    """Return the files of the vault that a text names, oldest first; those of one content once.

    Raises:
        NoVersionError, NoRunError: there is none, or the text is ambiguous.
    """
    name, at, rest = text.rpartition("@")
    if at:
        run, _, unit = rest.partition(":")
        found = _of_run(state, _identified(state, name, form), find_run(state, run).id, unit)
    else:
        found = _with_digest(state, text)
    if not found:
        raise NoVersionError(f"there is no version {text!r}", "`reconcile log RUN` lists those that a run has kept")
    return found


def _identified(state: State, text: str, form: Format) -> str:
    """Return the conversation, which may be gone from both sides, that an id or the beginning of one names."""
    full = form.parse_id(text)
    if full is not None and form.is_whole(text):
        return full
    found = sorted(
        {each for each in state.versions.conversations() if full == each or (text and each.startswith(text))}
    )
    if len(found) == 1:
        return found[0]
    what = f"is ambiguous: {', '.join(found[:5])}" if found else "is no conversation that the vault has a version of"
    raise NoVersionError(f"{text!r} {what}")


def _of_run(state: State, conversation: str, run: str, unit: str) -> list[Version]:
    versions = [each for each in state.versions.of_run(run) if each.conversation == conversation]
    wanted = (unit, f"{EXTRA}{unit}")
    return [each for each in versions if each.kind is VersionKind.FILE and (not unit or each.unit in wanted)]


def _with_digest(state: State, text: str) -> list[Version]:
    """Return what the beginning of a digest names, or the digests of a stream's files, as `status` joins them.

    Of equal content the one that was kept last; files that are joined are those of one directory, where one had them.
    """
    named = [found for part in text.lower().split("+") if (found := _with_one_digest(state, part))]
    together = [{_origin(each) for each in found} for found in named]
    shared = set.intersection(*together) if together else set()
    return [[each for each in found if not shared or _origin(each) in shared][-1] for found in named]


def _with_one_digest(state: State, text: str) -> list[Version]:
    if len(text) < SHORTEST:
        raise NoVersionError(f"found {text!r}, expected ID@RUN[:unit], or {SHORTEST} digits of a digest or more")
    found = [each for each in state.versions.with_digest(text) if each.kind is VersionKind.FILE]
    digests = sorted({each.digest for each in found})
    if len(digests) > 1:
        raise NoVersionError(f"{text!r} is ambiguous: {', '.join(digest[:16] for digest in digests[:5])}")
    return found


def _origin(version: Version) -> tuple[str | None, Side, str]:
    """Return the directory that a version was kept of, and when."""
    return version.run, version.side, version.path[: -len(version.file) - 1]


class Restorable(NamedTuple):
    """What can be written again of the versions that were named; ``notes`` say what else stays in the vault."""

    units: tuple[SavedUnit, ...]
    notes: tuple[Note, ...]


def kept_units(state: State, vault: Vault, versions: Sequence[Version], form: Format) -> Restorable:
    """Return whole units of one conversation, from one directory each; a stream's other file comes along.

    Of several versions of a unit, from several directories, the newest that is valid; of one time the store's. A file
    that is of no unit lay beside the conversation's own: it isn't written anywhere.

    Raises:
        NoVersionError: none is of a unit, or a unit has no valid version.
        VaultError: an object is missing or damaged.
    """
    units: dict[str, dict[tuple[str | None, Side, str], dict[str, Version]]] = {}
    for version in _with_companions(state, versions, form):
        units.setdefault(version.unit, {}).setdefault(_origin(version), {})[version.file] = version
    beside = [each for files in units.pop(WHOLE, {}).values() for each in files.values()]
    if not units:
        names = ", ".join(sorted(each.file for each in beside))
        message = f"found {names}, expected files of the conversation itself; what lies beside them isn't restored"
        raise NoVersionError(message, f"`reconcile show {beside[0].digest[:16]}` prints it")
    chosen = [_newest(unit, list(places.values()), vault, form) for unit, places in sorted(units.items())]
    notes = [note for each in chosen for note in each.notes]
    return Restorable(tuple(unit for each in chosen for unit in each.units), (*notes, *map(_note_beside, beside)))


def _note_beside(version: Version) -> Note:
    words = f"no file of the conversation, stays in the vault; `reconcile show {version.digest[:16]}` prints it"
    return _note(version, f"{version.side}:{version.path}: {words}")


def _note(version: Version, message: str) -> Note:
    return Note(conversation=version.conversation, unit=version.unit, reason=Reason.LEFT_IN_VAULT, message=message)


def _with_companions(state: State, versions: Iterable[Version], form: Format) -> list[Version]:
    """Add the other files of streams that were kept at the same time, from the same directory."""
    found = list(versions)
    for version in versions:
        if version.unit == STREAM and version.run is not None:
            found += [
                each
                for each in state.versions.of_run(version.run)
                if each.conversation == version.conversation
                and each.unit == STREAM
                and _origin(each) == _origin(version)
                and each.file in form.stream_files
                and each.file != version.file
            ]
    return found


def _newest(unit: str, places: list[dict[str, Version]], vault: Vault, form: Format) -> Restorable:
    """Return the newest valid version of a unit, and a note on every other one that was kept."""
    contents = {tuple(sorted((name, each.digest) for name, each in files.items())): files for files in places}
    valid: list[tuple[dict[str, Version], SavedUnit]] = []
    invalid: list[tuple[dict[str, Version], NoVersionError]] = []
    for files in sorted(contents.values(), key=_age, reverse=True):
        try:
            valid.append((files, _unit(unit, files, vault, form)))
        except NoVersionError as error:
            invalid.append((files, error))
    if not valid:
        raise invalid[0][1]
    chosen, found = valid[0]
    notes = [_note_other(_differing(files, chosen, form), "takes it instead", "restore") for files, _ in valid[1:]]
    notes += [_note_other(_differing(files, chosen, form), "prints it", "show") for files, _ in invalid]
    return Restorable((found,), tuple(notes))


def _age(files: dict[str, Version]) -> tuple[int, bool]:
    return max(each.mtime_ns for each in files.values()), next(iter(files.values())).side is Side.STORE


def _differing(files: dict[str, Version], chosen: dict[str, Version], form: Format) -> Version:
    """Return the file whose digest names a version and not the one that was chosen."""
    order = sorted(files.values(), key=lambda each: form.stream_files.index(each.file) if each.unit == STREAM else 0)
    other = [each for each in order if each.file not in chosen or each.digest != chosen[each.file].digest]
    return (other or order)[-1]


def _note_other(version: Version, does: str, command: str) -> Note:
    way = f"`reconcile {command} {version.digest[:16]}` {does}"
    return _note(
        version, f"{version.side}:{version.path}: another version that was kept then stays in the vault; {way}"
    )


def _unit(unit: str, files: dict[str, Version], vault: Vault, form: Format) -> SavedUnit:
    contents_of = {name: _content(each, vault, form) for name, each in files.items()}
    partial = unit == STREAM and _lacks_its_base(contents_of, form)
    facts = _facts(unit, {form.stream_files[0]: b"{}", **contents_of} if partial else contents_of, form)
    any_of_them = next(iter(files.values()))
    return SavedUnit(
        conversation=any_of_them.conversation,
        unit=unit,
        dirname=_origin(any_of_them)[2].rpartition("/")[2],
        files={name: SavedFile(each.size, each.mtime_ns, each.xxh3, each.digest) for name, each in files.items()},
        partial=partial,
        title=facts.title if isinstance(facts, Metadata) else None,
    )


def _content(version: Version, vault: Vault, form: Format) -> StreamContent:
    if version.size <= LARGE or version.file != form.stream_files[-1]:
        return vault.read(version.digest)
    with vault.open(version.digest) as file:
        return form.summarise(chunks_of(file.fileno()), events=False)


def _lacks_its_base(contents: dict[str, StreamContent], form: Format) -> bool:
    """Tell whether the stream's base configuration was left as it was when the events were replaced."""
    alone = form.stream_files[0] not in contents
    return alone and isinstance(form.read_stream(contents, events=False), Fault)


def _facts(unit: str, contents: dict[str, StreamContent], form: Format) -> object:
    """Return what a unit says; refuse invalid content (docs/design/decisions.md#rule-16)."""
    facts: object = None
    if unit == METADATA:
        content = contents[form.metadata_file]
        facts = form.read_metadata(content) if isinstance(content, bytes) else content
    elif unit == STREAM:
        facts = form.read_stream(contents, events=False)
    if isinstance(facts, Fault):
        message = f"{facts.file}: found {facts.found}, expected {facts.expected}; that version isn't written anywhere"
        raise NoVersionError(message, "`reconcile show` prints it")
    return facts
