"""The version of a conversation that a remote had, spelled ``ID@REMOTE``, ``ID@REMOTE:COMMIT`` or with ``:UNIT``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.inspect.sources import Source, SourceFile
from reconcile.model.snapshot import Fault, Metadata
from reconcile.remote.past import SHOWN, past_version
from reconcile.remote.place import remotes

from ..output.text import format_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.engine.session import Session

_EARLIER = 5
"""Commits with earlier versions that are named."""


def remote_source(session: Session, find: Callable[[str], str], name: str, spelled: str) -> tuple[Source, str] | None:
    """Return a version that a remote had, and the part of it that is named; None if no remote has this name.

    Raises:
        NoCommitError: the remote did not have it.
        RemoteError: this machine can't read what the remote has.
    """
    remote, _, rest = spelled.partition(":")
    known = remotes(session.directory, session.roots.name_elsewhere)
    place = next((each for each in known if each.name == remote), None)
    if place is None:
        return None
    text, _, unit = rest.partition(":")
    form = session.format
    full = form.parse_id(name)
    conversation = full if full is not None and form.is_whole(name) else find(name)
    found = past_version(place.engine, form, place, conversation, text)
    at = f"{remote}:{found.record.path}"
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
