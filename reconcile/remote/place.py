"""The remotes of one store, as the user has named them.

They lie in the state directory, so that no file of a project can name one (docs/design/remotes.md#privacy).
"""

from __future__ import annotations

import json
import os
import re
import shutil
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct

from reconcile.fs.private_files import make_private_directory, replace_private_file
from reconcile.model.snapshot import Side
from reconcile.remote.engine import RemoteError, UnknownRemoteError, UnwritableError
from reconcile.remote.git.address import without_password
from reconcile.remote.git.engine import GitEngine
from reconcile.remote.sealing import Keys
from reconcile.state.directory import REMOTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.adapters.roots import Roots
    from reconcile.remote.engine import RemoteEngine

_FILE, _CONTACT = "remote.json", "contact"
_REFS, _BRANCHES = "refs/reconcile/", "refs/heads/reconcile/"
_RUN = re.compile(r"[0-9-]+")
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,39}")


class _Recorded(Struct):
    """The file of a remote. Older versions have recorded no name of the store."""

    url: str
    store: str = ""
    encrypt: bool = False
    branch: bool = False


class RemotePlace(NamedTuple):
    """One remote of a store: its name, its address, and the directory with what this machine knows of it.

    ``store`` is the name of the store on every machine. ``is_branch``: the host takes only branches.
    """

    name: str
    url: str
    store: str
    directory: str
    encrypt: bool = False
    is_branch: bool = False

    @property
    def shown(self) -> str:
        """The address, without a password."""
        return without_password(self.url)

    @property
    def mirror(self) -> str:
        """The bare repository that has what was fetched: a cache."""
        return os.path.join(self.directory, "mirror")

    @property
    def tree(self) -> str:
        """The directory with the files of the remote, as the workspace of a run: a cache, too."""
        return os.path.join(self.directory, "tree")

    @property
    def ref(self) -> str:
        """The ref of the store."""
        return (_BRANCHES if self.is_branch else _REFS) + self.store

    @property
    def cache(self) -> str:
        """The file with the tree that was read last: a cache."""
        return os.path.join(self.directory, "tree-cache")

    @property
    def rotation(self) -> str:
        """The file with the keys of a rotation that has begun (`reconcile.remote.rekey`)."""
        return os.path.join(self.directory, "rotation")

    @property
    def private(self) -> str:
        """The file with the private conversations of the last synced commit: a cache."""
        return os.path.join(self.directory, "private")

    @property
    def last_sync(self) -> str:
        """The file beside the index of the last sync (`reconcile.remote.last_sync`): a cache."""
        return os.path.join(self.directory, "last-sync")

    @property
    def contact_ns(self) -> int:
        """The time of the last sync; 0: there was none."""
        try:
            return os.stat(os.path.join(self.directory, _CONTACT)).st_mtime_ns
        except FileNotFoundError:
            return 0

    def note_contact(self) -> None:
        """Note that a sync has ended. A write to the state would make the next sync look at everything."""
        replace_private_file(os.path.join(self.directory, _CONTACT))

    @property
    def refusal(self) -> str:
        """The reason why the last sync was refused; empty if it was not, or if there was none before."""
        try:
            with open(os.path.join(self.directory, _CONTACT), encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def note_refusal(self, why: str) -> None:
        """Note why a sync was refused; an empty text: none is any more. The time of the last one stays."""
        if (last_ns := self.contact_ns) and why != self.refusal:
            path = os.path.join(self.directory, _CONTACT)
            replace_private_file(path, why.encode(errors="replace"))
            os.utime(path, ns=(last_ns, last_ns))

    @property
    def engine(self) -> RemoteEngine:
        """The engine of the address: git, as long as there is no other one."""
        return GitEngine(self.url, self.ref, self.mirror)

    @property
    def keys(self) -> Keys:
        """The key of this machine, which lies beside the states of all stores."""
        states = os.path.dirname(os.path.dirname(os.path.dirname(self.directory)))
        return Keys(states, is_wanted=self.encrypt)


def store_name(roots: Roots, known_as: str | None) -> str:
    """Return the name of a store that is the same on every machine: the one that the user gives, or its own.

    Raises:
        RemoteError: there is none.
    """
    if known_as is not None and _NAME.fullmatch(known_as) is None:
        raise RemoteError(f"{known_as!r} can't be the name of a store", "use letters, digits, - and _")
    if not (known_as or roots.name_elsewhere):
        raise RemoteError(
            f"{roots.store}: this store has no name that other machines know it by",
            "give it one, the same on each machine: reconcile remote add URL --as NAME",
        )
    return f"{roots.format}-{known_as}" if known_as else roots.name_elsewhere


def remotes(state: str, store: str) -> list[RemotePlace]:
    """Return the remotes of a store by name; ``store`` is its own name elsewhere.

    Raises:
        RemoteError: the record of one is damaged.
    """
    above = os.path.join(state, REMOTES)
    found = []
    for name in sorted(os.listdir(above)) if os.path.isdir(above) else ():
        directory = os.path.join(above, name)
        if os.path.isfile(os.path.join(directory, _FILE)):
            found.append(_recorded(name, directory, store))
    return found


def _recorded(name: str, directory: str, store: str) -> RemotePlace:
    path = os.path.join(directory, _FILE)
    with open(path, "rb") as file:
        content = file.read()
    try:
        known = msgspec.json.decode(content, type=_Recorded)
    except msgspec.DecodeError as error:
        hint = f"move {directory} away, then add the remote again: reconcile remote add URL --name {name}"
        raise RemoteError(f"{path}: it is damaged ({error})", hint) from None
    return RemotePlace(name, known.url, known.store or store, directory, known.encrypt, known.branch)


def chosen(state: str, store: str, text: str | None, naming: Callable[[str], str]) -> RemotePlace:
    """Return the remote with this name or address; None: the only one.

    ``naming`` returns the command of the user with the name of a remote, for the hint if there are several.

    Raises:
        UnknownRemoteError: there is none, or there are several.
    """
    known = remotes(state, store)
    fitting = [place for place in known if text is None or text in (place.name, place.url)]
    if len(fitting) == 1:
        return fitting[0]
    if not known:
        hint = "add one, a private git repository of your own: reconcile remote add URL"
        raise UnknownRemoteError("no remote is known for this store", hint)
    names = ", ".join(place.name for place in known)
    if text:
        raise UnknownRemoteError(f"no remote is called {without_password(text)}", f"one of: {names}")
    raise UnknownRemoteError(f"there are several remotes: {names}", f"name one: {naming(known[0].name)}")


def new_place(state: str, store: str, url: str, name: str | None, *, encrypt: bool = False) -> RemotePlace:
    """Return a remote that is not recorded yet.

    Raises:
        RemoteError: its name is no name, or is taken; or the address has a name already.
    """
    known = remotes(state, store)
    for place in known:
        if (place.url, place.store) == (url, store):
            raise RemoteError(
                f"{without_password(url)} is the remote {place.name} already",
                f"sync with it: reconcile sync {place.name}",
            )
    name = name or next(text for text in ("origin", *(f"remote{n}" for n in range(2, 99))) if text not in _names(known))
    if _NAME.fullmatch(name) is None or name in tuple(Side) or _RUN.fullmatch(name):
        raise RemoteError(
            f"{name!r} can't be the name of a remote", "use letters, digits, - and _, and no name of a side or a run"
        )
    if name in _names(known):
        raise RemoteError(f"a remote is called {name} already", "choose another one: --name NAME")
    return RemotePlace(name, url, store, os.path.join(state, REMOTES, name), encrypt)


def probed(place: RemotePlace) -> RemotePlace:
    """Try a new remote; return it with the kind of ref that its host takes, a branch if it takes only those.

    A branch of another machine is used in any case: with two refs, a host would have two stores.

    Raises:
        RemoteError: the host can't be used.
    """
    branch = place._replace(is_branch=True)
    try:
        place.engine.probe()
    except UnwritableError as refused:
        try:
            branch.engine.probe()
        except UnwritableError:
            raise refused from None
        return branch
    return branch if branch.engine.exists() and not place.engine.exists() else place


def _names(known: list[RemotePlace]) -> set[str]:
    return {place.name for place in known}


def record(place: RemotePlace) -> None:
    """Record a remote."""
    make_private_directory(place.directory)
    known = {"url": place.url, "store": place.store, "encrypt": place.encrypt, "branch": place.is_branch}
    replace_private_file(os.path.join(place.directory, _FILE), json.dumps(known, indent=2).encode() + b"\n")


def forget(place: RemotePlace) -> None:
    """Forget a remote on this machine; what was sent stays there."""
    shutil.rmtree(place.directory, ignore_errors=True)
