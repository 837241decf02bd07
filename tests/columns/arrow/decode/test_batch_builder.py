"""Decoded columns come out as the declared type, whole or up to the first row that does not fit."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from column_buffers import BYTES, FLOAT, GOOD, INT, built, faulty, feature_list, lists, nothing, one, scalars
from tfrecord_io.bytes.engine.contract import ColumnBuffers, PlanColumn
from tfrecord_io.bytes.format.feature_types import Kind, Layout, Text
from tfrecord_io.columns.arrow.decode.batch_builder import BatchBuilder
from tfrecord_io.columns.arrow.decode.decode_plan import plan_columns
from tfrecord_io.columns.arrow.decode.inferred_column import observe
from tfrecord_io.columns.schema.column_features import set_encoding
from tfrecord_io.columns.schema.field import Field
from tfrecord_io.columns.schema.inferred_type import RecordRef, arrow_type, join, join_columns
from tfrecord_io.columns.schema.schema import Schema
from tfrecord_io.errors import SchemaError

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
    part = column.cut(begin, end)
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
    seen = observe(feature_list(lists(INT, [[1], [1, 2]]), [1, None, 1]), lambda row: RecordRef("a", 10 + row))
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
    assert BatchBuilder.table_of([batch, batch], builder.schema).num_rows == 6


def test_a_fault_keeps_no_arrays() -> None:
    _, fault = faulty(scalars(INT, [1, 300]), pa.int8())
    assert fault.__traceback__ is None  # its frames have the arrays of the columns before


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
    seen = join_columns(*({column.name: observe(column) for column in columns} for columns in (first, second)))
    schema = pa.schema([(name, arrow_type(seen[name])) for name in sorted(seen)])
    builder = BatchBuilder(schema)
    batches = [builder.batch({c.name: c for c in columns}, columns[0].rows)[0] for columns in (first, second)]
    assert BatchBuilder.table_of(batches, schema).to_pydict() == {
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
            set_encoding(pa.field("r", pa.list_(pa.float64())), "raw"),
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
        PlanColumn("s", FLOAT, Layout.LIST, Text.NO, steps=True, splits=True),
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
