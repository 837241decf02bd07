"""Decode the segments of a file on all threads, and check in order that they are what one thread would decode."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from tfrecord_io.background import Task
from tfrecord_io.engine.contract import Array, FeatureName
from tfrecord_io.format.kinds import RecordType
from tfrecord_io.options import MIB
from tfrecord_io.read.chunks.chunk import DecodedChunk, DecodeSettings
from tfrecord_io.read.chunks.embedded_schemas import EmbeddedSchemaCheck
from tfrecord_io.read.chunks.row_budget import may_have_lists
from tfrecord_io.read.chunks.segment_bounds import (
    SegmentBounds,
    is_one_segment,
    most_part_bytes,
    part_step,
    plain_bounds,
    stream_bounds,
)
from tfrecord_io.read.chunks.segment_decoder import DecodedSegment, Measured, SegmentDecoder
from tfrecord_io.read.chunks.workers import Workers
from tfrecord_io.storage.read.held_stream import HeldStream
from tfrecord_io.storage.read.open_plain_file import OpenPlainFile

_TINY_BYTES = MIB // 4  # a file with fewer is not worth a task
_MOST_AHEAD = 64 * MIB  # of a stream that are held
_MOST_RECORD_BYTES = 32 * MIB  # of a stream, decoded in advance; larger ones only in order, as each takes memory
MOST_PARTS = 8  # that are decoded, or wait for their turn


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
    file : OpenPlainFile or HeldStream
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
        file: OpenPlainFile | HeldStream,
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
        self.is_stream = isinstance(file, HeldStream)
        self._in_parts = in_parts
        self._settings, self._check, self._known, self._workers = settings, check, known, workers
        self._file = file
        self._filters = settings.prefilter is not None
        self._decoder = SegmentDecoder(file, max_bytes, keeps_rows=in_parts, filters=self._filters)
        self._limited: tuple[DecodeSettings, DecodeSettings] | None = None
        self._most_record_bytes = _MOST_RECORD_BYTES if self.is_stream and not in_parts else None
        self._pending: deque[Task[DecodedSegment]] = deque()  # of the segments before `_submitted`
        self._submitted = 0
        self._bounds = self._split()

    def _split(self) -> SegmentBounds:
        begin, file = self.position.offset, self._file
        try:
            near_end = file.clip(begin + _TINY_BYTES)
        except OSError:
            return SegmentBounds([begin])
        if near_end < begin + _TINY_BYTES:
            self._submitted = 1
            return SegmentBounds([begin] if self._in_parts else [begin, near_end])
        if isinstance(file, OpenPlainFile) and is_one_segment(file.size - begin):
            return SegmentBounds([begin, file.size])
        first = self._decoder.measure(self._known.applied_to(self._settings), begin)
        bounds = self._bounds_of(file, begin, first)
        if isinstance(file, HeldStream) and bounds.step:
            file.block_bytes = bounds.step
        return bounds

    def _bounds_of(self, file: OpenPlainFile | HeldStream, begin: int, first: Measured) -> SegmentBounds:
        """The bounds by what the first record shows."""
        if self._in_parts:
            has_lists = may_have_lists(self._settings.plan)
            return SegmentBounds([begin], part_step(first, may_have_lists=has_lists, filters=self._filters))
        if isinstance(file, OpenPlainFile):
            return SegmentBounds(plain_bounds(begin, file.size, first.record_bytes, first.columns))
        return SegmentBounds([begin]) if first.record_bytes > _MOST_RECORD_BYTES else stream_bounds(begin, first)

    @property
    def is_at_end(self) -> bool:
        """Whether the position is the end of the file."""
        return self._file.ends_by(self.position.offset)

    @property
    def has_segments(self) -> bool:
        """Whether there are any: records that are too large, and little data, are no parts of batches."""
        return self._bounds.has(0)

    @property
    def is_submitted(self) -> bool:
        """Whether no segment is left for `decode_ahead`."""
        return not self._bounds.has(self._submitted) or self._file.ends_by(self._bounds[self._submitted])

    @property
    def _may_hold_more(self) -> bool:
        """Whether the next segment may be decoded in advance: bytes of streams are held until their turn comes."""
        distance = self._bounds[self._submitted] - self.position.offset
        return not (self.is_stream and self._pending and distance >= _MOST_AHEAD)

    def decode_ahead(self) -> None:
        """Let the workers decode further segments, if they have room."""
        while self._workers.have_room and not self.is_submitted and self._may_hold_more:
            settings = self._settings_ahead()
            begin, end = self._bounds[self._submitted], self._bounds[self._submitted + 1]
            most = most_part_bytes(filters=self._filters) if self._in_parts else self._most_record_bytes
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
        for number in count():
            if not self._bounds.has(number) or self.is_at_end:
                return
            self._file.release(self._bounds[number])
            self.decode_ahead()
            ahead = self._workers.take(self._pending.popleft()) if self._pending else None
            self.decode_ahead()
            try:
                end = self._file.clip(self._bounds[number + 1])
            except OSError:
                return
            while self.position.offset < end:
                settings = self._known.applied_to(self._settings)
                if ahead is None or not self._is_exact(ahead, settings):
                    ahead = self._decode(settings, end)
                if not (ahead.is_sound and self._known.allow(ahead) and self._schemas_agree(ahead)):
                    return
                segment, ahead = ahead, None
                self._known.add(segment)
                yield segment

    def _decode(self, settings: DecodeSettings, end: int) -> DecodedSegment:
        """Decode the records from the position on that begin before `end`, as those in advance, or a large one."""
        decode, begin, most = self._decoder.decode, self.position.offset, self._most_record_bytes
        segment = decode(settings, begin, end, is_boundary=True, most_record_bytes=most)
        if segment.begin is None and most is not None:
            segment = decode(settings, begin, end, is_boundary=True)
        return segment

    def use_again(self, segment: DecodedSegment) -> None:
        """Use the memory of a segment again, whose rows were appended."""
        self._decoder.use_again(segment, 2 * most_part_bytes(filters=self._filters))

    def lengths(self, segment: DecodedSegment) -> Array:
        """The payload bytes of the records of a segment that the position is not behind."""
        bound = self._bounds.after(self.position.offset)
        return self._decoder.lengths(segment, self.position.offset, bound)

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
