"""gzip (RFC 1952): members of header, deflate data, CRC-32 and length."""

from __future__ import annotations

import re
import struct
from typing import Any

from tfrecord_io.compression.block_compressor import Trailer
from tfrecord_io.compression.codec import Damage
from tfrecord_io.compression.deflate import FLUSH, DeflateCodec, fast

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
