"""Spellings of versions: the sides, saved versions, and other checkouts."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.errors import ReconcileError
from reconcile.inspect.sources import (
    LARGEST_OTHER_FILE,
    NoSourceError,
    Source,
    is_saved,
    other_files,
    read_source,
    split_spelling,
    transcript_of,
)
from tests.cli.modules import module
from tests.support.projects.world import (
    LONG_AGO,
    SECOND,
    append,
    event,
    events,
    make_project,
    set_key,
    write_conversation,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reconcile.inspect.sources import Reading
    from tests.conftest import Run
    from tests.support.projects.world import World

A, B = 17528832001, 17528832011
ID = f"jp-c{A}"


@pytest.fixture
def world(world: World) -> World:
    write_conversation(world.workspace / f"{A}-it", "It", events(3))
    write_conversation(world.workspace / f"{B}-other", "Other", events(1))
    world.reconcile("--yes")
    return world


@contextmanager
def reading(world: World) -> Iterator[Reading]:
    options = module("arguments").Options()
    options.workspace = str(world.project)
    with module("reading").opened_for_reading(options) as found:
        yield found


def source(world: World, text: str) -> Source:
    with reading(world) as found:
        return read_source(found, text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (ID, (ID, None)),
        (f"{ID}@store", (ID, "store")),
        (f"{ID}@2026:events", (ID, "2026:events")),
        (f"{ID}@/a@b/c", (ID, "/a@b/c")),
        (f"{ID}@../a@b", (ID, "../a@b")),
        ("mail@home@workspace", ("mail@home", "workspace")),
        (f"{ID}@20260515-100000-00:a/b.md", (ID, "20260515-100000-00:a/b.md")),
        (f"{ID}@20260515-100000-00:file@name", (ID, "20260515-100000-00:file@name")),
        (f"{ID}@2026:file@store", (ID, "2026:file@store")),
        (f"{ID}@store:file@name", (ID, "store:file@name")),
        ("mail@home@store:file@name", ("mail@home", "store:file@name")),
        ("call@10:30@20260515", ("call@10:30", "20260515")),
    ],
)
def test_a_spelling_is_a_conversation_and_a_place(text: str, parts: tuple[str, str | None]) -> None:
    assert split_spelling(text) == parts


def test_an_id_is_the_version_of_the_store(world: World) -> None:
    found = source(world, ID)
    assert (found.label, found.name, found.others) == ("store", f"{ID}@store", ())
    assert set(found.contents) == {"metadata.json", "base_config.json", "events.json"}
    assert source(world, "It") == found


def test_versions_that_differ_name_each_other(world: World) -> None:
    append(world.workspace / f"{A}-it", 1, "w", LONG_AGO + SECOND)
    store = source(world, ID)
    assert store.others == ((f"{ID}@workspace", "the workspace's version differs"),)
    workspace = source(world, f"{ID}@workspace")
    assert workspace.label == "workspace"
    assert len(workspace.contents["events.json"]) > len(store.contents["events.json"])


def test_the_workspace_is_read_if_the_store_has_none(world: World) -> None:
    write_conversation(world.workspace / "17528832021-new", "New", events(1))
    assert source(world, "jp-c17528832021").label == "workspace"
    with pytest.raises(NoSourceError, match="jp-c17528832021 is not in the store") as error:
        source(world, "jp-c17528832021@store")
    assert error.value.hint == "it is in the workspace: jp-c17528832021@workspace"


def test_a_conversation_on_neither_side_has_only_saved_versions(world: World) -> None:
    world.reconcile("rm", ID, "--yes")
    with pytest.raises(NoSourceError, match="is on neither side"):
        source(world, ID)


def saved_run(world: World) -> str:
    set_key(world.workspace / f"{A}-it", "title", "Retitled", LONG_AGO + SECOND)
    world.reconcile()
    return str(logged(world)["id"])


def logged(world: World, *words: str) -> dict[str, Any]:
    result = world.run("log", *words, "--json", "--workspace", world.project)
    run: dict[str, Any] = json.loads(result.stdout)["runs"][0]
    return run


def test_a_saved_version_has_the_files_that_the_run_has_replaced(world: World) -> None:
    run = saved_run(world)
    found = source(world, f"{ID}@{run}")
    assert (found.label, found.name, found.is_part) == (f"run {run}", f"{ID}@{run}", True)
    assert set(found.contents) == {"metadata.json"}
    assert b'"It"' in found.contents["metadata.json"]
    assert source(world, f"Retitled@{run}") == found
    assert source(world, f"{ID}@{run}:metadata").contents == found.contents
    with pytest.raises(ReconcileError, match="no version"):
        source(world, f"{ID}@{run}:events")


def test_a_hash_is_a_saved_version(world: World) -> None:
    run = saved_run(world)
    (version,) = logged(world, run)["versions"]
    assert source(world, version["digest"][:12]).contents == source(world, f"{ID}@{run}").contents


def test_what_can_only_be_a_saved_version_needs_no_scan(world: World) -> None:
    run = saved_run(world)
    with reading(world) as found:
        for text in (f"{ID}@{run}", f"{ID}@{run}:metadata", logged(world, run)["versions"][0]["digest"]):
            assert is_saved(found.session, text), text
        for text in (ID, "It", f"{ID}@store", f"{ID}@{world.project}", f"{ID}@1999"):
            assert not is_saved(found.session, text), text


def test_another_checkout_is_a_path(world: World, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    other = make_project(tmp_path / "other", run)
    write_conversation(other.workspace / f"{A}-it", "It", [*events(3), event(100, "only there")])
    run("--workspace", other.project, "--yes")
    write_conversation(other.workspace / f"{A}-it", "It", [*events(3), event(100, "rewritten there")])
    found = source(world, f"{ID}@{other.project}")
    assert found.label == os.path.realpath(other.project)
    assert b"rewritten there" in found.contents["events.json"]
    assert source(world, f"{ID}@{other.project}/.jp") == found
    monkeypatch.chdir(tmp_path)
    assert source(world, f"{ID}@./other") == found
    assert source(world, f"{ID}@other") == found
    shutil.rmtree(other.workspace / f"{A}-it")
    with pytest.raises(NoSourceError, match="is not in"):
        source(world, f"{ID}@{other.project}")
    shutil.rmtree(other.project)
    with pytest.raises(NoSourceError, match="is a checkout that is gone"):
        source(world, f"{ID}@{other.project}")


def test_what_fits_nothing_is_an_error(world: World, tmp_path: Path) -> None:
    with pytest.raises(NoSourceError, match="is no checkout of this store"):
        source(world, f"{ID}@{tmp_path}")
    with pytest.raises(ReconcileError, match="no run has an id that starts with '1999'"):
        source(world, f"{ID}@1999")
    with pytest.raises(module("misuse").Misuse, match="no conversation has the id or title 'nothing'"):
        source(world, "nothing")


def test_files_that_cannot_be_read_are_notes(world: World) -> None:
    directory = world.store / f"{A}-it"
    (directory / "events.json").unlink()
    with reading(world) as found:
        transcript = transcript_of(found.session.format, read_source(found, f"{ID}@store"))
    assert transcript.title == "It"
    assert transcript.notes == ("events.json is missing",)
    (directory / "events.json").mkdir()
    with reading(world) as found:
        transcript = transcript_of(found.session.format, read_source(found, f"{ID}@store"))
    assert len(transcript.notes) == 1
    assert transcript.notes[0].startswith("events.json: ")


def test_other_files_are_read_unless_they_are_large(world: World) -> None:
    directory = world.workspace / f"{A}-it"
    (directory / "NOTE.md").write_text("a note\n")
    (directory / "large.bin").write_bytes(b"x" * (LARGEST_OTHER_FILE + 1))
    with reading(world) as found:
        read = read_source(found, f"{ID}@workspace")
        form = found.session.format
        assert other_files(form, read) == [("NOTE.md", 7), ("large.bin", LARGEST_OTHER_FILE + 1)]
        assert transcript_of(form, read).notes == ()
    assert read.contents["NOTE.md"] == b"a note\n"
    assert "large.bin" not in read.contents
