"""Where rows come from: the file and the record of each, for the words of an error."""

from __future__ import annotations

from bisect import bisect_right


class RowOrigins:
    """The records that the rows of a reading were; rows of one file that follow each other cost one entry.

    Attributes
    ----------
    rows : int
        How many there are.

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
        self._runs: list[tuple[str, int]] = []  # path and first record, one for each first row

    def add(self, path: str, first_record: int, rows: int) -> None:
        """`rows` more, the records from `first_record` on."""
        if not rows:
            return
        if (
            not self._runs
            or self._runs[-1][0] != path
            or self._runs[-1][1] + self.rows - self._first_rows[-1] != first_record
        ):
            self._first_rows.append(self.rows)
            self._runs.append((path, first_record))
        self.rows += rows

    def of(self, row: int) -> tuple[str, int]:
        """Path and record of a row."""
        at = bisect_right(self._first_rows, row) - 1
        path, first_record = self._runs[at]
        return path, first_record + row - self._first_rows[at]
