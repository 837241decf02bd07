"""The keywords of reading and writing: one frozen object each, checked once, at the door.

Defaults stand here and nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Self

RECORD_TYPES = ("example", "sequence_example", "bytes")
FLOAT64 = (None, "round", "error", "raw")
ENCODINGS = ("raw", "tensor_proto", "list")
RAGGED = (None, "object", "offsets", "pad")
MISSING = ("error", "mask")
MAX_RECORD_BYTES = 2**31 - 1
MIB = 1 << 20
INT64_MAX = 2**63 - 1  # no file has as many records or bytes; the kernel counts in 64 bits


class _Options:
    """What both option classes share: making them from keywords, and refusing what they do not know."""

    _later: ClassVar[dict[str, object]] = {}  # keyword -> its default: any other value is not built yet
    _own: ClassVar[frozenset[str]] = frozenset()  # not for callers

    @classmethod
    def of(cls, keywords: Mapping[str, Any]) -> Self:
        """Options from a call's keywords.

        Raises
        ------
        TypeError
            A keyword that does not exist, or a value of a wrong type.
        ValueError
            A value out of range.
        NotImplementedError
            A keyword that this version does not have yet.
        """
        known = {f.name for f in fields(cls)} - cls._own  # type: ignore[arg-type]
        for name in keywords:
            if name not in known:
                raise TypeError(f"unexpected keyword argument {name!r}; there are: {', '.join(sorted(known))}")
        return cls(**keywords)

    def _refuse_later(self) -> None:
        for name, default in self._later.items():
            if getattr(self, name) != default:
                raise NotImplementedError(f"{name}={getattr(self, name)!r} is not built yet in this version")


def _at_least(name: str, value: object, least: int, most: int | None = None) -> None:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}={value!r}: expected an integer")
    if value.__index__() < least:
        raise ValueError(f"{name}={value!r}: expected at least {least}")
    if most is not None and value.__index__() > most:
        raise ValueError(f"{name}={value!r}: expected at most {most}")


def _one_of(name: str, value: object, choices: Sequence[object]) -> None:
    if value not in choices:
        raise ValueError(f"{name}={value!r}: expected one of {', '.join(map(repr, choices))}")


def _flag(options: object, name: str, *others: object) -> None:
    """Make a keyword that is True or False a bool, also of NumPy's; text such as "no" is none."""
    value = getattr(options, name)
    if value in others:
        return
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(
            f"{name}={value!r}: expected {', '.join(map(repr, others))}{' or ' if others else ''}True or False"
        )
    object.__setattr__(options, name, bool(value))


def _mapping(name: str, value: object, example: str) -> None:
    if not isinstance(value, Mapping | None):
        raise TypeError(f"{name}={value!r}: expected a dict such as {example}")
    for key in value or ():
        if not isinstance(key, str):
            raise TypeError(f"{name} has the key {key!r}: expected names, as in {example}")


def _check_storage(compression: object, storage_options: object) -> None:
    """What reading and writing are told of files alike."""
    if not isinstance(compression, str | None):
        raise TypeError(f"compression is a name or None, not {type(compression).__name__}")
    _mapping("storage_options", storage_options, "{'anon': True}")


def _thread_count(threads: int | None) -> int:
    if threads is not None:
        _at_least("threads", threads, 1)
        return threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, kw_only=True)
class ReadOptions(_Options):
    """Keywords of every reading call; see `tfrecord_io.read_table` for what they mean."""

    columns: Sequence[str] | str | None = None
    filters: object = None
    schema: Any = None
    schema_overrides: Mapping[str, Any] | None = None
    stable_types: bool = False
    infer_text: bool = True
    sample: int | Literal["all"] = 10_000
    on_new: Literal["raise", "ignore"] = "raise"
    record_type: str | None = None
    compression: str | None = "infer"
    offset: int = 0
    limit: int | None = None
    include_file_paths: str | None = None
    allow_missing_shards: bool = False
    check_crc: bool = True
    on_error: str | Callable[[Any], Any] = "raise"
    max_record_bytes: int = MAX_RECORD_BYTES
    max_features: int = 100_000
    large_offsets: bool = False
    threads: int | None = None
    storage_options: Mapping[str, Any] | None = None
    filesystem: Any = None
    progress: bool = False
    batch_size: int = 65_536
    batch_bytes: int = 64 * MIB

    _later: ClassVar[dict[str, object]] = {"filters": None}

    def __post_init__(self) -> None:
        self._refuse_later()
        _one_of("record_type", self.record_type, (None, *RECORD_TYPES))
        _check_storage(self.compression, self.storage_options)
        _mapping("schema_overrides", self.schema_overrides, "{'x': 'int32'}")
        for name in ("stable_types", "infer_text", "allow_missing_shards", "check_crc", "large_offsets", "progress"):
            _flag(self, name)
        if isinstance(self.columns, bytes) or not isinstance(self.columns, str | Iterable | None):
            raise TypeError(f"columns={self.columns!r}: expected names, globs and !names")
        if self.columns is not None:
            object.__setattr__(
                self, "columns", (self.columns,) if isinstance(self.columns, str) else tuple(self.columns)
            )
            if not all(isinstance(name, str) for name in self.columns):
                raise TypeError(f"columns={self.columns!r}: expected names, globs and !names")
        if not isinstance(self.include_file_paths, str | None):
            raise TypeError(f"include_file_paths={self.include_file_paths!r}: expected the name of a column")
        _one_of("on_new", self.on_new, ("raise", "ignore"))
        if self.on_error not in ("raise", "stop"):
            if self.on_error == "skip" or callable(self.on_error):
                raise NotImplementedError(f"on_error={self.on_error!r} is not built yet in this version")
            _one_of("on_error", self.on_error, ("raise", "stop", "skip"))
        if self.sample != "all":
            _at_least("sample", self.sample, 1)
        _at_least("offset", self.offset, 0, INT64_MAX)
        if self.limit is not None:
            _at_least("limit", self.limit, 0, INT64_MAX)
        for name in ("max_record_bytes", "max_features", "batch_size", "batch_bytes"):
            _at_least(name, getattr(self, name), 1, INT64_MAX)
        if self.max_record_bytes > MAX_RECORD_BYTES:
            raise ValueError(
                f"max_record_bytes={self.max_record_bytes}: expected at most {MAX_RECORD_BYTES}, protobuf's own limit"
            )
        _thread_count(self.threads)

    @property
    def thread_count(self) -> int:
        return _thread_count(self.threads)


