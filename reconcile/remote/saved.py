"""A saved plan of a sync: the remote's commit, and the digest of all steps (docs/design/remotes.md#sync).

It has no steps to carry out, as a sync makes a commit of what both sides have then. `reconcile apply FILE` plans again,
and changes nothing unless commit and steps are the same.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from reconcile.fs.hashing import digest
from reconcile.remote.known import Half, Planned

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconcile.model.plan import Plan
    from reconcile.model.snapshot import Digest

FORMAT = "reconcile.sync-plan/1"


class SavedSync(Struct, frozen=True):
    """The file. ``report`` is the JSON of the dry run, for people and other programs."""

    format: str
    workspace: str
    store: str
    remote: str
    half: str
    only: list[str]
    allow_bulk_removal: bool
    planned: Planned
    report: dict[str, Any]


def steps_of(plan: Plan, removals: Iterable[str]) -> Digest:
    """Return the digest of the steps of a plan, with the conversations that would be removed here first."""
    steps = [
        (
            action.kind,
            action.conversation,
            action.unit,
            action.source,
            action.target,
            [(write.target, write.digest) for write in action.writes],
            [(expected.place, expected.digest) for expected in action.expect],
            action.removes,
        )
        for action in plan.actions
    ]
    return digest(msgspec.json.encode((steps, sorted(removals))))


def saved_text(saved: SavedSync) -> str:
    """Return the text of the file."""
    return json.dumps(msgspec.to_builtins(saved), indent=2) + "\n"


def read_saved_sync(text: str) -> SavedSync:
    """Parse the file. Raises `ValueError`."""
    try:
        saved = msgspec.json.decode(text, type=SavedSync)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if saved.format != FORMAT or saved.half not in Half.__members__:
        raise ValueError(f"its format is not {FORMAT}, or it has no half of a sync")
    return saved
