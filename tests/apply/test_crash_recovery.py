"""A stream of which a killed run replaced one file of two."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from reconcile.apply.crash_recovery import roll_back_partial_units
from reconcile.fs.durability import Durability
from reconcile.fs.hashing import digest
from reconcile.fs.mutations import Root
from reconcile.model.snapshot import Side
from reconcile.state.journal import Step
from reconcile.state.vault import Vault, Version

if TYPE_CHECKING:
    from pathlib import Path

OLD = {"base_config.json": b"{}", "events.json": b"[]"}
NEW = {"base_config.json": b'{"a": 1}', "events.json": b"[1]"}
LATER = b"[1, 2]"

HALF = {"base_config.json": NEW["base_config.json"], "events.json": OLD["events.json"]}
WRITTEN_SINCE = {"base_config.json": NEW["base_config.json"], "events.json": LATER}


@pytest.mark.parametrize(
    ("found", "left"),
    [
        pytest.param(HALF, OLD, id="half of it is put back"),
        pytest.param(NEW, NEW, id="all of it stays"),
        pytest.param(OLD, OLD, id="none of it is nothing to put back"),
        pytest.param(WRITTEN_SINCE, WRITTEN_SINCE, id="what somebody has written since stays"),
    ],
)
def test_a_unit_is_old_or_new_or_somebodys(tmp_path: Path, found: dict[str, bytes], left: dict[str, bytes]) -> None:
    half_replaced(tmp_path, found, left)


@pytest.mark.parametrize("has_exchange", [True, False])
def test_what_somebody_writes_while_it_is_put_back_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_exchange: bool
) -> None:
    """The last look was before the vault was flushed."""
    flush, there = Vault.flush, tmp_path / "store" / "1-a" / "base_config.json"

    def slow(vault: Vault) -> None:
        flush(vault)
        there.write_bytes(LATER)

    monkeypatch.setattr(Vault, "flush", slow)
    if not has_exchange:
        monkeypatch.setattr(Root, "exchange", lambda *_: False)
    half_replaced(tmp_path, HALF, HALF | {"base_config.json": LATER})


def half_replaced(tmp_path: Path, found: dict[str, bytes], left: dict[str, bytes]) -> None:
    """Settle a stream that a killed run has left as ``found``, and expect ``left``."""
    copy = tmp_path / "store" / "1-a"
    copy.mkdir(parents=True)
    off = Durability(enabled=False)
    vault = Vault(str(tmp_path / "state"), off)
    versions = []
    for name, content in found.items():
        (copy / name).write_bytes(content)
        kept = vault.put_bytes(OLD[name])
        versions.append(
            Version(kept.digest, kept.xxh3, kept.size, "jp-c1", "stream", name, Side.STORE, f"1-a/{name}", 5, "r", "x")
        )
    writes = [{"target": f"store:1-a/{name}", "digest": digest(content)} for name, content in NEW.items()]
    record = json.dumps({"unit": "stream", "writes": writes, "removes": []})
    root = Root(str(tmp_path / "store"))
    roll_back_partial_units(
        [Step("1", "jp-c1", "stream", "copy", record)], versions, {Side.STORE: root}, vault, off, ".staged"
    )
    root.close()
    assert {name: (copy / name).read_bytes() for name in found} == left
    assert sorted(path.name for path in copy.iterdir()) == sorted(found)
    vaulted = {path.read_bytes() for path in (tmp_path / "state").rglob("objects/*/*")}
    assert (NEW["base_config.json"] in vaulted) == (found == HALF)
    assert not (tmp_path / "store" / ".staged").exists()
