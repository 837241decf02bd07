"""Conditions of a filter: the columns that they need, what is refused, and files that they leave out."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tfrecord_io as tfr
from arrow_tables import assert_equal
from counted_calls import calls
from reading import read_by
from suites.conditions import VALUES, condition_files
from tfrecord_io.read.row_filter import RowFilter

f = pc.field


def test_conditions_hold_together(tmp_path: Path) -> None:
    dataset = tfr.dataset(condition_files(tmp_path))
    twice = dataset.filter(f("n") > 0).filter([("text", "==", "a")])
    assert_equal(twice.to_table(), dataset.to_table().filter((f("n") > 0) & (f("text") == "a")))


SCHEMA = pa.schema({name: type_ for name, (type_, _) in VALUES.items()} | {"s": pa.struct({"x": pa.int32()})})


@pytest.mark.parametrize(
    ("condition", "columns"),
    [
        (f("n") > 1, ["n"]),
        ((f("text") == "a") & (f("n") > f("small")), ["n", "small", "text"]),
        (f("s", "x") == 1, ["s"]),
        (pc.scalar(True), []),
        ([[("x", ">", 1)], [("team", "in", ["red"])]], ["x", "team"]),
        ([["x", ">", 1], ["team", "in", ["red"]]], ["x", "team"]),  # lists, as in JSON
        ([[["x", ">", 1]], [["team", "in", ["red"]]]], ["x", "team"]),
    ],
)
def test_only_the_columns_of_the_condition_are_needed(condition: Any, columns: list[str]) -> None:
    assert list(RowFilter.for_schema(condition, SCHEMA).columns) == columns


@pytest.mark.parametrize(
    ("condition", "error", "text"),
    [
        (
            f("absent") > 1,
            tfr.errors.FeatureNotFoundError,
            "feature 'absent': the filter names a column that does not exist",
        ),
        ([("absent", "==", 1)], tfr.errors.SchemaError, "valid names: flag"),
        ("not flag = true", tfr.errors.FeatureNotFoundError, "a condition has no NOT: .*; valid names: flag"),
        ("n % 2 = 0", tfr.errors.FeatureNotFoundError, "computes nothing: pass an expression of pyarrow"),
        (f("s", "y") == 1, tfr.errors.SchemaError, "cannot be applied"),
        (f("text") > 1, tfr.errors.SchemaError, "compares text with the number 1"),
        (
            f("n") == "5",
            tfr.errors.SchemaError,
            "feature 'n': the filter compares int64 with the text \"5\"; write a number",
        ),
        (
            f("list") == 1,
            tfr.errors.SchemaError,
            "a filter cannot compare values of list<.*>; name a column of single values",
        ),
        (f("raw") > 1, tfr.errors.SchemaError, "feature .raw.: the filter compares .* with int"),
        (f("n"), tfr.errors.SchemaError, "its values are int64, not bool"),
        (f("time") > datetime.datetime(2020, 1, 1), tfr.errors.SchemaError, "cast the column or the value"),
        (pc.field(0) > 1, ValueError, "by position: name them"),
        ([], ValueError, "an empty list is not a condition"),
        ([[]], ValueError, "an empty list is not a condition"),
        ([("n", "<", None)], ValueError, "column 'n': None cannot be compared with '<'; use ==, !="),
        ([("n", "in", "12")], ValueError, "column 'n': 'in' takes a list of values, and got str"),
        ([("n", "not in", 1)], ValueError, "'not in' takes a list of values, and got int"),
        ([("n", "in", [1, "a"])], ValueError, "'in' takes values of one type"),
        ([("text", "in", [pd.Timestamp(1), "a"])], ValueError, "'in' takes values of one type"),
        ([("n", "==", object())], ValueError, "== takes a number, text or another value of Arrow, and got object"),
        (
            [("n", "contains", 1)],
            tfr.errors.SchemaError,
            "feature 'n': the filter asks whether lists .* the column is int64",
        ),
        (
            [("list", "contains", "a")],
            tfr.errors.SchemaError,
            "feature 'list': the filter compares int64 with the text",
        ),
        ([("list", "contains", None)], ValueError, "None cannot be compared with 'contains'"),
        ([("n", "~", 1)], ValueError, "is not an operator; use one of"),
        ([("n", 1)], ValueError, "expected tuples"),
        (["n", ">", 1], ValueError, "expected tuples"),
        ([1], ValueError, "expected tuples"),
        (("n", "==", 1), TypeError, "a list of tuples"),
    ],
)
def test_what_is_no_condition_is_refused(condition: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        RowFilter.for_schema(condition, SCHEMA)


def test_a_value_that_cannot_be_cast_is_an_error(tmp_path: Path) -> None:
    tfr.write_tfrecord({"text": ["1", "x"]}, tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.SchemaError, match="Failed to parse string: 'x'"):
        tfr.dataset(tmp_path / "a.tfrecord").filter(f("text").cast("int64") == 1).to_table()


# ---- files that cannot have such rows


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for label, rows in ((1, [1, 2]), (2, [3]), (3, [4, 5, 6])):
        (tmp_path / f"label={label}").mkdir()
        tfr.write_tfrecord({"n": rows}, tmp_path / f"label={label}" / "a.tfrecord")
    return tmp_path


@pytest.mark.parametrize(
    ("condition", "read"),
    [
        (f("label") == 2, [2]),
        (f("label") > 1, [2, 3]),
        (f("label").isin([1, 3]), [1, 3]),
        ((f("label") == 1) & (f("n") > 1), [1]),
        ((f("label") == 1) | (f("n") > 3), [1, 2, 3]),
        (f("label").cast("string") == "3", [3]),
        (f("label").is_null(), []),
        (f("label") == 9, []),
        ([("label", "in", [1])], [1]),
    ],
)
def test_folder_columns_leave_out_files(folders: Path, condition: Any, read: list[int]) -> None:
    dataset, table = tfr.dataset(folders), tfr.read_table(folders)
    assert dataset.schema.equals(table.schema)  # which is fixed, whatever the files become
    for label in {1, 2, 3} - set(read):  # they are not opened
        (folders / f"label={label}" / "a.tfrecord").write_bytes(b"damaged")
    filtered = dataset.filter(condition)
    expected = table.filter(RowFilter.for_schema(condition, table.schema).condition.expression)
    assert filtered.to_table() == expected
    assert filtered.count_rows() == expected.num_rows
    assert pa.concat_tables([piece.read() for piece in filtered.pieces(2)]) == expected


@pytest.mark.parametrize(("label", "keywords"), [(2, {}), ("2", {"schema": {"label": "string", "n": "int64"}})])
def test_every_reader_leaves_out_files(folders: Path, label: Any, keywords: dict[str, Any]) -> None:
    for other in (1, 3):
        (folders / f"label={other}" / "a.tfrecord").write_bytes(b"damaged")
    keywords["filters"] = (f("label") == label) & (f("n") > 0)
    assert read_by(tfr.read_table, folders, **keywords).to_pydict() == {"n": [3], "label": [label]}
    assert read_by(tfr.read_tfrecord, folders, columns=["n"], **keywords).to_dict("list") == {"n": [3]}
    assert [batch["n"].tolist() for batch in read_by(tfr.iter_arrays, folders, batch_size=9, **keywords)] == [[3]]


def test_folders_are_left_out_by_one_look_at_all(tmp_path: Path) -> None:
    tfr.write_tfrecord({"k": [f"k{n}" for n in range(200)], "n": list(range(200))}, tmp_path, partition_by="k")
    scan = tfr.dataset(tmp_path)._held
    every_second = ("k", "in", [f"k{n}" for n in range(0, 200, 2)])
    by_folder = RowFilter.for_schema([every_second], scan.schema)
    mixed = RowFilter.for_schema([("k", "==", "k7"), ("n", ">", 0)], scan.schema)

    def possible(condition: RowFilter, files: int) -> int:
        return calls(lambda: condition.possible(scan.sources[:files], scan.partitions))

    assert len(by_folder.possible(scan.sources, scan.partitions)) == 100
    assert possible(by_folder, 200) - possible(by_folder, 100) < 100 * 22  # pyarrow read the list for each folder
    assert len(mixed.possible(scan.sources, scan.partitions)) == 1
    assert possible(mixed, 200) - possible(mixed, 100) < 100 * 60  # it was 199 for each


def test_an_offset_counts_the_records_of_all_files(folders: Path) -> None:
    dataset = tfr.dataset(folders, offset=2, limit=2).filter(f("label") > 2)
    assert dataset.to_table()["n"].to_pylist() == [4, 5]


def test_files_outside_of_such_folders_have_null(folders: Path) -> None:
    tfr.write_tfrecord({"n": [7]}, folders / "b.tfrecord")
    assert tfr.dataset(folders).filter(f("label").is_null()).to_table()["n"].to_pylist() == [7]
    assert tfr.dataset(folders).filter(f("label") == 2).to_table()["n"].to_pylist() == [3]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ([("x", "==", 0.5)], [0]),
        ([("x", "!=", 0.5)], [1, 2, 3, 4]),
        ([("x", ">", 0.2)], [0, 1]),
        ([("x", "==", 0.1)], [3]),  # the nearest float16
        ([("x", "==", np.float16(0.1))], [3]),
        ([("x", "in", [0.1, 0])], [3, 4]),
        ([("x", "not in", [0.5, 1])], [2, 3, 4]),
        (pc.field("x") < pc.field("y"), [1]),
        (pc.is_nan(pc.field("x")), [2]),
    ],
)
def test_float16_is_compared(tmp_path: Path, condition: Any, expected: list[int]) -> None:
    x = np.array([0.5, 1, np.nan, 0.1, -0.0], np.float16)
    rows = {"n": range(5), "x": x, "y": np.array([0.5, 2, 0, 0, 0], np.float32)}
    tfr.write_tfrecord(rows, tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord", filters=condition)["n"].to_pylist() == expected


SMALL_NUMBERS = [pa.float16(), pa.decimal32(5, 1), pa.decimal64(9, 2)]


@pytest.mark.parametrize("as_categories", [False, True])
@pytest.mark.parametrize("type_", SMALL_NUMBERS, ids=str)
@pytest.mark.parametrize(
    ("operator", "operand"),
    [
        ("==", Decimal("1.50")),
        ("==", 1.25),  # which no decimal32(5, 1) is
        ("!=", Decimal("1.5")),
        ("<", 2),
        (">=", 1.5),
        ("<=", Decimal(10) ** 30),
        ("between", (Decimal(-4), 1.5)),
        ("in", [Decimal("1.50"), 3, None]),
        ("not in", [Decimal("1.50"), Decimal("1e9")]),
        ("is null", None),
    ],
)
def test_small_numbers_are_compared_as_wider_ones(
    tmp_path: Path, operator: str, operand: Any, type_: pa.DataType, as_categories: bool
) -> None:
    numbers = pa.array([1.5, 2, -3.5, None])
    found = []
    for values in (numbers, numbers.cast(type_)):
        if as_categories:
            values = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None], pa.int8()), values[:3])
        path = tmp_path / str(len(found))
        tfr.write_tfrecord(pa.table({"x": values, "n": range(4)}), path, float64="raw")
        found.append(tfr.read_table(path, filters=[("x", operator, operand)])["n"].to_pylist())
    assert found[0] == found[1]


@pytest.mark.parametrize("type_", SMALL_NUMBERS, ids=str)
def test_small_numbers_in_structs_and_lists_are_compared(tmp_path: Path, type_: pa.DataType) -> None:
    numbers = pa.array([1.5, 2, 1.5]).cast(type_)
    categories = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), numbers[:2])
    missing = pa.array([False, False, True])
    struct = pa.StructArray.from_arrays([numbers, categories], ["x", "c"], mask=missing)
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 3], pa.int32()), categories)
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord(pa.table({"s": struct, "l": lists, "n": range(3)}), path)

    def found(filters: Any) -> list[int]:
        return tfr.read_table(path, filters=filters)["n"].to_pylist()

    for name in "xc":
        assert found(f("s", name) == 1.5) == [0]
        assert found(f("s", name).isin([2.0, 7.0])) == [1]
        assert found(~(f("s", name) > 1.5)) == [0]
    assert found([("l", "contains", Decimal("2.0"))]) == [0]
    assert found([("l", "contains", 1)]) == []
