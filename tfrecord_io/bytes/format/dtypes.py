"""The closed table of dtypes of tensors: a row answers all questions about its values.

Arrow has no complex, no dtypes of ml_dtypes and no fixed-width text: another type holds such values, and the field's
metadata (`Dtype.KEY`) has the name of the dtype. A name that is not in the table is refused, never evaluated.

The dtypes beyond NumPy's are those of ml_dtypes (https://github.com/jax-ml/ml_dtypes), which TensorFlow and JAX use,
too. Their integers of four bits take a byte each, of which the upper four bits are ignored.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from tfrecord_io.base import needs, printable
from tfrecord_io.bytes.format.feature_types import Kind
from tfrecord_io.errors import SchemaError

_TEXT = r"([SU])([1-9][0-9]{0,8})"
_TIME = r"(datetime64|timedelta64)\[(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]"
_ARROW_UNITS = ("s", "ms", "us", "ns")
_UCS4 = 4  # bytes of a character of NumPy's text
_OF_LIBRARY = 2  # `isbuiltin` of a dtype that another library added to NumPy
_MAX_BYTES = 2**31 - 1  # of one value, as of one record


class TensorField(NamedTuple):
    """The field of a TensorProto for the values of a dtype, which TensorFlow numbers.

    The numbers are those of tensorflow/core/framework/types.proto, the fields those of tensor.proto next to it.
    """

    number: int
    field: str
    unit: str  # NumPy's name of one item of the field


class _Answers(NamedTuple):
    name: str
    library: str
    itemsize: int
    kind: str
    arrow: pa.DataType
    inner: tuple[int, ...]
    plain: pa.DataType | None
    marked: bool
    is_hidden: bool
    wide: np.dtype[Any]
    feature: Kind | None
    tensor_field: TensorField | None
    torch: str | None
    has_order: bool
    is_in_tf_data: bool
    is_decoded_raw: bool
    is_likely: bool


class Dtype(_Answers):
    """A row of the table of dtypes: all that the rest of the library asks about the values of a tensor.

    No attribute has a default, so a new row answers every question, which `tests/laws/test_dtypes.py` asks of all rows.

    Attributes
    ----------
    name : str
        NumPy's name, which the companion feature ``x/dtype``, schemas and the metadata of fields state.
    library : str
        The package that has the dtype: "numpy", or the first "ml_dtypes>=…" that has it, which may be missing.
    itemsize : int
        Bytes of one value in NumPy, in Arrow and in raw bytes.
    kind : str
        NumPy's kind, by which encodings state what they store; "V" for all dtypes of ml_dtypes.
    arrow : pa.DataType
        The Arrow type of one value.
    inner : tuple of int
        Axes that Arrow adds after those of the tensor: ``(2,)`` for complex numbers.
    plain : pa.DataType or None
        The type of a column of single values; None if single values are tensors of shape ``()``, too.
    marked : bool
        The metadata of the field names the dtype, as the Arrow type alone does not determine it.
    is_hidden : bool
        Arrow's storage does not show the values, so libraries that take the storage alone refuse the column by name.
    wide : np.dtype
        NumPy's own dtype that has all of the values: the dtype itself, except for those of ml_dtypes.
    feature : Kind or None
        The feature type of a list of such numbers (encoding "list"); None if lists do not hold them.
    tensor_field : TensorField or None
        The number and the field in a TensorProto; None if TensorFlow has no such dtype.
    torch : str or None
        PyTorch's dtype of the tensors that `to_torch` makes; None if it makes lists.
    has_order : bool
        `describe` shows the least and the greatest value.
    is_in_tf_data : bool
        The datasets of tf.data have tensors of it; others are refused by name.
    is_decoded_raw : bool
        ``tf.io.decode_raw`` of TensorFlow makes the dtype, as a feature description shows.
    is_likely : bool
        An error about raw bytes of an unknown dtype names it as one that they may have.
    """

    KEY: ClassVar = b"tfrecord_io.dtype"  # metadata of a field: the name, where the Arrow type does not determine it
    MAX_AXES: ClassVar = 64  # of an array
    STRING: ClassVar = "string"  # what callers declare bytes and text as
    TABLE: ClassVar[dict[str, Dtype]]  # by name; those of one width; text and times are made by their names
    SUPPORTED: ClassVar[str]  # for messages

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's dtype, little-endian; MissingDependencyError if its library is not installed."""
        if not self.is_extension:
            return self.wide
        with needs("bfloat16", self.name):
            module = self._module
        with needs("bfloat16", self.name, requirement=self.library):
            if not hasattr(module, self.name):
                raise ImportError(f"{module.__name__} {module.__version__} has no {self.name}", name=module.__name__)
        return np.dtype(getattr(module, self.name))

    @property
    def _module(self) -> Any:
        return import_module(self.library.partition(">=")[0])

    @property
    def is_extension(self) -> bool:
        """True if NumPy has the dtype by another library."""
        return self.library != "numpy"

    @staticmethod
    def text(*, missing: bool) -> np.dtype[Any]:
        """Make a StringDType of NumPy, for the memory of one array; with `missing`, its values may be None."""
        return np.dtypes.StringDType(na_object=None) if missing else np.dtypes.StringDType()

    @staticmethod
    def usual_names(itemsize: int) -> tuple[str, ...]:
        """Guess the dtype of raw values of so many bytes: the names of the usual ones, the most likely first.

        >>> Dtype.usual_names(2), Dtype.usual_names(3)
        (('uint16', 'int16', 'float16'), ())
        """
        return tuple(name for name in _USUAL if Dtype.TABLE[name].itemsize == itemsize)

    @staticmethod
    @lru_cache(maxsize=256)
    def of_name(name: str) -> Dtype:
        """Look up a dtype by its name; ValueError if it is not in the table.

        MissingDependencyError if it is one of ml_dtypes, which is not installed.

        >>> Dtype.of_name("complex64").arrow, Dtype.of_name("complex64").inner
        (DataType(float), (2,))
        >>> Dtype.of_name("object")
        Traceback (most recent call last):
        ValueError: unsupported dtype 'object': use bool, int8 to int64, ..., S<n>, U<n>, datetime64[<unit>] or ...
        """
        row = _find_row(name)
        if row is None:
            raise ValueError(f"unsupported dtype '{printable(name, 60)}': use {Dtype.SUPPORTED}")
        assert row.dtype.itemsize == row.itemsize  # loads the library
        return row

    @staticmethod
    def extension_of(dtype: Any) -> Dtype | None:
        """The row of a dtype of ml_dtypes, of an array of any library; None for others.

        NumPy says kind "V" for most of them and "f" for one, so kinds do not tell them apart.

        >>> Dtype.extension_of(np.dtype("float32")), Dtype.extension_of("torch.bfloat16").wide
        (None, dtype('float32'))
        """
        if isinstance(dtype, np.dtype) and dtype.isbuiltin != _OF_LIBRARY:
            return None
        row = Dtype.TABLE.get(str(dtype).rpartition(".")[2])
        return row if row is not None and row.is_extension else None

    @staticmethod
    def find(name: str, *, loads: bool = True) -> Dtype | None:
        """Look up a dtype by its name, None if it is not in the table.

        MissingDependencyError as `of_name`, unless the row alone is wanted: it `loads` no library then.
        """
        row = _find_row(name)
        return Dtype.of_name(name) if row is not None and loads else row

    @staticmethod
    def name_of(dtype: Any) -> str:
        """The table's name of a NumPy dtype, of either byte order.

        ValueError if the dtype is not in the table: objects, records, void, dates without a unit.

        >>> Dtype.name_of(np.dtype(">f4")), Dtype.name_of(np.dtype("U3")), Dtype.name_of(np.dtype("M8[D]"))
        ('float32', 'U3', 'datetime64[D]')
        """
        dtype = np.dtype(dtype)
        name: str = dtype.str[1:] if dtype.kind in "SU" else dtype.name
        Dtype.of_name(name)  # raises if it is not in the table
        return name

    @staticmethod
    def of_arrow(type_: pa.DataType, metadata: Any = None) -> Dtype:
        """The element of a tensor column, from the Arrow type of its values and the metadata of its field.

        ValueError if the dtype in the metadata does not fit the type, or a tensor cannot have values of this type.
        """
        name = (metadata or {}).get(Dtype.KEY)
        if name is not None:
            dtype = Dtype.of_name(name.decode("utf-8", "backslashreplace"))
            if dtype.arrow != type_:
                reason = f"the metadata says {dtype.name}, which Arrow holds as {dtype.arrow}, and the type is {type_}"
                raise ValueError(reason)
            return dtype
        if pa.types.is_boolean(type_):
            return Dtype.of_name("bool")
        if pa.types.is_timestamp(type_):
            return Dtype.of_name(f"datetime64[{type_.unit}]")
        if pa.types.is_duration(type_):
            return Dtype.of_name(f"timedelta64[{type_.unit}]")
        if pa.types.is_integer(type_) or pa.types.is_floating(type_):
            return Dtype.of_name(np.dtype(type_.to_pandas_dtype()).name)
        raise ValueError(f"a tensor of {type_} has no dtype")

    @staticmethod
    def declared_name(dtype: Any) -> str:
        """The name of a dtype of NumPy or TensorFlow, or of its name or scalar type; "string" for bytes and text.

        SchemaError if a tensor cannot have this dtype.

        >>> Dtype.declared_name(np.float32), Dtype.declared_name("half"), Dtype.declared_name(object)
        ('float32', 'float16', 'string')
        """
        if isinstance(dtype, str):
            name = _SYNONYMS.get(dtype, dtype)
            if name != Dtype.STRING and Dtype.find(name) is None:
                raise _dtype_error(f"a tensor cannot have the dtype {name!r}", name)
            return name
        if any(
            dtype is type_ for type_ in (None, int, float, complex)
        ):  # NumPy and TensorFlow disagree on their widths
            raise _dtype_error(f"{getattr(dtype, '__name__', dtype)} does not determine a number of bits", dtype)
        try:
            declared = np.dtype(getattr(dtype, "as_numpy_dtype", dtype))  # tf.DType
            return Dtype.STRING if declared.kind in "OSU" else Dtype.name_of(declared)
        except (TypeError, ValueError):
            raise _dtype_error(f"a tensor cannot have the dtype {dtype!r}", dtype) from None


