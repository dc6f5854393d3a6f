"""What is fuzzed: for every reader of somebody else's text, inputs and what must hold of each.

An input is bytes, or a JSON value, so that one that was found is kept in a file (see `kept`). A check fails by any
exception. The checks of bytes are also run by atheris, which looks for inputs that reach more of the code.
"""

from __future__ import annotations

import fcntl
import io
import itertools
import json
import os
import re
import tempfile
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from hypothesis import strategies as st

from reconcile.adapters.jp.locks import Busy, HeldLock, LockRoots, active_conversations
from reconcile.adapters.jp.roots import read_id
from reconcile.adapters.roots import LocateError
from reconcile.config import ConfigError, load_settings
from reconcile.formats import FORMATS, get_format
from reconcile.formats.jp import times
from reconcile.formats.jp.format import GREATEST_ID_NUMBER, JpFormat, id_from_number
from reconcile.formats.plain import PlainFormat
from reconcile.fs.git_state import git_busy, path_in_repository
from reconcile.fs.locks import read_holder
from reconcile.fs.posix import process_lives
from reconcile.index.file import Sections, encode_sections
from reconcile.index.rows import Index, Packed, make_row
from reconcile.inspect.doctor import CHECKERS
from reconcile.model.format import EventSelection
from reconcile.model.snapshot import Fault, Metadata, ParentKind, ParentRef, Stream
from reconcile.remote.saved import read_saved_sync, saved_text
from reconcile.serialization.plan_file import PlanFileError, read_plan
from reconcile.serialization.plan_json import plan_to_json
from tests.cli.modules import module
from tests.fuzz import seeds
from tests.fuzz.applying import apply_file, saved_plans
from tests.fuzz.mutating import IDS, LEAVES, NUMBERS, TIMES, UNICODE, json_like, lines_like
from tests.fuzz.reference import Reader, RefusedError
from tests.support.scenarios.line_reader import ScenarioError
from tests.support.scenarios.scenario import Scenario, read_scenario

if TYPE_CHECKING:
    from collections.abc import Callable

JP = JpFormat()
PLAIN = PlainFormat()
STYLE = module("output.text")
WHEN = module("options")
MESSAGE = 1000
"""Characters of an error message, the file's name aside: one clear line."""


@dataclass(frozen=True, slots=True)
class Check:
    """One reader. ``examples``: so many inputs in the default suite."""

    name: str
    inputs: st.SearchStrategy[Any]
    run: Callable[[Any], None]
    examples: int = 40
    seeds: Callable[[], list[Any]] | None = None
    """JSON values that atheris begins with; None: it doesn't run this check."""


CHECKS: dict[str, Check] = {}


def check(
    inputs: st.SearchStrategy[Any], examples: int = 40, seeds: Callable[[], list[Any]] | None = None
) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    def register(run: Callable[[Any], None]) -> Callable[[Any], None]:
        name = run.__name__
        CHECKS[name] = Check(name, inputs, run, examples, seeds)
        return run

    return register


def strict_object(content: bytes) -> dict[str, Any] | None:
    """Return the object that strict JSON holds, as the second reader sees it."""
    reader = Reader(content)
    try:
        value = reader.read()
    except RefusedError:
        return None
    return value if isinstance(value, dict) and not (reader.far or reader.twice) else None


def one_line(message: str, name: str = "") -> None:
    assert len(message) - len(name) <= MESSAGE, f"a message of {len(message)} characters"


