"""The journal and the vault as their user sees them: log, show, restore, undo, and what is taken out for good."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.fs.durability import Durability
from reconcile.state.vault import Vault
from tests.support.faults.fault_points import dies_at, dies_before
from tests.support.projects.git_world import git
from tests.support.projects.terminal import at_terminal
from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD, three
from tests.support.projects.world import (
    DATABASE,
    LONG_AGO,
    SECOND,
    append,
    events,
    files,
    listing,
    make_project,
    set_key,
    write_conversation,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.world import World

SECRET = "hunter2-hunter2"  # noqa: S105 - of nobody's


def runs(world: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(world.reconcile("log", "--json", settled=False).stdout)["runs"]
    return found


def versions(world: World, run: str) -> list[dict[str, Any]]:
    (found,) = json.loads(world.reconcile("log", run, "--json", settled=False).stdout)["runs"]
    kept: list[dict[str, Any]] = found["versions"]
    return kept


def edited(world: World) -> str:
    """Two runs, of which the second replaces a file that holds a secret; return that file's digest in the vault."""
    three(world)
    set_key(world.workspace / f"{FIRST}-it", "user", SECRET, LONG_AGO)
    world.reconcile()
    set_key(world.workspace / f"{FIRST}-it", "user", "me", LONG_AGO + SECOND)
    world.reconcile()
    (version,) = versions(world, runs(world)[0]["id"])
    return str(version["digest"])


