"""`Rows`: the rows of datasets, mixtures and windows for training.

Tests: tests/test_kit.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tfrecord_io.base import ScanOptions
from tfrecord_io.kit.scan_facade import Scan

if TYPE_CHECKING:
    from tfrecord_io.read import Reader
    from tfrecord_io.rows import ArrayIterator, ArraysByNumber, BatchesByNumber, RowSource


class Rows:
    """Rows for training: of a dataset, or of a mixture or windows of datasets. They can be pickled.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"n": [1, 2, 3]}, "numbers.tfrecord")
    >>> rows = Rows.of(tfr.dataset("numbers.tfrecord"))
    >>> [batch["n"].tolist() for batch in rows.iterate(batch_size=2)]
    [[1, 2], [3]]
    """

    __slots__ = ("_source",)

    def __init__(self, source: RowSource) -> None:
        self._source = source

    @classmethod
    def of(cls, source: Any) -> Rows:
        """The rows of a `tfrecord_io.Dataset`, a piece of one, a mixture, windows or a `Scan`."""
        from tfrecord_io.rows import source_of

        if isinstance(source, Rows):
            return source
        return cls(source_of(source._scan if isinstance(source, Scan) else source))

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches."""
        return self._source.schema

    @property
    def options(self) -> ScanOptions:
        """How the files are read."""
        return self._source.options

    @property
    def is_indivisible(self) -> bool:
        """True if parts would have other rows: `split` raises ValueError then."""
        return self._source.is_indivisible

    def split(self, n: int | None, max_bytes: int = Scan.PIECE_BYTES) -> list[Rows]:
        """Split into at most `n` parts of about the same size, in order, or into parts of about `max_bytes`."""
        return [Rows(part) for part in self._source.split(n, max_bytes)]

    def batches(self) -> Iterator[pa.RecordBatch] | Reader:
        """Open the rows as record batches."""
        return self._source.batches()

    def to_table(self) -> pa.Table:
        """Read all rows."""
        return self._source.to_table()

    def iterate(self, **keywords: Any) -> ArrayIterator:
        """Iterate over batches of arrays, by the keywords of `tfrecord_io.iter_arrays`; those that are None count not.

        TypeError or ValueError if the value of a keyword is invalid.
        """
        from tfrecord_io.rows import iterate

        return iterate(self._source, **keywords)

    def by_number(self, batch_size: int | None = None, **keywords: Any) -> ArraysByNumber | BatchesByNumber:
        """Give access by number: to batches with ``bucket_by=`` or ``pack=``, else to rows.

        TypeError or ValueError if the value of a keyword is invalid, or is not possible without another.
        """
        from tfrecord_io.rows import open_by_number

        return open_by_number(self._source, batch_size, **keywords)
