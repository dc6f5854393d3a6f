"""JP's own format: numbered conversations, directories named after number and title.

See docs/design/formats/jp.md#names. An id is the number of deciseconds since the epoch (docs/design/formats/jp.md#ids),
written ``jp-c17528832001`` everywhere inside reconcile; "decimal" is its number alone.

The rule for directory names (docs/design/formats/jp.md#directory-names) must be that of JP to the letter. JP renames a
directory at every write to the name that it computes. A name of ours that differs would be renamed back and forth in
the git history of the user.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from reconcile.formats.jp.files import ManagedFiles

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reconcile.model.transcript import Transcript


GREATEST_ID_NUMBER = 92233720368
"""The greatest number of an id: in nanoseconds it must fit a signed 64-bit integer."""

_PREFIX = "jp-c"
_ACCEPTED = re.compile(r"jp-c\+?0*(?P<decimal>[0-9]{1,11})(?:-[0-9a-z]+)?")
"""An optional workspace suffix is accepted; JP does not compare it either."""
_DIRNAME = re.compile(r"(?P<decimal>0|[1-9][0-9]{0,10})(?:-.*)?", re.DOTALL)
_DECIMAL = re.compile(r"(?P<decimal>0|[1-9][0-9]{0,10})")


def id_from_number(number: int) -> str | None:
    """Return the id of a number of deciseconds, None if JP could not hold it."""
    return f"{_PREFIX}{number}" if 0 <= number <= GREATEST_ID_NUMBER else None


def decimal_of(conversation: str) -> str:
    """Return the number of an id, as text."""
    return conversation.removeprefix(_PREFIX)


def id_from_text(text: str) -> str | None:
    """Return the id in a text of JP's own grammar: ``jp-c<decimal>``, with or without a suffix."""
    return _named(_ACCEPTED.fullmatch(text))


def id_from_decimal(text: str) -> str | None:
    """Return the id of a bare decimal."""
    return _named(_DECIMAL.fullmatch(text))


def id_from_dirname(name: str) -> str | None:
    """Return the id in the name of a directory.

    ``0017528832001`` and ``+17528832001-x`` are ids in JP's index but can never be loaded
    (docs/design/formats/jp.md#directory-lookup). They are no ids here.
    """
    return _named(_DIRNAME.fullmatch(name))


def _named(match: re.Match[str] | None) -> str | None:
    return None if match is None else id_from_number(int(match["decimal"]))


_WHITE_SPACE = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""Unicode White_Space; `str.strip` without arguments also strips U+001C to U+001F."""
_SLUG_LIMIT = 60
"""The number of code points that are kept, and the bytes from which the name is cut at its last dash."""

_SLUGGED = bytes(ord(chr(code).lower()) if chr(code).isalnum() else ord("-") for code in range(128)) + bytes(128)
"""The replacements of ASCII characters, for `bytes.translate`."""

_ALPHABETIC_MARKS = """
    345 363-36F 5B0-5BD 5BF 5C1-5C2 5C4-5C5 5C7 610-61A 64B-657 659-65F 670 6D6-6DC 6E1-6E4 6E7-6E8 6ED 711
    730-73F 7A6-7B0 816-817 81B-823 825-827 829-82C 8D4-8DF 8E3-8E9 8F0-903 93A-93B 93E-94C 94E-94F 955-957
    962-963 981-983 9BE-9C4 9C7-9C8 9CB-9CC 9D7 9E2-9E3 A01-A03 A3E-A42 A47-A48 A4B-A4C A51 A70-A71 A75
    A81-A83 ABE-AC5 AC7-AC9 ACB-ACC AE2-AE3 AFA-AFC B01-B03 B3E-B44 B47-B48 B4B-B4C B56-B57 B62-B63 B82
    BBE-BC2 BC6-BC8 BCA-BCC BD7 C00-C04 C3E-C44 C46-C48 C4A-C4C C55-C56 C62-C63 C81-C83 CBE-CC4 CC6-CC8
    CCA-CCC CD5-CD6 CE2-CE3 D00-D03 D3E-D44 D46-D48 D4A-D4C D57 D62-D63 D81-D83 DCF-DD4 DD6 DD8-DDF DF2-DF3
    E31 E34-E3A E4D EB1 EB4-EB9 EBB-EBC ECD F71-F83 F8D-F97 F99-FBC 102B-1036 1038 103B-103E 1056-1059
    105E-1060 1062-1064 1067-106D 1071-1074 1082-108D 108F 109A-109D 1712-1713 1732-1733 1752-1753 1772-1773
    17B6-17C8 1885-1886 18A9 1920-192B 1930-1938 1A17-1A1B 1A55-1A5E 1A61-1A74 1ABF-1AC0 1ACC-1ACE 1B00-1B04
    1B35-1B43 1B80-1B82 1BA1-1BA9 1BAC-1BAD 1BE7-1BF1 1C24-1C36 1DD3-1DF4 24B6-24E9 2DE0-2DFF A674-A67B
    A69E-A69F A802 A80B A823-A827 A880-A881 A8B4-A8C3 A8C5 A8FF A926-A92A A947-A952 A980-A983 A9B4-A9BF A9E5
    AA29-AA36 AA43 AA4C-AA4D AA7B-AA7D AAB0 AAB2-AAB4 AAB7-AAB8 AABE AAEB-AAEF AAF5 ABE3-ABEA FB1E
    10376-1037A 10A01-10A03 10A05-10A06 10A0C-10A0F 10D24-10D27 10EAB-10EAC 11000-11002 11038-11045
    11073-11074 11080-11082 110B0-110B8 110C2 11100-11102 11127-11132 11145-11146 11180-11182 111B3-111BF
    111CE-111CF 1122C-11234 11237 1123E 112DF-112E8 11300-11303 1133E-11344 11347-11348 1134B-1134C 11357
    11362-11363 11435-11441 11443-11445 114B0-114C1 115AF-115B5 115B8-115BE 115DC-115DD 11630-1163E 11640
    116AB-116B5 1171D-1172A 1182C-11838 11930-11935 11937-11938 1193B-1193C 11940 11942 119D1-119D7
    119DA-119DF 119E4 11A01-11A0A 11A35-11A39 11A3B-11A3E 11A51-11A5B 11A8A-11A97 11C2F-11C36 11C38-11C3E
    11C92-11CA7 11CA9-11CB6 11D31-11D36 11D3A 11D3C-11D3D 11D3F-11D41 11D43 11D47 11D8A-11D8E 11D90-11D91
    11D93-11D96 11EF3-11EF6 16F4F 16F51-16F87 16F8F-16F92 16FF0-16FF1 1BC9E 1E000-1E006 1E008-1E018
    1E01B-1E021 1E023-1E024 1E026-1E02A 1E947 1F130-1F149 1F150-1F169 1F170-1F189
