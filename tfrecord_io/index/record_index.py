"""Places of a file's records, and the text that says them."""

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
SUFFIXES = (SUFFIX, ".idx")  # where an index is looked for

_LINE = re.compile(rb"[0-9]+ [0-9]+\r?")
_OTHER = bytes(set(range(256)) - set(b"0123456789 \r\n"))
_FORM = "'<offset> <size>', two whole numbers"


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """Where the records of a file stand, one behind the other from its first byte on.

    Attributes
    ----------
    bounds : numpy int64 array
        The first byte of each record's frame, and at last the end of the file.

    Examples
    --------
    >>> Index.of_sizes([20, 16]).to_text()
    b'0 20\\n20 16\\n'
    """

    bounds: Array

    @classmethod
    def of_sizes(cls, sizes: Any) -> Self:
        """The index of frames of these sizes in bytes: 16 more than their payloads."""
        bounds = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=bounds[1:], dtype=np.int64)
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
        """Size of the file."""
        return int(self.bounds[-1])

    def to_text(self) -> bytes:
        """The content of the file beside."""
        from pyarrow import csv

        out = io.BytesIO()
        table = pa.table({"offset": self.offsets, "size": self.sizes})
        csv.write_csv(table, out, csv.WriteOptions(include_header=False, delimiter=" "))
        return out.getvalue()

    @classmethod
    def parse(cls, text: bytes, path: str) -> Self:
        """The index that a text says.

        Raises
        ------
        CorruptRecordError
            A line is no pair of numbers, or the records do not stand one behind the other from byte 0 on. `path` is named.
        """
        if not text:
            return cls.of_sizes([])
        offsets, sizes = _numbers(text, path)
        index = cls.of_sizes(sizes)
        wrong = np.flatnonzero((sizes < FRAME_BYTES) | (index.offsets != offsets))
        if len(wrong):
            line = int(wrong[0])
            size, offset, expected = int(sizes[line]), int(offsets[line]), int(index.offsets[line])
            if size < FRAME_BYTES:
                raise _bad_line(path, line, f"a record has at least {FRAME_BYTES} bytes", got=size)
            reason = f"the record should begin at byte {expected}, where the one before ends, not at {offset}"
            raise _bad_line(path, line, reason, expected=expected, got=offset)
        return index


def _numbers(text: bytes, path: str) -> tuple[Array, Array]:
    """The two columns of numbers."""
    from pyarrow import csv

    if len(text.translate(None, _OTHER)) == len(text):
        try:
            table = csv.read_csv(
                pa.BufferReader(text),
                csv.ReadOptions(column_names=["offset", "size"], use_threads=False),
                csv.ParseOptions(delimiter=" ", quote_char=False, ignore_empty_lines=False),
                csv.ConvertOptions(column_types={"offset": pa.int64(), "size": pa.int64()}, null_values=[]),
            )
        except pa.ArrowInvalid:
            pass  # it names a line in a way of its own
        else:
            return table["offset"].to_numpy(), table["size"].to_numpy()
    lines = text.removesuffix(b"\n").split(b"\n")
    bad = next((at for at, line in enumerate(lines) if not _LINE.fullmatch(line)), None)
    if bad is None:
        raise CorruptRecordError("the index has numbers over 2**63 - 1", path=path)
    raise _bad_line(path, bad, f"expected {_FORM}")


def _bad_line(path: str, line: int, reason: str, **facts: Any) -> CorruptRecordError:
    return CorruptRecordError(
        f"line {line + 1} of the index: {reason}", path=path, advice="write it anew: tfr index", **facts
    )
