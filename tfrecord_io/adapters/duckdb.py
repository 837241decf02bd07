"""DuckDB: tables of SQL whose queries decode only the columns and rows that they need.

DuckDB reads a pyarrow Dataset with projection and filters. It calls ``scanner(columns=, filter=)`` and takes the
stream of the result, so a subclass with that method is enough; the rest of the class is not usable, as it belongs to a
dataset in C++ that does not exist here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tfrecord_io.adapters.requirements import needs
from tfrecord_io.arrow.stream import BatchStream
from tfrecord_io.keyword_docs import document_keywords
from tfrecord_io.options import ReadOptions
from tfrecord_io.read.query import Query, open_query
from tfrecord_io.typing import Path

if TYPE_CHECKING:
    import duckdb


@document_keywords(ReadOptions)
def register_duckdb(
    connection: duckdb.DuckDBPyConnection, path: Path | Iterable[Path], *, name: str | None = None, **keywords: Any
) -> None:
    """Make TFRecord files a table of a DuckDB connection: SQL queries read only the columns and rows that they need.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
    {path}
    name : str, optional
        Of the table; by default the path itself: ``SELECT … FROM 'train-*.tfrecord'``.
    {keywords}

    Raises
    ------
    MissingDependencyError
        duckdb is not installed.
    ValueError
        There is no `name`, and `path` is a list.
    FileNotFoundError, CorruptRecordError, DecodeError, SchemaError
        As in `tfrecord_io.dataset`. Queries raise DuckDB's own errors, with the same text.

    Examples
    --------
    >>> import duckdb, tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"label": [3, 1, 3], "name": ["a", "b", "c"]}, "letters.tfrecord")
    >>> connection = duckdb.connect()
    >>> tfr.register_duckdb(connection, "letters.tfrecord")
    >>> connection.sql("SELECT name FROM 'letters.tfrecord' WHERE label = 3 ORDER BY name").fetchall()
    [('a',), ('c',)]
    """
    if name is None:
        if not hasattr(path, "__fspath__") and not isinstance(path, str):
            raise ValueError("a list of paths has no name for a table: pass name=")
        name = str(path)
    query = open_query(path, ReadOptions.of(keywords, register_duckdb))
    connection.register(name, _arrow_dataset(query))


def to_duckdb(query: Query, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
    """A relation of DuckDB, whose queries decode only the columns and rows that they need.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection, optional
        By default that of ``duckdb.sql``.
    """
    with needs("duckdb"):
        import duckdb
    return (connection or duckdb.default_connection()).from_arrow(_arrow_dataset(query))


class _Scanner:
    """What DuckDB takes for a pyarrow Scanner: a stream, whose errors keep their text."""

    def __init__(self, query: Query) -> None:
        self._query = query

    @property
    def projected_schema(self) -> pa.Schema:
        return self._query.schema

    def to_reader(self) -> BatchStream:
        return self._query.open(whole=self._query.scan.options.limit is None)


def _arrow_dataset(query: Query) -> Any:
    """The rows of a query as a pyarrow Dataset, for DuckDB alone."""
    return _dataset_class()(query)


@cache
def _dataset_class() -> type[Any]:
    import pyarrow.dataset as ds

    class ArrowDataset(ds.Dataset):  # type: ignore[misc]
        """A pyarrow Dataset of which only the schema and the scanner exist."""

        def __init__(self, query: Query) -> None:
            self._query = query

        @property
        def schema(self) -> pa.Schema:
            return self._query.schema

        def scanner(self, columns: Sequence[str] | None = None, filter: Any = None, **_: Any) -> _Scanner:
            query = self._query if filter is None else self._query.filter(filter)
            return _Scanner(query if columns is None else query.only(columns))

        def __reduce__(self) -> tuple[Any, ...]:
            return _arrow_dataset, (self._query,)

    def refuse(self: Any, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("this dataset is for DuckDB alone: use tfr.dataset(path)")

    for name in dir(ds.Dataset):
        if not name.startswith("__") and name not in ("schema", "scanner", "partition_expression"):
            setattr(ArrowDataset, name, refuse)
    ArrowDataset.partition_expression = property(refuse)
    return ArrowDataset
