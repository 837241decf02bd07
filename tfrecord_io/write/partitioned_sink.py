"""The sink that writes rows to the folders of their partition columns: ``day=1/country=nl/part-00000-<id>.tfrecord``.

Batches lose their partition columns before they are encoded, and the sink is told the folder of each row. The first
folders have an open file each. The rows of all others are kept in memory, then in one temporary file, by folder; they
are written one folder after the other at the end. So neither memory nor the number of open files depends on how many
folders there are, or in which order the rows come.
"""

from __future__ import annotations

import tempfile
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfrecord_io.arrow.casts import plain_layout
from tfrecord_io.arrow.input.batch_source import BatchSource
from tfrecord_io.engine.contract import Array, Frames
from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import EncodeError, SchemaError, printable
from tfrecord_io.format.framing import HEADER_BYTES, frame_size
from tfrecord_io.options import WriteOptions
from tfrecord_io.schema.embedded import embedded_schema, field_bytes, pack
from tfrecord_io.schema.nested import nested_handed
from tfrecord_io.storage.paths.partitions import partition_folder
from tfrecord_io.storage.paths.resolve_output import Output
from tfrecord_io.storage.temporary_folder import named_temporary_folder
from tfrecord_io.storage.write.atomic import open_publication
from tfrecord_io.storage.write.publication import Publication, WrittenShard
from tfrecord_io.storage.write.sharded_dataset_distributed import Attempt
from tfrecord_io.write.frame_sink import FrameSink, Piece, Sink, WrittenFile, frame_sizes, with_prefix
from tfrecord_io.write.sharded_sink import BySize, unite_schemas

_MOST_OPEN = 32  # files at a time on the local disk,
_MOST_UPLOADS = 4  # and in a bucket, where each of them has parts in memory
_MEMORY_BYTES = 32 << 20  # of the rows of all other folders
_MOST_NAME_BYTES = 255  # of a folder, in common filesystems


