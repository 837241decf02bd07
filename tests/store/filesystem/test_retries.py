"""A store that refuses requests gets few of them, and errors about credentials are raised at once."""

from __future__ import annotations

import asyncio
import errno
import pickle
import socketserver
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any, ClassVar

import pyarrow.fs
import pytest

import tfrecord_io as tfr
from reading import read_by
from tfrecord_io.base import StorageOptions
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.filesystem.retries import retry

MOST = 8  # requests for one
ANSWERS = {
    "SlowDown": (503, "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"),
    "InternalError": (500, "<Error><Code>InternalError</Code><Message>again, please</Message></Error>"),
    "ExpiredToken": (400, "<Error><Code>ExpiredToken</Code><Message>The token has expired.</Message></Error>"),
}
EMPTY = "<ListBucketResult><Name>b</Name><KeyCount>0</KeyCount><IsTruncated>false</IsTruncated></ListBucketResult>"


class Refusing:
    """A server of one object, which refuses to send its content; with ``refuses_all``, it refuses everything."""

    def __init__(self, answer: tuple[int, str], refuses_all: bool) -> None:
        self.requests = requests = Counter[tuple[str, str]]()
        found = '{"name": "a.tfrecord", "bucket": "b", "size": "1000", "generation": "1", "updated": "2026-01-01"}'

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def do_HEAD(self) -> None:
                requests["HEAD", self.path] += 1
                headers = {"ETag": '"x"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT", "Content-Length": "1000"}
                self.send_response(answer[0] if refuses_all else 200)
                for name, value in ({"Content-Length": "0"} if refuses_all else headers).items():
                    self.send_header(name, value)
                self.end_headers()

            def do_GET(self) -> None:
                is_list = "list-type" in self.path
                is_info = self.path.startswith("/storage/") and "alt=media" not in self.path
                requests["GET", self.path] += 1
                status, text = answer
                if not refuses_all and (is_list or is_info):
                    status, text = 200, EMPTY if is_list else found
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json" if is_info else "application/xml")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: Any) -> None:
                """Be quiet about connections that a client closed."""

        self._server = Server(("127.0.0.1", 0), Handler)
        Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def refusing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Refusing]:
    monkeypatch.setattr("random.random", lambda: 0.0)  # by which the libraries multiply their pauses
    server = Refusing(*request.param)
    yield server
    server.close()


def cases(*names: str) -> Any:
    chosen = [(name, refuses_all) for name in names for refuses_all in (False, True)]
    return pytest.mark.parametrize(
        "refusing",
        [(ANSWERS[name], refuses_all) for name, refuses_all in chosen],
        indirect=True,
        ids=[f"{name}-{'all' if refuses_all else 'content'}" for name, refuses_all in chosen],
    )


def s3_options(server: Refusing) -> dict[str, Any]:
    return {"key": "k", "secret": "s", "endpoint_url": server.url}


def read(url: str, **options: Any) -> None:
    read_by(tfr.read_table, url, schema={"x": "int64"}, **options)


@cases("SlowDown", "InternalError")
def test_a_bucket_that_is_throttled(refusing: Refusing) -> None:
    pytest.importorskip("s3fs")
    with pytest.raises(OSError, match=r"s3://b/a\.tfrecord") as caught:
        read("s3://b/a.tfrecord", storage_options=s3_options(refusing))
    assert caught.value.errno != errno.EBUSY, "which says that another writer was first"
    assert 1 < max(refusing.requests.values()) <= MOST


@pytest.mark.parametrize("refusing", [(ANSWERS["SlowDown"], False)], indirect=True)
def test_a_bucket_of_google_that_is_throttled(refusing: Refusing, monkeypatch: pytest.MonkeyPatch) -> None:
    retries = pytest.importorskip("gcsfs.retry")
    sleeping = {**vars(asyncio), "sleep": lambda _: asyncio.sleep(0)}
    monkeypatch.setattr(retries, "asyncio", SimpleNamespace(**sleeping))
    with pytest.raises(OSError, match=r"gs://b/a\.tfrecord"):
        read("gs://b/a.tfrecord", storage_options={"token": "anon", "endpoint_url": refusing.url})
    assert 1 < max(refusing.requests.values()) <= MOST


@cases("ExpiredToken")
def test_expired_credentials_are_named_at_once(refusing: Refusing) -> None:
    pytest.importorskip("s3fs")
    with pytest.raises(PermissionError, match="token has expired"):
        read("s3://b/a.tfrecord", storage_options=s3_options(refusing))
    assert max(refusing.requests.values()) == 1


RETRIES = [{"total_max_attempts": 1}, {"max_attempts": 1, "mode": "standard"}]


class Silent(socketserver.ThreadingTCPServer):
    """A server that counts requests and answers none; with `refuses`, by status 503."""

    daemon_threads, block_on_close, request_queue_size = True, False, 128

    def __init__(self, *, refuses: bool) -> None:
        self.requests, server, ended = 0, self, Event()
        answer = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                if self.request.recv(1 << 16):
                    server.requests += 1
                    self.request.sendall(answer) if refuses else ended.wait()

        super().__init__(("127.0.0.1", 0), Handler)
        self._ended = ended
        self.address = f"127.0.0.1:{self.server_address[1]}"
        Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self._ended.set()
        self.shutdown()
        self.server_close()


