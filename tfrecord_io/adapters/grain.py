"""Grain: a random access data source, for its loaders and samplers.

Grain takes any object with a length and items by number, so nothing of it is imported here.
"""

from __future__ import annotations

import operator
from typing import Any, SupportsIndex

import numpy as np

from tfrecord_io.adapters.masks import without_masks
from tfrecord_io.arrays.random_rows import OF_ROWS, ByNumber, random_rows
from tfrecord_io.keyword_docs import check_keywords, document_keywords
from tfrecord_io.options import RepresentationOptions
from tfrecord_io.training.windows import Trainable


class GrainSource:
    """Rows of TFRecord files by number; made by `Dataset.to_grain`. Threads and processes may share it."""

    def __init__(self, rows: ByNumber) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, number: SupportsIndex) -> dict[str, Any]:
        """The arrays and values of a row, by column; IndexError if the number is out of range."""
        index = operator.index(number)
        row = self._rows.row(index)
        if row is not None:
            return row
        arrays = self._rows.arrays(np.array([index]))
        return {name: values[0] for name, values in without_masks(arrays).items()}

    def __repr__(self) -> str:
        return f"<GrainSource of {self._rows.scan.describe()}>"  # Grain compares it when it restores a checkpoint


@check_keywords
@document_keywords(RepresentationOptions, only=OF_ROWS)
def to_grain(scan: Trainable, **keywords: Any) -> GrainSource:
    """A random access data source of Grain: rows by number, as dicts of NumPy arrays. Files must not be compressed.

    Parameters
    ----------
    {keywords}

    Returns
    -------
    GrainSource
        Its items are dicts by column: NumPy scalars and arrays, str, bytes, and None for missing text, bytes and lists.

    Raises
    ------
    ValueError
        A file is compressed, or the dataset has an `on_error`.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3], "word": ["a", "b", None]}, "words.tfrecord", write_index=True)
    >>> source = tfr.dataset("words.tfrecord").to_grain()
    >>> len(source), source[2]
    (3, {'x': np.int64(3), 'word': None})
    """
    return GrainSource(random_rows(scan, **keywords))
