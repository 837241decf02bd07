"""Columns added by key: each record gets those of the row with its key, as a dict would give them."""

from __future__ import annotations

import datetime
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from limited import limited
from rounds import rounds
from tfrecord_io.read.join import _check_columns, _Keys, _take_rows

INTEGERS = st.none() | st.integers(-2, 5)
TEXTS = st.none() | st.sampled_from(["", "a", "b", "c"])


@settings(max_examples=rounds(60))
@given(
    st.lists(st.tuples(INTEGERS, TEXTS), max_size=30),
    st.lists(st.tuples(INTEGERS, TEXTS), max_size=12, unique=True),
    st.sampled_from([["i"], ["s"], ["i", "s"], ["s", "i"]]),
    st.booleans(),
)
def test_each_record_gets_the_row_of_its_key(
    records: list[tuple], rows: list[tuple], on: list[str], as_categories: bool
) -> None:
    positions = ["is".index(name) for name in on]
    wanted: dict[tuple, int] = {}
    for number, row in enumerate(rows):
        wanted.setdefault(tuple(row[position] for position in positions), number)
    kept = sorted(wanted.values())
    columns: dict[str, Any] = {
        "i": pa.array([rows[k][0] for k in kept], pa.int32()),
        "s": pa.array([rows[k][1] for k in kept], pa.string()),
        "value": pa.array([[k] * k for k in kept], pa.list_(pa.int64())),
    }
    if as_categories:
        columns["s"] = columns["s"].dictionary_encode()
    table = pa.table({name: columns[name] for name in [*on, "value"]})
    data = pa.table(
        {"i": pa.array([r[0] for r in records], pa.int64()), "s": pa.array([r[1] for r in records], pa.string())}
    )
    with tempfile.TemporaryDirectory() as folder:
        tfr.write_tfrecord(data, f"{folder}/d", shards=2)
        actual = tfr.join(tfr.dataset(f"{folder}/d", batch_size=7), table, on=on).read_all()
    assert actual.select(["i", "s"]).equals(data)
    for record, value in zip(records, actual["value"].to_pylist(), strict=True):
        key = tuple(record[position] for position in positions)
        expected = None if None in key or key not in wanted else [wanted[key]] * wanted[key]
        assert value == expected


def test_it_is_written_with_tensors_and_frames(tmp_path: Path) -> None:
    tfr.write_tfrecord({"id": ["a", "b", "c"], "x": [1, 2, 3]}, tmp_path / "a.tfrecord")
    frame = pd.DataFrame({"id": ["c", "a"], "score": [0.5, 0.25]})
    with tfr.join(tmp_path / "a.tfrecord", frame, on="id") as joined:
        tfr.write_tfrecord(joined, tmp_path / "b.tfrecord", float64="raw")
    assert tfr.read_table(tmp_path / "b.tfrecord").to_pydict() == {
        "id": ["a", "b", "c"],
        "x": [1, 2, 3],
        "score": [0.25, None, 0.5],
    }
    empty = pa.table({"id": pa.array([], pa.string()), "n": pa.array([], pa.int64())})
    assert tfr.join(tmp_path / "a.tfrecord", empty, on="id").read_all()["n"].null_count == 3


def test_zeros_are_equal_and_nan_is_nan(tmp_path: Path) -> None:
    data = pa.table({"k": pa.array([0.0, -0.0, float("nan"), None], pa.float32())})
    tfr.write_tfrecord(data, tmp_path / "a.tfrecord")
    for zero in (0.0, -0.0):
        joined = tfr.join(tmp_path / "a.tfrecord", {"k": [float("nan"), zero], "n": [1, 2]}, on="k").read_all()
        assert joined["n"].to_pylist() == [2, 2, 1, None]
    with pytest.raises(ValueError, match="rows 0 and 1 of the table have the key"):
        tfr.join(tmp_path / "a.tfrecord", {"k": [0.0, -0.0], "n": [1, 2]}, on="k")


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_all_nan_are_one_key(tmp_path: Path, dtype: str) -> None:
    keys = np.array([np.nan, -np.nan, 1.0], dtype)
    keys.view(f"u{keys.itemsize}")[0] += 1
    tfr.write_tfrecord({"k": keys}, tmp_path / "a.tfrecord", float64="raw")
    joined = tfr.join(tmp_path / "a.tfrecord", {"k": np.array([np.nan], dtype), "n": [1]}, on="k").read_all()
    assert joined["n"].to_pylist() == [1, 1, None]
    with pytest.raises(ValueError, match="expected each key once"):
        tfr.join(tmp_path / "a.tfrecord", {"k": keys, "n": [1, 2, 3]}, on="k")


