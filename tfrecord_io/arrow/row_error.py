"""What is wrong with one row, before anyone has said which record that is."""

from __future__ import annotations

from tfrecord_io.errors import TFRecordError
from tfrecord_io.read.row_origins import RowOrigins


class RowError(Exception):
    """An error and the row that it is about; the row becomes a file and a record where these are known."""

    def __init__(self, row: int, error: TFRecordError) -> None:
        super().__init__(error.reason)
        self.row = row
        self.error = error

    def located(self, origins: RowOrigins, row: int) -> TFRecordError:
        """The error, about the record that `row` of `origins` is."""
        self.error.path, self.error.record = origins.of(row)
        return self.error
