"""A story that breaks a law, made as short as it can be while it still breaks the same one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from tests.properties.telling import Frame
from tests.support.scenarios.pure_level import PureLevel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.scenarios.trees import Tree

Frames = list[Frame]


def shortened(frames: Frames) -> Frames:
    """Leave out runs, conversations, directories and files, one at a time, as long as the last run goes wrong alike."""
    wrong = breaks(frames)
    shorter = frames if wrong else []
    while shorter:
        frames = shorter
        shorter = next((each for each in _shorter(frames) if breaks(each) == wrong), [])
    return frames


def breaks(frames: Frames) -> str:
    """Return which law the last run breaks; empty where an earlier one does, or none."""
    level = PureLevel()
    for frame in frames:
        try:
            frame.play(level)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what the story is about
            first = str(error).partition("\n")[0]
            return f"{type(error).__name__}: {first[:50]}" if frame is frames[-1] else ""
    return ""


def _shorter(frames: Frames) -> Iterator[Frames]:
    for at in range(len(frames) - 1):
        yield frames[:at] + frames[at + 1 :]
    numbers = {name.split("-")[0] for frame in frames for tree in frame.trees.values() for name in _names(tree or {})}
    for number in sorted(numbers):
        yield [_without(frame, number) for frame in frames]
    for at, frame in enumerate(frames):
        if frame.verbs or frame.renewed:
            yield [*frames[:at], replace(frame, verbs=(), renewed=frozenset()), *frames[at + 1 :]]
        for side, found in frame.trees.items():
            tree = found or {}
            for path in sorted({path.rpartition("/")[0] + "/" for path in tree} | set(tree)):
                rest = {name: entry for name, entry in tree.items() if not name.startswith(path)}
                yield [*frames[:at], replace(frame, trees={**frame.trees, side: rest}), *frames[at + 1 :]]


def _names(tree: Tree) -> Iterator[str]:
    return (name for path in tree for name in path.split("/") if name[0].isdigit())


def _without(frame: Frame, number: str) -> Frame:
    kept = {
        side: {
            path: entry
            for path, entry in (tree or {}).items()
            if all(name.split("-")[0] != number for name in path.split("/"))
        }
        for side, tree in frame.trees.items()
    }
    return replace(frame, trees=kept)
