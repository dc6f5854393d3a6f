"""Which conversations are private on several machines (docs/design/remotes.md#rule-61)."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from reconcile import Workspace
from reconcile.apply.run import carry_out
from reconcile.remote.engine import RemoteError
from reconcile.remote.git.engine import GitEngine
from reconcile.remote.sync import Sync
from tests.support.library.conversations import mutable, say
from tests.support.projects.machines import Machine, make_machine, quiet
from tests.support.projects.world import LONG_AGO, SECOND, append, set_key

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from reconcile.remote.engine import Swap
    from tests.conftest import Run

A, B, C = 17528832000, 17528832010, 17528832020
REF = "refs/reconcile/jp-ab1cd"


def private(*machines: Machine) -> list[list[int]]:
    return [sorted(int(id_.removeprefix("jp-c")) for id_ in machine.private) for machine in machines]


def at_the_first_swap(monkeypatch: pytest.MonkeyPatch, machine: Machine, do: Callable[[], object]) -> None:
    """Have something happen before the first swap of a machine's next syncs."""
    swap, times = GitEngine.swap, iter(range(1))

    def late(self: GitEngine, expected: str | None, commit: str) -> Swap:
        if str(machine.home) in self.mirror and next(times, None) is not None:
            do()
        return swap(self, expected, commit)

    monkeypatch.setattr(GitEngine, "swap", late)


def test_a_sync_lists_what_another_machine_has_made_private(laptop: Machine, desktop: Machine) -> None:
    laptop.run("local", str(A))
    entry = {"id": f"jp-c{A}", "title": "talk"}
    sent = laptop.sync()
    assert (sent["private_here"], sent["private_no_longer"]) == ([], [])
    lines = desktop.run("sync", "--dry-run").stdout.splitlines()
    assert f"to make private here, as on another machine  talk  jp-c{A}" in lines
    assert lines[-1] == "origin: 1 conversation to make private here; a dry run changes nothing."
    assert desktop.sync()["private_here"] == [entry]
    desktop.run("project", str(A))
    desktop.sync()
    lines = laptop.run("sync").stdout.splitlines()
    assert f"no longer private here, as on another machine  talk  jp-c{A}" in lines
    assert lines[-1] == "origin: 1 conversation no longer private here."
    quiet(laptop, desktop)


@pytest.mark.parametrize("is_taken_back", [True, False], ids=["taken back", "made private there already"])
def test_a_local_that_changes_no_mark_decides_nothing(
    laptop: Machine, desktop: Machine, *, is_taken_back: bool
) -> None:
    """Found by stories 183000572 and 185000005: the other machine has published it, and each sync prints that."""
    first, other = (laptop, desktop) if is_taken_back else (desktop, laptop)
    first.run("local", str(A))
    for machine in (first, other) if is_taken_back else (first,):
        machine.sync()
    desktop.run("project", str(A))
    if is_taken_back:
        laptop.run("project", str(A))
    laptop.run("local", str(A))
    sent = laptop.sync()
    assert (sent["sent"], private(laptop, desktop)) == ([], [[A], []])
    assert f"no longer private on any machine  talk  jp-c{A}" in desktop.run("sync").stdout.splitlines()
    assert f"no longer private here, as on another machine  talk  jp-c{A}" in laptop.run("sync").stdout.splitlines()
    assert private(laptop, desktop) == [[], []]
    quiet(laptop, desktop)


@pytest.fixture
def third(tmp_path: Path, run: Run, bare: Path, desktop: Machine) -> Machine:
    """A machine that has what the laptop and the desktop have."""
    assert desktop.contents
    machine = make_machine(tmp_path / "third", run)
    machine.sync(str(bare))
    return machine


@pytest.mark.parametrize("is_sent", [True, False], ids=["sent before", "removed at once"])
def test_what_was_private_is_so_again_after_a_removal(laptop: Machine, desktop: Machine, *, is_sent: bool) -> None:
    laptop.run("local", str(A))
    if is_sent:
        laptop.sync()
    laptop.run("rm", str(A), "--yes")
    laptop.sync()
    desktop.append(A, 1, "b", LONG_AGO + SECOND)
    said = desktop.sync()
    assert [entry["id"] for entry in said["sent"]] == [f"jp-c{A}"]
    quiet(laptop, desktop)
    assert [machine.private for machine in (laptop, desktop)] == [{f"jp-c{A}"}] * 2


