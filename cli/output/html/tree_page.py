"""The page of ``ls --tree --html``: the tree of the conversations, and the contents of each.

The page is one file without any reference to another. No text of a conversation becomes markup. The tree is JSON in an
element that isn't executed, and the contents are compressed. The script sets every text as text. The policy of the page
allows only its own script and style, by their hashes.
"""

from __future__ import annotations

import html
import re
import zlib
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from itertools import pairwise
from string import Template
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from reconcile.version import __version__

from ..words import STATES, state_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from reconcile.inspect.tree_view import Node, TreeView
    from reconcile.model.transcript import Transcript

BLOCK = 1 << 18
"""Bytes of contents that are compressed together, unless one conversation has more. Opening one reads its block."""
COMPRESSION = 6
_CONTENTS = "<!-- contents -->\n"
_TONES: Mapping[str, str] = {
    "in-sync": "good",
    "changing": "change",
    "newer-in-store": "change",
    "newer-in-workspace": "change",
    "newer-on-both": "change",
    "external": "change",
    "projected": "change",
    "requested": "change",
    "conflict": "alert",
    "held": "alert",
    "invalid": "alert",
    "open": "alert",
    "unreadable": "alert",
    "lost": "alert",
    "local": "secret",
    "local-present": "secret",
}
"""The tone of each state id; others are quiet."""
_HIDDEN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Characters without a picture of their own, which could change how others look. Joiners of letters are none."""


class _Page(Struct, frozen=True):
    """The tree, as the script reads it."""

    noun: str
    words: dict[str, str]
    tones: dict[str, str]
    nodes: list[tuple[object, ...]]


def tree_page(view: TreeView, contents: Iterable[Transcript], date: str) -> Iterator[bytes]:
    """Yield the parts of the page.

    ``contents`` are the transcripts of the view's nodes, in their order. ``date`` is the one on the page.
    """
    begin, end = _frame(view, date).split(_CONTENTS)
    yield begin.encode()
    yield from _blocks(contents)
    yield end.encode()


def _frame(view: TreeView, date: str) -> str:
    """Return the page without the contents."""
    style, script = _text("tree.css"), _text("tree.js")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    return Template(_text("tree.html")).substitute(
        policy=policy,
        title=_escaped(view.name),
        style=style,
        script=script,
        about=_about(view, date),
        data=_data(view),
        list=_list(view.nodes),
    )


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _escaped(text: str) -> str:
    """Return a text as markup that shows it."""
    return html.escape(visible(text))


def visible(text: str) -> str:
    """Replace characters that would change how others look, such as marks of direction, by their codes."""
    return _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text.replace("\r\n", "\n"))


def _about(view: TreeView, date: str) -> str:
    count, private = len(view.nodes), sum(node.is_private for node in view.nodes)
    parts = [f"{count:,} {view.noun}{'' if count == 1 else 's'}"]
    if private:
        parts.append(f"<b>{private:,} private</b>")
    if view.archived:
        parts.append(f"{view.archived:,} archived and not on this page")
    return f"{', '.join(parts)}. Made on {html.escape(date)} by reconcile {__version__}."


def _data(view: TreeView) -> str:
    """Return the tree as JSON that can be part of markup: no ``<`` begins a tag or a comment there."""
    states = sorted({node.state for node in view.nodes}, key=lambda state: [*STATES, state].index(state))
    nodes: list[tuple[object, ...]] = [
        (
            node.depth,
            visible(node.conversation),
            None if node.title is None else visible(node.title),
            node.state,
            visible(node.detail),
            node.events,
            node.last_ms,
            node.where,
            int(node.is_private),
        )
        for node in view.nodes
    ]
    words = {state: state_word(state) for state in states}
    page = _Page(view.noun, words, {state: tone for state, tone in _TONES.items() if state in words}, nodes)
    return msgspec.json.encode(page).decode().replace("<", "\\u003c")


def _list(nodes: Sequence[Node]) -> str:
    """Return the titles as nested lists, for a program without scripts."""
    parts: list[str] = []
    depths = [-1, *(node.depth for node in nodes), -1]
    for node, (before, depth) in zip(nodes, pairwise(depths), strict=False):
        parts += ["<ul>"] if depth > before else ["</li>", "</ul></li>" * (before - depth)]
        private = ", private" if node.is_private else ""
        parts.append(f"<li>{_escaped(node.title or '(no title)')} ({state_word(node.state)}{private})")
    last = depths[-2]
    parts += ["</li></ul>" * (last + 1)] if nodes else []
    return "".join(parts)


def _blocks(contents: Iterable[Transcript]) -> Iterator[bytes]:
    """Yield the contents as elements that the script unpacks: each holds some conversations that follow each other."""
    first, parts, size = 0, list[bytes](), 0
    for transcript in contents:
        parts.append(_encoded(transcript))
        size += len(parts[-1])
        if size >= BLOCK:
            yield _block(first, parts)
            first, parts, size = first + len(parts), [], 0
    if parts:
        yield _block(first, parts)


def _block(first: int, parts: Sequence[bytes]) -> bytes:
    packed = b64encode(zlib.compress(b"[" + b",".join(parts) + b"]", COMPRESSION))
    return b'<script type="text/plain" class="block" data-first="%d">%b</script>\n' % (first, packed)


def _encoded(transcript: Transcript) -> bytes:
    about = [(visible(key), visible(text)) for key, text in transcript.about]
    turns = [
        (turn.speaker.value[0], visible(turn.kind), visible(turn.time), visible(turn.text)) for turn in transcript.turns
    ]
    return msgspec.json.encode((about, [visible(note) for note in transcript.notes], turns))
