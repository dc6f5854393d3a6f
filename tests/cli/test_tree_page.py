"""``ls --tree --html``: one page that holds the tree and all contents, and nothing that could act."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import stat
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.world import event, events, shown, write_conversation
from tests.support.tree_pages import FIRST, PAYLOADS, Page, write_hostile

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.projects.world import World

A, B, C, D, E, F = range(17528832001, 17528832061, 10)


@pytest.fixture
def world(world: World) -> World:
    """A with B below it, C below B; D in the store only; E archived."""
    write_conversation(world.workspace / str(A), "Refactor error handling", events(3))
    write_conversation(
        world.workspace / str(B), "Alternative approach", [event(5, "Über **alles**\n<b>x</b>")], parent=A
    )
    write_conversation(world.workspace / str(C), "Deeper exploration", events(5), parent=B)
    write_conversation(world.workspace / ".archive" / str(E), "Old times", events(1))
    world.reconcile("--yes")
    write_conversation(world.store / str(D), "Letter", events(2))
    return world


def written(world: World, *words: str | Path) -> Page:
    """Return the page that ``ls --tree --html`` writes."""
    path = world.project.parent / "tree.html"
    result = world.run("ls", "--tree", "--html", path, *words, "--workspace", world.project)
    assert result.exit_code == 0, result.output
    return Page(path.read_text(encoding="utf-8"))


def test_page_has_the_tree_and_the_states(world: World) -> None:
    page = written(world)
    assert [(node["depth"], node["title"], node["state"], node["private"]) for node in page.nodes] == [
        (0, "Refactor error handling", "in-sync", 0),
        (1, "Alternative approach", "in-sync", 0),
        (2, "Deeper exploration", "in-sync", 0),
        (0, "Letter", "available", 1),
    ]
    assert page.data["words"] == {"in-sync": "up to date", "available": "store only"}
    assert page.nodes[0]["last"] == 1767225720000
    assert "4 conversations, " in page.all("p", id="about")[0]
    assert page.all("b") == ["1 private"]


def test_page_has_the_contents_in_the_order_of_the_tree(world: World) -> None:
    contents = written(world).contents
    assert [len(turns) for _, _, turns in contents] == [3, 1, 5, 2]
    assert contents[1][2] == [["u", "chat_request", "2026-01-01T00:05:00Z", "Über **alles**\n<b>x</b>"]]


def test_page_loads_nothing_and_runs_only_its_own_script(world: World) -> None:
    path = world.project.parent / "tree.html"
    page = written(world)
    (policy,) = (e.attributes["content"] for e in page.elements if e.attributes.get("http-equiv"))
    (style,) = page.all("style")
    scripts = [
        text for e, text in zip(page.elements, page.texts, strict=True) if e.tag == "script" and not e.attributes
    ]
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (*scripts, style)]
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'"
    )
    names = {name for element in page.elements for name in element.attributes}
    assert not names & {"src", "href", "srcset", "action", "style"}
    assert not {name for name in names if name.startswith("on")}
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"https?:|//[a-z]+\.|url\(|@import|innerHTML|insertAdjacentHTML|document\.write|eval\(", text)


def test_no_text_of_a_conversation_is_markup(world: World) -> None:
    before = {(element.tag, *element.attributes) for element in written(world).elements} - {("b",)}
    write_hostile(world)
    page = written(world, "--root", f"jp-c{FIRST}")
    assert {(element.tag, *element.attributes) for element in page.elements} == before
    titles = [node["title"] for node in page.nodes]
    assert titles[:-2] == list(PAYLOADS[:-2])
    assert titles[-2] == "evil\\u202egnp.exe \\u2066\\u0000\\u001b[31m"
    assert [turns[0][3] for _, _, turns in page.contents] == titles
    text = (world.project.parent / "tree.html").read_text(encoding="utf-8")
    assert "hacked = 1</script>" not in text
    assert not any(char in text for char in "\u202e\u2066\0\x1b")


def test_a_part_of_the_tree(world: World) -> None:
    assert [node["title"] for node in written(world, "--below", f"jp-c{B}").nodes] == [
        "Alternative approach",
        "Deeper exploration",
    ]
    page = written(world, "--only", f"jp-c{C}", "--only", f"jp-c{A}")
    assert [(node["depth"], node["id"]) for node in page.nodes] == [(0, f"jp-c{A}"), (0, f"jp-c{C}")]
    assert len(page.contents) == 2
    assert [node["depth"] for node in written(world, "--root", f"jp-c{B}").nodes] == [0, 1]


def test_damaged_conversation_is_on_the_page_with_a_note(world: World) -> None:
    (path,) = world.workspace.rglob(f"{C}*")
    (path / "events.json").write_text("[{")
    (stored,) = world.store.rglob(f"{C}*")
    (stored / "events.json").write_text("[{")
    page = written(world)
    node = next(node for node in page.nodes if node["id"] == f"jp-c{C}")
    assert (node["events"], node["last"]) == (None, None)
    assert page.data["words"][node["state"]] == "blocked"
    _, notes, turns = page.contents[2]
    assert turns == []
    assert len(notes) == 1
    assert "events.json" in notes[0]


def test_characters_that_are_no_text(world: World) -> None:
    path = write_conversation(world.workspace / str(F), "", [])
    (path / "metadata.json").write_text(json.dumps({"title": "\udc80 half"}))
    (path / "events.json").write_text(json.dumps([event(1, "a\udfffb")]))
    page = written(world)
    assert [node["title"] for node in page.nodes if node["id"] == f"jp-c{F}"] == [None]
    assert len(page.contents) == len(page.nodes)


def test_file_is_private_and_replaces_what_was_there(world: World, tmp_path: Path) -> None:
    path, other = world.project.parent / "tree.html", tmp_path / "other"
    other.write_text("mine")
    path.symlink_to(other)
    written(world)
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600
    assert stat.S_ISREG(path.lstat().st_mode)
    assert other.read_text() == "mine"
    assert [name for name in os.listdir(path.parent) if name.endswith(".tmp")] == []


def test_old_page_stays_if_the_new_one_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    path = world.project.parent / "tree.html"
    path.write_text("old")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    result = world.run("ls", "--tree", "--html", path, "--workspace", world.project)
    monkeypatch.undo()
    assert result.exit_code == 1
    assert "No space left on device" in result.stderr
    assert path.read_text() == "old"
    assert [name for name in os.listdir(path.parent) if name.endswith(".tmp")] == []


def test_lines_on_the_screen(world: World) -> None:
    path = world.project.parent / "tree.html"
    result = world.run("ls", "--tree", "--html", path, "--workspace", world.project)
    assert result.stdout.splitlines() == [
        f"{path}: 4 conversations with all contents, 1 private.",
        "Only you can read the file; whoever you send it to can read everything in it.",
    ]
    inside = world.run("ls", "--tree", "--html", world.project / "tree.html", "--workspace", world.project)
    assert inside.stdout.splitlines()[-1] == "It is inside the project: do not commit it."


def test_standard_output(world: World) -> None:
    result = world.run("ls", "--tree", "--html", "-", "--workspace", world.project)
    assert len(Page(result.stdout).nodes) == 4
    assert (
        result.stderr == "the page holds 4 conversations with all contents, 1 private; whoever has it can read them\n"
    )


@pytest.mark.parametrize("place", ["workspace", "store", "link", "state", "directory", "missing"])
def test_refused_places(place: str, world: World, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(world.workspace)
    directory, problem = {
        "workspace": (world.project / ".jp", "is inside the workspace"),
        "store": (world.store, "is inside the store"),
        "link": (tmp_path / "link", "is inside the workspace"),
        "state": (world.state, "is inside the state directory"),
        "directory": (tmp_path, "is a directory"),
        "missing": (tmp_path / "missing", "No such file or directory"),
    }[place]
    path = directory if place == "directory" else directory / "tree.html"
    before = world.stamps()
    result = world.run("ls", "--tree", "--html", path, "--workspace", world.project)
    assert result.exit_code == 1
    assert f"error: {shown(path)}: {problem}" in result.stderr
    assert "hint: " in result.stderr
    assert world.stamps() == before
    assert not (directory / "tree.html").exists()


@pytest.mark.parametrize("words", [(), ("--tree", "--json"), ("--tree", "--archived"), ("--tree", "--root")])
def test_what_does_not_go_together(words: tuple[str, ...], world: World, tmp_path: Path) -> None:
    result = world.run("ls", "--html", tmp_path / "tree.html", *words, "--workspace", world.project)
    assert result.exit_code == 2
    problem = (
        "--html is for ls --tree, without" if words else "--html also needs --tree\nhint: reconcile ls --tree --html"
    )
    assert problem in result.stderr
    assert not (tmp_path / "tree.html").exists()
