"""Zstandard (RFC 8878): frames of a header, blocks and a checksum.

Needs a library before Python 3.14, whose standard library has it.

Tests: tests/bytes/compression/test_compression.py and tests/bytes/compression/test_block_compressor.py.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from tfrecord_io.bytes.compression.codec import Compressor
from tfrecord_io.bytes.compression.framed import FramedCodec, FrameDecompressor, FrameParts

_LIBRARY = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
_PIECE = 1 << 20  # bytes per call of the library; Ctrl-C is handled between two
_BLOCK_HEADER_BYTES = 3
_MOST_WINDOW = 1 << 27  # the library's limit, without an option for another one
_RLE_BLOCK = 1  # its content is one byte, which is repeated


class Zstd(FramedCodec):
    name = "zstd"
    aliases = ("zst",)
    suffixes = (".zst", ".zstd")
    levels = range(1, 20)  # higher levels also need much memory to read
    requirement = "tfrecord_io[zstd]"
    magic = b"\x28\xb5\x2f\xfd"

    def decompressor(self, *, exact: bool = False) -> FrameDecompressor:
        zstd = self.library(_LIBRARY)
        return FrameDecompressor(zstd.ZstdDecompressor(), zstd.ZstdError, _Parts(self))

    def new_compressor(self, level: int | None, threads: int) -> Compressor:
        return ZstdCompressor(self.library(_LIBRARY), level, threads)


class ZstdCompressor:
    """One frame with a checksum, by the library's own threads; see `tfrecord_io.bytes.compression.codec.Compressor`."""

    def __init__(self, zstd: Any, level: int | None, threads: int) -> None:
        parameter = zstd.CompressionParameter
        limit = parameter.nb_workers.bounds()[
            1
        ]  # 0 if built without threads; 0 gives other bytes than any other number
        options = {
            parameter.compression_level: zstd.COMPRESSION_LEVEL_DEFAULT if level is None else level,
            parameter.checksum_flag: 1,
            parameter.nb_workers: min(threads, limit),
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


class _Parts(FrameParts):
    """See RFC 8878, section 3.1.1."""

    def __init__(self, codec: FramedCodec) -> None:
        super().__init__(codec)
        self._window = 0  # bytes that the library has to keep, as the header says

    def header_length(self, rest: memoryview) -> int:
        flags = rest[4]
        one_segment = flags >> 5 & 1  # no window size, but always a content size
        self.has_checksum = bool(flags >> 2 & 1)
        content_size_bytes = (one_segment, 2, 4, 8)[flags >> 6]
        length = 5 + (1 - one_segment) + (0, 1, 2, 4)[flags & 3] + content_size_bytes
        if len(rest) < length:
            return 0
        content_size = int.from_bytes(rest[length - content_size_bytes : length], "little")
        self._window = content_size if one_segment else (8 + (rest[5] & 7)) << (7 + (rest[5] >> 3))
        return length

    def refusal(self) -> str | None:
        if self._window <= _MOST_WINDOW:
            return None
        advice = "compress it again without --long, or with at most --long=27"
        return f"a zstd window of {self._window} bytes, over the limit of {_MOST_WINDOW}; {advice}"

    def block_length(self, rest: memoryview) -> tuple[int, bool]:
        if len(rest) < _BLOCK_HEADER_BYTES:
            return 0, False
        header = int.from_bytes(rest[:_BLOCK_HEADER_BYTES], "little")
        size = 1 if header >> 1 & 3 == _RLE_BLOCK else header >> 3
        return _BLOCK_HEADER_BYTES + size, bool(header & 1)
