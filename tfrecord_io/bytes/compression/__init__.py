"""Compressions: their table; detected by name, suffix or content, and read as streams that report their offsets."""

from __future__ import annotations

from typing import ClassVar

from tfrecord_io.base import Registry, for_cli
from tfrecord_io.bytes.compression.codec import Codec

__all__ = ["CODECS", "Codec", "Codecs"]


def _core_codecs() -> tuple[Codec, ...]:
    """The codecs of this package, which plain files do not need."""
    from tfrecord_io.bytes.compression.deflate import Gzip, Zlib
    from tfrecord_io.bytes.compression.lz4 import Lz4
    from tfrecord_io.bytes.compression.zstd import Zstd

    return Gzip(), Zlib(), Zstd(), Lz4()  # a new compression is a row here


def _is_framed(head: bytes) -> bool:
    """True if the first bytes of a file are the header of a record."""
    from tfrecord_io.bytes.format.framing import FrameHeader  # the names of compressions alone need no bytes

    return FrameHeader(head).is_intact


class Codecs(Registry[Codec]):
    """The compressions."""

    INFER: ClassVar = "infer"  # what ``compression=`` may be besides a name
    PLAIN: ClassVar = "none"
    SNIFF_BYTES: ClassVar = 1024  # the part of a file's head that `sniff` uses

    def find(self, name: str | None) -> Codec | None:
        """Find a codec by name or alias, in any case (TensorFlow has "GZIP", "ZLIB"); None, "" and "none" mean plain.

        Any other name is a ValueError that lists the valid ones.

        >>> CODECS.find("GZIP"), CODECS.find("")
        (<codec gzip>, None)
        """
        if name is None:
            return None
        if not isinstance(name, str):
            raise TypeError(f"compression is a name or None, not {type(name).__name__}")
        if name.lower() in ("", self.PLAIN):
            return None
        if (codec := self.get(name)) is None:
            names = ", ".join(map(repr, (self.INFER, *self.names())))
            raise ValueError(f"unknown compression {name!r}; expected {names}, or {self.PLAIN!r} for a plain file")
        return codec

    @staticmethod
    def check_level(codec: Codec | None, level: int | None) -> None:
        """Raise ValueError for a level that the codec does not have, or without a codec."""
        if codec is not None:
            codec.check_level(level)
        elif level is not None:
            text = "the file is not compressed; pass {} as well, or a name such as x.tfrecord.gz"
            error = ValueError(f"compression_level={level!r}: {text.format('compression=')}")
            raise for_cli(error, f"--compression-level {level}: {text.format('--compression')}")

    def sniff(self, head: bytes) -> Codec | None:
        """Find the codec of a file by its first bytes (`SNIFF_BYTES`, or all it has) alone.

        None for a plain file, even if the length in its first record header looks like a codec's magic bytes.
        """
        if _is_framed(head):
            return None
        return next((c for c in self if c.looks_like(head)), None)

    def infer(self, head: bytes, path: str) -> Codec | None:
        """Find the codec of a file to read: by content, or by suffix if the content is too short or damaged."""
        if _is_framed(head):
            return None
        if (codec := self.sniff(head)) is not None:
            return codec
        named = self.of_path(path)
        return named if named is not None and named.accepts(head) else None


CODECS = Codecs("compression", Codec, _core_codecs, "tfrecord_io.compressions")
