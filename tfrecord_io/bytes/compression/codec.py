"""The interface of a compression.

A compressed file is a sequence of *members*, each complete in itself (``cat a.gz b.gz`` is a file of two). A `Codec`
recognizes the start of a member and creates decompressors and compressors of one member;
:mod:`tfrecord_io.bytes.compression.stream` handles the sequence of members, the offsets and the errors.
"""

from __future__ import annotations

import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Protocol

from tfrecord_io.base import needs

CERTAIN_BYTES = 512 << 10  # the least of `Codec.certain_bytes`: deflate stores up to 64 KiB at a time, zstd 128 KiB


class Damage(Exception):
    """A member is damaged where its decompressor has arrived.

    If it is `lossy`, bytes before the damage may be lost; ``decompressor(exact=True)`` returns them.
    """

    def __init__(self, reason: str, *, lossy: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.lossy = lossy


class Decompressor(Protocol):
    """Decompresses one member."""

    eof: bool  # the member is complete and its checksum is right
    unused: bytes  # after `eof`: input bytes after the end of the member
    hungry: bool  # the next call needs data
    lossy: bool  # if the data is truncated here, an exact decompressor may return more bytes

    @property
    def held(self) -> int:
        """Number of input bytes not used yet."""
        ...

    def decompress(self, data: bytes, limit: int) -> bytes:
        """Take `data` (only if `hungry`) and return at most `limit` bytes.

        Raises
        ------
        Damage
            By a separate call, after the bytes before the damage were returned (see `Damage.lossy`).
        """
        ...


class Compressor(Protocol):
    """Compresses one member, in pieces; each iterator must be exhausted before the next call.

    After an error, possibly of a thread, only `close` may be called.
    """

    def compress(self, data: Any, /) -> Iterator[bytes]:
        """Take a contiguous buffer, which may change after the iterator is exhausted."""
        ...

    def flush(self) -> Iterator[bytes]:
        """Complete the member."""
        ...

    def close(self) -> None:
        """Stop its threads, whether the member is complete or not."""
        ...


class Codec(ABC):
    """A compression: a subclass, of which an instance is a row of `tfrecord_io.bytes.compression.CODECS`."""

    name: ClassVar[str]  # as in compression=
    aliases: ClassVar[tuple[str, ...]] = ()  # other names, in lower case
    suffixes: ClassVar[tuple[str, ...]]  # the first one is used for shard names
    levels: ClassVar[range]  # from fast to small output
    block_bytes: ClassVar[int | None] = None  # of data that is compressed by itself, so that damage takes no more
    tensorflow: ClassVar[bool] = False  # whether TensorFlow reads it
    requirement: ClassVar[str] = ""  # what to install where its library is missing, as for pip
    padding: ClassVar[bytes] = b""  # bytes without meaning that may be between and after members
    # Where reading may resume after damage: at the start of the group "member", or inside a member at the end of the
    # group "block"; and the usual length of a member's header, behind which it may resume if the header is damaged.
    resumption: ClassVar[re.Pattern[bytes]] = re.compile(b"(?!)")  # nowhere
    header_bytes: ClassVar[int] = 0  # 0: reading resumes elsewhere

    @abstractmethod
    def accepts(self, head: bytes) -> bool:
        """True if a member may begin with `head`, the first bytes of a file (fewer if it is shorter)."""

    def looks_like(self, head: bytes) -> bool:
        """True if `head` alone shows this compression; stricter than `accepts`.

        By default that is what is accepted, unless any bytes are: members without magic bytes are known by a suffix, or
        by a name that is stated.
        """
        accepts_any = all(self.accepts(bytes([byte]) * len(head)) for byte in (0x00, 0x55, 0xFF))
        return len(head) >= 2 and self.accepts(head) and not accepts_any

    def certain_bytes(self, head: bytes) -> int:
        """How many bytes have to be valid for data to be read after damage.

        They are more than the file can have unchanged of a payload that is compressed itself. `head` are the first
        bytes of the damaged member.
        """
        return CERTAIN_BYTES

    @abstractmethod
    def decompressor(self, *, exact: bool = False) -> Decompressor:
        """Create a decompressor of one member; an `exact` one may be slow."""

    def resume(self, *, exact: bool = False) -> Decompressor:
        """Create a decompressor that begins inside a member, where `resumption` says; its checksum is not checked."""
        raise NotImplementedError(f"{self.name} is read from the start of a member only")

    def compressor(self, level: int | None = None, *, threads: int = 1) -> Compressor:
        """Create a compressor of one member.

        Parameters
        ----------
        level : int, optional
            One of `levels`; None is the codec's default.
        threads : int
            How many may compress at a time, besides the caller if there are several. The output does not depend on it.
        """
        self.check_level(level)
        return self.new_compressor(level, threads)

    def check_level(self, level: int | None) -> None:
        """Raise ValueError if `level` is neither one of `levels` nor None."""
        if level is not None and level not in self.levels:
            valid = f"{self.levels[0]} to {self.levels[-1]}"
            raise ValueError(f"compression level {level!r}: {self.name} has levels {valid}")

    @abstractmethod
    def new_compressor(self, level: int | None, threads: int) -> Compressor:
        """Create a compressor, with a `level` that is valid or None."""

    def library(self, name: str) -> Any:
        """Import the module that compresses; MissingDependencyError, with the package to install, if it is missing."""
        with needs("", f"{self.name} compression", requirement=self.requirement):
            return importlib.import_module(name)

    def __repr__(self) -> str:
        return f"<codec {self.name}>"
