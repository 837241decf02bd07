"""How the lists of a column become arrays: options that hold for all columns of lists, or are dicts by column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from tfrecord_io.errors import say
from tfrecord_io.options.checked_options import INT64_MAX, check_choice, check_integer
from tfrecord_io.remedies import Keyword
from tfrecord_io.typing import ArrayLayout


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """How the lists of one column are represented.

    Attributes
    ----------
    ragged : str or None
    pad_value : object
    max_length : int or None
        Longer lists are truncated.
    from_left : bool
        Truncated lists keep their last values, not their first.
    length : int or None
        Of each row of a padded array; None: that of the longest list.
    multiple : int
        Without `length`: the next multiple of this.
    bucketed, packed : bool
        Whether rows have the length of their bucket; whether a row holds several lists.
    named_by : str or None
        The option that states `length`, and which a longer list contradicts.
    """

    ragged: ArrayLayout | None = None
    pad_value: Any = 0
    max_length: int | None = None
    from_left: bool = False
    length: int | None = None
    multiple: int = 1
    bucketed: bool = False
    packed: bool = False
    named_by: str | None = None


def of_column(value: Any, name: str, default: Any = None) -> Any:
    """What an option says about a column."""
    return value.get(name, default) if isinstance(value, Mapping) else value


def length_and_mode(value: Any, mode: str) -> tuple[int | None, bool]:
    """The number of a length, and whether it stands in a tuple with `mode`.

    >>> length_and_mode(512, "left"), length_and_mode((512, "left"), "left")
    ((512, False), (512, True))
    """
    return (value[0], True) if isinstance(value, tuple | list) else (value, False)


def check_layouts(name: str, value: object) -> None:
    """Raise ValueError or TypeError for a `ragged` that does not exist, also for one column."""
    for each in _each(name, value):
        check_choice(name, each, (None, *get_args(ArrayLayout)))


def check_lengths(name: str, value: object, mode: str) -> None:
    """Raise TypeError or ValueError for a length that is neither a positive integer nor (integer, mode)."""
    for each in _each(name, value):
        is_pair = isinstance(each, tuple | list)
        if is_pair and (len(each) != 2 or each[1] != mode):  # type: ignore[arg-type,index]
            raise ValueError(say("{}: expected a length", Keyword(name, repr(each))) | f"(length, {mode!r})")
        check_integer(name, length_and_mode(each, mode)[0], 1, INT64_MAX, optional=not is_pair)


def check_by_column(name: str, value: object) -> None:
    """Raise TypeError for a dict whose keys are not names of columns."""
    if isinstance(value, Mapping) and not all(isinstance(key, str) for key in value):
        raise TypeError(say("{}: expected names of columns as keys", Keyword(name, repr(value))))


def _each(name: str, value: object) -> list[object]:
    check_by_column(name, value)
    return list(value.values()) if isinstance(value, Mapping) else [value]
