"""The closed table of NumPy dtypes that a tensor may have, and the Arrow values that each is held as.

Arrow has no complex, no bfloat16 and no fixed-width text: such values are held under another type, and a mark in the field's
metadata (`DTYPE_KEY`) says what they are. A name that is not in the table is refused, never evaluated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tfrecord_io.errors import MissingDependencyError, printable

Array = npt.NDArray[Any]

DTYPE_KEY = b"tfrecord_io.dtype"  # metadata of a field: the dtype's name, where the Arrow type does not say it

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
_MOST = 2**31 - 1  # bytes of one value, as of one record


@dataclass(frozen=True, slots=True)
class Element:
    """One value of a tensor.

    Attributes
    ----------
    name : str
        As it stands in the companion ``x/dtype``: NumPy's name of the dtype.
    dtype : numpy.dtype
        Little-endian.
    arrow : pyarrow.DataType
        What Arrow holds it as.
    inner : tuple of int
        An innermost axis that Arrow has in addition: ``(2,)`` for complex numbers.
    marked : bool
        Whether the Arrow type alone does not say the dtype.
    """

    name: str
    dtype: np.dtype[Any]
    arrow: pa.DataType
    inner: tuple[int, ...] = ()
    marked: bool = False

    @property
    def itemsize(self) -> int:
        """Bytes of one value."""
        return self.dtype.itemsize

    @property
    def plain(self) -> pa.DataType | None:
        """The type of a column of single values, where that is one of plain numbers; else they are tensors of no axis."""
        if self.name == "bool":
            return pa.bool_()
        return self.arrow if self.name in _PLAIN else None


@lru_cache(maxsize=256)
def element(name: str) -> Element:
    """Look up a dtype by its name.

    Raises
    ------
    ValueError
        It is not in the table.
    MissingDependencyError
        It is bfloat16, and ml_dtypes is not installed.

    Examples
    --------
    >>> element("complex64").arrow, element("complex64").inner
    (DataType(float), (2,))
    >>> element("object")
    Traceback (most recent call last):
    ValueError: 'object' is no dtype of a tensor: use bool, int8 to int64, ..., S<n>, U<n>, datetime64[<unit>] or timedelta64[<unit>]
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
        if size <= _MOST:
            return Element(name, np.dtype("<" + name), pa.binary(size), marked=True)
    if time := _TIME.fullmatch(name):
        if time[2] in _ARROW_UNITS:
            made = pa.timestamp if time[1] == "datetime64" else pa.duration
            return Element(
                name, np.dtype("<" + name.replace("datetime64", "M8").replace("timedelta64", "m8")), made(time[2])
            )
        return Element(
            name, np.dtype("<" + name.replace("datetime64", "M8").replace("timedelta64", "m8")), pa.int64(), marked=True
        )
    raise ValueError(f"'{printable(name, 60)}' is no dtype of a tensor: use {SUPPORTED_DTYPES}")


def dtype_name(dtype: Any) -> str:
    """The table's name of a NumPy dtype, of either byte order.

    Raises
    ------
    ValueError
        The dtype is not in the table: objects, records, void, dates without a unit.

    Examples
    --------
    >>> dtype_name(np.dtype(">f4")), dtype_name(np.dtype("U3")), dtype_name(np.dtype("M8[D]"))
    ('float32', 'U3', 'datetime64[D]')
    """
    made = np.dtype(dtype)
    name = made.str[1:] if made.kind in "SU" else made.name
    element(name)  # raises for what is not in the table
    return name


def element_of(type_: pa.DataType, metadata: Any = None) -> Element:
    """The element of a tensor column, from the Arrow type of its values and the metadata of its field.

    Raises
    ------
    ValueError
        The mark does not fit the type, or the type is none that a tensor's values have.
    """
    mark = (metadata or {}).get(DTYPE_KEY)
    if mark is not None:
        found = element(mark.decode("utf-8", "backslashreplace"))
        if found.arrow != type_:
            raise ValueError(
                f"the metadata says {found.name}, which Arrow holds as {found.arrow}, and the type is {type_}"
            )
        return found
    if pa.types.is_boolean(type_):
        return element("bool")
    if pa.types.is_timestamp(type_):
        return element(f"datetime64[{type_.unit}]")
    if pa.types.is_duration(type_):
        return element(f"timedelta64[{type_.unit}]")
    if pa.types.is_integer(type_) or pa.types.is_floating(type_):
        return element(np.dtype(type_.to_pandas_dtype()).name)
    raise ValueError(f"a tensor of {type_} has no dtype")


def _bfloat16() -> np.dtype[Any]:
    try:
        import ml_dtypes
    except ImportError as error:
        reason = "bfloat16 needs the package ml_dtypes"
        raise MissingDependencyError(reason, advice="pip install 'tfrecord_io[bfloat16]'") from error
    return np.dtype(ml_dtypes.bfloat16)
