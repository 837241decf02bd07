"""Folders of tables, written by pyarrow.dataset: several files, and folders of columns (``day=1/``).

All files are written to a temporary directory first, and put into the folder when they are complete: a new folder on
the local disk appears at once, other files one by one, and after an error those that were put there are removed. Files
that are replaced are removed last.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, get_args

import pyarrow as pa

from tfrecord_io.apps.file_formats.tables.table_files import (
    OpenWriter,
    RowSlices,
    SourceOptions,
    check_schema,
    no_columns_error,
    refuse_types,
    refused_value,
    suffixes_of,
)
from tfrecord_io.base import ExportOptions, StorageOptions
from tfrecord_io.columns import Column, Projection
from tfrecord_io.errors import EncodeError, SchemaError
from tfrecord_io.kit import FORMATS, Format, Options, WriteOptions, check_choice, open_output, printable
from tfrecord_io.read import CallSource
from tfrecord_io.store import Entry, FileName, Listing, Location, NewFolder
from tfrecord_io.typing import WriteMode, WriteReport
from tfrecord_io.write import WrittenFile

_PARQUET, _ARROW = FORMATS.parquet, FORMATS.arrow

FOLDER_OPTIONS = frozenset({"shards", "max_file_bytes", "partition_by"})
_DIRECT = (_PARQUET, _ARROW)  # formats that pyarrow.dataset writes like `write_table_file`, and calls by these names
_SAMPLE_BYTES = 8 << 20  # from which the rows of a file are computed
_MOST_GROUP_ROWS = 1 << 20  # pyarrow's default
_MOST_FOLDERS = 100_000
_COPY_BYTES = 4 << 20
_MISSING = "__HIVE_DEFAULT_PARTITION__"  # pyarrow's text for null, which it does not escape


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, init=False)
class FolderOptions(Options):
    """Options to write a folder of tables: keywords of `tfrecord_io.convert` for a target folder."""

    shards: int | None = None
    max_file_bytes: int | None = None
    partition_by: str | Sequence[str] | None = None
    mode: WriteMode | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("mode", self.mode, (None, *get_args(WriteMode)))
        self._check_integer("max_file_bytes", 1, optional=True)
        if self.shards is not None and self.max_file_bytes is not None:
            raise ValueError("shards= fixes the number of files, max_file_bytes= leaves it open: pass only one of them")
        mode = "overwrite" if self.mode == "overwrite_partitions" and self.partition_by else self.mode
        shared = WriteOptions(shards=self.shards, partition_by=self.partition_by or None, mode=mode)
        object.__setattr__(self, "partition_by", tuple(shared.partition_by or ()))


def write_table_folder(source: Any, target: Any, format: Format, keywords: dict[str, Any]) -> WriteReport:
    """Write TFRecord files as the files of a folder, of a format that has a `writer`.

    `source`, `target` and `keywords` are as in `write_table_file`, with those of `FolderOptions`.

    Raises
    ------
    FileExistsError
        The folder has files, and the mode is "error".
    FeatureNotFoundError, EncodeError
        A column of `partition_by` does not exist; or the format, or the name of a folder, cannot hold a column.
    SchemaError
        Rows of other columns would be appended to files that state their columns.
    """
    assert format.writer is not None
    of_folder = {key: keywords.pop(key) for key in (*FOLDER_OPTIONS, "mode") if key in keywords}
    options = FolderOptions.from_keywords(of_folder)
    writer_options = {key: keywords.pop(key) for key in format.writes & keywords.keys()}
    export = CallSource(source).options(ExportOptions, **keywords)
    folder = _Target(Location.text_of(target).rstrip("/"), export.target, format, options)
    with ExitStack() as opened:
        reader = opened.enter_context(CallSource(source).open(export))
        schema, columns = reader.schema, list(options.partition_by or ())
        writer = _Writer(format, Format.load(format.writer), writer_options)
        Projection(tuple(columns) or None).check(schema.names)
        stored = pa.schema([field for field in schema if field.name not in columns], schema.metadata)
        refuse_types(stored, writer.open, format.instead)
        if not stored.names and format.needs_columns:
            raise no_columns_error()
        stage = opened.enter_context(folder.begin(stored))
        with _pyarrow_errors(folder.path):
            if options.shards is not None:
                rows = _write_shards(reader, stage, writer, options.shards)
            else:
                rows = _write_dataset(reader, stage, writer=writer, options=options, columns=columns)
        files = folder.publish(stage, rows)
    total = sum(file.bytes for file in files)
    records = sum(file.records for file in files)
    return WriteReport(
        folder.path, records, bytes=total, compression=None, columns=tuple(schema.names), rounded={}, files=tuple(files)
    )


@contextmanager
def _pyarrow_errors(path: str) -> Iterator[None]:
    """Raise an EncodeError if pyarrow cannot write a column."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        reason = f"pyarrow cannot write these rows to a folder: {printable(str(error), 300)}"
        raise EncodeError(reason, path=path, hint="leave the column out") from error


