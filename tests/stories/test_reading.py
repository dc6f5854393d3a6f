"""A person reads and compares conversations: versions as text, in terminals of two widths, and in a difftool."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.projects.git_world import git
from tests.support.projects.terminal import at_terminal, run_at_terminal
from tests.support.projects.world import (
    LONG_AGO,
    SECOND,
    append,
    command,
    event,
    events,
    set_key,
    write_conversation,
    write_json,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.world import World

NUMBER = 17528832001
ID, NAME = f"jp-c{NUMBER}", f"{NUMBER}-plans"
CODES = re.compile(r"\x1b\[[0-9;]*m")
LONG = "Please rename the function and keep every caller, and then tell me which of the tests you have changed for it."


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def talk(name: str = "parse") -> list[dict[str, Any]]:
    """Return a conversation with a tool call."""
    return [
        event(1, f"{LONG} Use `{name}`.\n\n我今天去北京。"),
        {
            "timestamp": "2026-01-01T00:02:00Z",
            "type": "tool_call_request",
            "id": "t1",
            "name": "read",
            "arguments": {"path": encoded("src/é.py")},
        },
        {
            "timestamp": "2026-01-01T00:03:00Z",
            "type": "tool_call_response",
            "id": "t1",
            "content": encoded("a\n\tb\n\x1b[31mred\n"),
            "is_error": False,
        },
    ]


@pytest.fixture
def world(world: World) -> World:
    write_conversation(world.workspace / NAME, "Plans", talk())
    world.reconcile("--yes")
    return world


def edited(world: World) -> World:
    """Edit a word of the first event in the workspace, and let it go on."""
    path = world.workspace / NAME / "events.json"
    write_json(path, [*talk("parse_line"), event(9, "And the docs?")], LONG_AGO + SECOND)
    return world


def said(world: World, *words: str | Path) -> str:
    result = world.run(*words, "--workspace", world.project)
    assert result.exit_code == 0, result.output
    assert "Traceback" not in result.output
    return result.stdout


def newest(world: World) -> str:
    run: str = json.loads(said(world, "log", "--json"))["runs"][0]["id"]
    return run


def test_a_conversation_is_printed_as_text(world: World) -> None:
    assert said(world, "show", "Plans") == (
        f"# Plans\n\n- id: {ID}\n- from: store\n- last_activated_at: 2026-01-01 00:00:00.0\n\n"
        f"## 1. User (chat_request, 2026-01-01T00:01:00Z)\n\n{LONG} Use `parse`.\n\n我今天去北京。\n\n"
        "## 2. Assistant (tool_call_request, 2026-01-01T00:02:00Z)\n\nCalls the tool `read`.\n\n- path: `src/é.py`\n\n"
        "## 3. Tool (tool_call_response, 2026-01-01T00:03:00Z)\n\n"
        "The tool returned:\n\n```\na\n    b\n\\x1b[31mred\n```\n"
    )


def test_of_a_conversation_on_one_side_diff_names_the_side_and_the_command_that_prints_it(world: World) -> None:
    write_conversation(world.store / "17636400009-alone", "Alone", talk())
    assert said(world, "diff", "Alone") == (
        "Alone  jp-c17636400009\n"
        f"  only in the store; to read it: reconcile show jp-c17636400009 --workspace {world.project}\n"
    )


def test_of_the_fork_of_a_conflict_diff_names_the_comparison_with_its_source(world: World) -> None:
    edited(world)
    write_json(world.store / NAME / "events.json", [*talk(), event(8, "First the tests.")], LONG_AGO)
    world.reconcile("--yes")
    (fork,) = (each for each in json.loads(said(world, "ls", "--json"))["conversations"] if each["conversation"] != ID)
    shown = said(world, "diff", "[diverged] Plans")
    command = f"reconcile diff {ID} {fork['conversation']}"
    assert shown.splitlines()[1:] == [
        f"  only in the store; to read it: reconcile show {fork['conversation']} --workspace {world.project}",
        f"  compare it with its source: {command} --workspace {world.project}",
    ]
    assert "First the tests." in said(world, *command.split()[1:])
    decided = said(world, "diff", ID)
    (line,) = (each.strip() for each in decided.splitlines() if each.strip().startswith("reconcile diff "))
    assert "First the tests." in said(world, *line.split()[1:]), "the version that was not taken"


def test_a_version_that_differs_is_named(world: World) -> None:
    edited(world)
    for unit in ("", ":events"):
        command = f"reconcile show {ID}@workspace{unit} --workspace {world.project}"
        assert f"> note: the workspace's version differs: {command}\n" in said(world, "show", f"{ID}{unit}")
    assert "parse_line" in said(world, "show", f"{ID}@workspace")
    assert "And the docs?" not in said(world, "show", f"{ID}@store")


def test_one_part_of_both_sides_is_compared(world: World) -> None:
    edited(world)
    assert "no differences" in said(world, "diff", f"{ID}:metadata")
    compared = said(world, "diff", f"{ID}:events")
    assert compared == said(world, "diff", f"{ID}@store:events", f"{ID}@workspace:events")
    assert "parse_line" in compared
    listed = json.loads(said(world, "diff", "Plans:events", "--json"))
    assert [listed[side]["name"] for side in ("left", "right")] == [f"{ID}@store:events", f"{ID}@workspace:events"]
    assert world.run("diff", f"{ID}:other", "-w", world.project).exit_code == 2


def test_without_an_id_diff_compares_all_conversations_that_differ(world: World) -> None:
    assert said(world, "diff") == "No conversation differs between the store and the workspace.\n"
    write_conversation(world.workspace / "17636400008-other", "Other", talk())
    write_conversation(world.store / "17636400009-alone", "Alone", talk())
    world.reconcile()
    edited(world)
    append(world.workspace / "17636400008-other", 1, "b", LONG_AGO)
    one, other = said(world, "diff", ID, "-n"), said(world, "diff", "Other", "-n")
    assert said(world, "diff") == f"{one}\n{other}"
    listed = json.loads(said(world, "diff", "--json"))
    assert listed["format"] == "reconcile.diffs/1"
    assert [each["conversation"] for each in listed["conversations"]] == [ID, "jp-c17636400008"]
    world.reconcile("--yes")
    assert said(world, "diff", "--dry-run").startswith("No conversation differs")


def test_the_files_are_printed_as_they_are_on_request(world: World) -> None:
    files = {name: (world.store / NAME / name).read_bytes() for name in ("metadata.json", "events.json")}
    assert (
        world.run("show", f"{ID}@store:metadata", "--raw", "-w", world.project).stdout_bytes == files["metadata.json"]
    )
    for name in (f"{ID}:metadata", "Plans:metadata"):
        assert world.run("show", name, "-w", world.project).stdout_bytes == files["metadata.json"]
    assert "Use `parse`." in said(world, "show", f"{ID}:events")
    assert world.run("show", f"{ID}:other", "-w", world.project).exit_code == 2
    raw = said(world, "show", ID, "--raw")
    assert f"store:{NAME}/events.json" in raw
    assert files["metadata.json"].decode() in raw


def test_only_a_newline_ends_a_line_of_a_file(world: World) -> None:
    (world.store / NAME / "NOTE.md").write_bytes("one\u2028two\x0cthree\r\nfour\n".encode())
    assert "one\\u2028two\\x0cthree\nfour\n" in said(world, "show", f"{ID}@store", "--raw")


DEEP = "[" * 850 + "]" * 850


def test_a_number_that_json_lacks_is_a_text_in_json(world: World) -> None:
    """Python reads and writes `NaN`; other programs refuse a document with it."""
    path = world.workspace / NAME / "metadata.json"
    odd = f'{{"odd": [NaN, -Infinity, 1e999, {{"NaN": NaN}}, "NaN"], "deep": {DEEP}, '
    path.write_text(path.read_text().replace("{", odd, 1))
    text = said(world, "diff", ID, "--json")
    (found,) = [each for each in json.loads(text, parse_constant=pytest.fail)["metadata"] if each["key"] == "odd"]
    assert found["workspace"] == ["NaN", "-Infinity", "Infinity", {"NaN": "NaN"}, "NaN"]


def test_a_saved_version_is_text_or_its_file(world: World) -> None:
    events_before = (world.store / NAME / "events.json").read_bytes()
    edited(world).reconcile()
    run = newest(world)
    for name in (f"{ID}@{run}", f"{ID}@{run}:events", f"{ID}@{run}:stream", f"plans@{run}"):
        shown = said(world, "show", name)
        assert "Use `parse`." in shown, name
        assert "And the docs?" not in shown, name
    assert f"- from: run {run}\n" in shown
    raw = world.run("show", f"{ID}@{run}:events", "--raw", "-w", world.project).stdout_bytes
    assert raw == events_before
    (version,) = json.loads(said(world, "show", f"{ID}@{run}", "--json"))["versions"]
    assert base64.b64decode(version["content"]) == events_before
    assert "Use `parse`." in said(world, "show", version["digest"][:12])
    assert world.run("show", version["digest"][:12], "--raw", "-w", world.project).stdout_bytes == events_before


def test_metadata_alone_is_printed_as_it_is(world: World) -> None:
    before = (world.store / NAME / "metadata.json").read_bytes()
    set_key(world.workspace / NAME, "pinned_at", "2026-01-01 00:00:00.0", LONG_AGO + SECOND)
    world.reconcile()
    assert world.run("show", f"{ID}@{newest(world)}:metadata", "-w", world.project).stdout_bytes == before


def test_json_has_the_files_and_the_text(world: World) -> None:
    found = json.loads(said(world, "show", ID, "--json"))
    assert (found["format"], found["name"], found["label"]) == ("reconcile.show/1", f"{ID}@store", "store")
    assert {version["file"] for version in found["versions"]} == {"metadata.json", "base_config.json", "events.json"}
    assert [turn["speaker"] for turn in found["transcript"]["turns"]] == ["user", "assistant", "tool"]
    assert found["transcript"]["title"] == "Plans"
    assert "transcript" not in json.loads(said(world, "show", ID, "--json", "--raw"))


def test_what_cannot_be_read_is_said_and_the_rest_is_shown(world: World) -> None:
    (world.workspace / NAME / "events.json").write_text("[\n<<<<<<< HEAD\n")
    shown = said(world, "show", f"{ID}@workspace")
    assert "# Plans\n" in shown
    assert "> note: events.json: a git conflict marker in line 2" in shown
    assert f"reconcile show {ID}@workspace --raw" in shown
    assert "<<<<<<< HEAD" in said(world, "show", f"{ID}@workspace", "--raw")


def test_other_files_are_listed(world: World) -> None:
    (world.workspace / NAME / "NOTE.md").write_text("a note\n")
    assert said(world, "show", f"{ID}@workspace").endswith("\nOther files: NOTE.md (7 B)\n")


DIFFERENCES = f"""Plans  {ID}

