"""Tries mutants: the pure tests are collected once, and every mutant gets a forked process of its own.

What sits in a function is put in place of that function's code. What runs at import needs a fresh import of all, which
takes a few seconds more.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.util import spec_from_loader
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

import coverage
import pytest

from tests.mutation.changes import Mutant, mutants_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, FunctionType, ModuleType

ROOT = Path(__file__).parents[2]
TOP = ROOT / "reconcile"
PURE = ("model", "planning")
"""The packages whose modules are changed."""
TESTS = ("tests/model", "tests/planning", "tests/scenarios")
OPTIONS = ("-q", "-x", "--capture=no", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "timeout=0")
MEMORY = 4 << 30
PATIENCE = 3
"""Seconds of processor time beyond three times what its tests took, after which a mutant is taken to run for ever."""


class Outcome(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    ENDLESS = "endless"
    SURVIVED = "survived"
    UNREACHED = "no test gets there"


@dataclass(slots=True)
class Module:
    """A pure module, with what can be changed in it. Its name is the one below `reconcile`."""

    name: str
    mutants: list[Mutant]
    tree: ast.Module

    @classmethod
    def read(cls, name: str) -> Module:
        tree = ast.parse(_file(name).read_text(encoding="utf-8"))
        return cls(name, mutants_of(tree), tree)

    @property
    def path(self) -> str:
        return str(_file(self.name))

    @property
    def imported(self) -> str:
        return f"reconcile.{self.name}"

    def compiled(self) -> CodeType:
        return compile(self.tree, self.path, "exec")


def _file(name: str) -> Path:
    return TOP.joinpath(*name.split(".")).with_suffix(".py")


def is_pure(item: pytest.Item) -> bool:
    """Whether a test needs no file system: only these are run."""
    return item.nodeid.startswith(("tests/model/", "tests/planning/", "tests/scenarios/test_scenarios.py::test_pure["))


def in_a_child(work: Callable[[], bool], seconds: int) -> Outcome:
    """Run in a forked process whether tests pass; whatever else happens there is a failure.

    ``seconds`` of processor time, so that a busy machine changes nothing.
    """
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        _work(work)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return Outcome.ENDLESS
    return Outcome.KILLED if status else Outcome.SURVIVED


def _work(work: Callable[[], bool]) -> NoReturn:
    code = 1
    try:
        silent = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(silent, number)
        code = 0 if work() else 1
    finally:
        os._exit(code)


@dataclass(eq=False)
class Trials:
    """A plugin of pytest: in place of the tests, it runs those that reach a mutant, for each of them."""

    modules: Sequence[Module]
    wanted: Callable[[Module, Mutant], bool]
    report: Callable[[Module, Mutant, Outcome, float], None]
    reached: dict[str, dict[int, list[int]]] = field(default_factory=dict)
    """By file and line the numbers of the tests that were there."""
    durations: list[float] = field(default_factory=list)
    failed: bool = False

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if is_pure(item)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._measure(session)
        found = [(module, mutant) for module in self.modules for mutant in module.mutants]
        for module, mutant in sorted(found, key=lambda each: not each[1].function):
            if self.wanted(module, mutant):
                start = time.monotonic()
                self.report(module, mutant, self._try(session, module, mutant), time.monotonic() - start)
        return True

    def _measure(self, session: pytest.Session) -> None:
        """Run all tests once, in a child, for the lines that each of them gets to and the time it takes."""
        reading, writing = os.pipe()

        def measure() -> bool:
            measured = coverage.Coverage(
                data_file=None, config_file=False, include=[f"{TOP / each}/*" for each in PURE]
            )
            durations = []
            measured.start()
            for number, item in enumerate(session.items):
                measured.switch_context(str(number))
                start = time.monotonic()
                self._run(item)
                durations.append(time.monotonic() - start)
            measured.stop()
            data = measured.get_data()
            lines = {
                file: {line: [int(each) for each in contexts if each] for line, contexts in found.items()}
                for file in data.measured_files()
                if (found := data.contexts_by_lineno(file))
            }
            with os.fdopen(writing, "w") as stream:
                json.dump([durations, lines], stream)
            return not self.failed

        child = os.fork()
        if not child:
            os.close(reading)
            _work(measure)
        os.close(writing)
        with os.fdopen(reading) as stream:
            written = stream.read()
        if os.waitpid(child, 0)[1]:
            pytest.exit("the tests fail without any change: mend them first", 1)
        self.durations, lines = json.loads(written)
        self.reached = {file: {int(line): each for line, each in found.items()} for file, found in lines.items()}

    def _try(self, session: pytest.Session, module: Module, mutant: Mutant) -> Outcome:
        if not mutant.function:
            return _try_at_import(module, mutant)
        lines = self.reached.get(module.path, {})
        tests = sorted(
            {number for line in mutant.lines for number in lines.get(line, ())}, key=self.durations.__getitem__
        )
        if not tests:
            return Outcome.UNREACHED

        def passes() -> bool:
            mutant.apply()
            function_of(import_module(module.imported), mutant.function).__code__ = _code(
                module.compiled(), mutant.function
            )
            for number in tests:
                self._run(session.items[number])
                if self.failed:
                    return False
            return True

        return in_a_child(passes, PATIENCE + 3 * round(sum(self.durations[number] for number in tests)))

    @staticmethod
    def _run(item: pytest.Item) -> None:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)


def function_of(module: ModuleType, name: str) -> FunctionType:
    found: object = module
    for part in name.split("."):
        found = inspect.getattr_static(found, part)
    for wrapped in ("fget", "func", "__func__"):  # of a property, a cached one, a static method
        found = getattr(found, wrapped, found)
    return cast("FunctionType", found)


def _code(code: CodeType, name: str) -> CodeType:
    for part in name.split("."):
        code = next(each for each in code.co_consts if inspect.iscode(each) and each.co_name == part)
    return code


class _Imposed(MetaPathFinder, Loader):
    """Imports one module from a changed tree."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def find_spec(self, fullname: str, _path: object, _target: object = None) -> ModuleSpec | None:
        return spec_from_loader(fullname, self) if fullname == self.module.imported else None

    def exec_module(self, module: ModuleType) -> None:
        exec(self.module.compiled(), module.__dict__)  # noqa: S102 - what importing is


class _Pure:
    """A plugin that keeps the pure tests, as `Trials` does."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if is_pure(item)]


def _try_at_import(module: Module, mutant: Mutant) -> Outcome:
    command = [sys.executable, "-P", "-m", "tests.mutation.trying", module.name, str(module.mutants.index(mutant))]
    try:
        tried = subprocess.run(
            command, check=False, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, timeout=300
        )
    except subprocess.TimeoutExpired:
        return Outcome.ENDLESS
    return Outcome.SURVIVED if tried.returncode == 0 else Outcome.KILLED


def _imposed(name: str, number: int) -> int:
    """Run the tests with a module changed as it is imported."""
    module = Module.read(name)
    module.mutants[number].apply()
    sys.meta_path.insert(0, _Imposed(module))
    return pytest.main([*OPTIONS, *TESTS], plugins=[_Pure()])


def modules(names: Sequence[str]) -> Iterator[Module]:
    """Yield the modules of these names; all pure ones if there are none."""
    paths = [path.relative_to(TOP).with_suffix("") for each in PURE for path in (TOP / each).rglob("*.py")]
    found = sorted(".".join(path.parts) for path in paths if path.name != "__init__")
    for name in names or found:
        if name in found:
            yield Module.read(name)


if __name__ == "__main__":
    sys.exit(_imposed(sys.argv[1], int(sys.argv[2])))
