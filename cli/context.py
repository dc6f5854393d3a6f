"""The context of a command: the two sides, the settings, the open session, and the conversations that it names.

Every start loads this module, so that it imports little: `open_session` imports the session's modules.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING

from reconcile.adapters.locate import FOLDERS, MARKS, format_at, formats_at, locate, lost_project, unmarked_format
from reconcile.adapters.roots import Request, refuse_state_inside
from reconcile.config import Settings, load_settings
from reconcile.errors import ReconcileError
from reconcile.model.options import Layout, Prefer
from reconcile.signals import Uninterrupted
from reconcile.state.directory import state_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from reconcile.adapters.roots import Roots
    from reconcile.engine.engine import Engine
    from reconcile.engine.session import Session
    from reconcile.model.format import Format
    from reconcile.model.policy import Policy
    from reconcile.state.directory import Generation

    from .arguments import Options

CANDIDATES = 4
"""The most conversations that the hint for an ambiguous text lists."""
_ANY_NAME = "any name"
"""An id in a format of which any name is one, and in no other."""
_EVERYTHING: Mapping[str, frozenset[str]] = {"only": frozenset(), "below": frozenset()}
_DATA = (".local", "Library")
"""The directories in the home that have the data of programs, on Linux and on macOS."""


def find_roots(options: Options) -> Roots:
    """Locate the two sides."""
    cwd = os.getcwd()
    return locate(options.format, options.workspace, options.store, cwd, os.environ, sys.platform)


def formats_here(options: Options, *, source: str | None = None, recovers: bool = False) -> tuple[str, ...]:
    """Return the formats of a project that has several, if the options choose none of them; empty otherwise.

    ``source`` and ``recovers`` as in `formats_at`.
    """
    return () if options.format is not None else formats_at(request_of(options), source=source, recovers=recovers)


def with_shared(options: Options, formats: tuple[str, ...]) -> tuple[str, ...]:
    """Return the formats, and that of the folder with shared sessions: it has runs of its own."""
    known = formats or (None if options.format is not None else fixed_format(options),)
    if "claude-code" not in known:
        return formats
    has_state = False
    with suppress(ReconcileError, OSError):
        key = find_roots(options.in_format("claude-shared")).key
        has_state = os.path.isdir(state_directory(key, os.environ, sys.platform))
    return tuple([name for name in (*known, "claude-shared") if name is not None]) if has_state else formats


def format_here(options: Options) -> str | None:
    """Return the format with fixed places that ``--format`` or the marks of the directory name; None: another."""
    if options.format is not None:
        return options.format if options.format in (*MARKS, "claude-code", "claude-shared") else None
    return format_at(request_of(options).path(options.workspace or ""))


def fixed_format(options: Options) -> str | None:
    """Return the format of `format_here`, or the one whose marks were here at the last run; None: another."""
    present = format_here(options)
    return present if present is not None or options.format is not None else unmarked_format(request_of(options))


def is_lost(options: Options, name: str) -> bool:
    """Tell whether a project's folder has lost all files that mark it as one of this format."""
    request = request_of(options)
    if name not in FOLDERS or format_at(request.path(options.workspace or "")) == name:
        return False
    return lost_project(name, request) is not None


def request_of(options: Options) -> Request:
    """Return what the options and the environment say of the place."""
    return Request(options.workspace, options.store, os.getcwd(), os.environ, sys.platform)


def settings_of(roots: Roots) -> Settings:
    """Read the configuration for this workspace."""
    return load_settings(os.environ, roots.workspace_id)


def with_layout(options: Options, settings: Settings) -> Settings:
    """Return the settings with the layout of ``--layout``, if that is given."""
    return settings._replace(layout=Layout(options.layout)) if options.layout else settings


def policy_of(options: Options, settings: Settings, ids: Mapping[str, frozenset[str]] = _EVERYTHING) -> Policy:
    """Return the policy of options and settings. ``ids`` are the resolved ids of ``only`` and ``below``."""
    from reconcile.model.policy import Policy  # here: a run with nothing to do needs none

    settings = with_layout(options, settings)
    return Policy(
        layout=settings.layout,
        prefer=Prefer(options.prefer),
        stream=settings.stream,
        diverged=settings.diverged,
        conflict=settings.conflict,
        missing=settings.missing,
        accept_bulk=options.allow_bulk_removal,
        only=ids["only"],
        below=ids["below"],
    )