def _find_row(name: str) -> Dtype | None:
    if (row := Dtype.TABLE.get(name)) is not None:
        return row
    if text := re.fullmatch(_TEXT, name):
        size = int(text[2]) * (_UCS4 if text[1] == "U" else 1)
        return _text(name, size) if size <= _MAX_BYTES else None
    if time := re.fullmatch(_TIME, name):
        return _time(name, "M" if time[1] == "datetime64" else "m", time[2])
    return None


def integer_limits(dtype: Dtype) -> tuple[int, int]:
    """The least and the greatest value of a dtype of integers."""
    info = dtype._module.iinfo(dtype.dtype)
    return int(info.min), int(info.max)


def _tensor_field(number: int, field: str, unit: str) -> TensorField:
    return TensorField(number=number, field=field, unit=unit)


def _number(name: str, tensor: tuple[int, str, str], *, is_decoded_raw: bool) -> Dtype:
    dtype = np.dtype(name).newbyteorder("<")
    type_ = pa.type_for_alias(name)
    return Dtype(
        name=name,
        library="numpy",
        itemsize=dtype.itemsize,
        kind=dtype.kind,
        arrow=type_,
        inner=(),
        plain=type_,
        marked=False,
        is_hidden=False,
        wide=dtype,
        feature=Kind.FLOAT if dtype.kind == "f" else Kind.INT64,
        tensor_field=_tensor_field(*tensor),
        torch=name,
        has_order=True,
        is_in_tf_data=True,
        is_decoded_raw=is_decoded_raw,
        is_likely=True,
    )


