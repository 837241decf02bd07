"""Compress and decompress deflate (RFC 1951), in gzip and zlib, by isal or, on platforms without its wheel, zlib.

Header and trailer are parsed here and not by the library, whose checksum error would replace the last bytes, which may
be intact records.

Tests: tests/bytes/compression/test_compression.py and tests/bytes/compression/test_compressed_files.py.
"""

from __future__ import annotations

import re
import struct
import zlib
from abc import abstractmethod
from functools import partial
from typing import Any, ClassVar

from tfrecord_io.base import LIMITS
from tfrecord_io.bytes.compression.block_compressor import BlockCompressor, Trailer
from tfrecord_io.bytes.compression.codec import Codec, Compressor, Damage
from tfrecord_io.bytes.format.framing import FrameHeader

try:
    from isal import isal_zlib
except ImportError:  # the same interface, about half as fast
    fast: Any = zlib
else:
    fast = isal_zlib

_ERRORS: tuple[type[Exception], ...] = (fast.error, zlib.error)
FLUSH = rb"(?P<block>\x00\x00\xff\xff)"  # the end of an empty stored block, behind which the next one begins at a byte
_LAST = b"\x03\x00"  # an empty final block
_WINDOW = 32 << 10  # how far deflate looks back
_ISAL_LEVELS = range(1, 4)  # isal's level 0 compresses, zlib's does not
_FIRST_PIECE = 289  # isal's look-ahead and one byte: `deflate_by_isal` says why


class DeflateDecompressor:
    """Decompresses one member: header, deflate data, trailer. The codec defines header and trailer.

    A `resumed` one begins with a deflate block: the bytes before it, to which blocks of other compressors may refer,
    are taken as zeros, and the trailer is skipped.
    """

    def __init__(self, codec: DeflateCodec, *, exact: bool, resumed: bool = False) -> None:
        self.eof = False
        self.unused = b""
        self.hungry = True
        self.lossy = not exact
        self._codec = codec
        self._trailer = Trailer(codec.trailer.size) if resumed else codec.trailer()
        self._head: bytes | None = None if resumed else b""  # header received so far; None once it is complete
        self._tail: bytes | None = None  # trailer received so far; None before it
        self._rest = b""  # unused compressed bytes
        window = {"zdict": bytes(_WINDOW)} if resumed else {}
        self._inflate: Any = (ExactInflate if exact else fast.decompressobj)(-zlib.MAX_WBITS, **window)

    @property
    def held(self) -> int:
        return len(self._head or b"") + len(self._tail if self._tail is not None else self._rest)

    def decompress(self, data: bytes, limit: int) -> bytes:
        if self._head is not None:
            self._head += data
            end = self._codec.header_end(self._head)
            if end is None:
                return b""
            data, self._head = self._head[end:], None
        if self._tail is None:
            out = self._decompress_data(self._rest + data if self._rest else data, limit)
            if out or self._tail is None:
                return out
        else:
            self._tail += data
        tail, size = self._tail, self._trailer.size
        self.hungry = len(tail) < size
        if not self.hungry:
            self._trailer.check(tail[:size])
            self.eof, self.unused, self._tail = True, tail[size:], b""
        return b""

    def _decompress_data(self, data: bytes, limit: int) -> bytes:
        try:
            out: bytes = self._inflate.decompress(data, limit)
        except _ERRORS:
            raise Damage("invalid deflate data", lossy=self.lossy) from None
        self._trailer.add(out)
        if self._inflate.eof:
            self._rest, self._tail = b"", self._inflate.unused_data
            self.hungry = len(self._tail) < self._trailer.size
        else:
            self._rest = self._inflate.unconsumed_tail
            self.hungry = not self._rest and len(out) < limit
        return out


class ExactInflate:
    """A ``zlib.decompressobj`` that returns the bytes before invalid data, and raises in the next call.

    The library drops the output of a call that fails. So after a failure the call is repeated on a copy, with less and
    less data and room, until it succeeds. One byte may still be lost, as zlib looks at the code after it.
    """

    def __init__(self, wbits: int, **window: bytes) -> None:
        self._inner = zlib.decompressobj(wbits, **window)
        self._broken: zlib.error | None = None
        self._bad = b""  # from the invalid code on

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    @property
    def unconsumed_tail(self) -> bytes:
        return self._inner.unconsumed_tail if self._broken is None else self._bad

    def decompress(self, data: bytes, limit: int) -> bytes:
        if self._broken is not None:
            raise self._broken
        before = self._inner.copy()
        try:
            return self._inner.decompress(data, limit)
        except zlib.error as error:
            self._broken = error
        out = []
        # the longest valid part of the data; then one byte, which can produce several matches of up to 258 bytes
        for step, room in [(step, 0) for step in _halves(len(data))] + [(1, room) for room in _halves(4096)]:
            trial = before.copy()
            try:
                out.append(trial.decompress(data[:step], room))
            except zlib.error:
                continue
            before, data = trial, trial.unconsumed_tail + data[step:]
        self._bad = data
        return b"".join(out)


