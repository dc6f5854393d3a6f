"""`reconcile find` over a store, real git worktrees and the vault."""

from __future__ import annotations

import base64
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.fs.paths import regular_descriptor
from reconcile.inspect.search import search
from reconcile.inspect.search.matching import Hit, Matcher
from tests.support.projects.git_world import git
from tests.support.projects.world import LONG_AGO, SECOND, event, events, files, set_key, write_conversation, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.world import World

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")

FIRST, OTHER, THIRD = 17500000001, 17500000002, 17500000003


@pytest.fixture
def searched(world: World) -> World:
    """Three conversations on both sides, in a repository."""
    write_conversation(world.workspace / f"{FIRST}-cursor", "The Cursor", [event(1, "nothing here")])
    write_conversation(world.workspace / f"{OTHER}-other", "Other", [event(2, "where is the cursor?"), *events(2)])
    write_conversation(world.workspace / f"{THIRD}-third", "Third", [event(3, "a buffer"), event(4, "in the cache")])
    git(world.project, "init", "-q", "-b", "main")
    git(world.project, "add", ".")
    git(world.project, "commit", "-qm", "three")
    world.reconcile()
    return world


def found(world: World, *words: str, code: int = 0) -> dict[str, Any]:
    """Search, demand that nothing is written, and return the JSON document."""
    before = world.stamps()
    result = world.run("find", *words, "--json", "-w", world.project)
    assert result.exit_code == code, result.output
    assert world.stamps() == before, "find has written something"
    document = json.loads(result.stdout)
    assert isinstance(document, dict)
    return document


def ids(document: dict[str, Any]) -> list[str]:
    return [each["conversation"] for each in document["conversations"]]


def places(document: dict[str, Any], number: int) -> list[tuple[str, str | None]]:
    """Return where a conversation was found: kind of place, and the line's text or None for the title alone."""
    (each,) = [each for each in document["conversations"] if each["conversation"] == f"jp-c{number}"]
    return [
        (place["where"], match["lines"][0]["line"] if match["lines"] else None)
        for match in each["matches"]
        for place in match["places"]
    ]


def shown(world: World, *words: str, code: int = 0) -> str:
    result = world.run("find", *words, "-w", world.project)
    assert result.exit_code == code, result.output
    return result.stdout


def test_titles_come_first_then_the_last_active(searched: World) -> None:
    document = found(searched, "cursor")
    assert ids(document) == [f"jp-c{FIRST}", f"jp-c{OTHER}"]
    assert [each["in_title"] for each in document["conversations"]] == [True, False]
    assert places(document, FIRST) == [("store", None), ("workspace", None)]
    assert places(document, OTHER) == [("store", "where is the cursor?"), ("workspace", "where is the cursor?")]
    (line,) = document["conversations"][1]["matches"][0]["lines"]
    assert (line["position"], line["speaker"], line["kind"]) == (1, "user", "chat_request")
    assert line["marks"] == [[13, 19]]


def test_all_words_in_one_conversation_and_phrases(searched: World) -> None:
    assert ids(found(searched, "buffer", "cache")) == [f"jp-c{THIRD}"]
    assert ids(found(searched, "third", "cache")) == [f"jp-c{THIRD}"], "one in the title"
    assert ids(found(searched, "the cache")) == [f"jp-c{THIRD}"]
    assert ids(found(searched, "buffer", "cursor", code=1)) == []
    assert ids(found(searched, "buffer cache", code=1)) == []
    assert ids(found(searched, "Cursor")) == [f"jp-c{FIRST}"], "an upper-case letter"


def test_nothing_found_is_a_line_and_exit_code_1(searched: World) -> None:
    assert shown(searched, "nowhere", code=1) == "no conversation has 'nowhere'\n"


def test_a_blank_word_is_wrong_usage(searched: World) -> None:
    assert searched.run("find", " ", "-w", searched.project).exit_code == 2


def test_a_worktree_and_a_clone_of_the_same_store(searched: World, run: Run, tmp_path: Path) -> None:
    tree, gone = tmp_path / "tree", tmp_path / "gone"
    for path in (tree, gone):
        git(searched.project, "worktree", "add", "-q", "-b", path.name, str(path))
        assert run("-w", path).exit_code == 0
    stream = tree / ".jp" / "conversations" / f"{THIRD}-third" / "events.json"
    write_json(stream, [event(3, "a buffer"), event(4, "only in the tree: flamingo")], LONG_AGO + SECOND)
    git(searched.project, "worktree", "remove", "--force", str(gone))
    document = found(searched, "flamingo")
    assert places(document, THIRD) == [("checkout", "only in the tree: flamingo")]
    (match,) = document["conversations"][0]["matches"]
    assert match["places"][0]["project"] == str(tree)
    assert match["places"][0]["path"] == str(stream.parent)
    assert match["lines"][0]["position"] == 2
    assert document["notes"] == [], "a removed worktree is no news"
    both = places(found(searched, "buffer"), THIRD)
    assert [where for where, _ in both] == ["store", "workspace", "checkout"]
    text = shown(searched, "flamingo")
    assert str(tree) in text
    assert "event 2, user: only in the tree: [flamingo]" in text


def test_saved_versions_with_the_command_that_shows_them(searched: World) -> None:
    stream = searched.workspace / f"{THIRD}-third" / "events.json"
    write_json(stream, [event(3, "a pelican"), event(4, "in the cache")], LONG_AGO + SECOND)
    searched.reconcile("--prefer", "workspace")
    assert [where for where, _ in places(found(searched, "pelican"), THIRD)] == ["store", "workspace"]
    document = found(searched, "buffer")
    assert places(document, THIRD) == [("version", "a buffer")]
    (place,) = document["conversations"][0]["matches"][0]["places"]
    saved = searched.run("show", place["version"], "-w", searched.project)
    assert saved.exit_code == 0, saved.output
    assert "a buffer" in saved.stdout
    on_screen = place["version"].replace(":stream", ":events")
    assert on_screen != place["version"]
    assert f"reconcile show {on_screen}" in shown(searched, "buffer")
    assert "a buffer" in searched.run("show", on_screen, "-w", searched.project).stdout


