"""What is particular to Azure: its conditions, its blocks, and how many requests a dataset takes there."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fsspec.asyn import sync

import tfrecord_io as tfr
from limited import set_limits
from reading import read_by
from servers import Bucket, around_requests
from tfrecord_io.base import StorageOptions
from tfrecord_io.store.filesystem.azure import MISSING, MOST_DELETED, Blob, delete_blobs
from tfrecord_io.store.filesystem.os_errors import to_os_error
from tfrecord_io.store.filesystem.retries import is_transient
from tfrecord_io.store.write.atomic import open_output
from tfrecord_io.store.write.atomic_remote import AzureOutput

SHARDS = 40
TABLE = pa.table({"x": range(SHARDS * 10)})
BIG = bytes(range(256)) * 4096  # 1 MiB
Call = Callable[[], Awaitable[Any]]


class Requests:
    """The requests that were made, and how many uploads there were at a time."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str]] = []
        self.most = self.now = 0

    async def handle(self, name: str, key: str, call: Call) -> Any:
        self.made.append((name, key))
        uploads = name in ("put_object", "upload_part")
        self.now += uploads
        self.most = max(self.most, self.now)
        try:
            return await call()
        finally:
            self.now -= uploads

    def counted(self, call: Callable[[], Any]) -> Counter[str]:
        self.made.clear()
        self.most = 0
        call()
        return Counter(name for name, _ in self.made)


@pytest.fixture
def requests(azure: Bucket, monkeypatch: pytest.MonkeyPatch) -> Requests:
    found = Requests()
    around_requests(azure, monkeypatch, found.handle)
    return found


@pytest.fixture
def options(azure: Bucket) -> dict[str, Any]:
    return {"storage_options": azure.storage_options}


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blobs of more than 100,000 bytes are made of blocks."""
    set_limits(monkeypatch, s3_part_bytes=100_000)


# ---- requests


def test_a_dataset_takes_as_many_requests_as_in_s3(azure: Bucket, requests: Requests, options: dict[str, Any]) -> None:
    write = lambda **keywords: tfr.write_tfrecord(TABLE, azure.url(f"d/train@{SHARDS}"), **keywords, **options)  # noqa: E731
    made = requests.counted(write)
    assert made.total() <= SHARDS + 12, made
    assert requests.most > 1
    made = requests.counted(lambda: write(mode="overwrite"))
    assert made["copy_object"] == SHARDS
    assert made["delete_objects"] == 1
    assert made.total() <= 2 * SHARDS + 1 + 24, made
    assert read_by(tfr.read_table, azure.url("d/"), **options).equals(TABLE)
    assert len(azure.names()) == SHARDS + 1
    target = azure.url("e/")
    tfr.write_tfrecord(TABLE, target, max_shard_bytes=200, **options)
    before = len(azure.names())
    append = lambda: tfr.write_tfrecord(TABLE, target, mode="append", max_shard_bytes=200, **options)  # noqa: E731
    made = requests.counted(append)
    shards = len(azure.names()) - before
    assert shards > 20
    assert made.total() <= shards + 6, made
    made = requests.counted(lambda: tfr.merge(azure.url("d/"), azure.url("merged@8"), **options))
    assert made.total() <= SHARDS + 8 + 20, made


def test_blocks_of_one_blob_are_sent_side_by_side(
    azure: Bucket, requests: Requests, options: dict[str, Any], blocks: None
) -> None:
    with open_output(azure.url("a"), StorageOptions(**options)) as output:
        output.write(BIG)
    assert requests.most > 1
    made = Counter(name for name, _ in requests.made)
    assert (made["upload_part"], made["complete_multipart_upload"]) == (11, 1)
    assert azure.fs.cat_file(azure.url("a")) == BIG


def test_many_blobs_are_deleted_at_once(azure: Bucket, requests: Requests) -> None:
    keys = [f"d/{at} ü" for at in range(MOST_DELETED - 1)]
    azure.fs.pipe({azure.url(key): b"" for key in keys})
    requests.made.clear()
    left = asyncio.run_coroutine_threadsafe(delete_blobs(azure.fs, azure.name, [*keys, "gone"]), azure.fs.loop)
    assert left.result() == []
    assert [name for name, _ in requests.made] == ["delete_objects"]
    assert azure.names() == []


# ---- atomic


@pytest.mark.fault(69)
@pytest.mark.parametrize("data", [b"small", BIG], ids=["small", "big"])
@pytest.mark.parametrize("end", ["raises", "abandoned", "discarded"])
def test_a_writer_that_does_not_commit_publishes_nothing(
    azure: Bucket, options: dict[str, Any], blocks: None, data: bytes, end: str
) -> None:
    azure.fs.pipe_file(azure.url("old"), b"old")
    for name in ("new", "old"):
        output = open_output(azure.url(name), StorageOptions(**options))
        if end == "raises":
            with suppress(ZeroDivisionError), output:
                output.write(data)
                raise ZeroDivisionError
        else:
            output.write(data)
            if end == "discarded":
                output.discard()
            del output
    assert azure.names() == ["old"]
    assert azure.fs.cat_file(azure.url("old")) == b"old"


@pytest.mark.fault(69)
def test_rows_of_a_failed_writer_are_not_published(azure: Bucket, options: dict[str, Any]) -> None:
    def rows() -> Any:
        for at in range(10):
            if at == 9:
                raise RuntimeError("mine")
            yield pa.table({"x": [at] * 10})

    for target in ("a.tfrecord", "d/", "t@3"):
        with pytest.raises(RuntimeError, match="mine"):
            tfr.write_tfrecord(rows(), azure.url(target), **options)
    assert azure.names() == []


@pytest.mark.fault(68)
@pytest.mark.parametrize("data", [b"small", BIG], ids=["small", "big"])
@pytest.mark.parametrize("other", [b"other", BIG[:-1]], ids=["small", "big"])
def test_a_blob_that_appears_meanwhile_is_not_replaced(
    azure: Bucket, options: dict[str, Any], blocks: None, data: bytes, other: bytes
) -> None:
    output = open_output(azure.url("a"), StorageOptions(**options), mode="error")
    output.write(data)
    with open_output(azure.url("a"), StorageOptions(**options)) as second:
        second.write(other)
    with pytest.raises(FileExistsError, match="mode='overwrite'") as caught:
        output.commit()
    assert caught.value.filename == azure.url("a")
    assert azure.fs.cat_file(azure.url("a")) == other


def test_blocks_that_another_writer_dropped_are_an_error(azure: Bucket, options: dict[str, Any], blocks: None) -> None:
    """In Azure, who stores a blob drops the blocks that others have sent for it; the emulator keeps them."""
    azure.fs.pipe_file(azure.url("a"), b"other")
    output = open_output(azure.url("a"), StorageOptions(**options))
    output.write(BIG)
    output.finish()
    assert isinstance(output, AzureOutput)
    output._blocks[1] = "f" * 32
    with pytest.raises(OSError, match="another writer stored this blob meanwhile") as caught:
        output.commit()
    assert caught.value.errno == errno.EBUSY
    assert azure.fs.cat_file(azure.url("a")) == b"other"


@pytest.mark.parametrize("data", [b"small", BIG], ids=["small", "big"])
@pytest.mark.parametrize("mode", [None, "error"])
def test_a_lost_response_is_not_a_failure(
    azure: Bucket, options: dict[str, Any], blocks: None, data: bytes, mode: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first try stores the blob; the second, by Azure's library, is refused because it exists."""
    from azure.core.exceptions import ServiceResponseError

    lost: list[str] = []

    async def handle(name: str, key: str, call: Call) -> Any:
        answer = await call()
        if name in ("put_object", "complete_multipart_upload") and not lost:
            lost.append(name)
            raise ServiceResponseError("the answer is lost")
        return answer

    around_requests(azure, monkeypatch, handle)
    with open_output(azure.url("a"), StorageOptions(**options), mode=mode) as output:
        output.write(data)
    assert len(lost) == 1
    assert azure.fs.cat_file(azure.url("a")) == data


