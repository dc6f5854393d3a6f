"""The help: commands in groups, a command's own options first, and only options that mean something to it."""

from __future__ import annotations

import importlib.metadata
import inspect
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import click
import pytest

from tests.cli.modules import module
from tests.support.documents import PROGRAM, commands, own_options

if TYPE_CHECKING:
    from tests.conftest import Run

PROJECT = Path(__file__).parents[2]
TOPICS = module("topics").TOPICS
APP, NAMES = module("app"), module("arguments").NAMES
EVERYWHERE, spelling = module("options").EVERYWHERE, module("options").spelling
WIDEST = 60
RENAMING = (
    "a title is in metadata.json: edit its key `title` on one side, or run `jp conversation edit ID --title TITLE`; "
    "the next run renames the directories"
)
NO_DIRECTORIES = "name the directories that contain conversations/, not that directory itself"
VALUES = {
    "workspace": ["DIR"],
    "store": ["DIR"],
    "format": ["plain"],
    "layout": ["flat"],
    "only": ["ID"],
    "below": ["ID"],
    "out": ["FILE"],
    "prefer": ["store"],
    "color": ["never"],
}


def lines_of(result: str, section: str) -> list[str]:
    """The lines of a section of a help text."""
    found = re.search(rf"^{section}:\n((?:  .*\n|\n(?=  ))*)", result, re.MULTILINE)
    assert found, f"no section {section} in\n{result}"
    return found[1].splitlines()


def options_in(lines: list[str]) -> list[str]:
    return [found[1] for line in lines if (found := re.match(r"  (?:-\w, )?(--[\w-]+)", line))]


def test_the_programs_help_has_every_command_in_a_group_on_one_line(run: Run) -> None:
    printed = run("--help").output
    listed = [line for group in APP.GROUPS for line in lines_of(printed, group)]
    assert list(APP.GROUPS) == ["Daily", "Look", "Organise", "Recover", "Maintain", "For git"]
    assert [line.split(maxsplit=1) for line in listed] == [[name, each.summary] for name, each in APP.COMMANDS.items()]


@pytest.mark.parametrize("name", sorted(commands()))
def test_a_summary_is_the_first_sentence_of_the_commands_help_and_short(name: str) -> None:
    summary = APP.COMMANDS[name].summary
    assert (commands()[name].help or "").partition("\n\n")[0].strip() == summary
    assert len(summary) <= WIDEST
    assert summary.endswith(".")


@pytest.mark.parametrize("name", sorted(commands()))
def test_a_commands_help(name: str, run: Run) -> None:
    command = commands()[name]
    printed = run(name, "--help").output
    own = [option.opts[-1] for option in own_options(command)]
    if own:
        assert options_in(lines_of(printed, "Options")) == own
    shared = options_in(lines_of(printed, "Shared options" if own else "Options"))
    assert not {spelling(each) for each in EVERYWHERE} & set(shared)
    assert shared[-2:] == ["--help-all", "--help"]
    examples = [line.strip() for line in lines_of(printed, "Examples") if re.match(r" {2}\S", line)]
    assert len(examples) >= 2
    assert all(example.startswith("reconcile") for example in examples)
    assert any(example.startswith(f"reconcile {name}") for example in examples)
    assert max(map(len, printed.splitlines())) <= 80
    in_full = run(name, "--help-all").output
    missing = {line for line in lines_of(printed, "Options") if "--" in line} - set(in_full.splitlines())
    assert {re.split(r" {2,}", line.strip())[0] for line in missing} <= {
        re.split(r" {2,}", line.strip())[0] for line in in_full.splitlines()
    }
    assert set(options_in(in_full.splitlines())) >= {*own, *shared, *(spelling(each) for each in EVERYWHERE)}


@pytest.mark.parametrize("name", sorted(commands()))
def test_an_option_that_means_nothing_to_a_command_is_refused(name: str, run: Run) -> None:
    """Before and after the command's name; every other shared option is in its help."""
    command = commands()[name]
    shown = set(options_in(run(name, "--help-all").output.splitlines()))
    required = [each.type for each in command.params if isinstance(each, click.Argument) and each.required]
    arguments = [each.choices[0] if isinstance(each, click.Choice) else "x" for each in required]
    refused = [each for each in NAMES if spelling(each) not in shown]
    for option in refused:
        words = [spelling(option), *VALUES.get(option, [])]
        for line in ([name, *arguments, *words], [*words, name, *arguments]):
            result = run(*line)
            assert result.exit_code == 2, line
            as_json = option == "json"
            assert f"reconcile {name}: {spelling(option)} can't be used here" in result.stderr or as_json
            assert "hint" in result.stderr


