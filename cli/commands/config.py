"""``reconcile config``: prints every setting in force, with the place that it comes from."""

from __future__ import annotations

import json
import os
import sys
from enum import Enum
from typing import TYPE_CHECKING

import click

from reconcile.adapters.roots import LocateError
from reconcile.config import Settings, config_path, setting_places
from reconcile.state.directory import state_directory

from ..command import Command, Several
from ..context import find_roots, with_layout
from ..options import options_of
from ..output.documents import print_document
from ..output.tables import Column, table
from ..output.text import Style, clean, short_path, show

if TYPE_CHECKING:
    from reconcile.adapters.roots import Roots

    from ..arguments import Options


@click.command(
    "config",
    cls=Command,
    several=Several.OWN,
    accepts=("json",),
    examples=(
        ("reconcile config", "Print the settings for this workspace."),
        ("reconcile config --json", "Print them as JSON."),
    ),
    extra_hint="`reconcile config` shows the settings and their file; edit the file to change one",
)
@click.pass_context
def config(context: click.Context) -> None:
    """Show every setting in force and where it comes from.

    An option wins over the environment, the environment over the section of this workspace in reconcile.toml, and that
    over the rest of the file. Outside of a workspace, no section counts. Read-only: edit the file to change a setting.
    """
    options = options_of(context)
    path = config_path(os.environ)
    try:
        roots = find_roots(options)
    except LocateError:
        roots = None
    rows = _settings(options, None if roots is None else roots.workspace_id)
    directories = {} if roots is None else _directories(roots)
    if options.json:
        listed = [
            {"name": name, "value": value, "source": source, "place": place} for name, value, source, place in rows
        ]
        document = {"format": "reconcile.config/1", "file": path, "exists": os.path.exists(path)}
        print_document(options, {**document, "directories": directories or None, "settings": listed})
        return
    style = Style.choose(options.color)
    room, absent = None if style.columns is None else style.columns - 11, "" if os.path.exists(path) else " (absent)"
    lines = [f"file       {short_path(path, room, absent)}{absent}"]
    lines += [f"{name.ljust(10)} {short_path(directory, room)}" for name, directory in directories.items()]
    lines += ["workspace  none here: sections of the file don't count"] if roots is None else []
    show([style(line, dim=True) for line in lines] + [""])
    cells = [
        (name, clean(json.dumps(value, ensure_ascii=False)), _place(source, place))
        for name, value, source, place in rows
    ]
    columns = (Column("Setting"), Column("Value", shrinks=True), Column("From", shrinks=True))
    show(table(columns, cells, style))


def _settings(options: Options, workspace_id: str | None) -> list[tuple[str, object, str, str | None]]:
    """Return name, value, source and place of each setting."""
    from reconcile.config import load_settings

    places = setting_places(os.environ, workspace_id)
    settings = with_layout(options, load_settings(os.environ, workspace_id))
    rows: list[tuple[str, object, str, str | None]] = []
    for name in Settings._fields:
        value = getattr(settings, name)
        plain = value.value if isinstance(value, Enum) else list(value) if isinstance(value, tuple) else value
        if name == "layout" and options.layout:
            rows.append((name, plain, "option", "--layout"))
        elif name in places:
            rows.append((name, plain, "environment" if places[name].isupper() else "file", places[name]))
        else:
            rows.append((name, plain, "default", None))
    return rows


def _place(source: str, place: str | None) -> str:
    return source if place is None else clean(short_path(place))


def _directories(roots: Roots) -> dict[str, str]:
    state = state_directory(roots.key, os.environ, sys.platform)
    return {"workspace": roots.workspace, "store": roots.store, "state": state}
