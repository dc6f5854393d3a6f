"""What kind of file system something lies on."""

from __future__ import annotations

import os
import re

_ESCAPE = re.compile(r"\\([0-7]{3})")
_MOUNTS = "/proc/self/mountinfo"
_NETWORK = (
    "nfs",
    "cifs",
    "smb",
    "9p",
    "afs",
    "ceph",
    "fuse.sshfs",
    "fuse.rclone",
    "ncpfs",
    "glusterfs",
    "fuse.gluster",
)


def network_type(path: str) -> str | None:
    """Return the type of the network file system that a path lies on, where others write without an event here.

    None: it is another kind, or the system doesn't tell (only Linux does).
    """
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            return network_type_in(file.read(), os.path.realpath(path))
    except OSError:
        return None


def network_type_in(table: str, path: str) -> str | None:
    """Return the same from the text of ``mountinfo`` (proc(5)): the longest mount point above the path counts."""
    found, longest = "", -1
    for line in table.splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(" "), right.split(" ")[0]
        point = _ESCAPE.sub(lambda match: chr(int(match[1], 8)), fields[4])
        above = f"{path}/".startswith(f"{point.rstrip('/')}/")
        if above and len(point) >= longest:
            found, longest = kind, len(point)
    return found if found.startswith(_NETWORK) else None
