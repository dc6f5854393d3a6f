"""The directory of a project's sessions, and the sessions that processes have open.

See docs/design/formats/claude-code.md#names-of-project-directories and
docs/design/formats/claude-code.md#processes-that-run.
"""

from __future__ import annotations

import errno
import json
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.adapters.claude_code import directories, places
from reconcile.adapters.claude_code.directories import live_sessions, sessions_directory
from reconcile.adapters.claude_code.places import home_of
from reconcile.adapters.claude_code.stores import store_place
from reconcile.adapters.locate import formats_at, locate
from reconcile.adapters.roots import LocateError, Request, Roots, store_of
from reconcile.formats.claude_code.names import directory_name
from reconcile.fs.paths import open_regular
from tests.support.projects.git_world import git

if TYPE_CHECKING:
    from types import ModuleType

ID = "83fbb9a0-7f21-4118-8828-{:012}"
HOUR_NS = 3600 * 10**9

OPENED = """
import json, sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
from reconcile.adapters.claude_code.directories import live_sessions
sessions = live_sessions(sys.argv[1])
print(json.dumps([sorted(sessions), [path for path in opened if path.startswith(sys.argv[1])]]))
"""


@pytest.fixture
def place(home: Path) -> Path:
    """The directory of all projects, with none."""
    projects = home / ".claude" / "projects"
    projects.mkdir(parents=True)
    return projects


