"""Names of files are bytes in UTF-8, whatever encoding the locale asks for; output has what the terminal can show."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.world import LONG_AGO, command, contents, events, write_conversation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.support.projects.world import World

TITLE = "Grüße, 日本"
NAME = "17528832001-grüße--日本"
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""What Python makes of the locale C alone is UTF-8; a user may have switched that off."""
LOCALES = Path("/usr/share/i18n/locales/en_US")


@pytest.fixture(scope="session")
def latin(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A locale with the encoding ISO-8859-1, compiled for this run."""
    if shutil.which("localedef") is None or not LOCALES.exists():
        pytest.skip("no localedef, or no sources of locales; apt-get install -y locales")
    where = tmp_path_factory.mktemp("locales")
    compiled = ["localedef", "-i", "en_US", "-f", "ISO-8859-1", str(where / "en_US.ISO-8859-1")]
    subprocess.run(compiled, check=False, capture_output=True)  # it exits with 1 after a warning
    found = {"LOCPATH": str(where), "LC_ALL": "en_US.ISO-8859-1"}
    script = "import sys; print(sys.getfilesystemencoding())"
    encoding = subprocess.run([sys.executable, "-c", script], env=os.environ | found, capture_output=True, check=True)
    assert encoding.stdout.strip() == b"iso8859-1"
    return found


@pytest.fixture
def world(world: World) -> World:
    """The store is there, as JP makes it: a run that makes one prints a line about that."""
    world.store.mkdir(parents=True)
    return world


@pytest.fixture(params=["ascii", "latin"])
def locale(request: pytest.FixtureRequest) -> Mapping[str, str]:
    if request.param == "ascii":
        return ASCII
    found: dict[str, str] = request.getfixturevalue("latin")
    return found


def ran(locale: Mapping[str, str], words: Sequence[str | bytes]) -> tuple[int, bytes, bytes]:
    done = subprocess.run(words, env=os.environ | locale, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr


def names(side: Path) -> list[bytes]:
    return sorted(os.listdir(os.fsencode(side)))


@pytest.mark.parametrize("module", [False, True], ids=["script", "module"])
def test_names_are_utf_8(world: World, locale: Mapping[str, str], module: bool) -> None:
    write_conversation(world.workspace / NAME, TITLE, events(2))
    begun = [sys.executable, "-m", "reconcile"] if module else command()
    code, output, errors = ran(locale, [*begun, "--workspace", str(world.project)])
    assert (code, errors) == (0, b""), output + errors
    assert names(world.store) == [NAME.encode()]
    assert contents(world.store) == contents(world.workspace)
    world.reconcile()


def test_a_name_made_from_a_title_is_utf_8(world: World, locale: Mapping[str, str]) -> None:
    """The directory is renamed after its title: its new name is ours to write."""
    copy = write_conversation(world.workspace / "17528832001-it", "It", events(2))
    world.reconcile()
    shutil.rmtree(copy)
    write_conversation(copy, TITLE, events(2), mtime_ns=LONG_AGO + 10**9)
    code, output, errors = ran(locale, command("--workspace", world.project))
    assert (code, errors) == (0, b""), output + errors
    there = names(world.store)
    assert len(there) == 1
    assert there[0].startswith(b"17528832001-gr")
    there[0].decode()  # it is UTF-8
    world.reconcile()
    assert names(world.store) == there


def test_output_has_what_the_terminal_can_show(world: World, latin: Mapping[str, str]) -> None:
    write_conversation(world.workspace / NAME, TITLE, events(2))
    code, output, errors = ran(latin, command("ls", "--workspace", str(world.project)))
    assert (code, errors) == (0, b""), output + errors
    assert "Grüße, ??".encode("latin-1") in output


@pytest.mark.parametrize("encoding", ["ascii", "iso-8859-1", "utf-8"])
def test_output_replaces_what_its_encoding_lacks(world: World, encoding: str) -> None:
    write_conversation(world.workspace / NAME, TITLE, events(2))
    code, output, errors = ran({"PYTHONIOENCODING": encoding}, command("--workspace", world.project))
    assert (code, errors) == (0, b""), output + errors
    assert b"Gr" in output
    assert names(world.store) == [NAME.encode()]


def test_the_words_of_the_command_line_stay_as_they_were(world: World, locale: Mapping[str, str]) -> None:
    """Paths are bytes, also those that are no UTF-8."""
    odd = Path(os.fsdecode(os.fsencode(world.project.parent) + b"/caf\xe9"))
    world.project.rename(odd)
    write_conversation(odd / ".jp" / "conversations" / NAME, TITLE, events(2))
    code, output, errors = ran(locale, command("--workspace", odd))
    assert (code, errors) == (0, b""), output + errors


def test_the_library_says_how_python_must_be_started(world: World, locale: Mapping[str, str]) -> None:
    write_conversation(world.workspace / NAME, TITLE, events(2))
    script = """
import reconcile, reconcile.errors, sys
try:
    reconcile.Workspace.open(sys.argv[1])
except reconcile.errors.ReconcileError as error:
    sys.exit(f"{error.message}; {error.hint}")
"""
    code, _, errors = ran(locale, [sys.executable, "-c", script, str(world.project)])
    assert code == 1
    assert b"reconcile needs UTF-8" in errors
    assert b"PYTHONUTF8=1" in errors
    code, _, errors = ran(locale, [sys.executable, "-X", "utf8", "-c", script, str(world.project)])
    assert (code, errors) == (0, b"")


def test_a_title_that_is_no_utf_8_is_refused(world: World) -> None:
    """It would be stored as another one: what JP writes and reads is UTF-8."""
    write_conversation(world.workspace / NAME, TITLE, events(2))
    world.reconcile()
    before = contents(world.store)
    words = command("fork", "17528832001", "--workspace", world.project)
    code, output, errors = ran({}, [*words, "--title", b"caf\xe9"])
    assert code == 2, output
    assert b"--title: the title is not UTF-8" in errors
    assert contents(world.store) == before
