"""The documentation says what the program does: its generated parts, its tables, and where its links lead."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from reconcile import config
from reconcile.model.plan import Kind
from reconcile.model.reasons import CASES, Reason
from reconcile.serialization.plan_file import plan_schema
from tests.support.documents import (
    DOCS,
    PROJECT,
    SCHEMA,
    Documents,
    commands,
    exit_codes,
    options_of,
    own_options,
    reason_groups,
    shared,
)
from tests.support.manual import SHARE
from tests.support.pages import anchors, pages, prose, text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

README = PROJECT / "README.md"
REMAKE = "out of date: run `.venv/bin/python -m tests.support.documents`"

_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")


def links(path: Path) -> Iterator[str]:
    for found in _LINK.finditer(prose(path)):
        if not re.match(r"[a-z]+:", found["target"]):
            yield unquote(found["target"])


def rows(path: Path, heading: str) -> list[list[str]]:
    """The rows of the tables below a heading."""
    below = text(path).split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = re.findall(r"^\| (.*) \|$", below, re.MULTILINE)
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)] for line in lines]


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Documents]:
    """The documents, and what their programs print, which is asked for once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("documents")))
        patch.setattr("tempfile.tempdir", None)
        yield Documents()


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", [*Documents().paths(), SCHEMA], ids=lambda path: str(path.relative_to(DOCS.parent)))
def test_generated_parts_are_up_to_date(path: Path, documents: Documents) -> None:
    assert text(path) == documents.wanted(path), f"{path.name} is {REMAKE}"


def test_manual_pages_and_completion_files_are_up_to_date() -> None:
    files = shared()
    assert {path for path in (PROJECT / SHARE).rglob("*") if path.is_file()} == files.keys(), f"share/ is {REMAKE}"
    assert [path.name for path, wanted in files.items() if text(path) != wanted] == [], f"these are {REMAKE}"


def test_the_readme_shows_a_plan_and_a_tree() -> None:
    assert re.findall(r"^\$ (.*)$", text(README), re.MULTILINE) == ["reconcile --dry-run", "reconcile ls --tree"]


def test_the_two_commands_of_set_up_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text(PROJECT / "Makefile"), re.MULTILINE))
    named = set(re.findall(r"^make ([a-z-]+)", "\n".join(text(page) for page in pages()), re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


@pytest.mark.parametrize("name", sorted(commands()))
def test_commands_and_their_options_are_documented(name: str) -> None:
    page = text(DOCS / "commands.md")
    assert re.search(rf"^\| \[`reconcile {name}[` ]", page, re.MULTILINE), f"no row for {name}"
    section = page.split(f"\n## reconcile {name}\n", 1)[1].split("\n## ", 1)[0]
    for option in own_options(commands()[name]):
        assert option.help, f"{name} {option.opts[-1]} has no help"
        assert all(f"`{spelling}`" in section for spelling in option.opts), f"{name}: {option.opts}"


def test_common_options_are_documented() -> None:
    first_cells = " ".join(row[0] for row in rows(DOCS / "commands.md", "Common options"))
    documented = set(re.findall(r"`(-.*?)`", first_cells))
    for command in commands().values():
        own = {spelling for option in own_options(command) for spelling in option.opts}
        assert {spelling for option in options_of(command) for spelling in option.opts} - own <= documented


def test_exit_codes_are_documented() -> None:
    documented = {int(row[0]) for row in rows(DOCS / "commands.md", "Exit codes") if row[0].isdigit()}
    assert documented == set(exit_codes().values())


def test_settings_and_variables_are_documented() -> None:
    keys = set(config.Settings._fields)
    documented = [row[0].strip("`") for row in rows(DOCS / "commands.md", "Configuration")]
    assert set(documented[2:]) == keys
    variables = "".join(row[0] for row in rows(DOCS / "commands.md", "Environment"))
    assert {name for key in keys if f"`{(name := config.PREFIX + key.upper())}`" not in variables} == set()


def test_every_reason_has_its_row() -> None:
    assert [reason for group in reason_groups().values() for reason in group] == list(Reason)
    page = text(DOCS / "reasons.md")
    assert [group for group in reason_groups() if f"generated: reasons {group} -->" not in page] == []
    explained = {row[0].strip("`") for row in rows(DOCS / "reasons.md", "Why something is blocked")}
    held = {reason.value for reason in reason_groups()["why something is blocked"]}
    ways_out = text(DOCS / "reasons.md").split("What to do about each:")[1].split("\n## ")[0]
    assert {keyword for keyword in held if f"| `{keyword}` |" not in ways_out} == set()
    assert held <= explained


def test_every_case_has_a_result_and_a_scenario() -> None:
    found = [row for row in rows_of_cases() if row[3] in ("", "?") or "(../fixtures/" not in row[4]]
    assert len(rows_of_cases()) == len(CASES)
    assert found == []


def rows_of_cases() -> list[list[str]]:
    lines = re.findall(r"^\| (\d+ \|.*) \|$", text(DOCS / "cases.md"), re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines]


def test_every_key_and_kind_of_a_plan_is_documented() -> None:
    schema = plan_schema()
    defined = schema["$defs"]
    assert isinstance(defined, dict)
    keys = {*schema["properties"], *defined["ActionModel"]["properties"]} - {"format", "conversation", "title"}  # type: ignore[misc]
    page = text(DOCS / "json.md")
    assert sorted(name for name in {*keys, *(kind.value for kind in Kind)} if f"`{name}`" not in page) == []


def test_the_index_lists_every_page() -> None:
    index = DOCS / "index.md"
    named = {index, *((DOCS / link.partition("#")[0]).resolve() for link in links(index))}
    assert [page.relative_to(PROJECT).as_posix() for page in pages() if page not in named] == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.is_relative_to(PROJECT), f"{link} leads out of the project"
        assert target.exists(), f"{link} leads nowhere"
        if anchor:
            assert anchor in anchors(target), f"{link}: no such heading"