def test_the_log_calls_a_sync_one_after_its_remote_was_removed(world: World, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    three(world)
    world.reconcile()
    world.reconcile("remote", "add", str(tmp_path / "remote.git"), settled=False)
    world.reconcile("sync", settled=False)
    before = world.reconcile("log", settled=False).stdout.splitlines()[0]
    world.reconcile("remote", "remove", "origin", settled=False)
    after = world.reconcile("log", settled=False).stdout.splitlines()[0]
    assert "3 sent" in before
    assert after == before.replace("remote origin", "a checkout or remote that was removed")


def test_the_log_lists_runs_and_the_steps_of_one(world: World) -> None:
    assert "No run has changed anything yet" in world.reconcile("log", settled=False).stdout
    edited(world)
    text = world.reconcile("log", settled=False).stdout.splitlines()
    assert ["1 updated in the store" in text[0], "3 added to the store" in text[1], len(text)] == [True, True, 2]
    assert f"1 updated in the store: jp-c{FIRST}  " in text[0], "a run of few conversations names them"
    assert "jp-c" not in text[1]
    newest = runs(world)[0]["id"]
    steps = world.reconcile("log", newest, settled=False).stdout
    assert "metadata.json  (edited in the workspace)" in steps
    assert f"jp-c{FIRST}@{newest}:metadata" in steps
    unknown = world.run("log", "x", "-w", world.project).stderr
    assert "no run has an id that starts with 'x'" in unknown
    assert "the versions of a conversation: reconcile restore ID" in unknown
    assert "is ambiguous" in world.run("log", newest[:4], "-w", world.project).stderr


def test_a_version_is_printed_as_it_was(world: World) -> None:
    before = three_and_bytes(world)
    newest = runs(world)[0]["id"]
    result = world.reconcile("show", f"{FIRST}@{newest}:metadata", settled=False)
    assert result.stdout_bytes == before
    (version,) = versions(world, newest)
    assert world.reconcile("show", version["digest"][:9], settled=False).stdout_bytes == before
    found = json.loads(world.reconcile("show", version["digest"][:9], "--json", settled=False).stdout)
    assert [each["file"] for each in found["versions"]] == ["metadata.json"]


def three_and_bytes(world: World) -> bytes:
    three(world)
    world.reconcile()
    path = world.workspace / f"{FIRST}-it" / "metadata.json"
    before = path.read_bytes()
    set_key(path.parent, "user", "me", LONG_AGO + SECOND)
    world.reconcile()
    return before


def test_a_purged_secret_is_nowhere(world: World) -> None:
    digest = edited(world)
    everywhere = [*files(world.state), *files(world.store), *files(world.workspace)]
    assert [path.name for path in everywhere if SECRET.encode() in path.read_bytes()] == [digest]
    assert world.run("vault", "--purge", digest[:8], "-w", world.project).exit_code == 4, "nobody has said yes"
    shown = world.run("vault", "--purge", digest[:8], "-n", "-w", world.project)
    assert digest[:16] in shown.stdout
    assert (world.vault / digest[:2] / digest).exists()
    gone = world.run("vault", "--purge", digest[:8], "--yes", "-w", world.project)
    assert "deleted from the vault for good" in gone.stdout
    assert not [path for path in everywhere if path.exists() and SECRET.encode() in path.read_bytes()]
    refused = world.reconcile("undo", code=4, settled=False)
    assert "the vault has no saved version of it any more" in refused.stdout
    assert (
        "no version in the vault starts with"
        in world.run("vault", "--purge", digest[:8], "--yes", "-w", world.project).stderr
    )


def test_a_killed_purge_can_be_repeated(world: World) -> None:
    """The record goes with the object, in one transaction; the kill comes after the object is gone."""
    digest = edited(world)
    words = ("vault", "--purge", digest[:8], "--yes", "-w", world.project)
    dies_before(Durability, "fsync_directory", 1, lambda: world.run(*words))
    assert not (world.vault / digest[:2] / digest).exists()
    assert digest not in world.run("vault", "-v", "-w", world.project).stdout
    gone = world.run(*words)
    assert "deleted from the vault for good" in gone.stdout, gone.output
    database = sqlite3.connect(world.state / DATABASE)
    assert not database.execute("SELECT 1 FROM version WHERE digest = ?", (digest,)).fetchall()
    database.close()
    assert "No problems found." in world.run("doctor", "-w", world.project).stdout


def test_a_purge_says_where_the_content_still_is(world: World) -> None:
    digest = edited(world)
    world.reconcile("restore", digest[:12])
    gone = world.run("vault", "--purge", digest[:8], "--yes", "-w", world.project)
    assert f"still at: workspace:{FIRST}-it/metadata.json" in gone.stdout


def test_quiet_says_only_where_purged_content_still_is_and_what_a_forgotten_checkout_waited_for(world: World) -> None:
    digest = edited(world)
    world.reconcile("restore", digest[:12])
    gone = world.run("vault", "--purge", digest[:8], "--yes", "-q", "-w", world.project)
    assert gone.exit_code == 0
    assert gone.stdout.splitlines() == [
        f"  this content is still at: {side}:{FIRST}-it/metadata.json" for side in ("store", "workspace")
    ]
    forgotten = world.run("checkouts", "--forget", world.project, "-q", "-w", world.project)
    assert (forgotten.exit_code, forgotten.output) == (0, "")


def test_pruning_takes_what_no_run_has_needed_for_a_while(world: World) -> None:
    digest = edited(world)
    assert "0 versions" in world.run("vault", "--prune", "--older-than", "1d", "-w", world.project).stdout
    assert (world.vault / digest[:2] / digest).exists()
    text = world.run("vault", "--prune", "--older-than", "0h", "--yes", "--json", "-w", world.project).stdout
    assert [each["digest"] for each in json.loads(text)["objects"]] == [digest]
    assert files(world.vault) == []
    for wrong in (["--prune"], ["--older-than", "1d"], ["--prune", "--older-than", "soon"]):
        assert world.run("vault", *wrong, "-w", world.project).exit_code == 2


def test_pruning_leaves_what_is_saved_again_meanwhile(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library saves without the lock of the runs: first the object, which is there, then its version."""
    digest = edited(world)
    saved = world.vault / digest[:2] / digest

    def saved_again(*_: object) -> None:
        Vault(str(world.state)).put_bytes(saved.read_bytes())

    with monkeypatch.context() as library:
        library.setattr(Vault, "unfold", saved_again)  # the first step of a removal
        text = world.run("vault", "--prune", "--older-than", "0h", "--yes", "--json", "-w", world.project).stdout
    assert (json.loads(text)["objects"], saved.exists()) == ([], True)
    assert len(versions(world, runs(world)[0]["id"])) == 1
    with contextlib.closing(sqlite3.connect(world.state / DATABASE)) as database, database:
        database.execute("UPDATE run SET started_ns = 1")
    prune = ("vault", "--prune", "--older-than", "1h", "--yes", "-w", world.project)
    assert "0 versions" in world.run(*prune).stdout
    os.utime(saved, (1, 1))
    assert "1 version " in world.run(*prune).stdout
    assert files(world.vault) == []


def test_a_run_is_undone_in_its_own_checkout(world: World, tmp_path: Path, run: Run) -> None:
    three(world)
    world.reconcile()
    other = make_project(tmp_path / "other", run)
    newest = runs(world)[0]["id"]
    refused = other.run("undo", newest, "-w", other.project).stderr
    assert f"belongs to another checkout: {world.project}" in refused
    assert f"reconcile undo {newest} --workspace {world.project}" in refused
    assert "there is no run to undo here" in other.run("undo", "-w", other.project).stderr
    assert str(world.project) in other.run("log", "-w", other.project).stdout


def test_what_was_done_before_the_workspace_was_wiped_is_undone_as_well(world: World) -> None:
    three(world)
    world.reconcile()
    before = listing(world.store) | listing(world.workspace)
    world.reconcile("rm", str(FIRST), "--yes")
    world.reconcile("local", str(SECOND_ID))
    shutil.rmtree(world.project / ".jp")
    assert world.run("recover", "-w", world.project, "--yes").exit_code == 0
    assert [path.name for path in world.workspace.iterdir()] == [f"{THIRD}-it"]
    _, made_local, removed, _ = (run["id"] for run in runs(world))
    world.reconcile("undo", made_local)
    world.reconcile("undo", removed)
    assert listing(world.store) | listing(world.workspace) == before
    assert "reconcile recover" in world.reconcile("undo").stderr
    refused = world.reconcile("undo", runs(world)[-1]["id"], code=4, settled=False)
    assert f"store:{THIRD}-it: the only copy now" in refused.stdout
    assert "reconcile restore" not in refused.stdout, "nothing was replaced then"


def test_what_nobody_manages_comes_back_with_its_directory_and_stays_then(world: World) -> None:
    three(world, parent=FIRST)
    top = world.workspace / f"{FIRST}-it"
    world.reconcile()
    for name in ("NOTE.md", ".hidden", "events.json.swp", "conversations/NOTE.md", "conversations/sub/README"):
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).write_text(name)
    world.reconcile()
    before = listing(world.workspace)
    world.reconcile("local", str(FIRST))
    assert not top.exists()
    world.reconcile("undo")
    assert listing(world.workspace) == before


def test_what_was_undone_stays_so_also_with_a_hidden_file_in_it(world: World) -> None:
    three(world)
    world.reconcile()
    hidden = world.workspace / f"{FIRST}-it" / ".hidden"
    hidden.write_text("mine")
    shutil.rmtree(world.store / f"{FIRST}-it")
    world.reconcile()
    assert not hidden.exists()
    world.reconcile("undo")
    assert hidden.read_text() == "mine"
    assert said_twice(world) == []
    assert hidden.exists()


def test_what_was_done_in_a_forgotten_checkout_can_still_be_restored(world: World, tmp_path: Path, run: Run) -> None:
    three(world)
    world.reconcile()
    world.reconcile("rm", str(FIRST), "--yes")
    newest = runs(world)[0]["id"]
    other = make_project(tmp_path / "other", run)
    other.run("checkouts", "--forget", world.project, "-w", other.project)
    refused = other.run("undo", newest, "-w", other.project).stderr
    assert f"run {newest} belongs to a checkout or remote that was removed" in refused
    assert "in a checkout or remote that was removed" in other.run("log", "-w", other.project).stdout
    assert f"reconcile restore ID@{newest}" in refused
    restored = other.run("restore", f"{FIRST}@{newest}", "-w", other.project)
    assert restored.exit_code == 0
    assert f"It  jp-c{FIRST}" in restored.stdout, "the title is that of the version, as nothing else knows it"
    assert (other.store / f"{FIRST}-it" / "events.json").exists()


def test_what_lay_beside_a_conversation_stays_in_the_vault_when_it_is_restored(world: World) -> None:
    """It is none of its files: it would get into the store, and from there to whoever has no such directory."""
    three(world)
    world.reconcile()
    beside = world.workspace / f"{FIRST}-it" / ".DS_Store"
    beside.write_bytes(b"somebody's")
    world.reconcile("local", str(FIRST))
    removed = runs(world)[0]["id"]
    world.reconcile("project", str(FIRST))
    append(world.workspace / f"{FIRST}-it", 1, "b", LONG_AGO + SECOND)
    world.reconcile()
    result = world.reconcile("restore", f"{FIRST}@{removed}")
    (digest,) = [each["digest"] for each in versions(world, removed) if each["file"] == ".DS_Store"]
    words = f"workspace:{FIRST}-it/.DS_Store: not a file of the conversation, not restored; "
    assert words + f"print it: reconcile show {digest[:16]}" in result.stdout
    assert [world.event_count(FIRST), beside.exists()] == [3, False]
    assert not (world.store / f"{FIRST}-it" / ".DS_Store").exists()
    for version in (digest, f"{FIRST}@{removed}:conversation"):
        assert (
            ".DS_Store: not a file of the conversation, so it can't be restored"
            in world.reconcile("restore", version, code=2).stderr
        )


def test_a_conversation_that_was_removed_with_an_unsaved_edit_comes_back_with_it(world: World) -> None:
    """Its sides had two versions: the newest comes back, and from then on either can be named."""
    three(world)
    world.reconcile()
    append(world.workspace / f"{FIRST}-it", 1, "b", LONG_AGO + SECOND)
    world.reconcile("rm", str(FIRST), "--yes")
    removed = runs(world)[0]["id"]
    result = world.reconcile("restore", f"{FIRST}@{removed}")
    assert world.event_count(FIRST) == 4
    found = {(each["file"], each["place"].partition(":")[0]): each["digest"] for each in versions(world, removed)}
    older = found["events.json", "store"]
    words = f"store:{FIRST}-it/events.json: the vault has another version from that run; "
    assert words + f"take it instead: reconcile restore {older[:16]}" in result.stdout
    assert [each for each in found if each[0] == "metadata.json" and found[each][:16] in result.stdout] == []
    world.reconcile("restore", older[:16])
    assert world.event_count(FIRST) == 3
    world.reconcile("restore", found["base_config.json", "store"] + "+" + found["events.json", "workspace"])
    assert world.event_count(FIRST) == 4


def test_of_two_versions_the_one_that_can_be_read_comes_back(world: World) -> None:
    three(world)
    world.reconcile()
    metadata = world.workspace / f"{FIRST}-it" / "metadata.json"
    metadata.write_bytes(b"<<<<<<< ours")
    world.reconcile("rm", str(FIRST), "--yes")
    result = world.reconcile("restore", f"{FIRST}@{runs(world)[0]['id']}")
    digest = hashlib.blake2b(b"<<<<<<< ours", digest_size=32).hexdigest()
    assert f"print it: reconcile show --raw {digest[:16]}" in result.stdout
    assert (world.store / f"{FIRST}-it" / "metadata.json").read_bytes().startswith(b"{")


def test_an_undo_that_was_saved_refuses_what_was_written_meanwhile(world: World, tmp_path: Path) -> None:
    three(world)
    world.reconcile()
    saved = tmp_path / "undo.json"
    world.reconcile("undo", "--out", saved, settled=False)
    append(world.store / f"{SECOND_ID}-it", 1, "b", LONG_AGO + SECOND)
    before = listing(world.store / f"{SECOND_ID}-it")
    result = world.reconcile("apply", saved, code=4, settled=False)
    assert "2 removed from the store, 1 skipped" in result.stdout
    assert listing(world.store / f"{SECOND_ID}-it") == before
    assert [path.name for path in world.store.iterdir()] == [f"{SECOND_ID}-it"]


def test_what_is_left_of_a_run_is_undone_next(world: World) -> None:
    """A part by --only, a part that was written since: `undo` stays with the run, and `log` says how far it is."""
    three(world)
    world.reconcile()
    for number in (FIRST, SECOND_ID, THIRD):
        append(world.workspace / f"{number}-it", 1, "b", LONG_AGO + SECOND)
    world.reconcile()
    run = runs(world)[0]["id"]

    def said() -> str:
        lines = world.reconcile("log", settled=False).stdout.splitlines()
        return next(line for line in lines if line.startswith(run))

    assert "undone" not in said()
    world.reconcile("undo", "--only", str(FIRST))
    first = runs(world)[0]["id"]
    assert f"(undone in part by {first})" in said()
    set_key(world.store / f"{SECOND_ID}-it", "user", "me", LONG_AGO + 2 * SECOND)
    append(world.store / f"{THIRD}-it", 1, "c", LONG_AGO + 2 * SECOND)
    result = world.reconcile("undo", code=4, settled=False)
    assert f"undo of {run}" in result.stderr
    assert "1 updated in the store; 1 blocked" in result.stdout
    second = runs(world)[0]["id"]
    assert f"(undone in part by {first} and {second})" in said()
    listed = world.reconcile("log", settled=False).stdout
    assert [f"(undid in part {run})" in line for line in listed.splitlines()] == [True, True, False, False]
    again = world.reconcile("undo", code=4, settled=False)
    assert f"undo of {run}" in again.stderr
    assert runs(world)[0]["id"] == second, "nothing was done, so there was no run"


@pytest.mark.parametrize("step", range(4, 60, 9))
def test_an_undo_that_was_killed_has_undone_only_what_it_has_done(world: World, step: int) -> None:
    """Wherever that was: what is not back in the workspace is still local, and `undo` goes on with the same run."""
    three(world)
    world.reconcile()
    before = listing(world.workspace)
    world.reconcile("local", str(FIRST), str(SECOND_ID))
    made_local = runs(world)[0]["id"]
    dies_at(step, lambda: world.run("undo", "-w", world.project))
    world.reconcile()
    back = {path.name.partition("-")[0] for path in world.workspace.iterdir()}
    found = json.loads(world.run("status", "--json", "-w", world.project).stdout)
    states = {each["conversation"]: each["word"] for each in found["conversations"]}
    assert {states[f"jp-c{each}"] for each in (FIRST, SECOND_ID) if str(each) not in back} <= {"local"}
    if listing(world.workspace) != before:
        assert f"undo of {made_local}" in world.reconcile("undo").stderr
    assert listing(world.workspace) == before


def test_a_damaged_version_stops_its_conversation_alone(world: World) -> None:
    three(world)
    set_key(world.workspace / f"{FIRST}-it", "user", "somebody", LONG_AGO)
    world.reconcile()
    for number in (FIRST, SECOND_ID):
        set_key(world.workspace / f"{number}-it", "user", "me", LONG_AGO + SECOND)
    world.reconcile()
    digest = next(
        each["digest"] for each in versions(world, runs(world)[0]["id"]) if str(FIRST) in each["conversation"]
    )
    path = world.vault / digest[:2] / digest
    path.chmod(0o600)
    path.write_bytes(b"flipped" + path.read_bytes())
    result = world.reconcile("undo", code=1, settled=False)
    assert "damaged (its content has the hash" in result.stdout
    assert "1 updated in the store, 1 failed" in result.stdout
    assert digest[:16] in world.run("show", digest[:8], "-w", world.project).stderr


def test_an_edit_that_nothing_has_saved_when_something_else_is_undone_is_in_the_vault(world: World) -> None:
    """It is set aside with what was undone, and would be gone with the workspace."""
    three(world)
    world.reconcile()
    append(world.workspace / f"{FIRST}-it", 1, "b", LONG_AGO + SECOND)
    world.reconcile()
    set_key(world.workspace / f"{FIRST}-it", "user", "me", LONG_AGO + SECOND)
    edited_since = (world.workspace / f"{FIRST}-it" / "metadata.json").read_bytes()
    world.reconcile("undo", settled=False)
    assert "1 left alone" in world.reconcile().stdout
    assert edited_since in [path.read_bytes() for path in world.vault.rglob("*") if path.is_file()]


def test_events_are_spelled_as_on_the_screen(world: World) -> None:
    """The older spelling stays, JSON has it, and a file with that name is another one."""
    three(world)
    (world.workspace / f"{FIRST}-it" / "events").write_text("a note")
    world.reconcile()
    before = (world.store / f"{FIRST}-it" / "events.json").read_bytes()
    append(world.workspace / f"{FIRST}-it", 1, "b", LONG_AGO + SECOND)
    (world.workspace / f"{FIRST}-it" / "events").write_text("another")
    world.reconcile()
    run = runs(world)[0]["id"]
    name = f"jp-c{FIRST}@{run}"
    for words in (("log", run), ("vault", "-v")):
        text = world.reconcile(*words, settled=False).stdout
        assert f"{name}:events " in text
        assert f"{name}:extra:events " in text
        assert ":stream" not in text
    for spelling in ("events", "stream"):
        world.reconcile("restore", f"{name}:{spelling}")
        assert (world.store / f"{FIRST}-it" / "events.json").read_bytes() == before
        assert (world.workspace / f"{FIRST}-it" / "events").read_text() == "another"
        world.reconcile("undo")
    world.reconcile("restore", f"{name}:extra:events")
    assert (world.store / f"{FIRST}-it" / "events").read_text() == "a note"


@pytest.mark.parametrize("version", ["x@y", f"{FIRST}@zzz", "0000", f"{FIRST}@{{run}}:stream", "@{run}"])
def test_a_version_that_is_none_is_told(world: World, version: str) -> None:
    edited(world)
    before = (world.state / DATABASE).read_bytes()
    result = world.run("restore", version.format(run=runs(world)[0]["id"]), "-n", "-w", world.project)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert (world.state / DATABASE).read_bytes() == before


@pytest.mark.parametrize(
    ("argv", "called"),
    [
        ([], "reconcile"),
        (["--layout", "flat", "--json", "-w", "{project}"], "reconcile --layout flat"),
        (["rm", "{first}", "--cascade", "-y", "-w", "{project}"], "reconcile rm {first} --cascade --yes"),
        (
            ["resolve", "{first}", "--take", "store", "--only", "{first}"],
            "reconcile resolve {first} --take store --only {first}",
        ),
        (
            ["fork", "{first}", "--last", "0", "--title", "a secret of mine"],
            "reconcile fork {first} --last 0 --title ...",
        ),
        (["set-parent", "{first}", "--none"], "reconcile set-parent {first} --none"),
        (["local", "{first}", "{second}"], "reconcile local {first} {second}"),
    ],
)
def test_the_log_says_what_was_asked_for(world: World, argv: list[str], called: str) -> None:
    """Not where, and not how it was shown; and no content, which a title is."""
    three(world)
    if argv[:1] not in ([], ["--layout"]):
        world.reconcile()
    if argv[:1] == ["set-parent"]:
        world.reconcile("set-parent", str(FIRST), str(SECOND_ID))
    if argv[:1] == ["resolve"]:
        append(world.workspace / f"{FIRST}-it", 1, "b", LONG_AGO + SECOND)
    named = {"first": f"jp-c{FIRST}", "second": f"jp-c{SECOND_ID}", "project": world.project}
    world.reconcile(*(each.format(**named) for each in argv))
    assert runs(world)[0]["command"] == called.format(**named)


def said_twice(world: World) -> list[str]:
    """Undo has left a conversation alone; return the commands that print so more than once, or not at all."""
    commands = {"": world.reconcile(), "status": world.reconcile("status", settled=False)}
    commands["one"] = world.reconcile("status", str(FIRST), settled=False)
    texts = {name: result.stdout.partition("conversations:")[0] for name, result in commands.items()}
    texts[""] = texts[""].partition("\n\nNext:")[0].rpartition("\n\n")[0]  # the summary counts them
    texts["one"] = texts["one"].partition("  intent")[0]
    return [name for name, text in texts.items() if (text.count("left alone"), text.count(" undid")) != (1, 1)]


def two_edits(world: World) -> tuple[str, str]:
    """Sync two edits, each in a run of its own; return the newest run and the one before."""
    three(world)
    world.reconcile()
    for number in (FIRST, SECOND_ID):
        append(world.workspace / f"{number}-it", 1, "b", LONG_AGO + SECOND)
        world.reconcile()
    second, first, _ = (run["id"] for run in runs(world))
    return second, first


def test_undo_says_what_it_undoes_and_never_an_older_run_unasked(world: World) -> None:
    second, first = two_edits(world)
    after = listing(world.workspace)
    said = world.reconcile("undo").stderr
    assert said.startswith(f"undo of {second}, 2")
    assert said.endswith(": reconcile (1 updated in the store)\n")
    before = listing(world.workspace)
    undone = runs(world)[0]["id"]
    for words in ((), ("-n",), ("--json",)):
        twice = world.run("undo", *words, "-w", world.project)
        assert (twice.exit_code, listing(world.workspace)) == (4, before)
        assert f"the last run, {undone}, is an undo of {second}" in twice.stderr
        assert "reconcile redo" in twice.stderr
        sides = "" if "--json" in words else f" --workspace {world.project}"
        assert f"reconcile undo {first}{sides}, or reconcile undo --yes{sides}" in twice.stderr
    world.reconcile("undo", undone)
    assert listing(world.workspace) == after, "an undo of an undo is a redo"
    redone = runs(world)[0]["id"]
    assert f"undo of {redone}" in world.reconcile("undo").stderr, "and the redo comes first"
    assert listing(world.workspace) == before
    world.reconcile("undo", first)


def test_a_second_undo_goes_further_back_only_after_a_yes(world: World) -> None:
    second, first = two_edits(world)
    world.reconcile("undo")
    undone = runs(world)[0]["id"]
    before = listing(world.store)
    code, shown = at_terminal("-w", world.project, "undo", answers="n\n")
    assert (code, listing(world.store)) == (4, before), shown
    shown = " ".join(shown.split())
    assert "the run before it" not in shown
    assert f"run {second} is already undone, by {undone}; this undo reaches further back, to run {first}" in shown
    assert f"to redo {second}: reconcile redo" in shown
    assert f"undo of {first}" in shown
    said = world.reconcile("undo", "--yes").stderr
    assert f"this undo reaches further back, to run {first}" in said
    assert f"undo of {first}" in said
    assert world.event_count(FIRST) == 3


def test_an_undo_that_is_blocked_names_the_run_before_it(world: World) -> None:
    second, first = two_edits(world)
    append(world.store / f"{SECOND_ID}-it", 1, "z", LONG_AGO + 9 * SECOND)
    blocked = world.reconcile("undo", code=4, settled=False)
    assert f"undo of {second}" in blocked.stderr
    assert f"to undo the earlier run instead: reconcile undo {first}" in blocked.stderr
    assert "the run before it" not in world.reconcile("undo", second, code=4, settled=False).stderr, "it is named"


def test_a_redo_that_goes_further_back_says_so(world: World) -> None:
    """Before it acts, and also after another run."""
    _, first = two_edits(world)
    world.reconcile("undo", first)
    undone = runs(world)[0]["id"]
    set_key(world.workspace / f"{SECOND_ID}-it", "user", "me", LONG_AGO + SECOND)
    world.reconcile()
    last, before = runs(world)[0]["id"], listing(world.store)
    code, shown = at_terminal("-w", world.project, "redo", answers="n\n")
    assert (code, listing(world.store)) == (4, before), shown
    words = f"the last run, {last}, is no undo; this redo reaches further back, to an older undo, {undone}"
    assert f"{words} redo of {first}" in " ".join(shown.split())
    for refused in ((), ("-n",), ("--json",)):
        unasked = world.run("redo", *refused, "-w", world.project)
        assert (unasked.exit_code, listing(world.store)) == (4, before)
        assert f"the last run, {last}, is no undo" in unasked.stderr
        sides = "" if "--json" in refused else f" --workspace {world.project}"
        assert f"reconcile redo {undone}{sides}, or reconcile redo --yes{sides}" in unasked.stderr
    assert words in world.reconcile("redo", "-n", "--yes", settled=False).stderr
    assert words not in world.reconcile("redo", first).stderr, "it is named"


def test_the_newest_runs_are_listed_as_git_does(world: World) -> None:
    newest, older = two_edits(world)
    for words in (("-n", "2"), ("-n2",), ("--last", "2"), ("-v", "-n", "2")):
        text = world.reconcile("log", *words, settled=False).stdout
        assert [line.split()[0] for line in text.splitlines()] == [newest, older], words
    listed = json.loads(world.run("log", "--json", "-n", "1", "-w", world.project).stdout)["runs"]
    assert [run["id"] for run in listed] == [newest]
    assert "choose one: a run, or -n" in world.reconcile("log", newest, "-n", "1", code=2, settled=False).stderr
    assert "--dry-run can't be used here" in world.reconcile("log", "--dry-run", code=2, settled=False).stderr


def test_the_redo_that_is_named_next_works_without_a_terminal(world: World) -> None:
    two_edits(world)
    world.reconcile("undo", settled=False)
    assert "  reconcile redo --" in world.reconcile("status", settled=False).stdout
    append(world.workspace / f"{THIRD}-it", 1, "b", LONG_AGO + SECOND)
    for standing in (world.reconcile(settled=False).stdout, world.reconcile("status", settled=False).stdout):
        (undone,) = [line.split()[2] for line in standing.splitlines() if line.startswith("  reconcile redo")]
    assert "1 updated in the store" in world.reconcile("redo", undone).stdout


def test_redo_repeats_what_was_undone_the_last_first(world: World) -> None:
    three(world)
    assert "there is nothing to redo: no run here was undone" in world.reconcile("redo", code=2, settled=False).stderr
    world.reconcile()
    states = [listing(world.store)]
    for number in (FIRST, SECOND_ID):
        append(world.workspace / f"{number}-it", 1, "b", LONG_AGO + SECOND)
        world.reconcile()
        states.append(listing(world.store))
    second, first, _ = (run["id"] for run in runs(world))
    newest = runs(world)[0]["id"]
    assert world.reconcile("redo", code=2).stderr.splitlines() == [
        f"error: there is nothing to redo: the last run, {newest}, is not undone",
        f"hint: undo it: reconcile undo --workspace {world.project}",
    ]
    assert f"run {first} isn't undone" in world.reconcile("redo", first, code=2).stderr
    assert "redo with: reconcile redo" in world.reconcile("undo").stdout
    world.reconcile("undo", first)
    undone_first, undone_second, *_ = (run["id"] for run in runs(world))
    assert "redo of a run" in world.reconcile("redo", "-n", settled=False).stdout
    planned = world.plan("redo")
    assert {action["reason"] for action in planned["actions"]} == {"repeated"}
    assert (planned["policy"]["request"], len(planned["actions"])) == ({"command": "undo", "run": undone_first}, 1)
    for index, run in ((1, first), (2, second)):
        redone = world.reconcile("redo", *(["--yes"] if index == 2 else []))
        assert f"redo of {run}, 2" in redone.stderr
        assert ("is a redo of" in redone.stderr) == (index == 2), "the second one goes further back"
        assert "undo with: reconcile undo" in redone.stdout
        assert listing(world.store) == states[index]
    newest = runs(world)[0]["id"]
    refused = world.reconcile("redo", code=2).stderr
    assert f"there is nothing to redo: the last run, {newest}, is a redo of {second}" in refused
    assert "hint: undo it: reconcile undo" in refused
    assert {action["reason"] for action in world.plan("undo")["actions"]} == {"taken-back"}, "the undo of a redo"
    redoes = [run["id"] for run in runs(world)[:2]]
    assert [run["redoes"] for run in runs(world)] == [second, first, None, None, None, None, None]
    lines = {line.split()[0]: line for line in world.reconcile("log", settled=False).stdout.splitlines()}
    assert lines[redoes[0]].endswith(f"(redid {second})")
    assert lines[undone_second].endswith(f"(redone by {redoes[0]}; undid {second})")
    assert lines[second].endswith(f"(redone by {redoes[0]})")
    assert f"undo of {redoes[0]}" in world.reconcile("undo").stderr, "what was redone can be undone again"
    assert world.event_count(SECOND_ID) == 3
    undo_of_redo = runs(world)[0]["id"]
    assert f"(undone by {undo_of_redo}; redid {second})" in world.reconcile("log", settled=False).stdout
    world.reconcile("redo", second)
    assert listing(world.store) == states[2]


def test_undo_after_a_redo_takes_the_redo_back_and_not_a_later_run(world: World) -> None:
    three(world)
    world.reconcile()
    append(world.workspace / f"{FIRST}-it", 1, "b", LONG_AGO + SECOND)
    world.reconcile()
    world.reconcile("undo")
    append(world.workspace / f"{SECOND_ID}-it", 1, "b", LONG_AGO + SECOND)
    world.reconcile()
    edit = runs(world)[0]["id"]
    before = listing(world.store)
    world.reconcile("redo", "--yes")
    redone = runs(world)[0]["id"]
    assert f"undo of {redone}" in world.reconcile("undo").stderr
    assert listing(world.store) == before, "the later edit stays"
    further = world.reconcile("undo", code=4).stderr
    assert f"is an undo of {redone}" in further, "the later edit is older than the redo"
    assert f"reconcile undo {edit}" in further
    world.reconcile("redo")
    assert f"undo of {runs(world)[0]['id']}" in world.reconcile("undo").stderr


def test_redo_refuses_what_was_changed_since(world: World) -> None:
    """Conversation by conversation, by hand or by a later run; the rest is redone."""
    three(world)
    world.reconcile()
    for number in (FIRST, SECOND_ID, THIRD):
        append(world.workspace / f"{number}-it", 1, "b", LONG_AGO + SECOND)
    world.reconcile()
    world.reconcile("undo")
    set_key(world.workspace / f"{FIRST}-it", "user", "me", LONG_AGO + 2 * SECOND)
    append(world.store / f"{SECOND_ID}-it", 1, "c", LONG_AGO + 2 * SECOND)
    world.reconcile("--only", str(FIRST), settled=False)
    changer = runs(world)[0]["id"]
    result = world.reconcile("redo", "--yes", code=4, settled=False)
    assert f"run {changer} changed it since" in result.stdout
    assert "since then: " in result.stdout
    assert [world.event_count(number) for number in (FIRST, SECOND_ID, THIRD)] == [3, 4, 4]
    again = world.reconcile("redo", "--yes", code=4, settled=False)
    assert "2 blocked" in again.stdout


def test_at_a_terminal_redo_asks(world: World) -> None:
    three(world)
    world.reconcile()
    world.reconcile("local", str(FIRST))
    after = listing(world.workspace)
    world.reconcile("undo")
    code, shown = at_terminal("-w", world.project, "redo", answers="n\n")
    assert (code, "Redo this run?" in shown, listing(world.workspace) == after) == (4, True, False), shown
    code, shown = at_terminal("-w", world.project, "redo", answers="y\n")
    assert (code, listing(world.workspace) == after) == (0, True), shown


def test_a_cascade_that_was_asked_for_is_undone_without_a_word_more(world: World) -> None:
    three(world, parent=FIRST)
    for number in (THIRD + 1, THIRD + 2):
        write_conversation(world.workspace / f"{number}-it", "It", events(3), parent=FIRST)
    world.reconcile()
    before = listing(world.store) | listing(world.workspace)
    world.reconcile("rm", str(FIRST), "--cascade", "-y")
    world.reconcile("undo")
    assert listing(world.store) | listing(world.workspace) == before


def test_an_undo_of_a_part_is_asked_about_as_that(world: World) -> None:
    three(world)
    world.reconcile()
    append(world.store / f"{SECOND_ID}-it", 1, "b", LONG_AGO + SECOND)
    code, shown = at_terminal("-w", world.project, "undo", answers="n\n")
    assert (code, "since then: " in shown) == (4, True), shown
    assert "Undo this run, except the 1 blocked conversation?" in shown
    assert len(runs(world)) == 1


def test_the_undo_of_a_recovery_of_everything_needs_no_consent(world: World) -> None:
    three(world)
    write_conversation(world.workspace / f"{THIRD + 1}-it", "It", events(3))
    world.reconcile()
    shutil.rmtree(world.workspace)
    world.reconcile("recover", "--yes")
    assert len(list(world.workspace.iterdir())) == 4
    world.reconcile("undo", settled=False)
    assert not world.workspace.exists() or not list(world.workspace.iterdir())
    assert "4 restored in the workspace" in world.reconcile("redo").stdout


def test_at_a_terminal_undo_asks(world: World) -> None:
    three(world)
    world.reconcile()
    before = listing(world.workspace)
    world.reconcile("local", str(FIRST))
    code, shown = at_terminal("-w", world.project, "undo", answers="n\n")
    assert (code, "Undo this run?" in shown, listing(world.workspace) == before) == (4, True, False), shown
    code, shown = at_terminal("-w", world.project, "undo", answers="\x04")
    assert (code, "Cancelled, nothing changed." in shown) == (4, True), "the end of the input is a no"
    code, shown = at_terminal("-w", world.project, "undo", answers="y\n")
    assert (code, listing(world.workspace) == before) == (0, True), shown


def test_a_restore_without_a_run_lists_the_versions(world: World) -> None:
    """The newest first, each with its command; an id, its beginning and a title name the conversation."""
    edited(world)
    append(world.workspace / f"{FIRST}-it", 1, "b", LONG_AGO + 2 * SECOND)
    set_key(world.workspace / f"{FIRST}-it", "title", "Of colours", LONG_AGO + 2 * SECOND)
    world.reconcile()
    newest, older, _ = (run["id"] for run in runs(world))
    for text in (f"jp-c{FIRST}", str(FIRST), "Of colours", "colours", f"{FIRST}@"):
        refused = world.run("restore", text, "-w", world.project)
        first, *hints = refused.stderr.splitlines()
        assert (refused.exit_code, refused.stdout) == (2, ""), text
        assert first == f"error: jp-c{FIRST}: choose one of 2 saved versions; the newest is first"
        assert [hint.partition("  (before 2")[0] for hint in hints] == [
            f"hint: reconcile restore jp-c{FIRST}@{run} --workspace {world.project}" for run in (newest, older)
        ]
        assert hints[0].endswith(": metadata, events)")
    for text in (f"{SECOND_ID}", f"jp-c{SECOND_ID}"):
        assert world.run("restore", text, "-w", world.project).stderr.splitlines() == [
            f"error: the vault has no version of jp-c{SECOND_ID}",
            "hint: no version of it was replaced or removed, so nothing can be restored",
        ]
    assert "the vault has no version" in world.run("restore", "no such", "-w", world.project).stderr


def test_a_restore_without_a_run_asks_only_about_contents_that_differ(world: World) -> None:
    """Several runs may have saved the same: after a removal, its undo and another removal, say."""
    three(world)
    world.reconcile()
    for _ in range(2):
        world.reconcile("rm", str(FIRST), "--yes")
        world.reconcile("undo")
    world.reconcile("rm", str(FIRST), "--yes")
    world.reconcile("restore", str(FIRST))
    (directory,) = world.store.glob(f"{FIRST}-*")
    append(directory, 1, "b", LONG_AGO + 2 * SECOND)
    world.reconcile()
    world.reconcile("rm", str(FIRST), "--yes")
    first, *hints = world.run("restore", str(FIRST), "-w", world.project).stderr.splitlines()
    assert (first, len(hints)) == (f"error: jp-c{FIRST}: choose one of 2 saved versions; the newest is first", 2)
    world.reconcile("restore", f"jp-c{FIRST}@{runs(world)[0]['id']}")
    (directory,) = world.store.glob(f"{FIRST}-*")
    assert len(json.loads((directory / "events.json").read_text())) == 4


def test_a_version_may_be_named_by_a_title(world: World) -> None:
    """The present one, or that of the version: of a removed conversation, nothing else has a title."""
    three(world)
    set_key(world.workspace / f"{FIRST}-it", "title", "All colours", LONG_AGO)
    set_key(world.workspace / f"{SECOND_ID}-it", "title", "All sounds", LONG_AGO)
    world.reconcile()
    world.reconcile("rm", str(FIRST), str(SECOND_ID), "--cascade", "--yes")
    run = runs(world)[0]["id"]
    ambiguous = world.run("restore", f"all@{run}", "-w", world.project)
    assert ambiguous.exit_code == 2
    assert f"jp-c{FIRST}  All colours" in ambiguous.stderr
    world.reconcile("restore", f"COLOURS@{run}")
    assert [path.name for path in world.store.iterdir() if path.name.startswith(str(FIRST))]
    set_key(next(world.store.glob(f"{FIRST}*")), "title", "Renamed", LONG_AGO + SECOND)
    world.reconcile()
    (changed,) = {each["id"] for each in runs(world)[:1]}
    assert "jp-c" in world.reconcile("restore", f"all colours@{run}:metadata", settled=False).stdout
    assert "no version" in world.run("restore", f"of clouds@{changed}", "-w", world.project).stderr


@pytest.mark.parametrize("synced", [False, True])
def test_the_restore_of_an_older_title_renames_at_once_and_is_undone_by_name(world: World, synced: bool) -> None:
    """A run after it finds nothing to do, so that nothing builds on the restore."""
    three(world)
    world.reconcile()
    set_key(world.workspace / f"{FIRST}-it", "title", "Another name", LONG_AGO + SECOND)
    world.reconcile()
    retitling = json.loads(world.run("log", "--json", "-w", world.project).stdout)["runs"][0]["id"]
    world.reconcile("restore", f"jp-c{FIRST}@{retitling}")
    for side in (world.store, world.workspace):
        assert (side / f"{FIRST}-it").is_dir()
    restored = json.loads(world.run("log", "--json", "-w", world.project).stdout)["runs"][0]["id"]
    if synced:
        assert "Nothing to do" in world.reconcile().stdout
    world.reconcile("undo", restored)
    for side in (world.store, world.workspace):
        (directory,) = side.glob(f"{FIRST}-*")
        assert directory.name == f"{FIRST}-another-name"
        assert json.loads((directory / "metadata.json").read_bytes())["title"] == "Another name"
    world.reconcile("redo")
    assert (world.store / f"{FIRST}-it").is_dir()


@pytest.mark.parametrize("repeated", ["project", "local"])
def test_an_undo_skips_a_run_that_repeated_a_request_and_changed_nothing(world: World, repeated: str) -> None:
    """The same request a second time changes no record either."""
    side = world.store if repeated == "project" else world.workspace
    write_conversation(side / f"{FIRST}-it", "It", events(3))
    if repeated != "project":
        world.reconcile()
    before = listing(world.workspace)
    world.reconcile(repeated, str(FIRST))
    changed = listing(world.workspace)
    world.reconcile(repeated, str(FIRST))
    assert "Nothing to do." in world.reconcile(repeated, str(FIRST)).stdout
    assert changed != before
    world.reconcile("undo")
    assert listing(world.workspace) == before
    world.reconcile("redo")
    assert listing(world.workspace) == changed


def test_status_of_a_removed_and_restored_one_says_that_it_was_here(world: World) -> None:
    three(world)
    world.reconcile()
    world.reconcile("rm", str(FIRST), "--yes")
    removal = runs(world)[0]["id"]
    restored = world.reconcile("restore", f"{FIRST}@{removal}").stdout
    assert f"Next:\n  reconcile project jp-c{FIRST}" in restored
    text = world.reconcile("status", str(FIRST)).stdout
    assert f"removed here by run {removal}" in text
    assert "never" not in text
    assert json.loads(world.reconcile("status", str(FIRST), "--json").stdout)["removed_by"] == removal
    write_conversation(world.store / "17500000009-it", "It", events(3))
    assert "never published here" in world.reconcile("status", "17500000009").stdout


@pytest.fixture
def undone_fork(world: World) -> World:
    """A conversation that both sides continued; the run that made a fork of it is undone."""
    three(world)
    world.reconcile()
    append(world.store / f"{FIRST}-it", 2, "b", LONG_AGO + 2 * SECOND)
    append(world.workspace / f"{FIRST}-it", 1, "c", LONG_AGO + SECOND)
    world.reconcile()
    world.reconcile("undo")
    return world


def test_titles_of_what_is_on_no_side_are_those_of_the_saved_versions(undone_fork: World) -> None:
    world = undone_fork
    redone = world.reconcile("redo", settled=False).stdout
    assert "fork" in redone or "[diverged] It" in redone
    assert "(no title)" not in redone
    world.reconcile("rm", str(THIRD), "--yes", settled=False)
    listed = world.run("vault", "-w", world.project).stdout.splitlines()
    (line,) = [line for line in listed if f"jp-c{THIRD}" in line and "metadata.json" in line]
    assert line.endswith("metadata.json  It")


def test_after_the_undo_of_a_conflict_status_names_the_ways_on_as_a_run_does(undone_fork: World) -> None:
    world = undone_fork
    standing = world.reconcile("status").stdout
    assert "you undid its last change" in standing
    assert "Nothing to do." not in standing
    for side in ("store", "workspace"):
        assert f"reconcile resolve jp-c{FIRST} --take {side}" in standing
    shown = world.reconcile().stdout
    for version in ("store", "workspace", "both"):
        assert f"reconcile resolve jp-c{FIRST} --take {version}" in shown
    assert "1 fork created" in world.reconcile("resolve", str(FIRST), "--take", "both").stdout


def test_after_the_undo_of_an_edit_only_one_version_can_be_chosen(world: World) -> None:
    three(world)
    world.reconcile()
    append(world.workspace / f"{FIRST}-it", 1, "b", LONG_AGO + SECOND)
    world.reconcile()
    world.reconcile("undo")
    standing = world.reconcile().stdout
    assert f"reconcile resolve jp-c{FIRST} --take workspace" in standing
    assert "--take both" not in standing


def test_after_the_undo_of_the_first_run_each_report_names_what_ends_it_for_all(world: World) -> None:
    three(world)
    world.reconcile()
    first = runs(world)[0]["id"]
    world.reconcile("undo")
    for args in ((), ("--dry-run",), ("status",)):
        next_ = world.reconcile(*args).stdout.partition("\nNext:\n")[2].splitlines()
        assert [line.strip().removesuffix(f" --workspace {world.project}") for line in next_] == [
            "reconcile redo",
            f"repeats the run {first}, which was undone (3)",
            "reconcile resolve --all --take workspace",
            "or takes the workspace's version of all of them",
        ]
    refused = world.reconcile("undo", code=2).stderr.splitlines()
    assert refused[0] == "error: every run here is undone already"
    assert "reconcile redo" in refused[1]
    before = listing(world.store)
    assert not before
    world.reconcile("resolve", "--all", "--take", "workspace")
    assert listing(world.store)


def test_several_undone_changes_beside_another_one_have_no_command_for_all(world: World) -> None:
    three(world)
    world.reconcile()
    for number in (FIRST, SECOND_ID):
        append(world.workspace / f"{number}-it", 1, "b", LONG_AGO + SECOND)
    world.reconcile()
    world.reconcile("undo")
    (world.workspace / f"{THIRD}-it" / "metadata.json").write_text("{")
    next_ = world.reconcile(code=4).stdout.partition("\nNext:\n")[2]
    assert "reconcile redo" in next_
    assert "--all" not in next_


def test_at_a_terminal_the_undo_of_a_recovery_asks_once(world: World) -> None:
    three(world)
    for number in (THIRD + 1, THIRD + 2):
        write_conversation(world.workspace / f"{number}-it", "It", events(3))
    world.reconcile()
    shutil.rmtree(world.workspace)
    world.run("recover", "-w", world.project, "--yes")
    code, shown = at_terminal("-w", world.project, "undo", answers="y\n")
    assert (code, shown.count("?"), listing(world.workspace)) == (0, 1, {}), shown


def test_recover_names_what_decides_an_undone_conflict(world: World) -> None:
    """Not `project --behind`, nor a run: both leave alone what was undone."""
    three(world)
    world.reconcile()
    for side, at in ((world.store, 2), (world.workspace, 1)):
        append(side / f"{FIRST}-it", 2, str(at), LONG_AGO + at * SECOND)
    assert "newer in the store" not in world.run("recover", "--dry-run", "-w", world.project).output
    world.reconcile()
    world.reconcile("undo", "--yes", settled=False)
    told = world.run("recover", "--dry-run", "-w", world.project).output
    assert f"jp-c{FIRST}" in told
    assert f"choose a version: reconcile resolve jp-c{FIRST} --take store" in told
    assert "--behind" not in told
    assert "a run updates" not in told


def test_an_older_run_can_be_undone_after_a_recovery(world: World) -> None:
    three(world)
    world.reconcile()
    before = listing(world.workspace)
    append(world.store / f"{FIRST}-it", 2, "b", LONG_AGO + SECOND)
    world.reconcile()
    older = runs(world)[0]["id"]
    shutil.rmtree(world.project / ".jp")
    world.run("recover", "-w", world.project, "--yes")
    recovery = runs(world)[0]["id"]
    world.reconcile("undo", settled=False)
    refused = world.reconcile("undo", older, code=4, settled=False).stdout
    redo = f"reconcile redo {recovery} --workspace {world.project}"
    assert f"redo that recovery first: {redo}, then undo this run" in " ".join(refused.split())
    world.reconcile("redo", recovery)
    world.reconcile("undo", older)
    assert listing(world.workspace) == before


def test_undo_passes_over_a_run_that_only_noted_an_absence(world: World) -> None:
    three(world)
    world.reconcile()
    append(world.store / f"{FIRST}-it", 2, "b", LONG_AGO + SECOND)
    world.reconcile()
    changed = runs(world)[0]["id"]
    shutil.rmtree(world.workspace / f"{THIRD}-it")
    world.reconcile(settled=False)
    noted = runs(world)[0]["id"]
    assert noted != changed
    assert f"undo of {changed}" in world.reconcile("undo", settled=False).stderr
    assert f"redo of {changed}" in world.reconcile("redo", settled=False).stderr
    assert f"undo of {noted}" in world.reconcile("undo", noted, settled=False).stderr


def test_a_later_run_of_another_checkout_is_named_with_the_command_that_undoes_it(
    world: World, tmp_path: Path, run: Run
) -> None:
    three(world)
    world.reconcile()
    other = make_project(tmp_path / "an other", run)
    three(other)
    other.reconcile()
    set_key(world.workspace / f"{FIRST}-it", "colour", "green", LONG_AGO + SECOND)
    world.reconcile()
    other.reconcile()
    set_key(other.workspace / f"{FIRST}-it", "colour", "red", LONG_AGO + 2 * SECOND)
    other.reconcile()
    (older, *_) = [run["id"] for run in json.loads(world.run("log", "--json", "-w", world.project).stdout)["runs"]][2:]
    refused = " ".join(world.reconcile("undo", older, code=4, settled=False).stdout.split())
    command = re.search(r"undo that first: reconcile (undo \S+ --workspace '.*?')", refused)
    assert command is not None, refused
    assert world.run(*shlex.split(command[1])).exit_code == 0
    assert world.reconcile("undo", older, settled=False).exit_code == 0


def test_an_undo_in_the_workspace_of_another_checkout_is_no_obstacle(world: World, tmp_path: Path, run: Run) -> None:
    three(world)
    world.reconcile()
    other = make_project(tmp_path / "other", run)
    three(other)
    other.reconcile()
    write_conversation(world.store / "17500000009-it", "It", events(3))
    for each in (world, other):
        each.reconcile("project", "17500000009")
    world.reconcile("undo")
    world.reconcile("redo")
    world.reconcile("undo")
    assert "1 removed from the workspace" in other.reconcile("undo").stdout
    assert not list(other.workspace.glob("17500000009-*"))
    assert list(world.store.glob("17500000009-*"))


@pytest.fixture
def undone_winner(world: World) -> World:
    """A conversation that both sides continued; the run that took the workspace's version is undone."""
    three(world)
    world.reconcile()
    append(world.store / f"{FIRST}-it", 1, "b", LONG_AGO + SECOND)
    append(world.workspace / f"{FIRST}-it", 2, "c", LONG_AGO + 2 * SECOND)
    world.reconcile()
    world.reconcile("undo")
    return world


def test_after_an_undo_the_version_that_had_won_is_no_older_one(
    undone_winner: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = undone_winner
    both = f"reconcile resolve jp-c{FIRST} --take both"
    assert both in world.reconcile().stdout
    append(world.store / f"{FIRST}-it", 1, "d", LONG_AGO + 3 * SECOND)
    monkeypatch.setenv("RECONCILE_CONFLICT", "hold")
    for _ in range(2):
        shown = world.reconcile(code=4).stdout
        assert "older" not in shown
        assert both in shown
    monkeypatch.delenv("RECONCILE_CONFLICT")
    won = (world.workspace / f"{FIRST}-it" / "events.json").read_bytes()
    world.reconcile()
    assert won in [path.read_bytes() for path in files(world.store)]


def test_another_worktree_follows_the_undo_of_a_conflict(undone_winner: World, tmp_path: Path) -> None:
    """It makes no fork of the version that it had from the run, and does not bring it back."""
    world, other = undone_winner, tmp_path / "other"
    shutil.copytree(world.project, other, symlinks=True)
    world.run("--workspace", other)
    world.reconcile("redo", settled=False)
    world.run("--workspace", other)
    world.reconcile("undo", settled=False)
    before = {path: path.read_bytes() for path in files(world.store)}
    assert world.run("--workspace", other).exit_code == 0
    assert {path: path.read_bytes() for path in files(world.store)} == before
    stream = f"{FIRST}-it/events.json"
    assert (other / ".jp" / "conversations" / stream).read_bytes() == (world.store / stream).read_bytes()


def test_the_undo_of_a_run_that_changed_only_a_record_says_so(world: World) -> None:
    """Such a run is chosen: before its record is reset, no older run about the same conversation can be undone."""
    three(world)
    world.reconcile()
    file = world.workspace / f"{FIRST}-it" / "events.json"
    older = file.read_bytes()
    append(file.parent, 2, "b", LONG_AGO + SECOND)
    world.reconcile()
    newer = file.read_bytes()
    for content in (older, newer):  # as git switches to an older commit, and back
        file.write_bytes(content)
        world.reconcile(settled=False)
    assert "no file changes" in world.reconcile("log", settled=False).stdout.splitlines()[0]
    undone = world.reconcile("undo", settled=False)
    assert "that run changed no file; its undo resets only reconcile's own record" in undone.stdout
    assert "\nNo file to change." in undone.stdout
    assert "Nothing to do." not in undone.stdout
    assert "1 file time reset" in world.reconcile("undo", "--yes", code=4, settled=False).stderr


def test_a_decision_about_an_undone_child_and_its_parent_takes_one_command(world: World) -> None:
    """A second directory of the parent can go only after the undone child in it: the command names both."""
    three(world)
    world.reconcile()
    world.reconcile("set-parent", str(SECOND_ID), str(FIRST))
    world.reconcile("rm", str(SECOND_ID), "--yes")
    world.reconcile("undo")
    here = world.workspace / f"{FIRST}-it"
    shutil.copytree(here, world.workspace / f"{FIRST}-old", ignore=shutil.ignore_patterns("conversations"))
    with (here / "events.json").open("a") as file:
        file.write("x")
    before = world.event_count(FIRST)
    both = f"reconcile resolve jp-c{FIRST} jp-c{SECOND_ID} --take store"
    blocked = world.reconcile(code=4, settled=False).stdout
    (hint,) = [line.strip() for line in blocked.splitlines() if "resolve" in line]
    assert hint == f"{both} --workspace {world.project}"
    waits = world.reconcile("resolve", str(FIRST), "--take", "store", code=4, settled=False).stdout
    assert f"waits for jp-c{SECOND_ID}, whose last change you undid" in waits
    assert both in waits
    said = world.reconcile(*both.split()[1:])
    assert f"jp-c{SECOND_ID} was left alone after an undo; runs sync it again now" in said.stderr
    assert "1 removed from the workspace" in said.stdout
    assert world.event_count(FIRST) == before


def test_a_decision_that_only_ends_an_undo_says_so(world: World) -> None:
    three(world)
    world.reconcile()
    world.reconcile("rm", str(FIRST), "--yes")
    world.reconcile("undo")
    told = world.reconcile("resolve", str(FIRST), "--take", "store")
    assert told.stderr == f"jp-c{FIRST} was left alone after an undo; runs sync it again now\n"
    assert "\nDone. 1 conversation" in told.stdout
    again = world.reconcile("resolve", str(FIRST), "--take", "store")
    assert again.stderr == f"jp-c{FIRST} has no conflict, and is not blocked\n"
    assert "Nothing to do." in again.stdout


def test_the_target_of_a_link_in_a_removed_directory_can_be_printed(world: World) -> None:
    three(world)
    here = world.workspace / f"{FIRST}-it"
    (here / "at").symlink_to("../elsewhere")
    (here / ".notes").write_text("hidden")
    world.reconcile()
    world.reconcile("rm", str(FIRST), "--yes")
    told = " ".join(world.reconcile("undo").stdout.split())
    (command,) = [words.split()[2] for words in told.split("this one: ")[1:]]
    listed = world.reconcile("vault", "-v", settled=False).stdout
    (line,) = [line for line in listed.splitlines() if line.split()[-2:-1] == ["at"]]
    assert line.split()[0] == command == line.split()[-3]
    assert world.run("show", command, "-w", world.project).stdout == "../elsewhere"
    refused = world.run("restore", command, "-w", world.project)
    assert "at: not a file of the conversation, so it can't be restored" in refused.stderr
    assert (here / ".notes").read_text() == "hidden"
