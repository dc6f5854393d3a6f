"""Progress of long work, on standard error, at a terminal alone."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..arguments import Options

LONG = 100
"""Actions from which on progress is shown."""


@contextmanager
def progress_bar(options: Options, actions: int) -> Iterator[Callable[[int, int], None]]:
    """Give a function that is told how many actions have a result."""
    if options.json or options.quiet or actions < LONG or not sys.stderr.isatty():
        yield lambda _done, _all: None
        return
    import click  # here: most runs are short

    with click.progressbar(length=actions, label="applying", file=sys.stderr) as bar:
        seen = 0

        def advance(done: int, _all: int) -> None:
            nonlocal seen
            bar.update(done - seen)
            seen = done

        yield advance
