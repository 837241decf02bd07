"""A temporary file for records whose number is not known yet."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

_MEMORY_BYTES = 64 << 20


class Spool:
    """Keeps framed records until they are read once.

    Parameters
    ----------
    memory_bytes : int
        More than this is on disk.

    Attributes
    ----------
    records, bytes : int
    """

    def __init__(self, memory_bytes: int = _MEMORY_BYTES) -> None:
        self.records = self.bytes = 0
        self._writes: list[tuple[int, int]] = []  # bytes and records of each
        self._file = tempfile.SpooledTemporaryFile(memory_bytes, prefix="tfrecord_io-")  # noqa: SIM115

    def write(self, framed: Any, records: int) -> None:
        """Append complete frames."""
        size = self._file.write(memoryview(framed).cast("B"))
        self._writes.append((size, records))
        self.records += records
        self.bytes += size

    def parts(self) -> Iterator[tuple[bytes, int]]:
        """What was written, write by write, with the number of records."""
        self._file.seek(0)
        for size, records in self._writes:
            yield self._file.read(size), records

    def close(self) -> None:
        """Remove the file."""
        self._file.close()
