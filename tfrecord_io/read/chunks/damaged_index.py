"""Compute the index of a file whose headers are damaged: of the records that can be found."""

from __future__ import annotations

from functools import partial

import numpy as np

from tfrecord_io.engine.contract import Array
from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import TFRecordError
from tfrecord_io.format.framing import FRAME_BYTES
from tfrecord_io.index.record_index import RecordIndex
from tfrecord_io.read.chunks.block_walker import BlockWalker
from tfrecord_io.read.chunks.record_file import RecordFile
from tfrecord_io.read.chunks.recovery import Recovery
from tfrecord_io.storage.read.random_access import open_random_access
from tfrecord_io.storage.read.source import Source


def index_around_damage(
    recovery: Recovery, max_record_bytes: int, source: Source, file: int
) -> tuple[RecordIndex, Array]:
    """The index of the records and the damaged regions of a file, and which of its entries are records.

    Payloads are not checked: a record whose payload is damaged has a number.
    """
    with open_random_access(source) as opened:
        size = opened.size
    open_file = partial(RecordFile, compression=None)
    walker = BlockWalker(iter([source]), open_file, max_record_bytes=max_record_bytes, recover=recovery)
    walker.number = file - 1
    sizes, intact, end = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
    entries = 0
    try:
        while walker.load():
            error = walker.error
            if error is None:
                frames, fault = walker.frames(get_engine())
                error = None if fault is None else walker.fault_error(fault)
                walker.advance(len(frames.starts), frames.consumed)
                sizes.append(frames.lengths + FRAME_BYTES)
                intact.append(np.arange(entries, entries + len(frames.starts)))
                entries, end = entries + len(frames.starts), end + frames.consumed
            if error is None:
                walker.read_on()
                continue
            if not walker.recover(error):
                raise walker.fail(error)
            assert isinstance(error, TFRecordError)
            assert error.region is not None
            begin, end = end, size if error.region.end is None else error.region.end
            sizes.append(np.array([end - begin]))
            entries += 1
    finally:
        walker.close()
    return RecordIndex.of_sizes(np.concatenate(sizes)), np.concatenate(intact)
