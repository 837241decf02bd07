"""The row partitions of ``tf.io.RaggedFeature``, and conversion of TensorFlow's objects by their attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, get_args

from tfrecord_io.errors import SchemaError, printable


@dataclass(frozen=True)
class _Keyed:
    """Rows by the values of the feature `key`."""

    key: str


class RowSplits(_Keyed):
    """Rows by the offset at which each begins, and the end of the last one: 0 first."""


class RowLengths(_Keyed):
    """Rows by their numbers of values."""


class RowStarts(_Keyed):
    """Rows by the offset at which each begins."""


class RowLimits(_Keyed):
    """Rows by the offset at which each ends."""


class ValueRowIds(_Keyed):
    """Rows by the row number of each value."""


@dataclass(frozen=True)
class UniformRowLength:
    """Rows of one length."""

    length: int

    def __post_init__(self) -> None:
        if not hasattr(self.length, "__index__") or self.length < 1:
            raise SchemaError(f"length={self.length!r}: expected a number of at least 1", got=self.length)


Partition = RowSplits | RowLengths | RowStarts | RowLimits | ValueRowIds | UniformRowLength
PARTITIONS: dict[str, type[Any]] = {class_.__name__: class_ for class_ in get_args(Partition)}


def as_instance(source: Any, classes: Mapping[str, type[Any]]) -> Any:
    """Convert an object to the one of `classes` that has the name of its class, or of a base class.

    SchemaError if no class has that name, or an attribute is missing.
    """
    class_ = next((classes[base.__name__] for base in type(source).__mro__ if base.__name__ in classes), None)
    if class_ is None:
        reason = f"{printable(repr(source))} is not one of {', '.join(classes)}"
        raise SchemaError(reason, expected=tuple(classes), got=type(source).__name__)
    if isinstance(source, class_):
        return source
    try:
        return class_(*(getattr(source, f.name) for f in fields(class_)))
    except AttributeError as error:
        raise SchemaError(f"{printable(repr(source))} is not a {class_.__name__}: {error}") from error
