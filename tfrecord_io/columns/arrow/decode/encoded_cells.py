r"""Columns of numbers, lists, text and bytes, by their encoding; and the decoding of cells that tensors share.

A cell is what a feature has for one row. The encoding of the column says what it looks like:

    feature of the row            encoding        column          row of the column
    ----------------------------  --------------  --------------  -----------------------------------------
    bytes  [b"\x01\x00"]          raw             int16           1
    bytes  [b"\x01\x00\x02\x00"]  raw             list<int16>     [1, 2]
    bytes  [b"\x01\x00\x02"]      raw             list<int16>     a RowFault: no whole number of values
    bytes  [a TensorProto]        tensor_proto    list<string>    ["a", "b"]
    int64  [1, 2]                 list            list<int16>     [1, 2], as `leaf_restore` of lists.py makes it
    bytes, or int64               wire            list<int16>     as of raw or list, by the type that the row has
    (none)                        any             any             null

`value_restore` chooses how; `_cell_restore` makes the arrays of encodings whose cells are one bytes value each. Cells
of tensors look alike: `decode_cells` returns their values and sizes, of which tensor_column.py makes tensors.

Tests: tests/columns/arrow/decode/test_encoded_cells_tensor_column.py and
tests/columns/arrow/decode/test_batch_builder_types.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.bytes import Array, ColumnBuffers, Dtype, Kind, Layout
from tfrecord_io.columns.arrow.buffers import ArrayBuffers, offsets_of, scatter, variable_width
from tfrecord_io.columns.arrow.casts import Encode, category_encode, checked_cast, number_array
from tfrecord_io.columns.arrow.decode.lists import Restore, from_kinds, is_nothing, leaf_restore, slots, widen, wrap
from tfrecord_io.columns.arrow.encodings.list_and_wire import check_counts
from tfrecord_io.columns.arrow.encodings.tensor_encoding import DecodedCells, TensorEncoding, tensor_encoding
from tfrecord_io.columns.arrow.row_fault import RowFault, faults_of_lists, faults_of_present
from tfrecord_io.columns.schema.column_features import RAW, Leaf
from tfrecord_io.columns.schema.tensor_types import Shape
from tfrecord_io.columns.schema.types import is_list_like, is_text_or_bytes, other_kinds


def value_restore(leaf: Leaf, shape: Shape | None, dictionary: pa.Array | None = None) -> Restore:
    """How the feature of a leaf that is not a tensor becomes an array; a list's number of values must fit `shape`."""
    encoding = tensor_encoding(leaf.encoding)
    restore: Restore
    if encoding.adaptive:
        raw = _cell_restore(leaf, tensor_encoding(RAW), dictionary)
        restore = partial(_restore_by_kind, raw, leaf_restore(leaf, dictionary))
    elif encoding.one_value_per_cell:
        restore = _cell_restore(leaf, encoding, dictionary)
    else:
        restore = leaf_restore(leaf, dictionary)
    if shape is None or not is_list_like(leaf.type) or t.is_fixed_size_list(leaf.type):
        return restore
    return partial(_restore_counted, restore, shape)


def _restore_by_kind(raw: Restore, numbers: Restore, column: ColumnBuffers) -> pa.Array:
    """The array of rows each of which has bytes, or numbers."""
    if column.others:
        return from_kinds(column, partial(_restore_by_kind, raw, numbers))
    return (raw if column.kind is Kind.BYTES else numbers)(column)


def _restore_counted(restore: Restore, shape: Shape, column: ColumnBuffers) -> pa.Array:
    """The array of rows; one whose number of values does not fit the shape is refused."""
    array = restore(column)
    counts, mask = np.diff(np.asarray(array.offsets)), ArrayBuffers(array).valid
    with faults_of_present(mask):
        check_counts(counts if mask is None else counts[mask], shape)
    return array


def decode_cells(
    encoding: TensorEncoding, column: ColumnBuffers, mask: Array, element: Dtype, shape: Shape
) -> DecodedCells:
    """Decode the cells of the rows in `mask`; a row whose values are not such a tensor is a RowFault."""
    if encoding.one_value_per_cell:
        offsets, values = slots(column)
    else:
        kind = encoding.kind(element)
        kind = column.kind if column.kind in other_kinds(element.arrow) else kind
        wide = widen(column, kind, Layout.LIST)
        assert wide.offsets is not None
        assert wide.values is not None
        offsets, values = wide.offsets, wide.values
    with faults_of_present(mask):
        return encoding.decode(values, _present(offsets, mask), element, shape)


