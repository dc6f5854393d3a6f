"""The whole of a briefing, older forms of a workspace, and what the program itself answers.

See docs/design/formats/claudesidian.md#loadworkspace. The corpus and the edge cases show the rest.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from reconcile.formats.claudesidian.briefing import (
    Agent,
    Surroundings,
    VaultFile,
    Version,
    answer_unknown,
    brief,
    load_workspace,
    read_agents,
    short_name,
    version_of,
)
from tests.support.formats.claudesidian import session, workspace

STATE = {
    "id": "st1",
    "name": "Half way",
    "created": 40,
    "state": {
        "description": "in the middle",
        "context": {"activeTask": "write", "nextSteps": ["go on", "stop"]},
        "state": {"metadata": {"tags": ["draft"]}},
    },
}
OLDER = {"id": "st2", "name": "Before", "created": 50, "snapshot": {"snapshot": {"activeTask": "read"}}}
EMPTY = {"id": "st3", "name": "Empty", "created": 30, "description": "of the migration", "tags": ["lost"]}

VALUE = workspace(
    "ws_x",
    "My project",
    description="A project",
    rootFolder="Notes",
    context={
        "purpose": "To learn",
        "currentGoal": "This page",
        "workflows": [{"name": "Daily", "when": "mornings", "steps": "read"}],
        "keyFiles": ["Notes/a.b.md", "Notes/LICENSE", {"category": "c", "files": {"Plan": "Notes/p.md", "odd": 1}}],
        "preferences": "Be short.",
        "dedicatedAgent": {"agentId": "a1", "agentName": "Ann"},
    },
    sessions={
        "s1": session("s1", "t1", startTime=10, description="the first"),
        "s2": session(
            "s2", "t2", "t3", startTime=20, isActive=False, states={"st1": STATE, "st2": OLDER, "st3": EMPTY}
        ),
    },
)
AROUND = Surroundings(
    (
        VaultFile("Notes/b.md", 7),
        VaultFile("Notes/a/c.md", 9),
        VaultFile("Notes/d.md", 9),
        VaultFile("NotesToo/x.md", 99),
    ),
    frozenset({"Notes", "Notes/a", "NotesToo"}),
    (Agent("a1", "Ann of the settings", "You teach."),),
)


def test_everything_in_its_place() -> None:
    assert brief(VALUE, AROUND, 2) == {
        "id": "ws_x",
        "name": "My project",
        "description": "A project",
        "rootFolder": "Notes",
        "created": 1000,
        "lastAccessed": 2000,
        "isActive": True,
        "purpose": "To learn",
        "currentGoal": "This page",
        "recentActivity": [
            {"time": 1, "session": "s1", "text": "t1"},
            {"time": 1, "session": "s2", "text": "t2"},
        ],
        "workflows": [{"name": "Daily", "when": "mornings", "steps": "read"}],
        "folderExists": True,
        "workspaceStructure": ["Notes/a/c.md", "Notes/b.md", "Notes/d.md"],
        "recentFiles": [{"path": "Notes/a/c.md", "modified": 9}, {"path": "Notes/d.md", "modified": 9}],
        "keyFiles": [
            {"name": "a.b", "path": "Notes/a.b.md"},
            {"name": "LICENSE", "path": "Notes/LICENSE"},
            {"name": "Plan", "path": "Notes/p.md"},
        ],
        "preferences": "Be short.",
        "sessions": [
            {
                "id": "s2",
                "name": "s2",
                "description": None,
                "created": 20,
                "isActive": False,
                "traces": 2,
                "states": 3,
            },
            {
                "id": "s1",
                "name": "s1",
                "description": "the first",
                "created": 10,
                "isActive": True,
                "traces": 1,
                "states": 0,
            },
        ],
        "states": [
            {
                "id": "st2",
                "name": "Before",
                "description": None,
                "sessionId": "s2",
                "created": 50,
                "tags": [],
                "activeTask": "read",
                "nextSteps": [],
                "hasContent": True,
            },
            {
                "id": "st1",
                "name": "Half way",
                "description": "in the middle",
                "sessionId": "s2",
                "created": 40,
                "tags": ["draft"],
                "activeTask": "write",
                "nextSteps": ["go on", "stop"],
                "hasContent": True,
            },
        ],
        "agent": {"id": "a1", "name": "Ann of the settings", "systemPrompt": "You teach."},
        "unread": [],
    }


def test_a_state_that_lost_its_content_has_what_its_event_says() -> None:
    empty = brief(VALUE, AROUND, 3)["states"][2]
    assert (empty["id"], empty["description"], empty["tags"], empty["hasContent"]) == (
        "st3",
        "of the migration",
        ["lost"],
        False,
    )


def test_where_little_is_known() -> None:
    found = brief({"id": "ws_x"}, AROUND, 5)
    assert {name for name, value in found.items() if value} == {
        "id",
        "folderExists",
        "workspaceStructure",
        "recentFiles",
    }
    assert len(found["workspaceStructure"]) == 4, "the root is the vault"
    named = {"id": "ws_x", "context": {"dedicatedAgent": {"agentId": "z", "agentName": "Zoe"}}}
    assert brief(named, AROUND, 5)["agent"] == {"id": "z", "name": "Zoe", "systemPrompt": None}
    assert brief({"id": "ws_x", "rootFolder": "/Notes/"}, AROUND, 5)["folderExists"]


def test_the_name_of_a_file_without_its_last_extension() -> None:
    names = {
        "a/b.md": "b",
        "b.tar.gz": "b.tar",
        "LICENSE": "LICENSE",
        "dir.d/x": "x",
        "x.": "x.",
        ".hidden": "",
        "d/": "",
    }
    assert {path: short_name(path) for path in names} == names


def test_agents_of_the_settings() -> None:
    content = (
        b'{"customPrompts": {"prompts": [{"id": "a", "name": "A", "prompt": "p", "isEnabled": false}, {"id": 1}]}}'
    )
    assert list(read_agents(content)) == [Agent("a", "A", "p")]
    assert list(read_agents(b"{")) == list(read_agents(b'{"customPrompts": []}')) == []


def answer(around: Surroundings = Surroundings(), limit: int = 3, **members: Any) -> Any:  # noqa: B008 - immutable
    return load_workspace(workspace("ws_a", **members), around, limit)["data"]


def seen(root: str, *paths: str) -> Counter[str]:
    """The recent files, of which the newest are those that are named first."""
    files = tuple(VaultFile(path, 100 - at) for at, path in enumerate(paths))
    return Counter(each["path"] for each in answer(Surroundings(files), rootFolder=root)["recentFiles"])


def test_a_file_comes_once_for_each_way_through_folders_with_notes() -> None:
    assert seen("R", "R/a/b/c/3.md", "R/a/b/2.md", "R/a/1.md", "R/x.md") == {"R/a/b/c/3.md": 4, "R/a/b/2.md": 1}
    assert seen("R", "R/a/b/2.md", "R/a/1.md", "R/x.md") == {"R/a/b/2.md": 2, "R/a/1.md": 1, "R/x.md": 1}


def test_a_folder_whose_name_only_begins_alike_is_no_way() -> None:
    assert seen("R", "R/ab/c/1.md", "R/a/2.md", "R2/3.md") == {"R/ab/c/1.md": 1, "R/a/2.md": 1}


def test_folders_without_notes_are_no_way() -> None:
    assert seen("R", "R/a/b/c/3.md", "R/a/1.md", "R/a/b/picture.png") == {"R/a/b/c/3.md": 2, "R/a/1.md": 1}
    assert seen("R", "R/a/b/c/d/e/4.canvas") == {"R/a/b/c/d/e/4.canvas": 1}


def test_very_deep_files_leave_no_place_for_others() -> None:
    deep = "R/" + "/".join("abcdefghijklmnop")
    paths = [f"{deep[:end]}n.md" for end in range(len(deep) - 1, 1, -2)]
    assert seen("R", *paths) == {paths[0]: 5}


def test_of_the_root_only_what_lies_in_it() -> None:
    assert seen("/", "a/b.md", "c.md", "d.txt") == {"c.md": 1}
    assert seen("", "a/b.md", "c.md") == {"a/b.md": 1, "c.md": 1}
    assert seen("Not", "Notes/a.md") == {}


def test_the_structure_is_all_files_below_the_root() -> None:
    files = tuple(VaultFile(path, 1) for path in ("R/b.txt", "R/a/c.md", "Rest/d.md", "e.md"))
    around = Surroundings(files, frozenset({"R", "R/a", "Rest"}))
    assert answer(around, rootFolder="R")["workspaceStructure"] == ["a/c.md", "b.txt"]
    assert answer(around, rootFolder="/")["workspaceStructure"] == ["R/a/c.md", "R/b.txt", "Rest/d.md", "e.md"]


def trace(id_: str, at: int, **members: Any) -> dict[str, Any]:
    return {"id": id_, "timestamp": at, "type": "tool_call", **members}


def test_what_an_agent_said_before_what_was_done() -> None:
    said = {"request": {"originalParams": {"context": {"sessionMemory": "said first"}}}}
    again = {"request": {**said["request"], "normalizedParams": {"context": {"sessionMemory": "said"}}}}
    schema = {"schemaVersion": 1, "context": {"sessionMemory": "moved"}}
    blank = {"request": {"normalizedParams": {"context": {"sessionMemory": " "}}}}
    traces = [
        trace("t1", 1, content="done", metadata=again),
        trace("t2", 2, content="done", metadata=said),
        trace("t3", 3, content="done", metadata=schema),
        trace("t4", 3, content="of the same time"),
        trace("t5", 4, content=""),
        trace("t6", 5, content="blank", metadata=blank),
    ]
    sessions = {"s": session("s", memoryTraces={each["id"]: each for each in traces})}
    assert answer(limit=9, sessions=sessions, rootFolder="/")["context"]["recentActivity"] == [
        "blank",
        "Unknown activity",
        "done",
        "of the same time",
        "said first",
        "said",
    ]
    found = brief(workspace("ws_a", sessions=sessions), Surroundings(), 9)["recentActivity"]
    assert [each["text"] for each in found][2] == "moved"


PREFERENCES = [
    ({"context": {"preferences": "Be short."}}, "Be short."),
    ({"context": {"preferences": "  "}}, None),
    ({"context": {"preferences": ["one", "two"]}}, "one. two"),
    ({"preferences": {"userPreferences": ["one", "two"]}}, "one. two."),
    ({}, None),
]


@pytest.mark.parametrize(("members", "expected"), PREFERENCES)
def test_preferences(members: dict[str, Any], expected: str | None) -> None:
    assert answer(**members)["preferences"] == (expected or "No preferences set")
    assert brief(workspace("ws_a", **members), Surroundings(), 3)["preferences"] == expected


KNOWN = Surroundings(agents=(Agent("a1", "Ann", "p"), Agent("b1", "Bob", "q")))
AGENTS = [
    ({"dedicatedAgent": {"agentId": "b1", "agentName": "Ann"}}, "b1"),
    ({"dedicatedAgent": {"agentId": "c1", "agentName": "Ann"}}, None),
    ({"agents": [{"name": "Ann"}, {"name": "Bob"}]}, "a1"),
    ({"agents": []}, None),
    ({}, None),
]


@pytest.mark.parametrize(("context", "expected"), AGENTS)
def test_the_agent_only_where_the_settings_know_it(context: dict[str, Any], expected: str | None) -> None:
    found = answer(KNOWN, context=context)
    assert ("agent" in found, found.get("agent", {}).get("id")) == (expected is not None, expected)


def test_the_whole_answer() -> None:
    around = Surroundings((VaultFile("R/a.md", 7),), frozenset({"R"}), (Agent("a1", "Ann", "p"),))
    value = workspace(
        "ws_a",
        "A",
        description="about",
        rootFolder="R",
        context={"purpose": "to test", "dedicatedAgent": {"agentId": "a1"}},
        sessions={"s": session("s", description="first")},
    )
    told = {"name": "A", "description": "about", "purpose": "to test", "rootFolder": "R"}
    assert load_workspace(value, around, 3) == {
        "success": True,
        "data": {
            "context": {**told, "recentActivity": ["No recent activity"]},
            "workflows": [],
            "workspaceStructure": ["a.md"],
            "recentFiles": [{"path": "R/a.md", "modified": 7}],
            "keyFiles": {},
            "preferences": "No preferences set",
            "sessions": [{"id": "s", "name": "s", "description": "first", "created": 1000, "workspaceId": "ws_a"}],
            "states": [],
            "agent": {"id": "a1", "name": "Ann", "systemPrompt": "p"},
        },
        "workspaceContext": {"workspaceId": "ws_a", "workspacePath": ["a.md"]},
    }


def test_sessions_are_the_oldest() -> None:
    sessions = {key: session(key, startTime=at) for at, key in enumerate(["s1", "s2", "7"])}
    found = answer(limit=2, sessions=sessions)["sessions"]
    assert [each["id"] for each in found] == ["7", "s1"]
    assert found[0] == {"id": "7", "name": "7", "created": 2, "workspaceId": "ws_a"}


def test_a_workflow_that_lacks_something() -> None:
    assert answer(context={"workflows": [{"steps": "x"}, "none"]})["workflows"] == ["**undefined** (undefined):\nx"]


def test_the_version_that_has_written_a_vault() -> None:
    older = workspace("ws_a", sessions={"s": session("s", "t", states={"st": {"snapshot": {}}})})
    schema = session("s", memoryTraces={"t": trace("t", 1, metadata={"schemaVersion": 1})})
    assert version_of([older, workspace("ws_b")]) is Version.NOVEMBER
    assert version_of([older, workspace("ws_b", sessions={"s": schema})]) is Version.DECEMBER
    assert (
        version_of([workspace("ws_b", sessions={"s": session("s", states={"st": {"state": {}}})})]) is Version.DECEMBER
    )


@pytest.mark.parametrize("version", Version)
def test_an_unknown_id_is_an_answer(version: Version) -> None:
    found = answer_unknown(version, "x{}")
    error = found["error"]
    assert "'x{}' not found" in error
    context = {"name": "Unknown", "rootFolder": "", "recentActivity": [error]}
    nothing: dict[str, Any] = {"workflows": [], "workspaceStructure": [], "recentFiles": [], "keyFiles": {}}
    data = {"context": context, **nothing, "preferences": "", "sessions": [], "states": []}
    assert found == {"success": False, "error": error, "data": data}
