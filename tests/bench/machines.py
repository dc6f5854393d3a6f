"""A sync with a remote beside rsync, unison and restic: seconds, ratios, and bytes.

Every tool has the same store, and a place of its own on the disk of this machine. ``--ssh``: each reaches its place
through an ssh server of the bench.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tests.bench import stores, trees
from tests.bench.bench import RECONCILE, UNISON, Bench, make_project
from tests.bench.race import Contender, Job, measure, race
from tests.support.projects.ssh_host import ALIAS, SshHost

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Found = dict[str, tuple[float, float, int]]
"""By tool, the median of the seconds, of the ratios in the rounds, and of the bytes that were sent."""
REFERENCE = "rsync -a"
_NEW = "a new machine"
FEW, MANY = 1, 100
"""Edited conversations."""


@dataclass(slots=True)
class Place:
    """A tool, and the directory with what it has sent. ``job`` sends; ``fetch`` fills another machine."""

    label: str
    directory: Path
    start: Callable[[], list[tuple[str, ...]]]
    job: Callable[[], Job]
    fetch: Callable[[Path], tuple[list[tuple[str, ...]], Job]]

    @property
    def size(self) -> int:
        """Bytes in all files of the directory."""
        paths = (os.path.join(at, name) for at, _, names in os.walk(self.directory) for name in names)
        return sum(os.lstat(path).st_size for path in paths)


class Machines:
    """The places of one store, and the questions."""

    def __init__(self, bench: Bench, ssh: SshHost | None = None) -> None:
        """Make the store, and a place for each tool that is installed, behind an ssh server if there is one."""
        self.bench, self.ssh = bench, ssh
        bench.make()
        self.environment = bench.environment | {"RESTIC_PASSWORD": "bench"}
        if ssh is not None:
            self.environment |= {"GIT_SSH_COMMAND": ssh.command, "RSYNC_RSH": ssh.command}
        tools = [self._rsync(), self._unison(), self._restic(), self._remote(), self._remote("--encrypt")]
        self.places = [tool for tool in tools if shutil.which(tool.label.split()[0]) or "reconcile" in tool.label]

    def questions(self) -> dict[str, Found]:
        """Return the figures by question."""
        return {
            "first sync": self._asked(lambda _: None, again=True),
            "nothing to do": self._asked(lambda _: None),
            "one conversation continued": self._asked(lambda number: self._change(number, FEW)),
            f"{MANY} continued": self._asked(lambda number: self._change(100 + number, MANY)),
            _NEW: self._fetched(),
        }

    def _asked(self, change: Callable[[int], None], *, again: bool = False) -> Found:
        changed: set[int] = set()
        sent: dict[str, list[int]] = {place.label: [] for place in self.places}

        def contender(place: Place) -> Contender:
            before = [0]

            def prepare(number: int) -> Job:
                if number not in changed:
                    change(number)
                    trees.read(self.bench.store)
                    changed.add(number)
                if again:
                    self._begin(place)
                before[0] = place.size
                return place.job()

            def check(_: int) -> None:
                sent[place.label].append(place.size - before[0])

            return Contender(place.label, prepare, check)

        return self._found([contender(place) for place in self.places], sent)

    def _fetched(self) -> Found:
        def contender(place: Place) -> Contender:
            def prepare(number: int) -> Job:
                home = self.bench.base / f"new-{place.directory.name}-{number}"
                before, job = place.fetch(home)
                for words in before:
                    self._run(*words)
                return job

            return Contender(place.label, prepare)

        return self._found([contender(place) for place in self.places], {place.label: [0] for place in self.places})

    def _found(self, contenders: Sequence[Contender], sent: dict[str, list[int]]) -> Found:
        runs = race(contenders, self.bench.rounds, self.environment)
        reference = [sample.seconds for sample in runs[REFERENCE]]
        return {
            label: (
                median(sample.seconds for sample in samples),
                median(sample.seconds / other for sample, other in zip(samples, reference, strict=True)),
                int(median(sent[label])),
            )
            for label, samples in runs.items()
        }

    def bytes_of_rsync(self, number: int, edits: int) -> int:
        """Return the bytes that rsync sends over a network, where it looks for what has changed in a file."""
        self._change(number, edits)
        words = ("rsync", "-a", "--no-whole-file", "--stats", f"{self.bench.store}/", f"{self.places[0].directory}/")
        told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        return int("".join(re.findall(r"Total bytes sent: ([\d,]+)", told)).replace(",", ""))

    def _change(self, number: int, edits: int) -> None:
        stores.change([self.bench.store], self.bench.names, number, min(edits, self.bench.count))

    def _begin(self, place: Place) -> None:
        """Empty a place, and have its tool forget it."""
        shutil.rmtree(place.directory, ignore_errors=True)
        for words in place.start():
            self._run(*words)

    def _run(self, *words: str) -> None:
        measure(Job((words,)), self.environment)

    def _address(self, there: Path) -> str:
        """Return the address of a place, as rsync, ssh and git have it."""
        return str(there) if self.ssh is None else self.ssh.url(there)

    def _rsync(self) -> Place:
        there, slash = self.bench.base / "rsync", f"{self.bench.store}/"
        address = self._address(there)

        def fetch(home: Path) -> tuple[list[tuple[str, ...]], Job]:
            return [], Job((("rsync", "-a", f"{address}/", f"{home}/"),))

        return Place(REFERENCE, there, list, lambda: Job((("rsync", "-a", slash, f"{address}/"),)), fetch)

    def _unison(self) -> Place:
        there, archives = self.bench.base / "unison-there", self.bench.base / "unison"
        words: tuple[str, ...] = UNISON
        address = str(there)
        if self.ssh is not None:
            program, _, options = self.ssh.command.partition(" ")
            words = (*UNISON, "-sshcmd", program, "-sshargs", options)
            address = f"ssh://{ALIAS}/{there}"

        def start() -> list[tuple[str, ...]]:
            shutil.rmtree(archives, ignore_errors=True)
            return [("mkdir", "-p", str(there))]

        def fetch(home: Path) -> tuple[list[tuple[str, ...]], Job]:
            return [("mkdir", str(home))], Job(((*words, address, str(home)),))

        return Place("unison", there, start, lambda: Job(((*words, str(self.bench.store), address),)), fetch)

    def _restic(self) -> Place:
        there = self.bench.base / "restic"
        words: tuple[str, ...] = ("restic", "--quiet", "--repo", str(there))
        if self.ssh is not None:
            sftp = f"sftp.command={self.ssh.command} {ALIAS} -s sftp"
            words = ("restic", "--quiet", "--option", sftp, "--repo", f"sftp:{ALIAS}:{there}")

        def fetch(home: Path) -> tuple[list[tuple[str, ...]], Job]:
            return [], Job(((*words, "restore", "latest", "--target", str(home)),))

        job = Job(((*words, "backup", str(self.bench.store)),))
        return Place("restic", there, lambda: [(*words, "init")], lambda: job, fetch)

    def _remote(self, *options: str) -> Place:
        name = "remote" + "".join(options)
        there, own = self.bench.base / f"{name}.git", self.bench.base / f"{name}-state"
        address = self._address(there)
        state = (("RECONCILE_STATE_DIR", str(own)),)
        project = ("-w", str(self.bench.project))

        def start() -> list[tuple[str, ...]]:
            shutil.rmtree(own, ignore_errors=True)
            at = f"RECONCILE_STATE_DIR={own}"
            return [
                ("git", "init", "--quiet", "--bare", str(there)),
                ("env", at, RECONCILE, "remote", "add", *options, address, *project),
            ]

        def fetch(home: Path) -> tuple[list[tuple[str, ...]], Job]:
            make_project(home / "project")
            (home / "states").mkdir()
            if options:
                shutil.copy(own / "age-key.txt", home / "states")
            new = {"HOME": home, "JP_USER_DATA_DIR": home / "data", "RECONCILE_STATE_DIR": home / "states"}
            (home / "data" / "workspace" / self.bench.store.parent.name / "conversations").mkdir(parents=True)
            words = (RECONCILE, "sync", address, "-w", str(home / "project"))
            return [], Job((words,), tuple((name, str(value)) for name, value in new.items()))

        label = "reconcile sync" + (", encrypted" if options else "")
        return Place(label, there, start, lambda: Job(((RECONCILE, "sync", *project),), state), fetch)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=10_000, help="the number of conversations")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="small files, to have many")
    parser.add_argument("--dir", type=Path, help="work below this directory instead of the system's temporary one")
    parser.add_argument("--ssh", action="store_true", help="through an ssh server of the bench")
    options = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="reconcile-bench-", dir=options.dir))
    try:
        weight = stores.SMALL if options.small else stores.USUAL
        with SshHost(base / "ssh") if options.ssh else nullcontext() as ssh:
            machines = Machines(Bench(base / "all", options.size, options.rounds, weight), ssh)
            found = machines.questions()
        print(f"{options.size:,} conversations, load {os.getloadavg()[0]:.1f}; seconds, ratio to {REFERENCE}, bytes")
        labels = [place.label for place in machines.places]
        print(f"| Work | {' | '.join(labels)} |\n|{' --- |' * (len(labels) + 1)}")
        for question, by_tool in found.items():
            figures = [by_tool[label] for label in labels]
            told = "{:.2f} s, {:.2f}" if question == _NEW else "{:.2f} s, {:.2f}, {:,} B"
            cells = [told.format(*each) for each in figures]
            print(f"| {question} | {' | '.join(cells)} |")
        few, many = (machines.bytes_of_rsync(900 + edits, edits) for edits in (FEW, MANY))
        print(f"rsync sends {few:,} B over a network for one conversation, and {many:,} B for {MANY}")
    finally:
        shutil.rmtree(base)


if __name__ == "__main__":
    main()
