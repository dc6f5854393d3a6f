"""The listings of the tree design: flat with a Root column, roots, a subtree, the tree with its branches drawn."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.world import LONG_AGO, SECOND, append, events, set_key, write_conversation

if TYPE_CHECKING:
    from tests.support.projects.world import World

A, B, C, D, E, F = range(17528832001, 17528832061, 10)


@pytest.fixture
def world(world: World) -> World:
    """A with B and D below it, C below B; E by itself; F archived."""
    write_conversation(world.workspace / str(A), "Refactor error handling", events(3))
    write_conversation(world.workspace / str(B), "Alternative approach", events(2), parent=A)
    write_conversation(world.workspace / str(C), "Deeper exploration", events(5), parent=B)
    write_conversation(world.workspace / str(D), "Original with tests", events(4), parent=A)
    write_conversation(world.workspace / str(E), "Fix the pipeline", events(1))
    write_conversation(world.workspace / ".archive" / str(F), "Old times", events(1))
    world.reconcile("--yes")
    return world


def listed(world: World, *words: str) -> list[str]:
    """Return the lines of a listing."""
    result = world.run("ls", *words, "--workspace", world.project)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def ids(lines: list[str]) -> list[int]:
    """Return the conversations of a listing in its order."""
    return [int(word.removeprefix("jp-c")) for line in lines for word in line.split() if word.startswith("jp-c")]


def test_flat_with_a_root_column(world: World) -> None:
    head, *rows = listed(world)[:-1]
    assert head.endswith("Root")
    roots = {line.split("jp-c")[1].split()[0]: line.split("jp-c")[2:] for line in rows}
    assert roots == {str(A): [], str(B): [str(A)], str(C): [str(A)], str(D): [str(A)], str(E): []}


def test_roots_only(world: World) -> None:
    """No Root column: all of them are roots."""
    lines = listed(world, "--root")
    assert ids(lines) == [A, E]
    assert "Root" not in lines[0].split()


def test_tree_has_no_effect_on_the_roots(world: World) -> None:
    """``--tree`` is accepted with ``--root``: roots have no visible children in that view."""
    assert listed(world, "--root", "--tree") == listed(world, "--root")
    assert listed(world, "--tree", "--root", "--json") == listed(world, "--root", "--json")


def test_descendants(world: World) -> None:
    assert ids(listed(world, f"--root={A}")) == [B, C, D]
    assert ids(listed(world, f"--root={B}")) == [C]
    assert "no conversations" in listed(world, f"--root={E}")


def test_the_tree(world: World) -> None:
    titles = [line.partition("jp-c")[0].rstrip() for line in listed(world, "--tree")[1:-1]]
    assert titles == [
        "Refactor error handling",
        "├── Alternative approach",
        "│   └── Deeper exploration",
        "└── Original with tests",
        "Fix the pipeline",
    ]


def test_a_subtree_with_the_one_at_its_top(world: World) -> None:
    titles = [line.partition("jp-c")[0].rstrip() for line in listed(world, "--tree", f"--root={B}")[1:]]
    assert titles == ["Alternative approach", "└── Deeper exploration"]


def test_archived(world: World) -> None:
    """They are counted below the others, and listed when asked for; nothing is below them."""
    assert listed(world)[-1] == "1 archived (--archived lists it)"
    assert ids(listed(world, "--archived")) == [F]
    result = world.run("ls", f"--root={F}", "--workspace", world.project)
    assert result.exit_code == 2
    assert "is archived, so it has no descendants" in result.stderr


def test_json_says_parent_and_root(world: World) -> None:
    found = json.loads("\n".join(listed(world, "--tree", "--json")))["conversations"]
    assert [(each["conversation"], each["parent"], each["root"]) for each in found] == [
        (f"jp-c{A}", None, f"jp-c{A}"),
        (f"jp-c{B}", f"jp-c{A}", f"jp-c{A}"),
        (f"jp-c{C}", f"jp-c{B}", f"jp-c{A}"),
        (f"jp-c{D}", f"jp-c{A}", f"jp-c{A}"),
        (f"jp-c{E}", None, f"jp-c{E}"),
    ]


def test_a_part(world: World) -> None:
    """``--only`` and ``--below`` name what is listed, also in the drawing; what is archived elsewhere isn't counted."""
    rows = listed(world, "--below", str(B))[1:]
    assert [[row.split("jp-c")[number].split()[0] for number in (1, 2)] for row in rows] == [
        [str(B), str(A)],
        [str(C), str(A)],
    ]
    drawn = [line.split("jp-c")[0].rstrip() for line in listed(world, "--tree", "--below", str(B), "--only", str(E))]
    assert drawn[1:] == ["Alternative approach", "└── Deeper exploration", "Fix the pipeline"]
    assert ids(listed(world, "--tree", f"--root={A}", "--only", str(D))) == [A, D]
    assert ids(listed(world, "--root", "--only", str(E), "--only", str(B))) == [E]
    assert ids(listed(world, "--archived", "--only", str(E))) == []
    assert "archived" not in listed(world, f"--root={A}")[-1]


def test_a_part_is_counted_alone(world: World) -> None:
    """Neither what a run over a part leaves out, nor what is said of it, is its business."""
    write_conversation(world.workspace / str(E + 10), "New", events(1))
    shutil.rmtree(world.workspace / str(E))
    result = world.run("--only", str(B), "--dry-run", "--workspace", world.project).stdout
    assert result.endswith("Nothing to do. 1 conversation: 1 up to date.\n")
    assert "deleted from the workspace" not in result
    status = world.run("status", "--below", str(B), "--workspace", world.project).stdout
    assert status.endswith("2 conversations: 2 up to date.\nNothing to do.\n")


def test_the_state_is_that_of_status(world: World) -> None:
    """A conflict, an edit, an older version, a private one and one that nothing happened to; F is archived."""
    world.reconcile("local", f"jp-c{B}", "--yes", settled=False)
    (grows,) = world.workspace.glob(f"{A}*")
    stale = (grows / "events.json").read_bytes()
    append(grows, 2, "b", LONG_AGO + SECOND)
    world.reconcile()
    (grows / "events.json").write_bytes(stale)
    for side in (world.store, world.workspace):
        (found,) = side.rglob(f"{D}*")
        set_key(found, "title", side.parent.name, LONG_AGO + SECOND)
    listing = json.loads(world.run("ls", "--json", "--workspace", world.project).stdout)["conversations"]
    archived = json.loads(world.run("ls", "--json", "--archived", "--workspace", world.project).stdout)["conversations"]
    status = json.loads(world.run("status", "--json", "-v", "--workspace", world.project).stdout)["conversations"]
    states = {each["conversation"]: each["word"] for each in status}
    assert {each["conversation"]: each["state"] for each in (*listing, *archived)} == states
    assert {states[f"jp-c{each}"] for each in (A, D, E)} == {"behind", "conflict", "in-sync"}
    text = {line.split("  ")[0].strip(): line for line in listed(world)}
    assert "left alone (older)" in text["Refactor error handling"]
    assert "up to date" in text["Fix the pipeline"]
    assert not any("both" in line for line in text.values())
