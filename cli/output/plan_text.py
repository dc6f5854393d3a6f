"""The report of a run: its plan as text or JSON, the outcome, and the exit code.

The text groups actions by conversation in the order of the tree, each with its reason. A run has an order of its own:
where it differs, a line tells so, and ``-v`` numbers the steps.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain, takewhile
from operator import is_
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.apply.executor import Result
from reconcile.formats import get_format
from reconcile.model.commands import typed
from reconcile.model.options import Take
from reconcile.model.plan import Kind
from reconcile.model.policy import RestoreRequest, UndoRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import WHOLE, Side
from reconcile.model.units import unit_text

from .errors import ExitCode
from .interaction import is_interactive, print_message, print_warning
from .screen import command_lines, show_paged, wrap
from .summary import is_skipped, result_lines, summary, verb
from .text import (
    MAX_INDENT,
    Style,
    clean,
    heading,
    message_text,
    naming_sides,
    pad,
    short_path,
    shorten,
    show,
    show_nothing_to_do,
    size,
    visible,
    width,
    with_directory,
)
from .words import (
    DIRECTED,
    PLACES,
    REMOVALS,
    VERB_COLUMNS,
    is_rename,
    publication_word,
    reason_words,
    state_counts,
    without_last_secrets,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from reconcile.adapters.roots import Roots
    from reconcile.apply.executor import Outcome
    from reconcile.engine.versions import Lost
    from reconcile.inspect.losses import Losses
    from reconcile.model.plan import Action, Conflict, Heading, Item, Note, Plan
    from reconcile.model.snapshot import Place

    from ..arguments import Options

LONG = 60
"""The longest plan that is listed in full without ``-v``."""
SHOWN = 20
TITLE = 60
"""Columns of a title in a line of ``watch``."""
DETAIL = 32
"""Columns of an action's object, beyond which its reason is not aligned with the others."""
LEAST_ROOM = 48
"""Columns that indentation leaves for the text."""
LEAST_REASON = 24
"""Columns that are left for a reason in a line of its own."""
LEAST_TITLE = 16
"""Columns of a title beside its id."""
MAX_TITLE = 200
"""Columns of titles where nothing else limits them."""
_TWO_WAYS = "; publish it all the same, or keep it private:"
"""The end of the message of a conversation with a secret, before its two commands."""
COLORS = {
    Kind.COPY: "green",
    Kind.PROJECT: "cyan",
    Kind.FORK: "magenta",
    Kind.REMOVE_STALE: "red",
    Kind.REMOVE: "red",
}
CALM_COLORS = {**COLORS, Kind.REMOVE_STALE: "magenta", Kind.REMOVE: "magenta"}
"""Colours of what is done: red is for what needs attention."""
IN_TREE = "Listed by conversation; -v numbers the steps in the order of the run."
IN_STEPS = "Listed by conversation; the numbers are the order of the run."
NEW = "a new fork"
"""The text in the place of an id that another plan won't use."""
_ABSENT = {"removed", "available", "local"}
"""The states of conversations that the workspace lacks; another worktree may have those that were never here."""
SKIPPED = "skipped, until you decide"
BLOCKED = "blocked, until you decide or repair"
ASIDE = "left alone, until you choose or a file changes"
WITH_PATH = (Reason.DUPLICATE, Reason.FLATTENED)
"""Reasons for which a removed directory's path matters."""


