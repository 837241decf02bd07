"""Files read at any offset: with pread on disk, where the system has it, by range requests from a bucket."""

from __future__ import annotations

import errno
import os
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrecord_io.base import LIMITS, Closing, for_cli, printable, quiet_at_exit
from tfrecord_io.bytes import CODECS, Array, Codec
from tfrecord_io.store import operating_systems
from tfrecord_io.store.filesystem.google import is_encoded
from tfrecord_io.store.filesystem.os_errors import replaced_error, request_blocking
from tfrecord_io.store.read.block_reader import Bytes
from tfrecord_io.store.read.plain_file import open_raw
from tfrecord_io.store.read.source import INCOMPLETE, ONLY_TAG, HeldContent, Source

if TYPE_CHECKING:
    from tfrecord_io.store.read.ranges_ahead import RangeReader

_MOST_REQUESTS = 32  # under way at a time
_JOINED_BYTES = 8 << 20  # limit of several ranges that are read as one
_VERSION_KEYS = ("md5Hash", "content_md5", "ETag", "etag", "mtime")  # of fsspec; those that a copy keeps come first


class RandomAccessFile(Closing):
    """A file to read at any offset, from several threads at a time, also after a fork."""

    size: int
    block_bytes: int  # how much to read at a time if the file is read through
    is_local: bool
    skip_bytes: int  # from this size on, skipping bytes is faster than reading them

    def __init__(self, source: Source) -> None:
        self.path = source.path

    @staticmethod
    def open(source: Source) -> RandomAccessFile:
        """Open a file for random access; a pipe is read to its end first.

        A piece of a file is a ValueError, as are records that were chosen of one, or are of another format.
        """
        if source.is_file_object:  # its position may be changed by the caller
            raise TypeError(f"{printable(source.path)}: random access takes paths, not file objects")
        if source.derived is not None and not source.has_no_file:
            reason = "its records were chosen, or are of another format, and are read from the first to the last"
            advice = "write them first with tfr.write_tfrecord(dataset, path)"
            raise ValueError(f"{printable(source.path)}: {reason}: {advice}")
        if source.span is not None:
            raise ValueError(f"{printable(source.path)}: a piece of a file is read from its start to its end")
        return LocalRandomAccessFile(source) if source.remote is None else RemoteRandomAccessFile(source)

    @staticmethod
    def open_local(source: Source) -> RandomAccessFile:
        """Open a local file as it is, also a copy of decompressed content."""
        return LocalRandomAccessFile(source)

    @staticmethod
    def open_plain(source: Source, purpose: str) -> RandomAccessFile:
        """Open a file for random access; if it is compressed, raise a ValueError that names `purpose`."""
        file = RandomAccessFile.open(source)
        codec = file.codec
        if codec is not None:
            file.close()
            reason = f"{purpose} needs a plain file, as a compressed one can only be read from its start"
            text = f"{printable(source.path)} is compressed ({codec.name}): {reason}; decompress it"
            error = ValueError(f"{text}, or read it with read_table or open_reader")
            raise for_cli(error, f"{text}, as tfr convert does")
        return file

    @staticmethod
    def open_version(source: Source, size: int, version: str | None, path: str) -> RandomAccessFile:
        """Open a file that has this size and, unless it is None, this version; if not, ReplacedError for the path."""
        file = RandomAccessFile.open(source)
        if file.size == size and version in (None, file.version):
            return file
        file.close()
        raise replaced_error(path)

    @property
    def codec(self) -> Codec | None:
        """The compression, detected by the first bytes; None for a plain file."""
        return CODECS.infer(self.read(0, min(CODECS.SNIFF_BYTES, self.size)).tobytes(), self.path)

    @property
    @abstractmethod
    def version(self) -> str:
        """Version of the content, as ``name=value``; empty if versions cannot be distinguished."""

    @property
    def identity(self) -> dict[str, int]:
        """Identity of the file itself: a replacement with the same version, or a copy, has another."""
        return {}

    @property
    def state(self) -> tuple[int, str, int | None]:
        """Size, version and, of a local file, its inode: another file under its name has another state."""
        return self.size, self.version, self.identity.get("inode")

    @staticmethod
    def state_of(source: Source) -> tuple[int, str, int | None] | None:
        """The state of the file that has the name of a source now; None if its size is unknown before it is read."""
        if source.size is None:  # of an object that is stored encoded
            return None
        with RandomAccessFile.open(source) as file:
            return file.state

    @abstractmethod
    def read(self, begin: int, end: int, buffer: Bytes | None = None) -> Bytes:
        """All bytes of [begin, end), optionally read into the start of `buffer`; OSError if the file ends before."""

    def read_all(self, begins: Sequence[int], ends: Sequence[int], gap: int | None = None) -> list[Bytes]:
        """Several ranges, in ascending order of their begins; those with at most a `gap` between them are read as one.

        By default, it has as many bytes as are read in the time of another range.
        """
        spans = join_ranges(begins, ends, LIMITS.gap_bytes[self.is_local] if gap is None else gap, _JOINED_BYTES)
        parts = self._read_spans([(begin, end) for begin, end, _ in spans])
        ranges: list[Bytes] = []
        for (first, _, count), data in zip(spans, parts, strict=True):
            part = slice(len(ranges), len(ranges) + count)
            ranges += [data[a - first : b - first] for a, b in zip(begins[part], ends[part], strict=True)]
        return ranges

    @abstractmethod
    def _read_spans(self, spans: list[tuple[int, int]]) -> list[Bytes]: ...

    @staticmethod
    def read_local(files: Sequence[RandomAccessFile], number: Array, begins: Array, ends: Array) -> Bytes | None:
        """Read ranges of local files into one buffer, in order; `number` has the file of each range.

        None if one of them cannot be read, which `read` explains, or the system has no pread.
        """
        descriptors = [file._fd for file in files if isinstance(file, LocalRandomAccessFile)]
        if len(descriptors) < len(files) or not len(begins) or not operating_systems.current.has_pread:
            return None
        adjoins = (begins[1:] == ends[:-1]) & (number[1:] == number[:-1])
        first = np.flatnonzero(np.concatenate([[True], ~adjoins]))
        last = np.append(first[1:], len(begins)) - 1
        at, sizes = begins[first].tolist(), (ends[last] - begins[first]).tolist()
        of = [descriptors[file] for file in number[first].tolist()]
        if len(files) == 1 and len(at) > 1:
            # The disk reads what is between ranges that are near each other as one request, if it is not in memory.
            begin, end = int(begins.min()), int(ends.max())
            if end - begin <= sum(sizes) + len(at) * LIMITS.gap_bytes[True] and hasattr(os, "posix_fadvise"):
                os.posix_fadvise(of[0], begin, end - begin, os.POSIX_FADV_WILLNEED)
        try:
            data = b"".join(map(os.pread, of, sizes, at))
        except OSError:
            return None
        return np.frombuffer(data, np.uint8) if len(data) == sum(sizes) else None

    @staticmethod
    def requests_for_ranges(size: int, ranges: int) -> int:
        """How many requests read so many ranges, which are not near each other, of an object of so many bytes."""
        return min(1, ranges) if size <= LIMITS.whole_object_bytes else ranges

    def forget(self) -> None:
        """Keep no content any more, so that each read finds out whether the file was replaced."""

    def _truncation_error(self, offset: int) -> OSError:
        text = f"the file ended at byte {offset} of {self.size}: it was truncated since it was opened"
        return OSError(errno.EIO, text, self.path)

    def close(self) -> None:
        """Release nothing: a remote file holds nothing open."""


