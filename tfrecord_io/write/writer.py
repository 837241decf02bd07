"""Writing: from anything that holds a table to TFRecord files, published atomically."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tfrecord_io.arrow.encode.columns import dictionaries, encode_columns
from tfrecord_io.arrow.encode.plan import Rounding, WritePlan, plan_writing
from tfrecord_io.arrow.input.batch_source import BatchSource, fitting, open_input
from tfrecord_io.arrow.input.schema_cast import cast_columns
from tfrecord_io.display import Report, Summary, byte_size, counted
from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import EncodeError, SchemaError, printable
from tfrecord_io.options import MAX_RECORD_BYTES, MIB, WriteOptions
from tfrecord_io.progress import Progress
from tfrecord_io.schema.embedded import embedded_schema, pack
from tfrecord_io.schema.schema import Schema
from tfrecord_io.schema.tensor_encodings import check_column_encodings
from tfrecord_io.storage.paths.resolve_output import resolve_output
from tfrecord_io.write.frame_sink import FrameSink, PublishingWriter, Sink, WrittenFile
from tfrecord_io.write.sharded_sink import ShardedSink

_SLICE_BYTES = 4 * MIB  # Arrow data that a thread encodes at a time
_MAX_SLICES = 64

_Slice = tuple[pa.RecordBatch, int, bytes]
"""Rows to encode, the number of the first one, and the prefix of its payload."""


@dataclass(frozen=True, repr=False)
class WriteReport(Report):
    """What was written; it prints as a line about the files and a table of the columns.

    Attributes
    ----------
    path : str
    records : int
    bytes : int
        Size of all files, compressed if they are.
    compression : str or None
    columns : tuple of str
        Names of the input's columns.
    rounded : dict of str to int
        For each float64 column the number of values that float32 cannot represent; empty with ``float64="round"``,
        which does not count them.
    files : tuple of WrittenFile
        ``path``, ``records`` and ``bytes`` of each file; of a sharded dataset its shards, without the manifest.
    """

    path: str
    records: int
    bytes: int
    compression: str | None
    columns: tuple[str, ...]
    rounded: dict[str, int]
    files: tuple[WrittenFile, ...] = ()

    def _summary(self) -> Summary:
        amounts = [counted(len(self.files), "file")] if len(self.files) > 1 else []
        amounts += [counted(self.records, "record"), byte_size(self.bytes), *filter(None, [self.compression])]
        rows = [(printable(name), f"{self.rounded[name]:,}" if name in self.rounded else "") for name in self.columns]
        return Summary(f"{printable(self.path)}: {', '.join(amounts)}", ("column", "rounded"), rows)


class Writer(PublishingWriter):
    """Writes tables to one file or to the shards of a dataset; returned by `tfrecord_io.open_writer`.

    A context manager: what was written is published when the block ends, and discarded if it ends by an exception.

    Attributes
    ----------
    report : WriteReport or None
        After ``close()``.
    """

    def __init__(self, path: Any, options: WriteOptions) -> None:
        check_column_encodings(options.column_encoding)
        self._options = options
        self._engine = get_engine()
        self._plan: WritePlan | None = None
        self.report: WriteReport | None = None
        self._categories: dict[str, pa.Array] = {}  # of the first rows, by feature
        self._rows = 0
        self._as_bytes = options.record_type == "bytes"
        self._embeds = options.embed_schema and not self._as_bytes
        self._sequence = options.record_type == "sequence_example"
        self._schema = None if options.schema is None else Schema.parse(options.schema)
        if self._schema is not None:
            self._compile(written_schema(self._schema))
        self._open(_open_sink(path, options))

    def _compile(self, schema: pa.Schema) -> WritePlan:
        options = self._options
        if self._as_bytes and (len(schema) != 1 or not _is_binary(schema.field(0).type)):
            types = ", ".join(map(str, schema.types)) or "none"
            raise EncodeError(f"record_type='bytes' writes one binary column, got {types}", advice="select the column")
        self._plan = plan_writing(
            schema, column_encoding=options.column_encoding, float64=options.float64, sequence=self._sequence
        )
        return self._plan

    def write(self, data: Any) -> None:
        """Append all rows of `data`: anything that `tfrecord_io.write_tfrecord` accepts.

        Raises
        ------
        SchemaError
            Its schema differs from that of the data before it.
        EncodeError
            A value cannot be stored in a TFRecord; ``record`` is its row. If some rows of `data` were already written,
            the writer is discarded, so that no file with a part of `data` is published.
        """
        self._write(data)

    def _write(self, data: Any, *, complete: bool = False) -> None:
        """Append `data`; `complete` states that nothing more follows."""
        if self._sink.closed:
            raise ValueError("the writer is closed")
        before = self._rows
        try:
            self._append(data, complete)
        except BaseException:
            if self._rows != before:
                self.discard()
            raise

    def _append(self, data: Any, complete: bool) -> None:
        options, conform_to = self._options, None
        if self._schema is not None and self._plan is not None:
            conform_to = partial(conform, schema=self._schema, float64=options.float64, rounding=self._plan.rounding)
        source = open_input(
            data,
            index=options.index,
            nan_to_null=options.nan_to_null,
            encodings=options.column_encoding,
            row_base=self._rows,
            conform=conform_to,
        )
        if complete and source.rows is not None:
            self._sink.expect(source.rows)
        plan = self._plan or self._compile(source.schema)
        slices = self._slices(fitting(source, plan.schema, "the data"), plan)
        with (
            closing(Progress(options.progress, source.rows, "row")) as progress,
            closing(self._encoded(slices, plan)) as encoded,
        ):
            for framed, rows in encoded:
                self._sink.write(framed, rows)
                del framed  # its memory is reused for the next slice
                self._rows += rows
                progress.advance(rows)

    def _slices(self, source: BatchSource, plan: WritePlan) -> Iterator[_Slice]:
        """Split batches into slices of about `_SLICE_BYTES`, which threads encode."""
        row = self._rows
        for batch in source:
            if self._as_bytes:
                _refuse_nulls(batch, row)
            count = min(_MAX_SLICES, max(1, -(-batch.nbytes // _SLICE_BYTES)))
            rows = max(1, -(-len(batch) // count))
            for begin in range(0, len(batch), rows):
                part = batch.slice(begin, rows)
                yield part, row, self._begin(part, row, plan)
                row += len(part)

    def _begin(self, batch: pa.RecordBatch, row: int, plan: WritePlan) -> bytes:
        """At the first row, pass the schema to be embedded to the sink; later, check the categories against it."""
        if not self._embeds:
            return b""
        if row == 0:
            self._categories = dictionaries(batch, plan)
            return self._sink.begin(pack(embedded_schema(plan.schema), self._categories))
        for name, values in (dictionaries(batch, plan) if self._categories else {}).items():
            first = self._categories[name]
            if not values.equals(first) and not pc.all(pc.is_in(values, value_set=first)).as_py():
                reason = "it has categories that the embedded schema, written with the first rows, does not list"
                advice = "unify the categories (pyarrow.Table.unify_dictionaries), or pass embed_schema=False"
                raise EncodeError(reason, feature=name, advice=advice)
        return b""

    def _encoded(self, slices: Iterator[_Slice], plan: WritePlan) -> Generator[tuple[Any, int]]:
        """Frames and number of records of each slice, in order."""
        threads = 1 if self._as_bytes else self._options.thread_count
        if threads == 1:
            yield from (self._encode(plan, *part) for part in slices)
            return
        pending: deque[Future[tuple[Any, int]]] = deque()
        with ThreadPoolExecutor(threads, thread_name_prefix="tfrecord_io") as pool:
            try:
                for part in slices:
                    pending.append(pool.submit(self._encode, plan, *part))
                    if len(pending) > threads:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:
                for future in pending:
                    future.cancel()

    def _encode(self, plan: WritePlan, batch: pa.RecordBatch, row: int, prefix: bytes) -> tuple[Any, int]:
        if self._as_bytes:
            return self._engine.frame([memoryview(value.as_buffer()) for value in batch.column(0)]), len(batch)
        columns = encode_columns(batch, plan, row_base=row)
        framed, rows = self._engine.encode(columns, 0, len(batch), prefix=prefix, sequence=self._sequence)
        if rows < len(batch):
            reason = f"the record would exceed {MAX_RECORD_BYTES} bytes, protobuf's limit"
            advice = "write its large columns to separate files"
            raise EncodeError(reason, record=row + rows, advice=advice)
        return framed, rows

    def close(self) -> None:
        """Publish what was written; issue one PrecisionWarning if float64 values were rounded."""
        sink, plan = self._sink, self._plan
        if sink.closed:
            return
        if self._rows == 0 and self._embeds and plan is not None:
            sink.begin(pack(embedded_schema(plan.schema), {}))
        sink.commit()
        rounded = {} if plan is None else dict(plan.rounding.counts)
        columns = () if plan is None else tuple(plan.schema.names)
        size = sum(file.bytes for file in sink.files)
        self.report = WriteReport(sink.path, self._rows, size, sink.compression, columns, rounded, sink.files)
        if plan is not None and self._options.float64 is None:
            plan.rounding.warn()

    def discard(self) -> None:
        """Discard what was written; nothing is published."""
        self._sink.discard()


def write(data: Any, path: Any, options: WriteOptions) -> WriteReport:
    """Write one table."""
    with Writer(path, options) as writer:
        writer._write(data, complete=True)
    assert writer.report is not None
    return writer.report


def _open_sink(path: Any, options: WriteOptions) -> Sink:
    output = resolve_output(
        path,
        options.storage,
        shards=options.shards,
        max_shard_bytes=options.max_shard_bytes,
        compression=options.compression,
    )
    open_sink = (
        partial(ShardedSink, output, order=options.order)
        if output.sharded
        else partial(FrameSink, path, compression=options.compression)
    )
    return open_sink(
        storage=options.storage,
        overwrite=options.overwrite,
        write_index=options.write_index,
        threads=options.thread_count,
    )


def conform(
    source: BatchSource, row_base: int, schema: Schema, float64: str | None = None, rounding: Rounding | None = None
) -> BatchSource:
    """Select the columns of `schema` in its order, cast without loss to its types and named as its features."""
    for name in schema.names:
        if name not in source.schema.names:
            present = ", ".join(source.schema.names)
            reason = "the schema names a column that the data does not have"
            raise SchemaError(reason, feature=name, advice=f"it has: {present}")
    target = schema.to_arrow()
    target = target if target.metadata else target.with_metadata(source.schema.metadata)
    written = written_schema(schema, target.metadata)

    def cast() -> Iterator[pa.RecordBatch]:
        rows = row_base
        for batch in source:
            columns = cast_columns(batch.select(schema.names), target, rows, float64=float64, rounding=rounding)
            rows += batch.num_rows
            yield pa.RecordBatch.from_arrays(columns, schema=written)

    return BatchSource(written, cast(), source.rows)


def written_schema(schema: Schema, metadata: Any = None) -> pa.Schema:
    """The Arrow schema of the written data, whose columns are named as their features."""
    fields = [replace(field, column=field.feature).to_arrow() for field in schema]
    return pa.schema(fields, metadata=metadata or dict(schema.metadata) or None)


def _is_binary(type_: pa.DataType) -> bool:
    t = pa.types
    return any(check(type_) for check in (t.is_binary, t.is_large_binary, t.is_fixed_size_binary, t.is_binary_view))


def _refuse_nulls(batch: pa.RecordBatch, row: int) -> None:
    """Raise EncodeError if a payload is null; `row` is the number of the batch's first row."""
    column = batch.column(0)
    if column.null_count:
        null = row + column.is_null().index(True).as_py()
        name = batch.schema.names[0]
        raise EncodeError("a record cannot be null", record=null, feature=name, advice="drop the nulls")
