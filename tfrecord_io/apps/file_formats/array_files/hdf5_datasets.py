"""Datasets of HDF5 files: found by links that stay in the file, read as arrays, and written.

Tests: tests/apps/file_formats/array_files/test_hdf5_files.py.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tfrecord_io.apps.file_formats.array_files.array_stream import Values
from tfrecord_io.apps.file_formats.array_files.cf_conventions import PACKING, plain_attribute
from tfrecord_io.apps.file_formats.array_files.stored_arrays import (
    EXCLUDE,
    EXCLUDE_CLI,
    StoredArray,
    bytes_column,
    lists_column,
    text_column,
)
from tfrecord_io.apps.file_formats.array_files.to_numpy_files import chunk_of
from tfrecord_io.base import LIMITS
from tfrecord_io.columns import Column, Ragged, structured_columns
from tfrecord_io.errors import DecodeError, EncodeError
from tfrecord_io.kit import FORMATS, Array, needs, printable
from tfrecord_io.store import Source

if TYPE_CHECKING:
    import h5py

_HDF5 = FORMATS.hdf5

_BYTES = "tfrecord_io.bytes"  # marks datasets with lists of uint8 as bytes, for which HDF5 has no type
_ROWS = 16  # whose values of no fixed size are read at a time
_CHUNK_BYTES = 1 << 20
_CACHE_BYTES, _CACHE_SLOTS = 1 << 20, 521  # of the chunks of each dataset; HDF5 2 has eight times as much
_SOFT_LINKS = 16  # links in a row that are followed, as HDF5 does
_OTHER_FILE = "its values are in another file, which is not opened"
RESERVED = {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_NCProperties", "_nc3_strict", _BYTES}


def open_file(raw: Any, source: Source) -> h5py.File:
    """Open a file for reading, with a small cache for the chunks of each dataset."""
    with needs(_HDF5.extra, _HDF5.title):
        import h5py
    # h5py holds a lock while it reads, and destroying its objects takes that lock. Were those of earlier files
    # collected by the thread that answers a read from a bucket, both threads would wait for ever.
    if not source.local:
        gc.collect()
    return h5py.File(raw, "r", rdcc_nbytes=_CACHE_BYTES, rdcc_nslots=_CACHE_SLOTS)


_Target: TypeAlias = "h5py.Dataset | int | str | None"
"""Target of a link: a dataset, the address of a group, or why it is refused; None: an object without values."""


class Links:
    """The links of all groups of a file, each of which is opened once.

    Soft links are followed by name: HDF5 itself would follow a link to another file on the way.
    """

    def __init__(self, file: h5py.File) -> None:
        import h5py

        self._root = h5py.h5o.get_info(file.id).addr
        self._groups: dict[int, dict[str, _Target | h5py.SoftLink]] = {}  # by address
        self.nowhere: list[str] = []  # dangling soft links, found by `datasets`
        pending: list[tuple[int, h5py.Group]] = [(self._root, file)]
        while pending:
            address, group = pending.pop()
            if address not in self._groups:
                self._groups[address] = {name: self._read(group, name, pending) for name in group}

    def _read(self, group: h5py.Group, name: str, pending: list[tuple[int, h5py.Group]]) -> _Target | h5py.SoftLink:
        import h5py

        try:
            link = group.get(name, getlink=True)
        except TypeError:  # a kind defined by another program
            link = None
        if isinstance(link, h5py.SoftLink):
            return link
        if (reason := _refused_link(link)) is not None:
            return reason
        object_id = h5py.h5o.open(group.id, group._e(name))
        if isinstance(object_id, h5py.h5g.GroupID):
            address = int(h5py.h5o.get_info(object_id).addr)
            pending.append((address, h5py.Group(object_id)))
            return address
        if not isinstance(object_id, h5py.h5d.DatasetID):
            return None
        if (reason := _refused_storage(object_id)) is not None:
            return reason
        dataset = h5py.Dataset(object_id)
        return None if dataset.shape is None else dataset  # an empty dataspace has no values

    def datasets(self, path: str, max_names: int) -> Iterator[tuple[str, h5py.Dataset | str]]:
        """Yield the datasets under all their names, those of a group before its subgroups.

        DecodeError if groups that are met again have more names than `max_names`.
        """
        inside: list[int] = []  # the group and those around it
        met_groups: set[int] = set()
        links = 0
        pending = [(0, self._root, "")]
        while pending:
            depth, address, prefix = pending.pop()
            del inside[depth:]
            if address in inside:  # a circle
                continue
            inside.append(address)
            links += (1 + len(self._groups[address])) * (address in met_groups)
            if links > max_names:
                reason = f"links to groups give the datasets more than {max_names:,} further names"
                raise DecodeError(
                    reason,
                    path=path,
                    expected=max_names,
                    hint="raise tfr.dataset(…, limits=tfr.Limits(features=…)) if intended",
                    hint_cli="if intended, convert it in Python with larger limits=tfr.Limits(features=…)",
                )
            met_groups.add(address)
            groups = []
            for name, target in self._groups[address].items():
                full = f"{prefix}{name}"
                try:
                    followed = self._follow(address, target)
                except KeyError:
                    self.nowhere.append(full)
                    continue
                if isinstance(followed, int):
                    groups.append((depth + 1, followed, f"{full}/"))
                elif followed is not None:
                    yield full, followed
            pending.extend(reversed(groups))

    def _follow(self, group: int, target: _Target | h5py.SoftLink) -> _Target:
        """Follow a link in a group to its target; KeyError if it leads nowhere."""
        names: list[str] = []  # still to be followed, the next name last
        for _ in range(_SOFT_LINKS + 1):
            while isinstance(target, int) and names:
                group, target = target, self._groups[target][names.pop()]
            path = getattr(target, "path", None)
            if path is None:
                if names and not isinstance(target, str):  # below a dataset
                    raise KeyError(names[-1])
                return target
            names += [name for name in reversed(path.split("/")) if name not in ("", ".")]
            target = self._root if path.startswith("/") else group
        raise KeyError(path)  # a circle


def attributes_of(item: Any) -> dict[str, Any]:
    """The attributes of a dataset or a group, except the libraries' own and types that h5py cannot read."""
    attributes = {}
    for name in item.attrs:
        if name in RESERVED or name.startswith("_Netcdf4"):
            continue
        try:
            value = item.attrs[name]
        except (OSError, TypeError):
            if name in PACKING:
                raise
            continue
        attributes[name] = plain_attribute(value)
    return attributes


