"""The records of an epoch: the order of the files, and the records that one worker reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tfrecord_io.arrow.buffers import int64_array
from tfrecord_io.errors import CorruptRecordError, TFRecordError, printable
from tfrecord_io.index.known_counts import KnownCounts
from tfrecord_io.options import IterOptions, ReadOptions
from tfrecord_io.read.chunks.block_walker import count_each
from tfrecord_io.read.chunks.recovery import recovery_of
from tfrecord_io.read.reader import Reader
from tfrecord_io.read.row_origins import RowOrigins
from tfrecord_io.read.scan import Scan
from tfrecord_io.training.checkpoint import IteratorPosition
from tfrecord_io.training.row_pool import RowPool
from tfrecord_io.training.shuffle import permutation


class Epochs:
    """The records of every epoch.

    Parameters
    ----------
    scan : Scan
        Its schema is that of all batches.
    options : IterOptions
    seed : int
    counts : sequence of int, optional
        The number of records of each file, for parts of equal size; see `count_sources`.

    Attributes
    ----------
    warnings, damage : list of str
        Texts of SchemaWarnings and DamagedDataWarnings, for the thread that takes the batches to issue.
    """

    def __init__(self, scan: Scan, options: IterOptions, seed: int, counts: Sequence[int] | None = None) -> None:
        self._scan = scan
        self._seed = seed
        self._worker, self._workers = worker, workers = options.worker or (0, 1)
        self._counts, self._pads = counts, options.uneven == "pad"
        window = options.offset > 0 or options.limit is not None
        by_file = counts is None and workers > 1 and not window and len(scan.sources) >= workers
        self._sources = scan.sources[worker::workers] if by_file else scan.sources
        self._residue, self._modulus = (0, 1) if by_file or counts is not None else (worker, workers)
        self.warnings: list[str] = []
        self.damage: list[str] = []
        self._permuted = options.shuffle_buffer > 0 and not window and self._modulus == 1

    def open(self, position: IteratorPosition) -> EpochRows:
        """The rows of an epoch from `position` on; before it, those that are in the shuffle buffer."""
        begin = min([position.next, *position.buffer])
        if self._counts is not None:
            runs = self._equal_part(position.epoch, begin)
            return EpochRows((scan.open() for scan in runs), begin, expected=self._part_size())
        options = self._scan.options
        begin = max(options.offset, begin)
        limit = None if options.limit is None else max(0, options.limit - (begin - options.offset))
        sources = [self._sources[i] for i in self._order(position.epoch)]
        if recovery_of(options.on_error) is None:
            scan = self._scan.over(sources, offset=begin, limit=limit)
        else:  # rows that were left out have no number: they are found again only by decoding all rows
            scan = self._scan.over(sources, offset=options.offset, limit=options.limit)
        is_whole = position.epoch == 0 and begin == options.offset and self._workers == 1
        reader = scan.open(scan.absent_columns(self.warnings.append) if is_whole else None)
        reader.tell_of_damage = lambda skipped: skipped.warn(self.damage.append)
        residue = (self._residue + options.offset) % self._modulus
        return EpochRows(iter([reader]), scan.options.offset, residue, self._modulus, resumed_at=begin)

    def _equal_part(self, epoch: int, begin: int) -> list[Scan]:
        """What this worker reads, without the first `begin` rows: rows in sequence, then padding from the start."""
        assert self._counts is not None
        order = self._order(epoch)
        ends = np.cumsum([self._counts[i] for i in order])
        scans = []
        for first, last in equal_part(self._rows(), self._worker, self._workers, pads=self._pads):
            skipped = min(begin, last - first)
            first, begin = first + skipped, begin - skipped
            if first == last:
                continue
            first, last = first + self._scan.options.offset, last + self._scan.options.offset
            files = range(int(ends.searchsorted(first, side="right")), int(ends.searchsorted(last)) + 1)
            offset = first - (int(ends[files[0] - 1]) if files[0] else 0)
            scans.append(self._scan.over([self._sources[order[i]] for i in files], offset=offset, limit=last - first))
        return scans

    def _rows(self) -> int:
        """The number of records of one epoch, of all workers together."""
        assert self._counts is not None
        return _in_window(sum(self._counts), self._scan.options)

    def _part_size(self) -> int:
        return sum(
            last - first for first, last in equal_part(self._rows(), self._worker, self._workers, pads=self._pads)
        )

    def _order(self, epoch: int) -> Sequence[int]:
        """The order of the files."""
        count = len(self._sources)
        return permutation(count, self._seed, epoch) if self._permuted else range(count)

    def records(self) -> int:
        """The number of records of one epoch.

        Raises
        ------
        TypeError
            It is not known without reading the files; the message says of which file.
        """
        if self._counts is not None:
            return self._part_size()
        options = self._scan.options
        total, known = 0, KnownCounts(options.compression, options.max_record_bytes)
        try:
            indexes = known.indexes(self._sources)
            for source, index in zip(self._sources, indexes, strict=True):
                records = 0 if source.size == 0 else known.of(source, index)
                if records is None:
                    advice = "write one (`tfr index` or write_index=True; sharded datasets have a manifest)"
                    reason = f"no manifest and no index states how many records {printable(source.path)} has"
                    raise TypeError(f"the number of batches is unknown: {reason}; {advice}")
                total += records
        except (TFRecordError, OSError) as error:
            raise TypeError(f"the number of batches is unknown: {error}") from error
        return len(range(self._residue, _in_window(total, options), self._modulus))


def _in_window(records: int, options: ReadOptions) -> int:
    """How many of these records `offset` and `limit` leave."""
    rows = max(0, records - options.offset)
    return rows if options.limit is None else min(rows, options.limit)


def equal_part(rows: int, worker: int, workers: int, *, pads: bool) -> list[tuple[int, int]]:
    """The rows of a worker, all workers having the same number: at most two ranges, of which the second is padding.

    Examples
    --------
    >>> [equal_part(5, worker, 3, pads=True) for worker in range(3)]
    [[(0, 2)], [(2, 4)], [(4, 5), (0, 1)]]
    >>> [equal_part(5, worker, 3, pads=False) for worker in range(3)]
    [[(0, 1)], [(1, 2)], [(2, 3)]]
    """
    size = -(-rows // workers) if pads else rows // workers
    if not size:
        return []
    first = worker * size % rows
    last = min(first + size, rows)
    padding = size - (last - first)
    return [(first, last), (0, padding)] if padding else [(first, last)]


def count_sources(scan: Scan) -> list[int]:
    """The number of records of each file; see `tfrecord_io.count_records` for where it is taken from."""
    known = KnownCounts(scan.options.compression, scan.options.max_record_bytes)
    indexes = known.indexes(scan.sources)
    return count_each(scan.sources, indexes, known)


class EpochRows:
    """The numbered rows of readers, one after the other, that belong to this worker.

    An error ends the iteration; `raise_error` raises it, once the rows before it have been delivered. It is an error,
    too, if the last number is not `expected`.

    Attributes
    ----------
    next : int
        Number of the row after those read.
    """

    def __init__(
        self,
        readers: Iterator[Reader],
        begin: int,
        residue: int = 0,
        modulus: int = 1,
        *,
        expected: int | None = None,
        resumed_at: int = 0,
    ) -> None:
        self.next = begin
        self._resumed_at = resumed_at  # rows before it are not delivered
        self._readers = readers
        self._reader: Reader | None = None
        self._origins: list[tuple[int, RowOrigins]] = []  # with the number of the first row of each reader
        self._residue, self._modulus = residue, modulus
        self._expected = expected
        self._pools = self._read()
        self._resumed: list[RowPool] = []  # rows that `resume` read beyond the buffer
        self._error: Exception | None = None

    def _read(self) -> Iterator[RowPool]:
        for reader in self._readers:
            self._reader = reader
            self._origins.append((self.next, reader.origins))
            size = 0
            for batch in reader:
                size, before = reader.payload_bytes, size
                row_bytes = (size - before) / max(len(batch), 1)
                numbers = np.arange(self.next, self.next + len(batch))
                self.next += len(batch)
                if self._modulus > 1 or (len(numbers) and numbers[0] < self._resumed_at):
                    in_part = numbers % self._modulus == self._residue
                    selected = np.flatnonzero(in_part & (numbers >= self._resumed_at))
                    numbers, batch = numbers[selected], batch.take(int64_array(selected))
                if len(batch):
                    yield RowPool(numbers, batch, np.full(len(batch), row_bytes))
            if self._expected is not None:
                reader.close()
        if self._expected not in (None, self.next):
            reason = f"the part of this worker has {self.next} records, but {self._expected} were counted"
            raise CorruptRecordError(reason, expected=self._expected, got=self.next, advice="open the files again")

    def __iter__(self) -> Iterator[RowPool]:
        yield from self._resumed
        try:
            yield from self._pools
        except Exception as error:
            self._error = error

    def resume(self, position: IteratorPosition) -> list[RowPool]:
        """Skip the records before `position`; return those of its shuffle buffer, in the order of the buffer."""
        if not position.buffer:
            return []
        buffer = np.array(position.buffer, np.int64)
        pools: list[RowPool] = []
        for pool in self._pools:
            count = int(np.searchsorted(pool.numbers, position.next))
            buffered = np.flatnonzero(np.isin(pool.numbers[:count], buffer))
            if len(buffered):
                pools.append(pool.take(buffered))
            if count < len(pool):
                self._resumed = [pool.slice(count)]
                break
        if sum(map(len, pools)) != len(buffer):
            raise ValueError("the state does not fit the files: they have fewer records than it states")
        ranks = np.argsort(np.argsort(buffer, kind="stable"), kind="stable")
        return [RowPool.concat(pools).take(ranks)]

    @property
    def failed(self) -> bool:
        """Whether an error ended the rows, or ended them early under ``on_error="stop"``."""
        stopped = self._reader is not None and self._reader.report.stopped is not None
        return self._error is not None or stopped

    def raise_error(self) -> None:
        """Raise the error that ended the rows, if any."""
        if self._error is not None:
            raise self._error

    def origin(self, number: int) -> tuple[str, int]:
        """Path and record index of the row with this number."""
        begin, origins = next(item for item in reversed(self._origins) if item[0] <= number)
        return origins.of(number - begin)

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
