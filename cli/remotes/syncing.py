"""One sync with a remote, or a half of it, and the report about it."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from msgspec import to_builtins
from msgspec.structs import asdict

from reconcile.adapters.roots import LocateError
from reconcile.engine.versions import saved_titles
from reconcile.formats import get_format
from reconcile.fs.paths import quoted_path
from reconcile.model.baseline import IntentKind
from reconcile.model.names import CHILDREN
from reconcile.model.plan import Kind, counted_as
from reconcile.model.snapshot import METADATA, Side
from reconcile.model.units import unit_text
from reconcile.planning.conflicts import differences, restore_of
from reconcile.remote.engine import MovedError, RemoteError, UnreachableError
from reconcile.remote.git.address import without_password
from reconcile.remote.known import Entry, Half, Lock, known_of, tops
from reconcile.remote.machines import MACHINES
from reconcile.remote.sync import Sync, open_session

from ..context import find_ids, is_id, policy_of, refuse_missing_home, settings_of
from ..context import open_session as open_own_session
from ..misuse import Misuse
from ..output.conflict_text import difference_lines
from ..output.documents import print_document
from ..output.errors import ExitCode
from ..output.interaction import is_interactive, print_message, print_warning, waiting_callback
from ..output.screen import wrap
from ..output.text import Style, show, span_text, title_and_id, visible, width, with_local_times
from ..run import opened, write_plan
from .actions import add, no_sync, note_encryption, refuse_projects_own, shared_store
from .naming import errors_name, naming_remote

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from reconcile.engine.session import Session
    from reconcile.model.format import Format
    from reconcile.remote.known import Ahead, DecidedConflict, Planned, Report
    from reconcile.remote.place import RemotePlace

    from ..arguments import Options
    from .actions import Shared

_HEADINGS = (
    ("sent", "sent", "to send"),
    ("taken", "taken", "to take"),
    ("forked", "forked", "to fork"),
    ("removed_here", "removed here, as on another machine", "to remove here, as on another machine"),
    (
        "removed_there",
        "removed on the remote, because it was removed here",
        "to remove on the remote, because it was removed here",
    ),
    (
        "replaced_forks",
        "replaced here by the same fork of another machine",
        "to replace here by the same fork of another machine",
    ),
    ("private_here", "made private here, as on another machine", "to make private here, as on another machine"),
    (
        "private_no_longer",
        "no longer private here, as on another machine",
        "to be no longer private here, as on another machine",
    ),
    ("private_there", "made private on every machine", "to make private on every machine"),
    ("private_no_longer_there", "no longer private on any machine", "to be no longer private on any machine"),
)


_RETURNED = {
    "sent": "another machine has removed it; it was changed here since",
    "taken": "it was removed here; another machine has changed or restored it since",
}
_PLACED = {Kind.ARCHIVE: "archived", Kind.UNARCHIVE: "no longer archived"}
"""The words for a conversation that was taken, by the kind of the step."""
_LEAST_TITLE = 16
"""Columns of a title beside words and an id."""
VARIABLE = "RECONCILE_REMOTE"
"""The variable with the address or the name of the remote that is meant if none is named."""


def run_sync(options: Options, command: str, url: str | None, half: Half, planned: Planned | None = None) -> int:
    """Sync with the remote of this name or address, report it, and return the exit code.

    ``planned``: a saved plan, which is carried out as it is. It adds no remote, as the file may come from others.
    """
    shared = shared_store(options)
    is_known, before = planned is not None, shared.remotes
    named = url or os.environ.get(VARIABLE)
    place = shared.remote(url, command) if is_known else _place(options, command, shared, named, half)
    if place in before and not place.contact_ns:
        refuse_projects_own(shared, place)
    questions = None
    with opened_sync(options, command, shared, place, half, planned) as sync:
        if is_interactive(options) and not (options.is_dry or is_known):
            from .questions import Questions  # here: most syncs ask nothing

            sync.ask = questions = Questions(options)
        report = _run(options, sync, place)
        if not options.is_dry:  # a plan has the titles
            report.removed_there = [_titled(sync.session, entry) for entry in report.removed_there]
            place.note_contact()
        for message in sync.session.messages:
            print_message(options, message)
    _report(options, shared, place, report, half)
    if half is Half.PULL and questions is not None and (kept := questions.kept_here):
        stays = "1 conflict stays" if kept == 1 else f"{kept} conflicts stay"
        message = f"{stays}: a pull sends nothing; `reconcile sync` asks again, and sends the version that you take"
        print_message(options, naming_remote(message, shared.remotes, place))
    if options.out is not None and report.planned is not None:
        from reconcile.remote.saved import FORMAT, PlannedModel, SavedSync, saved_text  # here: few syncs are saved

        saved = SavedSync(
            format=FORMAT,
            workspace=shared.roots.workspace,
            store=shared.roots.store,
            remote=place.name,
            half=half.name,
            only=list(options.only),
            allow_bulk_removal=options.allow_bulk_removal,
            planned=PlannedModel(**asdict(report.planned)),
            report=_document(options, place, report),
        )
        write_plan(options, saved_text(saved), changes=any(getattr(report, name) for name, _, _ in _HEADINGS))
    return ExitCode.HELD if report.held else ExitCode.DONE


def _run(options: Options, sync: Sync, place: RemotePlace) -> Report:
    """Run a sync; if the remote can't be used as it is, note that for `status`."""
    try:
        return sync.run()
    except RemoteError as error:
        if not (options.is_dry or isinstance(error, UnreachableError | MovedError)):
            place.note_refusal(error.message)
        if not options.is_dry and known_of(sync.session.state, place.name).commit is None:
            note_encryption(place)
        raise


