"""TFRecord files to and from Arrow, pandas and NumPy, fast and without TensorFlow.

>>> import tfrecord_io as tfr
>>> _ = tfr.write_tfrecord({"label": [1, 0], "name": ["cat", "dog"]}, "pets.tfrecord")
>>> tfr.read_table("pets.tfrecord").column_names
['label', 'name']
"""

from importlib import import_module as _import_module
from threading import RLock as _RLock

from tfrecord_io.adapters.libraries import CORE as _ADAPTERS
from tfrecord_io.entry_points import ADAPTERS as _OF_LIBRARIES
from tfrecord_io.entry_points import NAMES as _NAMES
from tfrecord_io.entry_points import find_point as _find_point
from tfrecord_io.entry_points import other_points as _other_points
from tfrecord_io.entry_points import own_points as _own_points
from tfrecord_io.errors import (
    CompressionError,
    CorruptRecordError,
    DamagedDataWarning,
    DecodeError,
    EncodeError,
    FeatureNotFoundError,
    FeatureTypeError,
    MissingDependencyError,
    PrecisionWarning,
    ReplacedError,
    SchemaError,
    SchemaWarning,
    SlowEngineWarning,
    StaleIndexWarning,
    StoppedEarlyWarning,
    TFRecordError,
    TruncatedRecordError,
)

__version__ = "0.1.0"

# The module of each public name; a module is imported when one of its names is first used. Type checkers and editors
# read __init__.pyi instead, which docs/reference/stub.py writes when a wheel is built.
_HOMES = {
    **{f"adapters.{adapter.name}": " ".join(adapter.functions) for adapter in _ADAPTERS},
    "api": "infer_schema open_reader open_writer read_table read_tfrecord write_tfrecord",
    "datasets": "Dataset DatasetPiece MixedDataset WindowedDataset dataset mix windows",
    "training.iterator": "ArrayIterator iter_arrays",
    "arrays.read_arrays": "read_arrays",
    "format.example_messages": "BytesList Example Feature FeatureList FeatureLists Features FloatList "
    "Int64List SequenceExample",
    "tf_compat.example": "bytes_feature decode_example encode_example float_feature int64_feature",
    "read.record_reader": "RecordReader",
    "tools.metadata": "read_metadata",
    "file_formats.array_files.array_stream": "ArrayStream",
    "file_formats.array_files.to_numpy_files": "to_npy to_npz",
    "file_formats.array_files.from_numpy_files": "from_idx from_npy from_npz",
    "tf_compat.example_columns": "decode_examples encode_examples",
    "tf_compat.parse_example": "RaggedTensor SparseTensor parse_example",
    "read.random_access": "RandomAccess open_random",
    "read.selected_records": "SelectedRecords",
    "read.reader": "Reader",
    "read.report": "ReadReport",
    "read.chunks.recovery": "SkippedRegion",
    "typing": "Progress",
    "schema.inferred_schema": "InferredSchema",
    "schema.formats.tf_features": "FixedLenFeature FixedLenSequenceFeature RaggedFeature SparseFeature VarLenFeature",
    "schema.field": "Field",
    "schema.schema": "Schema",
    "schema.field_makers": "bytes_ image list_ scalar sequence tensor text",
    "write.record_writer": "RecordWriter",
    "format.tensor_proto_reader": "parse_tensor",
    "tf_compat.decode_json": "decode_json_example",
    "tf_compat.decode_raw": "decode_raw",
    "format.tensor_proto_writer": "serialize_tensor",
    "file_formats.convert": "convert",
    "file_formats.embed_files": "from_files",
    "tools.adopt": "adopt",
    "tools.compact": "compact",
    "tools.copy": "copy",
    "tools.count": "count_records",
    "tools.delete": "DeleteReport delete",
    "tools.describe": "describe",
    "tools.diff": "diff",
    "tools.index_files": "build_index",
    "read.explode": "explode",
    "tools.salvage": "salvage",
    "tools.shuffle": "sample shuffle",
    "tools.split": "merge split",
    "tools.dedupe": "dedupe",
    "tools.join": "join",
    "tools.verify": "verify",
    "tools.versions": "show_versions",
    "write.writer": "WriteReport Writer",
}
_CORE = {name: module for module, names in _HOMES.items() for name in names.split()}
_OF_PLUGINS = {point.name: point.value.removeprefix(f"{__name__}.").partition(":")[0] for point in _own_points(_NAMES)}
_MODULES = _CORE | _OF_PLUGINS
_LIBRARIES = {adapter.name for adapter in (*_ADAPTERS, *_own_points(_OF_LIBRARIES))}
_CALLS = [name for name in _MODULES if name.partition("_")[2] in _LIBRARIES]  # of adapters: read_spark, scan_polars

