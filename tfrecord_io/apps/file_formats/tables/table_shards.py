"""Several files of a table in one folder, whose names a target states: ``train-{0000..0007}.tar``, ``x@8.parquet``.

Tests: tests/apps/file_formats/tables/test_table_shards.py.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa

from tfrecord_io.apps.file_formats.tables.table_files import RowSlices, TableTarget, refuse_types
from tfrecord_io.base import ExportOptions
from tfrecord_io.kit import Format, for_cli
from tfrecord_io.read import CallSource, ScanRows
from tfrecord_io.store import Location
from tfrecord_io.typing import Reader, WriteReport
from tfrecord_io.write import WrittenFile


def write_table_shards(
    source: Any, target: Any, files: Sequence[str], format: Format, keywords: dict[str, Any]
) -> WriteReport:
    """Write TFRecord files as files of a format that has a `writer`: runs of about as many rows each, in order.

    `source`, `target` and `keywords` are as in `write_table_file`; `files` are those that the target asks for. The rows
    are counted first, by the headers of records or by reading the columns of the filter. The files are published one
    by one when all are complete.

    Raises
    ------
    FileExistsError
        One of the files exists, and the mode is "error".
    ValueError
        The source can be read once only.
    """
    assert format.writer is not None
    writer_options = {key: keywords.pop(key) for key in format.writes & keywords.keys() if key != "mode"}
    open_writer = partial(Format.load(format.writer), **writer_options)
    mode = keywords.pop("mode", None) or "error"
    options = CallSource(source).options(ExportOptions, **keywords)
    rows = ScanRows(CallSource(source).scan(options))
    if rows.scan.is_read_once:
        raise ValueError("the rows of several files are counted first, so the source is read twice: pass a path")
    _check_targets(files, options, mode)
    total = rows.count()
    written: list[TableTarget] = []
    with Location.of(files[0], options.target).new_parent():
        try:
            with rows.open() as reader:
                refuse_types(reader.schema, open_writer, format.instead)
                slices = RowSlices(reader)
                for number, file in enumerate(files):
                    begin, end = number * total // len(files), (number + 1) * total // len(files)
                    written.append(TableTarget(file, format, options, mode))
                    written[-1].write(_Part(reader, slices.take(end - begin), begin), open_writer)
                slices.check_end(total)
            for output in written:
                output.commit()
        except BaseException:
            for output in written:
                output.discard()
                if mode == "error" and output.is_published:
                    with suppress(OSError):
                        Location.of(output.path, options.target).remove()
            raise
    parts = tuple(WrittenFile(output.path, output.rows, output.bytes) for output in written)
    return WriteReport(
        os.fspath(target),
        sum(part.records for part in parts),
        bytes=sum(part.bytes for part in parts),
        compression=written[0].compression,
        columns=tuple(rows.scan.schema.names),
        rounded={},
        files=parts,
    )


def _check_targets(targets: Sequence[str], options: ExportOptions, mode: str) -> None:
    """Raise an OSError if the files cannot be written, before anything is read for them."""
    for target in targets:
        location = Location.of(target, options.target)
        location.check_writable()
        if mode == "error" and location.fs.entry(location.name) is not None:
            error = FileExistsError(errno.EEXIST, "the file exists; mode='overwrite' replaces it", target)
            raise for_cli(error, "the file exists; --mode overwrite replaces it")


class _Part:
    """The rows of one file, as `TableTarget.write` takes them."""

    def __init__(self, reader: Reader, batches: Iterator[pa.RecordBatch], first_row: int) -> None:
        self.schema, self.first_row = reader.schema, first_row
        self._reader, self._batches = reader, batches

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches

    def origin(self, row: int) -> tuple[str | None, int | None]:
        """The file and the record of a row."""
        return self._reader.origin(self.first_row + row)
