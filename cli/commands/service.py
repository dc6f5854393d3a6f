"""``reconcile service``: installs the watcher of every project as a service, shows it, and removes it."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

import click

from reconcile.fs.locks import read_home_watcher
from reconcile.fs.posix import process_lives
from reconcile.remote.git.address import without_password
from reconcile.state.directory import state_directory

from ..command import Command, Several
from ..misuse import Misuse
from ..options import options_of
from ..output.documents import print_document
from ..output.errors import ExitCode
from ..output.screen import wrap
from ..output.text import Style, clean, format_time, short_path, show, visible
from ..service.files import Service, variables_of
from ..service.managers import ServiceError, manager_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..arguments import Options
    from ..service.managers import Manager, State

_USUAL = ("/usr/local/bin", "/usr/bin", "/bin")
"""The directories in which services look for programs."""
_AT = 11


@click.command(
    "service",
    cls=Command,
    several=Several.OWN,
    accepts=("dry_run", "json"),
    examples=(
        ("reconcile service install", "Keep every project of yours from now on."),
        ("reconcile service status", "Show whether it runs, and what it keeps."),
        ("reconcile service remove", "Stop it, and remove its file."),
    ),
)
@click.argument("action", type=click.Choice(["install", "status", "remove"]), metavar="ACTION")
@click.option("--sync", is_flag=True, help="With install: sync each store that has a remote, too.")
@click.pass_context
def service(context: click.Context, action: str, *, sync: bool) -> None:
    """Keep every project with a service of the system.

    ACTION is install, status or remove. `status` ends with exit code 3 if the service does not run. The service runs
    `reconcile watch --all` from every login on: it is a unit of systemd's user manager, or an agent of launchd. It
    needs no administrator. Variables that name the places of Claude Code, of JP and of reconcile are written into its
    file, as a service doesn't get those of your shell. After you have changed one, or moved the program: `reconcile
    service install`.
    """
    options = options_of(context)
    if sync and action != "install":
        raise Misuse("--sync belongs to `reconcile service install`", "reconcile service --help", context)
    manager = manager_of(sys.platform, os.environ)
    if options.is_dry and action != "status":
        _report_dry(options, manager, _new(sync=sync) if action == "install" else None)
        return
    before = manager.read()
    if action == "install":
        manager.install(_new(sync=sync))
    if action == "remove":
        manager.remove()
    is_running = _report(options, manager, action, before)
    if action == "status" and not is_running:
        context.exit(ExitCode.PENDING)


def _new(*, sync: bool) -> Service:
    return Service(_program(), variables_of(os.environ, _search_path()), sync)


def _report_dry(options: Options, manager: Manager, new: Service | None) -> None:
    """Print what would be written and started, or stopped and removed.

    Raises:
        ServiceError: an installation would raise it. The file that it would write is printed first.
    """
    there, file, content = manager.read(), short_path(manager.file), ""
    if new is not None:
        content = "" if there == new else without_password(manager.text(new))
        try:
            manager.check(new)
        except ServiceError:
            if content and not options.json:
                show([f"the file would be {file}:", *_indented(content)])
            raise
        verb = "write" if there is None else "leave" if there == new else "replace"
        text = f"would {verb} {file}, and start {short_path(new.program)} {' '.join(new.arguments)} with {manager.name}"
    elif there is None:
        text = "nothing to do: the service is not installed"
    else:
        text = f"would stop the service, and remove {file}"
    if options.json:
        document = {"format": "reconcile.service/1", "dry_run": True, "file": manager.file, "would": text}
        print_document(options, document | ({"content": content} if content else {}))
    else:
        colon = ":" if content else ""
        show([*wrap(f"{text}{colon}", Style.choose(options.color).columns), *_indented(content)])


def _indented(content: str) -> list[str]:
    return [f"  {visible(line)}".rstrip() for line in content.splitlines()]


def _program() -> str:
    """Return the absolute path of this program. A link stays one: an update of the program replaces its target."""
    named = shutil.which(sys.argv[0]) if os.path.basename(sys.argv[0]) == "reconcile" else None
    beside = os.path.join(os.path.dirname(sys.executable), "reconcile")
    path = named or shutil.which("reconcile") or shutil.which(beside)
    if path is None:
        raise ServiceError("the program reconcile is in no directory of PATH", "add its directory to PATH")
    return os.path.abspath(path)


def _search_path() -> tuple[str, ...]:
    """Return the directories in which the service looks for git, which names the stores; none: the usual ones."""
    git = shutil.which("git")
    if git is None or os.path.dirname(git) in _USUAL:
        return ()
    return (os.path.dirname(os.path.abspath(git)), *_USUAL)


def _report(options: Options, manager: Manager, action: str, before: Service | None) -> bool:
    """Print what is known of the service, and return whether it runs, as far as the manager or the watcher tells.

    ``before``: what was installed before the action.
    """
    installed, state = manager.read(), manager.state()
    states = os.path.dirname(state_directory("jp-", os.environ, sys.platform))
    holder, last_pass = read_home_watcher(states)
    pid = state.pid or (holder.pid if holder is not None and process_lives(holder.pid) else None)
    is_running = installed is not None and (pid is not None if state.is_running is None else state.is_running)
    troubles = [*_troubles(manager.name, installed, state, None if is_running else pid, is_new=action == "install")]
    if action == "install" and before is not None and before.syncs and installed is not None and not installed.syncs:
        troubles.append(f"It syncs no store any more. To sync them again: {_install(before)}")
    if options.json:
        document = {
            "format": "reconcile.service/1",
            "manager": manager.name,
            "file": manager.file,
            "is_installed": installed is not None,
            "is_enabled": state.is_enabled,
            "is_running": state.is_running,
            "pid": pid,
            "program": None if installed is None else installed.program,
            "syncs": installed is not None and installed.syncs,
            "environment": {} if installed is None else _shown(installed),
            "last_pass_ns": last_pass,
            "stops_at_logout": state.stops_at_logout,
            "trouble": troubles,
        }
        print_document(options, document)
        return is_running
    style = Style.choose(options.color)
    if installed is None:
        show([f"The service of {manager.name} {'is not installed' if before is None else 'was removed'}."])
        if pid is not None:
            show([f"Process {pid} watches every project."])
        return is_running
    facts = [
        ("Service", _words(state, pid if is_running else None)),
        ("File", short_path(manager.file)),
        ("Program", installed.program),
    ]
    facts += [("Syncs", "each store that has a remote, once a minute")] if installed.syncs else []
    facts += [("Variable", f"{name}={value}") for name, value in _shown(installed).items()]
    facts += [("Last pass", format_time(last_pass))] if last_pass is not None else []
    lines = [line for name, text in facts for line in wrap(clean(text), style.columns, f"{name:{_AT}}", " " * _AT)]
    for trouble in troubles:
        lines += ["", *wrap(trouble, style.columns)]
    show(lines)
    return is_running


def _shown(installed: Service) -> dict[str, str]:
    """Return the variables in the file, an address of a remote without its password."""
    return {name: without_password(value) for name, value in installed.environment.items()}


def _words(state: State, pid: int | None) -> str:
    if state.is_running is None:
        return "installed"
    enabled = "starts at login" if state.is_enabled else "does not start at login"
    return f"{'running' if state.is_running else 'not running'}{f' (process {pid})' if pid else ''}, {enabled}"


def _install(service: Service) -> str:
    """Return the command that installs a service with the same options."""
    return f"reconcile service install{' --sync' if service.syncs else ''}"


def _troubles(name: str, installed: Service | None, state: State, other: int | None, *, is_new: bool) -> Iterator[str]:
    """Yield what needs attention, each with what to do.

    ``other``: the process that watches every project, if the service does not. ``is_new``: it was installed just now.
    """
    if state.trouble:
        yield f"{state.trouble}."
    if installed is None:
        return
    log = " Its log: journalctl --user --unit reconcile" if name == "systemd" else ""
    if shutil.which(installed.program) is None:
        yield f"The program is not there any more. Install the service again: {_install(installed)}"
    elif other is not None:
        yield f"Process {other} watches every project, so that the service can't. Stop it, then: {_install(installed)}"
    elif False in (state.is_enabled, state.is_running):
        yield f"It did not start.{log}" if is_new else f"To start it: {_install(installed)}.{log}"
    if state.stops_at_logout:
        yield "It ends when you log out. To let it run on, also without a login: loginctl enable-linger"
