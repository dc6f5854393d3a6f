"""Random stories of machines: edits, removals, privacy, archives, halves of syncs, and kills.

A sync or a run is killed at any change of a file or of the state, and a sync at a call of the engine, or the disk is
full, or broken there. On a host of git, the process that receives a push is killed, too.

The clocks of the machines are up to a day wrong, and some can't reach the remote for a while. Machines with JP also
work in a project, or in two worktrees of it, where nothing private may get.

At the end all machines are equal after two quiet rounds, no line is lost, and no continuation was forked needlessly.
What one machine has removed is gone, unless another one had edited it.
`make machines` plays them for ``MACHINES_FOR`` seconds each. ``SERVED_STORIES`` is how many reach the remote by http,
and how many by ssh.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec import Struct, field

from reconcile.remote.engine import RemoteError, UnreachableError
from reconcile.remote.known import Half, Report
from tests.support.faults.fault_points import Mode
from tests.support.projects.http_host import HttpHost
from tests.support.projects.machines import add_worktree, git, make_bare, make_machine
from tests.support.projects.memory_engine import Host
from tests.support.projects.mortal_receiver import make_programs, mortal_receiver
from tests.support.projects.mortal_syncs import AnyHost, CheckedSync, Killed, Served, engine_of, sync_with, under_fault
from tests.support.projects.plain_machines import make_plain_machine
from tests.support.projects.ssh_host import SshHost
from tests.support.projects.world import LONG_AGO, SECOND, write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.conftest import Run
    from tests.support.projects.machines import Machine

    Maker = Callable[[Path, Run], Machine]

SECONDS = float(os.environ.get("MACHINES_FOR", "600"))
FIRST = 17528832000
START, STEPS = 3, 40
STEPS_OF_A_SYNC, STEPS_OF_A_RUN = 150, 60
"""How many changes of files and of the state are made, about."""
MANY = 10 * STEPS + 10
"""No id that a story chooses is further from the first one."""
ROUNDS = 2
"""Quiet rounds after which all machines are equal: in the first all send, in the second all take."""
ONE_IN = 8
"""One story in so many has the program git and a bare repository. The others have a remote in memory."""
SERVED = int(os.environ.get("SERVED_STORIES", "2"))
"""The stories with each of the servers: http, and ssh."""
DAY = 24 * 3600 * SECOND


KINDS = {"jp": "waaaabbbtoopddrhjjjggccsssssskkkuvx", "plain": "waaaaaatpddrnnhsssssskkkuvx"}
"""The steps: write, append, in the store and in the project, a key of metadata, a parent, another file, removal,
archive, name, hide, a run of the project, publication, git's copy of another project's, and kinds of syncs."""


class Story(Struct):
    """The machines, the lines that were said, and those that someone has removed knowingly."""

    machines: list[Machine]
    host: AnyHost
    chance: random.Random
    said: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    clocks: dict[int, int] = field(default_factory=dict)
    """By machine, how wrong its clock is, in ns."""
    cut_off: dict[int, int] = field(default_factory=dict)
    """By machine, the step from which on it reaches the remote again."""
    is_encrypted: bool = False
    edited: dict[int, set[str]] = field(default_factory=dict)
    """By machine, the conversations that it may have changed since its last sync."""
    unseen: dict[int, set[str]] = field(default_factory=dict)
    """By machine, those that others may have sent since its last sync."""
    gone: dict[str, set[str]] = field(default_factory=dict)
    """Those that were removed while no other machine had edited them, and were not edited since, with their lines."""
    unsent_forks: set[str] = field(default_factory=set)
    """Those that a pull has made. If one is removed before it is sent, the next sync makes it again."""
    private: set[str] = field(default_factory=set)
    """Those that were made private, and not published since by anyone."""
    published: dict[int, set[str]] = field(default_factory=dict)
    """By machine, the private ones that were published there since its last sync."""
    log: list[str] = field(default_factory=list)
    kills: int = 0
    """Processes that were killed at a step."""
    kill_host_after: Callable[[float | None], object] | None = None
    """Has the process of the host that receives the next push killed after so many seconds."""

    def sync(self, machine: Machine, half: Half = Half.BOTH, *, dies: bool = False, reaches: bool = True) -> Report:
        engine = engine_of(self.host, machine, self.chance if dies else None, reaches=reaches)
        error_ns = self.clocks.get(self.machines.index(machine), 0)
        report = sync_with(machine, engine, half, is_encrypted=self.is_encrypted, clock_error_ns=error_ns)
        if not report.held:  # else the step that replaces a source may have failed
            check_forks(machine, report)
        if half is Half.PULL:
            self.unsent_forks.update(entry.id for entry in report.forked)
        else:
            self.published.pop(self.machines.index(machine), None)
        self.sent(machine, {entry.id for entry in report.sent})
        if half is Half.BOTH and not report.held:
            at = self.machines.index(machine)
            self.edited[at], self.unseen[at] = self.unsaved(machine), set()
        return report

    def sent(self, machine: Machine, conversations: set[str]) -> None:
        self.unsent_forks -= conversations
        for at, other in enumerate(self.machines):
            if other is not machine:
                self.unseen.setdefault(at, set()).update(conversations)

    def edits(self, machine: Machine, *conversations: str) -> None:
        self.edited.setdefault(self.machines.index(machine), set()).update(conversations)
        for conversation in conversations:
            self.gone.pop(conversation, None)

    def unsaved(self, machine: Machine) -> set[str]:
        """Return the conversations that the project has otherwise than the store, or alone."""
        return set().union(*(unsaved_in(machine, project) for project in machine.worktrees))

    def step(self, number: int) -> None:
        at = self.chance.randrange(len(self.machines))
        machine, name = self.machines[at], f"m{at}s{number}"
        there = [path for path in whole(machine.store.rglob("events.json")) if path.parent.name[0] != "."]
        kind = self.chance.choice(KINDS[machine.format])
        self.log.append(f"{kind} {at}")
        mtime_ns = self.clocks.get(at, 0)
        mtime_ns += self.chance.choice((LONG_AGO, LONG_AGO, time.time_ns())) + self.chance.randrange(1, 1000) * SECOND
        if kind == "x":
            self.cut_off[at] = number + self.chance.randrange(3, 15)
        elif kind in "skuv":
            self.sync_as(kind, machine, reaches=self.cut_off.get(at, 0) <= number)
        elif kind == "w":
            self.write(machine, 10 + number * 10 + at, name, mtime_ns)
        elif kind == "b":
            if streams := sorted(path for project in machine.worktrees for path in streams_in(project)):
                stream = self.chance.choice(streams)
                self.edits(machine, machine.id_of(stream.parent))
                self.say(stream, name, mtime_ns)
        elif kind == "j":
            project = self.chance.choice(machine.worktrees)
            if self.chance.random() < 0.3:
                step = self.chance.randrange(1, STEPS_OF_A_RUN)
                self.disturb(Mode.KILLED, machine, step, lambda: self.work(machine, project))
            self.work(machine, project)
        elif kind == "c":
            self.check_out(machine, self.chance.choice(self.machines))
        elif there:
            self.change(kind, machine, self.chance.choice(there), name, mtime_ns)

    def sync_as(self, kind: str, machine: Machine, *, reaches: bool) -> None:
        """Sync, or do one half of it. The process is killed, or its disk is full, or that of the host is killed."""
        dies = self.chance.choice((*Mode, "at a call", "on the host")) if kind == "k" else None
        if not reaches:
            with pytest.raises(UnreachableError):
                self.sync(machine, reaches=False)
        elif isinstance(dies, Mode):
            step = self.chance.randrange(1, STEPS_OF_A_SYNC)
            self.disturb(dies, machine, step, lambda: self.sync(machine))
            self.may_have_synced(machine)
        else:
            half = {"u": Half.PULL, "v": Half.PUSH}.get(kind, Half.BOTH)
            if dies == "on the host" and self.kill_host_after is not None:
                self.kill_host_after(self.chance.uniform(0, 0.1))
            try:
                self.sync(machine, half, dies=dies == "at a call")
            except (Killed, RemoteError):
                self.may_have_synced(machine)
            if self.kill_host_after is not None:
                self.kill_host_after(None)  # it may have had nothing to send
            if dies and not isinstance(self.host, Host):
                for lock in (self.host.bare if isinstance(self.host, Served) else self.host).rglob("*.lock"):
                    lock.unlink()  # as a person does for whom the message of a push has named it

    def disturb(self, mode: Mode, machine: Machine, step: int, command: Callable[[], object]) -> None:
        self.kills += under_fault(mode, step, machine.home, self.host, command)

    def may_have_synced(self, machine: Machine) -> None:
        """Note what a sync without a report may have done: what it has taken is no edit, but it may look like one."""
        self.edits(machine, *streams_of(machine))
        self.sent(machine, set(streams_of(machine)))

    def change(self, kind: str, machine: Machine, stream: Path, name: str, mtime_ns: int) -> None:
        conversation = machine.id_of(stream.parent)
        metadata = stream.with_name("metadata.json")
        if kind != "d":
            self.edits(machine, conversation)
        if kind == "a":
            self.say(stream, name, mtime_ns)
        elif kind == "t" and metadata.exists():
            write_json(metadata, json.loads(metadata.read_bytes()) | {name: 1}, mtime_ns)
        elif kind == "o" and metadata.exists():
            older = sorted(each for each in streams_of(machine) if each < conversation)
            parent = {"parent_id": self.chance.choice(older)} if older else {}
            write_json(metadata, json.loads(metadata.read_bytes()) | parent, mtime_ns)
        elif kind == "g":
            self.publish(machine, conversation)
        elif kind == "p":
            others = sorted(stream.parent.glob("*.txt"))
            if others and self.chance.random() < 0.4:
                self.chance.choice(others).unlink()
            else:
                (stream.parent / f"{name}.txt").write_text(name)
        elif kind == "d" and stream.parent.parent == machine.store:
            self.remove(machine, stream)
        elif kind == "r" and stream.parent.parent == machine.store:
            (machine.store / ".archive").mkdir(exist_ok=True)
            stream.parent.rename(machine.store / ".archive" / stream.parent.name)
        elif kind == "n" and stream.parent.parent == machine.store:
            stream.parent.rename(machine.store / name)
        elif kind == "h" and stream.parent.parent == machine.store:
            self.make_private(machine, conversation)

    def publish(self, machine: Machine, conversation: str) -> None:
        if conversation in machine.private:
            self.published.setdefault(self.machines.index(machine), set()).add(conversation)
        self.work(machine, self.chance.choice(machine.worktrees), "project", conversation)
        self.private.discard(conversation)

    def make_private(self, machine: Machine, conversation: str) -> None:
        # One that repeats what is so already decides nothing. So may one that follows another machine's `project`,
        # which its next sync sends: the remote's mark may be private anyway (docs/design/remotes.md#rule-61).
        at = self.machines.index(machine)
        is_repeated = conversation in machine.private
        with machine.at_work():
            result = machine.world.run(*machine.sides, "local", conversation)
        # Another worktree may have published the one that is missing in this empty one: `recover` decides.
        assert result.exit_code == 0 or "the workspace is empty, but had" in result.output, result.output
        if result.exit_code == 0 and not is_repeated:
            self.published.get(at, set()).discard(conversation)
            if not any(conversation in others for others in self.published.values()):
                self.private.add(conversation)

    def remove(self, machine: Machine, stream: Path) -> None:
        conversation = machine.id_of(stream.parent)
        elsewhere = set().union(*(unsaved_in(machine, project) for project in machine.worktrees[1:]))
        here = self.project_of(machine, conversation)
        lines = {line["content"] for path in (stream, here) if path for line in json.loads(path.read_bytes())}
        with machine.at_work():  # a later run removes it, if a child waits for a decision
            result = machine.world.run(*machine.sides, "rm", conversation, "--yes", "--promote")
        assert result.exit_code in (0, 4), result.output
        number = conversation.removeprefix("jp-c").removeprefix("fork-")
        if number.isdigit() and int(number) > FIRST + MANY:
            time.sleep(0.2)  # a fork has its time as its id: none that follows gets the same
        self.removed |= lines
        self.edits(machine, *streams_of(machine))  # the children have another parent
        at = self.machines.index(machine)
        edited = self.unseen.get(at, set()).union(
            *(ids for other, ids in self.edited.items() if other != at), elsewhere
        )
        if not result.exit_code and conversation not in edited | self.unsent_forks:
            self.gone[conversation] = lines

    def check_out(self, machine: Machine, other: Machine) -> None:
        """Have git bring a conversation of another machine's project, with the time of the checkout."""
        there = sorted(path for project in other.worktrees for path in streams_in(project))
        source = self.chance.choice(there).parent if there else None
        project = self.chance.choice(machine.worktrees)
        if source is None or other.id_of(source) in published(machine, project):
            return
        self.edits(machine, other.id_of(source))
        target = project / ".jp" / "conversations" / source.name
        for file in filter(Path.is_file, source.iterdir()):
            target.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target / file.name)

    def project_of(self, machine: Machine, conversation: str) -> Path | None:
        """Return the events of a conversation in the project, if it is there."""
        name = conversation.removeprefix("jp-c")
        return next((machine.project / ".jp" / "conversations").rglob(f"{name}-*/events.json"), None)

    def work(self, machine: Machine, project: Path, *command: str) -> None:
        """Run a command in a worktree: nothing private gets there, no conversation and no line."""
        before, private, lines = published(machine, project), machine.private, lines_in(machine, project)
        with machine.at_work():
            result = machine.world.run("--workspace", project, *command)
            assert result.exit_code in (0, 4), result.output
            after = lines_in(machine, project)
            assert command or all(after[id_] == lines[id_] for id_ in after.keys() & private & before)
            new = after.keys() - before
            if not new:
                return
            shown = json.loads(machine.world.run("--workspace", project, "ls", "--json").stdout)
        hidden = {each["conversation"] for each in shown["conversations"] if each["state"] == "local"}
        assert not hidden & new, hidden

    def write(self, machine: Machine, number: int, name: str, mtime_ns: int) -> None:
        path = machine.write(FIRST + number, 0, name)
        self.edits(machine, machine.id_of(path))
        self.say(path / "events.json", name, mtime_ns)

    def say(self, stream: Path, name: str, mtime_ns: int) -> None:
        before, at = json.loads(stream.read_bytes()), len(self.said)  # two lines of one time would be one, edited
        line = {"timestamp": f"2026-01-01T00:{at // 60:02}:{at % 60:02}Z", "type": "chat_request", "content": name}
        write_json(stream, [*before, line], mtime_ns)
        self.said.add(name)

    def work_everywhere(self, machine: Machine) -> None:
        for project in machine.worktrees if machine.format == "jp" else ():
            self.work(machine, project)

    def play_round(self) -> tuple[set[str], set[str]]:
        """Let all machines work and sync; return what has changed, and what their runs left in the worktrees."""
        changed, left = set[str](), set[str]()
        for machine in self.machines:
            self.work_everywhere(machine)
            left |= self.unsaved(machine)
            report = self.sync(machine)
            lists = [report.sent, report.taken, report.forked, report.removed_here, report.removed_there]
            lists += [report.private_here, report.private_no_longer]
            lists += [report.private_there, report.private_no_longer_there, report.replaced_forks]
            ids = {entry.id for entries in lists for entry in entries}
            changed |= ids or ({repr(report)} if report != Report() else set())
        return changed, left

    def parent_of(self, conversation: str) -> str | None:
        for machine in self.machines:
            if conversation in streams_of(machine):
                metadata = machine.directory_of(conversation) / "metadata.json"
                return json.loads(metadata.read_bytes()).get("parent_id")  # type: ignore[no-any-return]
        return None

    def check(self) -> None:
        left = set[str]()
        for _ in range(ROUNDS):
            left |= self.play_round()[1]
        if late := self.play_round()[0]:
            # A run left an edit alone, as its conversation is private. It wins over a removal that a sync has brought.
            # The removal may need both rounds to arrive there. The edit is sent in the third, after others' syncs.
            # So is the fork of what it has replaced.
            others = {id_ for id_ in late - left if self.parent_of(id_) not in left}
            assert not others, f"{others}: two quiet rounds were not enough"
            assert self.play_round()[0] <= late, "the others take what was sent, and nothing else happens"
            assert not self.play_round()[0], "a quiet round has nothing to do"
        first = self.machines[0]
        assert all(machine.contents == first.contents for machine in self.machines)
        assert all(machine.private == first.private for machine in self.machines)
        there = set(streams_of(first))
        assert there.intersection(self.private) <= first.private, "only a person publishes what was private"
        if not isinstance(self.host, Host):
            git(self.host.bare if isinstance(self.host, Served) else self.host, "fsck", "--strict")
        streams = streams_of(first)
        # A fork has its time as its id: another machine's may get that of one that was removed a moment ago.
        back = {id_ for id_, lines in self.gone.items() if id_ in streams and lines.issuperset(streams[id_])}
        assert not back, "a removal travels"
        assert self.said - self.removed <= {line for stream in streams_of(first).values() for line in stream}


