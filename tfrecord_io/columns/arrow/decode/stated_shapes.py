"""The shapes of arrays that features of other programs state, such as ``height`` and ``width``: read for all rows.

`StatedShapes` replaces `tfrecord_io.columns.arrow.decode.companion_checks.Companions` in a column of tensors.

Tests: tests/laws/test_shapes_from_features.py and tests/columns/arrow/decode/test_batch_builder_forms.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import NoReturn

import numpy as np
import pyarrow as pa

from tfrecord_io.base import listed, printable
from tfrecord_io.bytes import Array, ColumnBuffers, Dtype, FeatureColumns, Kind, Layout, ParsedTensor, ShapeSource
from tfrecord_io.columns.arrow.buffers import int64_array, offsets_of, take_rows, variable_width
from tfrecord_io.columns.arrow.decode.companion_checks import LONGEST_AXIS, CompanionColumns, Companions, product
from tfrecord_io.columns.arrow.decode.lists import is_nothing
from tfrecord_io.columns.arrow.row_fault import RowFault
from tfrecord_io.columns.arrow.tensor_values import misfits
from tfrecord_io.columns.schema.column_features import size_of
from tfrecord_io.columns.schema.tensor_types import Shape
from tfrecord_io.errors import FeatureNotFoundError

_DERIVED = -1  # in a matrix of shapes: the size follows from the number of values


@dataclass(slots=True, repr=False)
class StatedShapes(Companions):
    """The features of a `ShapeSource`, for arrays of a dtype and of so many dimensions."""

    _: KW_ONLY
    element: Dtype
    rank: int

    def columns(self, columns: Mapping[str, ColumnBuffers], rows: int) -> CompanionColumns:
        """The shapes and dtypes of some decoded rows; a feature that cannot state them is a RowFault."""
        axes, common = self._source.axes, self._common_shape(columns)
        if common is not None and rows:
            matrix, mask = np.broadcast_to(np.array(common), (rows, self.rank)), np.ones(rows, bool)
        elif isinstance(axes, str):
            matrix, mask = _sizes(columns.get(axes), axes, rows, self.rank)
        else:
            matrix, mask = np.empty((rows, len(axes)), np.int64), np.ones(rows, bool)
            for at, axis in enumerate(axes):
                if isinstance(axis, str):
                    sizes, has_size = _sizes(columns.get(axis), axis, rows, 1)
                    matrix[:, at], mask = sizes[:, 0], mask & has_size
                else:
                    matrix[:, at] = _DERIVED if axis is None else axis
        shape = ColumnBuffers.nulls(", ".join(self._source.sizes), rows, Kind.INT64, Layout.LIST)
        return StatedColumns(self, shape, self._dtypes(columns, rows), matrix=matrix, mask=mask, common=common)

    def _common_shape(self, columns: Mapping[str, ColumnBuffers]) -> tuple[int, ...] | None:
        """The shape that single values state alike for all rows: the common case, which needs no shape of each row."""
        axes = self._source.axes
        if isinstance(axes, str):
            return None
        shape = list[int]()
        for axis in axes:
            values = _plain_sizes(columns.get(axis)) if isinstance(axis, str) else None
            if isinstance(axis, int):
                shape.append(axis)
            elif values is None or not len(values) or not (values == values[0]).all():
                return None
            else:
                shape.append(int(values[0]))
        return tuple(shape)

    @property
    def _source(self) -> ShapeSource:
        assert self.shape_source is not None
        return self.shape_source

    def _dtypes(self, columns: Mapping[str, ColumnBuffers], rows: int) -> ColumnBuffers:
        """The names of the dtypes of some rows, as a dtype companion has them."""
        name = self._source.dtype
        column = None if name is None else columns.get(name)
        if name is None or column is None or is_nothing(column):
            return ColumnBuffers.nulls(name or "", rows, Kind.BYTES, Layout.SCALAR)
        values, numbers = stated_dtypes(column, name)
        texts = [(dtype_of(value) or text_of(value)).encode() for value in values]
        distinct = ColumnBuffers(name, Kind.BYTES, Layout.SCALAR, len(texts))
        distinct.values = np.frombuffer(b"".join(texts), np.uint8)
        distinct.value_offsets = offsets_of(np.fromiter(map(len, texts), np.int64, len(texts)))
        return take_rows([distinct], numbers)


@dataclass(slots=True, eq=False, repr=False)
class StatedColumns(CompanionColumns):
    """The shapes and dtypes of some rows, as `StatedShapes` found them.

    `matrix` has the shapes, int64 [rows, rank], for the rows in `mask`; `common` the one of all rows, if that is known.
    """

    _: KW_ONLY
    matrix: Array
    mask: Array
    common: tuple[int, ...] | None

    def state_only(self, shape: Shape) -> bool:
        """True if the shape of all rows is known to be `shape`, and no feature states a dtype."""
        return self.common == shape and is_nothing(self.dtype)

    def refuse_counts(self, mask: Array, shape: Shape, count: Callable[[], Array]) -> None:
        """Refuse rows whose shape is not stated, does not have as many values as the row, or is not `shape`."""
        counts = count()
        if self._are_uniform(shape, counts):
            return
        if np.any(bad := mask & ~self.mask):
            self._refuse_missing(int(bad.argmax()))
        matrix = self._matrix(counts)
        bad = ((matrix < 0) | (matrix > LONGEST_AXIS)).any(axis=1) | (product(matrix) != counts)
        if np.any(bad := mask & bad):
            self._refuse_count(int(bad.argmax()), matrix, counts)
        if np.any(bad := mask & misfits(matrix, shape)):
            row = int(bad.argmax())
            stated = tuple(matrix[row].tolist())
            reason = f"{self._statement} the shape {stated}, and the column has {shape}"
            advice = "looks at the shapes of all records before it decides the type of the column"
            hint, hint_cli = f'pass sample="all", which {advice}', f"pass --sample all, which {advice}"
            raise RowFault(row, reason, expected=str(shape), got=str(stated), hint=hint, hint_cli=hint_cli)

    @property
    def _derives(self) -> bool:
        """True if the number of values decides the size of a dimension."""
        axes = self._source.axes
        return not isinstance(axes, str) and None in axes

    def _are_uniform(self, shape: Shape, counts: Array) -> bool:
        """True if all rows state `shape`, and have as many values: the common case, which takes no other check."""
        size = size_of(shape)
        if size is None or self._derives or not self.mask.all() or not (counts == size).all():
            return False
        if self.common is not None:
            return self.common == shape
        matrix = self._matrix(counts)
        return all((matrix[:, at] == axis).all() for at, axis in enumerate(shape))

    def shapes(self, mask: Array, shape: Shape, counts: Array) -> tuple[Array | None, Array | None]:
        """The shape of each row, as `refuse_counts` accepts it; and which rows have one."""
        return self._matrix(counts), mask & self.mask

    def description(self, row: int) -> str:
        """Describe the statements about a row, for an error message."""
        return f"; {self._statement} the shape {tuple(self.matrix[row].tolist())}" if self.mask[row] else ""

    @property
    def _stated(self) -> StatedShapes:
        assert isinstance(self.companions, StatedShapes)
        return self.companions

    @property
    def _source(self) -> ShapeSource:
        return self._stated._source

    @property
    def _statement(self) -> str:
        """The features that state a shape, with their verb."""
        if not self._source.sizes:
            return "the schema states"
        names = [f"'{printable(name)}'" for name in self._source.sizes]
        return f"{listed('and', *names)} state{'s' if len(names) == 1 else ''}"

    def _matrix(self, counts: Array) -> Array:
        """The shapes: int64 [rows, rank]; a dimension that no feature states has the size that `counts` leave."""
        matrix, axes = self.matrix, self._source.axes
        if not self._derives:
            return matrix
        assert not isinstance(axes, str)
        at, matrix = axes.index(None), matrix.copy()
        matrix[:, at] = 1
        rest = np.maximum(product(matrix), 1)
        matrix[:, at] = counts // rest
        return matrix

    def _refuse_missing(self, row: int) -> NoReturn:
        reason = f"{self._statement} the shape of the array, which the record lacks"
        raise RowFault(row, reason, expected=self.shape.name, error=FeatureNotFoundError)

    def _refuse_count(self, row: int, matrix: Array, counts: Array) -> NoReturn:
        element, shape, count = self._stated.element, matrix[row].tolist(), int(counts[row])
        size = count * element.itemsize
        expected = math.prod(shape)
        if not all(0 <= axis <= LONGEST_AXIS for axis in shape):
            raise RowFault(row, f"{self._statement} the shape {tuple(shape)}, which no array has", got=str(shape))
        stated = f"{self._statement} the shape {tuple(shape)} of {expected:,} values of {element.name}"
        reason = f"{stated}, and the record has {count:,} values in {size:,} bytes"
        fitting = fitting_shapes(size, shape, element)
        hint = f"{size:,} bytes are {listed('or', *fitting)}" if fitting else None
        raise RowFault(row, reason, expected=expected, got=count, hint=hint)


def fitting_shapes(size: int, shape: Sequence[int], element: Dtype) -> list[str]:
    """Name arrays of so many bytes near the stated shape: with another last dimension, or of a wider dtype.

    >>> from tfrecord_io.bytes.format.dtypes import Dtype
    >>> fitting_shapes(4704, (28, 28, 3), Dtype.of_name("uint8"))
    ['28 × 28 × 6 of uint8', '28 × 28 × 3 of uint16']
    """
    fitting = []
    for at in reversed(range(len(shape))):
        rest = math.prod(shape[:at]) * math.prod(shape[at + 1 :]) * element.itemsize
        if rest > 0 and size % rest == 0:
            changed = [*shape[:at], size // rest, *shape[at + 1 :]]
            fitting.append(f"{' × '.join(map(str, changed))} of {element.name}")
            break
    values = math.prod(shape)
    usual = Dtype.usual_names(size // values) if values > 0 and size % values == 0 else ()
    fitting += [f"{' × '.join(map(str, shape))} of {name}" for name in usual[:1] if name != element.name]
    return fitting


def step_columns(
    columns: Mapping[str, ColumnBuffers], source: ShapeSource, arrays: ColumnBuffers
) -> dict[str, ColumnBuffers]:
    """The columns of a source for each step of a feature list: a value for each step, or that of the context.

    `arrays` is the feature list. A source with another number of steps is a RowFault, where the list is not null. The
    context may have a size for each step, too.
    """
    assert arrays.offsets is not None
    counts, mask, steps = np.diff(arrays.offsets), arrays.mask, {}
    for name in source.features:
        column = columns.get(name + FeatureColumns.LIST_MARK)
        column = columns.get(name) if column is None or is_nothing(column) else column
        if column is None or is_nothing(column):
            continue
        if column.steps is None:
            of_steps = _step_sizes(column, counts, mask) if name in source.axis_sizes else None
            if of_steps is None:
                of_steps = _take_rows(column, np.repeat(np.arange(column.rows), counts))
            steps[name] = of_steps
            continue
        assert column.offsets is not None
        stated = np.diff(column.offsets)
        if np.any(bad := mask & (stated != counts)):
            row = int(bad.argmax())
            reason = (
                f"'{printable(name)}' has {stated[row]} steps, but the arrays whose shape it states have {counts[row]}"
            )
            raise RowFault(row, reason, expected=int(counts[row]), got=int(stated[row]))
        of_arrays = np.repeat(mask, stated)
        steps[name] = column.steps if of_arrays.all() else _take_rows(column.steps, np.flatnonzero(of_arrays))
    return steps


def _step_sizes(column: ColumnBuffers, counts: Array, mask: Array) -> ColumnBuffers | None:
    """The sizes of steps by a context feature, whose rows have a size for each step, or one for all of them.

    `counts` has the number of steps of each row. None if all rows have one size. Another number of sizes is a RowFault
    for a row in the `mask`.
    """
    if column.kind is not Kind.INT64 or column.layout is not Layout.LIST or column.others or column.offsets is None:
        return None
    sizes_per_row = np.diff(column.offsets)
    if not np.any(mask & column.mask & (sizes_per_row != 1)):
        return None
    has_own = sizes_per_row == counts
    if np.any(bad := mask & column.mask & ~has_own & (sizes_per_row != 1)):
        row = int(bad.argmax())
        what = f"'{printable(column.name)}' has {sizes_per_row[row]} sizes"
        reason = f"{what}, and the record has {counts[row]} arrays whose size it states"
        raise RowFault(row, reason, expected=int(counts[row]), got=int(sizes_per_row[row]))
    is_stated = np.repeat(has_own | (sizes_per_row == 1), counts)
    within = np.arange(len(is_stated)) - np.repeat(np.cumsum(counts) - counts, counts)
    at = np.repeat(column.offsets[:-1].astype(np.int64), counts) + np.where(np.repeat(has_own, counts), within, 0)
    assert column.values is not None
    sizes = ColumnBuffers(column.name, Kind.INT64, Layout.SCALAR, len(column.values), values=column.values)
    return take_rows([sizes], np.where(is_stated, at, -1))


def _take_rows(column: ColumnBuffers, rows: Array) -> ColumnBuffers:
    """The rows of these numbers of a feature that states sizes or dtypes."""
    if column.kind is Kind.BYTES and column.layout is Layout.LIST:
        raise _not_stated(column.name, column, "one value")
    return take_rows([column], rows)


def _plain_sizes(column: ColumnBuffers | None) -> Array | None:
    """The sizes in a feature of single integers that every row has; None if the feature is another one."""
    if column is None or column.kind is not Kind.INT64 or column.layout is not Layout.SCALAR or column.null_count:
        return None
    return None if column.others or column.steps is not None else column.values


def _sizes(column: ColumnBuffers | None, name: str, rows: int, count: int) -> tuple[Array, Array]:
    """A feature's sizes, int64 [rows, count], and which rows have them; a RowFault where they are not sizes."""
    if column is None or is_nothing(column):
        return np.zeros((rows, count), np.int64), np.zeros(rows, bool)
    if column.kind is not Kind.INT64 or column.others or column.steps is not None:
        raise _not_stated(name, column, "integers")
    assert column.values is not None
    mask = column.mask
    if column.layout is Layout.SCALAR:
        if count != 1 and mask.any():
            raise _other_rank(name, int(mask.argmax()), count, 1)
        return np.broadcast_to(column.values.reshape(-1, 1), (rows, count)), mask
    assert column.offsets is not None
    counts = np.diff(column.offsets)
    if np.any(bad := mask & (counts != count)):
        row = int(bad.argmax())
        raise _other_rank(name, row, count, int(counts[row]))
    matrix = np.zeros((rows, count), np.int64)
    sizes = column.values[column.offsets[0] : column.offsets[-1]]
    matrix[mask] = sizes.reshape(int(np.count_nonzero(mask)), count)
    return matrix, mask


