"""Files are written to a bucket atomically, and no part of an upload stays stored."""

from __future__ import annotations

import asyncio
import errno
import io
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from fsspec import AbstractFileSystem

import tfrecord_io as tfr
from chaos import Chaos
from limited import set_limits
from servers import Bucket, around_requests
from tfrecord_io.base import StorageOptions
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.write import atomic_remote
from tfrecord_io.store.write.atomic import open_named, open_output
from tfrecord_io.store.write.atomic_remote import AzureOutput, S3Output

BIG = bytes(range(256)) * (12 << 12)  # 12 MiB: an upload of several parts
CONTENTS = pytest.mark.parametrize("data", [b"", b"small", BIG], ids=["empty", "small", "big"])


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, s3_part_bytes=5 << 20)  # the minimum of S3
    set_limits(monkeypatch, backoff_seconds=0.001)
    monkeypatch.setattr(atomic_remote, "_GCS_BLOCK", 1 << 20)


def wait_for(condition: Callable[[], bool]) -> bool:
    """Whether the condition becomes true within 500 checks."""
    return any(condition() for _ in range(500))


def write(url: str, data: bytes, **kwargs: Any) -> None:
    with open_output(url, **kwargs) as out:
        for i in range(0, len(data), 1 << 20):
            assert out.write(data[i : i + (1 << 20)]) == len(data[i : i + (1 << 20)])
        assert out.offset == len(data)


@pytest.mark.matrix
@CONTENTS
@pytest.mark.parametrize("mode", [None, "error"])
def test_written_file_appears_at_commit(bucket: Bucket, data: bytes, mode: str | None) -> None:
    url, files = bucket.url("dir/a.tfrecord"), [*bucket.fs.transaction.files]  # also those of writers that died
    with open_output(url, StorageOptions(bucket.storage_options), mode=mode) as out:
        for i in range(0, len(data), 1 << 20):
            out.write(data[i : i + (1 << 20)])
        assert not bucket.names()
    assert bucket.names() == ["dir/a.tfrecord"]
    assert bucket.fs.cat_file(url) == data
    assert [*bucket.fs.transaction.files] == files
    if bucket.protocol == "s3":
        assert not bucket.uploads()


