"""The screens of ``reconcile review``: the full-screen view in two sizes, as text and as SVG, and a page with them."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from tests.cli.modules import module
from tests.support.projects.conflicts import conflicts
from tests.support.projects.world import make_project
from tests.support.review import LARGE, SMALL, Screen, played, walk_of
from tests.support.screens.pictures import svg
from tests.support.screens.terminal import COLORS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SCENES: Mapping[str, tuple[str, ...]] = {
    "title": (),
    "events": ("n", "n", "n", "n"),
    "continued": ("n",) * 6,
    "file": ("n",) * 8,
    "blocked": ("p",),
    "decided": ("s", "w", "k", "h", "w", "b", "w", "S", "p"),
    "apply": ("s", "w", "k", "w", "w", "b", "w", "S", "w", "w", "s", "a"),
    "help": ("question_mark",),
}
"""The keys that lead to each screen."""
_WORDS: Mapping[str, str] = {
    "title": "A title that both sides changed",
    "events": "An answer that both sides changed",
    "continued": "A conversation that both sides continued",
    "file": "Another file that both sides changed",
    "blocked": "A file that can't be read",
    "decided": "After some decisions",
    "apply": "The question before anything changes",
    "help": "All keys",
}


def review_files(directory: Path) -> dict[Path, str]:
    """Return every file of these screens, with its text."""
    files: dict[Path, str] = {}
    page = ["# Review: screens", "", "`reconcile review` on ten prepared conflicts. `make screens` writes this page."]
    with _prepared() as walk:
        for name, keys in SCENES.items():
            page += ["", f"## {_WORDS[name]}"]
            for columns, rows in (SMALL, LARGE):
                colored = _screen(walk, keys, (columns, rows))
                stem, size = f"{name}-{columns}x{rows}", f"{columns} columns, {rows} rows"
                files[directory / f"{stem}.txt"] = "".join(
                    f"{line.rstrip()}\n" for line in COLORS.sub("", colored).splitlines()
                )
                files[directory / f"{stem}.svg"] = svg(colored, f"{_WORDS[name]}, {size}", columns)
                page += ["", f"As [text]({stem}.txt), and as a picture, {size}:", "", f"![{_WORDS[name]}]({stem}.svg)"]
    files[directory / "README.md"] = "\n".join([*page, ""])
    return files


def _screen(walk: Any, keys: tuple[str, ...], size: tuple[int, int]) -> str:
    shown: list[str] = []

    async def story(screen: Screen) -> None:
        await screen.press(*keys)
        shown.append(screen.colored)

    played(walk, story, size)
    return shown[0]


@contextmanager
def _prepared() -> Iterator[Any]:
    """Prepare the conflicts in a home directory of their own, and yield the walk through them."""

    def run(*args: str | Path, stdin: str | None = None) -> Any:
        return CliRunner().invoke(module("app").main, list(map(str, args)), input=stdin, catch_exceptions=False)

    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="") as name:
        home = Path(name).resolve()
        names = ("CACHE_HOME", "CONFIG_HOME", "DATA_HOME", "RUNTIME_DIR", "STATE_HOME")
        own = {"HOME": str(home), "JP_USER_DATA_DIR": str(home / "jp"), "TZ": "UTC"}
        own |= {f"XDG_{each}": str(home / each.lower()) for each in names}
        for each in [*os.environ]:
            if each.startswith(("RECONCILE_", "GIT_", "JP_", "XDG_")) or each in ("NO_COLOR", "COLUMNS"):
                del os.environ[each]
        os.environ.update(own)
        try:
            world = make_project(home / "project", run)
            conflicts(world)
            with walk_of(world.project) as walk:
                yield walk
        finally:
            os.environ.clear()
            os.environ.update(before)
