"""Where rows come from: the file and the record index of each, for error messages."""

from __future__ import annotations

from bisect import bisect_right


class RowOrigins:
    """The records that the rows of a read come from; consecutive records of one file take one entry.

    Attributes
    ----------
    rows : int
        Number of rows.

    Examples
    --------
    >>> origins = RowOrigins()
    >>> origins.add("a.tfrecord", 0, 3)
    >>> origins.add("b.tfrecord", 0, 2)
    >>> origins.of(4)
    ('b.tfrecord', 1)
    """

    def __init__(self) -> None:
        self.rows = 0
        self._first_rows: list[int] = []
        self._runs: list[tuple[str, int]] = []  # path and first record, for each entry of `_first_rows`

    def add(self, path: str, first_record: int, rows: int) -> None:
        """Add `rows` rows: the records from `first_record` on."""
        if rows and (
            not self.rows or self.of(self.rows) != (path, first_record)
        ):  # not the next record of the last run
            self._first_rows.append(self.rows)
            self._runs.append((path, first_record))
        self.rows += rows

    def of(self, row: int) -> tuple[str, int]:
        """Path and record index of a row."""
        run = bisect_right(self._first_rows, row) - 1
        path, first_record = self._runs[run]
        return path, first_record + row - self._first_rows[run]
