"""The table of compressions, and their detection by name, suffix and content."""

from __future__ import annotations

import os

from tfrecord_io.compression.codec import Codec
from tfrecord_io.compression.gzip import Gzip
from tfrecord_io.compression.zlib import Zlib
from tfrecord_io.compression.zstd import Zstd
from tfrecord_io.format.framing import is_record_header

CODECS: tuple[Codec, ...] = (Gzip(), Zlib(), Zstd())
SNIFF_BYTES = 1024  # the part of a file's head that `sniff` uses

_PLAIN = ("", "none")


def get_codec(name: str | None) -> Codec | None:
    """Find a codec by name.

    The names are "gzip", "zlib" and "zstd", in any case (TensorFlow has "GZIP", "ZLIB"); None, "" and "none" mean
    plain. Any other name is a ValueError that lists the valid ones.

    >>> get_codec("GZIP"), get_codec("")
    (<codec gzip>, None)
    """
    if name is None:
        return None
    if not isinstance(name, str):
        raise TypeError(f"compression is a name or None, not {type(name).__name__}")
    wanted = name.lower()
    for codec in CODECS:
        if wanted == codec.name or wanted in codec.aliases:
            return codec
    if wanted in _PLAIN:
        return None
    names = ", ".join(repr(c.name) for c in CODECS)
    raise ValueError(f"unknown compression {name!r}; expected 'infer', {names}, or None for a plain file")


def codec_for_path(path: str) -> Codec | None:
    """Find the codec of a file by its suffix; None for plain.

    >>> codec_for_path("train.tfrecord.GZ"), codec_for_path("train.tfrecord")
    (<codec gzip>, None)
    """
    suffix = os.path.splitext(path)[1].lower()
    return next((c for c in CODECS if suffix in c.suffixes), None)


def compression_suffixes() -> tuple[str, ...]:
    """All suffixes of all codecs."""
    return tuple(s for c in CODECS for s in c.suffixes)


def sniff(head: bytes) -> Codec | None:
    """Find the codec of a file by its first bytes (`SNIFF_BYTES`, or all it has) alone.

    None for a plain file, even if the length in its first record header looks like a codec's magic bytes.
    """
    if is_record_header(head):
        return None
    return next((c for c in CODECS if c.looks_like(head)), None)


def infer(head: bytes, path: str) -> Codec | None:
    """Find the codec of a file to read: by content, or by suffix if the content is too short or damaged."""
    codec = sniff(head)
    if codec is None and not is_record_header(head):
        named = codec_for_path(path)
        if named is not None and named.accepts(head):
            return named
    return codec
