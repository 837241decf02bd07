"""The type map: which features a column is written as, each of which feature type and with how many values.

This is the only place that decides it. A column is written as its *leaves*: itself, or the children of a struct, whose
names are joined by "/". The writer, the embedded schema and the reader that restores a column all use the same leaves.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.errors import SchemaError, say
from tfrecord_io.format.dtypes import Element, element_of
from tfrecord_io.format.kinds import Kind, Layout, companions
from tfrecord_io.schema.tensor_types import (
    TENSOR_ENCODINGS,
    EncodingRules,
    Shape,
    element_and_shape,
    encoding_rules,
    is_any_tensor,
    is_composed,
)
from tfrecord_io.schema.types import (
    UnsupportedType,
    is_bytes,
    is_list_like,
    is_text,
    is_text_or_bytes,
    kind_of,
    plain_kind,
    plain_list_kind,
    relist,
    supported_element_and_shape,
    without_run_ends,
)

ENCODING_KEY = b"tfrecord_io.encoding"  # field metadata; absent means LIST
PART_KEY = b"tfrecord_io.part"  # field metadata: the part of a SequenceExample that holds a list column
FEATURE_LIST = "feature_list"
LIST = "list"  # the values themselves
RAW = "raw"  # the values' bytes, C order, little-endian, with companion features
BY_WIRE = "wire"  # of a declared tensor: RAW where a record has bytes, LIST where it has numbers
_MAX_VALUES = 2**31 - 1  # in one record: no payload has more bytes


@dataclass(frozen=True, slots=True)
class Leaf:
    """One feature and the Arrow values that it holds.

    `kind` and `layout` are those of the feature in a record: NONE and NULL where nothing is written, BYTES and SCALAR
    where a cell is one bytes value.
    """

    feature: str  # the names of a struct's children are joined by "/"
    path: tuple[str, ...]  # struct children from the column down to the leaf, empty for a plain column
    type: pa.DataType  # logical, without run-ends; inside a list of structs it is a list of the child's type
    kind: Kind
    layout: Layout
    encoding: str = LIST
    element: Element | None = None  # of a column of tensors, as is `shape`
    shape: Shape | None = None

    @property
    def companions(self) -> tuple[str, ...]:
        """Names of the companion features: shape (INT64, LIST) and dtype (BYTES, SCALAR)."""
        if self.encoding == LIST or not encoding_rules(self.encoding).companions:
            return ()
        return companions(self.feature)


def encoding_of(field: pa.Field) -> str | None:
    """The encoding in a field's metadata, None if there is none."""
    value = (field.metadata or {}).get(ENCODING_KEY)
    return None if value is None else value.decode("utf-8", "backslashreplace")


def with_encoding(field: pa.Field, encoding: str | None) -> pa.Field:
    """`field` with this encoding in its metadata; None and "list", the default, remove it."""
    metadata = {k: v for k, v in (field.metadata or {}).items() if k != ENCODING_KEY}
    if encoding not in (None, LIST):
        metadata[ENCODING_KEY] = encoding.encode()
    return field.with_metadata(metadata or None)


def is_nested(field: pa.Field) -> bool:
    """Whether the metadata of a field says that the column is stored as several features, or as JSON."""
    return bool(field.metadata) and is_composed(encoding_of(field))


def is_marked_feature_list(field: pa.Field) -> bool:
    """Whether the metadata says that the column is a feature list."""
    return (field.metadata or {}).get(PART_KEY) == FEATURE_LIST.encode()


def step_field(field: pa.Field) -> pa.Field | None:
    """The field of one step, if the column is a feature list: lists of lists, or lists marked as a feature list.

    UnsupportedType if the steps are structs.
    """
    type = without_run_ends(field.type)
    if not is_list_like(type):
        return None
    is_marked = is_marked_feature_list(field)
    step = without_run_ends(type.value_type)
    if not is_marked and not is_list_like(step) and not is_any_tensor(step):
        return None
    if t.is_struct(step.value_type if is_list_like(step) else step):
        reason = f"a feature list of structs ({field.type}) cannot be stored in a TFRecord"
        raise UnsupportedType(field.name, reason, "make its fields columns of their own")
    return field.with_type(type.value_type)


def leaves(field: pa.Field) -> list[Leaf]:
    """List the features that a column is written as.

    The metadata of the field, or of a struct's child, may contain ``tfrecord_io.encoding``. UnsupportedType if the type
    cannot be stored in a TFRecord, or not with this encoding.

    >>> [leaf.feature for leaf in leaves(pa.field("a", pa.struct([("x", pa.int8()), ("y", pa.string())])))]
    ['a/x', 'a/y']
    """
    kind = plain_kind(field.type)
    if kind is not None and not field.metadata:
        return [Leaf(field.name, (), field.type, kind, Layout.SCALAR)]
    kind = plain_list_kind(field.type)
    if kind is not None and not field.metadata and not field.type.value_field.metadata:
        return [Leaf(field.name, (), relist(field.type, field.type.value_type), kind, Layout.LIST)]
    collected: list[Leaf] = []
    _collect(field, field.name, (), None, LIST, collected)
    return collected


