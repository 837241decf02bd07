"""Split files into byte ranges of about the same size, for several readers, and find the records of a range.

A range has the records that begin in it: from the first record boundary at or after its first byte up to that at or
after its end. To split takes no request, as sizes are known. The boundaries are found when a range is read, by the
bytes of the file alone (`tfrecord_io.read.find_boundaries`), so that the readers of neighbouring ranges find the same
one without a word between them. The records of a range must end at its end, else reading it is an error: ranges that
are all read without an error are the file.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import partial
from itertools import chain, pairwise

import numpy as np

from tfrecord_io.base import LIMITS, ordered
from tfrecord_io.bytes import CODECS, get_engine
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.read.find_boundaries import find_boundaries
from tfrecord_io.store import RandomAccessFile, Source, Sources

_NEAR = 0.1  # of a piece or a file, whichever is larger: a boundary so near to the edge of the file is that edge,
_MOST_MOVED = 0.25  # of a piece, at most
_THREADS = 4  # that wait for a bucket


def split_sources(sources: Sources, n: int, *, compression: str | None = CODECS.INFER) -> list[Sources]:
    """Distribute files over at most `n` runs of about the same number of bytes, in order.

    A plain file, or a piece of one that begins and ends with records, is split where a run ends inside it, but not near
    its edge; file objects and files that are compressed, by `compression` or their name, stay whole. If the size of a
    file is unknown, all files count as equally large.

    >>> import tfrecord_io as tfr
    >>> from tfrecord_io.store.paths.resolve import resolve_inputs
    >>> _ = tfr.write_tfrecord({"x": list(range(100))}, "hundred.tfrecord", embed_schema=False)
    >>> runs = split_sources(resolve_inputs("hundred.tfrecord"), 3)
    >>> [source.span for run in runs for source in run]
    [(0, 1000), (1000, 2000), (2000, 3000)]
    >>> [source.span for run in runs for source in align_sources(run)]
    [(0, 1020), (1020, 2010), (2010, 3000)]
    """
    sizes = sources.sizes
    if sizes is None or not sizes.any():
        sizes = np.ones(len(sources), np.int64)
    edges = np.concatenate([[0], np.cumsum(sizes)])
    total = int(edges[-1])
    n = min(n, max(total, 1))
    bounds: list[int] = []
    for number in range(1, n if total else 1):
        position = total * number // n
        at = int(edges.searchsorted(position, side="right")) - 1
        nearest = min(edges[at : at + 2].tolist(), key=lambda edge: abs(position - edge))
        near = min(_NEAR * max(total / n, int(sizes[at])), _MOST_MOVED * total / n)
        is_whole = abs(position - nearest) <= near or not _is_splittable(sources[at], compression)
        bounds.append(nearest if is_whole else position)
    of_files = np.searchsorted(bounds, edges[:-1], side="right")  # the run that each file begins in
    is_cut = np.searchsorted(bounds, edges[1:], side="left") > of_files
    runs: list[list[Sources]] = [[] for _ in range(n)]
    # Files in a row of one run, and a file that is cut, begin a stretch.
    begins = np.flatnonzero(is_cut | np.append(True, is_cut[:-1] | (np.diff(of_files) > 0)))
    for first, last in pairwise([*begins.tolist(), len(sources)]):
        if not is_cut[first]:
            runs[of_files[first]].append(sources[first:last])
            continue
        begin, end = edges[first : first + 2].tolist()
        cuts = sorted(set(bounds[bisect_right(bounds, begin) : bisect_left(bounds, end)]))
        for part_begin, part_end in pairwise([begin, *cuts, end]):
            part = sources[first].byte_range(part_begin - begin, part_end - begin)
            runs[bisect_right(bounds, part_begin)].append(Sources([part]))
    return [run[0] if len(run) == 1 else Sources(chain.from_iterable(run)) for run in runs if run]


def _is_splittable(source: Source, compression: str | None) -> bool:
    if not source.size or source.is_file_object or source.pipe is not None or source.file_bytes is not None:
        return False
    return compression is None or (compression == CODECS.INFER and CODECS.of_path(source.path) is None)


def align_sources(sources: Sequence[Source], max_record_bytes: int = LIMITS.MAX_RECORD_BYTES) -> tuple[Source, ...]:
    """Move the byte ranges of files to record boundaries, without those in which no record begins.

    A file that turns out to be compressed belongs as a whole to its first range. CorruptRecordError if a file was
    changed since it was split, or its boundaries cannot be found.
    """
    threads = _THREADS if any(source.remote for source in sources) else 1
    calls = (partial(_align_source, source, max_record_bytes) for source in sources if source.file_bytes is not None)
    aligned_parts = ordered(calls, threads, "boundaries")
    parts = [source if source.file_bytes is None else next(aligned_parts) for source in sources]
    return tuple(part for part in parts if part is not None)


def _align_source(source: Source, max_record_bytes: int) -> Source | None:
    """A byte range moved to record boundaries; None if no record begins in it."""
    assert source.span is not None
    whole, expected = source.whole_file(), source.file_bytes
    with RandomAccessFile.open(whole) as file:
        if file.size != expected:
            reason = f"the file has {file.size} bytes, but had {expected} when it was split"
            raise CorruptRecordError(reason, path=source.path, expected=expected, got=file.size, hint="split it again")
        threads = 1 if source.remote is None else len(source.span)
        begin, end = find_boundaries(file, get_engine(), source.span, max_record_bytes, threads=threads)
    if begin > end:
        reason = f"the boundary of byte {source.begin} is {begin}, behind that of a later byte, {end}"
        advice = "the payloads have headers of records: read the file as a whole"
        raise CorruptRecordError(reason, path=source.path, offset=begin, hint=advice)
    if (begin, end) == (0, expected):
        return whole
    return whole.piece(begin, end) if begin < end else None