@dataclass(frozen=True, kw_only=True)
class RepresentationOptions(ReadOptions):
    """Keywords of reading that say how a column becomes arrays; see `tfrecord_io.read_arrays`."""

    ragged: str | None = None
    pad_value: Any = 0
    missing: str = "error"

    def __post_init__(self) -> None:
        super().__post_init__()
        _one_of("ragged", self.ragged, RAGGED)
        _one_of("missing", self.missing, MISSING)


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
    state: Mapping[str, Any] | None = None

    _own: ClassVar[frozenset[str]] = frozenset({"batch_bytes"})  # batches for training have batch_size rows each

    def __post_init__(self) -> None:
        super().__post_init__()
        _flag(self, "drop_last")
        _at_least("shuffle_buffer", self.shuffle_buffer, 0)
        if self.seed is not None:
            _at_least("seed", self.seed, 0)
        if self.epochs is not None:
            _at_least("epochs", self.epochs, 1)
        if self.worker is not None:
            self._check_worker()
        if not isinstance(self.state, Mapping | None):
            raise TypeError(f"state={type(self.state).__name__}: expected what state() gave")

    def _check_worker(self) -> None:
        if not isinstance(self.worker, tuple | list) or len(self.worker) != 2:
            raise TypeError(f"worker={self.worker!r}: expected (number of this worker, how many there are)")
        number, count = self.worker
        _at_least("worker", count, 1)
        _at_least("worker", number, 0)
        if number >= count:
            raise ValueError(f"worker={self.worker!r}: the workers of {count} are numbered from 0 to {count - 1}")
        object.__setattr__(self, "worker", (number, count))


@dataclass(frozen=True, kw_only=True)
class WriteOptions(_Options):
    """Keywords of every writing call; see `tfrecord_io.write_tfrecord` for what they mean."""

    schema: Any = None
    record_type: str | None = None
    column_encoding: Mapping[str, str] | None = None
    float64: str | None = None
    nan_to_null: bool = True
    index: bool | None = None
    compression: str | None = "infer"
    shards: int | None = None
    max_shard_bytes: int | None = None
    write_index: bool = False
    overwrite: bool | None = None
    embed_schema: bool = True
    threads: int | None = None
    storage_options: Mapping[str, Any] | None = None
    filesystem: Any = None
    progress: bool = False

    def __post_init__(self) -> None:
        _one_of("record_type", self.record_type, (None, *RECORD_TYPES))
        _one_of("float64", self.float64, FLOAT64)
        _one_of("write_index", self.write_index, (False, True))
        _check_storage(self.compression, self.storage_options)
        _mapping("column_encoding", self.column_encoding, "{'x': 'raw'}, by column")
        for name in ("nan_to_null", "embed_schema", "progress"):
            _flag(self, name)
        _flag(self, "index", None)
        for name, encoding in (self.column_encoding or {}).items():
            _one_of(f"column_encoding[{name!r}]", encoding, ENCODINGS)
        for name in ("shards", "max_shard_bytes"):
            if getattr(self, name) is not None:
                _at_least(name, getattr(self, name), 1)
        if self.overwrite not in (None, True, False):
            raise TypeError(f"overwrite={self.overwrite!r}: expected None, True or False")
        _thread_count(self.threads)

    @property
    def thread_count(self) -> int:
        return _thread_count(self.threads)
