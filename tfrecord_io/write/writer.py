"""Writing: from anything that holds a table to TFRecord files, published atomically.

A batch is split twice. The columns of a *slice* are converted together, as that costs time for each column; its rows
are encoded in *pieces* that stay in the processor's cache until they are written. A piece is written to memory that was
used for another one before, as the first use of a page costs more than encoding its content.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from operator import add, attrgetter, mul
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import (
    ADDING,
    LIMITS,
    MIB,
    MessageType,
    ProgressMeter,
    Report,
    Summary,
    Task,
    WriteOptions,
    and_more,
    byte_size,
    column_list,
    counted,
    cpu_count,
    for_cli,
    ordered,
    printable,
    takes_payloads,
    too_large,
    warn,
)
from tfrecord_io.bytes import ArrowReader, Encoder, Engine, FrameHeader, Layout, PlainForm, PlainValue, get_engine
from tfrecord_io.columns import (
    BY_WIRE,
    COMPOSITE_KEY,
    LIST,
    NESTED,
    RAW,
    BatchSource,
    EmbeddedSchema,
    Field,
    Rounding,
    Schema,
    WritePlan,
    cast_columns,
    check_column_encodings,
    check_name,
    copy_index,
    dictionaries,
    embedded_dictionaries,
    embedded_schema,
    empty_batch,
    encode_columns,
    encoding_of,
    has_all,
    image_encodings,
    map_types,
    open_input,
    pack,
    plan_writing,
    replace_fields,
    set_encoding,
    stored_index,
    value_bytes,
    value_type,
)
from tfrecord_io.errors import EncodeError, SchemaError, SchemaWarning
from tfrecord_io.store import check_named, directory_of_folders, is_url, resolve_output
from tfrecord_io.typing import TableLike
from tfrecord_io.write.frame_sink import FrameSink, Piece, PublishingWriter, Sink, WrittenFile, make_absolute

if TYPE_CHECKING:
    from tfrecord_io.columns import Composite, MessageField
    from tfrecord_io.read import SkippedRegion

_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")  # of a DataFrame
_MOST_NAMED, _FEATURE_BYTES = 8, 10  # columns in a warning; bytes of an entry with one value, besides name and value
_SLICE_BYTES = 4 * MIB  # of Arrow data, about
_KEPT_BYTES = 4 * MIB  # memory of larger pieces is not kept for the next one

Prepare = Callable[[Any, int, int], Piece]
"""Makes a piece of frames, their number and the row of the first one: `Sink.prepare`."""
_BYTES = {
    pa.lib.Type_BINARY: (PlainValue.BYTES, False),
    pa.lib.Type_LARGE_BINARY: (PlainValue.BYTES, True),
    pa.lib.Type_STRING: (PlainValue.TEXT, False),
    pa.lib.Type_LARGE_STRING: (PlainValue.TEXT, True),
}


@dataclass(frozen=True, repr=False)
class WriteReport(Report):
    """Report of a writing; prints as a line about the files, and a table of rounded columns.

    Attributes
    ----------
    path : str
    records : int
    bytes : int
        Size of all files, compressed if they are.
    compression : str or None
    columns : tuple of str
        Names of the columns that were written.
    rounded : dict of str to int
        For each float64 column the number of values that float32 cannot represent; empty with ``float64="round"``,
        which does not count them.
    files : tuple of WrittenFile
        ``path``, ``records`` and ``bytes`` of each file; of a sharded dataset its shards, without the manifest.
    index : tuple of str
        The columns that are levels of a DataFrame's index. A RangeIndex without a name is not a column: it is kept in
        the embedded schema, and restored where one whole file is read.
    skipped : sequence of SkippedRegion
        The damaged regions that `convert` left out of its source with ``on_error="collect"``; else empty.
    """

    path: str
    records: int
    bytes: int
    compression: str | None
    columns: tuple[str, ...]
    rounded: dict[str, int]
    files: tuple[WrittenFile, ...] = ()
    index: tuple[str, ...] = ()
    skipped: Sequence[SkippedRegion] = ()

    def skipped_table(self) -> pa.Table:
        """The regions of `skipped` as a table, with the columns of `ReadReport.skipped_table`."""
        from tfrecord_io.read import regions_table

        return regions_table(self.skipped)

    def _line(self, size: str, done: str = "") -> str:
        """The line about the files, with their size, and what was done with the records."""
        amounts = [counted(len(self.files), "file")] if len(self.files) > 1 else []
        amounts += [f"{counted(self.records, 'record')} {done}".rstrip(), size, self.compression or ""]
        names = [f"{name} (index)" if name in self.index else name for name in self.columns]
        base = f"{self.path.rstrip('/')}/"
        below = (file.path.removeprefix(base) for file in self.files if file.path.startswith(base))
        # Those of ``partition_by=`` that have rows of this call, such as ``day=05-01``.
        folders = [*dict.fromkeys(printable(path.rpartition("/")[0]) for path in below if "/" in path)]
        where = f"in {folders[0]}" if len(folders) == 1 else f"in {counted(len(folders), 'folder')}" if folders else ""
        return f"{printable(self.path)}: {', '.join(filter(None, [*amounts, column_list(names), where]))}"

    def _summary(self) -> Summary:
        rounded = [(printable(name), f"{self.rounded[name]:,}") for name in self.columns if name in self.rounded]
        lines = []
        if self.skipped:
            lines = [f"{counted(len(self.skipped), 'damaged region')} left out: skipped_table() lists them"]
        return Summary(self._line(byte_size(self.bytes)), ("column", "rounded"), rounded, lines)


class Writer(PublishingWriter):
    """Writes tables to one file or to the shards of a dataset; returned by `tfrecord_io.open_writer`.

    A context manager: what was written is published when the block ends, and discarded if it ends with an exception.
    Threads may share it: the rows of one ``write`` stay together. A forked process cannot use it.

    Attributes
    ----------
    report : WriteReport or None
        After ``close()``.
    """

    _warns_of_rounding = True

    def __init__(
        self, path: Any, options: WriteOptions, sink: Sink | None = None, *, may_move: bool = False
    ) -> None:  # `may_move`: the working directory may be another one when it is closed
        check_column_encodings(options.column_encoding)
        self._options = options
        path, self._directory = make_absolute(path, options.storage) if may_move else (path, "")
        self._encoder: SliceEncoder | None = None  # once the schema is known
        self.rounding = Rounding()  # the values rounded so far
        self.report: WriteReport | None = None
        self._categories: dict[str, pa.Array] = {}  # of the first rows, by feature, that the schema lists
        self._rows, self._writing = 0, False
        self._embeds = options.embed_schema and not takes_payloads(options.record_type)
        self._conform: Conforming | None = None
        if options.schema is not None:
            schema = Schema.parse(options.schema)
            stored = schema.select(name for name in schema.names if name not in (options.partition_by or ()))
            written = written_schema(stored)
            self._compile(written, None)  # what cannot be written is an error before anything is opened
        self._open(open_sink(path, options) if sink is None else sink)
        if options.schema is not None:
            self._compile(written, self._sink.known_schema)
            target = _target_schema(schema, options)
            self._conform = Conforming(target, options.float64, self.rounding)

    def _compile(self, schema: pa.Schema, known: bytes | None) -> SliceEncoder:
        """Plan the writing of rows of this schema; `known` is that of the dataset to which they are added."""
        if known is not None and self._embeds:
            schema = _as_in_dataset(schema, EmbeddedSchema.parse(known, self._sink.path).schema, self._options)
        plan = _plan_columns(schema, self._options)
        if columns := self._options.indexed_columns:
            from tfrecord_io.write.column_indexes import check_indexed

            check_indexed(columns, schema, [leaf.feature for leaf in plan.leaves])
        self._encoder = SliceEncoder(plan, self._options.record_type)
        return self._encoder

    def write(self, data: TableLike) -> None:
        """Append all rows of `data`: anything that `tfrecord_io.write_tfrecord` accepts.

        Raises
        ------
        SchemaError
            Its schema differs from that of the data before it.
        EncodeError
            A value cannot be stored in a TFRecord; ``record`` is its row. If some rows of `data` were already written,
            the writer is discarded, so that no file with a part of `data` is published. So it is after Ctrl-C.
        """
        self._write(data)

    def _write(self, data: Any, *, complete: bool = False) -> None:
        """Append `data`; `complete` states that nothing more follows."""
        begun = False
        try:
            with self._lock:
                if self._sink.closed:
                    raise ValueError("the writer is closed")
                if self._writing:
                    raise RuntimeError("the data that is being written writes to its own writer")
                before, begun = self._rows, True
                try:
                    self._writing = True
                    self._append(data, complete)
                except Exception:
                    if self._rows != before:
                        self.discard()
                    raise
                finally:
                    self._writing = False
        except BaseException as error:
            if begun and not isinstance(error, Exception):  # Ctrl-C, after which it is unknown what was written
                self.discard()
            raise

    def _append(self, data: Any, complete: bool) -> None:
        options = self._options
        source = open_input(
            data,
            index=options.index,
            record_dim=options.record_dim,
            nan_to_null=options.nan_to_null,
            encodings=options.column_encoding,
            row_base=self._rows,
            conform=self._conform,
            maps=None if self._conform is None else self._conform.maps,
        )
        source = self._sink.split(source)
        if complete and source.rows is not None:
            self._sink.expect(source.rows)
        encoder = self._encoder or self._compile(source.schema, self._sink.known_schema)
        total = None if source.rows is None else self._rows + source.rows
        progress = ProgressMeter(options.progress, total, "rows", self._rows) if options.progress else None
        with (
            progress or nullcontext(),
            closing(self._write_pieces(source.fit_to(encoder.plan.schema, "the data"), encoder)) as written,
        ):
            for part in written:
                self._rows += part.piece.records
                if part.rounding is not None:
                    self.rounding.merge(part.rounding)
                if progress is not None:
                    progress.advance(part.piece.records)

    def _write_pieces(self, source: BatchSource, encoder: SliceEncoder) -> Generator[EncodedPiece]:
        """Encode and write the batches of `source` on several threads; yields each piece once it is written."""
        threads, memory = min(self._options.thread_count, cpu_count()), Memory(get_engine())
        part = source.part
        ranges = None if part is None else self._sink.side_by_side(threads)
        if part is None or ranges is None:
            with closing(ordered(self._tasks(source.batches, self._rows, encoder, memory), threads)) as pieces:
                for piece in pieces:
                    self._write_piece(memory, piece)
                    yield piece
            return
        from tfrecord_io.write.side_by_side import side_by_side

        sequences = [self._tasks(part(rows.start, rows.stop), rows.start, encoder, memory) for rows in ranges]
        yield from side_by_side(sequences, partial(self._write_piece, memory), self._sink.end, threads)

    def _write_piece(self, memory: Memory, part: EncodedPiece) -> None:
        self._sink.write(part.piece)
        memory.give_back(part.memory)

    def _tasks(
        self, batches: Iterator[pa.RecordBatch], row: int, encoder: SliceEncoder, memory: Memory
    ) -> Iterator[Callable[[], EncodedPiece]]:
        """The tasks that encode batches, whose first row is `row`, for several threads."""
        for batch in batches:
            for task in encoder.split(batch, row, partial(self._begin, encoder.plan)):
                yield partial(task, memory, self._sink.prepare)
            row += len(batch)

    def _begin(self, plan: WritePlan, batch: pa.RecordBatch, row: int) -> bytes:
        """At the first row, pass the schema to be embedded to the sink; later, check the categories against it."""
        if self._embeds and row == 0:
            batch_dictionaries = dictionaries(batch, plan)
            self._categories = embedded_dictionaries(batch_dictionaries)
            return self._sink.begin(pack(embedded_schema(plan.schema), batch_dictionaries))
        if not self._categories:
            return b""
        later, ordered = dictionaries(batch, plan), plan.ordered
        for name, first_categories in self._categories.items():
            if not has_all(first_categories, later[name], ordered=name in ordered):
                reason = "it has categories that the embedded schema, written with the first rows, does not list"
                if has_all(first_categories, later[name]):
                    reason = "its ordered categories are in another order than in the first rows"
                advice = "unify the categories (pyarrow.Table.unify_dictionaries), or cast them to plain values"
                raise EncodeError(reason, feature=name, hint=advice)
        return b""

    def close(self) -> None:
        """Publish what was written, after one PrecisionWarning if float64 values were rounded.

        If the warning is turned into an error, nothing is published.
        """
        super().close()

    def _publish(self) -> None:
        sink, schema = self._sink, None if self._encoder is None else self._encoder.plan.schema
        is_lost = self._rows == 0 and self._embeds and schema is not None
        try:
            if schema is not None and is_lost:
                sink.begin(pack(embedded_schema(schema), {}))
            columns = () if schema is None else tuple(schema.names)
            index = () if schema is None else tuple(stored_index(schema))
            sink.finish()
            if is_lost:  # a warning may be an error: then nothing is published
                warn_of_lost_schema(sink, len(columns))
            if self._warns_of_rounding and self._options.float64 is None:
                self.rounding.warn()
        except BaseException as error:
            sink.discard_after(error)
            raise
        sink.commit()
        rounded, size = dict(self.rounding.counts), sum(map(attrgetter("bytes"), sink.files))
        path, files = sink.path, sink.files
        if self._directory:  # the report has the path as it was given
            path = path.removeprefix(self._directory)
            files = tuple(replace(file, path=file.path.removeprefix(self._directory)) for file in files)
        self.report = WriteReport(
            path=path,
            records=self._rows,
            bytes=size,
            compression=sink.compression,
            columns=columns,
            rounded=rounded,
            files=files,
            index=index,
        )

    def discard(self) -> None:
        """Discard what was written; nothing is published."""
        self._discard()


def write(data: Any, path: Any, options: WriteOptions) -> WriteReport:
    """Write one table."""
    with Writer(path, options) as writer:
        writer._write(data, complete=True)
    assert writer.report is not None
    return writer.report


def _target_schema(schema: Schema, options: WriteOptions) -> Schema:
    """The schema that data is cast to: arrays where ``column_encoding=`` makes images of them."""
    if not image_encodings(options.column_encoding):
        return schema
    from tfrecord_io.columns import arrays_schema

    return arrays_schema(schema, options.column_encoding)


def check_columns(schema: pa.Schema, options: WriteOptions) -> None:
    """Raise the errors of a `Writer` with these options for columns of these types, whatever the rows.

    For engines, whose tasks would fail one by one.
    """
    from tfrecord_io.write.partition_folders import stored_columns

    check_column_encodings(options.column_encoding)
    source = open_input(empty_batch(schema), encodings=options.column_encoding)
    if options.schema is not None:
        target = _target_schema(Schema.parse(options.schema), options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SchemaWarning)  # of columns that it leaves out, which the writer issues
            source = Conforming(target, options.float64, Rounding())(source, 0)
        selected = pa.schema([schema.field(name) for name in target.names])
        empty = empty_batch(selected)
        cast_columns(empty, target.to_arrow())
    stored = stored_columns(source.schema, options.partition_by)
    _plan_columns(pa.schema([source.schema.field(at) for at in stored], source.schema.metadata), options)


def _as_in_dataset(schema: pa.Schema, known: pa.Schema, options: WriteOptions) -> pa.Schema:
    """The schema of rows for a dataset, with the choices of its first writer that `options` leave open.

    Those are the encodings of columns of the same type, and which columns are the index.
    """
    stored, changed = {field.name: field for field in known}, {}
    for at, column in enumerate(schema):
        stored_field = stored.get(column.name, column)
        encoding = encoding_of(stored_field)
        if encoding in (None, BY_WIRE, NESTED) or encoding_of(column) is not None or stored_field.type != column.type:
            continue
        is_stated = column.name in (options.column_encoding or {})
        is_stated |= options.float64 is not None and encoding == RAW and t.is_float64(value_type(column.type))
        if not is_stated:
            changed[at] = set_encoding(column, encoding)
    return copy_index(replace_fields(schema, changed), known)


def _fields_of(message: MessageType, schema: pa.Schema) -> Sequence[MessageField]:
    """How the fields of messages are written; protobuf is imported where there are messages."""
    from tfrecord_io.columns import encoded_fields

    return encoded_fields(message, schema)


def _plan_columns(schema: pa.Schema, options: WriteOptions) -> WritePlan:
    """The plan of a writer with these options for data of this schema."""
    if isinstance(message := options.record_type, MessageType):
        _fields_of(message, schema)
        return WritePlan(schema, (), (), (), float64=options.float64)
    binary = (t.is_binary, t.is_large_binary, t.is_fixed_size_binary, t.is_binary_view)
    is_binary = len(schema) == 1 and any(check(schema.field(0).type) for check in binary)
    if options.record_type == "bytes" and not is_binary:
        reason = f"record_type='bytes' writes one binary column, got {', '.join(map(str, schema.types)) or 'none'}"
        raise EncodeError(reason, hint="select the column")
    return plan_writing(
        schema,
        column_encoding=options.column_encoding,
        float64=options.float64,
        sequence=options.record_type == "sequence_example",
    )


def open_sink(path: Any, options: WriteOptions) -> Sink:
    """The sink for the file or the shards that a path and the options ask for."""
    output = resolve_output(
        directory_of_folders(path, "partition_by=") if options.partition_by else path,
        options.storage,
        shards=options.shards,
        max_shard_bytes=options.max_shard_bytes,
        compression=options.compression,
        grows=options.grows,
        stated=options.any_suffix,
    )
    if not output.sharded:
        if options.metadata:
            raise _one_file_without_metadata(output.path)
        if output.file is None and not is_url(path):  # in a bucket, the look would double the requests; readers warn
            check_named(path, options.storage)
        sink: Sink = FrameSink(
            path,
            options.storage,
            compression=options.compression,
            compression_level=options.compression_level,
            mode=options.mode,
            write_index=options.write_index,
            threads=options.thread_count,
            resolved=output,
        )
        if options.indexed_columns:
            from tfrecord_io.write.column_indexes import ColumnIndexes

            sink.column_indexes = ColumnIndexes(path, options.indexed_columns, options.storage)
        return sink
    if options.write_index:
        from tfrecord_io.read import check_uncompressed

        check_uncompressed(output.compression)  # before a directory is made
    from tfrecord_io.store import change_of, open_publication
    from tfrecord_io.write.sharded_sink import SchemaUnion, ShardedSink

    columns, mode = tuple(options.partition_by or ()), options.effective_mode
    unite = SchemaUnion(options.evolve, options.overwrite_where)
    dataset = open_publication(output, change_of(mode, unite, columns, grows=output.grows), options.storage)
    sink = ShardedSink(dataset, options)
    whole = output.path if output.directory else f"{output.base}@*"
    extended = dataset if mode in ADDING and sink.compression is None else None
    if options.indexed_columns or extended is not None:
        from tfrecord_io.write.column_indexes import ColumnIndexes

        sink.column_indexes = ColumnIndexes(whole, options.indexed_columns, options.storage, extended)
    return sink


def _one_file_without_metadata(path: str) -> ValueError:
    """The error for metadata where there is no manifest to keep them."""
    reason = "are kept in the manifest of a sharded dataset, and this path is one file"
    advice = "write a directory ('name/') or shards ('name@1')"
    error = ValueError(f"'{printable(path)}': metadata= {reason}; {advice}, or leave out metadata=")
    return for_cli(error, f"'{printable(path)}': --metadata {reason}; {advice}, or leave out --metadata")


def warn_of_lost_schema(sink: Sink, columns: int) -> None:
    """Warn of the loss of column types in a `sink` without records."""
    if columns and not sink.keeps_schema:
        lost = f"no records were written, so the schema ({counted(columns, 'column')}) could not be stored"
        advice = "read the file with read_table(schema=…), or write a directory, whose manifest keeps the schema"
        warn(f"{printable(sink.path)}: {lost}; {advice}", SchemaWarning)


class Conforming:
    """Conforms input to a schema: selects and orders columns, casts them without loss, and names them as features.

    A SchemaWarning names the columns that the schema leaves out.

    Parameters
    ----------
    schema : Schema
    float64 : None, "round" or "error"
    rounding : Rounding
    """

    def __init__(self, schema: Schema, float64: str | None, rounding: Rounding) -> None:
        self._names = schema.names
        self._target, self._written = schema.to_arrow(), written_schema(schema)
        self._composites = _composites(schema)
        self._has_required = any(field.required for field in schema)
        self.maps = map_types(self._target)  # for inputs of Python values
        self._float64, self._rounding = float64, rounding
        self._selected = set(self._names)  # and the columns that a warning named

    def __call__(self, source: BatchSource, row_base: int) -> BatchSource:
        """The batches of `source`, which follow `row_base` rows."""
        present = dict.fromkeys(source.schema.names)
        for name in self._names:
            if name not in present:
                reason = "the schema names a column that the data does not have"
                raise SchemaError(reason, feature=name, hint=f"it has: {', '.join(source.schema.names)}")
        left_out = [name for name in present if not (name in self._selected or _UNNAMED_INDEX.fullmatch(name))]
        self._selected.update(left_out)  # each is named by one warning
        if left_out:
            shown = ", ".join(f"'{printable(name)}'" for name in left_out[:_MOST_NAMED])
            more = and_more(len(left_out) - _MOST_NAMED)
            reason = f"the schema leaves out {counted(len(left_out), 'column')} of the data: {shown}{more}"
            warn(f"{reason}; select the columns of the data to write them without this warning", SchemaWarning)
        written = self._written
        if not written.metadata:
            written = written.with_metadata(source.schema.metadata)
        return source.map_batches(written, partial(self._cast, written), row_base)

    def _cast(self, written: pa.Schema, batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            selected = batch if batch.schema.names == self._names else batch.select(self._names)
            if selected.schema.equals(self._target) and not self._has_required:  # nothing to cast or to check
                columns = None if selected.schema.equals(written, check_metadata=True) else selected.columns
            else:
                columns = cast_columns(selected, self._target, rows, float64=self._float64, rounding=self._rounding)
            if self._composites:
                columns = self._split(selected.columns if columns is None else columns, rows)
            rows += batch.num_rows
            yield selected if columns is None else pa.RecordBatch.from_arrays(columns, schema=written)

    def _split(self, columns: Sequence[pa.Array], row: int) -> list[pa.Array]:
        """Replace each composite column by the columns of its features."""
        from tfrecord_io.columns import component_columns

        split: list[pa.Array] = []
        for name, column in zip(self._names, columns, strict=True):
            composite = self._composites.get(name)
            split += [column] if composite is None else component_columns(composite, column, name, row)
        return split


def written_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of the written data, whose columns are named as their features."""
    named = [field if field.feature == field.column else replace(field, column=field.feature) for field in schema]
    if composites := _composites(schema):
        named = list(_split_fields(schema, composites))
    for field in named:
        check_name(field.column)
    return pa.schema([field.to_arrow() for field in named], metadata=dict(schema.metadata) or None)


