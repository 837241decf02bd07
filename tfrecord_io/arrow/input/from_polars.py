"""polars frames and queries as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tfrecord_io.arrow.input.from_arrays import imported, refuse_pointers


def table_of_polars(data: Any) -> Any:
    """A Series or DataFrame as a DataFrame; a LazyFrame as an iterator of frames, which may be larger than memory.

    A query with a Categorical column is collected: its categories are known at the end.
    """
    pl = imported("polars")
    if isinstance(data, pl.Series):
        if not data.name:
            raise TypeError("a polars.Series without a name: pass series.to_frame('x'), with the name of its column")
        data = data.to_frame()
    schema = data.collect_schema()
    for name, dtype in schema.items():
        refuse_pointers(name, dtype)
    if isinstance(data, pl.DataFrame):
        return data
    return data.collect() if any(map(_has_categories, schema.dtypes())) else _frames(data, schema)


def _frames(query: Any, schema: Any) -> Iterator[Any]:
    yield imported("polars").DataFrame(schema=schema)  # the types, also where the query has no rows
    yield from query.collect_batches(lazy=True)


def _has_categories(dtype: Any) -> bool:
    pl = imported("polars")
    if isinstance(dtype, pl.Struct):
        return any(_has_categories(field.dtype) for field in dtype.fields)
    return _has_categories(dtype.inner) if isinstance(dtype, pl.List | pl.Array) else dtype == pl.Categorical
