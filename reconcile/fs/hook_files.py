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

_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_OURS = re.compile(
    rb"# Written by `reconcile hooks install`;|# The whole file is\.|\( .*\breconcile hooks run [a-z-]+ "
    rb"|\.jp/conversations/\*\*/[a-z]+\.json merge=reconcile\b"
)
"""The beginnings of all lines that any version writes between the marks."""


def block(*lines: str) -> bytes:
    """Return lines as a block."""
    return BEGIN + "".join(f"{line}\n" for line in lines).encode() + END


def with_block(content: bytes, added: bytes) -> bytes | None:
    """Return a shell script with a block in front of its commands, instead of an earlier block.

    None if the content is no script for a shell.
    """
    bare = without_block(content)
    if bare is None:
        bare = content
    first = _SHELL.match(bare)
    if first is not None:
        return bare[: first.end()] + added + bare[first.end() :]
    # A script without a first line is run by a shell, as husky does with the files of its users.
    return added + bare if bare.isascii() and not bare.startswith(b"#!") else None


def in_front(content: bytes, added: bytes) -> bytes:
    """Return a text file with a block as its first lines, instead of an earlier block."""
    bare = without_block(content)
    return added + (content if bare is None else bare)


def without_block(content: bytes) -> bytes | None:
    """Return the content without the marks and the lines between them; None if it has no mark.

    A user may have deleted a mark, copied a block or written into it. So only known lines are left out.
    """
    kept = list[bytes]()
    inside = has_mark = False
    for line in _LINE.findall(content):
        mark = line.rstrip() + b"\n"
        if mark == END and not inside:
            while kept and _OURS.match(kept[-1]):
                kept.pop()
        has_mark = has_mark or mark in (BEGIN, END)
        inside = mark == BEGIN or (inside and mark != END)
        if mark not in (BEGIN, END) and not (inside and _OURS.match(line)):
            kept.append(line)
    return b"".join(kept) if has_mark else None


def block_of(content: bytes) -> bytes | None:
    """Return the block in the content; None if it has none.

    It is empty if it is damaged: a mark is missing, it is there twice, or it has lines of others.
    """
    bare = without_block(content)
    if bare is None:
        return None
    start = content.find(BEGIN)
    end = content.find(END, start) + len(END)
    is_whole = content.count(BEGIN) == 1 and content[:start] + content[end:] == bare
    return content[start:end] if is_whole else b""
