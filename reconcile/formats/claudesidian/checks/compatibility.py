"""What the program's loadWorkspace answers, mistakes included, except that nothing is written.

See docs/design/formats/claudesidian.md#loadworkspace.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from reconcile.formats.claudesidian.briefing import find_agent, key_files, preferences, session_memory, workflows
from reconcile.formats.claudesidian.record_files import in_order, number, sessions_of, states_of, traces_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from reconcile.formats.claudesidian.briefing import Surroundings, VaultFile
    from reconcile.formats.claudesidian.record_files import Value

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


def unknown(version: Version, id_: str) -> Value:
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
        "sessions": list(_sessions(workspace))[:limit],
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


def _sessions(workspace: Mapping[str, Any]) -> Iterator[Value]:
    for session in sessions_of(workspace).values():
        told = {"id": session.get("id"), "name": session.get("name"), "description": session.get("description")}
        yield {**_present(told), **_present({"created": session.get("startTime")}), "workspaceId": workspace["id"]}


def _present(members: Value) -> Value:
    """An object without what is undefined."""
    return {name: value for name, value in members.items() if value is not None}


def _text(value: object) -> str:
    """A value in the middle of a text."""
    return "undefined" if value is None else str(value)
