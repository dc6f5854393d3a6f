"""`doctor --secrets`: the secrets that the workspace contains already, and which of them git has.

The check before publishing looks at new events only. This one reads every file of every conversation there.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.fs.files import Directory, error_text, read_files
from reconcile.model.commands import typed
from reconcile.model.snapshot import Fault, Side, joined
from reconcile.planning.diagnosis import SEE_TO_IT, Ailment, Finding
from reconcile.state.allowed_secrets import AllowedSecrets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconcile.engine.engine import Engine
    from reconcile.engine.session import Session
    from reconcile.model.snapshot import Copy
    from reconcile.scan.git_records import GitRecord

_REVOKE = "first revoke it where it was made: every copy stays valid until then"


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
    found = [finding for copy in copies for finding in _in_copy(session, copy, allowed)]
    concerned = tuple(dict.fromkeys(finding.conversation for finding in found if finding.conversation))
    records = session.git_records(concerned) if concerned else {}
    return tuple(_with_record(session, finding, records) for finding in found)


def _in_copy(session: Session, copy: Copy, allowed: AllowedSecrets) -> Iterator[Finding]:
    above = copy.path if copy.files and copy.files[0].name else copy.path.rpartition("/")[0]
    try:
        with (
            Directory.open_root(session.site.conversations(Side.WORKSPACE)) as root,
            root.below(above) as directory,
        ):
            for file in copy.files:
                place = str(replace(copy.place, path=joined(copy.path, file.name)))
                name = file.name or copy.dirname.rpartition("/")[2]
                files = read_files(directory, [name])
                if isinstance(files, Fault):
                    yield Finding(Ailment.UNREADABLE, place, files.words, copy.conversation, (SEE_TO_IT,))
                    continue
                for secret in allowed.find_secrets(files[name][0]):
                    yield Finding(Ailment.SECRET, place, secret.words, copy.conversation)
    except OSError as error:
        words = f"can't be read ({error_text(error)})"
        yield Finding(Ailment.UNREADABLE, str(copy.place), words, copy.conversation, (SEE_TO_IT,))


def _with_record(session: Session, finding: Finding, records: dict[str, GitRecord] | None) -> Finding:
    """Return a finding with what git has of its conversation, and with the commands that follow."""
    if finding.ailment is not Ailment.SECRET or finding.conversation is None:
        return finding
    conversation, record = finding.conversation, (records or {}).get(finding.conversation)
    fmt = session.format
    files = shlex.quote(f"*{fmt.dirname(conversation, None)}*" if fmt.places is None else conversation)
    words = "git gave no answer" if records is None else record.words if record is not None else "not in git"
    ways = [_REVOKE, f"reconcile local {typed(conversation)}"]
    if record is not None and record.commit is not None:
        ways.append(f"git filter-repo --invert-paths --path-glob {files} rewrites the history without the conversation")
    ways.append(f"reconcile resolve {typed(conversation)} --allow-secrets")
    return replace(finding, found=f"{finding.found}; {words}", mend=tuple(ways))
