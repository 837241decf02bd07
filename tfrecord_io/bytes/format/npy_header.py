"""The header of an .npy file: dtype, order and shape of the values after it.

The header (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, versions 1 to 3) is the text of a
dict, parsed as a literal and never evaluated. Arrays of objects, which are pickles, are refused.

Tests: tests/apps/file_formats/array_files/test_open_array.py.
"""

from __future__ import annotations

import ast
import io
import struct
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tfrecord_io.errors import DecodeError

MAGIC = b"\x93NUMPY"
_ZIP = b"PK\x03\x04"
_LENGTHS = {(1, 0): "<H", (2, 0): "<I", (3, 0): "<I"}  # version -> format of the header's length
_MAX_HEADER = 1 << 20


class NpyHeader(NamedTuple):
    """The facts about the values in the header."""

    dtype: np.dtype[Any]
    fortran_order: bool
    shape: tuple[int, ...]

    @staticmethod
    def read(file: Any) -> NpyHeader:
        """Read the header; `file` is then positioned at the first value.

        DecodeError if it is not a ``.npy`` file, its header is damaged or too long, or it holds objects.
        """
        magic = _read_exactly(file, len(MAGIC) + 2)
        if magic.startswith(_ZIP):
            advice = "rename it to .npz"
            raise DecodeError(
                "an archive as np.savez writes it, not a .npy file", expected=".npy", got=".npz", hint=advice
            )
        if not magic.startswith(MAGIC):
            reason = "not a .npy file: it does not begin with \\x93NUMPY"
            raise DecodeError(reason, offset=0, expected=".npy", got="something else")
        version = (magic[6], magic[7])
        if version not in _LENGTHS:
            reason = f"a .npy file of version {version[0]}.{version[1]}"
            raise DecodeError(reason, expected="1.0, 2.0 or 3.0", got=version)
        length_format = _LENGTHS[version]
        (length,) = struct.unpack(length_format, _read_exactly(file, struct.calcsize(length_format)))
        if length > _MAX_HEADER:
            reason = f"a header of {length} bytes; at most {_MAX_HEADER} are read"
            raise DecodeError(reason, expected=_MAX_HEADER, got=length)
        return _parse(_read_exactly(file, length).decode("utf-8" if version >= (3, 0) else "latin-1", "replace"))

    @staticmethod
    def to_bytes(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
        """The header of an array in C order.

        >>> NpyHeader.to_bytes(np.dtype("<f4"), (2, 3))[:6]
        b'\\x93NUMPY'
        """
        content = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        output = io.BytesIO()
        try:
            np.lib.format.write_array_header_1_0(output, content)
        except UnicodeEncodeError:  # of names of fields, which are UTF-8 from version 3 on
            text = f"{content!r}\n".encode()
            text = text.rjust(-(-(len(MAGIC) + 6 + len(text)) // 64) * 64 - len(MAGIC) - 6)
            return MAGIC + b"\3\0" + struct.pack("<I", len(text)) + text
        except ValueError:  # 64 KiB or more, for very many fields
            output = io.BytesIO()
            np.lib.format.write_array_header_2_0(output, content)
        return output.getvalue()


def _read_exactly(file: Any, count: int) -> bytes:
    data = b""
    while len(data) < count and (more := file.read(count - len(data))):
        data += more
    if len(data) < count:
        reason = "the .npy file ends inside its header"
        raise DecodeError(reason, offset=len(data), expected=count, got=len(data))
    return data


@lru_cache(maxsize=64)
def _parse(text: str) -> NpyHeader:
    expected = "descr, fortran_order and shape"
    damaged = DecodeError(f"the .npy header is damaged: expected {expected}", expected=expected, got=text[:100])
    try:
        header = ast.literal_eval(text.strip())
        descr, fortran_order, shape = header["descr"], header["fortran_order"], header["shape"]
        dtype = np.lib.format.descr_to_dtype(descr)
        is_valid = len(header) == 3 and isinstance(fortran_order, bool) and isinstance(shape, tuple)
        is_valid = is_valid and all(type(size) is int and size >= 0 for size in shape)
    except (ValueError, TypeError, KeyError, SyntaxError, RecursionError, MemoryError, AttributeError) as error:
        raise damaged from error
    if not is_valid:
        raise damaged
    if not dtype.hasobject and dtype.itemsize:
        return NpyHeader(dtype, fortran_order, shape)
    reason, advice = f"the .npy file holds values of no bytes, {dtype}", None
    if dtype.hasobject:
        reason = "the .npy file holds objects, which are pickles and are never read"
        advice = "save the array with another dtype: np.save(file, array.astype('float32'))"
        if shape == ():
            reason = "the .npy file holds one object, such as a dict, as a pickle, which is never read"
            advice = "save a dict of arrays with np.savez(file, **arrays)"
    raise DecodeError(reason, expected="numbers, text or dates", got=str(dtype), hint=advice)
