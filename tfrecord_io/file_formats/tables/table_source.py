"""Files of tables that are read one after the other, or each by itself, under one schema."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

import pyarrow as pa

from tfrecord_io.file_formats.tables.source_options import SourceOptions
from tfrecord_io.file_formats.tables.table_files import selected
from tfrecord_io.progress import ProgressMeter
from tfrecord_io.schema.column_selection import Projection
from tfrecord_io.storage.read.source import Source


@dataclass(frozen=True, slots=True)
class TableSource:
    """Files, with the schema that was decided once for all of them.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of all columns; the projection selects some of them.
    batches : callable
        The rows of one file, as a generator; it advances a meter by the bytes of the file.
    """

    sources: Sequence[Source]
    schema: pa.Schema
    projection: Projection
    options: SourceOptions
    batches: Callable[[Source, ProgressMeter], Generator[pa.RecordBatch]]

    @contextmanager
    def open(self) -> Iterator[pa.RecordBatchReader]:
        """The rows of all files, one file after the other."""
        with self.options.meter(self.sources) as meter, self.rows(self.sources, meter) as rows:
            yield rows

    @contextmanager
    def rows(self, sources: Sequence[Source], meter: ProgressMeter) -> Iterator[pa.RecordBatchReader]:
        """The rows of some of the files."""

        def batches() -> Generator[pa.RecordBatch]:
            for source in sources:
                yield from self.batches(source, meter)

        with closing(batches()) as parts:
            yield selected(self.schema, parts, self.projection)
