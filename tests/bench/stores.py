"""Makes conversations as JP writes them (its own bytes: two-space JSON), and changes some of them."""

from __future__ import annotations

import base64
import json
import math
import os
import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from reconcile.formats import get_format

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SEED = 20_260_822
FIRST = 17_528_832_001
_SIGMA = 1.0
_POOL = 400
_STAMP = "\0"
_TEXT = (
    "archive baseline buffer cache compile config conversation cursor debug default design directory editor "
    "error event feature filter format function handle history index inquiry layout library list lock memory "
    "merge model module move name nested option order parser path plan prompt query reason record refactor "
    "release rename request resolve review rule schema search session silo storage stream summary test title "
    "token tool trait tree turn type update value version workspace write"
)
_WORDS = _TEXT.split()


@dataclass(frozen=True, slots=True)
class Weight:
    """Bytes of a base configuration, and the mean of those of the events."""

    config: int
    events: int


USUAL = Weight(6_000, 20_480)
SMALL = Weight(480, 1_600)
"""To look at as many files with little to copy: about 0.5 KB, and a median of 1.5 KB for the events."""


def make_store(directory: Path, count: int, weight: Weight) -> list[str]:
    """Fill ``directory`` with ``count`` conversations; returns the names of theirs. Same count, same bytes."""
    rng = random.Random(SEED)
    directory.mkdir(parents=True)
    configs = [_config(rng, weight.config) for _ in range(8)]
    pool = [_event(kind, rng) for kind in rng.choices(_KINDS, weights=_WEIGHTS, k=_POOL)]
    begin = "".join(_element({"timestamp": _STAMP, "type": "turn_start"}))
    jp = get_format("jp")
    names = []
    number = FIRST
    for _ in range(count):
        number += rng.randrange(1, 1500)
        title = f"{rng.choice(_WORDS)} {rng.choice(_WORDS)}: {_sentence(rng, 8)}".capitalize()
        name = jp.dirname(f"jp-c{number}", title)
        moment = number * 100_000_000 + rng.randrange(1, 99_999_999)
        metadata = {"title": title, "last_activated_at": _stamp(moment)}
        files = {
            "metadata.json": _pretty(metadata),
            "base_config.json": rng.choice(configs),
            "events.json": _events(pool, begin, moment, weight.events, rng),
        }
        _write(os.path.join(directory, name), files, moment)
        names.append(name)
    return names


def change(directories: Sequence[Path], names: Sequence[str], number: int, edits: int) -> None:
    """Append one event to the same conversations, so many, in each directory, by temp file and rename."""
    rng = random.Random(SEED + number + 1)
    for name in rng.sample(names, edits):
        event = _element({"timestamp": _stamp(time.time_ns()), "type": "chat_request", "content": _sentence(rng, 80)})
        for directory in directories:
            target = directory / name / "events.json"
            temporary = target.with_name("events.json.tmp")
            temporary.write_bytes(target.read_bytes().removesuffix(b"\n]\n") + f",\n{event}\n]\n".encode())
            temporary.rename(target)


def _write(directory: str, files: dict[str, str], moment: int) -> None:
    os.mkdir(directory)
    for name, text in files.items():
        path = f"{directory}/{name}"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.utime(path, ns=(moment, moment))


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _element(value: object) -> str:
    """An element of a pretty array."""
    return "  " + json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n  ").replace("\\u0000", _STAMP)


def _stamp(moment_ns: int) -> str:
    seconds, rest = divmod(moment_ns, 10**9)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{rest // 1000:06d}"


def _sentence(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(_WORDS, k=words))


def _events(pool: list[str], begin: str, moment: int, mean: int, rng: random.Random) -> str:
    """A stream of lognormal size, of events from the pool, each with a time of its own."""
    left = rng.lognormvariate(math.log(mean) - _SIGMA**2 / 2, _SIGMA)
    elements = []
    event = begin
    while left > 0:
        moment += 7_300_000_000
        elements.append(event.replace(_STAMP, _stamp(moment)))
        left -= len(event) + 27
        event = rng.choice(pool)
    return "[\n" + ",\n".join(elements) + "\n]\n"


_KINDS = ("chat_request", "chat_response", "reasoning", "tool_call_request", "tool_call_response")
_WEIGHTS = (2, 3, 2, 3, 3)


def _event(kind: str, rng: random.Random) -> str:
    text = _sentence(rng, max(3, int(rng.lognormvariate(3.6, 1.0))))
    event: dict[str, Any] = {"timestamp": _STAMP, "type": kind}
    match kind:
        case "chat_request":
            event["content"] = text
        case "chat_response":
            event["message"] = text + ".\n\n```rust\nfn main() {}\n```\n"
        case "reasoning":
            event |= {"type": "chat_response", "reasoning": text}
        case "tool_call_request":
            arguments = {"path": _base64("crates/" + rng.choice(_WORDS)), "pattern": _base64(text)}
            event |= {"id": f"call_{rng.randrange(10**9)}", "name": "fs_grep_files", "arguments": arguments}
        case _:
            event |= {"id": f"call_{rng.randrange(10**9)}", "content": _base64(text), "is_error": False}
    return _element(event)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _config(rng: random.Random, size: int) -> str:
    tools: dict[str, object] = {}
    config = {
        "inherit": True,
        "config_load_paths": [".config/jp", ".config/jp/personas"],
        "assistant": {"name": "jp", "system_prompt": {"value": _sentence(rng, size // 20), "strategy": "append"}},
        "conversation": {"title": {"generate": {"auto": True}}, "tools": tools},
    }
    while len(text := _pretty(config)) < size:
        tools[f"{rng.choice(_WORDS)}_{len(tools)}"] = {
            "source": "local",
            "description": _sentence(rng, 12),
            "parameters": {rng.choice(_WORDS): {"type": "string", "required": rng.random() < 0.5}},
        }
    return text
