"""The sink that writes framed records to the shards of a dataset, which is published atomically.

An assigner takes the sizes of the next records and returns runs of them, each with its shard. With a number of shards
these are contiguous parts of equal length or, on request, record ``i`` goes to shard ``i % shards``, as in TensorFlow's
``Dataset.shard``; with a size, a new shard begins when the next record would not fit.
"""

from __future__ import annotations

import errno
import tempfile
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.background import Task, in_background
from tfrecord_io.engine.contract import MAX_RECORD_BYTES, Array, Frames
from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import SchemaError
from tfrecord_io.format.framing import HEADER_BYTES, frame_size
from tfrecord_io.index.lookup import check_uncompressed
from tfrecord_io.options import DEFAULT_STORAGE, LIMITS, StorageOptions
from tfrecord_io.schema.embedded import EmbeddedSchema, field_bytes, pack
from tfrecord_io.schema.leaf import BY_WIRE, encoding_of
from tfrecord_io.schema.merged_schema import merge
from tfrecord_io.schema.pandas_metadata import stored_index
from tfrecord_io.storage.paths.resolve_output import Output
from tfrecord_io.storage.temporary_folder import named_temporary_folder
from tfrecord_io.storage.write.atomic import open_publication
from tfrecord_io.storage.write.output_file import OutputFile
from tfrecord_io.storage.write.publication import WrittenShard
from tfrecord_io.write.frame_sink import FrameSink, Piece, Sink, WrittenFile, frame_sizes, with_prefix
from tfrecord_io.write.side_by_side import open_at_a_time


