"""The briefing of a workspace: under sane rules, and as the program itself answers.

`brief` answers with the newest first, states filled in and nothing twice. `load_workspace` answers as the program does
(docs/design/formats/claudesidian.md#loadworkspace), mistakes included, except that nothing is written.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from reconcile.formats.claudesidian.record_files import in_order, number, payload_of, sessions_of, states_of, traces_of
from reconcile.formats.json import javascript
from reconcile.formats.json.strict import InvalidContentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from reconcile.formats.claudesidian.record_files import Value
    from reconcile.model.snapshot import Fault


class VaultFile(Struct, frozen=True):
    """A file of the vault that people see; ``path`` is from the vault's root, ``modified`` in ms."""

    path: str
    modified: int


class Agent(Struct, frozen=True):
    """An agent that the program's settings know."""

    id: str
    name: str
    prompt: str


class Surroundings(Struct, frozen=True):
    """What a briefing needs besides the workspace: files and folders without a dot in front, and the agents.

    ``unread`` is what can't be read of these, by its path in the vault: what lies there isn't known.
    """

    files: Sequence[VaultFile] = ()
    folders: frozenset[str] = frozenset()
    agents: Sequence[Agent] = ()
    unread: Sequence[Fault] = ()


def brief(workspace: Mapping[str, Any], around: Surroundings, limit: int) -> Value:
    """Everything that a new conversation should know of a workspace, as JSON; ``limit`` entries of each list."""
    context = _object(workspace.get("context"))
    root = str(workspace.get("rootFolder") or "/").strip("/")
    below = [file for file in around.files if not root or file.path.startswith(root + "/")]
    recent = sorted(below, key=lambda file: (-file.modified, file.path))[:limit]
    return {
        **{name: workspace[name] for name in ("id", "name", "description", "rootFolder") if name in workspace},
        **{name: workspace[name] for name in ("created", "lastAccessed", "isActive") if name in workspace},
        "purpose": context.get("purpose") or None,
        "currentGoal": context.get("currentGoal") or None,
        "recentActivity": _newest(_activities(workspace), "time", limit),
        "workflows": [{"name": name, "when": when, "steps": steps} for name, when, steps in workflows(context)],
        "folderExists": _exists(root, around),
        "workspaceStructure": in_order(file.path for file in below),
        "recentFiles": [{"path": file.path, "modified": file.modified} for file in recent],
        "keyFiles": [{"name": name, "path": path} for name, path in dict.fromkeys(key_files(context))],
        "preferences": preferences(workspace, context),
        "sessions": _newest(_sessions(workspace), "created", limit),
        "states": _newest(_states(workspace), "created", limit),
        "agent": _agent(context, around.agents),
        "unread": [
            {"path": each.file, "found": each.found}
            for each in around.unread
            if each.file.startswith((".", f"{root}/" if root else "")) or _is_at(root, each.file)
        ],
    }


def _exists(root: str, around: Surroundings) -> bool | None:
    """Tell whether a folder is there; None where what it lies in can't be read."""
    if not root or root in around.folders:
        return True
    return None if any(_is_at(root, each.file) for each in around.unread) else False


def _is_at(root: str, place: str) -> bool:
    """Tell whether a folder is at a place or below it."""
    return place == "/" or f"{root}/".startswith(f"{place}/")


def workflows(context: Mapping[str, Any]) -> Iterator[tuple[Any, Any, str]]:
    """Name, when and steps; the older list of steps is equal to its lines.

    See docs/design/formats/claudesidian.md#edge-case-22.
    """
    for workflow in _list(context.get("workflows")):
        if isinstance(workflow, dict):
            steps = workflow.get("steps")
            text = "\n".join(map(str, steps)) if isinstance(steps, list) else steps
            yield workflow.get("name"), workflow.get("when"), text if isinstance(text, str) else ""


