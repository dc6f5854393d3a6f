"""An engine that keeps a store in one ref of a git repository, by the program git (docs/design/remotes.md#engine).

No hook runs, and no filter. Exit codes decide; the text of git is only shown, but for that of a host that hung up.
The mirror is a cache: without it, the next fetch gets everything again.
"""

from __future__ import annotations

import os
import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconcile.fs.private_files import make_private_directory
from reconcile.remote.engine import RemoteError, Swap, UnreachableError, UnwritableError
from reconcile.remote.git.address import without_password
from reconcile.remote.git.process import SilentError, ask_host, run_git

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Collection, Iterable, Iterator, Mapping

_SEEN = "refs/reconcile/seen"
"""The ref of the mirror that has the tip of the last fetch."""
_OUT = "refs/reconcile/out"
"""The ref of the mirror that has the last commit of this machine: it keeps that from git's garbage collection."""
_SETTINGS = (
    f"core.hooksPath={os.devnull}",
    "core.fsmonitor=false",
    "fetch.fsckObjects=true",
    "transfer.fsckObjects=true",
    *(f"fetch.fsck.{fault}=ignore" for fault in ("hasDotgit", "gitmodulesName", "gitmodulesPath", "gitmodulesUrl")),
    "push.gpgSign=false",
    "push.followTags=false",
    "push.recurseSubmodules=no",
    "push.pushOption=",
    "i18n.logOutputEncoding=utf-8",
    "gc.auto=0",
)
"""The ignored faults concern checkouts. The mirror has none, and `reconcile.remote.tree` looks at each name."""
_FILE = "100644"
_COMMIT = re.compile(r"[0-9a-f]{4,64}")
_ABSENT = 2
"""The exit code of ``git ls-remote --exit-code`` if no ref matches."""
_CLOSED = "fatal: Could not read from remote repository."
"""The words of git if the connection ended before the host's git spoke."""
_REFUSED = "error: failed to push some refs"
"""The words of git after a push that the host has refused."""
_PROGRESS = re.compile(r"\d+% \(\d+/\d+\)")
_BATCH = 500
LOOSE = 6700
"""Objects in files of their own from which on git packs those of the mirror: its own number."""


