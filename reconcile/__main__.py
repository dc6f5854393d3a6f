"""``python -m reconcile`` runs what the installed ``reconcile`` script runs.

The library never imports the command; it asks the installed distribution for it.
"""

import sys
from importlib.metadata import PackageNotFoundError, distribution


def main() -> None:
    """Find the script's entry point and call it."""
    try:
        scripts = distribution("reconcile-fs").entry_points.select(group="console_scripts", name="reconcile")
    except PackageNotFoundError:
        sys.exit("reconcile is not installed for this Python; run `pip install .` in its source directory.")
    for script in scripts:
        script.load()()


if __name__ == "__main__":
    main()
