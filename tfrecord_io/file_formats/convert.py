"""Conversion between TFRecord and other file formats: one table of formats."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import pyarrow as pa

from tfrecord_io.errors import printable
from tfrecord_io.file_formats.array_files.array_stream import project
from tfrecord_io.file_formats.folders.embed_files import from_files
from tfrecord_io.file_formats.folders.to_folder import to_image_folder
from tfrecord_io.file_formats.formats import (
    FOLDERS,
    FORMATS,
    Format,
    Paths,
    common_format,
    format_of_name,
    named_format,
    unwrapped,
)
from tfrecord_io.file_formats.ranking_lists.from_elwc import elwc_rows
from tfrecord_io.file_formats.resumed_conversion import RecordFiles, convert_by_file, settings_of
from tfrecord_io.file_formats.tables.source_options import Columns, SourceOptions
from tfrecord_io.keyword_docs import check_keywords, rename_keywords, sign_keywords
from tfrecord_io.options import ReadOptions, StorageOptions, WriteOptions
from tfrecord_io.options.checked_options import check_choice
from tfrecord_io.read.open_scan import open_path
from tfrecord_io.read.resolve_schema import plan_scan
from tfrecord_io.read.row_filter import RowFilter
from tfrecord_io.schema.column_selection import Projection
from tfrecord_io.storage.paths.resolve_output import foreign_suffix
from tfrecord_io.typing import Path, SourceFormat, TargetFormat
from tfrecord_io.write.writer import WriteReport, write

_WRITABLE = ", ".join(suffix for format in FORMATS if format.write for suffix in format.suffixes)
_RESUMABLE = ", ".join(["TFRecord", *(format.name for format in FORMATS if format.plan)])
_ADVICE = f"use one of {_WRITABLE}, or any other name for TFRecord; dst_format= names the format of other paths"

_WRITE_OPTIONS, _READ_OPTIONS = ({field.name for field in fields(cls)} for cls in (WriteOptions, ReadOptions))
_WRITING = _WRITE_OPTIONS - _READ_OPTIONS - {"overwrite"}
_READING = _READ_OPTIONS - _WRITE_OPTIONS
_LIMITS = ("max_features", "max_expansion")
_COCO = {"images", "annotations", "categories"}  # columns of a COCO file that is read as a row of JSON
_BOTH = {
    "record_type",
    "schema",
    "threads",
}  # keywords of reading and of writing, in a conversion between TFRecord files


@check_keywords
@rename_keywords({"missing": "missing_files"})
@sign_keywords(WriteOptions, ReadOptions)
def convert(
    source: Path | Sequence[Path],
    target: Path,
    *,
    src_format: SourceFormat | None = None,
    dst_format: TargetFormat | None = None,
    columns: Sequence[str] | str | None = None,
    allow_missing_shards: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    src_storage_options: Mapping[str, Any] | None = None,
    dst_storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    column: str | None = None,
    compressed: bool = False,
    delimiter: str | None = None,
    null_values: Sequence[str] | None = None,
    files: Literal["images", "all"] | None = None,
    class_names: Sequence[str] | None = None,
    shuffle_seed: int | None = None,
    images: Path | None = None,
    image_set: str | None = None,
    invalid_boxes: Literal["skip", "clip", "keep", "raise"] | None = None,
    check_sizes: bool | None = None,
    embed: Mapping[str, str] | None = None,
    embed_folder: Path | None = None,
    missing_files: Literal["raise", "null"] | None = None,
    resume: bool = False,
    **keywords: Any,
) -> WriteReport:
    """Convert between TFRecord and CSV, JSON, Parquet, Arrow, NumPy, IDX, WebDataset or folders of images, streaming.

    Parameters
    ----------
    source : str, PathLike or list of those
        ``.npy``, ``.npz``, IDX (``train-images-idx3-ubyte.gz``), ``.parquet``, ``.arrow``, ``.csv``, ``.tsv``, JSON
        lines (``.jsonl``, ``.ndjson``, ``.json``) or WebDataset archives (``.tar``); several are zipped by their
        leading axis (``.npy``, IDX) or concatenated (all others). Each file in a folder of ``.npz`` or ``.npy`` files
        is one row. Globs and folders of other files are read in natural order; a glob of ``.npy`` or ``.npz`` files may
        match only one. Values in the names of folders of Parquet, CSV, JSON lines and WebDataset files (``day=1/``)
        are columns, as in `tfrecord_io.read_table`. A folder with images is read as by
        `tfrecord_io.from_image_folder`, and one with the folders ``Annotations`` and ``JPEGImages`` as by
        `tfrecord_io.from_pascal_voc`. Any other source is TFRecord, in every form that `tfrecord_io.read_table`
        accepts.
    target : str or PathLike
        A path with a suffix as above, except IDX; ``.npy``, CSV and JSON lines may be compressed (``x.csv.gz``). Any
        other path is written as TFRecord, unless its suffix is that of another format (``x.xlsx``). Output is atomic.
        In JSON lines, bytes are an object with base64, ``{"base64": "AAE="}``; CSV holds neither bytes nor lists.
    src_format, dst_format : str, optional
        The formats of source and target, in place of what their names and content say: for names without a suffix and
        pipes. "arrow" and "feather" are the same, and so are "jsonl" and "json"; "tar" is WebDataset. "images" and
        "files" are folders, as with `files`; "coco" and "voc" are sources for `tfrecord_io.from_coco` and
        `tfrecord_io.from_pascal_voc`, images with the boxes of their objects; "elwc" is TFRecord with lists for
        `tfrecord_io.from_elwc`. A TFRecord target must still not have the suffix of another format.
    files : {"images", "all"}, optional
        For a source that is a folder without TFRecord files: read it as by `tfrecord_io.from_image_folder`, or as by
        `tfrecord_io.from_file_folder`. For a TFRecord source: write a folder, as by `tfrecord_io.to_image_folder`; with
        "all", of the columns of `tfrecord_io.from_file_folder`.
    class_names, shuffle_seed
        As in `tfrecord_io.from_image_folder`, for a folder of images or files; `class_names` also as in
        `tfrecord_io.from_pascal_voc`, and `shuffle_seed` for COCO and Pascal VOC.
    images, image_set, invalid_boxes, check_sizes
        As in `tfrecord_io.from_coco` and `tfrecord_io.from_pascal_voc`, for these sources: COCO needs `images`, and
        Pascal VOC alone has an `image_set`.
    embed, embed_folder, missing_files : dict, path, {"raise", "null"}, optional
        Columns with the files that other columns name, such as ``{"image": "image_uri"}``: `columns`, `folder` and
        `missing` of `tfrecord_io.from_files`.
    columns : sequence of str, optional
        Columns to convert: names, globs and ``!name`` to exclude.
    allow_missing_shards : bool, default False
        As in `tfrecord_io.read_table`, for a TFRecord source.
    storage_options, filesystem
        As in `tfrecord_io.read_table`, for source and target.
    column, compressed
        As in `tfrecord_io.to_npy` and `tfrecord_io.to_npz`, for these targets.
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
        complete already, nothing is done; if files were changed, added or removed since, ``overwrite=True`` makes it
        anew and copies the shards of the others. For TFRecord, CSV, JSON, Parquet and WebDataset files, and one call
        at a time.
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
    check_choice("files", files, (None, *FOLDERS))
    check_choice("src_format", src_format, (None, *get_args(SourceFormat)))
    check_choice("dst_format", dst_format, (None, *get_args(TargetFormat)))
    files = _folder_kind(files, src_format, dst_format)
    paths, name = _paths(source), os.fspath(target)
    storage = StorageOptions(storage_options, filesystem)
    read_from, write_to = storage.with_options(src_storage_options), storage.with_options(dst_storage_options)
    source_format = common_format(paths, read_from, files) if src_format is None else named_format(src_format, paths)
    target_format = format_of_name(name) if dst_format is None else named_format(dst_format, [name])
    if target_format is not None and target_format in FOLDERS.values():
        if source_format is not None:
            raise ValueError(f"{source_format.name} to {target_format.name}: source or target must be TFRecord")
        target_format = None  # `files` says which folder
    given = {"class_names": class_names, "shuffle_seed": shuffle_seed, "images": images, "image_set": image_set}
    given |= {"invalid_boxes": invalid_boxes, "check_sizes": check_sizes}
    of_source = _source_keywords(given, source_format, paths[0], keywords)
    if allow_missing_shards:
        keywords["allow_missing_shards"] = True
    if column is not None:
        keywords["column"] = column
    if compressed:
        keywords["compressed"] = compressed
    settings = {}
    if resume:
        is_read_whole = src_format == "elwc" or (source_format is not None and source_format.plan is None)
        if target_format is not None or files is not None or is_read_whole:
            raise ValueError(f"resume=True converts {_RESUMABLE} files to shards of TFRecord, a shard for each file")
        own = {"src_format": src_format, "columns": columns, "delimiter": delimiter, "null_values": null_values}
        embedding = {"embed": embed, "embed_folder": embed_folder, "missing_files": missing_files}
        settings = settings_of({**own, **embedding, **keywords})
    files_to_embed = Embedded(embed, embed_folder, missing_files)
    files_to_embed.check(name, is_tfrecord=target_format is None and (files is None or source_format is not None))
    _check_delimited(delimiter, null_values, source_format, target_format)
    _check_direction(keywords, source_format, paths[0], target_format, name)
    reading = {key: keywords[key] for key in keywords if source_format is None and key in _READING | _BOTH}
    if "progress" in keywords and source_format is None:
        reading["progress"] = keywords.pop("progress")  # the bytes to read are known
    progress = keywords.pop("progress", False) if source_format is not None and source_format.in_order else False
    if columns is not None:
        reading["columns"] = columns
    inputs: Any = unwrapped(paths)
    if src_format == "elwc":
        is_tfrecord = target_format is None and files is None
        given = reading if is_tfrecord else {key: keywords[key] for key in keywords if key in _READ_OPTIONS} | reading
        inputs, instead = elwc_rows(inputs, {**read_from.keywords, **given})
        reading |= instead
    if files is not None and source_format is None:
        is_file = target_format is not None or dst_format == "tfrecord"
        if is_file or "overwrite" in keywords or not _WRITING.isdisjoint(keywords):
            raise TypeError("files= writes TFRecord to a folder: keywords and suffixes of other targets do not apply")
        names = {"image": "file/encoded", "filename": "file/name"} if files == "all" else {}
        other = {**read_from.keywords, "dst_storage_options": write_to.storage_options}
        return to_image_folder(inputs, target, **{**names, **other, **keywords, **reading})
    if files is not None and source_format is not None and source_format not in FOLDERS.values():
        raise TypeError(f"files= is for folders, and '{printable(paths[0])}' is {source_format.name}")
    if target_format is not None:
        if target_format.write is None:
            raise ValueError(f"'{printable(name)}': {target_format.name} files cannot be written; {_ADVICE}")
        if source_format is not None:
            raise ValueError(f"{source_format.name} to {target_format.name}: source or target must be TFRecord")
        other = {**read_from.keywords, "dst_storage_options": write_to.storage_options}
        if delimiter is not None:
            other["delimiter"] = delimiter
        elif dst_format is not None and target_format.delimiter is not None:
            other["delimiter"] = target_format.delimiter  # whatever the suffix
        return target_format.write(inputs, target, **{**other, **keywords, **reading})
    if dst_format is None and (suffix := foreign_suffix(name)) is not None:
        raise ValueError(f"'{printable(name)}': {suffix} files cannot be written; {_ADVICE}")
    writing = {key: keywords[key] for key in keywords if key not in _READING}
    options = WriteOptions.of({**write_to.keywords, **writing})
    if source_format is not None:
        schema, overrides = keywords.get("schema"), keywords.get("schema_overrides")
        if src_format is not None:
            delimiter = delimiter or source_format.delimiter
        selection = (columns, keywords.get("filters"))
        cells = (delimiter, null_values or ("",))
        limits = ReadOptions.of({name: keywords[name] for name in _LIMITS if name in keywords})
        how = SourceOptions(
            *(read_from, *selection, schema, overrides, *cells, progress, of_source),
            max_features=limits.max_features,
            max_expansion=limits.max_expansion,
        )
    else:
        read_options = ReadOptions.of({**read_from.keywords, **reading})
    own_filters = keywords.get("filters") if source_format is not None else None  # TFRecord readers filter themselves

    def changed(stream: Any) -> Any:
        rows = stream if own_filters is None else filtered(stream, own_filters, columns)
        return files_to_embed.in_stream(rows, read_from)

    if resume and source_format is not None and source_format.plan is not None:
        tables = source_format.plan(paths, how)
        return convert_by_file(tables, target, options, settings, progress, changed)
    if resume:
        scan = plan_scan(unwrapped(paths), read_options).close()
        return convert_by_file(RecordFiles(scan), target, options, settings, read_options.progress, changed)
    stream = open_path(inputs, read_options) if source_format is None else source_format.open(paths, how)
    with stream as batches:
        is_json = src_format is None and source_format is not None and source_format.name == "JSON"
        if is_json and set(batches.schema.names) >= _COCO:
            advice = "src_format='coco' with images= reads its boxes; src_format='json' reads it as it is"
            raise ValueError(f"'{printable(paths[0])}' looks like a COCO file; {advice}")
        return write(changed(batches), target, options)


