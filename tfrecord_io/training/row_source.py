"""Source of the rows of an epoch: files, and what is made of their rows. Sources compose."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import Any, Self

import pyarrow as pa

from tfrecord_io.arrays.rows_by_number import Lookup
from tfrecord_io.options import ReadOptions
from tfrecord_io.options.arrays import IterOptions
from tfrecord_io.read.reader import Reader
from tfrecord_io.read.scan import PIECE_BYTES, Scan
from tfrecord_io.storage.read.source import Source, total
from tfrecord_io.training.checkpoint import ReadIdentity
from tfrecord_io.training.epochs import Epochs


class RowSource(ABC):
    """Rows for training. A source can be pickled, and opens files when it is read."""

    __slots__ = ()
    schema: pa.Schema

    # What it is made of -----------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def scans(self) -> tuple[Scan, ...]:
        """The reads of files that it is made of."""

    @abstractmethod
    def each(self, change: Callable[[Any], Any]) -> Self:
        """Return this source with changed scans."""

    @abstractmethod
    def describe(self) -> str:
        """For display, and for checkpoints that compare it."""

    @property
    def sources(self) -> tuple[Source, ...]:
        """All files."""
        return tuple(source for scan in self.scans for source in scan.sources)

    @property
    def options(self) -> ReadOptions:
        """Options of the reads."""
        return self.scans[0].options

    @property
    def schema_source(self) -> str:
        return self.scans[0].schema_source

    @property
    def steps(self) -> Sequence[str]:
        """The columns that rows cannot lack."""
        return ()

    @property
    def size(self) -> int | None:
        """The bytes that the rows are read from; None if that is unknown."""
        return total(source.size for source in self.sources)

    @property
    def is_limited(self) -> bool:
        """True if these are only some of the records of the files."""
        return self.options.offset > 0 or self.options.limit is not None

    def files_and_columns(self) -> str:
        """For display."""
        return self.scans[0].files_and_columns()

    def over(self, **changes: Any) -> Self:
        """See `Scan.with_options`."""
        return self.each(lambda scan: scan.with_options(**changes))

    def prune_files(self) -> Self:
        """See `Scan.prune_files`."""
        return self.each(lambda scan: scan.prune_files())

    @abstractmethod
    def split(self, n: int | None, max_bytes: int = PIECE_BYTES) -> Sequence[RowSource]:
        """Parts of the rows, at most `n`, which are read apart; see `Scan.split`."""

    # Its rows ---------------------------------------------------------------------------------------------------------

    @abstractmethod
    def epochs(self, options: IterOptions, seed: int, counts: Any = None) -> Epochs:
        """The rows of every epoch, those of one worker; of parts of equal size, with the `counts`."""

    @property
    def in_sequence(self) -> bool:
        """True if the numbers of the rows of an epoch follow each other, from `options.offset` on."""
        return False

    @abstractmethod
    def counts(self) -> Any:
        """Counts that `epochs` needs for parts of equal size; files without an index or a manifest are read for it."""

    @abstractmethod
    def count_rows(self) -> int:
        """The number of rows of an epoch; files without an index or a manifest are read for it."""

    @abstractmethod
    def lookup(self) -> Lookup:
        """The rows by number."""

    @abstractmethod
    def batches(self) -> Generator[pa.RecordBatch] | Reader:
        """The rows of an epoch, in order."""

    @abstractmethod
    def to_table(self) -> pa.Table:
        """The rows of an epoch as a table."""

    # What readers of it depend on -------------------------------------------------------------------------------------

    @abstractmethod
    def identity(self, options: IterOptions) -> ReadIdentity:
        """Identity of the batches: everything they depend on."""

    @abstractmethod
    def list_lengths(self, options: IterOptions) -> dict[str, int]:
        """The length of the lists of each column, by name, where it is the same throughout the sample.

        Without the columns that a schema states as lists of any length, or that have a representation by the options.
        """

    def refuse_own_seeds(self, options: IterOptions) -> None:  # noqa: B027 — workers of most sources need not agree
        """Raise ValueError if workers share a sequence of rows, but would each draw a seed for it."""
