"""Remote files as raw files that keep several range requests under way.

A request costs a round trip whatever its size, so the next ranges are requested while one is used. Their number and
size adapt to waiting: each time the reader has to wait, twice as much is requested ahead from then on, up to
`LIMITS.pending_range_bytes`.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from threading import RLock
from typing import Any

from tfrecord_io.base import LIMITS, MIB, hide_secrets, quiet_at_exit
from tfrecord_io.bytes import Raw
from tfrecord_io.store.filesystem.os_errors import raise_os_errors
from tfrecord_io.store.filesystem.retries import ARGUMENT_ERRORS
from tfrecord_io.store.read.file_object import NO_RANGES
from tfrecord_io.store.read.range_requests import RangesUnsupported, RemoteObject, receive, result_of

_KEPT_START_BYTES = 8 * MIB  # of a file, for reading it again
_MOST_RANGES = 32

Answer = tuple[bytes, OSError | None]  # the bytes received, and the error that ended them


class Window:
    """Limits and adapts how much is requested ahead, over one file or several in sequence.

    With `stream`, all files will be read, so several ranges are requested at once from the start. With `heads`, only
    the first bytes of each file will be read, so those of many files are requested at once. With `most`, a whole file
    will be read, by as few requests as so many bytes of memory allow.

    `lock` guards the counts, the files of the window and their pending ranges: the thread that reads a file also
    requests ranges of the next ones, and any thread may close one. The methods take it, but for `narrow`, `widen`,
    `hold` and `release`, whose callers hold it. A thread waits for an answer without it.
    """

    def __init__(
        self, readers: Iterator[RangeReader], *, stream: bool = False, heads: bool = False, most: int | None = None
    ) -> None:
        self.lock = RLock()
        self._upcoming = readers
        self._stream, self._heads, self._most = stream, heads, most
        self._readers: list[RangeReader] = []
        self._ranges = self._bytes = 0  # requested, or received but unused
        self.narrow()

    def narrow(self) -> None:
        """Reset to the initial amounts, as reading continues at another position; the caller holds the lock."""
        self._ahead, self.size = (3, LIMITS.stream_range_bytes) if self._stream else (0, LIMITS.first_range_bytes)
        if self._heads:
            self._ahead, self.size = _MOST_RANGES - 1, LIMITS.head_bytes
        if self._most is not None:
            self._ahead, self.size = _MOST_RANGES - 1, min(LIMITS.largest_range_bytes, self._most // 3)
        self._requests = 0  # since then

    def widen(self) -> None:
        """Double the amounts, as the reader has to wait; for the very first range it always has to.

        The caller holds the lock.
        """
        if self._requests > 1 and not self._heads and self._most is None:
            self._ahead = min(max(1, 2 * self._ahead), _MOST_RANGES - 1)
            self.size = min(2 * self.size, LIMITS.largest_range_bytes)

    def fill(self) -> None:
        """Request as much as the window has room for, in the order of reading."""
        if not self._ahead:
            return
        with self.lock:
            for reader in self._readers:
                if not self._request(reader):
                    return
            while self._ranges <= self._ahead and len(self._readers) <= _MOST_RANGES and self.next_reader() is not None:
                if not self._request(self._readers[-1]):
                    return

    def _request(self, reader: RangeReader) -> bool:
        """Request ranges of a file, under the lock; True if all of it that will be read has been requested."""
        while (size := reader.next_size(0)) > 0 and not (self._heads and reader.requested):
            max_bytes = LIMITS.pending_range_bytes if self._most is None else self._most
            if self._ranges and (self._ranges > self._ahead or self._bytes + size > max_bytes):
                return False
            reader.request(size)
        return True

    def next_reader(self) -> RangeReader | None:
        """Add the next file to the window; None after the last."""
        with self.lock:
            reader = next(self._upcoming, None)
            if reader is not None:
                self._readers.append(reader)
            return reader

    def remove(self, reader: RangeReader) -> None:
        """Remove a file of which no more will be read."""
        with self.lock:
            if reader in self._readers:
                self._readers.remove(reader)

    def hold(self, size: int) -> None:
        """Count a range; the caller holds the lock."""
        self._requests += 1
        self._ranges += 1
        self._bytes += size

    def release(self, size: int) -> None:
        """Stop counting a range; the caller holds the lock."""
        self._ranges -= 1
        self._bytes -= size


@dataclass(slots=True)
class _Range:
    begin: int
    end: int
    answer: Future[Answer]


class RangeReader:
    """A remote file as a raw file, read by range requests.

    One thread at a time reads; `close` may be called from any thread, and ends the waiting of the reading one.

    The `window` is shared with the files read before and after; by default each reader has its own. `open_sequential`
    opens the file for reading it from its start, if the server does not support range requests. `begin` is the first
    byte that will be read.

    The first pending range is the one that is read. `_rest` has three states:

    - None: its answer was not waited for, or no range is pending. The next read waits.
    - Not empty: bytes of it that were received and not yet read.
    - Empty: all bytes of it were read, and an error follows, which the next read raises; without an error the range is
      dropped at once, under the lock, and `_rest` is None again.

    Only the reading thread sets `_rest`, but for `close`, which drops all ranges. What changes `_pending` or the counts
    of the window is done under the window's lock: by `_wait`, `seek` and `close`, or by the callers of `request`,
    `_reuse`, `_drop_first` and `_drop_all`.
    """

    def __init__(
        self,
        remote: RemoteObject,
        size: int,
        window: Window | None = None,
        open_sequential: Callable[[], Raw] | None = None,
        *,
        begin: int = 0,
    ) -> None:
        self._remote, self._size, self._open_sequential = remote, size, open_sequential
        self._pending: deque[_Range] = deque()  # requested and not used up, in order
        self._used: list[_Range] | None = []  # from the start on; None once they are too large to be kept
        self._begin = self._offset = begin
        self._rest: memoryview | None = None
        self._unchecked = 0  # requests since the version was checked
        self._closed = False
        self._sequential: Any = None  # the file, if it is not read by ranges
        self._window = window or Window(iter([self]))
        if window is None:
            self._window.next_reader()

    # Interface of a raw file --------------------------------------------------------------------------------------

    def readinto(self, buffer: memoryview, /) -> int:
        """Read the next bytes into `buffer`: 0 only at the end."""
        if self._closed:
            raise ValueError(f"'{hide_secrets(self._remote.path)}' is closed")
        if self._sequential is not None:
            return self._read_sequential(buffer)
        is_used_up = not self._rest
        if is_used_up and not self._wait(len(buffer)):
            return 0 if self._sequential is None else self._read_sequential(buffer)
        assert self._rest is not None
        n = min(len(buffer), len(self._rest))
        buffer[:n] = self._rest[:n]
        self._rest = self._rest[n:]
        self._offset += n
        if not self._rest and self._error is None:
            with self._window.lock:
                self._keep(self._drop_first())
                self._window.fill()
        return n

    def seekable(self) -> bool:
        return self._sequential is None

    def tell(self) -> int:
        return self._offset

    def seek(self, offset: int) -> int:
        """Continue at another byte; requests that are no longer needed are cancelled."""
        if self._sequential is not None:
            if offset or self._open_sequential is None:
                raise OSError(errno.ESPIPE, NO_RANGES, self._remote.path)
            self._sequential.close()
            self._offset, self._sequential = 0, self._open_sequential()
        elif offset == self._begin and self._used is not None:
            with self._window.lock:
                self._reuse()
        elif offset != self._offset:
            with self._window.lock:
                self._drop_all()
                self._window.narrow()
                self._offset = offset
        return offset

    def _reuse(self) -> None:
        """Go back to the start, keeping all ranges received; the caller holds the lock."""
        assert self._used is not None
        for used in reversed(self._used):
            self._pending.appendleft(used)
            self._window.hold(used.end - used.begin)
        self._used = []
        self._offset, self._rest = self._begin, None

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            with self._window.lock:
                self._window.remove(self)
                self._drop_all()
            if self._sequential is not None:
                self._sequential.close()

    @quiet_at_exit
    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            self.close()

    # Requests -----------------------------------------------------------------------------------------------------

    @property
    def requested(self) -> int:
        """The end of the last range requested."""
        return self._pending[-1].end if self._pending else self._offset

    def next_size(self, wanted: int) -> int:
        """Bytes of the range to request next; 0 at the end."""
        return min(max(self._window.size, min(wanted, LIMITS.largest_range_bytes)), self._size - self.requested)

    def request(self, size: int) -> None:
        """Request the next range; the caller holds the lock, or no other thread has the window."""
        begin, end = self.requested, self.requested + size
        self._pending.append(_Range(begin, end, self._remote.submit(self._get(begin, end))))
        self._window.hold(size)
        self._unchecked += 1

    async def _get(self, begin: int, end: int) -> Answer:
        """Get all bytes of a range, or those before an error."""
        parts: list[bytes] = []
        try:
            async for data in receive(self._whole, begin, end, self._remote.path):
                parts.append(data)
        except ARGUMENT_ERRORS:
            raise
        except OSError as error:
            return b"".join(parts), error
        return parts[0] if len(parts) == 1 else b"".join(parts), None

    async def _whole(self, begin: int, end: int) -> AsyncGenerator[bytes]:
        yield await self._remote.read_range(begin, end)

    @property
    def _error(self) -> OSError | None:
        """The error that follows `_rest`, in an answer that was waited for."""
        return None if self._rest is None else self._pending[0].answer.result()[1]

    def _wait(self, wanted: int) -> bool:
        """Put bytes of the next range into `_rest`; False at the end, or if the server does not support ranges."""
        if self._error is not None:
            raise self._error
        with self._window.lock:
            if not self._pending:
                size = self.next_size(wanted)
                if size <= 0:
                    self._check_unchanged()
                    return False
                self.request(size)
            first = self._pending[0]
            if not first.answer.done():
                self._window.widen()
            self._window.fill()
        try:
            data, error = result_of(first.answer)
        except CancelledError:
            raise ValueError(f"'{hide_secrets(self._remote.path)}' is closed") from None
        except RangesUnsupported:
            self._switch_to_sequential()
            return False
        self._rest = memoryview(data)
        if not data:
            assert error is not None
            raise error
        return True

    def _check_unchanged(self) -> None:
        if self._unchecked > 1:
            self._unchecked = 0
            with raise_os_errors(self._remote.path):
                result_of(self._remote.submit(self._remote.check_unchanged()))

    def _switch_to_sequential(self) -> None:
        """Read the file as one stream, as the server does not support range requests."""
        with self._window.lock:
            self._window.remove(self)
            self._drop_all()
        if self._offset or self._open_sequential is None:
            raise OSError(errno.ESPIPE, NO_RANGES, self._remote.path)
        self._sequential = self._open_sequential()

    def _read_sequential(self, buffer: memoryview) -> int:
        n: int = self._sequential.readinto(buffer)
        self._offset += n
        return n

    def _drop_first(self) -> _Range:
        """Drop the range that is read; the caller holds the lock."""
        first = self._pending.popleft()
        self._window.release(first.end - first.begin)
        self._rest = None
        return first

    def _keep(self, used: _Range) -> None:
        if self._used is not None and used.end - self._begin <= _KEPT_START_BYTES:
            self._used.append(used)
        else:
            self._used = None

    def _drop_all(self) -> None:
        """Cancel what is pending; the caller holds the lock."""
        while self._pending:
            self._drop_first().answer.cancel()
        self._used = None
