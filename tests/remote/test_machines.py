"""Two and three machines that share a store through a bare repository, with the real git."""

from __future__ import annotations

import json
import os
import shutil
import time
from typing import TYPE_CHECKING

import pytest

from reconcile.model.baseline import IntentKind
from reconcile.remote.sync import Sync
from reconcile.state.database import State
from tests.support.projects.machines import Machine, add_worktree, git, make_bare, make_machine, quiet
from tests.support.projects.world import LONG_AGO, SECOND, append, files, set_key, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from reconcile.apply.executor import Outcome
    from reconcile.engine.engine import Engine, Pass
    from tests.conftest import Run

REF = "refs/reconcile/jp-ab1cd"
A, B, C, D = 17528832000, 17528832010, 17528832020, 17528832030


def ids(found: list[dict[str, str]]) -> list[str]:
    return [entry["id"] for entry in found]


def test_adding_a_remote_sends_nothing(new_laptop: Machine, bare: Path) -> None:
    assert git(bare, "for-each-ref") == ""
    assert "never" in new_laptop.run("remote").output


def test_a_dry_run_shows_what_would_be_sent_and_writes_nothing(new_laptop: Machine, bare: Path) -> None:
    before = new_laptop.contents
    assert len(new_laptop.sync("--dry-run")["sent"]) == 3
    assert git(bare, "for-each-ref") == ""
    assert new_laptop.contents == before


def test_a_new_machine_gets_everything_with_its_times(laptop: Machine, desktop: Machine) -> None:
    assert desktop.contents == laptop.contents
    path = desktop.directory(A) / "events.json"
    assert path.stat().st_mtime_ns == (laptop.directory(A) / "events.json").stat().st_mtime_ns
    quiet(laptop, desktop)


def test_events_travel(laptop: Machine, desktop: Machine) -> None:
    desktop.append(A, 2, "b", LONG_AGO + 60 * SECOND)
    assert ids(desktop.sync()["sent"]) == [f"jp-c{A}"]
    assert ids(laptop.sync()["taken"]) == [f"jp-c{A}"]
    assert laptop.events(A) == 5
    quiet(laptop, desktop)


def test_events_travel_although_the_shorter_stream_has_a_newer_time(laptop: Machine, desktop: Machine) -> None:
    laptop.append(A, 2, "b", LONG_AGO - 60 * SECOND)
    laptop.sync()
    desktop.sync()
    assert desktop.events(A) == 5
    quiet(laptop, desktop)


def test_a_private_conversation_is_sent_and_stays_private(laptop: Machine, desktop: Machine) -> None:
    laptop.run("local", str(A))
    laptop.sync()
    desktop.sync()
    assert json.loads(desktop.run("ls", "--json").stdout)
    assert "local" in desktop.run("status", str(A)).output
    desktop.run("project", str(B), "--yes")
    assert not list((desktop.project / ".jp").rglob(f"{A}*"))
    desktop.run("project", str(A), "--yes")
    desktop.sync()
    laptop.sync()
    assert "local: not copied" not in laptop.run("status", str(A)).output
    quiet(laptop, desktop)


def test_a_private_conversation_of_a_new_machine_stays_private_there(
    tmp_path: Path, run: Run, bare: Path, laptop: Machine
) -> None:
    laptop.run("local", str(A))
    laptop.sync()
    desktop = make_machine(tmp_path / "desktop", run)
    desktop.sync(str(bare))
    assert "local: not copied" in desktop.run("status", str(A)).output


def test_both_continue_one_conversation(laptop: Machine, desktop: Machine) -> None:
    laptop.append(A, 2, "b", LONG_AGO + 60 * SECOND)
    desktop.append(A, 1, "c", LONG_AGO + 120 * SECOND)
    assert not laptop.sync()["forked"]
    assert len(desktop.sync()["forked"]) == 1
    taken = laptop.sync()["taken"]
    assert len(taken) == 2
    assert sum(1 for _ in laptop.store.glob("*/events.json")) == 4
    quiet(laptop, desktop)
    assert sum(1 for _ in desktop.store.glob("*/events.json")) == 4


def test_a_conflict_of_another_machine_with_its_own_project_is_none_of_this_machine(
    laptop: Machine, desktop: Machine
) -> None:
    laptop.run("project", str(A), "--yes")
    here = next((laptop.project / ".jp").rglob(f"{A}*"))
    laptop.append(A, 1, "c", LONG_AGO + 60 * SECOND)
    append(here, 2, "b", LONG_AGO + 120 * SECOND)
    laptop.run()
    assert len(laptop.sync()["sent"]) == 2, "the winner, and the fork"
    taken = desktop.sync()
    assert (len(taken["taken"]), taken["conflicts"]) == (2, [])
    quiet(laptop, desktop)


def test_status_says_that_a_sync_takes_a_lost_store_again(laptop: Machine, desktop: Machine) -> None:
    """The store is lost as a whole: a sync removes nothing there, and takes everything."""
    before = laptop.contents
    for directory in laptop.store.iterdir():
        shutil.rmtree(directory)
    told = laptop.run("status").output
    assert "3 to take" in told
    assert "to remove there" not in told
    found = laptop.sync("--dry-run")
    assert (len(found["taken"]), found["returned"]) == (3, [])
    assert laptop.sync()["returned"] == [], "no other machine has changed or restored any of them"
    assert laptop.contents == before
    quiet(laptop, desktop)


def test_after_the_loss_of_a_store_run_status_and_doctor_name_the_remote_that_has_it(laptop: Machine) -> None:
    before = laptop.contents
    laptop.run("project", str(A), "--yes")
    for directory in laptop.store.iterdir():
        shutil.rmtree(directory)
    ran = laptop.run()
    way = "reconcile sync --workspace ~/project"
    assert ran.stderr.splitlines()[-1] == f"the remote origin has 2 conversations of the lost store: {way}"
    told = laptop.run("status").output
    assert told.count(f"lost with a store; the remote origin has it: {way}\n") == 2
    assert f"{way}\n      restores talk, and 1 more of the lost\n" in told
    assert "2 to take" in told
    assert "to remove there" not in told
    checked = laptop.run("doctor", code=4).output
    assert f"  jp-c{B}: the remote origin has it\n    {way}\n" in checked
    assert len(laptop.sync()["taken"]) == 2
    assert "reconcile sync" not in laptop.run("status").output
    assert laptop.contents.keys() == before.keys()


def test_a_sync_says_on_both_machines_whose_version_was_taken(laptop: Machine, desktop: Machine) -> None:
    """With the command that takes the other one instead; a dry run says it, too."""
    laptop.append(A, 2, "b", LONG_AGO + 60 * SECOND)
    desktop.append(A, 1, "c", LONG_AGO + 120 * SECOND)
    set_key(laptop.directory(B), "title", "Of the laptop", LONG_AGO + 120 * SECOND)
    set_key(desktop.directory(B), "title", "Of the desktop", LONG_AGO + 60 * SECOND)
    assert laptop.sync()["conflicts"] == []
    planned = " ".join(desktop.run("sync", "--dry-run").output.split())
    words = "both machines changed it; the sync asks at a terminal, or takes {}'s and prints the command for {}'s"
    assert f"events: {words.format('this machine', 'the other machine')}" in planned
    values = 'title: "Of the desktop" (this machine) / "Of the laptop" (the other machine)'
    assert f"{values} metadata: {words.format('the other machine', 'this machine')}" in planned
    printed = desktop.run("sync").output
    first = " ".join(printed.split())
    assert [line.split("  ")[0] for line in printed.splitlines() if "[diverged]" in line] == ["forked and sent"]
    assert "to fork and send" in planned
    assert "to send [diverged]" not in planned
    (child,) = {path.parent.name[:11] for path in desktop.store.glob("*diverged*/events.json")}
    run = json.loads(desktop.run("log", "--json").stdout)["runs"][0]["id"]
    kept = f"the other machine's is now the fork jp-c{child}; to take it instead: "
    assert f"this machine's is taken; {kept}reconcile restore jp-c{A}@{run}:events" in first
    way = f"to take this machine's instead: reconcile restore jp-c{B}@{run}:metadata"
    assert f"{values} metadata: both machines changed it; the other machine's is taken; {way}" in first
    own_line = f"\n    reconcile restore jp-c{A}@{run}:events --workspace ~/project\n"
    assert own_line in printed, "a command is on a line of its own"
    told = laptop.sync()["conflicts"]
    assert [(each["id"], each["unit"], each["takes"], each["child"]) for each in told] == [
        (f"jp-c{A}", "stream", "there", f"jp-c{child}")
    ]
    laptop.run("restore", f"jp-c{A}@{told[0]['run']}:events")
    assert laptop.events(A) == 5
    quiet(laptop, desktop)
    assert desktop.events(A) == 5