def streams_in(project: Path) -> list[Path]:
    """Return the events of all conversations of a worktree."""
    return whole((project / ".jp").rglob("events.json"))


def published(machine: Machine, project: Path) -> set[str]:
    """Return the conversations of a worktree."""
    return {machine.id_of(path.parent) for path in streams_in(project)}


def lines_in(machine: Machine, project: Path) -> dict[str, list[str]]:
    """Return the lines of each conversation of a worktree."""
    return {machine.id_of(path.parent): lines_of(path) for path in streams_in(project)}


def unsaved_in(machine: Machine, project: Path) -> set[str]:
    """Return the conversations that a worktree has otherwise than the store, or alone."""
    store = streams_of(machine)
    return {id_ for path in streams_in(project) if lines_of(path) != store.get(id_ := machine.id_of(path.parent))}


def streams_of(machine: Machine) -> dict[str, list[str]]:
    """Return the lines of each conversation, by its id."""
    return {machine.id_of(path.parent): lines_of(path) for path in whole(machine.store.rglob("events.json"))}


def whole(paths: Iterable[Path]) -> list[Path]:
    """Return these paths without those in a directory of steps that a killed process has left."""
    return sorted(path for path in paths if not any(part.startswith(".reconcile-") for part in path.parts))


def lines_of(stream: Path) -> list[str]:
    return [line["content"] for line in json.loads(stream.read_bytes())]


