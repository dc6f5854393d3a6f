"""Adds, lists and removes the remotes of a store."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from reconcile.adapters.claude_code.places import FORMAT, start_of
from reconcile.adapters.claude_code.stores import store_place
from reconcile.adapters.roots import LocateError, Request, refuse_state_inside
from reconcile.fs.git_state import checkout_top
from reconcile.fs.locks import run_lock
from reconcile.fs.private_files import make_private_directory
from reconcile.remote.engine import RemoteError
from reconcile.remote.known import known_of
from reconcile.remote.place import checked_url, forget, new_place, record, remotes, store_name
from reconcile.remote.tree import read_format
from reconcile.state.database import State
from reconcile.state.directory import state_directory
from reconcile.state.schema import REMOTE

from ..context import find_roots
from ..output.documents import print_document
from ..output.interaction import print_message
from ..output.tables import Column, table
from ..output.text import Style, clean, format_time, short_path, show, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconcile.adapters.roots import Roots
    from reconcile.remote.known import Known
    from reconcile.remote.place import RemotePlace

    from ..arguments import Options


class Shared(NamedTuple):
    """A store that can have remotes: its sides, its state directory, and its name on every machine."""

    roots: Roots
    state: str
    store: str

    @property
    def remotes(self) -> list[RemotePlace]:
        """The remotes by name."""
        return remotes(self.state, self.store)


def shared_store(options: Options) -> Shared:
    """Return the store of the project, also of one of Claude Code that has no sessions on this machine yet.

    Raises:
        RemoteError: other machines have no name for it.
    """
    roots = _roots(options)
    found = Shared(roots, state_directory(roots.key, os.environ, sys.platform), store_name(roots))
    refuse_state_inside(roots, found.state)
    return found


def _roots(options: Options) -> Roots:
    try:
        return find_roots(options)
    except LocateError:
        if options.format not in (None, FORMAT) or options.store is not None:
            raise
        request = Request(options.workspace, None, os.getcwd(), os.environ, sys.platform)
        start = start_of(request)
        project = checkout_top(start) or start
        place = store_place(project, request).path
        if not os.path.basename(place).startswith("git-"):
            raise
        make_private_directory(place)
        again = options.in_format(FORMAT)
        again.workspace = project
        return find_roots(again)


def add(options: Options, shared: Shared, url: str, name: str | None, *, encrypt: bool = False) -> RemotePlace:
    """Check a new remote and record it; tell how much a sync would send, and who could read it."""
    url = checked_url(url, shared.roots.project)
    place = new_place(shared.state, shared.store, url, name, encrypt=encrypt)
    try:
        place.engine.probe()
        is_encrypted = _is_encrypted_there(place, shared.store)
        if is_encrypted:
            place.keys.make()
    except RemoteError:
        forget(place)
        raise
    record(place)
    for line in _readers(place, shared.store, is_encrypted=is_encrypted):
        print_message(options, line)
    files = [os.path.join(at, name) for at, _, names in os.walk(shared.roots.store_conversations) for name in names]
    total = size(sum(os.lstat(path).st_size for path in files))
    count = f"{len(files)} file{'' if len(files) == 1 else 's'} ({total})"
    print_message(options, f"the store has {count}, private ones included; nothing of it is sent yet")
    return place


def _readers(place: RemotePlace, store: str, *, is_encrypted: bool) -> Iterator[str]:
    """Yield who can read a remote, and what stays visible in an encrypted one."""
    if not is_encrypted:
        yield f"{place.name}: {place.url}; whoever can read that repository can read what a sync sends"
        return
    yield f"{place.name}: {place.url}; encrypted, for the key in {short_path(place.keys.path)}: keep a copy of it"
    yield (
        "whoever can read that repository sees the number of files, their sizes, the times of syncs, and the name "
        f"{store}"
    )


def _is_encrypted_there(place: RemotePlace, store: str) -> bool:
    """Tell whether a remote is encrypted, or will be. Raises `RemoteError` if it has what is not."""
    found = read_format(place.engine, place.engine.tip(), store)
    if place.encrypt and found is not None and found.bundle is None:
        raise RemoteError(
            "the remote has conversations already, and they are not encrypted",
            "use an empty repository, or leave out --encrypt",
        )
    return place.encrypt or (found is not None and found.bundle is not None)


def remove(options: Options, state: str, place: RemotePlace, command: str) -> None:
    """Forget a remote on this machine."""
    with run_lock(state, command=command), State.open(state) as known:
        for checkout in known.checkouts(with_remotes=True):
            if checkout.project == os.path.realpath(place.mirror):
                known.forget_checkout(checkout.id)
        known.set_meta(REMOTE + place.name, "")
        forget(place)
    print_message(options, f"{place.name} is forgotten on this machine; {place.url} keeps what it has")


def list_remotes(options: Options, shared: Shared) -> None:
    """Print the remotes, and when each was reached last."""
    with State.open(shared.state, readonly=True) as state:
        found = [(place, known_of(state, place.name)) for place in shared.remotes]
    if options.json:
        listed = [
            {
                "name": place.name,
                "url": place.url,
                "ref": place.ref,
                "encrypted": _is_encrypted(place, known),
                "commit": known.commit,
                "contact_ns": place.contact_ns,
            }
            for place, known in found
        ]
        print_document(options, {"format": "reconcile.remotes/1", "remotes": listed})
        return
    if not found:
        print_message(options, "no remote is known for this store: reconcile remote add URL")
        return
    cells = [
        (place.name, clean(place.url), "yes" if _is_encrypted(place, known) else "no", _contact(place))
        for place, known in found
    ]
    columns = (Column("Remote"), Column("Address", shrinks=True), Column("Encrypted"), Column("Last contact"))
    show(table(columns, cells, Style.choose(options.color)))


def _is_encrypted(place: RemotePlace, known: Known) -> bool:
    return place.encrypt or known.key is not None


def _contact(place: RemotePlace) -> str:
    return format_time(place.contact_ns) if place.contact_ns else "never"
