"""NumPy's ``.npy``: a header with dtype, order and shape, and the values.

Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, versions 1 to 3. The header is the text of a
dict, which is parsed as a literal and never evaluated; arrays of objects, which are pickles, are refused.
"""

from __future__ import annotations

import ast
import io
import struct
from typing import Any

import numpy as np

from tfrecord_io.errors import DecodeError, printable
from tfrecord_io.file_formats.array_file import ArrayFile

MAGIC = b"\x93NUMPY"
_LENGTHS = {(1, 0): "<H", (2, 0): "<I", (3, 0): "<I"}  # version -> how the header's length is stored
_LONGEST_HEADER = 1 << 20


def open_npy(file: Any, path: str, *, seekable: bool = False) -> ArrayFile:
    """Read the header; the file stands at the first value then.

    Raises
    ------
    DecodeError
        It is no ``.npy``, its header is damaged or too long, or it holds objects.
    """
    magic = _exactly(file, len(MAGIC) + 2, path)
    if not magic.startswith(MAGIC):
        raise DecodeError(
            "not a .npy file: it does not begin with \\x93NUMPY",
            path=path,
            offset=0,
            expected=".npy",
            got="something else",
        )
    version = (magic[6], magic[7])
    if version not in _LENGTHS:
        raise DecodeError(
            f"a .npy file of version {version[0]}.{version[1]}", path=path, expected="1.0, 2.0 or 3.0", got=version
        )
    length_format = _LENGTHS[version]
    (length,) = struct.unpack(length_format, _exactly(file, struct.calcsize(length_format), path))
    if length > _LONGEST_HEADER:
        reason = f"a header of {length} bytes; at most {_LONGEST_HEADER} are read"
        raise DecodeError(reason, path=path, expected=_LONGEST_HEADER, got=length)
    text = _exactly(file, length, path).decode("utf-8" if version >= (3, 0) else "latin-1", "replace")
    dtype, fortran_order, shape = _parse(text, path)
    return ArrayFile(path, dtype, shape, fortran_order, file, seekable)


def _exactly(file: Any, count: int, path: str) -> bytes:
    found = b""
    while len(found) < count and (more := file.read(count - len(found))):
        found += more
    if len(found) < count:
        raise DecodeError(
            "the .npy file ends inside its header", path=path, offset=len(found), expected=count, got=len(found)
        )
    return found


def _parse(text: str, path: str) -> tuple[np.dtype[Any], bool, tuple[int, ...]]:
    try:
        header = ast.literal_eval(text.strip())
        descr, fortran_order, shape = header["descr"], header["fortran_order"], header["shape"]
        dtype = np.lib.format.descr_to_dtype(descr)
        sound = len(header) == 3 and isinstance(fortran_order, bool) and isinstance(shape, tuple)
        sound = sound and all(type(size) is int and size >= 0 for size in shape)
    except (ValueError, TypeError, KeyError, SyntaxError, RecursionError, MemoryError, AttributeError) as error:
        raise DecodeError(f"the .npy header is damaged: {printable(text, 100)}", path=path) from error
    if not sound:
        raise DecodeError(
            f"the .npy header is damaged: {printable(text, 100)}", path=path, expected="descr, fortran_order and shape"
        )
    if dtype.hasobject:
        raise DecodeError(
            "the .npy file holds objects, which are pickles and are never read",
            path=path,
            expected="numbers, text or dates",
            got=str(dtype),
            advice="save the array with a dtype of its own, np.save(file, array.astype('float32'))",
        )
    if not dtype.itemsize:
        raise DecodeError(
            f"the .npy file holds values of no bytes, {dtype}",
            path=path,
            expected="numbers, text or dates",
            got=str(dtype),
        )
    return dtype, fortran_order, shape


def header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The header of an array in C order.

    Examples
    --------
    >>> header(np.dtype("<f4"), (2, 3))[:6]
    b'\\x93NUMPY'
    """
    described = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    front = io.BytesIO()
    try:
        np.lib.format.write_array_header_1_0(front, described)
    except ValueError:  # of 64 KiB or more, for very many fields
        front = io.BytesIO()
        np.lib.format.write_array_header_2_0(front, described)
    return front.getvalue()
