"""Compressions: their table; detected by name, suffix or content, and read as streams that report their offsets."""

from __future__ import annotations

from tfrecord_io.base import Registry
from tfrecord_io.bytes.compression.codec import Codec
from tfrecord_io.bytes.compression.stream import Raw, Stream, open_decompressed
from tfrecord_io.bytes.format.framing import is_record_header
from tfrecord_io.errors import for_cli

__all__ = [
    "CODECS",
    "INFER",
    "PLAIN",
    "SNIFF_BYTES",
    "Codec",
    "Raw",
    "Stream",
    "check_level",
    "get_codec",
    "infer",
    "open_decompressed",
    "sniff",
]


def _core_codecs() -> tuple[Codec, ...]:
    """The codecs of this package, which plain files do not need."""
    from tfrecord_io.bytes.compression.deflate import Gzip, Zlib
    from tfrecord_io.bytes.compression.lz4 import Lz4
    from tfrecord_io.bytes.compression.zstd import Zstd

    return Gzip(), Zlib(), Zstd(), Lz4()  # a new compression is a row here


CODECS: Registry[Codec] = Registry("compression", Codec, _core_codecs, "tfrecord_io.compressions")
SNIFF_BYTES = 1024  # the part of a file's head that `sniff` uses

INFER, PLAIN = "infer", "none"  # what ``compression=`` may be besides a name


def get_codec(name: str | None) -> Codec | None:
    """Find a codec by name or alias, in any case (TensorFlow has "GZIP", "ZLIB"); None, "" and "none" mean plain.

    Any other name is a ValueError that lists the valid ones.

    >>> get_codec("GZIP"), get_codec("")
    (<codec gzip>, None)
    """
    if name is None:
        return None
    if not isinstance(name, str):
        raise TypeError(f"compression is a name or None, not {type(name).__name__}")
    if name.lower() in ("", PLAIN):
        return None
    if (codec := CODECS.get(name)) is None:
        names = ", ".join(map(repr, (INFER, *CODECS.names())))
        raise ValueError(f"unknown compression {name!r}; expected {names}, or {PLAIN!r} for a plain file")
    return codec


def check_level(codec: Codec | None, level: int | None) -> None:
    """Raise ValueError for a level that the codec does not have, or without a codec."""
    if codec is not None:
        codec.check_level(level)
    elif level is not None:
        text = "the file is not compressed; pass {} as well, or a name such as x.tfrecord.gz"
        error = ValueError(f"compression_level={level!r}: {text.format('compression=')}")
        raise for_cli(error, f"--compression-level {level}: {text.format('--compression')}")


def sniff(head: bytes) -> Codec | None:
    """Find the codec of a file by its first bytes (`SNIFF_BYTES`, or all it has) alone.

    None for a plain file, even if the length in its first record header looks like a codec's magic bytes.
    """
    if is_record_header(head):
        return None
    return next((c for c in CODECS if c.looks_like(head)), None)


def infer(head: bytes, path: str) -> Codec | None:
    """Find the codec of a file to read: by content, or by suffix if the content is too short or damaged."""
    if is_record_header(head):
        return None
    if (codec := sniff(head)) is not None:
        return codec
    named = CODECS.of_path(path)
    return named if named is not None and named.accepts(head) else None
