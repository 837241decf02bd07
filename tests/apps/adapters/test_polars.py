"""polars scans TFRecord files."""

from __future__ import annotations

import datetime
import operator
from decimal import Decimal
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from reading_modes import decoded_by, opened_scans
from records import example, int64s, written
from rounds import rounds
from suites.conditions import VALUES, condition_files
from tfrecord_io.base.options.operators import Operator
from tfrecord_io.read.narrow_scan import exclude_rows
from tfrecord_io.read.scan import Scan
from tfrecord_io.read.scan_rows import ScanRows
from tfrecord_io.testing.adapter_suite import AdapterSuite

POLARS_1 = pl.__version__.startswith("1.")


class TestPolars(AdapterSuite):
    engine: Any = "in-memory"
    keeps_class = not POLARS_1

    def open(self, path: Any, **keywords: Any) -> pl.LazyFrame:
        return read_by(tfr.scan_polars, path, **keywords)

    def rows(self, opened: pl.LazyFrame, names: list[str] | None = None) -> dict[str, list[Any]]:
        frame = (opened if names is None else opened.select(names)).collect(engine=self.engine)
        tensors = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.BaseExtension)]
        cells = {name: frame[name].ext.storage().to_numpy().reshape(-1, 2, 2).tolist() for name in tensors}
        if POLARS_1 and "images" in frame.columns:  # an array of the storage
            cells["images"] = frame["images"].to_numpy().reshape(-1, 2, 2).tolist()
        return {name: cells.get(name) or frame[name].to_list() for name in frame.columns}

    def above(self, opened: pl.LazyFrame, least: int) -> pl.LazyFrame:
        return opened.filter(pl.col("ints") > least)

    def first(self, opened: pl.LazyFrame, n: int) -> pl.LazyFrame:
        return opened.head(n)

    def count(self, opened: pl.LazyFrame) -> int:
        return int(opened.select(pl.len()).collect(engine=self.engine).item())

    def names(self, opened: pl.LazyFrame) -> list[str]:
        return opened.collect_schema().names()

    def test_dtypes_are_those_of_the_table(self, path: Path) -> None:
        opened = self.open(path)
        assert opened.collect(engine=self.engine).schema == opened.collect_schema()
        assert opened.collect_schema() == pl.DataFrame(tfr.read_table(path)).schema

    def test_a_part_of_a_dataset(self, path: Path) -> None:
        dataset = tfr.dataset(path).filter([("ints", ">", 3)]).select(["text", "int"])
        assert dataset.to_polars().filter(pl.col("int").is_null()).collect().to_dict(as_series=False) == {
            "text": ["b"] * 3,
            "int": [None] * 3,
        }

    def test_a_scan_may_occur_twice_in_a_query(self, path: Path) -> None:
        opened = self.open(path)
        joined = opened.select("ints").unique().join(opened.select("ints", "flag").unique(), on="ints")
        assert joined.collect(engine=self.engine).height == 5

    def test_a_filter_after_the_first_rows(self, path: Path) -> None:
        assert self.rows(self.above(self.first(self.open(path), 6), 3), ["ints"]) == {"ints": [4, 5]}

    def test_a_result_is_written_again(self, path: Path, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        lazy = self.open(path).filter(pl.col("flag"))
        tfr.write_tfrecord(lazy, tmp_path / "out" / "flags.tfrecord")
        expected = tfr.read_table(path).filter(pa.compute.field("flag"))
        assert tfr.read_table(tmp_path / "out" / "flags.tfrecord")["ints"].to_pylist() == expected["ints"].to_pylist()


class TestPolarsStreaming(TestPolars):
    engine = "streaming"


def test_only_what_is_needed_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"a*": 1, "ab": 2, "!x": 3, "y": 4}
    path = written(
        tmp_path / "a.tfrecord", [example(**{name: int64s(n * v) for name, v in names.items()}) for n in range(99)]
    )
    lazy = tfr.scan_polars(path)
    opened = opened_scans(monkeypatch)
    assert lazy.filter(pl.col("ab") > 190).select("y").collect().to_dict(as_series=False) == {"y": [384, 388, 392]}
    assert sorted(opened[-1].compiled.schema.names) == ["ab", "y"]
    assert lazy.select("a*", "!x").head(2).collect().to_dict(as_series=False) == {"a*": [0, 1], "!x": [0, 3]}


