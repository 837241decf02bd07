"""The keywords of writing calls.

Tests: tests/base/options/test_options.py, tests/write/test_writer_metadata.py and tests/write/test_writer_txn.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

from tfrecord_io.base.messages.display import for_cli
from tfrecord_io.base.options.options_base import INT64_MAX, RecordOptions, check_choice, check_integer
from tfrecord_io.base.options.record_types import MessageType, checked_record_type
from tfrecord_io.typing import Float64, IndexLike, RecordTypeLike, SchemaLike, WriteMode

_LONGEST_JOB = 200  # bytes of the name of a job, of which a manifest may have a thousand


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, init=False)
class WriteOptions(RecordOptions):
    """Keywords of all writing calls; see `tfrecord_io.write_tfrecord`."""

    schema: SchemaLike | None = None
    record_type: RecordTypeLike | None = None
    column_encoding: Mapping[str, str] | None = None
    float64: Float64 | None = None
    nan_to_null: bool = True
    index: bool | None = None
    record_dim: str | None = None
    compression_level: int | None = None
    shards: int | None = None
    max_shard_bytes: int | None = None
    write_index: IndexLike = False
    mode: WriteMode | None = None
    evolve: bool = False
    partition_by: str | Sequence[str] | None = None
    overwrite_where: Mapping[str, Any] | None = None
    embed_schema: bool = True
    metadata: Mapping[str, str] | None = None
    txn: tuple[str, int] | None = None
    any_suffix: bool = False  # the caller has stated that the file is TFRecord, whatever its name says
    source_metadata: Mapping[str, str] | None = None  # of the datasets that are copied; one file does not keep them

    internal: ClassVar[frozenset[str]] = frozenset({"any_suffix", "source_metadata"})
    ADDING: ClassVar = ("append", "overwrite_partitions")  # values of `mode` that keep what is there
    _modes: ClassVar[tuple[str, ...]] = get_args(WriteMode)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.record_type is not None:
            object.__setattr__(self, "record_type", checked_record_type(self.record_type))
        if isinstance(self.record_type, MessageType):
            for name in ("schema", "column_encoding"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name}= does not apply to messages, whose fields have types")
            if self.float64 == "raw":
                raise ValueError("float64='raw' does not apply to messages: a field of the type double holds the bits")
        check_choice("float64", self.float64, (None, *get_args(Float64)))
        if not isinstance(self.write_index, bool):
            self._check_write_index()
        self._check_flags("nan_to_null", "embed_schema", "evolve")
        self._check_flags("index", other=(None,))
        self._check_mapping("column_encoding", "{'x': 'raw'}, by column")
        if not isinstance(self.record_dim, str | None):
            raise TypeError(f"record_dim={self.record_dim!r}: expected the name of a dimension")
        self._check_integer("compression_level", 0, optional=True)
        self._check_integer("shards", 1, optional=True)
        self._check_integer("max_shard_bytes", 1, optional=True)
        check_choice("mode", self.mode, (None, *self._modes))
        self._check_mode()
        if self.metadata is not None:
            self._check_metadata(self.metadata)
        if self.txn is not None:
            self._check_txn(self.txn)
        if self.partition_by is not None:
            self._check_partitions(self.partition_by)
        if self.overwrite_where is not None:
            self._check_mapping("overwrite_where", "{'day': '2026-11-24'}")
            if self.mode != "overwrite_partitions":
                text = "{} says which folders {} replaces; pass that mode"
                error = ValueError(text.format("overwrite_where=", "mode='overwrite_partitions'"))
                raise for_cli(error, text.format("--overwrite-where", "--mode overwrite_partitions"))
            columns, where = list(self.partition_by or ()), dict(self.overwrite_where)
            if not where or any(name not in columns for name in where):
                expected = f"values of columns of partition_by={columns!r}"
                error = ValueError(f"overwrite_where={where!r}: expected {expected}")
                raise for_cli(
                    error, f"--overwrite-where: expected values of columns of --partition-by {','.join(columns)}"
                )

    def _check_metadata(self, metadata: Mapping[str, str]) -> None:
        self._check_mapping("metadata", "{'source': 'crawl of 2026-11'}, texts by name")
        for name, text in metadata.items():
            if not isinstance(text, str):
                raise TypeError(f"metadata={{{name!r}: {text!r}}}: expected a str, as in {{{name!r}: {str(text)!r}}}")
            for part in (name, text):
                try:
                    part.encode()
                except UnicodeEncodeError as error:
                    raise ValueError(f"metadata={{{name!r}: {text!r}}}: {part!r} is not Unicode text") from error
        object.__setattr__(self, "metadata", dict(metadata))

    def _check_txn(self, txn: Any) -> None:
        if (
            not isinstance(txn, Sequence)
            or isinstance(txn, str | bytes)
            or len(txn) != 2
            or not isinstance(txn[0], str)
        ):
            raise TypeError(f"txn={txn!r}: expected the name of a job and a number that rises, as in ('daily', 17)")
        job, number = txn[0], check_integer("the number of txn", txn[1], 0, INT64_MAX)
        try:
            is_name = 0 < len(job.encode()) <= _LONGEST_JOB
        except UnicodeEncodeError:
            is_name = False
        if not is_name:
            raise ValueError(f"txn={txn!r}: expected a name of 1 to {_LONGEST_JOB} bytes in UTF-8")
        if self.mode != "append":
            reason = "other modes replace rows, and may be repeated as they are"
            error = ValueError(f"txn={txn!r} is for mode='append': {reason}")
            raise for_cli(error, f"--txn {job}={number} is for --mode append: {reason}")
        object.__setattr__(self, "txn", (job, number))

    def _check_write_index(self) -> None:
        entries: Any = self.write_index
        entries = (entries,) if isinstance(entries, str) else entries
        if not isinstance(entries, Sequence) or not all(isinstance(entry, str) and entry for entry in entries):
            expected = "expected True for the offsets of records, or the columns of a column index"
            raise TypeError(f"write_index={entries!r}: {expected}")
        if not entries:
            raise ValueError(f"write_index={entries!r}: no column is named; leave it out")
        if MessageType.takes_payloads(self.record_type):
            reason = "a column index is for Examples, whose features are columns"
            raise ValueError(f"write_index={entries!r}: {reason}; pass write_index=True")
        object.__setattr__(self, "write_index", tuple(entries))

    def _check_partitions(self, columns: str | Sequence[str]) -> None:
        named = list(columns) if isinstance(columns, Iterable) and not isinstance(columns, str) else [columns]
        if not all(isinstance(name, str) and name for name in named):
            raise TypeError(f"partition_by={columns!r}: expected one or several names of columns")
        columns = named
        object.__setattr__(self, "partition_by", columns)
        if len(set(columns)) < len(columns):
            raise ValueError(f"partition_by={columns!r}: a column is named twice")
        if columns and self.shards is not None:
            text = "{} is for a dataset without {}; a folder has as many shards as {} makes"
            error = ValueError(text.format(f"shards={self.shards!r}", "partition_by=", "max_shard_bytes="))
            raise for_cli(error, text.format(f"--shards {self.shards}", "--partition-by", "--max-shard-bytes"))
        if columns and self.write_index is True:
            advice = "write the indexes afterwards: tfr.build_index(path)"
            raise ValueError(f"write_index=True is for a dataset without partition_by=; {advice}")

    def _check_mode(self) -> None:
        mode = self.mode
        if self.evolve and mode not in self.ADDING:
            reason = "other modes write a schema of their own"
            error = ValueError(f"evolve=True is for mode='append' and 'overwrite_partitions': {reason}")
            raise for_cli(error, f"--evolve is for --mode append and --mode overwrite_partitions: {reason}")
        if mode == "overwrite_partitions" and not self.partition_by:
            text = "{} needs {}, the columns whose folders are replaced"
            error = ValueError(text.format("mode='overwrite_partitions'", "partition_by="))
            raise for_cli(error, text.format("--mode overwrite_partitions", "--partition-by"))
        if mode == "append" and not self.embed_schema and not MessageType.takes_payloads(self.record_type):
            reason = "mode='append' compares the schemas of the dataset and of the data"
            raise ValueError(f"embed_schema=False: {reason}; leave it out")
