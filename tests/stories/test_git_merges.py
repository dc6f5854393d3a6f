"""Merges, stashes and clones, with real git: nothing half merged reaches the store."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.support.projects.git_world import CHILD, OTHER, PARENT, check_git, check_private, commit, git, place
from tests.support.projects.world import (
    LONG_AGO,
    SECOND,
    append,
    contents,
    digest_of,
    events,
    listing,
    set_key,
    write_json,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.projects.world import World

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")


def conflicted(story: World) -> World:
    """Have a merge stop at real conflicts in the parent's events and metadata."""
    git(story.project, "switch", "-qc", "ours", "feature")
    append(place(story, PARENT), 2, "g", LONG_AGO + 100 * SECOND)
    set_key(place(story, PARENT), "title", "Parent", LONG_AGO + 100 * SECOND)
    set_key(place(story, PARENT), "last_activated_at", "2026-02-02 00:00:00.0", LONG_AGO + 100 * SECOND)
    commit(story, "ours")
    story.reconcile()
    git(story.project, "switch", "-qc", "theirs", "feature")
    append(place(story, PARENT), 2, "h", LONG_AGO + 90 * SECOND)
    set_key(place(story, PARENT), "last_activated_at", "2026-03-03 00:00:00.0", LONG_AGO + 90 * SECOND)
    commit(story, "theirs")
    git(story.project, "switch", "-q", "ours")
    done = subprocess.run(["git", "merge", "theirs"], cwd=story.project, capture_output=True, check=False)
    assert done.returncode == 1
    return story


def test_a_merge_conflict_reaches_neither_side(story: World) -> None:
    conflicted(story)
    directory = place(story, PARENT)
    broken = [directory / name for name in ("events.json", "metadata.json")]
    assert all(b"<<<<<<<" in path.read_bytes() for path in broken)
    stored, before = listing(story.store), listing(story.workspace)
    found = json.loads(story.reconcile("--json", code=4).stdout)
    assert {(item["unit"], item["reason"]) for item in found["held"]} == {
        ("stream", "invalid"),
        ("metadata", "invalid"),
    }
    assert listing(story.store) == stored
    assert listing(story.workspace) == before
    assert {digest_of(path) for path in broken} <= contents(story.vault)


def test_writes_to_the_workspace_wait_for_the_end_of_a_merge(story: World) -> None:
    conflicted(story)
    (stored,) = story.store.glob(f"{OTHER}*")
    append(stored, 5, "k", LONG_AGO + 200 * SECOND)
    append(place(story, CHILD), 1, "j", LONG_AGO + 200 * SECOND)
    found = json.loads(story.reconcile("--json", code=4).stdout)
    assert "git-busy" in {item["reason"] for item in found["held"]}
    assert story.event_count(OTHER, story.workspace) == 4
    assert story.event_count(CHILD) == 7, "what saves into the store is done all the same"
    git(story.project, "checkout", "-q", "--ours", ".")
    git(story.project, "add", "-A")
    git(story.project, "commit", "-qm", "merged")
    story.reconcile()
    assert story.event_count(OTHER, story.workspace) == 9
    assert story.event_count(PARENT) == story.event_count(PARENT, story.workspace) == 9


def test_a_removal_waits_for_the_end_of_a_merge_too(story: World) -> None:
    conflicted(story)
    (stored,) = story.store.glob(f"{OTHER}*")
    shutil.rmtree(stored)
    story.reconcile(code=4)
    assert place(story, OTHER).is_dir()
    git(story.project, "merge", "--abort")
    found = json.loads(story.reconcile("--json").stdout)
    assert [(action["kind"], action["case"]) for action in found["actions"]] == [("remove-stale", 7)]
    assert not list(story.workspace.glob(f"{OTHER}*"))


def test_an_aborted_merge_leaves_no_trace(story: World) -> None:
    conflicted(story)
    stored = listing(story.store)
    story.reconcile(code=4)
    git(story.project, "merge", "--abort")
    found = json.loads(story.reconcile("--json").stdout)
    assert found["summary"] == {"in-sync": 3, "available": 1, "held": 0, "aside": 0}
    assert listing(story.store) == stored
    check_git(story)


def test_stashed_and_popped(story: World) -> None:
    (stored,) = story.store.glob(f"{OTHER}*")
    append(stored, 5, "k", LONG_AGO + 200 * SECOND)
    story.reconcile()
    git(story.project, "stash", "-q")
    found = json.loads(story.reconcile("--json").stdout)
    assert [item["reason"] for item in found["aside"]] == ["behind-aside"]
    check_git(story)
    git(story.project, "stash", "pop", "-q")
    found = json.loads(story.reconcile("--json").stdout)
    assert found["summary"] == {"in-sync": 3, "available": 1, "held": 0, "aside": 0}
    assert story.event_count(OTHER) == 9


