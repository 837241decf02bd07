"""How columns are represented as arrays."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.rows.arrays.array_options import ArrayOptions
from tfrecord_io.rows.arrays.stacked_or_ragged import TableRepresentation


@given(
    rows=st.lists(st.none() | st.lists(st.integers(0, 9), max_size=2), min_size=1, max_size=9),
    parts=st.integers(1, 4),
    ragged=st.sampled_from([None, "object"]),
)
def test_columns_of_several_chunks_are_those_of_one(rows: list[list[int] | None], parts: int, ragged: Any) -> None:
    columns = {"x": rows, "n": range(len(rows)), "s": [str(row) for row in rows]}
    schema = pa.schema({"x": pa.list_(pa.int64()), "n": pa.int64(), "s": pa.string()})
    one = pa.table(columns, schema)
    size = -(-len(rows) // parts)
    several = pa.concat_tables(one[at : at + size] for at in range(0, len(rows), size))
    options = ArrayOptions(ragged=ragged, missing="mask")
    representation = TableRepresentation(schema, options, complete=True)
    expected, got = (
        TableRepresentation.slice(representation.represent(table.to_batches()), 0, len(rows))
        for table in (one, several)
    )
    for name, array in expected.items():
        assert got[name].dtype == array.dtype
        assert got[name].shape == array.shape
        assert [str(cell) for cell in got[name]] == [str(cell) for cell in array]
