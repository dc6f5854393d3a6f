"""What is read without a parser says what the parser would say."""

from __future__ import annotations

from itertools import product

import pytest

from tests.cli.modules import module

NAMES, read_plainly = (getattr(module("arguments"), name) for name in ("NAMES", "read_plainly"))
main, options_of = module("app").main, module("options").options_of
WORDS = (
    "-n",
    "--check",
    "--quiet",
    "-v",
    "-w",
    "--store",
    "--format",
    "jp",
    "x y",
    "",
    "--json",
    "status",
    "--",
    "-wx",
    "--store=x",
)


def parsed(words: list[str]) -> dict[str, object]:
    """What the parser makes of words."""
    with main.make_context("reconcile", words) as context:
        assert not context.args  # a command's name
        return said(options_of(context))


def said(options: object) -> dict[str, object]:
    return {name: getattr(options, name) for name in NAMES}


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_it_reads_what_the_parser_reads(count: int) -> None:
    read = 0
    for words in product(WORDS, repeat=count):
        plain = read_plainly(words)
        if plain is not None:
            assert said(plain) == parsed(list(words)), words
            read += 1
    assert read


@pytest.mark.parametrize(
    "words", [["--json"], ["-y"], ["status"], ["-w"], ["-w", "-n"], ["--", "x"], ["-h"], ["--color"]]
)
def test_what_is_less_usual_is_left_to_the_parser(words: list[str]) -> None:
    assert read_plainly(words) is None
