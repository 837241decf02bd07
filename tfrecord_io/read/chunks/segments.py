"""Work on the segments of a plain file on all threads, as if its records were read in order.

A file is read at any offset, a window of whole records at a time. Where the first record of a segment begins is only
known once those before it were read. So each thread speculates: it begins with the first header in its segment, which
may be one inside the payload of a record. What it made counts if the segment before ended there; else that is worked
on again, from where it ended. See dev/decisions/segments.md.

`Segments` goes through the segments of a file in order, and `SegmentWork` takes the records of one into a `Part`, which
says what becomes of them: they are decoded (`tfrecord_io.read.chunks.parallel_file_decoder`), or only passed to a step
(`SegmentWalk`). `FileWindows` reads the file for all of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

from tfrecord_io.base import LIMITS, Closing, WorkerPool, cpu_count
from tfrecord_io.bytes import Checks, Engine, FrameHeader, get_engine
from tfrecord_io.read.chunks.block_walker import BlockWalker, Step
from tfrecord_io.store import Block, BlockReader, OpenPlainFile

_SEARCH_BYTES = 64 << 10  # searched for a header at a time
_STEP_BYTES = 16 << 20  # that are read before a thread looks whether the read has ended
_KEPT_BUFFERS = 4
_LARGE = 4.5  # blocks: a segment of a file that is not very large, and its last record


# Buffers of earlier reads: the system takes as long to make their pages again as to read some of a file into them.
_kept: deque[BlockReader.Buffer] = deque(maxlen=_KEPT_BUFFERS)


@contextmanager
def segment_pool(threads: int, most_ahead: int | None = None) -> Iterator[WorkerPool]:
    """The threads that work on segments: none for one thread, and one for each core at most, as more only cost memory.

    They work on, or have ready, as many segments as there are threads and two more, or `most_ahead` if that is less.
    """
    count = min(threads, cpu_count()) if threads > 1 else 0
    pool = WorkerPool(count, "decode", min(count + 2, most_ahead or count + 2))
    try:
        yield pool
    finally:
        pool.close(wait=False)  # the garbage collector may run this in one of its threads


class FileWindows:
    """Windows of a file, read into buffers that are used again.

    `large` buffers are larger than the processor's cache: there is work to do for each that takes longer than that
    costs. The engine fills them window by window; those of a file in memory are windows.
    """

    def __init__(self, file: OpenPlainFile, *, large: bool = False) -> None:
        self.size = file.size  # when it was opened
        self.is_large = large
        self._buffer_bytes = int((_LARGE if large else 1) * LIMITS.window_bytes)
        self._block_bytes = self._buffer_bytes if file.descriptor is None else LIMITS.window_bytes
        self._file = file
        self.ended = False  # lets those who read return soon

    @contextmanager
    def buffer(self) -> Iterator[BlockReader.Buffer]:
        """A buffer of one thread."""
        size = max(min(self._buffer_bytes, self.size), _SEARCH_BYTES) + Block.PAGE + Block.SPARE
        buffer = None
        with suppress(IndexError):
            buffer = _kept.pop()
        if buffer is None or len(buffer) < size:
            buffer = Block.memory(size)
        try:
            yield buffer
        finally:
            if len(buffer) > LIMITS.window_bytes:
                _kept.append(buffer)

    def block(self, buffer: BlockReader.Buffer, begin: int, end: int) -> BlockReader.Buffer:
        """Bytes from `begin` on, up to `end`, or the next header if that is longer."""
        return self.read(
            buffer, begin, max(min(begin + self._block_bytes, end), min(begin + FrameHeader.BYTES, self.size))
        )

    def window(
        self,
        buffer: BlockReader.Buffer,
        begin: int,
        end: int,
        max_record_bytes: int,
        most_record_bytes: int | None = None,
    ) -> tuple[BlockReader.Buffer, bool]:
        """Bytes from `begin` on, up to `end` or with one whole record, and whether the file ends with them.

        There are none if that record has more than `most_record_bytes`.
        """
        data = self.block(buffer, begin, end)
        header = data[: FrameHeader.BYTES].tobytes()
        if (
            len(data) < FrameHeader(header).frame_size <= max_record_bytes + FrameHeader.FRAME_BYTES
            and FrameHeader(header).is_intact
        ):
            if most_record_bytes is not None and FrameHeader(header).frame_size > most_record_bytes:
                return data[:0], False
            data = self.read(buffer, begin, min(begin + FrameHeader(header).frame_size, self.size))
        return data, begin + len(data) == self.size

    def read(self, buffer: BlockReader.Buffer, begin: int, end: int) -> BlockReader.Buffer:
        """All bytes of [begin, end), in the buffer if it is large enough."""
        at = begin % Block.PAGE  # the system copies slowly to memory whose offset in a page nearly is that in the file
        if at + end - begin + Block.SPARE > len(buffer):
            buffer = Block.memory(at + end - begin + Block.SPARE)
        data = buffer[at : at + end - begin]
        if self._file.read_into(data, begin) < len(data):
            raise OSError("the file was truncated")  # the sequential read that follows raises the error
        return data

    def view(
        self, buffer: BlockReader.Buffer, max_record_bytes: int, most_record_bytes: int | None
    ) -> Engine.FileView | None:
        """The view by which an engine reads windows by itself; None for a file in memory."""
        if self._file.descriptor is None:
            return None
        most_bytes = self.size if most_record_bytes is None else most_record_bytes
        memory = buffer[: len(buffer) - Block.SPARE]
        return Engine.FileView(
            self._file.descriptor,
            self.size,
            memory=memory,
            window_bytes=self._block_bytes,
            max_record_bytes=max_record_bytes,
            most_record_bytes=most_bytes,
        )

    def find_header(self, buffer: BlockReader.Buffer, begin: int, end: int, max_record_bytes: int) -> int | None:
        """Offset of the first record header that begins in [begin, end)."""
        while begin < end and not self.ended:
            stop = min(begin + _SEARCH_BYTES, end + FrameHeader.BYTES - 1, self.size)
            if stop - begin < FrameHeader.BYTES:
                return None
            at = get_engine().find_header(self.read(buffer, begin, stop), max_record_bytes=max_record_bytes)
            if at >= 0:
                return begin + at
            begin = stop - FrameHeader.BYTES + 1
        return None


class Part:
    """The records of a segment as one thread takes them."""

    is_sound = True  # whether no fault follows the records that were taken

    def begin(self, size: int) -> None:
        """Called first, with the bytes of the segment."""

    def take(self, data: BlockReader.Buffer, offset: int, final: bool) -> int:
        """Take the records at the start of `data`, which is at `offset`; returns their bytes.

        None are taken, or the part is not sound, where no more will be.
        """
        raise NotImplementedError

    def take_file(self, file: Engine.FileView, begin: int, end: int) -> int:
        """Take records that begin in [begin, end) of the file, the first there; returns their bytes.

        It may take fewer, or none, which `take` goes on with.
        """
        return 0

    def finish(self) -> None:
        """Called once all records were taken."""


P = TypeVar("P", bound=Part)
StepT = TypeVar("StepT", bound=Step)


class Segment(Generic[P]):
    """The records that begin in a segment, up to the first that is faulty, too large, or not taken."""

    def __init__(self, begin: int | None, end: int, part: P) -> None:
        # Offset of the first record; None if none begins in the segment, or none was taken as it is too large.
        self.begin = begin
        self.end = end  # offset after the last one
        self.part = part
        self.is_sound = True  # whether they could be read, and no fault follows


class SegmentWork(NamedTuple):
    """Settings for taking records into parts. It refers to nothing that holds the pool of threads that work by it."""

    windows: FileWindows
    max_record_bytes: int
    whole: bool  # windows end with whole records; else they have at least a header

    def segment(
        self, part: P, begin: int, end: int, *, is_boundary: bool, most_record_bytes: int | None = None
    ) -> Segment[P]:
        """Take the records that begin in [begin, end), as far as none has more than `most_record_bytes`."""
        segment = Segment(begin, begin, part)
        with self.windows.buffer() as buffer:
            try:
                first = begin if is_boundary else self.windows.find_header(buffer, begin, end, self.max_record_bytes)
                if first is None:
                    return Segment(None, end, part)
                segment.begin = segment.end = first
                part.begin(end - first)
                self._take_records(segment, end, buffer, most_record_bytes)
            except OSError:  # the read in order finds the error
                segment.is_sound = False
            else:
                segment.is_sound = part.is_sound
        if segment.is_sound:
            part.finish()
        return segment

    def _take_records(
        self, segment: Segment[P], end: int, buffer: BlockReader.Buffer, most_record_bytes: int | None
    ) -> None:
        """Extend a segment's part by the records after its end, and move the end."""
        windows, part = self.windows, segment.part
        by_file = windows.is_large  # the engine goes on without a step here for each window
        while segment.end < end:
            if windows.ended:
                raise OSError("the read has ended")
            if by_file:
                file = windows.view(buffer, self.max_record_bytes, most_record_bytes)
                last = min(segment.end + _STEP_BYTES, end)
                segment.end += 0 if file is None else part.take_file(file, segment.end, last)
                by_file = segment.end == last
                continue
            data, final = self._window(buffer, segment.end, end, most_record_bytes)
            if not len(data):  # the next record is too large
                segment.begin = segment.begin if segment.end != segment.begin else None
                return
            consumed = part.take(data, segment.end, final)
            segment.end += consumed
            if not consumed or not part.is_sound:
                return
            by_file = True

    def _window(
        self, buffer: BlockReader.Buffer, begin: int, end: int, most_record_bytes: int | None
    ) -> tuple[BlockReader.Buffer, bool]:
        """The next bytes of a segment, and whether the file ends with them; none if the record there is too large."""
        if self.whole:
            return self.windows.window(buffer, begin, end, self.max_record_bytes, most_record_bytes=most_record_bytes)
        data = self.windows.block(buffer, begin, end)
        return data, begin + len(data) == self.windows.size


