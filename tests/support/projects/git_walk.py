"""A walk through the history of a repository, over several worktrees, with reconcile after each step and JP between.

The walk has an order of versions of its own: by the commits, worked out from every pair of them, and by what JP made of
what. After each step that order must hold (`Walk.check`), whatever reconcile has used to tell it.
"""

from __future__ import annotations

import hashlib
import json
import random
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from tests.support.projects.git_world import git
from tests.support.projects.world import files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.projects.world import World

PATH = ".jp/conversations"
FILES = ("base_config.json", "events.json")
MOST_TREES = 3
REFUSED = "would be overwritten by"

Version = tuple[str | None, ...]
"""The names that git has for the files of a stream."""


class Commits(Struct):
    """Every version of every conversation that was ever committed, and which commits lie behind which."""

    top: Path
    bits: dict[str, int] = field(default_factory=dict)
    behind: dict[str, int] = field(default_factory=dict)
    having: dict[tuple[str, Version], int] = field(default_factory=dict)
    touching: list[str] = field(default_factory=list)

    def learn(self) -> None:
        """Take in what has been committed since the last time."""
        everything = ("rev-list", "--all", "--reflog", "--topo-order", "--reverse", "--parents")
        for line in git(self.top, *everything).splitlines():
            commit, *parents = line.split()
            if commit in self.bits:
                continue
            self.bits[commit] = 1 << len(self.bits)
            self.behind[commit] = 0
            for parent in parents:
                self.behind[commit] |= self.behind[parent] | self.bits[parent]
        changed = ("rev-list", "--all", "--reflog", "--full-history", "--", PATH)
        for commit in git(self.top, *changed).splitlines():
            if commit not in self.touching:
                self.touching.append(commit)
                for key in versions_at(self.top, commit):
                    self.having[key] = self.having.get(key, 0) | self.bits[commit]

    def follows(self, number: str, version: Version, commit: str) -> bool:
        """Tell whether a version was committed after a commit."""
        having = self.having.get((number, version), 0)
        return any(bit & having and self.behind[each] & self.bits[commit] for each, bit in self.bits.items())

    def is_older(self, number: str, version: Version, other: Version) -> bool:
        """Tell whether a version lies behind another one, and never the other way round."""
        ours, theirs = self.having.get((number, version), 0), self.having.get((number, other), 0)
        return self._lie_behind(ours, theirs) and not self._lie_behind(theirs, ours)

    def _lie_behind(self, earlier: int, later: int) -> bool:
        return any(bit & later and self.behind[commit] & earlier for commit, bit in self.bits.items())


def versions_at(top: Path, commit: str) -> list[tuple[str, Version]]:
    """Return the version that each conversation has in a commit."""
    found: dict[str, dict[str, str]] = {}
    for line in git(top, "ls-tree", "-r", commit, "--", PATH).splitlines():
        described, _, path = line.partition("\t")
        directory, _, name = path.rpartition("/")
        if name in FILES:
            found.setdefault(directory, {})[name] = described.split()[2]
    # A directory without events is what a rename has left behind.
    streams = {number_of(path.rpartition("/")[2]): names for path, names in found.items() if "events.json" in names}
    return [(number, tuple(names.get(name) for name in FILES)) for number, names in streams.items()]


def number_of(directory: str) -> str:
    return directory.partition("-")[0]


