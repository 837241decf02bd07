"""Copies of records: what is read, where it is written, and the report about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tfrecord_io.index import find_indexes
from tfrecord_io.index.known_counts import KnownCounts
from tfrecord_io.options import MAX_RECORD_BYTES, StorageOptions, WriteOptions
from tfrecord_io.progress import ProgressMeter
from tfrecord_io.read.chunks.count_frames import count_each
from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.read.source import Source, total
from tfrecord_io.tools.copied_records import CopiedRecords, Frames
from tfrecord_io.write.frame_sink import with_prefix
from tfrecord_io.write.writer import WriteReport, open_sink, warn_of_lost_schema

# Keywords of writing that do not apply where records are copied as bytes.
NOT_COPIED = ("schema", "record_type", "column_encoding", "float64", "nan_to_null", "index", "order", "embed_schema")


@dataclass(frozen=True)
class CopyTask:
    """The sources and the options of a call that copies records.

    Attributes
    ----------
    sources : list of Source
    records : CopiedRecords
    reading : StorageOptions
        Of the sources.
    writing : WriteOptions
    """

    sources: list[Source]
    records: CopiedRecords
    reading: StorageOptions
    writing: WriteOptions

    @classmethod
    def of(
        cls,
        src: Any,
        allow_missing_shards: bool,
        src_storage_options: Mapping[str, Any] | None,
        dst_storage_options: Mapping[str, Any] | None,
        keywords: Mapping[str, Any],
    ) -> CopyTask:
        """The task of a call with these keywords."""
        options = WriteOptions.of(keywords)
        write_to = options.storage.with_options(dst_storage_options)
        read_from = options.storage.with_options(src_storage_options)
        sources = resolve_inputs(src, read_from, allow_missing_shards=allow_missing_shards)
        return cls(sources, CopiedRecords(sources), read_from, WriteOptions.of({**keywords, **write_to.keywords}))

    def count(self) -> int:
        """The number of records, by the cheapest method that applies to each file."""
        indexes = find_indexes(self.sources, None, self.reading)
        return sum(count_each(self.sources, indexes, KnownCounts("infer", MAX_RECORD_BYTES)))

    def frames(self) -> Iterator[Frames]:
        """All records, with the progress that was asked for."""
        with ProgressMeter(self.writing.progress, total(source.size for source in self.sources), "bytes") as bar:
            yield from self.records.frames(bar)

    @contextmanager
    def output(self, path: Any) -> Iterator[RecordOutput]:
        """An output for records, published when the block ends, and discarded after an exception."""
        output = RecordOutput(path, self.records, self.writing)
        try:
            yield output
            output.commit()
        except BaseException:
            output.discard()
            raise


class RecordOutput:
    """Writes copied records to a file or a dataset, with the embedded schema in each file's first record.

    Attributes
    ----------
    report : WriteReport or None
        After `commit`.
    """

    def __init__(self, path: Any, records: CopiedRecords, options: WriteOptions) -> None:
        self.report: WriteReport | None = None
        self._columns, self._has_schema = records.columns, records.schema is not None
        self._sink = open_sink(path, options)
        self._prefix = b"" if records.schema is None else self._sink.begin(records.schema)

    def expect(self, records: int) -> None:
        """Announce the number of all records, before the first `write`."""
        self._sink.expect(records)

    def write(self, frames: Frames) -> None:
        """Append records."""
        data, sizes = frames
        if self._prefix and len(sizes):
            first = with_prefix(self._prefix, data[: sizes[0]], self._sink.path)
            self._prefix = b""
            self._sink.write(self._sink.prepare(first, 1, 0))
            data, sizes = data[sizes[0] :], sizes[1:]
        if len(sizes):
            self._sink.write(self._sink.prepare(data, len(sizes), self._sink.records))

    def commit(self) -> None:
        """Publish the records."""
        sink = self._sink
        sink.commit()
        if self._has_schema and not sink.records:
            warn_of_lost_schema(sink, len(self._columns))
        size = sum(file.bytes for file in sink.files)
        self.report = WriteReport(sink.path, sink.records, size, sink.compression, self._columns, {}, sink.files)

    def discard(self) -> None:
        """Remove what was written; after `commit`, do nothing."""
        self._sink.discard()


def report_of(output: RecordOutput) -> WriteReport:
    """The report of an output that was committed."""
    assert output.report is not None
    return output.report