@check(json_like(seeds.metadata), examples=60, seeds=seeds.metadata)
def metadata(content: bytes) -> None:
    """Read or refused in words, just as the second reader has it; the parent is edited and nothing else.

    Any bytes are valid for plain; what is no strict JSON says nothing there.
    """
    value = strict_object(content)
    activated = value.get("last_activated_at") if value is not None else None
    valid = isinstance(activated, str) and times.normalise(activated) is not None
    for form in (JP, PLAIN):
        found = form.read_metadata(content)
        if isinstance(found, Fault):
            assert not valid, found
            one_line(found.found)
            assert form.with_parent(content, "jp-c5") is None or value is not None
            continue
        assert isinstance(found, Metadata)
        assert valid or form is PLAIN
        if value is None:
            assert (found.title, found.parent.kind, found.content) == (None, ParentKind.ABSENT, content)
            continue
        assert json.loads(content) == value
        assert found.title == (value.get("title") if isinstance(value.get("title"), str) else None)
        assert found.local == (value.get("local") is True)
        assert (found.parent.kind is ParentKind.ABSENT) == ("parent_id" not in value)
        parents_of(form, content, value)
        expires = form.expires_ns(content)
        assert expires is None or expires == times.instant_ns(value["expires_at"])
        forked = form.forked_metadata(content, parent="jp-c7", title="A fork")
        child = form.read_metadata(forked)
        assert isinstance(child, Metadata), child
        assert (child.title, child.parent.id) == ("A fork", "jp-c7")
        assert form.with_parent(forked, "jp-c8") is not None, "what reconcile writes can be edited again"


def parents_of(form: Any, content: bytes, value: dict[str, Any]) -> None:
    """State another parent, the same one, and none."""
    for parent in ("jp-c5", None):
        edited = form.with_parent(content, parent)
        if edited is None:
            continue
        after = form.read_metadata(edited)
        assert isinstance(after, Metadata), after
        assert after.parent.id == parent
        assert form.with_parent(edited, parent) == edited
        if edited == content:
            continue
        there = json.loads(edited)
        assert {**there, "parent_id": 0} == {**value, "parent_id": 0}
        keys = [key for key in value if key != "parent_id" or parent is not None]
        assert [key for key in there if key in keys] == keys
        if value.get("parent_id") is not None or parent is None:
            continue
        back = json.loads(edited)
        del back["parent_id"]
        assert back == {key: each for key, each in value.items() if key != "parent_id"}


@check(json_like(seeds.base_config), seeds=seeds.base_config)
def base_config(content: bytes) -> None:
    events = b'[{"timestamp": "x", "type": "y"}]'
    found = JP.read_stream({"base_config.json": content, "events.json": events}, events=True)
    if isinstance(found, Fault):
        assert strict_object(content) is None, found
        one_line(found.found)
    else:
        assert strict_object(content) == json.loads(content)


@check(json_like(seeds.events), examples=60, seeds=seeds.events)
def events(content: bytes) -> None:
    """Between the second reader's strictness and the one gap that `strict` names: far numbers in skipped fields."""
    reader = Reader(content)
    try:
        value = reader.read()
    except RefusedError:
        value = None
    shaped = isinstance(value, list) and all(
        isinstance(each, dict) and {"timestamp", "type"} <= each.keys() for each in value
    )
    for contents in ({"base_config.json": b"{}", "events.json": content}, {"events.json": content}):
        found = JP.read_stream(contents, events=True)
        if isinstance(found, Fault):
            one_line(found.found)
            assert reader.far or not shaped or len(contents) == 1, found
            continue
        assert isinstance(found, Stream)
        assert shaped, "accepted, though it is no strict JSON or no array of events"
        assert value is not None
        assert found.events is not None
        based = len(contents) == 2
        assert (found.count, len(found.events)) == (len(value), len(value) - (not based))
        assert found.last is None or found.last == value[-1]["timestamp"]
        assert JP.read_stream(contents, events=False) == Stream(found.count, found.last, None)
        pieces = (content[at : at + 7] for at in range(0, len(content), 7))
        assert JP.read_stream(contents | {"events.json": JP.summarise(pieces, events=True)}, events=True) == found
        for part in PARTS:
            part_of(contents, found, part)


PARTS = (
    EventSelection(),
    EventSelection(last=0),
    EventSelection(last=1),
    EventSelection(from_ns=1769860800 * 10**9),
    EventSelection(until_ns=0),
)


