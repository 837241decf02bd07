"""The offsets of a file's records, and the text format of index files."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa

from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.format.framing import FRAME_BYTES
from tfrecord_io.storage.write.sharded_dataset import INDEX_SUFFIX

SUFFIX = INDEX_SUFFIX
SUFFIXES = (SUFFIX, ".tfindex", ".idx")  # of the index files that are looked up
REWRITE = "rewrite it (tfr index)"

_LINE = re.compile(rb"[0-9]+ [0-9]+\r?")
_OTHER_BYTES = bytes(set(range(256)) - set(b"0123456789 \r\n"))


@dataclass(frozen=True, slots=True, eq=False)
class RecordIndex:
    """The offsets of the records of a file, which follow each other from its first byte on, or of a part of a file.

    >>> RecordIndex.of_sizes([20, 16]).to_text()
    b'0 20\\n20 16\\n'
    """

    bounds: Array  # int64: the offset of each record's frame, and the end of the file or the part

    @classmethod
    def of_sizes(cls, sizes: Any, begin: int = 0) -> Self:
        """The index of frames of these sizes in bytes, each 16 more than the payload; the first one is at `begin`."""
        bounds = np.full(len(sizes) + 1, begin, np.int64)
        bounds[1:] += np.cumsum(sizes, dtype=np.int64)
        return cls(bounds)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def offsets(self) -> Array:
        return self.bounds[:-1]

    @property
    def sizes(self) -> Array:
        return np.diff(self.bounds)

    @property
    def end(self) -> int:
        """Where the last record ends."""
        return int(self.bounds[-1])

    def to_text(self) -> bytes:
        """The content of an index file."""
        from pyarrow import csv

        out = io.BytesIO()
        table = pa.table({"offset": self.offsets, "size": self.sizes})
        csv.write_csv(table, out, csv.WriteOptions(include_header=False, delimiter=" "))
        return out.getvalue()

    @classmethod
    def parse(cls, text: bytes, path: str) -> Self:
        """Parse the content of an index file."""
        if not text:
            return cls.of_sizes([])
        offsets, sizes = _numbers(text, path)
        index = cls.of_sizes(sizes)
        invalid = np.flatnonzero((sizes < FRAME_BYTES) | (index.offsets != offsets))
        if len(invalid):
            line = int(invalid[0])
            size, offset, expected = int(sizes[line]), int(offsets[line]), int(index.offsets[line])
            if size < FRAME_BYTES:
                raise _bad_line(path, line, f"a record has at least {FRAME_BYTES} bytes", got=size)
            reason = f"expected the record at byte {expected}, where the last one ends, got {offset}"
            raise _bad_line(path, line, reason, expected=expected, got=offset)
        return index


def _numbers(text: bytes, path: str) -> tuple[Array, Array]:
    """The columns of offsets and sizes."""
    from pyarrow import csv

    if len(text.translate(None, _OTHER_BYTES)) == len(text):
        try:
            table = csv.read_csv(
                pa.BufferReader(text),
                csv.ReadOptions(column_names=["offset", "size"], use_threads=False),
                csv.ParseOptions(delimiter=" ", quote_char=False, ignore_empty_lines=False),
                csv.ConvertOptions(column_types={"offset": pa.int64(), "size": pa.int64()}, null_values=[]),
            )
        except pa.ArrowInvalid:
            pass  # the line is found below
        else:
            return table["offset"].to_numpy(), table["size"].to_numpy()
    lines = text.removesuffix(b"\n").split(b"\n")
    invalid = next((number for number, line in enumerate(lines) if not _LINE.fullmatch(line)), None)
    if invalid is None:
        raise CorruptRecordError("the index has numbers over 2**63 - 1", path=path)
    raise _bad_line(path, invalid, "expected '<offset> <size>', two integers")


def _bad_line(path: str, line: int, reason: str, **facts: Any) -> CorruptRecordError:
    return CorruptRecordError(f"line {line + 1} of the index: {reason}", path=path, advice=REWRITE, **facts)
