"""Writing records as bytes: any payloads, framed as TensorFlow does, in a file that is published atomically.

Format: see `tfrecord_io.read.record_reader`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tfrecord_io.engine.contract import MAX_RECORD_BYTES
from tfrecord_io.engine.select import get_engine
from tfrecord_io.options import StorageOptions
from tfrecord_io.storage.paths.resolve_output import resolve_output
from tfrecord_io.storage.paths.shard_names import parse_spec
from tfrecord_io.write.frame_sink import FrameSink, PublishingWriter

_WRITE_BYTES = 1 << 20  # payloads are framed together up to this size
_ITEM_BYTES = 64  # memory of a buffered payload besides its bytes
_COMPRESSION_THREADS = 2  # these run besides a loop in Python, as they do not hold the GIL


class RecordWriter(PublishingWriter):
    """Write payloads to a TFRecord file, which is published atomically when the writer is closed.

    Parameters
    ----------
    path : str, PathLike, URL or binary file object
        A file object is written to directly: not atomically, and it is not closed.
    compression : {"infer", "gzip", "zlib", "zstd", None}
        "infer" chooses by suffix: ``.gz``, ``.zlib``, ``.zz``, ``.zst``. TensorFlow reads gzip and zlib, but not zstd.
    overwrite : bool, optional
        False: an existing file is an error.
    storage_options, filesystem
        Passed to fsspec.

    Notes
    -----
    An exception in the ``with`` block publishes nothing. No schema is embedded.

    Examples
    --------
    >>> with RecordWriter("lines.tfrecord.gz") as writer:
    ...     writer.write("any bytes".encode())
    """

    def __init__(
        self,
        path: Any,
        *,
        compression: str | None = "infer",
        overwrite: bool | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
    ) -> None:
        storage = StorageOptions(storage_options, filesystem)
        _refuse_shards(path, storage)
        self._engine = get_engine()
        self._buffer: list[bytes] = []
        self._buffered_bytes = 0
        sink = FrameSink(path, storage, compression=compression, overwrite=overwrite, threads=_COMPRESSION_THREADS)
        self._open(sink, self._buffer)

    def write(self, payload: Any) -> None:
        """Append one record: any bytes-like object of at most 2**31 − 1 bytes, which is copied."""
        if self._sink.closed:
            raise ValueError("the writer is closed")
        if isinstance(payload, str):
            raise TypeError("expected bytes, got str; encode it first, for example with .encode()")
        if hasattr(payload, "SerializeToString"):
            raise TypeError(f"expected bytes, got {type(payload).__name__}; write its SerializeToString()")
        record = bytes(payload) if isinstance(payload, bytes | bytearray) else memoryview(payload).tobytes()
        if len(record) > MAX_RECORD_BYTES:
            raise ValueError(f"a record of {len(record)} bytes is too large; the limit is {MAX_RECORD_BYTES}")
        self._buffer.append(record)
        self._buffered_bytes += len(record) + _ITEM_BYTES
        if self._buffered_bytes >= _WRITE_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the buffered records to the file, which is not published yet."""
        if self._buffer:
            self._sink.write(self._engine.frame(self._buffer), len(self._buffer))
            self._buffer.clear()
            self._buffered_bytes = 0

    def close(self) -> None:
        """Publish the file."""
        if not self._sink.closed:
            try:
                self.flush()
            except BaseException:
                self._sink.discard()
                raise
            self._sink.commit()


def _refuse_shards(path: Any, storage: StorageOptions) -> None:
    is_spec = isinstance(path, str | os.PathLike) and parse_spec(os.fspath(path)) is not None
    if is_spec and resolve_output(path, storage).sharded:
        reason = "is a sharded dataset, but a RecordWriter writes one file: open one per shard"
        raise ValueError(f"'{os.fspath(path)}' {reason}")
