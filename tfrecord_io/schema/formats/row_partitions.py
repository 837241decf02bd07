"""How values are cut into rows: the classes that stand in ``tf.io.RaggedFeature``, and reading of foreign ones by attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tfrecord_io.errors import SchemaError, printable


@dataclass(frozen=True)
class RowSplits:
    """Rows by where each begins and the last one ends: 0 first."""

    key: str


@dataclass(frozen=True)
class RowLengths:
    """Rows by how many values each has."""

    key: str


@dataclass(frozen=True)
class RowStarts:
    """Rows by where each begins."""

    key: str


@dataclass(frozen=True)
class RowLimits:
    """Rows by where each ends."""

    key: str


@dataclass(frozen=True)
class ValueRowIds:
    """Rows by the row that each value is in."""

    key: str


@dataclass(frozen=True)
class UniformRowLength:
    """Rows of one length."""

    length: int

    def __post_init__(self) -> None:
        if not hasattr(self.length, "__index__") or self.length < 1:
            raise SchemaError(f"a row length is a number from 1 on, not {self.length!r}", got=self.length)


Partition = RowSplits | RowLengths | RowStarts | RowLimits | ValueRowIds | UniformRowLength
PARTITIONS: dict[str, type[Any]] = {
    each.__name__: each for each in (RowSplits, RowLengths, RowStarts, RowLimits, ValueRowIds, UniformRowLength)
}


def as_ours(source: Any, classes: Mapping[str, type[Any]]) -> Any:
    """The same in the class of ours that has the name of its class, or of one it is derived from.

    Raises
    ------
    SchemaError
        There is none, or it lacks an attribute.
    """
    class_ = next((classes[each.__name__] for each in type(source).__mro__ if each.__name__ in classes), None)
    if class_ is None:
        raise SchemaError(
            f"{printable(repr(source))} is none of {', '.join(classes)}",
            expected=tuple(classes),
            got=type(source).__name__,
        )
    if isinstance(source, class_):
        return source
    try:
        return class_(**{name: getattr(source, name) for name in (f.name for f in fields(class_))})
    except AttributeError as error:
        raise SchemaError(f"{printable(repr(source))} is no {class_.__name__}: {error}") from error
