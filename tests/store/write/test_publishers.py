"""What each way to publish promises, in each store: a file, shards, a directory, folders of values, appended shards."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from pyarrow.fs import LocalFileSystem

import tfrecord_io as tfr
from limited import set_limits
from reading import read_by
from servers import Bucket
from tfrecord_io.store.write import atomic_remote

pytestmark = pytest.mark.matrix

SMALL, BIG = 10, 6 << 20  # bytes of a row; the parts of a big row are uploaded while it is written
SIZES = pytest.mark.parametrize("size", [SMALL, BIG], ids=["small", "big"])
WRITERS = 5


@dataclass(frozen=True)
class Store:
    """A place for files: a folder, or a bucket.

    Attributes
    ----------
    content : callable
        The bytes of each file, by name.
    uploads : callable
        The uploads that are neither completed nor aborted.
    """

    root: str
    content: Callable[[], dict[str, bytes]]
    keywords: dict[str, Any] = field(default_factory=dict)
    uploads: Callable[[], list[Any]] = list


def folder_store(folder: Path, **keywords: Any) -> Store:
    def content() -> dict[str, bytes]:
        return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}

    return Store(str(folder), content, keywords)


def bucket_store(bucket: Bucket) -> Store:
    def content() -> dict[str, bytes]:
        return {name: bucket.fs.cat_file(bucket.url(name)) for name in bucket.names()}

    uploads = bucket.uploads if bucket.protocol == "s3" else list[Any]
    return Store(bucket.url().rstrip("/"), content, {"storage_options": bucket.storage_options}, uploads)


def memory_store() -> Store:
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    return Store("memory://box", lambda: {name: bytes(file.getbuffer()) for name, file in fs.store.items()})


def open_store(kind: str, request: pytest.FixtureRequest) -> Store:
    if kind == "memory":
        request.addfinalizer(fsspec.filesystem("memory").store.clear)
        return memory_store()
    if kind in ("s3", "gcs"):
        monkeypatch = request.getfixturevalue("monkeypatch")
        set_limits(monkeypatch, s3_part_bytes=5 << 20)  # the minimum of S3
        set_limits(monkeypatch, backoff_seconds=0.001)
        monkeypatch.setattr(atomic_remote, "_GCS_BLOCK", 1 << 20)
        return bucket_store(request.getfixturevalue(kind))
    keywords = {} if kind == "disk" else {"storage_options": LocalFileSystem()}
    return folder_store(request.getfixturevalue("tmp_path"), **keywords)


@dataclass(frozen=True)
class Publisher:
    """A way to publish rows in a store; `rows(i)` are those of the writer `i`."""

    store: Store
    target: str
    keywords: dict[str, Any]

    @property
    def path(self) -> str:
        return f"{self.store.root}/{self.target}"

    @property
    def replacing(self) -> dict[str, Any]:
        """The keywords of a writer that replaces, or adds to, what is there."""
        return {"mode": "overwrite"} if self.keywords.get("mode", "error") == "error" else {}

    def open(self, **keywords: Any) -> Any:
        return tfr.open_writer(self.path, **{**self.store.keywords, **self.keywords, **keywords}, threads=1)

    def write(self, i: int, **keywords: Any) -> None:
        with self.open(**keywords) as writer:
            writer.write(rows(i))

    def read(self) -> set[int]:
        """The writers whose rows are there; each has all its rows or none."""
        read = read_by(tfr.read_table, self.path, columns=["n"], threads=1, **self.store.keywords)["n"].to_pylist()
        assert all(read.count(n) == ROWS for n in set(read))
        return {n - 1000 for n in read}

    def is_clean(self) -> bool:
        """Whether nothing is in the store but what is published."""
        gc.collect(0)
        names = [name.rpartition("/")[2] for name in self.store.content()]
        return not self.store.uploads() and not any(name.endswith((".tmp", ".staged")) for name in names)


ROWS = 6
LAYOUTS: dict[str, tuple[str, dict[str, Any]]] = {
    "file": ("a.tfrecord", {"mode": "error"}),
    "shards": ("d/train@3", {}),
    "directory": ("d/", {"max_shard_bytes": 1 << 20}),
    "partitions": ("d/", {"partition_by": ["p"]}),
    "appended": ("d/", {"mode": "append"}),
}
STORES = {
    "disk": list(LAYOUTS),
    "s3": list(LAYOUTS),
    "gcs": ["file", "shards", "appended"],
    "memory": ["file", "shards", "appended"],
    "pyarrow": ["file", "shards", "directory", "partitions", "appended"],
}
NEW = ("file", "shards", "directory", "partitions")  # refuse what exists


def cases(*layouts: str, stores: Iterable[str] = STORES) -> pytest.MarkDecorator:
    """A law of these layouts, in these stores."""
    found = [(store, layout) for store in stores for layout in STORES[store] if not layouts or layout in layouts]
    return pytest.mark.parametrize("publisher", found, ids="-".join, indirect=True)


@pytest.fixture
def publisher(request: pytest.FixtureRequest) -> Iterator[Publisher]:
    kind, layout = request.param
    store = open_store(kind, request)
    gc.disable()  # what the test makes stays in the youngest generation, which takes no time to collect
    try:
        yield Publisher(store, *LAYOUTS[layout])
    finally:
        gc.enable()


def rows(i: int, size: int = SMALL) -> pa.Table:
    values = pa.array([bytes(size)] * ROWS, pa.binary())
    return pa.table({"n": [1000 + i] * ROWS, "p": ["a", "b"] * (ROWS // 2), "x": values})


@cases()
@SIZES
def test_rows_appear_when_the_writer_is_closed(publisher: Publisher, size: int) -> None:
    with publisher.open() as writer:
        writer.write(rows(1, size))
        with pytest.raises(FileNotFoundError):
            publisher.read()
    assert publisher.read() == {1}
    assert publisher.is_clean()
    assert sum(file.records for file in writer.report.files) == ROWS
    assert read_by(tfr.verify, publisher.path, **publisher.store.keywords).ok


@pytest.mark.fault(64)
@pytest.mark.fault(69)
@cases(stores=["disk", "s3", "memory", "pyarrow"])  # the emulator of GCS cannot abort uploads
@pytest.mark.parametrize(
    ("error", "size"), [(RuntimeError, BIG), (KeyboardInterrupt, BIG), (SystemExit, SMALL), (GeneratorExit, SMALL)]
)
def test_an_exception_in_the_block_publishes_nothing(
    publisher: Publisher, error: type[BaseException], size: int
) -> None:
    publisher.write(0)
    before = publisher.store.content()
    with pytest.raises(error), publisher.open(**publisher.replacing) as writer:  # noqa: PT012
        writer.write(rows(1, size))
        raise error
    del writer
    assert publisher.store.content() == before
    assert publisher.is_clean()


@pytest.mark.fault(69)
@cases(stores=["disk", "s3", "memory", "pyarrow"])
@SIZES
def test_a_writer_that_is_not_referenced_publishes_nothing(publisher: Publisher, size: int) -> None:
    writer = publisher.open()
    writer.write(rows(1, size))
    with pytest.warns(ResourceWarning):  # noqa: PT031
        del writer
        gc.collect(0)
    assert publisher.is_clean()
    assert publisher.store.content() == {}


@cases(*NEW)
def test_what_exists_is_not_replaced(publisher: Publisher) -> None:
    publisher.write(1)
    before = publisher.store.content()
    with pytest.raises(FileExistsError, match="mode='overwrite'"):
        publisher.write(2)
    assert publisher.store.content() == before


@pytest.mark.fault(68)
@cases(*NEW, stores=["disk", "s3", "memory", "pyarrow"])  # the emulator of GCS ignores conditions
def test_what_was_created_meanwhile_is_not_replaced(publisher: Publisher) -> None:
    with pytest.raises(FileExistsError), publisher.open() as writer:  # noqa: PT012
        writer.write(rows(1))
        publisher.write(2)
    assert publisher.read() == {2}
    assert publisher.is_clean()


@cases(*NEW)
def test_overwriting_leaves_only_the_new(publisher: Publisher) -> None:
    publisher.write(1)
    publisher.write(1, **publisher.replacing)
    expected = set(publisher.store.content())
    publisher.write(2, **publisher.replacing)
    assert publisher.read() == {2}
    assert len(publisher.store.content()) == len(expected)
    assert publisher.is_clean()


def race(publisher: Publisher, **keywords: Any) -> tuple[set[int], list[BaseException]]:
    """Writers that are all open before the first of them is closed: which succeeded, and the errors of the others."""
    barrier, succeeded, failed = threading.Barrier(WRITERS, timeout=60), set[int](), list[BaseException]()

    def work(i: int) -> None:
        try:
            with publisher.open(**keywords) as writer:
                writer.write(rows(i))
                barrier.wait()
            succeeded.add(i)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return succeeded, failed


@pytest.mark.fault(68)
@cases(*NEW, stores=["disk", "s3"])
def test_one_of_many_writers_of_something_new_wins_completely(publisher: Publisher) -> None:
    succeeded, failed = race(publisher)
    assert all(isinstance(error, OSError) for error in failed)
    assert publisher.read() <= succeeded or not succeeded
    assert len(publisher.read()) == 1
    assert publisher.is_clean()


@pytest.mark.fault(68)
@cases("file", "shards", "directory", "partitions", stores=["disk", "s3"])
def test_one_of_many_replacing_writers_wins_completely(publisher: Publisher) -> None:
    publisher.write(9)
    succeeded, failed = race(publisher, mode="overwrite")
    assert not [error for error in failed if "another writer" not in str(error)]
    assert len(publisher.read()) == 1
    assert publisher.read() <= succeeded
    assert publisher.is_clean()


@pytest.mark.fault(68)
@cases("appended")
def test_rows_of_all_appending_writers_are_there(publisher: Publisher) -> None:
    publisher.write(9)
    succeeded, failed = race(publisher)
    assert all(isinstance(error, OSError) for error in failed)
    assert publisher.read() == succeeded | {9}
    assert publisher.is_clean()
