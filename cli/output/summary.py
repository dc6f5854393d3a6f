"""The end of a report: failed and skipped actions, and the summary of what is planned or done."""

from __future__ import annotations

import errno
import os
from collections import Counter
from typing import TYPE_CHECKING

from reconcile.apply.executor import Result
from reconcile.model.options import Take
from reconcile.model.plan import counted_as
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import WHOLE, Side

from .screen import command_lines, wrap
from .text import SETTLED_COLOR, Style, clean, message_text, shorten, visible, width
from .words import is_rename, phrase_of, state_counts, summed, verb_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reconcile.apply.executor import ActionResult, Outcome
    from reconcile.model.format import Places
    from reconcile.model.plan import Action, Item, Plan
    from reconcile.model.policy import Policy


_PLACES = (*(f"{side}:" for side in Side), "/", "~/")
"""The beginnings of a message that names a place: one of a side, or a path."""
_HINTS = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EROFS: "make the disk writable (remount it)",
    errno.EPERM: "remove the immutable flag (chattr -i), or check the owner",
    errno.EACCES: "check the permissions",
}
"""The hint for an error of the system."""
NO_FILE = "No file to change."
"""The last line of a command that only records something."""
_DECISIONS = (Reason.ASKED, Reason.LOCALIZED)
"""The reasons of notes on a decision that needs no step."""


def summary(
    plan: Plan,
    style: Style,
    *,
    done: Outcome | None = None,
    noun: str = "conversation",
    sides: str = "",
    back: str = "",
    is_public: bool = True,
    places: Places | None = None,
    idle: str = "Nothing to do.",
) -> list[str]:
    """Return the last line, wrapped: what is planned or, with an outcome, done; what is left; the run and its undo.

    ``sides``: the options for the two sides, which the command to undo repeats. ``back``: that command, `undo` or
    `redo`; empty: none is named. ``is_public``: the workspace lies in the project, where others see it. ``idle``: what
    is printed without any action.
    """
    results = [] if done is None else list(done.results.values())
    actions = plan.actions if done is None else [entry.action for entry in results if entry.is_done]
    steps = summed((_phrase(action, places, is_public=is_public) for action in actions), done=done is not None)
    for result in (Result.SKIPPED, Result.FAILED):
        count = len({entry.action.conversation for entry in results if entry.result is result})
        steps += [f"{count} {result}"] if count else []
    left = (
        [_conflicts(count, word="decided" if done is not None else "")]
        if steps and (count := _decided(plan, results))
        else []
    )
    skipped = sum(is_skipped(item, plan.policy) for item in plan.held)
    left += [_conflicts(skipped, word="skipped")] if skipped else []
    blocked = _number_of((item for item in plan.held if not is_skipped(item, plan.policy)), places)
    left += [f"{blocked} blocked"] if blocked else []
    left += [f"{_number_of(plan.aside, places)} left alone"] if plan.aside else []
    if steps:
        begin = "Plan: " if done is None else "Done: " if actions else ""
        text = "; ".join((f"{begin}{', '.join(steps)}", *left)) + "."
    else:
        decides = any(note.reason in _DECISIONS for note in plan.notes)  # that is recorded all the same
        said = NO_FILE if decides else idle
        text = nothing_to_do(left, plan.states, noun, is_public=is_public, idle=said)
    troubled = plan.held or any(not entry.is_done for entry in results)
    color = "yellow" if troubled else SETTLED_COLOR if done is not None or not steps else None
    run, way = (None, "") if done is None else _undo(done, back, sides)
    after = f" (run {run}; {back} with: {way})" if way else f" (run {run})" if run else ""
    if style.columns is None or width(text + after) <= style.columns:
        return [style(text + after, color, bold=True)]
    lines = [style(line, color, bold=True) for line in wrap(text, style.columns)]
    if way and len(f"Run {run}; {back} with: {way}") <= style.columns:
        return [*lines, f"Run {run}; {back} with: {way}"]
    if way:
        return [*lines, f"Run {run}; {back} with:", *command_lines(way, style.columns, "  ")]
    return [*lines, f"Run {run}."] if run else lines


def nothing_to_do(
    left: Iterable[str],
    states: Iterable[tuple[str, int]],
    noun: str,
    *,
    is_public: bool = True,
    idle: str = "Nothing to do.",
) -> str:
    """Return the summary of a plan without actions. ``left``: counts of what is blocked or left alone."""
    parts = ", ".join(left)
    text = f"{parts}; nothing else to do." if parts else idle
    counts = tuple(states)
    return f"{text} {state_counts(counts, noun, is_public=is_public)}." if counts and not parts else text