def part_of(contents: dict[str, bytes], whole: Stream, part: EventSelection) -> None:
    """A part of a stream is one that can be read, and no longer than the whole; far numbers can't be written."""
    try:
        kept = JP.read_stream(JP.cut_stream(contents, part), events=True)
    except ValueError:
        reader = Reader(contents["events.json"])
        reader.read()
        assert reader.far
        return
    assert isinstance(kept, Stream), kept
    assert kept.count <= whole.count
    assert kept == whole or not part.whole


ONE_ID = st.sampled_from(IDS) | UNICODE | st.from_regex(r"(jp-c)?\+?0*[0-9]{1,12}(-.*)?", fullmatch=True)


@check(st.tuples(ONE_ID, UNICODE | st.sampled_from(IDS)).map(list), examples=80)
def names(pair: list[str]) -> None:
    """A name is an id's or foreign; an id has one directory's name, which a file system takes."""
    name, title = pair
    for form in map(get_format, FORMATS):
        if form.places is not None:
            continue  # ids are paths there
        form.is_whole(name)
        for found in (form.id_of(name), form.parse_id(name), *parents_named(form, name)):
            if found is None:
                continue
            assert form.parse_id(found) == found
            form.order(found)
            for directory in (form.dirname(found, title), form.dirname(found, None)):
                assert form.id_of(directory) == found
                component(directory)
            lock = form.lock_name(found)
            if lock is not None:
                component(lock)
        if (found := form.id_of(name)) is not None:
            assert form.parse_id(name) == found


def parents_named(form: Any, text: str) -> list[str | None]:
    found = [form.parent_of(text)]
    if re.fullmatch(r"-?[0-9]{1,4000}", text, re.ASCII):
        found.append(form.parent_of(int(text)))
    return found


def component(name: str) -> None:
    """One component of a path, that a file system takes; a plain id is as long as whoever made it wished."""
    assert name not in ("", ".", "..")
    assert not {"/", "\0"} & set(name)
    content = os.fsencode(name)
    assert len(content) <= 255 or len(name) > 250


@check(st.tuples(st.integers(-(10**13), 10**13), UNICODE).map(list))
def numbers(pair: list[Any]) -> None:
    """A number is an id exactly where JP could hold it; all its spellings name it."""
    number, _ = pair
    found = id_from_number(number)
    assert (found is not None) == (0 <= number <= GREATEST_ID_NUMBER)
    assert JP.parent_of(number) == found == JP.parent_of(f"jp-c{number}") == JP.parse_id(str(number))
    if found is not None:
        assert JP.parse_id(f"{found}-ab1cd") == found
        assert JP.id_of(f"{number}-x") == found


TIME = st.sampled_from(TIMES) | UNICODE | st.from_regex(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}[Tt ][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\.[0-9]{1,12})?([Zz]|[+-][0-9]{2}:[0-9]{2})?",
    fullmatch=True,
) | st.datetimes().map(lambda at: at.isoformat(sep=" "))  # fmt: skip


@check(st.tuples(TIME, st.integers(-1439, 1439)).map(list), examples=80)
def instants(pair: list[Any]) -> None:
    """One form for each instant, however it is spelled, and the count of nanoseconds that goes with it."""
    text, minutes = pair
    normal, instant = times.normalise(text), times.instant_ns(text)
    assert (normal is None) == (instant is None)
    if normal is None or instant is None:
        times.comparable(text)
        return
    assert times.comparable(text) == normal == times.normalise(normal)
    assert times.instant_ns(normal) == instant
    whole, _, fraction = normal.partition(".")
    at = datetime.fromisoformat(whole).replace(tzinfo=UTC)
    seconds = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    assert instant == seconds * 10**9 + int((fraction + "0" * 9)[:9])
    try:
        elsewhere = at.astimezone(timezone(timedelta(minutes=minutes)))
    except OverflowError:
        return
    date, zone = elsewhere.isoformat()[:19], elsewhere.isoformat()[19:]
    for spelled in (
        f"{whole}.{fraction}000",
        f"{date}.{fraction or '0'}{zone}",
        f"{whole.replace(' ', 'T')}.{fraction}0Z",
    ):
        assert times.normalise(spelled) == normal
        assert times.comparable(spelled) == normal