def _collect(
    field: pa.Field,
    feature: str,
    path: tuple[str, ...],
    outer: pa.DataType | None,
    encoding: str,
    collected: list[Leaf],
) -> None:
    """Add the leaves of `field`, which is inside the list type `outer`, if any."""
    encoding = encoding_of(field) or encoding
    type = without_run_ends(field.type)
    if t.is_struct(type):
        if type.num_fields == 0:
            raise UnsupportedType(feature, "a struct without fields has no values to write", "leave the column out")
        for child in type:
            _collect(child, f"{feature}/{child.name}", (*path, child.name), outer, encoding, collected)
    elif is_any_tensor(type):
        collected.append(_tensor_leaf(field.with_type(type), feature, path, outer, encoding))
    elif is_list_like(type):
        if outer is not None:
            advice = say('write it with {record_type="sequence_example"}, declare a tensor by {schema=}') | "flatten it"
            raise UnsupportedType(feature, f"a list of lists ({field.type}) cannot be stored in an Example", advice)
        _collect(type.value_field, feature, path, type, encoding, collected)
    else:
        logical = type if outer is None else relist(outer, type)
        kind = kind_of(type, feature)
        layout = Layout.NULL if kind == Kind.NONE else Layout.SCALAR if outer is None else Layout.LIST
        if _has_one_value(encoding, type, feature):
            kind, layout = Kind.BYTES, Layout.SCALAR
        else:
            encoding = LIST
        collected.append(Leaf(feature, path, logical, kind, layout, encoding))


def _has_one_value(encoding: str, type: pa.DataType, feature: str) -> bool:
    """Whether all values of a row are stored as one bytes value; the encoding is checked."""
    rules = _rules(encoding, feature)
    if not rules.one_value_per_cell or t.is_null(type):
        return False
    value = type.value_type if t.is_dictionary(type) else type
    try:
        rules.check(None if is_text_or_bytes(value) else element_of(value))
    except ValueError:
        reason = f'the encoding "{encoding}" does not store values of type {type}'
        raise UnsupportedType(feature, reason, "cast the column or leave its encoding out") from None
    return True


def _rules(encoding: str, feature: str) -> EncodingRules:
    if not TENSOR_ENCODINGS.has(encoding):
        reason = f"{encoding!r} is not a tensor encoding"
        raise UnsupportedType(feature, reason, f"valid names: {', '.join(TENSOR_ENCODINGS.names())}")
    return encoding_rules(encoding)


def _tensor_leaf(
    field: pa.Field, feature: str, path: tuple[str, ...], outer: pa.DataType | None, encoding: str
) -> Leaf:
    if outer is not None:
        advice = say('write it with {record_type="sequence_example"}')
        raise UnsupportedType(feature, "a list of tensors cannot be stored in an Example", advice)
    element, shape = supported_element_and_shape(field, feature)
    rules = _rules(encoding, feature)
    try:
        rules.check(element, shape)
    except ValueError as error:
        raise UnsupportedType(feature, str(error), f'use the encoding "{RAW}"') from None
    if rules.adaptive:
        rules = encoding_rules(LIST)
    return Leaf(feature, path, field.type, rules.kind(element), rules.layout, rules.name, element, shape)


def as_shape(source: Any) -> Shape:
    """A shape from numbers, None and −1, from one number, or from TensorFlow's TensorShape; SchemaError for others.

    >>> as_shape([28, -1])
    (28, None)
    """
    if hasattr(source, "as_list"):  # tf.TensorShape
        source = source.as_list()
    try:
        sizes = [source] if hasattr(source, "__index__") or isinstance(source, str | bytes) else source
        axes = tuple(None if axis is None or operator.index(axis) == -1 else operator.index(axis) for axis in sizes)
    except TypeError:
        raise SchemaError(f"{source!r} is not a shape", got=source) from None
    if any(axis is not None and axis < 0 for axis in axes):
        raise SchemaError(f"the shape {axes} has a negative axis", got=source)
    if fixed_part(axes) > _MAX_VALUES:
        raise SchemaError(f"the shape {axes} has more values than a record can hold", got=source)
    return axes


def fixed_part(shape: Shape) -> int:
    """The product of the known dimensions, of which the number of values is a multiple.

    >>> fixed_part((None, 2, 3))
    6
    """
    return math.prod(axis for axis in shape if axis is not None)


def size_of(shape: Shape) -> int | None:
    """The number of values, None where a dimension is unknown."""
    return None if None in shape else fixed_part(shape)


def shape_of(type_: pa.DataType, metadata: Mapping[bytes, bytes] | None = None) -> Shape | None:
    """The shape that a type of tensors or of fixed size implies; the field's `metadata` has the dtype of tensors.

    ValueError if that dtype does not fit the type.
    """
    if is_any_tensor(type_):
        return element_and_shape(pa.field("", type_, metadata=dict(metadata or {})))[1]
    return (type_.list_size,) if t.is_fixed_size_list(type_) else None


def check_shape(shape: Shape, type_: pa.DataType, implied: Shape | None) -> None:
    """Raise ValueError where values of `type_`, which implies the shape `implied`, cannot have `shape`."""
    if is_any_tensor(type_):
        if shape != implied:
            raise ValueError(f"the shape {shape} is not that of the type, {implied}")
    elif t.is_fixed_size_list(type_):
        if size_of(shape) != type_.list_size:
            raise ValueError(f"the shape {shape} does not have the {type_.list_size} values of the type")
    elif not (is_list_like(type_) or is_text(type_) or is_bytes(type_)) and shape != ():
        raise ValueError(f"a single value cannot have the shape {shape}")
