"""A file to read, with the statements of its dataset's manifest.

Tests: tests/store/read/test_open_stream.py and tests/store/read/test_file_object.py.
"""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeVar, overload

import numpy as np
import pyarrow as pa

from tfrecord_io.base import LIMITS, MIB, printable
from tfrecord_io.bytes import CODECS, Array, PlainStream, Raw, Stream, open_decompressed
from tfrecord_io.errors import CompressionError, CorruptRecordError, ReplacedError
from tfrecord_io.store.filesystem.interface import Entry, FileSystem, LocalFileSystem, is_dangling
from tfrecord_io.store.filesystem.locate import Location, is_remote
from tfrecord_io.store.read.plain_file import open_raw

if TYPE_CHECKING:
    from tfrecord_io.base import ProgressMeter
    from tfrecord_io.store.filesystem.remote import FsspecFileSystem
    from tfrecord_io.store.read.file_object import CallerFile
    from tfrecord_io.store.read.pipe import Pipe
    from tfrecord_io.store.read.range_requests import RemoteObject
    from tfrecord_io.store.read.ranges_ahead import RangeReader, Window


SMALL_BYTES = 8 * MIB  # of a file that is read by one request
_CHECKED_BYTES = 1 << 20  # read at a time
_BUFFER_BYTES = 8 << 10  # small: columns of an array are read in pieces
_DECOMPRESSED_BYTES = 1 << 20  # to read at once in order
_ID_BYTES = 1 << 16  # of a manifest that are read for its id
MANIFEST_ADVICE = "write the dataset again, or delete the manifest if the files were changed on purpose"

T = TypeVar("T")
_Opened = TypeVar("_Opened", bound=Raw)
MOST_MANIFEST_BYTES = 256 * MIB  # about 2 million files
ONLY_TAG = "ETag"  # a key of the description of an object in S3, of which fsspec states no checksum
INCOMPLETE = "incomplete"  # a key of the description of an object that was pickled: it has little more than the version
_ID = rb'"id":\s*"([0-9a-f]{16})"'  # of a manifest; names of files have ids, too


class ManifestVersion(NamedTuple):
    """The manifest of a dataset as it was when the files were looked up."""

    fs: FileSystem
    name: str  # in `fs`
    id: str  # differs for each writing of the dataset
    schema: bytes | None
    partition_schema: bytes | None = None  # of the columns in folders' names
    metadata: tuple[tuple[str, str], ...] = ()  # texts by name
    line: str = ""  # the id of the writing since which no rows were replaced
    commit: int = 0  # of the last change

    @property
    def path(self) -> str:
        return self.fs.display_path(self.name)

    def check_unchanged(self) -> None:
        """Raise ReplacedError if the dataset was replaced: files read before may be of the old one."""
        with suppress(FileNotFoundError):
            if is_remote(self.fs):
                start = self.fs.read_object(self.name)  # by one request
            else:
                with closing(open_raw(self.name)) as raw:
                    start = raw.read(_ID_BYTES)
            if _id_in(start) == self.id:  # the first bytes have the id, as this package writes it
                return
        entry = self.fs.entry(self.name, is_file=True)
        if entry is None or _id_in(read_manifest(self.fs, entry)) != self.id:
            raise _replaced_error(self.path, "dataset")


def _id_in(text: bytes) -> str | None:
    """The id in the text of a manifest, or in its beginning: the first, as metadata may have one of this name, too."""
    found = re.search(_ID, text)
    return None if found is None else found[1].decode()


class ManifestShard(NamedTuple):
    """A manifest's statements about one file."""

    manifest: ManifestVersion
    records: int
    bytes: int  # of the file, compressed if it is
    crc32c: int | None  # of the same bytes, unmasked; None if unknown
    staged: str | None  # the name in the filesystem as long as its writer has not renamed or copied it
    watched: bool  # the dataset is checked to be unchanged each time that the file is opened
    is_unseen: bool = False  # the file was not looked up: its size is compared when it is opened

    def open_checked(self, open_file: Callable[[], _Opened]) -> _Opened:
        """Open the file, and check that its dataset was not replaced."""
        try:
            raw = open_file()
        except FileNotFoundError:
            self.manifest.check_unchanged()
            raise
        try:
            if self.watched:
                self.manifest.check_unchanged()
            if self.is_unseen and isinstance(raw, io.FileIO):
                self._check_open_size(raw)
        except BaseException:
            raw.close()
            raise
        return raw

    def _check_open_size(self, raw: io.FileIO) -> None:
        """Raise CorruptRecordError if an open file has another size than stated, ReplacedError if the dataset does."""
        size, path = os.fstat(raw.fileno()).st_size, str(raw.name)
        if size != self.bytes:
            self.manifest.check_unchanged()
            self.check_size(size, path)

    def call_with_name(self, path: str, use: Callable[[str], T]) -> T:
        """Call `use` with the staged name of a local file, or, once renamed, with the final name."""
        if self.staged is not None:
            with suppress(FileNotFoundError):
                return use(self.staged)
        return use(path)

    def absolute(self, directory: str) -> ManifestShard:
        """A copy with absolute paths, for a process with another working directory."""
        manifest = self.manifest._replace(name=os.path.join(directory, self.manifest.name))
        return self._replace(manifest=manifest, staged=self.staged and os.path.join(directory, self.staged))

    def check_records(self, records: int, path: str) -> None:
        self._check("{} records", records, self.records, path)

    def check_size(self, size: int, path: str) -> None:
        self._check("{} bytes", size, self.bytes, path)

    def check_checksum(self, crc32c: int, path: str) -> None:
        self._check("the CRC32C {:08x}", crc32c, self.crc32c, path)

    def _check(self, form: str, got: int, expected: int | None, path: str) -> None:
        """Raise CorruptRecordError if the file has another number than stated."""
        if expected not in (got, None):
            reason = f"the file has {form.format(got)}, but '{self.manifest.path}' states {form.format(expected)}"
            raise CorruptRecordError(reason, path=path, expected=expected, got=got, hint=MANIFEST_ADVICE)


