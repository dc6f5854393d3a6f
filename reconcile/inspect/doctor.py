"""`doctor`: finds problems of conversations on both sides, and stray files that interrupted writes left beside them.

It changes nothing. A directory that can't be listed is a finding: its content isn't known. The formats with derived
data have checks of their own (`CHECKERS`). A whole version of a damaged record is a better repair than one salvaged
from the damaged file (`repair_sources`).
"""

from __future__ import annotations

import marshal
import os
from contextlib import nullcontext
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from reconcile.adapters.jp.locks import held_locks
from reconcile.apply.staging import STAGING, library_staging_name, staging_name
from reconcile.engine.versions import lost_with_store
from reconcile.fs.files import Directory, error_text, read_files
from reconcile.fs.helper_process import HelperProcess
from reconcile.fs.paths import names_in
from reconcile.inspect.access import obstacle_at, obstacles_of, usable_names
from reconcile.model.baseline import private_of
from reconcile.model.commands import typed
from reconcile.model.snapshot import METADATA, Fault, Metadata, Place, Side
from reconcile.planning.diagnosis import SEE_TO_IT, Ailment, Finding, by_kind, diagnose, misnamed, orphaned
from reconcile.state.vault import VaultError, VersionKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from reconcile.engine.engine import Engine, Pass
    from reconcile.engine.session import Session
    from reconcile.model.policy import Policy

    Checker: TypeAlias = Callable[[str, int], tuple["CheckFinding", ...]]

_LOCKS = "locks"
_TEMPORARY = ".tmp"


def examine(engine: Engine, policy: Policy) -> tuple[Finding, ...]:
    """Return all findings by kind and place. It writes nothing and takes no lock."""
    session, known = engine.session, engine.known
    sides = store_side, workspace_side = _sides(engine)
    # A helper looks at the store's directories meanwhile. Few are unusual, and only those are looked at again.
    with HelperProcess.start(lambda: marshal.dumps(_unusual(engine, *store_side))) as helper:
        pass_ = engine.plan(policy, also=engine.noteworthy)
        context = engine.decide(pass_, policy)
        store, workspace = pass_.world.store, pass_.world.workspace
        if not pass_.full:
            store = replace(store, foreign=tuple(known.sides[Side.STORE].all_foreign()))
            workspace = replace(workspace, foreign=tuple(known.sides[Side.WORKSPACE].all_foreign()))
        diagnosed = diagnose(context, engine.completed(pass_), store, workspace, engine.empty_directories(pass_))
        rest = () if pass_.full else _of_clean(engine, pass_, context.tree.depths)
        found = tuple(_readable_again(finding, session) for finding in by_kind((*diagnosed, *rest)))
        in_workspace = _unusual(engine, *workspace_side)
        answer = helper.result()
    in_store = _unusual(engine, *store_side) if answer is None else marshal.loads(answer)  # noqa: S302 - of this program
    # Runs leave the lock files of conversations that they remove: JP's own cleanup deletes them
    # (docs/design/formats/jp.md#lock-files).
    there = known.present()
    ids = there | session.state.journal.concerned_since("").keys()
    # The library's staging directory exists while a program uses it; the next run finishes an interrupted run.
    identity = session.state.meta("identity") or ""
    ours = {library_staging_name(identity)} | {
        staging_name(identity, run.id) for run in session.state.journal.open_runs()
    }
    strays: list[Finding] = []
    blocked = [*_unwritable(session), *incomplete_versions(session)]
    for (side, conversations), copies in zip(sides, (in_store, in_workspace), strict=True):
        strays += _staging_directories(side, conversations, ours)
        strays += _temporary_files(side, conversations, copies, is_jp=session.format.name == "jp")
        blocked += _unwritable_copies(side, conversations, copies)
    strays += _orphaned_locks((session.roots.store, session.roots.workspace), ids, session.format.parse_id)
    lost = [
        Finding(Ailment.LOST, gone.conversation, gone.left, gone.conversation, (gone.command,) if gone.command else ())
        for gone in lost_with_store(session, there)
    ]
    order = list(Ailment)
    findings = (*found, *blocked, *_not_among(diagnosed, strays), *lost, *_private_in_git(session))
    return tuple(sorted(findings, key=lambda finding: order.index(finding.ailment)))


