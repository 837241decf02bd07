"""Find and read the index files of data files; an index is used only after a check that it matches its file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import CorruptRecordError, printable
from tfrecord_io.format.framing import HEADER_BYTES, frame_size
from tfrecord_io.index.record_index import REWRITE, SUFFIXES, RecordIndex
from tfrecord_io.storage.paths.sidecars import find_sidecars, modified
from tfrecord_io.storage.read.random_access import RandomAccessFile, open_random_access
from tfrecord_io.storage.read.source import Source

_ADVICE = f"{REWRITE}, or delete it"


def find_indexes(sources: Sequence[Source]) -> list[Source | None]:
    """The index file of each data file; None if there is none."""
    return find_sidecars(sources, SUFFIXES)


def read_index(index_source: Source, source: Source, file: RandomAccessFile) -> RecordIndex:
    """Read an index file that matches its data file.

    It matches the data file `source`, opened as `file`, if its text is valid, it ends where the data file ends, the
    first and the last record have a header of the right size at their offset, and it is not older than the data file.
    Else this is a CorruptRecordError that names both files.
    """

    def mismatch(reason: str, expected: Any = None, got: Any = None, advice: str = _ADVICE) -> CorruptRecordError:
        text = f"the index does not match {printable(source.path)}: {reason}"
        return CorruptRecordError(text, path=index_source.path, expected=expected, got=got, advice=advice)

    with open_random_access(index_source) as opened:
        index = RecordIndex.parse(opened.read(0, opened.size).tobytes(), index_source.path)
    written, changed = modified(index_source), modified(source)
    if written is not None and changed is not None and written < changed:
        reason = f"it is {changed - written:.3g} s older, so the file may have been rewritten"
        raise mismatch(reason, advice=f"{_ADVICE}; if both were only copied, touch it")
    if index.end != file.size:
        reason = f"its last record ends at byte {index.end}, the file has {file.size}"
        raise mismatch(reason, index.end, file.size)
    for record in sorted({0, len(index) - 1}) if len(index) else ():
        offset, end = int(index.bounds[record]), int(index.bounds[record + 1])
        header = file.read(offset, offset + HEADER_BYTES)
        _, fault = get_engine().scan(header, check_crc=False, final=False)
        if fault is not None:
            raise mismatch(f"there is no record header at byte {offset}, the offset of record {record}")
        size = frame_size(header)
        if size != end - offset:
            reason = f"record {record} at byte {offset} has {size} bytes, not {end - offset}"
            raise mismatch(reason, end - offset, size)
    return index
