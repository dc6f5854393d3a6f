"""The whole of a briefing, and what older forms of a workspace come to."""

from __future__ import annotations

from reconcile.formats.claudesidian.briefing import Agent, Surroundings, VaultFile, brief, read_agents, short_name
from tests.support.claudesidian import session, workspace

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
