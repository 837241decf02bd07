"""Random access to files of a bucket."""

from __future__ import annotations

import multiprocessing
import pickle
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr
from in_processes import first_of, in_other_process
from limited import set_limits
from reading_modes import pieces_of
from servers import Bucket
from tfrecord_io.base import StorageOptions
from tfrecord_io.read.file_indexes import check_indexes, write_indexes
from tfrecord_io.read.index import indexed_files
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.store.read.range_requests import S3Object
from traced import peak

s3fs = pytest.importorskip("s3fs")

ROWS = 60


@pytest.fixture
def options(s3: Bucket) -> dict[str, Any]:
    return s3.storage_options


@pytest.fixture
def bucket(s3: Bucket) -> str:
    return s3.url().rstrip("/")


@pytest.fixture(params=[False, True], ids=["plain", "indexed"])
def path(request: pytest.FixtureRequest, bucket: str, options: dict[str, Any]) -> str:
    """Three files of records of 40 KB."""
    for at in range(3):
        rows = range(at * 20, at * 20 + 20)
        table = {"id": list(rows), "blob": [bytes([row]) * 40_000 for row in rows]}
        tfr.write_tfrecord(table, f"{bucket}/part-{at}.tfrecord", storage_options=options, write_index=request.param)
    return f"{bucket}/part-*.tfrecord"


