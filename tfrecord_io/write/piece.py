"""Framed records on their way to a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tfrecord_io.engine.contract import Array, Engine
from tfrecord_io.format.framing import FRAME_BYTES


@dataclass(frozen=True, slots=True)
class Piece:
    """Complete frames, and what a sink needs to know about them."""

    data: Any  # contiguous bytes
    records: int
    sizes: Array | None = None  # bytes of each frame
    crc32c: int | None = None  # of `data`
    parts: tuple[tuple[int, Piece], ...] = ()  # by shard, where shards are known in advance


def frame_sizes(data: Any, engine: Engine) -> Array:
    """The bytes of each frame of `data`, which has complete frames only."""
    frames, fault = engine.scan(data, check_crc=False)
    assert fault is None, "only whole frames are written"
    sizes: Array = frames.lengths + FRAME_BYTES
    return sizes