class Segments(Closing, Generic[P]):
    """Iterates over the segments of a file in order, each with the bound at or after its end.

    A record begins at the first of the `bounds`. Without a `pool`, this thread alone works on them; records of more
    than `most_record_bytes` are not read ahead. For `max_record_bytes` and `whole` see `SegmentWork`.
    """

    def __init__(
        self,
        windows: FileWindows,
        pool: WorkerPool | None,
        bounds: Sequence[int],
        *,
        max_record_bytes: int,
        most_record_bytes: int | None = None,
        whole: bool = True,
    ) -> None:
        self._windows, self._bounds = windows, bounds
        self._work, self._most_record_bytes = SegmentWork(windows, max_record_bytes, whole), most_record_bytes
        self._ahead = pool.map_in_order(self._calls()) if pool is not None and pool.threads else None

    @abstractmethod
    def make_part(self, ahead: bool) -> P:
        """The part of a segment; called in this thread, also if another will work on it, `ahead` of its turn."""

    def is_exact(self, part: P) -> bool:
        """True if a part that was made ahead equals the part that would be made now."""
        return True

    @property
    def is_submitted(self) -> bool:
        """True if the pool works on, or has finished, all segments that are not given to this thread."""
        return self._ahead is None or self._ahead.is_submitted

    def submit(self) -> None:
        """Let the pool work on further segments, if it has room."""
        if self._ahead is not None:
            self._ahead.submit()

    def __iter__(self) -> Generator[tuple[Segment[P], int]]:
        position = self._bounds[0]
        for end in self._bounds[1:]:
            ahead = None if self._ahead is None else next(self._ahead, None)
            self.submit()  # instead of the one that was taken, before this thread is busy with that
            while position < end:
                if ahead is None or ahead.begin != position or not self.is_exact(ahead.part):
                    ahead = self._work.segment(self.make_part(False), position, end, is_boundary=True)
                segment, ahead = ahead, None
                position = segment.end
                yield segment, end

    def close(self) -> None:
        """Give up what is worked on ahead."""
        self._windows.ended = True
        if self._ahead is not None:
            self._ahead.close()

    def _calls(self) -> Iterator[Callable[[], Segment[P]]]:
        for begin, end in pairwise(self._bounds):
            limit, is_boundary = self._most_record_bytes, begin == self._bounds[0]
            part = self.make_part(True)
            yield partial(self._work.segment, part, begin, end, is_boundary=is_boundary, most_record_bytes=limit)


