"""`Scan`: what a call reads, as adapters and engines narrow, split, send and open it.

Tests: tests/test_kit.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tfrecord_io.base import Condition, ReadOptions, ScanOptions
from tfrecord_io.errors import SchemaError
from tfrecord_io.read import CallSource, ScanHolder, options_from_call
from tfrecord_io.read import Scan as RoomScan

if TYPE_CHECKING:
    from tfrecord_io.read import Reader, RecordMap, ScanRows
    from tfrecord_io.rows import RowLookup


class Scan:
    """A read as a value: of which files, as which columns, of which rows. It holds no open file, and can be pickled.

    Methods return a narrower scan. Nothing is read before `open`, `read`, `count` or `lookup`.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"label": [3, 1, 3], "n": [1, 2, 3]}, "letters.tfrecord")
    >>> scan = Scan.of("letters.tfrecord").filter([("label", "==", 3)]).only(["n"])
    >>> [part.read().to_pydict() for part in scan.tasks(1)]
    [{'n': [1, 3]}]

    Attributes
    ----------
    PIECE_BYTES : int
        About how many bytes a part has by default.
    """

    PIECE_BYTES = RoomScan.PIECE_BYTES

    __slots__ = ("_scan",)

    def __init__(self, scan: RoomScan) -> None:
        self._scan = scan

    @classmethod
    def of(cls, source: Any, *, first_files: int | None = None, **keywords: Any) -> Scan:
        """Plan the read of a `Dataset`, a piece of one, or of paths with the keywords of `tfrecord_io.dataset`.

        With `first_files`, the schema of files in a bucket is that of so many of them, which takes fewer requests, and
        of large records on a disk the first values of a feature count, which takes less memory.

        TypeError for a keyword that does not exist; else the errors of `tfrecord_io.dataset`.
        """
        if isinstance(source, Scan):
            return source
        if isinstance(source, ScanHolder) and not keywords:
            return cls(source._held)
        return cls(CallSource(source).dataset(options_from_call(ReadOptions, None, source, **keywords), first_files))

    @property
    def _rows(self) -> ScanRows:
        from tfrecord_io.read import ScanRows

        return ScanRows(self._scan)

    # ---- what is read

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches: the selected columns, in order."""
        return self._scan.schema

    @property
    def options(self) -> ScanOptions:
        """How the files are read: the checked keywords, without those that select columns and rows."""
        return self._scan.options

    @property
    def files(self) -> list[str]:
        """The paths of the files, in the order of reading."""
        return self._scan.files

    @property
    def bytes(self) -> int | None:
        """The size of what is read of the files; None if it is unknown."""
        return self._scan.bytes

    @property
    def rows(self) -> int | None:
        """The number of rows, if it is known without reading."""
        return self._scan.rows

    @property
    def limit(self) -> int | None:
        """The most rows, if their number is limited."""
        return self._scan.selection.limit

    @property
    def files_begun(self) -> int:
        """How many files begin in this part of a dataset, so that all parts together count each file once."""
        return sum(source.begin == 0 for source in self._scan.sources)

    # ---- columns and rows

    def only(self, names: Sequence[str]) -> Scan:
        """Select the columns of exactly these names, in this order; KeyError for another name."""
        return Scan(self._scan.only(names))

    def filter(self, filters: Any) -> Scan:
        """Select the rows, of those that are selected so far, which meet a condition.

        SchemaError if the condition does not apply to the type of a column.
        """
        return Scan(self._rows.filter(filters))

    def exclude(self, filters: Any) -> Scan:
        """Leave out files and records that cannot meet a condition, which the caller applies again to the rows."""
        return Scan(self._rows.exclude(filters))

    def limit_rows(self, rows: int) -> Scan:
        """Select at most the first `rows` rows."""
        return Scan(self._scan.limit_rows(rows))

    def with_options(self, **changes: Any) -> Scan:
        """Change options that are valid, such as `batch_size` and `threads`; nothing is looked up again."""
        return Scan(self._scan.with_options(**changes))

    def retype(self, types: Mapping[pa.DataType, pa.DataType]) -> Scan:
        """Read values of some types as others, which a library has instead; not the parts that are stored as bytes."""
        from tfrecord_io.columns import Column, Schema

        resolved = self._scan.resolved
        fields = (replace(f, type=_retype(f.type, types)) if f.encoding == Column.LIST else f for f in resolved.schema)
        schema = Schema(fields, resolved.schema.metadata)
        if schema == resolved.schema:
            return self
        resolved = replace(resolved, schema=schema)
        return Scan(replace(self._scan, resolved=resolved, compiled=None))  # type: ignore[arg-type]

    # ---- parts

    def split(self, n: int | None, max_bytes: int = PIECE_BYTES) -> list[Scan]:
        """Split into at most `n` parts of about the same size, in order, or into parts of about `max_bytes`.

        ValueError if the read has an `offset`, a `limit` or ``on_error="stop"``, or a number is out of range.
        """
        return [Scan(part) for part in self._scan.split(n, max_bytes)]

    def tasks(self, n: int | None = None, max_bytes: int = PIECE_BYTES) -> list[Scan]:
        """Split for an engine that runs a task on each core, in processes with any working directory.

        Several tasks use one thread each, unless `threads` was given.
        """
        return [Scan(part) for part in self._scan.tasks(n, max_bytes)]

    def group_files(self, max_bytes: int = PIECE_BYTES) -> list[Scan]:
        """Split into parts of whole files: a large file each, or several small ones of at most `max_bytes` in all.

        ValueError as of `split`.
        """
        scan = self._scan.prune_files()
        scan.with_sources(scan.sources[:1]).split(1)
        groups: list[list[Any]] = []
        room = 0
        for source in scan.sources:
            size = max_bytes if source.size is None else source.size
            if not groups or size > room:
                groups.append([])
                room = max_bytes
            groups[-1].append(source)
            room -= size
        return [Scan(scan.with_sources(group)) for group in groups]

    def absolute(self) -> Scan:
        """Make paths absolute, for a process with another working directory."""
        return Scan(self._scan.absolute())

    def live(self) -> LiveScan:
        """Make a scan whose files are looked up again at each use; it keeps its columns."""
        return LiveScan(self._rows.live())

    # ---- reading

    def open(self, *, whole: bool = False) -> Reader:
        """Open the rows as a stream of batches; a `whole` read decodes batches as large as possible, on all threads."""
        return self._rows.open(whole=whole)

    def read(self) -> pa.Table:
        """Read all rows."""
        return self._rows.read()

    def count(self) -> int:
        """Count the rows, in the cheapest way."""
        return self._rows.count()

    def lookup(self) -> RowLookup:
        """Look up rows by number; rows without a known number, as those of a filter, are read at once."""
        from tfrecord_io.rows import row_lookup

        return row_lookup(self._scan)

    def map_records(self) -> RecordMap:
        """Give every record an address, damaged ones included; a background thread finds them.

        ValueError if the read has an `offset` or a `limit`.
        """
        from tfrecord_io.read import RecordMap

        return RecordMap(self._scan)

    # ---- what a library cannot hold

    def check_columns(self, no_columns: str | None = None) -> None:
        """Raise SchemaError for a name with a NUL, which ends it in the C data interface of Arrow.

        With a reason, `no_columns`, there has to be a column: otherwise raise the error of the first records, or else
        SchemaError with the reason.
        """
        from tfrecord_io.columns import BatchStream
        from tfrecord_io.read import Files

        if len(self.schema) or no_columns is None:
            return BatchStream.check_names(self.schema)
        scan = self._scan
        planned = Files(scan.sources, scan.options, scan.selection).plan_scan(only_sample=True)
        planned.close()
        if planned.error is not None and scan.options.damage.counts_all:
            raise planned.error
        raise SchemaError(no_columns, path=next(iter(self.files), None))

    def __reduce__(self) -> tuple[Any, ...]:
        return Scan, (self._scan,)

    def __dask_tokenize__(self) -> object:
        return self._scan.__dask_tokenize__()


