"""A proxy that injects faults of networks and busy servers into some requests."""

from __future__ import annotations

import http.client
import random
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any
from urllib.parse import urlsplit

FAULTS = ("reset", "cut", "lost", "busy", "slow")


@dataclass
class Schedule:
    """The faults in the requests of one run, chosen by a seed.

    Parameters
    ----------
    seed : int
    faults : int
        Maximum number of faults; later requests succeed.
    odds : float
        Probability of a fault in a request.
    kinds : tuple of str
        The faults that are chosen from; "cut" and "slow" requests bring data.
    """

    seed: int
    faults: int
    odds: float = 0.5
    kinds: tuple[str, ...] = FAULTS
    injected: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._lock = Lock()

    def next(self, method: str, target: str) -> tuple[str | None, float]:
        """The fault in this request, and a number from 0 to 1 for its position."""
        with self._lock:
            if len(self.injected) >= self.faults or self._random.random() > self.odds:
                return None, 0.0
            fault = self._random.choice(self.kinds)
            if fault in ("lost", "cut") and method == "POST" and target.endswith("?uploads"):
                fault = "reset"  # an upload whose id is lost cannot be aborted by its writer
            self.injected.append(f"{fault} {method}")
            return fault, self._random.random()


class Chaos:
    """The proxy. Requests for an object follow the schedule of its name; all others pass.

    Attributes
    ----------
    schedules : dict of Schedule
        By the last part of a key.
    full : bool
        Whether the store refuses further data.
    stalled : str
        A method whose requests are never answered.
    """

    def __init__(self, upstream: str) -> None:
        self.schedules: dict[str, Schedule] = {}
        self.full = False
        self.stalled = ""
        self._closed = Event()
        host, port = urlsplit(upstream).hostname, urlsplit(upstream).port
        chaos = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _pass_on(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(length)
                if len(body) < length:  # the client has given up
                    self.close_connection = True
                    return
                schedule = chaos.schedules.get(urlsplit(self.path).path.rpartition("/")[2])
                fault, where = (None, 0.0) if schedule is None else schedule.next(self.command, self.path)
                if chaos.stalled == self.command:
                    chaos._closed.wait()
                if fault == "reset" or chaos._closed.is_set():
                    self._reset()
                    return
                if chaos.full and self.command == "PUT":
                    self._send(507, [("Content-Type", "application/xml")], _FULL, len(_FULL))
                    return
                if fault == "busy":
                    self._send(
                        503, [("Content-Type", "application/xml")], _BUSY if self.command != "HEAD" else b"", len(_BUSY)
                    )
                    return
                status, headers, answer = self._ask(body)
                if fault == "lost":
                    self._reset()
                elif fault == "cut" and answer:
                    self._send(status, headers, answer[: int(len(answer) * where)], len(answer))
                    self._reset()
                else:
                    size = next((int(v) for k, v in headers if k.lower() == "content-length"), len(answer))
                    self._send(status, headers, answer, size, slowly=fault == "slow")

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass_on

            def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
                server = http.client.HTTPConnection(str(host), port, timeout=10)
                try:
                    server.request(
                        self.command,
                        self.path,
                        body or None,
                        {k: v for k, v in self.headers.items() if k.lower() != "expect"},
                    )
                    answer = server.getresponse()
                    return answer.status, answer.getheaders(), answer.read()
                finally:
                    server.close()

            def _send(
                self, status: int, headers: list[tuple[str, str]], body: bytes, size: int, *, slowly: bool = False
            ) -> None:
                self.send_response_only(status)
                for key, value in headers:
                    if key.lower() not in ("content-length", "transfer-encoding", "connection"):
                        self.send_header(key, value)
                self.send_header("Content-Length", str(size))
                self.end_headers()
                piece = max(1, len(body) // 3 if slowly else len(body))
                for at in range(0, len(body), piece):
                    self.wfile.write(body[at : at + piece])
                    self.wfile.flush()

            def _reset(self) -> None:
                """Reset the connection instead of closing it."""
                self.wfile.flush()
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except (OSError, ValueError):
                    self.close_connection = True

            def finish(self) -> None:
                with suppress(OSError, ValueError):
                    super().finish()

            def log_message(self, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.socket.listen(128)  # a connection that a backlog of 5 drops is tried again after seconds
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()


_FULL = b"<?xml version='1.0'?><Error><Code>XMinioStorageFull</Code><Message>The store is full.</Message></Error>"
_BUSY = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
