"""Reading damaged compressed files on behind the damage."""

from __future__ import annotations

import gzip
import io
import random
import zlib
from typing import Any

import pytest

from packed import packed
from records import common_prefix
from tfrecord_io.base import LIMITS
from tfrecord_io.bytes.compression import CODECS
from tfrecord_io.bytes.compression.codec import CERTAIN_BYTES
from tfrecord_io.bytes.compression.recovering_stream import RecoveringStream
from tfrecord_io.bytes.compression.stream import PlainStream

pytestmark = [pytest.mark.fault(26), pytest.mark.fault(28), pytest.mark.fault(30)]
RNG = random.Random(5)
DATA = b"".join(b"line %d " % i + RNG.randbytes(60).hex().encode() + b"\n" for i in range(50_000))  # six blocks


def read(
    content: bytes, name: str = "gzip", step: int = 100_000, raw: Any = None, max_ratio: float | None = None
) -> tuple[bytes, list[RecoveringStream.Gap]]:
    codec = CODECS.find(name)
    assert codec is not None
    stream = RecoveringStream(PlainStream(raw or io.BytesIO(content), "a", b"", len(content)), codec, max_ratio)
    out, buffer = bytearray(), memoryview(bytearray(step))
    while n := stream.readinto(buffer):
        out += buffer[:n]
    return bytes(out), stream.gaps


@pytest.mark.parametrize("name", CODECS.names())
@pytest.mark.parametrize("step", [1000, 1 << 20])
def test_an_intact_file_has_no_gaps(name: str, step: int) -> None:
    assert read(packed(name, DATA), name, step) == (DATA, [])


@pytest.mark.parametrize("name", [codec.name for codec in CODECS if codec.block_bytes])
def test_the_blocks_behind_damage_are_read(name: str) -> None:
    """One damaged block of 1 MiB is lost, but for its intact start."""
    content = bytearray(packed(name, DATA))
    at = len(content) // 2
    content[at : at + 4096] = b"\xff" * 4096
    got, gaps = read(bytes(content), name)
    (gap,) = gaps
    assert abs(gap.begin - at) < 64 << 10  # of LZ4, the start of a block of 64 KiB
    assert gap.end - gap.begin < LIMITS.compression_block_bytes
    before = common_prefix(got, DATA)
    behind = common_prefix(got[::-1], DATA[::-1])
    assert behind % LIMITS.compression_block_bytes >= len(DATA) % LIMITS.compression_block_bytes
    assert len(DATA) - before - behind <= LIMITS.compression_block_bytes
    assert before + behind > 4 * LIMITS.compression_block_bytes


@pytest.mark.parametrize("name", CODECS.names())
def test_the_members_behind_damage_are_read(name: str) -> None:
    members = [packed(name, DATA[i : i + 100_000]) for i in range(0, 500_000, 100_000)]
    damaged = bytearray(members[2])
    damaged[1000:1100] = b"\xff" * 100
    got, gaps = read(b"".join([*members[:2], bytes(damaged), *members[3:]]), name)
    assert got.startswith(DATA[:200_000])
    assert got.endswith(DATA[300_000:500_000])
    assert len(gaps) in (1, 2)  # invalid data, or bytes that do not match the checksum


def test_members_of_64_kib_are_read_one_by_one() -> None:
    """As bgzip writes them."""
    members = [gzip.compress(DATA[i : i + 60_000]) for i in range(0, 3_000_000, 60_000)]
    damaged = members[20][:500] + members[20][600:]
    got, _ = read(b"".join([*members[:20], damaged, *members[21:]]))
    assert got.startswith(DATA[: 20 * 60_000])
    assert got.endswith(DATA[21 * 60_000 : 3_000_000])


@pytest.mark.parametrize(("name", "trailer"), [("gzip", 8), ("zlib", 4)])
def test_a_wrong_checksum_loses_nothing(name: str, trailer: int) -> None:
    content = bytearray(packed(name, DATA))
    content[-1] ^= 1
    got, gaps = read(bytes(content), name)
    assert got == DATA
    assert [(gap.begin, gap.end, gap.offset) for gap in gaps] == [(len(content) - trailer, len(content), len(DATA))]
    assert "mismatch" in gaps[0].reason


@pytest.mark.parametrize("name", ["gzip", "zlib"])
def test_a_damaged_header_loses_nothing(name: str) -> None:
    content = bytearray(packed(name, DATA))
    content[:2] = b"\xff\xff"
    got, gaps = read(bytes(content), name)
    assert got == DATA
    assert gaps[0].begin == 0


@pytest.mark.parametrize("cut", [0, 1, 5, 11, 500, 100_000])
def test_a_truncated_file_is_read_to_its_end(cut: int) -> None:
    content = packed("gzip", DATA)[:cut]
    got, gaps = read(content)
    assert DATA.startswith(got)
    assert len(gaps) == (cut > 0)
    assert got or cut < 500


@pytest.mark.parametrize("junk", [b"junk", b"\x1f\x8b\x08\0junk", b"\0\0\xff\xff" * 5, bytes(100) + b"x"])
def test_other_data_after_the_last_member_is_a_gap(junk: bytes) -> None:
    content = packed("gzip", DATA[:1000])
    got, gaps = read(content + junk)
    assert got.startswith(DATA[:1000])
    assert gaps
    assert gaps[-1].end == len(content) + len(junk)


def test_blocks_that_refer_to_lost_bytes_are_not_mistaken() -> None:
    """pigz begins blocks at bytes, too, but lets them refer to the block before: those bytes are unknown."""
    deflate = zlib.compressobj(wbits=31)
    steps = range(0, 500_000, 50_000)
    parts = [deflate.compress(DATA[i : i + 50_000]) + deflate.flush(zlib.Z_SYNC_FLUSH) for i in steps]
    content = bytearray(b"".join(parts) + deflate.flush())
    content[100_000:100_100] = b"\xff" * 100
    got, gaps = read(bytes(content))
    assert gaps
    assert common_prefix(got, DATA) >= 100_000


def test_a_file_that_cannot_seek_ends_at_the_damage() -> None:
    class Pipe(io.RawIOBase):
        def __init__(self, content: bytes) -> None:
            self._inner = io.BytesIO(content)

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            return self._inner.readinto(buffer)

    content = bytearray(packed("gzip", DATA))
    content[1_000_000:1_010_000] = b"\xff" * 10_000
    got, gaps = read(bytes(content), raw=Pipe(bytes(content)))
    assert DATA.startswith(got[:-100_000])
    assert len(gaps) == 1


def test_what_expands_too_much_ends_in_a_gap() -> None:
    content = packed("gzip", DATA[:1000] + bytes(10_000_000))
    got, gaps = read(content, max_ratio=2)
    (gap,) = gaps
    assert (gap.offset, gap.end) == (len(got), len(content))
    assert 0 <= gap.begin < len(content) < gap.offset


def test_inner_data_is_shorter_than_what_is_certain() -> None:
    """A stored block has at most 64 KiB, and the one of zstd 128 KiB."""
    assert CERTAIN_BYTES > 2 * (128 << 10)


def test_every_flipped_bit_gives_an_error_or_the_same_bytes() -> None:
    data = DATA[:3000]
    content = packed("gzip", data)
    for bit in range(0, 8 * len(content), 7):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        got, gaps = read(bytes(damaged))
        assert gaps or got == data, bit
