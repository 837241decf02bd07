"""Arrow's types of tensor columns: of one shape throughout, and of shapes that vary.

Both are canonical extension types (https://arrow.apache.org/docs/format/CanonicalExtensions.html). Of the second pyarrow has no
class: Arrow's C++ knows it from version 26 on, so it is made by way of a schema message, and for older versions there is a class here.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import lru_cache
from typing import Any

import pyarrow as pa

from tfrecord_io.format.dtypes import DTYPE_KEY, Element, element_of

Shape = tuple[int | None, ...]

FIXED_SHAPE = "arrow.fixed_shape_tensor"
VARIABLE_SHAPE = "arrow.variable_shape_tensor"

_NAME, _METADATA = b"ARROW:extension:name", b"ARROW:extension:metadata"
_NO_NAME = b"tfrecord_io:ext:name"  # of the same length; under it Arrow builds the storage type and shows the metadata


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

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.storage_type, self._serialized)


@lru_cache(maxsize=256)
def variable_shape_tensor(
    value_type: pa.DataType, shape: Shape, dim_names: tuple[str, ...] | None = None
) -> pa.BaseExtensionType:
    """The type of tensors of one rank and of shapes that vary.

    Parameters
    ----------
    value_type : pyarrow.DataType
        Of one value.
    shape : tuple of int or None
        The size of each axis that is the same throughout; None where it varies.
    dim_names : tuple of str, optional
        A name for each axis.

    Notes
    -----
    Stored as ``struct<data: list<value>, shape: fixed_size_list<int32>[ndim]>``: the values in C order, and the shape.

    Examples
    --------
    >>> variable_shape_tensor(pa.float32(), (None, 3)).storage_type
    StructType(struct<data: list<item: float>, shape: fixed_size_list<item: int32>[2]>)
    """
    storage = pa.struct([("data", pa.list_(value_type)), ("shape", pa.list_(pa.int32(), len(shape)))])
    said: dict[str, Any] = {} if shape.count(None) == len(shape) else {"uniform_shape": shape}
    if dim_names is not None:
        said["dim_names"] = dim_names
    serialized = json.dumps(said).encode()
    register_variable_shape_tensor()
    described = pa.field("", storage, metadata={_NAME: VARIABLE_SHAPE.encode(), _METADATA: serialized})
    return pa.ipc.read_schema(pa.schema([described]).serialize()).field(0).type


def register_variable_shape_tensor() -> None:
    """Let Arrow know the type of tensors whose shapes vary, where it does not."""
    storage = pa.struct([("data", pa.list_(pa.float32())), ("shape", pa.list_(pa.int32(), 1))])
    with suppress(pa.ArrowKeyError):  # it is registered: by Arrow, by us, or by somebody else
        pa.register_extension_type(_VariableShapeTensor(storage, b"{}"))


def is_fixed_shape_tensor(type_: pa.DataType) -> bool:
    """Whether `type_` is Arrow's type of tensors of one shape."""
    return isinstance(type_, pa.BaseExtensionType) and type_.extension_name == FIXED_SHAPE


def is_variable_shape_tensor(type_: pa.DataType) -> bool:
    """Whether `type_` is Arrow's type of tensors of shapes that vary."""
    return isinstance(type_, pa.BaseExtensionType) and type_.extension_name == VARIABLE_SHAPE


def is_any_tensor(type_: pa.DataType) -> bool:
    """Whether `type_` is one of the two."""
    return is_fixed_shape_tensor(type_) or is_variable_shape_tensor(type_)


def value_type_of(type_: pa.DataType) -> pa.DataType:
    """Type of one value of a type of tensors."""
    storage = type_.storage_type
    return storage.value_type if is_fixed_shape_tensor(type_) else storage.field("data").type.value_type


@lru_cache(maxsize=256)
def axes_of(type_: pa.DataType) -> Shape:
    """The size of each axis of a type of tensors, None where it varies; logical ones: a permutation is applied.

    Raises
    ------
    ValueError
        The type's metadata is damaged.
    """
    if is_fixed_shape_tensor(type_):
        return tuple(type_.shape[axis] for axis in type_.permutation) if type_.permutation else tuple(type_.shape)
    ndim = type_.storage_type.field("shape").type.list_size
    said = _described(type_)
    axes = said.get("uniform_shape") or [None] * ndim
    order = said.get("permutation") or range(ndim)
    if (
        len(axes) != ndim
        or sorted(order) != list(range(ndim))
        or not all(axis is None or type(axis) is int for axis in axes)
    ):
        raise ValueError(f"the metadata of {type_} is damaged")
    return tuple(axes[axis] for axis in order)


