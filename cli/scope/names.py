"""Whether a format of the project knows the conversations, runs and versions that a command names.

Each kind is resolved by the rules of the commands. A text that fits several things is known, too: the command says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.engine.run_history import NoRunError
from reconcile.engine.versions import NoVersionError, holdings, saved_ids
from reconcile.errors import ReconcileError
from reconcile.inspect.sources import is_hash, is_path, split_spelling, split_unit
from reconcile.model.snapshot import Side

from ..context import fitting
from ..misuse import Misuse
from ..run import opened
from ..saved_versions import version_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from reconcile.engine.engine import Engine

    from ..arguments import Options

    Named = tuple[str, str]
    """A kind of names (a key of `KINDS`), and a text that a user has typed."""


def knows_all(options: Options, named: Iterable[Named]) -> bool:
    """Tell whether the sides of these options know all names; not if they can't be opened."""
    try:
        with opened(options) as engine:
            return all(KINDS[kind](engine, text) for kind, text in named)
    except (ReconcileError, OSError):
        return False


def _knows_id(engine: Engine, text: str) -> bool:
    return bool(fitting(engine, text))


def _knows_run(engine: Engine, text: str) -> bool:
    return bool(text) and any(run.id.startswith(text) for run in engine.session.state.journal.runs())


def _knows_version(engine: Engine, text: str) -> bool:
    try:
        version_name(engine, text, "")
    except (NoVersionError, NoRunError):
        return False
    except Misuse:  # one of several is to be chosen
        return True
    return True


def _knows_source(engine: Engine, text: str) -> bool:
    session = engine.session
    name, place = split_spelling(text)
    if place is None:
        return is_hash(session, text) or _knows_id(engine, split_unit(text)[0])
    place = place.partition(":")[0]
    if place in tuple(Side) or is_path(place) or not _knows_run(engine, place):  # a path, perhaps
        return _knows_id(engine, name)
    return _knows_id(engine, name) or bool(saved_ids(session.state, name, session.format))


def _knows_object(engine: Engine, text: str) -> bool:
    objects = holdings(engine.session.state, engine.session.vault)
    return bool(text) and any(each.digest.startswith(text.lower()) for each in objects)


KINDS: Mapping[str, Callable[[Engine, str], bool]] = {
    "ids": _knows_id,
    "runs": _knows_run,
    "versions": _knows_version,
    "sources": _knows_source,
    "objects": _knows_object,
}
"""The kinds of names, as `reconcile_cli.candidates.candidates` calls them, and of objects in the vault."""
