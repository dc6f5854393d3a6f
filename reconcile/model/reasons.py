"""The 15 cases of the decision table, and the reasons: why something is done, held, set aside or noted.

docs/cases.md and docs/reasons.md publish both, and tests compare them with these tables. ``--json`` prints the number
of a case and the value of a reason.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Self, TypeVar

T = TypeVar("T")

CASES: Final = {
    1: ("- - -", "nothing"),
    2: ("- - a", "new in the workspace (external)"),
    3: ("- a -", "only in the store, never seen here"),
    4: ("- a a", "equal"),
    5: ("- a b", "differ, no history"),
    6: ("a - -", "gone on both sides"),
    7: ("a - a", "removed on the store side"),
    8: ("a - b", "removed there, edited here"),
    9: ("a a -", "removed in the workspace"),
    10: ("a a a", "in sync"),
    11: ("a a b", "edited in the workspace"),
    12: ("a b -", "edited in the store, gone from the workspace"),
    13: ("a b a", "edited in the store"),
    14: ("a b b", "the same edit on both"),
    15: ("a b c", "edited on both"),
}
"""The pattern (baseline store workspace) and the meaning of each case, by its number."""


def case_of(base: T | None, store: T | None, workspace: T | None) -> int:
    """Return the number of the case; None means absent, and equal values mean equal content."""
    if base is None:
        if store is None:
            return 1 if workspace is None else 2
        if workspace is None:
            return 3
        return 4 if store == workspace else 5
    if store is None:
        if workspace is None:
            return 6
        return 7 if workspace == base else 8
    if workspace is None:
        return 9 if store == base else 12
    if store == base:
        return 10 if workspace == base else 11
    if workspace == base:
        return 13
    return 14 if store == workspace else 15


class Reason(Enum):
    """A stable keyword, and ``words`` for people."""

    def __new__(cls, keyword: str, words: str) -> Self:
        """Use the keyword as the value, and store the words beside it."""
        member = object.__new__(cls)
        member._value_ = keyword
        member.words = words
        return member

    words: str

    # why an action is done
    EXTERNAL = "external", "new in the workspace"
    TRASHED = "trashed", "in the store's trash, valid in the workspace"
    REFILL = "refill", "the store was emptied or replaced, refilled from the workspace"
    EDITED_WORKSPACE = "edited-workspace", "edited in the workspace"
    EDITED_STORE = "edited-store", "edited in the store"
    EDIT_WINS = "edit-wins", "removed from the store, but edited in the workspace since"
    NEWER_WORKSPACE = "newer-workspace", "both differ, the workspace's is newer"
    NEWER_STORE = "newer-store", "both differ, the store's is newer"
    TIE = "tie", "both differ, same time: the store's wins"
    PREFERRED = "preferred", "both differ, chosen by --prefer"
    AHEAD_WORKSPACE = "ahead-workspace", "the workspace continues the store's events"
    AHEAD_STORE = "ahead-store", "the store continues the workspace's events"
    LATER_COMMIT = "later-commit", "both differ, the workspace's is of a later commit"
    DIVERGED = "diverged", "two continuations of one conversation"
    INCOMPLETE = "incomplete", "a file is missing or empty, refilled from the other side"
    DECIDED = "decided", "decided with resolve"
    PROJECTED = "projected", "projected here, and absent"
    ANCESTOR_RETURNED = "ancestor-returned", "its parent is in the workspace again"
    ANCESTOR_LEFT = "ancestor-left", "its parent left the tree, projected as a root"
    SHARED = "shared", "new in the store, from another checkout"
    UNITED = "united", "edited on both sides, made one of both"
    PUT_BACK = "put-back", "an edit lost entries, they are put back"
    REBUILT = "rebuilt", "derived, and not as what it follows from says"
    REPROJECTED = "reprojected", "absent, configured to be projected again"
    REMOVED_IN_STORE = "removed-in-store", "removed from the store"
    DUPLICATE = "duplicate", "another directory of the same conversation"
    FLATTENED = "flattened", "nested inside the store, which is flat"
    PARENT_CHANGED = "parent-changed", "its parent changed"
    PARENT_GONE = "parent-gone", "its parent is not live"
    PARENT_STRIPPED = "parent-stripped", "the parent was stripped from the file, put back"
    CYCLE_BROKEN = "cycle-broken", "its parents form a cycle, broken here"
    TITLE_CHANGED = "title-changed", "its title changed"
    LAYOUT = "layout", "placed by the layout"
    ARCHIVED = "archived", "archived in the store"
    UNARCHIVED = "unarchived", "live in the store"
    BEHIND = "behind", "an older version, aged so that it can't win by its time"
    LOCALIZED = "localized", "made local, as asked"
    WITH_ANCESTOR = "with-ancestor", "lies in a directory that goes, and comes back with it"
    ASKED = "asked", "projected, as asked"
    RECOVERED = "recovered", "put back, as the record has it"
    REMOVED_AS_ASKED = "removed-as-asked", "removed, as asked"
    WRITTEN = "written", "written by a program, through the library"
    PROMOTED = "promoted", "takes the parent of its removed parent"
    EXPIRED = "expired", "expired, with all that is below it"
    FORKED = "forked", "forked, as asked"
    QUARANTINED = "quarantined", "nobody can read it, moved into the trash as asked"
    TAKEN_BACK = "taken-back", "takes back what a run did"
    RESTORED = "restored", "a version from the vault, as asked"

    # why something is held
    INVALID = "invalid", "content that can't be read as what it should be"
    DIVERGED_HELD = "diverged-held", "two continuations, configured to ask"
    BULK = "bulk", "many directories would be removed at once"
    WORKSPACE_EMPTIED = "workspace-emptied", "the workspace is empty, and was not before"
    GIT_BUSY = "git-busy", "git is in the middle of something in this checkout"
    SUBTREE_HELD = "subtree-held", "something below it could not be saved"
    NOT_ROUND_TRIP = "not-round-trip", "its metadata can't be edited without changing other bytes"
    OBSTRUCTED = "obstructed", "something else is in the way"
    PATH_TOO_LONG = "path-too-long", "the path would be longer than the file system allows"
    UNREADABLE = "unreadable", "it can't be read"
    ANCESTORS_ABSENT = "ancestors-absent", "what it lies below doesn't belong here, and would be public with it"
    ARCHIVED_HELD = "archived-held", "archived in the store, which decides"
    UNSETTLED = "unsettled", "what it holds has to be settled first"
    WRITTEN_SINCE = "written-since", "not as the run left it, so that can't be taken back"

    CONTRADICTING = "contradicting", "both sides say something else of the same thing"
    LOSING = "losing", "an edit lost entries, and they can't be put back"
    PROGRAM_BUSY = "program-busy", "the program that it belongs to is at work"

    # why something is set aside
    BEHIND_ASIDE = "behind-aside", "an older version of the stored conversation"
    DISPLACED = "displaced", "somebody else moved it"
    LOCAL_PRESENT = "local-present", "local, but present in this checkout"
    REMOVED_BEFORE = "removed-before", "removed earlier, this is an old copy of it"
    KEPT = "kept", "left as it is, as decided, until a side changes"
    UNDONE = "undone", "undone, left as it is until a side changes"

    # why something is noted
    CONFLICT = "conflict", "edited on both sides, the loser is in the vault"
    BASE_REPLACED = "base-replaced", "the same events, and another base configuration than the store's"
    PARENT_ABSENT = "parent-absent", "its parent isn't in this workspace"
    PARENT_UNREADABLE = "parent-unreadable", "its parent_id is no conversation's id"
    DUPLICATE_CONFLICT = "duplicate-conflict", "two directories of one conversation were both edited"
    REMOVED_HERE = "removed-here", "removed from the workspace by somebody else"
    WAITING = "waiting", "waits for its parent to return to the workspace"
    CYCLE = "cycle", "parents form a cycle"
    FOREIGN = "foreign", "not a conversation, never touched"
    STORE_REPLACED = "store-replaced", "the store is another directory than last time, no removals inferred"
    TAKEN_ALONG = "taken-along", "directories that go with the one that they lie in"
    ARCHIVED_COPY = "archived-copy", "archived, and left alone"
    REQUESTED = "requested", "asked for earlier; the first run that can does it"
    REQUEST_DROPPED = "request-dropped", "asked for earlier, and not done any more: something has changed since"
    LEFT_IN_VAULT = "left-in-vault", "kept by the same run, and stays in the vault"

    # why an action was not carried out
    BUSY = "busy", "held by another process"
    DRIFT = "drift", "changed meanwhile, run again"
    OUTDATED = "outdated", "not as the saved plan was made for, make it again"
    FAILED = "failed", "failed"
    NEEDS_SKIPPED = "needs-skipped", "needed something that was not done"


_BY_KEYWORD = {reason.value: reason for reason in Reason}


def reason_of(keyword: str) -> Reason:
    """Return the reason with this keyword.

    Raises:
        ValueError: there is none.
    """
    if keyword not in _BY_KEYWORD:
        message = f"{keyword!r} is no reason"
        raise ValueError(message)
    return _BY_KEYWORD[keyword]