class ShardedSink(Sink):
    """Writes framed records to the shards of a dataset; see `Sink`."""

    keeps_schema = True  # in the manifest

    def __init__(
        self,
        output: Output,
        storage: StorageOptions = DEFAULT_STORAGE,
        *,
        overwrite: bool | None = None,
        write_index: bool = False,
        threads: int = 1,
        order: str = "keep",
        evolve: bool = False,
    ) -> None:
        if write_index:
            check_uncompressed(output.compression)
        self._dataset = open_publication(output, storage, overwrite=overwrite)
        self._dataset.unite = partial(unite_schemas, evolve=evolve)
        self._output = output = self._dataset.output
        self.path, self.compression = output.path, output.compression
        self.known_schema = self._dataset.known_schema
        self._engine = get_engine()
        self._schema: bytes | None = None
        self._prefix = b""
        self._shards: dict[int, FrameSink] = {}
        self._complete = 0  # shards below this one are finished
        self._contiguous: Contiguous | None = None  # once the number of rows is known
        self._ranges: list[range] | None = None  # of the rows of shards that are written side by side
        self._round_robin = order == "round_robin" and output.count is not None
        self._assigner = self._default_assigner()
        self._shard_options: dict[str, Any] = {"write_index": write_index, "threads": threads, "storage": storage}
        if write_index:
            check_uncompressed(output.compression)  # also that of the dataset that is appended to
        self._finishing: Task[None] | None = None
        self._finished: list[FrameSink] | None = None  # all shards, once they are complete
        self._spool = None if output.count is None or self._round_robin else Spool()  # until the rows are counted

    def _default_assigner(self) -> ShardAssigner:
        if self._output.count is not None:
            return RoundRobin(self._output.count)
        return BySize(self._output.max_shard_bytes or MAX_RECORD_BYTES, len(self._prefix))

    def expect(self, rows: int) -> None:
        """Make the shards contiguous parts, as the number of rows is known."""
        if self._spool is not None and self._output.count is not None:
            self._contiguous = self._assigner = Contiguous(rows, self._output.count)
            self._spool.close()
            self._spool = None

    def side_by_side(self, threads: int) -> Sequence[range] | None:
        """The rows of each shard, if they are known; see `Sink`."""
        if self._contiguous is None or not self._dataset.side_by_side:
            return None
        self._ranges = self._contiguous.ranges
        at_a_time = open_at_a_time(len(self._ranges), threads)
        self._shard_options["threads"] = -(-threads // at_a_time)
        return self._ranges

    def end(self, number: int) -> None:
        self._shard(number).finish()

    def begin(self, schema: bytes) -> bytes:
        """Embed the schema in the first record of each shard and in the manifest; the first payload needs no prefix."""
        self._dataset.check_schema(schema)
        self._schema, self._prefix = schema, field_bytes(schema)
        if self._output.count is None:
            self._assigner = self._default_assigner()
        return b""

    def prepare(self, data: Any, records: int, row: int) -> Piece:
        """Find the frames, unless they are spooled, and the checksum of all, if they may go to one plain file.

        In turn, each record's shard follows from its row: the parts of all shards are prepared.
        """
        if self._spool is not None:
            return Piece(data, records)
        if self._ranges is not None:
            return Piece(data, records, parts=tuple(self._of_one_shard(data, records, row)))
        sizes = frame_sizes(data, self._engine)
        if self._round_robin:
            return Piece(data, records, parts=tuple(self._in_turn(np.frombuffer(data, np.uint8), sizes, row)))
        return Piece(data, records, sizes, self._engine.crc32c(data) if self.compression is None else None)

    def _in_turn(self, data: Array, sizes: Array, row: int) -> Iterator[tuple[int, Piece]]:
        """The parts of shards, of frames that begin with record `row`."""
        starts, count = np.cumsum(sizes) - sizes, self._output.count or 1
        for shard, selection in RoundRobin(count, row).assign(sizes):
            own, first = Frames(starts[selection], sizes[selection], 0), row + selection.start
            if self._prefix and first < count:
                first_frame = data[own.starts[0] : own.starts[0] + own.lengths[0]]
                frame = with_prefix(self._prefix, first_frame, self.path)
                yield shard, self._part(frame, 1, np.array([len(frame)]))
                own = Frames(own.starts[1:], own.lengths[1:], 0)
            if len(own.starts):  # the engine joins whole frames as if they were payloads
                yield shard, self._part(self._engine.payloads(data, own), len(own.lengths), own.lengths)

    def _of_one_shard(self, data: Any, records: int, row: int) -> Iterator[tuple[int, Piece]]:
        """The parts of frames that one shard holds: its first one apart, which gets the embedded schema."""
        assert self._ranges is not None
        shard = bisect_right(self._ranges, row, key=attrgetter("start")) - 1
        frames = np.frombuffer(data, np.uint8)
        if row == self._ranges[shard].start and self._prefix:
            first = frame_size(frames[:HEADER_BYTES])
            frame = with_prefix(self._prefix, frames[:first], self.path)
            yield shard, self._part(frame, 1, np.array([len(frame)]))
            frames, records = frames[first:], records - 1
        if records:
            sizes = frame_sizes(frames, self._engine) if self._shard_options["write_index"] else None
            yield shard, self._part(frames, records, sizes)

    def _part(self, data: Any, records: int, sizes: Array | None) -> Piece:
        """Frames of one shard."""
        return Piece(data, records, sizes, self._engine.crc32c(data) if self.compression is None else None)

    def write(self, piece: Piece) -> None:
        if not piece.records:
            return
        if self._spool is not None:
            self._spool.write(piece.data, piece.records)
        elif piece.parts:
            for shard, part in piece.parts:
                self._shard(shard).write(part)
        else:
            self._distribute(piece)
        self.records += piece.records  # about, if threads do so at a time

    def _distribute(self, piece: Piece) -> None:
        assert piece.sizes is not None
        for index, selection in self._assigner.assign(piece.sizes):
            for number in range(self._complete, self._assigner.current):
                if number in self._shards:
                    self._finish(self._shards[number])
            self._complete = self._assigner.current
            self._write_to(self._shard(index), piece, selection)

    def _finish(self, shard: FrameSink) -> None:
        """Complete a shard: with several threads, while the next one is written."""
        self._wait()
        if self._shard_options["threads"] == 1 or not self._dataset.side_by_side:
            shard.finish()
        else:
            self._finishing = in_background(shard.finish, "finish")

    def _wait(self) -> None:
        """Wait until the shard before is complete; raise the error of completing it."""
        if self._finishing is not None:
            self._finishing.result()
            self._finishing = None

    def _shard(self, index: int) -> FrameSink:
        if index not in self._shards:
            output = self._open(index)
            options = self._shard_options
            self._shards[index] = FrameSink(output.path, compression=self.compression, output=output, **options)
        return self._shards[index]

    def _open(self, index: int) -> OutputFile:
        try:
            return self._dataset.open(index)
        except OSError as error:
            if not self._round_robin or error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            reason = f"order='round_robin' has all {self._output.count} shards open, more files than the system allows"
            advice = "raise the limit of open files (ulimit -n), write fewer shards, or pass order='keep'"
            raise OSError(error.errno, f"{reason}; {advice}", self.path) from error

    def _write_to(self, shard: FrameSink, piece: Piece, selection: slice) -> None:
        assert piece.sizes is not None
        data = np.frombuffer(piece.data, np.uint8)
        starts, sizes = (np.cumsum(piece.sizes) - piece.sizes)[selection], piece.sizes[selection]
        if shard.records == 0 and self._prefix:
            first = with_prefix(self._prefix, data[starts[0] : starts[0] + sizes[0]], self.path)
            shard.write(self._part(first, 1, np.array([len(first)])))
            starts, sizes = starts[1:], sizes[1:]
        if len(starts) == piece.records:
            shard.write(piece)
        elif len(starts):
            shard.write(self._part(data[starts[0] : starts[-1] + sizes[-1]], len(sizes), sizes))

    def finish(self) -> None:
        """Complete all shards."""
        if self._finished is not None:
            return
        if self._spool is not None:  # now the number of its records is known
            with closing(self._spool) as spool:
                self._spool, self._assigner = None, Contiguous(spool.records, self._output.count or 1)
                for part, records in spool.parts():
                    self._distribute(self.prepare(part, records, 0))
        self._wait()
        count = self._assigner.current + 1 if self._output.count is None else self._output.count
        shards = []
        for index in range(count):
            shard = self._shard(index)
            shard.finish()  # before the next is opened: there may be more shards than a process may have open files
            shards.append(shard)
        self._finished = shards

    def _publish(self) -> tuple[WrittenFile, ...]:
        self.finish()
        shards = self._finished or []
        for shard, rows in zip(shards, self._ranges or [], strict=self._ranges is not None):
            if shard.records != len(rows):  # published, it would lack rows without a sign
                raise RuntimeError(f"'{shard.path}' has {shard.records} of {len(rows)} records: nothing is published")
        written = [WrittenShard(i, s.records, s.bytes, s.crc32c, s.output) for i, s in enumerate(shards)]
        if not self._dataset.keeps_empty:
            written = [each for each in written if each.records]
            for number in [number for number, shard in self._shards.items() if not shard.records]:
                self._shards.pop(number).discard()  # it has no index either
        self._dataset.publish(written, self._schema)
        return tuple(shard.file for _, shard in sorted(self._shards.items()))

    def publish_indexes(self) -> None:  # the dataset is complete without them
        for shard in self._shards.values():
            shard.publish_indexes()
        self._dataset.warn_of_left()

    def _abort(self) -> None:
        if self._finishing is not None and not self._finishing.cancel():
            self._finishing.wait()
        with ExitStack() as steps:  # all of them, also after an error
            steps.callback(self._dataset.discard)  # the last
            for shard in self._shards.values():
                steps.callback(shard.discard)
            if self._spool is not None:
                steps.callback(self._spool.close)


def unite_schemas(
    old: bytes | None, new: bytes | None, path: str, *, evolve: bool = False, without_rows: bool = False
) -> bytes | None:
    """The schema of a dataset once rows are added to it; `path` is that of its manifest.

    Without a schema of the dataset there is nothing to compare, and it stays without one. Of a dataset `without_rows`
    the categories are those of the first rows.

    Raises
    ------
    SchemaError
        The types of a column have none in common; or, without `evolve`, the rows have columns that the dataset lacks,
        types that are wider than its own, values in another form, or lack a level of its index.
    """
    if old is None:
        return None
    if new is None:
        raise SchemaError("the dataset has a schema, and what is appended has none", path=path)
    known, added = EmbeddedSchema.parse(old, path), EmbeddedSchema.parse(new, path)
    if without_rows:
        known = replace(known, dictionaries=added.dictionaries)
    united = merge(known, added)
    for level in stored_index(known.schema) if not evolve else ():
        if level not in added.schema.names:
            reason = "it is a level of the dataset's index, which what is appended lacks"
            advice = "set it as the index, pass index=True, or pass evolve=True to append rows without labels"
            raise SchemaError(reason, path=path, feature=level, advice=advice)
    for column in united.schema if united is not known else ():
        before = known.schema.field(column.name) if column.name in known.schema.names else None
        got = added.schema.field(column.name).type if column.name in added.schema.names else None
        types = f"what is appended is {got}, and the dataset has {None if before is None else before.type}"
        if column.name in united.conflicts:
            reason, advice = f"{types}, which have no type in common", "cast the column"
            if before is not None and before.type == got:
                reason, advice = f"{types}, stored in another form", "pass its record_type= and column_encoding="
        elif before is None:
            reason, advice = "the dataset has no such column", "leave it out, or pass evolve=True to add it"
        elif before.type == got != column.type:
            reason = "its ordered categories are not those of the dataset"
            advice = "give it the same, or pass evolve=True to have values without categories"
        elif before.type == got and encoding_of(before) != BY_WIRE == encoding_of(column):
            reason = f"what is appended is {got} as well, but it is stored in another form"
            advice = "pass the float64= and column_encoding= of the dataset, or evolve=True to store both forms"
        elif before.type != column.type and not pa.types.is_null(before.type):
            reason, advice = f"{types}, which is narrower", "cast the column, or pass evolve=True to widen it"
        elif column.nullable and not before.nullable:
            reason, advice = "the dataset requires this column", "fill its nulls, or pass evolve=True to allow them"
        else:
            continue
        if not evolve or column.name in united.conflicts:
            expected = None if before is None else str(before.type)
            error = {"feature": column.name, "expected": expected, "got": None if got is None else str(got)}
            raise SchemaError(reason, path=path, advice=advice, **error)
    return old if united is known and not without_rows else pack(united.schema, united.dictionaries)


class ShardAssigner(ABC):
    """Assigns records to shards, in their order."""

    current = 0  # shards below this one receive no more records

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
        self._ends = [rows * (i + 1) // shards for i in range(shards)]

    @property
    def ranges(self) -> list[range]:
        """The rows of each shard."""
        return [range(begin, end) for begin, end in pairwise([0, *self._ends])]

    def assign(self, sizes: Any) -> Iterator[tuple[int, slice]]:
        begin, last = 0, len(self._ends) - 1
        while begin < len(sizes):
            while self.current < last and self._row >= self._ends[self.current]:
                self.current += 1
            count = len(sizes) - begin
            if self.current < last:
                count = min(count, self._ends[self.current] - self._row)
            yield self.current, slice(begin, begin + count)
            begin += count
            self._row += count


class RoundRobin(ShardAssigner):
    """One record per shard in turn.

    >>> list(RoundRobin(2).assign(np.ones(3)))
    [(0, slice(0, None, 2)), (1, slice(1, None, 2))]
    """

    def __init__(self, shards: int, row: int = 0) -> None:
        self._row = row
        self._shards = shards

    def assign(self, sizes: Any) -> Iterator[tuple[int, slice]]:
        for begin in range(min(self._shards, len(sizes))):
            yield (self._row + begin) % self._shards, slice(begin, None, self._shards)
        self._row += len(sizes)


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
    """Keeps framed records until they are read once.

    Parameters
    ----------
    memory_bytes : int, optional
        More than this is on disk.

    Attributes
    ----------
    records, bytes : int
    """

    def __init__(self, memory_bytes: int | None = None) -> None:
        self.records = self.bytes = 0
        self._writes: list[tuple[int, int]] = []  # bytes and records of each
        most = LIMITS.spool_memory_bytes if memory_bytes is None else memory_bytes
        self._file = tempfile.SpooledTemporaryFile(most, prefix="tfrecord_io-")  # noqa: SIM115

    def write(self, framed: Any, records: int) -> None:
        """Append complete frames."""
        with named_temporary_folder():
            size = self._file.write(memoryview(framed).cast("B"))
        self._writes.append((size, records))
        self.records += records
        self.bytes += size

    def parts(self) -> Iterator[tuple[bytes, int]]:
        """What was written, write by write, with the number of records."""
        with named_temporary_folder():
            self._file.seek(0)
        for size, records in self._writes:
            yield self._file.read(size), records

    def close(self) -> None:
        """Remove the file."""
        with named_temporary_folder():
            self._file.close()
