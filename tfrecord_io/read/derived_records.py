"""Records made of files of other formats, to be read as records of one TFRecord file.

Tests: tests/plugins/tensorflow/test_array_record.py, tests/plugins/vision/test_tar_of_records.py and
tests/plugins/tensorflow/test_from_elwc.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tfrecord_io.base import LIMITS, ScanOptions
from tfrecord_io.bytes import Array, Fault, FrameHeader, get_engine
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.read.sources import PieceStream
from tfrecord_io.store import Origin, PackedSources, Source


class DerivedRecords(ABC):
    """Base class of records made of `files`: a subclass makes their frames, and says where each record comes from.

    It is a `DerivedContent`, and the `Origins` of its records, of `tfrecord_io.store.read.source`.
    """

    HEADER_BYTES = FrameHeader.BYTES  # before the payload of a record

    can_be_read_again = False
    schema: bytes | None = None

    def __init__(self, files: Sequence[Source]) -> None:
        self.files = files

    @abstractmethod
    def frames(self) -> Generator[Array]:
        """Make the framed records, in pieces of bytes. Errors have their path and record."""

    @abstractmethod
    def place(self, record: int) -> tuple[str | None, int | None, int | None] | None:
        """The path of the file of a record, its number there, and the offset of its header; None for unknown ones."""

    def open(self) -> PieceStream:
        return PieceStream(self.frames())

    def read_once(self) -> None:
        """See `tfrecord_io.store.read.source.Source.read_once`."""
        for file in self.files:
            file.read_once()

    def __call__(self, record: int) -> Origin | None:
        place = self.place(record)
        return None if place is None else Origin(*place)

    def byte(self, record: int, byte: int) -> int:
        """The byte of a payload of the file that a byte of a payload here was: records are not changed."""
        return byte

    def source_like(self, file: Source, records: int | None = None) -> Source:
        """The records in place of a file: a TFRecord file of this name, with `records`, if their number is known."""
        return Source(file.path, None, False, partitions=file.partitions, origin=self, derived=self, records=records)

    def to_read(self, options: ScanOptions) -> tuple[list[Source], dict[str, Any]]:
        """The records as one TFRecord file with the name of the first file, and the keywords to read it with."""
        limits = replace(options.limits, record_bytes=LIMITS.MAX_RECORD_BYTES, decompression_ratio=None)
        changed = {"compression": None, "check_crc": False, "limits": limits, "progress": False}
        return [self.source_like(self.files[0]).replace(partitions=())], changed  # files may be in several folders

    def reduction(self, *arguments: Any) -> tuple[Any, ...]:
        """The result of ``__reduce__`` for an object made of its files and these arguments."""
        return _unpickle, (type(self), PackedSources.pack([file.absolute() for file in self.files]), arguments)

    @staticmethod
    def is_header(head: bytes) -> bool:
        """True if these `HEADER_BYTES` begin a record: their checksum is right."""
        return FrameHeader(head).is_intact

    @staticmethod
    def other_format(path: str, kind: str, detail: str) -> CorruptRecordError:
        """The error for a file without records: see `Fault.of_other_format`."""
        return Fault.of_other_format(path, kind, detail)

    @staticmethod
    def frame(payloads: Sequence[bytes]) -> Array:
        """Frame payloads, as bytes of a TFRecord file."""
        return np.frombuffer(get_engine().frame(payloads), np.uint8)


def _unpickle(made: type[Any], packed: PackedSources, arguments: tuple[Any, ...]) -> Any:
    return made(packed.unpack(), *arguments)
