"""TFRecord files made of other files, and other files of them: one table of formats."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from typing import Any

from tfrecord_io.compression import compression_suffixes
from tfrecord_io.errors import printable
from tfrecord_io.file_formats.from_numpy_files import from_idx, from_npy, from_npz
from tfrecord_io.file_formats.idx import is_idx_name
from tfrecord_io.file_formats.parquet_feather import (
    FEATHER,
    PARQUET,
    open_feather,
    open_parquet,
    write_feather,
    write_parquet,
)
from tfrecord_io.file_formats.to_numpy_files import to_npy, to_npz
from tfrecord_io.options import ReadOptions, WriteOptions
from tfrecord_io.read.reader import Reader
from tfrecord_io.storage.filesystem.local import locate
from tfrecord_io.storage.paths.resolve import has_magic, resolve_inputs
from tfrecord_io.storage.paths.shard_names import is_record_file
from tfrecord_io.write.writer import WriteReport, write

Paths = list[str]
Fsspec = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of file.

    Attributes
    ----------
    name : str
        As messages call it.
    suffixes : tuple of str
        By which a path is known to be of this kind.
    open : callable
        Opens paths as a stream of record batches that is closed.
    write : callable, optional
        Writes a TFRecord dataset as one such file; None: it is only read.
    compressed : bool
        Files may be compressed as a whole, by the suffix behind their own: ``x.npy.gz``.
    """

    name: str
    suffixes: tuple[str, ...]
    open: Callable[[Paths, Fsspec], AbstractContextManager[Any]]
    write: Callable[..., WriteReport] | None = None
    compressed: bool = False


FORMATS = (
    Format(
        ".npy",
        (".npy",),
        lambda paths, fsspec: from_npy(paths[0] if len(paths) == 1 else paths, **fsspec),
        to_npy,
        compressed=True,
    ),
    Format(".npz", (".npz",), lambda paths, fsspec: from_npz(_only(paths), **fsspec), to_npz),
    Format("IDX", (), lambda paths, fsspec: from_idx(paths, **fsspec), compressed=True),
    Format("Parquet", PARQUET, lambda paths, fsspec: open_parquet(paths, **fsspec), write_parquet),
    Format("Arrow IPC", FEATHER, lambda paths, fsspec: open_feather(_only(paths), **fsspec), write_feather),
)
"""A new kind of file is a row here."""

_FOREIGN = frozenset(
    ".csv .tsv .txt .json .jsonl .ndjson .xml .html .yaml .yml .toml .md .py .log .xls .xlsx .orc .avro .sqlite .db .lance .zarr .nc "
    ".h5 .hdf5 .hdf .mat .pkl .pickle .joblib .pt .pth .ckpt .safetensors .onnx .zip .tar .tgz .bz2 .xz .7z "
    ".jpg .jpeg .png .gif .webp .wav .mp4".split()
)
"""Names of other formats: a file of such a name that holds records would mislead whoever meets it."""

_WRITTEN = f"{', '.join(suffix for each in FORMATS if each.write for suffix in each.suffixes)} are, and TFRecord under any other name"

_WRITE_OPTIONS, _READ_OPTIONS = ({field.name for field in fields(each)} for each in (WriteOptions, ReadOptions))
_WRITING = _WRITE_OPTIONS - _READ_OPTIONS - {"overwrite"}
_READING = (_READ_OPTIONS - _WRITE_OPTIONS) | {"column", "compressed"}


