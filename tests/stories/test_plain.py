"""The design texts' tree with any bytes in its files: nothing is invalid there, and nothing is held for it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

CONTENTS = {
    "the design text's": (b'{"parent_id": null}', b"[...]"),
    "nothing": (b"", b""),
    "no text": (b"\xff\xfe", b"\x00\x01"),
    "another JSON": (b"[1]", b'{"events": []}'),
    "no base configuration": (b'{"title": "A"}', b'[{"timestamp": "2026-01-01T00:00:00Z", "type": "x"}]'),
}
SPELLED = {"metadata.json": 0, "events.json": 1}


class Tree:
    """Both sides below one directory."""

    def __init__(self, root: Path, run: Run) -> None:
        self.root, self.run, self.hour = root, run, 1
        (root / "s").mkdir()

    def write(self, side: str, path: str, content: bytes) -> None:
        at = self.root / side / path
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_bytes(content)
        self.hour += 1
        os.utime(at, (self.hour * 3600, self.hour * 3600))

    def files(self, side: str) -> dict[str, bytes]:
        top = self.root / side
        return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}

    def reconcile(self, *args: str) -> str:
        sides = ("--format", "plain", "-w", self.root / "w", "-s", self.root / "s")
        result = self.run(*args, *sides)
        assert result.exit_code == 0, result.output
        again = self.run(*sides)
        assert "Nothing to do" in again.output, again.output
        return result.output


@pytest.mark.parametrize("name", CONTENTS)
def test_any_bytes_go_to_and_fro(name: str, tmp_path: Path, run: Run) -> None:
    tree = Tree(tmp_path, run)
    for file, at in SPELLED.items():
        tree.write("w", f"conversations/ROOT_A/{file}", CONTENTS[name][at])
    child = "conversations/ROOT_A/conversations/CHILD_B"
    tree.write("w", f"{child}/metadata.json", b'{"parent_id": "ROOT_A"}')
    tree.write("w", f"{child}/events.json", CONTENTS[name][1])
    tree.reconcile()
    assert tree.files("s")["conversations/CHILD_B/events.json"] == CONTENTS[name][1]
    assert tree.files("s")["conversations/ROOT_A/metadata.json"] == CONTENTS[name][0]
    tree.write("w", f"{child}/events.json", b"edited here")
    tree.write("s", "conversations/ROOT_A/events.json", b"edited there")
    tree.reconcile()
    for path in ("ROOT_A/events.json", "CHILD_B/events.json"):
        assert tree.files("s")[f"conversations/{path}"].startswith(b"edited")
    assert tree.files("w")["conversations/ROOT_A/events.json"] == b"edited there"
    tree.write("s", "conversations/ROOT_A/events.json", b"one")
    tree.write("w", "conversations/ROOT_A/events.json", b"the newer")
    tree.reconcile()
    assert tree.files("s")["conversations/ROOT_A/events.json"] == b"the newer"
    lost = 1 if name == "no base configuration" else 0
    assert len(list((tmp_path / "s" / "conversations").iterdir())) == 2 + lost, "a fork of events that are lost, alone"
    tree.reconcile("fork", "ROOT_A", "--last", "1")
    assert len(list((tmp_path / "s" / "conversations").iterdir())) == 3 + lost


def test_texts_that_a_run_finds_no_events_in_have_no_count(tmp_path: Path, run: Run) -> None:
    """`show` prints the two parts of this text, so that "no events" or 0 is wrong."""
    tree = Tree(tmp_path, run)
    tree.write("w", "conversations/notes/metadata.json", b"{}")
    tree.write("w", "conversations/notes/events.json", b'[{"text": "a"}, {"text": "b"}]')
    assert " events" not in tree.reconcile()
    assert "Events" not in tree.reconcile("ls")
    assert json.loads(tree.reconcile("ls", "--json"))["conversations"][0]["events"] is None
    tree.write("w", "conversations/talk/metadata.json", b"{}")
    tree.write("w", "conversations/talk/events.json", CONTENTS["no base configuration"][1])
    assert "+1 event " in tree.reconcile()
    assert {"  metadata: up to date", "  events: up to date"} <= set(tree.reconcile("status", "notes").splitlines())
    assert tree.reconcile("ls").splitlines()[0].split() == ["Title", "Id", "Events", "Last", "activity", "State"]


@pytest.mark.parametrize("content", [b"a text\n", b'[{"of": "another program"}]'])
def test_a_conflict_of_content_without_events_counts_none(content: bytes, tmp_path: Path, run: Run) -> None:
    tree = Tree(tmp_path, run)
    tree.write("w", "conversations/A/metadata.json", b"{}")
    tree.write("w", "conversations/A/events.json", content)
    tree.reconcile()
    tree.write("s", "conversations/A/events.json", content + b" store")
    tree.write("w", "conversations/A/events.json", content + b" here")
    sides = ("--format", "plain", "-w", tmp_path / "w", "-s", tmp_path / "s")
    for words in (("status",), ("--dry-run",)):
        shown = run(*words, *sides).output
        assert re.search(r"events: store \S+ \S+; workspace ", shown), shown
    (conflict,) = json.loads(run("--dry-run", "--json", *sides).stdout)["conflicts"]
    assert (conflict["store"]["events"], conflict["store"]["only"]) == (None, None)


def test_another_checkout_that_is_there_is_not_gone(tmp_path: Path, run: Run) -> None:
    tree = Tree(tmp_path, run)
    tree.write("w", "conversations/A/metadata.json", b"{}")
    tree.write("w", "conversations/A/events.json", b"[]")
    tree.reconcile()
    second = ("--format", "plain", "-w", tmp_path / "w2", "-s", tmp_path / "s")
    (tmp_path / "w2" / "conversations").mkdir(parents=True)
    assert run(*second, "--yes").exit_code == 0
    assert "exists" in run("checkouts", *second).output
    assert "gone" not in run("checkouts", *second).output


def test_doctor_says_nothing_of_jps_trash_where_jp_is_not(tmp_path: Path, run: Run) -> None:
    tree = Tree(tmp_path, run)
    tree.write("w", "conversations/A/metadata.json", b"{}")
    tree.write("w", "conversations/A/events.json", b"[]")
    tree.write("w", "conversations/readme.txt", b"of a person")
    tree.write("w", "conversations/A/events.json.tmp", b"[")
    tree.reconcile()
    for args in ((), ("--json",)):
        shown = tree.run("doctor", *args, "--format", "plain", "-w", tmp_path / "w", "-s", tmp_path / "s").output
        assert "It is not a conversation; reconcile leaves it alone." in shown
        assert "JP" not in shown
        assert ".trash" not in shown


def test_every_suggested_command_names_the_sides_that_were_named(tmp_path: Path, run: Run) -> None:
    """A command in a note, a hint or a notice works where it is pasted, as those on lines of their own do."""
    tree = Tree(tmp_path, run)
    for name in ("A", "B"):
        for file in SPELLED:
            tree.write("w", f"conversations/{name}/{file}", b"{}")
    tree.reconcile()
    sides = ("--format", "plain", "-w", tree.root / "w", "-s", tree.root / "s")
    named = f" --workspace {tree.root / 'w'} --store {tree.root / 's'} --format plain"

    tree.write("s", "conversations/A/events.json", b"[1]")
    tree.write("w", "conversations/A/events.json", b"[2]")
    assert run(*sides).exit_code == 0
    notice = " ".join(run("status", *sides).output.split())
    assert f":events{named}` brings the store's back" in notice, notice

    lost = run("diff", "A", *sides).output
    assert f":events{named}\n" in lost, lost
    found = run("find", "1", *sides).output
    assert re.search(rf"saved by run (\S+): reconcile show A@\1:events{re.escape(named)}\n", found), found

    shutil.rmtree(tree.root / "w/conversations/B")
    note = " ".join(run("--dry-run", *sides).output.split())
    assert f"restore it: reconcile project B{named} (all that were here: reconcile recover{named})" in note, note
    unknown = run("log", "nothing", *sides).stderr
    assert (
        f"list the runs: reconcile log{named}; the versions of a conversation: reconcile restore ID{named}" in unknown
    )
    assert run("rm", "A", "--yes", *sides).exit_code == 0
    assert run("undo", *sides).exit_code == 0
    hints = run("undo", *sides).stderr
    assert f"hint: redo that: reconcile redo{named}\n" in hints, hints
    assert f", or reconcile undo --yes{named}\n" in hints, hints


@pytest.mark.parametrize("name", ["-dash", "--take", "family \U0001f468\u200d\U0001f469", "it's a title of many words"])
def test_the_commands_of_a_conflict_can_be_pasted_whatever_the_id_is(name: str, tmp_path: Path, run: Run) -> None:
    tree = Tree(tmp_path, run)
    for id_ in (name, "other"):
        tree.write("w", f"conversations/{id_}/metadata.json", b"{}")
        tree.write("w", f"conversations/{id_}/events.json", b"[]")
    tree.reconcile()
    tree.write("s", f"conversations/{name}/events.json", b"a")
    tree.write("w", f"conversations/{name}/events.json", b"b")
    sides = ("--format", "plain", "-w", tmp_path / "w", "-s", tmp_path / "s")
    plan = json.loads(run("--dry-run", "--json", *sides).stdout)
    (line,) = (each for each in run("--dry-run", *sides).output.splitlines() if "--take store" in each)
    echo = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True, text=True).stdout
    words = echo.split("\0")[1:-1]
    assert json.loads(run(*words, "--dry-run", "--json").stdout)["policy"]["decisions"] == {name: "store"}
    for command in ("status", "diff", "show", "restore", "project", "--only", "vault"):
        result = run(command, words[1], *sides)
        assert "unknown option" not in result.output, result.output
        assert "no conversation has" not in result.output, result.output
    assert plan["conflicts"][0]["conversation"] == name


@pytest.mark.parametrize("name", ["amy@example.org", "a@2026"])
def test_an_id_with_an_at_sign_names_its_conversation(name: str, tmp_path: Path, run: Run) -> None:
    tree = Tree(tmp_path, run)
    for id_ in (name, name.partition("@")[0], "ab"):
        for file in SPELLED:
            tree.write("w", f"conversations/{id_}/{file}", id_.encode())
    tree.reconcile()
    sides = ("--format", "plain", "-w", tree.root / "w", "-s", tree.root / "s")
    assert f"\n- id: {name}\n" in run("show", name, *sides).output

    tree.write("s", f"conversations/{name}/events.json", b"the store's")
    tree.write("w", f"conversations/{name}/events.json", b"the workspace's")
    difference = run("diff", name, *sides).output
    assert "[-store-]{+workspace+}" in difference, difference
    tree.reconcile()
    tree.reconcile("restore", name)
    assert tree.files("w")[f"conversations/{name}/events.json"] == b"the store's"


def test_a_link_in_a_conversation_is_no_damage(tmp_path: Path, run: Run) -> None:
    tree = Tree(tmp_path, run)
    for file in SPELLED:
        tree.write("w", f"conversations/A/{file}", b"{}")
    tree.reconcile()
    for above in ("A/", ""):
        (tree.root / "w/conversations" / f"{above}link").symlink_to("/etc/passwd")
    result = run("doctor", "--format", "plain", "-w", tree.root / "w", "-s", tree.root / "s")
    assert "  workspace:A/link: a symbolic link, which is never followed\n" in result.output, result.output
    assert "  workspace:link: a symbolic link in the place of a directory\n" in result.output, result.output
    assert "\n1 error, 1 note.\n" in result.output, result.output
