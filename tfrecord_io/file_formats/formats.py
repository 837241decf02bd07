"""The table of file formats that are converted to TFRecord and back, and which format a path has."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

from tfrecord_io.errors import printable
from tfrecord_io.file_formats.array_files.array_stream import ArrayStream
from tfrecord_io.file_formats.array_files.from_numpy_files import from_idx, from_npy, from_npz
from tfrecord_io.file_formats.array_files.idx import is_idx_name
from tfrecord_io.file_formats.array_files.to_numpy_files import to_npy, to_npz
from tfrecord_io.file_formats.folders.from_folder import from_file_folder, from_image_folder
from tfrecord_io.file_formats.folders.image_header import IMAGE_SUFFIXES
from tfrecord_io.file_formats.folders.listing import has_file
from tfrecord_io.file_formats.object_detection.coco import from_coco
from tfrecord_io.file_formats.object_detection.pascal_voc import ANNOTATIONS, JPEG_IMAGES, from_pascal_voc
from tfrecord_io.file_formats.tables.csv_files import CSV, TSV, csv_source, write_csv
from tfrecord_io.file_formats.tables.json_files import JSON, json_source, write_json
from tfrecord_io.file_formats.tables.parquet_feather import (
    FEATHER,
    PARQUET,
    open_feather,
    parquet_source,
    write_feather,
    write_parquet,
)
from tfrecord_io.file_formats.tables.source_options import SourceOptions
from tfrecord_io.file_formats.tables.table_source import TableSource
from tfrecord_io.file_formats.webdataset import TAR, open_webdataset, webdataset_source, write_webdataset
from tfrecord_io.options import StorageOptions
from tfrecord_io.storage.filesystem.locate import locate
from tfrecord_io.storage.paths.resolve import has_magic, list_directory, resolve_inputs
from tfrecord_io.storage.paths.resolve_output import without_compression, without_query
from tfrecord_io.storage.paths.shard_names import is_record_file
from tfrecord_io.storage.paths.similar_files import files_below
from tfrecord_io.write.writer import WriteReport

Paths = list[str]


@dataclass(frozen=True, slots=True)
class Format:
    """A file format."""

    name: str  # for messages
    keys: tuple[str, ...]  # values of ``src_format=`` and, if it is written, ``dst_format=``
    suffixes: tuple[str, ...]  # of its paths
    open: Callable[[Paths, SourceOptions], AbstractContextManager[Any]]  # as a stream of record batches
    write: Callable[..., WriteReport] | None = None  # a TFRecord dataset as one file; None: the format is only read
    compressed: bool = False  # whole files may be compressed, with a second suffix: ``x.npy.gz``
    typed: bool = True  # files state the types of columns; else ``schema_overrides=`` declares them
    in_order: bool = False  # files are read in order, so that their bytes are the progress
    plan: Callable[[Paths, SourceOptions], TableSource] | None = None  # of files that can be read each by itself
    delimiter: str | None = None  # between cells, which ``delimiter=`` changes
    keywords: Set[str] = frozenset()  # of `tfrecord_io.convert`, for sources of this format and few others


def _open_npy(paths: Paths, options: SourceOptions) -> ArrayStream:
    return from_npy(unwrapped(paths), **options.storage.keywords).select(options.streamed)


def _open_npz(paths: Paths, options: SourceOptions) -> ArrayStream:
    return from_npz(
        single(paths, "name their folder, where each archive is a record"), **options.storage.keywords
    ).select(options.streamed)


def _open_idx(paths: Paths, options: SourceOptions) -> ArrayStream:
    return from_idx(paths, **options.storage.keywords).select(options.streamed)


def _open_feather(paths: Paths, options: SourceOptions) -> AbstractContextManager[Any]:
    return open_feather(single(paths), options)


def _open_images(paths: Paths, options: SourceOptions) -> ArrayStream:
    return from_image_folder(single(paths), **options.source, **options.storage.keywords).select(options.streamed)


def _open_any_files(paths: Paths, options: SourceOptions) -> ArrayStream:
    return from_file_folder(single(paths), **options.source, **options.storage.keywords).select(options.streamed)


def _open_coco(paths: Paths, options: SourceOptions) -> ArrayStream:
    if "images" not in options.source:
        raise TypeError("a COCO file needs images=, the folder that its file names are relative to")
    return from_coco(single(paths), **options.source, **options.storage.keywords).select(options.streamed)


def _open_voc(paths: Paths, options: SourceOptions) -> ArrayStream:
    return from_pascal_voc(single(paths), **options.source, **options.storage.keywords).select(options.streamed)


_FILES = frozenset({"shuffle_seed", "threads"})
_IMAGES = _FILES | {"on_error"}
_ANNOTATED = _IMAGES | {"images", "invalid_boxes", "check_sizes"}


def _of_tables(
    name: str,
    keys: tuple[str, ...],
    suffixes: tuple[str, ...],
    plan: Callable[[Paths, SourceOptions], TableSource],
    write: Callable[..., WriteReport],
    **others: Any,
) -> Format:
    def open(paths: Paths, options: SourceOptions) -> AbstractContextManager[Any]:
        return plan(paths, options).open()

    return Format(name, keys, suffixes, open, write, in_order=True, plan=plan, **others)


FORMATS = (  # a new format is a row here
    Format(".npy", ("npy",), (".npy",), _open_npy, to_npy, compressed=True),
    Format(".npz", ("npz",), (".npz",), _open_npz, to_npz),
    Format("IDX", ("idx",), (), _open_idx, None, compressed=True),
    _of_tables("Parquet", ("parquet",), PARQUET, parquet_source, write_parquet),
    Format("Arrow IPC", ("arrow", "feather"), FEATHER, _open_feather, write_feather, in_order=True),
    _of_tables("CSV", ("csv",), CSV, csv_source, write_csv, compressed=True, typed=False, delimiter=","),
    _of_tables("TSV", ("tsv",), TSV, csv_source, write_csv, compressed=True, typed=False, delimiter="\t"),
    Format(
        *("WebDataset", ("tar",), TAR, open_webdataset, write_webdataset),
        compressed=True,
        in_order=True,
        plan=webdataset_source,
    ),
    _of_tables("JSON", ("jsonl", "json"), JSON, json_source, write_json, compressed=True, typed=False),
    Format("COCO", ("coco",), (), _open_coco, keywords=_ANNOTATED),
    Format("Pascal VOC", ("voc",), (), _open_voc, keywords=_ANNOTATED | {"image_set", "class_names"}),
)

_IMAGE_FOLDER = Format("a folder of images", ("images",), (), _open_images, keywords=_IMAGES | {"class_names"})
_FILE_FOLDER = Format("a folder of files", ("files",), (), _open_any_files, keywords=_FILES | {"class_names"})
FOLDERS: dict[Literal["images", "all"], Format] = {"images": _IMAGE_FOLDER, "all": _FILE_FOLDER}  # by `files=`


def named_format(key: str, paths: Sequence[str]) -> Format | None:
    """The format that ``src_format=`` or ``dst_format=`` names, for these paths; None for TFRecord.

    Raises
    ------
    ValueError
        A path has the suffix of a compression that the format does not have.
    """
    format = next((format for format in (*FORMATS, *FOLDERS.values()) if key in format.keys), None)
    for path in paths:
        _check_compression(path, format)
    return format


def common_format(
    paths: Sequence[str], storage: StorageOptions, files: Literal["images", "all"] | None = None
) -> Format | None:
    """The format of all sources; None for TFRecord. With `files`, a folder without TFRecord files is one of files."""
    if not paths:
        raise ValueError("no path was given")
    formats = [format_of_name(path) or _format_of_files(path, storage, files) for path in paths]
    for path, format in zip(paths, formats, strict=True):
        if format is not formats[0]:
            first, other = (f.name if f else "TFRecord" for f in (formats[0], format))
            reason = f"'{printable(paths[0])}' is {first} and '{printable(path)}' is {other}"
            raise ValueError(f"{reason}: convert them one by one")
    return formats[0]


def format_of_name(path: str) -> Format | None:
    plain = without_compression(path)
    if is_idx_name(plain):
        return next(format for format in FORMATS if format.name == "IDX")
    format = next((format for format in FORMATS if plain.endswith(format.suffixes)), None)
    _check_compression(path, format)
    return format


def _check_compression(path: str, format: Format | None) -> None:
    if format is None or format.compressed or not format.suffixes:
        return
    if without_compression(path) != without_query(path).lower():
        reason = f"{format.name} files are not compressed as a whole; they compress their content"
        raise ValueError(f"'{printable(path)}': {reason}")


def _format_of_files(path: str, storage: StorageOptions, files: Literal["images", "all"] | None) -> Format | None:
    """The format of the files that a glob matches, or of a folder without TFRecord files, from their names."""
    fs, name = locate(path, storage)
    entry = fs.entry(name)
    if entry is None:
        formats = {format_of_name(match.basename) for match in fs.glob(name)} if has_magic(fs, name) else set()
        return formats.pop() if len(formats) == 1 else None
    if not entry.directory:
        return None
    listing = list_directory(fs, entry.name)
    names = sorted({child.basename for child in listing})
    if files is not None and not any(map(is_record_file, names)):
        return FOLDERS[files]
    if {ANNOTATIONS, JPEG_IMAGES} <= set(names):
        return next(format for format in FORMATS if "voc" in format.keys)
    if _may_have_images(names) and has_file(path, storage, IMAGE_SUFFIXES):
        return _IMAGE_FOLDER  # before the content of thousands of files is looked at
    try:
        resolve_inputs(path, storage)
    except FileNotFoundError:
        return _format_of_folder(path, names, files_below(fs, entry.name, listing))
    except ValueError:  # several datasets in one folder: it is TFRecord, and reading it raises this again
        pass
    return None


def _may_have_images(names: Sequence[str]) -> bool:
    """Whether no file of a folder is of a format that has types."""
    formats = (format_of_name(name) for name in names)
    return not any(map(is_record_file, names)) and not any(format is not None and format.typed for format in formats)


def _format_of_folder(folder: str, names: Sequence[str], below: str) -> Format | None:
    format = next((format for name in names if (format := format_of_name(name)) is not None), None)
    if format is None and not any(map(is_record_file, names)):
        suffixes = ", ".join(suffix for format in FORMATS for suffix in format.suffixes)
        reason = f"this folder has no TFRecord files, no images, and no {suffixes} files"
        advice = below or 'files="all" embeds files of any kind'
        raise FileNotFoundError(errno.ENOENT, f"{reason}; {advice}", folder)
    return format


def unwrapped(paths: Paths) -> str | Paths:
    """One path alone: only then can it be a directory or a shard spec."""
    return paths[0] if len(paths) == 1 else paths


def single(paths: Paths, advice: str = "convert them one by one") -> str:
    if len(paths) > 1:
        raise ValueError(f"expected one file of this format, got {len(paths)}; {advice}")
    return paths[0]
