"""Arrow's types of tensor columns: of one shape throughout, and of shapes that vary.

Both are canonical extension types (https://arrow.apache.org/docs/format/CanonicalExtensions.html). pyarrow has no class
for the second: Arrow's C++ has the type from version 26 on, so it is built through a schema message; older versions get
the class below.
"""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from typing import Any, ClassVar

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import Registry, cached_property
from tfrecord_io.bytes import Dtype, Kind, Layout
from tfrecord_io.errors import FeatureNotFoundError, SchemaError

Shape = tuple[int | None, ...]

# Arrow builds extension types from fields with these keys. With another name of the same length it builds the storage
# type and shows the metadata.
EXTENSION_NAME, EXTENSION_METADATA = b"ARROW:extension:name", b"ARROW:extension:metadata"
INERT_NAME = b"tfrecord_io:ext:name"

FIXED_SHAPE = "arrow.fixed_shape_tensor"
VARIABLE_SHAPE = "arrow.variable_shape_tensor"

# Limits for the metadata of a type that is read from a file
_MAX_METADATA_BYTES = 64 << 10
_MAX_AXES = Dtype.MAX_AXES + 1  # the one that complex numbers add
_MAX_VALUES = 2**31 - 1  # in one record: no payload has more bytes


class _VariableShapeTensor(pa.ExtensionType):  # type: ignore[misc]  # pyarrow carries no types
    """The type for versions of Arrow that do not have it."""

    def __init__(self, storage: pa.DataType, serialized: bytes) -> None:
        self._serialized = serialized
        super().__init__(storage, VARIABLE_SHAPE)

    def __arrow_ext_serialize__(self) -> bytes:
        return self._serialized

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> _VariableShapeTensor:
        return cls(storage, serialized)

    def __hash__(self) -> int:  # Arrow 22 and earlier define equality alone
        return hash((self.storage_type, self._serialized))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.storage_type, self._serialized)


@lru_cache(maxsize=256)
def variable_shape_tensor(
    value_type: pa.DataType, shape: Shape, dim_names: tuple[str, ...] | None = None
) -> pa.BaseExtensionType:
    """The type of tensors of one rank, whose dimensions vary where `shape` is None.

    Stored as ``struct<data: list<value>, shape: fixed_size_list<int32>[ndim]>``: the values in C order, and the shape.
    >>> variable_shape_tensor(pa.float32(), (None, 3)).storage_type
    StructType(struct<data: list<item: float>, shape: fixed_size_list<item: int32>[2]>)
    """
    import json  # for tensors of variable shape only

    storage = pa.struct([("data", pa.list_(value_type)), ("shape", pa.list_(pa.int32(), len(shape)))])
    metadata: dict[str, Any] = {} if shape.count(None) == len(shape) else {"uniform_shape": shape}
    if dim_names is not None:
        metadata["dim_names"] = dim_names
    register_variable_shape_tensor()
    message_metadata = {EXTENSION_NAME: VARIABLE_SHAPE.encode(), EXTENSION_METADATA: json.dumps(metadata).encode()}
    message = pa.schema([pa.field("", storage, metadata=message_metadata)]).serialize()
    return pa.ipc.read_schema(message).field(0).type


def register_variable_shape_tensor() -> None:
    """Register the type of tensors whose shapes vary, where Arrow does not have it."""
    storage = pa.struct([("data", pa.list_(pa.float32())), ("shape", pa.list_(pa.int32(), 1))])
    with suppress(pa.ArrowKeyError):  # already registered: by Arrow, by an earlier call or by another package
        pa.register_extension_type(_VariableShapeTensor(storage, b"{}"))


def is_fixed_shape_tensor(type_: pa.DataType) -> bool:
    """True if `type_` is Arrow's type of tensors of one shape."""
    return isinstance(type_, pa.BaseExtensionType) and type_.extension_name == FIXED_SHAPE


def is_variable_shape_tensor(type_: pa.DataType) -> bool:
    """True if `type_` is Arrow's type of tensors of shapes that vary."""
    return isinstance(type_, pa.BaseExtensionType) and type_.extension_name == VARIABLE_SHAPE


