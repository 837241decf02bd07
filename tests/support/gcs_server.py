"""The JSON API of Google Cloud Storage on the loopback interface, as far as readers and writers of objects use it.

Unlike the emulators, it has generations and conditions on them, resumable uploads, rewrites in several calls, batches,
answers that are compressed (``Content-Encoding: gzip``), and faults.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import re
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, quote, unquote

import crc32c

_BLOCK = 256 << 10  # an unfinished upload keeps whole blocks of this size


@dataclass
class Stored:
    """An object."""

    data: bytes
    meta: dict[str, Any]
    generation: int
    time: float = field(default_factory=time.time)


@dataclass
class Upload:
    """A resumable upload."""

    bucket: str
    key: str
    meta: dict[str, Any]
    query: Mapping[str, str]
    data: bytearray = field(default_factory=bytearray)
    done: Answer | None = None


@dataclass
class Answer:
    """The answer to a request; a `dict` is sent as JSON."""

    status: int
    body: bytes | dict[str, Any] = b""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def bytes(self) -> bytes:
        return json.dumps(self.body).encode() if isinstance(self.body, dict) else self.body


@dataclass
class Fault:
    """Fault that requests get whose line, ``method path?query``, matches a pattern.

    Attributes
    ----------
    kind : str
        A status, such as "503"; "reset", which ends the connection; "lost", which ends it after the request was
        carried out; "short", which sends half of the body.
    times, skip : int
        How many requests, after how many others.
    """

    match: str
    kind: str
    times: int = 1
    skip: int = 0
    message: str = "a fault"


@dataclass
class GcsServer:
    """The state of the server, which tests change.

    Attributes
    ----------
    endpoint : str
        Its URL.
    buckets : dict
        The objects of each, by name.
    requests : list of str
        ``method path?query`` of each; those of a batch are one.
    most : int
        How many uploads there were at a time.
    faults : list of Fault
    refused : str or None
        Anonymous requests that match this pattern are refused with 401, those with credentials with 403.
    rewrite_bytes : int
        What one call copies between buckets; 0: everything.
    delay : float
        Seconds before each answer.
    """

    endpoint: str = ""
    buckets: dict[str, dict[str, Stored]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    most: int = 0
    faults: list[Fault] = field(default_factory=list)
    refused: str | None = None
    rewrite_bytes: int = 0
    delay: float = 0.0
    _uploads: dict[str, Upload] = field(default_factory=dict)
    _rewrites: dict[str, int] = field(default_factory=dict)
    _now: int = 0
    _numbers: Iterator[int] = field(default_factory=lambda: count(1_700_000_000_000_000))

    def reset(self) -> None:
        """Forget the requests and the faults."""
        self.requests.clear()
        self.faults.clear()
        self.most, self.refused, self.rewrite_bytes, self.delay = 0, None, 0, 0.0

    def counted(self) -> Counter[str]:
        """The requests by kind."""
        return Counter(map(_kind, self.requests))

    def open_uploads(self) -> list[str]:
        """Keys of the uploads that are neither finished nor ended."""
        return sorted(upload.key for upload in self._uploads.values() if upload.done is None)

    def put(self, bucket: str, key: str, data: bytes, **meta: Any) -> None:
        """Store an object."""
        self.buckets[bucket][key] = Stored(data, meta, next(self._numbers))

    # ---- requests

    def answer(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Answer:
        """Carry out a request."""
        if path == "/storage/v1/b":
            return self._make_bucket(json.loads(body)["name"])
        found = re.match(r"(?:/upload|/download)?/storage/v1/b/([^/]+)(/.*)?$", path)
        if found is None:
            return _error(404, f"unknown {method} {path}")
        bucket, rest = unquote(found[1]), found[2] or ""
        if bucket not in self.buckets:
            return _error(404, "The specified bucket does not exist.")
        if path.startswith("/upload/"):
            return self._uploaded(method, bucket, query, headers, body)
        if rest in ("/o", "/o/"):
            return self._list(bucket, query)
        if not rest:
            return Answer(200, {"name": bucket, "kind": "storage#bucket"})
        if rest == "/storageLayout":
            return Answer(200, {"bucket": bucket, "locationType": "region"})
        rewrite = re.fullmatch(r"/o/([^/]+)/rewriteTo/b/([^/]+)/o/([^/]+)", rest)
        if rewrite is not None:
            return self._rewrite(bucket, *map(unquote, rewrite.groups()), query=query)
        return self._object(method, bucket, unquote(rest.removeprefix("/o/")), query, headers)

    def _make_bucket(self, name: str) -> Answer:
        if name in self.buckets:
            return _error(409, "You already own this bucket.")
        self.buckets[name] = {}
        return Answer(200, {"name": name, "kind": "storage#bucket"})

    def _object(
        self, method: str, bucket: str, key: str, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> Answer:
        stored = self.buckets[bucket].get(key)
        if stored is None or query.get("generation", str(stored.generation)) != str(stored.generation):
            return _error(404, f"No such object: {bucket}/{key}")
        if (refusal := _refusal(query, stored)) is not None:
            return refusal
        if method == "DELETE":
            del self.buckets[bucket][key]
            return Answer(204)
        if query.get("alt") == "media":
            return _content(stored, headers)
        return Answer(200, _described(bucket, key, stored))

    def _store(self, bucket: str, key: str, data: bytes, meta: dict[str, Any], query: Mapping[str, str]) -> Answer:
        if (refusal := _refusal(query, self.buckets[bucket].get(key))) is not None:
            return refusal
        if meta.get("crc32c", _crc(data)) != _crc(data):
            return _error(400, "Provided CRC32C does not match calculated CRC32C.")
        self.put(bucket, key, data, **meta)
        return Answer(200, _described(bucket, key, self.buckets[bucket][key]))

    def _rewrite(self, bucket: str, key: str, to_bucket: str, to_key: str, *, query: Mapping[str, str]) -> Answer:
        stored = self.buckets[bucket].get(key)
        if stored is None or to_bucket not in self.buckets:
            return _error(404, f"No such object: {bucket}/{key}")
        if (refusal := _refusal(query, self.buckets[to_bucket].get(to_key))) is not None:
            return refusal
        size = len(stored.data)
        if self.rewrite_bytes:
            token = query.get("rewriteToken") or f"token{len(self._rewrites)}"
            done = self._rewrites[token] = self._rewrites.get(token, 0) + self.rewrite_bytes
            if done < size:
                return Answer(200, {"totalBytesRewritten": str(done), "done": False, "rewriteToken": token})
        self.put(to_bucket, to_key, stored.data, **stored.meta)
        resource = _described(to_bucket, to_key, self.buckets[to_bucket][to_key])
        return Answer(200, {"totalBytesRewritten": str(size), "done": True, "resource": resource})

    def _list(self, bucket: str, query: Mapping[str, str]) -> Answer:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        most, after = int(query.get("maxResults", 1000)), b64decode(query.get("pageToken", "")).decode()
        items: list[dict[str, Any]] = []
        prefixes: list[str] = []
        last, answer = "", {"kind": "storage#objects"}
        for key, stored in sorted(self.buckets[bucket].items()):
            rest = key.removeprefix(prefix)
            folder = prefix + rest.split(delimiter)[0] + delimiter if delimiter and delimiter in rest else ""
            is_outside = key < query.get("startOffset", "") or ("endOffset" in query and key >= query["endOffset"])
            if not key.startswith(prefix) or is_outside or (folder or key) <= after or (folder and folder in prefixes):
                continue
            if len(items) + len(prefixes) >= most:
                answer["nextPageToken"] = b64encode(last.encode()).decode()
                break
            last = folder or key
            if folder:
                prefixes.append(folder)
            else:
                items.append(_described(bucket, key, stored))
        return Answer(
            200, {**answer, **({"items": items} if items else {}), **({"prefixes": prefixes} if prefixes else {})}
        )

    # ---- uploads

    def _uploaded(
        self, method: str, bucket: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Answer:
        if "upload_id" in query:
            return self._resumed(method, query["upload_id"], headers, body)
        if query["uploadType"] == "multipart":
            meta, data = _parts(body, headers["Content-Type"])
            return self._store(bucket, meta.get("name") or query["name"], data, meta, query)
        meta = json.loads(body) if body else {}
        key = meta.get("name") or query["name"]
        if (refusal := _refusal(query, self.buckets[bucket].get(key))) is not None:
            return refusal
        id = f"upload{len(self._uploads)}"
        self._uploads[id] = Upload(bucket, key, meta, dict(query))
        path = f"/upload/storage/v1/b/{quote(bucket)}/o?uploadType=resumable&upload_id={id}"
        return Answer(200, headers={"Location": self.endpoint + path})

    def _resumed(self, method: str, id: str, headers: Mapping[str, str], body: bytes) -> Answer:
        upload = self._uploads.get(id)
        if upload is None:
            return _error(410, "The upload is not known.")
        if method == "DELETE":
            del self._uploads[id]
            return Answer(499)
        if upload.done is not None:
            return upload.done
        span = re.fullmatch(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)", headers["Content-Range"])
        assert span is not None
        stored = len(upload.data)
        if span[1] is not None:
            assert int(span[1]) <= stored
            assert int(span[2]) + 1 - int(span[1]) == len(body)
            new = body[stored - int(span[1]) :]
            upload.data += new[: len(new) // _BLOCK * _BLOCK] if span[3] == "*" else new
        stored = len(upload.data)
        if span[3] == "*" or stored < int(span[3]):
            return Answer(308, headers={"Range": f"bytes=0-{stored - 1}"} if stored else {})
        answer = self._store(upload.bucket, upload.key, bytes(upload.data), upload.meta, upload.query)
        if answer.status == 200:
            upload.done = answer
        return answer

    # ---- the server

    async def handle(self, request: Any) -> Any:
        """Answer a request of aiohttp."""
        from aiohttp import web

        body = await request.read()
        line = f"{request.method} {unquote(request.rel_url.raw_path)}?{request.rel_url.raw_query_string}"
        self.requests.append(line)
        is_upload = _kind(line) == "upload"
        self._now += is_upload
        self.most = max(self.most, self._now)
        await asyncio.sleep(self.delay)
        self._now -= is_upload
        fault = self._fault(line)
        if fault == "reset":
            request.transport.abort()
            return web.Response()
        answer = fault if isinstance(fault, Answer) else self._carried_out(request, body)
        if fault == "lost":
            request.transport.abort()
            return web.Response()
        content = answer.bytes
        if fault == "short":
            response = web.StreamResponse(
                status=answer.status, headers={**answer.headers, "Content-Length": str(len(content))}
            )
            await response.prepare(request)
            await response.write(content[: len(content) // 2])
            request.transport.close()
            return response
        kind = {"Content-Type": "application/json"} if isinstance(answer.body, dict) else {}
        return web.Response(status=answer.status, body=content, headers={**kind, **answer.headers})

    def _fault(self, line: str) -> Answer | str | None:
        for fault in self.faults:
            if re.search(fault.match, line):
                fault.skip -= 1
                if fault.skip < 0 and fault.times > 0:
                    fault.times -= 1
                    return _error(int(fault.kind), fault.message) if fault.kind.isdigit() else fault.kind
        return None

    def _carried_out(self, request: Any, body: bytes) -> Answer:
        path, headers = request.rel_url.raw_path, request.headers
        line = f"{request.method} {unquote(path)}?{request.rel_url.raw_query_string}"
        if self.refused is not None and re.search(self.refused, line):
            text = "does not have storage.objects.list access to the Google Cloud Storage bucket."
            is_anonymous = "Authorization" not in headers
            return _error(401 if is_anonymous else 403, f"{'Anonymous caller' if is_anonymous else 'ann'} {text}")
        if path.startswith("/batch/"):
            return self._batch(body.decode(), headers["Content-Type"])
        return self.answer(request.method, path, _query(request.rel_url.raw_query_string), headers, body)

    def _batch(self, body: str, kind: str) -> Answer:
        answers = []
        for part in body.split(f"--{_boundary(kind)}")[1:-1]:
            line = re.search(r"^(DELETE|GET) (\S+) HTTP", part, re.M)
            assert line is not None
            path, _, query = line[2].partition("?")
            answer = self.answer(line[1], path, _query(query), {}, b"")
            head = "Content-Type: application/http\r\n\r\n"
            answers.append(f"--batch\r\n{head}HTTP/1.1 {answer.status} X\r\n\r\n{answer.bytes.decode()}\r\n")
        kind = "multipart/mixed; boundary=batch"
        return Answer(200, f"{''.join(answers)}--batch--".encode(), {"Content-Type": kind})


def served(server: GcsServer) -> Iterator[GcsServer]:
    """Run a server in a thread."""
    from aiohttp import web

    loop, started, runners = asyncio.new_event_loop(), Event(), []

    async def start() -> None:
        app = web.Application(client_max_size=4 << 30)
        app.router.add_route("*", "/{tail:.*}", server.handle)
        runner = web.AppRunner(app, access_log=None, auto_decompress=False, shutdown_timeout=0.1)
        runners.append(runner)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        server.endpoint = f"http://{host}:{port}"
        started.set()

    def run() -> None:
        loop.create_task(start())
        loop.run_forever()

    thread = Thread(target=run, daemon=True)
    thread.start()
    assert started.wait(10)
    yield server
    asyncio.run_coroutine_threadsafe(runners[0].cleanup(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


def _kind(line: str) -> str:
    """Kind of a request: "upload", "rewrite", "batch", "delete", "list", "get", or "info"."""
    method, _, rest = line.partition(" ")
    path, _, query = rest.rpartition("?")
    if path.startswith("/upload/"):
        return "upload"
    if path.startswith("/batch/"):
        return "batch"
    if "/rewriteTo/" in path:
        return "rewrite"
    if method == "DELETE":
        return "delete"
    if re.fullmatch(r"/storage/v1/b/[^/]+/o/?", path):
        return "list"
    return "get" if "alt=media" in query else "info"


def _query(text: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(text, keep_blank_values=True).items()}


def _boundary(kind: str) -> str:
    found = re.search(r'boundary=(?:"([^"]+)"|([^;]+))', kind)
    assert found is not None
    return (found[1] or found[2]).strip("'")


def _parts(body: bytes, kind: str) -> tuple[dict[str, Any], bytes]:
    """Description and content of an upload by one request."""
    parts = body.split(b"--" + _boundary(kind).encode())[1:-1]
    contents = []
    for part in parts:
        _, _, content = re.split(rb"(\r?\n\r?\n)", part.lstrip(b"\r\n"), maxsplit=1)
        contents.append(content.removesuffix(b"\n").removesuffix(b"\r"))
    return json.loads(contents[0]), contents[1]


def _refusal(query: Mapping[str, str], stored: Stored | None) -> Answer | None:
    """The answer where a condition does not hold."""
    expected = query.get("ifGenerationMatch")
    if expected is None or int(expected) == (stored.generation if stored else 0):
        return None
    return _error(412, "At least one of the pre-conditions you specified did not hold.")


def _content(stored: Stored, asked: Mapping[str, str]) -> Answer:
    data, headers = (
        stored.data,
        {
            "x-goog-generation": str(stored.generation),
            "x-goog-hash": f"crc32c={_crc(stored.data)},md5={_md5(stored.data)}",
            "x-goog-stored-content-length": str(len(stored.data)),
        },
    )
    if encoding := stored.meta.get("contentEncoding", ""):
        headers["x-goog-stored-content-encoding"] = encoding
    if encoding == "gzip" and "gzip" not in asked.get("Accept-Encoding", ""):  # ranges are ignored
        return Answer(200, gzip.decompress(data), headers)
    if encoding:
        headers["Content-Encoding"] = encoding
    span = re.fullmatch(r"bytes=(\d+)-(\d*)", asked.get("Range", ""))
    if span is None:
        return Answer(200, data, headers)
    begin, end = int(span[1]), min(int(span[2] or len(data)) + 1, len(data))
    if begin >= len(data):
        return Answer(416, headers={"Content-Range": f"bytes */{len(data)}"})
    return Answer(206, data[begin:end], {**headers, "Content-Range": f"bytes {begin}-{end - 1}/{len(data)}"})


def _described(bucket: str, key: str, stored: Stored) -> dict[str, Any]:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(stored.time))
    described = {
        "kind": "storage#object",
        "name": key,
        "bucket": bucket,
        "generation": str(stored.generation),
        "metageneration": "1",
        "size": str(len(stored.data)),
        "md5Hash": _md5(stored.data),
        "crc32c": _crc(stored.data),
        "etag": b64encode(str(stored.generation).encode()).decode(),
        "timeCreated": stamp,
        "updated": stamp,
    }
    return {**described, **{name: value for name, value in stored.meta.items() if name != "name"}}


def _error(status: int, message: str) -> Answer:
    error = {"code": status, "message": message, "errors": [{"message": message, "reason": "x"}]}
    return Answer(status, {"error": error})


def _crc(data: bytes) -> str:
    return b64encode(crc32c.crc32c(data).to_bytes(4, "big")).decode()


def _md5(data: bytes) -> str:
    return b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