@pytest.mark.parametrize(
    ("keys", "others"),
    [
        ([1, 2], ["1", "02"]),
        (["1", "2"], [1, 2]),
        ([True, False], [1, 0]),
        ([1, 0], [True, False]),
        (["true", "x"], [True, False]),
        ([1, 2], pa.array([1, 2], pa.timestamp("us"))),
        (pa.array([1, 2], pa.timestamp("us")), pa.array([1, 2], pa.timestamp("us", "Europe/Paris"))),
        (pa.array([1, 2], pa.timestamp("us", "Europe/Paris")), pa.array([1, 2], pa.timestamp("us"))),
    ],
)
def test_values_of_other_kinds_are_no_keys(tmp_path: Path, keys: Any, others: Any) -> None:
    tfr.write_tfrecord({"k": keys}, tmp_path / "a.tfrecord")
    with pytest.raises(
        tfr.errors.FeatureTypeError, match=r"'k': its type is .* in the records, and .* in the table; convert"
    ):
        tfr.join(tmp_path / "a.tfrecord", {"k": others, "n": [1, 2]}, on="k")


@pytest.mark.parametrize("beyond", [2**64, 2**63, 2**40, "x", 1.5, np.uint64(2**63)])
def test_rows_of_keys_that_no_record_can_have_can_be_left_out(tmp_path: Path, beyond: Any) -> None:
    """Converting the column to the type of the records fails for these, too."""
    tfr.write_tfrecord({"k": pa.array([1, 2], pa.int32())}, tmp_path / "a.tfrecord")
    with pytest.raises((tfr.errors.EncodeError, tfr.errors.FeatureTypeError), match=r"'k': .*leave out the rows"):
        tfr.join(tmp_path / "a.tfrecord", {"k": [beyond], "n": [1]}, on="k")


def test_a_time_of_day_is_no_date(tmp_path: Path) -> None:
    tfr.write_tfrecord({"k": pa.array([1, 2, None], pa.date32())}, tmp_path / "a.tfrecord")
    for hours, joined in [([48, 24, None], [1, 0, None]), ([48, 29, None], None)]:
        other = pa.table({"k": pa.array(hours, pa.int64()), "n": [0, 1, 2]})
        seconds = pa.compute.multiply(other["k"], 3600).cast(pa.timestamp("s"))
        table = other.set_column(0, "k", seconds)
        if joined is None:
            with pytest.raises(tfr.errors.FeatureTypeError, match=r"timestamp\[s\] in the table: .*midnight"):
                tfr.join(tmp_path / "a.tfrecord", table, on="k")
        else:
            assert tfr.join(tmp_path / "a.tfrecord", table, on="k").read_all()["n"].to_pylist() == joined


@pytest.mark.parametrize("type_", [pa.time32("s"), pa.time64("us")])
def test_a_time_with_a_date_is_no_time_of_day(tmp_path: Path, type_: pa.DataType) -> None:
    time = datetime.time(12)
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord(pa.table({"t": pa.array([time], type_)}), path)
    for others in (pa.array([time], pa.time64("ns")), pa.nulls(1)):
        joined = tfr.join(path, pa.table({"t": others, "y": [1]}), on="t").read_all()
        assert joined["y"].to_pylist() == [None if others.null_count else 1]
    stamps = pa.array([datetime.datetime(2024, 1, 1, 12)], pa.timestamp("us"))
    with pytest.raises(tfr.errors.FeatureTypeError, match=r"timestamp\[us\] in the table"):
        tfr.join(path, pa.table({"t": stamps, "y": [1]}), on="t")


