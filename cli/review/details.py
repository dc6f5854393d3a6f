"""The text beside the tree: what happens to the chosen conversation, the choices, and both versions.

Pure: the lines follow from the subject, the decisions and what was read of its two versions.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from reconcile.inspect.alignment import aligned, word_changes
from reconcile.model.plan import Kind
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import EXTRA, METADATA, STREAM, WHOLE, Side
from reconcile.model.units import unit_text
from reconcile.planning.conflicts import differences, newer_side, time_text

from ..output.plan_text import detail, item_text
from ..output.summary import verb
from ..output.text import local_event_time, masked, pad, with_local_times
from ..output.words import VERB_COLUMNS, reason_words
from . import lines
from .lines import beside, wrapped
from .subjects import Choice, Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from reconcile.inspect.alignment import Pair, Span
    from reconcile.inspect.conversation import Comparison
    from reconcile.model.plan import Action, Conflict
    from reconcile.model.transcript import Transcript, Turn

    from .decisions import Decisions
    from .lines import Line, Piece
    from .subjects import Subject

MOST_PAIRS = 200
"""Turns that are shown of one conversation; an editor shows all."""
MOST_LINES = 300
"""Lines that are shown of one turn."""
COMPARED = 20_000
"""Characters of a turn up to which its words are compared."""
CONTEXT = 1
"""Equal turns that are shown before and after those that differ."""

KEYS: Mapping[Choice, str] = {
    Choice.STORE: "s",
    Choice.WORKSPACE: "w",
    Choice.BOTH: "b",
    Choice.STORE_ALONE: "S",
    Choice.WORKSPACE_ALONE: "W",
    Choice.SKIP: "k",
    Choice.HOLD: "h",
}
"""The key of each choice."""
_SIDE_STYLES = {Side.STORE: lines.STORE, Side.WORKSPACE: lines.WORKSPACE}
_CHANGED_STYLES = {Side.STORE: lines.STORE_CHANGED, Side.WORKSPACE: lines.WORKSPACE_CHANGED}
_SIDE_COLUMNS = max(len(side.value) for side in Side) + 1


class Reading(Struct, frozen=True):
    """Both versions of a conversation as turns, and the comparison of everything else."""

    store: Transcript | None = None
    workspace: Transcript | None = None
    comparison: Comparison | None = None
    notes: tuple[str, ...] = ()
    files: tuple[tuple[str, str, str], ...] = ()
    """Other files that differ: the name, and the text of both sides."""

    def side(self, side: Side) -> Transcript | None:
        """Return the version of a side."""
        return self.store if side is Side.STORE else self.workspace


def detail_lines(
    subject: Subject, unit: str, decisions: Decisions, reading: Reading, columns: int, *, two_columns: bool
) -> list[Line]:
    """Return the lines about a subject, or about one of its conflicts.

    ``two_columns``: both versions are shown side by side, and not one after the other.
    """
    text = _Details(subject, unit, decisions, columns, two_columns=two_columns)
    return [*text.head(reading), *text.versions(reading)]


class _Details:
    def __init__(self, subject: Subject, unit: str, decisions: Decisions, columns: int, *, two_columns: bool) -> None:
        self._subject = subject
        self._unit = unit
        self._decisions = decisions
        self._columns = max(columns, 20)
        self._two_columns = two_columns
        self._conflicts = [each for each in subject.conflicts if unit in (WHOLE, each.unit)]

    def head(self, reading: Reading) -> Iterator[Line]:
        """Yield the title, what is to be decided, the values that differ, the choices, and the steps."""
        subject = self._subject
        id_ = "" if subject.conversation == subject.name else subject.conversation
        yield from self._wrapped((masked(subject.name), lines.TITLE), (f"  {id_}" if id_ else "", lines.DIM))
        yield ()
        for conflict in self._conflicts:
            yield from self._conflict(conflict, reading)
        if self._unit == WHOLE:
            yield from self._items()
        yield from self._files(reading)
        if self._unit in (WHOLE, METADATA):
            yield from self._values(reading.comparison)
        yield from self._choices(reading)
        yield from self._steps()

    def _wrapped(self, *pieces: Piece, indent: str = "", first: str | None = None) -> Iterator[Line]:
        return wrapped(pieces, self._columns, indent, first)

    def _conflict(self, conflict: Conflict, reading: Reading) -> Iterator[Line]:
        yield from self._wrapped(
            ("Conflict: ", lines.ASKED), (f"{_what(conflict, reading)}.", lines.PLAIN), indent="  ", first=""
        )
        newer = newer_side(conflict)
        is_tie = conflict.store.mtime_ns == conflict.workspace.mtime_ns
        times = dict(zip(Side, _times(conflict.store.mtime_ns, conflict.workspace.mtime_ns), strict=True))
        for side in Side:
            rival = conflict.rival(side)
            words = [times[side]]
            words += ["newer file" if rival.last else "newer"] if side is newer and not is_tie else []
            if rival.events is not None:
                own = rival.events if rival.only is None else rival.only
                words.append(f"{own} {'' if rival.only is None else 'own '}event{'' if own == 1 else 's'}")
            name = (pad(side.value, _SIDE_COLUMNS), _SIDE_STYLES[side])
            yield from self._wrapped(name, (", ".join(words), lines.DIM), indent="  ", first="")
        if conflict.merges:
            yield from self._wrapped(("Edits of all other keys are merged.", lines.DIM), indent="  ")
        if self._subject.allowed is not None and conflict.takes is not None:
            yield from self._wrapped((f"This plan takes the {conflict.takes}'s version.", lines.CHOSEN), indent="  ")

    def _items(self) -> Iterator[Line]:
        subject = self._subject
        conflicts = {each.unit for each in subject.conflicts}
        for heading, style, items in (
            ("Blocked: ", lines.ASKED, subject.held),
            ("Left alone: ", lines.DIM, subject.aside),
        ):
            for item in items:
                if item.unit not in conflicts:
                    yield from self._wrapped((heading, style), (item_text(item), lines.PLAIN), indent="  ", first="")
                    if not subject.takes_of((item,)):
                        for command in item.resolve:
                            yield from self._wrapped((command, lines.KEY), indent="    ")
        for note in subject.notes:
            if not (note.unit in conflicts and subject.conflicts):
                yield from self._wrapped(("Note: ", lines.DIM), (note.message, lines.DIM), indent="  ", first="")
        if subject.status is Status.ABOVE:
            yield from self._wrapped(("Nothing happens to it; others below it change.", lines.DIM))

    def _choices(self, reading: Reading) -> Iterator[Line]:
        offered = self._subject.offered(self._unit)
        if not offered:
            return
        yield ()
        chosen = self._decisions.of(self._subject, self._unit)
        if chosen is not None:
            yield from self._wrapped(("Your decision:", lines.CHOSEN), (" (u takes it back)", lines.DIM))
        elif self._decisions.is_open(self._subject, self._unit):
            yield from self._wrapped(("Your decision? Without one, this run changes neither side.", lines.ASKED))
        else:
            yield (("You may also:", lines.DIM),)
        for choice in offered:
            is_chosen = choice is chosen
            words, after = self._words_of(choice, reading)
            mark = ">" if is_chosen else " "
            style = lines.CHOSEN if is_chosen else lines.PLAIN
            pieces = [(KEYS[choice], lines.KEY), (f"  {words}", style), (after, lines.DIM)]
            yield from wrapped(pieces, self._columns, "     ", f"{mark} ")

    def _words_of(self, choice: Choice, reading: Reading) -> tuple[str, str]:
        """Return a choice in words, and what it does to the other version."""
        if choice is Choice.SKIP:
            return "skip", ": not in this run"
        if choice is Choice.HOLD:
            return "hold", ": leave both sides alone until one changes"
        if choice is Choice.BOTH:
            newer = self._subject.newer(STREAM)
            older = Side(newer.value).other if newer is not None else None
            return "keep both", f"; the older one becomes {self._fork(older, reading)}"
        side = Side.STORE if choice in (Choice.STORE, Choice.STORE_ALONE) else Side.WORKSPACE
        if choice in (Choice.STORE_ALONE, Choice.WORKSPACE_ALONE):
            return f"take only the {side}'s version", f": no fork; `restore` can bring the {side.other}'s back"
        if any(each.forks for each in self._conflicts):
            return f"take the {side}'s version", f"; the {side.other}'s becomes {self._fork(side.other, reading)}"
        return f"take the {side}'s version", f"; the {side.other}'s is saved"

    def _fork(self, side: Side | None, reading: Reading) -> str:
        """Return what a version becomes that is not taken, with the title that the fork gets."""
        version = None if side is None else reading.side(side)
        title = (version.title if version is not None else None) or self._subject.title
        return f'the fork "[diverged]{f" {title}" if title else ""}", in the store only'

    def _steps(self) -> Iterator[Line]:
        """Yield the steps that a run makes of what needs no decision, or that it makes without one."""
        subject, choice = self._subject, self._decisions.of(self._subject)
        if self._unit != WHOLE:
            return
        if choice in (Choice.SKIP, Choice.HOLD):
            if subject.actions:
                yield ()
                yield (("In this run: nothing.", lines.DIM),)
            return
        contested = {each.unit for each in subject.conflicts}
        is_title_open = any("title" in each.keys for each in subject.conflicts)
        is_whole = choice is not None and not subject.conflicts  # a side was taken: other steps than the plan's
        actions = [each for each in subject.actions if each.unit not in contested and each.kind is not Kind.FORK]
        if is_title_open:  # the name follows from the decision
            actions = [each for each in actions if each.reason is not Reason.TITLE_CHANGED]
        if not subject.conflicts:
            actions = list(subject.actions)
        if not actions:
            return
        yield ()
        if is_whole:
            yield from self._wrapped((f"In this run: the {choice}'s version, on both sides.", lines.PLAIN))
            return
        yield (("In this run:", lines.DIM),)
        for action in actions:
            yield from self._step(action)

    def _step(self, action: Action) -> Iterator[Line]:
        words = " ".join(detail(action, is_public=self._subject.is_public).split("  "))
        why = reason_words(action.reason.value, action.reason.words, is_public=self._subject.is_public)
        pieces = [
            (pad(verb(action), VERB_COLUMNS), lines.TITLE),
            (f"  {' '.join(words.split())}", lines.PLAIN),
            (f" ({why})", lines.DIM),
        ]
        yield from wrapped(pieces, self._columns, "      ", "  ")
        for each in action.words if action.target.side is Side.WORKSPACE else ():
            yield from self._wrapped((each, lines.DIM), indent="      ")

    def versions(self, reading: Reading) -> Iterator[Line]:
        """Yield what differs between both versions: keys, files, and events; of a single version all events."""
        blocked = {item.message for item in self._subject.held}
        for note in reading.notes:
            if any(note.partition(": ")[2] in message for message in blocked):
                continue
            yield from self._wrapped((f"Note: {note}", lines.ASKED), indent="  ")
        if self._unit in (WHOLE, STREAM):
            yield from self._events(reading)

    def _files(self, reading: Reading) -> Iterator[Line]:
        """Yield the other files that differ, each with the text of both sides."""
        comparison = reading.comparison
        if comparison is None:
            return
        shown = {name for name, _, _ in reading.files}
        for name, ours, theirs in reading.files:
            if self._unit in (WHOLE, f"{EXTRA}{name}"):
                yield ()
                yield from self._wrapped((f"{name}:", lines.TITLE))
                yield from self._two_texts(ours.rstrip("\n"), theirs.rstrip("\n"))
        for name, state in comparison.extras if self._unit == WHOLE else ():
            if name not in shown:
                yield from self._wrapped((f"{name}: {state}", lines.PLAIN), indent="  ")

    def _values(self, comparison: Comparison | None) -> Iterator[Line]:
        found: list[tuple[str, str, str]] = []
        if comparison is not None:
            found = [(key, _json(ours), _json(theirs)) for key, ours, theirs in comparison.metadata]
        if not found:
            found = [each for conflict in self._conflicts for each in differences(conflict)]
        for key, ours, theirs in found:
            yield ()
            yield from self._wrapped((f"{key}:", lines.TITLE))
            yield from self._two_texts(ours, theirs)

    def _two_texts(self, left: str, right: str) -> Iterator[Line]:
        yield from self._both(self._text_of(Side.STORE, left, right), self._text_of(Side.WORKSPACE, right, left))

    def _both(self, left: Sequence[Line], right: Sequence[Line]) -> Iterator[Line]:
        if self._two_columns:
            yield from beside(left, right, self._columns)
        else:
            yield from left
            yield from right

    @property
    def _half(self) -> int:
        return (self._columns - len(lines.BETWEEN)) // 2 if self._two_columns else self._columns

    def _text_of(self, side: Side, text: str, other: str) -> list[Line]:
        pieces = [(pad(side.value, _SIDE_COLUMNS), _SIDE_STYLES[side]), *_changed(side, text, other)]
        return list(wrapped(pieces, self._half, " " * _SIDE_COLUMNS, ""))

    def _events(self, reading: Reading) -> Iterator[Line]:
        store, workspace = reading.store, reading.workspace
        if store is None or workspace is None:
            there = store or workspace
            if there is not None and there.turns:
                side = Side.STORE if store is not None else Side.WORKSPACE
                yield ()
                count = len(there.turns)
                words = f"Only in the {side}, {count} event{'' if count == 1 else 's'}:"
                yield from self._wrapped((words, _SIDE_STYLES[side]))
                for turn in there.turns[:MOST_PAIRS]:
                    yield from self._turn(turn, None, self._columns)
                yield from self._rest(count - MOST_PAIRS)
            return
        pairs = aligned(store.turns, workspace.turns)
        if all(pair.is_same for pair in pairs):
            if pairs:
                yield ()
                yield from self._wrapped((f"Events: all {len(pairs)} are the same on both sides.", lines.DIM))
            return
        yield ()
        if self._two_columns:
            heads: list[list[Line]] = [[(("store", lines.STORE),)], [(("workspace", lines.WORKSPACE),)]]
            yield from beside(heads[0], heads[1], self._columns)
        shown = 0
        for pair in _with_gaps(pairs, CONTEXT if self._two_columns else 0):
            if isinstance(pair, int):
                yield from self._wrapped((f"... {pair} equal event{'' if pair == 1 else 's'} ...", lines.DIM))
                continue
            if shown == MOST_PAIRS:
                yield from self._rest(sum(not each.is_same for each in pairs) - shown)
                return
            shown += not pair.is_same
            yield from self._pair(pair)

    def _rest(self, count: int) -> Iterator[Line]:
        if count > 0:
            yield from self._wrapped((f"... and {count} more: `e` opens all of them in your editor", lines.DIM))

    def _pair(self, pair: Pair) -> Iterator[Line]:
        left, right = pair.left, pair.right
        if pair.is_same:
            if left is not None:
                words = f"{_label(left)}: {left.text}".split("\n")[0]
                yield ((lines.cut(f"  same  {words}", self._columns).rstrip(), lines.DIM),)
            return
        ours = [] if left is None else list(self._turn(left, Side.STORE, self._half, right))
        theirs = [] if right is None else list(self._turn(right, Side.WORKSPACE, self._half, left))
        yield from self._both(ours, theirs)

    def _turn(self, turn: Turn, side: Side | None, columns: int, other: Turn | None = None) -> Iterator[Line]:
        style = lines.TITLE if side is None else _SIDE_STYLES[side]
        where = f"{side}  " if side is not None and not self._two_columns else ""
        yield from wrapped([(f"{where}{_label(turn, other)}", style)], columns, "  ", "")
        if side is None:
            pieces: list[Piece] = [(turn.text, lines.PLAIN)]
        else:
            pieces = _changed(side, turn.text, "" if other is None else other.text)
        text = list(wrapped(pieces, columns, "  "))
        yield from text[:MOST_LINES]
        yield from self._rest_of_lines(len(text) - MOST_LINES)

    def _rest_of_lines(self, count: int) -> Iterator[Line]:
        if count > 0:
            yield from self._wrapped((f"  ... {count} more lines", lines.DIM))


def _what(conflict: Conflict, reading: Reading) -> str:
    """Return what both sides have done."""
    if conflict.unit == STREAM:
        if conflict.forks:
            return f"both sides {'edited an event and ' if _is_edited(reading) else ''}continued it"
        return "both sides changed the events"
    if conflict.unit != METADATA:
        return f"both sides changed {unit_text(conflict.unit)}"
    if conflict.keys == ("title",):
        return "both sides changed the title"
    which = f"key{'' if len(conflict.keys) == 1 else 's'} {', '.join(conflict.keys)}" if conflict.keys else "metadata"
    return f"both sides changed the {which}"


def _is_edited(reading: Reading) -> bool:
    """Tell whether both sides have other versions of one event."""
    if reading.store is None or reading.workspace is None:
        return False
    pairs = aligned(reading.store.turns, reading.workspace.turns)
    return any(not pair.is_same and pair.left is not None and pair.right is not None for pair in pairs)


def _label(turn: Turn, other: Turn | None = None) -> str:
    """Return the heading of a turn; its time has seconds if only they tell it from the other side's."""
    is_close = other is not None and other.time[:16] == turn.time[:16] and other.time != turn.time
    time = f"  {local_event_time(turn.time)[: 19 if is_close else 16]}" if turn.time else ""
    return f"{turn.position}. {turn.speaker if turn.text else turn.kind}{time}"


