"""Read the datasets of HDF5 files as columns, and write columns as datasets. Links to other files are refused."""

from __future__ import annotations

import gc
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tfrecord_io.apps.file_formats.array_files.array_stream import ArrayStream, Project, Values, columns_by_array
from tfrecord_io.apps.file_formats.array_files.cf_conventions import PACKING, Label, plain_attribute, stream_of_group
from tfrecord_io.apps.file_formats.array_files.open_array import BLOCK_BYTES
from tfrecord_io.apps.file_formats.array_files.stored_arrays import (
    EXCLUDE,
    EXCLUDE_CLI,
    StoredArray,
    bytes_column,
    library_errors,
    lists_column,
    text_column,
)
from tfrecord_io.apps.file_formats.array_files.to_numpy_files import Export, chunk_of
from tfrecord_io.base import DEFAULT_LIMITS, MAX_RECORD_BYTES, Limits, Options, column_list, needs, printable, warn
from tfrecord_io.bytes import FORMATS, Array
from tfrecord_io.columns import Ragged, declaration, structured_columns
from tfrecord_io.errors import DecodeError, EncodeError, SchemaWarning
from tfrecord_io.store import Source, find_files, named_temporary_folder, open_output
from tfrecord_io.typing import FileMode
from tfrecord_io.write import WriteReport

if TYPE_CHECKING:
    import h5py

_HDF5 = FORMATS.hdf5

_BYTES = "tfrecord_io.bytes"  # marks datasets with lists of uint8 as bytes, for which HDF5 has no type
_ROWS = 16  # whose values of no fixed size are read at a time
_CHUNK_BYTES = 1 << 20
_CACHE_BYTES, _CACHE_SLOTS = 1 << 20, 521  # of the chunks of each dataset; HDF5 2 has eight times as much
_SOFT_LINKS = 16  # links in a row that are followed, as HDF5 does
SINGLE = "convert them one by one"
_COPY = f"copy it into the file, or {EXCLUDE}"
_NONE = np.dtype(object)  # instead of a dtype that is not known
_OTHER_FILE = "its values are in another file, which is not opened"


def open_hdf5(
    path: Any,
    *,
    project: Project,
    limits: Limits = DEFAULT_LIMITS,
    record_dim: str | None = None,
    decode_cf: bool = True,
    **keywords: Any,
) -> ArrayStream:
    """The datasets of a file, with a row for each index of their first axis; those of groups are ``group/name``.

    A dataset has all names that hard and soft links give it and its groups, but those that lead in a circle. A
    SchemaWarning lists links that lead nowhere. If all have names of dimensions, as in NetCDF files, the rows are those
    of one of these.

    Raises
    ------
    DecodeError
        The file is damaged, or a dataset is in another file, or has more further names than `limits` has features.
    EncodeError
        Datasets that are needed differ in length, or have values that no column holds.
    """
    source = find_files(path, _HDF5.suffixes, Options.from_keywords(keywords).storage).single(SINGLE)
    with ExitStack() as opened:
        raw = opened.enter_context(closing(source.open_file()))
        return stream_of_file(
            raw, source, opened=opened, limits=limits, project=project, record_dim=record_dim, decode_cf=decode_cf
        )


def stream_of_file(
    raw: Any, source: Source, opened: ExitStack, limits: Limits, project: Project, **labelled: Any
) -> ArrayStream:
    """`open_hdf5` of an open file; `labelled` are its keywords of `stream_of_group`."""
    with needs(_HDF5.extra, _HDF5.title):
        import h5py
    with library_errors(source.path):
        # h5py holds a lock while it reads, and destroying its objects takes that lock. Were those of earlier files
        # collected by the thread that answers a read from a bucket, both threads would wait for ever.
        if not source.local:
            gc.collect()
        file = opened.enter_context(h5py.File(raw, "r", rdcc_nbytes=_CACHE_BYTES, rdcc_nslots=_CACHE_SLOTS))
        links = _Links(file)
        datasets = dict(links.datasets(source.path, limits.features))
        labels = _labels(file, datasets)
        dtypes = {name: _NONE if isinstance(item, str) else item.dtype for name, item in datasets.items()}
    size = raw.seek(0, 2)

    def open(name: str) -> StoredArray:
        path, dataset = f"{source.path}: {name}", datasets[name]
        if isinstance(dataset, str):
            raise DecodeError(dataset, path=path, hint=_COPY)
        with library_errors(path):
            return _array(dataset, path, size, limits.expansion_bytes)

    if links.nowhere:
        is_needed = project([*chain.from_iterable(columns_by_array(dtypes).values()), *links.nowhere])
        if left_out := column_list([name for name in links.nowhere if is_needed(name)]):
            warn(f"{source.path}: left out {left_out}: soft links of these names lead nowhere", SchemaWarning)
    return stream_of_group(dtypes, open, files=opened, path=source.path, project=project, labels=labels, **labelled)


_Target: TypeAlias = "h5py.Dataset | int | str | None"
"""Target of a link: a dataset, the address of a group, or why it is refused; None: an object without values."""


