"""Columns of arrays as tensors: which are tensors without being declared, and casts to a declared tensor type.

Without a declaration, arrays of two or more dimensions are tensors, those of dtypes that lists in a record cannot hold
(complex numbers, months, those of ml_dtypes), and text and dates if an encoding is requested that stores them so.

A cast reshapes lists, converts values without loss, and makes shapes variable. The type is decided over the whole
column; values are converted, if needed, only for the rows of a batch. So an array in a file (``np.memmap``) is never
entirely in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.bytes import Array, Dtype
from tfrecord_io.columns.arrow.buffers import ArrayBuffers, bitmap_buffer, bitmap_of, list_array, offsets_of, scatter
from tfrecord_io.columns.arrow.casts import number_array
from tfrecord_io.columns.arrow.decode.lists import wrap
from tfrecord_io.columns.arrow.encode.encode_columns import number_cells
from tfrecord_io.columns.arrow.flatten import Rows, flatten
from tfrecord_io.columns.arrow.plain_values import native, plain_array
from tfrecord_io.columns.arrow.tensor_values import (
    TensorValues,
    cells_to_column,
    column_to_tensors,
    element_of_dtype,
    misfits,
    ndarray_to_column,
    shape_of_cells,
    shapes_of_counts,
    tensors_to_column,
)
from tfrecord_io.columns.schema.column_features import fixed_part, is_list_of_tensors
from tfrecord_io.columns.schema.tensor_types import (
    TENSOR_ENCODINGS,
    Shape,
    element_and_shape,
    encoding_rules,
    is_any_tensor,
    is_fixed_shape_tensor,
    permutation_of,
    tensor_field,
    tensor_value_type,
)
from tfrecord_io.columns.schema.types import is_list_like
from tfrecord_io.errors import EncodeError, SchemaError

_ARROW_TIMES = {"M": ("D", "s", "ms", "us", "ns"), "m": ("s", "ms", "us", "ns")}


def tensor_cast(array: pa.Array, source: pa.Field, target: pa.Field) -> pa.Array:
    """A column of the field `source` cast to the type of `target`, if one of the types is a tensor type.

    `target` is of tensors (lists hold their values in C order, or are nested to the shape), of lists, for tensors of
    one dimension, or of lists of tensors, for lists and for tensors of one dimension more. A tensor of another shape,
    or a list of another number of values, is an EncodeError whose ``record`` is the row; a value that cannot be cast
    without loss is a pyarrow.ArrowInvalid.
    """
    if source.type == target.type:
        return array
    if is_list_of_tensors(target.type):
        return _cast_to_lists(array, source, target)
    tensors = _tensors(array, source, target)
    if not is_any_tensor(target.type):
        return _lists(tensors, len(array), target)
    return _cast_to_tensors(tensors, not is_any_tensor(source.type), len(array), target)


def _cast_to_tensors(tensors: TensorValues, from_lists: bool, rows: int, target: pa.Field) -> pa.Array:
    """Tensors as a column of declared tensors; of one dimension `from_lists`, only the number of values counts."""
    if permutation_of(target.type) is not None:
        advice = "declare them by tfr.tensor()"
        raise EncodeError("the schema's tensors are permuted", feature=target.name, hint=advice)
    element, axes = element_and_shape(target)
    tensors = _cast_tensors(tensors, element, target.name)
    shaped = _reshape(tensors, axes, from_lists and tensors.rank < 2, target.name)
    storage = tensors_to_column(replace(shaped, offsets=shaped.offsets - shaped.offsets[0]), rows).storage
    if pa.types.is_boolean(tensor_value_type(target.type)):
        storage = storage.cast(target.type.storage_type)
    return pa.ExtensionArray.from_storage(target.type, storage)


def _cast_to_lists(array: pa.Array, source: pa.Field, target: pa.Field) -> pa.Array:
    """Lists of tensors, or tensors whose first dimension counts those of a row, as lists of declared tensors."""
    item, rows = target.with_type(target.type.value_type), len(array)
    if is_any_tensor(source.type):
        whole = _tensors(array, source, target)
        items, counts, valid, from_lists = _split_tensors(whole, target), whole.shape_matrix[:, 0], whole.valid, False
    elif is_list_like(source.type):
        buffers, of_values = ArrayBuffers(array), source.with_type(source.type.value_type)
        valid, counts = buffers.valid, buffers.lengths
        counts = counts if valid is None else counts[valid]
        values = array.flatten()
        if pa.types.is_null(of_values.type):
            values, of_values = pa.nulls(len(values), item.type), item
        items, from_lists = _tensors(values, of_values, item), not is_any_tensor(of_values.type)
    else:
        reason = f"a column of {source.type} is not one of lists of arrays"
        raise EncodeError(reason, feature=source.name, hint="pass a list of arrays for each row")
    offsets = offsets_of(counts if valid is None else scatter(counts, valid))
    lists = Rows(target.name, 0, rows, offsets=offsets)
    if items.valid is not None:
        row = lists.row_of(int(items.valid.argmin()))
        raise EncodeError("an array in its list is missing", record=row, hint="leave it out of the list")
    try:
        tensors = _cast_to_tensors(items, from_lists, lists.slots, item)
    except EncodeError as error:
        error.record = None if error.record is None else lists.row_of(error.record)
        raise
    size = target.type.list_size if pa.types.is_fixed_size_list(target.type) else None
    if size is not None and np.any(bad := counts != size):
        row = int(bad.argmax())
        reason = f"it has {counts[row]} arrays, and the schema declares {size}"
        raise EncodeError(reason, record=_row(row, valid), expected=size, got=int(counts[row]))
    validity = None if valid is None else bitmap_of(valid)
    return wrap(target.type, rows, nulls=rows - len(counts), validity=validity, offsets=offsets, values=tensors)


def _split_tensors(tensors: TensorValues, target: pa.Field) -> TensorValues:
    """The parts of tensors along their first dimension."""
    shapes = tensors.shape_matrix
    if not tensors.rank:
        reason = f"single values are not {target.type}"
        raise EncodeError(reason, feature=target.name, hint="pass a list of arrays for each row")
    counts = shapes[:, 0]
    parts = np.repeat(shapes[:, 1:], counts, axis=0)
    data = tensors.data[int(tensors.offsets[0]) : int(tensors.offsets[-1])]
    offsets = offsets_of(parts.prod(axis=1, dtype=np.int64)) * tensors.element.itemsize
    return TensorValues(tensors.element, data, offsets=offsets, shapes=parts)


def _tensors(array: pa.Array, source: pa.Field, target: pa.Field) -> TensorValues:
    try:
        if is_any_tensor(source.type):
            return column_to_tensors(array, source)
        if is_list_like(source.type) and is_list_like(source.type.value_type):
            return _stack_lists(array, element_and_shape(target)[1] if is_any_tensor(target.type) else ())
        ((rows, values),) = flatten(array, source.name)
        return number_cells(rows, values)
    except EncodeError as error:
        error.feature = source.name
        raise
    except ValueError as error:
        reason = f"a column of {source.type} cannot be converted to tensors"
        raise EncodeError(reason, feature=source.name, hint="convert the column first") from error


def _stack_lists(array: pa.Array, axes: Shape) -> TensorValues:
    """Lists of lists as tensors: the lists of one level have the same length in each row.

    Lengths that an empty list leaves open are those of `axes`.
    """
    import pyarrow.compute as pc

    valid = ArrayBuffers(array).valid
    values = array if valid is None else array.drop_null()
    owners, shapes = np.arange(len(values)), list[Array]()
    while is_list_like(values.type):
        lengths = np.asarray(pc.list_value_length(values).fill_null(-1), np.int64)
        axis = len(shapes)
        shape = np.full(len(array) - array.null_count, -1, np.int64)
        shape[owners] = lengths
        reasons = {
            "a list in it is missing": lengths < 0,
            f"its lists differ in length (axis {axis})": shape[owners] != lengths,
        }
        for reason, bad in reasons.items():
            if bad.any():
                row = _row(int(owners[int(bad.argmax())]), valid)
                raise EncodeError(reason, record=row, expected="lists of one shape")
        declared = axes[axis] if axis < len(axes) else None
        shapes.append(np.where(shape < 0, declared or 0, shape))
        owners, values = np.repeat(owners, lengths), values.flatten()
    if values.null_count:
        row = int(owners[values.is_null().index(True).as_py()])
        raise EncodeError("a value in it is missing", record=_row(row, valid), expected="lists without nulls")
    matrix = np.stack(shapes, axis=1)
    cells = number_cells(Rows("", 0, len(matrix), offsets=offsets_of(matrix.prod(axis=1))), values)
    return replace(cells, shapes=matrix, valid=valid)


def _row(at: int, valid: Array | None) -> int:
    """The row of a tensor, where null rows are left out."""
    return at if valid is None else int(np.flatnonzero(valid)[at])


def _cast_tensors(tensors: TensorValues, element: Dtype, name: str) -> TensorValues:
    """Cast tensors to another dtype."""
    source = tensors.element
    if source.name == element.name:
        return tensors
    if element.marked or (source.marked and source.name != "bool"):
        reason = f"its values are of {source.name}, the schema declares {element.name}"
        advice = "convert the column first, or change the schema"
        raise EncodeError(reason, feature=name, expected=element.name, got=source.name, hint=advice)
    begin, end = int(tensors.offsets[0]), int(tensors.offsets[-1])
    data = tensors.data[begin:end]
    cast = number_array(source.arrow, data).cast(element.arrow)
    width = element.itemsize
    if len(cast):
        data = np.frombuffer(cast.buffers()[1], np.uint8)[cast.offset * width :][: len(cast) * width]
    return replace(tensors, element=element, data=data, offsets=(tensors.offsets - begin) // source.itemsize * width)


def _reshape(tensors: TensorValues, axes: Shape, from_lists: bool, name: str) -> TensorValues:
    """Give tensors the declared shape; of lists only the number of values counts."""
    stored = tensors.shape_matrix
    if stored.shape[1] == len(axes) and not (from_lists and len(axes) > 1):
        shapes, bad = stored, misfits(stored, axes)
    elif from_lists:
        if axes.count(None) > 1:
            reason = f"lists do not state the lengths of the {axes.count(None)} unknown dimensions of {axes}"
            raise EncodeError(reason, feature=name, expected=str(axes), hint="pass arrays, or declare their shape")
        counts, part = tensors.counts, fixed_part(axes)
        bad = counts % part != 0 if part and None in axes else counts != part
        shapes = shapes_of_counts(counts, axes) if axes else np.zeros((len(counts), 0), np.int64)
    else:
        shapes, bad = stored, np.ones(len(tensors), np.bool_)
    if bad.any():
        at = int(bad.argmax())
        got = tuple(stored[at].tolist())
        reason = f"its array of shape {got} does not fit the schema's {axes}"
        raise EncodeError(reason, feature=name, record=_row(at, tensors.valid), expected=str(axes), got=str(got))
    return replace(tensors, shapes=shapes if None in axes else axes)  # type: ignore[arg-type]  # none is unknown then


def _lists(tensors: TensorValues, rows: int, target: pa.Field) -> pa.Array:
    """Tensors as lists of the declared type, a level for each dimension."""
    element, depth = tensors.element, _depth(target.type)
    if element.marked or depth == 0 or tensors.rank not in (1, depth):  # Arrow refuses more levels than dimensions
        reason = f"tensors of {element.name} of {tensors.rank} dimensions are not {target.type}"
        hint, hint_cli = "declare them by tfr.tensor()", "declare them as tensors by --type"
        raise EncodeError(reason, feature=target.name, expected=str(target.type), hint=hint, hint_cli=hint_cli)
    shapes = tensors.shape_matrix
    values = number_array(element.arrow, tensors.data[int(tensors.offsets[0]) : int(tensors.offsets[-1])].copy())
    for axis in reversed(range(1, tensors.rank)):
        sizes = np.repeat(shapes[:, axis], shapes[:, :axis].prod(axis=1))
        inner = pa.large_list(values.type)
        values = list_array(inner, len(sizes), nulls=0, validity=None, offsets=offsets_of(sizes), values=values)
    counts, validity = shapes[:, 0], None
    if tensors.valid is not None:
        counts, validity = scatter(counts, tensors.valid), bitmap_of(tensors.valid)
    whole, nulls = pa.large_list(values.type), rows - len(tensors)
    lists = list_array(whole, rows, nulls=nulls, validity=validity, offsets=offsets_of(counts), values=values)
    return lists.cast(target.type)


def _depth(type_: pa.DataType) -> int:
    """How many levels of lists are around the values of a type."""
    depth = 0
    while is_list_like(type_):
        type_, depth = type_.value_type, depth + 1
    return depth


def tensors_fit(source: pa.Field, target: pa.Field) -> bool:
    """True if all tensors of `source` are valid in `target`: the same dtype, and the same or unknown dimensions."""
    if not (is_any_tensor(source.type) and is_any_tensor(target.type)) or is_fixed_shape_tensor(target.type):
        return False
    (element, stored_axes), (declared, axes) = element_and_shape(source), element_and_shape(target)
    is_same = element == declared and len(stored_axes) == len(axes)
    return is_same and all(axis in (None, stored_axis) for stored_axis, axis in zip(stored_axes, axes, strict=True))


def _field(name: str, element: Dtype, shape: Shape) -> pa.Field:
    try:
        return tensor_field(name, element, shape)
    except SchemaError as error:
        raise EncodeError(error.reason, feature=name, hint="split the arrays") from None


class ArrayTensors:
    """The tensors of an array, whose first axis counts the rows. A row is null if all of its values are masked.

    A dtype that is not in the table of dtypes, or a row that is masked in part, is an EncodeError.
    """

    def __init__(self, values: Array, valid: Array | None = None) -> None:
        if isinstance(values, np.ma.MaskedArray):
            unmasked = unmasked_rows(values)
            valid = unmasked if valid is None else unmasked & valid
        self._values: Array = np.asarray(values)
        self._valid = None if valid is None or valid.all() else valid
        self._element = element_of_dtype(self._values.dtype)
        self.nbytes = self._values.nbytes

    def __len__(self) -> int:
        return len(self._values)

    def field(self, name: str) -> pa.Field:
        """The column's field; its type is that of every slice."""
        return _field(name, self._element, self._values.shape[1:])

    def slice(self, begin: int, end: int) -> pa.Array:
        """Rows [begin, end)."""
        valid = None if self._valid is None else self._valid[begin:end]
        return ndarray_to_column(self._values[begin:end], valid)[0]


