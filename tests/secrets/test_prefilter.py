"""The prefilter: a content that it calls clean has no secret in any form, and usual contents are clean."""

from __future__ import annotations

import base64
import json
import random
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.secrets.detection import find_secrets
from reconcile.secrets.prefilter import Prefilter
from reconcile.secrets.rules import RULES
from tests.bench.stores import SMALL, make_store
from tests.support.planted import KINDS, PLACES, stream_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KEY = b"k" * 32
READY = Prefilter()
READY.may_have_secret(b" " * (4 << 20))


def _json(value: object, chance: random.Random) -> str:
    text = json.dumps(value, indent=chance.choice((None, 2)), ensure_ascii=chance.random() < 0.5)
    match chance.randrange(4):
        case 0:
            return text.replace("/", "\\/")
        case 1:  # escapes of single characters, which JSON allows everywhere in a string
            return "".join(
                f"\\u{ord(char):04x}" if char.isalnum() and inside and chance.random() < 0.1 else char
                for char, inside in _with_inside(text)
            )
        case _:
            return text


def _with_inside(text: str) -> list[tuple[str, bool]]:
    """Return each character of a JSON text, and whether it is in a string and no part of an escape."""
    result, inside, escaped = [], False, 0
    for char in text:
        result.append((char, inside and not escaped))
        if escaped:
            escaped = 4 if escaped == 1 and char == "u" else escaped - 1 if escaped != 1 else 0
        elif char == "\\":
            escaped = 1
        elif char == '"':
            inside = not inside
    return result


def _text(value: object, chance: random.Random) -> str:
    return value if isinstance(value, str) else _json(value, chance)


def _base64(value: object, chance: random.Random) -> str:
    content = _text(value, chance).encode(chance.choice(("utf-8", "utf-8", "utf-16-le")), errors="surrogatepass")
    coded = (base64.b64encode if chance.random() < 0.7 else base64.urlsafe_b64encode)(content).decode()
    if chance.random() < 0.3:
        coded = coded.rstrip("=")
    if chance.random() < 0.3:
        coded = "\n".join(coded[at : at + 64] for at in range(0, len(coded), 64))
    return coded + chance.choice(("", "", "\n"))


FORMS: list[Callable[[object, random.Random], object]] = [
    _json,
    _base64,
    lambda value, chance: {chance.choice(("content", "a name of a file", "password")): value},
    lambda value, chance: [1, [value, "x"]] if chance.random() < 0.5 else [value],
    lambda value, chance: [_text(value, chance), "ends"],
    lambda value, chance: f"Café {_text(value, chance)}\n\tthe end",
]


def _named(chance: random.Random) -> object:
    """Return a secret that only the name of its key makes one."""
    name = chance.choice(("password", "db_passwd", "API_KEY", "auth-token_é", "Authorization", "client_secret"))
    value: object = "".join(chance.choices("abcdefghijkmnpqrstuvwxyz23456789ABCDEFGH", k=36))
    if chance.random() < 0.3:
        value = _base64(value, chance)
    return {name: chance.choice((value, [value], [7, value], [[], [value]], f"Bearer {value}"))}


def _stream(chance: random.Random) -> bytes:
    kind = chance.choice([*KINDS, ""])
    value: object = KINDS[kind](chance) if kind else _named(chance)
    for form in chance.choices(FORMS, k=chance.randrange(5)):
        value = form(value, chance)
    event = {"content": value} if isinstance(value, str) and chance.random() < 0.7 else value
    match chance.randrange(4):
        case 0:
            return _json([{"type": "turn_start"}, event], chance).encode()
        case 1:
            return f"Some lines\n\n{_text(event, chance)}\nand more\n".encode()
        case 2:
            return (json.dumps({"a": 1}) + "\n" + json.dumps(event) + "\n").encode()
        case _:
            return stream_of({"type": "turn_start"}, event if isinstance(event, dict) else {"value": event})


def test_an_event_of_each_kind_in_each_place_may_have_a_secret() -> None:
    for kind, make in KINDS.items():
        for name, place in PLACES.items():
            chance = random.Random(f"{kind} {name}")
            content = stream_of(place(make(chance), chance))
            assert READY.may_have_secret(content), (kind, name)


@settings(max_examples=500, deadline=None)
@given(st.integers(0, sys.maxsize))
def test_the_answer_is_the_same_with_a_prefilter(seed: int) -> None:
    content = _stream(random.Random(seed))
    assert find_secrets(content, KEY, (), READY) == find_secrets(content, KEY)


_NAMES = ("password", "pwd", "secret", "API_KEY", "access-key", "token_x", "auth-token_é", "accountkey-1")
_SEPARATORS = (": ", ":", "=", "==", "=>", " = ", ":=", ': "', '="', ':"', "\t:\t", ": Bearer ", "=basic ", '": "')


def _assigned(chance: random.Random) -> object:
    """Return what may be a key or password with a name: of any length from 16 on, and with few digits."""
    value = "".join(chance.choices(chance.choice(("abcXYZ2345+/=_.~:-", "abcdefXYZ")), k=chance.randrange(16, 40)))
    at = chance.randrange(len(value))
    value = value[:at] + "7" + value[at + 1 :]
    if chance.random() < 0.3:
        value = _base64(value, chance)
    name = chance.choice(_NAMES)
    line = f"{name}{chance.choice(_SEPARATORS)}{value}"
    forms = (
        line,
        {name: value},
        {name: [7, value]},
        {name: json.dumps({"a": value})},
        {name: json.dumps([value, 1])},
        [line, "b"],
        {"a": f"{line}\n"},
    )
    return chance.choice(forms)


