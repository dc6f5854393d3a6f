"""Sessions that Claude Code wrote, for the tests that run without it: ``python -m tests.agents.record [VERSION ...]``.

Every line, key and kind is kept. A text that isn't our own becomes `VENDOR`; an attachment, the shape of a request and
its parts keep no more than their type. So no prompt of the vendor's is in the repository, and no path of this machine.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.agents.program import OLDER, VERSIONS, Program, directory_name, install, records
from tests.agents.stub import LONG_OUTPUT, REPLY, SUBAGENT, Stub

RECORDED = Path(__file__).parent / "recorded"
HOME = "/home/ada"
PROJECT = f"{HOME}/project"
VENDOR = "a text of the program"
PROMPTS = ("The first prompt.", "Continued.", "Forked.", LONG_OUTPUT, SUBAGENT)
OPAQUE = {"attachment", "cacheControl", "keep", "params", "rendered", "shape", "tail"}
"""The keys of what the program adds to a request; in an `api-request-blob`, the message is one, too."""


def record(version: str, directory: Path) -> None:
    """Play the sessions with this version, and write them below the directory as a project directory has them."""
    with tempfile.TemporaryDirectory() as work, Stub(Path(work, "log")) as stub:
        project = Path(work, "project")
        program = Program(install(version), Path(work, "home"), stub)
        paths = {str(path): new for path, new in ((project, PROJECT), (program.home, HOME))}
        paths[directory_name(str(project))] = directory_name(PROJECT)

        def save(story: str, *sessions: Path) -> None:
            for session in sessions:
                files = [session, *(path for path in session.with_suffix("").rglob("*") if path.is_file())]
                files += subagents_beside(session) if story == "subagent" else []
                for file in files:
                    target = directory / story / file.relative_to(session.parent)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(plain_file(file, paths))

        program.say(PROMPTS[0], cwd=project)
        (session,) = program.sessions(project)
        save("plain", session)
        program.say(PROMPTS[1], cwd=project, cont=True)
        save("continued", session)
        program.say(PROMPTS[2], cwd=project, cont=True, fork=True)
        (fork,) = set(program.sessions(project)) - {session}
        save("forked", session, fork)
        for prompt in (LONG_OUTPUT, SUBAGENT):
            program.say(prompt, cwd=project, resume=fork.stem)
        save("subagent", fork)
        torn = directory / "torn" / session.name
        torn.parent.mkdir()
        torn.write_bytes((directory / "continued" / session.name).read_bytes()[:-20])


def subagents_beside(session: Path) -> list[Path]:
    """Return the subagents that versions before 2.1 put beside a session."""
    return [path for path in session.parent.glob("agent-*.jsonl") if records(path)[0]["sessionId"] == session.stem]


def plain_file(file: Path, paths: dict[str, str]) -> str:
    """Return the content of a session's file in our words, and the beginning of a tool's long result."""
    if file.suffix == ".txt":
        return "".join(file.read_text().splitlines(keepends=True)[:10])
    return "".join(
        json.dumps(plain(json.loads(line), paths), ensure_ascii=False, separators=(",", ":")) + "\n"
        for line in file.read_text().splitlines()
    )


def plain(value: Any, paths: dict[str, str]) -> Any:
    """Return a value with the same keys and kinds, in our words."""
    if isinstance(value, str):
        for old, new in paths.items():
            value = value.replace(old, new)
        return value if is_ours(value) else VENDOR
    if isinstance(value, list):
        return [plain(each, paths) for each in value]
    if isinstance(value, dict):
        opaque = OPAQUE | ({"message"} if value.get("type") == "api-request-blob" else set())
        return {key: kind_of(each) if key in opaque else plain(each, paths) for key, each in value.items()}
    return value


def is_ours(text: str) -> bool:
    """Whether a text is one word (an id, a time, a path), a part of our prompts, or the stub's reply."""
    is_word = len(text.split()) <= 1 and len(text) < 200
    return is_word or text == VENDOR or any(text in prompt for prompt in PROMPTS) or text.startswith(REPLY)


def kind_of(value: Any) -> Any:
    """Return an object with its type alone, an empty list, or a number."""
    if isinstance(value, dict):
        return {"type": value["type"]} if isinstance(value.get("type"), str) else {}
    return [] if isinstance(value, list) else VENDOR if isinstance(value, str) else value


if __name__ == "__main__":
    for each in sys.argv[1:] or (*OLDER, *VERSIONS):
        shutil.rmtree(RECORDED / each, ignore_errors=True)
        record(each, RECORDED / each)