@pytest.mark.long
def test_what_was_made_private_while_another_machine_removed_it_is_so_again(
    laptop: Machine, desktop: Machine, third: Machine
) -> None:
    laptop.run("local", str(A))
    desktop.run("rm", str(A), "--yes")
    desktop.sync()
    assert [entry["id"] for entry in laptop.sync()["removed_here"]] == [f"jp-c{A}"]
    third.append(A, 1, "b", LONG_AGO + SECOND)
    third.sync()
    quiet(laptop, desktop, third)
    assert [machine.private for machine in (laptop, desktop, third)] == [{f"jp-c{A}"}] * 3


def test_what_was_private_is_so_again_from_a_worktree(laptop: Machine, desktop: Machine) -> None:
    desktop.run("project", str(A))
    laptop.run("local", str(A))
    laptop.run("rm", str(A), "--yes")
    laptop.sync()
    assert [entry["id"] for entry in desktop.sync()["removed_here"]] == [f"jp-c{A}"]
    (there,) = (desktop.project / ".jp" / "conversations").glob(f"{A}*")
    append(there, 1, "b", LONG_AGO + SECOND)
    desktop.run()
    quiet(desktop, laptop)
    assert [machine.private for machine in (laptop, desktop)] == [{f"jp-c{A}"}] * 2
    assert laptop.events(A) == 4


def test_what_a_pull_has_removed_stays_private(laptop: Machine, desktop: Machine, third: Machine) -> None:
    desktop.run("rm", str(A), "--yes")
    desktop.sync()
    laptop.run("local", str(A))
    assert [entry["id"] for entry in laptop.half("pull")["removed_here"]] == [f"jp-c{A}"]
    third.append(A, 1, "b", LONG_AGO + SECOND)
    third.sync()
    quiet(laptop, desktop, third)
    assert private(laptop, desktop, third) == [[A]] * 3


def test_the_mark_of_what_a_pull_has_removed_is_sent_with_the_tombstone(
    laptop: Machine, desktop: Machine, third: Machine
) -> None:
    desktop.run("rm", str(A), "--yes")
    desktop.sync()
    laptop.run("local", str(A))
    laptop.half("pull")
    assert laptop.sync()["commit"] is not None
    assert laptop.sync()["commit"] is None
    third.append(A, 1, "b", LONG_AGO + SECOND)
    third.sync()
    assert private(third) == [[A]]


def test_a_fork_of_what_another_machine_has_made_private_is_private(laptop: Machine, desktop: Machine) -> None:
    laptop.run("local", str(A))
    laptop.append(A, 1, "b", LONG_AGO + 2 * SECOND)
    laptop.sync()
    desktop.append(A, 2, "c", LONG_AGO + SECOND)
    (fork,) = desktop.sync()["forked"]
    quiet(laptop, desktop)
    assert [machine.private for machine in (laptop, desktop)] == [{f"jp-c{A}", fork["id"]}] * 2


def test_a_person_can_publish_what_was_removed_while_it_was_private(laptop: Machine, desktop: Machine) -> None:
    laptop.run("local", str(A))
    quiet(laptop, desktop)
    laptop.run("rm", str(A), "--yes")
    quiet(laptop, desktop)
    laptop.run("undo", "--yes")
    laptop.run("project", str(A))
    quiet(laptop, desktop)
    assert [machine.private for machine in (laptop, desktop)] == [set(), set()]


def test_an_undo_of_a_sync_changes_no_private_mark(laptop: Machine, desktop: Machine) -> None:
    laptop.run("local", str(A))
    laptop.append(A, 1, "b", LONG_AGO + SECOND)
    laptop.sync()
    desktop.sync()
    desktop.run("undo", "--yes")
    assert desktop.events(A) == 3
    assert private(laptop, desktop) == [[A], [A]]
    quiet(desktop, laptop, equal=False)
    assert private(laptop, desktop) == [[A], [A]]