@pytest.mark.parametrize(
    ("line", "needed"),
    [
        (["doctor", "--out", "plan.json"], "--repair or --quarantine or --mend"),
        (["doctor", "--yes"], "--repair or --quarantine or --mend"),
        (["checkouts", "--dry-run"], "--forget"),
        (["vault", "-n"], "--prune or --purge"),
    ],
)
def test_an_option_that_another_gives_a_meaning_is_refused_without_that(line: list[str], needed: str, run: Run) -> None:
    result = run(*line)
    assert result.exit_code == 2
    assert f"needs {needed}" in result.stderr


def test_wrong_usage_is_json_where_json_is_asked_for(run: Run) -> None:
    for line in (["--json", "log", "--out", "x"], ["log", "--out", "x", "--json"], ["log", "--bogus", "--json"]):
        result = run(*line)
        assert result.exit_code == 2
        assert json.loads(result.stderr)["hint"]
    assert json.loads(run("--bogus", "--json").stderr)["hint"] == "reconcile --help"


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        (["statsu"], "`reconcile status`"),
        (["stat"], "`reconcile status`"),
        (["recove"], "`reconcile recover`"),
        (["remove"], "`reconcile rm`"),
        (["xyzzy"], None),
        (["--dry"], "--dry-run"),
        (["--verbos"], "--verbose"),
        (["undo", "--dry"], "--dry-run"),
        (["rm", "--cascde", "x"], "--cascade"),
        (["log", "--dry"], None),
        (["read", "x"], "`reconcile show`"),
        (["version"], "`reconcile --version`"),
        (["Ls"], "`reconcile ls`"),
        (["rollback"], "`reconcile undo`"),
        (["Fetch"], "`reconcile pull`"),
        (["dry-run"], "`reconcile --dry-run`"),
        (["--take", "store"], "`reconcile resolve ID --take SIDE`"),
        (["undo", "--list"], "`reconcile log`"),
        (["restore", "--list"], "`reconcile vault`"),
        (["set-parent", "ID", "--root"], "`reconcile set-parent ID --none`"),
        (["recover", "-from", "x"], "--from"),
        (["recover", "--form", "x"], "--from or --format"),
        (["conflict"], "`reconcile help conflict`"),
        (["Tutorial"], "`reconcile help tutorial`"),
        (["recover", "-from=x"], "--from"),
        (["rm", "-cascade", "x"], "--cascade"),
        (["-verbose"], "--verbose"),
        (["-zx"], None),
        (["--zzz"], None),
        (["hooks", "instal"], "install"),
        (["hooks", "zzz"], None),
        (["remote", "lst"], "ls"),
        (["service", "remov"], "remove"),
        (["--prefer", "storr"], "store"),
    ],
)
def test_a_mistyped_word_is_answered_with_what_may_be_meant(line: list[str], meant: str | None, run: Run) -> None:
    result = run(*line)
    assert result.exit_code == 2
    hint = result.stderr.splitlines()[-1].strip()
    assert hint == (f"hint: did you mean {meant}?" if meant else hint)
    assert ("did you mean" in hint) == (meant is not None)


def test_the_former_name_of_an_option_works_and_is_not_shown(run: Run) -> None:
    assert "--allow-bulk-removal" in run("rm", "--help").output
    assert "--accept" not in run("rm", "--help-all").output
    assert "--allow-bulk-removal can't be used here" in run("log", "--accept", "bulk").stderr
    assert run("--accept", "bulk", "--help").exit_code == 0


