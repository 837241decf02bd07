"""Parquet and Arrow IPC files as streams of record batches, and made of TFRecord files: by pyarrow, whole or absent."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from tfrecord_io.options import ReadOptions
from tfrecord_io.reader import Reader
from tfrecord_io.storage.commit import open_output
from tfrecord_io.storage.output_stream import OutputStream
from tfrecord_io.storage.sources import Source, source_of
from tfrecord_io.storage.trees import locate
from tfrecord_io.writer import WriteReport

_BATCH_ROWS = 16_384


def _source(path: str, storage_options: Any, filesystem: Any) -> Source:
    tree, name = locate(path, dict(storage_options or {}), filesystem)
    entry = tree.entry(name)
    if entry is None:
        raise FileNotFoundError(2, "no such file", path)
    return source_of(tree, entry)


@contextmanager
def open_parquet(paths: list[str], *, storage_options: Any = None, filesystem: Any = None) -> Iterator[pa.RecordBatchReader]:
    """The rows of Parquet files, one after the other."""
    import pyarrow.parquet as pq

    files: list[Any] = []
    try:
        for path in paths:
            files.append(pq.ParquetFile(_source(path, storage_options, filesystem).open()))
        schema = files[0].schema_arrow
        batches = (batch for file in files for batch in file.iter_batches(_BATCH_ROWS))
        yield pa.RecordBatchReader.from_batches(schema, batches)
    finally:
        for file in files:
            file.close()


@contextmanager
def open_feather(path: str, *, storage_options: Any = None, filesystem: Any = None) -> Iterator[pa.RecordBatchReader]:
    """The rows of an Arrow IPC file, or of an IPC stream."""
    file = _source(path, storage_options, filesystem).open()
    try:
        try:
            opened = pa.ipc.open_file(file)
        except pa.ArrowInvalid:
            file.seek(0)  # type: ignore[attr-defined]
            yield pa.ipc.open_stream(file)
        else:
            yield pa.RecordBatchReader.from_batches(opened.schema, (opened.get_batch(i) for i in range(opened.num_record_batches)))
    finally:
        file.close()


def write_parquet(source: Any, target: Any, **keywords: Any) -> WriteReport:
    """Write TFRecord files as one Parquet file; keywords as of `tfrecord_io.open_reader`, and ``overwrite``."""
    import pyarrow.parquet as pq

    return _write(source, target, lambda sink, schema: pq.ParquetWriter(sink, schema), keywords)


def write_feather(source: Any, target: Any, **keywords: Any) -> WriteReport:
    """Write TFRecord files as one Arrow IPC file; keywords as of `tfrecord_io.open_reader`, and ``overwrite``."""
    return _write(source, target, pa.ipc.new_file, keywords)


def _write(source: Any, target: Any, make: Callable[[Any, pa.Schema], Any], keywords: dict[str, Any]) -> WriteReport:
    fsspec = {"storage_options": keywords.get("storage_options"), "filesystem": keywords.get("filesystem")}
    overwrite = keywords.pop("overwrite", None)
    with (
        Reader(source, ReadOptions.of(keywords)) as reader,
        open_output(target, overwrite=overwrite, **fsspec) as output,
    ):
        with make(OutputStream(output), reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
        return WriteReport(os.fspath(target), reader.report.records, output.offset, None, tuple(reader.schema.names), {})
