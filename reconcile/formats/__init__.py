"""The formats by name. The modules of a format are imported only when it is requested.

Start-up time matters to every command, and each format has its own parsers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reconcile.model.format import Format

    Factory: TypeAlias = Callable[[tuple[str, ...]], Format]


def _jp(ignore: tuple[str, ...]) -> Format:
    from reconcile.formats.jp.format import JpFormat

    return JpFormat(ignore)


def _plain(ignore: tuple[str, ...]) -> Format:
    from reconcile.formats.plain import PlainFormat

    return PlainFormat(ignore)


def _leslie(ignore: tuple[str, ...]) -> Format:
    from reconcile.formats.leslie.format import LeslieFormat

    return LeslieFormat(ignore)


def _claudesidian(ignore: tuple[str, ...]) -> Format:
    from reconcile.formats.claudesidian.format import ClaudesidianFormat

    return ClaudesidianFormat(ignore)


def _claude_code(ignore: tuple[str, ...]) -> Format:
    from reconcile.formats.claude_code.format import ClaudeCodeFormat

    return ClaudeCodeFormat(ignore)


def _claude_shared(ignore: tuple[str, ...]) -> Format:
    from reconcile.formats.claude_code.shared import SharedSessionsFormat

    return SharedSessionsFormat(ignore)


FORMATS: Mapping[str, Factory] = {
    "jp": _jp,
    "plain": _plain,
    "leslie": _leslie,
    "claudesidian": _claudesidian,
    "claude-code": _claude_code,
    "claude-shared": _claude_shared,
}
"""The factories of the formats by the value of ``--format``; a factory takes the additional ignore globs."""


def get_format(name: str, ignore: tuple[str, ...] = ()) -> Format:
    """Return the format of that name; ``ignore`` are additional globs of files that are no extras.

    Raises `ValueError` with the known names if the name is unknown.
    """
    if name not in FORMATS:
        raise ValueError(f"unknown format {name!r} (choose from {', '.join(sorted(FORMATS))})")
    return FORMATS[name](ignore)