@pytest.mark.long
def test_a_fork_of_a_private_conversation_is_private(laptop: Machine, desktop: Machine) -> None:
    laptop.run("local", str(A))
    quiet(laptop, desktop)
    laptop.append(A, 2, "b", LONG_AGO + 60 * SECOND)
    desktop.append(A, 1, "c", LONG_AGO + 120 * SECOND)
    laptop.sync()
    (fork,) = ids(desktop.sync()["forked"])
    laptop.sync()
    for machine in (laptop, desktop):
        assert "local: not copied" in machine.run("status", fork).output


def test_metadata_is_merged_by_key(laptop: Machine, desktop: Machine) -> None:
    set_key(laptop.directory(A), "one", 1, LONG_AGO + 60 * SECOND)
    set_key(desktop.directory(A), "two", 2, LONG_AGO + 120 * SECOND)
    laptop.sync()
    desktop.sync()
    quiet(laptop, desktop)
    found = json.loads((laptop.directory(A) / "metadata.json").read_bytes())
    assert (found["one"], found["two"]) == (1, 2)


def test_a_new_title_and_an_archived_conversation_travel(laptop: Machine, desktop: Machine) -> None:
    set_key(laptop.directory(A), "title", "Another", LONG_AGO + 60 * SECOND)
    laptop.run()
    archive = laptop.store / ".archive"
    archive.mkdir()
    laptop.directory(B).rename(archive / laptop.directory(B).name)
    laptop.sync()
    desktop.sync()
    assert desktop.directory(B).parent.name == ".archive"
    quiet(laptop, desktop)


def test_what_is_taken_has_its_new_title(laptop: Machine, desktop: Machine) -> None:
    set_key(desktop.directory(A), "title", "new", LONG_AGO + SECOND)
    assert desktop.sync()["sent"] == laptop.sync("--dry-run")["taken"] == [{"id": f"jp-c{A}", "title": "new"}]
    assert laptop.sync()["taken"] == [{"id": f"jp-c{A}", "title": "new"}]


def test_other_files_of_a_conversation_travel(new_laptop: Machine, tmp_path: Path, run: Run, bare: Path) -> None:
    (new_laptop.directory(A) / "notes.txt").write_text("one")
    new_laptop.sync()
    desktop = make_machine(tmp_path / "desktop", run)
    desktop.sync(str(bare))
    assert (desktop.directory(A) / "notes.txt").read_text() == "one"
    (new_laptop.directory(A) / "more.txt").write_text("two")
    (desktop.directory(A) / "notes.txt").write_text("one, edited")
    new_laptop.sync()
    quiet(desktop, new_laptop, desktop)
    assert (new_laptop.directory(A) / "notes.txt").read_text() == "one, edited"
    assert (desktop.directory(A) / "more.txt").read_text() == "two"


def test_an_archived_conversation_reaches_a_new_machine(tmp_path: Path, run: Run, bare: Path, laptop: Machine) -> None:
    (laptop.store / ".archive").mkdir()
    laptop.directory(B).rename(laptop.store / ".archive" / laptop.directory(B).name)
    laptop.sync()
    desktop = make_machine(tmp_path / "desktop", run)
    desktop.sync(str(bare))
    assert desktop.directory(B).parent.name == ".archive"
    quiet(laptop, desktop)


@pytest.mark.long
@pytest.mark.parametrize("first", ["archives", "removes"])
def test_a_conversation_that_one_machine_archives_and_one_removes_is_archived(
    laptop: Machine, desktop: Machine, first: str
) -> None:
    (laptop.store / ".archive").mkdir()
    laptop.directory(B).rename(laptop.store / ".archive" / laptop.directory(B).name)
    desktop.run("rm", str(B), "--yes")
    quiet(*((laptop, desktop) if first == "archives" else (desktop, laptop, desktop)))
    assert laptop.directory(B).parent.name == desktop.directory(B).parent.name == ".archive"


def test_a_pull_between_an_edit_and_an_archive_forgets_neither(laptop: Machine, desktop: Machine) -> None:
    (laptop.store / ".archive").mkdir()
    laptop.directory(B).rename(laptop.store / ".archive" / laptop.directory(B).name)
    (laptop.directory(B) / "notes.txt").write_text("one")
    laptop.sync()
    desktop.append(B, 1, "c", LONG_AGO + 120 * SECOND)
    desktop.half("pull")
    desktop.sync()
    laptop.sync()
    assert laptop.directory(B).parent.name == desktop.directory(B).parent.name == ".archive"
    assert laptop.events(B) == desktop.events(B) == 4
    quiet(laptop, desktop)


def test_an_older_clone_takes_nothing_out_of_the_archive(
    tmp_path: Path, run: Run, new_laptop: Machine, bare: Path
) -> None:
    desktop = make_machine(tmp_path / "desktop", run)
    for path in new_laptop.store.iterdir():
        shutil.copytree(path, desktop.store / path.name)
    (new_laptop.store / ".archive").mkdir()
    new_laptop.directory(B).rename(new_laptop.store / ".archive" / new_laptop.directory(B).name)
    new_laptop.sync()
    assert not desktop.sync(str(bare))["sent"]
    assert new_laptop.directory(B).parent.name == desktop.directory(B).parent.name == ".archive"
    quiet(new_laptop, desktop)


def test_the_last_line_of_a_sync_counts_removals_on_both_sides(laptop: Machine, desktop: Machine) -> None:
    laptop.run("rm", str(A), "--yes")
    assert laptop.run("sync").stdout.endswith("origin: 1 conversation removed there.\n")
    assert desktop.run("sync").stdout.endswith("origin: 1 conversation removed here.\n")


def test_a_removal_is_called_by_its_title_or_its_id(laptop: Machine, desktop: Machine) -> None:
    """Not by the name of its directory. Of what another program has removed, the sync itself saves the title."""
    for number, title in ((A, "Release notes"), (B, "Letter")):
        set_key(laptop.directory(number), "title", title, LONG_AGO + 60 * SECOND)
    laptop.run("sync")
    desktop.run("sync")
    laptop.run("rm", str(A), "--yes")
    shutil.rmtree(laptop.directory(B))
    laptop.run()
    why = "on the remote, because it was removed here"
    for words, removed in ((["-n"], f"to remove {why}"), ([], f"removed {why}")):
        lines = laptop.run("sync", *words).stdout.splitlines()
        assert lines[:2] == [f"{removed}  Release notes  jp-c{A}", f"{removed}  Letter  jp-c{B}"]
    assert f"removed here, as on another machine  Release notes  jp-c{A}" in desktop.run("sync").stdout


def test_a_removal_travels_and_can_be_restored(laptop: Machine, desktop: Machine) -> None:
    laptop.run("rm", str(A), "--yes")
    assert ids(laptop.sync()["removed_there"]) == [f"jp-c{A}"]
    assert ids(desktop.sync()["removed_here"]) == [f"jp-c{A}"]
    assert not list(desktop.store.glob(f"{A}*"))
    quiet(laptop, desktop)
    desktop.run("restore", f"jp-c{A}")
    desktop.sync()
    laptop.sync()
    assert laptop.events(A) == 3
    quiet(laptop, desktop)


def test_an_edit_since_then_wins_over_a_removal(laptop: Machine, desktop: Machine) -> None:
    desktop.append(A, 1, "b", LONG_AGO + 60 * SECOND)
    laptop.run("rm", str(A), "--yes")
    laptop.sync()
    assert not desktop.sync()["removed_here"]
    laptop.sync()
    assert laptop.events(A) == desktop.events(A) == 4
    quiet(laptop, desktop)


def test_what_belongs_to_a_checkout_does_not_travel(laptop: Machine, desktop: Machine) -> None:
    """What is published here, and what was removed from the workspace here, changes no other machine."""
    laptop.run("project", str(A), str(B))
    laptop.run()
    (gone,) = (laptop.project / ".jp" / "conversations").glob(f"{B}-*")
    shutil.rmtree(gone)
    laptop.run()
    assert intents(laptop, laptop.project) == {f"jp-c{B}": IntentKind.REMOVED}
    assert list((laptop.project / ".jp").rglob("events.json"))
    laptop.sync()
    before = desktop.run("ls", "--json").stdout
    desktop.sync()
    desktop.run()
    assert intents(desktop, desktop.project) == {}
    assert not list((desktop.project / ".jp").rglob("events.json"))
    assert desktop.run("ls", "--json").stdout == before
    quiet(laptop, desktop)


