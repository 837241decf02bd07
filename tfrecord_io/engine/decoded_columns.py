"""The columns of one `Decoder.take`, by feature; an engine may make them, and Arrow arrays of them, when asked."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cached_property
from itertools import repeat
from operator import itemgetter

import numpy as np

from tfrecord_io.engine.contract import Array, ColumnBuffers, FeatureName

LIST_MARK = "\udc80"  # not part of any name: names are UTF-8


class Fact(IntEnum):
    """What a column shows of itself as a number: fields of `ColumnBuffers`. The kernel has the same order."""

    KIND = 0
    LAYOUT = 1
    TEXT = 2
    ROWS = 3
    NULL_COUNT = 4
    FIRST_ROW = 5
    LIST_ROW = 6
    BINARY_ROW = 7
    IS_LIST = 8  # whether it is a feature list
    HAS_OTHERS = 9


class ColumnNames:
    """The names of a decoder's columns; the same object for all takes with these columns.

    Attributes
    ----------
    names : list of str
    steps : list of bool
        Whether it is a feature list.
    """

    def __init__(self, features: Sequence[FeatureName]) -> None:
        self.names = list(map(itemgetter(0), features))
        self.steps = list(map(itemgetter(1), features))

    @cached_property
    def index(self) -> dict[str, int]:
        """The number of the column of each feature; see `by_feature`."""
        index = dict(zip(self.names, range(len(self.names)), strict=True))
        if len(index) == len(self.names):
            return index
        context = {name: at for at, name in enumerate(self.names) if not self.steps[at]}
        lists = {name: at for at, name in enumerate(self.names) if self.steps[at]}
        return lists | context | {name + LIST_MARK: lists[name] for name in context.keys() & lists.keys()}


class LazyColumns(Sequence[ColumnBuffers]):
    """Decoded columns that an engine holds, and hands over one by one or as Arrow arrays.

    Attributes
    ----------
    names : ColumnNames
    """

    names: ColumnNames

    @abstractmethod
    def facts(self) -> Array:
        """The facts of all columns: int64, a row for each column and a column for each `Fact`."""

    @abstractmethod
    def shown(self) -> bytes:
        """The facts but for the numbers of rows: columns of the same names with the same of these show the same."""

    @abstractmethod
    def arrow_arrays(self, forms: tuple[Array, Array], indices: Sequence[int]) -> tuple[object, int, list[int]]:
        """Make Arrow arrays of the columns at `indices` in these forms (`tfrecord_io.arrow.decode.batch_builder`).

        Returns
        -------
        owner : object
            Releases the arrays that were not imported; they are valid as long as it exists.
        batch : int
            Address of a ``struct ArrowArray`` of the C data interface, which has all of them as its children and is
            freed as a whole: where all were made and none is large. Else 0.
        addresses : list of int
            Without a `batch`, the address of the array of each column; 0 where the column is absent (index −1) or its
            rows are not plainly of the form.
        """


class FeatureColumns(Mapping[str, ColumnBuffers]):
    """Lazy columns by feature."""

    def __init__(self, columns: LazyColumns) -> None:
        self.columns = columns
        self._index = columns.names.index

    def __getitem__(self, feature: str) -> ColumnBuffers:
        return self.columns[self._index[feature]]

    def __contains__(self, feature: object) -> bool:
        return feature in self._index

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def facts(self) -> Array:
        """The facts of the columns in the order of iteration; see `facts_of`."""
        return self.columns.facts()[list(self._index.values())]

    def shown(self) -> bytes:
        """See `LazyColumns.shown`."""
        return self.columns.shown()

    def arrow_arrays(self, forms: tuple[Array, Array], features: Iterable[str]) -> tuple[object, int, list[int]]:
        """See `LazyColumns.arrow_arrays`."""
        return self.columns.arrow_arrays(forms, list(map(self._index.get, features, repeat(-1))))


def by_feature(columns: Sequence[ColumnBuffers]) -> Mapping[str, ColumnBuffers]:
    """Columns by feature, as `BatchBuilder.batch` takes them.

    Where the context and the feature lists have the same name, it is that of the context feature; with `LIST_MARK` it
    is that of the feature list.
    """
    if isinstance(columns, LazyColumns):
        return FeatureColumns(columns)
    names = ColumnNames([(column.name, column.steps is not None) for column in columns])
    return {feature: columns[at] for feature, at in names.index.items()}


def facts_of(columns: Mapping[str, ColumnBuffers]) -> Array:
    """The facts of columns by feature: int64, a row for each column and a column for each `Fact`."""
    if isinstance(columns, FeatureColumns):
        return columns.facts()
    facts = [
        (c.kind, c.layout, c.text, c.rows, c.null_count, c.first_row, c.list_row, c.binary_row, c.is_list, c.has_others)
        for c in columns.values()
    ]
    return np.array(facts, np.int64).reshape(-1, len(Fact))
