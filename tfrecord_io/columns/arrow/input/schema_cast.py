"""Columns of a batch cast to a declared schema; a value that would be lost is an error that names its row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.columns.arrow.buffers import bitmap_buffer, bitmap_of, list_array, struct_fields
from tfrecord_io.columns.arrow.casts import plain_layout
from tfrecord_io.columns.arrow.encode.lossless_values import Rounding
from tfrecord_io.columns.arrow.flatten import Rows, cut_lists
from tfrecord_io.columns.arrow.input.tensor_cast import tensor_cast
from tfrecord_io.columns.arrow.nested_to_features import first_null, misplaced_null
from tfrecord_io.columns.arrow.plain_forms import from_plain_form, plain_form, to_plain_form
from tfrecord_io.columns.arrow.row_fault import errors_of_rows, first_failing, first_refused
from tfrecord_io.columns.arrow.tensor_values import column_to_tensors, tensors_to_values
from tfrecord_io.columns.schema.column_features import is_list_of_tensors, nested_handed
from tfrecord_io.columns.schema.field import IMAGE_KEY
from tfrecord_io.columns.schema.tensor_types import is_any_tensor
from tfrecord_io.columns.schema.types import (
    is_list_like,
    is_text,
    is_text_or_bytes,
    map_fields,
    types_within,
    value_type,
)
from tfrecord_io.errors import EncodeError

_NO_CAST = (pa.ArrowException, OverflowError)
_ADVICE = "convert the column first, or change the schema"
_ADVICE_CLI = "convert the column first, or change the schema"
_DECIMAL = re.compile(r"(?!-[0.]*$)-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_CHECKED_BY_ARROW = (t.is_integer, t.is_timestamp, t.is_duration, t.is_time, is_text_or_bytes)  # casts among these
_UTC = ("UTC", "Etc/UTC", "Z", "+00:00", "GMT")


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
    for array, source, field in zip(batch.columns, batch.schema, target, strict=True):
        with errors_of_rows(row_base, field.name):
            if source.type != field.type and nested_handed(field.type) == field.type:
                array = plain_layout(array)  # Arrow (26.0) casts few views and run-ends, and not all of them right
                source = source.with_type(array.type)
            result = _cast_column(array, source, field)
            if source.type != field.type:
                _note_rounding(array, source, result=result, field=field, float64=float64, rounding=rounding)
        columns.append(result)
    return columns


def _cast_column(array: pa.Array, source: pa.Field, field: pa.Field) -> pa.Array:
    refuse_missing(array, field)
    if source.type == field.type:
        return array
    if IMAGE_KEY in (field.metadata or {}) and is_text(value_type(source.type)):
        reason, advice = "an encoded image is bytes, not text", "pass the content of the files, not their names"
        raise EncodeError(reason, expected="binary", got="string", hint=advice)
    try:
        result = _cast(array, source, field)
    except _NO_CAST:  # its message holds the value
        from tfrecord_io.columns.schema.type_names import logical_name

        row = _first_misfit(array, source, field)
        expected, got = logical_name(field.type, field.metadata), logical_name(source.type, source.metadata)
        if row is None:
            reason = f"a column of {got} cannot become the schema's {expected}"
            raise EncodeError(reason, expected=expected, got=got, hint=_ADVICE, hint_cli=_ADVICE_CLI) from None
        reason = f"a value of type {got} cannot be converted to {expected}"
        raise EncodeError(reason, record=row, expected=expected, got=got, hint=_ADVICE, hint_cli=_ADVICE_CLI) from None
    refuse_missing(result, field)
    return result


def refuse_missing(array: pa.Array, field: pa.Field) -> None:
    """Raise EncodeError for a null where a field is not nullable, in a value too: no reader would take the record."""
    if not field.nullable and (row := first_null(array)) is not None:
        reason, advice = "it is missing, and the schema requires it", "required"
    elif (row := misplaced_null(array)) is not None:
        reason, advice = f"a value in it is null where its type, {array.type}, has no nulls", "not null"
    else:
        return
    raise EncodeError(reason, record=row, feature=field.name, hint=f"fill it, or declare it without {advice}")


def _cast(array: pa.Array, source: pa.Field, field: pa.Field) -> pa.Array:
    if t.is_null(source.type):
        return pa.nulls(len(array), field.type)
    form = plain_form(field.type)
    # Arrow (26.0) casts neither lists to maps nor the values of maps.
    if form != field.type and t.is_nested(source.type):
        plain = to_plain_form(array)
        result = _arrow_cast(plain, form)
        for before, after in _leaves(plain, source.with_type(plain.type), result, field.with_type(form)):
            refuse_loss(before, after)
        return from_plain_form(result, field.type)
    if (parts := _cast_parts(array, source, field)) is not None:
        return parts
    # Arrow (26.0) makes categories of text and bytes alone.
    if t.is_dictionary(field.type) and not (t.is_dictionary(source.type) or is_text_or_bytes(field.type.value_type)):
        return from_plain_form(_cast(array, source, field.with_type(field.type.value_type)), field.type)
    if any(map(t.is_decimal, types_within(field.type))) and any(map(t.is_integer, types_within(source.type))):
        # Arrow (26.0) refuses decimals that have fewer digits than the greatest integer.
        array = _arrow_cast(array, _widen_decimals(field.type))
        source = source.with_type(array.type)
    has_tensors = is_any_tensor(source.type) or is_any_tensor(field.type) or is_list_of_tensors(field.type)
    result = tensor_cast(array, source, field) if has_tensors else _arrow_cast(array, field.type)
    for before, after in _leaves(array, source, result, field):
        refuse_loss(before, after)
    return result


def _arrow_cast(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Arrow's cast, of the values that rows have: Arrow (26.0) casts those outside a slice and under nulls, too."""
    try:
        return array.cast(type_)
    except _NO_CAST:
        if not t.is_nested(array.type):
            raise
        return array.take(pa.array(np.arange(len(array)))).cast(type_)