def intents(machine: Machine, project: Path) -> dict[str, IntentKind]:
    with State.open(str(machine.state), readonly=True) as state:
        (row,) = (each.id for each in state.checkouts() if each.project == str(project))
        return {key: intent.kind for key, intent in state.intents(row).items()}


def test_what_gc_has_removed_is_removed_on_other_machines(laptop: Machine, desktop: Machine) -> None:
    set_key(laptop.directory(A), "expires_at", "2020-01-01 00:00:00.0", LONG_AGO + SECOND)
    laptop.sync()
    desktop.sync()
    assert desktop.directory(A).exists()
    laptop.run("gc", "--yes")
    assert ids(laptop.sync()["removed_there"]) == [f"jp-c{A}"]
    assert ids(desktop.sync()["removed_here"]) == [f"jp-c{A}"]
    assert not list(desktop.store.glob(f"{A}*"))
    quiet(laptop, desktop)


def test_an_edit_while_a_sync_removes_wins(laptop: Machine, desktop: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The step is refused, so the conversation is still here: it is neither reported as removed nor sent yet."""
    laptop.run("rm", str(A), "--yes")
    laptop.sync()
    apply = Sync._apply

    def edit_first(sync: Sync, engine: Engine, pass_: Pass) -> Outcome | None:
        if desktop.events(A) == 3:
            desktop.append(A, 1, "b", LONG_AGO + 60 * SECOND)
        return apply(sync, engine, pass_)

    with monkeypatch.context() as patched:
        patched.setattr(Sync, "_apply", edit_first)
        found = desktop.sync(code=4)
    assert (ids(found["removed_here"]), ids(found["sent"])) == ([], [])
    (held,) = found["held"]
    assert held.startswith(f"jp-c{A}: ")
    assert held.endswith("; run the sync again")
    assert ids(desktop.sync()["sent"]) == [f"jp-c{A}"]
    laptop.sync()
    assert laptop.events(A) == 4
    quiet(laptop, desktop)


def test_an_edit_wins_also_if_nothing_else_is_left(laptop: Machine, desktop: Machine) -> None:
    """The parent of what was edited goes at once: it was sent again, and removed everywhere by the next sync."""
    laptop.run("set-parent", f"jp-c{B}", f"jp-c{A}")
    laptop.sync()
    desktop.sync()
    laptop.run("rm", *map(str, (A, B, C)), "--yes")
    laptop.sync()
    desktop.append(B, 1, "b", LONG_AGO + 60 * SECOND)
    report = desktop.sync()
    assert sorted(ids(report["removed_here"])) == [f"jp-c{A}", f"jp-c{C}"]
    assert (ids(report["sent"]), report["held"]) == ([f"jp-c{B}"], [])
    laptop.sync()
    assert desktop.contents == laptop.contents
    assert laptop.events(B) == 4
    quiet(laptop, desktop)


def test_a_removal_after_an_edit_that_has_not_arrived_yet(laptop: Machine, desktop: Machine) -> None:
    desktop.append(A, 1, "b", LONG_AGO + 60 * SECOND)
    desktop.sync()
    laptop.run("rm", str(A), "--yes")
    laptop.sync()
    assert laptop.events(A) == 4
    quiet(laptop, desktop)


@pytest.mark.long
def test_many_removals_at_once_are_held(laptop: Machine, desktop: Machine) -> None:
    more = [17528833000 + n for n in range(6)]
    for number in more:
        laptop.write(number)
    quiet(laptop, desktop)
    for number in more:
        shutil.rmtree(laptop.directory(number))
    found = laptop.sync(code=4)
    (there,) = found["held"]
    assert there.startswith("on origin: 6 of 9 directories would be removed: ")
    assert there.endswith("; reconcile sync origin --allow-bulk-removal")
    assert not found["removed_there"]
    laptop.sync("--allow-bulk-removal")
    for _ in range(2):
        found = desktop.sync(code=4)
        assert not found["removed_here"]
        way = "reconcile sync origin --allow-bulk-removal"
        assert found["held"] == [f"6 of 9 conversations would be removed here: {way}"]
        told = (
            "0 conversations to send, 0 to take, 6 to remove here (blocked: reconcile sync --allow-bulk-removal), last"
        )
        assert told in " ".join(desktop.run("status").output.split())
    desktop.append(more[0], 1, "b", LONG_AGO + SECOND)
    assert "1 conversation to send, 0 to take, 5 to remove" in desktop.run("status").output
    assert desktop.sync(code=4)["sent"]
    laptop.sync()
    assert "5 to remove here" in desktop.run("status").output
    assert len(desktop.sync("origin", "--allow-bulk-removal")["removed_here"]) == 5
    assert "to remove" not in desktop.run("status").output
    quiet(laptop, desktop)


def test_a_store_that_was_lost_is_filled_again(laptop: Machine, desktop: Machine) -> None:
    shutil.rmtree(laptop.store)
    laptop.store.mkdir()
    found = laptop.sync()
    assert len(found["taken"]) == 3
    assert not found["removed_there"]
    quiet(laptop, desktop)


def test_an_undo_travels(laptop: Machine, desktop: Machine) -> None:
    laptop.run("project", str(A), "--yes")
    (path,) = (laptop.project / ".jp" / "conversations").glob(f"{A}*")
    append(path, 2, "b", LONG_AGO + 60 * SECOND)
    laptop.run()
    quiet(laptop, desktop)
    assert desktop.events(A) == 5
    laptop.run("undo", "--yes")
    assert laptop.events(A) == 3
    laptop.sync()
    desktop.sync()
    assert desktop.events(A) == 3
    quiet(laptop, desktop)


def test_only_some_conversations(new_laptop: Machine, bare: Path) -> None:
    assert ids(new_laptop.sync("--only", f"jp-c{A}")["sent"]) == [f"jp-c{A}"]
    set_key(new_laptop.directory(B), "title", "Diary", LONG_AGO)
    for options in ("--dry-run",), ():
        assert ids(new_laptop.sync("--only", "Diary", *options)["sent"]) == [f"jp-c{B}"]
    assert "no conversation has the id or title 'Nothing'" in new_laptop.run("sync", "--only", "Nothing", code=2).output
    assert len(new_laptop.sync()["sent"]) == 1


@pytest.mark.long
def test_three_machines(tmp_path: Path, run: Run, bare: Path, laptop: Machine, desktop: Machine) -> None:
    server = make_machine(tmp_path / "server", run)
    server.sync(str(bare))
    for at, (machine, voice) in enumerate(((laptop, "b"), (desktop, "c"), (server, "d")), 1):
        machine.append(A, 1, voice, LONG_AGO + at * SECOND)
        machine.write(B + at)
    for machine in (laptop, desktop, server, laptop, desktop):
        machine.sync()
    quiet(laptop, desktop, server)
    assert sum(1 for _ in laptop.store.glob("*/events.json")) == 3 + 3 + 2


@pytest.mark.long
def test_a_large_stream_is_sent_in_pieces(laptop: Machine, desktop: Machine, bare: Path) -> None:
    set_key(laptop.directory(A), "title", "talk", LONG_AGO)
    stream = [
        {"timestamp": f"2026-01-01T00:{n // 60:02}:{n % 60:02}Z", "type": "chat_request", "content": "x" * 1000}
        for n in range(3000)
    ]
    (laptop.directory(A) / "events.json").write_text(json.dumps(stream))
    quiet(laptop, desktop)
    names = git(bare, "ls-tree", "-r", "--name-only", REF).splitlines()
    assert sum(f"jp-c{A}/e/" in name for name in names) == 4
    laptop.append(A, 1, "b", LONG_AGO + 60 * SECOND)
    quiet(laptop, desktop)
    (laptop.directory(A) / "events.json").write_text(json.dumps(stream[:100]))
    quiet(laptop, desktop)


def test_the_removal_of_another_file_travels(laptop: Machine, desktop: Machine) -> None:
    for name in ("kept.txt", "gone.txt", "edited.txt", "again.txt"):
        (laptop.directory(A) / name).write_text(name)
    quiet(laptop, desktop)
    for name in ("gone.txt", "edited.txt", "again.txt"):
        (laptop.directory(A) / name).unlink()
    (desktop.directory(A) / "edited.txt").write_text("more")
    assert ids(laptop.sync()["sent"]) == [f"jp-c{A}"]
    assert f"jp-c{A}" in ids(desktop.sync()["taken"])
    assert sorted(path.name for path in desktop.directory(A).glob("*.txt")) == ["edited.txt", "kept.txt"]
    assert "gone.txt" in desktop.run("vault", "-v").output
    laptop.sync()
    assert (laptop.directory(A) / "edited.txt").read_text() == "more"
    quiet(laptop, desktop)
    (desktop.directory(A) / "again.txt").write_text("again.txt")  # the very content that was removed
    desktop.sync()
    laptop.sync()
    assert (laptop.directory(A) / "again.txt").exists()
    quiet(laptop, desktop)


FILE, DIRECTORY = {"x": b"a file"}, {"x/one.txt": b"in a directory", "x/two.txt": b"two"}


def put(directory: Path, files: dict[str, bytes]) -> None:
    for path, content in files.items():
        (directory / path).parent.mkdir(exist_ok=True)
        (directory / path).write_bytes(content)


@pytest.mark.long
@pytest.mark.parametrize("is_edited", [False, True], ids=["same", "edited"])
@pytest.mark.parametrize(("old", "new"), [(FILE, DIRECTORY), (DIRECTORY, FILE)], ids=["file", "directory"])
def test_another_file_that_becomes_a_directory_or_was_one_loses_nothing(
    laptop: Machine, desktop: Machine, old: dict[str, bytes], new: dict[str, bytes], is_edited: bool
) -> None:
    """What is still the same makes room for the other one. Otherwise both wait for another name."""
    put(laptop.directory(A), old)
    quiet(laptop, desktop)
    path = laptop.directory(A) / "x"
    path.unlink() if old is FILE else shutil.rmtree(path)
    put(laptop.directory(A), new)
    edited = dict.fromkeys(old, b"edited") if is_edited else {}
    put(desktop.directory(A), edited)
    first, second = (laptop, desktop) if old is FILE else (desktop, laptop)
    first.sync()
    if is_edited:
        kinds = "a file in the store, a directory on the other side"
        why = f"jp-c{A}: x: {kinds}; rename the one in the store, and run again"
        for args in (("--dry-run",), (), ()):
            assert second.sync(*args, code=4)["held"] == [why]
        (second.directory(A) / "x").rename(second.directory(A) / "other")
    second.sync()
    quiet(laptop, desktop)
    found = {str(path.relative_to(laptop.directory(A))): path.read_bytes() for path in files(laptop.directory(A))}
    there, renamed = (edited, new) if old is DIRECTORY else (new, edited)
    assert found.items() >= (there | {"other": renamed["x"]} if is_edited else new).items()


def test_the_removal_of_another_file_travels_also_after_an_edit(laptop: Machine, desktop: Machine) -> None:
    for name in ("gone.txt", "edited.txt"):
        (laptop.directory(A) / name).write_text("one")
    quiet(laptop, desktop)
    for name in ("gone.txt", "edited.txt"):
        (laptop.directory(A) / name).write_text("two")
    laptop.sync()
    for name in ("gone.txt", "edited.txt"):
        (laptop.directory(A) / name).unlink()
    laptop.sync()
    (desktop.directory(A) / "edited.txt").write_text("more")
    desktop.sync()
    quiet(laptop, desktop)
    assert [path.name for path in laptop.directory(A).glob("*.txt")] == ["edited.txt"]
    assert (laptop.directory(A) / "edited.txt").read_text() == "more"


def test_the_removal_of_another_file_travels_to_a_sync_that_looks_at_everything(
    laptop: Machine, desktop: Machine
) -> None:
    (laptop.directory(A) / "gone.txt").write_text("x")
    quiet(laptop, desktop)
    desktop.append(B, 1, "b", LONG_AGO + 60 * SECOND)
    desktop.half("pull")  # the next sync can't go on from it
    (laptop.directory(A) / "gone.txt").unlink()
    laptop.sync()
    desktop.sync()
    laptop.sync()
    assert not (desktop.directory(A) / "gone.txt").exists()
    quiet(laptop, desktop)


def test_a_new_machine_keeps_another_file_that_was_removed(
    laptop: Machine, bare: Path, tmp_path: Path, run: Run
) -> None:
    """The tombstone of a file is no news to a machine that never synced: what it has is sent again."""
    (laptop.directory(A) / "notes.txt").write_text("n")
    laptop.sync()
    other = make_machine(tmp_path / "other", run)
    shutil.copytree(laptop.store, other.store, dirs_exist_ok=True)
    (laptop.directory(A) / "notes.txt").unlink()
    laptop.sync()
    other.sync(str(bare))
    laptop.sync()
    assert (laptop.directory(A) / "notes.txt").read_text() == "n"
    quiet(laptop, other)


def old_clone(laptop: Machine, path: Path, run: Run) -> Machine:
    """Return a new machine, with a clone in which A, B and C are as they are in the laptop's store now."""
    laptop.run("project", *map(str, (A, B, C)), "--yes")
    clone = make_machine(path, run)
    shutil.copytree(laptop.project / ".jp", clone.project / ".jp", dirs_exist_ok=True)
    for file in (clone.project / ".jp").rglob("*.json"):
        os.utime(file)  # git gives files the time of the checkout
    return clone


def test_a_new_machine_leaves_older_versions_of_its_clone_alone(
    laptop: Machine, bare: Path, tmp_path: Path, run: Run
) -> None:
    clone = old_clone(laptop, tmp_path / "clone", run)
    for title in ("second", "third"):
        set_key(laptop.directory(A), "title", title, LONG_AGO + SECOND)
        laptop.append(B, 1, "b", LONG_AGO + SECOND)
        laptop.run()
        laptop.sync()
    clone.sync(str(bare))
    clone.run()
    assert json.loads((clone.directory(A) / "metadata.json").read_bytes())["title"] == "third"
    assert clone.events(B) == 5
    quiet(laptop, clone)


def test_a_new_machine_does_not_bring_back_what_was_removed(
    laptop: Machine, bare: Path, tmp_path: Path, run: Run
) -> None:
    laptop.sync()
    clone = old_clone(laptop, tmp_path / "clone", run)
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    laptop.run()
    laptop.sync()
    laptop.run("rm", str(A), str(B), "--yes")
    laptop.sync()
    set_key(next((clone.project / ".jp" / "conversations").glob(f"{B}*")), "title", "mine", LONG_AGO + SECOND)
    clone.sync(str(bare))
    clone.run()
    assert not list(clone.store.glob(f"{A}*"))
    assert "removed" in clone.run("status", str(A)).output
    assert clone.directory(B).name == f"{B}-mine"  # an edit wins
    quiet(clone, laptop)


def rewrite_first_event(directory: Path, text: str) -> None:
    path = directory / "events.json"
    stream = json.loads(path.read_bytes())
    write_json(path, [stream[0] | {"content": text}, *stream[1:]], LONG_AGO + SECOND)


@pytest.mark.long
def test_a_run_before_the_first_sync_makes_no_edit_of_an_older_clone(
    laptop: Machine, bare: Path, tmp_path: Path, run: Run
) -> None:
    """The versions are known of the machines: older ones are replaced, and none of them is a conflict."""
    clone = old_clone(laptop, tmp_path / "clone", run)
    clone.run()
    set_key(clone.project / ".jp" / "conversations" / f"{C}-talk", "title", "mine", LONG_AGO + SECOND)
    for title in ("second", "third"):
        set_key(laptop.directory(A), "title", title, LONG_AGO + SECOND)
        rewrite_first_event(laptop.directory(B), title)
        laptop.run()
        laptop.sync()
    laptop.append(C, 1, "b", LONG_AGO + SECOND)
    laptop.run()
    laptop.sync()
    clone.run()
    clone.run("remote", "add", str(bare))
    planned, found = clone.sync("--dry-run"), clone.sync()
    assert ids(planned["taken"]) == ids(found["taken"]) == [f"jp-c{A}", f"jp-c{B}", f"jp-c{C}"]
    assert not found["conflicts"] + found["forked"]
    assert ids(found["sent"]) == [f"jp-c{C}"], "an edit of its own"
    assert clone.directory(A).name == f"{A}-third"
    quiet(clone, laptop)
    clone.run()
    laptop.run()
    quiet(laptop, clone)
    assert laptop.directory(A).name == f"{A}-third"
    assert "third" in (laptop.directory(B) / "events.json").read_text()
    assert (laptop.directory(C).name, laptop.events(C)) == (f"{C}-mine", 4)


def test_a_run_before_the_first_sync_does_not_bring_back_what_was_removed(
    laptop: Machine, bare: Path, tmp_path: Path, run: Run
) -> None:
    clone = old_clone(laptop, tmp_path / "clone", run)
    for number in (A, B):
        laptop.append(number, 1, "b", LONG_AGO + SECOND)
    laptop.run()
    laptop.sync()
    laptop.run("rm", str(A), str(B), "--yes")
    laptop.sync()
    clone.run()
    set_key(clone.directory(B), "title", "mine", LONG_AGO + SECOND)
    clone.run()
    found = clone.sync(str(bare))
    assert ids(found["removed_here"]) == [f"jp-c{A}"]
    assert ids(found["sent"]) == [f"jp-c{B}"]  # an edit wins
    quiet(clone, laptop)
    clone.run()
    laptop.run()
    quiet(laptop, clone)
    assert not list(clone.store.glob(f"{A}*"))
    assert laptop.events(B) == 3


@pytest.mark.long
@pytest.mark.parametrize("is_in_project", [False, True], ids=["store", "project"])
@pytest.mark.parametrize("is_archived", [False, True], ids=["removed", "archived"])
def test_an_older_version_of_the_last_sync_is_no_edit_of_what_was_removed_since(
    laptop: Machine, desktop: Machine, is_in_project: bool, is_archived: bool
) -> None:
    for machine in (laptop, desktop) if is_in_project else ():
        machine.run("project", str(A), str(B), "--yes")
    (laptop.directory(A) / "notes.txt").write_text("one")
    quiet(laptop, desktop)
    for number in (A, B):
        laptop.append(number, 1, "b", LONG_AGO + SECOND)
        set_key(laptop.directory(number), "title", "later", LONG_AGO + SECOND)
    (laptop.directory(A) / "notes.txt").write_text("two")
    laptop.sync()
    set_key(desktop.directory(B), "title", "mine", LONG_AGO + 2 * SECOND)
    if is_archived:
        (laptop.store / ".archive").mkdir()
        for number in (A, B):
            path = laptop.directory(number)
            path.rename(path.parent / ".archive" / path.name)
    else:
        laptop.run("rm", str(A), str(B), "--yes")
    laptop.sync()
    desktop.sync()
    found = [path.relative_to(desktop.store).parts[0] for path in desktop.store.rglob(f"{A}*")]
    assert found == ([".archive"] if is_archived else [])
    assert desktop.directory(B).name.endswith("-mine") or is_archived, "an edit wins"
    for machine in (laptop, desktop):
        machine.run()
        machine.sync()
    quiet(laptop, desktop)
    assert bool(list(laptop.store.rglob(f"{A}*"))) == is_archived
    assert json.loads((laptop.directory(B) / "metadata.json").read_bytes())["title"] == "mine"


def test_status_says_how_much_there_is_to_send(new_laptop: Machine) -> None:
    assert "remote origin: 3 conversations to send, never synced" in new_laptop.run("status").output
    new_laptop.run("local", str(C))
    new_laptop.sync()
    assert "remote origin: 0 conversations to send, 0 to take, last contact just now" in new_laptop.run("status").output
    new_laptop.append(A, 1, "b", LONG_AGO + SECOND)
    new_laptop.run("rm", str(B), "--yes")
    assert "origin: 1 conversation to send, 1 to remove there, 0 to take, last" in new_laptop.run("status").output
    planned = new_laptop.run("sync", "--dry-run").output
    assert planned.endswith("\norigin: 1 conversation to send, 1 to remove there; a dry run changes nothing.\n")
    assert new_laptop.run("sync").output.endswith("\norigin: 1 conversation sent, 1 removed there.\n")
    assert "remote origin: 0 conversations to send, 0 to take, last" in new_laptop.run("status").output


def test_the_log_of_a_sync_has_its_words(laptop: Machine, desktop: Machine) -> None:
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    laptop.run("rm", str(B), "--yes")
    laptop.sync()
    desktop.sync()
    for machine, counts in ((laptop, f"1 sent, 1 removed there: jp-c{A}, jp-c{B}"), (desktop, f"1 taken: jp-c{A}")):
        line = next(line for line in machine.run("log").output.splitlines() if "in remote origin" in line)
        assert f"  {counts}  reconcile sync  (in remote origin)" in line, line
        told = machine.run("log", line.split()[0]).output
        assert "workspace" not in told, told
        assert "publish" not in told, told


def test_status_says_how_much_there_is_to_take(laptop: Machine, desktop: Machine, bare: Path) -> None:
    laptop.append(A, 2, "b", LONG_AGO + SECOND)
    laptop.run("rm", str(B), "--yes")
    laptop.write(C + 1)
    laptop.sync()
    desktop.append(C, 1, "c", LONG_AGO + SECOND)
    assert "remote origin: 1 conversation to send, 0 to take" in desktop.run("status").output
    desktop.run("push", code=4)
    contact = desktop.state / "remotes" / "origin" / "contact"
    os.utime(contact, ns=(0, time.time_ns() - 7300 * SECOND))
    bare.rename(bare.with_name("away"))
    assert "remote origin: 1 conversation to send, 3 to take, last contact 2 hours ago" in desktop.run("status").output
    desktop.append(A, 1, "c", LONG_AGO + SECOND)
    told = (
        "1 conversation to send, 2 to take, 1 changed on both machines (a sync decides or asks), last contact 2 hours"
    )
    assert told in desktop.run("status").output
    desktop.run("remote", "keep-here", str(A))
    assert "1 conversation to send, 2 to take, last" in desktop.run("status").output
    assert "2 to take" in desktop.run("status").output
    bare.with_name("away").rename(bare)
    desktop.sync()
    assert "remote origin: 0 conversations to send, 0 to take" in desktop.run("status").output
    shutil.rmtree(desktop.state / "remotes" / "origin" / "mirror")
    assert "remote origin: 0 conversations to send, last contact" in desktop.run("status").output


def test_status_counts_nothing_that_an_undo_of_a_sync_has_left_alone(laptop: Machine, desktop: Machine) -> None:
    archive = laptop.store / ".archive"
    archive.mkdir()
    laptop.directory(A).rename(archive / laptop.directory(A).name)
    laptop.write(D)
    laptop.run("rm", str(B), "--yes")
    laptop.sync()
    desktop.sync()
    desktop.run("undo")
    desktop.run("undo", "--yes")
    assert sorted(path.name for path in desktop.store.iterdir() if path.name[0] != ".") == [
        f"{number}-talk" for number in (A, B, C)
    ]
    for _ in range(2):
        assert "remote origin: 0 conversations to send, 0 to take, last contact" in desktop.run("status").output
        found = desktop.sync()
        assert not any(found[name] for name in ("sent", "taken", "removed_here", "removed_there", "held"))
    desktop.append(B, 1, "c", LONG_AGO + SECOND)
    assert "remote origin: 1 conversation to send, 0 to take" in desktop.run("status").output


def test_a_sync_says_that_a_conversation_was_archived_or_no_longer_is(laptop: Machine, desktop: Machine) -> None:
    archive = laptop.store / ".archive"
    archive.mkdir()
    laptop.directory(A).rename(archive / laptop.directory(A).name)
    laptop.sync()
    for words, taken in ((("sync", "--dry-run"), "to take"), (("sync",), "taken")):
        lines = desktop.run(*words).stdout.splitlines()
        assert lines[lines.index(f"{taken}  talk  jp-c{A}") + 1] == "  archived"
    laptop.directory(A).rename(laptop.store / laptop.directory(A).name)
    laptop.sync()
    assert f"taken  talk  jp-c{A}\n  no longer archived\n" in desktop.run("sync").stdout


def test_a_first_sync_that_removes_leaves_nothing_to_send(
    laptop: Machine, tmp_path: Path, run: Run, bare: Path
) -> None:
    """Both had the other conversations already, and they were alike."""
    laptop.run("rm", str(B), "--yes")
    laptop.sync()
    machine = make_machine(tmp_path / "machine", run)
    for number in (A, B, C):
        machine.write(number)
    assert len(machine.sync(str(bare))["removed_here"]) == 1
    assert "remote origin: 0 conversations to send, 0 to take, last" in machine.run("status").output


def test_status_counts_what_a_sync_has_left_out(laptop: Machine, desktop: Machine) -> None:
    for key in (A, B):
        laptop.append(key, 1, "b", LONG_AGO + 60 * SECOND)
    laptop.sync()
    desktop.append(C, 1, "b", LONG_AGO + 60 * SECOND)
    desktop.sync("--only", f"jp-c{A}")
    assert "1 conversation to send, 1 to take" in desktop.run("status").output
    assert len(desktop.sync()["taken"]) == 1
    assert "0 conversations to send, 0 to take" in desktop.run("status").output
    quiet(laptop, desktop)


# The halves of a sync


def test_a_pull_takes_and_sends_nothing(laptop: Machine, desktop: Machine, bare: Path) -> None:
    laptop.append(A, 2, "b", LONG_AGO + 60 * SECOND)
    laptop.run("rm", str(C), "--yes")
    laptop.sync()
    desktop.append(A, 1, "c", LONG_AGO + 120 * SECOND)
    desktop.append(B, 1, "c", LONG_AGO + 120 * SECOND)
    desktop.run("local", str(B))
    tip = git(bare, "rev-parse", REF)
    assert not desktop.half("pull", "-n")["sent"]
    shown = desktop.run("pull", "-n").stdout.splitlines()
    assert shown[-1] == "origin: 1 conversation to fork, 1 to remove here; a dry run changes nothing."
    found = desktop.half("pull")
    assert not found["sent"]
    assert (len(found["forked"]), len(found["removed_here"])) == (1, 1)
    assert git(bare, "rev-parse", REF) == tip
    again = desktop.half("pull")
    assert not any(again[key] for key in ("sent", "taken", "forked", "removed_here", "held"))
    assert desktop.run("pull").stdout == "origin: nothing to take.\n", "there is something to send"
    sent = ids(desktop.half("push")["sent"])
    assert f"jp-c{B}" in sent
    assert desktop.run("push").stdout == "origin: nothing to send.\n"
    laptop.sync()
    assert "local: not copied" in laptop.run("status", str(B)).output
    assert sum(1 for _ in laptop.store.glob("*/events.json")) == 3
    quiet(laptop, desktop)


@pytest.mark.parametrize("parent", ["synced", "new"])
def test_a_pull_that_removes_a_parent_leaves_the_child_to_the_next_sync(
    laptop: Machine, desktop: Machine, bare: Path, parent: str
) -> None:
    """The removal changes the child's metadata; the child's new events are not yet in the remote."""
    if parent == "synced":
        laptop.run("set-parent", str(B), str(A))
        quiet(laptop, desktop)
    else:
        desktop.run("set-parent", str(B), str(A))
    laptop.run("rm", str(A), "--yes", "--promote")
    laptop.sync()
    desktop.append(B, 1, "c", LONG_AGO + 120 * SECOND)
    tip = git(bare, "rev-parse", REF)
    assert ids(desktop.half("pull")["removed_here"]) == [f"jp-c{A}"]
    assert git(bare, "rev-parse", REF) == tip
    assert desktop.events(B) == 4
    assert "parent_id" not in json.loads((desktop.directory(B) / "metadata.json").read_bytes())
    again = desktop.half("pull")
    assert not any(again[key] for key in ("sent", "taken", "forked", "removed_here", "held"))
    assert ids(desktop.sync()["sent"]) == [f"jp-c{B}"]
    laptop.sync()
    assert laptop.events(B) == 4
    quiet(laptop, desktop)


def test_a_child_that_is_kept_here_does_not_count_as_sent_when_its_parent_is_removed(
    laptop: Machine, desktop: Machine
) -> None:
    laptop.run("set-parent", str(B), str(A))
    quiet(laptop, desktop)
    laptop.run("rm", str(A), "--yes", "--promote")
    laptop.sync()
    desktop.run("remote", "keep-here", str(B))
    desktop.append(B, 1, "c", LONG_AGO + 120 * SECOND)
    assert ids(desktop.sync()["removed_here"]) == [f"jp-c{A}"]
    desktop.run("remote", "share", str(B))
    assert ids(desktop.sync()["sent"]) == [f"jp-c{B}"]
    assert desktop.events(B) == 4
    quiet(laptop, desktop)


def test_a_push_is_refused_while_the_remote_has_something_new(laptop: Machine, desktop: Machine, bare: Path) -> None:
    laptop.append(A, 2, "b", LONG_AGO + 60 * SECOND)
    assert ids(laptop.half("push")["sent"]) == [f"jp-c{A}"]
    desktop.append(B, 1, "c", LONG_AGO + 120 * SECOND)
    before = desktop.contents
    said = desktop.run("push", code=4).output
    assert "the remote has something new, and a push takes nothing" in said
    assert "reconcile pull" in said
    assert desktop.contents == before
    desktop.half("pull")
    assert ids(desktop.half("push")["sent"]) == [f"jp-c{B}"]
    laptop.half("pull")
    quiet(laptop, desktop)


def test_a_new_machine_can_begin_with_a_pull(laptop: Machine, tmp_path: Path, run: Run, bare: Path) -> None:
    machine = make_machine(tmp_path / "desktop", run)
    machine.write(B + 1)
    machine.half("pull", str(bare))
    assert laptop.contents.items() <= machine.contents.items()
    assert ids(machine.half("push")["sent"]) == [f"jp-c{B + 1}"]
    quiet(laptop, machine)


def test_a_push_can_fill_an_empty_remote(new_laptop: Machine, bare: Path) -> None:
    new_laptop.half("pull")
    assert len(new_laptop.half("push")["sent"]) == 3
    assert not new_laptop.sync()["sent"]


def test_a_name_that_is_not_utf_8_keeps_its_conversation_here_and_no_other(laptop: Machine, desktop: Machine) -> None:
    odd = os.fsdecode(os.fsencode(laptop.directory(A)) + b"/a\xff")
    with open(odd, "wb") as file:
        file.write(b"x")
    laptop.append(B, 1, "b", LONG_AGO + 60 * SECOND)
    sent = []
    for args in (("--dry-run",), (), ()):
        result = laptop.sync(*args, code=4)
        sent.append(ids(result["sent"]))
        (held,) = result["held"]
        place = f"store:{laptop.directory(A).name}/a\\xff"
        assert held == f"jp-c{A}: {place}: the name is not UTF-8; rename the file there, then run the sync again"
    assert sent == [[f"jp-c{B}"], [f"jp-c{B}"], []]
    assert ids(desktop.sync()["taken"]) == [f"jp-c{B}"]
    os.rename(odd, laptop.directory(A) / "a")
    assert ids(laptop.sync()["sent"]) == [f"jp-c{A}"]
    desktop.sync()
    assert (desktop.directory(A) / "a").read_bytes() == b"x"
    quiet(laptop, desktop)


def test_files_of_a_remote_have_the_permissions_of_any_new_file(laptop: Machine, desktop: Machine) -> None:
    umask = os.umask(0o022)
    os.umask(umask)
    laptop.write(D)
    laptop.sync()
    desktop.sync()
    assert (desktop.directory(D) / "events.json").stat().st_mode & 0o777 == 0o666 & ~umask
    assert desktop.directory(D).stat().st_mode & 0o777 == 0o777 & ~umask


def states(machine: Machine, child: int) -> str | None:
    """Return the parent that the metadata states."""
    found = json.loads((machine.directory(child) / "metadata.json").read_bytes()).get("parent_id")
    assert found is None or isinstance(found, str)
    return found


def write_as_jp(directory: Path, mtime_ns: int, **keys: str) -> None:
    """Write the metadata as JP does, which drops the parent."""
    path = directory / "metadata.json"
    known = json.loads(path.read_bytes())
    write_json(path, {name: value for name, value in known.items() if name != "parent_id"} | keys, mtime_ns)


FLAT = "--layout", "flat"
"""The layout in which JP writes to a child in the workspace."""


@pytest.fixture
def child(laptop: Machine, desktop: Machine) -> int:
    """A child whose parent both machines know. The laptop has published it in its project and in a worktree."""
    add_worktree(laptop)
    laptop.run("project", str(A), str(B), "--yes", *FLAT)
    laptop.run("set-parent", str(B), str(A), *FLAT)
    work_in_worktrees(laptop, "project", str(A), str(B), "--yes")
    quiet(laptop, desktop)
    assert states(desktop, B) == f"jp-c{A}"
    return B


def work_in_worktrees(machine: Machine, *command: str) -> None:
    for project in machine.worktrees:
        with machine.at_work():
            assert machine.world.run("--workspace", project, *FLAT, *command).exit_code == 0


PLACES = {
    "store": lambda machine: machine.store,
    "project": lambda machine: machine.project / ".jp" / "conversations",
    "worktree": lambda machine: machine.worktrees[1] / ".jp" / "conversations",
}
"""The directory in which JP has written."""


@pytest.mark.long
@pytest.mark.parametrize("keys", [{}, {"title": "New"}], ids=["the parent alone", "with a new title"])
@pytest.mark.parametrize("place", PLACES)
def test_a_parent_that_jp_has_dropped_stays_on_all_machines(
    laptop: Machine, desktop: Machine, child: int, place: str, keys: dict[str, str]
) -> None:
    """JP has written before a sync, while the other machine continued the child: the sync is no decision about it."""
    (directory,) = PLACES[place](laptop).glob(f"{child}*")
    write_as_jp(directory, LONG_AGO + 60 * SECOND, **keys)
    desktop.append(child, 1, "b", LONG_AGO + 30 * SECOND)
    set_key(desktop.directory(child), "two", 2, LONG_AGO + 30 * SECOND)
    desktop.sync()
    for _ in range(2):
        for machine in (laptop, desktop):
            found = machine.sync()
            assert [found["conflicts"], found["forked"], found["held"]] == [[], [], []]
        assert states(desktop, child) == f"jp-c{A}"
        work_in_worktrees(laptop)
    assert states(laptop, child) == f"jp-c{A}"
    known = json.loads((desktop.directory(child) / "metadata.json").read_bytes())
    assert (known["two"], known["title"]) == (2, keys.get("title", "talk"))
    assert desktop.events(child) == 4
    quiet(laptop, desktop)


def test_a_parent_that_jp_has_dropped_is_nothing_to_send(laptop: Machine, desktop: Machine, child: int) -> None:
    write_as_jp(laptop.directory(child), LONG_AGO + 60 * SECOND)
    assert not laptop.sync()["sent"]
    assert states(laptop, child) == f"jp-c{A}", "it is written again"
    assert not desktop.sync()["taken"]
    quiet(laptop, desktop)


def test_a_parent_that_jp_has_dropped_saves_no_removed_conversation(
    laptop: Machine, desktop: Machine, child: int
) -> None:
    desktop.run("rm", str(child), "--yes")
    desktop.sync()
    write_as_jp(laptop.directory(child), LONG_AGO + 60 * SECOND)
    assert ids(laptop.sync()["removed_here"]) == [f"jp-c{child}"]
    quiet(laptop, desktop)


@pytest.mark.long
def test_another_parent_wins_over_one_that_jp_has_dropped(laptop: Machine, desktop: Machine, child: int) -> None:
    """Although JP has written later."""
    desktop.run("set-parent", str(child), str(C))
    desktop.sync()
    write_as_jp(laptop.directory(child), LONG_AGO + 60 * SECOND, title="New")
    for machine in (laptop, desktop):
        assert not machine.sync()["conflicts"]
        assert states(machine, child) == f"jp-c{C}"
    quiet(laptop, desktop)


def test_a_new_machine_gets_a_parent_that_jp_has_dropped(
    tmp_path: Path, run: Run, bare: Path, new_laptop: Machine
) -> None:
    """Before the first sync, the state alone has it."""
    new_laptop.run("project", str(A), str(B), "--yes", *FLAT)
    new_laptop.run("set-parent", str(B), str(A), *FLAT)
    write_as_jp(new_laptop.directory(B), LONG_AGO + 60 * SECOND)
    new_laptop.sync()
    desktop = make_machine(tmp_path / "desktop", run)
    desktop.sync(str(bare))
    assert states(desktop, B) == states(new_laptop, B) == f"jp-c{A}"
    quiet(new_laptop, desktop)


def test_a_conversation_without_a_parent_any_more_stays_without_one(
    laptop: Machine, desktop: Machine, bare: Path
) -> None:
    laptop.run("set-parent", str(B), str(A))
    quiet(laptop, desktop)
    assert states(desktop, B) == f"jp-c{A}"
    laptop.run("set-parent", str(B), "--none")
    laptop.sync()
    assert ids(desktop.sync()["taken"]) == [f"jp-c{B}"]
    assert states(laptop, B) is states(desktop, B) is None
    quiet(laptop, desktop)


def test_a_long_name_stops_no_other_machine(laptop: Machine, desktop: Machine) -> None:
    (laptop.directory(A) / ("x" * 255)).write_text("x")
    laptop.append(B, 1, "b", LONG_AGO + 60 * SECOND)
    laptop.sync()
    assert ids(desktop.sync()["taken"]) == [f"jp-c{A}", f"jp-c{B}"]
    quiet(laptop, desktop)


@pytest.mark.parametrize("name", ["events.json.new", "events.json.new/x"])
def test_a_name_like_that_of_a_temporary_file_stays(laptop: Machine, desktop: Machine, name: str) -> None:
    path = laptop.directory(A) / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    laptop.sync()
    desktop.sync()
    laptop.append(A, 1, "b", LONG_AGO + 60 * SECOND)
    laptop.sync()
    desktop.sync()
    assert (desktop.directory(A) / name).read_text() == "mine"
    assert desktop.events(A) == 4


ODD = ("a\tb.txt", "a\nb.txt", "a\x7fb", "a\u0085b", "a\n/b")


@pytest.mark.long
@pytest.mark.parametrize("name", ODD)
def test_a_name_that_no_machine_takes_keeps_its_conversation_here_and_no_other(
    laptop: Machine, desktop: Machine, name: str
) -> None:
    path = laptop.directory(A) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    laptop.append(A, 1, "b", LONG_AGO + 60 * SECOND)
    laptop.append(B, 1, "b", LONG_AGO + 60 * SECOND)
    found = laptop.sync(code=4)
    assert ids(found["sent"]) == [f"jp-c{B}"]
    (held,) = found["held"]
    assert f"jp-c{A}: store:{laptop.directory(A).name}/{name}: " in held
    assert held.endswith("; rename the file there, then run the sync again")
    said = laptop.run("sync", code=4).output
    assert name not in said or name.isprintable()
    assert ids(desktop.sync()["taken"]) == [f"jp-c{B}"]
    path.rename(laptop.directory(A) / "fine")
    assert ids(laptop.sync()["sent"]) == [f"jp-c{A}"]
    assert ids(desktop.sync()["taken"]) == [f"jp-c{A}"]
    quiet(laptop, desktop)


@pytest.fixture
def untaken(laptop: Machine, desktop: Machine, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Send a record that no machine takes, as an earlier program did; return the file with the odd name."""
    assert desktop.contents == laptop.contents
    path = laptop.directory(A) / "a\tb"
    path.write_text("x")
    laptop.append(A, 1, "b", LONG_AGO + 60 * SECOND)
    with monkeypatch.context() as patch:
        patch.setattr("reconcile.remote.sync.unsendable", lambda *_: {})
        assert ids(laptop.sync()["sent"]) == [f"jp-c{A}"]
    for end in laptop.home.rglob("last-sync"):
        end.unlink()  # no version goes on from the end of an earlier version's sync
    return path


@pytest.mark.parametrize("name", ["git~1", "GIT~1. ", "git~1:x", "a\\.git", "\u200c.git"])
def test_a_name_that_is_gits_own_on_another_system_stops_no_machine(
    laptop: Machine, desktop: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """git fetches no tree with such a name, so one conversation would stop all others."""
    (laptop.directory(A) / name).write_text("x")
    laptop.append(A, 1, "b", LONG_AGO + 60 * SECOND)
    laptop.append(B, 1, "b", LONG_AGO + 60 * SECOND)
    sent = laptop.sync(code=4)
    assert "rename the file there" in sent["held"][0]
    assert ids(sent["sent"]) == [f"jp-c{B}"]
    unprotected = tmp_path / "gitconfig"
    unprotected.write_text("[core]\n\tprotectNTFS = false\n\tprotectHFS = false\n")
    with monkeypatch.context() as patch:  # an earlier program has sent it, with an earlier git
        patch.setattr("reconcile.remote.sync.unsendable", lambda *_: {})
        patch.setenv("GIT_CONFIG_GLOBAL", str(unprotected))
        laptop.sync()
    taken = desktop.sync(code=4)
    assert "names a file that is none of a conversation" in taken["held"][0]
    assert ids(taken["taken"]) == [f"jp-c{B}"]


@pytest.mark.long
@pytest.mark.parametrize("change", ["renamed", "removed", "edited, too"])
def test_the_machine_that_has_sent_a_refused_record_replaces_it(
    laptop: Machine, desktop: Machine, untaken: Path, change: str
) -> None:
    found = desktop.sync(code=4)
    assert found["held"] == [
        f"jp-c{A}: its record names a file that is none of a conversation: 'a\\tb'; it stays there"
    ]
    (held,) = laptop.sync(code=4)["held"]
    assert "the name has a control character" in held
    laptop.sync("--dry-run", code=4)
    if change == "removed":
        untaken.unlink()
    else:
        untaken.rename(untaken.with_name("fine"))
    if change == "edited, too":
        laptop.append(A, 1, "c", LONG_AGO + 90 * SECOND)
        set_key(laptop.directory(A), "title", "new", LONG_AGO + 90 * SECOND)
        assert laptop.half("pull", code=4)["held"]
    assert ids(laptop.sync("--dry-run")["sent"]) == [f"jp-c{A}"]
    assert ids(laptop.sync()["sent"]) == [f"jp-c{A}"]
    assert ids(desktop.sync()["taken"]) == [f"jp-c{A}"]
    quiet(laptop, desktop)
    assert desktop.events(A) == laptop.events(A)
    assert (desktop.directory(A) / "fine").exists() == (change != "removed")


def test_the_machine_that_has_sent_a_refused_record_buries_it(laptop: Machine, desktop: Machine, untaken: Path) -> None:
    laptop.run("rm", f"jp-c{A}", "--yes")
    assert not untaken.exists()
    assert ids(laptop.sync()["removed_there"]) == [f"jp-c{A}"]
    assert ids(desktop.sync()["removed_here"]) == [f"jp-c{A}"]
    quiet(laptop, desktop)


@pytest.mark.long
@pytest.mark.parametrize("change", ["edited", "removed", "as before"])
def test_no_other_machine_replaces_or_buries_a_refused_record(
    laptop: Machine, desktop: Machine, untaken: Path, bare: Path, change: str
) -> None:
    if change == "edited":
        desktop.append(A, 2, "c", LONG_AGO + 90 * SECOND)
    if change == "removed":
        desktop.run("rm", f"jp-c{A}", "--yes")
    tip = git(bare, "rev-parse", REF)
    for _ in range(2):
        (held,) = desktop.sync(code=4)["held"]
        assert held.endswith("'a\\tb'; it stays there")
    assert git(bare, "rev-parse", REF) == tip
    untaken.rename(untaken.with_name("fine"))
    laptop.sync()
    found = desktop.sync()
    laptop.sync()
    quiet(laptop, desktop)
    assert bool(found["forked"]) == (change == "edited")
    assert laptop.events(A) >= 4


@pytest.mark.long
def test_too_many_files_keep_their_conversation_here_and_no_other(
    laptop: Machine, desktop: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconcile.remote.tree._MOST", (1 << 16) + 3000)
    monkeypatch.setattr("reconcile.remote.sendable._NAMES", 5)
    beside = laptop.directory(A) / "many"
    beside.mkdir()
    for number in range(10):
        (beside / f"{number}").write_text("x")
    laptop.sync()
    for number in range(10, 40):
        (beside / f"{number}").write_text("x")
    laptop.append(B, 1, "b", LONG_AGO + 60 * SECOND)
    for _ in range(2):
        found = laptop.sync(code=4)
        (held,) = found["held"]
        assert held.startswith(f"jp-c{A}: it has 43 files, more than a sync takes")
    assert ids(desktop.sync()["taken"]) == [f"jp-c{A}", f"jp-c{B}"]
    for number in range(1, 40):
        (beside / f"{number}").unlink()
    assert ids(laptop.sync()["sent"]) == [f"jp-c{A}"]
    desktop.sync()
    quiet(laptop, desktop)


@pytest.fixture
def twins(laptop: Machine, desktop: Machine) -> tuple[Machine, Machine]:
    """Two machines that continue the same older copy, so that each forks the same newer version of the store."""
    laptop.run("project", str(A))
    (older,) = (laptop.project / ".jp" / "conversations").glob(f"{A}*")
    copies = [machine.project / ".jp" / "conversations" / older.name for machine in (laptop, desktop)]
    copies[1].parent.mkdir(exist_ok=True)
    shutil.copytree(older, copies[1])
    desktop.run()
    shutil.copytree(older, laptop.home / "older")
    laptop.append(A, 2, "n", LONG_AGO + SECOND)
    for machine, copy in zip((laptop, desktop), copies, strict=True):
        machine.sync()
        machine.run()
        shutil.rmtree(copy)
        shutil.copytree(laptop.home / "older", copy)
        append(copy, 1, machine.home.name[0], LONG_AGO + (2 + copies.index(copy)) * SECOND)
        machine.run()
        time.sleep(0.2)  # another id
    return laptop, desktop


def _forks(machine: Machine) -> list[str]:
    """Return the directories of the forks of A's newer version."""
    return [path.name for path in sorted(machine.store.rglob("*-diverged-*")) if '"n1"' in _text(path)]


def _text(path: Path) -> str:
    return (path / "events.json").read_text()


@pytest.mark.long
def test_machines_that_make_the_same_fork_keep_one(twins: tuple[Machine, Machine]) -> None:
    laptop, desktop = twins
    (here,), (there,) = _forks(laptop), _forks(desktop)
    assert here != there
    laptop.sync()
    planned, before = desktop.sync("--dry-run"), desktop.contents
    assert desktop.contents == before
    done = desktop.sync()
    for report in (planned, done):
        assert [entry["id"] for entry in report["replaced_forks"]] == [f"jp-c{there[:11]}"]
        assert not report["removed_here"]
        assert f"jp-c{here[:11]}" in [entry["id"] for entry in report["taken"]]
        assert f"jp-c{there[:11]}" not in [entry["id"] for entry in report["sent"]]
    assert _forks(laptop) == _forks(desktop) == [here]
    quiet(laptop, desktop)
    assert _forks(laptop) == _forks(desktop) == [here]
    desktop.run()
    quiet(laptop, desktop)
    assert f"jp-c{there[:11]}" in desktop.run("vault", "-v").output


@pytest.mark.long
def test_a_fork_that_was_sent_is_kept_when_another_machine_sends_the_same(twins: tuple[Machine, Machine]) -> None:
    laptop, desktop = twins
    (here,), (there,) = _forks(laptop), _forks(desktop)
    laptop.sync()
    laptop.sync()  # the next one looks only at changes
    desktop.run("project", there[:11])  # so that it is not replaced
    desktop.sync()
    for _ in range(2):
        found = laptop.sync()
        assert not any(found[key] for key in ("replaced_forks", "removed_here", "removed_there"))
    quiet(laptop, desktop)
    assert _forks(laptop) == _forks(desktop) == sorted([here, there])


@pytest.mark.long
def test_a_fork_that_another_remote_has_is_kept(twins: tuple[Machine, Machine], tmp_path: Path) -> None:
    laptop, desktop = twins
    forks = sorted([*_forks(laptop), *_forks(desktop)])
    second = make_bare(tmp_path / "second.git")
    for machine in twins:
        machine.run("remote", "add", "--name", "second", str(second))
    laptop.sync("origin")
    desktop.sync("second")
    for _ in range(2):
        for name in ("second", "origin"):
            for machine in twins:
                found = machine.sync(name)
                assert not any(found[key] for key in ("replaced_forks", "removed_here", "removed_there"))
    assert _forks(laptop) == _forks(desktop) == forks


@pytest.mark.long
def test_a_fork_is_kept_if_the_same_one_of_another_machine_cannot_be_taken(twins: tuple[Machine, Machine]) -> None:
    laptop, desktop = twins
    (here,), (there,) = _forks(laptop), _forks(desktop)
    laptop.sync()
    (desktop.store / here).write_text("a file in its place")
    found = desktop.sync(code=4)
    assert not found["replaced_forks"]
    assert there in [path.name for path in desktop.store.iterdir() if path.is_dir()]
    (desktop.store / here).unlink()
    desktop.sync()
    quiet(laptop, desktop)
    assert here in _forks(desktop)


@pytest.mark.long
def test_undo_of_a_sync_restores_the_fork_that_it_has_replaced(twins: tuple[Machine, Machine]) -> None:
    laptop, desktop = twins
    (here,), (there,) = _forks(laptop), _forks(desktop)
    laptop.sync()
    desktop.sync()
    text = desktop.run("undo", "--yes").stdout
    assert _forks(desktop) == [there], text
    desktop.run("redo", "--yes")
    assert _forks(desktop) == [here]
    quiet(laptop, desktop)
    assert _forks(laptop) == _forks(desktop) == [here]


@pytest.mark.long
@pytest.mark.parametrize("change", ["continued", "titled", "private", "published", "child", "accepted"])
def test_a_fork_with_work_of_its_own_is_kept(twins: tuple[Machine, Machine], change: str) -> None:
    laptop, desktop = twins
    (fork,) = (int(name[:11]) for name in _forks(desktop))
    if change == "continued":
        desktop.append(fork, 1, "m", LONG_AGO + 9 * SECOND)
    elif change == "titled":
        set_key(desktop.directory(fork), "title", "Mine", mtime_ns=LONG_AGO + 9 * SECOND)
    elif change == "private":
        desktop.run("local", str(fork), "--yes")
    elif change == "published":
        desktop.run("project", str(fork))
    elif change == "accepted":
        desktop.run("remote", "accept", "--yes")
    else:
        desktop.run("set-parent", str(B), str(fork))
    laptop.sync()
    found = desktop.sync()
    assert not found["replaced_forks"]
    assert fork in [int(entry["id"][4:]) for entry in found["sent"]]
    quiet(laptop, desktop, equal=change != "titled")  # JP renames the directory at its next write
