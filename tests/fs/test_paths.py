"""Paths in suggested commands."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from reconcile.fs.paths import quoted_path


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/home/me/x", "~/x"),
        ("/home/me/a b", "~/'a b'"),
        ("/home/me", "/home/me"),
        ("/x/a b", "'/x/a b'"),
        ("../x", "../x"),
        ("~/x", "'~/x'"),
    ],
)
def test_a_path_in_a_command(path: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert quoted_path(path) == shown


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("name", [b"e\x1b[31mred", "\u202egnp \u4eac".encode(), b"a\xff'b\\c\x07", b"two\nlines"])
def test_no_control_character_of_a_path_reaches_the_terminal(name: bytes) -> None:
    shown = quoted_path(os.fsdecode(name))
    assert shown.isprintable()
    echoed = subprocess.run(["bash", "-c", f"printf %s {shown}"], capture_output=True, check=True)
    assert echoed.stdout == name
