"""DuckDB: tables of SQL whose queries decode only the columns and rows that they need.

DuckDB reads a pyarrow Dataset with projection and filters. It calls ``scanner(columns=, filter=)`` and takes the
stream of the result, so a subclass with that method is enough; the rest of the class is not usable, as it belongs to a
dataset in C++ that does not exist here.
"""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from tfrecord_io.errors import SchemaError
from tfrecord_io.kit import (
    FORMATS,
    Column,
    Condition,
    File,
    Files,
    LateTypes,
    LiveScan,
    ReadOptions,
    Scan,
    check_keywords,
    condition_of,
    needs,
    refuse_duckdb_types,
)
from tfrecord_io.typing import FilesLike, OpenedDataset, Reader, StorageLike

if TYPE_CHECKING:
    import duckdb
else:
    duckdb = LateTypes("duckdb")
T = TypeVar("T")
_WIDER = {pa.float16(): pa.float32()}  # of values, as DuckDB has no float16
_WAIT_SECONDS = 1.0  # at a time: Python handles Ctrl-C that arrives just before a wait only after it
_UNQUOTED_PATH = re.compile(r"""\b(?:from|join)\s+([^\s'"(),;]*[-@./*][^\s'"(),;]*)""", re.IGNORECASE)


_QUOTED_URL = re.compile(r"""['"]([a-z][a-z0-9+.-]*://[^'"]*)['"]""")
_COPY = re.compile(r"\s*copy\b", re.IGNORECASE)
_MISSING_TABLE = re.compile(r"Table with name (\S+) does not exist")


@check_keywords
def register_duckdb(
    connection: duckdb.DuckDBPyConnection,
    source: FilesLike,
    *,
    name: str | None = None,
    storage_options: StorageLike | None = None,
) -> None:
    """Make TFRecord files a table of a DuckDB connection: SQL queries read only the columns and rows that they need.

    Each query lists the files again: it includes rows added since, and still works after `compact`. The columns stay
    those at the time of this call.

    >>> import duckdb, tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord(
    ...     {"label": [3, 1, 3], "name": ["a", "b", "c"]}, "letters.tfrecord"
    ... )
    >>> connection = duckdb.connect()
    >>> tfr.register_duckdb(connection, "letters.tfrecord")
    >>> connection.sql(
    ...     "SELECT name FROM 'letters.tfrecord' WHERE label = 3 ORDER BY name"
    ... ).fetchall()
    [('a',), ('c',)]

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
    source : str, PathLike, Dataset, or list of those
        As in `read_tfrecord`; a `dataset` has more reading options.
    name : str, optional
        The name of the table; by default the path itself: ``SELECT … FROM 'train-*.tfrecord'``.
    storage_options : dict or filesystem, optional
        Options for fsspec, as in pandas; or the filesystem of all paths, of fsspec or pyarrow.

    Raises
    ------
    MissingDependencyError
        duckdb is not installed.
    ValueError
        `name` is missing, and `source` is a list, or differs from the name of a view only in case.
    FileNotFoundError, CorruptRecordError, DecodeError, SchemaError
        As in `tfrecord_io.dataset`. Queries raise DuckDB's own errors, with the same text.
    """
    if name is None:
        if not isinstance(source, str | os.PathLike):
            raise ValueError("only a path has a name for a table: pass name=")
        name = os.fspath(source)
        views = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        _check_case([view for (view,) in views if view != name], name)
    scan = Scan.of(source, storage_options=storage_options)
    connection.register(name, _arrow_dataset(scan, live=scan.live()))


