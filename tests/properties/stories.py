"""Random stories: what people, JP, git and a clock do to both sides and to three checkouts, with runs between them.

A machine of Hypothesis, played on trees in memory or, beside them, on a real directory with the real command. Every
law is checked after each run. A story that breaks one is told as a scenario, which can be saved under
fixtures/scenarios/found as it is.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from msgspec.structs import replace

from tests.properties.shortening import breaks, shortened
from tests.properties.telling import Frame, tell
from tests.support.scenarios.listing import read_tree, show_tree
from tests.support.scenarios.notation import BASE, EVENTS, METADATA, written
from tests.support.scenarios.pure_level import PureLevel
from tests.support.scenarios.trees import Blob, Move, Remove, below

if TYPE_CHECKING:
    from tests.support.scenarios.commands import Outcome
    from tests.support.scenarios.pure_level import Level
    from tests.support.scenarios.trees import Tree

IDS = ("1", "2", "3", "4")
WORKSPACES = ("workspace", "workspace2", "workspace3")
STREAMS = ("[1 2 3]", "[1 2]", "[1 2 3 4]", "[1 2 5]", "[1 2 3x]", "[1 2 3] b2", "[1]", "legacy [1 2 3]", "[6 7]")
PARENTS = ("", "parent 1", "parent 2", "parent 3", "parent 4", "parent null", "parent 9")
BROKEN = ('"<<<<<<< HEAD"', '""', '"{"')
MINUTE_NS = 60 * 10**9

PICK = st.integers(0, 11)
"""One of what is there, counted around."""
TIME = st.integers(0, 15).map(lambda quarter: f"{8 + quarter // 4:02}:{quarter % 4 * 15:02}")
SIDE = st.sampled_from(("workspace", "store", "workspace", "store", "workspace2", "workspace3"))
WORKSPACE = st.sampled_from(("workspace", *WORKSPACES))
SUFFIX = st.sampled_from("ab")
MANAGED = st.sampled_from((METADATA, BASE, EVENTS))
STREAM = st.builds("stream {} {}".format, TIME, st.sampled_from(STREAMS))
TITLE = st.sampled_from(("A", "B", "A B"))
LOCAL = st.sampled_from((*[""] * 15, "local"))
EXPIRES = st.sampled_from((*[""] * 15, 'expires_at="2000-01-01 00:00:00.0"'))
EDIT = st.sampled_from(
    (
        *(("title", text) for text in ("A", "B", "A B")),
        *(("colour", text) for text in ("red", "blue", None)),
        *(("labels", value) for value in ({"a": "b"}, {"a": "c"}, None)),
        ("last_activated_at", "2026-02-01 00:00:00.0"),
        ("last_activated_at", "2026-03-01 00:00:00.0"),
    )
)
"""A key of the metadata and its new value; None removes it."""
DESCRIBED = st.builds('metadata {} title "{}" {} {} {}'.format, TIME, TITLE, st.sampled_from(PARENTS), LOCAL, EXPIRES)
TREE = st.sampled_from(
    (
        "local {}",
        "project {}",
        "project {} --with-ancestors",
        "project --all",
        "rm {} --cascade",
        "rm {} --promote",
        "set-parent {} {}",
        "set-parent {} --none",
        "fork {}",
        "fork {} --last 1 --local",
        "gc",
    )
)
"""Commands that change the tree, of one conversation and another."""
OPTIONS = st.sampled_from((*[""] * 5, " --layout flat", " --prefer store", " --allow-bulk-removal"))


class Stories(RuleBasedStateMachine):
    """A story in the making. ``beside`` is the level on a real directory, if there is one."""

    def __init__(self) -> None:
        super().__init__()
        self.world = PureLevel()
        self.beside: Level | None = None
        self.trees: dict[str, Tree | None] = {}
        self.renewed: set[str] = set()
        self.verbs: list[str] = []
        self.branches: list[Tree] = []
        self.backups: list[Tree] = []
        self.frames: list[Frame] = []
        self.halves: set[str] = set()
        self.skipping: set[str] = set()
        """The runs that skipped a step: a redo of one leaves due what that left."""
        self.locked: set[str] = set()
        self.private: dict[str, set[str]] = {}
        """What was made local, with the runs that did."""
        self.broken = False

    @initialize()
    def begin(self) -> None:
        self.trees = {side: {} for side in ("store", *WORKSPACES)}

    def dirs(self, side: str) -> list[str]:
        found = {path.rpartition("/")[0] for path in self.trees[side] or {}}
        return sorted(path for path in found if path.rpartition("/")[2].split("-")[0] in IDS)

    def known(self, workspace: str) -> set[str]:
        """Return what the store or a workspace has."""
        return {path.rpartition("/")[2].split("-")[0] for side in ("store", workspace) for path in self.dirs(side)}

    def picked(self, side: str, pick: int) -> str | None:
        dirs = self.dirs(side)
        return dirs[pick % len(dirs)] if dirs else None

    def changed(self, side: str) -> Tree:
        """Return the side's tree, to be changed; one that was gone is another one now."""
        tree = self.trees[side]
        if tree is None:
            self.renewed.add(side)
            tree = self.trees[side] = {}
        return tree

    # What people, agents and editors do.

    @rule(side=SIDE, number=st.sampled_from(IDS), above=PICK, suffix=SUFFIX, metadata=DESCRIBED, stream=STREAM)
    def put(self, side: str, number: str, above: int, suffix: str, metadata: str, stream: str) -> None:
        """A directory, at the top or below another."""
        outer = self.picked(side, above) if above % 3 == 2 and side != "store" else None
        path = f"{outer}/conversations/{number}-{suffix}" if outer else f"{number}-{suffix}"
        self.changed(side).update(read_tree([f"{path} {metadata} {stream}"]))

    @rule(side=SIDE, pick=PICK, unit=st.one_of(DESCRIBED, STREAM))
    def rewrite(self, side: str, pick: int, unit: str) -> None:
        if path := self.picked(side, pick):
            if unit.startswith("stream"):
                self.changed(side).pop(f"{path}/{BASE}", None)
            self.changed(side).update(read_tree([f"{path} {unit}"]))

    @rule(side=SIDE, pick=PICK, edit=EDIT, minutes=st.integers(0, 2))
    def edit_key(self, side: str, pick: int, edit: tuple[str, object], minutes: int) -> None:
        """One key of the metadata gets another value, or goes; the others stay as they are."""
        if path := self.picked(side, pick):
            self._edit(side, path, edit, minutes)

    def _edit(self, side: str, path: str, edit: tuple[str, object], minutes: int) -> None:
        key, value = edit
        found = self._metadata(side, f"{path}/{METADATA}")
        if found is not None:
            edited = {name: each for name, each in (found | {key: value}).items() if each is not None}
            self._write_metadata(side, f"{path}/{METADATA}", edited, minutes)

    @rule(checkout=st.sampled_from((1, 1, 2)), one=EDIT, other=EDIT, minutes=st.integers(0, 2))
    def edit_both_sides(self, checkout: int, one: tuple[str, object], other: tuple[str, object], minutes: int) -> None:
        """What both sides had the same after a run is edited on each of them."""
        side, at = WORKSPACES[checkout - 1], f" @{checkout}" if checkout > 1 else ""
        if not any("8-" in path for path in self.changed(side)):
            self.changed(side).update(read_tree(['8-a  metadata 10:00 title "A" colour="red"  stream 10:00 [1 2]']))
        self._run(f"reconcile{at}")
        for name, edit, later in (("store", other, 1), (side, one, minutes)):
            for path in [path for path in self.trees[name] or {} if "8-" in path and path.endswith(f"/{METADATA}")]:
                self._edit(name, path.rpartition("/")[0], edit, later)
        self._run(f"reconcile{at}")

    @rule(
        side=SIDE, pick=PICK, name=st.sampled_from(("NOTE.md", "QUERY_MESSAGE.md", "sub/x.txt")), time=TIME, text=SUFFIX
    )
    def extra(self, side: str, pick: int, name: str, time: str, text: str) -> None:
        """A file of the user's own; it goes where it was the same."""
        if path := self.picked(side, pick):
            note = read_tree([f'{path}/{name} {time} "{text}"'])
            tree = self.changed(side)
            if tree.items() >= note.items():
                del tree[f"{path}/{name}"]
            else:
                tree.update(note)

    @rule(side=SIDE, pick=PICK)
    def remove(self, side: str, pick: int) -> None:
        """``rm -rf``, of a directory with all that is below it."""
        if path := self.picked(side, pick):
            Remove(path).apply(self.changed(side))

    @rule(side=SIDE, pick=PICK, name=st.sampled_from((METADATA, BASE, EVENTS)))
    def remove_file(self, side: str, pick: int, name: str) -> None:
        if path := self.picked(side, pick):
            self.changed(side).pop(f"{path}/{name}", None)

    @rule(side=SIDE, pick=PICK, name=st.sampled_from((METADATA, EVENTS)), time=TIME, text=st.sampled_from(BROKEN))
    def spoil(self, side: str, pick: int, name: str, time: str, text: str) -> None:
        if path := self.picked(side, pick):
            self.changed(side).update(read_tree([f"{path}/{name} {time} {text}"]))

    @rule(side=WORKSPACE, pick=PICK, onto=PICK, suffix=SUFFIX)
    def move(self, side: str, pick: int, onto: int, suffix: str) -> None:
        """A directory gets another name, or another parent's directory."""
        if path := self.picked(side, pick):
            outer = self.picked(side, onto) if onto % 3 else None
            name = path.rpartition("/")[2].split("-")[0] + "-" + suffix
            target = f"{outer}/conversations/{name}" if outer else name
            if not below(self.changed(side), target) and not f"{target}/".startswith(f"{path}/"):
                Move(path, target).apply(self.changed(side))

    @rule(side=SIDE, how=st.sampled_from(("emptied", "replaced", "gone")))
    def wipe(self, side: str, how: str) -> None:
        """All of a side goes: ``rm -rf .jp/conversations``, a new disk."""
        if how == "gone":
            self.trees[side] = None
        else:
            self.trees[side] = {}
            self.renewed |= {side} if how == "replaced" else set()

    @rule()
    def back_up(self) -> None:
        """Somebody copies the store to another disk."""
        self.backups.append(dict(self.trees["store"] or {}))

    @rule(pick=PICK, time=TIME)
    def restore(self, pick: int, time: str) -> None:
        """The store is lost, and another directory with an old copy of it takes its place; the times may be new."""
        if self.backups:
            (stamped,) = read_tree([f'x {time} "x"']).values()
            assert isinstance(stamped, Blob)
            then = self.backups[pick % len(self.backups)]
            touched = {at: replace(each, mtime_ns=stamped.mtime_ns) for at, each in then.items()}
            self.trees["store"] = dict(then) if pick % 2 else touched
            self.renewed.add("store")

    @rule(
        how=st.sampled_from(("emptied", "replaced", "gone")), order=st.permutations((1, 2, 3)), anew=st.integers(0, 3)
    )
    def lose_the_store(self, how: str, order: list[int], anew: int) -> None:
        """Each checkout has saved something of its own; the store is lost, perhaps begun anew, and each has a run."""
        for number, side in enumerate(WORKSPACES, 5):
            tree = read_tree([f'{number}-a  metadata 10:00 title "A"  stream 10:00 [1 2]'])
            if not below(self.changed(side), f"{number}-a"):
                self.changed(side).update(tree)
        runs = [f"reconcile{f' @{checkout}' if checkout > 1 else ''}" for checkout in order]
        for run in runs:
            self._run(run)
        self.wipe("store", how)
        if anew == 3:
            self.changed("store").update(read_tree(['9-a  metadata 10:00 title "A"  stream 10:00 [6 7]']))
        for run in runs:
            self._run(run)

    # What JP does.

    @rule(side=SIDE, pick=PICK, minutes=st.integers(0, 2))
    def jp_writes(self, side: str, pick: int, minutes: int) -> None:
        """JP writes the metadata without the keys that it doesn't know."""
        path = f"{self.picked(side, pick)}/{METADATA}"
        found = self._metadata(side, path)
        if found is not None:
            kept = {key: value for key, value in found.items() if key not in ("parent_id", "local", "colour")}
            self._write_metadata(side, path, kept, minutes)

    def _metadata(self, side: str, path: str) -> dict[str, object] | None:
        blob = (self.trees[side] or {}).get(path)
        try:
            found = json.loads(blob.content) if isinstance(blob, Blob) else None
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

    def _write_metadata(self, side: str, path: str, value: dict[str, object], minutes: int) -> None:
        tree = self.changed(side)
        before = tree[path]
        assert isinstance(before, Blob)
        tree[path] = Blob(written(value), before.mtime_ns + minutes * MINUTE_NS)

    @rule(side=SIDE, pick=PICK)
    def jp_removes(self, side: str, pick: int) -> None:
        """JP renames a directory into the trash beside it."""
        if path := self.picked(side, pick):
            self._carry(side, path, ".trash")

    @rule(pick=PICK)
    def archive(self, pick: int) -> None:
        """JP moves a directory of the store into the archive, or out of it."""
        if path := self.picked("store", pick):
            self._carry("store", path, ".archive")

    def _carry(self, side: str, path: str, partition: str) -> None:
        above, _, name = path.rpartition("/")
        if above.rpartition("/")[2] == partition:
            target = f"{above.rpartition('/')[0]}/{name}".lstrip("/")
        else:
            target = f"{above}/{partition}/{name}".lstrip("/")
        if not below(self.changed(side), target):
            Move(path, target).apply(self.changed(side))

    # What git does: old content, new times.

    @rule(side=WORKSPACE)
    def commit(self, side: str) -> None:
        self.branches.append(dict(self.trees[side] or {}))

    @rule(side=WORKSPACE, pick=PICK, time=TIME)
    def check_out(self, side: str, pick: int, time: str) -> None:
        """A whole workspace as it was; the files that differ get the time of the checkout."""
        if self.branches:
            self._put_back(side, self.branches[pick % len(self.branches)], "", time)

    @rule(side=WORKSPACE, pick=PICK, branch=PICK, time=TIME)
    def step_back(self, side: str, pick: int, branch: int, time: str) -> None:
        """One directory as it was, or gone again."""
        path = self.picked(side, pick)
        if self.branches and path:
            self._put_back(side, self.branches[branch % len(self.branches)], path, time)

    # What comes back in part: git's pathspecs, an editor that still has a file open.

    @rule(side=WORKSPACE, pick=PICK, branch=PICK, name=MANAGED, removed=st.booleans())
    def part_returns(self, side: str, pick: int, branch: int, name: str, *, removed: bool) -> None:
        """One file of a directory that the store has, as it is there or as it was in a commit; ``removed``: of one that
        a run has seen go.
        """
        here = [path for path in self.dirs(side) if path in self.dirs("store")]
        if removed and here:
            Remove(here[pick % len(here)]).apply(self.changed(side))
            self._run(f"reconcile{'' if side == 'workspace' else f' @{side[-1]}'}")
        absent = [path for path in self.dirs("store") if path not in self.dirs(side)]
        if absent:
            path = f"{absent[pick % len(absent)]}/{name}"
            then = self.branches[branch % len(self.branches)] if self.branches and branch % 2 else {}
            blob = then.get(path) or (self.trees["store"] or {}).get(path)
            if blob is not None:
                self.changed(side)[path] = blob

    def _put_back(self, side: str, then: Tree, path: str, time: str) -> None:
        now = self.changed(side)
        (stamped,) = read_tree([f'x {time} "x"']).values()
        assert isinstance(stamped, Blob)
        kept = {at: entry for at, entry in now.items() if path and not at.startswith(f"{path}/")}
        for at, entry in then.items():
            if not path or at.startswith(f"{path}/"):
                there = now.get(at)
                same = isinstance(there, Blob) and isinstance(entry, Blob) and there.content == entry.content
                kept[at] = there if same and there else replace(entry, mtime_ns=stamped.mtime_ns)
        self.trees[side] = kept

    # What happens to a machine.

    @rule(hours=st.sampled_from((-48, -1, 1, 48)))
    def clock_jumps(self, hours: int) -> None:
        self.verbs.append(f"clock {hours}")

    @rule(
        setting=st.sampled_from(
            ("conflict hold", "conflict newest", "diverged hold", "diverged newest", "diverged fork")
        )
    )
    def configure(self, setting: str) -> None:
        self.verbs.append(f"config {setting}")

    @rule(really=st.integers(0, 3))
    def forget(self, really: int) -> None:
        if really == 3:
            self.verbs.append("forget state")
            self.private.clear()

    # What else is at work: git in the middle of something, JP with a conversation's lock.

    @rule(what=st.sampled_from(("merge", "rebase", "clean", "clean")))
    def git(self, what: str) -> None:
        self.verbs.append(f"git {what}")

    @rule(number=st.sampled_from(IDS), held=st.booleans())
    def lock(self, number: str, *, held: bool) -> None:
        """JP takes the lock of a conversation, or gives it back."""
        if (number in self.locked) != held:
            self.locked ^= {number}
            self.verbs.append(f"{'lock' if held else 'unlock'} {number}")

    # Reconcile.

    @rule(checkout=st.sampled_from((1, 1, 2, 3)), options=OPTIONS, killed=st.integers(0, 120))
    def reconcile(self, checkout: int, options: str, killed: int) -> None:
        if 0 < killed <= 60:
            self.verbs.append(f"killed at step {killed}")
        self._run(f"reconcile{options}{f' @{checkout}' if checkout > 1 else ''}")

    @rule(number=st.sampled_from(IDS), take=st.sampled_from(("--take store", "--take workspace", "--keep")))
    def resolve(self, number: str, take: str) -> None:
        if number in self.known("workspace"):
            self._run(f"reconcile resolve {number} {take}")

    @rule(checkout=st.sampled_from((1, 1, 2)), command=TREE, pick=PICK, other=st.sampled_from(IDS))
    def tree_command(self, checkout: int, command: str, pick: int, other: str) -> None:
        """What can't be so changed is refused. Of what isn't there, the id might be the beginning of a fork's."""
        path = self.picked("store", pick)
        if path and (other in self.known(WORKSPACES[checkout - 1]) or "{} {}" not in command):
            number = path.rpartition("/")[2].split("-")[0]
            self._run_at_rest(command.format(number, other), checkout)

    @rule(checkout=st.sampled_from((1, 1, 2)), pick=PICK)
    def undo(self, checkout: int, pick: int) -> None:
        """The last run of a checkout, or an earlier one; on disk, a killed one is two."""
        known = self.world.past.of(WORKSPACES[checkout - 1])
        run = known[pick % len(known) if pick % 3 == 2 else -1] if known else ""
        if run and run not in self.halves and "forget state" not in self.verbs:
            self._run_at_rest(f"undo {run}", checkout)

    @rule(checkout=st.sampled_from((1, 1, 2)))
    def redo(self, checkout: int) -> None:
        """The run that was undone last, whatever came after it: then its name is needed."""
        undone = self.world.past.undone(WORKSPACES[checkout - 1])
        if undone and undone[0] not in self.halves | self.skipping and "forget state" not in self.verbs:
            self._run_at_rest(f"redo {undone[0]}", checkout)

    @rule(checkout=st.sampled_from((1, 1, 2)))
    def undo_and_redo(self, checkout: int) -> None:
        """Both sides are then what they were before the undo, unless something was refused."""
        known = self.world.past.of(WORKSPACES[checkout - 1])
        if not known or known[-1] in self.halves or "forget state" in self.verbs:
            return
        at = f" @{checkout}" if checkout > 1 else ""
        self._run(f"reconcile{at}")
        run = self.world.past.of(WORKSPACES[checkout - 1])[-1]
        before = {side: show_tree(tree or {}) for side, tree in self.trees.items()}
        undo = self._run(f"reconcile undo {run}{at}")
        if run not in self.world.past.undone(WORKSPACES[checkout - 1]):
            return  # all of it was refused
        if run in self.skipping:
            return
        redo = self._run(f"reconcile redo {run}{at}")
        if not undo.held and not redo.held:
            after = {side: show_tree(tree or {}) for side, tree in self.trees.items()}
            assert after == before, "\n".join(["a redo gives another state:", *tell(self.frames)])

    @rule(checkout=st.sampled_from((1, 1, 2)), wiped=st.booleans(), everything=st.integers(0, 3))
    def recover(self, checkout: int, *, wiped: bool, everything: int) -> None:
        """After ``rm -rf .jp``, or what runs found removed."""
        side, at = WORKSPACES[checkout - 1], f" @{checkout}" if checkout > 1 else ""
        self._run(f"reconcile{at}")
        if wiped:
            self.verbs.append(f"wipe {side}")
            self.trees[side] = None
        self._run(f"reconcile recover{'' if everything else ' --all'}{at}")

    def _run_at_rest(self, command: str, checkout: int) -> None:
        """What is limited to a part leaves the rest as it is: so that nothing is due after it, all is done before."""
        at = f" @{checkout}" if checkout > 1 else ""
        self._run(f"reconcile{at}")
        self._run(f"reconcile {command}{at}")

    def _run(self, command: str) -> Outcome:
        trees = {side: None if tree is None else dict(tree) for side, tree in self.trees.items()}
        frame = Frame(trees, command, tuple(self.verbs), frozenset(self.renewed))
        self.frames.append(frame)
        if any(verb.startswith("killed") for verb in self.verbs):
            self.halves.add(f"run{len(self.frames)}")
        self.verbs, self.renewed = [], set()
        try:
            outcome = self._play(frame)
        except Exception as error:
            self.broken = True
            message = f"{type(error).__name__}: {error}\n\n{self.telling()}"
            raise AssertionError(message) from error
        if any(item.startswith("skipped ") for item in outcome.items):
            self.skipping.add(f"run{len(self.frames)}")
        return outcome

    def telling(self) -> str:
        """Return the story as a scenario, as short as it can be where it goes wrong in memory too."""
        frames = shortened(self.frames)
        return "\n".join(tell(frames if breaks(frames) else self.frames))

    def _play(self, frame: Frame) -> Outcome:
        outcome = frame.play(self.world)
        if self.beside is not None:
            on_disk = frame.play(self.beside)
            for side in frame.trees:
                meant, found = (show_tree(level.tree(side) or {}) for level in (self.world, self.beside))
                done = on_disk.lines(())
                assert found == meant, f"the {side} is another than simulated: {found} for {meant}, after {done}"
        self.trees = {side: self.world.tree(side) for side in frame.trees}
        self._keep_private(frame.command.split(), outcome)
        return outcome

    def _keep_private(self, command: list[str], outcome: Outcome) -> None:
        """What was made local stays so, whatever was in its way, until `project`, or the undo of that very run."""
        local, verb = self.world.memories.local.keys(), command[1] if len(command) > 1 else ""
        if verb == "local" and not outcome.refused:
            self.private.setdefault(f"jp-c{command[2]}", set()).add(f"run{self.world.past.count}")
        ended = {each for each in self.private if verb == "project" and each not in local}
        ended |= {each for each, runs in self.private.items() if verb == "undo" and command[2] in runs}
        for each in ended - local:
            del self.private[each]
        lost = self.private.keys() - local
        assert not lost, f"{sorted(lost)} isn't local any more"
        for each in self.private:
            written = [line for line in outcome.actions if f" project {each.removeprefix('jp-c')} " in line]
            assert not written, f"{each} is local, and written to a workspace: {written}"

    def teardown(self) -> None:
        """All checkouts come to rest, unless a decision is needed: after a run in each, and another in each."""
        if self.broken:
            return
        self.verbs += ["git clean", *(f"unlock {number}" for number in sorted(self.locked))]
        checkouts = (
            "reconcile --allow-bulk-removal",
            "reconcile --allow-bulk-removal @2",
            "reconcile --allow-bulk-removal @3",
        )
        outcomes = [self._run(command) for command in checkouts * 3]  # the third must find nothing to do
        if not any(outcome.held for outcome in outcomes):
            busy = [line for outcome in outcomes[-len(checkouts) :] for line in outcome.actions]
            assert not busy, "\n".join(["not at rest:", *tell(self.frames)])
