"""`reconcile service`: what it writes, and how it calls systemd and launchd, which are played by small programs.

systemd's own check reads the unit where it is installed.
"""

from __future__ import annotations

import json
import os
import plistlib
import shutil
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.watcher import Watching, until
from tests.support.projects.world import command

if TYPE_CHECKING:
    from click.testing import Result

    from tests.conftest import Run

SYSTEMCTL = """
#!/usr/bin/env python3
# Plays systemctl --user and loginctl for one unit: links, a state, and nothing that runs.
import json, os, sys
config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.environ["HOME"], ".config")
unit = os.path.join(config, "systemd", "user", "reconcile.service")
link = os.path.join(os.path.dirname(unit), "default.target.wants", "reconcile.service")
place = os.path.dirname(os.path.abspath(__file__))
state = os.path.join(place, "state.json")
known = json.load(open(state)) if os.path.exists(state) else {"loaded": None, "running": False}
words = sys.argv[1:]
with open(os.path.join(place, "calls"), "a") as file:
    file.write(" ".join([os.path.basename(sys.argv[0]), *words]) + "\\n")
if os.path.exists(os.path.join(place, "no-manager")):
    sys.exit("Failed to connect to bus: No medium found")
if os.path.basename(sys.argv[0]) == "loginctl":
    print("Linger=" + os.environ.get("LINGER", "no"))
    sys.exit()
assert words.pop(0) == "--user", words
verb, *rest = words
if verb == "show" and rest == ["--property=Version"]:
    print("Version=255")
elif verb == "show":
    print("UnitFileState=" + ("enabled" if os.path.islink(link) else "disabled" if os.path.exists(unit) else ""))
    waits = os.path.exists(os.path.join(place, "has-failed"))
    print("ActiveState=" + ("activating" if waits else "active" if known["running"] else "inactive"))
    print("MainPID=" + ("4242" if known["running"] and not waits else "0"))
elif verb == "daemon-reload":
    known["loaded"] = open(unit).read() if os.path.exists(unit) else None
elif verb == "enable":
    os.makedirs(os.path.dirname(link), exist_ok=True)
    if not os.path.islink(link):
        os.symlink(unit, link)
elif verb == "restart":
    if os.path.exists(os.path.join(place, "does-not-start")):
        sys.exit("Job for reconcile.service failed")
    if known["loaded"] is None:
        sys.exit("Unit reconcile.service not found.")
    known["running"] = True
elif verb == "disable":
    assert rest[0] == "--now"
    known["running"] = False
    if os.path.islink(link):
        os.unlink(link)
        os.rmdir(os.path.dirname(link))
else:
    sys.exit("unknown: " + verb)
json.dump(known, open(state, "w"))
"""

LAUNCHCTL = """
#!/usr/bin/env python3
# Plays launchctl for one agent: it ends an old process in the background, as the real one does.
import json, os, plistlib, sys
place = os.path.dirname(os.path.abspath(__file__))
state = os.path.join(place, "state.json")
known = json.load(open(state)) if os.path.exists(state) else {"loaded": None, "ending": 0}
verb, *rest = sys.argv[1:]
with open(os.path.join(place, "calls"), "a") as file:
    file.write(" ".join(["launchctl", verb, *rest]) + "\\n")
domain = "gui/%d" % os.getuid()
target = domain + "/reconcile.watch-all"
if verb == "bootstrap":
    assert rest[0] == domain
    if os.path.exists(os.path.join(place, "does-not-start")):
        sys.exit("Bootstrap failed: 125: Domain does not support specified action")
    if known["ending"]:
        known["ending"] -= 1
        json.dump(known, open(state, "w"))
        sys.exit("Bootstrap failed: 5: Input/output error")
    assert known["loaded"] is None
    known["loaded"] = plistlib.load(open(rest[1], "rb"))["ProgramArguments"]
elif verb == "bootout":
    assert rest == [target]
    if known["loaded"] is None:
        sys.exit("Boot-out failed: 3: No such process")
    known = {"loaded": None, "ending": 2}
elif verb == "enable":
    assert rest == [target]
elif verb == "print" and rest == [domain]:
    if os.path.exists(os.path.join(place, "no-manager")):
        sys.exit('Could not find domain "' + domain + '"')
elif verb == "print":
    if known["loaded"] is None:
        sys.exit('Could not find service "reconcile.watch-all" in domain')
    print(target + " = {\\n\\tstate = running\\n\\tpid = 4242\\n}")
else:
    sys.exit("unknown: " + verb)
json.dump(known, open(state, "w"))
"""


