"""The protobuf classes of a TFX schema, with the fields of schema.proto and path.proto that describe types.

Source: tensorflow_metadata/proto/v0. All other fields are unknown here: skipped in text, kept in binary.

Tests: tests/plugins/tensorflow/test_tfx.py and tests/conformance/test_tfx.py.
"""

from __future__ import annotations

from tfrecord_io.bytes import MessageClasses

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
        "presence 14 FeaturePresence|presence_constraints, "
        "distribution_constraints 15 DistributionConstraints, annotation 16 Annotation, "
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
    "DistributionConstraints": "min_domain_mass 1 double",
    "FeaturePresence": "min_fraction 1 double, min_count 2 int64",
    "FeaturePresenceWithinGroup": "required 1 bool",
    "BoolDomain": "name 1 string, true_value 2 string, false_value 3 string",
    "IntDomain": "name 1 string, min 3 int64, max 4 int64, is_categorical 5 bool",
    "FloatDomain": "name 1 string, min 3 float, max 4 float, disallow_nan 5 bool, disallow_inf 6 bool",
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


_classes = MessageClasses("tfrecord_io/tfx_schema.proto", "tensorflow.metadata.v0", _MESSAGES, _ENUMS, syntax="proto2")
SchemaMessage = _classes["Schema"]
FeatureMessage = _classes["Feature"]
RepresentationMessage = _classes["TensorRepresentation"]

BYTES, INT, FLOAT, STRUCT = 1, 2, 3, 4  # of FeatureType
CATEGORICAL_YES = 1  # of StringDomain.Categorical
TIME_UNITS = {1: "s", 2: "ms", 3: "us", 4: "ns"}  # of TimeDomain.IntegerTimeFormat
UNIX_DAYS = 5
# tfx_bsl ignores these (tensor_representation_util.py, _DISQUALIFYING_LIFECYCLE_STAGES)
UNUSED_STAGES = frozenset({1, 2, 5, 6, 7, 9})