def _composites(schema: Schema) -> dict[str, Composite]:
    """The columns that are written as several features whose names the schema states."""
    if not any(COMPOSITE_KEY in field.metadata for field in schema):
        return {}
    from tfrecord_io.columns import written_composite

    return {field.column: composite for field in schema if (composite := written_composite(field)) is not None}


def _split_fields(schema: Schema, composites: Mapping[str, Composite]) -> Iterator[Field]:
    """The fields that are written, each named as its feature; SchemaError if two columns have the same feature."""
    from tfrecord_io.columns import component_fields

    features = set()
    for field in schema:
        composite = composites.get(field.column)
        plain = replace(field, column=field.feature)
        for written in [plain] if composite is None else component_fields(composite, field):
            if written.feature in features:
                raise SchemaError("two columns of the schema are written to it", feature=written.feature)
            features.add(written.feature)
            yield written


class Memory:
    """Memory for pieces, used again and again."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._free: list[Any] = []

    def take(self) -> Any:
        try:
            return self._free.pop()  # the last one, which may still be in a cache
        except IndexError:
            return self._engine.memory()

    def give_back(self, memory: Any) -> None:
        """Let the next piece overwrite the one in `memory`."""
        if memory is not None and memory.capacity <= _KEPT_BYTES:
            self._free.append(memory)


class EncodedPiece(NamedTuple):
    """A piece with its memory, and, in a slice's first piece, the counts of values rounded in the slice."""

    piece: Piece
    memory: Any
    rounding: Rounding | None