class CellTensors:
    """The tensors of a sequence of arrays, which have one dtype and rank, or are None; errors as `shape_of_cells`."""

    def __init__(self, cells: Sequence[Any]) -> None:
        self._cells = [None if cell is None else np.asarray(cell) for cell in cells]
        self._element, self._shape = shape_of_cells(self._cells)
        self.nbytes = sum(cell.nbytes for cell in self._cells if cell is not None)

    def __len__(self) -> int:
        return len(self._cells)

    @property
    def rank(self) -> int:
        return len(self._shape)

    def field(self, name: str) -> pa.Field:
        return _field(name, self._element, self._shape)

    def slice(self, begin: int, end: int) -> pa.Array:
        return cells_to_column(self._cells[begin:end], self._element, self._shape)

    def scalars(self) -> pa.Array:
        """The plain column of tensors without dimensions."""
        missing = np.array([cell is None for cell in self._cells], np.bool_)
        nothing = np.zeros((), self._element.dtype)
        values = np.array([nothing if cell is None else cell for cell in self._cells], self._element.dtype)
        return plain_array(values, missing)


class StructTensors:
    """Structs made of dicts, some of whose fields are tensors; None where a dict is missing.

    `make_column` converts the values of a field.
    """

    def __init__(self, cells: Sequence[Any] | Array, make_column: MakeColumn) -> None:
        self._valid = np.fromiter((not _is_missing(cell) for cell in cells), np.bool_, len(cells))
        dicts: list[Mapping[str, Any]] = [{} if _is_missing(cell) else cell for cell in cells]
        self._columns: dict[str, pa.Array | Tensors] = {}
        for name in dict.fromkeys(chain.from_iterable(dicts)):
            self._columns[name] = make_column(name, [cell.get(name) for cell in dicts])
        self.nbytes: int = sum(column.nbytes for column in self._columns.values())

    def __len__(self) -> int:
        return len(self._valid)

    def field(self, name: str) -> pa.Field:
        return pa.field(name, pa.struct([self._part(name) for name in self._columns]))

    def _part(self, name: str) -> pa.Field:
        column = self._columns[name]
        return pa.field(name, column.type) if isinstance(column, pa.Array) else column.field(name)

    def slice(self, begin: int, end: int) -> pa.Array:
        valid, rows = self._valid[begin:end], end - begin
        arrays = [
            column.slice(begin, rows) if isinstance(column, pa.Array) else column.slice(begin, end)
            for column in self._columns.values()
        ]
        validity = bitmap_buffer(None if valid.all() else valid)
        return pa.Array.from_buffers(self.field("").type, rows, [validity], children=arrays)


