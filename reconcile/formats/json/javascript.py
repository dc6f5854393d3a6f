"""JSON as a JavaScript program reads and writes it: ``JSON.parse``, ``JSON.stringify(value, null, 2)``.

Leslie and Claudesidian write their data this way. Data that is rebuilt for them must have the bytes that they would
write. The differences from Python's own module:

* There is one type of number, a double: ``1.0`` is written as ``1``, ``12345678901234567890`` rounded.
* Keys that are array indices come first, ascending, in every object.
* A text may contain half of a surrogate pair, which is written as an escape.

Two rules are stricter than in JavaScript, and raise `InvalidContentError`. Bytes must be UTF-8: JavaScript would
replace others silently. Nesting is limited as in `strict`, because both languages have a limited stack.
"""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring
from math import isfinite
from typing import TYPE_CHECKING, Any, NoReturn

from reconcile.formats.json import strict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SAFE = 2**53
"""Up to this number every integer is a double."""
_LAST_INDEX = 2**32 - 2
_INDEX = re.compile(r"0|[1-9][0-9]{0,9}")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_NO_EXPONENT_FROM, _NO_EXPONENT_TO = -6, 21
"""Between these powers of ten a number is written without an exponent (ECMAScript, Number::toString)."""


def parse(content: bytes) -> Any:
    """Return the value of a file, or raise `InvalidContentError` with the reason in words.

    Numbers are ``int`` if they are whole and a double holds them exactly, else ``float``. Keys have the order of
    JavaScript. A repeated key has its last value at its first position.
    """
    strict.check_text(content)
    try:
        value = json.loads(
            content.decode(),
            object_pairs_hook=_object,
            parse_float=_number,
            parse_int=_number,
            parse_constant=_not_json,
        )
    except RecursionError:
        raise strict.InvalidContentError(strict.TOO_DEEP) from None
    except ValueError:
        strict.check_syntax(content)  # for its better message
        raise strict.InvalidContentError("invalid JSON") from None
    strict.check_nesting(content)
    return value


def stringify(value: object) -> bytes:
    """Return the bytes of ``JSON.stringify(value, null, 2)``, without a newline at the end.

    ``value`` consists of the types that `parse` returns, in any depth: dictionaries with texts as keys, lists, texts,
    numbers, booleans and None.
    """
    return "".join(_pieces(value)).encode()


def is_index(key: str) -> bool:
    """Tell whether a key is an array index, which JavaScript moves to the front."""
    return _INDEX.fullmatch(key) is not None and int(key) <= _LAST_INDEX


def keys(names: Iterable[str]) -> list[str]:
    """Return the keys of an object in the order of JavaScript, if they were added in this order."""
    added = list(names)
    first = sorted({name for name in added if is_index(name)}, key=int)
    return [*first, *(name for name in added if not is_index(name))] if first else added


def number(value: float) -> str:
    """Return a number as JavaScript writes it into JSON; infinite numbers become null."""
    if isinstance(value, int) and abs(value) <= _SAFE:
        return str(value)
    if not isfinite(value := _double(value)):
        return "null"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # The value is 0.digits * 10 ** point.
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0") or "0"
    if digits == "0":
        return "0"
    if len(digits) <= point <= _NO_EXPONENT_TO:
        return sign + digits.ljust(point, "0")
    if 0 < point <= _NO_EXPONENT_TO:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if _NO_EXPONENT_FROM < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1:+d}"


def text(value: str) -> str:
    """Return a text in quotes, as JSON."""
    quoted = encode_basestring(value)
    if not _SURROGATE.search(quoted):
        return quoted
    # Two adjacent halves are one character.
    whole = quoted.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", whole)


def _pieces(value: object) -> Iterator[str]:
    """Yield the parts of the text. A list of open containers replaces recursion: the stack does not limit the depth."""
    opened: list[tuple[Iterator[tuple[str, object]], str]] = []
    while True:
        if isinstance(value, dict) and value:
            yield "{"
            members = [(f"{text(key)}: ", value[key]) for key in keys(value)]
            opened.append((_led(members, len(opened) + 1), "}"))
        elif isinstance(value, list) and value:
            yield "["
            opened.append((_led([("", element) for element in value], len(opened) + 1), "]"))
        else:
            yield _scalar(value)
        while opened and (member := next(opened[-1][0], None)) is None:
            _, close = opened.pop()
            yield f"\n{'  ' * len(opened)}{close}"
        if not opened:
            return
        assert member is not None  # noqa: S101 - the loop has ended with one
        lead, value = member
        yield lead


def _led(members: list[tuple[str, object]], depth: int) -> Iterator[tuple[str, object]]:
    """Yield the members, each with the text before it."""
    line = "\n" + "  " * depth
    for number, (label, value) in enumerate(members):
        yield (f",{line}{label}" if number else line + label), value


def _scalar(value: object) -> str:
    if isinstance(value, str):
        return text(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return number(value)
    if value in ({}, []):
        return "{}" if isinstance(value, dict) else "[]"
    raise TypeError(f"no JSON: {value!r}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if any("0" <= key[:1] <= "9" for key in members):
        return {key: members[key] for key in keys(members)}
    return members


def _number(literal: str) -> float:
    double = float(literal)
    return int(double) if double.is_integer() and abs(double) <= _SAFE else double


def _double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _not_json(literal: str) -> NoReturn:
    raise ValueError(literal)
