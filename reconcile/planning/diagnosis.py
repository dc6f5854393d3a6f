"""The problems on both sides, by kind, each with the commands that solve it, for `doctor`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.model.commands import typed
from reconcile.model.plan import Kind
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import WHOLE, Metadata, Partition, Side, Unreadable
from reconcile.planning.attention import BARE, unit_in_copy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reconcile.model.plan import Plan
    from reconcile.model.snapshot import Copy, Place, Snapshot
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.views import View


class Ailment(StrEnum):
    """The kinds of findings; the values are stable for programs."""

    MERGE_MARKERS = "merge-markers"
    INVALID = "invalid"
    UNEDITABLE = "uneditable"
    UNREADABLE = "unreadable"
    UNWRITABLE = "unwritable"
    INCOMPLETE_VAULT = "incomplete-vault"
    DUPLICATE = "duplicate"
    CYCLE = "cycle"
    MISSING_PARENT = "missing-parent"
    STRIPPED_PARENT = "stripped-parent"
    STALE = "stale-directory"
    CARRIED = "carried-along"
    NESTED_IN_STORE = "nested-in-store"
    NAME = "name-out-of-step"
    DRIFT = "drift"
    EMPTY = "empty-directory"
    FOREIGN = "foreign"
    LEFTOVER = "leftover"
    ORPHANED_LOCK = "orphaned-lock"
    LOST = "lost"
    UNMARKED = "unmarked"
    STAGED = "private-staged"
    IN_GIT = "private-in-git"
    SECRET = "secret"  # noqa: S105 - a kind, no secret

    @property
    def matters(self) -> str:
        """Why it matters, in one sentence."""
        return _MATTERS[self]

    def matters_in(self, fmt: str) -> str:
        """Return why it matters in a format: only JP's program does something about it."""
        return self.matters if fmt == "jp" else _MATTERS_WITHOUT_JP.get(self, self.matters)

    @property
    def severity(self) -> str:
        """Return ``error`` for unreadable content, ``note`` for a normal state, else ``warning``."""
        return "error" if self in _ERRORS else "note" if self in _NOTES else "warning"


_MATTERS = {
    Ailment.MERGE_MARKERS: "JP moves a conversation with an unresolved merge into .trash/ at its next start.",
    Ailment.INVALID: (
        "reconcile does not copy invalid files; JP moves the conversation into .trash/ at its next start. "
        "Take the other side's version, or move the file into .trash/ yourself."
    ),
    Ailment.UNEDITABLE: "reconcile can't set its parent in its metadata, so it does not move it.",
    Ailment.UNREADABLE: "reconcile does not sync files that it can't read.",
    Ailment.UNWRITABLE: "A run can't read or write there, so it fails.",
    Ailment.INCOMPLETE_VAULT: "That version can't be restored, and the run that has replaced it can't be undone.",
    Ailment.DUPLICATE: "Two directories have the same conversation; JP deletes one of them when it writes.",
    Ailment.CYCLE: "A conversation in a cycle of parents has no place in the tree; it is treated as a root.",
    Ailment.MISSING_PARENT: "Its parent is deleted or archived, so it is treated as a root.",
    Ailment.STRIPPED_PARENT: "JP drops parent_id when it writes; reconcile restores it from its own record.",
    Ailment.STALE: "The directory should not exist any more.",
    Ailment.CARRIED: "JP moved it together with the directory around it.",
    Ailment.NESTED_IN_STORE: "The store is flat; JP does not see conversations that are nested in it.",
    Ailment.NAME: "The directory's name doesn't match the title; JP renames it on its next write.",
    Ailment.DRIFT: "It is not where the last run left it.",
    Ailment.EMPTY: "The directory has a conversation's name, but no files; they were moved, deleted or lost.",
    Ailment.FOREIGN: "It is not a conversation; reconcile leaves it alone, and JP may move it into .trash/.",
    Ailment.LEFTOVER: "An interrupted write left it; it may be the only copy of a file.",
    Ailment.ORPHANED_LOCK: "The lock's conversation does not exist; JP removes the lock at the end of a run.",
    Ailment.LOST: "It was in a store that was lost, and neither side has it now.",
    Ailment.UNMARKED: "Its program finds nothing here; the store still has the files.",
    Ailment.STAGED: "It is private, and the next commit publishes it.",
    Ailment.IN_GIT: "It is private, but whoever has the commit can read it.",
    Ailment.SECRET: "Whoever gets the workspace or its commits can read it.",
}

