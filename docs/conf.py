"""Configures Sphinx for `make docs`: the pages of this repository as a site, with every link inside it checked."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from reconcile.version import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "reconcile"
author = "the reconcile authors"
release = version = __version__

extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", "fixtures/README.md"]
exclude_patterns = [".*", "build", "cli", "dist", "reconcile", "tests"]
nitpicky = True

# Every heading has the anchor that a git host gives it.
myst_heading_anchors = 6
suppress_warnings = [
    "misc.highlighting_failure",  # shortened output isn't quite JSON
    "myst.header",  # some pages skip a level of headings
]

html_theme = "furo"
html_title = "reconcile"
html_additional_pages = {"index": "redirect.html"}
templates_path = ["_site"]
html_show_sphinx = False
html_copy_source = False

_LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<path>[^)#\s:]+)(?:#[^)]*)?\)")


def prepare(app: Sphinx, name: str, source: list[str]) -> None:
    """Prepare the text of a page for Sphinx.

    A link to a directory becomes its text, because a site has no listings of directories.
    """
    here = (app.srcdir / name).parent
    text = _LINK.sub(lambda link: link["text"] if (here / link["path"]).is_dir() else link[0], source[0])
    source[0] = text + _toctree(here, Path(name), text)


def _toctree(here: Path, page: Path, text: str) -> str:
    """Return a hidden table of contents for an index page: the pages that it links to, in its order.

    An index of a directory has only the pages of that directory. Sphinx warns about a page that is in no table.
    """
    if page.name != "index" and (page.name != "README" or page.parent == Path()):
        return ""
    paths = dict.fromkeys(found["path"] for found in _LINK.finditer(text) if found["path"].endswith(".md"))
    entries = [
        os.path.relpath(here / path, here).removesuffix(".md")
        for path in paths
        if page.name == "index" or not path.startswith("..")
    ]
    return "\n```{toctree}\n:hidden:\n\n" + "\n".join(entries) + "\n```\n" if entries else ""


def setup(app: Sphinx) -> None:
    """Let Sphinx call `prepare` for each page."""
    app.connect("source-read", prepare)
