"""The keywords of reading and writing calls: frozen dataclasses, validated once.

Defaults are defined here and nowhere else.
"""

from tfrecord_io.options.checked_options import (
    DEFAULT_STORAGE,
    INT64_MAX,
    StorageOptions,
    check_integer,
    check_on_error,
    check_overwrite,
    check_progress,
    check_ratio,
    cpu_count,
    leaves_out,
    raises,
    stops,
)
from tfrecord_io.options.filters import parse_filters
from tfrecord_io.options.keyword_names import keywords_of, unknown_keyword
from tfrecord_io.options.read import (
    MAX_EXPANSION,
    MAX_RECORD_BYTES,
    MIB,
    ArrayOptions,
    IterOptions,
    ReadOptions,
    RepresentationOptions,
)
from tfrecord_io.options.write import CopyOptions, WriteOptions

__all__ = [
    "DEFAULT_STORAGE",
    "INT64_MAX",
    "MAX_EXPANSION",
    "MAX_RECORD_BYTES",
    "MIB",
    "ArrayOptions",
    "CopyOptions",
    "IterOptions",
    "ReadOptions",
    "RepresentationOptions",
    "StorageOptions",
    "WriteOptions",
    "check_integer",
    "check_on_error",
    "check_overwrite",
    "check_progress",
    "check_ratio",
    "cpu_count",
    "leaves_out",
    "raises",
    "stops",
    "keywords_of",
    "parse_filters",
    "unknown_keyword",
]
