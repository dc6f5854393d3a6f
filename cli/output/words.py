"""The words of the screen: a verb for each kind of action, a word for each state, and the phrases of a summary.

JSON has kinds and state ids instead. The glossary of docs/concepts.md defines the words, and tests compare the two.
Every start may load this module, so that it imports nothing of the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

VERBS: Mapping[str, str] = {
    "copy": "-> store",
    "project": "-> workspace",
    "move": "move",
    "remove-stale": "remove",
    "remove": "remove",
    "age": "reset time",
    "promote": "set parent",
    "set-parent": "set parent",
    "fork": "fork",
    "archive": "archive",
    "unarchive": "unarchive",
    "rebuild": "rebuild",
}
"""The verb of each kind of action."""
RENAME = "rename"
"""The verb of a move that changes the directory's name only."""
PUBLISH = "publish"
"""Stands beside ``-> workspace`` where a workspace in the project lacks the whole conversation."""
RESTORE = "restore"
"""Stands there instead where the workspace had it before."""
_RESTORING = frozenset({"recovered", "restored", "taken-back", "repeated"})
"""The reasons of actions that bring back: a redo, what the run had brought."""
_PRIVATE_REASONS = {
    "projected": "it belongs here, but is missing",
    "ancestor-returned": "returns with its parent",
    "reprojected": "settings bring it here again",
    "asked": "on request",
}
"""The words of reasons that say "publish" elsewhere, for a workspace that nobody else sees."""
_SECRETS = 3
"""Secrets that a message names."""
VERB_COLUMNS = max(map(len, VERBS.values()))
DIRECTED = frozenset({"copy", "project"})
"""Kinds whose verb is the direction itself."""
REMOVALS = frozenset({"remove-stale", "remove"})
PLACES = frozenset({"move", "archive", "unarchive"})

STATES: Mapping[str, str] = {
    "in-sync": "up to date",
    "available": "store only",
    "external": "workspace only",
    "changing": "changed",
    "newer-in-store": "changed in store",
    "newer-in-workspace": "changed in workspace",
    "newer-on-both": "changed on both sides",
    "conflict": "conflict",
    "waiting": "waiting for its parent",
    "behind": "left alone (older)",
    "held": "blocked",
    "invalid": "blocked",
    "open": "blocked or left alone",
    "kept": "left alone (as you chose)",
    "undone": "left alone (undone)",
    "displaced": "moved elsewhere",
    "local": "local",
    "local-present": "local, copy here",
    "removed": "removed here",
    "removed-before": "removed earlier",
    "removed-in-store": "removed from store",
    "archived": "archived",
    "projected": "to publish",
    "derived": "derived",
    "unreadable": "unreadable",
    "requested": "pending",
    "busy": "in use",
    "lost": "lost with its store",
    "empty": "empty directory",
}
"""The word of each state id; ``to-KIND`` has the verb of that kind."""
_PLURAL_STATES = {"conflict": "conflicts", "waiting for its parent": "waiting for their parents"}
"""The words of states that differ if several conversations have them."""

PHRASES: Mapping[str, tuple[str, str]] = {
    "add": ("added to the store", "to add to the store"),
    "store": ("updated in the store", "to update in the store"),
    "publish": ("published", "to publish"),
    "workspace whole": ("added to the workspace", "to add to the workspace"),
    "restore workspace": ("restored in the workspace", "to restore in the workspace"),
    "restore store": ("restored in the store", "to restore in the store"),
    "workspace": ("updated in the workspace", "to update in the workspace"),
    "fork": ("fork created", "fork to create"),
    "parent": ("parent set", "parent to set"),
    "time": ("file time reset", "file time to reset"),
    "archive": ("archived", "to archive"),
    "unarchive": ("unarchived", "to unarchive"),
    "rename": ("renamed", "to rename"),
    "move": ("moved", "to move"),
    "remove workspace": ("removed from the workspace", "to remove from the workspace"),
    "remove store": ("removed from the store", "to remove from the store"),
    "rebuild": ("rebuilt", "to rebuild"),
    "send": ("sent", "to send"),
    "take": ("taken", "to take"),
    "remove remote": ("removed there", "to remove there"),
    "remove here": ("removed here", "to remove here"),
}
"""The phrases of a summary, in its order: of what is done, and of what is planned. A number precedes them."""
_PLURALS = ("fork", "parent", "time")
_BY_KIND = {"age": "time", "promote": "parent", "set-parent": "parent"}


def verb_of(kind: str, source: str | None, target: str) -> str:
    """Return the verb of an action of this kind; ``source`` and ``target`` are its paths, without the side."""
    return RENAME if kind == "move" and is_rename(source, target) else VERBS[kind]


def is_rename(source: str | None, target: str) -> bool:
    """Tell whether a move changes the directory's name only."""
    return source is not None and source.rpartition("/")[0] == target.rpartition("/")[0]


