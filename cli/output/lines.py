"""The lines that what is said of a run begins and ends with. Loaded at every start, and loads next to nothing."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from .style import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reconcile.adapters.roots import Roots

    from .style import Style

RESTING = "green"
"""The colour of a run after which nothing waits."""


def heading(roots: Roots, layout: str, style: Style) -> str:
    """Say which two sides the run is about."""
    home = os.path.expanduser("~")

    def show(path: str) -> str:
        return clean("~" + path[len(home) :] if path.startswith(home + os.sep) else path)

    how = f" ({layout})" if roots.inner else ""
    text = f"workspace {show(roots.workspace)}{how}\nstore     {show(roots.store)}"
    return style(text, dim=True)


def show(lines: Iterable[str]) -> None:
    """Print lines."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def counted(
    steps: Sequence[str], waits: Sequence[str], states: Sequence[tuple[str, int]], noun: str, *, done: bool
) -> str:
    """Return the one line that counts everything: steps, what waits, and how many records are in which state."""
    text = f"{'Done' if done else 'Plan'}: {', '.join(steps) if steps else 'nothing to do'}"
    text = "; ".join((text, *waits))
    if states:
        total = sum(count for _, count in states)
        each = ", ".join(f"{count} {state}" for state, count in states)
        text += f". {total} {noun}{'' if total == 1 else 's'}: {each}"
    return text + "."
