"""Vaults of Claudesidian for tests: those of the corpus, and small ones made of values."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.formats.claudesidian.checks.examine import examine
from reconcile.formats.claudesidian.index import rebuild
from reconcile.formats.claudesidian.record_files import INDEX, Item, Kind, in_order, is_item, read_item
from reconcile.formats.claudesidian.vault import NexusFiles, SplitFiles, VaultFiles
from reconcile.formats.json import javascript

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.formats.claudesidian.finding import Finding
    from reconcile.formats.claudesidian.vault import Content

CORPUS = Path(os.environ.get("RECONCILE_CORPUS") or Path(__file__).parents[4] / "shared" / "corpus") / "claudesidian"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus at {CORPUS}; set RECONCILE_CORPUS")

NOW = 1_795_293_700_000


def copied(scenario: str, to: Path) -> Path:
    """A scenario of the corpus with the times that its `paths.txt` says; git keeps none."""
    shutil.copytree(CORPUS / scenario, to, dirs_exist_ok=True)
    for line in (CORPUS / scenario / "paths.txt").read_text().splitlines():
        _, time, path = line.split(" ", 2)
        seconds, _, fraction = time.partition(".")
        if (to / path).is_file():
            os.utime(to / path, ns=(int(seconds + fraction[:9]),) * 2)
    return to


def workspace(id_: str, name: str = "", **members: Any) -> dict[str, Any]:
    """A workspace as the program makes it, with some members that differ."""
    made = {"id": id_, "name": name or id_, "rootFolder": "/", "created": 1000, "lastAccessed": 2000}
    return {**made, "isActive": True, "sessions": {}, **members}


def session(id_: str, *traces: str, **members: Any) -> dict[str, Any]:
    """A session with traces of these ids."""
    made = {"id": id_, "name": id_, "startTime": 1000, "isActive": True}
    each = {trace: {"id": trace, "timestamp": 1, "type": "tool_call", "content": trace} for trace in traces}
    return {**made, "memoryTraces": each, "states": {}, **members}


def conversation(id_: str, *contents: Any, **members: Any) -> dict[str, Any]:
    """A conversation of the user's messages."""
    messages = [
        {"id": f"msg_{number}", "role": "user", "content": content, "timestamp": number}
        for number, content in enumerate(contents)
    ]
    made = {"id": id_, "title": id_, "created": 1000, "updated": 2000, "vault_name": "vault"}
    return {**made, "message_count": len(messages), "messages": messages, **members}


def files(*records: Mapping[str, Any], index: Any = ..., **more: Any) -> SplitFiles:
    """A directory of records under their ids; ``index`` is a value, bytes, or None for none.

    What else is given are values or bytes by file name; ``backups`` those of that directory.
    """
    kind = Kind.CONVERSATION if any("messages" in record for record in records) else Kind.WORKSPACE
    backups = {name: _bytes(value) for name, value in more.pop("backups", {}).items()}
    found: dict[str, Content] = {f"{record['id']}.json": javascript.stringify(record) for record in records}
    found |= {name: _bytes(value) for name, value in more.items()}
    if index is ...:
        index = index_of(kind, found)
    if index is not None:
        found[INDEX] = _bytes(index)
    return SplitFiles(found, backups)


def index_of(kind: Kind, contents: Mapping[str, Content]) -> dict[str, Any]:
    """The index of these files as the program's rebuild makes it."""
    names = [name for name in in_order(contents) if is_item(name)]
    items = [read_item(kind, name, content) for name in names if isinstance(content := contents[name], bytes)]
    return rebuild(kind, [item.value for item in items if isinstance(item, Item)], NOW, buckets=False)


def vault(*directories: SplitFiles, nexus: NexusFiles | None = None) -> VaultFiles:
    """A vault of up to two directories, workspaces first."""
    return VaultFiles(dict(zip(Kind, directories, strict=False)), nexus)


def events(*values: Mapping[str, Any], device: str = "here") -> bytes:
    """An event file; what isn't given is numbered."""
    lines = [
        json.dumps(
            {**value, "id": value.get("id", f"e{at}"), "deviceId": device, "timestamp": value.get("timestamp", at)}
        )
        for at, value in enumerate(values, 1)
    ]
    return "".join(line + "\n" for line in lines).encode()


def told(findings: tuple[Finding, ...]) -> list[tuple[str, str, str]]:
    """Findings in short: code, severity, file name."""
    return [(finding.code, finding.severity.value, finding.place.rpartition("/")[2]) for finding in findings]


def carried_out(before: VaultFiles, *, on_request: bool = False) -> VaultFiles:
    """The vault after all repairs that need no asking; with ``on_request`` only the others, one after the other."""
    split = {kind: dict(each.files) for kind, each in before.split.items()}
    streams = {kind: dict(each) for kind, each in before.nexus.events.items()} if before.nexus else {}
    for finding in examine(before, NOW):
        if finding.on_request is not on_request:
            continue
        for repair in finding.repairs:
            top, *_, name = repair.path.split("/")
            kind = next(kind for kind in Kind if kind.directory in (top, f".{repair.path.split('/')[1]}"))
            target = streams[kind] if top == ".nexus" else split[kind]
            target.pop(name, None)
            if repair.content is not None:
                target[name] = repair.content
    nexus = NexusFiles(streams, before.nexus.status) if before.nexus else None
    backups = {kind: each.backups for kind, each in before.split.items()}
    return VaultFiles({kind: SplitFiles(each, backups[kind]) for kind, each in split.items()}, nexus)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else javascript.stringify(value)
