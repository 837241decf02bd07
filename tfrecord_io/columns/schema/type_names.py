"""Parse and print the names of types: ``"int32"``, ``"timestamp[us, tz=UTC]"``, the output of ``str(pa.DataType)``.

Tests: tests/columns/schema/test_field_makers.py and tests/columns/schema/test_schema.py.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from typing import Any, get_args, get_origin

import numpy as np
import pyarrow as pa

from tfrecord_io.base import did_you_mean, printable
from tfrecord_io.bytes import Dtype
from tfrecord_io.columns.schema.tensor_types import (
    Shape,
    axes_of,
    dtype_metadata,
    element_and_shape,
    is_any_tensor,
    is_variable_shape_tensor,
    tensor_type,
    tensor_value_type,
    variable_shape_tensor,
)
from tfrecord_io.columns.schema.types import is_text
from tfrecord_io.errors import SchemaError

_SYNONYMS: dict[str, pa.DataType] = {
    "bytes": pa.binary(),
    "text": pa.string(),
    "str": pa.string(),
    "int": pa.int64(),
    "float": pa.float32(),  # Arrow's name, and the only float type of a record
    "datetime": pa.timestamp("us"),
    "date": pa.date32(),
}
_PYTHON_TYPES = frozenset({bool, int, float, str, bytes, dt.datetime, dt.date})  # whose names are those of types
_EXTENSIONS: dict[str, Callable[[], pa.DataType]] = {"uuid": pa.uuid, "json": pa.json_, "bool8": pa.bool8}
_LISTS: dict[str, Callable[[pa.Field], pa.DataType]] = {"list": pa.list_, "large_list": pa.large_list}
_NUMPY_NAMES = {  # by Arrow's name, or the beginning of one
    "halffloat": "float16",
    "float": "float32",
    "double": "float64",
    "timestamp[": "datetime64[",
    "duration[": "timedelta64[",
}
_MAX_DEPTH = 16
_SINGLE = [*(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "float16", "float32", "float64"]
_SINGLE += ["double", "bool", "string", "binary", *_SYNONYMS]
_COMMON = [*_SINGLE, *(f"list<{name}>" for name in _SINGLE), "date32"]
_COMMON += [f"timestamp[{unit}]" for unit in ("s", "ms", "us", "ns")]

_TIMESTAMP = r"timestamp\[(s|ms|us|ns),\s*(?:tz=)?([^\]]+)\]"
_BINARY = r"(?:fixed_size_)?binary[\[(](\d+)[\])]"
_DECIMAL = r"decimal(32|64|128|256)\(\s*(\d+)\s*,\s*(-?\d+)\s*\)"
_DICTIONARY = r"(?s)dictionary<values=(.+), indices=(\w+), ordered=([01])>"
_TENSOR = r"tensor<(.+)>\[([\d\s,?]*)\]"
_ARROW_TENSOR = r"extension<arrow\.fixed_shape_tensor\[value_type=([^<>=]+), shape=\[([\d,]*)\]\]>"
_ARROW_VARIABLE_TENSOR = (
    r"extension<arrow\.variable_shape_tensor\[value_type=([^<>=]+), ndim=(\d+)(?:, uniform_shape=\[([\w,]*)\])?\]>"
)
_EXTENSION = r"extension<arrow\.(uuid|json|bool8)>"
_NOT_NULL = " not null"
_NESTED = r"(?s)(list|large_list|fixed_size_list|struct)<(.*)>(?:\[(\d+)\])?"


def type_from_name(name: str) -> pa.DataType:
    """Parse the name of an Arrow type; SchemaError if `name` is not a type.

    >>> type_from_name("list<int64>")
    ListType(list<item: int64>)
    >>> type_from_name("timestamp[us, tz=UTC]")
    TimestampType(timestamp[us, tz=UTC])
    """
    return _parse(name, name, _MAX_DEPTH)


def type_name(type_: pa.DataType) -> str:
    """The name of an Arrow type, as `type_from_name` parses it.

    >>> type_name(pa.list_(pa.fixed_shape_tensor(pa.float32(), [2, 3])))
    'list<item: tensor<float32>[2,3]>'
    >>> type_name(pa.struct({"image": variable_shape_tensor(pa.uint8(), (None, 3))}))
    'struct<image: tensor<uint8>[?,3]>'
    """
    if is_variable_shape_tensor(type_):
        return f"tensor<{_numpy_name(str(tensor_value_type(type_)))}>{_axes_name(axes_of(type_))}"
    if pa.types.is_list(type_) and is_variable_shape_tensor(type_.value_type):
        return f"list<item: {type_name(type_.value_type)}>"
    name = re.sub(_ARROW_TENSOR, lambda match: f"tensor<{_numpy_name(match[1])}>[{match[2]}]", str(type_))
    return re.sub(_ARROW_VARIABLE_TENSOR, _variable_tensor_name, name)


def logical_name(type_: pa.DataType, metadata: Mapping[bytes, bytes] | None) -> str:
    """The name of a field's type; of tensors with the dtype in the field's metadata, and the shape that NumPy has.

    >>> from tfrecord_io.bytes.format.dtypes import Dtype
    >>> dtype = Dtype.of_name("complex64")
    >>> logical_name(tensor_type(dtype, (None, 3)), dtype_metadata(dtype))
    'tensor<complex64>[?,3]'
    """
    if metadata is None or Dtype.KEY not in metadata:
        return type_name(type_)
    if pa.types.is_list(type_) and is_any_tensor(type_.value_type):
        return f"list<item: {logical_name(type_.value_type, metadata)}>"
    try:
        dtype, shape = element_and_shape(pa.field("", type_, metadata=dict(metadata)))
    except ValueError:
        return type_name(type_)
    return f"tensor<{dtype.name}>{_axes_name(shape)}"


def short_type_name(type_: pa.DataType, metadata: Mapping[bytes, bytes] | None = None) -> str:
    """The name of a type in tables and reports; the field's `metadata` gives the dtype of some tensors.

    >>> short_type_name(pa.dictionary(pa.int8(), pa.string())), short_type_name(pa.list_(pa.float32()))
    ('category', 'list<float>')
    """
    if pa.types.is_dictionary(type_):
        values = "" if is_text(type_.value_type) else f"<{short_type_name(type_.value_type)}>"
        return f"{'ordered ' if type_.ordered else ''}category{values}"
    if pa.types.is_fixed_size_list(type_):
        return f"list<{short_type_name(type_.value_type)}>[{type_.list_size}]"
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"list<{short_type_name(type_.value_type, metadata)}>"
    if is_any_tensor(type_):
        dtype, shape = element_and_shape(pa.field("", type_, metadata=dict(metadata or {})))
        return f"tensor<{dtype.name}>{_axes_name(shape, ', ')}"
    return type_name(type_) if pa.types.is_struct(type_) else str(type_)


def marked_tensor(name: str) -> tuple[pa.DataType, dict[bytes, bytes]] | None:
    """Type and metadata for names like ``"tensor<complex64>[2,3]"``, whose dtype is in the metadata; else None."""
    match = re.fullmatch(_TENSOR, name.strip())
    dtype = None if match is None else Dtype.find(match[1].strip())
    if match is None or dtype is None or not dtype.marked:
        return None
    return tensor_type(dtype, _axes(match[2])), dtype_metadata(dtype)


def _variable_tensor_name(match: re.Match[str]) -> str:
    """The name of tensors whose shapes vary, by Arrow's name of a type that has them inside."""
    sizes = match[3].split(",") if match[3] else ["null"] * int(match[2])
    return f"tensor<{_numpy_name(match[1])}>[{','.join('?' if size == 'null' else size for size in sizes)}]"


