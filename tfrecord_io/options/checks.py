"""Checks of single values, with one wording."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import get_args

from tfrecord_io.typing import OnErrorName, Overwrite, ProgressLike

INT64_MAX = 2**63 - 1  # the kernel counts records and bytes in 64 bits


def check_integer(name: str, value: object, least: int, most: int | None = None, *, optional: bool = False) -> None:
    """Raise TypeError or ValueError for what is no integer, or out of range."""
    if optional and value is None:
        return
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}={value!r}: expected an integer")
    if value.__index__() < least:
        raise ValueError(f"{name}={value!r}: expected at least {least}")
    if most is not None and value.__index__() > most:
        raise ValueError(f"{name}={value!r}: expected at most {most}")


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    if value not in choices:
        raise ValueError(f"{name}={value!r}: expected one of {', '.join(map(repr, choices))}")


def check_on_error(value: object, names: Sequence[str] = get_args(OnErrorName)) -> None:
    """Raise ValueError for an `on_error` that does not exist."""
    if value not in names and not (callable(value) and "skip" in names):
        others = " or a function that takes the error" if "skip" in names else ""
        raise ValueError(f"on_error={value!r}: expected one of {', '.join(map(repr, names))}{others}")


def check_overwrite(value: object) -> None:
    """Raise TypeError for an `overwrite` that does not exist."""
    if value not in (None, True, False, *get_args(Overwrite)):
        raise TypeError(f"overwrite={value!r}: expected None, True, False or 'in_place'")


def check_progress(value: object) -> ProgressLike:
    """Return a `progress`, flags of NumPy as bool; TypeError for what is none."""
    if callable(value):
        return value
    if type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"progress={value!r}: expected True, False or a function")
    return bool(value)


def check_ratio(value: object) -> None:
    """Raise TypeError or ValueError for a `max_decompression_ratio` that is none."""
    if isinstance(value, bool) or not isinstance(value, Real | None):
        raise TypeError(f"max_decompression_ratio={value!r}: expected a number or None")
    if value is not None and not float(value) >= 1:
        raise ValueError(f"max_decompression_ratio={value!r}: expected at least 1")
