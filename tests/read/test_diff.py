"""Comparing datasets: columns, counts and values, in order and regardless of it."""

from __future__ import annotations

import datetime as dt
import tempfile
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import rounds
from servers import Bucket
from tfrecord_io.read.diff import _common_columns, _digest, _is_equal
from traced import peak

ROWS = st.lists(st.tuples(st.integers(-2, 2), st.lists(st.sampled_from([0.5, float("nan")]), max_size=2)), max_size=12)


def table(rows: list[tuple[int, list[float]]]) -> pa.Table:
    numbers, lists = [row[0] for row in rows], [row[1] for row in rows]
    return pa.table({"n": pa.array(numbers, pa.int64()), "f": pa.array(lists, pa.list_(pa.float32()))})


@settings(max_examples=rounds(100))
@given(ROWS, ROWS, st.integers(1, 3), st.booleans())
def test_differences_are_those_of_the_rows(a: list, b: list, shards: int, any_order: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tfr.write_tfrecord(table(a), f"{folder}/a/x", shards=1)
        tfr.write_tfrecord(table(b), f"{folder}/b/x", shards=shards, compression="gzip")
        report = tfr.diff(f"{folder}/a", f"{folder}/b", any_order=any_order, limit=3)
    left, right = ([repr(row) for row in rows] for rows in (a, b))
    if any_order:
        differing = ((Counter(left) - Counter(right)) + (Counter(right) - Counter(left))).total()
    else:
        differing = sum(x != y for x, y in zip(left, right, strict=False)) + abs(len(a) - len(b))
    assert (report.records, report.differing, report.schema) == ((len(a), len(b)), differing, ())
    assert report.equal == (not differing)


def test_values_are_shown(tmp_path: Path) -> None:
    a = {"n": [1, 2, 3], "t": [[0] * 1000] * 3, "b": [b"\0" * 500] * 3, "s": ["x", None, "z"]}
    b = {
        **a,
        "n": [1, 2, 4],
        "t": [[0] * 1000, [0] * 999 + [7], [0] * 1000],
        "b": [b"\0" * 500, b"\0" * 499 + b"a"] * 1,
    }
    b["b"] = [b"\0" * 500, b"\0" * 499 + b"a", b"\0" * 500]
    tfr.write_tfrecord(a, tmp_path / "a")
    tfr.write_tfrecord(b, tmp_path / "b")
    report = tfr.diff(tmp_path / "a", tmp_path / "b")
    assert [(d.record, d.column, d.a, d.b) for d in report.values] == [
        (1, "t", "item 999 of 1,000: 0", "item 999 of 1,000: 7"),
        (1, "b", "byte 499 of 500: 0", "byte 499 of 500: 97"),
        (2, "n", "3", "4"),
    ]
    assert report.differing == 2
    assert [d.record for d in tfr.diff(tmp_path / "a", tmp_path / "b", limit=1).values] == [1, 1]
    assert "3 records and 3 records, 2 records differ" in str(report)


@pytest.mark.parametrize("any_order", [False, True])
def test_values_of_later_batches_are_shown(any_order: bool, tmp_path: Path) -> None:
    for name, last in ("a", -1), ("b", -2):
        tfr.write_tfrecord({"n": [*range(70_000), last]}, tmp_path / name)  # a batch has 65,536
    report = tfr.diff(tmp_path / "a", tmp_path / "b", any_order=any_order)
    assert {(d.record, value) for d in report.values for value in (d.a, d.b)} >= {(70_000, "-1"), (70_000, "-2")}


def test_columns_and_counts(tmp_path: Path) -> None:
    tfr.write_tfrecord(pa.table({"n": pa.array([1, 2], pa.uint8()), "a": [1, 2]}), tmp_path / "a")
    tfr.write_tfrecord(pa.table({"n": pa.array([1], pa.int32()), "b": ["x"]}), tmp_path / "b")
    report = tfr.diff(tmp_path / "a", tmp_path / "b")
    assert [(d.column, d.a, d.b) for d in report.schema] == [
        ("n", "uint8", "int32"),
        ("a", "int64", None),
        ("b", None, "string"),
    ]
    assert (report.records, report.differing, report.equal) == ((2, 1), 1, False)


def test_records_that_only_one_has(tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [1, 2, 2, 3]}, tmp_path / "a")
    tfr.write_tfrecord({"n": [3, 2, 4, 1]}, tmp_path / "b")
    report = tfr.diff(tmp_path / "a", tmp_path / "b", any_order=True)
    assert [(d.record, d.a, d.b) for d in report.values] == [(1, "2", None), (2, None, "4")]
    assert report.differing == 2


