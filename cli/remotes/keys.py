"""The keys of an encrypted remote: shown, given to another machine, taken from one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.formats import get_format
from reconcile.remote.engine import NoKeyError
from reconcile.remote.known import known_of, note
from reconcile.remote.rekey import EncryptedRemote
from reconcile.remote.sealing import checked_recipient
from reconcile.state.database import State

from ..misuse import Misuse
from ..output.documents import print_document
from ..output.interaction import print_message
from ..output.text import short_path, show
from .actions import no_sync

if TYPE_CHECKING:
    from reconcile.remote.place import RemotePlace

    from ..arguments import Options
    from .actions import Shared

_USE = "use: reconcile remote key [add KEY | remove KEY | rotate]"


def keys(options: Options, shared: Shared, place: RemotePlace, words: tuple[str, ...], command: str) -> None:
    """Show the keys of a remote, or change them: ``words`` are those after ``remote key``."""
    if len(words) != {"add": 2, "remove": 2, "rotate": 1}.get(words[0] if words else "", 0):
        raise Misuse(f"reconcile remote key {' '.join(words)}: unexpected words", _USE)
    place.keys.make()
    key = checked_recipient(words[1]) if len(words) > 1 else ""
    with no_sync(options, shared, place, command), State.open(shared.state) as state:

        def notes(**new: str | None) -> None:
            known = known_of(state, place.name)
            if (then := replace(known, **new)) != known:
                note(state, place.name, then)

        known, form = known_of(state, place.name), get_format(shared.roots.format)
        remote = EncryptedRemote(place.engine, form, place.store, place.keys, known, place.rotation, notes)
        if not words:
            _show(options, place, remote)
        elif words[0] == "add":
            remote.add(key)
            print_message(options, f"{key} can read {place.name}: sync on that machine")
        else:
            remote.rotate(key or None)
            print_message(options, f"everything that {place.name} has now is encrypted with new keys")
            print_message(options, "its history is not: whoever had a key can read what was sent before")


def _show(options: Options, place: RemotePlace, remote: EncryptedRemote) -> None:
    own = place.keys.publics[0]
    if options.json:
        document = {"format": "reconcile.keys/1", "remote": place.name, "key": own, "file": place.keys.path}
        print_document(options, {**document, "recipients": remote.recipients()})
        return
    line = f"this machine's key: {own} ({short_path(place.keys.path)})"
    try:
        recipients = remote.recipients()
    except NoKeyError:
        show([line])  # another machine needs it, to let this one in
        raise
    marked = [f"{each} (this machine)" if each in place.keys.publics else each for each in recipients]
    show([line, *(f"{place.name} can be read with: {each}" for each in marked)])
