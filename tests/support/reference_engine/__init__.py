"""The reference engine: protobuf and crc32c, plain and obviously right.

It shares no code with the native engine, whose oracle it is in the tests. ``TFRECORD_IO_ENGINE=reference_engine``
selects it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from reference_engine import frames, members
from reference_engine.decoder import ReferenceDecoder
from reference_engine.encoder import ReferenceEncoder
from tfrecord_io.bytes.engine.contract import Array, Engine, ObjectForm, PlainForm, Plan


class ReferenceKeyTable:
    """See `tfrecord_io.bytes.engine.contract.KeyTable`."""

    def __init__(self, data: Any, offsets: Any, valid: Any) -> None:
        self._rows: dict[bytes, int] = {}
        repeated = []
        for row, key in enumerate(_keys(data, offsets)):
            if (valid is None or valid[row]) and self._rows.setdefault(key, row) != row:
                repeated.append((self._rows[key], row))
        self.repeated, self._examples = len(repeated), repeated[:5]
        self.nbytes = 0  # unknown

    def find(self, key: bytes) -> int:
        return self._rows.get(key, -1)

    def examples(self) -> list[tuple[int, int]]:
        return self._examples


def _keys(data: Any, offsets: Any) -> list[bytes]:
    content = bytes(data)
    bounds = range(0, len(content) + 1, 8) if offsets is None else offsets.tolist()
    return [content[begin:end] for begin, end in pairwise(bounds)]


class ReferenceEngine(Engine):
    """See `tfrecord_io.bytes.engine.contract.Engine`."""

    name = "reference_engine"
    crc32c = staticmethod(frames.crc32c)
    crc32c_combine = staticmethod(frames.crc32c_combine)
    scan = staticmethod(frames.scan)
    find_header = staticmethod(frames.find_header)
    payloads = staticmethod(frames.payloads)
    frame = staticmethod(frames.frame)
    frame_extents = staticmethod(frames.frame_extents)
    frame_window = staticmethod(frames.frame_window)
    message_fields = staticmethod(members.message_fields)
    members = staticmethod(members.members)
    decoder = ReferenceDecoder
    encoder = ReferenceEncoder

    def key_table(self, data: Any, offsets: Any, valid: Any) -> ReferenceKeyTable:
        return ReferenceKeyTable(data, offsets, valid)

    def row_decoder(self, plan: Plan, forms: Sequence[ObjectForm]) -> None:
        return None

    def arrow_reader(self, forms: Sequence[PlainForm | None]) -> None:
        return None

    def memory(self) -> None:
        return None

    def gather_objects(self, cells: Array, nan_is_missing: bool) -> bool:
        """Leave all cells to Python."""
        return False

    def first_fit(self, lengths: Array, capacity: Array, bins: int) -> tuple[Array, list[int]]:
        room = [capacity] * bins
        bin_of_row, begins = np.zeros(len(lengths), np.int64), []
        for row, length in enumerate(lengths):
            fitting = [at for at in range(bins) if (length <= room[at]).all()]
            if not fitting:
                begins.append(row)
                room, fitting = [capacity] * bins, [0]
            bin_of_row[row] = fitting[0]
            room[fitting[0]] = room[fitting[0]] - length
        return bin_of_row, begins

    def exchange(self, draws: Sequence[Array], sizes: Array) -> tuple[Array, Array]:
        slots = list(range(sizes.sum()))
        drawn, first, following = [], 0, len(slots)
        for of_buffer, size in zip(draws, sizes.tolist(), strict=True):
            for number in of_buffer.tolist():
                slot = first + min(int(number * size), size - 1)
                drawn.append(slots[slot])
                slots[slot] = following
                following += 1
            first += size
        return np.array(drawn, np.int64), np.array(slots, np.int64)


ENGINE: Engine = ReferenceEngine()
