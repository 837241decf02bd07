"""How many requests a dataset in a bucket takes to write: the budget in dev/performance.md."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from gcs_server import GcsServer
from limited import set_limits
from reading import read_by
from servers import Bucket, Web
from tfrecord_io.base import StorageOptions
from tfrecord_io.base.background import Task
from tfrecord_io.base.options.write import WriteOptions
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.filesystem.remote import FsspecFileSystem
from tfrecord_io.store.write import commit_place_remote
from tfrecord_io.store.write.atomic import open_output
from tfrecord_io.write.distributed import DistributedWriter, WrittenPart
from tfrecord_io.write.resumable import ResumableWriter
from transfers import convert_flat, transfer

SHARDS = 30
TABLE = pa.table({"x": range(SHARDS * 10), "p": [f"{at // 10:02d}" for at in range(SHARDS * 10)]})


class Requests:
    """The requests to S3 that were made, and how many uploads there were at a time."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str]] = []
        self.most = self._now = 0
        self._lock = threading.Lock()

    def count(self, *methods: str) -> int:
        return sum(not methods or method in methods for method, _ in self.made)

    def begin(self, method: str, key: str) -> None:
        with self._lock:
            self.made.append((method, key))
            self._now += method == "put_object"
            self.most = max(self.most, self._now)

    def end(self, method: str) -> None:
        with self._lock:
            self._now -= method == "put_object"


