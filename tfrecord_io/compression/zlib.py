"""zlib (RFC 1950): two bytes of header, deflate data, Adler-32."""

from __future__ import annotations

import re
from typing import Any

from tfrecord_io.compression.block_compressor import Trailer
from tfrecord_io.compression.codec import Damage
from tfrecord_io.compression.deflate import FLUSH, DeflateCodec, fast
from tfrecord_io.format.framing import is_record_header

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
        if head[0] != _LARGEST_WINDOW and not is_record_header(data):
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
