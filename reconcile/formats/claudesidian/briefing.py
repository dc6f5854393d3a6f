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
    """A visible file of the vault; ``path`` is relative to the vault, ``modified`` in ms."""

    path: str
    modified: int


class Agent(Struct, frozen=True):
    """An agent that is defined in the settings of the program."""

    id: str
    name: str
    prompt: str


class Surroundings(Struct, frozen=True):
    """The inputs of a briefing besides the workspace: visible files and folders, and the agents.

    ``unread`` are the paths in the vault that can't be read: their content is unknown.
    """

    files: Sequence[VaultFile] = ()
    folders: frozenset[str] = frozenset()
    agents: Sequence[Agent] = ()
    unread: Sequence[Fault] = ()


def brief(workspace: Mapping[str, Any], around: Surroundings, limit: int) -> Value:
    """Return what a new conversation should know of a workspace, as JSON, with ``limit`` entries in each list."""
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
            {"path": fault.file, "found": fault.found}
            for fault in around.unread
            if fault.file.startswith((".", f"{root}/" if root else "")) or _is_at(root, fault.file)
        ],
    }


def _exists(root: str, around: Surroundings) -> bool | None:
    """Tell whether a folder exists; None if its parent can't be read."""
    if not root or root in around.folders:
        return True
    return None if any(_is_at(root, fault.file) for fault in around.unread) else False


def _is_at(root: str, place: str) -> bool:
    """Tell whether a folder is at a place or below it."""
    return place == "/" or f"{root}/".startswith(f"{place}/")


def workflows(context: Mapping[str, Any]) -> Iterator[tuple[Any, Any, str]]:
    """Yield the name, the time and the steps of each workflow; an older list of steps becomes lines.

    See docs/design/formats/claudesidian.md#edge-case-22.
    """
    for workflow in _list(context.get("workflows")):
        if isinstance(workflow, dict):
            steps = workflow.get("steps")
            text = "\n".join(map(str, steps)) if isinstance(steps, list) else steps
            yield workflow.get("name"), workflow.get("when"), text if isinstance(text, str) else ""


