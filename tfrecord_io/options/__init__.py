"""The keywords of reading and writing calls: frozen dataclasses, validated once.

Defaults are defined here and nowhere else. A read does not import those of calls that write: ``options/write.py``.
"""

from tfrecord_io.options.checked_options import (
    DEFAULT_LIMITS,
    DEFAULT_STORAGE,
    INT64_MAX,
    MAX_EXPANSION,
    MAX_RECORD_BYTES,
    MIB,
    Configured,
    FrameOptions,
    Limits,
    Options,
    StorageOptions,
    TransferOptions,
    check_integer,
    check_names,
    check_on_error,
    check_progress,
    cpu_count,
    leaves_out,
    raises,
    stops,
)
from tfrecord_io.options.keyword_names import unknown_keyword
from tfrecord_io.options.layouts import ColumnLayout
from tfrecord_io.options.limits import LIMITS
from tfrecord_io.options.read import (
    AnnotationOptions,
    ArrayOptions,
    FileOptions,
    FolderOptions,
    IterOptions,
    ReadOptions,
    RepresentationOptions,
)

__all__ = [
    "DEFAULT_LIMITS",
    "DEFAULT_STORAGE",
    "INT64_MAX",
    "LIMITS",
    "MAX_EXPANSION",
    "MAX_RECORD_BYTES",
    "MIB",
    "AnnotationOptions",
    "ArrayOptions",
    "ColumnLayout",
    "Configured",
    "FileOptions",
    "FolderOptions",
    "FrameOptions",
    "Limits",
    "IterOptions",
    "Options",
    "ReadOptions",
    "RepresentationOptions",
    "StorageOptions",
    "TransferOptions",
    "check_integer",
    "check_names",
    "check_on_error",
    "check_progress",
    "cpu_count",
    "leaves_out",
    "raises",
    "stops",
    "unknown_keyword",
]
