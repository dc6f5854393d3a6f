"""The differences between two versions of a conversation, or of two conversations: metadata, events and other files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from reconcile.formats.reading import decoded, parsed
from reconcile.inspect.alignment import aligned
from reconcile.inspect.conversation import compare_contents, compare_files
from reconcile.inspect.sources import transcript_of
from reconcile.inspect.text_diff import line_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from reconcile.inspect.alignment import Pair
    from reconcile.inspect.conversation import Comparison
    from reconcile.inspect.sources import Source
    from reconcile.inspect.text_diff import Row
    from reconcile.model.format import Format
    from reconcile.model.snapshot import Content

_TURNS = ("messages.",)
"""The beginning of the paths of values in a record that its turns show."""


class OtherFile(Struct, frozen=True):
    """A file beside the managed ones that differs: its state in words, and its lines if both versions are texts."""

    name: str
    state: str
    rows: tuple[Row, ...] = ()


class Differences(Struct, frozen=True):
    """The differences between two sources. ``comparison`` has them as values, for JSON.

    ``metadata`` and ``configuration`` are (path, left, right), None for an absent value. ``pairs`` are all turns.
    """

    left: Source
    right: Source
    comparison: Comparison
    metadata: tuple[tuple[str, Any, Any], ...]
    configuration: tuple[tuple[str, Any, Any], ...]
    pairs: tuple[Pair, ...]
    others: tuple[OtherFile, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        return self.comparison.empty and not self.is_turn_changed

    @property
    def is_turn_changed(self) -> bool:
        """Whether any turn differs."""
        return any(not pair.is_same for pair in self.pairs)


def differences_of(form: Format, left: Source, right: Source, comparison: Comparison | None = None) -> Differences:
    """Compare two sources. ``comparison`` is that of their values, if it is known."""
    known = comparison or compared_sources(form, left, right)
    turns = [transcript_of(form, source).turns for source in (left, right)]
    if form.places is None and form.stream_files[-1] in _left_out(form, left, right):
        turns = [(), ()]
    pairs = tuple(aligned(*turns))
    shown = _kinds_that_differ(pairs) if form.places is not None else frozenset[str]()
    return Differences(
        left=left,
        right=right,
        comparison=known,
        metadata=_shown_metadata(form, left, right, known),
        configuration=_configuration(form, left, right) if known.base_config_differs else (),
        pairs=pairs,
        others=tuple(_other(left, right, name, state) for name, state in known.extras if name not in shown),
    )


def _kinds_that_differ(pairs: Iterable[Pair]) -> frozenset[str]:
    """Return the kinds of the turns that differ: of a file that is a turn, its name."""
    turns = (turn for pair in pairs if not pair.is_same for turn in (pair.left, pair.right))
    return frozenset(turn.kind for turn in turns if turn is not None)


def compared_sources(form: Format, left: Source, right: Source) -> Comparison:
    """Compare the values of two sources; parts that only one of them has because it is a part are left out."""
    labels = (left.label, right.label)
    ours, theirs = _contents(left), _contents(right)
    if form.places is not None:
        comparison = compare_contents(ours.get(""), theirs.get(""), labels)
    else:
        names = (form.metadata_file, *form.stream_files)
        comparison = compare_files(ours, theirs, names, labels, _left_out(form, left, right))
    return replace(comparison, extras=tuple(_extras(form, left, right)))


def _contents(source: Source) -> dict[str, Content]:
    return {**source.contents, **{fault.file: fault for fault in source.faults}}


def _left_out(form: Format, left: Source, right: Source) -> set[str]:
    """Return the managed files that are not compared, as a part lacks them; a stream is compared by its events."""
    names = (form.metadata_file, *form.stream_files)
    return {name for name in names for source in (left, right) if source.is_part and name not in _contents(source)}


def _extras(form: Format, left: Source, right: Source) -> Iterator[tuple[str, str]]:
    managed = {"", form.metadata_file, *form.stream_files}
    ours, theirs = _contents(left), _contents(right)
    for name in sorted({*ours, *theirs} - managed):
        if name not in ours or name not in theirs:
            there, lacking = (left, right) if name in ours else (right, left)
            if not lacking.is_part:
                yield name, f"only in {there.label}"
        elif ours[name] != theirs[name]:
            yield name, "differs"


def _shown_metadata(form: Format, left: Source, right: Source, known: Comparison) -> tuple[tuple[str, Any, Any], ...]:
    """Return the differing values that no turn shows. The lines of a record that isn't JSON are all shown by turns."""
    if form.places is None:
        return known.metadata
    contents = [content for source in (left, right) if (content := source.contents.get("")) is not None]
    if any(parsed(content).problem for content in contents):
        return ()
    return tuple(row for row in known.metadata if not row[0].startswith(_TURNS))


def _configuration(form: Format, left: Source, right: Source) -> tuple[tuple[str, Any, Any], ...]:
    name = form.stream_files[0]
    return compare_contents(left.contents.get(name), right.contents.get(name)).metadata


def _other(left: Source, right: Source, name: str, state: str) -> OtherFile:
    ours, theirs = left.contents.get(name), right.contents.get(name)
    if ours is None or theirs is None:
        return OtherFile(name, state)
    texts = decoded(ours), decoded(theirs)
    if texts[0] is None or texts[1] is None:
        return OtherFile(name, state)
    return OtherFile(name, state, tuple(line_rows(texts[0].split("\n"), texts[1].split("\n"), 3)))


def changes_as_json(pairs: tuple[Pair, ...]) -> list[dict[str, Any]]:
    """Return the turns that differ as values for JSON, each with both versions of it."""
    return [
        {
            "change": "removed" if pair.right is None else "added" if pair.left is None else "edited",
            "left": _turn_as_json(pair.left),
            "right": _turn_as_json(pair.right),
        }
        for pair in pairs
        if not pair.is_same
    ]


def _turn_as_json(turn: Any) -> Mapping[str, Any] | None:
    if turn is None:
        return None
    names = ("position", "speaker", "kind", "time", "text", "details")
    return {name: getattr(turn, name) for name in names}


def value_text(value: Any) -> str:
    """Return a value as one line of JSON; None is absent."""
    return "(absent)" if value is None else json.dumps(value, ensure_ascii=False)
