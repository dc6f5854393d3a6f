"""The watcher of every project, with projects and passes that the test makes up."""

from __future__ import annotations

import errno
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from reconcile.adapters.everywhere import Everywhere, Target
from reconcile.adapters.roots import Request
from reconcile.errors import ReconcileError
from reconcile.watch import everywhere
from reconcile.watch.everywhere import HomeWatcher
from reconcile.watch.watcher import Timings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.mark.parametrize("error", [OSError(errno.EIO, "I/O error"), ReconcileError("a setting"), KeyError("a bug")])
def test_a_pass_that_has_failed_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The end of the cause, such as a full disk, raises no event."""
    known = Everywhere((Target(str(tmp_path), "jp"),), (), str(tmp_path / "none"))
    monkeypatch.setattr(everywhere, "every_project", lambda *_: known)
    monkeypatch.setattr(everywhere, "_FAILED", 1)
    monkeypatch.setattr(everywhere, "_HOUR", 2 * 10**9)
    visits: list[int] = []

    @contextmanager
    def visit(_: Target) -> Iterator[None]:
        visits.append(time.monotonic_ns())
        if len(visits) == 1:
            raise error
        watcher.queue.stop()
        yield None

    said: list[str] = []
    request = Request(None, None, str(tmp_path), {"HOME": str(tmp_path)}, "linux")
    watcher = HomeWatcher(
        request, None, str(tmp_path / "states"), Timings(), visit, lambda event, _: said.append(event.kind.value)
    )
    watcher.run()
    assert visits[1] - visits[0] < 10**9
    assert said == ["waiting", "watching", "resumed", "stopped"]
