"""A value that does not fit its column: where it is and why, before anyone has worded a message."""

from __future__ import annotations

from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import DecodeError


class RowFault(Exception):
    """A row that has no value in its declared column.

    Raised inside `arrow/` with the index of a value and re-raised on its way up with that of the row; the
    batch builder hands it over as a value. The reader makes the exception `error` of it.
    """

    def __init__(
        self,
        row: int,
        reason: str,
        *,
        expected: object = None,
        got: object = None,
        error: type[DecodeError] = DecodeError,
    ) -> None:
        super().__init__(reason)
        self.row = row
        self.reason = reason
        self.expected = expected
        self.got = got
        self.error = error
        self.feature: str | None = None

    def in_row_of(self, offsets: Array) -> RowFault:
        """The same fault, its value's index turned into that of the row which `offsets` put it in."""
        self.row = int(offsets.searchsorted(self.row, side="right")) - 1
        return self
