"""Columns that the kernel encodes from Arrow arrays give the bytes of the columns that Python converts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arrow_tables import batches, integers
from tfrecord_io.bytes.engine.select import get_engine
from tfrecord_io.bytes.format.example_messages import Example
from tfrecord_io.columns.arrow.encode.encode_columns import encode_columns
from tfrecord_io.columns.arrow.encode.encode_plan import plan_writing
from tfrecord_io.columns.arrow.encode.slice_encoder import plain_forms
from tfrecord_io.errors import EncodeError

PLAIN: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    *((t, integers(t)) for t in (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64())),
    (pa.bool_(), st.booleans()),
    (pa.float32(), st.floats(width=32)),
    (pa.date32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.timestamp("us", "UTC"), st.integers(-(2**60), 2**60)),
    (pa.duration("ns"), st.integers(-(2**60), 2**60)),
    (pa.binary(), st.binary(max_size=140)),
    (pa.large_binary(), st.binary(max_size=5)),
    (pa.string(), st.text(max_size=5)),
    (pa.large_string(), st.text(max_size=5)),
]


@st.composite
def plain_batches(draw: st.DrawFn) -> pa.RecordBatch:
    """Slices of plain columns, each with its own offset and nulls."""
    rows = draw(st.integers(0, 40))
    columns = []
    for type_, values in draw(st.lists(st.sampled_from(PLAIN), min_size=1, max_size=8)):
        before = draw(st.integers(0, 20))
        cell = draw(st.sampled_from([values, st.none() | values]))
        column = pa.array(draw(st.lists(cell, min_size=before + rows, max_size=before + rows)), type_)
        columns.append(column.slice(before))
    return pa.RecordBatch.from_arrays(columns, [f"c{i}" for i in range(len(columns))])


def encoded(batch: pa.RecordBatch, from_arrow: bool) -> tuple[bytes, list[bool]]:
    plan, engine, arrow = plan_writing(batch.schema), get_engine(), None
    forms = plain_forms(plan)
    if from_arrow:
        reader = engine.arrow_reader(forms)
        assert reader is not None
        arrow = reader.read(batch)
    taken = [] if arrow is None else list(arrow.taken)
    columns = encode_columns(batch, plan, taken=taken)
    data, rows = engine.encoder(columns, arrow=arrow).encode(0, len(batch))
    assert rows == len(batch)
    return bytes(data), taken


@given(plain_batches())
def test_plain_columns_are_taken_from_arrow_without_a_change(native_engine: None, batch: pa.RecordBatch) -> None:
    content, taken = encoded(batch, True)
    assert content == encoded(batch, False)[0]
    assert all(taken) or not len(batch)


@given(plain_batches())
def test_the_bytes_of_values_are_those_of_the_rows_of_a_slice(native_engine: None, batch: pa.RecordBatch) -> None:
    reader = get_engine().arrow_reader(plain_forms(plan_writing(batch.schema)))
    assert reader is not None
    assert reader.value_bytes(batch) == sum(map(value_bytes, batch.columns))
    assert reader.value_bytes(batch[3:7]) == sum(value_bytes(column[3:7]) for column in batch.columns)


def value_bytes(column: pa.Array) -> int:
    if not pa.types.is_primitive(column.type):
        return sum(len(value.as_buffer()) for value in column if value.is_valid)
    return (len(column) * column.type.bit_width + 7) // 8


def test_columns_without_a_form_do_not_count_as_bytes_of_values(native_engine: None) -> None:
    batch = pa.record_batch({"n": [1, 2], "l": [[1], []], "f": [0.5, 1.0]})
    reader = get_engine().arrow_reader(plain_forms(plan_writing(batch.schema)))
    assert reader is not None
    assert reader.value_bytes(batch) == 16


@given(batches(max_rows=10))
def test_any_columns_give_the_same_bytes(native_engine: None, batch: pa.RecordBatch) -> None:
    assert outcome(batch, True) == outcome(batch, False)


def outcome(batch: pa.RecordBatch, from_arrow: bool) -> bytes | str:
    try:
        return encoded(batch, from_arrow)[0]
    except EncodeError as error:
        return str(error)


def raw_text(values: list[bytes | None]) -> pa.Array:
    return pa.array(values, pa.binary()).view(pa.string())


def test_text_that_is_not_utf8_is_refused_unless_its_row_is_null(native_engine: None) -> None:
    bad = raw_text([b"a", b"\xff", None])
    batch = pa.record_batch({"n": [1, 2, 3], "s": bad})
    with pytest.raises(EncodeError, match="UTF-8") as caught:
        encoded(batch, True)
    assert (caught.value.feature, caught.value.record) == ("s", 1)
    offsets, content = bad.buffers()[1:]
    hidden = pa.Array.from_buffers(pa.string(), 3, [pa.py_buffer(b"\x05"), offsets, content])
    assert hidden.to_pylist() == ["a", None, ""]
    content, taken = encoded(pa.record_batch({"s": hidden}), True)
    assert (content, taken) == (encoded(pa.record_batch({"s": hidden}), False)[0], [True])


def test_buffers_that_are_not_aligned_are_converted_first(native_engine: None) -> None:
    memory = np.zeros(8 * 5 + 1, np.uint8)
    memory[1:].view()[:] = np.arange(5).astype(np.int64).view(np.uint8)
    array = pa.Array.from_buffers(pa.int64(), 5, [None, pa.py_buffer(memory)[1:]])
    content, taken = encoded(pa.record_batch({"x": array}), True)
    assert taken == [array.buffers()[1].address % 8 == 0]
    assert content == encoded(pa.record_batch({"x": pa.array(range(5))}), True)[0]


def test_the_reference_engine_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFRECORD_IO_ENGINE", "reference_engine")
    assert get_engine().arrow_reader(plain_forms(plan_writing(pa.schema([("x", pa.int64())])))) is None


@given(st.integers(1, 200), st.integers(0, 300), st.integers(0, 9), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_rows_of_many_columns_with_nulls(
    native_engine: None, columns: int, rows: int, before: int, share: float, seed: int
) -> None:
    """Of 64 columns and 64 rows at a time: values, names and nulls are those of protobuf's messages."""
    random = np.random.default_rng(seed)
    arrays, types = [], [np.int64, np.float32, "S"]
    for number in range(columns):
        values = random.integers(0, 2**40, before + rows) >> random.integers(0, 41)
        mask = random.random(before + rows) < share if number % 5 else None
        arrays.append(pa.array(values.astype(types[number % 3]), mask=mask).slice(before))
    batch = pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(columns)])
    data, _ = encoded(batch, True)
    frames, fault = get_engine().scan(np.frombuffer(data, np.uint8), max_record_bytes=1 << 20, final=True)
    assert (fault, len(frames.starts)) == (None, rows)
    for row, (start, length) in enumerate(zip(frames.starts.tolist(), frames.lengths.tolist(), strict=True)):
        example = Example.FromString(data[start : start + length])
        present = {name: value for name, value in batch.slice(row, 1).to_pylist()[0].items() if value is not None}
        assert {name: cell_of(feature) for name, feature in example.features.feature.items()} == present


def cell_of(feature: Any) -> Any:
    """The only value of a feature."""
    (value,) = getattr(feature, feature.WhichOneof("kind")).value
    return value
