"""NetCDF files: version 4, which is written, is HDF5; classic files are read by SciPy, CDF-5 by netCDF4."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, closing
from typing import Any, BinaryIO

import numpy as np

from tfrecord_io.apps.file_formats.array_files.array_stream import ArrayStream, Project
from tfrecord_io.apps.file_formats.array_files.cf_conventions import FILLS, Label, plain_attribute, stream_of_group
from tfrecord_io.apps.file_formats.array_files.hdf5_datasets import RESERVED, filters, refuse_nuls
from tfrecord_io.apps.file_formats.array_files.hdf5_files import TemporaryFile, stream_of_file, write_file
from tfrecord_io.apps.file_formats.array_files.open_array import BLOCK_BYTES
from tfrecord_io.apps.file_formats.array_files.stored_arrays import EXCLUDE, EXCLUDE_CLI, StoredArray, library_errors
from tfrecord_io.apps.file_formats.array_files.to_numpy_files import Export, chunk_of, require_one_shape
from tfrecord_io.base import Limits
from tfrecord_io.columns import Column, Ragged
from tfrecord_io.errors import DecodeError, EncodeError
from tfrecord_io.kit import FORMATS, Array, Options, needs, printable
from tfrecord_io.store import PathMatch, named_temporary_folder
from tfrecord_io.typing import FileMode, WriteReport

_NETCDF, _HDF5 = FORMATS.netcdf, FORMATS.hdf5

_CDF5 = b"CDF\x05"
_STORED = {*("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")}
_UNITS = {"D": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_UNITS |= {"ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_NAME = re.compile(r"[A-Za-z0-9_\x80-\U0010ffff]([^/\x00-\x1f\x7f]*[^/\x00-\x20\x7f])?")
_RENAME = f"rename it, or {EXCLUDE}"


def open_netcdf(
    path: Any,
    *,
    project: Project,
    limits: Limits = Limits.DEFAULT,
    record_dim: str | None = None,
    decode_cf: bool = True,
    **keywords: Any,
) -> ArrayStream:
    """The variables of a file, with a row for each position of one dimension.

    Raises
    ------
    DecodeError
        The file is damaged, or of a version that no library here reads.
    EncodeError
        A variable has not the dimension of the rows, or has values that no column holds.
    """
    source = PathMatch.find(path, _NETCDF.suffixes, Options.from_keywords(keywords).storage).single(
        "convert them one by one"
    )
    labelled: dict[str, Any] = {"record_dim": record_dim, "decode_cf": decode_cf}
    with ExitStack() as opened:
        raw = opened.enter_context(closing(source.open_file()))
        begin = raw.read(len(_HDF5.magic[0]))
        raw.seek(0)
        if begin.startswith(_HDF5.magic):
            return stream_of_file(raw, source, opened=opened, limits=limits, project=project, **labelled)
        if not begin.startswith(_NETCDF.magic):
            raise DecodeError("not a NetCDF-4 or classic NetCDF file", path=source.path, got=begin)
        open_by = _read_with_netcdf4 if begin.startswith(_CDF5) else _read_with_scipy
        with library_errors(source.path):
            attributes, variables = open_by(raw, opened, source.path)
        size = raw.seek(0, 2)
        labels = {"/": Label(None, attributes)} | {name: label for name, (label, _) in variables.items()}

        def open(name: str) -> StoredArray:
            values = variables[name][1]
            return StoredArray(
                *(f"{source.path}: {name}", values.dtype, values.shape, False, None),
                read_rows=lambda begin, end: np.asarray(values[begin:end]),
                read_part=lambda key: np.asarray(values[key]),
                stored_bytes=lambda: size,
                max_expansion=limits.expansion_bytes,
            )

        dtypes = {name: np.dtype(values.dtype) for name, (_, values) in variables.items()}
        return stream_of_group(dtypes, open, files=opened, path=source.path, project=project, labels=labels, **labelled)


_Variables = dict[str, tuple[Label, Any]]  # with what is indexed for values


def _read_with_scipy(raw: BinaryIO, opened: ExitStack, path: str) -> tuple[dict[str, Any], _Variables]:
    with needs(_NETCDF.extra, _NETCDF.title):
        from scipy.io import netcdf_file
    file = opened.enter_context(netcdf_file(raw, "r", mmap=False, maskandscale=False))
    variables = {
        name: (Label(variable.dimensions, _plain(variable._attributes)), np.asarray(variable.data))
        for name, variable in file.variables.items()
    }
    return _plain(file._attributes), variables


def _read_with_netcdf4(raw: BinaryIO, opened: ExitStack, path: str) -> tuple[dict[str, Any], _Variables]:
    """Read a copy with netCDF4, as the library opens local files by name only."""
    instead = "`nccopy -k nc4` makes a NetCDF-4 file of it"
    with needs("", "a file of CDF-5 (64-bit data)", requirement="netCDF4", hint=instead, path=path):
        import netCDF4
    copy = opened.enter_context(tempfile.NamedTemporaryFile())  # noqa: SIM115, as `opened` closes it
    with named_temporary_folder():
        shutil.copyfileobj(raw, copy, BLOCK_BYTES)
        copy.flush()
    try:
        file = opened.enter_context(netCDF4.Dataset(copy.name))
    except OSError as error:  # the message names the copy
        raise DecodeError(f"damaged: {error.strerror}", path=path) from error
    file.set_auto_maskandscale(False)
    file.set_auto_chartostring(False)
    variables = {
        name: (Label(variable.dimensions, _plain(vars(variable))), variable)
        for name, variable in file.variables.items()
    }
    return _plain(vars(file)), variables


def _plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: plain_attribute(value) for name, value in attributes.items()}


# ---- writing


def to_netcdf(
    source: Any, target: Any, *, compressed: bool = False, mode: FileMode | None = None, **keywords: Any
) -> WriteReport:
    """Write the columns of TFRecord files as variables of NetCDF-4 over ``record``; ``a/b`` is in a group.

    Times, durations and bools are stored as xarray does. What NetCDF does not have is an error: bytes, complex and
    float16 numbers, lists of several lengths, missing values.
    """
    with needs(_NETCDF.extra, _NETCDF.title):
        import h5netcdf
    export = Export(source, keywords)
    for name in export.names:
        for part in name.split("/"):
            _check_name(part, name)

    def write(temporary: TemporaryFile) -> int:
        with h5netcdf.File(temporary, "w") as file:
            file.dimensions = {Column.ROW_DIMENSION: None}
            return export.write(temporary.raising_failed_writes(_Writer(file, compressed, export).append))

    return write_file(target, export, mode, write)


class _Writer:
    def __init__(self, file: Any, compressed: bool, export: Export) -> None:
        self._file, self._export = file, export
        self._filters = filters(compressed)
        self._rows: dict[str, int] = {}
        self._size = 0  # of the dimension of the rows, which the library looks for in all variables

    def append(self, name: str, values: Array | Ragged, is_bytes: bool) -> None:
        """Add rows to a variable, which is made for the first ones."""
        values, encoding = _encode_values(require_one_shape(values, name, _NETCDF.title), name, is_bytes)
        if name not in self._rows:
            self._create(name, values, encoding)
        begin = self._rows.get(name, 0)
        self._rows[name] = end = begin + len(values)
        if self._size < end:
            self._file.resize_dimension(Column.ROW_DIMENSION, end)
            self._size = end
        if values.size:
            try:
                self._file[name][begin:end] = values
            except ValueError:
                refuse_nuls(name, values)
                raise

    def _create(self, name: str, values: Array, encoding: Mapping[str, Any]) -> None:
        import h5py

        shape, attributes = values.shape[1:], self._export.attributes[name]
        dimensions = self._export.dimensions(name, shape)
        for dim, size in zip(dimensions[1:], shape, strict=True):
            _check_name(dim, name)
            if dim in self._file.variables and dim not in self._file.dimensions:
                reason = f"its dimension '{printable(dim)}' has the name of a column before it"
                raise EncodeError(reason, feature=name, hint=_RENAME)
            if dim not in self._file.dimensions:
                self._file.dimensions[dim] = size
        dtype = h5py.string_dtype() if values.dtype.kind == "O" else values.dtype
        variable = self._file.create_variable(
            *(name, dimensions, dtype), chunks=chunk_of(shape, dtype.itemsize), **self._filters
        )
        for key, value in attributes.items():
            _check_name(key, name)
            if key in encoding:
                reason = f"its attribute '{printable(key)}' is one by which NetCDF stores times, durations and bools"
                raise EncodeError(reason, feature=name, hint=EXCLUDE, hint_cli=EXCLUDE_CLI)
            variable.attrs[key] = _attribute(name, key, value, values.dtype)
        for key, value in encoding.items():
            variable.attrs[key] = value


def _encode_values(values: Array, name: str, is_bytes: bool) -> tuple[Array, dict[str, Any]]:
    """Convert values to a type of NetCDF, with the attributes by which xarray decodes them."""
    kind = values.dtype.kind
    unit = _UNITS.get(np.datetime_data(values.dtype)[0]) if kind in "mM" else None
    if is_bytes or (values.dtype.str[1:] not in _STORED and kind not in "bTU" and unit is None):
        reason = f"NetCDF has no type for {'bytes' if is_bytes else values.dtype}"
        raise EncodeError(
            reason,
            feature=name,
            hint=f"convert to HDF5 or Zarr, or {EXCLUDE}",
            hint_cli=f"convert to HDF5 or Zarr, or {EXCLUDE_CLI}",
        )
    if kind == "b":
        return values.astype("i1"), {"dtype": "bool"}
    if kind in "TU":
        return values.astype(object), {}
    if unit is None:
        return values, {}
    attributes = {"units": unit, "dtype": str(values.dtype)}
    if kind == "M":
        attributes = {"units": f"{unit} since 1970-01-01", "calendar": "proleptic_gregorian"}
    return values.view("i8"), {**attributes, "_FillValue": np.int64(np.iinfo("i8").min)}  # NaT


def _attribute(name: str, key: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """An attribute as NetCDF has it: text, numbers, or a list of either."""
    items = value if isinstance(value, list) else [value]
    if items and all(isinstance(item, str) and "\0" not in item for item in items):
        return value
    if any(type(item) not in (int, float) for item in items) or (array := np.array(value)).dtype.str[1:] not in _STORED:
        reason = f"its attribute '{printable(key)}' is neither text nor a number nor a list of these, which NetCDF has"
        raise EncodeError(reason, feature=name, got=value, hint=EXCLUDE, hint_cli=EXCLUDE_CLI)
    return array.astype(dtype) if key in FILLS and dtype.kind in "iuf" else array


def _check_name(name: str, column: str) -> None:
    """Raise EncodeError for a name that NetCDF does not permit, of a variable, a dimension or an attribute.

    https://docs.unidata.ucar.edu/netcdf-c/current/file_format_specifications.html: "name" of the classic format.
    """
    if not _NAME.fullmatch(name) or name in RESERVED or len(name.encode()) > 256:
        reason = f"NetCDF does not permit the name '{printable(name)}'"
        raise EncodeError(reason, feature=column, hint=_RENAME)
