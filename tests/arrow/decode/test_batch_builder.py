"""Decoded columns come out as the declared type, whole or up to the first row that does not fit."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from column_buffers import feature_list, lists, nothing, scalars
from tfrecord_io.arrow.buffers import cut
from tfrecord_io.arrow.decode.batch_builder import BatchBuilder, to_table
from tfrecord_io.arrow.decode.plan import plan_columns
from tfrecord_io.arrow.infer.observe import observe, observe_all
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import ColumnBuffers, PlanColumn
from tfrecord_io.errors import FeatureTypeError, SchemaError
from tfrecord_io.format.kinds import Kind, Layout, Text
from tfrecord_io.schema.field import Field
from tfrecord_io.schema.leaf import with_encoding
from tfrecord_io.schema.observation import arrow_schema, arrow_type, join, join_columns
from tfrecord_io.schema.schema import Schema

INT, FLOAT, BYTES = Kind.INT64, Kind.FLOAT, Kind.BYTES


def built(columns: list[ColumnBuffers], schema: Any, **options: Any) -> pa.RecordBatch:
    batch, fault = BatchBuilder(schema, **options).batch({c.name: c for c in columns}, columns[0].rows)
    assert fault is None, fault
    batch.validate(full=True)
    return batch


def one(column: ColumnBuffers, type_: pa.DataType, **options: Any) -> pa.Array:
    """The column x of the given type."""
    return built([column], pa.schema([("x", type_)]), **options).column(0)


def raw(type_: pa.DataType) -> pa.Schema:
    return pa.schema([with_encoding(pa.field("x", type_), "raw")])


def faulty(column: ColumnBuffers, schema: Any, **options: Any) -> tuple[pa.RecordBatch, RowFault]:
    if isinstance(schema, pa.DataType):
        schema = pa.schema([("x", schema)])
    batch, fault = BatchBuilder(schema, **options).batch({column.name: column}, column.rows)
    assert fault is not None
    assert batch.num_rows == fault.row
    batch.validate(full=True)
    return batch, fault


# ---- values of the wire, as they are

WIRE = {
    INT: st.integers(-(2**63), 2**63 - 1),
    FLOAT: st.floats(width=32, allow_nan=False),
    BYTES: st.binary(max_size=5),
}
TYPE = {INT: pa.int64(), FLOAT: pa.float32(), BYTES: pa.binary()}


@st.composite
def columns_of(draw: st.DrawFn) -> tuple[ColumnBuffers, list[Any]]:
    kind = draw(st.sampled_from(list(WIRE)))
    if draw(st.booleans()):
        values = draw(st.lists(st.none() | WIRE[kind], max_size=20))
        return scalars(kind, values), values
    rows = draw(st.lists(st.none() | st.lists(WIRE[kind], max_size=3), max_size=20))
    return lists(kind, rows), rows


@pytest.mark.fault(50)
@given(columns_of())
def test_inferred_columns_hold_the_values(made: tuple[ColumnBuffers, list[Any]]) -> None:
    column, values = made
    array = one(column, arrow_type(observe(column), infer_text=False))
    assert array.to_pylist() == values


@pytest.mark.fault(50)
@given(columns_of())
def test_any_column_widens_to_large_lists(made: tuple[ColumnBuffers, list[Any]]) -> None:
    column, values = made
    kind = column.kind or INT
    array = one(column, pa.large_list(TYPE[kind]))
    assert array.to_pylist() == [None if v is None else v if isinstance(v, list) else [v] for v in values]


@given(columns_of(), st.data())
def test_cut_is_a_slice(made: tuple[ColumnBuffers, list[Any]], data: st.DataObject) -> None:
    column, values = made
    begin = data.draw(st.integers(0, len(values)))
    end = data.draw(st.integers(begin, len(values)))
    part = cut(column, begin, end)
    part.name = "x"
    assert one(part, arrow_type(observe(column), infer_text=False)).to_pylist() == values[begin:end]


@given(st.lists(st.none() | st.lists(st.integers(0, 9), max_size=2), max_size=20), st.integers(0, 20))
def test_two_blocks_give_what_one_gives(rows: list[Any], at: int) -> None:
    """Each block has the layout that it showed; widened to the join, together they are the whole."""

    def block(part: list[Any]) -> ColumnBuffers:
        if all(row is None for row in part):
            return nothing(len(part))
        if all(row is None or len(row) == 1 for row in part):
            return scalars(INT, [row and row[0] for row in part])
        return lists(INT, part)

    blocks = [block(rows[:at]), block(rows[at:])]
    kind = arrow_type(join("x", observe(blocks[0]), observe(blocks[1])))
    arrays = [one(each, kind) for each in blocks]
    assert pa.concat_arrays(arrays).to_pylist() == one(block(rows), kind).to_pylist()
    assert kind == arrow_type(observe(block(rows)))


def test_scalars_and_lists_are_not_copied() -> None:
    column = scalars(INT, [1, 2, 3])
    for kind in (pa.int64(), pa.timestamp("us", "UTC"), pa.duration("s"), pa.uint64()):
        assert one(column, kind).buffers()[1].address == column.values.ctypes.data
    ragged = lists(FLOAT, [[1.0], [], [2.0, 3.0]])
    assert one(ragged, pa.list_(pa.float32())).values.buffers()[1].address == ragged.values.ctypes.data
    texts = scalars(BYTES, [b"ab", b"c"])
    assert one(texts, pa.string()).buffers()[2].address == texts.values.ctypes.data


def test_float_bits_are_kept() -> None:
    bits = np.array([0x7FC00001, 0x7F800001, 0x80000000, 1], np.uint32)
    column = ColumnBuffers("x", FLOAT, Layout.SCALAR, 4, values=bits.view(np.float32))
    assert np.asarray(one(column, pa.float32())).view(np.uint32).tolist() == bits.tolist()


# ---- declared types

DAY = 86_400_000
GOOD = [
    (pa.bool_(), [True, None, False], [1, None, 0]),
    (pa.int8(), [-128, None, 127], [-128, None, 127]),
    (pa.uint8(), [0, 255], [0, 255]),
    (pa.int16(), [-(2**15), 2**15 - 1], [-(2**15), 2**15 - 1]),
    (pa.uint32(), [0, 2**32 - 1, None], [0, 2**32 - 1, None]),
    (pa.int32(), [-(2**31)], [-(2**31)]),
    (pa.uint64(), [2**63 - 1, None], [2**63 - 1, None]),
    (pa.date32(), [dt.date(1970, 1, 2), None], [1, None]),
    (pa.date64(), [dt.date(1970, 1, 2), None], [DAY, None]),
    (pa.time32("s"), [dt.time(0, 0, 5)], [5]),
    (pa.time64("us"), [dt.time(0, 0, 0, 5), None], [5, None]),
    (pa.timestamp("s", "UTC"), [dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)], [1]),
    (pa.duration("ms"), [dt.timedelta(milliseconds=7)], [7]),
    (pa.float16(), [1.5, None], [1.5, None]),
    (pa.float64(), [1.5, None, float("inf")], [1.5, None, float("inf")]),
    (pa.string(), ["ä", None, ""], ["ä".encode(), None, b""]),
    (pa.large_string(), ["ä"], ["ä".encode()]),
    (pa.large_binary(), [b"\xff"], [b"\xff"]),
    (pa.binary(2), [b"ab", None, b"cd"], [b"ab", None, b"cd"]),
    (pa.decimal128(5, 2), [Decimal("1.50"), None, Decimal("-2.00")], [b"1.50", None, b"-2"]),
    (pa.dictionary(pa.int8(), pa.string()), ["a", None, "b", "a"], [b"a", None, b"b", b"a"]),
    (pa.dictionary(pa.int16(), pa.int32(), ordered=True), [7, None, 5], [7, None, 5]),
]


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
    part = cut(column, 0, column.rows)
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
    assert faulty(column, pa.string())[1].row == 2  # a control character is no text, but it is UTF-8
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


def test_categories_of_all_batches_become_one() -> None:
    builder = BatchBuilder(pa.schema([("x", pa.dictionary(pa.int32(), pa.string()))]))
    batches = [builder.batch({"x": scalars(BYTES, values)}, len(values))[0] for values in ([b"a", b"b"], [b"c", b"a"])]
    table = to_table(batches, builder.schema)
    assert [chunk.dictionary.to_pylist() for chunk in table.column(0).chunks] == [["a", "b", "c"]] * 2
    assert table.column(0).to_pylist() == ["a", "b", "c", "a"]


# ---- structs, feature lists


def test_a_struct_is_null_where_all_its_leaves_are() -> None:
    type_ = pa.struct(
        [("a", pa.int8()), ("b", pa.struct([("c", pa.string()), ("d", pa.list_(pa.float32()))])), ("n", pa.null())]
    )
    columns = [scalars(INT, [1, None, None], "x/a"), nothing(3, "x/b/c"), lists(FLOAT, [None, None, [2.0]], "x/b/d")]
    assert built(columns, pa.schema([("x", type_)])).column(0).to_pylist() == [
        {"a": 1, "b": None, "n": None},
        None,
        {"a": None, "b": {"c": None, "d": [2.0]}, "n": None},
    ]


def test_a_struct_of_nulls_only_is_null() -> None:
    batch, fault = BatchBuilder(pa.schema([("x", pa.struct([("n", pa.null())]))])).batch({}, 2)
    assert fault is None
    assert batch.column(0).to_pylist() == [None, None]


@pytest.mark.parametrize("outer", [pa.list_, pa.large_list, lambda value: pa.list_(value, 2)])
def test_a_list_of_structs_is_put_together_from_lists(outer: Any) -> None:
    type_ = outer(pa.struct([("a", pa.int8()), ("b", pa.struct([("c", pa.string())])), ("n", pa.null())]))
    columns = [lists(INT, [[1, 2], None], "x/a"), lists(BYTES, [[b"p", b"q"], None], "x/b/c")]
    array = built(columns, pa.schema([("x", type_)])).column(0)
    assert array.to_pylist() == [[{"a": 1, "b": {"c": "p"}, "n": None}, {"a": 2, "b": {"c": "q"}, "n": None}], None]


def test_the_leaves_of_a_list_of_structs_have_the_same_lengths() -> None:
    schema = pa.schema([("x", pa.list_(pa.struct([("a", pa.int8()), ("b", pa.int8())])))])
    columns = {"x/a": lists(INT, [[1], [2, 3]], "x/a"), "x/b": lists(INT, [[1], [2]], "x/b")}
    batch, fault = BatchBuilder(schema).batch(columns, 2)
    assert fault is not None
    assert (fault.row, fault.feature, fault.expected, fault.got) == (1, "x/b", 2, 1)
    assert batch.to_pylist() == [{"x": [{"a": 1, "b": 1}]}]


@pytest.mark.fault(50)
def test_feature_lists() -> None:
    frames = feature_list(lists(FLOAT, [[1.0], [], [2.0, 3.0]]), [2, None, 1])
    assert one(frames, arrow_type(observe(frames))).to_pylist() == [[[1.0], []], None, [[2.0, 3.0]]]
    words = feature_list(scalars(INT, [1, 2, 3]), [2, 0, 1])
    assert arrow_type(observe(words)) == pa.list_(pa.int64())
    assert one(words, pa.list_(pa.int8())).to_pylist() == [[1, 2], [], [3]]
    assert one(words, pa.list_(pa.list_(pa.int64()))).to_pylist() == [[[1], [2]], [], [[3]]]
    gaps = feature_list(scalars(INT, [1, None]), [2])
    assert one(gaps, arrow_type(observe(gaps))).to_pylist() == [[[1], None]]
    empty = feature_list(nothing(0), [0, None])
    assert one(empty, arrow_type(observe(empty))).to_pylist() == [[], None]
    assert one(nothing(2), pa.list_(pa.list_(pa.int64()))).to_pylist() == [None, None]


def test_faults_in_steps_are_in_their_rows() -> None:
    words = feature_list(scalars(INT, [1, 2, 300]), [2, None, 0, 1])
    assert faulty(words, pa.list_(pa.int8()))[1].row == 3
    pairs = feature_list(lists(INT, [[1], [300]]), [1, 1])
    assert faulty(pairs, pa.list_(pa.list_(pa.int8())))[1].row == 1
    assert faulty(lists(INT, [None, [1]]), pa.list_(pa.list_(pa.int64())))[1].row == 1


def test_evidence_of_steps_names_the_record() -> None:
    seen = observe(feature_list(lists(INT, [[1], [1, 2]]), [1, None, 1]), "a", first_record=10)
    assert seen.first is not None
    assert seen.steps is not None
    assert seen.steps.listed is not None
    assert (seen.first.record, seen.steps.listed.record) == (10, 12)


# ---- batches


@pytest.mark.fault(44)
def test_absent_features_are_null_or_the_default() -> None:
    schema = Schema(
        [
            Field("a", pa.int8(), default=7),
            Field("b", pa.string(), default="?"),
            Field("c", pa.list_(pa.int64()), default=[1, 2]),
            Field("d", pa.dictionary(pa.int8(), pa.string()), default="new"),
            Field("e", pa.timestamp("us"), default=dt.datetime(2020, 1, 1)),
            Field("f", pa.float32()),
        ]
    )
    columns = {"a": scalars(INT, [None, 1], "a"), "d": scalars(BYTES, [b"old", None], "d")}
    batch, fault = BatchBuilder(schema).batch(columns, 2)
    assert fault is None
    batch.validate(full=True)
    assert batch.to_pydict() == {
        "a": [7, 1],
        "b": ["?", "?"],
        "c": [[1, 2], [1, 2]],
        "d": ["old", "new"],
        "e": [dt.datetime(2020, 1, 1)] * 2,
        "f": [None, None],
    }


def test_columns_are_those_of_the_schema_in_its_order() -> None:
    schema = pa.schema(
        [pa.field("b", pa.int8(), nullable=False), pa.field("a", pa.int64(), metadata={b"k": b"v"})],
        metadata={b"m": b"n"},
    )
    columns = [scalars(INT, [1], "a"), scalars(INT, [2], "b"), scalars(INT, [3], "c")]
    assert built(columns, schema).schema.equals(schema, check_metadata=True)


def test_a_column_may_have_another_name_than_its_feature() -> None:
    assert built([scalars(INT, [1], "deep/x")], Schema([Field("x", pa.int8(), "deep/x")])).to_pydict() == {"x": [1]}


def test_a_batch_without_columns_keeps_its_rows() -> None:
    builder = BatchBuilder(pa.schema([], metadata={b"k": b"v"}))
    batch, _ = builder.batch({}, 3)
    assert (batch.num_rows, batch.schema.metadata) == (3, {b"k": b"v"})
    assert to_table([batch, batch], builder.schema).num_rows == 6


def test_no_rows() -> None:
    for type_, _, _ in GOOD:
        batch, fault = BatchBuilder(pa.schema([("x", pa.list_(type_)), ("y", type_)])).batch({}, 0)
        assert fault is None
        assert batch.num_rows == 0
        batch.validate(full=True)


def test_views_and_run_ends_are_handed_over_plain() -> None:
    views = pa.schema(
        [
            ("x", pa.list_view(pa.string_view())),
            ("y", pa.run_end_encoded(pa.int32(), pa.int8())),
            ("z", pa.large_string()),
        ]
    )
    assert BatchBuilder(views).schema == pa.schema(
        [("x", pa.list_(pa.string())), ("y", pa.int8()), ("z", pa.large_string())]
    )


def test_extension_types_are_restored() -> None:
    for type_, kind, wire in (
        (pa.bool8(), INT, [1, None]),
        (pa.uuid(), BYTES, [b"0123456789abcdef", None]),
        (pa.json_(), BYTES, [b"{}", None]),
    ):
        array = one(scalars(kind, wire), type_)
        assert array.type == type_
        assert array.null_count == 1


def test_inferred_columns_in_one_go() -> None:
    first = [scalars(INT, [1, 2], "b"), scalars(BYTES, [b"t", None], "a")]
    second = [lists(INT, [[1, 2]], "b"), scalars(FLOAT, [1.5], "c")]
    schema = arrow_schema(join_columns(observe_all(first), observe_all(second)))
    builder = BatchBuilder(schema)
    batches = [builder.batch({c.name: c for c in columns}, columns[0].rows)[0] for columns in (first, second)]
    assert to_table(batches, schema).to_pydict() == {
        "a": ["t", None, None],
        "b": [[1], [2], [1, 2]],
        "c": [None, None, 1.5],
    }


# ---- plans


def test_plan_of_a_schema() -> None:
    schema = pa.schema(
        [
            pa.field("a", pa.int8(), nullable=False),
            pa.field("b", pa.list_(pa.string())),
            pa.field(
                "c", pa.struct([pa.field("d", pa.binary(), nullable=False), pa.field("e", pa.list_(pa.date32()))])
            ),
            with_encoding(pa.field("r", pa.list_(pa.float64())), "raw"),
            pa.field("n", pa.null()),
            pa.field("s", pa.list_(pa.list_(pa.float32()))),
            pa.field("w", pa.list_(pa.int64())),
            pa.field("k", pa.dictionary(pa.int8(), pa.string())),
        ]
    )
    plan = plan_columns(schema, steps={"w"})
    assert plan.columns == (
        PlanColumn("a", INT, Layout.SCALAR, Text.NO, required=True),
        PlanColumn("b", BYTES, Layout.LIST, Text.UTF8),
        PlanColumn("c/d", BYTES, Layout.SCALAR, Text.NO),
        PlanColumn("c/e", INT, Layout.LIST, Text.NO),
        PlanColumn("r", BYTES, Layout.SCALAR, Text.NO),
        PlanColumn("n", Kind.NONE, Layout.NULL, Text.NO),
        PlanColumn("s", FLOAT, Layout.LIST, Text.NO, steps=True),
        PlanColumn("w", INT, Layout.SCALAR, Text.NO, steps=True),
        PlanColumn("k", BYTES, Layout.SCALAR, Text.UTF8),
        PlanColumn("r/shape", Kind.NONE, Layout.ANY, Text.NO),
        PlanColumn("r/dtype", Kind.NONE, Layout.ANY, Text.NO),
    )
    assert plan.companions == {"r/shape", "r/dtype"}
    assert not plan.ignored
    assert plan_columns(pa.schema([("a", pa.string())]), text=Text.STRICT).columns[0].text is Text.STRICT


def test_a_default_stands_in_for_a_required_feature() -> None:
    assert not plan_columns(Schema([Field("a", pa.int8(), required=True, default=1)])).columns[0].required


def test_plan_refuses_types_without_a_form_and_features_read_twice() -> None:
    with pytest.raises(SchemaError, match="map"):
        plan_columns(pa.schema([("m", pa.map_(pa.string(), pa.int8()))]))
    with pytest.raises(SchemaError, match="two columns"):
        plan_columns(Schema([Field("a", pa.int8(), "x"), Field("b", pa.int8(), "x")]))
