"""Both indexes as the program derives them: against its real rebuild, and against a straightforward reference."""

from __future__ import annotations

import json
import random
import re
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.formats.claudesidian.index import rebuild, tokens, written
from reconcile.formats.claudesidian.record_files import Item, Kind, in_order, is_listed, read_item
from reconcile.formats.json import javascript
from tests.support.claudesidian import CORPUS, needs_corpus

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

INTACT = ["job-search-2025-11", "job-search-2025-12"]


def records(kind: Kind, directory: Path, without: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """What the program's own rebuild goes through."""
    names = [name for name in in_order(file.name for file in directory.iterdir()) if is_listed(name)]
    read = [read_item(kind, name, (directory / name).read_bytes()) for name in names if name not in without]
    return [item.value for item in read if isinstance(item, Item)]


@needs_corpus
@pytest.mark.parametrize("kind", Kind)
def test_the_programs_real_rebuild_has_these_bytes(kind: Kind) -> None:
    expected = CORPUS / "index-drift" / "expected-real-rebuild-without-poison" / f"{kind}s-index.json"
    found = records(
        kind, CORPUS / "index-drift" / kind.directory, ("ws_ctor.json", ".trace-schema.json", "conv_x.json")
    )
    now = json.loads(expected.read_bytes())["lastUpdated"]
    assert javascript.stringify(rebuild(kind, found, now)) == expected.read_bytes()


@needs_corpus
@pytest.mark.parametrize("vault", INTACT)
@pytest.mark.parametrize("kind", Kind)
def test_an_intact_index_is_made_again_byte_by_byte(kind: Kind, vault: str) -> None:
    directory = CORPUS / vault / kind.directory
    stored = (directory / "index.json").read_bytes()
    index = rebuild(kind, records(kind, directory), json.loads(stored)["lastUpdated"], buckets=False)
    assert written(index, json.loads(stored)) == stored


TOKENS = {
    "letters with accents part a word": ("résumé naïve", ["sum"]),
    "Japanese makes none": ("日本語の会話", []),
    "nor does what is too short": ("AI 42 a_b", ["a_b"]),
    "a year does": ("Plan 2025 007", ["plan", "2025", "007"]),
    "an apostrophe parts": ("don't it's", ["don"]),
    "an underscore doesn't": ("foo_bar", ["foo_bar"]),
    "the Kelvin sign is a k": ("\u212aelvin", ["kelvin"]),
    "a dotted I leaves its dot behind": ("\u0130stanbul", ["stanbul"]),
    "what is no text": (None, []),
    "a number": (12345, []),
    "what has no width parts": ("foo\u200bbar", ["foo", "bar"]),
    "half of a surrogate pair": ("abc\ud800def", ["abc", "def"]),
}


@pytest.mark.parametrize(("text", "expected"), TOKENS.values(), ids=TOKENS)
def test_words(text: object, expected: list[str]) -> None:
    assert tokens(text) == expected


def reference_words(text: object) -> list[str]:
    """The program's own steps, one after the other."""
    if not text or not isinstance(text, str):
        return []
    return [word for word in re.split(r"\s+", re.sub(r"[^A-Za-z0-9_\s]", " ", text.lower())) if len(word) > 2]


def put(index: dict[str, list[str]], text: object, id_: str) -> None:
    for word in reference_words(text):
        if word not in index:
            index[word] = []
        if id_ not in index[word]:
            index[word].append(id_)


def by_index(value: object) -> object:
    """Keys as JavaScript has them, by sorting pairs."""
    if isinstance(value, list):
        return [by_index(each) for each in value]
    if not isinstance(value, dict):
        return value
    numbers = {key for key in value if re.fullmatch("0|[1-9][0-9]*", key, re.ASCII) and int(key) < 4294967295}
    ordered = [*sorted(numbers, key=int), *(key for key in value if key not in numbers)]
    return {key: by_index(value[key]) for key in ordered}


def reference(kind: Kind, found: list[dict[str, Any]], now: int) -> bytes:
    index: dict[str, Any]
    if kind is Kind.WORKSPACE:
        index = {"workspaces": {}, "byName": {}, "byDescription": {}, "byFolder": {}, "sessionsByWorkspace": {}}
        for record in found:
            copied = {name: value for name, value in record.items() if name not in ("context", "sessions")}
            copied["sessionCount"] = len(record["sessions"])
            copied["traceCount"] = sum(len(each["memoryTraces"]) for each in record["sessions"].values())
            index["workspaces"][record["id"]] = copied
            put(index["byName"], record["name"], record["id"])
            if record.get("description"):
                put(index["byDescription"], record["description"], record["id"])
            index["byFolder"][record["rootFolder"]] = record["id"]
            index["sessionsByWorkspace"][record["id"]] = list(by_index(record["sessions"]))  # type: ignore[call-overload]
    else:
        month = 30 * 24 * 3600 * 1000
        buckets: list[dict[str, Any]] = [
            {"start": now - (at + 1) * month, "end": now - at * month, "conversationIds": []} for at in range(12)
        ]
        index = {"conversations": {}, "byTitle": {}, "byContent": {}, "byVault": {}, "byDateRange": buckets}
        for record in found:
            index["conversations"][record["id"]] = {name: value for name, value in record.items() if name != "messages"}
            put(index["byTitle"], record["title"], record["id"])
            put(index["byVault"], record["vault_name"], record["id"])
            for message in record["messages"]:
                put(index["byContent"], message["content"], record["id"])
            for bucket in buckets:
                ids = bucket["conversationIds"]
                if bucket["start"] <= record["created"] < bucket["end"] and record["id"] not in ids:
                    ids.append(record["id"])
    index["lastUpdated"] = now
    return json.dumps(by_index(index), indent=2, ensure_ascii=False).encode("utf-8", "surrogatepass")


WORDS = [
    "résumé",
    "naïve",
    "日本語",
    "🎉abc🎉",
    "\u212aelvin",
    "\u0130STANBUL",
    "2025",
    "42",
    "007",
    "4294967295",
    "999",
]
WORDS += [
    "constructor",
    "__proto__",
    "don't",
    "foo_bar",
    "AI",
    "abc",
    "Abc",
    "zero\u200bwidth",
    "Straße",
    "ΣΑΣ",
    "a\tb\nc",
]
IDS = ["ws_a", "ws_b", "7", "42", "default", "0", "ws_c", "__proto__"]
NOW = 1_795_293_649_227


def some_text(chance: random.Random) -> str:
    letters = "".join(chr(chance.choice([*range(32, 127), *range(0x80, 0x250), 0x212A, 0x1F389])) for _ in range(9))
    return " ".join([*chance.choices(WORDS, k=chance.randrange(4)), letters[: chance.randrange(9)]])


def some_time(chance: random.Random) -> int:
    return NOW - chance.randrange(-5, 400 * 24 * 3600 * 1000)


def some_workspace(chance: random.Random) -> dict[str, Any]:
    value: dict[str, Any] = {"id": chance.choice(IDS), "name": some_text(chance)}
    if chance.random() < 0.6:
        value["description"] = chance.choice(["", some_text(chance)])
    value |= {"rootFolder": chance.choice(["/", "Notes", "a/ü", "12"]), "created": some_time(chance)}
    value["lastAccessed"] = some_time(chance)
    if chance.random() < 0.5:
        value["isActive"] = chance.random() < 0.5
    sessions = chance.sample([*IDS, "s-20251101090000"], k=chance.randrange(4))
    traces = [{key: {"content": "x"} for key in chance.sample(IDS, k=chance.randrange(3))} for _ in sessions]
    value["context"] = {"purpose": "x"}
    value["sessions"] = {id_: {"id": id_, "memoryTraces": each} for id_, each in zip(sessions, traces, strict=True)}
    return value


def some_conversation(chance: random.Random) -> dict[str, Any]:
    contents = [chance.choice([None, "", some_text(chance)]) for _ in range(chance.randrange(4))]
    return {
        "id": chance.choice(IDS),
        "title": some_text(chance),
        "created": some_time(chance),
        "updated": some_time(chance),
        "vault_name": some_text(chance),
        "message_count": chance.randrange(3),
        "messages": [{"content": content} for content in contents],
    }


@pytest.mark.parametrize(("kind", "some"), [(Kind.WORKSPACE, some_workspace), (Kind.CONVERSATION, some_conversation)])
def test_of_random_vaults_both_are_as_the_reference_has_them(
    kind: Kind, some: Callable[[random.Random], dict[str, Any]]
) -> None:
    for seed in range(400):
        chance = random.Random(seed)
        found = [some(chance) for _ in range(chance.randrange(6))]
        parsed = javascript.parse(json.dumps(found).encode())
        assert javascript.stringify(rebuild(kind, parsed, NOW)) == reference(kind, found, NOW), seed


def test_what_is_unknown_in_the_stored_index_is_kept() -> None:
    index = rebuild(Kind.CONVERSATION, [], 5, buckets=False)
    stored = {"lastUpdated": 1, "byMood": {"good": []}, "conversations": {"x": {}}}
    assert list(json.loads(written(index, stored))) == [*index, "byMood"]
    assert json.loads(written(index, stored))["lastUpdated"] == 5
