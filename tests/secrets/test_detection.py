"""Secrets in files: found in every place where an event can hold one, and never part of a finding."""

from __future__ import annotations

import base64
import json
import random
import shutil
import struct
import subprocess
import textwrap
import time
from typing import TYPE_CHECKING

import pytest

from reconcile.secrets.detection import Finding, find_secrets
from reconcile.secrets.prefilter import Prefilter
from reconcile.secrets.rules import RULES, matches
from reconcile.secrets.texts import new_texts
from tests.support.planted import KINDS, PLACES, stream_of

if TYPE_CHECKING:
    from pathlib import Path

KEY = b"k" * 32
READY = Prefilter()
READY.may_have_secret(b" " * (4 << 20))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_found_in_every_place(kind: str, place: str) -> None:
    chance = random.Random(f"{kind} {place}")
    quiet = {"timestamp": "2026-05-05 09:00:00.0", "type": "turn_start"}
    (finding,) = find_secrets(stream_of(quiet, PLACES[place](KINDS[kind](chance), chance)), KEY)
    assert finding.event == 2


@pytest.mark.parametrize("kind", KINDS)
def test_no_finding_and_no_match_contains_its_secret(kind: str) -> None:
    text = KINDS[kind](random.Random(kind))
    (match,) = matches(text)
    (finding,) = find_secrets(stream_of({"content": text}), KEY)
    shown = finding.masked.partition("…")[0]
    assert len(shown) <= 4
    assert match.value.startswith(shown)
    for printed in (repr(match), repr(finding), finding.words):
        assert match.value not in printed
        assert match.value[:6] not in printed.replace("PRIVATE KEY", "") or match.value.startswith("-----")


def _github(seed: int = 1) -> str:
    return KINDS["GitHub classic token"](random.Random(seed))


def test_a_secret_split_by_escapes_of_json_is_found() -> None:
    secret = _github()
    escaped = "".join(f"\\u{ord(char):04x}" if number % 3 else char for number, char in enumerate(secret))
    content = f'[\n  {{"type": "chat_request", "content": "use {escaped} here"}}\n]'.encode()
    assert [finding.event for finding in find_secrets(content, KEY)] == [1]


def test_base64_within_json_within_base64_is_found() -> None:
    inner = json.dumps({"output": f'line\n"{_github()}"\n'})
    content = stream_of({"content": base64.b64encode(inner.encode()).decode()})
    assert len(find_secrets(content, KEY)) == 1


def test_a_private_key_in_lines_of_a_list_is_found() -> None:
    lines = KINDS["RSA private key"](random.Random(1)).split("\n")
    assert len(find_secrets(stream_of({"lines": lines}), KEY)) == 1


def test_events_that_a_version_before_has_are_not_checked() -> None:
    old, new = {"content": _github(1)}, {"content": _github(2)}
    before = stream_of({"type": "turn_start"}, old)
    (finding,) = find_secrets(stream_of({"type": "turn_start"}, old, new), KEY, [before])
    assert finding.event == 3
    assert find_secrets(before, KEY, [before]) == ()


def test_of_many_events_only_the_appended_one_is_decoded() -> None:
    many: list[dict[str, object]] = [{"content": f"text {number}"} for number in range(5_000)]
    before, after = stream_of(*many), stream_of(*many, {"content": "new"})
    texts = new_texts(after, [before])
    assert [piece.text for piece in texts.pieces] == ["content: new"]
    assert texts.events_before(after) == 5_000
    assert new_texts(before, [before]).pieces == []


def test_an_event_that_was_edited_or_inserted_is_checked() -> None:
    first, second = {"type": "turn_start"}, {"content": "hello"}
    before = stream_of(first, second)
    (inserted,) = find_secrets(stream_of(first, {"content": _github()}, second), KEY, [before])
    (edited,) = find_secrets(stream_of(first, {"content": f"hello {_github()}"}), KEY, [before])
    assert (inserted.event, edited.event) == (2, 2)


