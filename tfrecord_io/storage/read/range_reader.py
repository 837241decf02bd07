"""Remote files as raw files that keep several requests in flight.

A request costs a round trip whatever its size, so the next ranges are asked for while one is used. How many, and how large,
goes by waiting: who had to wait for a range asks for twice as much ahead from then on, up to `_MOST_BYTES` in all.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from threading import RLock
from typing import Any

from tfrecord_io.storage.filesystem.errors import ARGUMENTS, TRIES, may_pass, pauses, to_os_error, told_as_os_error
from tfrecord_io.storage.read.range_requests import Fetch, NoRanges

_MOST_BYTES = 64 << 20  # asked for or held ready, of all files of a window
_MOST_RANGES = 32
_FIRST_BYTES = 256 << 10  # of a look at the start or at one place
_STREAM_BYTES = 1 << 20  # of the first ranges where all will be read
_LARGEST_BYTES = 8 << 20
_HEAD_BYTES = 4 << 10  # of a look at what a file is
_KEPT_BYTES = 8 << 20  # of a file's beginning, for whoever begins anew

Answer = tuple[bytes, OSError | None]  # what came, and why no more


class Window:
    """How much is asked for ahead, of one file or of several that are read one after the other.

    Parameters
    ----------
    more : iterator of RangeReader
        The files, in order.
    stream : bool
        All will be read: ask for several ranges at once from the start.
    heads : bool
        Only the first bytes of each file will be read: ask for those of many files at once.
    """

    def __init__(self, more: Iterator[RangeReader], *, stream: bool = False, heads: bool = False) -> None:
        self.lock = RLock()
        self._more = more
        self._stream, self._heads = stream, heads
        self._readers: list[RangeReader] = []
        self._count = self._bytes = 0
        self.narrow()

    def narrow(self) -> None:
        """Begin as for a file just opened: what comes next is not where the reading went on."""
        self._ahead, self.size = (3, _STREAM_BYTES) if self._stream else (0, _FIRST_BYTES)
        if self._heads:
            self._ahead, self.size = _MOST_RANGES - 1, _HEAD_BYTES
        self._asked = 0  # ranges, since then

    def widen(self) -> None:
        """Ask for more from now on, as somebody waits; for the very first range one always does."""
        if self._asked > 1 and not self._heads:
            self._ahead = min(max(1, 2 * self._ahead), _MOST_RANGES - 1)
            self.size = min(2 * self.size, _LARGEST_BYTES)

    def fill(self) -> None:
        """Ask for what there is room for, in the order of reading."""
        if not self._ahead:
            return
        with self.lock:
            for reader in self._readers:
                if not self._ask(reader):
                    return
            while self._count <= self._ahead and len(self._readers) <= _MOST_RANGES and self.next_reader() is not None:
                if not self._ask(self._readers[-1]):
                    return

    def _ask(self, reader: RangeReader) -> bool:
        """Whether all of a file, that will be read, has been asked for."""
        while (size := reader.next_size(0)) > 0 and not (self._heads and reader.asked):
            if self._count and (self._count > self._ahead or self._bytes + size > _MOST_BYTES):
                return False
            reader.ask(size)
        return True

    def next_reader(self) -> RangeReader | None:
        """Take the next file into the window; None after the last."""
        with self.lock:
            reader = next(self._more, None)
            if reader is not None:
                self._readers.append(reader)
            return reader

    def forget(self, reader: RangeReader) -> None:
        """No more will be read of a file."""
        with self.lock:
            if reader in self._readers:
                self._readers.remove(reader)

    def hold(self, size: int) -> None:
        self._asked += 1
        self._count += 1
        self._bytes += size

    def release(self, size: int) -> None:
        self._count -= 1
        self._bytes -= size


@dataclass(slots=True)
class _Range:
    begin: int
    end: int
    answer: Future[Answer]


class RangeReader:
    """A remote file as a raw file, read by ranges.

    One thread at a time reads; `close` may be called from any, and ends the waiting of the one that reads.

    Parameters
    ----------
    fetch : Fetch
    size : int
        Bytes of the file.
    path : str
        For messages.
    window : Window, optional
        Shared with the files read before and after; else its own.
    whole : callable, optional
        Opens the file for reading it from its start, where the server gives no ranges.
    begin : int
        The first byte that will be read.
    """

    def __init__(
        self, fetch: Fetch, size: int, path: str, window: Window | None = None, whole: Any = None, *, begin: int = 0
    ) -> None:
        self.path = path
        self._fetch, self._size, self._open_whole = fetch, size, whole
        self._held: deque[_Range] = deque()  # asked for and not used up, in order
        self._used: list[_Range] | None = []  # from the start on; None when they became too many to be kept
        self.asked = begin  # the end of the last of them
        self._begin = self._offset = begin
        self._rest: memoryview | None = None  # of the first one's bytes; None until it is waited for
        self._error: OSError | None = None  # behind that rest
        self._ranges = 0
        self._closed = False
        self._whole: Any = None
        self._window = window or Window(iter([self]))
        if window is None:
            self._window.next_reader()

    # What a raw file has -------------------------------------------------------------------------------------

    def readinto(self, buffer: memoryview, /) -> int:
        """Give bytes from here on: 0 only at the end."""
        if self._closed:
            raise ValueError(f"'{self.path}' is closed")
        if self._whole is not None:
            return self._read_whole(buffer)
        if not self._rest and not self._wait(len(buffer)):
            return 0 if self._whole is None else self._read_whole(buffer)
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

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._whole is None

    def tell(self) -> int:
        return self._offset

    def seek(self, offset: int) -> int:
        """Go on at another byte; what was asked for in vain is cancelled."""
        if self._whole is not None:
            if offset:
                raise OSError(errno.ESPIPE, "the server gives no ranges, only the file from its start on", self.path)
            self._whole.close()
            self._offset, self._whole = 0, self._open_whole()
        elif offset == self._begin and self._used is not None:
            with self._window.lock:
                self._take_back()
        elif offset != self._offset:
            with self._window.lock:
                self._drop_all()
                self._window.narrow()
                self.asked = self._offset = offset
        return offset

    def _take_back(self) -> None:
        """Stand at the start again, with all that has come."""
        assert self._used is not None
        for used in reversed(self._used):
            self._held.appendleft(used)
            self._window.hold(used.end - used.begin)
        self._used = []
        self._offset, self._rest, self._error = self._begin, None, None

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            with self._window.lock:
                self._window.forget(self)
                self._drop_all()
            if self._whole is not None:
                self._whole.close()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            self.close()

    # Requests ---------------------------------------------------------------------------------------------------

    def next_size(self, wanted: int) -> int:
        """Bytes of the range to ask for next; 0 at the end."""
        return min(max(self._window.size, min(wanted, _LARGEST_BYTES)), self._size - self.asked)

    def ask(self, size: int) -> None:
        """Ask for the next range."""
        begin, end = self.asked, self.asked + size
        self._held.append(_Range(begin, end, self._fetch.start(self._get(begin, end))))
        self._window.hold(size)
        self.asked = end
        self._ranges += 1

    async def _get(self, begin: int, end: int) -> Answer:
        """Get all bytes of a range, going on where a try ended."""
        parts: list[bytes] = []
        at = begin
        for pause in pauses():
            try:
                data = await self._fetch.range(at, end)
                if len(data) > end - at:
                    raise OSError(errno.EIO, f"{len(data)} bytes came where {end - at} were asked for")
                parts.append(data)
                at += len(data)
                if at == end:
                    break
                error: Exception = OSError(errno.EIO, f"the server ended the body {end - at} bytes early")
            except (NoRanges, *ARGUMENTS):
                raise
            except Exception as caught:  # of whatever library
                error = caught
                if not may_pass(error):
                    return b"".join(parts), to_os_error(error, self.path)
            if pause is None:
                return b"".join(parts), to_os_error(error, self.path, f" (tried {TRIES} times)")
            await asyncio.sleep(pause)
        return parts[0] if len(parts) == 1 else b"".join(parts), None

    def _wait(self, wanted: int) -> bool:
        """Have bytes of the next range in `_rest`; False at the end."""
        if self._error is not None:
            raise self._error
        with self._window.lock:
            if not self._held:
                size = self.next_size(wanted)
                if size <= 0:
                    self._check()
                    return False
                self.ask(size)
            first = self._held[0]
            if not first.answer.done():
                self._window.widen()
            self._window.fill()
        try:
            data, self._error = first.answer.result()
        except CancelledError:
            raise ValueError(f"'{self.path}' is closed") from None
        except NoRanges:
            self._go_without()
            return False
        self._rest = memoryview(data)
        if not self._rest:
            assert self._error is not None
            raise self._error
        return True

    def _check(self) -> None:
        if self._ranges > 1:
            self._ranges = 0
            with told_as_os_error(self.path):
                self._fetch.start(self._fetch.check()).result()

    def _go_without(self) -> None:
        """Read the file as one stream: the server knows no ranges."""
        with self._window.lock:
            self._window.forget(self)
            self._drop_all()
        if self._offset or self._open_whole is None:
            raise OSError(errno.ESPIPE, "the server stopped giving ranges", self.path)
        self._whole = self._open_whole()

    def _read_whole(self, buffer: memoryview) -> int:
        n: int = self._whole.readinto(buffer)
        self._offset += n
        return n

    def _drop_first(self) -> _Range:
        first = self._held.popleft()
        self._window.release(first.end - first.begin)
        self._rest = None
        return first

    def _keep(self, used: _Range) -> None:
        if self._used is not None and used.end - self._begin <= _KEPT_BYTES:
            self._used.append(used)
        else:
            self._used = None

    def _drop_all(self) -> None:
        while self._held:
            self._drop_first().answer.cancel()
        self._used = None
        self._error = None