def stated_dtypes(column: ColumnBuffers, name: str) -> tuple[list[bytes | int], Array]:
    """The distinct values of a dtype feature, and which of them each row has; −1 for a row without one.

    A feature that cannot state a dtype is a RowFault.
    """
    mask, offsets = column.mask, column.offsets
    if column.kind not in (Kind.BYTES, Kind.INT64) or column.others or column.steps is not None:
        raise _not_stated(name, column, "the name of a dtype, or TensorFlow's number of one")
    if offsets is not None and np.any(bad := mask & (np.diff(offsets) != 1)):
        raise _not_stated(name, column, "one value", int(bad.argmax()))
    assert column.values is not None
    if (ends := column.value_offsets) is None:
        values = int64_array(column.values)
    else:
        values = variable_width(pa.binary(), len(ends) - 1, nulls=0, validity=None, offsets=ends, values=column.values)
    if offsets is not None:
        values = values[int(offsets[0]) : int(offsets[-1])]
    elif column.null_count:
        values = values.filter(pa.array(mask))
    encoded = values.dictionary_encode()
    numbers = np.full(column.rows, -1)
    numbers[mask] = np.asarray(encoded.indices)
    return encoded.dictionary.to_pylist(), numbers


def text_of(value: bytes | int) -> str:
    """A value of a dtype feature as text, for messages."""
    return str(value) if isinstance(value, int) else value.decode("utf-8", "backslashreplace")


