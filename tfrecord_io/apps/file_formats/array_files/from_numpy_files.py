"""Read ``.npy``, ``.npz`` and IDX files as Arrow streams."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.apps.file_formats.array_files.array_stream import ArrayStream, Project, needed_arrays, stream_of
from tfrecord_io.apps.file_formats.array_files.open_array import (
    BLOCK_BYTES,
    Archive,
    ArrayFile,
    Opener,
    array_name,
    idx_array,
    idx_name,
    npy_array,
    open_array,
)
from tfrecord_io.apps.file_formats.array_files.stored_arrays import EXCLUDE
from tfrecord_io.apps.file_formats.tables.table_files import suffixes_of
from tfrecord_io.columns import Column, TensorValues
from tfrecord_io.errors import EncodeError, TFRecordError
from tfrecord_io.kit import FORMATS, Array, Options, check_keywords, open_input
from tfrecord_io.store import PathMatch, Source
from tfrecord_io.typing import StorageLike

_NPY, _NPZ = FORMATS.npy, FORMATS.npz

Path = str | os.PathLike[str]
Paths = Path | Sequence[Path] | Mapping[str, Path]

_CONCATENATE = "to concatenate their rows, write one after the other with tfr.open_writer"
_WAYS = f"pass a list for one column per file, or a folder for one record per file; {_CONCATENATE}"
_ARCHIVES = f"pass a folder for one record per archive; {_CONCATENATE}"
OpenObject = Callable[[Source], AbstractContextManager[dict[str, ArrayFile]]]

_MAX_ROWS = 4096


@check_keywords
def open_npy(path: Paths, *, storage_options: StorageLike | None = None) -> ArrayStream:
    """Read ``.npy`` files as a stream of record batches, with one row for each index of the leading axis.

    >>> import numpy as np, tfrecord_io as tfr
    >>> np.save("vectors.npy", np.ones((3, 4), np.float32))
    >>> tfr.write_tfrecord(tfr.formats.open_npy("vectors.npy"), "vectors.tfrecord").records
    3
    >>> tfr.read_arrays("vectors.tfrecord")["vectors"].shape
    (3, 4)

    Parameters
    ----------
    path : str, PathLike, list or dict of those
        A file; or several with leading axes of equal length, as a list (columns are named like the files) or as a dict
        by column name; or a folder of ``.npy`` files, each of which is one row. Versions 1 to 3, C and Fortran order,
        compressed or not. A glob may match only one file, since it does not show how several belong together.
    storage_options
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
    """
    storage = Options(storage_options=storage_options).storage
    if isinstance(path, str | os.PathLike):
        files = PathMatch.find(path, suffixes_of(_NPY), storage)
        if files.is_directory:
            files.warn_of_left_out((_NPY,))
            return stream_of_objects(files.sources, partial(_array, name=array_name(os.fspath(path))))
        source = files.single(_WAYS)
        return _stream({array_name(source.path): source}, npy_array)
    paths: Mapping[str, Path]
    if isinstance(path, Mapping):
        paths = path
    else:
        path_list = list(path)
        paths = {array_name(os.fspath(item)): item for item in path_list}
        if len(paths) < len(path_list):
            raise EncodeError("two files have the same name", hint="pass a dict of column names and paths")
    return _stream({name: PathMatch.find(file, "", storage).single(_WAYS) for name, file in paths.items()}, npy_array)


@check_keywords
def open_idx(
    *path: Path | Sequence[Path], names: Sequence[str] | None = None, storage_options: StorageLike | None = None
) -> ArrayStream:
    """Read IDX files, the format of MNIST, as a stream of record batches, like `open_npy`.

    >>> import tfrecord_io as tfr
    >>> _ = open("t10k-labels-idx1-ubyte", "wb").write(
    ...     bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1])
    ... )
    >>> tfr.formats.open_idx("t10k-labels-idx1-ubyte").read_all().to_pydict()
    {'label': [7, 2, 1]}

    Parameters
    ----------
    *path : str, PathLike or list of those
        Files with leading axes of equal length, compressed or not; a glob stands for the files that it matches, in
        natural order.
    names : sequence of str, optional
        Names of the columns; by default from the names of the files: ``train-images-idx3-ubyte.gz`` becomes ``image``.
    storage_options
        As in `tfrecord_io.read_table`.

    Returns
    -------
    ArrayStream
        As from `open_npy`.

    Raises
    ------
    DecodeError
        A file is not an IDX file, or is truncated.
    EncodeError
        Leading axes differ in length.
    """
    storage = Options(storage_options=storage_options).storage
    paths = [file for group in path for file in ([group] if isinstance(group, str | os.PathLike) else group)]
    files: list[Source] = []
    for file in paths:
        match = PathMatch.find(file, "", storage)  # one file, or the matches of a glob
        files += [match.single("")] if match.is_directory else match.sources
    columns = [idx_name(array_name(source.path)) for source in files] if names is None else list(names)
    if len(columns) != len(files):
        raise ValueError(f"{len(columns)} names for {len(files)} files")
    if len(set(columns)) != len(columns):
        raise ValueError(f"several files would become columns with the same name ({', '.join(columns)}); pass names=")
    return _stream(dict(zip(columns, files, strict=True)), idx_array)


@check_keywords
def open_npz(path: Path, *, storage_options: StorageLike | None = None) -> ArrayStream:
    """Read an ``.npz`` archive, or a folder of archives with one row each, as a stream of record batches.

    >>> import numpy as np, tfrecord_io as tfr
    >>> np.savez(
    ...     "pairs.npz", features=np.zeros((2, 3), np.float32), labels=np.array([1, 0])
    ... )
    >>> tfr.formats.open_npz("pairs.npz").schema.names
    ['features', 'labels']
    >>> with tfr.open_writer("all.tfrecord") as writer:
    ...     for part in ["pairs.npz", "pairs.npz"]:
    ...         writer.write(tfr.formats.open_npz(part))
    >>> tfr.count("all.tfrecord")
    4

    Parameters
    ----------
    path : str or PathLike
        An archive whose arrays have leading axes of equal length: one row for each index. Or a folder of ``.npz`` files
        with one object each, for example two arrays and a label: one row for each file, with each array in its whole
        shape. To concatenate the rows of archives, write them one by one as in the second example.
    storage_options
        As in `tfrecord_io.read_table`.

    Returns
    -------
    ArrayStream
        As from `open_npy`, with a column for each array. Members are streamed out of the archive.

    Raises
    ------
    DecodeError
        A file is not an archive, is damaged, or holds objects, which are pickles and never read.
    EncodeError
        Leading axes differ in length; in a folder, a file has other names, dtypes or ranks than the first.
    TypeError, ValueError
        Several archives, as a list or from a glob.
    FileNotFoundError
    """
    return stream_of_npz(path, storage_options=Options(storage_options=storage_options).storage.given)


def stream_of_npz(path: Any, *, project: Project | None = None, **keywords: Any) -> ArrayStream:
    """`open_npz` of the arrays that are needed: others may be single values, of another length, or objects."""
    storage = Options.from_keywords(keywords).storage
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"open_npz takes one archive or a folder of them, not a {type(path).__name__}: {_ARCHIVES}")
    files = PathMatch.find(path, _NPZ.suffixes, storage)
    if files.is_directory:
        files.warn_of_left_out((_NPZ,))
        return stream_of_objects(files.sources, partial(_members, project=project))
    with ExitStack() as opened:
        arrays = opened.enter_context(_members(files.single(_ARCHIVES), project))
        return stream_of(arrays, opened, num_files=1, advice=None if project is None else EXCLUDE)


@contextmanager
def _array(source: Source, name: str) -> Iterator[dict[str, ArrayFile]]:
    with closing(open_array(source, npy_array)) as array:
        yield {name: array}


@contextmanager
def _members(source: Source, project: Project | None) -> Iterator[dict[str, ArrayFile]]:
    arrays: dict[str, ArrayFile] = {}
    faults: dict[str, TFRecordError] = {}
    with ExitStack() as opened:
        archive = opened.enter_context(closing(Archive(source)))
        for name in archive.members:
            try:
                arrays[name] = opened.enter_context(closing(archive.open(name)))
            except TFRecordError as error:
                faults[name] = error
        dtypes = {name: arrays[name].dtype if name in arrays else np.dtype(object) for name in archive.members}
        needed = list(dtypes) if project is None else needed_arrays(dtypes, project)
        for name in needed:
            if name in faults:
                raise faults[name]
        yield {name: arrays[name] for name in needed}


def _stream(sources: Mapping[str, Source], opener: Opener) -> ArrayStream:
    """A stream with a column for each file."""
    if not sources:
        raise ValueError("no path was given")
    with ExitStack() as opened:
        arrays = {name: opened.enter_context(closing(open_array(source, opener))) for name, source in sources.items()}
        return stream_of(arrays, opened, num_files=len(arrays))


@dataclass(frozen=True, slots=True)
class _Column:
    """The common dtype and shape of the arrays with one name, over all files."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...]  # None: it varies
    first_path: str

    @property
    def is_tensor(self) -> bool:
        """True if the column holds tensors: rank 0 and 1 are plain, unless Arrow lacks the type of the values."""
        return len(self.shape) > 1 or self.dtype.kind in "cV"

    def field(self) -> pa.Field:
        if self.is_tensor:
            shape = (None,) * len(self.shape) if None in self.shape else self.shape
            return Column.of_tensors(self.name, TensorValues.dtype_of(self.dtype), shape).field
        plain = open_input({self.name: np.empty(0, self.dtype)}).schema.field(0)
        return plain if not self.shape else plain.with_type(pa.list_(plain.type))

    def merge(self, array: ArrayFile) -> _Column:
        """The column with the array of one more file."""
        if len(array.shape) != len(self.shape):
            raise self._conflict(array, f"{len(array.shape)} dimensions", f"{len(self.shape)}", "number of dimensions")
        dtype = self.dtype
        if array.dtype.newbyteorder("=") != dtype.newbyteorder("="):
            if array.dtype.kind not in "SU" or array.dtype.kind != dtype.kind:
                raise self._conflict(array, f"dtype {array.dtype}", str(dtype), "dtype")
            dtype = max(array.dtype, dtype, key=lambda dtype: dtype.itemsize)
        shape = tuple(a if a == b else None for a, b in zip(self.shape, array.shape, strict=True))
        return replace(self, dtype=dtype, shape=shape)

    def _conflict(self, array: ArrayFile, got: str, expected: str, what: str) -> EncodeError:
        reason = f"its array has {got}, but that of '{self.first_path}' has {expected}"
        advice = f"use the same {what} in all files"
        return EncodeError(reason, path=array.path, feature=self.name, expected=expected, got=got, hint=advice)

    def array(self, values: list[Array]) -> pa.Array:
        """The column with these arrays as rows."""
        if not self.shape and not self.is_tensor:
            return _plain(np.array([value[()] for value in values], self.dtype))
        if not self.is_tensor:
            offsets = np.cumsum([0, *map(len, values)], dtype=np.int32)
            return pa.ListArray.from_arrays(offsets, _plain(np.concatenate(values)))
        element = TensorValues.dtype_of(self.dtype)
        data = [np.ascontiguousarray(v.astype(element.dtype, copy=False)).reshape(-1).view(np.uint8) for v in values]
        offsets = np.cumsum([0, *map(len, data)])
        shapes: Any = self.shape
        if None in self.shape:
            shapes = np.array([value.shape for value in values], np.int64).reshape(len(values), len(self.shape))
        return TensorValues(element, np.concatenate(data), offsets, shapes).to_array(len(values))