@pytest.mark.parametrize("indent", [None, 1, 2, 4])
def test_the_number_of_an_appended_event_depends_on_no_layout(indent: int | None) -> None:
    events: list[dict[str, object]] = [{"type": "turn_start", "inner": [{"a": {"b": 1}}, {"c": 2}]} for _ in range(5)]
    before = json.dumps(events, indent=indent).encode()
    after = json.dumps([*events, {"content": _github()}], indent=indent).encode()
    assert [finding.event for finding in find_secrets(after, KEY, [before])] == [6]


def test_a_secret_that_spans_an_old_and_a_new_part_of_one_event_is_found() -> None:
    secret = _github()
    before = stream_of({"content": secret[:20]})
    assert len(find_secrets(stream_of({"content": secret}), KEY, [before])) == 1


def test_records_and_texts_have_events_or_lines() -> None:
    record = json.dumps({"title": "x", "messages": [{"content": "a"}, {"content": _github()}]}).encode()
    text = f"# Notes\n\n{_github()}\n".encode()
    lines = b'{"a": 1}\n' + json.dumps({"b": _github()}).encode() + b"\n"
    found = [find_secrets(content, KEY)[0] for content in (record, text, lines)]
    assert [(finding.event, finding.line) for finding in found] == [(2, None), (None, 3), (None, 2)]


def test_a_fingerprint_depends_on_the_secret_and_on_the_key_alone() -> None:
    def fingerprint(content: bytes, key: bytes = KEY) -> str:
        (finding,) = find_secrets(content, key)
        return finding.fingerprint

    one = fingerprint(stream_of({"content": f"a {_github()}"}))
    assert one == fingerprint(f"other words: {_github()}\n".encode())
    assert one != fingerprint(stream_of({"content": _github(2)}))
    assert one != fingerprint(stream_of({"content": _github()}), b"another")


@pytest.mark.parametrize(
    "text",
    [
        "password: str = os.environ['DB_PASSWORD']",
        "token = request.headers.get('X-Token-Of-2026')",
        "API_KEY=your_api_key_1234567890abcdef",
        "secret_key = settings.SECRET_KEY_2",
        "AWS_KEY=AKIA" + "IOSFODNN7EXAMPLE",
        "the token count is 12345678901234567890",
        "access_token: <paste-your-token-1-here>",
        "https://user:$PASSWORD@example.org/",
        "https://user:password@example.org/",
        "next_page_token: page-2-of-12-of-the-list",
        "secret: sha256:" + "0123456789abcdef" * 4,
        "-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----",
        "let token = AtomicU32Provider::new();",
        "ghp_" + "x" * 36,
        "commit 9b1c3f0a7e5d4c2b8a6f1e0d3c5b7a9f8e6d4c2b",
    ],
)
def test_examples_and_references_are_no_secrets(text: str) -> None:
    assert find_secrets(stream_of({"content": text}), KEY) == ()


def _openssh_block(seed: int) -> str:
    """Return a private key without a passphrase, in the layout of OpenSSH's PROTOCOL.key."""
    chance = random.Random(seed)

    def field(value: bytes) -> bytes:
        return struct.pack(">I", len(value)) + value

    public, check = chance.randbytes(32), chance.randbytes(4)
    private = check * 2 + field(b"ssh-ed25519") + field(public) + field(chance.randbytes(32) + public) + field(b"a@b")
    private += bytes(range(1, -len(private) % 8 + 1))
    none = field(b"none") * 2 + field(b"") + struct.pack(">I", 1)
    blob = b"openssh-key-v1\0" + none + field(field(b"ssh-ed25519") + field(public)) + field(private)
    lines = textwrap.fill(base64.b64encode(blob).decode(), 70)
    return f"-----BEGIN OPENSSH PRIVATE KEY-----\n{lines}\n-----END OPENSSH PRIVATE KEY-----\n"


