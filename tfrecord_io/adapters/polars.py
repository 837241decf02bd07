"""polars: a LazyFrame whose queries decode only the columns and rows that they need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tfrecord_io.adapters.requirements import needs
from tfrecord_io.keyword_docs import document_keywords
from tfrecord_io.options import ReadOptions
from tfrecord_io.read.query import Query, open_query
from tfrecord_io.typing import Path

if TYPE_CHECKING:
    import polars as pl


@document_keywords(ReadOptions)
def scan_polars(path: Path | Iterable[Path], **keywords: Any) -> pl.LazyFrame:
    """Scan TFRecord files with polars: queries read only the columns and rows that they need.

    Parameters
    ----------
    {path}
    {keywords}

    Returns
    -------
    polars.LazyFrame
        With the schema of `tfrecord_io.dataset`. Selected columns are decoded, those of filters too, and reading stops
        after the rows of ``head``. Errors of tfrecord_io keep their class and message.

    Raises
    ------
    MissingDependencyError
        polars is not installed.
    FileNotFoundError, CorruptRecordError, DecodeError, SchemaError
        As in `tfrecord_io.dataset`.

    Examples
    --------
    >>> import polars as pl, tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"label": [3, 1, 3], "name": ["a", "b", "c"]}, "letters.tfrecord")
    >>> tfr.scan_polars("letters.tfrecord").filter(pl.col("label") == 3).select("name").collect()["name"].to_list()
    ['a', 'c']
    """
    return to_polars(open_query(path, ReadOptions.of(keywords, scan_polars)))


def to_polars(query: Query) -> pl.LazyFrame:
    """A polars LazyFrame; see `tfrecord_io.scan_polars`."""
    with needs("polars"):
        import polars as pl
        from polars.io.plugins import register_io_source
    schema = pl.DataFrame(query.schema.empty_table()).schema
    return register_io_source(partial(_frames, query), schema=schema)


def _frames(
    query: Query, columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, batch_size: int | None
) -> Iterator[pl.DataFrame]:
    """The frames of a scan; polars expects the first `rows` rows, and of these those that fulfil the predicate."""
    import polars as pl

    if columns is not None:
        query = query.only(columns)
    if rows is not None:
        query = query.limited(rows)
        size = min(query.scan.options.batch_size, batch_size or rows, max(rows, 1))
        query = replace(query, scan=query.scan.over(batch_size=size))
    with query.open(whole=rows is None) as reader:
        for batch in reader:
            frame = pl.DataFrame(batch)
            yield frame if predicate is None else frame.filter(predicate)
