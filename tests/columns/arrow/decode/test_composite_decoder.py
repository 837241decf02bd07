"""Columns built from several features: every form comes back, and a contradiction is a fault of its row."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.bytes.engine.contract import ColumnBuffers
from tfrecord_io.columns.arrow.decode.batch_builder import BatchBuilder
from tfrecord_io.columns.arrow.encode.encode_columns import encode_columns
from tfrecord_io.columns.arrow.encode.encode_plan import plan_writing
from tfrecord_io.columns.schema.composite import Composite, composite_of
from tfrecord_io.columns.schema.field import Field
from tfrecord_io.columns.schema.schema import Schema
from tfrecord_io.errors import SchemaError


def assembled(assembly: Composite, *parts: list[Any]) -> pa.Array:
    column, fault = attempted(assembly, *parts)
    if fault is not None:
        raise fault
    return column


def attempted(assembly: Composite, *parts: list[Any], begin: int = 0) -> tuple[pa.Array, Any]:
    schema = pa.schema(list(assembly.components()))
    arrays = [pa.array(part, type_).slice(begin) for part, type_ in zip(parts, schema.types, strict=True)]
    written = encode_columns(pa.record_batch(arrays, schema=schema), plan_writing(schema))
    columns = {column.name: column for column in written if isinstance(column, ColumnBuffers)}
    builder = BatchBuilder(Schema([assembly.field("x")]))
    made, fault = builder.batch(columns, len(arrays[0]))
    made.validate(full=True)
    assert made.schema == builder.schema
    return made.column(0), fault


def raw(values: Any, dtype: str, compress: bool = False) -> bytes:
    data = np.array(values, dtype).tobytes()
    return zlib.compress(data) if compress else data


def test_items_of_a_shape_in_lists() -> None:
    pairs = Composite("x", "int32", shape=(2,), sequence=(None,))
    assert assembled(pairs, [[1, 2, 3, 4], None, []]).to_pylist() == [[[1, 2], [3, 4]], None, []]


def test_tensor_of_one_shape() -> None:
    column = assembled(Composite("x", "float", shape=(2, 2)), [[1, 2, 3, 4], None, [5, 6, 7, 8]])
    assert column.type == pa.fixed_shape_tensor(pa.float32(), (2, 2))
    assert column.null_count == 1
    assert column.storage.to_pylist() == [[1, 2, 3, 4], None, [5, 6, 7, 8]]
    assert column.drop_null().to_numpy_ndarray().tolist() == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]


@pytest.mark.parametrize("encoding", ["bytes", "zlib"])
@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "float64", "bool"])
def test_bytes_of_an_array(encoding: str, dtype: str) -> None:
    name = str(pa.from_numpy_dtype(np.dtype(dtype)))
    values = [[0, 1, 1], [1, 0, 1]]
    compress = encoding == "zlib"
    column = assembled(
        Composite("x", name, encoding, shape=(None, 3)), [raw(values, dtype, compress), None, raw([], dtype, compress)]
    )
    assert column.to_pylist() == [values, None, []]


def test_shapes_of_their_own() -> None:
    dynamic = Composite("x/value", "uint8", "bytes", shape=(None, None), shape_feature="x/shape")
    column = assembled(dynamic, [raw([1, 2, 3, 4, 5, 6], "u1"), b"", None], [[3, 2], [2, 0], None])
    assert column.to_pylist() == [[[1, 2], [3, 4], [5, 6]], [[], []], None]
    numbers = Composite("x/value", "int64", shape=(None, None), shape_feature="x/shape")
    assert assembled(numbers, [[1, 2], None, None], [[1, 2], [2, 0], None]).to_pylist() == [[[1, 2]], [[], []], None]
    several = Composite("x/value", "uint8", "bytes", shape=(None, None), shape_feature="x/shape", sequence=(None,))
    column = assembled(several, [[b"\1\2", b"\3"], []], [[1, 2, 1, 1], []])
    assert column.to_pylist() == [[[[1, 2]], [[3]]], []]


def test_labels_inside_lists() -> None:
    column = assembled(Composite("x", "int64", sequence=(None,), labels=("a", "b")), [[1, 0, -1], [], None])
    assert column.to_pylist() == [["b", "a", None], [], None]


def test_bits_of_uint64() -> None:
    assert assembled(Composite("x", "uint64"), [-1, None, 5]).to_pylist() == [2**64 - 1, None, 5]


def test_least_value_is_null_where_it_says_so() -> None:
    assert assembled(Composite("x", "int8", sentinel=True), [-128, 1, None]).to_pylist() == [None, 1, None]
    rows = assembled(
        Composite("x", "int32", shape=(2,), sentinel=True), [[-(2**31)] * 2, [-(2**31), 0], None]
    ).to_pylist()
    assert rows == [None, [-(2**31), 0], None]


NESTED = st.lists(
    st.none() | st.lists(st.lists(st.lists(st.integers(-9, 9), max_size=3), max_size=3), max_size=3), max_size=6
)


@given(rows=NESTED, begin=st.integers(0, 3), omit=st.booleans())
def test_lists_in_lists(rows: list[Any], begin: int, omit: bool) -> None:
    """The serialized form of tf.RaggedTensor: values, and the lengths at each depth; also of a slice of a batch.

    Writers may leave out values and lengths of which there are none, but not all of them.
    """
    assembly = Composite("v", "int16", sequence=(None,) * 3, lengths=("l0", "l1"))
    values = [None if row is None else [v for a in row for b in a for v in b] for row in rows]
    outer = [None if row is None else [len(a) for a in row] for row in rows]
    inner = [None if row is None else [len(b) for a in row for b in a] for row in rows]
    if omit:
        values, inner = ([part or None for part in parts] for parts in (values, inner))
    made, fault = attempted(assembly, values, outer, inner, begin=begin)
    assert fault is None
    assert made.to_pylist() == rows[begin:]


@pytest.mark.parametrize(
    ("assembly", "good", "bad"),
    [
        (Composite("x", "int64", shape=(2,), sequence=(None,)), [[1, 2]], [[1]]),
        (Composite("x", "int64", shape=(2,), sequence=(2,)), [[1, 2, 3, 4]], [[1, 2]]),
        (Composite("x", "int64", shape=(2, 2)), [[1, 2, 3, 4]], [[1, 2]]),
        (Composite("x", "int64", shape=(None, 2)), [[1, 2]], [[1]]),
        (Composite("x", "int64", labels=("a",)), [0], [1]),
        (Composite("x", "int64", labels=("a",), sequence=(None,)), [[0]], [[0, -2]]),
        (Composite("x", "int16", "bytes", shape=(2,)), [b"1234"], [b"12"]),
        (Composite("x", "int16", "bytes", shape=(None,)), [b"12"], [b"1"]),
        (Composite("x", "bool", "bytes", shape=(None,)), [b"\1"], [b"\2"]),
        (Composite("x", "int16", "zlib", shape=(1,)), [zlib.compress(b"12")], [zlib.compress(b"12")[:-1]]),
        (Composite("x", "int16", "zlib", shape=(1,)), [zlib.compress(b"12")], [b"no zlib"]),
        (Composite("x", "int16", "zlib", shape=(1,)), [zlib.compress(b"12")], [zlib.compress(bytes(1 << 20))]),
        (Composite("x", "int8", "bytes", shape=(2,), sequence=(None,)), [[b"12"]], [[b"12", b"1"]]),
        (Composite("x", "int8", "bytes", shape=(None, None), shape_feature="s"), [b"12", [1, 2]], [b"12", [2, 2]]),
        (Composite("x", "int8", "bytes", shape=(None, None), shape_feature="s"), [b"12", [1, 2]], [b"12", [1]]),
        (Composite("x", "int8", "bytes", shape=(None, None), shape_feature="s"), [b"12", [1, 2]], [b"12", [-1, -2]]),
        (Composite("x", "int8", "bytes", shape=(None, None), shape_feature="s"), [b"12", [1, 2]], [b"", [2**31, 0]]),
        (
            Composite("x", "int8", "bytes", shape=(None, None), shape_feature="s"),
            [b"12", [1, 2]],
            [b"12", [2**62, 2**62]],
        ),
        (
            Composite("x", "int8", "bytes", shape=(None, 2, None), shape_feature="s"),
            [b"12", [1, 2, 1]],
            [b"12", [2, 1, 1]],
        ),
        (Composite("x", "int64", sequence=(None, None), lengths=("l",)), [[1, 2], [2]], [[1, 2], [1]]),
        (Composite("x", "int64", sequence=(None, None), lengths=("l",)), [[1, 2], [2]], [None, [1]]),
        (Composite("x", "int64", sequence=(None, None), lengths=("l",)), [[1, 2], [2]], [[1], None]),
        (Composite("x", "int64", sequence=(None, None), lengths=("l",)), [[1, 2], [2]], [[1, 2], [3, -1]]),
        (Composite("x", "int64", sequence=(None, None), lengths=("l",)), [[1, 2], [2]], [[1, 2], [2**62, 2**62]]),
        (Composite("x", "int64", sequence=(None, 2), lengths=("l",)), [[1, 2], [2]], [[1, 2], [1, 1]]),
        (Composite("x", "int64", sequence=(None, 2), lengths=(None,)), [[1, 2]], [[1]]),
    ],
)
def test_row_that_contradicts_itself_ends_the_batch(assembly: Composite, good: list[Any], bad: list[Any]) -> None:
    parts = [[None, g, g, b, g] for g, b in zip(good, bad, strict=True)]
    column, fault = attempted(assembly, *parts)
    assert fault is not None
    assert (fault.row, fault.feature) == (3, "x")
    assert len(column) == 3
    assert column.is_valid().to_pylist() == [False, True, True]


def test_assembly_travels_with_the_schema() -> None:
    assembly = Composite(
        values="v",
        dtype="uint8",
        encoding="zlib",
        shape=(None, 2),
        shape_feature="s",
        sequence=(None, 3),
        lengths=("l",),
        labels=None,
        sentinel=False,
    )
    schema = Schema([assembly.field("x"), Field("y", pa.int64())])
    again = Schema.from_arrow(schema.to_arrow())
    assert composite_of(again["x"]) == assembly
    assert composite_of(again["y"]) is None
    assert composite_of(Schema.from_arrow(BatchBuilder(again).schema)["x"]) is None


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"values": "x"}',
        '{"values": "x", "dtype": "no"}',
        '{"values": "x", "dtype": "int8", "shape": [null, null]}',
    ],
)
def test_damaged_assembly_is_refused(text: str) -> None:
    with pytest.raises(SchemaError):
        composite_of(Field("x", pa.int8(), metadata={b"tfrecord_io.assembly": text.encode()}))


@pytest.mark.parametrize(
    ("assembly", "value"),
    [
        (Composite("v", "int64", sequence=(None, None), lengths=("l",)), [[1], [2, 3]]),
        (Composite("v", "int64", sequence=(None,)), [1, 2]),
        (Composite("v", "uint64"), 3),
    ],
)
def test_column_with_an_assembly_is_written_under_its_own_name(tmp_path: Path, assembly: Composite, value: Any) -> None:
    """The metadata says how the files of other writers are read, and nothing of those that are written here."""
    table = pa.table({"x": [value, None]}, Schema([assembly.field("x")]).to_arrow())
    tfr.write_tfrecord(table, tmp_path / "x.tfrecord")
    assert tfr.read_table(tmp_path / "x.tfrecord").to_pylist() == table.to_pylist()
