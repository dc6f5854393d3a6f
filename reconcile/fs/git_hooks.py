"""git's hooks of a repository: where they are, and the scripts, attributes and settings that `reconcile` adds to it.

A hook of the user's is never overwritten: a shell script gets a block of lines, and any other file is put aside and
called. Removal restores every file byte for byte. Premise: ``git`` is the user's own.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.errors import ReconcileError
from reconcile.fs.files import read_if_there
from reconcile.fs.git_state import checkout_top
from reconcile.fs.hook_files import HOOKS, REFUSED, block, block_of, in_front, with_block, without_block

if TYPE_CHECKING:
    from collections.abc import Iterator

ATTRIBUTES = ".gitattributes"

_ASIDE = ".before-reconcile"
"""The end of the name of a user's hook that is called by ours."""
_LEGACY = ".legacy"
"""The end of the name that the pre-commit framework gives to a hook that was there before it, and calls."""
_OLD = ".old"
"""The end of the name that lefthook gives to such a hook. lefthook doesn't call it."""
_WRITTEN = "# Written by `reconcile hooks install`; `reconcile hooks remove` removes these lines."
_ALONE = "# The whole file is."
_SHEBANG = b"#!/bin/sh\n"
_CALLS = (
    'hook="$(dirname "$0")/{name}' + _ASIDE + '"\n[ -x "$hook" ] || exit 0\nexec "$hook" "$@"\n'
)  # the user's hook gets the arguments and the input
# Modules beside the project, or of another Python, must not replace those of the check.
_OWN_MODULES = "unset PYTHONPATH PYTHONHOME PYTHONPLATLIBDIR PYTHONPYCACHEPREFIX"
# A commit without conversations must not need a program that works. Only git is asked: for staged files, then for the
# projects, since a directory of conversations that is a link has its files elsewhere. In zsh and ksh the end of a pipe
# is no process of its own, hence the inner parentheses, and `path` is no free name. git quotes odd names.
_HAS_NONE = (
    "unset GIT_LITERAL_PATHSPECS GIT_GLOB_PATHSPECS GIT_NOGLOB_PATHSPECS GIT_ICASE_PATHSPECS; "
    "git --no-replace-objects -c diff.relative=false diff --cached --quiet --no-ext-diff --no-renames "
    "-- ':(top,glob)**/.jp/conversations/**' 2>/dev/null "
    "&& ( { echo .jp; git -c core.quotePath=false ls-files -- ':(top,glob)**/.jp' ':(top,glob)**/.jp/**' "
    "':(top,exclude,glob)**/.jp/conversations/**'; } | ( while IFS= read -r name; do "
    'case $name in \\"*) exit 1;; esac; name=./$name/; name=${name%%/.jp/*}/.jp; '
    'if [ -L "$name" ] || [ -L "$name/conversations" ]; then exit 1; fi; done ) ) && exit 0'
)
_UNCHECKED = "reconcile: the commit could not be checked; to commit all the same: git commit --no-verify"
_LINES = (
    ".jp/conversations/**/events.json merge=reconcile diff=reconcile",
    ".jp/conversations/**/metadata.json merge=reconcile",
)
_ATTRIBUTES = (_WRITTEN, _ALONE, *_LINES)
_COMMANDS = {"merge.reconcile": ("driver", "merge-driver %O %A %B %P"), "diff.reconcile": ("textconv", 'textconv "$1"')}
"""git's sections, each with its key for a command, and how that command calls `reconcile` in every version."""
_DIRECTORIES = "# So are directories above it: "


class HookError(ReconcileError):
    """A hook can't be installed or removed; the message says why."""


class State(StrEnum):
    """The states of a hook, of the attributes and of the settings."""

    INSTALLED = "installed"
    OUTDATED = "outdated"
    """The lines of another version of `reconcile`, or of another place of it."""
    DAMAGED = "damaged"
    """A mark is missing, the lines are there twice, or others are among them."""
    ABSENT = "not installed"


class Part(Struct, frozen=True):
    """A hook, the attributes or git's settings, with its state and its file.

    ``note`` tells of a hook put aside, or of a directory in its place.
    """

    name: str
    state: State
    path: str
    note: str = ""


