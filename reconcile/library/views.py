"""What a workspace shows of conversations, whoever has their locks: values that can't be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.library import values
from reconcile.library.errors import UnknownConversationError
from reconcile.library.rw_locks import entered

if TYPE_CHECKING:
    from reconcile.library.rw_locks import Exclusions
    from reconcile.library.storage import Storage
    from reconcile.library.values import View


class Snapshots:
    """The last value of each file that was asked for; a file is read again where its content is another."""

    def __init__(self, exclusions: Exclusions) -> None:
        """Know nothing yet."""
        self._exclusions = exclusions
        self._known: dict[tuple[str, str], tuple[object, View]] = {}

    def value(self, storage: Storage, conversation: str, name: str) -> View:
        """Return what a file says now. Raises `UnknownConversationError`, `UnreadableError`."""
        with entered(), self._exclusions.of(conversation).reading():
            source = storage.load(conversation).get(name)
            if source is None:
                self._known.pop((conversation, name), None)
                raise UnknownConversationError(
                    f"{conversation} is on neither side any more", "it was removed meanwhile"
                )
            known = self._known.get((conversation, name))
            if known is None or known[0] != source.mark:
                value = values.frozen(values.decoded(conversation, name, source.read()))
                known = self._known[conversation, name] = source.mark, value
            return known[1]
