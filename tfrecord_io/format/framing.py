"""The frame around each record: u64 length, u32 masked CRC32C of it, payload, u32 masked CRC32C of the payload.

All little-endian; see tensorflow/core/lib/io/record_writer.h.
"""

from __future__ import annotations

from typing import Any


def crc32c(data: Any, value: int = 0) -> int:
    """The CRC-32C of `data`, appended to what gave `value`."""
    from numpy import frombuffer, uint8  # not at import: the stub of the package is written where nothing is installed

    from tfrecord_io._native import _kernel

    return _kernel.crc32c(frombuffer(data, uint8), value)


HEADER_BYTES = 12  # u64 length, u32 masked CRC32C of it
FOOTER_BYTES = 4  # u32 masked CRC32C of the payload
FRAME_BYTES = HEADER_BYTES + FOOTER_BYTES

_MASK_DELTA = 0xA282EAD8  # tensorflow/core/lib/hash/crc32c.h


def mask_crc(crc: int) -> int:
    """Mask a CRC32C as TFRecord stores it."""
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def payload_length(header: Any) -> int:
    """The length of the payload that follows a header, whose CRC is not checked."""
    return int.from_bytes(bytes(header[:8]), "little")


def frame_size(header: Any) -> int:
    """The size of the whole frame that begins with a header, whose CRC is not checked."""
    return payload_length(header) + FRAME_BYTES


def is_record_header(head: bytes) -> bool:
    """Whether `head` begins with a length and its checksum: with a probability of 2**-32 that other data does.

    >>> is_record_header(bytes.fromhex("0000000000000000 29039807")), is_record_header(b"twelve bytes")
    (True, False)
    """
    stored = int.from_bytes(head[8:HEADER_BYTES], "little")
    return len(head) >= HEADER_BYTES and mask_crc(crc32c(head[:8])) == stored
