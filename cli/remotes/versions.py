"""The version of a conversation that a remote had, spelled ``ID@REMOTE``, ``ID@REMOTE:COMMIT`` or with ``:UNIT``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from reconcile.engine.versions import NoVersionError, checked_unit, split_version
from reconcile.inspect.sources import Source, SourceFile
from reconcile.model.past_run import Restorable, SavedFile, SavedUnit
from reconcile.model.snapshot import Fault, Metadata
from reconcile.model.units import spelled_units
from reconcile.remote.past import SHOWN, past_version
from reconcile.remote.place import remotes

from ..output.text import format_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.engine.session import Session
    from reconcile.remote.past import PastVersion

_EARLIER = 5
"""Commits with earlier versions that are named."""


class _Named(NamedTuple):
    """A version that a remote had, its remote, and the part of it that is named; empty: all of it."""

    remote: str
    version: PastVersion
    unit: str


def _named(session: Session, find: Callable[[str], str], name: str, spelled: str) -> _Named | None:
    """Return the version that is spelled; None if no remote has this name. Raises as `remote_source`."""
    remote, _, rest = spelled.partition(":")
    known = remotes(session.directory, session.roots.name_elsewhere)
    place = next((each for each in known if each.name == remote), None)
    if place is None:
        return None
    text, _, unit = rest.partition(":")
    form = session.format
    full = form.parse_id(name)
    conversation = full if full is not None and form.is_whole(name) else find(name)
    return _Named(remote, past_version(place.engine, form, place, conversation, text), unit)


def remote_source(session: Session, find: Callable[[str], str], name: str, spelled: str) -> tuple[Source, str] | None:
    """Return a version that a remote had, and the part of it that is named; None if no remote has this name.

    Raises:
        NoCommitError: the remote did not have it.
        RemoteError: this machine can't read what the remote has.
    """
    if (named := _named(session, find, name, spelled)) is None:
        return None
    form, (remote, found, unit) = session.format, named
    conversation, at = found.record.id, f"{remote}:{found.record.path}"
    files = tuple(
        SourceFile(
            each,
            form.unit_of(each) or "",
            file.size,
            file.mtime_ns,
            f"{at}/{each}" if each else at,
            found.commit[:SHOWN],
        )
        for each, file in found.record.files.items()
    )
    metadata = form.read_metadata(found.contents.get(form.metadata_file, b""))
    source = Source(
        conversation,
        f"{remote}, commit {found.commit[:SHOWN]} of {format_time(found.time_ns)}",
        f"{conversation}@{remote}:{found.commit[:SHOWN]}",
        found.contents,
        tuple(Fault(each, why, "the content that was sent") for each, why in found.wrong.items()),
        files,
        title=metadata.title if isinstance(metadata, Metadata) else None,
        others=tuple(
            (f"{conversation}@{remote}:{commit[:SHOWN]}", f"the version of {format_time(time_ns)}")
            for commit, time_ns in found.earlier[:_EARLIER]
        ),
    )
    return source, unit


def remote_version_name(session: Session, find: Callable[[str], str], text: str) -> str | None:
    """Return the name of a version of a remote, with the id and the commit that a text means; None if it means none.

    Raises as `remote_source`.
    """
    name, at, spelled = split_version(text)
    if not at or (named := _named(session, find, name, spelled)) is None:
        return None
    unit = f":{named.unit}" if named.unit else ""
    return f"{named.version.record.id}@{named.remote}:{named.version.commit[:SHOWN]}{unit}"


def remote_units(session: Session, text: str) -> Restorable | None:
    """Return what a version of a remote has, by its name; None if this is none of a remote.

    Raises:
        NoVersionError: it can't be read, or is invalid, or has no such unit.
        NoCommitError, RemoteError: as `remote_source`.
    """
    name, at, spelled = split_version(text)
    if not at or (named := _named(session, lambda whole: whole, name, spelled)) is None:
        return None
    form, found, units = session.format, named.version, dict[str, dict[str, SavedFile]]()
    wanted = spelled_units(named.unit) if named.unit else ()
    for file, known in found.record.files.items():
        unit = form.unit_of(file) or ""
        if wanted and unit not in wanted:
            continue
        if file in found.wrong:
            raise NoVersionError(f"{text}: {file or found.record.name}: {found.wrong[file]}", "name another commit")
        content = found.contents[file]
        units.setdefault(unit, {})[file] = SavedFile(known.size, known.mtime_ns, known.digest, content=content)
    if not units:
        raise NoVersionError(f"{text}: it has no {named.unit}", f"restore all of it: {found.record.id}@{named.remote}")
    record = found.record
    saved = (SavedUnit(record.id, unit, record.name, files) for unit, files in sorted(units.items()))
    return Restorable(tuple(checked_unit(each, found.contents, form) for each in saved))
