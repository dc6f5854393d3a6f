"""Which conversations are private after a sync (docs/design/remotes.md#rule-61)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from reconcile.index.file import load_values, save_values
from reconcile.model.baseline import Intent, IntentKind, is_local
from reconcile.model.plan import Kind
from reconcile.model.snapshot import Metadata
from reconcile.planning.steps.content import DIVERGED
from reconcile.remote.tree import read_tree

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from reconcile.model.baseline import ConversationRecord
    from reconcile.model.format import Format
    from reconcile.model.plan import Plan
    from reconcile.planning.incremental.side_index import SideIndex
    from reconcile.remote.place import RemotePlace
    from reconcile.remote.tree import Record, Tombstone, Tree

_KIND = "private"


class Marks(NamedTuple):
    """The private marks of the remote's tree and of the last sync's, for the store of this machine.

    ``taken``: by conversation, the marks that attempts have set or removed here since a swap was won last. ``kept``:
    the conversations that this machine doesn't sync. The trees may be parts; ``stored`` and ``there`` have all that is
    in the store, and in the remote.
    """

    tree: Tree
    before: Tree
    taken: Mapping[str, bool]
    kept: Collection[str]
    stored: SideIndex
    there: SideIndex

    def now(self, conversation: str, *, here: bool) -> bool:
        """Return whether a conversation counts as private from now on: the side that has changed since decides.

        Without a common state, it is private if it is so on either side. ``here`` says nothing then if the store does
        not have it, and the removal was that of a private one: a person has published it since. A removal that no sync
        has seen says what the conversation was.
        """
        now: Record | Tombstone | None = self.tree.records.get(conversation, self.tree.replaceable.get(conversation))
        removed = self.before.tombstones.get(conversation)
        if now is None:
            stone = self.tree.tombstones.get(conversation)
            now = None if stone == removed else stone
        if now is None:
            return here
        if (taken := self.taken.get(conversation)) is not None:
            # Another value is a person's, or the attempt was killed before it changed this: private is safe.
            return now.local or (here and not taken)
        was = self.before.records.get(conversation)
        if was is None:
            is_old = removed is not None and removed.local and not self.stored.of(conversation)
            return (here and not is_old) or now.local
        return here if here != was.local else now.local

    def changes(self, intents: Mapping[str, Intent]) -> dict[str, Intent | None]:
        """Return the intents that follow from the remote: what another machine made private is private here.

        So is what was removed while it was private: a worktree may bring it back. ``intents`` are the present ones.
        """
        found: dict[str, Intent | None] = {}
        for conversation in {**self.tree.records, **self.tree.tombstones}:
            if conversation not in self.kept:
                here = is_local(intents.get(conversation))
                if self.now(conversation, here=here) != here:
                    found[conversation] = None if here else Intent(IntentKind.LOCAL)
        return found

    def of_forks(self, plan: Plan, changes: Mapping[str, Intent | None], fmt: Format) -> dict[str, Intent]:
        """Return the intents of the forks of what becomes private: those of a plan, and those that were not sent."""
        sources = {key: intent for key, intent in changes.items() if intent is not None}
        parents = dict(self._unsent_forks()) if sources else {}
        for action in plan.actions if sources else ():
            contents = (write.content for write in action.writes if action.kind is Kind.FORK)
            for described in (fmt.read_metadata(content) for content in contents if content is not None):
                if isinstance(described, Metadata):
                    parents[action.conversation] = described.parent.id
        return {fork: sources[parent] for fork, parent in parents.items() if parent in sources}

    def kept_with_forks(self, shared: Collection[str], sources: Collection[tuple[str, str]]) -> tuple[str, ...]:
        """Return what is kept here, with the forks of it that were not sent: they have its content.

        ``shared``: the conversations that a person has shared since the last sync. ``sources``: forks that state no
        parent, each with a conversation from which a run may have made it.
        """
        kept, known = set(self.kept), {*shared, *self.tree.tombstones}
        parents = {*self._unsent_forks(), *(each for each in sources if not self.there.of(each[0]))}
        while new := {fork for fork, parent in parents if parent in kept and fork not in known}.difference(kept):
            kept |= new
        return (*self.kept, *sorted(kept.difference(self.kept)))

    def _unsent_forks(self) -> Iterator[tuple[str, str | None]]:
        """Yield the forks that the remote lacks, as those of an earlier attempt or of a run, each with its source."""
        for copy in self.stored.copies():
            described, key = copy.metadata, copy.conversation
            if (
                isinstance(described, Metadata)
                and (described.title or "").startswith(DIVERGED)
                and not self.there.of(key)
            ):
                yield key, described.parent.id


def private_at(commit: str | None, fmt: Format, place: RemotePlace) -> frozenset[str]:
    """Return the private conversations of a commit that was synced. Raises `RemoteError`.

    The last sync has saved them. Otherwise, its tree is read.
    """
    if commit is None:
        return frozenset()
    if (saved := load_values(place.private, _KIND)) is not None and saved[0] == commit:
        return frozenset(saved[1])
    tree = read_tree(place.engine, commit, fmt, place.store, place.keys)
    return frozenset(key for key, record in tree.records.items() if record.local)


def save_private(
    before: str | None, after: str | None, marks: Mapping[str, bool], fmt: Format, place: RemotePlace, *, is_all: bool
) -> None:
    """Save the private conversations of a synced commit, for `private_at`.

    ``marks`` are those of all conversations that differ from the commit before; ``is_all``: those of every one.
    """
    saved = load_values(place.private, _KIND)
    at, known = (None, ()) if saved is None else saved
    if after is None or (at == after and not is_all):
        return
    if is_all or at == before:
        rest = () if is_all else (key for key in known if key not in marks)
        now = sorted((*rest, *(key for key, is_private in marks.items() if is_private)))
    else:
        now = sorted(private_at(after, fmt, place))
    if (at, now) != (after, known):
        save_values(place.private, _KIND, after, now)


def with_present_marks(plan: Plan, intents: Mapping[str, Intent]) -> Plan:
    """Return the undo of a sync without what it changes of the private marks: the next sync would send that."""
    return replace(plan, remembered=tuple(_with_present_marks(plan.remembered, intents)))


def _with_present_marks(
    records: Iterable[tuple[str, ConversationRecord]], intents: Mapping[str, Intent]
) -> Iterator[tuple[str, ConversationRecord]]:
    for key, record in records:
        now = intents.get(key)
        is_same = is_local(now) == is_local(record.intent)
        yield key, record if is_same else replace(record, intent=now if is_local(now) else None)
