"""What the table of stores on the page about buckets says, cell by cell: each text of a column has a check here."""

from __future__ import annotations

import logging
import multiprocessing
import os
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from ftplib import FTP
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pytest

import tfrecord_io as tfr
from limited import set_limits
from reading import read_by
from servers import Bucket, Web
from tfrecord_io.base import StorageOptions
from tfrecord_io.store import clean
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.filesystem.remote import FsspecFileSystem
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.store.write.atomic import open_output
from tfrecord_io.store.write.atomic_remote import S3Output
from tfrecord_io.store.write.commit_place_local import LocalPlace
from tfrecord_io.store.write.commit_place_remote import ClaimedPlace, ConditionalPlace
from tfrecord_io.store.write.output_file import OutputFile
from tfrecord_io.store.write.publication import place_of

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "buckets.md"
COLUMNS = (
    "a file appears",
    '`mode="error"`',
    '`mode="append"`',
    "replaced while read",
    "failed writer",
    "killed writer",
)
SIZE = 400_000


def table() -> dict[str, dict[str, str]]:
    """The cells of the page, by store and column."""
    lines = PAGE.read_text(encoding="utf-8").partition(f"| store | {' | '.join(COLUMNS)} |")[2].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines[: lines.index("")]]
    return {store: dict(zip(COLUMNS, cells, strict=True)) for store, *cells in rows}


STORES = table()


@dataclass
class Store:
    """A folder of a store."""

    url: Callable[[str], str]
    keywords: dict[str, Any] = field(default_factory=dict)
    content: Callable[[str], bytes | None] = lambda name: None  # None: no such file
    put: Callable[[str, bytes], None] = lambda name, data: None
    names: Callable[[], list[str]] = list
    uploads: Callable[[], int] = lambda: 0

    def open(self, name: str, **keywords: Any) -> OutputFile:
        return open_output(self.url(name), StorageOptions(**self.keywords), **keywords)

    def write(self, name: str, data: bytes) -> None:
        with self.open(name) as output:
            output.write(data)


def of_fsspec(fs: Any, folder: str, url: Callable[[str], str], keywords: dict[str, Any]) -> Store:
    def content(name: str) -> bytes | None:
        fs.invalidate_cache()
        return bytes(fs.cat_file(f"{folder}/{name}")) if fs.exists(f"{folder}/{name}") else None

    def names() -> list[str]:
        fs.invalidate_cache()
        return sorted(name.rpartition("/")[2] for name in fs.find(folder))

    return Store(url, keywords, content, lambda name, data: fs.pipe_file(f"{folder}/{name}", data), names)


def of_directory(path: Path, url: Callable[[str], str], keywords: dict[str, Any]) -> Store:
    def content(name: str) -> bytes | None:
        return (path / name).read_bytes() if (path / name).exists() else None

    def put(name: str, data: bytes) -> None:
        (path / "put").write_bytes(data)
        os.replace(path / "put", path / name)

    return Store(url, keywords, content, put, lambda: sorted(os.listdir(path)))


@pytest.fixture
def ftp(tmp_path: Path) -> Iterator[str]:
    """The URL of a server of FTP, with the files of `tmp_path`."""
    pytest.importorskip("pyftpdlib")
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import FTPHandler
    from pyftpdlib.servers import FTPServer

    logging.getLogger("pyftpdlib").setLevel(logging.ERROR)
    authorizer = DummyAuthorizer()
    authorizer.add_user("user", "word", str(tmp_path), perm="elradfmwMT")
    handler = type("Handler", (FTPHandler,), {"authorizer": authorizer})
    server = FTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    host, port = server.address
    for _ in range(20):  # it may refuse those that come while it starts
        with suppress(OSError, EOFError), FTP() as client:
            client.connect(host, port)
            client.login("user", "word")
            break
    yield f"ftp://user:word@{host}:{port}/"
    server.close_all()


