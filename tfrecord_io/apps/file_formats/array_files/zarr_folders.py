"""Zarr folders of version 2 and 3: their arrays as columns, and columns as arrays. Nothing beside a folder is read."""

from __future__ import annotations

import asyncio
import base64
import errno
import math
import os
import stat
import warnings
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrecord_io.apps.file_formats.array_files.array_stream import ArrayStream, Project, Values
from tfrecord_io.apps.file_formats.array_files.cf_conventions import Label, plain_attribute, stream_of_group
from tfrecord_io.apps.file_formats.array_files.stored_arrays import (
    EXCLUDE,
    EXCLUDE_CLI,
    StoredArray,
    bytes_column,
    library_errors,
    text_column,
)
from tfrecord_io.apps.file_formats.array_files.to_numpy_files import Export, chunk_of, require_one_shape
from tfrecord_io.base import LIMITS, Limits
from tfrecord_io.columns import Ragged
from tfrecord_io.errors import DecodeError, EncodeError
from tfrecord_io.kit import FORMATS, Array, Options, needs, printable
from tfrecord_io.store import Directory, Location, NewFolder
from tfrecord_io.typing import WriteReport

if TYPE_CHECKING:
    import zarr

_ZARR = FORMATS.zarr

DIMENSIONS = "_ARRAY_DIMENSIONS"  # the attribute by which xarray knows the dimensions of arrays of version 2
_METADATA = (".zarray", ".zgroup", ".zattrs", ".zmetadata", "zarr.json")


def open_zarr(
    path: Any,
    *,
    project: Project,
    limits: Limits = Limits.DEFAULT,
    record_dim: str | None = None,
    decode_cf: bool = True,
    **keywords: Any,
) -> ArrayStream:
    """The arrays of a folder, with a row for each index of their first axis; those of groups are ``group/name``.

    If all have names of dimensions, as those that xarray writes, the rows are those of one of these.

    Raises
    ------
    DecodeError
        Its metadata or a chunk is damaged, or a name or a link leads out of the folder.
    EncodeError
        Arrays that are needed differ in length, or have values that no column holds.
    """
    with needs(_ZARR.extra, _ZARR.title):
        import zarr
    fs, name = Location.of(path, Options.from_keywords(keywords).storage)
    entry = fs.entry(name)
    if entry is None or not entry.directory:
        code = errno.ENOENT if entry is None else errno.ENOTDIR
        text = "no such Zarr folder" if entry is None else "a Zarr array or group is a folder"
        raise OSError(code, text, fs.display_path(name))
    store = _folder_store()(Directory.from_filesystem(fs, entry.name))
    shown = fs.display_path(entry.name)
    with library_errors(shown), _quiet():
        group = zarr.open(store, mode="r")
        array_name = os.path.splitext(entry.basename)[0]
        members = [(array_name, group)] if isinstance(group, zarr.Array) else sorted(group.members(max_depth=None))
        arrays = {name: member for name, member in members if isinstance(member, zarr.Array)}
        dtypes = {name: np.dtype(array.dtype) for name, array in arrays.items()}
        labels = {name: _label(array) for name, array in arrays.items()}
        labels |= {f"{name}/": Label(None, node.attrs.asdict()) for name, node in [("", group), *members]}

    def open(name: str) -> StoredArray:
        with library_errors(f"{shown}: {name}"):
            return _array(arrays[name], f"{shown}: {name}", store, limits.expansion_bytes)

    with ExitStack() as opened:
        return stream_of_group(
            *(dtypes, open, opened, shown, project, labels), record_dim=record_dim, decode_cf=decode_cf
        )


def _label(array: zarr.Array[Any]) -> Label:
    """Dimensions and attributes, as xarray writes them."""
    attributes: dict[str, Any] = dict(array.attrs.asdict())
    dims: Any
    if array.metadata.zarr_format == 3:
        dims = array.metadata.dimension_names
        fill = attributes.get("_FillValue")
        if isinstance(fill, str) and array.dtype.kind == "f":
            attributes["_FillValue"] = float(np.frombuffer(base64.standard_b64decode(fill), "<f8")[0])
    else:
        dims = attributes.pop(DIMENSIONS, None)
        if dims is not None and array.fill_value not in (None, "", b""):  # zarr fills with no text by default
            attributes.setdefault("_FillValue", array.fill_value)
    named = dims if isinstance(dims, list | tuple) and all(isinstance(dim, str) for dim in dims) else []
    dim_names = tuple(named) if len(named) == array.ndim == len({*named}) else None
    return Label(dim_names, {name: plain_attribute(value) for name, value in attributes.items()})


