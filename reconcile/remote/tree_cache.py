"""The records that the last sync has read, kept in a file, so that the next one reads those alone that are new."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from reconcile.fs.private_files import make_private_directory, replace_private_file

if TYPE_CHECKING:
    from collections.abc import Mapping


def load_contents(path: str) -> dict[str, bytes]:
    """Return contents by their names, which follow from them; none if the file is missing or damaged."""
    try:
        with open(path, "rb") as file:
            return msgspec.msgpack.decode(file.read(), type=dict[str, bytes])
    except (OSError, msgspec.DecodeError):
        return {}


def save_contents(path: str, contents: Mapping[str, bytes]) -> None:
    """Save them for the next sync."""
    make_private_directory(os.path.dirname(path))
    replace_private_file(path, msgspec.msgpack.encode(contents))
