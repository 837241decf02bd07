"""Objects of ``bytes``, made by the kernel: other threads copy the content of some while it makes the next ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from tfrecord_io._native import _kernel
from tfrecord_io.background import WorkerPool
from tfrecord_io.engine.contract import Array, BytesSlots
from tfrecord_io.options import MIB, cpu_count

_PIECE_BYTES = 8 * MIB  # of objects that are made at a time
_ROOM_BYTES = 128 * MIB  # of memory that is prepared for several pieces; each time takes about a millisecond
_LEAST_ROOM_BYTES = 8 * MIB
_OBJECT_BYTES, _SMALL_BYTES = 48, 512  # of an object besides its content; of one that Python's own heap is for
_POINTER_BYTES = 8


def bytes_objects(parts: Sequence[BytesSlots], threads: int = 1) -> Array:
    """See `tfrecord_io.engine.contract.Engine.bytes_objects`."""
    items = np.empty(sum(len(offsets) - 1 for _, offsets, _ in parts), object)
    pieces = [piece for part in parts for piece in _pieces(*part)]
    at = items.ctypes.data
    room = _Room(sum(map(_heap_bytes, pieces)))
    workers = min(threads, cpu_count(), len(pieces)) - 1
    with WorkerPool(workers, "bytes") as pool:
        tasks = []
        for data, offsets, valid in pieces:
            room.prepare(_heap_bytes((data, offsets, valid)))
            _kernel.make_bytes(at, valid, offsets, data)
            fill = partial(_kernel.fill_bytes, at, valid, offsets, data)
            at += _POINTER_BYTES * (len(offsets) - 1)
            if workers > 0:
                tasks.append(pool.submit(fill))
            else:
                fill()
        for task in tasks:
            task.result()
    return items


class _Room:
    """Memory of the heap for objects of `total` bytes, whose pages the kernel makes in advance."""

    def __init__(self, total: int) -> None:
        self._total, self._left = total, 0
        self._held: object = None

    def prepare(self, size: int) -> None:
        """Make room for the next objects, of `size` bytes."""
        if size > self._left and self._total >= _LEAST_ROOM_BYTES:
            self._held = None  # freed first
            self._left = min(self._total, max(size, _ROOM_BYTES))
            self._held = _kernel.heap_room(self._left)
        self._left -= size
        self._total -= size


def _heap_bytes(slots: BytesSlots) -> int:
    """The memory that objects take of the heap of the C library."""
    _, offsets, _ = slots
    count, size = len(offsets) - 1, int(offsets[-1] - offsets[0])
    return size + _OBJECT_BYTES * count if size >= _SMALL_BYTES * count else 0


def _pieces(data: Array, offsets: Array, valid: Array | None) -> Iterator[BytesSlots]:
    """Slots of about `_PIECE_BYTES`."""
    offsets = np.ascontiguousarray(offsets, np.int64)
    cuts = np.searchsorted(offsets, np.arange(offsets[0] + _PIECE_BYTES, offsets[-1], _PIECE_BYTES))
    for begin, end in pairwise([0, *cuts.tolist(), len(offsets) - 1]):
        yield data, offsets[begin : end + 1], None if valid is None else valid[begin:end]