def test_a_private_key_after_headers_in_one_line_is_found() -> None:
    begin, body = "-----BEGIN RSA PRIVATE " + "KEY-----", _openssh_block(3).split("\n", 1)[1]
    for headers in ("Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B2C\n\n", "Version: 2 Comment: a key of mine "):
        for end in ("\n", "\\n", "\\r\\n"):
            assert len(matches(f"{begin}{end}{headers}{body}".replace("\n", end))) == 1, (headers, end)


def _check_key_block(block: str) -> None:
    for text in (block, f"$ cat key\n{block}", base64.b64encode(block.encode()).decode()):
        (finding,) = find_secrets(stream_of({"content": text}), KEY)
        assert finding.kind == "private key (PEM)"


def test_a_private_key_in_the_layout_of_openssh_is_found() -> None:
    for seed in range(20):
        _check_key_block(_openssh_block(seed))


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
@pytest.mark.parametrize("layout", ["OPENSSH", "PEM"])
def test_a_private_key_of_ssh_keygen_is_found(kind: str, layout: str, tmp_path: Path) -> None:
    path = tmp_path / "key"
    form = ["-m", "PEM"] if layout == "PEM" else []
    form += ["-b", "1024"] if kind == "rsa" else []  # a longer one takes seconds to make
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", *form, "-f", str(path)], check=True)
    _check_key_block(path.read_text())


@pytest.mark.parametrize(
    "body", ["...", "x" * 64, "A" * 64, "YOUR PRIVATE KEY HERE", "EXAMPLEEXAMPLEEXAMPLEKEY", "<key>"]
)
def test_a_placeholder_of_a_private_key_is_no_secret(body: str) -> None:
    text = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----\n"
    assert find_secrets(stream_of({"content": text}), KEY) == ()


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _nested(text: str, depth: int) -> str:
    for _ in range(depth):
        text = json.dumps({"a": text})
    return text


_ESCAPED = json.dumps({"env": f"A=1\n{_github()}"})
_HIDDEN = {
    "JSON after words, in base64": _coded(f"Output:\n{_ESCAPED}"),
    "JSON after a space": f" {_ESCAPED}",
    "JSON Lines": '{"a": 1}\n' + "".join(f"\\u{ord(char):04x}" for char in _github()).join(('{"b": "', '"}')),
    "after a color": f"\x1b[01;31m{_github()}\x1b[m",
    "after the color of grep": f"\x1b[01;31m\x1b[K{_github()}\x1b[m\x1b[K",
    "base64 with a line end": _coded(f"hi {_github()}") + "\n",
    "base64 without its padding": _coded(f"xyz {_github()}").rstrip("="),
    "base64 in lines": base64.encodebytes(f"{'hello ' * 20}{_github()}".encode()).decode(),
    "base64 in lines of CRLF": base64.encodebytes(f"{'hello ' * 20}{_github()}".encode())
    .decode()
    .replace("\n", "\r\n"),
    "base64 of URLs": base64.urlsafe_b64encode(f"????>>>>ÿ {_github()}".encode()).decode(),
    "base64 of base64": _coded(_coded(f"x {_github()}")),
    "base64 of no UTF-8": base64.b64encode(b"\xff\xfe " + _github().encode()).decode(),
    "long base64 of no UTF-8": base64.b64encode(b"\xff\xfe " + b"x" * 300 + b" " + _github().encode()).decode(),
    "base64 of UTF-16": base64.b64encode(f"hello {_github()}".encode("utf-16")).decode(),
    "base64 of UTF-16 without its mark": base64.b64encode(f"hello {_github()}".encode("utf-16-le")).decode(),
    "base64 of UTF-16 in lines": base64.encodebytes(f"{'hello ' * 9}{_github()}".encode("utf-16-be")).decode(),
    "base64 with a tab": _coded(f"hi {_github()}").rstrip("=") + "\t",
    "base64 with a space of no ASCII": _coded(f"hi {_github()}") + "\u00a0",
    "JSON six deep": _nested(f"x\n{_github()}", 6),
    "a percent code": f"token%3D{_github()}",
    "a percent code in lower case": f"t%3d{_github()}",
}