def test_reading_stops_after_the_first_rows(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(n=int64s(n)) for n in range(5000)])
    lazy = tfr.scan_polars(tfr.dataset(path, schema={"n": "int64"}))
    content = bytearray(path.read_bytes())
    content[-6] ^= 1
    path.write_bytes(content)
    assert lazy.head(3).collect()["n"].to_list() == [0, 1, 2]


# ---- columns

ZONED = pa.array([1, None], pa.timestamp("us", "+05:30"))
ABSENT = {
    "interval": pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
    "union": pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])]),
    "empty lists": pa.array([[], []], pa.list_(pa.int8(), 0)),
    "decimal256": pa.array([10**60, None], pa.decimal256(70, 0)),
    "offset": ZONED,
    "bfloat16": np.ones((2, 3), ml_dtypes.bfloat16),
    "arrays of text": np.array([["a"], ["b"]]),
    "hours": np.zeros((2, 3), "timedelta64[h]"),
    "nested": pa.StructArray.from_arrays([pa.array([[(1, 2, 3)], []], pa.list_(pa.month_day_nano_interval()))], ["k"]),
}


@pytest.mark.parametrize("column", ABSENT.values(), ids=ABSENT)
def test_columns_that_polars_cannot_hold_are_named_where_they_are_used(tmp_path: Path, column: Any) -> None:
    tfr.write_tfrecord({"x": column, "y": [1, 2], "z": [3, 4]}, tmp_path / "a.tfrecord")
    lazy = tfr.scan_polars(tmp_path / "a.tfrecord")
    assert lazy.filter(pl.col("y") > 1).select("y").collect()["y"].to_list() == [2]
    assert lazy.select(pl.len()).collect().item() == 2
    assert lazy.drop("x").collect().to_dict(as_series=False) == {"y": [1, 2], "z": [3, 4]}
    error: Any = pl.exceptions.ComputeError if POLARS_1 else tfr.errors.SchemaError
    for query in (lazy, lazy.select("x"), lazy.filter(pl.col("x").is_null()).select("y")):
        with pytest.raises(error, match="feature 'x': polars has no type for this column of"):
            query.collect()


def test_a_column_in_a_zone_that_polars_cannot_hold_can_be_declared(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": ZONED}, tmp_path / "a.tfrecord")
    error: Any = pl.exceptions.ComputeError if POLARS_1 else tfr.errors.SchemaError
    with pytest.raises(error, match="declare it in UTC by schema_overrides="):
        tfr.scan_polars(tmp_path / "a.tfrecord").collect()
    declared = tfr.dataset(tmp_path / "a.tfrecord", schema_overrides={"x": pa.timestamp("us", "UTC")})
    assert declared.to_polars().collect().schema == {"x": pl.Datetime("us", "UTC")}


def test_decimals_of_few_bits(tmp_path: Path) -> None:
    """polars reads decimals of any width as 128 bits, with the bytes behind them in memory."""
    values = [Decimal("1.25"), None, Decimal("-3.50")]
    small, medium = pa.array(values, pa.decimal32(5, 2)), pa.array(values, pa.decimal64(12, 2))
    table = pa.table(
        {
            "x": small,
            "list": pa.ListArray.from_arrays([0, 2, 3, 3], medium),
            "fixed": pa.FixedSizeListArray.from_arrays(pa.concat_arrays([small, small]), 2),
            "struct": pa.StructArray.from_arrays([medium, small], ["k", "m"]),
            "map": pa.MapArray.from_arrays([0, 1, 2, 3], pa.array(["a", "b", "c"]), small),
            "category": pa.DictionaryArray.from_arrays(pa.array([0, 2, None], pa.int8()), small),
        }
    )
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    lazy = tfr.scan_polars(tmp_path / "a.tfrecord")
    frame = lazy.collect()
    assert frame.schema == lazy.collect_schema()
    for name in set(table.column_names) - {"map"}:
        assert frame[name].to_list() == table[name].to_pylist()
    maps = frame["map"].cast(pl.List(pl.Struct({"key": pl.String, "value": pl.Decimal(5, 2)})))
    assert [item["value"] for row in maps for item in row] == values
    assert lazy.filter(pl.col("x") > 0).select("x").collect()["x"].to_list() == [Decimal("1.25")]


def test_a_column_without_a_name_and_one_of_null_categories(tmp_path: Path) -> None:
    none = pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), pa.nulls(1))
    tfr.write_tfrecord({"x": [1, 2], "": [3, 4], "none": none}, tmp_path / "a.tfrecord")
    frame = tfr.scan_polars(tmp_path / "a.tfrecord").filter(pl.col("") > 3).collect()
    assert frame.to_dict(as_series=False) == {"x": [2], "": [4], "none": [None]}