def open_session(
    roots: Roots, settings: Settings, *, readonly: bool, stays: bool = False, sound: Generation | None = None
) -> Session:
    """Open a session on these sides; ``stays`` as in `Session`, ``sound`` as in `State.open`."""
    directory = state_directory(roots.key, os.environ, sys.platform)
    refuse_state_inside(roots, directory)
    if not readonly:
        refuse_missing_home(roots)
    with Uninterrupted():
        from reconcile.engine.session import Session
        from reconcile.formats import get_format

        get_format(roots.format)  # loads the format's modules while Ctrl-C waits
    return Session(roots, directory, readonly=readonly, stays=stays, sound=sound, ignore=settings.ignore)


def refuse_missing_home(roots: Roots) -> None:
    """Raise `Misuse` if the store is to be in a home directory that does not exist: no run creates that.

    A store elsewhere was named, by an option or a variable.
    """
    home = os.environ.get("HOME", "")
    if not os.path.isdir(home) and roots.store.startswith(tuple(os.path.join(home, name, "") for name in _DATA)):
        from .misuse import Misuse  # here: most homes exist

        raise Misuse("the directory that HOME names does not exist", "set it to your home directory: export HOME=DIR")


def is_id(form: Format, text: str) -> bool:
    """Tell whether a text is an id; that of a record with a fixed place is its path."""
    from reconcile.model.format import Entry  # here: few commands ask

    if form.places is None:
        return form.parse_id(text) == text
    if not {"", ".", ".."}.isdisjoint(text.split("/")):
        return False
    return Entry.RECORD in (form.places.entry(text, directory=directory) for directory in (False, True))


def find_ids(engine: Engine, texts: Iterable[str]) -> list[str]:
    """Return the ids of conversations as users write them: an id, the beginning of one, a title, or a part of a title.

    Raises:
        Misuse: a text fits no conversation, or several; the hint lists the candidates.
    """
    return [_find_id(engine, text) for text in texts]


def fitting(engine: Engine, text: str) -> list[str]:
    """Return the conversations that a text fits, as `find_ids` says."""
    for full in (text, engine.session.format.parse_id(text)):
        if full is not None and full in engine.known:
            return [full]
    return ids_that_begin(engine, text) or find_titles(engine, text)


def with_owned(engine: Engine, ids: Iterable[str]) -> tuple[str, ...]:
    """Return these, and after each the records that belong to it, in a format that has such."""
    places, chosen = engine.session.format.places, dict.fromkeys(ids)
    if places is None:
        return tuple(chosen)
    owned = (id_ for id_ in sorted(engine.known.conversations()) if places.owner(id_) in chosen)
    return (*chosen, *(id_ for id_ in owned if id_ not in chosen))


def _find_id(engine: Engine, text: str) -> str:
    matches = fitting(engine, text)
    if len(matches) == 1:
        return matches[0]
    from .misuse import Misuse  # here: most runs name no conversation

    noun = engine.session.roots.noun

    if not matches:
        words = "id" if _is_id(engine, text) else "id or title"
        least = f"a part of a title has at least {_least(text)} letters; " if len(_folded(text)) < _least(text) else ""
        near = near_hint(engine, text) or f"`reconcile ls` lists the {noun}s"
        raise Misuse(f"no {noun} has the {words} {text!r}", f"{least}{near}")
    titles = dict(_titles(engine))
    shown = [f"{id_}  {titles.get(id_, '')}".rstrip() for id_ in matches[:CANDIDATES]]
    if len(matches) > CANDIDATES:
        shown.append(f"and {len(matches) - CANDIDATES} more: reconcile ls")
    raise Misuse(f"{text!r} is ambiguous: it fits {len(matches)} {noun}s", "\n".join(shown))


def near_hint(engine: Engine, text: str) -> str | None:
    """Return the hint that names the conversations which a mistyped text may stand for; None if none is similar."""
    from .misuse import did_you_mean  # here, as in `_find_id`
    from .nearest import nearest
    from .output.text import shorten, visible

    titled, places = list(_titles(engine)), engine.session.format.places
    listed = _names_of_ids(engine).items()
    owners = {id_: (places.owner(id_) if places is not None else None) or id_ for id_, _ in listed}
    names = ((owners[id_], name) for id_, known in listed for name in known)
    folded = ((id_, _folded(title)) for id_, title in titled)
    typed = {_folded(text), text, engine.session.format.parse_id(text) or ""}
    near, titles = nearest(typed, chain(names, folded)), dict(titled)
    if not near and 0 < len(_folded(text)) < _least(text):  # what it would mean if it were longer
        parts = sorted(_with_part([(id_, _folded(title)) for id_, title in titled], _folded(text)))
        near = parts if len(parts) == 1 else []
    named = [f"{id_} ({shorten(visible(titles[id_]), 40)})" if titles.get(id_) else id_ for id_ in near]
    return did_you_mean(named) if named else None


