"""Values of a feature type (int64, float32 or bytes) as values of a declared Arrow type.

Types of the same width share the memory; for narrower ones all values are checked at once, and only a check that fails
looks for the first value that does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from tfrecord_io.arrow.buffers import bitmap_of, fixed_width, mask_of, scatter, variable_width
from tfrecord_io.arrow.categories import category_encode
from tfrecord_io.arrow.row_fault import RowFault, first_refused
from tfrecord_io.engine.contract import Array
from tfrecord_io.format.kinds import Kind
from tfrecord_io.schema.types import is_list_like, kind_of

Cast = Callable[[int, int, Array | None, Array, Array | None], pa.Array]
"""Called with count, null count, validity, values and, for bytes, their offsets; raises RowFault."""

_DECIMAL = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?:[eE](?P<exponent>[+-]?[0-9]{1,9}))?"
)
_REFUSED = (pa.ArrowInvalid, pa.ArrowNotImplementedError)
DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def value_cast(type_: pa.DataType, dictionary: pa.Array | None = None) -> Cast:
    """The cast of single values to `type_`, which is neither a list nor a struct.

    Parameters
    ----------
    dictionary : pa.Array, optional
        The categories of a dictionary type; without it they are those that occur.
    """
    if t.is_dictionary(type_):
        return _dictionary(type_, dictionary)
    if isinstance(type_, pa.BaseExtensionType):
        return _extension(type_)
    return {Kind.INT64: _from_int64, Kind.FLOAT: _from_float, Kind.BYTES: _from_bytes}[kind_of(type_)](type_)


def _from_int64(type_: pa.DataType) -> Cast:
    if type_ == pa.int64() or t.is_timestamp(type_) or t.is_duration(type_):
        return lambda count, nulls, validity, values, _: fixed_width(type_, count, nulls, validity, values)
    low, high = integer_range(type_)
    narrow = _narrowing(type_)

    def cast(count: int, nulls: int, validity: Array | None, values: Array, _: Array | None) -> pa.Array:
        if count and (values.min() < low or values.max() > high):
            raise _bad_value((values < low) | (values > high), values, type_)
        if type_ == pa.date64() and np.any(bad := values % DAY["ms"] != 0):
            raise _bad_value(bad, values, type_)
        return fixed_width(type_, count, nulls, validity, narrow(values))

    return cast


def _narrowing(type_: pa.DataType) -> Callable[[Array], Array]:
    if t.is_boolean(type_):
        return lambda values: bitmap_of(values.astype(bool))  # packing int64 is many times slower
    if type_.bit_width == 64:
        return lambda values: values
    dtype = np.dtype(f"i{type_.bit_width // 8}")  # keeps the low bits, so it serves unsigned types as well
    return lambda values: values.astype(dtype)


def integer_range(type_: pa.DataType) -> tuple[int, int]:
    """Least and greatest int64 that is a value of the type."""
    if t.is_boolean(type_):
        return 0, 1
    if t.is_time(type_):
        return 0, DAY[type_.unit] - 1
    bits = type_.bit_width
    if t.is_unsigned_integer(type_):
        return 0, min(2**bits, 2**63) - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def _from_float(type_: pa.DataType) -> Cast:
    dtype = np.dtype(f"f{type_.bit_width // 8}")

    def cast(count: int, nulls: int, validity: Array | None, values: Array, _: Array | None) -> pa.Array:
        with np.errstate(over="ignore", invalid="ignore"):
            cast_values = values.astype(dtype, copy=False)
            if values.dtype == np.int64 and np.any(bad := cast_values.astype(np.int64) != values):
                row, advice = int(bad.argmax()), None if dtype == np.float64 else "declare float64"
                reason = f"the integer cannot be read as {type_} without rounding"
                raise RowFault(row, reason, expected=str(type_), got=int(values[row]), advice=advice)
        if dtype == np.float16 and np.any(bad := np.isinf(cast_values) & ~np.isinf(values)):
            raise _bad_value(bad, values, type_)
        return fixed_width(type_, count, nulls, validity, cast_values)

    return cast


def _from_bytes(type_: pa.DataType) -> Cast:
    if t.is_decimal(type_):
        return _decimal(type_)
    if t.is_fixed_size_binary(type_):
        return _fixed_size(type_)

    def cast(count: int, nulls: int, validity: Array | None, values: Array, offsets: Array | None) -> pa.Array:
        assert offsets is not None
        return variable_width(type_, count, nulls, validity, offsets, values)

    return cast


def _fixed_size(type_: pa.DataType) -> Cast:
    width = type_.byte_width

    def cast(count: int, nulls: int, validity: Array | None, values: Array, offsets: Array | None) -> pa.Array:
        assert offsets is not None
        mask = mask_of(validity if nulls else None, count)
        sizes = np.diff(offsets)
        if np.any(bad := (sizes != width) & mask):
            row = int(bad.argmax())
            reason = f"a {type_} needs {width} bytes, the value has {sizes[row]}"
            raise RowFault(row, reason, expected=width, got=int(sizes[row]))
        data = scatter(values.reshape(-1, width), mask).reshape(-1) if nulls and width else values
        return fixed_width(type_, count, nulls, validity, data)

    return cast


def number_array(type_: pa.DataType, data: Array) -> pa.Array:
    """An array without nulls from the bytes of its numbers; of bools one byte each."""
    if t.is_boolean(type_):
        return fixed_width(type_, len(data), 0, None, bitmap_of(data))
    width = type_.bit_width // 8
    if data.ctypes.data % width:
        data = data.copy()
    return fixed_width(type_, len(data) // width, 0, None, data)


def _decimal(type_: pa.DataType) -> Cast:
    """From text; from integers; or from float32: the nearest decimal of the scale."""

    def cast(count: int, nulls: int, validity: Array | None, values: Array, offsets: Array | None) -> pa.Array:
        if offsets is None:
            numbers = pa.int64() if values.dtype == np.int64 else pa.float32()
            return checked_cast(fixed_width(numbers, count, nulls, validity, values), type_)
        return checked_cast(variable_width(pa.binary(), count, nulls, validity, offsets, values), type_)

    return cast


def other_kinds(type_: pa.DataType) -> tuple[Kind, ...]:
    """The kinds that values of a type, or of lists of it, are also read from, besides the one that they are written as.

    Decimals, which are written as text, are read from numbers, and floats from integers that they can hold exactly.
    """
    value = type_.value_type if is_list_like(type_) else type_
    if t.is_decimal(value):
        return Kind.FLOAT, Kind.INT64
    return (Kind.INT64,) if t.is_floating(value) else ()


def checked_cast(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Arrow's cast of bytes to text, and of text or numbers to decimals.

    What it refuses becomes a RowFault at the first such value.
    """
    is_text = not (t.is_floating(values.type) or t.is_integer(values.type))
    is_exact = not t.is_floating(values.type)

    def cast(array: pa.Array) -> pa.Array:
        if t.is_decimal(type_) and is_exact:
            array = _plain_decimals(array.cast(pa.string()), type_)
        elif t.is_decimal(type_):  # Arrow (26.0) makes wrong decimals of 32 and 64 bits of small numbers
            wide = pa.decimal128(type_.precision, type_.scale) if type_.bit_width < 128 else type_
            array = array.cast(pa.float64()).cast(wide)
        return array.cast(type_)

    def refuses(begin: int, end: int) -> bool:
        try:
            cast(values[begin:end])
        except _REFUSED:
            return True
        return False

    try:
        return cast(values)
    except _REFUSED:
        row = first_refused(len(values), refuses)
        if is_text:
            raise RowFault(row, f"the bytes are not a valid {type_}", expected=str(type_)) from None
        got = values[row].as_py()
        raise RowFault(row, f"the value is not a valid {type_}", expected=str(type_), got=got) from None


