"""The user's home directory: the variable, or else the system's; an empty variable is none, and names no root."""

from __future__ import annotations

import os
import pwd

import pytest

from reconcile.fs.home import HomeError, home_directory


def test_the_variable_comes_first() -> None:
    assert home_directory({"HOME": "/h"}) == "/h"
    assert home_directory({"HOME": "/"}) == "/", "somebody says so"


def test_a_relative_path_is_refused() -> None:
    with pytest.raises(HomeError, match=r"^HOME is a relative path$") as raised:
        home_directory({"HOME": "rel"})
    assert (raised.value.exit_code, raised.value.hint) == (2, "set it to an absolute path: export HOME=DIR")


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}])
def test_an_empty_variable_counts_as_unset(environ: dict[str, str]) -> None:
    assert home_directory(environ) == pwd.getpwuid(os.getuid()).pw_dir


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}])
def test_a_user_whom_the_system_does_not_know_is_an_error(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = max(entry.pw_uid for entry in pwd.getpwall()) + 12345
    monkeypatch.setattr(os, "getuid", lambda: unknown)
    with pytest.raises(HomeError, match="HOME is not set, and the system has no home directory of this user") as raised:
        home_directory(environ)
    assert (raised.value.exit_code, raised.value.hint) == (2, "set it: export HOME=DIR")
