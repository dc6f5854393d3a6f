"""A stand-in for the model behind Claude Code: it logs each request, and answers it with one line of its own.

A prompt such as ``use Bash {"command": "ls"}`` is answered by that tool call; `SUBAGENT` starts a subagent. The log
shows what a resumed session sent to the model.
"""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REPLY = "This is reply"
SUBAGENT = 'use Agent {"description": "count", "prompt": "Count to three.", "subagent_type": "general-purpose"}'
LONG_OUTPUT = 'use Bash {"command": "seq 20000"}'
"""More than the program keeps in a session's own file."""
_OLDER = {"Agent": "Task"}
"""The names of tools in versions before 2.1."""
_USE = re.compile(r"^use (\w+) (\{.*\})$", re.MULTILINE)


class Stub:
    """A server on a free port of this machine, until it is closed. ``log`` gets one JSON line for each request."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self._numbers = count(1)
        self._writing = threading.Lock()
        self._may_answer = threading.Event()
        self._may_answer.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"stub": self}))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._may_answer.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def requests(self) -> list[dict[str, Any]]:
        """Everything that was sent until now: path, names of tools, messages."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Let every request wait for its answer until the end of the block."""
        self._may_answer.clear()
        try:
            yield
        finally:
            self._may_answer.set()

    def answer(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        """Log the request, and return the message that answers it."""
        messages = request.get("messages", [])
        tools = [tool["name"] for tool in request.get("tools", [])]
        line = json.dumps({"path": path, "tools": tools, "messages": messages})
        with self._writing, self.log.open("a") as log:
            log.write(line + "\n")
        self._may_answer.wait()
        number = next(self._numbers)
        wanted = _USE.search(_prompt(messages))
        names = [name for name in (wanted[1], _OLDER.get(wanted[1])) if name in tools] if wanted else []
        if wanted and names:
            block = {"type": "tool_use", "id": f"toolu_{number:020}", "name": names[0], "input": json.loads(wanted[2])}
        else:
            block = {"type": "text", "text": f"{REPLY} {number}."}
        return {
            "id": f"msg_{number:020}",
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": [block],
            "stop_reason": "end_turn" if block["type"] == "text" else "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }


def texts(content: str | list[dict[str, Any]]) -> list[str]:
    """The texts in a message: its own, and those in the results of tools."""
    if isinstance(content, str):
        return [content]
    return [
        text
        for block in content
        for text in ([block["text"]] if block["type"] == "text" else texts(block.get("content", [])))
    ]


def _prompt(messages: list[dict[str, Any]]) -> str:
    """What the user wrote last; nothing after the result of a tool, which ends the call."""
    users = [message["content"] for message in messages if message["role"] == "user"]
    content = users[-1] if users else []
    is_result = isinstance(content, list) and any(block["type"] == "tool_result" for block in content)
    return "" if is_result else "\n".join(texts(content))


def _streamed(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events that carry a message with one block of content."""
    (block,) = message["content"]
    begin: dict[str, Any]
    if block["type"] == "text":
        begin, delta = {"text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        begin, delta = {"input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield {"type": "message_start", "message": message | {"content": [], "stop_reason": None}}
    yield {"type": "content_block_start", "index": 0, "content_block": block | begin}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": message["stop_reason"]}, "usage": message["usage"]}
    yield {"type": "message_stop"}


class _Handler(BaseHTTPRequestHandler):
    stub: Stub

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        pass

    def do_HEAD(self) -> None:
        self._send("application/json", b"")

    def do_GET(self) -> None:
        self._send("application/json", b"{}")

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
        path = self.path.partition("?")[0]
        if path != "/v1/messages":
            self._send("application/json", b'{"input_tokens": 1}')
            return
        message = self.stub.answer(path, request)
        if request.get("stream"):
            events = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in _streamed(message))
            self._send("text/event-stream", events.encode())
        else:
            self._send("application/json", json.dumps(message).encode())

    def _send(self, kind: str, content: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        with suppress(BrokenPipeError):  # the program was killed
            self.wfile.write(content)
