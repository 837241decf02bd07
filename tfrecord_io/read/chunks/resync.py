"""Find the next record boundary after damage, in a stream that is read once: the one rule for readers and `salvage`.

A header is found by testing at every byte whether the CRC of a length matches. That alone proves little: a payload may
hold headers, even a whole TFRecord file, whose records must not be taken for those of the file. A boundary is accepted

- if the bytes before it are the payload of the damaged record: its own checksum says so, and only its header is bad;
- or if a chain of intact records leads from it to the end of the file, or has `_CONFIRMED_RECORDS` records, or as many
  as fit in `_CONFIRMED_BYTES`.

A chain inside a payload ends with the payload at the latest, and a checksum of the payload follows. So a chain of
enough records that breaks is rejected if it is followed by a checksum and the next header: at once, or after fields of
the message that holds it, or where the damaged record's own checksum is. If the length of the damaged record is known,
a chain must lead beyond its end, and if the file ends before that end, nothing is searched: whether what is left are
the records after lost bytes, or those of a file inside a payload that was truncated, cannot be distinguished. What
remains is a file of more records inside a payload, truncated or followed by other bytes than fields, where both the
header and bytes of the payload are damaged.

A record in which each LF became CRLF, as by a transfer in text mode, is recognized by its checksums. If its payload had
CRLF of its own, only the checksum of the header fits: then its length is known.

Damaged parts of a compressed file are passed (`BlockWalker.extend`), and what cannot be read is the end of the file:
all readers and tools find the same records.

Memory is bounded by `_CONFIRMED_BYTES` and the size of a record, time by the number of bytes that are searched.

Tests: tests/read/chunks/test_recovery.py and tests/laws/test_skip_is_salvage.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tfrecord_io.base import LIMITS, MIB
from tfrecord_io.bytes import Engine, FaultCode, FrameHeader, crc32c
from tfrecord_io.read.chunks.block_walker import BlockWalker

_CONFIRMED_RECORDS = 64
_CONFIRMED_BYTES = 32 * MIB
_MOST_LINKS = 64  # records of a chain whose payload is bad
_MOST_FIELDS = 1000  # of a message, after a file inside it
_MOST_HEADERS = 64  # after a broken chain that may be those after the damaged record
_TRAILING_BYTES = 4 * MIB  # of a message, after a file inside it
_CRLF = b"\r\n"
_SPARE_BYTES = 256 * MIB  # that chains may have beyond `_CHECKS` times the bytes searched: payloads full of headers
_CHECKS = 8


def most_chain_bytes(searched: int) -> int:
    """How many bytes a search that has passed `searched` bytes may read in chains: payloads can be full of headers."""
    return _SPARE_BYTES + _CHECKS * searched


class _End(Enum):
    """How a chain ends, as far as it is known."""

    FILE = 1  # exactly with the file
    BROKEN = 2
    UNREAD = 3  # with the bytes read so far


@dataclass(slots=True)
class _Chain:
    """Records that follow one another from `begin` on."""

    begin: int
    offset: int  # of the first record that was not checked, or that breaks the chain
    records: int = 0  # intact ones
    links: int = 0  # records whose header is intact, and that lead to another one, but whose payload is not
    intact_end: int = 0  # where the intact records at the start end


class _PayloadProof:
    """Recognizes the end of a payload that begins at `begin` by its checksum; asked in ascending order."""

    def __init__(self, engine: Engine, begin: int) -> None:
        self._engine = engine
        self._end = begin  # of the bytes in `_crc`
        self._crc = 0

    def copy(self) -> _PayloadProof:
        proof = _PayloadProof(self._engine, self._end)
        proof._crc = self._crc
        return proof

    def advance(self, walker: BlockWalker, end: int) -> None:
        """Take the bytes up to `end`, which the walker holds."""
        if end > self._end:
            base = walker.offset
            self._crc = crc32c(walker.data[self._end - base : end - base], self._crc)
            self._end = end

    def holds(self, walker: BlockWalker, boundary: int) -> bool:
        """True if the payload and its checksum end at `boundary`."""
        end = boundary - FrameHeader.FOOTER_BYTES
        if end < self._end:
            return False
        self.advance(walker, end)
        at = end - walker.offset
        return FrameHeader.mask_crc(self._crc) == int.from_bytes(
            walker.data[at : at + FrameHeader.FOOTER_BYTES].tobytes(), "little"
        )


class BoundarySearch:
    """Searches the next boundary after the damaged record at the start of a walker's ``data``.

    `pass_damage` moves the walker there.
    """

    def __init__(self, walker: BlockWalker, engine: Engine) -> None:
        self._walker, self._engine = walker, engine
        self._begin = walker.offset
        self._spent = 0  # bytes of chains that were rejected

    def pass_damage(self) -> int:
        """Move the walker past the damaged record, and return the offset there: of the next record, or the end."""
        walker = self._walker
        boundary = self._behind_text()
        if boundary is not None:
            return self._discard_to(boundary)
        size = self._size_at(self._begin)
        if size is None or size > LIMITS.MAX_RECORD_BYTES + FrameHeader.FRAME_BYTES:
            is_text, boundary = self._behind_text_header()
            if not is_text:
                boundary = self._search(self._begin + 1, _PayloadProof(self._engine, self._begin + FrameHeader.BYTES))
        elif size > walker.max_record_bytes + FrameHeader.FRAME_BYTES:
            return self._discard_to(self._begin + size)
        else:
            boundary = self._behind_payload(self._begin + size)
        return self._discard_to(boundary)

    def _discard_to(self, boundary: int | None) -> int:
        """Discard the bytes before the boundary; None: all that can be read."""
        walker = self._walker
        while True:
            buffered = len(walker.data)
            wanted = buffered if boundary is None else boundary - walker.offset
            walker.discard(min(buffered, wanted))
            if (boundary is not None and wanted <= buffered) or not walker.extend():
                return walker.offset

    def _behind_payload(self, end: int) -> int | None:
        """The boundary after a record whose header is intact, and states this `end`."""
        if not self._holds(end):
            return None  # the file ends inside the record
        if not self._holds(end + FrameHeader.BYTES):
            return end
        chain = _Chain(end, end, intact_end=end)
        if self._size_at(end) is not None and self._judge(chain, None, None) == end:
            return end
        # Where bytes of the payload are missing, the next record begins before the stated end. Where bytes were put in,
        # that end is inside the payload, and may be the begin of a record there, if another record follows the chain.
        # A few bytes that end with the file are the begin of a record that was cut off, more likely than a checksum.
        boundary = self._search(self._begin + FrameHeader.BYTES, None, stop=end)
        if boundary is None and chain.records and self._ends_in_payload(chain.offset, file_may_end=False):
            return self._search(chain.intact_end, None)
        return end if boundary is None else boundary

    def _behind_text(self) -> int | None:
        """The boundary after a record that is intact but for CRLF instead of LF."""
        header = self._text_header()
        text = None if header is None else self._as_text(FrameHeader(header).frame_size)
        if text is None:
            return None
        content, end = text
        _, fault = self._engine.scan(content, max_record_bytes=self._walker.max_record_bytes, final=False)
        return end if fault is None and len(content) < end - self._begin else None

    def _behind_text_header(self) -> tuple[bool, int | None]:
        """Return if the header is intact but for CRLF instead of LF, and if so, the boundary after its record.

        Some CRLF of the payload may be its own, so that its end is not known exactly.
        """
        header = self._text_header()
        if header is None:
            return False, None
        size = FrameHeader(header).frame_size
        if not self._holds(self._begin + size):
            return True, None  # the file ends inside the record
        text = self._as_text(size)
        stop = self._walker.offset + len(self._walker.data) if text is None else text[1]
        boundary = self._search(self._begin + FrameHeader.BYTES, None, stop=stop)
        return True, self._search(stop, None) if boundary is None else boundary

    def _text_header(self) -> bytes | None:
        """The header with LF instead of CRLF, if it is intact then."""
        text = self._as_text(FrameHeader.BYTES)
        if text is None or not FrameHeader(text[0]).is_intact:
            return None
        return (
            text[0]
            if FrameHeader(text[0]).frame_size <= self._walker.max_record_bytes + FrameHeader.FRAME_BYTES
            else None
        )

    def _as_text(self, size: int) -> tuple[bytes, int] | None:
        """`size` bytes from the begin on, with LF instead of CRLF, and where they end; None if they are fewer."""
        begin, end = self._begin, self._begin + size
        while self._holds(end):
            base = self._walker.offset
            if self._holds(end + 1) and self._walker.data[end - 1 - base : end + 1 - base].tobytes() == _CRLF:
                end += 1
            text = self._walker.data[begin - base : end - base].tobytes().replace(_CRLF, b"\n")
            if len(text) == size:
                return text, end
            end += size - len(text)
        return None

    # Candidates -------------------------------------------------------------------------------------------------

    def _search(self, at: int, proof: _PayloadProof | None, stop: int | None = None) -> int | None:
        """The first boundary from `at` on; with `stop`, before it, and of a chain that leads beyond it."""
        first = at
        while True:
            header = self._next_header(at, proof, stop)
            if header is None:
                return None
            if proof is not None and proof.holds(self._walker, header):
                return header
            chain = _Chain(header, header, intact_end=header)
            boundary = None
            if self._spent <= most_chain_bytes(header - first):
                boundary = self._judge(chain, proof, stop)
            if boundary is not None:
                return boundary
            self._spent += chain.offset - header
            at = max(header + 1, chain.intact_end)  # no record of the file begins inside intact records

    def _next_header(self, at: int, proof: _PayloadProof | None, stop: int | None) -> int | None:
        """The offset of the next header from `at` on; bytes before it are discarded unless there is a `stop`."""
        walker = self._walker
        while stop is None or at < stop:
            position = self._engine.find_header(
                walker.data, max(0, at - walker.offset), max_record_bytes=walker.max_record_bytes
            )
            if position >= 0:
                offset = walker.offset + position
                return offset if stop is None or offset < stop else None
            at = max(at, walker.offset + len(walker.data) - FrameHeader.BYTES + 1)
            if stop is None:
                kept = max(walker.offset, at - FrameHeader.FOOTER_BYTES)  # a checksum may be before the next header
                if proof is not None:
                    proof.advance(walker, kept)
                walker.discard(kept - walker.offset)
            if not walker.extend():
                return None
        return None

    def _judge(self, chain: _Chain, proof: _PayloadProof | None, stop: int | None) -> int | None:
        """The boundary that the chain proves: its own begin, or the one after the payload that it is in; or None."""
        walker = self._walker
        while True:
            end = self._follow(chain)
            crosses = stop is None or chain.offset > stop
            if end is _End.FILE:
                return chain.begin if chain.records else None
            if end is _End.BROKEN:
                break
            if crosses and chain.records and chain.offset - chain.begin >= _CONFIRMED_BYTES:
                return chain.begin
            if not walker.extend():
                break
        has_bytes = chain.records > 0 and chain.offset - chain.begin >= _CONFIRMED_BYTES
        is_confirmed = crosses and (has_bytes or chain.records >= _CONFIRMED_RECORDS)
        if not is_confirmed or self._ends_in_payload(chain.offset):
            return None
        behind = None if proof is None else self._proven_behind(chain.offset, proof.copy())
        return chain.begin if behind is None else behind

    def _follow(self, chain: _Chain) -> _End:
        """Extend the chain by the records that the walker holds."""
        walker = self._walker
        while True:
            at = chain.offset - walker.offset
            data = walker.data[at:]
            frames, fault = self._engine.scan(data, max_record_bytes=walker.max_record_bytes, final=walker.final)
            chain.records += len(frames.starts)
            if chain.offset == chain.intact_end:
                chain.intact_end += frames.consumed
            chain.offset += frames.consumed
            if fault is None:
                return _End.FILE if walker.final else _End.UNREAD
            self._spent += max(0, fault.byte)
            if fault.code is not FaultCode.PAYLOAD_CRC or chain.links == _MOST_LINKS:
                return _End.BROKEN
            following = (
                chain.offset + FrameHeader(data[frames.consumed : frames.consumed + FrameHeader.BYTES]).frame_size
            )
            if not self._is_held(following + FrameHeader.BYTES):
                if not walker.final:
                    return _End.UNREAD
                return _End.FILE if following == walker.offset + len(walker.data) else _End.BROKEN
            if self._size_at(following) is None:
                return _End.BROKEN
            chain.links += 1
            chain.offset = following

    # Files inside payloads --------------------------------------------------------------------------------------

    def _ends_in_payload(self, offset: int, *, file_may_end: bool = True) -> bool:
        """True if a payload ends at `offset`, or after fields of a message that begin there.

        Its checksum and then the next header, or the end of the file if that may be, follow.
        """
        at: int | None = offset
        for _ in range(_MOST_FIELDS):
            if at is None or at - offset > _TRAILING_BYTES:
                return False
            boundary = at + FrameHeader.FOOTER_BYTES
            if self._is_boundary(boundary, file_may_end=file_may_end):
                proof = _PayloadProof(self._engine, offset + FrameHeader.BYTES)
                return not proof.holds(self._walker, boundary)  # else a record of the chain that lacks its header
            at = self._after_field(at)
        return False

    def _is_boundary(self, offset: int, *, file_may_end: bool) -> bool:
        """True if a header is at `offset`, or the file ends there if it may."""
        if not self._holds(offset + FrameHeader.BYTES):
            return file_may_end and self._walker.final and offset == self._walker.offset + len(self._walker.data)
        return self._size_at(offset) is not None

    def _after_field(self, at: int) -> int | None:
        """The offset after a field of a message; None without a field."""
        self._holds(at + 20)
        begin = at - self._walker.offset
        head = self._walker.data[begin : begin + 20].tobytes()
        tag, used = _varint(head, 0)
        if used is None or tag < 8:
            return None
        kind = tag & 7
        if kind == 0:
            _, end = _varint(head, used)
            return None if end is None else at + end
        if kind == 2:
            length, end = _varint(head, used)
            return None if end is None else at + end + length
        fixed = {1: 8, 5: 4}.get(kind)
        return None if fixed is None else at + used + fixed

    def _proven_behind(self, offset: int, proof: _PayloadProof) -> int | None:
        """The boundary after `offset` that the damaged record's own checksum proves."""
        for _ in range(_MOST_HEADERS):
            if offset - self._begin > _CONFIRMED_BYTES:
                return None
            if not self._holds(offset + FrameHeader.BYTES):
                end = self._walker.offset + len(self._walker.data)
                return end if proof.holds(self._walker, end) else None
            data, base = self._walker.data, self._walker.offset
            position = self._engine.find_header(data, offset - base, max_record_bytes=self._walker.max_record_bytes)
            if position < 0:
                offset = base + len(data) - FrameHeader.BYTES + 1
                continue
            if proof.holds(self._walker, base + position):
                return base + position
            offset = base + position + 1
        return None

    # What the walker holds --------------------------------------------------------------------------------------

    def _is_held(self, end: int) -> bool:
        return end <= self._walker.offset + len(self._walker.data)

    def _holds(self, end: int) -> bool:
        """Read on until the walker holds the bytes up to `end`; False if they cannot be read."""
        while not self._is_held(end):
            if not self._walker.extend():
                return False
        return True

    def _size_at(self, offset: int) -> int | None:
        """The frame size that the header at `offset` states; None if it is not intact."""
        at = offset - self._walker.offset
        header = self._walker.data[at : at + FrameHeader.BYTES].tobytes()
        return FrameHeader(header).frame_size if FrameHeader(header).is_intact else None


def _varint(data: bytes, at: int) -> tuple[int, int | None]:
    """A varint, and the index after it; None if it is incomplete."""
    value = shift = 0
    for index in range(at, min(at + 10, len(data))):
        value |= (data[index] & 0x7F) << shift
        shift += 7
        if data[index] < 0x80:
            return value, index + 1
    return 0, None
