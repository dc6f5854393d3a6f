"""The schema of a plan in JSON, as ``--json`` and ``--out`` write it; docs/plan.schema.json is generated from it.

A saved plan is untrusted input: places must lie below the two sides, and nothing in it is assumed to match the disk.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from reconcile.serialization.plan_json import FORMAT, place_from_json


def _is_place(text: str) -> str:
    place_from_json(text)
    return text


PlaceText = Annotated[str, AfterValidator(_is_place)]
Number = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""A size or a time, as the disk and the database know them."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class EventsModel(_Model):
    """The change in the number of events."""

    before: Number
    after: Number


class ExpectModel(_Model):
    """The state of a place that is required right before the action; a null digest: no file."""

    path: PlaceText
    size: Number
    mtime_ns: Number
    digest: str | None


class WriteModel(_Model):
    """One file to be written, from a source or with the content given in base64."""

    target: PlaceText
    source: PlaceText | None
    content: str | None
    size: Number
    mtime_ns: Number
    digest: str
    kept: str | None = None


class ActionModel(_Model):
    """One action."""

    id: str
    kind: str
    case: Number | None
    conversation: str
    title: str | None
    unit: str
    reason: str
    source: PlaceText | None
    target: PlaceText
    bytes: Number
    events: EventsModel | None
    needs: list[str]
    expect: list[ExpectModel]
    writes: list[WriteModel]
    removes: list[PlaceText]
    mtime_ns: Number | None
    touches: list[str]
    together: str | None
    words: list[str] = []
    makes: list[PlaceText] = []
    clears: list[PlaceText] = []


class ItemModel(_Model):
    """An item that is held or set aside."""

    conversation: str | None
    title: str | None
    unit: str
    reason: str
    message: str
    resolve: list[str]


class NoteModel(_Model):
    """A note."""

    conversation: str | None
    unit: str
    reason: str
    message: str


class PreserveModel(_Model):
    """A version that is saved to the vault although nothing replaces it."""

    conversation: str
    unit: str
    path: PlaceText
    size: Number
    mtime_ns: Number
    digest: str


class IntentModel(_Model):
    """Whether a conversation belongs in a workspace."""

    kind: str
    waits_for: str | None
    place: str | None
    run: str | None


class AsideModel(_Model):
    """A state that is left alone until a side changes; a null kind: released."""

    conversation: str
    unit: str
    kind: str | None
    store: str | None
    workspace: str | None


class OutlineModel(_Model):
    """A conversation that the plan mentions, in the order of the tree."""

    conversation: str
    title: str | None
    depth: Annotated[int, Field(ge=0, lt=10**6)]


class UndoModel(_Model):
    """``reconcile undo``."""

    command: Literal["undo"]
    run: str


class RestoreModel(_Model):
    """``reconcile restore``."""

    command: Literal["restore"]
    version: str


class LocalModel(_Model):
    """``reconcile local``."""

    command: Literal["local"]
    ids: list[str]


class ProjectModel(_Model):
    """``reconcile project``."""

    command: Literal["project"]
    ids: list[str]
    everything: bool
    behind: bool
    ancestors: bool
    records: list[Number] | None


class RemoveModel(_Model):
    """``reconcile rm``."""

    command: Literal["rm"]
    ids: list[str]
    children: Literal["refuse", "cascade", "promote"]


class ReparentModel(_Model):
    """``reconcile set-parent``."""

    command: Literal["set-parent"]
    id: str
    parent: str | None


class CollectModel(_Model):
    """``reconcile gc``."""

    command: Literal["gc"]
    active: list[str]


class PartModel(_Model):
    """The part of a stream that a fork keeps."""

    from_ns: Number | None
    until_ns: Number | None
    last: Annotated[int, Field(ge=0)] | None


class ForkModel(_Model):
    """``reconcile fork``."""

    command: Literal["fork"]
    id: str
    part: PartModel
    title: str | None
    local: bool


class QuarantineModel(_Model):
    """``reconcile doctor --quarantine``."""

    command: Literal["doctor"]
    ids: list[str]


RequestModel = Annotated[
    ForkModel
    | QuarantineModel
    | UndoModel
    | RestoreModel
    | LocalModel
    | ProjectModel
    | RemoveModel
    | ReparentModel
    | CollectModel,
    Field(discriminator="command"),
]


class PolicyModel(_Model):
    """The options of the run."""

    prefer: str
    accept_bulk: bool
    only: list[str]
    below: list[str]
    decisions: dict[str, str]
    request: RequestModel | None = None


class PlanModel(_Model):
    """The whole plan."""

    format: Literal["reconcile.plan/1"]
    workspace: str
    store: str
    layout: Literal["nested", "flat"]
    actions: list[ActionModel]
    held: list[ItemModel]
    aside: list[ItemModel]
    notes: list[NoteModel]
    summary: dict[str, int]
    preserve: list[PreserveModel]
    intents: dict[str, IntentModel | None]
    asides: list[AsideModel]
    tombstones: dict[str, list[str]]
    outline: list[OutlineModel]
    places: dict[str, str]
    voided: list[str]
    policy: PolicyModel
    now_ns: Number
    rooted: list[str]


def plan_schema() -> dict[str, object]:
    """Return the JSON Schema of a plan, as published in docs/plan.schema.json."""
    return PlanModel.model_json_schema() | {"$id": FORMAT}
