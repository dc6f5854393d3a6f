"""Adds, lists and removes the remotes of a store."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click
from msgspec.structs import replace

from reconcile.adapters.claude_code.places import FORMAT, start_of
from reconcile.adapters.claude_code.stores import name_elsewhere, store_place
from reconcile.adapters.locate import FOLDERS, NoWorkspaceError
from reconcile.adapters.roots import LocateError, Request, refuse_state_inside, store_of
from reconcile.formats import get_format
from reconcile.fs.git_state import checkout_top
from reconcile.fs.locks import run_lock
from reconcile.fs.paths import quoted_path
from reconcile.fs.private_files import make_private_directory
from reconcile.model.commands import typed
from reconcile.model.plan import counted_as
from reconcile.remote.engine import RemoteError
from reconcile.remote.git.address import checked_url, refuse_commits_of_project
from reconcile.remote.history import forget_history
from reconcile.remote.identity import not_encrypted
from reconcile.remote.known import Known, known_of, note
from reconcile.remote.place import chosen, forget, new_place, probed, record, remotes, store_name
from reconcile.remote.rekey import begin
from reconcile.remote.tree import coding_of, read_format
from reconcile.state.database import State
from reconcile.state.directory import REMOTES, state_directory
from reconcile.state.schema import REMOTE

from ..context import find_roots, refuse_missing_home, settings_of
from ..output.documents import print_document
from ..output.interaction import confirm_or_exit, print_message, print_warning, waiting_callback
from ..output.tables import Column, table
from ..output.text import Style, format_time, message_text, short_path, show, size
from .first import confirm_first, counts
from .naming import errors_name
from .sent_secrets import unsent_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reconcile.adapters.roots import Roots
    from reconcile.remote.place import RemotePlace
    from reconcile.remote.tree import FormatFile

    from ..arguments import Options
    from .sent_secrets import Carrier


class Amount(NamedTuple):
    """How much a store has. ``private`` are the conversations that the project doesn't have."""

    conversations: int
    private: int
    files: int
    size: int

    @staticmethod
    def of(options: Options, roots: Roots, *, with_secrets: bool) -> tuple[Amount, list[Carrier]]:
        """Return how much a store has, and if that is wanted, the conversations with a secret."""
        files = [os.path.join(at, name) for at, _, names in os.walk(roots.store_conversations) for name in names]
        total, private, carriers = counts(options, roots, with_secrets=with_secrets) if files else (0, 0, [])
        return Amount(total, private, len(files), sum(os.lstat(path).st_size for path in files)), carriers


class Shared(NamedTuple):
    """A store that can have remotes: its sides, and its state directory."""

    roots: Roots
    state: str

    @property
    def remotes(self) -> list[RemotePlace]:
        """The remotes by name."""
        return remotes(self.state, self.roots.name_elsewhere)

    def remote(self, text: str | None, command: str) -> RemotePlace:
        """Return the remote with this name or address; None: the only one.

        ``command`` is the user's, of which a name can be the last word. Raises `UnknownRemoteError`.
        """
        return self.named(text, lambda name: f"{command} {name}")

    def named(self, text: str | None, naming: Callable[[str], str]) -> RemotePlace:
        """Return the same, for a command that has the name elsewhere: ``naming`` returns that."""
        return chosen(self.state, self.roots.name_elsewhere, text, naming)


def shared_store(options: Options, known_as: str | None = None) -> Shared:
    """Return the store of the project, also of one that has nothing on this machine yet, if it has a name elsewhere.

    ``known_as`` is the name that the user gives to it.

    Raises:
        RemoteError: its format can't be synced with a remote.
    """
    roots = _roots(options, known_as)
    places = get_format(roots.format).places
    if places is not None and places.is_for_others:
        raise RemoteError(
            "shared sessions have no remotes of their own", "without --format, these are those of the store"
        )
    found = Shared(roots, state_directory(roots.key, os.environ, sys.platform))
    refuse_state_inside(roots, found.state)
    return found


