"""The program at each version, with a home of its own and a session of one turn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.agents.program import VERSIONS, Program, UnavailableError, install
from tests.agents.sessions import FIRST, carry
from tests.agents.stub import REPLY, Stub
from tests.support.formats.claude_code_project import Sides

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Run


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    version: str = request.param
    return version


@pytest.fixture(scope="module")
def installed(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    try:
        path = install(version)
    except UnavailableError as error:
        pytest.skip(str(error))
    directory = tmp_path_factory.mktemp("installed")
    with Stub(directory / "log") as stub:
        yield Program(path, directory / "home", stub)


@pytest.fixture(scope="module")
def written(installed: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session of one turn, in another home and another project."""
    project = tmp_path_factory.mktemp("written")
    assert REPLY in installed.say(FIRST, cwd=project).output
    (session,) = installed.sessions(project)
    return session


@pytest.fixture
def program(installed: Program, tmp_path: Path) -> Program:
    return replace(installed, home=tmp_path / "home")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path / "project"


@pytest.fixture
def session(written: Path, program: Program, project: Path) -> Path:
    """The session carried to this home and this project, byte for byte."""
    return carry(written, program.directory(project))


@pytest.fixture
def sides(program: Program, project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Sides:
    """The program's home as the user's, and the store of the project."""
    monkeypatch.setenv("HOME", str(program.home))
    project.mkdir()
    return Sides(project, run)
