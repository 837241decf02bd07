"""Bytes of a file at any place: by position on disk, by ranges of an object on a bucket."""

from __future__ import annotations

import copy
import errno
import os
import stat
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from tfrecord_io.compression import SNIFF_BYTES, Codec, infer
from tfrecord_io.errors import printable
from tfrecord_io.storage.read.block_reader import Bytes
from tfrecord_io.storage.read.source import Source

if TYPE_CHECKING:
    from tfrecord_io.storage.read.range_reader import RangeReader

_REQUESTS = 32  # under way at a time
_JOINED_BYTES = 8 << 20  # ranges that are near each other are read as one of at most this


class RandomAccessFile(Protocol):
    """A file to read anywhere; any threads may read at a time, also those of a fork."""

    size: int
    cheap_bytes: int  # may as well be read, where a request less is the gain
    block_bytes: int  # what to read at a time of a file that is read through
    hop_bytes: int  # are better passed over than read, to come to what is behind them

    def read(self, begin: int, end: int, buffer: Bytes | None = None) -> Bytes:
        """The bytes [begin, end), all of them; they may be put into the start of `buffer`.

        Raises
        ------
        OSError
            The file ends before, or cannot be read.
        """
        ...

    def read_all(self, begins: Sequence[int], ends: Sequence[int]) -> list[Bytes]:
        """Several ranges, in ascending order of their begins."""
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def open_ranges(source: Source) -> RandomAccessFile:
    """Open a file for reading anywhere.

    Raises
    ------
    ValueError
        A pipe, or whatever else has no places in it; a piece of a file.
    TypeError
        A file object, which somebody else moves about.
    """
    if source.is_file_object:
        raise TypeError(f"{printable(source.path)}: reading at any place takes paths, not file objects")
    if source.span is not None:
        raise ValueError(f"{printable(source.path)}: a piece of a file is read from its start to its end")
    return LocalRandomAccessFile(source) if source.remote is None else RemoteRandomAccessFile(source)


def open_plain(source: Source, purpose: str) -> RandomAccessFile:
    """Open a file for reading anywhere, if it is plain.

    Raises
    ------
    ValueError
        It is compressed: its records have no places. `purpose` says what that prevents.
    """
    ranges = open_ranges(source)
    codec = codec_of(ranges, source.path)
    if codec is not None:
        ranges.close()
        reason = f"{purpose} needs a plain file, as a compressed one is read from its start only"
        advice = "decompress it, or read it with read_table or open_reader"
        raise ValueError(f"{printable(source.path)} is compressed ({codec.name}): {reason}; {advice}")
    return ranges


def codec_of(ranges: RandomAccessFile, path: str) -> Codec | None:
    """The compression of a file, by its first bytes; None for a plain one."""
    return infer(ranges.read(0, min(SNIFF_BYTES, ranges.size)).tobytes(), path)


def joined(begins: Sequence[int], ends: Sequence[int], gap: int, most: int) -> list[tuple[int, int, int]]:
    """Ranges in ascending order as fewer ones: (begin, end, how many of them it holds).

    Examples
    --------
    >>> joined([0, 10, 500], [10, 20, 600], gap=100, most=1000)
    [(0, 20, 2), (500, 600, 1)]
    """
    found: list[tuple[int, int, int]] = []
    for begin, end in zip(begins, ends, strict=True):
        if found:
            first, last, count = found[-1]
            if begin - last <= gap and end - first <= most:
                found[-1] = (first, max(last, end), count + 1)
                continue
        found.append((begin, end, 1))
    return found