class ManifestFile(NamedTuple):
    """One shard."""

    path: str  # its name in the manifest's directory, after its partition folders
    records: int
    bytes: int  # of the file, compressed if it is
    crc32c: int  # of the same bytes, unmasked
    staged: str | None = None  # the name of the file until it is renamed to `path`
    source: Mapping[str, str | int] | None = None  # the file that it was made of
    joined: tuple[Mapping[str, str | int], ...] = ()  # the files that those were made of which were joined in it

    @property
    def sources(self) -> Sequence[Mapping[str, str | int]]:
        """The source files of this file's records, in their order; empty if unknown."""
        return self.joined if self.source is None else (self.source,)

    @property
    def is_plain(self) -> bool:
        """True if it states nothing but its path, records, size and checksum."""
        return self.staged is None and self.source is None and not self.joined


class Origin(NamedTuple):
    """Where a record comes from; None: unknown."""

    path: str | None
    record: int | None
    offset: int | None  # of its header


class Origins(Protocol):
    """Origin of the records of a source made from another file's records."""

    def __call__(self, record: int) -> Origin | None:
        """The origin of the record with this number here; None if there is none."""

    def byte(self, record: int, byte: int) -> int:
        """The byte of a payload of the file that a byte of a payload here was; −1 if unknown."""


class DerivedContent(Protocol):
    """Records made of those of other sources."""

    can_be_read_again: bool  # its sources can be, and are not asked for more than once by one read
    schema: bytes | None  # what its first record embeds, or would, if that is known before it is read

    def open(self) -> Stream:
        """Open it from the start, any number of times. Its errors have their path, record and offset."""

    def read_once(self) -> None:
        """See `Source.read_once`."""


class RecordRef(NamedTuple):
    """A record of a dataset, as messages name it; `file` is the file's number in the order of reading."""

    path: str | None
    record: int
    file: int = 0

    def __str__(self) -> str:
        return self.text()

    def text(self, limit: int | None = 200) -> str:
        """The path, in at most `limit` characters, and the number."""
        return f"record {self.record}" if self.path is None else f"{printable(self.path, limit)} record {self.record}"

    def order(self) -> tuple[int, int, str]:
        return self.file, self.record, self.path or ""


