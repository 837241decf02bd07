"""Read ``.npy``, ``.npz`` and IDX files as Arrow streams."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import Any

from tfrecord_io.compression import compression_suffixes
from tfrecord_io.errors import EncodeError
from tfrecord_io.file_formats.array_files.array_file import ArrayFile
from tfrecord_io.file_formats.array_files.array_stream import ArrayStream, stream_of
from tfrecord_io.file_formats.array_files.idx import idx_name, open_idx
from tfrecord_io.file_formats.array_files.object_folder import stream_of_objects
from tfrecord_io.file_formats.array_files.open_array import Archive, Opener, array_name, open_array, open_npy
from tfrecord_io.keyword_docs import check_keywords
from tfrecord_io.options import StorageOptions
from tfrecord_io.storage.paths.plain_files import find_files
from tfrecord_io.storage.read.source import Source

Path = str | os.PathLike[str]
Paths = Path | Sequence[Path] | Mapping[str, Path]

_CONCATENATE = "to concatenate their rows, write one after the other with tfr.open_writer"
_WAYS = f"pass a list for one column per file, or a folder for one record per file; {_CONCATENATE}"
_ARCHIVES = f"pass a folder for one record per archive; {_CONCATENATE}"


@check_keywords
def from_npy(path: Paths, *, storage_options: Mapping[str, Any] | None = None, filesystem: Any = None) -> ArrayStream:
    """Read ``.npy`` files as a stream of record batches, with one row for each index of the leading axis.

    Parameters
    ----------
    path : str, PathLike, list or dict of those
        A file; or several with leading axes of equal length, as a list (columns are named like the files) or as a dict
        by column name; or a folder of ``.npy`` files, each of which is one row. Versions 1 to 3, C and Fortran order,
        compressed or not. A glob may match only one file, since it does not show how several belong together.
    storage_options, filesystem
        As in `tfrecord_io.read_table`.

    Returns
    -------
    ArrayStream
        For `tfrecord_io.write_tfrecord` or any consumer of Arrow streams. Files are read on demand: memory holds a few
        megabytes of rows. Arrays of rank 1 become plain columns, of higher rank tensors.

    Raises
    ------
    DecodeError
        A file is not a ``.npy`` file, is truncated, or holds objects, which are pickles and never read.
    EncodeError
        Leading axes differ in length, or an array has no axis.
    ValueError
        A glob matches several files.
    FileNotFoundError

    Examples
    --------
    >>> import numpy as np, tfrecord_io as tfr
    >>> np.save("vectors.npy", np.ones((3, 4), np.float32))
    >>> tfr.write_tfrecord(tfr.from_npy("vectors.npy"), "vectors.tfrecord").records
    3
    >>> tfr.read_arrays("vectors.tfrecord")["vectors"].shape
    (3, 4)
    """
    storage = StorageOptions(storage_options, filesystem)
    if isinstance(path, str | os.PathLike):
        files = find_files(path, (".npy", *(f".npy{suffix}" for suffix in compression_suffixes())), storage)
        if files.is_directory:
            return stream_of_objects(files.sources, partial(_array, name=array_name(os.fspath(path))))
        source = files.single(_WAYS)
        return _stream({array_name(source.path): source}, open_npy)
    paths = path if isinstance(path, Mapping) else _by_name(path)
    return _stream({name: find_files(file, "", storage).single(_WAYS) for name, file in paths.items()}, open_npy)


@check_keywords
def from_idx(
    *path: Path | Sequence[Path],
    names: Sequence[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
) -> ArrayStream:
    """Read IDX files, the format of MNIST, as a stream of record batches, like `from_npy`.

    Parameters
    ----------
    *path : str, PathLike or list of those
        Files with leading axes of equal length, gzip-compressed or not; a glob stands for the files that it matches, in
        natural order.
    names : sequence of str, optional
        Names of the columns; by default from the names of the files: ``train-images-idx3-ubyte.gz`` becomes ``image``.
    storage_options, filesystem
        As in `tfrecord_io.read_table`.

    Returns
    -------
    ArrayStream
        As from `from_npy`.

    Raises
    ------
    DecodeError
        A file is not an IDX file, or is truncated.
    EncodeError
        Leading axes differ in length.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = open("t10k-labels-idx1-ubyte", "wb").write(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    >>> tfr.from_idx("t10k-labels-idx1-ubyte").read_all().to_pydict()
    {'label': [7, 2, 1]}
    """
    storage = StorageOptions(storage_options, filesystem)
    paths = [file for group in path for file in ([group] if isinstance(group, str | os.PathLike) else group)]
    files = [source for file in paths for source in _files(file, storage)]
    columns = [idx_name(array_name(source.path)) for source in files] if names is None else list(names)
    if len(columns) != len(files):
        raise ValueError(f"{len(columns)} names for {len(files)} files")
    if len(set(columns)) != len(columns):
        raise ValueError(f"several files would become columns with the same name ({', '.join(columns)}); pass names=")
    return _stream(dict(zip(columns, files, strict=True)), open_idx)


@check_keywords
def from_npz(path: Path, *, storage_options: Mapping[str, Any] | None = None, filesystem: Any = None) -> ArrayStream:
    """Read an ``.npz`` archive, or a folder of archives with one row each, as a stream of record batches.

    Parameters
    ----------
    path : str or PathLike
        An archive whose arrays have leading axes of equal length: one row for each index. Or a folder of ``.npz`` files
        with one object each, for example two arrays and a label: one row for each file, with each array in its whole
        shape. To concatenate the rows of archives, write them one by one as in the second example.
    storage_options, filesystem
        As in `tfrecord_io.read_table`.

    Returns
    -------
    ArrayStream
        As from `from_npy`, with a column for each array. Members are streamed out of the archive.

    Raises
    ------
    DecodeError
        A file is not an archive, is damaged, or holds objects, which are pickles and never read.
    EncodeError
        Leading axes differ in length; in a folder, a file has other names, dtypes or ranks than the first.
    TypeError, ValueError
        Several archives, as a list or from a glob.
    FileNotFoundError

    Examples
    --------
    >>> import numpy as np, tfrecord_io as tfr
    >>> np.savez("pairs.npz", features=np.zeros((2, 3), np.float32), labels=np.array([1, 0]))
    >>> tfr.from_npz("pairs.npz").schema.names
    ['features', 'labels']
    >>> with tfr.open_writer("all.tfrecord") as writer:
    ...     for part in ["pairs.npz", "pairs.npz"]:
    ...         writer.write(tfr.from_npz(part))
    >>> tfr.count_records("all.tfrecord")
    4
    """
    storage = StorageOptions(storage_options, filesystem)
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"from_npz takes one archive or a folder of them, not a {type(path).__name__}: {_ARCHIVES}")
    files = find_files(path, ".npz", storage)
    if files.is_directory:
        return stream_of_objects(files.sources, _members)
    with ExitStack() as opened:
        archive = opened.enter_context(closing(Archive(files.single(_ARCHIVES))))
        arrays = {name: opened.enter_context(closing(archive.open(name))) for name in archive.members}
        return stream_of(arrays, opened, num_files=1)


@contextmanager
def _array(source: Source, name: str) -> Iterator[dict[str, ArrayFile]]:
    with closing(open_array(source, open_npy)) as array:
        yield {name: array}


@contextmanager
def _members(source: Source) -> Iterator[dict[str, ArrayFile]]:
    with closing(Archive(source)) as archive:
        yield {name: archive.open(name) for name in archive.members}


def _by_name(paths: Sequence[Path]) -> dict[str, Path]:
    """Paths by the names of their arrays."""
    listed = list(paths)
    named = {array_name(os.fspath(path)): path for path in listed}
    if len(named) < len(listed):
        raise EncodeError("two files have the same name", advice="pass a dict of column names and paths")
    return named


def _files(path: Path, storage: StorageOptions) -> list[Source]:
    """One file, or those that a glob matches."""
    files = find_files(path, "", storage)
    return [files.single("")] if files.is_directory else files.sources


def _stream(sources: Mapping[str, Source], opener: Opener) -> ArrayStream:
    """A stream with a column for each file."""
    if not sources:
        raise ValueError("no path was given")
    with ExitStack() as opened:
        arrays = {name: opened.enter_context(closing(open_array(source, opener))) for name, source in sources.items()}
        return stream_of(arrays, opened, num_files=len(arrays))
