"""Values of a feature type (int64, float32 or bytes) as values of a declared Arrow type, categories among them.

Types of the same width share the memory; for narrower ones all values are checked at once, and only a check that fails
looks for the first value that does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from functools import partial

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.bytes import Array, ColumnBuffers, Kind
from tfrecord_io.columns.arrow.buffers import (
    bitmap_buffer,
    bitmap_of,
    fixed_width,
    is_same_memory,
    replace_columns,
    scatter,
    typed_view,
    variable_width,
)
from tfrecord_io.columns.arrow.row_fault import RowFault, first_failing
from tfrecord_io.columns.schema.column_features import nested_handed
from tfrecord_io.columns.schema.types import (
    DAY,
    has_dictionary,
    hashable,
    integer_range,
    kind_of,
    types_within,
    uncommon_columns,
)

Cast = Callable[[int, int, Array | None, Array, Array | None], pa.Array]
"""Called with count, null count, validity, values and, for bytes, their offsets; raises RowFault."""

_DECIMAL = r"[+-]?(?=\.?[0-9])[0-9]*(\.[0-9]*)?([eE][+-]?[0-9]{1,9})?"
_EXACT = Context(prec=MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)
_REFUSED = (pa.ArrowInvalid, pa.ArrowNotImplementedError)
Encode = Callable[[pa.Array], pa.DictionaryArray]
"""Makes a dictionary array of plain values of the dictionary's value type; raises RowFault."""


def value_cast(type_: pa.DataType, dictionary: pa.Array | None = None) -> Cast:
    """The cast of single values to `type_`, which is neither a list nor a struct.

    Without a `dictionary`, the categories of a dictionary type are those that occur.
    """
    if t.is_dictionary(type_):
        decode, encode = value_cast(type_.value_type), category_encode(type_, dictionary, rounded=True)
        return lambda *run: encode(decode(*run))
    if isinstance(type_, pa.BaseExtensionType):
        storage = value_cast(type_.storage_type)
        return lambda *run: pa.ExtensionArray.from_storage(type_, storage(*run))
    return {Kind.INT64: _from_int64, Kind.FLOAT: _from_float, Kind.BYTES: _from_bytes}[kind_of(type_)](type_)


def _from_int64(type_: pa.DataType) -> Cast:
    if type_ == pa.int64() or t.is_timestamp(type_) or t.is_duration(type_):
        return lambda count, nulls, validity, values, _: fixed_width(
            type_, count, nulls=nulls, validity=validity, values=values
        )
    low, high = integer_range(type_)
    is_bool = t.is_boolean(type_)
    dtype = np.dtype(f"i{max(type_.bit_width // 8, 1)}")  # keeps the low bits, so it serves unsigned types as well

    def cast(count: int, nulls: int, validity: Array | None, values: Array, _: Array | None) -> pa.Array:
        if count and (values.min() < low or values.max() > high):
            raise _bad_value((values < low) | (values > high), values, type_)
        if type_ == pa.date64() and np.any(bad := values % DAY["ms"] != 0):
            raise _bad_value(bad, values, type_)
        # to pack int64 as bits is many times slower
        narrow = bitmap_of(values.astype(bool)) if is_bool else values.astype(dtype, copy=False)
        return fixed_width(type_, count, nulls=nulls, validity=validity, values=narrow)

    return cast


def _from_float(type_: pa.DataType) -> Cast:
    dtype = np.dtype(f"f{type_.bit_width // 8}")

    def cast(count: int, nulls: int, validity: Array | None, values: Array, _: Array | None) -> pa.Array:
        with np.errstate(over="ignore", invalid="ignore"):
            cast_values = values.astype(dtype, copy=False)
            if values.dtype == np.int64 and np.any(bad := cast_values.astype(np.int64) != values):
                row, advice = int(bad.argmax()), None if dtype == np.float64 else "declare float64"
                reason = f"the integer cannot be read as {type_} without rounding"
                raise RowFault(row, reason, expected=str(type_), got=int(values[row]), hint=advice)
        if dtype == np.float16 and np.any(bad := np.isinf(cast_values) & ~np.isinf(values)):
            raise _bad_value(bad, values, type_)
        return fixed_width(type_, count, nulls=nulls, validity=validity, values=cast_values)

    return cast


