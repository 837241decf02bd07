"""One file in pieces of about the same size, each of whole records, for several readers."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

from tfrecord_io.engine.contract import MAX_RECORD_BYTES
from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.index import find_indexes, read_index, scan_index
from tfrecord_io.read.resync import find_boundaries
from tfrecord_io.storage.read.random_access import RandomAccessFile, open_plain
from tfrecord_io.storage.read.source import Source

_EXACT_BYTES = 256 << 20  # a file of so many has its headers looked at, from the first to the last


def pieces(source: Source, n: int, *, max_record_bytes: int = MAX_RECORD_BYTES) -> list[Source]:
    """Cut a plain file into `n` pieces of about the same size.

    A piece is a `Source` with a ``span`` of bytes, to be read as any other. Each record is in one of them; where records are
    large, or the file is damaged, some pieces have none. Boundaries are those of the index beside the file. Without one, those
    of the headers from the start in a file of at most 256 MiB; in a larger one, and behind damage, `tfrecord_io.read.resync` finds them.
    Should one of those be none, the piece before it raises at its end: pieces that are all read without an error are the file.

    Only the first piece holds the file's first record, and with it an embedded schema: readers of pieces are told theirs.

    Parameters
    ----------
    source : Source
    n : int
    max_record_bytes : int
        Of one record; the less, the less is read of a file without an index.

    Returns
    -------
    list of Source
        `n` of them, in the order of the file; the source itself where `n` is 1.

    Raises
    ------
    ValueError
        The file is compressed: it can be read from its start only.
    CorruptRecordError
        There is an index beside it that does not fit.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> from tfrecord_io.storage import resolve_inputs
    >>> _ = tfr.write_tfrecord({"x": list(range(100))}, "hundred.tfrecord", embed_schema=False)
    >>> (source,) = resolve_inputs("hundred.tfrecord")
    >>> [piece.span for piece in pieces(source, 3)]
    [(0, 1020), (1020, 2010), (2010, 3000)]
    """
    if n < 1:
        raise ValueError(f"n={n}: expected at least 1 piece")
    if n == 1:
        return [source]
    with open_plain(source, "splitting") as ranges:
        positions = [ranges.size * i // n for i in range(1, n)]
        cuts = _cuts(source, ranges, positions, max_record_bytes)
        return [source.piece(begin, end) for begin, end in pairwise([0, *cuts, ranges.size])]


def _cuts(source: Source, ranges: RandomAccessFile, positions: list[int], max_record_bytes: int) -> list[int]:
    """The first boundary at or after each position."""
    (beside,) = find_indexes([source])
    index = None
    if beside is not None:
        index = read_index(beside, source, ranges)
    elif ranges.size <= _EXACT_BYTES:
        with suppress(CorruptRecordError):  # behind the damage there may be whole records
            index = scan_index(source.path, ranges, max_record_bytes)
    if index is None:
        return find_boundaries(ranges, get_engine(), positions, max_record_bytes)
    found: list[int] = index.bounds[index.bounds.searchsorted(positions)].tolist()
    return found