def _roots(options: Options, known_as: str | None) -> Roots:
    try:
        return find_roots(options)
    except LocateError as error:
        is_named = known_as is not None and options.format in FOLDERS
        # A damaged project of a format is refused as by every command: it is no new one of Claude Code.
        is_new = options.format == FORMAT or (options.format is None and isinstance(error, NoWorkspaceError))
        if options.store is not None or not (is_named or is_new):
            raise
        request = Request(options.workspace, None, os.getcwd(), os.environ, sys.platform)
        start = start_of(request)
        if is_named and options.format is not None:
            make_private_directory(store_of(options.format, start, request))
            return find_roots(options)
        project = checkout_top(start) or start
        place = store_place(project, request).path
        if not name_elsewhere(place):
            raise
        make_private_directory(place)
        again = options.in_format(FORMAT)
        again.workspace = project
        return find_roots(again)


def add(
    options: Options,
    shared: Shared,
    url: str,
    name: str | None,
    *,
    known_as: str | None = None,
    encrypt: bool = False,
    syncs: bool = False,
) -> tuple[RemotePlace, Amount]:
    """Check a new remote and record it; tell how much a sync would send, and who could read it.

    ``known_as`` is the name that the user gives to the store. ``syncs``: a sync that sends follows at once. If the
    remote is empty, it asks before that at a terminal; after a no, the remote isn't added. Of one with encryption, the
    keys are sent at once: until then, another machine could take it for one without.
    """
    refuse_missing_home(shared.roots)
    url = checked_url(url, shared.roots.project)
    place = new_place(shared.state, store_name(shared.roots, known_as), url, name, encrypt=encrypt)
    try:
        refuse_projects_own(shared, place)
        place = probed(place)
        found = read_format(place.engine, place.engine.tip(), place.store)
        is_encrypted = _is_encrypted(place, found)
        if is_encrypted:
            place.keys.make()
        if place.encrypt and found is None and not begin(place.engine, place.store, place.keys):
            found = read_format(place.engine, place.engine.tip(), place.store)
            is_encrypted = _is_encrypted(place, found)
        if is_first := syncs and found is None and not is_encrypted:
            confirm_first(options, shared.roots, place.shown)
    except (RemoteError, click.exceptions.Exit, click.Abort):
        forget(place)
        above = os.path.dirname(shared.state)
        with suppress(OSError):  # one that isn't empty was there before
            for directory in (os.path.join(shared.state, REMOTES), shared.state, above):
                os.rmdir(directory)
        raise
    place = place._replace(encrypt=is_encrypted)  # so it is never taken for one without encryption
    record(place)
    for line in _readers(place, found, is_encrypted=is_encrypted, syncs=syncs):
        print_message(options, line)
    if not (is_encrypted or is_first) and found is None:
        again = [
            quoted_path(place.shown),
            *(["--name", typed(name)] if name else []),
            *(["--as", typed(known_as)] if known_as else []),
        ]
        command = f"reconcile remote add --encrypt {' '.join(again)}{options.sides}"
        command = f"reconcile remote remove {place.name}{options.sides} && {command}"
        print_message(options, f"to encrypt it, before the first sync: {command}")
    if place.is_branch:
        branch = place.ref.removeprefix("refs/heads/")
        print_message(options, f"the store is in a branch of the repository: {branch}")
    if known_as is not None:
        print_message(options, _about_name(place, is_new=found is None))
    amount, carriers = Amount.of(options, shared.roots, with_secrets=not (is_encrypted or syncs) and found is None)
    for line in _about_amount(shared.roots, amount, is_new=found is None, syncs=syncs, is_encrypted=is_encrypted):
        print_message(options, line)
    if carriers:
        print_warning(options, unsent_words(carriers, shared.roots.noun, shared.remotes, place))
    return place, amount


def refuse_projects_own(shared: Shared, place: RemotePlace) -> None:
    """Raise `RemoteError` if a branch of the remote has a commit of the project, or the remote can't be read."""
    refuse_commits_of_project(place.engine.branches(), place.shown, shared.roots.project)


