"""Any Arrow table comes back as it was written."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import assume, example, given

import tfrecord_io as tfr
from nested_tables import has_union_in_union, tables, values_of
from tfrecord_io.schema.column_features import nested_restored

HAS_SLICES = int(pa.__version__.split(".")[0]) >= 25  # earlier, Python's values of slices of unions in unions are None
CODES = [5, 7]
WITHIN = pa.UnionArray.from_sparse(pa.array([7, 5, 7], "int8"), [pa.array([1, 2, 3]), pa.nulls(3)], ["a", "b"], CODES)
UNION = pa.UnionArray.from_sparse(pa.array([5, 7, 7], "int8"), [pa.array([4, 5, 6]), WITHIN], ["a", "b"], CODES)


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.SchemaWarning")
@given(table=tables())
@example(table=pa.table({"x": pa.ListArray.from_arrays([0, 1, 3], UNION)}))
def test_any_table_comes_back(table: pa.Table, new_folder: Callable[[], Path]) -> None:
    tmp_path = new_folder()
    assume(HAS_SLICES or not any(has_union_in_union(field.type) for field in table.schema))
    path = tmp_path / "any.tfrecord"
    tfr.write_tfrecord(table, path, float64="raw")
    if not table.num_rows:
        return
    read = tfr.read_table(path)
    for name in table.column_names:
        assert read.schema.field(name).type == nested_restored(table.schema.field(name).type)
        assert values_of(read[name]) == values_of(table[name])
    read.validate(full=True)


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.SchemaWarning")
@given(table=tables(max_columns=1))
def test_any_column_comes_back_as_json(table: pa.Table, new_folder: Callable[[], Path]) -> None:
    tmp_path = new_folder()
    path = tmp_path / "any.tfrecord"
    try:
        tfr.write_tfrecord(table, path, column_encoding={"x": "json"})
    except tfr.errors.EncodeError as error:
        if "JSON has no NaN" not in error.reason:
            raise
        return
    if table.num_rows:
        read = tfr.read_table(path)["x"]
        assert read.type == nested_restored(table["x"].type)
        assert values_of(read) == values_of(table["x"])
