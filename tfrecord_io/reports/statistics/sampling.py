"""Which records of a dataset a report examines: all, or the beginnings of pieces that are chosen at random."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.display import byte_size, counted
from tfrecord_io.options import MIB, check_integer
from tfrecord_io.read.open_scan import count_scan, open_scan
from tfrecord_io.read.scan import Scan

SAMPLE_RECORDS = 50_000
SAMPLE_BYTES = 64 * MIB
_MOST_PIECES = 256  # that a dataset is split into
_CHOSEN_PIECES = 32
_PIECE_BYTES = 64 << 10  # pieces are not smaller


@dataclass(frozen=True, slots=True)
class SampleLimits:
    """How much is read: at most so many records, and about so many uncompressed bytes."""

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

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


class SampleReader:
    """Iterates over the batches of a sample; afterwards `sampling` says what it was.

    Parameters
    ----------
    scan : Scan
    limits : SampleLimits
    """

    def __init__(self, scan: Scan, limits: SampleLimits) -> None:
        self._scan = scan
        self._limits = limits
        self._total = self._known_total()
        self._pieces, self._all_pieces = self._chosen()
        self._records = self._bytes = self._skipped = 0
        self._ended_early = False

    @property
    def expected(self) -> int:
        """The number of records to read, at most."""
        return self._limits.records if self._total is None else min(self._total, self._limits.records)

    def _known_total(self) -> int | None:
        """The number of rows, where the manifest states it, or the files are small enough to be counted."""
        scan = self._scan
        if self._is_bounded:
            return None
        if scan.rows is not None:
            return scan.rows
        is_small = scan.bytes is not None and scan.bytes <= self._limits.bytes
        return count_scan(scan) if is_small and scan.options.counts_all else None

    @property
    def _is_bounded(self) -> bool:
        """Whether the caller states which rows are read, by ``offset`` or ``limit``."""
        options = self._scan.options
        return bool(options.offset) or options.limit is not None

    def _chosen(self) -> tuple[list[Scan], int]:
        """The pieces to read, in order, and the number of all."""
        scan, limits = self._scan, self._limits
        has_few = self._total is not None and self._total <= limits.records
        is_small = scan.bytes is not None and scan.bytes <= limits.bytes
        if self._is_bounded or scan.bytes is None or (has_few and is_small):
            return [scan], 1
        count = min(_MOST_PIECES, -(-scan.bytes // _PIECE_BYTES))
        pieces = scan.split(max(1, count), 1)
        random = np.random.default_rng(limits.seed)
        chosen = sorted(random.permutation(len(pieces))[:_CHOSEN_PIECES].tolist())
        return [pieces[i] for i in chosen], len(pieces)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        records = -(-self._limits.records // len(self._pieces))
        size = -(-self._limits.bytes // len(self._pieces))
        for piece in self._pieces:
            limited = piece.limited(records + 1)  # the one more shows that there are more
            rows = 0
            with open_scan(limited) as reader:
                for batch in reader:
                    kept = batch.slice(0, records - rows)
                    rows += len(kept)
                    self._ended_early |= len(kept) < len(batch)
                    if len(kept):
                        yield kept
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
        """What has been read, after the iteration."""
        whole = not self._ended_early and len(self._pieces) == self._all_pieces
        is_complete = whole and not self._is_bounded
        total = self._records if is_complete else self._total
        return Sampling(self._records, self._bytes, total, is_complete, self._text(is_complete), self._skipped)

    def _text(self, is_complete: bool) -> str:
        if is_complete:
            return f"All {counted(self._records, 'record')}." if self._records else "There are no records."
        total = "" if self._total is None else f" of {self._total:,}"
        read = f"{self._records:,}{total} records" if total else counted(self._records, "record")
        options = self._scan.options
        if self._is_bounded:
            parts = [
                f"{name}={value}" for name, value in (("offset", options.offset), ("limit", options.limit)) if value
            ]
            return f"{read}: a part of the data, chosen by {' and '.join(parts)}."
        if self._all_pieces == 1:
            return f"A sample: {read}, from the beginning of the data."
        size = byte_size(-(-(self._scan.bytes or 0) // self._all_pieces))
        begin = "the beginnings of " if self._ended_early else ""
        pieces = f"{begin}{len(self._pieces):,} of {self._all_pieces:,} pieces of about {size}"
        return f"A sample: {read}, from {pieces}, chosen at random (seed {self._limits.seed})."


class RowSampler:
    """Keeps a few rows of all batches, each row equally likely.

    Parameters
    ----------
    rows : int
        How many to keep.
    random : numpy.random.Generator
    max_bytes : int
        Larger rows are left out, of which `large` is the number.
    """

    def __init__(self, rows: int, random: np.random.Generator, max_bytes: int = 16 * MIB) -> None:
        self._rows, self._random, self._max_bytes = rows, random, max_bytes
        self._kept: list[tuple[float, int, pa.RecordBatch]] = []
        self._seen = 0
        self.large = 0

    def add(self, batch: pa.RecordBatch) -> None:
        keys = self._random.random(len(batch))
        for row in np.argsort(keys)[: self._rows].tolist():
            if len(self._kept) == self._rows and keys[row] >= self._kept[-1][0]:
                break
            copy = batch.take(pa.array([row]))
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
