"""The files of `.workspaces/` and `.conversations/`: which are records, and when a record is valid.

Two definitions of a record are kept apart: that of reconcile, and that of the program's own listing. They differ in
names that end in `index.json`, and in dot-files (docs/design/formats/claudesidian.md#listing).
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
    """The two kinds of records."""

    WORKSPACE = "workspace"
    CONVERSATION = "conversation"

    @property
    def directory(self) -> str:
        """The directory in a vault."""
        return f".{self}s"


class Item(Struct, frozen=True):
    """One valid file of a record. ``id`` is the id in the content, which is the key in the index."""

    kind: Kind
    name: str
    id: str
    value: Value

    @property
    def path(self) -> str:
        """The path of the file in the vault."""
        return f"{self.kind.directory}/{self.name}"

    @property
    def is_named_by_id(self) -> bool:
        """Whether the file has the only name under which the program finds a record by its id."""
        return self.name == self.id + SUFFIX


def is_item(name: str) -> bool:
    """Tell whether a file of that name is a record: only the exact name `index.json` is the index.

    See docs/design/formats/claudesidian.md#edge-case-9.
    """
    return name.endswith(SUFFIX) and not name.startswith(".") and name != INDEX


def is_listed(name: str) -> bool:
    """Tell whether the program's listing contains this file under an id that leads back to it.

    The listing skips every name that ends in `index.json`, and removes the first `.json` to get the id.
    """
    return name.endswith(SUFFIX) and not name.endswith(INDEX) and listed_id(name) + SUFFIX == name


def listed_id(name: str) -> str:
    """Return the id by which the program lists a file: its name without the first `.json`."""
    return name.replace(SUFFIX, "", 1)


def in_order(names: Iterable[str]) -> list[str]:
    """Return the names in the order of a listing: by UTF-16 code units, as JavaScript sorts."""
    return sorted(names, key=lambda name: name.encode("utf-16-be", "surrogatepass"))


def read_item(kind: Kind, name: str, content: bytes) -> Item | Fault:
    """Read one file of a record, or return a `Fault` if the program could not traverse it.

    `sessions`, `memoryTraces`, `states` and `messages` may be missing, which is read as empty
    (docs/design/formats/claudesidian.md#edge-case-13).
    """
    try:
        value = javascript.parse(content)
    except InvalidContentError as error:
        return Fault(name, error.found, f"the JSON of a {kind}")
    problem = _problem(kind, value)
    return Fault(name, *problem) if problem else Item(kind, name, value["id"], value)


def sessions_of(workspace: Mapping[str, Any]) -> dict[str, Value]:
    """Return the sessions of a valid workspace by id, in the order in which the program traverses them."""
    return _entries(workspace, "sessions")


def traces_of(session: Mapping[str, Any]) -> dict[str, Value]:
    """Return the traces of a session by id."""
    return _entries(session, "memoryTraces")


def states_of(session: Mapping[str, Any]) -> dict[str, Value]:
    """Return the states of a session by id, of either spelling (`payload_of`)."""
    return _entries(session, "states")


def messages_of(conversation: Mapping[str, Any]) -> list[Value]:
    """Return the messages of a valid conversation."""
    return conversation.get("messages") or []


def payload_of(state: Mapping[str, Any]) -> Value | None:
    """Return the payload of a state: `state` since 2025-12-02, `snapshot` before; neither is converted.

    See docs/design/formats/claudesidian.md#edge-case-15.
    """
    payload = state.get("state", state.get("snapshot"))
    return payload if isinstance(payload, dict) else None


def number(value: object) -> float:
    """Return a number of a record, for comparisons; 0 if there is none."""
    return value if isinstance(value, (int, float)) else 0


def _entries(owner: Mapping[str, Any], member: str) -> dict[str, Value]:
    entries: dict[str, Value] = owner.get(member) or {}
    return {key: entries[key] for key in javascript.keys(entries)}


def _problem(kind_: Kind, value: object) -> tuple[str, str] | None:
    """Return what was found and what was expected if a value is no record of that kind."""
    if not isinstance(value, dict):
        return kind(value), f"the JSON object of a {kind_}"
    if not isinstance(value.get("id"), str) or not value["id"]:
        return "no id" if "id" not in value else f"{kind(value['id'])} as id", "a text"
    if kind_ is Kind.CONVERSATION:
        return _container_problem(value, "messages", list)
    problem = _container_problem(value, "sessions", dict)
    if problem:
        return problem
    for key, session in sessions_of(value).items():
        problem = _container_problem(session, "memoryTraces", dict) or _container_problem(session, "states", dict)
        if problem:
            return f"{problem[0]} of session {quoted(key)}", problem[1]
    return None


def _container_problem(
    owner: Mapping[str, Any], member: str, shape: type[dict[str, Any] | list[Any]]
) -> tuple[str, str] | None:
    """Return what is wrong with a container of objects, which may be missing or null."""
    container = owner.get(member)
    if container is None:
        return None
    wanted = "a JSON object" if shape is dict else "a JSON array"
    if not isinstance(container, shape):
        return f"{kind(container)} as {member}", wanted
    for element in container.values() if isinstance(container, dict) else container:
        if not isinstance(element, dict):
            return f"{kind(element)} in {member}", "JSON objects"
    return None
