"""The same walk as lines and questions: for a screen reader, and for a terminal that can't move its cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconcile.model.snapshot import WHOLE

from ..output.interaction import QUIT, ask_for_key, confirm, wrapped_question
from ..output.screen import wrap
from ..output.text import clean, terminal_columns
from . import lines
from .decisions import Decisions
from .details import KEYS, detail_lines
from .subjects import Choice
from .walk import Result, sentences

if TYPE_CHECKING:
    from ..arguments import Options
    from .lines import Line
    from .subjects import Subject
    from .walk import Walk

NEXT, PREVIOUS, UNDO, APPLY = "n", "p", "u", "a"
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
    _say(f"The plan has {_counted(len(asked), 'conversation')} to decide, {len(others)} other.")
    _say("Nothing changes before you apply. It leaves undecided conflicts to the next plain run.")
    decisions, ends = _ask_about(options, walk, asked, Decisions())
    if others and not ends:
        question = f"Walk through the {_counted(len(others), 'other conversation')}, too?"
        if confirm(f"\n{wrapped_question(question)}"):
            decisions, _ = _ask_about(options, walk, others, decisions)
    plan = walk.plan_for(decisions)
    click.echo()
    for sentence in sentences(walk, decisions, plan):
        _say(sentence)
    return Result(plan if confirm(f"\n{walk.apply_words.capitalize()}?") else None)


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
                decisions = decisions.with_choice(subject, unit, choice) or decisions
                if choice in (Choice.SKIP, Choice.HOLD) and unit == WHOLE:
                    break
        number += step
    return decisions, False


def _ask(options: Options, walk: Walk, subject: Subject, unit: str, decisions: Decisions, where: str) -> str:
    click.echo()
    _say(f"[{where}]{'' if unit == WHOLE else f' {unit}'}")
    _print_details(walk, subject, unit, decisions)
    offered = subject.offered(unit)
    keys = {KEYS[choice]: choice.value for choice in offered}
    words = ", ".join(f"{KEYS[choice]} {choice.value}" for choice in offered)
    question = f"{words}, n next (leave it), p previous, u take back, a end of the list, {QUIT} quit"
    more = {NEXT: "next", PREVIOUS: "previous", UNDO: "take back", APPLY: "apply"}
    return ask_for_key(options, question, {**keys, **more}, NEXT)


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


def _say(text: str) -> None:
    for line in wrap(clean(text), terminal_columns()):
        click.echo(line)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
