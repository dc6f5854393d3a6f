"""The blocks of lines in hooks and attributes: found, replaced, and removed byte for byte."""

from __future__ import annotations

import pytest

from reconcile.fs.hook_files import block, block_of, in_front, with_block, without_block

LINE = '( command -v reconcile || exit 0; exec reconcile hooks run post-merge "$@" ) || :'
OURS = block("# Written by `reconcile hooks install`; and so on", LINE)
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
    once = with_block(SCRIPTS[0], block(LINE.replace("command", "type")))
    assert once is not None
    assert with_block(once, OURS) == with_block(SCRIPTS[0], OURS)
    assert in_front(in_front(b"*.png binary", OURS), OURS) == OURS + b"*.png binary"


@pytest.mark.parametrize("content", [b"#!/usr/bin/env python3\n", b"#!/bin/sh", b"\x7fELF\x02\xff", b"#!/bin/fish\n"])
def test_another_program_gets_no_block(content: bytes) -> None:
    assert with_block(content, OURS) is None


BARE = b"#!/bin/sh\necho mine\n"
BEGIN, END = OURS.splitlines(keepends=True)[0], OURS.splitlines(keepends=True)[-1]


@pytest.mark.parametrize(
    "damaged",
    [
        OURS.replace(END, b""),
        OURS.replace(BEGIN, b""),
        OURS + OURS,
        OURS.replace(END, b"") + OURS,
        OURS + OURS.replace(END, END[:-1] + b"\r\n"),
    ],
)
def test_a_damaged_block_is_found_and_removed(damaged: bytes) -> None:
    content = BARE.replace(b"echo", damaged + b"echo")
    assert block_of(content) == b""
    assert without_block(content) == BARE
    assert with_block(content, OURS) == with_block(BARE, OURS)


def test_lines_of_the_user_among_ours_stay() -> None:
    content = OURS.replace(END, b"echo more\n" + END) + b"echo mine\n"
    assert block_of(content) == b""
    assert without_block(content) == b"echo more\necho mine\n"


def test_lines_like_ours_without_a_mark_stay() -> None:
    assert without_block(LINE.encode()) is None
    assert block_of(BARE) is None


@pytest.mark.parametrize("text", [b"# reconcile: begin\n", b"# reconcile: end\n", BEGIN + b"echo 1\n" + END])
def test_a_mark_in_the_users_own_text_stays(text: bytes) -> None:
    assert without_block(text) is None
    for content in (text + OURS, OURS + text):
        assert block_of(content) == OURS
        assert without_block(content) == text
        assert in_front(content, OURS) == OURS + text


@pytest.mark.parametrize("content", ["# 🐶\necho mine\n".encode(), b"#!/usr/bin/env node\necho \xff\n", b"\xff\0\n"])
def test_a_script_that_a_shell_runs_gets_a_block(content: bytes) -> None:
    changed = with_block(content, OURS, is_for_shell=True)
    assert changed is not None
    assert (block_of(changed), without_block(changed)) == (OURS, content)
    assert (with_block(content, OURS) is None) == (b"\xff" in content)
