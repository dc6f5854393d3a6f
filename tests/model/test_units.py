"""The units of a copy, and what names their content (docs/concepts.md#conversations)."""

from __future__ import annotations

import json

import pytest

from reconcile.fs.hashing import digest
from reconcile.model.snapshot import EXTRA, METADATA, STREAM, Unreadable
from reconcile.model.units import is_nested_git, is_of_another, joined_digest, spelled_units, unit_spelling, units_of
from tests.support.scenarios.building import stored, unreadable
from tests.support.scenarios.line_reader import Words, time_ns
from tests.support.scenarios.notation import read_metadata
from tests.support.scenarios.pure_level import FORMAT, RULES

WHOLE = '1-a  metadata 09:00 title "A"  stream 09:10 [1 2] b2@09:20'


def metadata(text: str) -> bytes:
    return read_metadata(Words(text))


def test_the_files_are_the_units_of_the_format() -> None:
    (copy,) = stored(WHOLE, '1-a/sub/NOTE.md  09:30 "xyz"').copies
    units = units_of(copy, RULES, None)
    assert {name: [file.name for file in unit.files] for name, unit in units.items()} == {
        METADATA: ["metadata.json"],
        STREAM: ["base_config.json", "events.json"],
        "extra:sub/NOTE.md": ["sub/NOTE.md"],
    }
    assert (units["extra:sub/NOTE.md"].size, units["extra:sub/NOTE.md"].digest) == (3, digest(b"xyz"))


def test_the_time_of_a_stream_is_the_greater_of_its_files() -> None:
    (copy,) = stored(WHOLE).copies
    stream = units_of(copy, RULES, None)[STREAM]
    assert stream.mtime_ns == time_ns("09:20")
    assert stream.size == sum(file.size for file in copy.files if file.name != "metadata.json")


def test_a_stream_is_named_by_both_its_files_in_the_order_of_the_format() -> None:
    (copy,) = stored(WHOLE).copies
    files = {file.name: file.digest for file in copy.files}
    assert units_of(copy, RULES, None)[STREAM].digest == f"{files['base_config.json']}+{files['events.json']}"


def test_a_copy_without_files_has_no_units() -> None:
    (copy,) = stored("1-a/").copies
    assert units_of(copy, RULES, "jp-c2") == {}


PUT_BACK = {
    "stripped: the known parent is put back": ('title "A"', "jp-c2", 'title "A" parent 2'),
    "nothing is known": ('title "A"', None, 'title "A"'),
    "another parent is stated": ('title "A" parent 3', "jp-c2", 'title "A" parent 3'),
    "none is stated": ('title "A" parent null', "jp-c2", 'title "A" parent null'),
    "something unreadable is stated": ('title "A" parent raw 1.5', "jp-c2", 'title "A" parent raw 1.5'),
}


@pytest.mark.parametrize(("found", "known", "named_as"), PUT_BACK.values(), ids=PUT_BACK)
def test_the_digest_of_metadata_is_that_with_the_parent_put_back(found: str, known: str | None, named_as: str) -> None:
    (copy,) = stored(f"1-a  metadata 09:00 {found}").copies
    unit = units_of(copy, RULES, known)[METADATA]
    assert unit.digest == digest(metadata(named_as))
    assert unit.raw == digest(metadata(found))


def test_metadata_that_cannot_be_edited_byte_for_byte_is_named_as_it_is() -> None:
    content = '{"last_activated_at":"2025-01-01 00:00:00.0"}'
    (copy,) = stored(f"1-a/metadata.json  09:00 {json.dumps(content)}").copies
    assert units_of(copy, RULES, "jp-c2")[METADATA].digest == digest(content.encode())


@pytest.mark.parametrize(
    ("file", "unit"),
    [("metadata.json", METADATA), ("events.json", STREAM), ("base_config.json", STREAM), ("NOTE.md", "extra:NOTE.md")],
)
def test_a_file_that_cannot_be_read_makes_its_unit_faulty(file: str, unit: str) -> None:
    (copy,) = unreadable(stored(WHOLE, '1-a/NOTE.md  09:00 "x"'), f"1-a/{file}").copies
    units = units_of(copy, RULES, "jp-c2")
    assert {name for name, each in units.items() if each.fault is not None} == {unit}
    assert (units[unit].digest, units[unit].raw) == (None, None)
    fault = units[unit].fault
    assert fault is not None
    assert fault.file == file


def test_content_that_is_invalid_has_bytes_but_no_name() -> None:
    (copy,) = stored('1-a/metadata.json  09:00 "{"', '1-a/events.json  09:00 ""').copies
    for unit in units_of(copy, RULES, None).values():
        assert unit.digest is None
        assert unit.fault is not None
        assert unit.raw is not None


FOREIGN_OR_NOT = {
    "a file of its own": ("NOTE.md", False),
    "in a folder named like a conversation": ("1-a/2-b/x", False),
    "in another conversation": ("conversations/2-b/x", True),
    "in the archive of those below": ("conversations/.archive/2-b/x", True),
    "in their trash": ("conversations/.trash/2-b/x", True),
    "in no conversation": ("conversations/notes/x", False),
    "in a folder of what is no conversation": ("conversations/notes/2-b/x", False),
    "in an archive of an archive": ("conversations/.archive/.trash/2-b/x", False),
}


@pytest.mark.parametrize(("name", "answer"), FOREIGN_OR_NOT.values(), ids=FOREIGN_OR_NOT)
def test_what_in_a_directory_is_another_conversations(name: str, answer: bool) -> None:
    assert is_of_another(name, FORMAT.id_of) is answer


def test_a_file_that_cannot_be_read_says_what_was_found_and_expected() -> None:
    (copy,) = unreadable(stored(WHOLE, '1-a/NOTE.md  09:00 "x"'), "1-a/NOTE.md").copies
    assert units_of(copy, RULES, None)["extra:NOTE.md"].fault == Unreadable("NOTE.md", "", "a readable file")


def test_nothing_is_named_where_one_file_has_no_name() -> None:
    (copy,) = unreadable(stored(WHOLE), "1-a/events.json").copies
    assert joined_digest(copy.files) is None


@pytest.mark.parametrize(
    ("unit", "spelling"),
    [
        (STREAM, "events"),
        (METADATA, "metadata"),
        (f"{EXTRA}NOTE.md", "NOTE.md"),
        (f"{EXTRA}events", "extra:events"),
        (f"{EXTRA}stream", "extra:stream"),
        (f"{EXTRA}metadata", "extra:metadata"),
    ],
)
def test_a_spelling_stands_for_one_unit(unit: str, spelling: str) -> None:
    assert unit_spelling(unit) == spelling
    assert unit in spelled_units(spelling)


def test_the_older_spelling_of_events_is_known() -> None:
    assert spelled_units("stream") == (STREAM, "extra:stream")


def test_a_repository_in_a_directory_is_none_where_its_files_are_units() -> None:
    """A directory is asked about by a file in it, and the file of a worktree by itself."""
    asked: list[str] = []

    def unit_of(name: str) -> str | None:
        asked.append(name)
        return EXTRA + name if name.startswith("kept/") else None

    names = [("sub/.git", True), (".git", False), ("kept/.git", True), ("kept/.git", False), ("sub/git", True)]
    assert [is_nested_git(name, unit_of, directory=directory) for name, directory in names] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert asked == ["sub/.git/HEAD", ".git", "kept/.git/HEAD", "kept/.git"]
