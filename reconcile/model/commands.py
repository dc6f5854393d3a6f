"""Commands that messages suggest, as a person types them."""

from __future__ import annotations


def typed(*words: str) -> str:
    """Return words as they are typed in a shell, each quoted if need be: an id may be a path with a title in it."""
    import shlex  # here: most runs suggest no command

    return shlex.join(words)
