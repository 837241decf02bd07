"""The columns of one `Decoder.take`, by feature; an engine may make them, and Arrow arrays of them, when asked."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from tfrecord_io.engine.contract import Array, ColumnBuffers

LIST_MARK = "\udc80"  # not part of any name: names are UTF-8


class ColumnNames:
    """The names of a decoder's columns; the same object for all takes with these columns.

    Attributes
    ----------
    names : list of str
    steps : list of bool
        Whether it is a feature list.
    """

    def __init__(self, names: Sequence[str], steps: Sequence[bool]) -> None:
        self.names = list(names)
        self.steps = list(steps)

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
    def outlines(self) -> list[ColumnBuffers]:
        """All columns, without the arrays of those that are not feature lists."""

    @abstractmethod
    def arrow_arrays(self, forms: Array, indices: Sequence[int]) -> tuple[object, list[int]]:
        """Make Arrow arrays of the columns at `indices` in these forms (`tfrecord_io.arrow.decode.forms`).

        Returns
        -------
        owner : object
            Releases the arrays that were not imported; they are valid as long as it exists.
        addresses : list of int
            Of a ``struct ArrowArray`` of the C data interface for each column; 0 where the column is absent (index −1)
            or its rows are not plainly of the form.
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

    def outlines(self) -> dict[str, ColumnBuffers]:
        """The same, without the arrays of columns that are not feature lists."""
        outlines = self.columns.outlines()
        return {feature: outlines[at] for feature, at in self._index.items()}

    def arrow_arrays(self, forms: Array, features: Iterable[str]) -> tuple[object, list[int]]:
        """See `LazyColumns.arrow_arrays`."""
        find = self._index.get
        return self.columns.arrow_arrays(forms, [find(feature, -1) for feature in features])


def by_feature(columns: Sequence[ColumnBuffers]) -> Mapping[str, ColumnBuffers]:
    """Columns by feature, as `BatchBuilder.batch` takes them.

    Where the context and the feature lists have the same name, it is that of the context feature; with `LIST_MARK` it
    is that of the feature list.
    """
    if isinstance(columns, LazyColumns):
        return FeatureColumns(columns)
    names = ColumnNames([column.name for column in columns], [column.steps is not None for column in columns])
    return {feature: columns[at] for feature, at in names.index.items()}


def outlines(columns: Mapping[str, ColumnBuffers]) -> Mapping[str, ColumnBuffers]:
    """What columns by feature show of themselves; the arrays may be missing, except those of feature lists."""
    return columns.outlines() if isinstance(columns, FeatureColumns) else columns