def is_any_tensor(type_: pa.DataType) -> bool:
    """True if `type_` is one of the two types of tensors."""
    return isinstance(type_, pa.BaseExtensionType) and type_.extension_name in (FIXED_SHAPE, VARIABLE_SHAPE)


def tensor_value_type(type_: pa.DataType) -> pa.DataType:
    """The type of one value of a type of tensors."""
    storage = type_.storage_type
    return storage.value_type if is_fixed_shape_tensor(type_) else storage.field("data").type.value_type


@lru_cache(maxsize=256)
def axes_of(type_: pa.DataType) -> Shape:
    """The size of each dimension of tensors in logical order (a permutation is applied), None where it varies.

    ValueError if the type's metadata is damaged.
    """
    if is_fixed_shape_tensor(type_):
        return tuple(type_.shape[axis] for axis in type_.permutation) if type_.permutation else tuple(type_.shape)
    ndim = type_.storage_type.field("shape").type.list_size
    metadata = _extension_metadata(type_)
    axes = metadata.get("uniform_shape") or [None] * ndim
    order = metadata.get("permutation") or range(ndim)
    are_axes = len(axes) == ndim and all(axis is None or type(axis) is int for axis in axes)
    if not are_axes or sorted(order) != list(range(ndim)):
        raise ValueError(f"the metadata of {type_} is damaged")
    return tuple(axes[axis] for axis in order)


def permutation_of(type_: pa.DataType) -> tuple[int, ...] | None:
    """The stored axis of each logical axis; None if no axis is permuted."""
    order = _stated_permutation(type_)
    return None if not order or list(order) == sorted(order) else tuple(order)


def _stated_permutation(type_: pa.DataType) -> Any:
    """The order of axes in the type, which may be their own order; None or empty if it states none."""
    return type_.permutation if is_fixed_shape_tensor(type_) else _extension_metadata(type_).get("permutation")


def drop_permutation(type_: pa.DataType) -> pa.DataType:
    """The type of the same tensors, stored in the order of their logical axes, which it does not state."""
    if not _stated_permutation(type_):
        return type_
    axes = axes_of(type_)
    if not is_fixed_shape_tensor(type_):
        return variable_shape_tensor(tensor_value_type(type_), axes)
    names = logical_dim_names(type_)
    return pa.fixed_shape_tensor(type_.value_type, axes, dim_names=names and list(names))


def logical_dim_names(type_: pa.DataType) -> tuple[str, ...] | None:
    """Names of the axes in their logical order, None where they have none."""
    names = type_.dim_names if is_fixed_shape_tensor(type_) else _extension_metadata(type_).get("dim_names")
    order = permutation_of(type_)
    return tuple(names if order is None else (names[axis] for axis in order)) if names else None


def extension_metadata(type_: pa.BaseExtensionType) -> dict[bytes, bytes]:
    """The name and the parameters of an extension type, as Arrow's IPC format has them in a field's metadata.

    >>> extension_metadata(pa.opaque(pa.int8(), "t", "v"))[b"ARROW:extension:name"]
    b'arrow.opaque'
    """
    stream = pa.schema([pa.field("", type_)]).serialize().to_pybytes().replace(EXTENSION_NAME, INERT_NAME)
    metadata = pa.ipc.read_schema(pa.py_buffer(stream)).field(0).metadata or {}
    return {EXTENSION_NAME: metadata.get(INERT_NAME, b""), EXTENSION_METADATA: metadata.get(EXTENSION_METADATA, b"")}


def _extension_metadata(type_: pa.BaseExtensionType) -> dict[str, Any]:
    import json  # for tensors only

    metadata = json.loads(extension_metadata(type_).get(EXTENSION_METADATA) or b"{}")
    if not isinstance(metadata, dict):
        raise ValueError(f"the metadata of {type_} is damaged")
    return metadata


# ---- types and fields from a dtype and a shape, and back