class Walk:
    """The worktrees of a repository with one store; ``world`` is the first of them, at the newest commit."""

    def __init__(self, world: World, seed: int) -> None:
        self.random = random.Random(seed)
        self.first = world
        self.trees = [world]
        self.ran: set[Path] = set()
        self.commits = Commits(world.project)
        self.commits.learn()
        self.made: dict[tuple[str, Version], Version] = {}
        """What JP has made, from what."""
        self.written: set[str] = set()
        """Digests of the files that JP has written, or git by taking a stash out."""
        self.had: dict[str, list[Version]] = {}
        self.log: list[str] = []
        self.counts: dict[str, int] = {}
        self.begun = int(git(world.project, "log", "-1", "--all", "--format=%ct")) + 1
        self.pool = [commit for commit in self.commits.touching if self._has_id(commit)]

    def _has_id(self, commit: str) -> bool:
        """Tell whether a commit has the workspace's id, without which there is no workspace."""
        return ".jp/.id" in self._git(self.first, "ls-tree", "-r", "--name-only", commit, "--", ".jp/.id")

    def _git(self, tree: World, *args: str, check: bool = True, errors: bool = False) -> str:
        """Run git, at a time of the walk's own: so that the same seed makes the same commits."""
        at = self.begun + len(self.log)
        return git(tree.project, *args, check=check, errors=errors, at=at)

    # What happens

    def step(self) -> None:
        """Let something happen in one of the worktrees, run reconcile, and check."""
        tree = self.random.choice(self.trees)
        what = self.random.choices(*zip(*STEPS.items(), strict=True))[0]
        self.log.append(f"{len(self.log)}: {tree.project.name} {what.__name__}")
        self.counts[what.__name__] = self.counts.get(what.__name__, 0) + 1
        what(self, tree)
        if tree not in self.trees or self.random.random() < 0.1:
            tree = self.random.choice(self.trees)
        self.reconcile(tree)

    def jump(self, tree: World) -> None:
        self._check_out(tree, self.random.choice(self.pool))

    def back(self, tree: World) -> None:
        """One commit back that changed something, or one at all."""
        limit = () if self.random.random() < 0.3 else ("--", PATH)
        found = self._git(tree, "rev-list", "-2", "HEAD", *limit).split()
        if len(found) > 1 and self._has_id(found[1]):
            self._check_out(tree, found[1])

    def newest(self, tree: World) -> None:
        self._check_out(tree, self.pool[0])

    def _check_out(self, tree: World, commit: str) -> None:
        if self._is_dirty(tree):
            self.random.choice((Walk.commit, Walk.stash, Walk.discard, Walk.nothing))(self, tree)
        self._try(tree, "checkout", "-q", "--detach", commit)

    def _try(self, tree: World, *args: str) -> bool:
        """Run git, which may refuse because of what JP has written, and of nothing else."""
        told = self._git(tree, *args, check=False, errors=True)
        if REFUSED in told:
            for line in told.splitlines():
                path = tree.project / line.strip()
                if line.startswith("\t") and PATH in line and path.is_file():
                    assert blob(path) in self.written, f"git refuses because of {line.strip()}:\n{told}\n{self.story()}"
            self.discard(tree)
            return False
        return True

    def nothing(self, _tree: World) -> None:
        """Carry along what isn't committed."""

    def commit(self, tree: World) -> None:
        if self._is_dirty(tree):
            self._git(tree, "add", "-A", "--sparse", PATH)
            self._git(tree, "commit", "-q", "--allow-empty", "-m", f"step {len(self.log)}", check=False)
            self._keep(tree)

    def _keep(self, tree: World) -> None:
        """Have a branch for what HEAD is, and know it."""
        head = self._git(tree, "rev-parse", "HEAD").strip()
        self._git(tree, "branch", f"walk-{len(self.log)}-{len(self.pool)}", head)
        self.commits.learn()
        self.pool.append(head)

    def stash(self, tree: World) -> None:
        """Put away what isn't committed, with or without the files that git doesn't know."""
        options = ("-u",) if self.random.random() < 0.5 else ()
        self._git(tree, "stash", "-q", *options, check=False)
        self.commits.learn()

    def pop(self, tree: World) -> None:
        if self._git(tree, "stash", "list") and not self._is_dirty(tree) and self._try(tree, "stash", "pop", "-q"):
            self._settle(tree)
            # git has merged the stash into what was there: a content that neither JP nor a run has written.
            found = self._git(tree, "diff", "--name-only", "-z", "HEAD", "--", PATH).split("\0")
            self.written |= {blob(tree.project / path) for path in found if path and (tree.project / path).is_file()}

    def discard(self, tree: World) -> None:
        self._git(tree, "reset", "-q", "--hard")
        self._git(tree, "clean", "-qfd", PATH)

    def clean(self, tree: World) -> None:
        self._git(tree, "clean", "-qfd", PATH)

    def merge(self, tree: World) -> None:
        self.discard(tree)
        how = self.random.choice(((), ("-X", "ours"), ("-X", "theirs"), ("-s", "ours")))
        self._git(tree, "merge", "-q", "--no-edit", *how, self.random.choice(self.pool), check=False)
        self._settle(tree)
        self._keep(tree)

    def revert(self, tree: World) -> None:
        self.discard(tree)
        found = self._git(tree, "rev-list", "-6", "--no-merges", "--min-parents=1", "HEAD", "--", PATH).split()
        if found:
            self._git(tree, "revert", "--no-edit", self.random.choice(found), check=False)
            self._settle(tree)
            self._keep(tree)

    def pick(self, tree: World) -> None:
        """Take one commit of another branch, as a rebase does for each."""
        self.discard(tree)
        found = self._git(tree, "rev-list", "-40", "--no-merges", "--all", "^HEAD", "--", PATH).split()
        if found:
            self._git(tree, "cherry-pick", "--allow-empty", self.random.choice(found), check=False)
            self._settle(tree)
            self._keep(tree)

    def rebase(self, tree: World) -> None:
        """Put the last commits onto another one; what they were is in the reflogs alone."""
        self.discard(tree)
        depth = self.random.randint(1, 3)
        if len(self._git(tree, "rev-list", "--first-parent", f"-{depth + 1}", "HEAD").split()) <= depth:
            return
        how = self.random.choice(((), ("-X", "ours"), ("-X", "theirs")))
        self._git(tree, "rebase", "-q", *how, "--onto", self.random.choice(self.pool), f"HEAD~{depth}", check=False)
        if self.random.random() < 0.3:
            self.reconcile(tree)
        self._git(tree, "rebase", "--abort", check=False)
        self._keep(tree)

    def amend(self, tree: World) -> None:
        self._git(tree, "add", "-A", "--sparse", PATH)
        self._git(tree, "commit", "-q", "--amend", "--allow-empty", "-m", f"amended {len(self.log)}", check=False)
        self._keep(tree)

    def _settle(self, tree: World) -> None:
        """Settle what git has stopped at, now and then with a run in the middle of it; or give up."""
        if not self._git(tree, "ls-files", "--unmerged"):
            for operation in ("cherry-pick", "revert"):
                self._git(tree, operation, "--abort", check=False)
            return
        if self.random.random() < 0.3:
            self.reconcile(tree)
        if self.random.random() < 0.5:
            self.discard(tree)
            return
        side = self.random.choice(("--ours", "--theirs"))
        for path in sorted(set(self._git(tree, "diff", "--name-only", "--diff-filter=U", "-z").split("\0")) - {""}):
            self._git(tree, "checkout", "-q", side, "--", path, check=False)
            self._git(tree, "add", "-A", "--sparse", "--", path, check=False)
        self._git(tree, "commit", "-q", "--allow-empty", "-m", f"settled {len(self.log)}", check=False)

    def add(self, _tree: World) -> None:
        if len(self.trees) < MOST_TREES:
            path = self.first.project.parent / f"tree-{len(self.log)}"
            self._git(self.first, "worktree", "add", "-q", "--detach", str(path), self.random.choice(self.pool))
            self.trees.append(replace(self.first, project=path))

    def remove(self, tree: World) -> None:
        if tree is not self.first:
            self._git(self.first, "worktree", "remove", "--force", str(tree.project))
            self.trees.remove(tree)

    def go_on(self, tree: World) -> None:
        """JP appends a turn to what it takes for the newest version, and writes it to both sides."""
        self._write(tree, appended)

    def split(self, tree: World) -> None:
        """JP writes a stream of an earlier release again, in two files."""
        self._write(tree, in_two_files)

    def _write(self, tree: World, change: Callable[[dict[str, Any], str], dict[str, Any] | None]) -> None:
        """Before a run JP takes what git has put there, by its time, for the newest: that is JP's affair."""
        if tree.project not in self.ran:
            return
        here, there = streams(tree.workspace), streams(tree.store)
        shared = sorted(here.keys() & there.keys())
        if not shared:
            return
        number = self.random.choice(shared)
        source = max((there[number], here[number]), key=lambda each: max(p.stat().st_mtime_ns for p in each.values()))
        before = {name: json.loads(path.read_bytes()) for name, path in source.items()}
        after = change(before, f"turn {len(self.log)}")
        if after is None:
            return
        known = version_of(source)
        kept = {name: path.read_bytes() for name, path in source.items()}
        made = {name: json.dumps(value, indent=2, ensure_ascii=False).encode() for name, value in after.items()}
        for target in (here[number], there[number]):
            directory = next(iter(target.values())).parent
            for name, content in (kept | made).items():
                path = directory / name
                path.write_bytes(content)
                self.written.add(blob(path))
        self.made[number, version_of(streams(tree.store)[number])] = known

    @staticmethod
    def _is_dirty(tree: World) -> bool:
        return bool(git(tree.project, "status", "--porcelain", "--", PATH))

    # What must hold

    def reconcile(self, tree: World) -> None:
        """Run the command in a worktree, and check what must hold after that."""
        before = {path: hashlib.blake2b(path.read_bytes(), digest_size=32).hexdigest() for path in self._files(tree)}
        known = set(streams(tree.store))
        ours, theirs = self._versions(tree.store), self._versions(tree.workspace)
        result = tree.run("--workspace", tree.project, "--json", "--allow-bulk-removal")
        assert result.exit_code in (0, 4), f"{result.output}\n{self.story()}"
        self.ran.add(tree.project)
        self.log.append(f"   ran in {tree.project.name}: {_said(result.stdout)}")
        after = {hashlib.blake2b(path.read_bytes(), digest_size=32).hexdigest() for path in self._files(tree)}
        lost = [path for path, name in before.items() if name not in after and not self._is_kept(tree, name)]
        assert not lost, f"lost: {lost}\n{self.story()}"
        for number in streams(tree.store).keys() - known:
            self._check_fork(tree, number, ours, theirs)
        self.check(tree)

    @staticmethod
    def _files(tree: World) -> list[Path]:
        return [*files(tree.store), *files(tree.workspace)]

    @staticmethod
    def _is_kept(tree: World, name: str) -> bool:
        return (tree.vault / name[:2] / name).exists()

    def _check_fork(self, tree: World, number: str, ours: dict[str, Version], theirs: dict[str, Version]) -> None:
        described = json.loads((next(iter(streams(tree.store)[number].values())).parent / "metadata.json").read_bytes())
        if "[diverged]" not in described.get("title", ""):
            return
        source = described["parent_id"].removeprefix("jp-c")
        store, workspace = ours[source], theirs[source]
        # What a commit has brought back is older than what followed that, not than what it has undone.
        since = self._since(tree, source, workspace)
        behind = since is None or self.commits.follows(source, store, since)
        older = self.is_older(source, store, workspace) or (behind and self.is_older(source, workspace, store))
        assert not older, f"{source} was forked, though one side is older than the other\n{self.story()}"

    def check(self, tree: World) -> None:
        """No stream of the store is older than one that it had, but for what a commit has brought back since."""
        for number, version in self._versions(self.first.store).items():
            had = self.had.setdefault(number, [])
            if had[-1:] == [version]:
                continue
            older = [each for each in had if self.is_older(number, version, each)]
            if older and (since := self._since(tree, number, version)) is not None:
                older = [each for each in older if self.commits.follows(number, each, since)]
            assert not older, f"{number} in the store has gone back to {version}, had {older}\n{self.story()}"
            had.append(version)

    @staticmethod
    def _since(tree: World, number: str, version: Version) -> str | None:
        """Return the commit that brought a version to where HEAD is, also against one that it merged; None where HEAD
        has another one.
        """
        since = None
        for line in git(tree.project, "rev-list", "--first-parent", "--parents", "-200", "HEAD").splitlines():
            commit, *parents = line.split()
            if (number, version) not in versions_at(tree.project, commit):
                break
            since = commit
            if any((number, version) not in versions_at(tree.project, parent) for parent in parents):
                break
        return since

    def is_older(self, number: str, version: Version, other: Version) -> bool:
        """Tell whether a version was replaced by another one, on the way by commits or by JP."""
        later: Version | None = other
        while later is not None:
            if self.commits.is_older(number, version, later) or (later == version and later != other):
                return True
            later = self.made.get((number, later))
        return False

    @staticmethod
    def _versions(side: Path) -> dict[str, Version]:
        return {number: version_of(found) for number, found in streams(side).items()}

    def story(self) -> str:
        """Return what has happened, for a person who looks for the reason."""
        return "\n".join(self.log[-60:])


