"""The keywords of reading and writing calls: frozen dataclasses, validated once.

Defaults are defined here and nowhere else. Those of calls that write, of calls that return arrays and of other formats
are in `write`, `arrays` and `file_options`, which are imported where these calls are.
"""

from tfrecord_io.options.did_you_mean import unknown_keyword
from tfrecord_io.options.limits import DEFAULT_LIMITS, LIMITS, MAX_EXPANSION, MAX_RECORD_BYTES, Limits
from tfrecord_io.options.options_base import (
    DEFAULT_STORAGE,
    INT64_MAX,
    MIB,
    AskedOnce,
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
from tfrecord_io.options.read import FrameOptions, ReadOptions

__all__ = [
    "DEFAULT_LIMITS",
    "DEFAULT_STORAGE",
    "INT64_MAX",
    "LIMITS",
    "MAX_EXPANSION",
    "MAX_RECORD_BYTES",
    "MIB",
    "AskedOnce",
    "FrameOptions",
    "Limits",
    "Options",
    "ReadOptions",
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