class Machine:
    """A machine with the programs of its manager, before anything is installed."""

    def __init__(self, place: Path, home: Path, run: Run) -> None:
        self.place, self.home, self._run = place, home, run

    @property
    def unit(self) -> Path:
        return self.home / "config" / "systemd" / "user" / "reconcile.service"

    @property
    def agent(self) -> Path:
        return self.home / "Library" / "LaunchAgents" / "reconcile.watch-all.plist"

    def service(self, *words: str, code: int = 0) -> Result:
        result = self._run("service", *words)
        assert result.exit_code == code, result.output
        return result

    def status(self) -> dict[str, object]:
        result = self._run("service", "status", "--json")
        found: dict[str, object] = json.loads(result.stdout)
        assert result.exit_code == (0 if found["is_running"] else 3), "as of systemctl"
        return found

    def calls(self) -> list[str]:
        """The calls since the last question."""
        file = self.place / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        file.write_text("")
        return lines

    def files(self) -> dict[Path, str]:
        return {path: path.read_text() for path in self.home.rglob("*") if path.is_file()}


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text).lstrip())
    path.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, home: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Linux with a user manager."""
    place, installed = tmp_path / "bin", tmp_path / "installed" / "reconcile"
    program(place / "systemctl", SYSTEMCTL)
    program(place / "loginctl", SYSTEMCTL)
    program(installed, "#!/bin/sh\n")
    directories = [place, installed.parent, Path(sys.executable).parent, "/usr/bin", "/bin"]
    monkeypatch.setenv("PATH", ":".join(map(str, directories)))
    monkeypatch.setattr(sys, "argv", [str(installed)])
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "JP_USER_DATA_DIR"):
        monkeypatch.delenv(name)
    (home / "config").mkdir(parents=True)
    return Machine(place, home, run)


@pytest.fixture
def mac(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The programs of macOS on this machine."""
    monkeypatch.setattr(sys, "platform", "darwin")
    program(machine.place / "launchctl", LAUNCHCTL)
    return machine


def test_installing_the_unit(machine: Machine, tmp_path: Path) -> None:
    assert "is not installed" in machine.service("status", code=3).output
    machine.calls()
    result = machine.service("install")
    text = machine.unit.read_text()
    assert f'\nExecStart="{tmp_path}/installed/reconcile" watch --all --quiet\n' in text
    assert "\nRestart=on-failure\n" in text
    done = [call for call in machine.calls() if " show" not in call and "loginctl" not in call]
    assert done == [
        "systemctl --user daemon-reload",
        "systemctl --user enable reconcile.service",
        "systemctl --user restart reconcile.service",
    ]
    assert "running (process 4242), starts at login" in result.output
    assert f"Program    {tmp_path}/installed/reconcile" in result.output
    assert "It ends when you log out. To let it run on, also without a login: loginctl enable-linger" in result.output


def test_a_service_that_fails_again_and_again_is_not_called_running(machine: Machine) -> None:
    """systemd waits before each restart, and has no process then."""
    machine.service("install")
    (machine.place / "has-failed").touch()
    output = machine.service("status", code=3).output
    assert "not running, starts at login" in output
    assert "To start it: reconcile service install. " in output
    assert machine.status()["is_running"] is False


def test_an_installed_service_that_does_not_start_does_not_suggest_the_same_again(machine: Machine) -> None:
    (machine.place / "has-failed").touch()
    output = machine.service("install").output
    assert "It did not start. Its log: journalctl" in output
    assert "To start it" not in output


def test_a_watcher_that_was_started_by_hand_is_named_if_the_service_does_not_run(machine: Machine) -> None:
    (machine.place / "has-failed").touch()
    machine.service("install", "--sync")
    with Watching(None) as watching:
        output = " ".join(machine.service("status", code=3).output.split())
        assert watching.stop() == 0
    assert "not running, starts at login" in output
    way = "Stop it, then: reconcile service install --sync"
    assert f"Process {watching.process.pid} watches every project, so that the service can't. {way}" in output


