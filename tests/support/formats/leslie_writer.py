"""A program that spawns threads as Leslie does: under its lock, by a temporary file and a rename.

`python -m tests.support.formats.leslie_writer .leslie PREFIX COUNT` prints the ids of its operations. Every third
time it leaves `relations` as they were, as a tool would that knows nothing of them.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from tests.support.formats.leslie import Leslie, as_bytes

WAITS = (0.1, 0.2, 0.4, 0.8, 1.0)
STALE = 10


def locked(lock: str) -> None:
    """Take the lock in six attempts; a stale one is removed first (docs/design/formats/leslie.md#stale-locks)."""
    for wait in (*WAITS, None):
        try:
            os.mkdir(lock)
        except FileExistsError:
            try:
                if os.stat(lock).st_mtime < time.time() - STALE:
                    os.rmdir(lock)
                    os.mkdir(lock)
                    return
            except (FileNotFoundError, FileExistsError):
                pass
        else:
            return
        if wait is None:
            sys.exit("T501")
        time.sleep(wait)


def spawn(leslie: Path, thread: str, drifts: bool) -> str:
    """Append one operation, and what follows from it."""
    file = leslie / "thread_relations.json"
    lock = f"{file}.lock"
    locked(lock)
    content = file.read_bytes()
    file.with_name(file.name + ".bak").write_bytes(content)
    value = json.loads(content)
    there = Leslie()
    there.clock = 100 + 7 * len(value["operations"])
    there.threads, there.operations, there.relations = value["threads"], value["operations"], value["relations"]
    there.log("spawn", thread_id=thread, parent_id=None, intent="T", objective="obj-00000001", inherit="none")
    operation = there.operations[-1]
    operation["id"] = f"op-{thread}"
    moment = operation["timestamp"]
    record = {"id": thread, "title": "T", "objective": "obj-00000001", "created_at": moment, "status": "active"}
    place = {"parent_id": None, "storage_path": f".leslie/threads/{thread}"}
    there.threads[thread] = {**record, "tags": [], **place, "executor": "agent", "updated_at": moment}
    if not drifts:
        there.relations[thread] = {"children": [], "references_to": [], "referenced_by": [], "depends_on": []}
    new = file.with_name(f"{file.name}.tmp-{os.getpid()}-00000000-0000-4000-8000-000000000000")
    metadata = {**value["metadata"], "thread_count": len(there.threads)}
    new.write_bytes(as_bytes({**value, "metadata": metadata, "threads": there.threads, "relations": there.relations}))
    new.rename(file)
    os.rmdir(lock)
    for below in ("context/inherited", "context/live", ".meta/transcripts"):
        (leslie / "threads" / thread / below).mkdir(parents=True)
    (leslie / "threads" / thread / "plan.md").write_text(f"of {thread}\n")
    return str(operation["id"])


def main() -> None:
    leslie, prefix, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    for number in range(count):
        print(spawn(leslie, f"thread-{prefix}{number:03}", number % 3 == 2))
        time.sleep(0.02)


if __name__ == "__main__":
    main()