def on_request(
    patch: pytest.MonkeyPatch, before: Callable[[int, int], Any], after: Callable[[bytes], bytes] = lambda body: body
) -> None:
    """Call `before` with each range that is requested, and `after` with its bytes."""
    read_range = S3Object.read_range

    async def request(self: S3Object, begin: int, end: int) -> bytes:
        before(begin, end)
        return after(await read_range(self, begin, end))

    patch.setattr(S3Object, "read_range", request)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The ranges requested."""
    seen: list[tuple[int, int]] = []
    on_request(monkeypatch, lambda *given: seen.append(given))
    return seen


def test_records_by_number(path: str, options: dict[str, Any], requests: list[tuple[int, int]]) -> None:
    with tfr.open_random(path, storage_options=options) as records:
        assert len(records) == ROWS
        assert records[45]["blob"] == bytes([45]) * 40_000
        requests.clear()
        assert records[[59, 0, 21, 0, 20]]["id"].to_pylist() == [59, 0, 21, 0, 20]
        assert len(requests) == 3  # one per file: near records are joined, duplicates are read once
        requests.clear()
        assert records[10:30]["id"].to_pylist() == list(range(10, 30))
        assert len(requests) == 2


def test_memory_of_many_numbers_is_that_of_a_part_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord({"x": np.zeros(200_000, np.int8)}, tmp_path / "a.tfrecord", write_index=True)
    monkeypatch.setattr(indexed_files, "_LOCATED", 1000)
    with tfr.open_random(tmp_path / "a.tfrecord") as records:
        numbers, chunks = np.arange(len(records)), records._files.chunks

        def split() -> None:
            assert sum(map(len, chunks(numbers, 10_000))) == len(numbers)

        assert peak(split) < 1 << 19


def test_distant_records_are_separate_requests(
    bucket: str, options: dict[str, Any], requests: list[tuple[int, int]]
) -> None:
    path = f"{bucket}/large.tfrecord"
    table = {"id": range(5), "blob": [bytes(1_500_000)] * 5}
    tfr.write_tfrecord(table, path, storage_options=options, write_index=True)
    with tfr.open_random(path, columns=["id"], storage_options=options) as records:
        requests.clear()
        assert records[[4, 0, 2]]["id"].to_pylist() == [4, 0, 2]
        assert len(requests) == 3
        assert all(end - begin < 1_500_300 for begin, end in requests)


def test_counting_reads_no_payload_where_there_is_an_index(
    path: str, options: dict[str, Any], requests: list[tuple[int, int]]
) -> None:
    assert tfr.count(path, storage_options=options) == ROWS
    if any(found.index for found in check_indexes(path, storage_options=options)):
        requests.clear()
        assert tfr.count(path, storage_options=options) == ROWS
        assert sum(end - begin for begin, end in requests) < 5000


def test_indexes_are_written_and_checked(path: str, options: dict[str, Any]) -> None:
    assert [found.records for found in write_indexes(path, storage_options=options)] == [20, 20, 20]
    assert [found.error for found in check_indexes(path, storage_options=options)] == [None] * 3


def test_many_files_are_looked_up_by_a_listing(bucket: str, options: dict[str, Any]) -> None:
    for at in range(10):
        tfr.write_tfrecord(
            {"id": [at]}, f"{bucket}/many-{at}.tfrecord", storage_options=options, write_index=at % 2 == 0
        )
    assert tfr.count(f"{bucket}/many-*.tfrecord", storage_options=options) == 10
    with tfr.open_random(f"{bucket}/many-*.tfrecord", storage_options=options) as records:
        assert records[::-3]["id"].to_pylist() == [9, 6, 3, 0]


def test_pieces(path: str, options: dict[str, Any]) -> None:
    source = resolve_inputs(path, StorageOptions(options))[1]
    cut = pieces_of(source, 3)
    tables = [tfr.read_table([piece], schema={"id": "int64"}) for piece in cut]
    assert [value for table in tables for value in table["id"].to_pylist()] == list(range(20, 40))
    assert all(table.num_rows for table in tables)


def test_another_process_opens_the_files_again(path: str, options: dict[str, Any]) -> None:
    with tfr.open_random(path, storage_options=options) as records:
        pickled = pickle.dumps(records)
    assert in_other_process(first_of, pickled) == 0


def _in_fork(records: Any, answers: Any) -> None:
    answers.put(records[[7, 45]]["id"].to_pylist())


@pytest.mark.fault(65)
def test_forked_process_uses_new_connections(path: str, options: dict[str, Any]) -> None:
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    with tfr.open_random(path, storage_options=options) as records:
        assert records[7]["id"] == 7
        child = context.Process(target=_in_fork, args=(records, answers))
        child.start()
        child.join(60)
        assert child.exitcode == 0
        assert answers.get() == [7, 45]


@pytest.mark.fault(62)
def test_short_response_is_an_error(path: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with tfr.open_random(path, storage_options=options) as records:
        on_request(monkeypatch, lambda *_: None, lambda body: body[:-1])
        set_limits(monkeypatch, backoff_seconds=0.0001)
        with pytest.raises(OSError, match="the server ended the body 1 bytes early"):
            records[5]


@pytest.mark.fault(62)
def test_failed_request_is_retried(path: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[int] = []

    def reset(begin: int, end: int) -> None:
        if begin not in failed:
            failed.append(begin)
            raise ConnectionResetError

    on_request(monkeypatch, reset)
    set_limits(monkeypatch, backoff_seconds=0.0001)
    with tfr.open_random(path, storage_options=options) as records:
        assert records[[5, 45]]["id"].to_pylist() == [5, 45]
    assert failed


def test_file_replaced_meanwhile_is_an_error(bucket: str, options: dict[str, Any]) -> None:
    name = f"{bucket}/one.tfrecord"
    tfr.write_tfrecord({"x": [1000] * 100}, name, storage_options=options)
    with tfr.open_random(name, storage_options=options) as records:
        assert records[0] == {"x": 1000}
        tfr.write_tfrecord({"x": [1007] * 100}, name, storage_options=options)
        with pytest.raises(OSError, match="replaced"):
            records[1]


@pytest.fixture
def made(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, str]]:
    """The requests, by their methods and by what is read: "data", "index" or "manifest"."""
    counts: Counter[tuple[str, str]] = Counter()
    real = type(s3.fs)._call_s3

    async def call(self: Any, method: str, *arguments: Any, **keywords: Any) -> Any:
        key = str(keywords.get("Key", ""))
        counts[method, "index" if key.endswith("index") else "manifest" if "_MANIFEST" in key else "data"] += 1
        return await real(self, method, *arguments, **keywords)

    monkeypatch.setattr(type(s3.fs), "_call_s3", call)
    return counts


@pytest.mark.matrix
@pytest.mark.parametrize("kept_open", [128, 2])
@pytest.mark.parametrize("form", ["d/", "d/train-*-of-*", "files"])
def test_each_small_file_and_index_is_read_once(
    s3: Bucket,
    options: dict[str, Any],
    made: Counter[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    kept_open: int,
) -> None:
    """However many they are, and whether a manifest states their schema."""
    monkeypatch.setattr(indexed_files, "_OPEN_FILES", kept_open)
    storage: dict[str, Any] = {"storage_options": options}
    files, rows = 5, range(50)
    if form == "files":
        for at in range(files):
            tfr.write_tfrecord({"id": rows[10 * at : 10 * at + 10]}, s3.url(f"d/{at}.tfrecord"), **storage)
    else:
        tfr.write_tfrecord({"id": rows}, s3.url(f"d/train@{files}"), **storage)
    path = s3.url("d/*.tfrecord" if form == "files" else form)

    def counted(call: Callable[[], Any]) -> tuple[int, int]:
        made.clear()
        call()
        return made["get_object", "data"], made["get_object", "index"]

    def opened(**keywords: Any) -> None:
        with tfr.open_random(path, **storage, **keywords) as records:
            assert len(records) == len(rows)

    assert counted(opened) == (files, 0)
    assert counted(lambda: opened(key="id")) == (files, 0)
    assert counted(lambda: tfr.build_index(path, columns=["id"], **storage)) == (files, 0)
    assert made["put_object", "index"] == files
    assert counted(opened) == (files, files)
    assert counted(lambda: opened(key="id")) == (files, files)
    assert counted(lambda: tfr.verify(path, **storage)) == (files, files)


def test_objects_beyond_the_memory_for_them_are_read_again(
    s3: Bucket, options: dict[str, Any], made: Counter[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexed_files, "_HELD_BYTES", 1)
    monkeypatch.setattr(indexed_files, "_OPEN_FILES", 2)
    storage: dict[str, Any] = {"storage_options": options}
    tfr.write_tfrecord({"id": range(50)}, s3.url("d/train@5"), **storage)
    made.clear()
    assert [index.records for index in tfr.build_index(s3.url("d/"), columns=["id"], **storage)] == [10] * 5
    assert made["get_object", "data"] > 5


@pytest.mark.parametrize("kept_open", [128, 1])
@pytest.mark.parametrize("is_unpickled", [False, True])
def test_a_file_replaced_after_it_was_read_is_an_error(
    bucket: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, kept_open: int, is_unpickled: bool
) -> None:
    """Its content is held for the call that opens it, not longer, however many files there are."""
    monkeypatch.setattr(indexed_files, "_OPEN_FILES", kept_open)
    for at in range(3):
        tfr.write_tfrecord({"x": [1000 + at] * 3}, f"{bucket}/{at}.tfrecord", storage_options=options)
    with (
        tfr.open_random(f"{bucket}/*.tfrecord", storage_options=options) as opened,
        pickle.loads(pickle.dumps(opened)) if is_unpickled else nullcontext(opened) as records,
    ):
        assert records[0] == {"x": 1000}
        tfr.write_tfrecord({"x": [2000] * 3}, f"{bucket}/0.tfrecord", storage_options=options)
        with pytest.raises(OSError, match="replaced"):
            records[1]


def test_relative_files_are_opened_again_from_another_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexed_files, "_OPEN_FILES", 1)
    monkeypatch.chdir(tmp_path)
    for at in range(3):
        tfr.write_tfrecord({"id": [at]}, f"{at}.tfrecord")
    with tfr.open_random("*.tfrecord") as records:
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
        assert [records[at]["id"] for at in range(3)] == [0, 1, 2]
