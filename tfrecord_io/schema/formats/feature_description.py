"""Feature descriptions of TensorFlow as schemas, and back.

A column is what ``tf.io.parse_example`` gives of a feature, as far as a column can be: a sparse or ragged tensor is
lists, and a record without the feature is null instead of empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.errors import SchemaError, printable
from tfrecord_io.format.kinds import Kind
from tfrecord_io.schema.composite import VALUES, Composite, assembly_of
from tfrecord_io.schema.field import CONTEXT, FEATURE_LIST, PARTS, Field
from tfrecord_io.schema.field_makers import bytes_, list_, scalar, sequence, tensor
from tfrecord_io.schema.formats.row_partitions import RowLengths, UniformRowLength
from tfrecord_io.schema.formats.tf_features import (
    DTYPES,
    KINDS,
    Feature,
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
    as_description,
)
from tfrecord_io.schema.schema import Schema
from tfrecord_io.schema.shapes import Shape
from tfrecord_io.schema.tensor_types import element_and_shape, is_any_tensor, value_type_of
from tfrecord_io.schema.types import LIST, RAW, TENSOR_PROTO, UnsupportedType, is_list_like, leaves, value_type

_TYPES = {"int64": pa.int64(), "float32": pa.float32(), "string": pa.binary()}


def schema_of(description: Mapping[str, Any], sequence_features: Mapping[str, Any] | None = None) -> Schema:
    """The Schema of a feature description; see `Schema.from_feature_description`.

    A sparse feature, and a ragged one with partitions other than row lengths, becomes a column of lists for its values
    and one for each of its keys.
    """
    fields: dict[str, Field] = {}
    found = as_description(description)
    for name, feature in found.items():
        for f in _fields(name, feature):
            if f.column not in fields or f.column == name:  # a description of its own says more than a key
                fields[f.column] = f
    for name, feature in as_description(sequence_features or {}).items():
        if name in fields:
            raise SchemaError("it is described in the context and as a feature list", feature=name)
        fields[name] = _feature_list(feature).named(name)
    return Schema(fields.values())


def _fields(name: str, feature: Feature) -> Iterator[Field]:
    if isinstance(feature, RaggedFeature):
        yield from _ragged(name, feature)
        return
    if isinstance(feature, SparseFeature):
        yield list_(_TYPES[feature.dtype], feature=feature.value_key).named(name)
        for key in feature.index_keys:
            yield list_("int64").named(key)
        return
    yield _plain(feature).named(name)


def _plain(feature: FixedLenFeature | VarLenFeature | FixedLenSequenceFeature) -> Field:
    type_ = _TYPES[feature.dtype]
    if isinstance(feature, VarLenFeature):
        return list_(type_)
    if isinstance(feature, FixedLenSequenceFeature):
        if not feature.allow_missing:
            raise SchemaError("a FixedLenSequenceFeature of an Example needs allow_missing=True")
        return tensor(type_, (None, *feature.shape), encoding=LIST) if feature.shape else list_(type_)
    required = feature.default_value is None
    default = _bytes(feature.default_value) if feature.dtype == "string" else feature.default_value
    return _fixed(type_, feature.shape, required=required, default=default)


def _fixed(type_: pa.DataType, shape: tuple[int, ...], **keywords: Any) -> Field:
    if not shape:
        return bytes_(**keywords) if t.is_binary(type_) else scalar(type_, **keywords)
    if len(shape) == 1:
        return list_(type_, shape[0], **keywords)
    return tensor(type_, shape, encoding=LIST, **keywords)


def _ragged(name: str, feature: RaggedFeature) -> Iterator[Field]:
    values = feature.value_key or name
    if not feature.partitions:
        yield list_(_TYPES[feature.dtype], feature=values).named(name)
        return
    if all(isinstance(each, RowLengths | UniformRowLength) for each in feature.partitions):
        sizes = [each.length if isinstance(each, UniformRowLength) else None for each in feature.partitions]
        lengths = [each.key if isinstance(each, RowLengths) else None for each in feature.partitions]
        yield Composite(values, str(_TYPES[feature.dtype]), sequence=(None, *sizes), lengths=tuple(lengths)).field(name)
        return
    yield list_(_TYPES[feature.dtype], feature=values).named(name)
    for each in feature.partitions:
        if not isinstance(each, UniformRowLength):
            yield list_("int64").named(each.key)


def _feature_list(feature: Feature) -> Field:
    type_ = _TYPES[feature.dtype]
    if isinstance(feature, FixedLenSequenceFeature):
        return sequence(_fixed(type_, feature.shape), required=not feature.allow_missing)
    if isinstance(feature, VarLenFeature) or (
        isinstance(feature, RaggedFeature) and not (feature.partitions or feature.value_key)
    ):
        return sequence(list_(type_))
    raise SchemaError(
        f"a feature list is no {type(feature).__name__} here", advice="use FixedLenSequenceFeature or VarLenFeature"
    )


def _bytes(default: Any) -> Any:
    if isinstance(default, list | tuple):
        return [_bytes(each) for each in default]
    return default.encode() if isinstance(default, str) else default


# ---- and back


def description_of(schema: Schema, part: str = CONTEXT) -> dict[str, Feature]:
    """The feature description of one part of a schema; see `Schema.to_feature_description`.

    Raises
    ------
    SchemaError
        A column has no description.
    """
    if part not in PARTS:
        raise ValueError(f"there is no part {part!r}: expected one of {', '.join(PARTS)}")
    found: dict[str, Feature] = {}
    for f in schema:
        if f.part == part:
            found.update(_described_list(f) if part == FEATURE_LIST else _described(f))
    return found


def _described(f: Field) -> dict[str, Feature]:
    assembly = assembly_of(f)
    if assembly is not None:
        return {f.column: _described_assembly(f, assembly)}
    if t.is_struct(f.type) or (is_list_like(f.type) and t.is_struct(f.type.value_type)):
        return {
            leaf.feature: VarLenFeature(DTYPES[leaf.kind]) for leaf in _leaves(f, f.type) if leaf.kind is not Kind.NONE
        }
    dtype = _dtype(f, f.type)
    if dtype is None:
        return {}
    default = _wire_default(f)
    fixed = _shape(f, f.type)
    if fixed is not None and (f.required or default is not None):
        return {f.feature: FixedLenFeature(fixed, dtype, default)}
    if not _is_bytes(f) and f.shape is not None and f.shape[:1] == (None,) and None not in f.shape[1:]:
        return {f.feature: FixedLenSequenceFeature(_known(f.shape[1:]), dtype, allow_missing=True)}
    return {f.feature: VarLenFeature(dtype)}


def _described_list(f: Field) -> dict[str, Feature]:
    dtype = _dtype(f, f.value)
    if dtype is None:
        return {}
    fixed = _shape(f, f.value)
    if fixed is None:
        return {f.feature: VarLenFeature(dtype)}
    return {f.feature: FixedLenSequenceFeature(fixed, dtype, allow_missing=not f.required)}


def _described_assembly(f: Field, assembly: Composite) -> Feature:
    type_ = assembly.value_type
    if assembly.encoding != VALUES or assembly.shape or not assembly.sequence or type_ not in _TYPES.values():
        raise SchemaError("no feature description gives this column", feature=f.column, got=str(f.type))
    partitions = tuple(
        RowLengths(key) if key is not None else UniformRowLength(size or 0)
        for key, size in zip(assembly.lengths, assembly.sequence[1:], strict=True)
    )
    return RaggedFeature(next(name for name, each in _TYPES.items() if each == type_), assembly.values, partitions)


def _dtype(f: Field, type_: pa.DataType) -> str | None:
    """The dtype TensorFlow has for a value; None for a column of nulls."""
    if _is_bytes(f):
        return "string"
    leaf = _leaves(f, value_type_of(type_) if is_any_tensor(type_) else value_type(type_))[0]
    return None if leaf.kind is Kind.NONE else DTYPES[leaf.kind]


def _is_bytes(f: Field) -> bool:
    """Whether a record has each value, or array, as bytes: so it is with dtypes of which there are no lists of numbers."""
    if f.encoding in (RAW, TENSOR_PROTO):
        return True
    of = element_and_shape(f.tensor)[0] if is_any_tensor(f.value) else None
    return of is not None and (bool(of.inner) or t.is_fixed_size_binary(of.arrow))


def _leaves(f: Field, type_: pa.DataType) -> Any:
    try:
        return leaves(pa.field(f.feature, type_))
    except UnsupportedType as error:
        raise SchemaError(error.reason, feature=f.feature, got=str(type_), advice=error.advice) from error


def _shape(f: Field, type_: pa.DataType) -> tuple[int, ...] | None:
    """The number of values as TensorFlow has it; None where it is free."""
    if _is_bytes(f) or not (is_list_like(type_) or isinstance(type_, pa.BaseExtensionType)):
        return ()
    if f.shape is None or None in f.shape:
        return () if not is_list_like(type_) and f.shape is None else None
    return _known(f.shape)


def _known(shape: Shape) -> tuple[int, ...]:
    return tuple(axis for axis in shape if axis is not None)


def _wire_default(f: Field) -> Any:
    """The default as a record would have it: a number, bytes, or a list of them."""
    if f.default is None or _is_bytes(f) or (is_any_tensor(f.type) and None in (f.shape or ())):
        return None
    array = f.default_array()
    while is_list_like(array.type) or isinstance(array, pa.ExtensionArray):
        array = array.storage if isinstance(array, pa.ExtensionArray) else array.flatten()
    kind = KINDS[_dtype(f, array.type) or "string"]
    try:
        values = _cast(array, kind).to_pylist()
    except pa.ArrowException as error:
        raise SchemaError(
            f"the default {printable(repr(f.default))} has no form in a record", feature=f.feature
        ) from error
    if _shape(f, f.type) == ():
        return values[0]
    return values


def _cast(array: pa.Array, kind: Kind) -> pa.Array:
    if kind is Kind.FLOAT:
        return array.cast(pa.float32())
    if kind is Kind.INT64:
        narrow = t.is_date32(array.type) or t.is_time32(array.type)
        return (array.cast(pa.int32()) if narrow else array).cast(pa.int64())
    return array.cast(pa.string()).cast(pa.binary()) if t.is_decimal(array.type) else array.cast(pa.binary())
