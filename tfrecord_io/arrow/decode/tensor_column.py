"""Columns of tensors: bytes or values of the wire in the shape that the schema, or the companion beside them, says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.buffers import column_mask, mask_of
from tfrecord_io.arrow.decode.casts import value_cast
from tfrecord_io.arrow.decode.companions import CompanionColumns, Companions
from tfrecord_io.arrow.decode.layout import absent, is_nothing, slots, widen
from tfrecord_io.arrow.decode.lists import Restore, leaf_restore
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.arrow.tensor_builder import from_items
from tfrecord_io.arrow.tensor_values import TensorValues, first_unreal
from tfrecord_io.engine.contract import Array, ColumnBuffers
from tfrecord_io.errors import SchemaError
from tfrecord_io.format.dtypes import Element
from tfrecord_io.format.kinds import Kind, Layout
from tfrecord_io.schema.field import Field
from tfrecord_io.schema.leaf import BY_WIRE, LIST, RAW, TENSOR_PROTO, Leaf, companions
from tfrecord_io.schema.shapes import fixed_part, size_of
from tfrecord_io.schema.tensor_types import Shape, element_and_shape, is_fixed_shape_tensor, tensor_value_type
from tfrecord_io.schema.types import is_list_like

_NUMBER_KINDS = {
    "b": Kind.INT64,
    "i": Kind.INT64,
    "u": Kind.INT64,
    "M": Kind.INT64,
    "m": Kind.INT64,
    "f": Kind.FLOAT,
    "c": Kind.FLOAT,
}


def value_restore(leaf: Leaf, shape: Shape | None, dictionary: pa.Array | None = None) -> Restore:
    """How the feature of a leaf, which is no tensor, becomes an array of the leaf's type.

    Parameters
    ----------
    shape : tuple of int or None, optional
        What a list's number of values has to fit.
    """
    if leaf.encoding == TENSOR_PROTO:
        from tfrecord_io.arrow.encodings.tensor_proto import proto_restore  # brings protobuf along

        return proto_restore(leaf)
    restore = _by_wire(leaf) if leaf.encoding == BY_WIRE else leaf_restore(leaf, dictionary)
    counted = shape is not None and is_list_like(leaf.type) and not t.is_fixed_size_list(leaf.type)
    return _counted(restore, shape) if counted else restore  # type: ignore[arg-type]  # the shape is one where it is counted


def _by_wire(leaf: Leaf) -> Restore:
    """Bytes are decoded raw, numbers are values: whichever the records have."""
    values = leaf_restore(replace(leaf, encoding=LIST))
    raw = leaf_restore(replace(leaf, encoding=RAW, kind=Kind.BYTES, layout=Layout.SCALAR))
    return lambda column: (raw if column.kind is Kind.BYTES else values)(column)


def _counted(restore: Restore, shape: Shape) -> Restore:
    """Refuse rows whose number of values is not that of the shape, or none of its multiples where an axis is free."""

    def counted(column: ColumnBuffers) -> pa.Array:
        array = restore(column)
        bitmap = array.buffers()[0] if array.null_count else None
        mask = mask_of(None if bitmap is None else np.frombuffer(bitmap, np.uint8), len(array))
        _refuse_counts(np.diff(np.asarray(array.offsets)), mask, shape)
        return array

    return counted


def _refuse_counts(counts: Array, mask: Array, shape: Shape) -> None:
    size = fixed_part(shape)
    expected = f"a multiple of {size}" if None in shape else str(size)
    fits = counts == size if None not in shape or size == 0 else counts % size == 0
    if np.any(bad := ~fits & mask):
        row = int(bad.argmax())
        reason = f"expected {expected} values for the shape {shape}, got {counts[row]}"
        raise RowFault(row, reason, expected=expected if None in shape else size, got=int(counts[row]))


def tensor_leaf(field: Field, type_: pa.DataType) -> Leaf:
    """The one feature that a column of tensors of `type_`, or each step of one, is read from.

    Raises
    ------
    SchemaError
        The dtype cannot be had in the field's encoding.
    """
    of, _ = element_and_shape(field.tensor)
    if field.encoding in (RAW, TENSOR_PROTO):
        return Leaf(field.feature, (), type_, Kind.BYTES, Layout.SCALAR, field.encoding)
    if field.encoding == BY_WIRE:
        return Leaf(field.feature, (), type_, Kind.NONE, Layout.ANY, BY_WIRE)
    kind = _number_kind(of)
    if kind is None:
        raise SchemaError(
            f"a list of values is no tensor of {of.name}", feature=field.feature, advice='pass encoding="raw"'
        )
    return Leaf(field.feature, (), type_, kind, Layout.LIST, LIST)


def _number_kind(of: Element) -> Kind | None:
    """The kind that lists of such values are of."""
    return Kind.FLOAT if of.name == "bfloat16" else _NUMBER_KINDS.get(of.dtype.kind)


@dataclass(frozen=True, slots=True)
class _Present:
    """The tensors of the rows that have one: their bytes one after another, and how many each has."""

    data: Array
    sizes: Array
    shapes: Array | None = None  # where the bytes themselves have said them


class TensorColumn:
    """Makes the arrays of a column of tensors; compiled once, used by any thread.

    Parameters
    ----------
    feature : str
    tensor : pyarrow.Field
        Type of the tensors, whose axes are not permuted, and the mark of their dtype.
    encoding : str
    companions : Companions, optional
        What stands beside the feature; None where nothing does.
    """

    def __init__(self, feature: str, tensor: pa.Field, encoding: str, companions: Companions | None = None) -> None:
        self._of, self._shape = element_and_shape(tensor)
        self._type = tensor.type
        self._encoding = encoding
        self._feature = feature
        self._companions = companions
        self._size = size_of(self._shape)
        self._readers: Mapping[str, Callable[[ColumnBuffers, Array], _Present]] = {
            RAW: self._raw,
            LIST: self._numbers,
            BY_WIRE: self._by_wire,
            TENSOR_PROTO: self._protos,
        }

    def array(self, columns: Mapping[str, ColumnBuffers], rows: int) -> pa.Array:
        """The column of `rows` decoded rows.

        Raises
        ------
        RowFault
            A row has no such tensor.
        """
        column = columns.get(self._feature) or absent(self._feature, rows, Kind.NONE, Layout.NULL)
        try:
            return self._array(column, None if self._companions is None else self._companions.of(columns, rows))
        except RowFault as fault:
            fault.feature = self._feature
            raise

    def steps(self, columns: Mapping[str, ColumnBuffers]) -> Restore:
        """How the steps of a feature list become tensors; the steps of their companions stand in feature lists of the same lengths."""
        column = columns.get(self._feature)
        found = {}
        for name in companions(self._feature):
            beside = columns.get(name)
            if (
                beside is None
                or column is None
                or beside.steps is None
                or beside.offsets is None
                or column.offsets is None
            ):
                continue
            if np.array_equal(beside.offsets, column.offsets):
                found[name] = beside.steps
        return lambda steps: self._array(
            steps, None if self._companions is None else self._companions.of(found, steps.rows)
        )

    def _array(self, column: ColumnBuffers, beside: CompanionColumns | None) -> pa.Array:
        nothing = is_nothing(column)
        mask = np.zeros(column.rows, bool) if nothing else column_mask(column)
        if beside is not None:
            beside.refuse_strays(mask)
        if nothing:
            return (
                pa.nulls(column.rows, self._type)
                if not column.rows
                else self._built(_Present(_NO_BYTES, _NO_SIZES), mask, None)
            )
        present = self._readers[self._encoding](column, mask)
        if beside is not None and column.kind is Kind.BYTES:
            beside.refuse_dtype(mask, self._of, _spread(present.sizes, mask))
        self._refuse_sizes(present, mask, beside)
        return self._built(present, mask, beside)

    # ---- from the wire to bytes

    def _by_wire(self, column: ColumnBuffers, mask: Array) -> _Present:
        return (self._raw if column.kind is Kind.BYTES or _number_kind(self._of) is None else self._numbers)(
            column, mask
        )

    def _raw(self, column: ColumnBuffers, mask: Array) -> _Present:
        offsets, data = slots(column)
        sizes = np.diff(offsets).astype(np.int64)
        if (at := first_unreal(self._of, data)) >= 0:
            row, got = (
                int(offsets.searchsorted(at, side="right")) - 1,
                data[at : at + self._of.itemsize].tobytes().hex(),
            )
            raise RowFault(
                row, f"the bytes {got} at {at - offsets[row]} are no {self._of.name}", expected=self._of.name, got=got
            )
        return _Present(data, sizes if len(sizes) == np.count_nonzero(mask) else sizes[mask])

    def _numbers(self, column: ColumnBuffers, mask: Array) -> _Present:
        kind = _number_kind(self._of)
        assert kind is not None
        wide = widen(column, kind, Layout.LIST)
        assert wide.offsets is not None
        assert wide.values is not None
        counts = np.diff(wide.offsets).astype(np.int64)
        _refuse_counts(counts, mask, self._shape + self._of.inner)
        try:
            data = _number_bytes(self._of, wide.values)
        except RowFault as fault:
            raise fault.in_row_of(wide.offsets) from None
        return _Present(data, counts[mask] * (self._of.itemsize // max(fixed_part(self._of.inner), 1)))

    def _protos(self, column: ColumnBuffers, mask: Array) -> _Present:
        from tfrecord_io.arrow.encodings.tensor_proto import read_protos  # brings protobuf along

        return _Present(*read_protos(column, mask, self._of.name, self._shape))

    # ---- checks

    def _refuse_sizes(self, present: _Present, mask: Array, beside: CompanionColumns | None) -> None:
        """Refuse bytes that are no whole number of values, or not those of the shape."""
        part = fixed_part(self._shape) * self._of.itemsize
        sizes = present.sizes
        bad = sizes != part if self._size is not None or not part else sizes % part != 0
        if not np.any(bad):
            return
        at = int(bad.argmax())
        row, size = int(np.flatnonzero(mask)[at]), int(sizes[at])
        expected = f"{'' if self._size is not None else 'a multiple of '}{part}"
        reason = f"{size} bytes do not make {self._of.name} of the shape {self._shape}, which has {expected}; {_hint(size, self._shape)}"
        reason += "" if beside is None else beside.words(row)
        raise RowFault(row, reason, expected=part if self._size is not None else expected, got=size)

    def _built(self, present: _Present, mask: Array, beside: CompanionColumns | None) -> pa.Array:
        offsets = np.concatenate([[0], np.cumsum(present.sizes)])
        shapes: Array | tuple[int, ...]
        if is_fixed_shape_tensor(self._type):
            if beside is not None:
                beside.shapes(mask, self._shape, _spread(present.sizes // max(self._of.itemsize, 1), mask))
            shapes = self._shape  # type: ignore[assignment]  # no axis is free
        else:
            shapes = self._shapes(present, mask, beside)
        items = TensorValues(self._of, present.data, offsets, shapes, None if mask.all() else mask)
        if t.is_boolean(tensor_value_type(self._type)):
            plain = from_items(items, len(mask))
            return pa.ExtensionArray.from_storage(self._type, plain.storage.cast(self._type.storage_type))
        return from_items(items, len(mask), self._type)

    def _shapes(self, present: _Present, mask: Array, beside: CompanionColumns | None) -> Array:
        """The shape of each tensor: of its bytes, of its companion, or by its length."""
        if present.shapes is not None:
            return present.shapes
        counts = present.sizes // self._of.itemsize
        said, has = (None, None) if beside is None else beside.shapes(mask, self._shape, _spread(counts, mask))
        if said is not None and has is not None and has[mask].all():
            return said[mask]
        free = self._shape.count(None)
        if free > 1 and len(counts):
            row = int((mask if has is None else mask & ~has).argmax())
            reason = f"no feature '{self._feature}/shape' says how long the {free} free axes of {self._shape} are"
            raise RowFault(row, reason, expected=f"{self._feature}/shape")
        rest = fixed_part(self._shape)
        length = counts // rest if rest else counts
        derived = np.stack([length if axis is None else np.full(len(counts), axis) for axis in self._shape], axis=1)
        return derived if said is None or has is None else np.where(has[mask][:, None], said[mask], derived)


_NO_BYTES, _NO_SIZES = np.empty(0, np.uint8), np.empty(0, np.int64)


def _number_bytes(of: Element, values: Array) -> Array:
    """Numbers of the wire as the bytes of the dtype; each is checked to fit."""
    if of.name == "bfloat16":
        with np.errstate(over="ignore"):
            return values.astype(of.dtype).view(np.uint8)
    type_ = pa.bool_() if of.name == "bool" else of.arrow
    array = value_cast(type_, LIST)(len(values), 0, None, values, None)
    if of.name == "bool":
        array = array.cast(pa.uint8())
    width = of.arrow.bit_width // 8
    return np.frombuffer(array.buffers()[1], np.uint8)[: len(array) * width] if len(array) else _NO_BYTES


def _spread(present: Array, mask: Array) -> Array:
    """A value for each row: 0 where it is null."""
    if len(present) == len(mask):
        return present
    found = np.zeros(len(mask), present.dtype)
    found[mask] = present
    return found


def _hint(size: int, shape: Shape) -> str:
    """What so many bytes would be."""
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
