"""The numbers of a frame's header and footer, beside a plain computation of the checksum."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.bytes.format.framing import FrameHeader, crc32c


def plain_crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def plain_mask(crc: int) -> int:
    rotated = int(f"{crc:032b}"[-15:] + f"{crc:032b}"[:-15], 2)
    return (rotated + 0xA282EAD8) % 2**32


def header(length: int) -> bytes:
    content = struct.pack("<Q", length)
    return content + struct.pack("<I", plain_mask(plain_crc32c(content)))


def test_sizes() -> None:
    assert (FrameHeader.BYTES, FrameHeader.FOOTER_BYTES, FrameHeader.FRAME_BYTES) == (12, 4, 16)


@given(st.integers(0, 2**32 - 1), st.binary(max_size=40))
def test_checksums_are_masked_by_a_rotation_and_a_sum(crc: int, data: bytes) -> None:
    assert FrameHeader.mask_crc(crc) == plain_mask(crc)
    assert FrameHeader.mask_crc(crc32c(data)) == plain_mask(plain_crc32c(data))


@pytest.mark.parametrize("length", [0, 1, 0x0102030405060708, 2**63, 2**64 - 1])
def test_a_header_is_a_length_and_its_checksum(length: int) -> None:
    good = header(length)
    for data in (good, good + b"payload", memoryview(good)):
        assert FrameHeader(data).payload_length == length
        assert FrameHeader(data).frame_size == length + 16
    assert FrameHeader(good).is_intact
    assert FrameHeader(good + b"payload").is_intact
    assert not FrameHeader(good[:-1]).is_intact
    assert not FrameHeader(b"").is_intact
    for byte in range(12):
        assert not FrameHeader(good[:byte] + bytes([good[byte] ^ 1]) + good[byte + 1 :]).is_intact


def test_zeros_are_no_header() -> None:
    assert not FrameHeader(bytes(12)).is_intact
    assert not FrameHeader(bytes(100)).is_intact


def test_a_header_without_its_checksum_is_none_even_if_that_is_zero() -> None:
    content = struct.pack("<Q", length_with_checksum(0))
    assert FrameHeader(content + bytes(4)).is_intact
    assert not FrameHeader(content).is_intact


def length_with_checksum(masked: int) -> int:
    """A length below 2**32 with this masked checksum, as a sum of bits: CRC32C is linear over them."""
    rotated = (masked - 0xA282EAD8) % 2**32
    left = (rotated << 15 | rotated >> 17) % 2**32 ^ plain_crc32c(bytes(8))
    rows: list[tuple[int, int]] = []  # CRC and length, by descending top bit of the CRC
    for bit in range(32):
        crc, length = reduced(rows, plain_crc32c(struct.pack("<Q", 1 << bit)) ^ plain_crc32c(bytes(8)), 1 << bit)
        rows = sorted([*rows, (crc, length)], reverse=True)
    left, length = reduced(rows, left, 0)
    assert left == 0
    return length


def reduced(rows: list[tuple[int, int]], crc: int, length: int) -> tuple[int, int]:
    for row, sum_ in rows:
        if crc >> (row.bit_length() - 1) & 1:
            crc, length = crc ^ row, length ^ sum_
    return crc, length
