"""Open objects of polars as frames, which have an Arrow stream: a lazy query as many, run batch by batch.

Tests: tests/columns/arrow/input/test_from_polars.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tfrecord_io.columns.arrow.input.array_likes import imported_module
from tfrecord_io.columns.arrow.input.from_arrays import refuse_polars_types


def table_of_polars(data: Any) -> Any:
    """A Series or DataFrame as a DataFrame; a LazyFrame as an iterator of frames, which may be larger than memory.

    A query with a Categorical column is collected: its categories are known at the end.
    """
    pl = imported_module("polars")
    if isinstance(data, pl.Series):
        if not data.name:
            raise TypeError("a polars.Series without a name: pass series.to_frame('x'), with the name of its column")
        data = data.to_frame()
    schema = data.collect_schema()
    for name, dtype in schema.items():
        refuse_polars_types(name, dtype)
    if isinstance(data, pl.DataFrame):
        return data
    return data.collect() if any(map(_has_categories, schema.dtypes())) else _frames(data, schema)


def _frames(query: Any, schema: Any) -> Iterator[Any]:
    pl = imported_module("polars")
    yield pl.DataFrame(schema=schema)  # the types, also where the query has no rows
    has_errors = tuple(map(int, pl.__version__.split(".")[:2])) >= (1, 37)  # before, batches end where a query fails
    yield from query.collect_batches(lazy=True) if has_errors else [query.collect()]


def _has_categories(dtype: Any) -> bool:
    pl = imported_module("polars")
    if isinstance(dtype, pl.Struct):
        return any(_has_categories(field.dtype) for field in dtype.fields)
    return _has_categories(dtype.inner) if isinstance(dtype, pl.List | pl.Array) else dtype == pl.Categorical