@contextmanager
def opened_sync(
    options: Options,
    command: str,
    shared: Shared,
    place: RemotePlace,
    half: Half = Half.BOTH,
    planned: Planned | None = None,
) -> Iterator[Sync]:
    """Open a store with the files of a remote, for a sync; a dry run has them in a directory that is removed."""
    settings = settings_of(shared.roots)
    with ExitStack() as stack:
        stack.enter_context(errors_name(shared.remotes, place))
        tree = place.tree
        if options.is_dry:
            tree = stack.enter_context(tempfile.TemporaryDirectory(prefix="reconcile-"))
        else:
            refuse_missing_home(shared.roots)
            stack.enter_context(no_sync(options, shared, place, command))
        os.makedirs(os.path.join(tree, CHILDREN if shared.roots.inner else ""), mode=0o700, exist_ok=True)
        session = open_session(shared.roots, place, shared.state, tree, ignore=settings.ignore, dry=options.is_dry)
        stack.callback(session.close)
        policy = policy_of(options, settings, {"only": _ids(options, session.format), "below": frozenset()})
        lock = Lock(command, settings.lock_timeout, waiting_callback(options))
        yield Sync(session, place, place.engine, policy, lock, half, planned)


def _place(options: Options, command: str, shared: Shared, url: str | None, half: Half) -> RemotePlace:
    """Return the remote with this name or address. A new address is added first, but for a dry run."""
    known = shared.remotes
    is_new = url is not None and url not in [text for place in known for text in (place.name, place.url)]
    if url is None or not is_new or os.path.abspath(url) in [place.url for place in known]:
        return shared.remote(os.path.abspath(url) if is_new and url is not None else url, command)
    if not (":" in url or "/" in url or os.path.exists(url)):
        return shared.remote(url, command)  # a word is no address: no remote has this name
    if options.is_dry:
        shown = without_password(url)
        words = f"reconcile remote add {quoted_path(shown)}", f"reconcile sync --dry-run {quoted_path(shown)}"
        raise Misuse(
            f"{shown} is not known yet, and a dry run adds nothing",
            f"add it, which sends and takes nothing: {' && '.join(f'{each}{options.sides}' for each in words)}",
        )
    place, _ = add(options, shared, url, None, syncs=half is not Half.PULL)
    options.nothing = f"the remote {place.name} was added, but nothing else"
    return place


def _ids(options: Options, form: Format) -> frozenset[str]:
    """Return the named conversations. One that only the remote has is named by its id."""
    found = {text: text if is_id(form, text) else form.parse_id(text) for text in options.only}
    if others := [text for text, id_ in found.items() if id_ is None]:
        with opened(options) as engine:
            found |= dict(zip(others, find_ids(engine, others), strict=True))
    return frozenset(id_ for id_ in found.values() if id_ is not None)


