"""Looking up files in buckets."""

from __future__ import annotations

import errno
import multiprocessing
import os
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Thread
from typing import Any

import fsspec
import pytest
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.memory import MemoryFileSystem

import tfrecord_io as tfr
from limited import set_limits
from reading import read_by
from servers import Bucket
from tfrecord_io.base import StorageOptions
from tfrecord_io.errors import MissingDependencyError
from tfrecord_io.store.filesystem.remote import FsspecFileSystem
from tfrecord_io.store.filesystem.retries import s3_options
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.store.write.atomic import open_output


def found(bucket: Bucket, path: str, **kwargs: Any) -> list[str]:
    return [s.path for s in resolve_inputs(bucket.url(path), StorageOptions(bucket.storage_options), **kwargs)]


def test_path_forms(bucket: Bucket) -> None:
    names = [f"train-{i:05d}-of-00012" for i in range(12)]
    bucket.fs.pipe({f"{bucket.name}/d/{name}": b"x" for name in (*names, "train.json", "_SUCCESS", "sub/x.tfrecord")})
    for path in ("d", "d/", "d/train-*", "d/train@12", "d/train@*", "d/train-000{00..11}-of-00012"):
        sources = resolve_inputs(bucket.url(path), StorageOptions(bucket.storage_options))
        assert [s.path for s in sources] == [bucket.url(f"d/{n}") for n in names], path
        assert {(s.size, s.local) for s in sources} == {(1, False)}
    with pytest.raises(FileNotFoundError) as caught:
        found(bucket, "e*")
    assert caught.value.filename == bucket.url("e*")


@pytest.mark.parametrize("path", ["d", "d/", "d/*", "d/**", "*/*.tfrecord", "d/p=*/*", "d/{1,2}.tfrecord"])
def test_files_that_another_process_writes_are_found(bucket: Bucket, path: str) -> None:
    """Listings that a filesystem keeps are not used: adlfs kept that of a directory with a slash at its end."""
    other = fsspec.filesystem(bucket.protocol, skip_instance_cache=True, **bucket.storage_options)
    seen: list[list[str]] = []
    for size in (1, 2):
        names = [f"{bucket.name}/d/{folder}{i}.tfrecord" for folder in ("", "p=1/") for i in range(1, size + 1)]
        other.pipe(dict.fromkeys(names, b"x" * size))
        storage = StorageOptions(bucket.storage_options)
        sources = resolve_inputs(bucket.url(path), storage, allow_missing_shards="{" in path)
        assert {source.size for source in sources} == {size}
        seen.append([source.path for source in sources])
    assert len(seen[1]) == 2 * len(seen[0]) > 0
    assert seen[1] == found(bucket, path)


