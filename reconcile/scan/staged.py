"""The changes of conversations in git's index that must not be committed, for a hook before a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from reconcile.model.commands import typed
from reconcile.model.snapshot import METADATA, STREAM, Fault, Metadata
from reconcile.scan.outdated import file_at

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from reconcile.fs.git import Change, Git
    from reconcile.model.format import Format

Detector: TypeAlias = "Callable[[bytes, bytes | None], tuple[str, ...]]"
"""Returns the secrets in a file, in words; the second argument is the file in HEAD."""


_FEW = 50
"""Directories that git is asked about one by one."""


class Staged(Struct, frozen=True):
    """A staged file or directory that must not be committed: the reason, and the commands that settle it.

    ``path`` is relative to the top of the checkout.
    """

    path: str
    reason: str
    ways: tuple[str, ...]


class _File(Struct, frozen=True):
    path: str
    name: str
    content: bytes
    before: str
    """The blob in HEAD; empty: it isn't there."""


class _Place(Struct, frozen=True):
    """The conversation of a path. ``is_regular``: it lies where a run looks for conversations.

    ``above`` are conversations of a directory around one that is not regular.
    """

    conversation: str
    name: str
    is_regular: bool
    above: tuple[str, ...] = ()


def refused(
    git: Git,
    changes: Mapping[str, Change],
    below: str,
    fmt: Format,
    private: Callable[[Collection[str]], Collection[str]],
    secrets: Detector,
    command: str,
) -> tuple[Staged, ...]:
    """Return the staged changes of conversations that must not be committed, and secrets in files of none.

    ``changes`` are the changed files by path (`Git.staged_changes`). ``below`` is the directory of the conversations.
    Both are relative to the top. ``private`` returns the private ones of some conversations. ``command`` calls
    `reconcile` for this project from the top.

    Raises:
        GitError: git gave no answer.
    """
    above = "" if below == "." else f"{below}/"
    git.allow_time_for(2 * len(changes))
    blobs = git.blobs(dict.fromkeys(change.after for change in changes.values() if change.after))
    conversations: dict[str, dict[str, list[_File]]] = {}
    regular, others, above_of = set[str](), list[_File](), dict[str, tuple[str, ...]]()
    for path, change in changes.items():
        place = _place_of(path.removeprefix(above), fmt)
        if place is None and change.after in blobs:
            others.append(_File(path, path, blobs[change.after], change.before))
        if place is not None:
            directory = path.removesuffix(f"/{place.name}")
            files = conversations.setdefault(place.conversation, {}).setdefault(directory, [])
            if change.after in blobs:
                files.append(_File(path, place.name, blobs[change.after], change.before))
            above_of[directory] = place.above
            if place.is_regular:
                regular.add(directory)
    # Many names would be compared with every path of the index.
    staged = frozenset(git.staged(*(regular if len(regular) <= _FEW else [below])) if regular else ())
    secret_ones = private({*conversations, *(id_ for ids in above_of.values() for id_ in ids)})
    troubles = list[Staged]()
    for conversation, places in conversations.items():
        for directory, files in places.items():
            owner = next((id_ for id_ in (conversation, *above_of[directory]) if id_ in secret_ones), None)
            if files and (owner is not None or any(_is_local(file, fmt) for file in files)):
                troubles.append(_private(owner or conversation, directory, command))
            elif directory in regular:
                troubles += _of_directory(conversation, directory, files, staged, fmt)
    return (*troubles, *_secrets(git, conversations, others, secrets, command))


def _place_of(path: str, fmt: Format) -> _Place | None:
    """Return the conversation of a path; a run doesn't look into other directories, but git commits them."""
    at = file_at(path, fmt)
    names = (path if at is None else at[1]).split("/")
    inner = [(id_, end) for end, name in enumerate(names[:-1], 1) if (id_ := fmt.id_of(name)) is not None]
    if not inner:
        return None if at is None else _Place(at[0], at[1], is_regular=True)
    around = () if at is None else (at[0],)
    (*outer, (conversation, end)) = inner
    # Any directory of extra files may have the name of a conversation: all of these count.
    return _Place(conversation, "/".join(names[end:]), is_regular=False, above=(*(id_ for id_, _ in outer), *around))


def _private(conversation: str, directory: str, command: str) -> Staged:
    ways = (f"git rm -r --cached -- {typed(directory)}", f"publish it: {command} project {conversation}")
    return Staged(directory, f"{conversation} is private", ways)


def _of_directory(
    conversation: str, directory: str, files: list[_File], staged: Collection[str], fmt: Format
) -> Iterator[Staged]:
    quoted = typed(directory)
    unstage = f"git restore --staged -- {quoted}"
    configuration, events = fmt.stream_files
    present = [name for name in (fmt.metadata_file, configuration, events) if f"{directory}/{name}" in staged]
    missing = [name for name in (fmt.metadata_file, events) if name not in present]
    if present and missing:
        ways = (f"git add -- {quoted}", unstage)
        yield Staged(directory, f"{conversation} is incomplete: {' and '.join(missing)} not staged", ways)
    for file in files:
        if (fault := _fault(file, fmt, has_configuration=configuration in present)) is not None:
            yield Staged(file.path, fault.words, (f"correct it, then: git add -- {typed(file.path)}", unstage))


def _is_local(file: _File, fmt: Format) -> bool:
    facts = fmt.read_metadata(file.content) if fmt.unit_of(file.name) == METADATA else None
    return isinstance(facts, Metadata) and facts.local


def _fault(file: _File, fmt: Format, *, has_configuration: bool) -> Fault | None:
    """Return the fault of a managed file; None if it is valid, or another file."""
    unit = fmt.unit_of(file.name)
    if unit == METADATA:
        facts = fmt.read_metadata(file.content)
        return facts if isinstance(facts, Fault) else None
    if unit != STREAM:
        return None
    configuration, events = fmt.stream_files
    if file.name == configuration:
        stream = fmt.read_stream({configuration: file.content, events: b"[]"}, events=False)
    else:
        beside = {configuration: b"{}"} if has_configuration else {}
        stream = fmt.read_stream({**beside, events: file.content}, events=False)
    return stream if isinstance(stream, Fault) else None


def _secrets(
    git: Git,
    conversations: Mapping[str, Mapping[str, list[_File]]],
    others: Iterable[_File],
    secrets: Detector,
    command: str,
) -> Iterator[Staged]:
    """Yield the secrets in files of conversations, and in ``others``, which belong to none."""
    files: list[tuple[str | None, _File]] = [(None, file) for file in others]
    files += [(id_, file) for id_, places in conversations.items() for listed in places.values() for file in listed]
    before = git.blobs(dict.fromkeys(file.before for _, file in files if file.before))
    for conversation, file in files:
        for words in secrets(file.content, before.get(file.before)):
            way = (
                f"leave the file out: git restore --staged -- {typed(file.path)}"
                if conversation is None
                else f"no secret, or meant to be public: {command} resolve {conversation} --allow-secrets"
            )
            yield Staged(file.path, f"a secret: {words}", ("remove it, and revoke it if it is real", way))
