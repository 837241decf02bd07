"""NumPy's files and IDX as Arrow streams: what a writer takes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from tfrecord_io.compression import compression_suffixes
from tfrecord_io.errors import EncodeError
from tfrecord_io.file_formats.array_file import ArrayFile
from tfrecord_io.file_formats.array_stream import ArrayStream, stream_of
from tfrecord_io.file_formats.idx import idx_name, open_idx
from tfrecord_io.file_formats.npy import open_npy
from tfrecord_io.file_formats.object_folder import stream_of_objects
from tfrecord_io.file_formats.open_array import Archive, Opener, open_array, stem_of
from tfrecord_io.storage.paths.plain_files import find_files
from tfrecord_io.storage.read.source import Source

Path = str | os.PathLike[str]
Paths = Path | Sequence[Path] | Mapping[str, Path]

_ONE_BEHIND_ANOTHER = "for the rows of one behind those of another write each to one tfr.open_writer"
_WAYS = f"pass a list for a column of each file, a folder for a record of each; {_ONE_BEHIND_ANOTHER}"
_ARCHIVES = f"pass a folder for a record of each archive; {_ONE_BEHIND_ANOTHER}"


def from_npy(path: Paths, *, storage_options: Mapping[str, Any] | None = None, filesystem: Any = None) -> ArrayStream:
    """Arrays of ``.npy`` files as a stream of record batches, one row for each index of the leading axis.

    Parameters
    ----------
    path : str, PathLike, list or dict of those
        A file; several, whose leading axes agree, as a list (columns are named as the files) or as a dict of column names;
        or a folder of ``.npy`` files, each of which is one row. Versions 1 to 3, C and Fortran order, compressed or not.
        A glob is for one file: of several it does not say what they are to each other.
    storage_options, filesystem
        For fsspec.

    Returns
    -------
    ArrayStream
        To be handed to `tfrecord_io.write_tfrecord`, or to whatever takes an Arrow stream. Files are read as batches are
        asked for: memory holds some megabytes of rows. Rank 1 gives plain columns, higher ranks tensors.

    Raises
    ------
    DecodeError
        A file is no ``.npy``, is cut, or holds objects, which are pickles and never read.
    EncodeError
        Leading axes differ, or an array has no axis.
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
    fsspec = {"storage_options": storage_options, "filesystem": filesystem}
    if isinstance(path, str | os.PathLike):
        found = find_files(path, (".npy", *(f".npy{suffix}" for suffix in compression_suffixes())), **fsspec)
        if found.is_folder:
            return stream_of_objects(found.sources, partial(_array, name=stem_of(os.fspath(path))))
        source = found.single(_WAYS)
        return _streamed({stem_of(source.path): source}, open_npy)
    named = path if isinstance(path, Mapping) else _by_stem(path)
    return _streamed({name: find_files(each, "", **fsspec).single(_WAYS) for name, each in named.items()}, open_npy)


def from_idx(
    *path: Path | Sequence[Path],
    names: Sequence[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
) -> ArrayStream:
    """Arrays of IDX files, the format of MNIST, as a stream of record batches, one row for each index of the leading axis.

    Parameters
    ----------
    *path : str, PathLike or list of those
        Files whose leading axes agree, gzip-compressed or not; a glob is for the files that it matches, in natural order.
    names : sequence of str, optional
        Names of the columns; by default from the files' names: ``train-images-idx3-ubyte.gz`` becomes ``image``.
    storage_options, filesystem
        For fsspec.

    Returns
    -------
    ArrayStream
        As of `from_npy`.

    Raises
    ------
    DecodeError
        A file is no IDX file, or is cut.
    EncodeError
        Leading axes differ.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = open("t10k-labels-idx1-ubyte", "wb").write(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    >>> tfr.from_idx("t10k-labels-idx1-ubyte").read_all().to_pydict()
    {'label': [7, 2, 1]}
    """
    fsspec = {"storage_options": storage_options, "filesystem": filesystem}
    listed = [each for group in path for each in ([group] if isinstance(group, str | os.PathLike) else group)]
    files = [source for each in listed for source in _files(each, fsspec)]
    found = [idx_name(stem_of(source.path)) for source in files] if names is None else list(names)
    if len(found) != len(files):
        raise ValueError(f"{len(found)} names for {len(files)} files")
    if len(set(found)) != len(found):
        raise ValueError(f"the files would give columns of the same name ({', '.join(found)}): pass names=")
    return _streamed(dict(zip(found, files, strict=True)), open_idx)


def from_npz(path: Path, *, storage_options: Mapping[str, Any] | None = None, filesystem: Any = None) -> ArrayStream:
    """Arrays of an ``.npz`` archive as a stream of record batches, or a folder of archives, each of which is one row.

    Parameters
    ----------
    path : str or PathLike
        An archive whose arrays have the same leading axis: a row for each index. Or a folder of ``.npz`` files, each an
        object on its own, for example two arrays and a label: a row for each file, whose arrays keep their whole shape.
        Archives whose rows follow each other are written one by one, see the second example.
    storage_options, filesystem
        For fsspec.

    Returns
    -------
    ArrayStream
        As of `from_npy`; a column for each array, members are read as streams out of the archive.

    Raises
    ------
    DecodeError
        A file is no archive, is damaged, or holds objects, which are pickles and never read.
    EncodeError
        Leading axes differ; in a folder: files have other names, dtypes or ranks than the first.
    TypeError, ValueError
        Several archives, as a list or by a glob.
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
    fsspec = {"storage_options": storage_options, "filesystem": filesystem}
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"from_npz takes one archive or a folder of them, not a {type(path).__name__}: {_ARCHIVES}")
    found = find_files(path, ".npz", **fsspec)
    if found.is_folder:
        return stream_of_objects(found.sources, _members)
    archive = Archive(found.single(_ARCHIVES))
    try:
        return stream_of({name: archive.open(name) for name in archive.members}, archive)
    except BaseException:
        archive.close()
        raise


@contextmanager
def _array(source: Source, name: str) -> Iterator[dict[str, ArrayFile]]:
    array = open_array(source, open_npy)
    try:
        yield {name: array}
    finally:
        array.close()


@contextmanager
def _members(source: Source) -> Iterator[dict[str, ArrayFile]]:
    archive = Archive(source)
    try:
        yield {name: archive.open(name) for name in archive.members}
    finally:
        archive.close()


def _by_stem(paths: Sequence[Path]) -> dict[str, Path]:
    """Paths by the names of their files."""
    listed = list(paths)
    named = {stem_of(os.fspath(each)): each for each in listed}
    if len(named) < len(listed):
        raise EncodeError("two files have the same name", advice="pass a dict of column names and paths")
    return named


def _files(path: Path, fsspec: Mapping[str, Any]) -> list[Source]:
    """One file, or those that a glob matches."""
    found = find_files(path, "", **fsspec)
    return [found.single("")] if found.is_folder else found.sources


def _streamed(sources: Mapping[str, Source], opener: Opener) -> ArrayStream:
    """A column of each file, by their leading axes."""
    if not sources:
        raise ValueError("no path was given")
    with ExitStack() as undo:
        arrays: dict[str, ArrayFile] = {}
        for name, source in sources.items():
            arrays[name] = open_array(source, opener)
            undo.callback(arrays[name].close)
        stream = stream_of(arrays)
        undo.pop_all()
        return stream