def _sides(engine: Engine) -> tuple[tuple[Side, str], tuple[Side, str]]:
    roots = engine.session.roots
    return (Side.STORE, roots.store_conversations), (Side.WORKSPACE, roots.workspace_conversations)


def _unusual(engine: Engine, side: Side, conversations: str) -> dict[str, str]:
    """Return the copies of a side that have a temporary file, or that a run can't read or write, and their ids."""
    return {
        copy: conversation
        for copy, conversation in engine.known.sides[side].paths.items()
        if _is_unusual(f"{conversations}/{copy}")
    }


def _is_unusual(directory: str) -> bool:
    names = usable_names(directory)
    return names is None or any(name.endswith(_TEMPORARY) for name in names)


def _readable_again(finding: Finding, session: Session) -> Finding:
    """Return a finding about a whole side that can't be read with the command that changes this, if there is one."""
    roots = session.roots
    places = {f"{Side.STORE}:.": roots.store_conversations, f"{Side.WORKSPACE}:.": roots.workspace_conversations}
    if finding.ailment is not Ailment.UNREADABLE or finding.place not in places:
        return finding
    obstacle = obstacle_at(places[finding.place])
    return finding if obstacle is None else replace(finding, mend=obstacle.mend)


def _unwritable(session: Session) -> Iterator[Finding]:
    """Yield what prevents a run from writing. An unreadable side is a finding of the scan already."""
    sides = {session.roots.store_conversations, session.roots.workspace_conversations}
    for obstacle in obstacles_of(session):
        if obstacle.path not in sides or obstacle.is_readable:
            yield Finding(Ailment.UNWRITABLE, obstacle.path, obstacle.found, mend=obstacle.mend)


def incomplete_versions(session: Session) -> Iterator[Finding]:
    """Yield the saved versions whose object is missing in the vault, or is cut."""
    try:
        digests = session.vault.incomplete(session.state.versions.sizes())
    except OSError:  # the directory is a finding of its own
        return
    for digest in digests:
        version = session.state.versions.with_digest(digest)[0]
        words = f"the saved version {version.spelling} is missing or cut"
        mend = ("put it back from a backup",)
        yield Finding(Ailment.INCOMPLETE_VAULT, session.vault.path(digest), words, version.conversation or None, mend)


