"""``reconcile status [ID]``: how each conversation stands, and everything known of one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins
from msgspec.structs import replace

from reconcile.errors import ReconcileError
from reconcile.fs.paths import quoted_path
from reconcile.inspect.conversation import decided_conflicts, describe, notices
from reconcile.inspect.short_ids import short_ids_at
from reconcile.model.plan import Kind, number_of, states_of
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import Metadata, Side
from reconcile.model.units import unit_text
from reconcile.planning.conflicts import undecided
from reconcile.planning.filters import named
from reconcile.planning.status_listing import StatusLine, status_lines
from reconcile.state.directory import REMOTES

from ..command import Command
from ..context import find_ids, policy_of, settings_of
from ..lost_stores import lost_here
from ..misuse import Misuse
from ..options import IDS, options_of
from ..output.documents import print_document
from ..output.interaction import print_message
from ..output.next_commands import decisions, decisions_about, further, next_lines
from ..output.screen import show_paged, wrap
from ..output.text import (
    MAX_COLUMNS,
    MAX_INDENT,
    Style,
    age_text,
    clean,
    heading,
    indented,
    message_text,
    naming_sides,
    pad,
    short_path,
    shorten,
    show,
    title_and_id,
    visible,
    width,
    with_directory,
    with_local_times,
)
from ..output.words import intent_words, state_counts, state_word
from ..run import had_before, opened, selection, warn_of_new_workspace

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence

    from reconcile.adapters.roots import Roots
    from reconcile.engine.engine import Engine
    from reconcile.engine.session import Session
    from reconcile.engine.versions import Lost
    from reconcile.model.plan import Conflict, Item, Plan
    from reconcile.model.policy import Policy
    from reconcile.remote.known import Pending

    from ..arguments import Options

QUIET = frozenset({"in-sync", "available", "local", "archived"})
"""States of conversations that are listed with ``-v`` only."""
_NAMED = 5
"""Files that no run copies, as far as they are listed without ``-v``."""
LEAST_TITLE = 16
"""Columns that indentation leaves for a title."""
COLORS = {
    "in-sync": "green",
    "held": "yellow",
    "invalid": "yellow",
    "local-present": "yellow",
    "lost": "yellow",
    "conflict": "red",
    "behind": "blue",
    "requested": "blue",
    "busy": "blue",
}


@click.command(
    "status",
    cls=Command,
    names={"conversation": "ids"},
    of_one=("conversation",),
    accepts=("only", "below", "prefer", "all", "json", "verbose", "quiet"),
    examples=(
        ("reconcile status", "Show what is not up to date, and count the rest."),
        ("reconcile status jp-c17780300000", "Show what is known of one conversation on both sides."),
        ("reconcile status --all", "Print a line with the counts of each project."),
    ),
)
@click.argument("conversation", required=False, metavar="[ID]", shell_complete=IDS)
@click.pass_context
def status(context: click.Context, conversation: str | None) -> None:
    """Show the state of all conversations, or details of one.

    With --verbose, lists all conversations; of one, also shows the hashes of its versions and of the last synced state.
    With --all, prints one line for each project. Writes nothing.
    """
    options = options_of(context)
    with opened(options) as engine:
        session = engine.session
        policy = policy_of(options, settings_of(session.roots), selection(engine, options))
        ids = find_ids(engine, () if conversation is None else [conversation])
        busy, decided = session.busy(), decided_conflicts(session)
        noticed = {found for each in decided for found in (each.conversation, each.child) if found is not None}
        if not ids and policy.is_unlimited and (options.json or options.verbose):
            engine.read_everything()  # every conversation is listed
        also = ids if ids or not policy.is_unlimited else {*busy, *noticed, *engine.noteworthy}
        found = engine.plan(policy, also=also)
        board, plan = engine.decide(found, policy), engine.completed(found)
        before = _ways_to_previous(options, engine, policy)
        for message in session.notices if not options.heading else ():
            print_message(options, message)
        noted = notices(session, decided, board.views)
        listed = status_lines(board, plan, busy, noted, engine.empty_directories(found))
        shared, conflicts = _shared(session.roots), _by_conversation(plan.conflicts)
        blocked_there = 0 if ids else _blocked_in_folder(options, session.roots)
        if ids:
            standing = next((each for each in listed if each.conversation == ids[0]), None)
            if standing is None:
                raise Misuse(f"{ids[0]} is on neither side any more", "see what runs did: reconcile log")
            ways = decisions_about(plan, ids[0])
            details = describe(session, board, ids[0])
            details |= {"shared": ids[0] in shared} if session.roots.folder else {}
            _show_one(options, session.roots, standing, details, conflicts.get(ids[0], ()), ways)
            return
        others: dict[str, str] = {}
        lost: tuple[Lost, ...] = ()
        if (wanted := named(board)) is not None:
            listed = tuple(each for each in listed if each.conversation in wanted)
        else:
            lost = lost_here(session, engine.known.present())
            listed += tuple(map(_lost, lost))
            others = engine.states_besides(found)
        sides = tuple(item for item in plan.held if item.conversation is None)
        if options.json:
            blocked = [
                {"reason": item.reason.value, "message": item.message, "resolve": item.resolve} for item in sides
            ]
            lines_of = [_builtins(each) for each in listed]
            document = {"format": "reconcile.status/1", "conversations": lines_of, "blocked": blocked}
            beside = {"shared": sorted(shared), "blocked_in_folder": blocked_there}
            print_document(options, document | (beside if session.roots.folder else {}))
            return
        style = Style.choose(options.color)
        counts = dict(states_of(others | {each.conversation: each.word for each in listed}, session.format.places))
        if options.heading:
            show(_line_of_all(options.heading, counts, session.roots, len(sides), style))
            return
        lines = [
            *_store_lines(plan, style, options.sides, is_lost=board.sides.store_renewed),
            *(line for each in sides for line in _side_lines(each, session.roots, style)),
        ]
        more = [*(before or _ways_to_gone(engine)), *_ways_in_folder(session.roots, blocked_there)]
        lines += [
            *_all_lines(
                tuple(_naming(options, each) for each in listed),
                counts,
                style,
                session.roots,
                conflicts,
                _quiet_states(options, session),
                noted,
            ),
            *_shared_lines(session.roots, shared, style),
            *_next_lines(counts, plan, lost, more, style, options.sides, session.roots, options.idle),
            *_remote_lines(engine, style),
        ]
        show_paged([heading(session.roots, policy.layout.value, style), "", *lines], style)


def _line_of_all(heading: str, counts: Mapping[str, int], roots: Roots, sides: int, style: Style) -> list[str]:
    """Return the line of one of all projects. ``sides``: how much blocks it as a whole."""
    blocked = "; the project is blocked" if sides else ""
    end = state_counts(counts.items(), roots.noun, is_public=roots.is_in_project)
    return wrap(f"{heading}: {end}{blocked}.", style.columns, "", "  ")


def _shared(roots: Roots) -> frozenset[str]:
    """Return the sessions that the repository shares."""
    if not roots.folder:
        return frozenset()
    from reconcile.adapters.claude_code.shared_folder import shared_in  # here: few projects have the folder

    return shared_in(roots.folder)


def _shared_lines(roots: Roots, shared: frozenset[str], style: Style) -> list[str]:
    """Return the line that tells how many sessions are shared, and how to see that side."""
    if not shared:
        return []
    which = "1 of them is" if len(shared) == 1 else f"{len(shared)} of them are"
    return wrap(f"{which} shared in {_folder(roots)}: reconcile status --format claude-shared", style.columns)


def _blocked_in_folder(options: Options, roots: Roots) -> int:
    """Return how much is blocked in the folder for shared sessions: a run syncs it, too."""
    if not roots.folder or not os.path.lexists(roots.folder):
        return 0
    folder = options.in_format("claude-shared")
    try:
        with opened(folder) as engine:
            return len(engine.completed(engine.plan(policy_of(folder, settings_of(engine.session.roots)))).held)
    except (ReconcileError, OSError) as error:
        print_message(options, f"{_folder(roots)}: {error}")
        return 0


def _ways_in_folder(roots: Roots, blocked: int) -> list[tuple[str, str]]:
    """Return the command that shows what is blocked in the folder, and what it does."""
    if not blocked:
        return []
    return [("reconcile status --format claude-shared", f"shows what is blocked in {_folder(roots)} ({blocked})")]


def _ways_to_previous(options: Options, engine: Engine, policy: Policy) -> list[tuple[str, str]]:
    """Return the command that restores what a previous ``.jp`` had; where no commands are listed, print it instead."""
    before = "" if options.json or options.heading or options.quiet else had_before(engine, policy)
    if before:
        return [("reconcile recover", f"restores {before}")]
    warn_of_new_workspace(options, engine, policy)
    return []


def _ways_to_gone(engine: Engine) -> Iterator[tuple[str, str]]:
    """Yield the command for each checkout elsewhere that is gone and had conversations that this one never had."""
    session = engine.session
    if not (gone := session.gone()):
        return
    store, workspace = (engine.known.sides[side] for side in Side)
    from reconcile.adapters.claude_code.directories import restorable_from  # here: few projects have one that is gone

    places = session.format.places
    known = session.state.load(session.checkout)
    missing = {
        copy.conversation
        for copy in store.copies()
        if copy.conversation not in workspace.conversations()
        and copy.conversation not in known.intents
        and not (isinstance(copy.metadata, Metadata) and copy.metadata.local)
    }
    for project, had in gone.items():
        if project != session.project and (lost := restorable_from(project, had & missing, session.roots)):
            count = number_of(lost, places)
            what = f"{count} {session.roots.noun}{'' if count == 1 else 's'}" if count else "files"
            purpose = f"restores {what} of {short_path(project)}, which is gone"
            yield f"reconcile recover --from {quoted_path(project)}", purpose


def _folder(roots: Roots) -> str:
    return clean(os.path.relpath(roots.folder, roots.project))


def _remote_lines(engine: Engine, style: Style) -> Iterator[str]:
    """Yield a line for each remote: how much a sync would send and take, as known without the network."""
    state = engine.session.directory
    if not os.path.isdir(os.path.join(state, REMOTES)):
        return
    from reconcile.remote.known import known_of, pending  # here: most stores have no remote
    from reconcile.remote.place import remotes

    known = remotes(state, engine.session.roots.name_elsewhere)
    for place in known:
        contact = place.contact_ns
        if refusal := place.refusal:
            parts = [f"the last sync was refused ({visible(refusal)})"]
        else:
            found = pending(engine.session, engine.known.sides[Side.STORE].copies(), place)
            parts = _pending_parts(found, engine.session.roots.noun, place.name if len(known) > 1 else "")
            if known_of(engine.session.state, place.name).commit is None and (
                found.on_both or (found.to_send and found.to_take)
            ):
                parts = ["not compared yet"]  # both may have the same
        parts += [f"last contact {age_text(engine.session.now_ns() - contact)}" if contact else "never synced"]
        yield from ("", *wrap(f"remote {place.name}: {', '.join(parts)}", style.columns, "", "  "))


def _pending_parts(pending: Pending, noun: str, remote: str) -> list[str]:
    """Return what a sync would do; ``remote`` is the name that a command needs, if there are several."""
    parts = [f"{pending.to_send} {noun}{'' if pending.to_send == 1 else 's'} to send"]
    parts += [f"{pending.to_remove} to remove there"] if pending.to_remove else []
    parts += [] if pending.to_take is None else [f"{pending.to_take} to take"]
    parts += [f"{pending.on_both} changed on both machines (a sync decides or asks)"] if pending.on_both else []
    if pending.waiting:
        way = " ".join(("reconcile sync", *([remote] if remote else []), "--allow-bulk-removal"))
        parts.append(f"{pending.waiting} to remove here{f' (blocked: {way})' if pending.is_bulk else ''}")
    return parts


def _lost(lost: Lost) -> StatusLine:
    detail = f"{lost.left}: {lost.command}" if lost.command else lost.left
    return StatusLine(lost.conversation, lost.title, 0, "lost", (f"lost with a store; {detail}",), settled=False)


def _by_conversation(conflicts: Iterable[Conflict]) -> dict[str, list[Conflict]]:
    found: dict[str, list[Conflict]] = {}
    for conflict in conflicts:
        found.setdefault(conflict.conversation, []).append(conflict)
    return found


def _detail_lines(
    details: Sequence[str],
    conflicts: Iterable[Conflict],
    style: Style,
    begin: str,
    indent: str,
    *,
    dim: bool = False,
) -> Iterator[str]:
    """Yield each detail, the first behind ``begin``; below a conflict, the values of both sides that differ."""
    open_conflicts = {undecided(each): each for each in conflicts}
    for number, detail in enumerate(details):
        further = indent if len(details) == 1 else f"{indent}  "
        first = indent if number else begin
        yield from (style(line, dim=dim) for line in wrap(message_text(detail), style.columns, first, further))
        if detail in open_conflicts:
            yield from _values(open_conflicts.pop(detail), style, f"{indent}  ")
    for conflict in open_conflicts.values():
        yield from _values(conflict, style, f"{indent}  ")


def _values(conflict: Conflict, style: Style, indent: str) -> Iterator[str]:
    from ..output.conflict_text import value_lines  # here: most conversations have no conflict

    return value_lines(conflict, style.columns, indent)


def _builtins(line: StatusLine) -> dict[str, Any]:
    """Return a status line for JSON, with its details as one text."""
    values = to_builtins(line)
    return {("detail" if key == "details" else key): values[key] for key in values} | {"detail": line.detail}


def _naming(options: Options, line: StatusLine) -> StatusLine:
    """Return the line with the options for the two sides in the commands that it names."""
    if not (options.sides and line.details):
        return line
    return replace(line, details=tuple(naming_sides(detail, options.sides) for detail in line.details))


def _quiet_states(options: Options, session: Session) -> frozenset[str]:
    """Return the states of conversations that are only counted: of deleted ones, some formats have hundreds."""
    if options.verbose:
        return frozenset()
    places = session.format.places
    return QUIET | {"removed"} if places is not None and places.deletes_old else QUIET


def _all_lines(
    entries: tuple[StatusLine, ...],
    counts: Mapping[str, int],
    style: Style,
    roots: Roots,
    conflicts: Mapping[str, Sequence[Conflict]],
    quiet: Collection[str],
    noted: Container[str],
) -> list[str]:
    """Return lines for everything that is not settled, and a count of all; ``quiet`` states are only counted.

    Without ``quiet`` states, ids are whole. ``noted`` are conversations with a notice: a run has decided a conflict.
    """
    shown = [entry for entry in entries if not entry.settled or entry.word not in quiet or _has_notice(entry, noted)]
    words = [state_word(entry.word, is_public=roots.is_in_project) for entry in shown]
    short = short_ids_at(roots) if shown and quiet else {}
    ids = [
        "" if entry.title == entry.conversation else clean(short.get(entry.conversation, entry.conversation))
        for entry in shown
    ]
    first = max(map(width, words), default=0)
    room = MAX_COLUMNS if style.columns is None else style.columns - first - 4 - max(map(width, ids), default=0)
    is_below = room < LEAST_TITLE  # the id has a line of its own
    room = style.columns - first - 2 if is_below and style.columns is not None else room
    levels = MAX_INDENT if style.columns is None else max(0, (room - LEAST_TITLE) // 2)
    titles = [
        shorten(indented(entry.depth, visible(entry.title or "(no title)"), levels), max(room, 1)) for entry in shown
    ]
    second = max(map(width, titles), default=0)
    lines = []
    for entry, word, title, shown_id in zip(shown, words, titles, ids, strict=True):
        start = style(pad(word, first), COLORS.get(entry.word))
        if is_below:
            lines += [f"{start}  {title}", *([f"    {style(shown_id, dim=True)}"] if shown_id else [])]
        else:
            lines.append(f"{start}  {pad(title, second)}  {style(shown_id, dim=True)}".rstrip())
        if entry.word not in QUIET | {"external"} or _has_notice(entry, noted):
            of_entry = conflicts.get(entry.conversation, ()) if entry.details else ()
            lines += _detail_lines(entry.details, of_entry, style, "    ", "    ", dim=True)
    end = state_counts(counts.items(), roots.noun, is_public=roots.is_in_project)
    return [*lines, *(style(line, bold=True) for line in wrap(f"{end}.", style.columns))]


def _store_lines(plan: Plan, style: Style, sides: str, *, is_lost: bool) -> list[str]:
    """Return the note of a plan that the store was lost or replaced, as the next run prints it.

    ``is_lost``: the store is another one, or has none of its conversations. If it is the same directory, a plan has no
    note, as each of its steps has that reason.
    """
    texts = [message_text(note.message) for note in plan.notes if note.reason is Reason.STORE_REPLACED]
    if is_lost and not texts:
        words = "the store has lost its conversations since the last run; nothing counts as removed"
        texts = [f"{words}, and the next run copies what is here: reconcile{sides}"]
    return [style(line, "yellow") for text in texts for line in wrap(text, style.columns, "note  ", " " * 6)]


def _side_lines(item: Item, roots: Roots, style: Style) -> list[str]:
    """Return the lines of what is blocked on a whole side."""
    return [
        style(line, "yellow")
        for line in wrap(message_text(with_directory(item.message, roots)), style.columns, "blocked  ", " " * 9)
    ]


def _next_lines(
    counts: Mapping[str, int],
    plan: Plan,
    lost: Sequence[Lost],
    there: Sequence[tuple[str, str]],
    style: Style,
    sides: str,
    roots: Roots,
    idle: str,
) -> list[str]:
    """Return the commands that come next, as git does, or ``idle`` if there are none.

    ``there`` are those about the folder for shared sessions.
    """
    ways = [*decisions(plan), *further(plan, roots, lost, counts.get("empty", 0), counts.get("removed", 0))]
    ways += there
    # To reset a file's time is no change that a person has made or waits for: every new worktree has such times.
    changing = {action.conversation for action in plan.actions if action.kind is not Kind.AGE}
    forks = {action.conversation for action in plan.actions if action.kind is Kind.FORK}  # parts of another's change
    if pending := len(changing - forks) or len(forks):
        ways.append(("reconcile", f"syncs what changed ({pending}); with --dry-run, it only shows what it would do"))
    return next_lines(ways, style, sides) or ([] if plan.held else [idle])


def _has_notice(line: StatusLine, noted: Container[str]) -> bool:
    """Tell whether a conversation that needs nobody has a notice."""
    return (line.word == "in-sync" and bool(line.details)) or (line.word == "available" and line.conversation in noted)


def _show_one(
    options: Options,
    roots: Roots,
    entry: StatusLine,
    details: dict[str, Any],
    conflicts: Iterable[Conflict],
    ways: Iterable[tuple[str, str]],
) -> None:
    if options.json:
        print_document(options, {"format": "reconcile.status/1", **_builtins(entry), **details})
        return
    style = Style.choose(options.color)
    lines = [title_and_id(entry.title, entry.conversation, style)]
    removed_by, is_public = details["removed_by"], roots.is_in_project
    intent = f"removed here by run {removed_by}" if removed_by else intent_words(details["intent"], is_public=is_public)
    word = state_word(entry.word, is_public=is_public)
    entry = _naming(options, entry)
    begin, indent = f"  {pad('state', 9)}  {word}", " " * 13
    lines += _detail_lines(entry.details, conflicts, style, f"{begin}: ", indent) if entry.details else [begin]
    rows = [("intent", intent), ("parents", clean(_parents(details)))]
    rows += [("shared", f"in {_folder(roots)}")] if details.get("shared") else []
    rows += [(side.value, clean(path)) for side in Side for path in details[side.value] or ["(none)"]]
    if left := details.get("hidden"):
        names = _listed(left, len(left) if options.verbose else _NAMED)
        rows.append(("left out", f"{names}; no run copies hidden and temporary files, and links"))
    for name, words in rows:
        lines += wrap(words, style.columns, f"  {pad(name, 9)}  ", indent)
    is_alone = len(details["units"]) == 1
    is_file = is_alone and entry.conversation in (*details["store"], *details["workspace"])
    for unit in details["units"]:
        name = "file" if is_file else clean(unit_text(unit["unit"]))
        lines += wrap(f"{name}: {unit['meaning']}", style.columns, "  ", "    ")
        for name, words in (("baseline", "last synced"), ("store", "store"), ("workspace", "workspace")):
            if text := _version_words(unit[name] or {}, with_hash=options.verbose):
                lines += wrap(text, style.columns, f"    {pad(words, 11)}  ", " " * 17)
    following = next_lines(ways, style, options.sides)
    lines += ["", *following] if following else []
    show_paged(lines, style)


def _listed(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(map(clean, names[:most]))}{more}"


def _version_words(version: dict[str, Any], *, with_hash: bool) -> str:
    """Return the words of one version of a unit: its hash, its time, or why it is invalid. Empty if there are none."""
    fault, when, digest = version.get("fault"), version.get("time"), version.get("digest")
    parts = [_short_hash(digest)] if digest and with_hash else []
    parts += [f"invalid: {clean(str(fault))}"] if version and not digest else []
    return "  ".join([*parts, *([with_local_times(when)] if when else [])])


def _short_hash(digest: str) -> str:
    """Return the beginnings of the hashes of a unit's files."""
    return "+".join(part[:16] for part in digest.split("+"))


def _parents(details: dict[str, Any]) -> str:
    known = details["known_parent"]
    if details["parents"]:
        return " > ".join(details["parents"])
    return f"(a root: its parent {known} is deleted or archived)" if known else "(a root)"
