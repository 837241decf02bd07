"""Archives of TFRecord files, as Waymo publishes: the members are read in order, as one TFRecord file."""

from __future__ import annotations

import tarfile
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice
from typing import Any

import numpy as np

from tfrecord_io.apps.file_formats.tables.table_files import suffixes_of
from tfrecord_io.base import StorageOptions
from tfrecord_io.bytes import open_decompressed
from tfrecord_io.errors import TFRecordError, TruncatedRecordError
from tfrecord_io.kit import CODECS, Array, printable
from tfrecord_io.plugins.vision.tar_archive import TarArchive
from tfrecord_io.plugins.vision.vision_rows import TAR
from tfrecord_io.read import DerivedRecords
from tfrecord_io.store import FileName, PathMatch, Source

_READ_BYTES = 1 << 20
_MEMBERS = 16  # of an archive, that are looked at
_ADVICE = "download or write the archive again"


def is_tar_of_records(path: str, storage: StorageOptions) -> bool:
    """True if the first archive of a path has TFRecord files as its first members, each of which is a whole sample."""
    with suppress(TFRecordError, OSError):
        file = PathMatch.find(path, suffixes_of(TAR), storage).sources[0]
        if not file.can_be_read_again:
            return False
        with closing(file.open_decompressed()) as opened:
            archive = TarArchive(opened, file.path)
            members = islice((member for member in archive if member.isreg()), _MEMBERS)
            looked_at = [(member.name, _stream(archive, member, file.path) is not None) for member in members]
        records = [name for name, is_record in looked_at if is_record]
        indexes = tuple(f"{name}." for name in records)  # begin the names of files about one
        keys = Counter(_key(name) for name, _ in looked_at if not name.startswith(indexes))
        return bool(records) and all(keys[_key(name)] == 1 for name in records)
    return False


def _key(name: str) -> str:
    """The key that the members of a WebDataset sample share."""
    folder, slash, base = name.rpartition("/")
    return folder + slash + base.partition(".")[0]


def tar_source(file: Source, begin: int, end: int | None, length: int | None) -> Source:
    """Present the TFRecord files in an archive as one TFRecord file, to be read only as a whole."""
    assert (begin, end, length) == (0, None, None)
    return _Records([file]).source_like(file)


class _Records(DerivedRecords):
    """Records of the members of an archive, numbered through all of them."""

    def __init__(self, files: Sequence[Source]) -> None:
        super().__init__(files)
        (self.file,) = files
        self.can_be_read_again = self.file.can_be_read_again

    def place(self, record: int) -> tuple[str, int, None]:
        return self.file.path, record, None

    def frames(self) -> Generator[Array]:
        has_records = False
        with closing(self.file.open_decompressed()) as file:
            archive = TarArchive(file, self.file.path)
            for member in archive:
                stream = _stream(archive, member, self.file.path)
                if stream is not None:
                    has_records = True
                    yield from stream
        if not has_records:
            raise self.other_format(self.file.path, TAR.looks[0], ", and none of its members is a TFRecord file")

    def __reduce__(self) -> tuple[Any, ...]:
        return self.reduction()


class _MemberFile:
    """The content of the member at hand as a raw file."""

    def __init__(self, archive: TarArchive, name: str, path: str) -> None:
        self._archive, self._name, self._path = archive, name, path

    def readinto(self, buffer: Any, /) -> int:
        data = self._archive.read(len(buffer))
        if not data and self._archive.left and len(buffer):
            missing = f"the archive ends {self._archive.left} bytes before the end of '{printable(self._name)}'"
            raise TruncatedRecordError(missing, path=self._path, hint=_ADVICE)
        buffer[: len(data)] = data
        return len(data)

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        """The archive stays open."""


def _stream(archive: TarArchive, member: tarfile.TarInfo, path: str) -> Iterator[Array] | None:
    """The uncompressed bytes of the member at hand; None if it is not a TFRecord file by its name and content."""
    name = FileName.of_path(member.name)
    if not member.isreg() or name.is_hidden or name.is_sidecar or not member.size:
        return None
    shown = f"{path}/{member.name}"
    head = archive.read(CODECS.SNIFF_BYTES)
    raw = _MemberFile(archive, member.name, path)
    stream = open_decompressed(raw, CODECS.infer(head, member.name), shown, head=head)
    is_named = name.is_records
    try:
        first = _read_header(stream)
    except TFRecordError:
        if is_named:
            raise
        return None
    return _pieces(first, stream) if is_named or DerivedRecords.is_header(first.tobytes()) else None


def _read_header(stream: Any) -> Array:
    """The first bytes of a stream, fewer if it is shorter than a header."""
    data = np.empty(DerivedRecords.HEADER_BYTES, np.uint8)
    done = 0
    while done < len(data) and (n := stream.readinto(data.data[done:])):
        done += n
    return data[:done]


def _pieces(first: Array, stream: Any) -> Iterator[Array]:
    """The bytes of a stream, all those before an error included."""
    yield first
    piece = np.empty(_READ_BYTES, np.uint8)
    while n := stream.readinto(piece.data):
        yield piece[:n]
        piece = np.empty(_READ_BYTES, np.uint8)
