"""``reconcile config``: prints the settings in force with the places that they come from, and changes them."""

from __future__ import annotations

import json
import os
import sys
from enum import Enum
from typing import TYPE_CHECKING

import click

from reconcile.adapters.roots import LocateError
from reconcile.config import ConfigError, Settings, check_name, config_path, save_setting, setting_places
from reconcile.model.options import Missing
from reconcile.state.directory import state_directory

from ..command import Command, Several
from ..context import find_roots, with_layout
from ..misuse import Misuse
from ..options import SETTINGS, options_of
from ..output.documents import print_document
from ..output.interaction import print_message
from ..output.tables import Column, table
from ..output.text import Style, clean, short_path, show

if TYPE_CHECKING:
    from typing import TypeAlias

    from reconcile.adapters.roots import Roots

    from ..arguments import Options

    Row: TypeAlias = tuple[str, object, str, str | None]
    """Name, value, source and place of a setting."""


_MEANINGS = "Meanings and possible values: reconcile help configuration"
_VERBS = {
    "edit": "edit the file that `reconcile config` names first",
    "get": "print a value: reconcile config NAME",
    "list": "print all settings: reconcile config",
    "set": "change a setting: reconcile config NAME VALUE",
    "unset": "remove a setting: reconcile config --unset NAME",
}
"""Words that other tools take in the place of a setting's name, with the way here."""


@click.command(
    "config",
    cls=Command,
    several=Several.OWN,
    accepts=("json",),
    examples=(
        ("reconcile config", "Print the settings for this workspace."),
        ("reconcile config diverged", "Print the value of one setting."),
        ("reconcile config diverged hold", "Change it for this workspace."),
        ("reconcile config --global ignore '*.log' '*.tmp'", "Change a list, for all workspaces."),
        ("reconcile config --unset diverged", "Remove it from the section of this workspace."),
    ),
)
@click.argument("name", required=False, shell_complete=SETTINGS)
@click.argument("values", nargs=-1, metavar="[VALUE]...")
@click.option("--global", "is_global", is_flag=True, help="Change the setting for all workspaces.")
@click.option("--unset", is_flag=True, help="Remove the setting from the file.")
@click.pass_context
def config(context: click.Context, name: str | None, values: tuple[str, ...], is_global: bool, unset: bool) -> None:
    """Show the settings and where they come from, or change one.

    With NAME, prints its value. With VALUE, writes it into reconcile.toml in your configuration directory: into the
    section of this workspace, or for all workspaces. Comments in the file stay.

    An option wins over the environment, the environment over the section of this workspace in reconcile.toml, and that
    over the rest of the file. Outside of a workspace, no section counts.
    """
    options = options_of(context)
    try:
        roots = find_roots(options)
    except LocateError:
        roots = None
    if name in _VERBS:
        raise Misuse(f"there is no setting {name!r}", _VERBS[name])
    if name is None and (is_global or unset):
        raise click.UsageError("--global and --unset need the NAME of a setting")
    if unset and values:
        raise click.UsageError("--unset takes no VALUE")
    if name is not None and (values or unset):
        _change(options, _id(roots), name, values, is_global=is_global)
    elif name is not None:
        if is_global:
            raise click.UsageError("--global needs a VALUE, or --unset")
        _print_value(options, roots, name)
    else:
        _print_all(options, roots)


def _change(options: Options, workspace_id: str | None, name: str, values: tuple[str, ...], *, is_global: bool) -> None:
    """Change a setting in the file, and report the value that is in force then."""
    if not is_global and workspace_id is None:
        raise Misuse("no workspace with settings of its own is here", "change it for all workspaces: --global")
    place = save_setting(os.environ, None if is_global else workspace_id, name, values)
    try:
        value, source, now = next(row[1:] for row in _settings(options, workspace_id) if row[0] == name)
    except ConfigError:  # another setting is wrong
        print_message(options, f"saved ({short_path(place)})")
        raise
    text = f"{name} is {json.dumps(value, ensure_ascii=False)} now"
    if now == place:
        print_message(options, f"{text} ({short_path(place)})")
    elif values:
        print_message(options, f"saved ({short_path(place)}), but {text}: {_place(source, now)} wins")
    else:
        print_message(options, f"{text} ({_place(source, now)})")
    if (name, value) == ("missing", Missing.REPROJECT):
        words = "the next run publishes every conversation that is not local; see it first: reconcile --dry-run"
        print_message(options, words)


def _print_value(options: Options, roots: Roots | None, name: str) -> None:
    """Print the value of one setting: a list has a line for each element."""
    check_name(name)
    rows = [row for row in _settings(options, _id(roots)) if row[0] == name]
    if options.json:
        _print_json(options, roots, rows)
        return
    value = rows[0][1]
    show([clean(str(each)) for each in (value if isinstance(value, list) else [value])])


def _print_all(options: Options, roots: Roots | None) -> None:
    path, rows = config_path(os.environ), _settings(options, _id(roots))
    if options.json:
        _print_json(options, roots, rows)
        return
    style = Style.choose(options.color)
    room, absent = None if style.columns is None else style.columns - 11, "" if os.path.exists(path) else " (absent)"
    directories = {} if roots is None else _directories(roots)
    lines = [f"file       {short_path(path, room, absent)}{absent}"]
    lines += [f"{name.ljust(10)} {short_path(directory, room)}" for name, directory in directories.items()]
    lines += ["workspace  none here: sections of the file don't count"] if roots is None else []
    show([style(line, dim=True) for line in lines] + [""])
    cells = [
        (name, clean(json.dumps(value, ensure_ascii=False)), _place(source, place))
        for name, value, source, place in rows
    ]
    columns = (Column("Setting"), Column("Value", shrinks=True), Column("From", shrinks=True))
    show([*table(columns, cells, style), "", style(_MEANINGS, dim=True)])


def _print_json(options: Options, roots: Roots | None, rows: list[Row]) -> None:
    path, directories = config_path(os.environ), None if roots is None else _directories(roots)
    listed = [{"name": name, "value": value, "source": source, "place": place} for name, value, source, place in rows]
    document = {"format": "reconcile.config/1", "file": path, "exists": os.path.exists(path)}
    print_document(options, {**document, "directories": directories, "settings": listed})


def _id(roots: Roots | None) -> str | None:
    return None if roots is None else roots.workspace_id


def _settings(options: Options, workspace_id: str | None) -> list[Row]:
    from reconcile.config import load_settings

    places = setting_places(os.environ, workspace_id)
    settings = with_layout(options, load_settings(os.environ, workspace_id))
    rows: list[Row] = []
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