def convert(
    source: Any,
    target: Any,
    *,
    columns: Sequence[str] | str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    **keywords: Any,
) -> WriteReport:
    """Make TFRecord files of other files, or other files of TFRecord files; rows stream, so size does not matter.

    Parameters
    ----------
    source : str, PathLike or list of those
        ``.npy``, ``.npz``, IDX (``train-images-idx3-ubyte.gz``), ``.parquet``, ``.arrow``; several are zipped by their leading axis
        (``.npy``, IDX) or follow each other (Parquet). A folder of ``.npz`` or ``.npy`` files: each is one row. Globs are for IDX
        and Parquet, in natural order; of ``.npy`` and ``.npz`` they are for one file. Anything else
        is TFRecord, in every form that `tfrecord_io.read_table` takes.
    target : str or PathLike
        By its suffix as above, IDX apart, ``.npy`` also compressed (``x.npy.gz``); anything else is written as TFRecord, but not
        under a name of another format (``x.csv``). Whole or absent.
    columns : sequence of str, optional
        Features of a TFRecord source: names, globs and ``!name`` to leave out.
    storage_options, filesystem
        For fsspec, for both.
    **keywords
        Those of `tfrecord_io.write_tfrecord` where TFRecord is written, those of `tfrecord_io.open_reader` where it is read into
        another kind of file.

    Returns
    -------
    WriteReport

    Raises
    ------
    DecodeError
        A source is damaged or holds objects, which are never read.
    EncodeError
        Leading axes differ, or rows have no form in the target.
    ValueError
        Sources of several kinds, or a target of a kind that is not written.
    TypeError
        A keyword of the other direction.

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
    paths = _listed(source)
    fsspec = {"storage_options": storage_options, "filesystem": filesystem}
    found, wanted = _format_of_all(paths, fsspec), _named(os.fspath(target))
    chosen = {} if columns is None else {"columns": columns}
    if chosen and found is not None:
        raise TypeError(f"columns= are those of TFRecord files, and '{printable(paths[0])}' is {found.name}")
    _refuse_other_direction(keywords, wanted, os.fspath(target))
    if wanted is not None:
        if wanted.write is None:
            raise ValueError(f"'{printable(target)}': {wanted.name} files are only read; {_WRITTEN}")
        if found is not None:
            raise ValueError(f"{found.name} to {wanted.name}: one of the two sides is TFRecord")
        return wanted.write(paths[0] if len(paths) == 1 else paths, target, **fsspec, **chosen, **keywords)
    _refuse_foreign(os.fspath(target))
    options = WriteOptions.of({**fsspec, **keywords})
    if found is not None:
        opened = found.open(paths, fsspec)
    else:
        opened = Reader(paths[0] if len(paths) == 1 else paths, ReadOptions.of({**fsspec, **chosen}))
    with opened as stream:
        return write(stream, target, options)


def _listed(source: Any) -> Paths:
    if isinstance(source, str | os.PathLike):
        return [os.fspath(source)]
    if isinstance(source, Sequence) and all(isinstance(each, str | os.PathLike) for each in source):
        return [os.fspath(each) for each in source]
    raise TypeError(f"a source is a path or a list of paths, not a {type(source).__name__}; write_tfrecord takes data")


def _refuse_other_direction(keywords: Mapping[str, Any], wanted: Format | None, target: str) -> None:
    for name in keywords:
        if wanted is not None and name in _WRITING:
            raise TypeError(
                f"{name}= is for TFRecord files that are written, and '{printable(target)}' is {wanted.name}"
            )
        if wanted is None and name in _READING:
            raise TypeError(f"{name}= is for other files made of TFRecord files, and '{printable(target)}' is TFRecord")


def _format_of_all(paths: Sequence[str], fsspec: Fsspec) -> Format | None:
    """The one format of all sources; None for TFRecord."""
    if not paths:
        raise ValueError("no path was given")
    found = [_format_of(path, fsspec) for path in paths]
    for path, each in zip(paths, found, strict=True):
        if each is not found[0]:
            names = [format_.name if format_ else "TFRecord" for format_ in (found[0], each)]
            raise ValueError(
                f"'{printable(paths[0])}' is {names[0]} and '{printable(path)}' is {names[1]}: convert them one by one"
            )
    return found[0]


def _format_of(path: str, fsspec: Fsspec) -> Format | None:
    return _named(path) or _of_files(path, fsspec)


def _named(path: str) -> Format | None:
    """The format that a path's name says."""
    plain = _uncompressed(path)
    if is_idx_name(plain):
        return next(each for each in FORMATS if each.name == "IDX")
    found = next((each for each in FORMATS if plain.endswith(each.suffixes)), None)
    if found is not None and plain != path.lower() and not found.compressed:
        raise ValueError(
            f"'{printable(path)}': {found.name} files are not compressed as a whole; they compress what they hold"
        )
    return found


def _uncompressed(path: str) -> str:
    lower = path.lower()
    return next((lower.removesuffix(suffix) for suffix in compression_suffixes() if lower.endswith(suffix)), lower)


def _refuse_foreign(target: str) -> None:
    suffix = os.path.splitext(_uncompressed(target).rstrip("/").partition("@")[0])[1]
    if suffix in _FOREIGN:
        raise ValueError(f"'{printable(target)}': files of the kind {suffix} are not written; {_WRITTEN}")


def _of_files(path: str, fsspec: Fsspec) -> Format | None:
    """The format of what a glob matches, or of a folder that has no TFRecord files, by the names there."""
    tree, name = locate(path, fsspec["storage_options"], fsspec["filesystem"])
    entry = tree.entry(name)
    if entry is None:
        found = {_named(each.basename) for each in tree.glob(name)} if has_magic(tree, name) else set()
        return found.pop() if len(found) == 1 else None
    if not entry.directory:
        return None
    try:
        resolve_inputs(path, **fsspec)
    except FileNotFoundError:
        return _of_names(path, sorted(each.basename for each in tree.listing(entry.name)))
    except ValueError:  # families of shards: it is TFRecord, and reading tells them
        pass
    return None


def _of_names(folder: str, names: Sequence[str]) -> Format | None:
    found = next((found for name in names if (found := _named(name)) is not None), None)
    if found is None and not any(map(is_record_file, names)):
        there = ", ".join(suffix for each in FORMATS for suffix in each.suffixes)
        raise FileNotFoundError(errno.ENOENT, f"this folder has no TFRecord files, and none of {there}", folder)
    return found


def _only(paths: Paths) -> str:
    if len(paths) > 1:
        raise ValueError(f"one file of this kind at a time, not {len(paths)}")
    return paths[0]