@pytest.mark.fault(23)
def test_random_access_to_a_blob_that_was_replaced_is_an_error(azure: Bucket, options: dict[str, Any]) -> None:
    tfr.write_tfrecord({"x": range(1000)}, azure.url("a.tfrecord"), write_index=True, **options)
    with read_by(tfr.open_random, azure.url("a.tfrecord"), **options) as records:
        assert records[[0]]["x"].to_pylist() == [0]
        tfr.write_tfrecord({"x": range(1000, 2000)}, azure.url("a.tfrecord"), **options)
        with pytest.raises(tfr.errors.ReplacedError, match="was replaced while it was read"):
            records[[999]]


def test_a_copy_that_the_store_does_not_make_at_once_is_waited_for(
    azure: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    azure.fs.pipe_file(azure.url("a"), b"data")
    monkeypatch.setattr("tfrecord_io.store.filesystem.azure._COPY_SECONDS", 0)
    source, target = (Blob(azure.fs, f"{azure.name}/{name}", azure.url(name)) for name in "ab")
    from azure.storage.blob.aio import BlobClient

    start, look = BlobClient.start_copy_from_url, BlobClient.get_blob_properties
    statuses = ["success", "pending", "pending"]

    async def started(self: Any, url: str, **condition: Any) -> Any:
        return {**await start(self, url, **condition), "copy_status": statuses.pop()}

    async def looked(self: Any) -> Any:
        properties = await look(self)
        properties.copy.status = statuses.pop()
        return properties

    monkeypatch.setattr(BlobClient, "start_copy_from_url", started)
    monkeypatch.setattr(BlobClient, "get_blob_properties", looked)
    copy = lambda: asyncio.run_coroutine_threadsafe(source.copy_to(target), azure.fs.loop).result()  # noqa: E731
    copy()
    assert statuses == []
    assert azure.fs.cat_file(azure.url("b")) == b"data"
    statuses += ["failed", "pending"]
    with pytest.raises(OSError, match="the store did not copy a staged file: failed"):
        copy()
    statuses += ["success", "pending", "pending"]  # of a copy that a request began whose answer was lost
    copy_new = source.copy_to(target, MISSING)
    with pytest.raises(FileExistsError):
        asyncio.run_coroutine_threadsafe(copy_new, azure.fs.loop).result()
    assert statuses == []
    pending = pytest.importorskip("azure.core.exceptions").HttpResponseError(
        "There is currently a pending copy operation."
    )
    pending.error_code = "PendingCopyOperation"
    assert isinstance(to_os_error(pending, azure.url("b")), FileExistsError), "one that is under way is looked at"


# ---- errors, URLs


def test_one_layer_repeats_a_request(azure: Bucket, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Azure's library tries four times; what it gave up is not begun again."""
    from azure.core.exceptions import ServiceResponseError

    azure.fs.pipe_file(azure.url("a.tfrecord"), b"x" * 100)
    tried = []

    async def handle(name: str, key: str, call: Call) -> Any:
        if name != "get_object":
            return await call()
        tried.append(name)
        raise ServiceResponseError("the network is down")

    around_requests(azure, monkeypatch, handle)
    with pytest.raises(OSError, match="the network is down") as caught:
        read_by(tfr.count, azure.url("a.tfrecord"), **options)
    assert str(caught.value.filename).startswith(azure.url())
    assert len(tried) <= 12, "four times, in a loop of three of the same library around a download"
    assert not is_transient(ServiceResponseError("after its retries"))


def test_an_account_that_may_not_is_a_permission_error_at_once(azure: Bucket, requests: Requests) -> None:
    wrong = "AccountKey=" + "A" * 86 + "==;"
    connection = ";".join(
        wrong.rstrip(";") if part.startswith("AccountKey=") else part
        for part in azure.storage_options["connection_string"].split(";")
    )
    with pytest.raises(PermissionError) as caught:
        tfr.read_table(azure.url("d/a.tfrecord"), storage_options={"connection_string": connection})
    assert "\n" not in str(caught.value)
    assert len(requests.made) <= 2
    with pytest.raises(PermissionError):
        tfr.write_tfrecord({"x": [1]}, azure.url("a.tfrecord"), storage_options={"connection_string": connection})


def test_a_container_that_does_not_exist_is_named(options: dict[str, Any]) -> None:
    for call in (tfr.read_table, lambda path, **keywords: tfr.write_tfrecord({"x": [1]}, path, **keywords)):
        for name in ("a.tfrecord", "d/"):
            with pytest.raises(FileNotFoundError) as caught:
                call(f"abfs://no-such-container/{name}", **options)
            assert caught.value.filename.startswith("abfs://no-such-container/")


@pytest.mark.parametrize(
    "form", ["az://{}/a.tfrecord", "abfs://{}/a.tfrecord", "abfss://{}@x.dfs.core.windows.net/a.tfrecord"]
)
def test_forms_of_urls(azure: Bucket, options: dict[str, Any], form: str) -> None:
    tfr.write_tfrecord({"x": [1]}, form.format(azure.name), **options)
    assert azure.names() == ["a.tfrecord"]
    assert read_by(tfr.read_table, form.format(azure.name), **options)["x"].to_pylist() == [1]


@pytest.mark.parametrize("folder", ["with space", "ü", "50%", "a+b", "x=1&y", "#1"])
def test_names_of_folders(azure: Bucket, options: dict[str, Any], folder: str) -> None:
    path = azure.url(f"{folder}/train@2")
    for rows in ([1, 2], [3, 4]):
        tfr.write_tfrecord({"x": rows}, path, mode="overwrite", **options)
        assert read_by(tfr.read_table, path, **options)["x"].to_pylist() == rows
    assert len(azure.names()) == 3


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz"])
def test_a_blob_with_content_encoding_gzip_is_read_as_it_is_stored(
    azure: Bucket, options: dict[str, Any], tmp_path: Path, name: str
) -> None:
    tfr.write_tfrecord({"x": list(range(1000))}, tmp_path / name, compression="gzip")
    azure.fs.pipe_file(f"{azure.name}/{name}", (tmp_path / name).read_bytes())
    blob = azure.fs.service_client.get_blob_client(azure.name, name)
    settings = pytest.importorskip("azure.storage.blob").ContentSettings(content_encoding="gzip")
    sync(azure.fs.loop, blob.set_http_headers, settings)
    assert tfr.read_table(azure.url(name), **options)["x"].to_pylist() == list(range(1000))
    tfr.copy(azure.url(name), tmp_path / "copy", **options)
    assert (tmp_path / "copy").read_bytes() == (tmp_path / name).read_bytes()


def test_threads_share_a_filesystem(azure: Bucket, options: dict[str, Any]) -> None:
    threads = [
        threading.Thread(
            target=tfr.write_tfrecord, args=({"x": [at]}, azure.url("d/")), kwargs={"mode": "append", **options}
        )
        for at in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(read_by(tfr.read_table, azure.url("d/"), **options)["x"].to_pylist()) == list(range(8))
