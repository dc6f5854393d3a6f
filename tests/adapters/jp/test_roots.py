"""Where the two sides are found, and what is refused."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from reconcile.adapters.jp.roots import find_silo, user_data_dir
from reconcile.adapters.locate import locate
from reconcile.adapters.roots import LocateError, Roots
from reconcile.fs.paths import directory_identity

if TYPE_CHECKING:
    from pathlib import Path

ID = "otvo8"
ID_FILE = f"# do not edit\n{ID}\n"


@pytest.fixture
def project(root: Path) -> Path:
    path = root / "work" / "proj"
    (path / ".jp" / "conversations").mkdir(parents=True)
    (path / ".jp" / ".id").write_text(ID_FILE)
    return path


def silo(root: Path, name: str) -> Path:
    path = root / "data" / "workspace" / name
    (path / "conversations").mkdir(parents=True)
    return path


def jp(root: Path, cwd: Path, *, workspace: str | None = None, store: str | None = None) -> Roots:
    environ = {"JP_USER_DATA_DIR": str(root / "data"), "HOME": str(root / "home")}
    return locate(None, workspace, store, str(cwd), environ, "linux")


def test_both_sides_from_anywhere_in_the_project(root: Path, project: Path) -> None:
    store = silo(root, f"proj-{ID}")
    deep = project / "src" / "deep"
    deep.mkdir(parents=True)
    (project / "src" / ".jp").write_text("a file of that name is passed over")
    expected = Roots(
        format="jp",
        workspace=str(project / ".jp"),
        project=str(project),
        store=str(store),
        store_exists=True,
        workspace_id=ID,
        workspace_identity=directory_identity(str(project / ".jp")),
        key=f"jp-{ID}",
        name_elsewhere=f"jp-{ID}",
    )
    for cwd in (project, deep, project / ".jp", project / ".jp" / "conversations"):
        assert jp(root, cwd) == expected
    for argument in (str(project), str(project / ".jp"), str(deep), "work/proj", "work/proj/.jp/"):
        assert jp(root, root, workspace=argument) == expected
    assert expected.store_conversations == str(store / "conversations")
    assert expected.workspace_conversations == str(project / ".jp" / "conversations")


def test_a_linked_jp_and_dots_behind_a_link(root: Path, project: Path) -> None:
    (root / "other" / "sub").mkdir(parents=True)
    (root / "other" / ".jp").symlink_to(project / ".jp")
    assert jp(root, root / "other").workspace_id == ID
    (root / "link").symlink_to(project)
    assert jp(root, root, workspace="link/../proj").project == os.path.realpath(project)


def test_no_workspace(root: Path) -> None:
    with pytest.raises(LocateError) as caught:
        jp(root, root)
    assert str(root) in caught.value.message
    assert ".jp" in caught.value.message
    assert "--format plain" in str(caught.value.hint)
    assert caught.value.exit_code == 2
    with pytest.raises(LocateError, match=r"no \.jp directory in "):
        locate("jp", None, None, str(root), {}, "linux")


@pytest.mark.parametrize("content", [ID, f"x\n{ID}\n", f"x\r\n{ID}\r\n", f"<<<<<<<\n{ID}\n", f"one\ntwo\n{ID}"])
def test_ids_that_are_read(root: Path, project: Path, content: str) -> None:
    (project / ".jp" / ".id").write_bytes(content.encode())
    assert jp(root, project).workspace_id == ID


NO_ID = "the last line must be an id of five characters, 0-9 or a-z"


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", f"{NO_ID} (the file is empty)"),
        (b"x\nOTVO8\n", f"{NO_ID} (found 'OTVO8')"),
        (b"x\notvo89\n", f"{NO_ID} (found 'otvo89')"),
        (b"x\notvo8\n\n", f"{NO_ID} (found '')"),
        (b"<<<<<<< HEAD\notvo8\n=======\nabcde\n>>>>>>> other\n", f"{NO_ID} (found '>>>>>>> other')"),
        (b"\xff\notvo8\n", f"{NO_ID} (found 'otvo8')"),
        (None, "the file with the workspace id is missing"),
    ],
)
def test_ids_that_are_refused(root: Path, project: Path, content: bytes | None, found: str) -> None:
    path = project / ".jp" / ".id"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LocateError) as caught:
        jp(root, project)
    assert caught.value.message == f"{path}: {found}"
    assert (path.read_bytes() if path.exists() else None) == content, "never written"


def test_an_id_that_is_no_file(tmp_path: Path) -> None:
    (tmp_path / ".jp").mkdir()
    os.mkfifo(tmp_path / ".jp" / ".id")
    with pytest.raises(LocateError, match=r": not a file, so the workspace id is unknown$"):
        jp(tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("environ", "platform", "expected"),
    [
        ({"JP_USER_DATA_DIR": "rel", "XDG_DATA_HOME": "/x"}, "linux", "rel"),
        ({"JP_USER_DATA_DIR": "", "XDG_DATA_HOME": "/x"}, "darwin", "/x/jp"),
        ({"JP_USER_DATA_DIR": os.fsdecode(b"/\xff"), "XDG_DATA_HOME": "/x"}, "linux", "/x/jp"),
        ({"XDG_DATA_HOME": "rel"}, "linux", "/h/.local/share/jp"),
        ({"XDG_DATA_HOME": ""}, "darwin", "/h/Library/Application Support/jp"),
        ({"XDG_DATA_HOME": os.fsdecode(b"/\xff")}, "linux", "/h/.local/share/jp"),
        ({"LOCALAPPDATA": "/l"}, "win32", "/l/jp/data"),
    ],
)
def test_the_user_data_directory(environ: dict[str, str], platform: str, expected: str) -> None:
    assert user_data_dir(environ | {"HOME": "/h"}, platform) == expected


def test_a_relative_data_directory(root: Path, project: Path) -> None:
    silo(root, f"proj-{ID}")
    roots = locate("jp", str(project), None, str(root), {"JP_USER_DATA_DIR": "data"}, "linux")
    assert roots.store == str(root / "data" / "workspace" / f"proj-{ID}")


def test_no_silo_gives_the_one_that_jp_would_make(root: Path, project: Path) -> None:
    for name in (f"x-{ID}x", f"x{ID}", f"{ID}-proj"):
        silo(root, name)
    (root / "data" / "workspace" / f"file-{ID}").write_text("x")
    roots = jp(root, project)
    assert roots.store == str(root / "data" / "workspace" / f"proj-{ID}")
    assert (roots.store_exists, roots.siblings) == (False, ())
    assert not os.path.lexists(roots.store)
    assert find_silo(str(root / "none"), "/", ID) == (str(root / "none" / "workspace" / ID), ())


def test_the_slug_wins_over_the_newest(root: Path, project: Path) -> None:
    mine, other = silo(root, f"proj-{ID}"), silo(root, f"main-{ID}")
    os.utime(other / "conversations", ns=(9, 9_000_000_000_000_000_000))
    roots = jp(root, project)
    assert (roots.store, roots.siblings) == (str(mine), (str(other),))


def test_the_newest_entry_decides_links_followed(root: Path, project: Path) -> None:
    one, two, three = (silo(root, name) for name in (f"a-{ID}", f"b-{ID}", ID))
    for path, time in ((one, 300), (two, 200), (three, 100)):
        os.utime(path / "conversations", (time, time))
        (path / "dangling").symlink_to(root / "nowhere")
        os.utime(path, (9999, 9999))  # its own time doesn't count while it has entries
    assert jp(root, project).store == str(one)
    (three / "storage").symlink_to(project / ".jp")
    os.utime(project / ".jp", (400, 400))
    assert jp(root, project).store == str(three)
    assert jp(root, project).siblings == (str(one), str(two))


def test_ties_go_to_the_greatest_name_and_empty_ones_have_their_own_time(root: Path, project: Path) -> None:
    for name in (f"a-{ID}", f"b-{ID}"):
        path = silo(root, name)
        os.utime(path / "conversations", (300, 300))
    assert jp(root, project).store.endswith(f"b-{ID}")
    (root / "data" / "workspace" / f"Z-{ID}").mkdir()
    os.utime(root / "data" / "workspace" / f"Z-{ID}", (301, 301))
    assert jp(root, project).store.endswith(f"Z-{ID}")


def test_a_linked_silo_is_a_candidate(root: Path, project: Path) -> None:
    (root / "elsewhere").mkdir()
    (root / "data" / "workspace").mkdir(parents=True)
    (root / "data" / "workspace" / f"proj-{ID}").symlink_to(root / "elsewhere")
    assert jp(root, project).store_exists


def test_a_named_store(root: Path, project: Path) -> None:
    (root / "mine" / "conversations").mkdir(parents=True)
    (root / "fresh").mkdir()
    silo(root, f"proj-{ID}")
    roots = jp(root, project, store=str(root / "mine"))
    assert (roots.store, roots.siblings, roots.key) == (str(root / "mine"), (), f"jp-{ID}")
    assert jp(root, root, workspace=str(project), store="fresh").store == str(root / "fresh")
    with pytest.raises(LocateError) as caught:
        jp(root, project, store=str(root / "mine" / "conversations"))
    assert str(caught.value.hint).endswith(f"--store {root / 'mine'}")


@pytest.mark.parametrize("option", ["workspace", "store"])
def test_arguments_that_are_no_directories(root: Path, project: Path, option: str) -> None:
    (root / "file").write_text("x")
    for text, found in (("nowhere", "does not exist"), ("file", "is not a directory")):
        with pytest.raises(LocateError, match=f"^--{option}: .* {found}$"):
            jp(root, root, **({"workspace": str(project)} | {option: text}))


def plain(root: Path, workspace: str | None, store: str | None, cwd: str = "") -> Roots:
    return locate("plain", workspace, store, str(root / cwd), {}, "linux")


def test_plain(root: Path) -> None:
    for name in ("w", "s"):
        (root / name / "conversations").mkdir(parents=True)
    roots = plain(root, "w", "s")
    assert (roots.format, roots.workspace, roots.store) == ("plain", str(root / "w"), str(root / "s"))
    assert (roots.workspace_id, roots.project) == (None, str(root / "w"))
    assert roots.key.startswith("plain-")
    assert plain(root, None, "../s", "w") == roots
    (root / "link").symlink_to("s")
    assert plain(root, "w", "link").key == roots.key, "by the canonical path"
    (root / "w" / "conversations").rmdir()
    assert plain(root, "w", "s").store == roots.store, "one side may be lost"
    (root / "s" / "conversations").rmdir()
    with pytest.raises(LocateError, match=r"neither .* nor .* has a directory conversations$"):
        plain(root, "w", "s")
    with pytest.raises(LocateError, match=r"no store is given.*; .*/w has no directory conversations$") as caught:
        plain(root, "w", None)
    new = f"mkdir -p {root / 'w' / 'conversations'}"
    assert caught.value.hint == f"name both sides: --workspace DIR --store DIR; for a new workspace: {new}"
    (root / "w" / "conversations").mkdir()
    with pytest.raises(LocateError, match=r"no store is given, and the plain format has no default for it$"):
        plain(root, "w", None)
    with pytest.raises(LocateError, match=r"--store: .*/new does not exist$") as caught:
        plain(root, "w", "new")
    assert caught.value.hint == f"check the path; for a new store: mkdir -p {root / 'new'}, then run again"
    (root / "s" / "conversations").mkdir()
    with pytest.raises(LocateError, match=r"--workspace: .*/new does not exist$") as caught:
        plain(root, "new", "s")
    assert caught.value.hint == f"check the path; for a new workspace: mkdir -p {root / 'new'}, then run again"


@pytest.mark.parametrize(
    ("workspace", "store", "how"),
    [
        ("a", "a", "they are the same directory"),
        ("a", "link", "they are the same directory"),
        ("a", "a/b", "the store is inside the workspace"),
        ("a/b", "a", "the workspace is inside the store"),
        ("a", "shared", "they are the same directory"),
    ],
)
def test_sides_that_overlap(root: Path, workspace: str, store: str, how: str) -> None:
    (root / "a" / "conversations").mkdir(parents=True)
    (root / "a" / "b").mkdir()
    (root / "link").symlink_to("a")
    (root / "shared").mkdir()
    (root / "shared" / "conversations").symlink_to("../a/conversations")
    (root / "ab" / "conversations").mkdir(parents=True)
    with pytest.raises(LocateError, match=f"overlap: {how}"):
        plain(root, workspace, store)
    assert plain(root, "a", "ab").store == str(root / "ab"), "a common beginning of the names is nothing"


def test_an_unknown_format(root: Path) -> None:
    known = "claude-code, claude-shared, claudesidian, jp, leslie, plain"
    with pytest.raises(LocateError, match=rf"'other' \(choose from {known}\)"):
        locate("other", None, None, str(root), {}, "linux")
