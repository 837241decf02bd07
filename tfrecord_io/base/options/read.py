"""The keywords of reading calls.

Tests: tests/base/options/test_options.py, tests/base/options/test_options_base.py and
tests/base/options/test_selection.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast, get_args

from tfrecord_io.base.options.limits import Limits
from tfrecord_io.base.options.on_damage import Collect, Inspect, OnDamage
from tfrecord_io.base.options.options_base import INT64_MAX, MIB, RecordOptions, check_choice
from tfrecord_io.base.options.record_types import checked_record_type
from tfrecord_io.base.options.selection import OF_DATASETS, Selection
from tfrecord_io.typing import OnError, OnNew, RecordTypeLike, SchemaLike

if TYPE_CHECKING:
    from tfrecord_io.base.options.calls_on_datasets import Refusal


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, init=False)
class FrameOptions(RecordOptions):
    """Keywords of calls that go through the frames of records, whatever these contain."""

    split: str | None = None
    allow_missing_shards: bool = False
    check_crc: bool = True
    on_error: OnError = "raise"
    limits: Limits = Limits.DEFAULT

    _none_is_unset: ClassVar[frozenset[str]] = frozenset({"on_error"})
    _takes = staticmethod(OnDamage.needs_no_report)  # which ``on_error``

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.on_error is not type(self).on_error:  # the default is valid
            object.__setattr__(self, "on_error", OnDamage.check(self.on_error, type(self)._takes))
        if self.split is not None:
            from tfrecord_io.base.options.split_slices import parse_split

            object.__setattr__(self, "split", parse_split(self.split))
        self._check_flags("allow_missing_shards", "check_crc")
        if not isinstance(self.limits, Limits):
            raise TypeError(f"limits={self.limits!r}: expected tfr.Limits(…)")

    @property
    def damage(self) -> OnDamage:
        """The treatment of damaged data."""
        return OnDamage.of(self.on_error)

    def with_report(self, receive: Callable[[Any], object] = OnDamage.receive_in_reader) -> Self:
        """Copy for a call with a report, in which `receive` puts skipped regions if asked."""
        return self.changed(on_error=Collect(receive)) if self.damage.hands_over else self


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, init=False)
class ScanOptions(FrameOptions):
    """How the rows of files are read, whichever are selected: the keywords of `ReadOptions` without a selection."""

    schema: SchemaLike | Literal["infer"] | None = None
    schema_overrides: Mapping[str, Any] | None = None
    stable_types: bool = False
    infer_text: bool = True
    sample: int | Literal["all"] = 10_000
    on_new: OnNew = "raise"
    record_type: RecordTypeLike | None = None
    include_file_paths: str | None = None
    large_offsets: bool = False
    batch_size: int = 65_536
    batch_bytes: int = 64 * MIB

    _takes = staticmethod(OnDamage.is_taken_by_all)  # as the call has checked it

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.record_type is not None:
            object.__setattr__(self, "record_type", checked_record_type(self.record_type))
        check_choice("on_new", self.on_new, get_args(OnNew))
        if self.schema_overrides is not None:
            self._check_mapping("schema_overrides", "{'x': 'int32'}")
        self._check_flags("stable_types", "infer_text", "large_offsets")
        if not isinstance(self.include_file_paths, str | None):
            raise TypeError(f"include_file_paths={self.include_file_paths!r}: expected the name of a column")
        if self.sample != "all":
            self._check_integer("sample", 1)
        for name in ("batch_size", "batch_bytes"):
            self._check_integer(name, 1, INT64_MAX)

    def for_inspection(self) -> Self:
        """A copy for tools that show the content of files.

        With ``on_error="raise"`` it leaves out the records that have values of another feature type than most others,
        with a warning that names the first; all other errors are raised.
        """
        return self.changed(on_error=Inspect()) if self.damage.is_strict else self

    @property
    def declares_schema(self) -> bool:
        """True if the caller declares types, whose sizes need no limit."""
        return not isinstance(self.schema, str | None) or self.schema_overrides is not None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, init=False)
class ReadOptions(ScanOptions):
    """Keywords of all reading calls; see `tfrecord_io.read_table`."""

    columns: Sequence[str] | str | None = None
    filters: Any = None
    offset: int = 0
    limit: int | None = None

    _takes = staticmethod(OnDamage.needs_no_report)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.columns is not None:
            names = (self.columns,) if isinstance(self.columns, str) else self.columns
            if isinstance(names, Iterable) and not isinstance(names, bytes):
                object.__setattr__(self, "columns", names := tuple(names))
            if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
                raise TypeError(f"columns={self.columns!r}: expected names, globs and !names")
        if self.filters is not None:
            from tfrecord_io.base.options.filters import condition_of  # with pyarrow

            object.__setattr__(self, "filters", condition_of(self.filters))
        self._check_integer("offset", 0, INT64_MAX)
        self._check_integer("limit", 0, INT64_MAX, optional=True)

    @classmethod
    def from_scan(cls, options: ScanOptions, **own: Any) -> Self:
        """Make options of this class for the rows of a scan: by its options, with some replaced or added."""
        return cls(**{f.name: getattr(options, f.name) for f in fields(ScanOptions)} | own)

    @property
    def selection(self) -> Selection:
        """The columns and rows that are selected."""
        return Selection(cast("tuple[str, ...] | None", self.columns), self.filters, self.offset, self.limit)

    @property
    def of_scan(self) -> ScanOptions:
        """The options without the selection, for a scan."""
        options = object.__new__(ScanOptions)
        options.__dict__.update(zip(_OF_SCANS, _values_of_scans(self.__dict__), strict=True))
        return options


_OF_SCANS = tuple(f.name for f in fields(ScanOptions))
_values_of_scans = itemgetter(*_OF_SCANS)


class DatasetOptions(ReadOptions):
    """Keywords of `tfrecord_io.dataset`, and of `tfrecord_io.open_reader`, whose result has a report."""

    _takes = staticmethod(OnDamage.is_taken_by_all)

    @staticmethod
    def refused_by(call: str) -> Refusal:
        """The options of a dataset that the call of this name refuses."""
        from tfrecord_io.base.options.calls_on_datasets import Refusal  # for datasets only

        return Refusal.of(call)


OF_DATASETS.update(f.name for f in fields(ReadOptions) if f.name not in ReadOptions.internal)
