"""The questions that are measured, for one number of conversations."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import stores, trees
from tests.bench.race import BenchError, Contender, Figured, Job, race

if TYPE_CHECKING:
    from collections.abc import Callable

WORKSPACE_ID = "bench"
RECONCILE = str(Path(sys.executable).with_name("reconcile"))

NO_OP = "nothing changed"
FIRST = "first run: both sides full and equal, nothing remembered"
PROJECTION = "full projection into an empty workspace"
CHANGED = "1 % changed in the workspace"
START = "start-up"

REFERENCES = {
    NO_OP: "rsync -a --dry-run",
    FIRST: "rsync -ac",
    PROJECTION: "cp -a, sync -f",
    CHANGED: "rsync -a",
    START: "python -c pass",
}


@dataclass(slots=True)
class Bench:
    """A workspace and its store with ``count`` conversations, and what is measured on them."""

    base: Path
    count: int
    rounds: int
    names: list[str] = field(default_factory=list)

    def make(self) -> None:
        """Make the workspace, and the store as its copy."""
        self.base.mkdir()
        self._project(self.project)
        self.names = stores.make_store(self.workspace, self.count)
        _copy(self.workspace, self.store)

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

    def first_run(self) -> Figured:
        """Both sides full and equal: everything has to be read once."""

        def fresh(number: int) -> Job:
            trees.read(self.workspace, self.store)
            return self._job(state=f"state-first-{number}")

        def checksums(_: int) -> Job:
            trees.read(self.workspace, self.store)
            return self._peer("rsync", "-ac", self.workspace, self.store)

        return self._race(FIRST, [*self._if("rsync", "rsync -ac", checksums), Contender("reconcile", fresh)])

    def no_op(self) -> Figured:
        """Both sides equal, and known to be. The peers look at the very same directories."""
        self.settle()
        self.settle()
        contenders = [
            *self._if("rsync", "rsync -a --dry-run", self._same("rsync", "-a", "--dry-run")),
            *self._if("rsync", "rsync -an --delete -i", self._same("rsync", "-an", "--delete", "-i")),
            *self._if("unison", "unison -batch -times", self._same(*_UNISON)),
            Contender("reconcile --dry-run", lambda _: self._job("--dry-run")),
            Contender("reconcile", lambda _: self._job(), lambda _: self._must_be_settled()),
        ]
        for contender in contenders:
            race([contender], 1, self.environment, "")  # archives are made, caches filled
        return self._race(NO_OP, contenders)

    def projection(self) -> Figured:
        """The store into nothing; every target is a new one, for a removed one makes the next one slow."""

        def into(label: str, *commands: tuple[str, ...]) -> Contender:
            def target(number: int) -> Path:
                return self.base / f"{label.replace(' ', '')}-{number}"

            def prepare(number: int) -> Job:
                trees.read(self.store)
                words = {"FROM": str(self.store), "FROM/": f"{self.store}/", "TO": str(target(number))}
                return Job(tuple(tuple(words.get(word, word) for word in command) for command in commands))

            return Contender(label, prepare, lambda number: trees.must_equal(self.store, target(number)))

        def project(number: int) -> Path:
            return self.base / f"projection-{number}" / "project"

        def reconcile(number: int) -> Job:
            self._project(project(number))
            (project(number) / ".jp" / "conversations").mkdir()
            trees.read(self.store)
            return self._job(project=project(number), state=f"state-projection-{number}", missing="reproject")

        def check(number: int) -> None:
            trees.must_equal(self.store, project(number) / ".jp" / "conversations")

        rsync, cp, flush = ("rsync", "-a", "FROM/", "TO"), ("cp", "-a", "FROM", "TO"), ("sync", "-f", "TO")
        contenders = [into("cp -a", cp), into("cp -a, sync -f", cp, flush)]
        if shutil.which("rsync"):
            contenders = [into("rsync -a", rsync), into("rsync -a, sync -f", rsync, flush), *contenders]
        return self._race(PROJECTION, [*contenders, Contender("reconcile", reconcile, check)])

    def changed(self) -> Figured:
        """A hundredth edited in the workspace. Each peer has a pair of its own, with the same edits."""
        self.settle()
        contenders, sources = [], [self.workspace]
        for label, words in _SYNCHRONISERS.items():
            if shutil.which(words[0]):
                pair = self.base / f"{label.replace(' ', '')}-from", self.base / f"{label.replace(' ', '')}-to"
                for directory in pair:
                    _copy(self.workspace, directory)
                contenders.append(self._synchroniser(label, words, *pair))
                sources.append(pair[0])
        for contender in contenders:
            race([contender], 1, self.environment, "")
        edited: set[int] = set()

        def edit(number: int) -> None:
            if number not in edited:
                stores.change(sources, self.names, number)
                edited.add(number)

        def with_edits(contender: Contender) -> Contender:
            def prepare(number: int) -> Job:
                edit(number)
                return contender.prepare(number)

            return Contender(contender.label, prepare, contender.check)

        def reconcile(_: int) -> Job:
            trees.read(self.workspace, self.store)
            return self._job()

        def check(_: int) -> None:
            trees.must_equal(self.workspace, self.store)
            self._must_be_settled()  # before a second run could mend anything
            self.settle()

        contenders.append(Contender("reconcile", reconcile, check))
        return self._race(CHANGED, [with_edits(contender) for contender in contenders])

    def start(self) -> Figured:
        """What there is to pay before any work."""
        self.settle()
        contenders = [
            Contender("python -c pass", lambda _: Job(((sys.executable, "-c", "pass"),))),
            Contender("reconcile --version", lambda _: Job(((RECONCILE, "--version"),))),
            Contender("reconcile --dry-run", lambda _: self._job("--dry-run")),
            *self._if("rsync", "rsync -a --dry-run", self._same("rsync", "-a", "--dry-run")),
        ]
        return self._race(START, contenders)

    def _race(self, section: str, contenders: list[Contender]) -> Figured:
        print(f"  {self.count:,}: {section}", file=sys.stderr, flush=True)
        return race(contenders, self.rounds, self.environment, REFERENCES[section])

    def _job(self, *options: str, project: Path | None = None, state: str = "state", missing: str = "intent") -> Job:
        environment = {"RECONCILE_STATE_DIR": str(self.base / state), "RECONCILE_MISSING": missing}
        words = (RECONCILE, *options, "-w", str(project or self.project))
        return Job((words,), tuple(environment.items()))

    def settle(self) -> None:
        """Run once more: what was written a moment before a run is read again by the next one, then remembered."""
        race([Contender("reconcile (not counted)", lambda _: self._job())], 1, self.environment, "")
        self._must_be_settled()

    def _must_be_settled(self) -> None:
        """Look at the plan of a dry run.

        Raises:
            BenchError: it isn't empty.
        """
        words = [RECONCILE, "--dry-run", "--json", "-w", str(self.project)]
        ran = subprocess.run(words, env=self.environment, capture_output=True, check=True)
        plan = json.loads(ran.stdout)
        if plan["actions"] or plan["held"] or plan["aside"] or plan["summary"]["in-sync"] != self.count:
            raise BenchError(f"the plan should be empty: {plan['summary']}")

    def _synchroniser(self, label: str, words: tuple[str, ...], source: Path, target: Path) -> Contender:
        def prepare(_: int) -> Job:
            trees.read(source, target)
            return self._peer(*words, source, target)

        precision_ns = 10**9 if words[0] == "unison" else 1
        return Contender(label, prepare, lambda _: trees.must_equal(source, target, precision_ns))

    def _same(self, *words: str) -> Callable[[int], Job]:
        return lambda _: self._peer(*words, self.workspace, self.store)

    def _peer(self, *words: str | Path) -> Job:
        *command, source, target = map(str, words)
        slash = "/" if command[0] == "rsync" else ""
        return Job(((*command, source + slash, target + slash),))

    def _if(self, program: str, label: str, prepare: Callable[[int], Job]) -> list[Contender]:
        return [Contender(label, prepare)] if shutil.which(program) else []

    def _project(self, project: Path) -> None:
        (project / ".jp").mkdir(parents=True)
        (project / ".jp" / ".id").write_text(f"The id of this workspace; do not edit.\n{WORKSPACE_ID}\n")


_UNISON = ("unison", "-ui", "text", "-batch", "-silent", "-times", "-logfile", "/dev/null")
_SYNCHRONISERS = {"rsync -a": ("rsync", "-a"), "unison -batch -times": _UNISON}


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)
