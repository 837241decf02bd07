"""Dask: a DataFrame with a partition for each piece of the files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tfrecord_io.adapters.requirements import needs
from tfrecord_io.keyword_docs import document_keywords
from tfrecord_io.options import ReadOptions
from tfrecord_io.read.query import PIECE_BYTES, Query, open_query
from tfrecord_io.typing import Path

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd


@document_keywords(ReadOptions)
def read_dask(
    path: Path | Iterable[Path], *, npartitions: int | None = None, max_bytes: int = PIECE_BYTES, **keywords: Any
) -> dd.DataFrame:
    """Open TFRecord files as a Dask DataFrame, whose partitions any worker reads by itself.

    Parameters
    ----------
    {path}
    npartitions : int, optional
        At most so many partitions, of about the same number of bytes.
    max_bytes : int, default 128 MiB
        Without `npartitions`: partitions of about this size, compressed if the files are.
    {keywords}

    Returns
    -------
    dask.dataframe.DataFrame
        With Arrow-backed columns; tensors keep their extension type. The stored index of a DataFrame is among the
        columns. Partitions decode only the columns that the query needs, under the schema of `tfrecord_io.dataset`.

    Raises
    ------
    MissingDependencyError
        dask.dataframe is not installed.
    ValueError
        `offset` or `limit` is given: such a read cannot be split.
    FileNotFoundError, CorruptRecordError, DecodeError, SchemaError
        As in `tfrecord_io.dataset`.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"label": [3, 1, 3], "name": ["a", "b", "c"]}, "letters.tfrecord")
    >>> letters = tfr.read_dask("letters.tfrecord", npartitions=2)
    >>> letters["label"].sum().compute()
    np.int64(7)
    """
    query = open_query(path, ReadOptions.of(keywords, read_dask))
    return to_dask(query, npartitions=npartitions, max_bytes=max_bytes)


def to_dask(query: Query, *, npartitions: int | None = None, max_bytes: int = PIECE_BYTES) -> dd.DataFrame:
    """A Dask DataFrame; see `tfrecord_io.read_dask`."""
    with needs("dask"):
        import dask.dataframe as dd
    from_map: Any = dd.from_map
    meta = _frame(query.schema.empty_table())
    parts = query.split(npartitions, max_bytes)
    return from_map(_load, parts, meta=meta, label="read-tfrecord", enforce_metadata=False)


def _load(query: Query, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """A partition; Dask passes the columns that are needed."""
    return _frame((query if columns is None else query.only(columns)).read())


def _frame(table: pa.Table) -> pd.DataFrame:
    """An Arrow-backed frame without an index of its own, so that all partitions are alike.

    Dask turns object columns into text; there is none among these.
    """
    import pandas as pd

    if not table.num_columns:
        return pd.DataFrame(index=pd.RangeIndex(table.num_rows))
    return table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