def publication_word(reason: str, *, is_public: bool) -> str:
    """Return the word of an action that brings a whole conversation into the workspace for this reason.

    Empty if nobody else sees the workspace (not ``is_public``): it lies in the user's home.
    """
    return RESTORE if reason in _RESTORING else PUBLISH if is_public else ""


def reason_words(reason: str, words: str, *, is_public: bool) -> str:
    """Return the words of a reason, which are ``words`` unless nobody else sees the workspace."""
    return words if is_public else _PRIVATE_REASONS.get(reason, words)


def phrase_of(kind: str, side: str, reason: str, *, whole: bool, renames: bool, is_public: bool = True) -> str:
    """Return the key in `PHRASES` of an action.

    ``whole``: it is about all files of a conversation. ``is_public``: the workspace lies in the project.
    """
    if whole and kind in DIRECTED and reason in _RESTORING:
        return f"restore {side}"
    if kind == "copy":
        return "add" if whole else "store"
    if kind == "project":
        return "workspace" if not whole else "publish" if is_public else "workspace whole"
    if kind == "move":
        return "rename" if renames else "move"
    if kind in REMOVALS:
        return f"remove {side}" if whole else side  # without one of its files, a conversation is updated
    return _BY_KIND.get(kind, kind)


def remote_phrase_of(phrase: str, kind: str, side: str) -> str:
    """Return the key in `PHRASES` of an action of a sync, whose workspace is the remote; ``phrase``: in a run."""
    if phrase == f"remove {side}":
        return "remove here" if side == "store" else "remove remote"
    if kind in DIRECTED or kind in REMOVALS:
        return "take" if side == "store" else "send"
    return phrase


def counted(phrase: str, count: int, *, done: bool) -> str:
    """Return a phrase with its number, such as ``2 forks created``."""
    words = PHRASES[phrase][0 if done else 1]
    if phrase in _PLURALS and count != 1:
        words = words.replace(phrase, f"{phrase}s", 1)
    return f"{count} {words}"


def summed(phrases: Iterable[tuple[str, str, str]], *, done: bool) -> list[str]:
    """Return the parts of a summary, from triples of a phrase, a conversation and a side.

    Each conversation counts once in a part. What is done to it on both sides is a part of its own, which says so.
    """
    named: dict[str, dict[str, set[str]]] = {}
    for phrase, conversation, side in phrases:
        named.setdefault(phrase, {}).setdefault(conversation, set()).add(side)
    parts = []
    for phrase in PHRASES:
        sides = named.get(phrase, {}).values()
        both = sum(len(each) > 1 for each in sides)
        if alone := len(sides) - both:
            parts.append(counted(phrase, alone, done=done))
        if both:
            parts.append(f"{counted(phrase, both, done=done)} on both sides")
    return parts


def state_word(state: str, *, is_public: bool = True) -> str:
    """Return the word of a state id on the screen. ``is_public``: the workspace lies in the project."""
    if state == "projected" and not is_public:
        return PHRASES["workspace whole"][1]
    if state.startswith("to-"):
        return f"to {VERBS.get(state[3:], state[3:])}"
    return STATES.get(state, state)


def state_counts(states: Iterable[tuple[str, int]], noun: str, *, is_public: bool = True) -> str:
    """Return how many conversations are in which state: ``6 conversations: 5 up to date, 1 store only``."""
    order, counts = list(STATES), dict[str, int]()
    for state, count in sorted(states, key=lambda pair: order.index(pair[0]) if pair[0] in STATES else len(order)):
        word = state_word(state, is_public=is_public)
        counts[word] = counts.get(word, 0) + count
    total = sum(counts.values())
    listed = ", ".join(
        f"{count} {_PLURAL_STATES.get(word, word) if count > 1 else word}" for word, count in counts.items()
    )
    return f"{total} {noun}{'' if total == 1 else 's'}" + (f": {listed}" if listed else "")


INTENTS: Mapping[str, str] = {
    "projected": "published",
    "local": "local",
    "removed": "removed here",
    "none": "never published here",
}
"""The words of the intents: what belongs in a workspace."""
_PRIVATE_INTENTS = {"projected": "in the workspace", "none": "never in the workspace"}


def intent_words(intent: str, *, is_public: bool = True) -> str:
    """Return an intent on the screen. ``is_public``: the workspace lies in the project."""
    if not is_public and intent in _PRIVATE_INTENTS:
        return _PRIVATE_INTENTS[intent]
    return INTENTS.get(intent, intent)


def without_last_secrets(message: str, secrets: Sequence[str]) -> str:
    """Return the message about the secrets that block a conversation, with the first of many ``secrets`` only."""
    more = len(secrets) - _SECRETS
    if more <= 0:
        return message
    return message.replace("; ".join(secrets), f"{'; '.join(secrets[:_SECRETS])}; and {more} more (-v names all)")
