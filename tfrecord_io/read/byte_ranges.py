"""Split files into byte ranges of about the same size, for several readers, and find the records of a range.

A range has the records that begin in it: from the first record boundary at or after its first byte up to that at or
after its end. To split takes no request, as sizes are known. The boundaries are found when a range is read, by the
bytes of the file alone (`tfrecord_io.read.find_boundaries`), so that the readers of neighbouring ranges find the same
one without a word between them. The records of a range must end at its end, else reading it is an error: ranges that
are all read without an error are the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import overload

import numpy as np

from tfrecord_io.base import LIMITS, ordered
from tfrecord_io.bytes import CODECS, Array, get_engine
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.read.find_boundaries import IntactRecords, find_boundaries
from tfrecord_io.store import RandomAccessFile, Source, Sources

_NEAR = 0.1  # of a piece or a file, whichever is larger: a boundary so near to the edge of the file is that edge,
_MOST_MOVED = 0.25  # of a piece, at most
_BOUNDS_AT_ONCE = 1 << 16
_THREADS = 4  # that wait for a bucket


class SplitFiles(Sequence[Sources]):
    """Files, split into at most `n` runs of about the same number of bytes, in order; each is made when it is taken.

    A plain file, or a piece of one that begins and ends with records, is split where a run ends inside it, but not near
    its edge; file objects and files that are compressed, by `compression` or their name, stay whole. If the size of a
    file is unknown, all files count as equally large. A run takes about 8 bytes until it is taken.

    >>> import tfrecord_io as tfr
    >>> from tfrecord_io.store.paths.resolve import resolve_inputs
    >>> _ = tfr.write_tfrecord({"x": list(range(100))}, "hundred.tfrecord", embed_schema=False)
    >>> runs = SplitFiles(resolve_inputs("hundred.tfrecord"), 3)
    >>> [source.span for run in runs for source in run]
    [(0, 1000), (1000, 2000), (2000, 3000)]
    >>> [source.span for run in runs for source in align_sources(run)]
    [(0, 1020), (1020, 2010), (2010, 3000)]
    """

    def __init__(self, sources: Sources, n: int, *, compression: str | None = CODECS.INFER) -> None:
        sizes = sources.sizes
        if sizes is None or not sizes.any():
            sizes = np.ones(len(sources), np.int64)
        self.sources = sources
        # Positions in the files, joined: where each file begins and the last one ends, and the same of the runs.
        self._edges = np.concatenate([[0], np.cumsum(sizes)])
        self._bounds = self._find_bounds(min(n, max(int(self._edges[-1]), 1)), compression)

    def __len__(self) -> int:
        return len(self._bounds) - 1

    @overload
    def __getitem__(self, number: int) -> Sources: ...
    @overload
    def __getitem__(self, number: slice) -> list[Sources]: ...
    def __getitem__(self, number: int | slice) -> Sources | list[Sources]:
        if isinstance(number, slice):
            return [self[at] for at in range(*number.indices(len(self)))]
        number = range(len(self))[number]
        bounds = self._bounds[number : number + 2]
        first, last = self._edges[:-1].searchsorted(bounds, side="left").tolist()
        if number == len(self) - 1:
            last = len(self.sources)  # with the empty files at the end
        begin, end = bounds.tolist()
        # Of the files that begin in the run, the last may go on beyond it; the file before them may reach into it.
        is_continued = first > 0 and begin < self._edges[first]
        is_cut = last > first and end < self._edges[last]
        parts = [Sources([self._part(first - 1, begin, end)])] if is_continued else []
        parts.append(self.sources[first : last - is_cut])
        if is_cut:
            parts.append(Sources([self._part(last - 1, begin, end)]))
        parts = [part for part in parts if len(part)]
        return parts[0] if len(parts) == 1 else Sources(chain.from_iterable(parts))

    def largest_parts(self) -> list[Source]:
        """The largest part of each file in one of the runs."""
        begins, ends = self._edges[:-1], self._edges[1:]
        cuts = np.flatnonzero(self._bounds.searchsorted(ends, "left") > self._bounds.searchsorted(begins, "right"))
        largest = {}
        for at in cuts.tolist():
            begin, end = self._edges[at : at + 2].tolist()
            first, last = self._bounds.searchsorted([begin, end], side="right").tolist()
            bounds = np.concatenate([[begin], self._bounds[first:last], [end]])
            part = int(np.diff(bounds).argmax())
            largest[at] = self._part(at, *bounds[part : part + 2].tolist())
        return [largest.get(at, source) for at, source in enumerate(self.sources)]

    def _part(self, at: int, begin: int, end: int) -> Source:
        """The part of a file between two positions."""
        of_file = self._edges[at : at + 2]
        begin, end = (np.clip([begin, end], *of_file) - of_file[0]).tolist()
        return self.sources[at].byte_range(begin, end)

    def _find_bounds(self, n: int, compression: str | None) -> Array:
        """Where runs begin and the last one ends: at positions that divide the bytes evenly, or the nearest file."""
        edges, total = self._edges, int(self._edges[-1])
        bounds = np.empty(n + 1, np.int64)
        bounds[0], count = 0, 1
        for start in range(1, n, _BOUNDS_AT_ONCE):
            numbers = np.arange(start, min(n, start + _BOUNDS_AT_ONCE))
            found = np.unique(
                self._bounds_near(total // n * numbers + total % n * numbers // n, total / n, compression)
            )
            found = found[(found > bounds[count - 1]) & (found < total)]
            bounds[count : count + len(found)] = found
            count += len(found)
        bounds[count] = edges[-1]
        bounds.resize(count + 1, refcheck=False)
        return bounds

    def _bounds_near(self, positions: Array, piece: float, compression: str | None) -> Array:
        """Positions, each moved to an edge of its file if the edge is near or the file stays whole."""
        files = self._edges.searchsorted(positions, side="right") - 1
        begins, ends = self._edges[files], self._edges[files + 1]
        nearest = np.where(positions - begins <= ends - positions, begins, ends)
        near = np.minimum(_NEAR * np.maximum(piece, ends - begins), _MOST_MOVED * piece)
        is_inside = np.abs(positions - nearest) > near
        numbers, at = np.unique(files[is_inside], return_inverse=True)
        splittable = np.array([_is_splittable(self.sources[file], compression) for file in numbers.tolist()], bool)
        is_inside[is_inside] = splittable[at]
        return np.where(is_inside, positions, nearest)


def _is_splittable(source: Source, compression: str | None) -> bool:
    if not source.size or source.is_file_object or source.pipe is not None or source.file_bytes is not None:
        return False
    return compression is None or (compression == CODECS.INFER and CODECS.of_path(source.path) is None)


class KnownBoundaries:
    """Record boundaries by path, version and byte, and the intact records after the last boundary."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str, int], int] = {}
        self._file: tuple[str, str] | None = None  # path and version of that of the records
        self._records = IntactRecords()

    def records_of(self, path: str, version: str) -> IntactRecords:
        """The intact records of a file, which replace the records of the file before."""
        if self._file != (path, version):
            self._file, self._records = (path, version), IntactRecords()
        return self._records


