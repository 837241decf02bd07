"""Values of the wire as values of a declared type.

A `Cast` turns a run of values of one kind (int64, float32, bytes), nulls among them, into an Arrow array of
a declared type. Types that share the wire's width are the same memory under another name; narrower ones are
checked as a whole, and only a check that fails looks for the first value that does not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from tfrecord_io.arrow.buffers import bitmap_of, fixed_width, mask_of, scatter, variable_width
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import printable
from tfrecord_io.format.kinds import Kind
from tfrecord_io.schema.leaf import RAW
from tfrecord_io.schema.types import kind_of

Cast = Callable[[int, int, Array | None, Array, Array | None], pa.Array]
"""Called with count, null count, validity, values and, for bytes, their offsets; raises RowFault."""

_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def value_cast(type_: pa.DataType, encoding: str, dictionary: pa.Array | None = None) -> Cast:
    """The cast of single values to `type_`, which is no list and no struct.

    Parameters
    ----------
    dictionary : pa.Array, optional
        The categories of a dictionary type; without it they are those that occur.
    """
    if encoding == RAW:
        return _raw(type_)
    if t.is_dictionary(type_):
        return _dictionary(type_, dictionary)
    if isinstance(type_, pa.BaseExtensionType):
        return _extension(type_)
    return {Kind.INT64: _from_int64, Kind.FLOAT: _from_float, Kind.BYTES: _from_bytes}[kind_of(type_)](type_)


def _from_int64(type_: pa.DataType) -> Cast:
    if type_ == pa.int64() or t.is_timestamp(type_) or t.is_duration(type_):
        return lambda count, nulls, validity, values, _: fixed_width(type_, count, nulls, validity, values)
    low, high = _range(type_)
    narrow = _narrowing(type_)

    def cast(count: int, nulls: int, validity: Array | None, values: Array, _: Array | None) -> pa.Array:
        if count and (values.min() < low or values.max() > high):
            raise _misfit((values < low) | (values > high), values, type_)
        if type_ == pa.date64() and np.any(bad := values % _DAY["ms"] != 0):
            raise _misfit(bad, values, type_)
        return fixed_width(type_, count, nulls, validity, narrow(values))

    return cast


def _narrowing(type_: pa.DataType) -> Callable[[Array], Array]:
    if t.is_boolean(type_):
        return lambda values: bitmap_of(values.astype(bool))  # packing int64 is many times slower
    if type_.bit_width == 64:
        return lambda values: values
    dtype = np.dtype(f"i{type_.bit_width // 8}")  # keeps the low bits, so it serves unsigned types as well
    return lambda values: values.astype(dtype)


def _range(type_: pa.DataType) -> tuple[int, int]:
    """What an int64 may be, to be a value of the type."""
    if t.is_boolean(type_):
        return 0, 1
    if t.is_time(type_):
        return 0, _DAY[type_.unit] - 1
    bits = type_.bit_width
    if t.is_unsigned_integer(type_):
        return 0, min(2**bits, 2**63) - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def _from_float(type_: pa.DataType) -> Cast:
    dtype = np.dtype(f"f{type_.bit_width // 8}")

    def cast(count: int, nulls: int, validity: Array | None, values: Array, _: Array | None) -> pa.Array:
        with np.errstate(over="ignore", invalid="ignore"):
            cast_values = values.astype(dtype, copy=False)
        if dtype == np.float16 and np.any(bad := np.isinf(cast_values) & ~np.isinf(values)):
            raise _misfit(bad, values, type_)
        return fixed_width(type_, count, nulls, validity, cast_values)

    return cast


def _from_bytes(type_: pa.DataType) -> Cast:
    if t.is_decimal(type_):
        return _decimal(type_)
    if t.is_fixed_size_binary(type_):
        return _sized(type_, type_.byte_width, lambda data: data)

    def cast(count: int, nulls: int, validity: Array | None, values: Array, offsets: Array | None) -> pa.Array:
        assert offsets is not None
        return variable_width(type_, count, nulls, validity, offsets, values)

    return cast


def _raw(type_: pa.DataType) -> Cast:
    """One value's bytes: C order, little-endian."""
    if t.is_boolean(type_):
        return _sized(type_, 1, _bits)
    return _sized(type_, type_.bit_width // 8, lambda data: data)


def raw_values(type_: pa.DataType) -> Callable[[Array], pa.Array]:
    """The cast of a run of bytes, whole items, to an array without nulls."""
    if t.is_boolean(type_):
        return lambda data: fixed_width(type_, len(data), 0, None, _bits(data))
    width = type_.bit_width // 8
    return lambda data: fixed_width(type_, len(data) // width, 0, None, data)


def _bits(data: Array) -> Array:
    if np.any(bad := data > 1):
        raise _misfit(bad, data, pa.bool_())
    return bitmap_of(data)


def _sized(type_: pa.DataType, width: int, convert: Callable[[Array], Array]) -> Cast:
    """Values of `width` bytes each."""

    def cast(count: int, nulls: int, validity: Array | None, values: Array, offsets: Array | None) -> pa.Array:
        assert offsets is not None
        mask = mask_of(validity if nulls else None, count)
        sizes = np.diff(offsets)
        if np.any(bad := (sizes != width) & mask):
            row = int(bad.argmax())
            raise RowFault(
                row, f"a {type_} needs {width} bytes, the value has {sizes[row]}", expected=width, got=int(sizes[row])
            )
        data = scatter(values.reshape(-1, width), mask).reshape(-1) if nulls and width else values
        return fixed_width(type_, count, nulls, validity, convert(data))

    return cast


def _decimal(type_: pa.DataType) -> Cast:
    def cast(count: int, nulls: int, validity: Array | None, values: Array, offsets: Array | None) -> pa.Array:
        assert offsets is not None
        return checked_cast(variable_width(pa.binary(), count, nulls, validity, offsets, values), type_)

    return cast


def checked_cast(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Arrow's cast of bytes to text or text to decimals; what it refuses becomes a RowFault at the first such value."""
    through = [pa.string(), type_] if t.is_decimal(type_) else [type_]

    def cast(array: pa.Array) -> pa.Array:
        for step in through:
            array = array.cast(step)
        return array

    try:
        return cast(values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        good, bad = 0, len(values)  # the first `good` values cast, the first `bad` do not
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                cast(values.slice(good, middle - good))
                good = middle
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                bad = middle
        raise RowFault(good, f"the bytes are no {type_}", expected=str(type_)) from None


def _dictionary(type_: pa.DataType, given: pa.Array | None) -> Cast:
    decode = value_cast(type_.value_type, "list")
    categories = None if given is None else given.cast(type_.value_type)

    def cast(count: int, nulls: int, validity: Array | None, values: Array, offsets: Array | None) -> pa.Array:
        plain = decode(count, nulls, validity, values, offsets)
        if categories is None:
            encoded = plain.dictionary_encode()
            indices, dictionary = encoded.indices, encoded.dictionary
        else:
            indices, dictionary = pc.index_in(plain, value_set=categories, skip_nulls=True), categories
            if indices.null_count != nulls:
                foreign = np.asarray(pc.and_(pc.is_null(indices), pc.is_valid(plain)))
                reason = f"the value is none of the {len(categories)} categories"
                raise RowFault(int(foreign.argmax()), reason, expected=f"one of {len(categories)} categories")
        return pa.DictionaryArray.from_arrays(_indices(indices, type_), dictionary, ordered=type_.ordered)

    return cast


def _indices(indices: pa.Array, type_: pa.DataType) -> pa.Array:
    try:
        return indices.cast(type_.index_type)
    except pa.ArrowInvalid:
        high = 2 ** (type_.index_type.bit_width - t.is_signed_integer(type_.index_type)) - 1
        row = int(np.asarray(pc.fill_null(pc.greater(indices, high), False)).argmax())
        raise RowFault(
            row, f"more categories than {type_.index_type} indices can tell apart", expected=high + 1
        ) from None


def _extension(type_: Any) -> Cast:
    storage = value_cast(type_.storage_type, "list")
    return lambda *run: pa.ExtensionArray.from_storage(type_, storage(*run))


def _misfit(bad: Array, values: Array, type_: pa.DataType) -> RowFault:
    row = int(bad.argmax())
    got = values[row].item()
    return RowFault(row, f"{printable(got)} is no {type_}", expected=str(type_), got=got)
