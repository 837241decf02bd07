"""Some of the records of files by number, and what numbers, slices and sequences of them name."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Protocol, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tfrecord_io.engine.contract import Array


class Records(Protocol):
    """Records by number: `RandomAccess`."""

    @property
    def schema(self) -> pa.Schema: ...

    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, key: npt.NDArray[np.integer[Any]]) -> pa.Table: ...


class Found(Protocol):
    """Records that an index found for a condition, which is applied to them when they are read."""

    def table(self, numbers: Array, /) -> pa.Table | None: ...

    def row(self, number: int, /) -> dict[str, Any] | None: ...

    def search(self) -> Array: ...


class SelectedRecords:
    """The records that meet a condition, numbered from 0 on; made by `RandomAccess.select`.

    It can be used while the files of the `RandomAccess` are open. It can be pickled with them.

    Attributes
    ----------
    numbers : int64 array
        Their numbers in the `RandomAccess`, ascending. Where an index found them, and a record that is read does not
        meet the condition, they become those of a search of all records.
    schema : pyarrow.Schema
        Of the tables.
    """

    def __init__(self, records: Records, numbers: Array, found: Found | None = None) -> None:
        self._records, self.numbers, self._found = records, numbers, found
        self.schema = records.schema

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        return f"<SelectedRecords: {len(self):,} of {self._records!r}>"

    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, key: slice | Sequence[int] | npt.NDArray[np.integer[Any]]) -> pa.Table: ...

    def __getitem__(self, key: Any) -> Any:
        """One record as a dict, or several as a pyarrow.Table; see `RandomAccess`."""
        if self._found is not None:
            chosen = self._chosen(key)
            read = self._found.row(chosen) if isinstance(chosen, int) else self._found.table(chosen)
            if read is not None:
                return read
            self.numbers, self._found = self._found.search(), None
        return self._records[self._chosen(key)]

    def _chosen(self, key: Any) -> Any:
        """The number of a record, or an array of numbers."""
        if isinstance(key, slice):
            return self.numbers[key]
        number = as_integer(key)
        if number is None:
            return self.numbers[normalized(as_integers(key), len(self), "the selection has")]
        return int(self.numbers[normalized(np.array([number]), len(self), "the selection has")][0])

    def to_table(self) -> pa.Table:
        """All of them as a pyarrow.Table, in their order."""
        return self[:]


def as_integer(key: Any) -> int | None:
    """The key as one number; None if it is not a number."""
    if isinstance(key, bool | np.bool_):
        raise TypeError("a record index is an integer, not a bool")
    if getattr(key, "ndim", 0):
        return None
    try:
        return operator.index(key)
    except TypeError:
        return None


def as_integers(key: Any) -> Array:
    """The key as an array of numbers."""
    if isinstance(key, str | bytes):
        advice = "open_random(…, key=…).lookup(…) finds records by a key"
        raise TypeError(f"a record index is an integer, not {type(key).__name__}; {advice}")
    numbers = np.asarray(key)
    if numbers.size == 0 and numbers.ndim == 1:
        return np.empty(0, np.int64)
    if numbers.ndim == 1 and numbers.dtype == object and all(type(number) is int for number in numbers):
        numbers = np.array([min(max(number, -(2**63)), 2**63 - 1) for number in numbers])  # which are out of range
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        got = f"a {type(key).__name__} ({numbers.ndim} dimensions, {numbers.dtype})"
        got = "bools" if numbers.dtype.kind == "b" else got
        raise TypeError(f"records are selected by an integer, a slice, or a sequence of integers, not by {got}")
    if numbers.dtype.kind == "u":  # large numbers must not wrap around to negative ones
        numbers = np.minimum(numbers.astype(np.uint64), np.uint64(2**63 - 1))
    return numbers.astype(np.int64)


def normalized(numbers: Array, count: int, owner: str = "the files have") -> Array:
    """Numbers counted from the start, of `count` records; raises IndexError if one is out of range."""
    invalid = (numbers < -count) | (numbers >= count)
    if invalid.any():
        raise IndexError(f"record {numbers[invalid.argmax()]} is out of range: {owner} {count} records")
    return np.where(numbers < 0, numbers + count, numbers)
