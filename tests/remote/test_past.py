"""`show` and `diff` read the version of a conversation that a remote had at a commit, without the network."""

from __future__ import annotations

import base64
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.projects.machines import git, make_bare, make_machine
from tests.support.projects.world import LONG_AGO, SECOND

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.machines import Machine

REF = "refs/reconcile/jp-ab1cd"
A, B = 17528832000, 17528832010
ID = f"jp-c{A}"


def shown(machine: Machine, version: str) -> dict[str, Any]:
    found = json.loads(machine.run("show", "--json", version).stdout)
    assert isinstance(found, dict)
    return found


@pytest.fixture(params=["plain", "encrypted"])
def machine(request: pytest.FixtureRequest, tmp_path: Path, run: Run) -> Machine:
    made = make_machine(tmp_path / "one", run)
    made.write(A)
    made.write(B)
    (made.directory(A) / "notes.txt").write_text("first notes")
    url = str(make_bare(tmp_path / "r.git"))
    made.run("remote", "add", *(["--encrypt"] if request.param == "encrypted" else []), url)
    made.sync()
    return made


def commits(tmp_path: Path) -> list[str]:
    """The commits with conversations: the first one of an encrypted remote has its keys alone."""
    return git(tmp_path / "r.git", "rev-list", REF, "--", "c").splitlines()


def test_a_version_is_shown_as_the_remote_had_it(machine: Machine, tmp_path: Path) -> None:
    before = machine.contents
    machine.append(A, 2, "b", LONG_AGO + SECOND)
    (machine.directory(A) / "notes.txt").write_text("later notes")
    machine.sync()
    newest, first = commits(tmp_path)
    shutil.rmtree(tmp_path / "r.git")  # the mirror is enough
    listed = {
        each["file"]: base64.b64decode(each["content"]) for each in shown(machine, f"{ID}@origin:{first}")["versions"]
    }
    assert listed == {path.rpartition("/")[2]: content for path, content in before.items() if path.startswith(str(A))}
    raw = machine.run("show", "--raw", f"{ID}@origin:{first[:8]}").output
    assert "first notes" in raw
    assert "later notes" not in raw
    assert "later notes" in machine.run("show", "--raw", f"{ID}@origin").output
    assert shown(machine, f"{ID}@origin")["name"] == f"{ID}@origin:{newest[:10]}"
    (path,) = [path for path in before if path.startswith(f"{A}") and path.endswith("events.json")]
    part = machine.run("show", "--raw", f"{ID}@origin:{first}:events")
    assert before[path].decode().splitlines()[-1] in part.output
    assert f"{ID}@origin:{first[:10]}" in machine.run("show", f"{ID}@origin").output
    found = json.loads(machine.run("diff", "--json", f"{ID}@origin:{first}").stdout)
    assert found["right_only"]
    assert not found["left_only"]


def test_a_removed_conversation_is_shown(machine: Machine, tmp_path: Path) -> None:
    machine.run("rm", str(A), "--yes")
    machine.sync()
    newest, first = commits(tmp_path)
    assert "first notes" in machine.run("show", "--raw", f"{ID}@origin:{first}").output
    hint = machine.run("show", f"{ID}@origin:{newest}", code=2).output
    assert f"{ID}@origin:{first[:10]}" in hint


def of_a(machine: Machine) -> dict[str, bytes]:
    return {path: content for path, content in machine.contents.items() if path.startswith(str(A))}


