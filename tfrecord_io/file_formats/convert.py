"""Conversion between TFRecord and other file formats: one table of formats."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from typing import Any

from tfrecord_io.errors import printable
from tfrecord_io.file_formats.array_stream import ArrayStream
from tfrecord_io.file_formats.from_numpy_files import from_idx, from_npy, from_npz
from tfrecord_io.file_formats.idx import is_idx_name
from tfrecord_io.file_formats.parquet_feather import (
    FEATHER,
    PARQUET,
    Columns,
    open_feather,
    open_parquet,
    write_feather,
    write_parquet,
)
from tfrecord_io.file_formats.to_numpy_files import to_npy, to_npz
from tfrecord_io.keyword_docs import check_keywords, sign_keywords
from tfrecord_io.options import ReadOptions, StorageOptions, WriteOptions
from tfrecord_io.read.resolve_schema import open_scan
from tfrecord_io.storage.filesystem.locate import locate
from tfrecord_io.storage.paths.resolve import has_magic, resolve_inputs
from tfrecord_io.storage.paths.resolve_output import foreign_suffix, without_compression
from tfrecord_io.storage.paths.shard_names import is_record_file
from tfrecord_io.typing import Path
from tfrecord_io.write.writer import WriteReport, write

Paths = list[str]


@dataclass(frozen=True, slots=True)
class Format:
    """A file format."""

    name: str  # for messages
    suffixes: tuple[str, ...]  # of its paths
    open: Callable[[Paths, StorageOptions, Columns], AbstractContextManager[Any]]  # as a stream of record batches
    write: Callable[..., WriteReport] | None = None  # a TFRecord dataset as one file; None: the format is only read
    compressed: bool = False  # whole files may be compressed, with a second suffix: ``x.npy.gz``


def _open_npy(paths: Paths, storage: StorageOptions, columns: Columns) -> ArrayStream:
    return from_npy(_unwrapped(paths), **storage.keywords).select(columns)


def _open_npz(paths: Paths, storage: StorageOptions, columns: Columns) -> ArrayStream:
    return from_npz(_single(paths), **storage.keywords).select(columns)


def _open_idx(paths: Paths, storage: StorageOptions, columns: Columns) -> ArrayStream:
    return from_idx(paths, **storage.keywords).select(columns)


def _open_feather(paths: Paths, storage: StorageOptions, columns: Columns) -> AbstractContextManager[Any]:
    return open_feather(_single(paths), storage, columns)


FORMATS = (  # a new format is a row here
    Format(".npy", (".npy",), _open_npy, to_npy, compressed=True),
    Format(".npz", (".npz",), _open_npz, to_npz),
    Format("IDX", (), _open_idx, None, compressed=True),
    Format("Parquet", PARQUET, open_parquet, write_parquet),
    Format("Arrow IPC", FEATHER, _open_feather, write_feather),
)

_WRITABLE = ", ".join(suffix for format in FORMATS if format.write for suffix in format.suffixes)
_ADVICE = f"use one of {_WRITABLE}, or any other name for TFRecord"

_WRITE_OPTIONS, _READ_OPTIONS = ({field.name for field in fields(cls)} for cls in (WriteOptions, ReadOptions))
_WRITING = _WRITE_OPTIONS - _READ_OPTIONS - {"overwrite"}
_READING = _READ_OPTIONS - _WRITE_OPTIONS
_BOTH = {"record_type", "threads"}  # keywords of reading and of writing, in a conversion between TFRecord files


@check_keywords
@sign_keywords(WriteOptions, ReadOptions)
def convert(
    source: Path | Sequence[Path],
    target: Path,
    *,
    columns: Sequence[str] | str | None = None,
    allow_missing_shards: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    src_storage_options: Mapping[str, Any] | None = None,
    dst_storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    column: str | None = None,
    compressed: bool = False,
    **keywords: Any,
) -> WriteReport:
    """Convert between TFRecord and ``.npy``, ``.npz``, IDX, Parquet or Arrow files, in bounded memory.

    Parameters
    ----------
    source : str, PathLike or list of those
        ``.npy``, ``.npz``, IDX (``train-images-idx3-ubyte.gz``), ``.parquet`` or ``.arrow``; several are zipped by
        their leading axis (``.npy``, IDX) or concatenated (Parquet). Each file in a folder of ``.npz`` or ``.npy``
        files is one row. Globs of IDX and Parquet files are read in natural order; a glob of ``.npy`` or ``.npz``
        files may match only one. Any other source is TFRecord, in every form that `tfrecord_io.read_table` accepts.
    target : str or PathLike
        A path with a suffix as above, except IDX; ``.npy`` may be compressed (``x.npy.gz``). Any other path is written
        as TFRecord, unless its suffix is that of another format (``x.csv``). Output is atomic.
    columns : sequence of str, optional
        Columns to convert: names, globs and ``!name`` to exclude.
    allow_missing_shards : bool, default False
        As in `tfrecord_io.read_table`, for a TFRecord source.
    storage_options, filesystem
        As in `tfrecord_io.read_table`, for source and target.
    column, compressed
        As in `tfrecord_io.to_npy` and `tfrecord_io.to_npz`, for these targets.
    src_storage_options, dst_storage_options : dict, optional
        `storage_options` of the source or the target alone, in place of those of both.
    **keywords
        Those of `tfrecord_io.open_reader` if the source is TFRecord, and those of `tfrecord_io.write_tfrecord` if the
        target is. Where both are, ``record_type`` and ``threads`` apply to both, ``compression`` and ``schema`` to the
        target.

    Returns
    -------
    WriteReport

    Raises
    ------
    DecodeError
        A source is damaged or holds objects, which are never read.
    EncodeError
        Leading axes differ in length, or rows cannot be stored in the target.
    ValueError
        Sources have different formats, or the format of the target cannot be written.
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
    """
    paths, name = _paths(source), os.fspath(target)
    storage = StorageOptions(storage_options, filesystem)
    read_from, write_to = storage.with_options(src_storage_options), storage.with_options(dst_storage_options)
    source_format, target_format = _common_format(paths, read_from), _format_of_name(name)
    if allow_missing_shards:
        keywords["allow_missing_shards"] = True
    if column is not None:
        keywords["column"] = column
    if compressed:
        keywords["compressed"] = compressed
    _check_direction(keywords, source_format, paths[0], target_format, name)
    reading = {key: keywords[key] for key in keywords if source_format is None and key in _READING | _BOTH}
    if "progress" in keywords and source_format is None:
        reading["progress"] = keywords.pop("progress")  # the bytes to read are known
    if columns is not None:
        reading["columns"] = columns
    if target_format is not None:
        if target_format.write is None:
            raise ValueError(f"'{printable(name)}': {target_format.name} files cannot be written; {_ADVICE}")
        if source_format is not None:
            raise ValueError(f"{source_format.name} to {target_format.name}: source or target must be TFRecord")
        other = {**read_from.keywords, "dst_storage_options": write_to.storage_options}
        return target_format.write(_unwrapped(paths), target, **{**other, **keywords, **reading})
    if (suffix := foreign_suffix(name)) is not None:
        raise ValueError(f"'{printable(name)}': {suffix} files cannot be written; {_ADVICE}")
    writing = {key: keywords[key] for key in keywords if key not in _READING}
    options = WriteOptions.of({**write_to.keywords, **writing})
    if source_format is not None:
        stream = source_format.open(paths, read_from, columns)
    else:
        stream = open_scan(_unwrapped(paths), ReadOptions.of({**read_from.keywords, **reading}))
    with stream as batches:
        return write(batches, target, options)


def _paths(source: Any) -> Paths:
    paths = [source] if isinstance(source, str | os.PathLike) else source
    if isinstance(paths, Sequence) and all(isinstance(path, str | os.PathLike) for path in paths):
        return [os.fspath(path) for path in paths]
    raise TypeError(f"expected a path or a list of paths, got a {type(source).__name__}; write_tfrecord takes data")


def _check_direction(
    keywords: Mapping[str, Any], source_format: Format | None, source: str, target_format: Format | None, target: str
) -> None:
    for name in keywords:
        if source_format is not None and name in _READING:
            raise TypeError(f"{name}= is only for TFRecord sources, and '{printable(source)}' is {source_format.name}")
        if target_format is not None and name in _WRITING:
            raise TypeError(f"{name}= is only for TFRecord targets, and '{printable(target)}' is {target_format.name}")
        if target_format is None and name in ("column", "compressed"):
            raise TypeError(f"{name}= is only for targets other than TFRecord, and '{printable(target)}' is TFRecord")


def _common_format(paths: Sequence[str], storage: StorageOptions) -> Format | None:
    """The format of all sources; None for TFRecord."""
    if not paths:
        raise ValueError("no path was given")
    formats = [_format_of_name(path) or _format_of_files(path, storage) for path in paths]
    for path, format in zip(paths, formats, strict=True):
        if format is not formats[0]:
            first, other = (f.name if f else "TFRecord" for f in (formats[0], format))
            files = f"'{printable(paths[0])}' is {first} and '{printable(path)}' is {other}"
            raise ValueError(f"{files}: convert them one by one")
    return formats[0]


def _format_of_name(path: str) -> Format | None:
    plain = without_compression(path)
    if is_idx_name(plain):
        return next(format for format in FORMATS if format.name == "IDX")
    format = next((format for format in FORMATS if plain.endswith(format.suffixes)), None)
    if format is not None and plain != path.lower() and not format.compressed:
        reason = f"{format.name} files are not compressed as a whole; they compress their content"
        raise ValueError(f"'{printable(path)}': {reason}")
    return format


def _format_of_files(path: str, storage: StorageOptions) -> Format | None:
    """The format of the files that a glob matches, or of a folder without TFRecord files, from their names."""
    fs, name = locate(path, storage)
    entry = fs.entry(name)
    if entry is None:
        formats = {_format_of_name(match.basename) for match in fs.glob(name)} if has_magic(fs, name) else set()
        return formats.pop() if len(formats) == 1 else None
    if not entry.directory:
        return None
    try:
        resolve_inputs(path, storage)
    except FileNotFoundError:
        return _format_of_folder(path, sorted(file.basename for file in fs.listing(entry.name)))
    except ValueError:  # several datasets in one folder: it is TFRecord, and reading it raises this again
        pass
    return None


def _format_of_folder(folder: str, names: Sequence[str]) -> Format | None:
    format = next((format for name in names if (format := _format_of_name(name)) is not None), None)
    if format is None and not any(map(is_record_file, names)):
        suffixes = ", ".join(suffix for format in FORMATS for suffix in format.suffixes)
        raise FileNotFoundError(errno.ENOENT, f"this folder has no TFRecord files, and no {suffixes} files", folder)
    return format


def _unwrapped(paths: Paths) -> str | Paths:
    """One path alone: only then can it be a directory or a shard spec."""
    return paths[0] if len(paths) == 1 else paths


def _single(paths: Paths) -> str:
    if len(paths) > 1:
        raise ValueError(f"expected one file of this format, got {len(paths)}")
    return paths[0]
