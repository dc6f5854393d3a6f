"""A run about a part comes to the same as one about everything, in random stories and small worlds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.properties.parts import PartLevel
from tests.properties.stories import Stories
from tests.properties.test_stories import for_seconds, told

if TYPE_CHECKING:
    from collections.abc import Callable


class StoriesOfParts(Stories):
    def __init__(self) -> None:
        super().__init__()
        self.world = PartLevel()


def test_a_part_of_a_story() -> None:
    run_state_machine_as_test(StoriesOfParts, settings=told(60, 25))


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_parts_of_many_stories(record_property: Callable[[str, object], None]) -> None:
    record_property("stories of parts", for_seconds(StoriesOfParts, 200))
