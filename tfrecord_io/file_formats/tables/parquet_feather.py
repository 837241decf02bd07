"""Read Parquet and Arrow IPC files as streams of record batches, and write TFRecord files as such files."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pyarrow as pa

from tfrecord_io.file_formats.tables.source_options import SourceOptions
from tfrecord_io.file_formats.tables.table_files import (
    arrow_errors,
    check_schema,
    metered,
    refuse_duplicates,
    selected,
    write_table_file,
)
from tfrecord_io.file_formats.tables.table_source import TableFiles, TableSource
from tfrecord_io.progress import ProgressMeter
from tfrecord_io.storage.paths.plain_files import find_files
from tfrecord_io.storage.read.open_stream import open_file
from tfrecord_io.storage.read.source import Source
from tfrecord_io.write.writer import WriteReport

PARQUET = (".parquet", ".pq")
FEATHER = (".arrow", ".feather")

_BATCH_ROWS = 16_384
_IPC_FILE = b"ARROW1"  # an IPC stream begins with the length of its schema


def parquet_source(paths: list[str], options: SourceOptions) -> TableSource:
    """The rows of Parquet files with one schema, one file after the other; folders and globs in natural order.

    Only the selected columns are read.
    """
    files = TableFiles.of(paths, PARQUET, options, typed=True)
    first = files.sources[0]
    with _parquet(first) as file:
        schema = file.schema_arrow
    names = files.selected(schema.names)

    def batches(source: Source, meter: ProgressMeter) -> Generator[pa.RecordBatch]:
        with _parquet(source) as file:
            check_schema(file.schema_arrow, schema, source.path, first.path)
            parts = _batches(file.iter_batches(_BATCH_ROWS, columns=names), source.path, "Parquet")
            yield from metered(parts, file.metadata.num_rows, source.size, meter)

    return TableSource(files, schema, batches)


@contextmanager
def _parquet(source: Source) -> Iterator[Any]:
    import pyarrow.parquet as pq

    with closing(open_file(source)) as opened:
        with arrow_errors(source.path, "Parquet"):
            file = pq.ParquetFile(opened)
        yield file


@contextmanager
def open_feather(path: str, options: SourceOptions) -> Iterator[pa.RecordBatchReader]:
    """The rows of an Arrow IPC file, or of an IPC stream."""
    source = find_files(path, FEATHER, options.storage).single("convert them one by one")
    with closing(open_file(source)) as file, options.meter([source]) as meter:
        magic = file.read(len(_IPC_FILE))
        file.seek(0)
        with arrow_errors(source.path, "Arrow IPC"):
            if magic == _IPC_FILE:
                opened: Any = pa.ipc.open_file(file)
                batches = (opened.get_batch(i) for i in range(opened.num_record_batches))
                rows = opened.count_rows()
            else:
                opened = batches = pa.ipc.open_stream(file)
                rows = None
        projection = options.projection(opened.schema.names)
        projection.check(opened.schema.names)
        refuse_duplicates(projection.order(opened.schema.names), source.path)
        parts = metered(_batches(iter(batches), source.path, "Arrow IPC"), rows, source.size, meter)
        yield selected(opened.schema, parts, projection)


def _batches(batches: Iterator[pa.RecordBatch], path: str, format: str) -> Iterator[pa.RecordBatch]:
    while True:
        with arrow_errors(path, format):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def write_parquet(source: Any, target: Any, **keywords: Any) -> WriteReport:
    """Write TFRecord files as one Parquet file. Keywords: those of `to_npy`, except ``column``."""
    import pyarrow.parquet as pq

    return write_table_file(source, target, pq.ParquetWriter, keywords, needs_columns=True)


def write_feather(source: Any, target: Any, **keywords: Any) -> WriteReport:
    """Write TFRecord files as one Arrow IPC file. Keywords: those of `to_npy`, except ``column``."""
    return write_table_file(source, target, pa.ipc.new_file, keywords)