def test_every_documented_option_has_words() -> None:
    for command in (PROGRAM, *commands().values()):
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert option.help, f"{command.name} {option.opts}"
                assert inspect.cleandoc(option.help).endswith("."), f"{command.name} {option.opts}"


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("status -n", "leave it out; `reconcile --dry-run` shows what a run would do"),
        ("config set x", "change a setting: reconcile config NAME VALUE"),
        ("checkouts forget DIR", "to forget a checkout: reconcile checkouts --forget DIR"),
        ("log one two", "reconcile log --help"),
        ("hooks", "reconcile hooks --help"),
        ("resolve", "list what needs a decision: reconcile status"),
        ("resolve 1", "see both versions first: reconcile diff ID"),
        ("project", "list the conversations that are not published: reconcile status -v"),
        (
            "rename x y",
            RENAMING,
        ),
        ("archive x", "JP does that, or you in the store, and the next run follows; how: reconcile help formats"),
        ("help unistall", "did you mean `reconcile help uninstall`?"),
        ("--workspace /nowhere/at/all", "check the path"),
        ("--store /nowhere/at/all", "check the path; for a new store: mkdir -p /nowhere/at/all"),
        (
            "--format plain -w /nowhere/all -s /",
            "check the path; for a new workspace: mkdir -p /nowhere/all/conversations, then run again",
        ),
        (
            "--format plain -w /nowhere/all -s /nowhere/store",
            "check the paths; for new ones: mkdir -p /nowhere/all/conversations /nowhere/store, then run again",
        ),
        (
            "--format plain -w /usr -s /nowhere/store",
            "check the paths; for new ones: mkdir -p /usr/conversations /nowhere/store, then run again",
        ),
        (
            "--format plain -w /nowhere",
            "name both sides: --workspace DIR --store DIR; for a new workspace: mkdir -p /nowhere/conversations",
        ),
        (
            "--format plain -w /usr/lib -s /usr/bin",
            f"{NO_DIRECTORIES}; for a new workspace: mkdir -p /usr/lib/conversations",
        ),
    ],
)
def test_wrong_usage_is_one_line_and_names_the_command_that_was_meant(line: str, hint: str, run: Run) -> None:
    result = run(*line.split())
    error, told, *more = result.stderr.splitlines()
    assert (result.exit_code, more, told) == (2, [], f"hint: {hint}")
    assert error.startswith("error: ")
    assert "Got unexpected" not in error
    assert "\\x0a" not in error


@pytest.mark.parametrize("command", ["", "status", "hooks install"])
def test_help_is_a_word_too(command: str, run: Run) -> None:
    asked = run("help", *command.split())
    assert (asked.exit_code, asked.stdout) == (0, run(*command.split(), "--help").stdout)


def test_the_help_of_an_unknown_word_lists_the_topics(run: Run) -> None:
    error, *hints = run("help", "nothing").stderr.splitlines()
    assert error == "error: there is no command or topic 'nothing'"
    assert hints == ["hint: reconcile --help", f"hint: the topics: {', '.join(TOPICS)}"]


def test_the_programs_help_lists_the_topics(run: Run) -> None:
    listed = lines_of(run("--help").output, "Topics, for reconcile help TOPIC")
    assert [line.split(maxsplit=1) for line in listed] == [[name, each.summary] for name, each in TOPICS.items()]
    assert not TOPICS.keys() & APP.COMMANDS.keys()
    assert all(len(each.summary) <= WIDEST and each.summary.endswith(".") for each in TOPICS.values())


@pytest.mark.parametrize("name", TOPICS)
def test_a_topic_is_a_page_as_text(name: str, run: Run) -> None:
    result = run("help", name)
    assert result.exit_code == 0
    page, _, anchor = TOPICS[name].page.partition("#")
    text = (PROJECT / "docs" / page).read_text()
    lines = result.stdout.splitlines()
    assert lines[0].strip() == (anchor.title() if anchor else text.partition("\n")[0].removeprefix("# "))
    assert len(lines) > 20
    assert max(map(len, lines)) <= 80
    assert "…" not in result.stdout or "…" in text, "nothing is cut"
    assert not re.search(r"\]\(|^#|^\||^```|<!--", result.stdout, re.MULTILINE)


@pytest.mark.parametrize("columns", ["\u00b2", "-1", "wide"])
def test_a_page_is_printed_whatever_columns_says(run: Run, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    plain = run("help", "safety")
    monkeypatch.setenv("COLUMNS", columns)
    shown = run("help", "safety")
    assert (shown.exit_code, shown.stdout) == (0, plain.stdout), shown.output


def test_a_topic_takes_the_options_for_colour_and_pager_before_it(run: Run) -> None:
    coloured = run("--color", "always", "--no-pager", "help", "uninstall").stdout
    assert "\x1b[1m1. Stop what runs\x1b[0m" in coloured
    plain = [line.rstrip() for line in click.unstyle(coloured).splitlines()]
    assert plain == run("help", "uninstall").stdout.splitlines()


def test_in_a_topic_no_command_is_broken(run: Run) -> None:
    printed = run("help", "uninstall").stdout
    assert all(line.count("`") % 2 == 0 for line in printed.splitlines() if not line.startswith(" "))


def test_a_topic_names_the_topics_that_it_links_to(run: Run) -> None:
    assert lines_of(run("help", "secrets").stdout.replace("See also\n", "See also:\n"), "See also") == [
        "  reconcile help safety",
        "  reconcile help several-machines",
    ]


def test_a_page_that_is_not_installed_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module("topics"), "_path", lambda _page: None)
    result = run("help", "safety")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "error: the page safety.md is not installed",
        "hint: the same page is docs/safety.md in the repository",
    ]