def permutation_of(type_: pa.DataType) -> tuple[int, ...] | None:
    """Which stored axis each logical one is, None where they are the same."""
    found = type_.permutation if is_fixed_shape_tensor(type_) else _described(type_).get("permutation")
    return None if not found or list(found) == sorted(found) else tuple(found)


def without_permutation(type_: pa.DataType) -> pa.DataType:
    """The type of the same tensors whose axes are stored in their order."""
    order = permutation_of(type_)
    if order is None:
        return type_
    axes, names = axes_of(type_), dim_names_of(type_)
    if not is_fixed_shape_tensor(type_):
        return variable_shape_tensor(value_type_of(type_), axes)
    return pa.fixed_shape_tensor(
        type_.value_type, axes, dim_names=None if names is None else [names[axis] for axis in order]
    )


def dim_names_of(type_: pa.DataType) -> tuple[str, ...] | None:
    """Names of the stored axes, None where they have none."""
    found = type_.dim_names if is_fixed_shape_tensor(type_) else _described(type_).get("dim_names")
    return tuple(found) if found else None


def logical_dim_names(type_: pa.DataType) -> tuple[str, ...] | None:
    """Names of the axes in their logical order, None where they have none."""
    names, order = dim_names_of(type_), permutation_of(type_)
    return names if names is None or order is None else tuple(names[axis] for axis in order)


def _described(type_: pa.BaseExtensionType) -> dict[str, Any]:
    """What the metadata of the type says."""
    stream = pa.schema([pa.field("", type_)]).serialize().to_pybytes().replace(_NAME, _NO_NAME)
    text = (pa.ipc.read_schema(pa.py_buffer(stream)).field(0).metadata or {}).get(_METADATA)
    found = json.loads(text or b"{}")
    if not isinstance(found, dict):
        raise ValueError(f"the metadata of {type_} is damaged")
    return found


def tensor_type(of: Element, shape: Shape, dim_names: tuple[str, ...] | None = None) -> pa.DataType:
    """The type of a column of tensors of this shape; None is a free axis.

    Examples
    --------
    >>> from tfrecord_io.format.dtypes import element
    >>> tensor_type(element("complex64"), (4,)).shape
    [4, 2]
    """
    axes = (*shape, *of.inner)
    names = None if dim_names is None or len(dim_names) != len(axes) else dim_names
    if None in axes:
        return variable_shape_tensor(of.arrow, axes, names)
    return pa.fixed_shape_tensor(of.arrow, axes, dim_names=names and list(names))


def mark(of: Element) -> dict[bytes, bytes]:
    """The metadata of a field by which `element_of` knows the dtype; empty where its type says it."""
    return {DTYPE_KEY: of.name.encode()} if of.marked else {}


def tensor_field(name: str, of: Element, shape: Shape, *, nullable: bool = True) -> pa.Field:
    """The field of a column of tensors."""
    return pa.field(name, tensor_type(of, shape), nullable=nullable, metadata=mark(of) or None)


def element_and_shape(field: pa.Field) -> tuple[Element, Shape]:
    """The dtype and the shape of a column of tensors, as NumPy sees them: without the axis that complex numbers add.

    Raises
    ------
    ValueError
        The type is none of tensors, or its mark does not fit it.

    Examples
    --------
    >>> from tfrecord_io.format.dtypes import element
    >>> found, shape = element_and_shape(tensor_field("x", element("complex64"), (None, 4)))
    >>> found.name, shape
    ('complex64', (None, 4))
    """
    if not is_any_tensor(field.type):
        raise ValueError(f"{field.type} is no type of tensors")
    axes = axes_of(field.type)
    found = element_of(value_type_of(field.type), field.metadata)
    if found.inner and axes[-1:] != found.inner:
        raise ValueError(f"the mark says {found.name}, and the last axis of {axes} is not {found.inner[0]}")
    return found, axes[: len(axes) - len(found.inner)]
