"""An in-memory object store behind a link with a given delay and bandwidth: the part of S3's protocol that s3fs needs.

``python -m benchmarks.special.object_store DELAY_MS MB_PER_S [CONNECTION_MB_PER_S]`` prints its port and serves until
its input ends. Without the last, a connection may use the whole link. ``GET /.requests`` answers how many requests of
each kind there were since the last such question.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
import uuid
from base64 import b64encode
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

import crc32c

_CHUNK = 128 << 10  # bytes sent between two checks of the clock
_PAGE = 1000  # of a listing


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

    def __init__(self, delay: float, bytes_per_second: float, bytes_per_second_each: float | None = None) -> None:
        self.delay, self.rate_each = delay, bytes_per_second_each
        self.down, self.up = Link(bytes_per_second), Link(bytes_per_second)
        self.objects: dict[str, list[bytes | bytearray]] = {}  # in the parts they were uploaded in
        self.tags: dict[str, str] = {}
        self.uploads: dict[str, dict[int, bytes | bytearray]] = {}
        self.requests: Counter[str] = Counter()
        self.lock = threading.Lock()

    def put(self, key: str, parts: list[bytes | bytearray]) -> None:
        self.objects[key], self.tags[key] = parts, f"{uuid.uuid4().hex}-1"  # of parts: no client takes it for an MD5


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    store: Store

    def setup(self) -> None:
        super().setup()
        self._own = None if self.store.rate_each is None else Link(self.store.rate_each)

    def _begin(self, kind: str) -> None:
        """Count a request, and wait as long as it takes to arrive."""
        self.store.requests[kind] += 1
        time.sleep(self.store.delay)

    def _pass(self, link: Link, size: int) -> None:
        link.pass_through(size)
        if self._own is not None:
            self._own.pass_through(size)

    def do_HEAD(self) -> None:
        self._begin("HEAD")
        parts = self.store.objects.get(self._key)
        if parts is None:
            self._answer(404)
        else:
            self._head(200, sum(map(len, parts)))

    def do_GET(self) -> None:
        if self._key == ".requests":
            answer = json.dumps(self.store.requests).encode()
            self.store.requests.clear()
            self._answer(200, answer)
            return
        self._begin("LIST" if "list-type" in self._query else "GET")
        if "list-type" in self._query:
            self._list()
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
            self._pass(self.store.down, len(piece))
            self.wfile.write(piece)

    def do_PUT(self) -> None:
        body = self._body()
        copied = self.headers.get("x-amz-copy-source")
        self._begin("COPY" if copied else "PUT")
        if copied:
            parts = self.store.objects[unquote(copied).partition("?")[0].lstrip("/")]
            self.store.put(self._key, parts)
            crc = b64encode(crc32c.crc32c(b"".join(parts)).to_bytes(4, "big")).decode()
            checksum = f"<ChecksumCRC32C>{crc}</ChecksumCRC32C>" if self.headers.get("x-amz-checksum-algorithm") else ""
            when = "<LastModified>2024-01-01T00:00:00.000Z</LastModified>"
            text = f"<CopyObjectResult>{when}<ETag>{self.store.tags[self._key]}</ETag>{checksum}</CopyObjectResult>"
            self._answer(200, text.encode())
        elif "uploadId" in self._query:
            self.store.uploads[self._query["uploadId"][0]][int(self._query["partNumber"][0])] = body
            self._answer(200)
        else:
            with self.store.lock:  # a condition holds until the object is stored
                if holds := self._holds():
                    self.store.put(self._key, [body])
            if holds:
                self._answer(200)
            else:
                self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")

    def _holds(self) -> bool:
        """Whether the condition of a request holds."""
        known, expected = self.store.tags.get(self._key), self.headers.get("If-Match")
        return known is None if self.headers.get("If-None-Match") else expected in (None, f'"{known}"')

    def _list(self) -> None:
        """The objects and folders of a folder, or all objects below it, a page at a time."""
        bucket, prefix = self._key.partition("/")[0], self._query.get("prefix", [""])[0]
        delimiter, after = (self._query.get(name, [""])[0] for name in ("delimiter", "continuation-token"))
        cut, depth = len(bucket) + 1, len(f"{bucket}/{prefix}")
        shown: dict[str, str] = {}
        for key in sorted(key for key in list(self.store.objects) if key.startswith(f"{bucket}/{prefix}")):
            rest = key[depth:]
            name = key[: depth + rest.index(delimiter) + 1] if delimiter and delimiter in rest else key
            if name in shown or name[cut:] <= after:
                continue
            if len(shown) == _PAGE:
                break
            if name != key:
                shown[name] = f"<CommonPrefixes><Prefix>{escape(name[cut:])}</Prefix></CommonPrefixes>"
                continue
            when = "<LastModified>2024-01-01T00:00:00.000Z</LastModified>"
            size = f"<Size>{sum(map(len, self.store.objects[key]))}</Size>"
            tag = f'<ETag>"{self.store.tags[key]}"</ETag>'
            shown[name] = f"<Contents><Key>{escape(key[cut:])}</Key>{when}{tag}{size}</Contents>"
        else:
            name = ""
        more = f"<NextContinuationToken>{escape(max(shown)[cut:])}</NextContinuationToken>" if name else ""
        text = f"<IsTruncated>{str(bool(name)).lower()}</IsTruncated><KeyCount>{len(shown)}</KeyCount>{more}"
        text += "".join(shown.values())
        self._answer(200, f"<ListBucketResult>{text}</ListBucketResult>".encode())

    def do_POST(self) -> None:
        body = self._body()
        self._begin("POST")
        if "delete" in self._query:
            for key in re.findall("<Key>(.*?)</Key>", body.decode()):
                self._remove(f"{self._key.partition('/')[0]}/{unescape(key)}")
            self._answer(200, b"<DeleteResult></DeleteResult>")
            return
        if "uploads" in self._query:
            upload = uuid.uuid4().hex
            self.store.uploads[upload] = {}
            answer = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            self._answer(200, answer.encode())
            return
        parts = self.store.uploads.pop(self._query["uploadId"][0])
        self.store.put(self._key, [parts[n] for n in sorted(parts)])
        self._answer(200, b"<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>")

    def do_DELETE(self) -> None:
        self._begin("DELETE")
        self.store.uploads.pop(self._query.get("uploadId", [""])[0], None)
        self._remove(self._key)
        self._answer(204)

    def _remove(self, key: str) -> None:
        self.store.objects.pop(key, None)
        self.store.tags.pop(key, None)

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
            self._pass(self.store.up, n)
            at += n
        return body

    def _head(self, status: int, size: int, content_range: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(size))
        self.send_header("ETag", f'"{self.store.tags.get(self._key, "e")}"')
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
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore readers that close the connection within a body."""


def main() -> None:
    rates = [float(each) * 1e6 for each in sys.argv[2:]]
    store = Store(float(sys.argv[1]) / 1000, *rates)
    server = Server(("127.0.0.1", 0), type("StoreHandler", (Handler,), {"store": store}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
