"""A workspace and its store to measure on, with the commands that are measured there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import least, stores, trees
from tests.bench.race import BenchError, Contender, Job, race

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.bench.race import Runs

WORKSPACE_ID = "bench"
RECONCILE = str(Path(sys.executable).with_name("reconcile"))

UNISON = ("unison", "-ui", "text", "-batch", "-silent", "-times", "-logfile", "/dev/null")
_SYNCHRONISERS = {"rsync -a": ("rsync", "-a"), "unison -batch -times": UNISON}


@dataclass(slots=True)
class Bench:
    """A workspace and its store with ``count`` conversations, equal on both sides."""

    base: Path
    count: int
    rounds: int
    weight: stores.Weight = stores.USUAL
    names: list[str] = field(default_factory=list)
    _pairs: dict[str, tuple[Path, Path]] = field(default_factory=dict)

    def make(self) -> None:
        """Make the workspace, and the store as its copy."""
        self.base.mkdir()
        make_project(self.project)
        self.names = stores.make_store(self.workspace, self.count, self.weight)
        copy(self.workspace, self.store)

    @property
    def project(self) -> Path:
        return self.base / "project"

    @property
    def workspace(self) -> Path:
        return self.project / ".jp" / "conversations"

    @property
    def store(self) -> Path:
        return self.base / "data" / "workspace" / f"project-{WORKSPACE_ID}" / "conversations"

    @property
    def environment(self) -> dict[str, str]:
        """All that a measured program is told: nothing of the user's."""
        home = str(self.base)
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": home,
            "XDG_CONFIG_HOME": home + "/config",
            "LC_ALL": "C.UTF-8",
            "UNISON": home + "/unison",
            "JP_USER_DATA_DIR": home + "/data",
            "RECONCILE_STATE_DIR": home + "/state",
        }

    def race(self, contenders: list[Contender]) -> Runs:
        return race(contenders, self.rounds, self.environment)

    def once(self, *contenders: Contender) -> None:
        """Run each before it counts: archives are made, caches filled."""
        for contender in contenders:
            race([contender], 1, self.environment)

    def job(self, *options: str, project: Path | None = None, state: str = "state", missing: str = "intent") -> Job:
        """A run of reconcile."""
        environment = {"RECONCILE_STATE_DIR": str(self.base / state), "RECONCILE_MISSING": missing}
        words = (RECONCILE, *options, "-w", str(project or self.project))
        return Job((words,), tuple(environment.items()))

    def settle(self) -> None:
        """Run once more: what was written a moment before a run is read again by the next one, then remembered."""
        self.once(Contender("reconcile (not counted)", lambda _: self.job()))
        self.must_be_settled()

    def must_be_settled(self) -> None:
        """Look at the plan of a dry run.

        Raises:
            BenchError: it isn't empty.
        """
        words = [RECONCILE, "--dry-run", "--json", "-w", str(self.project)]
        ran = subprocess.run(words, env=self.environment, capture_output=True, check=True)
        plan = json.loads(ran.stdout)
        if plan["actions"] or plan["held"] or plan["aside"] or plan["summary"]["in-sync"] != self.count:
            raise BenchError(f"the plan should be empty: {plan['summary']}")

    def same(self, *words: str) -> Callable[[int], Job]:
        """A peer that looks at the very directories that reconcile does."""
        return lambda _: peer(*words, self.workspace, self.store)

    def git(self) -> tuple[str, ...]:
        """git with both directories committed, where they lie; its objects are beside them."""
        words = ("git", "-c", "gc.auto=0", f"--git-dir={self.base / 'git'}", f"--work-tree={self.base}")
        paths = (str(self.workspace), str(self.store))
        who = ("-c", "user.name=bench", "-c", "user.email=bench@example.invalid")
        for command in (("init", "-q"), ("add", *paths), (*who, "commit", "-m", "Both sides")):
            subprocess.run([*words, *command], env=self.environment, stdout=subprocess.DEVNULL, check=True)
        return (*words, "status", "-s", "--", *paths)

    def synchronisers(self) -> tuple[list[Contender], list[Path]]:
        """The peers that carry changes over, and where each finds them: a pair of directories for each."""
        installed = {label: words for label, words in _SYNCHRONISERS.items() if shutil.which(words[0])}
        installed[least.LABEL] = least.command("change", self.base / "least")
        for label in installed.keys() - self._pairs.keys():
            name = label.replace(" ", "")
            self._pairs[label] = self.base / f"{name}-from", self.base / f"{name}-to"
            for directory in self._pairs[label]:
                copy(self.workspace, directory)
        contenders = [_synchroniser(label, words, *self._pairs[label]) for label, words in installed.items()]
        return contenders, [self._pairs[label][0] for label in installed]


def _synchroniser(label: str, words: tuple[str, ...], source: Path, target: Path) -> Contender:
    def prepare(_: int) -> Job:
        trees.read(source, target)
        return peer(*words, source, target)

    precision_ns = 10**9 if words[0] == "unison" else 1
    return Contender(label, prepare, lambda _: trees.must_equal(source, target, precision_ns))


def peer(*words: str | Path) -> Job:
    *command, source, target = map(str, words)
    slash = "/" if command[0] == "rsync" else ""
    return Job(((*command, source + slash, target + slash),))


def if_installed(program: str, label: str, prepare: Callable[[int], Job]) -> list[Contender]:
    return [Contender(label, prepare)] if shutil.which(program) else []


def make_project(project: Path) -> None:
    (project / ".jp").mkdir(parents=True)
    (project / ".jp" / ".id").write_text(f"The id of this workspace; do not edit.\n{WORKSPACE_ID}\n")


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)