class PlanText:
    """The lines of one plan."""

    def __init__(
        self,
        plan: Plan,
        style: Style,
        *,
        verbose: bool,
        sides: str = "",
        done: bool = False,
        run: str = "",
        is_binding: bool = True,
        is_public: bool = True,
        short: Mapping[str, str] | None = None,
        losses: Losses | None = None,
    ) -> None:
        """Prepare the plan for printing.

        ``sides``: the options for the two sides, which suggested commands repeat. ``done``: it is carried out, by
        ``run``. ``is_binding``: forks get the ids of this plan; another plan gives them other ids. ``is_public``: the
        workspace lies in the project, where others see it. ``short``: shorter ids of some conversations. ``losses``:
        those that notes are about.
        """
        self._short = short or {}
        self._losses = losses
        forks = () if is_binding else (action for action in plan.actions if action.kind is Kind.FORK)
        self._without_id = frozenset(action.conversation for action in forks)
        self._run = run
        self._plan = plan
        self._style = style
        self._verbose = verbose
        self._sides = sides
        self._is_done = done
        self._is_public = is_public
        self._colors = CALM_COLORS if done else COLORS
        self._actions_of: dict[str, list[Action]] = {}
        for action in plan.actions:
            self._actions_of.setdefault(action.conversation, []).append(action)
        self._above = self._ancestors()
        room = MAX_INDENT if style.columns is None else (style.columns - LEAST_ROOM) // 2
        self._levels = max(0, min(MAX_INDENT, room))
        self._detail = 0
        self._is_in_order = self._keeps_order()
        is_numbered = verbose and not self._is_in_order
        self._number_columns = max((len(action.id) + 2 for action in plan.actions), default=0) if is_numbered else 0

    def _keeps_order(self) -> bool:
        """Tell whether the actions are listed in the order in which a run carries them out."""
        listed = chain.from_iterable(self._actions_of.get(entry.conversation, ()) for entry in self._plan.outline)
        return all(map(is_, listed, self._plan.actions))

    def _ancestors(self) -> set[str]:
        """Return the conversations without actions that have descendants with actions."""
        above: set[str] = set()
        path: list[str] = []
        for entry in self._plan.outline:
            del path[entry.depth :]
            if entry.conversation in self._actions_of:
                above.update(takewhile(lambda outer: outer not in above, reversed(path)))
            path.append(entry.conversation)
        return above

    def lines(self) -> Iterator[str]:
        """Yield the lines of the whole text."""
        yield from self._actions()
        if self._plan.conflicts:
            from .conflict_text import conflict_lines  # here: most plans have none

            yield from conflict_lines(self._plan, self._heading, self._style, self._sides, run=self._run)
        skipped = [item for item in self._plan.held if is_skipped(item, self._plan.policy)]
        yield from self._items(SKIPPED, skipped, None)
        yield from self._items(BLOCKED, [item for item in self._plan.held if item not in skipped], "yellow")
        yield from self._items(ASIDE, self._plan.aside, None)
        yield from self._notes()

    def chosen(self, plan: Plan, outcome: Outcome) -> Iterator[str]:
        """Yield the commands that bring back the versions that a person has not chosen."""
        if plan.policy.choices or plan.policy.decisions:
            from .conflict_text import chosen_lines  # here: most plans have none

            yield from chosen_lines(plan, outcome, self._heading, self._style, self._sides)

    def _actions(self) -> Iterator[str]:
        if not self._plan.actions:
            return
        is_cut = not self._verbose and len(self._plan.actions) > LONG
        groups = self._groups()
        if is_cut:
            groups = self._first(groups)
        shown = [action for entry, _ in groups for action in self._actions_of.get(entry.conversation, ())]
        self._detail = min(DETAIL, max(map(width, map(self._detail_of, shown)), default=0))
        for entry, folded in groups:
            actions = self._actions_of.get(entry.conversation, [])
            before = "  " * min(entry.depth, self._levels)
            prefix = "" if entry.depth <= self._levels else f"{entry.depth}: "
            yield from self._heading(entry.conversation, entry.title, before + prefix, bold=bool(actions))
            for action in actions:
                yield from self._lines_of(action, f"{before}  ")
                for words in self._words(action):
                    yield from wrap(clean(words), self._style.columns, f"{before}    ")
            if folded:
                yield from wrap(self._folded(folded), self._style.columns, f"{before}  ")
        if is_cut:
            rest = len(self._actions_of) - sum(bool(self._actions_of.get(entry.conversation)) for entry, _ in groups)
            yield f"... and {rest} more conversations (-v shows all); in total:"
            yield from self._totals()
        if not self._is_in_order and (self._verbose or not self._is_done):
            words = IN_STEPS if self._verbose else IN_TREE
            yield from (self._style(line, dim=True) for line in wrap(words, self._style.columns))
        yield ""

    def _groups(self) -> list[tuple[Heading, list[Action]]]:
        """Return the entries of the outline that are listed, each with the removals below it that are only counted."""
        groups: list[tuple[Heading, list[Action]]] = []
        top: Heading | None = None
        for entry in self._plan.outline:
            actions = self._actions_of.get(entry.conversation, [])
            if not actions and entry.conversation not in self._above:
                continue
            is_removed = bool(actions) and all(_removes_directory(action) for action in actions)
            if top is not None and is_removed and entry.depth > top.depth:
                groups[-1][1].extend(actions)
                continue
            groups.append((entry, []))
            top = entry if is_removed and not self._verbose else None
        return groups

    def _first(self, groups: list[tuple[Heading, list[Action]]]) -> list[tuple[Heading, list[Action]]]:
        """Return the groups up to the last of `SHOWN` conversations with actions."""
        seen = 0
        for number, (entry, _) in enumerate(groups):
            seen += bool(self._actions_of.get(entry.conversation))
            if seen == SHOWN:
                return groups[: number + 1]
        return groups

    @staticmethod
    def _folded(actions: Sequence[Action]) -> str:
        count = len({action.conversation for action in actions})
        descendants = "1 descendant" if count == 1 else f"{count} descendants"
        sides = " and ".join(sorted({action.target.side.value for action in actions}, reverse=True))
        total = size(sum(action.bytes for action in actions))
        return f"{pad('remove', VERB_COLUMNS)}  from {sides}  {descendants}, {total} (-v lists them)"

    def _heading(self, conversation: str, title: str | None, before: str = "", *, bold: bool = True) -> Iterator[str]:
        """Yield a title and an id: in one line, or in two where the id leaves no room."""
        style, columns = self._style, self._style.columns
        name = visible(title) if title else "(no title)"
        shown_id = "" if title == conversation else clean(self._short.get(conversation, conversation))
        if not shown_id:
            name = clean(self._short[conversation]) if conversation in self._short else name
        if conversation in self._without_id:
            shown_id = NEW
        room = MAX_TITLE if columns is None else columns - len(before)
        beside = room - len(shown_id) - 2
        if not shown_id:
            yield before + style(shorten(name, max(room, 1)), bold=bold, dim=not bold)
        elif columns is None or beside >= min(width(name), LEAST_TITLE):
            title_text = style(shorten(name, beside), bold=bold, dim=not bold)
            yield f"{before}{title_text}  {style(shown_id, dim=True)}"
        else:
            yield before + style(shorten(name, max(room, 1)), bold=bold, dim=not bold)
            yield f"{before}  {style(shown_id, dim=True)}"

    def _lines_of(self, action: Action, before: str) -> Iterator[str]:
        """Yield an action with its reason: in one line if it fits, else the reason in a line of its own."""
        style, columns = self._style, self._style.columns
        number = f"{action.id}.".rjust(self._number_columns - 1) + " " if self._number_columns else ""
        words = style(pad(verb(action), VERB_COLUMNS), self._colors.get(action.kind))
        start = f"{before}{style(number, dim=True)}{words}  "
        what, reason = self._detail_of(action), self._because(action)
        at = len(before) + len(number) + VERB_COLUMNS + 2
        if columns is None or at + max(self._detail, width(what)) + 2 + width(reason) <= columns:
            yield f"{start}{pad(what, self._detail)}  {style(reason, dim=True)}".rstrip()
            return
        first, *rest = wrap(what, columns - at)
        yield start + first
        yield from (" " * at + line for line in rest)
        indent = " " * (at if columns - at >= LEAST_REASON else len(before) + 2)
        yield from (style(line, dim=True) for line in wrap(reason, columns, indent))

    def _detail_of(self, action: Action) -> str:
        return detail(action, verbose=self._verbose, is_public=self._is_public)

    def _because(self, action: Action) -> str:
        """Return why an action is done; of the fork of a conflict, whose continuation it has."""
        if action.kind is Kind.FORK and action.reason is Reason.DIVERGED and action.source is not None:
            return f"keeps the {action.source.side}'s continuation"
        if action.makes:
            return "a directory is missing"
        if action.clears:
            return "the lock is stale"
        return self._reason(action.reason)

    def _reason(self, reason: Reason) -> str:
        return reason_words(reason.value, reason.words, is_public=self._is_public)

    def _words(self, action: Action) -> Iterable[str]:
        """Return the changes of a rebuild in words, for one side: the other side gets the same."""
        words = action.words if action.target.side is Side.WORKSPACE else ()
        shown = words if self._verbose else words[:SHOWN]
        return (*shown, f"... and {len(words) - len(shown)} more (-v shows all)") if len(words) > len(shown) else shown

    def _totals(self) -> Iterator[str]:
        """Yield a line for each verb, side and reason, for plans that are cut."""
        counts: Counter[tuple[Kind, str, Reason]] = Counter()
        volumes: Counter[tuple[Kind, str, Reason]] = Counter()
        for action in self._plan.actions:
            side = "" if action.kind.value in DIRECTED else _direction(action)
            key = action.kind, f"{pad(verb(action), VERB_COLUMNS)}  {side}".rstrip(), action.reason
            counts[key] += 1
            volumes[key] += action.bytes
        columns = max(width(words) for _, words, _ in counts)
        for (kind, words, reason), count in counts.items():
            start = self._style(pad(words, columns), self._colors.get(kind))
            rest = f"{count:>7}  {pad(size(volumes[kind, words, reason]), 9)}"
            room = None if self._style.columns is None else self._style.columns - columns - 2 - len(rest) - 4
            because = self._reason(reason)
            why = because if room is None else shorten(because, max(room, 1))
            yield f"  {start}  {rest}  {why}"

    def _items(self, heading: str, items: Sequence[Item], color: str | None) -> Iterator[str]:
        if not items:
            return
        columns = self._style.columns
        yield self._style(f"{heading}:", color, bold=True)
        for item in items[: None if self._verbose else LONG]:
            if item.conversation:
                ways = _TWO_WAYS if item.reason is Reason.SECRET and len(item.resolve) > 1 else ""
                yield from self._heading(item.conversation, item.title, "  ")
                is_long = item.reason is Reason.SECRET and not self._verbose
                text = without_last_secrets(item_text(item), item.findings) if is_long else item_text(item)
                yield from wrap(f"{self._in_words(text)}{ways}", columns, "    ")
            else:
                ways = "; this or --yes allows it:" if item.reason is Reason.BULK else ""
                yield from wrap(f"{self._in_words(item_text(item))}{ways}", columns, "  ", "    ")
            if item.reason is Reason.CONFLICT_HELD:
                yield from self._values(item)
            for command in item.resolve:
                lines = command_lines(clean(with_sides(command, self._sides)), columns, "      ")
                yield from (self._style(line, "cyan") for line in lines)
        if len(items) > LONG and not self._verbose:
            yield f"  ... and {len(items) - LONG} more (-v shows all)"
        yield ""

    def _values(self, item: Item) -> Iterator[str]:
        """Yield the values of both sides, of a conflict that is blocked."""
        from .conflict_text import value_lines  # here: most plans have none

        for conflict in self._plan.conflicts:
            if (conflict.conversation, conflict.unit) == (item.conversation, item.unit):
                yield from value_lines(conflict, self._style.columns, "      ")

    def _in_words(self, message: str) -> str:
        return naming_sides(message_text(message), self._sides)

    def _notes(self) -> Iterator[str]:
        foreign = [note for note in self._plan.notes if note.reason is Reason.FOREIGN and not self._verbose]
        shown = {(conflict.conversation, conflict.unit) for conflict in self._plan.conflicts}
        along = frozenset[str]() if self._losses is None or self._verbose else self._losses.along
        notes = [
            note
            for note in self._plan.notes
            if note not in foreign
            and not (note.reason is Reason.CONFLICT and (note.conversation, note.unit) in shown)
            and not (note.reason is Reason.REMOVED_HERE and note.conversation in along)
        ]
        if notes:
            yield self._style("notes:", bold=True)
        for note in notes[: None if self._verbose else SHOWN]:
            who = f"{self._name(note.conversation)}: " if note.conversation else ""
            yield from wrap(f"{who}{self._in_words(self._message(note))}", self._style.columns, "  ", "    ")
        if len(notes) > SHOWN and not self._verbose:
            yield f"  ... and {len(notes) - SHOWN} more (-v shows all)"
        if notes:
            yield ""
        for text in _foreign_texts(foreign):
            yield from (self._style(line, dim=True) for line in wrap(text, self._style.columns))

    def _name(self, conversation: str) -> str:
        """Return the id of a conversation, after its title if it was removed from the workspace."""
        id_ = clean(self._short.get(conversation, conversation))
        title = conversation if self._losses is None else self._losses.titles.get(conversation, conversation)
        return id_ if title == conversation else f"{shorten(visible(title), TITLE)} ({id_})"

    def _message(self, note: Note) -> str:
        """Return the message of a note: if everything was removed, with the titles of what the last run had."""
        if self._losses is None or note.reason is not Reason.REMOVED_HERE or note.conversation is not None:
            return note.message
        from reconcile.inspect.losses import some_titles  # here: few plans have a loss

        titles = some_titles(shorten(each, TITLE) for each in self._losses.titles.values())
        return f"{note.message} (removed since the last run: {titles})"


