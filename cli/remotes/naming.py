"""The name of a remote in the commands that are suggested about it."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from reconcile.errors import ReconcileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reconcile.remote.place import RemotePlace

_WORDS = re.compile(
    r"(?<!there: )(?<!&& )reconcile (?:"
    r"(?P<named>sync|pull|push|remote accept|remote check)\b(?! [\w-]| &&)|remote (?:key|share)\b(?! add| --name))"
)
"""A command about one remote, without its name. One for another machine stays: there, it may have another name."""


def naming_remote(text: str, remotes: Sequence[RemotePlace], place: RemotePlace) -> str:
    """Return a message whose commands name the remote, if the store has several: they fail without a name."""
    if len(remotes) < 2:
        return text
    return _WORDS.sub(lambda match: f"{match[0]}{'' if match['named'] else ' --name'} {place.name}", text)


@contextmanager
def errors_name(remotes: Sequence[RemotePlace], place: RemotePlace) -> Iterator[None]:
    """Have the commands of an error's hint name the remote."""
    try:
        yield
    except ReconcileError as error:
        error.hint = error.hint and naming_remote(error.hint, remotes, place)
        raise
