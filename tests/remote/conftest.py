"""A laptop with three conversations, a desktop, and the bare repository that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.projects.machines import Machine, make_bare, make_machine

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    return make_bare(tmp_path / "remote.git")


@pytest.fixture
def new_laptop(tmp_path: Path, run: Run, bare: Path) -> Machine:
    """The remote is added, and nothing is sent yet."""
    machine = make_machine(tmp_path / "laptop", run)
    for number in (17528832000, 17528832010, 17528832020):
        machine.write(number)
    machine.run("remote", "add", str(bare))
    return machine


@pytest.fixture
def laptop(new_laptop: Machine) -> Machine:
    new_laptop.sync()
    return new_laptop


@pytest.fixture
def desktop(tmp_path: Path, run: Run, bare: Path, laptop: Machine) -> Machine:
    machine = make_machine(tmp_path / "desktop", run)
    machine.sync(str(bare))
    return machine
