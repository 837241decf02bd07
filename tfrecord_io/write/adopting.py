"""Adopt files of other tools as a dataset: only a manifest is written, with the names of the files."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from tfrecord_io.base import ProgressMeter, ScanOptions, check_keywords, ordered, printable, secret_url
from tfrecord_io.bytes import CODECS, crc32c
from tfrecord_io.columns import EmbeddedSchema
from tfrecord_io.read import AddedColumns, CallSource, Files, options_from_call
from tfrecord_io.store import (
    ColumnFolder,
    FileName,
    Location,
    Manifest,
    Publication,
    RandomAccessFile,
    ShardName,
    ShardSpec,
    Source,
    Sources,
    resolve_inputs,
)
from tfrecord_io.typing import UNSET, OpenedDataset, Path, ProgressLike, StorageLike, Unset
from tfrecord_io.write.frame_sink import WrittenFile
from tfrecord_io.write.writer import WriteReport

_MOST_FILES = 8  # that are read at a time


@check_keywords
def adopt(
    source: Path | OpenedDataset, *, storage_options: StorageLike | None = None, progress: ProgressLike | Unset = UNSET
) -> WriteReport:
    """Make files of another writer, such as spark-tfrecord, a dataset: write a manifest for them.

    The files are read for it, and stay as they are: their records are counted, and their checksums computed. Afterwards
    rows can be appended, ``mode="overwrite_partitions"``, `delete` and `compact` work, and readers see one version of
    the dataset. Reading gives the same rows as before.

    The schema of the dataset is the one that covers the embedded schemas of the files; if none has one, it is the one
    saved next to them (`Schema.save`), else it is inferred from all records. Folders such as ``day=2026-01-01/`` become
    its partition columns.

    >>> import os
    >>> import tfrecord_io as tfr
    >>> for day in (1, 2):
    ...     os.makedirs(f"from_spark/day={day}")
    ...     path = f"from_spark/day={day}/part-00000-5d3f0b3b-c000.tfrecord.gz"
    ...     _ = tfr.write_tfrecord({"user": [day, 7]}, path, embed_schema=False)
    >>> tfr.adopt("from_spark").records
    4
    >>> _ = tfr.write_tfrecord(
    ...     {"user": [9], "day": [3]}, "from_spark", mode="append", partition_by="day"
    ... )
    >>> tfr.delete("from_spark", filters=[("day", "==", 1)]).folders
    ('day=1',)
    >>> tfr.read_table("from_spark").to_pylist()
    [{'user': 2, 'day': 2}, {'user': 7, 'day': 2}, {'user': 9, 'day': 3}]

    Parameters
    ----------
    source : str, PathLike or Dataset
        A directory. The files are those that `read_table` reads of it: names such as ``_SUCCESS`` and ``_temporary/``
        are left out. Or ``train@*``, where a directory has shards of several names. Rows are appended to ``train@*``
        where the files have names such as ``train-00000-of-00008``, else to the directory.
    storage_options, progress
        As for `dataset`.

    Returns
    -------
    WriteReport
        Of the files, none of which was written.

    Raises
    ------
    FileExistsError
        A manifest names the files, or some of them, already.
    SchemaError
        Two files have types of a column that no type has in common, or folders of different columns.
    CorruptRecordError, TruncatedRecordError, CompressionError
        A file is damaged; nothing is written. `salvage` repairs it.
    OSError
        Files were changed meanwhile; nothing is written.

    Notes
    -----
    Where the manifest of a large dataset was lost, its parts are still there. Files that they state under these names
    and sizes, which no other file gets, are not read; the others are counted, and `verify` reads all.

    Files that another tool adds later are not read, with a warning, until a manifest names them: delete the manifest
    and adopt the directory again, or append by this package. If some files have an embedded schema and others do not,
    the dataset has none, and each read decides as before.
    """
    options = options_from_call(ScanOptions, adopt, source, storage_options=storage_options, progress=progress)
    path = CallSource(source).one_path("adopt")
    return _adopt_files(path, options)


def _adopt_files(path: Path, options: ScanOptions) -> WriteReport:
    """Write a manifest for files of another writer, which makes them a dataset."""
    fs, name = Location.of(path, options.storage)
    sources = resolve_inputs(path, options.storage)
    directory = f"{name.rstrip('/')}/" if name.rstrip("/") else name
    if ShardSpec.parse(name) is not None:
        directory = name[: len(name) - len(name.rpartition("/")[2])]
    names = _names_below(directory, sources, path)
    _check_unnamed(sources)
    columns = _partition_columns(names)
    stem = _stem(names)
    in_parts = Manifest.files_in_lost_parts(fs, directory, stem)
    states = _states(sources)
    files = _count_and_sum(names, sources, in_parts, options)
    types = pa.schema(AddedColumns.from_folders(sources).fields)
    schema, shown = Files(sources, options).schema_for_manifest([file.records for file in files])
    codecs = {None if (codec := CODECS.of_path(path)) is None else codec.name for path in names}
    manifest = Manifest(
        stem,
        ShardName.new_id(),
        tuple(files),
        compression=codecs.pop() if len(codecs) == 1 else None,
        schema=schema,
        partition_by=columns,
        partition_schema=EmbeddedSchema.of(types).pack() if columns else None,
    )
    _check_unchanged(states, path, options)

    Publication.publish_in_place(fs, directory, manifest)
    adopted = tuple(
        WrittenFile(source.path, file.records, file.bytes) for source, file in zip(sources, files, strict=True)
    )
    records, size = manifest.records, manifest.bytes
    return WriteReport(
        path=os.fspath(path),
        records=records,
        bytes=size,
        compression=manifest.compression,
        columns=(*shown, *columns),
        rounded={},
        files=adopted,
    )


def _names_below(directory: str, sources: Sequence[Source], path: Path) -> list[str]:
    """Names of the files below a directory, as a manifest has them; an error for files elsewhere and odd names."""
    names = [source.location[1] for source in sources]
    if not all(name.startswith(directory) for name in names):
        text = "adopt makes a dataset of the files of a directory, or of all shards of a name (train@*)"
        raise NotADirectoryError(errno.ENOTDIR, text, secret_url(os.fspath(path)))
    names = [name.removeprefix(directory) for name in names]
    if odd := next(filter(re.compile("[\\\\\ud800-\udfff]").search, names), None):
        raise ValueError(f"'{printable(odd)}': names of shards must be UTF-8 without backslashes; rename the file")
    return names


def _states(sources: Sequence[Source]) -> list[tuple[str, object]]:
    """The path and the state of each file."""
    return [(source.path, RandomAccessFile.state_of(source)) for source in sources]


def _check_unchanged(states: Sequence[tuple[str, object]], path: Path, options: ScanOptions) -> None:
    """Raise OSError if files were added, removed or changed since they were listed."""
    if _states(resolve_inputs(path, options.storage)) != states:
        text = "files were added, removed or changed while they were read; nothing is written: do so again"
        raise OSError(errno.EBUSY, text, secret_url(os.fspath(path)))


def _check_unnamed(sources: Sequence[Source]) -> None:
    """Raise an error if a manifest names a file, or a file cannot be read again."""
    for source in sources:
        if source.shard is not None:
            text = f"'{source.shard.manifest.path}' names this file already, so it is part of a dataset; delete that"
            text += " manifest if it no longer describes the files, and adopt them again"
            raise FileExistsError(errno.EEXIST, text, source.path)
        if source.is_pipe:
            raise ValueError(f"{printable(source.path)}: a dataset has regular files, and this is a pipe")


def _partition_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Columns of the partition folders; ValueError if they are not the same for all files."""
    folders = {tuple(ColumnFolder.column_of(folder) or "" for folder in name.split("/")[:-1]): name for name in names}
    if len(folders) > 1:
        (first_columns, first), (second_columns, second) = [*folders.items()][:2]
        text = f"'{printable(first)}' is in folders of {list(first_columns)}, "
        text += f"'{printable(second)}' in folders of {list(second_columns)}"
        raise ValueError(f"{text}: the files of a dataset are in folders of the same columns; move one of them")
    return next(iter(folders))


