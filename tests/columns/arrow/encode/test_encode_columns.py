"""Arrow columns to column buffers, decoded again by plain Python and compared with ``to_pylist``."""

from __future__ import annotations

import datetime as dt
import math
import struct
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from arrow_tables import LEAVES, batches
from rounds import rounds
from tfrecord_io.bytes.engine.contract import ColumnBuffers
from tfrecord_io.bytes.format.feature_types import Kind, Layout
from tfrecord_io.columns.arrow.encode.encode_columns import encode_columns
from tfrecord_io.columns.arrow.encode.encode_plan import plan_writing
from tfrecord_io.columns.arrow.encode.slice_encoder import dictionaries
from tfrecord_io.columns.arrow.input.batch_source import nest_lossy_columns
from tfrecord_io.columns.schema.column_features import Leaf
from tfrecord_io.columns.schema.types import is_list_like
from tfrecord_io.errors import EncodeError, FeatureNotFoundError, PrecisionWarning

ANY = settings(max_examples=rounds(400))


# --- what the buffers say, read by plain Python


def decoded(column: ColumnBuffers) -> list[Any]:
    def value(i: int) -> Any:
        if column.kind == Kind.BYTES:
            return column.values[column.value_offsets[i] : column.value_offsets[i + 1]].tobytes()
        return column.values[i].item()

    rows = []
    for row in range(column.rows):
        null = column.validity is not None and not column.validity[row // 8] >> row % 8 & 1
        if column.layout == Layout.SCALAR:
            rows.append(None if null else value(row))
        else:
            cut = range(column.offsets[row], column.offsets[row + 1])
            assert not (null and len(cut))
            rows.append(None if null else [value(i) for i in cut])
    assert column.null_count == sum(row is None for row in rows)
    expected = {Kind.BYTES: np.uint8, Kind.FLOAT: np.float32, Kind.INT64: np.int64}[column.kind]
    assert column.values.dtype == expected
    assert column.values.flags.c_contiguous
    if column.kind == Kind.BYTES:
        assert column.value_offsets[0] == 0
        assert column.value_offsets[-1] == len(column.values)
    if column.layout == Layout.LIST:
        count = len(column.values) if column.kind != Kind.BYTES else len(column.value_offsets) - 1
        assert column.offsets[0] == 0
        assert column.offsets[-1] == count
    return rows


# --- what they should say


EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def ticks(value: Any, unit: str) -> int:
    if hasattr(value, "as_unit"):  # of pandas, for nanoseconds
        return int(value.as_unit("ns").value) * PER_SECOND[unit] // 10**9
    micros = (value.days * 86_400 + value.seconds) * 10**6 + value.microseconds
    return micros * PER_SECOND[unit] // 10**6


def on_wire(value: Any, type_: pa.DataType) -> Any:
    """One value of `to_pylist` as the record should hold it."""
    t = pa.types
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, Decimal):
        return str(value).encode()
    if t.is_floating(type_):
        return float(np.float32(value))
    if t.is_date32(type_):
        return (value - dt.date(1970, 1, 1)).days
    if t.is_date64(type_):
        return (value - dt.date(1970, 1, 1)).days * 86_400_000
    if t.is_time(type_):
        inside = dt.timedelta(
            hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond
        )
        return ticks(inside, type_.unit)
    if t.is_timestamp(type_):
        if not hasattr(value, "as_unit"):
            value = value.replace(tzinfo=value.tzinfo or dt.UTC) - EPOCH
        return ticks(value, type_.unit)
    if t.is_duration(type_):
        return ticks(value, type_.unit)
    return int(value) if isinstance(value, bool) else value


