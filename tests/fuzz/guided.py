"""One check under atheris: ``python -m tests.fuzz.guided CHECK [libFuzzer's options]``; `run` starts it."""

from __future__ import annotations

import importlib
import sys


def main() -> None:
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["reconcile", "json"]):
        checks = importlib.import_module("tests.fuzz.checks").CHECKS
    program, name, *words = sys.argv
    atheris.Setup([program, *words], checks[name].run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
