"""Blocks that another thread reads while the last one is in use."""

from __future__ import annotations

from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from tfrecord_io.base import BackgroundThread, Flag, quiet_at_exit
from tfrecord_io.bytes import Stream
from tfrecord_io.store.read.block_reader import FIRST_BYTES, Block, BlockReader, Bytes

_SPLIT_RECORD_BYTES = 1 << 16  # room before a block for the record that the end of the last one split
_BUFFERS = 3  # one in use, one filled, one being filled


class _Filled(NamedTuple):
    """A buffer with `size` bytes after its head, and whether the end or an error follows them."""

    buffer: Bytes
    size: int
    ended: bool
    error: Exception | None = None

    @property
    def is_last(self) -> bool:
        return self.ended or self.error is not None


def _fill(stream: Stream | Any, buffer: Bytes, most: int | None = None) -> _Filled:
    view = memoryview(buffer.data)[_SPLIT_RECORD_BYTES : len(buffer) - Block.SPARE][:most]
    done = 0
    while done < len(view):
        try:
            n = stream.readinto(view[done:])
        except Exception as error:  # any error of a filesystem is raised after the bytes before it
            return _Filled(buffer, done, False, error)
        if n == 0:
            return _Filled(buffer, done, True)
        done += n
    return _Filled(buffer, done, False)


def _fill_all(stream: Stream | Any, free: SimpleQueue[Bytes | None], filled: SimpleQueue[_Filled], stop: Flag) -> None:
    """The thread: fills free buffers until the end, an error, or `stop`."""
    while (buffer := free.get()) is not None and not stop.is_set:
        result = _fill(stream, buffer)
        filled.put(result)
        if result.is_last:
            return


def _stop_filling(free: SimpleQueue[Bytes | None], stop: Flag) -> None:
    stop.set()
    free.put(None)


class ReadAhead:
    """Cuts a stream into blocks as `tfrecord_io.store.read.block_reader.BlockReader` does, in another thread.

    A block is valid until the next call. The thread starts with the second block, so small files need none, or with
    `start`.

    One thread reads on and on, so that calls in order (`background.Ordered`) do not fit: a stream is read by one thread
    at a time, and the buffers go back to it through `_free`. It uses the stream until `close`. A block has up to
    `block_bytes` new bytes after the rest of the last one.
    """

    def __init__(self, stream: Stream | Any, block_bytes: int = BlockReader.BLOCK_BYTES, start: int = 0) -> None:
        self._stream = stream
        self._size = block_bytes
        self._free: SimpleQueue[Bytes | None] = SimpleQueue()
        self._filled: SimpleQueue[_Filled] = SimpleQueue()
        self._stop = Flag()
        self._thread: BackgroundThread | None = None
        self._current: _Filled | None = None
        self._rest = np.empty(0, np.uint8)  # unconsumed bytes of the last block
        self._offset = start  # of `_rest` in the uncompressed file
        self._consumed = True  # something of the last block

    def start(self, blocks: int = _BUFFERS - 1) -> None:
        """Start the thread, unless it runs: it reads at most this number of blocks in advance."""
        if self._thread is None:
            for _ in range(blocks):
                self._free.put(self._new_buffer())
            # the thread has no reference to the reader itself, which may be dropped without close()
            free, stop = self._free, self._stop
            self._thread = BackgroundThread(
                _fill_all, (self._stream, free, self._filled, stop), lambda: _stop_filling(free, stop), "read ahead"
            )

    def next_block(self) -> Block | None:
        """The rest of the last block and new bytes; None at the end."""
        kept_bytes = len(self._rest)
        filled = self._next()
        # A record larger than a block: it is doubled, to stay linear.
        if kept_bytes > _SPLIT_RECORD_BYTES or (kept_bytes and not self._consumed):
            data = self._join(filled, 0 if self._consumed else kept_bytes)
        else:
            begin = _SPLIT_RECORD_BYTES - kept_bytes  # the rest is put before the new bytes
            filled.buffer[begin:_SPLIT_RECORD_BYTES] = self._rest
            self._use(filled)
            data = filled.buffer[begin : _SPLIT_RECORD_BYTES + filled.size]
        assert self._current is not None
        if self._current.error is not None and len(data) == kept_bytes:
            raise self._current.error
        self._rest, self._consumed = data, False
        return Block(data, self._offset, self._current.ended) if len(data) else None

    def consume(self, n: int) -> None:
        """Mark the next `n` bytes of the last block as used."""
        if not 0 <= n <= len(self._rest):
            raise ValueError(f"{n} bytes consumed of a block with {len(self._rest)}")
        self._rest = self._rest[n:]
        self._offset += n
        self._consumed |= n > 0

    def resume(self) -> None:
        """Read on after an error and `close`, as the stream can: the next block begins with the rest of the last."""
        assert self._current is not None
        self._current = _Filled(self._current.buffer, self._current.size, False)
        self._free, self._stop = SimpleQueue(), Flag()

    def close(self) -> None:
        """Stop the thread after the read under way."""
        if self._thread is not None:
            self._thread.end()
            self._thread = None

    @quiet_at_exit
    def __del__(self) -> None:
        if hasattr(self, "_stop"):  # not if Ctrl-C ended `__init__`
            _stop_filling(self._free, self._stop)

    def _next(self) -> _Filled:
        """The next buffer; after the end or an error, an empty one with the same result."""
        last = self._current
        if last is not None and last.is_last:
            return _Filled(np.empty(_SPLIT_RECORD_BYTES + Block.SPARE, np.uint8), 0, last.ended, last.error)
        if last is None and self._thread is None:
            return _fill(self._stream, self._new_buffer(), FIRST_BYTES)
        self.start()
        assert self._thread is not None
        try:
            return self._thread.take(self._filled)
        except BackgroundThread.NeverBegan:  # for lack of memory: read in this thread
            return _fill(self._stream, self._new_buffer())

    def _new_buffer(self) -> Bytes:
        return np.empty(_SPLIT_RECORD_BYTES + self._size + Block.SPARE, np.uint8)

    def _join(self, filled: _Filled, least: int) -> Bytes:
        """The rest and at least `least` new bytes, if there are as many, in a new buffer."""
        end = kept_bytes = len(self._rest)
        joined = np.empty(kept_bytes + least + self._size + Block.SPARE, np.uint8)
        joined[:end] = self._rest  # copied, as its buffer goes back to the thread
        while True:
            joined[end : end + filled.size] = filled.buffer[_SPLIT_RECORD_BYTES : _SPLIT_RECORD_BYTES + filled.size]
            end += filled.size
            self._use(filled)
            if end - kept_bytes >= least or filled.is_last:
                return joined[:end]
            filled = self._next()

    def _use(self, filled: _Filled) -> None:
        """Make `filled` the buffer in use, and return the last one to the thread."""
        last, self._current = self._current, filled
        if last is not None and len(last.buffer) == _SPLIT_RECORD_BYTES + self._size + Block.SPARE:
            self._free.put(last.buffer)