class ListTensors:
    """Lists of tensors of one dtype and rank, or of structs, None where one is missing; errors as `shape_of_cells`."""

    def __init__(self, cells: Sequence[Any] | Array, make_column: MakeColumn) -> None:
        self._valid = np.fromiter((not _is_missing(cell) for cell in cells), np.bool_, len(cells))
        lists = [[] if _is_missing(cell) else cell for cell in cells]
        self._offsets = offsets_of(np.fromiter(map(len, lists), np.int64, len(lists)))
        try:
            items = [item for cell in lists for item in cell]
            self._items = StructTensors(items, make_column) if are_structs_of_tensors(items) else CellTensors(items)
        except EncodeError as error:
            rows = Rows("", 0, len(lists), offsets=self._offsets)
            error.record = None if error.record is None else rows.row_of(error.record)
            raise
        self.nbytes = self._items.nbytes

    def __len__(self) -> int:
        return len(self._valid)

    def field(self, name: str) -> pa.Field:
        item = self._items.field(name)
        return item.with_type(pa.list_(item.type))

    def slice(self, begin: int, end: int) -> pa.Array:
        offsets, valid = self._offsets[begin : end + 1], self._valid[begin:end]
        values = self._items.slice(int(offsets[0]), int(offsets[-1]))
        nulls = len(valid) - int(np.count_nonzero(valid))
        lists = pa.list_(self._items.field("").type)
        return list_array(
            lists,
            len(valid),
            nulls=nulls,
            validity=bitmap_of(valid) if nulls else None,
            offsets=offsets - offsets[0],
            values=values,
        )


