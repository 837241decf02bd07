"""The keywords of reading calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self, get_args

from tfrecord_io.errors import FeatureTypeError
from tfrecord_io.options.dataset_keywords import OF_DATASETS
from tfrecord_io.options.limits import DEFAULT_LIMITS, Limits
from tfrecord_io.options.options_base import (
    INT64_MAX,
    MIB,
    AskedOnce,
    RecordOptions,
    check_choice,
    check_on_error,
    raises,
    stops,
)
from tfrecord_io.options.record_types import checked_record_type
from tfrecord_io.typing import OnError, OnNew, RecordTypeLike, SchemaLike


def is_of_other_type(error: Exception) -> bool:
    """True if an intact record has a value of another feature type than its column: an ``on_error``."""
    return isinstance(error, FeatureTypeError)


@dataclass(frozen=True, kw_only=True)
class FrameOptions(RecordOptions):
    """Keywords of calls that go through the frames of records, whatever these contain."""

    split: str | None = None
    allow_missing_shards: bool = False
    check_crc: bool = True
    on_error: OnError = "raise"
    limits: Limits = DEFAULT_LIMITS

    none_is_unset: ClassVar[frozenset[str]] = frozenset({"on_error"})

    def __post_init__(self) -> None:
        super().__post_init__()
        check_on_error(self.on_error)
        if callable(self.on_error):
            object.__setattr__(self, "on_error", AskedOnce.wrap(self.on_error))
        if self.split is not None:
            from tfrecord_io.options.split_slices import parse_split

            object.__setattr__(self, "split", parse_split(self.split))
        self._check_flags("allow_missing_shards", "check_crc")
        if not isinstance(self.limits, Limits):
            raise TypeError(f"limits={self.limits!r}: expected tfr.Limits(…)")


@dataclass(frozen=True, kw_only=True)
class ReadOptions(FrameOptions):
    """Keywords of all reading calls; see `tfrecord_io.read_table`."""

    columns: Sequence[str] | str | None = None
    filters: Any = None
    schema: SchemaLike | Literal["infer"] | None = None
    schema_overrides: Mapping[str, Any] | None = None
    stable_types: bool = False
    infer_text: bool = True
    sample: int | Literal["all"] = 10_000
    on_new: OnNew = "raise"
    record_type: RecordTypeLike | None = None
    offset: int = 0
    limit: int | None = None
    include_file_paths: str | None = None
    large_offsets: bool = False
    batch_size: int = 65_536
    batch_bytes: int = 64 * MIB

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.columns is not None:
            names = (self.columns,) if isinstance(self.columns, str) else self.columns
            if isinstance(names, Iterable) and not isinstance(names, bytes):
                object.__setattr__(self, "columns", names := tuple(names))
            if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
                raise TypeError(f"columns={self.columns!r}: expected names, globs and !names")
        if self.filters is not None:
            from tfrecord_io.options.filters import condition_of  # with pyarrow

            object.__setattr__(self, "filters", condition_of(self.filters))
        if self.record_type is not None:
            object.__setattr__(self, "record_type", checked_record_type(self.record_type))
        check_choice("on_new", self.on_new, get_args(OnNew))
        self._check_mapping("schema_overrides", "{'x': 'int32'}")
        self._check_flags("stable_types", "infer_text", "large_offsets")
        if not isinstance(self.include_file_paths, str | None):
            raise TypeError(f"include_file_paths={self.include_file_paths!r}: expected the name of a column")
        if self.sample != "all":
            self._check_integer("sample", 1)
        self._check_integer("offset", 0, INT64_MAX)
        self._check_integer("limit", 0, INT64_MAX, optional=True)
        for name in ("batch_size", "batch_bytes"):
            self._check_integer(name, 1, INT64_MAX)

    @classmethod
    def from_read(cls, options: ReadOptions, **own: Any) -> Self:
        """Convert options of a read to this class, with some values replaced or added."""
        return cls(**{f.name: getattr(options, f.name) for f in fields(ReadOptions)} | own)

    def for_inspection(self) -> Self:
        """A copy for tools that show the content of files.

        With ``on_error="raise"`` it leaves out the records that have values of another feature type than most others,
        with a warning that names the first; all other errors are raised.
        """
        return replace(self, on_error=is_of_other_type) if raises(self.on_error) else self

    @property
    def inspects(self) -> bool:
        """True for options made by `for_inspection`."""
        return isinstance(self.on_error, AskedOnce) and self.on_error.function is is_of_other_type

    @property
    def records_to_skip(self) -> int:
        """How many records `offset` skips by their lengths, without decoding them, as damaged ones count, too."""
        return self.offset if raises(self.on_error) else 0

    @property
    def rows_to_drop(self) -> int:
        """How many rows `offset` leaves out once they were decoded, as damaged records do not count."""
        return self.offset - self.records_to_skip

    @property
    def counts_all(self) -> bool:
        """True if every record of the files is a row, or the read raises."""
        return raises(self.on_error) or self.inspects

    @property
    def is_indivisible(self) -> bool:
        """True if pieces of the files would have other rows: by `offset`, `limit` or ``on_error="stop"``."""
        return self.offset > 0 or self.limit is not None or stops(self.on_error)

    @property
    def declares_schema(self) -> bool:
        """True if the caller declares types, whose sizes need no limit."""
        return not isinstance(self.schema, str | None) or self.schema_overrides is not None


OF_DATASETS.update(f.name for f in fields(ReadOptions) if f.name not in ReadOptions.internal)