def _times(store_ns: int, workspace_ns: int) -> tuple[str, str]:
    """Return both times to the minute, or as exactly as it takes to tell them apart."""
    for digits, columns in ((0, 16), (0, 19), (3, 23), (9, 29)):
        texts = _time(store_ns, digits)[:columns], _time(workspace_ns, digits)[:columns]
        if texts[0] != texts[1]:
            return texts
    return _time(store_ns)[:16], _time(workspace_ns)[:16]


def _time(mtime_ns: int, digits: int = 0) -> str:
    return with_local_times(time_text(mtime_ns, digits))


def _json(value: Any) -> str:
    return "(absent)" if value is None else json.dumps(value, ensure_ascii=False)


def _changed(side: Side, text: str, other: str) -> list[Piece]:
    """Return a side's text, with the words that the other side's text lacks in a style of their own."""
    if not text or not other or len(text) > COMPARED or len(other) > COMPARED:
        return [(text, lines.PLAIN)]
    ours, theirs = (text, other) if side is Side.STORE else (other, text)
    spans: list[Span] = word_changes(ours, theirs)[0 if side is Side.STORE else 1]
    return [(span.text, _CHANGED_STYLES[side] if span.is_changed else lines.PLAIN) for span in spans]


def _with_gaps(pairs: Sequence[Pair], context: int) -> Iterator[Pair | int]:
    """Yield the pairs that differ with a few equal ones around them, and the numbers of those left out."""
    near = [False] * len(pairs)
    for number, pair in enumerate(pairs):
        if not pair.is_same:
            for around in range(max(0, number - context), min(len(pairs), number + context + 1)):
                near[around] = True
    gap = 0
    for number, pair in enumerate(pairs):
        if near[number]:
            if gap:
                yield gap
            gap = 0
            yield pair
        else:
            gap += 1
    if gap:
        yield gap
