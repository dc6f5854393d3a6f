"""Settings from the configuration file and the environment (docs/commands.md#configuration).

No setting is read from the project: a pulled repository must not change which files are published or removed.
"""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from typing import TYPE_CHECKING, Any, NamedTuple

from reconcile.errors import ReconcileError
from reconcile.model.options import Diverged, Layout, Missing, OnConflict, StreamRule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

NAME = "reconcile.toml"
PREFIX = "RECONCILE_"
OTHER_VARIABLES = ("RECONCILE_PAGER", "RECONCILE_REMOTE", "RECONCILE_STATE_DIR", "RECONCILE_VERIFY")
"""Environment variables with the prefix that are no settings."""


class ConfigError(ReconcileError):
    """The configuration can't be used; the message names the place and the fault."""

    exit_code = 2


class Settings(NamedTuple):
    """The settings of one workspace. ``ignore`` has patterns of extra files; times are in seconds.

    ``shared_sessions`` is the folder for shared sessions of Claude Code, relative to the top of a checkout.

    `watch` handles a conversation that hasn't changed for ``settle``, or that has kept changing for
    ``settle_at_most``.
    """

    layout: Layout = Layout.NESTED
    stream: StreamRule = StreamRule.DIRECTED
    diverged: Diverged = Diverged.FORK
    conflict: OnConflict = OnConflict.NEWEST
    missing: Missing = Missing.INTENT
    ignore: tuple[str, ...] = ()
    shared_sessions: str = ".claude-sessions"
    lock_timeout: float = 10.0
    settle: float = 0.15
    settle_at_most: float = 2.0


_CHOICES = {"layout": Layout, "stream": StreamRule, "diverged": Diverged, "conflict": OnConflict, "missing": Missing}
_CORRECT = "correct the value, or remove the setting"
MOST_SECONDS = 10**9
"""The longest time that a setting can have, about 31 years: every clock can count so far."""
NO_SECONDS = f"is not a number of seconds from 0 to {MOST_SECONDS}"
_SECONDS = ("lock_timeout", "settle", "settle_at_most")
_KEYS = (*_CHOICES, "ignore", "shared_sessions", *_SECONDS)


def config_path(environ: Mapping[str, str]) -> str:
    """Return the path of the configuration file. A relative path in the environment counts as unset."""
    if os.path.isabs(base := environ.get("XDG_CONFIG_HOME", "")):
        return os.path.join(base, "reconcile", NAME)
    import platformdirs  # here: not needed if the environment names the directory

    directory = platformdirs.user_config_dir("reconcile")
    if not os.path.isabs(directory):  # an older version returns a relative path
        from reconcile.fs.home import home_directory

        directory = os.path.join(home_directory(environ), ".config", "reconcile")
    return os.path.join(directory, NAME)


def load_settings(environ: Mapping[str, str], workspace_id: str | None) -> Settings:
    """Return the settings for one workspace.

    Raises:
        ConfigError: the file can't be read, or it or a variable has an unknown key or an invalid value.
    """
    settings = Settings()
    for layer in _layers(environ, workspace_id):
        merged = _merged(settings, layer.raw, layer.where)
        if layer.is_in_force:
            settings = merged
    return settings


def setting_places(environ: Mapping[str, str], workspace_id: str | None) -> dict[str, str]:
    """Return where each setting comes from that has no default value: the file and its section, or a variable.

    Raises `ConfigError` as `load_settings` does.
    """
    load_settings(environ, workspace_id)
    places: dict[str, str] = {}
    for layer in _layers(environ, workspace_id):
        if layer.is_in_force:
            from_variables = layer.where == _ENVIRONMENT
            places |= {key: PREFIX + key.upper() if from_variables else layer.where for key in layer.raw}
    return places


