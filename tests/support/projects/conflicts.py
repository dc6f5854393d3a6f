"""Ten prepared conflicts of five kinds, and some plain changes, in a project as JP would have it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from tests.support.projects.world import LONG_AGO, SECOND, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.projects.world import World

FIRST = 17600000001
"""The id of the first conversation; the others follow."""
TITLES = (
    "Release notes for May",
    "Import of old backups",
    "Hash benchmark",
    "CI on macOS",
    "Letter to the users",
    "Naming the content store",
    "Torn files after a crash",
    "Watch mode on a laptop",
    "Review of the lock file",
    "Plan for the summer",
    "Shell completion",
    "Colors in the terminal",
    "Windows paths",
)
SIDES = ("store", "workspace")


def conflicts(world: World) -> None:
    """Sync thirteen conversations, and then change them on both sides.

    Two titles (0, 1), two other keys (2, 3), two events that were edited on both sides (4, 5), two that both sides
    continue (6, 7), two files beside the managed ones (8, 9); then one edit in the workspace (10), one in the store
    (11), and a new conversation of the workspace (13). The last one but that (12) is broken in the workspace.
    """
    for number, title in enumerate(TITLES):
        parent = {3: 2, 7: 6, 9: 8}.get(number)
        _write(world.workspace, number, title, parent)
    _file(world.workspace, 8, "notes.txt", "The lock is taken before the scan.\n", 0)
    _file(world.workspace, 9, "notes.txt", "July: holidays.\n", 0)
    world.reconcile()
    for number, titles in {
        0: ("Release notes for June", "Release notes, draft for May"),
        1: ("Import of all old backups", "Import of backups from 2019"),
    }.items():
        _both(world, number, lambda title: {"title": title}, titles)
    _both(world, 2, lambda user: {"user": user}, ("martina", "paul"))
    _both(world, 3, lambda tag: {"label": tag}, ("ci, macos, flaky", "ci, macos, solved"))
    for number, texts in {
        4: ("Dear users, version 2 is out today.", "Dear users, version 2 will be out on Monday."),
        5: ("Names are hashes: xxh3 for speed.", "Names are hashes: BLAKE2 for safety."),
    }.items():
        for at, (side, text) in enumerate(zip(SIDES, texts, strict=True)):
            _edit_answer(world, side, number, text, at + 1)
    for number in (6, 7):
        _append(world, "store", number, "What if the disk is full?", "Then the run stops, and nothing is lost.", 1)
        _append(world, "workspace", number, "What about a power cut?", "The journal tells the next run.", 2)
    for number, texts in {
        8: ("The lock is taken before the plan.\n", "The lock is taken before the scan, and kept.\n"),
        9: ("July and August: holidays.\n", "June: holidays.\n"),
    }.items():
        for at, (side, text) in enumerate(zip(SIDES, texts, strict=True)):
            _file(_side(world, side), number, "notes.txt", text, at + 1)
    _append(world, "workspace", 10, "And for fish?", "One file, the same words.", 1)
    _append(world, "store", 11, "And without colors?", "NO_COLOR is honored.", 1)
    path = _directory(world.workspace, 12) / "metadata.json"
    path.write_text("<<<<<<< HEAD\n", encoding="utf-8")
    os.utime(path, ns=(LONG_AGO + SECOND, LONG_AGO + SECOND))
    _write(world.workspace, 13, "A question of today", None)


def id_of(number: int) -> str:
    """Return the id of a conversation."""
    return f"jp-c{FIRST + number}"


def _write(side: Path, number: int, title: str, parent: int | None) -> None:
    name = title.lower().replace(" ", "-")
    directory = side / f"{FIRST + number}-{name}"
    above = {} if parent is None else {"parent_id": id_of(parent)}
    write_json(
        directory / "metadata.json", {"title": title, "last_activated_at": "2026-05-01 09:00:00.0", **above}, LONG_AGO
    )
    write_json(directory / "base_config.json", {"assistant": {"name": "jp"}}, LONG_AGO)
    events = [*_turn(0, f"Tell me about: {title}.", f"This is a short answer about {title.lower()}.")]
    write_json(directory / "events.json", events, LONG_AGO)


def _turn(at: int, question: str, answer: str) -> list[dict[str, Any]]:
    return [
        {"timestamp": f"2026-05-{1 + at:02}T09:00:00Z", "type": "turn_start"},
        {"timestamp": f"2026-05-{1 + at:02}T09:00:01Z", "type": "chat_request", "content": question},
        {"timestamp": f"2026-05-{1 + at:02}T09:00:09Z", "type": "chat_response", "message": answer},
    ]


def _side(world: World, side: str) -> Path:
    return world.store if side == "store" else world.workspace


def _directory(side: Path, number: int) -> Path:
    (found,) = side.glob(f"**/{FIRST + number}-*")
    return found


def _both(world: World, number: int, change: Any, values: tuple[str, str]) -> None:
    for at, (side, value) in enumerate(zip(SIDES, values, strict=True)):
        path = _directory(_side(world, side), number) / "metadata.json"
        write_json(path, json.loads(path.read_bytes()) | change(value), LONG_AGO + (at + 1) * SECOND)


def _edit_answer(world: World, side: str, number: int, text: str, later: int) -> None:
    path = _directory(_side(world, side), number) / "events.json"
    events = json.loads(path.read_bytes())
    events[-1]["message"] = text
    write_json(path, events, LONG_AGO + later * SECOND)


def _append(world: World, side: str, number: int, question: str, answer: str, later: int) -> None:
    path = _directory(_side(world, side), number) / "events.json"
    write_json(path, [*json.loads(path.read_bytes()), *_turn(later, question, answer)], LONG_AGO + later * SECOND)


def _file(side: Path, number: int, name: str, text: str, later: int) -> None:
    path = _directory(side, number) / name
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(LONG_AGO + later * SECOND, LONG_AGO + later * SECOND))