def _present(offsets: Array, mask: Array) -> Array:
    """The offsets of the rows in `mask`; the others have no values."""
    return offsets if mask.all() else np.append(offsets[:-1][mask], offsets[-1:])


def _cell_restore(leaf: Leaf, encoding: TensorEncoding, dictionary: pa.Array | None) -> Restore:
    """How values that are one cell each become an array of the leaf's type: single values, or lists of them."""
    is_list = is_list_like(leaf.type)
    type_ = leaf.type.value_type if is_list else leaf.type
    encode: Encode = lambda plain: plain  # noqa: E731
    if t.is_dictionary(type_):
        encode = category_encode(type_, dictionary, rounded=False)
        type_ = type_.value_type
    shape: Shape = (None,) if is_list else ()
    decode: Callable[[ColumnBuffers, Array], tuple[Array, pa.Array]]
    if is_text_or_bytes(type_):
        decode = partial(_decode_text, encoding, type_, shape)
    else:
        decode = partial(_decode_numbers, encoding, Dtype.of_arrow(type_), type_, shape)

    def restore(column: ColumnBuffers) -> pa.Array:
        if is_nothing(column):
            return _nulls(column.rows, leaf.type, encode(pa.nulls(0, type_)))
        mask = column.mask
        counts, plain = decode(column, mask)
        with faults_of_present(mask), faults_of_lists(counts=counts):
            values = encode(plain)
        if is_list:
            offsets = offsets_of(scatter(counts, mask))
            return wrap(
                leaf.type,
                column.rows,
                nulls=column.null_count,
                validity=column.validity,
                offsets=offsets,
                values=values,
            )
        return values.take(pa.array(np.cumsum(mask) - 1, mask=~mask)) if column.null_count else values

    return restore


def _nulls(rows: int, type_: pa.DataType, no_values: pa.Array) -> pa.Array:
    """Nulls of a type; those of a dictionary type have the categories of `no_values`, which ``pa.nulls`` omits."""
    if not t.is_dictionary(no_values.type):
        return pa.nulls(rows, type_)
    if not is_list_like(type_):
        return no_values.take(pa.nulls(rows, pa.int64()))
    return wrap(
        type_,
        rows,
        nulls=rows,
        validity=np.zeros(-(-rows // 8), np.uint8),
        offsets=np.zeros(rows + 1, np.int64),
        values=no_values,
    )


def _decode_numbers(
    encoding: TensorEncoding, element: Dtype, type_: pa.DataType, shape: Shape, column: ColumnBuffers, mask: Array
) -> tuple[Array, pa.Array]:
    cells = decode_cells(encoding, column, mask=mask, element=element, shape=shape)
    width = element.itemsize
    bad = cells.sizes % width != 0 if shape else cells.sizes != width
    if bad.any():
        size = int(cells.sizes[bad.argmax()])
        expected = f"a multiple of {width}" if shape else width
        what = "a whole number of values" if shape else "a value"
        reason = f"{size} bytes are not {what} of {type_}, {width} bytes each"
        with faults_of_present(mask):
            raise RowFault(int(bad.argmax()), reason, expected=expected, got=size)
    return cells.sizes // width, number_array(type_, cells.data)


def _decode_text(
    encoding: TensorEncoding, type_: pa.DataType, shape: Shape, column: ColumnBuffers, mask: Array
) -> tuple[Array, pa.Array]:
    offsets, data = slots(column)
    with faults_of_present(mask):
        cells = encoding.decode_text(data, _present(offsets, mask), shape)
        counts = np.fromiter(map(len, cells), np.int64, len(cells))
        flat = [text for cell in cells for text in cell]
        ends = offsets_of(np.fromiter(map(len, flat), np.int64, len(flat)))
        plain = variable_width(
            pa.binary(), len(flat), nulls=0, validity=None, offsets=ends, values=np.frombuffer(b"".join(flat), np.uint8)
        )
        with faults_of_lists(counts=counts):
            return counts, plain if type_ == pa.binary() else checked_cast(plain, type_)
