"""Tells quickly that a content has no secret, so that the rules need not be tried.

All rough patterns of the rules are searched at once, in the bytes as they are, and in texts in base64. The database of
Hyperscan takes about 0.1 s to build, the time in which the rules check 2 MB; then it checks hundreds of MB a second.
"""

from __future__ import annotations

import binascii
import re
from binascii import a2b_base64
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from reconcile.secrets.rules import RULES
from reconcile.secrets.texts import may_be_wide

if TYPE_CHECKING:
    from hyperscan import Database

_LEAST: Final = 2 << 20
"""Bytes that the rules check before a database is built."""
_MOST: Final = 1 << 31
"""Bytes of a content that Hyperscan takes."""
_ESCAPED: Final = r"\\u00[2-7]"
"""An escape of JSON for a printable ASCII character: the content must be decoded."""
_ESCAPED_SLASH: Final = r"\\/"
_SLASH: Final = 0
"""The number of its pattern."""
_COUNT: Final = re.compile(r"\{(\d+),?\d*\}")
_ENOUGH: Final = 8
"""Repetitions that are enough for a rough look. More cost twice the time, and rule out hardly any text."""
# A search begins once in a run of backslashes, and gives none back: the time must not grow with the run's square.
_SLASHES: Final = re.compile(rb"(?<!\\)\\++/")
_SPACE: Final = rb"(?:[\s\x1c-\x1f\x80-\xff]|\\++(?:[bfnrt]|u[0-9A-Fa-f]{4}))"
_CODED: Final = re.compile(rb'"([A-Za-z0-9+/_=\\\r\n-]{16,}+)%b{0,6}+(?=\\*+")' % _SPACE)
"""A string in quotes that may be base64, in any alphabet, also in lines. White space may follow: at most six bytes."""
_LENIENT: Final = 24
"""Characters from which `reconcile.secrets.texts` reads base64 that is not as JP writes it."""
_LINE_ENDS: Final = re.compile(rb"(?<!\\)\\++(?:[rn]|u000[adAD])?|[\r\n]")
_URLSAFE: Final = bytes.maketrans(b"-_", b"+/")


class Prefilter:
    """The rough look at contents. It builds its database when that pays, and keeps it."""

    def __init__(self) -> None:
        """Build nothing yet."""
        self._checked = 0
        self._database: Database | None = None

    def expect(self, size: int) -> None:
        """Prepare for contents of so many bytes together: a database that will pay is built at once."""
        if self._database is None and size >= _LEAST:
            self._built(size)

    def may_have_secret(self, content: bytes) -> bool:
        """Tell whether a content may have a secret. False is certain: no rule finds one in any of its texts."""
        database = self._database or self._built(len(content))
        if database is None or len(content) >= _MOST or may_be_wide(content):
            return True
        while content:
            seen = _seen(database, content)
            if seen == [_SLASH]:
                content = _SLASHES.sub(b"/", content)
                seen = _seen(database, content)
            if seen:
                return True
            content = b'"%b"' % b'" "'.join(coded) if (coded := _all_decoded(_CODED.findall(content))) else b""
            if b"\0" in content:  # a text in UTF-16
                content += content.replace(b"\0", b"")
        return False

    def _built(self, size: int) -> Database | None:
        """Build the database if that pays after so many more bytes. None: it doesn't, or it can't be built here."""
        before, self._checked = self._checked, self._checked + size
        if before < _LEAST <= self._checked:
            self._database = _database()
        return self._database


def _seen(database: Database, content: bytes) -> list[int]:
    """Return the numbers of the patterns that a content has, up to the first one of a rule."""
    from hyperscan import ScanTerminated

    seen: list[int] = []

    def see(number: int, *_place: object) -> bool:
        seen.append(number)
        return number != _SLASH

    with suppress(ScanTerminated):
        database.scan(content, match_event_handler=see)
    return seen


def _database() -> Database | None:
    """Return the database of all rough patterns; None: this machine's processor isn't supported, or memory is short."""
    try:
        import hyperscan  # here: a run that publishes little doesn't need it
    except ImportError:  # the system's words if it can't map the library: "failed to map segment from shared object"
        return None

    patterns = [_ESCAPED_SLASH, _ESCAPED, *(_COUNT.sub(_enough, rule.rough) for rule in RULES)]
    database = hyperscan.Database()
    try:
        database.compile(
            expressions=[pattern.encode("latin-1") for pattern in patterns],
            ids=list(range(len(patterns))),
            elements=len(patterns),
            flags=[hyperscan.HS_FLAG_SINGLEMATCH] * len(patterns),
        )
    except (hyperscan.error, MemoryError):
        return None
    return database


def _enough(count: re.Match[str]) -> str:
    return f"{{{min(int(count[1]), _ENOUGH)},}}"


def _all_decoded(coded: list[bytes]) -> list[bytes]:
    """Return the contents of those strings that are base64, with others: they only have to be looked at."""
    coded = [each for each in coded if len(each) % 4 == 0 or len(each) >= _LENIENT]
    try:
        return [a2b_base64(each, strict_mode=True) for each in coded]
    except binascii.Error:
        return [_decoded(each) for each in coded]


def _decoded(coded: bytes) -> bytes:
    try:
        return a2b_base64(coded, strict_mode=True)
    except binascii.Error:
        text = _LINE_ENDS.sub(b"", coded).translate(_URLSAFE).rstrip(b"=")
    with suppress(binascii.Error):
        return a2b_base64(text[: len(text) - (len(text) % 4 == 1)] + b"==")
    return b""
