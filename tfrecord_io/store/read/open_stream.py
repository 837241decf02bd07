"""Open a source: as a stream of uncompressed bytes, with its compression detected or checked, or as a file object."""

from __future__ import annotations

import io
import os
from typing import Any

from tfrecord_io.bytes import CODECS, Codec, FrameHeader, PlainStream, Raw, Stream, open_decompressed
from tfrecord_io.errors import CompressionError
from tfrecord_io.store.read.source import Source

_BUFFER = 8 << 10  # small: columns of an array are read in pieces


def open_source(
    source: Source,
    compression: str | None = "infer",
    *,
    recover: bool = False,
    asks: bool = False,
    max_decompression_ratio: float | None = None,
    raw: Raw | None = None,
) -> Stream:
    """Open a source and decompress it; `raw` is the open file, which is opened by default.

    The `compression` "infer" is detected by content; a name as for `CODECS.named` is checked
    against the content, and is a CompressionError if it does not match. A piece of a file is always plain. With
    `max_decompression_ratio`, a file that decompresses to more times its size is a CompressionError when it is read.

    With `recover`, a damaged compressed file is read on behind the damage (by a
    `tfrecord_io.bytes.RecoveringStream`), also if its first bytes are damaged: its codec is then the one named,
    or that of its suffix. If it also `asks`, each damage is a CompressionError, until ``pass_damage`` is called.
    """
    # Rejects a wrong name before opening the file.
    codec = None if compression == CODECS.INFER else CODECS.named(compression)
    if source.derived is not None:
        return source.derived.open()
    assert source.file_bytes is None, "a byte range is aligned to records before it is read"
    raw = source.open() if raw is None else raw
    try:
        if source.span is not None:
            if codec is not None:
                reason = f"compression={compression!r} was passed, but this is a piece of a plain file"
                raise CompressionError(reason, path=source.path)
            return SpanStream(raw, source.path, *source.span)
        size = open_size(raw, source)
        head = _read_head(raw, source.path, size)
        may_be_damaged = recover and not FrameHeader(head).is_intact
        if may_be_damaged and asks:
            from tfrecord_io.bytes import ZEROS, looks_like

            may_be_damaged = looks_like(head) in (None, ZEROS)  # a hole at the start of a file is damage
        if compression == CODECS.INFER:
            codec = CODECS.infer(head, source.path)
            if codec is None and may_be_damaged:
                codec = CODECS.of_path(source.path)
        elif not (may_be_damaged and CODECS.sniff(head) is None):
            _check_codec(codec, compression, head, source.path)
        if source.pipe is not None:
            source.pipe.may_rewind = codec is not None  # at damage
        if recover and codec is not None:
            from tfrecord_io.bytes import RecoveringStream

            plain = PlainStream(raw, source.path, head, size)
            return RecoveringStream(plain, codec, max_decompression_ratio, asks=asks)
        return open_decompressed(raw, codec, source.path, head=head, size=size, max_ratio=max_decompression_ratio)
    except BaseException:
        raw.close()
        raise


def open_size(raw: Raw, source: Source) -> int | None:
    """Bytes of the open file: the path may name another one than when its size was looked up."""
    if source.size is None or not isinstance(raw, io.FileIO):
        return source.size
    try:
        return os.fstat(raw.fileno()).st_size
    except OSError as error:
        raise OSError(error.errno, error.strerror, source.path) from error


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
        from tfrecord_io.bytes import looks_like

        content = looks_like(head) or "something else"
    else:
        content = None
    if content is not None:
        reason = f"compression={name!r} was passed, but the file looks like {content}"
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


def open_file(source: Source) -> Any:
    """Open a source as a buffered binary file, for zipfile, pyarrow and the like; seekable if the storage is."""
    from tfrecord_io.store.read.file_object import RawFile

    raw: Any = source.open()
    try:
        size = open_size(raw, source) if source.pipe is None else source.pipe.spool()
        return io.BufferedReader(raw if isinstance(raw, io.RawIOBase) else RawFile(raw, size), _BUFFER)
    except BaseException:
        raw.close()
        raise
