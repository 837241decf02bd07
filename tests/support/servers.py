"""Servers for tests: S3, Google Cloud Storage and a web server on the loopback interface, and a bucket in memory."""

from __future__ import annotations

import asyncio
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest
from fsspec.asyn import AsyncFileSystem

from chaos import Chaos
from gcs_server import GcsServer, served
from tfrecord_io.storage.filesystem.retries import s3_options


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
        return fsspec.filesystem(self.protocol, **options)

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
    """moto's S3 application in a thread, without moto's dispatcher, which lists a folder on each request."""
    moto = pytest.importorskip("moto.moto_server.werkzeug_app")
    serving = pytest.importorskip("werkzeug.serving")

    class Handler(moto.MotoRequestHandler):  # type: ignore[misc, name-defined]
        def log_request(self, *_: Any) -> None:
            pass

    server = serving.make_server("127.0.0.1", 0, moto.create_backend_app("s3"), threaded=True, request_handler=Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def s3(s3_endpoint: str) -> Bucket:
    """A bucket of an S3 server. Parts of uploads have the usual size unless a test changes it."""
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
    os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"  # gcsfs waits 40 s for a second API, which emulators lack
    server = pytest.importorskip("gcp_storage_emulator.server").create_server("127.0.0.1", 0, in_memory=True)
    server.start()
    host, port = server._api._httpd.socket.getsockname()
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
def gcs_server() -> Iterator[GcsServer]:
    os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"
    pytest.importorskip("gcsfs")
    yield from served(GcsServer())


@pytest.fixture
def google(gcs_server: GcsServer) -> Iterator[Bucket]:
    """A bucket of a server that has the conditions and the uploads of Google Cloud Storage."""
    options = {"token": "anon", "endpoint_url": gcs_server.endpoint, "project": "test"}
    bucket = Bucket("gs", f"bucket-{uuid.uuid4().hex[:8]}", options)
    gcs_server.buckets[bucket.name] = {}
    yield bucket
    gcs_server.reset()
    del gcs_server.buckets[bucket.name]


@pytest.fixture(params=["s3", "gcs", "google"])
def bucket(request: pytest.FixtureRequest) -> Bucket:
    """The test runs once on each kind of bucket."""
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
                self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{size}")
            else:
                self.send_response(200)
            self.send_header("ETag", f'"{hash(data)}"')
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
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


@pytest.fixture
def dying(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The changes of the bucket that are still accepted."""
    state: dict[str, Any] = {"left": None}
    real = type(s3.fs)._call_s3
    changes = {"put_object", "copy_object", "delete_object", "delete_objects", "complete_multipart_upload"}

    async def call(self: Any, method: str, *arguments: Any, **keywords: Any) -> Any:
        if method in changes and state["left"] is not None:
            if state["left"] == 0:
                state["killed"] = True
                raise PermissionError("killed")
            state["left"] -= 1
        return await real(self, method, *arguments, **keywords)

    monkeypatch.setattr(type(s3.fs), "_call_s3", call)
    yield state
    state["left"] = None
