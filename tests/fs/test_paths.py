"""Paths in suggested commands."""

from __future__ import annotations

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
