"""The table of rules: how keys, tokens and passwords look in a text.

A rule has *anchors*, short literal texts. A pattern is tried only near an anchor, because a search for a literal is
faster than one for a pattern. The vendors' documentation has the prefixes, lengths and alphabets. A value that looks
like an example (`_is_example`) or has too little entropy is no secret.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import pairwise
from math import log2
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Rule(NamedTuple):
    """How one kind of secret looks.

    The group ``secret`` of the pattern is the secret. The pattern begins at an anchor, or is searched from ``before``
    characters before one. It ends at most ``after`` characters behind the anchor. ``accepts`` checks what it finds.
    """

    kind: str
    anchors: tuple[str, ...]
    pattern: str
    """Compiled at an anchor only: most texts have none of most rules."""
    accepts: Callable[[re.Match[str]], bool]
    before: int = 0
    after: int = 300
    ignores_case: bool = False
    is_word: bool = False
    """The secret is a part of one long word (`_long_words`), with the anchor."""
    rough: str = ""
    """A pattern for bytes, for `reconcile.secrets.prefilter`: each match of ``pattern`` has one, also in JSON."""


class Match:
    """A secret in a text. Its representation doesn't contain the secret, so that no message can print it."""

    __slots__ = ("kind", "start", "value")

    def __init__(self, kind: str, start: int, value: str) -> None:
        """Keep the kind, the position in the text, and the secret itself."""
        self.kind = kind
        self.start = start
        self.value = value

    def __repr__(self) -> str:
        """Return the kind and the position."""
        return f"Match({self.kind!r}, {self.start})"


def matches(text: str) -> list[Match]:
    """Return the secrets in a text by their positions. Of two that overlap, the one of the earlier rule counts."""
    found: list[Match] = []
    taken: list[tuple[int, int]] = []
    lowered, words = "", _long_words(text)
    for rule in RULES:
        if rule.ignores_case and not lowered:
            lowered = text.lower()
            if len(lowered) != len(text):  # few letters have a longer lower case; their positions would not agree
                lowered = text.translate(_ASCII_LOWER)
        searched = lowered if rule.ignores_case else text
        for anchor in rule.anchors:
            if rule.is_word and anchor not in words:
                continue
            for match in _near(rule, anchor, searched, text):
                start, end = match.span("secret")
                if any(start < other_end and other_start < end for other_start, other_end in taken):
                    continue
                if rule.accepts(match):
                    taken.append((start, end))
                    found.append(Match(rule.kind, start, match["secret"]))
    return sorted(found, key=lambda match: match.start)


def _long_words(text: str) -> str:
    """Return the words that are long enough for a vendor's key: most of a text is shorter words."""
    return "\n".join([word for word in text.split() if len(word) >= _SHORTEST_WORD])


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _near(rule: Rule, anchor: str, searched: str, text: str) -> Iterator[re.Match[str]]:
    at = searched.find(anchor)
    while at >= 0:
        end = at + len(anchor)
        start = max(0, at - rule.before)
        pattern = _compiled(rule.pattern)
        find = pattern.search if rule.before else pattern.match
        if match := find(text, start, end + rule.after):
            yield match
            end = max(end, match.end())
        at = searched.find(anchor, end)


def entropy(value: str) -> float:
    """Return Shannon's entropy of the characters, in bits per character."""
    return -sum(count / len(value) * log2(count / len(value)) for count in Counter(value).values())


_ASCII_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_EXAMPLES: Final = re.compile(
    r"example|sample|placeholder|dummy|your[_-]|changeme|redacted|not[_-]?real|x{4}|\*{3}|\.{3}|(.)\1{5}", re.IGNORECASE
)
_PLACEHOLDER: Final = r"(?i)example|placeholder|redacted|changeme|your.{0,4}private"
"""In the body of a private key. Each word is so long that no key has it by chance."""
_SEPARATORS: Final = re.compile(r"[-_./:+=]+")
_CAMEL_CASE: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LONGEST_NUMBER: Final = 4
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_HEX: Final = re.compile(r"[0-9a-fA-F]+")


def _is_example(value: str) -> bool:
    """Tell whether a value is an example: a word says so, or many characters follow their predecessors."""
    if _EXAMPLES.search(value):
        return True
    steps = sum(ord(after) - ord(before) == 1 for before, after in pairwise(value))
    return steps > len(value) / 3


