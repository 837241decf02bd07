"""Compressions: detected by name, suffix or content, and read as streams that report their offsets."""

from tfrecord_io.compression.codec import Codec
from tfrecord_io.compression.codecs import SNIFF_BYTES, codec_for_path, compression_suffixes, get_codec, infer, sniff
from tfrecord_io.compression.stream import Raw, Stream, open_decompressed

__all__ = [
    "SNIFF_BYTES",
    "Codec",
    "Raw",
    "Stream",
    "codec_for_path",
    "compression_suffixes",
    "get_codec",
    "infer",
    "open_decompressed",
    "sniff",
]
