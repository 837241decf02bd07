"""Read plain files in segments, one after the other; the next files are decoded, or decompressed, in advance."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from tfrecord_io.closing import Closing
from tfrecord_io.read.chunks.block_walker import BlockWalker
from tfrecord_io.read.chunks.chunk import DecodedChunk
from tfrecord_io.read.chunks.record_file import RecordFile
from tfrecord_io.read.chunks.segment_reader import Position, SegmentReader
from tfrecord_io.read.chunks.workers import Workers
from tfrecord_io.storage.read.source import OpenPlainFile, Source

_MOST_FILES = 16  # that are open in advance


class SegmentedFiles(Closing):
    """The segments of the files of a walker.

    Parameters
    ----------
    walker : BlockWalker
    sources : sequence of Source
        Of the walker.
    workers : Workers
    make : callable
        Makes the reader of a file from a position on.
    decompress_ahead : bool
        Compressed files are decompressed in advance, at the cost of memory.
    """

    def __init__(
        self,
        walker: BlockWalker,
        sources: Sequence[Source],
        workers: Workers,
        make: Callable[[OpenPlainFile, Position], SegmentReader],
        *,
        decompress_ahead: bool,
    ) -> None:
        self._decompress_ahead = decompress_ahead
        self._walker, self._sources, self._workers, self._make = walker, sources, workers, make
        self._current: SegmentReader | None = None
        self._next: deque[SegmentReader | None] = deque()  # of the files that were opened in advance
        self._first_ahead = 0  # number of the first of them
        self._number = -1  # of the last file that was begun

    def begin(self) -> SegmentReader | None:
        """The reader of the file that the walker has opened; None if it cannot be read in segments, or was already.

        What it reads counts as read; the walk goes on behind it, after `end`.
        """
        walker = self._walker
        if walker.number == self._number:
            return None
        self._number = walker.number
        ahead: SegmentReader | None = None
        while self._next and self._first_ahead <= walker.number:
            if ahead is not None:
                ahead.close()
            ahead, self._first_ahead = self._next.popleft(), self._first_ahead + 1
        if ahead is not None and self._is_behind(ahead.position):
            ahead.close()
            ahead = None
        self._current = ahead or self._reader()
        return self._current

    def _is_behind(self, position: Position) -> bool:
        """Whether the walk has gone on from a position, as it does behind damage."""
        walker = self._walker
        offset = 0 if walker.block is None else walker.offset
        here = (walker.number, walker.record, offset)
        return walker.error is not None or (position.number, position.record, position.offset) != here

    def end(self) -> None:
        """Let the walk go on at the position of the reader."""
        assert self._current is not None
        current, self._current = self._current, None
        current.close()
        if current.is_at_end:
            self._walker.end_file()
        else:
            self._walker.seek(current.position.record, current.position.offset)

    def chunks(self) -> Iterator[DecodedChunk]:
        """The chunks of the file that the walker has opened."""
        reader = self.begin()
        if reader is None:
            return
        begin = reader.position.offset
        for chunk in reader.chunks():
            self._walker.count(reader.position.offset - begin)
            begin = reader.position.offset
            self.look_ahead()
            yield chunk
        self.end()

    def close(self) -> None:
        """Give up what is decoded in advance."""
        for reader in (self._current, *self._next):
            if reader is not None:
                reader.close()

    def _reader(self) -> SegmentReader | None:
        """The reader of the rest of the current file."""
        walker = self._walker
        if walker.file is None or walker.error is not None:
            return None
        return self._reader_of(walker.file, walker.number, walker.record, 0 if walker.block is None else walker.offset)

    def _reader_of(self, file: RecordFile, number: int, record: int, offset: int) -> SegmentReader | None:
        plain = file.plain_file()
        reader = None if plain is None else self._make(plain, Position(file.path, number, record, offset))
        return reader if reader is not None and reader.has_segments else None

    def look_ahead(self) -> None:
        """Open the next files, and let the workers decode them, as long as they have room after the current one."""
        last = self._current
        for reader in self._next:
            if reader is not None:
                reader.decode_ahead()
                last = reader
        while (
            self._workers.have_room
            and len(self._next) < _MOST_FILES
            and self._next.count(None) < self._workers.count - 1
            and (last is None or last.is_submitted)
        ):
            number = self._walker.number + 1 + len(self._next)
            if not all(map(_may_be_ahead, self._sources[number - 1 : number + 1])) or number == len(self._sources):
                return
            file = self._walker.open_ahead()
            if file is None:
                return
            reader = self._reader_of(file, number, 0, 0)
            self._first_ahead = number - len(self._next)
            self._next.append(reader)
            if reader is not None:
                reader.decode_ahead()
                last = reader
            elif self._decompress_ahead:
                file.decompress_ahead()


def _may_be_ahead(source: Source) -> bool:
    """Whether a file can be opened while others are read: no pipe, no file object, and not by requests."""
    return source.local and bool(source.size)
