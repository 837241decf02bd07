"""Decode the segments of a plain file on all threads, and check in order that they are what one thread would decode."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from tfrecord_io.background import Task
from tfrecord_io.engine.contract import FeatureName
from tfrecord_io.format.kinds import RecordType
from tfrecord_io.options import MIB
from tfrecord_io.read.chunks.chunk import DecodedChunk, DecodeSettings
from tfrecord_io.read.chunks.embedded_schemas import EmbeddedSchemaCheck
from tfrecord_io.read.chunks.row_budget import may_have_lists
from tfrecord_io.read.chunks.segment_decoder import DecodedSegment, SegmentDecoder
from tfrecord_io.read.chunks.workers import Workers
from tfrecord_io.storage.read.source import OpenPlainFile

_LEAST_SEGMENTS, _MOST_SEGMENTS = 8, 16  # of a file whose segments are within the following limits
_LEAST_BYTES, _LARGE_BYTES, _MOST_BYTES = 2 * MIB, 8 * MIB, 64 * MIB
_TINY_BYTES = MIB // 4  # a file with fewer is not worth a task
_LEAST_RECORDS = 4  # of a segment
_BYTES_PER_COLUMN = 24 << 10  # of a segment: making a column takes as long as decoding several KiB
_PART_BYTES = MIB  # of a segment whose rows become a part of a batch
_PART_BYTES_OF_LISTS = MIB // 4  # if it may have lists of integers, which take up to eight times as much when decoded
_FILTERED_PARTS = 4  # times as large, as a filter takes about as long for many records as for few
MOST_PARTS = 8  # that are decoded, or wait for their turn
_RECORDS_PER_PART = 4  # at least
_MOST_COPIED = 0.5  # of the bytes of a record: appending them to a batch takes as long as decoding them


def segment_bounds(begin: int, end: int, record_bytes: int, columns: int) -> list[int]:
    """The bounds of the segments of [begin, end), for any number of threads.

    Small ones keep all threads busy to the end; each costs time for a chunk, for its columns, and for the search of its
    first record.
    """
    size = end - begin
    wanted = max(min(size / _LEAST_SEGMENTS, _LARGE_BYTES), size / _MOST_SEGMENTS)
    wanted = max(wanted, _LEAST_BYTES, _LEAST_RECORDS * record_bytes, _BYTES_PER_COLUMN * columns)
    count = max(round(size / wanted), -(-size // _MOST_BYTES))
    count += count > 1 and count % 2  # the last one of a few would keep one thread busy, and the other ones waiting
    return [begin + size * number // count for number in range(count + 1)]


@dataclass
class Position:
    """The next record of a read: the path and number of its file, its number in the file, and its offset."""

    path: str
    number: int
    record: int
    offset: int


@dataclass
class KnownRecords:
    """What the records that were decoded so far tell about those to come.

    Attributes
    ----------
    names : dict of FeatureName
        The names outside the plan that they had, as keys.
    sequence : bool
        Whether one was a SequenceExample.
    """

    names: dict[FeatureName, None] = field(default_factory=dict)
    sequence: bool = False

    def add(self, chunk: DecodedChunk | DecodedSegment) -> None:
        self.names.update(dict.fromkeys(chunk.new_names))
        self.sequence |= chunk.sequence

    def applied_to(self, settings: DecodeSettings) -> DecodeSettings:
        """The settings for the next records."""
        if self.sequence and settings.plan.record_type is RecordType.DETECT:
            return settings.with_plan(record_type=RecordType.SEQUENCE_EXAMPLE)
        return settings

    def allow(self, segment: DecodedSegment) -> bool:
        """Whether no name of the segment would be a fault after these records."""
        plan = segment.settings.plan
        new = [name for name in segment.new_names if name not in self.names]
        if new and len(plan.columns) + len(self.names) + len(new) > plan.max_features:
            return False
        names = self.names.keys() | segment.new_names
        return plan.names_in_both or not any((name, not steps) in names for name, steps in new)


class SegmentReader:
    """Reads the records of one file from a position on.

    It ends at the end of the file, or before a segment in which a fault, an embedded schema or a limit may end the
    read; the caller reads on at `position`, in order, for the exact error.

    Parameters
    ----------
    file : OpenPlainFile
    settings : DecodeSettings
    check : EmbeddedSchemaCheck
    known : KnownRecords
    workers : Workers
    position : Position
        Advanced behind each chunk.
    max_bytes : int
        Payload bytes of a chunk.
    in_parts : bool
        Small segments, whose rows are appended to batches: see `segments`.
    """

    def __init__(
        self,
        file: OpenPlainFile,
        settings: DecodeSettings,
        check: EmbeddedSchemaCheck,
        known: KnownRecords,
        workers: Workers,
        position: Position,
        max_bytes: int,
        *,
        in_parts: bool = False,
    ) -> None:
        self.position = position
        self._in_parts = in_parts
        self._settings, self._check, self._known, self._workers = settings, check, known, workers
        self._size = file.size
        filters = settings.prefilter is not None
        self._part_factor = _FILTERED_PARTS if filters else 1
        self._decoder = SegmentDecoder(file, max_bytes, keeps_rows=in_parts, filters=filters)
        self._limited: tuple[DecodeSettings, DecodeSettings] | None = None
        self._bounds = self._split()
        self._pending: deque[Task[DecodedSegment]] = deque()  # of the segments before `_submitted`
        self._submitted = len(self._bounds) - 1 if self._size - position.offset < _TINY_BYTES else 0

    def _split(self) -> list[int]:
        begin = self.position.offset
        if self._in_parts and self._size - begin < _TINY_BYTES:
            return [begin]
        if self._size - begin <= _LEAST_BYTES:
            return [begin, self._size]
        first = self._decoder.measure(self._known.applied_to(self._settings), begin)
        if not self._in_parts:
            return segment_bounds(begin, self._size, first.record_bytes, first.columns)
        part = _PART_BYTES_OF_LISTS if may_have_lists(self._settings.plan) else _PART_BYTES
        part *= self._part_factor
        is_large = first.record_bytes * _RECORDS_PER_PART > part
        if is_large or first.copied_bytes > _MOST_COPIED * first.record_bytes:
            return [begin]
        return [*range(begin, self._size, part), self._size]

    @property
    def is_at_end(self) -> bool:
        """Whether the position is the end of the file."""
        return self.position.offset >= self._size

    @property
    def has_segments(self) -> bool:
        """Whether there are any: records that are too large, and little data, are no parts of batches."""
        return len(self._bounds) > 1

    @property
    def is_submitted(self) -> bool:
        """Whether no segment is left for `decode_ahead`."""
        return self._submitted >= len(self._bounds) - 1

    def decode_ahead(self) -> None:
        """Let the workers decode further segments, if they have room."""
        while self._workers.have_room and not self.is_submitted:
            settings = self._settings_ahead()
            begin, end = self._bounds[self._submitted : self._submitted + 2]
            most = _PART_BYTES * self._part_factor if self._in_parts else None
            decode, is_boundary = self._decoder.decode, self._submitted == 0
            task = partial(decode, settings, begin, end, is_boundary=is_boundary, most_record_bytes=most)
            self._pending.append(self._workers.submit(task))
            self._submitted += 1

    def _settings_ahead(self) -> DecodeSettings:
        """The settings for segments ahead; one that needs more memory is decoded again when its turn comes, alone."""
        settings = self._known.applied_to(self._settings)
        if self._limited is None or self._limited[0] is not settings:
            limit, limited = settings.plan.max_expansion, settings
            if limit is not None:
                limited = settings.with_plan(max_expansion=limit // self._workers.most_tasks)
            self._limited = settings, limited
        return self._limited[1]

    def chunks(self) -> Iterator[DecodedChunk]:
        """Decode the file."""
        for segment in self.segments():
            yield self._accept(segment)

    def segments(self) -> Iterator[DecodedSegment]:
        """Decode the file: the segments as they are in it, each of which the caller advances the position behind."""
        for end in self._bounds[1:]:
            self.decode_ahead()
            ahead = self._workers.take(self._pending.popleft()) if self._pending else None
            self.decode_ahead()
            while self.position.offset < end:
                settings = self._known.applied_to(self._settings)
                if ahead is None or not self._is_exact(ahead, settings):
                    ahead = self._decoder.decode(settings, self.position.offset, end, is_boundary=True)
                if not (ahead.is_sound and self._known.allow(ahead) and self._schemas_agree(ahead)):
                    return
                segment, ahead = ahead, None
                self._known.add(segment)
                yield segment

    def use_again(self, segment: DecodedSegment) -> None:
        """Use the memory of a segment again, whose rows were appended."""
        self._decoder.use_again(segment, 2 * _PART_BYTES * self._part_factor)

    def close(self) -> None:
        """Give up what is decoded in advance."""
        self._decoder.stop()
        while self._pending:
            self._workers.drop(self._pending.popleft())

    def _is_exact(self, segment: DecodedSegment, settings: DecodeSettings) -> bool:
        """Whether a segment that was decoded in advance is what would be decoded now."""
        same_type = segment.settings.plan.record_type is settings.plan.record_type
        return same_type and segment.begin == self.position.offset and not segment.is_full

    def _schemas_agree(self, segment: DecodedSegment) -> bool:
        """Check the embedded schemas; whether the plan covers them all."""
        return all(
            self._check.check(self.position.path, self.position.record + row, offset, content) is None
            for row, offset, content in segment.embedded
        )

    def _accept(self, segment: DecodedSegment) -> DecodedChunk:
        """Make a chunk of a segment, and advance behind it."""
        position = self.position
        chunk = DecodedChunk(
            position.path,
            position.number,
            position.record,
            segment.rows,
            segment.columns,
            segment.kept,
            ends_batch=True,
            full=segment.is_full,
            payload_bytes=segment.payload_bytes,
            counts=segment.counts,
            sequence=segment.sequence,
            new_names=segment.new_names,
        )
        position.offset, position.record = segment.end, position.record + segment.rows
        return chunk
