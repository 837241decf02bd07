"""TensorFlow's feature descriptions as schemas, and back.

A column holds what ``tf.io.parse_example`` returns for a feature, as far as a column can: a sparse or ragged tensor is
a column of lists, and a record without the feature is null instead of empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io import list_, scalar, sequence, tensor
from tfrecord_io.apps.tf_compat.tf_features import (
    DTYPES,
    Feature,
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    RowLengths,
    SparseFeature,
    UniformRowLength,
    VarLenFeature,
    as_description,
)
from tfrecord_io.columns import Column, Composite, SparseColumn
from tfrecord_io.errors import SchemaError
from tfrecord_io.kit import printable
from tfrecord_io.typing import Field

_TYPES = {"int64": pa.int64(), "float32": pa.float32(), "string": pa.binary()}


def from_feature_description(
    description: Mapping[str, Any], sequence_features: Mapping[str, Any] | None = None
) -> list[Field]:
    """The fields of a feature description; see `Schema.from_feature_description`.

    A sparse feature, and a ragged one with partitions other than row lengths, becomes a column of lists for its values
    and one for each of its keys.
    """
    fields: dict[str, Field] = {}
    for name, feature in as_description(description).items():
        for f in _fields(name, feature):
            if f.column not in fields or f.column == name:  # its own description has precedence over its use as a key
                fields[f.column] = f
    for name, feature in as_description(sequence_features or {}).items():
        if name in fields:
            raise SchemaError("it is described in the context and as a feature list", feature=name)
        fields[name] = _feature_list(feature).named(name)
    return list(fields.values())


def _fields(name: str, feature: Feature) -> Iterator[Field]:
    if isinstance(feature, RaggedFeature):
        yield from _ragged_fields(name, feature)
    elif isinstance(feature, SparseFeature):
        values = list_(_TYPES[feature.dtype], feature=feature.value_key).named(name)
        sparse = SparseColumn(name, feature.index_keys, feature.dense_shape, feature.already_sorted)
        yield replace(values, metadata={**values.metadata, **sparse.metadata})
        for key in feature.index_keys:
            yield list_("int64").named(key)
    else:
        yield _plain(feature).named(name)


def _plain(feature: FixedLenFeature | VarLenFeature | FixedLenSequenceFeature) -> Field:
    type_ = _TYPES[feature.dtype]
    if isinstance(feature, VarLenFeature):
        return list_(type_)
    if isinstance(feature, FixedLenSequenceFeature):
        if not feature.allow_missing:
            raise SchemaError("a FixedLenSequenceFeature of an Example needs allow_missing=True")
        return tensor(type_, (None, *feature.shape), encoding=Column.LIST) if feature.shape else list_(type_)
    required = feature.default_value is None
    default = _bytes(feature.default_value) if feature.dtype == "string" else feature.default_value
    return _fixed_field(type_, tuple(feature.shape), required=required, default=default)


def _fixed_field(type_: pa.DataType, shape: tuple[int, ...], **keywords: Any) -> Field:
    if not shape:
        return scalar(type_, **keywords)
    if len(shape) == 1:
        return list_(type_, shape[0], **keywords)
    return tensor(type_, shape, encoding=Column.LIST, **keywords)


def _ragged_fields(name: str, feature: RaggedFeature) -> Iterator[Field]:
    values = feature.value_key or name
    is_composite = all(isinstance(partition, RowLengths | UniformRowLength) for partition in feature.partitions)
    if feature.partitions and is_composite:
        sizes = [p.length if isinstance(p, UniformRowLength) else None for p in feature.partitions]
        lengths = [p.key if isinstance(p, RowLengths) else None for p in feature.partitions]
        yield Composite(values, str(_TYPES[feature.dtype]), sequence=(None, *sizes), lengths=tuple(lengths)).field(name)
        return
    yield list_(_TYPES[feature.dtype], feature=values).named(name)
    for partition in feature.partitions:
        if not isinstance(partition, UniformRowLength):
            yield list_("int64").named(partition.key)


def _feature_list(feature: Feature) -> Field:
    type_ = _TYPES[feature.dtype]
    if isinstance(feature, FixedLenSequenceFeature):
        return sequence(_fixed_field(type_, tuple(feature.shape)), required=not feature.allow_missing)
    is_plain_ragged = isinstance(feature, RaggedFeature) and not (feature.partitions or feature.value_key)
    if isinstance(feature, VarLenFeature) or is_plain_ragged:
        return sequence(list_(type_))
    reason = f"a feature list cannot be described by a {type(feature).__name__}"
    raise SchemaError(reason, hint="use FixedLenSequenceFeature or VarLenFeature")


def _bytes(default: Any) -> Any:
    if isinstance(default, list | tuple):
        return [_bytes(item) for item in default]
    return default.encode() if isinstance(default, str) else default


# ---- from schemas


def to_feature_description(fields: Iterable[Field], part: str = Column.CONTEXT) -> dict[str, Feature]:
    """The feature description of one part of a schema; SchemaError if a column cannot be described."""
    if part not in Column.PARTS:
        raise ValueError(f"part={part!r}: expected one of {', '.join(Column.PARTS)}")
    fields = [f for f in fields if f.part == part]
    if part == Column.FEATURE_LIST:
        return {name: feature for f in fields for name, feature in _describe_list(f).items()}
    described = [(f, _sparse_feature(f)) for f in fields]
    indices = {key for _, sparse in described if sparse is not None for key in sparse[1].index_keys}
    description: dict[str, Feature] = {}
    for f, sparse in described:
        if sparse is not None:
            description[sparse[0]] = sparse[1]
        elif f.feature not in indices:
            description.update(_describe(f))
    for f, _ in described:
        for name, feature in _sizes(f).items():
            description.setdefault(name, feature)
    return description


def _sizes(f: Field) -> dict[str, Feature]:
    """The features that state the shape of the arrays of a column."""
    source = f.shape_source
    if source is None:  # of fields of structs, which may be in lists
        return {name: VarLenFeature("int64") for source in f.shape_sources for name in source.sizes}
    is_single = not isinstance(source.axes, str) and not f.is_list_of_arrays
    size = FixedLenFeature((), "int64", None if f.required else 0)
    return {name: size if is_single else VarLenFeature("int64") for name in source.sizes}


def _sparse_feature(f: Field) -> tuple[str, SparseFeature] | None:
    """The name and the feature of a sparse column, whose values are this field; None if it is another field."""
    sparse = SparseColumn.from_metadata(f.metadata, f.feature)
    dtype = None if sparse is None else _dtype(f, f.type)
    if sparse is None or dtype is None or None in sparse.shape or len(sparse.index) != len(sparse.shape):
        return None
    is_single_index = len(sparse.index) == 1
    index, size = (
        (sparse.index[0], sparse.shape[0]) if is_single_index else (sparse.index, _require_known(sparse.shape))
    )
    return sparse.name, SparseFeature(index, f.feature, dtype=dtype, size=size or 0, already_sorted=sparse.is_sorted)


def _describe(f: Field) -> dict[str, Feature]:
    if (composite := Composite.of(f)) is not None:
        dtype = next((name for name, type_ in _TYPES.items() if type_ == composite.value_type), None)
        if composite.encoding != Composite.BY_VALUE or composite.shape or not composite.sequence or dtype is None:
            reason = "TensorFlow has no feature description for this column"
            raise SchemaError(reason, feature=f.column, got=str(f.type))
        rows = zip(composite.lengths, composite.sequence[1:], strict=True)
        partitions = tuple(UniformRowLength(size or 0) if key is None else RowLengths(key) for key, size in rows)
        return {f.column: RaggedFeature(dtype, composite.values, partitions)}
    if f.encoding == Column.NESTED:
        return dict(_describe_nested(f))
    if not _is_bytes(f) and (t.is_struct(f.type) or (Column(f.type).is_list and t.is_struct(f.type.value_type))):
        children = [leaf for leaf in _leaves(f, f.type) if leaf.kind.list_name]
        return {leaf.feature: VarLenFeature(DTYPES[leaf.kind]) for leaf in children}
    if f.is_list_of_arrays:
        size = f.type.list_size if t.is_fixed_size_list(f.type) and f.required else None
        return {f.feature: VarLenFeature("string") if size is None else FixedLenFeature((size,), "string")}
    dtype = _dtype(f, f.type)
    if dtype is None:
        return {}
    default = _wire_default(f)
    fixed = _shape(f, f.type)
    if fixed is not None and (f.required or default is not None):
        return {f.feature: FixedLenFeature(fixed, dtype, default)}
    if not _is_bytes(f) and f.shape is not None and f.shape[:1] == (None,) and None not in f.shape[1:]:
        return {f.feature: FixedLenSequenceFeature(_require_known(f.shape[1:]), dtype, allow_missing=True)}
    return {f.feature: VarLenFeature(dtype)}


def _describe_nested(f: Field) -> Iterator[tuple[str, Feature]]:
    """Lists in lists are ragged, under the name of the part of the column; other parts are as lists."""
    parts = Column(f.to_arrow().with_name(f.feature)).nested_leaves
    of_others = {name for part in parts for name in part.lengths}
    for part, leaf, lengths in parts:
        dtype = DTYPES.get(leaf.kind)
        if dtype is None or leaf.feature in of_others:
            continue
        if lengths:
            yield part, RaggedFeature(dtype, leaf.feature, tuple(map(RowLengths, lengths)))
        else:
            yield leaf.feature, VarLenFeature(dtype)


def _describe_list(f: Field) -> dict[str, Feature]:
    dtype = _dtype(f, f.value)
    if dtype is None:
        return {}
    fixed = _shape(f, f.value)
    if fixed is None:
        return {f.feature: VarLenFeature(dtype)}
    return {f.feature: FixedLenSequenceFeature(fixed, dtype, allow_missing=not f.required)}


def _dtype(f: Field, type_: pa.DataType) -> str | None:
    """TensorFlow's dtype of a value; None for a column of nulls."""
    if _is_bytes(f):
        return "string"
    leaf = _leaves(f, Column(type_).value_type)[0]
    return DTYPES.get(leaf.kind)


