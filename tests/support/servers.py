"""Servers for tests: S3, GCS, Azure and a web server on the loopback interface, and a bucket in memory."""

from __future__ import annotations

import asyncio
import functools
import os
import re
import shutil
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from itertools import cycle
from pathlib import Path
from threading import Lock, Thread
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from fsspec.asyn import AsyncFileSystem

from chaos import Chaos
from gcs_server import GcsServer, served
from rounds import COMPLETE
from tfrecord_io.store.filesystem.remote import reopen_if_forked
from tfrecord_io.store.filesystem.retries import s3_options

# Read when gcsfs is imported, also by a module that is only collected: else it waits for a second API, by gRPC, which
# emulators lack.
os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"

CHANGES = {"put_object", "copy_object", "delete_object", "delete_objects", "complete_multipart_upload"}
# Of the emulators of Azure, the same everywhere.
_AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@dataclass(frozen=True)
class Bucket:
    """An empty bucket for one test."""

    protocol: str
    name: str
    storage_options: dict[str, Any]

    def url(self, name: str = "") -> str:
        return f"{self.protocol}://{self.name}/{name}"

    @property
    def fs(self) -> Any:
        """The filesystem that the package uses, too."""
        import fsspec

        options = s3_options(self.storage_options) if self.protocol == "s3" else self.storage_options
        return reopen_if_forked(fsspec.filesystem(self.protocol, **options))

    @property
    def lost(self) -> Exception:
        """Error that the library of the store gets when the answer to a request is lost."""
        if self.protocol != "abfs":
            return ConnectionResetError("the answer is lost")
        from azure.core.exceptions import ServiceResponseError

        return ServiceResponseError("the answer is lost")

    def names(self) -> list[str]:
        """Names of the visible objects."""
        self.fs.invalidate_cache()
        return sorted(name.removeprefix(f"{self.name}/") for name in self.fs.find(self.name))

    def uploads(self) -> list[dict[str, Any]]:
        """Unfinished multipart uploads; only for S3."""
        found: list[dict[str, Any]] = self.fs.call_s3("list_multipart_uploads", Bucket=self.name).get("Uploads", [])
        return found


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """moto's S3 in a thread, without the Flask application around it, which takes a third of the time of a request."""
    moto = pytest.importorskip("moto.moto_server.werkzeug_app")
    serving = pytest.importorskip("werkzeug.serving")
    from moto.s3.responses import S3Response

    change = Lock()  # moto looks at the conditions of a request, and then stores: two writers may pass the same one

    class Handler(moto.MotoRequestHandler):  # type: ignore[misc, name-defined]
        """It keeps connections, as the real store does; werkzeug's ends each, as it may leave a part of a body."""

        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def run_wsgi(self) -> None:
            if self.headers.get("Expect") == "100-continue":
                self.send_response_only(100)
                self.end_headers()
                self.wfile.flush()
            environ = self.make_environ()
            chunked = environ.get("wsgi.input_terminated")
            size = -1 if chunked else int(self.headers.get("Content-Length", 0))
            content = environ["wsgi.input"].read(size)
            if len(content) < size:  # the client has given up: the real store stores nothing
                self.close_connection = True
                return
            environ["wsgi.input"] = BytesIO(content)
            request = moto.BackendRequest(environ)
            is_object = request.path[1:].partition("/")[2] != ""
            respond = S3Response().key_response if is_object else S3Response().bucket_response
            with nullcontext() if self.command in ("GET", "HEAD") else change:
                status, headers, body = respond(request, request.raw_url, dict(request.headers))
            body = body.encode() if isinstance(body, str) else body
            self.send_response_only(status)
            for name, value in {"content-length": len(body), **headers}.items():
                self.send_header(name, str(value))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
            self.wfile.flush()

        def log_request(self, *_: Any) -> None:
            pass

    server = serving.make_server("127.0.0.1", 0, None, threaded=True, request_handler=Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def s3(s3_endpoint: str) -> Bucket:
    """A bucket of an S3 server. Parts of uploads have the usual size unless a test changes it."""
    return s3_bucket(s3_endpoint)


def s3_bucket(s3_endpoint: str) -> Bucket:
    pytest.importorskip("s3fs")
    bucket = Bucket("s3", f"bucket-{uuid.uuid4().hex[:8]}", {"key": "k", "secret": "s", "endpoint_url": s3_endpoint})
    bucket.fs.mkdir(bucket.name)
    bucket.fs.invalidate_cache()
    return bucket


@pytest.fixture
def chaos(s3_endpoint: str) -> Iterator[Chaos]:
    """A proxy in front of the S3 server."""
    proxy = Chaos(s3_endpoint)
    yield proxy
    proxy.close()


@pytest.fixture(scope="session")
def gcs_endpoint() -> Iterator[str]:
    server = pytest.importorskip("gcp_storage_emulator.server").create_server("127.0.0.1", 0, in_memory=True)
    server._storage._write_config_to_file = lambda: None  # all objects as JSON at each change: only a restart reads it
    server.start()
    socket = server._api._httpd.socket
    socket.listen(128)  # its backlog of 5 drops connections, which are tried again after up to a minute
    host, port = socket.getsockname()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def gcs(gcs_endpoint: str) -> Bucket:
    """A bucket of a GCS server, which ignores conditions on generations and cannot abort an upload."""
    pytest.importorskip("gcsfs")
    bucket = Bucket(
        "gs", f"bucket-{uuid.uuid4().hex[:8]}", {"token": "anon", "endpoint_url": gcs_endpoint, "project": "test"}
    )
    bucket.fs.mkdir(bucket.name)
    bucket.fs.invalidate_cache()
    return bucket


@pytest.fixture(scope="session")
def azure_endpoint() -> Iterator[str]:
    """Azurite, in memory; ``make test`` installs it with npm next to the Python packages."""
    pytest.importorskip("adlfs")
    beside = Path(sys.prefix, "azurite", "node_modules", ".bin", "azurite-blob")
    program = shutil.which("azurite-blob") or shutil.which(beside)
    if program is None:
        pytest.skip(f"the server for Azure is missing: npm install --prefix {beside.parents[2]} azurite")
    options = ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry", "--blobPort", "0"]
    with subprocess.Popen([program, *options, "--blobHost", "127.0.0.1"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        lines = []
        for line in server.stdout:
            lines.append(line)
            if found := re.search(r"listens on (http://\S+)", line):
                yield found[1]
                break
        else:
            pytest.fail(f"azurite did not start: {lines}")
        server.terminate()
        server.communicate()


@pytest.fixture
def azure(azure_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """A container of an Azure server, which finds no end of a request of many if its boundary has a "="."""
    from azure.core.pipeline.transport import HttpRequest

    real = HttpRequest.set_multipart_mixed
    plain = functools.partialmethod(real, boundary=f"batch_{uuid.uuid4().hex}")
    monkeypatch.setattr(HttpRequest, "set_multipart_mixed", plain)
    account = "devstoreaccount1"
    connection = f"DefaultEndpointsProtocol=http;AccountName={account};AccountKey={_AZURE_KEY};"
    connection += f"BlobEndpoint={azure_endpoint}/{account};"
    bucket = Bucket("abfs", f"bucket-{uuid.uuid4().hex[:8]}", {"connection_string": connection})
    bucket.fs.mkdir(bucket.name)
    bucket.fs.invalidate_cache()
    quick_retries(bucket.fs)
    return bucket


def quick_retries(fs: Any, tries: int = 4) -> None:
    """Let Azure's library, which waits for about 15 s, make requests again at once."""
    retries = fs.service_client._config.retry_policy
    retries.initial_backoff = retries.increment_base = retries.random_jitter_range = 0
    retries.total_retries = tries - 1


@pytest.fixture(scope="session")
def gcs_server() -> Iterator[GcsServer]:
    pytest.importorskip("gcsfs")
    yield from served(GcsServer())


@pytest.fixture
def google(gcs_server: GcsServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A bucket of a server that has the conditions and the uploads of Google Cloud Storage.

    gcsfs, which waits for 1 s, 2 s, …, makes requests again at once.
    """
    monkeypatch.setattr("gcsfs.retry.asyncio", SimpleNamespace(sleep=lambda _: asyncio.sleep(0)))
    options = {"token": "anon", "endpoint_url": gcs_server.endpoint, "project": "test"}
    bucket = Bucket("gs", f"bucket-{uuid.uuid4().hex[:8]}", options)
    gcs_server.buckets[bucket.name] = {}
    yield bucket
    gcs_server.reset()
    del gcs_server.buckets[bucket.name]


@pytest.fixture(params=["s3", *(["gcs"] if COMPLETE else []), "google", "azure"])
def bucket(request: pytest.FixtureRequest) -> Bucket:
    """The test runs once on each kind of bucket; on both servers for that of Google only in a storm."""
    found: Bucket = request.getfixturevalue(request.param)
    return found


@dataclass
class Web:
    """A web server and its files.

    Attributes
    ----------
    files : dict
        Content by path.
    ranges : bool
        Whether it supports range requests.
    refused : int
        Status for missing files.
    failures : int
        How many requests it refuses from now on, with status 503.
    head : int or None
        Another status than 200 for HEAD; 0: it states a length of 0.
    shift : int
        How many bytes before the one that was asked for its answers begin.
    ends : int
        How many of its next answers it ends half-way through the body.
    content_range : str or None
        The form of that header; None: it is missing.
    encoding : str or None
        The Content-Encoding that it states, as it has the files.
    requests : list of str
        Method, path and range of each request.
    """

    endpoint: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    refused: int = 404
    failures: int = 0
    head: int | None = None
    shift: int = 0
    ends: int = 0
    content_range: str | None = "bytes {}-{}/{}"
    encoding: str | None = None
    requests: list[str] = field(default_factory=list)

    def url(self, name: str) -> str:
        return f"{self.endpoint}/{name}"


@pytest.fixture
def web() -> Iterator[Web]:
    """A web server with range requests and without listings."""
    pytest.importorskip("aiohttp")
    served = Web()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            name = urlsplit(self.path).path.lstrip("/")  # the path of a proxied request is a whole URL
            range_header = self.headers.get("Range")
            served.requests.append(f"{self.command} {name} {range_header}")
            data = served.files.get(name)
            status = served.refused if data is None else 200
            if served.failures:
                served.failures, status = served.failures - 1, 503
            elif status == 200 and self.command == "HEAD" and served.head is not None:
                status = served.head or 200
            if data is None or status != 200 or (self.command == "HEAD" and served.head == 0):
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            body, size = data, len(data)
            match = re.fullmatch(r"bytes=(\d+)-(\d+)", range_header or "") if served.ranges else None
            if match is not None:
                begin, end = max(0, int(match[1]) - served.shift), min(int(match[2]) + 1, size)
                body = data[begin:end]
                self.send_response(206)
                if served.content_range is not None:
                    self.send_header("Content-Range", served.content_range.format(begin, end - 1, size))
            else:
                self.send_response(200)
            if served.encoding is not None:
                self.send_header("Content-Encoding", served.encoding)
            self.send_header("ETag", f'"{hash(data)}"')
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET" and served.ends:
                served.ends, self.close_connection = served.ends - 1, True
                body = body[: len(body) // 2]
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket.listen(128)  # a connection that a backlog of 5 drops is tried again after seconds
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a reader may disconnect early
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    served.endpoint = f"http://127.0.0.1:{server.server_port}"
    yield served
    server.shutdown()
    server.server_close()


@pytest.fixture
def example_buckets(s3: Bucket, gcs: Bucket, web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ``s3://my-bucket``, ``gs://my-bucket`` and ``http://example.com`` of the documentation, on local servers."""
    import fsspec

    import tfrecord_io as tfr

    for key, value in (
        ("ACCESS_KEY_ID", "k"),
        ("SECRET_ACCESS_KEY", "s"),
        ("ENDPOINT_URL", s3.storage_options["endpoint_url"]),
    ):
        monkeypatch.setenv(f"AWS_{key}", value)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs.storage_options["endpoint_url"])
    monkeypatch.setenv("http_proxy", web.endpoint)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setitem(fsspec.config.conf, "http", {"client_kwargs": {"trust_env": True}})
    monkeypatch.setitem(fsspec.config.conf, "gs", {"token": "anon"})
    for bucket in (s3, gcs):
        if not bucket.fs.exists("my-bucket"):
            bucket.fs.mkdir("my-bucket")
        elif left := bucket.fs.find("my-bucket"):  # by the examples of another page
            bucket.fs.rm(left)
        bucket.fs.invalidate_cache()
    tfr.write_tfrecord({"label": [3, 1, 2]}, tmp_path / "part")
    web.files.update((f"insects/part-0000{i}-of-00002.tfrecord", (tmp_path / "part").read_bytes()) for i in range(2))


class SlowBucket(AsyncFileSystem):
    """Files in memory by name, read by range requests, which are answered late and out of order."""

    protocol = "slow"
    cachable = False

    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__()
        self._files = dict(files)
        self._delays = cycle((3, 0, 1, 7, 2))  # turns of the event loop before an answer

    async def _info(self, path: str, **_: Any) -> dict[str, Any]:
        name = self._strip_protocol(path)
        if name not in self._files:
            raise FileNotFoundError(path)
        return {"name": name, "size": len(self._files[name]), "type": "file"}

    async def _ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        return []

    async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        for _turn in range(next(self._delays)):
            await asyncio.sleep(0)
        return self._files[self._strip_protocol(path)][start:end]


_NAMES_IN_S3 = {
    ("GET", ""): "get_object",
    ("GET", "list"): "list_objects_v2",
    ("HEAD", ""): "head_object",
    ("PUT", ""): "put_object",
    ("PUT", "block"): "upload_part",
    ("PUT", "blocklist"): "complete_multipart_upload",
    ("DELETE", ""): "delete_object",
    ("POST", "batch"): "delete_objects",
}
Handler = Callable[[str, str, Callable[[], Awaitable[Any]]], Awaitable[Any]]


def around_requests(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, handle: Handler) -> None:
    """Let `handle` make each request: it gets the name that the request has in S3, the key, and the call.

    In Google's storage, it gets the method and the path.
    """
    if bucket.protocol != "abfs":
        patched = "_call_s3" if bucket.protocol == "s3" else "_call"
        real_call = getattr(type(bucket.fs), patched)

        async def call(self: Any, method: Any, *arguments: Any, **keywords: Any) -> Any:
            name, made = getattr(method, "__name__", method), functools.partial(real_call, self, method)
            key = keywords.get("Key", arguments[0] if arguments else "")
            return await handle(name, str(key), lambda: made(*arguments, **keywords))

        monkeypatch.setattr(type(bucket.fs), patched, call)
        return
    from azure.core.pipeline.transport import AioHttpTransport

    real = AioHttpTransport.send

    async def send(self: Any, request: Any, **keywords: Any) -> Any:
        url = urlsplit(request.url)
        name = _NAMES_IN_S3.get((request.method, parse_qs(url.query).get("comp", [""])[0]), request.method)
        name = "copy_object" if "x-ms-copy-source" in request.headers else name
        key = unquote(url.path).partition(f"/{bucket.name}/")[2]
        return await handle(name, key, lambda: real(self, request, **keywords))

    monkeypatch.setattr(AioHttpTransport, "send", send)


def requests_of(
    bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
    call: Callable[[], Any],
    fails: Callable[[str], bool] = lambda _: False,
) -> Counter[str]:
    """The requests that a call makes, by their name in S3; an error of those that fail."""
    asked = Counter[str]()

    async def handle(name: str, key: str, request: Callable[[], Awaitable[Any]]) -> Any:
        asked[name] += 1
        if fails(name):
            raise PermissionError("Forbidden")
        return await request()

    with monkeypatch.context() as patched:
        around_requests(bucket, patched, handle)
        call()
    return asked


def meeting_requests(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, call: Callable[[], Any], nth: int
) -> tuple[int, int]:
    """How many requests a call makes, and how many of them, each the `nth` of its object, are under way at a time."""
    asked: Counter[str] = Counter()
    now = most = 0

    async def handle(name: str, key: str, request: Callable[[], Awaitable[Any]]) -> Any:
        nonlocal now, most
        asked[key] += 1
        is_nth = asked[key] == nth
        now += is_nth
        most = max(most, now)
        await asyncio.sleep(0.05)
        try:
            return await request()
        finally:
            now -= is_nth

    with monkeypatch.context() as patched:
        around_requests(bucket, patched, handle)
        call()
    return asked.total(), most


@pytest.fixture(params=["s3", "azure"])
def conditional(request: pytest.FixtureRequest) -> Bucket:
    """A bucket of a store that takes conditions: the emulator of Google's does not."""
    found: Bucket = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def dying(conditional: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The changes of the bucket that are still accepted."""
    state: dict[str, Any] = {"left": None}

    async def handle(name: str, key: str, call: Callable[[], Awaitable[Any]]) -> Any:
        if name in CHANGES and state["left"] is not None:
            if state["left"] == 0:
                state["killed"] = True
                raise PermissionError("killed")
            state["left"] -= 1
        return await call()

    around_requests(conditional, monkeypatch, handle)
    yield state
    state["left"] = None
