"""Present what is made of files as the records of one TFRecord file.

Tests: tests/plugins/tensorflow/test_array_record.py and tests/plugins/tensorflow/test_from_elwc.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tfrecord_io.base import LIMITS, ScanOptions
from tfrecord_io.store import Source


def made_records(path: str, content: Any, origins: Any, options: ScanOptions) -> tuple[list[Source], dict[str, Any]]:
    """A source of records made of files, as one TFRecord file, and the keywords to read the source with.

    `content` and `origins` are a `DerivedContent` and `Origins` of `tfrecord_io.store.read.source`.
    """
    limits = replace(options.limits, record_bytes=LIMITS.MAX_RECORD_BYTES, decompression_ratio=None)
    changed = {"compression": None, "check_crc": False, "limits": limits, "progress": False}
    return [Source(path, None, False, origin=origins, derived=content)], changed
