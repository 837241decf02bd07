"""Decode a segment of a plain file: the records that begin in a range of bytes, read at any offset."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tfrecord_io.engine.contract import ColumnBuffers, Decoder, FeatureName, RecordCounts
from tfrecord_io.engine.decoded_columns import by_feature
from tfrecord_io.engine.select import get_engine
from tfrecord_io.format.framing import FRAME_BYTES, HEADER_BYTES, frame_size
from tfrecord_io.options import MIB
from tfrecord_io.read.chunks.chunk import DecodeSettings
from tfrecord_io.storage.read.block_reader import SPARE, Bytes
from tfrecord_io.storage.read.open_plain_file import OpenPlainFile

_BLOCK_BYTES = 2 * MIB  # stays in the processor's cache; smaller ones would make threads wait for the GIL more often
_SEARCH_BYTES = 64 << 10  # searched for a header at a time


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
    counts: RecordCounts = field(default_factory=RecordCounts)
    sequence: bool = False
    new_names: Sequence[FeatureName] = ()
    embedded: list[tuple[int, int, bytes]] = field(default_factory=list)


class SegmentDecoder:
    """Decodes segments of one file. What it returns for a segment depends on nothing else; any number of threads.

    Parameters
    ----------
    file : OpenPlainFile
    max_bytes : int
        Of the payloads of a segment.
    """

    def __init__(self, file: OpenPlainFile, max_bytes: int) -> None:
        self._file = file
        self._max_bytes = max_bytes
        self._buffers: deque[Bytes] = deque()
        self._stop = threading.Event()

    def stop(self) -> None:
        """Make every `decode` return soon."""
        self._stop.set()

    def measure(self, settings: DecodeSettings, begin: int) -> tuple[int, int]:
        """The bytes of the record at `begin`, and the number of columns that it and the plan have; 0 if unknown."""
        decoder = settings.decoder()
        buffer = self._take_buffer()
        try:
            data, _ = self._window(buffer, begin, self._file.size, settings.plan.max_record_bytes)
        except OSError:
            return 0, 0
        progress = decoder.feed(data, max_records=1, final=False)
        self._buffers.append(buffer)
        return progress.consumed, len(settings.plan.columns) + len(decoder.new_names)

    def decode(self, settings: DecodeSettings, begin: int, end: int, *, is_boundary: bool) -> DecodedSegment:
        """Decode the records that begin in [begin, end).

        A record begins at `begin` if that `is_boundary`; else the segment begins with the first header in it, which may
        be one inside the payload of a record.
        """
        buffer = self._take_buffer()
        try:
            first = begin if is_boundary else self._find_header(buffer, begin, end, settings.plan.max_record_bytes)
            if first is None:
                return DecodedSegment(None, end, settings)
            return self._decode(settings, buffer, first, end)
        except OSError:
            return DecodedSegment(begin, begin, settings, is_sound=False)
        finally:
            self._buffers.append(buffer)

    def _decode(self, settings: DecodeSettings, buffer: Bytes, begin: int, end: int) -> DecodedSegment:
        segment = DecodedSegment(begin, begin, settings, is_sound=False)
        decoder = settings.decoder()
        decoder.expect(min(end - begin, self._max_bytes))
        while segment.end < end and not self._stop.is_set():
            data, final = self._window(buffer, segment.end, end, settings.plan.max_record_bytes)
            if not self._feed(decoder, segment, data, final):
                break
        segment.is_sound |= segment.end >= end
        segment.rows, segment.payload_bytes = decoder.rows, decoder.value_bytes
        segment.counts, segment.sequence, segment.new_names = decoder.counts, decoder.sequence, decoder.new_names
        if segment.is_sound:
            segment.columns = by_feature(decoder.take())
        return segment

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

    def _window(self, buffer: Bytes, begin: int, end: int, max_record_bytes: int) -> tuple[Bytes, bool]:
        """Bytes from `begin` on, up to `end` or with one whole record, and whether the file ends with them."""
        size = self._file.size
        data = self._read(buffer, begin, max(min(begin + _BLOCK_BYTES, end), min(begin + HEADER_BYTES, size)))
        if len(data) >= HEADER_BYTES and len(data) < frame_size(data[:HEADER_BYTES]) <= max_record_bytes + FRAME_BYTES:
            header, length = data[:HEADER_BYTES], frame_size(data[:HEADER_BYTES])
            _, fault = get_engine().scan(header, max_record_bytes=max_record_bytes, final=False)
            if fault is None:
                data = self._read(buffer, begin, min(begin + length, size))
        return data, begin + len(data) == size

    def _read(self, buffer: Bytes, begin: int, end: int) -> Bytes:
        if end - begin + SPARE > len(buffer):
            buffer = np.empty(end - begin + SPARE, np.uint8)
        data = buffer[: end - begin]
        if self._file.read_into(data, begin) < len(data):
            raise OSError("the file was truncated")  # the sequential read that follows raises the error
        return data

    def _find_header(self, buffer: Bytes, begin: int, end: int, max_record_bytes: int) -> int | None:
        """Offset of the first record header that begins in [begin, end)."""
        size = self._file.size
        while begin < end and not self._stop.is_set():
            stop = min(begin + _SEARCH_BYTES, end + HEADER_BYTES - 1, size)
            if stop - begin < HEADER_BYTES:
                return None
            at = get_engine().find_header(self._read(buffer, begin, stop), max_record_bytes=max_record_bytes)
            if at >= 0:
                return begin + at
            begin = stop - HEADER_BYTES + 1
        return None

    def _take_buffer(self) -> Bytes:
        try:
            return self._buffers.pop()
        except IndexError:
            return np.empty(max(_BLOCK_BYTES, _SEARCH_BYTES) + SPARE, np.uint8)
