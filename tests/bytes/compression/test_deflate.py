"""Deflate by ISA-L: a block gives the same bytes wherever in memory the state of its stream lies."""

from __future__ import annotations

import random
import zlib
from functools import cache

import crc32c
import pytest

from tfrecord_io.bytes.compression import deflate

isal_zlib = pytest.importorskip("isal.isal_zlib", reason="without isal, zlib compresses")

HASHES = 1 << 15  # entries of the table of ISA-L's levels 1 and 2


def hash_of(four: bytes) -> int:
    """The hash by which ISA-L finds earlier bytes."""
    return (crc32c.crc32c(four, 0xFFFFFFFF) ^ 0xFFFFFFFF) % HASHES


@cache
def bytes_by_hash() -> dict[int, bytes]:
    """Four bytes for each hash."""
    return {hash_of(four): four for four in (number.to_bytes(4, "big") for number in range(2 * HASHES))}


def block_that_meets(address: int) -> bytes:
    """A block whose first bytes have the hash of a stream's address, and are met again at once."""
    first = bytes_by_hash()[hash_of((address >> 16 & 0xFFFFFFFF).to_bytes(4, "little"))]
    return (first + random.Random(0).randbytes(60)) * 12


@pytest.mark.parametrize("size", [18, 100, deflate._FIRST_PIECE - 1, deflate._FIRST_PIECE, 700])
@pytest.mark.parametrize("level", [1, 2, 3])
def test_bytes_do_not_depend_on_addresses(level: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    create = isal_zlib.compressobj
    for _ in range(4):
        streams = [create(level, zlib.DEFLATED, -zlib.MAX_WBITS) for _ in range(2)]  # at different addresses
        block = memoryview(block_that_meets(id(streams[0])))[:size]
        made = set()
        for stream in streams:
            monkeypatch.setattr(isal_zlib, "compressobj", lambda *args, stream=stream: stream)
            made.add(deflate.deflate_by_isal(block, level))
        assert len(made) == 1
        assert zlib.decompressobj(-zlib.MAX_WBITS).decompress(made.pop()) == block
