"""The changes of conversations in git's index that must not be committed, for a hook before a commit."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from reconcile.model.snapshot import METADATA, STREAM, Fault, Metadata
from reconcile.scan.outdated import file_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from reconcile.fs.git import Git
    from reconcile.model.format import Format

Detector: TypeAlias = "Callable[[bytes, bytes | None], tuple[str, ...]]"
"""Returns the secrets in a file, in words; the second argument is the file in HEAD."""


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
    is_private: Callable[[str], bool],
    secrets: Detector,
) -> tuple[Staged, ...]:
    """Return the staged changes of conversations that must not be committed.

    ``changes`` are the blobs of the changed files by path (`Git.staged_changes`). ``below`` is the directory of the
    conversations. Both are relative to the top.

    Raises:
        GitError: git gave no answer.
    """
    above = "" if below == "." else f"{below}/"
    blobs = git.blobs(dict.fromkeys(changes.values()))
    conversations: dict[str, dict[str, list[_File]]] = {}
    for path, blob in changes.items():
        owner = file_at(path.removeprefix(above), fmt)
        if owner is not None and blob in blobs:
            directory = path.removesuffix(f"/{owner[1]}")
            conversations.setdefault(owner[0], {}).setdefault(directory, []).append(_File(path, owner[1], blobs[blob]))
    return tuple(
        each for id_, places in conversations.items() for each in _of_conversation(git, id_, places, fmt, is_private)
    ) + (tuple(_secrets(git, conversations, secrets)))


def _of_conversation(
    git: Git, conversation: str, places: Mapping[str, list[_File]], fmt: Format, is_private: Callable[[str], bool]
) -> Iterator[Staged]:
    for directory, files in places.items():
        unstage = f"git restore --staged -- '{directory}'"
        if is_private(conversation) or any(_is_local(file, fmt) for file in files):
            ways = (f"git rm -r --cached -- '{directory}'", f"publish it: reconcile project {conversation}")
            yield Staged(directory, f"{conversation} is private", ways)
            continue
        present = {path.removeprefix(f"{directory}/") for path in git.staged(directory)}
        missing = [name for name in (fmt.metadata_file, fmt.stream_files[-1]) if name not in present]
        if missing:
            ways = (f"git add -- '{directory}'", unstage)
            yield Staged(directory, f"{conversation} is incomplete: {' and '.join(missing)} not staged", ways)
        for file in files:
            if (fault := _fault(file, fmt, has_configuration=fmt.stream_files[0] in present)) is not None:
                ways = (f"correct it, then: git add -- '{file.path}'", unstage)
                yield Staged(file.path, fault.words, ways)


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
    files = [file for places in conversations.values() for listed in places.values() for file in listed]
    names = git.names([f"HEAD:{file.path}" for file in files])
    before = git.blobs([name for name in names if name is not None])
    for file, name in zip(files, names, strict=True):
        for words in secrets(file.content, before.get(name) if name is not None else None):
            ways = (
                "remove it, and revoke it if it was real",
                f"git restore --staged -- '{os.path.dirname(file.path)}'",
            )
            yield Staged(file.path, f"a secret: {words}", ways)
