"""Prefetch remote files: while one is read, the next files are requested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tfrecord_io.base import LIMITS, Closing
from tfrecord_io.store.read.source import Source, Sources

if TYPE_CHECKING:
    from tfrecord_io.store.read.ranges_ahead import RangeReader


class SourcePrefetcher(Closing):
    """Iterate over sources in order, each with the data prefetched for it. Local files are passed through unchanged.

    A remote file stays open until the next source is taken, even if the raw file from its ``open`` is closed.

    With `stream`, all will be read; else the amount prefetched adapts to how far each file is read. With `heads`, only
    the first bytes of each will be read.
    """

    def __init__(self, sources: Sequence[Source], *, stream: bool = True, heads: bool = False) -> None:
        self._sources = sources = Sources.of(sources)
        self._count = len(sources)
        self._next = 0
        self._readers: dict[int, RangeReader] = {}
        self._opened = 0  # sources that were opened for prefetching, or skipped as local
        self._closed = False
        self._window: Any = None
        if not sources.are_local and any(source.remote for source in sources):
            from tfrecord_io.store.read.ranges_ahead import Window  # imports fsspec

            self._window = Window(self._open_readers(), stream=stream, heads=heads)

    @staticmethod
    def requests_for(size: int, *, stream: bool) -> tuple[int, int]:
        """The least and the most requests by which a file of so many bytes is read."""
        first = LIMITS.stream_range_bytes if stream else LIMITS.first_range_bytes
        return -(-size // LIMITS.largest_range_bytes), -(-size // first)

    def _open_readers(self) -> Iterator[RangeReader]:
        for index, source in enumerate(self._sources):
            self._opened = index + 1
            reader = source.open_ranges(self._window)
            if reader is not None:
                self._readers[index] = reader
                yield reader

    def __iter__(self) -> Iterator[Source]:
        return self

    def __next__(self) -> Source:
        index = self._next
        if index == self._count:
            raise StopIteration
        self._next += 1
        while self._window is not None and self._opened <= index and self._window.next_reader() is not None:
            pass
        if index - 1 in self._readers:
            self._readers.pop(index - 1).close()
        source, reader = self._sources[index], self._readers.get(index)
        return source if reader is None else source.replace(_prefetched=reader)

    def rewind(self) -> bool:
        """Start again with the first source, keeping its data; False if another source has been taken already."""
        if self._next > 1 or self._closed:
            return False
        self._next = 0
        return True

    def close(self) -> None:
        """Cancel all requests; a thread that waits for one gets an error."""
        self._closed = True
        self._next = self._count
        while self._readers:
            self._readers.popitem()[1].close()
