"""A read with a fixed schema, as a value: it can be pickled, split, and opened any number of times."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from typing import Any

import pyarrow as pa

from tfrecord_io.arrow.decode.batch_builder import BatchBuilder, has_dictionary
from tfrecord_io.arrow.decode.composite_decoder import CompositeBatchBuilder, CompositeDecoder
from tfrecord_io.arrow.decode.decode_plan import other_part, plan_columns
from tfrecord_io.arrow.output.merged_schema import EmbeddedSchema
from tfrecord_io.arrow.output.pandas_metadata import stored_index
from tfrecord_io.engine.contract import Plan
from tfrecord_io.engine.filtering_decoder import Prefilter
from tfrecord_io.errors import SchemaError, printable
from tfrecord_io.format.kinds import RecordType, Text
from tfrecord_io.options import ReadOptions
from tfrecord_io.read.absent_columns import AbsentColumns, warn_of_schema
from tfrecord_io.read.chunks.chunk import DecodeSettings, plan_limits
from tfrecord_io.read.chunks.chunk_reader import ChunkReader
from tfrecord_io.read.chunks.embedded_schemas import EmbeddedSchemaCheck
from tfrecord_io.read.chunks.row_budget import row_budget
from tfrecord_io.read.open_scan import OpenScan, SidecarSchema
from tfrecord_io.read.partition_columns import PartitionColumns
from tfrecord_io.read.reader import Reader
from tfrecord_io.read.row_filter import EarlyFilter, ReadSelection, RowFilter
from tfrecord_io.read.splitting.pieces import split_sources
from tfrecord_io.schema.column_selection import Projection, is_overridden
from tfrecord_io.schema.observation import Observation
from tfrecord_io.schema.schema import Schema
from tfrecord_io.schema.type_names import schema_summary
from tfrecord_io.storage.paths.packed_sources import PackedSources
from tfrecord_io.storage.read.source import Source


@dataclass(frozen=True, slots=True)
class ResolvedSchema:
    """The schema of the features, and its source.

    Attributes
    ----------
    schema : Schema
        Of all features that can be read.
    source : str
        "schema=", "embedded", "features.json", "companions", "inferred" or 'record_type="bytes"'.
    embedded : EmbeddedSchema or None
        The one that governs, if `source` is "embedded".
    folded : frozenset of str
        Columns that were inferred to be tensors from their companion features.
    companions : frozenset of str
        Companion features that are not columns.
    observations : mapping of str to Observation
        Of each feature in the sample: the error for a contradicting record also names a record of the sample.
    """

    schema: Schema
    source: str
    record_type: RecordType = RecordType.DETECT
    embedded: EmbeddedSchema | None = None
    folded: frozenset[str] = frozenset()
    companions: frozenset[str] = frozenset()
    observations: Mapping[str, Observation] = field(default_factory=dict)

    @property
    def is_inferred(self) -> bool:
        return self.source in ("inferred", "companions")


@dataclass(frozen=True, slots=True)
class Scan:
    """What is read, and under which schema; it holds no open file, thread or lock.

    Parameters
    ----------
    sources : tuple of Source
    options : ReadOptions
    resolved : ResolvedSchema
    partitions : PartitionColumns
    sidecar : SidecarSchema, optional
        If the schema is that of a sidecar file, which also states the number of records.
    with_index : bool
        Index columns that were stored from a DataFrame are read in addition to any projection.
    whole : bool
        Everything is read at once: batches are as large as possible.
    selection : ReadSelection, optional
        What is delivered of the rows and columns that are decoded; by default all.
    may_be_indexed : bool
        False: the files are known to have no column index.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of the batches that are decoded.
    columns : Schema
        Of the features.
    settings : DecodeSettings
        Compiled when they are first used, if the schema was inferred: often no record remains to be decoded with them.
    builder : BatchBuilder or CompositeBatchBuilder

    Raises
    ------
    SchemaError
        A column cannot be read, or its name is used twice.
    """

    sources: tuple[Source, ...]
    options: ReadOptions
    resolved: ResolvedSchema
    partitions: PartitionColumns
    sidecar: SidecarSchema | None = None
    with_index: bool = False
    whole: bool = False
    selection: ReadSelection | None = None
    may_be_indexed: bool = True
    schema: pa.Schema = field(init=False, repr=False, compare=False)
    columns: Schema = field(init=False, repr=False, compare=False)
    _compiled: Callable[[], DecodeSettings] = field(init=False, repr=False, compare=False)
    builder: BatchBuilder | CompositeBatchBuilder = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        projection = Projection(self.options.columns)
        columns = self.resolved.schema.select(self._chosen(projection))
        described = not (self.resolved.is_inferred or self.resolved.embedded)
        composite = CompositeDecoder(columns) if described else None
        parts = columns if composite is None else composite.parts
        embedded = self.resolved.embedded
        dictionaries = embedded.dictionaries if embedded else {}
        trusted = self.resolved.source == "schema="
        builder: Any = BatchBuilder(parts, dictionaries, self.resolved.folded, trusted=trusted)
        if composite is not None and composite.needed:
            builder = CompositeBatchBuilder(builder, composite)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "builder", builder)
        object.__setattr__(self, "_compiled", cache(partial(_compile, self.resolved, self.options, columns, parts)))
        if not self.resolved.is_inferred or self.options.schema_overrides is not None:
            self._compiled()  # at once, as it may raise
        object.__setattr__(self, "schema", self._batch_schema(builder.schema, projection))

    def _chosen(self, projection: Projection) -> list[str]:
        """The names of the columns to read, in order."""
        resolved = self.resolved
        names = [name for name in projection.order(resolved.schema.names) if name not in resolved.companions]
        return [*names, *self._added_index(names)]

    def _added_index(self, names: Collection[str]) -> list[str]:
        """The columns of the index that are read in addition to the selected `names`."""
        if not self.with_index or self.resolved.source != "embedded":
            return []
        excluded = {name.removeprefix("!") for name in self.options.columns or ()}
        index = stored_index(self.resolved.schema.to_arrow())
        return [name for name in index if name not in names and name not in excluded]

    @property
    def delivered_schema(self) -> pa.Schema:
        """Of the batches that a reader delivers."""
        return self.schema if self.selection is None else self.selection.schema(self.schema)

    def delivering(self, row_filter: RowFilter, limit: int | None, requested: Scan) -> Scan:
        """This scan, of which the rows that pass a filter, at most `limit`, and the columns of `requested` are read."""
        names, index = requested.schema.names, requested.added_index
        return self.selecting(ReadSelection(tuple(names), row_filter, limit, tuple(index)))

    def selecting(self, selection: ReadSelection) -> Scan:
        """This scan, of which only a selection is delivered; nothing is compiled again."""
        return self._changed(selection=selection)

    def without_indexes(self) -> Scan:
        """This scan, of files that are known to have no column index."""
        return self._changed(may_be_indexed=False)

    def _changed(self, **changes: Any) -> Scan:
        scan = object.__new__(Scan)
        for each in fields(self):
            object.__setattr__(scan, each.name, changes.get(each.name, getattr(self, each.name)))
        return scan

    @property
    def added_index(self) -> list[str]:
        """The columns that were not selected, and are only read because they are levels of the index."""
        return self._added_index(Projection(self.options.columns).order(self.resolved.schema.names))

    @property
    def settings(self) -> DecodeSettings:
        """How the records are decoded."""
        return self._compiled()

    def _batch_schema(self, schema: pa.Schema, projection: Projection) -> pa.Schema:
        schema = self.partitions.extended(schema, projection)
        path_column = self.options.include_file_paths
        if path_column is None:
            return schema
        if path_column in schema.names:
            reason = "include_file_paths= names a column that exists"
            raise SchemaError(reason, feature=path_column, advice="pass another name")
        return schema.append(pa.field(path_column, pa.string()))

    def __str__(self) -> str:
        """Files and columns, for display."""
        if not self.sources:
            return "no files"
        more = f" and {len(self.sources) - 1:,} more files" if len(self.sources) > 1 else ""
        return f"{printable(self.sources[0].path)}{more}: {schema_summary(self.schema)}"

    # Other reads under the same schema ------------------------------------------------------------------------

    def over(self, sources: Iterable[Source] | None = None, **changes: Any) -> Scan:
        """A scan of other files, or with other options, under the same schema; nothing is inferred or resolved again.

        Parameters
        ----------
        sources : iterable of Source, optional
        **changes
            Options of `ReadOptions`: a column selection, `offset`, `limit`, `threads`, the size of batches.
        """
        options = replace(self.options, **changes)
        if "columns" in changes:
            Projection(options.columns).check([*self.resolved.schema.names, *self.partitions.names])
        if sources is None:
            return replace(self, options=options)
        return replace(self, options=options, sources=tuple(sources), sidecar=None)

    def pieces(self, n: int) -> list[Scan]:
        """Split into at most `n` scans of about the same size, in order.

        Large plain files are split at record boundaries; compressed files stay whole.

        Raises
        ------
        ValueError
            `n` is less than 1, or the read has an `offset` or a `limit`.
        """
        if self.options.offset or self.options.limit is not None:
            raise ValueError("a read with offset= or limit= cannot be split into pieces")
        limit = self.options.max_record_bytes
        return [self.over(sources) for sources in split_sources(self.sources, n, max_record_bytes=limit)]

    # Opening -----------------------------------------------------------------------------------------------------

    @property
    def embedded_check(self) -> EmbeddedSchemaCheck:
        """A check of embedded schemas against the governing one."""
        return EmbeddedSchemaCheck(self.options.schema is None, self.resolved.embedded)

    def open(self, absent: AbsentColumns | None = None) -> Reader:
        """Open the files; the reader raises if a file has more columns than the schema.

        It warns of declared columns that no record has only if it gets `absent`, as a scan may be a piece of a read.
        SchemaError if files have types for a column that no type has in common.
        """
        self.refuse_conflicts()
        return Reader(self.opened(ChunkReader(self.sources, self.options), absent))

    def refuse_conflicts(self) -> None:
        """Raise SchemaError if the embedded schemas of files have no common type for a column that is read."""
        for error in self.conflicts().values():
            raise error

    def conflicts(self) -> Mapping[str, SchemaError]:
        """The columns that are read for which the embedded schemas of files have no common type, and the errors."""
        found = self.resolved.embedded.conflicts if self.resolved.embedded is not None else {}
        overrides = self.options.schema_overrides
        return {
            name: error
            for name, error in found.items()
            if name in self.columns.names and not is_overridden(name, overrides)
        }

    def absent_columns(self, issue: Callable[[str], object] = warn_of_schema) -> AbsentColumns | None:
        """The columns to warn of if no record has them; None if the schema was not declared by ``schema=``."""
        return AbsentColumns(self.columns, issue) if self.resolved.source == "schema=" else None

    def opened(self, reader: ChunkReader, absent: AbsentColumns | None = None) -> OpenScan:
        """Read this scan through a chunk reader, from its current position; see `open`."""
        own = self._own_filter(absent)
        part = None if own is None else self._only(own.columns)
        early = None if own is None or part is None else EarlyFilter(own, part.builder, self.options.max_expansion)
        reader.decode_by(
            self._compiled if part is None or early is None else cache(partial(self._filtering, part, early))
        )
        reader.check = self.embedded_check
        return OpenScan(
            describe=self.__str__,
            sources=self.sources,
            options=self.options,
            schema=self.schema,
            schema_source=self.resolved.source,
            observations=self.resolved.observations,
            partitions=self.partitions,
            sidecar=self.sidecar,
            builder=self.builder,
            reader=reader,
            budget=row_budget(self.options, whole=self.whole),
            absent=absent,
            whole=self.whole,
            added_index=self.added_index if self.selection is None else self.selection.added_index,
            selection=self.selection,
            fails=None if early is None else early.fails,
            values_of=None if early is None else self._values_of,
        )

    @property
    def gathers_categories(self) -> bool:
        """Whether the categories of a column are those of all records."""
        dictionaries = self.resolved.embedded.dictionaries if self.resolved.embedded else {}
        return any(has_dictionary(f.type) and f.feature not in dictionaries for f in self.columns)

    # Filters -----------------------------------------------------------------------------------------------------

    def _own_filter(self, absent: AbsentColumns | None) -> RowFilter | None:
        """What the filter requires of features, if records that do not pass it need not be decoded wholly."""
        row_filter = None if self.selection is None else self.selection.row_filter
        if row_filter is None or self.options.record_type == "bytes":
            return None
        if self.gathers_categories:
            return None
        if absent is not None and not all(source.can_be_read_again for source in self.sources):
            return None
        return row_filter.within([name for name in self.columns.names if not name.startswith("!")])

    def _only(self, names: Sequence[str]) -> Scan:
        """Some of the columns, of all rows."""
        options = replace(self.options, columns=tuple(names), include_file_paths=None, progress=False)
        return replace(self, options=options, selection=None, with_index=False)

    def _filtering(self, part: Scan, early: EarlyFilter) -> DecodeSettings:
        """How the columns of the filter, which `part` has, are decoded, and those of the records that pass."""
        settings = self._compiled()
        names = {column.name for column in part.settings.plan.columns}
        if all(column.name in names for column in settings.plan.columns):
            return settings
        return replace(settings, prefilter=Prefilter(frozenset(names), early.may_pass))

    def _values_of(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self._only(names).over(on_error="raise").open() as reader:
            yield from reader

    def __reduce__(self) -> tuple[Any, ...]:
        state = (self.with_index, self.whole, self.selection, self.may_be_indexed)
        arguments = (self.options, self.resolved, self.partitions, self.sidecar, *state)
        return _unpickle, (PackedSources.of(self.sources), *arguments)


def _compile(resolved: ResolvedSchema, options: ReadOptions, columns: Schema, parts: Schema) -> DecodeSettings:
    """How the features of `parts`, which the `columns` consist of, are decoded."""
    if options.record_type == "bytes":
        plan = Plan(check_crc=options.check_crc, max_record_bytes=options.max_record_bytes)
        return DecodeSettings(plan, as_bytes=True)
    text = Text.STRICT if resolved.is_inferred else Text.UTF8

    def is_declared(column: str) -> bool:
        found = resolved.is_inferred or resolved.source == "embedded"
        return not found or is_overridden(column, options.schema_overrides)

    compiled = plan_columns(parts, text=text, folded=resolved.folded, promoted=is_declared)
    read = {column.name for column in compiled.columns}
    unknown, ignored, plan_of_columns = "fault", compiled.ignored, compiled.columns
    if resolved.is_inferred:
        unknown = "fault" if options.on_new == "raise" else "skip"
        ignored |= resolved.companions - read
    elif resolved.source == "embedded":
        everything = compiled if columns == resolved.schema else plan_columns(resolved.schema)
        ignored = everything.ignored | {column.name for column in everything.columns} - read
    else:
        unknown = "skip"
        plan_of_columns += other_part(compiled, resolved.schema)
    plan = Plan(
        columns=plan_of_columns,
        unknown=unknown,
        select=Projection(options.columns).filter,
        ignored=frozenset(ignored),
        record_type=resolved.record_type,
        **plan_limits(options),
    )
    return DecodeSettings(plan, contradicts_sample=resolved.is_inferred)


def _unpickle(sources: PackedSources, *arguments: Any) -> Scan:
    return Scan(sources.unpack(), *arguments)