class Repository(Struct, frozen=True):
    """A repository as far as hooks concern it.

    ``hooks`` is the directory that git, or husky, reads them from. ``is_shared``: the file is in the checkout, so that
    others get it with a commit. ``program`` is the directory of the command, which is searched after ``PATH``.
    """

    top: str
    common: str
    hooks: str
    is_shared: bool
    project: str
    program: str | None

    @classmethod
    def of(cls, project: str, program: str | None) -> Repository:
        """Return the repository around a project.

        Raises:
            HookError: there is none, git can't be run, or its hooks are those of all repositories of the user.
        """
        if checkout_top(project) is None:
            raise HookError(f"{project} is not in a git repository", "run this command in one, or begin one: git init")
        top = _ask(project, "rev-parse", "--show-toplevel")
        common = os.path.realpath(os.path.join(project, _ask(project, "rev-parse", "--git-common-dir")))
        hooks = os.path.realpath(os.path.join(project, _ask(project, "rev-parse", "--git-path", "hooks")))
        top = os.path.realpath(top)
        if hooks.endswith(f"{os.sep}.husky{os.sep}_"):  # husky writes these again; those of its users are above
            hooks = os.path.dirname(hooks)
        if not (_is_below(hooks, common) or _is_below(hooks, top)):
            message = f"git reads the hooks of this repository from {hooks} (core.hooksPath), which others may share"
            hint = "use hooks of this repository: git config --local core.hooksPath .git/hooks"
            raise HookError(message, f"{hint}\nor call `reconcile hooks run NAME` in those hooks yourself")
        return cls(top, common, hooks, not _is_below(hooks, common), project, program)

    def install(self, *, merge_driver: bool) -> None:
        """Install every hook, and the merge driver if it is wanted.

        Raises `HookError`, after the others, for a hook that can't be installed; `OSError`.
        """
        created = _make(self.hooks)
        refused = list[HookError]()
        for name in HOOKS:
            try:
                self._install(name, created)
            except HookError as error:
                refused.append(error)
        if merge_driver:
            path = os.path.join(self.project, ATTRIBUTES)
            if os.path.islink(path):
                raise HookError(f"{path} is a symbolic link, which git doesn't follow", "replace it by a file")
            for section, (key, _) in _COMMANDS.items():
                if not self._is_ours(section):
                    hint = f"remove it, and install again: git config --local --unset-all {section}.{key}"
                    raise HookError(f"git's setting {section}.{key} has a value of yours", hint)
            content = read_if_there(path)
            is_ours = content is None or _ALONE.encode() in content
            _write(path, in_front(content or b"", block(*_ATTRIBUTES) if is_ours else block(*_LINES)), 0o644)
            for key, value in self._settings():
                _ask(self.top, "config", "--local", key, value)
        if refused:
            hints = dict.fromkeys(error.hint for error in refused if error.hint)
            raise HookError("; ".join(map(str, refused)), "\n".join(hints))

    def remove(self) -> None:
        """Remove everything that `install` adds. Raises `HookError`, `OSError`."""
        created = max(_created_for(_script(os.path.join(self.hooks, name)) or b"") for name in HOOKS)
        for name in HOOKS:
            for ending in ("", _LEGACY, _OLD):
                self._remove(name, ending)
        _remove_empty(self.hooks, created)
        path = os.path.join(self.project, ATTRIBUTES)
        content = None if os.path.islink(path) else read_if_there(path)
        bare = None if content is None else without_block(content)
        if bare == b"" and _ALONE.encode() in (content or b""):
            os.unlink(path)
        elif bare is not None:
            _write(path, bare, 0o644)
        for section, (command, _) in _COMMANDS.items():
            if not self._is_ours(section):
                continue
            for key, value in self._settings():
                is_command = key == f"{section}.{command}"  # in any version
                if (
                    key.startswith(f"{section}.")
                    and _values(self.top, key)
                    and (is_command or set(_values(self.top, key)) == {value})
                ):
                    _ask(self.top, "config", "--local", "--unset-all", key)

    def parts(self) -> Iterator[Part]:
        """Yield the state of each hook, then of the merge driver's attributes and settings."""
        for name in HOOKS:
            path = os.path.join(self.hooks, name)
            lines = self._lines(name)
            yield Part(name, _state(lines, *self._blocks(name, _created_for(lines or b""))), path, self._note(name))
        path = os.path.join(self.project, ATTRIBUTES)
        yield Part(
            "attributes", _state(block_of(read_if_there(path) or b""), block(*_ATTRIBUTES), block(*_LINES)), path
        )
        values = [_values(self.top, key) for key, _ in self._settings()]
        expected = [[value] for _, value in self._settings()]
        users = [f"{section}.{key}" for section, (key, _) in _COMMANDS.items() if not self._is_ours(section)]
        state = State.INSTALLED if values == expected else State.OUTDATED
        if not any(_values(self.top, f"{section}.{key}") for section, (key, _) in _COMMANDS.items()) or users:
            state = State.ABSENT
        note = f"{', '.join(users)} is yours" if users else ""
        yield Part("merge driver", state, os.path.join(self.common, "config"), note)

    def _is_ours(self, section: str) -> bool:
        """Tell whether the command in a section of git's settings is ours, of any version, or none is there."""
        key, call = _COMMANDS[section]
        return all(f"exec reconcile {call}" in value for value in _values(self.top, f"{section}.{key}"))

    def _lines(self, name: str) -> bytes | None:
        """Return the block in a hook; None if it has none."""
        for ending in ("", _LEGACY):
            path = os.path.join(self.hooks, name + ending)
            if (lines := block_of(_script(path) or b"")) is not None:
                return lines
        return None

    def _note(self, name: str) -> str:
        path = os.path.join(self.hooks, name)
        if os.path.isdir(path):
            return "a directory has its name"
        if not os.path.lexists(path + _ASIDE):
            return ""
        calls = f"{name}{_ASIDE}".encode() in (_script(path) or b"")
        return f"calls {name}{_ASIDE}" if calls else f"nothing calls {name}{_ASIDE}"

    def _install(self, name: str, created: int) -> None:
        path = os.path.join(self.hooks, name)
        content = _script(path)
        alone, added = self._blocks(name, created or _created_for(content or b""))
        status = _status(path)
        if os.path.isdir(path):
            raise HookError(f"{path} is a directory, so this hook is not installed", "move it away, and install again")
        if status is None:
            if not os.path.lexists(path + _ASIDE):
                _write(path, _SHEBANG + alone, 0o755)
                return
        elif content is not None and (lines := block_of(content)) is not None:
            new = alone if _ALONE.encode() in content else added
            changed = content.replace(lines, new) if lines else with_block(content, new)
            if changed is None:
                raise HookError(f"{path}: its lines of reconcile are damaged", "remove them, and install again")
            _write(path, changed, status.st_mode)
            return
        elif (content is not None and status.st_mode & 0o111) or (content is not None and self._is_husky):
            changed = with_block(content, added)
            if changed is not None:
                _write(path, changed, status.st_mode)
                return
        if os.path.lexists(path + _ASIDE):
            raise HookError(f"{path}{_ASIDE} exists", "look at it, and move it away")
        os.rename(path, path + _ASIDE)
        _write(path, _SHEBANG + alone + _CALLS.format(name=name).encode(), 0o755)

    def _remove(self, name: str, ending: str) -> None:
        path = os.path.join(self.hooks, name + ending)
        status = _status(path)
        content = _script(path)
        bare = None if content is None else without_block(content)
        if status is None and not ending and os.path.lexists(path + _ASIDE):
            os.rename(path + _ASIDE, path)  # somebody has removed the hook that called it
        if status is None or content is None or bare is None:
            return
        is_ours = _ALONE.encode() in content
        if is_ours and bare == _SHEBANG + _CALLS.format(name=name).encode() and os.path.lexists(path + _ASIDE):
            os.rename(path + _ASIDE, path)
        elif is_ours and bare == _SHEBANG:
            os.unlink(path)
        else:
            _write(path, bare, status.st_mode)

    @property
    def _is_husky(self) -> bool:
        return os.path.basename(self.hooks) == ".husky"

    def _blocks(self, name: str, created: int) -> tuple[bytes, bytes]:
        """Return the block of a file that is ours alone, and that for a script of the user's.

        ``created`` is the number of directories that were made for the hook, its own and those above.
        """
        # A file that others get with a commit must not name a directory of this machine.
        search = "" if self.is_shared or self.program is None else f'PATH="$PATH:{_quoted(self.program)}"; '
        start = "command -v reconcile >/dev/null 2>&1 || exit 0"
        end = f"|| {{ [ $? -eq {REFUSED} ] || echo '{_UNCHECKED}' >&2; exit 1; }}" if name == "pre-commit" else "|| :"
        start = f"{_OWN_MODULES}; {search}{start}" + (f"; {_HAS_NONE}" if name == "pre-commit" else "")
        line = f'( {start}; exec reconcile hooks run {name} "$@" </dev/null ) {end}'
        directories = (f"{_DIRECTORIES}{created}",) if created else ()
        return block(_WRITTEN, _ALONE, *directories, line), block(_WRITTEN, line)

    def _settings(self) -> list[tuple[str, str]]:
        search = "" if self.program is None else f'PATH="$PATH:{_quoted(self.program)}"; '
        known = f"{search}command -v reconcile >/dev/null 2>&1"
        otherwise = "exec git merge-file --marker-size=%L -L ours -L base -L theirs %A %O %B"
        return [
            ("merge.reconcile.name", "conversations, by the rules of reconcile"),
            ("merge.reconcile.driver", f"{known} || {otherwise}; exec reconcile merge-driver %O %A %B %P"),
            # The base of several bases is no version of a branch: nothing of it becomes a fork.
            ("merge.reconcile.recursive", "binary"),
            ("diff.reconcile.textconv", f'f() {{ {known} || exec cat "$1"; exec reconcile textconv "$1"; }}; f'),
        ]


