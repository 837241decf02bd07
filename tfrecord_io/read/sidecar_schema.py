"""Schemas in sidecar files: the ``features.json`` and ``dataset_info.json`` of TFDS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tfrecord_io.errors import SchemaError, SchemaWarning, warn
from tfrecord_io.options import StorageOptions
from tfrecord_io.schema.formats.tfds import check_shards
from tfrecord_io.schema.schema import Schema
from tfrecord_io.storage.read.source import Source


@dataclass(frozen=True, slots=True)
class SidecarSchema:
    """A dataset's description in the directory of its files."""

    schema: Schema
    directory: str
    storage: StorageOptions

    def check(self, records: Mapping[str, int]) -> None:
        """Compare the number of records read from each file, by path, with the description.

        Raises
        ------
        CorruptRecordError
            A file has more or fewer records.
        """
        counts = {path.removeprefix(self.directory).lstrip("/"): count for path, count in records.items()}
        check_shards(self.directory, counts, self.storage)


def find_sidecar_schema(sources: Sequence[Source], storage: StorageOptions) -> SidecarSchema | None:
    """The description in the directory of `sources`; None without one, or if there are several directories."""
    directories = {source.path.rpartition("/")[0] for source in sources}
    if len(directories) != 1 or any(source.is_file_object for source in sources):
        return None
    directory = directories.pop() or ("." if not sources[0].path.startswith("/") else "/")
    try:
        return SidecarSchema(Schema.from_tfds(directory, **storage.keywords), directory, storage)
    except FileNotFoundError:
        return None
    except SchemaError as error:
        reason = f"the features.json next to the files cannot be used ({error})"
        warn(f"{reason}; types are inferred from the values", SchemaWarning)
        return None
