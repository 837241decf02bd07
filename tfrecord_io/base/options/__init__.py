"""The keywords of reading and writing calls: frozen dataclasses, validated once.

Defaults are defined here and nowhere else. Those of calls that write are in `write` and `transfer`,
which are imported where these calls are; options that one call, one folder or one room has are there.
"""

from tfrecord_io.base.options.did_you_mean import unknown_keyword
from tfrecord_io.base.options.limits import LIMITS, Limits
from tfrecord_io.base.options.options_base import (
    INT64_MAX,
    MIB,
    Options,
    StorageOptions,
    TransferOptions,
    check_integer,
    check_names,
    cpu_count,
)
from tfrecord_io.base.options.read import FrameOptions, ReadOptions, ScanOptions
from tfrecord_io.base.options.selection import Selection

__all__ = [
    "INT64_MAX",
    "LIMITS",
    "MIB",
    "FrameOptions",
    "Limits",
    "Options",
    "ReadOptions",
    "ScanOptions",
    "Selection",
    "StorageOptions",
    "TransferOptions",
    "check_integer",
    "check_names",
    "cpu_count",
    "unknown_keyword",
]
