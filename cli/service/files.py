"""The file of the service: a unit of systemd, or a property list of launchd; written, and read again.

The rules of systemd are those of systemd.service(5), systemd.exec(5) and systemd.unit(5). A word may be in double
quotes, and has C-like escapes there. ``%`` begins a specifier unless it is doubled, also in quotes. ``$`` is not
expanded in ``Environment=``, nor in a command that begins with ``:``, which version 244 and later know. No program is
started whose path has a quote, a backslash or a control character (seen with systemd-analyze of version 252).
"""

from __future__ import annotations

import plistlib
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LABEL = "reconcile.watch-all"
_ARGUMENTS, _SYNC = ("watch", "--all", "--quiet"), "--sync"
"""With ``--quiet``: the system's log may have other readers, and titles are private."""
MARK = "Written by `reconcile service install`, which may replace it. `reconcile service remove` removes it."
NOT_AGAIN = (2, 5)
"""Exit codes after which another start would end the same way: wrong usage, and another watcher."""


class Service(NamedTuple):
    """The content of the file: the path of the program, and the variables of its environment.

    ``syncs``: the watcher syncs the stores with their remotes, too.
    """

    program: str
    environment: Mapping[str, str]
    syncs: bool = False

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words after the program."""
        return (*_ARGUMENTS, _SYNC) if self.syncs else _ARGUMENTS


def unit_of(service: Service) -> str:
    """Return the unit of systemd."""
    variables = (f"Environment={_quoted(f'{name}={value}')}" for name, value in service.environment.items())
    plain = ":" if "$" in service.program else ""
    command = " ".join((_quoted(plain + service.program), *service.arguments))
    lines = (
        f"# {MARK}",
        "[Unit]",
        "Description=Keep the conversations of every project",
        "",
        "[Service]",
        f"ExecStart={command}",
        "ExecReload=/bin/kill -HUP $MAINPID",
        *variables,
        "Nice=10",
        "Restart=on-failure",
        "RestartSec=10",
        f"RestartPreventExitStatus={' '.join(map(str, NOT_AGAIN))}",
        "",
        "[Install]",
        "WantedBy=default.target",
        "",
    )
    return "\n".join(lines)


def is_startable(program: str) -> bool:
    """Tell whether systemd starts a program at this path."""
    return program.isprintable() and not set(program) & set("\"'\\")


def read_unit(text: str) -> Service | None:
    """Return what a unit says; None if it isn't one of `unit_of`."""
    if not text.startswith(f"# {MARK}\n"):
        return None
    values = re.findall(r"^(ExecStart|Environment)=(\"(?:[^\"\\]|\\.)*\")(.*)", text, re.MULTILINE)
    start = next(
        ((_unquoted(value).removeprefix(":"), rest) for name, value, rest in values if name == "ExecStart"), None
    )
    pairs = (_unquoted(value).partition("=") for name, value, _ in values if name == "Environment")
    if start is None:
        return None
    return Service(start[0], {name: value for name, _, value in pairs}, _SYNC in start[1].split())


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "%": "%%"}
_MEANINGS = {escape: character for character, escape in _ESCAPES.items()}


def _quoted(word: str) -> str:
    return f'"{"".join(_ESCAPES.get(character, character) for character in word)}"'


def _unquoted(text: str) -> str:
    return re.sub(r"\\.|%%", lambda match: _MEANINGS.get(match[0], match[0]), text[1:-1])


def property_list_of(service: Service) -> str:
    """Return the property list of launchd."""
    values = {
        "Label": LABEL,
        "ProgramArguments": [service.program, *service.arguments],
        "EnvironmentVariables": dict(service.environment),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ProcessType": "Background",
        "ThrottleInterval": 30,
    }
    head, mark, rest = plistlib.dumps(values).decode().partition("<plist")
    return f"{head}<!-- {MARK} -->\n{mark}{rest}"


def read_property_list(text: str) -> Service | None:
    """Return what a property list says; None if it isn't one of `property_list_of`."""
    if f"<!-- {MARK} -->" not in text:
        return None
    try:
        values = plistlib.loads(text.encode())
        program, *words = values["ProgramArguments"]
        environment = {str(name): str(value) for name, value in values["EnvironmentVariables"].items()}
        return Service(str(program), environment, _SYNC in words)
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def variables_of(environ: Mapping[str, str], search_path: Sequence[str] = ()) -> dict[str, str]:
    """Return the variables that change what the program does: a service doesn't get those of a shell.

    ``search_path``: the directories of ``PATH``, if the usual ones don't suffice.
    """
    named = ("CLAUDE_CONFIG_DIR", "JP_USER_DATA_DIR", *(f"XDG_{kind}_HOME" for kind in _KINDS))
    names = sorted(name for name in environ if name in named or name.startswith("RECONCILE_"))
    found = {name: environ[name] for name in names if environ[name]}
    return found | ({"PATH": ":".join(search_path)} if search_path else {})


_KINDS = ("CACHE", "CONFIG", "DATA", "STATE")