class Source:
    """A file to read: on disk, behind a URL, or an open binary file object.

    It is not changed once it is made. Of a `span` (begin, end), only this piece of the file is read. Offsets and record
    numbers count from its begin. A piece with `file_bytes` ends anywhere: `tfrecord_io.read.byte_ranges` finds the
    records that begin in it.
    """

    TFDS_FEATURES: ClassVar = "features.json"  # this and the next are what TFDS writes next to the files of a dataset
    TFDS_INFO: ClassVar = "dataset_info.json"

    _COMPARED: ClassVar = (
        *("path", "size", "local", "_fsspec", "_name", "_file"),
        *("span", "shard", "partitions", "file_bytes", "records"),
    )
    __slots__ = (*_COMPARED, "info", "_prefetched", "pipe", "origin", "derived", "beside", "held")

    def __init__(
        self,
        path: str,
        size: int | None,
        local: bool,
        _fsspec: Any = None,
        _name: str | None = None,
        _file: CallerFile | None = None,
        span: tuple[int, int] | None = None,
        shard: ManifestShard | None = None,
        partitions: tuple[tuple[str, str | None], ...] = (),
        info: Mapping[str, Any] | None = None,
        _prefetched: Any = None,
        pipe: Pipe | None = None,
        origin: Origins | None = None,
        derived: DerivedContent | None = None,
        file_bytes: int | None = None,
        records: int | None = None,
        beside: Mapping[str, Entry] | None = None,
        held: HeldContent | None = None,
    ) -> None:
        self.path = path  # a local path or a URL; of a file object its name, or its class in ``<>``
        self.size = size  # bytes of the file when it was looked up, None if unknown; of a piece, those of the piece
        self.local = local  # a file of the operating system
        self._fsspec = _fsspec
        self._name = _name
        self._file = _file
        self.span = span
        self.shard = shard  # what its dataset's manifest states about it
        self.partitions = partitions  # columns and values, from folders such as ``label=cat``
        self.info = info  # fsspec's, such as its ETag
        self._prefetched = _prefetched  # a raw file that is open, as a RangeReader is
        self.pipe = pipe  # of a local file that is not a regular one
        self.origin = origin
        self.derived = derived  # instead of the file's content
        self.file_bytes = file_bytes  # of the file of a `byte_range`; None of other sources
        self.records = records  # of a piece, where it is known
        self.beside = beside  # the files of its directory
        self.held = held  # of a small object, once it was read

    def replace(self, **attributes: Any) -> Source:
        """Copy this source with other values of these attributes."""
        return Source(**{name: getattr(self, name) for name in self.__slots__} | attributes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and self._compared == other._compared

    def __hash__(self) -> int:
        return hash(self._compared)

    @property
    def _compared(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self._COMPARED)

    def __repr__(self) -> str:
        return f"Source({self.path!r}, {self.size}, span={self.span})"

    @classmethod
    def from_entry(
        cls,
        fs: FileSystem,
        entry: Entry,
        shard: ManifestShard | None = None,
        partitions: tuple[tuple[str, str | None], ...] = (),
        beside: Mapping[str, Entry] | None = None,
    ) -> Source:
        """Make the source of a file from its entry, manifest entry, folders and listing."""
        told: dict[str, Any] = {"shard": shard, "partitions": partitions, "beside": beside}
        if is_remote(fs):
            return cls(
                fs.display_path(entry.name),
                entry.size,
                local=False,
                _fsspec=fs.fsspec,
                _name=entry.name,
                info=entry.info,
                **told,
            )
        if entry.size is None:
            from tfrecord_io.store.read.pipe import Pipe  # for FIFOs and devices only

            told["pipe"] = Pipe(entry.name)
        return cls(entry.name, entry.size, True, **told)

    @classmethod
    def from_file_object(cls, file: Any) -> Source:
        """The source of a binary file object. In text mode it is a TypeError, if not open for reading a ValueError."""
        from tfrecord_io.store.read.file_object import CallerFile

        if isinstance(file, io.TextIOBase):
            raise TypeError("the file is open in text mode; open it with mode 'rb'")
        if hasattr(file, "readable") and not file.readable():
            raise ValueError("the file is not open for reading")
        name = getattr(file, "name", None)
        return cls(name if isinstance(name, str) else f"<{type(file).__name__}>", None, False, _file=CallerFile(file))

    @classmethod
    def in_memory(cls, name: str, size: int, content: DerivedContent) -> Source:
        """The source of records in memory; like a file object, it has no files next to it."""
        from tfrecord_io.store.read.file_object import CallerFile

        return cls(name, size, False, _file=CallerFile(None), derived=content)

    @property
    def stated_schema(self) -> tuple[bytes, str] | None:
        """The embedded schema of the manifest, or of rows of a dataset, and the path of its file; None if unknown."""
        if self.shard is not None and self.shard.manifest.schema is not None:
            return self.shard.manifest.schema, self.shard.manifest.path
        if self.derived is not None and self.derived.schema is not None:
            return self.derived.schema, self.path
        return None

    def open(self, window: Window | None = None, *, arrives: bool = False) -> Raw:
        """Open for reading from the start; a file object is read from its first position, and close() leaves it open.

        If a file object cannot seek and was opened before, this is an OSError. `window` is that of a remote file. One
        that is read once and whole `arrives` by one request and is used meanwhile, if its store allows that.
        """
        if self._file is not None:
            from tfrecord_io.store.read.file_object import BorrowedFile

            self._file.rewind()
            return BorrowedFile(self._file.file)
        open_file = partial(self._open, window, arrives)
        return open_file() if self.shard is None else self.shard.open_checked(open_file)

    def _open(self, window: Window | None, arrives: bool) -> Raw:
        remote = self._remote_object() if arrives else None
        if remote is not None and remote.arrives and self.size and self.span is None:
            from tfrecord_io.store.read.arriving_object import ArrivingObject  # imports fsspec

            return ArrivingObject(remote, self.size)
        if self.has_no_file:
            return open_raw(os.devnull)
        if self.held is not None and self.held.content is not None:
            return io.BytesIO(self.held.content)
        if self._prefetched is not None:
            from tfrecord_io.store.read.file_object import BorrowedFile

            self._prefetched.seek(self.begin)
            return BorrowedFile(self._prefetched)
        if self._fsspec is not None:
            return self.open_ranges(window) or self._open_sequential()
        if self.pipe is not None:
            return self.pipe.open()
        return open_raw(self.path) if self.shard is None else self.shard.call_with_name(self.path, open_raw)

    def open_stream(
        self,
        compression: str | None = "infer",
        *,
        recover: bool = False,
        asks: bool = False,
        max_decompression_ratio: float | None = None,
        raw: Raw | None = None,
    ) -> Stream:
        """Open the source and decompress it; `raw` is the open file, which is opened by default.

        The `compression` "infer" is detected by content; the name of a codec is
        checked against the content, and is a CompressionError if it does not match. A piece of a file is always plain.
        With `max_decompression_ratio`, a file that decompresses to more times its size is a CompressionError when it is
        read.

        With `recover`, a damaged compressed file is read on after the damage (by a
        `tfrecord_io.bytes.RecoveringStream`), also if its first bytes are damaged: its codec is then the one named, or
        that of its suffix. If it also `asks`, each damage is a CompressionError, until ``pass_damage`` is called.
        """
        from tfrecord_io.store.read.open_stream import SpanStream, detect_codec

        codec = (
            None if compression == CODECS.INFER else CODECS.find(compression)
        )  # rejects a wrong name before the file is open
        if self.derived is not None:
            return self.derived.open()
        assert self.file_bytes is None, "a byte range is aligned to records before it is read"
        raw = self.open() if raw is None else raw
        try:
            if self.span is not None:
                if codec is not None:
                    reason = f"compression={compression!r} was passed, but this is a piece of a plain file"
                    raise CompressionError(reason, path=self.path)
                return SpanStream(raw, self.path, *self.span)
            size = self._open_size(raw)
            codec, head = detect_codec(raw, self.path, size, compression, recover=recover, asks=asks)
            if self.pipe is not None:
                self.pipe.may_rewind = codec is not None  # at damage
            if recover and codec is not None:
                from tfrecord_io.bytes import RecoveringStream

                plain = PlainStream(raw, self.path, head, size)
                return RecoveringStream(plain, codec, max_decompression_ratio, asks=asks)
            return open_decompressed(raw, codec, self.path, head=head, size=size, max_ratio=max_decompression_ratio)
        except BaseException:
            raw.close()
            raise

    def _open_size(self, raw: Raw) -> int | None:
        """Bytes of the open file: the path may name another one than when its size was looked up."""
        if self.size is None or not isinstance(raw, io.FileIO):
            return self.size
        try:
            return os.fstat(raw.fileno()).st_size
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.path) from error

    def open_file(self) -> Any:
        """Open a buffered binary file, for zipfile, pyarrow and the like; seekable if the storage is."""
        from tfrecord_io.store.read.file_object import RawFile

        raw: Any = self.open()
        try:
            size = self._open_size(raw) if self.pipe is None else self.pipe.spool()
            return io.BufferedReader(raw if isinstance(raw, io.RawIOBase) else RawFile(raw, size), _BUFFER_BYTES)
        except BaseException:
            raw.close()
            raise

    def open_decompressed(self, meter: ProgressMeter | None = None) -> io.BufferedReader:
        """Open the decompressed content, to be read in order; `meter` is advanced by the bytes of the file."""
        from tfrecord_io.store.read.file_object import DecompressedFile

        return io.BufferedReader(DecompressedFile(self.open_stream(), self.size, meter), _DECOMPRESSED_BYTES)

    def read(self, limit: int = -1) -> bytes:
        """All bytes of a small file, or slightly more than `limit` bytes of a larger one; of a pipe nothing is kept."""
        parts, size = [], 0
        with closing(open_raw(self.path) if self.local else self.open()) as raw:
            while (limit < 0 or size <= limit) and (n := raw.readinto(buffer := memoryview(bytearray(1 << 16)))):
                parts.append(bytes(buffer[:n]))
                size += n
        return b"".join(parts)

    def checksum(self, crc32c: Callable[[memoryview, int], int]) -> tuple[int, int]:
        """Size and checksum of the whole file; `crc32c` continues a checksum with more bytes."""
        buffer = memoryview(bytearray(_CHECKED_BYTES))
        from tfrecord_io.store.read.file_object import SummedFile

        with closing(SummedFile(self.open(), crc32c)) as raw:
            while raw.readinto(buffer):
                pass
        return raw.size, raw.crc

    def open_whole(self, most: int, *, arrives: bool = False) -> Raw:
        """Open a file to be read to its end; memory holds at most `most` bytes of a remote file.

        With `arrives`, it is read once, and used as it arrives where its store allows that.
        """
        if self.remote is None:
            return self.open()
        from tfrecord_io.store.read.ranges_ahead import RangeReader, Window  # imports fsspec

        readers: list[RangeReader] = []
        window = Window(iter(readers), most=most)
        raw = self.open(window, arrives=arrives)
        if isinstance(raw, RangeReader):
            readers.append(raw)  # its next ranges are requested while one is used
        return raw

    def open_ranges(self, window: Window | None = None) -> RangeReader | None:
        """Open for reading by range requests; None if the filesystem's own file object is to be used, or it is open."""
        remote = self._remote_object()
        if remote is None:
            return None
        from tfrecord_io.store.read.ranges_ahead import RangeReader  # imports fsspec

        end = (self.size or 0) if self.span is None else self.span[1]
        return RangeReader(remote, end, window, self._open_sequential, begin=self.begin)

    def _remote_object(self) -> RemoteObject | None:
        """Where range requests are made; None if the filesystem's own file object is to be used, or it is open."""
        is_open = self._prefetched is not None or (self.held is not None and self.held.content is not None)
        if not self.remote or is_open:
            return None
        from tfrecord_io.store.filesystem.remote import reopen_if_forked
        from tfrecord_io.store.read.range_requests import open_object  # imports fsspec

        name, info = self.current_name()
        return open_object(reopen_if_forked(self._fsspec), name, info, self.path)

    def _open_sequential(self) -> Raw:
        """Open with the filesystem's own file object, which a web server sends as one response."""
        from tfrecord_io.store.filesystem.google import is_encoded
        from tfrecord_io.store.filesystem.remote import can_list
        from tfrecord_io.store.read.file_object import StoredFile

        name, info = self.current_name()
        in_order = is_encoded(info) or not can_list(self._fsspec)
        open_file = partial(self._open_file_object, name, info or {})
        return StoredFile(open_file, self.path, (info or {}).get("size"), in_order=in_order)

    def _open_file_object(self, name: str, info: Mapping[str, Any], again: bool) -> Any:
        """Open the filesystem's own file object; if `again`, check that the file is still the one described."""
        from tfrecord_io.store.filesystem.google import decoded_address, is_encoded
        from tfrecord_io.store.filesystem.os_errors import stale_error
        from tfrecord_io.store.filesystem.remote import can_list, is_cache, reopen_if_forked, unwrap
        from tfrecord_io.store.read.range_requests import check_version
        from tfrecord_io.store.read.web_response import open_response

        fs = reopen_if_forked(self._fsspec)
        now = self.current_name()[0] if again else name  # of a shard, another one once its writer has renamed it
        with ExitStack() as opened:
            try:
                self.fill_cache(now, info)
                if is_encoded(info):
                    file = open_response(*decoded_address(*unwrap(fs, now)))
                else:
                    file = fs.open(now, "rb") if can_list(fs) else open_response(fs, now)
                opened.callback(file.close)
                if is_cache(fs):
                    if info.get("size") not in (None, file.seek(0, os.SEEK_END)):
                        raise stale_error(self.path)
                    file.seek(0)
                if again and now == name:
                    check_version(info, self._store.describe(name), self.path)
            except FileNotFoundError as error:
                if again:
                    raise _replaced_error(self.path) from error
                raise
            opened.pop_all()
        return file

    def fill_cache(self, name: str, info: Mapping[str, Any] | None) -> None:
        """Download the file of this name and description, if it is in a ``simplecache`` of fsspec that lacks it."""
        from tfrecord_io.store.filesystem.remote import is_cache, reopen_if_forked

        fs = reopen_if_forked(self._fsspec)
        if is_cache(fs):
            from tfrecord_io.store.read.fill_cache import fill_cache

            fill_cache(fs, name, partial(self._open_stored, info or {}))

    def _open_stored(self, info: Mapping[str, Any], fsspec: Any, name: str) -> Raw | None:
        """Open the file below a cache, to be read whole; None if the filesystem's own file object is to be used."""
        size = info.get("size")
        stored = Source(self.path, size, False, _fsspec=fsspec, _name=name, info=info)
        if size is None or stored._remote_object() is None:
            return None
        return stored.open_whole(LIMITS.pending_range_bytes, arrives=size <= SMALL_BYTES)

    def current_name(self) -> tuple[str, Mapping[str, Any] | None]:
        """The name that a remote file has now, and fsspec's description of it.

        A shard may still have its staged name only. Once its writer has removed that, it has its final name, unless
        the next writer has replaced the dataset.
        """
        name = str(self._name)
        if self.shard is None or self.shard.staged is None:
            return name, self.info
        fs = self._store
        entry = fs.entry(self.shard.staged, is_file=True)
        if entry is None:
            entry = fs.entry(name, is_file=True)
            self.shard.manifest.check_unchanged()
        if entry is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.path)
        return entry.name, entry.info

    @property
    def _store(self) -> FsspecFileSystem:
        """The filesystem of a remote file."""
        from tfrecord_io.store.filesystem.remote import FsspecFileSystem

        return FsspecFileSystem(self._fsspec)

    def read_once(self) -> None:
        """Promise that the file is not opened again: a pipe need not keep what was read."""
        if self.derived is not None:
            self.derived.read_once()
        if self.pipe is not None:
            self.pipe.is_read_once = True  # what the next reader reads need not be kept for others

    def close(self) -> None:
        """Close a pipe, so that its writer ends, and drop the kept bytes; other files are not open."""
        if self.pipe is not None:
            self.pipe.close()

    @property
    def can_be_read_again(self) -> bool:
        """True if the source is neither a file object nor a pipe."""
        if self.derived is not None:
            return self.derived.can_be_read_again
        return not self.is_file_object and self.size is not None

    @property
    def is_pipe(self) -> bool:
        """True for a FIFO or device; a dangling link has no size either, but is none."""
        return self.pipe is not None and not is_dangling(self.path)

    @property
    def is_dangling(self) -> bool:
        """True for a link to itself or to a missing file."""
        return self.pipe is not None and is_dangling(self.path)

    @property
    def is_file_object(self) -> bool:
        return self._file is not None

    @property
    def is_whole_file(self) -> bool:
        """True for a regular file of this machine, all of which is read as it is."""
        return self.local and self.pipe is None and self.span is None and self.derived is None

    @property
    def is_small(self) -> bool:
        """True if one request for the whole object costs no more than a range request."""
        from tfrecord_io.store.filesystem.google import is_encoded

        is_object = self.remote is not None and not is_encoded(self.info)
        return is_object and self.span is None and self.size is not None and self.size <= LIMITS.whole_object_bytes

    def holding(self) -> Source:
        """A copy that holds the content of a small object in memory, once it was read."""
        return self.replace(held=HeldContent())

    def drop_held_content(self) -> Source:
        """A copy without held content: each read finds out whether the object was replaced."""
        return self if self.remote is None else self.replace(held=HeldContent(is_kept=False))

    @property
    def modification_time(self) -> int:
        """When a local file was last changed, in ns since the epoch."""
        status = os.stat(self.path) if self.shard is None else self.shard.call_with_name(self.path, os.stat)
        return status.st_mtime_ns

    @property
    def remote(self) -> tuple[Any, str] | None:
        """The fsspec filesystem of a remote file, and the file's final name there; None for other files."""
        if self._fsspec is None:
            return None
        from tfrecord_io.store.filesystem.remote import reopen_if_forked

        return reopen_if_forked(self._fsspec), str(self._name)

    @property
    def location(self) -> Location:
        """The filesystem of a file, and the file's final name there."""
        if self._fsspec is None:
            return Location(LocalFileSystem(), self.path)
        return Location(self._store, str(self._name))

    def index_place(self, suffix: str) -> tuple[Any, str]:
        """The fsspec filesystem, None for a local file, and the name to write an index to.

        It is next to the file; of a local file in a read-only folder, in the user's cache.
        """
        if self.remote is not None:
            fs, name = self.remote
            return fs, name + suffix
        from tfrecord_io.store.read.index_cache import place_for

        return None, place_for(self.path, suffix)

    def may_be_beside(self, name: str) -> bool:
        """True if the source's directory may have a file of this name: not if a listing has none."""
        return self.beside is None or f"{str(self._name).rpartition('/')[0]}/{name}" in self.beside

    @property
    def begin(self) -> int:
        """The first byte that is read."""
        return 0 if self.span is None else self.span[0]

    def absolute(self, directory: str | None = None) -> Source:
        """A copy with an absolute path in `directory`, by default the working directory, for other processes.

        Unlike in `os.path.abspath`, ".." is left alone, which may follow a link.
        """
        if not self.local:
            return self
        directory = directory or ("" if os.path.isabs(self.path) else os.getcwd())  # which may be gone
        path = os.path.join(directory, self.path)
        return self.replace(path=path, shard=self.shard and self.shard.absolute(directory))

    def piece(self, begin: int, end: int, records: int | None = None) -> Source:
        """A piece of this file, which must be plain, with so many records if that is known."""
        return self.replace(size=end - begin, span=(begin, end), records=records, held=None)

    def byte_range(self, begin: int, end: int) -> Source:
        """The records of this file that begin at the bytes from `begin` to `end`; to be aligned before it is read.

        Of a piece the bytes count from its begin.
        """
        file = self.whole_file()
        span = self.begin + begin, self.begin + end
        return file.replace(size=end - begin, span=span, file_bytes=file.size, held=None)

    def whole_file(self) -> Source:
        """The file that this is a piece of, as it is now; a file as it is. ReplacedError if its version is another."""
        if self.span is None:
            return self
        if self.remote is None:
            status = os.stat(self.path) if self.shard is None else self.shard.call_with_name(self.path, os.stat)
            return self.replace(span=None, file_bytes=None, records=None, size=status.st_size)
        name, info = self.current_name()
        is_described = info is not None and (INCOMPLETE not in info or ONLY_TAG in info)
        if info is not None and is_described and info.get("size") is not None:
            return self.replace(span=None, file_bytes=None, records=None, size=info["size"])
        entry = self._store.entry(name, is_file=True)
        if entry is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.path)
        kept, now = dict(info or ()), entry.info or {}
        if any(str(now[key]) != str(kept[key]) for key in kept.keys() & now.keys() - {"size"}):
            raise _replaced_error(self.path)
        return self.replace(span=None, file_bytes=None, records=None, size=entry.size, info=entry.info)

    def check_unchanged(self) -> None:
        """Raise ReplacedError if the file has another size than when it was looked up, or its dataset was replaced."""
        if self.shard is None:
            return
        self.shard.manifest.check_unchanged()
        if self.has_no_file:
            return
        size: int | None
        if self.remote is None:
            size = self.shard.call_with_name(self.path, os.stat).st_size
        else:
            entry = self._store.entry(self.current_name()[0])
            size = None if entry is None else entry.size
        if size != (self.size if self.span is None else self.file_bytes):
            raise _replaced_error(self.path)

    @property
    def stated_shard(self) -> ManifestShard | None:
        """The entry of a manifest about the file, also about one with only some of its records."""
        return self.shard or getattr(self.derived, "shard", None)

    @property
    def has_no_file(self) -> bool:
        """True for a dataset whose manifest names no file; see `NoContent`."""
        return self.derived is not None and self.shard is not None

    @property
    def begins_file(self) -> bool:
        """True if the source begins with the first record of a file."""
        first = None if self.origin is None or self.derived is not None else self.origin(0)
        return not self.begin and (first is None or not first.record)

    def replaced_error(self) -> ReplacedError:
        """The error for a file replaced since the lookup."""
        return _replaced_error(self.path)

    @staticmethod
    def total(numbers: Iterable[int | None]) -> int | None:
        """The sum of sizes or numbers of records; None if one is unknown."""
        counts = list(numbers)
        return None if None in counts else sum(filter(None, counts))

    @staticmethod
    def is_elsewhere(directory: str) -> bool:
        """True if the working directory has changed, or was removed."""
        try:
            return os.getcwd() != directory
        except FileNotFoundError:
            return True