def key_files(context: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names and paths of the key files, also of the older form by categories."""
    for at, entry in enumerate(_list(context.get("keyFiles"))):
        if isinstance(entry, str):
            yield short_name(entry) or f"file_{at}", entry
        else:
            named = _object(_object(entry).get("files"))
            yield from ((name, path) for name, path in named.items() if isinstance(path, str))


def short_name(path: str) -> str:
    """Return the name of a file without its last extension."""
    name = path.rpartition("/")[2]
    stem, dot, extension = name.rpartition(".")
    return stem if dot and extension else name


def preferences(workspace: Mapping[str, Any], context: Mapping[str, Any]) -> str | None:
    """Return the preferences, also of the older forms."""
    value = context.get("preferences")
    if isinstance(value, list):
        return ". ".join(map(str, value)) or None
    if isinstance(value, str) and value.strip():
        return value
    older = _object(workspace.get("preferences")).get("userPreferences")
    return ". ".join(map(str, older)) + "." if isinstance(older, list) else None


def read_agents(content: bytes) -> Iterator[Agent]:
    """Yield the agents in the settings of the program; none if the settings can't be read."""
    try:
        value = javascript.parse(content)
    except InvalidContentError:
        return
    for prompt in _list(_object(_object(value).get("customPrompts")).get("prompts")):
        agent = _object(prompt)
        if all(isinstance(agent.get(name), str) for name in ("id", "name", "prompt")):
            yield Agent(agent["id"], agent["name"], agent["prompt"])


def find_agent(agents: Iterable[Agent], context: Mapping[str, Any]) -> Agent | None:
    """Return the agent that a workspace refers to by id, or by name in the older form."""
    dedicated = context.get("dedicatedAgent")
    if isinstance(dedicated, dict):
        return next((agent for agent in agents if agent.id == dedicated.get("agentId")), None)
    older = _list(context.get("agents"))
    name = _object(older[0]).get("name") if older else None
    return next((agent for agent in agents if agent.name == name), None)


def task_of(trace: Mapping[str, Any], *, schema: bool) -> str | None:
    """Return what an agent reported as its task; ``schema``: search also the place of trace schema v1."""
    metadata = _object(trace.get("metadata"))
    request = _object(metadata.get("request"))
    places = [_object(request.get(params)).get("context") for params in ("normalizedParams", "originalParams")]
    for place in (*places, metadata.get("context")) if schema else places:
        memory = _object(place).get("sessionMemory")
        if isinstance(memory, str) and memory.strip():
            return memory
    return None


def _activities(workspace: Mapping[str, Any]) -> Iterator[Value]:
    for key, session in sessions_of(workspace).items():
        for trace in traces_of(session).values():
            text = task_of(trace, schema=True) or trace.get("content") or "unknown activity"
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
            saved_context = _object(payload.get("context", payload.get("snapshot")))
            tags = _object(_object(payload.get("state")).get("metadata")).get("tags")
            yield {
                "id": id_,
                "name": state.get("name"),
                "description": payload.get("description", state.get("description")),
                "sessionId": key,
                "created": state.get("created"),
                "tags": _list(tags if tags is not None else state.get("tags")),
                "activeTask": saved_context.get("activeTask"),
                "nextSteps": _list(saved_context.get("nextSteps")),
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
"""Extensions in the file index of the program, from which its recent files are taken."""


class Version(Enum):
    """The versions of the program whose answers differ. The value is the message for an unknown id."""

    NOVEMBER = "Workspace with ID '{}' not found"
    DECEMBER = "Workspace '{}' not found (searched by both name and ID)"


def version_of(workspaces: Iterable[Mapping[str, Any]]) -> Version:
    """Return the version that wrote these workspaces: the later has a schema in traces, and the key `state`."""
    sessions = [session for workspace in workspaces for session in sessions_of(workspace).values()]
    metadata = [trace.get("metadata") for session in sessions for trace in traces_of(session).values()]
    later = any(
        isinstance(trace_metadata, dict) and "schemaVersion" in trace_metadata for trace_metadata in metadata
    ) or any("state" in state for session in sessions for state in states_of(session).values())
    return Version.DECEMBER if later else Version.NOVEMBER


def answer_unknown(version: Version, id_: str) -> Value:
    """Return the answer for an unknown id."""
    message = version.value.format(id_)
    nothing: Value = {"workflows": [], "workspaceStructure": [], "recentFiles": [], "keyFiles": {}, "preferences": ""}
    context = {"name": "Unknown", "rootFolder": "", "recentActivity": [message]}
    return {"success": False, "error": message, "data": {"context": context, **nothing, "sessions": [], "states": []}}


def load_workspace(workspace: Mapping[str, Any], around: Surroundings, limit: int) -> Value:
    """Return the answer for a workspace."""
    context = workspace.get("context")
    context = context if isinstance(context, dict) else {}
    root = workspace.get("rootFolder")
    listed = isinstance(root, str) and (root == "/" or root in around.folders)
    structure = _structure(around.files, str(root)) if listed else []
    activity = _activity(workspace, limit) or ["No recent activity"]
    members = {
        "name": workspace.get("name"),
        "description": workspace.get("description") or None,
        "purpose": context.get("purpose") or None,
        "rootFolder": root,
    }
    agent = find_agent(around.agents, context)
    data: Value = {
        "context": {**_present(members), "recentActivity": activity if listed else [*activity, _UNLISTED]},
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
    return [task_of(trace, schema=False) or trace.get("content") or "Unknown activity" for trace in traces[:limit]]


def _structure(files: Sequence[VaultFile], root: str) -> list[str]:
    if root == "/":
        return in_order(file.path for file in files)
    return in_order(file.path.removeprefix(root + "/") for file in files if file.path.startswith(root + "/"))


def _recent(files: Sequence[VaultFile], root: object) -> list[VaultFile]:
    """Return the five newest files; a file in a folder occurs once for each way that leads to it.

    The program goes from a folder to all folders below that hold notes, and from each of them again to all below it. A
    file that is n folders deep occurs 2 ** (n - 1) times.
    """
    notes = [file for file in files if file.path.endswith(_INDEXED)]
    folders: dict[str, list[VaultFile]] = {}
    for file in notes:
        folders.setdefault(file.path.rpartition("/")[0] or "/", []).append(file)
    if not root:
        files_visited = notes
    else:
        files_visited = [
            file for folder, times in _visits(folders, str(root)) for file in folders[folder] for _ in range(times)
        ]
    return sorted(files_visited, key=lambda file: file.modified, reverse=True)[:_RECENT]


def _visits(folders: Iterable[str], root: str) -> Iterator[tuple[str, int]]:
    """Yield the visited folders with their number of visits, at most as many as files are shown."""
    times: dict[str, int] = {root: 1}
    for folder in sorted(folders):
        if folder.startswith(root + "/"):
            ways = sum(count for above, count in times.items() if folder.startswith(above + "/"))
            times[folder] = min(ways, _RECENT)
    known = set(folders)
    yield from ((folder, count) for folder, count in times.items() if folder in known)


def _session_members(workspace: Mapping[str, Any]) -> Iterator[Value]:
    for session in sessions_of(workspace).values():
        members = {"id": session.get("id"), "name": session.get("name"), "description": session.get("description")}
        yield {**_present(members), **_present({"created": session.get("startTime")}), "workspaceId": workspace["id"]}


def _present(members: Value) -> Value:
    """Return the members that are not undefined."""
    return {name: value for name, value in members.items() if value is not None}


def _text(value: object) -> str:
    """Return a value as JavaScript inserts it into a text."""
    return "undefined" if value is None else str(value)
