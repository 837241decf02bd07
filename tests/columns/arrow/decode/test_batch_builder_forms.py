"""Batches that the engine makes itself equal those that are made column by column, and own their memory."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_comparison import NATIVE, REFERENCE
from records import blobs, entry, field, floats, framed, int64s
from strategies import float_bits
from tfrecord_io.bytes._native import _kernel
from tfrecord_io.bytes.engine.contract import ColumnBuffers, Engine, FeatureColumns, Plan
from tfrecord_io.bytes.format.feature_types import Kind, Text
from tfrecord_io.columns.arrow.decode.batch_builder import BatchBuilder, Value, forms_of
from tfrecord_io.columns.arrow.decode.decode_plan import plan_columns
from tfrecord_io.columns.arrow.row_fault import RowFault
from tfrecord_io.columns.schema.column_features import handed_type
from tfrecord_io.columns.schema.field import Field
from tfrecord_io.columns.schema.schema import Schema
from tfrecord_io.columns.schema.types import kind_of, plain_kind

INTEGERS = [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()]
TIMES = [pa.date32(), pa.date64(), pa.time32("ms"), pa.time64("ns"), pa.timestamp("us", "UTC"), pa.duration("s")]
BYTES = [pa.binary(), pa.string(), pa.large_binary(), pa.large_string()]
MADE = [*INTEGERS, *TIMES, *BYTES, pa.bool_(), pa.float32(), pa.float64()]
LEFT = [pa.float16(), pa.binary(2), pa.decimal128(5, 1), pa.dictionary(pa.int8(), pa.string()), pa.uuid()]


def lists_of(value: pa.DataType) -> st.SearchStrategy[pa.DataType]:
    return st.sampled_from([pa.list_(value), pa.large_list(value), pa.list_(value, 2), pa.list_(value, 0)])


types = st.sampled_from([*MADE, *LEFT]) | st.sampled_from([*MADE, *LEFT]).flatmap(lists_of) | st.just(pa.null())
DEFAULTS = {Kind.INT64: 1, Kind.FLOAT: 0.5, Kind.BYTES: "x"}
SMALL = st.integers(0, 1) | st.integers(-100, 300) | st.integers(-(2**63), 2**63 - 1)
VALUES = {
    Kind.INT64: SMALL,
    Kind.FLOAT: float_bits,
    Kind.BYTES: st.sampled_from([b"ab", b"", b"1.5", b"\xff", "ж".encode()]),
}


def feature(kind: Kind, values: list[Any]) -> bytes:
    if kind is Kind.FLOAT:
        return field(2, field(1, b"".join(values))) if values else b""
    return (int64s if kind is Kind.INT64 else blobs)(*values)


@st.composite
def fields(draw: st.DrawFn) -> list[Field]:
    made = []
    for at in range(draw(st.integers(0, 5))):
        type_ = draw(types)
        has_default = type_ in MADE and type_ not in [*TIMES, pa.bool_()] and draw(st.integers(0, 4)) == 0
        default = DEFAULTS[kind_of(type_)] if has_default else None
        empty = "null" if draw(st.integers(0, 5)) == 0 else None
        made.append(Field(f"c{at}", type_, feature=f"f{at}", default=default, empty=empty))
    return made


@st.composite
def payloads(draw: st.DrawFn, declared: list[Field]) -> list[bytes]:
    """Records that mostly fit the fields."""
    records = []
    kinds = [
        kind_of(getattr(f.type, "value_type", f.type)) if not pa.types.is_dictionary(f.type) else Kind.BYTES
        for f in declared
    ]
    for _ in range(draw(st.integers(0, 12))):
        entries = []
        for f, own in zip(declared, kinds, strict=True):
            kind = own if draw(st.integers(0, 15)) else draw(st.sampled_from(list(VALUES)))
            if kind is Kind.NONE or draw(st.integers(0, 4)) == 0:
                continue
            is_list = pa.types.is_nested(f.type)
            count = getattr(f.type, "list_size", None) if is_list else 1
            if count is None or draw(st.integers(0, 15)) == 0:
                count = draw(st.integers(0, 3))
            entries.append(entry(f.feature, feature(kind, [draw(VALUES[kind]) for _ in range(count)])))
        records.append(field(1, b"".join(entries)))
    return records


def decoded(engine: Engine, plan: Plan, data: bytes) -> tuple[Mapping[str, ColumnBuffers], int]:
    decoder = engine.decoder(plan)
    decoder.feed(data)
    rows = decoder.rows
    return decoder.take_columns(), rows


def outcome(builder: BatchBuilder, columns: Mapping[str, ColumnBuffers], rows: int) -> tuple[Any, ...]:
    """The bytes of the batch, its null counts, and its fault."""
    try:
        batch, fault = builder.batch(columns, rows)
    except Exception as error:
        return type(error), str(error)
    is_checked = not any(
        map(pa.types.is_dictionary, batch.schema.types)
    )  # their text is checked by a declared plan only
    batch.validate(full=fault is None and is_checked)
    nulls = [column.null_count for column in batch.columns]
    seen = None if fault is None else (fault.row, fault.feature, fault.reason, repr(fault.expected), repr(fault.got))
    return batch.schema, batch.num_rows, nulls, batch.serialize().to_pybytes(), seen


@pytest.mark.parametrize("mode", ["declared", "discovered"])
@given(st.data())
def test_quick_batches_equal_slow_ones(mode: str, data: st.DataObject) -> None:
    declared = data.draw(fields())
    records = framed(*data.draw(payloads(declared)))
    schema = Schema(declared)
    plan = Plan(plan_columns(schema).columns, unknown="skip") if mode == "declared" else Plan()
    builder = BatchBuilder(schema)
    quick, rows = decoded(NATIVE, plan, records)
    slow, _ = decoded(NATIVE, plan, records)
    assert isinstance(quick, FeatureColumns)
    expected = outcome(builder, dict(slow), rows)
    assert outcome(builder, quick, rows) == expected
    assert outcome(builder, quick, rows) == expected, "the columns can be used again"
    assert outcome(builder, *decoded(REFERENCE, plan, records)) == expected


def test_every_common_type_is_made_by_the_engine() -> None:
    plain = [t for t in MADE if t != pa.date64()]
    nested = [make(t) for t in plain for make in (pa.list_, pa.large_list, lambda t: pa.list_(t, 2))]
    forms = forms_of(Schema([Field(f"c{at}", t) for at, t in enumerate((*plain, *nested, pa.null()))]))
    assert forms is not None
    assert (forms.distinct[:, 0] != Value.OTHER).all()
    assert len(forms.number) == len(plain) + len(nested) + 1
    assert forms_of(Schema([Field(f"c{at}", t) for at, t in enumerate(LEFT)])) is None


@pytest.mark.parametrize("value", MADE, ids=str)
def test_lists_of_common_types_are_handed_over_as_they_are(value: pa.DataType) -> None:
    child = pa.field("element", value, nullable=False, metadata={"of": "the child"})
    for type_ in (pa.list_(value), pa.large_list(child), pa.list_(child, 3)):
        assert handed_type(type_).equals(type_, check_metadata=True)


@pytest.mark.parametrize("value", MADE, ids=str)
@pytest.mark.parametrize("text", [Text.UTF8, Text.STRICT])
@pytest.mark.parametrize("promoted", [None, lambda column: False], ids=["promoted", "not promoted"])
def test_lists_are_planned_as_those_of_other_layouts(value: pa.DataType, text: Text, promoted: Any) -> None:
    fields = [Field("x", make(value), required=True) for make in (pa.list_, pa.large_list, pa.list_view)]
    *plain, view = (plan_columns(Schema([field]), text=text, promoted=promoted) for field in fields)
    assert plain == [view, view]


def test_a_schema_of_common_types_has_the_forms_of_its_fields() -> None:
    types = [t for t in MADE if plain_kind(t) is not None]
    columns = Schema.from_common_types([f"c{at}" for at in range(2 * len(types))], [*types, *types[::-1]])
    forms, of_fields = forms_of(columns), forms_of(Schema(columns.fields))
    assert forms is not None
    assert of_fields is not None
    assert (forms.distinct[forms.number] == of_fields.distinct[of_fields.number]).all()
    assert forms_of(Schema.from_common_types([], [])) is None


def test_the_engine_leaves_out_only_what_does_not_fit() -> None:
    schema = Schema([Field("a", pa.int8()), Field("b", pa.int64()), Field("c", pa.string(), default="x")])
    good, bad = (field(1, entry("a", int64s(n)) + entry("b", int64s(n))) for n in (1, 300))
    columns, rows = decoded(NATIVE, Plan(plan_columns(schema).columns, unknown="skip"), framed(good, bad))
    forms = forms_of(schema)
    assert isinstance(columns, FeatureColumns)
    _, whole, addresses = columns.arrow_arrays(forms, ["a", "b", "c"])
    assert whole == 0
    assert [address != 0 for address in addresses] == [False, True, False]
    batch, fault = BatchBuilder(schema).batch(columns, rows)
    assert batch.to_pydict() == {"a": [1], "b": [1], "c": ["x"]}
    assert fault is not None
    assert (fault.row, fault.feature) == (1, "a")


# ---- memory

WIDE = Schema(
    [Field("i", pa.int64()), Field("f", pa.float32()), Field("b", pa.binary()), Field("l", pa.list_(pa.int64()))]
)


def wide_columns(rows: int, size: int = 8) -> tuple[FeatureColumns, int]:
    entries = [
        entry("i", int64s(7)) + entry("f", floats(0.5)) + entry("b", blobs(b"x" * size)) + entry("l", int64s(1, 2))
    ]
    data = framed(*[field(1, b"".join(entries))] * rows)
    columns, rows = decoded(NATIVE, Plan(plan_columns(WIDE).columns, unknown="skip"), data)
    assert isinstance(columns, FeatureColumns)
    return columns, rows


def resident() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) << 10


def addresses(array: pa.Array) -> Iterator[int]:
    yield from (buffer.address for buffer in array.buffers() if buffer is not None)


@pytest.mark.parametrize(("size", "is_whole"), [(8, True), (4096, False)])
def test_a_batch_of_small_columns_is_handed_over_as_a_whole(size: int, is_whole: bool) -> None:
    columns, rows = wide_columns(100, size)
    forms = forms_of(WIDE)
    assert forms is not None
    _, whole, addresses = columns.arrow_arrays(forms, WIDE.names)
    assert ((whole != 0), len(addresses)) == ((True, 0) if is_whole else (False, 4))
    batch, _ = BatchBuilder(WIDE).batch(columns, rows)
    assert batch.num_rows == rows
    batch.validate(full=True)


@pytest.mark.parametrize("size", [8, 4096])
def test_the_values_are_not_copied(size: int) -> None:
    columns, rows = wide_columns(100, size)
    batch, _ = BatchBuilder(WIDE).batch(columns, rows)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        buffers = columns[name]
        arrays = [buffers.values, buffers.value_offsets, buffers.offsets]
        assert set(addresses(column)) == {a.ctypes.data for a in arrays if a is not None}


def test_arrays_outlive_the_decoder_and_the_columns() -> None:
    columns, rows = wide_columns(1000)
    batch, _ = BatchBuilder(WIDE).batch(columns, rows)
    kept = batch.column("l")
    del columns, batch
    gc.collect()
    assert kept.to_pylist() == [[1, 2]] * 1000


@pytest.fixture
def nothing_is_kept() -> Iterator[None]:
    """Released memory goes back to the system at once."""
    kept = _kernel.keep_pages(0)
    yield
    _kernel.keep_pages(kept)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_a_dropped_column_frees_its_memory_while_others_are_kept(nothing_is_kept: None) -> None:
    columns, rows = wide_columns(300, 1 << 18)
    batch, _ = BatchBuilder(WIDE).batch(columns, rows)
    kept = batch.column("i")
    before = resident()
    del columns, batch
    gc.collect()
    assert before - resident() > 60 << 20  # of 75 MiB; other threads of the test run take some
    assert kept.to_pylist() == [7] * 300


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
@pytest.mark.parametrize("is_imported", [True, False])
def test_no_memory_is_lost(is_imported: bool) -> None:
    builder, forms = BatchBuilder(WIDE), forms_of(WIDE)

    def once() -> None:
        columns, rows = wide_columns(2000, 100)
        if is_imported:
            builder.batch(columns, rows)
        else:
            columns.arrow_arrays(forms, WIDE.names)

    for _ in range(20):
        once()
    before = resident()
    for _ in range(100):
        once()
    assert resident() - before < 8 << 20  # a round has 0.3 MB


def test_threads_share_a_builder() -> None:
    builder = BatchBuilder(WIDE)
    expected = outcome(builder, *wide_columns(500))

    def round_(_: int) -> bool:
        return outcome(builder, *wide_columns(500)) == expected

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(round_, range(20)))


def test_a_sample_of_text_that_is_not_is_refused() -> None:
    schema = Schema([Field("t", pa.string())])
    data = framed(*(field(1, entry("t", blobs(value))) for value in (b"good", b"\xff")))
    columns, rows = decoded(NATIVE, Plan(text=Text.TRACK), data)
    batch, fault = BatchBuilder(schema).batch(columns, rows)
    assert batch.to_pydict() == {"t": ["good"]}
    assert isinstance(fault, RowFault)
    assert fault.row == 1


def test_numbers_of_one_row_are_kept_exactly() -> None:
    schema = Schema([Field("u", pa.uint64()), Field("d", pa.float64())])
    record = field(1, entry("u", int64s(2**63 - 1)) + entry("d", floats(0.1)))
    columns, rows = decoded(NATIVE, Plan(plan_columns(schema).columns), framed(record))
    batch, _ = BatchBuilder(schema).batch(columns, rows)
    assert batch.to_pydict() == {"u": [2**63 - 1], "d": [float(np.float32(0.1))]}