def _about_amount(roots: Roots, amount: Amount, *, is_new: bool, syncs: bool, is_encrypted: bool) -> Iterator[str]:
    """Yield how much the store has, and whether it is sent; nothing if the store is empty."""
    if not amount.files:
        return
    count = f"{_counted(amount.files, 'file')} ({size(amount.size)})"
    if amount.conversations:
        private = (
            f", {amount.private or 'none'} of them private," if roots.is_in_project else ", private ones included,"
        )
        count = f"{_counted(amount.conversations, roots.noun)}{private} in {count}"
    sent = "nothing of it is sent yet" if is_new else "the next sync compares it with what the remote has"
    if syncs:
        sent = "this sync sends it" if is_new else "this sync compares it with what the remote has"
    is_readable = syncs and is_new and not is_encrypted
    yield f"the store of this project has {count}; {sent}{', not encrypted' if is_readable else ''}"
    if is_readable:
        yield "to encrypt what is sent, use another repository, an empty one: reconcile remote add --encrypt URL"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def check(options: Options, shared: Shared, place: RemotePlace, command: str) -> None:
    """Check again what `add` has checked, and tell who can read the remote.

    Raises:
        RemoteError: conversations may not be sent there, or no key of this machine opens what is there.
    """
    checked_url(place.url, shared.roots.project)
    with no_sync(options, shared, place, command):
        refuse_projects_own(shared, place)
        place.engine.probe()
        found = read_format(place.engine, place.engine.tip(), place.store)
    is_encrypted = place.encrypt if found is None else found.bundle is not None
    if place.encrypt and not is_encrypted:
        raise not_encrypted()
    if found is not None:
        coding_of(found, place.keys)
    checked = "can be read and written, and rejects a push that another machine's has overtaken"
    print_message(options, f"{place.shown} {checked}")
    if is_encrypted:
        readers = "is encrypted: only the keys that `reconcile remote key` lists can read it"
    else:
        readers = "is not encrypted: whoever can read that repository can read all that is sent"
    print_message(options, f"{place.name} {readers}")


def _about_name(place: RemotePlace, *, is_new: bool) -> str:
    """Return whether a remote has a store of the name that the user gives: another spelling makes a second one."""
    if is_new:
        return f"it has nothing called {place.store} yet"
    return f"it has {place.store} already: a sync merges that with the store of this machine"


def _readers(place: RemotePlace, present: FormatFile | None, *, is_encrypted: bool, syncs: bool) -> Iterator[str]:
    """Yield who can read a remote, and what stays visible in an encrypted one.

    If it isn't encrypted for this machine, the error of a sync that follows (``syncs``) has the way.
    """
    if not is_encrypted:
        yield f"{place.name}: {place.shown}; whoever can read that repository can read what a sync sends"
        return
    who, way = f"encrypted, for the key in {short_path(place.keys.path)}: keep a copy of it", None
    try:
        if present is not None:
            coding_of(present, place.keys)
    except RemoteError as error:
        who, way = error.message, None if syncs else error.hint
    yield f"{place.name}: {place.shown}; {who}"
    if way is not None:
        yield way
    yield (
        "whoever can read that repository sees the number of files, their sizes, the times of syncs, and the name "
        f"{place.store}"
    )


def _is_encrypted(place: RemotePlace, present: FormatFile | None) -> bool:
    """Tell whether a remote is encrypted, or will be. Raises `RemoteError` if it has what is not."""
    if place.encrypt and present is not None and present.bundle is None:
        raise RemoteError(
            "the remote is in use already, and is not encrypted",
            "use an empty repository, or leave out --encrypt",
        )
    return place.encrypt or (present is not None and present.bundle is not None)


def note_encryption(place: RemotePlace) -> None:
    """Record that another machine has encrypted a remote, as a sync that was refused has seen: emptied, it stays so."""
    with suppress(RemoteError):  # the first one is that of the sync
        if not place.encrypt and (found := read_format(place.engine, place.engine.seen(), place.store)):
            record(place._replace(encrypt=found.bundle is not None))


@contextmanager
def no_sync(options: Options, shared: Shared, place: RemotePlace, command: str) -> Iterator[None]:
    """Wait for the end of a sync with a remote, and let none begin: it reads the state first, and writes it last.

    Raises:
        LockedError: the sync takes too long.
        RemoteError: the remote was changed or removed meanwhile.
    """
    timeout, waiting = settings_of(shared.roots).lock_timeout, waiting_callback(options)
    changed = RemoteError(f"{place.name} was changed or removed meanwhile", "look at it: reconcile remote")
    with ExitStack() as stack:
        stack.enter_context(errors_name(shared.remotes, place))
        try:
            stack.enter_context(run_lock(place.directory, command=command, timeout=timeout, waiting=waiting))
        except FileNotFoundError:
            raise changed from None
        if place not in shared.remotes:
            raise changed
        yield


