"""Versions in the vault by the names that people give them: ``ID@RUN[:unit]``, or the beginning of a digest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.core.model import EXTRA, METADATA, STREAM, Fault, Side
from reconcile.core.past import Kept, KeptUnit
from reconcile.disk.hashing import chunks_of
from reconcile.disk.streams import LARGE
from reconcile.disk.versions import VersionKind
from reconcile.errors import ReconcileError
from reconcile.past import find_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reconcile.core.format import Format, StreamContent
    from reconcile.disk.state import State
    from reconcile.disk.vault import Vault
    from reconcile.disk.versions import Version

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
    """Return what the beginning of a digest names, or the digests of a stream's files, as `status` joins them."""
    return [version for part in text.lower().split("+") for version in _with_one_digest(state, part)]


def _with_one_digest(state: State, text: str) -> list[Version]:
    if len(text) < SHORTEST:
        raise NoVersionError(f"found {text!r}, expected ID@RUN[:unit], or {SHORTEST} digits of a digest or more")
    found = {each.digest: each for each in state.versions.with_digest(text) if each.kind is VersionKind.FILE}
    if len(found) > 1:
        raise NoVersionError(f"{text!r} is ambiguous: {', '.join(digest[:16] for digest in sorted(found)[:5])}")
    return list(found.values())


def kept_units(state: State, vault: Vault, versions: Sequence[Version], form: Format) -> tuple[KeptUnit, ...]:
    """Return whole units of one conversation, from one directory each; a stream's other file comes along.

    Raises:
        NoVersionError: two versions of one unit are meant, or one isn't valid content.
        VaultError: an object is missing or damaged.
    """
    units: dict[str, dict[tuple[str | None, Side, str], dict[str, Version]]] = {}
    for version in _with_companions(state, versions, form):
        where = (version.run, version.side, _directory(version))
        units.setdefault(version.unit, {}).setdefault(where, {})[version.file] = version
    return tuple(_one(unit, list(places.values()), vault, form) for unit, places in sorted(units.items()))


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
                and each.side is version.side
                and _directory(each) == _directory(version)
                and each.file in form.stream_files
                and each.file != version.file
            ]
    return found


def _directory(version: Version) -> str:
    return version.path[: -len(version.file) - 1]


def _one(unit: str, places: list[dict[str, Version]], vault: Vault, form: Format) -> KeptUnit:
    contents = {tuple(sorted((name, each.digest) for name, each in files.items())) for files in places}
    if len(contents) > 1:
        digests = sorted(digest[:16] for files in contents for _, digest in files)
        raise NoVersionError(f"several versions of {unit} were kept; name one by its digest: {', '.join(digests)}")
    files = places[-1]
    contents_of = {name: _content(each, vault, form) for name, each in files.items()}
    partial = unit == STREAM and _lacks_its_base(contents_of, form)
    _check(unit, {form.stream_files[0]: b"{}", **contents_of} if partial else contents_of, form)
    any_of_them = next(iter(files.values()))
    return KeptUnit(
        conversation=any_of_them.conversation,
        unit=unit,
        dirname=_directory(any_of_them).rpartition("/")[2],
        files={name: Kept(each.size, each.mtime_ns, each.xxh3, each.digest) for name, each in files.items()},
        partial=partial,
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


def _check(unit: str, contents: dict[str, StreamContent], form: Format) -> None:
    """Refuse what isn't valid: it is never written to either side (section 4)."""
    facts: object = None
    if unit == METADATA:
        content = contents[form.metadata_file]
        facts = form.read_metadata(content) if isinstance(content, bytes) else content
    elif unit == STREAM:
        facts = form.read_stream(contents, events=False)
    if isinstance(facts, Fault):
        message = f"{facts.file}: found {facts.found}, expected {facts.expected}; that version isn't written anywhere"
        raise NoVersionError(message, "`reconcile show` prints it")