def save_setting(environ: Mapping[str, str], workspace_id: str | None, name: str, words: Sequence[str]) -> str:
    """Write a setting into the file, for one workspace, or with None for all. No words remove it. Return its place.

    The comments and the order of the file stay, and so does a symbolic link in its place.

    Raises:
        ConfigError: there is no such setting, the value is invalid, or the file can't be read, changed or written.
    """
    check_name(name)
    if len(words) > 1 and name != "ignore":
        raise ConfigError(f"{name}: it has one value, not {len(words)}", "quote a value with spaces")
    value = list(words) if name == "ignore" and words else _typed(name, words[0]) if words else None
    if value is not None:
        _value(name, value, "the command line")
    path = config_path(environ)
    before = _content(path) or b""
    after = _with_setting(path, _text(path, before), workspace_id, name, value).encode()
    if before.startswith(BOM_UTF8):
        after = BOM_UTF8 + after
    if after != before:
        _write(path, before, after)
    return path if workspace_id is None else _section(path, workspace_id)


def check_name(name: str) -> None:
    """Raise `ConfigError` if there is no setting of this name."""
    if name not in _KEYS:
        raise ConfigError(f"there is no setting {_brief(name)}", _did_you_mean(name, _KEYS, "settings"))


def _with_setting(path: str, text: str, workspace_id: str | None, name: str, value: object) -> str:
    """Return the text of the file with a setting changed, or with None removed."""
    import tomlkit  # here: it keeps comments, and few commands change the file
    from tomlkit.exceptions import TOMLKitError

    expected = _parsed(path, text)
    try:
        document = tomlkit.parse(text)
        _change(document, workspace_id, name, value, tomlkit.table)
        _change(expected, workspace_id, name, value, dict)
        changed = tomlkit.dumps(document)
        if _parsed(path, changed) == expected:
            return changed
    except (TOMLKitError, TypeError, ValueError, AttributeError, ConfigError):  # the form is rare, or wrong
        pass
    raise ConfigError(f"{path}: a command can't change a file of this form", "edit the file")


def _change(document: Any, workspace_id: str | None, name: str, value: object, new: Callable[[], object]) -> None:
    """Change a setting in a parsed file, or with None remove it. ``new`` makes a missing section."""
    for key in () if workspace_id is None else ("workspace", workspace_id):
        if key not in document:
            if value is None:
                return
            document[key] = new()
        document = document[key]
    if value is not None:
        document[name] = value
    elif name in document:
        del document[name]


def _write(path: str, before: bytes, after: bytes) -> None:
    """Replace the file, if it still has the content from before."""
    from reconcile.fs.private_files import FILE_MODE, make_private_directory, replace_users_file

    try:
        target = os.path.realpath(path)
        make_private_directory(os.path.dirname(target))
        if (_content(path) or b"") != before:
            raise ConfigError(f"{path}: changed by another program meanwhile", "run again")
        replace_users_file(target, after, os.stat(target).st_mode if os.path.exists(target) else FILE_MODE)
    except OSError as error:
        raise ConfigError(f"{path}: can't be written ({error.strerror})", "make it writable") from None


_ENVIRONMENT = "the environment"
_MISTYPED = 0.8
"""How similar an unknown variable is to the known one that was meant: 1 is equal."""


class _Layer(NamedTuple):
    """Settings of one place, unchecked. ``is_in_force`` is false for the section of another workspace."""

    where: str
    raw: Mapping[str, object]
    is_in_force: bool = True


def _layers(environ: Mapping[str, str], workspace_id: str | None) -> Iterator[_Layer]:
    """Yield the places of settings, those that win last."""
    path = config_path(environ)
    if (raw := _read(path)) is not None:
        sections = raw.pop("workspace", {})
        if not isinstance(sections, dict) or not all(isinstance(section, dict) for section in sections.values()):
            raise ConfigError(
                f"{path}: workspace: not a section", 'write the settings of one workspace below [workspace."ID"]'
            )
        yield _Layer(path, raw)
        for name, section in sections.items():
            yield _Layer(_section(path, name), section, name == workspace_id)
    known = {PREFIX + key.upper(): key for key in _KEYS}
    for name in environ:
        if name.startswith(PREFIX) and name not in known and name not in OTHER_VARIABLES:
            _refuse_mistyped(name, [*known, *OTHER_VARIABLES])
    variables = {known[name]: value for name, value in environ.items() if name in known and value}
    yield _Layer(_ENVIRONMENT, {key: _typed(key, value) for key, value in variables.items()})


