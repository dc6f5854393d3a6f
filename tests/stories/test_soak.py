"""All at once, for as long as one likes: an editor, JP, git, and two watchers over two worktrees of one store.

`make soak` takes ten minutes, ``SOAK_FOR=60`` another number of seconds.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from contextlib import ExitStack, suppress
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.git_world import commit, git
from tests.support.projects.jp_process import JpProcess
from tests.support.projects.watcher import Watching
from tests.support.projects.world import assert_sound, event, events, files, make_project, write_conversation

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.conftest import Run
    from tests.support.projects.world import World

SECONDS = float(os.environ.get("SOAK_FOR", "600"))
SAMPLES = 10
"""How often memory and descriptors are looked at."""
REST = 300
"""Seconds that both watchers may take to come to rest, on a loaded machine."""
KB_EACH = 12
"""Memory that another conversation may take: a continuation on both sides at once makes one. A fresh start takes 9."""
NUMBERS = [17500000000 + number for number in range(60)]


class Writer:
    """Appends events of its own, each with a mark that is nowhere else."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.chance = random.Random(seed)
        self.marks: dict[str, str] = {}
        """Each with how it was written."""
        self.wrote: list[tuple[int, str]] = []
        """When something of which conversation was written."""

    def notes(self, *conversations: str, since: int | None = None) -> None:
        for at in (time.time_ns(), since):
            self.wrote += [(at, each) for each in conversations if at is not None]

    def append(self, path: Path, *, in_place: bool) -> None:
        mark = f"{self.name}-{len(self.marks)}-"
        found = [*json.loads(path.read_bytes()), event(len(self.marks) + 5000, mark)]
        content = json.dumps(found, indent=2).encode()
        if in_place:
            path.write_bytes(content)
        else:
            other = path.with_name(f".{self.name}.tmp")
            other.write_bytes(content)
            other.replace(path)
        self.marks[mark] = f"{time.time():.3f} {'in place' if in_place else 'renamed'} {path}"
        self.notes(f"jp-c{path.parent.name.partition('-')[0]}")


def pick(side: Path, chance: random.Random) -> Path | None:
    found = sorted(side.glob(f"{chance.choice(NUMBERS)}-*/events.json"))
    return found[0] if found else None


def edits(world: World, writer: Writer) -> None:
    """An editor: in place or by rename, an event or a title."""
    path = pick(world.workspace, writer.chance)
    if path is None:
        return
    if writer.chance.random() < 0.2:
        metadata = path.with_name("metadata.json")
        described = json.loads(metadata.read_bytes())
        described["title"] = writer.chance.choice(("It", "That", "These"))
        metadata.write_text(json.dumps(described))
        writer.notes(f"jp-c{path.parent.name.partition('-')[0]}")
    else:
        writer.append(path, in_place=writer.chance.random() < 0.5)


def jp_writes(world: World, writer: Writer, jp: JpProcess) -> None:
    """JP: under its lock, metadata first, then the events, each by rename (docs/design/formats/jp.md#writes)."""
    number = writer.chance.choice(NUMBERS)
    if not jp.take(number):
        return
    for path in world.store.glob(f"{number}-*/events.json"):
        metadata = path.with_name("metadata.json")
        described = json.loads(metadata.read_bytes())
        described["last_activated_at"] = f"2026-02-01T00:00:{len(writer.marks) % 60:02}.{len(writer.marks):06}Z"
        other = metadata.with_suffix(".tmp")
        other.write_text(json.dumps(described, indent=2))
        other.replace(metadata)
        writer.append(path, in_place=False)
    jp.release(number)


def switches(world: World, writer: Writer) -> None:
    with suppress(AssertionError):  # what is being written meanwhile may be in git's way
        commit(world, "more")
        begun = time.time_ns()
        before = git(world.project, "rev-parse", "HEAD").strip()
        git(world.project, "switch", "-q", writer.chance.choice(("main", "side")))
        changed = git(world.project, "diff", "--name-only", before, "HEAD")
        writer.notes(*{f"jp-c{number}" for number in map(str, NUMBERS) if number in changed}, since=begun)


Size = tuple[int, int, int]