"""
"""Alphabetic code points that `str.isalnum` misses: hexadecimal ranges of Unicode 14, ends included.

See docs/design/formats/jp.md#alphabetic-marks.
"""


def dirname_of(decimal: str, title: str | None) -> str:
    """Return the name of a conversation's directory: its number and, unless it is empty, the slug of its title."""
    if title is None:
        return decimal
    kept = title.strip(_WHITE_SPACE)[:_SLUG_LIMIT]
    if kept.isascii():
        slug = kept.encode("ascii").translate(_SLUGGED).decode("ascii").rstrip("-")
    else:
        slug = "".join(char if _is_alphanumeric(char) else "-" for char in kept).rstrip("-").lower()
    if not slug:
        return decimal
    name = f"{decimal}-{slug}"
    # JP measures the stored title, not the slug, so a short title with many spaces loses its last word too.
    if len(title.encode(errors="surrogatepass")) > _SLUG_LIMIT:
        name = name.rpartition("-")[0]
    return name


def _is_alphanumeric(char: str) -> bool:
    """Tell whether a character is alphabetic (the derived property) or a number of any kind."""
    return char.isalnum() or (char > "\x7f" and char in _alphabetic_marks())


@cache
def _alphabetic_marks() -> frozenset[str]:
    ranges = (entry.partition("-") for entry in _ALPHABETIC_MARKS.split())
    return frozenset(
        chr(code) for first, _, last in ranges for code in range(int(first, 16), int(last or first, 16) + 1)
    )


_DECISECOND = 100_000_000
"""In nanoseconds."""
_WHOLE_DIGITS = 10
"""The digits of ids up to September 2001; later ids have eleven."""


class JpFormat(ManagedFiles):
    """The format of JP. A conversation is ``jp-c<decimal>`` everywhere inside reconcile."""

    written_keys = frozenset(("title", "last_activated_at", "pinned_at", "archived_at", "expires_at", "labels"))
    """See docs/design/formats/jp.md#fields."""

    @property
    def name(self) -> str:
        """The name that ``--format`` takes."""
        return "jp"

    def id_of(self, dirname: str) -> str | None:
        """Return the id by the index rule of JP, without the two spellings that JP itself can't load.

        See docs/design/formats/jp.md#directory-lookup.
        """
        return id_from_dirname(dirname)

    def parse_id(self, text: str) -> str | None:
        """Return the id of a full id, with or without a workspace suffix, of a bare decimal, or of a directory name."""
        return id_from_text(text) or id_from_dirname(text)

    def is_whole(self, text: str) -> bool:
        """Tell whether a text is a complete id: ten digits are an id of their own, not the beginning of eleven.

        See docs/design/formats/jp.md#edge-case-12.
        """
        conversation = id_from_text(text) or id_from_decimal(text)
        return conversation is not None and len(decimal_of(conversation)) >= _WHOLE_DIGITS

    def parent_of(self, value: object) -> str | None:
        """Return the parent in any of four spellings: number, id, id with a suffix, decimal text.

        See docs/concepts.md#whose-child-and-where.
        """
        if isinstance(value, str):
            return id_from_text(value) or id_from_decimal(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return id_from_number(value)
        return None

    def order(self, conversation: str) -> tuple[int, str]:
        """Sort by time of creation."""
        return (int(conversation.removeprefix(_PREFIX)), "")

    def dirname(self, conversation: str, title: str | None) -> str:
        """Return the name to which JP would rename the directory."""
        return dirname_of(decimal_of(conversation), title)

    def new_id(self, now_ns: int, taken: Collection[str]) -> str:
        """Return the decisecond of creation as an id, or the next free number."""
        number = max(0, now_ns // _DECISECOND)
        while (conversation := id_from_number(number)) in taken:
            number += 1
        if conversation is None:
            raise ValueError(f"no free conversation id for the time {now_ns} ns")
        return conversation

    def transcript(self, conversation: str, contents: Mapping[str, bytes]) -> Transcript:  # noqa: ARG002
        """Return a conversation for people to read."""
        from reconcile.formats.jp.transcript import transcript  # here: no run needs it

        return transcript(contents)

    def lock_name(self, conversation: str) -> str | None:
        """Return JP's own lock file, below ``locks/`` (docs/design/formats/jp.md#lock-files)."""
        return f"{conversation}.lock"
