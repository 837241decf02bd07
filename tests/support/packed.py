"""Bytes as a codec of the package compresses them."""

from __future__ import annotations

from tfrecord_io.bytes.compression import CODECS


def packed(name: str, data: bytes) -> bytes:
    codec = CODECS.find(name)
    assert codec is not None
    compressor = codec.compressor()
    return b"".join([*compressor.compress(data), *compressor.flush()])