class GitEngine:
    """One ref of the repository at an address, and its bare mirror."""

    def __init__(self, url: str, ref: str, mirror: str) -> None:
        """Name the ref; the mirror is made when it is needed first."""
        self.url, self.ref, self.mirror = url, ref, mirror
        self.shown = without_password(url)

    def tip(self) -> str | None:
        """Fetch, and return the newest commit; git checks all objects before."""
        self._make()
        newest = self._newest()
        if newest is None or newest == self.seen():
            return newest
        what = ("fetch", "--no-tags", "--no-write-fetch-head", "--progress", self.url, f"+{self.ref}:{_SEEN}")
        done = self._ask(*what)
        if done.returncode:
            self._refuse_damage(done)
            hint = "run it again; if it fails each time: reconcile help several-machines"
            raise UnreachableError(f"{self.shown}: git can't fetch from it: {_said(done)}", hint)
        self._tidy()
        return self._required("rev-parse", "--verify", f"{_SEEN}^{{commit}}").decode().strip()

    def exists(self) -> bool:
        """Tell whether the remote has the ref now. Raises `UnreachableError`."""
        self._make()
        return self._newest() is not None

    def branches(self) -> list[str]:
        """Return the commits that the branches of the repository and its HEAD name now. Raises `UnreachableError`."""
        self._make()
        return self._listed("HEAD", "refs/heads/*")

    def seen(self) -> str | None:
        """Return the tip of the last fetch, or the last commit that was pushed since."""
        done = self._git("rev-parse", "--verify", "--quiet", f"{_SEEN}^{{commit}}")
        return None if done.returncode else done.stdout.decode().strip()

    def named(self, text: str) -> str | None:
        """Return a commit by the beginning of its name."""
        if _COMMIT.fullmatch(text) is None:
            return None
        done = self._git("rev-parse", "--verify", "--quiet", f"{text}^{{commit}}")
        return None if done.returncode else done.stdout.decode().strip()

    def history(self, commit: str, path: str) -> list[tuple[str, int]]:
        """Return the commits that have changed a path, newest first."""
        printed = self._required("log", "--format=%H %ct", commit, "--", f":(literal){path}").decode()
        lines = (line.split() for line in printed.splitlines())
        return [(name, int(seconds) * 10**9) for name, seconds in lines]

    def contains(self, commit: str, earlier: str) -> bool:
        """Tell whether a commit is in the history of another one; one that the mirror lacks is in none."""
        return self._git("merge-base", "--is-ancestor", earlier, commit).returncode == 0

    def tree(self, commit: str, *paths: str) -> dict[str, str]:
        """Return the object of each file; any entry that is no plain file is refused."""
        files, below = {}, ("--", *paths) if paths else ()
        for line in self._required("ls-tree", "-r", "-z", "--full-tree", commit, *below).split(b"\0")[:-1]:
            words, _, found = line.partition(b"\t")
            mode, _, name = words.decode().split()
            if mode != _FILE:
                problem = f"{os.fsdecode(found)!r} has the mode {mode} (expected {_FILE})"
                raise RemoteError(f"{self.shown}: {problem}", _HOSTILE)
            files[os.fsdecode(found)] = name
        return files

    def changes(self, earlier: str, commit: str) -> set[str]:
        """Return the paths of the files that differ between two commits."""
        printed = self._required("diff-tree", "-r", "-z", "--no-renames", "--name-only", earlier, commit)
        return set(map(os.fsdecode, printed.split(b"\0")[:-1]))

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield objects by their names, some hundred at once."""
        wanted = list(dict.fromkeys(names))
        for start in range(0, len(wanted), _BATCH):
            request = "".join(f"{name}\n" for name in wanted[start : start + _BATCH]).encode()
            printed, at = self._required("cat-file", "--batch", stdin=request), 0
            while at < len(printed):
                end = printed.index(b"\n", at)
                name, kind, *rest = printed[at:end].decode().split()
                if not rest:
                    raise RemoteError(f"the object {name} is {kind} in {self.mirror}", self._remedy)
                (size,) = rest
                if kind != "blob":
                    raise RemoteError(f"{self.shown}: the object {name} is a {kind} (expected a file)", _HOSTILE)
                yield name, printed[end + 1 : end + 1 + int(size)]
                at = end + int(size) + 2

    def write(
        self,
        parent: str | None,
        edits: Mapping[str, bytes],
        removes: Collection[str],
        placed: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        """Return a new commit. git makes no deltas here, so that the push finds better ones."""
        begin = [] if parent is None else [b"from %b\n" % parent.encode()]
        return self._import(begin, edits, removes, placed)

    def without_history(self, commit: str, edits: Mapping[str, bytes]) -> str:
        """Return a new commit with the tree of another one, and no parent."""
        tree = self._required("rev-parse", "--verify", f"{commit}^{{tree}}").strip()
        return self._import([b'M 040000 %b ""\n' % tree], edits, ())

    def _import(
        self,
        begin: list[bytes],
        edits: Mapping[str, bytes],
        removes: Collection[str],
        placed: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        head = b"commit %b\nmark :1\ncommitter reconcile <reconcile@localhost> now\ndata 4\nsync\n" % _OUT.encode()
        stream = [head, *begin]
        stream += [b"D %b\n" % _quoted(path) for path in removes]
        stream += [b"M %b %b %b\n" % (_FILE.encode(), name.encode(), _quoted(path)) for path, name in placed.items()]
        for path, content in edits.items():
            stream += [b"M %b inline %b\ndata %d\n" % (_FILE.encode(), _quoted(path), len(content)), content, b"\n"]
        self._make()
        self._git("update-ref", "-d", _OUT)
        how = ("fast-import", "--quiet", "--depth=0", "--date-format=now", "--force", "--done")
        # Not by the ref: another process may have written to it meanwhile.
        return self._required(*how, stdin=b"".join((*stream, b"get-mark :1\ndone\n"))).decode().strip()

    def swap(self, expected: str | None, commit: str) -> Swap:
        """Push the commit, if the ref still has the expected one. A push that failed is judged by what is there."""
        try:
            done = self._push(expected or "", f"{commit}:{self.ref}")
        except SilentError:
            return Swap.UNKNOWN
        if done.returncode == 0:
            self._git("update-ref", _SEEN, commit)  # without it, the next look fetches: the push has arrived
            self._tidy()
            return Swap.WON
        try:
            newest = self.tip()
        except RemoteError:
            return Swap.UNKNOWN
        if newest is not None and self.contains(newest, commit):
            return Swap.WON
        if newest != expected:
            return Swap.LOST
        if b"hung up" in done.stderr:
            raise UnreachableError(f"{self.shown}: the push broke off: {_said(done)}", "run the sync again")
        self._refuse_damage(done)
        raise RemoteError(f"{self.shown}: the host refused the push: {_said(done)}", "check it: reconcile remote check")

    def probe(self) -> None:
        """Try compare-and-swap with a ref beside its own: a swap that expects another commit must be refused.

        Raises:
            UnreachableError: it can't be read either.
            UnwritableError: the host takes no such ref.
            RemoteError: the host can't be relied on.
        """
        self._make()
        beside = self.ref.rpartition("/")[0]
        probe = GitEngine(self.url, f"{beside}/probe-{os.urandom(6).hex()}", self.mirror)
        first = self.write(None, {"probe": b"1"}, ())
        second = self.write(first, {"probe": b"2"}, ())
        if (made := probe._push("", f"{first}:{probe.ref}")).returncode:
            self._newest()
            self._refuse_damage(made)
            problem = f"{self.shown}: git can't write to it: {_said(made)}"
            raise UnwritableError(problem, "check the address and your rights")
        stale = probe._push(second, f"{second}:{probe.ref}").returncode == 0
        removed = probe._push(second if stale else first, f":{probe.ref}").returncode == 0
        if stale or not removed:
            raise RemoteError(
                f"{self.shown}: the host did not refuse a write that expected another state", "choose another host"
            )

    def _tidy(self) -> None:
        """Have git pack the mirror if it has many objects; every sync adds some. A failure only costs space."""
        self._git("-c", f"gc.auto={LOOSE}", "-c", "gc.autoDetach=false", "gc", "--auto", "--quiet")

    def _push(self, expected: str, what: str) -> subprocess.CompletedProcess[bytes]:
        lease = f"--force-with-lease={self.ref}:{expected}"
        how = ("--atomic", "--porcelain", "--progress", "--no-verify", "--no-signed")
        return self._ask("push", *how, lease, self.url, what)

    def _newest(self) -> str | None:
        """Return the commit that the remote's ref names now."""
        listed = self._listed(self.ref)
        return listed[0] if listed else None

    def _listed(self, *refs: str) -> list[str]:
        """Return the objects that refs of the remote name now."""
        done = self._ask("ls-remote", "--exit-code", self.url, *refs)
        if done.returncode == _ABSENT:
            return []
        if done.returncode:
            said = _said(done)
            hint = next((hint for words, hint in _HINTS.items() if words in said), "check the address and the network")
            raise UnreachableError(f"{self.shown}: git can't read it: {said}", hint)
        return [line.split()[0] for line in done.stdout.decode().splitlines()]

    def _make(self) -> None:
        if not os.path.exists(os.path.join(self.mirror, "HEAD")):
            make_private_directory(self.mirror)
            self._required("init", "--bare", "--quiet", "--template=", self.mirror)

    def _required(self, *args: str, stdin: bytes = b"") -> bytes:
        done = self._git(*args, stdin=stdin)
        if done.returncode:
            raise RemoteError(f"git {args[0]} failed: {_said(done)}", self._remedy)
        return done.stdout

    @property
    def _remedy(self) -> str:
        """The hint for a mirror that is damaged."""
        return f"delete {self.mirror}: the next sync makes it"

    def _refuse_damage(self, done: subprocess.CompletedProcess[bytes]) -> None:
        """Raise `RemoteError` if git says that objects are damaged or missing: in the mirror, or else at the host."""
        if _DAMAGE.search(done.stderr) is None:
            return
        if self._git("fsck", "--no-dangling", "--no-progress").returncode:
            raise RemoteError(f"{self.mirror} is damaged: {_said(done)}", self._remedy)
        raise RemoteError(f"{self.shown}: the repository is damaged at its host: {_said(done)}", _DAMAGED)

    def _git(self, *args: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return run_git(self._with_settings(args), stdin)

    def _ask(self, *args: str) -> subprocess.CompletedProcess[bytes]:
        return ask_host(self._with_settings(args), self.shown)

    def _with_settings(self, args: Iterable[str]) -> list[str]:
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        return [*settings, f"--git-dir={self.mirror}", *args]


_UNKNOWN_USER = "set up a credential helper of git that knows a user and password for this host"
_HINTS = {
    "Host key verification failed": "connect with ssh at a terminal: it shows the key of the host",
    "Permission denied (publickey": "add your public key there, or check which one ssh uses",
    "Authentication failed": _UNKNOWN_USER,
    "could not read Password": _UNKNOWN_USER,
    "could not read Username": _UNKNOWN_USER,
}
"""By the words of ssh or git, what a person can do. Those of ssh are in no other language, and git has ``LC_ALL=C``."""
_DAMAGE = re.compile(
    rb"bad (tree )?object|unable to read [0-9a-f]{40}|not our ref|unresolved deltas|inflate: data stream error|"
    rb"delta base|unknown object type|object file .* is empty|does not match index|is corrupt"
)
"""The words of git about objects that are damaged or missing. Over http, git may only say that the host hung up."""
_DAMAGED = (
    "if it fails again, replace the repository by an empty one; on a machine that has all: "
    "reconcile remote accept && reconcile sync"
)
_HOSTILE = "no sync of this program writes that: look at the repository"


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return a line of git's standard error for people: of the host or ssh, of git itself, or the last one."""
    lines = [line.strip() for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    errors = ("fatal: ", "error: ")
    theirs = [each for line in lines if (each := line.removeprefix("remote: ")) != line and each.startswith(errors)]
    own = [line for line in lines if line.startswith(errors)]
    if _CLOSED in own:  # what has closed the connection said why before
        before = (line.removeprefix("remote: ") for line in lines[: lines.index(_CLOSED)])
        theirs += [line for line in before if re.search(r"\w", line.removeprefix("remote:"))][-1:]
    if own and all(line.startswith(_REFUSED) for line in own):  # so that only the host can know why
        words = (line.removeprefix("remote:").strip() for line in lines if line.startswith("remote:"))
        theirs += [f"remote: {line}" for line in words if re.search(r"\w", line) and not _PROGRESS.search(line)]
    return without_password((theirs[:1] or own[:1] or lines[-1:] or [f"exit code {done.returncode}"])[0])


def _quoted(path: str) -> bytes:
    """Return a path as ``git fast-import`` reads it."""
    raw = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + raw + b'"'
