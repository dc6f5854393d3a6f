"""A saved plan of a sync: the remote's commit, and the digest of all steps (docs/design/remotes.md#sync).

It has no steps to carry out, as a sync makes a commit of what both sides have then. `reconcile apply FILE` plans again,
and changes nothing unless commit and steps are the same. As any saved plan, the file is untrusted input.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reconcile.serialization.plan_file import Number, first_fault

FORMAT: Literal["reconcile.sync-plan/1"] = "reconcile.sync-plan/1"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PlannedModel(_Model):
    """`reconcile.remote.known.Planned`."""

    commit: str | None
    steps: str
    now_ns: Number


class SavedSync(_Model):
    """The file. ``report`` is the JSON of the dry run, for people and other programs."""

    format: Literal["reconcile.sync-plan/1"]
    workspace: str
    store: str
    remote: str
    half: Annotated[str, Field(pattern="^(BOTH|PULL|PUSH)$")]
    only: list[str]
    allow_bulk_removal: bool
    planned: PlannedModel
    report: dict[str, Any]


def saved_text(saved: SavedSync) -> str:
    """Return the text of the file."""
    return json.dumps(saved.model_dump(), indent=2) + "\n"


def read_saved_sync(text: str) -> SavedSync:
    """Parse the file. Raises `ValueError`, with a message of one line."""
    try:
        return SavedSync.model_validate(json.loads(text))
    except ValidationError as error:
        raise ValueError(first_fault(error)) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"invalid JSON: {error}") from None