def test_a_refused_undo_suggests_no_undo_of_a_sync_that_has_taken_a_mark_alone(
    laptop: Machine, desktop: Machine
) -> None:
    desktop.run("project", str(A), "--yes")
    laptop.append(A, 1, "b", LONG_AGO + 60 * SECOND)
    laptop.sync()
    desktop.sync()
    desktop.run()
    laptop.run("local", str(A))
    laptop.sync()
    desktop.sync()
    shown = desktop.run("undo", "--yes", code=4).output
    assert "no undo changes a private mark that a sync has taken; restore this conversation alone" in shown
    assert "undo that first" not in shown


def test_the_undo_of_a_removal_brings_back_a_private_conversation(laptop: Machine, desktop: Machine) -> None:
    laptop.run("local", str(A))
    laptop.run("rm", str(A), "--yes")
    laptop.sync()
    desktop.sync()
    desktop.run("undo", "--yes")
    assert desktop.events(A) == 3
    desktop.append(A, 1, "b", LONG_AGO + SECOND)
    quiet(desktop, laptop)
    assert private(laptop, desktop) == [[A], [A]]


def test_what_is_shared_again_is_private_if_it_was_removed_so(laptop: Machine, desktop: Machine) -> None:
    laptop.run("remote", "keep-here", str(A))
    desktop.run("local", str(A))
    desktop.sync()
    desktop.run("rm", str(A), "--yes")
    desktop.sync()
    laptop.sync()
    laptop.run("remote", "share", str(A))
    quiet(laptop, desktop)
    assert private(laptop, desktop) == [[A], [A]]
    assert laptop.events(A) == 3


class Killed(BaseException):
    """The end of the process."""


