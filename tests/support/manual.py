"""The manual pages and completion files of the wheel, below ``share/``: made from the help of the commands.

`tests.support.documents` writes them. A page has the text of ``--help-all`` in the form that ``man`` reads.
"""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, cast

import click

from reconcile.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from types import ModuleType

SHARE = "share"
FILES = {
    "bash": "bash-completion/completions/reconcile",
    "zsh": "zsh/site-functions/_reconcile",
    "fish": "fish/vendor_completions.d/reconcile.fish",
}
"""The file of each shell, where its completions are looked for below a ``share`` directory."""


def shared_files(program: click.Group, package: str, project: Path) -> dict[Path, str]:
    """Return every file below ``share/`` with its content."""
    modules = ("app", "completion", "topics")
    app, completion, topics = (importlib.import_module(f"{package}.{name}") for name in modules)
    context = click.Context(program, info_name="reconcile", help_option_names=["-h", "--help"])
    commands = {name: program.get_command(context, name) for name in program.list_commands(context)}
    pages = {"reconcile": "\n".join(_program_page(program, context, app, topics.TOPICS))}
    for name, command in commands.items():
        assert command is not None
        pages[f"reconcile-{name}"] = "\n".join(_command_page(name, command, context))
    share = project / SHARE
    found = {share / "man" / "man1" / f"{name}.1": f"{page}\n" for name, page in pages.items()}
    return found | {share / FILES[shell]: script for shell, script in completion.SCRIPTS.items()}


def _program_page(
    program: click.Group,
    context: click.Context,
    app: ModuleType,
    topics: Mapping[str, tuple[str, str]],
) -> Iterator[str]:
    summary, *rest = _paragraphs(program)
    yield from _head("reconcile", summary)
    yield from _synopsis("reconcile", "[OPTIONS] [COMMAND] [ARGUMENTS]...")
    yield from _description(rest)
    yield ".SH COMMANDS"
    for group, entries in app.GROUPS.items():
        yield f".SS {_escaped(group)}"
        for name, (_, line) in entries.items():
            yield from (".TP", rf"\fBreconcile\-{_escaped(name)}\fR(1)", _escaped(line))
    yield ".SH TOPICS"
    for name, (_, line) in topics.items():
        yield from (".TP", rf"\fBreconcile help {_escaped(name)}\fR", _escaped(line))
    yield from _options("OPTIONS", program.get_params(context), context)
    yield from _examples(app.EXAMPLES)


def _command_page(name: str, command: click.Command, parent: click.Context) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent)
    summary, *rest = _paragraphs(command)
    yield from _head(f"reconcile-{name}", summary)
    yield from _synopsis(f"reconcile {name}", " ".join(command.collect_usage_pieces(context)))
    yield from _description(rest)
    yield from _options("OPTIONS", command.get_params(context), context)
    yield from _examples(cast("Iterable[tuple[str, str]]", getattr(command, "examples", ())))
    yield from (".SH SEE ALSO", r"\fBreconcile\fR(1)")


def _paragraphs(command: click.Command) -> list[str]:
    return [" ".join(part.split()) for part in inspect.cleandoc(command.help or "").split("\n\n")]


def _head(name: str, summary: str) -> Iterator[str]:
    yield f'.TH "{name.upper()}" "1" "" "reconcile {__version__}" "reconcile"'
    yield ".SH NAME"
    yield rf"{_escaped(name)} \- {_escaped(summary.rstrip('.'))}"


def _synopsis(name: str, usage: str) -> Iterator[str]:
    yield from (".SH SYNOPSIS", rf"\fB{_escaped(name)}\fR {_escaped(usage)}")


def _description(paragraphs: Iterable[str]) -> Iterator[str]:
    for number, paragraph in enumerate(paragraphs):
        yield from (".PP" if number else ".SH DESCRIPTION", _escaped(paragraph))


def _options(heading: str, parameters: Iterable[click.Parameter], context: click.Context) -> Iterator[str]:
    yield f".SH {heading}"
    for parameter in parameters:
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None:
            names = "-h, --help" if "--help" in parameter.opts else record[0]
            yield from (".TP", rf"\fB{_escaped(names)}\fR", _escaped(record[1]))


def _examples(examples: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield ".SH EXAMPLES"
    for line, meaning in examples:
        yield from (".TP", rf"\fB{_escaped(line)}\fR", _escaped(meaning))


def _escaped(text: str) -> str:
    """Return a text in which roff reads no command."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{text}" if text.startswith((".", "'")) else text
