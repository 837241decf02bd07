"""The sink that writes framed records to the shards of a dataset, which is published atomically.

A shard is known by its folder and its number there. Records keep their order in each folder; a dataset without
partition columns has one, "". An assigner takes the sizes of the next records of a folder and returns runs of them,
each with the number of a shard: contiguous parts of equal length or, with a size, a new shard where the next record
would not fit.

The first folders have an open file each. The rows of all others are kept in memory, then in one temporary file, by
folder; they are written one folder after the other at the end. So neither memory nor the number of open files depends
on how many folders there are, or in which order the rows come. A stream of unknown length waits for the number of its
rows, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from operator import attrgetter
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from tfrecord_io.base import LIMITS, Task, WriteOptions
from tfrecord_io.bytes import CODECS, Array, FrameHeader, Frames, get_engine
from tfrecord_io.columns import BatchSource, EmbeddedSchema
from tfrecord_io.store import Manifest, Publication, named_temporary_folder
from tfrecord_io.write.frame_sink import FrameSink, Piece, Sink, WrittenFile, add_prefix, frame_sizes
from tfrecord_io.write.parallel_sequences import open_at_a_time
from tfrecord_io.write.partition_folders import PartitionFolders

if TYPE_CHECKING:
    from tfrecord_io.store import Attempt

_MEMORY_BYTES = 32 << 20  # of the rows of folders that are not open


class ShardedSink(Sink):
    """Writes framed records to the shards of a dataset; see `Sink`."""

    keeps_schema = True  # in the manifest

    def __init__(self, dataset: Publication | Attempt, options: WriteOptions) -> None:
        self._dataset, self._output = dataset, dataset.output
        self.path, self.compression = self._output.path, self._output.compression
        self._compression_level = options.compression_level
        CODECS.check_level(CODECS.find(self.compression), self._compression_level)
        if options.write_index:
            from tfrecord_io.read import IndexWriter

            IndexWriter.check_uncompressed(self.compression)  # also that of the dataset that is appended to
        known = dataset.known
        self._published: Publication.Published | None = None
        self.known_schema = None if known is None else known.schema
        self._storage, self._write_index = options.storage, options.write_index is True
        self._metadata, self._txns = manifest_metadata(options), Manifest.txns_of(options.txn)
        self.is_repeated = dataset.has_txn(self._txns)
        self._threads = options.thread_count  # of each shard
        self._columns: PartitionFolders | None = None
        if options.partition_by:
            packed_schema = None if known is None else known.partition_schema
            types = None if packed_schema is None else EmbeddedSchema.parse(packed_schema, self.path).schema
            self._columns = PartitionFolders(options.partition_by, options.overwrite_where, types)
        self._names = [""] if self._columns is None else self._columns.folders  # by number
        self._schema: bytes | None = None
        self._prefix = b""
        self._rows: int | None = None  # of all shards, if their number is announced
        self._ranges: Sequence[range] | None = None  # of the rows of shards that are written side by side
        self._folders: dict[int, ShardAssigner] = {}  # those that are written to
        self._shards: dict[tuple[int, int], FrameSink] = {}  # by the numbers of folder and shard
        self._spool: Spool | None = None  # of folders that have no open file, or of rows that are to be counted first
        self._is_counted = self._output.count is None or self._columns is not None
        self._finishing: Task[None] | None = None
        self._finished = False

    def split(self, source: BatchSource) -> BatchSource:
        """The batches without their partition columns, whose values say where each row goes."""
        if self._columns is None:
            return source
        is_first = self._columns.types is None
        rows = self._columns.split(source, self.records)
        if is_first:
            self._dataset.check(Manifest(partition_schema=self._columns.schema))
        return rows

    def expect(self, rows: int) -> None:
        """Make the shards contiguous parts, as the number of rows is known."""
        self._rows, self._is_counted = rows, True

    def side_by_side(self, threads: int) -> Sequence[range] | None:
        """The rows of each shard, if they are known; see `Sink`. Those of a single one are written in order."""
        if self._rows is None or self._output.count is None or not self._dataset.side_by_side or self._columns:
            return None
        self._ranges = Contiguous(self._rows, self._output.count).ranges
        self._threads = -(-threads // open_at_a_time(len(self._ranges), threads))
        return self._ranges if len(self._ranges) > 1 else None

    def end(self, number: int) -> None:
        if self._ranges is None or self._ranges[number] or self._dataset.keeps_empty:
            self._shard(0, number).finish()

    def begin(self, schema: bytes) -> bytes:
        """Embed the schema in the first record of each shard and in the manifest; the first payload needs no prefix."""
        self._dataset.check(Manifest(schema=schema))
        self._schema, self._prefix = schema, EmbeddedSchema.field_of(schema)
        return b""

    def prepare(self, data: Any, records: int, row: int) -> Piece:
        """Find the folder or shard of frames and, unless they are spooled, their sizes and checksum."""
        frames = np.frombuffer(data, np.uint8)
        if not self._is_counted:
            return Piece(frames, records)
        is_needed = self._ranges is None or self._write_index
        sizes = frame_sizes(data) if is_needed else None
        if self._columns is not None:
            assert sizes is not None
            return Piece(frames, records, parts=self._split_by_folder(frames, sizes, self._columns.take(row, records)))
        shard = bisect_right(self._ranges, row, key=attrgetter("start")) - 1 if self._ranges is not None else 0
        return Piece(
            frames,
            records,
            sizes=sizes,
            crc32c=get_engine().crc32c(data) if self.compression is None else None,
            number=shard,
        )

    def _split_by_folder(self, frames: Array, sizes: Array, numbers: Array) -> tuple[Piece, ...]:
        """The frames of each folder, in their order; `numbers` are those of the frames' folders."""
        order = np.argsort(numbers, kind="stable")
        starts = (np.cumsum(sizes) - sizes)[order]
        sizes = sizes[order]
        data = np.frombuffer(get_engine().payloads(frames, Frames(starts, sizes, 0)), np.uint8)  # of whole frames
        folders, first = np.unique(numbers[order], return_index=True)
        ends = np.append(0, np.cumsum(sizes))
        bounds = pairwise([*first.tolist(), len(sizes)])
        return tuple(
            Piece(data[ends[begin] : ends[end]], end - begin, sizes=sizes[begin:end], crc32c=None, number=number)
            for number, (begin, end) in zip(folders.tolist(), bounds, strict=True)
        )

    def write(self, piece: Piece) -> None:
        if not piece.records:
            return
        if self._ranges is not None:
            self._append(self._shard(0, piece.number), piece)
        else:
            for part in piece.parts or (piece,):
                self._distribute(part)
        self.records += piece.records  # about, if threads do so at a time

    def _distribute(self, piece: Piece) -> None:
        """Write frames to the shards of their folder, or spool them until the folder's turn or the end of counting."""
        max_open = LIMITS.open_folders[self._dataset.side_by_side]
        if not self._is_counted or (piece.number not in self._folders and len(self._folders) >= max_open):
            self._spool = self._spool or Spool(_MEMORY_BYTES if self._is_counted else LIMITS.spool_memory_bytes)
            self._spool.write(piece.data, number=piece.number)
            return
        if (folder := self._folders.get(piece.number)) is None:
            folder = BySize(self._output.max_shard_bytes or 2**62, len(self._prefix))
            if self._output.count is not None and self._rows is not None:
                folder = Contiguous(self._rows, self._output.count)
            self._folders[piece.number] = folder
        begin = 0
        for shard, rows in folder.assign(piece.sizes):
            if folder.begun not in (None, shard):
                self._complete(piece.number, folder.begun)
            folder.begun, part = shard, piece
            if rows.stop - rows.start < piece.records:
                assert piece.sizes is not None
                end = begin + int(piece.sizes[rows].sum())
                part, begin = Piece(piece.data[begin:end], rows.stop - rows.start, piece.sizes[rows]), end
            self._append(self._shard(piece.number, shard), part)

    def _append(self, shard: FrameSink, piece: Piece) -> None:
        """Append frames to a shard, whose first record gets the embedded schema."""
        if self._prefix and not shard.records:
            size = FrameHeader(piece.data[: FrameHeader.BYTES]).frame_size
            first = add_prefix(self._prefix, piece.data[:size], self.path)
            shard.write(Piece(first, 1, np.array([len(first)])))
            sizes = None if piece.sizes is None else piece.sizes[1:]
            piece = Piece(piece.data[size:], piece.records - 1, sizes)
        if piece.records:
            shard.write(piece)

    def _shard(self, folder: int, number: int) -> FrameSink:
        if (folder, number) not in self._shards:
            output = self._dataset.open(number, self._names[folder])
            self._shards[folder, number] = FrameSink(
                output.path,
                self._storage,
                compression=self.compression,
                compression_level=self._compression_level,
                write_index=self._write_index,
                threads=self._threads,
                output=output,
            )
        return self._shards[folder, number]

    def _complete(self, folder: int, number: int) -> None:
        """Complete a shard: with several threads, while the next one is written; in a bucket, it is sent at once."""
        self._wait()
        shard = self._shard(folder, number)
        if self._threads > 1 and self._dataset.side_by_side and self._columns is None:
            self._finishing = Task.start(shard.finish, "finish")
        else:
            shard.finish()
            self._dataset.store(self._written_shard(folder, number))

    def _wait(self) -> None:
        """Wait until the shard before is complete; raise the error of completing it."""
        if self._finishing is not None:
            self._finishing.result()
            self._finishing = None

    def _written_shard(self, folder: int, number: int) -> Publication.Shard:
        shard = self._shards[folder, number]
        return Publication.Shard(
            number,
            shard.records,
            bytes=shard.bytes,
            crc32c=shard.crc32c,
            output=shard.output,
            folder=self._names[folder],
        )

    def finish(self) -> None:
        """Complete all shards."""
        if self._finished:
            return
        if not self._is_counted:
            self.expect(self.records)
        if self._ranges is None:
            self._end_folders()
        for number in range(len(self._ranges or ())):
            self.end(number)
        if self._spool is not None:
            for folder in self._spool.numbers():
                for frames in self._spool.parts(folder):
                    sizes = frame_sizes(frames)
                    self._distribute(Piece(frames, len(sizes), sizes=sizes, crc32c=None, number=folder))
                self._end_folders()
            self._spool.close()
        self._wait()
        for number in range(self._output.count or 1) if self._columns is None and self._dataset.keeps_empty else ():
            if (0, number) not in self._shards:  # before the next is opened: there may be more than files may be open
                self._complete(0, number)
        self._wait()
        self._finished = True

    def _end_folders(self) -> None:
        for number, folder in self._folders.items():
            if folder.begun is not None:
                self._complete(number, folder.begun)
        self._folders.clear()

    def _publish(self) -> tuple[WrittenFile, ...]:
        self.finish()
        if self.is_repeated:  # no row was written: the transaction would be stated without them if it is gone by now
            self._dataset.discard()
            return ()
        for number, rows in enumerate(self._ranges or ()):
            shard = self._shards.get((0, number))
            records = 0 if shard is None else shard.records
            if records != len(rows):  # published, it would lack rows without a sign
                text = f"'{self.path}': shard {number} has {records} of {len(rows)} records: nothing is published"
                raise RuntimeError(text)
        keys = sorted(self._shards)
        types = None if self._columns is None or self._columns.types is None else self._columns.schema
        content = Manifest(schema=self._schema, partition_schema=types, metadata=self._metadata, txns=self._txns)
        self._published = self._dataset.publish([self._written_shard(*key) for key in keys], content)
        if self._published is not None and self._published.is_repeated:
            self.is_repeated = True
            return ()
        return tuple(self._shards[key].file for key in keys)

    def publish_indexes(self) -> None:  # the dataset is complete without them
        if self._write_index and not self.is_repeated:
            for shard in self._shards.values():
                shard.publish_indexes()
        if self._published is not None:  # an attempt replaces no file
            if self._write_index:
                self._published.withdraw_indexes()
            self._published.warn_of_left()

    def _abort(self) -> None:
        if self._finishing is not None and not self._finishing.cancel():
            self._finishing.wait()
        with ExitStack() as steps:  # all of them, also after an error
            steps.callback(self._dataset.discard)  # the last
            for shard in self._shards.values():
                steps.callback(shard.discard)
            if self._spool is not None:
                steps.callback(self._spool.close)


