"""Plan random access: the schema of all files by their first records, and the records around damaged headers.

Tests: tests/read/test_random_access.py and tests/read/test_random_access_skip.py.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial

import numpy as np

from tfrecord_io.base import MIB, ScanOptions, Selection
from tfrecord_io.bytes import Array, FrameHeader, RecordCounts
from tfrecord_io.columns import EmbeddedSchema
from tfrecord_io.errors import TFRecordError
from tfrecord_io.read.chunks.block_walker import BlockWalker, RecordFile
from tfrecord_io.read.chunks.chunk import ChunkDecoder, first_record_settings
from tfrecord_io.read.chunks.embedded_schemas import SchemaRevision
from tfrecord_io.read.chunks.recovery import Recovery
from tfrecord_io.read.index.indexed_files import IndexedFiles
from tfrecord_io.read.index.record_index import RecordIndex
from tfrecord_io.read.record_checks import check_record_type
from tfrecord_io.read.resolve_schema import plan_scan
from tfrecord_io.read.scan import Scan
from tfrecord_io.store import RandomAccessFile, Source, Sources

_CHUNK_BYTES = 64 * MIB  # of first records that are read together


def plan_records(
    files: IndexedFiles, options: ScanOptions, selection: Selection = Selection.ALL, part: Scan | None = None
) -> Scan:
    """Plan under the embedded schemas of all files: a later one may have more columns than the first.

    A `part` of a dataset has its schema.
    """
    if part is not None:
        scan = part.with_sources(files.sources).with_options(threads=options.threads, on_error=options.on_error)
        scan = scan.with_required_columns()
        scan.refuse_conflicts()
        return scan
    embedded: EmbeddedSchema | None = None
    while True:
        planned = plan_scan(Sources(files.sources), options, selection, embedded=embedded)
        scan = planned.close().with_required_columns()
        scan.refuse_conflicts()
        if scan.settings.as_bytes:
            return scan
        revision = _check_first_records(files, scan)
        if revision is None:
            return scan
        revision.warn_if_late()
        embedded = revision.embedded


def _check_first_records(files: IndexedFiles, scan: Scan) -> SchemaRevision | None:
    """Check the embedded schemas in the first record of each file, and that any of these records has a feature."""
    settings, check = first_record_settings(scan.options), scan.embedded_check
    counts = RecordCounts()
    nonempty = [file for file in range(len(files.sources)) if files.count(file)]
    for numbers in files.chunks(files.first[nonempty], _CHUNK_BYTES):
        for file, data in zip(files.locate(numbers)[0].tolist(), files.frames(numbers), strict=True):
            decoder = ChunkDecoder(settings, check)
            result = decoder.feed(data, files.sources[file].path, 0, 0)  # damage is reported when the record is read
            if result.error is not None:
                raise result.error
            if result.revision is not None:
                return result.revision
            counts += decoder.engine_decoder.counts
    check_record_type(counts, scan.sources, scan.options)
    return None


def index_around_damage(
    recovery: Recovery, options: ScanOptions, source: Source, file: int
) -> tuple[RecordIndex, Array]:
    """The index of the records and the damaged regions of a file, and which of its entries are records.

    Payloads are not checked: a record whose payload is damaged has a number.
    """
    with RandomAccessFile.open(source) as opened:
        size = opened.size
    sizes, intact, end = [np.empty(0, np.int64)], [np.empty(0, np.bool_)], 0

    def recover(walker: BlockWalker, error: Exception) -> bool:
        nonlocal end
        if not recovery(walker, error):
            return False
        assert isinstance(error, TFRecordError)
        assert error.region is not None
        begin, end = end, size if error.region.end is None else error.region.end
        sizes.append(np.array([end - begin]))
        intact.append(np.zeros(1, np.bool_))
        return True

    open_file = partial(RecordFile, compression=None)
    limit, check_crc = options.limits.record_bytes, options.check_crc
    walker = BlockWalker(iter([source]), open_file, max_record_bytes=limit, recover=recover, check_crc=check_crc)
    walker.number = file - 1
    with closing(walker):
        for frames in walker.intact_frames(check_crc=False):
            sizes.append(frames.lengths + FrameHeader.FRAME_BYTES)
            intact.append(np.ones(len(frames.starts), np.bool_))
            end += frames.consumed
    return RecordIndex.from_sizes(np.concatenate(sizes)), np.flatnonzero(np.concatenate(intact))