@pytest.mark.parametrize("form", _HIDDEN)
def test_a_key_is_found_in_every_form_of_a_text(form: str) -> None:
    content = stream_of({"content": _HIDDEN[form]})
    assert find_secrets(content, KEY), _HIDDEN[form]
    assert find_secrets(content, KEY) == find_secrets(content, KEY, (), READY)


@pytest.mark.parametrize("value", [True, None, 5, 1.5, {}, {"a": "b"}, [], [{"a": 1}], "text", ["text"]])
def test_a_name_in_an_object_is_checked_whatever_its_value_is(value: object) -> None:
    for content in (stream_of({"a": {_github(): value}}), json.dumps({_github(): value, "b": 1}).encode()):
        assert len(find_secrets(content, KEY)) == 1, content


def test_each_value_of_a_repeated_name_is_checked() -> None:
    text = '[\n  {\n    "m": "HERE",\n    "m": "x"\n  }\n]\n'
    for value in (_github(), _coded(f"tok {_github()}"), f'", "m": {{"{_github()}": 1}}, "n": "'):
        content = text.replace("HERE", value).encode()
        assert [finding.event for finding in find_secrets(content, KEY)] == [1]
        assert len(find_secrets(content.strip()[1:-1], KEY)) == 1


@pytest.mark.parametrize("filling", ["9" * 5_000, "[" * 20_000 + "]" * 20_000, '{"a":' * 20_000 + "1" + "}" * 20_000])
def test_no_other_value_hides_a_text_in_base64(filling: str) -> None:
    content = f'[\n  {{\n    "n": {filling},\n    "content": "{_coded(f"tok {_github()}  ")}"\n  }}\n]\n'.encode()
    assert len(find_secrets(content, KEY)) == 1
    assert len(find_secrets(content, KEY, [b"[\n]\n"])) == 1


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_file_in_another_encoding_is_read(encoding: str) -> None:
    old, new = f"hello {_github(2)}\n".encode(encoding), f"hello {_github(2)}\nmore {_github()}\n".encode(encoding)
    assert len(find_secrets(new, KEY)) == 2
    assert [finding.line for finding in find_secrets(new, KEY, [old])] == [2]
    assert len(find_secrets(stream_of({"content": _coded(f"x {_github()}")}).decode().encode(encoding), KEY)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "\\" * 400_000,
        '{"a":' * 80_000,
        "[" * 400_000,
        "\n".join(["{"] * 100_000),
        '"' * 400_000,
        "QUJD" * 100_000,
        "QUJD\n" * 80_000,
        _nested("x\n" * 2_000, 8),
        "\x1b[31m" * 80_000,
        "%3D" * 130_000,
        "-eyJ" * 25_000,
        '"' + "\\" * 200_000 + "/." + "\\" * 200_000,
        "-----BEGIN PRIVATE " + "KEY-----\n" + "Version: " * 2_000 + " " * 2_000,
    ],
)
@pytest.mark.parametrize("prefilter", [None, READY], ids=["alone", "prefilter"])
def test_a_hostile_text_costs_linear_time(text: str, prefilter: Prefilter | None) -> None:
    def seconds(content: bytes) -> float:
        start = time.process_time()
        find_secrets(content, KEY, (), prefilter)
        return time.process_time() - start

    whole = seconds(stream_of({"content": text}))
    assert whole < 2, whole
    assert seconds(text.encode()) < 2


@pytest.mark.parametrize("content", [b"", b"[", b"\xff\xfe", b"[" * 100_000, b'{"a": ' * 5_000, b"null", b'"text"'])
def test_a_file_in_no_form_is_read_as_text(content: bytes) -> None:
    assert find_secrets(content + b"\n" + _github().encode(), KEY, [content])


