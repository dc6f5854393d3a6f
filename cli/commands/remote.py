"""``reconcile remote`` and ``reconcile sync``: the remotes of a store, and the sync with one of them."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from reconcile.adapters.claude_code.places import FORMAT, start_of
from reconcile.adapters.claude_code.stores import store_place
from reconcile.adapters.roots import LocateError, Request, refuse_state_inside
from reconcile.fs.git_state import checkout_top
from reconcile.fs.locks import run_lock
from reconcile.fs.private_files import make_private_directory
from reconcile.model.names import CHILDREN
from reconcile.remote.engine import RemoteError
from reconcile.remote.place import checked_url, chosen, forget, new_place, record, remotes, store_name
from reconcile.remote.sync import Lock, Sync, known_of, open_session
from reconcile.state.database import State
from reconcile.state.directory import state_directory
from reconcile.state.schema import REMOTE

from ..command import Command
from ..context import find_roots, policy_of, settings_of
from ..misuse import Misuse
from ..options import command_line, options_of
from ..output.documents import print_document
from ..output.errors import ExitCode
from ..output.interaction import print_message, waiting_callback
from ..output.tables import Column, table
from ..output.text import Style, clean, format_time, show, size, title_and_id, visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.adapters.roots import Roots
    from reconcile.remote.place import RemotePlace
    from reconcile.remote.sync import Known, Report

    from ..arguments import Options

_EXAMPLES = (
    ("reconcile remote add git@example.org:me/chats.git", "Check a private repository, and remember it."),
    ("reconcile remote", "List the remotes of this store."),
    ("reconcile remote check", "Check the remote again: can it be reached, and relied on?"),
    ("reconcile remote remove origin", "Forget a remote on this machine; it keeps what it has."),
)


@click.command("remote", cls=Command, prints_sides=False, accepts=("json", "quiet"), examples=_EXAMPLES)
@click.argument("action", type=click.Choice(["add", "ls", "check", "remove"]), metavar="[ACTION]", default="ls")
@click.argument("words", nargs=-1, metavar="[URL|NAME]")
@click.option("--name", metavar="NAME", help="With add: the remote's name on this machine (default: origin).")
@click.pass_context
def remote(context: click.Context, action: str, words: tuple[str, ...], name: str | None) -> None:
    """Add, list, check and remove the remotes of the store.

    ACTION is add, ls, check or remove. A remote is a git repository of your own, through which your machines share the
    whole store, private conversations included. `add` checks that the host can be relied on, and that neither the
    project nor the world reads the repository. It shows how much would be sent, and sends nothing: `reconcile sync`
    does that. Whoever can read the repository can read all of it.
    """
    options = options_of(context)
    if len(words) > 1 or (action in ("add", "remove") and not words) or (action == "ls" and words):
        needed = {"add": "one URL", "remove": "one NAME", "check": "at most one NAME", "ls": "nothing"}[action]
        raise Misuse(f"reconcile remote {action} takes {needed}", "reconcile remote --help", context)
    if name is not None and action != "add":
        raise Misuse("--name belongs to `reconcile remote add`", "reconcile remote --help", context)
    roots = _roots(options)
    state, store = state_directory(roots.key, os.environ, sys.platform), store_name(roots)
    refuse_state_inside(roots, state)
    word = words[0] if words else None
    if action == "add":
        place = _add(options, roots, state, store, str(word), name)
        if options.json:
            print_document(options, {"format": "reconcile.remote/1", "name": place.name, "url": place.url})
    elif action == "remove":
        _remove(options, state, chosen(state, store, word), command_line(context))
    elif action == "check":
        place = chosen(state, store, word)
        place.engine.probe()
        print_message(options, f"{place.url} can be read and written, and refuses a write that expected another state")
    else:
        _list(options, state, remotes(state, store))


def _roots(options: Options) -> Roots:
    """Return the sides, also of a project of Claude Code that has neither sessions nor a store on this machine."""
    try:
        return find_roots(options)
    except LocateError:
        if options.format not in (None, FORMAT) or options.store is not None:
            raise
        request = Request(options.workspace, None, os.getcwd(), os.environ, sys.platform)
        start = start_of(request)
        project = checkout_top(start) or start
        place = store_place(project, request).path
        if not os.path.basename(place).startswith("git-"):
            raise
        make_private_directory(place)
        again = options.in_format(FORMAT)
        again.workspace = project
        return find_roots(again)


def _add(options: Options, roots: Roots, state: str, store: str, url: str, name: str | None) -> RemotePlace:
    """Check a new remote and record it; tell how much a sync would send."""
    place = new_place(state, store, checked_url(url, roots.project), name)
    try:
        place.engine.probe()
    except RemoteError:
        forget(place)
        raise
    record(place)
    files = [os.path.join(at, name) for at, _, names in os.walk(roots.store_conversations) for name in names]
    total = size(sum(os.lstat(path).st_size for path in files))
    print_message(options, f"{place.name}: {place.url}; whoever can read that repository can read what a sync sends")
    count = f"{len(files)} file{'' if len(files) == 1 else 's'} ({total})"
    print_message(options, f"the store has {count}, private ones included; nothing of it is sent yet")
    return place


def _remove(options: Options, state: str, place: RemotePlace, command: str) -> None:
    with run_lock(state, command=command), State.open(state) as known:
        for checkout in known.checkouts(with_remotes=True):
            if checkout.project == os.path.realpath(place.mirror):
                known.forget_checkout(checkout.id)
        known.set_meta(REMOTE + place.name, "")
        forget(place)
    print_message(options, f"{place.name} is forgotten on this machine; {place.url} keeps what it has")


def _list(options: Options, state: str, places: list[RemotePlace]) -> None:
    with State.open(state, readonly=True) as known:
        found = [(place, known_of(known, place.name)) for place in places]
    if options.json:
        listed = [
            {"name": p.name, "url": p.url, "ref": p.ref, "commit": k.commit, "contact_ns": k.contact_ns}
            for p, k in found
        ]
        print_document(options, {"format": "reconcile.remotes/1", "remotes": listed})
        return
    if not places:
        print_message(options, "no remote is known for this store: reconcile remote add URL")
        return
    cells = [(place.name, clean(place.url), _contact(known)) for place, known in found]
    columns = (Column("Remote"), Column("Address", shrinks=True), Column("Last contact"))
    show(table(columns, cells, Style.choose(options.color)))


def _contact(known: Known) -> str:
    return format_time(known.contact_ns) if known.contact_ns else "never"


@click.command(
    "sync",
    cls=Command,
    prints_sides=False,
    accepts=("dry_run", "only", "allow_bulk_removal", "json", "quiet"),
    examples=(
        ("reconcile sync git@example.org:me/chats.git", "On a new machine: add the remote, and fetch everything."),
        ("reconcile sync", "Sync the store with its remote."),
        ("reconcile sync --dry-run", "Show what would be sent and taken."),
    ),
)
@click.argument("url", required=False, metavar="[URL|NAME]")
@click.pass_context
def sync(context: click.Context, url: str | None) -> None:
    """Sync the store with a remote that your machines share.

    A sync fetches, merges by the rules of a run, and sends the result. If another machine was faster, it begins again.
    It sends private conversations too, and they stay private on every machine. It changes the store alone: run
    `reconcile` before it and after it, to sync the store with the project.
    """
    options = options_of(context)
    roots = _roots(options)
    settings = settings_of(roots)
    state, store = state_directory(roots.key, os.environ, sys.platform), store_name(roots)
    refuse_state_inside(roots, state)
    place = _place(options, roots, state, store, url)
    with ExitStack() as stack:
        tree = place.tree
        if options.is_dry:
            tree = stack.enter_context(tempfile.TemporaryDirectory(prefix="reconcile-"))
        else:
            stack.enter_context(run_lock(place.directory, command=command_line(context), timeout=settings.lock_timeout))
        os.makedirs(os.path.join(tree, CHILDREN if roots.inner else ""), mode=0o700, exist_ok=True)
        session = open_session(roots, place, state, tree, ignore=settings.ignore, dry=options.is_dry)
        stack.callback(session.close)
        policy = policy_of(options, settings, {"only": _ids(options, session.format.parse_id), "below": frozenset()})
        lock = Lock(command_line(context), settings.lock_timeout, waiting_callback(options))
        report = Sync(session, place.name, place.engine, store, policy, lock).run()
        for message in session.messages:
            print_message(options, message)
    _report(options, place, report)
    context.exit(ExitCode.HELD if report.held else ExitCode.DONE)


def _place(options: Options, roots: Roots, state: str, store: str, url: str | None) -> RemotePlace:
    """Return the remote with this name or address. A new address is added first, but for a dry run."""
    known = remotes(state, store)
    is_new = url is not None and url not in [text for place in known for text in (place.name, place.url)]
    if url is None or not is_new or os.path.abspath(url) in [place.url for place in known]:
        return chosen(state, store, os.path.abspath(url) if is_new and url is not None else url)
    if options.is_dry:
        raise Misuse(f"{url} is not known yet, and a dry run adds nothing", f"add it: reconcile remote add {url}")
    return _add(options, roots, state, store, url, None)


def _ids(options: Options, parse_id: Callable[[str], str | None]) -> frozenset[str]:
    ids = set[str]()
    for text in options.only:
        if (found := parse_id(text)) is None:
            raise Misuse(f"{text!r} is no id", "`reconcile ls` lists the conversations with their ids")
        ids.add(found)
    return frozenset(ids)


_HEADINGS = (
    ("sent", "sent", "to send"),
    ("taken", "taken", "to take"),
    ("forked", "continued on both sides; the other continuation is now", "continued on both sides, to be forked:"),
    ("removed_here", "removed here, as on another machine", "to remove here, as on another machine"),
    ("removed_there", "removed there, as here", "to remove there, as here"),
)


def _report(options: Options, place: RemotePlace, report: Report) -> None:
    if options.json:
        lists = {name: [{"id": e.id, "title": e.title} for e in getattr(report, name)] for name, _, _ in _HEADINGS}
        document = {"format": "reconcile.sync/1", "remote": place.name, "dry_run": options.is_dry, **lists}
        rest = {"held": report.held, "commit": report.commit, "interrupted_push": report.interrupted_push}
        print_document(options, {**document, **rest})
        return
    style, lines = Style.choose(options.color), list[str]()
    for name, done, planned in () if options.quiet else _HEADINGS:
        words = planned if options.is_dry else done
        lines += [f"{words}  {title_and_id(entry.title, entry.id, style)}" for entry in getattr(report, name)]
    if report.interrupted_push is not None and not options.quiet:
        lines.append(f"the push of an earlier sync, which was interrupted, has {report.interrupted_push}")
    lines += [f"blocked: {visible(message)}" for message in report.held]
    counts = [
        f"{len(getattr(report, name))} {word}"
        for name, word in (("sent", "sent"), ("taken", "taken"), ("removed_here", "removed here"))
        if getattr(report, name)
    ]
    if not options.quiet:
        ending = (
            "a dry run: nothing is changed" if options.is_dry else ", ".join(counts) or "nothing to send or to take"
        )
        lines += [*([""] if lines else []), f"{place.name}: {ending}."]
    show(lines)