def remove(options: Options, shared: Shared, place: RemotePlace, command: str) -> None:
    """Forget a remote on this machine."""
    with (
        no_sync(options, shared, place, command),
        run_lock(shared.state, command=command),
        State.open(shared.state) as known,
    ):
        kept, places = known_of(known, place.name).kept, get_format(shared.roots.format).places
        with known.transaction():  # else a kill would lose what is kept here, and leave the remote
            _forget_agreement(known, place)
            forget(place)
    print_message(options, f"{place.name} is forgotten on this machine; {place.shown} keeps what it has")
    if ids := [key for key in kept if counted_as(key, places) == key]:
        were, them = ("was", "it") if len(ids) == 1 else ("were", "them")
        listed = f"{_counted(len(ids), shared.roots.noun)} {were} kept here: {' '.join(ids)}"
        name = f" --name {place.name}" if shared.remotes else ""
        way = f"unless you first run: reconcile remote keep-here ID{name}"
        print_warning(options, f"{listed}; if the remote is added again, a sync sends {them}, {way}")


def accept(options: Options, shared: Shared, place: RemotePlace, command: str) -> None:
    """Take a remote as it is now, whatever this machine has seen there before."""
    with (
        no_sync(options, shared, place, command),
        run_lock(shared.state, command=command),
        State.open(shared.state) as known,
    ):
        before = known_of(known, place.name)
        if before.key is not None:
            record(place._replace(encrypt=True))  # it is never taken for one without encryption
        with known.transaction():  # else a kill would lose what is kept here, and a sync would send it
            _forget_agreement(known, place)
            note(known, place.name, Known(accepted=True, kept=before.kept, forgets=before.forgets))
        place.note_refusal("")
    print_message(options, f"{place.name} is taken as it is now: the next sync compares all, and removes nothing")


def forget_past(options: Options, shared: Shared, place: RemotePlace, command: str) -> None:
    """Drop the history of a remote, after a question."""
    confirm_or_exit(options, f"Drop all earlier versions that {place.shown} has?", has_dry_run=False)
    with no_sync(options, shared, place, command), State.open(shared.state) as state:
        known, fmt = replace(known_of(state, place.name), forgets=True), get_format(shared.roots.format)
        # After an interruption, the next sync removes the mirror.
        begins = partial(note, state, place.name, known)
        known = forget_history(place.engine, fmt, place.store, place.keys, known, begins)
        note(state, place.name, known)
        shutil.rmtree(place.mirror)
        note(state, place.name, replace(known, forgets=False))
    print_message(options, f"{place.shown} has no earlier versions now")
    print_message(options, "its host may keep the old objects for some time, and each machine what it has fetched")


def _forget_agreement(state: State, place: RemotePlace) -> None:
    """Forget what this machine and a remote have agreed on."""
    for checkout in state.checkouts(with_remotes=True):
        if checkout.project == os.path.realpath(place.mirror):
            state.forget_checkout(checkout.id)
    state.set_meta(REMOTE + place.name, "")


def list_remotes(options: Options, shared: Shared) -> None:
    """Print the remotes, and when each was reached last."""
    with State.open(shared.state, readonly=True) as state:
        found = [(place, known_of(state, place.name)) for place in shared.remotes]
    if options.json:
        listed = [
            {
                "name": place.name,
                "url": place.shown,
                "ref": place.ref,
                "encrypted": _is_known_encrypted(place, known),
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
        (place.name, message_text(place.shown), "yes" if _is_known_encrypted(place, known) else "no", _contact(place))
        for place, known in found
    ]
    columns = (Column("Remote"), Column("Address", shrinks=True), Column("Encrypted"), Column("Last contact"))
    show(table(columns, cells, Style.choose(options.color)))


def _is_known_encrypted(place: RemotePlace, known: Known) -> bool:
    return place.encrypt or known.key is not None


def _contact(place: RemotePlace) -> str:
    return format_time(place.contact_ns) if place.contact_ns else "never"