def _foreign_texts(notes: Sequence[Note]) -> Iterator[str]:
    """Yield how many files in conversations are not copied, and how many other entries are no conversations."""
    inside = sum(note.unit != WHOLE for note in notes)
    beside = len(notes) - inside
    if inside == 1:
        yield "1 file in a conversation is not copied, and stays as it is (-v lists it)"
    elif inside:
        yield f"{inside} files in conversations are not copied, and stay as they are (-v lists them)"
    if beside == 1:
        yield "1 other entry is no conversation, and stays as it is (-v lists it)"
    elif beside:
        yield f"{beside} other entries are no conversations, and stay as they are (-v lists them)"


def item_text(item: Item) -> str:
    """Return the message of an item, after its unit; without it for the whole, or if the message begins with a file."""
    names_file = item.message.startswith(tuple(f"{side}:" for side in Side))  # a saved item has no place
    return item.message if item.unit == WHOLE or names_file else f"{unit_text(item.unit)}: {item.message}"


def _with_directory(item: Item, roots: Roots) -> Item:
    """Return the item with the directory in its message, if it is about a whole side."""
    return item if item.conversation else replace(item, message=with_directory(item.message, roots))


def with_sides(command: str, sides: str) -> str:
    """Return a suggested command with the options for the same two sides."""
    return f"{command}{sides}" if command.startswith("reconcile ") else command