def size_of(process: subprocess.Popen[str], world: World) -> Size:
    """Return the memory of a watcher in kB, how many descriptors it has, and how many conversations it knows."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    (baseline,) = (int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return baseline, len(os.listdir(f"/proc/{process.pid}/fd")), len(os.listdir(world.store))


def keeps_on(stop: threading.Event, pause: float, act: Callable[[], None], failures: list[BaseException]) -> None:
    while not stop.wait(pause):
        try:
            with suppress(FileNotFoundError, json.JSONDecodeError):  # moved, or being written
                act()
        except BaseException as error:  # noqa: BLE001 - told at the end
            failures.append(error)
            return


def _has_actions(world: World) -> bool:
    result = world.run("--workspace", world.project, "--dry-run", "--json")
    assert result.stdout, (result.exit_code, result.stderr, result.exception)
    return bool(json.loads(result.stdout)["actions"])


def until_at_rest(worlds: tuple[World, ...]) -> None:
    """Wait until there is nothing more to do in any of them, for the watchers that go on."""
    end = time.monotonic() + REST
    while any(_has_actions(world) for world in worlds):
        assert time.monotonic() < end, "they don't come to rest"
        time.sleep(1)


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_all_at_once(world: World, tmp_path: Path, run: Run, record_property: Callable[[str, object], None]) -> None:
    for number in NUMBERS:
        write_conversation(world.workspace / f"{number}-it", "It", events(3))
    world.reconcile()
    other = make_project(tmp_path / "other", run)
    git(other.project, "init", "-q")
    for number in NUMBERS:
        write_conversation(other.workspace / f"{number}-it", "It", events(3))
    commit(other, "first")
    git(other.project, "branch", "side")
    other.reconcile()
    editor, second, jp_user, switcher = (
        Writer(name, seed) for seed, name in enumerate(("editor", "second", "jp", "git"), 1)
    )
    stop = threading.Event()
    failures: list[BaseException] = []
    with ExitStack() as stack:
        jp = stack.enter_context(JpProcess(world.silo, world.project / ".jp"))
        # The second one compares every plan of a part with that of everything.
        verifying = Watching(other, environment={"RECONCILE_VERIFY": "1"})
        watchers = [stack.enter_context(each) for each in (Watching(world), verifying)]
        in_other = threading.Lock()

        def alone(act: Callable[[], None]) -> None:
            """What somebody writes while git replaces files of the same worktree is git's affair."""
            with in_other:
                act()

        acts: list[tuple[float, Callable[[], None]]] = [
            (0.4, lambda: edits(world, editor)),
            (0.7, lambda: alone(lambda: edits(other, second))),
            (0.5, lambda: jp_writes(world, jp_user, jp)),
            (5.0, lambda: alone(lambda: switches(other, switcher))),
        ]
        threads = [threading.Thread(target=keeps_on, args=(stop, pause, act, failures)) for pause, act in acts]
        for thread in threads:
            thread.start()
        sizes = [[size_of(watcher.process, world) for watcher in watchers]]
        for _ in range(SAMPLES):
            time.sleep(SECONDS / SAMPLES)
            sizes.append([size_of(watcher.process, world) for watcher in watchers])
        stop.set()
        for thread in threads:
            thread.join()
        assert not failures, failures
        until_at_rest((world, other))
        sizes.append([size_of(watcher.process, world) for watcher in watchers])
        assert [watcher.stop() for watcher in watchers] == [0, 0]
    (tmp_path / "said").write_text("\n".join(json.dumps(each) for watcher in watchers for each in watcher.events))
    for each in (world, other):
        each.check_settled()
        assert_sound(each)
    writers = (editor, second, jp_user)
    print({writer.name: len(writer.marks) for writer in writers}, "events were written")
    check_marks((world, other), writers)
    for number, watcher in enumerate(watchers):
        figures = [each[number] for each in sizes]
        print(f"watcher {number + 1}: {len(watcher.done())} actions; kB, descriptors, conversations {figures}")
        if number == 0:
            check_flat(figures)
    check_repeats(world, (*writers, switcher))


def check_flat(figures: list[Size]) -> None:
    """Neither memory nor descriptors grow from the middle of the time on, but for what there is to know."""
    (baseline, descriptors, known), last = figures[SAMPLES // 2], figures[-1]
    assert last[0] < baseline * 1.05 + KB_EACH * (last[2] - known), f"memory grows: {figures}"
    assert last[1] <= descriptors, f"descriptors grow: {figures}"


def check_marks(worlds: tuple[World, ...], writers: tuple[Writer, ...]) -> None:
    """Whatever anybody wrote is on a side, in the vault or in git."""
    sides = [side for world in worlds for side in (world.workspace, world.store, world.vault)]
    text = b"".join(path.read_bytes() for side in sides for path in files(side))
    for world in worlds:
        if (world.project / ".git").exists():
            text += git(world.project, "log", "-p", "--all", "--reflog").encode()
    for writer in writers:
        assert len(writer.marks) > SECONDS / 10, f"{writer.name} wrote hardly anything"
        lost = {mark: how for mark, how in writer.marks.items() if mark.encode() not in text}
        assert not lost, f"{len(lost)} of {len(writer.marks)} of {writer.name} are lost: {lost}"


def check_repeats(world: World, writers: tuple[Writer, ...]) -> None:
    """No action is carried out twice, unless somebody else has written the conversation meanwhile."""
    theirs: dict[str, list[int]] = {}
    for writer in writers:
        for at, conversation in writer.wrote:
            theirs.setdefault(conversation, []).append(at)
    remembered = world.remembered()
    runs = {row[0]: (row[1], int(str(row[3])), int(str(row[4]))) for row in remembered["run"]}
    last: dict[tuple[object, ...], tuple[list[str], int]] = {}
    for row in sorted(remembered["step"], key=itemgetter(0, 1)):
        number, about, unit, record, state = row[0], row[3], row[4], row[6], row[7]
        action = json.loads(str(record))
        checkout, begun, ended = runs[number]
        key = checkout, about, unit, action["target"].partition(":")[0]
        written = [write["digest"] for write in action["writes"]]
        if state == "done" and written:
            before, since = last.get(key, ([], 0))
            meanwhile = any(since <= at <= ended for at in theirs.get(str(about), ()))
            assert before != written or meanwhile, f"{number}: {action} once more"
            last[key] = written, begun
