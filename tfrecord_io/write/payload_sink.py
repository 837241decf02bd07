"""The payloads of the records that a `Writer` makes, as an Arrow array in place of a file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.engine.select import get_engine
from tfrecord_io.schema.embedded import field_bytes
from tfrecord_io.write.frame_sink import Piece, Sink, WrittenFile

_LARGE = 2**31  # bytes for which offsets have 64 bits


class PayloadSink(Sink):
    """Keeps the payloads of records, for an array of them."""

    path, compression = "<records>", None
    keeps_schema = True  # the caller has the columns of data without rows

    def __init__(self) -> None:
        self._engine = get_engine()
        self._pieces: list[Piece] = []

    def begin(self, schema: bytes) -> bytes:
        return field_bytes(schema)

    def prepare(self, data: Any, records: int, row: int) -> Piece:
        frames, fault = self._engine.scan(data, check_crc=False)
        assert fault is None, "only whole frames are written"
        return Piece(self._engine.payloads(data, frames), records, frames.lengths)

    def write(self, piece: Piece) -> None:
        self._pieces.append(piece)
        self.records += piece.records

    def take(self) -> pa.Array:
        """The payloads that were written since the last call, in order."""
        pieces, self._pieces = self._pieces, []
        sizes = np.concatenate([np.empty(0, np.int64), *(piece.sizes for piece in pieces)])
        offsets = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        values = np.concatenate([np.empty(0, np.uint8), *(piece.data for piece in pieces)])
        type_, dtype = (pa.binary(), np.int32) if offsets[-1] < _LARGE else (pa.large_binary(), np.int64)
        buffers = [None, pa.py_buffer(offsets.astype(dtype)), pa.py_buffer(values)]
        return pa.Array.from_buffers(type_, len(sizes), buffers, 0)

    def finish(self) -> None:
        """Nothing is buffered."""

    def _publish(self) -> tuple[WrittenFile, ...]:
        return ()

    def publish_indexes(self) -> None:
        """There are none."""

    def _abort(self) -> None:
        self._pieces.clear()