def _plain_decimals(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """Numbers as text of at most the digits of the type, without exponents; ArrowInvalid if one does not fit.

    Arrow (26.0) does not check this when it casts text: it wraps around, or reads beyond its table of powers of ten.
    """
    fraction, whole = type_.scale, type_.precision - type_.scale
    usual = pc.match_substring_regex(texts, rf"^[+-]?0*[0-9]{{0,{whole}}}(\.[0-9]{{0,{fraction}}})?$")
    if pc.all(usual).as_py() is not False:
        return texts
    return pa.array([None if text is None else _plain_decimal(text, whole, fraction) for text in texts.to_pylist()])


def _plain_decimal(text: str, whole: int, fraction: int) -> str:
    match = _DECIMAL.fullmatch(text)
    digits = "" if match is None else match["whole"] + (match["fraction"] or "")
    if match is None or not digits:
        raise pa.ArrowInvalid("not a number")
    significant = digits.lstrip("0")
    point = len(match["whole"]) - (len(digits) - len(significant)) + int(match["exponent"] or 0)
    significant = significant.rstrip("0")
    if not significant:
        return "0"
    if point > whole or len(significant) - point > fraction:
        raise pa.ArrowInvalid("the number has too many digits")
    padded = significant.ljust(point, "0") if point > 0 else "0" * (1 - point) + significant
    return f"{match['sign']}{padded[: max(point, 1)]}.{padded[max(point, 1) :]}"


def _dictionary(type_: pa.DictionaryType, given: pa.Array | None) -> Cast:
    decode = value_cast(type_.value_type)
    encode = category_encode(type_, given, rounded=True)
    return lambda *run: encode(decode(*run))


def _extension(type_: Any) -> Cast:
    storage = value_cast(type_.storage_type)
    return lambda *run: pa.ExtensionArray.from_storage(type_, storage(*run))


def _bad_value(bad: Array, values: Array, type_: pa.DataType) -> RowFault:
    row = int(bad.argmax())
    got = values[row].item()
    return RowFault(row, f"the value is not a valid {type_}", expected=str(type_), got=got)