def _is_random(match: re.Match[str]) -> bool:
    """Accept a vendor's key: no example, and more than a few different characters."""
    value = match["secret"]
    return entropy(value) >= 3.0 and not _is_example(value)


def _is_key(match: re.Match[str]) -> bool:
    """Accept a value that is assigned to a name such as ``api_key``: it looks random."""
    value = match["secret"]
    if len(value) < _SHORTEST_KEY or _is_example(value) or _is_code(value):
        return False
    if not any(map(str.isdigit, value)) or not any(map(str.isalpha, value)):
        return False
    if _HEX.fullmatch(value):
        return len(value) >= _SHORTEST_HEX and entropy(value) >= 3.0
    if _UUID.fullmatch(value):
        return entropy(value) >= 3.0
    return entropy(value) >= 3.5 and not _is_of_words(value)


def _is_password(match: re.Match[str]) -> bool:
    """Accept a value that is assigned to a name such as ``password``: letters and digits, and no word or path."""
    value = match["secret"]
    if len(value) < _SHORTEST_PASSWORD or _is_example(value) or _is_code(value) or _is_of_words(value):
        return False
    kinds = sum(
        any(map(is_kind, value)) for is_kind in (str.islower, str.isupper, str.isdigit, lambda char: not char.isalnum())
    )
    return any(map(str.isdigit, value)) and kinds > 1 + (len(value) < 12) and entropy(value) >= 2.8


def _is_in_url(match: re.Match[str]) -> bool:
    """Accept the password of a URL: it is no variable, no example, and not the host's or user's name again."""
    value = match["secret"]
    if _is_example(value) or value.lower() in _COMMON or value == match["user"]:
        return False
    return not (match["host"].startswith(("example.", "host")) or match["user"].startswith(("$", "<", "{")))


def _is_key_block(match: re.Match[str]) -> bool:
    """Accept the block of a private key, unless its body is a placeholder: a word says so, or it hardly varies.

    A key in OpenSSH's format has many characters ``A`` in a row, so that they don't tell an example.
    """
    body = match["body"]
    return entropy(body) >= 3.0 and not re.search(_PLACEHOLDER, body)


def _is_code(value: str) -> bool:
    """Tell whether a value is a reference: a variable, a path, a digest's name or a part of a program."""
    return bool(_CODE.match(value))


def _is_of_words(value: str) -> bool:
    """Tell whether a value consists of words and short numbers, such as a name in a program, a version or a date."""
    parts = [part for part in _SEPARATORS.split(value) if part]
    size = sum(map(len, parts))
    return sum(len(part) for part in parts if _is_word(part)) >= 0.8 * size


def _is_word(part: str) -> bool:
    if part.isdigit():
        return len(part) <= _LONGEST_NUMBER
    inner = _CAMEL_CASE.split(part)
    words = (word for word in inner if word.isalpha() and (word.istitle() or word.islower() or word.isupper()))
    letters = sum(map(len, words))
    return letters >= 0.8 * len(part) and len(inner) <= max(1, len(part) / 4)


_SHORTEST_WORD: Final = 20
_SHORTEST_KEY: Final = 16
_SHORTEST_HEX: Final = 32
_SHORTEST_PASSWORD: Final = 8
_COMMON: Final = frozenset(("password", "pass", "passwd", "secret", "token", "pw", "pwd", "user", "port"))
_CODE: Final = re.compile(
    r"""
    [$%<{(\[~.@] | /[\w.-]*[/.] | sha\d+[-:] | md5: | https?: | file:  # variables, paths, digests
    | (?:self|this|os|env|process|config|settings|args|opts?|request|req|res|ctx|data)\.  # attributes
    """,
    re.VERBOSE,
)


_BEGINNING: Final = (
    r"(?:(?<![A-Za-z0-9])"
    r"|(?<=\\[bfnrt])"  # an escape of JSON that is not decoded
    r"|(?<=[0-9;\[][mK])"  # the end of a terminal's color
    r"|(?<=%[0-9A-Fa-f][0-9A-Fa-f]))"
)
"""No letter and no digit is before a key, except as the end of a code."""
_END_OF_URLSAFE: Final = r"(?![A-Za-z0-9_-])"