class Slice(NamedTuple):
    """Rows whose columns are converted together, by the first thread that encodes some of them."""

    encoder: Task[Encoder]  # which counts `rounding`
    row: int  # the first, whose payload gets the prefix
    prefix: bytes
    rounding: Rounding

    def encode(self, begin: int, end: int, pool: Memory, prepare: Prepare) -> EncodedPiece:
        """Encode rows [begin, end) of the slice."""
        encoder, memory = self.encoder.result(), pool.take()
        framed, rows = encoder.encode(begin, end, prefix=b"" if begin else self.prefix, memory=memory)
        if begin + rows < end:
            advice = "write its large columns to separate files"
            raise EncodeError(too_large(), record=self.row + begin + rows, hint=advice)
        return EncodedPiece(prepare(framed, rows, self.row + begin), memory, None if begin else self.rounding)


class SliceEncoder:
    """Splits batches of one schema into tasks; each takes a `Memory` and a `Prepare`."""

    def __init__(self, plan: WritePlan, record_type: object) -> None:
        self._engine, self.plan = get_engine(), plan
        self._fields = _fields_of(record_type, plan.schema) if isinstance(record_type, MessageType) else None
        self._as_bytes, self._sequence = record_type == "bytes", record_type == "sequence_example"
        self._read_as(plan.schema)
        names = [sum(len(leaf.feature) + _FEATURE_BYTES for leaf in leaves) for leaves in plan.columns]
        self._names = 0 if self._as_bytes else sum(names)
        widths = (type_.bit_width // 8 if t.is_primitive(type_) else 0 for type_ in plan.schema.types)
        self._absent = list(map(add, names, widths))  # bytes that a record without a column lacks

    def split(
        self, batch: pa.RecordBatch, row: int, begin: Callable[[pa.RecordBatch, int], bytes]
    ) -> Iterator[Callable[[Memory, Prepare], EncodedPiece]]:
        """The tasks that encode a batch, whose first row is `row`.

        `begin` takes each slice and its first row, before the slice's tasks, and returns the prefix of that payload.
        """
        if not batch.schema.equals(self._schema):  # offsets of another width, or views
            self._read_as(batch.schema)
        size = sum(map(value_bytes, map(batch.column, self._others)))  # Arrow takes long to count those of many columns
        width = (size if self._reader is None else size + self._reader.value_bytes(batch)) // max(1, len(batch)) + 1
        absent = sum(map(mul, self._absent, (column.null_count for column in batch.columns))) // max(1, len(batch))
        record = width + self._names - absent + FrameHeader.FRAME_BYTES
        rows = max(1, min(LIMITS.piece_bytes // record, _SLICE_BYTES // width))
        rows -= rows % 64 if rows > 64 else 0  # so that slices begin with a byte of their bitmaps
        slice_rows = rows * max(1, _SLICE_BYTES // (width * rows))
        for first in range(0, len(batch), slice_rows):
            part = batch.slice(first, slice_rows) if slice_rows < len(batch) else batch
            at, rounding = row + first, Rounding()
            encoder = Task(partial(self._convert, self._reader, part, at, rounding))
            piece = Slice(encoder, at, begin(part, at), rounding)
            for i in range(0, len(part), rows):
                yield partial(piece.encode, i, min(i + rows, len(part)))

    def _read_as(self, schema: pa.Schema) -> None:
        """Read columns of these types: some by the engine, which trusts the types, and the others."""
        has_columns = self._fields is None and not self._as_bytes
        forms = plain_forms(replace(self.plan, schema=schema)) if has_columns else [None] * len(schema)
        self._schema, self._reader = schema, self._engine.arrow_reader(forms) if any(forms) else None
        self._others = [at for at, form in enumerate(forms) if form is None or self._reader is None]

    def _convert(self, reader: ArrowReader | None, batch: pa.RecordBatch, row: int, rounding: Rounding) -> Encoder:
        if self._as_bytes or self._fields is not None:
            from tfrecord_io.columns import MessageEncoder, PayloadEncoder

            if self._fields is None:
                return PayloadEncoder(self._engine, batch, row)
            rounded = None if self.plan.float64 == "error" else rounding.add
            return MessageEncoder(self._fields, batch, row=row, engine=self._engine, rounded=rounded)
        arrow = None if reader is None else reader.read(batch)
        plan, read_columns = replace(self.plan, rounding=rounding), () if arrow is None else arrow.taken
        columns = encode_columns(batch, plan, row_base=row, taken=read_columns)
        return self._engine.encoder(columns, sequence=self._sequence, arrow=arrow)


def plain_forms(plan: WritePlan) -> list[PlainForm | None]:
    """The form of each column whose rows are single values that are stored as they are or widened to int64, else None.

    Values of the other types are checked, rounded or converted by `encode_columns`.
    """
    forms: list[PlainForm | None] = []
    for field, parts, in_steps, tree in zip(plan.schema, plan.columns, plan.in_steps, plan.trees, strict=True):
        plain = tree is None and not in_steps and parts[0].layout is Layout.SCALAR and parts[0].encoding == LIST
        forms.append(_form(parts[0].feature, field.type) if plain else None)
    return forms


def _form(feature: str, type_: pa.DataType) -> PlainForm | None:
    if type_.id in _BYTES:
        value, large = _BYTES[type_.id]
        return PlainForm(feature, value, large=large)
    if t.is_float32(type_):
        return PlainForm(feature, PlainValue.FLOAT, bits=32)
    if t.is_boolean(type_):
        return PlainForm(feature, PlainValue.BOOL, bits=1)
    is_number = t.is_integer(type_) and not t.is_uint64(type_)
    if is_number or t.is_timestamp(type_) or t.is_duration(type_) or t.is_date32(type_):
        return PlainForm(feature, PlainValue.INT, bits=type_.bit_width, signed=not t.is_unsigned_integer(type_))
    return None
