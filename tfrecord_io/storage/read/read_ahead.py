"""Blocks that another thread has read while the last one was in use."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import numpy as np

from tfrecord_io.compression import Stream
from tfrecord_io.storage.read.block_reader import BLOCK_BYTES, SPARE, Block, Bytes

_HEAD = 1 << 16  # room in front of each buffer for the record that the block before cut
_BUFFERS = 3  # one in use, one filled, one being filled


@dataclass(slots=True)
class _Filled:
    """A buffer with `count` bytes behind its head, and what came after them."""

    buffer: Bytes
    count: int
    ended: bool
    error: Exception | None = None


def _fill(stream: Stream | Any, buffer: Bytes) -> _Filled:
    view = memoryview(buffer.data)[_HEAD : len(buffer) - SPARE]
    done = 0
    while done < len(view):
        try:
            n = stream.readinto(view[done:])
        except Exception as error:  # whatever a filesystem raises comes after the bytes before it
            return _Filled(buffer, done, False, error)
        if n == 0:
            return _Filled(buffer, done, True)
        done += n
    return _Filled(buffer, done, False)


def _fill_all(
    stream: Stream | Any, free: SimpleQueue[Bytes | None], filled: SimpleQueue[_Filled], stop: threading.Event
) -> None:
    """The thread: fills what is free until the end, an error, or the sign to stop."""
    while (buffer := free.get()) is not None and not stop.is_set():
        found = _fill(stream, buffer)
        filled.put(found)
        if found.ended or found.error is not None:
            return


class ReadAhead:
    """Cuts a stream into blocks as `tfrecord_io.storage.read.block_reader.BlockReader` does, and reads on meanwhile.

    A block is good until the next call. The thread starts with the second block, so small files need none.

    Parameters
    ----------
    stream : Stream
        Has ``readinto(buffer) -> int``, 0 only at its end. Until `close` it is the thread's.
    block_bytes : int
        Size of what is read at a time; a block may have the rest of the last one in front.
    start : int
        Offset in the uncompressed file of the stream's first byte.
    """

    def __init__(self, stream: Stream | Any, block_bytes: int = BLOCK_BYTES, start: int = 0) -> None:
        self._stream = stream
        self._size = block_bytes
        self._free: SimpleQueue[Bytes | None] = SimpleQueue()
        self._filled: SimpleQueue[_Filled] = SimpleQueue()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._current: _Filled | None = None
        self._rest = np.empty(0, np.uint8)  # bytes of the last block that are not consumed
        self._offset = start  # of them in the uncompressed file
        self._took = True  # something of the last block was consumed

    def next_block(self) -> Block | None:
        """Read on: the rest of the last block and new bytes; None at the end."""
        held = len(self._rest)
        found = self._next()
        if held > _HEAD or (
            held and not self._took
        ):  # a record larger than a block: twice as much, or it would take forever
            data = self._joined(found, 0 if self._took else held)
        else:
            data = self._in_front(found)
        assert self._current is not None
        if self._current.error is not None and len(data) == held:
            raise self._current.error
        self._rest, self._took = data, False
        return Block(data, self._offset, self._current.ended) if len(data) else None

    def consume(self, n: int) -> None:
        """Say that `n` more bytes of the last block are done with."""
        if not 0 <= n <= len(self._rest):
            raise ValueError(f"{n} bytes consumed of a block with {len(self._rest)}")
        self._rest = self._rest[n:]
        self._offset += n
        self._took |= n > 0

    def close(self) -> None:
        """End the thread, once it has read what it is reading."""
        self.__del__()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            self._thread = None

    def __del__(self) -> None:
        self._stop.set()
        self._free.put(None)

    def _next(self) -> _Filled:
        """The next buffer. An end or an error stays the answer."""
        last = self._current
        if last is not None and (last.ended or last.error is not None):
            return _Filled(np.empty(_HEAD + SPARE, np.uint8), 0, last.ended, last.error)
        if last is None:
            return _fill(self._stream, np.empty(_HEAD + self._size + SPARE, np.uint8))
        if self._thread is None:
            for _ in range(_BUFFERS - 1):
                self._free.put(np.empty(_HEAD + self._size + SPARE, np.uint8))
            queues = (
                self._free,
                self._filled,
                self._stop,
            )  # not the reader itself, which may be dropped without a word
            self._thread = threading.Thread(
                target=_fill_all, args=(self._stream, *queues), name="tfrecord_io read ahead", daemon=True
            )
            self._thread.start()
        return self._filled.get()

    def _in_front(self, found: _Filled) -> Bytes:
        """The rest moved in front of the new bytes."""
        begin = _HEAD - len(self._rest)
        found.buffer[begin:_HEAD] = self._rest
        self._use(found)
        return found.buffer[begin : _HEAD + found.count]

    def _joined(self, found: _Filled, least: int) -> Bytes:
        """The rest and new bytes, `least` of them at least if there are as many, in a buffer of their own."""
        pieces = [self._rest.copy()]  # copies, for their buffers go back to the thread
        arrived = 0
        while True:
            pieces.append(found.buffer[_HEAD : _HEAD + found.count].copy())
            arrived += found.count
            self._use(found)
            if arrived >= least or found.ended or found.error is not None:
                break
            found = self._next()
        return np.concatenate([*pieces, np.zeros(SPARE, np.uint8)])[:-SPARE]

    def _use(self, found: _Filled) -> None:
        """Make `found` the buffer in use, and give the one before it to the thread."""
        before, self._current = self._current, found
        if before is not None and len(before.buffer) == _HEAD + self._size + SPARE:
            self._free.put(before.buffer)