def _vendor(
    kind: str,
    anchors: tuple[str, ...],
    pattern: str,
    *,
    before: int = 0,
    after: int = 300,
    end: str = r"(?![A-Za-z0-9])",
    is_word: bool = True,
) -> Rule:
    whole = rf"{_BEGINNING}(?P<secret>{pattern}){end}"
    return Rule(kind, anchors, whole, _is_random, before, after, is_word=is_word, rough=pattern)


_NAMED: Final = r"""(?x)(?ai:{names})[\w-]{{0,20}}
    ["'`]{{0,2}} [ \t]{{0,4}} (?: := | => | ==? | : ) [ \t]{{0,4}} (?:(?ai:bearer|basic)[ ])? ["'`]{{0,2}}
    (?P<secret>{value}+)(?![(\[])"""
_ROUGH_SPACE: Final = r"""(?:["'`\\\s\x80-\xff]|\\(?:[bfnrt]|u[0-9A-Fa-f]{4}))"""
"""Space or a quote between a name and its value, also as an escape of JSON, at any depth."""
_ROUGH_KEY: Final = (
    r"(?:[A-Za-z0-9+/=_.~:-]{8,}[0-9]|[A-Za-z0-9+/=_.~:-]{0,7}[0-9][A-Za-z0-9+/=_.~:-]{8}"
    r"|[A-Za-z0-9+/_-]{8}[A-Za-z0-9+/_-]{8}[A-Za-z0-9+/_-]{6})"
)
"""Sixteen characters with a digit among them, or so many that they may be such a key in base64."""
_HEADER: Final = r"(?:Proc-Type|DEK-Info|Version|Comment):"
"""The name of a line before the body of a private key."""
_PASSWORDS: Final = ("password", "passwd", "passphrase", "pwd", "db_pass")
_KEYS: Final = (
    *("secret", "token", "credential", "api_key", "apikey", "api-key", "access_key", "accesskey", "access-key"),
    *("private_key", "auth_key", "accountkey", "account_key", "encryption_key", "signing_key"),
)