class WalkedPart(Part, Generic[StepT]):
    """Records that are passed to a step, and counted."""

    def __init__(self, step: StepT, skipped_in: int | None) -> None:
        self.step, self.records = step, 0
        self._skipped_in = skipped_in  # bytes of the file, if a record that continues after the data is skipped

    def take(self, data: BlockReader.Buffer, offset: int, final: bool) -> int:
        records, consumed, fault = self.step(data, final)
        self.is_sound = fault is None
        if fault is None and self._skipped_in is not None:
            skipped = _whole_record(data[consumed:], self._skipped_in - offset - consumed)
            records, consumed = records + (skipped > 0), consumed + skipped
        self.records += records
        return consumed


class WalkedSegments(Segments[WalkedPart[StepT]]):
    """Segments whose records are passed to steps, one step of `make_step` for each segment."""

    def __init__(
        self,
        windows: FileWindows,
        pool: WorkerPool,
        bounds: Sequence[int],
        make_step: Callable[[], StepT],
        *,
        max_record_bytes: int,
        whole: bool,
    ) -> None:
        super().__init__(
            windows, pool, bounds, max_record_bytes=max_record_bytes, most_record_bytes=LIMITS.ahead_bytes, whole=whole
        )
        self._make_step, self._skipped_in = make_step, None if self._work.whole else windows.size

    def make_part(self, ahead: bool) -> WalkedPart[StepT]:
        """See `Segments`."""
        return WalkedPart(self._make_step(), self._skipped_in)