AGE = st.from_regex(r"[0-9]{1,8}[hdwmy]?|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}", fullmatch=True)
NOW_NS = 1769860800 * 10**9


@check(st.tuples(TIME | AGE, UNICODE).map(list), examples=60)
def moments(pair: list[Any]) -> None:
    """What `--from`, `--until` and `--older-than` take: a moment, or one line; an age is before now."""
    text, _ = pair
    try:
        found = WHEN.parse_time(text, NOW_NS)
    except click.UsageError as error:
        one_line(error.format_message())
        return
    assert isinstance(found, int)
    if re.fullmatch(r"[0-9]+[hdwmy]", text, re.ASCII):
        assert found == NOW_NS - WHEN.parse_age(text) <= NOW_NS
    elif not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        assert found == times.instant_ns(text)


@check(json_like(seeds.sessions), seeds=seeds.sessions)
def sessions(content: bytes) -> None:
    """JP's terminal mappings: a conversation that is known, or nothing."""
    path = Path(_directory().name, "sessions", "a.json")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    found = active_conversations(_directory().name, {"jp-c17500000001", "jp-c17500000002"}, JP.parse_id)
    assert found in ((), ("jp-c17500000001",), ("jp-c17500000002",))


@check(json_like(seeds.holders), seeds=seeds.holders)
def lock_holders(content: bytes) -> None:
    """Who holds JP's lock of a conversation: the number of a process, or none; and nothing is written."""
    path = Path(_directory().name, "locks", "jp-c17500000001.lock")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        found = HeldLock.take(path.name, LockRoots(_directory().name, None))
    assert isinstance(found, Busy)
    assert found.pid is None or 0 < found.pid < 2**31
    one_line(found.detail, str(path))
    assert path.read_bytes() == content


@check(json_like(seeds.holders), seeds=seeds.holders)
def own_lock_holders(content: bytes) -> None:
    """Who holds reconcile's own lock, or nobody that can be told."""
    Path(_directory().name, "lock.json").write_bytes(content)
    found = read_holder(_directory().name)
    if found is not None:
        process_lives(found.pid)
        assert str(found)


@check(st.binary(max_size=200) | st.binary(max_size=8).map(lambda cut: b"ab1cd" + cut), examples=40)
def workspace_ids(content: bytes) -> None:
    """An id of five characters, or one line that says what is wrong."""
    Path(_directory().name, ".id").write_bytes(content)
    try:
        assert re.fullmatch("[0-9a-z]{5}", read_id(_directory().name))
    except LocateError as error:
        one_line(error.message, _directory().name)


@check(
    st.sampled_from([b"gitdir: ", b"gitdir: ..", b"../..", b"pick a", b""]).flatmap(
        lambda start: st.binary(max_size=40).map(lambda rest: start + rest)
    )
)
def git_files(content: bytes) -> None:
    """What git's own files say, or that they say nothing."""
    project = Path(_directory().name, "project")
    worktree = project / ".git" / "worktrees" / "one"
    (worktree / "sequencer").mkdir(parents=True, exist_ok=True)
    (worktree / "sequencer" / "todo").write_bytes(content)
    for name in ("HEAD", "commondir"):
        (worktree / name).write_bytes(content)
    linked = Path(_directory().name, "linked")
    linked.mkdir(exist_ok=True)
    for text in (content, f"gitdir: {worktree}".encode()):
        (linked / ".git").write_bytes(text)
        git_busy(str(linked))
        assert os.path.isabs(path_in_repository(str(linked)))


@check(json_like(seeds.leslie_files), seeds=seeds.leslie_files)
def leslie_files(content: bytes) -> None:
    """Leslie's control files: findings, each in a line."""
    directory = Path(_directory().name, ".leslie")
    directory.mkdir(exist_ok=True)
    for names in itertools.permutations(("thread_relations.json", "objectives.json")):
        (directory / names[0]).write_bytes(content)
        (directory / names[1]).write_bytes(json.dumps(seeds.leslie_files()[names[1] == "objectives.json"]).encode())
        for ill in CHECKERS["leslie"](_directory().name, NOW_NS):
            assert ill.kind


