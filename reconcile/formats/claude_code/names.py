"""The names of the directories of Claude Code. Imports nothing: runs of other formats load it, too."""

from __future__ import annotations

_LONGEST = 200
"""Characters of the name of a project's directory; a longer one is cut, and has a hash."""


def directory_name(project: str) -> str:
    """Return the name that the program gives to the directory of a project, by the project's absolute path.

    See docs/design/formats/claude-code.md#names-of-project-directories. The path can't be read from the name.
    """
    units = memoryview(project.encode("utf-16-le", "surrogatepass")).cast("H")
    name = "".join(chr(unit) if unit < 128 and chr(unit).isalnum() else "-" for unit in units)
    if len(name) <= _LONGEST:
        return name
    hashed = 0
    for unit in units:
        hashed = (31 * hashed + unit) & 0xFFFFFFFF
    return f"{name[:_LONGEST]}-{_base36(abs(hashed - (1 << 32) if hashed >> 31 else hashed))}"


def _base36(number: int) -> str:
    digits = ""
    while number or not digits:
        number, rest = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
    return digits
