"""Columns that a `Composite` builds of several features, as the columns of these features: for writing.

`tfrecord_io.columns.arrow.decode.composite_decoder` is the way back.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tfrecord_io.base import printable
from tfrecord_io.bytes import Array
from tfrecord_io.columns.arrow.buffers import ArrayBuffers, bitmap_of, int64_array, list_array, offsets_of
from tfrecord_io.columns.schema.column_features import COMPOSITE_KEY
from tfrecord_io.columns.schema.composite import VALUES, Composite, composite_of
from tfrecord_io.columns.schema.field import Field
from tfrecord_io.errors import EncodeError


def written_composite(field: Field) -> Composite | None:
    """The composite of a field whose column is written as its features: nested lists with lengths of their own.

    None for a plain field, and for the layouts of TFDS with shapes, labels or bytes, which are only read.
    """
    if COMPOSITE_KEY not in field.metadata:
        return None
    composite = composite_of(field)
    assert composite is not None
    is_nested = composite.encoding == VALUES and len(composite.sequence) > 1 and composite.shape == ()
    is_plain = composite.labels is None and not composite.sentinel and composite.sequence[:1] == (None,)
    _, type_ = next(composite.components())
    return composite if is_nested and is_plain and type_.value_type == composite.value_type else None


def component_fields(composite: Composite, field: Field) -> Iterator[Field]:
    """The fields of the features that a column is written as."""
    for feature, type_ in composite.components():
        yield Field(feature, type_, feature, required=field.required)


def component_columns(composite: Composite, array: pa.Array, column: str, row_base: int) -> list[pa.Array]:
    """The columns of the features, in the order of `Composite.components`.

    A null row is null in each of them. EncodeError, with the row counted from `row_base`, for a null inside a row.
    """
    mask, counts = np.asarray(array.is_valid()), ArrayBuffers(array).lengths
    items, per_row = array.flatten(), counts
    lengths: list[pa.Array] = []
    for name in composite.lengths:
        _refuse_nulls(composite, items, per_row=per_row, part="a list inside", column=column, row_base=row_base)
        of_each = ArrayBuffers(items).lengths
        if name is not None:
            lengths.append(_rows(int64_array(of_each), per_row, mask))
        per_row = np.diff(offsets_of(of_each)[offsets_of(per_row)])
        items = items.flatten()
    _refuse_nulls(composite, items, per_row=per_row, part="a value", column=column, row_base=row_base)
    return [_rows(items, per_row, mask), *lengths]


def _rows(values: pa.Array, counts: Array, mask: Array) -> pa.Array:
    """Values as a list for each row, which is null where the mask is False."""
    nulls = int(len(mask) - np.count_nonzero(mask))
    type_ = pa.list_(values.type)
    return list_array(
        type_,
        len(mask),
        nulls=nulls,
        validity=bitmap_of(mask) if nulls else None,
        offsets=offsets_of(counts),
        values=values,
    )


def _refuse_nulls(composite: Composite, items: pa.Array, per_row: Array, part: str, column: str, row_base: int) -> None:
    if not items.null_count:
        return
    at = int(np.asarray(items.is_null()).argmax())
    row = int(np.searchsorted(offsets_of(per_row), at, side="right")) - 1
    names = ", ".join(f"'{printable(feature)}'" for feature, _ in composite.components())
    reason = f"{part} is null, which its features {names} cannot hold"
    raise EncodeError(reason, record=row_base + row, feature=column)