@check(json_like(seeds.claudesidian_files), seeds=seeds.claudesidian_files)
def claudesidian_files(content: bytes) -> None:
    """Claudesidian's records, indexes, event files and status: findings, each with its kind."""
    root = Path(_directory().name)
    for name in (
        ".workspaces/ws_a.json",
        ".workspaces/index.json",
        ".conversations/conv_a.json",
        ".conversations/index.json",
        ".nexus/workspaces/ws_a.jsonl",
        ".nexus/migration-status.json",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    for ill in CHECKERS["claudesidian"](_directory().name, NOW_NS):
        assert ill.kind


TIMESTAMP = st.sampled_from([number for number in NUMBERS if isinstance(number, int)]) | st.integers()
ROW = st.fixed_dictionaries(
    {
        "path": UNICODE,
        "files": st.dictionaries(
            UNICODE.map(lambda name: name.replace("\0", "")).filter(bool),
            st.lists(TIMESTAMP, min_size=4, max_size=4),
            max_size=3,
        ),
        "title": st.none() | UNICODE,
        "parent": st.none() | UNICODE,
        "last": st.none() | UNICODE,
        "count": st.integers(0, 2**63 - 1),
        "cut": st.integers(0, 400),
    }
)


def fits(size: int, mtime_ns: int, inode: int, ctime_ns: int) -> bool:
    return all(-(2**63) <= each < 2**63 for each in (size, mtime_ns, ctime_ns)) and 0 <= inode < 2**64


@check(ROW)
def index_rows(entry: dict[str, Any]) -> None:
    """What is remembered comes back the same; what can't be is left out, and damage is noticed."""
    files = {name: (tuple(numbers), "0123456789abcdef" * 2) for name, numbers in entry["files"].items()}
    parent = ParentRef(ParentKind.ID, entry["parent"]) if entry["parent"] is not None else ParentRef(ParentKind.ROOT)
    known = Metadata(entry["title"], parent, local=True, content=b"\xff\0")
    row = make_row(files, known, Stream(entry["count"], entry["last"]))
    assert (row is not None) == all(fits(*numbers) for numbers in entry["files"].values())
    if row is None:
        return
    other = make_row({}, None, None)
    assert other is not None
    index = Index("jp", "1:2")
    index.rows.update({entry["path"]: row, "other": other})
    blob = b"".join(encode_sections("index", index.packed())[1])
    back = Index.of("jp", "1:2", unpacked(blob))
    assert back.rows.get("other") in (other, row)
    seen = back.rows.get(entry["path"])
    texts = [*entry["files"], entry["title"] or "", entry["parent"] or "", entry["last"] or ""]
    whole = "\0" not in entry["path"] and all(
        each.isascii() or not re.search("[\ud800-\udfff]", each) for each in texts
    )
    assert (seen is not None) == (whole or entry["path"] == "other")
    if whole and seen is not None and entry["path"] != "other":
        assert (seen.metadata(), seen.stream(), seen.files()) == (known, Stream(entry["count"], entry["last"]), files)
    cut = entry["cut"] % len(blob)
    for damaged in (
        blob[:cut],
        blob[:cut] + bytes([blob[cut] ^ 1]) + blob[cut + 1 :],
        repr(entry).encode(errors="replace"),
    ):
        try:
            unpacked(damaged)
        except ValueError:
            continue
        raise AssertionError("damage is not noticed")


def unpacked(blob: bytes) -> Packed:
    """Return the rows in a file of sections. Raises `ValueError`."""
    sections = Sections(io.BytesIO(blob), "index", len(blob))
    return Packed(sections.read(0), sections.read(1), sections.read(2))


@check(json_like(seeds.plans), examples=80, seeds=seeds.plans)
def plan_files(content: bytes) -> None:
    """A plan that says the same when it is written again, or one line that says what is wrong."""
    text = content.decode(errors="surrogateescape")
    try:
        plan, workspace, store = read_plan(text, "FILE")
    except PlanFileError as error:
        one_line(error.message)
        return
    again = json.loads(json.dumps(plan_to_json(plan, workspace=workspace, store=store)))
    said = json.loads(text)
    assert without_sums(again) == without_sums(said)
    assert read_plan(json.dumps(again), "FILE") == (plan, workspace, store)


@check(json_like(seeds.sync_plans), examples=40, seeds=seeds.sync_plans)
def saved_plans_of_syncs(content: bytes) -> None:
    """A plan that is the same when it is written again, or one line that says what is wrong."""
    try:
        saved = read_saved_sync(content.decode(errors="surrogateescape"))
    except ValueError as error:
        one_line(str(error))
        return
    assert read_saved_sync(saved_text(saved)) == saved


def without_sums(said: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is counted for the reader, and what may be said in another order."""
    said = json.loads(json.dumps(said))
    said.pop("summary", None)
    for key in ("only", "below"):
        said["policy"][key] = sorted(set(said["policy"][key]))
    said["policy"].setdefault("request", None)
    for action in said["actions"]:
        for write in action["writes"]:
            write.setdefault("kept", None)
    return said


@check(json_like(saved_plans), examples=25)
def applied(content: bytes) -> None:
    """`reconcile apply FILE` with any file: an exit code, one line where it is refused, and nothing is lost."""
    apply_file(content)


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="reconcile-fuzz-")


@check(lines_like(seeds.scenarios, seeds.SCENARIO_WORDS), examples=60)
def scenarios(text: str) -> None:
    """A scenario, or where it is none and why."""
    path = Path(_directory().name, "a.scenario")
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        assert isinstance(read_scenario(path), Scenario)
    except ScenarioError as error:
        if not re.match(rf"{re.escape(str(path))}:\d+: ", str(error)):
            raise AssertionError(f"which line? {error}") from error


CONFIG = lines_like(lambda: list(seeds.CONFIGS), seeds.CONFIG_WORDS)
VARIABLES = st.dictionaries(
    st.sampled_from(["RECONCILE_LAYOUT", "RECONCILE_IGNORE", "RECONCILE_LOCK_TIMEOUT", "RECONCILE_X", "RECONCILE_"]),
    st.sampled_from(["nan", "inf", "-1", "1e999", "flat", "a:b", "1", "1_0", "٣", "", "9" * 5000]) | UNICODE,
    max_size=2,
)


@check(st.tuples(CONFIG, VARIABLES).map(list), examples=60)
def configurations(pair: list[Any]) -> None:
    """Settings in their ranges, or one line that says which setting is wrong."""
    text, variables = pair
    path = Path(_directory().name, "reconcile", "reconcile.toml")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        settings = load_settings({"XDG_CONFIG_HOME": _directory().name, **variables}, "ab1cd")
    except ConfigError as error:
        one_line(error.message, str(path))
        return
    assert settings.lock_timeout >= 0
    assert all(isinstance(each, str) for each in settings.ignore)


@check(
    UNICODE | st.text(st.characters(categories=["Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Mn"]), max_size=80),
    examples=60,
)
def shown(text: str) -> None:
    """Nothing in a text acts on a terminal, and it stays so however it is cut."""
    clean = STYLE.clean(text)
    for each in (clean, STYLE.shorten(clean, 20)):
        assert not [char for char in each if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")]
        each.encode()
    assert STYLE.clean(clean) == clean
    assert STYLE.width(STYLE.shorten(clean, 20)) <= 20


@check(LEAVES.map(lambda leaf: getattr(leaf, "text", leaf)), examples=40)
def parents(value: Any) -> None:
    """Any JSON value as a parent: an id that a directory can have, or none."""
    for form in (JP, PLAIN):
        found = form.parent_of(value)
        assert found is None or form.id_of(form.dirname(found, None)) == found