def test_the_pages_of_an_installed_program_are_found_by_its_list_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = module("topics")
    installed = tmp_path / topics.INSTALLED / "safety.md"
    installed.parent.mkdir(parents=True)
    installed.write_text("# Safety\n")
    monkeypatch.setattr(topics, "__file__", str(tmp_path / "lib" / "reconcile_cli" / "topics.py"))
    listed = importlib.metadata.PackagePath(f"../../{topics.INSTALLED}/safety.md")
    distribution = SimpleNamespace(locate_file=lambda _path: installed)
    monkeypatch.setattr(listed, "dist", distribution, raising=False)
    monkeypatch.setattr(importlib.metadata, "files", lambda _name: [listed])
    assert topics._path("safety.md") == str(installed)
    assert topics._path("formats.md") is None


def test_a_dry_run_of_diff_has_no_plan_and_says_what_it_leaves(run: Run) -> None:
    (line,) = [each for each in run("diff", "--help").stdout.splitlines() if "--dry-run" in each and "-n" in each]
    assert "plan" not in line
    assert "Leave the notice of a conflict unread." in line


@pytest.mark.parametrize("columns", [60, 80])
def test_no_line_of_a_help_ends_within_a_command(columns: int) -> None:
    for name, command in commands().items():
        context = click.Context(command, info_name=f"reconcile {name}", terminal_width=columns)
        for line in command.get_help(context).splitlines():
            assert line.count("`") % 2 == 0, (name, line)


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("in_full", [False, True])
def test_no_help_is_wider_than_the_terminal(columns: int, in_full: bool) -> None:
    """A long example is continued with a backslash, as any suggested command."""
    for name, command in commands().items():
        context = click.Context(command, info_name=f"reconcile {name}", terminal_width=columns)
        context.meta["reconcile.in_full"] = in_full
        printed = command.get_help(context)
        assert max(map(len, printed.splitlines())) <= columns, name
        examples = printed.partition("\nExamples:\n")[2].replace(" \\\n    ", " ")
        assert all(f"\n  {line}\n" in f"\n{examples}" for line, _ in getattr(command, "examples", ())), name


PAGE = """# A page

![Two trees](trees.svg)

```sh
reconcile recover --from ../feature --dry-run    # show what can be restored; write nothing
reconcile checkouts     # list
# bring back what was deleted; at a terminal, it asks once for each run
reconcile recover
```

```console
$ perl -pi -e 's/Release notes/Release notes (project)/' .jp/conversations/*/metadata.json
Done: 1 updated in the store, 1 renamed on both sides. (run 20260515-100000-00)
```
"""


TABLE = """# A table

A service does that ([more](service.md)), also [below](#below), or a topic ([where](safety.md)).

| Directory | It has | If you delete it |
| --- | --- | --- |
| `~/.local/share/reconcile/stores` | the stores of all formats but one | what only the store has is lost |
"""


def test_a_page_has_whole_paths_in_tables_and_no_word_of_a_link_that_leads_nowhere() -> None:
    style = module("output.text").Style(colored=False, columns=80)
    lines = list(module("output.page_text").page_lines(TABLE, style, 70, "howto", {"howto/safety.md": "safety"}))
    assert lines[2:4] == ["A service does that, also below, or a topic (`reconcile help safety`).", ""]
    assert lines[4].split() == ["Directory", "It", "has", "If", "you", "delete", "it"]
    assert lines[6].startswith(" `~/.local/share/reconcile/stores`  the stores")
    assert max(map(len, lines)) <= 70
    narrow = list(module("output.page_text").page_lines(TABLE, style, 44, "howto", {}))
    assert max(map(len, narrow)) <= 44


def test_the_code_of_a_page_can_be_pasted() -> None:
    style = module("output.text").Style(colored=False, columns=60)
    assert list(module("output.page_text").page_lines(PAGE, style, 60, "", {})) == [
        f"{'A page':>33}",
        "",
        "Picture: Two trees",
        "",
        "  # show what can be restored; write nothing",
        "  reconcile recover --from ../feature --dry-run",
        "  reconcile checkouts     # list",
        "  # bring back what was deleted; at a terminal, it asks once",
        "  # for each run",
        "  reconcile recover",
        "",
        "  $ perl -pi -e 's/Release notes/Release notes (project)/' \\",
        "    .jp/conversations/*/metadata.json",
        "  Done: 1 updated in the store, 1 renamed on both sides.",
        "(run 20260515-100000-00)",
    ]
