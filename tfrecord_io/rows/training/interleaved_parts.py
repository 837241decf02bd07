"""Read the rows of parts of an epoch side by side, through one reader.

`PartsReader` has the reader, and `PartRows` are the rows of one part, as any `EpochReader`. Where the files are not as
that reader needs them, or have an error, each part goes on with a reader of its own, which gives the same rows.

Tests: tests/rows/training/test_interleaved_parts.py and tests/laws/test_order_laws.py.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tfrecord_io.bytes import Array
from tfrecord_io.columns import RowFault
from tfrecord_io.errors import TFRecordError
from tfrecord_io.read import ReadReport, Scan, ScanRows
from tfrecord_io.rows.training.epochs import EpochReader, NumberedBatch, RowFacts

if TYPE_CHECKING:
    from tfrecord_io.read import KnownBoundaries


class PartRows(EpochReader):
    """The rows of one part, from row `begin` on.

    scan
        What is read of them.
    bounds
        The rows at which its files begin, and the last one ends, counted from `begin` on, if records were counted.
    end
        The number after that of its last row, if that is known.
    open_alone
        Opens the part from a row on, by a reader of its own.
    """

    def __init__(
        self,
        common: PartsReader,
        scan: Scan,
        begin: int,
        *,
        bounds: Array | None,
        end: int | None,
        open_alone: Callable[[int], EpochReader],
    ) -> None:
        super().__init__(begin)
        self.scan, self.begin, self.bounds, self.end = scan, begin, bounds, end
        self.queue = deque[NumberedBatch]()  # rows that were read together with those of other parts
        self.read = begin  # number of the row after these
        self.wanted = 0  # rows that are needed beside these
        self.group: _Group | None = None  # of the parts that are read with it
        self.ended = False  # True if the group has no more rows of it
        # The first number of some rows, and their first row in the reader of the group.
        self.places = list[tuple[int, int]]()
        self._common, self._open_alone = common, open_alone
        self._alone: EpochReader | None = None
        self._first_alone = begin

    def ask(self, rows: int) -> None:
        """See `EpochReader.ask`."""
        self.wanted = max(0, rows - sum(map(len, self.queue)))

    @property
    def is_at_end(self) -> bool:
        """See `EpochReader.is_at_end`."""
        return self.ended and not self.queue and self._alone is None

    def add(self, rows: NumberedBatch, row: int) -> None:
        """Add the next rows, the first of which is `row` of the reader of the group."""
        self.places.append((self.read, row))
        rows.numbers[:] = np.arange(self.read, self.read + len(rows))  # also in the batch
        self.read += len(rows)
        self.wanted = max(0, self.wanted - len(rows))
        self.queue.append(rows)

    def _read(self) -> Generator[NumberedBatch]:
        while True:
            while self.queue:
                pool = self.queue.popleft()
                self.next = int(pool.numbers[-1]) + 1
                yield pool
            if self.ended or not self._common.read(self):
                break
        if self.ended and self.end in (None, self.next):
            assert self.group is not None
            self.group.finish()
            return
        self._first_alone = self.next
        self._alone = self._open_alone(self.next)
        for pool in self._alone._batches:
            self.next = self._alone.next
            yield pool
        self.next = self._alone.next

    def reports(self) -> list[ReadReport]:
        is_first = self.group is not None and self.group.parts[0] is self
        of_group = [self.group.reader.report] if self.group is not None and is_first else []
        return [*of_group, *([] if self._alone is None else self._alone.reports())]

    def readers(self) -> Iterable[Any]:
        of_group = [] if self.group is None else [self.group.reader]
        return [*of_group, *([] if self._alone is None else self._alone.readers())]

    def origin(self, fault: RowFault) -> tuple[Any, RowFault]:
        if self._alone is not None and fault.row >= self._first_alone:
            return self._alone.origin(fault)
        assert self.group is not None
        number, row = self.places[bisect_right(self.places, fault.row, key=itemgetter(0)) - 1]
        return self.group.reader, fault.renumber(row + fault.row - number)

    def close(self) -> None:
        super().close()
        if self._alone is not None:
            self._alone.close()
        if self.group is not None:
            self.group.close()


class PartsReader:
    """Reads parts together, if they are opened before the first row is asked for."""

    def __init__(self, boundaries: KnownBoundaries | None = None) -> None:
        """`boundaries` of byte ranges, which neighbouring parts share: see `Scan.align_ranges`."""
        self._opened = list[PartRows]()  # not in a group so far
        self.boundaries = boundaries

    def open(self, part: PartRows) -> PartRows:
        """Read a part with the others that are opened."""
        self._opened.append(part)
        return part

    def read(self, part: PartRows) -> bool:
        """Read more rows of a part, and the wanted rows of other parts; False if it has to go on by itself."""
        if part.group is None:
            group, self._opened = _Group(self._opened), []
            for other in group.parts:
                other.group = group
        assert part.group is not None
        return part.group.read(part)


class _Group:
    """Parts that are read together."""

    def __init__(self, parts: Sequence[PartRows]) -> None:
        self.parts = parts
        self.reader, self._chunks = ScanRows.open_interleaved([part.scan for part in parts])
        self.reader.warns_of_damage = False
        self._first_files = [part.first_file for part in self._chunks.parts]
        self._readers: dict[int, EpochReader] = {id(part): part for part in parts}
        self._goes_on = True
        self._rows = self._bytes = 0

    def read(self, part: PartRows) -> bool:
        """See `PartsReader.read`."""
        part.wanted = max(part.wanted, 1)
        if self._goes_on:
            for other, place in zip(self.parts, self._chunks.parts, strict=True):
                place.wanted = other.wanted
            try:
                self._goes_on = (batch := next(self.reader, None)) is not None and self._deal(batch)
            except (TFRecordError, OSError):  # which the reader of the part that has it meets again
                self._goes_on = False
            if not self._goes_on:
                self.close()
        for other, place in zip(self.parts, self._chunks.parts, strict=True):
            other.ended = place.ended
        return self._goes_on or part.read > part.next or part.ended

    def _deal(self, batch: pa.RecordBatch) -> bool:
        """Give the parts their rows; False if a file has not as many as were counted."""
        reader, begin = self.reader, self._rows
        self._rows += len(batch)
        row_bytes = np.full(len(batch), (reader.payload_bytes - self._bytes) / len(batch))
        self._bytes = reader.payload_bytes
        # Rows that are not dealt, behind those of a file that was changed, stay in the batch: they have an owner, too.
        numbers, owners = np.empty(len(batch), np.int64), np.full(len(batch), id(self.parts[0]))
        rows = NumberedBatch(RowFacts(numbers, row_bytes, (owners,), self._readers), batch)
        row = begin
        for file, record, count in reader.origins.runs(begin, self._rows):
            at = bisect_right(self._first_files, file) - 1
            part, file_of_part = self.parts[at], file - self._first_files[at]
            if part.bounds is not None:
                first = part.read - part.begin
                if first < part.bounds[file_of_part] + record or first + count > part.bounds[file_of_part + 1]:
                    return False
            of_part = rows.slice(row - begin, row - begin + count)
            of_part.facts.origins[0][:] = id(part)
            part.add(of_part, row)
            row += count
        return True

    def finish(self) -> None:
        """Compare counts of files once all parts were read."""
        if self._goes_on and self._chunks.ended:
            self._goes_on = False
            for _ in self.reader:
                pass

    def close(self) -> None:
        """Close the files."""
        self.reader.close()
