"""Reading a saved plan for `reconcile apply FILE`. The file is untrusted: each fault in it is an error of one line."""

from __future__ import annotations

import base64
import binascii
import json
import reprlib

from pydantic import ValidationError

from reconcile.errors import ReconcileError
from reconcile.model.baseline import AsideKind, AsideRecord, Intent, IntentKind
from reconcile.model.format import EventSelection
from reconcile.model.options import Layout, Prefer, Take
from reconcile.model.plan import Action, Heading, Item, Kind, Note, Plan, Precondition, Preserve, Write
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
from reconcile.serialization.plan_json import FORMAT, place_from_json
from reconcile.serialization.schema import (
    ActionModel,
    AsideModel,
    CollectModel,
    ForkModel,
    IntentModel,
    ItemModel,
    LocalModel,
    PlanModel,
    PolicyModel,
    ProjectModel,
    QuarantineModel,
    RemoveModel,
    ReparentModel,
    RequestModel,
    RestoreModel,
    UndoModel,
    WriteModel,
)

_QUOTED = 200
"""Number of characters of the file that a message quotes."""


class PlanFileError(ReconcileError):
    """A saved plan can't be used; the message says which part, and why."""

    exit_code = 2


def read_plan(text: str, name: str) -> tuple[Plan, str, str]:
    """Parse a saved plan. Return it with the paths of the workspace and the store that it was made for.

    Raises:
        PlanFileError: the text is no valid plan, or one of another format version.
    """
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlanFileError(f"{name}: found no JSON ({error}), expected a plan saved with --out") from None
    version = raw.get("format") if isinstance(raw, dict) else None
    if version != FORMAT:
        shown = "no format" if version is None else f"the format {reprlib.repr(version)}"
        raise PlanFileError(f"{name}: found {shown}, expected {FORMAT!r}", "make it again with --out")
    try:
        model = PlanModel.model_validate(raw)
        _check_order(model.actions)
        return _plan(model), model.workspace, model.store
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(_brief(str(part)) for part in first["loc"])
        raise PlanFileError(f"{name}: {where}: {_brief(first['msg'])}", "make it again with --out") from None
    except (ValueError, binascii.Error) as error:
        raise PlanFileError(f"{name}: {_brief(str(error))}", "make it again with --out") from None


def _brief(text: str) -> str:
    """Shorten a text for a message: it may quote the file."""
    return text if len(text) <= _QUOTED else text[: _QUOTED - 1] + "…"


def _check_order(actions: list[ActionModel]) -> None:
    seen: set[str] = set()
    for action in actions:
        if action.id in seen:
            raise ValueError(f"found two actions with the id {action.id!r}")
        if missing := set(action.needs) - seen:
            raise ValueError(f"action {action.id!r} needs {min(missing)!r}, which doesn't come before it")
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
            part = EventSelection(model.part.from_ns, model.part.until_ns, model.part.last)
            return ForkRequest(model.id, part, model.title, model.local)
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
