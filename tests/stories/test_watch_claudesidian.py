"""`reconcile watch` over a vault: beside the program, which writes in place without a lock, and somebody's notes."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from typing import TYPE_CHECKING

import pytest

from reconcile.formats.json import javascript
from reconcile.model.snapshot import Side
from reconcile.watch.fs_events import EventListener
from tests.support.formats.claudesidian import conversation, events, session, workspace
from tests.support.formats.claudesidian_project import NOTE, TOPS, Vault, below, small, trace
from tests.support.projects.watcher import Watching, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run


class Watched:
    """What `Watching` asks of a world."""

    def __init__(self, vault: Vault) -> None:
        self.project = vault.path


@pytest.fixture
def vault(run: Run, tmp_path: Path) -> Vault:
    """In sync."""
    made = small(tmp_path / "vault", run)
    made.reconcile()
    return made


def watching(vault: Vault, *args: str) -> Watching:
    return Watching(Watched(vault), "--format", "claudesidian", *args)  # type: ignore[arg-type]


def in_place(path: Path, content: bytes) -> None:
    """As the program does, so slowly that anybody can see it."""
    with path.open("wb") as file:
        for part in (content[: len(content) // 3], content[len(content) // 3 :]):
            time.sleep(0.02)
            file.write(part)
            file.flush()


@pytest.mark.long
def test_beside_a_program_that_writes_in_place(vault: Vault) -> None:
    seen: set[bytes] = set()
    done = threading.Event()
    item, index, stream = ".workspaces/ws_a.json", ".workspaces/index.json", ".nexus/workspaces/ws_ws_a.jsonl"

    def look() -> None:
        while not done.is_set():
            seen.add((vault.store / item).read_bytes())
            time.sleep(0.002)

    looking = threading.Thread(target=look)
    with watching(vault) as watcher:
        looking.start()
        for number in range(12):
            traces = [f"t{each}" for each in range(1, number + 3)]
            value = workspace(
                "ws_a", "Alpha plans", sessions={"s1": session("s1", *traces)}, lastAccessed=3000 + number
            )
            in_place(vault.path / item, javascript.stringify(value))
            in_place(vault.path / index, (vault.path / index).read_bytes())
            in_place(vault.path / stream, (vault.path / stream).read_bytes() + event(number))
        until(lambda: below(vault.store) == vault.carried(), "both sides are the same")
        until(lambda: not vault.doctor(), "the index is right")
        done.set()
        looking.join()
        time.sleep(0.5)  # what was done is said a moment later
        received = len(watcher.events)
        time.sleep(0.7)
        assert watcher.events[received:] == [], "it hears itself"
        assert watcher.stop() == 0
    assert len((vault.path / stream).read_bytes().splitlines()) == 15
    counts = [len(json.loads(each)["sessions"]["s1"]["memoryTraces"]) for each in seen]
    assert max(counts) == 13
    assert not watcher.said("held"), watcher.events
    vault.check_settled()


def event(number: int) -> bytes:
    return events(trace(f"x{number}", id=f"x{number}", timestamp=10 + number))


def test_a_directory_that_comes_later_is_heard_of(vault: Vault) -> None:
    with watching(vault) as watcher:
        shutil.rmtree(vault.path / ".conversations")
        watcher.hears("noted", "still in the store; restore it: reconcile project ")
        (vault.path / ".conversations").mkdir()
        time.sleep(0.5)
        for number in range(3):
            vault.write(f".conversations/conv_{number}.json", conversation(f"conv_{number}", "new"))
        until((vault.store / ".conversations" / "conv_2.json").exists)
        vault.write(".conversations/conv_2.json", conversation("conv_2", "new", "newer"))
        until(lambda: b"newer" in (vault.store / ".conversations" / "conv_2.json").read_bytes())
        until((vault.path / ".conversations" / "index.json").exists)
        assert watcher.stop() == 0
    assert vault.doctor() == []


def test_notes_are_not_listened_to(vault: Vault) -> None:
    received: list[tuple[Side, str]] = []
    missed: list[None] = []
    sides = {Side.STORE: str(vault.store), Side.WORKSPACE: str(vault.path)}
    shutil.rmtree(vault.path / ".nexus")
    listener = EventListener(sides, lambda side, path: received.append((side, path)), lambda: missed.append(None), TOPS)
    listener.start()
    try:
        (vault.path / NOTE / "deep" / "note.md").write_text("more")
        (vault.path / NOTE / "new folder").mkdir()
        (vault.path / ".obsidian" / "app.json").write_text("{}")
        vault.write(".workspaces/ws_a.json", b"{}")
        (vault.store / ".nexus" / "x").write_bytes(b"")
        until(lambda: len({side for side, _ in received}) == 2)
        assert {path for _, path in received} == {".workspaces/ws_a.json", ".nexus/x"}
        assert not missed
        (vault.path / ".nexus").mkdir()
        until(missed.copy)
    finally:
        listener.stop()


def test_what_the_program_makes_of_event_files_is_nobodys_business(vault: Vault) -> None:
    with watching(vault) as watcher:
        for number in range(20):
            (vault.path / ".nexus" / "cache.db").write_bytes(bytes([number]) * 1000)
            (vault.path / ".nexus" / "cache.db-journal").write_bytes(b"x")
            os.unlink(vault.path / ".nexus" / "cache.db-journal")
            (vault.path / f"{NOTE}.md").write_text(str(number))
        time.sleep(0.5)
        assert [each["event"] for each in watcher.events] == ["watching"]
        assert watcher.stop() == 0
