"""``reconcile diff``: prints the differences between the sides of a conversation, or between two versions."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from reconcile.errors import ReconcileError
from reconcile.inspect.conversation import decided_conflicts, mark_seen
from reconcile.inspect.differences import changes_as_json, differences_of
from reconcile.inspect.markdown import to_markdown
from reconcile.inspect.sources import read_source, split_spelling, split_unit, transcript_of
from reconcile.model.commands import typed
from reconcile.model.snapshot import Metadata, Side
from reconcile.model.units import unit_text
from reconcile.planning.steps.content import DIVERGED

from ..command import Command
from ..context import open_session, settings_of
from ..misuse import Misuse
from ..options import SOURCES, options_of
from ..output.diff_text import diff_lines
from ..output.differences import differences_of_sides
from ..output.documents import print_document
from ..output.screen import fit, show_paged
from ..output.text import Style, clean, format_time, pad, terminal_columns, title_and_id
from ..reading import opened_for_reading, views_that_differ
from ..run import opened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconcile.engine.session import Session
    from reconcile.inspect.conversation import Decided
    from reconcile.inspect.differences import Differences
    from reconcile.inspect.sources import Reading
    from reconcile.planning.rules.views import View

    from ..arguments import Options

_MOST = 2


@click.command(
    "diff",
    cls=Command,
    names={"sources": "sources"},
    prints_sides=False,
    accepts=("dry_run", "json", "verbose"),
    means={"dry_run": "Leave the notice of a conflict unread."},
    examples=(
        ("reconcile diff", "Compare both sides of all conversations that differ."),
        ("reconcile diff jp-c17780300000", "Compare both sides of a conversation."),
        ("reconcile diff jp-c17780300000 --side-by-side", "Show the store on the left, the workspace on the right."),
        ("reconcile diff jp-c17780300000@20260515-100000-00 jp-c17780300000", "Show what changed since a run."),
    ),
)
@click.argument("sources", metavar="[ID] [ID]", nargs=-1, shell_complete=SOURCES)
@click.option("--side-by-side", is_flag=True, help="Show the two versions in two columns.")
@click.option("--tool", metavar="[NAME]", is_flag=False, flag_value="", help="Open git's difftool, or the one named.")
@click.pass_context
def diff(context: click.Context, sources: tuple[str, ...], side_by_side: bool, tool: str | None) -> None:
    """Show the differences between store and workspace.

    Compares metadata by key, and events word by word. Without an ID, compares all conversations that both sides have
    and that differ. With one ID, also shows how the last conflict was decided, and marks that notice as read, unless
    --dry-run is given.

    An ID can also be a version: ID@store, ID@workspace, ID@RUN (saved by that run), ID@DIR (another checkout), or
    ID@REMOTE:COMMIT (as a remote had it). With two of them, compares these. One version alone is compared with the
    store's. ID:metadata and ID:events compare only this part of both sides.
    """
    options = options_of(context)
    if not sources and tool:
        sources, tool = (tool,), ""  # the option has taken the id for the name of a tool
    sources = _both_sides(*sources) if len(sources) == 1 else sources
    if len(sources) > _MOST or (tool is not None and not sources):
        raise Misuse(
            "name one conversation, or two versions to compare", "`reconcile status` lists the conflicts", context
        )
    if tool is not None and (options.json or side_by_side):
        raise click.UsageError("--tool opens a program; leave out --json and --side-by-side", context)
    if not sources:
        _show_all(options, is_wide=side_by_side)
        return
    decided: list[Decided] = []
    with opened_for_reading(options) as reading:
        session = reading.session
        is_plain = len(sources) == 1 and reading.split(sources[0])[1] is None
        differences, view = _sides(reading, sources[0]) if is_plain else (_versions(reading, sources), None)
        if view is not None:
            decided = [each for each in decided_conflicts(session, view.id) if not each.is_back(view)]
    if view is not None and not options.is_dry and any(not each.is_seen for each in decided):
        # A state that can't be written keeps the notice, and the difference is shown all the same.
        settings = settings_of(session.roots)
        with suppress(ReconcileError, OSError), open_session(session.roots, settings, readonly=False) as writing:
            mark_seen(writing, [view.id])
    if options.json:
        found = _as_json(differences, decided) if view is not None else _versions_as_json(differences)
        print_document(options, found)
        return
    if tool is not None:
        _open(session, differences, tool)
        return
    style = Style.choose(options.color)
    show_paged(_text(differences, view, decided, options, style, is_wide=side_by_side), style)


def _show_all(options: Options, *, is_wide: bool) -> None:
    """Print the differences of all conversations that differ; the notices of conflicts stay unread."""
    with opened(options) as engine:
        compared = ((differences_of_sides(engine.session, view), view) for view in views_that_differ(engine, options))
        found = [(differences, view) for differences, view in compared if not differences.comparison.empty]
        noun = engine.session.roots.noun
    if options.json:
        conversations = [_as_json(differences, []) for differences, _ in found]
        print_document(options, {"format": "reconcile.diffs/1", "conversations": conversations})
        return
    style, lines = Style.choose(options.color), list[str]()
    for differences, view in found:
        lines += [""] if lines else []
        lines += _text(differences, view, [], options, style, is_wide=is_wide)
    show_paged(lines or [f"No {noun} differs between the store and the workspace."], style)


def _both_sides(text: str) -> tuple[str, ...]:
    """Return the two sides of the part that a text names, ``ID:metadata`` or ``ID:events``; else the text alone."""
    name, unit = split_unit(text) if split_spelling(text)[1] is None else (text, "")
    return tuple(f"{name}@{side}:{unit}" for side in Side) if unit else (text,)


def _sides(reading: Reading, text: str) -> tuple[Differences, View]:
    """Compare the two sides of a conversation."""
    session = reading.session
    view = reading.view(reading.find(text))
    return differences_of_sides(session, view), view


def _versions(reading: Reading, texts: tuple[str, ...]) -> Differences:
    """Compare two versions; one alone is compared with the store's, and the store's with the workspace's."""
    left = read_source(reading, texts[0])
    if len(texts) == _MOST:
        right = read_source(reading, texts[1])
    else:
        other = "" if left.label != Side.STORE else f"@{Side.WORKSPACE}"
        right = read_source(reading, f"{left.conversation}{other}")
    return differences_of(reading.session.format, left, right)