def _section(path: str, workspace_id: str) -> str:
    """Return the place of a workspace's settings, for messages."""
    return f"{path}: [workspace.{_brief(workspace_id)}]"


def _refuse_mistyped(name: str, known: Sequence[str]) -> None:
    """Refuse an unknown variable if it looks like a known one: others with the prefix are another program's."""
    import difflib  # here, as below: only for what is wrong

    bare = {each.removeprefix(PREFIX): each for each in known}
    for near in difflib.get_close_matches(name.removeprefix(PREFIX), bare, n=1, cutoff=_MISTYPED):
        raise ConfigError(f"the environment: unknown variable {name}", f"did you mean {bare[near]}?")


def _typed(key: str, value: str) -> object:
    if key == "ignore":
        return value.split(os.pathsep)
    if key in _SECONDS:
        try:
            return float(value)
        except ValueError:
            return value
    return value


def _read(path: str) -> dict[str, Any] | None:
    """Return the parsed file; None if it doesn't exist."""
    content = _content(path)
    return None if content is None else _parsed(path, _text(path, content))


def _content(path: str) -> bytes | None:
    """Return the file's bytes; None if it doesn't exist. A file that can't be read is an error, not an absent file."""
    try:
        os.stat(path)
        from reconcile.fs.paths import open_regular  # here, as below: most users have no such file

        with open_regular(path) as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{path}: can't be read ({error.strerror})", "make it readable, or remove it") from None


def _text(path: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")  # editors of other systems write its mark
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8: {error}", "correct or remove the file") from None


def _parsed(path: str, text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # including integers of more than 4300 digits, and deep nesting
        raise ConfigError(f"{path}: invalid TOML: {error}", "correct or remove the file") from None


def _merged(settings: Settings, raw: Mapping[str, object], where: str) -> Settings:
    for key, value in raw.items():
        if key not in _KEYS:
            hint = _did_you_mean(key, [*_KEYS, "workspace"], "known keys")
            raise ConfigError(f"{where}: unknown key {_brief(key)}", hint)
        settings = settings._replace(**{key: _value(key, value, where)})
    return settings


def _value(key: str, value: object, where: str) -> Any:
    if key in _CHOICES:
        kind = _CHOICES[key]
        if value not in [choice.value for choice in kind]:
            choices = ", ".join(repr(choice.value) for choice in kind)
            raise ConfigError(f"{where}: {key}: invalid value {_brief(value)}", f"choose from {choices}")
        return kind(value)
    if key == "ignore":
        if not isinstance(value, list) or not all(isinstance(pattern, str) for pattern in value):
            raise ConfigError(f"{where}: ignore: {_brief(value)} is not a list of patterns", _CORRECT)
        return tuple(value)
    if key == "shared_sessions":
        if not isinstance(value, str) or not _is_inside(value):
            raise ConfigError(f"{where}: {key}: {_brief(value)} is not a path below the top of a repository", _CORRECT)
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and is_seconds(value):
        return float(value)
    raise ConfigError(f"{where}: {key}: {_brief(value)} {NO_SECONDS}", _CORRECT)


def is_seconds(value: float) -> bool:
    """Tell whether a number can be a setting in seconds; one that is not a number (nan) can't."""
    return 0 <= value <= MOST_SECONDS


def _is_inside(path: str) -> bool:
    """Tell whether a text is a path that leads out of no directory and into no ``.git``."""
    parts = path.split("/")
    return path.isprintable() and "\\" not in path and not {"", ".", "..", ".git"} & {part.casefold() for part in parts}


def _did_you_mean(name: str, known: Sequence[str], what: str) -> str:
    import difflib  # here, as below: only for messages

    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else f"{what}: {', '.join(known)}"


def _brief(value: object) -> str:
    """Return a value for a message, shortened."""
    import reprlib

    try:
        return reprlib.repr(value)
    except ValueError:  # Python writes no integer of more than 4300 digits; TOML has them in hexadecimal
        return "a huge number"