def expected_rows(rows: list[Any], leaf: Leaf) -> list[Any]:
    def walk(value: Any, path: tuple[str, ...]) -> Any:
        if value is None:
            return None
        if isinstance(value, list):
            return [walk(item, path) for item in value]
        return walk(value[path[0]], path[1:]) if path else on_wire(value, plain)

    plain = leaf.type.value_type if is_list_like(leaf.type) else leaf.type
    while pa.types.is_dictionary(plain) or pa.types.is_run_end_encoded(plain):
        plain = plain.value_type
    return [walk(row, leaf.path) for row in rows]


def same(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or struct.pack("f", a) == struct.pack("f", b)
    return type(a) is type(b) and a == b


@pytest.mark.fault(52)
@ANY
@given(batches())
def test_every_form_of_arrow_is_written_as_its_values(batch: pa.RecordBatch) -> None:
    batch.validate(full=True)
    assume(nest_lossy_columns(batch.schema, [batch]).equals(batch.schema, check_metadata=True))
    plan = plan_writing(batch.schema)
    columns = {column.name: column for column in encode_columns(batch, plan)}
    for parts, array in zip(plan.columns, batch.columns, strict=True):
        for leaf in parts:
            if leaf.layout == Layout.NULL:
                assert leaf.feature not in columns
                continue
            column = columns.pop(leaf.feature)
            assert (column.kind, column.layout, column.rows) == (leaf.kind, leaf.layout, batch.num_rows)
            found, wanted = decoded(column), expected_rows(array.to_pylist(), leaf)
            assert same(found, wanted), (leaf, found, wanted)
    assert not columns


@pytest.mark.fault(52)
@pytest.mark.parametrize(("type_", "values"), LEAVES, ids=[str(type_) for type_, _ in LEAVES])
@given(data=st.data())
def test_every_type_in_every_slice(type_: pa.DataType, values: st.SearchStrategy[Any], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.one_of(st.none(), values), min_size=12, max_size=12))
    array = pa.array(rows, type_)
    lists = pa.array([None if row is None else [row, row] for row in rows], pa.list_(type_))
    for begin, count in [(0, 12), (1, 3), (9, 3), (8, 4), (12, 0)]:
        batch = pa.record_batch([array, lists], names=["a", "l"]).slice(begin, count)
        plan = plan_writing(batch.schema)
        for column, leaf, part in zip(encode_columns(batch, plan), plan.leaves, batch.columns, strict=True):
            assert same(decoded(column), expected_rows(part.to_pylist(), leaf))


@ANY
@given(batches(max_rows=4, max_columns=2))
def test_both_engines_take_the_columns(batch: pa.RecordBatch) -> None:
    from engine_comparison import ENGINES

    columns = encode_columns(batch, plan_writing(nest_lossy_columns(batch.schema, [batch])))
    results = []
    for engine in ENGINES:
        data, rows = engine.encoder(columns).encode(0, batch.num_rows)
        frames, fault = engine.scan(data)
        assert (rows, fault, len(frames.starts)) == (batch.num_rows, None, batch.num_rows)
        results.append([bytes(data[b : b + n]) for b, n in zip(frames.starts, frames.lengths, strict=True)])
    payloads = [[b"" if p == b"\n\0" else p for p in payloads] for payloads in results]
    assert all(p == payloads[0] for p in payloads)


# --- raw


def test_what_a_null_struct_hides_does_not_decide_how_its_column_is_stored() -> None:
    hidden = pa.StructArray.from_arrays([pa.array([[1], [None]])], ["a"], mask=pa.array([False, True]))
    batch = pa.record_batch({"x": hidden})
    assert nest_lossy_columns(batch.schema, [batch]).equals(batch.schema, check_metadata=True)
    (column,) = encode_columns(batch, plan_writing(batch.schema))
    assert decoded(column) == [[1], None]


