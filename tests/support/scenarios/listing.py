"""A tree as lines: one for each conversation's directory, one for every other file, link and empty directory."""

from __future__ import annotations

import functools
import json
import re
from typing import TYPE_CHECKING, NamedTuple

from tests.support.scenarios.line_reader import ScenarioError, Words, is_time, show_path, show_time
from tests.support.scenarios.notation import (
    BASE,
    EVENTS,
    METADATA,
    StreamText,
    read_metadata,
    read_stream,
    show_metadata,
    show_stream,
)
from tests.support.scenarios.trees import Blob, Entry, Folder, Link, Move, Put, Remove, Touch, Tree

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.support.scenarios.trees import Edit

_DIRECTORY = re.compile(r"(.*/)?(\d+|new\d*)(-[^/]*)?")


class Row(NamedTuple):
    """One line; of a conversation's directory with a column for each unit."""

    path: str
    metadata: str
    rest: str


@functools.lru_cache(maxsize=4096)  # what was given is often what must be there
def read_line(line: str) -> Edit:
    """Read one line of a listing, which is the change that it makes to an empty tree, or to any."""
    words = Words(line)
    if words.take("-"):
        edit: Edit = Remove(words.path())
    else:
        edit = _read_entry(words.path(), words)
    words.end()
    return edit


def _read_entry(path: str, words: Words) -> Edit:
    if words.take("=>"):
        return Move(path, words.path())
    if words.take("->"):
        return Put({path: Link(words.path())})
    if path.endswith("/") and not words.peek():
        return Put({path.rstrip("/"): Folder()})
    if not is_time(words.peek()):
        return Put(_read_units(path, words))
    time = words.time()
    if not words.peek():
        return Touch(path, time)
    text = str(words.json('the file\'s text in quotes: "..."'))
    return Put({path: Blob(text.encode(), time)})


def _read_units(path: str, words: Words) -> dict[str, Entry | None]:
    files: dict[str, Entry | None] = {}
    while words.peek():
        if words.take("metadata"):
            time = words.time()
            files[f"{path}/{METADATA}"] = Blob(read_metadata(words), time)
        elif words.take("stream"):
            time = words.time()
            files |= _stream_files(path, read_stream(words), time)
        else:
            raise ScenarioError(f"found {words.peek()!r}, expected metadata, stream, a time, => or ->")
    if not files:
        raise ScenarioError(f"found nothing after {path!r}, expected metadata, stream, a time, => or ->")
    return files


def _stream_files(path: str, stream: StreamText, time: int) -> dict[str, Entry | None]:
    files: dict[str, Entry | None] = {f"{path}/{BASE}": None}
    for name, content in stream.files().items():
        early = name == BASE and stream.base_time is not None
        files[f"{path}/{name}"] = Blob(content, stream.base_time if early and stream.base_time else time)
    return files


def read_tree(lines: Iterable[str]) -> Tree:
    tree: Tree = {}
    for line in lines:
        read_line(line).apply(tree)
    return tree


def show_tree(tree: Tree) -> list[str]:
    """Write a tree as `read_tree` reads it, in the order of paths, in columns."""
    rows = sorted(_rows(tree), key=lambda row: _order(row.path))
    wide = [row for row in rows if row.metadata]
    path_width = max((len(row.path) for row in wide), default=0)
    metadata_width = max((len(row.metadata) for row in wide), default=0)
    return [
        f"{row.path:{path_width}}  {row.metadata:{metadata_width}}  {row.rest}".rstrip()
        if row.metadata
        else f"{row.path:{path_width}}  {row.rest}".rstrip()
        for row in rows
    ]


def _rows(tree: Tree) -> list[Row]:
    rows: list[Row] = []
    rest = dict(tree)
    for directory in {path.rpartition("/")[0] for path in tree}:
        if _DIRECTORY.fullmatch(directory):
            metadata, stream = _take_metadata(rest, directory), _take_stream(rest, directory)
            if metadata or stream:
                rows.append(Row(show_path(directory), metadata, stream))
    for path, entry in rest.items():
        match entry:
            case Blob(content, time):
                rows.append(Row(show_path(path), "", f"{show_time(time)} {_show_text(content)}"))
            case Link(target):
                rows.append(Row(show_path(path), "", f"-> {show_path(target)}"))
            case Folder() if not any(other.startswith(path + "/") for other in tree):
                rows.append(Row(show_path(path + "/"), "", ""))
            case Folder():
                pass
    return rows


def _take_metadata(tree: Tree, directory: str) -> str:
    entry = tree.get(f"{directory}/{METADATA}")
    text = show_metadata(entry.content) if isinstance(entry, Blob) else None
    if not isinstance(entry, Blob) or text is None:
        return ""
    del tree[f"{directory}/{METADATA}"]
    return f"metadata {show_time(entry.mtime_ns)} {text}".rstrip()


def _take_stream(tree: Tree, directory: str) -> str:
    names = (BASE, EVENTS)
    found = {name: tree.get(f"{directory}/{name}") for name in names}
    blobs = {name: entry for name, entry in found.items() if isinstance(entry, Blob)}
    if EVENTS not in blobs or len(blobs) < len([entry for entry in found.values() if entry is not None]):
        return ""
    time = blobs[EVENTS].mtime_ns
    base_time = blobs[BASE].mtime_ns if BASE in blobs else time
    contents = {name: blob.content for name, blob in blobs.items()}
    text = show_stream(contents, None if base_time == time else base_time)
    if text is None:
        return ""
    for name in blobs:
        del tree[f"{directory}/{name}"]
    return f"stream {show_time(time)} {text}"


def _show_text(content: bytes) -> str:
    try:
        return json.dumps(content.decode(), ensure_ascii=False)
    except UnicodeDecodeError:
        return f"{content!r}"


def _order(path: str) -> list[tuple[bool, int, str]]:
    """A directory, its files, then its children; ids by number."""
    parts = path.strip("/").split("/")
    numbers = [re.match(r"\d+", part.replace("new", "9" * 12)) for part in parts]
    return [
        (part == "conversations", int(number[0]) if number else -1, part)
        for part, number in zip(parts, numbers, strict=True)
    ]
