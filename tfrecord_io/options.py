"""The keywords of reading and writing calls: frozen dataclasses, validated once.

Defaults are defined here and nowhere else.
"""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Literal, Self, get_args

from tfrecord_io.typing import (
    ArrayLayout,
    Compression,
    Float64,
    Missing,
    OnError,
    OnErrorName,
    OnNew,
    Overwrite,
    RecordTypeName,
    SchemaLike,
    ShardOrder,
    UnevenParts,
)

MAX_RECORD_BYTES = 2**31 - 1
MIB = 1 << 20
MAX_EXPANSION = 256 * MIB
INT64_MAX = 2**63 - 1  # the kernel counts records and bytes in 64 bits


def cpu_count() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_OTHER_NAMES = {  # by keyword: what it is called in pandas, polars, Arrow, TensorFlow, PyTorch
    "batch_size": "batchsize chunksize chunk_size batch_rows row_group_size",
    "check_crc": "verify verify_crc check_integrity verify_checksum",
    "columns": "usecols features fields names feature_names select",
    "compression": "compression_type codec",
    "dtype_backend": "backend",
    "drop_last": "drop_remainder",
    "epochs": "num_epochs repeat n_epochs",
    "filesystem": "fs",
    "include_file_paths": "path_column file_column filename",
    "index": "preserve_index",
    "limit": "nrows n_rows num_rows max_rows head take n count",
    "max_shard_bytes": "max_shard_size max_file_size shard_size",
    "missing": "fill_value na_value",
    "offset": "skiprows skip_rows skip start",
    "on_error": "errors ignore_errors on_bad_lines",
    "overwrite": "exist_ok if_exists mode exists",
    "pad_value": "padding_value padding_values",
    "progress": "verbose progress_bar",
    "record_type": "example_type",
    "schema": "feature_description description features_description types",
    "schema_overrides": "dtype dtypes column_types astype",
    "seed": "random_state",
    "shards": "num_shards n_shards num_files partitions npartitions",
    "shuffle_buffer": "shuffle buffer_size shuffle_buffer_size shuffle_size",
    "state": "checkpoint",
    "threads": "n_jobs num_threads n_threads num_workers use_threads num_parallel_reads num_parallel_calls workers",
    "worker": "rank world_size shard shard_index",
}
_WITHOUT_SAMPLE = frozenset({"sample", "on_new"})  # valid in every read: one that returns all rows infers from them all
_ELSEWHERE = {  # by keyword of a stream: how calls that return all records do without it
    **dict.fromkeys(("batch_size", "batch_bytes"), "tfr.open_reader reads in batches"),
    "filters": "tfr.dataset(path).filter(…) reads the rows that fulfil a condition",
}


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """How paths are accessed: the keywords `storage_options` and `filesystem` of a call."""

    storage_options: Mapping[str, Any] | None = None
    filesystem: Any = None

    @property
    def keywords(self) -> dict[str, Any]:
        """As keywords of a public function."""
        return {"storage_options": self.storage_options, "filesystem": self.filesystem}

    def with_options(self, storage_options: Mapping[str, Any] | None) -> Self:
        """These with other `storage_options`, unless those are None."""
        return self if storage_options is None else replace(self, storage_options=storage_options)


DEFAULT_STORAGE = StorageOptions()  # local paths, and URLs without options