def read_events(directory: Path) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads((directory / "events.json").read_bytes())
    return found


def split(directory: Path, config: object, mtime_ns: int) -> None:
    """Have JP write an old stream in its new form, with two events more; the configuration is one that it completed."""
    elements = json.loads((directory / "events.json").read_bytes())
    if elements[0]["type"] == "config_delta":
        elements = elements[1:]
    write_json(directory / "base_config.json", config, mtime_ns)
    write_json(directory / "events.json", [*elements, *events(2, "n")], mtime_ns)


@pytest.mark.parametrize("layout", ["nested", "flat"])
@pytest.mark.parametrize("way", [["checkout", "-q", "--", ".jp"], ["stash", "-q"], ["stash", "-qu"]])
def test_a_legacy_stream_that_jp_has_split_and_git_puts_back(
    story: World, way: list[str], layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git puts back events.json alone, or takes base_config.json away with it: either is the older version."""
    monkeypatch.setenv("RECONCILE_LAYOUT", layout)
    story.reconcile()
    directory = place(story, CHILD)
    config = json.loads((directory / "base_config.json").read_bytes())
    (directory / "base_config.json").unlink()
    lead = {"type": "config_delta", "timestamp": "2025-01-01 00:00:00.0", "delta": config}
    elements = json.loads((directory / "events.json").read_bytes())
    write_json(directory / "events.json", [lead, *elements], LONG_AGO + 100 * SECOND)
    story.reconcile("resolve", str(CHILD), "--take", "workspace")
    commit(story, "in the legacy form")
    (stored,) = story.store.glob(f"{CHILD}*")
    for each in (stored, directory):
        split(each, config | {"since": "2026"}, LONG_AGO + 200 * SECOND)
    found = json.loads(story.reconcile("--json").stdout)
    assert found["actions"] == []
    git(story.project, *way)
    before = contents(story.store)
    found = json.loads(story.reconcile("--json").stdout)
    assert [item["reason"] for item in found["aside"]] == ["behind-aside"]
    assert contents(story.store) == before
    if way[0] == "stash":
        git(story.project, "stash", "pop", "-q")
        found = json.loads(story.reconcile("--json").stdout)
        assert (found["actions"], found["aside"]) == ([], [])
        assert contents(story.store) == before


def test_a_clone_and_a_jp_directory_made_anew_publish_nothing(story: World, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(story.project), "clone")
    clone = replace(story, project=tmp_path / "clone")
    shutil.rmtree(story.project / ".jp")
    git(story.project, "checkout", "-q", ".")
    stored = listing(story.store)
    for world in (clone, story):
        found = json.loads(world.reconcile("--json").stdout)
        assert found["summary"] == {"in-sync": 3, "available": 1, "held": 0, "aside": 0}
        check_git(world)
        check_private(world)
    assert listing(story.store) == stored


def test_what_was_cut_out_of_the_store_by_hand_stays_out_while_the_workspace_goes_on(story: World) -> None:
    (stored,) = story.store.glob(f"{OTHER}*")
    cut = [event | {"content": "cut"} if event["content"] == "o1" else event for event in read_events(stored)]
    write_json(stored / "events.json", cut, LONG_AGO + 100 * SECOND)
    append(place(story, OTHER), 2, "t", LONG_AGO + 200 * SECOND)
    (merged, _) = json.loads(story.reconcile("--json").stdout)["actions"]
    assert (merged["reason"], merged["events"]) == ("united", {"before": 4, "after": 6})
    assert read_events(stored) == read_events(place(story, OTHER)) == [*cut, *events(2, "t")]
    commit(story, "cut out")
    git(story.project, "checkout", "-q", "HEAD~1")
    found = json.loads(story.reconcile("--json").stdout)
    assert [item["reason"] for item in found["aside"]] == ["behind-aside"]
    assert read_events(stored) == [*cut, *events(2, "t")]
    check_git(story)


def test_what_was_cut_out_of_the_workspace_stays_out_while_jp_goes_on_in_the_store(story: World) -> None:
    (stored,) = story.store.glob(f"{OTHER}*")
    cut = [event for event in read_events(stored) if event["content"] != "o1"]
    write_json(place(story, OTHER) / "events.json", cut, LONG_AGO + 300 * SECOND)
    append(stored, 2, "t", LONG_AGO + 200 * SECOND)
    found = json.loads(story.reconcile("--json").stdout)
    assert {action["reason"] for action in found["actions"]} == {"united"}
    assert read_events(stored) == read_events(place(story, OTHER)) == [*cut, *events(2, "t")]
    story.reconcile("undo")
    assert read_events(place(story, OTHER)) == cut
    assert read_events(stored) == [*events(4, "o"), *events(2, "t")]
