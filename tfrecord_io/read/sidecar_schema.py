"""What describes records from beside their files: the ``features.json`` and ``dataset_info.json`` of TFDS."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tfrecord_io.errors import SchemaError, SchemaWarning, warn
from tfrecord_io.options import StorageOptions
from tfrecord_io.schema.formats.tfds import check_shards
from tfrecord_io.schema.schema import Schema
from tfrecord_io.storage.read.source import Source


@dataclass
class SidecarSchema:
    """A dataset's description, found beside its files.

    Attributes
    ----------
    schema : Schema
    records : Counter
        By path: how many records were read; compared with what the description says at the end.
    """

    schema: Schema
    folder: str
    storage: StorageOptions
    records: Counter[str] = field(default_factory=Counter)

    def check(self) -> None:
        """Compare the numbers of records, once all files were read whole.

        Raises
        ------
        CorruptRecordError
            A file holds more or fewer than the description says.
        """
        counts = {path.removeprefix(self.folder).lstrip("/"): count for path, count in self.records.items()}
        check_shards(self.folder, counts, self.storage)


def find_sidecar_schema(sources: list[Source], storage: StorageOptions) -> SidecarSchema | None:
    """The description beside `sources`; None where there is none, or where they stand in several directories."""
    folders = {source.path.rpartition("/")[0] for source in sources if not source.is_file_object}
    if len(folders) != 1 or any(source.is_file_object for source in sources):
        return None
    folder = folders.pop() or ("." if not sources[0].path.startswith("/") else "/")
    try:
        return SidecarSchema(Schema.from_tfds(folder, **storage.keywords), folder, storage)
    except FileNotFoundError:
        return None
    except SchemaError as error:
        warn(
            f"the features.json beside the files cannot be used ({error}); types are inferred from the values",
            SchemaWarning,
        )
        return None
