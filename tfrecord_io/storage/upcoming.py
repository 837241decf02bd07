"""Files that are read one after the other: those to come are asked for while one is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tfrecord_io.storage.sources import Source

if TYPE_CHECKING:
    from tfrecord_io.storage.ranges import RangeReader


class Upcoming:
    """The sources in order, each with what was read of it ahead. Local files are given as they are.

    Parameters
    ----------
    sources : list of Source
    stream : bool
        All will be read; else as much is asked for ahead as reading on shows to be wanted.

    Examples
    --------
    >>> from tfrecord_io.storage.paths import resolve_inputs
    >>> import io
    >>> with Upcoming(resolve_inputs([io.BytesIO(b"a"), io.BytesIO(b"b")])) as upcoming:
    ...     [source.path for source in upcoming]
    ['<BytesIO>', '<BytesIO>']
    """

    def __init__(self, sources: list[Source], *, stream: bool = True) -> None:
        self._sources = sources
        self._next = 0
        self._readers: dict[int, RangeReader] = {}
        self._begun = 0  # sources that were looked at for reading ahead
        self._current: RangeReader | None = None
        self._window: Any = None
        if any(source.remote for source in sources):
            from tfrecord_io.storage.ranges import Window  # imports fsspec

            self._window = Window(self._more(), stream=stream)

    def _more(self) -> Iterator[RangeReader]:
        for index, source in enumerate(self._sources):
            self._begun = index + 1
            reader = source.open_ranges(self._window)
            if reader is not None:
                self._readers[index] = reader
                yield reader

    def __iter__(self) -> Iterator[Source]:
        return self

    def __next__(self) -> Source:
        index = self._next
        if index == len(self._sources):
            raise StopIteration
        self._next += 1
        while self._window is not None and self._begun <= index and self._window.next_reader() is not None:
            pass
        self._current = self._readers.pop(index, None)
        source = self._sources[index]
        return source if self._current is None else replace(source, _ahead=self._current)

    def close(self) -> None:
        """Cancel what was asked for; a thread that waits for it is told."""
        readers = [*self._readers.values(), *([] if self._current is None else [self._current])]
        self._readers.clear()
        self._next = len(self._sources)
        for reader in readers:
            reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