def test_many_names_are_looked_up_by_a_listing_and_few_one_by_one(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    s3.fs.pipe({f"{s3.name}/{i:03d}": b"x" for i in range(100)})
    listed: list[str] = []
    real = s3.fs._lsdir

    async def lsdir(path: str, *arguments: Any, **kwargs: Any) -> Any:
        listed.append(path)
        return await real(path, *arguments, **kwargs)

    monkeypatch.setitem(vars(s3.fs), "_lsdir", lsdir)
    assert len(found(s3, "{000..009}")) == 10
    assert s3.name not in listed
    assert len(found(s3, "{000..099}")) == 100
    assert listed.count(s3.name) == 1
    with pytest.raises(FileNotFoundError) as caught:
        found(s3, "{098..101}")
    assert caught.value.filename == s3.url("100")
    assert len(found(s3, "{098..101}", allow_missing_shards=True)) == 2


def test_files_created_after_a_listing_are_found(bucket: Bucket) -> None:
    bucket.fs.pipe_file(f"{bucket.name}/d/a.tfrecord", b"x")
    other = type(bucket.fs)(**bucket.storage_options, skip_instance_cache=True)
    for path in ("d", "d/*"):
        before = len(found(bucket, path))
        other.pipe_file(f"{bucket.name}/d/b{path[-1]}.tfrecord", b"x")
        assert len(found(bucket, path)) == before + 1
    other.pipe_file(f"{bucket.name}/d/a.tfrecord", b"longer")
    (source,) = resolve_inputs(bucket.url("d/a.tfrecord"), StorageOptions(bucket.storage_options))
    buffer = bytearray(10)
    assert source.open().readinto(memoryview(buffer)) == source.size == 6


@pytest.mark.fault(24)
def test_missing_buckets(bucket: Bucket) -> None:
    with pytest.raises(FileNotFoundError):
        resolve_inputs(f"{bucket.protocol}://no-such-bucket-anywhere/a*", StorageOptions(bucket.storage_options))
    if bucket.protocol == "s3":
        with (
            pytest.raises(OSError),
            open_output("s3://no-such-bucket-anywhere/a", StorageOptions(bucket.storage_options)) as out,
        ):
            out.write(b"x")


def test_unreachable_server_is_an_oserror(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("s3fs")
    set_limits(monkeypatch, tries=1)
    monkeypatch.setattr("s3fs.S3FileSystem.retries", 1)
    options = {"anon": True, "endpoint_url": "http://127.0.0.1:9", "config_kwargs": {"retries": {"max_attempts": 0}}}
    with pytest.raises(OSError, match="connect") as caught:
        resolve_inputs("s3://bucket/a", StorageOptions(options))
    assert caught.value.filename == "s3://bucket/a"


@pytest.mark.parametrize(
    ("url", "module", "package"),
    [
        ("s3://bucket/a", "s3fs", r"tfrecord_io\[s3\]"),
        ("simplecache::s3://bucket/a", "s3fs", r"tfrecord_io\[s3\]"),
        ("gs://bucket/a", "gcsfs", r"tfrecord_io\[gcs\]"),
        ("https://host/a", "fsspec.implementations.http", "aiohttp"),
    ],
)
def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, url: str, module: str, package: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    protocol = url.rpartition("::")[2].partition(":")[0]
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, protocol, raising=False)
    with pytest.raises(MissingDependencyError, match=f"pip install '{package}'") as caught:
        resolve_inputs(url)
    assert caught.value.path == url


@pytest.mark.parametrize(
    "info",
    [
        {},
        {"name": "a", "type": "file", "size": "many"},
        {"name": "a", "type": "file", "size": -1},
        {"name": "a", "type": "file", "size": 2**70},
        {"name": "a", "type": "file", "size": 1.5},
        {"name": "a", "type": None, "size": 1},
        {"name": ["a"], "type": "file", "size": 1},
        {"name": "a", "size": 1},
        [],
        None,
    ],
    ids=str,
)
def test_a_damaged_description_is_an_oserror(monkeypatch: pytest.MonkeyPatch, info: Any) -> None:
    fs = MemoryFileSystem()
    monkeypatch.setattr(fs, "info", lambda name, **_: info)
    monkeypatch.setattr(fs, "ls", lambda name, detail=True, **_: [info])
    monkeypatch.setattr(fs, "glob", lambda name, detail=True, **_: {"a": info})
    files = FsspecFileSystem(fs)
    for call in (files.entry, files.listing, files.glob, lambda name: files.entries([name])):
        with pytest.raises(OSError, match="the storage's description of it is damaged") as caught:
            call("/a")
        assert caught.value.errno == errno.EIO
        assert caught.value.filename == "memory:///a"


@pytest.mark.parametrize("answer", [{"size": "1", "generation": {}}, {"name": "a", "size": "many"}, [], None], ids=str)
def test_a_damaged_answer_of_google_is_an_oserror(gcs: Bucket, monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    async def call(*arguments: Any, **keywords: Any) -> Any:
        return answer

    monkeypatch.setitem(vars(gcs.fs), "_call", call)
    with pytest.raises(OSError, match="the storage's description of it is damaged"):
        FsspecFileSystem(gcs.fs).entry(f"{gcs.name}/a")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"anno": True}, r"storage_options= has no option 'anno'; valid names: anon, "),
        ({"endpoint": "http://hunter2"}, r"storage_options= has no option 'endpoint'; did you mean 'endpoint_url'\?"),
        ({"client_kwargs": {"regio": "hunter2"}}, r"storage_options= has no option 'client_kwargs\.regio'$"),
        ({"config_kwargs": {"retry": "hunter2"}}, r"storage_options= has no option 'config_kwargs\.retry'$"),
        ({"client_kwargs": "hunter2"}, r"'client_kwargs' of storage_options= is a dict of options$"),
    ],
)
@pytest.mark.parametrize("name", ["a.tfrecord", "a*", "a@2", "{a,b}"])
def test_a_mistyped_option_is_an_error_about_options(s3: Bucket, options: Any, text: str, name: str) -> None:
    storage = StorageOptions({**s3.storage_options, **options})
    url = s3.url(name)
    with pytest.raises(ValueError, match=rf"^'{re.escape(url[:-3])}.*': {text}") as caught:
        resolve_inputs(url, storage)
    assert "hunter2" not in str(caught.value)
    if name == "a.tfrecord":
        with pytest.raises(ValueError, match=text):
            tfr.write_tfrecord({"x": [1]}, url, storage_options=storage.storage_options)