class LiveScan:
    """A scan whose files are looked up again at each use, made by `Scan.live`. It can be pickled."""

    __slots__ = ("_find_scan",)

    def __init__(self, find_scan: Callable[[], RoomScan]) -> None:
        self._find_scan = find_scan

    def current(self) -> Scan:
        """Return the scan of the files that are there now; SchemaError if a column has another type by now."""
        return Scan(self._find_scan())

    def __reduce__(self) -> tuple[Any, ...]:
        return LiveScan, (self._find_scan,)


def _retype(type_: pa.DataType, types: Mapping[pa.DataType, pa.DataType]) -> pa.DataType:
    from tfrecord_io.columns import Column

    if pa.types.is_struct(type_):
        return pa.struct([f if Column(f).encoding else f.with_type(_retype(f.type, types)) for f in type_])
    if Column(type_).is_list:
        return Column(type_).relist(type_.value_field.with_type(_retype(type_.value_type, types)))
    return types.get(type_, type_)


def condition_of(filters: Any, schema: pa.Schema | None = None) -> Condition:
    """The condition of ``filters=`` or of an expression of pyarrow.

    SchemaError if it does not apply to a column of the schema, FeatureNotFoundError if there is no such column.

    >>> condition_of([("label", "==", 3), ("n", "in", [1, 2])]).columns
    ('label', 'n')
    """
    from tfrecord_io.base import condition_of as parse

    condition = parse(filters)
    if schema is not None:
        from tfrecord_io.read import RowFilter

        RowFilter.for_schema(condition, schema)
    return condition