# ---- conditions

LITERALS: dict[str, list[Any]] = {
    "n": [0, 1, 2, -5, 2**62, 0.5],
    "small": [1, 2, 127, 300, 1.5],
    "x": [0.0, -0.0, -1.5, float("nan"), float("inf"), 1],
    "text": ["", "a", "é"],
    "raw": [b"", b"a", b"\xff"],
    "flag": [True, False],
    "time": [datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)],
    "team": ["red"],
}
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
TERMS = st.one_of(
    *(
        st.builds(
            lambda name, compare, value, mirrored: (
                compare(pl.lit(value), pl.col(name)) if mirrored else compare(pl.col(name), value)
            ),
            st.just(name),
            st.sampled_from(COMPARISONS),
            st.sampled_from(values),
            st.booleans(),
        )
        for name, values in LITERALS.items()
    ),
    st.sampled_from(sorted(VALUES)).map(lambda name: pl.col(name).is_null()),
    st.sampled_from(sorted(VALUES)).map(lambda name: pl.col(name).is_not_null()),
    st.sampled_from(
        [
            pl.col("flag"),
            pl.col("n") == pl.col("small"),
            pl.col("n").is_in([1, 2]),
            pl.col("n").is_between(0, 2),
            pl.col("x").is_between(-1.5, 0.0),
            pl.col("n").is_between(0, 2, closed="left"),
            pl.col("n").is_between(pl.col("small"), 2),
            pl.col("x").is_nan(),
            pl.col("n").eq_missing(None),
            pl.col("n") + 1 > 2,
            pl.col("n").cast(pl.String) == "1",
            pl.col("n") == pl.lit(None, pl.Int64),
            pl.lit(True),
            pl.col("text").str.starts_with("a"),
        ]
    ),
)
CONDITIONS = st.recursive(
    TERMS,
    lambda inner: st.one_of(
        st.builds(operator.and_, inner, inner),
        st.builds(operator.or_, inner, inner),
        st.builds(operator.xor, inner, inner),
        inner.map(operator.invert),
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return condition_files(tmp_path_factory.mktemp("conditions"))


@settings(max_examples=rounds(300))
@given(condition=CONDITIONS, rows=st.sampled_from([None, 0, 1, 25]), engine=st.sampled_from(["in-memory", "streaming"]))
def test_a_condition_keeps_the_rows_that_polars_keeps_after_reading(
    files: list[Path], condition: pl.Expr, rows: int | None, engine: Any
) -> None:
    def kept(frame: pl.LazyFrame) -> Any:
        frame = frame.with_row_index() if rows == 25 else frame
        try:
            found = (frame if rows is None else frame.head(rows)).filter(condition).collect(engine=engine)
        except pl.exceptions.PolarsError as error:  # types that polars does not compare
            return type(error)
        return found.schema, repr(found.to_dicts())  # NaN is not equal to itself

    scan = tfr.scan_polars(files)
    assert kept(scan) == kept(scan.collect().lazy())


BOTH = "n > 1 and (x >= 1.0 or is_nan(x))"
SWAPPED = {"(x >= 1.0 or is_nan(x)) and n > 1": BOTH} if POLARS_1 else {}  # its order differs from process to process


@pytest.mark.parametrize(
    ("condition", "translated"),
    [
        (pl.col("n") > 1, "n > 1"),
        (pl.lit(1) < pl.col("small"), "small > 1"),
        ((pl.col("x") >= 1) & (pl.col("n") > 1), BOTH),
        (pl.col("x") < 1, "x < 1.0"),
        (~(pl.col("raw") == b"a") | pl.col("flag"), "raw != b'a' or flag"),
        (pl.col("n").is_between(0, 2) & (pl.col("n") + 1 > 2), "n between 0 and 2"),
        (pl.col("text").str.starts_with("a"), "text startswith 'a'"),
        (pl.col("raw").bin.starts_with(b"a"), "raw startswith b'a'"),
        (pl.col("n").is_null() & pl.col("x").is_not_null(), "n is null and x is not null"),
        (pl.col("n").is_null() | (pl.col("n").cast(pl.Float64) > 1), None),
        (pl.col("x") == float("nan"), None),
        (pl.col("team") == "red", None),
        (pl.col("n").map_batches(lambda n: n > 1, return_dtype=pl.Boolean, is_elementwise=True), None),
    ],
)
def test_what_is_translated(files: list[Path], condition: pl.Expr, translated: str | None) -> None:
    assert pushed_down(files, condition) == translated


def pushed_down(files: Any, condition: pl.Expr) -> str | None:
    """The condition that a predicate of polars becomes."""
    from tfrecord_io.apps.adapters import polars

    pushed: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        original = polars._translate_predicate
        patch.setattr(polars, "_translate_predicate", lambda *given: pushed.append(original(*given)))
        tfr.scan_polars(files).filter(condition).collect()
    (found,) = pushed
    return None if found is None else SWAPPED.get(found.text, found.text)


# By operator: what a user of polars writes, and the condition by which rows are left out; None if polars filters alone.
PUSHED: dict[str, tuple[pl.Expr, str | None]] = {
    "==": (pl.col("n") == 1, "n == 1"),
    "!=": (pl.col("n") != 1, "n != 1"),
    "<": (pl.col("n") < 1, "n < 1"),
    "<=": (pl.col("n") <= 1, "n <= 1"),
    ">": (pl.col("n") > 1, "n > 1"),
    ">=": (pl.col("n") >= 1, "n >= 1"),
    "in": (pl.col("n").is_in([1, 2]), None),
    "not in": (~pl.col("n").is_in([1, 2]), None),
    "contains": (pl.col("list").list.contains(1), None),
    "startswith": (pl.col("text").str.starts_with("a"), "text startswith 'a'"),
    "between": (pl.col("n").is_between(0, 2), "n between 0 and 2"),
    "is null": (pl.col("n").is_null(), "n is null"),
    "is not null": (pl.col("n").is_not_null(), "n is not null"),
}


@pytest.mark.parametrize("row", Operator.ALL, ids=lambda row: row.symbol)
def test_each_operator_is_pushed_down_or_left_to_polars(tmp_path: Path, row: Operator) -> None:
    assert row.symbol in PUSHED, f"add what a user of polars writes for {row.symbol}, and what is left out by it"
    expression, text = PUSHED[row.symbol]
    assert bool(row.polars) == (text is not None)
    tfr.write_tfrecord({"n": [1, 2, None], "text": ["a", "b", None], "list": [[1], [], None]}, tmp_path / "a")
    assert pushed_down(tmp_path / "a", expression) == text


@pytest.mark.skipif(POLARS_1, reason="its conditions have another form, in which only some are pushed down")
def test_a_condition_of_many_levels_is_applied_by_polars(tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": range(100)}, tmp_path / "a.tfrecord")
    condition, n = pl.col("n") >= 0, pl.col("n")
    for number in range(600):
        condition = condition & (n != number) if number % 2 else condition | (n == number)
    rows = tfr.scan_polars(tmp_path / "a.tfrecord").filter(condition).collect()
    assert rows["n"].to_list() == [*range(0, 100, 2)]


def test_files_that_a_condition_excludes_are_not_opened(tmp_path: Path) -> None:
    for label in (1, 2):
        (tmp_path / f"label={label}").mkdir()
        tfr.write_tfrecord({"x": [label, 3]}, tmp_path / f"label={label}" / "a.tfrecord")
    scan = tfr.scan_polars(tmp_path)
    (tmp_path / "label=1" / "a.tfrecord").write_bytes(b"damaged")
    assert scan.filter(pl.col("label") == 2, pl.col("x") == 3).collect().to_dicts() == [{"x": 3, "label": 2}]
    assert scan.filter(pl.col("label") == 9).collect().height == 0
    error: Any = pl.exceptions.ComputeError if POLARS_1 else tfr.TFRecordError
    with pytest.raises(error):
        scan.filter(pl.col("x") == 3).collect()


@pytest.mark.parametrize("two_steps", [True, False])
def test_rows_that_a_condition_excludes_may_be_left_out(tmp_path: Path, two_steps: bool) -> None:
    path = tmp_path / "a.tfrecord"
    rows = 20_000
    tfr.write_tfrecord({"n": range(rows), "x": range(rows), "name": ["a"] * rows}, path)
    scan = Scan.unwrap(tfr.dataset(path))
    with decoded_by([(two_steps, None)]):
        hinted = ScanRows(exclude_rows(scan, [("n", ">=", rows - 5)])).read()
        assert hinted.num_rows == (5 if two_steps else rows)
        assert hinted.filter(pc.field("n") >= rows - 5).equals(tfr.read_table(path).slice(rows - 5))
        few = exclude_rows(scan.only(["name"]), [("n", ">=", rows - 5)])  # of many columns: not worth a second step
        assert ScanRows(few).read().num_rows == rows
        frame = tfr.scan_polars(path).filter(pl.col("n") >= rows - 5, pl.col("n") % 2 == 1).collect()
    assert frame["x"].to_list() == [rows - 5, rows - 3, rows - 1]


def test_records_that_an_index_excludes_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"n": range(100), "x": range(100), "raw": [bytes(9000)] * 100}, path)
    tfr.build_index(path, columns=["n"])
    batches: list[int] = []
    original = exclude_rows

    def counted(*given: Any) -> Any:
        scan = original(*given)
        batches.append(ScanRows(scan).read().num_rows)
        return scan

    monkeypatch.setattr("tfrecord_io.read.narrow_scan.exclude_rows", counted)
    scan = tfr.scan_polars(path)
    assert scan.filter(pl.col("n") == 70).select("x").collect()["x"].to_list() == [70]
    assert batches[0] < 10
    assert tfr.scan_polars(tfr.dataset(path, limit=50)).filter(pl.col("n") == 70).collect().height == 0
    part = tfr.dataset(path).filter([("x", ">", 40)]).to_polars()
    assert part.filter(pl.col("n") < 43).collect()["x"].to_list() == [41, 42]


def test_a_filter_after_a_number_of_rows_is_one_of_these_rows(tmp_path: Path) -> None:
    """The folders that it excludes count."""
    rows = {"n": [*range(5)] * 2, "day": [1] * 5 + [2] * 5}
    tfr.write_tfrecord(rows, tmp_path / "d", partition_by="day")
    assert tfr.scan_polars(tmp_path / "d").head(7).filter(pl.col("day") == 2).collect()["n"].to_list() == [0, 1]
