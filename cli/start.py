"""Where the program begins: what can be answered without loading anything is."""

from __future__ import annotations

import sys


def start() -> None:
    """Run the command."""
    if sys.argv[1:] == ["--version"]:
        from reconcile import __version__

        sys.stdout.write(f"reconcile, version {__version__}\n")
        return
    from .main import main

    main()
