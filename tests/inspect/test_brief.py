"""`reconcile brief`: what a workspace is about, under sane rules and as the program answers."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.formats.claudesidian.briefing import Surroundings
from reconcile.formats.claudesidian.briefing import brief as brief_of
from reconcile.formats.json import javascript
from reconcile.model.snapshot import Fault
from tests.support.faults.strace import Straced, unusable
from tests.support.formats.claudesidian import CORPUS, copied, needs_corpus, session, workspace

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

AGENT = {"id": "agent_1", "name": "Marketing Specialist", "prompt": "You are a marketing expert."}
NOVEMBER, DECEMBER = "ws_1795293641790_cjl35e542", "ws_1795293645347_vu5r75mve"


def stamps(path: Path) -> dict[str, tuple[int, bytes]]:
    return {str(each): (each.stat().st_mtime_ns, each.read_bytes()) for each in path.rglob("*") if each.is_file()}


def know(vault: Path, agent: dict[str, str]) -> None:
    settings = vault / ".obsidian" / "plugins" / "claudesidian-mcp" / "data.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"apiKeys": {}, "customPrompts": {"prompts": [agent]}}))


ANSWERS = [
    ("job-search-2025-11", NOVEMBER, [], "default-limit"),
    ("job-search-2025-11", NOVEMBER, ["--limit", "10"], "limit-10"),
    ("job-search-2025-11", "ws_missing", [], "unknown-id"),
    ("job-search-2025-11", "default", [], "default-workspace"),
    ("job-search-2025-12", DECEMBER, [], "default-limit"),
    ("job-search-2025-12", DECEMBER, ["--limit", "10"], "limit-10"),
    ("job-search-2025-12", "ws_missing", [], "unknown-id"),
    ("job-search-2025-12", "default", [], "default-workspace"),
]


@needs_corpus
@pytest.mark.parametrize(("scenario", "id_", "options", "answer"), ANSWERS, ids=[f"{a[0]}-{a[3]}" for a in ANSWERS])
def test_compat_is_what_the_program_answered(
    run: Run, tmp_path: Path, scenario: str, id_: str, options: list[str], answer: str
) -> None:
    vault = copied(scenario, tmp_path / "vault")
    for name in vault.glob("loadWorkspace.*"):
        name.unlink()  # they were not in the vault when it was asked
    (vault / "paths.txt").unlink()
    if scenario == "job-search-2025-11":
        know(vault, AGENT)  # the stub of the agent store knew it in the first vault only
    before = stamps(vault)
    result = run("brief", id_, "--compat", "-w", vault, *options)
    assert result.exit_code == 0, result.output
    assert result.stdout_bytes == (CORPUS / scenario / f"loadWorkspace.{answer}.json").read_bytes()
    assert stamps(vault) == before


def a_vault(path: Path) -> Path:
    state = {"id": "st", "name": "Half way", "created": 40}
    inner = {"context": {"nextSteps": ["go on"]}, "state": {"metadata": {"tags": ["draft"]}}}
    sessions = {
        "old": session("old", "t1", startTime=10),
        "new": session("new", "t2", startTime=30, states={"st": {**state, "state": inner}}),
        "mid": session("mid", startTime=20),
    }
    context = {
        "purpose": "To learn",
        "workflows": [{"name": "Daily", "when": "mornings", "steps": ["1. read", "2. write"]}],
        "keyFiles": ["Notes/a/README.md", "Notes/b/README.md"],
        "preferences": "Be short.",
        "dedicatedAgent": {"agentId": "a1", "agentName": "Ann"},
    }
    value = workspace("ws_x", "My project", rootFolder="Notes", sessions=sessions, context=context)
    (path / ".workspaces").mkdir(parents=True)
    (path / ".workspaces" / "ws_x.json").write_bytes(javascript.stringify(value))
    for at, name in enumerate(["Notes/a/README.md", "Notes/b/README.md", "Notes/b/c/d/deep.md", "other.md"]):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("x")
        os.utime(path / name, ns=(at * 10**9, at * 10**9))
    (path / "Notes" / ".hidden.md").write_text("x")
    return path


def brief(run: Run, vault: Path, *args: str) -> dict[str, Any]:
    before = stamps(vault)
    result = run("brief", *args, "-w", vault, "--json")
    assert result.exit_code == 0, result.output
    assert stamps(vault) == before
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_newest_first_states_filled_nothing_twice(run: Run, tmp_path: Path) -> None:
    found = brief(run, a_vault(tmp_path / "vault"), "ws_x", "--limit", "2")
    assert found["format"] == "reconcile.brief/1"
    assert [each["id"] for each in found["sessions"]] == ["new", "mid"]
    (state,) = found["states"]
    assert (state["name"], state["tags"], state["nextSteps"], state["sessionId"]) == (
        "Half way",
        ["draft"],
        ["go on"],
        "new",
    )
    assert [each["path"] for each in found["recentFiles"]] == ["Notes/b/c/d/deep.md", "Notes/b/README.md"]
    assert found["workspaceStructure"] == ["Notes/a/README.md", "Notes/b/README.md", "Notes/b/c/d/deep.md"]
    assert found["keyFiles"] == [
        {"name": "README", "path": "Notes/a/README.md"},
        {"name": "README", "path": "Notes/b/README.md"},
    ]
    assert found["workflows"] == [{"name": "Daily", "when": "mornings", "steps": "1. read\n2. write"}]
    assert found["agent"] == {"id": "a1", "name": "Ann", "systemPrompt": None}


def test_a_person_reads_it(run: Run, tmp_path: Path) -> None:
    vault = a_vault(tmp_path / "vault")
    know(vault, {"id": "a1", "name": "Ann", "prompt": "You teach."})
    shown = run("brief", "My project", "-w", vault / "Notes").stdout
    assert shown.startswith("My project  ws_x  folder Notes\n  To learn\n")
    for part in ("Daily (mornings)\n    1. read\n    2. write\n", "  Be short.", "Ann  a1\n    You teach.", "#draft"):
        assert part in shown
    assert "1 trace " in shown
    assert "Files (3)" in shown


def test_many_files_are_counted(run: Run, tmp_path: Path) -> None:
    vault = a_vault(tmp_path / "vault")
    for number in range(40):
        (vault / "Notes" / f"{number}.md").touch()
    assert "  ... and 13 more (-v shows all)\n" in run("brief", "ws_x", "-w", vault).stdout
    assert "... and" not in run("brief", "ws_x", "-w", vault, "-v").stdout


ERRORS = [
    (["nobody"], "no workspace 'nobody' in {}", "the workspaces here: ws_x (My project)"),
    (["torn"], ".workspaces/torn.json: a truncated file", "see how to fix it: reconcile doctor"),
    (["Twin"], "'Twin' is ambiguous: 2 workspaces have this name", "use an id: t1, t2"),
    (["ws_x", "--format", "jp"], "brief supports claudesidian only, not jp", ""),
]


@pytest.mark.parametrize(("args", "error", "hint"), ERRORS, ids=["unknown", "torn", "ambiguous", "format"])
def test_one_clear_line(run: Run, tmp_path: Path, args: list[str], error: str, hint: str) -> None:
    vault = a_vault(tmp_path / "vault")
    if args == ["torn"]:
        (vault / ".workspaces" / "torn.json").write_bytes(b'{"id": "to')
    if args == ["Twin"]:
        for id_ in ("t1", "t2"):
            (vault / ".workspaces" / f"{id_}.json").write_bytes(javascript.stringify(workspace(id_, "Twin")))
    result = run("brief", *args, "-w", vault)
    assert result.exit_code == 2
    assert error.format(vault) in result.stderr
    assert hint in result.stderr


def test_outside_of_a_vault(run: Run, tmp_path: Path) -> None:
    result = run("brief", "x", "-w", tmp_path)
    assert result.exit_code == 2
    words = f"no vault of notes in {tmp_path} or above it (no .workspaces/, .conversations/, .nexus/)"
    assert words in result.stderr


@needs_corpus
def test_the_events_of_a_migrated_vault_are_the_truth(run: Run, tmp_path: Path) -> None:
    vault = copied("hybrid-from-2025-12", copied("job-search-2025-12", tmp_path / "vault"))
    (vault / ".workspaces" / f"{DECEMBER}.json").write_text("{}")
    found = brief(run, vault, "Job Search 2025")
    assert [each["name"] for each in found["states"]] == [f"Cover letter draft {number}" for number in (3, 2, 1)]
    assert all(each["tags"] == ["google", "draft"] and each["hasContent"] for each in found["states"])
    assert [each["name"] for each in found["sessions"]] == ["Default Session", "Interview prep", "Amazon week"]


@needs_corpus
def test_a_state_that_lost_its_content_says_so(run: Run, tmp_path: Path) -> None:
    vault = copied("hybrid-from-2025-11", tmp_path / "vault")
    shown = run("brief", NOVEMBER, "-w", vault).stdout
    assert shown.count("its content is missing: see reconcile doctor") == 3
    assert "Job Search/2025 (not there)" in shown


@pytest.mark.skipif(bool(unusable()), reason=unusable())
@pytest.mark.parametrize(
    ("at", "call", "there"),
    [
        ("Notes/b", "getdents64", True),
        ("Notes", "getdents64", True),
        (".obsidian/plugins/claudesidian-mcp/data.json", "read", True),
        ("", "getdents64", None),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, at: str, call: str, there: bool | None) -> None:
    vault = a_vault(tmp_path / "vault")
    know(vault, {"id": "a1", "name": "Ann", "prompt": "You teach."})
    failing = Straced(tmp_path / "strace.log", f"{call}:error=EIO", vault / at)
    done = failing("brief", "ws_x", "-w", vault, "--json")
    assert failing.was_hit()
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["unread"] == [{"path": at or "/", "found": "Input/output error"}]
    assert found["folderExists"] is there
    done = failing("brief", "ws_x", "-w", vault)
    assert f"Can't be read\n  {at or '/'}: Input/output error\n" in done.stdout
    assert "not there" not in done.stdout


def test_what_is_elsewhere_and_cannot_be_read_is_no_matter() -> None:
    faults = [Fault(path, "something that can't be read", "a folder") for path in ("Notes", "Notes/a", "NotesToo")]
    about = brief_of(workspace("ws_x", rootFolder="Notes"), Surroundings(unread=faults), 3)
    assert [each["path"] for each in about["unread"]] == ["Notes", "Notes/a"]
    about = brief_of(workspace("ws_x", rootFolder="Notes/a/b"), Surroundings(unread=faults), 3)
    assert ([each["path"] for each in about["unread"]], about["folderExists"]) == (["Notes", "Notes/a"], None)
    about = brief_of(workspace("ws_x", rootFolder="Other"), Surroundings(unread=faults), 3)
    assert (about["unread"], about["folderExists"]) == ([], False)
