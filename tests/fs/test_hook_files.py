"""The blocks of lines in hooks and attributes: found, replaced, and removed byte for byte."""

from __future__ import annotations

import pytest

from reconcile.fs.hook_files import block, block_of, in_front, with_block, without_block

OURS = block("echo ours")
SCRIPTS = (
    b"#!/bin/sh\necho mine\n",
    b"#!/usr/bin/env bash\necho mine",
    b"#! /usr/bin/env -S sh -e\n",
    b"#!/usr/local/bin/zsh -f\n\n\n",
    b"echo no first line\n",
    b"",
)


@pytest.mark.parametrize("content", SCRIPTS)
def test_a_block_in_a_shell_script_is_removed_byte_for_byte(content: bytes) -> None:
    changed = with_block(content, OURS)
    assert changed is not None
    assert block_of(changed) == OURS
    assert changed.startswith(content.partition(b"\n")[0] if content.startswith(b"#!") else OURS)
    assert without_block(changed) == content


def test_an_earlier_block_is_replaced() -> None:
    once = with_block(SCRIPTS[0], block("echo before"))
    assert once is not None
    assert with_block(once, OURS) == with_block(SCRIPTS[0], OURS)
    assert in_front(in_front(b"*.png binary", OURS), OURS) == OURS + b"*.png binary"


@pytest.mark.parametrize("content", [b"#!/usr/bin/env python3\n", b"#!/bin/sh", b"\x7fELF\x02\xff", b"#!/bin/fish\n"])
def test_another_program_gets_no_block(content: bytes) -> None:
    assert with_block(content, OURS) is None


def test_half_a_block_is_none() -> None:
    assert without_block(b"# reconcile: begin\necho\n") is None
    assert block_of(b"# reconcile: end\n# reconcile: begin\n") is None