def made(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def begun(place: Path, project: Path, *cwds: Path, number: int = 1, hours: int = 0) -> Path:
    """Write a session into the directory with the project's name; its lines were written in these directories."""
    lines: list[dict[str, Any]] = [
        {"type": "mode", "mode": "normal"},
        *({"type": "user", "cwd": str(at)} for at in cwds),
    ]
    file = made(place / directory_name(str(project))) / (ID.format(number) + ".jsonl")
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    time_ns = file.stat().st_mtime_ns - hours * HOUR_NS
    os.utime(file, ns=(time_ns, time_ns))
    return file.parent


def located(start: Path, name: str | None = "claude-code", **options: Path) -> Roots:
    arguments = {key: str(value) for key, value in options.items()}
    return locate(name, arguments.get("workspace"), arguments.get("store"), str(start), os.environ, sys.platform)


def refused(start: Path) -> str:
    with pytest.raises(LocateError) as caught:
        located(start)
    return str(caught.value)


# The directory of a project.


@pytest.mark.parametrize("name", ["claude-code", None])
def test_the_sides_of_a_project(place: Path, tmp_path: Path, name: str | None) -> None:
    project = made(tmp_path / "my project")
    directory = begun(place, project, project)
    roots = located(project, name)
    request = Request(None, None, str(project), os.environ, sys.platform)
    assert (roots.format, roots.project, roots.workspace) == ("claude-code", str(project), str(directory))
    assert roots.workspace_conversations == str(directory)
    assert roots.store == roots.store_conversations == store_of("claude-code", str(project), request)
    assert not roots.store_exists
    assert not roots.is_in_project
    assert not Path(roots.store).exists()


def test_another_checkout_has_its_own_directory(place: Path, tmp_path: Path) -> None:
    project = made(tmp_path / "first")
    begun(place, project, project)
    assert located(project) == located(project), "`watch` compares them"
    other = located(project).in_checkout(str(tmp_path / "second"))
    assert other.workspace_conversations == str(place / directory_name(str(tmp_path / "second")))
    assert (other.project, other.store) == (str(tmp_path / "second"), located(project).store)
    (tmp_path / "link").symlink_to(tmp_path / "second")
    assert located(project).in_checkout(str(tmp_path / "link")).workspace == other.workspace


def test_from_below_the_nearest_project_is_used(place: Path, tmp_path: Path) -> None:
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "inner"
    deep = made(inner / "src" / "deep")
    begun(place, outer, outer)
    begun(place, tmp_path, tmp_path, number=2)
    assert "has no sessions" in refused(deep), "a home directory may have sessions of its own"
    git(outer, "init", "--quiet")
    assert located(deep).project == str(outer)
    begun(place, inner, inner)
    assert located(deep).project == str(inner)
    assert located(tmp_path, workspace=deep).project == str(inner)


def test_a_link_to_a_project_is_the_project(place: Path, tmp_path: Path) -> None:
    """The program names a directory by the path without links."""
    project, link = made(tmp_path / "project" / "src").parent, tmp_path / "link"
    link.symlink_to(project)
    git(project, "init", "--quiet")
    directory = begun(place, project, project)
    for named in (link, link / "src"):
        roots = located(tmp_path, workspace=named)
        assert (roots.workspace, roots.store) == (str(directory), located(project).store)


def test_no_sessions_are_refused(place: Path, tmp_path: Path) -> None:
    start = made(tmp_path / "project")
    assert refused(start).startswith(f"Claude Code has no sessions of {start} or a directory above it (in {place})")
    shutil.rmtree(place.parent)
    assert "has no sessions" in refused(start)
    with pytest.raises(LocateError, match="no workspace in"):
        located(start, None)


@pytest.mark.parametrize("below", ["memory/MEMORY.md", f"{ID.format(1)}/tool-results/a.txt", "torn.jsonl"])
def test_without_a_directory_in_the_records_the_name_decides(place: Path, tmp_path: Path, below: str) -> None:
    project = made(tmp_path / "project")
    directory = made(place / directory_name(str(project)))
    file = directory / below
    made(file.parent)
    file.write_text('{"type":"user","cwd":"/to')
    assert located(project).workspace == str(directory)


def test_the_first_directory_in_a_session_counts(place: Path, tmp_path: Path) -> None:
    """The program goes on in another directory after a `cd`."""
    project = made(tmp_path / "project")
    begun(place, project, project, tmp_path / "elsewhere")
    assert located(project).project == str(project)


@pytest.mark.parametrize("odd", ["", "b-c", "\0", "/a\0b", 5, None])
def test_an_odd_directory_in_a_record_is_passed_over(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: object
) -> None:
    project, other = made(tmp_path / "b-c"), made(tmp_path / "b" / "c")
    directory = begun(place, project)
    with next(directory.iterdir()).open("a") as file:
        file.writelines(json.dumps({"type": "user", "cwd": cwd}) + "\n" for cwd in (odd, str(other)))
    monkeypatch.chdir(project)
    assert located(other).project == str(other)
    assert "has no sessions" in refused(project)


def test_two_projects_that_share_a_name(place: Path, tmp_path: Path) -> None:
    dashed, deep = made(tmp_path / "b-c"), made(tmp_path / "b" / "c")
    assert directory_name(str(dashed)) == directory_name(str(deep))
    directory = begun(place, dashed, dashed)
    assert located(dashed).workspace == str(directory)
    assert "has no sessions" in refused(deep)
    begun(place, deep, deep, number=2)
    assert [located(each).project for each in (dashed, deep)] == [str(dashed), str(deep)]
    assert located(dashed).store != located(deep).store


def test_many_newer_sessions_of_the_other_project_hide_none(place: Path, tmp_path: Path) -> None:
    dashed, deep = made(tmp_path / "b-c"), made(tmp_path / "b" / "c")
    begun(place, dashed, dashed, hours=9)
    for number in range(2, 9):
        begun(place, deep, deep, number=number, hours=9 - number)
    assert located(dashed).project == str(dashed)


def test_a_session_that_was_moved_here_belongs_here(place: Path, tmp_path: Path) -> None:
    """Its records name the path where it was begun, until the next turn."""
    project = made(tmp_path / "b-c")
    begun(place, project, tmp_path / "old")
    assert located(project).project == str(project)
    made(tmp_path / "old")
    assert located(project).project == str(project)


def test_a_path_with_the_same_name_that_is_gone_leaves_its_sessions(place: Path, tmp_path: Path) -> None:
    dashed, deep = made(tmp_path / "b-c"), made(tmp_path / "b" / "c")
    directory = begun(place, deep, deep)
    assert "has no sessions" in refused(dashed)
    deep.rmdir()
    assert located(dashed).workspace == str(directory)


def test_a_lost_directory_is_located_by_the_store(place: Path, tmp_path: Path) -> None:
    project = made(tmp_path / "project")
    git(project, "init", "--quiet")
    directory = begun(place, project, project)
    store = made(Path(located(project).store))
    for lost in (directory, place.parent):
        shutil.rmtree(lost)
        roots = located(made(project / "src"), None)
        assert (roots.project, roots.workspace, roots.store) == (str(project), str(directory), str(store))
        assert roots.store_exists


@pytest.mark.parametrize("relative", [False, True])
def test_the_directory_of_the_program_can_be_chosen(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, relative: bool
) -> None:
    project, config = made(tmp_path / "project"), made(tmp_path / "config")
    begun(place, project, project)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "../config" if relative else str(config))
    assert f"(in {config / 'projects'})" in refused(project)
    assert located(project, workspace=project, store=made(tmp_path / "store")).workspace.startswith(str(config))
    directory = begun(config / "projects", project, project)
    assert located(project).workspace == str(directory)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "")
    assert located(project).workspace.startswith(str(place))