Tensors = ArrayTensors | CellTensors | StructTensors | ListTensors
"""A column of tensors that is not converted to Arrow yet."""


def tensors_of_array(values: Array, encoding: str | None = None, valid: Array | None = None) -> Tensors | None:
    """The tensors of an array whose first axis counts the rows; None if it is a plain column.

    `encoding` is the one requested for the column. An array of objects is an EncodeError.

    >>> tensors_of_array(np.zeros((3, 2, 2), "complex64")).field("x").type.shape
    [2, 2, 2]
    >>> tensors_of_array(np.zeros(3)) is None
    True
    """
    if values.ndim > 1 and values.dtype.kind == "O":
        raise _objects()
    return ArrayTensors(values, valid) if values.ndim > 1 or _only_tensors_hold(values.dtype, encoding) else None


MakeColumn = Callable[[str, Sequence[Any]], pa.Array | Tensors]
"""Converts the values of a column of this name to an Arrow array, or to tensors."""


def tensors_of_cells(
    cells: Sequence[Any] | Array, encoding: str | None, make_column: MakeColumn
) -> Tensors | pa.Array | None:
    """The tensors of a sequence of arrays, in which None, NaN, NA and NaT are missing; None if it is a plain column.

    Arrays without dimensions are single values, which become a plain column if lists can hold them. So do
    one-dimensional arrays in the other byte order, which Arrow does not support. An array of objects is an EncodeError.
    """
    if are_lists_of_tensors(cells):
        return ListTensors(cells, make_column)
    if are_structs_of_tensors(cells):
        return StructTensors(cells, make_column)
    first = next((cell for cell in cells if not _is_missing(cell)), None)
    if not _is_array(first):
        return None
    cells = [None if _is_missing(cell) else cell for cell in cells]
    arrays = [cell for cell in cells if _is_array(cell)]
    dtypes = {getattr(cell, "dtype", np.dtype(complex)) for cell in arrays}
    needs_tensors = any(_only_tensors_hold(dtype, encoding) for dtype in dtypes)
    if not needs_tensors and all(np.ndim(cell) == 1 for cell in arrays):
        swapped = not all(dtype.isnative for dtype in dtypes)
        return pa.array([native(cell) if isinstance(cell, np.ndarray) else cell for cell in cells]) if swapped else None
    if any(np.ndim(cell) > 1 and cell.dtype.kind == "O" for cell in arrays):
        raise _objects()
    tensors = CellTensors(cells)
    return tensors if tensors.rank or needs_tensors else tensors.scalars()


