"""Describe each column of files: type, missing values, range, lengths.

Tests: tests/columns/arrow/output/test_column_statistics.py, tests/apps/cli/test_commands.py and
tests/base/messages/test_display.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tfrecord_io.base import ReadOptions, Report, Summary, check_keywords, counted
from tfrecord_io.columns import Column, ColumnAccumulator, ColumnSummary
from tfrecord_io.read.call_options import options_from_call
from tfrecord_io.read.call_source import CallSource
from tfrecord_io.read.type_suggestions import Suggestion, TypeSample
from tfrecord_io.typing import UNSET, InputPath, OnError, ProgressLike, SchemaLike, StorageLike, Unset


@dataclass(frozen=True, slots=True, repr=False)
class Description(Report):
    """The result of `describe`; it prints as a table with a row for each column."""

    records: int
    columns: tuple[ColumnSummary, ...]
    suggestions: tuple[Suggestion, ...] = ()
    files: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Convert to types of JSON: bytes are ``{"base64": text}``, NaN and infinities text, times in ISO 8601."""
        suggestions = [suggestion.to_dict() for suggestion in self.suggestions]
        columns = [column.to_dict() for column in self.columns]
        return {"records": self.records, "files": self.files, "columns": columns, "suggestions": suggestions}

    def _summary(self) -> Summary:
        lines = [line for suggestion in self.suggestions for line in suggestion.lines()]
        return Summary(self.title, self.headings, self.rows(), lines)

    @property
    def title(self) -> str:
        """The numbers of records and files."""
        of_files = f" of {counted(self.files, 'file')}" if self.files > 1 else ""
        return counted(self.records, "record") + of_files

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings of the columns of `rows`."""
        return ColumnSummary.HEADINGS

    def rows(self) -> list[tuple[str, ...]]:
        """Rows of text, one per column, in the order of `headings`."""
        return [column.row() for column in self.columns]


@check_keywords
def describe(
    source: InputPath,
    *,
    columns: Sequence[str] | str | None = None,
    filters: Any = None,
    schema: SchemaLike | Literal["infer"] | None = None,
    limit: int | None = None,
    on_error: OnError | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike | Unset = UNSET,
) -> Description:
    """Describe every column of the records, all of which are read.

    Of a large dataset, describe the first rows, by `limit`, or a piece, such as ``tfr.dataset(path).pieces(1000)[0]``.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord(
    ...     {"x": [1, 2, None], "word": ["a", "b", "a"]}, "words.tfrecord"
    ... )
    >>> tfr.describe("words.tfrecord").columns[0].maximum
    2

    Parameters
    ----------
    source : str, PathLike, Dataset, list of those, or binary file object
        As in `read_tfrecord`; a `dataset` has more reading options.
    columns, filters, schema, limit, on_error, storage_options, progress
        As in `read_tfrecord`.

    Returns
    -------
    Description
        The number of records and of files, and a `ColumnSummary` per column: type, nulls, minimum, maximum and mean of
        numbers (without NaN), lengths of text, bytes and lists, number of distinct values up to 1,000, an example (of
        more than 1 KiB, the text that shows it). Where a file has no embedded schema, its ``suggestions`` say of bytes
        that are images, serialized tensors, or raw numbers whose shape is stored in other features, by which field they
        can be read so; nothing is applied by itself.

    Raises
    ------
    TFRecordError
        As in `open_reader`.

    Warns
    -----
    DamagedDataWarning
        Values of a feature have several feature types: the records with the less frequent ones are left out.
    """
    records, sample = 0, TypeSample()
    options = options_from_call(
        ReadOptions,
        describe,
        source,
        {"sample": "all"},
        columns=columns,
        filters=filters,
        schema=schema,
        limit=limit,
        on_error=on_error,
        storage_options=storage_options,
        progress=progress,
    ).for_inspection()
    with CallSource(source).open(options) as reader:
        is_message = not isinstance(options.record_type, str | None)
        stored = [None if is_message else Column(field).stored_as for field in reader.schema]
        accumulators = [
            ColumnAccumulator(field.name, field.type, field.metadata, type_)
            for field, type_ in zip(reader.schema, stored, strict=True)
        ]
        is_inferred, files = reader.scan.resolved.source == "inferred", reader.scan.file_count
        for batch in reader:
            if is_inferred:
                sample.add(batch)
            records += batch.num_rows
            for accumulator, column in zip(accumulators, batch.columns, strict=True):
                accumulator.add(column)
    return Description(records, tuple(a.summary() for a in accumulators), sample.suggestions(), files)