class Sources(Sequence[Source]):
    """Files in the order of reading; immutable. Equal are those with equal files.

    Attributes
    ----------
    have_partitions : bool
        True if a file may be in a folder of a partition column.
    """

    have_partitions: bool

    def __init__(self, sources: Iterable[Source] = ()) -> None:
        self._sources = tuple(sources)
        self.have_partitions = any(map(attrgetter("partitions"), self._sources))

    @staticmethod
    def of(sources: Iterable[Source]) -> Sources:
        """The files as a sequence that answers for all of them."""
        return sources if isinstance(sources, Sources) else Sources(sources)

    @overload
    def __getitem__(self, at: int) -> Source: ...
    @overload
    def __getitem__(self, at: slice) -> Sources: ...
    def __getitem__(self, at: int | slice) -> Source | Sources:
        return Sources(self._sources[at]) if isinstance(at, slice) else self._sources[at]

    def __len__(self) -> int:
        return len(self._sources)

    def __iter__(self) -> Iterator[Source]:
        return iter(self._sources)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Sources | tuple | list) or len(self) != len(other):
            return False
        return all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} files>"

    def take(self, numbers: Array) -> Sources:
        """The files of these numbers, in this order."""
        return Sources(map(self._sources.__getitem__, numbers.tolist()))

    def run(self, worker: int, workers: int) -> tuple[int, int] | None:
        """The numbers of the files in the run of one of several workers: the first, and that after the last.

        None if workers have no runs, but every n-th file.
        """
        return None

    def share(self, worker: int, workers: int) -> Sources:
        """The files of one of several workers, each of which has a file."""
        return self[worker::workers]

    def select_by_folder(
        self,
        fields: Sequence[pa.Field],
        may_be_in: Callable[[pa.RecordBatch], Array],
        are_wanted: Callable[[Sources], Array],
    ) -> Sources:
        """The files in wanted folders; those of parts of a manifest in whose bounds none can be are not looked at.

        Parameters
        ----------
        fields : sequence of pyarrow.Field
            The partition columns.
        may_be_in : callable
            Returns a boolean for each row of a batch with the columns "least x" and "greatest x" of each field x: the
            bounds of its values in some folders, null where they are not known. False if no wanted folder is there.
        are_wanted : callable
            Returns a boolean for each of some files: true if it is in a wanted folder.

        All files of a folder stay, or all go, and those that stay are in their order.
        """
        return self._where(are_wanted(self))

    def _where(self, are_wanted: Array) -> Sources:
        return self if are_wanted.all() else self.take(np.flatnonzero(are_wanted))

    @property
    def are_of_manifest(self) -> bool:
        """True if a manifest names all files, which are whole regular files: none needs to be asked what it is."""
        return False

    @property
    def have_stated_schemas(self) -> bool:
        """True if the embedded schema of all files is known without reading one."""
        return None not in map(attrgetter("stated_schema"), self)

    @property
    def are_local(self) -> bool:
        """True if all are files of the operating system."""
        return all(map(attrgetter("local"), self))

    @property
    def can_be_read_again(self) -> bool:
        """True if none is a file object or a pipe."""
        return all(map(attrgetter("can_be_read_again"), self))

    @property
    def bytes(self) -> int | None:
        """The size of the files together; None if one is unknown."""
        return Source.total(map(attrgetter("size"), self))

    @property
    def sizes(self) -> Array | None:
        """The sizes of the files, as int64; None if one is unknown."""
        sizes = [source.size for source in self]
        return None if None in sizes else np.array(sizes, np.int64)

    @property
    def paths(self) -> list[str]:
        """The paths of the files."""
        return [source.path for source in self]

    @property
    def stated_records(self) -> int | None:
        """The records of the files together, if manifests state them; None if not."""
        if not all(source.shard is not None and source.span is None for source in self):
            return None
        return sum(source.shard.records for source in self if source.shard is not None)

    @property
    def manifests(self) -> dict[ManifestVersion | None, Source]:
        """The manifests that state something of the files, None where there is none, each with its first file."""
        found: dict[ManifestVersion | None, Source] = {}
        for source in self:
            shard = source.stated_shard
            found.setdefault(None if shard is None else shard.manifest, source)
        return found

    @property
    def manifest_versions(self) -> list[ManifestVersion | None]:
        """The manifests that state something of the files, None where there is none, each once."""
        return [*self.manifests]

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of the datasets of these files; a name to which two of them give different texts is left out."""
        manifests = {id(source.shard.manifest): source.shard.manifest for source in self if source.shard is not None}
        return united_metadata(manifests.values())

    def folders(self, columns: Sequence[str]) -> tuple[dict[str, pa.StringArray], Array]:
        """The texts of partition columns in each different folder, null where there is none; and each file's folder.

        The number of it in the arrays. SchemaError, or UnicodeEncodeError, if a name is not UTF-8.
        """
        numbers: dict[tuple[tuple[str, str | None], ...], int] = {}
        of_files = np.fromiter((numbers.setdefault(s.partitions, len(numbers)) for s in self), np.int64, len(self))
        texts = [dict(partitions) for partitions in numbers]
        return {name: pa.array([text.get(name) for text in texts], pa.string()) for name in columns}, of_files

    @property
    def partition_names(self) -> list[str]:
        """The partition columns of the first file."""
        return [name for name, _ in self[0].partitions] if len(self) else []

    def absolute(self, directory: str | None = None) -> Sources:
        """The same files by absolute paths in `directory`, by default the working directory, for other processes."""
        return Sources(source.absolute(directory) for source in self)

    @property
    def working_directory(self) -> str | None:
        """The working directory, if the path of a file is relative to it."""
        for source in self:
            if source.local and not os.path.isabs(source.path):
                return os.getcwd()
        return None


def united_metadata(manifests: Iterable[ManifestVersion]) -> dict[str, str]:
    texts: dict[str, set[str]] = {}
    for manifest in manifests:
        for name, text in manifest.metadata:
            texts.setdefault(name, set()).add(text)
    return {name: found.pop() for name, found in texts.items() if len(found) == 1}


class NoContent:
    """The content of a dataset whose manifest names no file: it has its schema and its columns of folders."""

    can_be_read_again = True
    schema: bytes | None = None

    def open(self) -> Stream:
        return PlainStream(io.BytesIO(), "", b"", 0)

    def read_once(self) -> None:
        """There is nothing to read."""


def read_manifest(fs: FileSystem, entry: Entry) -> bytes:
    """All bytes of a manifest, or slightly more than `MOST_MANIFEST_BYTES`.

    Another writer may replace it at any time, also after `entry` was looked up. In a bucket it is therefore read by one
    request for the whole object, which gives the old one or the new one: ranges of the size that was looked up would be
    an error or, on servers that ignore the version asked for, a part of the new one.
    """
    path = fs.display_path(entry.name)
    for _ in range(LIMITS.tries):
        if not is_remote(fs) or entry.size is None or entry.size > MOST_MANIFEST_BYTES:
            return Source.from_entry(fs, entry).read(MOST_MANIFEST_BYTES)
        text = fs.read_object(entry.name)
        if len(text) != entry.size:  # it was replaced, or the connection ended early
            latest = fs.entry(entry.name, is_file=True)
            if latest is None:
                break
            entry = latest
        if len(text) == entry.size:
            return text
    if is_remote(fs):
        from tfrecord_io.store.filesystem.os_errors import stale_error
        from tfrecord_io.store.filesystem.remote import is_cache

        if is_cache(fs.fsspec):
            raise stale_error(path)
    raise _replaced_error(path)


def _replaced_error(path: str, what: str = "file") -> ReplacedError:
    """See `replaced_error`, whose module the first read of a local file does not need."""
    from tfrecord_io.store.filesystem.os_errors import replaced_error

    return replaced_error(path, what)


class HeldContent:
    """The content of a small object, from when it was first read until `drop`: other reads take it from here."""

    def __init__(self, *, is_kept: bool = True) -> None:
        self.content: bytes | None = None
        self.is_kept = is_kept

    def drop(self) -> None:
        """Keep no content any more, so that each read finds out whether the object was replaced."""
        self.content, self.is_kept = None, False
