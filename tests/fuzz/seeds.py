"""What the fuzzed inputs are near to: files such as JP writes, plans that the planner made, scenarios of ours."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord, Intent, IntentKind
from reconcile.model.format import EventSelection
from reconcile.model.options import Layout, Prefer, Take
from reconcile.model.policy import (
    Children,
    ForkRequest,
    GcRequest,
    LocalRequest,
    Policy,
    ProjectRequest,
    RemoveRequest,
    RestoreRequest,
    SetParentRequest,
    UndoRequest,
)
from reconcile.remote.saved import FORMAT, PlannedModel, SavedSync, saved_text
from reconcile.serialization.plan_json import plan_to_json
from tests.support.formats.claudesidian import conversation, session, workspace
from tests.support.formats.leslie import Leslie
from tests.support.scenarios.building import agreed_on, here, plan_of, stored

SCENARIOS = Path(__file__).parents[2] / "fixtures" / "scenarios"
_CHOSEN = ("cases/11*", "cases/15*", "commands/*rm*", "archive/*", "safety/*killed*", "names/*", "undo/*", "silos/*")


@cache
def metadata() -> list[Any]:
    return [
        {"title": "A title", "last_activated_at": "2026-01-31 12:00:00.0", "parent_id": "jp-c17528832001"},
        {
            "title": "Ärger \U0001f600",
            "last_activated_at": "2026-01-31T12:00:00.5Z",
            "local": True,
            "pinned_at": "2026-01-31 12:00:00.0",
            "expires_at": "2027-01-01 00:00:00.0",
            "parent_id": 17528832001,
            "labels": {"a": [1, {"b": None}]},
        },
        {"last_activated_at": "2026-01-31 12:00:00.0", "parent_id": None, "title": None, "local": False, "x": 1.5},
        {"parent_id": "17528832001", "last_activated_at": "2026-01-31 12:00:00.0", "archived_at": "2026-02-01 0:0:0"},
    ]


@cache
def base_config() -> list[Any]:
    return [{}, {"assistant": {"name": "JP", "tools": ["a", "b"], "temperature": 0.5}, "style": None}]


@cache
def events() -> list[Any]:
    def event(kind: str, at: str, **more: object) -> dict[str, object]:
        return {"timestamp": at, "type": kind} | more

    return [
        [],
        [
            event("chat_request", "2026-01-31 12:00:00.0", content="Hello"),
            event("chat_response", "2026-01-31T12:00:01Z"),
        ],
        [event("config_delta", "2026-01-31 12:00:00.0", delta={"a": [1, 2]}), event("tool_call", "x", arguments={})],
        [{"content": "first", "type": "chat_request", "timestamp": 5}],
    ]


@cache
def sessions() -> list[Any]:
    return [
        {"history": [{"id": "jp-c17500000001", "activated_at": "2026-01-31 12:00:00.0"}], "source": "tty"},
        {"history": [{"id": 17500000002}, {"id": "jp-c17500000001"}], "source": {"env": "X"}},
        {"history": []},
    ]


@cache
def sync_plans() -> list[Any]:
    """Return saved plans of syncs."""
    report = {"format": "reconcile.sync/1", "sent": [{"id": "jp-c1", "title": "A"}], "held": []}
    planned = (
        PlannedModel(commit="8a1d0c7e", steps="0" * 32, now_ns=1),
        PlannedModel(commit=None, steps="f" * 32, now_ns=2),
    )
    saved = [
        SavedSync(
            format=FORMAT,
            workspace="/w",
            store="/s",
            remote="origin",
            half="BOTH",
            only=["jp-c1"],
            allow_bulk_removal=False,
            planned=each,
            report=report,
        )
        for each in planned
    ]
    return [json.loads(saved_text(each)) for each in saved]


def plans() -> list[Any]:
    """Return plans of every shape: a first run, edits, conflicts, moves, removals, and one for each command."""
    one = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
    two = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
    below = f"1-a/conversations/{two}"
    newer = one.replace("[1]", "[1 2]")
    asked = Policy(only=frozenset({"jp-c1"}), below=frozenset({"jp-c2"}), decisions={"jp-c1": Take.BOTH})
    requests = (
        UndoRequest("run"), RestoreRequest("jp-c1@run:stream"), LocalRequest(("jp-c1",)),
        ProjectRequest(("jp-c1",), ancestors=True),
        RemoveRequest(("jp-c1",), Children.CASCADE), SetParentRequest("jp-c2", "jp-c1"), GcRequest(("jp-c1",)),
        ProjectRequest(("jp-c1",), records=(1, 2)),
        ForkRequest("jp-c1", EventSelection(1, None, 2), "Fork", local=True),
    )  # fmt: skip
    made = [
        plan_of(stored(), here(one, two)),
        plan_of(stored(newer, two), here(one, below), agreed_on(one, below)),
        plan_of(stored(newer), here(one.replace("[1]", "[1 3]")), agreed_on(one), asked),
        plan_of(stored(one), here(one, below), agreed_on(one, below)),
        plan_of(stored(one, '2-b/metadata.json  10:00 "{"'), here(one, below), None, Policy(prefer=Prefer.STORE)),
        plan_of(stored(one, two), here(one, two), agreed_on(one), Policy(layout=Layout.FLAT)),
    ]
    rich = replace(
        made[1],
        intents=(("jp-c1", Intent(IntentKind.REMOVED, "jp-c2", "1-a", "run")), ("jp-c2", None)),
        asides=((("jp-c1", "stream"), AsideRecord(AsideKind.BEHIND, None, "0" * 32)), (("jp-c2", "metadata"), None)),
        tombstones=(("jp-c3", ("1" * 32, "2" * 32)),),
        voided=("jp-c4",),
        rooted=("jp-c5",),
    )
    made += [rich, *(replace(made[0], policy=replace(Policy(), request=request)) for request in requests)]
    return [json.loads(json.dumps(plan_to_json(plan, workspace="/w", store="/s"))) for plan in made]


@cache
def scenarios() -> list[str]:
    paths = sorted(path for pattern in _CHOSEN for path in SCENARIOS.glob(f"{pattern}.scenario"))
    return [path.read_text(encoding="utf-8") for path in paths]


SCENARIO_WORDS = (
    "given", "then", "$ reconcile", "store", "workspace", "workspace2", "silo", "id", "gone", "replaced", "unchanged",
    "case:", "edge:", "levels:", "differs:", "forget state", "config", "lock 1", "unlock 1", "sweep 1", "steal 1",
    "killed at every step", "clock -5", "git merge", "disk full", "#", "", '"', "'", "\\", "[", "[1", "[1 2x]",
    "b3", "b0@08:00:00.5",
    "metadata", "stream", "09:00", "@-1", "@9223372036854775808", "\u0660\u0669:\u0660\u0660", "title", "local",
    "parent", "raw",
    "legacy", "nobase",
    "null", '"\\ud800"', "=>", "->", "-", "1-a", "1-a/", '1-a/"b', "labels={", "x=1", "--take", "store,", "--only",
    "--below", "resolve",
    "undo", "restore", "rm", "set-parent", "--none", "local", "gc", "@2", "@3", "exit", "note", "held", "(nothing)",
    "refused",
    "99:99", "1e999", "9" * 4400, "[" * 2000, "case: x", "case: ²", "case: 3 4", "\t", "\u2028", "$",
)  # fmt: skip

CONFIGS = (
    """layout = "nested"
