"""Screens as SVG, in a dark window that is readable on light and on dark pages. Nothing is loaded from elsewhere."""

from __future__ import annotations

import html
import io
import re

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tests.support.screens.world import COLUMNS

_FORMAT = """\
<svg xmlns="http://www.w3.org/2000/svg" width="860" viewBox="0 0 {{width}} {{height}}" role="img">
<title>{title}</title>
<style>
.{{unique_id}} {{{{ font: 20px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace }}}}
{{styles}}
</style>
<rect width="{{width}}" height="{{height}}" rx="8" fill="#1b1b1b" stroke="#666666"/>
<g class="{{unique_id}}" transform="translate({{terminal_x}}, 12)">
{{backgrounds}}{{matrix}}
</g>
</svg>
"""
"""Without rich's frame and buttons, and without the font that it loads from another host."""
_COLORS = [
    *((136, 136, 136), (240, 113, 120), (152, 195, 98), (229, 192, 100)),
    *((110, 165, 235), (205, 135, 225), (86, 182, 194), (212, 212, 212)),
]
_THEME = TerminalTheme((27, 27, 27), (212, 212, 212), _COLORS)
"""Each colour, and dim text, has a contrast of at least 4.5 to the background."""
_TOP = 28
"""The rows of points that rich leaves for its buttons and that this format doesn't."""


def svg(screen: str, title: str, columns: int = COLUMNS) -> str:
    """Return the picture of a screen that has the codes of its colours."""
    console = Console(
        record=True,
        width=columns,
        file=io.StringIO(),
        force_terminal=True,
        color_system="standard",
        legacy_windows=False,
        _environ={},
    )
    console.print(Text.from_ansi(screen.rstrip("\n"), overflow="fold"), highlight=False)
    made = console.export_svg(
        title=title, theme=_THEME, code_format=_FORMAT.format(title=html.escape(title, quote=False)), unique_id="t"
    )
    made = re.sub(r' clip-path="url\(#t-line-\d+\)"', "", made)  # no text is wider than the window
    made = re.sub(
        r'(viewBox="0 0 \d+ |<rect width="\d+" height=")([\d.]+)', lambda m: f"{m[1]}{float(m[2]) - _TOP:g}", made
    )
    made = re.sub(r"<text [^>]*>\n</text>", "", made)
    return made.replace("&#160;", "\u00a0").replace("</text><text", "</text>\n<text")
