"""``reconcile remote``, ``sync``, ``pull`` and ``push``: the remotes of a store, and the sync with one of them."""

from __future__ import annotations

from typing import Any

import click

from reconcile.remote.known import Half
from reconcile.remote.place import chosen

from ..command import Command
from ..misuse import Misuse
from ..options import command_line, options_of
from ..output.documents import print_document
from ..output.interaction import print_message
from ..remotes.actions import add, list_remotes, remove, shared_store
from ..remotes.keys import keys
from ..remotes.syncing import run_sync

_WORDS = {"add": (1, 1, "one URL"), "remove": (1, 1, "one NAME"), "check": (0, 1, "at most one NAME")}
"""The least and the greatest number of words after an action, and their names."""
_OWN = {"name": ("add", "key"), "encrypt": ("add",)}
"""The actions to which an option belongs."""


@click.command(
    "remote",
    cls=Command,
    prints_sides=False,
    accepts=("json", "quiet"),
    examples=(
        ("reconcile remote add git@example.org:me/chats.git", "Check a private repository, and remember it."),
        ("reconcile remote", "List the remotes of this store."),
        ("reconcile remote check", "Check the remote again: can it be reached, and relied on?"),
        ("reconcile remote remove origin", "Forget a remote on this machine; it keeps what it has."),
        ("reconcile remote add --encrypt git@example.org:me/chats.git", "Encrypt all that is sent to an empty one."),
        ("reconcile remote key", "Show the key of this machine, and those that can read the remote."),
    ),
)
@click.argument("action", type=click.Choice(["add", "ls", "check", "key", "remove"]), metavar="[ACTION]", default="ls")
@click.argument("words", nargs=-1, metavar="[URL|NAME|KEY]")
@click.option("--name", metavar="NAME", help="With add: the remote's name on this machine (default: origin).")
@click.option("--encrypt", is_flag=True, help="With add, for a new remote: encrypt all that is sent, with age.")
@click.pass_context
def remote(context: click.Context, action: str, words: tuple[str, ...], name: str | None, encrypt: bool) -> None:
    """Add, list, check and remove the remotes of the store.

    ACTION is add, ls, check, key or remove. A remote is a git repository of your own, through which your machines share
    the whole store, private conversations included. `add` checks that the host can be relied on, and that neither the
    project nor the world reads the repository. It shows how much would be sent, and sends nothing: `reconcile sync`
    does that. Whoever can read the repository can read all of it, unless the remote was added with --encrypt.

    `key add KEY` lets the machine with this public key read an encrypted remote. `key remove KEY` encrypts everything
    again for all others, and `key rotate` for all.
    """
    options, command = options_of(context), command_line(context)
    least, most, needed = _WORDS.get(action, (0, 0, "nothing"))
    if action != "key" and not least <= len(words) <= most:
        raise Misuse(f"reconcile remote {action} takes {needed}", "reconcile remote --help", context)
    if (name is not None and action not in ("add", "key")) or (encrypt and action != "add"):
        which = "--encrypt" if encrypt else "--name"
        raise Misuse(f"{which} belongs to `reconcile remote add`", "reconcile remote --help", context)
    shared = shared_store(options)
    word = words[0] if words else None
    if action == "add":
        place = add(options, shared, str(word), name, encrypt=encrypt)
        if options.json:
            print_document(options, {"format": "reconcile.remote/1", "name": place.name, "url": place.url})
    elif action == "remove":
        remove(options, shared.state, chosen(shared.state, shared.store, word), command)
    elif action == "check":
        place = chosen(shared.state, shared.store, word)
        place.engine.probe()
        print_message(options, f"{place.url} can be read and written, and refuses a write that expected another state")
    elif action == "key":
        keys(options, shared, chosen(shared.state, shared.store, name), words, command)
    else:
        list_remotes(options, shared)


_SYNCS: dict[str, Any] = {
    "cls": Command,
    "prints_sides": False,
    "accepts": ("dry_run", "only", "allow_bulk_removal", "json", "quiet"),
}
"""The settings of the commands that sync."""
_url = click.argument("url", required=False, metavar="[URL|NAME]")


def _run(context: click.Context, url: str | None, half: Half) -> None:
    context.exit(run_sync(options_of(context), command_line(context), url, half))


@click.command(
    "sync",
    **_SYNCS,
    examples=(
        ("reconcile sync git@example.org:me/chats.git", "On a new machine: add the remote, and fetch everything."),
        ("reconcile sync", "Sync the store with its remote."),
        ("reconcile sync --dry-run", "Show what would be sent and taken."),
    ),
)
@_url
@click.pass_context
def sync(context: click.Context, url: str | None) -> None:
    """Sync the store with a remote that your machines share.

    A sync fetches, merges by the rules of a run, and sends the result. If another machine was faster, it begins again.
    It sends private conversations too, and they stay private on every machine. It changes the store alone: run
    `reconcile` before it and after it, to sync the store with the project.
    """
    _run(context, url, Half.BOTH)


@click.command(
    "pull",
    **_SYNCS,
    examples=(
        ("reconcile pull git@example.org:me/chats.git", "On a new machine: add the remote, and take everything."),
        ("reconcile pull", "Take what other machines have sent."),
    ),
)
@_url
@click.pass_context
def pull(context: click.Context, url: str | None) -> None:
    """Take into the store what a remote has, and send nothing.

    It is the first half of `reconcile sync`, and merges as that does. The result is sent by the next sync or push.
    """
    _run(context, url, Half.PULL)


@click.command(
    "push",
    **_SYNCS,
    examples=(
        ("reconcile push git@example.org:me/chats.git", "Add an empty remote, and send everything."),
        ("reconcile push", "Send what this machine has."),
    ),
)
@_url
@click.pass_context
def push(context: click.Context, url: str | None) -> None:
    """Send what the store has to a remote, and take nothing.

    It is refused while the remote has something new: `reconcile pull` takes that first. `reconcile sync` does both.
    """
    _run(context, url, Half.PUSH)