def _number_of(items: Iterable[Item], places: Places | None) -> int:
    """Return how many conversations items are about, with each item about a side as a whole."""
    about = [item.conversation for item in items]
    return about.count(None) + len({counted_as(each, places) for each in about if each is not None})


def _decided(plan: Plan, results: Iterable[ActionResult]) -> int:
    """Return the number of conflicts that a run decides, without those whose actions were not done."""
    left = {(entry.action.conversation, entry.action.unit) for entry in results if not entry.is_done}
    listed = (each for each in plan.conflicts if each.takes is not None)  # the others count as blocked
    return sum((each.conversation, each.unit) not in left for each in listed)


def _conflicts(count: int, *, word: str) -> str:
    return f"{count} conflict{'' if count == 1 else 's'} {word}".rstrip()


def is_skipped(item: Item, policy: Policy) -> bool:
    """Tell whether a conflict stays because a person has skipped its question."""
    return policy.choices.get((str(item.conversation), item.unit)) is Take.KEEP


def _phrase(action: Action, places: Places | None, *, is_public: bool) -> tuple[str, str, str]:
    renames, side = is_rename(_source(action), action.target.path), action.target.side.value
    whole, reason = action.unit == WHOLE, action.reason.value
    phrase = phrase_of(action.kind.value, side, reason, whole=whole, renames=renames, is_public=is_public)
    return phrase, counted_as(action.conversation, places), side


def verb(action: Action) -> str:
    """Return the verb of an action on the screen."""
    return verb_of(action.kind.value, _source(action), action.target.path)


def _source(action: Action) -> str | None:
    return None if action.source is None else action.source.path


def _undo(outcome: Outcome, back: str, sides: str) -> tuple[str | None, str]:
    """Return the id of a run that did something, and the command that undoes it."""
    if outcome.run is None or not outcome.count(Result.DONE):
        return None, ""
    return outcome.run, f"reconcile {back}{sides}" if back else ""


def result_lines(outcome: Outcome, style: Style, again: str = "run `reconcile` again") -> Iterator[str]:
    """Yield the actions that failed or were skipped, with the reason; of a full or read-only disk one line for a side.

    A conversation that was skipped has one line for each cause, whatever number of steps it has.
    A hint follows on what to do about the disk; ``again``: and then.
    """
    entries = [entry for entry in outcome.results.values() if entry.reason is not None]
    groups = Counter(map(_trouble, entries))
    told = set[object]()
    for entry in entries:
        action, trouble = entry.action, _trouble(entry)
        same = trouble or _skip(entry)
        if same in told:
            continue
        words = f"{entry.reason.words}: " if entry.reason is Reason.DRIFT else ""
        message = message_text(entry.message)
        title, id_ = shorten(visible(action.title or ""), 40), action.conversation
        place = "" if message.startswith(_PLACES) else f": {clean(str(action.target))}"
        what = f"{title} ({id_}){place}" if title not in ("", id_) else f"{id_}{place}"
        if trouble is None and same is not None:
            told.add(same)
        else:
            what = f"{verb(action)} {what}"
        if trouble is not None:
            told.add(trouble)
            if groups[trouble] > 1:
                text = os.strerror(trouble[2])
                paths = [each.message.removesuffix(f": {text}") for each in entries if _trouble(each) == trouble]
                what, message = f"{groups[trouble]} steps in the {action.target.side}", f"{_above(paths)}: {text}"
        color = "red" if entry.result is Result.FAILED else "yellow"
        first, *rest = wrap(f"{entry.result}: {what}: {words}{message}", style.columns, "", "    ")
        yield style(str(entry.result), color, bold=True) + first.removeprefix(str(entry.result))
        yield from rest
    for hint in dict.fromkeys(_HINTS[number] for _, _, number in filter(None, groups)):
        yield from wrap(f"hint: {hint}, then {again}; nothing was lost", style.columns, "", "  ")


def _skip(entry: ActionResult) -> tuple[str, str] | None:
    """Return the conversation of a skipped action, and why it was skipped, without the place; None if it failed."""
    why = entry.message.rpartition(": ")[2]
    return (entry.action.conversation, why) if entry.result is Result.SKIPPED else None


def _above(paths: list[str]) -> str:
    """Return the directory that all these paths are in; the first path if there is none."""
    absolute = [path for path in paths if os.path.isabs(path)]
    return message_text(f"{os.path.commonpath(absolute)}/" if len(absolute) == len(paths) else paths[0])


def _trouble(entry: ActionResult) -> tuple[Result, Side, int] | None:
    """Return the trouble with a disk that an action has met: its result, the side, and the system's error."""
    number = entry.errno
    return (entry.result, entry.action.target.side, number) if number is not None and number in _HINTS else None