def test_status_when_it_lingers(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.service("install")
    monkeypatch.setenv("LINGER", "yes")
    assert "log out" not in machine.service("status").output
    assert machine.status()["stops_at_logout"] is False


def test_installing_it_again_updates_the_path(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.service("install")
    machine.service("install")
    moved = tmp_path / "a place" / "reconcile"
    program(moved, "#!/bin/sh\n")
    (tmp_path / "installed" / "reconcile").unlink()
    assert "The program is not there any more" in machine.service("status").output
    monkeypatch.setattr(sys, "argv", [str(moved)])
    assert "not there any more" not in machine.service("install").output
    assert machine.status()["program"] == str(moved)


def test_removing_it_leaves_everything_as_before(machine: Machine) -> None:
    before = sorted(machine.home.rglob("*"))
    machine.service("install")
    assert "was removed" in machine.service("remove").output
    assert sorted(machine.home.rglob("*")) == before
    assert "is not installed" in machine.service("remove").output
    assert machine.status()["is_running"] is False


def test_a_dry_run_names_the_file_and_changes_nothing(machine: Machine) -> None:
    asks = "systemctl --user show --property=Version"
    told = machine.service("install", "--dry-run").output
    assert "would write ~/config/systemd/user/reconcile.service, and start " in told
    assert "\n  [Service]\n  ExecStart=" in told
    assert "[Service]" in json.loads(machine.service("install", "-n", "--json").output)["content"]
    assert "not installed" in machine.service("remove", "--dry-run").output
    assert machine.calls() == [asks, asks]
    machine.service("install")
    machine.calls()
    assert "would leave" in machine.service("install", "--dry-run").output
    assert "would stop the service" in machine.service("remove", "--dry-run").output
    assert json.loads(machine.service("remove", "-n", "--json").output)["dry_run"] is True
    assert machine.calls() == [asks]


def test_other_units_stay_when_it_is_removed(machine: Machine) -> None:
    other = machine.unit.with_name("mine.service")
    other.parent.mkdir(parents=True)
    other.write_text("mine")
    before = sorted(machine.home.rglob("*"))
    machine.service("install")
    machine.service("remove")
    assert sorted(machine.home.rglob("*")) == before


@pytest.mark.parametrize("action", ["install", "remove", "status"])
@pytest.mark.parametrize("kind", ["file", "link", "masked", "directory"])
def test_a_unit_that_is_not_ours_is_left_alone(machine: Machine, action: str, kind: str, tmp_path: Path) -> None:
    machine.unit.parent.mkdir(parents=True)
    if kind == "directory":
        machine.unit.mkdir()
    elif kind == "file":
        machine.unit.write_text("[Service]\nExecStart=/usr/bin/true\n")
    else:
        machine.unit.symlink_to("/dev/null" if kind == "masked" else tmp_path / "nothing")
    before = sorted((path, path.is_symlink() and path.readlink()) for path in machine.home.rglob("*"))
    result = machine.service(action, code=1)
    assert result.output.startswith("error: ")
    assert "hint: move it away" in result.output
    assert sorted((path, path.is_symlink() and path.readlink()) for path in machine.home.rglob("*")) == before
    assert not [call for call in machine.calls() if "show" not in call]


@pytest.mark.parametrize("how", ["no systemctl", "no manager", "does not start"])
def test_without_a_manager_nothing_is_written_and_the_way_is_named(machine: Machine, how: str) -> None:
    if how == "no systemctl":
        os.environ["PATH"] = f"{machine.place.parent}/installed:{Path(sys.executable).parent}"
        if shutil.which("systemctl") is not None:
            pytest.skip("systemctl is beside Python")
    else:
        (machine.place / how.replace(" ", "-")).touch()
    before = sorted(machine.home.rglob("*"))
    dry = machine.service("install", "--dry-run", code=int(how != "does not start")).output
    error, *hints = (told := machine.service("install", code=1).output).splitlines()
    assert dry.startswith("the file would be ~/config/systemd/user/reconcile.service:\n  #") or how == "does not start"
    assert dry.endswith(told) or how == "does not start"
    assert error.startswith("error: ")
    assert "\n".join(hints).endswith("reconcile watch --all --quiet")
    assert "Traceback" not in error
    assert sorted(machine.home.rglob("*")) == before


def test_status_and_removal_without_a_manager(machine: Machine) -> None:
    """Installed at the desktop, and asked in a container or after `su`."""
    before = sorted(machine.home.rglob("*"))
    machine.service("install")
    (machine.place / "no-manager").touch()
    result = machine.service("status", code=3)
    assert "Service    installed\n" in result.output
    assert "does not answer: Failed to connect to bus" in result.output
    machine.service("remove")
    assert sorted(machine.home.rglob("*")) == before


ODD = ["a b", "a%hb", "a$HOME", "a$$b", "a;b", "ä b", "%%"]
NEVER_STARTED = ['a"b', "a\\b", "a'b", "a\nb", "a\\nb", "a\tb"]
"""In the path of a program, as systemd-analyze tells."""


@pytest.mark.parametrize("name", ODD)
def test_systemd_reads_odd_paths_and_variables(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It says nothing against the unit, and so has found the program at its path."""
    path = tmp_path / name / "reconcile"
    program(path, "#!/bin/sh\n")
    monkeypatch.setattr(sys, "argv", [str(path)])
    variables = {f"RECONCILE_{number}": f"/x/{odd} y" for number, odd in enumerate((*ODD, *NEVER_STARTED))}
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    machine.service("install")
    found = machine.status()
    everything = variables | {"XDG_CONFIG_HOME": os.environ["XDG_CONFIG_HOME"]}
    assert (found["program"], found["environment"]) == (str(path), everything)
    assert verified(machine) == []
    path.unlink()
    assert verified(machine), "a missing program is told of"


@pytest.mark.parametrize("name", NEVER_STARTED)
def test_a_path_that_systemd_never_starts_is_refused(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = tmp_path / name / "reconcile"
    program(path, "#!/bin/sh\n")
    monkeypatch.setattr(sys, "argv", [str(path)])
    result = machine.service("install", code=1)
    assert "systemd starts no program with" in result.output
    assert machine.service("install", "--dry-run", code=1).output.endswith(result.output)
    assert not machine.unit.exists()


def verified(machine: Machine) -> list[str]:
    """Return what systemd has to say against the unit."""
    analyze = shutil.which("systemd-analyze", path="/usr/bin:/bin")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    Path(os.environ["XDG_RUNTIME_DIR"]).mkdir(exist_ok=True)
    done = subprocess.run([analyze, "verify", "--user", machine.unit], capture_output=True, text=True, check=False)
    return [line for line in done.stderr.splitlines() if "reconcile" in line] or ["failed"] * done.returncode


def test_the_variables_of_the_shell_are_kept(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/of/claude")
    monkeypatch.setenv("RECONCILE_STATE_DIR", "/of/states")
    monkeypatch.setenv("XDG_DATA_HOME", "/of/data")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/of/a/login")
    monkeypatch.setenv("XDG_STATE_HOME", "")
    result = machine.service("install")
    for line in ("CLAUDE_CONFIG_DIR=/of/claude", "RECONCILE_STATE_DIR=/of/states", "XDG_DATA_HOME=/of/data"):
        assert f"Variable   {line}\n" in result.output
        assert f'\nEnvironment="{line}"\n' in machine.unit.read_text()
    assert "XDG_RUNTIME_DIR" not in machine.unit.read_text()
    assert "XDG_STATE_HOME" not in machine.unit.read_text()


def test_a_password_in_the_address_of_a_remote_is_in_the_file_alone(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILE_REMOTE", "https://me:s3cret@example.org/it.git")
    shown = machine.service("install", "--dry-run").output + machine.service("install", "--dry-run", "--json").output
    shown += machine.service("install").output + machine.service("status").output + str(machine.status())
    assert "s3cret" not in shown
    assert shown.count("example.org") == 5
    assert "s3cret" in machine.unit.read_text()
    assert machine.unit.stat().st_mode & 0o77 == 0
    assert machine.service("install", "--dry-run").output.startswith("would leave")


def test_git_in_an_unusual_place_is_on_the_path(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without git, a store would be named by the project's path."""
    program(tmp_path / "brew" / "git", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/brew:{os.environ['PATH']}")
    machine.service("install")
    assert f'\nEnvironment="PATH={tmp_path}/brew:/usr/local/bin:/usr/bin:/bin"\n' in machine.unit.read_text()


def test_the_last_pass_is_told(machine: Machine) -> None:
    machine.service("install")
    assert "Last pass" not in machine.service("status").output
    begun = time.time_ns()
    with Watching(None) as watching:
        until(lambda: machine.status()["last_pass_ns"])
        assert watching.stop() == 0
    assert int(str(machine.status()["last_pass_ns"])) >= begun - 10**9
    assert "Last pass  2" in machine.service("status").output


def test_what_the_unit_starts_is_a_command(machine: Machine) -> None:
    """The words after the program, as the unit has them."""
    machine.service("install")
    (line,) = (line for line in machine.unit.read_text().splitlines() if line.startswith("ExecStart="))
    words = line.rpartition('"')[2].split()
    assert words == ["watch", "--all", "--quiet"]
    done = subprocess.run(command(*words, "--help"), capture_output=True, text=True, check=False)
    assert done.returncode == 0


def test_a_service_that_syncs(machine: Machine) -> None:
    assert "watch --all --quiet --sync with" in " ".join(
        machine.service("install", "--sync", "--dry-run").output.split()
    )
    assert "Syncs      each store that has a remote" in machine.service("install", "--sync").output
    assert machine.unit.read_text().count("watch --all --quiet --sync\n") == 1
    assert machine.status()["syncs"] is True
    (machine.place / "has-failed").touch()
    assert "To start it: reconcile service install --sync." in machine.service("status", code=3).output
    (machine.place / "has-failed").unlink()
    output = machine.service("install").output
    assert "It syncs no store any more. To sync them again: reconcile service install --sync" in output
    assert machine.status()["syncs"] is False
    assert "syncs no store" not in machine.service("install").output
    assert "--sync belongs to `reconcile service install`" in machine.service("remove", "--sync", code=2).output
    done = subprocess.run(command("watch", "--all", "--quiet", "--sync", "--help"), capture_output=True, check=False)
    assert done.returncode == 0


# launchd.


def test_an_agent_that_syncs(mac: Machine) -> None:
    mac.service("install", "--sync")
    assert plistlib.loads(mac.agent.read_bytes())["ProgramArguments"][-2:] == ["--quiet", "--sync"]
    assert mac.status()["syncs"] is True


def test_installing_the_agent(mac: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/of/claude <&>")
    result = mac.service("install")
    values = plistlib.loads(mac.agent.read_bytes())
    assert values["ProgramArguments"] == [f"{tmp_path}/installed/reconcile", "watch", "--all", "--quiet"]
    assert values["EnvironmentVariables"]["CLAUDE_CONFIG_DIR"] == "/of/claude <&>"
    assert (values["RunAtLoad"], values["KeepAlive"]) == (True, {"SuccessfulExit": False})
    assert stat.S_IMODE(mac.agent.stat().st_mode) == 0o600
    assert "running (process 4242), starts at login" in result.output
    assert "log out" not in result.output


@pytest.mark.long
def test_installing_the_agent_again_waits_for_the_old_process(mac: Machine) -> None:
    mac.service("install")
    mac.calls()
    mac.service("install")
    assert [call.split()[1] for call in mac.calls()][1:6] == ["bootout", "enable", *["bootstrap"] * 3]


def test_removing_the_agent(mac: Machine) -> None:
    mac.service("install")
    mac.service("remove")
    assert not mac.agent.exists()
    assert mac.status()["is_running"] is False


def test_an_agent_that_is_not_ours_is_left_alone(mac: Machine) -> None:
    mac.agent.parent.mkdir(parents=True)
    mac.agent.write_bytes(plistlib.dumps({"Label": "reconcile.watch-all", "ProgramArguments": ["x"]}))
    before = mac.agent.read_bytes()
    for action in ("install", "remove", "status"):
        assert "not written by reconcile" in mac.service(action, code=1).output
    assert mac.agent.read_bytes() == before


def test_without_a_login_at_the_screen_no_agent_is_left(mac: Machine) -> None:
    (mac.place / "no-manager").touch()
    result = mac.service("install", code=1)
    assert 'Could not find domain "gui/' in result.output
    assert "hint: log in at the screen" in result.output
    dry = mac.service("install", "--dry-run", code=1).output
    assert ("<key>ProgramArguments</key>" in dry, dry.endswith(result.output)) == (True, True)
    assert not mac.agent.exists()


def test_an_agent_that_does_not_start_is_removed(mac: Machine) -> None:
    (mac.place / "does-not-start").touch()
    result = mac.service("install", code=1)
    assert "Domain does not support specified action" in result.output
    assert "hint: log in at the screen" in result.output
    assert not mac.agent.exists()


def test_another_system_has_no_services(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "freebsd14")
    assert "no services are known on this system" in machine.service("status", code=1).output
