"""Parse the text that a condition compares with dates, times and timestamps, as SQL does.

Tests: tests/columns/arrow/test_type_literals.py.
"""

from __future__ import annotations

import datetime
from contextlib import suppress

import pyarrow as pa
from pyarrow import types as t


def parse_text(value: pa.Scalar, type_: pa.DataType) -> pa.Scalar:
    """The date or time of a text, in a unit that has all of its digits. ValueError, ArrowException: there is none."""
    if t.is_time(type_):
        return _parsed_time(value.as_py())
    if not t.is_timestamp(type_):
        return value.cast(type_)
    with suppress(pa.ArrowInvalid):  # it has more than six digits of a second
        return _parsed_timestamp(value, pa.timestamp("us", type_.tz))  # which has every year
    return _parsed_timestamp(value, pa.timestamp("ns", type_.tz))


def _parsed_time(text: str) -> pa.Scalar:
    time = datetime.time.fromisoformat(text)  # which drops what is after six digits of a second
    if time.tzinfo is not None:
        raise ValueError("a time has no offset")
    digits = text.replace(",", ".").partition(".")[2]
    if digits[9:].strip("0"):
        raise ValueError("a time has nanoseconds")
    seconds = (time.hour * 60 + time.minute) * 60 + time.second
    nanoseconds = time.microsecond * 1000 + int(digits[6:9].ljust(3, "0"))
    return pa.scalar(seconds * 10**9 + nanoseconds, pa.time64("ns"))


def _parsed_timestamp(value: pa.Scalar, type_: pa.DataType) -> pa.Scalar:
    try:
        return value.cast(type_)
    except pa.ArrowInvalid:
        if type_.tz is None:
            raise
    return assign_zone(value.cast(pa.timestamp(type_.unit)), type_.tz)  # it has no offset


class NotOneTimeError(ValueError):
    """A local time that a time zone has twice, or never."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(reason)
        self.advice = advice


def assign_zone(local: pa.Scalar, zone: str | None) -> pa.Scalar:
    """A local time in a time zone, if there is one."""
    import pyarrow.compute as pc

    if zone is None:
        return local
    around = [
        pc.assume_timezone(local, zone, ambiguous=choice, nonexistent=choice) for choice in ("earliest", "latest")
    ]
    first, second = (time.cast(pa.timestamp("s", zone), safe=False) for time in around)
    if first.value == second.value:
        return around[0]
    text = str(local.cast(pa.timestamp("s"), safe=False).as_py())
    with suppress(pa.ArrowInvalid):
        pc.assume_timezone(local, zone, ambiguous="earliest")
        times = " or ".join(f"'{first_or_second.as_py().isoformat()}'" for first_or_second in (first, second))
        raise NotOneTimeError(f"and {text} occurs twice in {zone}", f"write the one that is meant: {times}")
    advice = f"write a time that exists, such as '{second.as_py().isoformat()}'"
    raise NotOneTimeError(f"and {text} never occurs in {zone}: the clocks are put forward", advice)
