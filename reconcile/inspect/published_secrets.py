"""The secrets that a side contains already. For `doctor --secrets`: those of the workspace, and which of them git has.

The check before publishing looks at new events only. This one reads every file of every conversation there, and the
committed versions of the files with findings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from reconcile.fs.files import Directory, error_text, read_files
from reconcile.model.commands import typed
from reconcile.model.snapshot import Fault, Side, joined
from reconcile.planning.diagnosis import SEE_TO_IT, Ailment, Finding
from reconcile.scan.git_records import Sought
from reconcile.state.allowed_secrets import AllowedSecrets

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from reconcile.engine.engine import Engine
    from reconcile.engine.session import Session
    from reconcile.model.snapshot import Copy
    from reconcile.planning.rules.commit_order import FileOf

_NO_ANSWER = "git gave no answer"
_REVOKE = "first revoke it where it was made: every copy stays valid until then"


class _Located(NamedTuple):
    """A finding; of a secret, also its words, the name and the size of its file, and its fingerprint."""

    finding: Finding
    words: str = ""
    name: str = ""
    size: int = 0
    fingerprint: str | None = None


def published_secrets(engine: Engine) -> tuple[Finding, ...]:
    """Return the secrets in the workspace that are not allowed, by file. It writes nothing.

    Raises:
        StateError: the list of allowed secrets can't be read.
    """
    session = engine.session
    allowed = AllowedSecrets(session.directory)
    places = session.format.places
    copies = [
        copy
        for copy in sorted(engine.known.sides[Side.WORKSPACE].copies(), key=lambda copy: copy.path)
        if places is None or not places.is_derived(copy.conversation)  # it follows from the others
    ]
    found = [each for copy in copies for each in _in_copy(session, copy, allowed)]
    in_git = _words_of_git(session, found, allowed)
    return tuple(_with_record(session, each.finding, in_git.get(each)) for each in found)


def secrets_of(session: Session, copies: Iterable[Copy]) -> Iterator[tuple[str, str]]:
    """Yield the conversations in some copies that have secrets that are not allowed, each with a secret's words.

    What can't be read is left out. Raises `StateError`: the list of allowed secrets can't be read.
    """
    allowed = AllowedSecrets(session.directory)
    for copy in copies:
        for found in _in_copy(session, copy, allowed):
            if found.fingerprint is not None:
                yield copy.conversation, found.words


def _in_copy(session: Session, copy: Copy, allowed: AllowedSecrets) -> Iterator[_Located]:
    above = copy.path if copy.files and copy.files[0].name else copy.path.rpartition("/")[0]
    try:
        with (
            Directory.open_root(session.site.conversations(copy.side)) as root,
            root.below(above) as directory,
        ):
            for file in copy.files:
                place = str(replace(copy.place, path=joined(copy.path, file.name)))
                name = file.name or copy.dirname.rpartition("/")[2]
                files = read_files(directory, [name])
                if isinstance(files, Fault):
                    yield _Located(Finding(Ailment.UNREADABLE, place, files.words, copy.conversation, (SEE_TO_IT,)))
                    continue
                content = files[name][0]
                for secret in allowed.find_secrets(content):
                    finding = Finding(Ailment.SECRET, place, secret.words, copy.conversation)
                    yield _Located(finding, secret.words, file.name, len(content), secret.fingerprint)
    except OSError as error:
        words = f"can't be read ({error_text(error)})"
        yield _Located(Finding(Ailment.UNREADABLE, str(copy.place), words, copy.conversation, (SEE_TO_IT,)))


def _words_of_git(
    session: Session, located: Sequence[_Located], allowed: AllowedSecrets
) -> dict[_Located, tuple[str, bool]]:
    """Return of each secret what git has of it, and whether a commit has it.

    git may have the conversation, but not yet the secret. Only files with findings are looked up in the history, and
    only those of conversations that git has.
    """
    secrets = [each for each in located if each.fingerprint is not None and each.finding.conversation is not None]
    concerned = tuple(dict.fromkeys(str(each.finding.conversation) for each in secrets))
    known = session.git_records(concerned) if concerned else {}
    if known is None:
        return dict.fromkeys(secrets, (_NO_ANSWER, False))
    files: dict[FileOf, list[_Located]] = {}
    for each in secrets:
        if each.finding.conversation in known:
            files.setdefault((each.finding.conversation, each.name), []).append(each)
    sought = {
        file: Sought(frozenset(str(each.fingerprint) for each in group), max(each.size for each in group))
        for file, group in files.items()
    }

    def texts_of(content: bytes, before: Collection[bytes]) -> list[str]:
        return [secret.fingerprint for secret in allowed.find_secrets(content, before)]

    records = session.texts_in_git(sought, texts_of) if sought else {}
    words: dict[_Located, tuple[str, bool]] = dict.fromkeys(secrets, ("not in git", False))
    for file, group in files.items():
        for each in group:
            if records is None:
                words[each] = _NO_ANSWER, False
            elif (fingerprint := str(each.fingerprint)) not in records[file]:
                words[each] = "not committed yet", False
            else:
                record = records[file][fingerprint]
                words[each] = (_NO_ANSWER, False) if record is None else (record.words, record.commit is not None)
    return words


def _with_record(session: Session, finding: Finding, in_git: tuple[str, bool] | None) -> Finding:
    """Return a finding with what git has of it, and with the commands that follow."""
    if finding.ailment is not Ailment.SECRET or finding.conversation is None or in_git is None:
        return finding
    conversation, (words, is_committed) = finding.conversation, in_git
    fmt = session.format
    ways = [_REVOKE, f"reconcile local {typed(conversation)}"]
    if is_committed:
        files = typed(f"*{fmt.dirname(conversation, None)}*" if fmt.places is None else conversation)
        ways.append(f"git filter-repo --invert-paths --path-glob {files} rewrites the history without the conversation")
    ways.append(f"reconcile resolve {typed(conversation)} --allow-secrets")
    return replace(finding, found=f"{finding.found}; {words}", mend=tuple(ways))
