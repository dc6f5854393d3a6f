"""The keys of an encrypted remote: the first ones, and changes of who can read it.

See docs/design/remotes.md#encryption.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from reconcile.fs.private_files import replace_private_file
from reconcile.remote import sync
from reconcile.remote.engine import RemoteError, Swap, UnreachableError
from reconcile.remote.identity import checked_tree
from reconcile.remote.sealing import Bundle, Sealed
from reconcile.remote.sync import ATTEMPTS
from reconcile.remote.tree import FORMAT, STAGED, directory_of, format_file, key_of, read_tree, slots_of, tombstone_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from reconcile.model.format import Format
    from reconcile.remote.coding import Coding
    from reconcile.remote.engine import RemoteEngine
    from reconcile.remote.known import Known
    from reconcile.remote.sealing import Keys
    from reconcile.remote.tree import Tree


_AT_ONCE = 200
"""Files that are read from the remote at once."""


def begin(engine: RemoteEngine, store: str, keys: Keys) -> bool:
    """Send the keys of a new remote, so that every other machine sees that it is encrypted.

    Return False if another machine has begun the remote meanwhile.

    Raises:
        RemoteError: they can't be sent.
    """
    content = format_file(store, os.urandom(8).hex(), keys.new())
    swap = engine.swap(None, engine.write(None, {FORMAT: content}, ()))
    if swap is Swap.UNKNOWN:
        raise UnreachableError("the remote gave no answer: it may have its keys, or not", "run it again")
    return swap is Swap.WON


class EncryptedRemote(NamedTuple):
    """A remote whose keys are shown or changed, and the knowledge of this machine about it.

    ``pending`` is the path of a file for the keys of a rotation that has begun. ``notes`` records what is new of the
    `Known`: the key that the remote was seen with, and that of a push whose end is unknown.
    """

    engine: RemoteEngine
    fmt: Format
    store: str
    keys: Keys
    known: Known
    pending: str
    notes: Callable[..., None]

    def recipients(self) -> tuple[str, ...]:
        """Return the public keys that can read the remote, none if it is empty. Raises `RemoteError`."""
        tip = self.engine.tip()
        return () if tip is None else self._coding(self._tree(tip)).bundle.recipients

    def add(self, recipient: str) -> None:
        """Let another machine read all that the remote has."""
        self._change(lambda coding: coding.with_recipients((*coding.bundle.recipients, recipient)))

    def rotate(self, without: str | None = None) -> str:
        """Encrypt everything with new keys, for all machines or all but one; return the new public key of the remote.

        More than a push takes is sent in parts. Until the last one, the remote is as before for every machine. After
        an interruption, the next rotation goes on.
        """

        def change(coding: Sealed) -> Sealed:
            if without is not None and without not in coding.bundle.recipients:
                raise RemoteError(f"{without} is no key of this remote", "they are listed by: reconcile remote key")
            return coding.rotated(each for each in coding.bundle.recipients if each != without)

        if without is not None and without in self.keys.publics:
            raise RemoteError("this machine would not be able to read the remote", "remove it on another machine")
        return self._change(change)

    def _change(self, change: Callable[[Sealed], Sealed]) -> str:
        """Change the keys, and return the public key that the remote has then."""
        lost, checked, dropped = 0, set[tuple[str, str]](), set[str]()
        while lost < ATTEMPTS:
            tip = self.engine.tip()
            tree = self._tree(tip)
            before = self._coding(tree)
            assert tip is not None  # noqa: S101 - `_coding` has refused an empty remote
            assert tree.format is not None  # noqa: S101
            after = self._resumed(change(before), before)
            edits, removes, placed = dict[str, bytes](), list[str](), dict[str, str]()
            if after.public != before.public:
                for key, problem in tree.refused.items():
                    self._drop(key, f"{key}: {problem}", dropped)
                moves = self._moves(tree, after, dropped)
                staged = self._staged(tree, moves, after, checked)
                try:
                    part = self._part(tree, moves.keys() - staged.keys(), after)
                except _UnreadableError as error:
                    self._drop(key_of(error.path) or error.path, str(error), dropped)
                    continue
                if len(part) + len(staged) < len(moves):
                    lost = 0 if self._is_swapped(tip, self._write_staged(tip, tree, part, after)) else lost + 1
                    continue
                edits = {moves[path]: content for path, content in part.items()}
                placed = {moves[path]: name for path, name in staged.items()}
                removes = sorted({path.split("/")[0] for path in tree.names} - {FORMAT})
            edits[FORMAT] = format_file(self.store, tree.format.id, after, tree.format.epoch)
            commit = self.engine.write(tip, edits, removes, placed)
            if after.public == before.public:
                if self._is_swapped(tip, commit):
                    return after.public
            elif self._is_rotated(tip, commit, after.public):
                os.unlink(self.pending)
                return after.public
            lost += 1
        raise RemoteError("other machines were faster each time", "run it again")

    def _is_rotated(self, tip: str, commit: str, public: str) -> bool:
        """Send the last commit of a rotation. Its key is noted before: without an answer, no sync uses older ones."""
        self.notes(rotated=public)
        try:
            swap = self.engine.swap(tip, commit)
        except RemoteError:
            self.notes(rotated=None)
            raise
        if swap is Swap.WON:
            self.notes(key=public, rotated=None)
        elif swap is Swap.LOST:
            self.notes(rotated=None)
        return _is_won(swap)

    def _is_swapped(self, tip: str, commit: str) -> bool:
        """Send a commit; return False if another machine has moved the remote meanwhile."""
        return _is_won(self.engine.swap(tip, commit))

    def _resumed(self, wanted: Sealed, before: Sealed) -> Sealed:
        """Return the new keys of a rotation that was interrupted, for the wanted machines, or note those that are new.

        They are on this machine alone: what the remote has, a machine that is about to be removed could have made.
        """
        if wanted.public == before.public:
            return wanted
        try:
            with open(self.pending, "rb") as file:
                known = msgspec.json.decode(file.read(), type=Bundle)
        except (FileNotFoundError, msgspec.DecodeError):
            known = None
        if known is not None and known.earlier == wanted.bundle.earlier:
            return Sealed(known).with_recipients(wanted.bundle.recipients)
        replace_private_file(self.pending, msgspec.json.encode(wanted.bundle), flushed=True)
        return wanted

    def _drop(self, key: str, problem: str, dropped: set[str]) -> None:
        """Leave out a conversation that nobody can read, if a person has accepted the remote as it is."""
        if not self.known.accepted:
            hint = "sync the machine that has sent it, or leave it out: reconcile remote accept, then run this again"
            raise RemoteError(f"a file of the remote can't be read, so it gets no new keys: {problem}", hint)
        dropped.add(key)

    def _moves(self, tree: Tree, after: Sealed, dropped: Collection[str]) -> dict[str, str]:
        """Return the new path of each file that a record names, and of each record and tombstone."""
        moves, before = dict[str, str](), tree.coding
        for record in tree.records.values():
            if before.key(record.id) in dropped:
                continue
            moves[f"{directory_of(record.id, before)}/r"] = f"{directory_of(record.id, after)}/r"
            for name in record.files:
                old, new = (slots_of(record, name, self.fmt, coding) for coding in (before, after))
                moves.update(zip(old, new, strict=True))
        stones = [key for key in tree.tombstones if before.key(key) not in dropped]
        return moves | {tombstone_of(key, before): tombstone_of(key, after) for key in stones}

    def _staged(self, tree: Tree, moves: Iterable[str], after: Sealed, checked: set[tuple[str, str]]) -> dict[str, str]:
        """Return by path the name of each file's content by the new keys that the remote has already.

        Each is compared once with the present content, as whoever can write to the remote may have replaced it. Those
        are added to ``checked``.
        """
        there = _in_staged(tree.names)
        found = {path: name for path in moves if (name := there.get(_staged_name(tree.names[path], after)))}
        new = [path for path, name in found.items() if (tree.names[path], name) not in checked]
        for some in (new[at : at + _AT_ONCE] for at in range(0, len(new), _AT_ONCE)):
            contents = dict(self.engine.read(name for path in some for name in (tree.names[path], found[path])))
            for path in some:
                with suppress(ValueError):
                    if after.open(contents[found[path]]) == tree.coding.open(contents[tree.names[path]]):
                        checked.add((tree.names[path], found[path]))
        return {path: name for path, name in found.items() if (tree.names[path], name) in checked}

    def _part(self, tree: Tree, paths: Collection[str], after: Sealed) -> dict[str, bytes]:
        """Return some files by the new keys, by path: about as many bytes as one push sends, or all."""
        part, size, wanted = dict[str, bytes](), 0, sorted(paths)
        for some in (wanted[at : at + _AT_ONCE] for at in range(0, len(wanted), _AT_ONCE)):
            contents = dict(self.engine.read(tree.names[path] for path in some))
            for path in some:
                if size >= sync.BATCH:
                    return part
                part[path] = after.seal(_opened(contents[tree.names[path]], path, tree.coding))
                size += len(part[path])
        return part

    def _write_staged(self, tip: str, tree: Tree, part: Mapping[str, bytes], after: Sealed) -> str:
        """Return a commit that has some files by the new keys beside the tree, which every reader still reads."""
        names = {_staged_name(tree.names[path], after): content for path, content in part.items()}
        directory = f"{STAGED}/{os.urandom(8).hex()}"
        return self.engine.write(tip, {f"{directory}/{name}": content for name, content in names.items()}, ())

    def _tree(self, tip: str | None) -> Tree:
        known = replace(self.known, rotated=None)  # this completes it
        return checked_tree(read_tree(self.engine, tip, self.fmt, self.store, self.keys), known, self.keys)

    def _coding(self, tree: Tree) -> Sealed:
        if tree.format is None:
            raise RemoteError("the remote is empty, and its keys come with the first sync", "reconcile sync")
        if not isinstance(tree.coding, Sealed):
            raise RemoteError(
                "the remote is not encrypted", "that is decided when it is added: reconcile remote add --encrypt URL"
            )
        self.notes(key=tree.coding.public)
        return tree.coding


def _is_won(swap: Swap) -> bool:
    if swap is Swap.UNKNOWN:
        raise UnreachableError(
            "the remote gave no answer: it may have the change, or not", "look: reconcile remote key"
        )
    return swap is Swap.WON


def _in_staged(names: Mapping[str, str]) -> dict[str, str]:
    """Return the names of the contents that a change of keys has sent beside the tree, by the names of their files."""
    return {path.rpartition("/")[2]: name for path, name in names.items() if path.startswith(f"{STAGED}/")}


def _staged_name(name: str, after: Sealed) -> str:
    """Return the file's name, which tells the host nothing, for the content that replaces one of the tree."""
    return after.slot(name, STAGED)


def _opened(content: bytes, path: str, coding: Coding) -> bytes:
    try:
        return coding.open(content)
    except ValueError as error:
        raise _UnreadableError(path, str(error)) from None


class _UnreadableError(Exception):
    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
