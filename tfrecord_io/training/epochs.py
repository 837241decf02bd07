"""The records of an epoch: which files in which order, and which of their records are this worker's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from tfrecord_io.engine.contract import Array
from tfrecord_io.options import IterOptions
from tfrecord_io.read.reader import Reader
from tfrecord_io.read.scan import Scan
from tfrecord_io.storage.read.source import Source
from tfrecord_io.training.shuffle import permutation

Numbered = tuple[Array, pa.RecordBatch]
"""Rows and their numbers in the order of the epoch's files."""


class Epochs:
    """The records of every epoch.

    Parameters
    ----------
    scan : Scan
        Its schema is that of all batches.
    options : IterOptions
    seed : int
    """

    def __init__(self, scan: Scan, options: IterOptions, seed: int) -> None:
        self._scan = scan
        self._seed = seed
        worker, workers = options.worker or (0, 1)
        window = options.offset > 0 or options.limit is not None
        by_file = workers > 1 and not window and len(scan.sources) >= workers
        self._sources = scan.sources[worker::workers] if by_file else scan.sources
        self._residue, self._modulus = (0, 1) if by_file else (worker, workers)
        self._permuted = options.shuffle_buffer > 0 and not window and self._modulus == 1

    @property
    def first(self) -> int:
        """The number of the first record."""
        return self._scan.options.offset

    def open(self, epoch: int, begin: int) -> Stream:
        """The records of an epoch, from number `begin` on."""
        limit = self._scan.options.limit
        left = None if limit is None else max(0, limit - (begin - self.first))
        reader = self._scan.over(self._in_order(epoch), offset=begin, limit=left).open()
        return Stream(reader, begin, (self._residue + self.first) % self._modulus, self._modulus)

    def _in_order(self, epoch: int) -> Sequence[Source]:
        if not self._permuted:
            return self._sources
        return [self._sources[at] for at in permutation(len(self._sources), self._seed, epoch)]


class Stream:
    """The rows of one reader that are this worker's, with their numbers.

    Attributes
    ----------
    next : int
        The number of the row that comes next.
    """

    def __init__(self, reader: Reader, begin: int, residue: int, modulus: int) -> None:
        self.reader = reader
        self.next = begin
        self._begin = begin
        self._residue, self._modulus = residue, modulus

    def __iter__(self) -> Iterator[Numbered]:
        for batch in self.reader:
            numbers = np.arange(self.next, self.next + len(batch))
            self.next += len(batch)
            if self._modulus > 1:
                mine = np.flatnonzero(numbers % self._modulus == self._residue)
                numbers, batch = numbers[mine], batch.take(pa.array(mine))
            if len(batch):
                yield numbers, batch

    def origin(self, number: int) -> int:
        """The row of the reader's `origins` that has a number."""
        return number - self._begin

    def close(self) -> None:
        self.reader.close()