def parts_of_titles(engine: Engine, texts: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return id and title of those texts that are neither an id, nor the beginning of one, nor a whole title.

    Each text must fit one conversation (`find_ids`).
    """
    found = {}
    for text, id_ in zip(texts, find_ids(engine, texts), strict=True):
        if engine.session.format.parse_id(text) == id_ or ids_that_begin(engine, text):
            continue
        titles = [title for known, title in _titles(engine) if known == id_]
        if _folded(text) not in map(_folded, titles):
            found[text] = id_, titles[-1]
    return found


def _is_id(engine: Engine, text: str) -> bool:
    """Tell whether a text could be a complete id, which never stands for a title.

    None could in a format of which any name is an id.
    """
    fmt = engine.session.format
    return fmt.parse_id(_ANY_NAME) is None and (fmt.is_whole(text) or fmt.parse_id(text) is not None)


def ids_that_begin(engine: Engine, text: str) -> list[str]:
    """Return the conversations of which the id, or the directory's name, begins with the text.

    Without those that belong to one of these: an id of a session stands for the session, not for a file beside it.
    """
    fmt = engine.session.format
    if not text or fmt.is_whole(text):
        return []
    names = _names_of_ids(engine)
    matches = {id_ for id_, known in names.items() if any(name.startswith(text) for name in known)}
    tops = matches if fmt.places is None else {id_ for id_ in matches if fmt.places.owner(id_) not in matches}
    return sorted(tops, key=fmt.order)


def _names_of_ids(engine: Engine) -> dict[str, tuple[str, ...]]:
    """Return the names of each conversation that a prefix may match: its id, its path, the last part of its path."""
    known, places = engine.known, engine.session.format.places
    paths: dict[str, str] = {}
    for side in known.sides.values():
        for path, conversation in side.paths.items():
            paths[conversation] = path if places is not None else path.rpartition("/")[2]
    names = ((id_, paths.get(id_, "")) for id_ in known.conversations())
    return {id_: (id_, path, path.rpartition("/")[2]) for id_, path in names}


def find_titles(engine: Engine, text: str) -> list[str]:
    """Return the conversations with this title, or else those that have the text in their title.

    Case and white space don't count. A text that could be a complete id fits no title.
    """
    return titles_like(engine, text, _titles(engine))


def titles_like(engine: Engine, text: str, named: Iterable[tuple[str, str]]) -> list[str]:
    """Return those of these conversations that have the title, or else that have the text in theirs.

    A part of a title never means the fork of a conflict, which repeats the title, if it fits one other conversation.
    A shorter text than `_SHORTEST_PART` fits only a whole title: nothing may be published or removed by a typing error.
    """
    wanted = _folded(text)
    if not wanted or _is_id(engine, text):
        return []
    titles = [(id_, _folded(title)) for id_, title in named]
    exact = {id_ for id_, title in titles if title == wanted}
    is_part = len(wanted) >= _least(wanted)
    found = exact or _with_part(titles, wanted) if is_part else exact
    return sorted(found, key=engine.session.format.order)


def _with_part(titles: Iterable[tuple[str, str]], part: str) -> set[str]:
    """Return the conversations that have a text in their title; without the forks of conflicts, if one other has it."""
    from reconcile.planning.steps.content import DIVERGED  # here: few commands name a title

    fitting = [(id_, title) for id_, title in titles if part in title]
    others = {id_ for id_, title in fitting if not title.startswith(f"{DIVERGED} ")}
    return others if len(others) == 1 else {id_ for id_, _ in fitting}


_SHORTEST_PART = 3
"""Number of letters of the shortest part of a title that names a conversation."""


def _least(text: str) -> int:
    """Return the number of letters that a part of a title has at least: two ideographs are a word."""
    return _SHORTEST_PART if text.isascii() else 2


def _folded(text: str) -> str:
    import unicodedata  # here: few commands name a title

    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def _titles(engine: Engine) -> Iterator[tuple[str, str]]:
    """Yield each conversation outside of the trash with its title, once for each copy; the workspace's last."""
    from reconcile.model.snapshot import Metadata  # here, as above

    for side in engine.known.sides.values():
        for copy in side.copies():
            metadata = copy.metadata
            if isinstance(metadata, Metadata) and metadata.title and side.is_outside_trash(copy.conversation):
                yield copy.conversation, metadata.title
