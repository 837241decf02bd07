"""The features that state the shapes of arrays, companions or ``height`` and ``width``: written from the arrays.

`tfrecord_io.columns.arrow.decode.stated_shapes` is the way back. Tests: tests/laws/test_shapes_from_features.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from tfrecord_io.base import printable
from tfrecord_io.bytes import Array, ColumnBuffers, Kind, Layout, ParsedTensor, ShapeSource
from tfrecord_io.columns.arrow.buffers import bitmap_of, offsets_of, scatter, take_rows
from tfrecord_io.columns.arrow.encode.encode_plan import WritePlan
from tfrecord_io.columns.arrow.flatten import Rows, feature_column, feature_list, row_offsets, value_list
from tfrecord_io.columns.arrow.tensor_values import TensorValues
from tfrecord_io.errors import EncodeError


def stated_columns(source: ShapeSource, tensors: TensorValues, rows: Rows) -> list[ColumnBuffers]:
    """The features of a source, one row for each of `rows`; null where there is no array.

    EncodeError for an array that the source cannot state: a declared size is another, or one feature stands for two
    dimensions whose sizes differ.
    """
    arrays_before = row_offsets(np.arange(len(tensors) + 1), rows)  # of each row; the last number is that of all
    if isinstance(source.axes, str):
        sizes = tensors.shape_matrix.reshape(-1)
        columns = [feature_column(source.axes, Kind.INT64, rows, sizes, offsets=arrays_before * tensors.rank)]
    else:
        columns = _size_columns(source, tensors.shape_matrix, rows)
    if source.dtype is None:
        return columns
    name = tensors.element.name
    if source.is_number:
        return [*columns, _numbers(source.dtype, np.full(len(tensors), ParsedTensor.number_of(name)), rows)]
    text = np.frombuffer(name.encode(), np.uint8)
    values, ends = np.tile(text, len(tensors)), arrays_before * len(text)
    return [*columns, feature_column(source.dtype, Kind.BYTES, rows, values, value_offsets=ends)]


def _size_columns(source: ShapeSource, shapes: Array, rows: Rows) -> list[ColumnBuffers]:
    """A column for each feature with the size of a dimension."""
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
            record = rows.base + (row if rows.valid is None else int(np.flatnonzero(rows.valid)[row]))
            raise EncodeError(reason, feature=rows.feature, record=record, expected=int(expected[row]))
    return [_numbers(name, sizes, rows) for name, sizes in known.items()]


def _numbers(name: str, numbers: Array, rows: Rows) -> ColumnBuffers:
    """A feature with one number for each row that is not null."""
    values = numbers if rows.valid is None else scatter(numbers, rows.valid)
    return feature_column(name, Kind.INT64, rows, values.astype(np.int64, copy=False))


def as_feature_lists(
    steps: Sequence[ColumnBuffers], source: ShapeSource, rows: Rows, *, in_list: bool
) -> list[ColumnBuffers]:
    """Features made of the `stated_columns` of steps, by the `rows` of the column that has the steps.

    Each is a feature list, or a feature of all steps if the source has it in the context. Of arrays `in_list`, the
    features `source.axis_sizes` have a list of values, one for each array, or one for all if the source has it so and
    the arrays of the row do; others have one value for all arrays of a row. EncodeError for one value where those of
    the steps differ.
    """
    by_step = source.axis_sizes if in_list else source.features  # those with a value for each step
    if in_list:
        as_feature = _sizes_of_arrays if source.in_context else value_list
    else:
        as_feature = _context_value if source.in_context else feature_list
    return [as_feature(step, rows) if step.name in by_step else _context_value(step, rows) for step in steps]


def _sizes_of_arrays(step: ColumnBuffers, rows: Rows) -> ColumnBuffers:
    """The size of all arrays of each row; where they differ, that of each; null for a row without an array."""
    assert rows.offsets is not None
    assert step.values is not None
    counts = np.diff(rows.offsets)
    owners, is_first = np.repeat(np.arange(rows.count), counts), np.zeros(rows.slots, np.bool_)
    is_first[rows.offsets[:-1][counts > 0]] = True
    differs = np.zeros(rows.count, np.bool_)
    differs[owners[step.values != step.values[rows.offsets[owners]]]] = True
    sizes = step.values[is_first | differs[owners]]
    offsets = offsets_of(np.where(differs, counts, counts > 0))
    return feature_column(step.name, Kind.INT64, replace(rows, valid=counts > 0), sizes, offsets=offsets)


def _context_value(step: ColumnBuffers, rows: Rows) -> ColumnBuffers:
    """The common value of all steps of each row; null for a row without a step."""
    assert rows.offsets is not None
    present = np.flatnonzero(step.mask)
    owners = np.searchsorted(rows.offsets, present, side="right") - 1
    first_steps = np.full(rows.count, -1)
    first_steps[owners[::-1]] = present[::-1]
    column = take_rows([step], first_steps)
    differing = _differing_rows(take_rows([step], present), take_rows([column], owners))
    if differing.any():
        reason = f"the context has one '{printable(step.name)}', and the shapes of the steps differ"
        raise EncodeError(reason, feature=rows.feature, record=rows.base + int(owners[differing.argmax()]))
    return column


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
    names = {leaf.feature for leaf in plan.leaves if leaf.path}
    fields = {column.name: column for column in columns if isinstance(column, ColumnBuffers) and column.name in names}
    added: dict[str, ColumnBuffers] = {}
    for column in stated:
        if column.name in numbers:
            _refuse_other_values(column, batch.column(numbers[column.name]), row_base)
        elif column.name in fields:
            _refuse_other_field(column, fields[column.name], row_base)
        elif column.name in added:
            added[column.name] = _unite(added[column.name], column, row_base)
        else:
            added[column.name] = column
    columns.extend(added.values())


def _refuse_other_values(column: ColumnBuffers, array: pa.Array, row_base: int) -> None:
    """Refuse a row whose array has another size than the column of that name says."""
    stated = column.steps or column
    mask, given = stated.mask, array.flatten() if column.steps is not None else array
    if stated.kind is Kind.INT64 and pa.types.is_integer(given.type) and not given.null_count:
        assert stated.values is not None
        if stated.layout is Layout.SCALAR and np.array_equal(np.asarray(given)[mask], stated.values[mask]):
            return
    for row, (content, value) in enumerate(zip(_values(stated), given.to_pylist(), strict=True)):
        if not mask[row]:
            continue
        own: object = content if stated.kind is Kind.BYTES else np.frombuffer(content, np.int64).tolist()
        other = value.encode() if isinstance(value, str) else value
        if stated.kind is not Kind.BYTES and not isinstance(other, list):
            other = [other]
        if other != own:
            reason = f"the column has {other!r}, and the array whose shape it states has {own!r}"
            hint = "leave the column out: it is written from the shapes of the arrays"
            raise EncodeError(reason, feature=column.name, record=row_base + _record_of(column, row), hint=hint)


def _refuse_other_field(column: ColumnBuffers, field: ColumnBuffers, row_base: int) -> None:
    """Refuse a row whose array has another size than the field of a struct says, whose feature has that name."""
    is_same_kind = column.kind is field.kind and not (field.kind is Kind.BYTES and field.layout is Layout.LIST)
    pairs = zip(_values(column), _values(field) if is_same_kind else [b""] * field.rows, strict=True)
    differ = (left != right for left, right in pairs)
    bad = column.mask & ~(field.mask & ~np.fromiter(differ, np.bool_, column.rows))
    if bad.any():
        reason = "a field of a struct has other values than the arrays whose shape it states"
        hint = "leave the field out: it is written from the shapes of the arrays"
        raise EncodeError(reason, feature=column.name, record=row_base + int(bad.argmax()), hint=hint)


def _unite(column: ColumnBuffers, other: ColumnBuffers, row_base: int) -> ColumnBuffers:
    """The column of a feature that states the sizes of two arrays: null where both of them are."""
    if column.offsets is None or column.steps is None or other.offsets is None:
        return _unite_rows(column, other, column, row_base)
    mask, has_other = column.mask, other.mask
    counts, of_other = np.diff(column.offsets), np.diff(other.offsets)
    if np.any(bad := mask & has_other & (counts != of_other)):
        reason = "two feature lists whose shapes it states have different numbers of steps"
        raise EncodeError(reason, feature=column.name, record=row_base + int(bad.argmax()))
    valid, offsets = mask | has_other, offsets_of(np.where(mask, counts, of_other))
    united = column.replace(offsets=offsets, null_count=int(np.count_nonzero(~valid)))
    united.validity = bitmap_of(valid) if united.null_count else None
    steps = _unite_rows(_spread_steps(column, offsets), _spread_steps(other, offsets), united, row_base)
    return united.replace(steps=steps)


def _spread_steps(column: ColumnBuffers, offsets: Array) -> ColumnBuffers:
    """The steps of a feature list, and null ones in its null rows: as many as `offsets` of a united list give them."""
    assert column.steps is not None
    numbers = np.full(int(offsets[-1]), -1)
    numbers[np.repeat(column.mask, np.diff(offsets))] = np.arange(column.steps.rows)
    return take_rows([column.steps], numbers)


def _unite_rows(rows: ColumnBuffers, others: ColumnBuffers, column: ColumnBuffers, row_base: int) -> ColumnBuffers:
    """The rows or steps of a column, null ones filled from another column."""
    differing = _differing_rows(rows, others)
    if differing.any():
        record = row_base + _record_of(column, int(differing.argmax()))
        raise EncodeError("two arrays whose shape it states have different sizes", feature=column.name, record=record)
    if not rows.null_count:
        return rows
    numbers = np.arange(rows.rows)
    return take_rows([rows, others], np.where(rows.mask, numbers, numbers + rows.rows))


def _record_of(column: ColumnBuffers, row: int) -> int:
    """The row of a column, by the number of a step if the column has steps."""
    if column.steps is None:
        return row
    assert column.offsets is not None
    return int(np.searchsorted(column.offsets, row, side="right")) - 1


def _differing_rows(column: ColumnBuffers, other: ColumnBuffers) -> Array:
    """True for the rows in which both columns have a value, and not the same."""
    both = column.mask & other.mask
    if column.kind is Kind.INT64 and column.layout is Layout.SCALAR:
        return both & np.asarray(column.values != other.values)
    pairs = zip(_values(column), _values(other), strict=True)
    return both & np.fromiter((left != right for left, right in pairs), np.bool_, column.rows)


def _values(column: ColumnBuffers) -> list[bytes]:
    """The bytes of each row of a column without nested lists."""
    assert column.values is not None
    offsets = column.offsets if column.layout is Layout.LIST else column.value_offsets
    bounds = range(column.rows + 1) if offsets is None else offsets.tolist()
    return [column.values[begin:end].tobytes() for begin, end in pairwise(bounds)]
