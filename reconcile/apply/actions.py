"""One action on disk: prepared in the staging directory, then published by renames (docs/design/run.md#rule-50)."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from msgspec import Struct, field

from reconcile.apply.remove_directory import DirectoryRemoval
from reconcile.apply.staging import DriftError
from reconcile.apply.swap import Swap
from reconcile.fs.files import fingerprint_of
from reconcile.model.plan import Kind
from reconcile.model.snapshot import WHOLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reconcile.apply.staging import SavedFile, Stage, StagedDirectory
    from reconcile.index.rows import Files
    from reconcile.model.plan import Action
    from reconcile.model.snapshot import Place

MOVES = (Kind.MOVE, Kind.ARCHIVE, Kind.UNARCHIVE)


class Prepared(Struct, frozen=True):
    """An action of which only the renames are left."""

    action: Action
    publish: Callable[[], None]
    files: Files = field(default_factory=dict)
    """The files of a new directory, with their fingerprints and digests after writing."""


def prepare(stage: Stage, action: Action) -> Prepared:
    """Check the preconditions of an action, save the old files to the vault, and stage the new ones.

    Raises:
        DriftError: a file differs from the plan.
        OSError: a file could not be read or written.
    """
    staged = stage.prefetcher.take(action) if stage.prefetcher is not None else None
    if staged is not None and _is_as_staged(stage, action, staged):
        root = stage.roots[action.target.side]
        stage.staged += [root.absolute(f"{staged.base}/{name}") for name in staged.files]
        return Prepared(action, lambda: _publish_directory(stage, action, staged.base), staged.files)
    with stage.sources_pinned(action):
        return _prepared(stage, action)


def _is_as_staged(stage: Stage, action: Action, staged: StagedDirectory) -> bool:
    """Tell whether every source, under its lock, is still the file that the second process has read."""
    for expect in action.expect:
        if expect.absent:
            stage.check(expect)
    for place, read in staged.sources.items():
        try:
            if fingerprint_of(stage.roots[place.side].status_unchecked(place.path)) != read:
                return False
        except OSError:
            return False
    return True


def _prepared(stage: Stage, action: Action) -> Prepared:
    for expect in action.expect:
        stage.check(expect)
    if action.kind in MOVES:
        return Prepared(action, lambda: _move(stage, action))
    if action.makes or action.clears:
        return Prepared(action, lambda: _make_directories(stage, action))
    if action.kind is Kind.AGE:
        return Prepared(action, lambda: _age(stage, action))
    if action.kind in (Kind.REMOVE_STALE, Kind.REMOVE) and action.unit == WHOLE:
        removal = DirectoryRemoval(stage.roots[action.target.side], action, stage)
        removal.save()
        return Prepared(action, removal.carry_out)
    return _prepare_writes(stage, action)


def _prepare_writes(stage: Stage, action: Action) -> Prepared:
    if action.unit == WHOLE:
        return _prepare_directory(stage, action)
    expected = {expect.place: expect for expect in action.expect}
    side = action.target.side
    replaced: dict[Place, SavedFile] = {}
    for place in (*(write.target for write in action.writes), *action.removes):
        expect = expected.get(place)
        if expect is not None and not expect.absent:
            replaced[place] = stage.save(action, place, stage.name_in(action, place), expect.digest)
    base = stage.new_name(side)
    staged = []
    for number, write in enumerate(action.writes):
        name = f"{base}-{number}"
        stage.write(side, name, write)
        staged.append((name, write.target))
    # A file that only gets another time goes first. Recovery compares contents: with the last new content in place, a
    # killed step counts as done, and the time would stay the old one.
    retimed = {
        write.target
        for write in action.writes
        if (before := replaced.get(write.target)) is not None and before.content == write.digest
    }
    staged.sort(key=lambda file: file[1] not in retimed)
    return Prepared(action, lambda: _publish_files(stage, action, staged, replaced))


def _prepare_directory(stage: Stage, action: Action) -> Prepared:
    """Stage a whole directory, or the file of a record that has only one."""
    base = stage.new_name(action.target.side)
    if [write.target for write in action.writes] == [action.target]:
        stage.write(action.target.side, base, action.writes[0])
        return Prepared(action, lambda: _publish_directory(stage, action, base))
    files = stage.write_directory(action, base)
    return Prepared(action, lambda: _publish_directory(stage, action, base), files)


def _publish_directory(stage: Stage, action: Action, base: str) -> None:
    stage.make_parents(action.target)
    _rename_new(stage, base, action.target)


def _publish_files(
    stage: Stage, action: Action, staged: list[tuple[str, Place]], replaced: Mapping[Place, SavedFile]
) -> None:
    for place, before in replaced.items():
        _check_same(stage, place, before.status)
    side = action.target.side
    swap = Swap(stage.roots[side], lambda: stage.new_name(side))
    try:
        for name, target in staged:
            _publish_file(stage, swap, name, target, replaced.get(target))
        for place in action.removes:
            if place in replaced:
                swap.remove(place.path, replaced[place].content)
                stage.mark_renamed(place)
                stage.remove_empty_parents(place, stage.name_in(action, place).count("/"))
    except (DriftError, OSError):
        swap.undo()
        raise
    swap.finish()


def _publish_file(stage: Stage, swap: Swap, name: str, target: Place, before: SavedFile | None) -> None:
    stage.make_parents(target)
    if before is not None:
        swap.root.set_mode(name, stat.S_IMODE(before.status.st_mode))
        swap.replace(name, target.path, before.content)
    else:
        try:
            swap.add(name, target.path)
        except FileExistsError:
            raise DriftError(f"{target}: found something, expected nothing") from None
    stage.mark_renamed(target)


def _check_same(stage: Stage, place: Place, before: os.stat_result) -> None:
    """Check again, right before the change, that the file is still the one in the vault."""
    try:
        now = stage.roots[place.side].status(place.path)
    except FileNotFoundError:
        raise DriftError(f"{place}: found nothing, expected the file of the plan") from None
    if fingerprint_of(now) != fingerprint_of(before):
        raise DriftError(f"{place}: found another file, expected the one of the plan")


def _move(stage: Stage, action: Action) -> None:
    source, target = action.source, action.target
    assert source is not None  # noqa: S101 - a move has a source
    for expect in action.expect:
        stage.check(expect)
    stage.retry_removals()
    stage.make_parents(target)
    _rename_new(stage, source.path, target)
    stage.mark_renamed(source)
    stage.remove_empty_parents(source)


def _rename_new(stage: Stage, source: str, target: Place) -> None:
    """Rename a directory to an unused name; an existing directory without files is removed first."""
    root = stage.roots[target.side]
    try:
        root.rename_new(source, target.path)
    except FileExistsError:
        root.remove_empty_tree(target.path)
        try:
            root.rename_new(source, target.path)
        except FileExistsError:
            raise DriftError(f"{target}: found something, expected nothing") from None
    stage.mark_renamed(target)


def _age(stage: Stage, action: Action) -> None:
    for expect in action.expect:
        stage.check(expect)
        root = stage.roots[expect.place.side]
        if not root.set_time(expect.place.path, action.mtime_ns or 0, expect.digest or ""):
            raise DriftError(f"{expect.place}: found other content, expected that of the plan")


def _make_directories(stage: Stage, action: Action) -> None:
    """Make missing directories. A stale lock was taken over before, and so removed."""
    root = stage.roots[action.target.side]
    for place in action.makes:
        for directory in root.make_directories(place.path):
            stage.renamed.add(os.path.dirname(root.absolute(directory)))
