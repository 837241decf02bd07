"""Changes to the rows of a stream on its way into TFRecord: rows left out by a filter, files embedded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tfrecord_io.errors import printable
from tfrecord_io.file_formats.array_files.array_stream import project
from tfrecord_io.file_formats.folders.embed_files import from_files
from tfrecord_io.file_formats.tables.source_options import Columns
from tfrecord_io.options import StorageOptions
from tfrecord_io.read.row_filter import RowFilter
from tfrecord_io.schema.column_selection import Projection


@dataclass(frozen=True, slots=True)
class Embedded:
    """The files to embed: the keywords ``embed``, ``embed_folder`` and ``missing_files`` of `tfrecord_io.convert`."""

    columns: Mapping[str, str] | None
    folder: Any
    missing: str | None

    def check(self, target: str, *, is_tfrecord: bool) -> None:
        """Raise TypeError where the keywords have no effect."""
        if self.columns is not None and not is_tfrecord:
            raise TypeError(f"embed= is only for TFRecord targets, and '{printable(target)}' is not TFRecord")
        for name, value in {"embed_folder": self.folder, "missing_files": self.missing}.items():
            if self.columns is None and value is not None:
                raise TypeError(f"{name}= has no effect without embed=")

    def in_stream(self, stream: Any, storage: StorageOptions) -> Any:
        """The stream with the columns of files."""
        if self.columns is None:
            return stream
        missing: Any = self.missing or "raise"
        return from_files(stream, self.columns, folder=self.folder, missing=missing, **storage.keywords)


def filtered(stream: Any, filters: Any, columns: Columns) -> pa.RecordBatchReader:
    """The rows of a stream of all columns that a filter keeps, with some of the columns.

    Raises
    ------
    FeatureNotFoundError, SchemaError, TypeError, ValueError
        As in `tfrecord_io.read.row_filter.RowFilter.of`, or an entry of `columns` matches no column.
    """
    row_filter, projection = RowFilter.of(filters, stream.schema), Projection(columns)
    projection.check(stream.schema.names)

    def kept() -> Iterator[pa.RecordBatch]:
        for batch in stream:
            yield batch.filter(row_filter.mask(batch))

    return pa.RecordBatchReader.from_batches(*project(stream.schema, kept(), projection))