def _paths(source: Any) -> Paths:
    paths = [source] if isinstance(source, str | os.PathLike) else source
    if isinstance(paths, Sequence) and all(isinstance(path, str | os.PathLike) for path in paths):
        return [os.fspath(path) for path in paths]
    raise TypeError(f"expected a path or a list of paths, got a {type(source).__name__}; write_tfrecord takes data")


def _folder_kind(
    files: Literal["images", "all"] | None, src_format: str | None, dst_format: str | None
) -> Literal["images", "all"] | None:
    """The value of `files` that the formats say, or the given one."""
    for keyword, value in {"src_format": src_format, "dst_format": dst_format}.items():
        kind = next((kind for kind, folder in FOLDERS.items() if value in folder.keys), None)
        if kind is not None and files not in (None, kind):
            raise TypeError(f"files={files!r} and {keyword}={value!r} contradict each other")
        files = kind or files
    return files


def _source_keywords(
    given: Mapping[str, Any], source: Format | None, path: str, keywords: dict[str, Any]
) -> dict[str, Any]:
    """The keywords that few formats have, of those `given`; `keywords` lose what is not also one of the writer."""
    given = {name: value for name, value in given.items() if value is not None}
    known = source.keywords if source is not None else frozenset()
    if refused := sorted(given.keys() - known):
        others = ", ".join(format.name for format in (*FORMATS, *FOLDERS.values()) if refused[0] in format.keywords)
        actual = "TFRecord" if source is None else source.name
        text = f"{refused[0]}= is only for these sources: {others}; '{printable(path)}' is {actual}"
        raise TypeError(f"{text}, unless src_format= names another format")
    if "threads" in known and keywords.get("threads") is not None:
        given["threads"] = keywords["threads"]
    if "on_error" in known and "on_error" in keywords:
        given["on_error"] = keywords.pop("on_error")
    return given


