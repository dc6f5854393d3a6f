"""A side that holds something of everything."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from tests.support.projects.world import events, write_conversation

FIRST = 17528832000


def fill(root: Path) -> None:
    """All that a side may hold, some of it wrong."""
    for number in range(12):
        write_conversation(root / f"{FIRST + number}-it", f"It {number}", events(number))
    write_conversation(root / f"{FIRST}-it" / "conversations" / f"{FIRST + 20}-child", "Child", events(2), parent=FIRST)
    write_conversation(root / ".archive" / f"{FIRST + 21}-old", "Old", events(1))
    write_conversation(root / ".trash" / f"{FIRST + 22}-gone", "Gone", events(1))
    (root / f"{FIRST + 1}-it" / "metadata.json").write_bytes(b"{no json")
    (root / f"{FIRST + 2}-it" / "events.json").unlink()
    (root / f"{FIRST + 3}-it" / "events.json").unlink()
    (root / f"{FIRST + 3}-it" / "events.json").symlink_to("metadata.json")
    (root / f"{FIRST + 4}-it" / "NOTE.md").write_bytes(b"note")
    os.mkfifo(root / f"{FIRST + 5}-it" / "PIPE.md")
    (root / f"{FIRST + 6}-it" / "conversations").write_bytes(b"in the way")
    Path(os.fsdecode(os.fsencode(root / f"{FIRST + 7}-it") + b"/\xff.md")).write_bytes(b"no UTF-8")
    (root / f"{FIRST + 8}-it" / "metadata.json").write_text('{"title": "half \\ud800"}')
    os.utime(root / f"{FIRST + 9}-it" / "events.json", ns=(0, 2**62))
    (root / "README").write_bytes(b"foreign")
    (root / "no-id").mkdir()
    with socket.socket(socket.AF_UNIX) as sock:
        os.chdir(root)
        sock.bind("SOCKET")
