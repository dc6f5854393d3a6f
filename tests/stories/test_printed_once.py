"""At a terminal a command prints its plan, asks, and prints the result: each message and note is printed once."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.git_world import OTHER
from tests.support.projects.terminal import at_terminal
from tests.support.projects.three_conversations import three

if TYPE_CHECKING:
    from tests.support.projects.world import World


def test_a_first_run_names_the_store_once(world: World) -> None:
    three(world)
    code, shown = at_terminal("-w", world.project, answers="y\n")
    assert (code, shown.count("first run here. It creates:"), "no store yet" in shown) == (0, 1, False), shown


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_a_removal_names_the_history_once(story: World) -> None:
    code, shown = at_terminal("rm", str(OTHER), "-w", story.project, answers="y\n")
    assert (code, " ".join(shown.split()).count("in git since")) == (0, 1), shown
