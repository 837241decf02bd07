"""Batches by number, of which the lengths of lists decide what rows they have: buckets of like length, packed rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tfrecord_io.arrays.random_rows import OF_ROWS, ByNumber, RandomRows, random_rows, row_numbers
from tfrecord_io.errors import SchemaError, say
from tfrecord_io.options import IterOptions
from tfrecord_io.read.open_scan import open_scan
from tfrecord_io.read.scan import Scan
from tfrecord_io.remedies import Caller, Keyword, address
from tfrecord_io.training.arrangement import arranged, list_lengths_of
from tfrecord_io.training.iterator import OF_FILES, sample_lengths
from tfrecord_io.training.windows import Trainable

_ORDER = 4  # the purpose of a stream of random numbers; `shuffle_buffer` and mixtures have others
_OF_BATCHES = frozenset({"seed", "drop_last", "bucket_by", "bucket_sizes", "pack"})
BY_NUMBER = OF_ROWS | _OF_BATCHES
"""Keywords of `by_number`."""


class BatchesByNumber:
    """The batches of a scan by number, for which the lengths of all lists are read. It can be pickled.

    Parameters
    ----------
    scan : Scan
    options : IterOptions
        One that `arranges`. With a `seed`, the rows are put in a random order before they make batches.
    """

    def __init__(self, scan: Scan, options: IterOptions) -> None:
        self.scan = scan
        self._rows = RandomRows(scan, options, sample_lengths(scan.pruned().decoded(), options))
        lengths = [np.empty((0, len(options.arranging)), np.int64)]
        with open_scan(scan.only(options.arranging)) as reader:
            lengths += [list_lengths_of(batch, options) for batch in reader]
        of_rows = np.concatenate(lengths)
        order = np.arange(len(of_rows))
        if options.seed is not None:
            bits = np.random.PCG64(np.random.SeedSequence([options.seed, _ORDER]))
            order = np.random.Generator(bits).permutation(len(of_rows))
        self._batches = arranged(of_rows[order], options, True)
        self._order = order[self._batches.order]

    def __len__(self) -> int:
        return len(self._batches.ends)

    def take(self, numbers: Any) -> Iterator[dict[str, Any]]:
        """The arrays of the batches of these numbers, in this order; IndexError if one is out of range."""
        ends = self._batches.ends
        for number in row_numbers(numbers, len(self)).tolist():
            rows = np.arange(int(ends[number - 1]) if number else 0, int(ends[number]))
            try:
                arrays = self._rows.arrays(self._order[rows], self._batches.form(number, rows))
            except SchemaError as error:
                address(error, Caller(without=frozenset({"ragged"})))
                raise
            yield arrays


def arrays_of_rows(rows: ByNumber | BatchesByNumber, numbers: Sequence[int]) -> dict[str, Any]:
    """The rows of these numbers, in this order, as arrays by column; IndexError if one is out of range."""
    if isinstance(rows, BatchesByNumber):
        raise TypeError(
            say("arrays() is of rows, and with {bucket_by=} or {pack=} the items are batches: take them by number")
        )
    return rows.arrays(numbers)


def by_number(scan: Trainable, batch_size: int | None, **keywords: Any) -> ByNumber | BatchesByNumber:
    """Rows by number, or batches of those whose lists decide about them.

    Raises
    ------
    TypeError, ValueError
        A keyword of `BY_NUMBER` is invalid, or is not possible without another.
    """
    if keywords.get("bucket_by") is None and keywords.get("bucket_sizes") is None and keywords.get("pack") is None:
        for name, value in {
            "batch_size": batch_size,
            **{name: keywords.pop(name, None) for name in _OF_BATCHES},
        }.items():
            if value not in (None, False):
                reason = "rows by number are put in order, and into batches, by a sampler or a loader"
                raise ValueError(
                    say("{}: {}", Keyword(name, repr(value)), reason)
                    & say("it is for {bucket_by=} and {pack=}, which make batches")
                )
        return random_rows(scan, **keywords)
    if batch_size is None:
        raise ValueError(say("{bucket_by=} and {pack=} make batches: pass {batch_size=}"))
    if not isinstance(scan, Scan):
        advice = "stream them by to_torch, to_tf or iter_arrays"
        raise ValueError(f"batches by number are of rows of files, not of mixtures and windows: {advice}")
    of_files = {name: getattr(scan.options, name) for name in OF_FILES}
    return BatchesByNumber(scan, IterOptions(**{**of_files, "batch_size": batch_size, **keywords}))
