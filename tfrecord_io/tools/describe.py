"""A description of each column of files: type, missing values, range, lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tfrecord_io.display import Report, Summary, counted
from tfrecord_io.keyword_docs import document_keywords
from tfrecord_io.options import ReadOptions
from tfrecord_io.read.open_scan import open_path
from tfrecord_io.tools.column_summary import HEADINGS, ColumnAccumulator, ColumnSummary
from tfrecord_io.typing import InputPath


@dataclass(frozen=True, slots=True, repr=False)
class Description(Report):
    """The result of `describe`; it prints as a table with a row for each column."""

    records: int
    columns: tuple[ColumnSummary, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"records": self.records, "columns": [c.to_dict() for c in self.columns]}

    def _summary(self) -> Summary:
        return Summary(counted(self.records, "record"), HEADINGS, self.rows())

    def rows(self) -> list[tuple[str, ...]]:
        """Rows of text, one per column, in the order of `HEADINGS`."""
        return [column.row() for column in self.columns]


@document_keywords(ReadOptions)
def describe(path: InputPath, **keywords: Any) -> Description:
    """Describe every column of the records.

    Parameters
    ----------
    {path}
    {keywords}

    Returns
    -------
    Description
        The number of records, and a `ColumnSummary` per column: type, nulls, minimum, maximum and mean of numbers
        (without NaN), lengths of text, bytes and lists, number of distinct values up to 1,000, an example.

    Raises
    ------
    TFRecordError
        As in `open_reader`; damaged files are not described.

    Warns
    -----
    DamagedDataWarning
        Values of a feature have several feature types: the records with the less frequent ones are left out.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, None], "word": ["a", "b", "a"]}, "words.tfrecord")
    >>> tfr.describe("words.tfrecord").columns[0].maximum
    2
    """
    records = 0
    options = ReadOptions.of({"sample": "all", **keywords}, describe).for_inspection()
    with open_path(path, options) as reader:
        accumulators = [ColumnAccumulator(field.name, field.type, field.metadata) for field in reader.schema]
        for batch in reader:
            records += batch.num_rows
            for accumulator, column in zip(accumulators, batch.columns, strict=True):
                accumulator.add(column)
    return Description(records, tuple(a.summary() for a in accumulators))
