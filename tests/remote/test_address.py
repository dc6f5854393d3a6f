"""A password in the address of a remote is never printed."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from reconcile.remote.engine import RemoteError
from reconcile.remote.git.address import checked_url, without_password
from tests.support.projects.machines import git

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.projects.machines import Machine

REDACTED = "<redacted>"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:secret@example.org/x.git", "https://me:<redacted>@example.org/x.git"),
        ("https://me:sec@ret:@example.org/x.git", "https://me:<redacted>@example.org/x.git"),
        ("https://me:se cret@example.org/x.git", "https://me:<redacted>@example.org/x.git"),
        ("https://:secret@example.org/x", "https://:<redacted>@example.org/x"),
        ("HTTPS://secret@example.org/x", "HTTPS://<redacted>@example.org/x"),
        ("ssh://me:secret@example.org:22/x", "ssh://me:<redacted>@example.org:22/x"),
        ("ssh://git@example.org/x", "ssh://git@example.org/x"),
        ("git@example.org:me/chats.git", "git@example.org:me/chats.git"),
        ("https://example.org:8443/@me/x:y@z", "https://example.org:8443/@me/x:y@z"),
        ("/home/me@work:x/chats.git", "/home/me@work:x/chats.git"),
    ],
)
def test_a_password_is_replaced(url: str, shown: str) -> None:
    assert without_password(url) == shown
    assert without_password(f"fatal: unable to access '{url}': no\nthen {url}") == (
        f"fatal: unable to access '{shown}': no\nthen {shown}"
    )


@pytest.mark.parametrize(
    "args",
    [
        ("remote", "add"),
        ("sync",),
        ("sync", "--dry-run"),
        ("pull", "--json"),
        ("remote", "remove"),
        ("remote", "add", "--name", "x y"),
    ],
)
def test_no_message_about_an_address_has_its_password(new_laptop: Machine, args: tuple[str, ...]) -> None:
    with new_laptop.at_work():
        url = "http://me:hunter2@127.0.0.1:1/chats.git"
        found = new_laptop.world.run("--workspace", new_laptop.project, *args, url)
    assert found.exit_code != 0
    assert "hunter2" not in found.output
    assert "hunter2" not in found.stderr


def test_an_address_that_is_refused_is_shown_without_its_password(new_laptop: Machine) -> None:
    found = new_laptop.run("remote", "add", "x::http://me:hunter2@127.0.0.1/", code=4).output
    assert REDACTED in found
    assert "hunter2" not in found


def test_gits_own_daemon_asks_for_no_password(tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match="everyone can read it"):
        checked_url("git://example.org:9418/chats.git", str(tmp_path))
    assert checked_url("git://[::1]/chats.git", str(tmp_path)) == "git://[::1]/chats.git"


def test_a_bare_repository_beside_a_project_of_its_name_is_another_one(tmp_path: Path) -> None:
    project, bare = tmp_path / "mini", tmp_path / "mini.git"
    git(tmp_path, "init", "-q", str(project))
    git(tmp_path, "init", "-q", "--bare", str(bare))
    for spelling in (str(bare), f"file://{bare}"):
        assert checked_url(spelling, str(project)) == spelling
    for own in (project, project / ".git"):
        with pytest.raises(RemoteError, match="the project's own repository"):
            checked_url(str(own), str(project))
    git(project, "remote", "add", "upstream", "https://example.org/them/code.git")
    git(project, "remote", "set-url", "--push", "upstream", "../mini.git")
    with pytest.raises(RemoteError, match="the remote 'upstream' of the project"):
        checked_url(str(bare), str(project))
    git(project, "remote", "remove", "upstream")
    git(project, "remote", "add", "origin", str(bare))
    with pytest.raises(RemoteError, match="the remote 'origin' of the project"):
        checked_url(str(bare), str(project))


@pytest.mark.parametrize(
    ("origin", "spelling"),
    [
        ("git@example.org:/srv/code.git", "ssh://git@example.org/srv/code.git"),
        ("git@example.org:/srv/code.git", "ssh://me@example.org:2222/srv/code"),
        ("git@example.org:/srv/code.git", "git@example.org:/srv/other/../code.git"),
        ("git@example.org:/srv/code.git", "git@example.org:/srv//./code.git/"),
        ("ssh://git@example.org/srv/my%20code.git", "git@EXAMPLE.org:/srv/my code.git"),
        ("ssh://git@example.org/srv/%63ode.git", "ssh://git@example.org/srv/code.git"),
        ("git@example.org:code.git", "ssh://git@example.org/~/code.git"),
        ("git@example.org:code.git", "git@example.org:~git/code.git"),
        ("git@example.org:me/code.git", "ssh://git@example.org/me/code"),
        ("git@example.org:me/code.git", "git+ssh://example.org/me/code"),
        ("git@example.org:me/code.git", "https://me:secret@example.org/me/code"),
        ("https://example.org/me/code.git", "git@example.org:/me/code.git"),
        ("git@example.org:me/code.git", "[git@example.org:2222]:me/code.git"),
        ("git@[2001:db8::1]:me/code.git", "ssh://[2001:db8::1]:22/me/code.git"),
    ],
)
def test_each_spelling_of_the_projects_remote_is_refused(tmp_path: Path, origin: str, spelling: str) -> None:
    git(tmp_path, "init", "-q")
    for there, wanted in ((origin, spelling), (spelling, origin)):
        git(tmp_path, "config", "remote.origin.url", there)
        with pytest.raises(RemoteError, match="the remote 'origin' of the project"):
            checked_url(wanted, str(tmp_path))


@pytest.mark.long
def test_a_repository_of_this_machine_over_ssh_is_that_of_its_path(tmp_path: Path) -> None:
    project, bare = tmp_path / "mini", tmp_path / "host" / "code one.git"
    git(tmp_path, "init", "-q", str(project))
    git(tmp_path, "init", "-q", "--bare", str(bare))
    (tmp_path / "link").symlink_to(bare)
    hosts = ("127.0.0.1", "localhost", "[::1]", socket.gethostname())
    spellings = [str(bare), str(bare.with_suffix("")), str(tmp_path / "link"), f"{bare}/../../host/{bare.name}"]
    spellings += [f"file://{quote(str(bare))}", *(f"me@{host}:{bare}" for host in hosts)]
    spellings += [f"ssh://me@{host}:2222{quote(str(bare))}" for host in hosts]
    for origin in spellings:
        git(project, "config", "remote.origin.url", origin)
        for wanted in spellings:
            with pytest.raises(RemoteError, match="the remote 'origin' of the project"):
                checked_url(wanted, str(project))
    git(project, "config", "remote.origin.url", str(tmp_path / "host" / "other.git"))
    for wanted in spellings:
        if os.path.isdir(wanted):
            assert checked_url(wanted, str(project)) == os.path.abspath(wanted)


def test_a_host_of_the_ssh_configuration_is_the_one_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "ssh_config"
    config.write_text("Host work\n  HostName example.org\n")
    monkeypatch.setenv("GIT_SSH_COMMAND", f"ssh -F {config}")
    git(tmp_path, "init", "-q")
    git(tmp_path, "config", "remote.origin.url", "git@example.org:me/code.git")
    with pytest.raises(RemoteError, match="the remote 'origin' of the project"):
        checked_url("work:me/code.git", str(tmp_path))