def _quoted(path: str) -> str:
    """Return a path inside double quotes of a shell."""
    return "".join(f"\\{char}" if char in '"$`\\' else char for char in path)


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def _state(lines: bytes | None, *expected: bytes) -> State:
    """Return the state of a block (`block_of`)."""
    if lines is None:
        return State.ABSENT
    return State.INSTALLED if lines in expected else State.OUTDATED if lines else State.DAMAGED


def _script(path: str) -> bytes | None:
    """Return the content of a regular file; None for a link, a directory or nothing."""
    status = _status(path)
    return read_if_there(path) if status is not None and stat.S_ISREG(status.st_mode) else None


def _write(path: str, content: bytes, mode: int) -> None:
    """Replace a file by way of a rename: git never runs a half-written script. An equal file is not touched."""
    if read_if_there(path) == content:
        return
    temporary = f"{path}.reconcile.tmp"
    with open(temporary, "wb") as file:
        file.write(content)
    os.chmod(temporary, stat.S_IMODE(mode))
    os.replace(temporary, path)


def _values(top: str, key: str) -> list[str]:
    """Return the values of one of git's settings of this repository, without those of the user's other files."""
    done = _git(top, "config", "--local", "--null", "--get-all", key)
    return done.stdout.split("\0")[:-1] if done.returncode == 0 else []