def _complex(name: str, part: pa.DataType, tensor: tuple[int, str, str]) -> Dtype:
    dtype = np.dtype(name).newbyteorder("<")
    return Dtype(
        name=name,
        library="numpy",
        itemsize=dtype.itemsize,
        kind="c",
        arrow=part,
        inner=(2,),
        plain=None,
        marked=True,
        is_hidden=False,
        wide=dtype,
        feature=Kind.FLOAT,
        tensor_field=_tensor_field(*tensor),
        torch=name,
        has_order=False,
        is_in_tf_data=True,
        is_decoded_raw=True,
        is_likely=True,
    )


def _extension(
    name: str,
    library: str,
    itemsize: int,
    *,
    wide: str,
    tensor: tuple[int, str, str],
    torch: str,
    is_in_tf_data: bool,
    is_decoded_raw: bool,
    is_likely: bool,
) -> Dtype:
    """A dtype of ml_dtypes, whose values a dtype of NumPy has, too."""
    return Dtype(
        name=name,
        library=library,
        itemsize=itemsize,
        kind="V",
        arrow=pa.binary(itemsize),
        inner=(),
        plain=None,
        marked=True,
        is_hidden=True,
        wide=np.dtype(wide),
        feature=Kind.FLOAT if wide.startswith("float") else Kind.INT64,
        tensor_field=_tensor_field(*tensor),
        torch=torch,
        has_order=True,
        is_in_tf_data=is_in_tf_data,
        is_decoded_raw=is_decoded_raw,
        is_likely=is_likely,
    )


_BOOL = Dtype(
    name="bool",
    library="numpy",
    itemsize=1,
    kind="b",
    arrow=pa.uint8(),
    inner=(),
    plain=pa.bool_(),
    marked=True,
    is_hidden=False,
    wide=np.dtype(np.bool_),
    feature=Kind.INT64,
    tensor_field=_tensor_field(10, "bool_val", "bool"),
    torch="bool",
    has_order=True,
    is_in_tf_data=True,
    is_decoded_raw=True,
    is_likely=True,
)

