"""LZ4 frames (lz4_Frame_format.md of the lz4 project): a header, blocks and a checksum.

Tests: tests/bytes/compression/test_compression.py and tests/bytes/compression/test_block_compressor.py.
"""

from __future__ import annotations

from tfrecord_io.base import LIMITS
from tfrecord_io.bytes.compression.block_compressor import BlockCompressor, Trailer
from tfrecord_io.bytes.compression.codec import CERTAIN_BYTES, Compressor, Damage
from tfrecord_io.bytes.compression.framed import FramedCodec, FrameDecompressor, FrameParts

_LIBRARY = "lz4.frame"
_DICTIONARY, _CHECKSUM, _SIZE, _BLOCK_CHECKSUM = 0x01, 0x04, 0x08, 0x10  # flags
_LARGEST_BLOCK = 4 << 20
_STORED = 1 << 31  # flag of a block's length


class Lz4(FramedCodec):
    name = "lz4"
    suffixes = (".lz4",)
    levels = range(13)
    block_bytes = LIMITS.compression_block_bytes
    requirement = "tfrecord_io[lz4]"
    magic = b"\x04\x22\x4d\x18"

    def certain_bytes(self, head: bytes) -> int:
        """A block is stored if that is shorter; the header states the largest, 64 KiB (as written here) to 4 MiB."""
        has_header = len(head) > 5 and head.startswith(self.magic)
        return max(CERTAIN_BYTES, 2 * (1 << 8 + 2 * (head[5] >> 4 & 7) if has_header else _LARGEST_BLOCK))

    def decompressor(self, *, exact: bool = False) -> FrameDecompressor:
        return FrameDecompressor(self.library(_LIBRARY).LZ4FrameDecompressor(), RuntimeError, _Parts(self))

    def new_compressor(self, level: int | None, threads: int) -> Compressor:
        """Compress frames of 1 MiB, for threads, and so that frames after damage are found."""
        lz4 = self.library(_LIBRARY)

        def compress(block: memoryview) -> bytes:
            frame: bytes = lz4.compress(
                block,
                compression_level=level or 0,
                block_size=lz4.BLOCKSIZE_MAX64KB,
                content_checksum=True,
                store_size=False,
            )
            return frame

        return BlockCompressor(compress, b"", Trailer(), threads)


class _Parts(FrameParts):
    def __init__(self, codec: FramedCodec) -> None:
        super().__init__(codec)
        self._after_block = 0  # bytes of the checksum of each block

    def header_length(self, rest: memoryview) -> int:
        flags = rest[4]
        if flags & _DICTIONARY:
            raise Damage("the lz4 frame needs a dictionary, which is not supported")
        self.has_checksum = bool(flags & _CHECKSUM)
        self._after_block = 4 if flags & _BLOCK_CHECKSUM else 0
        return 7 + (8 if flags & _SIZE else 0)

    def block_length(self, rest: memoryview) -> tuple[int, bool]:
        if len(rest) < 4:
            return 0, False
        size = int.from_bytes(rest[:4], "little")
        return (4 + size % _STORED + self._after_block, False) if size else (4, True)
