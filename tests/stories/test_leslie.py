"""`doctor` and `ls` of Leslie: what is wrong in each folder of the corpus and nothing else, and its threads."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.formats.leslie import CORPUS, Leslie, corpus_project

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus at {CORPUS}; set RECONCILE_CORPUS")


def contents(path: Path) -> dict[str, tuple[bytes, int]]:
    return {str(each): (each.read_bytes(), each.stat().st_mtime_ns) for each in path.rglob("*") if each.is_file()}


def findings(run: Run, project: Path, *args: str, code: int) -> list[dict[str, Any]]:
    before = contents(project)
    result = run("doctor", "-w", project, "--json", *args)
    assert result.exit_code == code, result.output
    assert contents(project) == before, "something was written"
    found: list[dict[str, Any]] = json.loads(result.stdout)["findings"]
    return found


@needs_corpus
@pytest.mark.parametrize("scenario", ["small-tree", "references", "run-events", "concurrent-spawn"])
def test_nothing_is_wrong(run: Run, tmp_path: Path, scenario: str) -> None:
    project = corpus_project(scenario, tmp_path)
    assert findings(run, project, code=0) == []
    assert run("doctor", "-w", project, "--format", "leslie").stdout.endswith("\n\nNo problems found.\n")


def below_header(shown: str) -> str:
    """What doctor prints after what it has checked."""
    return shown.partition("\n\n")[2]


@needs_corpus
def test_an_objective_lags_behind_a_transfer(run: Run, tmp_path: Path) -> None:
    result = run("doctor", "-w", corpus_project("lifecycle", tmp_path))
    assert (result.exit_code, below_header(result.stdout)) == (
        0,
        (
            "lag (1)\n"
            "  Leslie updates the objective at its next change, not after a transfer.\n"
            "  note: objectives.json: obj-b8495837: status completed, but by its threads it is active\n"
            "\n"
            "No problems found; 1 note.\n"
        ),
    )


@needs_corpus
def test_a_lost_operation(run: Run, tmp_path: Path) -> None:
    (found,) = findings(run, corpus_project("recovered-from-bak", tmp_path), code=4)
    assert (found["kind"], found["severity"], found["place"]) == ("F3", "warning", "threads/thread-ddd68a6a")
    assert found["found"] == ("no record of the thread, but an empty directory and the objective obj-3b10625e lists it")
    assert (found["repairable"], found["on_request"]) == (False, True)


@needs_corpus
def test_both_files_torn(run: Run, tmp_path: Path) -> None:
    project = corpus_project("clobbered-bak", tmp_path)
    result = run("doctor", "-w", project)
    assert (result.exit_code, below_header(result.stdout)) == (
        4,
        (
            "F2 (1)\n"
            "  Every Leslie command fails; the rest of the file can be recovered.\n"
            "  error: thread_relations.json: a truncated file, which ends inside a value in line 51 "
            "(expected a JSON object); thread_relations.json.bak is damaged too\n"
            "    run no Leslie command; on request this is recovered: the records of thread-6fefc192, thread-3777b6e5, "
            "thread-3fc3f6a6; no operation; only the id of thread-ddd68a6a\n"
            f"    reconcile doctor --mend F2:thread_relations.json --workspace {project}\n"
            "\n"
            "1 error.\n"
        ),
    )
    result = run("ls", "--tree", "-w", project)
    assert (result.exit_code, result.stderr) == (
        1,
        (
            "error: .leslie/thread_relations.json: a truncated file, which ends inside a value in "
            "line 51 (expected a JSON object)\n"
            f"hint: see what can be recovered: reconcile doctor --format leslie --workspace {project}\n"
        ),
    )


@needs_corpus
def test_a_clone_has_no_empty_directories(run: Run, tmp_path: Path) -> None:
    project = corpus_project("small-tree", tmp_path)
    shutil.rmtree(project / ".leslie" / "threads" / "thread-ddd68a6a")
    (found,) = findings(run, project, code=0)
    assert (found["kind"], found["severity"], found["repairable"]) == ("F4", "note", True)


@needs_corpus
def test_the_tree(run: Run, tmp_path: Path) -> None:
    project = corpus_project("small-tree", tmp_path)
    shown = run("ls", "--tree", "--format", "leslie", "-w", project).stdout
    assert shown == (
        "Title                                 Id               Status  Objective  Depends on\n"
        "Design API                            thread-6fefc192  active  Build API\n"
        "├── Write tests                       thread-3777b6e5  active  Build API  thread-6fefc192\n"
        "│   └── Fix flaky test                thread-ddd68a6a  active  Build API  "
        "thread-3777b6e5 (thread-6fefc192)\n"
        '└── Schreibe Übersicht — "docs" 文档  thread-3fc3f6a6  active  Build API  thread-6fefc192\n'
    )
    assert run("ls", "--tree", "-w", project / ".leslie" / "threads").stdout == shown


@needs_corpus
def test_references_are_listed(run: Run, tmp_path: Path) -> None:
    project = corpus_project("references", tmp_path)
    found = json.loads(run("ls", "--json", "-w", project).stdout)
    assert found["format"] == "reconcile.threads/1"
    assert found["threads"][2] == {
        "thread": "thread-4ae81ae8",
        "title": "Implement client",
        "status": "active",
        "parent": None,
        "objective": "obj-7d5aae15",
        "objective_title": "Payment research",
        "references": ["thread-0bcf49b1", "thread-fe2eeadd"],
        "depends_on": [],
        "depends_on_indirectly": [],
    }
    assert "thread-0bcf49b1, thread-fe2eeadd" in run("ls", "-w", project).stdout


def project_of(played: Leslie, directory: Path) -> Path:
    leslie = directory / ".leslie"
    for thread in played.threads:
        (leslie / "threads" / thread).mkdir(parents=True)
    leslie.mkdir(exist_ok=True)
    (leslie / "thread_relations.json").write_bytes(played.relations_file())
    (leslie / "objectives.json").write_bytes(played.objectives_file())
    return directory


def test_parents_that_go_round_are_drawn_all_the_same(run: Run, tmp_path: Path) -> None:
    played = Leslie().play([("spawn", 0, 0, 1), ("spawn", 1, 0, 1), ("spawn", 0, 0, 1)])
    first, second, third = played.threads
    played.threads[first]["parent_id"], played.threads[third]["parent_id"] = second, "thread-x"
    lines = run("ls", "--tree", "-w", project_of(played, tmp_path)).stdout.splitlines()
    assert [line[:3].strip() for line in lines[1:]] == ["Übe", "└──", "Übe"]
    found = [min((each for each in played.threads if each in line), key=line.index) for line in lines[1:]]
    assert found == [first, second, third]


@pytest.mark.parametrize("backup", [False, True])
def test_of_a_damaged_file_the_threads_that_are_left_are_listed(run: Run, tmp_path: Path, *, backup: bool) -> None:
    played = Leslie().play([("spawn", 0, 0, 1), ("spawn", 1, 0, 1), ("spawn", 0, 0, 1)])
    project = project_of(played, tmp_path)
    relations = project / ".leslie" / "thread_relations.json"
    content = relations.read_bytes()
    last = max(content.index(f'"{thread}"'.encode()) for thread in played.threads)
    if backup:
        relations.with_name("thread_relations.json.bak").write_bytes(content)
    relations.write_bytes(content[:last])
    for words in (("ls",), ("ls", "--tree")):
        result = run(*words, "-w", project)
        assert (result.exit_code, len(result.stdout.splitlines())) == (1, 1 + len(played.threads))
        assert all(thread in result.stdout for thread in played.threads), "of the last, only its directory is left"
        assert result.stdout.count("active") == len(played.threads) - (not backup)
        assert "error: .leslie/thread_relations.json: a truncated file" in result.stderr
        assert "hint: see what can be recovered: reconcile doctor --format leslie" in result.stderr
    listed = json.loads(run("ls", "--json", "-w", project).stdout)["threads"]
    assert {each["thread"] for each in listed} == set(played.threads)
    relations.write_bytes(b"")
    result = run("ls", "-w", project)
    assert (result.exit_code, all(thread in result.stdout for thread in played.threads)) == (1, True)


def test_dependencies_that_go_round_are_listed_once(run: Run, tmp_path: Path) -> None:
    played = Leslie().play([("spawn", 0, 0, 1), ("spawn", 1, 0, 1), ("spawn", 1, 0, 1)])
    first, second, third = played.threads
    for thread, others in ((first, [third]), (second, [first, "thread-x"]), (third, [second, second])):
        played.relations[thread]["depends_on"] = others
    found = json.loads(run("ls", "--json", "-w", project_of(played, tmp_path)).stdout)["threads"]
    told = {each["thread"]: (each["depends_on"], each["depends_on_indirectly"]) for each in found}
    assert told == {
        first: ([third], [second, "thread-x"]),
        second: ([first, "thread-x"], [third]),
        third: ([second], [first, "thread-x"]),
    }


def test_no_threads(run: Run, tmp_path: Path) -> None:
    assert run("ls", "--tree", "-w", project_of(Leslie(), tmp_path)).stdout == "no threads\n"
    (tmp_path / ".leslie" / "thread_relations.json").unlink()
    result = run("ls", "-w", tmp_path)
    assert "no such file (expected a file)" in result.stderr


def test_jp_is_the_default_where_both_are(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".jp").mkdir()
    (tmp_path / ".jp" / ".id").write_text("abcde")
    project_of(Leslie(), tmp_path)
    assert run("ls", "-w", tmp_path).stdout == "no conversations\n"
    assert run("ls", "-w", tmp_path, "--format", "leslie").stdout == "no threads\n"
    assert run("doctor", "-w", tmp_path, "--format", "leslie").stdout.endswith("\n\nNo problems found.\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ls", "--root"], "leave out --root and --archived"),
        (["ls", "--archived"], "leave out --root and --archived"),
        (["ls", "--only", "x"], "leave out --only"),
        (["doctor", "--repair", "--mend", "x"], "choose one: --repair, --mend, --quarantine or --secrets"),
    ],
)
def test_what_is_only_for_conversations(run: Run, tmp_path: Path, arguments: list[str], words: str) -> None:
    result = run(*arguments, "-w", project_of(Leslie(), tmp_path))
    assert result.exit_code == 2
    assert words in result.stderr


@pytest.mark.parametrize("command", ["doctor", "ls"])
def test_no_leslie_there(run: Run, tmp_path: Path, command: str) -> None:
    (tmp_path / ".leslie").mkdir()
    (tmp_path / ".leslie" / "env").write_text("")
    result = run(command, "--format", "leslie", "-w", tmp_path)
    assert result.exit_code == 2
    assert "no .leslie/thread_relations.json in" in result.stderr


def test_a_file_of_a_thread_that_differs_is_shown_once(run: Run, tmp_path: Path) -> None:
    project = project_of(Leslie().play([("spawn", 0, 0, 1)]), tmp_path)
    (thread,) = (project / ".leslie" / "threads").iterdir()
    (thread / "plan.md").write_text("a\nb\n")
    (thread / "image.png").write_bytes(b"\x89PNG\x00\xff")
    assert run("-w", project).exit_code == 0
    (thread / "plan.md").write_text("a\nc\n")
    (thread / "image.png").write_bytes(b"\x89PNG\x00\xfe")
    output = run("diff", thread.name, "-w", project).stdout
    assert output.count("plan.md") == output.count("image.png") == 1, output


def test_what_differs_is_shown_value_by_value(run: Run, tmp_path: Path) -> None:
    project = project_of(Leslie().play([("spawn", 0, 0, 1)]), tmp_path)
    (project / ".leslie" / "notes.txt").write_text("a\nb\n")
    assert run("-w", project).exit_code == 0
    assert run("diff", "thread_relations", "-w", project).stdout == ("thread_relations.json\n  no differences\n")
    relations = project / ".leslie" / "thread_relations.json"
    value = json.loads(relations.read_text())
    (thread,) = value["threads"]
    value["threads"][thread]["tags"] = ["x"]
    value["metadata"] = dict(reversed(value["metadata"].items()))
    relations.write_text(json.dumps(value, indent=2) + "\n")
    (project / ".leslie" / "notes.txt").write_text("a\nc\n")
    assert f"  metadata threads.{thread}.tags" in run("diff", "thread_relations", "-w", project).stdout
    assert run("diff", "notes.txt", "-w", project).stdout.splitlines()[1:] == [
        "",
        "--- store",
        "+++ workspace",
        "  1. System (file)",
        "    a",
        "-   b",
        "+   c",
    ]