@dataclass(frozen=True, slots=True)
class _Writer:
    """The writer of a format, with its own keywords."""

    format: Format
    function: Callable[..., Any]
    keywords: dict[str, Any]

    @property
    def suffix(self) -> str:
        return self.format.suffixes[0]

    def open(self, sink: Any, schema: pa.Schema) -> Any:
        return self.function(sink, schema, **self.keywords)

    def write(self, path: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> int:
        """Write one file; returns the number of its rows."""
        rows = 0
        opener: OpenWriter = self.open
        with open(path, "xb") as file, self.open(file, schema) as writer:
            for batch in batches:
                try:
                    writer.write_batch(batch)
                except pa.ArrowException:  # its message holds the value
                    if (error := refused_value(batch, opener, self.format.instead)) is None:
                        raise
                    error.record = None
                    raise error from None
                rows += len(batch)
        return rows


def _write_shards(reader: Any, stage: _Stage, writer: _Writer, count: int) -> dict[str, int]:
    """Write a number of files with about as many rows each, in order; returns the rows of each file."""
    spool = os.path.join(stage.scratch, "rows.arrow")
    total = 0
    with pa.OSFile(spool, "wb") as file, pa.ipc.new_file(file, reader.schema) as spooled:
        for batch in reader:
            spooled.write_batch(batch)
            total += len(batch)
    rows: dict[str, int] = {}
    with pa.memory_map(spool) as file:
        stored = pa.ipc.open_file(file)
        slices = RowSlices(map(stored.get_batch, range(stored.num_record_batches)))
        for number in range(count):
            name = stage.name(f"{number:05d}-of-{count:05d}", writer.suffix)
            begin, end = number * total // count, (number + 1) * total // count
            rows[name] = writer.write(stage.path(name), reader.schema, slices.take(end - begin))
    os.unlink(spool)
    return rows


def _write_dataset(
    reader: Any, stage: _Stage, writer: _Writer, options: FolderOptions, columns: list[str]
) -> dict[str, int]:
    """Write files by pyarrow.dataset, in a folder for each value of the columns; returns the rows of each file."""
    from pyarrow import dataset

    batches: Iterator[pa.RecordBatch] = (_refuse_unnamed(batch, columns) for batch in reader if len(batch))
    limits: dict[str, Any] = {}
    if options.max_file_bytes is not None:
        first, most_rows = _rows_of_bytes(batches, options.max_file_bytes)
        batches = chain(first, batches)
        limits = {"max_rows_per_file": most_rows, "max_rows_per_group": min(most_rows, _MOST_GROUP_ROWS)}
    is_direct = writer.format in _DIRECT
    form = (writer.format if is_direct else _ARROW).name
    (arrow_suffix, *_) = _ARROW.suffixes
    root = stage.root if is_direct else os.path.join(stage.scratch, "rows")
    partitioning = dataset.partitioning(pa.schema([reader.schema.field(name) for name in columns]), flavor="hive")
    dataset.write_dataset(
        pa.RecordBatchReader.from_batches(reader.schema, batches),
        root,
        format=form,
        basename_template=stage.name("{i}", writer.suffix if is_direct else arrow_suffix),
        partitioning=partitioning if columns else None,
        use_threads=False,  # so that rows are in order
        max_partitions=_MOST_FOLDERS,
        existing_data_behavior="overwrite_or_ignore",
        **limits,
    )
    names = _files_below(root)
    if not names:  # no row: a file has the columns
        name = stage.name("0", writer.suffix)
        stored = pa.schema([field for field in reader.schema if field.name not in columns], reader.schema.metadata)
        return {name: writer.write(stage.path(name), stored, iter(()))}
    if is_direct:
        return {name: _rows_in(os.path.join(root, name), form) for name in names}
    rows: dict[str, int] = {}
    for name in names:
        staged, path = os.path.join(root, name), name.removesuffix(arrow_suffix) + writer.suffix
        with pa.memory_map(staged) as file:
            content = pa.ipc.open_file(file)
            every = map(content.get_batch, range(content.num_record_batches))
            rows[path] = writer.write(stage.path(path), content.schema, every)
        os.unlink(staged)
    return rows


def _refuse_unnamed(batch: pa.RecordBatch, columns: list[str]) -> pa.RecordBatch:
    """The batch; EncodeError for a value of these columns that could not be read back from the name of a folder."""
    import pyarrow.compute as pc

    for name in columns:
        values = batch.column(name)
        values = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
        if not Column(values.type).is_text_or_bytes:
            continue
        try:
            is_missing = pc.any(pc.equal(values.cast(pa.large_string()), _MISSING)).as_py()
            reason = f"the folder of the text {_MISSING} is that of missing values" if is_missing else None
        except pa.ArrowInvalid:
            reason = "the name of a folder is UTF-8, and holds no other bytes"
        if reason is not None:
            hint, hint_cli = "leave it out of partition_by=", "leave it out of --partition-by"
            raise EncodeError(reason, feature=name, hint=hint, hint_cli=hint_cli)
    return batch


def _rows_of_bytes(batches: Iterator[pa.RecordBatch], size: int) -> tuple[list[pa.RecordBatch], int]:
    """The first batches, and how many such rows take so many bytes."""
    first, size_so_far = list[pa.RecordBatch](), 0
    for batch in batches:
        first.append(batch)
        size_so_far += batch.nbytes
        if size_so_far >= max(_SAMPLE_BYTES, 4 * size):
            break
    return first, max(1, size * sum(map(len, first)) // max(1, size_so_far))


def _files_below(root: str) -> list[str]:
    """The files below a local directory, relative to it, in order."""
    paths = (os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names)
    return sorted((os.path.relpath(path, root).replace(os.sep, "/") for path in paths), key=_order)


def _order(name: str) -> tuple[str, int, str]:
    folder, _, base = name.rpartition("/")
    return folder, len(base), base


def _rows_in(path: str, form: str) -> int:
    from pyarrow import dataset

    return int(dataset.dataset(path, format=form).count_rows())


@dataclass(frozen=True, slots=True)
class _Stage:
    """A place for files before they are published."""

    root: str  # has the files by their names in the folder
    scratch: str  # for other files
    id: str  # of this write, in the names of added files
    folder: NewFolder | None  # whose temporary directory `root` is

    def name(self, number: str, suffix: str) -> str:
        return f"part-{number}{'-' + self.id if self.id else ''}{suffix}"

    def path(self, name: str) -> str:
        path = os.path.join(self.root, *name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path


class _Target:
    """The folder, in any store."""

    def __init__(self, path: str, storage: StorageOptions, format: Format, options: FolderOptions) -> None:
        self.path, self._storage, self._format, self._options = path, storage, format, options
        location = Location.of(path, storage)
        location.check_writable()
        self._fs, self._name = location
        self._old: list[Entry] = []

    @contextmanager
    def begin(self, stored: pa.Schema) -> Iterator[_Stage]:
        """Look at what the folder has, and make a directory for the files."""
        mode = self._options.mode or "error"
        is_local = self._fs.is_local
        if mode != "error":
            self._old = self._existing()
        if mode == "append":
            self._check_appended(stored)
        with ExitStack() as opened:
            scratch = opened.enter_context(tempfile.TemporaryDirectory(prefix="tables-"))
            folder = NewFolder.begin(self.path, self._storage) if mode == "error" else None
            if folder is not None and is_local:
                root = os.path.dirname(opened.enter_context(folder).table("part"))
            else:
                root = os.path.join(scratch, "files")
                os.makedirs(root)
                folder = None
            yield _Stage(root, scratch, "" if mode == "error" else FileName.new_id(), folder)

    def publish(self, stage: _Stage, rows: dict[str, int]) -> list[WrittenFile]:
        """Put the files into the folder, and remove the old versions."""
        files = [
            WrittenFile(f"{self.path}/{name}", count, os.path.getsize(stage.path(name))) for name, count in rows.items()
        ]
        if stage.folder is not None:
            return files  # the end of the block publishes the folder
        published: list[str] = []
        try:
            for name in rows:
                path = f"{self.path}/{name}"
                with (
                    open(stage.path(name), "rb") as file,
                    Location.of(path, self._storage).new_parent(),
                    open_output(path, self._storage, mode="error") as output,
                ):
                    while data := file.read(_COPY_BYTES):
                        output.write(data)
                published.append(path)
        except BaseException:
            for path in published:
                with suppress(OSError):
                    Location.of(path, self._storage).remove()
            raise
        for entry in self._replaced_files(rows):
            self._fs.remove(entry.name)
        return files

    def _existing(self) -> list[Entry]:
        """The files of the format in the folder, and in its folders of columns."""
        entry = self._fs.entry(self._name)
        if entry is None:
            return []
        if not entry.directory:
            raise NotADirectoryError(errno.ENOTDIR, "a file, not a folder", self.path)
        suffixes = suffixes_of(self._format)
        files = (
            e
            for e in Listing.of_directory(self._fs, entry.name).entries
            if not (e.directory or FileName.parse(e.basename).is_hidden)
        )
        return [e for e in files if e.basename.lower().endswith(suffixes)]

    def _replaced_files(self, rows: dict[str, int]) -> list[Entry]:
        """The files that the new ones replace, by the mode."""
        if self._options.mode == "append":
            return []
        if self._options.mode == "overwrite":
            return self._old
        folders = {name.rpartition("/")[0] for name in rows}
        root = f"{self._name.rstrip('/')}/"
        return [e for e in self._old if e.name.removeprefix(root).rpartition("/")[0] in folders]

    def _check_appended(self, stored: pa.Schema) -> None:
        """Raise SchemaError if the folder has files of another schema, as readers take one schema for all."""
        if not self._old or not self._format.typed or self._format.plan is None:
            return
        options = SourceOptions(self._storage, named=True)
        first = Format.load(self._format.plan)([self._fs.display_path(self._old[0].name)], options).file_schema
        try:
            check_schema(stored.remove_metadata(), first.remove_metadata(), self.path, self._old[0].name)
        except SchemaError as error:
            error.set_hint("write to another folder")
            raise
