"""``reconcile remote``, ``sync``, ``pull`` and ``push``: the remotes of a store, and the sync with one of them."""

from __future__ import annotations

import shlex
import sys
from typing import Any

import click

from reconcile.remote.git.address import without_password
from reconcile.remote.known import Half

from ..command import Command
from ..misuse import Misuse
from ..options import command_line, options_of
from ..output.documents import print_document
from ..remotes.actions import accept, add, check, forget_past, list_remotes, remove, shared_store
from ..remotes.kept import keep_here, share
from ..remotes.keys import keys
from ..remotes.syncing import run_sync

_AT_MOST = (0, 1, "at most one NAME")
_WORDS = {
    "add": (1, 1, "one URL"),
    "remove": (1, 1, "one NAME"),
    "check": _AT_MOST,
    "accept": _AT_MOST,
    "forget": _AT_MOST,
    "share": (1, sys.maxsize, "at least one ID"),
}
"""The least and the greatest number of words after an action, and their names."""
_ANY_WORDS = ("key", "keep-here")
_ACTIONS = ("add", "ls", "check", "accept", "keep-here", "share", "key", "forget", "remove")
_NAMED = ("add", "key", "keep-here", "share")
"""The actions that take the name of a remote as an option."""
_OF_ADD = {"--encrypt": "encrypt", "--as": "known_as"}


@click.command(
    "remote",
    cls=Command,
    prints_sides=False,
    accepts=("yes", "json", "quiet"),
    examples=(
        ("reconcile remote add git@example.org:me/chats.git", "Check a private repository, and remember it."),
        ("reconcile remote", "List the remotes of this store."),
        ("reconcile remote check", "Check the remote again, and say who can read it."),
        ("reconcile remote remove origin", "Forget a remote on this machine; it keeps what it has."),
        ("reconcile remote add --encrypt git@example.org:me/chats.git", "Encrypt all that is sent to an empty one."),
        ("reconcile remote key", "Show the key of this machine, and those that can read the remote."),
        ("reconcile remote add --as notes git@example.org:me/chats.git", "Give a name to a store that has none."),
    ),
)
@click.argument("action", type=click.Choice(_ACTIONS), metavar="[ACTION]", default="ls")
@click.argument("words", nargs=-1, metavar="[URL|NAME|ID|KEY]")
@click.option(
    "--name",
    metavar="NAME",
    help="The remote, for key, keep-here and share. With add: its name on this machine (default: origin).",
)
@click.option("--as", "known_as", metavar="NAME", help="With add: the name of the store, the same on each machine.")
@click.option("--encrypt", is_flag=True, help="With add, for a new remote: encrypt all that is sent, with age.")
@click.option("--history", is_flag=True, help="With forget: drop the earlier versions that the remote has.")
@click.pass_context
def remote(
    context: click.Context,
    action: str,
    words: tuple[str, ...],
    name: str | None,
    known_as: str | None,
    encrypt: bool,
    history: bool,  # noqa: ARG001 - `_check_options` has it
) -> None:
    """Add, list, check and remove the remotes of the store.

    ACTION is add, ls, check, accept, keep-here, share, key, forget or remove. A remote is a git repository of your own,
    through which your machines share the whole store, private conversations included. `add` checks that the host can
    be relied on, and that the repository is not the project's own, and not public. It shows how much would be sent, and
    sends no conversation: `reconcile sync` does that. `check` repeats these checks. Whoever can read the repository can
    read all of it, unless the remote was added with --encrypt: that sends the encrypted keys of the remote at once.

    For JP and Claude Code, all clones use the same store name. Any other store gets its name from you, with --as, and
    the same one on each machine.

    `accept` takes a remote that was emptied or replaced as it is now, once you have checked it. `keep-here ID`
    leaves conversations of this machine out of its syncs, and `share ID` ends that. `forget --history` drops the
    earlier versions that the remote has.

    `key add KEY` lets the machine with this public key read an encrypted remote. `key remove KEY` encrypts everything
    again for all others, and `key rotate` for all.
    """
    options, command = options_of(context), without_password(command_line(context))
    least, most, needed = _WORDS.get(action, (0, 0, "nothing"))
    if action not in _ANY_WORDS and not least <= len(words) <= most:
        raise Misuse(f"reconcile remote {action} takes {needed}", "reconcile remote --help", context)
    _check_options(context, action)
    shared = shared_store(options, known_as)
    word = words[0] if words else None
    if action == "add":
        place, amount = add(options, shared, str(word), name, known_as=known_as, encrypt=encrypt)
        if options.json:
            document = {"format": "reconcile.remote/1", "name": place.name, "url": place.shown}
            print_document(options, {**document, **amount._asdict()})
    elif action == "remove":
        remove(options, shared, shared.remote(word, command), command)
    elif action == "check":
        check(options, shared, shared.remote(word, command), command)
    elif action in ("keep-here", "share"):
        place = shared.remote(name, f"{command} --name")
        (keep_here if action == "keep-here" else share)(options, shared, place, words, command)
    elif action in ("accept", "forget"):
        place = shared.remote(word, command)
        if action == "accept":
            accept(options, shared, place, command)
        else:
            forget_past(options, shared, place, command)
    elif action == "key":
        keys(options, shared, shared.remote(name, f"{command} --name"), words, command)
    else:
        list_remotes(options, shared)


def _check_options(context: click.Context, action: str) -> None:
    """Raise `Misuse` for an option of another action."""
    given = context.params
    if given["name"] is not None and action not in _NAMED:
        raise _unexpected_name(context, action, given["name"])
    which = next((option for option, key in _OF_ADD.items() if given[key] not in (None, False)), None)
    if action != "add" and which is not None:
        raise Misuse(f"{which} belongs to `reconcile remote add`", "reconcile remote --help", context)
    if given["history"] != (action == "forget"):
        raise Misuse(
            "`reconcile remote forget --history` drops the earlier versions", "reconcile remote --help", context
        )


def _unexpected_name(context: click.Context, action: str, name: str) -> Misuse:
    """Return the error for the option `--name` of an action that has none; most take the name as a word."""
    if action == "ls":
        return Misuse("reconcile remote ls takes no --name", "reconcile remote --help", context)
    way = shlex.join(["reconcile", "remote", action, *["--history"] * (action == "forget"), name])
    return Misuse(f"reconcile remote {action} takes the name without --name", way, context)


_SYNCS: dict[str, Any] = {
    "cls": Command,
    "prints_sides": False,
    "accepts": ("dry_run", "out", "only", "allow_bulk_removal", "json", "quiet"),
}
"""The settings of the commands that sync."""
_SENDS: dict[str, Any] = _SYNCS | {"accepts": ("yes", *_SYNCS["accepts"])}
"""The settings of those that send: they ask before the first content of an empty remote."""
_url = click.argument("url", required=False, metavar="[URL|NAME]")


def _run(context: click.Context, url: str | None, half: Half) -> None:
    context.exit(run_sync(options_of(context), without_password(command_line(context)), url, half))


@click.command(
    "sync",
    **_SENDS,
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

    A sync fetches, merges by the rules of a run, and sends the result. At a terminal it asks about each conflict.
    Elsewhere the newest version wins. If another machine was faster, it begins again.
    It sends private conversations too, and they stay private on every machine. If the remote is not encrypted, it warns
    about the keys and passwords that it sends. It changes the store alone: run
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

    It is the first half of `reconcile sync`, and merges and asks as that does. The next sync or push sends the result.
    """
    _run(context, url, Half.PULL)


@click.command(
    "push",
    **_SENDS,
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