def test_a_title_that_only_a_saved_version_has(searched: World) -> None:
    set_key(searched.workspace / f"{THIRD}-third", "title", "Renamed", LONG_AGO + SECOND)
    searched.reconcile()
    document = found(searched, "third")
    assert places(document, THIRD) == [("version", None)]
    (each,) = document["conversations"]
    assert (each["title"], each["matches"][0]["title"], each["in_title"]) == ("Renamed", "Third", False)


def test_an_empty_title_has_no_line(searched: World) -> None:
    set_key(searched.workspace / f"{THIRD}-third", "title", "", LONG_AGO + SECOND)
    searched.reconcile()
    assert "buffer" in shown(searched, "buffer")
    assert "title: \n" not in shown(searched, "buffer")


def test_a_removed_conversation_is_found_in_the_vault(searched: World) -> None:
    searched.reconcile("rm", f"jp-c{THIRD}", "--yes")
    document = found(searched, "third", "cache")
    assert places(document, THIRD) == [("version", "in the cache")]


def test_base64_escapes_and_other_files(searched: World) -> None:
    home = searched.workspace / f"{OTHER}-other"
    content = base64.b64encode("die Größe der Schrift".encode()).decode()
    reply = {**event(5, ""), "type": "tool_call_response", "id": "c", "content": content, "is_error": False}
    del reply["content"]
    reply["content"] = content
    stream = json.loads((home / "events.json").read_bytes())
    (home / "events.json").write_text(json.dumps([*stream, reply, event(6, "Überall Straßen")], ensure_ascii=True))
    (home / "NOTE.md").write_text("a note\non albatrosses\n")
    searched.reconcile()
    assert ids(found(searched, "grösse")) == [f"jp-c{OTHER}"]
    assert ids(found(searched, "überall strassen")) == [f"jp-c{OTHER}"]
    (each,) = found(searched, "albatross")["conversations"]
    (line,) = each["matches"][0]["lines"]
    assert (line["file"], line["position"], line["line"]) == ("NOTE.md", None, "on albatrosses")


def test_escaped_letters_are_found(searched: World) -> None:
    """JSON may write any character as an escape; some programs do so with letters."""
    home = searched.workspace / f"{OTHER}-other"
    stream = json.loads((home / "events.json").read_bytes())
    text = json.dumps([*stream, event(6, "An Albatross in the sky")])
    escaped = text.replace("Alba", "\\u0041l\\u0062\\u0061").replace("sky", "s\\u006B\\u0079")
    assert json.loads(escaped) == json.loads(text)
    (home / "events.json").write_text(escaped)
    searched.reconcile()
    for words in (("albatross",), ("Albatross",), ("the sky",), ("albatross", "sky")):
        assert ids(found(searched, *words)) == [f"jp-c{OTHER}"]
    assert ids(found(searched, "albatros sky", code=1)) == []


@pytest.mark.parametrize("environ", [{}, {"NO_COLOR": "1"}], ids=str)
def test_the_words_are_marked_without_colour_too(
    searched: World, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert "event 1, user: where is the [cursor]?" in shown(searched, "cursor")
    assert "in the title: The [Cursor]" in shown(searched, "cursor")
    colored = searched.run("find", "cursor", "--color", "always", "-w", searched.project).stdout
    assert "[cursor]" not in colored
    assert "\x1b[" in colored


def test_equal_contents_are_read_once(searched: World, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    in_stream = Matcher.in_stream

    def recorded(self: Matcher, data: bytes, needed: int) -> tuple[list[Hit], str]:
        read.append(data)
        return in_stream(self, data, needed)

    monkeypatch.setattr(Matcher, "in_stream", recorded)
    shown(searched, "cursor")
    assert len(read) == 3


def test_damaged_objects_of_the_vault_are_a_note(searched: World) -> None:
    set_key(searched.workspace / f"{THIRD}-third", "title", "Renamed", LONG_AGO + SECOND)
    write_json(
        searched.workspace / f"{THIRD}-third" / "events.json",
        [event(3, "a pelican"), event(4, "in the cache")],
        LONG_AGO + SECOND,
    )
    searched.reconcile("--prefer", "workspace")
    for path in files(searched.vault):
        path.chmod(0o600)
        path.write_bytes(path.read_bytes().replace(b"cache", b"chace"))
    document = found(searched, "buffer", code=1)
    assert ids(document) == []
    assert any("damaged" in note for note in document["notes"])


def test_a_file_that_cannot_be_read_is_a_note_and_the_rest_is_found(
    searched: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, flags: int) -> int:
        if f"{THIRD}-third" in path:
            raise PermissionError(13, "Permission denied", path)
        return regular_descriptor(path, flags)

    monkeypatch.setattr("reconcile.inspect.search.search.regular_descriptor", refuse)
    document = found(searched, "c")
    assert ids(document) == [f"jp-c{FIRST}", f"jp-c{OTHER}"]
    stream = searched.store / f"{THIRD}-third" / "events.json"
    assert document["notes"] == [f"{stream}: can't be read (Permission denied); skipped"]


def test_two_processes_find_the_same_as_one(searched: World, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = [found(searched, word) for word in ("cursor", "buffer", "in the")]
    monkeypatch.setattr(search, "_FEW", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    assert [found(searched, word) for word in ("cursor", "buffer", "in the")] == alone