def detail(action: Action, *, verbose: bool = False, is_public: bool = True) -> str:
    """Return the object of an action in words, without its verb and reason: direction, unit, size, events."""
    kind = action.kind.value
    unit = _unit_word(action)
    if kind in PLACES and action.source is not None:
        return f"{_direction(action)}  {_movement(action.source.path, action.target)}"
    if action.kind is Kind.AGE:
        return f"{_direction(action)}  {unit}"
    if action.makes or action.clears:  # no file changes
        return _direction(action)
    parts = [size(action.bytes), *filter(None, (_events(action),))]
    if kind in REMOVALS and action.unit == WHOLE:
        is_named = verbose or action.reason in WITH_PATH
        return "  ".join((_direction(action), *([_short(action.target.path)] if is_named else []), *parts[:1]))
    if action.kind is Kind.FORK:  # in the columns of its publication
        return f"{pad(_direction(action), 9)}  {pad(parts[0], 8)}  {''.join(parts[1:])}".rstrip()
    if kind in DIRECTED:
        if action.unit == WHOLE and action.kind is Kind.PROJECT:
            unit = publication_word(action.reason.value, is_public=is_public) or unit
        return f"{pad(unit, 9)}  {pad(parts[0], 8)}  {''.join(parts[1:])}".rstrip()
    return "  ".join((_direction(action), *([] if action.unit == WHOLE else [unit]), *parts))


