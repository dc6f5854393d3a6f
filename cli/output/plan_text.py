"""The report of a run: its plan as text or JSON, the outcome, and the exit code.

The text groups actions by conversation in the order of the tree, each with its reason.
"""

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.apply.executor import Result
from reconcile.model.plan import Kind
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import EXTRA, WHOLE, Side

from .errors import ExitCode
from .interaction import is_interactive, print_message
from .text import MAX_INDENT, SETTLED_COLOR, Style, clean, count_line, heading, indented, pad, shorten, show, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reconcile.adapters.roots import Roots
    from reconcile.apply.executor import Outcome
    from reconcile.model.plan import Action, Item, Plan
    from reconcile.model.snapshot import Place

    from ..arguments import Options

LONG = 60
"""The longest plan that is listed in full without ``-v``."""
SHOWN = 20
TITLE = 60
COLORS = {
    Kind.COPY: "green",
    Kind.PROJECT: "cyan",
    Kind.FORK: "magenta",
    Kind.REMOVE_STALE: "red",
    Kind.REMOVE: "red",
}
REMOVALS = (Kind.REMOVE, Kind.REMOVE_STALE)
PLACES = (Kind.MOVE, Kind.ARCHIVE, Kind.UNARCHIVE)


class PlanText:
    """The lines of one plan."""

    def __init__(self, plan: Plan, style: Style, *, verbose: bool, sides: str = "") -> None:
        """Prepare the plan for printing. ``sides``: the options for the two sides, which suggested commands repeat."""
        self._plan = plan
        self._style = style
        self._verbose = verbose
        self._sides = sides
        self._actions_of: dict[str, list[Action]] = {}
        for action in plan.actions:
            self._actions_of.setdefault(action.conversation, []).append(action)
        self._above = self._ancestors()

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
        yield from self._items("held: needs a decision", self._plan.held, "yellow")
        yield from self._items("set aside: stays so until a side changes", self._plan.aside, "blue")
        yield from self._notes()

    def _actions(self) -> Iterator[str]:
        if not self._plan.actions:
            return
        cut = not self._verbose and len(self._plan.actions) > LONG
        shown = 0
        for entry in self._plan.outline:
            if cut and shown >= SHOWN:
                break
            actions = self._actions_of.get(entry.conversation, [])
            if actions or entry.conversation in self._above:
                yield indented(entry.depth, self._heading(entry.conversation, entry.title, bold=bool(actions)))
                depth = min(entry.depth, MAX_INDENT)
                for action in actions:
                    yield indented(depth, f"  {self._line(action)}")
                    yield from (indented(depth, f"    {clean(words)}") for words in self._words(action))
                shown += bool(actions)
        if cut:
            rest = len(self._actions_of) - shown
            yield f"... and {rest} more conversations (-v shows all); in total:"
            yield from self._totals()
        yield ""

    def _heading(self, conversation: str, title: str | None, *, bold: bool = True) -> str:
        name = shorten(clean(title), TITLE) if title else "(no title)"
        if title == conversation:
            return self._style(name, bold=bold, dim=not bold)
        return f"{self._style(name, bold=bold, dim=not bold)}  {self._style(clean(conversation), dim=True)}"

    def _line(self, action: Action) -> str:
        verb = self._style(pad(action.kind.value, 13), COLORS.get(action.kind))
        what = pad(detail(action), 44)
        return f"{verb} {what}  {self._style(action.reason.words, dim=True)}".rstrip()

    def _words(self, action: Action) -> Iterable[str]:
        """Return the changes of a rebuild in words, for one side: the other side gets the same."""
        words = action.words if action.target.side is Side.WORKSPACE else ()
        shown = words if self._verbose else words[:SHOWN]
        return (*shown, f"... and {len(words) - len(shown)} more (-v shows all)") if len(words) > len(shown) else shown

    def _totals(self) -> Iterator[str]:
        """Yield a line for each kind and reason, for plans that are cut."""
        counts = Counter((action.kind, action.reason) for action in self._plan.actions)
        volumes: Counter[tuple[Kind, object]] = Counter()
        for action in self._plan.actions:
            volumes[action.kind, action.reason] += action.bytes
        for (kind, reason), count in counts.items():
            verb = self._style(pad(kind.value, 13), COLORS.get(kind))
            yield f"  {verb} {count:>7}  {pad(size(volumes[kind, reason]), 10)} {reason.words}"

    def _items(self, heading: str, items: tuple[Item, ...], color: str) -> Iterator[str]:
        if not items:
            return
        yield self._style(heading, color, bold=True)
        for item in items[: None if self._verbose else LONG]:
            who = self._heading(item.conversation, item.title) if item.conversation else ""
            yield f"  {who}" if who else f"  {self._style(item.reason.words, bold=True)}"
            unit = "" if item.unit == WHOLE else f"{clean(item.unit)}: "
            yield f"    {unit}{clean(item.message)}"
            for command in item.resolve:
                yield f"      {self._style(clean(with_sides(command, self._sides)), 'cyan')}"
        if len(items) > LONG and not self._verbose:
            yield f"  ... and {len(items) - LONG} more (-v shows all)"
        yield ""

    def _notes(self) -> Iterator[str]:
        foreign = [note for note in self._plan.notes if note.reason is Reason.FOREIGN and not self._verbose]
        notes = [note for note in self._plan.notes if note not in foreign]
        if notes:
            yield self._style("notes", bold=True)
        for note in notes[: None if self._verbose else SHOWN]:
            who = f"{clean(note.conversation)}: " if note.conversation else ""
            yield f"  {who}{clean(note.message)}"
        if len(notes) > SHOWN and not self._verbose:
            yield f"  ... and {len(notes) - SHOWN} more (-v shows all)"
        if notes:
            yield ""
        if foreign:
            entries = "1 entry is" if len(foreign) == 1 else f"{len(foreign)} entries are"
            yield self._style(f"{entries} not ours and left alone (-v lists them)", dim=True)