def tensor_type(element: Dtype, shape: Shape, dim_names: tuple[str, ...] | None = None) -> pa.DataType:
    """The type of a column of tensors of this shape; None is an unknown dimension. SchemaError if it is too large.

    >>> from tfrecord_io.bytes.format.dtypes import Dtype
    >>> tensor_type(Dtype.of_name("complex64"), (4,)).shape
    [4, 2]
    """
    axes = (*shape, *element.inner)
    check_size(axes)
    names = None if dim_names is None or len(dim_names) != len(axes) else dim_names
    if None in axes:
        return variable_shape_tensor(element.arrow, axes, names)
    return pa.fixed_shape_tensor(element.arrow, axes, dim_names=names and list(names))


def dtype_metadata(element: Dtype) -> dict[bytes, bytes]:
    """The field metadata from which the dtype is read; empty where the Arrow type determines it."""
    return {Dtype.KEY: element.name.encode()} if element.marked else {}


def unknown_dtype(field: pa.Field) -> str | None:
    """The dtype of a column of which a library that takes Arrow's storage would make another, or None.

    That is a dtype whose row `is_hidden`: bytes of dtypes of ml_dtypes and of text, and integers of times in units
    that Arrow does not have.
    """
    dtype = Dtype.find((field.metadata or {}).get(Dtype.KEY, b"").decode(), loads=False)
    if dtype is not None and dtype.is_hidden:
        return dtype.name
    parts = (unknown_dtype(field.type.field(at)) for at in range(field.type.num_fields))
    return next(filter(None, parts), None)


def tensor_field(name: str, element: Dtype, shape: Shape) -> pa.Field:
    """The field of a column of tensors."""
    return pa.field(name, tensor_type(element, shape), metadata=dtype_metadata(element) or None)


def element_and_shape(field: pa.Field) -> tuple[Dtype, Shape]:
    """The dtype and the shape of a column of tensors, as NumPy has them: without the axis that complex numbers add.

    ValueError if the type is not one of tensors, or the dtype in its metadata does not fit it.

    >>> from tfrecord_io.bytes.format.dtypes import Dtype
    >>> dtype, shape = element_and_shape(tensor_field("x", Dtype.of_name("complex64"), (None, 4)))
    >>> dtype.name, shape
    ('complex64', (None, 4))
    """
    if not is_any_tensor(field.type):
        raise ValueError(f"{field.type} is not a type of tensors")
    axes = axes_of(field.type)
    element = Dtype.of_arrow(tensor_value_type(field.type), field.metadata)
    if element.inner and axes[-1:] != element.inner:
        raise ValueError(f"the metadata says {element.name}, and the last axis of {axes} is not {element.inner[0]}")
    return element, axes[: len(axes) - len(element.inner)]


# ---- types from the metadata in a file


def tensor_type_from_metadata(name: str, storage: pa.DataType, text: bytes) -> pa.DataType:
    """The extension type `name` over `storage`, from its metadata in an untrusted file.

    Only what this package's writers produce is accepted, anything else is a ValueError: a permutation, unknown keys,
    axes that a record could not hold, or that do not fit the storage.

    >>> tensor_type_from_metadata("arrow.fixed_shape_tensor", pa.list_(pa.int8(), 6), b'{"shape": [2, 3]}').shape
    [2, 3]
    >>> tensor_type_from_metadata("arrow.fixed_shape_tensor", pa.list_(pa.int8(), 6), b'{"shape": [-2, -3]}')
    Traceback (most recent call last):
    ValueError: an axis of a tensor is -2
    """
    if len(text) > _MAX_METADATA_BYTES:
        raise ValueError(f"the metadata of a tensor has {len(text)} bytes")
    import json  # for tensors only

    try:
        metadata = json.loads(text or b"{}")
    except RecursionError:
        raise ValueError("the metadata of a tensor is nested too deep") from None
    if not isinstance(metadata, dict):
        raise ValueError("the metadata of a tensor is not an object")
    type_ = {FIXED_SHAPE: _fixed_shape_type, VARIABLE_SHAPE: _variable_shape_type}[name](storage, metadata)
    if type_.storage_type != storage:
        raise ValueError(f"{type_} is not stored as {storage}")
    return type_


