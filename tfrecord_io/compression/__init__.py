"""Compressions: detected by name, suffix or content, and read as streams that report their offsets."""

from tfrecord_io.compression.codec import Codec
from tfrecord_io.compression.codecs import CODECS, INFER, PLAIN, SNIFF_BYTES, get_codec, infer, sniff
from tfrecord_io.compression.stream import Raw, Stream, open_decompressed

__all__ = [
    "CODECS",
    "INFER",
    "PLAIN",
    "SNIFF_BYTES",
    "Codec",
    "Raw",
    "Stream",
    "get_codec",
    "infer",
    "open_decompressed",
    "sniff",
]
