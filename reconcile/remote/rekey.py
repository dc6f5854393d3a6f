"""Changes of who can read an encrypted remote: another machine, or new keys for all.

See docs/design/remotes.md#encryption.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from reconcile.remote.engine import RemoteError, Swap, UnreachableError
from reconcile.remote.sealing import Sealed
from reconcile.remote.sync import ATTEMPTS, checked_tree
from reconcile.remote.tree import FORMAT, directory_of, format_file, read_tree, slots_of, tombstone_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.model.format import Format
    from reconcile.remote.engine import RemoteEngine
    from reconcile.remote.known import Known
    from reconcile.remote.sealing import Keys
    from reconcile.remote.tree import Tree


class EncryptedRemote(NamedTuple):
    """A remote whose keys are shown or changed, and the knowledge of this machine about it."""

    engine: RemoteEngine
    fmt: Format
    store: str
    keys: Keys
    known: Known

    def recipients(self) -> tuple[str, ...]:
        """Return the public keys that can read the remote, none if it is empty. Raises `RemoteError`."""
        tip = self.engine.tip()
        return () if tip is None else self._coding(self._tree(tip)).bundle.recipients

    def add(self, recipient: str) -> None:
        """Let another machine read all that the remote has."""
        self._change(lambda coding: coding.with_recipients((*coding.bundle.recipients, recipient)))

    def rotate(self, without: str | None = None) -> None:
        """Encrypt everything with new keys, for all machines or all but one."""

        def change(coding: Sealed) -> Sealed:
            if without is not None and without not in coding.bundle.recipients:
                raise RemoteError(f"{without} is no key of this remote", "they are listed by: reconcile remote key")
            return coding.rotated(each for each in coding.bundle.recipients if each != without)

        if without is not None and without in self.keys.publics:
            raise RemoteError("this machine would not be able to read the remote", "remove it on another machine")
        self._change(change)

    def _change(self, change: Callable[[Sealed], Sealed]) -> None:
        for _ in range(ATTEMPTS):
            tip = self.engine.tip()
            tree = self._tree(tip)
            before = self._coding(tree)
            assert tree.format is not None  # noqa: S101 - `_coding` has refused an empty remote
            after = change(before)
            edits = {FORMAT: format_file(self.store, tree.format.id, after, tree.format.epoch)}
            removes = list[str]()
            if after.public != before.public:
                rewritten = self._rewritten(tree, after)
                edits |= {new: content for _, new, content in rewritten}
                removes = [old for old, _, _ in rewritten]
            swap = self.engine.swap(tip, self.engine.write(tip, edits, removes))
            if swap is Swap.WON:
                return
            if swap is Swap.UNKNOWN:
                raise UnreachableError(
                    "the remote gave no answer: it may have the change, or not", "look: reconcile remote key"
                )
        raise RemoteError("other machines were faster each time", "run it again")

    def _rewritten(self, tree: Tree, after: Sealed) -> list[tuple[str, str, bytes]]:
        """Return for each file its path, the new one, and its content by other keys."""
        moves, before = dict[str, str](), tree.coding
        for record in tree.records.values():
            moves[f"{directory_of(record.id, before)}/r"] = f"{directory_of(record.id, after)}/r"
            for name in record.files:
                old, new = (slots_of(record, name, self.fmt, coding) for coding in (before, after))
                moves.update(zip(old, new, strict=True))
        moves |= {tombstone_of(key, before): tombstone_of(key, after) for key in tree.tombstones}
        contents = dict(self.engine.read(tree.names[path] for path in moves))
        return [(old, new, after.seal(before.open(contents[tree.names[old]]))) for old, new in moves.items()]

    def _tree(self, tip: str | None) -> Tree:
        return checked_tree(read_tree(self.engine, tip, self.fmt, self.store, self.keys), self.known, self.keys)

    def _coding(self, tree: Tree) -> Sealed:
        if tree.format is None:
            raise RemoteError("the remote is empty, and its keys come with the first sync", "reconcile sync")
        if not isinstance(tree.coding, Sealed):
            raise RemoteError(
                "the remote is not encrypted", "that is decided at its first: reconcile remote add --encrypt"
            )
        return tree.coding