def _refused_link(link: Any) -> str | None:
    """Why a link is not followed, in a clause; None if it may be."""
    import h5py

    if isinstance(link, h5py.ExternalLink):
        return f"a link to the file '{printable(link.filename)}', which is not opened"
    return None if isinstance(link, h5py.HardLink | h5py.SoftLink) else "a link of an unknown kind"


def _refused_storage(dataset: h5py.h5d.DatasetID) -> str | None:
    """Like `_refused_link`, for a dataset with values in other files; checked first, as HDF5 may open the files."""
    import h5py

    plist = dataset.get_create_plist()
    if plist.get_layout() == h5py.h5d.VIRTUAL:
        names = [plist.get_virtual_filename(i) for i in range(plist.get_virtual_count())]
        if other_file := next((name for name in names if name != "."), None):
            return f"a virtual dataset of '{printable(other_file)}': {_OTHER_FILE}"
    elif plist.get_layout() == h5py.h5d.CONTIGUOUS and plist.get_external_count():
        return _OTHER_FILE
    return None


def stored_array(dataset: h5py.Dataset, path: str, file_bytes: int, max_expansion: int) -> StoredArray:
    """A dataset as an array, of whose rows any can be read; EncodeError if no column holds its values."""
    chunks = dataset.chunks
    if (
        chunks is not None
        and int(np.prod([float(n) for n in chunks])) * dataset.dtype.itemsize > LIMITS.MAX_RECORD_BYTES
    ):
        raise DecodeError(f"a chunk of the shape {chunks} is too large", path=path, expected=LIMITS.MAX_RECORD_BYTES)
    dtype, inner = dataset.dtype, ()
    if dataset.shape and dtype.subdtype is not None:  # each value is an array
        dtype, inner = dtype.subdtype
    has_sizes, convert = _conversion(dtype, is_bytes=_BYTES in dataset.attrs)
    array = StoredArray(
        *(path, dtype, dataset.shape + inner, False, None),
        read_rows=partial(_rows, dataset, path, file_bytes) if has_sizes else lambda begin, end: dataset[begin:end],
        read_part=None if has_sizes and dataset.shape else dataset.__getitem__,
        chunks=() if has_sizes or not chunks else chunks,
        stored_bytes=dataset.id.get_storage_size,
        max_expansion=max_expansion,
        convert=convert,
    )
    if dataset.shape:  # before a row is read, as the file says how many bytes it stores
        array.check_record(array.row_bytes)
        array.check_expansion(array.size)
    if has_sizes and dataset.shape:
        first = _rows(dataset, path, file_bytes=file_bytes, begin=0, end=min(_ROWS, array.rows))
        array.sampled_bytes = max((_value_bytes(row) for row in first), default=0) or 1
    return array


