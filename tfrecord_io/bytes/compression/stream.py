"""Streams of the uncompressed bytes of a file, of any compression.

A stream has ``readinto(buffer) -> int`` (0 only at the end; fewer bytes than requested are usual), ``offset``
(uncompressed bytes returned) and ``close()``. An error is raised by a separate call, after all bytes before it were
returned, and again by each later call.

Tests: tests/bytes/compression/test_compressed_files.py.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from tfrecord_io.base import LIMITS, OnDamage, hide_secrets
from tfrecord_io.bytes.compression.codec import Codec, Damage, Decompressor
from tfrecord_io.errors import CompressionError, ReplacedError

_CHUNK = 256 << 10  # compressed bytes per read
_STEP = 256 << 10  # decompressed bytes at a time: they stay in the processor's cache until copied


class Raw(Protocol):
    """A raw binary file."""

    def readinto(self, buffer: memoryview, /) -> int | None: ...

    def close(self) -> None: ...


class Stream(Protocol):
    """See the module's docstring."""

    offset: int

    @property
    def compression(self) -> str | None:
        """Name of the codec; None for a plain file."""
        ...

    @property
    def raw_offset(self) -> int:
        """Bytes of the file used for the bytes returned."""
        ...

    def readinto(self, buffer: memoryview, /) -> int: ...

    def close(self) -> None: ...


def open_decompressed(
    raw: Raw,
    codec: Codec | None,
    path: str,
    *,
    head: bytes = b"",
    size: int | None = None,
    max_ratio: float | None = None,
) -> Stream:
    """Open the uncompressed bytes of a file as a stream.

    `raw` is closed with the stream; if it can seek, damaged data is read twice to return all bytes before the damage.
    `head` are the first bytes of the file, if they have been read from `raw` already. If the file ends before `size`,
    that is an error, as files may shrink and connections break. `max_ratio` is `Limits.decompression_ratio`.

    ``readinto`` raises CompressionError where the data is truncated or damaged, or decompresses to more than the ratio
    allows: its ``.offset`` is in the uncompressed bytes, the message has both. Where reading fails, the message of the
    OSError has the offset in the file.
    """
    stream = PlainStream(raw, path, head, size)
    return stream if codec is None else DecompressedStream(stream, codec, max_ratio)


class PlainStream:
    """The bytes of a file, including a head that was read before; errors have offsets, and an early end is one."""

    compression: str | None = None

    def __init__(self, raw: Raw, path: str, head: bytes, size: int | None) -> None:
        self.raw, self.path, self.size = raw, path, size
        self.offset = 0
        self._head = memoryview(head)
        self._base: int | None = None  # the position of the file's first byte; None if the file cannot seek
        with suppress(AttributeError, OSError):
            self._base = raw.tell() - len(head) if raw.seekable() else None  # type: ignore[attr-defined]

    @property
    def raw_offset(self) -> int:
        """Bytes of the file returned."""
        return self.offset

    def readinto(self, buffer: memoryview) -> int:
        if len(self._head):
            count = min(len(buffer), len(self._head))
            buffer[:count] = self._head[:count]
            self._head = self._head[count:]
            self.offset += count
            return count
        try:
            n = self.raw.readinto(buffer)
        except ReplacedError:
            raise
        except OSError as error:
            if error.errno is None or error.strerror is None:
                error.add_note(f"{hide_secrets(self.path)}: reading at byte {self.offset}")
                raise
            raise OSError(error.errno, f"{error.strerror}, at byte {self.offset}", self.path) from error
        if n is None:
            raise BlockingIOError(errno.EAGAIN, "a non-blocking file has no data yet", self.path)
        if n == 0 and len(buffer) and self.size is not None and self.offset < self.size:
            text = f"the file ended at byte {self.offset}, before byte {self.size}: it was truncated while being read"
            raise OSError(errno.EIO, text, self.path)
        self.offset += n
        return n

    def read(self) -> bytes:
        chunk = bytearray(_CHUNK)
        return bytes(memoryview(chunk)[: self.readinto(memoryview(chunk))])

    def rewind(self, offset: int) -> bool:
        """Go back to byte `offset` of the file; False if the file cannot seek."""
        if self._base is None or not self.raw.seekable():  # type: ignore[attr-defined]
            return False
        self.raw.seek(self._base + offset)  # type: ignore[attr-defined]
        self._head = memoryview(b"")
        self.offset = offset
        return True

    def close(self) -> None:
        self.raw.close()


