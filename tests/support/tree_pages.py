"""Pages of ``ls --tree --html`` for tests: what they hold, and hostile conversations."""

from __future__ import annotations

import base64
import json
import re
import zlib
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.support.projects.world import event, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.projects.world import World

FIRST = 17530000001
PAYLOADS = (
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 1</script>",
    '<img src=x onerror="window.hacked = 1">',
    '"><svg onload=window.hacked=1>',
    "<!--<script>",
    "-->]]></style></title></noscript><script>window.hacked = 1</script>",
    "[here](javascript:window.hacked=1) <a href='javascript:window.hacked=1'>here</a>",
    "{{constructor.constructor('window.hacked=1')()}} ${window.hacked=1} $policy",
    "evil\u202egnp.exe \u2066\x00\x1b[31m",
    "<iframe srcdoc='<script>parent.hacked=1</script>'></iframe><base href=//evil.invalid>",
)
"""Texts that would run as a script, or change the page, if one of them were taken for markup."""


def write_hostile(world: World) -> None:
    """Write a chain of conversations that have the payloads as titles, metadata, kinds, times and texts."""
    for number, payload in enumerate(PAYLOADS):
        path = world.workspace / str(FIRST + 10 * number)
        bad = {"timestamp": "2026-01-01T00:00:00Z", "type": payload, "content": payload, payload: payload}
        code = event(number, f"```{payload}\n{payload}\n```\n`{payload}` **{payload}**\n# {payload}\n| {payload} |")
        write_conversation(
            path, payload, [event(number, payload), code, bad], parent=FIRST + 10 * (number - 1) if number else None
        )
        metadata = path / "metadata.json"
        metadata.write_text(json.dumps({**json.loads(metadata.read_text()), "custom": payload, payload: payload}))


class Element(NamedTuple):
    """The start of an element."""

    tag: str
    attributes: dict[str, str | None]


class Page(HTMLParser):
    """A page as a browser without scripts sees it."""

    def __init__(self, text: str) -> None:
        """Parse a page."""
        super().__init__()
        self.elements: list[Element] = []
        self.texts: list[str] = []
        """The text of each element up to its end or its first child, in the order of `elements`."""
        self._is_open = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, dict(attrs)))
        self.texts.append("")
        self._is_open = True

    def handle_endtag(self, _tag: str) -> None:
        self._is_open = False

    def handle_data(self, data: str) -> None:
        if self._is_open:
            self.texts[-1] += data

    def all(self, tag: str, **attributes: str) -> list[str]:
        """Return the texts of the elements of this kind."""
        named = {"class" if name == "class_" else name: value for name, value in attributes.items()}
        return [
            text
            for element, text in zip(self.elements, self.texts, strict=True)
            if element.tag == tag and named.items() <= element.attributes.items()
        ]

    @property
    def data(self) -> dict[str, Any]:
        """The tree, as the script reads it."""
        (text,) = self.all("script", id="data")
        found: dict[str, Any] = json.loads(text)
        return found

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """The conversations of the tree."""
        names = ("depth", "id", "title", "state", "detail", "events", "last", "where", "private")
        return [dict(zip(names, node, strict=True)) for node in self.data["nodes"]]

    @property
    def contents(self) -> list[list[Any]]:
        """What the page holds of each conversation: metadata, notes, turns."""
        blocks = self.all("script", class_="block")
        return [each for block in blocks for each in json.loads(zlib.decompress(base64.b64decode(block)))]


def multiplied(page: Path, count: int, target: Path) -> Path:
    """Write a page with so many conversations more, whose contents it lacks."""
    text = page.read_text(encoding="utf-8")
    begin, data, end = re.split(r'(?<=id="data">)(.*?)(?=</script>)', text, maxsplit=1)
    value = json.loads(data)
    depths = (0, 1, 2, 2, 1, 2, 3, 0)
    for number in range(count):
        last = 1767225600000 + number * 3600000
        value["nodes"].append(
            [depths[number % 8], f"jp-c9{number:09}", f"Conversation {number}", "in-sync", "", 3, last, "both", 0]
        )
    target.write_text(begin + json.dumps(value).replace("<", "\\u003c") + end, encoding="utf-8")
    return target
