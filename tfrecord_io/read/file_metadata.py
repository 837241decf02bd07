"""Metadata of files, without decoding all of them.

Tests: tests/base/messages/test_display.py and tests/read/test_reader_schema.py.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field

import pyarrow as pa

from tfrecord_io.base import ReadOptions, Report, Summary, byte_size, check_keywords, counted, printable
from tfrecord_io.columns import Column
from tfrecord_io.read.call_options import options_from_call
from tfrecord_io.read.chunks.block_walker import RecordFile
from tfrecord_io.read.chunks.embedded_schemas import first_contents, unite_embedded
from tfrecord_io.read.reader import Reader
from tfrecord_io.read.resolve_schema import plan_scan
from tfrecord_io.read.source_resolution import Files
from tfrecord_io.store import Source, SourcePrefetcher
from tfrecord_io.typing import FilesLike, StorageLike


@dataclass(frozen=True)
class FileMetadata:
    """One file: its path, size in bytes (None if unknown) and compression (None if plain)."""

    path: str
    bytes: int | None
    compression: str | None


@dataclass(frozen=True, repr=False)
class Metadata(Report):
    """The result of `read_metadata`; it prints as a line about the files and a table of the columns.

    Attributes
    ----------
    files : tuple of FileMetadata
        In the order of reading.
    bytes : int or None
        Of all files together.
    records : int or None
        If known without reading the files: from a manifest, or because the files are empty.
    schema : pyarrow.Schema
    schema_source : str
        "embedded" in the first file, "saved" or "features.json" next to it, "companions" or "inferred" from a sample.
    metadata : dict of str to str
        From the manifest, as `write_tfrecord` was given them; of several datasets, those that do not contradict each
        other. Empty for files without a manifest.
    """

    files: tuple[FileMetadata, ...]
    bytes: int | None
    records: int | None
    schema: pa.Schema
    schema_source: str
    metadata: dict[str, str] = field(default_factory=dict)

    def _summary(self) -> Summary:
        amounts = [counted(len(self.files), "file")]
        amounts += [] if self.bytes is None else [byte_size(self.bytes)]
        amounts += [] if self.records is None else [counted(self.records, "record")]
        compressions = {file.compression for file in self.files} - {None}
        title = ", ".join([*amounts, *sorted(map(str, compressions)), f"schema {self.schema_source}"])
        types = [Column(f).shown_as(Column(f.type, f.metadata).logical_name) for f in self.schema]
        rows = [(printable(f.name), printable(type_)) for f, type_ in zip(self.schema, types, strict=True)]
        lines = [f"{printable(name)}: {printable(text)}" for name, text in self.metadata.items()]
        return Summary(f"Metadata of {title}", ("column", "type"), rows, lines)


@check_keywords
def read_metadata(source: FilesLike, *, storage_options: StorageLike | None = None) -> Metadata:
    """Read the files, sizes, compression, schema and metadata of a dataset.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"n": [1, 2, 3]}, "numbers.tfrecord")
    >>> metadata = tfr.read_metadata("numbers.tfrecord")
    >>> metadata.schema_source, metadata.schema.names, metadata.files[0].compression
    ('embedded', ['n'], None)

    Parameters
    ----------
    source : str, PathLike, Dataset, or list of those
        As in `read_tfrecord`; a `dataset` has more reading options.
    storage_options : dict or filesystem, optional
        Options for fsspec, as in pandas; or the filesystem of all paths, of fsspec or pyarrow.

    Returns
    -------
    Metadata

    Raises
    ------
    FileNotFoundError
        Nothing matches `source`.
    TFRecordError
        The first records are damaged.
    """
    options = options_from_call(ReadOptions, read_metadata, source, storage_options=storage_options, threads=1)
    options = options.for_inspection()
    found = Files.from_source(source, options)
    sources = found.sources
    if any(source.is_file_object for source in sources):
        raise TypeError("read_metadata takes paths: a file object can be read only once")
    files, contents = [], dict[bytes, str]()
    with SourcePrefetcher(sources, heads=True) as prefetched:
        for source_file in prefetched:
            with closing(RecordFile(source_file)) as file:
                files.append(FileMetadata(source_file.path, source_file.size, file.compression))
            for content, path in first_contents([source_file], found.options):
                contents.setdefault(content, path)
    embedded = unite_embedded(None, contents.items())
    planned = plan_scan(
        sources, found.options, found.selection, embedded=embedded, has_united=True, keeps_conflicts=True
    )
    with Reader(planned) as reader:
        schema, schema_source = reader.schema, reader.report.schema_source
        reader.report.warn_of_skipped()
    size = Source.total(file.bytes for file in files)
    records = (
        0 if size == 0 else Source.total(None if source.shard is None else source.shard.records for source in sources)
    )
    return Metadata(
        tuple(files), size, records=records, schema=schema, schema_source=schema_source, metadata=sources.metadata
    )