def _check_delimited(
    delimiter: str | None, null_values: Sequence[str] | None, source: Format | None, target: Format | None
) -> None:
    if delimiter is not None and not any(format is not None and format.delimiter for format in (source, target)):
        raise TypeError("delimiter= is only for CSV files")
    if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n'):
        raise ValueError(f"delimiter={delimiter!r}: expected one ASCII character, such as ';'")
    if null_values is not None and not (source is not None and source.delimiter):
        raise TypeError("null_values= is only for CSV sources")
    if isinstance(null_values, str):
        raise TypeError(f"null_values={null_values!r}: expected a list of texts")


def _allowed(source: Format) -> set[str]:
    """The keywords of reading that apply to sources of this format, or to the folders that its files are in."""
    return {"filters", "schema_overrides", *_LIMITS} if source.plan or not source.typed else {"filters"}


def _check_direction(
    keywords: Mapping[str, Any], source_format: Format | None, source: str, target_format: Format | None, target: str
) -> None:
    for name in keywords:
        if source_format is not None and name in _READING and name not in _allowed(source_format):
            raise TypeError(f"{name}= is only for TFRecord sources, and '{printable(source)}' is {source_format.name}")
        if target_format is not None and name in _WRITING:
            raise TypeError(f"{name}= is only for TFRecord targets, and '{printable(target)}' is {target_format.name}")
        if target_format is None and name in ("column", "compressed"):
            raise TypeError(f"{name}= is only for targets other than TFRecord, and '{printable(target)}' is TFRecord")


