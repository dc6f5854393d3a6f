"""A bare repository whose disk has damaged or lost objects of one ref."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from tests.support.projects.machines import git

if TYPE_CHECKING:
    from pathlib import Path

REF = "refs/reconcile/jp-ab1cd"


def _pack(bare: Path) -> Path:
    """Put all objects into one pack, and return it."""
    git(bare, "repack", "-adq")
    (pack,) = (bare / "objects" / "pack").glob("*.pack")
    pack.chmod(0o644)
    return pack


def overwrite_pack(bare: Path) -> None:
    pack = _pack(bare)
    content = bytearray(pack.read_bytes())
    for at in range(40, len(content) - 20, 37):
        content[at] ^= 0x55
    pack.write_bytes(content)


def cut_pack(bare: Path) -> None:
    pack = _pack(bare)
    os.truncate(pack, pack.stat().st_size // 2)


def lose_pack(bare: Path) -> None:
    shutil.rmtree(_pack(bare).parent)


def _loose(bare: Path, name: str) -> Path:
    """Put each object into a file of its own, and return that of one."""
    for pack in (bare / "objects" / "pack").glob("*.pack"):
        content = pack.read_bytes()
        for file in pack.parent.glob(f"{pack.stem}.*"):
            file.unlink()
        git(bare, "unpack-objects", "-q", stdin=content)
    name = git(bare, "rev-parse", name)
    return bare / "objects" / name[:2] / name[2:]


def _newest_blob(bare: Path) -> str:
    changed = git(bare, "diff-tree", "-r", "--name-only", f"{REF}^", REF).splitlines()
    return f"{REF}:{next(path for path in changed if not path.endswith('/r'))}"


def lose_commit(bare: Path) -> None:
    _loose(bare, REF).unlink()


def lose_tree(bare: Path) -> None:
    _loose(bare, f"{REF}^{{tree}}").unlink()


def lose_blob(bare: Path) -> None:
    _loose(bare, _newest_blob(bare)).unlink()


def empty_blob(bare: Path) -> None:
    path = _loose(bare, _newest_blob(bare))
    path.chmod(0o644)
    path.write_bytes(b"")


DAMAGES = (overwrite_pack, cut_pack, lose_pack, lose_commit, lose_tree, lose_blob, empty_blob)