def _numpy_name(name: str) -> str:
    """NumPy's name for a type of values, where Arrow's is another."""
    for arrow_name, numpy_name in _NUMPY_NAMES.items():
        if name == arrow_name or (arrow_name.endswith("[") and name.startswith(arrow_name) and "," not in name):
            return name.replace(arrow_name, numpy_name)
    return name


def _axes_name(shape: Shape, separator: str = ",") -> str:
    return f"[{separator.join('?' if axis is None else str(axis) for axis in shape)}]"


def _axes(text: str) -> Shape:
    return tuple(None if axis.strip() == "?" else int(axis) for axis in text.split(",") if axis.strip())


def as_arrow_type(source: Any) -> pa.DataType:
    """The Arrow type for a type, its name, a Python type such as ``int`` or ``list[int]``, or a dtype.

    Dtypes are those of NumPy and TensorFlow. ``float`` is float32, the only float type of a record.
    SchemaError if a name or dtype has no Arrow type, TypeError if `source` is none of these.
    """
    if isinstance(source, pa.DataType):
        return source
    if isinstance(source, str):
        return type_from_name(source)
    source = getattr(source, "as_numpy_dtype", source)  # tf.DType
    if isinstance(source, np.dtype) or (isinstance(source, type) and issubclass(source, np.generic)):
        dtype = np.dtype(source)
        if dtype.kind in "OS":
            return pa.binary()
        try:
            return pa.from_numpy_dtype(dtype)
        except pa.ArrowNotImplementedError as error:
            raise SchemaError(f"the dtype {dtype} has no Arrow type", got=str(dtype)) from error
    if isinstance(source, type) and source in _PYTHON_TYPES:
        return type_from_name(source.__name__)
    if get_origin(source) is list and len(get_args(source)) == 1:
        return pa.list_(as_arrow_type(get_args(source)[0]))
    got = repr(source) if isinstance(source, type) or get_origin(source) else type(source).__name__
    example = "'list<int64>' or list[int]" if source is list else "'int32', pa.int32(), np.int32 or int"
    raise TypeError(f"expected a type, such as {example}; got {printable(got, 80)}")