@pytest.mark.long
@pytest.mark.parametrize("end", ["killed", "refused"])
def test_a_mark_that_an_attempt_has_taken_is_no_change_of_this_machine(
    laptop: Machine, desktop: Machine, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    laptop.run("local", str(A))
    quiet(laptop, desktop)
    desktop.run("project", str(A))
    desktop.sync()
    laptop.append(B, 1, "b", LONG_AGO + SECOND)

    def fails() -> None:
        if end == "killed":
            raise Killed
        raise RemoteError("no access", "ask for it")

    with monkeypatch.context() as patch, laptop.at_work():
        at_the_first_swap(patch, laptop, fails)
        with pytest.raises(Killed) if end == "killed" else nullcontext():
            laptop.world.run("--workspace", laptop.project, "sync")
    assert private(laptop) == [[]]
    desktop.run("local", str(A))
    desktop.sync()
    quiet(laptop, desktop)
    assert private(laptop, desktop) == [[A], [A]]


def test_a_killed_attempt_before_its_run_takes_no_mark_away(
    laptop: Machine, desktop: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    desktop.run("local", str(A))
    desktop.sync()
    with monkeypatch.context() as patch, laptop.at_work():
        patch.setattr(Sync, "_apply", _die)
        with pytest.raises(Killed):
            laptop.world.run("--workspace", laptop.project, "sync")
    assert private(laptop) == [[]]
    quiet(laptop, desktop)
    assert private(laptop, desktop) == [[A], [A]]


def _die(*_: object) -> NoReturn:
    raise Killed


@pytest.mark.parametrize("is_killed", [False, True], ids=["lost race", "killed"])
def test_a_fork_of_an_earlier_attempt_is_private(
    laptop: Machine, desktop: Machine, monkeypatch: pytest.MonkeyPatch, *, is_killed: bool
) -> None:
    laptop.append(A, 1, "b", LONG_AGO + 2 * SECOND)
    laptop.sync()
    desktop.append(A, 2, "c", LONG_AGO + SECOND)

    def meanwhile() -> None:
        laptop.run("local", str(A))
        laptop.sync()
        if is_killed:
            raise Killed

    with monkeypatch.context() as patch, desktop.at_work():
        at_the_first_swap(patch, desktop, meanwhile)
        with pytest.raises(Killed) if is_killed else nullcontext():
            said = desktop.sync()
            assert [entry["id"] for entry in said["private_here"]] == [f"jp-c{A}"]
    quiet(desktop, laptop)
    assert private(laptop) == private(desktop)
    assert len(laptop.private) == 2


@pytest.mark.long
def test_a_mark_that_comes_to_a_tombstone_removes_nothing_again(
    laptop: Machine, desktop: Machine, third: Machine
) -> None:
    desktop.run("rm", str(A), "--yes")
    desktop.sync()
    third.sync()
    third.run("restore", str(A))
    laptop.run("local", str(A))
    laptop.sync()
    assert third.sync()["removed_here"] == []
    quiet(third, laptop, desktop)
    assert private(third, laptop, desktop) == [[A]] * 3
    assert third.events(A) == 3


def test_a_saved_plan_is_refused_if_a_mark_has_changed(laptop: Machine, desktop: Machine) -> None:
    plan = desktop.home / "plan"
    desktop.append(A, 1, "b", LONG_AGO + SECOND)
    laptop.run("local", str(A), str(B))
    laptop.sync()
    desktop.run("sync", "--out", str(plan))
    desktop.run("local", str(B))
    assert "changed since" in desktop.run("apply", str(plan), code=4).output


def test_a_saved_plan_makes_only_that_private_which_it_shows(laptop: Machine) -> None:
    plan = laptop.home / "plan"
    laptop.append(B, 1, "b", LONG_AGO + SECOND)
    laptop.run("sync", "--out", str(plan))
    laptop.run("local", str(A), "--yes")
    assert "changed since" in laptop.run("apply", str(plan), code=4).output
    plan.unlink()
    assert f"to make private on every machine  talk  jp-c{A}" in laptop.run("sync", "--out", str(plan)).stdout
    assert f"made private on every machine  talk  jp-c{A}" in laptop.run("apply", str(plan)).stdout
    quiet(laptop)


def test_a_mark_holds_for_what_a_program_writes_meanwhile(
    laptop: Machine, desktop: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop.run("local", str(A))
    laptop.sync()
    due = [True]

    def late(site: Any, *args: Any) -> Any:
        if due and site.where.is_of_remote:
            due.clear()
            with Workspace.open(desktop.project) as workspace, mutable(workspace, A) as mut:
                say(mut, "meanwhile")
        return carry_out(site, *args)

    monkeypatch.setattr("reconcile.engine.session.carry_out", late)
    desktop.run("sync")
    assert not due
    quiet(desktop, laptop)
    assert private(laptop, desktop) == [[A], [A]]
    assert laptop.events(A) == 4


_LOCAL = "local", str(A), "--yes"


def _retitle(machine: Machine) -> None:
    set_key(machine.directory(A), "title", "Another", mtime_ns=LONG_AGO + SECOND)


def _archive(machine: Machine) -> None:
    directory = machine.directory(A)
    (machine.store / ".archive").mkdir()
    directory.rename(machine.store / ".archive" / directory.name)


_CHANGES: dict[str, tuple[tuple[str, ...] | Callable[[Machine], None], ...]] = {
    "local": (_LOCAL,),
    "local twice": (_LOCAL, ("local", str(B), "--yes")),
    "local and a title": (_LOCAL, _retitle),
    "local and project": (_LOCAL, ("project", str(A))),
    "project": (("project", str(C)),),
    "archive": (_archive,),
    "local and archive": (_LOCAL, _archive),
    "set-parent": (("set-parent", str(A), str(B)),),
    "title": (_retitle,),
    "rm": (("rm", str(A), "--yes"),),
    "local and rm": (_LOCAL, ("rm", str(A), "--yes")),
    "keep-here": (("remote", "keep-here", str(A)), _LOCAL),
    "share": (("remote", "keep-here", str(A)), _LOCAL, ("remote", "share", str(A))),
}
_LISTS = ("sent", "taken", "forked", "removed_here", "removed_there", "private_there", "private_no_longer_there")


@pytest.mark.long
@pytest.mark.parametrize("change", _CHANGES)
@pytest.mark.parametrize("is_plain", [False, True], ids=["at once", "after a run"])
def test_a_dry_run_and_status_tell_what_the_sync_does(laptop: Machine, change: str, *, is_plain: bool) -> None:
    laptop.run("project", str(A), str(B))
    laptop.run("local", str(C), "--yes")
    laptop.sync()
    for step in _CHANGES[change]:
        laptop.run(*step) if isinstance(step, tuple) else step(laptop)
    if is_plain:
        laptop.run()
    _agree(laptop)


@pytest.mark.parametrize("is_there", [False, True], ids=["a new extra", "an extra removed"])
def test_a_dry_run_and_status_tell_of_an_extra(laptop: Machine, *, is_there: bool) -> None:
    extra = laptop.directory(A) / "notes.txt"
    if is_there:
        extra.write_text("x")
    laptop.sync()
    extra.unlink() if is_there else extra.write_text("x")
    _agree(laptop)


def _agree(machine: Machine) -> None:
    """Compare the dry run, `status` and the sync with each other."""
    planned, status = machine.sync("--dry-run"), " ".join(machine.run("status").stdout.split())
    done, after = machine.sync(), " ".join(machine.run("status").stdout.split())
    assert [[entry["id"] for entry in planned[name]] for name in _LISTS] == [
        [entry["id"] for entry in done[name]] for name in _LISTS
    ]
    sent = {entry["id"] for name in ("sent", "private_there", "private_no_longer_there") for entry in done[name]}
    removed = len(done["removed_there"])
    parts = [f"{len(sent)} conversation{'' if len(sent) == 1 else 's'} to send"]
    parts += [f"{removed} to remove there"] * bool(removed)
    assert f"remote origin: {', '.join(parts)}, 0 to take" in status
    assert "remote origin: 0 conversations to send, 0 to take" in after
    assert not any(machine.sync()[name] for name in _LISTS)


def test_a_sync_says_what_it_makes_private_everywhere(laptop: Machine, desktop: Machine) -> None:
    laptop.run("local", str(A), "--yes")
    lines = laptop.run("sync", "--dry-run").stdout.splitlines()
    assert lines == [
        f"to make private on every machine  talk  jp-c{A}",
        "",
        "origin: 1 conversation to make private on every machine; a dry run changes nothing.",
    ]
    lines = laptop.run("sync").stdout.splitlines()
    assert lines == [
        f"made private on every machine  talk  jp-c{A}",
        "",
        "origin: 1 conversation made private on every machine.",
    ]
    desktop.sync()
    desktop.run("project", str(A))
    desktop.append(A, 1, "b", LONG_AGO + SECOND)
    lines = desktop.run("sync").stdout.splitlines()
    assert lines == [
        f"sent  talk  jp-c{A}",
        f"no longer private on any machine  talk  jp-c{A}",
        "",
        "origin: 1 conversation sent, 1 no longer private on any machine.",
    ]


@pytest.mark.long
def test_a_sync_of_some_sends_no_mark_of_another(laptop: Machine, desktop: Machine) -> None:
    laptop.run("local", str(A), "--yes")
    laptop.append(B, 1, "b", LONG_AGO + SECOND)
    for half in ("sync", "push"):
        planned, done = (laptop.half(half, "--only", str(B), *words) for words in (["--dry-run"], []))
        assert planned["private_there"] == done["private_there"] == []
    desktop.sync()
    assert private(laptop, desktop) == [[A], []]
    assert [entry["id"] for entry in laptop.sync()["private_there"]] == [f"jp-c{A}"]
    quiet(laptop, desktop)
    assert private(laptop, desktop) == [[A], [A]]


def test_status_knows_the_marks_without_what_the_last_sync_has_saved(laptop: Machine, desktop: Machine) -> None:
    laptop.run("local", str(A), "--yes")
    laptop.sync()
    desktop.sync()
    for machine, change in ((laptop, ("project", str(A))), (desktop, ("local", str(B), "--yes"))):
        (machine.state / "remotes" / "origin" / "private").unlink()
        assert "remote origin: 0 conversations to send" in machine.run("status").stdout
        machine.run(*change)
        assert "remote origin: 1 conversation to send" in machine.run("status").stdout
        machine.sync()
        assert (machine.state / "remotes" / "origin" / "private").exists()
        assert "remote origin: 0 conversations to send" in machine.run("status").stdout