def _unit_word(action: Action) -> str:
    """Return the unit in words; a record that is a single file has only one."""
    if action.target.path == action.conversation and any(write.target == action.target for write in action.writes):
        return "file"
    return "all files" if action.unit == WHOLE else clean(unit_text(action.unit))


def _direction(action: Action) -> str:
    """Return the side that an action changes, with its preposition."""
    kind = action.kind.value
    word = (
        "from"
        if kind in REMOVALS
        else "in"
        if kind in PLACES or action.kind is Kind.AGE or action.makes or action.clears
        else "->"
    )
    return f"{word} {action.target.side}"


def _removes_directory(action: Action) -> bool:
    return action.kind.value in REMOVALS and action.unit == WHOLE and action.reason not in WITH_PATH


def _short(path: str) -> str:
    return clean(path.replace("/conversations/", "/…/"))


def _movement(source: str, target: Place) -> str:
    """Describe a move by what changes: the directory's name, its parent directory, or both."""
    parent, _, name = target.path.rpartition("/")
    if is_rename(source, target.path):
        return f"to {clean(name)}"
    where = (
        "to the top level" if not parent else f"into {clean(parent.removesuffix('/conversations').rpartition('/')[2])}"
    )
    return where if name == source.rpartition("/")[2] else f"{where}, as {clean(name)}"


