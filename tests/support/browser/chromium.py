"""Pages in headless Chromium, over the DevTools protocol on a pipe: layout, messages, requests, screenshots."""

from __future__ import annotations

import base64
import json
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --remote-debugging-pipe"
).split()
_DATED = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Network.requestWillBeSent")
_LOADED = "new Promise(done => document.readyState == 'complete' ? done() : addEventListener('load', done))"
_SETTLED = "new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))"


class Page:
    """A tab.

    Attributes
    ----------
    messages : list of str
        What the page wrote to the console, and what the browser reports there, such as violations of its policy.
    requests : list of str
        URLs that it asked for, without those of the page itself and ``data:``.
    """

    def __init__(self, process: subprocess.Popen[bytes], write: int, read: int) -> None:
        self._process, self._write, self._read = process, write, read
        self._number, self._buffer, self._session = 0, b"", ""
        self.messages: list[str] = []
        self.requests: list[str] = []
        self._url, self._since = "", 0.0
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol, and return its result."""
        self._number += 1
        session = {"sessionId": self._session} if self._session else {}
        message = {"id": self._number, "method": method, "params": parameters, **session}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def _next(self) -> Any:
        while b"\0" not in self._buffer:
            part = os.read(self._read, 1 << 20)
            assert part, "Chromium has ended"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, event: dict[str, Any]) -> None:
        method, parameters = event.get("method"), event.get("params", {})
        seconds = parameters.get("wallTime", parameters.get("entry", parameters).get("timestamp", math.inf) / 1000)
        if method in _DATED and seconds < self._since:  # of the page before, which lost its server
            return
        if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Audits.issueAdded"):
            self.messages.append(json.dumps(parameters)[:200])
        elif method == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if url != self._url and not url.startswith("data:"):
                self.requests.append(url)

    def open(self, page: Path | str, width: int, *, dark: bool = False) -> None:
        """Load a file, or a URL, as in a window of this width."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url="about:blank")
        self.evaluate(_LOADED)
        self._since = self.evaluate("Date.now()") / 1000
        self.messages.clear()
        self.requests.clear()
        self._url = page if isinstance(page, str) else page.resolve().as_uri()
        self.call("Page.navigate", url=self._url)
        self.evaluate(_LOADED)
        self.evaluate(_SETTLED)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; of a promise, its result."""
        done = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def screenshot(self, path: Path, most: int = 16_000) -> None:
        """The page as a PNG, or its first `most` pixels."""
        height = min(most, self.evaluate("document.documentElement.scrollHeight"))
        width = self.evaluate("innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        made = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(made["data"]))


@contextmanager
def chromium() -> Iterator[Page]:
    """A browser with an empty profile, which ends with the block."""
    assert CHROMIUM is not None
    to_browser, ours_out = os.pipe()
    ours_in, from_browser = os.pipe()

    def pipes() -> None:  # the protocol is spoken on the descriptors 3 and 4
        first, second = os.dup(to_browser), os.dup(from_browser)
        os.dup2(first, 3)
        os.dup2(second, 4)
        os.set_inheritable(3, True)
        os.set_inheritable(4, True)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=pipes
        )
        os.close(to_browser)
        os.close(from_browser)
        try:
            yield Page(process, ours_out, ours_in)
        finally:
            os.close(ours_out)
            process.terminate()
            process.wait(20)
            os.close(ours_in)


@pytest.fixture(scope="session")
def page() -> Iterator[Page]:
    """A tab of headless Chromium; the test is skipped where it is not installed."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with chromium() as page:
        yield page