_MATTERS_WITHOUT_JP = {
    Ailment.MERGE_MARKERS: "reconcile does not copy a file with an unresolved merge.",
    Ailment.INVALID: (
        "reconcile does not copy invalid files. Take the other side's version, or move the file away yourself."
    ),
    Ailment.DUPLICATE: "Two directories have the same conversation; a run keeps one of them.",
    Ailment.STRIPPED_PARENT: "A program has dropped parent_id; reconcile restores it from its own record.",
    Ailment.CARRIED: "It was moved together with the directory around it.",
    Ailment.NESTED_IN_STORE: "The store is flat; a run moves what is nested in it.",
    Ailment.NAME: "The directory's name doesn't match the title.",
    Ailment.FOREIGN: "It is not a conversation; reconcile leaves it alone.",
    Ailment.ORPHANED_LOCK: "The lock's conversation does not exist.",
}

_ERRORS = {
    Ailment.MERGE_MARKERS,
    Ailment.INVALID,
    Ailment.UNREADABLE,
    Ailment.UNWRITABLE,
    Ailment.INCOMPLETE_VAULT,
    Ailment.UNMARKED,
}
_NOTES = {Ailment.MISSING_PARENT, Ailment.NAME, Ailment.DRIFT, Ailment.FOREIGN, Ailment.ORPHANED_LOCK, Ailment.IN_GIT}
"""Problems that a plain run leaves alone, or that JP handles: a conversation with an archived parent, a branch with
another layout, another program's file.
"""

PLAIN = "reconcile"
"""A plain run solves it."""
MOVE_AWAY = "check it, then move it away"
LAY_OUT = "format its metadata as JP does (two spaces, a newline at the end), or set parent_id by hand"


NOTHING_IN_IT = "an empty directory"
SEE_TO_IT = "check its permissions, and the disk"


class Finding(Struct, frozen=True):
    """One problem: its place, the facts, and the commands that solve it."""

    ailment: Ailment
    place: str
    found: str
    conversation: str | None = None
    mend: tuple[str, ...] = ()

    @property
    def repairable(self) -> bool:
        """A plain run is safe, and solves it."""
        return PLAIN in self.mend


def diagnose(
    context: PlanningContext, plan: Plan, store: Snapshot, workspace: Snapshot, empty: Iterable[Copy]
) -> tuple[Finding, ...]:
    """Return all problems, by kind; ``plan`` is that of a plain run, ``empty`` are empty directories."""
    held = list(_held(context, plan))
    places = {finding.place for finding in held}
    findings = [
        *held,
        *(finding for finding in _unreadable(store, workspace) if finding.place not in places),
        *(finding for view in context.views.values() for finding in _copies(context, view)),
        *_tree(context),
        *_planned(plan),
        *map(_empty, empty),
        *_foreign(context, store, workspace),
    ]
    return by_kind(findings)


