"""Objects of ``bytes``, made by the kernel: other threads copy the content of some while it makes the next ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from tfrecord_io._native import _kernel
from tfrecord_io.background import WorkerPool
from tfrecord_io.engine.contract import Array, BytesSlots
from tfrecord_io.options import cpu_count

_PIECE_BYTES = 16 * 2**20  # of objects that are made at a time
_POINTER_BYTES = 8
_KERNEL: Any = _kernel


def bytes_objects(parts: Sequence[BytesSlots], threads: int = 1) -> Array:
    """See `tfrecord_io.engine.contract.Engine.bytes_objects`."""
    items = np.empty(sum(len(offsets) - 1 for _, offsets, _ in parts), object)
    pieces = [piece for part in parts for piece in _pieces(*part)]
    at = items.ctypes.data
    workers = min(threads, cpu_count(), len(pieces)) - 1
    with WorkerPool(workers, "bytes") as pool:
        tasks = []
        for data, offsets, valid in pieces:
            _KERNEL.make_bytes(at, valid, offsets, data)
            fill = partial(_KERNEL.fill_bytes, at, valid, offsets, data)
            at += _POINTER_BYTES * (len(offsets) - 1)
            if workers > 0:
                tasks.append(pool.submit(fill))
            else:
                fill()
        for task in tasks:
            task.result()
    return items


def _pieces(data: Array, offsets: Array, valid: Array | None) -> Iterator[BytesSlots]:
    """Slots of about `_PIECE_BYTES`."""
    offsets = np.ascontiguousarray(offsets, np.int64)
    cuts = np.searchsorted(offsets, np.arange(offsets[0] + _PIECE_BYTES, offsets[-1], _PIECE_BYTES))
    for begin, end in pairwise([0, *cuts.tolist(), len(offsets) - 1]):
        yield data, offsets[begin : end + 1], None if valid is None else valid[begin:end]
