"""Convert record batches into the columns that an engine encodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.bytes import Array, ColumnBuffers, Dtype, Kind, Layout, ShapeSource
from tfrecord_io.columns.arrow.buffers import ArrayBuffers, bytes_values, fixed_width, offsets_of
from tfrecord_io.columns.arrow.encode.encode_plan import WritePlan
from tfrecord_io.columns.arrow.encode.lossless_values import float32_values, int64_values, refuse_invalid
from tfrecord_io.columns.arrow.encodings.tensor_encoding import TensorEncoding, tensor_encoding
from tfrecord_io.columns.arrow.flatten import (
    Rows,
    cut_steps,
    feature_column,
    feature_list,
    flatten,
    row_offsets,
    value_list,
)
from tfrecord_io.columns.arrow.row_fault import errors_of_rows
from tfrecord_io.columns.arrow.tensor_values import TensorValues, array_to_tensors
from tfrecord_io.columns.schema.column_features import (
    LIST,
    AsJson,
    Leaf,
    Node,
    PlainLists,
    PlainStruct,
    is_list_of_arrays,
)
from tfrecord_io.columns.schema.types import is_text, is_text_or_bytes, plain_kind
from tfrecord_io.errors import EncodeError


def encode_columns(
    batch: pa.RecordBatch, plan: WritePlan, *, row_base: int = 0, taken: Sequence[bool] = ()
) -> list[ColumnBuffers | int]:
    """Convert the columns of a batch into the columns that an engine encodes.

    One for each feature; none for a column of the null type. They share memory with the batch where its values are
    int64, float32 or bytes already. The slots of null rows hold anything. `row_base` rows precede the batch.
    ``plan.rounding`` counts the float64 values that were rounded. A value that cannot be stored in a TFRecord is an
    EncodeError with ``feature`` and ``record``. A column that is `taken`, by the engine from Arrow, is left as its
    number.
    """
    columns: list[ColumnBuffers | int] = []
    stated: list[ColumnBuffers] = []  # the sizes of arrays, which features of another program state
    for number, (name, parts, in_steps) in enumerate(zip(plan.schema.names, plan.columns, plan.in_steps, strict=True)):
        if taken and taken[number]:
            columns.append(number)
            continue
        array = batch.column(number)
        if in_steps:
            field = plan.schema.field(number)
            columns.extend(_encode_steps(parts, array, field, row_base=row_base, plan=plan, stated=stated))
            continue
        tree = plan.trees[number]
        if tree is None and plain_kind(array.type) is not None and parts[0].encoding == LIST:  # nothing to flatten
            rows = Rows(name, row_base, len(array), ArrayBuffers(array).valid)
            columns.append(_encode_values(parts[0], rows, array, plan))
            continue
        for leaf, (rows, values) in zip(parts, _write_column(array, tree, name, row_base), strict=True):
            in_list = leaf.shape_source is not None and rows.offsets is not None
            encode = _encode_array_lists if in_list else _encode_leaf
            columns.extend(encode(leaf, rows, values=values, plan=plan, stated=stated))
    if stated:
        from tfrecord_io.columns.arrow.encode.stated_sizes import add_stated

        add_stated(columns, stated, batch=batch, plan=plan, row_base=row_base)
    return columns


def _write_column(array: pa.Array, tree: Node | None, name: str, row_base: int) -> Iterator[tuple[Rows, pa.Array]]:
    """The rows and the values of each feature that a column is stored as."""
    if tree is None or isinstance(tree, PlainStruct | PlainLists):
        yield from flatten(array, name, row_base)
        return
    from tfrecord_io.columns.arrow.json_cells import json_column
    from tfrecord_io.columns.arrow.nested_to_features import nested_columns

    if isinstance(tree, AsJson):
        for part in nested_columns(array, tree.children[0]):
            for rows, values in flatten(part, name, row_base):
                if is_text(values.type) or t.is_decimal(values.type):
                    refuse_invalid(values, bytes_values(values)[0], rows)
        stored = [json_column(array, tree, row_base)]
    else:
        stored = nested_columns(array, tree)
    for feature, column in zip(tree.all_features(), stored, strict=True):
        yield from flatten(column, feature.name, row_base)


def _encode_steps(
    parts: tuple[Leaf, ...],
    array: pa.Array,
    field: pa.Field,
    *,
    row_base: int,
    plan: WritePlan,
    stated: list[ColumnBuffers],
) -> Iterator[ColumnBuffers]:
    """A feature list: its steps are the rows of an inner column; a null step has no feature type.

    Or a list of arrays, whose values are the steps.
    """
    name, in_list = field.name, is_list_of_arrays(field)
    as_feature = value_list if in_list else feature_list
    rows, steps = cut_steps(array, name, row_base)
    try:
        for leaf, (inner, values) in zip(parts, flatten(steps, name), strict=True):
            of_steps: list[ColumnBuffers] = []
            encoded = list(_encode_leaf(leaf, inner, values=values, plan=plan, stated=of_steps))
            if leaf.shape_source is not None:
                from tfrecord_io.columns.arrow.encode.stated_sizes import as_feature_lists

                stated.extend(as_feature_lists(of_steps, leaf.shape_source, rows, in_list=in_list))
            for step in encoded or [ColumnBuffers(leaf.feature, Kind.NONE, Layout.NULL, inner.count)]:
                yield as_feature(step, rows)
    except EncodeError as error:
        error.record = None if error.record is None else rows.row_of(error.record)  # it counted steps
        raise


def _encode_array_lists(
    leaf: Leaf, rows: Rows, values: pa.Array, plan: WritePlan, stated: list[ColumnBuffers]
) -> Iterator[ColumnBuffers]:
    """The columns of arrays in lists, in the field of a struct: each array is a value of the feature."""
    from tfrecord_io.columns.arrow.encode.stated_sizes import as_feature_lists

    assert leaf.shape_source is not None
    of_arrays: list[ColumnBuffers] = []
    arrays = Rows(rows.feature, 0, rows.slots, column=rows.column)
    try:
        encoded = list(_encode_leaf(leaf, arrays, values=values, plan=plan, stated=of_arrays))
        stated.extend(as_feature_lists(of_arrays, leaf.shape_source, rows, in_list=True))
        for column in encoded:
            yield value_list(column, rows)
    except EncodeError as error:
        error.record = None if error.record is None else rows.row_of(error.record)  # it counted arrays
        raise


def _encode_leaf(
    leaf: Leaf, rows: Rows, values: pa.Array, plan: WritePlan, stated: list[ColumnBuffers]
) -> Iterator[ColumnBuffers]:
    """The columns of a leaf; what other features state about its arrays is added to `stated`."""
    if leaf.layout == Layout.NULL:  # a list can only be empty, and needs a feature type to differ from a null
        present = np.ones(rows.count, np.bool_) if rows.valid is None else rows.valid
        if rows.offsets is not None and present.any():
            reason, record = "an empty list of the null type has no feature type", rows.base + int(np.argmax(present))
            advice = "cast the column, for example to list<int64>"
            raise EncodeError(reason, feature=rows.feature, record=record, hint=advice)
        return
    encoding = tensor_encoding(leaf.encoding)
    if encoding.one_value_per_cell:
        yield from _encode_cells(encoding, leaf, rows=rows, values=values, stated=stated)
        return
    if leaf.element is not None:
        tensors = _tensors(leaf, rows, values)
        if leaf.shape_source is not None:
            stated.extend(_stated_sizes(leaf.shape_source, tensors, rows))
        data, offsets = encoding.encode(tensors)
        values = fixed_width(leaf.element.arrow, len(data), nulls=0, validity=None, values=data)
        rows = replace(rows, offsets=row_offsets(offsets, rows))
    yield _encode_values(leaf, rows, values, plan)


def _encode_values(leaf: Leaf, rows: Rows, values: pa.Array, plan: WritePlan) -> ColumnBuffers:
    """The column of a leaf whose values are those of the feature."""
    if leaf.kind == Kind.BYTES:
        data, value_offsets = bytes_values(values)
        refuse_invalid(values, data, rows)
        return feature_column(leaf.feature, leaf.kind, rows, data, offsets=rows.offsets, value_offsets=value_offsets)
    is_int64 = leaf.kind == Kind.INT64
    data = int64_values(values, rows) if is_int64 else float32_values(values, rows, plan.float64, plan.rounding)
    return feature_column(leaf.feature, leaf.kind, rows, data, offsets=rows.offsets)


def _stated_sizes(source: ShapeSource, tensors: TensorValues, rows: Rows) -> list[ColumnBuffers]:
    """The columns of the features that state shape and dtype of arrays, null where the arrays are."""
    from tfrecord_io.columns.arrow.encode.stated_sizes import stated_columns

    return stated_columns(source, tensors, replace(rows, offsets=None))


def _encode_cells(
    encoding: TensorEncoding, leaf: Leaf, rows: Rows, values: pa.Array, stated: list[ColumnBuffers]
) -> Iterator[ColumnBuffers]:
    """The columns of a leaf whose cells are one bytes value each."""
    whole = replace(rows, offsets=None)
    cells = None
    if leaf.element is None and is_text_or_bytes(values.type):
        data, offsets = encoding.encode_text(_text_cells(rows, values))
    else:
        cells = number_cells(rows, values) if leaf.element is None else _tensors(leaf, rows, values)
        data, offsets = encoding.encode(cells)
    yield feature_column(leaf.feature, Kind.BYTES, whole, data, value_offsets=row_offsets(offsets, rows))
    if cells is None:
        return
    if leaf.shape_source is not None:
        stated.extend(_stated_sizes(leaf.shape_source, cells, whole))
    elif encoding.companions:
        yield from _stated_sizes(ShapeSource(*ShapeSource.companions(leaf.feature)), cells, whole)


def _tensors(leaf: Leaf, rows: Rows, values: pa.Array) -> TensorValues:
    assert leaf.element is not None
    assert leaf.shape is not None
    with errors_of_rows(rows.base, rows.feature):
        return array_to_tensors(values, leaf.element, leaf.shape, rows.valid)


def _text_cells(rows: Rows, values: pa.Array) -> list[Array]:
    """The text and bytes of the rows that are not null, as object arrays: of one value, or of a list of them."""
    if is_text(values.type):
        refuse_invalid(values, bytes_values(values)[0], rows)
        values = values.cast(pa.large_binary())
    plain = np.fromiter(values.to_pylist(), object, len(values))
    present = np.arange(rows.count) if rows.valid is None else np.flatnonzero(rows.valid)
    if rows.offsets is None:
        return [np.array(plain[row], object) for row in present.tolist()]
    at = rows.offsets.tolist()
    return [plain[at[row] : at[row + 1]] for row in present.tolist()]


def number_cells(rows: Rows, values: pa.Array) -> TensorValues:
    """The cells of a plain column as tensors: single numbers have no dimension, lists of them one."""
    element = Dtype.of_arrow(values.type)
    numbers = ArrayBuffers(values).numbers
    data = np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<")).view(np.uint8)
    if rows.offsets is None:
        if rows.valid is not None:
            data = data.reshape(-1, element.itemsize)[rows.valid].reshape(-1)
        offsets = np.arange(len(data) // element.itemsize + 1) * element.itemsize
        return TensorValues(element, data, offsets=offsets, shapes=(), valid=rows.valid)
    lengths = np.diff(rows.offsets) if rows.valid is None else np.diff(rows.offsets)[rows.valid]
    return TensorValues(
        element, data, offsets=offsets_of(lengths) * element.itemsize, shapes=lengths[:, None], valid=rows.valid
    )