@pytest.mark.parametrize("type_", [pa.float64(), pa.float16(), pa.int16(), pa.bool_(), pa.uint64()])
@pytest.mark.parametrize("form", [lambda t: t, pa.list_, lambda t: pa.list_view(t), lambda t: pa.list_(t, 2)])
def test_raw_is_bytes_beside_shape_and_dtype(type_: pa.DataType, form: Any) -> None:
    dtype = np.dtype(type_.to_pandas_dtype())
    cells = [np.array(cell, dtype) for cell in ([0, 1], [1, 1], [0, 0])]
    scalar = form(type_) == type_
    rows = [cells[0], None, cells[1], cells[2]]
    array = pa.array([None if c is None else c[0] if scalar else list(c) for c in rows], form(type_)).slice(1)
    batch = pa.record_batch([array], names=["x"])
    values, shape, name = encode_columns(batch, plan_writing(batch.schema, column_encoding={"x": "raw"}))
    assert [c.name for c in (values, shape, name)] == ["x", "x/shape", "x/dtype"]
    wanted = [None if c is None else (c[:1] if scalar else c).tobytes() for c in rows[1:]]
    assert decoded(values) == wanted
    assert decoded(shape) == [None if c is None else [] if scalar else [2] for c in rows[1:]]
    assert decoded(name) == [None if c is None else dtype.name.encode() for c in rows[1:]]


@given(st.lists(st.one_of(st.none(), st.lists(st.floats())), max_size=5))
def test_raw_keeps_the_bits_of_float64(rows: list[Any]) -> None:
    batch = pa.record_batch([pa.array(rows, pa.list_(pa.float64()))], names=["x"])
    plan = plan_writing(batch.schema, float64="raw")
    values, shape, _ = encode_columns(batch, plan)
    assert decoded(values) == [None if r is None else np.array(r, "<f8").tobytes() for r in rows]
    assert decoded(shape) == [None if r is None else [len(r)] for r in rows]
    assert not plan.rounding.counts


def test_encoding_comes_from_argument_metadata_and_float64_in_this_order() -> None:
    fields = [
        pa.field(n, pa.float64(), metadata={b"tfrecord_io.encoding": b"raw"} if n == "b" else None) for n in "abc"
    ]
    schema = pa.schema([*fields, ("s", pa.struct([("x", pa.float64()), ("y", pa.int8())]))])

    def raw(**options: Any) -> list[str]:
        return [leaf.feature for leaf in plan_writing(schema, **options).leaves if leaf.encoding == "raw"]

    assert raw() == ["b"]
    assert raw(float64="raw") == ["a", "b", "c", "s/x"]
    assert raw(float64="raw", column_encoding={"b": "list", "s/x": "list"}) == ["a", "c"]
    assert raw(column_encoding={"s": "raw", "b": "list"}) == ["s/x", "s/y"]
    items = pa.field("l", pa.list_(pa.struct({"x": pa.int64()})), metadata={b"tfrecord_io.encoding": b"json"})
    for asked, features in ({}, ["l"]), ({"l": "nested"}, ["l/null_positions", "l/x", "l/x/null_positions"]):
        assert [leaf.feature for leaf in plan_writing(pa.schema([items]), column_encoding=asked).leaves] == features
    with pytest.raises(FeatureNotFoundError, match="nope"):
        raw(column_encoding={"nope": "raw"})
    with pytest.raises(EncodeError, match="raw"):
        plan_writing(pa.schema([("t", pa.string())]), column_encoding={"t": "raw"})


# --- float64


def test_rounding_is_counted_once_for_a_write() -> None:
    batch = pa.record_batch(
        [pa.array([0.1, 0.5, None, math.nan, math.inf]), pa.array([[0.1, 0.2], [], [0.3], None, [1.0]])],
        names=["a", "b"],
    )
    plan = plan_writing(batch.schema)
    encode_columns(batch, plan)
    encode_columns(batch.slice(2), plan)
    assert plan.rounding.counts == {"a": 1, "b": 4}
    with pytest.warns(PrecisionWarning, match=r"'b' \(4 values\), 'a' \(1 value\)") as caught:
        plan.rounding.warn()
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_exact_values_and_round_are_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for values, float64 in [([0.5, math.nan, -0.0, 2.0**-149], None), ([0.1], "round"), ([0.25], "error")]:
            batch = pa.record_batch([pa.array(values)], names=["a"])
            plan = plan_writing(batch.schema, float64=float64)
            encode_columns(batch, plan)
            plan.rounding.warn()


