"""The notice of a conflict that a run has decided."""

from __future__ import annotations

from msgspec.structs import replace

from reconcile.inspect.conversation import Decided
from reconcile.model.snapshot import METADATA, Side
from reconcile.state.vault import Version

LOST = Version("0" * 64, "x", 1, "jp-c1", METADATA, "metadata.json", Side.STORE, "jp-c1/metadata.json", 0, "run", "")


def test_its_command_has_an_id_as_a_shell_reads_it() -> None:
    decided = Decided("jp-c1", METADATA, "run", Side.WORKSPACE, (LOST,))
    assert "`reconcile restore jp-c1@run:metadata` brings" in decided.words
    lost = replace(LOST, conversation="a/b $(touch y).json")
    assert "`reconcile restore 'a/b $(touch y).json@run:metadata'` brings" in replace(decided, lost=(lost,)).words
