"""Segments are decoded in advance, and their results used only where they are those of a read in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from interposed import before_windows
from reading_modes import blocks_of
from records import blobs, example, framed, int64s, written
from tfrecord_io.read.chunks.parallel_file_decoder import FileDecoder, segment_bounds
from tfrecord_io.read.chunks.segments import Segment

ROWS = 4000


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    return written(tmp_path / "a.tfrecord", [example(x=int64s(i)) for i in range(ROWS)])


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each segment that was decoded in advance could be used."""
    verdicts: list[bool] = []
    ahead: set[int] = set()
    make, segments = FileDecoder.make_part, FileDecoder.segments

    def made(self: FileDecoder, is_ahead: bool) -> Any:
        part = make(self, is_ahead)
        if is_ahead:
            ahead.add(id(part))
            kept.append(part)
        return part

    def recorded(self: FileDecoder) -> Iterator[Segment[Any]]:
        for segment in segments(self):
            verdicts.append(id(segment.part) in ahead)
            yield segment

    kept: list[Any] = []  # so that no two have the same address
    monkeypatch.setattr(FileDecoder, "make_part", made)
    monkeypatch.setattr(FileDecoder, "segments", recorded)
    return verdicts


@pytest.mark.parametrize("cores", [1, 2, 4])
def test_bounds_depend_on_the_file(cores: int) -> None:
    assert segment_bounds(0, 10, 10, 1, cores) == [0, 10]
    assert segment_bounds(4, 4 << 20, 100, 1, cores) == [4, (2 << 20) + 2, 4 << 20]
    assert len(segment_bounds(0, 1 << 30, 1000, 1, cores)) == 17
    assert len(segment_bounds(0, 1 << 40, 1000, 1, cores)) == (1 << 14) + 1
    assert len(segment_bounds(0, 40 << 20, 2 << 20, 100_000, cores)) == 2
    assert len(segment_bounds(0, 40 << 20, 5 << 20, 1, cores)) == 3
    assert len(segment_bounds(0, 32 << 20, 1000, 1, cores, filters=True)) == max(4, 2 * cores) + 1


@pytest.mark.parametrize("cores", [16, 64])
def test_there_are_segments_for_all_cores(cores: int) -> None:
    """But none of less than 2 MiB, nor more than there were in a huge file."""
    for mib in (2, 48, 128, 1 << 10, 16 << 10):
        count = len(segment_bounds(0, mib << 20, 1000, 1, cores)) - 1
        assert min(mib // 2, 2 * cores) <= count <= max(mib // 2, 4 * cores)
    assert len(segment_bounds(0, 1 << 40, 1000, 1, cores)) == (1 << 14) + 1


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("column", "is_split"), [("integers", False), ("floats", False), ("bytes", False), ("short", True)]
)
@pytest.mark.parametrize("embeds", [True, False])
def test_streams_of_long_values_are_decoded_in_order(
    exact: list[bool], column: str, is_split: bool, embeds: bool, tmp_path: Path
) -> None:
    """To append them to batches takes longer than to decode them."""
    rows, items = (200_000, 1) if is_split else (2000, 1000)
    values = np.arange(rows * items).reshape(rows, items).astype("f4" if column == "floats" else "i8")
    data = [bytes(8 * items)] * rows if column == "bytes" else list(values)
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord(pa.table({"x": data}), path, embed_schema=embeds)
    assert sum(map(len, tfr.open_reader(tfr.dataset(path, threads=2)))) == rows
    assert bool(exact) == is_split


@given(
    st.integers(0, 2**42), st.integers(1, 2**42), st.integers(0, 2**31), st.integers(0, 10**6), st.integers(1, 10**4)
)
def test_bounds_ascend_from_begin_to_end(begin: int, size: int, record_bytes: int, columns: int, cores: int) -> None:
    bounds = segment_bounds(begin, begin + size, record_bytes, columns, cores)
    assert (bounds[0], bounds[-1]) == (begin, begin + size)
    assert all(a < b <= a + (64 << 20) for a, b in pairwise(bounds))


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_segments_that_were_decoded_in_advance_are_used(
    engine: str, numbers: Path, exact: list[bool], threads: int
) -> None:
    with blocks_of(1000):
        assert tfr.read_table(tfr.dataset(numbers, threads=threads))["x"].to_pylist() == list(range(ROWS))
    assert len(exact) == 8
    assert all(exact)


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_every_segment_can_be_misled(engine: str, tmp_path: Path, exact: list[bool], threads: int) -> None:
    """All segments but the first begin inside a payload that is a file of records."""
    inner = framed(*[example(y=int64s(i)) for i in range(300)])
    records = [example(x=blobs(inner)) for _ in range(41)]
    with blocks_of(1000):
        table = tfr.read_table(tfr.dataset(written(tmp_path / "a", records), infer_text=False, threads=threads))
    assert table["x"].to_pylist() == [inner] * 41
    assert threads == 1 or exact.count(False) == 7


