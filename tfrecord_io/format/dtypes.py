"""The closed table of NumPy dtypes of tensors, with the Arrow type that holds the values of each, and .npy headers.

Arrow has no complex, no bfloat16 and no fixed-width text: another type holds such values, and the field's metadata
(`DTYPE_KEY`) has the name of the dtype. A name that is not in the table is refused, never evaluated.

The header of an .npy file (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, versions 1 to 3) is
the text of a dict, parsed as a literal and never evaluated. Arrays of objects, which are pickles, are refused.
"""

from __future__ import annotations

import ast
import io
import re
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.errors import DecodeError, SchemaError, needs, printable

Array = np.ndarray[Any, np.dtype[Any]]

DTYPE_KEY = b"tfrecord_io.dtype"  # metadata of a field: the dtype's name, where the Arrow type does not determine it

_PLAIN = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
_COMPLEX = {"complex64": pa.float32(), "complex128": pa.float64()}
_TEXT = re.compile(r"([SU])([1-9][0-9]{0,8})")
_TIME = re.compile(r"(datetime64|timedelta64)\[(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]")
_ARROW_UNITS = ("s", "ms", "us", "ns")
_UCS4 = 4  # bytes of a character of NumPy's text
SUPPORTED_DTYPES = (
    "bool, int8 to int64, uint8 to uint64, float16, float32, float64, bfloat16, complex64, complex128, S<n>, U<n>, "
    "datetime64[<unit>] or timedelta64[<unit>]"
)
_MAX_BYTES = 2**31 - 1  # of one value, as of one record
MAGIC = b"\x93NUMPY"
_ZIP = b"PK\x03\x04"
_LENGTHS = {(1, 0): "<H", (2, 0): "<I", (3, 0): "<I"}  # version -> format of the header's length
_MAX_HEADER = 1 << 20
MAX_AXES = 64  # of an array


def text_dtype(*, missing: bool) -> np.dtype[Any]:
    """Make a StringDType of NumPy, for the memory of one array; with `missing`, its values may be None."""
    return np.dtypes.StringDType(na_object=None) if missing else np.dtypes.StringDType()


def is_text_dtype(dtype: np.dtype[Any]) -> bool:
    """True if `dtype` is a `text_dtype`."""
    return dtype.kind == "T"


@dataclass(frozen=True, slots=True)
class Element:
    """One value of a tensor."""

    name: str  # NumPy's name of the dtype, as in the companion feature x/dtype
    dtype: np.dtype[Any]  # little-endian
    arrow: pa.DataType  # the type that holds it
    inner: tuple[int, ...] = ()  # an additional innermost axis in Arrow: (2,) for complex numbers
    marked: bool = False  # the field's metadata must name the dtype, as the Arrow type alone does not determine it

    @property
    def itemsize(self) -> int:
        """Bytes of one value."""
        return self.dtype.itemsize

    @property
    def plain(self) -> pa.DataType | None:
        """The type of a column of single values, if it is one of plain numbers; others are tensors of shape ()."""
        if self.name == "bool":
            return pa.bool_()
        return self.arrow if self.name in _PLAIN else None


@lru_cache(maxsize=256)
def element(name: str) -> Element:
    """Look up a dtype by its name; ValueError if it is not in the table.

    MissingDependencyError if it is bfloat16, and ml_dtypes is not installed.

    >>> element("complex64").arrow, element("complex64").inner
    (DataType(float), (2,))
    >>> element("object")
    Traceback (most recent call last):
    ValueError: unsupported dtype 'object': use bool, int8 to int64, ..., S<n>, U<n>, datetime64[<unit>] or ...
    """
    if name in _PLAIN:
        return Element(name, np.dtype(name).newbyteorder("<"), pa.type_for_alias(name))
    if name == "bool":
        return Element(name, np.dtype(np.bool_), pa.uint8(), marked=True)
    if name in _COMPLEX:
        return Element(name, np.dtype(name).newbyteorder("<"), _COMPLEX[name], (2,), marked=True)
    if name == "bfloat16":
        return Element(name, _bfloat16(), pa.binary(2), marked=True)
    if text := _TEXT.fullmatch(name):
        size = int(text[2]) * (_UCS4 if text[1] == "U" else 1)
        if size <= _MAX_BYTES:
            return Element(name, np.dtype("<" + name), pa.binary(size), marked=True)
    if time := _TIME.fullmatch(name):
        dtype = np.dtype("<" + name.replace("datetime64", "M8").replace("timedelta64", "m8"))
        if time[2] in _ARROW_UNITS:
            return Element(name, dtype, (pa.timestamp if time[1] == "datetime64" else pa.duration)(time[2]))
        return Element(name, dtype, pa.int64(), marked=True)
    raise ValueError(f"unsupported dtype '{printable(name, 60)}': use {SUPPORTED_DTYPES}")


def find_element(name: str) -> Element | None:
    """Look up a dtype by its name, None if it is not in the table."""
    try:
        return element(name)
    except ValueError:
        return None