class _RandomAccessFile:
    """What both kinds of ranges share."""

    size: int
    cheap_bytes: int

    def __init__(self, source: Source) -> None:
        self.path = source.path

    def read_all(self, begins: Sequence[int], ends: Sequence[int]) -> list[Bytes]:
        spans = joined(begins, ends, self.cheap_bytes, _JOINED_BYTES)
        held = self._read_joined([(begin, end) for begin, end, _ in spans])
        found: list[Bytes] = []
        for (first, _, count), data in zip(spans, held, strict=True):
            at = len(found)
            found += [
                data[begin - first : end - first]
                for begin, end in zip(begins[at : at + count], ends[at : at + count], strict=True)
            ]
        return found

    def _read_joined(self, spans: list[tuple[int, int]]) -> list[Bytes]:
        raise NotImplementedError

    def _cut(self, at: int) -> OSError:
        return OSError(
            errno.EIO, f"the file ended at byte {at} of {self.size}: it was cut since it was opened", self.path
        )

    def close(self) -> None:
        """Nothing is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class LocalRandomAccessFile(_RandomAccessFile):
    """A file of the operating system, read by position: no two readers move each other."""

    cheap_bytes = 32 << 10
    block_bytes = 1 << 20
    hop_bytes = 128 << 10

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._fd = _descriptor(source)
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise ValueError(f"{printable(source.path)} is no regular file: it can be read only once, from its start")
        self.size = status.st_size

    def _read_joined(self, spans: list[tuple[int, int]]) -> list[Bytes]:
        return [self.read(begin, end) for begin, end in spans]

    def read(self, begin: int, end: int, buffer: Bytes | None = None) -> Bytes:
        """See `RandomAccessFile.read`."""
        buffer = np.empty(end - begin, np.uint8) if buffer is None else buffer[: end - begin]
        view = buffer.data
        done = 0
        while done < len(view):
            try:
                n = os.preadv(self._fd, [view[done:]], begin + done)
            except OSError as error:
                raise OSError(error.errno, f"{error.strerror}, at byte {begin + done}", self.path) from error
            if n == 0:
                raise self._cut(begin + done)
            done += n
        return buffer

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            self.close()


def _descriptor(source: Source) -> int:
    """Open a local file; a shard under the name it has, and of the dataset that was found."""
    shard = source.shard
    if shard is None:
        return os.open(source.path, os.O_RDONLY | os.O_CLOEXEC)
    with shard.watch(lambda: shard.open_local(source.path)) as raw:
        return os.dup(raw.fileno())


class RemoteRandomAccessFile(_RandomAccessFile):
    """An object of a bucket: ranges that are near are one request, several are under way at a time."""

    cheap_bytes = 1 << 20
    block_bytes = 4 * _JOINED_BYTES
    hop_bytes = _JOINED_BYTES

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        assert source.remote is not None
        self._source, self._process = source, os.getpid()
        fs, name = source.remote
        size = fs.size(name) if source.size is None else source.size
        if size is None:
            raise ValueError(
                f"{printable(source.path)}: its server does not tell its size, so it can be read only from its start"
            )
        self.size = int(size)

    def read(self, begin: int, end: int, buffer: Bytes | None = None) -> Bytes:
        """See `RandomAccessFile.read`; by several requests at a time where the bytes are many."""
        cuts = [*range(begin, end, _JOINED_BYTES), end]
        parts = self._read_joined(list(pairwise(cuts))) if begin < end else []
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.uint8), *parts])

    def _read_joined(self, spans: list[tuple[int, int]]) -> list[Bytes]:
        if self._process != os.getpid():  # an fsspec filesystem does not outlive a fork; its copy is made anew
            fs, _ = self._source.remote or (None, "")
            self._source, self._process = replace(self._source, _fs=copy.copy(fs)), os.getpid()
        found: list[Bytes] = []
        for at in range(0, len(spans), _REQUESTS):
            part = spans[at : at + _REQUESTS]
            readers = [self._source.piece(begin, end).open_ranges() for begin, end in part]
            found += self._read_side_by_side([reader for reader in readers if reader is not None], part)
        return found

    def _read_side_by_side(self, readers: list[RangeReader], spans: list[tuple[int, int]]) -> list[Bytes]:
        """One request for each span, all under way at a time; made again and held to the object's version as any reader's."""
        if len(readers) < len(spans):
            return self._read_by_the_filesystem(spans)
        for reader, (begin, end) in zip(readers, spans, strict=True):
            reader.ask(end - begin)
        found = []
        for reader, (begin, end) in zip(readers, spans, strict=True):
            with closing(reader):
                data = np.empty(end - begin, np.uint8)
                done = 0
                while done < len(data):
                    n = reader.readinto(data.data[done:])
                    if n == 0:
                        raise self._cut(begin + done)
                    done += n
                found.append(data)
        return found

    def _read_by_the_filesystem(self, spans: list[tuple[int, int]]) -> list[Bytes]:
        """Of filesystems that answer one call at a time."""
        from tfrecord_io.storage.filesystem.errors import told_as_os_error

        fs, name = self._source.remote or (None, "")
        begins, ends = zip(*spans, strict=True)
        with told_as_os_error(self.path):
            parts = fs.cat_ranges([name] * len(spans), list(begins), list(ends), on_error="return")  # type: ignore[union-attr]
        found = []
        for (begin, end), part in zip(spans, parts, strict=True):
            if isinstance(part, BaseException):
                part.add_note(f"{self.path}: reading bytes {begin} to {end}")
                raise part
            if len(part) != end - begin:
                raise self._cut(begin + len(part))
            found.append(np.frombuffer(part, np.uint8))
        return found
