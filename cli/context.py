"""The context of a command: the two sides, the settings, the open session, and the conversations that it names.

Every start loads this module, so that it imports little: `open_session` imports the session's modules.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from reconcile.adapters.locate import MARKS, format_at, locate, lost_format
from reconcile.adapters.roots import Request, refuse_state_inside
from reconcile.config import Settings, load_settings
from reconcile.model.options import Layout, Prefer
from reconcile.signals import Uninterrupted
from reconcile.state.directory import state_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconcile.adapters.roots import Roots
    from reconcile.engine.engine import Engine
    from reconcile.engine.session import Session
    from reconcile.model.policy import Policy
    from reconcile.state.directory import Generation

    from .arguments import Options

_EVERYTHING: Mapping[str, frozenset[str]] = {"only": frozenset(), "below": frozenset()}


def find_roots(options: Options) -> Roots:
    """Locate the two sides."""
    cwd = os.getcwd()
    return locate(options.format, options.workspace, options.store, cwd, os.environ, sys.platform)


def format_here(options: Options) -> str | None:
    """Return the format with fixed places that ``--format`` or the marks of the directory name; None: another."""
    if options.format is not None:
        return options.format if options.format in MARKS else None
    return format_at(_request(options).path(options.workspace or ""))


def fixed_format(options: Options) -> str | None:
    """Return the format of `format_here`, or the one whose marks were here at the last run; None: another."""
    present = format_here(options)
    return present if present is not None or options.format is not None else lost_format(_request(options))


def _request(options: Options) -> Request:
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
        accept_bulk="bulk" in options.accept,
        only=ids["only"],
        below=ids["below"],
    )


def open_session(roots: Roots, settings: Settings, *, readonly: bool, sound: Generation | None = None) -> Session:
    """Open a session on these sides. ``sound`` as in `reconcile.state.database.State.open`."""
    directory = state_directory(roots.key, os.environ, sys.platform)
    refuse_state_inside(roots, directory)
    with Uninterrupted():
        from reconcile.engine.session import Session
        from reconcile.formats import get_format

        get_format(roots.format)  # loads the format's modules while Ctrl-C waits
    return Session(roots, directory, readonly=readonly, sound=sound, ignore=settings.ignore)


def find_ids(engine: Engine, texts: Iterable[str]) -> list[str]:
    """Return the ids of conversations as users write them: full, decimal, a directory's name, or an unambiguous prefix.

    Raises:
        click.UsageError: an id is unknown or ambiguous; the message lists the candidates.
    """
    return [_find_id(engine, text) for text in texts]


def _find_id(engine: Engine, text: str) -> str:
    known, fmt = engine.known, engine.session.format
    full = fmt.parse_id(text)
    if full is not None and full in known:
        return full
    import click  # here: most runs name no conversation

    names: dict[str, str] = {}
    for side in known.sides.values():
        for path, conversation in side.paths.items():
            names[conversation] = path if fmt.places is not None else path.rpartition("/")[2]
    candidates = known.conversations() if text and not fmt.is_whole(text) else ()
    matches = sorted(
        (id_ for id_ in candidates if any(name.startswith(text) for name in _names(id_, names.get(id_, "")))),
        key=fmt.order,
    )
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise click.UsageError(f"no conversation is called {text!r}; `reconcile ls` lists them")
    shown = ", ".join(names.get(id_, id_) for id_ in matches[:5])
    more = f" and {len(matches) - 5} more" if len(matches) > 5 else ""
    raise click.UsageError(f"{text!r} is ambiguous: {shown}{more}")


def _names(conversation: str, dirname: str) -> tuple[str, ...]:
    """Return the names of a conversation that a prefix may match: its id, its path, the last part of its path."""
    return conversation, dirname, dirname.rpartition("/")[2]