def _unwritable_copies(side: Side, conversations: str, copies: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the conversations' directories that a run can't write, on a side that it can write."""
    if obstacle_at(conversations) is None:
        for path, conversation in copies.items():
            obstacle = obstacle_at(f"{conversations}/{path}")
            if obstacle is not None and obstacle.is_readable:
                yield Finding(Ailment.UNWRITABLE, f"{side}:{path}", obstacle.found, conversation, obstacle.mend)


def _of_clean(engine: Engine, pass_: Pass, decided: Iterable[str]) -> Iterator[Finding]:
    """Yield what can be wrong with a clean conversation: its directory's name, and its parent.

    ``decided`` are the other live conversations.
    """
    fmt, clean = engine.session.format, list(engine.clean_conversations(pass_))
    live = {*decided, *(entry.conversation for entry in clean if not entry.is_archived)}
    for entry in clean:
        name, parent = fmt.dirname(entry.conversation, entry.row.title), entry.row.parent
        for side, path in ((Side.STORE, entry.path), *((Side.WORKSPACE, path) for path in entry.workspace_paths)):
            if path.rpartition("/")[2] != name:
                yield misnamed(entry.conversation, Place(side, path), name)
        if parent is not None and parent not in live and entry.conversation in live:
            yield orphaned(entry.conversation, f"{Side.STORE}:{entry.path}", parent)


def _private_in_git(session: Session) -> Iterator[Finding]:
    """Yield the conversations that `local` keeps out of the workspace, with those below, and that git has."""
    intents = session.state.intents(session.checkout)
    away = private_of(intents)
    private = [conversation for conversation in intents if conversation in away]
    records = session.git_records(private) if private else {}
    if records is None:
        mend = ("see whether git works here: git log --all",)
        yield Finding(
            Ailment.UNREADABLE, session.roots.workspace, "git gave no answer about private conversations", mend=mend
        )
        return
    fmt = session.format
    for conversation, record in records.items():
        files = typed(f"*{fmt.dirname(conversation, None)}*" if fmt.places is None else conversation)
        if record.commit is None:
            yield Finding(Ailment.STAGED, files, record.words, conversation, (f"git rm -r --cached -- {files}",))
        else:
            ways = (
                f"git log --all --oneline -- {files}",
                f"git filter-repo --invert-paths --path-glob {files} rewrites the history without it",
            )
            yield Finding(Ailment.IN_GIT, files, record.words, conversation, ways)


def _not_among(diagnosed: Collection[Finding], strays: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings of ``strays`` without unreadable places that the scan has reported already."""
    unread = [finding for finding in diagnosed if finding.ailment is Ailment.UNREADABLE]
    places = {finding.place for finding in unread}
    conversations = {finding.conversation for finding in unread} - {None}
    for stray in strays:
        is_reported = stray.place in places or stray.conversation in conversations
        if stray.ailment is not Ailment.UNREADABLE or not is_reported:
            yield stray


def _temporary_files(side: Side, conversations: str, copies: Mapping[str, str], *, is_jp: bool) -> Iterator[Finding]:
    """Yield ``*.tmp`` files beside copies. JP deletes its own at its next start, in live directories only."""
    for copy, conversation in copies.items():
        directory = f"{conversations}/{copy}"
        try:
            names = names_in(directory)
        except OSError as error:
            yield _unread(f"{side}:{copy}", error, conversation)
            continue
        for name in names:
            if name.endswith(_TEMPORARY) and os.path.isfile(path := f"{directory}/{name}"):
                by_hand = f"check it, then rm {typed(path)}"
                mend = ("nothing to do; JP removes it at its next start", f"or {by_hand}") if is_jp else (by_hand,)
                words = f"a temporary file of an interrupted write{' by JP' if is_jp else ''}"
                yield Finding(Ailment.LEFTOVER, f"{side}:{copy}/{name}", words, conversation, mend)


def _staging_directories(side: Side, conversations: str, ours: Collection[str]) -> Iterator[Finding]:
    """Yield the staging directories of runs whose state is lost, or is elsewhere.

    ``ours`` are the names of those that are in use, or that the next run removes.
    """
    try:
        names = names_in(conversations)
    except OSError as error:
        yield _unread(f"{side}:.", error)
        return
    for name in names:
        if name in ours:
            continue
        if name.startswith(STAGING) and os.path.isdir(os.path.join(conversations, name)):
            words = "a temporary directory of a reconcile with another state directory"
            yield Finding(Ailment.LEFTOVER, f"{side}:{name}", words, mend=("check it, then move it away",))


def _orphaned_locks(
    roots: Collection[str], known: Collection[str], parse: Callable[[str], str | None]
) -> Iterator[Finding]:
    """Yield unheld lock files of unknown conversations, and a symbolic link in the place of their directory."""
    held = held_locks(roots)
    for root in roots:
        if os.path.islink(os.path.join(root, _LOCKS)):
            words, way_on = "a symbolic link, which is never followed", ("put a directory there",)
            yield Finding(Ailment.FOREIGN, os.path.join(root, _LOCKS), words, mend=way_on)
            continue
        try:
            names = names_in(os.path.join(root, _LOCKS))
        except OSError as error:
            yield _unread(os.path.join(root, _LOCKS), error)
            continue
        for name in names:
            conversation = parse(name.removesuffix(".lock")) if name.endswith(".lock") else None
            if conversation is not None and conversation not in known and name not in held:
                path = os.path.join(root, _LOCKS, name)
                yield Finding(
                    Ailment.ORPHANED_LOCK,
                    path,
                    "the lock of a conversation that does not exist",
                    conversation,
                    ("nothing to do; JP removes it at its next run",),
                )


def _unread(place: str, error: OSError, conversation: str | None = None) -> Finding:
    return Finding(Ailment.UNREADABLE, place, f"can't be read ({error_text(error)})", conversation, (SEE_TO_IT,))


class CheckFinding(Struct, frozen=True):
    """A finding of any format, in words. ``severity`` is error, warning or note; a note needs no repair.

    ``repairable``: any run repairs it; ``on_request``: only ``doctor --mend`` with its ``id`` does.
    """

    id: str
    kind: str
    severity: str
    place: str
    found: str
    matters: str
    mend: tuple[str, ...]
    repairable: bool
    on_request: bool


def _claudesidian(start: str, now_ns: int) -> tuple[CheckFinding, ...]:
    from reconcile.adapters.claudesidian.files import read_vault
    from reconcile.formats.claudesidian.checks.examine import examine as examine_vault
    from reconcile.formats.claudesidian.checks.examine import id_of
    from reconcile.inspect.brief import find_vault

    return tuple(
        CheckFinding(
            id_of(finding),
            finding.code,
            finding.severity.value,
            finding.place,
            finding.found,
            finding.matters,
            (finding.mend,),
            finding.repairable,
            finding.on_request,
        )
        for finding in examine_vault(read_vault(find_vault(start)), now_ns // 1_000_000)
    )


def _leslie(start: str, now_ns: int) -> tuple[CheckFinding, ...]:
    from reconcile.adapters.leslie.files import project_at, read_leslie
    from reconcile.formats.leslie.checks.examine import examine as examine_tree

    return tuple(
        CheckFinding(
            finding.id,
            finding.kind.number or finding.kind.value,
            finding.severity.value,
            finding.place,
            finding.found,
            finding.kind.matters,
            (finding.next,) if finding.next else (),
            finding.repair is not None and not finding.repair.on_request,
            finding.repair is not None and bool(finding.repair.on_request),
        )
        for finding in examine_tree(read_leslie(project_at(start), now_ns))
    )


def _claude_code(start: str, now_ns: int) -> tuple[CheckFinding, ...]:
    from reconcile.inspect.session_checks import check_sessions

    never = {"repairable": False, "on_request": False}
    return tuple(
        CheckFinding(
            f"{finding.kind}:{finding.place}",
            finding.kind,
            finding.severity,
            finding.place,
            finding.words,
            finding.matters,
            (finding.mend,),
            **never,
        )
        for finding in check_sessions(start, now_ns)
    )


CHECKERS: Mapping[str, Checker] = {"claude-code": _claude_code, "claudesidian": _claudesidian, "leslie": _leslie}
"""By format: a function from a directory and a time (ns) to the findings of the workspace there. It writes nothing."""


def is_damaged(session: Session, path: str) -> bool:
    """Tell whether the workspace has a file at this path that isn't a valid record."""
    content = _read(session.roots.workspace_conversations, path)
    return content is not None and not _is_whole(session, path, content)


def repair_sources(session: Session, path: str) -> tuple[str, ...]:
    """Return the commands that take the best whole version of a record.

    That is the store's, another checkout's, or the newest in the vault. It writes nothing.
    """
    return next(_sources(session, path), ())


def _sources(session: Session, path: str) -> Iterator[tuple[str, ...]]:
    record = typed(path)
    if _is_whole(session, path, _read(session.roots.store_conversations, path)):
        yield "the store has a valid version", f"reconcile resolve {record} --take store"
    for checkout in sorted(session.state.checkouts(), key=lambda checkout: -checkout.last_seen):
        if checkout.project == session.project:
            continue
        root = session.roots.in_checkout(checkout.project).workspace_conversations
        if _is_whole(session, path, _read(root, path)):
            words = f"{os.path.join(root, path)} is valid: copy it into the store, then to this workspace"
            take = f"reconcile resolve {record} --take"
            yield words, f"{take} workspace --workspace {typed(checkout.project)}", f"{take} store"
    for version in reversed(session.state.versions.of_conversation(path)):
        kept = version.unit == METADATA and version.kind is VersionKind.FILE
        if kept and _is_whole(session, path, _kept(session, version.digest)):
            yield "the vault has a valid version", f"reconcile restore {version.digest[:16]}"


def _is_whole(session: Session, path: str, content: bytes | None) -> bool:
    places = session.format.places
    return content is not None and places is not None and isinstance(places.read_record(path, content), Metadata)


def _kept(session: Session, digest: str) -> bytes | None:
    try:
        return session.vault.read(digest)
    except VaultError:
        return None


def _read(root: str, path: str) -> bytes | None:
    """Return the bytes of a regular file, without following links; None: there is none that can be read."""
    above, _, name = path.rpartition("/")
    try:
        with Directory.open_root(root) as top, top.below(above) if above else nullcontext(top) as directory:
            contents = read_files(directory, [name])
    except OSError:
        return None
    return None if isinstance(contents, Fault) else contents[name][0]
