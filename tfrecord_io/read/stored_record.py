"""A record as stored in its file: features are found, and some of them taken, without reading the others.

A record of any size takes the memory of a few pages.

Tests: tests/read/test_stored_record.py.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

from tfrecord_io.bytes import FieldTag, FrameHeader, crc32c

if TYPE_CHECKING:
    from tfrecord_io.store import RandomAccessFile

_PAGE = 256 << 10  # bytes that are read at a time
_KEPT_PAGES = 4
_MOST_FEATURES = 5_000  # of a record that are gone through: a record of more is taken whole
_MOST_VALUES = 100_000  # of a feature that are counted
_SMALL = 64 << 10  # bytes of a feature that is always taken
_CUT = 64 << 10  # bytes of the first values of a feature; a multiple of those of a float
_FEATURES, _FEATURE_LISTS, _SCHEMA = 1, 2, 21574  # fields of an Example, or a SequenceExample
_KINDS = {1: "bytes", 2: "float", 3: "int64"}


class StoredBytes:
    """Bytes of a file, of which the pages are read that are looked at.

    A slice of them is StoredBytes, too.
    """

    __slots__ = ("_page", "begin", "end")

    def __init__(self, page: Callable[[int], bytes], begin: int, end: int) -> None:
        self._page, self.begin, self.end = page, begin, end

    @classmethod
    def of(cls, read: Callable[[int, int], bytes], size: int) -> StoredBytes:
        """The first `size` bytes of what `read` reads a part of, from a byte to another one."""
        page = lru_cache(_KEPT_PAGES)(lambda number: read(number * _PAGE, min(size, (number + 1) * _PAGE)))
        return cls(page, 0, size)

    def __len__(self) -> int:
        return self.end - self.begin

    def __getitem__(self, part: slice) -> StoredBytes:
        begin, end, _ = part.indices(len(self))
        return StoredBytes(self._page, self.begin + begin, self.begin + max(begin, end))

    def byte(self, at: int) -> int:
        """One byte; ValueError beyond the end."""
        at += self.begin
        if at >= self.end:
            raise ValueError("a field beyond the end")
        return self._page(at // _PAGE)[at % _PAGE]

    def pieces(self) -> Iterator[bytes]:
        """The bytes in pieces of at most a page."""
        at = self.begin
        while at < self.end:
            page, first = self._page(at // _PAGE), at % _PAGE
            piece = page[first : first + self.end - at]
            at += len(piece)
            yield piece

    def read(self) -> bytes:
        """All bytes."""
        return b"".join(self.pieces())

    def fields(self) -> Iterator[tuple[int, int | StoredBytes]]:
        """The fields of a protobuf message of any type, in the order of its bytes; ValueError if it is none.

        >>> fields = StoredBytes.of(lambda begin, end: b"\\x08\\x96\\x01\\x12\\x02hi"[begin:end], 7).fields()
        >>> next(fields), next(fields)[1].read()
        ((1, 150), b'hi')
        """
        at = 0
        while at < len(self):
            key, at = self._varint(at)
            number, wire_type = key >> 3, key & 7
            if wire_type == 0:
                value, at = self._varint(at)
                yield number, value
                continue
            if wire_type not in (1, 2, 5):
                raise ValueError(f"wire type {wire_type}")
            size, at = self._varint(at) if wire_type == 2 else (8 if wire_type == 1 else 4, at)
            if at + size > len(self):
                raise ValueError("a field beyond the end")
            yield number, self[at : at + size]
            at += size

    def _varint(self, at: int) -> tuple[int, int]:
        value = 0
        for shift in range(0, 70, 7):
            byte = self.byte(at)
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value, at
        raise ValueError("a varint of more than 10 bytes")


@dataclass(frozen=True, slots=True)
class StoredFeature:
    """A feature of a record, or a field that no Example has.

    Attributes
    ----------
    name : bytes or None
        None for a field that is not a feature.
    number : int
        The field of the record that it is in: 1 for features, 2 for feature lists.
    entry : StoredBytes
        The name and the values, as the field has them.
    content : StoredBytes
        The values: a Feature, or the Features of steps.
    """

    name: bytes | None
    number: int
    entry: StoredBytes
    content: StoredBytes

    @property
    def kind(self) -> str:
        """ "bytes", "float" or "int64"; several if steps have several."""
        if self.name is None:
            return "embedded schema" if self.number == _SCHEMA else f"field {self.number}, which is unknown"
        kinds = (_KINDS.get(kind, f"field {kind}") for step in self._steps() for kind, _ in step.fields())
        return ", ".join(dict.fromkeys(islice(kinds, _MOST_VALUES))) or "no kind"

    @property
    def amount(self) -> str:
        """How many values or steps there are."""
        if self.name is None:
            return ""
        if self.number == _FEATURE_LISTS:
            steps = sum(1 for _ in islice(self._steps(), _MOST_VALUES + 1))
            return f"more than {_MOST_VALUES:,} steps" if steps > _MOST_VALUES else f"{steps:,} steps"
        lists = [*self.content.fields()]
        counts = [_count(kind, values) for kind, values in lists if isinstance(values, StoredBytes)]
        if None in counts:
            return f"more than {_MOST_VALUES:,}"
        return f"{sum(filter(None, counts)):,}" if lists else "none"

    @property
    def value(self) -> StoredBytes:
        """The bytes of the only value, if it has bytes; else the content."""
        if self.name is not None and self.number == _FEATURES:
            kinds = [*self.content.fields()]
            if len(kinds) == 1 and kinds[0][0] == 1 and isinstance(values := kinds[0][1], StoredBytes):
                first = next(values.fields(), None)
                if first is not None and isinstance(first[1], StoredBytes) and first[1].end == values.end:
                    return first[1]
        return self.content

    def cut(self) -> bytes:
        """The entry with the first values alone, which have a few pages at most."""
        assert self.name is not None
        content = (
            _cut_feature(self.content)
            if self.number == _FEATURES
            else _first_parts(self.content, lambda step: FieldTag.of(1).field(_cut_feature(step)))
        )
        return FieldTag.of(1).field(self.name) + FieldTag.of(2).field(content)

    def _steps(self) -> Iterator[StoredBytes]:
        if self.number == _FEATURES:
            yield self.content
        else:
            yield from (step for _, step in self.content.fields() if isinstance(step, StoredBytes))


def _count(kind: int, values: StoredBytes) -> int | None:
    """How many values a list of a kind has, in which numbers may be packed; None if it has too many to be counted."""
    count = 0
    for at, (_, value) in enumerate(values.fields()):
        if at == _MOST_VALUES:
            return None
        if kind == 1 or isinstance(value, int):
            count += 1
        elif kind == 2:
            count += len(value) // 4
        else:
            count += sum(int(np.count_nonzero(np.frombuffer(piece, np.uint8) < 128)) for piece in value.pieces())
    return count


def _first_parts(message: StoredBytes, cut: Callable[[StoredBytes], bytes]) -> bytes:
    """The first fields of a message of one kind of field, each as `cut` makes it; two at least, if there are two."""
    parts, room = [], _CUT
    for _, value in message.fields():
        parts.append(FieldTag.of(1, 0).number(value) if isinstance(value, int) else cut(value))
        room -= len(parts[-1])
        if room <= 0 and len(parts) > 1:  # one alone would look like a single value
            break
    return b"".join(parts)


def _cut_feature(feature: StoredBytes) -> bytes:
    """A feature with its first values alone, of which text ends with a whole character."""

    def cut(kind: int, value: StoredBytes) -> bytes:
        data = value[:_CUT].read()
        if len(data) == len(value):
            pass
        elif kind == 1:
            end = next((end for end in range(_CUT, _CUT - 4, -1) if value.byte(end) & 0xC0 != 0x80), _CUT)
            data = data[:end]
        elif kind == 3:  # packed varints
            data = data[: next((end for end in range(_CUT, 0, -1) if data[end - 1] < 128), 0)]
        return FieldTag.of(1).field(data)

    lists = [(kind, values) for kind, values in feature.fields() if isinstance(values, StoredBytes)]
    return b"".join(FieldTag.of(kind).field(_first_parts(values, partial(cut, kind))) for kind, values in lists)


def _feature(number: int, entry: StoredBytes) -> StoredFeature:
    """The feature of an entry; ValueError if it is none."""
    if number not in (_FEATURES, _FEATURE_LISTS):
        return StoredFeature(None, number, entry, entry)
    parts = dict(entry.fields())
    name, content = parts.get(1, entry[:0]), parts.get(2, entry[:0])
    if not isinstance(content, StoredBytes) or not isinstance(name, StoredBytes):
        raise ValueError("a feature that is a number")
    return StoredFeature(name.read(), number, entry, content)


class StoredRecord:
    """A record in its file.

    Attributes
    ----------
    payload : StoredBytes
    features : list of StoredFeature
        The features of an Example or a SequenceExample, and its other fields, at most 5,000. ValueError if it is no
        message.
    """

    def __init__(self, frame: StoredBytes) -> None:
        self._frame = frame
        self.payload = frame[FrameHeader.BYTES : len(frame) - FrameHeader.FOOTER_BYTES]

    @classmethod
    def from_file(cls, file: RandomAccessFile, begin: int, end: int) -> StoredRecord:
        """The record whose frame is the bytes [begin, end) of a file, which are read when they are needed."""
        return cls(StoredBytes.of(lambda a, b: file.read(begin + a, begin + b).tobytes(), end - begin))

    @property
    def checksums(self) -> tuple[int, int]:
        """The checksum of the payload that the file states, and that of the payload."""
        crc = 0
        for piece in self.payload.pieces():
            crc = crc32c(piece, crc)
        stated = int.from_bytes(self._frame[len(self._frame) - FrameHeader.FOOTER_BYTES :].read(), "little")
        return stated, FrameHeader.mask_crc(crc)

    @cached_property
    def features(self) -> list[StoredFeature]:
        return [_feature(number, entry) for number, entry in self._entries]

    @cached_property
    def large(self) -> dict[str, StoredFeature]:
        """The features that are not small, by name; none of a record that `has_more` features."""
        large = [] if self.has_more else [pair for pair in self._entries if len(pair[1]) > _SMALL]
        features = (_feature(number, entry) for number, entry in large)
        return {f.name.decode(errors="replace"): f for f in features if f.name is not None}

    def find_large(self, columns: Container[str]) -> dict[str, StoredFeature]:
        """The `large` features of some columns, by name: a column has its own feature, or several below its name."""
        features = self.large.items()
        return {name: f for name, f in features if name in columns or name.rpartition("/")[0] in columns}

    @property
    def has_more(self) -> bool:
        """True if it has more features than are gone through."""
        return len(self._entries) == _MOST_FEATURES

    @cached_property
    def _entries(self) -> list[tuple[int, StoredBytes]]:
        """The names with the values of features, and other fields, with the numbers of their fields."""

        def entries() -> Iterator[tuple[int, StoredBytes]]:
            for number, value in self.payload.fields():
                content = value if isinstance(value, StoredBytes) else self.payload[:0]
                if number not in (_FEATURES, _FEATURE_LISTS):
                    yield number, content
                    continue
                for _, entry in content.fields():
                    if not isinstance(entry, StoredBytes):
                        raise ValueError("a feature that is a number")
                    yield number, entry

        return [*islice(entries(), _MOST_FEATURES)]

    def frame_of(self, names: Container[str], cut: Container[str] = (), *, with_schema: bool = False) -> bytearray:
        """The frame of a record of the features of some columns, and of all that are small; or of all features.

        Large features of the columns `cut` have their first values alone. `with_schema`: with the embedded schema, too.
        """
        if not self.large:
            return bytearray(self._frame.read())
        unwanted = self.large.keys() - self.find_large(names).keys()
        left_out = {self.large[name].entry.begin for name in unwanted}
        parts_of = {f.entry.begin: f.cut() for name, f in self.large.items() if name in cut}
        parts: list[bytes | StoredBytes] = []
        for number in (_FEATURES, _FEATURE_LISTS):
            entries = [
                parts_of.get(entry.begin, entry)
                for of, entry in self._entries
                if of == number and (entry.begin in parts_of or entry.begin not in left_out)
            ]
            heads = [FieldTag.of(1).head(len(entry)) for entry in entries]
            if entries:
                parts.append(FieldTag.of(number).head(sum(map(len, heads)) + sum(map(len, entries))))
                parts += chain.from_iterable(zip(heads, entries, strict=True))
        for schema in (entry for of, entry in self._entries if of == _SCHEMA and with_schema):
            parts += [FieldTag.of(_SCHEMA).head(len(schema)), schema]
        frame = bytearray(FrameHeader.FRAME_BYTES + sum(map(len, parts)))
        payload = memoryview(frame)[FrameHeader.BYTES : -FrameHeader.FOOTER_BYTES]
        at = 0
        for piece in chain.from_iterable(part.pieces() if isinstance(part, StoredBytes) else [part] for part in parts):
            payload[at : at + len(piece)] = piece
            at += len(piece)
        frame[: FrameHeader.BYTES] = FrameHeader.make(len(payload))
        frame[-FrameHeader.FOOTER_BYTES :] = FrameHeader.mask_crc(crc32c(payload)).to_bytes(4, "little")
        return frame
