"""The lines of a hook's script and of ``.gitattributes`` that belong to `reconcile`: pure functions over their bytes.

The lines are a block between two marks, so that they can be found and removed, and the rest stays byte for byte.
"""

from __future__ import annotations

import re

HOOKS = ("pre-commit", "post-checkout", "post-merge", "post-rewrite")
REFUSED = 4
"""The exit code of the check before a commit that has refused it, and has said why."""

BEGIN = b"# reconcile: begin\n"
END = b"# reconcile: end\n"
_SHELL = re.compile(rb"#!\s*(?:\S*/)?(?:env\s+(?:-\S+\s+)*)?(?:ba|da|k|z)?sh\b[^\n]*\n")
_FIRST = re.compile(rb"#![^\n]*\n")

_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_OURS = re.compile(
    rb"# Written by `reconcile hooks install`;|# The whole file is\.|# So are directories above it: \d"
    rb"|\( .*\breconcile hooks run [a-z-]+ "
    rb"|\.jp/conversations/\*\*/[a-z]+\.json merge=reconcile\b"
)
"""The beginnings of all lines that any version writes between the marks."""


def block(*lines: str) -> bytes:
    """Return lines as a block."""
    return BEGIN + "".join(f"{line}\n" for line in lines).encode() + END


def with_block(content: bytes, added: bytes, *, is_for_shell: bool = False) -> bytes | None:
    """Return a shell script with a block in front of its commands, instead of an earlier block.

    None if the content is no script for a shell. ``is_for_shell``: a shell runs it, whatever its first line says.
    """
    bare = without_block(content)
    if bare is None:
        bare = content
    first = (_FIRST if is_for_shell else _SHELL).match(bare)
    if first is not None:
        return bare[: first.end()] + added + bare[first.end() :]
    # A script without a first line is run by a shell.
    return added + bare if not bare.startswith(b"#!") and (is_for_shell or _is_text(bare)) else None


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


def in_front(content: bytes, added: bytes) -> bytes:
    """Return a text file with a block as its first lines, instead of an earlier block."""
    bare = without_block(content)
    return added + (content if bare is None else bare)


def without_block(content: bytes) -> bytes | None:
    """Return the content without the marks and the lines between them; None if it has no mark.

    A user may have deleted a mark, copied a block or written into it. So only known lines are left out. A mark that
    has no such line beside it is the user's own text.
    """
    lines = _lines(content)
    return b"".join(line for line, is_ours in lines if not is_ours) if any(ours for _, ours in lines) else None


def block_of(content: bytes) -> bytes | None:
    """Return the block in the content; None if it has none.

    It is empty if it is damaged: a mark is missing, it is there twice, or it has lines of others.
    """
    lines = _lines(content)
    places = [at for at, (_, is_ours) in enumerate(lines) if is_ours]
    if not places:
        return None
    ours = [line for line, _ in lines[places[0] : places[-1] + 1]]
    is_whole = len(ours) == len(places) and ours[0] == BEGIN and ours[-1] == END
    return b"".join(ours) if is_whole and (ours.count(BEGIN), ours.count(END)) == (1, 1) else b""


def _lines(content: bytes) -> list[tuple[bytes, bool]]:
    """Return each line, and whether it is one of ours: a known line with a mark before or after it, or that mark."""
    lines: list[bytes] = _LINE.findall(content)
    marks = [line.rstrip() + b"\n" for line in lines]
    known = [_OURS.match(line) is not None for line in lines]
    ours = set[int]()
    for at, mark in enumerate(marks):
        if mark == BEGIN:
            end = next((to for to in range(at + 1, len(lines)) if marks[to] in (BEGIN, END)), len(lines))
            inside = [to for to in range(at + 1, end) if known[to]]
            closed = [end] if end < len(lines) and marks[end] == END else []
            ours.update((at, *inside, *closed) if inside else ())
        elif mark == END and at and known[at - 1]:
            ours.add(at)
            while at and known[at - 1]:
                at -= 1  # noqa: PLW2901
                ours.add(at)
    return [(line, at in ours) for at, line in enumerate(lines)]
