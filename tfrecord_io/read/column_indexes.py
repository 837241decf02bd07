"""The column indexes of what is written, made of the files once these are published."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tfrecord_io.base import ScanOptions, StorageOptions, logger
from tfrecord_io.columns import Projection
from tfrecord_io.errors import ReplacedError, TFRecordError
from tfrecord_io.read.index.column_index import COLUMNS_SUFFIX, ColumnIndex, check_fields, expand_scalars
from tfrecord_io.read.index.find_index import find_again, open_columns, unless_stale, warn_of_stale
from tfrecord_io.store import Publication, RandomAccessFile, Source, find_sidecars

if TYPE_CHECKING:
    from tfrecord_io.read.index.column_search import ColumnSearch
    from tfrecord_io.read.scan import Scan


@dataclass(frozen=True)
class ColumnIndexes:
    """Writes the column indexes of files that were written.

    Parameters
    ----------
    path : path
        By which a reader finds the files.
    columns : sequence of str
        As for `tfrecord_io.build_index`.
    storage : StorageOptions
    dataset : Publication, optional
        To which shards are added: without `columns`, they get the column index of its last shard (`resolve_columns`).
    is_optional : bool
        Columns that the files do not have as single values are left out.
    name : str, optional
        A path that names the dataset, for a directory in which another one is, too.
    """

    path: Any
    columns: Sequence[str]
    storage: StorageOptions
    dataset: Publication | None = None
    is_optional: bool = False
    name: str | None = None

    def resolve_columns(self) -> ColumnIndexes:
        """With the columns of the dataset, if none are named; before its last shard may be replaced."""
        if self.columns:
            return self
        sidecar = None if self.dataset is None else self.dataset.last_sidecar(COLUMNS_SUFFIX)
        if sidecar is None:
            return replace(self, columns=(), is_optional=True)
        source, shard_bytes = sidecar

        def names() -> Sequence[str]:
            with RandomAccessFile.open(source) as opened:
                return ColumnIndex(opened, source.path, shard_bytes).names

        columns, text = unless_stale(names)  # none, with a warning, if the index is damaged
        warn_of_stale([text])
        return replace(self, columns=columns or (), is_optional=True)

    def write(self, files: Mapping[str, int]) -> None:
        """Write those of published files, whose paths have the numbers of their records; none without records."""
        if not self.columns or not any(files.values()):
            return
        from tfrecord_io.read.build_column_index import index_columns

        options = ScanOptions(**self.storage.keywords)
        names = {os.path.basename(file) for file in files}
        try:
            written = [s for s in self._sources(options) if os.path.basename(s.path) in names]
            if written:  # else another writer has replaced them
                index_columns(written, self.columns, options, is_just_written=True, is_optional=self.is_optional)
        except (ReplacedError, FileNotFoundError):  # or does so now: the call has added its rows, and must not fail
            logger.info("not indexed: %s, another writer has replaced what was written", self.path)

    def _sources(self, options: ScanOptions) -> Sequence[Source]:
        """The files of the dataset, found by its name only where the path does not say which dataset it means.

        A path with a name lists the directory, that of a large dataset alone does not.
        """
        from tfrecord_io.read.find_sources import resolve_sources

        try:
            return resolve_sources(self.path, options)
        except ValueError as error:
            if self.name is None or isinstance(error, TFRecordError):
                raise
            return resolve_sources(self.name, options)

    @staticmethod
    def rewrite(sources: Sequence[Source], columns: Sequence[str], options: ScanOptions) -> None:
        """Write those of files whose records were replaced; columns that they do not have are left out."""
        from tfrecord_io.read.build_column_index import index_columns

        index_columns(sources, columns, options, is_optional=True)

    @staticmethod
    def search(scan: Scan) -> ColumnSearch:
        """The search for the rows of a scan."""
        from tfrecord_io.read.index_search import column_search

        return column_search(scan, scan.row_filter)

    @staticmethod
    def check(columns: Sequence[str], schema: pa.Schema, features: Collection[str] = ()) -> None:
        """Raise, before anything is written, if these columns of a schema with these features cannot be indexed.

        Raises
        ------
        FeatureNotFoundError
            An entry matches no column.
        SchemaError
            A column that is named has no single values, or no column has.
        """
        if not columns:
            return
        entries = expand_scalars(columns, schema)
        Projection(entries).check({*schema.names, *features}, "write_index")
        check_fields(schema.field(name) for name in Projection(entries).order(schema.names))

    @staticmethod
    def of_files(sources: Sequence[Source]) -> list[tuple[str, ...] | None]:
        """The columns of the column index of each file; None without an index, or with a stale one."""

        def names(source: Source, index: Source) -> tuple[str, ...]:
            with RandomAccessFile.open(source) as file, open_columns(index, source, file) as (columns, _):
                return columns.names

        def names_now(source: Source, index: Source | None) -> tuple[str, ...] | None:
            try:
                return None if index is None else names(source, index)
            except (FileNotFoundError, ReplacedError):
                latest = find_again(source, COLUMNS_SUFFIX)
                return None if latest is None else names(source, latest)

        pairs = zip(sources, find_sidecars(sources, (COLUMNS_SUFFIX,)), strict=True)
        columns_and_warnings = [unless_stale(partial(names_now, *pair)) for pair in pairs]
        warn_of_stale(text for _, text in columns_and_warnings)
        return [columns for columns, _ in columns_and_warnings]