def _is_array(cell: Any) -> bool:
    """An array, or a single value that lists in a record cannot hold."""
    is_single = isinstance(cell, np.generic)
    return isinstance(cell, np.ndarray | complex) or (is_single and _only_tensors_hold(cell.dtype, None))


def _is_list(cell: Any) -> bool:
    return isinstance(cell, list | tuple) or (
        isinstance(cell, np.ndarray) and cell.dtype.kind == "O" and cell.ndim == 1
    )


def are_lists_of_tensors(cells: Sequence[Any] | Array) -> bool:
    """True if cells are lists whose first value is an array of several dimensions, or one that only tensors hold.

    Or if they are lists of structs of such values.
    """
    if not _is_list(next((cell for cell in cells if not _is_missing(cell)), None)):
        return False
    item = next((cell[0] for cell in cells if _is_list(cell) and len(cell)), None)
    if isinstance(item, Mapping):
        return are_structs_of_tensors([item for cell in cells if _is_list(cell) for item in cell])
    return isinstance(item, np.ndarray) and (item.ndim > 1 or _only_tensors_hold(item.dtype, None))


def are_structs_of_tensors(cells: Sequence[Any] | Array) -> bool:
    """True if cells are dicts, and the first value under a name is an array that lists in a record cannot hold."""
    if not isinstance(next((cell for cell in cells if not _is_missing(cell)), None), Mapping):
        return False
    dicts = [cell for cell in cells if isinstance(cell, Mapping)]
    names = dict.fromkeys(chain.from_iterable(dicts))
    if not any(_holds_tensors(dicts, name) for name in names):
        return False
    are_dicts = all(isinstance(cell, Mapping) or _is_missing(cell) for cell in cells)
    return are_dicts and all(isinstance(name, str) for name in names)