@pytest.fixture
def requests(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> Requests:
    found = Requests()
    real = type(s3.fs)._call_s3

    async def call(self: Any, method: Any, *arguments: Any, **keywords: Any) -> Any:
        name = getattr(method, "__name__", method)
        found.begin(name, str(keywords.get("Key", "")))
        try:
            return await real(self, method, *arguments, **keywords)
        finally:
            found.end(name)

    monkeypatch.setattr(type(s3.fs), "_call_s3", call)
    return found


def counted(requests: Requests, call: Callable[[], Any]) -> Counter[str]:
    requests.made.clear()
    requests.most = 0
    call()
    return Counter(method for method, _ in requests.made)


def test_a_new_dataset_takes_an_upload_for_each_shard_side_by_side(s3: Bucket, requests: Requests) -> None:
    options = {"storage_options": s3.storage_options}
    made = counted(requests, lambda: tfr.write_tfrecord(TABLE, s3.url(f"d/train@{SHARDS}"), **options))
    assert made.total() <= SHARDS + 12, made
    assert requests.most > 1
    assert read_by(tfr.read_table, s3.url("d/"), **options).equals(TABLE)


def test_shards_that_are_appended_take_an_upload_each(s3: Bucket, requests: Requests) -> None:
    options = {"storage_options": s3.storage_options}
    table = TABLE.slice(0, 150)
    tfr.write_tfrecord(table, s3.url("d/"), **options)
    before = len(s3.names())
    append = lambda: tfr.write_tfrecord(table, s3.url("d/"), mode="append", max_shard_bytes=200, **options)  # noqa: E731
    made = counted(requests, append)
    shards = len(s3.names()) - before
    assert shards > 20
    assert made.total() <= shards + 6, made
    assert requests.most > 1
    assert read_by(tfr.read_table, s3.url("d/"), **options).equals(pa.concat_tables([table, table]))


@pytest.mark.parametrize("shards", [3, 70])
def test_an_overwrite_takes_an_upload_and_a_copy_for_each_shard(s3: Bucket, requests: Requests, shards: int) -> None:
    options = {"storage_options": s3.storage_options}
    write = lambda: tfr.write_tfrecord(TABLE, s3.url(f"d/train@{shards}"), mode="overwrite", **options)  # noqa: E731
    write()
    made = counted(requests, write)
    assert made["copy_object"] == shards
    assert made["delete_objects"] == 1
    assert made.total() <= 2 * shards + 1 + 24, made
    assert len(s3.names()) == shards + 1
    assert read_by(tfr.read_table, s3.url("d/"), **options).equals(TABLE)


def test_folders_take_an_upload_for_each_shard(s3: Bucket, requests: Requests) -> None:
    options: dict[str, Any] = {"storage_options": s3.storage_options, "partition_by": "p"}
    made = counted(requests, lambda: tfr.write_tfrecord(TABLE, s3.url("d/"), **options))
    assert made.total() <= SHARDS + 20, made
    assert requests.most > 1
    made = counted(requests, lambda: tfr.write_tfrecord(TABLE, s3.url("d/"), mode="append", **options))
    assert made.total() <= SHARDS + 6, made


@pytest.mark.parametrize("tool", ["merge", "split", "shuffle", "compact"])
def test_tools_take_a_read_for_each_source_and_an_upload_for_each_target(
    s3: Bucket, requests: Requests, tool: str
) -> None:
    options = {"storage_options": s3.storage_options}
    source = s3.url("d/train@20")
    tfr.write_tfrecord(TABLE, source, **options)
    if tool == "compact":
        tfr.write_tfrecord(TABLE, s3.url("parts/"), max_shard_bytes=500, **options)
    shards = len(s3.names()) - 2
    before = set(s3.names())
    calls: dict[str, Callable[[], Any]] = {
        "merge": lambda: tfr.merge(source, s3.url("out/train@10"), **options),
        "split": lambda: tfr.split(source, s3.url("out/train@10"), **options),
        "shuffle": lambda: tfr.shuffle(source, s3.url("out/train@10"), seed=1, **options),
        "compact": lambda: tfr.compact(s3.url("parts/"), **options),
    }
    made = counted(requests, calls[tool])
    targets = len({name for name in s3.names() if "_MANIFEST" not in name} - before)
    reads = shards - 20 if tool == "compact" else 20
    removed = 2 * reads if tool == "compact" else 0  # numbered shards, each as the version that was seen
    assert targets
    assert made.total() <= reads + removed + targets + 20, made
    assert made["put_object"] <= targets + 3


def test_a_resumed_conversion_looks_for_nothing_that_it_writes(s3: Bucket, requests: Requests) -> None:
    """Each part is a read, an upload, a note of it, and a copy by the store to its name."""
    options = {"storage_options": s3.storage_options}
    tfr.write_tfrecord(TABLE, s3.url("s/train@20"), storage_options=s3.storage_options)
    made = counted(requests, lambda: convert_flat(s3.url("s/train-*"), s3.url("r/"), resume=True, **options))
    assert made["copy_object"] == 20
    assert made.total() <= 4 * 20 + 30, made
    assert made["delete_object"] <= 1
    assert requests.most > 1
    assert tfr.read_table(s3.url("r/"), storage_options=s3.storage_options).equals(TABLE)
    made = counted(requests, lambda: convert_flat(s3.url("s/train-*"), s3.url("r/"), resume=True, **options))
    assert made.total() <= 20 + 24, made  # whether all shards are there


def test_a_conversion_that_goes_on_reads_each_finished_part_and_its_note_once(
    s3: Bucket, requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"storage_options": s3.storage_options}
    tfr.write_tfrecord(TABLE, s3.url("s/train@20"), **options)
    with monkeypatch.context() as stopped:
        stopped.setattr(ResumableWriter, "_commit", lambda self, parts: Task.failing(InterruptedError())())
        with pytest.raises(InterruptedError):
            convert_flat(s3.url("s/train-*"), s3.url("r/"), resume=True, **options)
    made = counted(requests, lambda: convert_flat(s3.url("s/train-*"), s3.url("r/"), resume=True, **options))
    assert not any(key.endswith(".staged") for method, key in requests.made if method == "head_object")
    assert made["copy_object"] == 20
    assert made["get_object"] <= 2 * 20 + 6
    assert made.total() <= 3 * 20 + 30, made
    assert tfr.read_table(s3.url("r/"), **options).equals(TABLE)


def test_an_attempt_at_a_task_is_an_upload(s3: Bucket, requests: Requests) -> None:
    options = WriteOptions(storage_options=s3.storage_options)
    writer = DistributedWriter.begin(s3.url("d/"), options)
    parts: list[WrittenPart] = []
    made = counted(
        requests, lambda: parts.extend(writer.write_part(task, [TABLE.slice(10 * task, 10)]) for task in range(SHARDS))
    )
    assert made == {"put_object": SHARDS}
    made = counted(requests, lambda: writer.commit(parts))
    assert made.total() <= SHARDS + 24, made
    assert tfr.read_table(s3.url("d/"), storage_options=s3.storage_options).equals(TABLE)


def test_compacting_folders_takes_one_listing_of_them(s3: Bucket, requests: Requests) -> None:
    options: dict[str, Any] = {"storage_options": s3.storage_options}
    for _ in range(2):
        tfr.write_tfrecord(TABLE, s3.url("d/"), partition_by=["p"], mode="append", **options)
    made = counted(requests, lambda: tfr.compact(s3.url("d/"), **options))
    assert made.total() <= 2 * SHARDS + SHARDS + 20, made
    assert read_by(tfr.read_table, s3.url("d/"), **options).num_rows == 2 * TABLE.num_rows


@pytest.mark.parametrize("write_index", [False, True])
def test_one_small_file_is_counted_by_reading_it(s3: Bucket, requests: Requests, write_index: bool) -> None:
    options: dict[str, Any] = {"storage_options": s3.storage_options}
    tfr.write_tfrecord(TABLE, s3.url("a.tfrecord"), write_index=write_index, **options)
    made = counted(requests, lambda: read_by(tfr.count, s3.url("a.tfrecord"), **options))
    assert made == {"head_object": 1, "get_object": 1}


def test_one_small_file_on_a_web_server_is_counted_by_reading_it(web: Web, tmp_path: Path) -> None:
    tfr.write_tfrecord(TABLE, tmp_path / "a")
    web.files["a.tfrecord"] = (tmp_path / "a").read_bytes()
    assert tfr.count(web.url("a.tfrecord")) == TABLE.num_rows
    assert len(web.requests) == 2, web.requests


def test_verifying_reads_each_file_once(s3: Bucket, requests: Requests, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"storage_options": s3.storage_options}
    tfr.write_tfrecord(TABLE, s3.url(f"d/train@{SHARDS}"), **options)
    made = counted(requests, lambda: read_by(tfr.verify, s3.url("d/"), **options))
    assert made["get_object"] <= SHARDS + 2
    assert made.total() <= SHARDS + 8, made
    damaged = s3.url(f"d/train-00007-of-{SHARDS:05d}")
    data = bytearray(s3.fs.cat_file(damaged))
    data[-10] ^= 1
    s3.fs.pipe_file(damaged, bytes(data))
    parts = {problem.part for file in read_by(tfr.verify, s3.url("d/"), **options).files for problem in file.problems}
    assert parts == {"frames", "manifest"}


@pytest.mark.parametrize("shards", [16, 64])
def test_datasets_in_google_cloud_storage(google: Bucket, gcs_server: GcsServer, shards: int) -> None:
    options = {"storage_options": google.storage_options}
    tfr.write_tfrecord(TABLE, google.url("other/train@2"), **options)  # asks whether the server has conditions
    gcs_server.requests.clear()
    gcs_server.delay = 0.01  # so that requests meet
    tfr.write_tfrecord(TABLE, google.url(f"d/train@{shards}"), **options)
    gcs_server.delay = 0
    assert len(gcs_server.requests) <= shards + 5, gcs_server.counted()
    assert gcs_server.most > 1
    gcs_server.requests.clear()
    tfr.write_tfrecord(TABLE, google.url(f"d/train@{shards}"), mode="overwrite", **options)
    made = gcs_server.counted()
    assert made["batch"] == 1
    assert made["rewrite"] == shards
    assert made.total() <= 2 * shards + 14, made
    assert len(gcs_server.buckets[google.name]) == shards + 1 + 3
    assert read_by(tfr.read_table, google.url("d/"), **options).equals(TABLE)
    gcs_server.requests.clear()
    tfr.write_tfrecord(TABLE, google.url("a/"), mode="append", max_shard_bytes=200, **options)
    gcs_server.requests.clear()
    before = len(gcs_server.buckets[google.name])
    tfr.write_tfrecord(TABLE, google.url("a/"), mode="append", max_shard_bytes=200, **options)
    added = len(gcs_server.buckets[google.name]) - before
    assert len(gcs_server.requests) <= added + 6, gcs_server.counted()


def test_shards_wait_in_bounded_memory(s3: Bucket, requests: Requests, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those for which there is no room are sent as parts, which appear no earlier than all others."""
    options = {"storage_options": s3.storage_options}
    part = 5 << 20  # the least that S3 takes
    set_limits(monkeypatch, s3_part_bytes=part)
    monkeypatch.setattr(commit_place_remote, "_PENDING_BYTES", 8 << 20)
    data = pa.table({"x": pa.array([bytes([at]) * (1 << 20) for at in range(24)], pa.binary())})
    with tfr.open_writer(s3.url("d/"), data.schema, max_shard_bytes=2 << 20, **options) as writer:
        for batch in data.to_batches(max_chunksize=4):
            writer.write(batch)
        assert s3.names() == []
        assert requests.count("put_object") <= 1, "the one that tries whether the server has conditions"
    made = requests.count("put_object")
    assert requests.count("upload_part") + made >= 24
    assert requests.count("upload_part") > made
    assert s3.uploads() == []
    assert read_by(tfr.read_table, s3.url("d/"), **options).equals(data)


def test_a_failed_upload_leaves_nothing(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also none of those that were under way, and the error is that of the first shard."""
    options = {"storage_options": s3.storage_options}
    real = type(s3.fs)._call_s3

    async def call(self: Any, method: Any, *arguments: Any, **keywords: Any) -> Any:
        if method == "put_object" and "-of-" in keywords["Key"] and keywords["Key"].split("-")[1] in ("00007", "00012"):
            raise PermissionError(f"refused {keywords['Key']}")
        return await real(self, method, *arguments, **keywords)

    monkeypatch.setattr(type(s3.fs), "_call_s3", call)
    with pytest.raises(PermissionError, match="train-00007"):
        tfr.write_tfrecord(TABLE, s3.url(f"d/train@{SHARDS}"), **options)
    monkeypatch.undo()
    assert s3.names() == []
    tfr.write_tfrecord(TABLE, s3.url(f"d/train@{SHARDS}"), **options)
    assert read_by(tfr.read_table, s3.url("d/"), **options).equals(TABLE)


def test_an_object_that_appears_meanwhile_is_not_replaced(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program stores one under the name of a shard after the writer has looked for it."""
    options = {"storage_options": s3.storage_options}
    fs, real = s3.fs, type(s3.fs)._call_s3
    name = f"{s3.name}/d/train-00003-of-{SHARDS:05d}"

    async def call(self: Any, method: Any, *arguments: Any, **keywords: Any) -> Any:
        if method == "put_object" and "MANIFEST" in keywords["Key"] and not foreign:
            foreign.append(name)
            await self._pipe_file(name, b"other")
        return await real(self, method, *arguments, **keywords)

    foreign: list[str] = []
    monkeypatch.setattr(type(fs), "_call_s3", call)
    with pytest.raises(FileExistsError, match="train-00003"):
        tfr.write_tfrecord(TABLE, s3.url(f"d/train@{SHARDS}"), **options)
    monkeypatch.undo()
    assert s3.names() == [f"d/train-00003-of-{SHARDS:05d}"]
    assert fs.cat_file(name) == b"other"


@pytest.mark.parametrize("given", [None, 3])
def test_the_pool_of_connections_is_wide_unless_the_caller_says_how_wide(s3: Bucket, given: int | None) -> None:
    options = dict(s3.storage_options)
    if given is not None:
        options["config_kwargs"] = {"max_pool_connections": given}
    located = Location.of(s3.url("d"), StorageOptions(options))[0]
    assert isinstance(located, FsspecFileSystem)
    assert located.fsspec.config_kwargs["max_pool_connections"] == (given or 64)


@pytest.fixture
def gcs_requests(gcs: Bucket, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Their methods."""
    made: list[str] = []
    real = type(gcs.fs)._request

    async def request(self: Any, method: str, *arguments: Any, **keywords: Any) -> Any:
        made.append(method)
        return await real(self, method, *arguments, **keywords)

    monkeypatch.setattr(type(gcs.fs), "_request", request)
    return made


def test_a_small_shard_is_one_request_to_google_cloud_storage(gcs: Bucket, gcs_requests: list[str]) -> None:
    """The emulator ignores conditions, so that there are claims, and more look-ups than in the real store."""
    options = {"storage_options": gcs.storage_options}
    for overwrite in (False, True):
        gcs_requests.clear()
        tfr.write_tfrecord(TABLE, gcs.url(f"d/train@{SHARDS}"), mode="overwrite" if overwrite else "error", **options)
        made = Counter(gcs_requests)
        assert made["POST"] <= SHARDS * (1 + overwrite) + 4, "uploads, and copies by the store"
        assert made.total() <= SHARDS * (1 + 2 * overwrite) + 40, made
    gcs_requests.clear()
    tfr.write_tfrecord(TABLE, gcs.url("a/"), mode="append", max_shard_bytes=200, **options)
    assert Counter(gcs_requests)["POST"] <= len([name for name in gcs.names() if name.startswith("a/part")]) + 4
    assert read_by(tfr.read_table, gcs.url("a/"), **options).equals(read_by(tfr.read_table, gcs.url("d/"), **options))


@pytest.mark.parametrize("size", [0, 1000])
def test_a_lost_response_of_google_cloud_storage_is_no_failure(
    gcs: Bucket, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """gcsfs repeats the request, which the store refuses then, as the object exists."""
    real = type(gcs.fs)._call

    async def call(self: Any, method: str, *arguments: Any, **keywords: Any) -> Any:
        answer = await real(self, method, *arguments, **keywords)
        if method == "POST":
            raise FileExistsError
        return answer

    monkeypatch.setattr(type(gcs.fs), "_call", call)
    data = bytes(size)
    with open_output(gcs.url("a"), StorageOptions(gcs.storage_options), mode="error") as out:
        out.write(data)
    assert gcs.fs.cat_file(gcs.url("a")) == data


def test_small_shards_wait_in_bounded_memory_for_google_cloud_storage(
    gcs: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_place_remote, "_PENDING_BYTES", 3 << 20)
    options = {"storage_options": gcs.storage_options}
    data = pa.table({"x": pa.array([bytes([at]) * (1 << 20) for at in range(8)], pa.binary())})
    with tfr.open_writer(gcs.url("d/"), data.schema, max_shard_bytes=2 << 20, **options) as writer:
        for batch in data.to_batches(max_chunksize=2):
            writer.write(batch)
        assert gcs.names() == []
    assert read_by(tfr.read_table, gcs.url("d/"), **options).equals(data)


@pytest.mark.matrix
@pytest.mark.parametrize("end", [b"", b"\r", b"\n", b"\r\n", b"\n\r", b"\r\n--==0==", b"\r\n--"])
def test_an_object_ends_as_it_was_written(bucket: Bucket, end: bytes) -> None:
    data = bytes(range(256)) + end
    with open_output(bucket.url("a"), StorageOptions(bucket.storage_options)) as out:
        out.write(data)
    assert bucket.fs.cat_file(bucket.url("a")) == data


@pytest.mark.parametrize("way", ["from the disk", "to the disk", "across", "within"])
def test_a_copy_takes_a_read_and_an_upload_for_each_file(
    s3: Bucket, requests: Requests, tmp_path: Path, way: str
) -> None:
    here, there = {"storage_options": s3.storage_options}, {**s3.storage_options, "key": "of another filesystem"}
    source = f"{tmp_path}/d/" if way == "from the disk" else s3.url("d/")
    target = f"{tmp_path}/e/" if way == "to the disk" else s3.url("e/")
    tfr.write_tfrecord(TABLE, f"{source}train@{SHARDS}", write_index=True, **({} if way == "from the disk" else here))
    of_target = there if way == "across" else s3.storage_options

    path, options = transfer(source, s3.storage_options, of_target)

    def copy(**more: Any) -> object:
        return tfr.copy(path, target, **options, **more)

    made = counted(requests, copy)
    files = 2 * SHARDS  # with their indexes
    assert made.total() <= (2 if way == "across" else 1) * files + 24, made
    assert made["copy_object"] == (files if way == "within" else 0)
    assert made["get_object"] <= (0 if way in ("from the disk", "within") else files) + 3
    made = counted(requests, lambda: copy(update=True))
    assert made.total() <= 16, made
    assert read_by(tfr.read_table, target, **({} if way == "to the disk" else here)).equals(TABLE)
