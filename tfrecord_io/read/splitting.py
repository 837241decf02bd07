"""Split files into pieces of about the same size, each of whole records, for several readers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

from tfrecord_io.engine.contract import MAX_RECORD_BYTES
from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import CorruptRecordError, StaleIndexWarning, warn
from tfrecord_io.index import find_indexes, scan_index, usable_index
from tfrecord_io.options import LIMITS
from tfrecord_io.read.resync import find_boundaries
from tfrecord_io.storage.read.random_access_file import RandomAccessFile, codec_of, open_plain, open_random_access
from tfrecord_io.storage.read.source import Source


def pieces(source: Source, n: int, *, max_record_bytes: int = MAX_RECORD_BYTES) -> list[Source]:
    """Split a plain file into `n` pieces of about the same size.

    A piece is a `Source` with a ``span`` of bytes, and is read like any other. Each record is in exactly one piece;
    where records are large, or the file is damaged, some pieces are empty. Boundaries are taken from the file's index;
    without one, from the headers in a file of at most 256 MiB; in a larger one, and after damage,
    `tfrecord_io.read.resync` finds them. If a boundary is wrong, the piece before it raises at its end:
    pieces that are all read without an error are the file.

    Only the first piece contains the file's first record, and with it an embedded schema: pass a schema to read the
    others.

    Parameters
    ----------
    source : Source
    n : int
    max_record_bytes : int
        Of one record; a smaller limit means that less is read of a file without an index.

    Returns
    -------
    list of Source
        `n` of them, in the order of the file; the source itself where `n` is 1.

    Raises
    ------
    ValueError
        The file is compressed: it can only be read from its start.
    CorruptRecordError
        The file's index does not match it.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> from tfrecord_io.storage.paths.resolve import resolve_inputs
    >>> _ = tfr.write_tfrecord({"x": list(range(100))}, "hundred.tfrecord", embed_schema=False)
    >>> (source,) = resolve_inputs("hundred.tfrecord")
    >>> [piece.span for piece in pieces(source, 3)]
    [(0, 1020), (1020, 2010), (2010, 3000)]
    """
    if n < 1:
        raise ValueError(f"n={n}: expected at least 1 piece")
    if n == 1:
        return [source]
    with open_plain(source, "splitting") as file:
        return _pieces(source, file, [file.size * i // n for i in range(1, n)], max_record_bytes)


def split_sources(
    sources: Sequence[Source], n: int, *, max_record_bytes: int = MAX_RECORD_BYTES
) -> list[tuple[Source, ...]]:
    """Distribute files over at most `n` runs of about the same number of bytes, in order.

    A plain file is split where a run ends inside it; compressed files, file objects and pieces stay whole. If the size
    of a file is unknown, all files count as equally large.

    Raises
    ------
    ValueError
        `n` is less than 1.
    CorruptRecordError
        A file's index does not match it.
    """
    if n < 1:
        raise ValueError(f"n={n}: expected at least 1 piece")
    sizes = [source.size or 0 for source in sources]
    if None in [source.size for source in sources] or not sum(sizes):
        sizes = [1] * len(sources)
    total, begin = sum(sizes), 0
    runs: list[list[Source]] = [[] for _ in range(n)]
    for source, size in zip(sources, sizes, strict=True):
        ends = [total * i // n - begin for i in range(1, n) if begin < total * i // n < begin + size]
        for part in _split_plain(source, ends, max_record_bytes) if ends and source.size else [source]:
            part_size = size if part is source else part.size or 0
            runs[min(n - 1, (2 * begin + part_size) * n // (2 * total))].append(part)
            begin += part_size
    return [tuple(run) for run in runs if run]


def _split_plain(source: Source, positions: list[int], max_record_bytes: int) -> list[Source]:
    if source.is_file_object or source.span is not None:
        return [source]
    with open_random_access(source) as file:
        if codec_of(file, source.path) is not None:
            return [source]
        return [piece for piece in _pieces(source, file, positions, max_record_bytes) if piece.size]


def _pieces(source: Source, file: RandomAccessFile, positions: list[int], max_record_bytes: int) -> list[Source]:
    boundaries = _boundaries(source, file, positions, max_record_bytes)
    return [source.piece(begin, end) for begin, end in pairwise([0, *boundaries, file.size])]


def _boundaries(source: Source, file: RandomAccessFile, positions: list[int], max_record_bytes: int) -> list[int]:
    """The first record boundary at or after each position."""
    (sidecar,) = find_indexes([source])
    index = None
    if sidecar is not None:
        index, text = usable_index(sidecar, source, file)
        if text:
            warn(text, StaleIndexWarning)
    if index is None and file.size <= LIMITS.exact_split_bytes:
        with suppress(CorruptRecordError):  # there may be intact records after the damage
            index = scan_index(source.path, file, max_record_bytes)
    if index is None:
        return find_boundaries(file, get_engine(), positions, max_record_bytes)
    boundaries: list[int] = index.bounds[index.bounds.searchsorted(positions)].tolist()
    return boundaries
