"""Values of Python that Arrow would convert by a guess, or end the process at: both are refused.

Tests: tests/columns/arrow/input/test_from_arrays.py.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from numbers import Number
from operator import attrgetter
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import LIMITS, printable
from tfrecord_io.columns.arrow.input.array_likes import imported_module, is_object_dtype, is_series
from tfrecord_io.columns.arrow.input.no_arrow_form import inside, no_arrow_form, refused_dtypes
from tfrecord_io.columns.arrow.input.unstorable_time_zones import check_zone, is_named
from tfrecord_io.columns.schema.types import is_list_like, types_within
from tfrecord_io.errors import EncodeError

_TIMES = ("NaTType", "timedelta64")  # which Python takes for a datetime and an integer
_UNITS = "years months weeks days hours minutes seconds milliseconds microseconds nanoseconds".split()


def refuse_mixture(name: str, values: Any, type_: pa.DataType) -> None:
    """Refuse what Arrow converts silently: text among bytes to bytes, a datetime among dates to its day.

    So it does with numbers and UUIDs among times, and with the zones of some times, their nanoseconds, and half floats
    and UUIDs among integers; in lists and dicts, too.
    """
    if (isinstance(values, np.ndarray) or is_series(values)) and not is_object_dtype(values.dtype):
        return
    cells = values.to_numpy() if is_series(values) else values
    if is_list_like(type_):
        _refuse_in_lists(name, cells, type_.value_type)
    elif t.is_struct(type_):
        _refuse_in_dicts(name, cells, type_)
    else:
        _refuse_guesses(name, cells, type_)


def _refuse_in_lists(name: str, cells: Iterable[Any], type_: pa.DataType) -> None:
    """`refuse_mixture` of the items of lists, arrays and sets."""
    if not _may_guess(type_):
        return
    try:
        refuse_mixture(name, _flatten_items(cells), type_)
    except EncodeError as error:
        if error.record is not None:
            ends = np.cumsum([len(_items_of(cell)) for cell in cells])
            error.record = int(np.searchsorted(ends, error.record, "right"))
        raise inside("lists", error) from None


def _refuse_in_dicts(name: str, cells: Iterable[Any], type_: pa.DataType) -> None:
    """`refuse_mixture` of the values of dicts under each of their names."""
    for child in filter(lambda child: _may_guess(child.type), type_):
        values = [cell.get(child.name) if isinstance(cell, dict) else None for cell in cells]
        try:
            refuse_mixture(name, values, child.type)
        except EncodeError as error:
            raise inside(f"dicts, under '{printable(child.name)}'", error) from None


def _may_guess(type_: pa.DataType) -> bool:
    """True if Arrow may have converted other values to this type, or values in it."""
    checks = (t.is_binary, t.is_temporal, t.is_integer)
    return any(is_guess(part) for part in types_within(type_) for is_guess in checks)


def _refuse_guesses(name: str, cells: Any, type_: pa.DataType) -> None:
    """Refuse values that Arrow has converted to a column of another type, or only in part."""
    guessed = _guessed_classes(type_)
    classes = {cls for cls in set(map(type, cells)) if cls.__name__ not in _TIMES} if guessed else set()
    misfits = {cls for cls in classes if issubclass(cls, guessed)}
    are_nan = all(issubclass(cls, float) for cls in misfits)  # missing values of pandas
    if misfits and not (are_nan and all(math.isnan(cell) for cell in cells if isinstance(cell, float))):
        raise no_arrow_form(name, cells)
    if _has_unit(type_):
        if type_.unit == "us":
            _refuse_nanoseconds(name, cells, classes)
        _refuse_lost_zones(name, cells, classes, is_time_of_day=t.is_time(type_))
    elif t.is_interval(type_):
        _refuse_lost_offsets(name, cells)


def _guessed_classes(type_: pa.DataType) -> tuple[type, ...]:
    """Python classes whose values Arrow would convert to a type."""
    if t.is_binary(type_):
        return (str,)
    if t.is_date(type_):
        return (Number, UUID, dt.datetime)
    if _has_unit(type_):
        return (Number, UUID)
    return (np.float16, UUID) if t.is_integer(type_) else ()


def _has_unit(type_: pa.DataType) -> bool:
    """True for types of times and durations, which have a unit."""
    return t.is_timestamp(type_) or t.is_time(type_) or t.is_duration(type_)


def _refuse_nanoseconds(name: str, cells: Iterable[Any], classes: set[type]) -> None:
    """Refuse times of pandas, if they are of these classes, that a column of microseconds does not keep."""
    pandas = imported_module("pandas")
    if pandas is None or classes.isdisjoint((pandas.Timestamp, pandas.Timedelta)):
        return
    parts = {pandas.Timestamp: attrgetter("nanosecond"), pandas.Timedelta: attrgetter("nanoseconds")}
    row = next((row for row, cell in enumerate(cells) if type(cell) in parts and parts[type(cell)](cell)), None)
    if row is not None:
        reason = "a time has nanoseconds, which a column of Python objects does not keep"
        advice = "convert the column to datetime64[ns] or timedelta64[ns]"
        raise EncodeError(reason, feature=name, record=row, hint=advice)


def _refuse_lost_zones(name: str, cells: Iterable[Any], classes: set[type], *, is_time_of_day: bool) -> None:
    """Refuse times, if they are of these classes, whose time zones a column would not keep."""
    of_times = {cls for cls in classes if issubclass(cls, dt.datetime | dt.time)}
    times = [cell for cell in cells if type(cell) in of_times] if of_times else []
    have_zones = {time.tzinfo is not None for time in times}
    if len(have_zones) > 1:
        reason = "times with and without a time zone are mixed"
        raise EncodeError(reason, feature=name, hint="convert all to one of both")
    if have_zones != {True}:
        return
    if is_time_of_day:
        reason = "a time of day has a time zone, which Arrow does not have"
        raise EncodeError(reason, feature=name, hint="pass v.replace(tzinfo=None)")
    zone = times[0].tzinfo  # of the column: the others are converted to it
    if not is_named(zone):
        here = [time for time in times if time.tzinfo is zone]
        check_zone(
            name, zone, lambda named: all(time.astimezone(named).utcoffset() == time.utcoffset() for time in here)
        )


def _refuse_lost_offsets(name: str, cells: Iterable[Any]) -> None:
    """Refuse offsets of pandas and dateutil that an interval does not keep: with a factor, a weekday, parts of days."""
    for row, cell in enumerate(cells):
        if not hasattr(cell, "__dict__"):
            continue
        parts = {unit: vars(cell)[unit] for unit in _UNITS if isinstance(vars(cell).get(unit), int)}
        if not parts or type(cell)(**parts) != cell:
            reason = f"Arrow has no interval that is {printable(repr(cell))}"
            advice = "pass a pyarrow.MonthDayNano, or its text"
            raise EncodeError(reason, feature=name, record=row, hint=advice)


def refuse_times_among_others(cells: Any, level: int = 0) -> None:
    """Refuse arrays of times beside arrays of other values, or of other units, at any depth.

    Arrow (26.0) ends the process at times beside other values. It takes durations of several units, and version 19 also
    times, for counts of the first unit.
    """
    LIMITS.check_nesting(level)
    cells = cells.to_numpy() if is_series(cells) and is_object_dtype(cells.dtype) else cells
    if not isinstance(cells, list | tuple) and not (isinstance(cells, np.ndarray) and is_object_dtype(cells.dtype)):
        return
    types = set(map(type, cells))
    if np.ndarray in types:
        dtypes = {cell.dtype for cell in cells if isinstance(cell, np.ndarray)}
        dtypes = {dtype.newbyteorder("=") for dtype in dtypes}
        if len(dtypes) > 1 and any(dtype.kind in "mM" for dtype in dtypes):
            raise refused_dtypes(None, dtypes)
    if dict in types:
        for values in _nested_values([cell for cell in cells if isinstance(cell, dict)]):
            refuse_times_among_others(values, level + 1)
    if list in types or tuple in types:
        refuse_times_among_others(_flatten_items(cells), level + 1)


def _nested_values(dicts: Sequence[dict[Any, Any]]) -> Iterator[list[Any]]:
    """The values under each name of dicts; nothing if all are single values."""
    types = set(map(type, chain.from_iterable(map(dict.values, dicts))))
    if not types.isdisjoint((np.ndarray, list, tuple, dict)):
        for name in dict.fromkeys(chain.from_iterable(dicts)):
            yield [cell[name] for cell in dicts if name in cell]


def _flatten_items(cells: Iterable[Any]) -> list[Any]:
    """The items of all lists, arrays and sets."""
    are_lists = set(map(type, cells)) <= {list, tuple, type(None)}
    return list(chain.from_iterable(filter(None, cells) if are_lists else map(_items_of, cells)))


def _items_of(cell: Any) -> Sequence[Any] | np.ndarray[Any, Any]:
    """The items of a list; of an array of numbers, whose items have one type, the first."""
    if isinstance(cell, np.ndarray):
        return cell if cell.dtype.kind == "O" else cell.reshape(-1)[:1]
    return cell if isinstance(cell, list | tuple) else list(cell) if isinstance(cell, set) else ()
