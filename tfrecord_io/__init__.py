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
    from tfrecord_io.arrays.iterator import ArrayIterator, iter_arrays
    from tfrecord_io.arrays.whole import read_arrays
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
    from tfrecord_io.example import bytes_feature, decode_example, encode_example, float_feature, int64_feature
    from tfrecord_io.framing import RecordReader
    from tfrecord_io.metadata import read_metadata
    from tfrecord_io.numpy_files.array_stream import ArrayStream
    from tfrecord_io.numpy_files.exporting import to_npy, to_npz
    from tfrecord_io.numpy_files.importing import from_idx, from_npy, from_npz
    from tfrecord_io.parsing import parse_example
    from tfrecord_io.random_access import RandomAccess, open_random
    from tfrecord_io.reader import Reader
    from tfrecord_io.schema.evidence import InferredSchema
    from tfrecord_io.schema.features import (
        FixedLenFeature,
        FixedLenSequenceFeature,
        RaggedFeature,
        SparseFeature,
        VarLenFeature,
    )
    from tfrecord_io.schema.field import Field
    from tfrecord_io.schema.fields import Schema
    from tfrecord_io.schema.makers import bytes_, image, list_, scalar, sequence, tensor, text
    from tfrecord_io.sink import RecordWriter
    from tfrecord_io.tensors.composite import RaggedTensor, SparseTensor
    from tfrecord_io.tensors.proto import parse_tensor
    from tfrecord_io.tensors.raw import decode_raw
    from tfrecord_io.tensors.serialize import serialize_tensor
    from tfrecord_io.tools.convert import convert
    from tfrecord_io.tools.count import count_records
    from tfrecord_io.tools.describe import describe
    from tfrecord_io.tools.verify import verify
    from tfrecord_io.versions import show_versions
    from tfrecord_io.writer import Writer, WriteReport

__version__ = "0.1.0"

# Where each name lives; a module is imported when one of its names is first used.
_HOMES = {
    "adapters.pandas": ("register_pandas",),
    "api": ("infer_schema", "open_reader", "open_writer", "read_table", "read_tfrecord", "write_tfrecord"),
    "arrays.iterator": ("ArrayIterator", "iter_arrays"),
    "arrays.whole": ("read_arrays",),
    "engine.reference.messages": (
    "BytesList",
        "Example",
        "Feature",
        "FeatureList",
        "FeatureLists",
        "Features",
        "FloatList",
        "Int64List",
        "SequenceExample",
    ),
    "example": ("bytes_feature", "decode_example", "encode_example", "float_feature", "int64_feature"),
    "framing": ("RecordReader",),
    "metadata": ("read_metadata",),
    "numpy_files.array_stream": ("ArrayStream",),
    "numpy_files.exporting": ("to_npy", "to_npz"),
    "numpy_files.importing": ("from_idx", "from_npy", "from_npz"),
    "parsing": ("parse_example",),
    "random_access": ("RandomAccess", "open_random"),
    "reader": ("Reader",),
    "schema.evidence": ("InferredSchema",),
    "schema.features": ("FixedLenFeature", "FixedLenSequenceFeature", "RaggedFeature", "SparseFeature", "VarLenFeature"),
    "schema.field": ("Field",),
    "schema.fields": ("Schema",),
    "schema.makers": ("bytes_", "image", "list_", "scalar", "sequence", "tensor", "text"),
    "sink": ("RecordWriter",),
    "tensors.composite": ("RaggedTensor", "SparseTensor"),
    "tensors.proto": ("parse_tensor",),
    "tensors.raw": ("decode_raw",),
    "tensors.serialize": ("serialize_tensor",),
    "tools.convert": ("convert",),
    "tools.count": ("count_records",),
    "tools.describe": ("describe",),
    "tools.verify": ("verify",),
    "versions": ("show_versions",),
    "writer": ("WriteReport", "Writer"),
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "ArrayIterator",
    "ArrayStream",
    "BytesList",
    "CompressionError",
    "CorruptRecordError",
    "DecodeError",
    "EncodeError",
    "Example",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "FeatureNotFoundError",
    "FeatureTypeError",
    "Features",
    "Field",
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "FloatList",
    "InferredSchema",
    "Int64List",
    "MissingDependencyError",
    "PrecisionWarning",
    "RaggedFeature",
    "RaggedTensor",
    "RandomAccess",
    "Reader",
    "RecordReader",
    "RecordWriter",
    "Schema",
    "SchemaError",
    "SchemaWarning",
    "SequenceExample",
    "SlowEngineWarning",
    "SparseFeature",
    "SparseTensor",
    "StoppedEarlyWarning",
    "TFRecordError",
    "TruncatedRecordError",
    "VarLenFeature",
    "WriteReport",
    "Writer",
    "bytes_",
    "bytes_feature",
    "convert",
    "count_records",
    "decode_example",
    "decode_raw",
    "describe",
    "encode_example",
    "float_feature",
    "from_idx",
    "from_npy",
    "from_npz",
    "image",
    "infer_schema",
    "int64_feature",
    "iter_arrays",
    "list_",
    "open_random",
    "open_reader",
    "open_writer",
    "parse_example",
    "parse_tensor",
    "read_arrays",
    "read_metadata",
    "read_table",
    "read_tfrecord",
    "register_pandas",
    "scalar",
    "sequence",
    "serialize_tensor",
    "show_versions",
    "tensor",
    "text",
    "to_npy",
    "to_npz",
    "verify",
    "write_tfrecord",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
