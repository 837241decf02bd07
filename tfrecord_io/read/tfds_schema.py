"""The schema of a dataset of TFDS: its ``features.json``, in the directories of the files that are read.

Tests: tests/read/test_record_checks.py and tests/plugins/tensorflow/test_tfds.py.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tfrecord_io.base import ScanOptions, StorageOptions, printable, warn
from tfrecord_io.columns import Schema
from tfrecord_io.errors import SchemaError, SchemaWarning
from tfrecord_io.store import Location, Source

if TYPE_CHECKING:
    from tfrecord_io.store import Directory


class SidecarSchema(NamedTuple):
    """The description of a dataset, or of several that have the same schema, in the directories of their files."""

    schema: Schema
    depth: int  # how many folders a file is below the directory that has the description
    storage: StorageOptions

    def check(self, records: Mapping[str, int]) -> None:
        """Raise CorruptRecordError where the number of records read from a file, by path, is not as described."""
        from tfrecord_io.columns import TfdsInfo

        lengths: dict[str, dict[str, int]] = {}
        for path, count in records.items():
            directory, name = split_folders(path, self.depth)
            if directory not in lengths:
                lengths[directory] = TfdsInfo.lengths_in(directory, Location.storage_for([directory], self.storage))
            TfdsInfo.check_count(path, count, lengths[directory].get(name, count))

    @staticmethod
    def folder_of(sources: Sequence[Source], options: ScanOptions) -> Directory | None:
        """The directory with the description of the datasets that files are of, if that can be used."""
        sidecar, _ = sidecar_schema(sources, options)
        if sidecar is None:
            return None
        from tfrecord_io.store import Directory

        return Directory(split_folders(sources[0].path, sidecar.depth)[0], sidecar.storage)


def split_folders(path: str, depth: int) -> tuple[str, str]:
    """Split a path into the directory so many folders above its file, and the file's name below there."""
    parts = path.split("/")
    folder, name = "/".join(parts[: -1 - depth]), "/".join(parts[-1 - depth :])
    return folder or ("/" if path.startswith("/") else "."), name


def find_sidecar_schema(sources: Sequence[Source], options: ScanOptions) -> SidecarSchema | None:
    """The description of the datasets that files are of, or None; with a warning if it is not used."""
    sidecar, reason = sidecar_schema(sources, options)
    if reason:
        warn(f"{reason}; types are inferred from the values", SchemaWarning)
    return sidecar


def sidecar_schema(sources: Sequence[Source], options: ScanOptions) -> tuple[SidecarSchema | None, str]:
    """The description of the datasets that files are of, or why that of the first file is not used.

    Whether others have one is not looked up where the first file has none.
    """
    if not sources or any(source.is_file_object for source in sources):
        return None, ""
    folders = {source.path.rpartition("/")[0]: source for source in reversed(sources)}
    first, *next_folders = reversed(folders)
    try:
        sidecar = _read_description(folders[first], options)
        for folder in next_folders if sidecar is not None else ():
            if _read_description(folders[folder], options) != sidecar:
                reason = f"'{printable(folder)}' has another features.json than '{printable(first)}', or none"
                return None, f"{reason}: read them one by one, or pass schema="
    except SchemaError as error:
        return None, f"the features.json next to the files cannot be used ({error})"
    return sidecar, ""


def _read_description(source: Source, options: ScanOptions) -> SidecarSchema | None:
    """The description of a file's dataset, or None; SchemaError if it cannot be used.

    That of a split may be in a directory above that of the file: TFDS has templates of names with folders.
    """
    folder, _ = split_folders(source.path, 0)
    is_absent = source.local and not os.path.exists(f"{folder}/{Source.TFDS_FEATURES}")
    if not source.may_be_beside(Source.TFDS_FEATURES) or (is_absent and options.split is None):
        return None
    from tfrecord_io.store import Directory

    for depth in range(1 if options.split is None else 1 + source.path.count("/")):
        directory, _ = split_folders(source.path, depth)
        storage = Location.storage_for([directory], options.storage)
        try:
            schema = Schema.from_tfds(directory, storage_options=storage.given)
            return SidecarSchema(schema, depth, options.storage)
        except FileNotFoundError:
            if options.split is None or Directory(directory, storage).read(Source.TFDS_INFO) is not None:
                return None
    return None