def dtype_of(value: bytes | int) -> str | None:
    """The name of the dtype that a feature states by TensorFlow's number, or by a name; None if it states none.

    >>> dtype_of(b"uint8"), dtype_of(4), dtype_of(b"tf.float32"), dtype_of(b"DT_FLOAT"), dtype_of(b"png")
    ('uint8', 'uint8', 'float32', 'float32', None)
    """
    if isinstance(value, int):
        return ParsedTensor.dtype_of_number(value)
    name = value.decode("utf-8", "replace").strip().removeprefix("tf.").removeprefix("DT_").lower()
    found = Dtype.find(_TENSORFLOW_NAMES.get(name, name))
    return None if found is None else found.name


_TENSORFLOW_NAMES = {"float": "float32", "double": "float64", "half": "float16"}  # of types.proto, in lower case


def _other_rank(name: str, row: int, expected: int, got: int) -> RowFault:
    reason = f"'{printable(name)}' states {got} sizes, but the arrays of the column have {expected} dimensions"
    return RowFault(row, reason, expected=expected, got=got)


def _not_stated(name: str, column: ColumnBuffers, expected: str, row: int | None = None) -> RowFault:
    what = "a feature list" if column.steps is not None else column.kind.description
    reason = f"'{printable(name)}' has {what}, but the shape or dtype of an array is stated by {expected}"
    return RowFault(int(column.mask.argmax()) if row is None else row, reason, expected=expected)
