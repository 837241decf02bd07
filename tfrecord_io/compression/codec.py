"""What a compression gives to the rest: the one class to write for a new one.

A compressed file is a row of *members*, each complete in itself (``cat a.gz b.gz`` is a file of two).
A `Codec` knows how a member begins and makes decompressors and compressors of one member; the row of
members, the offsets and the errors are the business of :mod:`tfrecord_io.compression.stream`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Protocol


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
    lossy: bool  # at a cut in the middle, an exact decompressor may have more bytes to give

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
    """One member, in pieces as they get done; each iterator is to be used up before the next call.

    After an error, which may be one of a thread, only `close` is of use.
    """

    def compress(self, data: Any, /) -> Iterator[bytes]:
        """Take a contiguous buffer, which must not change until the member is complete."""
        ...

    def flush(self) -> Iterator[bytes]:
        """Complete the member."""
        ...

    def close(self) -> None:
        """End its threads, whether the member is complete or not."""
        ...


class Codec(ABC):
    """A compression: a subclass, and one entry in :data:`tfrecord_io.compression.registry.CODECS`."""

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()  # further names, in lower case
    suffixes: ClassVar[tuple[str, ...]]  # the first one is the usual one
    levels: ClassVar[range]  # from fast to small
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

    def compressor(self, level: int | None = None, *, threads: int = 1) -> Compressor:
        """Make a compressor of one member.

        Parameters
        ----------
        level : int, optional
            One of `levels`; None is the codec's choice.
        threads : int
            How many may compress at a time, beside the caller if it is more than one. The bytes do not depend on it.
        """
        if level is not None and level not in self.levels:
            raise ValueError(f"compression level {level!r}: {self.name} has {self.levels[0]} to {self.levels[-1]}")
        return self.new_compressor(level, threads)

    @abstractmethod
    def new_compressor(self, level: int | None, threads: int) -> Compressor:
        """Do as `compressor` says, with a `level` that there is."""

    def __repr__(self) -> str:
        return f"<codec {self.name}>"