def test_a_version_is_restored_and_travels(machine: Machine, tmp_path: Path) -> None:
    before = of_a(machine)
    machine.append(A, 2, "b", LONG_AGO + SECOND)
    (machine.directory(A) / "notes.txt").write_text("later notes")
    machine.sync()
    later, first = of_a(machine), commits(tmp_path)[-1]
    assert "notes.txt" in machine.run("restore", f"{ID}@origin:{first[:8]}", "--dry-run").output
    assert of_a(machine) == later
    machine.run("restore", f"{ID}@origin:{first}")
    assert of_a(machine) == before
    machine.run("undo", "--yes")
    assert of_a(machine) == later
    machine.run("restore", f"{ID}@origin:{first}")
    machine.sync()
    newest, oldest = (shown(machine, f"{ID}@{place}")["versions"] for place in ("origin", f"origin:{first}"))
    assert [each["digest"] for each in newest] == [each["digest"] for each in oldest]
    (machine.directory(A) / "notes.txt").write_text("later notes")
    machine.append(A, 1, "c", LONG_AGO + 2 * SECOND)
    later = of_a(machine)
    machine.run("restore", f"{A}@origin:{first}:notes.txt")
    assert of_a(machine) == later | {path: each for path, each in before.items() if path.endswith("notes.txt")}
    assert "has no nothing" in machine.run("restore", f"{ID}@origin:{first}:nothing", code=2).output


def test_a_removed_conversation_is_restored_in_the_store(machine: Machine, tmp_path: Path) -> None:
    before = of_a(machine)
    machine.run("rm", str(A), "--yes")
    machine.sync()
    shutil.rmtree(machine.state / "vault" / "objects")  # the remote alone has it
    first = commits(tmp_path)[-1]
    machine.run("restore", f"{ID}@origin:{first}")
    assert of_a(machine) == before
    machine.sync()
    assert shown(machine, f"{ID}@origin")["versions"]


def test_a_saved_plan_of_a_restore_is_applied(machine: Machine, tmp_path: Path) -> None:
    before = of_a(machine)
    machine.append(A, 2, "b", LONG_AGO + SECOND)
    machine.sync()
    first, plan = commits(tmp_path)[-1], tmp_path / "plan.json"
    machine.run("restore", f"{ID}@origin:{first}", "--dry-run", "--out", str(plan))
    machine.run("apply", str(plan))
    assert of_a(machine) == before


def test_nothing_is_restored_that_the_remote_does_not_have(machine: Machine) -> None:
    assert "no commit" in machine.run("restore", f"{ID}@origin:0000000", code=2).output
    other = machine.run("restore", f"jp-c{B + 1}@origin", code=2).output
    assert f"{B + 1}" in other


def test_wrong_commits_and_remotes(machine: Machine) -> None:
    for place in ("origin:0000000", "origin:zz", "origin:-h", "origin:HEAD"):
        assert "no commit" in machine.run("show", f"{ID}@{place}", code=2).output
    assert "nowhere" in machine.run("show", f"{ID}@nowhere:1234567", code=2).output
    assert f"{B}" in machine.run("show", f"jp-c{B}@origin").output
    assert machine.run("show", f"jp-c{B + 1}@origin", code=2).output


def test_what_another_machine_sent_before_new_keys_is_shown(tmp_path: Path, run: Run) -> None:
    one, other = (make_machine(tmp_path / name, run) for name in ("one", "other"))
    one.write(A)
    one.run("remote", "add", "--encrypt", str(make_bare(tmp_path / "r.git")))
    one.sync()
    one.append(A, 1, "b", LONG_AGO + SECOND)
    one.sync()
    one.run("remote", "key", "rotate")
    one.sync()
    said = other.run("sync", str(tmp_path / "r.git"), code=4).output
    one.run("remote", "key", "add", next(word.rstrip(";") for word in said.split() if word.startswith("age1")))
    other.sync()
    first = commits(tmp_path)[-1]
    assert shown(other, f"{ID}@origin:{first}")["versions"]


@pytest.mark.parametrize("name", ["store", "workspace", "2026", "20260515-10"])
def test_a_name_that_means_another_version_is_refused(machine: Machine, tmp_path: Path, name: str) -> None:
    url = str(make_bare(tmp_path / "s.git"))
    assert "can't be the name" in machine.run("remote", "add", url, "--name", name, code=4).output
