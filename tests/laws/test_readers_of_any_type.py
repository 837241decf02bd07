"""A column of any type is read by every reader, or refused by an error that names it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, example, given

import tfrecord_io as tfr
from nested_tables import tables, values_of

pytestmark = pytest.mark.filterwarnings("ignore::tfrecord_io.errors.SchemaWarning")
ABSENT: Any = pl.exceptions.ComputeError if pl.__version__.startswith("1.") else tfr.errors.SchemaError
UNION = pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])])
STRUCT = pa.StructArray.from_arrays([UNION, pa.array(["a", "b"])], ["f", "g"], mask=pa.array([False, True]))
WRAPPED = pa.ExtensionArray.from_storage(pa.opaque(UNION.type, "u", "tests"), UNION)
EXAMPLES = {
    "a null struct with a union": STRUCT,
    "a null struct with an extension type of a union": pa.StructArray.from_arrays(
        [WRAPPED], ["f"], mask=pa.array([False, True])
    ),
    "a list of them": pa.ListArray.from_arrays([0, 2, 2], STRUCT),
}
ARRAYS: dict[str, Callable[[Path], Any]] = {
    "read_arrays": lambda path: tfr.read_arrays(path, missing="mask"),
    "padded": lambda path: tfr.read_arrays(path, missing="mask", ragged="pad"),
    "offsets": lambda path: tfr.read_arrays(path, missing="mask", ragged="offsets"),
    "iter_arrays": lambda path: list(tfr.iter_arrays(path, batch_size=2, missing="mask")),
    "xarray": lambda path: tfr.dataset(path).to_xarray().load(),
    "pandas": tfr.read_tfrecord,
    "pandas, nullable": lambda path: tfr.read_tfrecord(path, dtype_backend="numpy_nullable"),
}


def file_of(table: pa.Table, folder: Path) -> Path:
    """A file of the table; one without rows states no types."""
    tfr.write_tfrecord(table, folder / "a.tfrecord", float64="raw")
    assume(table.num_rows)
    return folder / "a.tfrecord"


@given(table=tables(max_columns=1))
@example(table=pa.table({"x": EXAMPLES["a null struct with a union"]}))
@example(table=pa.table({"x": EXAMPLES["a null struct with an extension type of a union"]}))
@example(table=pa.table({"x": EXAMPLES["a list of them"]}))
def test_arrays_and_frames(table: pa.Table, new_folder: Callable[[], Path]) -> None:
    path = file_of(table, new_folder())
    for name, read in ARRAYS.items():
        _, error = attempted(partial(read, path), (tfr.errors.SchemaError, tfr.errors.DecodeError))
        assert error is None or "feature 'x" in str(error), name


@given(table=tables(max_columns=2))
def test_queries_of_polars(table: pa.Table, new_folder: Callable[[], Path]) -> None:
    """A query has what polars makes of the table, whatever the column is that it leaves out."""
    path = file_of(table, new_folder())
    lazy, read = tfr.scan_polars(path), tfr.read_table(path)
    for name in table.column_names:
        frame, error = attempted(lazy.select(name).collect, ABSENT)
        if error is not None:
            assert f"feature '{name}': polars has no type for this column" in str(error)
            continue
        expected = pl.DataFrame(read.select([name]).combine_chunks().to_batches()[0])
        assert frame.schema == expected.schema == lazy.select(name).collect_schema()
        assert repr(frame.to_dict(as_series=False)) == repr(expected.to_dict(as_series=False))


@given(table=tables(max_columns=2))
def test_queries_of_duckdb(table: pa.Table, new_folder: Callable[[], Path]) -> None:
    """A query has what DuckDB makes of the table, whatever the column is that it leaves out."""
    path = file_of(table, new_folder())
    read = tfr.read_table(path)
    for name in table.column_names:
        found, error = attempted(partial(_queried, path, name), duckdb.Error)
        expected, own = attempted(partial(_queried, read.select([name]), name), duckdb.Error)
        if error is not None:  # DuckDB also fails at maps with a key twice, and at nested categories of which none is
            assert f"feature '{name}': DuckDB has no type for this" in str(error) or type(error) is type(own)
        elif own is None:  # float16 is read as float32
            assert values_of(found.column(0)) == values_of(expected.column(0))


def attempted(call: Callable[[], Any], errors: Any) -> tuple[Any, Exception | None]:
    """What a call returns, or the error that it raises."""
    try:
        return call(), None
    except errors as error:
        return None, error


def _queried(files: Path | pa.Table, name: str) -> pa.Table:
    """A column of files, or of a table in memory, by a query in DuckDB."""
    with duckdb.connect() as connection:
        if isinstance(files, Path):
            tfr.register_duckdb(connection, files, name="files")
        else:
            connection.register("files", files)
        relation = connection.sql(f"SELECT {name} FROM files")
        return relation.to_arrow_table() if hasattr(relation, "to_arrow_table") else relation.fetch_arrow_table()
