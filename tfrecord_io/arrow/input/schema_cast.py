"""Columns of a batch cast to a declared schema; a value that would be lost is an error that names its row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.encode.plan import Rounding
from tfrecord_io.arrow.input.tensor_cast import tensor_cast
from tfrecord_io.arrow.tensor_values import ndarray_of, tensors_of_column
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import EncodeError, printable
from tfrecord_io.schema.tensor_types import is_any_tensor
from tfrecord_io.schema.type_names import logical_name
from tfrecord_io.schema.types import is_list_like

_NO_CAST = (pa.ArrowException, OverflowError)
_ADVICE = "cast it yourself, or change the schema"


def cast_columns(
    batch: pa.RecordBatch,
    target: pa.Schema,
    row_base: int = 0,
    *,
    float64: str | None = None,
    rounding: Rounding | None = None,
) -> list[pa.Array]:
    """The columns of a batch, which follows `row_base` rows, cast to a schema with the same names in the same order.

    `float64` and `rounding` are for float64 values that a declared float32 cannot hold; see `WritePlan`. If a column
    cannot be cast to the declared type, or a value would be lost, it is an EncodeError whose ``record`` is the row.
    """
    columns = []
    for array, own, field in zip(batch.columns, batch.schema, target, strict=True):
        try:
            made = _declared(array, own, field)
            if own.type != field.type:
                _note_rounding(array, own, made, field, float64, rounding)
        except EncodeError as error:
            error.feature = field.name
            error.record = None if error.record is None else row_base + error.record
            raise
        columns.append(made)
    return columns


def _declared(array: pa.Array, own: pa.Field, field: pa.Field) -> pa.Array:
    if array.null_count and not field.nullable:
        row = array.is_null().index(True).as_py()
        reason, advice = "it is missing, and the schema requires it", "fill it, or declare it without required"
        raise EncodeError(reason, record=row, advice=advice)
    if own.type == field.type:
        return array
    try:
        return _cast(array, own, field)
    except _NO_CAST as error:
        row = _first_misfit(array, own, field)
        expected, got = logical_name(field.type, field.metadata), logical_name(own.type, own.metadata)
        if row is None:
            reason = f"a column of {got} cannot become the schema's {expected}"
            raise EncodeError(reason, expected=expected, got=got, advice=_ADVICE) from error
        what = printable(str(error).partition("\n")[0], 200)
        reason = f"a value of this {got} does not fit the schema's {expected}: {what}"
        raise EncodeError(reason, record=row, expected=expected, got=got, advice=_ADVICE) from error


def _cast(array: pa.Array, own: pa.Field, field: pa.Field) -> pa.Array:
    if t.is_null(own.type):
        return pa.nulls(len(array), field.type)
    has_tensors = is_any_tensor(own.type) or is_any_tensor(field.type)
    made = tensor_cast(array, own, field) if has_tensors else array.cast(field.type)
    for exact, cast in _floats(array, own, made, field):
        infinite = np.isinf(cast) & np.isfinite(exact)
        if infinite.any():
            raise OverflowError(f"{exact[infinite.argmax()]} is too large")
    return made


def _first_misfit(array: pa.Array, own: pa.Field, field: pa.Field) -> int | None:
    """The first row that cannot be cast; None if no row can be, because of the type."""
    if _misfits(array[:0], own, field):
        return None
    fits, fails = 0, len(array)  # rows from the start
    while fails - fits > 1:
        middle = (fits + fails) // 2
        fits, fails = (fits, middle) if _misfits(array[:middle], own, field) else (middle, fails)
    return fits


def _misfits(array: pa.Array, own: pa.Field, field: pa.Field) -> bool:
    try:
        _cast(array, own, field)
    except _NO_CAST:
        return True
    return False


def _note_rounding(
    array: pa.Array, own: pa.Field, made: pa.Array, field: pa.Field, float64: str | None, rounding: Rounding | None
) -> None:
    """Count the float64 values that a declared float32 cannot hold, or refuse them."""
    if float64 == "round" or rounding is None:
        return
    for exact, cast in _floats(array, own, made, field):
        if exact.dtype != np.float64 or cast.dtype != np.float32:
            continue
        count = int(np.count_nonzero((cast != exact) & ~np.isnan(exact)))
        if count and float64 == "error":
            reason = f"the schema says float32, which does not hold {count} of its float64 values"
            advice = 'float64="round" rounds them, or declare float64'
            raise EncodeError(reason, expected="float32", got="float64", advice=advice)
        if count:
            rounding.add(field.name, count)


def _floats(array: pa.Array, own: pa.Field, made: pa.Array, field: pa.Field) -> Iterator[tuple[Array, Array]]:
    """The floats of a column and the narrower ones that they became, leaf by leaf, without null rows."""
    if is_any_tensor(field.type):
        if is_any_tensor(own.type):
            before, after = tensors_of_column(array, own), tensors_of_column(made, field)
            is_float = before.element.dtype.kind == after.element.dtype.kind == "f"
            if is_float and before.element.itemsize > after.element.itemsize:
                yield ndarray_of(before), ndarray_of(after)
            return
        made, field = made.storage, pa.field(field.name, field.type.storage_type)
        if t.is_struct(field.type):
            made, field = made.field("data"), field.type.field("data")
    if t.is_struct(own.type) and t.is_struct(field.type):
        for at, child in enumerate(field.type):
            yield from _floats(array.flatten()[at], own.type.field(at), made.flatten()[at], child)
    elif is_list_like(own.type) and is_list_like(field.type):
        yield from _floats(array.flatten(), own.type.value_field, made.flatten(), field.type.value_field)
    elif t.is_floating(own.type) and t.is_floating(field.type) and own.type.bit_width > field.type.bit_width:
        yield tuple(np.asarray(each.drop_null()) for each in (array, made))  # type: ignore[misc]
