"""The features that state the shapes of arrays, such as ``height`` and ``width``: written from the arrays.

`tfrecord_io.arrow.decode.stated_shapes` is the way back. Tests: tests/arrow/encode/test_stated_sizes.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.buffers import bitmap_of, column_mask, offsets_of, scatter
from tfrecord_io.arrow.encode.encode_plan import WritePlan
from tfrecord_io.arrow.flatten import Rows
from tfrecord_io.arrow.tensor_values import TensorValues
from tfrecord_io.engine.contract import Array, ColumnBuffers
from tfrecord_io.errors import EncodeError, printable
from tfrecord_io.format.companions import ShapeSource
from tfrecord_io.format.feature_types import Kind, Layout
from tfrecord_io.format.serialized_tensor import STORAGE


def stated_columns(source: ShapeSource, tensors: TensorValues, rows: Rows) -> list[ColumnBuffers]:
    """The features of a source, one row for each of `rows`; null where there is no array.

    EncodeError for an array that the source cannot state: a declared size is another, or one feature stands for two
    dimensions whose sizes differ.
    """
    shapes, valid = tensors.shape_matrix, np.ones(rows.count, bool) if rows.valid is None else rows.valid
    at_row = np.flatnonzero(valid)
    columns = []
    if isinstance(source.axes, str):
        lengths = scatter(np.full(len(shapes), tensors.rank), valid)
        columns.append(_column(source.axes, Kind.INT64, shapes.reshape(-1), valid, offsets=offsets_of(lengths)))
    else:
        known: dict[str, Array] = {}
        for at, axis in enumerate(source.axes):
            if axis is None:
                continue
            sizes = shapes[:, at]
            expected = known.setdefault(axis, sizes) if isinstance(axis, str) else np.full(len(sizes), axis)
            if np.any(bad := sizes != expected):
                row = int(bad.argmax())
                what = f"'{printable(axis)}' states" if isinstance(axis, str) else "the schema declares"
                reason = f"dimension {at} of its array has {sizes[row]} values, and {what} {expected[row]}"
                record = rows.base + int(at_row[row])
                raise EncodeError(reason, feature=rows.feature, record=record, expected=int(expected[row]))
        columns += [_column(name, Kind.INT64, scatter(sizes, valid), valid) for name, sizes in known.items()]
    if source.dtype is not None:
        columns.append(_dtype_column(source, tensors.element.name, valid))
    return columns


def _dtype_column(source: ShapeSource, name: str, valid: Array) -> ColumnBuffers:
    assert source.dtype is not None
    if source.is_number:
        return _column(source.dtype, Kind.INT64, np.full(len(valid), STORAGE[name].number), valid)
    text = np.frombuffer(name.encode(), np.uint8)
    ends = offsets_of(np.where(valid, len(text), 0))
    return _column(source.dtype, Kind.BYTES, np.tile(text, int(np.count_nonzero(valid))), valid, value_offsets=ends)


def _column(
    name: str,
    kind: Kind,
    values: Array,
    valid: Array,
    *,
    offsets: Array | None = None,
    value_offsets: Array | None = None,
) -> ColumnBuffers:
    column = ColumnBuffers(name, kind, Layout.SCALAR if offsets is None else Layout.LIST, len(valid))
    column.values = np.ascontiguousarray(values if kind is Kind.BYTES else values.astype(np.int64))
    column.offsets, column.value_offsets = offsets, value_offsets
    if not valid.all():
        column.null_count, column.validity = int(len(valid) - np.count_nonzero(valid)), bitmap_of(valid)
    return column


def as_feature_lists(steps: Sequence[ColumnBuffers], source: ShapeSource, rows: Rows) -> list[ColumnBuffers]:
    """The features of steps, as feature lists of `rows`; or as context features, if the source has them there.

    EncodeError if the context would state one size for steps whose sizes differ.
    """
    columns = []
    for step in steps:
        offsets = rows.offsets
        assert offsets is not None
        if source.in_context:
            columns.append(_of_context(step, rows))
            continue
        validity = None if rows.valid is None or rows.valid.all() else bitmap_of(rows.valid)
        nulls = 0 if rows.valid is None else int(rows.count - np.count_nonzero(rows.valid))
        column = ColumnBuffers(step.name, step.kind, Layout.LIST, rows.count, nulls, validity, offsets)
        columns.append(replace(column, steps=step))
    return columns


def _of_context(step: ColumnBuffers, rows: Rows) -> ColumnBuffers:
    """The common value of all steps of each row; null for a row without a step."""
    assert rows.offsets is not None
    mask, values = column_mask(step), _values(step)
    kept: list[int] = []
    valid = np.zeros(rows.count, bool)
    for row in range(rows.count):
        begin, end = int(rows.offsets[row]), int(rows.offsets[row + 1])
        present = [at for at in range(begin, end) if mask[at]]
        if len({values[at] for at in present}) > 1:
            reason = f"the context has one '{printable(step.name)}', and the shapes of the steps differ"
            raise EncodeError(reason, feature=rows.feature, record=rows.base + row)
        valid[row] = bool(present)
        kept += present[:1]
    chosen = [values[at] for at in kept]
    if step.layout is Layout.LIST:
        counts = scatter(np.array([len(value) // 8 for value in chosen], np.int64), valid)
        flat = np.frombuffer(b"".join(chosen), np.int64)
        return _column(step.name, step.kind, flat, valid, offsets=offsets_of(counts))
    if step.kind is Kind.BYTES:
        counts = scatter(np.array(list(map(len, chosen)), np.int64), valid)
        joined = np.frombuffer(b"".join(chosen), np.uint8)
        return _column(step.name, step.kind, joined, valid, value_offsets=offsets_of(counts))
    numbers = np.frombuffer(b"".join(chosen), np.int64)
    return _column(step.name, step.kind, scatter(numbers, valid), valid)


def _values(column: ColumnBuffers) -> list[bytes]:
    """The bytes of each row of a column without nested lists."""
    assert column.values is not None
    if column.layout is Layout.LIST:
        assert column.offsets is not None
        bounds, data = column.offsets.tolist(), column.values
    elif column.kind is Kind.BYTES:
        assert column.value_offsets is not None
        bounds, data = column.value_offsets.tolist(), column.values
    else:
        bounds, data = list(range(column.rows + 1)), column.values
    return [data[begin:end].tobytes() for begin, end in pairwise(bounds)]


def add_stated(
    columns: list[ColumnBuffers | int],
    stated: Sequence[ColumnBuffers],
    batch: pa.RecordBatch,
    plan: WritePlan,
    row_base: int,
) -> None:
    """Add the features that state sizes to `columns`, each once.

    Several arrays may share a feature, and it may be a column of the batch. EncodeError for a row in which they differ.
    """
    numbers = {leaf.feature: number for number, parts in enumerate(plan.columns) for leaf in parts if not leaf.path}
    added: dict[str, ColumnBuffers] = {}
    for column in stated:
        name = column.name
        if name in numbers:
            _refuse_other_values(column, batch.column(numbers[name]), row_base)
        elif name in added:
            _refuse_other_sizes(column, added[name], row_base)
            added[name] = _union(added[name], column)
        else:
            added[name] = column
    columns.extend(added.values())


def _refuse_other_values(column: ColumnBuffers, array: pa.Array, row_base: int) -> None:
    """Refuse a row whose array has another size than the column of that name says."""
    expected = column.steps or column
    flat = array.flatten() if column.steps is not None else array
    values, mask = flat.to_pylist(), column_mask(expected)
    for row, content in enumerate(_values(expected)):
        if not mask[row]:
            continue
        own: object = content if expected.kind is Kind.BYTES else np.frombuffer(content, np.int64).tolist()
        given = values[row]
        given = given.encode() if isinstance(given, str) else given
        if expected.kind is not Kind.BYTES and not isinstance(given, list):
            given = [given]
        if given != own:
            record = (
                row
                if column.offsets is None or column.steps is None
                else int(np.searchsorted(column.offsets, row, "right")) - 1
            )
            reason = f"the column has {given!r}, and the array whose shape it states has {own!r}"
            hint = "leave the column out: it is written from the shapes of the arrays"
            raise EncodeError(reason, feature=column.name, record=row_base + record, hint=hint)


def _refuse_other_sizes(column: ColumnBuffers, other: ColumnBuffers, row_base: int) -> None:
    both = column_mask(column) & column_mask(other)
    for row, (left, right) in enumerate(zip(_values(column), _values(other), strict=True)):
        if both[row] and left != right:
            reason = "two arrays whose shape it states have different sizes"
            raise EncodeError(reason, feature=column.name, record=row_base + row)


def _union(column: ColumnBuffers, other: ColumnBuffers) -> ColumnBuffers:
    """The column, with the values of another one where it is null."""
    return column if not column.null_count else other if not other.null_count else column
