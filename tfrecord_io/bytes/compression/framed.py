"""Compressions whose members are frames that state the lengths of their parts: a header, blocks, a checksum.

`Zstd` and `Lz4` inherit `FramedCodec` and `FrameParts`; `FrameDecompressor` passes a frame to their library part by
part, so that no bytes before damage are lost.

Tests: tests/bytes/compression/test_compression.py and tests/bytes/compression/test_compressed_files.py.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from enum import Enum, auto
from typing import Any, ClassVar

from tfrecord_io.bytes.compression.codec import Codec, Damage

_SKIPPABLE = b"\x2a\x4d\x18"  # the upper three bytes of a skippable frame's magic, after 0x50 to 0x5f


def _is_skippable(head: bytes) -> bool:
    """True if a frame without content may begin with `head`."""
    return len(head) > 0 and head[0] >> 4 == 5 and _SKIPPABLE.startswith(head[1:4])


class FramedCodec(Codec):
    """A compression whose frames begin with a magic; there may be frames without content between them."""

    magic: ClassVar[bytes]  # four bytes

    def __init_subclass__(cls) -> None:
        cls.resumption = re.compile(b"(?P<member>(?=" + re.escape(cls.magic) + b"))")

    def accepts(self, head: bytes) -> bool:
        return self.magic.startswith(head[:4]) or _is_skippable(head)

    def looks_like(self, head: bytes) -> bool:
        """Frames without content, which other compressions have, too, are left out."""
        begin = 0
        while len(head) >= begin + 8 and _is_skippable(head[begin:]):
            begin += 8 + int.from_bytes(head[begin + 4 : begin + 8], "little")
        return len(head) >= 4 and self.accepts(head[begin:])


class _Part(Enum):
    """The parts of a frame in their order; a frame without content is a header alone."""

    HEADER = auto()
    BLOCK = auto()  # one or more
    CHECKSUM = auto()  # has no bytes where the header says that there is none
    END = auto()


class FrameParts(ABC):
    """Finds where the parts of one frame end. `next_length` and `advance` are called in turn, from its first byte on.

    A subclass reads the two parts that differ by format: `header_length` and `block_length`.
    """

    checksum_bytes = 4

    def __init__(self, codec: FramedCodec) -> None:
        self.codec = codec
        self.checksum = b""  # the bytes received so far
        self.has_checksum = False  # as the header says
        self.used = 0  # bytes of the current part
        self._left = 0  # bytes of the current part that follow
        self._next = _Part.HEADER  # the part after the current one

    def next_length(self, rest: memoryview) -> int:
        """How many bytes of `rest` belong to one part; 0 if there are too few to determine it, or the frame ended."""
        if not self._left:
            self._left, self.used = self._begin_part(rest), 0
        return min(self._left, len(rest))

    def advance(self, piece: memoryview) -> None:
        """Mark `piece` as used."""
        self._left -= len(piece)
        self.used += len(piece)
        if self._next is _Part.END:
            self.checksum += piece

    @abstractmethod
    def header_length(self, rest: memoryview) -> int:
        """The length of the header at the start of `rest`, which has the magic; 0 if it is incomplete."""

    @abstractmethod
    def block_length(self, rest: memoryview) -> tuple[int, bool]:
        """The length of the block at the start of `rest`, 0 if that is unknown yet, and whether it is the last."""

    def refusal(self) -> str | None:
        """Why the library refuses the header of a valid frame; None if it does not."""
        return None

    def _begin_part(self, rest: memoryview) -> int:
        """The length of the next part, which becomes the current one; 0 if that is unknown yet."""
        match self._next:
            case _Part.HEADER:
                if len(rest) >= 4 and rest[:4] != self.codec.magic:
                    return self._skippable_length(rest)
                length = self.header_length(rest) if len(rest) > 4 else 0
                if length:
                    self._next = _Part.BLOCK
                return length
            case _Part.BLOCK:
                length, is_last = self.block_length(rest)
                if length and is_last:
                    self._next = _Part.CHECKSUM
                return length
            case _Part.CHECKSUM:
                self._next = _Part.END
                return self.checksum_bytes if self.has_checksum else 0
            case _Part.END:
                return 0

    def _skippable_length(self, rest: memoryview) -> int:
        """The length of a frame without content, 0 if it is unknown yet."""
        if not _is_skippable(bytes(rest[:4])):
            raise Damage(f"no {self.codec.name} header")
        return 8 + int.from_bytes(rest[4:8], "little") if len(rest) >= 8 else 0


class FrameDecompressor:
    """One frame, by the decompressor of a library; see `tfrecord_io.bytes.compression.codec.Decompressor`.

    The library drops the output of a call that fails. So each call has the bytes of only one part of the frame, and no
    bytes before the damage are lost.
    """

    def __init__(self, library: Any, error: type[Exception], parts: FrameParts) -> None:
        self.eof = False
        self.unused = b""
        self.hungry = True
        self.lossy = False
        self._library, self._error, self._parts = library, error, parts
        self._rest = memoryview(b"")  # not passed to the library yet
        self._refused = 0  # bytes of a part that gave no output

    @property
    def held(self) -> int:
        return len(self._rest) + self._refused

    def decompress(self, data: bytes, limit: int) -> bytes:
        if data:
            self._rest = memoryview(bytes(self._rest) + data)
        piece = self._rest[:0]
        if self._library.needs_input:
            piece = self._rest[: self._parts.next_length(self._rest)]
            self._parts.advance(piece)
            self._rest = self._rest[len(piece) :]
        try:
            out: bytes = self._library.decompress(piece, limit)
        except self._error as error:
            self._refused = self._parts.used
            raise Damage(self._reason(error)) from None
        if self._library.eof:
            self.eof, self.unused, self._rest = True, bytes(self._rest), self._rest[:0]
        self.hungry = not self.eof and self._library.needs_input and not self._parts.next_length(self._rest)
        return out

    def _reason(self, error: Exception) -> str:
        name, stored = self._parts.codec.name, self._parts.checksum
        if len(stored) == self._parts.checksum_bytes:
            return f"{name} checksum mismatch (stored 0x{int.from_bytes(stored, 'little'):08x})"
        return self._parts.refusal() or f"invalid {name} data ({str(error).rpartition(': ')[2]})"
