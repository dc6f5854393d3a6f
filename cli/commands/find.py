"""``reconcile find``: searches titles and contents of store, workspaces and vault."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconcile.inspect.search.matching import marks_in
from reconcile.inspect.search.places import Where
from reconcile.inspect.search.search import search
from reconcile.inspect.search.words import words_of
from reconcile.inspect.short_ids import short_ids_at
from reconcile.model.commands import typed
from reconcile.model.snapshot import Partition

from ..command import Command
from ..misuse import Misuse
from ..options import options_of
from ..output.documents import print_document
from ..output.errors import ExitCode
from ..output.screen import command_lines, show_paged, wrap
from ..output.text import MAX_COLUMNS, Style, clean, message_text, short_path, shorten, title_and_id, width
from ..run import opened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from reconcile.inspect.search.matching import Hit
    from reconcile.inspect.search.places import Place
    from reconcile.inspect.search.search import Lines, Match, Result
    from reconcile.inspect.search.words import Word

SHOWN = 3
"""Saved versions with the same lines that are listed without ``--verbose``."""
NOTHING = ExitCode.FAILED
"""The exit code if no conversation matches, as grep's."""


@click.command(
    "find",
    cls=Command,
    prints_sides=False,
    searches=True,
    accepts=("json", "verbose"),
    examples=(
        ("reconcile find draft", "List the conversations with this word, and the places that have them."),
        ('reconcile find "release notes" draft', "Require a phrase and a word, anywhere in one conversation."),
    ),
)
@click.argument("words", metavar="WORD...", nargs=-1, required=True)
@click.pass_context
def find(context: click.Context, words: tuple[str, ...]) -> None:
    """Find conversations by words in their titles and events.

    Searches the store, the workspaces of all known checkouts, and all saved versions. A conversation must have every
    WORD. Quote a phrase. Case counts only in a WORD with an upper-case letter. Title matches come first, then the last
    active conversation. Exits with 1 if nothing matches.
    """
    options = options_of(context)
    wanted = words_of(words)
    if not wanted:
        raise Misuse("reconcile find: WORD is blank", "reconcile find --help", context)
    with opened(options) as engine:
        result = search(engine, wanted)
        project, roots = engine.session.project, engine.session.roots
    if options.json:
        print_document(options, _json(result, words, project))
    else:
        style = Style.choose(options.color)
        short = short_ids_at(roots) if result.conversations and not options.verbose else {}
        most = SHOWN if not options.verbose else None
        show_paged(_lines(result, wanted, roots.noun, short, style, most, options.sides), style)
        for note in _notes(result, in_full=options.verbose):
            click.echo(f"note: {message_text(note)}", err=True)
    context.exit(ExitCode.DONE if result.conversations else NOTHING)


def _notes(result: Result, *, in_full: bool) -> Iterator[str]:
    """Yield notes on what could not be searched. Files that are read in part are only counted."""
    yield from result.notes
    if in_full:
        yield from result.in_part
    elif count := len(result.in_part):
        which = "1 file is" if count == 1 else f"{count} files are"
        yield f"{which} damaged or incomplete, and may not be searched in full (-v)"


def _json(result: Result, words: Sequence[str], project: str) -> dict[str, object]:
    return {
        "format": "reconcile.find/1",
        "words": list(words),
        "conversations": [
            {
                "conversation": found.conversation,
                "title": found.title,
                "in_title": found.in_title,
                "last": found.last,
                "matches": [
                    {
                        "title": found.title if lines.title is None else lines.title,
                        "lines": [_hit_json(hit) for hit in lines.hits],
                        "places": [_place_json(place, project) for place in lines.places],
                    }
                    for lines in found.groups
                ],
            }
            for found in result.conversations
        ],
        "notes": [*result.notes, *result.in_part],
    }


def _hit_json(hit: Hit) -> dict[str, object]:
    return {
        "position": hit.position or None,
        "speaker": hit.speaker or None,
        "kind": hit.kind or None,
        "time": hit.time or None,
        "file": hit.file or None,
        "line": hit.line,
        "marks": [list(mark) for mark in hit.marks],
    }


def _place_json(place: Place, project: str) -> dict[str, object]:
    return {
        "where": place.where.value,
        "path": place.full_path,
        "project": place.project or (project if place.where is Where.WORKSPACE else None),
        "partition": place.partition.value,
        "run": place.run or None,
        "version": place.version or None,
    }


