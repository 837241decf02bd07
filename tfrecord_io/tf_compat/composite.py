"""Sparse and ragged tensors, with the layouts of TensorFlow."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tfrecord_io.engine.contract import Array


class SparseTensor(NamedTuple):
    """The values of a tensor that are present, and their indices; like ``tf.sparse.SparseTensor``.

    Attributes
    ----------
    indices : int64 ndarray of shape [values, rank]
    values : ndarray of shape [values]
    dense_shape : int64 ndarray of shape [rank]

    Examples
    --------
    >>> SparseTensor(np.array([[0, 2]]), np.array([7]), np.array([1, 3])).to_dense()
    array([[0, 0, 7]])
    """

    indices: Array
    values: Array
    dense_shape: Array

    def to_dense(self, default_value: Any = None) -> Array:
        """The dense tensor; absent values are `default_value`, by default 0 or b""."""
        if default_value is None:
            default_value = b"" if self.values.dtype == object else 0
        dense = np.full(tuple(self.dense_shape), default_value, self.values.dtype)
        dense[tuple(self.indices.T)] = self.values
        return dense


class RaggedTensor(NamedTuple):
    """Nested rows of different lengths; like ``tf.RaggedTensor``.

    Attributes
    ----------
    flat_values : ndarray
        All values, one after another; of rank 2 or more if the innermost rows all have the same length.
    nested_row_splits : tuple of ndarray
        The outermost first: row i of a level is the items from split i to split i + 1 of the next inner level.

    Examples
    --------
    >>> RaggedTensor(np.array([1, 2, 3]), (np.array([0, 2, 2, 3]),)).to_list()
    [[1, 2], [], [3]]
    """

    flat_values: Array
    nested_row_splits: tuple[Array, ...]

    @property
    def row_splits(self) -> Array:
        """The outermost splits."""
        return self.nested_row_splits[0]

    @property
    def values(self) -> Array | RaggedTensor:
        """The items that the outermost splits divide."""
        inner = self.nested_row_splits[1:]
        return RaggedTensor(self.flat_values, inner) if inner else self.flat_values

    def to_list(self) -> list[Any]:
        """The rows as nested lists."""
        values = self.values
        items = values.to_list() if isinstance(values, RaggedTensor) else values.tolist()
        splits = self.row_splits.tolist()
        return [items[begin:end] for begin, end in pairwise(splits)]
