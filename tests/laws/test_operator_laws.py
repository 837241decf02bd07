"""Each operator has one answer, by whatever a row is found: by its record, an index, its folder, or pandas."""

from __future__ import annotations

import datetime
import math
import operator
import tempfile
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading_modes import matching_records_only
from rounds import rounds

BERLIN = ZoneInfo("Europe/Berlin")
NIGHTS = [datetime.datetime(2026, 10, 24, 21) + datetime.timedelta(minutes=30) * n for n in range(14)]  # in UTC
DAYS = [datetime.date(2026, 10, 24), datetime.date(2026, 10, 25), datetime.date(2026, 10, 26)]
FLOATS = [0.1, 0.2, 0.3, 1.5, 0.0, -0.0, -1.0, 16777216.0, math.inf]
OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def at(value: Any, zone: Any) -> pd.Timestamp:
    return pd.Timestamp(value, tz=zone) if getattr(value, "tzinfo", None) is None else pd.Timestamp(value)


# The type, the values, the literals, and what pandas compares instead of a literal.
CASES: dict[str, tuple[pa.DataType, list[Any], list[Any], Any]] = {
    "float32": (pa.float32(), [*FLOATS, math.nan], [*FLOATS, 0, 1, -1, 0.1 + 1e-12], lambda value: value),
    "float64": (pa.float64(), [*FLOATS, math.nan], [*FLOATS, 0, 1, -1, 0.1 + 1e-12], lambda value: value),
    "int64": (pa.int64(), [-1, 0, 1, 2], [-1, 0, 1, 2, 1.5, -0.0, 1.0], lambda value: value),
    "int8": (pa.int8(), [-128, 0, 127], [-128, 0, 127, 0.5, -0.0], lambda value: value),
    "text": (pa.string(), ["", "a", "B", "é"], ["", "a", "B", "é", "b"], lambda value: value),
    "naive": (
        pa.timestamp("us"),
        NIGHTS,
        [*NIGHTS, *DAYS, "2026-10-25", "2026-10-25T00:30:00"],
        lambda value: at(value, None),
    ),
    "zoned": (
        pa.timestamp("us", "Europe/Berlin"),
        [night.replace(tzinfo=datetime.UTC) for night in NIGHTS],
        [*(night.replace(tzinfo=datetime.UTC) for night in NIGHTS), *DAYS, "2026-10-25", "2026-10-25T04:00:00"],
        lambda value: at(value, BERLIN),
    ),
    "date": (pa.date32(), DAYS, [*DAYS, "2026-10-25"], lambda value: at(value, None)),
}
IN_FOLDERS = ("int64", "text", "date")


def expected(table: pa.Table, symbol: str, literal: Any, to_pandas: Any) -> list[int]:
    """What pandas finds; a missing value fulfils ``not in`` only."""
    column = table["x"]
    rows = column.to_pandas()
    if pa.types.is_date(column.type):
        rows = pd.to_datetime(rows)
    is_valid = column.is_valid().to_numpy()
    if symbol in ("in", "not in"):
        found = sum((rows == to_pandas(each) for each in literal), pd.Series([False] * len(rows)))
        found = found.astype(bool) & is_valid
        return table["id"].filter(pa.array(found if symbol == "in" else ~found)).to_pylist()
    return table["id"].filter(pa.array(OPERATORS[symbol](rows, to_pandas(literal)).astype(bool) & is_valid)).to_pylist()


@pytest.mark.parametrize("name", CASES)
def test_one_answer(name: str) -> None:
    type_, values, literals, to_pandas = CASES[name]
    with_index: list[int] = []

    @settings(max_examples=rounds(25))
    @given(
        drawn=st.lists(st.sampled_from([*values, None]), min_size=1, max_size=12),
        literal=st.lists(st.sampled_from(literals), min_size=1, max_size=3),
        symbol=st.sampled_from([*OPERATORS, "in", "not in"]),
    )
    def law(drawn: list[Any], literal: list[Any], symbol: str) -> None:
        table = pa.table({"x": pa.array(drawn, type_, from_pandas=False), "id": range(len(drawn))})
        is_list = symbol in ("in", "not in")
        if is_list:  # of values of one type
            is_number = isinstance(literal[0], int | float)
            literal = [each for each in literal if is_number or type(each) is type(literal[0])]
        condition = [("x", symbol, literal if is_list else literal[0])]
        rows = expected(table, *condition[0][1:], to_pandas)
        with tempfile.TemporaryDirectory() as folder, matching_records_only() as used:
            plain, indexed, folders = (str(Path(folder, each)) for each in ("plain", "indexed", "folders"))
            for path in (plain, indexed):
                tfr.write_tfrecord(table, path, float64="raw")
            tfr.build_index(indexed, columns=["x"])
            paths = [plain, indexed]
            if name in IN_FOLDERS:
                tfr.write_tfrecord(table, f"{folders}/", partition_by=["x"])
                paths.append(folders)
            for path in paths:
                found = tfr.read_table(path, filters=condition, columns=["id"])["id"].to_pylist()
                assert sorted(found) == rows, path
                found = tfr.dataset(path).filter(condition).to_table()["id"].to_pylist()
                assert sorted(found) == rows, path
            with tfr.open_random(indexed) as records:
                assert records.select(condition).numbers.tolist() == rows
        with_index.extend(used)

    law()
    assert with_index


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("number", [0.1, 0.0, -0.0, 0.25])
def test_other_libraries_find_the_rows_that_they_find_in_arrow(tmp_path: Path, index: bool, number: float) -> None:
    duckdb, pl = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    table = pa.table({"x": pa.array([*FLOATS, None], pa.float32()), "id": range(len(FLOATS) + 1)})
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    if index:
        tfr.build_index(tmp_path / "a.tfrecord", columns=["x"])
    frame, own = tfr.scan_polars(tmp_path / "a.tfrecord"), pl.DataFrame(table)
    for compare in OPERATORS.values():
        for literal in (pl.lit(number), pl.lit(number, pl.Float64), pl.lit(number, pl.Float32)):
            condition = compare(pl.col("x"), literal)
            assert frame.filter(condition).collect().equals(own.filter(condition)), condition
    with duckdb.connect() as connection:
        connection.register("own", table)
        tfr.register_duckdb(connection, tmp_path / "a.tfrecord", name="files")
        for symbol in ("=", "<>", "<", "<=", ">", ">="):
            for literal in (str(number), f"{number}::DOUBLE", f"{number}::FLOAT"):
                query = f"select id from {{}} where x {symbol} {literal} order by id"
                found, rows = (connection.sql(query.format(name)).fetchall() for name in ("files", "own"))
                assert found == rows, query


