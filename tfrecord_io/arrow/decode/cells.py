"""Columns of numbers, lists, text and bytes, by their encoding; and the decoding of cells that tensors share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.buffers import column_mask, offsets_of, scatter, valid_mask, variable_width
from tfrecord_io.arrow.casts import Encode, category_encode, checked_cast, number_array, other_kinds
from tfrecord_io.arrow.decode.companions import CompanionColumns, Companions
from tfrecord_io.arrow.decode.lists import Restore, absent, from_kinds, is_nothing, leaf_restore, slots, widen, wrap
from tfrecord_io.arrow.encodings.encoding import DecodedCells, TensorEncoding, tensor_encoding
from tfrecord_io.arrow.encodings.values import check_counts
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.arrow.tensor_values import TensorValues, shapes_of_counts, tensor_array
from tfrecord_io.engine.contract import Array, ColumnBuffers
from tfrecord_io.errors import SchemaError, say
from tfrecord_io.format.dtypes import Element, element_of
from tfrecord_io.format.kinds import Kind, Layout, companions
from tfrecord_io.schema.field import Field
from tfrecord_io.schema.leaf import RAW, Leaf, fixed_part, size_of
from tfrecord_io.schema.tensor_types import Shape, element_and_shape, is_fixed_shape_tensor
from tfrecord_io.schema.types import is_list_like, is_text_or_bytes


def value_restore(leaf: Leaf, shape: Shape | None, dictionary: pa.Array | None = None) -> Restore:
    """How the feature of a leaf that is not a tensor becomes an array; a list's number of values must fit `shape`."""
    encoding = tensor_encoding(leaf.encoding)
    restore: Restore
    if encoding.adaptive:
        raw = _cell_restore(leaf, tensor_encoding(RAW), dictionary)
        restore = partial(_by_kind, raw, leaf_restore(leaf, dictionary))
    elif encoding.one_value_per_cell:
        restore = _cell_restore(leaf, encoding, dictionary)
    else:
        restore = leaf_restore(leaf, dictionary)
    if shape is None or not is_list_like(leaf.type) or t.is_fixed_size_list(leaf.type):
        return restore
    return partial(_counted, restore, shape)


def _by_kind(raw: Restore, numbers: Restore, column: ColumnBuffers) -> pa.Array:
    """The array of rows each of which has bytes, or numbers."""
    if column.others:
        return from_kinds(column, partial(_by_kind, raw, numbers))
    return (raw if column.kind is Kind.BYTES else numbers)(column)


def _counted(restore: Restore, shape: Shape, column: ColumnBuffers) -> pa.Array:
    """The array of rows; one whose number of values does not fit the shape is refused."""
    array = restore(column)
    counts, mask = np.diff(np.asarray(array.offsets)), valid_mask(array)
    with faults_of_rows(mask):
        check_counts(counts if mask is None else counts[mask], shape)
    return array