def test_an_invalid_endpoint_is_an_error_with_the_path(s3: Bucket) -> None:
    storage = StorageOptions({**s3.storage_options, "endpoint_url": "127.0.0.1:1"})
    with pytest.raises(ValueError, match=rf"^'{re.escape(s3.url('a'))}': Invalid endpoint: 127\.0\.0\.1:1$"):
        resolve_inputs(s3.url("a"), storage)


def test_a_mistyped_option_of_the_web_and_of_an_inner_filesystem(web: Any, s3: Bucket) -> None:
    with pytest.raises(ValueError, match=r"storage_options= has no option 'anno'"):
        resolve_inputs(web.url("a.tfrecord"), StorageOptions({"anno": True}))
    options = {"s3": {**s3.storage_options, "anno": True}}
    with pytest.raises(ValueError, match=r"storage_options= has no option 'anno'"):
        resolve_inputs(f"simplecache::{s3.url('a.tfrecord')}", StorageOptions(options))


def test_a_damaged_answer_is_no_error_about_options(monkeypatch: pytest.MonkeyPatch) -> None:
    fs = MemoryFileSystem(some=1)
    monkeypatch.setattr(fs, "info", lambda name: {"name": 3, "type": "file"})
    with pytest.raises(OSError, match="the storage's description of it is damaged"):
        FsspecFileSystem(fs).entry("a")


def _read_in_child(dataset: Any, records: Any, written: str, options: dict[str, Any], answers: Any) -> None:
    try:
        found = [
            dataset.to_table()["x"].to_pylist(),
            [n for batch in dataset.iter_arrays(batch_size=7) for n in batch["x"].tolist()],
            dataset.filter([("x", ">=", 20)]).to_table()["x"].to_pylist(),
            records[[29, 0, 15]]["x"].to_pylist(),
        ]
        tfr.write_tfrecord({"x": [1, 2]}, written, **options)
        answers.put([*found, read_by(tfr.read_table, written, **options)["x"].to_pylist()])
    except Exception as error:
        answers.put(repr(error))


@pytest.mark.fault(65)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_forked_process_uses_what_its_parent_opened(bucket: Bucket, wrapped: bool) -> None:
    """As the workers of a DataLoader do, which Linux forks; the event loop of fsspec is a thread of the parent."""
    options: dict[str, Any] = {"storage_options": bucket.storage_options}
    if wrapped:
        options = {"storage_options": DirFileSystem(bucket.name, bucket.fs)}
    place = "" if wrapped else bucket.url()
    folder = f"{place}d/"
    tfr.write_tfrecord({"x": list(range(30))}, f"{folder}@3", write_index=True, **options)
    dataset = tfr.dataset(folder, **options)
    records = read_by(tfr.open_random, folder, **options)
    assert records[[0, 1]]["x"].to_pylist() == dataset.head(2)["x"].to_pylist() == [0, 1]  # the event loop runs
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    children = [
        context.Process(target=_read_in_child, args=(dataset, records, f"{place}{n}.tfrecord", options, answers))
        for n in range(2)
    ]
    for child in children:
        child.start()
    all_rows = list(range(30))
    expected = [all_rows, all_rows, all_rows[20:], [29, 0, 15], [1, 2]]
    assert [answers.get() for _ in children] == [expected] * 2
    for child in children:
        child.join()
    assert dataset.to_table()["x"].to_pylist() == all_rows