def align_sources(
    sources: Sequence[Source], max_record_bytes: int = LIMITS.MAX_RECORD_BYTES, known: KnownBoundaries | None = None
) -> tuple[Source, ...]:
    """Move the byte ranges of files to record boundaries, without those in which no record begins.

    Boundaries that are `known` are not searched for again; those found are added. A file that turns out to be
    compressed belongs as a whole to its first range. CorruptRecordError if a file was changed since it was split, or
    its boundaries cannot be found.
    """
    threads = _THREADS if any(source.remote for source in sources) else 1
    known = KnownBoundaries() if known is None else known
    calls = (
        partial(_align_source, source, max_record_bytes, known) for source in sources if source.file_bytes is not None
    )
    aligned_parts = ordered(calls, threads, "boundaries")
    parts = [source if source.file_bytes is None else next(aligned_parts) for source in sources]
    return tuple(part for part in parts if part is not None)


def _align_source(source: Source, max_record_bytes: int, known: KnownBoundaries) -> Source | None:
    """A byte range moved to record boundaries; None if no record begins in it."""
    assert source.span is not None
    whole, expected = source.whole_file(), source.file_bytes
    with RandomAccessFile.open(whole) as file:
        if file.size != expected:
            reason = f"the file has {file.size} bytes, but had {expected} when it was split"
            raise CorruptRecordError(reason, path=source.path, expected=expected, got=file.size, hint="split it again")
        threads = 1 if source.remote is None else len(source.span)
        path, version = source.path, f"{file.version} {file.identity}"
        unknown = [position for position in source.span if (path, version, position) not in known.found]
        records = known.records_of(path, version) if threads == 1 else None
        offsets = find_boundaries(file, get_engine(), unknown, max_record_bytes, threads=threads, records=records)
    known.found.update(zip([(path, version, position) for position in unknown], offsets, strict=True))
    begin, end = (known.found[path, version, position] for position in source.span)
    if begin > end:
        reason = f"the boundary of byte {source.begin} is {begin}, after that of a later byte, {end}"
        advice = "the payloads have headers of records: read the file as a whole"
        raise CorruptRecordError(reason, path=source.path, offset=begin, hint=advice)
    if (begin, end) == (0, expected):
        return whole
    return whole.piece(begin, end) if begin < end else None