_ROWS = (  # a new dtype is a row here
    _number("int8", (6, "int_val", "int32"), is_decoded_raw=True),
    _number("int16", (5, "int_val", "int32"), is_decoded_raw=True),
    _number("int32", (3, "int_val", "int32"), is_decoded_raw=True),
    _number("int64", (9, "int64_val", "int64"), is_decoded_raw=True),
    _number("uint8", (4, "int_val", "int32"), is_decoded_raw=True),
    _number("uint16", (17, "int_val", "int32"), is_decoded_raw=True),
    _number("uint32", (22, "uint32_val", "uint32"), is_decoded_raw=False),
    _number("uint64", (23, "uint64_val", "uint64"), is_decoded_raw=False),
    _number("float16", (19, "half_val", "int32"), is_decoded_raw=True),
    _number("float32", (1, "float_val", "uint32"), is_decoded_raw=True),
    _number("float64", (2, "double_val", "uint64"), is_decoded_raw=True),
    _extension(
        "bfloat16",
        "ml_dtypes>=0.4",
        2,
        wide="float32",
        tensor=(14, "half_val", "int32"),
        torch="bfloat16",
        is_in_tf_data=True,
        is_decoded_raw=True,
        is_likely=True,
    ),
    _extension(
        "int4",
        "ml_dtypes>=0.4",
        1,
        wide="int8",
        tensor=(29, "int_val", "int32"),
        torch="int8",
        is_in_tf_data=True,
        is_decoded_raw=False,
        is_likely=False,
    ),
    _extension(
        "uint4",
        "ml_dtypes>=0.4",
        1,
        wide="uint8",
        tensor=(30, "int_val", "int32"),
        torch="uint8",
        is_in_tf_data=True,
        is_decoded_raw=False,
        is_likely=False,
    ),
    _extension(
        "float8_e4m3fn",
        "ml_dtypes>=0.4",
        1,
        wide="float32",
        tensor=(25, "float8_val", "uint8"),
        torch="float8_e4m3fn",
        is_in_tf_data=True,
        is_decoded_raw=False,
        is_likely=False,
    ),
    _extension(
        "float8_e5m2",
        "ml_dtypes>=0.4",
        1,
        wide="float32",
        tensor=(24, "float8_val", "uint8"),
        torch="float8_e5m2",
        is_in_tf_data=False,
        is_decoded_raw=False,
        is_likely=False,
    ),
    _complex("complex64", pa.float32(), (8, "scomplex_val", "uint32")),
    _complex("complex128", pa.float64(), (18, "dcomplex_val", "uint64")),
    _BOOL,
)
Dtype.TABLE = {row.name: row for row in _ROWS}
Dtype.SUPPORTED = (
    "bool, int8 to int64, uint8 to uint64, float16, float32, float64, "
    f"{', '.join(row.name for row in _ROWS if row.is_extension)}, complex64, complex128, S<n>, U<n>, "
    "datetime64[<unit>] or timedelta64[<unit>]"
)


def _text(name: str, itemsize: int) -> Dtype:
    return Dtype(
        name=name,
        library="numpy",
        itemsize=itemsize,
        kind=name[0],
        arrow=pa.binary(itemsize),
        inner=(),
        plain=None,
        marked=True,
        is_hidden=name[0] == "U",
        wide=np.dtype("<" + name),
        feature=None,
        tensor_field=None,  # a TensorProto holds it as strings
        torch=None,
        has_order=True,
        is_in_tf_data=True,
        is_decoded_raw=False,
        is_likely=False,
    )


def _time(name: str, kind: str, unit: str) -> Dtype:
    is_arrow = unit in _ARROW_UNITS
    types = {"M": pa.timestamp, "m": pa.duration}
    return Dtype(
        name=name,
        library="numpy",
        itemsize=8,
        kind=kind,
        arrow=types[kind](unit) if is_arrow else pa.int64(),
        inner=(),
        plain=None,
        marked=not is_arrow,
        is_hidden=not is_arrow,
        wide=np.dtype(f"<{kind}8[{unit}]"),
        feature=Kind.INT64,
        tensor_field=None,
        torch="int64",
        has_order=True,
        is_in_tf_data=True,
        is_decoded_raw=False,
        is_likely=False,
    )


# Dtypes that raw bytes of an unknown dtype mostly have, the usual one of each width first.
_USUAL = ("uint8", "uint16", "int16", "float16", "float32", "int32", "float64", "int64")

_SYNONYMS = {"half": "float16", "float": "float32", "double": "float64"}
_SYNONYMS |= dict.fromkeys(("bytes", "str", "object"), Dtype.STRING)


def _dtype_error(reason: str, got: object) -> SchemaError:
    return SchemaError(reason, got=got, hint="use a name like 'float32', 'uint8', 'bfloat16' or 'string'")
