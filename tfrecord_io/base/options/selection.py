"""The columns and rows that a read selects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from tfrecord_io.base.options.condition import Condition

_OF_ROWS = ("offset", "filters", "limit")  # in the order in which a read applies them
OF_DATASETS: set[str] = set()  # the keywords of reading, which `tfrecord_io.base.options.read` adds


class _Choices(NamedTuple):
    columns: tuple[str, ...] | None = None  # names, globs and !names
    filters: Condition | None = None
    offset: int = 0  # counts the records before the filter
    limit: int | None = None  # counts the rows that are delivered


class Selection(_Choices):
    """The columns and rows that a read selects."""

    __slots__ = ()

    ALL: ClassVar[Selection]  # of all columns and rows
    KEYWORDS: ClassVar[frozenset[str]] = frozenset(_Choices._fields)

    @property
    def choices(self) -> dict[str, Any]:
        """The fields by which something is left out."""
        names = ("columns", *_OF_ROWS)
        return {name: value for name in names if (value := getattr(self, name)) != getattr(Selection.ALL, name)}

    @property
    def is_range(self) -> bool:
        """True if an offset or a limit leaves out rows, however many there are."""
        return self.offset > 0 or self.limit is not None

    @property
    def range_parts(self) -> list[str]:
        """The offset and the limit, for display."""
        limit = [] if self.limit is None else [f"limit {self.limit:,}"]
        return [f"offset {self.offset:,}"] * bool(self.offset) + limit

    @staticmethod
    def check_names(name: str, value: object) -> list[str]:
        """The names of columns, at least one, that a keyword takes alone or in a sequence."""
        names = [value] if isinstance(value, str) else list(value) if isinstance(value, Iterable) else []
        if not names or not all(isinstance(item, str) for item in names):
            raise ValueError(f"{name}={value!r}: expected one or several names of columns")
        return names

    @staticmethod
    def check_mapping(name: str, value: object, example: str, other: str = "") -> None:
        """TypeError if the value of a keyword is neither None nor a dict by names, as the `example` is."""
        if not isinstance(value, Mapping | None):
            raise TypeError(f"{name}={value!r}: expected a dict such as {example}{other}")
        for key in value or ():
            if not isinstance(key, str):
                raise TypeError(f"{name} has the key {key!r}: expected names, as in {example}")

    def then(self, later: Selection) -> Selection | None:
        """This selection and a `later` one of its result as one read; None if no single read does that."""
        first, second = self.choices, later.choices
        latest = max((_OF_ROWS.index(name) for name in first if name in _OF_ROWS), default=-1)
        in_order = all(_OF_ROWS.index(name) > latest for name in second if name in _OF_ROWS)
        return Selection(**first, **second) if in_order and not first.keys() & second.keys() else None


Selection.ALL = Selection()