def _array(array: zarr.Array[Any], path: str, store: Any, max_expansion: int) -> StoredArray:
    from zarr.core.dtype import VariableLengthUTF8

    stored = array.metadata.data_type if array.metadata.zarr_format == 3 else array.metadata.dtype
    chunks = tuple(array.shards or array.chunks)
    if math.prod(chunks) * array.dtype.itemsize > LIMITS.MAX_RECORD_BYTES:
        raise DecodeError(f"a chunk of the shape {chunks} is too large", path=path, expected=LIMITS.MAX_RECORD_BYTES)

    def part(key: tuple[slice, ...]) -> Array:
        with _quiet():
            return np.asarray(array[key])

    return StoredArray(
        *(path, np.dtype(array.dtype), tuple(array.shape), False, None),
        read_rows=lambda begin, end: part((slice(begin, end),)),
        read_part=part,
        chunks=tuple(max(1, size) for size in chunks),
        stored_bytes=lambda: store.bytes_read,
        max_expansion=max_expansion,
        convert=text_column if isinstance(stored, VariableLengthUTF8) else _convert_values,
    )


def _convert_values(values: Array) -> Values:
    if values.dtype.kind == "T":
        return text_column(values)
    if values.dtype.kind != "O":
        return values
    first = next(iter(values.reshape(-1)), b"")
    if isinstance(first, bytes | str):
        return (text_column if isinstance(first, str) else bytes_column)(values)
    raise EncodeError(
        f"objects of the type {type(first).__name__} cannot be stored", hint=EXCLUDE, hint_cli=EXCLUDE_CLI
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the library's warnings about types that Zarr 3 does not specify, and about files without arrays."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class _Folder:
    """The files of a folder on disk or in a bucket, none of which may be outside of it."""

    def __init__(self, directory: Directory) -> None:
        self.directory, self.fs, self.root = directory, directory.fs, directory.name.rstrip("/")

    def name(self, key: str) -> str:
        """The name of the file of a key."""
        path = f"{self.fs.display_path(self.root)}: {printable(key)}"
        if (reason := Directory.leads_out(key)) is not None:
            raise DecodeError(f"the name of an array or a chunk leads out of the folder: {reason}", path=path)
        name = self.directory.join(key)
        if self.directory.is_left_by(name):
            raise DecodeError("a symbolic link leads out of the folder", path=path, hint="copy the file into it")
        return name

    def read(self, name: str, begin: int, end: int | None) -> bytes | None:
        """Bytes of a file, from the end if `begin` is negative; None if the file does not exist."""
        if not self.fs.is_local:
            try:
                return self.fs.read_range(name, begin, end)
            except (FileNotFoundError, IsADirectoryError):
                return None
        try:
            status = os.stat(name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISDIR(status.st_mode):
            return None
        begin = max(0, begin + status.st_size) if begin < 0 else begin
        size = (status.st_size if end is None else min(end, status.st_size)) - begin
        if not stat.S_ISREG(status.st_mode) or size > LIMITS.MAX_RECORD_BYTES:
            reason = f"a chunk of {size} bytes" if stat.S_ISREG(status.st_mode) else "not a regular file"
            raise DecodeError(reason, path=name, expected=LIMITS.MAX_RECORD_BYTES, got=size)
        return self.fs.read_range(name, begin, begin + max(0, size))


@cache
def _folder_store() -> type[Any]:
    from zarr.abc.store import OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest

    class FolderStore(Store):
        supports_writes = supports_deletes = False
        supports_listing = True

        def __init__(self, directory: Directory) -> None:
            super().__init__(read_only=True)
            self._folder, self.bytes_read = _Folder(directory), 0

        def __eq__(self, other: object) -> bool:
            return self is other

        async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
            data = await asyncio.to_thread(self._folder.read, self._folder.name(key), *_bounds(byte_range))
            if data is None:
                return None
            self.bytes_read += len(data)
            return prototype.buffer.from_bytes(data)

        async def get_partial_values(self, prototype: Any, key_ranges: Iterable[tuple[str, Any]]) -> list[Any]:
            return [await self.get(key, prototype, byte_range) for key, byte_range in key_ranges]

        async def exists(self, key: str) -> bool:
            return self._folder.fs.entry(self._folder.name(key)) is not None

        async def set(self, key: str, value: Any) -> None:
            raise NotImplementedError

        async def delete(self, key: str) -> None:
            raise NotImplementedError

        async def list(self) -> AsyncIterator[str]:
            raise NotImplementedError
            yield ""

        async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
            raise NotImplementedError
            yield ""

        async def list_dir(self, prefix: str) -> AsyncIterator[str]:
            for entry in self._folder.fs.listing(self._folder.name(prefix) if prefix else self._folder.root):
                yield entry.basename

    def _bounds(request: Any) -> tuple[int, int | None]:
        if isinstance(request, RangeByteRequest):
            return request.start, request.end
        if isinstance(request, OffsetByteRequest):
            return request.offset, None
        return (-request.suffix, None) if isinstance(request, SuffixByteRequest) else (0, None)

    return FolderStore


# ---- writing


def to_zarr(source: Any, target: Any, **keywords: Any) -> WriteReport:
    """Write the columns of TFRecord files as arrays of a Zarr folder of version 2; ``a/b`` is in the group ``a``.

    Text and bytes have no fixed length; lists of several lengths, and missing values, are errors.
    """
    with needs(_ZARR.extra, _ZARR.title):
        import zarr
    export = Export(source, keywords)
    for name in export.names:
        if (reason := Directory.name_fault(name)) is not None:
            reason = f"its name cannot be that of an array: {reason}"
            raise EncodeError(
                reason, feature=name, hint=f"rename it, or {EXCLUDE}", hint_cli=f"rename it, or {EXCLUDE_CLI}"
            )
    with NewFolder.begin(os.fspath(target).rstrip("/"), export.storage) as folder:
        store = _new_store()(folder)
        writer = _Writer(zarr.open_group(store, mode="w", zarr_format=2), export)
        rows = export.write(writer.append)
        writer.finish()
        with _quiet():
            zarr.consolidate_metadata(store, zarr_format=2)  # xarray warns where it is not
        store.finish()
    return WriteReport(os.fspath(target), rows, bytes=folder.bytes, compression=None, columns=export.names, rounded={})


class _Writer:
    """Writes whole chunks, each of them once."""

    def __init__(self, group: zarr.Group, export: Export) -> None:
        self._group, self._export = group, export
        self._waiting: dict[str, list[Array]] = {}
        self._arrays: dict[str, zarr.Array[Any]] = {}

    def append(self, name: str, values: Array | Ragged, is_bytes: bool) -> None:
        values = require_one_shape(values, name, _ZARR.title)
        if name not in self._arrays:
            self._arrays[name] = self._create(name, values, is_bytes)
        waiting, chunk = self._waiting.setdefault(name, []), self._arrays[name].chunks[0]
        waiting.append(values)
        if (rows := sum(map(len, waiting))) >= chunk:
            whole = np.concatenate(waiting)
            self._write(name, whole[: rows // chunk * chunk])
            waiting[:] = [whole[rows // chunk * chunk :]]

    def finish(self) -> None:
        """Write the last chunk of each array."""
        for name, waiting in self._waiting.items():
            self._write(name, np.concatenate(waiting))

    def _create(self, name: str, values: Array, is_bytes: bool) -> zarr.Array[Any]:
        from zarr.core.dtype import VariableLengthBytes, VariableLengthUTF8

        dtype: Any = values.dtype
        if dtype.kind in "OT":
            dtype = VariableLengthBytes() if is_bytes else VariableLengthUTF8()
        dimensions = self._export.dimensions(name, values.shape[1:])
        with _quiet():
            return self._group.create_array(
                name,
                shape=(0, *values.shape[1:]),
                chunks=chunk_of(values.shape[1:], values.dtype.itemsize),
                dtype=dtype,
                fill_value=None,  # xarray would read the fill value as missing
                attributes={**self._export.attributes[name], DIMENSIONS: dimensions},
            )

    def _write(self, name: str, values: Array) -> None:
        array = self._arrays[name]
        if len(values) and values.size:
            with _quiet():
                array.append(values)
        elif len(values):
            array.resize((array.shape[0] + len(values), *array.shape[1:]))


@cache
def _new_store() -> type[Any]:
    from zarr.storage import MemoryStore

    class NewFolderStore(MemoryStore):
        """A folder being written: chunks are written at once, metadata, which grows, at the end."""

        def __init__(self, folder: NewFolder) -> None:
            super().__init__()
            self._folder = folder

        async def set(self, key: str, value: Any, byte_range: Any = None) -> None:
            if key.rpartition("/")[2] in _METADATA:
                await super().set(key, value)
            else:
                self._put(key, value.to_bytes())

        def set_sync(self, key: str, value: Any) -> None:
            if key.rpartition("/")[2] in _METADATA:
                super().set_sync(key, value)
            else:
                self._put(key, value.to_bytes())

        def finish(self) -> None:
            for key, value in self._store_dict.items():
                self._put(key, value.to_bytes())

        def _put(self, key: str, content: bytes) -> None:
            self._folder.write(key, content)
            self._folder.bytes += len(content)

    return NewFolderStore
