"""Scan: a read as a value, which can be pickled, narrowed, split, and opened any number of times."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import filterfalse
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, overload

import pyarrow as pa

from tfrecord_io.base import (
    LIMITS,
    MessageType,
    ScanOptions,
    Selection,
    and_more,
    cached_property,
    check_integer,
    counted,
    did_you_mean,
    printable,
)
from tfrecord_io.bytes import CODECS, Array, ColumnBuffers, Plan, RecordType, Text
from tfrecord_io.columns import BatchBuilder, Column, EmbeddedSchema, Overrides, Projection, Schema, plan_columns
from tfrecord_io.errors import FeatureNotFoundError, SchemaError
from tfrecord_io.read.added_columns import AddedColumns
from tfrecord_io.read.chunks.chunk import DecodeSettings, plan_limits
from tfrecord_io.read.chunks.embedded_schemas import EmbeddedSchemaCheck, first_contents, unite_embedded
from tfrecord_io.read.scan_holder import ScanHolder as ScanHolder
from tfrecord_io.store import Source, Sources

if TYPE_CHECKING:
    from tfrecord_io.columns import MessageBatchBuilder, Observation
    from tfrecord_io.read.byte_ranges import KnownBoundaries, SplitFiles
    from tfrecord_io.read.index.picked_records import PickedSource
    from tfrecord_io.read.row_filter import RowFilter
    from tfrecord_io.read.tfds_schema import SidecarSchema
    from tfrecord_io.read.type_suggestions import Suggestion
    from tfrecord_io.store import Directory, PackedSources

MOST_PIECES = 10_000_000
_MOST_PACKED = 256  # files of a large dataset that are pickled one by one: more are found by its manifest
# Options that change neither which columns are decoded nor how.
_OF_BATCHES = {"threads", "batch_size", "batch_bytes", "progress"}


_SHOWN_COLUMNS = 6  # of a schema, on one line


@dataclass(slots=True, eq=False, repr=False)
class ResolvedSchema:
    """The schema of the features, and its source."""

    schema: Schema  # of all features that can be read
    source: str  # "schema=", "embedded", "saved", "features.json", "companions", "inferred", "record_type=…"
    record_type: RecordType = RecordType.DETECT
    embedded: EmbeddedSchema | None = None  # the one that governs, if `source` is "embedded"
    folded: frozenset[str] = frozenset()  # columns that were inferred to be tensors from their companion features
    companions: frozenset[str] = frozenset()  # companion features that are not columns
    # Of each feature in the sample: the error for a contradicting record also names a record of the sample.
    observations: Mapping[str, Observation] = field(default_factory=dict)
    is_partial: bool = False  # `schema` has a part of the columns; features of the others are left out

    @property
    def is_declared(self) -> bool:
        """True if ``schema=`` was passed."""
        return self.source == "schema="

    @property
    def is_embedded(self) -> bool:
        """True if a file carries it."""
        return self.source == "embedded"

    @property
    def is_inferred(self) -> bool:
        """True if records decided it, with companion features or without."""
        return self.source in ("inferred", "companions")

    def declares(self, overrides: Mapping[str, Any] | None) -> Callable[[str], bool]:
        """A predicate: the type of a column was declared, and not found in the records."""
        if not self.is_inferred and not self.is_embedded:
            return lambda name: True
        return Overrides(overrides).names if overrides else frozenset[str]().__contains__


class _Compiled:
    """How the columns of a scan are decoded, and made to batches."""

    def __init__(self, scan: Scan) -> None:
        resolved, options, entries = scan.resolved, scan.options, scan.selection.columns
        self._resolved, self._options, self._entries, self.columns = resolved, options, entries, resolved.schema
        self.added_index: list[str] = []
        if entries is not None or resolved.companions:
            order = Projection(entries).order(resolved.schema.names)
            names = list(filterfalse(resolved.companions.__contains__, order))
            if scan.with_index and resolved.is_embedded:
                excluded = {name.removeprefix("!") for name in entries or ()}
                index = EmbeddedSchema.index_levels(resolved.schema.to_arrow())
                self.added_index = [name for name in index if name not in names and name not in excluded]
            self.columns = resolved.schema.select([*names, *self.added_index])
        self.builder: BatchBuilder | MessageBatchBuilder
        if isinstance(message := options.record_type, MessageType):
            from tfrecord_io.columns import MessageBatchBuilder  # which imports protobuf

            self.builder = MessageBatchBuilder(
                message, self.columns.names, max_features=options.limits.features, threads=options.thread_count
            )
        else:
            dictionaries = resolved.embedded.dictionaries if resolved.embedded else {}
            self.builder = BatchBuilder(self.columns, dictionaries, resolved.folded, trusted=resolved.is_declared)
        self._settings: DecodeSettings | None = None
        # The embedded schema of one file was checked when it was read.
        is_checked = resolved.embedded is not None and resolved.embedded.content is not None
        may_raise = bool(resolved.schema.others) and (not is_checked or options.schema_overrides is not None)
        if may_raise and (not resolved.is_inferred or options.schema_overrides is not None):
            self.settings()  # at once; of an inferred schema often no record remains to be decoded
        self.schema = self.builder.schema
        if scan.partitions.fields or options.include_file_paths is not None:
            self.schema = scan.added.extend_schema(self.schema, Projection(entries))

    def settings(self) -> DecodeSettings:
        if self._settings is None:
            self._settings = _decode_settings(self._resolved, self._options, self._entries, self.columns)
        return self._settings


class Origin(NamedTuple):
    """Where the files of a scan were looked up, and how all of them are read."""

    path: Any
    options: ScanOptions
    selection: Selection


class Before(NamedTuple):
    """A dataset before its files were looked up again."""

    rows: int
    version: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scan:
    """A read of files under a schema; it holds no open file, thread or lock.

    SchemaError if a column cannot be read, or its name is used twice.
    """

    PIECE_BYTES: ClassVar = LIMITS.split_bytes

    sources: Sources
    options: ScanOptions
    selection: Selection  # its `columns` can be selected and filtered by; its filters are `row_filter`
    resolved: ResolvedSchema
    partitions: AddedColumns
    # The sidecar file that gave the schema, which also states the number of records.
    sidecar: SidecarSchema | None = None
    selected: tuple[str, ...] | None = None  # the columns that are delivered, in order; by default all
    row_filter: RowFilter | None = None  # it may need other columns, too
    with_index: bool = False  # index columns that were stored from a DataFrame are read in addition to any projection
    # Those of `selected` that were not requested, and are only read because they are levels of the index.
    index_levels: tuple[str, ...] = ()
    may_be_indexed: bool = True  # False: the files are known to have no column index
    origin: Origin | None = None  # if all files that were looked up are read
    # The working directory in which relative paths of `sources` and `origin` were looked up, if it matters later.
    directory: str | None = None
    # Where not all records are read: the records to read, by file; `sources` has only files with such records.
    picked: tuple[PickedSource, ...] | None = None
    left_out: int = 0  # so many records at the start of `picked` come before the first one of the scan
    refreshed: Before | None = None  # what the scan was before its files were looked up again, if they are in folders
    # Both without the columns that the filter added to ``schema=``, which are not delivered.
    narrow: tuple[ScanOptions, Selection] | None = None
    # Shared by scans of the same columns.
    compiled: _Compiled = None  # type: ignore[assignment]

    @staticmethod
    def unwrap(source: Any) -> Any:
        """Take the scans out of datasets and pieces, alone or in a list; return any other source as it is."""
        if isinstance(source, ScanHolder):
            return source._held
        if isinstance(source, list | tuple) and any(isinstance(part, ScanHolder) for part in source):
            return [Scan.unwrap(part) for part in source]
        return source

    def __post_init__(self) -> None:
        if self.compiled is None:
            object.__setattr__(self, "compiled", _Compiled(self))

    @property
    def is_of_first_rows(self) -> bool:
        """True if the schema is of the first rows only: later rows may have more columns, or other types."""
        if self.resolved.is_embedded:
            return len(self.sources) > 1 and not self.sources.have_stated_schemas
        return self.resolved.is_inferred

    @staticmethod
    def suggest_types(first: pa.RecordBatch) -> tuple[Suggestion, ...]:
        """What the columns of the first rows can be read as."""
        from tfrecord_io.read.type_suggestions import TypeSample

        sample = TypeSample()
        sample.add(first)
        return sample.suggestions()

    @property
    def has_schema(self) -> bool:
        """True if the schema is known, which is found when it is first needed: see `tfrecord_io.dataset`."""
        try:
            object.__getattribute__(self, "resolved")
        except AttributeError:
            return False
        return True

    @property
    def is_read_once(self) -> bool:
        """True if the first call that reads the scan finds its schema: a file object, or a pipe, is among its files."""
        if self.has_schema or self.sources.are_of_manifest:
            return False
        return any(source.is_file_object or source.pipe is not None for source in self.sources)

    @property
    def stated(self) -> ScanOptions:
        """The options as they were stated, unless something was selected since; its own leave out what was used."""
        if self.origin is not None and self.is_as_stated:
            return self.origin.options
        return self.options if self.narrow is None else self.options.changed(schema=self.narrow[0].schema)

    @property
    def stated_selection(self) -> Selection:
        """The selection of `stated`."""
        if self.origin is not None and self.is_as_stated:
            return self.origin.selection
        return self.selection if self.narrow is None else self.selection._replace(columns=self.narrow[1].columns)

    @property
    def is_as_stated(self) -> bool:
        """True if the scan is all of its `origin`: nothing else was selected of it."""
        if not self.has_schema:
            return True
        if self.origin is None or self.selected is not None or self.picked is not None:
            return False
        stated, own = self.origin.selection, self.selection
        condition = None if self.row_filter is None else self.row_filter.words.key
        expected = None if stated.filters is None else stated.filters.key
        return (own.offset, own.limit, condition) == (stated.offset, stated.limit, expected)

    @property
    def is_indivisible(self) -> bool:
        """True if pieces of the files would have other rows: by `offset`, `limit` or ``on_error="stop"``."""
        return self.selection.is_range or self.options.damage.ends_quietly

    @property
    def added(self) -> AddedColumns:
        """The columns that are not made of features, with the column of paths."""
        path = self.options.include_file_paths
        return self.partitions if path is None else self.partitions._replace(path=path)

    @property
    def added_index(self) -> Sequence[str]:
        """The columns that were not selected, and are only read because they are levels of the index."""
        return self.compiled.added_index if self.selected is None else self.index_levels

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches: the selected columns, in order."""
        schema = self.compiled.schema
        if self.selected is None:
            return schema
        return pa.schema([schema.field(name) for name in self.selected], metadata=schema.metadata)

    @property
    def features(self) -> Schema:
        """The schema of the features, also of those that are not selected."""
        return self.compiled.columns

    def description_folder(self) -> Directory | None:
        """The directory with the ``features.json`` of the datasets that the files are of, if that can be used."""
        from tfrecord_io.read.tfds_schema import SidecarSchema

        return SidecarSchema.folder_of(self.sources, self.options)

    @property
    def settings(self) -> DecodeSettings:
        """How the records are decoded."""
        return self.compiled.settings()

    @property
    def schema_source(self) -> str:
        """Where the schema comes from: "schema=", "embedded", "saved", "features.json", "companions", "inferred".

        Or ``record_type=…``, of bytes and other messages.
        """
        return self.resolved.source

    @property
    def files(self) -> list[str]:
        """The paths of the files, in the order of reading."""
        paths = self.sources.paths
        return paths if self.is_read_once else list(dict.fromkeys(paths))  # file objects may share a name

    @property
    def file_count(self) -> int:
        """The number of different files."""
        return len(self.sources) if self.sources.are_of_manifest else len(self.files)

    @property
    def bytes(self) -> int | None:
        """The size of the files, compressed if they are, or of the parts that are read; None if unknown."""
        return self.sources.bytes

    @property
    def rows(self) -> int | None:
        """The number of rows, where a manifest states it; else None, and `count_rows` finds it."""
        if self.row_filter is not None:
            return None
        if (records := self.sources.stated_records) is not None:
            return self.rows_within(records)
        return 0 if self.bytes == 0 else None

    def rows_within(self, records: int) -> int:
        """How many of so many records `offset` and `limit` leave."""
        rows, limit = max(0, records - self.selection.offset), self.selection.limit
        return rows if limit is None else min(rows, limit)

    @property
    def embedded_check(self) -> EmbeddedSchemaCheck:
        """A check of embedded schemas against the governing one; of how they say that declared columns are stored."""
        resolved, options = self.resolved, self.options
        if resolved.is_declared:
            return EmbeddedSchemaCheck(False, None, resolved.schema, Projection(self.selection.columns))
        return EmbeddedSchemaCheck(options.schema is None, resolved.embedded)

    @property
    def gathers_categories(self) -> bool:
        """True if the categories of a column are those of all records."""
        dictionaries = self.resolved.embedded.dictionaries if self.resolved.embedded else {}
        for f in self.features.others.values():
            if not f.is_common and Column(f.type).has_dictionary() and f.feature not in dictionaries:
                return True
        return False

    @property
    def has_values(self) -> bool:
        """True if column indexes have all values of some files, which are not read."""
        return self.picked is not None and any(file.values is not None for file in self.picked)

    def conflicts(self) -> Mapping[str, SchemaError]:
        """The columns that are read for which the embedded schemas of files have no common type, and the errors."""
        conflicts = self.resolved.embedded.conflicts if self.resolved.embedded is not None else {}
        names, is_overridden = set(self.features.names), Overrides(self.options.schema_overrides).names
        return {name: error for name, error in conflicts.items() if name in names and not is_overridden(name)}

    def refuse_conflicts(self) -> None:
        """Raise SchemaError if a column that is read has another type in a file that is read, and none holds both."""
        if self.resolved.embedded is None or not self.resolved.embedded.conflicts:
            return
        if conflicts := self.conflicts():
            governing = self.resolved.embedded
            # Files may have been left out since.
            current = unite_embedded(None, first_contents(self.sources, self.options))
            left = governing if current is None else governing.prefer(current)
            for name, error in conflicts.items():
                if name in left.conflicts or left.schema.field(name).type != governing.schema.field(name).type:
                    raise error

    def files_and_columns(self) -> str:
        """The files, and the columns that can be selected with their types, for display."""
        if not len(self.sources):
            return "no files"
        more = and_more(len(self.sources) - 1, "file")
        return f"{printable(self.sources[0].path)}{more}: {_first_columns(self.compiled.schema, self.shown_type)}"

    def shown_type(self, field: pa.Field) -> str:
        """The name of a column's type for display, with the type of its stored values if they differ.

        Messages have fields of float64.
        """
        name = Column(field).logical_name
        return name if isinstance(self.options.record_type, MessageType) else Column(field).shown_as(name)

    def describe(self) -> str:
        """Files, columns and the filter in a line, for display."""
        count = self.file_count
        more = f" and {counted(count - 1, 'more file')}" if count > 1 else ""
        columns = "which is read once" if self.is_read_once else counted(len(self.schema), "column")
        shown = ", ".join([columns, *self.described_rows()])
        return f"{printable(self.sources[0].path) if count else 'no files'}{more}: {shown}"

    def described_rows(self) -> list[str]:
        """The condition, `offset` and `limit` of the rows, for display."""
        if self.is_read_once:
            return [self.row_selection] * bool(self.row_selection)
        where = [] if self.row_filter is None else [f"rows where {self.row_filter.words.text}"]
        return [*where, *self.selection.range_parts]

    # Narrowing ----------------------------------------------------------------------------------------------------

    def with_options(self, **changes: Any) -> Self:
        """A scan with other options, which are valid, under the same schema; nothing is inferred or resolved again."""
        compiled = self.compiled if changes.keys() <= _OF_BATCHES else None
        return replace(self, options=self.options.changed(**changes), compiled=compiled)  # type: ignore[arg-type]

    def with_selection(self, **changes: Any) -> Self:
        """A scan with another `offset` or `limit`, or of other columns that can be selected."""
        selection, compiled = self.selection._replace(**changes), self.compiled
        if "columns" in changes:
            Projection(selection.columns).check([*self.resolved.schema.names, *self.partitions.names])
            compiled = None  # type: ignore[assignment]
        return replace(self, selection=selection, compiled=compiled)

    def with_report(self) -> Self:
        """A scan for a reader, whose report has what is left out; see `FrameOptions.with_report`."""
        options = self.options.with_report()
        return self if options is self.options else self.with_options(on_error=options.on_error)

    def with_sources(self, sources: Iterable[Source], **changes: Any) -> Self:
        """A scan of other files, and with another `offset` or `limit`."""
        selection = self.selection._replace(**changes) if changes else self.selection
        return replace(self, sources=Sources.of(sources), selection=selection, sidecar=None, picked=None, origin=None)

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
        return replace(self, selected=tuple(projection.order(names)))

    def only(self, names: Sequence[str]) -> Self:
        """The columns of exactly these names, in this order."""
        for name in names:
            self.schema.field(name)  # KeyError
        return replace(self, selected=tuple(names))

    @staticmethod
    def renamed_columns(columns: Sequence[str], names: Mapping[str, str]) -> list[str]:
        """The names of columns, of which some get others.

        >>> Scan.renamed_columns(["image/encoded", "label"], {"image/encoded": "jpg"})
        ['jpg', 'label']

        FeatureNotFoundError if a column does not exist; SchemaError if two would have one name.
        """
        for name in names:
            if name not in columns:
                hint = did_you_mean(name, columns, lists_names=True)
                raise FeatureNotFoundError("no column has this name, to be renamed", feature=name, hint=hint)
        renamed = [names.get(name, name) for name in columns]
        if len(set(renamed)) < len(renamed):
            twice = next(name for name in renamed if renamed.count(name) > 1)
            raise SchemaError("two columns would have this name", feature=twice, hint="choose another, or exclude one")
        return renamed

    def leave_out_others(self, names: Sequence[str]) -> Self:
        """Plan the columns of exactly these names, and of the filter, as if records had no more features.

        The decoders of such a scan do not hold the names of the other columns, of which there may be 10^5.
        """
        needed = dict.fromkeys([*names, *(self.row_filter.columns if self.row_filter else ())])
        names_of_features = {name for name in self.resolved.schema.names if name in needed}
        schema = self.resolved.schema.select([name for name in needed if name in names_of_features])
        return replace(
            self,
            resolved=replace(self.resolved, schema=schema, is_partial=True),
            selection=self.selection._replace(columns=None),
            compiled=None,  # type: ignore[arg-type]
        ).only(names)

    def rename(self, names: Mapping[str, str]) -> Self:
        """Rename columns; the new names are by the present names.

        FeatureNotFoundError if a column does not exist; SchemaError if two would have one name, or its values are those
        of folders or paths.
        """
        columns = self.compiled.columns.names
        renamed = self.renamed_columns(self.schema.names, names)
        for name in names:
            if name not in columns:
                raise SchemaError("a column of folders or paths keeps its name", feature=name)
        resolved = self.resolved
        fields = [replace(f, column=names.get(f.column, f.column)) for f in resolved.schema if f.column in columns]
        resolved = replace(
            resolved,
            schema=Schema(fields, resolved.schema.metadata),
            folded=frozenset(names.get(name, name) for name in resolved.folded),
        )
        selection = self.selection
        if selection.columns is not None:
            every = self.compiled.schema.names
            selection = selection._replace(columns=tuple(names.get(name, name) for name in every))
        return replace(
            self,
            selection=selection,
            resolved=resolved,
            selected=None if self.selected is None else tuple(renamed),
            row_filter=None if self.row_filter is None else self.row_filter.rename_columns(names),
            index_levels=tuple(names.get(name, name) for name in self.index_levels),
            origin=None,
            narrow=None,
            compiled=None,  # type: ignore[arg-type]
        )

    def filter(self, filters: Any) -> Self:
        """Only the rows that fulfil a condition, and all earlier ones; see `Dataset.filter`."""
        from tfrecord_io.read.row_filter import RowFilter

        added = RowFilter.for_schema(filters, self.compiled.schema)
        return replace(self, row_filter=added if self.row_filter is None else self.row_filter & added)

    def limit_rows(self, rows: int) -> Self:
        """Limit the scan to at most the first `rows` rows."""
        limit = rows if self.selection.limit is None else min(rows, self.selection.limit)
        limit = check_integer("limit", limit, 0, LIMITS.INT64_MAX)
        return self.with_selection(limit=limit)

    def add_index_levels(self) -> Self:
        """With the columns that are the index of the DataFrame that was written."""
        scan = replace(self, with_index=True, compiled=None)  # type: ignore[arg-type]
        if self.selected is None:
            return scan

        index = tuple(name for name in EmbeddedSchema.index_levels(scan.compiled.schema) if name not in self.selected)
        return replace(scan, selected=(*self.selected, *index), index_levels=index)

    def prune_files(self) -> Self:
        """Leave out the files that can have no row of the result."""
        if self.row_filter is None or self.selection.offset:  # an offset counts the records of all files
            return self
        sources = self.row_filter.possible(self.sources, self.partitions)
        return self if len(sources) == len(self.sources) else self.with_sources(sources)

    def with_required_columns(self) -> Self:
        """Restrict decoding to the columns that are needed: the selected ones and those of the filter."""
        if self.selected is None:
            return self
        names = dict.fromkeys([*self.selected, *(self.row_filter.columns if self.row_filter else ())])
        path_column, selection, options = self.options.include_file_paths, self.selection, self.options
        if path_column not in names:
            options = options.changed(include_file_paths=None)
        is_all = selection.columns is not None and names.keys() >= set(self.compiled.schema.names)
        # A name that begins with "!" could not be selected by itself; patterns also select what no schema names.
        if not is_all and not any(name.startswith("!") for name in names):
            selection = selection._replace(columns=tuple(name for name in names if name != path_column))
        if options is self.options and selection is self.selection:
            return self
        return replace(self, options=options, selection=selection, compiled=None)  # type: ignore[arg-type]

    def drop_columns(self) -> Self:
        """Select no columns, to count rows; with the columns where rows are left out whose values do not fit."""
        return self.select([]) if self.options.damage.counts_all else self

    def without_filter(self) -> Self:
        """All rows, of the columns that are needed: what is decoded to select columns and rows from."""
        if self.selected is None and self.row_filter is None:
            return self
        scan = replace(self.with_required_columns(), selected=None, row_filter=None)
        return scan if self.row_filter is None else scan.with_selection(limit=None)

    @property
    def decode_selection(self) -> Selection:
        """The selection to decode all rows, before the filter chooses some."""
        return self.selection if self.row_filter is None else self.selection._replace(limit=None)

    # Splitting ----------------------------------------------------------------------------------------------------

    def split(self, n: int | None, max_bytes: int = PIECE_BYTES) -> Pieces:
        """Split into at most `n` scans of about the same size, in order, or into those of about `max_bytes`.

        Large plain files are split into byte ranges, whose records `align_ranges` finds; compressed files stay whole.
        ValueError if `n` or `max_bytes` is less than 1, `n` is over ten million, or the read has an `offset`, a `limit`
        or ``on_error="stop"``.
        """
        n = check_integer("n", n, 1, MOST_PIECES, optional=True)
        max_bytes = check_integer("max_bytes", max_bytes, 1)
        scan, options = self.prune_files(), self.options
        if n is None:
            wanted = scan.file_count if scan.bytes is None else -(-scan.bytes // max_bytes)
            n = min(max(1, wanted), MOST_PIECES)
        if self.selection.is_range:
            raise ValueError("a read with offset= or limit= cannot be split into pieces")
        if options.damage.ends_quietly:
            reason = "each would end at its own damage"
            raise ValueError(f"a read with on_error='stop' cannot be split into pieces: {reason}; pass on_error='skip'")
        return Pieces(scan, n)

    @property
    def has_compressed_files(self) -> bool:
        """True if a file is compressed, by the option or its name."""
        if self.options.compression != CODECS.INFER:
            return self.options.compression not in (None, CODECS.PLAIN)
        return any(map(CODECS.of_path, self.sources.paths))

    def tasks(self, n: int | None, max_bytes: int) -> list[Scan]:
        """As `split`, for an engine that runs a task on each core, in processes with other working directories.

        Several tasks use one thread each, unless `threads` was given.
        """
        check_integer("npartitions", n, 1, optional=True)
        parts = self.absolute().split(n, max_bytes)
        if len(parts) == 1 or self.options.threads is not None:
            return [*parts]
        return [part.with_options(threads=1) for part in parts]

    def align_ranges(self, known: KnownBoundaries | None = None) -> Self:
        """Find the records that begin in the byte ranges of `split`, in the files.

        `known` keeps the boundaries that are found for the ranges beside these.
        CorruptRecordError if a file was changed since it was split.
        """
        if self.sources.are_of_manifest or all(source.file_bytes is None for source in self.sources):
            return self
        from tfrecord_io.read.byte_ranges import align_sources

        return self.with_sources(align_sources(self.sources, self.options.limits.record_bytes, known))

    def absolute(self) -> Self:
        """Make paths absolute, for a process with another working directory."""
        return self.with_sources(self.sources.absolute())

    # What the columns of the filter need --------------------------------------------------------------------------

    def early_filter(self, *, rereads: bool) -> EarlyFilter | None:
        """The part of the filter that can be applied before the other columns are decoded, or None.

        `rereads`: other columns are read again at the end, of all rows.
        """
        assert self.row_filter is not None
        _, to_drop = self.options.damage.split_offset(self.selection.offset)
        if MessageType.takes_payloads(self.options.record_type) or self.gathers_categories or to_drop:
            return None
        if rereads and not self.sources.can_be_read_again:
            return None
        names = set(self.features.names)
        for name in self.row_filter.columns:
            if name.startswith("!"):  # which ``columns=`` would leave out
                names.discard(name)
        filter_of_features = self.row_filter.restrict_to(names)
        return None if filter_of_features is None else EarlyFilter(self, filter_of_features)

    @property
    def row_selection(self) -> str:
        """The selection of rows of the files, for display; empty if nothing does."""
        if self.has_schema:
            condition = None if self.row_filter is None else self.row_filter.words
        else:
            condition = self.stated_selection.filters
        parts = [] if condition is None else [f"rows where {condition.text}"]
        return ", ".join([*parts, *self.stated_selection.range_parts])

    @property
    def row_range(self) -> str:
        """The offset and the limit, for display; empty if there are none."""
        return ", ".join(self.stated_selection.range_parts)

    @property
    def chooses_columns(self) -> bool:
        """True if some columns of the files are left out."""
        if self.stated_selection.columns is not None:
            return True
        return self.has_schema and self.selected is not None and self.selected != self._declared_names

    @property
    def _declared_names(self) -> tuple[str, ...] | None:
        """The names of all columns, where the filter needs more than ``schema=`` declares."""
        if self.narrow is None:
            return None
        options, _ = self.narrow
        added = self.partitions._replace(path=options.include_file_paths)
        return tuple(added.extend_schema(Schema.parse(options.schema).to_arrow(), Projection(None)).names)

    def select_all_rows(self, names: Sequence[str]) -> Scan:
        """Some of the columns, of all rows."""
        options = self.options.changed(include_file_paths=None, progress=False)
        selection = self.decode_selection._replace(columns=tuple(names))
        changes: dict[str, Any] = {"selected": None, "row_filter": None, "with_index": False, "compiled": None}
        return replace(self, options=options, selection=selection, **changes)

    # Pickling -----------------------------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        from tfrecord_io.store import PackedSources

        state = {name: getattr(self, name) for name in _PICKLED}
        is_reference = self.sources.are_of_manifest and len(self.sources) > _MOST_PACKED
        sources = self.sources if is_reference else PackedSources.pack(self.sources)
        return _unpickle, (type(self), sources, *state.values())

    def __dask_tokenize__(self) -> object:
        """A name for Dask's tasks on this scan: its pickled form, which Dask would otherwise take apart."""
        return "tfrecord_io", pickle.dumps(self)


class Pieces(Sequence[Scan]):
    """At most `n` scans of about the same size, in order, whose rows together are those of a scan.

    Each is made when it is taken: a large dataset may have millions. Pickled, they are the scan and `n`.
    """

    def __init__(self, scan: Scan, n: int, unindexed: frozenset[str] | None = None) -> None:
        self._scan, self._n = scan, n
        self._runs = self._split()
        self._unindexed = self._find_unindexed() if unindexed is None else unindexed

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._scan, self._n, self._unindexed)

    def __len__(self) -> int:
        return len(self._runs)

    @overload
    def __getitem__(self, number: int) -> Scan: ...
    @overload
    def __getitem__(self, number: slice) -> list[Scan]: ...
    def __getitem__(self, number: int | slice) -> Scan | list[Scan]:
        if isinstance(number, slice):
            return [self[at] for at in range(*number.indices(len(self)))]
        if self._scan.sources is not self._runs.sources:  # its paths became absolute, in another working directory
            self._runs = self._split()
        piece = self._scan.with_sources(self._runs[number])
        if self._unindexed and all(source.path in self._unindexed for source in piece.sources):
            return replace(piece, may_be_indexed=False)
        return piece

    def _split(self) -> SplitFiles:
        from tfrecord_io.read.byte_ranges import SplitFiles

        return SplitFiles(self._scan.sources, self._n, compression=self._scan.options.compression)

    def _find_unindexed(self) -> frozenset[str]:
        """Files without a column index, of which no piece needs to look for one again, if there is a filter.

        Whole local files are left to the pieces, as a look for an index takes no request there.
        """
        if self._scan.row_filter is None:
            return frozenset()
        from tfrecord_io.read.index.column_search import column_indexes

        parts = [part for part in self._runs.largest_parts() if part.span is not None or part.remote is not None]
        indexes = zip(parts, column_indexes(parts), strict=True)
        return frozenset(part.path for part, index in indexes if index is None)