class PartitionedSink(Sink):
    """Writes framed records to folders; see `Sink`."""

    keeps_schema = True  # in the manifest

    def __init__(self, dataset: Publication | Attempt, options: WriteOptions) -> None:
        self._columns = tuple(options.partition_by or ())
        self._dataset: Any = dataset
        self._output = self._dataset.output
        self.path, self.compression = self._output.path, self._output.compression
        self.known_schema = self._dataset.known_schema
        self._engine = get_engine()
        self._options: dict[str, Any] = {"threads": options.thread_count, "storage": options.storage}
        self._most_open = _MOST_OPEN if self._dataset.side_by_side else _MOST_UPLOADS
        self._where: dict[str, Any] = dict(options.overwrite_where or {})
        self._texts: dict[str, str | None] = {}  # of these values, in the names of folders
        self._schema: bytes | None = None
        self._prefix = b""
        self._types: pa.Schema | None = None  # of the partition columns
        self._numbers: dict[str, int] = {}  # of folders
        self._names: list[str] = []  # of folders, by number
        self._rows: deque[Array] = deque()  # the numbers of the folders of the rows to come
        self._folders: dict[int, _Folder] = {}  # those with an open file
        self._spool: FolderSpool | None = None
        self._finished: list[tuple[WrittenShard, WrittenFile]] = []

    def split(self, source: BatchSource) -> BatchSource:
        """The batches without their partition columns, whose values say where each row goes."""
        rest = stored_columns(source.schema, self._columns)
        types = pa.schema([pa.field(name, _plain_type(source.schema.field(name).type)) for name in self._columns])
        if self._types is not None and types != self._types:
            raise SchemaError("its partition columns have other types than those of the data before it")
        if self._types is None:
            self._types = types
            self._dataset.set_partition_schema(pack(embedded_schema(types), {}))
            if self._where:
                self._texts = {name: _text_of(value, types.field(name)) for name, value in self._where.items()}
                self._dataset.replaced_values = self._texts
        self._rows.clear()  # of data that could not be written
        schema = pa.schema([source.schema.field(at) for at in rest], source.schema.metadata)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in source.batches:
                self._rows.append(self._folder_numbers(batch))
                columns = [batch.column(at) for at in rest]
                if columns:
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)
                else:
                    yield batch.select([])

        return BatchSource(schema, batches(), source.rows, None)

    def _folder_numbers(self, batch: pa.RecordBatch) -> Array:
        """For each row, the number of its folder."""
        numbers = np.zeros(len(batch), np.int64)
        folders = [""]
        for column in self._columns:
            codes, texts = _values_of(batch, column)
            for text in texts if column in self._texts else ():
                if text != self._texts[column]:
                    reason = f"the data has the value {printable(text)}, and overwrite_where= states "
                    reason += f"{printable(self._where[column])}: it would be in a folder that is not replaced"
                    raise EncodeError(reason, feature=column, advice="leave the row out, or state its value")
            names = [f"{partition_folder(column, text)}/" for text in texts]
            for name in names:
                if len(name.encode()) > _MOST_NAME_BYTES:
                    reason = f"its value makes the name of a folder longer than {_MOST_NAME_BYTES} bytes"
                    raise EncodeError(reason, feature=column, advice="leave it out of partition_by=")
            used, numbers = np.unique(numbers * len(names) + codes, return_inverse=True)
            folders = [folders[at // len(names)] + names[at % len(names)] for at in used.tolist()]
        for folder in folders:
            if folder not in self._numbers:
                self._numbers[folder] = len(self._names)
                self._names.append(folder)
        known = [self._numbers[folder] for folder in folders]
        return np.array(known, np.int64)[numbers] if known else numbers

    def begin(self, schema: bytes) -> bytes:
        self._dataset.check_schema(schema)
        self._schema, self._prefix = schema, field_bytes(schema)
        return b""

    def prepare(self, data: Any, records: int, row: int) -> Piece:
        return Piece(data, records, frame_sizes(data, self._engine))

    def write(self, piece: Piece) -> None:
        if not piece.records:
            return
        assert piece.sizes is not None
        numbers = self._take(piece.records)
        order = np.argsort(numbers, kind="stable")
        starts = np.cumsum(piece.sizes) - piece.sizes
        sizes = piece.sizes[order]
        data = np.frombuffer(self._engine.payloads(piece.data, Frames(starts[order], sizes, 0)), np.uint8)
        found, first = np.unique(numbers[order], return_index=True)
        ends = np.cumsum(sizes)
        for number, begin, end in zip(found.tolist(), first.tolist(), [*first[1:].tolist(), len(order)], strict=True):
            frames = data[ends[begin] - sizes[begin] : ends[end - 1]]
            if number not in self._folders and len(self._folders) < self._most_open:
                self._folders[number] = _Folder(self, self._names[number])
            if number in self._folders:
                self._folders[number].write(frames, sizes[begin:end])
            else:
                self._spool = self._spool or FolderSpool()
                self._spool.write(number, frames)
        self.records += piece.records

    def _take(self, rows: int) -> Array:
        """The numbers of the folders of the next rows."""
        taken: list[Array] = []
        while rows:
            numbers = self._rows.popleft()
            if len(numbers) > rows:
                self._rows.appendleft(numbers[rows:])
                numbers = numbers[:rows]
            taken.append(numbers)
            rows -= len(numbers)
        return np.concatenate(taken)

    def open_shard(self, folder: str, index: int) -> FrameSink:
        """A new shard of a folder."""
        output = self._dataset.open(index, folder)
        return FrameSink(output.path, compression=self.compression, output=output, **self._options)

    def end_shard(self, folder: str, index: int, sink: FrameSink) -> None:
        """Complete a shard; in a bucket, where it would be kept in memory, it is stored at once."""
        sink.finish()
        assert sink.output is not None
        self._finished.append(
            (WrittenShard(index, sink.records, sink.bytes, sink.crc32c, sink.output, folder=folder), sink.file)
        )
        self._dataset.store(self._finished[-1][0])

    def with_schema(self, frame: Any) -> bytes:
        """The first record of a shard, with the embedded schema."""
        return with_prefix(self._prefix, frame, self.path)

    def assigner(self) -> BySize:
        return BySize(self._output.max_shard_bytes or 2**62, len(self._prefix))

    @property
    def has_prefix(self) -> bool:
        return bool(self._prefix)

    def finish(self) -> None:
        """Complete all files."""
        for number in [*self._folders]:
            self._folders[number].finish()
            del self._folders[number]
        if self._spool is not None:
            for number in self._spool.numbers():
                folder = self._folders[number] = _Folder(self, self._names[number])
                for frames in self._spool.parts(number):
                    folder.write(frames, frame_sizes(frames, self._engine))
                folder.finish()
                del self._folders[number]
            self._spool.close()
            self._spool = None

    def _publish(self) -> tuple[WrittenFile, ...]:
        self.finish()
        self._dataset.publish([shard for shard, _ in self._finished], self._schema)
        return tuple(file for _, file in self._finished)

    def publish_indexes(self) -> None:
        self._dataset.warn_of_left()

    def _abort(self) -> None:
        with ExitStack() as steps:  # all of them, also after an error
            steps.callback(self._dataset.discard)  # the last
            for shard, _ in self._finished:
                if shard.output is not None:
                    steps.callback(shard.output.discard)
            for folder in self._folders.values():
                steps.callback(folder.discard)
            if self._spool is not None:
                steps.callback(self._spool.close)


def open_partitioned_sink(output: Output, options: WriteOptions) -> PartitionedSink:
    """A sink whose one process publishes the dataset."""
    columns, mode = tuple(options.partition_by or ()), options.effective_mode
    dataset = open_publication(output, options.storage, partition_by=columns, mode=mode)
    dataset.unite = partial(unite_schemas, evolve=options.evolve)
    return PartitionedSink(dataset, options)


def stored_columns(schema: pa.Schema, partition_by: Sequence[str] | None) -> list[int]:
    """The positions of the columns that are features, and not in the names of folders.

    Raises
    ------
    SchemaError
        A column of `partition_by` is missing.
    """
    for column in partition_by or ():
        if column not in schema.names:
            reason = "partition_by= names a column that the data does not have"
            raise SchemaError(reason, feature=column, advice=f"it has: {', '.join(schema.names)}")
    return [at for at, name in enumerate(schema.names) if name not in (partition_by or ())]


class _Folder:
    """The shards of one folder, one after the other."""

    def __init__(self, sink: PartitionedSink, folder: str) -> None:
        self._sink, self._folder = sink, folder
        self._assigner = sink.assigner()
        self._index = 0
        self._shard: FrameSink | None = None

    def write(self, frames: Array, sizes: Array) -> None:
        begin = 0
        for index, selection in self._assigner.assign(sizes):
            if index != self._index:
                self.finish()
                self._index = index
            if self._shard is None:
                self._shard = self._sink.open_shard(self._folder, index)
            end = begin + int(sizes[selection].sum())
            part, records = frames[begin:end], len(sizes[selection])
            if self._shard.records == 0 and self._sink.has_prefix:
                first = frame_size(part[:HEADER_BYTES])
                self._shard.write(Piece(self._sink.with_schema(part[:first]), 1))
                part, records = part[first:], records - 1
            if records:
                self._shard.write(Piece(part, records))
            begin = end

    def finish(self) -> None:
        if self._shard is not None:
            self._sink.end_shard(self._folder, self._index, self._shard)
            self._shard = None

    def discard(self) -> None:
        if self._shard is not None:
            self._shard.discard()


class FolderSpool:
    """Keeps framed records by folder until they are read once: some of them in memory, the others in one file."""

    def __init__(self, memory_bytes: int = _MEMORY_BYTES) -> None:
        self._memory_bytes, self._bytes = memory_bytes, 0
        self._pending: dict[int, bytearray] = {}  # not in the file yet
        self._written: dict[int, array[int]] = {}  # offset and size of each part in the file
        self._file = tempfile.TemporaryFile(prefix="tfrecord_io-")  # noqa: SIM115

    def write(self, number: int, frames: Array) -> None:
        """Append complete frames of a folder."""
        self._pending.setdefault(number, bytearray()).extend(frames)
        self._bytes += len(frames)
        if self._bytes > self._memory_bytes:
            self._flush()

    def _flush(self) -> None:
        """Write the larger ones of the parts in memory to the file: many small ones would be slow to read."""
        least = self._bytes // (2 * len(self._pending))
        for number in [number for number, part in self._pending.items() if len(part) >= least]:
            part = self._pending.pop(number)
            self._written.setdefault(number, array("q")).extend((self._file.tell(), len(part)))
            with named_temporary_folder():
                self._file.write(part)
            self._bytes -= len(part)

    def numbers(self) -> list[int]:
        """The folders, in the order of their numbers."""
        return sorted({*self._pending, *self._written})

    def parts(self, number: int) -> Iterator[Array]:
        """What was written to a folder, in order."""
        places = self._written.pop(number, array("q"))
        for offset, size in zip(places[::2], places[1::2], strict=True):
            with named_temporary_folder():
                self._file.seek(offset)
            yield np.frombuffer(self._file.read(size), np.uint8)
        if number in self._pending:
            yield np.frombuffer(self._pending.pop(number), np.uint8)

    def close(self) -> None:
        """Remove the file."""
        with named_temporary_folder():
            self._file.close()


def _plain_type(type_: pa.DataType) -> pa.DataType:
    """The type of the values in folders' names."""
    plain = nested_handed(type_)
    return plain.value_type if pa.types.is_dictionary(plain) else plain


def _text_of(value: Any, field: pa.Field) -> str | None:
    """The text of a value of a partition column in the names of folders.

    Raises
    ------
    EncodeError
        It is no value of the column.
    """
    try:
        array = pa.array([value]).cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        reason = f"overwrite_where= states {printable(repr(value), 100)}, and the column is {field.type}"
        raise EncodeError(reason, feature=field.name) from error
    (text,) = _values_of(pa.RecordBatch.from_arrays([array], [field.name]), field.name)[1]
    return text


def _values_of(batch: pa.RecordBatch, column: str) -> tuple[Array, list[str | None]]:
    """For each row, the number of its value, and the text of each value.

    Raises
    ------
    EncodeError
        A value has no text that it could be read back from.
    """
    values = plain_layout(batch.column(column))  # Arrow (26.0) encodes null of views as ""
    type_ = _plain_type(values.type)
    if pa.types.is_null(type_):
        reason = "a column of nothing but nulls has no type, and cannot name folders"
        raise EncodeError(reason, feature=column, advice="state its type by schema=, or leave it out of partition_by=")
    try:
        plain = values.cast(type_)
        encoded = plain.dictionary_encode(null_encoding="encode")
        texts = encoded.dictionary.cast(pa.string())
        is_same = pc.equal(texts.cast(type_), encoded.dictionary).fill_null(True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        reason = f"a column of the type {type_} cannot name folders ({printable(error, 100)})"
        raise EncodeError(reason, feature=column, advice="leave it out of partition_by=") from error
    if pc.any(pc.invert(is_same)).as_py():
        value = encoded.dictionary.filter(pc.invert(is_same))[0]
        reason = f"the name of a folder does not hold the value {printable(value)} exactly"
        raise EncodeError(
            reason, feature=column, advice="leave it out of partition_by=, or convert the column to texts"
        )
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), texts.to_pylist()
