"""Real files: docs/design/formats/jp.md#the-public-store. Skipped where no corpus is beside the repository."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from reconcile.formats import get_format
from reconcile.model.snapshot import Fault, Metadata, ParentKind, Stream

JP = get_format("jp")
CORPUS = Path(os.environ.get("RECONCILE_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus") / "jp"

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus at {CORPUS}; set RECONCILE_CORPUS")


def head() -> list[Path]:
    conversations = CORPUS / "head" / ".jp" / "conversations"
    return sorted(file.parent for file in conversations.rglob("metadata.json"))


def stream(directory: Path) -> Stream | Fault:
    files = (directory / name for name in JP.stream_files)
    contents = {file.name: file.read_bytes() for file in files if file.exists()}
    return JP.read_stream(contents, events=True)


def metadata_files() -> list[Path]:
    return sorted(CORPUS.rglob("metadata.json"))


def test_the_head_store_has_21_conversations() -> None:
    assert len(head()) == 21


@pytest.mark.parametrize("directory", head(), ids=lambda directory: directory.name)
def test_head_is_valid_and_named_by_the_slug_rule(directory: Path) -> None:
    metadata = JP.read_metadata((directory / "metadata.json").read_bytes())
    assert isinstance(metadata, Metadata)
    conversation = JP.id_of(directory.name)
    assert conversation is not None
    assert JP.dirname(conversation, metadata.title) == directory.name
    read = stream(directory)
    assert isinstance(read, Stream)
    assert read.events is not None
    elements = json.loads((directory / "events.json").read_bytes())
    legacy = not (directory / "base_config.json").exists()
    assert read.count == len(elements) == len(read.events) + legacy
    assert read.last == elements[-1]["timestamp"]


def test_head_has_2773_elements() -> None:
    assert sum(read.count for read in map(stream, head()) if isinstance(read, Stream)) == 2773


@pytest.mark.parametrize("file", metadata_files(), ids=lambda file: str(file.parent.relative_to(CORPUS)))
def test_a_parent_goes_in_and_out_of_every_file_that_jp_wrote(file: Path) -> None:
    content = file.read_bytes()
    metadata = JP.read_metadata(content)
    assert isinstance(metadata, Metadata)
    assert metadata.parent.kind is ParentKind.ABSENT
    edited = JP.with_parent(content, "jp-c17528832001")
    if not content.endswith(b"\n"):
        assert edited is None  # the oldest files lack the final line feed (docs/design/formats/jp.md#bytes)
        return
    assert edited is not None
    assert JP.with_parent(edited, None) == content


def test_the_real_append_of_the_history_is_a_strict_prefix() -> None:
    name = "17732257364-stack-overflow-in-recursive-path-test-on-windows"
    states = [stream(CORPUS / "history" / name / number) for number in ("001", "002")]
    events = [read.events for read in states if isinstance(read, Stream)]
    assert len(events) == 2
    before, after = events
    assert before is not None
    assert after is not None
    assert len(before) < len(after)
    assert after[: len(before)] == before


def test_the_split_into_three_files_keeps_the_events() -> None:
    (directory,) = (CORPUS / "history").glob("17659773217-*")
    states = [stream(directory / number) for number in ("002", "003")]
    events = {read.events for read in states if isinstance(read, Stream)}
    assert len(events) == 1


def test_of_the_27_states_of_the_history_7_load_and_none_crashes() -> None:
    states = [stream(file.parent) for file in (CORPUS / "history").rglob("metadata.json")]
    assert len(states) == 27
    # 10 pass JP's sanitizer, 3 of them fail the load for want of a base
    # (docs/design/formats/jp.md#the-public-store)
    assert sum(isinstance(state, Stream) for state in states) == 7
    messages = [file.read_bytes() for file in CORPUS.rglob("messages.json")]
    assert all(isinstance(JP.read_stream({"events.json": content}, events=True), Fault) for content in messages)
