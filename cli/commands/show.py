"""``reconcile show``: prints a version of a conversation as readable Markdown, or the bytes of its files."""

from __future__ import annotations

import base64
import sys
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins
from msgspec.structs import replace

from reconcile.engine.versions import NoVersionError, find_versions
from reconcile.formats.reading import lines_of
from reconcile.inspect.markdown import to_markdown
from reconcile.inspect.sources import (
    is_hash,
    is_saved,
    other_files,
    read_source,
    saved_source,
    split_spelling,
    transcript_of,
)
from reconcile.model.commands import typed
from reconcile.model.snapshot import STREAM

from ..command import Command
from ..context import find_roots, open_session, settings_of
from ..options import SOURCES, options_of
from ..output.documents import print_document
from ..output.reading_text import markdown_lines
from ..output.screen import show_paged, wrap
from ..output.text import Style, clean, format_time, size
from ..reading import opened_for_reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconcile.inspect.sources import Source, SourceFile
    from reconcile.model.format import Format
    from reconcile.model.transcript import Transcript

    from ..arguments import Options


@click.command(
    "show",
    cls=Command,
    names={"version": "sources"},
    accepts=("json",),
    examples=(
        ("reconcile show jp-c17780300000", "Print a conversation as text."),
        ("reconcile show jp-c17780300000@20260515-100000-00", "Print its text as it was before this run."),
        ("reconcile show jp-c17780300000@20260515-100000-00:events --raw", "Print the events as they are in the file."),
    ),
)
@click.argument("version", shell_complete=SOURCES)
@click.option("--raw", is_flag=True, help="Print the files as they are.")
@click.pass_context
def show(context: click.Context, version: str, raw: bool) -> None:
    """Print a conversation or a saved version as text.

    VERSION is ID, ID@store, ID@workspace, ID@RUN, ID@DIR, ID@REMOTE:COMMIT, or the beginning of a hash. RUN is a run
    that saved a version, DIR is another checkout, and COMMIT is one of a remote. The store's version of ID comes first.
    Add :metadata or :events for a part.

    Texts are Markdown. Metadata alone, and any other single file, is printed as it is. --raw prints each file below
    its name, and a single file byte for byte into a pipe or a file.
    """
    options = options_of(context)
    source, form = _read(options, version, raw=raw)
    is_text = not raw and (not source.unit or source.unit == STREAM or form.places is not None)
    transcript = transcript_of(form, source) if is_text else None
    if options.json:
        print_document(options, _as_json(source, transcript))
        return
    style = Style.choose(options.color)
    if transcript is not None:
        show_paged(_text(source, form, transcript, style, options.sides), style)
        return
    entries = _entries(source)
    if len(entries) == 1 and not sys.stdout.isatty():
        sys.stdout.buffer.write(entries[0][1])
        return
    show_paged(_files(source, style), style)


def _read(options: Options, version: str, *, raw: bool) -> tuple[Source, Format]:
    """Return a version. A saved one is read without a look at both sides."""
    roots = find_roots(options)
    with open_session(roots, settings_of(roots), readonly=True) as session:
        if is_saved(session, version):
            has_unit = is_hash(session, version) or ":" in (split_spelling(version)[1] or "")
            with suppress(NoVersionError):  # a title, perhaps
                versions = find_versions(session.state, version, session.format)
                return saved_source(session, versions, has_unit=has_unit), session.format
    with opened_for_reading(options) as reading:
        wanted = reading._replace(largest=sys.maxsize) if raw else reading
        return read_source(wanted, version), reading.session.format


def _text(source: Source, form: Format, transcript: Transcript, style: Style, sides: str) -> Iterator[str]:
    """Yield a version as text, with the other versions that a reader should know of."""
    notes = [f"{words}: reconcile show {typed(name)}{sides}" for name, words in source.others]
    if transcript.notes:
        notes.append(f"the files as they are: reconcile show {typed(source.name)} --raw{sides}")
    about = (("id", source.conversation), ("from", source.label), *transcript.about)
    title = transcript.title or source.conversation
    shown = replace(transcript, title=title, about=about, notes=(*transcript.notes, *notes))
    yield from markdown_lines(to_markdown(shown), style)
    if files := other_files(form, source):
        yield ""
        listed = ", ".join(f"{clean(name)} ({size(count)})" for name, count in files)
        yield from wrap(f"Other files: {listed}", style.columns, "", "  ")


def _entries(source: Source) -> list[tuple[SourceFile, bytes]]:
    read = [(file, source.contents[file.name]) for file in source.files if file.name in source.contents]
    return [*read, *source.left]


def _files(source: Source, style: Style) -> Iterator[str]:
    """Yield each file below its name."""
    for fault in source.faults:
        yield from wrap(style(clean(f"{fault.file}: {fault.words}"), "yellow"), style.columns, "", "  ")
    for file, content in _entries(source):
        digest = f"  {_hash(content)[:16]}" if file.run is not None or source.is_part else ""
        head = clean(f"{file.place}  {size(file.size)}  {format_time(file.mtime_ns)}{digest}")
        yield from (style(line, bold=True) for line in wrap(head, style.columns, "", "  "))
        for line in lines_of(content.decode(errors="surrogateescape")):
            yield clean(line)


def _hash(content: bytes) -> str:
    """Return the hash by which the vault names a content."""
    return blake2b(content, digest_size=32).hexdigest()


def _as_json(source: Source, transcript: Transcript | None) -> dict[str, Any]:
    listed = [
        {
            "conversation": source.conversation,
            "unit": file.unit,
            "file": file.name,
            "digest": _hash(content),
            "size": len(content),
            "run": file.run,
            "place": file.place,
            "content": base64.b64encode(content).decode(),
        }
        for file, content in _entries(source)
    ]
    document: dict[str, Any] = {
        "format": "reconcile.show/1",
        "name": source.name,
        "label": source.label,
        "versions": listed,
        "unread": [{"file": fault.file, "problem": fault.words} for fault in source.faults],
    }
    if transcript is not None:
        document["transcript"] = to_builtins(transcript) | {"about": dict(transcript.about)}
    return document