def _events(action: Action) -> str:
    if action.events is None:
        return ""
    before, after = action.events
    change = after - before
    if change == 0:
        if action.reason in (Reason.DIVERGED, Reason.DECIDED):
            return "different events"
        # A text of the plain format without events for a run may have some for `show`.
        return f"still {_plural(after)}" if after else ""
    return f"{change:+d} event{'' if abs(change) == 1 else 's'}"


def _plural(count: int) -> str:
    return f"{count} event{'' if count == 1 else 's'}"


def report(
    options: Options,
    roots: Roots,
    messages: Iterable[str],
    plan: Plan,
    outcome: Outcome | None,
    *,
    is_shown: bool = False,
    is_binding: bool = True,
    questioned: Collection[Item | Conflict] = (),
    back: str = "",
    lost: Iterable[Lost] = (),
    empty: int = 0,
    losses: Losses | None = None,
) -> None:
    """Print a plan and its outcome, as text or as JSON; ``messages`` go to standard error.

    ``is_binding``: it is carried out as it is, so that forks get its ids.
    ``is_shown``: the plan is on the screen already, so that only the outcome follows. ``questioned``: what questions
    print themselves, so that it is not listed before them; what of it is still blocked is listed after them. ``back``:
    the command that reverts the run. ``lost``, ``empty``: see `further`, whose commands follow a dry run. ``losses``:
    what the pass has found to be removed from the workspace.
    """
    messages = tuple(messages)
    if not messages and _is_one_line(options, roots, plan, losses):
        return
    options.has_reported = True
    options.has_changes |= bool(plan.actions)
    of = f"{short_path(roots.project)}: " if options.all else ""
    for message in messages:
        if message not in options.printed:
            print_message(options, f"{of}{message}", trouble=True)
            options.printed |= {message}
    if options.json:
        _print_json(options, roots, plan, outcome)
        return
    _warn_of_conflicts(options, roots, plan, outcome)
    _warn_of_losses(options, roots, losses)
    style = Style.choose(options.color)
    undone = list(_undone(plan, outcome, style, options.sides, back)) if outcome else []
    # A question follows: the user must see the plan that it is about.
    quiet = options.quiet and (outcome is not None or options.is_dry or not is_interactive(options))
    shown = replace(plan, actions=(), aside=(), notes=(), conflicts=()) if quiet else _carried_out(plan, outcome)
    if is_shown:  # all but the commands that bring the other version of a conflict back
        shown = replace(shown, actions=(), held=tuple(filter(questioned.__contains__, shown.held)), aside=(), notes=())
    elif questioned:
        shown = _without(shown, questioned)
    shown = replace(shown, held=tuple(_with_directory(item, roots) for item in shown.held))
    run = (outcome.run or "") if outcome is not None else ""
    text = PlanText(
        shown,
        style,
        verbose=options.verbose,
        sides=options.sides,
        done=outcome is not None,
        run=run,
        is_binding=is_binding,
        is_public=roots.is_in_project,
        short={} if options.verbose else _short_ids(roots, shown, plan),
        losses=losses,
    )
    chosen = text.chosen(plan, outcome) if outcome is not None and not quiet else ()
    lines = [*text.lines(), *chosen, *undone]
    has_items = bool(lines or plan.held)  # what a question has printed is not in the lines
    is_bare = not (has_items or is_shown or empty or tuple(lost))
    if _has_nothing_to_do(options, roots, plan, is_bare=is_bare and (outcome is not None or options.is_dry)):
        return
    if not quiet:
        end = summary(
            plan,
            style,
            done=outcome,
            noun=roots.noun,
            sides=options.sides,
            back=back,
            is_public=roots.is_in_project,
            places=get_format(roots.format).places,
            idle=options.idle,
        )
        begin = [*([""] if options.is_following else []), heading(roots, plan.layout, style), ""]
        lines = [*(() if is_shown else begin), *lines, *end]
        options.is_following = False
    if options.all:
        show([f"project   {short_path(roots.project)}", *_without_blank_end(lines), ""] if lines else ())
        return
    following = () if quiet else _next(options, roots, plan, outcome, lost, empty)
    if following:
        from .next_commands import next_lines  # here: few reports name more commands

        lines += ["", *next_lines(following, style, options.sides)]
    if options.is_dry:
        show_paged(lines, style)
    else:
        show(lines)


def _without_blank_end(lines: list[str]) -> list[str]:
    return lines[: max((number for number, line in enumerate(lines, 1) if line), default=0)]


