"""The generated parts of the documentation: ``python -m tests.support.documents`` rewrites them.

A part stands between ``<!-- generated: name -->`` and ``<!-- end -->``. A test fails while one of them is out of
date. The terminal pictures and the JSON are what the demo really prints.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
from contextlib import contextmanager
from functools import cached_property
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

import reconcile.library
from reconcile.model.reasons import CASES, Reason
from reconcile.serialization.plan_file import plan_schema
from tests.support.manual import SHARE, shared_files
from tests.support.scenarios.scenario import read_scenario
from tests.support.sessions import PART as SESSION
from tests.support.sessions import sessions_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
SCENARIOS = PROJECT / "fixtures" / "scenarios"
SCHEMA = DOCS / "plan.schema.json"

_PART = re.compile(r"(?P<begin><!-- generated: (?P<name>[^>]+?) -->\n)(?P<body>.*?)(?P<end><!-- end -->)", re.DOTALL)
_ROW = re.compile(r"\| (\d+) \|.*\| (?P<result>[^|]*) \| [^|]* \|")
_SPOKEN_OF = "17780300000-release-notes"
"""The conversation of the demo that the examples of docs/json.md are about."""

(_SCRIPT,) = distribution("reconcile-fs").entry_points.select(group="console_scripts", name="reconcile")
_PACKAGE = _SCRIPT.module.rpartition(".")[0]
PROGRAM = cast("click.Group", importlib.import_module(f"{_PACKAGE}.app").main)
_GROUPS: dict[str, dict[str, object]] = importlib.import_module(f"{_PACKAGE}.app").GROUPS
_OPTIONS = importlib.import_module(f"{_PACKAGE}.options")


def exit_codes() -> dict[str, int]:
    """Return the exit codes by the name that the command knows them by."""
    module = importlib.import_module(f"{_PACKAGE}.output.errors")
    return {name: value for name, value in vars(module.ExitCode).items() if name.isupper()}


def commands() -> dict[str, click.Command]:
    """Return the commands by name; the one without a name is the program itself."""
    context = click.Context(PROGRAM)
    found = {name: PROGRAM.get_command(context, name) for name in PROGRAM.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def own_options(command: click.Command) -> list[click.Option]:
    """Return the options that a command has besides the common ones."""
    common = {option.name for option in options_of(PROGRAM)}
    return [option for option in options_of(command) if option.name not in common]


def shared_options(command: click.Command) -> list[str]:
    """Return the common options that a command takes and others may not, as they are typed."""
    hidden = {"--help", "--help-all", *map(_OPTIONS.spelling, _OPTIONS.EVERYWHERE)}
    common = {option.opts[-1] for option in options_of(PROGRAM)} - hidden
    return [option.opts[-1] for option in options_of(command) if option.opts[-1] in common and not option.hidden]


def options_of(command: click.Command) -> list[click.Option]:
    """Return the options of a command in the order of its help, ``--help`` last."""
    context = click.Context(command, help_option_names=["-h", "--help"])
    return [parameter for parameter in command.get_params(context) if isinstance(parameter, click.Option)]


class Documents:
    """Every text with generated parts, as it is and as it should be."""

    def paths(self) -> list[Path]:
        """Return the documents that have generated parts."""
        found = [PROJECT / "README.md", *sorted(DOCS.rglob("*.md"))]
        return [path for path in found if _PART.search(path.read_text(encoding="utf-8"))]

    def wanted(self, path: Path) -> str:
        """Return a document's text with every generated part made anew."""
        if path == SCHEMA:
            return json.dumps(plan_schema(), indent=2) + "\n"

        text = path.read_text(encoding="utf-8")
        sessions = iter(sessions_of(text, _environment(path)) if SESSION.search(text) else [])

        def renew(part: re.Match[str]) -> str:
            is_session = SESSION.match(part[0])
            made = _fenced("console", next(sessions)) if is_session else self._part(part["name"], part["body"])
            return part["begin"] + made + part["end"]

        return _PART.sub(renew, text)

    def _part(self, name: str, body: str) -> str:
        kind, _, rest = name.partition(" ")
        parts: dict[str, Callable[[str, str], str]] = {
            "api": lambda names, _: "\n".join(map(_reference, names.split())),
            "cases": lambda _, body: _cases(body),
            "errors": lambda *_: _errors(),
            "reasons": lambda about, _: _reasons(about),
            "options": lambda command, _: _options(command),
            "commands": lambda *_: _command_table(),
            "scenario": lambda name, _: _fenced("text", _scenario(name)),
            "day": lambda part, _: _fenced("text", self._day[part]),
            "demo": lambda command, _: _fenced("text", self._demo.picture(command)),
            "json": lambda arguments, _: _fenced("json", self._demo.json(arguments)),
            "ran": lambda arguments, _: _fenced("json", self._demo.json(arguments)),
        }
        return parts[kind](rest, body)

    @cached_property
    def _day(self) -> dict[str, str]:
        """Return what fixtures/demo/day prints, by its parts."""
        with _place() as home:
            top = home / "reconcile"
            shutil.copytree(PROJECT / "fixtures" / "demo", top / "fixtures" / "demo")
            printed = _run([str(top / "fixtures" / "demo" / "day")], top, _environment(home))
            printed = re.sub(r"\b\d{8}-\d{6}-\d\d\b", "20260515-100000-00", printed)
            printed = re.sub(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?=[;)])", "2026-05-15 10:00:00", printed)
            printed = re.sub(r"(in git since) [0-9a-f]{12}", r"\1 86e812f4a1c0", printed)
            printed = printed.replace(str(home), "/home/me").replace("/reconcile/.demo-day", "")
        parts = re.split(r"^# (\w+)\n", printed, flags=re.MULTILINE)
        lines = {
            name: [line.rstrip() for line in text.strip().splitlines()]
            for name, text in zip(parts[1::2], parts[2::2], strict=True)
        }
        return {name: "\n".join(found) for name, found in lines.items()}

    @cached_property
    def _demo(self) -> _Demo:
        return _Demo()


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```\n"


def _reference(name: str) -> str:
    """Return what the docstrings say of a class or a function of the library."""
    thing = getattr(reconcile.library, name)
    if not inspect.isclass(thing):
        return f"#### {name}\n\n{_described(name, thing)}"
    parts = [f"#### {name}\n\n{_prose(thing)}"]
    for member in _members(thing):
        found = inspect.getattr_static(thing, member)
        if isinstance(found, property):
            parts.append(f"`{member}`: {_prose(found)}")
        elif callable(function := getattr(thing, member)):
            parts.append(_described(member, function))
    return "\n".join(parts)


def _members(thing: type) -> list[str]:
    """Return the public names of a class with its own docstrings, in their order, those that it inherits last."""
    classes = [each for each in thing.__mro__ if each.__module__.startswith("reconcile.library")]
    names = dict.fromkeys(name for each in classes for name in vars(each))
    return [
        name for name in names if name[0] != "_" and inspect.getdoc(getattr(thing, name)) and _is_spoken_of(thing, name)
    ]


def _is_spoken_of(thing: type, name: str) -> bool:
    found = inspect.getattr_static(thing, name)
    return bool(inspect.getdoc(found)) and (isinstance(found, property | classmethod) or inspect.isfunction(found))


def _described(name: str, function: Callable[..., object]) -> str:
    return f"```python\n{_signature(name, function)}\n```\n\n{_prose(function)}"


def _signature(name: str, function: Callable[..., object]) -> str:
    """Return a signature, of which a long one has a line for each parameter."""
    signature = inspect.signature(function)
    parameters = [each for each in signature.parameters.values() if each.name != "self"]
    text = str(signature.replace(parameters=parameters)).replace("'", "")
    if len(text) + len(name) <= 100:
        return name + text
    shown = [str(signature.replace(parameters=[each], return_annotation=signature.empty))[1:-1] for each in parameters]
    keyword = next((at for at, each in enumerate(parameters) if each.kind is each.KEYWORD_ONLY), None)
    shown = [line.removeprefix("*, ") for line in shown]
    if keyword is not None:
        shown.insert(keyword, "*")
    lines = "".join(f"    {line},\n" for line in shown).replace("'", "")
    return f"{name}(\n{lines}) -> {signature.return_annotation}"


def _prose(thing: object) -> str:
    """Return a docstring as prose; what it raises is a list."""
    text, _, raises = (inspect.getdoc(thing) or "").partition("\nRaises:\n")
    text = text.strip().replace("``", "`")
    errors = re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", raises, re.MULTILINE)
    listed = "".join(f"* raises `{name}`: {' '.join(words.split())}\n" for name, words in errors)
    return f"{text}\n" + (f"\n{listed}" if listed else "")


