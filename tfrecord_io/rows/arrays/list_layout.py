"""Lists of an Arrow column, truncated and padded as a `ColumnLayout` says.

Tests: tests/rows/arrays/test_read_arrays.py.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tfrecord_io.bytes import Array
from tfrecord_io.columns import ArrayBuffers, Column, int64_array, offsets_of, selectable
from tfrecord_io.errors import SchemaError
from tfrecord_io.rows.arrays.array_options import ColumnLayout
from tfrecord_io.rows.arrays.representation import ColumnRepresentation


def cut_lists(lists: pa.Array, layout: ColumnLayout, field: pa.Field) -> tuple[pa.Array, Array]:
    """Truncate lists, and pad them if the layout has a length; with the number of values of each list."""
    import pyarrow.compute as pc

    full_lengths = ArrayBuffers(lists).lengths
    lengths = full_lengths if layout.max_length is None else np.minimum(full_lengths, layout.max_length)
    begins = np.cumsum(full_lengths) - (lengths if layout.from_left else full_lengths)
    values, missing = selectable(lists.flatten()), lists.is_null()
    if layout.length is None:
        at = np.repeat(begins - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
        offsets = pa.array(offsets_of(lengths).astype(Column(lists.type).offset_dtype))
        return type(lists).from_arrays(offsets, values.take(int64_array(at)), type=lists.type, mask=missing), lengths
    if (lengths > layout.length).any():
        row, advice = int((lengths > layout.length).argmax()), "pass max_length= to truncate longer ones"
        reason = f"a list has {lengths[row]} values, but {layout.named_by} has room for {layout.length}"
        raise SchemaError(reason, feature=field.name, got=int(lengths[row]), hint=advice)
    places = np.arange(layout.length)
    padding = (places >= lengths[:, None]).ravel()
    at = np.where(padding, 0, (begins[:, None] + places).ravel())
    fill = pa.scalar(
        ColumnRepresentation.pad_value(
            layout.pad_value, Column(field.type.value_field).rows(values.slice(0, 0)).values.dtype, field.name
        ),
        values.type,
    )
    padded = pc.if_else(pa.array(padding), fill, values.take(pa.array(at, mask=padding)))
    return pa.FixedSizeListArray.from_arrays(padded, layout.length, mask=missing), lengths