def _parse(text: str, whole: str, depth: int) -> pa.DataType:
    text = text.strip()
    if depth == 0:
        raise _unknown_type(whole)
    if nested := re.fullmatch(_NESTED, text):
        return _parse_nested(nested, whole, depth)
    try:
        return _SYNONYMS.get(text) or _parametric(text, whole, depth) or pa.type_for_alias(text)
    except (ValueError, KeyError) as error:
        raise _unknown_type(whole) from error


def _parametric(text: str, whole: str, depth: int) -> pa.DataType | None:
    if m := re.fullmatch(_TIMESTAMP, text):
        return pa.timestamp(m[1], m[2].strip())
    if m := re.fullmatch(_BINARY, text):
        return pa.binary(int(m[1]))
    if m := re.fullmatch(_DECIMAL, text):
        return getattr(pa, f"decimal{m[1]}")(int(m[2]), int(m[3]))
    if m := re.fullmatch(_TENSOR, text) or re.fullmatch(_ARROW_TENSOR, text):
        dtype, axes = Dtype.find(m[1].strip()), _axes(m[2])  # by NumPy's name, or else by Arrow's
        value = _parse(m[1], whole, depth - 1) if dtype is None or dtype.marked else dtype.arrow
        return variable_shape_tensor(value, axes) if None in axes else pa.fixed_shape_tensor(value, axes)
    if m := re.fullmatch(_EXTENSION, text):
        return _EXTENSIONS[m[1]]()
    if m := re.fullmatch(_DICTIONARY, text):
        return pa.dictionary(_parse(m[2], whole, depth - 1), _parse(m[1], whole, depth - 1), m[3] == "1")
    return None


def _parse_nested(match: re.Match[str], whole: str, depth: int) -> pa.DataType:
    outer, inner, size = match.groups()
    if outer == "struct":
        children = []
        for part in _split(inner):
            name, sep, value = part.partition(":")
            if not sep:
                raise _unknown_type(whole)
            children.append(_field(name.strip(), value, whole, depth))
        return pa.struct(children)
    if outer == "fixed_size_list" and size is None:
        inner, _, size = inner.rpartition(",")
    name, sep, value = inner.partition(":")
    has_name = sep and re.fullmatch(r"\s*\w+\s*", name)
    item = _field("item", value if has_name else inner, whole, depth)
    if size is None and outer in _LISTS:
        return _LISTS[outer](item)
    if size is None or outer == "large_list" or not size.strip().isdigit():
        raise _unknown_type(whole)
    return pa.list_(item, int(size))


def _field(name: str, text: str, whole: str, depth: int) -> pa.Field:
    bare = text.rstrip().removesuffix(_NOT_NULL)
    return pa.field(name, _parse(bare, whole, depth - 1), nullable=bare == text.rstrip())


def _split(text: str) -> list[str]:
    """Split at the commas outside of all brackets."""
    parts, level, begin = [], 0, 0
    for index, character in enumerate(text):
        level += (character in "<[(") - (character in ">])")
        if character == "," and level == 0:
            parts.append(text[begin:index])
            begin = index + 1
    return [*parts, text[begin:]] if text.strip() else []


def _unknown_type(name: str) -> SchemaError:
    question = did_you_mean(name, _COMMON)
    use = f"{question} Use" if question else "use"
    fields = "" if question else ", or a field such as tfr.image() or tfr.tensor('uint8', (28, 28))"
    advice = f"{use} names like 'int32', 'string', 'list<float32>', 'timestamp[us]'{fields}"
    return SchemaError(f"unknown type {name!r}", got=name, hint=advice, of_argument=True)
