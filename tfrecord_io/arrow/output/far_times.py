"""Times that Python's classes, and so pandas, cannot hold: far years, nanoseconds of a day, unknown time zones."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from tfrecord_io.arrow.output.to_python import NO_PYTHON_FORM
from tfrecord_io.errors import SchemaWarning, printable, warn
from tfrecord_io.schema.types import uncommon

_FIRST, _END = -62_104_060_800, 253_370_764_800  # the years 2 to 9998, in which every time zone has Python's datetime
_DAY = 86_400
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def as_numpy_time(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Dates as timestamps, times of day as durations since midnight, which are NumPy's dtypes; None for other types.

    >>> as_numpy_time(pa.chunked_array([pa.array([1], pa.time64("ns"))])).type
    DurationType(duration[ns])
    """
    type_ = column.type
    if t.is_dictionary(type_):
        values = as_numpy_time(column.cast(type_.value_type))
        return None if values is None else values.dictionary_encode()
    if t.is_date(type_):
        return column.cast(pa.timestamp("s" if t.is_date32(type_) else "ms"))
    if t.is_time(type_):
        numbers = column.cast(pa.int32() if type_.bit_width == 32 else pa.int64())
        return numbers.cast(pa.int64()).cast(pa.duration(type_.unit))
    return None


def zones_that_python_has(table: pa.Table) -> pa.Table:
    """The table; timestamps in UTC where Python lacks their time zone, without a zone where it lacks their years.

    Each such column is named by a SchemaWarning.
    """
    for at in uncommon(table.schema):
        field, column = table.schema.field(at), table.column(at)
        is_categorical = t.is_dictionary(field.type)
        type_ = field.type.value_type if is_categorical else field.type
        if not t.is_timestamp(type_) or type_.tz is None:
            continue
        column, utc = column.cast(type_), pa.timestamp(type_.unit, "UTC")
        if (reason := _far_times(column)) is not None:
            _warn(field, f"{reason} in a time zone: it is datetime64 in UTC, without a zone")
            column = column.cast(utc).cast(pa.timestamp(type_.unit))
        elif not _is_known(type_):
            _warn(field, f"the time zone '{printable(type_.tz, 60)}' is unknown here: it is in UTC")
            column = column.cast(utc)
        else:
            continue
        column = column.dictionary_encode() if is_categorical else column
        table = table.set_column(at, field.with_type(column.type), column)
    return table


def _warn(field: pa.Field, reason: str) -> None:
    warn(f"column '{printable(field.name)}': {reason}", SchemaWarning)


def _far_times(column: pa.ChunkedArray) -> str | None:
    """What the column has that no time zone can hold; None if there is nothing."""
    ends, unit = pc.min_max(column.cast(pa.int64())), _PER_SECOND[column.type.unit]
    if not ends["min"].is_valid:
        return None
    if ends["min"].as_py() < _FIRST * unit or ends["max"].as_py() >= _END * unit:
        return "years before 1 or after 9999"
    most = 2**63 - _DAY * unit  # local times are not representable at the very ends of the range
    return "the first or last day of datetime64[ns]" if max(-ends["min"].as_py(), ends["max"].as_py()) > most else None


def _is_known(type_: pa.DataType) -> bool:
    try:
        pa.scalar(0, type_).as_py()
    except NO_PYTHON_FORM:
        return False
    return True
