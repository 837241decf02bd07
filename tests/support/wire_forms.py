"""Random Examples in every wire form that protobuf's rules allow.

Lists packed, unpacked and mixed; fields unknown to the schema, groups among them, at each level; keys twice, kinds
twice, values before keys, merged messages; varints longer than needed.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

KINDS = {"bytes": 1, "float": 2, "int64": 3}
NAMES = ["a", "b", "image/encoded", "größe", "日本", "", "x" * 300, "a\nb", "z"]
INTS = [0, 1, -1, 127, 128, 300, -(2**63), 2**63 - 1, 2**31, -(2**31), 10**12]
FLOAT_BITS = [
    0,
    0x80000000,
    0x3F800000,
    0x7F800000,
    0xFF800000,
    0x7FC00000,
    0x7FA12345,
    0xFFC00001,
    1,
    0x00800000,
    0x7F7FFFFF,
]
BYTES = [b"", b"a", "Ä\t日本\n".encode(), b"\x00\xff", b"\xc3", b"\xed\xa0\x80", b"x" * 200, b"\x1b[0m"]
_FAR_FIELDS = [15, 16, 100, 2047, 2048, 2**29 - 1]


def is_text(value: bytes) -> bool:
    """True if the design reads such values as text."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return False
    return not any((ord(c) < 32 and c not in "\t\n\r") or 127 <= ord(c) < 160 for c in text)


def comparable(value: Any) -> Any:
    """Floats by their bits, lists through."""
    if isinstance(value, list):
        return [comparable(v) for v in value]
    return int(np.float32(value).view(np.uint32)) if isinstance(value, float) else value


def varint(number: int, padding: int = 0) -> bytes:
    """A varint, `padding` bytes longer than it needs to be (10 at most)."""
    number &= 2**64 - 1
    groups = [number & 0x7F]
    while number := number >> 7:
        groups.append(number & 0x7F)
    groups += [0] * min(padding, 10 - len(groups))
    return bytes([g | 0x80 for g in groups[:-1]] + groups[-1:])


def tag(field: int, wire_type: int) -> bytes:
    return varint(field << 3 | wire_type)


def delimited(field: int, content: bytes, padding: int = 0) -> bytes:
    return tag(field, 2) + varint(len(content), padding) + content


