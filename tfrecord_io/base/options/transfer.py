"""The keywords of calls that read files of records and write others: copies, exports.

Tests: tests/base/options/test_options.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

from tfrecord_io.base.options.options_base import TransferOptions, check_choice
from tfrecord_io.base.options.read import ReadOptions, ScanOptions
from tfrecord_io.base.options.write import WriteOptions
from tfrecord_io.typing import FileMode, Partitions

_READING = ScanOptions()  # of a path


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, init=False)
class CopyOptions(TransferOptions, WriteOptions):
    """Keywords of the calls that copy records as bytes; see `tfrecord_io.merge`."""

    mode: FileMode | None = None
    schema_overrides: Mapping[str, Any] | None = None
    partitions: Partitions = "features"
    split: str | None = None  # those of the files of a path that a call reads
    allow_missing_shards: bool = False
    reading: ScanOptions = _READING

    internal: ClassVar[frozenset[str]] = frozenset(
        {"record_type", "column_encoding", "float64", "nan_to_null", "index", "record_dim", "embed_schema"}
        | {"evolve", "partition_by", "overwrite_where", "any_suffix", "source_storage", "split", "allow_missing_shards"}
        | {"reading", "metadata", "source_metadata", "txn"}
    )
    _modes: ClassVar[tuple[str, ...]] = get_args(FileMode)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.schema, str):
            raise ValueError(f"schema={self.schema!r}: expected the schema to embed")
        self._check_mapping("schema_overrides", "{'x': 'int32'}")
        check_choice("partitions", self.partitions, get_args(Partitions))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, init=False)
class ExportOptions(TransferOptions, ReadOptions):
    """Keywords of calls that read TFRecord files and write files of another format."""

    internal: ClassVar[frozenset[str]] = frozenset({"source_storage"})
