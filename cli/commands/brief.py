"""``reconcile brief``: prints what a new conversation should know of a workspace of Claudesidian."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from ..command import Command, Several
from ..options import options_of
from ..output.text import Style, clean, format_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SHOWN = 30
"""Number of files that are listed without ``-v``."""
_FAR_MS = 10**15
"""Times (ms) from here on are outside of the calendar."""


@click.command(
    "brief",
    cls=Command,
    several=Several.OWN,
    accepts=("json", "verbose"),
    examples=(
        ("reconcile brief Thesis", "Print the workspace with this name."),
        ("reconcile brief Thesis --limit 10", "List ten sessions, states and files of each kind."),
    ),
)
@click.argument("name", metavar="WORKSPACE")
@click.option(
    "--limit", type=click.IntRange(min=0), metavar="N", default=3, help="Newest entries of each list (default: 3)."
)
@click.option("--compat", is_flag=True, help="Print what Claudesidian's own loadWorkspace returns, as JSON.")
@click.pass_context
def brief(context: click.Context, name: str, limit: int, compat: bool) -> None:
    """Print a summary of a Claudesidian workspace.

    Prints its purpose, workflows, files, sessions and states. WORKSPACE is its id or its name. Read-only:
    Claudesidian's own loader writes to the workspace.
    """
    from reconcile.formats.json.javascript import stringify
    from reconcile.inspect.brief import brief_of, compat_of, find_vault

    options = options_of(context)
    if options.format not in (None, "claudesidian"):
        raise click.UsageError(f"brief supports claudesidian only, not {options.format}")
    path = find_vault(options.workspace or os.getcwd())
    if compat:
        click.echo(stringify(compat_of(path, name, limit)))
        return
    briefing = brief_of(path, name, limit)
    if options.json:
        click.echo(stringify({"format": "reconcile.brief/1", **briefing}))
        return
    for line in _lines(briefing, Style.choose(options.color), None if options.verbose else SHOWN):
        click.echo(line)


def _lines(briefing: Mapping[str, Any], style: Style, shown: int | None) -> Iterator[str]:
    folder = briefing.get("rootFolder", "/")
    missing = {True: "", False: " (not there)", None: " (can't be read)"}[briefing["folderExists"]]
    name = style(clean(_display_name(briefing.get("name"))), bold=True)
    yield f"{name}  {clean(briefing['id'])}  folder {clean(str(folder))}{missing}"
    for text in (
        briefing.get("description"),
        briefing["purpose"],
        briefing["currentGoal"] and f"Goal: {briefing['currentGoal']}",
    ):
        if text:
            yield f"  {clean(str(text))}"
    parts = {
        "Workflows": [_workflow(workflow) for workflow in briefing["workflows"]],
        "Preferences": [briefing["preferences"]] if briefing["preferences"] else [],
        "Agent": [_agent(briefing["agent"])] if briefing["agent"] else [],
        "Key files": [f"{file['name']}: {file['path']}" for file in briefing["keyFiles"]],
        "Recent activity": [f"{_when(event['time'])}  {event['text']}" for event in briefing["recentActivity"]],
        "Sessions": [_session(session) for session in briefing["sessions"]],
        "States": [_state(state) for state in briefing["states"]],
        "Recent files": [f"{_when(file['modified'])}  {file['path']}" for file in briefing["recentFiles"]],
        "Can't be read": [f"{file['path']}: {file['found']}" for file in briefing["unread"]],
        f"Files ({len(briefing['workspaceStructure'])})": briefing["workspaceStructure"][:shown],
    }
    for heading, entries in parts.items():
        if entries:
            yield ""
            yield style(heading, bold=True)
            for entry in entries:
                for number, line in enumerate(str(entry).splitlines()):
                    yield f"  {'  ' if number else ''}{clean(line)}"
    if shown is not None and len(briefing["workspaceStructure"]) > shown:
        yield f"  ... and {len(briefing['workspaceStructure']) - shown} more (-v shows all)"


def _when(time_ms: object) -> str:
    if isinstance(time_ms, (int, float)) and abs(time_ms) < _FAR_MS:
        return format_time(int(time_ms) * 1_000_000)
    return "(no time)"


def _display_name(name: object) -> str:
    return str(name) if name else "(unnamed)"


def _workflow(workflow: Mapping[str, Any]) -> str:
    when = f" ({workflow['when']})" if workflow["when"] else ""
    return f"{_display_name(workflow['name'])}{when}\n{workflow['steps']}"


def _agent(agent: Mapping[str, Any]) -> str:
    prompt = f"\n{agent['systemPrompt']}" if agent["systemPrompt"] else ""
    return f"{_display_name(agent['name'])}  {agent['id'] or '(no id)'}{prompt}"


def _session(session: Mapping[str, Any]) -> str:
    about = f": {session['description']}" if session["description"] else ""
    traces = f"{session['traces']} trace{'' if session['traces'] == 1 else 's'}"
    return f"{_when(session['created'])}  {_display_name(session['name'])}{about}  {traces}  {session['id']}"


def _state(state: Mapping[str, Any]) -> str:
    tags = "".join(f" #{tag}" for tag in state["tags"])
    steps = "".join(f"\nnext: {step}" for step in state["nextSteps"])
    empty = "" if state["hasContent"] else "\nits content is missing: see reconcile doctor"
    return f"{_when(state['created'])}  {_display_name(state['name'])}{tags}  {state['id']}{steps}{empty}"
