"""Text in conditions on dates and times has the type of the column."""

from __future__ import annotations

import datetime
import pickle
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.base.options.filters import condition_of
from tfrecord_io.columns.arrow.type_literals import type_literals as typed
from tfrecord_io.errors import SchemaError
from tfrecord_io.read.row_filter import RowFilter

f = pc.field


def type_literals(condition: pc.Expression, schema: pa.Schema) -> pc.Expression:
    return typed(condition_of(condition), schema).expression


PARIS = ZoneInfo("Europe/Paris")
TYPES = {
    "date": pa.date32(),
    "date64": pa.date64(),
    "time": pa.time64("us"),
    "naive": pa.timestamp("us"),
    "zoned": pa.timestamp("us", "Europe/Paris"),
    "text": pa.string(),
    "n": pa.int64(),
}
SCHEMA = pa.schema(TYPES)
MOMENTS = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1))
OPERATORS = st.sampled_from(["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"])


def rows_of(moments: list[datetime.datetime]) -> pa.RecordBatch:
    values = {
        "date": [moment.date() for moment in moments],
        "date64": [moment.date() for moment in moments],
        "time": [moment.time() for moment in moments],
        "naive": moments,
        "zoned": [moment.replace(tzinfo=datetime.UTC) for moment in moments],
        "text": [moment.isoformat() for moment in moments],
        "n": list(range(len(moments))),
    }
    return pa.RecordBatch.from_arrays([pa.array(values[name], type_) for name, type_ in TYPES.items()], list(TYPES))


@given(st.lists(MOMENTS, min_size=1, max_size=5), MOMENTS, OPERATORS, st.sampled_from([*TYPES][:5]), st.booleans())
def test_text_is_compared_as_the_value_that_it_stands_for(
    moments: list[datetime.datetime], moment: datetime.datetime, operator: str, name: str, swapped: bool
) -> None:
    value: Any = {"date": moment.date(), "date64": moment.date(), "time": moment.time(), "naive": moment}.get(name)
    if name == "zoned":
        value = moment.replace(tzinfo=datetime.UTC)
    rows = rows_of([moment, *moments])
    text = pc.scalar(value.isoformat())
    written = getattr(text, operator)(f(name)) if swapped else getattr(f(name), operator)(text)
    typed = pc.scalar(pa.scalar(value, TYPES[name]))
    expected = getattr(typed, operator)(f(name)) if swapped else getattr(f(name), operator)(typed)
    both = (written & (f("n") >= 0)) | f("text").isin(["x"])
    dataset = ds.dataset(pa.table(rows))  # whose filter may leave no row, unlike that of a batch in pyarrow 19
    for condition in (type_literals(written, SCHEMA), type_literals(both, SCHEMA)):
        assert dataset.to_table(filter=condition)["n"].equals(dataset.to_table(filter=expected)["n"])


def test_a_timestamp_without_an_offset_is_in_the_zone_of_the_column() -> None:
    rows = pa.record_batch({"zoned": pa.array([datetime.datetime(2024, 1, 2, tzinfo=PARIS)], TYPES["zoned"])})
    assert len(rows.filter(type_literals(f("zoned") == "2024-01-02", SCHEMA))) == 1
    assert len(rows.filter(type_literals(f("zoned") == "2024-01-01T23:00:00Z", SCHEMA))) == 1


