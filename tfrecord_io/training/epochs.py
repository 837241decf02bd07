"""The records of an epoch: the order of the files, and the records that one worker reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from tfrecord_io.errors import TFRecordError, printable
from tfrecord_io.index import find_indexes
from tfrecord_io.index.known_counts import KnownCounts
from tfrecord_io.options import IterOptions
from tfrecord_io.read.reader import Reader
from tfrecord_io.read.scan import Scan
from tfrecord_io.storage.read.source import Source
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

    Attributes
    ----------
    warnings : list of str
        Texts of SchemaWarnings, for the thread that takes the batches to issue.
    """

    def __init__(self, scan: Scan, options: IterOptions, seed: int) -> None:
        self._scan = scan
        self._seed = seed
        worker, workers = options.worker or (0, 1)
        window = options.offset > 0 or options.limit is not None
        by_file = workers > 1 and not window and len(scan.sources) >= workers
        self._sources = scan.sources[worker::workers] if by_file else scan.sources
        self._residue, self._modulus = (0, 1) if by_file else (worker, workers)
        self._is_only_worker = workers == 1
        self.warnings: list[str] = []
        self._permuted = options.shuffle_buffer > 0 and not window and self._modulus == 1

    def open(self, position: IteratorPosition) -> EpochRows:
        """The rows of an epoch from `position` on; before it, those that are in the shuffle buffer."""
        options = self._scan.options
        begin = max(options.offset, min([position.next, *position.buffer]))
        limit = None if options.limit is None else max(0, options.limit - (begin - options.offset))
        scan = self._scan.over(self._ordered_sources(position.epoch), offset=begin, limit=limit)
        is_whole = position.epoch == 0 and begin == options.offset and self._is_only_worker
        reader = scan.open(scan.absent_columns(self.warnings.append) if is_whole else None)
        return EpochRows(reader, begin, (self._residue + options.offset) % self._modulus, self._modulus)

    def records(self) -> int:
        """The number of records of one epoch.

        Raises
        ------
        TypeError
            It is not known without reading the files; the message says of which file.
        """
        options = self._scan.options
        total, known = 0, KnownCounts(options.compression, options.max_record_bytes)
        try:
            indexes = find_indexes(self._sources) if known.may_be_plain else [None] * len(self._sources)
            for source, index in zip(self._sources, indexes, strict=True):
                records = 0 if source.size == 0 else known.of(source, index)
                if records is None:
                    advice = "write one (`tfr index` or write_index=True; sharded datasets have a manifest)"
                    reason = f"no manifest and no index tells how many records {printable(source.path)} has"
                    raise TypeError(f"the number of batches is unknown: {reason}; {advice}")
                total += records
        except (TFRecordError, OSError) as error:
            raise TypeError(f"the number of batches is unknown: {error}") from error
        rows = max(0, total - options.offset)
        rows = rows if options.limit is None else min(rows, options.limit)
        return len(range(self._residue, rows, self._modulus))

    def _ordered_sources(self, epoch: int) -> Sequence[Source]:
        if not self._permuted:
            return self._sources
        return [self._sources[i] for i in permutation(len(self._sources), self._seed, epoch)]


class EpochRows:
    """The numbered rows of one reader that belong to this worker.

    An error ends the iteration; `raise_error` raises it, once the rows before it have been delivered.

    Attributes
    ----------
    next : int
        Number of the row after those read.
    """

    def __init__(self, reader: Reader, begin: int, residue: int, modulus: int) -> None:
        self.next = begin
        self._reader = reader
        self._begin = begin
        self._residue, self._modulus = residue, modulus
        self._pools = self._read()
        self._resumed: list[RowPool] = []  # rows that `resume` read beyond the buffer
        self._error: Exception | None = None

    def _read(self) -> Iterator[RowPool]:
        for batch in self._reader:
            numbers = np.arange(self.next, self.next + len(batch))
            self.next += len(batch)
            if self._modulus > 1:
                selected = np.flatnonzero(numbers % self._modulus == self._residue)
                numbers, batch = numbers[selected], batch.take(pa.array(selected))
            if len(batch):
                yield RowPool(numbers, batch)

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
        return self._error is not None or self._reader.report.stopped is not None

    def raise_error(self) -> None:
        """Raise the error that ended the rows, if any."""
        if self._error is not None:
            raise self._error

    def origin(self, number: int) -> tuple[str, int]:
        """Path and record index of the row with this number."""
        return self._reader.origins.of(number - self._begin)

    def close(self) -> None:
        self._reader.close()
