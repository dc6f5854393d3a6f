"""One action on disk: prepared out of sight, then published by renames (docs/design/run.md#rule-50)."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from msgspec import Struct, field

from reconcile.apply.remove_directory import Discard
from reconcile.apply.staging import DriftError
from reconcile.apply.swap import Swap
from reconcile.fs.files import fingerprint_of
from reconcile.model.plan import Kind
from reconcile.model.snapshot import WHOLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reconcile.apply.staging import Kept, Stage, Staged
    from reconcile.index.adopted import Files
    from reconcile.model.plan import Action
    from reconcile.model.snapshot import Place

MOVES = (Kind.MOVE, Kind.ARCHIVE, Kind.UNARCHIVE)


class Prepared(Struct, frozen=True):
    """An action that can be carried out at once: what is left are renames."""

    action: Action
    publish: Callable[[], None]
    made: Files = field(default_factory=dict)
    """Of a directory that is new: the files in it, as they were when they were written."""


def prepare(stage: Stage, action: Action) -> Prepared:
    """Check what the action expects, save what goes, stage what comes.

    Raises:
        DriftError: something else is there than was planned for.
        OSError: something could not be read or written.
    """
    staged = stage.ahead.take(action) if stage.ahead is not None else None
    if staged is not None and _is_as_staged(stage, action, staged):
        root = stage.roots[action.target.side]
        stage.staged += [root.absolute(f"{staged.base}/{name}") for name in staged.made]
        return Prepared(action, lambda: _publish_directory(stage, action, staged.base), staged.made)
    with stage.near_sources(action):
        return _prepared(stage, action)


def _is_as_staged(stage: Stage, action: Action, staged: Staged) -> bool:
    """Tell whether every source is, under its lock, the file that was read when a directory was staged ahead."""
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
        return Prepared(action, lambda: _tidied(stage, action))
    if action.kind is Kind.AGE:
        return Prepared(action, lambda: _age(stage, action))
    if action.kind in (Kind.REMOVE_STALE, Kind.REMOVE) and action.unit == WHOLE:
        discard = Discard(stage.roots[action.target.side], action, stage)
        discard.save()
        return Prepared(action, discard.carry_out)
    return _prepare_writes(stage, action)


def _prepare_writes(stage: Stage, action: Action) -> Prepared:
    if action.unit == WHOLE:
        return _prepare_directory(stage, action)
    expected = {expect.place: expect for expect in action.expect}
    side = action.target.side
    replaced: dict[Place, Kept] = {}
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
    return Prepared(action, lambda: _publish_files(stage, action, staged, replaced))


def _prepare_directory(stage: Stage, action: Action) -> Prepared:
    """Stage a whole directory, or the file that is all of a conversation."""
    base = stage.new_name(action.target.side)
    if [write.target for write in action.writes] == [action.target]:
        stage.write(action.target.side, base, action.writes[0])
        return Prepared(action, lambda: _publish_directory(stage, action, base))
    made = stage.write_directory(action, base)
    return Prepared(action, lambda: _publish_directory(stage, action, base), made)


def _publish_directory(stage: Stage, action: Action, base: str) -> None:
    stage.make_room(action.target)
    _rename_new(stage, base, action.target)


def _publish_files(
    stage: Stage, action: Action, staged: list[tuple[str, Place]], replaced: Mapping[Place, Kept]
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
                swap.take_away(place.path, replaced[place].content)
                stage.note_renamed(place)
                stage.tidy(place, stage.name_in(action, place).count("/"))
    except (DriftError, OSError):
        swap.undo()
        raise
    swap.settle()


def _publish_file(stage: Stage, swap: Swap, name: str, target: Place, before: Kept | None) -> None:
    stage.make_room(target)
    if before is not None:
        swap.root.set_mode(name, stat.S_IMODE(before.status.st_mode))
        swap.replace(name, target.path, before.content)
    else:
        try:
            swap.add(name, target.path)
        except FileExistsError:
            raise DriftError(f"{target}: found something, expected nothing") from None
    stage.note_renamed(target)


def _check_same(stage: Stage, place: Place, before: os.stat_result) -> None:
    """Look once more, right before: the file that the vault has is still the one that is there."""
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
    stage.make_room(target)
    _rename_new(stage, source.path, target)
    stage.note_renamed(source)
    stage.tidy(source)


def _rename_new(stage: Stage, source: str, target: Place) -> None:
    """Give a directory a name that must be free; a directory with nothing in it gives way."""
    root = stage.roots[target.side]
    try:
        root.rename_new(source, target.path)
    except FileExistsError:
        root.remove_empty_tree(target.path)
        try:
            root.rename_new(source, target.path)
        except FileExistsError:
            raise DriftError(f"{target}: found something, expected nothing") from None
    stage.note_renamed(target)


def _age(stage: Stage, action: Action) -> None:
    for expect in action.expect:
        stage.check(expect)
        root = stage.roots[expect.place.side]
        if not root.set_time(expect.place.path, action.mtime_ns or 0, expect.digest or ""):
            raise DriftError(f"{expect.place}: found other content, expected that of the plan")


def _tidied(stage: Stage, action: Action) -> None:
    """Make directories that are missing; a lock that was left behind goes by being taken over, before this."""
    root = stage.roots[action.target.side]
    for place in action.makes:
        for made in root.make_directories(place.path):
            stage.renamed.add(os.path.dirname(root.absolute(made)))
