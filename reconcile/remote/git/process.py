"""The program git, as a sync runs it: its environment, and a limit for the time in which a host says nothing.

The user's own ssh, credentials and proxies count. Nothing else of the surroundings does: no ``GIT_DIR`` of a caller.
"""

from __future__ import annotations

import os
import re
import selectors
import shlex
import signal
import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from reconcile.remote.engine import RemoteError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SILENCE_S = 60.0
"""Seconds without an answer of the host after which git is ended. A transfer that goes on has no limit."""
_PATIENCE = 5
"""At a terminal it is so many times as long: a person whom git or ssh asks there may have to look for the answer."""
_POLL_S = 0.2
_KEPT = re.compile(r"GIT_(SSH.*|ASKPASS|PROXY_.*|SSL_.*|CONFIG_NOSYSTEM|CONFIG_GLOBAL|CONFIG_SYSTEM|EXEC_PATH)")
"""Variables of git that say how to reach a host, or where the user's configuration is."""
_PROTOCOLS = "file:git:http:https:ssh"
_NOBODY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "reconcile"), ("EMAIL", "reconcile@localhost"))
}


class SilentError(UnreachableError):
    """The host said nothing for too long."""


def environment() -> dict[str, str]:
    """Return the environment of every git that talks to a remote."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or _KEPT.fullmatch(name)}
    prompt = {} if os.isatty(0) else {"GIT_TERMINAL_PROMPT": "0"}
    own = {"LC_ALL": "C", "GIT_ALLOW_PROTOCOL": _PROTOCOLS, "GIT_NO_REPLACE_OBJECTS": "1", "GIT_NO_LAZY_FETCH": "1"}
    return kept | prompt | _NOBODY | own


def run_git(args: Sequence[str], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run git on this machine, and return its result. Raises `RemoteError` without a git."""
    try:
        return subprocess.run(["git", *args], env=environment(), input=stdin, capture_output=True, check=False)  # noqa: S603, S607
    except OSError as error:
        raise _absent(error) from None


def name_in_ssh(host: str) -> str:
    """Return the name of a host for which the user's ssh configuration may have another one."""
    try:
        program = shlex.split(os.environ.get("GIT_SSH_COMMAND", "ssh"))
        if [os.path.basename(word) for word in program[:1]] != ["ssh"]:
            return host
        done = subprocess.run([*program, "-G", "--", host], capture_output=True, check=False, stdin=subprocess.DEVNULL)  # noqa: S603
    except (OSError, ValueError):
        return host
    found = re.search(r"^hostname ([^\s/]+)$", done.stdout.decode(errors="replace"), re.MULTILINE)
    name = found[1] if found else host
    return f"[{name}]" if ":" in name and not name.startswith("[") else name


def ask_host(
    args: Sequence[str], host: str, variables: Mapping[str, str] | None = None, limit_s: float | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a git that talks to a host, and return its result. ``host`` is the address as messages name it.

    Raises:
        SilentError: it printed nothing for ``limit_s`` seconds, or else for `SILENCE_S`, at a terminal for longer, and
            was ended with all processes that it had started.
        RemoteError: there is no git.
    """
    printed = {1: bytearray(), 2: bytearray()}
    if limit_s is None:
        limit_s = SILENCE_S * (_PATIENCE if os.isatty(0) else 1)
    with _started(args, environment() | dict(variables or {})) as process, selectors.DefaultSelector() as selector:
        assert process.stdout is not None  # noqa: S101 - both are pipes
        assert process.stderr is not None  # noqa: S101
        selector.register(process.stdout, selectors.EVENT_READ, 1)
        selector.register(process.stderr, selectors.EVENT_READ, 2)
        waited = 0.0
        while selector.get_map():
            ready = selector.select(_POLL_S)
            # A process that git has left behind, as ssh for its next use, may keep the pipes open.
            if not ready and process.poll() is not None:
                break
            waited = 0.0 if ready else waited + _POLL_S
            if waited >= limit_s:
                problem = f"{host}: the host gave no answer for {limit_s:g} seconds"
                raise SilentError(problem, "check the network, then run it again")
            for key, _ in ready:
                if content := os.read(key.fd, 1 << 16):
                    printed[key.data] += content
                else:
                    selector.unregister(key.fileobj)
        code = process.wait()
    return subprocess.CompletedProcess(args, code, bytes(printed[1]), bytes(printed[2]))


@contextmanager
def _started(args: Sequence[str], variables: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start git, and end it with all that it has started if the caller fails.

    At a terminal it stays in the group of the caller, as only that may ask for a password. Otherwise it gets a session
    of its own: ssh would ask at the terminal of the session, even if the standard input is another file.
    """
    is_alone = not os.isatty(0)
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(  # noqa: S603
            ["git", *args],  # noqa: S607
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            start_new_session=is_alone,
        )
    except OSError as error:
        raise _absent(error) from None
    try:
        yield process
    except BaseException:
        with suppress(ProcessLookupError):
            if is_alone:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.terminate()
        process.wait()
        raise
    finally:
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _absent(error: OSError) -> RemoteError:
    return RemoteError(f"git can't be run: {error}", "install git 2.30 or later")
