"""Detect the compression of an open file, or check the one that is stated; and streams of a piece of a file."""

from __future__ import annotations

from typing import Any

from tfrecord_io.bytes import CODECS, Codec, FrameHeader, PlainStream, Raw, open_decompressed
from tfrecord_io.errors import CompressionError


def detect_codec(
    raw: Raw, path: str, size: int | None, compression: str | None, *, recover: bool, asks: bool
) -> tuple[Codec | None, bytes]:
    """The codec of an open file, None for a plain file, and its first bytes, which are consumed.

    For the arguments see `tfrecord_io.store.read.source.Source.open_stream`.
    """
    head = _read_head(raw, path, size)
    may_be_damaged = recover and not FrameHeader(head).is_intact
    if may_be_damaged and asks:
        from tfrecord_io.bytes import ForeignFile

        may_be_damaged = ForeignFile.looks_like(head) in (
            None,
            ForeignFile.ZEROS,
        )  # a hole at the start of a file is damage
    if compression == CODECS.INFER:
        codec = CODECS.infer(head, path)
        return (CODECS.of_path(path) if codec is None and may_be_damaged else codec), head
    codec = CODECS.find(compression)
    if not (may_be_damaged and CODECS.sniff(head) is None):
        _check_codec(codec, compression, head, path)
    return codec, head


def _read_head(raw: Raw, path: str, size: int | None) -> bytes:
    stream = open_decompressed(raw, None, path, size=size)
    head = memoryview(bytearray(CODECS.SNIFF_BYTES))
    done = 0
    while done < CODECS.SNIFF_BYTES and (n := stream.readinto(head[done:])):
        done += n
    return bytes(head[:done])


def _check_codec(codec: Codec | None, name: str | None, head: bytes, path: str) -> None:
    """Raise CompressionError if the first bytes of a file do not match the codec that the caller named."""
    sniffed = CODECS.sniff(head)
    if codec is not None and FrameHeader(head).is_intact:
        content: str | None = "a plain TFRecord file"
    elif codec is not None and (not head or codec.accepts(head)):
        return
    elif sniffed is not None:
        content = f"{sniffed.name} data"
    elif codec is not None:
        from tfrecord_io.bytes import ForeignFile

        content = ForeignFile.looks_like(head) or "something else"
    else:
        content = None
    if content is not None:
        reason = f"the stated compression is {name!r}, but the file looks like {content}"
        advice = "compression='infer' detects it by the content"
        advice_cli = "--compression infer detects it by the content"
        raise CompressionError(reason, path=path, expected=name, got=content, hint=advice, hint_cli=advice_cli)


class SpanStream(PlainStream):
    """The bytes [begin, end) of a plain, seekable raw file; offsets are those in the file."""

    def __init__(self, raw: Any, path: str, begin: int, end: int) -> None:
        super().__init__(raw, path, b"", end)
        raw.seek(begin)
        self.offset, self._end = begin, end

    def readinto(self, buffer: memoryview) -> int:
        room = buffer[: max(0, self._end - self.offset)]
        return super().readinto(room) if len(room) else 0