class _Links:
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


# NetCDF-4's prefix of a variable named like a dimension without being its coordinate.
_NO_COORDINATE = "_nc4_non_coord_"
_NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable"
RESERVED = {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_NCProperties", "_nc3_strict", _BYTES}


def _labels(file: h5py.File, found: dict[str, h5py.Dataset | str]) -> dict[str, Label]:
    """The labels of datasets and groups; what NetCDF has for a dimension without a variable is removed."""
    labels = {"/": Label(None, _attributes(file))}
    scales: dict[int, str] = {}
    for name, dataset in list(found.items()):
        labels[name] = Label() if isinstance(dataset, str) else Label(None, _attributes(dataset))
        for group in (name[: at + 1] for at, letter in enumerate(name) if letter == "/"):
            if group not in labels:
                labels[group] = Label(None, _attributes(file[group]))
        if isinstance(dataset, str):
            continue
        if _is_scale(dataset):
            if "_Netcdf4Dimid" in dataset.attrs:
                scales[int(dataset.attrs["_Netcdf4Dimid"])] = name
            if str(plain_attribute(dataset.attrs.get("NAME"))).startswith(_NO_VARIABLE):
                del found[name]
    for name, dataset in list(found.items()):
        if not isinstance(dataset, str):
            labels[name].dims = _dimensions(name, dataset, scales)
        group, slash, local_name = name.rpartition("/")
        dimension_name = group + slash + local_name.removeprefix(_NO_COORDINATE)
        key = dimension_name if scales and dimension_name not in found else name  # NetCDF numbers its dimensions
        found[key], labels[key] = found.pop(name), labels[name]
    return labels


def _dimensions(name: str, dataset: h5py.Dataset, scales: dict[int, str]) -> tuple[str, ...] | None:
    """The paths of the datasets that are the scales of all axes; None if an axis has none."""
    if not dataset.shape:
        return ()
    if "DIMENSION_LIST" in dataset.attrs:
        axes = _scales(dataset)
    elif "_Netcdf4Coordinates" in dataset.attrs:
        axes = [scales.get(int(number)) for number in np.atleast_1d(dataset.attrs["_Netcdf4Coordinates"])]
    else:
        axes = [name] if _is_scale(dataset) and dataset.ndim == 1 else []
    names = tuple(axis for axis in axes if axis is not None)
    return names if len(names) == dataset.ndim and len({*names}) == len(names) else None


def _is_scale(dataset: h5py.Dataset) -> bool:
    return bool(np.all(plain_attribute(dataset.attrs.get("CLASS")) == "DIMENSION_SCALE"))


def _scales(dataset: h5py.Dataset) -> list[str | None]:
    """The path of the first scale of each axis; for other values than references, h5py.dims ends the process."""
    import h5py

    attribute = dataset.attrs.get_id("DIMENSION_LIST")
    items = h5py.check_vlen_dtype(attribute.dtype)
    if attribute.shape != (dataset.ndim,) or items is None or h5py.check_ref_dtype(items) is not h5py.Reference:
        return []
    lists = [list(references) for references in dataset.attrs["DIMENSION_LIST"]]
    targets = [h5py.h5r.dereference(scales[0], dataset.id) if scales and scales[0] else None for scales in lists]
    paths = [b"" if target is None else h5py.h5i.get_name(target) for target in targets]
    return [path.decode("utf-8", "replace").lstrip("/") or None for path in paths]


def _attributes(item: Any) -> dict[str, Any]:
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


def _array(dataset: h5py.Dataset, path: str, file_bytes: int, max_expansion: int) -> StoredArray:
    chunks = dataset.chunks
    if chunks is not None and int(np.prod([float(n) for n in chunks])) * dataset.dtype.itemsize > MAX_RECORD_BYTES:
        raise DecodeError(f"a chunk of the shape {chunks} is too large", path=path, expected=MAX_RECORD_BYTES)
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


def to_hdf5(
    source: Any, target: Any, *, compressed: bool = False, mode: FileMode | None = None, **keywords: Any
) -> WriteReport:
    """Write the columns of TFRecord files as datasets, whose first axis is that of the records; ``a/b`` is in a group.

    Text has no fixed length; bytes are lists of uint8, with an attribute that says so. Lists of one length are arrays
    if the schema says so, and lists otherwise.
    """
    with needs(_HDF5.extra, _HDF5.title):
        import h5py
    export = Export(source, keywords)
    for name in export.names:
        if any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name:
            reason = "its name cannot be that of a dataset"
            raise EncodeError(
                reason, feature=name, hint=f"rename it, or {EXCLUDE}", hint_cli=f"rename it, or {EXCLUDE_CLI}"
            )

    def write(temporary: TemporaryFile) -> int:
        with h5py.File(temporary, "w", track_order=True) as file:
            return export.write(temporary.raising_failed_writes(_Writer(file, compressed, export.attributes).append))

    return write_file(target, export, mode, write)


def write_file(
    target: Any, export: Export, mode: FileMode | None, write: Callable[[TemporaryFile], int]
) -> WriteReport:
    """Write a temporary file, which h5py can read back, and copy it to the target; `write` returns the rows."""
    with open_output(target, export.storage, mode=mode) as output, tempfile.TemporaryFile(buffering=0) as file:
        with named_temporary_folder():
            temporary = TemporaryFile(file)
            rows = temporary.raising_failed_writes(write)(temporary)
        file.seek(0)
        shutil.copyfileobj(file, output.as_stream(), BLOCK_BYTES)
        return WriteReport(
            os.fspath(target), rows, bytes=output.offset, compression=None, columns=export.names, rounded={}
        )


class TemporaryFile(io.RawIOBase):
    """A temporary file that hides failed writes from HDF5, as an error during its close crashes the process.

    What cannot be written is kept in memory until HDF5 has closed the file; `raising_failed_writes` raises the error.
    """

    def __init__(self, file: Any) -> None:
        self._file, self._offset = file, 0
        self._kept: list[tuple[int, bytes]] = []  # offsets and contents
        self._error: OSError | None = None

    def raising_failed_writes(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A function that raises the error of the first failed write after its call."""

        def call_and_check(*arguments: Any) -> Any:
            result = call(*arguments)
            if self._error is not None:
                raise self._error
            return result

        return call_and_check

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        if whence == os.SEEK_END:
            offset += max(self._file.seek(0, os.SEEK_END), *(begin + len(data) for begin, data in self._kept), 0)
        self._offset = offset
        return offset

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        view[:] = bytes(len(view))
        self._file.seek(self._offset)
        count = self._file.readinto(view)
        for begin, data in self._kept:
            first, last = max(begin, self._offset), min(begin + len(data), self._offset + len(view))
            if first < last:
                view[first - self._offset : last - self._offset] = data[first - begin : last - begin]
                count = max(count, last - self._offset)
        self._offset += count
        return int(count)

    def write(self, data: Any, /) -> int:
        view = memoryview(data).cast("B")
        written = 0
        if self._error is None:
            try:
                self._file.seek(self._offset)
                while written < len(view):
                    written += self._file.write(view[written:])
            except OSError as error:
                self._error = error
        if self._error is not None:
            self._kept.append((self._offset, bytes(view)))
        self._offset += len(view)
        return len(view)

    def truncate(self, size: int | None = None, /) -> int:
        try:
            return int(self._file.truncate(size))
        except OSError as error:
            self._error = self._error or error
            return size or 0


def filters(compressed: bool) -> dict[str, Any]:
    """The filters of HDF5, for h5py and h5netcdf."""
    return {"compression": "gzip", "shuffle": True} if compressed else {}


class _Writer:
    def __init__(self, file: h5py.File, compressed: bool, attributes: Mapping[str, Mapping[str, Any]]) -> None:
        self._file, self._attributes = file, attributes
        self._filters = filters(compressed)

    def append(self, name: str, values: Array | Ragged, is_bytes: bool) -> None:
        """Add rows to a dataset, which is made for the first ones."""
        import h5py

        dtype = values.values.dtype if isinstance(values, Ragged) else values.dtype
        shape: tuple[int, ...] = ()
        if isinstance(values, Ragged):
            rows, dtype = values.objects(0, len(values)), h5py.vlen_dtype(dtype)
        elif is_bytes:
            rows, dtype = np.empty(len(values), object), h5py.vlen_dtype(np.uint8)
            rows[:] = [np.frombuffer(value, np.uint8) for value in values]
        elif dtype.kind in "TU":
            rows, dtype, shape = values.astype(object), h5py.string_dtype(), values.shape[1:]
        else:
            dtype, shape = h5py.opaque_dtype(dtype) if dtype.kind in "mM" else dtype, values.shape[1:]
            rows = values.astype(dtype)  # a copy, which has the metadata of the dtype
        if name not in self._file:
            chunk = chunk_of(shape, dtype.itemsize)
            # No fixed size of an axis may be less than a chunk's.
            max_shape = (None, *(size or None for size in shape))
            created = self._file.create_dataset(
                name, (0, *shape), dtype, maxshape=max_shape, chunks=chunk, **self._filters
            )
            for key, value in self._attributes[name].items():
                try:
                    created.attrs[key] = value
                except (TypeError, ValueError):  # null, lists of several lengths
                    created.attrs[key] = json.dumps(value)
            if is_bytes:
                created.attrs[_BYTES] = True
        dataset = self._file[name]
        begin = len(dataset)
        dataset.resize(begin + len(rows), 0)
        if len(rows) and not (is_bytes or isinstance(values, Ragged)):
            try:
                dataset[begin:] = rows
            except ValueError:
                refuse_nuls(name, rows)
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
            advice_cli = f"write it as bytes ({declaration(name, 'binary')[1]}), or {EXCLUDE_CLI}"
            raise EncodeError(
                "a text has a NUL, which HDF5 cannot store", feature=name, record=row, hint=advice, hint_cli=advice_cli
            )