def _report(options: Options, shared: Shared, place: RemotePlace, report: Report, half: Half) -> None:
    if options.json:
        print_document(options, _document(options, place, report))
        return
    style, lines = Style.choose(options.color), list[str]()
    listed = _by_session(report, shared)
    lines += [] if options.quiet else _entry_lines(listed, report, style, is_dry=options.is_dry)
    for conflict in report.conflicts if options.quiet else ():
        if conflict.run is not None:
            name = f"{conflict.title} ({conflict.id})" if conflict.title else conflict.id
            way = restore_of(conflict.id, conflict.run, conflict.unit) + options.sides
            print_warning(options, f"{name}: {_conflict_words(conflict)} {way}")
    for conflict in () if options.quiet else report.conflicts:
        word = "conflict" if conflict.run is None else "conflict, decided"
        lines += _named(f"{word}:", conflict.title, conflict.id, style)
        values = [] if conflict.found is None else differences(conflict.found)
        lines += difference_lines(values, MACHINES, style.columns, "  ")
        lines += wrap(_conflict_words(conflict), style.columns, "  ", "    ")
        if conflict.run is not None:  # a command is never wrapped: people copy it
            lines.append(f"    {restore_of(conflict.id, conflict.run, conflict.unit)}{options.sides}")
    if report.ahead and options.quiet:
        print_warning(options, _clock_words(report.ahead))
    for note in () if options.quiet else _notes(report, has_sent=not options.is_dry and half is not Half.PULL):
        lines += wrap(note, style.columns, "", "  ")
    if report.secrets:
        from .sent_secrets import carriers_sent, sent_words, unsent_words  # here: few syncs send a secret

        carriers, noun = carriers_sent(report, shared.roots), shared.roots.noun
        words = unsent_words(carriers, noun, shared.remotes, place) if options.is_dry else sent_words(carriers, noun)
        print_warning(options, words)
    for message in report.held:
        words = with_local_times(f"blocked: {visible(naming_remote(message, shared.remotes, place))}")
        lines += wrap(words, style.columns, "", "  ")
    if not options.quiet:
        ending = _counts(listed, shared.roots.noun, len(report.held), half, is_dry=options.is_dry)
        if report.taken and not options.is_dry:
            ending += _next_command(options, shared, listed["taken"])
        lines += [*([""] if lines else []), *wrap(f"{place.name}: {ending}.", style.columns, "", "  ")]
    show(lines)


def _notes(report: Report, *, has_sent: bool) -> Iterator[str]:
    """Yield what a sync has found out about another machine, or the remote."""
    if report.ahead:
        yield _clock_words(report.ahead)
    if report.interrupted_push is not None:
        yield f"the push of an earlier sync, which was interrupted, has {report.interrupted_push}"
    if report.was_set_back:
        what = "this sync has sent what was missing there" if has_sent else "a sync sends what is missing there"
        yield f"the remote was set back to an earlier commit; {what}"


def _entry_lines(listed: Mapping[str, Sequence[Entry]], report: Report, style: Style, *, is_dry: bool) -> Iterator[str]:
    """Yield a line for each conversation; a fork that is sent, too, has one. A replaced title has a line below it."""
    new = {entry.id for entry in report.forked} if is_dry else set[str]()
    told = {each.id for each in report.conflicts}
    sent_forks = {entry.id for entry in listed["forked"]}.intersection(entry.id for entry in listed["sent"])
    for name, done, planned in _HEADINGS:
        for entry in listed[name]:
            words = planned if is_dry else done
            if entry.id in sent_forks:
                words = "" if name == "sent" else "to fork and send" if is_dry else "forked and sent"
            if words:
                yield from _named(words, entry.title, _shown_id(entry, new), style)
            if name in ("sent", "taken") and report.returned.get(entry.id) is (name == "taken"):
                yield from wrap(_RETURNED[name], style.columns, "  ", "    ")
            if name == "taken" and entry.id in report.placed:
                yield f"  {_PLACED[report.placed[entry.id]]}"
            if name == "taken" and entry.id in report.replaced and entry.id not in told:
                before, _ = report.replaced[entry.id]
                yield from wrap(f'replaces the title "{visible(before)}" of this machine', style.columns, "  ", "    ")