@pytest.mark.parametrize("condition", [f("text") == "2024-01-01", f("n") > 1, f("naive").is_valid(), pc.scalar(True)])
def test_other_conditions_stay_as_they_are(condition: pc.Expression) -> None:
    assert type_literals(condition, SCHEMA) is condition


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (f("date") >= "2024-13-01", "feature 'date': .* compares date32.* with '2024-13-01'; write it as 2024-01-31"),
        (f("date") >= "yesterday\x1b[0m", r"with 'yesterday\\x1b\[0m'"),
        (f("time") >= "noon", "write it as 12:30:00"),
        (f("time") >= "12:30+01:00", "write it as 12:30:00"),
        (f("naive") == "2024-01-01T00:00:00Z", "write it as 2024-01-31T12:30:00"),
        (f("text") == 5, "feature 'text': the filter compares text with the number 5; write text, such as \"5\""),
        (f("text").isin([5]), "feature 'text': the filter compares text with the number 5; write text, such as \"5\""),
    ],
)
def test_text_of_another_form_is_refused(condition: pc.Expression, text: str) -> None:
    with pytest.raises(tfr.errors.SchemaError, match=text):
        type_literals(condition, SCHEMA)


def test_filters_of_text_on_columns_of_dates(tmp_path: Any) -> None:
    days = [datetime.date(2024, 1, day) for day in range(1, 31)]
    tfr.write_tfrecord({"day": days, "n": range(30)}, tmp_path / "a.tfrecord")
    for filters in ([("day", ">=", "2024-01-29")], [["day", "in", ["2024-01-29", "2024-01-30"]]]):
        assert tfr.read_table(tmp_path / "a.tfrecord", filters=filters)["n"].to_pylist() == [28, 29]
    with pytest.raises(tfr.errors.SchemaError, match="write it as 2024-01-31"):
        tfr.dataset(tmp_path / "a.tfrecord").filter(f("day") == "1.2.2024")


EARLIEST = datetime.datetime(1970, 1, 1)
WIDE = st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30)) | st.sampled_from(
    [EARLIEST, EARLIEST + datetime.timedelta(microseconds=1), EARLIEST + datetime.timedelta(milliseconds=1)]
)


@given(
    WIDE,
    OPERATORS,
    st.sampled_from(["s", "ms", "us", "ns"]),
    st.sampled_from([None, "UTC", "Asia/Tokyo"]),
    st.booleans(),
)
def test_times_are_compared_exactly_in_any_unit_and_zone(
    moment: datetime.datetime, operator: str, unit: str, zone: str | None, as_text: bool
) -> None:
    """Also with one that the column cannot have, which is before all others, or behind them."""
    utc = None if zone is None else datetime.UTC
    moments = [datetime.datetime(*date, tzinfo=utc) for date in [(1700, 1, 1), (1970, 1, 1), (2200, 1, 1)]]
    moment = moment.replace(tzinfo=utc)
    schema = pa.schema([("at", pa.timestamp(unit, zone)), ("id", pa.int64())])
    table = pa.table([[*moments, None], range(4)], schema=schema)
    value = pc.scalar(moment.isoformat()) if as_text else pc.scalar(moment)
    expected = [getattr(other, operator)(moment) for other in moments]

    def found(condition: pc.Expression) -> list[int]:
        return ds.dataset(table).to_table(filter=type_literals(condition, schema))["id"].to_pylist()

    condition = getattr(f("at"), operator)(value)
    assert found(condition) == [at for at in range(3) if expected[at]]
    assert found(~condition) == [at for at in range(3) if not expected[at]]
    members = pa.array([moment.isoformat(), None] if as_text else [moment, None])
    assert found(f("at").isin(members)) == [*(at for at in range(3) if moments[at] == moment), 3]


def test_filters_on_times(tmp_path: Path) -> None:
    moment = datetime.datetime(2024, 1, 31, tzinfo=datetime.UTC)
    at = pa.array([moment, None], pa.timestamp("ms", "Europe/Berlin"))
    times = {"at": at, "ns": pa.array([0, 1], pa.timestamp("ns"))}
    tfr.write_tfrecord(pa.table(times), tmp_path / "a")
    assert len(tfr.read_table(tmp_path / "a", filters=[("at", "==", moment)])) == 1
    assert len(tfr.read_table(tmp_path / "a", filters=[("ns", "<", datetime.datetime(3000, 1, 1))])) == 2
    assert len(tfr.read_table(tmp_path / "a", filters=[("ns", ">", "3000-01-01")])) == 0
    early = tfr.dataset(tmp_path / "a", filters=[("ns", ">", datetime.datetime(1500, 1, 1))])
    assert len(pickle.loads(pickle.dumps(early)).to_table()) == 2


