"""The merge of one file that two branches changed, by the rules that decide between the two sides of a run.

A merge driver of git gets three versions of one file. "Ours" takes the place of the store, and "theirs" that of the
workspace. `decide_unit` decides, so that git and a run give the same result (docs/design/git.md#rule-56).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from reconcile.model.baseline import Baseline, BaselineEntry
from reconcile.model.policy import Policy
from reconcile.model.snapshot import METADATA, STREAM, Copy, Fault, File, Partition, Side, Snapshot
from reconcile.planning.rules.content import Outcome, decide_unit
from reconcile.planning.rules.views import views_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.model.options import Diverged
    from reconcile.model.units import Rules

_EMPTY = b"{}"
"""The base of metadata that both branches have added, and the configuration of events without one."""


class Versions(Struct, frozen=True):
    """Three versions of one file. ``base`` is None if both branches have added the file."""

    base: bytes | None
    ours: bytes
    theirs: bytes


class FileMerge(Struct, frozen=True):
    """The result of a merge. ``content`` is always valid.

    ``conflict``: a person has to decide, and ``content`` has our value of everything that both branches changed.
    ``keys`` are the keys of metadata that both changed. ``continuation`` is the version that ``content`` leaves out,
    and that has to become a fork (None: nothing is left out).
    """

    content: bytes
    conflict: bool = False
    keys: tuple[str, ...] = ()
    continuation: bytes | None = None


def merge_metadata(conversation: str, versions: Versions, rules: Rules) -> FileMerge | Fault:
    """Merge three versions of a metadata file key by key; a fault if ours or theirs isn't valid.

    If both branches have added the file, every key that differs counts as edited by both.
    """
    base = _EMPTY if versions.base is None else versions.base
    file, digest = rules.format.metadata_file, rules.digest(base)
    copies = []
    for side, content in ((Side.STORE, versions.ours), (Side.WORKSPACE, versions.theirs)):
        facts = rules.format.read_metadata(content)
        if isinstance(facts, Fault):
            return facts
        copies.append(_copy(side, conversation, (File(file, len(content), 0, rules.digest(content)),), metadata=facts))
    baseline = _baseline(conversation, {METADATA: digest}, {(conversation, digest): base})
    return _merged(conversation, METADATA, versions, copies, baseline, rules, Policy())


def merge_events(
    conversation: str,
    versions: Versions,
    configuration: bytes | None,
    rules: Rules,
    diverged: Diverged,
    time_of: Callable[[str], int | None],
) -> FileMerge | Fault:
    """Merge three versions of an events file; a fault if ours or theirs isn't valid.

    ``configuration`` is the file beside the events, None if there is none. ``time_of`` parses the time of an event: of
    two continuations, that with the later last event stays.
    """
    fmt = rules.format
    name = fmt.stream_files[-1]
    if configuration is None:
        configuration = _EMPTY if _lack_configuration(versions, rules) else None
    beside = {} if configuration is None else {fmt.stream_files[0]: configuration}
    copies = []
    for side, content in ((Side.STORE, versions.ours), (Side.WORKSPACE, versions.theirs)):
        facts = fmt.read_stream({**beside, name: content}, events=True)
        if isinstance(facts, Fault):
            return facts
        time_ns = time_of(facts.last) if facts.last is not None else None
        file = File(name, len(content), time_ns or 0, rules.digest(content))
        copies.append(_copy(side, conversation, (file,), stream=replace(facts, content=content)))
    baseline = _baseline(conversation, {} if versions.base is None else {STREAM: rules.digest(versions.base)}, {})
    return _merged(conversation, STREAM, versions, copies, baseline, rules, Policy(diverged=diverged))


def _lack_configuration(versions: Versions, rules: Rules) -> bool:
    """Tell whether one of the two versions has no configuration of its own in front."""
    name = rules.format.stream_files[-1]
    facts = [rules.format.read_stream({name: content}, events=False) for content in (versions.ours, versions.theirs)]
    return any(isinstance(each, Fault) for each in facts)


def _copy(side: Side, conversation: str, files: tuple[File, ...], **facts: object) -> Copy:
    known: dict[str, Any] = {"metadata": None, "stream": None, **facts}
    return Copy(
        side=side,
        conversation=conversation,
        path=conversation,
        partition=Partition.LIVE,
        container=None,
        files=files,
        **known,
    )


def _baseline(conversation: str, units: dict[str, str], contents: dict[tuple[str, str], bytes]) -> Baseline:
    agreed = BaselineEntry(units, parent=None, title=None, container=None, place=conversation)
    return Baseline(agreed={conversation: agreed}, contents=contents)


def _merged(
    conversation: str,
    unit: str,
    versions: Versions,
    copies: list[Copy],
    baseline: Baseline,
    rules: Rules,
    policy: Policy,
) -> FileMerge:
    sides = [Snapshot(copy.side, exists=True, identity="", copies=(copy,)) for copy in copies]
    view = views_of(sides[0], sides[1], baseline, rules)[conversation]
    verdict = decide_unit(view, unit, baseline, policy)
    if verdict.content is not None:
        return FileMerge(verdict.content, verdict.conflict, verdict.keys)
    takes_theirs = verdict.outcome is Outcome.TO_STORE
    if verdict.forks is not None:
        kept, left = (versions.theirs, versions.ours) if takes_theirs else (versions.ours, versions.theirs)
        return FileMerge(kept, continuation=left)
    if verdict.conflict:
        # Both versions are in git's index until a person has decided, and the one in the file is ours, as for git.
        return FileMerge(versions.ours, conflict=True, keys=verdict.keys)
    return FileMerge(versions.theirs if takes_theirs else versions.ours)