def _lines(
    result: Result,
    words: Sequence[Word],
    noun: str,
    short: Mapping[str, str],
    style: Style,
    most: int | None,
    sides: str,
) -> Iterator[str]:
    if not result.conversations:
        quoted = " and ".join(repr(word.text) for word in words)
        yield f"no {noun} has {clean(quoted)}"
        return
    for found in result.conversations:
        yield _head(found, short, style)
        yield from _match_lines(found, words, style, most, sides)
    count = len(result.conversations)
    yield style(f"{count} {noun}{'' if count == 1 else 's'}", bold=True)


def _head(match: Match, short: Mapping[str, str], style: Style) -> str:
    """Return the title and the id; without a title, the id."""
    name = short.get(match.conversation, match.conversation)
    return title_and_id(match.title or name, name, style)


def _match_lines(match: Match, words: Sequence[Word], style: Style, most: int | None, sides: str) -> Iterator[str]:
    if match.title is not None and marks_in(match.title, words):
        yield _title_line("in the title", match.title, words, style)
    for lines in match.groups:
        if lines.title:
            yield _title_line("title", lines.title, words, style)
        yield from (_hit_line(hit, style) for hit in lines.hits)
        yield from _place_lines(lines, style, most, sides)


def _title_line(label: str, title: str, words: Sequence[Word], style: Style) -> str:
    start = f"  {label}: "
    return start + marked(title, marks_in(title, words), style, (style.columns or MAX_COLUMNS) - width(start))


def _hit_line(hit: Hit, style: Style) -> str:
    label = clean(hit.file) if not hit.position else f"event {hit.position}, {hit.speaker}"
    start = f"  {label}: "
    return start + marked(hit.line, hit.marks, style, (style.columns or MAX_COLUMNS) - width(start))


def marked(line: str, marks: Sequence[tuple[int, int]], style: Style, room: int) -> str:
    """Return a line with its marks in colour, or else in brackets, cut to a number of columns around the first."""
    begin = marks[0][0] if marks else 0
    parts: list[tuple[str, bool]] = []
    at = begin
    for start, stop in marks:
        word = clean(line[start:stop])
        parts += [(clean(line[at:start]), False), (word if style.colored else f"[{word}]", True)]
        at = stop
    parts.append((clean(line[at:]), False))
    before = clean(line[:begin])
    after = sum(width(text) for text, _ in parts)
    before = _end_of(before, max(room - after, room // 3))
    left = room - width(before)
    text = before
    for part, is_marked in parts:
        if left <= 0:
            break
        shown = shorten(part, left)
        left -= width(shown)
        text += style(shown, "red", bold=True) if is_marked else shown
    return text


def _end_of(text: str, columns: int) -> str:
    if width(text) <= columns:
        return text
    while text and width(text) > columns - 1:
        text = text[max(1, (width(text) - columns) // 2) :]
    return f"…{text}"


def _place_lines(lines: Lines, style: Style, most: int | None, sides: str) -> Iterator[str]:
    here = [place for place in lines.places if place.where in (Where.STORE, Where.WORKSPACE)]
    if here:
        yield f"    {', '.join(dict.fromkeys(_named(place) for place in here))}"
    for place in lines.places:
        if place.where is Where.CHECKOUT:
            yield from wrap(f"checkout {short_path(place.project)}{_partition(place)}", style.columns, "    ", "      ")
    versions = [place for place in lines.places if place.where is Where.VERSION]
    versions.reverse()
    for place in versions[:most]:
        name = f"    saved by run {clean(place.run)}:" if place.run else "    saved version:"
        command = clean(f"reconcile show {typed(place.spelling)}{sides}")
        if style.columns is None or width(name) + 1 + width(command) <= style.columns:
            yield f"{name} {style(command, 'cyan')}"
        else:
            yield name
            yield from command_lines(command, style.columns, "      ")
    if most is not None and len(versions) > most:
        yield f"    and {len(versions) - most} more saved versions (-v shows all)"


def _named(place: Place) -> str:
    return f"{place.where.value}{_partition(place)}"


def _partition(place: Place) -> str:
    words = {Partition.ARCHIVE: " (archived)", Partition.TRASH: " (in the trash)", Partition.LIVE: ""}
    return words[place.partition]