def _holds_tensors(dicts: Sequence[Mapping[Any, Any]], name: Any) -> bool:
    """True if the values of dicts under a name are arrays, or lists or dicts of arrays."""
    first = next((value for cell in dicts if not _is_missing(value := cell.get(name))), None)
    if isinstance(first, np.ndarray) and first.dtype.kind != "O":
        return first.ndim > 1 or _only_tensors_hold(first.dtype, None)
    if not (isinstance(first, Mapping) or _is_list(first)):
        return False
    values = [cell.get(name) for cell in dicts]
    return are_lists_of_tensors(values) or are_structs_of_tensors(values)


def _is_missing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float) and cell != cell) or type(cell).__name__ in ("NAType", "NaTType")


def _only_tensors_hold(dtype: np.dtype[Any], encoding: str | None) -> bool:
    """True if lists in a record cannot hold such values, or the encoding stores text and dates as arrays."""
    kind = dtype.kind
    if kind in _ARROW_TIMES:
        unit, count = np.datetime_data(dtype)
        return unit not in _ARROW_TIMES[kind] or count != 1 or (unit == "D" and _stores_kind(encoding, kind))
    return kind == "c" or Dtype.extension_of(dtype) is not None or (kind in "SU" and _stores_kind(encoding, kind))


def _stores_kind(encoding: str | None, kind: str) -> bool:
    """True if bytes of this encoding hold such values, and not plain text instead."""
    rules = encoding_rules(encoding) if TENSOR_ENCODINGS.has(encoding) else None  # reported where columns are planned
    return rules is not None and rules.one_value_per_cell and not rules.stores_text and kind in rules.dtype_kinds


def _objects() -> EncodeError:
    return EncodeError(
        "arrays of objects cannot be stored in a TFRecord, and are not pickled",
        expected="a dtype of numbers, or of text or bytes of one width",
        got="object",
        hint="convert them to one dtype, text by numpy.array(array.tolist()), or write the bytes that "
        "tfr.io.serialize_tensor makes of each",
        hint_cli="convert them to a dtype of numbers, or of text or bytes of one width",
    )


def unmasked_rows(values: np.ma.MaskedArray[Any, Any]) -> np.ndarray[Any, Any]:
    """True for rows that are not masked; a partly masked row is an EncodeError whose ``record`` is its number.

    >>> unmasked_rows(np.ma.masked_array([[1, 2], [3, 4]], [[True, True], [False, False]]))
    array([False,  True])
    """
    mask = np.ma.getmaskarray(values)
    if mask.dtype.names is not None:  # of a structured array: a bool for each field
        mask = np.ascontiguousarray(mask).view(np.bool_).reshape(len(values), -1)
    axes = tuple(range(1, mask.ndim))
    some, whole = mask.any(axis=axes), mask.all(axis=axes) & (mask.size > 0)
    if (partly := some & ~whole).any():
        reason = "part of its array is masked, but only a whole array can be null"
        advice = "fill the masked values (numpy.ma.filled), or mask all of the row"
        raise EncodeError(reason, record=int(partly.argmax()), hint=advice)
    return np.asarray(~whole)