def test_a_record_longer_than_many_segments(engine: str, tmp_path: Path) -> None:
    values = [b"a", b"b" * 50_000, b"c", b"d" * 30_000]
    path = written(tmp_path / "a", [example(x=blobs(value)) for value in values])
    with blocks_of(200):
        for threads in (1, 2, 8):
            assert tfr.read_table(tfr.dataset(path, infer_text=False, threads=threads))["x"].to_pylist() == values


CALLS: dict[str, Callable[[tfr.Dataset], int]] = {
    "read": lambda dataset: tfr.read_table(dataset).equals(pa.table({"x": range(ROWS)})) * ROWS,
    "count": lambda dataset: tfr.count(dataset, check_crc=True),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_a_file_that_is_replaced_meanwhile(
    numbers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, call: str
) -> None:
    """The rows are those of the file that was opened."""
    other = written(tmp_path / "other", [example(y=int64s(1))] * 10)

    def replace() -> None:
        if other.exists():
            os.replace(other, numbers)

    before_windows(monkeypatch, replace)
    with blocks_of(1000):
        assert CALLS[call](tfr.dataset(numbers, threads=threads)) == ROWS
    assert other.exists() == (threads == 1 and call == "count")


@pytest.mark.parametrize(("call", "threads"), [("read", 1), ("read", 2), ("read", 8), ("count", 2), ("count", 8)])
def test_a_file_that_is_truncated_meanwhile(
    numbers: Path, monkeypatch: pytest.MonkeyPatch, call: str, threads: int
) -> None:
    size = numbers.stat().st_size

    def truncate() -> None:
        if numbers.stat().st_size == size:
            os.truncate(numbers, size // 2)

    before_windows(monkeypatch, truncate)
    with (
        blocks_of(1000),
        pytest.raises(OSError, match=f"ended at byte {size // 2}, before byte {size}: it was truncated"),
    ):
        CALLS[call](tfr.dataset(numbers, threads=threads))


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_many_features_cost_the_same_on_all_threads(tmp_path: Path, exact: list[bool], threads: int) -> None:
    """Each segment costs time and memory for each column, so there are few."""
    wide = example(**{f"feature {n}": int64s(n) for n in range(20_000)})
    path = written(tmp_path / "a", [wide] * 10)
    assert path.stat().st_size > 4 << 20
    table = tfr.read_table(tfr.dataset(path, threads=threads))
    assert (table.num_rows, table.num_columns, table.column(0).num_chunks) == (10, 20_000, 1)


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_segments_know_the_names_of_those_before(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """Names that appear late, or no longer, are columns in the order of a read without segments."""
    rows = [{f"x{(i // 300 * 7 + i % 4) % 19}": i, "y": -i} for i in range(ROWS)]
    path = written(tmp_path / "a", [example(**{name: int64s(x) for name, x in row.items()}) for row in rows])
    whole, met, segments = tfr.read_table(path), list[Any](), FileDecoder.segments

    def recorded(self: FileDecoder) -> Iterator[Segment[Any]]:
        for segment in segments(self):
            met.extend(segment.part.chunk.new_names)
            yield segment

    monkeypatch.setattr(FileDecoder, "segments", recorded)
    with blocks_of(1000):
        table = tfr.read_table(tfr.dataset(path, threads=threads))
    assert table.schema == whole.schema
    assert table.to_pylist() == [dict.fromkeys(table.column_names) | row for row in rows]
    assert {name for name, _ in met} == set(table.column_names)
    assert threads > 1 or len(met) == table.num_columns