def by_kind(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings in the order of their kinds, and of their places."""
    order = list(Ailment)
    return tuple(sorted(findings, key=lambda finding: (order.index(finding.ailment), finding.place)))


def misnamed(conversation: str, place: Place, name: str) -> Finding:
    """Return the finding of a directory whose title makes it ``name``."""
    mend = ("nothing to do; JP renames it on its next write",)
    return Finding(Ailment.NAME, str(place), f"the name for its title is {name}", conversation, mend)


def orphaned(conversation: str, place: str, parent: str | None) -> Finding:
    """Return the finding of a conversation whose parent is nowhere, or archived."""
    mend = (f"reconcile set-parent {typed(conversation)} PARENT", f"reconcile set-parent {typed(conversation)} --none")
    return Finding(Ailment.MISSING_PARENT, place, f"its parent {parent} is deleted or archived", conversation, mend)


def _held(context: PlanningContext, plan: Plan) -> Iterator[Finding]:
    for item in plan.held:
        if item.reason not in (Reason.INVALID, Reason.NOT_ROUND_TRIP):
            continue
        assert item.conversation is not None  # noqa: S101 - it is about a file of one
        place = _place(context, item.conversation) if item.place is None else str(item.place)
        words = item.words
        if item.reason is Reason.NOT_ROUND_TRIP:
            yield Finding(Ailment.UNEDITABLE, place, words, item.conversation, (LAY_OUT,))
            continue
        if _is_unread(context.views[item.conversation]):
            yield Finding(Ailment.UNREADABLE, place, words, item.conversation, (SEE_TO_IT,))
            continue
        quarantine = f"reconcile doctor --quarantine {typed(item.conversation)}"
        mend = tuple(dict.fromkeys((*item.resolve, quarantine)))
        if "conflict marker" in words:
            mend = ("resolve the merge in git (git status)", *mend)
            yield Finding(Ailment.MERGE_MARKERS, place, words, item.conversation, mend)
        else:
            yield Finding(Ailment.INVALID, place, words, item.conversation, mend)


def _is_unread(view: View) -> bool:
    """Tell whether the problem is that the conversation can't be read, so that its content is unknown."""
    faults = [unit.fault for side in (view.store, view.workspace) for unit in side.faults.values()]
    return any(isinstance(fault, Unreadable) for fault in faults)


def _unreadable(*sides: Snapshot) -> Iterator[Finding]:
    for side in sides:
        for problem in side.problems:
            place = f"{side.side}:{problem.path or '.'}"
            yield Finding(Ailment.UNREADABLE, place, problem.message, mend=(SEE_TO_IT,))


def _copies(context: PlanningContext, view: View) -> Iterator[Finding]:
    for side in (view.store, view.workspace):
        for copy in side.stale:
            nested = copy.side is Side.STORE and copy.container is not None
            if side.main is not None and not nested:
                yield _of(Ailment.DUPLICATE, copy, f"same conversation as {side.main.path}", PLAIN)
        if side.main is not None:
            yield from _one(context, view, side.main)
        for copy in side.stale:
            if copy.side is Side.STORE and copy.container is not None:
                yield _of(Ailment.NESTED_IN_STORE, copy, f"inside {copy.container}", PLAIN)
        for copy in side.bare_directories:
            if copy.files and side.main is None:
                yield _of(Ailment.FOREIGN, copy, BARE, MOVE_AWAY)


def _one(context: PlanningContext, view: View, main: Copy) -> Iterator[Finding]:
    if main.side is Side.STORE and main.container is not None:
        yield _of(Ailment.NESTED_IN_STORE, main, f"inside {main.container}", PLAIN)
    if main.partition is not Partition.LIVE and main.container is not None:
        yield _of(Ailment.CARRIED, main, f"in {main.partition}, below {main.container}", PLAIN)
    metadata = main.metadata
    if isinstance(metadata, Metadata) and main.dirname != context.rules.format.dirname(view.id, metadata.title):
        name = context.rules.format.dirname(view.id, metadata.title)
        yield misnamed(view.id, main.place, name)
    if main.side is Side.WORKSPACE and view.agreed is not None and view.agreed.place != main.path:
        yield _of(
            Ailment.DRIFT, main, f"the last run left it at {view.agreed.place}", f"reconcile project {typed(view.id)}"
        )


def _of(ailment: Ailment, copy: Copy, message: str, *mend: str) -> Finding:
    return Finding(ailment, str(copy.place), message, copy.conversation, mend)


def _tree(context: PlanningContext) -> Iterator[Finding]:
    for cycle in context.tree.cycles:
        chain = " > ".join((*cycle, cycle[0]))
        yield Finding(
            Ailment.CYCLE,
            _place(context, cycle[0]),
            chain,
            cycle[0],
            (f"reconcile set-parent {typed(cycle[0])} --none",),
        )
    for conversation in context.tree.walk():
        if context.tree.parent_is_gone(conversation):
            yield orphaned(conversation, _place(context, conversation), context.parentage[conversation].parent)


def _place(context: PlanningContext, conversation: str) -> str:
    view = context.views[conversation]
    main = view.store.main or view.workspace.main
    return str(main.place) if main is not None else conversation


def _planned(plan: Plan) -> Iterator[Finding]:
    for action in plan.actions:
        if action.reason is Reason.PARENT_STRIPPED:
            place, words = str(action.target), "parent_id is missing"
            yield Finding(Ailment.STRIPPED_PARENT, place, words, action.conversation, (PLAIN,))
        elif action.kind is Kind.REMOVE_STALE and action.reason is not Reason.DUPLICATE:
            yield Finding(Ailment.STALE, str(action.target), action.reason.words, action.conversation, (PLAIN,))


def _empty(copy: Copy) -> Finding:
    return _of(Ailment.EMPTY, copy, NOTHING_IN_IT, f"reconcile status {typed(copy.conversation)}", "remove it")


def empty_directories(*sides: Snapshot) -> Iterator[Copy]:
    """Return the directories that hold neither a file nor another conversation; an unreadable one isn't empty."""
    for side in sides:
        around = {copy.container for copy in side.copies}
        for copy in side.copies:
            told = copy.files or copy.metadata is not None or copy.stream is not None or copy.obstructed
            if not told and copy.conversation not in around and copy.partition is not Partition.TRASH:
                yield copy


def _foreign(context: PlanningContext, *sides: Snapshot) -> Iterator[Finding]:
    for side in sides:
        for foreign in side.foreign:
            place = f"{side.side}:{foreign.path}"
            form, is_beside = context.rules.format, unit_in_copy(context.rules.format, foreign.path) == WHOLE
            meant = form.id_of(foreign.path.rpartition("/")[2]) if foreign.link and is_beside else None
            if meant is not None:
                words, mend = (
                    "a symbolic link in the place of a directory",
                    "put the directory itself there, or remove the link",
                )
                yield Finding(Ailment.UNREADABLE, place, words, meant, (mend,))
                continue
            kind = Ailment.LEFTOVER if foreign.what.startswith("left over") else Ailment.FOREIGN
            yield Finding(kind, place, foreign.what, mend=(MOVE_AWAY,))
