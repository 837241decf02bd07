"""Rows as lists of TensorFlow Ranking, ExampleListWithContext: the counterpart of `open_elwc`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io import write_tfrecord
from tfrecord_io.base import did_you_mean
from tfrecord_io.columns import Column, Projection
from tfrecord_io.errors import EncodeError, FeatureNotFoundError, SchemaError
from tfrecord_io.kit import WriteOptions, check_keywords, open_input, printable
from tfrecord_io.read import ListRows
from tfrecord_io.typing import (
    Compression,
    Float64,
    OutputPath,
    ProgressLike,
    StorageLike,
    TableLike,
    WriteMode,
    Writer,
    WriteReport,
)
from tfrecord_io.write import PayloadSink

_ENCODING = {"column_encoding", "float64", "nan_to_null", "index", "threads"}
_WRITING = {
    *("compression", "compression_level", "shards", "max_shard_bytes", "write_index"),
    *("mode", "threads", "storage_options", "filesystem", "progress"),
}
_BATCH_BYTES = 16 << 20
_RECORDS = pa.schema([("record", pa.large_binary())])


@check_keywords
def write_elwc(
    data: TableLike,
    path: OutputPath,
    *,
    by: str = "record",
    context: Sequence[str] | str = (),
    column_encoding: Mapping[str, str] | None = None,
    float64: Float64 | None = None,
    nan_to_null: bool = True,
    index: bool | None = None,
    compression: Compression | None = "infer",
    compression_level: int | None = None,
    shards: int | None = None,
    max_shard_bytes: int | None = None,
    write_index: bool = False,
    mode: WriteMode | None = None,
    threads: int | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike = False,
) -> WriteReport:
    """Write rows as lists of TensorFlow Ranking (ExampleListWithContext), a record for the rows of a list.

    >>> import tfrecord_io as tfr
    >>> rows = {
    ...     "query": ["shoes", "shoes", "tea"],
    ...     "document": ["a", "b", "c"],
    ...     "clicks": [3, 0, 2],
    ... }
    >>> tfr.formats.write_elwc(rows, "ranking.tfrecord", by="query").records
    2
    >>> tfr.formats.open_elwc("ranking.tfrecord").read_all().to_pylist()[2]
    {'clicks': 2, 'document': 'c', 'position': 0, 'query': 'tea', 'record': 1}

    Parameters
    ----------
    data : DataFrame, pyarrow Table, RecordBatch, reader, dict of arrays, list of dicts, or iterable of those
        Whatever `tfrecord_io.write_tfrecord` accepts, such as the result of `open_elwc`. The rows of a list follow one
        another, in the order of its examples.
    path
        As in `tfrecord_io.write_tfrecord`.
    by : str, default "record"
        The column that identifies a list, of integers, text or bytes. It is a feature of the context, but ``record`` is
        not written, nor is ``position`` then: these are what `open_elwc` adds.
    context : sequence of str, optional
        Columns of the context, which are equal in all rows of a list: names, globs and ``!name`` to exclude. All others
        are features of the examples.
    column_encoding, float64, nan_to_null, index, compression, compression_level, shards, max_shard_bytes, write_index
        As in `tfrecord_io.write_tfrecord`.
    mode, threads, storage_options, progress
        As in `tfrecord_io.write_tfrecord`.

    Returns
    -------
    WriteReport
        ``records`` is the number of lists.

    Raises
    ------
    FeatureNotFoundError
        `data` has no column `by`, or none of those of `context`.
    EncodeError
        The rows of a list do not follow one another, a column of the context differs in them, or `by` is missing;
        ``record`` is the row. Or as in `tfrecord_io.write_tfrecord`.
    SchemaError
        `by` is of another type, no column is left for the examples, or one is named ``record`` or ``position`` though
        `by` is another.
    Others
        As in `tfrecord_io.write_tfrecord`.

    Notes
    -----
    Streams in bounded memory, but for a list and the values of `by`, which are held to find lists that are apart. No
    schema is embedded, as these messages are not Examples: `open_elwc` infers the types.
    """
    options = WriteOptions(
        column_encoding=column_encoding,
        float64=float64,
        nan_to_null=nan_to_null,
        index=index,
        compression=compression,
        compression_level=compression_level,
        shards=shards,
        max_shard_bytes=max_shard_bytes,
        write_index=write_index,
        mode=mode,
        threads=threads,
        storage_options=storage_options,
        progress=progress,
    )
    encoding = WriteOptions(**{name: getattr(options, name) for name in _ENCODING}, embed_schema=False)
    writing = WriteOptions(**{name: getattr(options, name) for name in _WRITING}, record_type="bytes")
    source = open_input(data, index=options.index, nan_to_null=options.nan_to_null, encodings=options.column_encoding)
    source = source.with_plain_layouts()
    lists = _Lists(source.schema, by, [context] if isinstance(context, str) else list(context), encoding)
    try:
        report = write_tfrecord(lists.records(source.batches), path, **writing.changes)
    finally:
        lists.discard()
    return replace(report, columns=(*lists.examples.names, *lists.contexts.names), rounded=lists.rounded)


class _Part:
    """The columns of one part of a list, and their rows as serialized Examples."""

    def __init__(self, names: list[str], options: WriteOptions) -> None:
        self.names = names
        self._sink = PayloadSink()
        self.writer = Writer(None, options, self._sink)

    def encode(self, batch: pa.RecordBatch) -> list[bytes]:
        if not self.names:
            return [b""] * len(batch)
        self.writer.write(batch.select(self.names))
        return self._sink.take().to_pylist()


class _Lists:
    """Makes records of rows; `context` are the columns that the context has, beside `by`."""

    def __init__(self, schema: pa.Schema, by: str, context: list[str], options: WriteOptions) -> None:
        if by not in schema.names:
            hint = did_you_mean(by, schema.names, lists_names=True)
            raise FeatureNotFoundError("no such column", feature=by, hint=hint)
        type_ = schema.field(by).type
        plain = type_.value_type if t.is_dictionary(type_) else type_
        if not (t.is_integer(plain) or Column(plain).is_text_or_bytes):
            reason = "a column that identifies lists has integers, text or bytes"
            raise SchemaError(
                reason,
                feature=by,
                got=str(type_),
                hint="cast it, or pass another one as by=",
                hint_cli="cast it, or pass another one as --by",
            )
        added = (ListRows.RECORD, ListRows.POSITION)
        left_out = {*added} if by == ListRows.RECORD else set()
        if reserved := [name for name in added if name in schema.names and name not in left_out]:
            reason = "open_elwc adds a column of this name, so a feature of this name cannot be read"
            raise SchemaError(reason, feature=reserved[0], hint="rename it, or leave it out")
        selected: list[str] = []
        if context:
            projection = Projection(context)
            projection.check(schema.names)
            selected = projection.order(schema.names)
        selected += [] if by in selected else [by]
        contexts = [name for name in selected if name not in left_out]
        not_in_examples = {*selected, *left_out}
        examples = [name for name in schema.names if name not in not_in_examples]
        if not examples:
            raise SchemaError("all columns are of the context, none is left for the examples", feature=by)
        self._by = by
        self.examples, self.contexts = _Part(examples, options), _Part(contexts, options)
        self.rounded: dict[str, int] = {}

    def records(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The records as batches of bytes."""
        yield _batch([])
        examples, contexts = self.examples.writer, self.contexts.writer
        waiting, size = list[bytes](), 0
        for record in self._join_lists(batches):
            waiting.append(record)
            size += len(record)
            if size > _BATCH_BYTES:
                yield _batch(waiting)
                waiting, size = [], 0
        yield _batch(waiting)
        examples.rounding.merge(contexts.rounding)
        self.rounded = dict(examples.rounding.counts)
        examples.close()  # with one warning for both

    def discard(self) -> None:
        """Discard the rows that are in no record yet."""
        self.examples.writer.discard()
        self.contexts.writer.discard()

    def _join_lists(self, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
        row, key, shared, parts = 0, None, b"", list[bytes]()
        seen: set[Any] = set()
        before: pa.RecordBatch | None = None  # the last row
        for batch in batches:
            keys = batch.column(self._by).to_pylist()
            examples, contexts = self.examples.encode(batch), self.contexts.encode(batch)
            for at, (row_key, example, context) in enumerate(zip(keys, examples, contexts, strict=True)):
                if row_key != key or not parts:
                    if parts:
                        yield self._record(parts, shared)
                    self._check_new(row_key, seen, row + at)
                    key, shared, parts = row_key, context, []
                elif context != shared:
                    self._refuse_difference(before if at == 0 else batch.slice(at - 1, 1), batch.slice(at, 1), row + at)
                parts.append(example)
            row += len(batch)
            before = batch.slice(len(batch) - 1) if len(batch) else before
        if parts:
            yield self._record(parts, shared)

    def _record(self, parts: list[bytes], context: bytes) -> bytes:
        return ListRows.serialize(parts, context if self.contexts.names else None)

    def _check_new(self, key: Any, seen: set[Any], row: int) -> None:
        if key is None:
            raise EncodeError("the value that identifies the list is missing", feature=self._by, record=row)
        if key in seen:
            reason = f"the rows of the list '{printable(str(key), 60)}' do not follow one another"
            raise EncodeError(reason, feature=self._by, record=row, hint="sort the rows by this column")
        seen.add(key)

    def _refuse_difference(self, before: pa.RecordBatch | None, row_context: pa.RecordBatch, row: int) -> None:
        assert before is not None
        names = [name for name in self.contexts.names if not before.column(name).equals(row_context.column(name))]
        reason = "a column of the context differs from that of the row before it in the same list"
        raise EncodeError(reason, feature=names[0] if names else None, record=row, hint="leave it out of context=")


def _batch(records: list[bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(records, pa.large_binary())], schema=_RECORDS)
