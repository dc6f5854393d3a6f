"""Planted secrets: keys of many kinds, made at run time from a seed.

No key stands in the repository, because a host's push protection would take a real-looking one for real. The prefixes
are assembled for the same reason.
"""

from __future__ import annotations

import base64
import json
import string
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

_ALNUM = string.ascii_letters + string.digits
_URLSAFE = _ALNUM + "_-"
_HEX = "0123456789abcdef"
_WORDS = ("the build", "a request", "this file", "our server", "the answer")


def some(chance: random.Random, length: int, alphabet: str = _ALNUM) -> str:
    """Return random characters; if the alphabet has digits and others, some of each."""
    digits = set(string.digits)
    while True:
        text = "".join(chance.choices(alphabet, k=length))
        if not digits & set(alphabet) or (digits & set(text) and set(text) - digits):
            return text


def _jwt(chance: random.Random) -> str:
    head, body = ({"alg": "HS256", "typ": "JWT"}, {"sub": some(chance, 10), "iat": chance.randrange(10**9, 2 * 10**9)})
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (head, body)]
    return ".".join((*parts, some(chance, 43, _URLSAFE)))


def _pem(chance: random.Random, name: str) -> str:
    lines = [some(chance, 64, _ALNUM + "+/") for _ in range(12)]
    return "\n".join((f"-----BEGIN {name}-----", *lines, f"-----END {name}-----"))


def _uuid(chance: random.Random) -> str:
    return "-".join(some(chance, size, _HEX) for size in (8, 4, 4, 4, 12))


def _password(chance: random.Random) -> str:
    return some(chance, 9) + chance.choice("!#%+?") + some(chance, 4)


_UPPER = string.ascii_uppercase + string.digits
KINDS: dict[str, Callable[[random.Random], str]] = {
    "AWS access key": lambda c: "AK" + "IA" + some(c, 16, string.ascii_uppercase + "234567"),
    "AWS secret key": lambda c: f"aws_secret_access_key = {some(c, 40, _ALNUM + '+/')}",
    "GitHub classic token": lambda c: "gh" + c.choice("pousr") + "_" + some(c, 36),
    "GitHub fine-grained token": lambda c: "github" + "_pat_" + some(c, 22) + "_" + some(c, 59),
    "GitLab token": lambda c: "gl" + "pat-" + some(c, 20, _URLSAFE),
    "Slack bot token": lambda c: "xo" + f"xb-{c.randrange(10**11, 10**12)}-{c.randrange(10**12, 10**13)}-{some(c, 24)}",
    "Slack webhook": lambda c: "/".join(
        ("https://hooks.slack" + ".com/services", f"T{some(c, 9, _UPPER)}", f"B{some(c, 10, _UPPER)}", some(c, 24))
    ),
    "Stripe key": lambda c: "sk" + "_live_" + some(c, 24),
    "OpenAI project key": lambda c: "sk" + "-proj-" + some(c, 124, _URLSAFE) + "a",
    "OpenAI older key": lambda c: "sk" + "-" + some(c, 20) + "T3Blbk" + "FJ" + some(c, 20),
    "Anthropic key": lambda c: "sk" + "-ant-api03-" + some(c, 93, _URLSAFE) + "AA",
    "Google API key": lambda c: "AI" + "za" + some(c, 34, _URLSAFE) + "b",
    "Google OAuth secret": lambda c: "GOC" + "SPX-" + some(c, 27, _URLSAFE) + "c",
    "npm token": lambda c: "np" + "m_" + some(c, 36),
    "PyPI token": lambda c: "py" + "pi-AgEIcHlwaS5vcmc" + some(c, 150, _URLSAFE) + "d",
    "SendGrid key": lambda c: "S" + "G." + some(c, 22, _URLSAFE) + "." + some(c, 42, _URLSAFE) + "e",
    "Hugging Face token": lambda c: "h" + "f_" + some(c, 34, string.ascii_letters),
    "DigitalOcean token": lambda c: "do" + "p_v1_" + some(c, 64, _HEX),
    "Telegram bot token": lambda c: f"{c.randrange(10**9, 10**10)}:AA" + some(c, 32, _URLSAFE) + "f",
    "Databricks token": lambda c: "da" + "pi" + some(c, 32, _HEX),
    "RSA private key": lambda c: _pem(c, "RSA PRIVATE " + "KEY"),
    "OpenSSH private key": lambda c: _pem(c, "OPENSSH PRIVATE " + "KEY"),
    "JSON Web Token": _jwt,
    "password in a URL": lambda c: f"postgres://app:{some(c, 16)}@db{c.randrange(9)}.internal:5432/main",
    "assigned password": lambda c: f"DB_PASSWORD={_password(c)}",
    "assigned hexadecimal key": lambda c: f"API_KEY={some(c, 32, _HEX)}",
    "assigned token in YAML": lambda c: f"auth_token: {some(c, 40)}",
    "client secret in JSON": lambda c: json.dumps({"client_secret": some(c, 32, _URLSAFE) + "g"}),
    "bearer header": lambda c: f"Authorization: Bearer {some(c, 40, _URLSAFE)}h",
    "UUID as key": lambda c: f'HEROKU_API_KEY="{_uuid(c)}"',
}
"""A function for each kind, which returns a text with one secret of it."""


def _in_chat(secret: str, chance: random.Random) -> dict[str, object]:
    return _event("chat_request", content=f"Please look at {chance.choice(_WORDS)}: {secret} is what I use.")


def _in_file(secret: str, chance: random.Random) -> dict[str, object]:
    return _event("tool_call_response", content=_coded(f"# {chance.choice(_WORDS)}\nPORT=8080\n{secret}\nDEBUG=1\n"))


def _in_arguments(secret: str, chance: random.Random) -> dict[str, object]:
    text = f"def run():\n    # {chance.choice(_WORDS)}\n    x = '{secret}'\n"
    arguments = {"path": _coded("src/main.py"), "text": _coded(text)}
    return _event("tool_call_request", name="edit", arguments=arguments)


def _in_nested_json(secret: str, chance: random.Random) -> dict[str, object]:
    result = json.dumps({"stdout": f"{chance.choice(_WORDS)}\n{secret}\n", "exit": 0})
    return _event("tool_call_response", content=_coded(result))


def _in_command(secret: str, chance: random.Random) -> dict[str, object]:
    command = f"echo '{chance.choice(_WORDS)}' && run <<< \"{secret}\""
    return _event("tool_call_request", name="shell", arguments={"command": _coded(command)})


PLACES: dict[str, Callable[[str, random.Random], dict[str, object]]] = {
    "a chat": _in_chat,
    "a file that a tool read": _in_file,
    "a tool's arguments": _in_arguments,
    "JSON in a tool's result": _in_nested_json,
    "a command": _in_command,
}
"""A function for each place, which returns an event of JP with the text in it."""


def _event(kind: str, **fields: object) -> dict[str, object]:
    return {"timestamp": "2026-05-05 09:00:00.0", "type": kind, **fields}


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def stream_of(*events: Mapping[str, object]) -> bytes:
    """Return an events file as JP writes it."""
    return json.dumps(list(events), indent=2, ensure_ascii=False).encode()