class EarlyFilter:
    """The part of a scan's filter that can be applied before the other columns are decoded.

    Its own columns are compiled when it is applied for the first time: to small files it is not, unless a row has a
    value that does not fit.
    """

    def __init__(self, scan: Scan, row_filter: RowFilter) -> None:
        self.scan, self.row_filter = scan, row_filter

    @cached_property
    def _filter_scan(self) -> Scan:
        return self.scan.select_all_rows(self.row_filter.columns)

    def may_pass(self, columns: Mapping[str, ColumnBuffers], rows: int) -> Array:
        """A boolean for each row of decoded columns: true if it may pass; see `RowFilter.may_pass`."""
        return self.row_filter.may_pass(
            self._filter_scan.compiled.builder, self.scan.options.limits.expansion_bytes, columns, rows
        )

    def settings(self) -> DecodeSettings:
        """The settings to decode the filter's columns, and all columns of the records that pass; made once."""
        return self._settings

    @cached_property
    def _settings(self) -> DecodeSettings:
        from tfrecord_io.read.chunks.filtering_decoder import DecodingChoice, Prefilter

        settings = self.scan.settings
        names = {column.name for column in self._filter_scan.settings.plan.columns}
        if all(column.name in names for column in settings.plan.columns):
            return settings
        assert self.scan.row_filter is not None
        choice = DecodingChoice(copies=not self.scan.row_filter.is_hint)
        return settings._replace(prefilter=Prefilter(frozenset(names), self.may_pass, choice))


