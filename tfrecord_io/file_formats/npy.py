"""NumPy's ``.npy`` files."""

from __future__ import annotations

from typing import Any

from tfrecord_io.errors import DecodeError
from tfrecord_io.file_formats.array_file import ArrayFile
from tfrecord_io.format.npy_header import read_header


def open_npy(file: Any, path: str, *, seekable: bool = False) -> ArrayFile:
    """Read the header; `file` is then positioned at the first value.

    Raises
    ------
    DecodeError
        Not a ``.npy`` file, its header is damaged or too long, or it holds objects.
    """
    try:
        dtype, fortran_order, shape = read_header(file)
    except DecodeError as error:
        error.path = path
        raise
    return ArrayFile(path, dtype, shape, fortran_order, file, seekable)