def check_forks(machine: Machine, report: Report) -> None:
    """A fork has something that its source lacks, and is private if its source is."""
    streams, private = streams_of(machine), machine.private
    for fork in report.forked:
        metadata = json.loads((machine.directory_of(fork.id) / "metadata.json").read_bytes())
        source, forked = streams[metadata["parent_id"]], streams[fork.id]
        shorter = min(len(source), len(forked))
        assert forked[:shorter] != source[:shorter], "a needless fork: one is a continuation of the other"
        assert fork.id in private or metadata["parent_id"] not in private


def play(
    path: Path,
    run: Run,
    seed: int,
    make: Maker = make_machine,
    served: Served | None = None,
    kill_host_after: Callable[[float | None], object] | None = None,
) -> int:
    """Play the story of a seed; return how many processes were killed at a step."""
    chance = random.Random(seed)
    machines = [make(path / f"m{at}", run) for at in range(chance.randint(2, 5))]
    clocks = {at: chance.choice((0, 0, DAY, -DAY, chance.randrange(-DAY, DAY))) for at in range(len(machines))}
    host = served or (Host() if seed % ONE_IN else make_bare(path / "remote.git"))
    story = Story(machines, host, chance, clocks=clocks, is_encrypted=chance.random() < 0.3)
    story.kill_host_after = None if isinstance(host, Host) else kill_host_after
    for machine in machines if story.is_encrypted else ():
        machine.take_key()
    for machine in machines if make is make_machine else ():
        if chance.random() < 0.5:
            add_worktree(machine)
    try:
        for number in range(START):
            story.write(machines[0], -number, f"start{number}", LONG_AGO)
        late = machines[-1:] if chance.random() < 0.5 else []  # its first sync comes at some step
        for machine in machines[: len(machines) - len(late)]:
            story.sync(machine)
            for project in machine.worktrees if machine.format == "jp" else ():
                story.work(machine, project, "project", *streams_of(machine))
        for machine in late if make is make_machine else ():
            for _ in range(START):
                story.check_out(machine, machines[0])
        for number in range(STEPS):
            story.step(number)
        story.check()
    except BaseException as error:
        error.add_note(f"seed {seed}: {', '.join(story.log)}")
        raise
    return story.kills


