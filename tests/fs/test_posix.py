"""Which file system a path lies on, from the kernel's own table (proc(5), mountinfo)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reconcile.fs.posix import network_type, network_type_of

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
        ("/srv/x", None),
        ("/home/me/x", "nfs4"),
        ("/home", "nfs4"),
        ("/homestead", None),
        ("/home/me/local/x", None),
        ("/mnt/my disk/x", "cifs"),
        ("/mnt/over/x", "fuse.sshfs"),
    ],
)
def test_the_innermost_mount_counts(path: str, kind: str | None) -> None:
    assert network_type_of(TABLE, path) == kind


def test_a_disk_of_this_machine(tmp_path: Path) -> None:
    assert network_type(str(tmp_path)) is None