def _warn_of_conflicts(options: Options, roots: Roots, plan: Plan, outcome: Outcome | None) -> None:
    """With ``--quiet``, print a warning for each decided conflict, with the command that restores the other version."""
    if not options.quiet or outcome is None or outcome.run is None or not plan.conflicts:
        return
    from .conflict_text import decided_words  # here: most plans have none

    of = f"{short_path(roots.project)}: " if options.all else ""
    for conflict in _carried_out(plan, outcome).conflicts:
        if conflict.takes is not None:  # the others are listed as blocked
            print_warning(options, f"{of}{decided_words(conflict, plan, outcome.run, options.sides)}")


def _warn_of_losses(options: Options, roots: Roots, losses: Losses | None) -> None:
    """With ``--quiet``, print a warning about what the program of the workspace has removed, with the way back."""
    if options.quiet and losses is not None and losses.is_usual:
        of = f"{short_path(roots.project)}: " if options.all else ""
        print_warning(options, f"{of}{losses.words(options.sides)}")


def _is_one_line(options: Options, roots: Roots, plan: Plan, losses: Losses | None) -> bool:
    """Tell whether nothing is to tell of one of many projects but what its workspace lacks, and print that in a line.

    Where no conversation is left, print a line as long as the store has some, but with ``--quiet``.
    """
    if not options.all or plan.actions or plan.held or plan.put_off or (options.json and losses is not None):
        return False
    _warn_of_losses(options, roots, losses)
    if options.quiet or options.json:
        return True
    places, states = get_format(roots.format).places, dict(plan.states)
    if losses is not None:
        text = losses.words(options.sides)
    elif places is not None and places.deletes_old and "removed" in states and states.keys() <= _ABSENT:
        from reconcile.inspect.losses import no_session_words  # here, as elsewhere: few runs meet a loss

        text = no_session_words(states["removed"], roots.noun, options.sides)
    else:
        return True
    columns = Style.choose(options.color).columns
    show(wrap(f"{short_path(roots.project)}: {message_text(text)}", columns, "", "  "))
    return True


def _short_ids(roots: Roots, *plans: Plan) -> Mapping[str, str]:
    """Return the shorter ids of conversations, if these plans name any."""
    if not any(plan.actions or plan.held or plan.aside or plan.notes or plan.conflicts for plan in plans):
        return {}
    from reconcile.inspect.short_ids import short_ids_at  # here: a run with nothing to do names none

    # What a run has removed is on no side any more.
    return short_ids_at(roots, {action.conversation for plan in plans for action in plan.actions})


def _next(
    options: Options, roots: Roots, plan: Plan, outcome: Outcome | None, lost: Iterable[Lost], empty: int
) -> list[tuple[str, str]]:
    """Return the commands that follow a report, each with its purpose: after a dry run, and after a `restore`."""
    if options.is_dry:
        from .next_commands import further  # here: a run does what it names

        return [] if plan.policy.request is not None else list(further(plan, roots, lost, empty))
    if plan.aside and plan.policy.request is None:
        from .next_commands import after_undo  # here: most runs leave nothing alone

        return list(after_undo(plan, roots))
    saved = _saved_alone(plan, outcome) if outcome is not None and roots.format == "jp" else None
    return [] if saved is None else [(f"reconcile project {typed(saved)}", "publishes it: it is in the store only")]


def _has_nothing_to_do(options: Options, roots: Roots, plan: Plan, *, is_bare: bool) -> bool:
    """Tell whether a plain run has nothing to do, and print that in one line, unless that is for all formats.

    ``is_bare``: there is nothing else to print.
    """
    if not is_bare or options.all or options.quiet or plan.policy.request is not None or plan.policy.decisions:
        return False
    options.has_reported, options.has_nothing_to_do = False, True
    options.counts = state_counts(plan.states, roots.noun, is_public=roots.is_in_project) if plan.states else ""
    if not options.gathers:
        show_nothing_to_do([options.counts], options.color, options.idle)
    return True


def _print_json(options: Options, roots: Roots, plan: Plan, outcome: Outcome | None) -> None:
    """Print a plan and its outcome as JSON: of one of many projects, in one line with its path."""
    from reconcile.serialization.plan_json import plan_to_json  # here, as below: text needs none

    from .documents import print_document

    document = plan_to_json(plan, workspace=roots.workspace, store=roots.store)
    if outcome is not None:
        document["outcome"] = outcome.to_json()
    if options.all:
        import json

        show([json.dumps({"format": "reconcile.project/1", "project": roots.project, "plan": document})])
    else:
        print_document(options, document)


