"""Files of tables that are read one after the other, or each by itself, under one schema."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Self

import pyarrow as pa

from tfrecord_io.errors import printable
from tfrecord_io.file_formats.tables.source_options import SourceOptions
from tfrecord_io.file_formats.tables.table_files import refuse_duplicates, selected
from tfrecord_io.progress import ProgressMeter
from tfrecord_io.read.partition_columns import PartitionColumns
from tfrecord_io.schema.column_selection import Projection
from tfrecord_io.schema.schema import Schema
from tfrecord_io.storage.paths.plain_files import find_files
from tfrecord_io.storage.read.source import Source


@dataclass(frozen=True, slots=True)
class TableFiles:
    """Files of tables, and the columns of the folders that they are in: ``day=1/``.

    Attributes
    ----------
    sources : list of Source
    folders : PartitionColumns
    options : SourceOptions
        For the columns in the files, without the types that are declared for those of folders.
    """

    sources: list[Source]
    folders: PartitionColumns
    options: SourceOptions

    @classmethod
    def of(
        cls, paths: Sequence[str], suffixes: str | tuple[str, ...], options: SourceOptions, *, typed: bool = False
    ) -> Self:
        """The files that paths mean.

        Parameters
        ----------
        paths : sequence of str
        suffixes : str or tuple of str
            Of the files of a directory.
        options : SourceOptions
        typed : bool
            The files state the types of their columns: no others can be declared.

        Raises
        ------
        FileNotFoundError
            A path means no file.
        SchemaError
            The name of a folder has no value of the declared type.
        """
        found = [find_files(path, suffixes, options.storage, partitioned=True) for path in paths]
        sources = [source for match in found for source in match.sources]
        folders, overrides = PartitionColumns.in_folders_of(sources).overridden(options.schema_overrides, sources)
        if typed and overrides:
            name = printable(next(iter(overrides)))
            reason = f"schema_overrides= declares '{name}', but is only for columns of folders (day=1/)"
            raise TypeError(f"{reason}, as the files state their types; schema= casts the columns to write")
        schema = options.schema
        if folders.fields and schema is not None:
            folders, schema = folders.declared(Schema.parse(schema), sources)
        return cls(sources, folders, replace(options, schema=schema, schema_overrides=overrides))

    def selected(self, names: Sequence[str]) -> list[str] | None:
        """Those of the columns in the files that are selected; None: all.

        Raises
        ------
        FeatureNotFoundError
            The selection names a column that does not exist.
        SchemaError
            A folder has the name of a column.
        EncodeError
            Two of them have the same name.
        """
        self.options.check_count(len(names), self.sources[0].path)
        projection = self.projection(names)
        self.folders.refuse_features(names, self.sources)
        projection.check([*names, *self.folders.names])
        chosen = projection.order(names)
        refuse_duplicates(chosen, self.sources[0].path)
        return None if projection.takes_all else chosen

    def projection(self, names: Sequence[str]) -> Projection:
        """The columns to read of those in the files and those of folders."""
        return self.options.projection([*names, *self.folders.names])


@dataclass(frozen=True, slots=True)
class TableSource:
    """Files, with the schema that was decided once for all of them.

    Attributes
    ----------
    files : TableFiles
    own : pyarrow.Schema
        Of the columns in the files.
    batches : callable
        The rows of one file, in these columns or those that are selected, as a generator; it advances a meter by the
        bytes of the file.
    """

    files: TableFiles
    own: pa.Schema
    batches: Callable[[Source, ProgressMeter], Generator[pa.RecordBatch]]

    @property
    def sources(self) -> Sequence[Source]:
        return self.files.sources

    @property
    def schema(self) -> pa.Schema:
        """Of all columns, those of folders last."""
        return self._with_folders(self.own)

    def _with_folders(self, schema: pa.Schema) -> pa.Schema:
        folders = self.files.folders.fields
        return pa.schema([*schema, *folders], schema.metadata) if folders else schema

    @contextmanager
    def open(self) -> Iterator[pa.RecordBatchReader]:
        """The rows of all files, one file after the other."""
        with self.files.options.meter(self.sources) as meter, self.rows(self.sources, meter) as rows:
            yield rows

    @contextmanager
    def rows(self, sources: Sequence[Source], meter: ProgressMeter) -> Iterator[pa.RecordBatchReader]:
        """The rows of some of the files, in the selected columns."""

        def batches() -> Generator[pa.RecordBatch]:
            for source in sources:
                for batch in self.batches(source, meter):
                    yield self.files.folders.add_to(batch, [source], self._with_folders(batch.schema), None)

        with closing(batches()) as parts:
            yield selected(self.schema, parts, self.files.projection(self.own.names))