def _widen_decimals(type_: pa.DataType) -> pa.DataType:
    """Give the decimals in a type as many digits as there can be; their scale stays."""
    if t.is_decimal(type_):
        return pa.decimal256(76, type_.scale)
    return map_fields(type_, lambda field: field.with_type(_widen_decimals(field.type)))


def _cast_parts(array: pa.Array, source: pa.Field, field: pa.Field) -> pa.Array | None:
    """A struct, or a list of structs, that has tensors, part by part, as Arrow casts none; None for other columns."""
    type_ = field.type
    if not t.is_nested(type_) or not any(map(is_any_tensor, types_within(type_))):
        return None
    if t.is_struct(type_) and t.is_struct(source.type):
        befores = dict(zip((child.name for child in source.type), struct_fields(array), strict=True))
        if not befores.keys() <= {child.name for child in type_}:
            raise pa.ArrowInvalid("the declared struct lacks a field")
        afters = [
            _cast(befores[child.name], source.type.field(child.name), child)
            if child.name in befores
            else pa.nulls(len(array), child.type)
            for child in type_
        ]
        validity = bitmap_buffer(np.asarray(array.is_valid()) if array.null_count else None)
        return pa.Array.from_buffers(type_, len(array), [validity], array.null_count, children=afters)
    if (t.is_list(type_) or t.is_large_list(type_)) and t.is_struct(type_.value_type) and is_list_like(source.type):
        values, rows = cut_lists(array, Rows("", 0, len(array)))
        assert rows.offsets is not None
        values = values if rows.index is None else values.take(pa.array(rows.index))
        try:
            values = _cast(values, source.type.value_field, type_.value_field)
        except EncodeError as error:
            error.record = None if error.record is None else rows.row_of(error.record)  # it counted items
            raise
        valid = None if rows.valid is None else bitmap_of(rows.valid)
        nulls = array.null_count
        return list_array(type_, len(array), nulls=nulls, validity=valid, offsets=rows.offsets, values=values)
    return None