class DecompressedStream:
    """The uncompressed bytes of the members of a file, one after the other.

    Three methods say what happens at an error, and are what `tfrecord_io.bytes.compression.recovering_stream`
    overrides: `_handle_damage`, which calls `_end_at_damage` once all bytes before the damage were returned, and
    `_end_at_ratio`.
    """

    def __init__(self, source: PlainStream, codec: Codec, max_ratio: float | None = None) -> None:
        self.offset = 0
        self._source, self._codec, self._max_ratio = source, codec, max_ratio
        codec.decompressor()  # raises here if its library is missing
        self._data = b""  # read, but not passed to a member
        self._out = memoryview(b"")  # decompressed, but not returned: steps do not depend on the reader's buffers
        self._member: Decompressor | None = None
        self._member_begin: tuple[int, int] | None = None  # file offset, uncompressed offset
        self._new_member: Callable[..., Decompressor] = codec.decompressor  # of the current member
        self._error: Exception | None = None
        self._ended = False

    @property
    def compression(self) -> str | None:
        return self._codec.name

    @property
    def raw_offset(self) -> int:
        """Bytes of the file used for the bytes returned."""
        return self._source.offset - len(self._data) - (0 if self._member is None else self._member.held)

    def readinto(self, buffer: memoryview) -> int:
        while len(buffer) and not self._ended:
            if self._error is not None:
                raise self._error
            if not len(self._out):
                try:
                    out = self._next(_STEP)
                except Damage as damage:
                    self._handle_damage(damage)
                    continue
                if out and self._max_ratio is not None:
                    self._check_ratio(len(out), self._max_ratio)
                self._out = memoryview(out)
            if len(self._out) and not self._ended:
                n = min(len(buffer), len(self._out))
                buffer[:n] = self._out[:n]
                self._out = self._out[n:]
                self.offset += n
                return n
        return 0

    def _resume(self, begin: int, new_member: Callable[..., Decompressor]) -> None:
        """Begin inside a member, at the byte `begin` of the file."""
        self._member_begin, self._new_member = (begin, self.offset), new_member
        self._member = new_member()

    def _check_ratio(self, size: int, most: float) -> None:
        """Raise CompressionError if `size` more bytes are too many for the bytes of the file used for them."""
        used, total = self.raw_offset, self.offset + size
        if total > LIMITS.decompressed_free_bytes + most * used:
            reason = f"{used} bytes of {self._codec.name} data decompress to {total} or more"
            reason += f", more than {most:g} times as many and {LIMITS.decompressed_free_bytes}"
            advice = "pass a larger tfr.dataset(…, limits=tfr.Limits(decompression_ratio=…)) if you trust the file"
            advice_cli = "pass a larger --max-decompression-ratio if you trust the file"
            ratio = total / max(used, 1)
            self._end_at_ratio(
                CompressionError(
                    reason,
                    path=self._source.path,
                    offset=self.offset,
                    expected=most,
                    got=ratio,
                    hint=advice,
                    hint_cli=advice_cli,
                )
            )

    def _end_at_ratio(self, error: CompressionError) -> None:
        """End the stream, as the data decompresses to too many times its size."""
        self._error = error
        raise error

    def close(self) -> None:
        self._ended, self._member, self._data, self._out = True, None, b"", memoryview(b"")
        self._source.close()

    def _take(self) -> bytes:
        data = self._data or self._source.read()
        self._data = b""
        return data

    def _next(self, limit: int) -> bytes:
        """Do one step: a member begins, returns bytes, or ends."""
        member = self._member or self._begin()
        if member is None:
            return b""
        data = b""
        if member.hungry:
            data = self._take()
            if not data:
                reason = f"the {self._codec.name} data ends early: the file is truncated or incomplete"
                raise Damage(reason, lossy=member.lossy)
        out = member.decompress(data, limit)
        if member.eof:
            self._data, self._member = member.unused, None
        return out

    def _begin(self) -> Decompressor | None:
        """Begin the next member; None at the end of the file."""
        first = self._member_begin is None
        data = self._take()
        if not first:
            while data and not data.lstrip(self._codec.padding):
                data = self._take()
            data = data.lstrip(self._codec.padding)
        self._data = data
        if not data:
            self._ended = True
            return None
        begin = self.raw_offset
        while len(self._data) < 4 and (more := self._source.read()):  # enough for any magic bytes
            self._data += more
        if not first and not self._codec.accepts(self._data[:512]):
            raise Damage(f"other data after the {self._codec.name} data")
        self._member_begin, self._new_member = (begin, self.offset), self._codec.decompressor
        self._member = self._new_member()
        return self._member

    def _handle_damage(self, damage: Damage) -> None:
        """Return the bytes before the damage first, which are decompressed again if they were lost."""
        if not (damage.lossy and self._replay()):
            self._end_at_damage(damage.reason)

    def _end_at_damage(self, reason: str) -> None:
        """End the stream with an error, as no byte before the damage is left."""
        reason = f"{reason} (byte {self.raw_offset} of the compressed file)"
        self._error = CompressionError(
            reason, path=self._source.path, offset=self.offset, hint=OnDamage.ADVICE, hint_cli=OnDamage.ADVICE_CLI
        )

    def _replay(self) -> bool:
        """Decompress the damaged member again with an exact decompressor, up to the current offset."""
        assert self._member_begin is not None
        begin, replayed = self._member_begin
        try:
            if not self._source.rewind(begin):
                return False
            self._data, self._member = b"", self._new_member(exact=True)
            while replayed < self.offset:
                replayed += len(self._next(min(self.offset - replayed, _STEP)))
        except Damage:
            return False
        except Exception as error:  # the position is lost, so no more bytes can be returned
            self._error = error
            raise
        return True