def dtype_name(dtype: Any) -> str:
    """The table's name of a NumPy dtype, of either byte order.

    ValueError if the dtype is not in the table: objects, records, void, dates without a unit.

    >>> dtype_name(np.dtype(">f4")), dtype_name(np.dtype("U3")), dtype_name(np.dtype("M8[D]"))
    ('float32', 'U3', 'datetime64[D]')
    """
    dtype = np.dtype(dtype)
    name: str = dtype.str[1:] if dtype.kind in "SU" else dtype.name
    element(name)  # raises if it is not in the table
    return name


def element_of(type_: pa.DataType, metadata: Any = None) -> Element:
    """The element of a tensor column, from the Arrow type of its values and the metadata of its field.

    ValueError if the dtype in the metadata does not fit the type, or a tensor cannot have values of this type.
    """
    name = (metadata or {}).get(DTYPE_KEY)
    if name is not None:
        dtype = element(name.decode("utf-8", "backslashreplace"))
        if dtype.arrow != type_:
            reason = f"the metadata says {dtype.name}, which Arrow holds as {dtype.arrow}, and the type is {type_}"
            raise ValueError(reason)
        return dtype
    if pa.types.is_boolean(type_):
        return element("bool")
    if pa.types.is_timestamp(type_):
        return element(f"datetime64[{type_.unit}]")
    if pa.types.is_duration(type_):
        return element(f"timedelta64[{type_.unit}]")
    if pa.types.is_integer(type_) or pa.types.is_floating(type_):
        return element(np.dtype(type_.to_pandas_dtype()).name)
    raise ValueError(f"a tensor of {type_} has no dtype")


# ---- dtypes that callers declare

STRING = "string"
_SYNONYMS = {"half": "float16", "float": "float32", "double": "float64"}
_SYNONYMS |= dict.fromkeys(("bytes", "str", "object"), STRING)


def declared_name(dtype: Any) -> str:
    """The name of a dtype of NumPy or TensorFlow, or of its name or scalar type; "string" for bytes and text.

    SchemaError if a tensor cannot have this dtype.

    >>> declared_name(np.float32), declared_name("half"), declared_name(object)
    ('float32', 'float16', 'string')
    """
    if isinstance(dtype, str):
        name = _SYNONYMS.get(dtype, dtype)
        if name != STRING and find_element(name) is None:
            raise _dtype_error(f"a tensor cannot have the dtype {name!r}", name)
        return name
    if any(dtype is type_ for type_ in (None, int, float, complex)):  # NumPy and TensorFlow disagree on their widths
        raise _dtype_error(f"{getattr(dtype, '__name__', dtype)} does not determine a number of bits", dtype)
    try:
        declared = np.dtype(getattr(dtype, "as_numpy_dtype", dtype))  # tf.DType
        return STRING if declared.kind in "OSU" else dtype_name(declared)
    except (TypeError, ValueError):
        raise _dtype_error(f"a tensor cannot have the dtype {dtype!r}", dtype) from None


def _dtype_error(reason: str, got: object) -> SchemaError:
    return SchemaError(reason, got=got, hint="use a name like 'float32', 'uint8', 'bfloat16' or 'string'")


def _bfloat16() -> np.dtype[Any]:
    with needs("bfloat16", "bfloat16"):
        import ml_dtypes
    return np.dtype(ml_dtypes.bfloat16)


def read_header(file: Any) -> tuple[np.dtype[Any], bool, tuple[int, ...]]:
    """Dtype, whether the order is Fortran's, and shape; `file` is then positioned at the first value.

    DecodeError if it is not a ``.npy`` file, its header is damaged or too long, or it holds objects.
    """
    magic = _read_exactly(file, len(MAGIC) + 2)
    if magic.startswith(_ZIP):
        advice = "rename it to .npz"
        raise DecodeError("an archive as np.savez writes it, not a .npy file", expected=".npy", got=".npz", hint=advice)
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


def _read_exactly(file: Any, count: int) -> bytes:
    data = b""
    while len(data) < count and (more := file.read(count - len(data))):
        data += more
    if len(data) < count:
        reason = "the .npy file ends inside its header"
        raise DecodeError(reason, offset=len(data), expected=count, got=len(data))
    return data


@lru_cache(maxsize=64)
def _parse(text: str) -> tuple[np.dtype[Any], bool, tuple[int, ...]]:
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
        return dtype, fortran_order, shape
    reason, advice = f"the .npy file holds values of no bytes, {dtype}", None
    if dtype.hasobject:
        reason = "the .npy file holds objects, which are pickles and are never read"
        advice = "save the array with another dtype: np.save(file, array.astype('float32'))"
        if shape == ():
            reason = "the .npy file holds one object, such as a dict, as a pickle, which is never read"
            advice = "save a dict of arrays with np.savez(file, **arrays)"
    raise DecodeError(reason, expected="numbers, text or dates", got=str(dtype), hint=advice)


def header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The header of an array in C order.

    >>> header(np.dtype("<f4"), (2, 3))[:6]
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
