"""``reconcile vault``: lists the versions in the vault, and removes some for good."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from reconcile.engine.versions import Holding, find_holding, holdings, older_than, remove_objects, saved_titles
from reconcile.planning.simulate import listing_of

from ..command import Command
from ..context import find_roots, open_session, settings_of
from ..options import command_line, options_of, parse_age
from ..output.documents import print_document
from ..output.interaction import confirm_or_exit, waiting_callback
from ..output.screen import show_paged, wrap
from ..output.text import Style, clean, format_time, size, visible

if TYPE_CHECKING:
    from reconcile.engine.session import Session
    from reconcile.state.vault import Version

    from ..arguments import Options

SHOWN = 20
_REMOVES = ("dry_run", "yes", "quiet")
"""The shared options of what deletes versions."""


@click.command(
    "vault",
    cls=Command,
    names={"purge": "objects"},
    of_first=("prune",),
    prints_sides=False,
    accepts=("json", "verbose"),
    accepts_with={"prune": _REMOVES, "purge": _REMOVES},
    examples=(
        ("reconcile vault", "List the newest 20 saved versions, and the size of all."),
        ("reconcile vault --prune --older-than 6m --dry-run", "Show which versions are older than six months."),
    ),
)
@click.option("--prune", is_flag=True, help="Delete versions last saved longer ago than --older-than.")
@click.option("--older-than", metavar="AGE", help="Age for --prune: 12h, 30d, 8w, 6m, 1y.")
@click.option("--purge", metavar="HASH", help="Permanently delete one saved version, e.g. a secret.")
@click.pass_context
def vault(context: click.Context, prune: bool, older_than: str | None, purge: str | None) -> None:
    """Show saved versions, or delete some for good.

    The vault keeps every version that a run has replaced, until you prune or purge it. A deleted version can't be
    restored, and the runs that replaced it can't be undone.
    """
    if prune != (older_than is not None) or (prune and purge is not None):
        raise click.UsageError("choose one: --prune --older-than AGE, or --purge HASH")
    options = options_of(context)
    roots = find_roots(options)
    settings = settings_of(roots)
    planned = prune or purge is not None
    limit = None if older_than is None else time.time_ns() - parse_age(older_than)
    with open_session(roots, settings, readonly=True) as session:
        chosen = _chosen(session, limit, purge)
        if not options.yes or options.is_dry or not planned or not chosen:
            _report(options, session, chosen, planned=planned)
        if options.is_dry or not planned or not chosen:
            return
    confirm_or_exit(options, f"Delete {_counted(chosen)} from the vault for good?")
    with (
        open_session(roots, settings, readonly=False) as session,
        session.exclusively(command_line(context), settings.lock_timeout, waiting_callback(options)),
    ):
        confirmed = {holding.digest for holding in chosen}
        chosen = tuple(holding for holding in _chosen(session, limit, purge) if holding.digest in confirmed)
        chosen = remove_objects(session.state, session.vault, chosen, only_unchanged=limit is not None)
        _report(options, session, chosen, removed=True)


def _chosen(session: Session, limit: int | None, purge: str | None) -> tuple[Holding, ...]:
    every = holdings(session.state, session.vault)
    if purge is not None:
        return (find_holding(every, purge),)
    return tuple(each for each in every if each.saved_ns) if limit is None else older_than(every, limit)


def _counted(chosen: tuple[Holding, ...]) -> str:
    total = size(sum(holding.size for holding in chosen))
    return f"{len(chosen)} version{'' if len(chosen) == 1 else 's'} ({total})"


def _report(
    options: Options, session: Session, chosen: tuple[Holding, ...], *, removed: bool = False, planned: bool = False
) -> None:
    if options.json:
        document = {
            "format": "reconcile.vault/1",
            "objects": [_as_json(holding) for holding in chosen],
            "bytes": sum(holding.size for holding in chosen),
            "removed": removed,
        }
        print_document(options, document)
        return
    style = Style.choose(options.color)
    shown = chosen if options.verbose else chosen[-SHOWN:]
    agreed = session.state.load(session.checkout).agreed
    versions = [holding.versions[-1] for holding in shown if holding.versions]
    titles = saved_titles((each for each in versions if each.conversation not in agreed), session.vault, session.format)
    titles |= {conversation: entry.title for conversation, entry in agreed.items() if entry.title}
    lines: list[str] = []
    for holding in reversed(shown):
        version = holding.versions[-1] if holding.versions else None
        name = _name(version) if version is not None else "(of no run)"
        title = titles.get(version.conversation) if version is not None and version.conversation else None
        start = f"{holding.digest[:16]}  {size(holding.size):>9}  {format_time(holding.newest_ns)}"
        lines += wrap(f"{start}  {visible(f'{name}  {title}' if title else name)}", style.columns, "  ", "      ")
    if len(chosen) > len(shown):
        lines.append(f"  ... and {len(chosen) - len(shown)} older ones (-v shows all)")
    words = "would be deleted from the vault for good" if planned else "in the vault"
    words = "deleted from the vault for good" if removed else words
    lines += [style(line, bold=True) for line in wrap(f"{_counted(chosen)} {words}.", style.columns)]
    show_paged([] if removed and options.quiet else lines, style)
    if removed:
        _warn_of_sides(session, chosen)


def _name(version: Version) -> str:
    """Return the name of a version that `show` takes, or its unit and file if no run has kept it."""
    if version.run is None:
        return "  ".join(part for part in (version.conversation, version.unit, version.file, "(of no run)") if part)
    return f"{version.spelling}  {version.file}"


def _warn_of_sides(session: Session, chosen: tuple[Holding, ...]) -> None:
    """Print the places on both sides that still have the same content."""
    removed = {version.xxh3 for holding in chosen for version in holding.versions}
    world = session.scan()
    for place, state in listing_of(world.store, world.workspace).items():
        if state.digest in removed:
            click.echo(f"  this content is still at: {clean(str(place))}")


def _as_json(holding: Holding) -> dict[str, object]:
    return {
        "digest": holding.digest,
        "size": holding.size,
        "newest_ns": holding.newest_ns,
        "versions": [
            {
                "conversation": v.conversation,
                "unit": v.unit,
                "file": v.file,
                "run": v.run,
                "place": f"{v.side}:{v.path}",
            }
            for v in holding.versions
        ],
    }
