"""The files of an index: each section is as it was written, or the file counts as none; few changes are saved alone."""

from __future__ import annotations

import errno
import io
import os
from array import array
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.index.file import IndexFile, Sections, encode_sections, load_values, save_values
from reconcile.index.on_disk import IndexChangedError
from reconcile.index.rows import Index, Row, make_row
from reconcile.index.stat_table import StatList, StatTable
from reconcile.index.status import SideStatus, Status
from reconcile.index.summary import Answer, Summary
from reconcile.state.directory import GENERATION, generation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


VALUES = [("a", 1, None), (b"names\0", b"\0" * 300), ()]
CHECKOUT = "1:23"
WHOLE, CHANGED = "index-1-23", "index-1-23.changes"
REQUEST, NOW = ("all", 1), 10**18
COUNT = 100


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "values"
    save_values(str(path), "kind", *VALUES)
    return path


def test_values_are_loaded_as_they_were_saved(path: Path) -> None:
    assert load_values(str(path), "kind") == VALUES
    assert load_values(str(path), "another") is None
    assert load_values(str(path.with_name("missing")), "kind") is None
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_was_cut_counts_as_none(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert load_values(str(path), "kind") is None, length


def test_a_file_with_another_byte_counts_as_none(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    for at in range(len(whole)):
        whole[at] ^= 0x55
        path.write_bytes(whole)
        assert load_values(str(path), "kind") is None, at
        whole[at] ^= 0x55
    path.write_bytes(whole + b"more")
    assert load_values(str(path), "kind") is None


def test_a_section_is_read_alone() -> None:
    _, parts = encode_sections("kind", [b"one", b"", b"three"])
    blob = b"".join(parts)
    sections = Sections(io.BytesIO(blob), "kind", len(blob))
    assert (sections.read(-1), sections.read(0), sections.read(1), len(sections)) == (b"three", b"one", b"", 3)
    damaged = Sections(io.BytesIO(blob[:-1] + b"x"), "kind", len(blob))
    assert damaged.read(0) == b"one"
    with pytest.raises(ValueError, match="damaged"):
        damaged.read(2)


# --- the file of a checkout -------------------------------------------------------------------------------------


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / GENERATION).write_bytes(b"mark")
    return tmp_path


@pytest.fixture(params=["of a run", "of a process that stays"])
def file(state: Path, request: pytest.FixtureRequest) -> IndexFile:
    return IndexFile(str(state), CHECKOUT, stays=request.param == "of a process that stays")


def row(number: int) -> Row:
    new = make_row({"metadata.json": ((number, 1, 2, 3), "0" * 32)}, None, None)
    assert new is not None
    return new


def new_indexes() -> tuple[Index, Index]:
    """Return the store's index with many rows, and the workspace's with none."""
    store = Index("jp", "1:2")
    store.rows.update({f"c{number}": row(number) for number in range(COUNT)})
    return store, Index("jp", "1:3")


def indexes_of(file: IndexFile) -> tuple[Index, Index]:
    return file.load_indexes()[1]


def mark_of(file: IndexFile) -> bytes:
    return file.load_indexes()[0]


def table() -> StatTable:
    names = [f"c{number}" for number in range(COUNT)]
    return StatTable.of(StatList(names, array("q", range(4 * COUNT))))


def status() -> Status:
    sides = (
        SideStatus("1:2", {f"c{number}": f"id{number}" for number in range(COUNT)} | {"no-row": "id-no-row"}, ()),
        SideStatus("1:3", {f"w{number}": f"id{number}" for number in range(COUNT)}, (("x", "a link", True, False),)),
    )
    counted = {f"id{number}": "in-sync" for number in range(COUNT)}
    return Status(sides, {"id1": frozenset({"id2"})}, frozenset(counted), (True, True), counted, (("c7",), ()))


def summary(state: Path, one: StatTable, other: StatTable, *, due: tuple[str, ...] = ()) -> Summary:
    answer = Answer("nested", (("in-sync", COUNT),), (), (), (), quiet=True, besides=False)
    mark = generation(str(state))
    assert mark is not None
    return Summary(REQUEST, mark, NOW, ("store", "workspace"), answer, due, (one, other))


def written(
    state: Path,
    file: IndexFile,
    indexes: Sequence[Index],
    saved: Summary | None = None,
    known: Status | None = None,
) -> set[str]:
    """Save, and return the names of the files that were written."""
    before = {path.name: path.stat().st_ino for path in state.iterdir()}
    file.save(indexes, saved, known)
    return {path.name for path in state.iterdir() if before.get(path.name) != path.stat().st_ino}


def without_base(known: Status) -> Status:
    return replace(known, base=b"", changes=({}, {}, {}, {}, {}))


def loaded_status(file: IndexFile) -> Status | None:
    mark, indexes = file.load_indexes()
    return file.load_status(mark, [index.rows.saved_paths for index in indexes])


def test_what_is_saved_is_loaded(state: Path, file: IndexFile) -> None:
    indexes = new_indexes()
    assert written(state, file, indexes, summary(state, table(), table(), due=("id1",)), status()) == {WHOLE}
    mark, again = file.load_indexes()
    for before, now in zip(indexes, again, strict=True):
        assert (now.format, now.identity, dict(now.rows), now.base) == (
            before.format,
            before.identity,
            dict(before.rows),
            before.base,
        )
    last = file.load_summary(REQUEST, NOW + 1)
    assert last is not None
    assert (last.answer, last.due, last.mark) == (summary(state, table(), table()).answer, ("id1",), mark)
    assert [list(each.pieces) for each in last.tables] == [table().pieces] * 2
    known = loaded_status(file)
    assert known is not None
    assert without_base(known) == status()
    assert known.base == again[0].base
    assert file.load_status(b"another", [(), ()]) is None


def test_a_summary_answers_the_same_request_of_the_same_state_within_a_day(state: Path, file: IndexFile) -> None:
    assert file.load_summary(REQUEST, NOW) is None
    file.save(new_indexes(), summary(state, table(), table()), status())
    assert file.load_summary(REQUEST, NOW) is not None
    assert file.load_summary(("another",), NOW) is None
    assert file.load_summary(REQUEST, NOW + 24 * 3600 * 10**9) is None
    assert file.load_summary(REQUEST, NOW - 1) is None
    (state / GENERATION).write_bytes(b"other")
    assert file.load_summary(REQUEST, NOW) is None


def test_few_changes_are_saved_alone(state: Path, file: IndexFile) -> None:
    file.save(new_indexes(), summary(state, table(), table()), status())
    whole = (state / WHOLE).read_bytes()
    for number in range(2):
        last, known = file.load_summary(REQUEST, NOW), loaded_status(file)
        assert last is not None
        assert known is not None
        store, workspace = indexes_of(file)
        store.rows["c7"] = row(1007 + number)
        store.rows["new"] = row(1)
        store.rows.pop("c9", None)
        store.rows.pop("new-and-gone", None)
        later = StatList([f"c{number}", "new"], array("q", [1000] * 8))
        one = last.tables[0].patched([later], {"c9"}, ())
        conversations = {**known.sides[0].conversations, "new": "id-new", f"c{number}": "another"}
        conversations.pop("c9", None)
        now = replace(
            known,
            sides=(replace(known.sides[0], conversations=conversations), replace(known.sides[1], foreign=())),
            above={"id1": frozenset({"id3"}), "id5": frozenset({"id6"})},
            remembered=known.remembered - {"id9"} | {"id-new"},
            counted={id_: state for id_, state in known.counted.items() if id_ != "id9"}
            | {"id1": "held", "id-new": "?"},
            incomplete=((), (f"w{number}",)),
        )
        saved = summary(state, one, last.tables[1], due=("id-new",))
        assert written(state, file, (store, workspace), saved, now.since(known)) == {CHANGED}
        again, last, known = indexes_of(file), file.load_summary(REQUEST, NOW), loaded_status(file)
        assert dict(again[0].rows) == dict(store.rows)
        assert again[0].base == store.base
        assert last is not None
        assert known is not None
        assert (last.due, last.tables[0].since, last.mark) == (("id-new",), one.since, mark_of(file))
        assert without_base(known) == without_base(now)
    assert (len(again[0].rows), again[0].rows["c7"], "c9" in again[0].rows) == (COUNT, row(1008), False)
    assert (state / WHOLE).read_bytes() == whole
    again[0].rows["c9"] = row(9)
    file.save(again)
    assert indexes_of(file)[0].rows["c9"] == row(9)


@pytest.mark.parametrize("part", ["rows", "table", "status"])
def test_many_changes_are_saved_with_everything(state: Path, file: IndexFile, part: str) -> None:
    file.save(new_indexes(), summary(state, table(), table()), status())
    last, known = file.load_summary(REQUEST, NOW), loaded_status(file)
    assert last is not None
    assert known is not None
    store, workspace = indexes_of(file)
    store.rows["c7"] = row(1007)
    assert written(state, file, (store, workspace), last, known) == {CHANGED}
    one, now = last.tables[0], known
    if part == "rows":
        store.rows.update({f"c{number}": row(1000 + number) for number in range(8)})
    elif part == "table":
        names = [f"new{number}" for number in range(8)]
        one = one.patched([StatList(names, array("q", [5] * 32))], {"c1"}, ())
    else:
        counted = {**known.counted} | {f"id{number}": "held" for number in range(20)}
        now = replace(known, counted=counted).since(known)
    assert written(state, file, (store, workspace), summary(state, one, last.tables[1]), now) == {WHOLE}
    assert not (state / CHANGED).exists()
    again, last, known = indexes_of(file), file.load_summary(REQUEST, NOW), loaded_status(file)
    assert dict(again[0].rows) == dict(store.rows)
    assert last is not None
    assert (list(last.tables[0].pieces), dict(last.tables[0].since)) == (one.merged().pieces, {})
    assert known is not None
    assert without_base(known) == without_base(now)
    store.rows.pop("c50")
    assert written(state, file, (store, workspace), last, known) == {CHANGED}


def test_rows_that_are_saved_alone_make_the_summary_and_the_status_void(state: Path, file: IndexFile) -> None:
    file.save(new_indexes(), summary(state, table(), table()), status())
    store, workspace = indexes_of(file)
    store.rows["c7"] = row(1007)
    assert written(state, file, (store, workspace)) == {CHANGED}
    assert file.load_summary(REQUEST, NOW) is None
    assert loaded_status(file) is None
    assert indexes_of(file)[0].rows["c7"] == row(1007)


def test_a_damaged_file_counts_as_none(state: Path, file: IndexFile) -> None:
    file.save(new_indexes(), summary(state, table(), table()), status())
    mark = mark_of(file)
    whole = (state / WHOLE).read_bytes()
    for at in (0, 15, 60, 100, 400, len(whole) // 2, len(whole) - 1):
        (state / WHOLE).write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        now, indexes = file.load_indexes()
        assert indexes == (Index(), Index()) or (now == mark and loaded_status(file) is None), at
        (state / WHOLE).write_bytes(whole[:at])
        assert file.load_indexes() == (b"", (Index(), Index())), at
        assert file.load_summary(REQUEST, NOW) is None, at


def test_a_process_that_stays_has_what_it_has_loaded(state: Path) -> None:
    """Another process replaces the file: the open one is as it was. One that is written into counts as none."""
    file = IndexFile(str(state), CHECKOUT, stays=True)
    file.save(new_indexes(), summary(state, table(), table()), status())
    loaded, last = indexes_of(file)[0], file.load_summary(REQUEST, NOW)
    IndexFile(str(state), CHECKOUT).save((Index(), Index()))
    assert dict(loaded.rows) == dict(new_indexes()[0].rows)
    assert last is not None
    assert list(last.tables[1].pieces[:1]) == table().pieces
    file.save((loaded, Index("jp", "1:3")))
    assert loaded.rows["c9"] == row(9)
    with (state / WHOLE).open("r+b") as written_into:
        written_into.truncate(1000)
    with pytest.raises(IndexChangedError):
        loaded.rows["c99"]


def test_changes_of_another_file_or_damaged_ones_count_as_none(state: Path, file: IndexFile) -> None:
    file.save(new_indexes(), summary(state, table(), table()), status())
    last, known = file.load_summary(REQUEST, NOW), loaded_status(file)
    store, workspace = indexes_of(file)
    store.rows["c7"] = row(1007)
    file.save((store, workspace), last, known)
    whole = (state / CHANGED).read_bytes()
    for at in (0, 40, len(whole) // 2, len(whole) - 1):
        (state / CHANGED).write_bytes(whole[:at])
        damaged = indexes_of(file)
        assert (damaged[0].rows["c7"], damaged[0].base) == (row(7), store.base)
        before = file.load_summary(REQUEST, NOW)
        assert before is not None, "what the file of everything has still holds"
        assert before.mark == mark_of(file)
    # The header can still be read; what was saved with it can't, so that no run goes on from it.
    (state / CHANGED).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    last = file.load_summary(REQUEST, NOW)
    assert last is not None
    assert last.mark != mark_of(file)
    other = Index("jp", "1:9")
    other.rows.update({"c1": row(5)})
    (state / WHOLE).unlink()
    assert written(state, file, (other, Index())) == {WHOLE}
    (state / CHANGED).write_bytes(whole)
    assert dict(indexes_of(file)[0].rows) == {"c1": row(5)}
    assert file.load_summary(REQUEST, NOW) is None


def test_a_row_that_cannot_be_encoded_is_left_out(state: Path, file: IndexFile) -> None:
    store, workspace = new_indexes()
    file.save((store, workspace))
    odd = row(7)._replace(title="\ud800")
    store.rows["c7"] = odd
    assert written(state, file, (store, workspace)) == {CHANGED}
    assert "c7" not in indexes_of(file)[0].rows
    assert store.rows["c7"] == odd
    store.rows.update({f"c{number}": row(1000 + number) for number in range(20, 30)})
    assert written(state, file, (store, workspace)) == {WHOLE}
    assert "c7" not in indexes_of(file)[0].rows
    assert store.rows["c7"] == odd


def test_after_a_failed_save_the_next_one_knows_what_is_saved(
    state: Path, file: IndexFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store, workspace = new_indexes()
    file.save((store, workspace))
    store.is_saved = False
    store.rows.update({f"c{number}": row(1000 + number) for number in range(20)})
    with monkeypatch.context() as patched:
        patched.setattr("reconcile.fs.private_files.replace_private_file", full)
        assert written(state, file, (store, workspace)) == set()
    assert not store.is_saved
    assert indexes_of(file)[0].rows["c7"] == row(7)
    store.rows["c50"] = row(1050)
    file.save((store, workspace))
    again = indexes_of(file)[0]
    assert (dict(again.rows), again.base, store.is_saved) == (dict(store.rows), store.base, True)


def test_a_checkout_without_a_file_has_the_rows_of_the_store_that_another_has_saved(
    state: Path, file: IndexFile
) -> None:
    store, workspace = new_indexes()
    workspace.rows.update({"w1": row(1)})
    file.save((store, workspace), summary(state, table(), table()), status())
    store.rows["c7"] = row(1007)
    file.save((store, workspace))
    (state / "index-4-4").write_bytes(b"damaged, and newer")
    other = IndexFile(str(state), "5:5")
    assert other.load_summary(REQUEST, NOW) is None
    mark, (its_store, its_workspace) = other.load_indexes()
    assert (mark, dict(its_store.rows), dict(its_workspace.rows)) == (b"", dict(store.rows), {})
    assert written(state, other, (its_store, its_workspace)) == {"index-5-5"}
    assert dict(indexes_of(other)[0].rows) == dict(store.rows)
    newer = Index("jp", "1:2")
    newer.rows.update({"c1": row(77)})
    other.save((newer, Index()))
    os.utime(state / "index-5-5", (2**31, 2**31))
    assert dict(indexes_of(IndexFile(str(state), "6:6"))[0].rows) == {"c1": row(77)}


def test_the_files_of_earlier_versions_are_removed(state: Path, file: IndexFile) -> None:
    earlier = ["index-store", "index-store.changes", "index-workspace-12", "index-workspace-1.changes", "rest-1-23"]
    earlier += ["swept-1-23", "known-1-23", "rest-1-23.tmp"]
    others = ["state.sqlite", "git-1-23", "lock", "index-4-4", "index-4-4.changes", "rest-of-it", "known", "index-my"]
    for name in (*earlier, *others):
        (state / name).write_bytes(b"")
    assert WHOLE in written(state, file, new_indexes())
    assert {path.name for path in state.iterdir()} == {*others, WHOLE, GENERATION}
