"""Which file system a path lies on, from the kernel's own table (proc(5), mountinfo)."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from reconcile.fs import posix
from reconcile.fs.posix import find_syncfs, network_type, type_in

if TYPE_CHECKING:
    from pathlib import Path

TABLE = r"""21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 21 0:35 / /home rw - nfs4 server:/home rw,vers=4.2
41 40 8:2 / /home/me/local rw master:1 - ext4 /dev/sdb1 rw
42 21 0:36 / /mnt/my\040disk rw - cifs //server/disk rw
43 21 0:37 / /mnt/over rw - ext4 /dev/sdc1 rw
44 43 0:38 / /mnt/over rw - fuse.sshfs me@there: rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/x", "ext4"),
        ("/home/me/x", "nfs4"),
        ("/home", "nfs4"),
        ("/homestead", "ext4"),
        ("/home/me/local/x", "ext4"),
        ("/mnt/my disk/x", "cifs"),
        ("/mnt/over/x", "fuse.sshfs"),
    ],
)
def test_the_innermost_mount_counts(path: str, kind: str) -> None:
    assert type_in(TABLE, path) == kind


def test_a_disk_of_this_machine(tmp_path: Path) -> None:
    assert network_type(str(tmp_path)) is None


def test_a_network_file_system_is_told_by_its_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(TABLE.replace("/home", str(tmp_path)))
    monkeypatch.setattr(posix, "_MOUNTS", str(table))
    assert network_type(str(tmp_path / "x")) == "nfs4"
    assert network_type("/") is None


@pytest.mark.skipif(sys.platform != "linux", reason="syncfs is Linux's")
@pytest.mark.parametrize(
    ("release", "reports"),
    [("5.7.19", False), ("5.8.0", True), ("6.1.0-13-amd64", True), ("4.19-x", False), ("5.4", False), ("?", False)],
)
def test_a_syncfs_that_reports_no_failed_write_is_not_used(
    monkeypatch: pytest.MonkeyPatch, release: str, reports: bool
) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release=release))
    assert (find_syncfs() is not None) == reports
