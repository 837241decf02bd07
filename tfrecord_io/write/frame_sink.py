"""Writing records as bytes: any payload, framed as TensorFlow frames it, in a file that is whole or absent.

Format: see `tfrecord_io.read.record_reader`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tfrecord_io.compression import codec_for_path, get_codec
from tfrecord_io.engine.contract import MAX_RECORD_BYTES
from tfrecord_io.engine.select import get_engine
from tfrecord_io.index.index_writer import IndexWriter
from tfrecord_io.storage.paths.resolve_output import resolve_output
from tfrecord_io.storage.paths.shard_names import parse_spec
from tfrecord_io.storage.write.atomic import open_output
from tfrecord_io.storage.write.output_file import OutputFile

_WRITE_BYTES = 1 << 20  # payloads are framed together up to here
_HELD_BYTES = 64  # what a held payload costs beside its bytes
_COMPRESSING = 2  # threads beside a loop in Python: they do not hold the interpreter's lock


@dataclass(frozen=True)
class WrittenFile:
    """A file that was written: its path, records, and bytes, compressed if it is."""

    path: str
    records: int
    bytes: int


class FrameSink:
    """Where framed bytes go: through a compressor, if any, into a file that is published whole or not at all.

    With an `output` that somebody else publishes, `path` is only what it is called; `crc32c` is of the file's bytes then.
    """

    def __init__(
        self,
        path: Any,
        *,
        compression: str | None = "infer",
        overwrite: bool | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
        write_index: bool = False,
        threads: int = 1,
        output: OutputFile | None = None,
    ) -> None:
        named = isinstance(path, str | os.PathLike)
        if compression == "infer":
            codec = codec_for_path(os.fspath(path)) if named else None
        else:
            codec = get_codec(compression)
        self.path = str(os.fspath(path)) if named else repr(path)
        self.compression = None if codec is None else codec.name
        self._compressor = None if codec is None else codec.compressor(threads=threads)
        self._summed = output is not None
        fsspec = {"storage_options": storage_options, "filesystem": filesystem}
        self._index = IndexWriter(path, self.compression, **fsspec) if write_index else None
        self.output = open_output(path, overwrite=overwrite, **fsspec) if output is None else output
        self.bytes = self.crc32c = 0  # as they are in the file
        self.closed = False

    def write(self, data: Any) -> None:
        """Append whole frames, which must not change until `commit`; with threads they may be compressed meanwhile.

        An error is raised here or by `commit`; after one nothing can be published.
        """
        if self._index is not None:
            self._index.add(data)
        for out in (data,) if self._compressor is None else self._compressor.compress(data):
            self._put(out)

    def _put(self, data: Any) -> None:
        size = memoryview(data).nbytes
        if size:
            self.output.write(data)
            self.bytes += size
            if self._summed:
                self.crc32c = get_engine().crc32c(data, self.crc32c)

    def finish(self) -> None:
        """All is written; whoever gave the output commits it later."""
        self._end_member()
        self.output.finish()

    def _end_member(self) -> None:
        if self._compressor is not None:
            for out in self._compressor.flush():
                self._put(out)
            self._compressor = None

    def commit(self) -> None:
        """Publish the file, and then its index."""
        if self.closed:
            return
        self.closed = True
        try:
            self._end_member()
            self.output.commit()
        except BaseException:
            self._drop()
            raise
        self.publish_index()

    def publish_index(self) -> None:
        """Publish the index of a file that is there by now."""
        if self._index is not None:
            self._index.commit()

    def discard(self) -> None:
        """Leave nothing behind."""
        if not self.closed:
            self.closed = True
            self._drop()

    def _drop(self) -> None:
        if self._compressor is not None:
            self._compressor.close()
        self.output.discard()


class RecordWriter:
    """Write payloads to a TFRecord file, published whole when closed.

    Parameters
    ----------
    path : str, PathLike, URL or binary file object
        A file object is written to as it is: not atomic, not closed.
    compression : {"infer", "gzip", "zlib", "zstd", None}
        "infer" goes by suffix: ``.gz``, ``.zlib``, ``.zz``, ``.zst``. TensorFlow reads gzip and zlib, and not zstd.
    overwrite : bool, optional
        False: an existing file is an error.
    storage_options, filesystem
        For fsspec.

    Notes
    -----
    Leaving the ``with`` block by an exception publishes nothing. No schema is embedded.

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
        _refuse_shards(path, storage_options, filesystem)
        self._sink = FrameSink(
            path,
            compression=compression,
            overwrite=overwrite,
            storage_options=storage_options,
            filesystem=filesystem,
            threads=_COMPRESSING,
        )
        self._engine = get_engine()
        self._held: deque[bytes] = deque()
        self._held_bytes = 0

    def write(self, payload: Any) -> None:
        """Append one record: any bytes-like object, of at most 2**31 − 1 bytes; it is copied."""
        if self._sink.closed:
            raise ValueError("the writer is closed")
        if isinstance(payload, str):
            raise TypeError("a record is bytes; encode the str first, for example with .encode()")
        record = bytes(payload) if isinstance(payload, bytes | bytearray) else memoryview(payload).tobytes()
        if len(record) > MAX_RECORD_BYTES:
            raise ValueError(f"a record of {len(record)} bytes; at most {MAX_RECORD_BYTES} can be read back")
        self._held.append(record)
        self._held_bytes += len(record) + _HELD_BYTES
        if self._held_bytes >= _WRITE_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand what is held to the file; it is still not published."""
        if self._held:
            self._sink.write(self._engine.frame(list(self._held)))
            self._held.clear()
            self._held_bytes = 0

    def close(self) -> None:
        """Publish the file."""
        if not self._sink.closed:
            try:
                self.flush()
            except BaseException:
                self._sink.discard()
                raise
            self._sink.commit()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._sink.discard()


def _refuse_shards(path: Any, storage_options: Mapping[str, Any] | None, filesystem: Any) -> None:
    if not isinstance(path, str | os.PathLike) or parse_spec(os.fspath(path)) is None:
        return
    if resolve_output(path, storage_options=storage_options, filesystem=filesystem).sharded:
        raise ValueError(
            f"'{os.fspath(path)}' is a sharded dataset, and a RecordWriter writes one file: open one for each name"
        )
