"""Record files made by hand, without the library: what a reader must return follows from the format alone."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

import crc32c

from strategies import blobs, entry, example, field, floats, group, int64s, tag, varint

__all__ = [
    "blobs",
    "common_prefix",
    "entry",
    "example",
    "field",
    "flip",
    "floats",
    "framed",
    "group",
    "header",
    "int64s",
    "masked",
    "tag",
    "varint",
    "written",
]


def masked(data: bytes) -> bytes:
    """The masked CRC32C of `data` as stored in a file (tensorflow/core/lib/hash/crc32c.h)."""
    crc = crc32c.crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def header(length: int) -> bytes:
    """Length and its CRC."""
    packed = struct.pack("<Q", length)
    return packed + masked(packed)


def framed(*payloads: bytes) -> bytes:
    return b"".join(header(len(payload)) + payload + masked(payload) for payload in payloads)


def written(path: Path, payloads: Iterable[bytes]) -> Path:
    """`path`, now a file of these records."""
    path.write_bytes(framed(*payloads))
    return path


def flip(path: Path, *offsets: int) -> Path:
    """`path`, now with one bit of these bytes flipped."""
    content = bytearray(path.read_bytes())
    for offset in offsets:
        content[offset] ^= 4
    path.write_bytes(content)
    return path


def common_prefix(a: bytes, b: bytes) -> int:
    """The length of what both begin with."""
    pairs = zip(a, b, strict=False)
    return next((at for at, (x, y) in enumerate(pairs) if x != y), min(len(a), len(b)))
