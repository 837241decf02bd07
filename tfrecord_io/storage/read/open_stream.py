"""Open a source as a stream of uncompressed bytes: find its compression, or check the one that is said."""

from __future__ import annotations

from tfrecord_io.compression import SNIFF_BYTES, Codec, Raw, Stream, get_codec, infer, open_decompressed, sniff
from tfrecord_io.errors import CompressionError
from tfrecord_io.format import magic as foreign
from tfrecord_io.format.framing import is_record_header
from tfrecord_io.storage.read.source import Source
from tfrecord_io.storage.read.spans import SpanStream


def open_source(source: Source, compression: str | None = "infer") -> Stream:
    """Open a source and decompress it.

    Parameters
    ----------
    source : Source
        A piece of a file is plain.
    compression : str or None
        "infer" goes by content; else a name as for `tfrecord_io.compression.get_codec`, checked against it.

    Raises
    ------
    CompressionError
        `compression` is not what the content looks like.
    OSError
        It cannot be opened or read.
    """
    codec = None if compression == "infer" else get_codec(compression)  # a wrong name is told before a file is opened
    raw = source.open()
    try:
        if source.span is not None:
            if codec is not None:
                raise CompressionError(
                    f"compression={compression!r} was said, but this is a piece of a plain file", path=source.path
                )
            return SpanStream(raw, source.path, *source.span)
        head = _read_head(raw, source)
        codec = infer(head, source.path) if compression == "infer" else _checked(codec, compression, head, source.path)
        return open_decompressed(raw, codec, source.path, head=head, size=source.size)
    except BaseException:
        raw.close()
        raise


def _read_head(raw: Raw, source: Source) -> bytes:
    stream = open_decompressed(raw, None, source.path, size=source.size)
    head = memoryview(bytearray(SNIFF_BYTES))
    done = 0
    while done < SNIFF_BYTES and (n := stream.readinto(head[done:])):
        done += n
    return bytes(head[:done])


def _checked(codec: Codec | None, said: str | None, head: bytes, path: str) -> Codec | None:
    if codec is None:
        other = sniff(head)
        looks = None if other is None else f"{other.name} data"
    elif is_record_header(head):
        looks = "a plain TFRecord file"
    elif head and not codec.accepts(head):
        other = sniff(head)
        looks = f"{other.name} data" if other is not None else foreign.looks_like(head) or "something else"
    else:
        looks = None
    if looks is not None:
        reason = f"compression={said!r} was said, but the file looks like {looks}"
        raise CompressionError(
            reason, path=path, expected=said, got=looks, advice="compression='infer' goes by the content"
        )
    return codec