@pytest.mark.parametrize("float64", [None, "round", "error"])
def test_overflow_to_infinity_is_refused(float64: str | None) -> None:
    batch = pa.record_batch([pa.array([[1.0], [], [2.0, 1e39]])], names=["a"])
    with pytest.raises(EncodeError, match="too large for float32") as caught:
        encode_columns(batch, plan_writing(batch.schema, float64=float64), row_base=10)
    assert (caught.value.feature, caught.value.record, caught.value.got) == ("a", 12, 1e39)


def test_error_refuses_the_first_inexact_value() -> None:
    batch = pa.record_batch([pa.array([0.5, None, math.nan, 0.1])], names=["a"])
    with pytest.raises(EncodeError) as caught:
        encode_columns(batch, plan_writing(batch.schema, float64="error"))
    assert caught.value.record == 3


# --- refusals


def test_uint64_beyond_int64_names_row_and_column() -> None:
    batch = pa.record_batch([pa.array([1, 2**63], pa.uint64())], names=["n"])
    with pytest.raises(EncodeError) as caught:
        encode_columns(batch, plan_writing(batch.schema), row_base=5)
    assert (caught.value.feature, caught.value.record, caught.value.got) == ("n", 6, 2**63)


def test_garbage_below_nulls_is_not_looked_at() -> None:
    bad = pa.array([2**64 - 1, 7], pa.uint64())
    masked = pa.Array.from_buffers(pa.uint64(), 2, [pa.py_buffer(b"\x02"), bad.buffers()[1]])
    huge = pa.StructArray.from_arrays([pa.array([1e300, 1.0])], names=["x"], mask=pa.array([True, False]))
    indices = pa.Array.from_buffers(pa.int8(), 2, [None, pa.py_buffer(b"\x63\x00")])
    wild = pa.DictionaryArray.from_arrays(indices, pa.array(["a"]), safe=False)
    wild = pa.StructArray.from_arrays([wild], names=["d"], mask=pa.array([True, False]))
    batch = pa.record_batch([masked, huge, wild], names=["m", "s", "w"])
    found = [decoded(column) for column in encode_columns(batch, plan_writing(batch.schema))]
    assert found == [[None, 7], [None, 1.0], [None, b"a"]]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([[1], [2, None]]),
        pa.array([[{"x": 1}], [{"x": None}]]),
        pa.array([[{"x": 1}], [None]]),
        pa.array([["a"], [None]], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
        pa.array([None, [None]], pa.list_(pa.null())),
        pa.array([None, []], pa.list_(pa.null())),
    ],
    ids=str,
)
def test_null_inside_a_list_names_its_row(array: pa.Array) -> None:
    batch = pa.record_batch([array], names=["a"])
    with pytest.raises(EncodeError) as caught:
        encode_columns(batch, plan_writing(batch.schema), row_base=100)
    assert caught.value.record == 101
    assert caught.value.advice


def test_lists_of_the_null_type_may_be_null() -> None:
    batch = pa.record_batch([pa.array([None, None], pa.list_(pa.null()))], names=["a"])
    assert encode_columns(batch, plan_writing(batch.schema)) == []


@pytest.mark.parametrize(
    ("fields", "feature"),
    [
        ([("a", pa.int8()), ("a", pa.int8())], "a"),
        ([("a", pa.struct([("b", pa.int8())])), ("a/b", pa.int8())], "a/b"),
        ([("a", pa.float64()), ("a/shape", pa.int8())], "a/shape"),
        ([("a/dtype", pa.null()), ("a", pa.float64())], "a/dtype"),
    ],
)
def test_colliding_names_are_refused(fields: list[Any], feature: str) -> None:
    with pytest.raises(EncodeError, match="rename") as caught:
        plan_writing(pa.schema(fields), float64="raw")
    assert caught.value.feature == feature


