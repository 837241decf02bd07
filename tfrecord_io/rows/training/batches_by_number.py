"""Read rows or batches of a source by number, as arrays.

Batches are made by the lengths of lists, as by `bucket_by` and `pack` of `iter_arrays`.

Tests: tests/rows/arrays/test_rows_by_number.py and tests/rows/training/test_windows.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from tfrecord_io.base import IterOptions
from tfrecord_io.columns import leaf_fields
from tfrecord_io.read import Scan, ScanHolder
from tfrecord_io.rows.arrays.rows_by_number import ArraysByNumber, row_numbers, row_options
from tfrecord_io.rows.training.batching import arrange_batches, list_lengths_of
from tfrecord_io.rows.training.files import source_of
from tfrecord_io.rows.training.row_source import RowSource
from tfrecord_io.rows.training.shuffle_buffer import random_stream

_ORDER = 4  # the purpose of a stream of random numbers; `shuffle_buffer` and mixtures have others
_OF_BATCHES = frozenset({"seed", "drop_last", "bucket_by", "bucket_sizes", "pack"})


class BatchesByNumber:
    """Batches of a source by number; the lengths of all lists are read first. An instance can be pickled.

    `arranges` is true of the options. With a `seed`, rows are put in a random order before they make batches.
    """

    def __init__(self, source: RowSource, options: IterOptions) -> None:
        values = {name: getattr(options, name) for name in sorted({"batch_size", "max_length", *_OF_BATCHES})}
        shown = [f"{name}={value!r}" for name, value in values.items() if value is not None]
        self._description, lookup = f"{source.describe()}, {', '.join(shown)}", source.lookup()
        self._rows = ArraysByNumber(lookup, options, source.prune_files().list_lengths(options))
        parts = {name: leaf_fields(pa.schema([lookup.schema.field(name)])) for name in lookup.schema.names}
        deciding = [name for name, leaves in parts.items() if any(leaf.name in options.arranging for leaf in leaves)]
        lengths = lookup.measure_rows(deciding, partial(list_lengths_of, options=options))
        order = np.arange(len(lengths))
        if options.seed is not None:
            order = random_stream(options.seed, _ORDER).permutation(len(lengths))
        self._batches = arrange_batches(lengths[order], options, True)
        self._order = order[self._batches.order]

    def __len__(self) -> int:
        return len(self._batches.ends)

    def describe(self) -> str:
        """Text for display, and for checkpoints, which compare it."""
        return self._description

    def row(self, number: int) -> None:
        """See `ArraysByNumber.row`; `take` makes batches."""

    def arrays(self, numbers: Sequence[int]) -> NoReturn:
        """Raise TypeError: `ArraysByNumber.arrays` is of rows, and these are batches."""
        raise TypeError("arrays() is of rows, and with bucket_by= or pack= the items are batches: take them by number")

    def take(self, numbers: Any) -> Iterator[dict[str, Any]]:
        """Arrays of the batches of these numbers, in this order; IndexError if a number is out of range."""
        ends = self._batches.ends
        for number in row_numbers(numbers, len(self)).tolist():
            rows = np.arange(int(ends[number - 1]) if number else 0, int(ends[number]))
            yield self._rows.arrays(self._order[rows], self._batches.form(number, rows))


def open_by_number(
    data: ScanHolder | Scan | RowSource, batch_size: int | None = None, **keywords: Any
) -> ArraysByNumber | BatchesByNumber:
    """Give access by number: to batches with ``bucket_by=`` or ``pack=``, else to rows.

    TypeError or ValueError if a keyword is invalid, or is not possible without another.
    """
    source = source_of(data)
    if keywords.get("bucket_by") is None and keywords.get("bucket_sizes") is None and keywords.get("pack") is None:
        for name, value in {
            "batch_size": batch_size,
            **{name: keywords.pop(name, None) for name in _OF_BATCHES},
        }.items():
            if value is not None and value is not False:  # not `not value`: 0 was stated
                reason = "rows by number are put in order, and into batches, by a sampler or a loader"
                raise ValueError(f"{name}={value!r}: {reason}; it is for bucket_by= and pack=, which make batches")
        return ArraysByNumber(source.lookup(), row_options(source.options, **keywords))
    if batch_size is None:
        raise ValueError("bucket_by= and pack= make batches: pass batch_size=")
    return BatchesByNumber(source, IterOptions.from_scan(source.options, batch_size=batch_size, **keywords))
