"""The secrets that a sync sends to a remote that is not encrypted: a sync reports them, and blocks nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from reconcile.formats import get_format
from reconcile.model.commands import typed
from reconcile.model.plan import counted_as
from reconcile.model.snapshot import Side

from ..output.text import clean, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reconcile.adapters.roots import Roots
    from reconcile.engine.engine import Engine
    from reconcile.remote.known import Report
    from reconcile.remote.place import RemotePlace

_SHOWN = 3
"""Conversations that a message names."""


class Carrier(NamedTuple):
    """A conversation with secrets, and these without their text."""

    id: str
    title: str | None
    findings: tuple[str, ...]


def carriers_sent(report: Report, roots: Roots) -> list[Carrier]:
    """Return the conversations whose secrets a sync sends; a session has those of the files beside it."""
    titles = {entry.id: entry.title for entry in (*report.sent, *report.forked)}
    return _counted(report.secrets, titles, roots)


def carriers_in_store(engine: Engine) -> list[Carrier]:
    """Return the conversations in the store that have a secret that isn't allowed. It reads everything.

    Raises:
        StateError: the list of allowed secrets can't be read.
    """
    from reconcile.inspect.published_secrets import secrets_of  # here: few commands look for secrets

    copies = [copy for copy in engine.known.sides[Side.STORE].copies() if copy.files]
    found: dict[str, tuple[str, ...]] = {}
    for conversation, words in secrets_of(engine.session, copies):
        found[conversation] = (*found.get(conversation, ()), words)
    titles = {copy.conversation: getattr(copy.metadata, "title", None) for copy in copies}
    return _counted(found, titles, engine.session.roots)


def _counted(findings: Mapping[str, tuple[str, ...]], titles: Mapping[str, str | None], roots: Roots) -> list[Carrier]:
    places = get_format(roots.format).places
    carriers: dict[str, Carrier] = {}
    for key, words in findings.items():
        id_ = counted_as(key, places)
        before = carriers.get(id_, Carrier(id_, titles.get(id_), ()))
        carriers[id_] = before._replace(findings=(*before.findings, *words))
    return list(carriers.values())


def sent_words(carriers: Sequence[Carrier], noun: str) -> str:
    """Return the message about secrets that were sent."""
    was = "was" if len(carriers) == 1 else "were"
    each = "the secret" if sum(len(carrier.findings) for carrier in carriers) == 1 else "each secret"
    return f"{_number(carriers, noun)} {was} sent unencrypted: {names_of(carriers)}; revoke {each} where it was made"


def unsent_words(carriers: Sequence[Carrier], noun: str, remotes: Sequence[RemotePlace], place: RemotePlace) -> str:
    """Return the message about secrets that a sync would send, with the command that keeps them here."""
    name = ["--name", place.name] if len(remotes) > 1 else []
    ids = [carrier.id for carrier in carriers[:_SHOWN]]
    return (
        f"{_number(carriers, noun)} would be sent unencrypted: {names_of(carriers)}; "
        f"to keep {'it' if len(carriers) == 1 else 'them'} on this machine: "
        f"{typed('reconcile', 'remote', 'keep-here', *name, *ids)}"
    )


def _number(carriers: Sequence[Carrier], noun: str) -> str:
    return f"{len(carriers)} {noun}{'' if len(carriers) == 1 else 's'} with a secret"


def names_of(carriers: Sequence[Carrier]) -> str:
    """Return the first conversations, each with its first secret."""
    names = []
    for id_, title, findings in carriers[:_SHOWN]:
        name = f"{visible(title)} ({clean(id_)})" if title and title != id_ else clean(id_)
        more = f" and {len(findings) - 1} more" if len(findings) > 1 else ""
        names.append(f"{name}, {findings[0]}{more}")
    rest = len(carriers) - len(names)
    return "; ".join([*names, *([f"and {rest} more"] if rest else [])])
