"""``reconcile diff ID``: prints the differences between the sides of one conversation, and its lost conflicts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from reconcile.inspect.conversation import decided_conflicts, mark_seen
from reconcile.model.snapshot import Side
from reconcile.model.units import unit_text
from reconcile.planning.conflicts import time_text

from ..command import Command
from ..context import find_ids, open_session, policy_of, settings_of
from ..options import IDS, options_of
from ..output.differences import SHOWN, compared, difference_lines
from ..output.screen import fit, show_paged
from ..output.text import Style, clean, pad, title_and_id
from ..run import opened, selection

if TYPE_CHECKING:
    from reconcile.inspect.conversation import Comparison


@click.command(
    "diff",
    cls=Command,
    accepts=("dry_run", "json", "verbose"),
    examples=(
        ("reconcile diff jp-c17780300000", "Compare both sides of a conversation."),
        ("reconcile diff jp-c17780300000 --verbose", "List every event that differs."),
    ),
)
@click.argument("conversation", metavar="ID", shell_complete=IDS)
@click.pass_context
def diff(context: click.Context, conversation: str) -> None:
    """Show the differences between store and workspace.

    Compares metadata by key, and events one by one. Also shows how the last conflict was decided, and marks that notice
    as read, unless --dry-run is given.
    """
    options = options_of(context)
    writes = not options.is_dry
    with opened(options) as engine:
        session, settings = engine.session, settings_of(engine.session.roots)
        roots = session.roots
        (one,) = find_ids(engine, [conversation])
        policy = policy_of(options, settings, selection(engine, options))
        view = engine.decide(engine.plan(policy, also=[one]), policy).views[one]
        comparison = compared(session, view)
        decided = [each for each in decided_conflicts(session, one) if not each.is_back(view)]
        losers = [version for each in decided for version in each.lost]
    if writes and any(not each.is_seen for each in decided):
        with open_session(roots, settings, readonly=False) as session:
            mark_seen(session, [one])
    if options.json:
        kept = [
            {
                "unit": version.unit,
                "file": version.file,
                "side": version.side.value,
                "version": version.name,
                "digest": version.digest,
            }
            for version in losers
        ]
        won = [
            {
                "unit": each.unit,
                "run": each.run,
                "winner": each.winner.value,
                "chosen": each.chosen,
                "lost": each.version,
            }
            for each in decided
        ]
        text = {"format": "reconcile.diff/1", "conversation": one, **_json(comparison), "losers": kept, "decided": won}
        click.echo(json.dumps(text, indent=2))
        return
    style = Style.choose(options.color)
    lines = [title_and_id(view.title, one, style)]
    lines += difference_lines(comparison, style, None if options.verbose else SHOWN)
    for each in decided:
        how = "chosen by you in" if each.chosen else "decided by"
        saved = f"saved in the vault ({time_text(max(version.mtime_ns for version in each.lost))})"
        unit = clean(unit_text(each.unit))
        lines.append(f"  conflict in {unit}, {how} run {each.run}:")
        lines += [f"    {pad(side.value, 10)} {'kept' if side is each.winner else saved}" for side in Side]
        lines += [f"    {style(f'reconcile {verb} {clean(each.spelling)}', 'cyan')}" for verb in ("show", "restore")]
    show_paged(fit(lines, style), style)


def _json(comparison: Comparison) -> dict[str, Any]:
    values: dict[str, Any] = to_builtins(comparison)
    values["metadata"] = [{"key": key, "store": ours, "workspace": theirs} for key, ours, theirs in comparison.metadata]
    values["extras"] = [{"name": name, "state": state} for name, state in comparison.extras]
    return values