def _fixed_shape_type(storage: pa.DataType, metadata: dict[str, Any]) -> pa.DataType:
    order = metadata.get("permutation")
    if isinstance(order, list) and order == [*range(len(order))]:  # the order of the axes, as earlier versions wrote
        metadata = {key: value for key, value in metadata.items() if key != "permutation"}
    if not t.is_fixed_size_list(storage) or set(metadata) - {"shape", "dim_names"}:
        raise ValueError("tensors of one shape are stored as lists of a fixed size, and have a shape")
    axes = _checked_axes(metadata.get("shape"))
    if None in axes or math.prod(axes) != storage.list_size:  # type: ignore[arg-type]
        raise ValueError(f"the shape {axes} does not have {storage.list_size} values")
    names = _checked_names(metadata, len(axes))
    return pa.fixed_shape_tensor(storage.value_type, axes, dim_names=names and list(names))


def _variable_shape_type(storage: pa.DataType, metadata: dict[str, Any]) -> pa.DataType:
    is_valid = t.is_struct(storage) and [child.name for child in storage] == ["data", "shape"]
    is_valid = is_valid and t.is_list(storage.field("data").type) and t.is_fixed_size_list(storage.field("shape").type)
    if set(metadata) - {"uniform_shape", "dim_names"} or not is_valid:
        raise ValueError("tensors of shapes that vary are stored as their values and their shape")
    ndim = storage.field("shape").type.list_size
    axes = _checked_axes(metadata.get("uniform_shape", [None] * min(ndim, _MAX_AXES + 1)))
    if len(axes) != ndim:
        raise ValueError(f"the shape {axes} does not have {ndim} dimensions")
    return variable_shape_tensor(storage.field("data").type.value_type, axes, _checked_names(metadata, ndim))


def _checked_axes(axes: Any) -> Shape:
    if not isinstance(axes, list) or len(axes) > _MAX_AXES:
        raise ValueError("the shape of a tensor is not a list of its axes")
    for axis in axes:
        if axis is not None and (type(axis) is not int or not 0 <= axis <= _MAX_VALUES):
            raise ValueError(f"an axis of a tensor is {axis!r:.40}")
    check_size(axes)
    return tuple(axes)


def check_size(axes: Iterable[int | None]) -> None:
    """Raise SchemaError if the product of the known dimensions is too large for a record; Arrow leaves out those of 0.

    >>> check_size((2**30, 0, None))
    >>> check_size((2**16, 2**16, 0))
    Traceback (most recent call last):
    tfrecord_io.errors.SchemaError: the shape (65536, 65536, 0) has axes of more values than a record can hold
    """
    if math.prod(axis or 1 for axis in axes) > _MAX_VALUES:
        raise SchemaError(f"the shape {axes} has axes of more values than a record can hold", got=axes)


def _checked_names(metadata: dict[str, Any], ndim: int) -> tuple[str, ...] | None:
    names = metadata.get("dim_names")
    if names is None:
        return None
    if not isinstance(names, list) or len(names) != ndim or not all(isinstance(name, str) for name in names):
        raise ValueError("the names of a tensor's axes are not one text for each")
    return tuple(names)