def _halves(n: int) -> list[int]:
    steps = []
    while n > 1:
        n = (n + 1) // 2
        steps.append(n)
    return steps


def deflate_by_zlib(block: memoryview, level: int) -> bytes:
    """Compress a block that ends at a byte boundary."""
    compressor = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    return compressor.compress(block) + compressor.flush(zlib.Z_SYNC_FLUSH)


def deflate_by_isal(block: memoryview, level: int) -> bytes:
    """Compress a block that ends at a byte boundary, to bytes that depend on nothing but the block and the level.

    Level 1 or 2 of ISA-L 2.32.1 hashes a register that was never set, after the first byte of a stream
    (``.write_first_byte`` in igzip_icf_body_h1_gr_bt.asm). The register holds the address of the stream's state, so
    for a few addresses a match is missed or found. The hash is not used if the first call has one byte more than
    ISA-L looks ahead. A block without so many bytes is compressed by zlib.
    """
    if len(block) < _FIRST_PIECE:
        return deflate_by_zlib(block, level)
    compressor = fast.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    pieces = compressor.compress(block[:_FIRST_PIECE]), compressor.compress(block[_FIRST_PIECE:])
    return b"".join((*pieces, compressor.flush(zlib.Z_SYNC_FLUSH)))


class DeflateCodec(Codec):
    """The common part of gzip and zlib."""

    levels = range(10)
    block_bytes = LIMITS.compression_block_bytes
    tensorflow = True
    trailer: ClassVar[type[Trailer]]

    @abstractmethod
    def header(self, level: int | None) -> bytes:
        """The header of a member."""

    @abstractmethod
    def header_end(self, head: bytes) -> int | None:
        """The length of the header at the start of `head`; None if it is incomplete. Raises `Damage`."""

    def decompressor(self, *, exact: bool = False) -> DeflateDecompressor:
        return DeflateDecompressor(self, exact=exact)

    def resume(self, *, exact: bool = False) -> DeflateDecompressor:
        return DeflateDecompressor(self, exact=exact, resumed=True)

    def new_compressor(self, level: int | None, threads: int) -> Compressor:
        """See `Codec.compressor`. The default is isal's level, which is near zlib's 6 in size and much faster."""
        if fast is not zlib and (level is None or level in _ISAL_LEVELS):
            deflate = partial(deflate_by_isal, level=fast.Z_DEFAULT_COMPRESSION if level is None else level)
        else:
            deflate = partial(deflate_by_zlib, level=zlib.Z_DEFAULT_COMPRESSION if level is None else level)
        return BlockCompressor(deflate, self.header(level), self.trailer(), threads, end=_LAST)


_MAGIC = b"\x1f\x8b\x08"  # ID1, ID2, CM = deflate
_FIXED = 10  # magic, flags, time, extra flags, system
_HCRC, _EXTRA, _NAME, _COMMENT, _RESERVED = 0x02, 0x04, 0x08, 0x10, 0xE0
_LONGEST_HEADER = 1 << 20  # names and comments have no limit in the format


class GzipTrailer(Trailer):
    """CRC-32, and length modulo 2**32."""

    size = 8

    def __init__(self) -> None:
        self.crc = 0
        self.length = 0

    def add(self, data: Any) -> None:
        self.crc = fast.crc32(data, self.crc)
        self.length += len(data)

    def pack(self) -> bytes:
        return struct.pack("<II", self.crc, self.length & 0xFFFFFFFF)

    def check(self, stored: bytes) -> None:
        crc, length = struct.unpack("<II", stored)
        if crc != self.crc:
            raise Damage(f"gzip CRC mismatch (stored 0x{crc:08x}, computed 0x{self.crc:08x})")
        if length != self.length & 0xFFFFFFFF:
            raise Damage(f"gzip length mismatch (stored {length}, got {self.length & 0xFFFFFFFF})")


