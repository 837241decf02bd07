"""Sparse columns: two features, of the indices and of the values that are present, as TensorFlow's SparseFeature.

A `SparseColumn` is the JSON in the metadata of the field of the values; it holds what no record does, such as the size.

Tests: tests/rows/arrays/test_sparse_matrices.py and tests/columns/arrow/input/test_from_arrays.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tfrecord_io.columns.schema.column_features import as_shape
from tfrecord_io.columns.schema.field import CONVERSION_ERRORS
from tfrecord_io.columns.schema.tensor_types import Shape
from tfrecord_io.errors import SchemaError

SPARSE_KEY = b"tfrecord_io.tfx.sparse"


@dataclass(frozen=True, slots=True)
class SparseColumn:
    """A sparse tensor for each row: one value at each index, and zeros elsewhere.

    >>> SparseColumn.from_matrix("x", 100).index
    ('x/indices',)
    """

    name: str
    index: tuple[str, ...]  # the features of the indices, one for each axis
    shape: Shape  # of a row; None: unknown
    is_sorted: bool = False

    @classmethod
    def from_matrix(cls, name: str, size: int) -> SparseColumn:
        """The rows of a matrix with so many columns, whose values are the column ``<name>/values``."""
        return cls(name, (f"{name}/indices",), (size,), is_sorted=True)

    @classmethod
    def from_metadata(cls, metadata: Mapping[bytes, bytes] | None, feature: str) -> SparseColumn | None:
        """Read the sparse column from the metadata of the field of its values; SchemaError if it is damaged."""
        text = (metadata or {}).get(SPARSE_KEY)
        if text is None:
            return None
        try:
            note: dict[str, Any] = json.loads(text)
            index = tuple(str(column) for column in note["index"])
            return cls(str(note["name"]), index, as_shape(note["shape"], is_sparse=True), bool(note["sorted"]))
        except CONVERSION_ERRORS as error:
            raise SchemaError("its metadata is damaged: tfrecord_io.tfx.sparse", feature=feature) from error

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """The entry for the metadata of the values."""
        note = {"name": self.name, "index": list(self.index), "shape": list(self.shape), "sorted": self.is_sorted}
        return {SPARSE_KEY: json.dumps(note).encode()}