@dataclass(frozen=True, slots=True)
class Embedded:
    """The files to embed: the keywords ``embed``, ``embed_folder`` and ``missing_files`` of `tfrecord_io.convert`."""

    columns: Mapping[str, str] | None
    folder: Any
    missing: str | None

    def check(self, target: str, *, is_tfrecord: bool) -> None:
        """Raise TypeError where the keywords have no effect."""
        if self.columns is not None and not is_tfrecord:
            raise TypeError(f"embed= is only for TFRecord targets, and '{printable(target)}' is not TFRecord")
        for name, value in {"embed_folder": self.folder, "missing_files": self.missing}.items():
            if self.columns is None and value is not None:
                raise TypeError(f"{name}= has no effect without embed=")

    def in_stream(self, stream: Any, storage: StorageOptions) -> Any:
        """The stream with the columns of files."""
        if self.columns is None:
            return stream
        missing: Any = self.missing or "raise"
        return from_files(stream, self.columns, folder=self.folder, missing=missing, **storage.keywords)


def filtered(stream: Any, filters: Any, columns: Columns) -> pa.RecordBatchReader:
    """The rows of a stream of all columns that a filter keeps, with some of the columns.

    Raises
    ------
    FeatureNotFoundError, SchemaError, TypeError, ValueError
        As in `tfrecord_io.read.row_filter.RowFilter.for_schema`, or an entry of `columns` matches no column.
    """
    row_filter, projection = RowFilter.for_schema(filters, stream.schema), Projection(columns)
    projection.check(stream.schema.names)

    def kept() -> Iterator[pa.RecordBatch]:
        for batch in stream:
            yield batch.filter(row_filter.mask(batch))

    return pa.RecordBatchReader.from_batches(*project(stream.schema, kept(), projection))