def join_ranges(begins: Sequence[int], ends: Sequence[int], gap: int, most: int) -> list[tuple[int, int, int]]:
    """Join ascending ranges at most `gap` bytes apart to ones of at most `most` bytes: (begin, end, number joined).

    >>> join_ranges([0, 10, 500], [10, 20, 600], gap=100, most=1000)
    [(0, 20, 2), (500, 600, 1)]
    """
    spans: list[tuple[int, int, int]] = []
    for begin, end in zip(begins, ends, strict=True):
        if spans:
            first, last, count = spans[-1]
            if begin - last <= gap and end - first <= most:
                spans[-1] = (first, max(last, end), count + 1)
                continue
        spans.append((begin, end, 1))
    return spans


class LocalRandomAccessFile(RandomAccessFile):
    """A file of the operating operating_systems, read with pread, which has no shared file position."""

    block_bytes = 1 << 20
    is_local = True
    skip_bytes = 128 << 10

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        shard = source.shard
        if source.pipe is not None:
            source.open().close()
            self._fd = os.dup(source.pipe.spooled_descriptor())
        elif source.has_no_file:
            self._fd = os.open(os.devnull, os.O_RDONLY)
        elif shard is None:
            self._fd = os.open(
                operating_systems.current.full_name(source.path), os.O_RDONLY | operating_systems.current.open_flags
            )
        else:  # under its staged or final name, after a check that its dataset was not replaced
            with shard.open_checked(lambda: shard.call_with_name(source.path, open_raw)) as raw:
                self._fd = os.dup(raw.fileno())
        try:
            self._status = os.fstat(self._fd)
            self.size = self._status.st_size
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.path) from error

    @property
    def version(self) -> str:
        return f"mtime_ns={self._status.st_mtime_ns}"

    @property
    def identity(self) -> dict[str, int]:
        return {"ctime_ns": self._status.st_ctime_ns, "inode": self._status.st_ino}

    def _read_spans(self, spans: list[tuple[int, int]]) -> list[Bytes]:
        return [self.read(begin, end) for begin, end in spans]

    def read(self, begin: int, end: int, buffer: Bytes | None = None) -> Bytes:
        buffer = np.empty(end - begin, np.uint8) if buffer is None else buffer[: end - begin]
        view = buffer.data
        done = 0
        while done < len(view):
            try:
                n = operating_systems.current.read_at(self._fd, view[done:], begin + done)
            except OSError as error:
                raise OSError(error.errno, f"{error.strerror}, at byte {begin + done}", self.path) from error
            if n == 0:
                raise self._truncation_error(begin + done)
            done += n
        return buffer

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    @quiet_at_exit
    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            self.close()