def _without(plan: Plan, questioned: Collection[Item | Conflict]) -> Plan:
    """Return the plan without what questions print themselves."""
    units = {(each.conversation, each.unit) for each in questioned}
    return replace(
        plan,
        held=tuple(item for item in plan.held if item not in questioned),
        conflicts=tuple(each for each in plan.conflicts if each not in questioned),
        notes=tuple(n for n in plan.notes if n.reason is not Reason.CONFLICT or (n.conversation, n.unit) not in units),
    )


def _undone(plan: Plan, outcome: Outcome, style: Style, sides: str, back: str) -> Iterator[str]:
    """Yield the lines about what was not done, and about when it will be; ``back`` as in `report`."""
    request, again = plan.policy.request, "run `reconcile` again"
    if isinstance(request, UndoRequest) and back == "redo":
        again = f"run undo again: reconcile undo {request.run}{sides}"
    elif request is not None and not plan.waiting:
        again = "give the same command again"
    yield from result_lines(outcome, style, again)
    yield from _waiting(plan, outcome, style, sides)


def _waiting(plan: Plan, outcome: Outcome, style: Style, sides: str) -> list[str]:
    """Return the lines about requests of this command that a later run will carry out."""
    left = plan.put_off.union(entry.action.conversation for entry in outcome.results.values() if not entry.is_done)
    waits = {conversation for (conversation, _), request in plan.waiting if request is not None} & left
    if not waits:
        return []
    which, them = ("request is", "it") if len(waits) == 1 else ("requests are", "them")
    event = "you settle what is blocked" if waits <= {item.conversation for item in plan.held} else "that"
    text = (
        f"Your {which} saved. After {event}, the next run carries {them} out. "
        f"`reconcile status{sides}` shows {them}, `reconcile undo{sides}` drops {them}."
    )
    return [*wrap(text, style.columns), ""]


def _saved_alone(plan: Plan, outcome: Outcome) -> str | None:
    """Return the conversation that a `restore` has brought back to a store that lacked it; the workspace lacks it."""
    if not isinstance(plan.policy.request, RestoreRequest):
        return None
    done = (entry.action for entry in outcome.results.values() if entry.is_done)
    return next((action.conversation for action in done if action.kind is Kind.COPY and action.unit == WHOLE), None)


def _carried_out(plan: Plan, outcome: Outcome | None) -> Plan:
    """Return the plan without the actions that failed or were skipped, which have their own lines, and their notes."""
    left = outcome.undone() if outcome is not None else frozenset()
    left_units = {(action.conversation, action.unit) for action in plan.actions if action.id in left}
    stays = {action.conversation for action in plan.actions if action.id in left}
    hidden: dict[Reason, Collection[str | None]] = {Reason.TAKEN_ALONG: stays}
    if outcome is not None:  # a request that was carried out waits no more
        waits = stays.union(plan.put_off, (item.conversation for item in plan.held))
        requested = {note.conversation for note in plan.notes if note.reason is Reason.REQUESTED}
        hidden[Reason.REQUESTED] = requested - waits if None not in waits else ()
    return replace(
        plan,
        actions=tuple(action for action in plan.actions if action.id not in left),
        conflicts=tuple(c for c in plan.conflicts if (c.conversation, c.unit) not in left_units),
        notes=tuple(note for note in plan.notes if note.conversation not in hidden.get(note.reason, ())),
    )


def exit_code(plan: Plan, outcome: Outcome | None, options: Options) -> int:
    """Return the first exit code that applies."""
    if outcome is not None and outcome.count(Result.FAILED):
        return ExitCode.FAILED
    if plan.held or (outcome is not None and outcome.count(Result.SKIPPED)) or _has_undecided(plan):
        return ExitCode.HELD
    if options.check and plan.actions:
        return ExitCode.PENDING
    return ExitCode.DONE


def _has_undecided(plan: Plan) -> bool:
    """Tell whether a conversation that was to be resolved waits for one whose last change was undone."""
    decided = {id_ for id_, take in plan.policy.decisions.items() if take is not Take.KEEP}
    return any(item.reason is Reason.UNDONE and item.conversation in decided for item in plan.aside)
