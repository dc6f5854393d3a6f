"""A side of a format with fixed places on a real disk: what a scenario's lines make of it, and what has changed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.support.formats.fixed_programs import PROGRAMS
from tests.support.scenarios.line_reader import ScenarioError, Words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.formats.fixed_programs import Program

Tree: TypeAlias = dict[str, object]
"""By path: the bytes of a file, a link's target as text, of a directory True."""

_KEY = re.compile(r'"(?:[^"\\]|\\.)*"|[^.\s"]+')
_NOW = re.compile(r"20(?!26-02|25-)\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_SHORT = 160


class Side:
    """The root of a side; ``program`` writes as the program of its format does."""

    def __init__(self, root: Path, name: str, program: Program) -> None:
        self.root, self.name, self.program = root, name, program

    def give(self, line: str, number: int) -> None:
        """Do what a line says; files that it writes are ``number`` minutes old on the day of all scenarios."""
        words = Words(line)
        self.root.mkdir(parents=True, exist_ok=True)
        before = tree_of(self.root)
        if words.peek() in PROGRAMS:
            words.word("a program")
            self.program.command(self.root, self.name, words)
        elif words.take("-"):
            _remove(self.root / words.path())
        else:
            self._file(words)
        words.end()
        self._date(before, number)

    def _file(self, words: Words) -> None:
        name = words.path()
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if words.take("age"):
            moment = time.time_ns() - int(float(words.word("seconds")) * 10**9)
            os.utime(path, ns=(moment, moment))
        elif words.take("->"):
            path.symlink_to(words.path())
        elif words.take("="):
            content = (self.root / words.path()).read_bytes()
            path.write_bytes(content)
        elif words.take("merge"):
            texts = [str(self.root / words.path()) for _ in range(3)]
            merged = subprocess.run(["git", "merge-file", "-p", *texts], check=False, capture_output=True)
            path.write_bytes(merged.stdout)
        elif words.take("cut"):
            path.write_bytes(path.read_bytes()[: int(words.word("a number of bytes"))])
        elif words.take("replace"):
            before, after = words.json("a text"), words.json("a text")
            text = path.read_bytes().decode()
            if before not in text:
                raise ScenarioError(f"found no {before!r} in {name}")
            path.write_text(text.replace(before, after), encoding="utf-8")
        elif words.take("drop"):
            self._edit(path, words.word("the place of a value"), None, drop=True)
        elif words.peek()[:1] in ("{", "[", '"'):
            value = words.json("a text or a value")
            path.write_bytes(value.encode() if isinstance(value, str) else self.program.as_bytes(value))
        elif name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            place = words.match(r"(\S+) = ", "how the file is changed")[1]
            self._edit(path, place, words.json("a value"))

    def _edit(self, path: Path, place: str, value: Any, *, drop: bool = False) -> None:
        whole = json.loads(path.read_bytes())
        *above, last = [json.loads(key) if key.startswith('"') else key for key in _KEY.findall(place)]
        holder = whole
        for key in above:
            holder = holder[int(key)] if isinstance(holder, list) else holder[key]
        at = int(last) if isinstance(holder, list) else last
        if drop:
            del holder[at]
        elif isinstance(holder, list) and at == len(holder):
            holder.append(value)
        else:
            holder[at] = value
        path.write_bytes(self.program.as_bytes(whole))

    def _date(self, before: Tree, number: int) -> None:
        moment = (1_770_552_000 + 60 * number) * 10**9
        for path, content in tree_of(self.root).items():
            if isinstance(content, bytes) and before.get(path) != content:
                os.utime(self.root / path, ns=(moment, moment))


def tree_of(root: Path) -> Tree:
    """Everything below a directory, by path; nothing where there is none."""
    found: Tree = {}
    for parent, directories, names in os.walk(root):
        for name in [*directories, *names]:
            at = os.path.join(parent, name)
            path = os.path.relpath(at, root)
            if os.path.islink(at):
                found[path] = os.readlink(at)
            elif os.path.isdir(at):
                found[path] = True
            else:
                with open(at, "rb") as file:
                    found[path] = file.read()
    return found


def changes(before: Tree, after: Tree, other: Tree | None) -> list[str]:
    """What has changed on a side, a line for each path; in JSON value by value.

    What is then as on the ``other`` side is said so.
    """
    lines = []
    for path in sorted({*before, *after}):
        was, now = before.get(path), after.get(path)
        if was == now:
            continue
        name = json.dumps(path, ensure_ascii=False) if re.search(r'[\s"]', path) else path
        if now is None:
            lines.append(f"  - {name}{'/' if was is True else ''}")
        elif was is True and not isinstance(now, bytes) and not any(each.startswith(f"{path}/") for each in after):
            lines.append(f"  {name}/ {now!r}")
        elif now is True:
            if not any(each.startswith(f"{path}/") for each in after):
                lines.append(f"  + {name}/")
        elif other is not None and other.get(path) == now:
            lines.append(f"  {'+ ' if was is None else ''}{name}  as in the workspace")
        elif same := next((each for each, content in before.items() if content == now and each != path), None):
            lines.append(f"  {'+ ' if was is None else ''}{name}  = {same}")
        else:
            lines += [f"  {'+ ' if was is None else ''}{name}  {each}" for each in _difference(was, now)]
    return lines


def _difference(was: object, now: object) -> list[str]:
    old, new = _value(was), _value(now)
    if old is not None and new is not None:
        found = list(_values("", old, new))
        return found or ["the same values, other bytes"]
    if new is not None and len(_shown(new)) <= _SHORT:
        return [_shown(new)]
    if isinstance(now, str):
        return [f"-> {now}"]
    assert isinstance(now, bytes)
    text = _NOW.sub("NOW", now.decode("utf-8", "replace"))
    return [_shown(text) if len(text) <= _SHORT else f"{len(text)} characters"]


def _value(content: object) -> Any:
    try:
        found = json.loads(content) if isinstance(content, bytes) else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _values(place: str, was: Any, now: Any) -> Iterator[str]:
    if isinstance(was, dict) and isinstance(now, dict):
        for key in [*was, *(key for key in now if key not in was)]:
            name = key if _KEY.fullmatch(key) and not key.startswith('"') else json.dumps(key, ensure_ascii=False)
            at = f"{place}.{name}" if place else name
            if key not in now:
                yield f"drop {at}"
            elif key not in was:
                yield f"{at} = {_shown(now[key])}"
            else:
                yield from _values(at, was[key], now[key])
        if [key for key in was if key in now] != [key for key in now if key in was]:
            yield f"{place or 'its members'}: in the order {_shown(list(now))}"
    elif isinstance(was, list) and isinstance(now, list) and was and len(was) == len(now):
        for number, (old, new) in enumerate(zip(was, now, strict=True)):
            yield from _values(f"{place}.{number}", old, new)
    elif isinstance(was, list) and isinstance(now, list) and now[: len(was)] == was:
        for number, value in enumerate(now[len(was) :], len(was)):
            yield f"{place}.{number} = {_shown(value)}"
    elif _is_records(was) and _is_records(now):
        yield f"{place}: now {', '.join(str(each['id']) for each in now)}"
    elif (type(was), was) != (type(now), now):
        yield f"{place} = {_shown(now)}"


def _is_records(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) and "id" in each for each in value)


def _shown(value: object) -> str:
    return _NOW.sub("NOW", json.dumps(value, ensure_ascii=False))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
