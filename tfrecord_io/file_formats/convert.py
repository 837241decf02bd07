"""Conversion between TFRecord and other file formats: `open_format` and `write`, one source file after the other."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import pyarrow as pa

from tfrecord_io.background import ordered, raise_error
from tfrecord_io.errors import printable, say
from tfrecord_io.file_formats.array_files.array_stream import ArrayStream
from tfrecord_io.file_formats.embed_files import embed_files
from tfrecord_io.file_formats.format_of_path import formats_of, single, unwrapped
from tfrecord_io.file_formats.tables.table_files import SourceOptions, TableSource, filtered, write_table_file
from tfrecord_io.format.format_registry import (
    EMBEDDING,
    FOLDERS,
    FORMATS,
    TFRECORD,
    Format,
    list_formats,
    load,
    own_options,
)
from tfrecord_io.keyword_docs import check_keywords, rename_keywords, sign_keywords
from tfrecord_io.options import DEFAULT_STORAGE, ReadOptions, StorageOptions, TransferOptions, WriteOptions, stops
from tfrecord_io.options.checked_options import datasets_in
from tfrecord_io.options.write import ADDING
from tfrecord_io.progress import ProgressMeter
from tfrecord_io.read.open_scan import open_path
from tfrecord_io.read.reader import Reader, open_as_it_is
from tfrecord_io.read.resolve_schema import plan_scan
from tfrecord_io.read.scan import Scan
from tfrecord_io.read.sources import paths_of
from tfrecord_io.registry import listed
from tfrecord_io.remedies import Keyword
from tfrecord_io.schema.column_selection import Projection
from tfrecord_io.schema.schema import Schema
from tfrecord_io.storage.paths.resolve_output import check_outside
from tfrecord_io.storage.read.source import Source, total
from tfrecord_io.storage.write.output_file import OutputFile
from tfrecord_io.storage.write.resume_journal import SourceVersion, check_version, version_of
from tfrecord_io.typing import FilesLike, Path, ProgressLike, SourceFormat, TargetFormat
from tfrecord_io.write.distributed import WrittenPart
from tfrecord_io.write.resumable import ResumableWriter
from tfrecord_io.write.writer import WriteReport, write

_DEFAULTS = {f.name: f.default for options in own_options() for f in fields(options)}
_PLACES = {f.name for f in fields(TransferOptions)}
_SHARED = {f.name for f in fields(SourceOptions)}
_PARSING = {"record_type", "filters", "schema", "schema_overrides", "column_encoding", "float64", "partition_by"}


def _own_keywords() -> set[str]:
    """The keywords of all rows, those of other packages among them."""
    return {name for row in FORMATS for name in row.reads | row.writes}


@partial(check_keywords, others=_own_keywords)
@rename_keywords({"missing": "missing_files"})
@sign_keywords(*own_options(), TransferOptions, WriteOptions, ReadOptions)
@list_formats
def convert(
    source: FilesLike,
    target: Path,
    *,
    src_format: SourceFormat | None = None,
    dst_format: TargetFormat | None = None,
    columns: Sequence[str] | str | None = None,
    files: str | None = None,
    resume: bool = False,
    **keywords: Any,
) -> WriteReport:
    """Convert between TFRecord and CSV, JSON, Parquet, Arrow, NumPy, HDF5, Zarr, WebDataset or folders, streaming.

    Parameters
    ----------
    source : str, PathLike, Dataset or list of those
        Files of one format; several are zipped by their leading axis (``.npy``, IDX) or concatenated (all others). Each
        file in a folder of ``.npz`` or ``.npy`` files is one row. Globs and folders of other files are read in natural
        order; a glob of ``.npy`` or ``.npz`` files may match only one. Values in the names of folders of tables and
        WebDataset archives (``day=1/``) are columns, as in `tfrecord_io.read_table`. A folder with images is read as by
        `formats.open_image_folder`, and one with the folders ``Annotations`` and ``JPEGImages`` as by
        `formats.open_voc`. Any other source is TFRecord, in every form that `tfrecord_io.read_table`
        accepts.
    target : str or PathLike
        A path with the suffix of a format, with a second one if it is compressed as a whole (``x.csv.gz``). A suffix
        of TFRecord, a name without one, or a directory is written as TFRecord; any other suffix (``x.xlsx``) is an
        error unless `dst_format` is stated. A suffix begins with a letter; versions (``x.v2``), numbers and dates are
        none. Output is atomic.
    src_format, dst_format : str, optional
        The formats of source and target, in place of what their names and content say: for names without a suffix and
        pipes. A TFRecord target must still not have the suffix of another format below. The formats, and the suffixes
        of their names:

        {formats}
    files : {"images", "all"} or str, optional
        For a source that is a folder without TFRecord files: read it as by `formats.open_image_folder`, or as by
        `formats.open_file_folder`. For a TFRecord source: write a folder, as by `formats.write_image_folder`, or
        as by `formats.write_file_folder`; the name of a column of bytes: the files that it has.
    filename : str, optional
        For such a folder: the column with the names of the files.
    class_names, shuffle_seed
        As in `formats.open_image_folder`, for a folder of images or files; `class_names` also as in
        `formats.open_voc` and `formats.open_yolo`, and `shuffle_seed` for COCO, Pascal VOC and YOLO. For
        targets of these, `class_names` are the names of the labels 1, 2, …, where records have none.
    images, image_set, invalid_boxes, check_sizes, orient, masks
        As in `formats.open_coco`, `formats.open_voc` and `formats.open_yolo`, for these sources:
        COCO needs `images` and has no `image_set`, and Pascal VOC has no `masks`. A Pascal VOC target lists its images
        in the `image_set`, by default ``trainval``.
    embed, embed_folder, missing_files : dict, path, {"raise", "null"}, optional
        Columns with the files that other columns name, such as ``{"image": "image_uri"}``: `columns`, `folder` and
        `missing` of `formats.embed_files`.
    columns : sequence of str, optional
        Columns to convert: names, globs and ``!name`` to exclude.
    storage_options, filesystem
        As in `tfrecord_io.read_table`, for source and target.
    column, compressed
        As in `formats.write_npy` and `formats.write_npz`, for these targets; `compressed` also for HDF5.
    group_size, record_compression : int, str, optional
        Of an ArrayRecord file: how many records are compressed together (1), and how: "zstd", "brotli", "snappy" or
        "uncompressed", with a level as in ``"zstd:19"``.
    dst_split : str, optional
        The split of a dataset of TFDS to write: `split` of `formats.write_tfds`.
    fps, task : int, str, optional
        Of a target of LeRobot: frames per second, which it needs, and the column with the task of each step, by default
        ``language_instruction`` or ``natural_language_instruction``.
    delimiter : str, optional
        Of CSV files; by default a comma, and a tab in ``.tsv`` files.
    null_values : sequence of str, optional
        The cells of a CSV source that are missing values, for example ``["", "NA"]``; by default empty cells. Quoted
        text is never missing.
    src_storage_options, dst_storage_options : dict, optional
        `storage_options` of the source or the target alone, in place of those of both.
    resume : bool, default False
        Write a dataset with a shard for each source file, and go on where an earlier call with the same keywords was
        stopped, by an error, Ctrl-C or a kill: files that were converted by then, and have the same size and ETag or
        times and inode, are not read again. `target` is a directory, or a name as ``train`` or ``train@*``; until all
        files are converted, what is finished waits next to it under names that no reader reads. If the dataset is
        complete already, nothing is done; if files were changed, added or removed since, ``mode="overwrite"`` makes it
        anew and copies the shards of the others. For TFRecord, tables and WebDataset archives, and one call at a
        time.
    **keywords
        Those of `tfrecord_io.open_reader` if the source is TFRecord, and those of `tfrecord_io.write_tfrecord` if the
        target is. Where both are, ``record_type`` and ``threads`` apply to both, ``compression`` and ``schema`` to the
        target. ``filters`` apply to sources of every format. Of CSV and JSON lines, ``schema_overrides`` declares the
        types of columns, and so does ``schema``; all others are inferred from the first 8 MiB. It also declares those
        of columns of folders. ``max_features`` limits the columns of tables and archives, and ``max_expansion`` the
        absent fields of JSON lines.

    Returns
    -------
    WriteReport

    Raises
    ------
    DecodeError
        A source is damaged or holds objects, which are never read. A value of CSV or JSON lines does not fit the type
        of its column.
    SchemaError
        A source has more columns than ``max_features``.
    EncodeError
        Leading axes differ in length, or rows or columns cannot be stored in the target.
    ValueError
        Sources have different formats, or the format of the target cannot be written. With ``resume=True``, a keyword
        differs from that of the call that was stopped.
    TypeError
        A keyword of TFRecord files for a source or target of another format.

    Examples
    --------
    >>> import numpy as np, tfrecord_io as tfr
    >>> np.save("squares.npy", np.arange(5) ** 2)
    >>> tfr.convert("squares.npy", "squares.tfrecord").records
    5
    >>> tfr.convert("squares.tfrecord", "again.npy").records
    5
    >>> np.load("again.npy")
    array([ 0,  1,  4,  9, 16])
    >>> _ = open("people.csv", "w").write("name,zip\\nAda,00123\\n")
    >>> _ = tfr.convert("people.csv", "people.tfrecord", schema_overrides={"zip": "string"})
    >>> tfr.read_table("people.tfrecord").to_pylist()
    [{'name': 'Ada', 'zip': '00123'}]
    """
    has_datasets = bool(datasets_in(source))
    if resume and has_datasets:
        reason = say("{resume=True} compares files and keywords with those of the call that was stopped")
        raise ValueError(say("{}: pass the path, and the options of the dataset as keywords", reason))
    parts: Any = source if isinstance(source, list | tuple) else [source]  # what is read, by these paths
    paths, name = _paths(paths_of(source) if has_datasets else source), os.fspath(target)
    places = TransferOptions.from_keywords({key: keywords.pop(key) for key in _PLACES & keywords.keys()})
    read_from, write_to = places.source, places.target
    if (has_datasets or keywords.get("split") is not None) and src_format is None:
        src_format = TFRECORD.name  # of a dataset of TFDS, whatever else its directory has
    reads, writes = formats_of(paths, name, places, src_format, dst_format, files)
    given = {key: value for key, value in keywords.items() if key not in _DEFAULTS or value is not _DEFAULTS[key]}
    is_added = given.get("mode") == "append"  # the schema of the dataset is compared
    if reads.copied and writes is TFRECORD and columns is None and not is_added and not _PARSING & given.keys():
        given["record_type"] = "bytes"
    settings = _settings(reads, writes, {**given, "src_format": src_format, "columns": columns}) if resume else {}
    _check(given, reads, paths[0], writes, name)
    reading = {key: given[key] for key in given if key in reads.reads}
    writing = {key: given[key] for key in given if key in writes.writes}
    if columns is not None:
        reading["columns"] = columns
    if writes is not TFRECORD:
        inputs, reading = _records(reads, parts if has_datasets else paths, read_from, reading)
        only_source = write_to.storage_options is None and read_from.storage_options is not None
        target_options = {} if only_source else write_to.storage_options  # None: those of the source
        own = {**writes.named, **reading, **writing, "dst_storage_options": target_options}
        if files is not None and files not in FOLDERS:
            own["file"] = files
        if writes.write is None:
            return write_table_file(inputs, target, writes, own)
        report: WriteReport = load(writes.write)(inputs, target, **own)
        return report
    reading.pop("compression", None)  # that of the target: a source shows its own
    progress = writing.pop("progress", False) if "progress" in reads.reads else False  # the bytes to read are known
    embedded = _embedded({key: writing.pop(key) for key in EMBEDDING if key in writing}, read_from)
    options = WriteOptions.from_keywords({**write_to.keywords, **writing})
    options = replace(options, any_suffix=dst_format is not None)
    named = src_format is not None
    if resume:
        files_of: TableSource | RecordFiles
        if reads.records:
            inputs, reading = _records(reads, paths, read_from, reading)
            files_of = RecordFiles(plan_scan(inputs, ReadOptions.from_keywords(reading)).close())
            check_outside(paths, read_from, target, write_to, files_of.sources)
        else:
            files_of = _planned(reads, paths, read_from, named, reading)
        return convert_by_file(files_of, target, options, settings, progress, embedded)
    with open_format(reads, parts if has_datasets else paths, read_from, named=named, **reading) as rows:
        if isinstance(rows, Reader):
            check_outside(paths, read_from, target, write_to, rows._scan.sources)
        return write(embedded(rows), target, options)


@contextmanager
def open_format(
    format: Format,
    paths: Sequence[str],
    storage: StorageOptions = DEFAULT_STORAGE,
    *,
    named: bool = False,
    **keywords: Any,
) -> Iterator[Any]:
    """The rows of files, or of a folder, as a stream of record batches.

    Parameters
    ----------
    format : Format
    paths : sequence of str
        At least one.
    storage : StorageOptions
    named : bool
        The caller named the format: the suffixes and the content of files do not matter.
    **keywords
        Those that the format reads, and ``columns``.
    """
    if format.records:
        inputs, keywords = _records(format, paths, storage, keywords)
        with open_path(inputs, ReadOptions.from_keywords(keywords, None, inputs)) as reader:
            yield reader
        return
    if format.plan:
        with _planned(format, paths, storage, named, keywords).open() as rows:
            yield rows
        return
    assert format.open is not None
    for key, what in format.needs.items():
        if key not in keywords:
            raise TypeError(say("{} needs {}, {}", format.title, Keyword(key), what))
    columns, filters = keywords.pop("columns", None), keywords.pop("filters", None)
    if format.projects:
        needed = _Needed(columns, filters)
        keywords["project"] = needed
    path = unwrapped(paths) if format.several else single(paths)
    stream = load(format.open)(path, **keywords, **storage.keywords)
    columns = needed.names if format.projects and columns is not None else columns
    with stream if hasattr(stream, "__exit__") else nullcontext():
        if isinstance(stream, ArrayStream) and filters is None:
            yield stream.select(columns)
        else:
            yield filtered(pa.RecordBatchReader.from_stream(stream), filters, columns)


class _Needed:
    """Selects the columns that are opened of a file, those of the filter among them."""

    def __init__(self, columns: Any, filters: Any) -> None:
        self._options = SourceOptions(columns=columns, filters=filters)
        self.names: list[str] = []  # of the selected columns

    def __call__(self, names: Sequence[str]) -> Projection:
        selected = Projection(self._options.columns)
        selected.check(names)
        self.names = selected.order(names)
        return self._options.projection(names)


def _planned(
    format: Format, paths: Sequence[str], storage: StorageOptions, named: bool, keywords: dict[str, Any]
) -> TableSource:
    """The files of a format that has a `plan`."""
    shared = {key: keywords.pop(key) for key in list(keywords) if key in _SHARED}
    own = {**format.named, **keywords} if named else keywords
    assert format.plan is not None
    planned: TableSource = load(format.plan)(paths, SourceOptions(storage, named=named, **shared), **own)
    return planned


def _records(
    format: Format, paths: Sequence[str], storage: StorageOptions, keywords: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """What is read of TFRecord files, and how; datasets have their own storage."""
    assert format.records is not None
    own = {} if datasets_in(paths) else storage.keywords
    inputs, reading = load(format.records)(unwrapped(paths), {**own, **keywords})
    return inputs, reading


def _paths(source: Any) -> list[str]:
    paths = [source] if isinstance(source, str | os.PathLike) else source
    if isinstance(paths, Sequence) and all(isinstance(path, str | os.PathLike) for path in paths):
        return [os.fspath(path) for path in paths]
    raise TypeError(f"expected a path or a list of paths, got a {type(source).__name__}; write_tfrecord takes data")


def _check(given: Mapping[str, Any], reads: Format, source: str, writes: Format, target: str) -> None:
    """Raise TypeError for a keyword that neither the format of the source nor that of the target has."""
    if writes is not TFRECORD and (mode := given.get("mode")) in ADDING:
        text = say("{mode=} is only for TFRecord targets, and '{}' is {}", printable(target), writes.title, mode=mode)
        raise TypeError(text & say("{dst_format=} names another format"))
    for key in given:
        if key in reads.reads or key in writes.writes:
            continue
        where, actual, advice = {}, [], []
        for role, path, format, keyword in (
            ("reads", source, reads, "src_format"),
            ("writes", target, writes, "dst_format"),
        ):
            if titles := dict.fromkeys(row.title for row in FORMATS if key in getattr(row, role)):
                shown, kind = listed("and", *titles), "sources" if role == "reads" else "targets"
                where[shown] = "files" if shown in where else kind
                actual.append(f"'{printable(path)}' is {format.title}")
                advice.append(keyword)
        only = " and ".join(f"{shown} {kind}" for shown, kind in where.items())
        text = say("{} is only for {}, and {}", Keyword(key), only, ", ".join(actual))
        others = " or ".join("{}" for _ in advice)
        raise TypeError(text & say(f"{others} names another format", *map(Keyword, advice)))


def _embedded(given: Mapping[str, Any], storage: StorageOptions) -> Callable[[Any], Any]:
    """What adds the columns of files to a stream: the keywords ``embed``, ``embed_folder`` and ``missing_files``."""
    if given and "embed" not in given:
        raise TypeError(say("{} has no effect without {embed=}", Keyword(next(iter(given)))))
    columns, folder, missing = (given.get(key) for key in EMBEDDING)
    own: dict[str, Any] = {"folder": folder, "missing": missing or "raise", **storage.keywords}
    return lambda stream: stream if columns is None else embed_files(stream, columns, **own)


# ---- convert(resume=True): one source file after the other, which goes on after a stop

# Keywords that a later call may change: the parts do not depend on them.
_WITHOUT_EFFECT = {"mode", "progress", "threads", "batch_size", "batch_bytes", "allow_missing_shards"}
_OF_ALL_FILES = ("limit", "offset")


@dataclass(frozen=True, slots=True)
class RecordFiles:
    """TFRecord files, under the schema of a scan."""

    scan: Scan

    @property
    def sources(self) -> Sequence[Source]:
        return self.scan.sources

    @property
    def schema(self) -> pa.Schema:
        return self.scan.schema

    @contextmanager
    def rows(self, sources: Sequence[Source], meter: ProgressMeter) -> Iterator[Any]:
        with open_as_it_is(self.scan.over(sources, progress=meter.part())) as reader:
            yield reader


def convert_by_file(
    files: TableSource | RecordFiles,
    target: Any,
    options: WriteOptions,
    settings: Mapping[str, str],
    progress: ProgressLike,
    changed: Callable[[Any], Any],
) -> WriteReport:
    """Convert each file to a shard, but for those that an earlier call has converted.

    Parameters
    ----------
    files : TableSource or RecordFiles
    target, options
        Of the dataset to write.
    settings : mapping of str to str
        See `_settings`.
    progress : bool or callable
    changed : callable
        Takes a stream and returns the rows to write.
    """
    versions = [version_of(source) for source in files.sources]
    size = total(source.size for source in files.sources)
    with (
        ResumableWriter.opened(target, options, settings, files.schema, versions) as writer,
        ProgressMeter(progress, size, "bytes") as meter,
    ):
        if writer.published is not None:
            meter.advance(size or 0)
            return writer.published

        def store(part: WrittenPart, output: OutputFile, source: Source, version: SourceVersion) -> WrittenPart:
            output.commit()
            check_version(source, version)
            return writer.add(part, version)

        def made() -> Iterator[Callable[[], WrittenPart]]:
            """The parts in order; what stores each may run beside those that follow."""
            for task, (source, version) in enumerate(zip(files.sources, versions, strict=True)):
                try:
                    part = writer.finished_part(task, version)
                    if part is not None:
                        meter.advance(source.size or 0)
                        yield partial(_itself, part)
                        continue
                    with files.rows([source], meter) as stream:
                        part, output = writer.begin_part(task, [changed(stream)])
                except Exception as error:  # after those before it are stored
                    yield partial(raise_error, error)
                    return
                yield partial(store, part, output, source, version)

        return writer.commit(list(ordered(made(), writer.stored_at_a_time, "store")))


def _itself(part: WrittenPart) -> WrittenPart:
    return part


def _settings(reads: Format, writes: Format, keywords: Mapping[str, Any]) -> dict[str, str]:
    """What the keywords of a conversion say about the content of its parts, as text that is equal in other processes.

    Raises
    ------
    TypeError, ValueError
        The formats do not go with ``resume=True``, or a keyword concerns all files together.
    """
    can_resume = [row for row in FORMATS if row.plan or row is TFRECORD]
    if writes is not TFRECORD or reads not in can_resume:
        titles = ", ".join(row.title for row in can_resume)
        raise ValueError(say("{resume=True} converts {} files to shards of TFRecord, a shard for each file", titles))
    for name in _OF_ALL_FILES:
        if keywords.get(name):
            raise TypeError(say("{} cannot be used with {resume=True}: it counts the rows of all files", Keyword(name)))
    if stops(keywords.get("on_error")):
        reason = "it would leave out all files after the first"
        raise ValueError(say("{on_error='stop'} cannot be used with {resume=True}: {}", reason))
    names = keywords.keys() - _WITHOUT_EFFECT
    given = {name: keywords[name] for name in sorted(names) if keywords[name] is not None}
    return {name: _schema_text(value) if name == "schema" else _text(value) for name, value in given.items()}


def _schema_text(schema: Any) -> str:
    return schema if isinstance(schema, str) else Schema.parse(schema).to_json(indent=None)


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(key)}: {_text(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_text, value)) + "]"
    if isinstance(value, str):
        return repr(value)
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return re.sub(" at 0x[0-9a-f]+", "", str(value))