def test_what_cannot_be_joined(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"id": [1, 2], "x": [1, 2], "xs": [[1], [2, 3]]}, path)
    with pytest.raises(ValueError, match="rows 0 and 2 of the table have the key 1: expected each key once"):
        tfr.join(path, {"id": [1, 2, 1], "y": [1, 2, 3]}, on="id")
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="'y': no such column in the records"):
        tfr.join(path, {"y": [1]}, on="y")
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="'id': no such column in the table"):
        tfr.join(path, {"y": [1]}, on="id")
    with pytest.raises(tfr.errors.SchemaError, match="'x': both the records and the table have this column; rename it"):
        tfr.join(path, {"id": [1], "x": [1]}, on="id")
    with pytest.raises(
        tfr.errors.FeatureTypeError, match="'id': its type is int64 in the records, and string in the table"
    ):
        tfr.join(path, {"id": ["one"], "y": [1]}, on="id")
    with pytest.raises(tfr.errors.FeatureTypeError, match=r"'xs': its type is list.*needs a column of single values"):
        tfr.join(path, {"xs": [[1]], "y": [1]}, on="xs")
    with pytest.raises(TypeError, match=r"^join\(\) got an unexpected keyword argument 'how'.* columns, on, progress"):
        tfr.join(path, {"id": [1], "y": [1]}, on="id", how="inner")
    with pytest.raises(ValueError, match=r"on=\[\]"):
        tfr.join(path, {"id": [1]}, on=[])


@pytest.mark.parametrize("type_", [pa.timestamp("s"), pa.timestamp("s", "UTC"), pa.duration("s")], ids=str)
def test_a_repeated_key_that_python_cannot_hold_is_named(tmp_path: Path, type_: pa.DataType) -> None:
    keys = pa.array([0, 2**50, 2**50], type_)
    tfr.write_tfrecord(pa.table({"k": keys}), tmp_path / "a.tfrecord")
    with pytest.raises(ValueError, match=r"rows 1 and 2 of the table have the key np.\w+64\('?\d.*: expected each key"):
        tfr.join(tmp_path / "a.tfrecord", pa.table({"k": keys, "n": [1, 2, 3]}), on="k")


LAYOUTS = {
    "view": pa.array(["b"], pa.string_view()),
    "run-ends": pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array(["b"])),
    "categories of views": pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array(["b"], pa.string_view())),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tables_of_any_layout(tmp_path: Path, layout: str) -> None:
    tfr.write_tfrecord({"id": ["a", "b"]}, tmp_path / "x.tfrecord")
    lists = pa.array([["x", None]], pa.list_view(pa.string_view()))
    table = pa.table({"id": LAYOUTS[layout], "other": LAYOUTS[layout], "lists": lists})
    joined = tfr.join(tmp_path / "x.tfrecord", table, on="id").read_all()
    assert [row["other"] for row in joined.to_pylist()] == [None, "b"]
    assert joined["lists"].to_pylist() == [None, ["x", None]]


def test_a_slice_of_matrices_as_fixed_size_lists(tmp_path: Path) -> None:
    """Arrow takes rows of such slices from a wrong position."""
    tfr.write_tfrecord({"id": [3, 1, 2]}, tmp_path / "x.tfrecord")
    matrices = pa.array([[[i], [-i]] for i in range(5)], pa.list_(pa.list_(pa.int64(), 1), 2))
    table = pa.table({"id": range(5), "matrix": matrices}).slice(1)
    joined = tfr.join(tmp_path / "x.tfrecord", table, on="id").read_all()
    assert joined["matrix"].to_pylist() == [[[3], [-3]], [[1], [-1]], [[2], [-2]]]


