"""Messages, questions and progress beside a result: one rule for every command (docs/commands.md#common-options).

Questions are asked at a terminal only, and ``--yes`` answers them. With ``--json``, in a pipe or in a script, a command
that needs an answer is refused with a hint. With ``--json``, standard error has JSON only, too.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from msgspec.structs import replace

from reconcile.errors import ReconcileError
from reconcile.model.options import Take
from reconcile.model.reasons import Reason
from reconcile.signals import Interrupt

from .errors import ExitCode, nothing_else
from .screen import wrap
from .text import clean, message_text, naming_sides, short_path, shorten, terminal_columns, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Self

    from reconcile.adapters.roots import Roots
    from reconcile.model.plan import Item
    from reconcile.model.policy import Policy

    from ..arguments import Options
    from .text import Style


PROGRESS_AFTER = 0.5
"""Seconds of carrying out a plan, after which progress is shown."""
PROGRESS_EVERY = 0.1
"""Seconds for which a number stays on the screen."""
WARNING = "warning: "
"""The start of a line about what a command has decided, which ``--quiet`` prints, too."""
_YES, _NO = ("y", "yes"), ("", "n", "no")
SKIP, QUIT = "k", "q"
"""The keys of two answers to every question about a side."""
_OFFERED = {"store": "the [s]tore's", "workspace": "the [w]orkspace's", "both": "[b]oth"}
PHASES_FROM = 1000
"""Number of conversations from which on reading and planning are shown."""


class UnansweredError(ReconcileError):
    """A question needs an answer, and there is no terminal to ask at."""

    exit_code = ExitCode.HELD


def is_interactive(options: Options) -> bool:
    """Tell whether questions can be asked: at a terminal, about one project, and without ``--json``."""
    return not (options.json or options.all) and sys.stdin.isatty() and sys.stdout.isatty()


def may_reach_back(options: Options) -> bool:
    """Tell whether an undo or a redo may go further back than the last run: someone confirms it."""
    return options.yes or is_interactive(options)


def confirm_or_exit(options: Options, question: str, *, has_dry_run: bool = True) -> None:
    """Ask, and end the command if the answer is no. ``has_dry_run``: the command has the option `--dry-run`.

    Raises:
        UnansweredError: there is no terminal to ask at.
    """
    if options.yes:
        return
    if not is_interactive(options):
        raise UnansweredError(
            f"not a terminal, so {nothing_else(options, 'was done')}; this needs a yes: {question}",
            f"--yes carries it out{', --dry-run only shows it' if has_dry_run else ''}",
        )
    if not confirm(options, f"\n{wrapped_question(question)}"):
        cancel(options)


def confirm(options: Options, question: str) -> bool:
    """Ask a question that is answered with yes or no. The end of the input ends the command."""
    import click  # here, as below: most runs ask nothing

    while True:
        with _at_question(options):
            typed = click.prompt(f"{question} [y/N]", default="", show_default=False).strip().lower()
        if typed in _YES or typed in _NO:
            return typed in _YES
        click.echo("Type y or n.")


@contextmanager
def _at_question(options: Options) -> Iterator[None]:
    """End the line and the command without an answer: after Ctrl-C by ``click.Abort``, which only a question raises.

    At the end of the input (Ctrl-D), the answer is no to this question and to all that follow.
    """
    import click

    try:
        yield
    except Interrupt:
        click.echo()
        raise click.Abort from None
    except click.Abort:
        click.echo()
        cancel(options)


def cancel(options: Options) -> NoReturn:
    """End the command after the answer no: nothing was changed."""
    import click  # here, as above

    options.is_cancelled = True
    print_message(options, f"Cancelled, {nothing_else(options, 'changed')}.")
    raise click.exceptions.Exit(ExitCode.HELD)


def ask_for_key(
    options: Options, question: str, answers: Mapping[str, str], default: str, meanings: Mapping[str, str] | None = None
) -> str:
    """Ask until one of the keys or its word is typed, and return the key. ``q`` ends the command.

    ``?`` prints the keys, one a line, with their ``meanings`` or their words.
    """
    import click  # here, as above

    keys = {**answers, QUIT: "quit"}
    meant = {QUIT: "end the command, and change nothing", **(meanings or {})}
    words = {word: key for key, word in keys.items()}
    lines = "\n".join(wrap(question.strip(), terminal_columns() - len(" [n]: skip"), "  "))
    while True:
        with _at_question(options):
            typed = click.prompt(lines, default=default).strip()
        key = typed if typed in keys else words.get(typed.lower(), typed.lower())
        if key == QUIT:
            cancel(options)
        if key in keys:
            return key
        if typed == "?":
            for letter, word in keys.items():
                click.echo("\n".join(wrap(meant.get(letter, word), terminal_columns(), f"  {letter}  ", " " * 5)))
            continue
        click.echo(f"  {clean(shorten(typed, 20))!r} is not one of the answers: {', '.join(keys)}")


def is_question(item: Item) -> bool:
    """Tell whether an answer resolves a held item."""
    if item.reason is Reason.CONFLICT_HELD:
        return False  # it is asked about as a conflict
    if item.reason is Reason.SECRET:
        return bool(item.resolve)  # empty if a file can't be checked
    return item.reason in (Reason.BULK, Reason.ANCESTORS_ABSENT) or bool(_takes(item))


def ask_about(options: Options, policy: Policy, held: Iterable[Item]) -> Policy:
    """Ask about held items, one after the other, and return the policy with the answers. The rest stay held.

    They are on the screen, except those of which `is_repeated` returns True.
    The answer ``q`` ends the command.
    """
    import click

    decisions = dict(policy.decisions)
    accept, request, private = policy.accept_bulk, policy.request, []
    with_secrets = dict(policy.allow_secrets)
    for item in filter(is_question, held):
        if item.reason is Reason.BULK:
            question = "Remove the directories that are named above? The vault keeps what is removed."
            accept = confirm(options, f"\n{wrapped_question(question)}")
        elif item.reason is Reason.SECRET and item.conversation is not None:
            click.echo(_about(item, options))
            question = wrapped_question("Publish it all the same, and allow these secrets from now on?", "  ")
            if confirm(options, question):
                with_secrets[item.conversation] = frozenset(item.secrets)
        elif item.reason is Reason.ANCESTORS_ABSENT:
            private.append(visible(item.title or str(item.conversation)))
        elif item.conversation is not None and (takes := _takes(item)):
            click.echo(_about(item, options))
            offered = ", ".join(words for take, words in _OFFERED.items() if take in takes)
            keys = {take[0]: take for take in takes} | {SKIP: "skip"}
            answer = ask_for_key(options, f"Take {offered}, s[k]ip it, or [q]uit", keys, SKIP)
            if answer != SKIP:
                decisions[item.conversation] = Take(keys[answer])
    if private:
        from reconcile.model.policy import ProjectRequest  # here: few runs ask

    if private and isinstance(request, ProjectRequest):
        names = wrapped_question(f"{', '.join(private)}:")
        question = wrapped_question("Publish the parents that are named above, too?", "  ")
        ancestors = confirm(options, f"\n{names}\n{question}")
        request = replace(request, ancestors=ancestors)
    return replace(policy, decisions=decisions, accept_bulk=accept, request=request, allow_secrets=with_secrets)


def is_repeated(item: Item) -> bool:
    """Tell whether the question about a held item repeats its message."""
    return is_question(item) and (item.reason is Reason.SECRET or bool(_takes(item)))


def _about(item: Item, options: Options) -> str:
    """Return what a question is about, as a plan lists it: the title and the id, then the message."""
    from .text import Style, title_and_id  # here: most runs ask nothing

    head = title_and_id(item.title, str(item.conversation), Style.choose(options.color))
    return "\n".join(["", head, *wrap(message_text(item.message), terminal_columns(), "  ")])


def wrapped_question(text: str, indent: str = "") -> str:
    """Return the text of a question as lines that fit the terminal, with room for the choices."""
    return "\n".join(wrap(message_text(text), terminal_columns() - len(" [y/N]: y") - 2, indent))


def _takes(item: Item) -> list[str]:
    """Return the values of ``--take`` that an item's commands offer."""
    return [command.rpartition("--take ")[2] for command in item.resolve if "--take " in command]


