"""Read a damaged compressed file on after the damage: at the next member, or the next block that begins at a byte.

A place that looks like the start of data proves little: a payload may be a compressed file itself, whose bytes stand
unchanged where the compressor stored them. But it stores at most 64 KiB (zstd: 128 KiB, LZ4: 4 MiB) at a time, with
headers of its own in between, which cut such inner data. So data is read from a place only if it is valid from there to
the end of the file, or for longer than inner data can be (`Codec.certain_bytes`).

The streams of `tfrecord_io.bytes.compression.stream` end at damage. This one leaves out what cannot be read: records
are truncated there, as where bytes of a plain file are lost. `RecoveringStream` overrides how a stream ends; `_Search`
goes through the places after the damage, and reads from each by a `_Trial`.

Tests: tests/bytes/compression/test_recovering_stream.py, and the suite of codecs in tfrecord_io/testing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tfrecord_io.bytes.compression.codec import Codec, Damage, Decompressor
from tfrecord_io.bytes.compression.stream import DecompressedStream, PlainStream
from tfrecord_io.errors import CompressionError

_WINDOW_BYTES = 1 << 20  # searched at a time
_LOOK_BYTES = 4 << 10  # almost all other data is found to be invalid within these
_MOST_TRIED = 4 << 30  # uncompressed bytes of places that were refused: bounds the time that a file can take
_STEP = 256 << 10
_OVERLAP = 4  # bytes of the longest pattern


@dataclass(frozen=True, slots=True)
class _Place:
    """Where data may begin."""

    offset: int  # in the compressed file
    new_member: Callable[..., Decompressor]
    is_inside: bool  # of a member, whose header is not read


class RecoveringStream(DecompressedStream):
    """The uncompressed bytes of a file that can be read; `gaps` has what was left out.

    No error but those of the storage is raised. If it `asks`, CompressionError is raised at each damage, and
    `pass_damage` goes on after it. If the file cannot seek, it ends at the first damage.
    """

    @dataclass(frozen=True, slots=True)
    class Gap:
        """Bytes of a compressed file that are not read."""

        begin: int  # in the compressed file
        end: int  # that of the file where nothing behind the damage can be read
        offset: int  # the uncompressed bytes that were read before
        reason: str
        hint: str | None = None
        hint_cli: str | None = None

        def __str__(self) -> str:
            return self.text

        @property
        def text(self) -> str:
            """The damage and its place."""
            if self.begin == self.end:
                return f"{self.reason} (byte {self.begin} of the compressed file)"
            return f"{self.reason} (bytes {self.begin} to {self.end} of the compressed file are not read)"

    def __init__(
        self, source: PlainStream, codec: Codec, max_ratio: float | None = None, *, asks: bool = False
    ) -> None:
        super().__init__(source, codec, max_ratio)
        self.gaps: list[RecoveringStream.Gap] = []
        self._asks = asks
        self._damage: str | None = None  # the reason, until it is passed
        self._bytes_left = _MOST_TRIED

    def _end_at_damage(self, reason: str) -> None:
        self._damage = reason
        if self._asks:
            super()._end_at_damage(reason)
        else:
            self.pass_damage()

    def pass_damage(self) -> RecoveringStream.Gap | None:
        """Go on behind the damage that ended the stream; None if nothing behind it can be read."""
        if self._damage is None:
            self._ended |= isinstance(self._error, CompressionError)  # more than `max_ratio` was refused
            return None
        begin, place = self.raw_offset, self._find_place()
        if place is None:
            self._ended = True
            end = begin + self._rest_of_file(begin)
        else:
            end = place.offset
            self._source.rewind(end)
            self._data, self._member = b"", None
            if place.is_inside:
                self._resume(end, place.new_member)
        gap = RecoveringStream.Gap(begin, end, self.offset, self._damage)
        self.gaps.append(gap)
        self._damage = self._error = None
        return None if place is None else gap

    def _find_place(self) -> _Place | None:
        """The first certain place after the damage."""
        begin, member_begin = self.raw_offset, 0 if self._member_begin is None else self._member_begin[0]
        if not self._source.rewind(member_begin):
            return None
        search = _Search(
            self._source,
            self._codec,
            begin,
            in_header=self._member is None or member_begin == begin,
            certain_bytes=self._codec.certain_bytes(self._source.read()),
            bytes_left=self._bytes_left,
        )
        place = search.find()
        self._bytes_left = search.bytes_left
        return place

    def _end_at_ratio(self, error: CompressionError) -> None:
        if self._asks:
            super()._end_at_ratio(error)
        begin = self.raw_offset
        self._ended = True
        end = begin + self._rest_of_file(begin)
        self.gaps.append(
            RecoveringStream.Gap(
                begin, end, offset=self.offset, reason=error.reason, hint=error.hint, hint_cli=error.hint_cli
            )
        )

    def _rest_of_file(self, begin: int) -> int:
        if self._source.size is not None:
            return self._source.size - begin
        if not self._source.rewind(begin):
            return 0
        while self._source.read():
            pass
        return self._source.offset - begin


class _Search:
    """Finds a place from which data can be read, from byte `begin` of the file on.

    If that is `in_header`, a member begins there.
    """

    def __init__(
        self, source: PlainStream, codec: Codec, begin: int, *, in_header: bool, certain_bytes: int, bytes_left: int
    ) -> None:
        self._source, self._codec = source, codec
        self._begin, self._in_header = begin, in_header
        self._certain_bytes = certain_bytes  # see `Codec.certain_bytes`
        self.bytes_left = bytes_left  # that may be decompressed to look for places

    def find(self) -> _Place | None:
        """The first certain place; None if there is none, or none before so many bytes were decompressed."""
        for place, head in self._places():
            if self.bytes_left <= 0:
                break
            if self._is_valid(place, head) and self._is_certain(place):
                return place
        return None

    def _places(self) -> Iterator[tuple[_Place, bytes]]:
        """Places that look like the start of data, and the bytes there."""
        codec, begin, in_header = self._codec, self._begin, self._in_header
        behind_header = begin + codec.header_bytes if in_header and codec.header_bytes else -1
        for offset, data in self._windows(begin):
            is_last = len(data) < _WINDOW_BYTES
            if offset <= behind_header < offset + len(data):
                head = data[behind_header - offset :][:_LOOK_BYTES]
                yield _Place(behind_header, codec.resume, is_inside=True), head
            for match in codec.resumption.finditer(data):
                if match.start() >= len(data) - _OVERLAP and not is_last:
                    break  # it is at the start of the next window
                is_inside = match.lastgroup == "block"
                at, new = (match.end(), codec.resume) if is_inside else (match.start(), codec.decompressor)
                if is_inside or offset + at > begin or not in_header:
                    yield _Place(offset + at, new, is_inside), data[at : at + _LOOK_BYTES]

    def _windows(self, begin: int) -> Iterator[tuple[int, bytes]]:
        """The file from `begin` on, in pieces that overlap, each with its offset."""
        while self._source.rewind(begin):
            parts, size = [], 0
            while size < _WINDOW_BYTES and (part := self._source.read()):
                parts.append(part)
                size += len(part)
            yield begin, b"".join(parts)
            if size < _WINDOW_BYTES:
                return
            begin += size - _OVERLAP

    def _is_valid(self, place: _Place, head: bytes) -> bool:
        """True if the first bytes are valid, by decompressing them."""
        member = place.new_member()
        try:
            self.bytes_left -= len(member.decompress(head, _STEP))
        except Damage:
            return False
        return True

    def _is_certain(self, place: _Place) -> bool:
        """True if the data is valid up to the end of the file, or for long enough."""
        self._source.rewind(place.offset)
        trial = _Trial(self._source, self._codec, place)
        buffer = memoryview(bytearray(_STEP))
        while trial.readinto(buffer):
            if trial.raw_offset - place.offset >= self._certain_bytes:
                return True
        self.bytes_left -= trial.offset if trial.is_damaged else 0
        return not trial.is_damaged


class _Trial(DecompressedStream):
    """Reads from a place until the data is invalid."""

    def __init__(self, source: PlainStream, codec: Codec, place: _Place) -> None:
        super().__init__(source, codec)
        self.is_damaged = False
        if place.is_inside:
            self._resume(place.offset, place.new_member)

    def _handle_damage(self, damage: Damage) -> None:
        self._ended = self.is_damaged = True
