"""The JSON object of a command, which it prints to standard output; of several formats, one object for all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..arguments import Turn
from .text import show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..arguments import Options

_NO_NUMBER = r'(?m)^( *(?:"(?:[^"\\]|\\.)*+": )?)(NaN|-?Infinity)(?=,?$)'
"""A line with a number that Python reads and JSON lacks; it is printed as a text."""


def print_document(options: Options, document: Mapping[str, Any]) -> None:
    """Print the object of a command, or collect it in the turn of a format."""
    if isinstance(options, Turn):
        options.documents.append(document)
    else:
        _print(document)


def print_documents(turns: Sequence[Turn]) -> None:
    """Print the object of the first format, with those of the others in its key ``also``, by the formats' names."""
    first, *others = turns
    also = {str(turn.format): document for turn in others for document in turn.documents}
    if also or first.documents:
        own: Mapping[str, Any] = next(iter(first.documents), {})
        _print({**own, "also": also} if also else own)


def _print(document: Mapping[str, Any]) -> None:
    text = json.dumps(document, indent=2)
    if "NaN" in text or "Infinity" in text:
        import re  # here: few documents have one

        text = re.sub(_NO_NUMBER, r'\1"\2"', text)
    show([text])