class SegmentWalk(Generic[StepT]):
    """Advances walkers over records of which nothing is kept, a segment at a time; `make_step` makes a step for each.

    `accept` takes the steps of segments without a fault, in order; False if the walker is to go on before that segment.
    `skips_payloads`: the step checks only headers, by these checksums, so that large payloads are not read.
    """

    threads = staticmethod(segment_pool)

    def __init__(
        self,
        pool: WorkerPool,
        make_step: Callable[[], StepT],
        accept: Callable[[StepT], bool] | None = None,
        *,
        max_record_bytes: int,
        skips_payloads: Checks | None = None,
    ) -> None:
        self._pool, self._make_step, self._accept = pool, make_step, accept
        self._max_record_bytes, self._skips_payloads = max_record_bytes, skips_payloads
        self._number = -1  # of the walker's file
        self._retry = 0  # offset in it from which on segments are tried
        self._pause = 0  # bytes that are walked in order after the next fault

    def advance(self, walker: BlockWalker, most_records: int | None = None) -> int:
        """Advance over intact records; returns how many, 0 if the walker is to go on by itself.

        The walker, which has loaded data, is before a fault or the last of `most_records` then, or at any record, or at
        the end of the file.
        """
        if walker.number != self._number:
            self._number, self._retry, self._pause = walker.number, 0, LIMITS.block_bytes
        if walker.offset < self._retry or not (self._pool.threads or self._skips_payloads is not None):
            return 0
        file = walker.opened.plain_file()
        if file is None:
            return 0
        windows, begin = FileWindows(file), walker.offset
        frames, _ = walker.frames(get_engine())
        count = len(frames.starts)
        mean = frames.consumed / count if count else walker.next_length() + FrameHeader.FRAME_BYTES
        if self._skips_payloads is not None and mean > LIMITS.skipped_record_bytes:
            records, offset = self._hop(windows, begin, most_records)
            walker.count(offset - begin)
        else:
            end = windows.size if most_records is None else min(windows.size, begin + int(most_records * mean))
            records, offset = self._walk_segments(
                walker, windows, begin=begin, end=end, mean=mean, most_records=most_records
            )
        if records:
            walker.seek(walker.record + records, offset)
        if offset == windows.size:
            walker.end_file()
        return records

    def _hop(self, windows: FileWindows, begin: int, most_records: int | None) -> tuple[int, int]:
        """Read only headers, as long as records are large; returns the number of records and where they end."""
        records, offset = 0, begin
        with windows.buffer() as buffer, suppress(OSError):
            while records != most_records and offset - begin >= records * LIMITS.skipped_record_bytes:
                header = windows.block(buffer, offset, offset)
                checks, limit = self._skips_payloads or Checks.NONE, self._max_record_bytes
                _, fault = get_engine().scan(header, checks=checks, max_record_bytes=limit, final=False)
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
        if end - begin < 2 * LIMITS.block_bytes or mean > LIMITS.ahead_bytes or not self._pool.threads:
            return records, offset
        bounds = [*range(begin, end, max(LIMITS.block_bytes, int(LIMITS.segment_records * mean))), end]
        with WalkedSegments(
            windows,
            self._pool,
            bounds,
            self._make_step,
            max_record_bytes=self._max_record_bytes,
            whole=self._skips_payloads is None,
        ) as segments:
            for segment, bound in segments:
                exceeds = most_records is not None and records + segment.part.records > most_records
                if exceeds or segment.end == offset or not self._accepts(segment, bound):
                    self._retry = max(self._retry, bound)
                    break
                walker.count(segment.end - offset)
                records, offset = records + segment.part.records, segment.end
        return records, offset

    def _accepts(self, segment: Segment[WalkedPart[StepT]], bound: int) -> bool:
        """True if the walk goes on after a segment that was read ahead."""
        if not segment.is_sound:
            self._retry, self._pause = bound + self._pause, 2 * self._pause
            return False
        return self._accept is None or self._accept(segment.part.step)


def _whole_record(data: BlockReader.Buffer, left: int) -> int:
    """Size of the record whose valid header `data` begins with; 0 without one, or if it has more than `left` bytes."""
    size = FrameHeader(data[: FrameHeader.BYTES]).frame_size if len(data) >= FrameHeader.BYTES else 0
    return size if size <= left else 0