def with_sides(command: str, sides: str) -> str:
    """Return a suggested command with the options for the same two sides."""
    return f"{command}{sides}" if command.startswith("reconcile ") else command


def detail(action: Action) -> str:
    """Return the object of an action in words, without its kind and reason."""
    if action.kind in PLACES and action.source is not None:
        return _movement(action.source.path, action.target)
    if action.kind is Kind.AGE:
        return f"{action.unit}  time put back"
    unit = "all files" if action.unit == WHOLE else clean(action.unit.removeprefix(EXTRA))
    if action.kind is Kind.REMOVE_STALE and action.unit == WHOLE:
        return f"{_short(action.target.path)}  {size(action.bytes)}"
    way = f"{'from' if action.kind in REMOVALS else '->'} {action.target.side}"
    return f"{pad(unit, 10)} {pad(way, 12)} {pad(size(action.bytes), 9)} {_events(action)}"


def _short(path: str) -> str:
    return clean(path.replace("/conversations/", "/…/"))


def _movement(source: str, target: Place) -> str:
    """Describe a move by what changes: the directory's name, its parent directory, or both."""
    parent, _, name = target.path.rpartition("/")
    old_parent, _, old_name = source.rpartition("/")
    side = " in the store" if target.side is Side.STORE else ""
    if parent == old_parent:
        return f"renamed to {clean(name)}{side}"
    where = (
        "to the top level" if not parent else f"into {clean(parent.removesuffix('/conversations').rpartition('/')[2])}"
    )
    renamed = "" if name == old_name else f", renamed to {clean(name)}"
    return f"{where}{renamed}{side}"


def _events(action: Action) -> str:
    if action.events is None:
        return ""
    change = action.events[1] - action.events[0]
    if change == 0:
        if action.reason is Reason.DIVERGED:
            return "other events"
        return "as many events" if action.events[1] else "no events"
    return f"{change:+d} event{'' if abs(change) == 1 else 's'}"


