"""One feature of all rows, in the form that an engine encodes."""

from __future__ import annotations

import numpy as np

from tfrecord_io.arrow.encode.flatten import Rows
from tfrecord_io.engine.contract import Array, ColumnBuffers
from tfrecord_io.format.kinds import Kind, Layout


def feature_column(
    name: str,
    kind: Kind,
    rows: Rows,
    values: Array | None,
    *,
    offsets: Array | None = None,
    value_offsets: Array | None = None,
) -> ColumnBuffers:
    """The column of a feature whose rows are null where `rows` says so; with `offsets` a row has any number of values."""
    nulls = 0 if rows.valid is None else rows.count - int(np.count_nonzero(rows.valid))
    return ColumnBuffers(
        name,
        kind,
        Layout.SCALAR if offsets is None else Layout.LIST,
        rows.count,
        null_count=nulls,
        validity=np.packbits(rows.valid, bitorder="little") if rows.valid is not None and nulls else None,
        offsets=offsets,
        value_offsets=value_offsets,
        values=None if values is None else np.ascontiguousarray(values),
    )
