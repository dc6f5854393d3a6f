"""The JSON object of a command, which it prints to standard output; of several formats, one object for all."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from ..arguments import Turn
from .text import show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..arguments import Options


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
    try:
        text = json.dumps(document, indent=2, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(document), indent=2)
    show([text])


def _finite(value: Any) -> Any:
    """Return a value with the numbers that Python reads and JSON lacks, such as ``NaN``, as texts."""
    if isinstance(value, float):
        return value if math.isfinite(value) else json.dumps(value)
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return value
