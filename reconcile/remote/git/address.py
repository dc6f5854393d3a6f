"""The address of a remote: what is refused, and what is shown of it.

git takes an address with a password, as ``https://me:secret@example.org/x.git``, and so does a sync: a container often
has no other way. But only git gets to see the password.
"""

from __future__ import annotations

import os
import re
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from reconcile.remote.engine import RemoteError, UnreachableError
from reconcile.remote.git.process import ask_host, name_in_ssh, run_git

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TRANSPORT = re.compile(r"[0-9A-Za-z+.-]+::")
_WEB = re.compile(r"(?P<scheme>https?://)(?:[^/@]*@)?(?P<rest>.*)", re.DOTALL)
_DAEMON = re.compile(r"git://(?P<host>\[[^\]]*\]|[^/:]*)", re.IGNORECASE)
_SSH = re.compile(r"(?:ssh|git\+ssh|ssh\+git)://(?:[^/@]*@)?(?P<host>\[[^\]]*\]|[^/:]*)(?::[0-9]*)?/+(?P<path>[^~].*)")
_SCP = re.compile(r"(?:[^/:@]*@)?(?P<host>\[[^\]/]*\]|[^/:]+):/*(?P<path>[^~/].*)")
_ANSWER_S = 5.0
"""Seconds in which a host of ssh has to answer over https: many have no such server."""
_LOOPBACK = {"localhost", "127.0.0.1", "[::1]"}
_URL = re.compile(
    r"(?P<scheme>[a-z][0-9a-z+.-]*)://(?:[^/]*@)?(?P<host>\[[^\]]*\]|[^/:]*)(?::[0-9]*)?(?P<path>/.*|)",
    re.IGNORECASE | re.DOTALL,
)
_SCP_PARTS = re.compile(
    r"(?:\[(?:[^]/@]*@)?(?P<host>[^]/:@]+)(?::[0-9]*)?\]|(?:[^/:]*@)?(?P<other>\[[^]/]*\]|[^/:]+)):(?P<path>.*)",
    re.DOTALL,
)
_OF_HOME = re.compile(r"^/?~[^/]*/?")
"""The beginning of a path in the home of a host's user."""
_CREDENTIALS = re.compile(
    r"""(?P<scheme>[A-Za-z][0-9A-Za-z+.-]*)://(?P<found>
        [^/?#\x00-\x1f]* |                          # as git reads it
        [^][:/?#\x00-\x1f]*:(?!\d*[/?#])[^\s]*     # a password that should have been encoded: no port follows
    )@""",
    re.VERBOSE,
)
_REDACTED = "<redacted>"
"""git's own word for it."""


def without_password(text: str) -> str:
    """Return a text, each address in it without its password. On the web, a name alone may be a token, too."""

    def shown(match: re.Match[str]) -> str:
        scheme, (user, colon, _) = match["scheme"], match["found"].partition(":")
        if not colon and not scheme.lower().startswith("http"):
            return match[0]
        return f"{scheme}://{user}:{_REDACTED}@" if colon else f"{scheme}://{_REDACTED}@"

    return _CREDENTIALS.sub(shown, text)


def checked_url(url: str, project: str) -> str:
    """Return an address, a path made absolute, if conversations may be sent to it.

    Raises:
        RemoteError: the address is no repository of the user's own, or the world can read it.
    """
    if url.startswith("-") or _TRANSPORT.match(url) or any(ord(letter) < ord(" ") for letter in url):
        raise RemoteError(f"{without_password(url)!r} is no address that is taken", "use ssh, https, or a path")
    url = os.path.abspath(url) if os.path.isdir(url) else url
    if shared := _of_project(url, project):
        raise _shared(f"{without_password(url)} is {shared}")
    if readable := _public_address(url):
        shown, is_same = without_password(url), readable == url
        over = "it" if is_same else readable
        raise RemoteError(f"{shown}: everyone can read {over} without a password", "use a private repository")
    return url


def refuse_commits_of_project(commits: Iterable[str], shown: str, project: str) -> None:
    """Compare a remote with the project by content: an address may have spellings that no program knows.

    ``commits`` are those of the remote's branches, and ``shown`` is its address without a password.

    Raises:
        RemoteError: the project has one of them.
    """
    if not os.path.isdir(project):
        return
    asked = "".join(f"{name}\n" for name in commits).encode()
    found = run_git(["-C", project, "cat-file", "--batch-check"], asked).stdout.decode(errors="replace")
    for name, kind, *_ in map(str.split, found.splitlines()):
        if kind == "commit":
            raise _shared(f"{shown} has a commit of the project ({name[:10]})")


def _shared(problem: str) -> RemoteError:
    return RemoteError(
        f"{problem}, and private conversations would be sent to whoever can read that",
        "use a private repository of your own",
    )


def _of_project(url: str, project: str) -> str:
    """Return which repository of the project an address is; empty: none."""
    if not os.path.isdir(project):
        return ""
    listed = run_git(["-C", project, "remote"]).stdout.decode(errors="surrogateescape").split()
    wanted = _resolved(project, url)
    for name in listed:
        pushed = run_git(["-C", project, "remote", "get-url", "--push", "--all", name])
        push_addresses = pushed.stdout.decode(errors="surrogateescape").splitlines()
        addresses = (_resolved(project, name), *(_absolute(project, text) for text in push_addresses))
        if any(_is_same(wanted, address) for address in addresses):
            return f"the remote {name!r} of the project"
    top = run_git(["-C", project, "rev-parse", "--path-format=absolute", "--git-common-dir", "--show-toplevel"])
    own = top.stdout.decode(errors="surrogateescape").splitlines()
    return "the project's own repository" if any(_is_same(wanted, path) for path in own) else ""


