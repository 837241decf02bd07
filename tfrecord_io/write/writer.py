"""Writing: from anything that holds a table to TFRecord files, published atomically."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from tfrecord_io.base import (
    MessageType,
    ProgressMeter,
    Report,
    Summary,
    WriteOptions,
    byte_size,
    column_list,
    counted,
    cpu_count,
    for_cli,
    ordered,
    printable,
    warn,
)
from tfrecord_io.bytes import get_engine
from tfrecord_io.columns import (
    BatchSource,
    EmbeddedSchema,
    EncodedPiece,
    PieceMemory,
    Rounding,
    SliceEncoder,
    empty_batch,
    open_input,
)
from tfrecord_io.errors import SchemaWarning
from tfrecord_io.store import Location, Output
from tfrecord_io.typing import TableLike
from tfrecord_io.write.frame_sink import FrameSink, Piece, PublishingWriter, Sink, WrittenFile, make_absolute

if TYPE_CHECKING:
    from tfrecord_io.columns import Conforming
    from tfrecord_io.read import SkippedRegion


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
    repeated : bool
        True if the transaction of ``txn=``, or a later one of its job, was in the dataset: nothing was written.
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
    repeated: bool = False

    @classmethod
    def already_written(cls, output: Output) -> Self:
        """The report of a writing whose transaction was in the dataset."""
        return cls(
            path=output.path, records=0, bytes=0, compression=output.compression, columns=(), rounded={}, repeated=True
        )

    def skipped_table(self) -> pa.Table:
        """The regions of `skipped` as a table, with the columns of `ReadReport.skipped_table`."""
        from tfrecord_io.read import SkippedRegions

        return SkippedRegions.table(self.skipped)

    def _line(self, size: str, done: str = "") -> str:
        """The line about the files, with their size, and what was done with the records."""
        if self.repeated:
            return f"{printable(self.path)}: nothing written, as the transaction is in the dataset"
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
        if options.column_encoding:
            SliceEncoder.check_encodings(options.column_encoding)
        self._options = options
        path, self._directory = make_absolute(path, options.storage) if may_move else (path, "")
        self._encoder: SliceEncoder | None = None  # once the schema is known
        self.rounding = Rounding()  # the values rounded so far
        self.report: WriteReport | None = None
        self._rows, self._writing = 0, False
        self._embeds = options.embed_schema and not MessageType.takes_payloads(options.record_type)
        self._conform: Conforming | None = None
        if options.schema is not None:
            from tfrecord_io.columns import Conforming, Schema

            schema = Schema.parse(options.schema)
            stored = schema.select(name for name in schema.names if name not in (options.partition_by or ()))
            written = Conforming.written_schema(stored)
            self._compile(written, None)  # what cannot be written is an error before anything is opened
        self._open(open_sink(path, options) if sink is None else sink)
        if options.schema is not None:
            self._compile(written, self._sink.known_schema)
            self._conform = Conforming(schema, options.column_encoding, options.float64, self.rounding)
            if Conforming.has_open_types(written):
                self._encoder = None  # of the types that the first data has

    def _compile(self, schema: pa.Schema, known: bytes | None) -> SliceEncoder:
        """Plan the writing of rows of this schema; `known` is that of the dataset to which they are added."""
        if known is not None and self._embeds:
            from tfrecord_io.columns import Conforming

            schema = Conforming.as_in_dataset(
                schema, EmbeddedSchema.parse(known, self._sink.path).schema, self._options
            )
        encoder = SliceEncoder.from_options(schema, self._options)
        if columns := indexed_columns(self._options):
            from tfrecord_io.read import ColumnIndexes

            ColumnIndexes.check(columns, schema, [leaf.feature for leaf in encoder.plan.leaves])
        self._encoder = encoder
        return encoder

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
        begun = False  # to write, in this call and not in one of another thread
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
        if self._sink.is_repeated:
            return
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
        is_shown = options.progress is not False
        progress = ProgressMeter(options.progress, total, "rows", self._rows) if is_shown else None
        with (
            progress or nullcontext(),
            closing(self._write_pieces(source.fit_to(encoder.plan.schema, "the data"), encoder)) as written,
        ):
            for encoded in written:
                self._rows += encoded.piece.records
                if encoded.rounding is not None:
                    self.rounding.merge(encoded.rounding)
                if progress is not None:
                    progress.advance(encoded.piece.records)

    def _write_pieces(self, source: BatchSource, encoder: SliceEncoder) -> Generator[EncodedPiece[Piece]]:
        """Encode and write the batches of `source` on several threads; yields each piece once it is written."""
        threads, memory = min(self._options.thread_count, cpu_count()), PieceMemory(get_engine())
        batches_of = source.part
        ranges = None if batches_of is None else self._sink.side_by_side(threads)
        if batches_of is None or ranges is None:
            with closing(ordered(self._tasks(source.batches, self._rows, encoder, memory), threads)) as pieces:
                for encoded in pieces:
                    self._write_piece(memory, encoded)
                    yield encoded
            return

        sequences = [self._tasks(batches_of(rows.start, rows.stop), rows.start, encoder, memory) for rows in ranges]
        from tfrecord_io.write.parallel_sequences import side_by_side

        yield from side_by_side(sequences, partial(self._write_piece, memory), self._sink.end, threads)

    def _write_piece(self, memory: PieceMemory, encoded: EncodedPiece[Piece]) -> None:
        self._sink.write(encoded.piece)
        memory.give_back(encoded.memory)

    def _tasks(
        self, batches: Iterator[pa.RecordBatch], row: int, encoder: SliceEncoder, memory: PieceMemory
    ) -> Iterator[Callable[[], EncodedPiece[Piece]]]:
        """The tasks that encode batches, whose first row is `row`, for several threads."""
        for batch in batches:
            for task in encoder.split(batch, row, partial(self._begin, encoder)):
                yield partial(task, memory, self._sink.prepare)
            row += len(batch)

    def _begin(self, encoder: SliceEncoder, batch: pa.RecordBatch, row: int) -> bytes:
        """Begin a batch: return the prefix of its first payload, which embeds the schema in the first row of all.

        The categories of later batches are checked against that schema.
        """
        if self._embeds and row == 0:
            return self._sink.begin(encoder.embed(batch))
        encoder.check(batch)
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
                sink.begin(EmbeddedSchema.of(schema).pack())
            columns = () if schema is None else tuple(schema.names)
            index = () if schema is None else tuple(EmbeddedSchema.index_levels(schema))
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
            records=0 if sink.is_repeated else self._rows,
            bytes=size,
            compression=sink.compression,
            columns=columns,
            rounded=rounded,
            files=files,
            index=index,
            repeated=sink.is_repeated,
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


def check_columns(schema: pa.Schema, options: WriteOptions) -> None:
    """Raise the errors of a `Writer` with these options for columns of these types, whatever the rows.

    For engines, whose tasks would fail one by one.
    """
    from tfrecord_io.columns import Conforming, Schema
    from tfrecord_io.write.partition_folders import stored_columns

    if options.column_encoding:
        SliceEncoder.check_encodings(options.column_encoding)
    source = open_input(empty_batch(schema), encodings=options.column_encoding)
    if options.schema is not None:
        conform = Conforming(Schema.parse(options.schema), options.column_encoding, options.float64, Rounding())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SchemaWarning)  # of columns that it leaves out, which the writer issues
            source = conform(source, 0)
        conform.check_types(schema)
    stored = stored_columns(source.schema, options.partition_by)
    SliceEncoder.from_options(pa.schema([source.schema.field(at) for at in stored], source.schema.metadata), options)


def is_growing(options: WriteOptions) -> bool:
    """True if shards are added to a dataset, now or perhaps later, under names with the writing's id."""
    return options.mode == "append" or bool(options.partition_by)