@pytest.fixture(params=[False, True], ids=["silent", "503"])
def silent(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Silent]:
    monkeypatch.setattr("random.random", lambda: 0.0)
    server = Silent(refuses=request.param)
    yield server
    server.close()


@pytest.mark.parametrize("passes", ["options", "filesystem", "cache"])
@pytest.mark.parametrize("retries", RETRIES, ids=str)
def test_one_layer_makes_requests_again_as_often_as_the_caller_states(
    silent: Silent, retries: dict[str, Any], passes: str
) -> None:
    s3fs = pytest.importorskip("s3fs")
    config = {"retries": dict(retries), "read_timeout": 0.2}
    options = {"key": "k", "secret": "s", "endpoint_url": f"http://{silent.address}", "config_kwargs": config}
    storage = s3fs.S3FileSystem(**options, skip_instance_cache=True) if passes == "filesystem" else options
    url, most = "s3://b/a.tfrecord", retries.get("total_max_attempts") or retries["max_attempts"] + 1
    if passes == "cache":
        url, storage = f"simplecache::{url}", {"s3": options}
    with pytest.raises(OSError, match=r"b/a\.tfrecord"):
        read(url, storage_options=storage)
    assert 1 <= silent.requests <= most
    if passes == "filesystem":
        assert storage.retries == type(storage).retries > 1, "the filesystem of the caller is not changed"
    else:
        assert config["retries"] == retries, "the dict of the caller is not changed"


CALLS: dict[str, Callable[..., Any]] = {
    "write": lambda url, options: tfr.write_tfrecord({"x": [1]}, url, storage_options=options),
    "overwrite": lambda url, options: tfr.write_tfrecord({"x": [1]}, url, storage_options=options, mode="overwrite"),
    "append": lambda url, options: tfr.write_tfrecord(
        {"x": [1]}, url.replace("a.tfrecord", "a/"), storage_options=options, mode="append"
    ),
    "count": lambda url, options: tfr.count(tfr.dataset(url, storage_options=options)),
    "folder": lambda url, options: tfr.read_table(url.replace("a.tfrecord", "a/"), storage_options=options),
    "glob": lambda url, options: tfr.read_table(url.replace("a.tfrecord", "a/*"), storage_options=options),
    "copy": lambda url, options: tfr.copy(tfr.dataset(url, storage_options=options), "here/"),
    "verify": lambda url, options: tfr.verify(url, storage_options=options),
}


@pytest.mark.parametrize("silent", [True], indirect=True, ids=["503"])
@pytest.mark.parametrize("call", CALLS)
def test_calls_ask_a_store_once_if_the_caller_states_one_try(silent: Silent, call: str) -> None:
    pytest.importorskip("s3fs")
    config = {"retries": {"total_max_attempts": 1}, "read_timeout": 0.2}
    options = {"key": "k", "secret": "s", "endpoint_url": f"http://{silent.address}", "config_kwargs": config}
    with pytest.raises(OSError, match="b/a"):
        CALLS[call]("s3://b/a.tfrecord", options)
    assert silent.requests == 1


@pytest.mark.parametrize("tries", [1, 2])
def test_a_store_of_pyarrow_makes_requests_again_itself(silent: Silent, tries: int) -> None:
    pytest.importorskip("pyarrow._s3fs")
    fs = pyarrow.fs.S3FileSystem(
        access_key="k",
        secret_key="s",
        endpoint_override=silent.address,
        scheme="http",
        region="us-east-1",
        request_timeout=0.2,
        retry_strategy=pyarrow.fs.AwsStandardS3RetryStrategy(max_attempts=tries),
    )
    with pytest.raises(OSError, match=r"b/a\.tfrecord"):
        read("b/a.tfrecord", storage_options=fs)
    assert 1 <= silent.requests <= tries


def test_another_process_has_the_same_retries() -> None:
    pytest.importorskip("s3fs")
    fs, _ = Location.of("s3://b/a", StorageOptions({"key": "k", "secret": "s"}))
    again = pickle.loads(pickle.dumps(fs))
    assert fs.fsspec.retries == again.fsspec.retries == 1  # type: ignore[attr-defined]


def test_a_store_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only botocore tries again."""
    pytest.importorskip("s3fs")
    endpoint = pytest.importorskip("aiobotocore.endpoint")
    monkeypatch.setattr("random.random", lambda: 0.0)
    tries = []
    real = endpoint.AioEndpoint._do_get_response

    async def counted(self: Any, *arguments: Any) -> Any:
        tries.append(1)
        return await real(self, *arguments)

    monkeypatch.setattr(endpoint.AioEndpoint, "_do_get_response", counted)
    with pytest.raises(OSError, match=r"s3://b/a\.tfrecord"):
        read("s3://b/a.tfrecord", storage_options={"key": "k", "secret": "s", "endpoint_url": "http://127.0.0.1:1"})
    assert 1 < len(tries) <= MOST


def test_what_follows_an_error_is_tried_again_though_its_request_was_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is removed after a request that botocore made five times in vain."""
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    tries = []

    class Throttled(OSError):
        response: ClassVar[dict[str, Any]] = {"ResponseMetadata": {"RetryAttempts": 5}}

    def remove() -> None:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionResetError

    def store() -> None:
        raise Throttled

    try:
        store()
    except Throttled:
        retry(remove)
    assert len(tries) == 3
    with pytest.raises(Throttled):
        retry(store)
