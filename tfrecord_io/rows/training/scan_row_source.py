"""Files as a source of training rows: give the rows of a scan that belong to one worker, in every epoch.

`FileEpochs` determines the order of the files and the share of the worker, `FilesReader` reads the rows.

Tests: tests/read/test_byte_ranges.py and tests/laws/test_handed_out_batches.py.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import MIB, printable
from tfrecord_io.bytes import Array
from tfrecord_io.columns import Column, Ragged, RowFault, int64_array, offsets_of, selectable, value_bytes
from tfrecord_io.errors import CorruptRecordError, TFRecordError
from tfrecord_io.read import Files, NumberedRows, Reader, ReadReport, Scan, ScanHolder, ScanRows
from tfrecord_io.rows.arrays.rows_by_number import ScanLookup
from tfrecord_io.rows.training.epochs import EpochReader, Epochs, NumberedBatch, RowFacts, RowRun, Share
from tfrecord_io.rows.training.interleaved_parts import PartRows, PartsReader
from tfrecord_io.rows.training.iter_options import IterOptions
from tfrecord_io.rows.training.iterator_state import IteratorPosition, ReadIdentity, have_own_files
from tfrecord_io.rows.training.row_source import RowSource
from tfrecord_io.rows.training.shuffle_buffer import permutation
from tfrecord_io.store import Source, Sources

if TYPE_CHECKING:
    from tfrecord_io.read import KnownBoundaries, RowFilter

_SHARED_SEED = 0
# Files whose counts each worker holds by default, and, as one takes some milliseconds, whose indexes it reads.
_MOST_COUNTED, _MOST_INDEXES = 1 << 16, 32
_SAMPLE_BYTES = 16 * MIB


@dataclass(frozen=True, repr=False)
class ScanRowSource(RowSource):
    """Rows of a scan."""

    scan: Scan

    @property
    def schema(self) -> pa.Schema:
        return self.scan.schema

    @property
    def scans(self) -> tuple[Scan, ...]:
        return (self.scan,)

    def map_scans(self, change: Callable[[Any], Any]) -> Self:
        return type(self)(change(self.scan))

    def describe(self) -> str:
        return self.scan.describe()

    def split(self, n: int | None, max_bytes: int = Scan.PIECE_BYTES) -> list[Self]:
        return [type(self)(scan) for scan in self.scan.split(n, max_bytes)]

    def most_parts(self, count: int) -> int:
        return 1 if self.is_indivisible else len(self.scan.split(count))

    def epochs(self, options: IterOptions, seed: int, counts: Sequence[int] | None = None) -> FileEpochs:
        return FileEpochs(self.scan, options, seed, counts)

    @property
    def in_sequence(self) -> bool:
        return self.scan.row_filter is None and not self.scan.options.damage.goes_on

    @property
    def has_counts_at_hand(self) -> bool:
        sources = self.scan.sources
        if sources.are_of_manifest or sources.stated_records is not None:
            return len(sources) <= _MOST_COUNTED
        return sources.are_local and len(sources) <= _MOST_INDEXES

    @property
    def row_search(self) -> Literal["index", "headers"] | None:
        sources = self.scan.sources
        if self.scan.has_compressed_files:
            return None
        counts = Files(sources, self.scan.options).known_counts(may_scan=False, all_machines=True)
        if len(sources) and counts.has_index(
            sources[0]
        ):  # one file answers for all, as in buckets each takes a request
            return "index"
        return "headers" if sources.are_local else None

    @property
    def can_share_memory(self) -> bool:
        return ScanRows(self.scan).may_be_interleaved()

    def part_epochs(
        self,
        options: IterOptions,
        seed: int,
        epoch: int,
        count: int,
        *,
        counts: Any = None,
        sizes: Any = None,
        boundaries: KnownBoundaries | None = None,
    ) -> list[FileEpochs]:
        return FileEpochs(self.scan, options, seed, counts).parts(epoch, count, sizes, boundaries)

    def known_rows(self, may_read: bool = False) -> list[int] | None:
        selection = self.scan.selection
        if self.scan.row_filter is not None or selection.is_range or not self.scan.options.damage.is_strict:
            return None
        counts = FileCounts()
        files = Files(self.scan.sources, self.scan.options)
        counts.indexes = files.known_counts(may_scan=False, all_machines=True)  # ranks have to decide alike
        for records in counts.indexes.record_counts(self.scan.sources):
            if records is None:
                return FileCounts(self.counts()) if may_read else None
            counts.append(records)
        return counts

    def counts(self) -> list[int]:
        """Count the records of each file, or with a filter the rows that fulfil it.

        See `tfrecord_io.count` for how records are counted; with a filter, its columns are read.
        """
        if self.scan.row_filter is not None:
            return [ScanRows(self.scan).count()]
        return ScanRows(self.scan).records_of_files()

    def count_rows(self) -> int:
        return ScanRows(self.scan).count()

    def lookup(self) -> ScanLookup:
        return ScanLookup(self.scan)

    def batches(self) -> Reader:
        return ScanRows(self.scan).open()

    def to_table(self) -> pa.Table:
        return ScanRows(self.scan).read(warns=True)

    def identity(self, options: IterOptions) -> ReadIdentity:
        return ReadIdentity.from_scan(self.scan, options)

    def list_lengths(self, options: IterOptions) -> dict[str, int]:
        # A schema that is embedded, or that of features.json, says that a list has any length, as a declared one does.
        if not self.scan.resolved.is_inferred:
            return {}
        scan = self.scan.without_filter()
        fields, max_lengths = Column.leaf_fields(scan.schema), _undeclared_lists(scan, options)
        if not max_lengths:
            return {}
        parts: dict[int, list[Ragged]] = {i: [] for i in max_lengths}
        for batch in _sample(scan, options):
            arrays = Column.leaf_arrays(batch)
            for i, max_length in max_lengths.items():
                rows = Column(fields[i]).rows(arrays[i])
                assert isinstance(rows, Ragged)
                if max_length is not None:
                    rows.offsets = offsets_of(np.minimum(rows.lengths, max_length))
                rows.values, rows.shapes = rows.values[:0], None  # only the lengths count
                parts[i].append(rows)
        shapes = {fields[i].name: Ragged.join(list(rows)).common_shape() for i, rows in parts.items() if rows}  # type: ignore[union-attr]
        return {name: shape[0] for name, shape in shapes.items() if shape is not None}


def source_of(data: ScanHolder | Scan | RowSource) -> RowSource:
    """Rows of a dataset, a mixture or windows as a source for training."""
    source = Scan.unwrap(data)
    return ScanRowSource(source) if isinstance(source, Scan) else source


def _undeclared_lists(scan: Scan, options: IterOptions) -> dict[int, int | None]:
    """Maximum length of each column of lists, by its index, whose lengths the schema does not state."""
    max_lengths, is_declared = dict[int, int | None](), scan.resolved.declares(scan.options.schema_overrides)
    declared_fields = [field for field in scan.schema if is_declared(field.name)]
    declared = {field.name for field in Column.leaf_fields(pa.schema(declared_fields))}
    for i, field in enumerate(Column.leaf_fields(scan.schema)):
        is_list = Column(field.type).is_list and not t.is_fixed_size_list(field.type)
        if not is_list or field.name in declared or Column(field.type.value_type).is_list:
            continue
        layout = options.layouts.layout(field.name)
        if layout.ragged in (None, "csr"):
            max_lengths[i] = layout.max_length
    return max_lengths


def _sample(scan: Scan, options: IterOptions) -> Iterator[pa.RecordBatch]:
    """Read the first rows. An error ends the sample; the read itself raises it again, after the records before it."""
    limit, size = None, 0
    if options.sample != "all":
        most_rows = scan.selection.limit
        limit = options.sample if most_rows is None else min(options.sample, most_rows)
    with ScanRows(scan.with_selection(limit=limit)).open_files() as reader, suppress(TFRecordError, OSError):
        reader.warns_of_damage = False
        for batch in reader:
            yield batch
            size += sum(map(value_bytes, batch.columns))
            if options.sample != "all" and size >= _SAMPLE_BYTES:
                return


class FileCounts(list[int]):
    """Number of records of each file; `indexes` finds them if files have an index: `ScanRowSource.known_counts`."""

    indexes: Any = None


class FileEpochs(Epochs):
    """Records of every epoch of a scan, all with its schema; for `counts` see `ScanRowSource.counts`."""

    def __init__(self, scan: Scan, options: IterOptions, seed: int, counts: Sequence[int] | None = None) -> None:
        super().__init__()
        self._delivered = scan
        self._scan = scan = scan.without_filter()
        self._seed, self._counts = seed, counts
        self._share: Share | RowRun = Share(*options.share, options.uneven if counts is not None else "keep")
        share, window = self._share, self._delivered.selection.is_range
        by_file = counts is None and share.workers > 1 and have_own_files(self._delivered, share.workers)
        self.sources = scan.sources.share(share.worker, share.workers) if by_file else scan.sources
        by_range = counts is not None and self._delivered.row_filter is None
        self.every_nth = Share() if by_file or by_range else share._replace(uneven="keep")  # of the rows of the files
        self._permuted = options.shuffle_buffer > 0 and not window and len(self.sources) > 1
        self._may_be_indexed = True
        self._is_part = False  # of an epoch, which other parts complete
        self._common: PartsReader | None = None  # of these parts
        # Numbers of records of the files, if another number is an error.
        self.records: Sequence[int] | None = None

    def open(self, position: IteratorPosition) -> EpochReader:
        if self._is_part:  # its byte ranges are not searched for records before it is read
            self._scan = self._scan.align_ranges(None if self._common is None else self._common.boundaries)
            self.sources = self._scan.sources
        if self._common is not None and (part := self._open_with_others(self._common, position)) is not None:
            return part
        begin, row_filter = position.begin, self._delivered.row_filter
        deals = self.every_nth.workers > 1 or self._delivered.selection.limit is not None or self._counts is not None
        if row_filter is not None and deals:
            return self._deal_rows(row_filter, position.epoch, begin)
        if self._counts is not None:
            runs = self._equal_part(position.epoch, begin)
            readers, size = (ScanRows(scan).open_files() for scan, _ in runs), self._share.size(self._rows())
            bounds, counted = [of_files for _, of_files in runs], size + self._share.surplus(self._rows())
            share = self.every_nth
            return FilesReader(self._delivered, readers, begin, share, limit=size, counted=counted, bounds=bounds)
        offset, limit = self._scan.selection.offset, self._scan.selection.limit
        begin = max(offset, begin)
        sources = self._ordered_sources(position.epoch)
        if not self._scan.options.damage.goes_on:
            left = None if limit is None else max(0, limit - (begin - offset))
            scan = self._scan.with_sources(sources, offset=begin, limit=left)
        else:  # rows that were left out have no number: they are found again only by decoding all rows
            scan = self._scan.with_sources(sources)
        is_whole = position.epoch == 0 and begin == offset and self._share.workers == 1 and not self._is_part
        is_declared = self._scan.resolved.is_declared
        warn = self.warnings.append if is_whole and is_declared else None
        reader = ScanRows(scan).open_files(warn) if row_filter is None else self._open_filtered(scan, row_filter, warn)
        worker, workers, first = self.every_nth.worker, self.every_nth.workers, scan.selection.offset
        share = Share((worker + offset) % workers, workers)
        bounds = []
        if self.records is not None and reader.scan.picked is None:
            bounds = [offsets_of(np.array([self.records[i] for i in self.order(position.epoch)], np.int64)) - first]
        return FilesReader(self._delivered, iter([reader]), first, share, resumed_at=begin, bounds=bounds)

    def _open_with_others(self, common: PartsReader, position: IteratorPosition) -> EpochReader | None:
        """Open a part of an epoch together with the `common` others; None if they have to be read one by one."""
        if self._delivered.row_filter is not None or self.records is not None:
            return None
        epoch, begin, bounds, end = position.epoch, position.begin, None, None
        if self._counts is None:
            scan = self._scan.with_sources(self._ordered_sources(epoch), offset=begin)
        else:
            runs, end = self._equal_part(epoch, begin), self._share.size(self._rows())
            if not runs:
                return None
            ((scan, bounds),) = runs
        if not ScanRows(scan).may_be_interleaved():
            return None
        alone = copy(self)
        alone._common = None
        part = PartRows(
            common,
            scan,
            begin,
            bounds=bounds,
            end=end,
            open_alone=lambda row: alone.open(IteratorPosition(epoch, row, row)),
        )
        return common.open(part)

    def _open_filtered(self, scan: Scan, row_filter: RowFilter, warn: Callable[[str], object] | None = None) -> Reader:
        """Open the rows of a scan that can fulfil the filter by the column indexes.

        `warn`: see `ScanRows.open_files`.
        """
        if not self._may_be_indexed:
            return ScanRows(scan).open_files(warn)
        reader = ScanRows(scan).open_indexed(row_filter, warn)
        is_complete = scan.selection.offset == self._scan.selection.offset
        self._may_be_indexed = reader.scan.picked is not None or not is_complete  # in later epochs
        return reader

    def _deal_rows(self, row_filter: RowFilter, epoch: int, begin: int) -> EpochReader:
        """Deal the rows that fulfil the filter to the workers, each of which reads all rows, from the first on."""
        scan = self._scan.with_sources(self._ordered_sources(epoch))
        limit, counted, times = self._delivered.selection.limit, None, 1
        if self._counts is not None:
            counted = self._rows()
            limit = self._share.size(counted) * self._share.workers
            times = max(1, -(-limit // max(counted, 1)))  # more than once if rows from the start pad the parts
        first, readers = scan.selection.offset, (self._open_filtered(scan, row_filter) for _ in range(times))
        mine = self.every_nth
        return FilesReader(self._delivered, readers, first, mine, resumed_at=begin, limit=limit, counted=counted)

    def _equal_part(self, epoch: int, begin: int) -> list[tuple[Scan, Array]]:
        """Scans of the part of this worker, from its row `begin` on: rows in sequence, then padding.

        Each scan comes with the bounds of its files by the counts: where files begin and the last one ends, from the
        first row of the scan on.
        """
        assert self._counts is not None
        order = self.order(epoch)
        bounds = offsets_of(np.array([self._counts[i] for i in order], np.int64))
        ends, runs = bounds[1:], []
        for first, last in self._share.runs(self._rows()):
            last += self._share.surplus(self._rows())
            skipped = min(begin, last - first)
            first, begin = first + skipped, begin - skipped
            if first == last:
                continue
            first, last = first + self._scan.selection.offset, last + self._scan.selection.offset
            files = range(int(ends.searchsorted(first, side="right")), int(ends.searchsorted(last)) + 1)
            # A run that ends with a file is read up to the end of the file, which may have more records than counted.
            limit = None if last == ends[files[-1]] else last - first
            sources, offset = [self.sources[order[i]] for i in files], first - int(bounds[files[0]])
            of_files = bounds[files[0] : files[-1] + 2] - first
            if (pieces := self._pieces([order[i] for i in files], of_files, last - first)) is not None:
                sources, offset, limit = pieces, 0, None
                of_files = np.minimum(np.maximum(of_files, 0), last - first)
            runs.append((self._scan.with_sources(sources, offset=offset, limit=limit), of_files))
        return runs

    def _pieces(self, files: Sequence[int], bounds: Array, count: int) -> list[Source] | None:
        """The first `count` records of files that begin at `bounds`, as pieces; None if no index has their offsets."""
        counts = self._counts
        if not self._is_part or not isinstance(counts, FileCounts):
            return None
        pieces = list[Source]()
        for file, begin in zip(files, bounds[:-1].tolist(), strict=True):
            low, high, source = max(0, -begin), min(counts[file], count - begin), self.sources[file]
            if (low, high) != (0, counts[file]):
                if counts.indexes is None:
                    counts.indexes = Files(self._scan.sources, self._scan.options).known_counts(may_scan=False)
                if (span := counts.indexes.record_bounds(source, [low, high], counts[file])) is None:
                    return None
                source = source.piece(span[0], span[1], high - low)
            pieces.append(source)
        return pieces

    def parts(
        self, epoch: int, count: int, sizes: Sequence[int] | None = None, boundaries: KnownBoundaries | None = None
    ) -> list[FileEpochs]:
        """The canonical parts of an epoch: byte ranges of about equal size, or with `sizes` runs of so many records.

        `boundaries`: see `Scan.align_ranges`.
        """
        if sizes is not None:
            ends = offsets_of(np.array(sizes, np.int64)).tolist()
            parts = [self._part_of_rows(RowRun(*run)) for run in pairwise(ends)]
        else:
            scans = [*self._delivered.with_sources(self._ordered_sources(epoch)).split(count)]
            scans += [self._delivered.with_sources(())] * (count - len(scans))
            parts = [self._part_of_files(scan) for scan in scans]
        if len(parts) > 1:
            common = PartsReader(boundaries)
            for part in parts:
                part._common = common
        return parts

    def _part_of_rows(self, run: RowRun) -> FileEpochs:
        """A part of an epoch: a run of the counted records of the epoch."""
        part = copy(self)
        part._is_part, part._share = True, run
        return part

    def _part_of_files(self, scan: Scan) -> FileEpochs:
        """A part of an epoch: all rows of a scan, in order."""
        part = copy(self)
        part._delivered, part._scan, part.sources = scan, scan.without_filter(), scan.sources
        part._is_part, part._permuted = True, False
        return part

    def _rows(self) -> int:
        """Number of records of one epoch, of all workers together."""
        assert self._counts is not None
        total = sum(self._counts)
        return total if self._delivered.row_filter is not None else self._scan.rows_within(total)

    def _ordered_sources(self, epoch: int) -> Sources:
        """The files in their order in an epoch."""
        return self.sources.take(np.array(self.order(epoch), np.int64)) if self._permuted else self.sources

    def order(self, epoch: int) -> Sequence[int]:
        """Order of the files in an epoch."""
        count = len(self.sources)
        # Workers that share files may have seeds of their own, and need one order.
        seed = self._seed if self.every_nth.workers == 1 else _SHARED_SEED
        return permutation(count, seed, epoch) if self._permuted else range(count)

    def count(self) -> int:
        if self._counts is not None:
            return self._share.size(self._rows())
        if self._delivered.row_filter is not None:
            raise TypeError("the number of batches is unknown: it depends on the filter")
        total = self.sources.stated_records if self.sources.are_of_manifest else self._count_files()
        return self.every_nth.size(self._scan.rows_within(total or 0))

    def _count_files(self) -> int:
        """The records of the files, as manifests and indexes state them; TypeError if they do not."""
        total = 0
        try:
            known = Files(self._scan.sources, self._scan.options).known_counts(may_scan=False)
            for source, records in zip(self.sources, known.record_counts(self.sources), strict=True):
                if records is None:
                    advice: str = "make one with `tfr index`, or write the files with write_tfrecord(write_index=True)"
                    reason = f"no manifest and no index states how many records {printable(source.path)} has"
                    if source.span is not None:
                        reason = f"nothing states how many records a piece of {printable(source.path)} has"
                        advice = "count_rows() of the dataset counts them"
                    raise TypeError(f"the number of batches is unknown: {reason}; {advice}")
                total += records
        except (TFRecordError, OSError) as error:
            raise TypeError(f"the number of batches is unknown: {error}") from error
        return total


class FilesReader(EpochReader):
    """Reads the rows of one worker from readers, one after the other: rows that fulfil the filter of a scan.

    scan
        Its columns are delivered.
    begin, resumed_at
        Numbers of the first row that is read, and of the first one that is delivered.
    share
        Rows of this worker: every n-th by number; with a filter, every n-th of the rows that fulfil it.
    limit
        Most rows that all workers together deliver, of those that fulfil the filter.
    counted
        Number of rows that fulfil the filter in each reader, or without a filter of all readers together; another
        number is an error. A scan limited to as many rows ends there.
    bounds
        For each reader, the rows at which its files begin, and the last one ends; other rows in a file are an error.
    """

    def __init__(
        self,
        scan: Scan,
        readers: Iterator[Reader],
        begin: int,
        share: Share,
        *,
        resumed_at: int = 0,
        limit: int | None = None,
        counted: int | None = None,
        bounds: Sequence[Array] = (),
    ) -> None:
        super().__init__(begin)
        self._readers = readers
        self._numbered: list[NumberedRows] = []
        self._scan, self._share, self._resumed_at = scan, share, resumed_at
        self._limit, self._counted, self._bounds = limit, counted, bounds
        self._is_limited = scan.row_filter is not None and counted is not None and counted == scan.selection.limit
        # False if all rows that are read are delivered as they are.
        is_part = limit is not None or share.workers > 1 or resumed_at > begin
        self._selects = is_part or scan.row_filter is not None or scan.selected is not None
        self._passed = 0  # rows that have fulfilled the filter, up to the limit
        self._passed_in_reader = 0  # rows of the last reader that have fulfilled the filter

    def _read(self) -> Generator[NumberedBatch]:
        counts_passing = self._scan.row_filter is not None and self._counted is not None
        for run, reader in enumerate(self._readers):
            self._opened.append(reader)
            reader.warns_of_damage = False  # arrays may leave out more rows
            rows = NumberedRows(reader, self.next)
            self._numbered.append(rows)
            size = self._passed_in_reader = 0
            for numbers, batch in rows:
                if self._bounds:
                    _refuse_changed_files(reader, rows.row_of(int(numbers[0])), len(batch), self._bounds[run])
                size, before = reader.payload_bytes, size
                row_bytes = (size - before) / max(len(batch), 1)
                self.next = rows.next
                if self._selects:
                    numbers, batch = self._select(numbers, batch)
                if len(batch):
                    yield NumberedBatch(RowFacts(numbers, np.full(len(batch), row_bytes)), batch)
                # The first reader is read to its end where rows are counted.
                is_enough = self._limit is not None and self._passed >= self._limit and (self._counted is None or run)
                if is_enough or (self._is_limited and self._passed_in_reader == self._counted):
                    break
            else:
                self.next = rows.next
            if counts_passing and run == 0 and self._passed_in_reader != self._counted:
                reason = f"{self._passed_in_reader} records fulfil the filter, but {self._counted} were counted"
                raise CorruptRecordError(
                    reason, expected=self._counted, got=self._passed_in_reader, hint="open the files again"
                )
            if self._counted is not None:
                reader.close()
        if not counts_passing and self._counted not in (None, self.next):
            reason = f"this part of the epoch has {self.next} records, but {self._counted} were counted"
            raise CorruptRecordError(reason, expected=self._counted, got=self.next, hint="open the files again")

    def _select(self, numbers: Array, batch: pa.RecordBatch) -> tuple[Array, pa.RecordBatch]:
        """Select the rows of this worker from a batch, with their numbers."""
        row_filter, names = self._scan.row_filter, self._scan.selected
        if row_filter is None:
            ordinals = numbers if self._limit is None else numbers[: numbers.searchsorted(self._limit)]
            rows = np.arange(len(ordinals))
        else:
            rows = np.flatnonzero(row_filter.mask(batch).to_numpy(zero_copy_only=False))
            if self._is_limited:
                assert self._counted is not None
                rows = rows[: self._counted - self._passed_in_reader]
                if len(rows):  # the next reader counts on from here, wherever a batch ends
                    self.next = int(numbers[rows[-1]]) + 1
            self._passed_in_reader += len(rows)
            rows = rows if self._limit is None else rows[: self._limit - self._passed]
            ordinals = self._passed + np.arange(len(rows))
            self._passed += len(rows)
        rows = rows[self._share.mask(ordinals) & (numbers[rows] >= self._resumed_at)]
        if names is not None and batch.schema.names != [*names]:
            batch = batch.select([*names])
        if len(rows) == len(batch):
            return numbers, batch
        return numbers[rows], selectable(batch).take(int64_array(rows))

    def reports(self) -> list[ReadReport]:
        return list(map(attrgetter("report"), self._opened))

    def origin(self, fault: RowFault) -> tuple[Any, RowFault]:
        rows = self._numbered[bisect_right(self._numbered, fault.row, key=lambda rows: rows.begin) - 1]
        return rows.reader, fault.renumber(rows.row_of(fault.row))


def _refuse_changed_files(reader: Reader, row: int, rows: int, bounds: Array) -> None:
    """Raise CorruptRecordError if a file of a reader has other rows than its `bounds` say."""
    for file, record, count in reader.origins.runs(row, row + rows):
        is_short, is_long = row < bounds[file] + record, row + count > bounds[file + 1]
        if is_short or is_long:
            at = int(bounds.searchsorted(row, side="right")) - 1 if is_short else file
            counted = int(bounds[at + 1] - bounds[at])
            reason = f"the file has {'fewer' if is_short else 'more'} records than the {counted} that were counted"
            advice = "open the files again, or correct the number in their dataset_info.json"
            raise CorruptRecordError(reason, path=reader.scan.sources[at].path, expected=counted, hint=advice)
        row += count