class Gzip(DeflateCodec):
    name = "gzip"
    aliases = ("gz",)
    suffixes = (".gz", ".gzip")
    padding = b"\0"  # gzip(1) skips zeros, with which tapes and some object stores pad blocks
    trailer = GzipTrailer
    resumption = re.compile(rb"(?P<member>(?=\x1f\x8b\x08[\x00-\x1f]))|" + FLUSH, re.DOTALL)
    header_bytes = _FIXED

    def accepts(self, head: bytes) -> bool:
        return _MAGIC.startswith(head[:3]) and not (len(head) > 3 and head[3] & _RESERVED)

    def header(self, level: int | None) -> bytes:
        return _MAGIC + bytes(6) + b"\xff"  # no time and no system: equal data gives equal files

    def header_end(self, head: bytes) -> int | None:
        if not _MAGIC.startswith(head[:3]):
            raise Damage("no gzip header")
        if len(head) < _FIXED:
            return None
        flags = head[3]
        if flags & _RESERVED:
            raise Damage("a gzip header with reserved flags")
        end = self._variable_end(head, flags)
        if end is None or end > len(head):
            if len(head) > _LONGEST_HEADER:
                raise Damage("a gzip header of over 1 MiB")
            return None
        if flags & _HCRC and int.from_bytes(head[end - 2 : end], "little") != fast.crc32(head[: end - 2]) & 0xFFFF:
            raise Damage("gzip header CRC mismatch")
        return end

    @staticmethod
    def _variable_end(head: bytes, flags: int) -> int | None:
        end = _FIXED
        if flags & _EXTRA:
            if len(head) < end + 2:
                return None
            end += 2 + int.from_bytes(head[end : end + 2], "little")
        for flag in (_NAME, _COMMENT):
            if flags & flag:
                end = head.find(b"\0", end) + 1
                if not end:
                    return None
        return end + 2 if flags & _HCRC else end


_DEFLATE = 8
_DICTIONARY = 0x20
_LARGEST_WINDOW = 0x78  # first byte for 32 KiB


class ZlibTrailer(Trailer):
    """Adler-32."""

    size = 4

    def __init__(self) -> None:
        self.adler = 1

    def add(self, data: Any) -> None:
        self.adler = fast.adler32(data, self.adler)

    def pack(self) -> bytes:
        return self.adler.to_bytes(4, "big")

    def check(self, stored: bytes) -> None:
        if stored != self.pack():
            raise Damage(f"zlib Adler-32 mismatch (stored 0x{stored.hex()}, computed 0x{self.adler:08x})")


class Zlib(DeflateCodec):
    name = "zlib"
    suffixes = (".zlib", ".zz")
    trailer = ZlibTrailer
    resumption = re.compile(rb"(?P<member>(?=\x78[\x01\x5e\x9c\xda]))|" + FLUSH, re.DOTALL)
    header_bytes = 2

    def accepts(self, head: bytes) -> bool:
        if not head:
            return True
        method = head[0] & 0x0F == _DEFLATE and head[0] >> 4 <= 7
        return method and (len(head) < 2 or int.from_bytes(head[:2], "big") % 31 == 0)

    def looks_like(self, head: bytes) -> bool:
        """Two bytes are not enough: one plain file in a thousand has them, and so does the text "x^2".

        So valid data are required as well: with a window of less than 32 KiB, which is rare, those of a record. Zeros
        as in the upper half of a record's length (one may be damaged) are not at the start of what a compressor writes,
        except for a stream of one byte or none.
        """
        if len(head) < 2 or not self.accepts(head):
            return False
        member = self.decompressor()
        try:
            data = member.decompress(head[:512], 1 << 20)
            if not member.hungry:
                data += member.decompress(b"", 1)
        except Damage:
            return False
        if head[0] != _LARGEST_WINDOW and not FrameHeader(data).is_intact:
            return member.eof and not data
        return member.eof or head[4:8].count(0) < 3

    def header(self, level: int | None) -> bytes:
        """Window size (32 KiB) and effort; the second byte makes both a multiple of 31."""
        effort = 2 if level is None else (0, 0, 1, 1, 1, 1, 2, 3, 3, 3)[level]
        first = 0x78 << 8 | effort << 6
        return (first + -first % 31).to_bytes(2, "big")

    def header_end(self, head: bytes) -> int | None:
        if not self.accepts(head):
            raise Damage("no zlib header")
        if len(head) < 2:
            return None
        if head[1] & _DICTIONARY:
            raise Damage("the zlib stream needs a preset dictionary, which is not supported")
        return 2
