"""What follows from the log is what the program wrote: on its own files, and on random histories."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcile.formats.leslie.document import Document, ObjectivesDocument, read_objectives, read_relations, written
from reconcile.formats.leslie.rebuild import rebuild, rebuild_objectives
from reconcile.formats.leslie.replay import replay
from tests.support.formats.leslie import CORPUS, Leslie, Step, as_bytes, stories

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus at {CORPUS}; set RECONCILE_CORPUS")


def document(content: bytes) -> Document:
    found = read_relations(content)
    assert isinstance(found, Document)
    return found


def objectives_of(content: bytes) -> ObjectivesDocument:
    found = read_objectives(content)
    assert isinstance(found, ObjectivesDocument)
    return found


def rebuilt(content: bytes) -> tuple[bytes, list[str]]:
    """Everything that the log says, also what is done on request only."""
    found = document(content)
    result = rebuild(found, replay(found), found.threads, {*found.threads, *replay(found).courses})
    return result.content, [each.words for each in result.differences]


def intact(name: str) -> list[Path]:
    return sorted(file for file in CORPUS.rglob(name) if "clobbered" not in str(file) or "objectives" in name)


@corpus
@pytest.mark.parametrize("file", intact("thread_relations.json*"), ids=lambda file: "/".join(file.parts[-3:]))
def test_rebuilt_files_have_the_program_s_bytes(file: Path) -> None:
    content = file.read_bytes()
    value = json.loads(content)
    assert document(content).violations == ()
    assert written(document(content).value) == content
    assert rebuilt(content) == (content, [])
    assert rebuilt(as_bytes({**value, "relations": {}}))[0] == content
    assert rebuilt(as_bytes({**value, "metadata": {**value["metadata"], "thread_count": 77}}))[0] == content
    for thread in value["threads"].values():
        thread["status"], thread["title"], thread["parent_id"] = "frozen", "Another", None
    assert rebuilt(as_bytes({**value, "relations": {"thread-gone": {}}}))[0] == content


@corpus
@pytest.mark.parametrize("file", intact("objectives.json"), ids=lambda file: file.parts[-3])
def test_rebuilt_objectives_have_the_program_s_bytes(file: Path) -> None:
    relations = file.parent / "thread_relations.json"
    found = objectives_of(file.read_bytes())
    if "clobbered" in str(file) or "recovered" in str(file):
        return  # their threads are lost
    threads = document(relations.read_bytes())
    refreshed = replay(threads).refreshed
    result = rebuild_objectives(found, threads.threads, refreshed)
    assert (result.content, result.differences) == (found.content, ())
    assert bool(result.lagging) == (file.parts[-3] == "lifecycle")
    value = json.loads(found.content)
    for objective in value["objectives"].values():
        objective["thread_ids"] = []
    result = rebuild_objectives(objectives_of(as_bytes(value)), threads.threads, refreshed)
    listed = {key: each["thread_ids"] for key, each in json.loads(result.content)["objectives"].items()}
    assert listed == {key: each["thread_ids"] for key, each in found.objectives.items()}


@given(stories())
def test_any_history_is_found_again(steps: list[Step]) -> None:
    played = Leslie().play(steps)
    content = played.relations_file()
    assert document(content).violations == ()
    assert written(document(content).value) == content
    assert rebuilt(content) == (content, [])
    assert rebuilt(played.relations_file(relations={}))[0] == content
    found = document(content)
    assert not replay(found).notes
    objectives = rebuild_objectives(objectives_of(played.objectives_file()), found.threads, replay(found).refreshed)
    assert objectives.differences == ()


@given(stories(), st.randoms(use_true_random=False))
def test_what_was_scrambled_comes_back(steps: list[Step], random: Random) -> None:
    played = Leslie().play(steps)
    content = played.relations_file()
    value = json.loads(content)
    for record in value["threads"].values():
        for key, wrong in (("status", "frozen"), ("parent_id", "thread-x"), ("title", "Wrong"), ("id", "thread-y")):
            if random.random() < 0.3:
                record[key] = wrong
    for entry in value["relations"].values():
        for members in entry.values():
            random.shuffle(members)
            if random.random() < 0.2:
                members += ["thread-x"]
        entry["depends_on"] = [each for each in entry["depends_on"] if each != "thread-x"]
    value["metadata"]["thread_count"] = 99
    assert rebuilt(as_bytes(value))[0] == content


@given(stories())
def test_emptied_objectives_are_filled_again(steps: list[Step]) -> None:
    played = Leslie().play(steps)
    threads = document(played.relations_file()).threads
    before = {key: each["thread_ids"] for key, each in played.objectives.items()}
    emptied = {key: each | {"thread_ids": [], "status": "?"} for key, each in played.objectives.items()}
    result = rebuild_objectives(objectives_of(played.objectives_file(objectives=emptied)), threads, {})
    assert {key: each["thread_ids"] for key, each in json.loads(result.content)["objectives"].items()} == before
