"""What files hold, column by column: types, missing values, ranges, lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tfrecord_io.display import plain_table, ranges, shape_ranges, short
from tfrecord_io.errors import printable
from tfrecord_io.keyword_docs import document_keywords
from tfrecord_io.options import ReadOptions
from tfrecord_io.read.reader import Reader
from tfrecord_io.tools.column_summary import ColumnGatherer, ColumnSummary


@dataclass(frozen=True, slots=True)
class Description:
    """What `describe` found. ``str()`` is a table, `to_dict` is for programs."""

    records: int
    columns: tuple[ColumnSummary, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"records": self.records, "columns": [c.to_dict() for c in self.columns]}

    def __str__(self) -> str:
        return f"{self.records:,} records\n\n{plain_table(HEADINGS, self.rows())}"

    def rows(self) -> list[tuple[str, ...]]:
        """One row of text a column, in the order of `HEADINGS`."""
        return [
            (
                printable(c.name) or '""',
                printable(c.type),
                f"{c.nulls:,}",
                ranges(c.minimum, c.maximum),
                "" if c.mean is None else f"{c.mean:.4g}",
                ranges(c.min_length, c.max_length)
                if c.min_shape == c.max_shape
                else shape_ranges(c.min_shape, c.max_shape),
                "" if c.distinct is None else f"{c.distinct:,}",
                "" if c.example is None else short(c.example),
            )
            for c in self.columns
        ]


HEADINGS = ("column", "type", "nulls", "range", "mean", "length", "distinct", "example")


@document_keywords(ReadOptions)
def describe(path: Any, **keywords: Any) -> Description:
    """Describe every column of the records.

    Parameters
    ----------
    {path}
    {keywords}

    Returns
    -------
    Description
        Records and a `ColumnSummary` per column: type, nulls, minimum, maximum and mean of numbers (NaN left out), lengths of
        text, bytes and lists, number of distinct values where it is at most 1,000, an example.

    Raises
    ------
    TFRecordError
        As `open_reader`; nothing is described of damaged files.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, None], "word": ["a", "b", "a"]}, "words.tfrecord")
    >>> tfr.describe("words.tfrecord").columns[0].maximum
    2
    """
    records = 0
    with Reader(path, ReadOptions.of({"sample": "all", **keywords})) as reader:
        gatherers = [ColumnGatherer(field.name, field.type, field.metadata) for field in reader.schema]
        for batch in reader:
            records += batch.num_rows
            for gatherer, column in zip(gatherers, batch.columns, strict=True):
                gatherer.add(column)
    return Description(records, tuple(g.summary() for g in gatherers))