@settings(max_examples=500, deadline=None)
@given(st.integers(0, sys.maxsize))
def test_the_answer_is_the_same_for_what_only_its_name_makes_a_secret(seed: int) -> None:
    chance = random.Random(seed)
    value = _assigned(chance)
    for form in chance.choices(FORMS, k=chance.randrange(4)):
        value = form(value, chance)
    content = (_json([{"type": "x"}, value], chance) if chance.random() < 0.6 else _text(value, chance)).encode()
    assert find_secrets(content, KEY, (), READY) == find_secrets(content, KEY)


@pytest.mark.parametrize(
    "content",
    [
        b'{"provider": {"api_key_env": "ANTHROPIC_API_KEY"}}',
        b'{"after": "token_budget",\n  "position": -91}',
        b'{"properties": {"token": {"type": "string"}, "secrets": 1, "max_tokens": 4096}}',
        b"let guard = Token::drop_guard_ref();",
    ],
)
def test_what_every_conversation_of_jp_has_is_clean(content: bytes) -> None:
    """Otherwise the rules would decode and try all of them."""
    assert not READY.may_have_secret(content)


_VALUE = "h4nterQ!x7Zk29ab"
_LINES = [
    base64.b64encode(f"token: {KINDS['GitHub classic token'](random.Random(1))}".encode()).decode()[at : at + 32]
    for at in (0, 32)
]
_KEY_LINES = KINDS["RSA private key"](random.Random(1)).split("\n")
_PUTTY_LINES = ["PuTTY-User-Key-File-2: ssh-rsa", "Encryption: none", "Private-Lines: 12", *_KEY_LINES[1:-1]]


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(_KEY_LINES),
        json.dumps(_PUTTY_LINES),
        json.dumps([{"a": "\n".join(_LINES)}]).replace("\\n", "\\u000a"),
        json.dumps([{"a": "\n".join(_LINES)}]).replace("\\n", "\\u000D\\u000A"),
        json.dumps([{"a": json.dumps(["\n".join(_LINES)])}]).replace("\\n", "\\u000a"),
        json.dumps([{"a": "\n".join(_LINES) + "\u2028\u00a0"}], ensure_ascii=False),
        json.dumps([{"a": "\n".join(_LINES) + " \t"}]),
        '[{"a": "Authorization:\\u0009Bearer ' + "Xk29abQx7Zk3hnterY" + '"}]',
        json.dumps([{"password": json.dumps({_VALUE: "a\n"})}]),
        json.dumps([{"password": json.dumps({_VALUE + "LongLong": ["a\n"]})}]),
        json.dumps([{"password": f'"x\n["{_VALUE}\\n"]'}]),
        json.dumps([{"password": f'\u00a0[\n["{_VALUE}\\n"]'}], ensure_ascii=False),
    ],
)
def test_no_form_of_a_secret_is_clean(content: str) -> None:
    assert find_secrets(content.encode(), KEY, (), READY) == find_secrets(content.encode(), KEY) != ()


def test_most_of_these_streams_have_a_secret() -> None:
    streams = [_stream(random.Random(seed)) for seed in range(200)]
    assert sum(bool(find_secrets(content, KEY)) for content in streams) > 100


def test_every_rule_has_a_rough_pattern() -> None:
    assert [rule.kind for rule in RULES if not rule.rough] == []


def test_usual_conversations_are_clean(tmp_path: Path) -> None:
    make_store(tmp_path / "store", 20, SMALL)
    contents = [path.read_bytes() for path in (tmp_path / "store").glob("*/*.json")]
    assert len(contents) == 60
    assert [content for content in contents if READY.may_have_secret(content)] == []


def test_of_a_large_stream_only_the_events_that_may_have_a_secret_are_decoded() -> None:
    chance = random.Random(1)
    secret = KINDS["GitHub classic token"](chance)
    events: list[dict[str, object]] = [{"content": f"event {number}"} for number in range(300)]
    content = stream_of(*events, {"content": secret}, *events)
    wanted: list[bytes] = []

    class Watched(Prefilter):
        def may_have_secret(self, content: bytes) -> bool:
            if answer := READY.may_have_secret(content):
                wanted.append(content)
            return answer

    (finding,) = find_secrets(content, KEY, (), Watched())
    assert finding.event == 301
    assert [len(each) for each in wanted] == [len(content), len(json.dumps({"content": secret}, indent=2)) + 4]


def test_little_content_builds_nothing_and_may_have_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[None] = []
    monkeypatch.setattr("reconcile.secrets.prefilter._database", lambda: built.append(None))
    prefilter = Prefilter()
    assert prefilter.may_have_secret(b"[]") is True
    assert built == []
    prefilter.may_have_secret(b" " * (4 << 20))
    assert built == [None]


def test_what_is_expected_is_prepared_for_at_once() -> None:
    prefilter = Prefilter()
    prefilter.expect(1 << 20)
    assert prefilter.may_have_secret(b"[]") is True, "little content builds nothing"
    prefilter.expect(4 << 20)
    assert prefilter.may_have_secret(b"[]") is False


def test_without_memory_for_the_library_the_rules_check_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system can't map it: the import fails, in a thread or not."""
    monkeypatch.setitem(sys.modules, "hyperscan", None)
    prefilter = Prefilter()
    prefilter.expect(1 << 30)
    assert prefilter.may_have_secret(b"nothing")
    assert Prefilter().may_have_secret(b"a" * (3 << 20))
