"""TFRecord framing: u64 length, its masked CRC32C, payload, its masked CRC32C, all little-endian.

Source: tensorflow/core/lib/io/record_writer.h and crc32c.h (the mask).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from crc32c import crc32c as of_package

from tfrecord_io.base.options.tuned_limits import LIMITS
from tfrecord_io.bytes.engine.contract import Array, Checks, Fault, FaultCode, Frames
from tfrecord_io.bytes.format.framing import FrameHeader


def byte_view(data: Any) -> memoryview:
    """The bytes of anything with a buffer; a memoryview without elements cannot be cast."""
    view = memoryview(data)
    return view.cast("B") if view.nbytes else memoryview(b"")


def crc32c(data: Any, value: int = 0) -> int:
    """CRC32C (Castagnoli), unmasked, of `data` appended to what gave `value`."""
    return int(of_package(byte_view(data), value))


def masked_crc32c(data: Any) -> int:
    """Masked CRC-32C as TFRecord stores it; not computed by the kernel, with which this engine is compared."""
    return FrameHeader.mask_crc(crc32c(data))


def crc32c_combine(first: int, second: int, second_bytes: int) -> int:
    """The CRC of two parts from the CRC of each: a CRC is linear in the bits before it.

    Appending n zero bytes to data with the CRC c gives a CRC that differs from that of n zero bytes by M(c), where the
    matrix M is that of one zero byte, to the power of n. Row i of a matrix is the image of bit i.
    """
    zero = crc32c(b"\0")
    rows = [crc32c(b"\0", 1 << bit) ^ zero for bit in range(32)]
    while second_bytes:
        if second_bytes & 1:
            first = _times(rows, first)
        rows = [_times(rows, row) for row in rows]
        second_bytes >>= 1
    return first ^ second


def _times(rows: Sequence[int], value: int) -> int:
    product = 0
    for bit, row in enumerate(rows):
        product ^= row if value >> bit & 1 else 0
    return product


@dataclass(frozen=True, slots=True)
class Framed:
    """The extent of one record: offset of its header, start and length of its payload."""

    offset: int
    start: int
    length: int

    @property
    def end(self) -> int:
        return self.start + self.length + FrameHeader.FOOTER_BYTES


def read_header(
    data: memoryview, offset: int, record: int, max_record_bytes: int, *, check_length: bool = True
) -> Framed | Fault:
    """Read the header at `offset`; the fault is TRUNCATED_HEADER, LENGTH_CRC or LENGTH_TOO_LARGE."""
    if len(data) - offset < FrameHeader.BYTES:
        return Fault(FaultCode.TRUNCATED_HEADER, record, offset, expected=FrameHeader.BYTES, got=len(data) - offset)
    length, stored = struct.unpack_from("<QI", data, offset)
    computed = masked_crc32c(data[offset : offset + 8])
    if check_length and stored != computed:
        return Fault(FaultCode.LENGTH_CRC, record, offset, expected=computed, got=stored)
    if length > max_record_bytes:
        return Fault(FaultCode.LENGTH_TOO_LARGE, record, offset, expected=max_record_bytes, got=length)
    return Framed(offset, offset + FrameHeader.BYTES, length)


def check_whole(data: memoryview, framed: Framed, record: int) -> Fault | None:
    """Check that the whole record is in the data; the fault is TRUNCATED_PAYLOAD or TRUNCATED_FOOTER."""
    left = len(data) - framed.start
    if left < framed.length:
        return Fault(FaultCode.TRUNCATED_PAYLOAD, record, framed.offset, expected=framed.length, got=left)
    left -= framed.length
    if left < FrameHeader.FOOTER_BYTES:
        return Fault(FaultCode.TRUNCATED_FOOTER, record, framed.offset, expected=FrameHeader.FOOTER_BYTES, got=left)
    return None


def check_payload(data: memoryview, framed: Framed, record: int) -> Fault | None:
    """Check the payload of a complete record; the fault is PAYLOAD_CRC."""
    (stored,) = struct.unpack_from("<I", data, framed.end - FrameHeader.FOOTER_BYTES)
    computed = masked_crc32c(data[framed.start : framed.end - FrameHeader.FOOTER_BYTES])
    if stored == computed:
        return None
    return Fault(FaultCode.PAYLOAD_CRC, record, framed.offset, framed.length, expected=computed, got=stored)


def is_truncated(fault: Fault) -> bool:
    """True if the data ends inside the record, which is not a fault where more data may follow."""
    return fault.code <= FaultCode.TRUNCATED_FOOTER


def scan(
    data: Any,
    begin: int = 0,
    *,
    max_records: int = -1,
    checks: Checks = Checks.ALL,
    max_record_bytes: int = LIMITS.MAX_RECORD_BYTES,
    final: bool = True,
) -> tuple[Frames, Fault | None]:
    """Find the records of `data` from byte `begin` on; see `contract.Engine.scan`."""
    view = byte_view(data)
    records: list[Framed] = []
    fault: Fault | None = None
    at = begin
    while at < len(view) and len(records) != max_records:
        framed = read_header(view, at, len(records), max_record_bytes, check_length=checks is not Checks.NONE)
        if isinstance(framed, Fault):
            fault = framed
            break
        fault = check_whole(view, framed, len(records))
        if fault is None and checks is Checks.ALL:
            fault = check_payload(view, framed, len(records))
        if fault is not None:
            break
        records.append(framed)
        at = framed.end
    if fault is not None and is_truncated(fault) and not final:
        fault = None
    starts = np.array([f.start for f in records], dtype=np.int64)
    lengths = np.array([f.length for f in records], dtype=np.int64)
    return Frames(starts, lengths, at - begin), fault


def find_header(data: Any, begin: int = 0, *, max_record_bytes: int = LIMITS.MAX_RECORD_BYTES) -> int:
    """The offset of the first record header from `begin` on, or −1; see `contract.Engine.find_header`."""
    view = byte_view(data)
    at = begin
    while at + FrameHeader.BYTES <= len(view) and isinstance(read_header(view, at, 0, max_record_bytes), Fault):
        at += 1
    return at if at + FrameHeader.BYTES <= len(view) else -1


def payloads(data: Any, frames: Frames) -> Array:
    """Join the payloads of `data`; see `contract.Engine.payloads`."""
    view = byte_view(data)
    extents = zip(frames.starts.tolist(), frames.lengths.tolist(), strict=True)
    parts = [view[start : start + length] for start, length in extents]
    return np.frombuffer(b"".join(parts), np.uint8)


def frame_extents(data: Any, starts: Array, lengths: Array, parts: int) -> Array:
    """Put frames around payloads of several parts; see `contract.Engine.frame_extents`."""
    view = byte_view(data)
    extents = zip(starts.tolist(), lengths.tolist(), strict=True)
    contents = [bytes(view[start : start + length]) for start, length in extents]
    rows = [b"".join(contents[at : at + parts]) for at in range(0, len(contents), parts)]
    return np.frombuffer(frame(rows), np.uint8)


def frame_window(data: Any, starts: Array, lengths: Array, skip: int, out: Array) -> int:
    """Write frames without their first bytes; see `contract.Engine.frame_window`."""
    view, framed = byte_view(data), bytearray()
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        header = struct.pack("<Q", length)
        framed += (
            header
            + struct.pack("<I", masked_crc32c(header))
            + view[start : start + length]
            + bytes(FrameHeader.FOOTER_BYTES)
        )
    window = framed[skip : skip + len(out)]
    out[: len(window)] = window
    return len(window)


def frame(payloads: Sequence[Any]) -> bytes:
    """Put a frame around each payload and join them."""
    parts: list[bytes] = []
    for payload in payloads:
        content = bytes(byte_view(payload))
        length = struct.pack("<Q", len(content))
        parts += (length, struct.pack("<I", masked_crc32c(length)), content, struct.pack("<I", masked_crc32c(content)))
    return b"".join(parts)
