"""Event files: what is read, what one version is to another, and both in one."""

from __future__ import annotations

import random
from typing import Any

import pytest

from reconcile.formats.claudesidian.events import (
    Relation,
    compact,
    joined,
    lacks_events,
    line,
    merge,
    read_events,
    relation,
)
from tests.support.formats.claudesidian import CORPUS, needs_corpus


def event(number: int, at: int = 0, **more: Any) -> bytes:
    return line({"type": "trace_added", "data": {"id": f"trace_{number}"}, "id": f"e{number}", "timestamp": at, **more})


def file(*numbers: int) -> bytes:
    return joined(event(number, number) for number in numbers)


def ids(content: bytes) -> list[str | None]:
    return [each.id for each in read_events(content).events]


def test_blank_lines_crlf_and_a_last_line_without_its_end() -> None:
    content = event(1) + b"\r\n\r\n  \n" + event(2)
    found = read_events(content)
    assert (ids(content), found.unreadable) == (["e1", "e2"], ())
    assert [each.number for each in found.events] == [1, 4]
    assert relation(found, read_events(joined([event(1), event(2)]))) is Relation.EQUAL


def test_a_torn_last_line_is_told_from_an_unreadable_one() -> None:
    found = read_events(b"nonsense\n" + event(1) + b"\n[]\n" + event(2)[:-5])
    assert [(each.number, each.torn) for each in found.unreadable] == [(1, False), (3, False), (4, True)]
    assert found.unreadable[1].found == "a JSON array"
    assert "it ends inside a value" in found.unreadable[2].found
    assert [each.id for each in found.events] == ["e1"]


@pytest.mark.parametrize(
    "last", [b'{"id":"e2","data":{"name":"caf\xe9"}}', b'{"id":"e2","timestamp":NaN}', b">>>>>>> theirs", b"======="]
)
def test_a_last_line_that_was_not_cut_is_not_torn(last: bytes) -> None:
    found = read_events(event(1) + b"\n" + last)
    assert [(each.number, each.torn) for each in found.unreadable] == [(2, False)]


def test_a_cut_after_a_brace_is_torn() -> None:
    (line,) = read_events(b'{"id":"e2","data":{"name":"n"}').unreadable
    assert line.torn


RELATIONS = [
    (file(1, 2), file(1, 2), Relation.EQUAL),
    (file(1, 2, 3), file(1, 2), Relation.AHEAD),
    (file(1), file(1, 2), Relation.BEHIND),
    (file(1, 2), file(1, 3), Relation.DIVERGED),
    (b"", file(1), Relation.BEHIND),
    (file(1, 2, 3), file(1, 3), Relation.AHEAD),
    (joined([event(1, 5)]), joined([event(1, 6)]), Relation.DIVERGED),
]


@pytest.mark.parametrize(("mine", "theirs", "expected"), RELATIONS)
def test_what_one_version_is_to_another(mine: bytes, theirs: bytes, expected: Relation) -> None:
    assert relation(read_events(mine), read_events(theirs)) is expected
    mirrored = {Relation.AHEAD: Relation.BEHIND, Relation.BEHIND: Relation.AHEAD}
    assert relation(read_events(theirs), read_events(mine)) is mirrored.get(expected, expected)


def test_two_tails_become_one_by_time() -> None:
    mine, theirs = read_events(file(1, 2, 4, 6)), read_events(file(1, 2, 3, 5))
    merged = merge(mine, theirs)
    assert merged == merge(theirs, mine) == file(1, 2, 3, 4, 5, 6)


def test_a_torn_tail_is_left_out_of_the_union() -> None:
    assert merge(read_events(file(1, 2) + event(3)[:9]), read_events(file(1))) == file(1, 2)


def test_what_can_not_be_united() -> None:
    assert merge(read_events(joined([event(1, 5)])), read_events(joined([event(1, 6)]))) is None
    marked = b"<<<<<<< HEAD\n" + event(1) + b"\n=======\n" + event(2) + b"\n>>>>>>> other\n"
    assert merge(read_events(marked), read_events(file(3))) is None


def test_a_line_that_is_no_event_stays_where_it_was() -> None:
    glued = event(2)[:20] + event(3) + b"\n"
    merged = merge(read_events(file(1) + glued + file(4)), read_events(file(1, 5)))
    assert merged == file(1) + glued + file(4, 5)
    assert merged == merge(read_events(file(1, 5)), read_events(file(1) + glued + file(4)))


def test_two_texts_under_one_id_are_both_kept() -> None:
    twice = joined([event(1, 1), event(1, 2), event(3, 3)])
    merged = merge(read_events(twice), read_events(joined([event(1, 1), event(4, 4)])))
    assert merged == twice + file(4)


LOST = [
    (file(1, 2, 3), file(1, 4), True),
    (file(1, 2), file(2, 1, 3), False),
    (file(1), b"", True),
    (joined([event(1, 5)]), joined([event(1, 6)]), False),
    (joined([event(1, 5), event(1, 6)]), joined([event(1, 6)]), True),
    (file(1, 2), file(1) + b"not an event\n" + file(2), False),
]


@pytest.mark.parametrize(("before", "after", "lost"), LOST)
def test_which_edits_lose_events(before: bytes, after: bytes, lost: bool) -> None:
    assert lacks_events(read_events(before), read_events(after)) is lost


def test_events_of_one_device_keep_their_order_whatever_their_time_says() -> None:
    backwards = joined([event(1, 1), event(5, 5), event(2, 2)])
    assert merge(read_events(backwards), read_events(file(1, 3))) == joined(
        [event(1, 1), event(3, 3), event(5, 5), event(2, 2)]
    )


def test_the_union_of_any_two_has_everything_once() -> None:
    for seed in range(300):
        chance = random.Random(seed)
        shared = chance.randrange(3)
        tails = [chance.sample(range(3, 12), k=chance.randrange(6)) for _ in "ab"]
        mine, theirs = (read_events(file(*range(shared), *tail)) for tail in tails)
        merged = merge(mine, theirs)
        assert merged == merge(theirs, mine)
        assert merged is not None
        found = read_events(merged)
        assert sorted(map(str, ids(merged))) == sorted({str(each.id) for each in (*mine.events, *theirs.events)})
        assert {relation(found, mine), relation(found, theirs)} <= {Relation.EQUAL, Relation.AHEAD}
        again = merge(found, mine)
        assert again is not None
        assert set(ids(again)) == set(ids(merged))


@needs_corpus
def test_the_lines_of_the_corpus_are_written_again_byte_by_byte() -> None:
    files = sorted(CORPUS.glob("*/.nexus/*/*.jsonl"))
    assert len(files) == 10
    for path in files:
        content = path.read_bytes()
        assert joined(line(each.value) for each in read_events(content).events) == content


def test_json_without_blanks() -> None:
    assert compact({"b": [1.0, None, True, "é\n"], "7": {}}) == '{"7":{},"b":[1,null,true,"é\\n"]}'
