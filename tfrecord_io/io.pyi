# Written by docs/reference/stub.py.

from tfrecord_io.apps.tf_compat.decode_raw import decode_raw as decode_raw
from tfrecord_io.apps.tf_compat.parse_example import RaggedTensor as RaggedTensor
from tfrecord_io.apps.tf_compat.parse_example import SparseTensor as SparseTensor
from tfrecord_io.apps.tf_compat.parse_example import parse_example as parse_example
from tfrecord_io.apps.tf_compat.parse_example import parse_single_example as parse_single_example
from tfrecord_io.apps.tf_compat.parse_sequence_example import parse_sequence_example as parse_sequence_example
from tfrecord_io.apps.tf_compat.parse_sequence_example import (
    parse_single_sequence_example as parse_single_sequence_example,
)
from tfrecord_io.apps.tf_compat.record_files import TFRecordOptions as TFRecordOptions
from tfrecord_io.apps.tf_compat.record_files import TFRecordWriter as TFRecordWriter
from tfrecord_io.apps.tf_compat.tf_features import FixedLenFeature as FixedLenFeature
from tfrecord_io.apps.tf_compat.tf_features import FixedLenSequenceFeature as FixedLenSequenceFeature
from tfrecord_io.apps.tf_compat.tf_features import RaggedFeature as RaggedFeature
from tfrecord_io.apps.tf_compat.tf_features import SparseFeature as SparseFeature
from tfrecord_io.apps.tf_compat.tf_features import VarLenFeature as VarLenFeature
from tfrecord_io.bytes.format.serialized_tensor import parse_tensor as parse_tensor
from tfrecord_io.bytes.format.serialized_tensor import serialize_tensor as serialize_tensor
from tfrecord_io.columns.decode_json import decode_json_example as decode_json_example
from tfrecord_io.columns.example import bytes_feature as bytes_feature
from tfrecord_io.columns.example import float_feature as float_feature
from tfrecord_io.columns.example import int64_feature as int64_feature
from tfrecord_io.read.example_columns import decode_examples as decode_examples
from tfrecord_io.write.encoded_examples import encode_examples as encode_examples

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "RaggedFeature",
    "RaggedTensor",
    "SparseFeature",
    "SparseTensor",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "bytes_feature",
    "decode_examples",
    "decode_json_example",
    "decode_raw",
    "encode_examples",
    "float_feature",
    "int64_feature",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "serialize_tensor",
]
