"""An in-memory object store behind a link with a given delay and bandwidth: the part of S3's protocol that s3fs needs.

``python -m benchmarks.object_store DELAY_MS MB_PER_S`` prints its port and serves until its input ends.
"""

from __future__ import annotations

import re
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

_CHUNK = 128 << 10  # bytes sent between two checks of the clock


class Link:
    """A link with a limited bandwidth, shared by all its users."""

    def __init__(self, bytes_per_second: float) -> None:
        self._rate = bytes_per_second
        self._free_at = 0.0
        self._lock = threading.Lock()

    def pass_through(self, size: int) -> None:
        """Wait until the link has carried `size` bytes."""
        with self._lock:
            now = time.perf_counter()
            self._free_at = max(self._free_at, now - 0.002) + size / self._rate  # 2 ms of slack for a late wake-up
            wait = self._free_at - now
        if wait > 0.001:
            time.sleep(wait)


class Store:
    """Objects, unfinished uploads, and the two directions of the link."""

    def __init__(self, delay: float, bytes_per_second: float) -> None:
        self.delay = delay
        self.down, self.up = Link(bytes_per_second), Link(bytes_per_second)
        self.objects: dict[str, list[bytes | bytearray]] = {}  # in the parts they were uploaded in
        self.uploads: dict[str, dict[int, bytes | bytearray]] = {}


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    store: Store

    def do_HEAD(self) -> None:
        time.sleep(self.store.delay)
        parts = self.store.objects.get(self._key)
        if parts is None:
            self._answer(404)
        else:
            self._head(200, sum(map(len, parts)))

    def do_GET(self) -> None:
        time.sleep(self.store.delay)
        if "list-type" in self._query:
            empty = b"<KeyCount>0</KeyCount><IsTruncated>false</IsTruncated>"
            self._answer(200, b"<ListBucketResult>" + empty + b"</ListBucketResult>")
            return
        parts = self.store.objects.get(self._key)
        if parts is None:
            self._answer(404)
            return
        if len(parts) != 1:
            parts[:] = [b"".join(parts)]  # on reading, as a store does not join parts at the end of an upload
        data = parts[0]
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        begin, end = (int(match[1]), min(int(match[2]) + 1, len(data))) if match else (0, len(data))
        self._head(206 if match else 200, end - begin, f"bytes {begin}-{end - 1}/{len(data)}" if match else None)
        view = memoryview(data)
        for at in range(begin, end, _CHUNK):
            piece = view[at : min(at + _CHUNK, end)]
            self.store.down.pass_through(len(piece))
            self.wfile.write(piece)

    def do_PUT(self) -> None:
        body = self._body()
        time.sleep(self.store.delay)
        if "uploadId" in self._query:
            self.store.uploads[self._query["uploadId"][0]][int(self._query["partNumber"][0])] = body
        else:
            self.store.objects[self._key] = [body]
        self._answer(200)

    def do_POST(self) -> None:
        self._body()
        time.sleep(self.store.delay)
        if "uploads" in self._query:
            upload = uuid.uuid4().hex
            self.store.uploads[upload] = {}
            answer = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            self._answer(200, answer.encode())
            return
        parts = self.store.uploads.pop(self._query["uploadId"][0])
        self.store.objects[self._key] = [parts[n] for n in sorted(parts)]
        self._answer(200, b"<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>")

    def do_DELETE(self) -> None:
        time.sleep(self.store.delay)
        self.store.uploads.pop(self._query.get("uploadId", [""])[0], None)
        self.store.objects.pop(self._key, None)
        self._answer(204)

    @property
    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).lstrip("/")

    @property
    def _query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.path).query, keep_blank_values=True)

    def _body(self) -> bytearray:
        body = bytearray(int(self.headers.get("Content-Length", 0)))
        view, at = memoryview(body), 0
        while at < len(body):
            n = self.rfile.readinto(view[at : at + _CHUNK])
            if not n:
                raise ConnectionError("the client closed the connection")
            self.store.up.pass_through(n)
            at += n
        return body

    def _head(self, status: int, size: int, content_range: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(size))
        self.send_header("ETag", '"e"')
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()

    def _answer(self, status: int, body: bytes = b"") -> None:
        self._head(status, len(body))
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore readers that close the connection within a body."""


def main() -> None:
    store = Store(float(sys.argv[1]) / 1000, float(sys.argv[2]) * 1e6)
    server = Server(("127.0.0.1", 0), type("StoreHandler", (Handler,), {"store": store}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