--- store
+++ workspace
  1. User (chat_request, 2026-01-01T00:01:00Z)
~   {LONG} Use `[-parse-]{{+parse_line+}}`.

    我今天去北京。
  2. Assistant (tool_call_request, 2026-01-01T00:02:00Z)
    Calls the tool `read`.

    - path: `src/é.py`
  3. Tool (tool_call_response, 2026-01-01T00:03:00Z)
  ...
        b
    \\x1b[31mred
    ```
+ 4. User (chat_request, 2026-01-01T00:09:00Z)
+   And the docs?
"""


def test_events_are_compared_word_by_word(world: World) -> None:
    assert said(world, "diff", ID) == f"Plans  {ID}\n  no differences\n"
    edited(world)
    assert said(world, "diff", ID) == DIFFERENCES
    assert said(world, "diff", f"{ID}@store") == DIFFERENCES
    assert said(world, "diff", f"{ID}@store", f"{ID}@workspace") == DIFFERENCES
    swapped = said(world, "diff", f"{ID}@workspace")
    assert "--- workspace\n+++ store\n" in swapped
    assert "Use `[-parse_line-]{+parse+}`." in swapped


def test_verbose_shows_the_events_that_are_the_same(world: World) -> None:
    assert "The tool returned:" in said(world, "diff", ID, "--verbose")
    assert "The tool returned:" not in said(edited(world), "diff", ID)
    assert "The tool returned:" in said(world, "diff", ID, "--verbose")


def test_a_saved_version_is_compared_with_the_current_one(world: World) -> None:
    edited(world).reconcile()
    run = newest(world)
    for words in ((f"{ID}@{run}",), (f"{ID}@{run}", ID), (f"{ID}@{run}", f"{ID}@workspace")):
        shown = said(world, "diff", *words)
        assert shown.startswith(f"Plans  {ID}\n"), "the saved events have no title"
        assert f"--- run {run}\n+++ {'workspace' if '@w' in words[-1] else 'store'}\n" in shown
        assert "Use `[-parse-]{+parse_line+}`." in shown
        assert "metadata" not in shown, "the run has replaced the events only"


def test_a_fork_is_compared_with_its_source(world: World) -> None:
    world.reconcile("fork", ID, "--last", "1", "--title", "Side track")
    (fork,) = {row["conversation"] for row in json.loads(said(world, "ls", "--json"))["conversations"]} - {ID}
    shown = said(world, "diff", ID, fork)
    assert f"  metadata title\n    - {ID} (store)" in shown
    assert '"Side track"' in shown


def test_other_files_are_compared_line_by_line(world: World) -> None:
    (world.workspace / NAME / "NOTE.md").write_text("one\ntwo\n")
    assert "  NOTE.md: only in the workspace\n" in said(world, "diff", ID)
    world.reconcile()
    (world.workspace / NAME / "NOTE.md").write_text("one\nthree\n")
    assert said(world, "diff", ID) == f"Plans  {ID}\n  NOTE.md: differs\n    one\n-   two\n+   three\n\n"


def test_the_base_configuration_is_compared_by_key(world: World) -> None:
    write_json(world.workspace / NAME / "base_config.json", {"assistant": {"name": "Bob"}}, LONG_AGO + SECOND)
    assert f'  base_config.json assistant.name\n    - store      "for {NAME}"\n    + workspace  "Bob"\n' in said(
        world, "diff", ID
    )


def test_json_of_two_versions(world: World) -> None:
    edited(world)
    one = json.loads(said(world, "diff", ID, "--json"))
    two = json.loads(said(world, "diff", f"{ID}@store", f"{ID}@workspace", "--json"))
    assert one["format"] == two["format"] == "reconcile.diff/1"
    assert [change["change"] for change in one["changes"]] == ["edited", "added"]
    assert one["changes"] == two["changes"]
    assert one["changes"][0]["left"]["text"].startswith(LONG)
    assert (two["left"]["name"], two["right"]["label"]) == (f"{ID}@store", "workspace")
    assert two["right_only"] == one["workspace_only"]


@pytest.mark.parametrize("words", [("--tool",), ("a", "b", "c"), (ID, "--tool", "x", "--json")])
def test_wrong_usage(world: World, words: Sequence[str]) -> None:
    result = world.run("diff", *words, "--workspace", world.project)
    assert result.exit_code == 2
    assert "error" in result.stderr


def test_worktrees_of_git_are_compared(world: World, tmp_path: Path, run: Run) -> None:
    """The other worktree has a branch with another version, and the same store."""
    project = world.project
    git(project, "init", "-q")
    git(project, "add", ".jp")
    git(project, "commit", "-qm", "plans")
    git(project, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    assert run("--workspace", tmp_path / "side", "--yes").exit_code == 0
    other = tmp_path / "side" / ".jp" / "conversations" / NAME
    append(other, 1, "b", LONG_AGO + SECOND)
    git(tmp_path / "side", "commit", "-qam", "more")
    shown = said(world, "diff", f"{ID}@store", f"{ID}@{tmp_path / 'side'}")
    assert f"--- store\n+++ {tmp_path / 'side'}\n" in shown
    assert "+   b0\n" in shown
    assert "b0" in said(world, "show", f"{ID}@{tmp_path / 'side'}")
    git(project, "merge", "-q", "side")
    assert "no differences" in said(world, "diff", f"{ID}@workspace", f"{ID}@{tmp_path / 'side'}")
    shutil.rmtree(tmp_path / "side")
    result = world.run("diff", ID, f"{ID}@{tmp_path / 'side'}", "--workspace", project)
    assert result.exit_code == 2
    assert "is a checkout that is gone" in result.stderr


@pytest.mark.parametrize("columns", [80, 120])
def test_two_columns_fill_the_terminal(world: World, columns: int) -> None:
    edited(world)
    words = ("-w", world.project, "diff", ID, "--side-by-side")
    code, shown = at_terminal(*words, environ={"NO_COLOR": "1", "PAGER": "cat"}, rows=100, columns=columns)
    assert code == 0
    cell = (columns - 3) // 2
    lines = shown.splitlines()
    assert max(map(display_width, lines)) <= columns
    start = lines.index(next(line for line in lines if line.startswith("store")))
    assert lines[start].split() == ["store", "workspace"]
    edges = [line for line in lines[start + 1 :] if len(line) > cell and line[cell + 1] in "|<>"]
    assert any("[-parse-]" in line and line[cell + 1] == "|" for line in edges) or "[-parse-]" in shown
    assert any(line.strip().startswith(">") and "And the docs?" in line for line in lines)
    wide = [line for line in lines if "我" in line]
    assert all(line.count("我今天去北京。") == 2 for line in wide)
    assert all(before_gutter(line) == cell for line in wide)


def display_width(line: str) -> int:
    return sum(2 if ord(char) > 0x2E80 else 1 for char in line)


def before_gutter(line: str) -> int:
    """Return the columns before the second column of a line that is the same on both sides."""
    return display_width(line[: line.rindex("我")]) - len("   ") - len("  ")


def test_colours_mark_the_words_in_a_terminal(world: World) -> None:
    edited(world)
    words = ("-w", world.project, "diff", ID)
    code, shown = at_terminal(*words, environ={"PAGER": "cat", "TERM": "xterm"}, rows=100, columns=120)
    assert code == 0
    assert "\x1b[31mparse\x1b[0m\x1b[32mparse_line\x1b[0m" in shown
    assert "[-" not in CODES.sub("", shown)
    assert "\x1b[31mred" not in shown, "a text takes no effect in the terminal"


def test_long_texts_go_through_the_pager(world: World, tmp_path: Path) -> None:
    write_conversation(world.workspace / NAME, "Plans", events(100))
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\nexec sed 's/^/PAGED /'\n")
    pager.chmod(0o755)
    for words in (("show", f"{ID}@workspace"), ("diff", ID)):
        code, shown = at_terminal(
            "-w", world.project, *words, environ={"PAGER": str(pager), "NO_COLOR": "1"}, rows=24, columns=80
        )
        assert code == 0
        assert all(line.startswith("PAGED ") for line in shown.splitlines())
        assert "a99" in shown


def test_prose_is_wrapped_at_the_terminal_and_code_is_not(world: World) -> None:
    code, shown = at_terminal(
        "-w", world.project, "show", ID, environ={"PAGER": "cat", "NO_COLOR": "1"}, rows=100, columns=50
    )
    assert code == 0
    assert max(map(display_width, shown.splitlines())) <= 50
    assert "Please rename the function and keep every caller,\n" in shown


TOOL = """#!{python}
import os, pathlib, stat, sys
left, right = map(pathlib.Path, sys.argv[1:3])
out = pathlib.Path({out!r})
mode = stat.S_IMODE(left.parent.stat().st_mode)
out.write_text("|".join([left.name, right.name, oct(mode), str(left.parent), left.read_text(), right.read_text()]))
sys.exit(int(os.environ.get("TOOL_EXIT", "0")))
"""


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A difftool "mine" that git knows, which writes down what it is given."""
    program, out = tmp_path / "tool.py", tmp_path / "opened"
    program.write_text(TOOL.format(python=sys.executable, out=str(out)))
    program.chmod(0o755)
    config = tmp_path / "gitconfig"
    config.write_text(f'[diff]\n\ttool = mine\n[difftool "mine"]\n\tcmd = "{program}" "$LOCAL" "$REMOTE"\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    return out


@pytest.mark.parametrize("words", [("--tool",), ("--tool", "mine"), ("--tool=mine",)], ids=" ".join)
def test_the_difftool_of_git_gets_both_texts(world: World, tool: Path, words: tuple[str, ...]) -> None:
    edited(world)
    code, shown = run_at_terminal(command("diff", ID, *words, "-w", world.project), env=dict(os.environ))
    assert code == 0, shown
    left, right, mode, directory, before, after = tool.read_text().split("|")
    assert (left, right, mode) == ("1-store.md", "2-workspace.md", "0o700")
    assert directory.startswith(f"{world.state}/")
    assert "Use `parse`." in before
    assert "Use `parse_line`." in after
    assert not list(world.state.glob("compare-*"))


def test_the_id_may_follow_the_option(world: World, tool: Path) -> None:
    edited(world)
    code, shown = run_at_terminal(command("diff", "--tool", ID, "-w", world.project), env=dict(os.environ))
    assert code == 0, shown
    assert tool.exists()


def test_a_difftool_that_fails_or_that_git_does_not_know(world: World, tool: Path) -> None:
    edited(world)
    code, shown = run_at_terminal(command("diff", ID, "--tool=none", "-w", world.project), env=dict(os.environ))
    assert code == 1
    assert "error: the difftool none failed" in shown
    assert not tool.exists()
    assert not list(world.state.glob("compare-*"))


def test_without_git_the_error_is_clear(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edited(world)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    result = world.run("diff", ID, "--tool", "--workspace", world.project)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: git is not installed, and --tool needs its difftool\n")
    assert not list(world.state.glob("compare-*"))


def test_files_of_a_killed_difftool_are_removed(world: World, tool: Path) -> None:
    left = world.state / "compare-999999999-x"
    left.mkdir()
    (left / "1-store.md").write_text("x")
    mine = world.state / f"compare-{os.getpid()}-x"
    mine.mkdir()
    edited(world)
    code, _ = run_at_terminal(command("diff", ID, "--tool", "-w", world.project), env=dict(os.environ))
    assert code == 0
    assert tool.exists()
    assert not left.exists()
    assert mine.exists()
