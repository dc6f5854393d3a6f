"""Every rule, page or heading that code, tests, fixtures and documentation cite is in the repository."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.support.documents import DOCS, PROJECT
from tests.support.pages import anchors, text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DESIGN = DOCS / "design"
_RECORDS = ("CHANGELOG.md", "tests/docs/test_citations.py")
"""What is no citation: the past, and the examples below."""
_READ = (".py", ".md", ".scenario", ".schema.json", ".toml", ".sh", ".yml", "Makefile", "run")

_PAGE = re.compile(r"(?<![\w./-])(?P<path>(?:[\w-]+/)*[\w-]+\.md)(?:#(?P<anchor>[\w-]+)(?![\w{-]))?")
_OURS = re.compile(r"docs/|fixtures/\w*\.md|DESIGN\.md|(?:formats/)?(?:jp|leslie|claudesidian|claude-code)\.md")
_BARE = re.compile(r"\bDESIGN\b|§ ?\d|\b[Ss]ections? \d|\b[Ii]ssues? \d|\b[Rr](?:ow|ule)s? \d|(?<![\w)\]])\(\d\.\d\)")
"""A section, row or rule without its page, or an issue. In `docs/design`, where the rules are, a number is enough."""


class Citation(NamedTuple):
    """Where something is cited, and what."""

    where: str
    path: str
    anchor: str | None


def citations_in(name: str, content: str) -> Iterator[Citation]:
    """The pages that a file cites from the project's root; links between pages have a test of their own."""
    for number, line in enumerate(content.splitlines(), 1):
        for found in _PAGE.finditer(line):
            is_link = name.endswith(".md") and line[: found.start()].endswith("](")
            if _OURS.match(found["path"]) and not is_link:
                yield Citation(f"{name}:{number}", found["path"], found["anchor"])


def bare_in(name: str, content: str) -> Iterator[str]:
    """The lines that cite by a number alone."""
    for number, line in enumerate(content.splitlines(), 1):
        if _BARE.search(line):
            yield f"{name}:{number}: {line.strip()}"


def problem_of(citation: Citation) -> str | None:
    """Say what is wrong with a citation."""
    page = PROJECT / citation.path
    if not page.is_file():
        return f"{citation.where}: {citation.path} isn't there"
    if citation.anchor is not None and citation.anchor not in anchors(page):
        return f"{citation.where}: {citation.path} has no #{citation.anchor}"
    return None


def files() -> list[Path]:
    """The texts that git knows or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("git can't list the project's files here")
    names = {name for name in listed.stdout.splitlines() if name.endswith(_READ) and name not in _RECORDS}
    return sorted(path for name in names if (path := PROJECT / name).is_file())


def name_of(path: Path) -> str:
    return path.relative_to(PROJECT).as_posix()


def test_every_citation_leads_to_a_page_and_a_heading() -> None:
    found = [each for path in files() for each in citations_in(name_of(path), text(path))]
    assert len(found) > 100, "the pattern finds the citations"
    problems = [problem for each in found if (problem := problem_of(each)) is not None]
    assert not problems, "\n".join(problems)


def test_no_rule_is_cited_by_its_number_alone() -> None:
    outside = (path for path in files() if DESIGN not in path.parents)
    lines = [line for path in outside for line in bare_in(name_of(path), text(path))]
    assert not lines, "\n".join(lines)


def test_rules_have_one_numbering() -> None:
    numbers = [
        int(number)
        for page in sorted(DESIGN.glob("*.md"))
        for number in re.findall(r"^### Rule (\d+)$", text(page), re.MULTILINE)
    ]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))


def test_the_index_names_every_page() -> None:
    pages = [page for page in DESIGN.rglob("*.md") if page != DESIGN / "README.md"]
    indexes = {page: page.parent.parent if page.name == "README.md" else page.parent for page in pages}
    lost = [
        page for page, at in indexes.items() if f"({page.relative_to(at).as_posix()})" not in text(at / "README.md")
    ]
    assert sorted(map(name_of, lost)) == []


@pytest.mark.parametrize(
    ("line", "cites"),
    [
        ("as docs/cases.md#the-direction-of-streams says", [("docs/cases.md", "the-direction-of-streams")]),
        ("(formats/jp.md 1.6, docs/nowhere.md)", [("formats/jp.md", None), ("docs/nowhere.md", None)]),
        ("(DESIGN.md 4)", [("DESIGN.md", None)]),
        ("shopping.md, a note of a vault", []),
        ("vault/docs/notes.md", []),
    ],
)
def test_the_pattern_finds_what_is_cited(line: str, cites: list[tuple[str, str | None]]) -> None:
    found = list(citations_in("a.py", line))
    assert [(each.path, each.anchor) for each in found] == cites


@pytest.mark.parametrize(
    ("line", "bare"),
    [
        ("the three-way question (section 3, rule 2)", True),
        ("rows 2, 7 and 8", True),
        ("as asked for (issue 3)", True),
        ("the program takes it for left behind (7.4)", True),
        ("time.sleep(0.5), round(1.5)", False),
        ("DESIGN.md 3.3 makes it a root", True),
        ("see docs/design/placement.md#rule-2", False),
        ("a rule of the linter; two rows", False),
    ],
)
def test_the_pattern_finds_bare_numbers(line: str, *, bare: bool) -> None:
    assert bool(list(bare_in("a.py", line))) is bare


@pytest.mark.parametrize(
    ("path", "anchor", "words"),
    [
        ("docs/cases.md", "the-direction-of-streams", None),
        ("docs/cases.md", "no-such-heading", "x:1: docs/cases.md has no #no-such-heading"),
        ("docs/nowhere.md", None, "x:1: docs/nowhere.md isn't there"),
    ],
)
def test_what_leads_nowhere_is_found(path: str, anchor: str | None, words: str | None) -> None:
    assert problem_of(Citation("x:1", path, anchor)) == words
