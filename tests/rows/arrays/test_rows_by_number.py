"""Rows by number, as arrays."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from arrow_tables import batches
from reading_modes import matching_records_only
from tfrecord_io.rows.arrays import rows_by_number
from tfrecord_io.rows.training.batches_by_number import open_by_number


@pytest.fixture
def dataset(tmp_path: Path) -> tfr.Dataset:
    """Two files of five rows."""
    for part in (0, 1):
        numbers = pa.array(range(part * 5, part * 5 + 5))
        lists = [list(range(n)) for n in numbers.to_pylist()]
        table = pa.table({"n": numbers, "list": lists, "some": pa.array([1, None, 3, 4, 5])})
        tfr.write_tfrecord(table, tmp_path / f"{part}.tfrecord", write_index=part == 0)
    return tfr.dataset(tmp_path)


@pytest.mark.parametrize(
    ("offset", "limit", "least", "expected"),
    [
        (0, None, None, range(10)),
        (3, 4, None, range(3, 7)),
        (0, 99, None, range(10)),
        (12, None, None, []),
        (0, None, 6, [7, 8, 9]),
        (0, 2, 6, [7, 8]),
        (8, None, 6, [8, 9]),
        (0, None, 99, []),
    ],
)
def test_rows_of_a_part(
    dataset: tfr.Dataset, offset: int, limit: int | None, least: int | None, expected: list[int]
) -> None:
    part = tfr.dataset(dataset.files, offset=offset, limit=limit).select(["list", "n"])
    part = part if least is None else part.filter([("n", ">", least)])
    rows = pickle.loads(pickle.dumps(open_by_number(part)))
    assert len(rows) == len(expected)
    chosen = np.arange(len(expected))[::-1]
    arrays = rows.arrays(chosen)
    assert list(arrays) == ["list", "n"]
    assert arrays["n"].tolist() == list(expected)[::-1] == rows.arrays(chosen - len(expected))["n"].tolist()
    assert [cell.tolist() for cell in arrays["list"]] == [list(range(n)) for n in reversed(expected)]


@pytest.mark.filterwarnings("ignore")
@given(batches(max_columns=2), st.sampled_from(["error", "mask"]))
def test_a_single_row_is_that_of_the_arrays(engine: str, batch: pa.RecordBatch, missing: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tfrecord"
        try:
            tfr.write_tfrecord(batch, path, float64="round")
            rows = open_by_number(tfr.dataset(path), missing=missing)
        except (tfr.TFRecordError, NotImplementedError, ValueError):
            return
        for number in range(-len(rows), len(rows)):
            row = rows.row(number)
            if row is None:
                continue
            arrays = rows.arrays(np.array([number]))
            assert list(row) == list(arrays)
            for name, value in row.items():
                expected = arrays[name][0]
                assert type(value) is type(expected)
                np.testing.assert_array_equal(value, expected, strict=isinstance(value, np.ndarray))


def test_plain_columns_need_no_arrays(dataset: tfr.Dataset) -> None:
    rows = open_by_number(dataset.select(["n", "list"]))
    row = rows.row(3)
    assert row is not None
    assert (type(row["n"]), row["n"], row["list"].tolist()) == (np.int64, 3, [0, 1, 2])
    assert rows.row(10) is rows.row(-11) is None
    assert open_by_number(dataset).row(1) is None  # which has a missing value


@pytest.mark.parametrize("indexed", [[0], [1], [0, 1]])
@pytest.mark.parametrize(("offset", "limit"), [(0, None), (3, 2), (7, None)])
def test_rows_that_a_column_index_finds(
    dataset: tfr.Dataset, indexed: list[int], offset: int, limit: int | None
) -> None:
    tfr.build_index([dataset.files[at] for at in indexed], columns=["n"])
    part = tfr.dataset(dataset.files, offset=offset, limit=limit).filter([("n", "in", [1, 3, 4, 8])]).select(["n"])
    with matching_records_only() as used:
        rows = open_by_number(part)
    assert bool(used) == (0 in indexed or not offset)
    expected = [n for n in (1, 3, 4, 8) if n >= offset][:limit]
    assert rows.arrays(np.arange(len(rows)))["n"].tolist() == expected


def test_rows_of_a_filter_are_of_the_files_that_it_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, find = tmp_path / "a.tfrecord", rows_by_number._fulfilling
    tfr.write_tfrecord({"n": [0, 1, 2]}, path)

    def replaced_before(scan: Any) -> Any:
        tfr.write_tfrecord({"n": [2, 1, 0]}, path)
        return find(scan)

    monkeypatch.setattr(rows_by_number, "_fulfilling", replaced_before)
    with pytest.raises(tfr.errors.ReplacedError):
        open_by_number(tfr.dataset(path).filter([("n", ">", 1)]))


def test_missing_values(dataset: tfr.Dataset) -> None:
    some = dataset.select(["some"])
    assert open_by_number(some, missing="mask").arrays(np.array([6, 7]))["some"].tolist() == [None, 3]
    with pytest.raises(tfr.errors.DecodeError) as caught:
        open_by_number(some).arrays(np.array([7, 6]))
    assert (caught.value.path, caught.value.record) == (dataset.files[1], 1)


def test_numbers_out_of_range(dataset: tfr.Dataset) -> None:
    for number in (10, -11):
        with pytest.raises(IndexError, match=f"row {number} is out of range: there are 10 rows"):
            open_by_number(dataset).arrays(np.array([0, number]))


def test_rows_without_a_number(dataset: tfr.Dataset, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"rows that are left out have none; keep .* tfr\.salvage\("):
        open_by_number(tfr.dataset(dataset.files, on_error="skip"))
    tfr.write_tfrecord({"x": [1]}, tmp_path / "x.tfrecord.gz")
    with pytest.raises(ValueError, match="is compressed"):
        open_by_number(tfr.dataset(tmp_path / "x.tfrecord.gz"))