def _rough_named(names: tuple[str, ...], value: str) -> str:
    """Return a pattern of a value for one of these names, in JSON or not.

    The value may be a list, or a text in JSON. So the beginning of one of these is enough.
    """
    name = rf"(?i:{'|'.join(names)})[\w\\\x80-\xff-]*{_ROUGH_SPACE}*"
    begins = rf"""\[|"{_ROUGH_SPACE}*{{|"\\+"|(?:(?i:bearer|basic|token) +)?{_ROUGH_SPACE}*{value}"""
    return rf"{name}(?:[:=]=?|=>){_ROUGH_SPACE}*(?:{begins})"


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "private key (PEM)",
        ("PRIVATE KEY",),
        (
            r"(?P<secret>-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
            rf"(?:\\[rn]|[\s>|\"',+])*(?:{_HEADER}(?:(?!{_HEADER})[^\n\\]){{0,1000}}(?:\\[rn]|\s){{1,100}}+)*"
            r"(?P<body>[A-Za-z0-9+/=]{16}(?:[A-Za-z0-9+/=]|\\[rn]|[\s>|\"',+])*))"
        ),
        _is_key_block,
        before=40,
        after=20_000,
        rough="PRIVATE KEY",
    ),
    Rule(
        "PuTTY private key",
        ("PuTTY-User-Key-File-",),
        (
            r"(?P<secret>PuTTY-User-Key-File-[0-9]: [\s\S]{20,3000}?"
            r"Private-Lines: [0-9]+\s+(?P<body>[A-Za-z0-9+/=\s]{20,}))"
        ),
        _is_key_block,
        after=6_000,
        rough="PuTTY-User-Key-File-",
    ),
    _vendor("AWS access key", ("AKIA", "ASIA", "ABIA", "ACCA"), r"A(?:KI|SI|BI|CC)A[A-Z0-9]{16}"),
    _vendor("GitHub token", ("ghp_", "gho_", "ghu_", "ghr_"), r"gh[pour]_[A-Za-z0-9]{36,251}"),
    # An app's token is opaque with 36 characters, or a JWT with dots.
    _vendor("GitHub token", ("ghs_",), r"ghs_[A-Za-z0-9._-]{36,1000}", after=1200),
    _vendor("GitHub token", ("github_pat_",), r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    _vendor(
        "GitLab token",
        ("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "glsoat-", "gloas-", "glffct-"),
        r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat|oas|ffct)-[A-Za-z0-9_-]{20,300}(?:\.[A-Za-z0-9]{2}\.[A-Za-z0-9]{9})?",
        end=_END_OF_URLSAFE,
    ),
    _vendor(
        "Slack token",
        ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe", "xoxc-", "xoxd-"),
        r"xox[a-z](?:\.xox[bp])?-[A-Za-z0-9%-]{20,400}",
        after=500,
    ),
    _vendor("Slack token", ("xapp-",), r"xapp-[0-9]-[A-Z0-9]{6,}-[0-9]{6,}-[a-z0-9]{20,}"),
    _vendor("Slack webhook", ("hooks.slack.com/",), r"hooks\.slack\.com/[a-z]{7,10}/[A-Za-z0-9+/]{40,}"),
    _vendor("Stripe key", ("k_live_", "k_test_"), r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,247}", before=1),
    _vendor("Stripe key", ("whsec_",), r"whsec_[A-Za-z0-9+/=]{24,100}"),
    _vendor("Anthropic key", ("sk-ant-",), r"sk-ant-[a-z]{2,8}[0-9]{2}-[A-Za-z0-9_-]{60,200}", end=_END_OF_URLSAFE),
    _vendor("OpenRouter key", ("sk-or-",), r"sk-or-v[0-9]-[0-9a-f]{64}"),
    _vendor(
        "OpenAI key",
        ("sk-proj-", "sk-svcacct-", "sk-admin-"),
        r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,250}",
        end=_END_OF_URLSAFE,
    ),
    _vendor("OpenAI key", ("sk-",), r"sk-[A-Za-z0-9]{32,64}"),
    _vendor("Google API key", ("AIza",), r"AIza[A-Za-z0-9_-]{35}", end=_END_OF_URLSAFE),
    _vendor("Google OAuth secret", ("GOCSPX-",), r"GOCSPX-[A-Za-z0-9_-]{28}", end=_END_OF_URLSAFE),
    _vendor("Google OAuth token", ("ya29.",), r"ya29\.[A-Za-z0-9_-]{30,400}", after=500),
    _vendor("Google OAuth token", ("1//0",), r"1//0[A-Za-z0-9_-]{40,200}"),
    _vendor("npm token", ("npm_",), r"npm_[A-Za-z0-9]{36}"),
    _vendor("PyPI token", ("pypi-AgE",), r"pypi-AgE[A-Za-z0-9_-]{50,400}", after=500),
    _vendor("RubyGems key", ("rubygems_",), r"rubygems_[0-9a-f]{48}"),
    _vendor("Docker Hub token", ("dckr_pat_", "dckr_oat_"), r"dckr_[po]at_[A-Za-z0-9_-]{27,40}"),
    _vendor("SendGrid key", ("SG.",), r"SG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{39,50}", end=_END_OF_URLSAFE),
    _vendor("Mailgun key", ("key-",), r"key-[0-9a-f]{32}"),
    _vendor("Mailchimp key", ("-us",), r"[0-9a-f]{32}-us[0-9]{1,2}", before=33, after=3),
    _vendor("DigitalOcean token", ("dop_v1_", "doo_v1_", "dor_v1_"), r"do[por]_v1_[0-9a-f]{64}"),
    _vendor("Shopify token", ("shpat_", "shpss_", "shpca_", "shppa_"), r"shp(?:at|ss|ca|pa)_[0-9a-fA-F]{32}"),
    _vendor("Hugging Face token", ("hf_", "api_org_"), r"(?:hf_|api_org_)[A-Za-z0-9]{34,40}"),
    _vendor("Databricks token", ("dapi",), r"dapi[0-9a-f]{32}(?:-[0-9])?"),
    _vendor("Telegram bot token", (":AA",), r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}", before=10, end=_END_OF_URLSAFE),
    _vendor("age key", ("AGE-SECRET-KEY-1",), r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    _vendor("HashiCorp Vault token", ("hvs.", "hvb.", "hvr."), r"hv[sbr]\.[A-Za-z0-9_-]{24,300}"),
    _vendor("Terraform token", (".atlasv1.",), r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}", before=14),
    _vendor("Grafana token", ("glsa_",), r"glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}"),
    _vendor("Grafana token", ("glc_eyJ",), r"glc_eyJ[A-Za-z0-9+/=_-]{32,400}", after=500),
    _vendor("Linear key", ("lin_api_", "lin_oauth_"), r"lin_(?:api|oauth)_[A-Za-z0-9]{40,64}"),
    _vendor("Notion token", ("ntn_",), r"ntn_[A-Za-z0-9]{43,50}"),
    _vendor("Postman key", ("PMAK-",), r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _vendor("New Relic key", ("NRAK-",), r"NRAK-[A-Z0-9]{27}"),
    _vendor("Groq key", ("gsk_",), r"gsk_[A-Za-z0-9]{52}"),
    _vendor("xAI key", ("xai-",), r"xai-[A-Za-z0-9]{80}"),
    _vendor("Perplexity key", ("pplx-",), r"pplx-[A-Za-z0-9]{48}"),
    _vendor("Replicate token", ("r8_",), r"r8_[A-Za-z0-9]{37}"),
    _vendor("Sentry token", ("sntrys_", "sntryu_"), r"sntry(?:u_[0-9a-f]{64}|s_[A-Za-z0-9+/=_]{60,400})", after=500),
    _vendor("Doppler token", ("dp.",), r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    _vendor("Atlassian token", ("ATATT3", "ATCTT3"), r"AT[AC]TT3[A-Za-z0-9_=-]{50,300}", after=400),
    _vendor("Supabase token", ("sbp_",), r"sbp_[0-9a-f]{40}"),
    _vendor("PlanetScale token", ("pscale_",), r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,64}"),
    _vendor("Tailscale key", ("tskey-",), r"tskey-[a-z]+-[A-Za-z0-9]{8,}-[A-Za-z0-9]{20,}"),
    _vendor("Fly.io token", ("fm1", "fm2_"), r"fm[12][ar]?_[A-Za-z0-9+/=]{80,800}", after=1000),
    _vendor("Square token", ("sq0",), r"sq0[a-z]{3}-[A-Za-z0-9_-]{22,43}"),
    _vendor("Square token", ("EAAA",), r"EAAA[A-Za-z0-9_-]{60}", end=_END_OF_URLSAFE),
    # It has no literal of its own, so that a word before it is the anchor.
    _vendor(
        "Discord bot token",
        ("Bot ", "oken", "OKEN", "iscord", "ISCORD"),
        r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}",
        before=1,
        after=160,
        is_word=False,
    ),
    _vendor(
        "JSON Web Token",
        ("eyJ",),
        r"eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{8,6000}\.[A-Za-z0-9_-]{20,1000}",
        after=9_000,
    ),
    Rule(
        "password in a URL",
        ("://",),
        (
            r"(?<![A-Za-z])[A-Za-z][A-Za-z0-9+.-]{1,24}://(?P<user>[^\s:/@\"'`<>?#\\]{0,100}):"
            r"(?P<secret>[^\s/@\"'`<>{}$*\\]{3,200})@(?P<host>[A-Za-z0-9\[_.-]{1,200})"
        ),
        _is_in_url,
        before=25,
        after=600,
        rough=r"""://[^\s:/@"'`<>?#]*:[^\s/@"'`<>{}$*]{3,}@""",
    ),
    Rule(
        "HTTP credentials",
        ("authorization", "x-api-key"),
        (
            r"""(?ai:authorization|x-api-key)["'`]{0,2}[ \t]{0,4}[:=,][ \t]{0,4}["'`]{0,2}"""
            r"""(?ai:(?:bearer|basic|token)[ ]{1,2})?"""
            r"""(?P<secret>[A-Za-z0-9+/=_.~:-]{16,2000})"""
        ),
        _is_key,
        after=2_100,
        ignores_case=True,
        rough=_rough_named(("authorization", "x-api-key"), _ROUGH_KEY),
    ),
    Rule(
        "assigned password",
        _PASSWORDS,
        _NAMED.format(names="|".join(_PASSWORDS), value=r"""[^\s"'`<>,;{}()\[\]|\\]{8,100}"""),
        _is_password,
        after=200,
        ignores_case=True,
        rough=_rough_named(_PASSWORDS, r"""[^\s"'`<>,;{}()\[\]|]{8}"""),
    ),
    Rule(
        "assigned key",
        _KEYS,
        _NAMED.format(names="|".join(_KEYS), value=r"[A-Za-z0-9+/=_.~:-]{16,400}"),
        _is_key,
        after=500,
        ignores_case=True,
        rough=_rough_named(_KEYS, _ROUGH_KEY),
    ),
)
"""All rules. Those that name a vendor come first."""