def key_files(context: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and paths of the key files, also in the older form by categories."""
    for at, found in enumerate(_list(context.get("keyFiles"))):
        if isinstance(found, str):
            yield short_name(found) or f"file_{at}", found
        else:
            named = _object(_object(found).get("files"))
            yield from ((name, path) for name, path in named.items() if isinstance(path, str))


def short_name(path: str) -> str:
    """The name of a file without its last extension."""
    name = path.rpartition("/")[2]
    stem, dot, extension = name.rpartition(".")
    return stem if dot and extension else name


def preferences(workspace: Mapping[str, Any], context: Mapping[str, Any]) -> str | None:
    """The preferences, also those of the older forms."""
    found = context.get("preferences")
    if isinstance(found, list):
        return ". ".join(map(str, found)) or None
    if isinstance(found, str) and found.strip():
        return found
    older = _object(workspace.get("preferences")).get("userPreferences")
    return ". ".join(map(str, older)) + "." if isinstance(older, list) else None


def read_agents(content: bytes) -> Iterator[Agent]:
    """The agents in the program's settings, which hold much else; nothing where they can't be read."""
    try:
        value = javascript.parse(content)
    except InvalidContentError:
        return
    for prompt in _list(_object(_object(value).get("customPrompts")).get("prompts")):
        found = _object(prompt)
        if all(isinstance(found.get(name), str) for name in ("id", "name", "prompt")):
            yield Agent(found["id"], found["name"], found["prompt"])


def find_agent(agents: Iterable[Agent], context: Mapping[str, Any]) -> Agent | None:
    """The agent that a workspace names by its id; in the older form by its name."""
    dedicated = context.get("dedicatedAgent")
    if isinstance(dedicated, dict):
        return next((agent for agent in agents if agent.id == dedicated.get("agentId")), None)
    older = _list(context.get("agents"))
    name = _object(older[0]).get("name") if older else None
    return next((agent for agent in agents if agent.name == name), None)


def session_memory(trace: Mapping[str, Any], *, schema: bool) -> str | None:
    """What an agent said that it was doing; ``schema``: also where trace schema v1 keeps it."""
    metadata = _object(trace.get("metadata"))
    request = _object(metadata.get("request"))
    places = [_object(request.get(each)).get("context") for each in ("normalizedParams", "originalParams")]
    for place in (*places, metadata.get("context")) if schema else places:
        said = _object(place).get("sessionMemory")
        if isinstance(said, str) and said.strip():
            return said
    return None


def _activities(workspace: Mapping[str, Any]) -> Iterator[Value]:
    for key, session in sessions_of(workspace).items():
        for trace in traces_of(session).values():
            text = session_memory(trace, schema=True) or trace.get("content") or "unknown activity"
            yield {"time": trace.get("timestamp"), "session": key, "text": str(text)}


def _sessions(workspace: Mapping[str, Any]) -> Iterator[Value]:
    for key, session in sessions_of(workspace).items():
        yield {
            "id": session.get("id", key),
            "name": session.get("name"),
            "description": session.get("description"),
            "created": session.get("startTime"),
            "isActive": session.get("isActive"),
            "traces": len(traces_of(session)),
            "states": len(states_of(session)),
        }


def _states(workspace: Mapping[str, Any]) -> Iterator[Value]:
    for key, session in sessions_of(workspace).items():
        for id_, state in states_of(session).items():
            payload = _object(payload_of(state))
            told = _object(payload.get("context", payload.get("snapshot")))
            tags = _object(_object(payload.get("state")).get("metadata")).get("tags")
            yield {
                "id": id_,
                "name": state.get("name"),
                "description": payload.get("description", state.get("description")),
                "sessionId": key,
                "created": state.get("created"),
                "tags": _list(tags if tags is not None else state.get("tags")),
                "activeTask": told.get("activeTask"),
                "nextSteps": _list(told.get("nextSteps")),
                "hasContent": bool(payload),
            }


def _agent(context: Mapping[str, Any], agents: Sequence[Agent]) -> Value | None:
    known = find_agent(agents, context)
    if known is not None:
        return {"id": known.id, "name": known.name, "systemPrompt": known.prompt}
    dedicated = _object(context.get("dedicatedAgent"))
    name = dedicated.get("agentName")
    return {"id": dedicated.get("agentId"), "name": name, "systemPrompt": None} if dedicated else None


def _newest(entries: Iterable[Value], by: str, limit: int) -> list[Value]:
    return sorted(entries, key=lambda entry: number(entry[by]), reverse=True)[:limit]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _object(value: object) -> Value:
    return value if isinstance(value, dict) else {}


_RECENT = 5
_UNLISTED = (
    "Note: Workspace directory navigation unavailable. "
    "Use vaultManager listDirectoryMode to explore the workspace folder structure."
)
_INDEXED = (".md", ".canvas")
"""The program's index of files, which its recent files are taken from, has no others."""


class Version(Enum):
    """The program's versions whose answers differ; the value is what one says of an id that it doesn't find."""

    NOVEMBER = "Workspace with ID '{}' not found"
    DECEMBER = "Workspace '{}' not found (searched by both name and ID)"


def version_of(workspaces: Iterable[Mapping[str, Any]]) -> Version:
    """The version that has written these: traces have a schema, and states are called so, in the later one."""
    sessions = [session for workspace in workspaces for session in sessions_of(workspace).values()]
    metadata = [trace.get("metadata") for session in sessions for trace in traces_of(session).values()]
    later = any(isinstance(each, dict) and "schemaVersion" in each for each in metadata) or any(
        "state" in state for session in sessions for state in states_of(session).values()
    )
    return Version.DECEMBER if later else Version.NOVEMBER


def answer_unknown(version: Version, id_: str) -> Value:
    """The answer for an id that isn't there."""
    message = version.value.format(id_)
    nothing: Value = {"workflows": [], "workspaceStructure": [], "recentFiles": [], "keyFiles": {}, "preferences": ""}
    context = {"name": "Unknown", "rootFolder": "", "recentActivity": [message]}
    return {"success": False, "error": message, "data": {"context": context, **nothing, "sessions": [], "states": []}}


def load_workspace(workspace: Mapping[str, Any], around: Surroundings, limit: int) -> Value:
    """The answer for a workspace."""
    context = workspace.get("context")
    context = context if isinstance(context, dict) else {}
    root = workspace.get("rootFolder")
    listed = isinstance(root, str) and (root == "/" or root in around.folders)
    structure = _structure(around.files, str(root)) if listed else []
    activity = _activity(workspace, limit) or ["No recent activity"]
    told = {
        "name": workspace.get("name"),
        "description": workspace.get("description") or None,
        "purpose": context.get("purpose") or None,
        "rootFolder": root,
    }
    agent = find_agent(around.agents, context)
    data: Value = {
        "context": {**_present(told), "recentActivity": activity if listed else [*activity, _UNLISTED]},
        "workflows": [f"**{_text(name)}** ({_text(when)}):\n{steps}" for name, when, steps in workflows(context)],
        "workspaceStructure": structure,
        "recentFiles": [{"path": file.path, "modified": file.modified} for file in _recent(around.files, root)],
        "keyFiles": dict(key_files(context)),
        "preferences": preferences(workspace, context) or "No preferences set",
        "sessions": list(_session_members(workspace))[:limit],
        "states": [],
        **({"agent": {"id": agent.id, "name": agent.name, "systemPrompt": agent.prompt}} if agent else {}),
    }
    return {
        "success": True,
        "data": data,
        "workspaceContext": {"workspaceId": workspace["id"], "workspacePath": structure},
    }


def _activity(workspace: Mapping[str, Any], limit: int) -> list[Any]:
    traces = [trace for session in sessions_of(workspace).values() for trace in traces_of(session).values()]
    traces.sort(key=lambda trace: number(trace.get("timestamp")), reverse=True)
    return [session_memory(each, schema=False) or each.get("content") or "Unknown activity" for each in traces[:limit]]


def _structure(files: Sequence[VaultFile], root: str) -> list[str]:
    if root == "/":
        return in_order(file.path for file in files)
    return in_order(file.path.removeprefix(root + "/") for file in files if file.path.startswith(root + "/"))


def _recent(files: Sequence[VaultFile], root: object) -> list[VaultFile]:
    """Five files, of which those of a folder come once for each way that leads to it.

    The program goes from a folder to all folders below that hold notes, and from each of them again to all below it:
    what is n folders deep comes 2 ** (n - 1) times.
    """
    notes = [file for file in files if file.path.endswith(_INDEXED)]
    folders: dict[str, list[VaultFile]] = {}
    for file in notes:
        folders.setdefault(file.path.rpartition("/")[0] or "/", []).append(file)
    if not root:
        found = notes
    else:
        found = [
            file for folder, times in _visits(folders, str(root)) for file in folders[folder] for _ in range(times)
        ]
    return sorted(found, key=lambda file: file.modified, reverse=True)[:_RECENT]


def _visits(folders: Iterable[str], root: str) -> Iterator[tuple[str, int]]:
    """The folders that are visited, and how many times; more than there is room for makes no difference."""
    times: dict[str, int] = {root: 1}
    for folder in sorted(folders):
        if folder.startswith(root + "/"):
            ways = sum(count for above, count in times.items() if folder.startswith(above + "/"))
            times[folder] = min(ways, _RECENT)
    known = set(folders)
    yield from ((folder, count) for folder, count in times.items() if folder in known)


def _session_members(workspace: Mapping[str, Any]) -> Iterator[Value]:
    for session in sessions_of(workspace).values():
        told = {"id": session.get("id"), "name": session.get("name"), "description": session.get("description")}
        yield {**_present(told), **_present({"created": session.get("startTime")}), "workspaceId": workspace["id"]}


def _present(members: Value) -> Value:
    """An object without what is undefined."""
    return {name: value for name, value in members.items() if value is not None}


def _text(value: object) -> str:
    """A value in the middle of a text."""
    return "undefined" if value is None else str(value)
