"""Report a read: the records that were read, their origins, and the regions left out.

Tests: tests/read/test_reader_row_origins.py.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np
import pyarrow as pa

from tfrecord_io.base import Report, Summary, byte_size, counted, printable
from tfrecord_io.bytes import Array
from tfrecord_io.read.chunks.skipped_regions import SkippedRegions
from tfrecord_io.store import Source


@dataclass(repr=False)
class ReadReport(Report):
    """The counts of a read so far; it prints as a line, and a table of what was left out.

    Attributes
    ----------
    records, bytes : int
        Records read, of which `filters=` may leave out some, and their uncompressed bytes.
    files : int
        Files opened.
    schema_source : str
        "schema=", "embedded", "saved" (`Schema.save`), "features.json", "companions" (companion features make bytes
        tensors), "inferred", or ``record_type=…`` of bytes and other messages.
    stopped : str or None
        Why reading ended early, with ``on_error="stop"``.
    skipped : sequence of SkippedRegion
        What was left out, with ``on_error="skip"`` or a callable: the first 1,000 regions in the order of the files;
        with ``"collect"`` all of them. ``skipped.total`` is the number of all, and ``skipped.bytes`` the sum of their
        sizes.
    unknown_fields : mapping of str to int
        How many fields were left out because the type of their message does not have them, by field number, for a
        message in a message with its path: ``"track.state.9"``.
    """

    records: int = 0
    bytes: int = 0
    files: int = 0
    schema_source: str = "inferred"
    stopped: str | None = None
    skipped: SkippedRegions = field(default_factory=SkippedRegions)
    unknown_fields: Mapping[str, int] = field(default_factory=dict)

    def add(self, other: ReadReport) -> None:
        """Count what another one counts, too."""
        self.records += other.records
        self.bytes += other.bytes
        self.files += other.files
        self.stopped = self.stopped or other.stopped
        self.skipped.add_all(other.skipped)
        self.unknown_fields = Counter(self.unknown_fields) + Counter(other.unknown_fields)

    def restart(self) -> None:
        """Count from zero again."""
        self.records = self.bytes = self.files = 0
        self.stopped = None
        self.skipped.clear()
        self.unknown_fields = {}

    def warn_of_skipped(self, issue: Callable[[str], object] | None = None) -> None:
        """Warn of what was left out, by `issue` if there is one."""
        self.skipped.warn(issue, are_types_inferred=self._are_types_inferred)

    @property
    def _are_types_inferred(self) -> bool:
        return self.schema_source == "inferred"

    def skipped_table(self) -> pa.Table:
        """The regions of `skipped` as a table; with ``on_error="collect"``, a row for each that was left out.

        Returns
        -------
        pyarrow.Table
            - ``file``, string: the path.
            - ``first_record``, int64: the index in the file of the first damaged record, from 0. Earlier regions of
              the file count as one record each. Null in a piece of a file, whose first records were not counted.
            - ``begin_byte``, ``end_byte``, int64: the bytes [begin, end) of the uncompressed file; null if unknown,
              as for values in memory. An unknown end is that of the file.
            - ``reason``, string: what is wrong, in a clause.
            - ``error``, string: the class of the error that ``on_error="raise"`` raises there.
        """
        return self.skipped.to_table()

    def _summary(self) -> Summary:
        amounts = f"{counted(self.records, 'record')} of {counted(self.files, 'file')}, {byte_size(self.bytes)}"
        lines = [self.skipped.summary(are_types_inferred=self._are_types_inferred)] if self.skipped.total else []
        lines += [f"Stopped early: {printable(self.stopped)}"] if self.stopped is not None else []
        title = f"Read {amounts}, schema {self.schema_source}"
        return Summary(title, self.skipped.HEADINGS, self.skipped.texts(self.skipped), lines, paths=("file",))


class RowOrigins:
    """The records that the rows of a read come from.

    Consecutive records of one file take one entry; where a filter leaves some out, an entry has a bit for each record.

    >>> origins = RowOrigins()
    >>> origins.add("a.tfrecord", 0, 3, file=0)
    >>> origins.add("b.tfrecord", 0, 2, file=1)
    >>> origins.locate(4), origins.place(4)
    (('b.tfrecord', 1), (1, 'b.tfrecord', 1))
    """

    def __init__(self, sources: Sequence[Source] = ()) -> None:
        self.rows = 0  # how many there are
        self._sources = sources  # what is read, by the number of the file
        self._runs: list[tuple[int, int, str, int, Array | None]] = []  # first row, file, path, first record, bits

    def add(self, path: str, first_record: int, rows: int, *, file: int) -> None:
        """Add `rows` rows: the records from `first_record` on of the file with this number in the order of reading."""
        is_next = self.rows > 0 and self._runs[-1][-1] is None and self._locate(self.rows) == (file, path, first_record)
        if rows and not is_next:
            self._runs.append((self.rows, file, path, first_record, None))
        self.rows += rows

    def add_some(self, path: str, first_record: int, numbers: Array, *, file: int) -> None:
        """Add a row for each of `numbers`, which are in order: the records so many after `first_record`."""
        rows = len(numbers)
        if not rows or int(numbers[-1] - numbers[0]) + 1 == rows:
            self.add(path, first_record + (int(numbers[0]) if rows else 0), rows, file=file)
            return
        bits = np.zeros(int(numbers[-1]) + 1, bool)
        bits[numbers] = True
        self._runs.append((self.rows, file, path, first_record, np.packbits(bits)))
        self.rows += rows

    def locate(self, row: int) -> tuple[str, int]:
        """Path and record index of a row, also of a file of which an index or a selection finds some records only."""
        file, path, record = self.place(row)
        origin = self._sources[file].origin if self._sources else None
        place = None if origin is None else origin(record)
        return (path, record) if place is None or place.record is None else (place.path or path, place.record)

    def runs(self, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
        """The rows [begin, end) of a read without a filter: file, first record and number of consecutive records."""
        while begin < end:
            file, _, record = self.place(begin)
            at = bisect_right(self._runs, begin, key=itemgetter(0))
            stop = min(end, self._runs[at][0]) if at < len(self._runs) else end
            yield file, record, stop - begin
            begin = stop

    def numbers(self, begin: int = 0, end: int | None = None) -> Iterator[tuple[int, Array]]:
        """The records of rows, by default of all, also where a filter left some out: a file, and record indexes in it.

        The record indexes ascend.
        """
        end = self.rows if end is None else min(end, self.rows)
        at = max(0, bisect_right(self._runs, begin, key=itemgetter(0)) - 1)
        while begin < end:
            first, file, _, record, bits = self._runs[at]
            stop = min(end, self._runs[at + 1][0]) if at + 1 < len(self._runs) else end
            part = slice(begin - first, stop - first)
            numbers = np.arange(part.start, part.stop) if bits is None else np.flatnonzero(np.unpackbits(bits))[part]
            yield file, record + numbers
            begin, at = stop, at + 1

    def place(self, row: int) -> tuple[int, str, int]:
        """The file number, path and record index of a row: a path may be given twice."""
        if row >= self.rows:
            raise IndexError("no such row was read")
        return self._locate(row)

    def _locate(self, row: int) -> tuple[int, str, int]:
        first, file, path, first_record, bits = self._runs[bisect_right(self._runs, row, key=itemgetter(0)) - 1]
        row -= first
        return file, path, first_record + (row if bits is None else int(np.flatnonzero(np.unpackbits(bits))[row]))