@pytest.mark.parametrize("value", [pa.timestamp("us", "UTC"), pa.date32(), pa.list_(pa.int8())], ids=str)
def test_categories_of_a_table_without_rows(tmp_path: Path, value: pa.DataType) -> None:
    tfr.write_tfrecord({"k": [1, 2]}, tmp_path / "x.tfrecord")
    empty = pa.Table.from_batches([], pa.schema({"k": pa.int64(), "c": pa.dictionary(pa.int8(), value)}))
    joined = tfr.join(tmp_path / "x.tfrecord", empty, on="k").read_all()
    assert joined["c"].to_pylist() == [None, None]


def test_keys_of_extension_types(tmp_path: Path) -> None:
    ids = pa.array([b"a" * 16, None, b"b" * 16], pa.binary(16)).cast(pa.uuid())
    months = pd.period_range("2026-01", periods=3, freq="M")
    path = tmp_path / "x.tfrecord"
    tfr.write_tfrecord(pa.table({"id": ids, "month": pa.array(pd.array(months))}), path)
    assert tfr.join(path, pa.table({"id": ids[::-1], "n": [1, 2, 3]}), on="id").read_all()["n"].to_pylist() == [
        3,
        None,
        1,
    ]
    later = pd.DataFrame({"month": months[1:], "n": [1, 2]})
    assert tfr.join(path, later, on="month").read_all()["n"].to_pylist() == [None, 1, 2]
    days = pd.DataFrame({"month": pd.period_range("2026-01-01", periods=1, freq="D"), "n": [1]})
    for other in (days, {"month": [673], "n": [1]}):  # the number of January 2026
        with pytest.raises(tfr.errors.FeatureTypeError, match=r"'month': its type is .* in the records, and "):
            tfr.join(path, other, on="month")
    intervals = pd.DataFrame({"x": pd.interval_range(0, 2), "n": [1, 2]})
    tfr.write_tfrecord(intervals[["x"]], path)
    with pytest.raises(
        tfr.errors.FeatureTypeError, match=r"'x': its type is .*interval.*needs a column of single values"
    ):
        tfr.join(path, intervals, on="x")


def test_keys_of_half_floats(tmp_path: Path) -> None:
    tfr.write_tfrecord({"k": np.array([1.5, -0.0], np.float16)}, tmp_path / "x.tfrecord")
    table = {"k": np.array([0, 1.5], np.float16), "n": [1, 2]}
    assert tfr.join(tmp_path / "x.tfrecord", table, on="k").read_all()["n"].to_pylist() == [2, 1]


DECIMALS = [pa.decimal32(5, 1), pa.decimal64(9, 2), pa.decimal128(20, 1), pa.decimal256(50, 3)]


@pytest.mark.parametrize("as_categories", [False, True])
@pytest.mark.parametrize("other", [*DECIMALS, pa.float64()], ids=str)
@pytest.mark.parametrize("type_", [*DECIMALS, pa.float64()], ids=str)
def test_keys_of_decimals(tmp_path: Path, type_: pa.DataType, other: pa.DataType, as_categories: bool) -> None:
    keys, others = pa.array([1.5, 2, None, 0.5]).cast(type_), pa.array([0, 0.5, None, 1.5]).cast(other)
    if as_categories:
        others = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 3]), pa.array([0, 0.5, 9, 1.5]).cast(other))
    tfr.write_tfrecord(pa.table({"k": keys}), tmp_path / "x.tfrecord", float64="raw")
    joined = tfr.join(tmp_path / "x.tfrecord", pa.table({"k": others, "n": [0, 1, 2, 3]}), on="k").read_all()
    assert joined["n"].to_pylist() == [3, None, None, 1]


@pytest.mark.parametrize("type_", DECIMALS, ids=str)
def test_integers_are_joined_to_decimals(tmp_path: Path, type_: pa.DataType) -> None:
    tfr.write_tfrecord({"k": [1, 2]}, tmp_path / "x.tfrecord")
    table = pa.table({"k": pa.array([2.0]).cast(type_), "n": [7]})
    assert tfr.join(tmp_path / "x.tfrecord", table, on="k").read_all()["n"].to_pylist() == [None, 7]


