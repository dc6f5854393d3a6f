"""Decisions that a person has taken about two versions, as requests that wait: `resolve`, and answers about conflicts.

A decision applies to the contents that the person has chosen from, and to what its own run writes: a killed run may
have written some units, and others not. If a side has any other content, the decision is outdated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.model.baseline import DecidedUnit, PendingRequest, Verb
from reconcile.model.commands import typed
from reconcile.model.options import Take
from reconcile.model.snapshot import METADATA, Side
from reconcile.model.units import unit_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconcile.model.plan import Action
    from reconcile.model.snapshot import Digest
    from reconcile.model.units import Rules
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.views import SideView, View

_TAKEN = (Take.STORE, Take.WORKSPACE, Take.BOTH)


def content_of(seen: SideView, rules: Rules) -> Digest | None:
    """Return the digest of everything that one side has of a conversation; None if it is not there."""
    if seen.main is None:
        return None
    rows = sorted((file.name, file.digest or "") for copy in (seen.main, *seen.stale) for file in copy.files)
    return rules.digest(repr(rows).encode())


def has_equal_content(view: View, rules: Rules) -> bool:
    """Tell whether both sides have the same files of a conversation."""
    return content_of(view.store, rules) == content_of(view.workspace, rules)


def requests_of(
    context: PlanningContext, decisions: Mapping[str, Take], choices: Mapping[tuple[str, str], Take]
) -> dict[tuple[str, Verb], PendingRequest]:
    """Return the requests of decisions about whole conversations, and of answers about their conflicts.

    A decision to leave both sides alone is recorded elsewhere, and one to skip them concerns one run.
    """
    requests: dict[tuple[str, Verb], PendingRequest] = {}
    answers: dict[str, list[DecidedUnit]] = {}
    for (conversation, unit), take in sorted(choices.items()):
        if take in _TAKEN and conversation in context.views:
            answers.setdefault(conversation, []).append(_decided(context.views[conversation], unit, take.value))
    for conversation, decided in answers.items():
        requests[conversation, Verb.RESOLVE] = PendingRequest(decided=tuple(decided))
    for conversation, take in decisions.items():
        if take in _TAKEN and conversation in context.views:
            view = context.views[conversation]
            units = tuple(_decided(view, unit) for unit in _units(view))
            requests[conversation, Verb.RESOLVE] = PendingRequest(value=take.value, decided=units)
    return requests


def _decided(view: View, unit: str, take: str | None = None) -> DecidedUnit:
    return DecidedUnit(unit, tuple(view.side(side).raw(unit) for side in Side), take)


def _units(view: View) -> list[str]:
    return sorted(view.store.units.keys() | view.workspace.units.keys())


def metadata_written(actions: Iterable[Action], metadata_file: str) -> dict[str, list[Digest]]:
    """Return the digests of the metadata that actions write, by conversation: merged, or with another parent."""
    written: dict[str, list[Digest]] = {}
    for action in actions:
        for write in action.writes:
            if write.target.path.rpartition("/")[2] == metadata_file:
                written.setdefault(action.conversation, []).append(write.digest)
    return written


def with_written(waiting: PendingRequest, written: Iterable[Digest]) -> PendingRequest:
    """Return a decision that applies to this metadata, too, which its own run writes."""
    decided = tuple(
        replace(each, seen=tuple(dict.fromkeys((*each.seen, *written)))) if each.unit == METADATA else each
        for each in waiting.decided
    )
    return replace(waiting, decided=decided)


def is_open(view: View, waiting: PendingRequest, rules: Rules) -> bool:
    """Tell whether a decision still applies, and isn't carried out completely."""
    if waiting.value is None:
        return bool(answers_of(view, waiting))
    return not has_equal_content(view, rules) and not _is_outdated(view, waiting, rules)


def answers_of(view: View, waiting: PendingRequest) -> dict[tuple[str, str], Take]:
    """Return the answers about conflicts of one conversation that still apply, and aren't carried out."""
    return {
        (view.id, each.unit): Take(each.take)
        for each in waiting.decided
        if each.take is not None and _differs(view, each.unit) and _is_seen(view, each)
    }


def outdated_words(view: View, waiting: PendingRequest, rules: Rules) -> str | None:
    """Return the decision, or the part of it, that doesn't apply any more, in words; None: all of it does."""
    if waiting.value is None:
        outdated = [each for each in waiting.decided if _differs(view, each.unit) and not _is_seen(view, each)]
        return _answers_text(outdated) if outdated else None
    if has_equal_content(view, rules) or not _is_outdated(view, waiting, rules):
        return None
    return decision_text(view.id, waiting)


def decision_text(conversation: str, waiting: PendingRequest) -> str:
    """Return a decision in words: the command, or the answers about conflicts."""
    if waiting.value is None:
        return _answers_text(waiting.decided)
    return f"`resolve {typed(conversation)} --take {waiting.value}`"


def _answers_text(decided: Iterable[DecidedUnit]) -> str:
    return f"your decision ({', '.join(f'{unit_text(each.unit)}: {each.take}' for each in decided)})"


def _is_outdated(view: View, waiting: PendingRequest, rules: Rules) -> bool:
    """Tell whether a side has another content than those that a decision about the whole conversation is about."""
    if not waiting.decided:  # an earlier version of this program has recorded it
        now = content_of(view.store, rules), content_of(view.workspace, rules)
        return now != (waiting.store, waiting.workspace)
    known = {each.unit for each in waiting.decided}
    return not known.issuperset(_units(view)) or not all(_is_seen(view, each) for each in waiting.decided)


def _differs(view: View, unit: str) -> bool:
    return view.store.raw(unit) != view.workspace.raw(unit)


def _is_seen(view: View, decided: DecidedUnit) -> bool:
    return all(view.side(side).raw(decided.unit) in decided.seen for side in Side)
