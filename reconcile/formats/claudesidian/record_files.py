"""Which files of `.workspaces/` and `.conversations/` are records, and when one is valid.

Two notions of a record are kept apart: what reconcile takes for one, and what the program's own listing shows. They
differ in the names that end in `index.json`, and in dot-files (docs/design/formats/claudesidian.md#listing).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from reconcile.formats.json import javascript
from reconcile.formats.json.strict import InvalidContentError, kind, quoted
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SUFFIX = ".json"
INDEX = "index.json"

Value = dict[str, Any]


class Kind(StrEnum):
    """The two sorts of records."""

    WORKSPACE = "workspace"
    CONVERSATION = "conversation"

    @property
    def directory(self) -> str:
        """Where they are in a vault."""
        return f".{self}s"


class Item(Struct, frozen=True):
    """One valid file of a record. ``id`` is the one inside, which the index is keyed by."""

    kind: Kind
    name: str
    id: str
    value: Value

    @property
    def path(self) -> str:
        """The file's path in the vault."""
        return f"{self.kind.directory}/{self.name}"

    @property
    def is_named_by_id(self) -> bool:
        """The program finds a record by its id only under this name."""
        return self.name == self.id + SUFFIX


def is_item(name: str) -> bool:
    """Tell whether a file of that name is a record: only the exact name `index.json` is the index.

    See docs/design/formats/claudesidian.md#edge-case-9.
    """
    return name.endswith(SUFFIX) and not name.startswith(".") and name != INDEX


def is_listed(name: str) -> bool:
    """Tell whether the program's own listing finds the file again that it lists under this name.

    Its listing skips every name that ends in `index.json`, and takes the first `.json` away to get the id.
    """
    return name.endswith(SUFFIX) and not name.endswith(INDEX) and listed_id(name) + SUFFIX == name


def listed_id(name: str) -> str:
    """The id by which the program lists a file: its name without the first `.json`."""
    return name.replace(SUFFIX, "", 1)


def in_order(names: Iterable[str]) -> list[str]:
    """The names as a listing has them; by UTF-16 code units, as the program's language sorts."""
    return sorted(names, key=lambda name: name.encode("utf-16-be", "surrogatepass"))


def read_item(kind: Kind, name: str, content: bytes) -> Item | Fault:
    """Check and read one file of a record.

    What the program could not go through is a `Fault`; `sessions`, `memoryTraces`, `states` and `messages` may be
    missing, which is read as empty (docs/design/formats/claudesidian.md#edge-case-13).
    """
    try:
        value = javascript.parse(content)
    except InvalidContentError as error:
        return Fault(name, error.found, f"the JSON of a {kind}")
    problem = _problem(kind, value)
    return Fault(name, *problem) if problem else Item(kind, name, value["id"], value)


def sessions_of(workspace: Mapping[str, Any]) -> dict[str, Value]:
    """The sessions of a valid workspace by their id, in the order in which the program goes through them."""
    return _entries(workspace, "sessions")


def traces_of(session: Mapping[str, Any]) -> dict[str, Value]:
    """The traces of a session by their id."""
    return _entries(session, "memoryTraces")


def states_of(session: Mapping[str, Any]) -> dict[str, Value]:
    """The states of a session by their id, of either spelling (`payload_of`)."""
    return _entries(session, "states")


def messages_of(conversation: Mapping[str, Any]) -> list[Value]:
    """The messages of a valid conversation."""
    return conversation.get("messages") or []


def payload_of(state: Mapping[str, Any]) -> Value | None:
    """What a state holds: `state` since 2025-12-02, `snapshot` before; neither is converted.

    See docs/design/formats/claudesidian.md#edge-case-15.
    """
    found = state.get("state", state.get("snapshot"))
    return found if isinstance(found, dict) else None


def number(value: object) -> float:
    """A number of a record, for comparisons; 0 where there is none."""
    return value if isinstance(value, (int, float)) else 0


def _entries(owner: Mapping[str, Any], member: str) -> dict[str, Value]:
    found: dict[str, Value] = owner.get(member) or {}
    return {key: found[key] for key in javascript.keys(found)}


def _problem(kind_: Kind, value: object) -> tuple[str, str] | None:
    """What was found and expected where a value is no record of that kind."""
    if not isinstance(value, dict):
        return kind(value), f"the JSON object of a {kind_}"
    if not isinstance(value.get("id"), str) or not value["id"]:
        return "no id" if "id" not in value else f"{kind(value['id'])} as id", "a text as id"
    if kind_ is Kind.CONVERSATION:
        return _each(value, "messages", list)
    found = _each(value, "sessions", dict)
    if found:
        return found
    for key, session in sessions_of(value).items():
        found = _each(session, "memoryTraces", dict) or _each(session, "states", dict)
        if found:
            return f"{found[0]} of session {quoted(key)}", found[1]
    return None


def _each(owner: Mapping[str, Any], member: str, shape: type[dict[str, Any] | list[Any]]) -> tuple[str, str] | None:
    """What is wrong with a container of objects, which may be missing or null."""
    found = owner.get(member)
    if found is None:
        return None
    wanted = "a JSON object" if shape is dict else "a JSON array"
    if not isinstance(found, shape):
        return f"{kind(found)} as {member}", f"{wanted} as {member}"
    for each in found.values() if isinstance(found, dict) else found:
        if not isinstance(each, dict):
            return f"{kind(each)} in {member}", f"JSON objects in {member}"
    return None