# fmt: off
__all__ = [
    # read
    "read_tfrecord", "read_table", "read_arrays", "iter_arrays", "open_reader", "dataset", "mix", "open_random",
    "build_index", "RecordReader", "infer_schema",
    # write
    "write_tfrecord", "open_writer", "RecordWriter", "write_tfds",
    # convert
    "convert", "explode", "windows", "from_npy", "from_npz", "from_idx", "from_image_folder", "from_file_folder",
    "from_files", "from_coco", "from_pascal_voc", "from_yolo", "from_elwc", "to_elwc", "read_events", "to_npy",
    "to_npz", "to_image_folder", "to_file_folder",
    # copy records
    "split", "merge", "shuffle", "sample", "dedupe", "join", "compact", "copy", "delete", "adopt",
    # other libraries
    *_CALLS,
    # inspect
    "count_records", "verify", "salvage", "describe", "report", "diff", "read_metadata", "show_versions",
    # schema
    "Schema", "InferredSchema", "Field", "scalar", "list_", "text", "bytes_", "tensor", "sequence", "image",
    # results
    "Reader", "Writer", "WriteReport", "Dataset", "DatasetPiece", "MixedDataset", "WindowedDataset", "ArrayIterator",
    "ArrayStream", "RandomAccess", "SelectedRecords", "ReadReport", "SkippedRegion", "DatasetReport", "DeleteReport",
    "Progress",
    # as in TensorFlow
    "parse_example", "encode_example", "decode_example", "encode_examples", "decode_examples", "decode_json_example",
    "bytes_feature", "float_feature", "int64_feature", "serialize_tensor", "parse_tensor", "decode_raw", "Example",
    "SequenceExample", "Features", "Feature", "BytesList", "FloatList", "Int64List", "FeatureList", "FeatureLists",
    "FixedLenFeature", "VarLenFeature", "FixedLenSequenceFeature", "RaggedFeature", "SparseFeature", "SparseTensor",
    "RaggedTensor",
    # errors and warnings
    "TFRecordError", "CorruptRecordError", "TruncatedRecordError", "DecodeError", "FeatureTypeError", "EncodeError",
    "SchemaError", "FeatureNotFoundError", "CompressionError", "MissingDependencyError", "ReplacedError",
    "PrecisionWarning", "SchemaWarning", "StaleIndexWarning", "StoppedEarlyWarning", "DamagedDataWarning",
    "SlowEngineWarning",
]
# fmt: on


# Threads import in turn: numpy and pyarrow import themselves in circles, of which one thread would get half-imported
# modules while another is inside.
_importing = _RLock()


def __getattr__(name: str) -> object:
    module = _CORE.get(name)
    point = _find_point(_NAMES, name) if module is None and not name.startswith("_") else None
    if module is None and point is None:
        raise _no_attribute(name)
    with _importing:
        _import_module("numpy")  # waits for a thread of the caller's that imports it, before any of its modules
        value = getattr(_import_module(f"{__name__}.{module}"), name) if point is None else point.load()
    globals()[name] = value
    return value


# What users of other libraries look for under another name.
_EQUIVALENTS = {
    "TFRecordDataset": "dataset",
    "TFRecordOptions": "RecordWriter",
    "from_csv": "convert",
    "from_pandas": "write_tfrecord",
    "from_parquet": "convert",
    "load": "read_tfrecord",
    "open": "read_tfrecord",
    "parse_sequence_example": "read_table",
    "parse_single_example": "parse_example",
    "parse_single_sequence_example": "read_table",
    "read": "read_tfrecord",
    "read_csv": "convert",
    "read_pandas": "read_tfrecord",
    "read_parquet": "convert",
    "save": "write_tfrecord",
    "tf_record_iterator": "RecordReader",
    "tfrecord_iterator": "RecordReader",
    "tfrecord_loader": "iter_arrays",
    "to_tfrecord": "write_tfrecord",
    "write": "write_tfrecord",
}


def _no_attribute(name: str) -> AttributeError:
    text = f"module {__name__!r} has no attribute {name!r}"
    if not name.startswith("_"):
        from tfrecord_io.display import did_you_mean

        known = _EQUIVALENTS.get(name)
        question = f"did you mean '{known}'?" if known else did_you_mean(name, __all__)
        text += question and f"; {question}"
    return AttributeError(text, name=name, obj=None)  # a traceback would add a question of its own about the module


def __dir__() -> list[str]:
    return [*__all__, "__version__", *(point.name for point in _other_points(_NAMES))]