_PICKLED = [f.name for f in fields(Scan) if f.name not in ("sources", "picked", "left_out", "compiled")]


def _unpickle(kind: type[Scan], sources: PackedSources | Sources, *state: Any) -> Scan:
    unpacked = sources if isinstance(sources, Sources) else Sources(sources.unpack())
    return kind(unpacked, **dict(zip(_PICKLED, state, strict=True)))


def _decode_settings(
    resolved: ResolvedSchema, options: ScanOptions, entries: Sequence[str] | None, columns: Schema
) -> DecodeSettings:
    """How the features of the columns are decoded, which `entries` of ``columns=`` select."""
    if MessageType.takes_payloads(options.record_type):
        plan = Plan(check_crc=options.check_crc, max_record_bytes=options.limits.record_bytes)
        return DecodeSettings(plan, as_bytes=True)
    text = Text.STRICT if resolved.is_inferred else Text.UTF8
    is_declared = resolved.declares(options.schema_overrides)
    compiled = plan_columns(columns, text=text, folded=resolved.folded, promoted=is_declared)
    unknown, ignored, plan_of_columns = "fault", compiled.ignored, compiled.columns
    name_of = attrgetter("name")
    if resolved.is_inferred:
        unknown = "fault" if options.on_new == "raise" else "skip"
        ignored |= resolved.companions.difference(map(name_of, compiled.columns))
    elif resolved.is_embedded:
        if columns is not resolved.schema:
            every = plan_columns(resolved.schema)
            ignored = every.ignored.union(set(map(name_of, every.columns)).difference(map(name_of, compiled.columns)))
    else:
        unknown = "skip"
        plan_of_columns += compiled.other_part(resolved.schema)
    if resolved.is_partial:
        unknown = "skip"
    selected: Callable[[str], bool] | None = None
    if entries is not None:
        if columns.others:  # a record may have a feature of a column's new name
            features = {field.column: field.feature for field in columns.others.values()}
            entries = [features.get(entry, entry) for entry in entries]
        selected = Projection(entries)
    if resolved.embedded is not None and resolved.embedded.conflicts:
        selected = partial(_is_unexpected, selected, tuple(resolved.embedded.conflicts))
    plan = Plan(
        columns=plan_of_columns,
        unknown=unknown,
        select=selected,
        ignored=frozenset(ignored),
        record_type=resolved.record_type,
        stop_at_embedded=True,
        **plan_limits(options),
    )
    return DecodeSettings(plan, contradicts_sample=resolved.is_inferred)


def _is_unexpected(selected: Callable[[str], bool] | None, conflicts: tuple[str, ...], name: str) -> bool:
    """True if a feature that no schema names is an error: not if it belongs to a column with conflicting types."""
    of_conflict = any(name == column or name.startswith(f"{column}/") for column in conflicts)
    return not of_conflict and (selected is None or selected(name))


def _first_columns(schema: pa.Schema, shown_type: Callable[[pa.Field], str]) -> str:
    """The first columns of a schema and their types as `shown_type` has them, on one line."""
    shown = [f"{printable(f.name, 40)}: {printable(shown_type(f), 80)}" for f in list(schema)[:_SHOWN_COLUMNS]]
    return ", ".join([*shown, f"… ({len(schema)} columns)"] if len(schema) > _SHOWN_COLUMNS else shown)
