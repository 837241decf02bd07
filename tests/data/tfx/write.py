"""Writes the schemas next to this file with tensorflow_metadata.

Run ``pip install tensorflow-metadata`` and ``python -P write.py``.

`schema` has what describes types, and much that does not; `tensors` tensor representations; `sequence` a SequenceExample, as TFX's
SchemaGen describes one. Each as text (.pbtxt) and binary (.pb), both by the real message classes.
"""

from pathlib import Path

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

HERE = Path(__file__).parent

SCHEMA = """
feature { name: "age" type: INT int_domain { min: 0 max: 255 } presence { min_fraction: 1 min_count: 1 } shape {} }
feature { name: "small" type: INT int_domain { min: 0 max: 9 is_categorical: true } value_count { min: 1 max: 1 } presence { min_count: 1 } }
feature { name: "flag" type: INT bool_domain {} value_count { min: 1 max: 1 } }
feature { name: "flag_text" type: BYTES bool_domain { true_value: "true" false_value: "false" } value_count { min: 1 max: 1 } }
feature { name: "when" type: INT time_domain { integer_format: UNIX_MILLISECONDS } value_count { min: 1 max: 1 } }
feature { name: "day" type: INT time_domain { integer_format: UNIX_DAYS } value_count { min: 1 max: 1 } }
feature { name: "fare" type: FLOAT float_domain { min: 0 disallow_nan: true } value_count { min: 1 max: 1 } skew_comparator { infinity_norm { threshold: 0.01 } } }
feature { name: "company" type: BYTES domain: "companies" value_count { min: 1 max: 1 } distribution_constraints { min_domain_mass: 0.9 } }
feature { name: "payment" type: BYTES string_domain { value: "cash" value: "größe" is_categorical: CATEGORICAL_YES } value_count { min: 1 max: 1 } }
feature { name: "review" type: BYTES natural_language_domain {} value_count { min: 1 max: 1 } drift_comparator { jensen_shannon_divergence { threshold: 0.1 } } }
feature { name: "photo" type: BYTES image_domain { minimum_supported_image_fraction: 0.5 } value_count { min: 1 max: 1 } }
feature { name: "digits" type: INT domain: "digits" value_counts { value_count { min: 3 max: 3 } } }
feature { name: "tags" type: BYTES value_count { min: 1 } in_environment: "TRAINING" annotation { tag: "theirs" comment: "kept" } }
feature { name: "embedding" type: FLOAT presence { min_fraction: 1 } shape { dim { size: 4 name: "axis" } } float_domain { is_embedding: true embedding_dim: 4 } }
feature { name: "patch" type: FLOAT presence { min_fraction: 1 } shape { dim { size: 2 } dim { size: 3 } } }
feature { name: "one" type: INT presence { min_fraction: 1 } shape { dim { size: 1 } } unique_constraints { min: 1 max: 3 } }
feature { name: "unseen" }
feature { name: "gone" type: INT deprecated: true }
feature { name: "planned" type: INT lifecycle_stage: PLANNED }
feature { name: "idx" type: INT int_domain { min: 0 max: 99 } value_count { min: 1 max: 1 } }
feature { name: "val" type: FLOAT value_count { min: 1 max: 1 } }
sparse_feature { name: "sparse" index_feature { name: "idx" } value_feature { name: "val" } is_sorted: true }
weighted_feature { name: "weighted" feature { step: "tags" } weight_feature { step: "fare" } }
string_domain { name: "companies" value: "A" value: "B" }
int_domain { name: "digits" min: 0 max: 255 }
float_domain { name: "unused" min: 0 max: 1 }
default_environment: "TRAINING"
default_environment: "SERVING"
annotation { tag: "dataset" }
dataset_constraints { num_examples_version_comparator { min_fraction_threshold: 1 } }
"""

TENSORS = """
feature { name: "a" type: INT value_count { min: 1 max: 1 } }
feature { name: "b" type: FLOAT }
feature { name: "c" type: BYTES string_domain {} }
feature { name: "d" type: INT value_count { min: 1 max: 1 } }
feature { name: "values" type: FLOAT }
feature { name: "rows" type: INT }
feature { name: "pairs" type: INT }
feature { name: "x" type: INT }
feature { name: "y" type: INT }
feature { name: "v" type: FLOAT }
feature { name: "plain" type: BYTES presence { min_fraction: 1 } shape {} }
tensor_representation_group { key: "" value {
  tensor_representation { key: "dense" value { dense_tensor { column_name: "a" shape {} default_value { int_value: -1 } } } }
  tensor_representation { key: "matrix" value { dense_tensor { column_name: "b" shape { dim { size: 2 } dim { size: 2 } } default_value { float_value: 0.5 } } } }
  tensor_representation { key: "must" value { dense_tensor { column_name: "c" shape {} } } }
  tensor_representation { key: "d" value { varlen_sparse_tensor { column_name: "d" } } }
  tensor_representation { key: "ragged" value { ragged_tensor { feature_path { step: "values" } partition { row_length: "rows" } row_partition_dtype: INT32 } } }
  tensor_representation { key: "pairs" value { ragged_tensor { feature_path { step: "pairs" } partition { uniform_row_length: 2 } } } }
  tensor_representation { key: "sparse" value { sparse_tensor { dense_shape { dim { size: 9 } dim { size: -1 } } index_column_names: "x" index_column_names: "y" value_column_name: "v" } } }
} }
tensor_representation_group { key: "other" value {
  tensor_representation { key: "only" value { varlen_sparse_tensor { column_name: "a" } } }
} }
represent_variable_length_as_ragged: true
"""

SEQUENCE = """
feature { name: "id" type: BYTES string_domain {} value_count { min: 1 max: 1 } }
feature {
  name: "##SEQUENCE##" type: STRUCT
  struct_domain {
    feature { name: "tokens" type: BYTES value_count { min: 0 max: 2 } }
    feature { name: "id" type: INT value_counts { value_count { min: 0 } value_count { min: 1 max: 1 } } }
    feature { name: "box" type: FLOAT value_counts { value_count { min: 0 } value_count { min: 4 max: 4 } } }
    feature { name: "old" type: INT lifecycle_stage: DEPRECATED }
  }
}
feature { name: "outer" type: STRUCT struct_domain { feature { name: "inner" type: INT value_count { min: 1 max: 1 } } } }
tensor_representation_group { key: "" value {
  tensor_representation { key: "seq_id" value { ragged_tensor { feature_path { step: "##SEQUENCE##" step: "id" } } } }
} }
"""

for name, text in (("schema", SCHEMA), ("tensors", TENSORS), ("sequence", SEQUENCE)):
    message = text_format.Parse(text, schema_pb2.Schema())
    (HERE / f"{name}.pbtxt").write_text(text_format.MessageToString(message))
    (HERE / f"{name}.pb").write_bytes(message.SerializeToString(deterministic=True))
