"""Decode a segment of a plain file: the records that begin in a range of bytes, read at any offset."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tfrecord_io.engine.contract import Array, ColumnBuffers, Decoder, FeatureName, RecordCounts
from tfrecord_io.engine.decoded_columns import by_feature
from tfrecord_io.format.kinds import Kind, RecordType
from tfrecord_io.read.chunks.chunk import DecodeSettings, kept_rows
from tfrecord_io.read.chunks.file_windows import FileWindows
from tfrecord_io.storage.read.block_reader import Bytes
from tfrecord_io.storage.read.source import OpenPlainFile

_LONG_VALUE = 128  # bytes


@dataclass(slots=True)
class DecodedSegment:
    """The records that begin in a segment, or those before the first that is faulty or that there is no room for.

    Attributes
    ----------
    begin : int or None
        Offset of the first record; None if none begins in the segment.
    end : int
        Offset of the first record that was not decoded.
    is_sound : bool
        Whether `end` is the end of the segment, or of the room in a chunk; else there is a fault, or reading failed.
    is_full : bool
        The rows take as much memory as `max_expansion` allows.
    kept : array of int64 or None
        See `DecodedChunk.kept`.
    decoder : Decoder or None
        Holds the rows, in place of `columns`, if they are to be appended to a batch.
    embedded : list of (int, int, bytes)
        The embedded schemas: number of the record in the segment, its offset, and the content.
    """

    begin: int | None
    end: int
    settings: DecodeSettings
    is_sound: bool = True
    is_full: bool = False
    rows: int = 0
    payload_bytes: int = 0
    columns: Mapping[str, ColumnBuffers] = field(default_factory=dict)
    kept: Array | None = None
    decoder: Decoder | None = None
    counts: RecordCounts = field(default_factory=RecordCounts)
    sequence: bool = False
    new_names: Sequence[FeatureName] = ()
    embedded: list[tuple[int, int, bytes]] = field(default_factory=list)


class Measured(NamedTuple):
    """What one record shows; 0 if unknown.

    Attributes
    ----------
    record_bytes : int
    columns : int
        Those of the plan and the record.
    copied_bytes : int
        Of long values that are the same in the record and in a column.
    """

    record_bytes: int
    columns: int
    copied_bytes: int


class SegmentDecoder:
    """Decodes segments of one file. What it returns for a segment depends on nothing else; any number of threads.

    Parameters
    ----------
    file : OpenPlainFile
    max_bytes : int
        Of the payloads of a segment.
    keeps_rows : bool
        Segments have their rows in a decoder.
    filters : bool
        The settings have a prefilter, which takes about as long for many records as for few.
    """

    def __init__(self, file: OpenPlainFile, max_bytes: int, *, keeps_rows: bool = False, filters: bool = False) -> None:
        self._windows = FileWindows(file, large=filters)
        self._max_bytes = max_bytes
        self._keeps_rows = keeps_rows
        self._decoders: deque[tuple[DecodeSettings, Decoder]] = deque()  # empty, with memory to use again

    def stop(self) -> None:
        """Make every `decode` return soon."""
        self._windows.stop()

    def measure(self, settings: DecodeSettings, begin: int) -> Measured:
        """Decode the record at `begin` to tell how the file is best split."""
        decoder, windows = replace(settings, prefilter=None).decoder(), self._windows
        with windows.buffer() as buffer:
            try:
                data, _ = windows.window(buffer, begin, windows.size, settings.plan.max_record_bytes)
            except OSError:
                return Measured(0, 0, 0)
            progress = decoder.feed(data, max_records=1, final=False)
        columns = len(settings.plan.columns) + len(decoder.new_names)
        copied = 0
        if progress.consumed >= _LONG_VALUE * columns:
            taken = [column.steps or column for column in decoder.take()]
            copied = sum(c.values.nbytes for c in taken if c.kind in (Kind.BYTES, Kind.FLOAT) and c.values is not None)
        return Measured(progress.consumed, columns, copied)

    def decode(
        self, settings: DecodeSettings, begin: int, end: int, *, is_boundary: bool, most_record_bytes: int | None = None
    ) -> DecodedSegment:
        """Decode the records that begin in [begin, end), as far as none has more than `most_record_bytes`.

        A record begins at `begin` if that `is_boundary`; else the segment begins with the first header in it, which may
        be one inside the payload of a record.
        """
        windows, most = self._windows, settings.plan.max_record_bytes
        with windows.buffer() as buffer:
            try:
                first = begin if is_boundary else windows.find_header(buffer, begin, end, most)
                if first is None:
                    return DecodedSegment(None, end, settings)
                return self._decode(settings, buffer, first, end, most_record_bytes)
            except OSError:
                return DecodedSegment(begin, begin, settings, is_sound=False)

    def _decode(
        self, settings: DecodeSettings, buffer: Bytes, begin: int, end: int, most_record_bytes: int | None
    ) -> DecodedSegment:
        segment = DecodedSegment(begin, begin, settings, is_sound=False)
        decoder = self._take_decoder(settings)
        decoder.expect(min(end - begin, self._max_bytes))
        most = settings.plan.max_record_bytes
        while segment.end < end and not self._windows.stopped:
            data, final = self._windows.window(buffer, segment.end, end, most, most_record_bytes)
            if not len(data):  # the next record is too large
                segment.begin, segment.is_sound = begin if decoder.rows else None, decoder.rows > 0
                break
            if not self._feed(decoder, segment, data, final):
                break
        segment.is_sound |= segment.end >= end
        segment.rows, segment.payload_bytes = decoder.rows, decoder.value_bytes
        segment.counts, segment.sequence, segment.new_names = decoder.counts, decoder.sequence, decoder.new_names
        if segment.is_sound and self._keeps_rows:
            decoder.complete()
            segment.decoder = decoder
        elif segment.is_sound:
            segment.kept = kept_rows(decoder)
            segment.columns = by_feature(decoder.take())
        return segment

    def use_again(self, segment: DecodedSegment, most_bytes: int) -> None:
        """Use the memory of a segment's rows again, unless it has more than `most_bytes` of payloads."""
        decoder, segment.decoder = segment.decoder, None
        is_sequence = segment.settings.plan.record_type is RecordType.SEQUENCE_EXAMPLE
        if (
            decoder is None
            or decoder.new_names
            or decoder.sequence != is_sequence
            or segment.payload_bytes > most_bytes
        ):
            return
        decoder.clear()
        self._decoders.append((segment.settings, decoder))

    def _feed(self, decoder: Decoder, segment: DecodedSegment, data: Bytes, final: bool) -> bool:
        """Decode the records of a window; whether more may follow."""
        begin, at = segment.end, 0
        while True:
            progress = decoder.feed(data, at, max_bytes=self._max_bytes, final=final)
            at += progress.consumed
            segment.end = begin + at
            segment.embedded += [(decoder.rows, segment.end, content) for content in progress.embedded]
            if not progress.embedded:
                break
            decoder.accept_embedded()
        segment.is_full = progress.full
        no_room = progress.full or (not at and decoder.rows > 0 and progress.fault is None)
        segment.is_sound = no_room
        return at > 0 and progress.fault is None and not no_room

    def _take_decoder(self, settings: DecodeSettings) -> Decoder:
        while self._decoders:
            try:
                known, decoder = self._decoders.pop()
            except IndexError:
                break
            if known is settings:
                return decoder
        return settings.decoder(keep_lengths=self._keeps_rows)
