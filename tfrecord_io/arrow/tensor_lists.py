"""Lists of tensors, the steps of feature lists, as NumPy arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.tensor_items import to_cells, to_ndarray
from tfrecord_io.engine.contract import Array
from tfrecord_io.schema.tensor_types import is_any_tensor, is_fixed_shape_tensor


def is_list_of_tensors(type_: pa.DataType) -> bool:
    """Whether each row is a list of tensors.

    >>> is_list_of_tensors(pa.list_(pa.fixed_shape_tensor(pa.int8(), (2,))))
    True
    """
    return bool((pa.types.is_list(type_) or pa.types.is_large_list(type_)) and is_any_tensor(type_.value_type))


def list_cells(array: pa.Array, field: pa.Field) -> Array:
    """The rows of a column as an object array, None where null.

    A row of tensors of one shape is an ndarray [steps, *shape], another one an object array of ndarrays.
    """
    step = pa.field("", field.type.value_type, metadata=field.metadata)
    offsets = np.asarray(array.offsets)
    values = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    whole = to_ndarray(values, step) if is_fixed_shape_tensor(step.type) and not values.null_count else to_cells(values, step)
    found = np.empty(len(array), object)
    for row in np.flatnonzero(np.asarray(array.is_valid())).tolist():
        found[row] = whole[offsets[row] - offsets[0] : offsets[row + 1] - offsets[0]]
    return found
