"""Writing by tasks on several processes or machines: each writes a shard, and one process publishes them together.

The engines (Dask, Ray, Spark) start the tasks, try them again and say which succeeded; this module has what is the same
for all of them. `DistributedWriter.begin` is called once, `write_part` by each attempt at a task, then once `commit` or
`abort`. The writer and what the tasks return can be pickled.
"""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Self

import pyarrow as pa

from tfrecord_io.base import WriteOptions, printable, undo_after
from tfrecord_io.bytes import CODECS
from tfrecord_io.columns import Column, EmbeddedSchema, Rounding, empty_batch, fill_in_types, open_input, table_of_rows
from tfrecord_io.errors import SchemaError, TFRecordError
from tfrecord_io.store import Attempt, DistributedTarget, Manifest, Output, OutputFile, Publication, ShardSpec
from tfrecord_io.write.frame_sink import FrameSink, WrittenFile
from tfrecord_io.write.schema_union import SchemaUnion
from tfrecord_io.write.sharded_sink import ShardedSink, manifest_metadata
from tfrecord_io.write.writer import Writer, WriteReport, check_columns, is_growing

# Keywords of writing calls that only one process can follow.
WITHOUT = frozenset({"shards", "max_shard_bytes", "write_index", "progress", "overwrite_where"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PartContent:
    """The stored files of a part, and what publication needs to know of them.

    Attributes
    ----------
    staged : str
        The name of the file, which no other attempt has.
    crc32c : int
        The checksum of the file.
    shards : tuple of Publication.Shard
        With partition columns: the files instead of the one.
    schema, partition_schema : bytes or None
        The embedded schema, and that of the partition columns.
    columns, index : tuple of str
        As in `WriteReport`.
    rounding : Rounding
        Counts of rounded values.
    """

    staged: str
    crc32c: int = 0
    shards: tuple[Publication.Shard, ...] = ()
    schema: bytes | None = None
    partition_schema: bytes | None = None
    columns: tuple[str, ...]
    index: tuple[str, ...]
    rounding: Rounding
    source: Mapping[str, str | int] | None = None  # of a part that is made of one file: see `ManifestFile`


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """The result of an attempt at a task; `DistributedWriter.commit` publishes it.

    Attributes
    ----------
    task : int
    records, bytes : int
        Totals of its files.
    content : PartContent
        The files, for the writer that publishes them.
    """

    task: int
    records: int
    bytes: int
    content: PartContent

    @staticmethod
    def number(parts: Iterable[WrittenPart]) -> list[WrittenPart]:
        """Number the parts of tasks without fixed numbers, in the same order at each attempt to commit."""

        def name_of(part: WrittenPart) -> tuple[int, str, list[str]]:
            return part.task, part.content.staged, [shard.staged or "" for shard in part.content.shards]

        by_name = sorted(parts, key=name_of)
        return [replace(part, task=task) for task, part in enumerate(by_name)]


@dataclass(frozen=True, slots=True)
class DistributedWriter:
    """One writing of a sharded dataset by several processes; it can be pickled and sent to them.

    In the process that begins it, a context manager: an exception removes what the tasks wrote.
    """

    target: DistributedTarget  # where the tasks put their files
    options: WriteOptions  # how they write

    @classmethod
    def begin(cls, path: Any, options: WriteOptions, schema: pa.Schema | None = None) -> DistributedWriter:
        """Check that the dataset may be written, and prepare its directory.

        Parameters
        ----------
        path : str, PathLike or URL
            A directory, or the name of a dataset, ``name`` or ``name@*``. The number of shards is that of the tasks.
        options : WriteOptions
            Without those of `WITHOUT`. A task uses one thread unless `threads` states another number.
        schema : pyarrow.Schema, optional
            The columns that the tasks write, where they are known before: what cannot be written, or added to the
            dataset, raises now, and not in the tasks.

        Raises
        ------
        FileExistsError
            The dataset exists and the mode is not "overwrite", or the directory has other TFRecord files.
        ValueError
            `path` states a number of shards.
        EncodeError, SchemaError
            A column cannot be written, or added to the dataset.
        """
        if schema is not None:
            check_columns(schema, options)
        path = cls.check_path(path, options)
        output = Output.resolve(
            path,
            options.storage,
            shards=1,
            compression=options.compression,
            grows=is_growing(options),
            stated=options.any_suffix,
        )
        CODECS.check_level(CODECS.find(output.compression), options.compression_level)
        columns, unite = tuple(options.partition_by or ()), SchemaUnion(options.evolve)
        change = Publication.change_of(options.mode, unite, columns, grows=output.grows)
        target = DistributedTarget.begin(output, options.storage, change)
        writer = cls(target, replace(options, threads=options.threads or 1))
        if schema is not None and not writer.is_repeated:
            with writer:  # an error removes what was prepared
                writer._check(schema)
        return writer

    @staticmethod
    def as_directory(path: Any) -> Any:
        """Return the path with a slash, as that of a directory; ``name@*``, a dataset in a directory, stays as it is.

        >>> DistributedWriter.as_directory("/data/out"), DistributedWriter.as_directory("/data/train@*")
        ('/data/out/', '/data/train@*')
        """
        is_directory = isinstance(path, str) and not path.endswith("/") and ShardSpec.parse(path) is None
        return f"{path}/" if is_directory else path

    @staticmethod
    def check_path(path: Any, options: WriteOptions) -> str | os.PathLike[str]:
        """The path of a dataset that several processes write; raises what follows from the arguments alone."""
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"path is a str or a PathLike, not {type(path).__name__}: other processes open it, too")
        if options.partition_by:
            path = Output.directory_of_folders(path, "partition_by=", "--partition-by")
        spec = ShardSpec.parse(os.fspath(path))
        if spec is not None and spec.shards is not None:
            advice = f"write '{printable(spec.stem)}@*' and repartition the data"
            reason = f"the number of shards is that of the partitions; {advice}"
            raise ValueError(f"'{printable(os.fspath(path))}': {reason}")
        for name in sorted(WITHOUT):
            if getattr(options, name) != getattr(WriteOptions, name):
                raise TypeError(f"{name}={getattr(options, name)!r}: only a writer in one process has this keyword")
        return path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            undo_after(error, self.abort, self.target.output.path)

    def _check(self, schema: pa.Schema) -> None:
        """Raise what `commit` raises if rows of these columns cannot be added to the dataset; before any task begins.

        Raises
        ------
        SchemaError
            As `write_tfrecord` with ``mode="append"``.
        """
        if is_growing(self.options):
            part = self.write_part(0, [empty_batch(schema)])  # `commit` and `abort` remove its file
            content = Manifest(schema=part.content.schema, partition_schema=part.content.partition_schema)
            self.target.begin_publication(self.target.output, content)

    def write_part(self, task: int, tables: Iterable[Any], *, finds_types: bool = False) -> WrittenPart:
        """Write the tables of a task to one shard, or to one in each folder, in order.

        Any number of attempts may do so at a time.

        Parameters
        ----------
        task : int
            From 0; shards are in the order of their tasks.
        tables : iterable
            Of anything that `write_tfrecord` accepts.
        finds_types : bool, default False
            A column that begins with nulls only has the type of later tables, where each has the types of its own
            values. Tables wait in memory until all columns have a type, unless a schema declares the types.
        """
        if finds_types and self.options.schema is None:
            tables = _add_types(iter(tables))
        open_part = self.open_part(task)
        part = open_part.write_all(tables)
        open_part.commit()
        return part

    def open_part(self, task: int) -> OpenPart:
        """Begin an attempt at a task, to which tables are written one by one."""
        return OpenPart(self, task)

    def commit(self, parts: Iterable[WrittenPart], *, is_retried: bool = False) -> WriteReport:
        """Publish one attempt of each task, and remove the files of all others; if that fails, everything is removed.

        A commit that has published, and is repeated because its answer was lost, returns the report again, without the
        counts of rounded values. A task without records gets no shard, unless no task has any. If the transaction of
        ``txn=`` is in, nothing is published, and the report is `repeated`.

        Parameters
        ----------
        parts : iterable of WrittenPart
            Of each task, the attempt that succeeded; of several, the first is taken.
        is_retried : bool
            The caller calls it again after an OSError, such as one of the network, which then leaves what the tasks
            wrote; after other errors everything is removed.

        Raises
        ------
        SchemaError
            The parts have different columns or types: readers that fix the schema at the first shard would fail later.
            A column that is null throughout in a part has the type of the others.
        """
        if (manifest := self.target.find_published()) is not None:
            manifest = self.target.complete() or manifest
            if self.target.output.grows:
                own = [file for file in manifest.files if self.target.id in file.path]
                manifest = manifest._replace(files=tuple(own))
            return report_of(self.target, manifest)
        if self.is_repeated:
            self.abort()
            return WriteReport.already_written(self.target.output)
        if not is_retried:
            return self._publish(parts)
        try:
            return replace(self, target=replace(self.target, resumable=True))._publish(parts)
        except BaseException as error:
            if not isinstance(error, OSError) or isinstance(error, FileExistsError | TFRecordError):
                undo_after(error, self.abort, self.target.output.path)
            raise

    def _publish(self, parts: Iterable[WrittenPart]) -> WriteReport:
        """Publish the parts; see `commit`. What can be resumed stays, if it fails."""
        try:
            by_task: dict[int, WrittenPart] = {}
            for part in parts:
                by_task.setdefault(part.task, part)
            attempts = [by_task[task] for task in sorted(by_task)] or [self.write_part(0, ())]
            filled = [part for part in attempts if part.records] or attempts[:1]
            schema, types = (self._common_schema(filled, name) for name in ("schema", "partition_schema"))
            shards = _number_shards(filled)
            with_rows = {part.task for part in filled}
            sources = (part.content.source for part in attempts if part.task not in with_rows)
            empty = [source for source in sources if source is not None]
            rounding = Rounding()
            for part in filled:
                rounding.merge(part.content.rounding)
            if self.options.float64 is None:
                rounding.warn()  # the warning may be an error: then nothing is published
            content = Manifest(
                schema=schema,
                partition_schema=types,
                sources_without_rows=tuple(empty),
                metadata=manifest_metadata(self.options),
                txns=Manifest.txns_of(self.options.txn),
            )
            output, published = self.target.publish(shards, content)
            if published is None:
                return WriteReport.already_written(self.target.output)
            files = []
            for shard in published:
                name = posixpath.basename(output.shard(shard.index))
                files.append(WrittenFile(f"{output.folder}{shard.folder}{name}", shard.records, shard.bytes))
            columns = tuple(dict.fromkeys(name for part in filled for name in part.content.columns))
            index = tuple(dict.fromkeys(name for part in filled for name in part.content.index))
            totals = sum(file.records for file in files), sum(file.bytes for file in files)
            path, compression = self.target.output.path, self.target.output.compression
            return WriteReport(path, *totals, compression, columns, dict(rounding.counts), tuple(files), index)
        except BaseException as error:
            undo_after(error, self.abort, self.target.output.path)
            raise

    @property
    def id(self) -> str:
        """The id of this writing, the same in all processes."""
        return self.target.id

    @property
    def is_repeated(self) -> bool:
        """True if the transaction of `txn=` was in the dataset when this writing began: no task needs to write."""
        known = self.target.known
        return known is not None and known.has_txn(Manifest.txns_of(self.options.txn))

    def abort(self) -> None:
        """Remove what the tasks wrote; after `commit`, do nothing."""
        self.target.abort()

    def _common_schema(self, parts: Sequence[WrittenPart], name: str) -> bytes | None:
        """The schema of this name for the manifest, which covers those of all parts; None if they have none."""
        by_content: dict[bytes, EmbeddedSchema] = {}
        for part in parts:
            schema: bytes | None = getattr(part.content, name)
            if schema is not None and schema not in by_content:
                by_content[schema] = EmbeddedSchema.parse(schema, f"{self.target.output.path}: task {part.task}")
        if not by_content:
            return None
        common = reduce(EmbeddedSchema.merge, by_content.values())
        for error in common.conflicts.values():
            error.advice = _ONE_SCHEMA  # not that for reading
        common.refuse_conflicts()
        for part_schema in by_content.values():
            _refuse_other_columns(part_schema.schema, common.schema, self.target.output.path)
        return common.pack()


def report_of(target: DistributedTarget, manifest: Manifest) -> WriteReport:
    """The report of a published dataset, made from the manifest, so without counts of rounded values."""
    output = target.output.replace(count=len(manifest.files))
    names: tuple[str, ...] = ()
    index: tuple[str, ...] = ()
    if manifest.schema is not None:
        schema = EmbeddedSchema.parse(manifest.schema, output.path).schema
        names, index = tuple(schema.names), tuple(EmbeddedSchema.index_levels(schema))
    files = tuple(WrittenFile(f"{output.folder}{f.path}", f.records, f.bytes) for f in manifest.files)
    totals = (manifest.records, manifest.bytes)
    return WriteReport(output.path, *totals, output.compression, names, {}, files, index)


class OpenPart:
    """An attempt at a task, to which tables are written one by one; `close` completes it, `commit` stores it."""

    def __init__(self, writer: DistributedWriter, task: int) -> None:
        target, options = writer.target, writer.options
        self._task, self._staged = task, ""
        self._output: OutputFile | None = None  # without partition columns
        if options.partition_by:
            self._attempt = Attempt(target, task)
            self._writer = _PartWriter(target.output.path, options, ShardedSink(self._attempt, options))
        else:
            self._staged, self._output = target.open(task)
            self._sink = _PartSink(self._output, target.output.compression, options)
            self._sink.known_schema = None if target.known is None else target.known.schema
            self._writer = _PartWriter(self._output.path, options, self._sink)

    def write(self, table: Any) -> None:
        """Append all rows of anything that `write_tfrecord` accepts."""
        self._writer.write(table)

    def write_rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows, each a dict by column."""
        self.write(table_of_rows(rows))

    def write_all(self, tables: Iterable[Any]) -> WrittenPart:
        """Append all rows of the tables, and close; after an error, nothing is left."""
        with self._writer:
            for table in tables:
                self.write(table)
        return self.close()

    def close(self) -> WrittenPart:
        """Complete the file, or those in the folders, which appear at once."""
        self._writer.close()
        report = self._writer.report
        assert report is not None
        content = PartContent(
            staged=self._staged, columns=report.columns, index=report.index, rounding=self._writer.rounding
        )
        if self._output is not None:
            size, content = self._sink.bytes, replace(content, schema=self._sink.schema, crc32c=self._sink.crc32c)
        else:
            size, stored, shards = report.bytes, self._attempt.content, tuple(self._attempt.shards)
            schema, types = stored.schema, stored.partition_schema
            content = replace(content, shards=shards, schema=schema, partition_schema=types)
        return WrittenPart(self._task, report.records, size, content)

    def commit(self) -> None:
        """Let the file of a closed part appear."""
        if self._output is not None:
            self._output.commit()

    def discard(self) -> None:
        """Remove what was written, unless the part is closed."""
        self._writer.discard()


def _add_types(tables: Iterator[Any]) -> Iterator[Any]:
    """Put a table without rows before the tables, with types for columns that begin with nulls only."""
    waiting: list[Any] = []
    schema: pa.Schema | None = None
    for table in tables:
        waiting.append(table)
        table_schema = open_input(table).schema
        schema = table_schema if schema is None else fill_in_types(schema, table_schema)
        if not any(Column(type_).lacks_type for type_ in schema.types):
            break
    if schema is not None and len(waiting) > 1:
        yield pa.Table.from_batches([empty_batch(schema)])
    yield from waiting
    yield from tables


_ONE_SCHEMA = "pass schema=, which all tasks then write"


def _number_shards(parts: Sequence[WrittenPart]) -> list[Publication.Shard]:
    """The shards of the parts, in order; those of each folder are numbered from 0."""
    numbers: Counter[str] = Counter()
    shards = []
    for part in parts:
        content = part.content
        whole = Publication.Shard(
            0, part.records, part.bytes, content.crc32c, staged=content.staged, source=content.source
        )
        for shard in content.shards if content.staged == "" else (whole,):
            shards.append(replace(shard, index=numbers[shard.folder]))
            numbers[shard.folder] += 1
    return shards


def _refuse_other_columns(own: pa.Schema, common: pa.Schema, path: str) -> None:
    """Raise SchemaError for a column that a part lacks, or has in another type, unless it is null throughout there."""
    types = {field.name: field.type for field in own}
    for column in common:
        type_ = types.get(column.name)
        if type_ is None or not Column(type_).lacks_only_values(column.type):
            got = "none" if type_ is None else str(type_)
            reason = f"the tasks wrote different columns or types: {column.type}, and one of them {got}"
            expected = str(column.type)
            raise SchemaError(reason, path=path, feature=column.name, expected=expected, got=got, hint=_ONE_SCHEMA)


class _PartSink(FrameSink):
    """Writes the file of one attempt without committing it, and keeps the schema for the manifest."""

    keeps_schema = True

    def __init__(self, output: OutputFile, compression: str | None, options: WriteOptions) -> None:
        level, threads = options.compression_level, options.thread_count
        super().__init__(output.path, compression=compression, compression_level=level, output=output, threads=threads)
        self.schema: bytes | None = None

    def begin(self, schema: bytes) -> bytes:
        self.schema = schema
        return super().begin(schema)


class _PartWriter(Writer):
    """Writes one part; the process that publishes all of them warns of rounded values."""

    _warns_of_rounding = False