@pytest.fixture
def store(store_name: str, request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if store_name == "local disk":
        return of_directory(tmp_path, lambda name: f"{tmp_path}/{name}", {})
    if store_name == "`memory://`":
        import fsspec

        folder = f"/{uuid.uuid4().hex}"  # files stay there until the process ends
        return of_fsspec(fsspec.filesystem("memory"), folder, lambda name: f"memory:/{folder}/{name}", {})
    if store_name == "`ftp://`":
        begin = request.getfixturevalue("ftp")
        return of_directory(tmp_path, lambda name: begin + name, {})
    if store_name.startswith("pyarrow"):
        fs = pyarrow.fs.SubTreeFileSystem(str(tmp_path), pyarrow.fs.LocalFileSystem())
        return of_directory(tmp_path, lambda name: name, {"filesystem": fs})
    if store_name.startswith("web"):
        web: Web = request.getfixturevalue("web")
        return Store(web.url, put=web.files.__setitem__, content=web.files.get, names=lambda: sorted(web.files))
    kind = {"`s3://`": "s3", "`gs://`": "gcs", "`az://`, `abfs://`": "azure"}[store_name]
    bucket: Bucket = request.getfixturevalue(kind)
    found = of_fsspec(bucket.fs, bucket.name, bucket.url, {"storage_options": bucket.storage_options})
    if kind == "s3":
        found.uploads = lambda: len(bucket.uploads())
    return found


# ---- the checks


def appears_whole(store: Store, patch: pytest.MonkeyPatch) -> None:
    for before in (None, b"old"):
        output = store.open("a")
        output.write(bytes(SIZE))
        assert store.content("a") == before
        output.finish()
        assert store.content("a") == before
        output.commit()
        assert store.content("a") == bytes(SIZE)
        store.put("a", b"old")


def is_read_only(store: Store, patch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="a web server is read-only"):
        store.open("a")


def not_found_by_look_ups(store: Store, patch: pytest.MonkeyPatch) -> OutputFile:
    """A new file for which another writer creates one of its name where no look-up finds that."""
    output = store.open("a", mode="error")
    output.write(b"own")
    store.put("a", b"other")
    patch.setattr(FsspecFileSystem, "entry", lambda self, name: None)
    patch.setattr(S3Output, "_stored_metadata", lambda self: None)
    return output


def is_refused_by_the_store(store: Store, patch: pytest.MonkeyPatch) -> None:
    if store.url("").startswith("gs://"):
        pytest.skip("the emulator ignores conditions: test_overwrite_false_sends_generation_0_to_gcs")
    with pytest.raises(FileExistsError, match="mode='overwrite'"):
        not_found_by_look_ups(store, patch).commit()
    assert store.content("a") == b"other"


def is_looked_up(store: Store, patch: pytest.MonkeyPatch) -> None:
    output = store.open("b", mode="error")
    store.put("b", b"other")
    with pytest.raises(FileExistsError, match="mode='overwrite'"):
        output.commit()
    not_found_by_look_ups(store, patch).commit()
    assert store.content("a") == b"own", "between the look-up and the move another file is replaced"


def appends(store: Store, kind: type) -> None:
    for value in (1, 2):
        tfr.write_tfrecord({"x": [value]}, store.url("d/"), mode="append", **store.keywords)
    assert read_by(tfr.read_table, store.url("d/"), **store.keywords)["x"].to_pylist() == [1, 2]
    fs, name = Location.of(store.url("d/"), StorageOptions(**store.keywords))
    assert isinstance(place_of(fs, f"{name.rstrip('/')}/", "part"), kind)


def appends_on_a_condition(store: Store, patch: pytest.MonkeyPatch) -> None:
    if store.url("").startswith("gs://"):
        pytest.skip("the emulator ignores conditions: test_generations_are_the_condition_in_google_cloud_storage")
    appends(store, ConditionalPlace)


def appends_under_a_lock(store: Store, patch: pytest.MonkeyPatch) -> None:
    appends(store, LocalPlace)


def appends_by_a_claim(store: Store, patch: pytest.MonkeyPatch) -> None:
    appends(store, ClaimedPlace)


def read_replaced(store: Store, patch: pytest.MonkeyPatch) -> bytes:
    """What is read of a file that is replaced after its first bytes were read."""
    names = ("first_range_bytes", "stream_range_bytes", "largest_range_bytes")
    set_limits(patch, **dict.fromkeys(names, 20_000))
    store.put("r", b"x" * SIZE)
    (source,) = resolve_inputs(store.url("r"), StorageOptions(**store.keywords))
    raw, content = source.open(), bytearray(SIZE)
    done = raw.readinto(memoryview(content)[:10]) or 0
    store.put("r", b"y" * SIZE)
    while done < SIZE:
        count = raw.readinto(memoryview(content)[done:]) or 0
        assert count
        done += count
    with memoryview(bytearray(1)) as rest:
        assert not raw.readinto(rest)
    return bytes(content)


def replacement_is_an_error(store: Store, patch: pytest.MonkeyPatch) -> None:
    with pytest.raises(tfr.errors.ReplacedError, match="was replaced while it was read"):
        read_replaced(store, patch)


def the_old_file_is_read_on(store: Store, patch: pytest.MonkeyPatch) -> None:
    assert read_replaced(store, patch) == b"x" * SIZE


def replacement_is_not_noticed(store: Store, patch: pytest.MonkeyPatch) -> None:
    assert b"y" in read_replaced(store, patch)


def leaves_nothing(store: Store, patch: pytest.MonkeyPatch) -> None:
    class Failed(Exception):
        pass

    store.put("a", b"old")
    for name in ("a", "b"):
        with pytest.raises(Failed), store.open(name) as output:  # noqa: PT012
            output.write(bytes(SIZE))
            raise Failed
    assert store.names() == ["a"]
    assert store.content("a") == b"old"
    assert store.uploads() == 0


def killed(store: Store) -> OutputFile:
    """A file that was written and is neither published nor discarded."""
    output = store.open("k")
    output.write(bytes(6 << 20))  # more than the buffers of fsspec
    return output


def leaves_a_hidden_file(store: Store, patch: pytest.MonkeyPatch) -> None:
    output = killed(store)
    (name,) = store.names()
    assert name.startswith(".")
    output.discard()
    store.put(name, b"")
    old = clean(
        store.url(""), older_than=timedelta(0), remove=True, storage_options=StorageOptions(**store.keywords).given
    )
    assert [os.path.basename(each.path) for each in old] == [name]
    assert store.names() == []


def leaves_parts(store: Store, patch: pytest.MonkeyPatch) -> None:
    output = killed(store)
    output._end_parts()  # type: ignore[attr-defined]
    assert (store.names(), store.uploads()) == ([], 1)
    clean(store.url(""), older_than=timedelta(0), remove=True, storage_options=StorageOptions(**store.keywords).given)
    assert (store.names(), store.uploads()) == ([], 0)


def leaves_what_the_store_removes(store: Store, patch: pytest.MonkeyPatch) -> None:
    output = killed(store)
    assert store.names() == []
    del output


Check = Callable[[Store, pytest.MonkeyPatch], None]
CHECKS: dict[str, dict[str, Check | None]] = {
    "a file appears": {"whole": appears_whole, "read-only": is_read_only},
    '`mode="error"`': {"by the store": is_refused_by_the_store, "looked up before": is_looked_up, "—": None},
    '`mode="append"`': {
        "on a condition": appends_on_a_condition,
        "under a lock": appends_under_a_lock,
        "by a claim": appends_by_a_claim,
        "—": None,
    },
    "replaced while read": {
        "error": replacement_is_an_error,
        "the old file is read": the_old_file_is_read_on,
        "not noticed": replacement_is_not_noticed,
    },
    "failed writer": {"nothing": leaves_nothing, "—": None},
    "killed writer": {
        "hidden file": leaves_a_hidden_file,
        "parts of its upload": leaves_parts,
        "what the store removes after a week": leaves_what_the_store_removes,
        "—": None,
    },
}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, s3_part_bytes=100_000)
    monkeypatch.setattr("moto.s3.models.S3_UPLOAD_PART_MIN_SIZE", 1)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("store_name", STORES)
def test_what_the_page_says(store: Store, store_name: str, column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check = CHECKS[column][STORES[store_name][column]]
    if check is not None:
        check(store, monkeypatch)


def test_the_page_has_the_table() -> None:
    assert {"local disk", "`s3://`", "`az://`, `abfs://`", "`ftp://`"} < set(STORES)


def test_folders_of_an_ftp_server_are_read_by_several_threads_and_forked_processes(ftp: str, tmp_path: Path) -> None:
    table = pa.table({"x": list(range(200)), "p": [x % 20 for x in range(200)]})
    tfr.write_tfrecord(table, tmp_path / "parts", partition_by="p")
    dataset = tfr.dataset(f"{ftp}parts/")
    assert sorted(dataset.to_table()["x"].to_pylist()) == list(range(200))
    if hasattr(os, "fork"):
        with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
            counts = [pool.submit(rows_of, dataset) for _ in range(2)]
            assert [count.result() for count in counts] == [200, 200]


def rows_of(dataset: tfr.Dataset) -> int:
    return dataset.to_table().num_rows
