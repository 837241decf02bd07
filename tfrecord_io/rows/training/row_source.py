"""Interface of sources of training rows, which give the rows of every epoch.

Files, mixtures and windows are such sources; mixtures are made of other sources.

Tests: tests/rows/training/test_mixture.py and tests/rows/training/test_windows.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import pyarrow as pa

from tfrecord_io.base import LateTypes, ScanOptions, Selection
from tfrecord_io.read import Reader, Scan
from tfrecord_io.rows.arrays.rows_by_number import Lookup
from tfrecord_io.rows.training.epochs import Epochs
from tfrecord_io.rows.training.iter_options import IterOptions
from tfrecord_io.rows.training.iterator_state import ReadIdentity
from tfrecord_io.store import Source

if TYPE_CHECKING:
    from tfrecord_io import read
else:
    read = LateTypes("tfrecord_io.read")


class RowSource(ABC):
    """Rows for training. A source can be pickled, and opens files when it is read."""

    __slots__ = ()
    schema: pa.Schema

    # Files and options ------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def scans(self) -> tuple[Scan, ...]:
        """Scans of the files that the rows come from."""

    @abstractmethod
    def map_scans(self, change: Callable[[Any], Any]) -> Self:
        """Return a source whose scans `change` has replaced."""

    @abstractmethod
    def describe(self) -> str:
        """Text for display, and for checkpoints, which compare it."""

    @property
    def sources(self) -> tuple[Source, ...]:
        """All files."""
        return tuple(source for scan in self.scans for source in scan.sources)

    @property
    def options(self) -> ScanOptions:
        """Options of the reads."""
        return self.scans[0].options

    @property
    def selection(self) -> Selection:
        """The columns and rows of the files that are read; see `Scan`."""
        return self.scans[0].selection

    @property
    def schema_source(self) -> str:
        return self.scans[0].schema_source

    @property
    def steps(self) -> Sequence[str]:
        """Columns of steps, without which the source makes no rows."""
        return ()

    @property
    def size(self) -> int | None:
        """Bytes of the files that the rows are read from; None if unknown."""
        return Source.total(source.size for source in self.sources)

    @property
    def is_limited(self) -> bool:
        """True if an offset or a limit leaves out records of the files."""
        return self.selection.is_range

    @property
    def is_indivisible(self) -> bool:
        """True if parts of the files would have other rows; see `Scan.is_indivisible`."""
        return self.is_limited or self.options.damage.ends_quietly

    def files_and_columns(self) -> str:
        """Text for display."""
        return self.scans[0].files_and_columns()

    def with_options(self, **changes: Any) -> Self:
        """See `Scan.with_options`."""
        return self.map_scans(lambda scan: scan.with_options(**changes))

    def prune_files(self) -> Self:
        """See `Scan.prune_files`."""
        return self.map_scans(lambda scan: scan.prune_files())

    @abstractmethod
    def split(self, n: int | None, max_bytes: int = Scan.PIECE_BYTES) -> Sequence[RowSource]:
        """Split the rows into at most `n` parts that are read apart; see `Scan.split`."""

    # Rows -------------------------------------------------------------------------------------------------------------

    @abstractmethod
    def epochs(self, options: IterOptions, seed: int, counts: Any = None) -> Epochs:
        """Rows of one worker in every epoch; with `counts`, all workers get parts of equal size."""

    def part_epochs(
        self,
        options: IterOptions,
        seed: int,
        epoch: int,
        count: int,
        *,
        counts: Any = None,
        sizes: Any = None,
        boundaries: read.KnownBoundaries | None = None,
    ) -> Sequence[Epochs]:
        """The rows of each of `count` canonical parts of an epoch; see `rows/training/order.py`.

        By default, those of as many workers. With `counts`, as of `epochs`, parts have `sizes` rows, int64 [parts].
        `boundaries`: see `Scan.align_ranges`.
        """
        of_parts = (options.changed(worker=(part, count)) for part in range(count))
        return [self.epochs(of_part, seed) for of_part in of_parts]

    def most_parts(self, count: int) -> int:
        """Most canonical parts, of `count`, that the rows can be divided into without reading more."""
        return 1 if self.is_indivisible else len(self.split(count))

    def known_rows(self, may_read: bool = False) -> list[int] | None:
        """Number of records of each file; None if it is unknown without reading, or other rows are delivered."""
        return None

    @property
    def has_counts_at_hand(self) -> bool:
        """True if the number of records of each file is known without reading many files."""
        return False

    @property
    def row_search(self) -> Literal["index", "headers"] | None:
        """How all machines find a row with a known number: by an index, or by the headers before it in its file.

        None if the rows before it have to be read. Looks for an index.
        """
        return None

    @property
    def can_share_memory(self) -> bool:
        """True if parts of an epoch that are read side by side take little more memory than one."""
        return False

    @property
    def is_late(self) -> bool:
        """True if rows are numbers until they are drawn; see `NumberedBatch.make_windows`."""
        return False

    @property
    def in_sequence(self) -> bool:
        """True if the numbers of the rows of an epoch follow each other, from `selection.offset` on."""
        return False

    @abstractmethod
    def counts(self) -> Any:
        """Count what `epochs` needs for parts of equal size; files without an index or a manifest are read for it."""

    @abstractmethod
    def count_rows(self) -> int:
        """Count the rows of an epoch; files without an index or a manifest are read for it."""

    @abstractmethod
    def lookup(self) -> Lookup:
        """The rows by number."""

    @abstractmethod
    def batches(self) -> Generator[pa.RecordBatch] | Reader:
        """The rows of an epoch, in order."""

    @abstractmethod
    def to_table(self) -> pa.Table:
        """The rows of an epoch as a table."""

    # Checkpoints and shapes -------------------------------------------------------------------------------------------

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
