"""The frame around each record: u64 length, u32 masked CRC32C of it, payload, u32 masked CRC32C of the payload.

All little-endian; see tensorflow/core/lib/io/record_writer.h.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from tfrecord_io.bytes.format.feature_types import Array


def crc32c(data: Any, value: int = 0) -> int:
    """The CRC-32C of `data`, appended to what gave `value`."""
    # Not at import: the stub of the package is written where nothing is installed.
    from crc32c import crc32c as of_package

    view = memoryview(data)
    return of_package(view.cast("B") if view.nbytes else b"", value)


_MASK_DELTA = 0xA282EAD8  # tensorflow/core/lib/hash/crc32c.h


class FrameHeader(bytes):
    """What is before a payload: u64 length, u32 masked CRC32C of it; or other bytes, at which one may be.

    >>> FrameHeader(bytes.fromhex("0000000000000000 29039807")).is_intact, FrameHeader(b"twelve bytes").is_intact
    (True, False)
    """

    BYTES: ClassVar = 12
    FOOTER_BYTES: ClassVar = 4  # after the payload: u32 masked CRC32C of it
    FRAME_BYTES: ClassVar = BYTES + FOOTER_BYTES  # of a frame besides its payload

    @classmethod
    def make(cls, length: int) -> Self:
        """The header of a payload of `length` bytes.

        >>> FrameHeader.make(300).is_intact, FrameHeader.make(300).payload_length
        (True, 300)
        """
        begin = length.to_bytes(8, "little")
        return cls(begin + cls._masked_crc32c(begin).to_bytes(4, "little"))

    @staticmethod
    def mask_crc(crc: int) -> int:
        """Mask a CRC32C as TFRecord stores it."""
        return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF

    @classmethod
    def _masked_crc32c(cls, data: bytes) -> int:
        from numpy import frombuffer, uint8

        from tfrecord_io.bytes._native import (
            _kernel,  # every read looks for a header first: `crc32c` takes 20 ms to import
        )

        return cls.mask_crc(_kernel.crc32c(frombuffer(data, uint8), 0))

    @property
    def payload_length(self) -> int:
        """The length of the payload that follows; the CRC is not checked."""
        return int.from_bytes(self[:8], "little")

    @staticmethod
    def payload_lengths(data: Array, begins: Array) -> Array:
        """The lengths that the headers at some offsets of a buffer of bytes state, as uint64; CRCs are not checked."""
        from numpy import arange

        lengths: Array = data[begins[:, None] + arange(8)].view("<u8")[:, 0]
        return lengths

    @property
    def frame_size(self) -> int:
        """The size of the whole frame; the CRC is not checked."""
        return self.payload_length + self.FRAME_BYTES

    @property
    def is_intact(self) -> bool:
        """True if it begins with a length and its checksum, as other data does with a probability of 2**-32."""
        stored = int.from_bytes(self[8 : self.BYTES], "little")
        return len(self) >= self.BYTES and self._masked_crc32c(self[:8]) == stored


_SAMPLED_RECORDS = 8
_RIGHT = "right"
_OTHER_CHECKSUMS: dict[str, tuple[Callable[[Any], int], ...]] = {  # what writers store instead
    "0": (lambda data: 0,),
    "CRC-32C without TFRecord's mask": (crc32c,),
    "CRC-32, that of zlib, instead of CRC-32C": (zlib.crc32, lambda data: FrameHeader.mask_crc(zlib.crc32(data))),
}
_CHECKSUMS = {_RIGHT: (lambda data: FrameHeader.mask_crc(crc32c(data)),), **_OTHER_CHECKSUMS}


def wrong_checksums(data: Any) -> str | None:
    """Describe the checksums of the first records at the start of `data`, if all have the same wrong kind; else None.

    >>> wrong_checksums(bytes.fromhex("0100000000000000 00000000 78 00000000"))
    'all checksums of its first record are 0'
    """
    view = memoryview(data)
    view = view.cast("B") if view.nbytes else view
    lengths = payloads = {_RIGHT, *_OTHER_CHECKSUMS}
    records = at = 0
    while records < _SAMPLED_RECORDS and len(view) - at >= FrameHeader.BYTES:
        begin = at + FrameHeader.BYTES
        end = begin + FrameHeader(view[at:begin]).payload_length
        is_whole = end + FrameHeader.FOOTER_BYTES <= len(view)
        if not is_whole and records:
            break
        lengths = _fitting_kinds(lengths, view[at : at + 8], view[at + 8 : begin])
        if is_whole:
            payloads = _fitting_kinds(payloads, view[begin:end], view[end : end + FrameHeader.FOOTER_BYTES])
        records, at = records + 1, end + FrameHeader.FOOTER_BYTES
    if not records or not lengths or not payloads or not any(view[:at]):
        return None
    of_length, of_payload = (_RIGHT if _RIGHT in kinds else min(kinds) for kinds in (lengths, payloads))
    if of_length != _RIGHT and of_length in payloads:
        of_payload = of_length
    if of_length == of_payload == _RIGHT:
        return None
    which = "its first record" if records == 1 else f"its first {records} records"
    if of_length == of_payload:
        return f"all checksums of {which} are {of_length}"
    parts = (("lengths", of_length), ("payloads", of_payload))
    return f"the checksums of {which}: {', '.join(f'those of {name} are {kind}' for name, kind in parts)}"


def _fitting_kinds(kinds: set[str], data: Any, stored: Any) -> set[str]:
    """Filter kinds of checksums by the stored checksum of `data`."""
    value = int.from_bytes(stored, "little")
    return {kind for kind in kinds if any(compute(data) == value for compute in _CHECKSUMS[kind])}
