"""The candidates of a shell's completion: ids with titles, runs, saved versions and formats. Reads only."""

from __future__ import annotations

import os
import sys
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

from reconcile.adapters.locate import locate_lost
from reconcile.adapters.roots import LocateError
from reconcile.config import Settings
from reconcile.formats import get_format
from reconcile.formats.jp.files import METADATA_FILE
from reconcile.index.file import IndexFile
from reconcile.model.format import Entry
from reconcile.model.snapshot import Metadata
from reconcile.state.directory import state_directory

from .context import find_roots, formats_here, open_session, settings_of
from .output.text import clean, format_time, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from reconcile.adapters.roots import Roots
    from reconcile.engine.session import Session
    from reconcile.model.format import Format

    from .arguments import Options

_NEWEST = 50
"""The runs that are searched for saved versions."""
_MOST = 1000
"""The most ids or titles that are printed."""
_READ = 100
"""The most titles that are read from files, as no run has saved them yet."""


def candidates(kind: str, options: Options, incomplete: str) -> list[CompletionItem]:
    """Return the candidates of a kind: ids, runs, versions, sources, checkouts, formats, settings, file or dir."""
    kinds: dict[str, Callable[[Options, str], Iterable[CompletionItem]]] = {
        "ids": _ids,
        "runs": _runs,
        "versions": _versions,
        "sources": _sources,
        "checkouts": _checkouts,
        "formats": lambda _, text: map(CompletionItem, (name for name in _FORMATS if name.startswith(text))),
        "settings": lambda _, text: map(CompletionItem, (name for name in Settings._fields if name.startswith(text))),
        "file": lambda _, text: [CompletionItem(text, type="file")],
        "dir": lambda _, text: [CompletionItem(text, type="dir")],
    }
    return list(kinds[kind](options, incomplete))


_FORMATS = ("jp", "plain", "leslie", "claudesidian", "claude-code", "claude-shared")


def _roots(options: Options) -> Iterator[Roots]:
    """Yield the two sides of each format of the project, also of one whose ``.jp`` is gone.

    Of one that can't be located, nothing is known.
    """
    for chosen in [options.in_format(name) for name in formats_here(options)] or [options]:
        try:
            yield find_roots(chosen)
        except LocateError:
            if chosen.format in (None, "jp"):
                with suppress(LocateError):
                    yield locate_lost(chosen.workspace, chosen.store, None, os.getcwd(), os.environ, sys.platform)


def _ids(options: Options, text: str) -> Iterator[CompletionItem]:
    """Yield ids with titles, the newest first; or titles, where the text is the beginning of one and of no id."""
    titles: dict[str, tuple[str | None, str]] = {}
    for roots in _roots(options):
        titles |= _titles(roots)
    fitting = [id_ for id_, (title, name) in titles.items() if id_.startswith(text) or name.startswith(text)]
    if fitting:
        for id_ in sorted(fitting, reverse=True)[:_MOST]:
            title, name = titles[id_]
            value = id_ if id_.startswith(text) else name
            yield CompletionItem(value, help=visible(title or ""))
        return
    wanted, counts = text.casefold(), Counter(title for title, _ in titles.values())
    begun = [id_ for id_, (title, _) in titles.items() if title and title.casefold().startswith(wanted)]
    for id_ in sorted(begun, reverse=True)[:_MOST]:
        title = titles[id_][0] or ""
        shown = title.isprintable() and counts[title] == 1
        yield CompletionItem(title if shown else id_, help=id_ if shown else visible(title))


def _titles(roots: Roots) -> dict[str, tuple[str | None, str]]:
    """Return title and directory name of each conversation, as the last run has saved them, or else from the files."""
    fmt = get_format(roots.format)
    directory = state_directory(roots.key, os.environ, sys.platform)
    known: dict[str, tuple[str | None, str]] = {}
    for index in IndexFile(directory, roots.workspace_identity).load_indexes()[1]:
        for path, row in index.rows.items():
            _add(known, fmt, path, row.title)
    missing: dict[str, str] = {}
    for side in (roots.store_conversations, roots.workspace_conversations):
        for conversation, path in _listed(fmt, side):
            if known.get(conversation, (None,))[0] is None:
                missing[conversation] = os.path.join(side, path)
    for number, conversation in enumerate(sorted(missing, reverse=True)):
        path = missing[conversation]
        title = _title_in(fmt, path) if number < _READ and fmt.places is None else None
        known[conversation] = (title, conversation if fmt.places is not None else os.path.basename(path))
    return known


