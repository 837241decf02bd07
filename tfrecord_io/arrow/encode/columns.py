"""Record batches to the columns that an engine encodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.encode.feature_column import feature_column
from tfrecord_io.arrow.encode.flatten import Rows, cut_steps, flatten
from tfrecord_io.arrow.encode.plan import WritePlan
from tfrecord_io.arrow.encode.values import bytes_values, float32_values, int64_values
from tfrecord_io.arrow.encodings.raw import listed, whole_columns
from tfrecord_io.engine.contract import ColumnBuffers
from tfrecord_io.errors import EncodeError
from tfrecord_io.format.kinds import Kind, Layout
from tfrecord_io.schema.embedded import dictionary_at, has_dictionary
from tfrecord_io.schema.leaf import LIST, Leaf
from tfrecord_io.schema.types import restored_type


def encode_columns(batch: pa.RecordBatch, plan: WritePlan, *, row_base: int = 0) -> list[ColumnBuffers]:
    """Bring the columns of a batch into the form of the wire.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Of the schema the plan was made for.
    plan : WritePlan
        From ``plan_writing``. Its ``rounding`` counts the float64 values that were rounded.
    row_base : int
        Number of rows before this batch, for messages.

    Returns
    -------
    list of ColumnBuffers
        One for each feature; none for a column of the null type. They share memory with the batch where its values
        are int64, float32 or bytes already. The slots of null rows hold anything.

    Raises
    ------
    EncodeError
        A value has no form in a record; ``feature`` and ``record`` say which.
    """
    columns: list[ColumnBuffers] = []
    for name, parts, in_steps, array in zip(plan.schema.names, plan.columns, plan.in_steps, batch.columns, strict=True):
        if in_steps:
            columns.extend(_encode_steps(parts, array, name, row_base, plan))
            continue
        for leaf, (rows, values) in zip(parts, flatten(array, name, row_base), strict=True):
            columns.extend(_encode_leaf(leaf, rows, values, plan))
    return columns


def _encode_steps(
    parts: tuple[Leaf, ...], array: pa.Array, name: str, row_base: int, plan: WritePlan
) -> Iterator[ColumnBuffers]:
    """A feature list: its steps are the rows of an inner column; a null step has no kind."""
    rows, steps = cut_steps(array, name, row_base)
    try:
        for leaf, (inner, values) in zip(parts, flatten(steps, name), strict=True):
            found = list(_encode_leaf(leaf, inner, values, plan)) or [
                ColumnBuffers(leaf.feature, Kind.NONE, Layout.NULL, inner.count)
            ]
            for step in found:
                yield replace(
                    feature_column(step.name, step.kind, rows, None, offsets=rows.offsets),
                    layout=Layout.LIST,
                    steps=step,
                )
    except EncodeError as error:
        error.record = None if error.record is None else rows.row_of(error.record)  # it counted steps
        raise


def _encode_leaf(leaf: Leaf, rows: Rows, values: pa.Array, plan: WritePlan) -> Iterator[ColumnBuffers]:
    if leaf.layout == Layout.NULL:
        _refuse_untyped_lists(rows)
        return
    if leaf.encoding != LIST:
        yield from whole_columns(leaf, rows, values)
        return
    if leaf.element is not None:
        rows, values = listed(leaf, rows, values)
    if leaf.kind == Kind.BYTES:
        data, value_offsets = bytes_values(values)
        yield feature_column(leaf.feature, leaf.kind, rows, data, offsets=rows.offsets, value_offsets=value_offsets)
    else:
        found = (
            int64_values(values, rows)
            if leaf.kind == Kind.INT64
            else float32_values(values, rows, plan.float64, plan.rounding)
        )
        yield feature_column(leaf.feature, leaf.kind, rows, found, offsets=rows.offsets)


def _refuse_untyped_lists(rows: Rows) -> None:
    """A list of the null type can only be empty, and an empty list needs a kind to differ from a null."""
    written = np.ones(rows.count, np.bool_) if rows.valid is None else rows.valid
    if rows.offsets is not None and written.any():
        row = rows.base + int(np.argmax(written))
        reason = "an empty list of no type has no kind to be written as"
        raise EncodeError(
            reason, feature=rows.feature, record=row, advice="cast the column, for example to a list of int64"
        )


def dictionaries(batch: pa.RecordBatch, plan: WritePlan) -> dict[str, pa.Array]:
    """The categories of a batch's dictionary columns by feature, for the embedded schema."""
    found = {}
    for parts, array in zip(plan.columns, batch.columns, strict=True):
        for leaf in parts:
            if has_dictionary(leaf.type):
                values = dictionary_at(array, leaf.path)
                found[leaf.feature] = values.cast(restored_type(values.type))
    return found