class WireForms:
    """Draws records; `plain` leaves out the odd forms."""

    def __init__(self, seed: int, plain: bool = False) -> None:
        self.random = random.Random(seed)
        self.plain = plain

    def _odd(self, chance: float = 0.15) -> bool:
        return not self.plain and self.random.random() < chance

    def _padding(self) -> int:
        return self.random.randint(1, 3) if self._odd(0.05) else 0

    def unknown(self, first: int, depth: int = 0) -> bytes:
        """A field that the message does not have; its own numbers end below `first`."""
        field = self.random.choice([first, first + 1, *_FAR_FIELDS])
        form = self.random.choice(["varint", "fixed64", "delimited", "fixed32", "group"])
        if form == "varint":
            return tag(field, 0) + varint(self.random.choice(INTS), self._padding())
        if form == "fixed64":
            return tag(field, 1) + self.random.randbytes(8)
        if form == "delimited":
            return delimited(field, self.random.randbytes(self.random.randint(0, 20)))
        if form == "fixed32":
            return tag(field, 5) + self.random.randbytes(4)
        inner = b"".join(self.unknown(1, depth + 1) for _ in range(self.random.randint(0, 2) if depth < 3 else 0))
        return tag(field, 3) + inner + tag(field, 4)

    def _parts(self, parts: Sequence[bytes], first_unknown: int) -> bytes:
        """Join fields, with unknown ones in between."""
        joined = []
        for part in parts:
            if self._odd(0.08):
                joined.append(self.unknown(first_unknown))
            joined.append(part)
        if self._odd(0.08):
            joined.append(self.unknown(first_unknown))
        return b"".join(joined)

    def _value(self, kind: str) -> bytes:
        if kind == "int64":
            number = (
                self.random.choice(INTS)
                if self.random.random() < 0.5
                else self.random.getrandbits(self.random.randint(1, 64))
            )
            return varint(number, self._padding())
        if kind == "float":
            bits = self.random.choice(FLOAT_BITS) if self.random.random() < 0.5 else self.random.getrandbits(32)
            return struct.pack("<I", bits)
        return (
            self.random.choice(BYTES)
            if self.random.random() < 0.8
            else self.random.randbytes(self.random.randint(0, 40))
        )

    def values(self, kind: str, count: int) -> bytes:
        """A BytesList, FloatList or Int64List of `count` values."""
        values = [self._value(kind) for _ in range(count)]
        if kind == "bytes":
            return self._parts([delimited(1, v, self._padding()) for v in values], 2)
        wire_type = 5 if kind == "float" else 0
        runs = []
        while values:
            cut = self.random.randint(0, len(values)) if self._odd(0.4) else len(values)
            run, values = values[:cut], values[cut:]
            unpacked = self._odd(0.3)
            runs.append(
                b"".join(tag(1, wire_type) + v for v in run)
                if unpacked
                else delimited(1, b"".join(run), self._padding())
            )
        return self._parts(runs, 2)

    def feature(self, kind: str | None) -> bytes:
        """A Feature whose kind is `kind` in the end."""
        if kind is None:
            return self._parts([], 4)
        parts = []
        if self._odd():
            parts.append(delimited(KINDS[other := self.random.choice(list(KINDS))], self.values(other, self._count())))
        parts.append(delimited(KINDS[kind], self.values(kind, self._count()), self._padding()))
        if self._odd():
            parts.append(delimited(KINDS[kind], self.values(kind, self._count())))
        return self._parts(parts, 4)

    def _count(self) -> int:
        return self.random.choice([0, 1, 1, 1, 1, 2, 3, 30])

    def entry(self, name: str, kind: str | None) -> bytes:
        """An entry of the map of features, as a field of Features."""
        parts = [delimited(1, name.encode())] if name or self.random.random() < 0.5 else []
        if kind is not None or self.random.random() < 0.5:
            parts.append(delimited(2, self.feature(kind), self._padding()))
            if kind is not None and self._odd(0.1):
                parts.append(delimited(2, self.feature(kind)))
        if self._odd(0.3):
            self.random.shuffle(parts)
        return delimited(1, self._parts(parts, 3), self._padding())

    def record(self, kinds: dict[str, str]) -> bytes:
        """An Example whose features have the given kinds, each with values, none, no kind, or absent."""
        entries = []
        for name, kind in kinds.items():
            state = self.random.random()
            if state < 0.1:
                continue
            if self._odd(0.1):
                entries.append(self.entry(name, self.random.choice([*KINDS, None])))
            entries.append(self.entry(name, None if state < 0.2 else kind))
        pieces = [entries]
        if self._odd():
            cut = self.random.randint(0, len(entries))
            pieces = [entries[:cut], entries[cut:]]
        return self._parts([delimited(1, self._parts(piece, 2), self._padding()) for piece in pieces], 2)

    def records(self, count: int) -> list[bytes]:
        """Records of one random set of features."""
        names = self.random.sample(NAMES, self.random.randint(1, len(NAMES)))
        kinds = {name: self.random.choice(list(KINDS)) for name in names}
        return [self.record(kinds) for _ in range(count)]

    def mutated(self, payload: bytes) -> bytes:
        """The payload with a few bytes changed, cut out or doubled."""
        data = bytearray(payload)
        for _ in range(self.random.randint(1, 2)):
            if not data:
                break
            at = self.random.randrange(len(data))
            change = self.random.choice(["flip", "set", "cut", "double", "end"])
            if change == "flip":
                data[at] ^= 1 << self.random.randrange(8)
            elif change == "set":
                data[at] = self.random.choice([0, 1, 8, 10, 11, 12, 13, 15, 18, 26, 127, 128, 255])
            elif change == "cut":
                del data[at : at + self.random.randint(1, 4)]
            elif change == "double":
                data[at:at] = data[at : at + self.random.randint(1, 4)]
            else:
                del data[at:]
        return bytes(data)