def _is_bytes(f: Field) -> bool:
    """True if each value, or array, is stored as bytes; so are dtypes without lists of numbers, and JSON."""
    if f.is_stored_as_bytes or f.encoding == Column.JSON:
        return True
    if not Column(f.value).is_tensor:
        return False
    element = Column(f.tensor).dtype_and_shape[0]
    return bool(element.inner) or t.is_fixed_size_binary(element.arrow)


def _leaves(f: Field, type_: pa.DataType) -> Any:
    try:
        return Column(pa.field(f.feature, type_)).leaves
    except Column.UnsupportedType as error:
        raise SchemaError(error.reason, feature=f.feature, got=str(type_), hint=error.advice) from error


def _shape(f: Field, type_: pa.DataType) -> tuple[int, ...] | None:
    """The fixed shape of the values in TensorFlow; None where it varies."""
    if _is_bytes(f) or not (Column(type_).is_list or isinstance(type_, pa.BaseExtensionType)):
        return ()
    if f.shape is None or None in f.shape:
        return () if not Column(type_).is_list and f.shape is None else None
    return _require_known(f.shape)


def _require_known(shape: tuple[int | None, ...]) -> tuple[int, ...]:
    return tuple(axis for axis in shape if axis is not None)


def _wire_default(f: Field) -> Any:
    """The default as it would be stored: a number, bytes, or a list of them."""
    if f.default is None or _is_bytes(f) or (Column(f.type).is_tensor and None in (f.shape or ())):
        return None
    array = f.default_array()
    while Column(array.type).is_list or isinstance(array, pa.ExtensionArray):
        array = array.storage if isinstance(array, pa.ExtensionArray) else array.flatten()
    dtype = _dtype(f, array.type) or "string"
    try:
        values = _cast(array, dtype).to_pylist()
    except pa.ArrowException as error:
        reason = f"the default {printable(repr(f.default))} cannot be stored in a TFRecord"
        raise SchemaError(reason, feature=f.feature) from error
    return values[0] if _shape(f, f.type) == () else values


def _cast(array: pa.Array, dtype: str) -> pa.Array:
    if dtype == "float32":
        return array.cast(pa.float32())
    if dtype == "int64":
        narrow = t.is_date32(array.type) or t.is_time32(array.type)
        return (array.cast(pa.int32()) if narrow else array).cast(pa.int64())
    return array.cast(pa.string()).cast(pa.binary()) if t.is_decimal(array.type) else array.cast(pa.binary())
