"""Column indexes with changed bytes, numbers, descriptions and values, whose checksums are right."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pyarrow as pa

from hostile_metadata import mutated
from tfrecord_io.bytes.engine.select import get_engine
from tfrecord_io.read.index.column_index import _MAGIC, _TAIL

NUMBERS = (-(2**63), -1, 0, 1, 2, 3, 7, 8, 16, 100, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1)
COLUMNS = {
    "n": pa.array([1, None, 3, 4, 5, 6, 7], pa.int64()),
    "flag": pa.array([True, None, False, True, True, False, None]),
    "text": pa.array(["red", None, "blue", "red", "", "red", "red"]),
    "id": pa.array([f"é{n}" for n in range(7)]),
    "raw": pa.array([b"\xff", None, b"", b"a", b"b", b"c", b"d"]),
    "fixed": pa.array([b"ab", None, b"cd", b"ab", b"cd", b"ab", b"cd"], pa.binary(2)),
    "day": pa.array([0, None, 2, 3, 4, 5, 6], pa.date32()),
    "time": pa.array([0, None, 2, 3, 4, 5, 6], pa.time64("us")),
    "price": pa.array([1, None, 3, 4, 5, 6, 7], pa.int64()).cast(pa.decimal128(19, 0)).cast(pa.decimal128(38, 2)),
    "kind": pa.array(["a", None, "b", "a", "b", "a", "b"])
    .dictionary_encode()
    .cast(pa.dictionary(pa.int8(), pa.string())),
}


class Index:
    """The parts of a column index."""

    def __init__(self, content: bytes) -> None:
        sizes = _TAIL.unpack(content[-_TAIL.size :])
        begin = len(content) - _TAIL.size - sizes[0] - sizes[1]
        self.chunks = bytearray(content[:begin])
        self.description = content[begin : begin + sizes[0]]
        self.columns = 1 + len(json.loads(self.description)["columns"])
        table = np.frombuffer(content, "<i8", sizes[1] // 8, begin + sizes[0])
        self.table = table.reshape(-1, 2 + 6 * self.columns).copy()

    def chunk(self, rng: random.Random) -> Any:
        """The numbers of a chunk, which can be changed."""
        at = 2 + 6 * rng.randrange(self.columns)
        return self.table[rng.randrange(len(self.table))][at : at + 6]

    def replace_chunk(self, numbers: Any, content: bytes) -> None:
        numbers[:3] = len(self.chunks), len(content), get_engine().crc32c(content)
        self.chunks += content

    def content(self) -> bytes:
        directory = self.description + self.table.tobytes()
        checksum = get_engine().crc32c(directory)
        tail = _TAIL.pack(len(self.description), self.table.nbytes, checksum, _MAGIC)
        return bytes(self.chunks) + directory + tail


def forged(rng: random.Random, content: bytes) -> bytes:
    """An index with a few changes, and right checksums."""
    index = Index(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        kind = rng.choice(("raw", "raw", "raw", "stored", "number", "shape", "description", "text"))
        numbers = index.chunk(rng)
        offset, size, _, _, _, raw_size = numbers.tolist()
        inside = 0 <= offset <= offset + size <= len(index.chunks)
        stored = bytes(index.chunks[offset : offset + size]) if inside else b"\0" * 40
        if kind == "raw":
            if not 0 <= raw_size < 1 << 20:
                continue
            try:
                raw = bytearray(pa.decompress(stored, decompressed_size=raw_size, codec="zstd", asbytes=True))
            except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError):
                continue
            if raw and rng.random() < 0.5:
                words = np.frombuffer(raw, np.int32 if rng.random() < 0.5 else np.int64, len(raw) // 8)
                words[rng.randrange(len(words))] = rng.choice(NUMBERS[:14]) % 2**31 * rng.choice((1, -1))
            for _ in range(rng.choice((0, 1, 4))):
                if raw:
                    raw[rng.randrange(len(raw))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
            index.replace_chunk(numbers, pa.compress(bytes(raw), codec="zstd", asbytes=True))
        elif kind == "stored" and stored:
            changed = bytearray(stored)
            changed[rng.randrange(len(changed))] = rng.randrange(256)
            index.replace_chunk(numbers, bytes(changed))
        elif kind == "number":
            index.table[rng.randrange(len(index.table)), rng.randrange(index.table.shape[1])] = rng.choice(NUMBERS)
        elif kind == "shape":
            numbers[rng.randrange(3, 6)] += rng.choice((-8, -1, 1, 8))
        elif kind == "description":
            try:
                index.description = json.dumps(mutated(rng, json.loads(index.description))).encode()
            except (ValueError, RecursionError):  # it was changed to something else than JSON
                continue
        else:
            changed = bytearray(index.description)
            changed[rng.randrange(len(changed))] = rng.choice((0, 34, 91, 92, 93, 123, 128, 255, rng.randrange(256)))
            index.description = bytes(changed)
    return index.content()