def summary(plan: Plan, style: Style, *, done: Outcome | None = None, noun: str = "conversation") -> str:
    """Return the last line: counts of what is planned, or, with an outcome, of what was done."""
    results = [] if done is None else list(done.results.values())
    kinds = Counter(action.kind.value for action in plan.actions)
    if done is not None:
        kinds = Counter(deed.action.kind.value for deed in results if deed.result == "done")
    steps = [f"{kinds[kind.value]} {kind.value}" for kind in Kind if kinds[kind.value]]
    for result in ("skipped", "failed"):
        count = sum(deed.result == result for deed in results)
        steps += [f"{count} {result}"] if count else []
    waits = [f"{len(plan.held)} held"] if plan.held else []
    waits += [f"{len(plan.aside)} set aside"] if plan.aside else []
    text = count_line(steps, waits, () if results else plan.states, noun, done=done is not None)
    attention = plan.held or any(deed.result != "done" for deed in results)
    color = "yellow" if attention else SETTLED_COLOR if not plan.actions or results else None
    return style(text, color, bold=True)


def results(outcome: Outcome, style: Style) -> Iterable[str]:
    """Yield a line for each action that failed or was skipped, with the reason."""
    for deed in outcome.results.values():
        if deed.reason is None:
            continue
        color = "red" if deed.result == "failed" else "yellow"
        what = f"{deed.action.kind} {clean(str(deed.action.target))}"
        words = f"{deed.reason.words}: " if deed.reason is Reason.DRIFT else ""
        yield f"{style(str(deed.result), color, bold=True)}: {what}: {words}{clean(deed.message)}"


def report(options: Options, roots: Roots, messages: Iterable[str], plan: Plan, outcome: Outcome | None) -> None:
    """Print a plan and its outcome, as text or as JSON; ``messages`` go to standard error."""
    for message in messages:
        print_message(options, message, trouble=True)
    if options.json:
        import json

        from reconcile.serialization.plan_json import plan_to_json  # here: text needs none

        document = plan_to_json(plan, workspace=roots.workspace, store=roots.store)
        if outcome is not None:
            document["outcome"] = outcome.to_json()
        show([json.dumps(document, indent=2)])
        return
    style = Style.choose(options.color)
    undone = [*results(outcome, style), *_waiting(plan, outcome)] if outcome else []
    # A question follows: the user must see the plan that it is about.
    quiet = options.quiet and (outcome is not None or options.is_dry or not is_interactive(options))
    shown = replace(plan, actions=(), aside=(), notes=()) if quiet else _carried_out(plan, outcome)
    lines = [*PlanText(shown, style, verbose=options.verbose, sides=options.sides).lines(), *undone]
    if not quiet:
        end = summary(plan, style, done=outcome, noun=roots.noun)
        lines = [heading(roots, plan.layout, style), "", *lines, end]
    show(lines)


def _waiting(plan: Plan, outcome: Outcome) -> list[str]:
    """Return the lines about requests of this command that a later run will carry out."""
    left = plan.put_off.union(deed.action.conversation for deed in outcome.results.values() if not deed.is_done)
    waits = {conversation for (conversation, _), request in plan.waiting if request is not None} & left
    if not waits:
        return []
    which = "1 request waits" if len(waits) == 1 else f"{len(waits)} requests wait"
    return [
        f"{which}: the first run that can carries it out; `reconcile status` shows it, `reconcile undo` drops it",
        "",
    ]


def _carried_out(plan: Plan, outcome: Outcome | None) -> Plan:
    """Return the plan without the actions that failed or were skipped, which `results` lists, and their notes."""
    left = outcome.undone() if outcome is not None else frozenset()
    stays = {action.conversation for action in plan.actions if action.id in left}
    return replace(
        plan,
        actions=tuple(action for action in plan.actions if action.id not in left),
        notes=tuple(n for n in plan.notes if n.reason is not Reason.TAKEN_ALONG or n.conversation not in stays),
    )


def exit_code(plan: Plan, outcome: Outcome | None, options: Options) -> int:
    """Return the first exit code that applies."""
    if outcome is not None and outcome.count(Result.FAILED):
        return ExitCode.FAILED
    if plan.held or (outcome is not None and outcome.count(Result.SKIPPED)):
        return ExitCode.HELD
    if options.check and plan.actions:
        return ExitCode.PENDING
    return ExitCode.DONE
