"""The changes of conversations in git's index that must not be committed, for a hook before a commit."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from reconcile.model.snapshot import METADATA, STREAM, Fault, Metadata
from reconcile.scan.outdated import file_at

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from reconcile.fs.git import Git
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


def refused(
    git: Git,
    changes: Mapping[str, str],
    below: str,
    fmt: Format,
    private: Callable[[Collection[str]], Collection[str]],
    secrets: Detector,
) -> tuple[Staged, ...]:
    """Return the staged changes of conversations that must not be committed.

    ``changes`` are the blobs of the changed files by path (`Git.staged_changes`). ``below`` is the directory of the
    conversations. Both are relative to the top. ``private`` returns the private ones of some conversations.

    Raises:
        GitError: git gave no answer.
    """
    above = "" if below == "." else f"{below}/"
    blobs = git.blobs(blob for blob in dict.fromkeys(changes.values()) if blob.strip("0"))
    conversations: dict[str, dict[str, list[_File]]] = {}
    for path, blob in changes.items():
        owner = file_at(path.removeprefix(above), fmt)
        if owner is not None:
            files = conversations.setdefault(owner[0], {}).setdefault(path.removesuffix(f"/{owner[1]}"), [])
            if blob in blobs:
                files.append(_File(path, owner[1], blobs[blob]))
    directories = [directory for places in conversations.values() for directory in places]
    # Many names would be compared with every path of the index.
    staged = frozenset(git.staged(*(directories if len(directories) <= _FEW else [below])))
    secret_ones = private(conversations)
    examined = (
        trouble
        for conversation, places in conversations.items()
        for directory, files in places.items()
        for trouble in _of_directory(conversation, directory, files, staged, fmt, conversation in secret_ones)
    )
    return (*examined, *_secrets(git, conversations, secrets))


def _of_directory(
    conversation: str, directory: str, files: list[_File], staged: Collection[str], fmt: Format, is_private: bool
) -> Iterator[Staged]:
    quoted = shlex.quote(directory)
    unstage = f"git restore --staged -- {quoted}"
    if files and (is_private or any(_is_local(file, fmt) for file in files)):
        ways = (f"git rm -r --cached -- {quoted}", f"publish it: reconcile project {conversation}")
        yield Staged(directory, f"{conversation} is private", ways)
        return
    configuration, events = fmt.stream_files
    present = [name for name in (fmt.metadata_file, configuration, events) if f"{directory}/{name}" in staged]
    missing = [name for name in (fmt.metadata_file, events) if name not in present]
    if present and missing:
        ways = (f"git add -- {quoted}", unstage)
        yield Staged(directory, f"{conversation} is incomplete: {' and '.join(missing)} not staged", ways)
    for file in files:
        if (fault := _fault(file, fmt, has_configuration=configuration in present)) is not None:
            yield Staged(file.path, fault.words, (f"correct it, then: git add -- {shlex.quote(file.path)}", unstage))


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


def _secrets(git: Git, conversations: Mapping[str, Mapping[str, list[_File]]], secrets: Detector) -> Iterator[Staged]:
    files = [(id_, file) for id_, places in conversations.items() for listed in places.values() for file in listed]
    # git takes one name a line. A path with a line break has no version before, so that all of it is checked.
    names = git.names([f"HEAD:{file.path}" if "\n" not in file.path else "-" for _, file in files])
    before = git.blobs([name for name in names if name is not None])
    for (conversation, file), name in zip(files, names, strict=True):
        for words in secrets(file.content, before.get(name) if name is not None else None):
            ways = (
                "remove it, and revoke it if it is real",
                f"no secret, or meant to be public: reconcile resolve {conversation} --allow-secrets",
            )
            yield Staged(file.path, f"a secret: {words}", ways)