def _named(words: str, title: str | None, conversation: str, style: Style) -> list[str]:
    """Return a line with words about a conversation, or two, if the line has no room for its title."""
    beside = width(words) + 2
    if style.columns is not None and beside + len(conversation) + 2 + _LEAST_TITLE > style.columns:
        return [*wrap(words, style.columns), f"  {title_and_id(title, conversation, style, beside=2)}"]
    return [f"{words}  {title_and_id(title, conversation, style, beside=beside)}"]


def _titled(session: Session, entry: Entry) -> Entry:
    """Return a conversation that was removed there with its title, which only the vault still has.

    A record with a fixed place is called by its path.
    """
    if session.format.places is not None:
        return entry
    titles = saved_titles(session.state.versions.of_conversation(entry.id), session.vault, session.format)
    return entry._replace(title=titles.get(entry.id))


def _ids_of(entries: Sequence[Entry]) -> set[str]:
    return {entry.id for entry in entries}


def _document(options: Options, place: RemotePlace, report: Report) -> dict[str, object]:
    lists = {name: [{"id": e.id, "title": e.title} for e in getattr(report, name)] for name, _, _ in _HEADINGS}
    document = {"format": "reconcile.sync/1", "remote": place.name, "dry_run": options.is_dry, **lists}
    return document | {
        "conflicts": [_conflict_json(each) for each in report.conflicts],
        "held": report.held,
        "commit": report.commit,
        "interrupted_push": report.interrupted_push,
        "set_back": report.was_set_back,
        "returned": [key for key, is_taken in report.returned.items() if is_taken or key in _ids_of(report.sent)],
        "replaced_titles": [
            {"id": key, "before": before, "title": after} for key, (before, after) in report.replaced.items()
        ],
        "unencrypted_secrets": [{"id": key, "findings": list(found)} for key, found in report.secrets.items()],
        "clock_ahead": [{"id": e.id, "title": e.title, "seconds": e.ahead_ns // 10**9} for e in report.ahead],
    }


def _shown_id(entry: Entry, new: Collection[str]) -> str:
    """Return the id; of a conversation that the sync would create, a dry run doesn't know it."""
    return "(new)" if entry.id in new else entry.id


def _next_command(options: Options, shared: Shared, taken: Sequence[Entry]) -> str:
    """Return the command that brings what was taken to the workspace, and how much of it; empty if there is none.

    A plain run brings no conversation that the workspace never had.
    """
    ids = {entry.id for entry in taken}
    coming, there = _coming(options, shared, ids)
    command, verb = "reconcile", "compares"
    if not coming and not shared.roots.is_in_project:
        command, verb, coming = "reconcile recover --all", "restores", ids - there
    if not coming:
        return ""
    one = "it" if len(ids) == 1 else "them"
    which = one if len(coming) == len(ids) else f"{len(coming)} of {one}"
    return f"; {command} {verb} {which} {'with' if verb == 'compares' else 'in'} the project"


def _coming(options: Options, shared: Shared, ids: Collection[str]) -> tuple[set[str], set[str]]:
    """Return which of these conversations the next run syncs with the workspace, and which the workspace has.

    The record of the last run has this. Where no run has been, a plan tells it.
    """
    roots = shared.roots
    places, settings = get_format(roots.format).places, settings_of(roots)
    with open_own_session(roots, settings, readonly=True) as session:
        known = session.state.load(session.checkout, ids if places is None else None)
    if session.checkout is not None:
        away = (IntentKind.LOCAL, IntentKind.REMOVED)
        left = {id_ for id_, intent in known.intents.items() if intent.kind in away}
        had = {counted_as(id_, places) for id_ in known.agreed.keys() - left}
        is_for_all = places is not None and roots.is_in_project
        return ({id_ for id_ in ids if id_ not in left} if is_for_all else had.intersection(ids)), had
    own = options.in_format(roots.format)
    try:
        with opened(own) as engine:
            plan = engine.plan(policy_of(own, settings)).plan
            there = {counted_as(copy.conversation, places) for copy in engine.known.sides[Side.WORKSPACE].copies()}
    except LocateError:  # of sessions in the home, nothing is here yet
        return set(), set()
    updated = (action for action in plan.actions if action.target.side is Side.WORKSPACE)
    return {counted_as(action.conversation, places) for action in updated}.intersection(ids), there


def _clock_words(ahead: Sequence[Ahead]) -> str:
    """Return how far the clock of another machine is ahead; a remote has no names of machines."""
    most = max(ahead, key=lambda entry: entry.ahead_ns)
    name = f"{visible(most.title)} ({most.id})" if most.title else visible(most.id)
    others, them = (f" and {len(ahead) - 1} more", "them") if len(ahead) > 1 else ("", "it")
    span = span_text(most.ahead_ns)
    return (
        f"{name}{others}: the clock of the machine that sent {them} is at least {span} ahead; "
        "this sync's time counts instead, and wins no conflict"
    )


def _conflict_words(conflict: DecidedConflict) -> str:
    """Return which machine's version was taken, and what became of the other one; a command may follow."""
    here, there = "this machine's", "the other machine's"
    winner, loser = (here, there) if conflict.is_here else (there, here)
    unit = "file" if conflict.found is None and conflict.unit == METADATA else unit_text(conflict.unit)
    if conflict.run is None:
        would = f"takes {winner} and prints the command for {loser}"
        would = f"the sync {would if conflict.found is None else f'asks at a terminal, or {would}'}"
        return f"{unit}: both machines changed it; {would}"
    other = f"{loser} is now the fork {conflict.child}; to take it" if conflict.child else f"to take {loser}"
    return f"{unit}: both machines changed it; {winner} is taken; {other} instead:"


def _conflict_json(conflict: DecidedConflict) -> dict[str, object]:
    found = conflict.found
    return {
        "id": conflict.id,
        "title": conflict.title,
        "unit": conflict.unit,
        "keys": [] if found is None else list(found.keys),
        "here": None if found is None else to_builtins(found.store),
        "there": None if found is None else to_builtins(found.workspace),
        "takes": "here" if conflict.is_here else "there",
        "child": conflict.child,
        "run": conflict.run,
    }


def _by_session(report: Report, shared: Shared) -> dict[str, list[Entry]]:
    """Return the lists of a report, with one entry for a session and the files beside it, as `status` counts them.

    A record without a title is called by its path, and what was removed without a known one by its id.
    """
    places = get_format(shared.roots.format).places
    same = "forked", "replaced_forks"
    marks = "private_here", "private_no_longer", "private_there", "private_no_longer_there"
    listed = {name: getattr(report, name) for name in (*same, *marks)}
    for name, removed in (("sent", "removed_there"), ("taken", "removed_here")):
        first, second = getattr(report, name), getattr(report, removed)
        titles = {entry.id: entry.title or (entry.id if places else None) for entry in first}
        titles |= {entry.id: entry.title or entry.id for entry in second}
        beside = {counted_as(key, places): title for key, title in titles.items()}
        both = tops([entry.id for entry in first], [entry.id for entry in second], places)
        listed[name], listed[removed] = ([Entry(key, titles.get(key, beside[key])) for key in keys] for keys in both)
    return listed


def _counts(listed: Mapping[str, Sequence[Entry]], noun: str, held: int, half: Half, *, is_dry: bool) -> str:
    """Return the end of the report: how much is sent, taken and removed; if nothing is, how much is blocked."""
    words = {
        "sent": ("sent", "to send"),
        "taken": ("taken", "to take"),
        "forked": ("forked", "to fork"),
        "removed_here": ("removed here", "to remove here"),
        "removed_there": ("removed there", "to remove there"),
        "replaced_forks": ("replaced by the same fork", "to replace by the same fork"),
        "private_here": ("made private here", "to make private here"),
        "private_no_longer": ("no longer private here", "to be no longer private here"),
        "private_there": ("made private on every machine", "to make private on every machine"),
        "private_no_longer_there": ("no longer private on any machine", "to be no longer private on any machine"),
    }
    unsent = _ids_of(listed["forked"]) - _ids_of(listed["sent"])
    counts = {name: len(unsent if name == "forked" else listed[name]) for name in words}
    parts = [f"{count} {words[name][is_dry]}" for name, count in counts.items() if count]
    if not parts:
        what = {Half.BOTH: "to send or to take", Half.PULL: "to take", Half.PUSH: "to send"}[half]
        return f"{held} blocked, nothing else {what}" if held else f"nothing {what}"
    count, what = parts[0].split(" ", 1)
    first = f"{count} {noun}{'' if count == '1' else 's'} {what}"
    return ", ".join((first, *parts[1:])) + ("; a dry run changes nothing" if is_dry else "")
