"""What a compression gives to the rest: the one class to write for a new one.

A compressed file is a row of *members*, each complete in itself (``cat a.gz b.gz`` is a file of two).
A `Codec` knows how a member begins and makes decompressors and compressors of one member; the row of
members, the offsets and the errors are the business of :mod:`tfrecord_io.compression.stream`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Protocol


class Damage(Exception):
    """A member is damaged at the point its decompressor has come to.

    Parameters
    ----------
    reason : str
        What is wrong, in a clause.
    lossy : bool
        Whether bytes before the damage may not have been given yet; a decompressor got by
        ``decompressor(exact=True)`` gives them.
    """

    def __init__(self, reason: str, *, lossy: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.lossy = lossy


class Decompressor(Protocol):
    """One member."""

    eof: bool  # the member is complete and its checksum fits
    unused: bytes  # after `eof`: given bytes that are behind the member
    hungry: bool  # the next call needs data

    @property
    def held(self) -> int:
        """Given bytes that have not been used yet."""
        ...

    def decompress(self, data: bytes, limit: int) -> bytes:
        """Take `data` (only when `hungry`) and give at most `limit` bytes.

        Raises
        ------
        Damage
            In a call of its own, after the bytes before it were given (see `Damage.lossy`).
        """
        ...


class Compressor(Protocol):
    """One member."""

    def compress(self, data: memoryview, /) -> bytes: ...

    def flush(self) -> bytes: ...


class Codec(ABC):
    """A compression: a subclass, and one entry in :data:`tfrecord_io.compression.registry.CODECS`."""

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()  # further names, in lower case
    suffixes: ClassVar[tuple[str, ...]]  # the first one is the usual one
    padding: ClassVar[bytes] = b""  # bytes that may stand between and behind members and mean nothing

    @abstractmethod
    def accepts(self, head: bytes) -> bool:
        """Whether a member may begin with `head`, the first bytes of a file (fewer if it is shorter)."""

    def looks_like(self, head: bytes) -> bool:
        """Whether `head` is sure enough a member to say so when nobody has; stricter than `accepts`."""
        return len(head) >= 2 and self.accepts(head)

    @abstractmethod
    def decompressor(self, *, exact: bool = False) -> Decompressor:
        """Make a decompressor of one member; an `exact` one may be slow."""

    @abstractmethod
    def compressor(self, level: int | None = None) -> Compressor:
        """Make a compressor of one member. `level` is 0 (none) to 9 (best), None is the codec's choice."""

    def __repr__(self) -> str:
        return f"<codec {self.name}>"
