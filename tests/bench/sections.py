"""The questions that are measured, for one number of conversations."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.bench import least, stores, trees
from tests.bench.bench import RECONCILE, UNISON, Bench, if_installed, make_project, peer
from tests.bench.commands import REFERENCE, commands
from tests.bench.race import Contender, Job

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.bench.race import Runs


@dataclass(frozen=True, slots=True)
class Section:
    """A question, the contender that the others are compared with, and how it is measured."""

    title: str
    reference: str
    measure: Callable[[Bench], Runs]


def no_op(bench: Bench) -> Runs:
    """Both sides equal, and known to be. The peers look at the very same directories."""
    bench.settle()
    bench.settle()
    contenders = [
        *if_installed("rsync", "rsync -a --dry-run", bench.same("rsync", "-a", "--dry-run")),
        *if_installed("rsync", "rsync -an --delete -i", bench.same("rsync", "-an", "--delete", "-i")),
        *if_installed("unison", "unison -batch -times", bench.same(*UNISON)),
        Contender("reconcile --dry-run", lambda _: bench.job("--dry-run")),
        Contender("reconcile", lambda _: bench.job(), lambda _: bench.must_be_settled()),
    ]
    if shutil.which("git"):
        status = bench.git()
        contenders.insert(-2, Contender("git status -s", lambda _: Job((status,))))
    bench.once(*contenders)
    return bench.race(contenders)


def one_changed(bench: Bench) -> Runs:
    return _changed(bench, 1)


def hundredth_changed(bench: Bench) -> Runs:
    return _changed(bench, max(1, bench.count // 100))


def _changed(bench: Bench, edits: int) -> Runs:
    """So many edited in the workspace. Each peer has a pair of directories of its own, with the same edits."""
    bench.settle()
    contenders, sources = bench.synchronisers()
    bench.once(*contenders)
    sources.append(bench.workspace)
    edited: set[int] = set()

    def with_edits(contender: Contender) -> Contender:
        def prepare(number: int) -> Job:
            if number not in edited:
                stores.change(sources, bench.names, number, edits)
                edited.add(number)
            return contender.prepare(number)

        return Contender(contender.label, prepare, contender.check)

    def reconcile(_: int) -> Job:
        trees.read(bench.workspace, bench.store)
        return bench.job()

    def check(_: int) -> None:
        trees.must_equal(bench.workspace, bench.store)
        bench.must_be_settled()  # before a second run could mend anything
        bench.settle()

    contenders.append(Contender("reconcile", reconcile, check))
    return bench.race([with_edits(contender) for contender in contenders])


def projection(bench: Bench) -> Runs:
    """The store into nothing; every target is a new one, for a removed one makes the next one slow."""

    def project(number: int) -> Path:
        return bench.base / f"projection-{number}" / "project"

    def reconcile(number: int) -> Job:
        make_project(project(number))
        (project(number) / ".jp" / "conversations").mkdir()
        trees.read(bench.store)
        return bench.job(project=project(number), state=f"state-projection-{number}", missing="reproject")

    def check(number: int) -> None:
        trees.must_equal(bench.store, project(number) / ".jp" / "conversations")

    rsync, cp, flush = ("rsync", "-a", "FROM/", "TO"), ("cp", "-a", "FROM", "TO"), ("sync", "-f", "TO")
    contenders = [_into(bench, "cp -a", cp), _into(bench, "cp -a, sync -f", cp, flush)]
    contenders.append(_into(bench, least.LABEL, least.command("projection", "STATE", "FROM", "TO")))
    if shutil.which("rsync"):
        contenders[:0] = [_into(bench, "rsync -a", rsync), _into(bench, "rsync -a, sync -f", rsync, flush)]
    return bench.race([*contenders, Contender("reconcile", reconcile, check)])


def _into(bench: Bench, label: str, *commands: tuple[str, ...]) -> Contender:
    """Copies the store into a new directory; FROM and TO stand for the two, STATE for one more."""

    def target(number: int) -> Path:
        return bench.base / f"{label.replace(' ', '')}-{number}"

    def prepare(number: int) -> Job:
        trees.read(bench.store)
        words = {"FROM": str(bench.store), "FROM/": f"{bench.store}/", "TO": str(target(number))}
        words["STATE"] = f"{target(number)}-state"
        return Job(tuple(tuple(words.get(word, word) for word in command) for command in commands))

    return Contender(label, prepare, lambda number: trees.must_equal(bench.store, target(number)))


def first_run(bench: Bench) -> Runs:
    """Both sides full and equal: everything has to be read once."""

    def fresh(number: int) -> Job:
        trees.read(bench.workspace, bench.store)
        return bench.job(state=f"state-first-{number}")

    def checksums(_: int) -> Job:
        trees.read(bench.workspace, bench.store)
        return peer("rsync", "-ac", bench.workspace, bench.store)

    def least_of_all(number: int) -> Job:
        trees.read(bench.workspace, bench.store)
        state = bench.base / f"least-first-{number}"
        return Job((least.command("first", state, bench.workspace, bench.store),))

    contenders = [*if_installed("rsync", "rsync -ac", checksums), Contender(least.LABEL, least_of_all)]
    return bench.race([*contenders, Contender("reconcile", fresh)])


def start(bench: Bench) -> Runs:
    """What there is to pay before any work."""
    bench.settle()
    contenders = [
        Contender("python -c pass", lambda _: Job(((sys.executable, "-c", "pass"),))),
        Contender("reconcile --version", lambda _: Job(((RECONCILE, "--version"),))),
        Contender("reconcile --dry-run", lambda _: bench.job("--dry-run")),
        *if_installed("rsync", "rsync -a --dry-run", bench.same("rsync", "-a", "--dry-run")),
    ]
    return bench.race(contenders)


def find(bench: Bench) -> Runs:
    """Search for a word that one conversation has. ripgrep reads both sides, and can't see texts in base64."""
    path = bench.workspace / bench.names[0] / "events.json"
    event = '  {"timestamp": "2026-01-01 00:00:00.0", "type": "chat_request", "content": "Haystack"}'
    path.write_text(path.read_text().removesuffix("\n]\n") + f",\n{event}\n]\n")
    bench.settle()
    bench.settle()
    contenders = [
        *if_installed(
            "rg", "rg -i", lambda _: Job((("rg", "-i", "haystack", str(bench.workspace), str(bench.store)),))
        ),
        Contender("reconcile find", lambda _: bench.job("find", "haystack")),
    ]
    bench.once(*contenders)
    return bench.race(contenders)


USUAL = {
    "no-op": Section("nothing changed", "rsync -a --dry-run", no_op),
    "one": Section("one file changed in the workspace", "rsync -a", one_changed),
    "changed": Section("1 % changed in the workspace", "rsync -a", hundredth_changed),
    "projection": Section("full projection into an empty workspace", "cp -a, sync -f", projection),
    "first": Section("first run: both sides full and equal, nothing remembered", "rsync -ac", first_run),
    "find": Section("a search for a rare word", "rg -i", find),
    "start": Section("start-up", "python -c pass", start),
    "commands": Section("commands on both sides at rest", REFERENCE, commands),
}
GROWTH = {
    "growth-no-op": Section("growth: nothing changed, small files", "rsync -a --dry-run", no_op),
    "growth-one": Section("growth: one file changed, small files", "rsync -a", one_changed),
    "growth-changed": Section("growth: 1 % changed, small files", "rsync -a", hundredth_changed),
    "growth-projection": Section("growth: full projection, small files", "cp -a, sync -f", projection),
    "growth-first": Section("growth: first run, small files", "rsync -ac", first_run),
    "growth-commands": Section("growth: commands on both sides at rest, small files", REFERENCE, commands),
}
SECTIONS = USUAL | GROWTH
