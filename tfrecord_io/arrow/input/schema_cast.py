"""Columns of a batch cast to a declared schema; a value that would be lost is an error that names its row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.encode.plan import Rounding
from tfrecord_io.arrow.input.lossless import is_narrowed, refuse_loss
from tfrecord_io.arrow.input.tensor_cast import tensor_cast
from tfrecord_io.arrow.row_fault import first_refused
from tfrecord_io.arrow.tensor_values import ndarray_of, tensors_of_column
from tfrecord_io.errors import EncodeError
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
    except _NO_CAST:  # its message holds the value
        row = _first_misfit(array, own, field)
        expected, got = logical_name(field.type, field.metadata), logical_name(own.type, own.metadata)
        if row is None:
            reason = f"a column of {got} cannot become the schema's {expected}"
            raise EncodeError(reason, expected=expected, got=got, advice=_ADVICE) from None
        reason = f"a value of this {got} does not fit the schema's {expected}"
        raise EncodeError(reason, record=row, expected=expected, got=got, advice=_ADVICE) from None


def _cast(array: pa.Array, own: pa.Field, field: pa.Field) -> pa.Array:
    if t.is_null(own.type):
        return pa.nulls(len(array), field.type)
    has_tensors = is_any_tensor(own.type) or is_any_tensor(field.type)
    made = tensor_cast(array, own, field) if has_tensors else array.cast(field.type)
    for before, after in _leaves(array, own, made, field):
        refuse_loss(before, after)
    return made


def _first_misfit(array: pa.Array, own: pa.Field, field: pa.Field) -> int | None:
    """The first row that cannot be cast; None if no row can be, because of the type."""

    def misfits(part: pa.Array) -> bool:
        try:
            _cast(part, own, field)
        except _NO_CAST:
            return True
        return False

    if misfits(array[:0]):
        return None
    row = first_refused(len(array), lambda _, end: misfits(array[:end]))
    return None if array[row : row + 1].null_count else row  # Arrow refuses some types where there is a value or null


def _note_rounding(
    array: pa.Array, own: pa.Field, made: pa.Array, field: pa.Field, float64: str | None, rounding: Rounding | None
) -> None:
    """Count the floats that a declared narrower type rounds, or refuse them."""
    if float64 == "round" or rounding is None:
        return
    count, types = _rounded(array, own, made, field)
    if not count:
        return
    if float64 != "error":
        rounding.add(field.name, count, types[1])
        return
    row = first_refused(len(array), lambda _, end: _rounded(array[:end], own, made[:end], field)[0] > 0)
    reason = f"the schema declares {types[1]}, which cannot represent {count} of its {types[0]} values"
    advice = f'float64="round" rounds them, or declare {types[0]}'
    raise EncodeError(reason, record=row, expected=types[1], got=types[0], advice=advice)


def _rounded(array: pa.Array, own: pa.Field, made: pa.Array, field: pa.Field) -> tuple[int, tuple[str, str]]:
    """How many floats of a column were rounded, and the dtypes of the last of them, before and after."""
    total, types = 0, ("", "")
    for before, after in _leaves(array, own, made, field):
        if is_narrowed(before.type, after.type):
            exact, cast = np.asarray(before.drop_null()), np.asarray(after.drop_null())
            count = int(np.count_nonzero((cast != exact) & ~np.isnan(exact)))
            total, types = total + count, (exact.dtype.name, cast.dtype.name) if count else types
    return total, types


def _leaves(array: pa.Array, own: pa.Field, made: pa.Array, field: pa.Field) -> Iterator[tuple[pa.Array, pa.Array]]:
    """The values of a column and what they became, leaf by leaf: of plain types, nulls among them."""
    if is_any_tensor(own.type) and is_any_tensor(field.type):
        before, after = tensors_of_column(array, own), tensors_of_column(made, field)
        if before.element.name != after.element.name:
            yield pa.array(ndarray_of(before).reshape(-1)), pa.array(ndarray_of(after).reshape(-1))
        return
    (array, type_), (made, declared) = _plain(array), _plain(made)
    if t.is_struct(type_) and t.is_struct(declared):
        names = [child.name for child in declared]
        if any(child.name not in names for child in type_):
            raise pa.ArrowInvalid("the declared struct lacks a field")
        befores, afters = array.flatten(), made.flatten()
        for at, child in enumerate(type_):
            inner = names.index(child.name)
            yield from _leaves(befores[at], child, afters[inner], declared.field(inner))
    elif is_list_like(type_) and is_list_like(declared):
        yield from _leaves(array.flatten(), type_.value_field, made.flatten(), declared.value_field)
    elif not t.is_null(type_):
        yield _unnested(array), made


def _unnested(array: pa.Array) -> pa.Array:
    """The values of lists, which are those of a tensor."""
    while is_list_like(array.type):
        array = array.flatten()
    return array


def _plain(array: pa.Array) -> tuple[pa.Array, pa.DataType]:
    """The values without dictionary and extension types, of tensors their lists; and their type."""
    while True:
        if t.is_dictionary(array.type):
            array = array.dictionary_decode()
        elif is_any_tensor(array.type):
            array = array.storage
            if t.is_struct(array.type):
                array = array.flatten()[array.type.get_field_index("data")]
        elif isinstance(array, pa.ExtensionArray):
            array = array.storage
        else:
            return array, array.type
