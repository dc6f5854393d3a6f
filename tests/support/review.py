"""The walk through a project's plan in this process, and the keys that a person presses in it."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console

from reconcile.model.snapshot import WHOLE
from tests.cli.modules import module

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SMALL, LARGE = (80, 24), (120, 40)


@contextmanager
def walk_of(project: Path, **options: Any) -> Iterator[Any]:
    """Yield the walk through the plan of a project; it can be read and planned until the end."""
    given = module("arguments").Options()
    given.workspace = str(project)
    for name, value in options.items():
        setattr(given, name, value)
    with module("run").opened(given) as engine:
        yield module("commands.review").walk_of(given, engine)


class Screen:
    """A view at a terminal without a terminal; `press` waits until all is drawn."""

    def __init__(self, app: Any, pilot: Any) -> None:
        self.app = app
        self._pilot = pilot

    async def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            await self._pilot.press(key)
        await self._pilot.pause()

    async def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size."""
        await self._pilot.resize_terminal(columns, rows)
        await self._pilot.pause()

    @property
    def lines(self) -> list[str]:
        """The lines of the terminal."""
        return [strip.text.rstrip() for strip in self.app.screen._compositor.render_strips()]

    @property
    def text(self) -> str:
        """All of the terminal."""
        return "\n".join(self.lines)

    @property
    def colored(self) -> str:
        """All of the terminal, with the codes of its colours."""
        console = Console(force_terminal=True, color_system="standard", legacy_windows=False, _environ={})
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.render(console) for strip in strips)

    @property
    def subject(self) -> str:
        """The title of the chosen conversation."""
        return str(self.app.subject.name)

    @property
    def details(self) -> str:
        """All of the text on the right."""
        return str(self.app.query_one("DetailView").text)

    @property
    def message(self) -> str:
        """The line above the keys."""
        return str(self.app.query_one("#message").content).strip()


def played(walk: Any, story: Any, size: tuple[int, int] = SMALL, *, colored: bool = True) -> Any:
    """Show a walk, let a story press keys, and return what the view has returned."""
    app = module("review.app").ReviewApp(walk, colored=colored)

    async def play() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await story(Screen(app, pilot))

    asyncio.run(play())
    return app.return_value


def decided_by(walk: Any, choices: Mapping[str, str]) -> Any:
    """Return the plan of a walk in which each of these conversations got a choice."""
    subjects = {each.conversation: each for each in walk.subjects}
    decisions = module("review.decisions").Decisions()
    for conversation, choice in choices.items():
        decisions = decisions.with_choice(subjects[conversation], WHOLE, module("review.subjects").Choice(choice))
        assert decisions is not None, f"{conversation} does not offer {choice}"
    return walk.plan_for(decisions)