class _Options:
    """Construction from keywords, and the checks that several classes share."""

    internal: ClassVar[frozenset[str]] = frozenset()  # fields that are not keywords
    compression: Compression | None
    threads: int | None
    storage_options: Mapping[str, Any] | None
    filesystem: Any

    @classmethod
    def of(cls, keywords: Mapping[str, Any], call: Callable[..., Any] | None = None) -> Self:
        """Options from a call's keywords.

        `call` is the public function: keywords that its signature does not have are refused. Without it, all are valid.

        Raises
        ------
        TypeError
            A keyword that does not exist, or a value of a wrong type.
        ValueError
            A value out of range.
        """
        if keywords:
            fields_ = {f.name for f in fields(cls)} - cls.internal  # type: ignore[arg-type]
            valid = fields_ if call is None else keywords_of(call)
            for name in keywords:
                if name not in fields_ or (name not in valid and name not in _WITHOUT_SAMPLE):
                    raise unknown_keyword(name, valid, call)
        return cls(**keywords)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what differs from the defaults."""
        values = {f: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        changed = {f.name: value for f, value in values.items() if value is not f.default}
        return partial(type(self), **changed), ()

    @property
    def storage(self) -> StorageOptions:
        return StorageOptions(self.storage_options, self.filesystem)

    @property
    def thread_count(self) -> int:
        return cpu_count() if self.threads is None else self.threads

    def _check_shared(self) -> None:
        if not isinstance(self.compression, str | None):
            raise TypeError(f"compression={self.compression!r}: expected a name or None")
        self._check_mapping("storage_options", "{'anon': True}")
        _check_integer("threads", self.threads, 1, optional=True)

    def _check_flags(self, *names: str, other: tuple[object, ...] = ()) -> None:
        """Convert flags to bool, also those of NumPy; other types are errors, such as text."""
        for name in names:
            value = getattr(self, name)
            if value in other:
                continue
            if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
                expected = "".join(f"{choice!r} or " for choice in other)
                raise TypeError(f"{name}={value!r}: expected {expected}True or False")
            object.__setattr__(self, name, bool(value))

    def _check_mapping(self, name: str, example: str) -> None:
        value = getattr(self, name)
        if not isinstance(value, Mapping | None):
            raise TypeError(f"{name}={value!r}: expected a dict such as {example}")
        for key in value or ():
            if not isinstance(key, str):
                raise TypeError(f"{name} has the key {key!r}: expected names, as in {example}")


def keywords_of(call: Callable[..., Any]) -> set[str]:
    """The keywords in the signature of a function."""
    parameters = inspect.signature(call).parameters.values()
    return {p.name for p in parameters if p.kind is p.KEYWORD_ONLY or p.default is not p.empty}


def unknown_keyword(name: str, valid: Collection[str], call: Callable[..., Any] | None) -> TypeError:
    """The error for a keyword that does not exist, with the one that is meant, if that is clear."""
    where = "" if call is None else f"{call.__qualname__.removesuffix('.__init__')}() got an "
    meant = [known for known, others in _OTHER_NAMES.items() if name.lower() in others.split()]
    close = difflib.get_close_matches(name.lower(), valid, n=1, cutoff=0.7)
    elsewhere = [_ELSEWHERE[known] for known in [name, *meant] if known in _ELSEWHERE and "schema_overrides" in valid]
    if names := [known for known in meant if known in valid]:
        hint = f": did you mean {names[0]}=?"
    elif elsewhere:
        hint = f": {elsewhere[0]};"
    else:
        hint = f": did you mean {close[0]}=?" if close else ";"
    return TypeError(f"{where}unexpected keyword argument {name!r}{hint} valid names: {', '.join(sorted(valid))}")


def _check_integer(name: str, value: object, least: int, most: int | None = None, *, optional: bool = False) -> None:
    if optional and value is None:
        return
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}={value!r}: expected an integer")
    if value.__index__() < least:
        raise ValueError(f"{name}={value!r}: expected at least {least}")
    if most is not None and value.__index__() > most:
        raise ValueError(f"{name}={value!r}: expected at most {most}")


def _check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    if value not in choices:
        raise ValueError(f"{name}={value!r}: expected one of {', '.join(map(repr, choices))}")


def check_on_error(value: object, names: Sequence[str] = get_args(OnErrorName)) -> None:
    """Raise ValueError for an `on_error` that does not exist."""
    if value not in names and not (callable(value) and "skip" in names):
        others = " or a function that takes the error" if "skip" in names else ""
        raise ValueError(f"on_error={value!r}: expected one of {', '.join(map(repr, names))}{others}")


def check_ratio(value: object) -> None:
    """Raise TypeError or ValueError for a `max_decompression_ratio` that is none."""
    if isinstance(value, bool) or not isinstance(value, Real | None):
        raise TypeError(f"max_decompression_ratio={value!r}: expected a number or None")
    if value is not None and not float(value) >= 1:
        raise ValueError(f"max_decompression_ratio={value!r}: expected at least 1")


@dataclass(frozen=True, kw_only=True)
class ReadOptions(_Options):
    """Keywords of all reading calls; see `tfrecord_io.read_table`."""

    columns: Sequence[str] | str | None = None
    schema: SchemaLike | Literal["infer"] | None = None
    schema_overrides: Mapping[str, Any] | None = None
    stable_types: bool = False
    infer_text: bool = True
    sample: int | Literal["all"] = 10_000
    on_new: OnNew = "raise"
    record_type: RecordTypeName | None = None
    compression: Compression | None = "infer"
    offset: int = 0
    limit: int | None = None
    include_file_paths: str | None = None
    allow_missing_shards: bool = False
    check_crc: bool = True
    on_error: OnError = "raise"
    max_record_bytes: int = MAX_RECORD_BYTES
    max_features: int = 100_000
    max_expansion: int = MAX_EXPANSION
    max_decompression_ratio: float | None = None
    large_offsets: bool = False
    threads: int | None = None
    storage_options: Mapping[str, Any] | None = None
    filesystem: Any = None
    progress: bool = False
    batch_size: int = 65_536
    batch_bytes: int = 64 * MIB

    def __post_init__(self) -> None:
        self._check_shared()
        self._check_columns()
        _check_choice("record_type", self.record_type, (None, *get_args(RecordTypeName)))
        _check_choice("on_new", self.on_new, get_args(OnNew))
        check_on_error(self.on_error)
        self._check_mapping("schema_overrides", "{'x': 'int32'}")
        self._check_flags("stable_types", "infer_text", "allow_missing_shards", "check_crc")
        self._check_flags("large_offsets", "progress")
        if not isinstance(self.include_file_paths, str | None):
            raise TypeError(f"include_file_paths={self.include_file_paths!r}: expected the name of a column")
        if self.sample != "all":
            _check_integer("sample", self.sample, 1)
        _check_integer("offset", self.offset, 0, INT64_MAX)
        _check_integer("limit", self.limit, 0, INT64_MAX, optional=True)
        for name in ("max_features", "max_expansion", "batch_size", "batch_bytes"):
            _check_integer(name, getattr(self, name), 1, INT64_MAX)
        _check_integer("max_record_bytes", self.max_record_bytes, 1, MAX_RECORD_BYTES)  # the limit of protobuf
        check_ratio(self.max_decompression_ratio)

    @property
    def declares_schema(self) -> bool:
        """Whether types are those of the caller, whose sizes need no limit."""
        return not isinstance(self.schema, str | None) or self.schema_overrides is not None

    def _check_columns(self) -> None:
        if self.columns is None:
            return
        names = (self.columns,) if isinstance(self.columns, str) else self.columns
        if isinstance(names, Iterable) and not isinstance(names, bytes):
            object.__setattr__(self, "columns", names := tuple(names))
            if all(isinstance(name, str) for name in names):
                return
        raise TypeError(f"columns={self.columns!r}: expected names, globs and !names")


@dataclass(frozen=True, kw_only=True)
class RepresentationOptions(ReadOptions):
    """Keywords of the representation of columns as arrays; see `tfrecord_io.read_arrays`."""

    ragged: ArrayLayout | None = None
    pad_value: Any = 0
    missing: Missing = "error"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choice("ragged", self.ragged, (None, *get_args(ArrayLayout)))
        _check_choice("missing", self.missing, get_args(Missing))


@dataclass(frozen=True, kw_only=True)
class ArrayOptions(RepresentationOptions):
    """Keywords of `tfrecord_io.read_arrays`."""

    out: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.out, Mapping | None):
            raise TypeError(f"out={type(self.out).__name__}: expected a dict of arrays by column")


@dataclass(frozen=True, kw_only=True)
class IterOptions(RepresentationOptions):
    """Keywords of `tfrecord_io.iter_arrays`."""

    shuffle_buffer: int = 0
    seed: int | None = None
    epochs: int | None = 1
    drop_last: bool = False
    worker: tuple[int, int] | None = None
    uneven: UnevenParts = "keep"
    state: Mapping[str, Any] | None = None

    internal: ClassVar[frozenset[str]] = frozenset({"batch_bytes"})  # a batch for training has batch_size rows

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_flags("drop_last")
        _check_integer("shuffle_buffer", self.shuffle_buffer, 0)
        _check_integer("seed", self.seed, 0, optional=True)
        _check_integer("epochs", self.epochs, 1, optional=True)
        if self.worker is not None:
            self._check_worker()
        _check_choice("uneven", self.uneven, get_args(UnevenParts))
        if self.has_equal_parts:
            self._check_equal_parts()
        if not isinstance(self.state, Mapping | None):
            raise TypeError(f"state={type(self.state).__name__}: expected the result of state()")

    def _check_worker(self) -> None:
        if not isinstance(self.worker, tuple | list) or len(self.worker) != 2:
            raise TypeError(f"worker={self.worker!r}: expected (index of this worker, number of workers)")
        index, count = self.worker
        _check_integer("worker", count, 1)
        _check_integer("worker", index, 0)
        if index >= count:
            raise ValueError(f"worker={self.worker!r}: expected an index from 0 to {count - 1}")
        object.__setattr__(self, "worker", (index, count))

    @property
    def has_equal_parts(self) -> bool:
        """Whether there are several workers, of which each gets the same number of records."""
        return self.uneven != "keep" and self.worker is not None and self.worker[1] > 1

    def _check_equal_parts(self) -> None:
        if self.on_error != "raise":
            reason = "a part that ends at damage, or leaves records out, is shorter than the others"
            raise ValueError(f"uneven={self.uneven!r} cannot be combined with on_error={self.on_error!r}: {reason}")
        if self.shuffle_buffer and self.seed is None and self.state is None:
            reason = "needs the same seed= in all workers: the parts are taken from the shuffled order of the files"
            raise ValueError(f"uneven={self.uneven!r} with shuffle_buffer= {reason}")


@dataclass(frozen=True, kw_only=True)
class WriteOptions(_Options):
    """Keywords of all writing calls; see `tfrecord_io.write_tfrecord`."""

    schema: SchemaLike | None = None
    record_type: RecordTypeName | None = None
    column_encoding: Mapping[str, str] | None = None
    float64: Float64 | None = None
    nan_to_null: bool = True
    index: bool | None = None
    compression: Compression | None = "infer"
    shards: int | None = None
    max_shard_bytes: int | None = None
    order: ShardOrder = "keep"
    write_index: bool = False
    overwrite: bool | Overwrite | None = None
    embed_schema: bool = True
    threads: int | None = None
    storage_options: Mapping[str, Any] | None = None
    filesystem: Any = None
    progress: bool = False

    def __post_init__(self) -> None:
        self._check_shared()
        _check_choice("record_type", self.record_type, (None, *get_args(RecordTypeName)))
        _check_choice("float64", self.float64, (None, *get_args(Float64)))
        _check_choice("write_index", self.write_index, (False, True))
        _check_choice("order", self.order, get_args(ShardOrder))
        self._check_flags("nan_to_null", "embed_schema", "progress")
        self._check_flags("index", other=(None,))
        self._check_mapping("column_encoding", "{'x': 'raw'}, by column")
        _check_integer("shards", self.shards, 1, optional=True)
        _check_integer("max_shard_bytes", self.max_shard_bytes, 1, optional=True)
        if self.overwrite not in (None, True, False, *get_args(Overwrite)):
            raise TypeError(f"overwrite={self.overwrite!r}: expected None, True, False or 'in_place'")