def print_message(options: Options, message: str, *, trouble: bool = False, is_past: bool = False) -> None:
    """Print a message to standard error, beside the result; with ``--quiet`` only if it is about trouble.

    ``is_past``: its command is one that was carried out, so it gets no options for the two sides.
    """
    if options.quiet and not trouble:
        return
    if options.json:
        import json

        text = json.dumps({"format": "reconcile.message/1", "message": message})
    else:
        text = _wrapped(naming_sides(message_text(message), "" if is_past else options.sides))
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()  # before the next line of standard output


def print_warning(options: Options, message: str) -> None:
    """Print a warning to standard error, also with ``--quiet``."""
    print_message(options, f"{WARNING}{message}", trouble=True)


def _wrapped(text: str) -> str:
    """Return a message as lines that fit the terminal of standard error, if it has one."""
    return "\n".join(wrap(text, terminal_columns(), "", "  ")) if sys.stderr.isatty() else text


def waiting_callback(options: Options) -> Callable[[str], None]:
    """Return a function that prints who holds reconcile's own lock, to be called before waiting for it."""
    return lambda who: print_message(options, f"waiting for {who}")


class Progress:
    """A line at the terminal that tells what a long command does. The next one replaces it, and the end erases it."""

    def __init__(self, options: Options) -> None:
        """Show nothing yet."""
        is_wanted = not (options.json or options.quiet) and os.environ.get("TERM") != "dumb"
        self._is_shown = is_wanted and sys.stderr.isatty()
        self._has_line = False
        self._next = time.monotonic() + PROGRESS_AFTER

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Erase the line."""
        if self._has_line:
            self._has_line = False
            self._write("")

    def show(self, text: str, count: int) -> None:
        """Show a text if there is much to do. ``count``: the number of directories or conversations."""
        if self._is_shown and count >= PHASES_FROM:
            self._has_line = True
            self._write(text)

    def advance(self, done: int, count: int) -> None:
        """Show how many steps are done: after a moment, and then several times a second."""
        if self._is_shown and time.monotonic() >= self._next:
            self._next = time.monotonic() + PROGRESS_EVERY
            self._has_line = True
            self._write(f"applying {done} of {count} steps")

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(f"\r\x1b[2K{text}")
        sys.stderr.flush()


def first_run_lines(roots: Roots, state_directory: str, style: Style) -> Iterator[str]:
    """Yield what a first run creates, before it asks."""
    yield style("This is the first run here. It creates:", bold=True)
    if not roots.store_exists:
        yield from _directory("store", roots.store, "the durable copy of your conversations", style)
    yield from _directory(
        "records", state_directory, "the last synced state, and every version that a run replaces", style
    )
    yield ""


def _directory(name: str, path: str, purpose: str, style: Style) -> Iterator[str]:
    yield from wrap(short_path(path, None), style.columns, f"  {name:8}", " " * 10)
    yield from wrap(purpose, style.columns, " " * 10)
