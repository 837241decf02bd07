"""How many records files hold, without decoding them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfrecord_io.engine.select import get_engine
from tfrecord_io.framing import RecordFile
from tfrecord_io.options import MAX_RECORD_BYTES
from tfrecord_io.storage.paths import resolve_inputs
from tfrecord_io.storage.upcoming import Upcoming
from tfrecord_io.tools.walk import scan_step, walk


def count_records(
    path: Any,
    *,
    compression: str | None = "infer",
    check_crc: bool = True,
    max_record_bytes: int = MAX_RECORD_BYTES,
    allow_missing_shards: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
) -> int:
    """Count the records of files; payloads may be of any content.

    Parameters
    ----------
    path : str, os.PathLike, list or binary file object
        As in `read_tfrecord`.
    compression : {"infer", "gzip", "zlib"} or None
        As in `read_tfrecord`.
    check_crc : bool
        Whether payloads are checked; lengths always are.
    max_record_bytes : int
        A longer record is an error.
    allow_missing_shards, storage_options, filesystem
        As in `read_tfrecord`.

    Returns
    -------
    int

    Raises
    ------
    CorruptRecordError, TruncatedRecordError, CompressionError
        A file is damaged; ``records_intact`` counts the records of that file before the damage.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3]}, "three.tfrecord")
    >>> tfr.count_records("three.tfrecord")
    3
    """
    sources = resolve_inputs(
        path, storage_options=dict(storage_options or {}), filesystem=filesystem, allow_missing_shards=allow_missing_shards
    )
    step = scan_step(get_engine(), check_crc=check_crc, max_record_bytes=max_record_bytes)
    records = 0
    with Upcoming(sources) as upcoming:
        for source in upcoming:
            file = RecordFile(source, compression)
            try:
                records += walk(file, step)[0]
            finally:
                file.close()
    return records