def _rows(dataset: h5py.Dataset, path: str, file_bytes: int, begin: int, end: int) -> Array:
    """Rows whose values have no fixed size, a few at a time: in a forged file, all rows could be one large value."""
    rows = np.empty((end - begin, *dataset.shape[1:]), dataset.dtype)
    size, at, step = 0, begin, 1
    while at < end:
        part = dataset[at : min(at + step, end)]
        rows[at - begin : at - begin + len(part)] = part
        at += len(part)
        read = sum(map(_value_bytes, part))
        size += read
        step = min(2 * step, _ROWS) if read < _CHUNK_BYTES else 1
        if size > file_bytes:
            reason = f"values of {size} bytes in a file of {file_bytes}: several rows have the same"
            raise DecodeError(reason, path=path, expected=file_bytes, got=size)
    return rows


def _value_bytes(value: Any) -> int:
    """The bytes of a row of text, bytes and lists, or of a structured value with some."""
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return sum(map(_value_bytes, value.reshape(-1).tolist()))
    if isinstance(value, np.void | tuple):
        return sum(map(_value_bytes, value.item() if isinstance(value, np.void) else value))
    return (
        int(value.nbytes)
        if isinstance(value, np.generic | np.ndarray)
        else len(value)
        if isinstance(value, bytes)
        else 8
    )


def _conversion(dtype: np.dtype[Any], *, is_bytes: bool = False) -> tuple[bool, Callable[[Array], Values]]:
    """Choose how values become columns: True if they have no fixed size, and the function that converts them."""
    import h5py

    if (text := h5py.check_string_dtype(dtype)) is not None:
        if text.length is None or text.encoding == "utf-8":
            return text.length is None, text_column
        return False, lambda values: values
    if (items := h5py.check_vlen_dtype(dtype)) is not None and not np.dtype(items).hasobject:
        if not np.dtype(items).isnative:  # h5py would not swap the bytes
            raise EncodeError(
                f"lists of {np.dtype(items)}, whose byte order h5py does not observe",
                hint=EXCLUDE,
                hint_cli=EXCLUDE_CLI,
            )
        return True, bytes_column if is_bytes else lambda values: lists_column(values, np.dtype(items))
    if dtype.names:
        if not dtype.hasobject:
            return False, lambda values: values
        fields = {name: _conversion(column.dtype) for name, column in structured_columns(np.empty(0, dtype)).items()}
        return True, lambda values: {
            name: fields[name][1](column) for name, column in structured_columns(values).items()
        }
    if dtype.hasobject:
        kind = "references" if h5py.check_ref_dtype(dtype) else f"values of the type {dtype}"
        raise EncodeError(f"{kind} cannot be stored in a TFRecord", hint=EXCLUDE, hint_cli=EXCLUDE_CLI)
    return False, lambda values: values


# ---- writing


def check_dataset_name(name: str, column: str) -> None:
    """Raise EncodeError if a name cannot be that of a dataset."""
    if any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name:
        reason = "its name cannot be that of a dataset"
        raise EncodeError(
            reason, feature=column, hint=f"rename it, or {EXCLUDE}", hint_cli=f"rename it, or {EXCLUDE_CLI}"
        )


def filters(compressed: bool) -> dict[str, Any]:
    """The filters of HDF5, for h5py and h5netcdf."""
    return {"compression": "gzip", "shuffle": True} if compressed else {}


