"""Some columns and rows of a scan, as a value: it can be pickled, narrowed, split, and opened any number of times."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from tfrecord_io.arrow.expressions import condition_text, expression_columns
from tfrecord_io.arrow.output.pandas_metadata import stored_index
from tfrecord_io.arrow.output.to_pandas import to_pandas
from tfrecord_io.display import counted
from tfrecord_io.errors import printable
from tfrecord_io.index.known_counts import KnownCounts
from tfrecord_io.options import MIB, ReadOptions, parse_filters
from tfrecord_io.read.chunks.count_frames import count_each
from tfrecord_io.read.indexed_rows import indexed_scan, with_known_indexes
from tfrecord_io.read.reader import Reader
from tfrecord_io.read.resolve_schema import plan_scan
from tfrecord_io.read.row_filter import ReadSelection, RowFilter
from tfrecord_io.read.scan import Scan
from tfrecord_io.schema.column_selection import Projection
from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.read.source import total

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.compute as pc

    from tfrecord_io.typing import DtypeBackend

PIECE_BYTES = 128 * MIB


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Query:
    """Columns and rows of a scan; the base of `Dataset` and `DatasetPiece`.

    Attributes
    ----------
    scan : Scan
        All columns that can be selected and filtered by.
    columns : tuple of str or None
        Those that are selected, in order; None: all.
    row_filter : RowFilter or None
        It may need other columns, too. ``scan.options.limit`` counts the rows after it.
    """

    scan: Scan
    columns: tuple[str, ...] | None = None
    row_filter: RowFilter | None = None

    @property
    def schema(self) -> pa.Schema:
        """Of the batches: the selected columns, in order."""
        schema = self.scan.schema
        if self.columns is None:
            return schema
        return pa.schema([schema.field(name) for name in self.columns], metadata=schema.metadata)

    @property
    def schema_source(self) -> str:
        """Where the schema comes from: "schema=", "embedded", "features.json", "companions" or "inferred"."""
        return self.scan.resolved.source

    @property
    def files(self) -> list[str]:
        """The paths of the files, in the order of reading."""
        return list(dict.fromkeys(source.path for source in self.scan.sources))

    @property
    def bytes(self) -> int | None:
        """The size of the files, compressed if they are, or of the parts that are read; None if unknown."""
        return total(source.size for source in self.scan.sources)

    @property
    def rows(self) -> int | None:
        """The number of rows, where a manifest states it; else None, and `count_rows` finds it."""
        sources = self.scan.sources
        if self.row_filter is not None:
            return None
        if all(source.shard is not None and source.span is None for source in sources):
            return self._within_limit(sum(source.shard.records for source in sources if source.shard is not None))
        return 0 if self.bytes == 0 else None

    def _within_limit(self, records: int) -> int:
        options = self.scan.options
        records = max(0, records - options.offset)
        return records if options.limit is None else min(records, options.limit)

    # Narrowing ----------------------------------------------------------------------------------------------------

    def select(self, columns: Sequence[str] | str) -> Self:
        """Only some of the columns.

        Parameters
        ----------
        columns : sequence of str
            Names, globs and ``!name``, as in `tfrecord_io.read_table`; names only: in this order. They choose among the
            columns selected so far.

        Raises
        ------
        FeatureNotFoundError
            An entry matches nothing.
        """
        names = self.schema.names
        projection = Projection(columns)
        projection.check(names)
        return replace(self, columns=tuple(projection.order(names)))

    def only(self, names: Sequence[str]) -> Self:
        """The columns of exactly these names, in this order."""
        for name in names:
            self.schema.field(name)  # KeyError
        return replace(self, columns=tuple(names))

    def filter(self, filters: Any) -> Self:
        """Only the rows that fulfil a condition, and all earlier ones; a condition that is null is not fulfilled.

        Parameters
        ----------
        filters : pyarrow.compute.Expression, or list of tuples, or list of lists of tuples
            ``pc.field("label") == 3``, or as in pandas: ``[("label", "==", 3), ("score", ">", 0.5)]`` are fulfilled
            together, of several such lists one is. The operators are ``==``, ``!=``, ``<``, ``>``, ``<=``, ``>=``,
            ``in``, ``not in`` and, for lists, ``contains``; ``("label", "==", None)`` is fulfilled where the value is
            missing. Columns that are not selected can be named, too. Files in directories such as ``label=3/`` are not
            opened if no row of them can fulfil it.

        Raises
        ------
        FeatureNotFoundError
            There is no column of that name.
        SchemaError
            The condition does not apply to the type of a column.
        """
        query = self._with_columns_of(parse_filters(filters))
        added = RowFilter.of(filters, query.scan.schema)
        return replace(query, row_filter=added if self.row_filter is None else self.row_filter & added)

    def _with_columns_of(self, condition: pc.Expression) -> Self:
        """The same rows and columns of a scan that also has the columns of a condition, if the files have them."""
        scan = self.scan
        names = expression_columns(condition)
        if all(name in scan.schema.names for name in names) or any(source.span for source in scan.sources):
            return self
        planned = plan_scan(scan.sources, replace(scan.options, filters=condition), only_sample=True).close()
        wider = replace(planned.over(scan.sources, limit=scan.options.limit), selection=None)
        own = tuple(self.schema.names)
        if any(wider.schema.field(name) != scan.schema.field(name) for name in own):  # types from other records
            return self
        return replace(self, scan=wider, columns=own)

    def limited(self, rows: int) -> Self:
        """At most the first rows."""
        limit = self.scan.options.limit
        return replace(self, scan=self.scan.over(limit=rows if limit is None else min(rows, limit)))

    def split(self, n: int | None, max_bytes: int) -> list[Self]:
        """See `tfrecord_io.Dataset.pieces`."""
        query = self.pruned()
        if n is None:
            n = max(1, -(-(query.bytes or 0) // max_bytes)) if query.bytes is not None else max(1, len(query.files))
        scans = query.scan.pieces(n)
        scans = scans if query.row_filter is None else with_known_indexes(scans)
        return [replace(query, scan=scan) for scan in scans] or [query]

    def tasks(self, n: int | None, max_bytes: int) -> list[Self]:
        """As `split`, for an engine that runs a task on each core, in processes with other working directories.

        Several tasks use one thread each, unless `threads` was given.
        """
        parts = self.absolute().split(n, max_bytes)
        if len(parts) == 1 or self.scan.options.threads is not None:
            return parts
        return [replace(part, scan=part.scan.over(threads=1)) for part in parts]

    def absolute(self) -> Self:
        """The same, for a process with another working directory."""
        return replace(self, scan=self.scan.over(source.absolute() for source in self.scan.sources))

    def pruned(self) -> Self:
        """Without the files that can have no row of the result."""
        if self.row_filter is None or self.scan.options.offset:  # an offset counts the records of all files
            return self
        sources = self.row_filter.possible(self.scan.sources, self.scan.partitions)
        return self if len(sources) == len(self.scan.sources) else replace(self, scan=self.scan.over(sources))

    def excluding(self, filters: Any) -> Self:
        """Without the files, and the records of indexed files, that cannot fulfil a condition.

        Other rows that do not fulfil it remain: for a caller that applies it faster than decoding in two steps.
        """
        filtered = self.filter(filters).pruned()
        indexed = indexed_scan(filtered._selecting()) if self.row_filter is None else None  # else `open` searches
        narrowed = filtered.scan if indexed is None else indexed
        return replace(self, scan=self.scan.over(narrowed.sources, offset=narrowed.options.offset))

    def with_index(self) -> Self:
        """With the columns that are the index of the DataFrame that was written."""
        scan = replace(self.scan, with_index=True)
        if self.columns is None:
            return replace(self, scan=scan)
        index = [name for name in stored_index(scan.schema) if name not in self.columns]
        return replace(self, scan=scan, columns=(*self.columns, *index))

    # Reading ------------------------------------------------------------------------------------------------------

    def decoded(self) -> Scan:
        """The scan that decodes the columns that are needed, the selected ones and those of the filter."""
        scan = self.scan if self.row_filter is None else self.scan.over(limit=None)
        if self.columns is None:
            return scan
        names = dict.fromkeys([*self.columns, *(self.row_filter.columns if self.row_filter else ())])
        path_column = scan.options.include_file_paths
        changes: dict[str, Any] = {} if path_column in names else {"include_file_paths": None}
        if not any(name.startswith("!") for name in names):  # which could not be selected by its name
            changes["columns"] = tuple(name for name in names if name != path_column)
        return scan.over(**changes)

    def open(self, *, whole: bool = False, warns: bool = False) -> Reader:
        """Open the files; `warns`: of declared columns that no record has.

        A `whole` read is decoded on all threads, in batches as large as possible.
        """
        query = self.pruned()
        scan = query._selecting(whole=whole)
        absent = scan.absent_columns() if warns and len(query.scan.sources) == len(self.scan.sources) else None
        indexed = indexed_scan(scan)
        return scan.open(absent) if indexed is None else indexed.open()

    def _selecting(self, *, whole: bool = False) -> Scan:
        """The scan that decodes what is needed, and delivers the selected columns of the rows that pass."""
        scan = replace(self.decoded(), whole=whole)
        if self.row_filter is None and scan.schema.names == self.schema.names:
            return scan
        limit = None if self.row_filter is None else self.scan.options.limit
        return scan.selecting(ReadSelection(tuple(self.schema.names), self.row_filter, limit))

    def read(self, *, warns: bool = False) -> pa.Table:
        """All rows as a table; `warns`: as `open`."""
        with self.open(whole=True, warns=warns) as reader:
            return reader.read_all()

    def read_pandas(self, dtype_backend: DtypeBackend | None = None) -> pd.DataFrame:
        """All rows as a DataFrame."""
        query = self.with_index()
        with query.open(whole=True, warns=True) as reader:
            table = reader.read_all()
            if not stored_index(table.schema):  # some files lack it
                table = table.select([name for name in table.column_names if name in self.schema.names])
            return to_pandas(table, dtype_backend, whole_file=reader.is_one_whole_file)

    def count_rows(self) -> int:
        """The number of rows: from manifests, index files or record headers, or by reading the columns of the filter.

        Raises
        ------
        CorruptRecordError, TruncatedRecordError, CompressionError
            A file is damaged.
        """
        if self.row_filter is not None:
            with self.select([]).open() as reader:
                return sum(batch.num_rows for batch in reader)
        scan, options = self.scan, self.scan.options
        known = KnownCounts(options.compression, options.max_record_bytes, options.max_decompression_ratio)
        whole = [source for source in scan.sources if source.span is None]
        counts = list(count_each(whole, known.indexes(whole), known, threads=scan.options.thread_count))
        parts = [source for source in scan.sources if source.span is not None]
        if parts:
            with scan.over(parts, columns=(), include_file_paths=None, limit=None, offset=0).open() as reader:
                counts.append(sum(batch.num_rows for batch in reader))
        return self._within_limit(sum(counts))

    def __dask_tokenize__(self) -> object:
        """What names a task of Dask that reads this: its pickled form, which Dask would otherwise take apart."""
        return "tfrecord_io", pickle.dumps(self)

    def describe(self) -> str:
        """Files, columns and the filter in a line, for display."""
        files = self.files
        more = f" and {counted(len(files) - 1, 'more file')}" if len(files) > 1 else ""
        where = f", rows where {condition_text(self.row_filter.expression)}" if self.row_filter is not None else ""
        return f"{printable(files[0]) if files else 'no files'}{more}: {counted(len(self.schema), 'column')}{where}"


def open_query(path: Any, options: ReadOptions) -> Query:
    """The query for all columns and rows of files, under one schema; see `tfrecord_io.dataset`."""
    sources = resolve_inputs(path, options.storage, allow_missing_shards=options.allow_missing_shards)
    for source in sources:
        if source.is_file_object or source.pipe is not None:
            reason = "a dataset is read any number of times: it takes paths of files, no file objects and no pipes"
            raise TypeError(f"{source.path}: {reason}")
    return query_of(plan_scan(sources, options, only_sample=True).close())


def query_of(scan: Scan) -> Query:
    """The query for what a scan delivers."""
    selection = scan.selection
    if selection is None:
        return Query(scan)
    return Query(replace(scan.over(limit=selection.limit), selection=None), selection.names, selection.row_filter)


def filter_scan(scan: Scan, filters: Any) -> tuple[Scan, RowFilter]:
    """The scan of the columns of a filter, and the filter; they need not be among the columns of `scan`."""
    query = Query(scan.over(columns=None)).filter(filters).select([])
    assert query.row_filter is not None
    return query.decoded(), query.row_filter
