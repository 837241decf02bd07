"""Writing: from anything that holds a table to TFRecord files, whole or absent."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from tfrecord_io.arrow.encode.columns import dictionaries, encode_columns
from tfrecord_io.arrow.encode.plan import Rounding, WritePlan, plan_writing
from tfrecord_io.arrow.input.batch_source import BatchSource, Conform, fitting, open_input
from tfrecord_io.arrow.input.schema_cast import cast_columns
from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import EncodeError, SchemaError
from tfrecord_io.options import MIB, WriteOptions
from tfrecord_io.progress import Progress
from tfrecord_io.schema.embedded import embedded_schema, field_bytes, has_dictionary, pack
from tfrecord_io.schema.schema import Schema
from tfrecord_io.storage.paths.resolve_output import resolve_output
from tfrecord_io.write.frame_sink import FrameSink, WrittenFile
from tfrecord_io.write.sharded_sink import ShardedSink

_SLICE_BYTES = 4 * MIB  # of Arrow data, what a thread encodes at a time
_MOST_SLICES = 64


@dataclass(frozen=True)
class WriteReport:
    """What was written.

    Attributes
    ----------
    path : str
    records : int
    bytes : int
        Of all files, compressed if they are.
    compression : str or None
    columns : tuple of str
        Names of the input's columns.
    rounded : dict of str to int
        By float64 column: how many values float32 does not hold; empty with ``float64="round"``, which does not count.
    files : tuple of WrittenFile
        ``path``, ``records`` and ``bytes`` of each; of a sharded dataset its shards, without the manifest.
    """

    path: str
    records: int
    bytes: int
    compression: str | None
    columns: tuple[str, ...]
    rounded: dict[str, int]
    files: tuple[WrittenFile, ...] = ()


class Writer:
    """Writes tables to one file, or to the shards of a dataset; made by `tfrecord_io.open_writer`.

    A context manager: what was written is published when the block ends, and not at all if it ends by an exception.

    Attributes
    ----------
    report : WriteReport or None
        After ``close()``.
    """

    def __init__(self, path: Any, options: WriteOptions) -> None:
        self._options = options
        self._engine = get_engine()
        self._plan: WritePlan | None = None
        self.report: WriteReport | None = None
        self._categories: dict[str, pa.Array] | None = None  # of the first rows, by feature
        self._rows = 0
        self._progress = Progress(False, None, "row")
        self._as_bytes = options.record_type == "bytes"
        self._sequence = options.record_type == "sequence_example"
        self._schema = None if options.schema is None else Schema.parse(options.schema)
        if self._schema is not None:
            self._compile(written_schema(self._schema))
        self._sink = _open_sink(path, options)

    def _compile(self, schema: pa.Schema) -> WritePlan:
        options = self._options
        if self._as_bytes and (len(schema) != 1 or not _is_binary(schema.field(0).type)):
            raise EncodeError(
                f"record_type='bytes' writes one binary column, got {', '.join(map(str, schema.types)) or 'none'}",
                advice="select the column",
            )
        float64 = options.float64
        self._plan = plan_writing(
            schema, column_encoding=options.column_encoding, float64=float64, sequence=self._sequence
        )
        return self._plan

    def write(self, data: Any) -> None:
        """Append all rows of `data`: anything that `tfrecord_io.write_tfrecord` takes.

        Raises
        ------
        SchemaError
            Its schema is not that of the data before it.
        EncodeError
            A value has no form in a record; ``record`` is its row. Where rows before it were written, the writer gives
            up: a file with a part of `data` is not published.
        """
        self._write(data)

    def _write(self, data: Any, *, whole: bool = False) -> None:
        """`whole`: nothing more will come."""
        if self._sink.closed:
            raise ValueError("the writer is closed")
        before = self._rows
        try:
            self._append(data, whole)
        except BaseException:
            if self._rows != before:
                self.discard()
            raise

    def _append(self, data: Any, whole: bool) -> None:
        options = self._options
        source = open_input(
            data,
            index=options.index,
            nan_to_null=options.nan_to_null,
            encodings=options.column_encoding,
            row_base=self._rows,
            conform=self._conform(),
        )
        if whole and source.rows is not None and isinstance(self._sink, ShardedSink):
            self._sink.expect(source.rows)
        self._progress = Progress(self._options.progress, source.rows, "row")
        try:
            self._write_source(source)
        finally:
            self._progress.close()

    def _conform(self) -> Conform | None:
        if self._schema is None or self._plan is None:
            return None
        return partial(conform, schema=self._schema, float64=self._options.float64, rounding=self._plan.rounding)

    def _write_source(self, source: BatchSource) -> None:
        plan = self._plan or self._compile(source.schema)
        source = fitting(source, plan.schema, "the data")
        if self._as_bytes:
            self._write_payloads(source)
            return
        threads = self._options.thread_count
        pieces = (piece for batch in source for piece in self._checked(_pieces(batch), plan))
        if threads == 1:
            for piece in pieces:
                self._put(self._encode(piece, self._rows, plan), piece)
            return
        with ThreadPoolExecutor(threads, thread_name_prefix="tfrecord_io") as pool:
            self._write_parallel(pool, pieces, plan, threads)

    def _checked(self, pieces: Iterator[pa.RecordBatch], plan: WritePlan) -> Iterator[pa.RecordBatch]:
        """`pieces`, none of which has categories that the embedded schema, in front of the first row, does not name."""
        if not self._options.embed_schema or not any(has_dictionary(leaf.type) for leaf in plan.leaves):
            yield from pieces
            return
        for piece in pieces:
            found = dictionaries(piece, plan)
            if self._categories is None:
                self._categories = found
            for name, values in found.items():
                first = self._categories[name]
                if not values.equals(first) and not pc.all(pc.is_in(values, value_set=first)).as_py():
                    raise EncodeError(
                        "it has categories that the rows before do not have, and the file names those of its first rows",
                        feature=name,
                        advice="give all rows the same categories (pyarrow.Table.unify_dictionaries), or pass embed_schema=False",
                    )
            yield piece

    def _write_parallel(
        self, pool: ThreadPoolExecutor, pieces: Iterator[pa.RecordBatch], plan: WritePlan, threads: int
    ) -> None:
        pending: deque[tuple[Future[list[Any]], pa.RecordBatch]] = deque()
        row = self._rows
        try:
            for piece in pieces:
                pending.append((pool.submit(self._encode, piece, row, plan), piece))
                row += len(piece)
                if len(pending) > threads:
                    future, done = pending.popleft()
                    self._put(future.result(), done)
            while pending:
                future, done = pending.popleft()
                self._put(future.result(), done)
        finally:
            for future, _ in pending:
                future.cancel()

    def _encode(self, batch: pa.RecordBatch, row: int, plan: WritePlan) -> list[Any]:
        columns = encode_columns(batch, plan, row_base=row)
        prefix = b""
        if row == 0 and self._options.embed_schema and len(batch) and isinstance(self._sink, FrameSink):
            prefix = field_bytes(pack(embedded_schema(plan.schema), dictionaries(batch, plan)))
        framed, rows = self._engine.encode(columns, 0, len(batch), prefix=prefix, sequence=self._sequence)
        if rows < len(batch):
            raise EncodeError(
                "the record would be over 2147483647 bytes, protobuf's limit",
                record=row + rows,
                advice="write its large columns as files of their own",
            )
        return [framed]

    def _put(self, framed: list[Any], batch: pa.RecordBatch) -> None:
        if self._rows == 0:
            self._embed_in_shards(batch)
        for part in framed:
            self._sink.write(part)
        self._rows += len(batch)
        self._progress.advance(len(batch))

    def _embed_in_shards(self, first: pa.RecordBatch | None) -> None:
        """Tell a sharded sink the schema and the categories of the first rows."""
        plan = self._plan
        if (
            isinstance(self._sink, ShardedSink)
            and self._options.embed_schema
            and plan is not None
            and not self._as_bytes
        ):
            self._sink.embed(pack(embedded_schema(plan.schema), {} if first is None else dictionaries(first, plan)))

    def _write_payloads(self, source: BatchSource) -> None:
        for batch in source:
            column = batch.column(0)
            if column.null_count:
                row = self._rows + column.is_null().index(True).as_py()
                raise EncodeError(
                    "a null is no record", record=row, feature=batch.schema.names[0], advice="filter the nulls out"
                )
            for piece in _pieces(batch):
                payloads = [memoryview(value.as_buffer()) for value in piece.column(0)]
                self._put([self._engine.frame(payloads)], piece)

    def close(self) -> None:
        """Publish what was written; one PrecisionWarning where float64 values were rounded."""
        self._finish(stacklevel=3)

    def _finish(self, stacklevel: int) -> None:
        if self._sink.closed:
            return
        if self._rows == 0:
            self._embed_in_shards(None)
        sink, plan = self._sink, self._plan
        sink.commit()
        rounded = {} if plan is None else dict(plan.rounding.counts)
        columns = () if plan is None else tuple(plan.schema.names)
        files = sink.files if isinstance(sink, ShardedSink) else (WrittenFile(sink.path, self._rows, sink.bytes),)
        self.report = WriteReport(sink.path, self._rows, sink.bytes, sink.compression, columns, rounded, files)
        if plan is not None and self._options.float64 is None:
            plan.rounding.warn(stacklevel=stacklevel)

    def discard(self) -> None:
        """Give up: nothing is published."""
        self._sink.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._finish(stacklevel=3)
        else:
            self.discard()


def _open_sink(path: Any, options: WriteOptions) -> FrameSink | ShardedSink:
    fsspec = {"storage_options": options.storage_options, "filesystem": options.filesystem}
    output = resolve_output(
        path,
        shards=options.shards,
        max_shard_bytes=options.max_shard_bytes,
        compression=options.compression,
        storage_options=options.storage_options,
        filesystem=options.filesystem,
    )
    making: dict[str, Any] = {
        "overwrite": options.overwrite,
        "write_index": options.write_index,
        "threads": options.thread_count,
    }
    if output.sharded:
        return ShardedSink(output, **making, **fsspec)
    return FrameSink(path, compression=options.compression, **making, **fsspec)


def conform(
    source: BatchSource, row_base: int, schema: Schema, float64: str | None = None, rounding: Rounding | None = None
) -> BatchSource:
    """The columns of `schema`, in its order, cast to its types and named as its features.

    Raises
    ------
    SchemaError
        The data lacks a column.
    EncodeError
        A value cannot be cast without loss.
    """
    for name in schema.names:
        if name not in source.schema.names:
            there = ", ".join(source.schema.names)
            raise SchemaError(
                "the schema names a column that the data does not have", feature=name, advice=f"it has: {there}"
            )
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
    """The Arrow schema of what is written: columns are named as their features."""
    fields = [replace(f, column=f.feature).to_arrow() for f in schema]
    return pa.schema(fields, metadata=metadata or dict(schema.metadata) or None)


def _is_binary(type_: pa.DataType) -> bool:
    return any(
        is_one(type_)
        for is_one in (
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_fixed_size_binary,
            pa.types.is_binary_view,
        )
    )


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Slices of a batch of about `_SLICE_BYTES` each: what one thread encodes at a time."""
    count = min(_MOST_SLICES, max(1, -(-batch.nbytes // _SLICE_BYTES)))
    rows = max(1, -(-len(batch) // count))
    for at in range(0, len(batch), rows):
        yield batch.slice(at, rows)


def write(data: Any, path: Any, options: WriteOptions) -> WriteReport:
    """Write one table."""
    writer = Writer(path, options)
    try:
        writer._write(data, whole=True)
    except BaseException:
        writer.discard()
        raise
    writer._finish(stacklevel=4)
    assert writer.report is not None
    return writer.report