def _first_misfit(array: pa.Array, source: pa.Field, field: pa.Field) -> int | None:
    """The first row that cannot be cast; None if no row can be, because of the type."""
    try:
        _cast(array[:0], source, field)
    except _NO_CAST:
        return None
    row = first_failing(len(array), lambda _, end: _cast(array[:end], source, field), _NO_CAST)
    return None if array[row : row + 1].null_count else row  # Arrow refuses some types where there is a value or null


def _note_rounding(
    array: pa.Array, source: pa.Field, result: pa.Array, field: pa.Field, float64: str | None, rounding: Rounding | None
) -> None:
    """Count the floats that a declared narrower type rounds, or refuse them."""
    if float64 == "round" or rounding is None:
        return
    count, types = _count_rounded(array, source, result, field)
    if not count:
        return
    if float64 != "error":
        rounding.add(field.name, count, types[1])
        return
    row = first_refused(len(array), lambda _, end: _count_rounded(array[:end], source, result[:end], field)[0] > 0)
    reason = f"the schema declares {types[1]}, which cannot represent {count} of its {types[0]} values"
    advice = f'float64="round" rounds them, or declare {types[0]}'
    advice_cli = f"--float64 round rounds them, or declare {types[0]}"
    raise EncodeError(reason, record=row, expected=types[1], got=types[0], hint=advice, hint_cli=advice_cli)


def _count_rounded(array: pa.Array, source: pa.Field, result: pa.Array, field: pa.Field) -> tuple[int, tuple[str, str]]:
    """How many floats of a column were rounded, and the dtypes of the last of them, before and after."""
    total, types = 0, ("", "")
    for before, after in _leaves(array, source, result, field):
        if is_narrowed(before.type, after.type):
            exact, cast = np.asarray(before.drop_null()), np.asarray(after.drop_null())
            count = int(np.count_nonzero((cast != exact) & ~np.isnan(exact)))
            total, types = total + count, (exact.dtype.name, cast.dtype.name) if count else types
    return total, types


def _leaves(
    array: pa.Array, source: pa.Field, result: pa.Array, field: pa.Field
) -> Iterator[tuple[pa.Array, pa.Array]]:
    """The values of a column and what they became, leaf by leaf: of plain types, nulls among them."""
    if is_any_tensor(source.type) and is_any_tensor(field.type):
        before, after = column_to_tensors(array, source), column_to_tensors(result, field)
        if before.element.name != after.element.name:
            yield pa.array(tensors_to_values(before).reshape(-1)), pa.array(tensors_to_values(after).reshape(-1))
        return
    (array, type_), (result, declared) = _plain(array), _plain(result)
    if t.is_struct(type_) and t.is_struct(declared):
        places = {child.name: place for place, child in enumerate(declared)}
        if any(child.name not in places for child in type_):
            raise pa.ArrowInvalid("the declared struct lacks a field")
        befores, afters = struct_fields(array), struct_fields(result)
        for at, child in enumerate(type_):
            inner = places[child.name]
            yield from _leaves(befores[at], child, afters[inner], declared.field(inner))
    elif t.is_map(type_) and t.is_map(declared):
        plain, cast = to_plain_form(array), to_plain_form(result)
        yield from _leaves(plain, source.with_type(plain.type), cast, field.with_type(cast.type))
    elif is_list_like(type_) and is_list_like(declared):
        yield from _leaves(array.flatten(), type_.value_field, result.flatten(), declared.value_field)
    elif not t.is_null(type_):
        while is_list_like(array.type):  # whose values are those of a tensor
            array = array.flatten()
        while is_list_like(result.type) and not is_list_like(type_):  # of tensors that were parts of one
            result = _plain(result.flatten())[0]
        yield array, result


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


