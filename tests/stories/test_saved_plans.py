"""Plans that were saved: edits between plan and apply, and files that are no plans."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD, results, three
from tests.support.projects.world import (
    LONG_AGO,
    SECOND,
    append,
    copy_tree,
    events,
    listing,
    set_key,
    write_conversation,
    write_json,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.projects.world import World


def test_a_saved_plan_refuses_what_was_edited_meanwhile_and_does_the_rest(world: World, tmp_path: Path) -> None:
    three(world)
    saved = tmp_path / "plan.json"
    world.reconcile("--out", saved, settled=False)
    assert not world.store.exists()
    append(world.workspace / f"{SECOND_ID}-it", 2, "b", LONG_AGO + SECOND)
    result = world.reconcile("apply", saved, "--json", code=4, settled=False)
    assert results(json.loads(result.stdout)) == {
        f"jp-c{FIRST}": {("done", None)},
        f"jp-c{SECOND_ID}": {("skipped", "outdated")},
        f"jp-c{THIRD}": {("done", None)},
    }
    again = world.reconcile("apply", saved, code=4, settled=False).stdout
    assert f"workspace:{SECOND_ID}-it/events.json: changed since the plan was made" in again
    assert f"store:{FIRST}-it: already done" in again
    world.reconcile()
    assert listing(world.store) == listing(world.workspace)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_plan_is_private_and_one_that_is_replaced_keeps_its_mode(world: World, tmp_path: Path) -> None:
    three(world)
    saved = tmp_path / "plan.json"
    world.reconcile("--out", saved, settled=False)
    assert mode_of(saved) == 0o600
    saved.chmod(0o644)
    before = saved.stat().st_ino
    world.reconcile("--out", saved, settled=False)
    assert mode_of(saved) == 0o644
    assert saved.stat().st_ino != before
    assert [path.name for path in tmp_path.glob("plan*")] == ["plan.json"]


def test_a_full_disk_keeps_the_older_plan(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    three(world)
    saved = tmp_path / "plan.json"
    world.reconcile("--out", saved, settled=False)
    before = saved.read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("reconcile.fs.private_files.write_all", full)
    result = world.run("--workspace", world.project, "--out", saved)
    assert result.exit_code == 1, result.output
    assert f"error: --out {saved}: No space left on device" in result.stderr
    assert saved.read_bytes() == before
    assert [path.name for path in tmp_path.glob("plan*")] == ["plan.json"]


def test_a_plan_is_not_saved_through_a_link_but_into_a_pipe(world: World, tmp_path: Path) -> None:
    three(world)
    saved, link, pipe = tmp_path / "plan.json", tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(saved)
    for _ in range(2):
        result = world.run("--workspace", world.project, "--out", link)
        assert result.exit_code == 2, result.output
        assert f"--out {link}: it is a symbolic link" in result.stderr
        before = saved.read_bytes() if saved.exists() else None
        world.reconcile("--out", saved, settled=False)
    assert before is not None
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    world.reconcile("--out", pipe, settled=False)
    assert os.read(reader, 100).startswith(b'{\n  "format": "reconcile.plan/')
    os.close(reader)


def test_a_saved_plan_is_carried_out_once(world: World, tmp_path: Path) -> None:
    three(world, parent=FIRST)
    saved = tmp_path / "plan.json"
    world.reconcile("--out", saved, settled=False)
    world.reconcile("apply", saved)
    assert (world.workspace / f"{FIRST}-it" / "conversations" / f"{SECOND_ID}-it").is_dir()
    before = listing(world.workspace) | listing(world.store)
    world.reconcile("apply", saved, code=4)
    assert listing(world.workspace) | listing(world.store) == before


def test_a_saved_removal_is_carried_out_once(world: World, tmp_path: Path) -> None:
    three(world)
    world.reconcile()
    saved = tmp_path / "plan.json"
    world.reconcile("rm", str(FIRST), "--out", saved, settled=False)
    world.reconcile("apply", saved)
    assert not list(world.store.glob(f"{FIRST}*"))
    result = world.reconcile("apply", saved, code=4)
    assert (
        result.stdout.count("skipped: ") == result.stdout.count(f"(jp-c{FIRST}): store:{FIRST}-it: already done") == 1
    )
    assert "make the plan again" not in result.stderr
    assert "removed on request" not in result.stdout, "nothing of it was done this time"


def test_a_saved_move_is_carried_out_once_and_says_what_it_would_need_first(world: World, tmp_path: Path) -> None:
    """Not that its own file has changed: what it expects there is what the step before it writes."""
    three(world, parent=FIRST)
    world.reconcile()
    saved = tmp_path / "plan.json"
    world.reconcile("set-parent", str(FIRST), str(THIRD), "--out", saved, settled=False)
    child = world.workspace / f"{FIRST}-it" / "conversations" / f"{SECOND_ID}-it"
    set_key(child, "user", "me", LONG_AGO + SECOND)
    result = world.reconcile("apply", saved, code=4, settled=False)
    metadata = f"store:{SECOND_ID}-it/metadata.json"
    assert f"needs another change first: copy {metadata} (edited in the workspace)" in result.stdout
    assert f"into {THIRD}-it" not in result.stdout, "the move was not done"
    world.reconcile("set-parent", str(FIRST), "--none", settled=False)
    world.reconcile()
    world.reconcile("set-parent", str(FIRST), str(THIRD), "--out", saved, settled=False)
    world.reconcile("apply", saved)
    told = world.reconcile("apply", saved, code=4).stdout
    assert told.count("already done") == told.count(f"(jp-c{FIRST}): store:{FIRST}-it/metadata.json: already done") == 1


def test_an_edit_without_another_time_or_size_is_noticed(world: World, tmp_path: Path) -> None:
    three(world)
    world.reconcile()
    append(world.workspace / f"{FIRST}-it", 2, "b", LONG_AGO + SECOND)
    saved = tmp_path / "plan.json"
    world.reconcile("--out", saved, settled=False)
    stream = world.workspace / f"{FIRST}-it" / "events.json"
    before = stream.stat()
    stream.write_bytes(stream.read_bytes().replace(b"b1", b"b9"))
    os.utime(stream, ns=(before.st_atime_ns, before.st_mtime_ns))
    world.reconcile("apply", saved, code=4, settled=False)
    assert world.event_count(FIRST) == 3
    world.reconcile()
    assert b"b9" in (world.store / f"{FIRST}-it" / "events.json").read_bytes()


def test_a_saved_removal_of_a_duplicate_is_refused_when_it_is_the_last_copy(world: World, tmp_path: Path) -> None:
    three(world)
    world.reconcile()
    copy = world.store / f"{FIRST}-other"
    copy_tree(world.store / f"{FIRST}-it", copy)
    shutil.rmtree(world.workspace / f"{FIRST}-it")
    saved = tmp_path / "plan.json"
    world.reconcile("--out", saved, settled=False)
    (doomed,) = [action["target"] for action in json.loads(saved.read_text())["actions"]]
    kept = {f"store:{FIRST}-it", f"store:{FIRST}-other"} - {doomed}
    shutil.rmtree(world.store / kept.pop().removeprefix("store:"))
    world.reconcile("apply", saved, code=4, settled=False)
    assert (world.store / doomed.removeprefix("store:") / "events.json").exists()


def test_a_saved_removal_is_refused_when_the_conversation_is_back(world: World, tmp_path: Path) -> None:
    three(world)
    world.reconcile()
    copy_tree(world.store / f"{FIRST}-it", tmp_path / "aside")
    shutil.rmtree(world.store / f"{FIRST}-it")
    saved = tmp_path / "plan.json"
    world.reconcile("--out", saved, settled=False)
    copy_tree(tmp_path / "aside", world.store / f"{FIRST}-it")
    result = world.reconcile("apply", saved, code=4, settled=False)
    assert "a plan made now would do something else" in result.stdout
    assert "make the plan again with --out" in result.stderr
    assert (world.workspace / f"{FIRST}-it" / "events.json").exists()


def test_a_saved_copy_is_refused_where_something_lies_by_now(world: World, tmp_path: Path) -> None:
    three(world)
    saved = tmp_path / "plan.json"
    world.reconcile("--out", saved, settled=False)
    copy_tree(world.workspace / f"{FIRST}-it", world.store / f"{FIRST}-it")
    append(world.store / f"{FIRST}-it", 1, "c", LONG_AGO - SECOND)
    result = world.reconcile("apply", saved, code=4, settled=False)
    assert f"store:{FIRST}-it" in result.output


def test_what_a_plan_file_says_is_remembered_is_worked_out_anew(world: World, tmp_path: Path) -> None:
    three(world)
    world.reconcile()
    write_conversation(world.store / "17500000009-private", "private", events(2))
    saved = tmp_path / "plan.json"
    world.reconcile("--out", saved, settled=False)
    plan = json.loads(saved.read_text())
    plan["intents"] = {"jp-c17500000009": {"kind": "projected", "waits_for": None, "place": None, "run": None}}
    plan["tombstones"] = {f"jp-c{FIRST}": ["0" * 32]}
    plan["voided"] = [f"jp-c{FIRST}"]
    saved.write_text(json.dumps(plan))
    world.reconcile("apply", saved)
    world.reconcile()
    assert not list(world.workspace.glob("17500000009*"))


ACTION: dict[str, Any] = {
    "id": "1", "kind": "copy", "case": 2, "conversation": "jp-c17500000001", "title": None, "unit": "conversation",
    "reason": "external", "source": None, "target": "store:17500000001-it", "bytes": 0, "events": None,
    "needs": [], "expect": [], "writes": [], "removes": [], "mtime_ns": None, "touches": ["jp-c17500000001"],
}  # fmt: skip


def spoiled(saved: dict[str, Any], **changes: object) -> str:
    return json.dumps(saved | {"actions": [ACTION | changes]})


def bad_plans(saved: dict[str, Any]) -> dict[str, str]:
    """Return files that are no plans, by what is wrong with them."""
    write = {"target": "store:x", "source": None, "content": "!", "size": 1, "mtime_ns": 1, "digest": "0"}
    return {
        "no JSON": "hello",
        "nothing": "",
        "a list": "[]",
        "deep": "[" * 100_000,
        "another format": json.dumps(saved | {"format": "reconcile.plan/2"}),
        "no format": "{}",
        "a path upwards": spoiled(saved, target="store:../x"),
        "an absolute path": spoiled(saved, target="store:/etc/x"),
        "a path upwards inside": spoiled(saved, source="workspace:a/../../b"),
        "no side": spoiled(saved, target="elsewhere:x"),
        "a NUL": spoiled(saved, target="store:a\0b"),
        "an unknown kind": spoiled(saved, kind="explode"),
        "an unknown reason": spoiled(saved, reason="because"),
        "an unknown need": spoiled(saved, needs=["99"]),
        "content that is no base64": spoiled(saved, writes=[write]),
        "an unknown key": spoiled(saved, extra=1),
        "an unknown layout": json.dumps(saved | {"layout": "spiral"}),
        "two actions of one id": json.dumps(saved | {"actions": [ACTION, ACTION]}),
        "numbers beyond all bounds": spoiled(saved, mtime_ns=10**30, kind="age"),
        "another workspace": json.dumps(saved | {"workspace": "/nowhere"}),
        "no id": spoiled(saved, conversation="hello", touches=["../../x"]),
    }


BAD = tuple(bad_plans({}))


@pytest.mark.parametrize("what", BAD)
def test_a_file_that_is_no_plan_is_refused_in_one_line(world: World, tmp_path: Path, what: str) -> None:
    three(world)
    saved = tmp_path / "plan.json"
    world.reconcile("--out", saved, settled=False)
    bad = tmp_path / "bad.json"
    bad.write_text(bad_plans(json.loads(saved.read_bytes()))[what])
    result = world.run("--workspace", world.project, "apply", bad)
    assert result.exit_code == 2, result.output
    message = result.stderr.splitlines()
    assert message[0].startswith("error: ")
    assert len(message) <= 2, "one line, and a hint"
    assert not world.store.exists()


def test_a_missing_plan_is_one_line(world: World, tmp_path: Path) -> None:
    result = world.run("--workspace", world.project, "apply", tmp_path / "nothing.json")
    assert result.exit_code == 2
    assert "nothing.json" in result.stderr
    assert "Traceback" not in result.output
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\0")
    assert world.run("--workspace", world.project, "apply", tmp_path / "bytes").exit_code == 2
    assert world.run("--workspace", world.project, "apply", tmp_path).exit_code == 2


def test_a_saved_publication_is_refused_where_it_was_made_local_since(world: World, tmp_path: Path) -> None:
    three(world)
    world.reconcile()
    world.reconcile("local", str(FIRST))
    saved = tmp_path / "plan.json"
    world.reconcile("project", str(FIRST), "--out", saved, settled=False)
    world.reconcile("project", str(FIRST))
    world.reconcile("local", str(FIRST))
    result = world.reconcile("apply", saved, code=4)
    assert "a later request decided otherwise" in result.output
    assert not list(world.workspace.glob(f"{FIRST}*"))
    assert "local" in world.reconcile("status", str(FIRST)).stdout


def test_nothing_to_resolve_is_nothing_to_do(world: World) -> None:
    three(world)
    world.reconcile()
    before = listing(world.store)
    assert "Nothing to do." in world.reconcile("resolve", "--all", "--keep").stdout
    assert json.loads(world.reconcile("resolve", "--all", "--keep", "--json").stdout)["actions"] == []
    assert listing(world.store) == before


def test_what_a_saved_plan_could_not_save_of_a_local_one_is_saved_by_the_next_run(world: World, tmp_path: Path) -> None:
    """The continuation in the workspace has grown since: it isn't forked, and isn't taken for saved either."""
    three(world)
    world.reconcile()
    here, kept = world.workspace / f"{FIRST}-it", world.store / f"{FIRST}-it"
    for directory in (here, kept):
        set_key(directory, "local", True, LONG_AGO)  # noqa: FBT003 - the key's value
    append(here, 2, "b", LONG_AGO + SECOND)
    append(kept, 2, "c", LONG_AGO + 2 * SECOND)
    saved = tmp_path / "plan.json"
    world.reconcile("--out", saved, settled=False)
    append(here, 3, "d", LONG_AGO + SECOND)
    world.reconcile("apply", saved, code=4, settled=False)
    world.reconcile(settled=False)
    assert (here / "events.json").read_bytes() in [path.read_bytes() for path in world.store.glob("*/events.json")]


NINE = 17500000009


def stored_alone(world: World) -> None:
    """Write a conversation that was never published."""
    three(world)
    world.reconcile()
    write_conversation(world.store / f"{NINE}-it", "Nine", events(3))
    world.reconcile()


def ask(world: World, *args: str | Path, code: int = 0) -> None:
    result = world.run("--workspace", world.project, *args)
    assert result.exit_code == code, result.output


def published(world: World) -> set[str]:
    return {path.parent.name.partition("-")[0] for path in world.workspace.rglob("events.json")}


def test_a_saved_plan_publishes_nothing_that_it_does_not_have(world: World, tmp_path: Path) -> None:
    stored_alone(world)
    plan = tmp_path / "plan.json"
    ask(world, "project", "--all", "--out", plan)
    write_conversation(world.store / f"{NINE + 1}-it", "Secret plans", events(3))
    ask(world, "apply", plan)
    world.reconcile()
    assert str(NINE) in published(world)
    assert str(NINE + 1) not in published(world)


def test_a_refused_saved_publication_is_no_request(world: World, tmp_path: Path) -> None:
    stored_alone(world)
    plan = tmp_path / "plan.json"
    ask(world, "project", str(NINE), "--out", plan)
    append(world.store / f"{NINE}-it", 1, "b", LONG_AGO + SECOND)
    ask(world, "apply", plan, code=4)
    world.reconcile()
    assert str(NINE) not in published(world)


@pytest.mark.parametrize("command", [["project", str(NINE)], ["recover", "--all"]], ids=["project", "recover"])
def test_a_saved_publication_is_refused_if_a_redo_has_made_it_local_since(
    world: World, tmp_path: Path, command: list[str]
) -> None:
    stored_alone(world)
    plan = tmp_path / "plan.json"
    ask(world, "local", str(NINE))
    ask(world, "undo")
    ask(world, *command, "--out", plan)
    ask(world, "redo")
    ask(world, "apply", plan, code=4)
    world.reconcile()
    assert str(NINE) not in published(world)
    assert world.remembered()["intent_local"]


def test_a_refused_saved_removal_leaves_no_tombstone(world: World, tmp_path: Path) -> None:
    three(world)
    world.reconcile()
    directory = write_conversation(world.workspace / f"{NINE}-it", "Nine", events(3))
    plan = tmp_path / "plan.json"
    ask(world, "rm", str(NINE), "--out", plan)
    append(directory, 1, "b", LONG_AGO + SECOND)
    ask(world, "apply", plan, code=4)
    world.reconcile()
    assert world.event_count(NINE) == 4


def test_a_refused_saved_parent_is_no_decision(world: World, tmp_path: Path) -> None:
    three(world, parent=FIRST)
    world.reconcile()
    before, plan = world.remembered()["parent"], tmp_path / "plan.json"
    ask(world, "set-parent", str(SECOND_ID), "--none", "--out", plan)
    (directory,) = world.store.rglob(f"{SECOND_ID}-*")
    metadata = json.loads((directory / "metadata.json").read_bytes())
    del metadata["parent_id"]
    write_json(directory / "metadata.json", metadata | {"title": "New"}, LONG_AGO + 3 * SECOND)
    ask(world, "apply", plan, code=4)
    assert world.remembered()["parent"] == before