class DatasetWriter:
    """Writes columns as datasets of a file."""

    def __init__(self, file: h5py.File, compressed: bool, attributes: Mapping[str, Mapping[str, Any]]) -> None:
        self._file, self._attributes = file, attributes
        self._filters = filters(compressed)

    def append(self, name: str, values: Array | Ragged, is_bytes: bool) -> None:
        """Add rows to a dataset, which is made for the first ones."""
        rows, dtype, shape = _stored_form(values, is_bytes)
        if name not in self._file:
            # No fixed size of an axis may be less than a chunk's.
            max_shape = (None, *(size or None for size in shape))
            chunks = chunk_of(shape, dtype.itemsize)
            self._create(name, (0, *shape), dtype, column=name, is_bytes=is_bytes, maxshape=max_shape, chunks=chunks)
        dataset = self._file[name]
        begin = len(dataset)
        dataset.resize(begin + len(rows), 0)
        _write_rows(dataset, begin, rows, dtype=dtype, column=name, is_lists=is_bytes or isinstance(values, Ragged))

    def add(self, name: str, values: Array | Ragged, is_bytes: bool, column: str) -> None:
        """Write a dataset at once, with the attributes of a column; of no axis, if the values have none."""
        is_single = isinstance(values, np.ndarray) and not values.ndim
        if isinstance(values, np.ndarray) and is_single:
            values = values.reshape(1)
        rows, dtype, shape = _stored_form(values, is_bytes)
        chunks = None
        if self._filters and not is_single:
            most, *others = chunk_of(shape, dtype.itemsize)
            chunks = (max(1, min(most, len(rows))), *others)
        dataset = self._create(
            name, () if is_single else (len(rows), *shape), dtype, column=column, is_bytes=is_bytes, chunks=chunks
        )
        if is_single:
            dataset[()] = rows[0]
        else:
            _write_rows(dataset, 0, rows, dtype=dtype, column=column, is_lists=is_bytes or isinstance(values, Ragged))

    def _create(
        self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], column: str, is_bytes: bool, **chunks: Any
    ) -> h5py.Dataset:
        """Make a dataset with the attributes of its column."""
        if chunks["chunks"] is not None:
            chunks |= self._filters
        created = self._file.create_dataset(name, shape, dtype, **chunks)
        for key, value in self._attributes[column].items():
            try:
                created.attrs[key] = value
            except (TypeError, ValueError):  # null, lists of several lengths
                created.attrs[key] = json.dumps(value)
        if is_bytes:
            created.attrs[_BYTES] = True
        return created


def _stored_form(values: Array | Ragged, is_bytes: bool) -> tuple[Array, np.dtype[Any], tuple[int, ...]]:
    """The rows as h5py takes them, their dtype in the file, and the shape of a row."""
    import h5py

    if isinstance(values, Ragged):
        return values.objects(0, len(values)), h5py.vlen_dtype(values.values.dtype), ()
    if is_bytes:
        rows = np.empty(len(values), object)
        rows[:] = [np.frombuffer(value, np.uint8) for value in values]
        return rows, h5py.vlen_dtype(np.uint8), ()
    if values.dtype.kind in "TU":
        return values.astype(object), h5py.string_dtype(), values.shape[1:]
    dtype = h5py.opaque_dtype(values.dtype) if values.dtype.kind in "mM" else values.dtype
    return values.astype(dtype), dtype, values.shape[1:]  # a copy, which has the metadata of the dtype


def _write_rows(
    dataset: h5py.Dataset, begin: int, rows: Array, dtype: np.dtype[Any], column: str, *, is_lists: bool
) -> None:
    """Write the last rows of a dataset, from `begin` on."""
    import h5py

    if len(rows) and not is_lists:
        try:
            dataset[begin:] = rows
        except ValueError:
            refuse_nuls(column, rows)
            raise
    elif len(rows):  # h5py takes lists of one length for an array of two axes
        place = dataset.id.get_space()
        place.select_hyperslab((begin,), (len(rows),))
        dataset.id.write(h5py.h5s.create_simple((len(rows),)), place, rows, h5py.h5t.py_create(dtype))


def refuse_nuls(name: str, rows: Array) -> None:
    """Raise EncodeError for the first row of text with a NUL, which ends text in HDF5."""
    for row, cells in enumerate(rows.reshape(len(rows), -1).tolist()):
        if any(isinstance(cell, str) and "\0" in cell for cell in cells):
            advice = f'write it as bytes (schema={{…: "binary"}}), or {EXCLUDE}'
            advice_cli = f"write it as bytes ({Column.declaration(name, 'binary')[1]}), or {EXCLUDE_CLI}"
            raise EncodeError(
                "a text has a NUL, which HDF5 cannot store", feature=name, record=row, hint=advice, hint_cli=advice_cli
            )
