"""Zstandard (RFC 8878): frames of a header, blocks and a checksum.

Needs a library before Python 3.14, whose standard library has it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

from tfrecord_io.compression.codec import Codec, Compressor, Damage

_LIBRARY = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"  # the upper three bytes of a skippable frame's magic, after 0x50 to 0x5f
_PIECE = 1 << 20  # bytes per call of the library; Ctrl-C is handled between two
_BLOCK_HEADER_BYTES = 3
_RLE_BLOCK = 1  # its content is one byte, which is repeated
_CHECKSUM_BYTES = 4


def _is_skippable(head: bytes) -> bool:
    return head[0] >> 4 == 5 and _SKIPPABLE.startswith(head[1:4])


class Zstd(Codec):
    name = "zstd"
    aliases = ("zst",)
    suffixes = (".zst", ".zstd")
    levels = range(1, 20)  # higher levels also need much memory to read
    requirement = "tfrecord_io[zstd]"
    resumption = re.compile(rb"(?P<member>(?=\x28\xb5\x2f\xfd))|(?P<block>(?!))", re.DOTALL)

    def accepts(self, head: bytes) -> bool:
        return _MAGIC.startswith(head[:4]) or _is_skippable(head)

    def looks_like(self, head: bytes) -> bool:
        return len(head) >= 4 and self.accepts(head)

    def decompressor(self, *, exact: bool = False) -> ZstdDecompressor:
        return ZstdDecompressor(self.library(_LIBRARY))

    def new_compressor(self, level: int | None, threads: int) -> Compressor:
        return ZstdCompressor(self.library(_LIBRARY), level, threads)


class ZstdCompressor:
    """One frame with a checksum, by the library's own threads; see `tfrecord_io.compression.codec.Compressor`."""

    def __init__(self, zstd: Any, level: int | None, threads: int) -> None:
        parameter = zstd.CompressionParameter
        most = parameter.nb_workers.bounds()[1]  # 0 if built without threads; 0 gives other bytes than any other number
        options = {
            parameter.compression_level: zstd.COMPRESSION_LEVEL_DEFAULT if level is None else level,
            parameter.checksum_flag: 1,
            parameter.nb_workers: min(threads, most),
        }
        self._inner = zstd.ZstdCompressor(options=options)

    def compress(self, data: Any, /) -> Iterator[bytes]:
        view = memoryview(data).cast("B")
        for begin in range(0, len(view), _PIECE):
            yield self._inner.compress(view[begin : begin + _PIECE])

    def flush(self) -> Iterator[bytes]:
        yield self._inner.flush()

    def close(self) -> None:
        self._inner = None


class ZstdDecompressor:
    """One frame; see `tfrecord_io.compression.codec.Decompressor`.

    The library drops the output of a call that fails. So each call has the bytes of only one part of the frame, and no
    bytes before the damage are lost.
    """

    def __init__(self, zstd: Any) -> None:
        self.eof = False
        self.unused = b""
        self.hungry = True
        self.lossy = False
        self._inner = zstd.ZstdDecompressor()
        self._error: type[Exception] = zstd.ZstdError
        self._parts = _Parts()
        self._rest = memoryview(b"")  # not passed to the library yet

    @property
    def held(self) -> int:
        return len(self._rest)

    def decompress(self, data: bytes, limit: int) -> bytes:
        if data:
            self._rest = memoryview(bytes(self._rest) + data)
        piece = self._rest[:0]
        if self._inner.needs_input:
            piece = self._rest[: self._parts.room(self._rest)]
            self._parts.advance(piece)
            self._rest = self._rest[len(piece) :]
        try:
            out: bytes = self._inner.decompress(piece, limit)
        except self._error as error:
            raise Damage(self._reason(error)) from None
        if self._inner.eof:
            self.eof, self.unused, self._rest = True, bytes(self._rest), self._rest[:0]
        self.hungry = not self.eof and self._inner.needs_input and not self._parts.room(self._rest)
        return out

    def _reason(self, error: Exception) -> str:
        stored = self._parts.checksum
        if len(stored) == _CHECKSUM_BYTES:
            return f"zstd checksum mismatch (stored 0x{int.from_bytes(stored, 'little'):08x})"
        return f"invalid zstd data ({str(error).removeprefix('Unable to decompress Zstandard data: ')})"


class _Parts:
    """Finds the parts of a frame: header, blocks, checksum (RFC 8878, section 3.1.1). A skippable frame is one part."""

    def __init__(self) -> None:
        self.checksum = b""  # the bytes received so far
        self._has_checksum = False
        self._left = 0  # bytes of the current part
        self._begin = self._header

    def room(self, rest: memoryview) -> int:
        """How many bytes of `rest` belong to one part; 0 if there are too few to determine it."""
        if not self._left:
            self._left = self._begin(rest)
        return min(self._left, len(rest))

    def advance(self, piece: memoryview) -> None:
        """Mark `piece` as used."""
        self._left -= len(piece)
        if self._begin == self._end:
            self.checksum += piece

    def _header(self, rest: memoryview) -> int:
        if len(rest) >= 4 and rest[:4] != _MAGIC:
            if not _is_skippable(bytes(rest[:4])):
                raise Damage("no zstd header")
            return 8 + int.from_bytes(rest[4:8], "little") if len(rest) >= 8 else 0
        if len(rest) < 5:
            return 0
        flags = rest[4]
        one_segment = flags >> 5 & 1  # no window size, but always a content size
        self._has_checksum = bool(flags >> 2 & 1)
        self._begin = self._block
        return 5 + (1 - one_segment) + (0, 1, 2, 4)[flags & 3] + (one_segment, 2, 4, 8)[flags >> 6]

    def _block(self, rest: memoryview) -> int:
        if len(rest) < _BLOCK_HEADER_BYTES:
            return 0
        header = int.from_bytes(rest[:_BLOCK_HEADER_BYTES], "little")
        if header & 1:  # the last block
            self._begin = self._trailer
        return _BLOCK_HEADER_BYTES + (1 if header >> 1 & 3 == _RLE_BLOCK else header >> 3)

    def _trailer(self, rest: memoryview) -> int:
        self._begin = self._end
        return _CHECKSUM_BYTES if self._has_checksum else 0

    def _end(self, rest: memoryview) -> int:
        return 0
