"""Deflate (RFC 1951), which gzip and zlib wrap: isal where it has a wheel, zlib where not.

Header and trailer are read here and not by the library: its checksum error would come in place of the
last bytes, and those may be intact records.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from tfrecord_io.compression.codec import Codec, Compressor, Damage
from tfrecord_io.compression.deflate_blocks import DeflateBlocks

try:
    from isal import isal_zlib
except ImportError:  # no wheel for this platform: the same interface, about half as fast
    fast: Any = zlib
else:
    fast = isal_zlib

_ERRORS: tuple[type[Exception], ...] = (fast.error, zlib.error)
_ISAL_LEVELS = range(1, 4)  # isal's own level 0 does compress, zlib's does not


class Trailer(ABC):
    """What stands behind the deflate data of a member, and tells whether they are right."""

    size: ClassVar[int]

    @abstractmethod
    def add(self, data: Any) -> None:
        """Take uncompressed bytes."""

    @abstractmethod
    def pack(self) -> bytes:
        """Give the trailer of the bytes taken."""

    @abstractmethod
    def check(self, stored: bytes) -> None:
        """Raise `Damage` if `stored` is not the trailer of the bytes taken."""


class DeflateDecompressor(ABC):
    """One member: header, deflate data, trailer. Subclasses say what header and trailer are."""

    trailer: ClassVar[type[Trailer]]

    def __init__(self, *, exact: bool = False) -> None:
        self.eof = False
        self.unused = b""
        self.hungry = True
        self.lossy = not exact
        self._trailer = self.trailer()
        self._head: bytes | None = b""  # header seen so far, None when it is complete
        self._tail: bytes | None = None  # trailer seen so far, None while the data lasts
        self._rest = b""  # compressed bytes taken and not used
        self._inflate: Any = (ExactInflate if exact else fast.decompressobj)(-zlib.MAX_WBITS)

    @property
    def held(self) -> int:
        return len(self._head or b"") + len(self._tail if self._tail is not None else self._rest)

    @abstractmethod
    def header_end(self, head: bytes) -> int | None:
        """Give the length of the header that `head` begins with, None if it goes on; raise `Damage`."""

    def decompress(self, data: bytes, limit: int) -> bytes:
        if self._head is not None:
            self._head += data
            end = self.header_end(self._head)
            if end is None:
                return b""
            data, self._head = self._head[end:], None
        if self._tail is None:
            out = self._decompress_data(self._rest + data if self._rest else data, limit)
            if out or self._tail is None:
                return out
        else:
            self._tail += data
        self._finish()
        return b""

    def _decompress_data(self, data: bytes, limit: int) -> bytes:
        try:
            out: bytes = self._inflate.decompress(data, limit)
        except _ERRORS:
            raise Damage("invalid deflate data", lossy=self.lossy) from None
        self._trailer.add(out)
        if self._inflate.eof:
            self._rest, self._tail = b"", self._inflate.unused_data
            self.hungry = len(self._tail) < self.trailer.size
        else:
            self._rest = self._inflate.unconsumed_tail
            self.hungry = not self._rest and len(out) < limit
        return out

    def _finish(self) -> None:
        tail = self._tail or b""
        self.hungry = len(tail) < self.trailer.size
        if not self.hungry:
            self._trailer.check(tail[: self.trailer.size])
            self.eof, self.unused, self._tail = True, tail[self.trailer.size :], b""


class ExactInflate:
    """``zlib.decompressobj`` that gives the bytes before invalid data, and raises in the next call.

    The library drops what it made in a call that fails. So each call is tried on a copy, with less and
    less data and room, until it goes well. One byte may still be lost: zlib looks at the code behind it.
    """

    def __init__(self, wbits: int) -> None:
        self._inner = zlib.decompressobj(wbits)
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
        for step in _halves(len(data)):  # the longest run of data that is good
            trial = before.copy()
            try:
                out.append(trial.decompress(data[:step]))
            except zlib.error:
                continue
            before, data = trial, data[step:]
        for room in _halves(4096):  # one byte of data can make several matches of up to 258 bytes
            trial = before.copy()
            try:
                out.append(trial.decompress(data[:1], room))
            except zlib.error:
                continue
            before, data = trial, trial.unconsumed_tail + data[1:]
        self._bad = data
        return b"".join(out)


def _halves(n: int) -> list[int]:
    steps = []
    while n:
        n = (n + 1) // 2 if n > 1 else 0
        if n:
            steps.append(n)
    return steps


class DeflateCodec(Codec):
    """What gzip and zlib share: one library, one choice of levels."""

    levels = range(10)
    trailer: ClassVar[type[Trailer]]

    @abstractmethod
    def header(self, level: int | None) -> bytes:
        """Give the header of a member."""

    def new_compressor(self, level: int | None, threads: int) -> Compressor:
        """See `Codec.compressor`; without a level isal's own, near zlib's 6 in size and much faster."""
        library = fast if level is None or level in _ISAL_LEVELS else zlib
        chosen = library.Z_DEFAULT_COMPRESSION if level is None else level

        def deflate(block: memoryview, window: Any) -> bytes:
            dictionary = (window,) if len(window) else ()
            compressor = library.compressobj(
                chosen, zlib.DEFLATED, -zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, zlib.Z_DEFAULT_STRATEGY, *dictionary
            )
            out: bytes = compressor.compress(block) + compressor.flush(zlib.Z_SYNC_FLUSH)
            return out

        return DeflateBlocks(deflate, self.header(level), self.trailer(), threads)
