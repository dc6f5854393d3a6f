"""The command without a name: prints that nothing has changed, or loads the rest of the program and runs a pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.signals import Uninterrupted

from .context import formats_here
from .output.text import show_nothing_to_do
from .unchanged import Opening, Start, print_unchanged

if TYPE_CHECKING:
    from reconcile.engine.engine import Engine

    from .arguments import Options


def run_plain(options: Options) -> int:
    """Run the command without a name on each format of the project, and return its exit code.

    Raises `ReconcileError`, `OSError`.
    """
    if options.all:
        with Uninterrupted():
            from .scope.projects import run_all
        return run_all(options)
    formats = formats_here(options)
    if not formats:
        return run_format(options)
    from .scope.formats import format_of, run_in_turn  # here: most projects have one format

    if named := [("ids", text) for text in (*options.only, *options.below)]:
        return run_format(format_of(options, formats, named))
    return run_in_turn(options, formats, run_format, gathers=True)


def run_format(options: Options) -> int:
    """Run the command without a name on one format, and return its exit code. Raises `ReconcileError`, `OSError`."""
    opening = Opening(_open_engine)
    try:
        start = Start.of(options, opening.begin)
        options.gathers |= (is_alone := bool(start.roots.folder) and not options.gathers)
        code = print_unchanged(start)
        if code is None:
            with Uninterrupted():
                from .run import run_started
            code = run_started(start, opening)
    finally:
        opening.close()
    if not start.roots.folder:
        return code
    with Uninterrupted():
        from .scope.shared import run_shared
    code = run_shared(options, code)
    if is_alone and options.has_nothing_to_do and not (options.quiet or options.json or options.has_reported):
        show_nothing_to_do([options.counts], options.color, options.idle)
    return code


def _open_engine(start: Start) -> Engine:
    with Uninterrupted():
        from .run import open_engine
    return open_engine(start)
