"""Read plain files in segments, one after the other, as chunks or as batches; the next files are decoded in advance."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tfrecord_io.base import Closing, WorkerPool
from tfrecord_io.bytes import Array, Decoder, FrameHeader
from tfrecord_io.read.chunks.block_walker import BlockWalker, RecordFile
from tfrecord_io.read.chunks.chunk import BatchLimit, DecodedChunk, is_little
from tfrecord_io.read.chunks.parallel_file_decoder import DecodedPart, FileDecoder, Position
from tfrecord_io.store import OpenPlainFile, Source

_MOST_FILES = 16  # that are open in advance


class SegmentedFiles(Closing):
    """The segments of the files of a walker, its `sources`; `make` makes the decoder of a file from a position on.

    `decompress_ahead`: compressed files are decompressed in advance, at the cost of memory. `joins_little`: little
    plain files are left to the caller, who decodes several together.
    """

    def __init__(
        self,
        walker: BlockWalker,
        sources: Sequence[Source],
        pool: WorkerPool,
        make: Callable[[OpenPlainFile, Position], FileDecoder],
        *,
        decompress_ahead: bool,
        joins_little: bool = False,
    ) -> None:
        self._joins_little = joins_little
        self._decompress_ahead = decompress_ahead
        self._walker, self._sources, self._pool, self._make = walker, sources, pool, make
        self._current: FileDecoder | None = None
        self._next: deque[FileDecoder | None] = deque()  # of the files that were opened in advance
        self._first_ahead = 0  # number of the first of them
        self._number = -1  # of the last file that was begun

    def begin(self) -> FileDecoder | None:
        """The decoder of the file that the walker has opened; None if it cannot be read in segments, or was already.

        So is a little file whose first block was read, to find its schema. What the decoder reads counts as read; the
        walk goes on at `end`.
        """
        walker = self._walker
        file = walker.file
        if file is None or walker.number == self._number:
            return None
        self._number = walker.number
        ahead: FileDecoder | None = None
        while self._next and self._first_ahead <= walker.number:
            if ahead is not None:
                ahead.close()
            ahead, self._first_ahead = self._next.popleft(), self._first_ahead + 1
        offset = 0 if walker.block is None else walker.offset
        here = Position(file.path, walker.number, walker.record, offset)
        if ahead is not None and (walker.error is not None or ahead.position != here):  # it went on after damage
            ahead.close()
            ahead = None
        is_read = walker.error is not None or (walker.final and is_little(len(walker.data)))
        self._current = ahead or (None if is_read else self._decoder_at(file, here))
        return self._current

    def end(self) -> None:
        """Let the walk go on at the position of the decoder."""
        assert self._current is not None
        current, self._current = self._current, None
        current.close()
        if current.is_at_end:
            self._walker.end_file()
        else:
            self._walker.seek(current.position.record, current.position.offset)

    def chunks(self) -> Iterator[DecodedChunk]:
        """The chunks of the file that the walker has opened."""
        decoder = self.begin()
        if decoder is None:
            return
        position = decoder.position
        for segment in decoder.segments():
            chunk = segment.part.chunk
            self._walker.count(segment.end - position.offset)
            position.offset, position.record = segment.end, position.record + chunk.rows
            self.look_ahead()
            yield chunk
        self.end()

    def close(self) -> None:
        """Give up what is decoded in advance."""
        for decoder in (self._current, *self._next):
            if decoder is not None:
                decoder.close()

    def _decoder_at(self, file: RecordFile, position: Position) -> FileDecoder | None:
        """The decoder of a file that is read in segments."""
        plain = file.plain_file()
        decoder = None if plain is None else self._make(plain, position)
        if decoder is not None and not decoder.has_segments:
            decoder.close()
            decoder = None
        return decoder

    def look_ahead(self) -> None:
        """Open the next files and let the workers decode them, as long as there is room after the current file."""
        last = self._current
        for decoder in self._next:
            if decoder is not None:
                decoder.submit()
                last = decoder
        while (
            self._pool.ahead < self._pool.most_ahead
            and len(self._next) < _MOST_FILES
            and self._next.count(None) < self._pool.threads - 1
            and (last is None or last.is_submitted)
        ):
            number = self._walker.number + 1 + len(self._next)
            files = self._sources[number - 1 : number + 1]
            # Others than local files: pipes and file objects are read in order, and what is remote by requests.
            if number == len(self._sources) or not all(source.local and source.size for source in files):
                return
            current = self._walker.file
            may_join = self._joins_little and (current is None or current.compression is None)
            if may_join and is_little(self._sources[number].size or 0):  # decoded together if they are like this one
                return
            file = self._walker.open_ahead()
            if file is None:
                return
            decoder = self._decoder_at(file, Position(file.path, number, 0, 0))
            self._first_ahead = number - len(self._next)
            self._next.append(decoder)
            if decoder is not None:
                decoder.submit()
                last = decoder
            elif self._decompress_ahead:
                file.decompress_ahead()


class SegmentFeed:
    """Appends to a decoder the rows of segments of a `file`, the current one of `files`: in parts if it has them.

    The record of the `walker` is that of the position; once the segments are used up, it goes on there.
    """

    def __init__(self, file: FileDecoder, files: SegmentedFiles, walker: BlockWalker) -> None:
        self.position = file.position
        self._file, self._files, self._walker = file, files, walker
        self._segments = file.segments()
        self._part: DecodedPart | None = None
        self._begin = 0  # rows of the segment that were appended
        self._bytes = 0  # payload bytes of the others
        self._ends: Array | None = None  # payload bytes up to the end of each of the others, if a batch ends there

    def fill(self, decoder: Decoder, max_rows: int, limit: BatchLimit, *, begun: bool) -> bool:
        """Append rows until the batch has `max_rows`, or the next record would exceed the `limit`.

        Returns False if the segments are used up before that. The first record of a batch that was not `begun` may be
        larger than the limit.
        """
        while decoder.rows < max_rows:
            part = self._current()
            if part is None:
                self._files.end()
                return False
            is_first = not begun and not decoder.rows
            max_bytes = limit.max_bytes - decoder.value_bytes
            rows, size = self._fitting(part, max_rows - decoder.rows, max_bytes, is_first)
            if rows == 0:
                if limit.extend():
                    continue
                return True
            if not decoder.append(part.decoder, self._begin, self._begin + rows, size):
                self._files.end()
                return False
            self._advance(part, rows, size)
        return True

    def record_bytes(self) -> int:
        """The mean payload of the next segment's records; 0 if there are none."""
        part = self._current()
        return 0 if part is None or not part.chunk.rows else part.chunk.payload_bytes // part.chunk.rows

    def _current(self) -> DecodedPart | None:
        """The part with the next rows."""
        if self._part is None:
            segment = next(self._segments, None)
            if segment is not None:
                self._part = segment.part
                self._begin, self._bytes, self._ends = 0, self._part.chunk.payload_bytes, None
        return self._part

    def _fitting(self, part: DecodedPart, max_rows: int, max_bytes: int, is_first: bool) -> tuple[int, int]:
        left = part.chunk.rows - self._begin
        if left <= max_rows and (self._bytes <= max_bytes or (is_first and left == 1)):
            return left, self._bytes
        if self._ends is None:
            self._ends = part.decoder.lengths().cumsum(dtype=np.int64)
        before = part.chunk.payload_bytes - self._bytes
        rows = int(np.searchsorted(self._ends, before + max_bytes, side="right")) - self._begin
        rows = max(min(max_rows, rows), int(is_first))
        return rows, int(self._ends[self._begin + rows - 1]) - before if rows else 0

    def _advance(self, part: DecodedPart, rows: int, size: int) -> None:
        consumed = size + rows * FrameHeader.FRAME_BYTES
        self.position.record += rows
        self.position.offset += consumed
        self._walker.record = self.position.record
        self._walker.count(consumed)
        self._begin += rows
        self._bytes -= size
        if self._begin == part.chunk.rows:
            self._part = None
            self._file.use_again(part)
            self._files.look_ahead()
