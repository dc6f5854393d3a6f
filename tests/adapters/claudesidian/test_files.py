"""A vault is read as it is: links aren't followed, what is too large is said, and nothing else is looked into."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from reconcile.adapters.claudesidian.files import read_surroundings, read_vault
from reconcile.formats.claudesidian.briefing import Agent, VaultFile
from reconcile.formats.claudesidian.checks.examine import examine
from reconcile.formats.claudesidian.record_files import Kind
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from pathlib import Path


def put(path: Path, content: str = "{}") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def test_everything_that_the_format_is_about(tmp_path: Path) -> None:
    for name in (
        ".workspaces/index.json",
        ".workspaces/ws_a.json",
        ".workspaces/backups/ws_a-2025-11-20T10-00-00-000Z.json.bak",
        ".conversations/conv_a.json",
        ".nexus/workspaces/ws_ws_a.jsonl",
        ".nexus/workspaces/note.txt",
        ".nexus/conversations/conv_conv_a.jsonl",
        ".nexus/migration-status.json",
        ".nexus/cache.db",
        "Notes/a.md",
    ):
        put(tmp_path / name)
    found = read_vault(str(tmp_path))
    assert list(found.split[Kind.WORKSPACE].files) == ["index.json", "ws_a.json"]
    assert list(found.split[Kind.WORKSPACE].backups) == ["ws_a-2025-11-20T10-00-00-000Z.json.bak"]
    assert dict(found.split[Kind.CONVERSATION].files) == {"conv_a.json": b"{}"}
    assert found.nexus is not None
    assert {kind: list(each) for kind, each in found.nexus.events.items()} == {
        Kind.WORKSPACE: ["ws_ws_a.jsonl"],
        Kind.CONVERSATION: ["conv_conv_a.jsonl"],
    }
    assert found.nexus.status == b"{}"


def test_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / ".nexus").mkdir()
    found = read_vault(str(tmp_path))
    assert (found.split, found.faults) == ({}, ())
    assert found.nexus is not None
    assert (dict(found.nexus.events), found.nexus.status) == ({Kind.WORKSPACE: {}, Kind.CONVERSATION: {}}, None)


def test_links_and_other_things_are_named_and_not_followed(tmp_path: Path) -> None:
    put(tmp_path / "elsewhere" / "ws_a.json")
    (tmp_path / "vault" / ".workspaces").mkdir(parents=True)
    (tmp_path / "vault" / ".workspaces" / "ws_a.json").symlink_to(tmp_path / "elsewhere" / "ws_a.json")
    os.mkfifo(tmp_path / "vault" / ".workspaces" / "ws_b.json")
    (tmp_path / "vault" / ".conversations").symlink_to(tmp_path / "elsewhere")
    found = read_vault(str(tmp_path / "vault"))
    assert found.split[Kind.WORKSPACE].files == {
        "ws_a.json": Fault("ws_a.json", "a symbolic link", "a regular file"),
        "ws_b.json": Fault("ws_b.json", "a named pipe", "a regular file"),
    }
    assert found.faults == (Fault(".conversations", "a symbolic link", "a directory"),)
    assert Kind.CONVERSATION not in found.split
    first = examine(found, 0)[0]
    assert (first.place, first.found) == (".conversations", "a symbolic link (expected a directory)")


def test_what_is_too_large_is_said_and_not_read(tmp_path: Path) -> None:
    with put(tmp_path / ".workspaces" / "ws_a.json").open("wb") as file:
        file.truncate(300 << 20)
    content = read_vault(str(tmp_path)).split[Kind.WORKSPACE].files["ws_a.json"]
    assert isinstance(content, Fault)
    assert content.found == "315 MB"


def test_the_surroundings_are_what_people_see(tmp_path: Path) -> None:
    os.utime(put(tmp_path / "N" / "deep" / "a.md"), ns=(5_499_999, 5_499_999))
    os.utime(put(tmp_path / "b.md"), ns=(5_500_000, 5_500_000))
    put(tmp_path / "N" / ".hidden.md")
    put(tmp_path / ".obsidian" / "app.json")
    (tmp_path / "loop").symlink_to(tmp_path)
    found = read_surroundings(str(tmp_path))
    assert found.files == (VaultFile("N/deep/a.md", 5), VaultFile("b.md", 6))
    assert found.folders == frozenset({"N", "N/deep"})
    assert found.agents == ()


def test_agents_are_those_of_the_programs_own_settings(tmp_path: Path) -> None:
    prompts = [{"id": "a", "name": "A", "prompt": "p"}, {"id": "b", "name": "B"}, None]
    settings = json.dumps({"customPrompts": {"prompts": prompts}})
    put(tmp_path / ".obsidian" / "plugins" / "claudesidian-mcp" / "data.json", settings)
    put(tmp_path / ".obsidian" / "plugins" / "nexus" / "data.json", "{")
    put(tmp_path / ".obsidian" / "plugins" / "another" / "data.json", settings)
    assert read_surroundings(str(tmp_path)).agents == (Agent("a", "A", "p"),)
