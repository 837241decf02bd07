"""Read rows or batches of a source by number, as arrays.

Batches have the next rows, or are made by the lengths of lists, as by `bucket_by` and `pack` of `iter_arrays`.

Tests: tests/rows/arrays/test_rows_by_number.py and tests/rows/training/test_windows.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from tfrecord_io.bytes import Array
from tfrecord_io.columns import Column
from tfrecord_io.read import Scan, ScanHolder, ScanRows
from tfrecord_io.rows.arrays.array_options import RepresentationOptions
from tfrecord_io.rows.arrays.row_cache import cached_rows
from tfrecord_io.rows.arrays.rows_by_number import OF_ROWS, ArraysByNumber, ItemsByNumber, row_numbers, row_options
from tfrecord_io.rows.training.buckets_and_packing import (
    arrange_batches,
    batches_of_size,
    cut_documents,
    list_lengths_of,
)
from tfrecord_io.rows.training.iter_options import IterOptions
from tfrecord_io.rows.training.row_source import RowSource
from tfrecord_io.rows.training.scan_row_source import source_of
from tfrecord_io.rows.training.shuffle_buffer import Purpose, random_stream

_OF_BATCHES = frozenset({"seed", "drop_last", "bucket_by", "bucket_sizes", "pack", "cut", "end_token", "cu_seqlens"})


class BatchesByNumber(ItemsByNumber):
    """Batches of a source by number; if lengths of lists decide, all are read first. An instance can be pickled.

    With a `seed`, rows are put in a random order before they make batches.
    """

    def __init__(self, source: RowSource, options: IterOptions, cache: Any = None) -> None:
        values = {name: getattr(options, name) for name in sorted({"batch_size", "max_length", *_OF_BATCHES})}
        off = {name for name in ("cut", "cu_seqlens") if not values[name]}
        self._options = options
        shown = [f"{name}={value!r}" for name, value in values.items() if value is not None and name not in off]
        self._description, lookup = f"{source.describe()}, {', '.join(shown)}", source.lookup()
        rows = ArraysByNumber(lookup, options, source.prune_files().list_lengths(options))
        self._rows = _cache_rows(rows, source, options, cache)
        self._lengths: Array | None = None
        if options.arranges:
            parts = {name: Column.leaf_fields(pa.schema([lookup.schema.field(name)])) for name in lookup.schema.names}
            decides = {name: any(leaf.name in options.arranging for leaf in leaves) for name, leaves in parts.items()}
            deciding = [name for name in parts if decides[name]]
            self._lengths = lookup.measure_rows(deciding, partial(list_lengths_of, options=options))
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Put the rows in the order of an epoch, and make their batches. ValueError without a seed."""
        options, count = self._options, len(self._rows)
        order: Array = np.arange(count)
        if options.seed is not None:
            order = random_stream(options.seed, *([epoch] if epoch else []), Purpose.ROW_ORDER).permutation(count)
        elif epoch:
            raise ValueError("epochs differ in the order of rows, which is that of the files without a seed=")
        if self._lengths is None:
            self._batches, self._order = batches_of_size(count, options), order
        elif options.cut:
            self._batches, self._order = cut_documents(self._lengths[order, 0], options, True), order
        else:
            self._batches = arrange_batches(self._lengths[order], options, True)
            self._order = order[self._batches.order]

    @property
    def schema(self) -> pa.Schema:
        return self._rows.schema

    def __len__(self) -> int:
        return len(self._batches.ends)

    def describe(self) -> str:
        return self._description

    def row(self, number: int) -> None:
        return None

    def arrays(self, rows: Any) -> NoReturn:
        raise TypeError("arrays() is of rows, and with batch_size= the items are batches: take them by number")

    def take(self, numbers: Any) -> Iterator[dict[str, Any]]:
        """Arrays of the batches of these numbers, in this order; IndexError if a number is out of range."""
        ends = self._batches.ends
        for number in row_numbers(numbers, len(self)).tolist():
            rows = np.arange(int(ends[number - 1]) if number else 0, int(ends[number]))
            form = None if self._lengths is None else self._batches.form(number, rows)
            pieces = self._batches.pieces
            if pieces is None:
                yield self._rows.arrays(self._order[rows], form)
            else:
                documents, cuts = pieces.of(rows)
                yield self._rows.arrays(self._order[documents], form, cuts)


def _cache_rows(rows: ArraysByNumber, source: RowSource, options: RepresentationOptions, cache: Any) -> ArraysByNumber:
    """The rows, kept in the folder of ``cache=`` if there is one."""
    if cache is None:
        return rows
    if isinstance(options, IterOptions) and options.arranges:
        raise ValueError("cache= keeps rows, and bucket_by= and pack= make batches of other shapes: leave it out")
    of_order = source.identity(IterOptions.from_scan(source.options, batch_size=1))
    identity = of_order, [ScanRows(scan).decoding for scan in source.scans]
    representation = [(name, getattr(options, name)) for name in ("ragged", *sorted(OF_ROWS))]
    return cached_rows(rows, identity, sources=source.sources, cache=cache, representation=representation)


def open_by_number(
    data: ScanHolder | Scan | RowSource, batch_size: int | None = None, cache: Any = None, **keywords: Any
) -> ArraysByNumber | BatchesByNumber:
    """Give access by number: to batches with ``batch_size=``, else to rows.

    TypeError or ValueError if a keyword is invalid, or is not possible without another.
    """
    source = source_of(data)
    if batch_size is None:
        for name in sorted(_OF_BATCHES):
            value = keywords.pop(name, None)
            if value is None or value is False:  # not `not value`: 0 was stated
                continue
            if name in ("bucket_by", "bucket_sizes", "pack"):
                raise ValueError("bucket_by= and pack= make batches: pass batch_size=")
            reason = "rows by number are put in order, and into batches, by a sampler or a loader"
            raise ValueError(f"{name}={value!r}: {reason}; it is for batch_size=, which makes batches")
        options = row_options(source.options, **keywords)
        return _cache_rows(ArraysByNumber(source.lookup(), options), source, options, cache)
    return BatchesByNumber(source, IterOptions.from_scan(source.options, batch_size=batch_size, **keywords), cache)
