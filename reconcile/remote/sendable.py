"""Names and records that no machine takes from a remote (docs/design/remotes.md#sync).

A sync does not send them. If an earlier program, or another one, has sent such a record, a machine may replace it if
it has had all contents that the record names. So no newer content of another machine is lost.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from reconcile.model.snapshot import ARCHIVE, METADATA, STREAM, Side
from reconcile.remote.tree import FileRecord, Record, digests_of, fault_of_name, is_too_large

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from reconcile.model.baseline import Baseline
    from reconcile.model.format import Format
    from reconcile.model.plan import Plan
    from reconcile.model.snapshot import Copy, Snapshot

_EACH = 512
"""More bytes than a record has for a file, but for its name."""
_NAMES = (1 << 19) // _EACH
"""Files of a conversation, at most, whose record is small whatever their names are."""


def unsendable(plan: Plan, remote: Snapshot) -> dict[str, str]:
    """Return the conversations of which a plan would send what no machine takes, each with what a person can do.

    ``remote`` is the remote's tree before the plan.
    """
    found = dict[str, str]()
    for action in plan.actions:
        if action.target.side is not Side.WORKSPACE or action.conversation in found:
            continue
        for path in (action.target.path, *(write.target.path for write in action.writes)):
            if fault := fault_of_name(path):
                shown = os.fsencode(path).decode(errors="backslashreplace")
                found[action.conversation] = f"store:{shown}: {fault}; rename the file there, then run the sync again"
                break
    for conversation, names in _many(plan, remote):
        files = {name: FileRecord("0" * 32, 1 << 20, 1 << 60) for name in map(_below, names)}
        if conversation not in found and is_too_large(Record(conversation, conversation, files)):
            words = f"it has {len(names)} files, more than a sync takes"
            found[conversation] = f"{words}; put some into an archive, or elsewhere, then run the sync again"
    return found


def _below(path: str) -> str:
    """Return a path below the directory of its conversation."""
    return path.removeprefix(f"{ARCHIVE}/").partition("/")[2]


def _many(plan: Plan, remote: Snapshot) -> Iterator[tuple[str, set[str]]]:
    """Yield the conversations with many or long names in the remote's tree after a plan, and these names."""
    changed = dict[str, tuple[set[str], set[str]]]()
    for action in plan.actions:
        if action.target.side is Side.WORKSPACE:
            written, removed = changed.setdefault(action.conversation, (set(), set()))
            written.update(write.target.path for write in action.writes)
            removed.update(place.path for place in action.removes)
    there = {copy.conversation: [f"{copy.path}/{f.name}" for f in copy.files] for copy in remote.copies}
    for conversation, (written, removed) in changed.items():
        names = {*there.get(conversation, ()), *written} - removed
        if len(names) > _NAMES or sum(map(len, names)) > _NAMES * _EACH // 6:
            yield conversation, names


def is_known(record: Record, copies: Sequence[Copy], baseline: Baseline, fmt: Format) -> bool:
    """Tell whether this machine has or had all contents that a record names, and which no machine takes from it."""
    key = record.id
    known = {digest for copy in copies for digest in digests_of(_files(copy), fmt)}
    known |= {digest for unit in (METADATA, STREAM) for digest in baseline.history.get((key, unit), ())}
    known |= baseline.tombstones.get(key, frozenset())
    if (agreed := baseline.agreed.get(key)) is not None:
        known |= set(agreed.units.values())
    return known.issuperset(digests_of({name: file.digest for name, file in record.files.items()}, fmt))


def _files(copy: Copy) -> Mapping[str, str]:
    return {file.name: file.digest for file in copy.files if file.digest is not None}