def _plain(values: Array) -> pa.Array:
    """Single values as an Arrow array."""
    return pa.concat_arrays([batch.column(0) for batch in open_input({"": values})] or [pa.array(values)])


def stream_of_objects(sources: list[Source], open_object: OpenObject) -> ArrayStream:
    """A stream with one row for each file.

    The headers of all files are read first: they show whether shapes vary, and conflicts of names, dtypes and ranks are
    raised before anything is written.
    """
    columns = _common_columns(sources, open_object)
    schema = pa.schema([column.field() for column in columns.values()])

    def batch(rows: dict[str, list[Array]]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([columns[name].array(values) for name, values in rows.items()], schema=schema)

    def batches() -> Generator[pa.RecordBatch]:
        rows: dict[str, list[Array]] = {name: [] for name in columns}
        count = size = 0
        for source in sources:
            with open_object(source) as arrays:
                for name in columns:
                    rows[name].append(arrays[name].read())
            count += 1
            size += sum(values[-1].nbytes for values in rows.values())
            if count == _MAX_ROWS or size >= BLOCK_BYTES:
                yield batch(rows)
                rows, count, size = {name: [] for name in columns}, 0, 0
        if count:
            yield batch(rows)

    rows = batches()
    return ArrayStream(schema, rows, len(sources), rows.close, num_files=len(sources))


def _common_columns(sources: list[Source], open_object: OpenObject) -> dict[str, _Column]:
    columns: dict[str, _Column] = {}
    for source in sources:
        with open_object(source) as arrays:
            for array in arrays.values():
                array.check_record(array.size)
            if not columns:
                columns = {name: _Column(name, array.dtype, array.shape, source.path) for name, array in arrays.items()}
                continue
            if different := sorted(columns.keys() ^ arrays.keys()):
                name, advice = different[0], "use the same arrays in all files"
                article = "no" if name in columns else "an"
                reason = f"the file has {article} array of this name, unlike '{sources[0].path}'"
                raise EncodeError(reason, path=source.path, feature=name, hint=advice)
            columns = {name: column.merge(arrays[name]) for name, column in columns.items()}
    return columns
