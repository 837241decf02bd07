"""The sample of records that a report examines, and what it says about the sample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tfrecord_io.kit import byte_size, check_integer, counted, selectable
from tfrecord_io.read import Scan, ScanRows

SAMPLE_RECORDS = 50_000
SAMPLE_BYTES = 64 << 20
_MOST_PIECES = 256  # of a dataset, to choose from
_LEAST_PIECES = 32  # to read, or all if fewer
_PIECE_BYTES = 64 << 10  # pieces are not smaller


@dataclass(frozen=True, slots=True)
class SampleLimits:
    """Limits of a sample: a largest number of records, and roughly of uncompressed bytes."""

    records: int = SAMPLE_RECORDS
    bytes: int = SAMPLE_BYTES
    seed: int = 0

    def __post_init__(self) -> None:
        check_integer("sample_records", self.records, 1)
        check_integer("sample_bytes", self.bytes, 1)
        check_integer("seed", self.seed, 0)


@dataclass(frozen=True, slots=True)
class Sampling:
    """Which records were examined.

    Attributes
    ----------
    records, bytes : int
        Number of records examined, and their uncompressed bytes.
    total : int or None
        Number of all records, if it is known without reading them all.
    complete : bool
        Whether these are all records.
    text : str
        The same in a sentence.
    skipped : int
        Number of damaged regions that were left out, with ``on_error="skip"``.
    """

    records: int
    bytes: int
    total: int | None
    complete: bool
    text: str
    skipped: int = 0


class SampleReader:
    """Iterates over the batches of a sample; afterwards `sampling` says what it was."""

    def __init__(self, scan: Scan, limits: SampleLimits) -> None:
        self._scan = scan
        self._limits = limits
        self._total = self._known_total()
        self._pieces, self._all_pieces = self._choose_pieces()
        self._records = self._bytes = self._skipped = 0
        self._ended_early = False

    @property
    def expected(self) -> int:
        """The number of records to read, at most."""
        return self._limits.records if self._total is None else min(self._total, self._limits.records)

    def _known_total(self) -> int | None:
        """The number of rows, where the manifest states it, or the files are small enough to be counted."""
        scan = self._scan
        if self._scan.is_indivisible:
            return None
        if scan.rows is not None:
            return scan.rows
        is_small = scan.bytes is not None and scan.bytes <= self._limits.bytes
        return ScanRows(scan).count() if is_small and scan.options.damage.counts_all else None

    def _choose_pieces(self) -> tuple[list[Scan], int]:
        """The pieces to read, in order, and the number of all."""
        scan, limits = self._scan, self._limits
        has_few = self._total is not None and self._total <= limits.records
        is_small = scan.bytes is not None and scan.bytes <= limits.bytes
        if self._scan.is_indivisible or scan.bytes is None or (has_few and is_small):
            return [scan], 1
        count = min(_MOST_PIECES, -(-scan.bytes // _PIECE_BYTES))
        pieces = scan.split(max(1, count), 1)
        random = np.random.default_rng(limits.seed)
        needed = max(_LEAST_PIECES, -(-limits.bytes * len(pieces) // scan.bytes))
        chosen_numbers = sorted(random.permutation(len(pieces))[:needed].tolist())
        return [pieces[i] for i in chosen_numbers], len(pieces)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        records = size = 0
        for done, piece in enumerate(self._pieces):  # later pieces may use the rest of a piece's share
            left = len(self._pieces) - done
            records = max(records, -(-(self._limits.records - self._records) // left))
            size = max(size, -(-(self._limits.bytes - self._bytes) // left))
            limited = piece.limit_rows(records + 1)  # one record more shows if the piece goes on
            rows = 0
            with ScanRows(limited).open() as reader:
                for batch in reader:
                    rows_in_limit = batch.slice(0, records - rows)
                    rows += len(rows_in_limit)
                    self._ended_early |= len(rows_in_limit) < len(batch)
                    if len(rows_in_limit):
                        yield rows_in_limit
                    if rows >= records:
                        break
                    if reader.report.bytes >= size:
                        self._ended_early |= next(reader, None) is not None
                        break
                self._ended_early |= rows >= records and next(reader, None) is not None
                self._bytes += reader.report.bytes
                self._skipped += reader.report.skipped.total
            self._records += rows

    @property
    def sampling(self) -> Sampling:
        """The share of the dataset that has been read, after the iteration."""
        whole = not self._ended_early and len(self._pieces) == self._all_pieces
        is_complete = whole and not self._scan.is_indivisible
        total = self._records if is_complete else self._total
        return Sampling(
            self._records,
            self._bytes,
            total=total,
            complete=is_complete,
            text=self._text(is_complete),
            skipped=self._skipped,
        )

    def _text(self, is_complete: bool) -> str:
        if is_complete:
            return f"All {counted(self._records, 'record')}." if self._records else "There are no records."
        total = "" if self._total is None else f" of {self._total:,}"
        read = f"{self._records:,}{total} records" if total else counted(self._records, "record")
        selection = self._scan.selection
        if self._scan.is_indivisible:
            chosen = (("offset", selection.offset), ("limit", selection.limit))
            parts = [f"{name}={value}" for name, value in chosen if value]
            return f"{read}: a part of the data, chosen by {' and '.join(parts)}."
        if self._all_pieces == 1:
            return f"A sample: {read}, from the beginning of the data."
        size = byte_size(-(-(self._scan.bytes or 0) // self._all_pieces))
        begin = "the beginnings of " if self._ended_early else ""
        pieces = f"{begin}{len(self._pieces):,} of {self._all_pieces:,} pieces of about {size}"
        return f"A sample: {read}, from {pieces}, chosen at random (seed {self._limits.seed})."


class Reservoir:
    """Keeps a few rows of all batches, each row equally likely; `large` is the number of those that are too large."""

    def __init__(self, rows: int, random: np.random.Generator, max_bytes: int = 16 << 20) -> None:
        self._rows, self._random, self._max_bytes = rows, random, max_bytes
        self._kept: list[tuple[float, int, pa.RecordBatch]] = []
        self._seen = 0
        self.large = 0

    def add(self, batch: pa.RecordBatch) -> None:
        keys = self._random.random(len(batch))
        for row in np.argsort(keys)[: self._rows].tolist():
            if len(self._kept) == self._rows and keys[row] >= self._kept[-1][0]:
                break
            copy = selectable(batch).take(pa.array([row]))
            if copy.nbytes > self._max_bytes:
                self.large += 1
                continue
            self._kept = sorted([*self._kept, (keys[row], self._seen + row, copy)], key=lambda kept: kept[:2])
            self._kept = self._kept[: self._rows]
        self._seen += len(batch)

    @property
    def rows(self) -> list[pa.RecordBatch]:
        """The rows kept, in the order of reading."""
        return [row for _, _, row in sorted(self._kept, key=lambda kept: kept[1])]
