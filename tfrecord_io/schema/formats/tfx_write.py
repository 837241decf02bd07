"""A field as TFX describes it: a feature's type, domain, presence and number of values, and its tensor.

The protobuf classes of a TFX schema have the fields of schema.proto and path.proto that describe types (source:
tensorflow_metadata/proto/v0). All other fields are unknown here: skipped in text, kept in binary.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.errors import SchemaError
from tfrecord_io.format.kinds import Kind
from tfrecord_io.format.protobuf import message_classes
from tfrecord_io.schema.composite import VALUES, Composite, composite_of
from tfrecord_io.schema.default_values import CONVERSION_ERRORS
from tfrecord_io.schema.field import CONTEXT, Field
from tfrecord_io.schema.leaf import FEATURE_LIST, as_shape
from tfrecord_io.schema.tensor_encodings import encoding_rules
from tfrecord_io.schema.tensor_types import Shape, is_any_tensor, tensor_value_type
from tfrecord_io.schema.types import UnsupportedType, is_list_like, kind_of

_ENUMS = {
    "FeatureType": "TYPE_UNKNOWN 0, BYTES 1, INT 2, FLOAT 3, STRUCT 4",
    "LifecycleStage": (
        "UNKNOWN_STAGE 0, PLANNED 1, ALPHA 2, BETA 3, PRODUCTION 4, DEPRECATED 5, DEBUG_ONLY 6, DISABLED 7, "
        "VALIDATION_DERIVED 9"
    ),
    "StringDomain.Categorical": "CATEGORICAL_UNSPECIFIED 0, CATEGORICAL_YES 1, CATEGORICAL_NO 2",
    "TimeDomain.IntegerTimeFormat": (
        "FORMAT_UNKNOWN 0, UNIX_SECONDS 1, UNIX_MILLISECONDS 2, UNIX_MICROSECONDS 3, UNIX_NANOSECONDS 4, UNIX_DAYS 5"
    ),
    "TensorRepresentation.RowPartitionDType": "UNSPECIFIED 0, INT64 1, INT32 2",
}

_MESSAGES = {
    "Schema": (
        "feature 1 *Feature, string_domain 4 *StringDomain, sparse_feature 6 *SparseFeature, "
        "float_domain 9 *FloatDomain, int_domain 10 *IntDomain, "
        "tensor_representation_group 13 *Schema.TensorRepresentationGroupEntry, "
        "represent_variable_length_as_ragged 14 bool"
    ),
    "Schema.TensorRepresentationGroupEntry": "key 1 string, value 2 TensorRepresentationGroup",
    "Feature": (
        "name 1 string, deprecated 2 bool, value_count 5 ValueCount|shape_type, type 6 FeatureType, "
        "domain 7 string|domain_info, int_domain 9 IntDomain|domain_info, float_domain 10 FloatDomain|domain_info, "
        "string_domain 11 StringDomain|domain_info, bool_domain 13 BoolDomain|domain_info, "
        "presence 14 FeaturePresence|presence_constraints, annotation 16 Annotation, "
        "group_presence 17 FeaturePresenceWithinGroup|presence_constraints, lifecycle_stage 22 LifecycleStage, "
        "shape 23 FixedShape|shape_type, natural_language_domain 24 Anything|domain_info, "
        "mid_domain 26 Anything|domain_info, url_domain 27 Anything|domain_info, "
        "time_domain 28 TimeDomain|domain_info, struct_domain 29 StructDomain|domain_info, "
        "value_counts 32 ValueCountList|shape_type"
    ),
    "Anything": "",
    "Annotation": "tag 1 *string",
    "FixedShape": "dim 2 *FixedShape.Dim",
    "FixedShape.Dim": "size 1 int64, name 2 string",
    "ValueCount": "min 1 int64, max 2 int64",
    "ValueCountList": "value_count 1 *ValueCount",
    "FeaturePresence": "min_fraction 1 double, min_count 2 int64",
    "FeaturePresenceWithinGroup": "required 1 bool",
    "BoolDomain": "name 1 string, true_value 2 string, false_value 3 string",
    "IntDomain": "name 1 string, min 3 int64, max 4 int64, is_categorical 5 bool",
    "FloatDomain": "name 1 string, min 3 float, max 4 float",
    "StringDomain": "name 1 string, value 2 *string, is_categorical 3 StringDomain.Categorical",
    "StructDomain": "feature 1 *Feature, sparse_feature 2 *SparseFeature",
    "TimeDomain": "string_format 1 string|format, integer_format 2 TimeDomain.IntegerTimeFormat|format",
    "SparseFeature": (
        "name 1 string, deprecated 2 bool, dense_shape 5 FixedShape, index_feature 6 *SparseFeature.IndexFeature, "
        "lifecycle_stage 7 LifecycleStage, is_sorted 8 bool, value_feature 9 SparseFeature.ValueFeature, "
        "type 10 FeatureType"
    ),
    "SparseFeature.IndexFeature": "name 1 string",
    "SparseFeature.ValueFeature": "name 1 string",
    "TensorRepresentationGroup": "tensor_representation 1 *TensorRepresentationGroup.TensorRepresentationEntry",
    "TensorRepresentationGroup.TensorRepresentationEntry": "key 1 string, value 2 TensorRepresentation",
    "TensorRepresentation": (
        "dense_tensor 1 TensorRepresentation.DenseTensor|kind, "
        "varlen_sparse_tensor 2 TensorRepresentation.VarLenSparseTensor|kind, "
        "sparse_tensor 3 TensorRepresentation.SparseTensor|kind, "
        "ragged_tensor 4 TensorRepresentation.RaggedTensor|kind"
    ),
    "TensorRepresentation.DefaultValue": (
        "float_value 1 double|kind, int_value 2 int64|kind, bytes_value 3 bytes|kind, uint_value 4 uint64|kind"
    ),
    "TensorRepresentation.DenseTensor": (
        "column_name 1 string, shape 2 FixedShape, default_value 3 TensorRepresentation.DefaultValue"
    ),
    "TensorRepresentation.VarLenSparseTensor": "column_name 1 string",
    "TensorRepresentation.SparseTensor": (
        "dense_shape 1 FixedShape, index_column_names 2 *string, value_column_name 3 string, already_sorted 4 bool"
    ),
    "TensorRepresentation.RaggedTensor": (
        "feature_path 1 Path, row_partition_dtype 2 TensorRepresentation.RowPartitionDType, "
        "partition 3 *TensorRepresentation.RaggedTensor.Partition"
    ),
    "TensorRepresentation.RaggedTensor.Partition": "uniform_row_length 1 int64|kind, row_length 2 string|kind",
    "Path": "step 1 *string",
}


_classes = message_classes("tfrecord_io/tfx_schema.proto", "tensorflow.metadata.v0", _MESSAGES, _ENUMS, syntax="proto2")
SchemaMessage = _classes["Schema"]
FeatureMessage = _classes["Feature"]
RepresentationMessage = _classes["TensorRepresentation"]

BYTES, INT, FLOAT, STRUCT = 1, 2, 3, 4  # of FeatureType
CATEGORICAL_YES = 1  # of StringDomain.Categorical
TIME_UNITS = {1: "s", 2: "ms", 3: "us", 4: "ns"}  # of TimeDomain.IntegerTimeFormat
UNIX_DAYS = 5
# tfx_bsl ignores these (tensor_representation_util.py, _DISQUALIFYING_LIFECYCLE_STAGES)
UNUSED_STAGES = frozenset({1, 2, 5, 6, 7, 9})
SPARSE_KEY = b"tfrecord_io.tfx.sparse"  # in the metadata of the values' field: JSON of the sparse tensor

# The ranges of an int_domain that are exactly those of a type.
INTEGERS = {
    (-(2**7), 2**7 - 1): pa.int8(),
    (-(2**15), 2**15 - 1): pa.int16(),
    (-(2**31), 2**31 - 1): pa.int32(),
    (0, 2**8 - 1): pa.uint8(),
    (0, 2**16 - 1): pa.uint16(),
    (0, 2**32 - 1): pa.uint32(),
}
_TYPES = {Kind.BYTES: BYTES, Kind.INT64: INT, Kind.FLOAT: FLOAT}
_TIME_FORMATS = {unit: number for number, unit in TIME_UNITS.items()}
_RANGES = {type_: ends for ends, type_ in INTEGERS.items()}


def feature_message(field: Field) -> Any:
    """The FeatureMessage of a field, without annotation; for a composite column that of its values."""
    if (composite := composite_of(field)) is not None:
        feature, type_ = next(composite.components())
        field = Field(field.column, type_, feature, required=field.required, part=CONTEXT)
    message = FeatureMessage(name=field.feature)
    if field.required:
        message.presence.min_fraction = 1
        message.presence.min_count = 1
    if encoding_rules(field.encoding).one_value_per_cell:
        message.type = BYTES
        _set_single(message, bool(field.required))
        return message
    value = _value_type(field)
    _set_domain(message, value, field)
    if field.part == FEATURE_LIST:
        message.value_counts.value_count.add(min=0)
        is_list = is_list_like(field.value)
        step = message.value_counts.value_count.add(min=(field.size or 0) if is_list else 1)
        if not is_list or field.size is not None:
            step.max = step.min
    elif field.type == value:
        _set_single(message, bool(field.required))
    elif field.shape is None or None in field.shape:
        message.value_count.min = 0
    elif field.required:
        set_shape(message.shape, field.shape)
    else:
        message.value_count.min = message.value_count.max = field.size
    return message


def set_shape(target: Any, shape: Shape) -> None:
    """Fill a FixedShape; −1 is an unknown dimension."""
    target.SetInParent()
    for size in shape:
        target.dim.add(size=-1 if size is None else size)


def _value_type(field: Field) -> pa.DataType:
    type_ = field.value
    while is_list_like(type_) or is_any_tensor(type_):
        type_ = tensor_value_type(type_) if is_any_tensor(type_) else type_.value_type
    return type_


def _set_single(message: Any, required: bool) -> None:
    """Describe a single value: TFX accepts a shape only for required features, and a value_count for others."""
    if required:
        message.shape.SetInParent()
    else:
        message.value_count.min = message.value_count.max = 1


def _set_domain(message: Any, value: pa.DataType, field: Field) -> None:
    """Describe the type and the domain of a value."""
    try:
        kind = kind_of(value, field.feature)
    except UnsupportedType as error:
        raise SchemaError(error.reason, feature=error.feature, expected=str(field.type), advice=error.advice) from error
    if kind == Kind.NONE:
        return
    message.type = _TYPES[kind]
    if t.is_dictionary(value) and kind == Kind.BYTES:
        message.string_domain.is_categorical = CATEGORICAL_YES
    elif t.is_boolean(value):
        message.bool_domain.SetInParent()
    elif value in _RANGES:
        message.int_domain.min, message.int_domain.max = _RANGES[value]
    elif t.is_timestamp(value):
        message.time_domain.integer_format = _TIME_FORMATS[value.unit]
    elif t.is_date32(value):
        message.time_domain.integer_format = UNIX_DAYS


# ---- tensor representations


def representation_of(field: Field) -> tuple[str, Any] | None:
    """Name and message of the tensor, if needed: for defaults, shapes, required values, nested rows, sparse tensors."""
    message = RepresentationMessage()
    if (composite := composite_of(field)) is not None:
        _set_ragged(message.ragged_tensor, composite)
        return (field.column, message) if _is_ragged(composite) else None
    if SPARSE_KEY in field.metadata:
        return _set_sparse(message.sparse_tensor, field), message
    shape = field.shape or ()
    has_count = None not in shape and not (field.shape is None and is_list_like(field.type))
    is_dense = has_count and field.part == CONTEXT and not encoding_rules(field.encoding).one_value_per_cell
    default = _uniform_default(field)
    if not is_dense or (default is None and not field.required and len(shape) < 2):
        return None
    message.dense_tensor.column_name = field.feature
    set_shape(message.dense_tensor.shape, shape)
    _set_default(message.dense_tensor.default_value, default)
    return field.column, message


def _uniform_default(field: Field) -> Any:
    """The one value of which the default consists; None where its values differ or TFX has no type for them."""
    default = field.default
    while isinstance(default, list) and default and all(item == default[0] for item in default):
        default = default[0]
    return default if isinstance(default, bool | int | float | str | bytes) else None


def _set_default(target: Any, default: Any) -> None:
    if isinstance(default, str | bytes):
        target.bytes_value = default.encode() if isinstance(default, str) else default
    elif isinstance(default, float):
        target.float_value = default
    elif default is not None:
        target.int_value = int(default)


def _is_ragged(composite: Composite) -> bool:
    is_nested = len(composite.sequence) > 1 and composite.sequence[0] is None and composite.shape == ()
    return is_nested and composite.encoding == VALUES and composite.labels is None


def _set_ragged(target: Any, composite: Composite) -> None:
    target.feature_path.step.append(composite.values)
    for size, lengths in zip(composite.sequence[1:], composite.lengths, strict=True):
        target.partition.add(**({"uniform_row_length": size} if lengths is None else {"row_length": lengths}))


def _set_sparse(sparse: Any, field: Field) -> str:
    try:
        note = json.loads(field.metadata[SPARSE_KEY])
        index, shape, name = [str(column) for column in note["index"]], as_shape(note["shape"]), str(note["name"])
        is_sorted = bool(note["sorted"])
    except CONVERSION_ERRORS as error:
        raise SchemaError("its metadata is damaged: tfrecord_io.tfx.sparse", feature=field.feature) from error
    sparse.value_column_name = field.feature
    sparse.index_column_names.extend(index)
    set_shape(sparse.dense_shape, shape)
    if is_sorted:
        sparse.already_sorted = True
    return name