def decode_cells(
    encoding: TensorEncoding, column: ColumnBuffers, mask: Array, element: Element, shape: Shape
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
    with faults_of_rows(mask):
        return encoding.decode(values, _present(offsets, mask), element, shape)


@contextmanager
def faults_of_rows(mask: Array | None) -> Iterator[None]:
    """Turn the index of a RowFault, which counts the rows in `mask`, into that of the row."""
    try:
        yield
    except RowFault as fault:
        if mask is not None:
            fault.row = int(np.flatnonzero(mask)[fault.row])
        raise


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
        decode = partial(_text, encoding, type_, shape)
    else:
        decode = partial(_numbers, encoding, element_of(type_), type_, shape)

    def restore(column: ColumnBuffers) -> pa.Array:
        if is_nothing(column):
            return _nulls(column.rows, leaf.type, encode(pa.nulls(0, type_)))
        mask = column_mask(column)
        counts, plain = decode(column, mask)
        with faults_of_rows(mask):
            try:
                values = encode(plain)
            except RowFault as fault:
                raise fault.in_row_of(offsets_of(counts)) from None
        if is_list:
            offsets = offsets_of(scatter(counts, mask))
            return wrap(leaf.type, column.rows, column.null_count, column.validity, offsets, values)
        return values.take(pa.array(np.cumsum(mask) - 1, mask=~mask)) if column.null_count else values

    return restore


def _nulls(rows: int, type_: pa.DataType, no_values: pa.Array) -> pa.Array:
    """Nulls of a type; those of a dictionary type have the categories of `no_values`, which ``pa.nulls`` omits."""
    if not t.is_dictionary(no_values.type):
        return pa.nulls(rows, type_)
    if not is_list_like(type_):
        return no_values.take(pa.nulls(rows, pa.int64()))
    return wrap(type_, rows, rows, np.zeros(-(-rows // 8), np.uint8), np.zeros(rows + 1, np.int64), no_values)


def _numbers(
    encoding: TensorEncoding, element: Element, type_: pa.DataType, shape: Shape, column: ColumnBuffers, mask: Array
) -> tuple[Array, pa.Array]:
    cells = decode_cells(encoding, column, mask, element, shape)
    width = element.itemsize
    bad = cells.sizes % width != 0 if shape else cells.sizes != width
    if bad.any():
        size = int(cells.sizes[bad.argmax()])
        expected = f"a multiple of {width}" if shape else width
        what = "a whole number of values" if shape else "a value"
        reason = f"{size} bytes are not {what} of {type_}, {width} bytes each"
        with faults_of_rows(mask):
            raise RowFault(int(bad.argmax()), reason, expected=expected, got=size)
    return cells.sizes // width, number_array(type_, cells.data)


def _text(
    encoding: TensorEncoding, type_: pa.DataType, shape: Shape, column: ColumnBuffers, mask: Array
) -> tuple[Array, pa.Array]:
    offsets, data = slots(column)
    with faults_of_rows(mask):
        cells = encoding.decode_text(data, _present(offsets, mask), shape)
        counts = np.fromiter(map(len, cells), np.int64, len(cells))
        flat = [text for cell in cells for text in cell]
        ends = offsets_of(np.fromiter(map(len, flat), np.int64, len(flat)))
        plain = variable_width(pa.binary(), len(flat), 0, None, ends, np.frombuffer(b"".join(flat), np.uint8))
        try:
            return counts, plain if type_ == pa.binary() else checked_cast(plain, type_)
        except RowFault as fault:
            raise fault.in_row_of(offsets_of(counts)) from None


def tensor_leaf(field: Field, type_: pa.DataType) -> Leaf:
    """The one feature that a column of tensors of `type_`, or each step of one, is read from."""
    element, shape = element_and_shape(field.tensor)
    encoding = tensor_encoding(field.encoding)
    try:
        kind = encoding.kind(element)
    except ValueError as error:
        raise SchemaError(
            str(error), feature=field.feature, advice=say('declare it with {tfr.tensor(encoding="raw")}')
        ) from None
    return Leaf(field.feature, (), type_, kind, encoding.layout, encoding.name, element, shape)


class TensorColumn:
    """Makes the arrays of a column of tensors; compiled once, used by any thread.

    `tensor` is the type of the tensors, whose axes are not permuted, with the mark of their dtype.
    """

    def __init__(self, feature: str, tensor: pa.Field, encoding: str, companions: Companions | None = None) -> None:
        self._element, self._shape = element_and_shape(tensor)
        self._type = tensor.type
        self._encoding = tensor_encoding(encoding)
        self._feature = feature
        self._companions = companions
        self._size = size_of(self._shape)

    def array(self, columns: Mapping[str, ColumnBuffers], rows: int) -> pa.Array:
        """The column of `rows` decoded rows; one without such a tensor is a RowFault."""
        column = columns.get(self._feature) or absent(self._feature, rows, Kind.NONE, Layout.NULL)
        try:
            return self._array(column, None if self._companions is None else self._companions.columns(columns, rows))
        except RowFault as fault:
            fault.feature = self._feature
            raise

    def steps(self, columns: Mapping[str, ColumnBuffers]) -> Restore:
        """How the steps of a feature list become tensors; their companions are feature lists of the same lengths."""
        column = columns.get(self._feature)
        offsets = None if column is None else column.offsets
        step_companions = {}
        for name in companions(self._feature):
            other = columns.get(name)
            if other is None or other.steps is None or other.offsets is None or offsets is None:
                continue
            if np.array_equal(other.offsets, offsets):
                step_companions[name] = other.steps
        own = self._companions
        return lambda steps: self._array(steps, None if own is None else own.columns(step_companions, steps.rows))

    def _array(self, column: ColumnBuffers, companion: CompanionColumns | None) -> pa.Array:
        if column.others:
            return from_kinds(column, lambda part: self._array(part, companion))
        nothing = is_nothing(column)
        mask = np.zeros(column.rows, bool) if nothing else column_mask(column)
        if companion is not None:
            companion.refuse_strays(mask)
        if nothing and not column.rows:
            return pa.nulls(0, self._type)
        if nothing:
            return self._built(DecodedCells(np.empty(0, np.uint8), np.empty(0, np.int64)), mask, None)
        encoding = self._encoding.for_kind(column.kind, self._element)
        cells = decode_cells(encoding, column, mask, self._element, self._shape)
        if companion is not None and column.kind is Kind.BYTES:
            companion.refuse_dtype(mask, self._element, scatter(cells.sizes, mask))
        self._refuse_sizes(cells, mask, companion)
        return self._built(cells, mask, companion)

    def _refuse_sizes(self, cells: DecodedCells, mask: Array, companion: CompanionColumns | None) -> None:
        """Refuse bytes that are not a whole number of values, or not as many as the shape has."""
        part = fixed_part(self._shape) * self._element.itemsize
        bad = cells.sizes != part if self._size is not None or not part else cells.sizes % part != 0
        if not np.any(bad):
            return
        at = int(bad.argmax())
        row, size = int(np.flatnonzero(mask)[at]), int(cells.sizes[at])
        expected = f"{'' if self._size is not None else 'a multiple of '}{part}"
        reason = f"{size} bytes do not make {self._element.name} of the shape {self._shape}, which has {expected}"
        reason += f"; {_hint(size, self._shape)}"
        reason += "" if companion is None else companion.description(row)
        raise RowFault(row, reason, expected=part if self._size is not None else expected, got=size)

    def _built(self, cells: DecodedCells, mask: Array, companion: CompanionColumns | None) -> pa.Array:
        shapes: Array | tuple[int, ...]
        if is_fixed_shape_tensor(self._type):
            if companion is not None:
                companion.shapes(mask, self._shape, scatter(cells.sizes // max(self._element.itemsize, 1), mask))
            shapes = self._shape  # type: ignore[assignment]  # no dimension is unknown
        else:
            shapes = self._shapes(cells, mask, companion)
        valid = None if mask.all() else mask
        tensors = TensorValues(self._element, cells.data, offsets_of(cells.sizes), shapes, valid)
        return tensor_array(tensors, len(mask), self._type)

    def _shapes(self, cells: DecodedCells, mask: Array, companion: CompanionColumns | None) -> Array:
        """The shape of each tensor: stated by its bytes, by its companion, or derived from its length."""
        if cells.shapes is not None:
            return cells.shapes
        counts = cells.sizes // self._element.itemsize
        stated = has = None
        if companion is not None:
            stated, has = companion.shapes(mask, self._shape, scatter(counts, mask))
        if stated is not None and has is not None and has[mask].all():
            return stated[mask]
        unknown = self._shape.count(None)
        if unknown > 1 and len(counts):
            row = int((mask if has is None else mask & ~has).argmax())
            reason = f"no feature '{self._feature}/shape' states the {unknown} unknown dimensions of {self._shape}"
            raise RowFault(row, reason, expected=f"{self._feature}/shape")
        derived = shapes_of_counts(counts, self._shape)
        return derived if stated is None or has is None else np.where(has[mask][:, None], stated[mask], derived)


def _hint(size: int, shape: Shape) -> str:
    """What tensors this many bytes would be."""
    part = fixed_part(shape)
    width = size // part if part and size % part == 0 and None not in shape else 0
    names = [name for name, itemsize in _WIDTHS.items() if itemsize == width]
    if names:
        return f"they are {part} values of {' or '.join(names)}"
    fitting = [name for name in ("uint8", "float32", "float64") if size % _WIDTHS[name] == 0]
    return "they are " + " or ".join(f"{size // _WIDTHS[name]} {name}" for name in fitting)


_WIDTHS = {
    "uint8": 1, "int8": 1, "bool": 1,
    "float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2,
    "float32": 4, "int32": 4, "uint32": 4,
    "float64": 8, "int64": 8, "uint64": 8, "complex64": 8,
    "complex128": 16,
}  # fmt: skip
