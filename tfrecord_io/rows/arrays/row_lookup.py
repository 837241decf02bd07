"""Rows of any scan by number: plain files are read at these records alone, compressed files from their start.

Tests: tests/rows/arrays/test_rows_by_number.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tfrecord_io.bytes import Array
from tfrecord_io.columns import RowFault, selectable
from tfrecord_io.errors import TFRecordError
from tfrecord_io.read import Scan, ScanRows
from tfrecord_io.rows.arrays.rows_by_number import ScanLookup
from tfrecord_io.store import RandomAccessFile, Source


class RowLookup(Protocol):
    """Rows by number. It can be pickled."""

    is_in_memory: bool  # all rows were read

    def __len__(self) -> int: ...

    def only(self, names: Sequence[str]) -> RowLookup:
        """Rows with these columns alone."""

    def table(self, numbers: Array) -> pa.Table:
        """The rows of these numbers, in this order."""

    def row_error(self, fault: RowFault) -> TFRecordError:
        """The error of the row with the number ``fault.row``."""


@dataclass(slots=True)
class _TableLookup:
    """Rows of a table by number."""

    rows: pa.Table
    is_in_memory = True

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, names: Sequence[str]) -> _TableLookup:
        return _TableLookup(self.rows.select(list(names)))

    def table(self, numbers: Array) -> pa.Table:
        return selectable(self.rows).take(pa.array(numbers))

    def row_error(self, fault: RowFault) -> TFRecordError:
        return fault.to_error(None, None)


@dataclass(slots=True)
class _SequentialLookup:
    """Rows of files of which some are compressed: the rows before the first wanted one are skipped."""

    scan: Scan
    count: int
    is_in_memory = False

    def __len__(self) -> int:
        return self.count

    def only(self, names: Sequence[str]) -> _SequentialLookup:
        return _SequentialLookup(self.scan.only(names), self.count)

    def table(self, numbers: Array) -> pa.Table:
        begin, end = (int(numbers.min()), int(numbers.max()) + 1) if len(numbers) else (0, 0)
        rows = ScanRows(self.scan.with_selection(offset=begin, limit=end - begin)).read()
        return selectable(rows).take(pa.array(numbers - begin))

    def row_error(self, fault: RowFault) -> TFRecordError:
        return fault.to_error(None, fault.row)


@dataclass(slots=True)
class _NumberedLookup:
    """Rows of plain files by number."""

    rows: ScanLookup
    is_in_memory = False

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, names: Sequence[str]) -> _NumberedLookup:
        return _NumberedLookup(self.rows.rescan(self.rows.scan.only(names)))

    def table(self, numbers: Array) -> pa.Table:
        return self.rows.table(numbers)

    def row_error(self, fault: RowFault) -> TFRecordError:
        return self.rows.row_error(fault)


def row_lookup(scan: Scan) -> RowLookup:
    """Look up rows of a scan; the rows of a filter, `offset`, `limit` or another `on_error` are read at once."""
    is_part = bool(scan.row_selection) or not scan.options.damage.counts_all
    if is_part or any(source.derived is not None for source in scan.sources):
        return _TableLookup(ScanRows(scan).read())
    compression = scan.options.compression
    if compression not in (None, "infer") or (compression and any(map(_is_compressed, scan.sources))):
        return _SequentialLookup(scan, ScanRows(scan).count())
    return _NumberedLookup(ScanLookup(scan))


def _is_compressed(source: Source) -> bool:
    if source.span is not None:  # only plain files are split
        return False
    with RandomAccessFile.open(source) as file:
        return file.codec is not None
