"""Sessions that the tests with the program carry, age, fork, and know again by their history."""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from typing import TYPE_CHECKING

from tests.agents.program import VERSIONS, records
from tests.agents.stub import REPLY

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agents.program import Turn

OLD, NEW = VERSIONS
FIRST = "The first prompt."
DAY = 24 * 3600


def carry(session: Path, directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return shutil.copyfile(session, directory / session.name)


def fork_by_hand(session: Path) -> Path:
    """A copy under a new id: in its name, and as the `sessionId` of each record."""
    other = session.with_stem(str(uuid.uuid4()))
    lines = [json.dumps(record | {"sessionId": other.stem}) for record in records(session)]
    other.write_text("\n".join(lines) + "\n")
    return other


def age(session: Path, days: float) -> None:
    then = time.time() - days * DAY
    os.utime(session, (then, then))


def has_history(turn: Turn) -> bool:
    return turn.status == 0 and turn.sent[0] == FIRST and turn.sent[1].startswith(REPLY)
