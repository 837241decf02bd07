"""Columns as their declared types: values that fit are kept, others are reported; raw bytes and categories."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from column_buffers import BYTES, DAY, FLOAT, GOOD, INT, built, faulty, lists, nothing, one, raw, scalars
from tfrecord_io.bytes.engine.contract import ColumnBuffers
from tfrecord_io.bytes.format.feature_types import Kind
from tfrecord_io.columns.arrow.decode.batch_builder import BatchBuilder
from tfrecord_io.columns.schema.field import Field
from tfrecord_io.columns.schema.schema import Schema
from tfrecord_io.errors import FeatureTypeError


def kind_of_values(wire: list[Any]) -> Kind:
    return {int: INT, float: FLOAT, bytes: BYTES}[type(next(v for v in wire if v is not None))]


@pytest.mark.fault(50)
@pytest.mark.parametrize(("type_", "values", "wire"), GOOD, ids=lambda v: str(v) if isinstance(v, pa.DataType) else "")
def test_declared_types_come_back(type_: pa.DataType, values: list[Any], wire: list[Any]) -> None:
    kind = kind_of_values(wire)
    array = one(scalars(kind, wire), type_)
    assert array.type == type_
    assert array.to_pylist() == values
    held = [v for v in values if v is not None]
    rows = [held, None, [], held[:1]]
    wires = [v for v in wire if v is not None]
    nested = lists(kind, [wires, None, [], wires[:1]])
    for outer in (pa.list_(type_), pa.large_list(type_)):
        assert one(nested, outer).to_pylist() == rows
    fixed = lists(kind, [None, wires, None])
    assert one(fixed, pa.list_(type_, len(wires))).to_pylist() == [None, held, None]
    wide, count = 100, len(wires)
    array = one(lists(kind, [None, wires * wide, None, wires * wide]), pa.list_(type_, count * wide))
    array.validate(full=True)
    assert array.to_pylist() == [None, held * wide, None, held * wide]
    same_width = one(lists(kind, [None, wires, None, wires]), pa.list_(type_, count))
    assert array.values.null_count == same_width.values.null_count * wide
    assert one(nothing(3), type_).to_pylist() == [None] * 3
    in_struct = scalars(kind, wire, "x/a")
    structs = [None if v is None else {"a": v} for v in values]
    assert built([in_struct], pa.schema([("x", pa.struct([("a", type_)]))])).column(0).to_pylist() == structs
    of_structs = [None if row is None else [{"a": v} for v in row] for row in rows]
    assert (
        built([_named(nested, "x/a")], pa.schema([("x", pa.list_(pa.struct([("a", type_)])))])).column(0).to_pylist()
        == of_structs
    )


def _named(column: ColumnBuffers, name: str) -> ColumnBuffers:
    part = column.cut(0, column.rows)
    part.name = name
    return part


@pytest.mark.fault(50)
@pytest.mark.parametrize("type_", [t for t, _, _ in GOOD if not pa.types.is_dictionary(t)], ids=str)
def test_null_slots_are_zeroed(type_: pa.DataType) -> None:
    wire = next(w for t, _, w in GOOD if t == type_)
    valid = next(v for v in wire if v is not None)
    array = one(scalars(kind_of_values(wire), [valid, None]), type_)
    last = array.buffers()[-1].to_pybytes()
    if pa.types.is_boolean(type_):
        assert last[0] & 2 == 0
    elif not pa.types.is_large_binary(type_) and not pa.types.is_large_string(type_) and not pa.types.is_string(type_):
        width = type_.bit_width // 8
        assert last[width : 2 * width] == bytes(width)


BAD = [
    (pa.bool_(), INT, [1, 0, 2, 3], 2),
    (pa.int8(), INT, [0, 128], 1),
    (pa.uint8(), INT, [0, -1], 1),
    (pa.uint32(), INT, [2**32], 0),
    (pa.uint64(), INT, [None, -1], 1),
    (pa.date32(), INT, [2**31], 0),
    (pa.date64(), INT, [DAY, 1], 1),
    (pa.time32("s"), INT, [0, 86_400], 1),
    (pa.time64("ns"), INT, [0, -1], 1),
    (pa.float16(), FLOAT, [float("inf"), 1e6], 1),
    (pa.binary(2), BYTES, [b"ab", None, b"abc"], 2),
    (pa.decimal128(3, 1), BYTES, [b"1.5", None, b"x", b"y"], 2),
    (pa.decimal128(3, 1), BYTES, [b"1.5"] * 9 + [b"1.55"], 9),
    (pa.decimal128(3, 1), BYTES, [b"1.5", b"\xff"], 1),
    (pa.decimal128(3, 1), FLOAT, [1.5, None, 99.94, 99.96], 3),
    (pa.decimal128(3, 1), FLOAT, [1.5, float("nan")], 1),
    (pa.decimal256(50, 1), FLOAT, [None, float("-inf")], 1),
]


@pytest.mark.parametrize(
    ("type_", "kind", "wire", "row"), BAD, ids=lambda v: str(v) if isinstance(v, pa.DataType) else ""
)
def test_a_value_out_of_range_ends_the_batch_before_its_row(
    type_: pa.DataType, kind: Kind, wire: list[Any], row: int
) -> None:
    batch, fault = faulty(scalars(kind, wire), type_)
    assert (fault.row, fault.feature) == (row, "x")
    assert str(type_) in fault.reason
    assert len(batch.column(0)) == row
    nested = lists(kind, [[], None, [v for v in wire if v is not None], []])
    assert faulty(nested, pa.list_(type_))[1].row == 2


DECIMALS = [pa.decimal32(9, 2), pa.decimal64(18, 4), pa.decimal128(5, 0), pa.decimal128(38, 18), pa.decimal256(60, 20)]


@given(
    values=st.lists(st.none() | st.floats(-9999, 9999, width=32), min_size=1, max_size=8),
    type_=st.sampled_from(DECIMALS),
)
def test_floats_are_the_nearest_decimals(values: list[float | None], type_: pa.DataType) -> None:
    """Those of the exact value of a float32; of two equally near ones the even one."""
    with localcontext(Context(prec=100)):
        unit = Decimal(1).scaleb(-type_.scale)
        exact = [None if v is None else Decimal(v).quantize(unit, ROUND_HALF_EVEN) for v in values]
    assert one(scalars(FLOAT, values), type_).to_pylist() == exact
    rows = [None, [], [v for v in values if v is not None]]
    assert one(lists(FLOAT, rows), pa.list_(type_)).to_pylist() == [None, [], [v for v in exact if v is not None]]


def test_the_lowest_row_of_several_faults_wins() -> None:
    columns = {
        "a": scalars(INT, [0, 0, 0, 300], "a"),
        "b": scalars(INT, [0, 0, 300, 0], "b"),
        "c": scalars(INT, [0] * 4, "c"),
    }
    batch, fault = BatchBuilder(pa.schema([("a", pa.int8()), ("b", pa.int8()), ("c", pa.int8())])).batch(columns, 4)
    assert fault is not None
    assert (fault.row, fault.feature) == (2, "b")
    assert batch.to_pydict() == {"a": [0, 0], "b": [0, 0], "c": [0, 0]}


def test_the_lowest_row_of_one_column_wins() -> None:
    column = lists(INT, [[1, 2], [1], [300, 1]])  # row 1 has too few values, row 2 one out of range
    assert faulty(column, pa.list_(pa.int8(), 2))[1].row == 1


@pytest.mark.fault(48)
def test_more_or_fewer_values_than_the_fixed_size() -> None:
    _, fault = faulty(lists(FLOAT, [[1, 2], None, [1, 2, 3]]), pa.list_(pa.float32(), 2))
    assert (fault.row, fault.expected, fault.got, fault.feature) == (2, 2, 3, "x")


@pytest.mark.fault(43)
def test_another_kind_or_count_than_declared() -> None:
    _, fault = faulty(scalars(FLOAT, [None, 1.0]), pa.int64())
    assert (fault.row, fault.expected, fault.got, fault.error) == (1, "INT64", "FLOAT", FeatureTypeError)
    _, fault = faulty(lists(INT, [None, [1], [1, 2], []]), pa.int64())
    assert (fault.row, fault.expected, fault.got) == (2, 1, 2)
    _, fault = faulty(lists(BYTES, [[b"ab"], None, [b"c"], []]), pa.string())
    assert (fault.row, fault.expected, fault.got) == (3, 1, 0)
    _, fault = faulty(scalars(INT, [None, 1]), pa.null())
    assert fault.row == 1


def test_bytes_that_the_engine_only_tracked_are_checked_for_strings() -> None:
    column = scalars(BYTES, [b"ok", b"\x01", b"\xff"])
    column.binary_row = 1
    assert faulty(column, pa.string())[1].row == 2  # a control character is UTF-8, but not text
    column = lists(BYTES, [[b"ok"], [b"\x01", b"\xff"]])
    column.binary_row = 1
    assert faulty(column, pa.list_(pa.string()))[1].row == 1


# ---- raw bytes


@pytest.mark.parametrize("dtype", ["bool", "i1", "u2", "i4", "u8", "f2", "f4", "f8"])
def test_raw_numbers_keep_their_bits(dtype: str) -> None:
    values = np.array([1, 0, 1], dtype)
    type_ = pa.from_numpy_dtype(values.dtype)
    single = scalars(BYTES, [values[0].tobytes(), None, values[2].tobytes()])
    assert built([single], raw(type_)).column(0).to_pylist() == [values[0].item(), None, values[2].item()]
    rows = scalars(BYTES, [values.tobytes(), None, b"", values[:1].tobytes()])
    expected = [values.tolist(), None, [], values[:1].tolist()]
    assert built([rows], raw(pa.list_(type_))).column(0).to_pylist() == expected
    fixed = scalars(BYTES, [None, values.tobytes()])
    assert built([fixed], raw(pa.list_(type_, 3))).column(0).to_pylist() == [None, values.tolist()]


@pytest.mark.fault(51)
def test_raw_bytes_of_another_size() -> None:
    eight = bytes(8)
    _, fault = faulty(scalars(BYTES, [eight, None, b"abc"]), raw(pa.float64()))
    assert (fault.row, fault.expected, fault.got) == (2, 8, 3)
    _, fault = faulty(scalars(BYTES, [eight * 2, b"", eight + b"a", b"abcdefg"]), raw(pa.list_(pa.float64())))
    assert (fault.row, fault.got) == (2, 9)
    _, fault = faulty(scalars(BYTES, [eight * 2, eight]), raw(pa.list_(pa.float64(), 2)))
    assert (fault.row, fault.expected, fault.got) == (1, 2, 1)
    _, fault = faulty(scalars(BYTES, [b"\x01\x00", b"", b"\x00\x02"]), raw(pa.list_(pa.bool_())))
    assert fault.row == 2


# ---- categories


def test_given_categories_are_kept_whole_and_in_order() -> None:
    type_ = pa.dictionary(pa.int8(), pa.string(), ordered=True)
    array = one(scalars(BYTES, [b"b", None, b"a"]), type_, dictionaries={"x": pa.array(["c", "b", "a"])})
    assert array.type == type_
    assert array.dictionary.to_pylist() == ["c", "b", "a"]
    assert array.indices.to_pylist() == [1, None, 2]
    assert one(nothing(2), type_, dictionaries={"x": pa.array(["c"])}).dictionary.to_pylist() == ["c"]


def test_a_value_outside_the_given_categories_is_a_fault() -> None:
    _, fault = faulty(
        scalars(BYTES, [b"a", None, b"z"]), pa.dictionary(pa.int8(), pa.string()), dictionaries={"x": pa.array(["a"])}
    )
    assert fault.row == 2


def test_more_categories_than_the_index_can_hold_is_a_fault() -> None:
    assert faulty(scalars(INT, list(range(200))), pa.dictionary(pa.int8(), pa.int64()))[1].row == 128


@pytest.mark.parametrize(("index", "categories"), [(pa.int8(), 128), (pa.uint8(), 256)])
def test_a_default_that_is_one_category_too_many_is_a_fault(index: pa.DataType, categories: int) -> None:
    column = scalars(INT, [*range(categories), None, None])
    builders = [
        BatchBuilder(Schema([Field("x", pa.dictionary(index, pa.int64()), default=default)])) for default in (-1, 3)
    ]
    (first, fault), (filled, none) = [builder.batch({"x": column}, categories + 2) for builder in builders]
    assert fault is not None
    assert (first.num_rows, fault.row, fault.feature, fault.expected) == (categories, categories, "x", categories)
    assert none is None
    assert filled["x"].to_pylist()[-2:] == [3, 3]


def test_categories_of_all_batches_become_one() -> None:
    builder = BatchBuilder(pa.schema([("x", pa.dictionary(pa.int32(), pa.string()))]))
    batches = [builder.batch({"x": scalars(BYTES, values)}, len(values))[0] for values in ([b"a", b"b"], [b"c", b"a"])]
    table = BatchBuilder.table_of(batches, builder.schema)
    assert [chunk.dictionary.to_pylist() for chunk in table.column(0).chunks] == [["a", "b", "c"]] * 2
    assert table.column(0).to_pylist() == ["a", "b", "c", "a"]


def test_lists_in_structs_keep_that_their_items_are_not_null(tmp_path: Path) -> None:
    items = pa.list_(pa.field("item", pa.int64(), nullable=False))
    type_ = pa.struct([("a", pa.int64()), ("b", items), ("c", pa.struct([("d", items)]))])
    table = pa.table({"s": pa.array([{"a": 1, "b": [1, 2], "c": {"d": [3]}}, None], type_)})
    tfr.write_tfrecord(table, tmp_path / "a")
    again = tfr.read_table(tmp_path / "a")
    assert again.schema == table.schema
    assert again.to_pylist() == table.to_pylist()


@given(
    digits=st.text("0123456789", max_size=90),
    fraction=st.none() | st.text("0009", max_size=90),
    exponent=st.none() | st.integers(-90, 90) | st.sampled_from([-(10**8), 10**8]),
    sign=st.sampled_from(["", "+", "-"]),
    type_=st.sampled_from([(pa.decimal32, 9), (pa.decimal64, 18), (pa.decimal128, 38), (pa.decimal256, 76)]),
    data=st.data(),
)
def test_decimals_are_exact_or_refused(
    digits: str, fraction: str | None, exponent: int | None, sign: str, type_: tuple[Any, int], data: st.DataObject
) -> None:
    """Arrow's own cast of text wraps around, and crashes for far exponents."""
    make, most = type_
    precision = data.draw(st.integers(1, most))
    scale = data.draw(st.integers(0, precision))
    text = sign + digits + ("" if fraction is None else f".{fraction}") + ("" if exponent is None else f"e{exponent}")
    try:
        number = Decimal(text) if exponent is None or abs(exponent) < 1000 else None
    except ArithmeticError:
        number = None
    if number is None and digits.strip("0") == "" and (fraction or "").strip("0") == "" and digits + (fraction or ""):
        number = Decimal(0)
    with localcontext(Context(prec=400)):
        fits = (
            number is not None
            and number == number.quantize(Decimal(1).scaleb(-scale))
            and (abs(number) < Decimal(10) ** (precision - scale))
        )
    column, target = scalars(BYTES, [text.encode()]), make(precision, scale)
    if fits:
        assert one(column, target).to_pylist() == [number]
    else:
        assert "not a valid decimal" in faulty(column, target)[1].reason
