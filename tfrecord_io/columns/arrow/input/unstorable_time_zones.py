"""Time zones of Python and pandas that Arrow, which stores their names, would lose or change.

Tests: tests/columns/arrow/input/test_from_arrays.py.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pyarrow as pa

from tfrecord_io.base import printable
from tfrecord_io.columns.arrow.input.array_likes import imported_module
from tfrecord_io.errors import EncodeError


def refuse_lost_zone(name: str, values: Any) -> None:
    """Refuse times of a Series or an Index of pandas, or of its categories, whose zone Arrow would not keep."""
    if (zone := zone_of(values.dtype)) is not None:
        times = imported_module("pandas").DatetimeIndex(getattr(values.dtype, "categories", values))
        check_zone(name, zone, lambda named: times.tz_convert(named).tz_localize(None).equals(times.tz_localize(None)))


def check_zone(name: str, zone: dt.tzinfo, is_same: Callable[[dt.tzinfo], bool]) -> None:
    """Refuse a time zone that a reader would not find by its name in Arrow, or would find with changed offsets."""
    text = pa.lib.tzinfo_to_string(zone)
    with suppress(LookupError, ValueError, AttributeError):  # an unknown name; a zone that pandas does not convert
        if is_same(pa.lib.string_to_tzinfo(text)):
            return
    reason = f"its time zone, {printable(repr(zone))}, would be read as '{printable(text)}'"
    raise EncodeError(reason, feature=name, hint="convert the times to a zoneinfo.ZoneInfo or a datetime.timezone")


def restore_zone(column: Any, dtype: Any) -> Any:
    """A column of categories with the time zone of those of a pandas dtype, which pyarrow before 25 leaves out."""
    categories = getattr(dtype, "categories", None)
    if categories is None or getattr(categories.dtype, "tz", None) is None:
        return column
    value_type = pa.array(categories[:0]).type
    if column.type.value_type == value_type:
        return column
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    dictionaries = (chunk.dictionary.cast(value_type) for chunk in chunks)
    arrays = [
        pa.DictionaryArray.from_arrays(chunk.indices, dictionary, ordered=chunk.type.ordered)
        for chunk, dictionary in zip(chunks, dictionaries, strict=True)
    ]
    return pa.chunked_array(arrays) if isinstance(column, pa.ChunkedArray) else arrays[0]


def zone_of(dtype: Any) -> dt.tzinfo | None:
    """The time zone of a pandas dtype, or of its categories, if the zone is not known by a name; else None."""
    categories = getattr(dtype, "categories", None)
    zone = getattr(dtype if categories is None else categories.dtype, "tz", None)
    return None if zone is None or is_named(zone) else zone


def is_named(zone: dt.tzinfo | None) -> bool:
    """True for a time zone that Arrow finds by its name."""
    from zoneinfo import ZoneInfo

    return isinstance(zone, ZoneInfo | dt.timezone) or type(zone).__module__.startswith("pytz")