MAKERS = (make_machine, make_plain_machine)


@pytest.mark.long
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("seed", range(4))
def test_a_story_of_machines(tmp_path: Path, run: Run, seed: int, make: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    before = CheckedSync.resumed
    monkeypatch.setenv("RECONCILE_VERIFY", "1")  # each plan of a part is compared with that of everything
    play(tmp_path, run, seed, make)
    assert CheckedSync.resumed > before


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(1, SERVED + 1))
@pytest.mark.parametrize("server", [HttpHost, SshHost])
@pytest.mark.parametrize("make", MAKERS)
def test_a_story_of_machines_with_a_server(
    tmp_path: Path,
    run: Run,
    seed: int,
    server: type[HttpHost | SshHost],
    make: Maker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with server(tmp_path) as host:
        if isinstance(host, SshHost):
            monkeypatch.setenv("GIT_SSH_COMMAND", host.command)
            kill_after, _ = mortal_receiver(tmp_path, host.programs, "$receiver $PPID")
        else:
            kill_after = partial(setattr, host, "patience_s")
        bare = make_bare(tmp_path / "remote.git")
        play(tmp_path, run, seed, make, Served(bare, host.url(bare)), kill_after)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_undos_of_syncs_change_one_machine(laptop: Machine, desktop: Machine, bare: Path, seed: int) -> None:
    """After each undo the remote is the same; once everything is continued, all machines are equal."""
    chance, clock = random.Random(seed), LONG_AGO

    def numbers(machine: Machine) -> list[int]:
        return sorted(int(path.name.partition("-")[0]) for path in machine.store.iterdir() if path.name[0].isdigit())

    for step in range(24):
        machine, clock = chance.choice((laptop, desktop)), clock + 60 * SECOND
        kind = chance.choice(("append", "append", "write", "rm", "sync", "sync", "sync", "undo", "undo", "redo"))
        if kind == "append" and (there := numbers(machine)):
            voice = chr(ord("a" if machine is laptop else "m") + step % 12)
            machine.append(chance.choice(there), 1, voice, clock)
        elif kind == "write":
            machine.write(FIRST + 1000 + step)
        elif kind == "rm" and len(numbers(machine)) > 2:
            machine.run("rm", str(chance.choice(numbers(machine))), "--yes", "--promote")
        elif kind == "sync":
            machine.sync("--allow-bulk-removal")
        elif kind in ("undo", "redo"):
            tip = git(bare, "for-each-ref")
            with machine.at_work():
                assert machine.world.run(*machine.sides, kind, "--yes").exit_code in (0, 2, 4)
            assert git(bare, "for-each-ref") == tip
    laptop.sync("--allow-bulk-removal")
    desktop.sync("--allow-bulk-removal")
    for machine in (laptop, desktop, laptop):
        for number in numbers(machine):
            clock += 60 * SECOND
            machine.append(number, 1, "y", clock)
        machine.sync("--allow-bulk-removal")
    for machine in 3 * (laptop, desktop):
        machine.sync("--allow-bulk-removal")
    assert laptop.contents == desktop.contents


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 300)
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("start", [0, 1_000_000])
def test_many_stories_of_machines(
    tmp_path: Path, run: Run, start: int, make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_EXEC_PATH", str(programs := make_programs(tmp_path / "programs")))
    kill_host_after, killed_hosts = mortal_receiver(tmp_path, programs, "$receiver")
    end, seed, kills = time.monotonic() + SECONDS, start, 0
    while time.monotonic() < end:
        seed += 1
        if seed % 4:
            monkeypatch.delenv("RECONCILE_VERIFY", raising=False)
        else:
            monkeypatch.setenv("RECONCILE_VERIFY", "1")
        kills += play(tmp_path / str(seed), run, seed, make, None, kill_host_after)
        shutil.rmtree(tmp_path / str(seed))
    print(f"{seed - start} stories, {CheckedSync.resumed} syncs that went on from the last one")
    print(f"{kills} processes killed at a step, {killed_hosts()} processes of a host")
