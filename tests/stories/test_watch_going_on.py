"""A watcher goes on from what the last one, or the last run, has saved (docs/watch.md)."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD
from tests.support.projects.watcher import Watching, grow, until

if TYPE_CHECKING:
    from tests.support.projects.world import World


def test_what_has_changed_while_none_was_running(watched: World) -> None:
    with Watching(watched) as watcher:
        grow(watched.workspace, FIRST)
        watcher.hears("done")
        assert watcher.stop() == 0
    grow(watched.store, SECOND_ID)
    grow(watched.workspace, FIRST)
    shutil.rmtree(watched.workspace / f"{THIRD}-it")
    with Watching(watched) as watcher:
        watcher.hears("noted", "still in the store")
        until(lambda: watched.event_count(FIRST) == 7 and watched.event_count(SECOND_ID, watched.workspace) == 5)
        grow(watched.workspace, SECOND_ID)
        until(lambda: watched.event_count(SECOND_ID) == 7)
        assert watcher.stop() == 0
    watched.check_settled()


@pytest.mark.long
def test_what_a_run_has_blocked_is_said_by_each_watcher(watched: World) -> None:
    path = watched.workspace / f"{FIRST}-it" / "events.json"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    watched.reconcile(code=4)
    for _ in range(2):
        with Watching(watched) as watcher:
            watcher.hears("held", "events.json")
            assert watcher.stop() == 0
    with Watching(watched) as watcher:
        watcher.hears("held", "events.json")
        path.write_bytes(whole)
        watcher.hears("released", str(FIRST))
        assert watcher.stop() == 0
    watched.check_settled()


def test_a_store_that_was_emptied_while_none_was_running_is_waited_for(watched: World) -> None:
    with Watching(watched) as watcher:
        assert watcher.stop() == 0
    away = watched.store.with_name("away")
    watched.store.rename(away)
    watched.store.mkdir()
    with Watching(watched, ready=False) as watcher:
        watcher.hears("waiting", "watch waits until it is back")
        watched.store.rmdir()
        away.rename(watched.store)
        watcher.hears("watching")
        assert watcher.stop() == 0
    assert not watcher.done()
    watched.check_settled()