class RemoteRandomAccessFile(RandomAccessFile):
    """An object of a bucket: ranges near each other become one request, and several requests run at a time.

    A small object is one request, and kept until the file is closed or is to `forget` it, or as long as its source.
    """

    block_bytes = 4 * _JOINED_BYTES
    is_local = False
    skip_bytes = _JOINED_BYTES

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        assert source.remote is not None
        self._source = source
        fs, _ = source.remote
        is_unknown = source.size is None and not is_encoded(source.info)
        size = request_blocking(lambda: fs.size(source.current_name()[0]), self.path) if is_unknown else source.size
        if size is None:
            why = (
                "it is stored with a Content-Encoding"
                if is_encoded(source.info)
                else "its server does not report its size"
            )
            reason = f"{why}, so it can be read only from its start"
            raise ValueError(f"{printable(source.path)}: {reason}")
        self.size = int(size)
        self._held = source.held or HeldContent()
        self._is_small = self.size <= LIMITS.whole_object_bytes

    @property
    def version(self) -> str:
        """See `RandomAccessFile.version`: a checksum or tag of the object."""
        _, info = self._source.current_name()
        if info is None:
            return ""
        keys = (ONLY_TAG,) if INCOMPLETE in info else _VERSION_KEYS  # elsewhere another key may have been the first
        return next((f"{key}={info[key]}" for key in keys if info.get(key)), "")

    def read(self, begin: int, end: int, buffer: Bytes | None = None) -> Bytes:
        """See `RandomAccessFile.read`; a large range is read by several requests at a time."""
        bounds = [*range(begin, end, _JOINED_BYTES), end]
        parts = self._read_spans(list(pairwise(bounds))) if begin < end else []
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.uint8), *parts])

    def _read_spans(self, spans: list[tuple[int, int]]) -> list[Bytes]:
        if self._is_small and self._held.is_kept and spans and max(end for _, end in spans) <= self.size:
            whole = self._held.content
            if whole is None:
                whole = self._held.content = self._request([(0, self.size)])[0].tobytes()
            return [np.frombuffer(whole, np.uint8, end - begin, begin) for begin, end in spans]
        return self._request(spans)

    def forget(self) -> None:
        self._held.drop()

    def _request(self, spans: list[tuple[int, int]]) -> list[Bytes]:
        parts: list[Bytes] = []
        for at in range(0, len(spans), _MOST_REQUESTS):
            group = spans[at : at + _MOST_REQUESTS]
            readers = [self._source.piece(begin, end).open_ranges() for begin, end in group]
            parts += self._read_concurrently([reader for reader in readers if reader is not None], group)
        return parts

    def _read_concurrently(self, readers: list[RangeReader], spans: list[tuple[int, int]]) -> list[Bytes]:
        """One request for each span, all under way at a time; retried, and checked against the object's version."""
        if len(readers) < len(spans):  # filesystems that handle one call at a time
            from tfrecord_io.store.filesystem.remote import unwrap  # imports fsspec

            fs, _ = self._source.remote or (None, "")
            stored_name, info = self._source.current_name()
            self._source.fill_cache(stored_name, info)
            fs, name = unwrap(fs, stored_name)
            return [request_blocking(partial(self._range, fs, name, begin, end), self.path) for begin, end in spans]
        for reader, (begin, end) in zip(readers, spans, strict=True):
            reader.request(end - begin)
        parts = []
        for reader, (begin, end) in zip(readers, spans, strict=True):
            with closing(reader):
                data = np.empty(end - begin, np.uint8)
                done = 0
                while done < len(data):
                    n = reader.readinto(data.data[done:])
                    if n == 0:
                        raise self._truncation_error(begin + done)
                    done += n
                parts.append(data)
        return parts

    def _range(self, fs: Any, name: str, begin: int, end: int) -> Bytes:
        try:
            answer = fs.cat_file(name, begin, end)
        except FileNotFoundError as error:
            raise replaced_error(self.path) from error
        if len(answer) == self.size:  # older versions of fsspec ignore the range in a filesystem of pyarrow
            answer = answer[begin:end]
        if len(answer) != end - begin:
            raise self._truncation_error(begin + len(answer))
        return np.frombuffer(answer, np.uint8)
