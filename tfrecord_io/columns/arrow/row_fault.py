"""An error about one row, before the record that the row was read from is known.

Tests: tests/columns/arrow/encodings/test_tensor_proto.py and tests/rows/arrays/test_image_arrays.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from tfrecord_io.bytes import Array
from tfrecord_io.errors import DecodeError, EncodeError, TFRecordError


class RowFault(Exception):
    """A row whose value does not fit its column, or the array for the column; see also `TFRecordError`.

    Code in `arrow/` raises it with the index of a value; callers turn that into the index of the row on the way up
    (`faults_of_lists`, `faults_of_present`). `BatchBuilder.batch` returns it as a value. The caller that knows the file
    and the record of the row turns it into an exception (`to_error`), of the class `error`.

    `reason`, `feature`, `expected`, `got` and `hint` are those of that exception.
    """

    def __init__(
        self,
        row: int,
        reason: str,
        *,
        feature: str | None = None,
        expected: object = None,
        got: object = None,
        hint: str | None = None,
        hint_cli: str | None = None,
        error: type[TFRecordError] = DecodeError,
        of_memory: bool = False,
        of_image: bool = False,
    ) -> None:
        self.row = row
        self.reason = reason
        self.feature = feature
        self.expected = expected
        self.got = got
        self.hint = hint
        self.hint_cli = hint_cli  # the same for the command, where it differs
        self.error = error
        self.of_memory = of_memory  # the row may be intact, but exceeds the room under `Limits.expansion_bytes`
        self.of_image = of_image  # an image of the row cannot be decoded

    def __str__(self) -> str:
        return self.reason

    def renumber(self, row: int) -> RowFault:
        """Return this fault with another row index, where more rows are counted."""
        fault = RowFault(row, self.reason, error=self.error, **self._facts())
        fault.__cause__ = self.__cause__
        return fault

    @staticmethod
    def count_lists(offsets: Array) -> AbstractContextManager[None]:
        """Turn the index of a RowFault, which counts values, into the index of the list with the value."""
        return faults_of_lists(offsets)

    @staticmethod
    def first_refused(count: int, refuses: Callable[[int, int], bool]) -> int:
        """The position of the first refused value of `count` values, at least one of which is refused.

        `refuses` states whether one of the values [begin, end) is, where all before `begin` are accepted.
        """
        return first_refused(count, refuses)

    def to_error(self, path: str | None, record: int | None) -> TFRecordError:
        """The exception, about a record of a file."""
        return self.error(self.reason, path=path, record=record, **self._facts())

    def _facts(self) -> dict[str, Any]:
        """The attributes that the exception has, too."""
        names = ("feature", "expected", "got", "hint", "hint_cli", "of_memory", "of_image")
        return {name: getattr(self, name) for name in names}


@contextmanager
def errors_of_rows(first: int, feature: str | None = None) -> Iterator[None]:
    """Turn the record of an EncodeError, which counts rows from the `first` on, into that of all rows."""
    try:
        yield
    except EncodeError as error:
        error.feature = error.feature if feature is None else feature
        error.record = None if error.record is None else first + error.record
        raise


@contextmanager
def faults_of_lists(offsets: Array | None = None, *, counts: Array | tuple[()] = ()) -> Iterator[None]:
    """Turn the index of a RowFault, which counts values, into that of the row with the value, by either argument."""
    try:
        yield
    except RowFault as fault:
        ends = np.cumsum(counts) if offsets is None else offsets[1:]
        fault.row = int(ends.searchsorted(fault.row, side="right"))
        raise


@contextmanager
def faults_of_present(mask: Array | None) -> Iterator[None]:
    """Turn the index of a RowFault, which counts the rows in `mask`, into that of the row."""
    try:
        yield
    except RowFault as fault:
        if mask is not None:
            fault.row = int(np.flatnonzero(mask)[fault.row])
        raise


def first_refused(count: int, refuses: Callable[[int, int], bool]) -> int:
    """The position of the first refused value of `count` values, at least one of which is refused.

    `refuses` states whether one of the values [begin, end) is, where all before `begin` are accepted.

    >>> first_refused(10, lambda begin, end: 7 in range(begin, end))
    7
    """
    good, bad = 0, count  # the first `good` values are accepted, the first `bad` are not
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if refuses(good, middle) else (middle, bad)
    return good


def first_failing(
    count: int, attempt: Callable[[int, int], object], errors: type[Exception] | tuple[type[Exception], ...]
) -> int:
    """`first_refused`, where `attempt` raises one of `errors` for values that are refused."""

    def refuses(begin: int, end: int) -> bool:
        try:
            attempt(begin, end)
        except errors:
            return True
        return False

    return first_refused(count, refuses)
