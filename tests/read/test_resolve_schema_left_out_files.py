"""A filter on folders: the types of files that it leaves out are not an error, and change no type of what is read."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tfrecord_io as tfr

VALUES: dict[int, list[Any]] = {1: [1, 2], 2: ["x", "y"], 3: [[1.5], []], 4: [7, 8]}
Filters = list[tuple[str, str, Any]]


@pytest.fixture(params=[True, False], ids=["embedded", "inferred"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder for each k, in which the column n has another type."""
    monkeypatch.chdir(tmp_path)
    for k, values in VALUES.items():
        Path(f"d/k={k}").mkdir(parents=True)
        tfr.write_tfrecord({"n": values, "m": [10 * k, 10 * k]}, f"d/k={k}/a.tfrecord", embed_schema=request.param)
    return "d"


def rows(table: pa.Table) -> list[dict[str, Any]]:
    return list(table.select(["k", "m", "n"]).to_pylist())


def written(call: Callable[[], Any]) -> list[dict[str, Any]]:
    assert call().records == 2
    return [{"k": row["m"] // 10, "m": row["m"], "n": row["n"]} for row in tfr.read_table("o.tfrecord").to_pylist()]


READS: dict[str, Callable[[str, Filters], Any]] = {
    "read_table": lambda d, f: rows(tfr.read_table(d, filters=f)),
    "read_table of a dataset": lambda d, f: rows(tfr.read_table(tfr.dataset(d), filters=f)),
    "open_reader": lambda d, f: rows(tfr.open_reader(d, filters=f).read_all()),
    "read_tfrecord": lambda d, f: rows(pa.Table.from_pandas(tfr.read_tfrecord(d, filters=f))),
    "dataset": lambda d, f: rows(tfr.dataset(d, filters=f).to_table()),
    "filter": lambda d, f: rows(tfr.dataset(d).filter(f).to_table()),
    "filter, pickled": lambda d, f: rows(pickle.loads(pickle.dumps(tfr.dataset(d).filter(f))).to_table()),
    "filter of a dataset whose schema is known": lambda d, f: rows(known(d).filter(f).to_table()),
    "filter, refreshed": lambda d, f: rows(tfr.dataset(d).filter(f).refresh().to_table()),
    "filter, then select": lambda d, f: rows(tfr.dataset(d).filter(f).select(["k", "n", "m"]).to_table()),
    "select, then filter": lambda d, f: rows(tfr.dataset(d).select(["n", "m", "k"]).filter(f).to_table()),
    "filters": lambda d, f: rows(tfr.dataset(d).filter([("m", ">", 0)]).filter(f).to_table()),
    "batches": lambda d, f: rows(pa.Table.from_batches(tfr.dataset(d).filter(f).to_batches())),
    "pieces": lambda d, f: rows(pa.concat_tables(part.read() for part in tfr.dataset(d).filter(f).pieces(2))),
    "write_tfrecord": lambda d, f: written(lambda: tfr.write_tfrecord(tfr.dataset(d).filter(f), "o.tfrecord")),
    "merge": lambda d, f: written(lambda: tfr.merge(tfr.dataset(d).filter(f), "o.tfrecord")),
    "convert": lambda d, f: written(lambda: tfr.convert(d, "o.tfrecord", filters=f)),
}


def known(folder: str) -> tfr.Dataset:
    dataset = tfr.dataset(folder)
    assert dataset.schema.names
    return dataset


@pytest.mark.parametrize("k", VALUES)
@pytest.mark.parametrize("call", READS)
def test_rows_of_a_folder_are_those_of_its_file(folder: str, call: str, k: int) -> None:
    expected = [{"k": k, "m": 10 * k, "n": value} for value in VALUES[k]]
    assert READS[call](folder, [("k", "==", k)]) == expected
    last = expected[-1:]
    if k != 3:
        assert READS["filter"](folder, [("k", "==", k), ("n", "==", VALUES[k][-1])]) == last
        assert READS["read_table"](folder, [("k", "==", k), ("n", "==", VALUES[k][-1])]) == last


def test_files_of_one_type_are_read_together(folder: str) -> None:
    both = pc.field("k").isin([1, 4])
    for table in (tfr.read_table(folder, filters=both), tfr.dataset(folder).filter(both).to_table()):
        assert table["n"].to_pylist() == [1, 2, 7, 8]
        assert tfr.dataset(folder).filter(both).schema.names == table.schema.names


def test_files_that_are_read_still_need_a_common_type(folder: str) -> None:
    for filters in ([("k", "<=", 2)], [("m", "<=", 20)]):  # the second one leaves out no folder
        for read in ("read_table", "filter", "open_reader"):
            with pytest.raises(tfr.errors.SchemaError, match="feature 'n': "):
                READS[read](folder, filters)


def test_a_query_of_a_known_schema_reads_the_files_of_its_types(folder: str) -> None:
    polars = pytest.importorskip("polars")
    frame = tfr.scan_polars(folder).filter(polars.col("k") == 1).collect()
    assert frame["n"].to_list() == VALUES[1]
