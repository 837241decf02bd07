"""Writing records as bytes: any payloads, framed as TensorFlow does, in a file that is published atomically.

Format: see `tfrecord_io.read.record_reader`.
"""

from __future__ import annotations

import os
from collections import deque
from typing import Any

import numpy as np

from tfrecord_io.base import LIMITS, WriteOptions, check_keywords
from tfrecord_io.bytes import get_engine
from tfrecord_io.store import Location, Output, ShardSpec
from tfrecord_io.typing import BytesLike, Compression, FileMode, OutputPath, StorageLike
from tfrecord_io.write.frame_sink import FrameSink, PublishingWriter, make_absolute

_WRITE_BYTES = 1 << 20  # payloads are framed together up to this size
_ITEM_BYTES = 64  # memory of a buffered payload besides its bytes
_COMPRESSION_THREADS = 2  # these run besides a loop in Python, as they do not hold the GIL


class RecordWriter(PublishingWriter):
    """Write payloads to a TFRecord file, which is published atomically when the writer is closed.

    >>> with RecordWriter("lines.tfrecord.gz") as writer:
    ...     writer.write("any bytes".encode())

    Parameters
    ----------
    path : str, PathLike, URL or binary file object
        A file object is written to directly: not atomically, and it is not closed. A suffix that is
        not TFRecord's (``.parquet``, ``.data``) is a ValueError; versions (``.v2``), numbers and dates are none.
        With a stated `compression` ("none" is one), any name is accepted, as by TensorFlow.
    mode : {"error", "overwrite"}, optional
        "error": an existing file is an error.
    compression, compression_level, storage_options, filesystem
        As in `write_tfrecord`.

    Notes
    -----
    An exception in the ``with`` block publishes nothing. No schema is embedded.
    """

    @check_keywords
    def __init__(
        self,
        path: OutputPath,
        *,
        mode: FileMode | None = None,
        compression: Compression | None = "infer",
        compression_level: int | None = None,
        storage_options: StorageLike | None = None,
        filesystem: Any = None,
    ) -> None:
        options = WriteOptions(
            compression=compression,
            compression_level=compression_level,
            storage_options=storage_options,
            filesystem=filesystem,
        )
        if isinstance(path, str | os.PathLike):
            text = Location.text_of(path)
            if options.compression == "infer":
                Output.OtherFormat.check_none(text)
            if ShardSpec.parse(text) is not None and Output.resolve(path, options.storage).sharded:
                reason = "is a sharded dataset, but a RecordWriter writes one file: open one per shard"
                raise ValueError(f"'{text}' {reason}")
        self._engine = get_engine()
        # Any thread appends, without the lock, which is slow; only the thread that holds the lock removes.
        self._buffer: deque[bytes] = deque()
        self._buffered_bytes = 0  # about
        self._usable = True
        compression, level, threads = options.compression, options.compression_level, _COMPRESSION_THREADS
        path, _ = make_absolute(path, options.storage)
        sink = FrameSink(
            path, options.storage, compression=compression, compression_level=level, mode=mode, threads=threads
        )
        self._open(sink, self._buffer)

    def write(self, payload: BytesLike | np.ndarray[Any, Any]) -> None:
        """Append one record: any bytes-like object of at most 2**31 − 1 bytes, which is copied."""
        if isinstance(payload, str):
            raise TypeError("expected bytes, got str; encode it first, for example with .encode()")
        if hasattr(payload, "SerializeToString"):
            raise TypeError(f"expected bytes, got {type(payload).__name__}; write its SerializeToString()")
        record = bytes(payload) if isinstance(payload, bytes | bytearray) else _bytes_of(payload)
        if len(record) > LIMITS.MAX_RECORD_BYTES:
            raise ValueError(f"a record of {len(record)} bytes is too large; the limit is {LIMITS.MAX_RECORD_BYTES}")
        self._buffer.append(record)
        self._buffered_bytes += len(record) + _ITEM_BYTES
        if not self._usable:
            self._take_back(record)
        if self._buffered_bytes >= _WRITE_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the buffered records to the file, which is not published yet."""
        with self._lock:
            if self._sink.closed:
                return  # `write` takes back what was appended since
            self._buffered_bytes = 0
            try:
                records = [self._buffer.popleft() for _ in range(len(self._buffer))]
                if records:
                    framed = self._engine.frame(records)
                    self._sink.write(self._sink.prepare(framed, len(records), self._sink.records))
            except BaseException:  # it is unknown what was written
                self._discard()
                raise

    def _take_back(self, record: bytes) -> None:
        """Refuse a record appended while the writer was being closed, unless it was published with the others."""
        with self._lock:  # raises in a forked process
            if record in self._buffer:
                self._buffer.remove(record)
            elif self._sink.files:
                return
        raise ValueError("the writer is closed")

    def _after_fork(self) -> None:
        super()._after_fork()
        self._usable = False
        self._buffer = deque(maxlen=0)  # the records are the parent's

    def _discard(self) -> None:
        self._usable = False
        super()._discard()

    def _publish(self) -> None:
        self._usable = False
        self.flush()
        self._sink.commit()


def _bytes_of(payload: Any) -> bytes:
    try:
        return memoryview(payload).tobytes()
    except TypeError:
        is_list = isinstance(payload, list | tuple)
        dicts = "tfr.encode_example(features) makes an Example of a dict, tfr.write_tfrecord writes tables"
        advice = "call write() for each record" if is_list else dicts
        raise TypeError(f"expected a bytes-like object, got {type(payload).__name__}; {advice}") from None