def refuse_loss(before: pa.Array, after: pa.Array) -> None:
    """Raise OverflowError if `after`, the plain values `before` cast to another type, lost something.

    Floats may be rounded to a narrower type, but not become infinite. Text must be the one that Arrow or Python writes
    for the number or bool, for a decimal with any number of zeros at its end; times in text may be spelled in any way.
    """
    source, target = before.type, after.type
    if source == target:
        return
    if any(is_one(source) and is_one(target) for is_one in _CHECKED_BY_ARROW) and not _moves_clock(source, target):
        return
    if is_narrowed(source, target):
        exact, cast = np.asarray(before.drop_null()), np.asarray(after.drop_null())
        if np.any(np.isinf(cast) & np.isfinite(exact)):
            raise OverflowError("a finite value would become infinite")
    elif is_text_or_bytes(source):
        if not is_text_or_bytes(target) and not t.is_temporal(target) and not _is_spelled_so(before, after):
            raise OverflowError("the text is another than that of the number")
    elif _moves_clock(source, target) or not _is_kept(before, after):
        raise OverflowError("the cast would change it")


def is_narrowed(source: pa.DataType, target: pa.DataType) -> bool:
    """True if floats are cast to floats of fewer bits."""
    return bool(t.is_floating(source) and t.is_floating(target) and source.bit_width > target.bit_width)


def _moves_clock(source: pa.DataType, target: pa.DataType) -> bool:
    """True if times lose or get another zone than UTC, of which Arrow makes other times on the clock."""
    if not t.is_timestamp(target) or not (t.is_timestamp(source) or t.is_date(source)):
        return False
    zones = {getattr(source, "tz", None), target.tz}
    return None in zones and not zones <= {None, *_UTC}


def _is_spelled_so(before: pa.Array, after: pa.Array) -> bool:
    """True if text spells the numbers or bools `after`, all as Arrow writes them or all as Python does."""
    text = before.cast(pa.large_string()).drop_null()
    values = after.drop_null()
    if values.cast(pa.large_string()).equals(text):
        return True
    if t.is_integer(values.type):
        return False
    if t.is_decimal(values.type):  # of any number of digits after the point
        pairs = zip(text.to_pylist(), values.to_pylist(), strict=True)
        return all(_DECIMAL.fullmatch(spelled) and Decimal(spelled) == value for spelled, value in pairs)
    plain = np.asarray(values) if t.is_floating(values.type) else values.to_pylist()
    return list(map(str, plain)) == text.to_pylist()


def _is_kept(before: pa.Array, after: pa.Array) -> bool:
    """True if a cast has kept all values: a cast back makes them again, -0.0 and NaN among them.

    Times as text are not cast back, but only searched for those out of range.
    """
    import pyarrow.compute as pc

    if t.is_time(before.type) and is_text_or_bytes(after.type):  # Arrow (26.0) writes all digits, and parses no times
        return not pc.any(pc.starts_with(after.cast(pa.large_string()), "<")).as_py()  # "<value out of range: …>"
    try:
        back = _cast_back(after, before.type)
    except (pa.ArrowException, OverflowError):
        return False
    if not t.is_floating(before.type):
        return bool(back.equals(before))
    if t.is_integer(after.type) and after.type.bit_width == 64:
        greatest = pa.scalar(np.iinfo(after.type.to_pandas_dtype()).max, after.type)
        if pc.any(pc.equal(after, greatest)).as_py():  # no float is it, but some processors cast larger floats to it
            return False
    exact, kept = np.asarray(before.drop_null()), np.asarray(back.drop_null())
    negative_zero = (exact == 0) & (np.signbit(exact) != np.signbit(kept))
    return np.array_equal(kept, exact, equal_nan=True) and not negative_zero.any()


def _cast_back(values: pa.Array, type_: pa.DataType) -> pa.Array:
    import pyarrow.compute as pc

    if t.is_decimal(type_):  # Arrow (26.0) refuses some casts to fewer digits even where all of the values fit
        values = values.cast(pa.decimal256(76, type_.scale))
    elif t.is_decimal(values.type) and t.is_floating(type_):  # its casts of decimals to float32 are not exact
        values = values.cast(pa.float64())
    elif t.is_date(values.type) and t.is_timestamp(type_) and type_.tz is not None:  # it is the local date
        local = values.cast(pa.timestamp(type_.unit))
        return pc.assume_timezone(local, type_.tz, ambiguous="earliest", nonexistent="earliest")
    elif t.is_string_view(values.type):  # it does not parse views
        values = values.cast(pa.string())
    return values.cast(type_, safe=False)
