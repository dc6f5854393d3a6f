"""The 15 cases of the decision table, and the reasons: why something is done, blocked, left alone or noted.

docs/cases.md and docs/reasons.md publish both, and tests compare them with these tables. ``--json`` prints the number
of a case and the value of a reason.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Self, TypeVar

T = TypeVar("T")

CASES: Final = {
    1: ("- - -", "on neither side"),
    2: ("- - a", "new in the workspace"),
    3: ("- a -", "only in the store, never seen here"),
    4: ("- a a", "equal"),
    5: ("- a b", "different, no common base"),
    6: ("a - -", "gone from both sides"),
    7: ("a - a", "removed from the store"),
    8: ("a - b", "removed from the store, edited in the workspace"),
    9: ("a a -", "removed from the workspace"),
    10: ("a a a", "up to date"),
    11: ("a a b", "edited in the workspace"),
    12: ("a b -", "edited in the store, removed from the workspace"),
    13: ("a b a", "edited in the store"),
    14: ("a b b", "the same edit on both sides"),
    15: ("a b c", "edited on both sides"),
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
    TRASHED = "trashed", "in the store's trash, still in the workspace"
    REFILL = "refill", "the store lost it"
    EDITED_WORKSPACE = "edited-workspace", "edited in the workspace"
    EDITED_STORE = "edited-store", "edited in the store"
    EDIT_WINS = "edit-wins", "removed from the store, edited here since"
    NEWER_WORKSPACE = "newer-workspace", "the workspace is newer"
    NEWER_STORE = "newer-store", "the store is newer"
    TIE = "tie", "same time; the store wins"
    PREFERRED = "preferred", "chosen with --prefer"
    AHEAD_WORKSPACE = "ahead-workspace", "the workspace adds events"
    AHEAD_STORE = "ahead-store", "the store adds events"
    LATER_COMMIT = "later-commit", "a later commit wins"
    DIVERGED = "diverged", "the two sides diverged"
    INCOMPLETE = "incomplete", "a file was missing or empty"
    DECIDED = "decided", "chosen by you"
    PROJECTED = "projected", "published here, but missing"
    ANCESTOR_RETURNED = "ancestor-returned", "published with its parent"
    ANCESTOR_LEFT = "ancestor-left", "its parent left; now a root"
    SHARED = "shared", "new in the store"
    UNITED = "united", "merges both sides' edits"
    PUT_BACK = "put-back", "restores lost entries"
    REBUILT = "rebuilt", "derived data is out of date"
    REPROJECTED = "reprojected", "settings publish it again"
    REMOVED_IN_STORE = "removed-in-store", "removed from the store"
    REMOVED_THERE = "removed-there", "removed on another machine"
    DUPLICATE = "duplicate", "a second directory of it"
    FLATTENED = "flattened", "nested in the flat store"
    PARENT_CHANGED = "parent-changed", "its parent changed"
    PARENT_GONE = "parent-gone", "its parent is not live"
    PARENT_STRIPPED = "parent-stripped", "the file lost its parent"
    CYCLE_BROKEN = "cycle-broken", "cuts a cycle of parents"
    TITLE_CHANGED = "title-changed", "its title changed"
    LAYOUT = "layout", "its place in the layout"
    ARCHIVED = "archived", "archived in the store"
    UNARCHIVED = "unarchived", "not archived in the store"
    ARCHIVED_HERE = "archived-here", "only the store's archive counts; archive it there"
    BEHIND = "behind", "an older version must not win by its newer time"
    LOCALIZED = "localized", "made local"
    WITH_ANCESTOR = "with-ancestor", "in a removed directory"
    ASKED = "asked", "published on request"
    RECOVERED = "recovered", "a workspace had it before"
    REMOVED_AS_ASKED = "removed-as-asked", "removed on request"
    WRITTEN = "written", "written through the library"
    PROMOTED = "promoted", "its parent was removed"
    EXPIRED = "expired", "expired, with all its descendants"
    FORKED = "forked", "forked on request"
    QUARANTINED = "quarantined", "unreadable, to the trash"
    TAKEN_BACK = "taken-back", "undo of a run"
    REPEATED = "repeated", "redo of a run"
    RESTORED = "restored", "restored from a saved version"

    # why something is blocked
    INVALID = "invalid", "a file has invalid content"
    DIVERGED_HELD = "diverged-held", "the two sides diverged, and the settings leave it to you"
    CONFLICT_HELD = "conflict-held", "both sides changed it, and the settings leave it to you"
    BULK = "bulk", "many directories would be removed at once"
    WORKSPACE_EMPTIED = "workspace-emptied", "the workspace is empty, and was not before"
    GIT_BUSY = "git-busy", "a git operation is in progress in this checkout"
    SUBTREE_HELD = "subtree-held", "a descendant could not be saved"
    NOT_ROUND_TRIP = "not-round-trip", "an edit of its metadata would change other bytes"
    OBSTRUCTED = "obstructed", "another file or directory is in the way"
    PATH_TOO_LONG = "path-too-long", "the path would be longer than the file system allows"
    UNREADABLE = "unreadable", "a file or directory cannot be read"
    ANCESTORS_ABSENT = "ancestors-absent", "its parents are not published here"
    ARCHIVED_HELD = "archived-held", "archived in the store, and the store decides"
    UNSETTLED = "unsettled", "its own problems have to be resolved first"
    WRITTEN_SINCE = "written-since", "changed since that run, so it cannot be undone"
    SECRET = "secret", "publishing it would publish a secret"

    CONTRADICTING = "contradicting", "both sides contradict each other"
    LOSING = "losing", "an edit lost entries that cannot be restored"
    PROGRAM_BUSY = "program-busy", "its program is at work"

    # why something is left alone
    BEHIND_ASIDE = "behind-aside", "the workspace has an older version"
    DISPLACED = "displaced", "another program moved its directory"
    LOCAL_PRESENT = "local-present", "local, but this checkout still has a copy"
    REMOVED_BEFORE = "removed-before", "an old copy of a removed conversation"
    KEPT = "kept", "you left it alone with resolve --keep; resolve --take SIDE ends that"
    UNDONE = "undone", "you undid its last change, so that no run repeats it"

    # why something is noted
    CONFLICT = "conflict", "both sides changed; the version that lost is saved"
    BASE_REPLACED = "base-replaced", "same events, different base configuration"
    PARENT_ABSENT = "parent-absent", "its parent is not in this workspace"
    PARENT_UNREADABLE = "parent-unreadable", "its parent_id is not a valid id"
    DUPLICATE_CONFLICT = "duplicate-conflict", "two directories of one conversation were both edited"
    REMOVED_HERE = "removed-here", "another program removed it from the workspace"
    WAITING = "waiting", "waits until its parent is in the workspace again"
    CYCLE = "cycle", "its parents form a cycle"
    FOREIGN = "foreign", "not a conversation; never touched"
    STORE_REPLACED = "store-replaced", "the store directory was replaced since the last run; nothing counts as removed"
    TAKEN_ALONG = "taken-along", "removed with the directory that contains it"
    ARCHIVED_COPY = "archived-copy", "archived; left alone"
    REQUESTED = "requested", "requested earlier; the next run that can does it"
    REQUEST_DROPPED = "request-dropped", "requested earlier; dropped, as something has changed since"
    SECRET_ALLOWED = "secret-allowed", "publishes a secret that you allow"
    LEFT_IN_VAULT = "left-in-vault", "saved by the same run; stays in the vault"

    # why an action was not carried out
    BUSY = "busy", "in use by another process"
    DRIFT = "drift", "changed meanwhile; run again"
    OUTDATED = "outdated", "changed since the plan was saved; save it again"
    FAILED = "failed", "failed"
    NEEDS_SKIPPED = "needs-skipped", "needs a step that was not done"


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