STEPS: dict[Callable[[Walk, World], None], int] = {
    Walk.jump: 35,
    Walk.back: 15,
    Walk.newest: 12,
    Walk.go_on: 15,
    Walk.split: 3,
    Walk.commit: 7,
    Walk.merge: 3,
    Walk.revert: 2,
    Walk.pick: 2,
    Walk.rebase: 2,
    Walk.amend: 2,
    Walk.stash: 3,
    Walk.pop: 3,
    Walk.clean: 2,
    Walk.discard: 3,
    Walk.add: 5,
    Walk.remove: 2,
}


def streams(side: Path) -> dict[str, dict[str, Path]]:
    """Return the files of each conversation's stream, by the number; of those outside the trash."""
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(side.rglob("events.json")):
        if ".trash" not in path.parts:
            there = {name: path.with_name(name) for name in FILES if path.with_name(name).is_file()}
            found[number_of(path.parent.name)] = there
    return found


def version_of(found: dict[str, Path]) -> Version:
    return tuple(blob(found[name]) if name in found else None for name in FILES)


def blob(path: Path) -> str:
    """Return the name that git has for a file's content."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def appended(contents: dict[str, Any], text: str) -> dict[str, Any] | None:
    """Return a stream with one more turn."""
    turn = {"timestamp": "2026-11-23 20:00:00.0", "type": "chat_request", "content": text}
    return {"events.json": [*contents["events.json"], turn]}


def in_two_files(contents: dict[str, Any], _text: str) -> dict[str, Any] | None:
    """Return a stream with its configuration in a file of its own; None where it is so already."""
    events = contents["events.json"]
    if "base_config.json" in contents or not events or events[0].get("type") != "config_delta":
        return None
    return {"base_config.json": events[0].get("delta", {}), "events.json": events[1:]}


def _said(text: str) -> str:
    found = json.loads(text)
    acts = [f"{a['kind']} {a['conversation'][-11:]} {a['unit']} {a['reason']}" for a in found["actions"]]
    aside = [f"{str(a['conversation'])[-11:]} {a['unit']} {a['reason']}" for a in (*found["aside"], *found["held"])]
    return "; ".join(acts) + " | " + "; ".join(aside)
