"""Decode a plain file in segments, on all threads, to what one thread would decode.

A `FileDecoder` splits a file into segments, by `segment_bounds`, and yields their rows in order. Its base class
`tfrecord_io.read.chunks.segments.Segments` lets the threads work ahead; each decodes one segment as a `DecodedPart`.

Tests: tests/read/chunks/test_parallel_file_decoder.py and tests/read/chunks/test_segments_walk.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from tfrecord_io.base import LIMITS, MIB, WorkerPool, cpu_count
from tfrecord_io.bytes import Decoder, Engine, FeatureColumns, Kind, RecordType
from tfrecord_io.read.chunks.chunk import DecodedChunk, DecodeSettings, KnownRecords, is_little
from tfrecord_io.read.chunks.embedded_schemas import EmbeddedSchemaCheck
from tfrecord_io.read.chunks.segments import FileWindows, Part, Segment, Segments
from tfrecord_io.store import BlockReader, OpenPlainFile

# A file has at least, and at most, so many segments in all, or for each core if that is more; their size, which has the
# limits that follow, counts more than their number.
_LEAST_SEGMENTS, _LEAST_OF_CORE = 8, 2
_MOST_SEGMENTS, _MOST_OF_CORE = 16, 4
_LARGE_BYTES = 8 * MIB  # a segment of more does not help to keep all threads busy
_MOST_BYTES = 64 * MIB  # of a segment
_FILTERED_TIMES = 2  # as large are segments with a filter, which takes as long for few records as for many
MOST_PARTS = 8  # that are decoded, or wait for their turn
_LONG_VALUE = 64  # bytes of a value from which on copying it takes as long as decoding it
_LONG_KINDS = (Kind.BYTES, Kind.FLOAT, Kind.INT64)


def segment_bounds(
    begin: int, end: int, record_bytes: int, columns: int, cores: int, *, filters: bool = False
) -> list[int]:
    """The bounds of the segments of [begin, end), for any number of threads on a machine of so many cores.

    Small ones keep all threads busy to the end; each costs time for a chunk, for its columns, and for the search of its
    first record; twice as much time if the reader `filters`.
    """
    size, times = end - begin, _FILTERED_TIMES if filters else 1
    fewest = max(_LEAST_SEGMENTS // times, _LEAST_OF_CORE * cores)
    most = max(_MOST_SEGMENTS // times, _MOST_OF_CORE * cores)
    busy = max(min(size / fewest, _LARGE_BYTES), size / most)  # bytes of a segment that keep all threads busy
    cheap = max(LIMITS.window_bytes, LIMITS.segment_records * record_bytes, LIMITS.segment_column_bytes * columns)
    count = max(round(size / max(busy, cheap)), -(-size // _MOST_BYTES))
    count += count > 1 and count % 2  # of an odd few, the last segment would keep a single thread busy
    return [begin + size * number // count for number in range(count + 1)]


class SegmentRows(Enum):
    """What becomes of the rows of segments: see the table of `FileDecoder`."""

    CHUNKS = auto()
    JOINED = auto()
    PARTS = auto()


@dataclass
class Position:
    """The next record of a read: the path and number of its file, its number in the file, and its offset."""

    path: str
    number: int
    record: int
    offset: int


class SegmentDecoders:
    """The decoders of segments, empty ones of which are used again; any thread takes them."""

    def __init__(self, max_bytes: int, *, keep_rows: bool) -> None:
        self.max_bytes = max_bytes  # of payloads of a segment
        self.keep_rows = keep_rows  # the rows are appended to batches from the decoders
        self._empty: deque[tuple[DecodeSettings, Decoder]] = deque()  # with memory to use again

    def take(self, settings: DecodeSettings, names: Sequence[FeatureColumns.Name]) -> Decoder:
        """A decoder for a segment; a new one knows the names, which records before the segment had."""
        while self._empty:
            try:
                decoder_settings, decoder = self._empty.pop()
            except IndexError:  # another thread took the last one
                break
            if decoder_settings is settings:
                return decoder
        decoder = settings.decoder(keep_lengths=self.keep_rows)
        if names:
            decoder.know(names)
        return decoder

    def put_back(self, settings: DecodeSettings, decoder: Decoder) -> None:
        """Use the memory of a decoder again."""
        decoder.clear()
        self._empty.append((settings, decoder))


class DecodedPart(Part):
    """The rows of a segment, and what is checked of them when their turn comes.

    A thread calls `begin`, `take` and `finish`, see `Part`; the user of the rows calls `use_again` or `release`.
    """

    decoder: Decoder  # from `begin` on; none once it was given back or released

    def __init__(
        self,
        path: str,
        number: int,
        settings: DecodeSettings,
        decoders: SegmentDecoders,
        names: Sequence[FeatureColumns.Name],
    ) -> None:
        self.settings, self._names = settings, names
        # Without columns if the rows are held by the `decoder`, to be appended to a batch.
        self.chunk = DecodedChunk(path, number, first_record=0, rows=0, columns={}, ends_batch=True)
        self.embedded: list[tuple[int, int, bytes]] = []  # of schemas: record in the segment, its offset, the content
        self.is_sound = True  # whether no fault follows the rows
        self._decoders = decoders

    def begin(self, size: int) -> None:
        self.decoder = self._decoders.take(self.settings, self._names)
        self.decoder.expect(min(size, self._decoders.max_bytes))

    def take(self, data: BlockReader.Buffer, offset: int, final: bool) -> int:
        decoder, at = self.decoder, 0
        # A turn for the records up to each embedded schema; the last one ends with the data, at a fault, or where more
        # rows have no room.
        while True:
            progress = decoder.feed(data, at, max_bytes=self._decoders.max_bytes, final=final)
            at += progress.consumed
            self.embedded += [(decoder.rows, offset + at, content) for content in progress.embedded]
            if not progress.embedded:
                break
            decoder.accept_embedded()
        self.chunk.full = progress.full
        self.is_sound = progress.fault is None and decoder.rows > 0
        return at

    def take_file(self, file: Engine.FileView, begin: int, end: int) -> int:
        return self.decoder.feed_file(file, begin, end, max_bytes=self._decoders.max_bytes)

    def finish(self) -> None:
        decoder, chunk = self.decoder, self.chunk
        chunk.rows, chunk.payload_bytes = decoder.rows, decoder.value_bytes
        chunk.counts, chunk.sequence, chunk.new_names = decoder.counts, decoder.sequence, decoder.new_names
        if self._decoders.keep_rows:
            decoder.complete()
        else:
            chunk.kept = decoder.kept
            chunk.columns = decoder.take_columns()
            self.use_again()

    def use_again(self) -> None:
        """Let a later segment use the decoder, unless its records differ from its plan."""
        decoder, plan = self.decoder, self.settings.plan
        self.release()
        if not decoder.new_names and decoder.sequence == (plan.record_type is RecordType.SEQUENCE_EXAMPLE):
            self._decoders.put_back(self.settings, decoder)

    def release(self) -> None:
        """Free the memory of the decoder, if nothing else holds it."""
        del self.decoder


class FileDecoder(Segments[DecodedPart]):
    """Decodes the records of one plain file from a position on.

    It ends at the end of the file, or before a segment in which a fault, an embedded schema or a limit may end the
    read; the caller, who advances `position` after each segment, reads on there, in order, for the exact error. A
    segment has at most `max_bytes` of payloads. What becomes of its rows decides how the file is split:

    ====== ============================== =========================== =============================================
    rows   each segment becomes           segments are                the caller reads all of the file in order
    ====== ============================== =========================== =============================================
    CHUNKS a chunk, a batch of its own    those of `segment_bounds`   never
    JOINED a chunk; the columns of all    those of `segment_bounds`   if its records are mostly long values
           are copied to one array each
    PARTS  rows of its decoder, which are of about a window           if it is little, or its records are mostly
           appended to batches                                        long values, or too large for a window
    ====== ============================== =========================== =============================================

    A file of no more than a window is one segment. Long values are copied in the time that decoding them takes, so that
    one thread is as fast. The file of which the caller reads all has no segments: see `has_segments`.
    """

    def __init__(
        self,
        file: OpenPlainFile,
        settings: DecodeSettings,
        check: EmbeddedSchemaCheck,
        known: KnownRecords,
        pool: WorkerPool,
        position: Position,
        max_bytes: int,
        *,
        rows: SegmentRows = SegmentRows.CHUNKS,
    ) -> None:
        self.position, self.rows = position, rows
        are_parts = rows is SegmentRows.PARTS
        self._decoders = SegmentDecoders(max_bytes, keep_rows=are_parts)
        self._settings, self._check, self._known, self._pool = settings, check, known, pool
        filters = settings.prefilter is not None
        self._part_bytes = LIMITS.window_bytes * (_FILTERED_TIMES if filters else 1)
        windows = FileWindows(file, large=filters)
        self._settings_ahead: tuple[DecodeSettings, DecodeSettings] | None = None  # the last ones, and those ahead
        bounds = self._split(windows)
        self.has_segments = len(bounds) > 1
        super().__init__(
            windows,
            None if is_little(file.size - position.offset) else pool,
            bounds,
            max_record_bytes=settings.plan.max_record_bytes,
            most_record_bytes=self._part_bytes if are_parts else None,
        )

    def _split(self, windows: FileWindows) -> list[int]:
        """The bounds of the segments; the beginning alone if there are none."""
        begin, size, are_parts = self.position.offset, windows.size, self.rows is SegmentRows.PARTS
        if are_parts and is_little(size - begin):
            return [begin]
        if size - begin <= LIMITS.window_bytes:
            return [begin, size]
        record_bytes, columns, copied_bytes = _measure(windows, self._known.applied_to(self._settings), begin)
        if self.rows is not SegmentRows.CHUNKS and copied_bytes > LIMITS.copied_share * record_bytes:
            return [begin]
        if not are_parts:
            return segment_bounds(
                begin, size, record_bytes=record_bytes, columns=columns, cores=cpu_count(), filters=windows.is_large
            )
        if record_bytes * LIMITS.segment_records > self._part_bytes:
            return [begin]
        return [*range(begin, size, self._part_bytes), size]

    @property
    def is_at_end(self) -> bool:
        """True if the position is the end of the file."""
        return self.position.offset >= self._windows.size

    def segments(self) -> Iterator[Segment[DecodedPart]]:
        """Decode the file: the segments as they are in it."""
        for segment, _ in self:
            part, (path, first) = segment.part, (self.position.path, self.position.record)
            chunk = part.chunk
            chunk.first_record = first
            if not (segment.is_sound and self._known.allow(chunk, part.settings.plan)):
                return
            if any(self._check.check(path, first + row, at, content) is not None for row, at, content in part.embedded):
                return  # the plan does not cover the schema
            self._known.add(chunk)
            yield segment

    def use_again(self, part: DecodedPart) -> None:
        """Use the memory of a part again, whose rows were appended, unless that is much."""
        if part.chunk.payload_bytes <= 2 * self._part_bytes:
            part.use_again()
        else:
            part.release()

    def make_part(self, ahead: bool) -> DecodedPart:
        """The part of a segment, by the settings after the records so far."""
        settings = self._known.applied_to(self._settings)
        if ahead:
            settings = self._share_memory(settings)
        names = () if self.rows is SegmentRows.PARTS else tuple(self._known.names)
        path, number = self.position.path, self.position.number
        return DecodedPart(path, number, settings=settings, decoders=self._decoders, names=names)

    def _share_memory(self, settings: DecodeSettings) -> DecodeSettings:
        """The settings of parts ahead, which share the memory that the plan allows.

        A part that needs more is decoded again when its turn comes, alone. Equal calls return the same object, by whose
        identity `SegmentDecoders` finds a decoder to use again.
        """
        limit = settings.plan.max_expansion
        if limit is None:
            return settings
        if self._settings_ahead is None or self._settings_ahead[0] is not settings:
            plan = settings.plan._replace(max_expansion=limit // self._pool.most_ahead)
            self._settings_ahead = settings, settings._replace(plan=plan)
        return self._settings_ahead[1]

    def is_exact(self, part: DecodedPart) -> bool:
        """See `Segments`."""
        record_type = self._known.applied_to(self._settings).plan.record_type
        return part.settings.plan.record_type is record_type and not part.chunk.full


def _measure(windows: FileWindows, settings: DecodeSettings, begin: int) -> tuple[int, int, int]:
    """Decode the record at `begin`; returns its bytes, the columns, and the bytes of long values; 0 if unknown.

    To copy long values takes as long as to decode them.
    """
    decoder = settings._replace(prefilter=None).decoder()
    with windows.buffer() as buffer:
        try:
            data, _ = windows.window(buffer, begin, windows.size, settings.plan.max_record_bytes)
        except OSError:
            return 0, 0, 0
        progress = decoder.feed(data, max_records=1, final=False)
        if progress.embedded:
            decoder.accept_embedded()
            progress = decoder.feed(data, max_records=1, final=False)
    columns = len(settings.plan.columns) + len(decoder.new_names)
    copied = 0
    if progress.consumed >= _LONG_VALUE * columns:
        columns_of_record = [column.steps or column for column in decoder.take_columns().values()]
        copied = sum(c.values.nbytes for c in columns_of_record if c.kind in _LONG_KINDS and c.values is not None)
    return progress.consumed, columns, copied