def test_looks_and_removals_pay_where_requesters_pay(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """s3fs before 2026 adds that to none of the requests that are made here."""
    storage = {**s3.storage_options, "requester_pays": True}
    fs = fsspec.filesystem("s3", **s3_options(storage))
    real, paid = type(fs)._call_s3, dict[str, bool]()

    async def call(self: Any, method: str, *more: Any, **arguments: Any) -> Any:
        given = {key: value for each in (*more, arguments) for key, value in each.items()}
        paid[method] = paid.get(method, True) and given.get("RequestPayer") == "requester"
        return await real(self, method, *more, **arguments)

    monkeypatch.setattr(type(fs), "_call_s3", call)
    for mode in ("error", "overwrite"):
        tfr.write_tfrecord({"x": [1]}, s3.url("d/t@2"), mode=mode, storage_options=storage)
    del paid["head_object"]  # of the path, by s3fs
    assert FsspecFileSystem(fs).entry(f"{s3.name}/d/t-00000-of-00002", is_file=True) is not None
    assert all(paid[name] for name in ("head_object", "delete_objects", "put_object"))


class OfOneConnection(MemoryFileSystem):
    """A filesystem whose calls note whether two threads are in one of them at the same time."""

    protocol = "ftp"
    cachable = False
    met: list[bool]
    meeting: Barrier

    def _meet(self) -> None:
        try:
            self.meeting.wait(0.2)
            self.met.append(True)
        except BrokenBarrierError:
            pass

    def info(self, path: str, **keywords: Any) -> Any:
        self._meet()
        return super().info(path, **keywords)

    def ls(self, path: str, detail: bool = True, **keywords: Any) -> Any:
        self._meet()
        return super().ls(path, detail, **keywords)


def test_calls_of_several_threads_share_the_connection_of_ftp_in_turn() -> None:
    fsspec_filesystem = OfOneConnection()
    fsspec_filesystem.met, fsspec_filesystem.meeting = [], Barrier(2)
    fsspec_filesystem.pipe_file("/turns/a.tfrecord", b"x")
    fs = FsspecFileSystem(fsspec_filesystem)
    fs.fsspec.exists("/turns")  # the filesystem is prepared in one thread
    fsspec_filesystem.meeting.reset()
    calls: list[Callable[[], Any]] = [lambda: fs.entry("/turns/a.tfrecord"), lambda: fs.listing("/turns")]
    threads = [Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fsspec_filesystem.met == []


@pytest.mark.parametrize("protocol", ["simplecache", "filecache"])
def test_a_cache_with_another_version_of_a_file_is_named(tmp_path: Path, protocol: str) -> None:
    options = {protocol: {"cache_storage": str(tmp_path / "copies")}}
    root = f"memory://{tmp_path}"
    for rows in (10, 1000):
        tfr.write_tfrecord({"x": list(range(rows))}, f"{root}/a.tfrecord")
        tfr.write_tfrecord({"x": list(range(rows))}, f"{root}/d@2", mode="overwrite")
        for name in ("a.tfrecord", "d@2", "d-00000-of-00002"):
            read = partial(tfr.read_table, f"{protocol}::{root}/{name}", storage_options=options)
            if rows == 10:
                assert read().num_rows == (5 if name.startswith("d-") else 10)
                continue
            with pytest.raises(tfr.errors.ReplacedError, match="the cache has a copy of another version of the file"):
                read()
