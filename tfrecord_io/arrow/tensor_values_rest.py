"""The values of tensors, for summaries and tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.tensor_values import is_list_of_tensors, items_of, list_cells, to_cells
from tfrecord_io.engine.contract import Array
from tfrecord_io.schema.tensor_types import is_any_tensor


def flat_values(array: pa.Array, field: pa.Field) -> tuple[pa.Array, Array, Array]:
    """All values of tensors, none of which is null, how many each has, and the shape of each; values without an order come as nulls."""
    items = items_of(array, field)
    counts = np.diff(items.offsets) // items.of.itemsize
    shapes = np.broadcast_to(np.asarray(items.shapes, np.int64), (len(items), items.rank))
    values = items.data.view(items.of.dtype) if items.data.size else np.empty(0, items.of.dtype)
    if items.of.name == "bfloat16":
        values = values.astype(np.float32)
    try:
        return pa.nulls(len(values)) if values.dtype.kind == "c" else pa.array(values), counts, shapes
    except (pa.ArrowException, ValueError):  # a unit that Arrow does not have, or half of a character
        return pa.nulls(len(values)), counts, shapes


def rows_of(column: pa.ChunkedArray, field: pa.Field) -> list[Any]:
    """The rows of a column as Python values: tensors as nested lists."""
    if not (is_any_tensor(field.type) or is_list_of_tensors(field.type)):
        return list(column.to_pylist())
    to_array = to_cells if is_any_tensor(field.type) else list_cells
    return [_nested(cell) for chunk in column.chunks for cell in to_array(chunk, field)]


def _nested(cell: Any) -> Any:
    if isinstance(cell, np.ndarray):
        return [_nested(each) for each in cell] if cell.dtype == object else cell.tolist()
    return cell
