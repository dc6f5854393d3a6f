"""A run about a part comes to the same as one about everything, in random stories and small worlds."""

from __future__ import annotations

import itertools
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import rule, run_state_machine_as_test

from tests.properties.parts import PartLevel
from tests.properties.passes import PassesLevel
from tests.properties.stories import Stories
from tests.properties.test_stories import for_seconds, told
from tests.support.words import DAY_NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.disk_level import RunCommand


class StoriesOfParts(Stories):
    def __init__(self) -> None:
        super().__init__()
        self.world = PartLevel()


def test_a_part_of_a_story() -> None:
    run_state_machine_as_test(StoriesOfParts, settings=told(60, 25))


@pytest.fixture
def in_passes(tmp_path: Path, run: RunCommand, monkeypatch: pytest.MonkeyPatch) -> type[Stories]:
    """Return what makes stories in which the plain runs of the first checkout are passes over one session."""
    config = Path(os.environ["XDG_CONFIG_HOME"], "reconcile", "reconcile.toml")
    numbers = itertools.count()
    monkeypatch.setenv("JP_USER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(os, "fsync", lambda _: None)

    class InPasses(Stories):
        def __init__(self) -> None:
            super().__init__()
            self.root = tmp_path / str(next(numbers))
            self.beside = self.level = PassesLevel(self.root, run, config, clock_ns=DAY_NS)
            os.environ["RECONCILE_STATE_DIR"] = str(self.level.state)

        @rule(really=st.integers(0, 3))
        def forget(self, really: int) -> None:
            """The session that is open knows all that there is to know."""

        @rule()
        def one_pass(self) -> None:
            self._run("reconcile")

        @rule()
        def another_pass(self) -> None:
            self._run("reconcile")

        @rule()
        def yet_another_pass(self) -> None:
            self._run("reconcile")

        def teardown(self) -> None:
            try:
                super().teardown()
                self.check_memory()
            finally:
                counts.update(self.level.counts)
                self.level.forget_session()
                shutil.rmtree(self.root)

        def check_memory(self) -> None:
            """What is remembered is what runs about everything would have left."""

    counts: Counter[str] = Counter()
    InPasses.counts = counts
    return InPasses


def test_a_story_in_passes(in_passes: type[Stories]) -> None:
    run_state_machine_as_test(
        in_passes, settings=told(int(os.environ.get("PASS_STORIES", "6")), 25, fixed="PASS_STORIES" not in os.environ)
    )
    print(in_passes.counts)


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_parts_of_many_stories(record_property: Callable[[str, object], None]) -> None:
    record_property("stories of parts", for_seconds(StoriesOfParts, 200))
