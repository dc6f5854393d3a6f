"""The words of suggested commands, as a shell reads them."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest

from reconcile.model.commands import quoted, typed

WORDS = [
    "jp-c1",
    "a b",
    "it's",
    "$(x)",
    "京都",
    "👨\u200d👩\u200d👧 of 'us'\\",
    "a\u202eb",
    "tab\tand\nline",
    "\udcff",
    "",
]


@pytest.mark.parametrize("word", WORDS)
def test_a_word_has_no_character_that_a_terminal_acts_on(word: str) -> None:
    assert typed(word).isprintable()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_shell_reads_each_word_as_it_is() -> None:
    printed = subprocess.run(["bash", "-c", f"printf '%s\\0' {typed(*WORDS)}"], capture_output=True, check=True).stdout
    assert printed == b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for word in WORDS)


def test_before_a_dash_stands_what_keeps_it_from_being_an_option() -> None:
    assert typed("-dash", "--take", "a-b") == "./-dash ./--take a-b"
    assert quoted("--workspace") == "--workspace"


def test_an_ordinary_word_is_quoted_only_if_need_be() -> None:
    assert typed("reconcile", "resolve", "jp-c1", "a b") == "reconcile resolve jp-c1 'a b'"
    assert shlex.split(typed(*WORDS[:5])) == WORDS[:5]