def _make(directory: str) -> int:
    """Make a directory and those above it; return how many were not there."""
    missing, at = 0, directory
    while not os.path.lexists(at):
        missing, at = missing + 1, os.path.dirname(at)
    os.makedirs(directory, exist_ok=True)
    return missing


def _created_for(content: bytes) -> int:
    """Return the number of directories that were made for a hook, as its lines say."""
    known = re.search(rb"^" + _DIRECTORIES.encode() + rb"(\d{1,3})$", content, re.MULTILINE)
    return int(known[1]) if known is not None else 0


def _remove_empty(directory: str, count: int) -> None:
    """Remove a directory and those above it, as long as they are empty, and at most this number."""
    for _ in range(count):
        try:
            os.rmdir(directory)
        except OSError:
            return
        directory = os.path.dirname(directory)


def _ask(directory: str, *args: str) -> str:
    done = _git(directory, *args)
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["git gave no reason"]
        raise HookError(f"git {args[0]}: {reason[0]}", "run `reconcile hooks status` to see what is installed")
    return done.stdout.removesuffix("\n")


def _git(directory: str, *args: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("git") is None:
        raise HookError("git is not installed", "install git")
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {"LC_ALL": "C"}
    return subprocess.run(  # noqa: S603 - no shell
        ("git", *args),  # noqa: S607 - see above
        cwd=directory,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
