"""Files that are read one after the other: those to come are asked for while one is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tfrecord_io.storage.read.source import Source

if TYPE_CHECKING:
    from tfrecord_io.storage.read.range_reader import RangeReader


class SourcePrefetcher:
    """The sources in order, each with what was read of it ahead. Local files are given as they are.

    A remote one stays open until the next is taken, whoever has closed what its ``open`` gave.

    Parameters
    ----------
    sources : list of Source
    stream : bool
        All will be read; else as much is asked for ahead as reading on shows to be wanted.
    heads : bool
        Only the first bytes of each will be read.

    Examples
    --------
    >>> from tfrecord_io.storage.paths.resolve import resolve_inputs
    >>> import io
    >>> with SourcePrefetcher(resolve_inputs([io.BytesIO(b"a"), io.BytesIO(b"b")])) as upcoming:
    ...     [source.path for source in upcoming]
    ['<BytesIO>', '<BytesIO>']
    """

    def __init__(self, sources: list[Source], *, stream: bool = True, heads: bool = False) -> None:
        self._sources = sources
        self._next = 0
        self._readers: dict[int, RangeReader] = {}
        self._begun = 0  # sources that were looked at for reading ahead
        self._closed = False
        self._window: Any = None
        if any(source.remote for source in sources):
            from tfrecord_io.storage.read.range_reader import Window  # imports fsspec

            self._window = Window(self._more(), stream=stream, heads=heads)

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
        if index - 1 in self._readers:
            self._readers.pop(index - 1).close()
        source, reader = self._sources[index], self._readers.get(index)
        return source if reader is None else replace(source, _ahead=reader)

    def rewind(self) -> bool:
        """Begin anew with the first source, if it is still the one that is read; what came of it is not lost."""
        if self._next > 1 or self._closed:
            return False
        self._next = 0
        return True

    def close(self) -> None:
        """Cancel what was asked for; a thread that waits for it is told."""
        self._closed = True
        self._next = len(self._sources)
        while self._readers:
            self._readers.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