@pytest.mark.parametrize("type_", [pa.duration("s"), pa.timestamp("s"), pa.timestamp("s", "UTC")], ids=str)
def test_filters_on_times_that_python_cannot_hold(tmp_path: Path, type_: pa.DataType) -> None:
    times = pa.array([0, *range(2**50, 2**50 + 200)], type_)
    tfr.write_tfrecord(pa.table({"t": times, "text": ["a"] * 201}), tmp_path / "a")
    members = f("t").isin(times[1:101])
    for filters, count in ((f("t") == times[1], 1), (~(f("t") < times[1]), 200), (members, 100)):
        dataset = tfr.dataset(tmp_path / "a", filters=filters & (f("text") == "a"))
        assert tfr.count(dataset) == count
        assert len(dataset.to_table()) == count
        assert len(pickle.loads(pickle.dumps(dataset)).to_table()) == count
        assert " rows where " in repr(dataset)
        assert dataset.explain().filters
        with tfr.open_random(tmp_path / "a") as records:
            assert len(records.select(filters)) == count
    assert condition_of(members).key != condition_of(f("t").isin(times[2:102])).key


@pytest.mark.parametrize(
    ("values", "expected"), [(["a"], [False, False]), (["a", None], [True, True]), ([1.5], [False, False])]
)
def test_a_column_without_values_has_no_member_but_null(values: list[Any], expected: list[bool]) -> None:
    rows = pa.table({"nothing": pa.nulls(2)})
    condition = type_literals(f("nothing").isin(values), rows.schema)
    assert ds.dataset(rows).to_table({"found": condition})["found"].to_pylist() == expected


@pytest.mark.parametrize("type_", [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")])
@pytest.mark.parametrize("text", ["00:00:01", "00:00:01.5", "00:00:01.000000005", "00:01"])
def test_text_is_a_time_of_day_with_all_digits_of_its_second(type_: pa.DataType, text: str) -> None:
    nanoseconds = [None, 10**9, 1_500_000_000, 1_000_000_005, 60 * 10**9]
    column = pa.array(nanoseconds, pa.time64("ns")).cast(type_, safe=False)
    batch = pa.RecordBatch.from_arrays([column], ["x"])
    at = 1 + ["00:00:01", "00:00:01.5", "00:00:01.000000005", "00:01"].index(text)
    times = column.cast(pa.time64("ns")).cast("int64").to_pylist()
    wanted = [time is not None and time == nanoseconds[at] for time in times]
    for filters in ([("x", "==", text)], [("x", "in", [text])], [("x", "in", [text, "23:00:00"])]):
        assert RowFilter.for_schema(filters, batch.schema).mask(batch).to_pylist() == wanted
    others = RowFilter.for_schema([("x", "not in", [None, text])], batch.schema).mask(batch).to_pylist()
    assert others == [valid and not own for valid, own in zip(column.is_valid().to_pylist(), wanted, strict=True)]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (pa.array([True, False]), 5),
        (pa.array([True, False]), "true"),
        (pa.array([0, 1], pa.int8()), b"1"),
        (pa.array([b"1"]), 1),
        (pa.array([0, 1], pa.timestamp("s")), 0),
        (pa.array([0, 1], pa.duration("ns")), 1),
    ],
)
@pytest.mark.parametrize("operator", ["==", "in", "not in"])
def test_values_of_another_kind_are_refused_by_every_operator(column: pa.Array, value: Any, operator: str) -> None:
    schema = pa.schema({"x": column.type})
    with pytest.raises(SchemaError, match=r"feature 'x': the filter compares .* with .*; write values of the type"):
        RowFilter.for_schema([("x", operator, value if operator == "==" else [value])], schema)
