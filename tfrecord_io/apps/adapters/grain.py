"""Grain: a random access data source, for its loaders and samplers.

Grain takes any object with a length and items by number, so nothing of it is imported here.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex

import numpy as np

from tfrecord_io.apps.adapters.mask_tensors import split_masks
from tfrecord_io.kit import ArraysByNumber, BatchesByNumber, Rows
from tfrecord_io.typing import CacheFolder, Lengths, Missing, OpenedDataset


class GrainSource:
    """Rows of TFRecord files, or batches of them, by number; made by `Dataset.to_grain`.

    Threads and processes may share it.
    """

    def __init__(self, rows: ArraysByNumber | BatchesByNumber) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, number: SupportsIndex) -> dict[str, Any]:
        """The arrays and values of a row, or a batch, by column; IndexError if the number is out of range."""
        index = operator.index(number)
        if isinstance(self._rows, BatchesByNumber):
            (batch,) = self._rows.take(np.array([index]))
            return split_masks(batch)
        row = self._rows.row(index)
        if row is not None:
            return row
        arrays = self._rows.arrays(np.array([index]))
        return {name: values[0] for name, values in split_masks(arrays).items()}

    def arrays(self, numbers: Sequence[int]) -> dict[str, Any]:
        """The rows of these numbers, in this order, as arrays by column: a batch as those of `iter_arrays`."""
        return self._rows.arrays(numbers)

    def __repr__(self) -> str:
        return f"<GrainSource of {self._rows.describe()}>"  # Grain compares it when it restores a checkpoint


def to_grain(
    dataset: OpenedDataset | Rows,
    *,
    batch_size: int | None = None,
    seed: int | None = None,
    drop_last: bool = False,
    pad_value: Any = 0,
    max_length: Lengths | Mapping[str, Lengths] | None = None,
    pad_to: Lengths | Mapping[str, Lengths] | None = None,
    missing: Missing = "error",
    bucket_by: Sequence[str] | str | None = None,
    bucket_sizes: Sequence[int] | None = None,
    pack: Mapping[str, int] | None = None,
    cut: bool = False,
    end_token: Any = None,
    cu_seqlens: bool = False,
    cache: CacheFolder | None = None,
) -> GrainSource:
    """A random access data source of Grain: rows by number, as dicts of NumPy arrays. Files must not be compressed.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord(
    ...     {"x": [1, 2, 3], "word": ["a", "b", None]}, "words.tfrecord", write_index=True
    ... )
    >>> source = tfr.dataset("words.tfrecord").to_grain()
    >>> len(source), source[2]
    (3, {'x': np.int64(3), 'word': None})

    Parameters
    ----------
    batch_size : int, optional
        The items are batches of so many rows, then: with `bucket_by` of the longest lists, with `pack` of packed rows.
    seed : int, optional
        With `batch_size`: of the order of the rows that make batches; by default that of the files.
    drop_last, bucket_by, bucket_sizes, pack, cut, end_token, cu_seqlens
        As in `iter_arrays`, with `batch_size`.
    cache : path, or (path, int), optional
        A local directory, where decoded rows of one size are kept for the next epoch, run or process: at most so many
        bytes, by default half of the space that is free. Files that have changed are decoded again.
    pad_value, max_length, pad_to, missing
        As in `read_arrays`.

    Returns
    -------
    GrainSource
        Its items are dicts by column: NumPy scalars and arrays, str, bytes, and None for missing text, bytes and lists.
        With `batch_size` they are batches as those of `iter_arrays`, made once, which Grain shuffles.

    Raises
    ------
    ValueError
        A file is compressed, the dataset has an `on_error`, or a keyword is not possible without another.
    """
    return GrainSource(
        Rows.of(dataset).by_number(
            batch_size=batch_size,
            seed=seed,
            drop_last=drop_last,
            pad_value=pad_value,
            max_length=max_length,
            pad_to=pad_to,
            missing=missing,
            bucket_by=bucket_by,
            bucket_sizes=bucket_sizes,
            pack=pack,
            cut=cut,
            end_token=end_token,
            cu_seqlens=cu_seqlens,
            cache=cache,
        )
    )
