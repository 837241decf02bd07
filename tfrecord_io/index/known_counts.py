"""The number of records of a file where it is known without reading the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tfrecord_io.errors import SchemaError, SchemaWarning, StaleIndexWarning, printable, warn
from tfrecord_io.format.framing import FRAME_BYTES
from tfrecord_io.index.lookup import find_indexes, usable_index
from tfrecord_io.options import StorageOptions
from tfrecord_io.schema.formats.tfds import shard_lengths
from tfrecord_io.storage.read.random_access_file import open_random_access
from tfrecord_io.storage.read.source import Source


@dataclass
class KnownCounts:
    """Numbers of records from manifests, index files and the ``dataset_info.json`` of TFDS.

    Parameters
    ----------
    compression : str or None
        As in `read_tfrecord`.
    max_record_bytes : int
        The number of records is unknown if one of them is longer: reading the file raises an error.
    max_decompression_ratio : float, optional
        For compressed files, which are read.
    """

    compression: str | None
    max_record_bytes: int
    max_decompression_ratio: float | None = None
    _shard_lengths: dict[tuple[int, str], dict[str, int]] = field(default_factory=dict)  # of TFDS, by folder

    @property
    def may_be_plain(self) -> bool:
        return self.compression in (None, "infer")

    def indexes(self, sources: Sequence[Source]) -> Sequence[Source | None]:
        """The index file next to each file; compressed files have none."""
        return find_indexes(sources) if self.may_be_plain else [None] * len(sources)

    def of(self, source: Source, index: Source | None, *, prefer_index: bool = False) -> int | None:
        """The number of records of `source`, whose index file is `index`; None if it is unknown.

        An index that does not match is skipped with a warning. With `prefer_index`, the index is used even where a
        manifest states the number.

        Raises
        ------
        CorruptRecordError
            With `prefer_index`: the index does not match the file.
        """
        if source.shard is not None and source.span is None and not prefer_index:
            return source.shard.records
        if index is not None:
            known = self._from_index(source, index, named=prefer_index)
            if known is not None:
                return known
        return self._from_tfds(source)

    def _from_index(self, source: Source, index: Source, *, named: bool) -> int | None:
        with open_random_access(source) as ranges:
            records, text = usable_index(index, source, ranges, named=named)
        if records is None:
            if text:
                warn(text, StaleIndexWarning)
            return None
        too_long = len(records) > 0 and int(records.sizes.max()) > self.max_record_bytes + FRAME_BYTES
        return None if too_long else len(records)

    def _from_tfds(self, source: Source) -> int | None:
        if source.is_file_object or source.span is not None or not self.may_be_plain:
            return None
        fs, path = (None, source.path) if source.remote is None else source.remote
        folder, _, name = path.rpartition("/")
        key = (id(fs), folder)
        if key not in self._shard_lengths:
            self._shard_lengths[key] = _tfds_lengths(folder or ("/" if path.startswith("/") else "."), fs)
        return self._shard_lengths[key].get(name)


def _tfds_lengths(folder: str, fs: Any) -> dict[str, int]:
    try:
        return shard_lengths(folder, StorageOptions(filesystem=fs))
    except PermissionError:
        return {}  # the response of a bucket without permission to list, for a name that does not exist
    except SchemaError as error:
        text = f"{printable(folder)}: its dataset_info.json cannot be used ({error})"
        warn(text, SchemaWarning)
        return {}
