"""NetCDF files: those of version 4 are HDF5 files, those before it are read by SciPy."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Any

import numpy as np

from tfrecord_io.errors import DecodeError
from tfrecord_io.file_formats.array_files.array_stream import ArrayStream
from tfrecord_io.file_formats.array_files.hdf5_files import SINGLE, open_hdf5
from tfrecord_io.file_formats.array_files.labelled_arrays import Label, Project, plain_attribute, stream_of_group
from tfrecord_io.file_formats.array_files.stored_arrays import StoredArray, library_errors, needs_extra
from tfrecord_io.format.format_registry import HDF5, NETCDF
from tfrecord_io.options import DEFAULT_LIMITS, Limits, Options
from tfrecord_io.storage.paths.plain_files import find_files
from tfrecord_io.storage.read.open_stream import open_file

_CLASSIC = (b"CDF\x01", b"CDF\x02")


def open_netcdf(
    path: Any,
    *,
    project: Project,
    limits: Limits = DEFAULT_LIMITS,
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
    source = find_files(path, NETCDF.suffixes, Options.from_keywords(keywords).storage).single(SINGLE)
    options: dict[str, Any] = {"project": project, "record_dim": record_dim, "decode_cf": decode_cf}
    with ExitStack() as opened:
        raw = opened.enter_context(closing(open_file(source)))
        begin = raw.read(len(HDF5.magic[0]))
        if begin.startswith(HDF5.magic):
            return open_hdf5(path, limits=limits, **options, **keywords)
        if not begin.startswith(_CLASSIC):
            advice = "nccopy -k nc4 makes a NetCDF-4 file of it" if begin.startswith(NETCDF.magic) else None
            raise DecodeError("not a NetCDF-4 or classic NetCDF file", path=source.path, got=begin, advice=advice)
        with needs_extra(NETCDF):
            from scipy.io import netcdf_file
        raw.seek(0)
        with library_errors(source.path):
            file = opened.enter_context(netcdf_file(raw, "r", mmap=False, maskandscale=False))
            labels = {"/": Label(None, _attributes(file))}
            labels |= {name: Label(v.dimensions, _attributes(v)) for name, v in file.variables.items()}
        size = raw.seek(0, 2)

        def open(name: str) -> StoredArray:
            data = np.asarray(file.variables[name].data)
            return StoredArray(
                *(f"{source.path}: {name}", data.dtype, data.shape, False, None),
                read_rows=lambda begin, end: data[begin:end],
                read_part=data.__getitem__,
                stored_bytes=lambda: size,
                max_expansion=limits.expansion_bytes,
            )

        dtypes = {name: np.dtype(variable.data.dtype) for name, variable in file.variables.items()}
        return stream_of_group(
            *(dtypes, open, opened, source.path, project, labels), record_dim=record_dim, decode_cf=decode_cf
        )


def _attributes(item: Any) -> dict[str, Any]:
    return {name: plain_attribute(value) for name, value in item._attributes.items()}