def test_the_table_has_each_pattern_once() -> None:
    assert len({rule.pattern for rule in RULES}) == len(RULES)
    assert isinstance(find_secrets(_github().encode(), KEY)[0], Finding)


def _private_key(seed: int = 1) -> str:
    chance = random.Random(seed)
    body = "\n".join(base64.b64encode(chance.randbytes(48)).decode() for _ in range(6))
    return f"-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----\n"


def test_a_private_key_is_found_after_a_placeholder_with_the_same_first_line() -> None:
    """Lines that were there before are not checked, and every key begins with the same one."""
    before = "# Notes\n-----BEGIN OPENSSH PRIVATE KEY-----\n(put it here)\n-----END OPENSSH PRIVATE KEY-----\n"
    key = _private_key()
    assert not find_secrets(before.encode(), KEY)
    filled_in = before.replace("(put it here)\n", "".join(key.splitlines(keepends=True)[1:-1]))
    for after in (before + key, filled_in):
        (finding,) = find_secrets(after.encode(), KEY, (before.encode(),))
        assert finding.kind == "private key (PEM)"


def test_a_putty_key_is_found_after_a_placeholder_with_the_same_lines() -> None:
    lines = ["PuTTY-User-Key-File-3: ssh-ed25519", "Encryption: none", "Comment: me", "Public-Lines: 2"]
    chance = random.Random(2)
    public = [base64.b64encode(chance.randbytes(48)).decode() for _ in range(2)]
    private = base64.b64encode(chance.randbytes(48)).decode()
    before = "\n".join([*lines, "...", "Private-Lines: 1", "...", ""]).encode()
    after = "\n".join([*lines, *public, "Private-Lines: 1", private, ""]).encode()
    assert [each.kind for each in find_secrets(after, KEY, (before,))] == ["PuTTY private key"]


def test_a_private_key_that_was_there_before_is_not_checked_again() -> None:
    before = f"# Notes\n{_private_key()}".encode()
    assert not find_secrets(before + b"more words\n", KEY, (before,))
    assert not find_secrets(b"more\n" + before, KEY, (before,))
    words = "A PRIVATE KEY is here:\n\nPassword: Xk9#vQ2mZ7pLw4\n"
    assert not find_secrets(f"{words}more\n".encode(), KEY, (words.encode(),))


@pytest.mark.parametrize("ready", [True, False], ids=["prefilter", "none"])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("around", ["{}", " {}", "\ufeff{}", "{} x", "cut"])
def test_a_secret_in_json_in_a_line_that_is_not_json_is_found(around: str, depth: int, *, ready: bool) -> None:
    """A program that is killed leaves a line that was cut short."""
    texts = {"db_password": "Xk9#vQ2mZ7pLw4", "c": _private_key()}
    for _ in range(depth):
        texts = {"content": json.dumps(texts)}
    line = json.dumps({"message": texts})
    line = line[:-3] if around == "cut" else around.format(line)
    found = find_secrets(f'{{"a": 1}}\n{line}\n'.encode(), KEY, (), READY if ready else None)
    assert sorted((each.kind, each.line) for each in found) == [("assigned password", 2), ("private key (PEM)", 2)]


@pytest.mark.parametrize("ready", [True, False], ids=["prefilter", "none"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_a_secret_after_a_long_line_in_utf_16_is_found(encoding: str, *, ready: bool) -> None:
    """The beginning of such a file has no zero if it has no letter of ASCII."""
    text = "\u65e5" * 300 + f"\n{_github()}\n"
    if encoding == "utf-16-be":
        text = f"\ufeff{text}"
    found = find_secrets(text.encode(encoding), KEY, (), READY if ready else None)
    assert [each.kind for each in found] == ["GitHub token"]
