"""Splits of a dataset written by TFDS (tensorflow_datasets), from the ``dataset_info.json`` next to its files.

Tests: tests/plugins/tensorflow/test_tfds.py and tests/laws/test_hostile_metadata.py.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from tfrecord_io.base import LIMITS, StorageOptions, printable
from tfrecord_io.bytes import FrameHeader
from tfrecord_io.errors import CorruptRecordError, SchemaError
from tfrecord_io.store import Directory, FileSystem, Source

if TYPE_CHECKING:
    from tfrecord_io.bytes import Format


class TfdsSplit(NamedTuple):
    """A split: the names of its files, in order, and how many records each has."""

    files: tuple[str, ...]
    lengths: tuple[int, ...]
    bytes: int = 0  # of all its files, or of the records in them, as TFDS counts either; 0 is unknown

    def has_bytes(self, size: int) -> bool:
        """True if files of this total size may be the files that TFDS wrote."""
        return self.bytes in (0, size, size - FrameHeader.FRAME_BYTES * sum(self.lengths))

    def files_between(self, begin: int, end: int) -> Iterator[tuple[str, tuple[int, int], int]]:
        """The files with the rows from `begin` to `end`, the rows in each, and the number of its rows."""
        first = 0
        for file, length in zip(self.files, self.lengths, strict=True):
            rows = max(begin - first, 0), min(end - first, length)
            first += length
            if rows[0] < rows[1]:
                yield file, rows, length


@dataclass(frozen=True, slots=True)
class TfdsInfo:
    """Facts of ``dataset_info.json``: `path` is its own, `document` its content."""

    path: str
    file_format: str
    splits: Mapping[str, TfdsSplit]
    document: Mapping[str, Any]

    FILE_NAME: ClassVar[str] = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"  # if there is no filepathTemplate

    @property
    def shard_lengths(self) -> dict[str, int]:
        """The number of records of each file, by its path in the directory."""
        return {
            file: length
            for split in self.splits.values()
            for file, length in zip(split.files, split.lengths, strict=True)
        }

    @classmethod
    def read(cls, folder: Directory) -> Self | None:
        """The ``dataset_info.json`` of a directory; None if it has none, SchemaError if it is damaged."""
        text = folder.read(Source.TFDS_INFO)
        if text is None:
            return None
        path = folder.display_path(Source.TFDS_INFO)
        try:
            document = json.loads(text)
            splits = {str(split["name"]): _split(document, split) for split in document.get("splits", [])}
            if sum(sum(split.lengths) for split in splits.values()) > LIMITS.INT64_MAX:
                raise ValueError("its shardLengths are not numbers of records")
            return cls(path, str(document.get("fileFormat") or "tfrecord"), splits, document)
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
            reason = f"it is not a dataset_info.json of TFDS ({type(error).__name__}: {printable(str(error), 200)})"
            raise SchemaError(reason, path=path) from error

    @classmethod
    def lengths_in(
        cls, path: str | os.PathLike[str], storage: StorageOptions = StorageOptions.DEFAULT
    ) -> dict[str, int]:
        """The `shard_lengths` of the dataset in a directory; none if TFDS did not describe it.

        SchemaError if the description is damaged.
        """
        info = cls.read(Directory(cls.directory_of(path), storage))
        return {} if info is None else info.shard_lengths

    @classmethod
    def format_of(cls, fs: FileSystem, name: str) -> Format | None:
        """The format of the files of a directory that TFDS wrote, None for TFRecord, or if TFDS did not write it.

        SchemaError if they are of a format that is not read.
        """
        info = None
        if fs.can_list:
            with suppress(NotADirectoryError):
                info = cls.read(Directory.from_filesystem(fs, name))
        return None if info is None else info.record_format()

    def record_format(self) -> Format | None:
        """The format of the files; None for TFRecord. SchemaError if its records cannot be read as those are."""
        if self.file_format == "tfrecord":
            return None
        from tfrecord_io.bytes import FORMATS

        format = FORMATS.get(self.file_format)
        if format is not None and format.content is not None:
            return format
        reason = f"its files are of the format '{printable(self.file_format, 60)}', not TFRecord or ArrayRecord"
        hint = hint_cli = "TFDS writes it again as TFRecord or ArrayRecord, both of which can be read"
        if format is not None:
            files = f"{self.path.rpartition('/')[0]}/*.{format.name}-*"
            way = "reads its columns as they are stored"
            hint_cli = f"{hint}, or tfr convert --from {format.name} {files!r} {way}"
            hint = f"{hint}, or tfr.convert({files!r}, …, source_format={format.name!r}) {way}"
        raise SchemaError(
            reason, path=self.path, expected="tfrecord", got=self.file_format, hint=hint, hint_cli=hint_cli
        )

    @staticmethod
    def check_count(file: str, count: int, expected: int) -> None:
        """Raise CorruptRecordError if a file has another number of records than ``dataset_info.json`` states."""
        if count != expected:
            reason = f"the file has {count} records, dataset_info.json lists {expected}"
            advice = "it was truncated at the end of a record, or not the file that TFDS wrote: download it again"
            raise CorruptRecordError(reason, path=file, expected=expected, got=count, hint=advice)

    @staticmethod
    def directory_of(path: str | os.PathLike[str]) -> str:
        """The directory of a dataset, from the path of the directory or of the ``features.json`` in it."""
        text = os.fspath(path)
        head, _, name = text.replace(os.sep, "/").rpartition("/")
        return (head or ".") if name == Source.TFDS_FEATURES else text


def read_features(path: str | os.PathLike[str], storage: StorageOptions) -> tuple[Directory, bytes]:
    """The directory of a dataset, and its ``features.json``; FileNotFoundError if it has none."""
    folder = Directory(TfdsInfo.directory_of(path), storage)
    text = folder.read(Source.TFDS_FEATURES)
    if text is None:
        reason = "no features.json, which TFDS writes next to a dataset's files"
        raise FileNotFoundError(2, reason, folder.display_path(Source.TFDS_FEATURES))
    return folder, text


def _split(document: Mapping[str, Any], split: Mapping[str, Any]) -> TfdsSplit:
    lengths = tuple(int(length) for length in split.get("shardLengths", []))
    if min(lengths, default=0) < 0:
        raise ValueError("its shardLengths are not numbers of records")
    return TfdsSplit(_file_names(document, split, len(lengths)), lengths, int(split.get("numBytes") or 0))


def _file_names(info: Mapping[str, Any], split: Mapping[str, Any], count: int) -> tuple[str, ...]:
    """The names of shards, as built by ShardedFileTemplate in core/naming.py; ValueError if they leave it."""
    digits = max(5, len(str(count)))  # of both numbers
    values = {
        "DATASET": info["name"],
        "SPLIT": split["name"],
        "FILEFORMAT": info.get("fileFormat") or "tfrecord",
        "NUM_SHARDS": f"{count:0{digits}d}",
        "SHARD_X_OF_Y": f"{{SHARD_INDEX}}-of-{count:0{digits}d}",
    }
    template = str(split.get("filepathTemplate") or TfdsInfo.FILE_NAME)
    for key, text in values.items():
        template = template.replace(f"{{{key}}}", text)
    parts = template.split("{SHARD_INDEX}")
    names = tuple(f"{index:0{digits}d}".join(parts) for index in range(count))
    if names and (reason := Directory.leads_out(names[0])) is not None:  # the others differ in a number
        raise ValueError(f"the name of a file is '{printable(names[0], 100)}', and {reason}")
    return names
