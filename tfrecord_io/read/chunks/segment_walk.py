"""Walk over the records of a large plain file on all threads, where nothing of them is kept, as if in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Generic, TypeVar

from tfrecord_io.background import Task
from tfrecord_io.engine.select import get_engine
from tfrecord_io.format.framing import FRAME_BYTES, HEADER_BYTES, frame_size
from tfrecord_io.options import MIB
from tfrecord_io.read.chunks.block_walker import BlockWalker, Step
from tfrecord_io.read.chunks.file_windows import FileWindows
from tfrecord_io.read.chunks.workers import Workers
from tfrecord_io.storage.read.block_reader import Bytes

_SEGMENT_BYTES = 4 * MIB
_LEAST_BYTES = 8 * MIB  # of a file that is worth the threads
_LEAST_RECORDS = 4  # of a segment, as the search of its first record reads half a record
_MOST_RECORD_BYTES = 16 * MIB  # read by a thread in advance; larger ones only in order, as each takes memory
_SKIP_BYTES = 128 << 10  # reading only headers is faster for larger records

StepT = TypeVar("StepT", bound=Step)


@dataclass(slots=True)
class _Segment(Generic[StepT]):
    """The records that begin in a segment, or those before the first one that is faulty, too large, or not taken.

    Attributes
    ----------
    begin : int or None
        Offset of the first record; None if none begins in the segment.
    end : int
        Offset behind the last one.
    step : Step
        What the records were passed to.
    is_sound : bool
        Whether no fault follows.
    """

    begin: int | None
    end: int
    step: StepT
    records: int = 0
    is_sound: bool = True


class SegmentWalk(Generic[StepT]):
    """Advances walkers over records, which several threads pass to steps, a segment at a time.

    A segment begins with the first header in it. That may be one inside a payload, so the segment counts only if the
    one before it ended there; else it is walked over again.

    Parameters
    ----------
    workers : Workers
    make_step : callable
        Makes a step for a segment.
    accept : callable, optional
        Takes the steps of segments without a fault, in order; False if the walker is to go on before that segment.
    max_record_bytes : int
    skips_payloads : bool
        The step checks only headers: large payloads are not read.
    """

    def __init__(
        self,
        workers: Workers,
        make_step: Callable[[], StepT],
        accept: Callable[[StepT], bool] | None = None,
        *,
        max_record_bytes: int,
        skips_payloads: bool = False,
    ) -> None:
        self._workers, self._make_step, self._accept = workers, make_step, accept
        self._max_record_bytes, self._skips_payloads = max_record_bytes, skips_payloads
        self._number = -1  # of the walker's file
        self._retry = 0  # offset in it from which on segments are tried
        self._pause = 0  # bytes that are walked in order after the next fault

    def advance(self, walker: BlockWalker, most_records: int | None = None) -> int:
        """Advance over intact records; returns how many, 0 if the walker is to go on by itself.

        The walker, which has loaded data, is before a fault or the last of `most_records` then, or at any record, or at
        the end of the file.
        """
        assert walker.file is not None
        if walker.number != self._number:
            self._number, self._retry, self._pause = walker.number, 0, _SEGMENT_BYTES
        if walker.offset < self._retry or not (self._workers.count or self._skips_payloads):
            return 0
        file = walker.file.plain_file()
        if file is None:
            return 0
        windows, begin = FileWindows(file), walker.offset
        mean = self._mean_size(walker)
        if self._skips_payloads and mean > _SKIP_BYTES:
            records, offset = self._hop(windows, begin, most_records)
            walker.count(offset - begin)
        else:
            end = windows.size if most_records is None else min(windows.size, begin + int(most_records * mean))
            records, offset = self._walk_segments(walker, windows, begin, end, mean, most_records)
        if records:
            walker.seek(walker.record + records, offset)
        if offset == windows.size:
            walker.end_file()
        return records

    def _mean_size(self, walker: BlockWalker) -> float:
        """The mean size of the next records, or the size of the next one."""
        frames, _ = walker.frames(get_engine())
        return frames.consumed / len(frames.starts) if len(frames.starts) else walker.next_length() + FRAME_BYTES

    def _hop(self, windows: FileWindows, begin: int, most_records: int | None) -> tuple[int, int]:
        """Read only headers, as long as records are large; returns the number of records and where they end."""
        records, offset = 0, begin
        with windows.buffer() as buffer, suppress(OSError):
            while records != most_records and offset - begin >= records * _SKIP_BYTES:
                header = windows.block(buffer, offset, offset)
                _, fault = get_engine().scan(header, max_record_bytes=self._max_record_bytes, final=False)
                size = 0 if fault is not None else _whole_record(header, windows.size - offset)
                if not size:
                    break
                records, offset = records + 1, offset + size
        return records, offset

    def _walk_segments(
        self, walker: BlockWalker, windows: FileWindows, begin: int, end: int, mean: float, most_records: int | None
    ) -> tuple[int, int]:
        """Walk over segments of [begin, end); returns the number of records and where they end."""
        records, offset = 0, begin
        if end - begin < _LEAST_BYTES or mean > _MOST_RECORD_BYTES or not self._workers.count:
            return records, offset
        bounds = [*range(begin, end, max(_SEGMENT_BYTES, int(_LEAST_RECORDS * mean))), end]
        with closing(self._segments(windows, bounds)) as segments:
            for segment, bound in segments:
                exceeds = most_records is not None and records + segment.records > most_records
                if exceeds or segment.end == offset or not self._accepts(segment, bound):
                    self._retry = max(self._retry, bound)
                    break
                walker.count(segment.end - offset)
                records, offset = records + segment.records, segment.end
        return records, offset

    def _accepts(self, segment: _Segment[StepT], bound: int) -> bool:
        """Whether the walk goes on behind a segment, which is as it is in the file."""
        if not segment.is_sound:
            self._retry, self._pause = bound + self._pause, 2 * self._pause
            return False
        return self._accept is None or self._accept(segment.step)

    def _segments(self, windows: FileWindows, bounds: list[int]) -> Generator[tuple[_Segment[StepT], int]]:
        """The segments as they are in the file, each with the bound that it ends at or before."""
        pending: deque[Task[_Segment[StepT]]] = deque()
        waiting = deque(pairwise(bounds))
        position = bounds[0]
        try:
            for end in bounds[1:]:
                self._submit(windows, waiting, pending, bounds[0])
                ahead = self._workers.take(pending.popleft()) if pending else None
                self._submit(windows, waiting, pending, bounds[0])
                while position < end:
                    if ahead is None or ahead.begin != position:
                        ahead = self._walk(windows, self._make_step(), position, end, is_boundary=True)
                    segment, ahead = ahead, None
                    position = segment.end
                    yield segment, end
        finally:
            windows.stop()
            for task in pending:
                self._workers.drop(task)

    def _submit(
        self, windows: FileWindows, waiting: deque[tuple[int, int]], pending: deque[Task[_Segment[StepT]]], first: int
    ) -> None:
        """Let the workers walk over the next segments, if they have room."""
        while waiting and self._workers.have_room:
            begin, end = waiting.popleft()
            walk, step, is_boundary = self._walk, self._make_step(), begin == first
            most = None if is_boundary else _MOST_RECORD_BYTES
            task = partial(walk, windows, step, begin, end, is_boundary=is_boundary, most_record_bytes=most)
            pending.append(self._workers.submit(task))

    def _walk(
        self,
        windows: FileWindows,
        step: StepT,
        begin: int,
        end: int,
        *,
        is_boundary: bool,
        most_record_bytes: int | None = None,
    ) -> _Segment[StepT]:
        """Walk over the records that begin in [begin, end), as far as none has more than `most_record_bytes`."""
        with windows.buffer() as buffer:
            try:
                first = begin if is_boundary else windows.find_header(buffer, begin, end, self._max_record_bytes)
            except OSError:
                first = None  # the walk in order finds the error
            segment = _Segment(first, end if first is None else first, step)
            try:
                while segment.end < end and not windows.stopped:
                    if not self._pass(windows, buffer, segment, end, most_record_bytes):
                        break
            except OSError:
                segment.is_sound = False
        return segment

    def _pass(
        self, windows: FileWindows, buffer: Bytes, segment: _Segment[StepT], end: int, most_record_bytes: int | None
    ) -> bool:
        """Pass some records to the step; whether more may follow."""
        begin = segment.end
        if self._skips_payloads:
            data = windows.block(buffer, begin, end)
            final = begin + len(data) == windows.size
        else:
            data, final = windows.window(buffer, begin, end, self._max_record_bytes, most_record_bytes)
        if not len(data):  # the next record is too large
            return False
        records, consumed, fault = segment.step(data, final)
        if fault is None and self._skips_payloads:
            skipped = _whole_record(data[consumed:], windows.size - begin - consumed)
            records, consumed = records + (skipped > 0), consumed + skipped
        segment.records += records
        segment.end += consumed
        segment.is_sound = fault is None
        return segment.is_sound and consumed > 0


def _whole_record(data: Bytes, left: int) -> int:
    """Size of the record whose valid header `data` begins with; 0 without one, or if it has more than `left` bytes."""
    size = frame_size(data[:HEADER_BYTES]) if len(data) >= HEADER_BYTES else 0
    return size if size <= left else 0