def _stem(names: Sequence[str]) -> str:
    """Name of the dataset: the stem of the shards' names, or the default for a directory."""
    if any("/" in name for name in names):
        return FileName.DIRECTORY_STEM
    stems = {None if shard is None else shard.stem for shard in map(ShardName.parse, names)}
    return (next(iter(stems)) if len(stems) == 1 else None) or FileName.DIRECTORY_STEM


def _count_and_sum(
    names: Sequence[str], sources: Sources, in_parts: Mapping[str, Publication.File], options: ScanOptions
) -> list[Publication.File]:
    """Count the records of each file, and compute its size and CRC-32C, where no part of a lost manifest states both.

    `in_parts` has the files in such parts, by name; a file that has another size by now is read.
    """
    files: dict[str, Publication.File] = {}
    for name, source in zip(names, sources, strict=True):
        if (file := in_parts.get(name)) is not None and file.bytes == source.size:
            files[name] = Publication.File(name, file.records, file.bytes, file.crc32c)
    unread = [at for at, name in enumerate(names) if name not in files]
    sources = sources.take(np.array(unread, np.int64))
    counts = Files(sources, options).count_records() if unread else []
    with ProgressMeter(options.progress, sources.bytes, "bytes") as meter:
        calls = (partial(source.checksum, crc32c) for source in sources)
        sums = ordered(calls, min(_MOST_FILES, len(unread)), "adopt")
        for at, records, (size, crc) in zip(unread, counts, sums, strict=True):
            files[names[at]] = Publication.File(names[at], records, size, crc)
            meter.advance(size)
    return [files[name] for name in names]
