"""Adopt files of other tools as a dataset: only a manifest is written, with the names of the files."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from tfrecord_io.base import ProgressMeter, ScanOptions, ordered, printable, secret_url
from tfrecord_io.bytes import CODECS, crc32c
from tfrecord_io.columns import Observation, Schema, embedded_schema, join_columns, pack, plan_columns, unpack
from tfrecord_io.read import (
    KnownCounts,
    PartitionColumns,
    count_each,
    find_indexes,
    find_saved_schema,
    first_contents,
    inferred_schema,
    plan_scan,
    unite_embedded,
)
from tfrecord_io.store import (
    DIRECTORY_STEM,
    ColumnFolder,
    FileName,
    Manifest,
    ManifestFile,
    ShardName,
    ShardSpec,
    Source,
    checksum,
    locate,
    new_id,
    place_of,
    resolve_inputs,
    total,
)
from tfrecord_io.typing import Path
from tfrecord_io.write.frame_sink import WrittenFile
from tfrecord_io.write.writer import WriteReport

_MOST_FILES = 8  # that are read at a time


def adopt_files(path: Path, options: ScanOptions) -> WriteReport:
    """Write a manifest for files of another writer, which makes them a dataset."""
    fs, name = locate(path, options.storage)
    sources = resolve_inputs(path, options.storage)
    directory = f"{name.rstrip('/')}/" if name.rstrip("/") else name
    if ShardSpec.parse(name) is not None:
        directory = name[: len(name) - len(name.rpartition("/")[2])]
    names = _names_below(directory, sources, path)
    _check_unnamed(sources)
    columns = _partition_columns(names)
    stem = _stem(names)
    place = place_of(fs, directory, stem)
    counts, checksums = _count_and_sum(sources, options)
    types = pa.schema(PartitionColumns.from_folders(sources).fields)
    schema, shown = _schema(sources, counts, options)
    codecs = {None if (codec := CODECS.of_path(path)) is None else codec.name for path in names}
    manifest = Manifest(
        stem,
        new_id(),
        tuple(ManifestFile(*row) for row in zip(names, counts, *zip(*checksums, strict=True), strict=True)),
        compression=codecs.pop() if len(codecs) == 1 else None,
        schema=schema,
        partition_by=columns,
        partition_schema=pack(embedded_schema(types), {}) if columns else None,
    )
    _check_unchanged(sources, path, options)

    def new(existing: Manifest | None) -> Manifest:
        if existing is not None:
            text = "it has a manifest by now, which another writer has written"
            raise FileExistsError(errno.EEXIST, text, fs.display_path(directory + FileName.manifest(stem)))
        return manifest

    with place.alone():
        place.update(new, lambda current: current.id == manifest.id)
    files = tuple(
        WrittenFile(source.path, file.records, file.bytes) for source, file in zip(sources, manifest.files, strict=True)
    )
    records, size = manifest.records, manifest.bytes
    return WriteReport(
        path=os.fspath(path),
        records=records,
        bytes=size,
        compression=manifest.compression,
        columns=(*shown, *columns),
        rounded={},
        files=files,
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


def _check_unchanged(sources: Sequence[Source], path: Path, options: ScanOptions) -> None:
    """Raise OSError if files were added, removed or changed since they were listed."""
    current = resolve_inputs(path, options.storage)
    if [(source.path, source.size) for source in current] != [(source.path, source.size) for source in sources]:
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
        return DIRECTORY_STEM
    stems = {None if shard is None else shard.stem for shard in map(ShardName.parse, names)}
    return (next(iter(stems)) if len(stems) == 1 else None) or DIRECTORY_STEM


def _count_and_sum(sources: Sequence[Source], options: ScanOptions) -> tuple[list[int], list[tuple[int, int]]]:
    """Count the records of each file, and compute its size and CRC-32C."""
    record_counts = KnownCounts(options)
    counts = list(count_each(sources, find_indexes(sources), record_counts, threads=options.thread_count))
    checksums = []
    with ProgressMeter(options.progress, total(source.size for source in sources), "bytes") as meter:
        calls = (partial(checksum, source, crc32c) for source in sources)
        for size_and_crc in ordered(calls, min(_MOST_FILES, len(sources)), "adopt"):
            checksums.append(size_and_crc)
            meter.advance(size_and_crc[0])
    return counts, checksums


def _schema(
    sources: Sequence[Source], counts: Sequence[int], options: ScanOptions
) -> tuple[bytes | None, tuple[str, ...]]:
    """Decide the schema to store in the manifest, and the columns.

    Raises
    ------
    SchemaError
        A column has types in two files that no type has in common; both are named.
    """
    filled = [source for source, count in zip(sources, counts, strict=True) if count]
    contents = list(first_contents(filled, options))
    embedded = unite_embedded(None, contents)
    if embedded is not None:
        embedded.refuse_conflicts()
        names = tuple(embedded.schema.names)
        if len(contents) < len(filled):
            return None, names
        schemas = {content for content, _ in contents}
        return (schemas.pop() if len(schemas) == 1 else pack(embedded.schema, embedded.dictionaries)), names
    return _saved_schema(filled, options) or _infer_schema(filled, options)


def _saved_schema(sources: Sequence[Source], options: ScanOptions) -> tuple[bytes | None, tuple[str, ...]] | None:
    """The schema that is saved beside the files, if it fits them.

    It is None where a manifest cannot say all of it, such as other names of columns, or where records have more
    features: each read looks for it then.
    """
    saved = find_saved_schema(sources)
    if saved is None or plan_scan(sources, options, only_sample=True).close().resolved.source != "saved":
        return None
    content, names = pack(embedded_schema(saved.schema.to_arrow()), {}), tuple(saved.schema.names)
    if Schema.parse(unpack(content).schema) != saved.schema:
        return None, names
    seen, _ = _observe_all(sources, replace(options, schema="infer"))
    declared = {column.name for column in plan_columns(saved.schema).columns}
    return content if seen.keys() <= declared else None, names


def _infer_schema(sources: Sequence[Source], options: ScanOptions) -> tuple[bytes | None, tuple[str, ...]]:
    """Infer the schema from all records.

    The schema is None where companion features make tensors, or a file beside them describes features: each read looks
    for these.
    """
    seen, is_plain = _observe_all(sources, options)
    schema = inferred_schema(seen, options, {})
    return pack(embedded_schema(schema.to_arrow()), {}) if is_plain and sources else None, tuple(schema.names)


def _observe_all(sources: Sequence[Source], options: ScanOptions) -> tuple[dict[str, Observation], bool]:
    """What all records show of their features, and whether nothing but that decides their types.

    One file is decoded at a time, to bound memory.
    """
    seen: dict[str, Observation] = {}
    inferring, is_plain = replace(options, sample="all", progress=False), True
    for source in sources:
        planned = plan_scan([source], inferring, only_sample=True)
        scan = planned.close()
        if planned.error is not None:
            raise planned.error
        resolved = scan.resolved
        is_plain &= resolved.source == "inferred" and not resolved.companions
        seen = join_columns(seen, resolved.observations)
    return seen, is_plain
