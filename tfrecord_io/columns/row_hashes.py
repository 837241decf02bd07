"""Hash rows to 128 bits: equal values have equal hashes; so have -0.0 and 0.0, and all NaN."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfrecord_io.bytes import Array
from tfrecord_io.columns.column import Column

_SEEDS = (np.uint64(1), np.uint64(2))
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio


class RowHashes:
    """Hashes of rows, of 128 bits each.

    Attributes
    ----------
    values : array of `DTYPE`
        One for each row; it may have more fields.

    Examples
    --------
    >>> hashes = RowHashes.from_columns([pa.array([1.0, -0.0, 0.0]), pa.array([["a"], [], []])], 3).values
    >>> (hashes[0] == hashes[1]).item(), (hashes[1] == hashes[2]).item()
    (False, True)
    """

    DTYPE = np.dtype([("first", "<u8"), ("second", "<u8")])
    __slots__ = ("values",)

    def __init__(self, values: Array) -> None:
        self.values = values

    @classmethod
    def from_columns(cls, columns: Sequence[pa.Array], count: int) -> RowHashes:
        """Hash each of `count` rows."""
        return cls.join([cls.hash_column(column) for column in columns], count)

    @classmethod
    def join(cls, columns: Sequence[Sequence[Array]], count: int) -> RowHashes:
        """Combine what `hash_column` returns for each column into hashes of rows."""
        hashes = np.zeros(count, cls.DTYPE)
        for column in columns:
            for name, values in zip(("first", "second"), column, strict=True):
                hashes[name] = _mix_bits(hashes[name] * np.uint64(31) + values)
        return cls(hashes)

    def runs(self) -> tuple[Array, Array]:
        """Return a stable order, with equal hashes together, and marks at the first hash of each run."""
        order = np.lexsort((self.values["second"], self.values["first"]))
        starts = np.arange(len(order)) == 0
        for name in ("first", "second"):
            values = self.values[name][order]
            starts[1:] |= values[1:] != values[:-1]
        return order, starts

    @staticmethod
    def is_for(type_: pa.DataType) -> bool:
        """True if `hash_column` takes columns of a type: single values, and lists of such types."""
        if pa.types.is_dictionary(type_) or Column(type_).is_list:
            return RowHashes.is_for(type_.value_type)
        return bool(
            Column(type_).is_text
            or Column(type_).is_bytes
            or pa.types.is_null(type_)
            or pa.types.is_decimal(type_)
            or (pa.types.is_primitive(type_) and not pa.types.is_interval(type_))
        )

    @staticmethod
    def hash_column(column: pa.Array) -> list[Array]:
        """Hash each value twice, to 64 bits; missing values, too."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_null(column.type):
            return [np.zeros(len(column), np.uint64)] * 2
        is_valid = np.asarray(column.is_valid())
        if Column(column.type).is_list:
            hashes = _list_hashes(column)
        elif pa.types.is_primitive(column.type) and not pa.types.is_decimal(column.type):
            values = _as_integers(column)
            hashes = [_mix_bits(values ^ seed) for seed in _SEEDS]
        else:
            import pandas as pd

            texts = column.cast(pa.string()) if pa.types.is_decimal(column.type) else column
            objects = texts.to_numpy(zero_copy_only=False)
            hashes = [pd.util.hash_array(objects, hash_key=f"{seed:016d}", categorize=False) for seed in _SEEDS]
        return [np.where(is_valid, column_hash, seed) for seed, column_hash in zip(_SEEDS, hashes, strict=True)]


def _list_hashes(column: pa.Array) -> list[Array]:
    """Hash each list twice: its length, and the sum of its items mixed with their positions."""
    lengths = np.asarray(pc.list_value_length(column).fill_null(0)).astype(np.int64)
    begins = np.cumsum(lengths) - lengths
    positions = (np.arange(lengths.sum()) - np.repeat(begins, lengths)).astype(np.uint64)
    has_items = lengths > 0
    hashes = []
    for items in RowHashes.hash_column(column.flatten()):
        sums = np.zeros(len(lengths), np.uint64)
        if has_items.any():  # the items of a list end where those of the next list begin
            sums[has_items] = np.add.reduceat(_mix_bits(items + positions * _GOLDEN), begins[has_items])
        hashes.append(_mix_bits(sums + lengths.astype(np.uint64) * _GOLDEN))
    return hashes


def _as_integers(column: pa.Array) -> Array:
    """Convert values of fixed width to integers that differ where the values do; missing values are 0."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if pa.types.is_floating(column.type):
        values = np.asarray(column.cast(pa.float64()).fill_null(0.0)) + 0.0  # -0.0 becomes 0.0
        return np.where(np.isnan(values), np.nan, values).view(np.uint64)
    width = column.type.bit_width // 8
    values = column.view(f"int{8 * width}") if pa.types.is_temporal(column.type) else column
    return np.asarray(values.fill_null(0)).astype(np.int64).view(np.uint64)


def _mix_bits(values: Array) -> Array:
    """Mix the bits of 64-bit integers by a bijection, the finalizer of SplitMix64: each bit depends on all."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(values)
