"""The schema of a plan in JSON, and reading a saved plan for `reconcile apply FILE`.

``--json`` and ``--out`` write by this schema; docs/plan.schema.json is generated from it. A saved plan is untrusted
input: places must lie below the two sides, and nothing in it is assumed to match the disk. Each fault in it is an error
of one line.
"""

from __future__ import annotations

import base64
import binascii
import json
import reprlib
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from reconcile.errors import ReconcileError
from reconcile.model.baseline import AsideKind, AsideRecord, Intent, IntentKind
from reconcile.model.format import EventSelection
from reconcile.model.options import Layout, Prefer, Take
from reconcile.model.plan import Action, Conflict, Heading, Item, Kind, Note, Plan, Precondition, Preserve, Rival, Write
from reconcile.model.policy import (
    Children,
    ForkRequest,
    GcRequest,
    LocalRequest,
    Policy,
    ProjectRequest,
    QuarantineRequest,
    RemoveRequest,
    Request,
    RestoreRequest,
    SetParentRequest,
    UndoRequest,
)
from reconcile.model.reasons import reason_of
from reconcile.model.snapshot import Side
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


class RivalModel(_Model):
    """One side's version in a conflict. The number of events and the time of the last one are a stream's."""

    mtime_ns: Number
    events: Number | None
    last: str | None
    only: Number | None = None
    values: list[str | None] = []


class ConflictModel(_Model):
    """Edits of one unit on both sides. ``takes`` is the side whose version a run takes; null: the unit is held."""

    conversation: str
    title: str | None
    unit: str
    case: Number
    store: RivalModel
    workspace: RivalModel
    keys: list[str]
    takes: Literal["store", "workspace"] | None
    reason: str
    forks: bool
    merges: bool = False
    resolve: list[str]


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
    event: str | None = None


class ForkModel(_Model):
    """``reconcile fork``."""

    command: Literal["fork"]
    id: str
    part: PartModel
    title: str | None
    local: bool
    uuid: str = ""


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
    choices: dict[str, dict[str, str]] = {}
    allow_secrets: dict[str, list[str]] = {}
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
    conflicts: list[ConflictModel] = []
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
    also: dict[str, dict[str, Any]] = {}
    """The plans of the other formats of the project, by the formats' names. A saved plan has none."""


def plan_schema() -> dict[str, object]:
    """Return the JSON Schema of a plan, as published in docs/plan.schema.json."""
    return PlanModel.model_json_schema() | {"$id": FORMAT}


_QUOTED = 200
"""Number of characters of the file that a message quotes."""


class PlanFileError(ReconcileError):
    """A saved plan can't be used; the message says which part, and why."""

    exit_code = 2


_AGAIN = "make the plan again with --out"


def read_plan(text: str, name: str) -> tuple[Plan, str, str]:
    """Parse a saved plan. Return it with the paths of the workspace and the store that it was made for.

    Raises:
        PlanFileError: the text is no valid plan, or one of another format version.
    """
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlanFileError(f"{name}: not a saved plan (invalid JSON: {error})", _AGAIN) from None
    version = raw.get("format") if isinstance(raw, dict) else None
    if version != FORMAT:
        other = f"not a plan of this version (its format is {reprlib.repr(version)}, not {FORMAT!r})"
        raise PlanFileError(f"{name}: {'not a saved plan' if version is None else other}", _AGAIN)
    if raw.get("also"):
        raise PlanFileError(
            f"{name}: plans of several formats", "make the plan of one again with --out, and choose it with --format"
        )
    try:
        model = PlanModel.model_validate(raw)
        _check_order(model.actions)
        return _plan(model), model.workspace, model.store
    except ValidationError as error:
        raise PlanFileError(f"{name}: {first_fault(error)}", _AGAIN) from None
    except (ValueError, binascii.Error) as error:
        raise PlanFileError(f"{name}: {_brief(str(error))}", _AGAIN) from None


def first_fault(error: ValidationError) -> str:
    """Return the first fault of a file as one line: its place, and what is wrong."""
    first = error.errors()[0]
    where = ".".join(_brief(str(part)) for part in first["loc"])
    return f"{where}: {_brief(first['msg'])}"


def _brief(text: str) -> str:
    """Shorten a text for a message: it may quote the file."""
    return text if len(text) <= _QUOTED else text[: _QUOTED - 1] + "…"


def _check_order(actions: list[ActionModel]) -> None:
    seen: set[str] = set()
    for action in actions:
        if action.id in seen:
            raise ValueError(f"two actions have the id {action.id!r}")
        if missing := set(action.needs) - seen:
            raise ValueError(f"action {action.id!r} needs {min(missing)!r}, which is not before it")
        seen.add(action.id)