def indexed_columns(options: WriteOptions) -> Sequence[str]:
    """The entries of a column index; none where only offsets are written, or nothing."""
    return () if isinstance(options.write_index, bool) else options.write_index


def open_sink(path: Any, options: WriteOptions) -> Sink:
    """The sink for the file or the shards that a path and the options ask for."""
    output = Output.resolve(
        Output.directory_of_folders(path, "partition_by=", "--partition-by") if options.partition_by else path,
        options.storage,
        shards=options.shards,
        max_shard_bytes=options.max_shard_bytes,
        compression=options.compression,
        grows=is_growing(options),
        stated=options.any_suffix,
    )
    return _open_shards(output, options) if output.sharded else _open_file(path, output, options)


def _open_file(path: Any, output: Output, options: WriteOptions) -> FrameSink:
    """The sink of one file."""
    if options.metadata:
        raise _one_file_without_metadata(output.path)
    # In a bucket, the look would double the requests; readers warn.
    if output.file is None and not Location.is_url(path):
        Output.check_named(path, options.storage)
    sink = FrameSink(
        path,
        options.storage,
        compression=options.compression,
        compression_level=options.compression_level,
        mode=options.mode,
        write_index=options.write_index,
        threads=options.thread_count,
        resolved=output,
    )
    if indexed_columns(options):
        from tfrecord_io.read import ColumnIndexes

        sink.column_indexes = ColumnIndexes(path, indexed_columns(options), options.storage)
    return sink


def _open_shards(output: Output, options: WriteOptions) -> Sink:
    """The sink of the shards of a dataset."""
    if options.write_index:
        from tfrecord_io.read import IndexWriter

        IndexWriter.check_uncompressed(output.compression)  # before a directory is made

    from tfrecord_io.store import Publication  # one file needs none of these
    from tfrecord_io.write.schema_union import SchemaUnion
    from tfrecord_io.write.sharded_sink import ShardedSink

    columns, mode = tuple(options.partition_by or ()), options.mode
    unite = SchemaUnion(options.evolve, options.overwrite_where)
    dataset = Publication.start(
        output, Publication.change_of(mode, unite, columns, grows=output.grows), options.storage
    )
    sink = ShardedSink(dataset, options)
    named = f"{output.base}@*"
    whole = output.path if output.directory else named
    extended = dataset if mode in options.ADDING and sink.compression is None else None
    if indexed_columns(options) or extended is not None:
        from tfrecord_io.read import ColumnIndexes

        sink.column_indexes = ColumnIndexes(whole, indexed_columns(options), options.storage, extended, name=named)
    return sink


def _one_file_without_metadata(path: str) -> ValueError:
    """The error for metadata where there is no manifest to keep it."""
    reason = "is kept in the manifest of a sharded dataset, but this path is one file"
    advice = "write a directory ('name/') or shards ('name@1')"
    error = ValueError(f"'{printable(path)}': metadata= {reason}; {advice}, or leave out metadata=")
    return for_cli(error, f"'{printable(path)}': --metadata {reason}; {advice}, or leave out --metadata")


def warn_of_lost_schema(sink: Sink, columns: int) -> None:
    """Warn of the loss of column types in a `sink` without records."""
    if columns and not sink.keeps_schema:
        lost = f"no records were written, so the schema ({counted(columns, 'column')}) could not be stored"
        advice = "write a directory, whose manifest keeps the schema"
        reason = f"{printable(sink.path)}: {lost}; read the file with"
        text, text_cli = (f"{reason} {way}, or {advice}" for way in ("read_table(schema=…)", "--schema FILE"))
        warn(text, SchemaWarning, text_cli)
