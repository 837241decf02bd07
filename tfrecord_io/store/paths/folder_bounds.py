"""Bounds of the values of partition columns in many folders: which of them can be there, without a look at each.

A manifest states them of each of its parts, so that a part is read only if one of its folders may be asked for. They
are of the texts in the names of folders, as types of columns may change; a type says what they tell of its values.

Tests: tests/store/paths/test_folder_bounds.py.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as t

from tfrecord_io.bytes import Array
from tfrecord_io.errors import SchemaError
from tfrecord_io.store.paths.column_folder import FEW_FOLDERS, ColumnFolder

_MOST_TEXT = 64  # characters: bounds of longer texts would make the manifest long
_INTEGERS = "^-?[0-9]{1,18}$"


class FolderBounds(NamedTuple):
    """The bounds of a partition column in some folders.

    Examples
    --------
    >>> FolderBounds.from_folders(["day=7", "day=10"])
    {'day': FolderBounds(texts=('10', '7'), integers=(7, 10), nulls=False)}
    """

    texts: tuple[str, str] | None  # the first and the last one, in the order of UTF-8; None if all are missing
    integers: tuple[int, int] | None  # the least and the greatest one, if all texts are integers
    nulls: bool  # the value of a folder is missing

    @classmethod
    def from_folders(cls, folders: Sequence[str]) -> dict[str, FolderBounds]:
        """Bound the values of each column in paths of folders; a column with long texts is left out."""
        try:
            columns = [name for name, _ in ColumnFolder.pairs_in(f"/{folders[0]}/", "/")] if folders else []
            texts = ColumnFolder.texts_in(folders, columns)
        except (SchemaError, UnicodeEncodeError):  # the error of who reads them
            return {}
        return {column: bounds for column in columns if (bounds := cls._from_texts(texts[column])) is not None}

    @classmethod
    def _from_texts(cls, all_texts: pa.StringArray) -> FolderBounds | None:
        import pyarrow.compute as pc

        nulls = all_texts.null_count > 0
        texts = all_texts.drop_null() if nulls else all_texts
        if not len(texts):
            return cls(None, None, nulls)
        bounds = tuple(pc.min_max(texts).as_py().values())
        if pc.max(pc.utf8_length(texts)).as_py() > _MOST_TEXT:
            return None
        if not pc.all(pc.match_substring_regex(texts, _INTEGERS)).as_py():
            return cls(bounds, None, nulls)
        return cls(bounds, tuple(pc.min_max(texts.cast(pa.int64())).as_py().values()), nulls)

    def contain(self, other: FolderBounds | None) -> bool:
        """True if values within other bounds are within these."""
        if other is None or (other.nulls and not self.nulls):
            return False
        if other.texts is None:
            return True
        if self.texts is None or self.texts[0] > other.texts[0] or self.texts[1] < other.texts[1]:
            return False
        if self.integers is None:
            return True
        integers = other.integers
        return integers is not None and self.integers[0] <= integers[0] and integers[1] <= self.integers[1]

    @staticmethod
    def batch(all_bounds: Sequence[Mapping[str, FolderBounds]], fields: Sequence[pa.Field]) -> pa.RecordBatch:
        """A row for each of some bounds, with the columns "least x" and "greatest x" for each field x of this type.

        Null where the bounds of the texts do not tell.

        >>> bounds = [FolderBounds.from_folders(["day=7", "day=10"]), {}]
        >>> FolderBounds.batch(bounds, [pa.field("day", pa.int16())]).to_pylist()
        [{'least day': 7, 'greatest day': 10}, {'least day': None, 'greatest day': None}]
        """
        columns: dict[str, pa.Array] = {}
        for field in fields:
            of_field = [bounds.get(field.name) for bounds in all_bounds]
            pairs: list[Any] = [None] * len(all_bounds)
            if is_integer := t.is_integer(field.type):
                pairs = [bounds and bounds.integers for bounds in of_field]
            elif _has_order_of_texts(field.type):
                pairs = [bounds and bounds.texts for bounds in of_field]
            for at, name in enumerate(("least", "greatest")):
                values = pa.array([pair and pair[at] for pair in pairs], pa.int64() if is_integer else pa.string())
                try:
                    columns[f"{name} {field.name}"] = values.cast(field.type)
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # a value is none of the type
                    columns[f"{name} {field.name}"] = pa.nulls(len(pairs), field.type)
        return pa.RecordBatch.from_arrays([*columns.values()], [*columns])

    def may_have_text(self, text: str | None) -> bool:
        """True if the value of a folder may have this text, which is missing if it is None."""
        if text is None or self.texts is None:
            return text is None and self.nulls
        if self.integers is not None and not (
            re.fullmatch(_INTEGERS, text) and self.integers[0] <= int(text) <= self.integers[1]
        ):
            return False
        return self.texts[0] <= text <= self.texts[1]


class SoughtFolders:
    """Values of partition columns that are looked for in folders.

    Parameters
    ----------
    folders : iterable of mapping of str to pyarrow.Scalar
        The values in each folder that is looked for, of the same columns.
    """

    def __init__(self, folders: Iterable[Mapping[str, pa.Scalar]]) -> None:
        values: dict[str, list[pa.Scalar]] = {}
        for folder in folders:
            for column, value in folder.items():
                values.setdefault(column, []).append(value)
        self._columns = {column: _SoughtValues(sought) for column, sought in values.items()}

    def may_be_in(self, bounds: Mapping[str, FolderBounds]) -> bool:
        """True if a folder with such values can be among folders with these bounds."""
        columns = self._columns.items()
        return bool(columns) and all(sought.may_be_in(bounds[name]) for name, sought in columns if name in bounds)

    def candidates(self, folders: Sequence[str]) -> list[str]:
        """Filter paths of folders to the possible ones; a few of these may have different values."""
        if not self._columns or not folders:
            return []
        try:
            texts = ColumnFolder.texts_in(folders, [*self._columns])
        except (SchemaError, UnicodeEncodeError):  # the error of who reads them
            return [*folders]
        are_possible = np.ones(len(folders), bool)
        for column, sought in self._columns.items():
            are_possible &= sought.are_possible(texts[column])
        return [folders[at] for at in np.flatnonzero(are_possible).tolist()]


class _SoughtValues:
    """Values of one column that are looked for."""

    def __init__(self, values: Sequence[pa.Scalar]) -> None:
        self._integers: list[int] = []
        self._texts: list[str] = []
        self._null, self._others = False, False  # others: of types whose texts do not have the order of their values
        for value in values:
            if not value.is_valid:
                self._null = True
            elif t.is_integer(value.type):
                self._integers.append(value.as_py())
            elif _has_order_of_texts(value.type):
                self._texts.append(str(value.as_py()))
            else:
                self._others = True
        self._integers.sort()
        self._texts.sort()

    def are_possible(self, texts: pa.StringArray) -> Array:
        """A boolean for each text of a folder: false if the value is known to be another one."""
        if self._others:
            return np.ones(len(texts), bool)
        if len(texts) <= FEW_FOLDERS:
            return self._are_possible_of_few(texts.to_pylist())
        import pyarrow.compute as pc

        are_possible = texts.is_null() if self._null else pa.array(np.zeros(len(texts), bool))
        if self._texts:
            are_possible = pc.or_(are_possible, pc.is_in(texts, pa.array(self._texts, pa.string())))
        if self._integers:
            if not pc.all(pc.match_substring_regex(texts, _INTEGERS)).as_py():
                return np.ones(len(texts), bool)
            integers = pa.array([value for value in self._integers if abs(value) < 10**18], pa.int64())
            are_possible = pc.or_(are_possible, pc.is_in(texts.cast(pa.int64()), integers))
        return are_possible.to_numpy(zero_copy_only=False)

    def _are_possible_of_few(self, texts: Sequence[str | None]) -> Array:
        if self._integers and not all(text is None or re.fullmatch(_INTEGERS, text) for text in texts):
            return np.ones(len(texts), bool)
        return np.array([self._null if text is None else self._has(text) for text in texts], bool)

    def _has(self, text: str) -> bool:
        """True if a text, of an integer if integers are looked for, is that of one of the values."""
        if _has_within(self._texts, (text, text)):
            return True
        number = int(text) if self._integers else 0
        return _has_within(self._integers, (number, number))

    def may_be_in(self, bounds: FolderBounds) -> bool:
        if self._null and bounds.nulls:
            return True
        if bounds.texts is None:
            return False
        if self._others or (self._integers and bounds.integers is None):
            return True
        return _has_within(self._texts, bounds.texts) or _has_within(self._integers, bounds.integers)


def _has_within(values: Sequence[Any], bounds: tuple[Any, Any] | None) -> bool:
    """True if one of the values, in ascending order, is within bounds."""
    if bounds is None or not values:
        return False
    at = bisect_left(values, bounds[0])
    return at < len(values) and bool(values[at] <= bounds[1])


def _has_order_of_texts(type_: pa.DataType) -> bool:
    """True if values of a type have the order of their texts, and equal ones one text."""
    return bool(t.is_string(type_) or t.is_large_string(type_) or t.is_date32(type_))
