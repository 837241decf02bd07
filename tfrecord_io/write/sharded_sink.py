"""Writing framed records into the shards of a dataset, which is published as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfrecord_io.engine.contract import MAX_RECORD_BYTES, Frames
from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import EncodeError
from tfrecord_io.format.framing import FOOTER_BYTES, FRAME_BYTES, HEADER_BYTES
from tfrecord_io.index.index_writer import refuse_compressed
from tfrecord_io.schema.embedded import field_bytes
from tfrecord_io.storage.paths.resolve_output import Output
from tfrecord_io.storage.write.sharded_dataset import WrittenShard, open_sharded_dataset_writer
from tfrecord_io.write.frame_sink import FrameSink, WrittenFile
from tfrecord_io.write.shard_assignment import BySize, Contiguous, RoundRobin, ShardAssigner


@dataclass
class _Shard:
    sink: FrameSink
    records: int = 0
    finished: bool = False


class ShardedSink:
    """Where the framed bytes of a dataset go.

    Attributes
    ----------
    bytes : int
        Of all files, once it is closed.
    files : tuple of WrittenFile
    """

    def __init__(
        self,
        output: Output,
        *,
        overwrite: bool | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
        write_index: bool = False,
        threads: int = 1,
    ) -> None:
        self.path, self.compression = output.path, output.compression
        self.closed = False
        self.files: tuple[WrittenFile, ...] = ()
        self.bytes = 0
        self._output = output
        self._engine = get_engine()
        self._schema: bytes | None = None
        self._prefix = b""
        self._shards: dict[int, _Shard] = {}
        self._dealer: ShardAssigner = (
            RoundRobin(output.count) if output.count is not None else BySize(output.max_shard_bytes or MAX_RECORD_BYTES)
        )
        self._making: dict[str, Any] = {
            "compression": output.compression,
            "write_index": write_index,
            "threads": threads,
        }
        self._fsspec: dict[str, Any] = {"storage_options": storage_options, "filesystem": filesystem}
        if write_index:
            refuse_compressed(output.compression)
        self._publication = open_sharded_dataset_writer(output, overwrite=overwrite, **self._fsspec)

    def expect(self, rows: int) -> None:
        """Say how many records will come: shards are then parts that follow each other."""
        if self._output.count is not None:
            self._dealer = Contiguous(rows, self._output.count)

    def embed(self, schema: bytes) -> None:
        """Put a packed schema in front of the first record of each shard, and into the manifest."""
        self._schema, self._prefix = schema, field_bytes(schema)
        if isinstance(self._dealer, BySize):
            self._dealer.extra = len(self._prefix)

    def write(self, framed: Any) -> None:
        """Take whole framed records."""
        if not memoryview(framed).nbytes:
            return
        data = np.frombuffer(framed, np.uint8)
        frames, _ = self._engine.scan(data, check_crc=False)
        for index, chosen in self._dealer.deal(frames.lengths + FRAME_BYTES):
            for done in [i for i in self._shards if i < self._dealer.current]:
                self._finish(self._shards[done])
            self._write_to(self._shard(index), data, frames, chosen)

    def _shard(self, index: int) -> _Shard:
        if index not in self._shards:
            output = self._publication.open(index)
            self._shards[index] = _Shard(FrameSink(output.path, output=output, **self._making, **self._fsspec))
        return self._shards[index]

    def _write_to(self, shard: _Shard, data: Any, frames: Frames, chosen: slice) -> None:
        starts, sizes = frames.starts[chosen] - HEADER_BYTES, frames.lengths[chosen] + FRAME_BYTES
        first = shard.records == 0 and bool(self._prefix)
        shard.records += len(starts)
        if first:
            shard.sink.write(self._engine.frame([self._prefixed(data[starts[0] : starts[0] + sizes[0]])]))
            starts, sizes = starts[1:], sizes[1:]
        if not len(starts):
            return
        if chosen.step is None:
            shard.sink.write(data[starts[0] : starts[-1] + sizes[-1]])
        else:
            shard.sink.write(
                self._engine.payloads(data, Frames(starts, sizes, 0))
            )  # records with their frames around them

    def _prefixed(self, record: Any) -> bytes:
        payload = self._prefix + record[HEADER_BYTES:-FOOTER_BYTES].tobytes()
        if len(payload) > MAX_RECORD_BYTES:
            reason = "a shard's first record with the embedded schema would be over 2147483647 bytes, protobuf's limit"
            raise EncodeError(reason, path=self.path, advice="pass embed_schema=False")
        return payload

    def _finish(self, shard: _Shard) -> None:
        if not shard.finished:
            shard.finished = True
            shard.sink.finish()

    def commit(self) -> None:
        """Publish the dataset."""
        if self.closed:
            return
        try:
            count = self._dealer.current + 1 if self._output.count is None else self._output.count
            for index in range(count):
                self._finish(self._shard(index))
            shards = [self._shards[i] for i in range(count)]
            made = [WrittenShard(i, s.sink.output, s.records, s.sink.crc32c) for i, s in enumerate(shards)]
            self._publication.publish(made, self._schema)
        except BaseException:
            self.discard()
            raise
        self.closed = True
        self.files = tuple(WrittenFile(s.sink.path, s.records, s.sink.bytes) for s in shards)
        self.bytes = sum(file.bytes for file in self.files)
        for shard in shards:  # the dataset is there, and whole without them
            shard.sink.publish_index()

    def discard(self) -> None:
        """Leave nothing behind."""
        if not self.closed:
            self.closed = True
            for shard in self._shards.values():
                shard.sink.discard()
            self._publication.discard()