class EncodingRules(ABC):
    """Rules of an encoding: the columns it stores, and the form of their features."""

    name: ClassVar[str]  # as in column_encoding=, tfr.tensor(encoding=) and the embedded schema
    one_value_per_cell: ClassVar[bool] = True  # a cell is one bytes value; else it is a list of numbers
    companions: ClassVar[bool] = False  # the features x/shape and x/dtype are written next to x
    self_describing: ClassVar[bool] = False  # each bytes value states its dtype and its shape
    adaptive: ClassVar[bool] = False  # for reading only: a record's feature type decides between two other encodings
    dtype_kinds: ClassVar[str]  # NumPy's kinds of the dtypes that can be written; "V" for all of ml_dtypes
    stores_text: ClassVar[bool] = False  # text and bytes of any length can be written

    @property
    def layout(self) -> Layout:
        """Layout of the feature."""
        return Layout.SCALAR if self.one_value_per_cell else Layout.LIST

    def kind(self, element: Dtype) -> Kind:
        """The feature type that tensors of this dtype are read from; ValueError if they cannot be stored so."""
        if not self.stores(element):
            raise ValueError(f'the encoding "{self.name}" does not store {element.name}')
        return Kind.BYTES

    def stores(self, element: Dtype | None) -> bool:
        """True if values of this dtype can be written; None stands for text and bytes of any length."""
        if element is None:
            return self.stores_text
        return element.kind in self.dtype_kinds

    def check(self, element: Dtype | None, shape: Shape = ()) -> None:
        """Raise ValueError where cells of this dtype and shape cannot be written."""
        if not self.stores(element):
            what = "text and bytes" if element is None else element.name
            raise ValueError(f'the encoding "{self.name}" does not store {what}')


class _Own:
    """An encoding of this package, which is loaded when its rules are asked for.

    `place`: its module in `tfrecord_io.columns.arrow.encodings`, and its class.
    """

    def __init__(self, name: str, place: str) -> None:
        self.name, self.place = name, place

    @cached_property
    def rules(self) -> EncodingRules:
        module, _, class_name = self.place.partition(".")
        instance: EncodingRules = getattr(import_module(f"tfrecord_io.columns.arrow.encodings.{module}"), class_name)()
        return instance


IMAGE_ENCODINGS = ("jpeg", "png", "webp")  # of arrays, which become images when they are written
NESTED = "nested"
JSON = "json"


def no_column_to_encode(name: str) -> FeatureNotFoundError:
    """The error for a column whose encoding is stated, and which the data does not have."""
    text = "the data does not have this column"
    hint, hint_cli = (f"{way} states its encoding" for way in ("column_encoding=", "--column-encoding"))
    return FeatureNotFoundError(text, feature=name, hint=hint, hint_cli=hint_cli)


def image_encodings(encodings: Mapping[str, str] | None) -> dict[str, str]:
    """The columns that are stored as images, of the ``column_encoding=`` of a writer."""
    return {column: name for column, name in (encodings or {}).items() if name in IMAGE_ENCODINGS}


class _Composed(EncodingRules):
    """A column of any type as several plain columns, or as JSON."""

    one_value_per_cell = False
    dtype_kinds = ""

    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]


_OWN = (  # a new encoding is a row here
    _Own("list", "list_and_wire.Values"),
    _Own("raw", "raw.Raw"),
    _Own("tensor_proto", "tensor_proto.TensorProtos"),
    _Own("npy", "npy.Npy"),
    _Own("wire", "list_and_wire.Wire"),
    _Composed(NESTED),
    _Composed(JSON),
)
TENSOR_ENCODINGS: Registry[_Own | EncodingRules] = Registry(
    "tensor encoding", EncodingRules, _OWN, "tfrecord_io.tensor_encodings"
)


def encoding_rules(name: str) -> EncodingRules:
    """Find an encoding by its name; ValueError, with the valid names, if it is unknown.

    >>> encoding_rules("raw").companions
    True
    >>> encoding_rules("base64")
    Traceback (most recent call last):
    ValueError: 'base64' is not a tensor encoding; valid names: list, raw, ...
    """
    row = TENSOR_ENCODINGS.get(name)
    if row is None or row.name != name:
        raise ValueError(f"{name!r} is not a tensor encoding; valid names: {', '.join(TENSOR_ENCODINGS.names())}")
    return row.rules if isinstance(row, _Own) else row


def is_composed(name: str | None) -> bool:
    """True if an encoding makes several plain columns of a column, or JSON.

    >>> is_composed("nested"), is_composed("raw"), is_composed(None)
    (True, False, False)
    """
    return name in (NESTED, JSON)


def written_encodings() -> list[str]:
    """The names of the encodings that columns can be written with."""
    return [*(row.name for row in TENSOR_ENCODINGS if not encoding_rules(row.name).adaptive), *IMAGE_ENCODINGS]
