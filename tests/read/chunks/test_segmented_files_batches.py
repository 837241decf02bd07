"""Rows of segments that were decoded in advance fill the batches of a stream."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from reading import read_by
from reading_modes import blocks_of
from records import blobs, example, framed, int64s, written
from running_threads import ends, running
from tfrecord_io.read.chunks.segmented_files import SegmentFeed

ROWS = 3000
SCHEMA = {"x": "int64"}


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    return written(tmp_path / "a.tfrecord", [example(x=int64s(i)) for i in range(ROWS)])


@pytest.fixture
def appended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows were appended from segments, each time."""
    counts: list[int] = []
    advance = SegmentFeed._advance

    def recorded(self: SegmentFeed, segment: Any, rows: int, size: int) -> None:
        counts.append(rows)
        advance(self, segment, rows, size)

    monkeypatch.setattr(SegmentFeed, "_advance", recorded)
    return counts


def batches(path: Path, threads: int, **options: Any) -> list[pa.RecordBatch]:
    with blocks_of(500), read_by(tfr.open_reader, path, threads=threads, **{"schema": SCHEMA, **options}) as reader:
        return list(reader)


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("options", [{"batch_size": 7}, {"batch_bytes": 2000}, {"batch_size": 64, "limit": 1333}, {}])
def test_batches_are_those_of_one_thread(
    engine: str, numbers: Path, appended: list[int], threads: int, options: dict[str, Any]
) -> None:
    expected = batches(numbers, 1, limit=options.pop("limit", ROWS), **options)
    assert not appended
    actual = batches(numbers, threads, limit=sum(map(len, expected)), **options)
    assert actual == expected
    assert sum(appended) >= sum(map(len, expected))


def test_only_the_rest_of_a_sample_is_decoded_ahead(engine: str, numbers: Path, appended: list[int]) -> None:
    with blocks_of(500), tfr.open_reader(tfr.dataset(numbers, threads=2, sample=100), batch_size=30) as reader:
        assert [value for batch in reader for value in batch["x"].to_pylist()] == list(range(ROWS))
    assert 0 < sum(appended) <= ROWS - 100


def test_records_that_are_larger_than_a_segment(engine: str, tmp_path: Path, appended: list[int]) -> None:
    values = [b"a" * (2000 if i % 7 == 0 else i % 5) for i in range(200)]
    path = written(tmp_path / "a", [example(x=blobs(value)) for value in values])
    read = batches(path, 4, schema={"x": "binary"}, batch_size=9)
    assert [len(batch) for batch in read] == [9] * 22 + [2]
    assert [value for batch in read for value in batch["x"].to_pylist()] == values
    assert sum(appended) == 200


def test_large_values_are_read_in_order(numbers: Path, tmp_path: Path, appended: list[int]) -> None:
    """Without `blocks_of`: images, say, would only be copied once more."""
    path = written(tmp_path / "a", [example(x=blobs(bytes(10_000)))] * 300)
    with tfr.open_reader(tfr.dataset(path, threads=2), schema={"x": "binary"}, batch_size=100) as reader:
        assert [len(batch) for batch in reader] == [100] * 3
    assert not appended


def test_segments_that_begin_inside_payloads(engine: str, tmp_path: Path, appended: list[int]) -> None:
    inner = framed(*[example(y=int64s(i)) for i in range(60)])
    path = written(tmp_path / "a", [example(x=blobs(inner)) for _ in range(41)])
    read = batches(path, 8, schema={"x": "binary"}, batch_size=5)
    assert [value for batch in read for value in batch["x"].to_pylist()] == [inner] * 41
    assert sum(appended) == 41


@pytest.mark.parametrize("threads", [2, 8])
def test_a_file_that_is_truncated_while_it_is_read(engine: str, numbers: Path, threads: int) -> None:
    size = numbers.stat().st_size
    with blocks_of(500), tfr.open_reader(tfr.dataset(numbers, threads=threads), schema=SCHEMA, batch_size=10) as reader:
        first = next(reader)
        os.truncate(numbers, size // 2)
        with pytest.raises(OSError, match="it was truncated"):
            list(reader)
    assert first["x"].to_pylist() == list(range(10))


def test_threads_end_with_the_stream(engine: str, numbers: Path) -> None:
    with blocks_of(500):
        with tfr.open_reader(tfr.dataset(numbers, threads=4), schema=SCHEMA, batch_size=10) as reader:
            next(reader)
            assert running()
        del reader
        for thread in running():
            assert ends(thread)
