"""Categories of dictionary columns: which of them each value is. Arrow has no hash of some types; see `_hashable`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from tfrecord_io.arrow.row_fault import RowFault

Encode = Callable[[pa.Array], pa.DictionaryArray]
"""Makes a dictionary array of plain values of the dictionary's value type; raises RowFault."""


def category_encode(type_: pa.DictionaryType, categories: pa.Array | None, *, rounded: bool) -> Encode:
    """How plain values become an array of a dictionary type.

    Parameters
    ----------
    categories : pa.Array, optional
        Those of the dictionary; a value that is none of them is a RowFault. By default the values that occur.
    rounded : bool
        Floats were stored as float32: a value is the category that rounds to it; of several the nearest, of equally
        near ones the first.
    """
    if categories is None:
        return lambda plain: _of_values(plain, type_)
    known = categories.cast(type_.value_type).drop_null()  # pandas and `unify_dictionaries` take no null
    keys, order = _keys(known, rounded)

    def encode(plain: pa.Array) -> pa.DictionaryArray:
        indices = pc.index_in(_keys_of_values(plain, rounded), value_set=keys, skip_nulls=True)
        if indices.null_count != plain.null_count:
            unknown = np.asarray(pc.and_(pc.is_null(indices), pc.is_valid(plain)))
            reason = f"the value is not one of the {len(known)} categories"
            raise RowFault(int(unknown.argmax()), reason, expected=f"one of {len(known)} categories")
        indices = indices if order is None else order.take(indices)
        return pa.DictionaryArray.from_arrays(_indices(indices, type_), known, ordered=type_.ordered)

    return encode


def has_all(categories: pa.Array, others: pa.Array) -> bool:
    """Whether all of `others` are in `categories`; nulls are not categories."""
    if others.equals(categories):
        return True
    return bool(pc.all(pc.is_in(_hashable(others.drop_null()), value_set=_hashable(categories))).as_py())


def collide_as_float32(categories: pa.Array) -> bool:
    """Whether two float64 categories are equal as float32, so that a value stored as one does not tell which it is.

    >>> collide_as_float32(pa.array([0.1, 0.1 + 1e-12])), collide_as_float32(pa.array([0.1, 0.2]))
    (True, False)
    """
    if not t.is_float64(categories.type):
        return False
    exact = np.asarray(categories.drop_null())
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        keys = exact.astype(np.float32)
    exact, keys = exact[np.isfinite(keys)], keys[np.isfinite(keys)].view(np.int32)  # 0.0 and -0.0 are told apart
    order = np.lexsort((exact, keys))
    return bool(((np.diff(keys[order]) == 0) & (np.diff(exact[order]) != 0)).any())


def join_categories(known: pa.Array, others: pa.Array) -> pa.Array:
    """`known`, followed by the new values of `others`; `known` itself if there are none."""
    if others.equals(known):  # also where it has a value twice
        return known
    joined = _hashable(pa.concat_arrays([known, others.cast(known.type)])).unique()
    return known if len(joined) == len(known) else joined.cast(known.type)


def _of_values(plain: pa.Array, type_: pa.DictionaryType) -> pa.DictionaryArray:
    encoded = _hashable(plain).dictionary_encode()
    dictionary = encoded.dictionary.cast(plain.type)
    return pa.DictionaryArray.from_arrays(_indices(encoded.indices, type_), dictionary, ordered=type_.ordered)


def _hashable(values: pa.Array) -> pa.Array:
    """The values as a type that Arrow (26.0) has a hash of, none of them changed."""
    if t.is_float16(values.type):
        return values.cast(pa.float32())
    if t.is_decimal32(values.type) or t.is_decimal64(values.type):
        return values.cast(pa.decimal128(values.type.precision, values.type.scale))
    return values


def _keys_of_values(plain: pa.Array, rounded: bool) -> pa.Array:
    return plain.cast(pa.float32()) if rounded and t.is_float64(plain.type) else _hashable(plain)


def _keys(categories: pa.Array, rounded: bool) -> tuple[pa.Array, pa.Array | None]:
    """What values are compared with, and the category of each; None: they are in the order of the categories."""
    if not rounded or not t.is_float64(categories.type):
        return _hashable(categories), None
    exact = np.asarray(categories)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        keys = exact.astype(np.float32)
        distance = np.nan_to_num(np.abs(keys - exact), nan=0)
    order = np.argsort(distance, kind="stable")
    impossible = np.isinf(keys) & np.isfinite(exact)
    return pa.array(keys[order], pa.float32(), mask=impossible[order], from_pandas=False), pa.array(order)


def _indices(indices: pa.Array, type_: pa.DictionaryType) -> pa.Array:
    try:
        return indices.cast(type_.index_type)
    except pa.ArrowInvalid:
        high = 2 ** (type_.index_type.bit_width - t.is_signed_integer(type_.index_type)) - 1
        row = int(np.asarray(pc.fill_null(pc.greater(indices, high), False)).argmax())
        reason = f"more categories than {type_.index_type} indices can tell apart"
        raise RowFault(row, reason, expected=high + 1) from None
