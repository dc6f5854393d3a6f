"""Files replaced together or not at all, while somebody writes to them between any two calls."""

from __future__ import annotations

import errno
import itertools
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from reconcile.apply.actions import Swap
from reconcile.apply.staging import DriftError
from reconcile.fs.hashing import digest
from reconcile.fs.mutations import Root

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OLD, NEW = b"old", b"new"


def refused(*_: object) -> None:
    raise PermissionError(errno.EPERM, "no hard links here")


@pytest.fixture(params=["exchange", "links", "neither"])
def swap(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Swap]:
    """Two old files, two new ones in our staging directory; with the exchange, as on macOS, and as on exFAT."""
    if request.param != "exchange":
        monkeypatch.setattr("reconcile.fs.posix._find_renameat2", lambda: None)
    if request.param == "neither":
        monkeypatch.setattr(Root, "link", refused)
    (tmp_path / ".staging").mkdir()
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(OLD)
        (tmp_path / ".staging" / name).write_bytes(NEW)
    numbers = itertools.count()
    root = Root(str(tmp_path))
    yield Swap(root, lambda: f".staging/{next(numbers)}")
    root.close()


def replace(swap: Swap, name: str) -> None:
    swap.replace(f".staging/{name}", name, digest(OLD))


def staged(tmp_path: Path) -> set[bytes]:
    return {path.read_bytes() for path in (tmp_path / ".staging").iterdir()}


def test_what_is_settled_leaves_nothing_behind(swap: Swap, tmp_path: Path) -> None:
    replace(swap, "a")
    swap.remove("b", digest(OLD))
    swap.finish()
    assert (tmp_path / "a").read_bytes() == NEW
    assert not (tmp_path / "b").exists()
    assert [path.name for path in (tmp_path / ".staging").iterdir()] == ["b"], "the one that was not used"


def test_everything_goes_back(swap: Swap, tmp_path: Path) -> None:
    replace(swap, "a")
    swap.remove("b", digest(OLD))
    swap.add(".staging/b", "c")
    swap.undo()
    assert {path.name: path.read_bytes() for path in tmp_path.glob("[a-c]")} == {"a": OLD, "b": OLD}
    assert staged(tmp_path) == {NEW}


def test_what_somebody_saves_before_it_goes_back_stays(swap: Swap, tmp_path: Path) -> None:
    replace(swap, "a")
    swap.remove("b", digest(OLD))
    swap.add(".staging/b", "c")
    for name in ("a", "b", "c"):
        (tmp_path / "mine").write_bytes(name.encode())
        (tmp_path / "mine").rename(tmp_path / name)
    swap.undo()
    assert {path.name: path.read_bytes() for path in tmp_path.glob("[a-c]")} == {"a": b"a", "b": b"b", "c": b"c"}
    assert OLD in staged(tmp_path), "for the vault"


@pytest.mark.parametrize("swap", ["exchange"], indirect=True)
def test_what_somebody_saves_right_before_the_way_back_stays(tmp_path: Path, swap: Swap) -> None:
    """The newest stays in its place, and the one before is left for the vault."""

    def save(content: bytes) -> None:
        (tmp_path / "mine").write_bytes(content)
        (tmp_path / "mine").rename(tmp_path / "a")

    save(b"first")
    exchange, due = Root.exchange, [b"second"]
    if not exchange(swap.root, ".staging/b", "b"):
        pytest.skip("this file system has no exchange, and that moment is an exception in docs/safety.md")
    with pytest.raises(DriftError):
        replace(swap, "a")

    def late(root: Root, one: str, other: str) -> bool:
        while due:
            save(due.pop())
        return exchange(root, one, other)

    with mock.patch.object(Root, "exchange", late):
        swap.undo()
    assert (tmp_path / "a").read_bytes() == b"second"
    assert b"first" in staged(tmp_path)


@pytest.mark.parametrize("swap", ["exchange", "links"], indirect=True)
def test_an_old_file_that_is_written_to_later_is_left_for_the_vault(swap: Swap, tmp_path: Path) -> None:
    """Without hard links, that write is lost: an exception in docs/safety.md."""
    with (tmp_path / "a").open("ab", buffering=0) as kept_open:
        replace(swap, "a")
        kept_open.write(b", and more")
        swap.finish()
    assert (tmp_path / "a").read_bytes() == NEW
    assert b"old, and more" in staged(tmp_path)


def test_a_file_that_is_gone_is_no_failure(swap: Swap, tmp_path: Path) -> None:
    (tmp_path / "a").unlink()
    (tmp_path / "b").unlink()
    with pytest.raises(DriftError, match="deleted since the plan was made"):
        replace(swap, "a")
    with pytest.raises(DriftError, match="deleted since the plan was made"):
        swap.remove("b", digest(OLD))
    swap.undo()
    assert not list(tmp_path.glob("[a-c]"))


def test_a_new_name_that_somebody_takes_is_his(swap: Swap, tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(b"his")
    with pytest.raises(FileExistsError):
        swap.add(".staging/b", "c")
    assert (tmp_path / "c").read_bytes() == b"his"


def test_nothing_is_removed_after_the_way_back(swap: Swap, tmp_path: Path) -> None:
    """What can't go back is left for the vault, also if the caller cleans up."""
    replace(swap, "a")
    (tmp_path / "mine").write_bytes(b"mine")
    (tmp_path / "mine").rename(tmp_path / "a")
    swap.undo()
    swap.finish()
    assert OLD in staged(tmp_path)
