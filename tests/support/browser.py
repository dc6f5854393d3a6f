"""Chromium without a window, driven through pipes by its DevTools protocol. Only Chromium needs to be installed."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_PATIENCE = 30
"""Seconds after which an answer is missing."""
_KEYS = {"Enter": ("Enter", 13, "\r"), " ": ("Space", 32, " "), "*": ("NumpadMultiply", 106, "*")}


def find_browser() -> str | None:
    """Return the browser's program; None if there is none."""
    return next((path for name in NAMES if (path := shutil.which(name)) is not None), None)


class Browser:
    """One page of a browser."""

    def __init__(self, program: str, home: Path) -> None:
        """Start the browser with a new profile below ``home``."""
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # The browser reads from descriptor 3 and writes to 4; a shell puts the pipes there, whatever numbers they have.
        command = f'exec "$0" "$@" 3<&{to_read} 4>&{to_write}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, program, *FLAGS, f"--user-data-dir={home}", "about:blank"],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_read)
        os.close(to_write)
        self._buffer, self._number, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        """What the page has reported."""
        target = next(each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility", "DOM"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """End the browser and its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the answer to a command."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self.events.append(answer)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], _PATIENCE)
            part = os.read(self._read, 1 << 20) if ready else b""
            if not part:
                raise AssertionError("the browser doesn't answer")
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def reported(self, method: str) -> list[dict[str, Any]]:
        """Return what the page has reported by events of this name."""
        self.call("Runtime.evaluate", expression="0")  # whatever is on its way arrives first
        return [event["params"] for event in self.events if event["method"] == method]

    def open(self, address: str, width: int = 1400, height: int = 900, **features: str) -> None:
        """Load a page in a window of this size. ``features``: media features, ``_`` instead of ``-``."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", features=named)
        self.events.clear()
        self.call("Page.navigate", url=address)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script: str) -> Any:
        """Return the value of an expression, or of what it promises."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"]["exception"].get("description", "an exception"))
        return answer["result"].get("value")

    def until(self, script: str) -> None:
        """Wait until an expression is true."""
        limit = time.monotonic() + _PATIENCE
        while not self.run(f"Boolean({script})"):
            if time.monotonic() > limit:
                raise AssertionError(f"never true: {script}")
            time.sleep(0.02)

    def settle(self) -> None:
        """Wait for the next frame but one: what a key or a click has caused is drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def press(self, *keys: str) -> None:
        """Press keys by their names, such as ``ArrowDown`` or ``a``."""
        for key in keys:
            code, number, text = _KEYS.get(key, (key, 0, key if len(key) == 1 else ""))
            event = {"key": key, "code": code, "windowsVirtualKeyCode": number}
            self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **event)
            self.call("Input.dispatchKeyEvent", type="keyUp", **event)
        self.settle()

    def click(self, selector: str) -> None:
        """Click in the middle of an element."""
        place = self.run(
            f"(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)
        self.settle()

    def picture(self) -> bytes:
        """Return what is in the window as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])

    def printed(self) -> bytes:
        """Return the page as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def accessibility(self) -> list[dict[str, Any]]:
        """Return the nodes of the accessibility tree that aren't ignored."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [node for node in nodes if not node["ignored"]]
