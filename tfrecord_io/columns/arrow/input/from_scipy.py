"""A matrix of scipy.sparse as two columns: the indices and the values of each row.

Tests: tests/columns/arrow/input/test_from_arrays.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tfrecord_io.columns.arrow.buffers import list_array
from tfrecord_io.columns.arrow.plain_values import native, plain_array
from tfrecord_io.columns.schema.sparse_column import SparseColumn
from tfrecord_io.errors import EncodeError

_MOST_OFFSET = np.iinfo(np.int32).max


class MatrixColumns(NamedTuple):
    """The columns of a matrix, the name of the column of values, and the facts for its metadata."""

    columns: dict[str, pa.Array]
    values: str
    sparse: SparseColumn


def columns_of_matrix(name: str, matrix: Any) -> MatrixColumns:
    """The rows of a matrix: lists of ascending indices, and of the values there; those stored twice are added.

    EncodeError for values that Arrow does not hold, such as complex numbers.
    """
    rows = matrix.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy() if rows is matrix else rows
        rows.sum_duplicates()  # which sorts the indices
    sparse = SparseColumn.from_matrix(name, int(rows.shape[1]))
    (index,) = sparse.index
    try:
        values = plain_array(native(rows.data))
    except pa.ArrowException as error:
        reason = f"values of dtype {rows.data.dtype} cannot be stored in a TFRecord"
        raise EncodeError(reason, feature=name, hint="convert the matrix first") from error
    parts = {index: plain_array(native(rows.indices)), f"{name}/values": values}
    return MatrixColumns({key: _lists(rows.indptr, part) for key, part in parts.items()}, f"{name}/values", sparse)


def _lists(offsets: Any, values: pa.Array) -> pa.Array:
    type_ = pa.list_(values.type) if offsets[-1] <= _MOST_OFFSET else pa.large_list(values.type)
    return list_array(
        type_, len(offsets) - 1, nulls=0, validity=None, offsets=np.ascontiguousarray(offsets), values=values
    )