def _resolved(project: str, name: str) -> str:
    """Return the address that git uses for a name or an address: the user may have abbreviations."""
    return _absolute(project, _for_git(["-C", project, "ls-remote", "--get-url", name], name))


def _for_git(question: list[str], address: str) -> str:
    """Return git's answer about an address, which may be an abbreviation; without an answer, the address."""
    return run_git(question).stdout.decode(errors="surrogateescape").strip() or address


def _absolute(project: str, text: str) -> str:
    """Return an address; a path relative to the project, as git takes it, is made absolute."""
    path = os.path.join(project, text)
    return os.path.realpath(path) if os.path.isdir(path) else text


def _is_same(one: str, other: str) -> bool:
    """Tell whether two addresses are of one repository. A project ``a`` may have another one, ``a.git``, beside it."""
    first, second = _location(one), _location(other)
    if not (first.host or second.host):
        return not _directories(first.path).isdisjoint(_directories(second.path))
    if _plain(first.path) != _plain(second.path) or not (first.host and second.host):
        return False
    return first.host == second.host or name_in_ssh(first.host).lower() == name_in_ssh(second.host).lower()


class _Location(NamedTuple):
    """The location of a repository: a host, and a path there. This machine is an empty host, with an absolute path."""

    host: str
    path: str


def _location(address: str) -> _Location:
    """Return where a repository is: a host serves the same ones to each user, at each port, by each protocol."""
    if os.path.isabs(address):
        return _Location("", address)
    if url := _URL.fullmatch(address):
        host, path, scheme = url["host"].lower(), unquote(url["path"]), url["scheme"].lower()
    elif scp := _SCP_PARTS.fullmatch(address):
        host, path, scheme = (scp["host"] or scp["other"]).lower(), scp["path"], "ssh"
    else:
        return _Location("", os.path.abspath(address))
    is_here = host in _LOOPBACK or host.startswith("127.") or host == socket.gethostname().lower()
    if scheme == "file" or (is_here and not scheme.startswith("http")):
        is_of_home = _OF_HOME.match(path) or not path.startswith("/")
        return _Location("", os.path.join(os.path.expanduser("~"), _OF_HOME.sub("", path)) if is_of_home else path)
    return _Location(host, path)


def _directories(path: str) -> set[str]:
    """Return the directories that git opens for a path, without symbolic links and `..`."""
    real = os.path.realpath(path)
    if not os.path.isdir(real):
        real = os.path.realpath(f"{real}.git")
    return {real, os.path.realpath(os.path.join(real, ".git"))}


def _plain(path: str) -> str:
    """Return what the spellings of one path on a host have in common: the first `/` and the ending may be absent."""
    text = os.path.normpath("/" + _OF_HOME.sub("", path)).lstrip("/")
    return text.removesuffix("/.git").removesuffix(".git").rstrip("/")


def _public_address(url: str) -> str:
    """Return the address at which everyone can read a repository: of the web, or of git's daemon; empty: none is known.

    A host of ssh most often serves its repositories at the same paths over https, too. So they are tried there, at the
    usual port. A host that doesn't answer soon has none, as far as one can know.
    """
    if daemon := _DAEMON.match(url):
        return "" if daemon["host"].lower() in _LOOPBACK else url
    text = _for_git(["ls-remote", "--get-url", url], url)
    if web := _WEB.fullmatch(url) or _WEB.fullmatch(text):
        return url if _answers(web["scheme"] + web["rest"], without_password(url)) else ""
    for addresses in _over_https(text):
        with suppress(UnreachableError):
            for address in addresses:
                if _answers(address, without_password(url), _ANSWER_S):
                    return address
    return ""


def _over_https(url: str) -> Iterator[list[str]]:
    """Yield, for each host, the addresses over https that a repository of an ssh address would have."""
    found = _SSH.fullmatch(url) or (None if "://" in url else _SCP.fullmatch(url))
    if found is None:
        return
    path = found["path"].rstrip("/")
    other = path.removesuffix(".git") if path.endswith(".git") else f"{path}.git"
    for host in dict.fromkeys((name_in_ssh(found["host"]), found["host"])):
        yield [f"https://{host}/{each}" for each in (path, other)]


def _answers(address: str, shown: str, limit_s: float | None = None) -> bool:
    """Tell whether git reads an address of the web without any of the user's credentials."""
    anonymous = {
        "HOME": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ASKPASS": "false",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "http:https",
    }
    settings = [f"include.path={path}" for path in _configurations()]
    settings += ["credential.helper=", "http.extraHeader=", "core.askPass=false", *_certificates(address)]
    if "=" not in address:  # the user may have ssh in its place, which has a key
        settings.append(f"url.{address}.insteadOf={address}")
    options = [word for setting in settings for word in ("-c", setting)]
    return not ask_host([*options, "ls-remote", "--quiet", address], shown, anonymous, limit_s).returncode


def _certificates(address: str) -> Iterator[str]:
    """Yield the settings of the certificates that the user trusts, without a `~`: the anonymous git has no home."""
    found = run_git(["config", "--null", "--type=path", "--get-urlmatch", "http", address])
    for entry in found.stdout.decode(errors="surrogateescape").split("\0"):
        key, _, value = entry.partition("\n")
        if key in ("http.sslcainfo", "http.sslcapath"):
            yield f"{key}={value}"


def _configurations() -> list[str]:
    """Return the files with the user's configuration of git: a host may be reached through the proxy of one alone."""
    if named := os.environ.get("GIT_CONFIG_GLOBAL"):
        return [os.path.abspath(named)]
    above = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return [os.path.join(above, "git", "config"), os.path.expanduser("~/.gitconfig")]
