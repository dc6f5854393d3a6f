"""The same walk as lines and questions: for a screen reader, and for a terminal that can't move its cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconcile.model.snapshot import WHOLE

from ..output.interaction import QUIT, ask_for_key
from ..output.screen import wrap
from ..output.text import clean, terminal_columns
from . import lines
from .decisions import Decisions
from .details import KEYS, detail_lines
from .subjects import Choice
from .walk import Result, sentences

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..arguments import Options
    from .lines import Line
    from .subjects import Subject
    from .walk import Walk

NEXT, PREVIOUS, UNDO, APPLY, HELP = "n", "p", "u", "a", "?"
YES, BACK = "y", "n"
_OF_ALL = (Choice.STORE_ALONE, Choice.WORKSPACE_ALONE, Choice.HOLD)
"""The choices about all of a conversation that are offered at each of its conflicts, too."""
_HELP: Mapping[str, str] = {
    "s": "take the store's version",
    "w": "take the workspace's version",
    "b": "keep both versions: the older one becomes a fork",
    "S": "take the store's version of the whole conversation, without a fork",
    "W": "take the workspace's version of the whole conversation, without a fork",
    "k": "skip it: leave it out of this run",
    "h": "hold the whole conversation: leave both sides alone until one changes",
    NEXT: "go to the next question; this one stays as it is, undecided or decided",
    PREVIOUS: "go to the previous conversation",
    UNDO: "undo the last decision",
    APPLY: "end the questions, and show the plan; then you apply it or not",
    QUIT: "quit, and apply nothing",
}
_MARKS = {lines.STORE_CHANGED: ("[-", "-]"), lines.WORKSPACE_CHANGED: ("{+", "+}")}
"""Around the words that only one side has, as `git diff --word-diff` marks them."""


def walk_in_lines(options: Options, walk: Walk) -> Result:
    """Ask about each subject that needs a decision, then on request about the others, and last whether to apply."""
    subjects = walk.subjects
    if not walk.apply_words:
        _show_all(walk)
        return Result()
    asked = [each for each in subjects if each.is_question]
    others = [each for each in subjects if not each.is_question and each.offered()]
    rest = f", and {_counted(len(others), 'other')}" if others else ""
    _say(f"The plan has {_counted(len(asked), 'conversation')} to decide{rest}.")
    _say("Nothing changes before you apply the plan. An undecided conflict is left to the next plain run.")
    for subject in subjects:
        if subject.held and not subject.offered():
            click.echo()
            _print_details(walk, subject, WHOLE, Decisions())
    decisions = Decisions()
    while True:
        decisions, ends = _ask_about(options, walk, asked, decisions)
        if others and not ends:
            question = f"Walk through the {_counted(len(others), 'other conversation')}, too? y yes, n no, {QUIT} quit"
            click.echo()
            if ask_for_key(options, question, {YES: "yes", BACK: "no"}, BACK) == YES:
                decisions, _ = _ask_about(options, walk, others, decisions)
        plan = walk.plan_for(decisions)
        click.echo()
        for sentence in sentences(walk, decisions, plan):
            _say(sentence)
        click.echo()
        back = "n back to the questions" if asked or others else "n end"
        question = f"{walk.apply_words.capitalize()}? y yes, {back}, {QUIT} quit"
        if ask_for_key(options, question, {YES: "yes", BACK: "no"}, BACK) == YES:
            walk.confirmed(plan)
            return Result(plan, decisions.titles(subjects))
        if not (asked or others):
            return Result()


def _show_all(walk: Walk) -> None:
    """Print what the plan says about each conversation; nothing is asked."""
    _say(walk.heading)
    for number, subject in enumerate(walk.subjects):
        click.echo()
        _say(f"[{number + 1} of {len(walk.subjects)}]")
        _print_details(walk, subject, WHOLE, Decisions())


def _print_details(walk: Walk, subject: Subject, unit: str, decisions: Decisions) -> None:
    reading, columns = walk.read(subject.conversation), terminal_columns()
    for line in detail_lines(subject, unit, decisions, reading, columns, two_columns=False):
        click.echo(marked(line))


def _ask_about(options: Options, walk: Walk, subjects: list[Subject], decisions: Decisions) -> tuple[Decisions, bool]:
    """Ask about subjects one after the other; return the decisions, and whether the person wants to end the walk."""
    number = 0
    while number < len(subjects):
        subject = subjects[number]
        units = [each.unit for each in subject.conflicts] if len(subject.conflicts) > 1 else [WHOLE]
        step = 1
        for unit in units:
            answer = _ask(options, walk, subject, unit, decisions, f"{number + 1} of {len(subjects)}")
            if answer == APPLY:
                return decisions, True
            if answer == PREVIOUS:
                step = -1 if number else 0
                break
            if answer == UNDO:
                decisions = decisions.taken_back()
                step = 0
                break
            if answer != NEXT:
                choice = next(choice for choice, key in KEYS.items() if key == answer)
                about = WHOLE if choice in _OF_ALL else unit
                decisions = decisions.with_choice(subject, about, choice) or decisions
                if choice in _OF_ALL or about == WHOLE:
                    break
        number += step
    return decisions, False


def _ask(options: Options, walk: Walk, subject: Subject, unit: str, decisions: Decisions, where: str) -> str:
    click.echo()
    _say(f"[{where}]{'' if unit == WHOLE else f' {subject.name_of(unit)}'}")
    _print_details(walk, subject, unit, decisions)
    of_all = tuple(choice for choice in subject.offered() if choice in _OF_ALL and unit != WHOLE)
    offered = (*subject.offered(unit), *of_all)
    keys = {KEYS[choice]: choice.value for choice in offered}
    words = ", ".join(f"{KEYS[choice]} {choice.value}" for choice in offered)
    question = f"{words}, n next, p previous, u undo, a end the questions, {HELP} help, {QUIT} quit"
    more = {NEXT: "next", PREVIOUS: "previous", UNDO: "take back", APPLY: "apply", HELP: "help"}
    answers = {**keys, **more}
    while (answer := ask_for_key(options, question, answers, NEXT)) == HELP:
        for key in (*keys, NEXT, PREVIOUS, UNDO, APPLY, QUIT):
            _say(_HELP[key], f"  {key}  ", " " * len("  k  "))
    return answer


def marked(line: Line) -> str:
    """Return the text of a line with marks around changed words."""
    text = ""
    open_style = ""
    for part, style in line:
        if style != open_style:
            text += _MARKS[open_style][1] if open_style in _MARKS else ""
            text += _MARKS[style][0] if style in _MARKS else ""
            open_style = style
        text += part
    return text + (_MARKS[open_style][1] if open_style in _MARKS else "")


def _say(text: str, indent: str = "", hanging: str | None = None) -> None:
    for line in wrap(clean(text), terminal_columns(), indent, hanging):
        click.echo(line)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