def test_a_shuffled_copy_in_a_bucket(s3: Bucket, tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": list(range(100))}, tmp_path / "a")
    tfr.shuffle(tmp_path / "a", s3.url("b@2"), storage_options=s3.storage_options)
    other = tfr.dataset(s3.url("b@2"), storage_options=s3.storage_options)
    assert not tfr.diff(tmp_path / "a", other).equal
    assert tfr.diff(tmp_path / "a", other, any_order=True).equal


def test_damage_raises(engine: str, tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [1, 2]}, tmp_path / "a")
    (tmp_path / "b").write_bytes((tmp_path / "a").read_bytes()[:-1])
    with pytest.raises(tfr.errors.TruncatedRecordError):
        tfr.diff(tmp_path / "a", tmp_path / "b")


TIMES = [dt.datetime(2020, 10, 25, hour, 30, tzinfo=dt.UTC) for hour in (0, 1)]  # both are 02:30 in Paris
SAME: list[Any] = [0, 0.0, -0.0, False, 1, 1.0, True, 2**53 + 1, float(2**53), 1e300, 0.5]
SAME += [float("inf"), float("nan"), None, "0"]
SAME += [Decimal("0.00"), Decimal("0.5"), Decimal("0.50"), Decimal("0.1"), 0.1, Decimal(2**53 + 1), Decimal("1e300")]
SAME += [time.astimezone(ZoneInfo(zone)) for zone in ("UTC", "Europe/Paris") for time in TIMES] + [pd.NaT]
SAME += [time.replace(tzinfo=None) for time in TIMES] + [pd.Timestamp(TIMES[0]), pd.Timestamp(1, tz="UTC")]
SAME += [np.datetime64(2**50, "s"), np.datetime64(2**50 * 1000, "ms"), np.datetime64(2**50, "ms")]
SAME += [dt.timedelta(0), np.timedelta64(2**50, "s"), np.timedelta64(2**50 * 1000, "ms"), pd.Timedelta(1, "ns")]
VALUES = st.recursive(st.sampled_from(SAME), lambda inner: st.lists(inner, max_size=3))


@given(VALUES, VALUES)
def test_equal_values_count_as_the_same_record(a: object, b: object) -> None:
    assert (_digest(a) == _digest(b)) == _is_equal([a], [b])


@pytest.mark.parametrize("any_order", [False, True])
def test_negative_zero_equals_zero(any_order: bool, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": np.array([0.0, -0.0], np.float32), "l": [[0.0], [-0.0]]}, tmp_path / "a", float64="round")
    tfr.write_tfrecord({"x": np.array([-0.0, -0.0], np.float32), "l": [[0.0], [0.0]]}, tmp_path / "b", float64="round")
    assert tfr.diff(tmp_path / "a", tmp_path / "b", any_order=any_order).equal


KEYED = st.dictionaries(st.integers(0, 8), st.sampled_from(["x", "y", None]), max_size=8)


@settings(max_examples=rounds(60))
@given(KEYED, KEYED, st.randoms(use_true_random=False), st.integers(0, 4))
def test_records_of_one_key_are_compared(a: dict, b: dict, random: Random, limit: int) -> None:
    keys = list(b)
    random.shuffle(keys)
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in (("a", a), ("b", {key: b[key] for key in keys})):
            columns = {"id": pa.array(rows.keys(), pa.int64()), "s": pa.array(rows.values(), pa.string())}
            tfr.write_tfrecord(pa.table(columns), f"{folder}/{name}/x", shards=1)
        report = tfr.diff(f"{folder}/a", f"{folder}/b", key="id", limit=limit)
    both = a.keys() & b.keys()
    changed = [key for key in both if a[key] != b[key]]
    assert (report.changed, report.added, report.removed) == (len(changed), len(b) - len(both), len(a) - len(both))
    assert report.equal == (a == b)
    assert len({value.key for value in report.values}) == min(limit, report.differing)
    for value in report.values:
        sides = [rows.get(int(value.key or -1)) for rows in (a, b)]
        if value.column == "s" and int(value.key or -1) in both:
            assert value.a != value.b
            assert [value.a, value.b] == ["null" if side is None else side for side in sides]


def test_keys_that_identify_no_record(tmp_path: Path) -> None:
    tfr.write_tfrecord({"id": [1, 2, 1], "s": ["a", "b", "c"]}, tmp_path / "a")
    tfr.write_tfrecord({"id": [1, 2, 3]}, tmp_path / "b")
    with pytest.raises(ValueError, match=r"records 0 and 2 of a have the key 1: .*tfr.dedupe"):
        tfr.diff(tmp_path / "a", tmp_path / "b", key="id")
    with pytest.raises(tfr.errors.FeatureNotFoundError, match=r"'s': .*/b has no such column"):
        tfr.diff(tmp_path / "a", tmp_path / "b", key=["id", "s"])
    with pytest.raises(ValueError, match="pass only one of them"):
        tfr.diff(tmp_path / "a", tmp_path / "b", key="id", any_order=True)


@pytest.mark.parametrize("how", [{}, {"any_order": True}, {"key": "n"}])
def test_equal_values_of_other_types_are_equal(how: dict[str, Any], tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [1, 2, 3], "v": [[1.0], [], [0.0]]}, tmp_path / "a", float64="round")
    tfr.write_tfrecord(pa.table({"n": pa.array([1, 2, 3], pa.int32()), "v": [[1], [], [0]]}), tmp_path / "b")
    report = tfr.diff(tmp_path / "a", tmp_path / "b", **how)
    assert [d.column for d in report.schema] == ["n", "v"]
    assert report.differing == 0