def _title_in(fmt: Format, path: str) -> str | None:
    """Return the title in a conversation's directory."""
    with suppress(OSError), open(os.path.join(path, METADATA_FILE), "rb") as file:
        metadata = fmt.read_metadata(file.read())
        return metadata.title if isinstance(metadata, Metadata) else None
    return None


def _add(known: dict[str, tuple[str | None, str]], fmt: Format, path: str, title: str | None) -> None:
    name = path if fmt.places is not None else path.rpartition("/")[2]
    conversation = path if fmt.places is not None else fmt.parse_id(name)
    if conversation is not None and not path.startswith(".trash/"):
        known[conversation] = (title, name)


def _listed(fmt: Format, side: str) -> Iterator[tuple[str, str]]:
    """Yield the id and the path below the side of each record at its top: no run may have saved the newest ones."""
    places = fmt.places
    for top in (places.tops if places is not None else ()) or ("",):
        with suppress(OSError), os.scandir(os.path.join(side, top)) as entries:
            for entry in entries:
                path, is_directory = os.path.join(top, entry.name), entry.is_dir(follow_symlinks=False)
                if places is None:
                    conversation = fmt.parse_id(path) if is_directory else None
                else:
                    is_record = places.entry(path, directory=is_directory) is Entry.RECORD
                    conversation = path if is_record and not entry.is_symlink() else None
                if conversation is not None:
                    yield conversation, path


def _runs(options: Options, text: str) -> Iterator[CompletionItem]:
    for session in _sessions(options):
        for run in session.state.journal.runs():
            if run.id.startswith(text):
                yield CompletionItem(run.id, help=f"{format_time(run.started_ns)}  {clean(run.command)}")


def _versions(options: Options, text: str) -> Iterator[CompletionItem]:
    """Yield the conversations that the newest runs have replaced or removed, each with its run."""
    for session in _sessions(options):
        for run in session.state.journal.runs()[:_NEWEST]:
            names = {f"{version.conversation}@{run.id}" for version in session.state.versions.of_run(run.id)}
            for name in sorted(names):
                if name.startswith(text):
                    yield CompletionItem(name, help=run.command)


def _sources(options: Options, text: str) -> Iterator[CompletionItem]:
    """Yield what `show` and `diff` take: ids, and after ``@`` the two sides, saved versions, and other checkouts."""
    name, at, place = text.rpartition("@")
    if not at:
        yield from _ids(options, text)
        return
    for side in ("store", "workspace"):
        if side.startswith(place):
            yield CompletionItem(f"{name}@{side}", help="as it is now")
    yield from _versions(options, text)
    for session in _sessions(options):
        for checkout in session.state.checkouts():
            if checkout.id != session.checkout and checkout.project.startswith(place):
                yield CompletionItem(f"{name}@{checkout.project}", help="another checkout")


def _checkouts(options: Options, text: str) -> Iterator[CompletionItem]:
    """Yield the paths of the store's checkouts, each with its state, the last seen first; or else any directory.

    A path is relative if the text begins as that one does.
    """
    states: dict[str, str] = {}
    for session in _sessions(options):
        for checkout in sorted(session.state.checkouts(), key=lambda seen: seen.last_seen, reverse=True):
            states.setdefault(checkout.project, session.state_of(checkout))
    found = False
    for project, state in states.items():
        paths = (project, os.path.relpath(project))
        if path := next((each for each in paths if each.startswith(os.path.expanduser(text))), ""):
            found = True
            yield CompletionItem(path, help=state)
    if not found:
        yield CompletionItem(text, type="dir")


def _sessions(options: Options) -> Iterator[Session]:
    """Yield the open session of each format of the project."""
    for roots in _roots(options):
        with open_session(roots, settings_of(roots), readonly=True) as session:
            yield session
