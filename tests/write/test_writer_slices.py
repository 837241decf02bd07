"""The pieces of a batch: their memory is used again, but never while a piece is in use; what fails counts nothing."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from limited import set_limits
from tfrecord_io.bytes.engine.select import get_engine
from tfrecord_io.columns.arrow.encode import slice_encoder
from tfrecord_io.columns.arrow.encode.encode_plan import plan_writing
from tfrecord_io.columns.arrow.encode.slice_encoder import PieceMemory, SliceEncoder
from tfrecord_io.write.frame_sink import Piece
from tfrecord_io.write.writer import Writer


def encoded(batch: pa.RecordBatch, memory: PieceMemory) -> list[bytes]:
    tasks = SliceEncoder(plan_writing(batch.schema), "example").split(batch, 0, lambda part, row: b"")
    content = []
    for task in tasks:
        part = task(memory, Piece)
        content.append(bytes(part.piece.data))
        memory.give_back(part.memory)
    return content


def test_one_piece_after_the_other_uses_the_same_memory(native_engine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    engine, new = get_engine(), get_engine().memory
    monkeypatch.setattr(type(engine), "memory", lambda self: made.append(new()) or made[-1])
    set_limits(monkeypatch, piece_bytes=1000)
    content = encoded(pa.record_batch({"x": np.arange(1000)}), PieceMemory(engine))
    assert len(content) > 10
    assert len(made) == 1


def test_memory_of_a_large_record_is_freed(native_engine: None) -> None:
    memory = PieceMemory(get_engine())
    encoded(pa.record_batch({"x": [b"x" * 6_000_000, b"y"]}), memory)
    assert all(kept.capacity <= 4 << 20 for kept in memory._free)


def test_rows_of_large_categories_are_written_in_bounded_memory(native_engine: None) -> None:
    values = pa.array([b"x" * 1_000_000, b"y" * 1_000_000])
    batch = pa.record_batch({"x": pa.DictionaryArray.from_arrays(pa.array(np.arange(5000) % 2), values)})
    starts: list[int] = []
    tasks = SliceEncoder(plan_writing(batch.schema), "example").split(
        batch, 0, lambda part, row: starts.append(row) or b""
    )
    assert sum(1 for _ in tasks) == 5000  # of more than a piece each
    assert len(starts) > 50


def test_many_categories_are_checked_once(native_engine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    check = slice_encoder.refuse_invalid_categories
    monkeypatch.setattr(slice_encoder, "refuse_invalid_categories", lambda *of: (checked.append(of[1]), check(*of)))
    starts: list[int] = []
    begin = Writer._begin
    monkeypatch.setattr(Writer, "_begin", lambda self, *of: starts.append(of[-1]) or begin(self, *of))
    count = 300_000
    rows = pa.DictionaryArray.from_arrays(pa.array(np.arange(count)), pa.array(map(str, range(count))))
    tfr.write_tfrecord(pa.table({"x": rows}), tmp_path / "a")
    assert 1 < len(starts) < 20, "a slice holds the whole dictionary, and is not larger for it"
    assert checked == ["x"]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_stream_is_written_in_bounded_memory(native_engine: None, tmp_path: Path, threads: int) -> None:
    values = np.arange(200_000)

    def batches() -> Any:
        for i in range(40):
            yield pa.record_batch({"x": values + i, "y": values.astype(np.float64) + 0.1})

    tracemalloc.start()
    try:
        tfr.write_tfrecord(batches(), tmp_path / "a", threads=threads, float64="round")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 << 20


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_refused_write_counts_no_rounded_values(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    bad = pa.table({"x": [0.1, 0.2], "y": pa.array([1, 2**63], pa.uint64())})
    writer = tfr.open_writer(tmp_path / "a", threads=threads)
    with pytest.raises(tfr.errors.EncodeError):
        writer.write(bad)
    writer.write(bad.slice(0, 1))
    with pytest.warns(tfr.errors.PrecisionWarning, match=r"'x' \(1 value\)"):
        writer.close()
    assert writer.report.rounded == {"x": 1}


TEXTS = [pa.string(), pa.large_string(), pa.string_view()]
BYTES = [pa.binary(), pa.large_binary(), pa.binary_view()]


@given(
    kinds=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=6),
    threads=st.sampled_from([1, 3]),
    shards=st.sampled_from([None, 2]),
)
def test_batches_may_have_offsets_of_different_widths(
    engine: str, new_folder: Callable[[], Path], kinds: list[tuple[int, int]], threads: int, shards: int | None
) -> None:
    tmp_path = new_folder()
    rows = 5
    values = [(f"text {i}" * (i % 4), bytes([i]) * (i % 5)) for i in range(rows * len(kinds))]
    tables = []
    for number, (text, binary) in enumerate(kinds):
        texts, blobs = zip(*values[number * rows : (number + 1) * rows], strict=True)
        tables.append(pa.table({"s": pa.array(texts, TEXTS[text]), "b": pa.array(blobs, BYTES[binary])}))
    tfr.write_tfrecord(tables, tmp_path, shards=shards or 1, threads=threads, mode="overwrite")
    assert [tuple(row.values()) for row in tfr.read_table(tmp_path).to_pylist()] == values


def test_categories_that_no_schema_lists_may_differ_in_later_batches(tmp_path: Path) -> None:
    """Those of the first column do not fit."""
    texts = [f"{number:020000}" for number in range(200)]
    parts = [pa.array(texts[begin : begin + 100]).dictionary_encode() for begin in (0, 100)]
    batches = [pa.record_batch({"a": part, "b": pa.array(["x"] * 100).dictionary_encode()}) for part in parts]
    tfr.write_tfrecord(iter(batches), tmp_path / "x.tfrecord")
    assert tfr.read_table(tmp_path / "x.tfrecord")["a"].to_pylist() == texts
