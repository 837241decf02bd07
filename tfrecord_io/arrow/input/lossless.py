"""Whether a cast kept the values: they are cast back and compared. Arrow's own checks leave out many pairs of types."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from tfrecord_io.schema.types import is_text_or_bytes

_DECIMAL = re.compile(r"(?!-[0.]*$)-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_UTC = ("UTC", "Etc/UTC", "Z", "+00:00", "GMT")


def refuse_loss(before: pa.Array, after: pa.Array) -> None:
    """Raise OverflowError if `after`, the plain values `before` cast to another type, lost something.

    Floats may be rounded to a narrower type, but not become infinite. Text must be the one that Arrow or Python writes
    for the number or bool, for a decimal with any number of zeros at its end; times in text may be spelled in any way.
    """
    source, target = before.type, after.type
    if source == target or (_checked_by_arrow(source, target) and not _loses_zone(source, target)):
        return
    if is_narrowed(source, target):
        exact, cast = np.asarray(before.drop_null()), np.asarray(after.drop_null())
        if np.any(np.isinf(cast) & np.isfinite(exact)):
            raise OverflowError("a finite value would become infinite")
    elif is_text_or_bytes(source):
        if not is_text_or_bytes(target) and not t.is_temporal(target) and not _is_spelled_so(before, after):
            raise OverflowError("the text is another than that of the number")
    elif _loses_zone(source, target) or not _is_kept(before, after):
        raise OverflowError("the cast would change it")


def is_narrowed(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether floats are cast to floats of fewer bits."""
    return bool(t.is_floating(source) and t.is_floating(target) and source.bit_width > target.bit_width)


def _checked_by_arrow(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether Arrow's cast refuses all values that it would change."""
    same = (t.is_integer, t.is_timestamp, t.is_duration, t.is_time, is_text_or_bytes)
    return any(check(source) and check(target) for check in same)


def _loses_zone(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether timestamps become naive that are in another zone than UTC: they would be other times on the clock."""
    return bool(
        t.is_timestamp(source) and t.is_timestamp(target) and target.tz is None and source.tz not in (None, *_UTC)
    )


def _is_spelled_so(before: pa.Array, after: pa.Array) -> bool:
    """Whether text is that of the numbers or bools `after`, all of them as Arrow or all as Python writes them."""
    text = before.cast(pa.large_string()).drop_null()
    values = after.drop_null()
    if values.cast(pa.large_string()).equals(text):
        return True
    if t.is_integer(values.type):
        return False
    if t.is_decimal(values.type):  # of any number of digits after the point
        pairs = zip(text.to_pylist(), values.to_pylist(), strict=True)
        return all(_DECIMAL.fullmatch(spelled) and Decimal(spelled) == value for spelled, value in pairs)
    plain = np.asarray(values) if t.is_floating(values.type) else values.to_pylist()
    return list(map(str, plain)) == text.to_pylist()


def _is_kept(before: pa.Array, after: pa.Array) -> bool:
    if t.is_time(before.type) and is_text_or_bytes(
        after.type
    ):  # Arrow (26.0) does not parse times; it writes all digits
        return not pc.any(pc.starts_with(after.cast(pa.large_string()), "<")).as_py()  # "<value out of range: …>"
    try:
        back = _cast_back(after, before.type)
    except (pa.ArrowException, OverflowError):
        return False
    if not t.is_floating(before.type):
        return bool(back.equals(before))
    if t.is_integer(after.type) and after.type.bit_width == 64 and _is_saturated(after):
        return False
    exact, kept = np.asarray(before.drop_null()), np.asarray(back.drop_null())
    negative_zero = (exact == 0) & (np.signbit(exact) != np.signbit(kept))
    return np.array_equal(kept, exact, equal_nan=True) and not negative_zero.any()


def _is_saturated(integers: pa.Array) -> bool:
    """Whether a value is the greatest of its type, which no float is: some processors cast larger floats to it."""
    greatest = np.iinfo(integers.type.to_pandas_dtype()).max
    return bool(pc.any(pc.equal(integers, pa.scalar(greatest, integers.type))).as_py())


def _cast_back(values: pa.Array, type_: pa.DataType) -> pa.Array:
    if t.is_decimal(type_):  # Arrow (26.0) refuses some casts to fewer digits even where all of the values fit
        values = values.cast(pa.decimal256(76, type_.scale))
    elif t.is_decimal(values.type) and t.is_floating(type_):  # its casts of decimals to float32 are not exact
        values = values.cast(pa.float64())
    elif t.is_date(values.type) and t.is_timestamp(type_) and type_.tz is not None:  # it is the local date
        local = values.cast(pa.timestamp(type_.unit))
        return pc.assume_timezone(local, type_.tz, ambiguous="earliest", nonexistent="earliest")
    elif t.is_string_view(values.type):  # it does not parse views
        values = values.cast(pa.string())
    return values.cast(type_, safe=False)