@pytest.mark.fault(69)
def test_exception_in_the_block_aborts_the_upload_to_gcs(gcs: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []
    real, files = gcs.fs.call, [*gcs.fs.transaction.files]

    def call(method: str, path: str, *arguments: Any, **kwargs: Any) -> Any:
        if method == "DELETE" and "upload_id" in path:  # not supported by the emulator
            ended.append(path)
            return {}, b""
        return real(method, path, *arguments, **kwargs)

    monkeypatch.setitem(vars(gcs.fs), "call", call)
    with pytest.raises(RuntimeError), open_output(gcs.url("a"), StorageOptions(gcs.storage_options)) as out:  # noqa: PT012
        out.write(BIG)
        raise RuntimeError
    assert len(ended) == 1
    assert not gcs.names()
    assert [*gcs.fs.transaction.files] == files


@pytest.mark.fault(64)
@pytest.mark.fault(69)
@pytest.mark.parametrize("late", [False, True])
def test_upload_interrupted_before_its_id_arrives_is_aborted(
    s3: Bucket, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    monkeypatch.setattr(atomic_remote, "_ID_SECONDS", 0.0 if late else 10.0)
    real = s3.fs._call_s3
    requested = threading.Event()

    async def call(method: str, *arguments: Any, **kwargs: Any) -> Any:
        answer = await real(method, *arguments, **kwargs)
        if method == "create_multipart_upload":
            requested.set()
            await asyncio.sleep(0.05)
        return answer

    monkeypatch.setitem(vars(s3.fs), "_call_s3", call)
    start = S3Output._submit

    def interrupted_start(self: S3Output, request: Any) -> Any:
        future = start(self, request)
        if request.__name__ == "_track":  # the first part, which waits for the id

            def done() -> bool:
                del future.done
                assert requested.wait(10)
                raise KeyboardInterrupt

            future.done = done  # type: ignore[method-assign]
        return future

    monkeypatch.setattr(S3Output, "_submit", interrupted_start)
    with pytest.raises(KeyboardInterrupt), open_output(s3.url("a"), StorageOptions(s3.storage_options)) as out:
        out.write(BIG)
    assert wait_for(lambda: not s3.uploads())
    assert not s3.names()


@pytest.mark.fault(68)
@CONTENTS
def test_overwrite_false_refuses_a_file_created_meanwhile(s3: Bucket, data: bytes) -> None:
    url = s3.url("a")
    out = open_output(url, StorageOptions(s3.storage_options), mode="error")
    out.write(data)
    s3.fs.pipe_file(url, b"other")
    with pytest.raises(FileExistsError, match="mode='overwrite'") as caught:
        out.commit()
    assert caught.value.filename == url
    assert s3.fs.cat_file(url) == b"other"
    assert not s3.uploads()
    with pytest.raises(FileExistsError):
        open_output(url, StorageOptions(s3.storage_options), mode="error")
    write(url, b"new", storage=StorageOptions(s3.storage_options))
    assert s3.fs.cat_file(url) == b"new"


@pytest.mark.parametrize("mode", ["error", "overwrite"])
@pytest.mark.parametrize("kind", ["s3", "azure"])
def test_the_name_of_a_written_file_is_looked_at_once(
    kind: str, mode: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Besides, a small file is one request; not to replace one on servers without conditions, S3 is asked again."""
    bucket: Bucket = request.getfixturevalue(kind)
    made: Counter[str] = Counter()

    async def handle(name: str, key: str, call: Callable[[], Awaitable[Any]]) -> Any:
        made[name] += 1
        return await call()

    around_requests(bucket, monkeypatch, handle)
    tfr.write_tfrecord({"x": [1]}, bucket.url("d/a.tfrecord"), mode=mode, storage_options=bucket.storage_options)
    assert made["put_object"] == made["list_objects_v2"] == 1
    assert made["head_object"] == 1 + (kind == "s3" and mode == "error")


@pytest.mark.fault(68)
def test_overwrite_false_refuses_a_file_of_the_same_content(s3: Bucket) -> None:
    """It is that of another writer, whatever it contains."""
    out = open_named(*Location.of(s3.url("a"), StorageOptions(s3.storage_options)), exclusive=True, looks=False)
    out.write(b"same")
    s3.fs.pipe_file(s3.url("a"), b"same")
    with pytest.raises(FileExistsError):
        out.commit()


@pytest.mark.fault(68)
@CONTENTS
def test_overwrite_false_works_on_servers_without_conditional_requests(
    s3: Bucket, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = s3.fs._call_s3

    async def call(method: str, *arguments: Any, **kwargs: Any) -> Any:
        kwargs.pop("IfNoneMatch", None)
        return await real(method, *arguments, **kwargs)

    monkeypatch.setitem(vars(s3.fs), "_call_s3", call)
    out = open_output(s3.url("a"), StorageOptions(s3.storage_options), mode="error")
    out.write(data)
    s3.fs.pipe_file(s3.url("a"), b"other")
    with pytest.raises(FileExistsError):
        out.commit()
    assert s3.fs.cat_file(s3.url("a")) == b"other"


@pytest.mark.fault(68)
@CONTENTS
def test_overwrite_false_sends_generation_0_to_gcs(gcs: Bucket, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulator ignores the condition, so the request is checked, and the server's response is simulated."""
    requested: list[Any] = []
    real = gcs.fs._call

    async def call(method: str, path: str, *arguments: Any, **kwargs: Any) -> Any:
        requested.append((method, kwargs.get("ifGenerationMatch", "ifGenerationMatch=0" in path or None)))
        return await real(method, path, *arguments, **kwargs)

    monkeypatch.setitem(vars(gcs.fs), "_call", call)
    write(gcs.url("a"), data, storage=StorageOptions(gcs.storage_options), mode="error")
    assert any(method == "POST" and condition in (0, "0", True) for method, condition in requested)

    async def refuse(method: str, path: str, *arguments: Any, **kwargs: Any) -> Any:
        if method == "POST":
            raise FileExistsError(path)  # gcsfs raises this for status 412
        return await real(method, path, *arguments, **kwargs)

    with pytest.raises(FileExistsError, match="mode='overwrite'") as caught:  # noqa: PT012
        out = open_output(gcs.url("b"), StorageOptions(gcs.storage_options), mode="error")
        monkeypatch.setitem(vars(gcs.fs), "_call", refuse)
        monkeypatch.setitem(vars(gcs.fs), "call", lambda *a, **k: (_ for _ in ()).throw(FileExistsError("412")))
        out.write(b"x")
        out.commit()
    assert caught.value.filename == gcs.url("b")


@pytest.mark.fault(66)
@CONTENTS
def test_a_full_store_leaves_the_target_and_no_upload(s3: Bucket, chaos: Chaos, data: bytes) -> None:
    s3.fs.pipe_file(s3.url("a"), b"old")
    options = {**s3.storage_options, "endpoint_url": chaos.endpoint, "config_kwargs": {"retries": {"max_attempts": 0}}}
    chaos.full = True
    with pytest.raises(OSError, match="The store is full") as caught:
        write(s3.url("a"), data, storage=StorageOptions(options))
    assert caught.value.filename == s3.url("a")
    assert s3.fs.cat_file(s3.url("a")) == b"old"
    assert not s3.uploads()


@pytest.mark.parametrize("data", [b"small", BIG], ids=["small", "big"])
@pytest.mark.parametrize("mode", [None, "error"])
def test_lost_response_is_not_a_failure(
    s3: Bucket, data: bytes, mode: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first try stores the object, the second is refused. No ETag is a hash of the content, as with KMS."""
    real = s3.fs._call_s3
    lost: list[str] = []

    async def call(method: str, *arguments: Any, **kwargs: Any) -> Any:
        if method == "complete_multipart_upload" and lost:
            raise FileNotFoundError("NoSuchUpload")  # the server of the tests completes it again
        answer = await real(method, *arguments, **kwargs)
        if method == "head_object":
            answer["ETag"] = f'"{uuid4().hex}"'
        if method in ("put_object", "complete_multipart_upload") and not lost:
            lost.append(method)
            raise ConnectionResetError("the answer is lost")
        return answer

    monkeypatch.setitem(vars(s3.fs), "_call_s3", call)
    write(s3.url("a"), data, storage=StorageOptions(s3.storage_options), mode=mode)
    assert len(lost) == 1
    monkeypatch.undo()
    assert s3.fs.cat_file(s3.url("a")) == data


def test_a_blob_that_was_refused_and_is_gone_since_was_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(output: AzureOutput, error: OSError) -> bool:
        raise FileNotFoundError(output.path)

    monkeypatch.setattr(AzureOutput, "_was_stored", gone)
    output = AzureOutput.__new__(AzureOutput)
    output.path, output._exclusive = "az://bucket/a", True
    assert isinstance(output._failure(FileExistsError("BlobAlreadyExists")), FileExistsError)
    timeout = TimeoutError()
    assert output._failure(timeout) is timeout


@pytest.mark.parametrize("method", ["upload_part", "complete_multipart_upload"])
def test_an_upload_that_was_aborted_is_no_missing_file(
    s3: Bucket, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A FileNotFoundError would say that the data do not exist."""
    from botocore.exceptions import ClientError
    from s3fs.errors import translate_boto_error

    real = s3.fs._call_s3

    async def call(name: str, *arguments: Any, **kwargs: Any) -> Any:
        if name == method:  # what s3fs raises of it; the server of the tests does not answer so
            raise translate_boto_error(ClientError({"Error": {"Code": "NoSuchUpload"}}, name))
        return await real(name, *arguments, **kwargs)

    monkeypatch.setitem(vars(s3.fs), "_call_s3", call)
    with pytest.raises(OSError, match="the store has no such upload: another program") as caught:
        write(s3.url("a"), BIG, storage=StorageOptions(s3.storage_options))
    assert caught.value.errno == errno.EIO
    assert caught.value.filename == s3.url("a")
    assert not s3.fs.exists(s3.url("a"))


@pytest.mark.parametrize("data", [b"small", BIG], ids=["small", "big"])
def test_metadata_of_the_caller_is_kept(s3: Bucket, data: bytes) -> None:
    options = {**s3.storage_options, "s3_additional_kwargs": {"Metadata": {"owner": "me"}}}
    write(s3.url("a"), data, storage=StorageOptions(options))
    assert s3.fs.metadata(s3.url("a"), refresh=True)["owner"] == "me"


def test_parts_are_uploaded_concurrently_within_a_limit(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic_remote, "_PENDING_BYTES", 20 << 20)
    now: list[int] = []
    most: list[int] = []
    real: Callable[..., Any] = s3.fs._call_s3

    async def call(method: str, *arguments: Any, **kwargs: Any) -> Any:
        if method != "upload_part":
            return await real(method, *arguments, **kwargs)
        now.append(len(kwargs["Body"]))
        most.append(sum(now))
        await asyncio.sleep(0.01)
        try:
            return await real(method, *arguments, **kwargs)
        finally:
            now.pop()

    monkeypatch.setitem(vars(s3.fs), "_call_s3", call)
    write(s3.url("a"), BIG * 4, storage=StorageOptions(s3.storage_options))
    assert 10 << 20 <= max(most) <= 20 << 20
    assert s3.fs.cat_file(s3.url("a")) == BIG * 4


def test_parts_grow_so_that_ten_thousand_are_enough(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    out = S3Output(s3.fs, f"{s3.name}/a", "s3://a", False)
    sizes = [out._part_size(n) for n in range(10_000)]
    assert sum(sizes) > 1 << 40
    assert sizes == sorted(sizes)
    assert sizes[0] == 6 << 20
    s3.fs.fixed_upload_size = True
    assert len({out._part_size(n) for n in range(10_000)}) == 1


@pytest.mark.fault(61)
def test_short_writes_of_a_filesystem_are_continued() -> None:
    filesystem = ShortWrites()
    data = bytes(range(256)) * 100
    with open_output("target", StorageOptions(filesystem=filesystem)) as output:
        assert output.write(data) == len(data)
    assert filesystem.files["target"] == data


@pytest.mark.fault(61)
def test_a_filesystem_that_accepts_nothing_is_an_error() -> None:
    filesystem = ShortWrites(most=0)
    output = open_output("target", StorageOptions(filesystem=filesystem))
    with pytest.raises(OSError, match="the file accepts no more data"), output:
        output.write(b"data")
    assert "target" not in filesystem.files


class ShortWrites(AbstractFileSystem):
    """Accepts at most some bytes of each write, and ignores ``autocommit=False``."""

    protocol = "short"
    cachable = False

    def __init__(self, most: int = 1000) -> None:
        super().__init__()
        self.files: dict[str, bytes] = {}
        self._most = most

    def _open(self, path: str, mode: str = "rb", autocommit: bool = True, **_: Any) -> Any:
        return ShortFile(self, path, self._most)

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        if path not in self.files:
            raise FileNotFoundError(path)
        return {"name": path, "size": len(self.files[path]), "type": "file"}

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        self.files[path2] = self.files.pop(path1)

    def rm_file(self, path: str) -> None:
        del self.files[path]


class ShortFile(io.BytesIO):
    def __init__(self, filesystem: ShortWrites, path: str, most: int) -> None:
        super().__init__()
        self._filesystem, self._path, self._most = filesystem, path, most

    def write(self, data: Any, /) -> int:
        return super().write(memoryview(data)[: self._most])

    def close(self) -> None:
        if not self.closed:
            self._filesystem.files[self._path] = self.getvalue()
        super().close()


def test_memory_takes_names_that_would_be_patterns(tmp_path: Path) -> None:
    folder = f"memory://{tmp_path.name}/[a]"
    tfr.write_tfrecord({"x": [1]}, f"{folder}/b[1].tfrecord")
    for keywords in ({"mode": "append"}, {"mode": "append"}, {"mode": "overwrite", "shards": 2}):
        tfr.write_tfrecord({"x": [1, 2], "y": [1, 2]}, f"{folder}/[c]/", **keywords)
    assert tfr.count(f"{folder}/b[1].tfrecord") == 1
    assert tfr.read_table(f"{folder}/[c]/")["x"].to_pylist() == [1, 2]


def test_a_file_with_a_slash_is_refused_in_every_store(bucket: Bucket, tmp_path: Path) -> None:
    """In a bucket, it would be an object without the slash."""
    for path, storage in ((bucket.url("out/"), bucket.storage_options), (f"{tmp_path}/out/", None)):
        with pytest.raises(IsADirectoryError, match="a directory, not a file"):
            tfr.RecordWriter(path, storage_options=storage)
        assert not list(tmp_path.iterdir())