def _from_bytes(type_: pa.DataType) -> Cast:
    if t.is_decimal(type_):
        return partial(_decimal, type_)
    if t.is_fixed_size_binary(type_):
        return partial(_fixed_size, type_)

    def cast(count: int, nulls: int, validity: Array | None, values: Array, offsets: Array | None) -> pa.Array:
        assert offsets is not None
        return variable_width(type_, count, nulls=nulls, validity=validity, offsets=offsets, values=values)

    return cast


def _fixed_size(
    type_: pa.DataType, count: int, nulls: int, validity: Array | None, values: Array, offsets: Array | None
) -> pa.Array:
    assert offsets is not None
    width, mask, sizes = type_.byte_width, ColumnBuffers.mask_of(validity if nulls else None, count), np.diff(offsets)
    if np.any(bad := (sizes != width) & mask):
        row = int(bad.argmax())
        reason = f"a {type_} needs {width} bytes, the value has {sizes[row]}"
        raise RowFault(row, reason, expected=width, got=int(sizes[row]))
    data = scatter(values.reshape(-1, width), mask).reshape(-1) if nulls and width else values
    return fixed_width(type_, count, nulls=nulls, validity=validity, values=data)


def number_array(type_: pa.DataType, data: Array) -> pa.Array:
    """An array without nulls from the bytes of its numbers; of bools one byte each."""
    if t.is_boolean(type_):
        return fixed_width(type_, len(data), nulls=0, validity=None, values=bitmap_of(data))
    width = type_.bit_width // 8
    if data.ctypes.data % width:
        data = data.copy()
    return fixed_width(type_, len(data) // width, nulls=0, validity=None, values=data)


def _decimal(
    type_: pa.DataType, count: int, nulls: int, validity: Array | None, values: Array, offsets: Array | None
) -> pa.Array:
    """From text; from integers; or from float32: the nearest decimal of the scale."""
    if offsets is None:
        numbers = pa.int64() if values.dtype == np.int64 else pa.float32()
        return checked_cast(fixed_width(numbers, count, nulls=nulls, validity=validity, values=values), type_)
    return checked_cast(
        variable_width(pa.binary(), count, nulls=nulls, validity=validity, offsets=offsets, values=values), type_
    )


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

    try:
        return cast(values)
    except _REFUSED:
        row = first_failing(len(values), lambda begin, end: cast(values[begin:end]), _REFUSED)
        if is_text:
            raise RowFault(row, f"the bytes are not a valid {type_}", expected=str(type_)) from None
        got = values[row].as_py()
        raise RowFault(row, f"the value is not a valid {type_}", expected=str(type_), got=got) from None


def _plain_decimals(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """Numbers as text of at most the digits of the type, without exponents; ArrowInvalid if one does not fit.

    Arrow (26.0) does not check this when it casts text: it wraps around, or reads beyond its table of powers of ten.
    """
    import pyarrow.compute as pc

    fraction, whole = type_.scale, type_.precision - type_.scale
    usual = pc.match_substring_regex(texts, rf"^[+-]?0*[0-9]{{0,{whole}}}(\.[0-9]{{0,{fraction}}})?$")
    if pc.all(usual).as_py() is not False:
        return texts
    plain: list[str | None] = []
    is_number = re.compile(_DECIMAL).fullmatch
    for text in texts.to_pylist():
        if text is None:
            plain.append(None)
            continue
        if is_number(text) is None:
            raise pa.ArrowInvalid("not a number")
        number = Decimal(text).normalize(_EXACT)
        if number and (number.adjusted() >= whole or -int(number.as_tuple().exponent) > fraction):
            raise pa.ArrowInvalid("the number has too many digits")
        plain.append(f"{number:f}" if number else "0")
    return pa.array(plain)


def _bad_value(bad: Array, values: Array, type_: pa.DataType) -> RowFault:
    row = int(bad.argmax())
    got = values[row].item()
    return RowFault(row, f"the value is not a valid {type_}", expected=str(type_), got=got)


def category_encode(type_: pa.DictionaryType, categories: pa.Array | None, *, rounded: bool) -> Encode:
    """How plain values become an array of a dictionary type.

    A value that is none of the `categories` is a RowFault; by default they are the values that occur. Where floats were
    `rounded` to float32, a value is the category that rounds to it; of several the nearest, of equally near ones the
    first.
    """
    if categories is None:
        return lambda plain: _encode_occurring(plain, type_)
    import pyarrow.compute as pc

    values = categories.cast(type_.value_type)
    if values.null_count:  # pandas and `unify_dictionaries` take no null, and Arrow (20.0) drops none of decimal32
        values = values.take(pa.array(np.flatnonzero(np.asarray(values.is_valid()))))
    keys, order = _keys(values, rounded)

    def encode(plain: pa.Array) -> pa.DictionaryArray:
        compared = plain.cast(pa.float32()) if rounded and t.is_float64(plain.type) else hashable(plain)
        indices = pc.index_in(compared, value_set=keys, skip_nulls=True)
        if indices.null_count != plain.null_count:
            unknown = np.asarray(pc.and_(pc.is_null(indices), pc.is_valid(plain)))
            reason = f"the value is not one of the {len(values)} categories"
            raise RowFault(int(unknown.argmax()), reason, expected=f"one of {len(values)} categories")
        indices = indices if order is None else order.take(indices)
        return pa.DictionaryArray.from_arrays(narrow_indices(indices, type_), values, ordered=type_.ordered)

    return encode


def has_all(categories: pa.Array, others: pa.Array, *, ordered: bool = False) -> bool:
    """True if all of `others` but nulls are in `categories`, in the same order if they are `ordered`."""
    import pyarrow.compute as pc

    if is_same_memory(others, categories) or others.equals(categories):
        return True
    at = pc.index_in(hashable(others.drop_null()), value_set=hashable(categories))
    return at.null_count == 0 and not (ordered and (np.diff(at.to_numpy()) < 0).any())


def collide_as_float32(categories: pa.Array) -> bool:
    """True if two float64 categories are equal as float32: a stored value does not tell them apart.

    >>> collide_as_float32(pa.array([0.1, 0.1 + 1e-12])), collide_as_float32(pa.array([0.1, 0.2]))
    (True, False)
    """
    if not t.is_float64(categories.type):
        return False
    exact = np.asarray(categories.drop_null())
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        keys = exact.astype(np.float32)
    exact, keys = exact[np.isfinite(keys)], keys[np.isfinite(keys)].view(np.int32)  # 0.0 and -0.0 are distinguished
    order = np.lexsort((exact, keys))
    return bool(((np.diff(keys[order]) == 0) & (np.diff(exact[order]) != 0)).any())


def _encode_occurring(plain: pa.Array, type_: pa.DictionaryType) -> pa.DictionaryArray:
    encoded = hashable(plain).dictionary_encode()
    dictionary = encoded.dictionary.cast(plain.type)
    return pa.DictionaryArray.from_arrays(narrow_indices(encoded.indices, type_), dictionary, ordered=type_.ordered)


def _keys(categories: pa.Array, rounded: bool) -> tuple[pa.Array, pa.Array | None]:
    """Keys to compare values with, and the category of each key; None if keys are in the order of the categories."""
    if not rounded or not t.is_float64(categories.type):
        return hashable(categories), None
    exact = np.asarray(categories)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        keys = exact.astype(np.float32)
        distance = np.nan_to_num(np.abs(keys - exact), nan=0)
    order = np.argsort(distance, kind="stable")
    impossible = np.isinf(keys) & np.isfinite(exact)
    return pa.array(keys[order], pa.float32(), mask=impossible[order], from_pandas=False), pa.array(order)


def narrow_indices(indices: pa.Array, type_: pa.DictionaryType) -> pa.Array:
    """The indices as the type of those of a dictionary; RowFault at the first that it does not hold."""
    import pyarrow.compute as pc

    try:
        return indices.cast(type_.index_type)
    except pa.ArrowInvalid:
        high = 2 ** (type_.index_type.bit_width - t.is_signed_integer(type_.index_type)) - 1
        row = int(np.asarray(pc.fill_null(pc.greater(indices, high), False)).argmax())
        reason = f"more categories than {type_.index_type} indices can tell apart"
        raise RowFault(row, reason, expected=high + 1) from None


# ---- arrays of other layouts


def plain_layout(array: pa.Array) -> pa.Array:
    """The array without views and run-ends, for which Arrow (26.0) has few functions.

    >>> plain_layout(pa.array(["a"], pa.string_view())).type
    DataType(string)
    """
    type_ = nested_handed(array.type)
    if array.type.equals(type_):
        return array
    import pyarrow.compute as pc

    if t.is_run_end_encoded(array.type):
        numbers = pa.array(np.arange(len(array.values)))
        runs = pa.RunEndEncodedArray.from_arrays(array.run_ends, numbers).slice(array.offset, len(array))
        return plain_layout(array.values).take(pc.run_end_decode(runs))  # Arrow decodes no runs of views
    if t.is_dictionary(array.type):
        categories = plain_layout(array.dictionary)
        return pa.DictionaryArray.from_arrays(array.indices, categories, ordered=type_.ordered)
    if t.is_list(type_) or t.is_large_list(type_):
        ends = np.cumsum(np.asarray(pc.list_value_length(array).fill_null(0)))
        offsets = np.concatenate(([0], ends)).astype(np.int32 if t.is_list(type_) else np.int64)
        make = pa.ListArray if t.is_list(type_) else pa.LargeListArray
        return make.from_arrays(offsets, plain_layout(array.flatten()), type=type_, mask=array.is_null())
    if t.is_struct(type_):
        children = [plain_layout(array.field(at)) for at in range(type_.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(type_), mask=array.is_null())
    # Arrow (26.0) casts no unions, and makes invalid arrays of views of lists in maps and in lists of a fixed size.
    if t.is_union(type_):
        return _plain_union(array, type_)
    if t.is_map(type_):
        return _plain_map(array, type_)
    if t.is_fixed_size_list(type_):
        size = type_.list_size
        validity = bitmap_buffer(np.asarray(array.is_valid()) if array.null_count else None)
        values = plain_layout(array.values.slice(array.offset * size, len(array) * size))
        return pa.Array.from_buffers(type_, len(array), [validity], array.null_count, children=[values])
    return array.cast(type_)


def _plain_union(array: pa.UnionArray, type_: pa.DataType) -> pa.Array:
    children = [plain_layout(array.field(at)) for at in range(type_.num_fields)]
    buffers: list[pa.Buffer | None] = [None]  # of a slice, `type_codes` (Arrow 26.0) are those of other items
    for at, width in enumerate((np.int8, np.int32) if type_.mode == "dense" else (np.int8,), 1):
        numbers = typed_view(array.buffers()[at], np.dtype(width), array.offset, len(array))
        buffers.append(pa.py_buffer(numbers.copy()))
    return pa.Array.from_buffers(type_, len(array), buffers, 0, children=children)


def _plain_map(array: pa.MapArray, type_: pa.DataType) -> pa.Array:
    pairs, nulls = array.values, array.null_count
    lists = pa.Array.from_buffers(
        pa.list_(pairs.type), len(array), array.buffers()[:2], nulls, array.offset, children=[pairs]
    )
    plain = plain_layout(lists)
    fields = [plain.values.field(at) for at in range(2)]
    entries = pa.struct([type_.key_field, type_.item_field])
    pairs = pa.Array.from_buffers(entries, len(plain.values), [None], 0, children=fields)
    return pa.Array.from_buffers(type_, len(array), plain.buffers()[:2], nulls, children=[pairs])


def unify_table(table: pa.Table) -> pa.Table:
    """Give each dictionary column of a table one dictionary throughout, where Arrow can make one."""
    changed = {}
    for at in uncommon_columns(table.schema):
        field, column = table.schema.field(at), table.column(at)
        if column.num_chunks > 1 and has_dictionary(field.type) and can_unify(field.type):
            changed[at] = field, one_dictionary(column)
    return replace_columns(table, changed)


def one_dictionary(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A dictionary column with one dictionary, in a chunk at least.

    Of half floats Arrow (26.0) would take the bits for integers; of no chunks it makes an array of few types.
    """
    if not column.num_chunks:
        return pa.chunked_array([pa.nulls(0, column.type)])
    if not (t.is_dictionary(column.type) and t.is_float16(column.type.value_type)):
        return column.unify_dictionaries()

    def cast_categories(column: pa.ChunkedArray, value: pa.DataType) -> pa.ChunkedArray:
        type_ = pa.dictionary(column.type.index_type, value, column.type.ordered)
        make = partial(pa.DictionaryArray.from_arrays, ordered=type_.ordered)
        return pa.chunked_array([make(part.indices, part.dictionary.cast(value)) for part in column.chunks], type_)

    return cast_categories(cast_categories(column, pa.float32()).unify_dictionaries(), pa.float16())


def can_unify(type_: pa.DataType) -> bool:
    """True if Arrow (26.0) can make one dictionary of those of several arrays: not of lists and other nested types."""
    values = [part.value_type for part in types_within(type_) if t.is_dictionary(part)]
    if any(t.is_nested(value) or t.is_null(value) or isinstance(value, pa.BaseExtensionType) for value in values):
        return False
    return t.is_dictionary(type_) or not any(map(t.is_float16, values))
