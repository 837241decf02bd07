"""Where the segments of a file begin and end: by the file and its first record alone, for any number of threads."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from tfrecord_io.options import MIB
from tfrecord_io.read.chunks.segment_decoder import Measured

_LEAST_SEGMENTS, _MOST_SEGMENTS = 8, 16  # of a file whose segments are within the following limits
_LEAST_BYTES, _LARGE_BYTES, _MOST_BYTES = 2 * MIB, 8 * MIB, 64 * MIB
_LEAST_RECORDS = 4  # of a segment
_BYTES_PER_COLUMN = 12 << 10  # of a segment
_STREAM_BYTES, _MOST_STREAM_BYTES = 8 * MIB, 16 * MIB  # of a segment of a stream, several of which are held
_FIRST_STREAM_BYTES = (0.25, 0.5, 1, 1.5)  # of these, where the first segments end: small files occupy all threads too
_PART_BYTES = MIB  # of a segment whose rows become a part of a batch
_PART_BYTES_OF_LISTS = MIB // 4  # if it may have lists of integers, which take up to eight times as much when decoded
_FILTERED_PARTS = 4  # times as large, as a filter takes about as long for many records as for few
_RECORDS_PER_PART = 4  # at least
_MOST_COPIED = 0.5  # of the bytes of a record: appending them to a batch, or reading them, takes as long as decoding


@dataclass(frozen=True, slots=True)
class SegmentBounds:
    """The bounds of segments: number i is between bounds i and i + 1.

    Attributes
    ----------
    known : list of int
    step : int
        If not 0, others follow the last at this distance, up to the end of the file.
    """

    known: list[int]
    step: int = 0

    def __getitem__(self, number: int) -> int:
        if number < len(self.known):
            return self.known[number]
        return self.known[-1] + (number - len(self.known) + 1) * self.step

    def has(self, number: int) -> bool:
        """Whether there is a segment with a number, if the file does not end before."""
        return self.step > 0 or number < len(self.known) - 1

    def after(self, offset: int) -> int:
        """The first bound behind an offset, which is within a segment."""
        if offset < self.known[-1]:
            return self.known[bisect_right(self.known, offset)]
        return offset + self.step - (offset - self.known[-1]) % self.step


def plain_bounds(begin: int, end: int, record_bytes: int, columns: int) -> list[int]:
    """The bounds of the segments of [begin, end) of a plain file.

    Small ones keep all threads busy to the end; each costs time for a chunk, for its columns, and for the search of its
    first record.
    """
    size = end - begin
    wanted = max(min(size / _LEAST_SEGMENTS, _LARGE_BYTES), size / _MOST_SEGMENTS)
    wanted = max(wanted, _LEAST_BYTES, _LEAST_RECORDS * record_bytes, _BYTES_PER_COLUMN * columns)
    count = max(round(size / wanted), -(-size // _MOST_BYTES))
    return [begin + size * number // count for number in range(count + 1)]


def stream_bounds(begin: int, first: Measured) -> SegmentBounds:
    """The bounds of the segments of a stream whose end is not known; none where decoding is mainly copying."""
    if first.copied_bytes > _MOST_COPIED * first.record_bytes:
        return SegmentBounds([begin])
    wanted = max(_STREAM_BYTES, _LEAST_RECORDS * first.record_bytes, _BYTES_PER_COLUMN * first.columns)
    step = min(wanted, max(_STREAM_BYTES, _MOST_STREAM_BYTES))
    ends = [begin + int(share * step) for share in _FIRST_STREAM_BYTES] if step == _STREAM_BYTES else []
    return SegmentBounds([begin, *ends], step)


def part_step(first: Measured, *, may_have_lists: bool, filters: bool) -> int:
    """The size of the segments that become parts of batches; 0 if the records are too large for that."""
    part = (_PART_BYTES_OF_LISTS if may_have_lists else _PART_BYTES) * (_FILTERED_PARTS if filters else 1)
    is_large = first.record_bytes * _RECORDS_PER_PART > part
    return 0 if is_large or first.copied_bytes > _MOST_COPIED * first.record_bytes else part


def is_one_segment(size: int) -> bool:
    """Whether a plain file, or the rest of one, is too small to be split."""
    return size <= _LEAST_BYTES


def most_part_bytes(*, filters: bool) -> int:
    """Of a record in a part that is decoded in advance."""
    return _PART_BYTES * _FILTERED_PARTS if filters else _PART_BYTES