def _text(
    differences: Differences,
    view: View | None,
    decided: list[Decided],
    options: Options,
    style: Style,
    *,
    is_wide: bool,
) -> Iterator[str]:
    left, right = differences.left, differences.right
    is_same = left.conversation == right.conversation
    title = left.title or (right.title if is_same else None)  # a version of the events alone has none
    yield title_and_id(title if view is None else view.title, left.conversation, style)
    labels = (left.label, right.label)
    if not is_same:
        yield title_and_id(right.title, right.conversation, style)
        labels = (f"{left.conversation} ({left.label})", f"{right.conversation} ({right.label})")
    if view is not None and (side := _only_side(view)) is not None:
        show = f"reconcile show {clean(typed(view.id))}{options.sides}"
        yield from fit([f"  only in the {side}; to read it: {show}"], style)
        if (source := _source_of(view)) is not None:
            diff = f"reconcile diff {clean(typed(source, view.id))}{options.sides}"
            yield from fit([f"  compare it with its source: {diff}"], style)
        return
    columns = terminal_columns() if is_wide else None
    shown = (clean(labels[0]), clean(labels[1]))
    yield from diff_lines(differences, shown, style, columns=columns, is_full=options.verbose)
    yield from fit(_decided_lines(decided, style, options.sides), style)


def _only_side(view: View) -> Side | None:
    """Return the side that has the conversation; None if both have it."""
    there = [side for side in Side if view.side(side).main is not None]
    return there[0] if len(there) == 1 else None


def _source_of(view: View) -> str | None:
    """Return the conversation whose continuation this fork has; None if it is no fork of a conflict."""
    is_fork = (view.title or "").startswith(f"{DIVERGED} ")
    metadata = view.store.main.metadata if is_fork and view.store.main is not None else None
    return metadata.parent.id if isinstance(metadata, Metadata) else None


def _decided_lines(decided: list[Decided], style: Style, sides: str) -> Iterator[str]:
    for each in decided:
        how = "chosen by you in" if each.chosen else "decided by"
        saved = f"saved in the vault ({format_time(max(version.mtime_ns for version in each.lost))})"
        unit = clean(unit_text(each.unit))
        yield f"  conflict in {unit}, {how} run {each.run}:"
        yield from (f"    {pad(side.value, 10)} {'kept' if side is each.winner else saved}" for side in Side)
        yield from (
            f"    {style(f'reconcile {verb} {clean(typed(each.spelling))}{sides}', 'cyan')}"
            for verb in ("diff", "restore")
        )


def _open(session: Session, differences: Differences, tool: str) -> None:
    """Open both versions as Markdown in the user's difftool."""
    form, texts = session.format, {}
    for number, source in enumerate((differences.left, differences.right), 1):
        name = "".join(char if char.isalnum() else "-" for char in source.label).strip("-")
        texts[f"{number}-{name[-40:]}.md"] = to_markdown(transcript_of(form, source))
    if len(set(texts.values())) == 1:
        click.echo("no differences in the texts")
        return
    from ..output.difftool import open_difftool  # here: most differences are printed

    open_difftool(session.directory, texts, tool)


def _as_json(differences: Differences, decided: list[Decided]) -> dict[str, Any]:
    values: dict[str, Any] = to_builtins(differences.comparison)
    values["metadata"] = [
        {"key": key, "store": ours, "workspace": theirs} for key, ours, theirs in differences.comparison.metadata
    ]
    values["extras"] = [{"name": name, "state": state} for name, state in differences.comparison.extras]
    return {
        "format": "reconcile.diff/1",
        "conversation": differences.left.conversation,
        **values,
        "losers": [
            {
                "unit": version.unit,
                "file": version.file,
                "side": version.side.value,
                "version": version.name,
                "digest": version.digest,
            }
            for each in decided
            for version in each.lost
        ],
        "decided": [
            {
                "unit": each.unit,
                "run": each.run,
                "winner": each.winner.value,
                "chosen": each.chosen,
                "lost": each.version,
            }
            for each in decided
        ],
        "changes": changes_as_json(differences.pairs),
    }


def _versions_as_json(differences: Differences) -> dict[str, Any]:
    known = differences.comparison
    sources = {"left": differences.left, "right": differences.right}
    return {
        "format": "reconcile.diff/1",
        "conversation": differences.left.conversation,
        **{
            word: {"conversation": source.conversation, "name": source.name, "label": source.label}
            for word, source in sources.items()
        },
        "metadata": [{"key": key, "left": ours, "right": theirs} for key, ours, theirs in known.metadata],
        "common": known.common,
        "left_only": to_builtins(known.store_only),
        "right_only": to_builtins(known.workspace_only),
        "base_config_differs": known.base_config_differs,
        "extras": [{"name": name, "state": state} for name, state in known.extras],
        "notes": list(known.notes),
        "changes": changes_as_json(differences.pairs),
    }
