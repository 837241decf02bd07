"""Indexes that stand beside files: found, read, and held against the file before they are believed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import CorruptRecordError, printable
from tfrecord_io.format.framing import HEADER_BYTES, frame_size
from tfrecord_io.index.record_index import SUFFIXES, Index
from tfrecord_io.storage.paths.sidecars import find_sidecars, modified
from tfrecord_io.storage.read.random_access import RandomAccessFile, open_random_access
from tfrecord_io.storage.read.source import Source

_WRITE_ANEW = "write it anew (tfr index), or delete it"


def find_indexes(sources: Sequence[Source]) -> list[Source | None]:
    """The index beside each file, None where there is none."""
    return find_sidecars(sources, SUFFIXES)


def read_index(beside: Source, source: Source, ranges: RandomAccessFile) -> Index:
    """The index in the file `beside`, which fits `source`.

    It fits if its text is sound, it ends where the file ends, the headers of the first and the last record stand where it
    says, and it is no older than the file.

    Parameters
    ----------
    beside, source : Source
    ranges : Ranges
        Of `source`.

    Raises
    ------
    CorruptRecordError
        It does not; the message names both.
    """
    with open_random_access(beside) as opened:
        index = Index.parse(opened.read(0, opened.size).tobytes(), beside.path)
    written, changed = modified(beside), modified(source)
    if written is not None and changed is not None and written < changed:
        older = f"it is {changed - written:.3g} s older, so the file may have been written anew"
        raise _misfit(beside, source, older, advice=f"{_WRITE_ANEW}; if both were only copied, touch it")
    if index.end != ranges.size:
        raise _misfit(
            beside,
            source,
            f"its last record ends at byte {index.end}, the file has {ranges.size}",
            index.end,
            ranges.size,
        )
    for record in sorted({0, len(index) - 1}) if len(index) else ():
        _check_header(index, record, beside, source, ranges)
    return index


def _check_header(index: Index, record: int, beside: Source, source: Source, ranges: RandomAccessFile) -> None:
    offset, end = int(index.bounds[record]), int(index.bounds[record + 1])
    header = ranges.read(offset, offset + HEADER_BYTES)
    _, fault = get_engine().scan(header, check_crc=False, final=False)
    if fault is not None:
        raise _misfit(beside, source, f"no record's header stands at byte {offset}, where it has record {record}")
    size = frame_size(header)
    if size != end - offset:
        raise _misfit(
            beside, source, f"record {record} at byte {offset} has {size} bytes, not {end - offset}", end - offset, size
        )


def _misfit(
    beside: Source, source: Source, reason: str, expected: Any = None, got: Any = None, advice: str = _WRITE_ANEW
) -> CorruptRecordError:
    text = f"the index does not fit {printable(source.path)}: {reason}"
    return CorruptRecordError(text, path=beside.path, expected=expected, got=got, advice=advice)