# --- memory


def test_wire_types_are_not_copied() -> None:
    ints, floats = pa.array(range(100)), pa.array(np.arange(100, dtype=np.float32))
    text = pa.array(["abc"] * 100)
    lists = pa.ListArray.from_arrays(pa.array(range(0, 101, 4), pa.int32()), ints)
    for array, source in [(ints, ints), (floats, floats), (text, text), (lists, ints)]:
        batch = pa.record_batch([array], names=["x"])
        (column,) = encode_columns(batch, plan_writing(batch.schema))
        assert column.values.__array_interface__["data"][0] == source.buffers()[-1].address


def test_dictionaries_are_found_wherever_they_are() -> None:
    d = pa.array(["x", "y"], pa.large_string()).dictionary_encode()
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), d)
    nested = pa.StructArray.from_arrays([lists], names=["l"])
    batch = pa.record_batch([d, nested, pa.array([1, 2])], names=["d", "s", "n"])
    found = dictionaries(batch, plan_writing(batch.schema))
    assert {k: (v.type, v.to_pylist()) for k, v in found.items()} == dict.fromkeys(
        ["d", "s/l"], (pa.string(), ["x", "y"])
    )


def test_no_columns_and_no_rows() -> None:
    empty = pa.table({"a": [1, 2]}).select([]).to_batches()[0]
    assert encode_columns(empty, plan_writing(empty.schema)) == []
    batch = pa.RecordBatch.from_pylist(
        [], pa.schema([("a", pa.list_(pa.string())), ("b", pa.bool_()), ("c", pa.float64())])
    )
    assert [c.rows for c in encode_columns(batch, plan_writing(batch.schema))] == [0, 0, 0]


def too_large(type_: pa.DataType) -> pa.Array:
    """Zero, and a number of more digits than the type has, as DuckDB gives the largest of its HUGEINT."""
    width = type_.bit_width // 8
    numbers = bytes(width) + (10**type_.precision).to_bytes(width, "little", signed=True)
    return pa.Array.from_buffers(type_, 2, [None, pa.py_buffer(numbers)])


NOT_UTF8 = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"a\xff")]
)
INVALID = {
    **{str(type_): too_large(type_) for type_ in (pa.decimal128(38, 0), pa.decimal128(5, 2), pa.decimal256(70, 3))},
    "text": NOT_UTF8,
}


@pytest.mark.parametrize("values", INVALID.values(), ids=INVALID)
@pytest.mark.parametrize("encoding", [None, "nested", "json"])
def test_values_that_no_reader_accepts_are_refused(values: pa.Array, encoding: str | None) -> None:
    reason = "the text is not UTF-8" if values is NOT_UTF8 else f"the number has more digits than {values.type}"
    lists = pa.ListArray.from_arrays([0, 1, 2], values)
    for array in (
        values,
        lists,
        pa.StructArray.from_arrays([values], ["k"]),
        pa.ListArray.from_arrays([0, 1, 2], lists),
    ):
        batch = pa.record_batch({"x": array})
        plan = plan_writing(
            nest_lossy_columns(batch.schema, [batch]), column_encoding={"x": encoding} if encoding else None
        )
        with pytest.raises(EncodeError) as caught:
            encode_columns(batch, plan, row_base=7)
        assert (caught.value.reason, caught.value.record) == (reason, 8)
        encode_columns(batch.slice(0, 1), plan)
    masked = pa.StructArray.from_arrays([values], ["k"], mask=pa.array([False, True]))
    batch = pa.record_batch({"x": masked})
    encode_columns(batch, plan_writing(batch.schema, column_encoding={"x": encoding} if encoding else None))
