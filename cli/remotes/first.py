"""The question before the first content of an empty remote is sent, for whoever added it by `reconcile sync URL`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.adapters.roots import LocateError
from reconcile.formats import get_format
from reconcile.fs.paths import quoted_path
from reconcile.model.plan import counted_as
from reconcile.model.snapshot import Side

from ..output.interaction import cancel, confirm, is_interactive, wrapped_question
from ..run import opened
from .sent_secrets import carriers_in_store, names_of

if TYPE_CHECKING:
    from reconcile.adapters.roots import Roots

    from ..arguments import Options
    from .sent_secrets import Carrier


def confirm_first(options: Options, roots: Roots, shown: str) -> None:
    """Ask at a terminal whether everything is sent to an empty remote; a no ends the command.

    ``shown`` is the address. A script is asked nothing: its command was explicit.
    """
    if options.yes or not is_interactive(options):
        return
    total, private, carriers = counts(options, roots, with_secrets=True)
    if not total:
        return
    noun = roots.noun if total == 1 else f"{roots.noun}s"
    included = f", {private} of them private" if private else ""
    included += f", {len(carriers)} with a secret ({names_of(carriers)})" if carriers else ""
    subject, them = ("It is", "it") if total == 1 else ("They are", "them")
    text = wrapped_question(
        f"{shown} is empty: this sync sends {total} {noun} to it{included}. {subject} not encrypted: whoever can read "
        f"that repository can read {them}. To encrypt what is sent, answer no, and then:"
    )
    # A command is never wrapped: people copy it.
    command = f"reconcile remote add --encrypt {quoted_path(shown)}{options.sides}"
    if not confirm(options, f"\n{text}\n  {command}\nSend {them}?"):
        cancel(options)


def counts(options: Options, roots: Roots, *, with_secrets: bool = False) -> tuple[int, int, list[Carrier]]:
    """Return the number of conversations in the store, and of those that the project doesn't have.

    ``with_secrets``: also return those that have a secret, for which everything is read.
    """
    places = get_format(roots.format).places
    try:
        with opened(options.in_format(roots.format)) as engine:
            ids = {
                side: {counted_as(copy.conversation, places) for copy in engine.known.sides[side].copies()}
                for side in Side
            }
            carriers = carriers_in_store(engine) if with_secrets else []
    except LocateError:  # of sessions in the home, nothing is here yet
        return 0, 0, []
    store = ids[Side.STORE]
    return len(store), len(store - ids[Side.WORKSPACE]) if roots.is_in_project else 0, carriers