def manifest_metadata(options: WriteOptions) -> tuple[tuple[str, str], ...]:
    """The metadata for a manifest: those of the sources of a new dataset, and those of the caller, which win."""
    inherited = None if options.mode in options.ADDING else options.source_metadata
    return tuple({**(inherited or {}), **(options.metadata or {})}.items())


class ShardAssigner(ABC):
    """Assigns records of a folder to shards, in their order."""

    current = 0  # shards below this one receive no more records
    begun: int | None = None  # the shard that was written to last

    @abstractmethod
    def assign(self, sizes: Any) -> Iterator[tuple[int, slice]]:
        """Yield (shard, slice of the next records), for records with these frame sizes."""


class Contiguous(ShardAssigner):
    """Contiguous parts of the rows, as equal in length as possible.

    >>> list(Contiguous(5, 2).assign(np.ones(5)))
    [(0, slice(0, 2, None)), (1, slice(2, 5, None))]
    """

    def __init__(self, rows: int, shards: int) -> None:
        self._row = 0
        self.ranges = [range(rows * i // shards, rows * (i + 1) // shards) for i in range(shards)]  # of each shard

    def assign(self, sizes: Any) -> Iterator[tuple[int, slice]]:
        begin, last = 0, len(self.ranges) - 1
        while begin < len(sizes):
            while self.current < last and self._row >= self.ranges[self.current].stop:
                self.current += 1
            count = len(sizes) - begin
            if self.current < last:
                count = min(count, self.ranges[self.current].stop - self._row)
            yield self.current, slice(begin, begin + count)
            begin += count
            self._row += count


class BySize(ShardAssigner):
    """A new shard before the record that would exceed `max_bytes`; a larger record gets a shard of its own.

    Sizes are framed and uncompressed; `prefix_bytes` are added to the first record of each shard.

    >>> list(BySize(10).assign(np.array([4, 4, 4, 20])))
    [(0, slice(0, 2, None)), (1, slice(2, 3, None)), (2, slice(3, 4, None))]
    """

    def __init__(self, max_bytes: int, prefix_bytes: int = 0) -> None:
        self._max_bytes, self._prefix_bytes = max_bytes, prefix_bytes
        self._used = 0  # bytes of the current shard

    def assign(self, sizes: Any) -> Iterator[tuple[int, slice]]:
        ends = np.cumsum(sizes)
        begin = 0
        while begin < len(sizes):
            used = self._used or self._prefix_bytes
            before = int(ends[begin - 1]) if begin else 0
            end = int(np.searchsorted(ends, before + self._max_bytes - used, side="right"))
            if end <= begin and self._used:
                self.current, self._used = self.current + 1, 0
                continue
            end = max(end, begin + 1)
            yield self.current, slice(begin, end)
            self._used = used + int(ends[end - 1]) - before
            begin = end


class Spool:
    """Keeps bytes by number until they are read once: `memory_bytes` in memory, the others in one temporary file."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes, self._bytes = memory_bytes, 0  # in memory
        self._pending: dict[int, bytearray] = {}  # not in the file yet
        self._written: dict[int, array[int]] = {}  # offset and size of each part in the file
        self._file: IO[bytes] | None = None

    def write(self, *pieces: Any, number: int = 0) -> None:
        """Append pieces, which stay together in one of the `parts`."""
        pending = self._pending.setdefault(number, bytearray())
        before = len(pending)
        for piece in pieces:
            pending.extend(piece)
        self._bytes += len(pending) - before
        if self._bytes > self._memory_bytes:
            self._flush()

    def _flush(self) -> None:
        """Write the larger ones of the parts in memory to the file: many small ones would be slow to read."""
        min_bytes = self._bytes // (2 * len(self._pending))
        with named_temporary_folder():
            import tempfile

            self._file = self._file or tempfile.TemporaryFile(prefix="tfrecord_io-")  # noqa: SIM115
            for number in [number for number, part in self._pending.items() if len(part) >= min_bytes]:
                part = self._pending.pop(number)
                self._written.setdefault(number, array("q")).extend((self._file.tell(), len(part)))
                self._file.write(part)
                self._bytes -= len(part)

    def numbers(self) -> list[int]:
        """The numbers, in their order."""
        return sorted({*self._pending, *self._written})

    def parts(self, number: int = 0) -> Iterator[Array]:
        """The pieces written with this number, in order."""
        places = self._written.pop(number, array("q"))
        for offset, size in zip(places[::2], places[1::2], strict=True):
            assert self._file is not None
            with named_temporary_folder():
                self._file.seek(offset)
            yield np.frombuffer(self._file.read(size), np.uint8)
        if number in self._pending:
            yield np.frombuffer(self._pending.pop(number), np.uint8)

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            with named_temporary_folder():
                self._file.close()
            self._file = None
