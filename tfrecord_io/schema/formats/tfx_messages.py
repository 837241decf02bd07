"""The protobuf class of a TFX schema: the part of tensorflow_metadata/proto/v0/schema.proto and path.proto that says something of types.

All other fields are unknown ones here: skipped in text, kept in binary. The descriptor lives in a private pool, so that
tensorflow_metadata itself may be imported beside it.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "tensorflow.metadata.v0"
_FieldSpec = tuple[
    str, int, str
]  # name, number, type; a leading "*" repeats it, a trailing "|group" puts it into that oneof
_PROTO = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    name: getattr(_PROTO, f"TYPE_{name.upper()}")
    for name in ("bool", "bytes", "double", "float", "int64", "string", "uint64")
}

_ENUMS: dict[str, dict[str, int]] = {
    "FeatureType": {"TYPE_UNKNOWN": 0, "BYTES": 1, "INT": 2, "FLOAT": 3, "STRUCT": 4},
    "LifecycleStage": {
        "UNKNOWN_STAGE": 0,
        "PLANNED": 1,
        "ALPHA": 2,
        "BETA": 3,
        "PRODUCTION": 4,
        "DEPRECATED": 5,
        "DEBUG_ONLY": 6,
        "DISABLED": 7,
        "VALIDATION_DERIVED": 9,
    },
    "StringDomain.Categorical": {"CATEGORICAL_UNSPECIFIED": 0, "CATEGORICAL_YES": 1, "CATEGORICAL_NO": 2},
    "TimeDomain.IntegerTimeFormat": {
        "FORMAT_UNKNOWN": 0,
        "UNIX_SECONDS": 1,
        "UNIX_MILLISECONDS": 2,
        "UNIX_MICROSECONDS": 3,
        "UNIX_NANOSECONDS": 4,
        "UNIX_DAYS": 5,
    },
    "TensorRepresentation.RowPartitionDType": {"UNSPECIFIED": 0, "INT64": 1, "INT32": 2},
}

_MESSAGES: dict[str, tuple[_FieldSpec, ...]] = {
    "Schema": (
        ("feature", 1, "*Feature"),
        ("string_domain", 4, "*StringDomain"),
        ("sparse_feature", 6, "*SparseFeature"),
        ("float_domain", 9, "*FloatDomain"),
        ("int_domain", 10, "*IntDomain"),
        ("tensor_representation_group", 13, "*Schema.TensorRepresentationGroupEntry"),
        ("represent_variable_length_as_ragged", 14, "bool"),
    ),
    "Schema.TensorRepresentationGroupEntry": (("key", 1, "string"), ("value", 2, "TensorRepresentationGroup")),
    "Feature": (
        ("name", 1, "string"),
        ("deprecated", 2, "bool"),
        ("value_count", 5, "ValueCount|shape_type"),
        ("type", 6, "FeatureType"),
        ("domain", 7, "string|domain_info"),
        ("int_domain", 9, "IntDomain|domain_info"),
        ("float_domain", 10, "FloatDomain|domain_info"),
        ("string_domain", 11, "StringDomain|domain_info"),
        ("bool_domain", 13, "BoolDomain|domain_info"),
        ("presence", 14, "FeaturePresence|presence_constraints"),
        ("annotation", 16, "Annotation"),
        ("group_presence", 17, "FeaturePresenceWithinGroup|presence_constraints"),
        ("lifecycle_stage", 22, "LifecycleStage"),
        ("shape", 23, "FixedShape|shape_type"),
        ("natural_language_domain", 24, "Anything|domain_info"),
        ("mid_domain", 26, "Anything|domain_info"),
        ("url_domain", 27, "Anything|domain_info"),
        ("time_domain", 28, "TimeDomain|domain_info"),
        ("struct_domain", 29, "StructDomain|domain_info"),
        ("value_counts", 32, "ValueCountList|shape_type"),
    ),
    "Anything": (),
    "Annotation": (("tag", 1, "*string"),),
    "FixedShape": (("dim", 2, "*FixedShape.Dim"),),
    "FixedShape.Dim": (("size", 1, "int64"), ("name", 2, "string")),
    "ValueCount": (("min", 1, "int64"), ("max", 2, "int64")),
    "ValueCountList": (("value_count", 1, "*ValueCount"),),
    "FeaturePresence": (("min_fraction", 1, "double"), ("min_count", 2, "int64")),
    "FeaturePresenceWithinGroup": (("required", 1, "bool"),),
    "BoolDomain": (("name", 1, "string"), ("true_value", 2, "string"), ("false_value", 3, "string")),
    "IntDomain": (("name", 1, "string"), ("min", 3, "int64"), ("max", 4, "int64"), ("is_categorical", 5, "bool")),
    "FloatDomain": (("name", 1, "string"), ("min", 3, "float"), ("max", 4, "float")),
    "StringDomain": (("name", 1, "string"), ("value", 2, "*string"), ("is_categorical", 3, "StringDomain.Categorical")),
    "StructDomain": (("feature", 1, "*Feature"), ("sparse_feature", 2, "*SparseFeature")),
    "TimeDomain": (("string_format", 1, "string|format"), ("integer_format", 2, "TimeDomain.IntegerTimeFormat|format")),
    "SparseFeature": (
        ("name", 1, "string"),
        ("deprecated", 2, "bool"),
        ("dense_shape", 5, "FixedShape"),
        ("index_feature", 6, "*SparseFeature.IndexFeature"),
        ("lifecycle_stage", 7, "LifecycleStage"),
        ("is_sorted", 8, "bool"),
        ("value_feature", 9, "SparseFeature.ValueFeature"),
        ("type", 10, "FeatureType"),
    ),
    "SparseFeature.IndexFeature": (("name", 1, "string"),),
    "SparseFeature.ValueFeature": (("name", 1, "string"),),
    "TensorRepresentationGroup": (
        ("tensor_representation", 1, "*TensorRepresentationGroup.TensorRepresentationEntry"),
    ),
    "TensorRepresentationGroup.TensorRepresentationEntry": (("key", 1, "string"), ("value", 2, "TensorRepresentation")),
    "TensorRepresentation": (
        ("dense_tensor", 1, "TensorRepresentation.DenseTensor|kind"),
        ("varlen_sparse_tensor", 2, "TensorRepresentation.VarLenSparseTensor|kind"),
        ("sparse_tensor", 3, "TensorRepresentation.SparseTensor|kind"),
        ("ragged_tensor", 4, "TensorRepresentation.RaggedTensor|kind"),
    ),
    "TensorRepresentation.DefaultValue": (
        ("float_value", 1, "double|kind"),
        ("int_value", 2, "int64|kind"),
        ("bytes_value", 3, "bytes|kind"),
        ("uint_value", 4, "uint64|kind"),
    ),
    "TensorRepresentation.DenseTensor": (
        ("column_name", 1, "string"),
        ("shape", 2, "FixedShape"),
        ("default_value", 3, "TensorRepresentation.DefaultValue"),
    ),
    "TensorRepresentation.VarLenSparseTensor": (("column_name", 1, "string"),),
    "TensorRepresentation.SparseTensor": (
        ("dense_shape", 1, "FixedShape"),
        ("index_column_names", 2, "*string"),
        ("value_column_name", 3, "string"),
        ("already_sorted", 4, "bool"),
    ),
    "TensorRepresentation.RaggedTensor": (
        ("feature_path", 1, "Path"),
        ("row_partition_dtype", 2, "TensorRepresentation.RowPartitionDType"),
        ("partition", 3, "*TensorRepresentation.RaggedTensor.Partition"),
    ),
    "TensorRepresentation.RaggedTensor.Partition": (
        ("uniform_row_length", 1, "int64|kind"),
        ("row_length", 2, "string|kind"),
    ),
    "Path": (("step", 1, "*string"),),
}


def _add_field(message: Any, name: str, number: int, spec: str) -> None:
    kind, _, group = spec.removeprefix("*").partition("|")
    field = message.field.add(
        name=name, number=number, label=_PROTO.LABEL_REPEATED if spec.startswith("*") else _PROTO.LABEL_OPTIONAL
    )
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = _PROTO.TYPE_ENUM if kind in _ENUMS else _PROTO.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{kind}"
    if group:
        groups = [one.name for one in message.oneof_decl]
        if group not in groups:
            message.oneof_decl.add(name=group)
            groups.append(group)
        field.oneof_index = groups.index(group)


def _file() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="tfrecord_io/tfx_schema.proto", package=_PACKAGE, syntax="proto2")
    made: dict[str, Any] = {}
    for name, fields in _MESSAGES.items():  # an outer message stands before those inside it
        outer, _, own = name.rpartition(".")
        message = made[name] = made[outer].nested_type.add(name=own) if outer else file.message_type.add(name=own)
        message.options.map_entry = own.endswith("Entry")
        for spec in fields:
            _add_field(message, *spec)
    for name, values in _ENUMS.items():
        outer, _, own = name.rpartition(".")
        enum = (made[outer] if outer else file).enum_type.add(name=own)
        for value, number in values.items():
            enum.value.add(name=value, number=number)
    return file


_pool = descriptor_pool.DescriptorPool()
_pool.AddSerializedFile(_file().SerializeToString())

SchemaMessage = message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.Schema"))
FeatureMessage = message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.Feature"))
RepresentationMessage = message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.TensorRepresentation"))

BYTES, INT, FLOAT, STRUCT = (_ENUMS["FeatureType"][name] for name in ("BYTES", "INT", "FLOAT", "STRUCT"))
CATEGORICAL_YES = _ENUMS["StringDomain.Categorical"]["CATEGORICAL_YES"]
TIME_UNITS = {1: "s", 2: "ms", 3: "us", 4: "ns"}  # of TimeDomain.IntegerTimeFormat
UNIX_DAYS = 5
# tfx_bsl passes these by (tensor_representation_util.py, _DISQUALIFYING_LIFECYCLE_STAGES)
UNUSED_STAGES = frozenset({1, 2, 5, 6, 7, 9})
