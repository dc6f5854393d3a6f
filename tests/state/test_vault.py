"""The vault, on real directories."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import time
import tracemalloc
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec import field

from reconcile.fs import hashing
from reconcile.fs.durability import Durability
from reconcile.fs.hashing import CHUNK
from reconcile.fs.hashing import digest as digest_of
from reconcile.state.vault import Vault, VaultError, VaultObject

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

CONTENT = b"a conversation\n"


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(str(tmp_path / "state"), Durability(enabled=False))


def blake2b(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=32).hexdigest()


def files(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


def test_what_is_put_comes_back_under_both_digests(tmp_path: Path, vault: Vault) -> None:
    big = os.urandom(CHUNK * 2 + 1)
    (tmp_path / "big").write_bytes(big)
    by_path = vault.put_file(str(tmp_path / "big"))
    assert by_path == VaultObject(blake2b(big), digest_of(big), len(big))
    assert vault.read(by_path.digest) == big
    small = vault.put_bytes(CONTENT)
    with vault.open(small.digest) as file:
        assert file.read() == CONTENT
    assert vault.put_bytes(b"").size == 0
    assert {digest: size for digest, (size, _) in vault.objects().items()} == {
        by_path.digest: len(big),
        small.digest: len(CONTENT),
        blake2b(b""): 0,
    }


def test_a_descriptor_is_read_from_its_start_and_stays_open(tmp_path: Path, vault: Vault) -> None:
    (tmp_path / "file").write_bytes(CONTENT)
    fd = os.open(tmp_path / "file", os.O_RDONLY)
    os.read(fd, 5)
    kept = vault.put_file(fd)
    os.close(fd)
    assert vault.read(kept.digest) == CONTENT


def test_layout_and_modes(tmp_path: Path, vault: Vault) -> None:
    assert list(tmp_path.iterdir()) == []
    digest = vault.put_bytes(CONTENT).digest
    path = tmp_path / "state" / "vault" / "objects" / digest[:2] / digest
    assert path.read_bytes() == CONTENT
    assert str(path) == vault.path(digest)
    assert files(tmp_path) == [str(path.relative_to(tmp_path))]
    assert path.stat().st_mode & 0o777 == 0o600
    for directory in list(path.parents)[:4]:
        assert directory.stat().st_mode & 0o777 == 0o700


def test_a_link_is_not_followed(tmp_path: Path, vault: Vault) -> None:
    (tmp_path / "secret").write_bytes(CONTENT)
    (tmp_path / "link").symlink_to("secret")
    with pytest.raises(OSError, match="symbolic links"):
        vault.put_file(str(tmp_path / "link"))
    assert not os.path.lexists(vault.path(blake2b(CONTENT)))


def test_an_object_that_is_there_stays(tmp_path: Path, vault: Vault) -> None:
    digest = vault.put_bytes(CONTENT).digest
    inode = Path(vault.path(digest)).stat().st_ino
    vault.put_bytes(CONTENT)
    os.utime(vault.path(digest), (0, 0))
    Vault(str(tmp_path / "state"), Durability(enabled=False)).put_bytes(CONTENT)
    assert Path(vault.path(digest)).stat().st_ino == inode
    assert vault.objects()[digest][1] > 0, "`vault --prune` removes what is old"
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("damage", [b"a conversatioN\n", b"a conv", b""])
def test_damage_is_noticed_on_reading_and_mended_by_the_next_put(tmp_path: Path, vault: Vault, damage: bytes) -> None:
    digest = vault.put_bytes(CONTENT).digest
    Path(vault.path(digest)).write_bytes(damage)
    for read in (vault.read, vault.open):
        with pytest.raises(VaultError, match="damaged") as caught:
            read(digest)
        assert vault.path(digest) in caught.value.message
    later = Vault(str(tmp_path / "state"), Durability(enabled=False))
    assert later.put_bytes(CONTENT).digest == digest
    assert later.read(digest) == CONTENT


def test_nobody_waits_for_a_pipe_in_the_place_of_an_object(vault: Vault) -> None:
    path = vault.path(vault.put_bytes(b"old").digest)
    vault.flush()
    os.unlink(path)
    os.mkfifo(path)
    with pytest.raises(VaultError, match="not a regular file"):
        vault.read(os.path.basename(path))
    vault.put_bytes(b"old")
    vault.flush()
    assert vault.read(os.path.basename(path)) == b"old"


def test_a_missing_object_is_an_error(vault: Vault) -> None:
    with pytest.raises(VaultError, match="this saved version is missing in the vault"):
        vault.read("0" * 64)


def test_remove(vault: Vault) -> None:
    digest = vault.put_bytes(CONTENT).digest
    assert vault.remove(digest)
    assert not os.path.lexists(vault.path(digest))
    assert not vault.remove(digest)
    vault.flush()
    assert vault.put_bytes(CONTENT).digest == digest
    assert vault.read(digest) == CONTENT


def test_an_unreadable_source_leaves_nothing(tmp_path: Path, vault: Vault) -> None:
    with pytest.raises(OSError, match="not a regular file"):
        vault.put_file(str(tmp_path))
    assert files(tmp_path) == []


def test_leftovers_of_killed_processes_go(tmp_path: Path, vault: Vault) -> None:
    digest = vault.put_bytes(CONTENT).digest
    objects = tmp_path / "state" / "vault" / "objects"
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        dead.wait()
    for pid in (dead.pid, os.getpid(), "x"):
        (objects / f".tmp-{pid}-7").write_bytes(b"half")
    assert list(vault.objects()) == [digest]
    vault.clean()
    assert {path.name for path in objects.glob(".tmp-*")} == {f".tmp-{os.getpid()}-7", ".tmp-x-7"}
    assert vault.read(digest) == CONTENT


def test_a_leftover_of_a_killed_process_with_the_same_number_is_not_in_the_way(tmp_path: Path) -> None:
    """In a container each run is process number 1, which lives."""
    state, kept = str(tmp_path / "state"), str(tmp_path / "file")
    program = f"""if True:
        import os, sys
        from reconcile.state import vault
        os.getpid = lambda: 1
        if len(sys.argv) > 1:
            vault.os.replace = lambda *_: os._exit(9)
        it = vault.Vault({state!r})
        it.put_bytes(sys.stdin.buffer.read())
        it.flush()
        open({kept!r}, "a").close()
        link = lambda path: os.link({kept!r}, path)
        it.keep_growing(link, os.stat({kept!r}), "0" * 32)
        it.clean()
    """
    for words, code in ((["killed"], 9), ([], 0)):
        done = subprocess.run([sys.executable, "-c", program, *words], input=CONTENT, check=False)
        assert done.returncode == code
    vault = Vault(state)
    assert vault.read(blake2b(CONTENT)) == CONTENT
    (left,) = (tmp_path / "state" / "vault" / "objects").glob(".tmp-*")
    assert str(left) not in vault.directories()


class Recording(Durability, frozen=True):
    """Does what it says and remembers what it was asked."""

    asked: list[tuple[list[str], list[str]]] = field(default_factory=list)

    def flush_all(self, files: Collection[str], directories: Iterable[str], within: Collection[str] = ()) -> None:
        directories = list(directories)
        self.asked.append((list(files), directories))
        Durability.flush_all(self, files, directories, within)


class Failing(Durability, frozen=True):
    """Fails as often as there are errors."""

    errors: list[OSError] = field(default_factory=list)

    def flush_all(self, files: Collection[str], directories: Iterable[str], within: Collection[str] = ()) -> None:
        if self.errors:
            raise self.errors.pop()
        Durability.flush_all(self, files, directories, within)


def test_a_flush_takes_every_object_put_since_the_last_and_the_way_to_it(tmp_path: Path) -> None:
    recording = Recording()
    vault = Vault(str(tmp_path), recording)
    Vault(str(tmp_path)).put_bytes(b"before")
    # One that is there may have been put by a process that never flushed.
    paths = [vault.path(vault.put_bytes(content).digest) for content in (CONTENT, b"other", b"before")]
    vault.flush()
    flushed, directories = recording.asked.pop()
    assert sorted(flushed) == sorted(paths)
    wanted = {str(Path(path).parent) for path in paths} | {
        str(tmp_path / "vault" / "objects"), str(tmp_path / "vault"), str(tmp_path),
    }  # fmt: skip
    assert set(directories) == wanted
    recording.asked.clear()
    vault.flush()
    assert not recording.asked


def test_an_object_of_the_last_flush_is_not_flushed_again_unless_it_is_another_file_by_then(tmp_path: Path) -> None:
    """A version of the store, and then the same version of the workspace."""
    recording = Recording()
    vault = Vault(str(tmp_path), recording)
    path = Path(vault.path(vault.put_bytes(CONTENT).digest))
    vault.flush()
    for _ in range(2):
        before = path.stat().st_mtime_ns
        time.sleep(0.02)
        vault.put_bytes(CONTENT)
        vault.flush()
        assert len(recording.asked) == 1
        assert path.stat().st_mtime_ns > before, "`vault --prune` removes what is old"
    path.unlink()
    Vault(str(tmp_path)).put_bytes(CONTENT)
    vault.put_bytes(CONTENT)
    vault.flush()
    assert recording.asked.pop()[0] == [str(path)]
    path.write_bytes(b"damaged")
    vault.put_bytes(CONTENT)
    vault.flush()
    assert recording.asked.pop()[0] == [str(path)]
    assert vault.read(path.name) == CONTENT


def test_the_directories_above_are_flushed_again_if_they_are_made_again(tmp_path: Path) -> None:
    recording = Recording()
    vault = Vault(str(tmp_path), recording)
    for content in (b"1", b"2"):  # in two directories
        vault.put_bytes(content)
        vault.flush()
    above = {str(tmp_path / "vault" / "objects"), str(tmp_path / "vault"), str(tmp_path)}
    first, second = (set(directories) for _, directories in recording.asked)
    assert (above <= first, second & above) == (True, {str(tmp_path / "vault" / "objects")})
    shutil.rmtree(tmp_path / "vault")
    vault.put_bytes(b"1")
    vault.flush()
    assert above <= set(recording.asked.pop()[1])


def test_an_object_that_vanishes_makes_no_later_flush_fail(tmp_path: Path) -> None:
    """Another process may have pruned it."""
    vault = Vault(str(tmp_path / "state"))
    os.unlink(vault.path(vault.put_bytes(CONTENT).digest))
    with pytest.raises(FileNotFoundError):
        vault.flush()
    vault.put_bytes(b"other")
    vault.flush()


def test_after_a_failed_flush_an_object_is_written_again(tmp_path: Path) -> None:
    """The system reports a failed write once, and has the bytes in memory: the next flush would succeed."""
    before, other = Vault(str(tmp_path)), Vault(str(tmp_path))
    old = before.put_bytes(b"old").digest
    vault = Vault(str(tmp_path), failing := Failing())
    first = vault.put_bytes(b"first").digest
    vault.flush()
    failing.errors.append(OSError(errno.EIO, "Input/output error"))
    new, theirs = vault.put_bytes(CONTENT).digest, vault.put_bytes(b"theirs").digest
    for content in (b"old", b"first", CONTENT):
        vault.put_bytes(content)
    time.sleep(0.02)  # until the system's clock for files has moved on
    other.put_bytes(b"theirs")
    with pytest.raises(OSError, match="Input/output"):
        vault.flush()
    assert [other.read(digest) for digest in (old, first, theirs)] == [b"old", b"first", b"theirs"]
    assert not os.path.lexists(vault.path(new)), "it is not durable, and was not there before"
    assert vault.put_bytes(CONTENT).digest == new
    vault.flush()
    assert other.read(new) == CONTENT


def test_memory_is_bounded(tmp_path: Path, vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "CHUNK", 1 << 16)
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(32 << 20)
    tracemalloc.start()
    try:
        assert vault.put_file(str(tmp_path / "sparse")).size == 32 << 20
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


LINES = (b"a\n", b"a\nb\n" * CHUNK, b"a\nb\n" * CHUNK + b"c\n")
ARRAYS = (b"[\n  1\n]\n", b"[\n  1" + b",\n  2" * CHUNK + b"\n]\n", b"[\n  1" + b",\n  2" * CHUNK + b",\n  3\n]\n")
CHANGED = (b"abcdefgh-X!", b"abcdefgh-XY", b"abcdefgh_longer")


@pytest.fixture(params=[LINES, ARRAYS, CHANGED], ids=["lines", "arrays", "changed"])
def growing(request: pytest.FixtureRequest) -> tuple[bytes, bytes, bytes]:
    """Three versions of a file that was appended to."""
    contents: tuple[bytes, bytes, bytes] = request.param
    return contents


@pytest.fixture
def folded(vault: Vault, growing: tuple[bytes, bytes, bytes]) -> list[str]:
    """The versions in the vault, the first two as the beginning of the third."""
    names = [vault.put_bytes(content).digest for content in growing]
    assert vault.fold(names[0], names[1])
    assert vault.fold(names[1], names[2])
    return names


def test_an_object_is_kept_as_the_beginning_of_another(
    vault: Vault, folded: list[str], growing: tuple[bytes, bytes, bytes]
) -> None:
    assert [vault.read(name) for name in folded] == list(growing)
    with vault.open(folded[1]) as file:
        assert os.read(file.fileno(), 9) == growing[1][:9], "by its descriptor, too"
    sizes = {name: size for name, (size, _) in vault.objects().items()}
    assert sizes.keys() == set(folded)
    assert sizes[folded[2]] == len(growing[2])
    assert sizes[folded[0]] + sizes[folded[1]] < 200
    assert [vault.is_folded(name) for name in folded] == [True, True, False]


def test_the_time_of_an_object_is_that_of_its_last_save(vault: Vault) -> None:
    one, two = vault.put_bytes(b"a\n").digest, vault.put_bytes(b"a\nb\n").digest
    os.utime(vault.path(one), (5, 5))
    assert vault.fold(one, two)
    for is_folded in (True, False):
        assert (vault.is_folded(one), vault.objects()[one][1], vault.saved_ns(one)) == (is_folded, 5 * 10**9, 5 * 10**9)
        vault.remove(two)
    vault.put_bytes(b"a\n")
    assert (vault.saved_ns(one) or 0) > 5 * 10**9
    assert vault.saved_ns(two) is None


@pytest.mark.parametrize("other", [b"b\n", b"", b"a\n"], ids=["another", "empty", "itself"])
def test_what_is_no_beginning_stays_whole(vault: Vault, other: bytes) -> None:
    name, into = vault.put_bytes(b"a\n").digest, vault.put_bytes(other).digest
    assert not vault.fold(name, into)
    assert not vault.fold(name, "0" * 64)
    assert not vault.fold("0" * 64, name)
    assert (vault.read(name), vault.is_folded(name)) == (b"a\n", False)


def test_only_a_short_end_may_differ(vault: Vault) -> None:
    into = vault.put_bytes(b"a" * 100 + b"b" * 100).digest
    assert vault.fold(vault.put_bytes(b"a" * 100 + b"]" * 32).digest, into)
    assert not vault.fold(vault.put_bytes(b"a" * 100 + b"]" * 33).digest, into)


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_removed_object_takes_no_other_with_it(
    vault: Vault, folded: list[str], gone: int, growing: tuple[bytes, bytes, bytes]
) -> None:
    assert vault.remove(folded[gone])
    assert not vault.remove(folded[gone])
    with pytest.raises(VaultError):
        vault.read(folded[gone])
    assert [vault.read(name) for name in folded if name != folded[gone]] == [
        content for content in growing if content != growing[gone]
    ]


def test_a_folded_object_that_is_stored_again_is_whole_again(
    vault: Vault, folded: list[str], growing: tuple[bytes, bytes, bytes]
) -> None:
    assert vault.put_bytes(growing[1]).digest == folded[1]
    assert not vault.is_folded(folded[1])
    assert vault.remove(folded[2])
    assert [vault.read(name) for name in folded[:2]] == list(growing[:2])
    assert vault.remove(folded[1])
    with pytest.raises(VaultError):
        vault.read(folded[1])
    assert vault.read(folded[0]) == growing[0]


def test_killed_between_the_two_files_of_a_fold(
    vault: Vault, growing: tuple[bytes, bytes, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [vault.put_bytes(content).digest for content in growing[:2]]
    with monkeypatch.context() as killed:
        killed.setattr(os, "unlink", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            vault.fold(*names)
    assert [vault.read(name) for name in names] == list(growing[:2])
    assert vault.fold(*names)
    assert vault.read(names[0]) == growing[0]


@pytest.mark.parametrize("damage", ["the whole", "the part", "in a circle"])
def test_damage_of_a_folded_object_is_noticed(
    vault: Vault, folded: list[str], damage: str, growing: tuple[bytes, bytes, bytes]
) -> None:
    if damage == "the whole":
        Path(vault.path(folded[2])).write_bytes(b"x" * len(growing[2]))
    else:
        text = "no digest" if damage == "the part" else f"{folded[0]} 2"
        Path(f"{vault.path(folded[1])}.part").write_text(text)
    with pytest.raises(VaultError):
        vault.read(folded[1])


# A file that grows in its place.


class Grown:
    """A file outside the vault, and its versions in the vault."""

    def __init__(self, vault: Vault, path: Path) -> None:
        self.vault, self.path = vault, path
        self.names: list[str] = []
        path.write_bytes(b"")

    def keep(self) -> VaultObject | None:
        content = self.path.read_bytes()
        kept = self.vault.keep_growing(partial(os.link, self.path), self.path.stat(), digest_of(content))
        self.vault.flush()
        return kept

    def grow(self, *contents: bytes) -> list[str]:
        for content in contents:
            with self.path.open("ab") as file:
                file.write(content)
            kept = self.keep()
            assert kept is not None
            self.names.append(kept.digest)
        return list(self.names)

    def replace(self, content: bytes) -> None:
        other = self.path.with_name("other")
        other.write_bytes(content)
        other.rename(self.path)

    def second_names(self) -> list[Path]:
        return sorted(self.path.parent.rglob("*.grows"))


@pytest.fixture
def grown(tmp_path: Path, vault: Vault) -> Grown:
    return Grown(vault, tmp_path / "file")


def test_the_versions_of_a_file_that_grows_need_no_copy(vault: Vault, grown: Grown) -> None:
    one, two = grown.grow(b"a\n", b"b\n" * CHUNK)
    with grown.path.open("ab") as file:
        file.write(b"c\n")
    assert (vault.read(one), vault.read(two)) == (b"a\n", b"a\n" + b"b\n" * CHUNK)
    assert vault.objects().keys() == {one, two}
    assert sum(size for size, _ in vault.objects().values()) < 400
    assert vault.is_folded(one)
    assert [path.samefile(grown.path) for path in grown.second_names()] == [True]


@pytest.mark.parametrize("how", ["replaced", "removed"])
def test_they_stay_if_the_file_leaves_its_place(vault: Vault, grown: Grown, how: str) -> None:
    names = grown.grow(b"a\n", b"b\n")
    if how == "removed":
        grown.path.unlink()
    else:
        grown.replace(b"a\n" * 5)
        grown.grow(b"d\n")
        assert len(grown.second_names()) == 2
    assert [vault.read(name) for name in names] == [b"a\n", b"a\nb\n", b"a\n" * 5 + b"d\n"][: len(names)]
    sizes = {name: size for name, (size, _) in vault.objects().items()}
    assert sizes[names[1]] - sizes[names[0]] == len(b"a\nb\n"), "that file is on the disk for it alone"


def test_the_same_content_has_one_name(vault: Vault, grown: Grown) -> None:
    first = grown.grow(b"a\n")
    grown.replace(b"")
    assert grown.grow(b"a\n") == first * 2
    assert vault.read(first[0]) == b"a\n"


@pytest.mark.parametrize("how", ["another name", "another file system", "no links"])
def test_a_file_that_cannot_have_one_name_more_is_copied_by_the_caller(
    vault: Vault, grown: Grown, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EXDEV if how == "another file system" else errno.EPERM, "no")

    if how == "another name":
        os.link(grown.path, grown.path.with_name("kept by a person"))
    else:
        monkeypatch.setattr(os, "link", refused)
    assert grown.keep() is None
    assert vault.objects() == {}


def test_a_file_that_got_another_name_later_is_copied_by_the_caller(vault: Vault, grown: Grown) -> None:
    (name,) = grown.grow(b"a\n")
    os.link(grown.path, grown.path.with_name("kept by a person"))
    assert grown.keep() is None
    assert vault.read(name) == b"a\n"


def test_a_full_disk_is_told(grown: Grown, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "link", refused)
    with pytest.raises(OSError, match="full"):
        grown.keep()


def test_a_file_that_was_edited_in_its_place_is_noticed(vault: Vault, grown: Grown) -> None:
    names = grown.grow(b"a\n", b"b\n", b"c\n")
    grown.path.write_bytes(b"a\nX\n")
    assert vault.read(names[0]) == b"a\n"
    for name in names[1:]:
        with pytest.raises(VaultError, match="damaged"):
            vault.read(name)


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_removed_version_takes_no_other_with_it(vault: Vault, grown: Grown, gone: int) -> None:
    names = grown.grow(b"a\n", b"b\n", b"c\n")
    grown.path.unlink()
    assert vault.remove(names[gone])
    assert not vault.remove(names[gone])
    contents = (b"a\n", b"a\nb\n", b"a\nb\nc\n")
    assert [vault.read(name) for name in names if name != names[gone]] == [
        content for at, content in enumerate(contents) if at != gone
    ]
    (path,) = grown.second_names()
    assert path.read_bytes() == contents[1 if gone == 2 else 2], "what was removed is on the disk no more"
    for name in names:
        vault.remove(name)
    assert (vault.objects(), grown.second_names()) == ({}, [])


def test_a_removed_version_leaves_the_file_in_its_place_alone(vault: Vault, grown: Grown) -> None:
    (name,) = grown.grow(b"a\n")
    with grown.path.open("ab") as file:
        file.write(b"more\n")
    assert vault.remove(name)
    assert (grown.path.read_bytes(), grown.second_names()) == (b"a\nmore\n", [])


def test_a_removed_object_cuts_no_file_that_it_was_not_in(vault: Vault, grown: Grown, tmp_path: Path) -> None:
    names, other = grown.grow(b"a\n", b"b\n"), Grown(vault, tmp_path / "another")
    (another,) = other.grow(b"c\n")
    with grown.path.open("ab") as file:
        file.write(b"in no version\n")
    (second,) = [path for path in grown.second_names() if path.samefile(grown.path)]
    for path in (grown.path, other.path):
        path.unlink()
    for digest in (vault.put_bytes(CONTENT).digest, another):
        assert vault.remove(digest)
        assert second.read_bytes() == b"a\nb\nin no version\n"
    assert vault.remove(names[0])
    assert second.read_bytes() == b"a\nb\n"


def test_killed_before_a_removed_version_is_cut(vault: Vault, grown: Grown, monkeypatch: pytest.MonkeyPatch) -> None:
    names = grown.grow(b"a\n", b"secret\n")
    grown.path.unlink()
    with monkeypatch.context() as killed:
        killed.setattr(os, "truncate", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            vault.remove(names[1])
    assert vault.remove(names[1]), "the second time"
    assert [path.read_bytes() for path in grown.second_names()] == [b"a\n"]


def test_nothing_is_cut_while_a_part_cannot_be_read(vault: Vault, grown: Grown) -> None:
    names = grown.grow(b"a\n", b"b\n")
    grown.path.unlink()
    part = Path(f"{vault.path(names[1])}.part")
    kept = part.read_text()
    part.write_text("no part")
    assert vault.remove(names[0])
    part.write_text(kept)
    assert vault.read(names[1]) == b"a\nb\n"


def test_an_object_that_is_missing_or_cut_is_incomplete_and_a_folded_one_is_not(vault: Vault) -> None:
    end, other = b"the end of it" * 100, b"another"
    one, two, third = (vault.put_bytes(content) for content in (CONTENT * 100, CONTENT * 100 + end, other))
    sizes = {each.digest: each.size for each in (one, two, third)}
    assert vault.fold(one.digest, two.digest)
    assert vault.incomplete(sizes) == []
    os.truncate(vault.path(third.digest), 3)
    assert vault.incomplete(sizes) == [third.digest]
    os.unlink(vault.path(third.digest))
    os.unlink(vault.path(two.digest))
    assert vault.incomplete(sizes) == [one.digest, two.digest, third.digest]