def test_the_time_for_names_is_in_proportion_to_their_number() -> None:
    records, table = (pa.schema([("k", pa.int8()), *((f"{x}{i}", pa.int8()) for i in range(10_000))]) for x in "ab")
    begin = time.process_time()
    _check_columns(records, table, ["k"])
    assert time.process_time() - begin < 0.5  # some seconds where the names are listed for each of them


@given(st.lists(st.lists(TEXTS, max_size=3), max_size=4), st.data())
def test_rows_are_taken_from_chunks_that_are_too_large_to_join(
    chunks: list[list[str | None]], data: st.DataObject
) -> None:
    column = pa.chunked_array(chunks, pa.string())
    rows = pa.array(data.draw(st.lists(st.none() | st.integers(0, max(len(column) - 1, 0)))), pa.int64())
    rows = rows if len(column) else pa.nulls(len(rows), pa.int64())
    assert _take_rows(column, rows).to_pylist() == [
        None if at is None else column[at].as_py() for at in rows.to_pylist()
    ]


@pytest.mark.parametrize("value", ["x" * 1000, [7] * 125, b"x" * 1000])
def test_batches_end_before_they_have_too_many_bytes(tmp_path: Path, value: Any) -> None:
    tfr.write_tfrecord({"i": np.arange(100) % 3}, tmp_path / "a")
    table = pa.table({"i": [0, 1], "value": pa.array([value, value[:1]])})
    with limited(batch_bytes=5000):
        batches = list(tfr.join(tmp_path / "a", table, on="i"))
    assert max(batch.nbytes for batch in batches) < 6000
    assert len(batches) < 15
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert rows == [{"i": at % 3, "value": [value, value[:1], None][at % 3]} for at in range(100)]


def test_the_keys_of_the_table_are_searched_for_many_records_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tfr.write_tfrecord({"i": np.arange(1000)}, tmp_path / "a")
    table, search = pa.table({"i": range(300), "value": range(300)}), Mock(wraps=_Keys.rows)
    monkeypatch.setattr(_Keys, "rows", lambda *given: search(*given))
    joined = tfr.join(tfr.dataset(tmp_path / "a", batch_size=10), table, on="i").read_all()
    assert joined["value"].to_pylist() == [*range(300), *[None] * 700]
    assert search.call_count == 4


def test_rows_before_damage_are_joined(tmp_path: Path) -> None:
    tfr.write_tfrecord({"i": np.arange(100)}, tmp_path / "a", embed_schema=False)
    (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes()[:-1])
    with tfr.join(tfr.dataset(tmp_path / "a", batch_size=10), {"i": range(1000)}, on="i") as reader:
        rows: list[int] = []
        with pytest.raises(tfr.errors.TruncatedRecordError):
            rows.extend(row for batch in reader for row in batch["i"].to_pylist())
    assert rows == list(range(99))


def test_the_index_of_a_frame_is_a_column_if_it_has_a_name(tmp_path: Path) -> None:
    tfr.write_tfrecord({"i": [0, 1, 2]}, tmp_path / "a")
    shuffled = pd.DataFrame({"i": [2, 0, 1], "value": ["c", "a", "b"]}, index=[7, 5, 6])
    joined = tfr.join(tmp_path / "a", shuffled, on="i").read_all()
    assert joined.to_pydict() == {"i": [0, 1, 2], "value": ["a", "b", "c"]}
    named = tfr.join(tmp_path / "a", shuffled.rename_axis("label"), on="i").read_all()
    assert named["label"].to_pylist() == [5, 6, 7]
    by_index = tfr.join(tmp_path / "a", shuffled.set_index("i"), on="i").read_all()
    assert by_index.to_pydict() == {"i": [0, 1, 2], "value": ["a", "b", "c"]}