def times(unit: str, *zone: str) -> pa.Array:
    """Also the hour that clocks in Paris repeat, and one beyond the dates of Python."""
    seconds = pa.array([0, 1603585800, 1603589400, None, *[2**40] * (unit == "s")], pa.timestamp("s"))
    return seconds.cast(pa.timestamp(unit)).cast(pa.timestamp(unit, *zone))


DECIMALS = [Decimal("1.5"), Decimal("-2"), None, Decimal(10**15) + Decimal("0.1")]
SAME_VALUES = {
    "units": (times("us"), times("ns")),
    "zones": (times("us", "UTC"), times("us", "Europe/Paris")),
    "a zone that Python does not know": (times("us", "UTC"), times("ns", "Mars/Olympus")),
    "far times": (times("s"), pa.concat_arrays([times("ms"), pa.array([2**40 * 1000], pa.timestamp("ms"))])),
    "durations": (pa.array([1, 2], pa.duration("us")), pa.array([1000, 2000], pa.duration("ns"))),
    "far durations": (pa.array([2**50], pa.duration("s")), pa.array([2**50 * 1000], pa.duration("ms"))),
    "scales": (pa.array(DECIMALS, pa.decimal128(20, 1)), pa.array(DECIMALS, pa.decimal128(38, 2))),
    "decimals and integers": (pa.array([1, -2, None]).cast(pa.decimal128(25, 1)), pa.array([1, -2, None])),
    "decimals and floats": (pa.array([1.5, 0.25]).cast(pa.decimal128(10, 2)), pa.array([1.5, 0.25])),
}


@pytest.mark.parametrize("in_lists", [False, True])
@pytest.mark.parametrize("pair", SAME_VALUES)
def test_equal_values_are_equal_in_order_and_by_hash(pair: str, in_lists: bool, tmp_path: Path) -> None:
    for name, values in zip("ab", SAME_VALUES[pair], strict=True):
        lists = pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), values)
        tfr.write_tfrecord(pa.table({"k": lists if in_lists else values}), tmp_path / name, float64="raw")
    for how in ({}, {"any_order": True}, {"key": "k"}):
        assert tfr.diff(tmp_path / "a", tmp_path / "b", **how).differing == 0


@pytest.mark.parametrize("how", [{}, {"any_order": True}, {"key": "k"}])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        (times("us", "Europe/Paris")[1:2], times("us", "Europe/Paris")[2:3]),  # 02:30 twice
        (times("us", "UTC")[:1], times("us")[:1]),
        (pa.array([0.1]).cast(pa.decimal128(3, 1)), pa.array([0.1])),  # the float is a little more
        (pa.array([1], pa.timestamp("us")), pa.array([1001], pa.timestamp("ns"))),
    ],
    ids=str,
)
def test_other_values_differ_in_order_and_by_hash(a: pa.Array, b: pa.Array, how: dict, tmp_path: Path) -> None:
    for name, values in (("a", a), ("b", b)):
        tfr.write_tfrecord(pa.table({"k": values}), tmp_path / name, float64="raw")
    assert tfr.diff(tmp_path / "a", tmp_path / "b", **how).differing == (2 if how else 1)


@pytest.mark.parametrize("how", [{}, {"any_order": True}, {"key": "n"}])
def test_nan_equals_nan_in_maps(how: dict[str, Any], tmp_path: Path) -> None:
    maps = pa.array([[("k", float("nan"))], [("k", 1.0)]], pa.map_(pa.string(), pa.float32()))
    for name in "ab":
        tfr.write_tfrecord(pa.table({"n": [1, 2], "m": maps}), tmp_path / name)
    assert tfr.diff(tmp_path / "a", tmp_path / "b", **how).equal


def test_memory_of_a_record_is_the_documented_one(tmp_path: Path) -> None:
    rows = 300_000
    tfr.write_tfrecord({"x": np.arange(rows)}, tmp_path / "a.tfrecord")
    assert peak(lambda: tfr.diff(tmp_path / "a.tfrecord", tmp_path / "a.tfrecord", any_order=True)) < 66 * 2 * rows
    assert peak(lambda: tfr.diff(tmp_path / "a.tfrecord", tmp_path / "a.tfrecord", key="x")) < 126 * 2 * rows


def test_the_time_for_names_is_in_proportion_to_their_number() -> None:
    schema = pa.schema([(f"x{i}", pa.int8()) for i in range(10_000)])
    begin = time.process_time()
    assert _common_columns(schema, schema) == schema.names
    assert time.process_time() - begin < 0.5  # some seconds where the names are listed for each of them