def _errors() -> str:
    """Return a table of what the library raises."""
    names = [name for name in reconcile.library.__all__ if name.endswith("Error")]
    rows = [(f"`{name}`", " ".join((inspect.getdoc(getattr(reconcile.library, name)) or "").split())) for name in names]
    return _table("Error | Says", [(name, words.replace("``", "`")) for name, words in rows])


def _table(head: str, rows: Sequence[tuple[str, ...]]) -> str:
    columns = head.split(" | ")
    rows = [tuple(re.sub(r"(?<!\\)\|", r"\|", cell) for cell in row) for row in rows]
    lines = [f"| {head} |", "|" + " --- |" * len(columns), *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"


def _cases(body: str) -> str:
    """Return the table of cases. The column Result is written by hand and kept as it is."""
    results = {int(found[1]): found["result"] for line in body.splitlines() if (found := _ROW.match(line))}
    rows = []
    for number, (pattern, meaning) in CASES.items():
        links = ", ".join(_links(number))
        rows.append((str(number), f"`{pattern}`", meaning, results.get(number, "?"), links))
    return _table("# | B S W | Meaning | Result | Scenarios", rows)


def _links(case: int) -> Iterator[str]:
    for path in sorted(SCENARIOS.glob("cases/*.scenario")):
        if case in read_scenario(path).cases:
            yield f"[{path.stem}](../{path.relative_to(PROJECT).as_posix()})"


def _scenario(name: str) -> str:
    return (SCENARIOS / f"{name}.scenario").read_text(encoding="utf-8").rstrip()


def reason_groups() -> dict[str, list[Reason]]:
    """Return the reasons under the headings that the enumeration has as comments."""
    groups: dict[str, list[Reason]] = {}
    for line in inspect.getsource(Reason).splitlines():
        if heading := re.fullmatch(r"    # (why .*)", line):
            groups[heading[1]] = []
        elif groups and (member := re.match(r"    ([A-Z_]+) = ", line)):
            groups[list(groups)[-1]].append(Reason[member[1]])
    return groups


def _reasons(about: str) -> str:
    return _table("Reason | In words", [(f"`{reason.value}`", reason.words) for reason in reason_groups()[about]])


def _command_table() -> str:
    """Return a table of the commands for each group of the program's help."""
    known = commands()
    tables = {group: [_command_row(name, known[name]) for name in names] for group, names in _GROUPS.items()}
    tables["Daily"].insert(0, ("`reconcile`", "Sync both sides; with `--dry-run` show the plan and write nothing."))
    return "\n".join(f"**{group}**\n\n{_table('Command | Does', rows)}" for group, rows in tables.items())


def _command_row(name: str, command: click.Command) -> tuple[str, str]:
    return f"[`{_usage(name, command)}`](#reconcile-{name})", _first_sentence(command)


def _first_sentence(command: click.Command) -> str:
    text = " ".join((command.help or "").split("\n\n")[0].split())
    return text.partition(". ")[0].rstrip(".") + "."


def _usage(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name)
    words = [word for word in command.collect_usage_pieces(context) if word != "[OPTIONS]"]
    return " ".join(["reconcile", name, *words])


def _options(name: str) -> str:
    """Return a table of options: the common ones, or those that a command has of its own, with what it says."""
    if name == "common":
        return _option_table(options_of(PROGRAM))
    command = commands()[name]
    paragraphs = [" ".join(paragraph.split()) for paragraph in (command.help or "").split("\n\n")]
    own = own_options(command)
    usage = _usage(name, command).replace(f"reconcile {name}", f"reconcile {name} [OPTIONS]")
    parts = [_fenced("text", usage), "\n\n".join(paragraphs) + "\n"]
    parts += [_option_table(own)] if own else []
    if shared := ", ".join(f"`{option}`" for option in shared_options(command)):
        parts.append(f"Common options: {shared}.\n")
    parts.append(_fenced("sh", "\n".join(f"# {meaning}\n{line}" for line, meaning in examples(command))))
    return "\n".join(parts)


def examples(command: click.Command) -> tuple[tuple[str, str], ...]:
    """Return the examples of a command's help: each a command line and its meaning."""
    return cast("tuple[tuple[str, str], ...]", getattr(command, "examples", ()))


def _option_table(options: list[click.Option]) -> str:
    rows = []
    for option in options:
        context = click.Context(PROGRAM)
        value = "" if option.is_flag else option.make_metavar(context).replace("|", r"\|")
        names = ", ".join(f"`{name}`" for name in option.opts)
        rows.append((f"{names} {value}".rstrip(), option.help or ""))
    return _table("Option | Meaning", rows)


class _Demo:
    """The demo, run once in a directory of its own as if it were a clone in the home directory."""

    def __init__(self) -> None:
        with _place() as home:
            top = home / "reconcile"
            shutil.copytree(PROJECT / "fixtures" / "demo", top / "fixtures" / "demo")
            environ = _environment(home)
            self._printed = _run([str(top / "fixtures" / "demo" / "run")], top, environ)
            environ |= {
                "JP_USER_DATA_DIR": str(top / ".demo" / "data"),
                "RECONCILE_STATE_DIR": str(top / ".demo" / "state"),
                "XDG_CONFIG_HOME": str(top / ".demo" / "config"),
            }
            self._answers = self._ask("ran", top / ".demo", environ)
            self._put_out_of_step(top / ".demo")
            self._answers |= self._ask("json", top / ".demo", environ)

    def picture(self, command: str) -> str:
        """Return a command of the demo with what it printed."""
        sections = re.split(r"\n(?=\$ )", self._printed)
        found = next(section for section in sections if section.startswith(f"$ {command}\n"))
        return "\n".join(line.rstrip() for line in _timeless(found).splitlines())

    def json(self, arguments: str) -> str:
        """Return what the command prints with ``--json`` when one conversation of the demo is out of step."""
        return self._answers[arguments]

    @staticmethod
    def _put_out_of_step(demo: Path) -> None:
        """Put one conversation of the store back to what it was, and forget that it was ever in sync."""
        (stored,) = demo.glob(f"data/workspace/*/conversations/{_SPOKEN_OF}/events.json")
        shutil.copy(PROJECT / "fixtures" / "demo" / "store" / _SPOKEN_OF / "events.json", stored)
        os.utime(stored, (1778839200, 1778839200))
        shutil.rmtree(demo / "state")

    @staticmethod
    def _ask(kind: str, demo: Path, environ: dict[str, str]) -> dict[str, str]:
        """Return what commands of docs/json.md print: those that it shows right after the run (``ran``), or later."""
        parts = _PART.finditer((DOCS / "json.md").read_text("utf-8"))
        asked = [part["name"].partition(" ") for part in parts]
        found = {}
        for arguments in [rest for one, _, rest in asked if one == kind]:
            words = arguments.replace("RUN", next(_runs(demo, environ), "")).split()
            found[arguments] = _timeless(_run(["reconcile", *words, "--json"], demo / "project", environ)).replace(
                str(demo.parent), "/home/me/reconcile"
            )
        return found


def _runs(demo: Path, environ: dict[str, str]) -> Iterator[str]:
    printed = _run(["reconcile", "log", "--json"], demo / "project", environ)
    yield from (run["id"] for run in json.loads(printed)["runs"])


def _timeless(printed: str) -> str:
    """Put the same moment in the place of every one that depends on when this was run."""
    printed = re.sub(
        r'"(now|started|finished|newest|first_seen|last_seen)_ns": \d+', r'"\1_ns": 1778839200000000000', printed
    )
    for name, value in {"python": "CPython 3.13.0", "system": "Linux 6.12.0 x86_64", "sqlite": "3.46.0"}.items():
        printed = re.sub(rf'"{name}": "[^"]*"', f'"{name}": "{value}"', printed)
    return re.sub(r"\b\d{8}-\d{6}-(\d\d)\b", r"20260515-100000-\1", printed).strip()


@contextmanager
def _place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name).resolve()


def _environment(home: Path) -> dict[str, str]:
    """Return an environment in which nothing of this machine shows, and the time is Greenwich's."""
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])
    return {"HOME": str(home), "PATH": path, "TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1", "TERM": "dumb"}


def _run(command: list[str], cwd: Path, environ: dict[str, str]) -> str:
    ran = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, encoding="utf-8", check=False)
    return ran.stdout + ran.stderr


def shared() -> dict[Path, str]:
    """Return the manual pages and completion files, with their content."""
    return shared_files(PROGRAM, _PACKAGE, PROJECT)


def main() -> None:
    """Rewrite what is out of date, and say what was."""
    documents = Documents()
    for path in [*documents.paths(), SCHEMA]:
        wanted = documents.wanted(path)
        if not path.exists() or path.read_text(encoding="utf-8") != wanted:
            path.write_text(wanted, encoding="utf-8")
            print(f"rewritten: {path.relative_to(PROJECT)}")
    files = shared()
    for path in {path for path in (PROJECT / SHARE).rglob("*") if path.is_file()} - files.keys():
        path.unlink()
    for path, wanted in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted, encoding="utf-8")


if __name__ == "__main__":
    main()
