"""An error about one row, before the record that the row was read from is known."""

from __future__ import annotations

from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import DecodeError, TFRecordError


class RowFault(Exception):
    """A row whose value does not fit its column, or the array that is made of it.

    Code in `arrow/` raises it with the index of a value; callers turn that into the index of the row on the way up
    (`in_row_of`). `BatchBuilder.batch` returns it as a value. Whoever knows the file and the record of the row makes an
    exception of it (`to_error`).

    Attributes
    ----------
    row : int
    reason, feature, expected, got, advice
        As in `TFRecordError`.
    error : type
        Class of the exception.
    """

    def __init__(
        self,
        row: int,
        reason: str,
        *,
        feature: str | None = None,
        expected: object = None,
        got: object = None,
        advice: str | None = None,
        error: type[TFRecordError] = DecodeError,
    ) -> None:
        super().__init__(reason)
        self.row = row
        self.reason = reason
        self.feature = feature
        self.expected = expected
        self.got = got
        self.advice = advice
        self.error = error

    def in_row_of(self, offsets: Array) -> RowFault:
        """The same fault, the index of its value turned into that of the row which `offsets` put it in."""
        self.row = int(offsets.searchsorted(self.row, side="right")) - 1
        return self

    def to_error(self, path: str | None, record: int | None) -> TFRecordError:
        """The exception, about a record of a file."""
        return self.error(
            self.reason,
            path=path,
            record=record,
            feature=self.feature,
            expected=self.expected,
            got=self.got,
            advice=self.advice,
        )