def to_duckdb(dataset: OpenedDataset, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
    """A relation of DuckDB of this version of the files, whose queries decode only the columns and rows that they need.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection, optional
        By default that of ``duckdb.sql``.
    """
    scan = Scan.of(dataset)
    with needs("duckdb"):
        import duckdb
    return (connection or duckdb.default_connection()).from_arrow(_arrow_dataset(scan))


@contextmanager
def open_query(sql: str, *, target: str | None = None, **keywords: Any) -> Iterator[pa.RecordBatchReader]:
    """Run an SQL query whose tables are paths of TFRecord files; its result is a stream.

    Paths of files that DuckDB itself reads, such as Parquet files, may be named in the query, too, also as arguments of
    functions. Storage options hold for all URLs; `target`, the path that the result is written to, may be a URL.

    ValueError if DuckDB does not accept the query, or two paths differ only in case; EncodeError if a column of the
    result has a type whose values Arrow does not have: ``CAST`` makes it another one. Errors of `tfrecord_io.dataset`
    are raised also while the query runs.
    """
    with needs("duckdb"):
        import duckdb
    streams: list[Reader] = []
    options = ReadOptions.from_keywords(keywords)
    with duckdb.connect() as connection:
        connection.execute("SET python_enable_replacements = false")  # variables of this program are not tables
        try:
            names, urls = _find_tables(connection, sql)
            local = {**keywords, "storage_options": None} if urls or "://" in (target or "") else keywords
            paths = list(filter(_is_path, names))
            for i, name in enumerate(paths):
                _check_case(paths[:i], name)
                scan = Scan.of(name, **(keywords if "://" in name else local))
                connection.register(name, _arrow_dataset(scan, streams))
            of_protocols = {url.partition("://")[0]: url for url in urls if options.storage_options is not None}
            for url in of_protocols.values():
                if (filesystem := Files.filesystem(url, options)) is not None:
                    connection.register_filesystem(filesystem)
            result = _interruptible(connection, connection.sql, sql)
            if result is None and not duckdb.extract_statements(sql):
                raise ValueError("the query is empty: expected a SELECT")
            if result is None:
                yield pa.table({}).to_reader()
            else:
                for column, type_ in zip(result.columns, result.types, strict=True):
                    refuse_duckdb_types(column, type_)
                # DuckDB 1 has the second name.
                name = "to_arrow_reader" if hasattr(result, "to_arrow_reader") else "fetch_arrow_reader"
                yield _stream(connection, _interruptible(connection, getattr(result, name)))
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            fault = next((stream.fault for stream in streams if stream.fault is not None), None)
            if fault is not None:
                raise fault from None
            if not isinstance(error, duckdb.Error):
                raise
            reason, _, rest = str(error).partition("\n")
            if "No extension found" not in reason:  # after which DuckDB advises functions for its own formats
                reason = f"{reason}\n{rest}"
            lines = (line.strip(" ^") for line in f"{reason}{_advice(sql, error)}".split("\n"))
            raise ValueError("; ".join(filter(None, lines))) from error


def _interruptible(connection: duckdb.DuckDBPyConnection, call: Callable[..., T], *arguments: Any) -> T:
    """Run a call in a thread, so that Ctrl-C interrupts DuckDB, which may go on in the thread of Python's signals."""
    future: Future[T] = Future()  # not that of the pool: an interrupt of `submit` itself may leave a call that runs

    def run() -> None:
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(call(*arguments))
            except BaseException as error:
                future.set_exception(error)

    with ThreadPoolExecutor(1) as pool:
        try:
            pool.submit(run)
            while not future.done():
                wait([future], timeout=_WAIT_SECONDS)
        except BaseException:
            while not (future.cancel() or future.done()):
                connection.interrupt()
                wait([future], timeout=_WAIT_SECONDS)
            raise
        return future.result()


def _stream(connection: duckdb.DuckDBPyConnection, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Make a stream of the batches of a result that Ctrl-C interrupts."""

    def batches() -> Iterator[pa.RecordBatch]:
        while True:
            try:
                yield _interruptible(connection, rows.read_next_batch)
            except StopIteration:
                return

    return pa.RecordBatchReader.from_batches(rows.schema, batches())


def _advice(sql: str, error: Exception) -> str:
    """Advice about an error of DuckDB."""
    import duckdb

    with suppress(duckdb.Error):
        if (count := len(duckdb.extract_statements(sql))) > 1:
            return f"\nthe query has {count} statements: pass one SELECT, as only then the paths in it are tables"
    if _COPY.match(sql):
        return "\nuse a SELECT: tfr sql --output FILE writes its result, in the format that the name of FILE says"
    if unquoted := _UNQUOTED_PATH.search(sql):
        return f"\nquote paths: FROM '{unquoted[1]}'"
    if missing := _MISSING_TABLE.search(str(error)):
        return f"\ntables are quoted paths of files: FROM '{missing[1]}.tfrecord'"
    return ""


def _fold_case(name: str) -> bytes:
    """Name as DuckDB compares it: it ignores the case of ASCII letters only."""
    return name.encode().lower()


def _check_case(tables: Iterable[str], name: str) -> None:
    """ValueError if a name differs from that of a table only in case, which DuckDB ignores."""
    for table in tables:
        if _fold_case(table) == _fold_case(name):
            reason = f"DuckDB takes {table!r} and {name!r} for the same table, as its names ignore case"
            raise ValueError(f"{reason}; rename a file, or use register_duckdb(name=…)")


def _find_tables(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[list[str], list[str]]:
    """Find the tables of a SELECT, without CTEs, and the URLs among tables and arguments of table functions.

    DuckDB does not parse other statements for us: they have no tables here, and their URLs are all that they quote.
    """
    (text,) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()[0]
    names: dict[str, None] = {}
    statement = json.loads(text)
    texts = _QUOTED_URL.findall(sql) if statement.get("error") else []
    nodes = deque[tuple[Any, frozenset[bytes]]]([(statement, frozenset())])
    while nodes:
        node, ctes = nodes.popleft()
        if isinstance(node, dict):
            if node.get("type") == "BASE_TABLE" and (
                node.get("schema_name") or _fold_case(node["table_name"]) not in ctes
            ):
                names[node["table_name"]] = None
            if node.get("type") == "TABLE_FUNCTION":
                texts += _texts_in(node["function"])
            nodes += _children(node, ctes)
        elif isinstance(node, list):
            nodes += [(child, ctes) for child in node]
    return list(names), [text for text in (*names, *texts) if "://" in text]


def _texts_in(node: Any) -> list[str]:
    """Collect the texts in a node of a query."""
    if isinstance(node, str):
        return [node]
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return [text for child in children for text in _texts_in(child)]


def _children(node: dict[str, Any], ctes: frozenset[bytes]) -> Iterator[tuple[Any, frozenset[bytes]]]:
    """Values of a node of a query, each with the names of the CTEs visible to it.

    Visible to a CTE are the earlier ones, and to a recursive CTE itself.
    """
    if node.get("type") == "RECURSIVE_CTE_NODE":
        ctes |= {_fold_case(node["cte_name"])}
    for cte in (node.get("cte_map") or {}).get("map") or ():
        yield cte["value"], ctes
        ctes |= {_fold_case(cte["key"])}
    yield from ((value, ctes) for key, value in node.items() if key != "cte_map")


def _is_path(name: str) -> bool:
    """True if a table is a path of TFRecord files: not the name of a table or view, nor a file that DuckDB reads."""
    plain = File.plain_name(name)
    if plain.endswith(".xlsx") or any(plain.endswith(row.sql) for row in FORMATS):
        return False
    return re.fullmatch(r"\w+", name) is None or os.path.exists(name)


class _Scanner:
    """Object that DuckDB takes for a pyarrow Scanner: a stream, whose errors keep their text.

    Each stream is appended to `streams`, for its error: DuckDB passes on only the text.
    """

    def __init__(self, scan: Scan, streams: list[Reader] | None) -> None:
        self._scan, self._streams = scan, streams

    @property
    def projected_schema(self) -> pa.Schema:
        return self._scan.schema

    def to_reader(self) -> Reader | pa.RecordBatchReader:
        stream = self._scan.open(whole=self._scan.limit is None)
        if self._streams is not None:
            self._streams.append(stream)
        return (
            pa.RecordBatchReader.from_stream(stream) if _is_before_2() else stream
        )  # older versions take pyarrow's alone


def _is_before_2() -> bool:
    import duckdb

    return int(duckdb.__version__.partition(".")[0]) < 2


def _include_nan(part: Condition) -> Condition:
    """Include rows of NaN, which DuckDB sorts as the greatest number but leaves out of conditions before version 2."""
    part = part.replace_arguments([_include_nan(argument) for argument in part.arguments])
    operator = part.operator
    if operator is None or not operator.finds_nan:
        return part
    field, bound = part.arguments
    if bound.value is None or not pa.types.is_floating(bound.value.type):
        return part
    return Condition("call", "or_kleene", arguments=(part, Condition("call", "is_nan", arguments=(field,))))


def _arrow_dataset(scan: Scan, streams: list[Reader] | None = None, live: LiveScan | None = None) -> Any:
    """Present rows as a pyarrow Dataset, for DuckDB alone; float16, which DuckDB does not have, becomes float32."""
    scan.check_columns("the files have no columns, which a table of DuckDB needs: no feature, and no embedded schema")
    return _dataset_class()(scan, streams, live)


def _is_absent(field: pa.Field) -> bool:
    """True if DuckDB has no such type: a query that uses the column fails."""
    return Column(field).unknown_dtype is not None or any(
        pa.types.is_float16(part)
        or pa.types.is_decimal256(part)
        or (pa.types.is_decimal(part) and part.scale < 0)
        or (pa.types.is_union(part) and (part.mode == "dense" or part.type_codes != list(range(part.num_fields))))
        for part in Column(field).walk(storage=True)
    )


@cache
def _dataset_class() -> type[Any]:
    import pyarrow.dataset as ds

    class ArrowDataset(ds.Dataset):  # type: ignore[misc]
        """A pyarrow Dataset of which only the schema and the scanner exist."""

        def __init__(self, given: Scan, streams: list[Reader] | None, live: LiveScan | None) -> None:
            self._given, self._streams, self._live = given, streams, live
            self._scan = scan = given.retype(_WIDER)
            self._absent = {field.name: field for field in scan.schema if _is_absent(field)}
            present = [field for field in scan.schema if field.name not in self._absent]
            absent = [field.with_type(pa.null()) for field in self._absent.values()]
            self._schema = pa.schema(present + absent)  # in this order: count(*) reads the first column

        @property
        def schema(self) -> pa.Schema:
            return self._schema

        def scanner(self, columns: Sequence[str] | None = None, filter: Any = None, **_: Any) -> _Scanner:
            names = self._schema.names if columns is None else columns
            if used := [self._absent[name] for name in names if name in self._absent]:
                type_name = Column(used[0]).type_name
                reason = f"DuckDB has no type for this column of {type_name}"
                raise SchemaError(reason, feature=used[0].name, got=type_name, hint="leave it out of the query")
            if filter is not None and _is_before_2():
                filter = _include_nan(condition_of(filter))
            scan = self._scan if self._live is None else self._live.current().retype(_WIDER)
            scan = scan if filter is None else scan.filter(filter)
            return _Scanner(scan if columns is None else scan.only(columns), self._streams)

        def __reduce__(self) -> tuple[Any, ...]:
            return _arrow_dataset, (self._given, None, self._live)

    def refuse(self: Any, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("this dataset is for DuckDB alone: use tfr.dataset(path)")

    for name in dir(ds.Dataset):
        if not name.startswith("__") and name not in ("schema", "scanner", "partition_expression"):
            setattr(ArrowDataset, name, refuse)
    ArrowDataset.partition_expression = property(refuse)
    return ArrowDataset