def _plan(model: PlanModel) -> Plan:
    return Plan(
        layout=model.layout,
        actions=tuple(_action(action) for action in model.actions),
        held=tuple(_item(item) for item in model.held),
        aside=tuple(_item(item) for item in model.aside),
        notes=tuple(
            Note(
                conversation=note.conversation,
                unit=note.unit,
                reason=reason_of(note.reason),
                message=note.message,
            )
            for note in model.notes
        ),
        conflicts=tuple(_conflict(conflict) for conflict in model.conflicts),
        preserve=tuple(
            Preserve(
                conversation=version.conversation,
                unit=version.unit,
                place=place_from_json(version.path),
                size=version.size,
                mtime_ns=version.mtime_ns,
                digest=version.digest,
            )
            for version in model.preserve
        ),
        intents=tuple((key, _intent(intent)) for key, intent in model.intents.items()),
        asides=tuple(((aside.conversation, aside.unit), _aside(aside)) for aside in model.asides),
        tombstones=tuple((key, tuple(digests)) for key, digests in model.tombstones.items()),
        outline=tuple(Heading(entry.conversation, entry.title, entry.depth) for entry in model.outline),
        places=tuple(model.places.items()),
        voided=tuple(model.voided),
        policy=_policy(model.layout, model.policy),
        now_ns=model.now_ns,
        rooted=tuple(model.rooted),
    )


def _policy(layout: str, model: PolicyModel) -> Policy:
    return Policy(
        layout=Layout(layout),
        prefer=Prefer(model.prefer),
        accept_bulk=model.accept_bulk,
        only=frozenset(model.only),
        below=frozenset(model.below),
        decisions={key: Take(take) for key, take in model.decisions.items()},
        choices={(key, unit): Take(take) for key, choices in model.choices.items() for unit, take in choices.items()},
        allow_secrets={key: frozenset(fingerprints) for key, fingerprints in model.allow_secrets.items()},
        request=_request(model.request),
    )


def _request(model: RequestModel | None) -> Request | None:
    match model:
        case UndoModel():
            return UndoRequest(model.run)
        case RestoreModel():
            return RestoreRequest(model.version)
        case LocalModel():
            return LocalRequest(tuple(model.ids))
        case ProjectModel():
            records = None if model.records is None else tuple(model.records)
            return ProjectRequest(tuple(model.ids), model.everything, model.behind, model.ancestors, records)
        case RemoveModel():
            return RemoveRequest(tuple(model.ids), Children(model.children))
        case ReparentModel():
            return SetParentRequest(model.id, model.parent)
        case ForkModel():
            part = EventSelection(model.part.from_ns, model.part.until_ns, model.part.last, model.part.event)
            return ForkRequest(model.id, part, model.title, model.local, uuid=model.uuid)
        case QuarantineModel():
            return QuarantineRequest(tuple(model.ids))
        case CollectModel():
            return GcRequest(tuple(model.active))
        case None:
            return None


def _intent(model: IntentModel | None) -> Intent | None:
    return None if model is None else Intent(IntentKind(model.kind), model.waits_for, model.place, model.run)


def _aside(model: AsideModel) -> AsideRecord | None:
    return AsideRecord(AsideKind(model.kind), model.store, model.workspace) if model.kind is not None else None


def _item(model: ItemModel) -> Item:
    return Item(
        conversation=model.conversation,
        title=model.title,
        unit=model.unit,
        reason=reason_of(model.reason),
        message=model.message,
        resolve=tuple(model.resolve),
    )


def _conflict(model: ConflictModel) -> Conflict:
    store, workspace = (
        Rival(side.mtime_ns, side.events, side.last, side.only, tuple(side.values))
        for side in (model.store, model.workspace)
    )
    return Conflict(
        conversation=model.conversation,
        title=model.title,
        unit=model.unit,
        case=model.case,
        store=store,
        workspace=workspace,
        keys=tuple(model.keys),
        takes=None if model.takes is None else Side(model.takes),
        reason=reason_of(model.reason),
        forks=model.forks,
        merges=model.merges,
    )


def _action(model: ActionModel) -> Action:
    return Action(
        id=model.id,
        kind=Kind(model.kind),
        conversation=model.conversation,
        title=model.title,
        unit=model.unit,
        reason=reason_of(model.reason),
        case=model.case,
        source=place_from_json(model.source) if model.source else None,
        target=place_from_json(model.target),
        writes=tuple(_write(write) for write in model.writes),
        removes=tuple(place_from_json(place) for place in model.removes),
        mtime_ns=model.mtime_ns,
        bytes=model.bytes,
        events=(model.events.before, model.events.after) if model.events else None,
        needs=tuple(model.needs),
        expect=tuple(
            Precondition(place_from_json(expect.path), expect.size, expect.mtime_ns, expect.digest)
            for expect in model.expect
        ),
        touches=tuple(model.touches),
        together=model.together,
        words=tuple(model.words),
        makes=tuple(place_from_json(place) for place in model.makes),
        clears=tuple(place_from_json(place) for place in model.clears),
    )


def _write(model: WriteModel) -> Write:
    content = None if model.content is None else base64.b64decode(model.content, validate=True)
    source = place_from_json(model.source) if model.source else None
    target = place_from_json(model.target)
    return Write(target, source, content, model.size, model.mtime_ns, model.digest, model.kept)