def test_the_home_of_the_environment_is_used(tmp_path: Path) -> None:
    request = Request(None, None, str(tmp_path), {"HOME": "/home/ada"}, sys.platform)
    assert home_of(request) == "/home/ada/.claude"
    for environ in ({}, {"HOME": ""}):
        assert home_of(request._replace(environ=environ)) == f"{pwd.getpwuid(os.getuid()).pw_dir}/.claude"


def test_a_directory_that_can_not_be_read_is_no_absence(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a project further up would be used."""
    outer, inner = tmp_path / "outer", made(tmp_path / "outer" / "inner")
    git(outer, "init", "--quiet")
    begun(place, outer, outer)
    directory = begun(place, inner, inner)
    scanning = os.scandir

    def refusing(path: str) -> Any:
        if path == str(directory):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scanning(path)

    monkeypatch.setattr(os, "scandir", refusing)
    for name in ("claude-code", None):
        with pytest.raises(PermissionError):
            located(inner, name)


def test_what_is_no_directory_has_no_sessions(place: Path, tmp_path: Path) -> None:
    project = made(tmp_path / "project")
    (place / directory_name(str(project))).write_text("")
    assert sessions_directory(str(place.parent), str(project)) is None


def test_a_directory_that_is_a_link_is_refused(place: Path, tmp_path: Path) -> None:
    project = made(tmp_path / "project")
    begun(tmp_path / "elsewhere", project, project)
    (place / directory_name(str(project))).symlink_to(tmp_path / "elsewhere" / directory_name(str(project)))
    assert "a symbolic link, which is never followed" in refused(project)


def test_pipes_and_links_among_the_sessions_are_not_read(place: Path, tmp_path: Path) -> None:
    project = made(tmp_path / "project")
    directory = begun(place, project, project, hours=1)
    os.mkfifo(directory / f"{ID.format(2)}.jsonl")
    (directory / f"{ID.format(3)}.jsonl").symlink_to("nowhere")
    (directory / f"{ID.format(4)}.jsonl").mkdir()
    assert located(project).workspace == str(directory)


def test_a_session_that_is_deleted_meanwhile_is_passed_over(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program deletes old sessions at any moment: here, after the directory was listed."""
    project = made(tmp_path / "project")
    begun(place, project, project, number=1, hours=1)
    directory = begun(place, project, project, number=2)

    def slowly(path: str) -> Any:
        Path(path).unlink()
        monkeypatch.setattr(directories, "open_regular", open_regular)
        return open_regular(path)

    monkeypatch.setattr(directories, "open_regular", slowly)
    assert sessions_directory(str(place.parent), str(project)) == str(directory)
    assert len(list(directory.iterdir())) == 1


# Sessions in use.


def started(pid: int | str = "self") -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[19]


def running(place: Path, content: object, name: str = "1.json") -> str:
    """Write the file of a process; return the directory of the program."""
    file = made(place.parent / "sessions") / name
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(place.parent)


def process(number: int = 1, **more: object) -> dict[str, object]:
    """What this process would write, if it was the program's."""
    return {"pid": os.getpid(), "sessionId": ID.format(number), "procStart": started(), "cwd": "/", **more}


def opened(home: str | Path) -> set[str]:
    return set(live_sessions(str(home)))


def ended() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_a_process_that_runs_has_its_session_open(place: Path) -> None:
    assert opened(running(place, process(1))) == {ID.format(1)}
    assert opened(running(place, process(2), "2.json")) == {ID.format(1), ID.format(2)}


def test_another_process_that_runs(place: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    home = running(place, process(pid=child.pid, procStart=started(child.pid)))
    assert opened(home) == {ID.format(1)}
    child.communicate(b"\n")
    assert opened(home) == set()


def test_a_process_without_the_time_of_its_start_counts(place: Path) -> None:
    content = process()
    del content["procStart"]
    assert opened(running(place, content)) == {ID.format(1)}


def test_a_later_process_with_the_number_does_not_count(place: Path) -> None:
    assert opened(running(place, process(procStart=str(int(started()) - 1)))) == set()


def test_a_process_that_has_ended_does_not_count(place: Path) -> None:
    pid = ended()
    assert opened(running(place, process(pid=pid))) == set()


DAMAGED: list[object] = [
    "",
    "{",
    "\0" * 100,
    "[" * 100_000,
    [],
    {"sessionId": ID.format(1)},
    {"pid": "1", "sessionId": ID.format(1)},
    {"pid": True, "sessionId": ID.format(1)},
    {"pid": 0, "sessionId": ID.format(1)},
    {"pid": -1, "sessionId": ID.format(1)},
    {"pid": 2**40, "sessionId": ID.format(1)},
    {"pid": 1, "sessionId": 5},
]


@pytest.mark.parametrize("content", DAMAGED, ids=[str(each)[:40] for each in DAMAGED])
def test_a_damaged_file_hides_no_other(place: Path, content: object) -> None:
    running(place, content)
    assert opened(running(place, process(2), "2.json")) == {ID.format(2)}


def test_a_file_that_is_not_utf_8_hides_no_other(place: Path) -> None:
    running(place, "")
    (place.parent / "sessions" / "1.json").write_bytes(b'{"pid":1,"sessionId":"\xff"}')
    assert opened(running(place, process(2), "2.json")) == {ID.format(2)}


def test_a_file_that_is_being_written_again_is_read_once_more(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its program replaces the content in place: the file is empty for a moment, and the process runs."""
    name = f"{os.getpid()}.json"
    home = running(place, "", name)
    monkeypatch.setattr("time.sleep", lambda _: running(place, process(1), name))
    assert opened(home) == {ID.format(1)}


def test_pipes_and_directories_hide_no_other(place: Path) -> None:
    home = running(place, process(2), "2.json")
    os.mkfifo(place.parent / "sessions" / "1.json")
    (place.parent / "sessions" / "3.json").mkdir()
    assert opened(home) == {ID.format(2)}


def test_other_names_are_of_no_process(place: Path) -> None:
    for name in ("1.json.bak", "a.json", "1.jsonl", ".1.json", "settings.json"):
        running(place, process(), name)
    assert opened(place.parent) == set()


def test_no_list_is_no_process(place: Path) -> None:
    assert opened(place.parent) == set()
    assert opened(place.parent / "missing") == set()


def test_a_list_that_can_not_be_read_is_an_error(place: Path) -> None:
    """Else a session in use would be replaced."""
    (place.parent / "sessions").write_text("")
    with pytest.raises(NotADirectoryError):
        live_sessions(str(place.parent))


def test_the_secret_of_a_process_is_never_opened(place: Path) -> None:
    home = running(place, process(pid=os.getpid()), f"{os.getpid()}.json")
    running(place, "a secret", f"{os.getpid()}.{'0af9' * 16}.key")
    done = subprocess.run([sys.executable, "-c", OPENED, home], capture_output=True, text=True, check=True)
    sessions, paths = json.loads(done.stdout)
    assert sessions == [ID.format(1)]
    assert set(paths) == {f"{home}/sessions/{os.getpid()}.json"}


def test_a_system_without_proc_is_asked_for_the_number(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(path: str, *_: object) -> Any:
        raise FileNotFoundError(path)

    pid = ended()
    monkeypatch.setattr(directories, "open", absent, raising=False)
    running(place, process(1, pid=pid))
    home = running(place, process(2), "2.json")
    assert opened(home) == set()
    monkeypatch.setattr(os.path, "isdir", lambda _: False)
    assert opened(home) == {ID.format(2)}


# Beside another format.


def formats(start: Path, *, source: Path | None = None, recovers: bool = False) -> tuple[str, ...]:
    request = Request(None, None, str(start), os.environ, sys.platform)
    return formats_at(request, source=None if source is None else str(source), recovers=recovers)


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    """A checkout of git with a `.jp`."""
    made(tmp_path / "project" / ".jp" / "conversations")
    (tmp_path / "project" / ".jp" / ".id").write_text("ab1cd\n")
    git(tmp_path / "project", "init", "-q")
    git(tmp_path / "project", "commit", "-q", "--allow-empty", "-m", "first")
    return tmp_path / "project"


def test_sessions_beside_a_jp_make_two_formats(place: Path, marked: Path) -> None:
    assert formats(marked) == ()
    begun(place, marked, marked)
    assert formats(marked) == ("jp", "claude-code")
    assert formats(made(marked / "below" / "it")) == ("jp", "claude-code")
    assert formats(marked / ".jp") == ("jp", "claude-code")


def test_sessions_beside_the_records_of_other_programs(place: Path, tmp_path: Path) -> None:
    for name, mark in (("leslie", ".leslie/objectives.json"), ("claudesidian", ".nexus/a.jsonl")):
        project = made(tmp_path / name)
        made((project / mark).parent)
        (project / mark).write_text("{}")
        begun(place, project, project)
        assert formats(project) == (name, "claude-code")


def test_sessions_alone_are_one_format(place: Path, tmp_path: Path) -> None:
    begun(place, tmp_path, tmp_path)
    assert formats(tmp_path) == ()


def test_a_store_of_sessions_counts_also_if_the_program_has_none(home: Path, marked: Path) -> None:
    request = Request(None, None, str(marked), os.environ, sys.platform)
    link = store_place(str(marked), request).link
    made(Path(link))
    assert formats(marked) == ("jp", "claude-code")


def test_the_store_of_a_clone_counts_only_for_a_recovery(home: Path, marked: Path, tmp_path: Path) -> None:
    """Only git leads to it, and a run must not wait for git."""
    made(Path(store_place(str(marked), Request(None, None, str(marked), os.environ, sys.platform)).path))
    assert formats(marked) == ()
    assert formats(marked, recovers=True) == ("jp", "claude-code")


def test_a_project_without_a_mark_that_is_recovered_from_another_path(home: Path, tmp_path: Path) -> None:
    old, new = made(tmp_path / "old"), made(tmp_path / "new")
    made(Path(store_place(str(old), Request(None, None, str(old), os.environ, sys.platform)).path))
    assert formats(new, source=old, recovers=True) == ()


def test_sessions_of_another_path_with_the_same_name_are_no_second_format(place: Path, tmp_path: Path) -> None:
    dashed, deep = made(tmp_path / "a-b"), made(tmp_path / "a" / "b")
    made(dashed / ".jp")
    begun(place, deep, deep)
    assert formats(dashed) == ()


def test_a_home_that_cannot_be_read_has_no_sessions(place: Path, marked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(place, marked, marked)
    _refuse(monkeypatch, str(place), places)
    assert formats(marked) == ()


def test_sessions_that_cannot_be_read_are_a_format(place: Path, marked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(place, marked, marked)
    _refuse(monkeypatch, str(place), directories)
    assert formats(marked) == ("jp", "claude-code")


def _refuse(monkeypatch: pytest.MonkeyPatch, prefix: str, module: ModuleType) -> None:
    """Have the system refuse the status of what is below a path, as that of a disk with an error."""
    real = module.is_directory

    def refused_below(path: str) -> bool:
        if path.startswith(prefix):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return bool(real(path))

    monkeypatch.setattr(module, "is_directory", refused_below)


def test_a_directory_that_is_not_there_has_no_formats(place: Path, tmp_path: Path) -> None:
    assert formats(tmp_path / "missing") == ()