@pytest.mark.parametrize(
    ("literal", "reason"),
    [
        (
            "2026-10-25T02:30:00",
            r"2026-10-25 02:30:00 occurs twice in Europe/Berlin; .*02:30:00\+02:00.*02:30:00\+01:00",
        ),
        ("2026-03-29T02:30:00", r"02:30:00 never occurs in Europe/Berlin: .*'2026-03-29T03:00:00\+02:00'"),
        (datetime.datetime(2026, 10, 25), "Cannot compare timestamp with timezone to timestamp without timezone"),
    ],
)
def test_a_time_that_is_not_one_in_the_zone(tmp_path: Path, literal: Any, reason: str) -> None:
    rows = pa.array([night.replace(tzinfo=datetime.UTC) for night in NIGHTS], pa.timestamp("us", "Europe/Berlin"))
    tfr.write_tfrecord(pa.table({"x": rows}), tmp_path / "a.tfrecord")
    for symbol in ("==", ">=", "in", "not in"):
        condition = [("x", symbol, [literal] if "in" in symbol else literal)]
        with pytest.raises(tfr.errors.SchemaError, match=reason):
            tfr.read_table(tmp_path / "a.tfrecord", filters=condition)


def test_a_day_that_begins_twice_or_later(tmp_path: Path) -> None:
    """The clocks of Havana and Beirut are changed at midnight."""
    for zone, day, reason in (
        ("America/Havana", datetime.date(2026, 11, 1), "occurs twice"),
        ("Asia/Beirut", datetime.date(2026, 3, 29), "never occurs"),
    ):
        table = pa.table({"x": pa.array([0], pa.timestamp("us", zone))})
        tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
        for literal in (day, day.isoformat()):
            with pytest.raises(tfr.errors.SchemaError, match=reason):
                tfr.read_table(tmp_path / "a.tfrecord", filters=[("x", ">=", literal)])


def test_dates_are_compared_with_times(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": DAYS}, tmp_path / "a.tfrecord")
    noon = datetime.datetime(2026, 10, 25, 12)
    for symbol, rows in (("==", []), ("in", []), ("not in", DAYS), ("!=", DAYS), ("<", DAYS[:2]), (">=", DAYS[2:])):
        condition = [("x", symbol, [noon] if "in" in symbol else noon)]
        assert tfr.read_table(tmp_path / "a.tfrecord", filters=condition)["x"].to_pylist() == rows
    with pytest.raises(tfr.errors.SchemaError, match="compares dates with a time in a time zone; write a date"):
        tfr.read_table(tmp_path / "a.tfrecord", filters=pc.field("x") >= noon.replace(tzinfo=datetime.UTC))


@pytest.mark.parametrize(
    "type_", [pa.timestamp("ns"), pa.timestamp("ns", "Asia/Tokyo"), pa.timestamp("us"), pa.duration("ns")]
)
@pytest.mark.parametrize("index", [False, True])
def test_times_of_pandas_are_compared_with_their_nanoseconds(tmp_path: Path, type_: pa.DataType, index: bool) -> None:
    values = [0, 1, 2, 1000, 1001, -1]
    tfr.write_tfrecord({"x": pa.array(values, pa.int64()).cast(type_)}, tmp_path / "a.tfrecord")
    if index:
        tfr.build_index(tmp_path / "a.tfrecord", columns=["x"])
    stored = [value * (1000 if type_.unit == "us" else 1) for value in values]
    for number in (0, 1, 1000, 1001, -1):
        time = pd.Timedelta(number) if pa.types.is_duration(type_) else pd.Timestamp(number, tz=type_.tz)
        for symbol, holds in OPERATORS.items():
            expected = [value for value, own in zip(values, stored, strict=True) if holds(own, number)]
            found = tfr.read_table(tmp_path / "a.tfrecord", filters=[("x", symbol, time)])["x"]
            assert found.cast(pa.int64()).to_pylist() == expected, (symbol, number)
        for members in ([time], [time, None], np.array([time], dtype=object), pd.Series([time], dtype=object)):
            found = tfr.read_table(tmp_path / "a.tfrecord", filters=[("x", "in", members)])["x"]
            expected = [value for value, own in zip(values, stored, strict=True) if own == number]
            assert found.cast(pa.int64()).to_pylist() == expected
