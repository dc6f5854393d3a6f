"""``reconcile brief``: what a new conversation should know of a workspace."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from ..options import common_options, options_of
from ..output.text import Style, clean
from ..output.timestamps import format_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SHOWN = 30
"""Files of the workspace that are shown without --verbose."""
_FAR_MS = 10**15
"""No calendar goes that far."""


@click.command(name="brief")
@common_options
@click.argument("name", metavar="WORKSPACE")
@click.option(
    "--limit", type=click.IntRange(min=0), default=3, help="Entries of each list, the newest; 3 if not given."
)
@click.option("--compat", is_flag=True, help="Print what the program's own loadWorkspace answers, as JSON.")
@click.pass_context
def brief(context: click.Context, name: str, limit: int, compat: bool) -> None:
    """Tell what a workspace of Claudesidian is about: its purpose, workflows, files, sessions and states.

    WORKSPACE is its id or its name. Nothing is written: to read with the program itself is to write.
    """
    from reconcile.formats.json.javascript import stringify
    from reconcile.inspect.brief import brief_of, compat_of, find_vault

    options = options_of(context)
    if options.format not in (None, "claudesidian"):
        raise click.UsageError(f"brief is about claudesidian, and not about {options.format}")
    path = find_vault(options.workspace or os.getcwd())
    if compat:
        click.echo(stringify(compat_of(path, name, limit)))
        return
    found = brief_of(path, name, limit)
    if options.json:
        click.echo(stringify({"format": "reconcile.brief/1", **found}))
        return
    for line in _lines(found, Style.choose(options.color), None if options.verbose else SHOWN):
        click.echo(line)


def _lines(found: Mapping[str, Any], style: Style, shown: int | None) -> Iterator[str]:
    folder = found.get("rootFolder", "/")
    missing = {True: "", False: " (not there)", None: " (can't be read)"}[found["folderExists"]]
    yield f"{style(clean(_called(found.get('name'))), bold=True)}  {clean(found['id'])}  {clean(str(folder))}{missing}"
    for said in (found.get("description"), found["purpose"], found["currentGoal"] and f"Goal: {found['currentGoal']}"):
        if said:
            yield f"  {clean(str(said))}"
    parts = {
        "Workflows": [_workflow(each) for each in found["workflows"]],
        "Preferences": [found["preferences"]] if found["preferences"] else [],
        "Agent": [_agent(found["agent"])] if found["agent"] else [],
        "Key files": [f"{each['name']}: {each['path']}" for each in found["keyFiles"]],
        "Recent activity": [f"{_when(each['time'])}  {each['text']}" for each in found["recentActivity"]],
        "Sessions": [_session(each) for each in found["sessions"]],
        "States": [_state(each) for each in found["states"]],
        "Recent files": [f"{_when(each['modified'])}  {each['path']}" for each in found["recentFiles"]],
        "Can't be read": [f"{each['path']}: found {each['found']}" for each in found["unread"]],
        f"Files ({len(found['workspaceStructure'])})": found["workspaceStructure"][:shown],
    }
    for heading, entries in parts.items():
        if entries:
            yield ""
            yield style(heading, bold=True)
            for entry in entries:
                for number, line in enumerate(str(entry).splitlines()):
                    yield f"  {'  ' if number else ''}{clean(line)}"
    if shown is not None and len(found["workspaceStructure"]) > shown:
        yield f"  ... and {len(found['workspaceStructure']) - shown} more (-v shows all)"


def _when(time_ms: object) -> str:
    if isinstance(time_ms, (int, float)) and abs(time_ms) < _FAR_MS:
        return format_time(int(time_ms) * 1_000_000)
    return "(no time)"


def _called(name: object) -> str:
    return str(name) if name else "(unnamed)"


def _workflow(each: Mapping[str, Any]) -> str:
    when = f" ({each['when']})" if each["when"] else ""
    return f"{_called(each['name'])}{when}\n{each['steps']}"


def _agent(each: Mapping[str, Any]) -> str:
    prompt = f"\n{each['systemPrompt']}" if each["systemPrompt"] else ""
    return f"{_called(each['name'])}  {each['id'] or '(no id)'}{prompt}"


def _session(each: Mapping[str, Any]) -> str:
    about = f": {each['description']}" if each["description"] else ""
    held = f"{each['traces']} trace{'' if each['traces'] == 1 else 's'}"
    return f"{_when(each['created'])}  {_called(each['name'])}{about}  {held}  {each['id']}"


def _state(each: Mapping[str, Any]) -> str:
    tags = "".join(f" #{tag}" for tag in each["tags"])
    steps = "".join(f"\nnext: {step}" for step in each["nextSteps"])
    empty = "" if each["hasContent"] else "\nwithout its content: see reconcile doctor"
    return f"{_when(each['created'])}  {_called(each['name'])}{tags}  {each['id']}{steps}{empty}"
