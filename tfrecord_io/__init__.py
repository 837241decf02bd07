"""TFRecord files to and from Arrow, pandas and NumPy, fast and without TensorFlow.

>>> import tfrecord_io as tfr
>>> _ = tfr.write_tfrecord({"label": [1, 0], "name": ["cat", "dog"]}, "pets.tfrecord")
>>> tfr.read_table("pets.tfrecord").column_names
['label', 'name']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tfrecord_io.errors import (
    CompressionError,
    CorruptRecordError,
    DecodeError,
    EncodeError,
    FeatureNotFoundError,
    FeatureTypeError,
    MissingDependencyError,
    PrecisionWarning,
    SchemaError,
    SchemaWarning,
    SlowEngineWarning,
    StoppedEarlyWarning,
    TFRecordError,
    TruncatedRecordError,
)

if TYPE_CHECKING:
    from tfrecord_io.adapters.pandas import register_pandas
    from tfrecord_io.api import infer_schema, open_reader, open_writer, read_table, read_tfrecord, write_tfrecord
    from tfrecord_io.arrays.read_arrays import read_arrays
    from tfrecord_io.engine.reference.messages import (
        BytesList,
        Example,
        Feature,
        FeatureList,
        FeatureLists,
        Features,
        FloatList,
        Int64List,
        SequenceExample,
    )
    from tfrecord_io.file_formats.array_stream import ArrayStream
    from tfrecord_io.file_formats.convert import convert
    from tfrecord_io.file_formats.from_numpy_files import from_idx, from_npy, from_npz
    from tfrecord_io.file_formats.to_numpy_files import to_npy, to_npz
    from tfrecord_io.format.tensor_proto import parse_tensor
    from tfrecord_io.format.tensor_proto_writer import serialize_tensor
    from tfrecord_io.read.random_access import RandomAccess, open_random
    from tfrecord_io.read.reader import Reader
    from tfrecord_io.read.record_reader import RecordReader
    from tfrecord_io.schema.field import Field
    from tfrecord_io.schema.field_makers import bytes_, image, list_, scalar, sequence, tensor, text
    from tfrecord_io.schema.formats.tf_features import (
        FixedLenFeature,
        FixedLenSequenceFeature,
        RaggedFeature,
        SparseFeature,
        VarLenFeature,
    )
    from tfrecord_io.schema.inferred_schema import InferredSchema
    from tfrecord_io.schema.schema import Schema
    from tfrecord_io.tf_compat.composite import RaggedTensor, SparseTensor
    from tfrecord_io.tf_compat.decode_json import decode_json_example
    from tfrecord_io.tf_compat.decode_raw import decode_raw
    from tfrecord_io.tf_compat.example import (
        bytes_feature,
        decode_example,
        encode_example,
        float_feature,
        int64_feature,
    )
    from tfrecord_io.tf_compat.parse_example import parse_example
    from tfrecord_io.tools.count import count_records
    from tfrecord_io.tools.describe import describe
    from tfrecord_io.tools.metadata import read_metadata
    from tfrecord_io.tools.verify import verify
    from tfrecord_io.training.iterator import ArrayIterator, iter_arrays
    from tfrecord_io.versions import show_versions
    from tfrecord_io.write.record_writer import RecordWriter
    from tfrecord_io.write.writer import Writer, WriteReport

__version__ = "0.1.0"

# The module of each public name; a module is imported when one of its names is first used.
_HOMES = {
    "adapters.pandas": "register_pandas",
    "api": "infer_schema open_reader open_writer read_table read_tfrecord write_tfrecord",
    "training.iterator": "ArrayIterator iter_arrays",
    "arrays.read_arrays": "read_arrays",
    "engine.reference.messages": "BytesList Example Feature FeatureList FeatureLists Features FloatList "
    "Int64List SequenceExample",
    "tf_compat.example": "bytes_feature decode_example encode_example float_feature int64_feature",
    "read.record_reader": "RecordReader",
    "tools.metadata": "read_metadata",
    "file_formats.array_stream": "ArrayStream",
    "file_formats.to_numpy_files": "to_npy to_npz",
    "file_formats.from_numpy_files": "from_idx from_npy from_npz",
    "tf_compat.parse_example": "parse_example",
    "read.random_access": "RandomAccess open_random",
    "read.reader": "Reader",
    "schema.inferred_schema": "InferredSchema",
    "schema.formats.tf_features": "FixedLenFeature FixedLenSequenceFeature RaggedFeature SparseFeature VarLenFeature",
    "schema.field": "Field",
    "schema.schema": "Schema",
    "schema.field_makers": "bytes_ image list_ scalar sequence tensor text",
    "write.record_writer": "RecordWriter",
    "tf_compat.composite": "RaggedTensor SparseTensor",
    "format.tensor_proto": "parse_tensor",
    "tf_compat.decode_json": "decode_json_example",
    "tf_compat.decode_raw": "decode_raw",
    "format.tensor_proto_writer": "serialize_tensor",
    "file_formats.convert": "convert",
    "tools.count": "count_records",
    "tools.describe": "describe",
    "tools.verify": "verify",
    "versions": "show_versions",
    "write.writer": "WriteReport Writer",
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names.split()}

# fmt: off
__all__ = [
    # read
    "read_tfrecord", "read_table", "read_arrays", "iter_arrays", "open_reader", "open_random", "RecordReader",
    "infer_schema",
    # write
    "write_tfrecord", "open_writer", "RecordWriter",
    # convert
    "convert", "from_npy", "from_npz", "from_idx", "to_npy", "to_npz",
    # inspect
    "count_records", "verify", "describe", "read_metadata", "show_versions", "register_pandas",
    # schema
    "Schema", "InferredSchema", "Field", "scalar", "list_", "text", "bytes_", "tensor", "sequence", "image",
    # results
    "Reader", "Writer", "WriteReport", "ArrayIterator", "ArrayStream", "RandomAccess",
    # as in TensorFlow
    "parse_example", "encode_example", "decode_example", "decode_json_example", "bytes_feature", "float_feature",
    "int64_feature", "serialize_tensor", "parse_tensor", "decode_raw", "Example", "SequenceExample", "Features",
    "Feature", "BytesList", "FloatList", "Int64List", "FeatureList", "FeatureLists", "FixedLenFeature", "VarLenFeature",
    "FixedLenSequenceFeature", "RaggedFeature", "SparseFeature", "SparseTensor", "RaggedTensor",
    # errors and warnings
    "TFRecordError", "CorruptRecordError", "TruncatedRecordError", "DecodeError", "FeatureTypeError", "EncodeError",
    "SchemaError", "FeatureNotFoundError", "CompressionError", "MissingDependencyError", "PrecisionWarning",
    "SchemaWarning", "StoppedEarlyWarning", "SlowEngineWarning",
]
# fmt: on


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
