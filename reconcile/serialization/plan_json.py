"""Writing a plan as JSON: ``{"format": "reconcile.plan/1", ...}`` (docs/json.md#a-plan).

This module builds plain dictionaries, so that ``--json`` starts fast. Reading a saved plan uses the models of
`reconcile.serialization.plan_file`, which also generate the published JSON Schema.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins

from reconcile.model.commands import typed
from reconcile.model.policy import REQUEST_COMMANDS, ForkRequest
from reconcile.model.snapshot import Place, Side

if TYPE_CHECKING:
    from reconcile.model.baseline import AsideRecord, Intent
    from reconcile.model.plan import Action, Conflict, Item, Plan, Precondition, Preserve, Write
    from reconcile.model.policy import Policy, Request

FORMAT: Final = "reconcile.plan/1"

Json = dict[str, Any]
_SIDES = tuple(side.value for side in Side)


def plan_to_json(plan: Plan, *, workspace: str, store: str) -> Json:
    """Return the JSON object of a plan. ``workspace`` and ``store`` are the paths of the two roots."""
    return {
        "format": FORMAT,
        "workspace": workspace,
        "store": store,
        "layout": plan.layout,
        "actions": [action_to_json(action) for action in plan.actions],
        "held": [item_to_json(item) for item in plan.held],
        "aside": [item_to_json(item) for item in plan.aside],
        "notes": [
            {
                "conversation": note.conversation,
                "unit": note.unit,
                "reason": note.reason.value,
                "message": note.message,
            }
            for note in plan.notes
        ],
        "conflicts": [conflict_to_json(conflict) for conflict in plan.conflicts],
        "summary": plan.summary(),
        "preserve": [_preserve(version) for version in plan.preserve],
        "intents": {key: _intent(intent) for key, intent in plan.intents},
        "asides": [_aside(key, record) for key, record in plan.asides],
        "tombstones": {key: list(digests) for key, digests in plan.tombstones},
        "outline": [
            {"conversation": entry.conversation, "title": entry.title, "depth": entry.depth} for entry in plan.outline
        ],
        "places": dict(plan.places),
        "voided": list(plan.voided),
        "policy": _policy(plan.policy),
        "now_ns": plan.now_ns,
        "rooted": list(plan.rooted),
    }


def action_to_json(action: Action) -> Json:
    """Return the JSON object of one action."""
    return {
        "id": action.id,
        "kind": action.kind.value,
        "case": action.case,
        "conversation": action.conversation,
        "title": action.title,
        "unit": action.unit,
        "reason": action.reason.value,
        "source": place_to_json(action.source),
        "target": place_to_json(action.target),
        "bytes": action.bytes,
        "events": None if action.events is None else {"before": action.events[0], "after": action.events[1]},
        "needs": list(action.needs),
        "expect": [_expect(expect) for expect in action.expect],
        "writes": [_write(write) for write in action.writes],
        "removes": [place_to_json(place) for place in action.removes],
        "mtime_ns": action.mtime_ns,
        "touches": list(action.touches),
        "together": action.together,
        "words": list(action.words),
        "makes": [place_to_json(place) for place in action.makes],
        "clears": [place_to_json(place) for place in action.clears],
    }


def place_to_json(place: Place | None) -> str | None:
    """Return ``store:path`` or ``workspace:path``. Bytes that aren't UTF-8 are lone surrogates, which JSON escapes."""
    return None if place is None else place.side + ":" + place.path


def place_from_json(text: str) -> Place:
    """Return the place of ``store:path`` or ``workspace:path``.

    Raises:
        ValueError: the side is unknown, or the path leads out of it.
    """
    side, _, path = text.partition(":")
    parts = path.split("/")
    if side not in _SIDES or "\0" in path or not {"", ".", ".."}.isdisjoint(parts):
        raise ValueError(f"{text!r} is not a path below 'store:' or 'workspace:'")
    return Place(Side(side), path)


def _policy(policy: Policy) -> Json:
    """Return the options of this run. Settings are left out: `reconcile apply` reads them again."""
    return {
        "prefer": policy.prefer.value,
        "accept_bulk": policy.accept_bulk,
        "only": sorted(policy.only),
        "below": sorted(policy.below),
        "decisions": {key: take.value for key, take in sorted(policy.decisions.items())},
        "choices": _choices(policy),
        "allow_secrets": {
            key: sorted(fingerprints or ()) for key, fingerprints in sorted(policy.allow_secrets.items())
        },
        "request": _request(policy.request),
    }


def _choices(policy: Policy) -> Json:
    """Return the answers about conflicts, by conversation and unit."""
    choices: Json = {}
    for (conversation, unit), take in sorted(policy.choices.items()):
        choices.setdefault(conversation, {})[unit] = take.value
    return choices


def _request(request: Request | None) -> Json | None:
    if request is None:
        return None
    values = to_builtins(request)
    if isinstance(request, ForkRequest):
        values.pop("continuation")  # of a merge of git, whose plan is never saved
    return {"command": REQUEST_COMMANDS[type(request)], **values}


def item_to_json(item: Item) -> Json:
    """Return the JSON object of a held or set-aside item."""
    return {
        "conversation": item.conversation,
        "title": item.title,
        "unit": item.unit,
        "reason": item.reason.value,
        "message": item.message,
        "resolve": list(item.resolve),
    }


def conflict_to_json(conflict: Conflict) -> Json:
    """Return the JSON object of a conflict, with the commands that choose a side."""
    return {
        "conversation": conflict.conversation,
        "title": conflict.title,
        "unit": conflict.unit,
        "case": conflict.case,
        "store": to_builtins(conflict.store),
        "workspace": to_builtins(conflict.workspace),
        "keys": list(conflict.keys),
        "takes": None if conflict.takes is None else conflict.takes.value,
        "reason": conflict.reason.value,
        "forks": conflict.forks,
        "merges": conflict.merges,
        "resolve": [f"reconcile resolve {typed(conflict.conversation)} --take {side}" for side in Side],
    }


def _expect(expect: Precondition) -> Json:
    return {
        "path": place_to_json(expect.place),
        "size": expect.size,
        "mtime_ns": expect.mtime_ns,
        "digest": expect.digest,
    }


def _write(write: Write) -> Json:
    return {
        "target": place_to_json(write.target),
        "source": place_to_json(write.source),
        "content": None if write.content is None else base64.b64encode(write.content).decode(),
        "size": write.size,
        "mtime_ns": write.mtime_ns,
        "digest": write.digest,
        "kept": write.kept,
    }


def _preserve(version: Preserve) -> Json:
    return {
        "conversation": version.conversation,
        "unit": version.unit,
        "path": place_to_json(version.place),
        "size": version.size,
        "mtime_ns": version.mtime_ns,
        "digest": version.digest,
    }


def _intent(intent: Intent | None) -> Json | None:
    if intent is None:
        return None
    return {"kind": intent.kind.value, "waits_for": intent.waits_for, "place": intent.place, "run": intent.run}


def _aside(key: tuple[str, str], record: AsideRecord | None) -> Json:
    document = {"conversation": key[0], "unit": key[1], "kind": None, "store": None, "workspace": None}
    if record is not None:
        document |= {"kind": record.kind.value, "store": record.store, "workspace": record.workspace}
    return document