stream = "directed"
diverged = "fork"
missing = "intent"
ignore = ["*.bak", "*.old"]
lock_timeout = 2.5

[workspace."ab1cd"]
layout = "flat"
lock_timeout = 3
""",
    'lock_timeout = 10\n[workspace.other]\nignore = []\ndiverged = "hold"\n',
)
CONFIG_WORDS = (
    "layout", "lock_timeout", "ignore", "=", "[", "]", "[[workspace]]", '[workspace."ab1cd"]', "nan", "-nan", "inf",
    "-inf",
    "-1", "true", "1e999", "9" * 4301, "9" * 4300, "1" + "0" * 400, "0x" + "f" * 5000, "[" * 2000, "{a=" * 2000,
    '"""', "'''", '"\\ud800"', '"\\u0000"',
    "2026-01-31", "9999-99-99", "12:00:00", "a.b.c", "a.", "{}", "[[]]", "1_0", "\t", "\r", "\x00", "\x1b[31m", "#",
    "x" * 5000,
    "x = [" + "1," * 2000 + "]", ".".join(["a"] * 1500) + " = 1",
)  # fmt: skip


@cache
def holders() -> list[Any]:
    """Return who holds a lock, as JP's file and reconcile's own say it."""
    return [
        {"pid": 4711, "session": "7", "acquired_at": "2026-11-21T20:30:30.0+00:00"},
        {"pid": 4711, "command": "reconcile watch", "since": "2026-11-21T20:30:30+00:00"},
    ]


@cache
def leslie_files() -> list[Any]:
    """Return Leslie's two control files, of a small workspace."""
    played = Leslie()
    for number in range(4):
        played.spawn(number, number, 1)
    return [json.loads(played.relations_file()), json.loads(played.objectives_file())]


@cache
def claudesidian_files() -> list[Any]:
    """Return a record of each kind, an index, and a status."""
    record = workspace("ws_a", "A", sessions={"s": session("s", "t")})
    talk = conversation("conv_a", "Hello")
    index = {"workspaces": {"ws_a": {"id": "ws_a", "name": "A"}}, "byName": {"a": "ws_a"}, "lastUpdated": 1}
    return [record, talk, index, {"version": 1, "completed": True}]
