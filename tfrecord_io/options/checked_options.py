"""Base classes of options: construction from keywords, storage, threads."""

from __future__ import annotations

import inspect
import operator
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from contextvars import ContextVar
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import Any, ClassVar, Self, TypeVar, get_args

from tfrecord_io.options.dataset_keywords import OF_PLAIN_FILES, OF_SELECTION, REFUSED, REPORTS_ALL
from tfrecord_io.options.did_you_mean import NO_APPEND, unknown_keyword
from tfrecord_io.typing import Compression, FileMode, ProgressLike

_WITHOUT_SAMPLE = frozenset({"sample", "on_new"})  # valid in every read: one that returns all rows infers from them all
_MODES_OF_FILES = {"w": "overwrite", "wb": "overwrite", "w+": "overwrite", "a": "append", "ab": "append", "x": "error"}
_FILESYSTEMS = ("AbstractFileSystem", "FileSystem")  # of fsspec and pyarrow: what ``storage_options=`` may be, too
T = TypeVar("T")
MIB = 1 << 20
_signature = cache(inspect.signature)
INT64_MAX = 2**63 - 1  # the kernel counts records and bytes in 64 bits


def cpu_count() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_integer(name: str, value: Any, least: int, most: int | None = None, *, optional: bool = False) -> Any:
    """An integer as an `int`, as those of NumPy overflow; TypeError or ValueError for what is none, or out of range."""
    if optional and value is None:
        return None
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise TypeError(f"{name}={value!r}: expected an integer")
    if number < least:
        raise ValueError(f"{name}={value!r}: expected at least {least}")
    if most is not None and number > most:
        raise ValueError(f"{name}={value!r}: expected at most {most}")
    return number


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """How paths are accessed: the keyword `storage_options` of a call, or its `filesystem`."""

    storage_options: Mapping[str, Any] | None = None
    filesystem: Any = None
    of_both: bool = False  # of a source and a target, of which one may be local: options are for the other

    @property
    def keywords(self) -> dict[str, Any]:
        """As keywords of `Options`."""
        return {"storage_options": self.storage_options, "filesystem": self.filesystem}

    @property
    def given(self) -> Any:
        """As the one keyword ``storage_options=`` of a public call."""
        return self.storage_options if self.filesystem is None else self.filesystem


DEFAULT_STORAGE = StorageOptions()  # local paths, and URLs without options


@cache
def _defaults(cls: Any, call: Callable[..., Any]) -> list[tuple[str, Any]]:
    """The keywords that a call and a class of options have, and their defaults in the call."""
    parameters, option_names = _signature(call).parameters, cls.__dataclass_fields__.keys() - cls.internal
    return [(name, parameter.default) for name, parameter in parameters.items() if name in option_names]


# The public call that runs, and the names of the keywords that its caller wrote: `check_keywords` sets it.
WRITTEN: ContextVar[tuple[Callable[..., Any] | None, Collection[str]]] = ContextVar("WRITTEN", default=(None, ()))


class Configured:
    """Base class of scans, for code on floors below `Scan`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DatasetValue:
    """Base class of datasets and their pieces: public objects around a `Configured` one."""

    _held: Any


def unwrapped(source: Any) -> Any:
    """Scans of datasets and pieces, alone or in a list; any other source is returned as is."""
    if isinstance(source, DatasetValue):
        return source._held
    if isinstance(source, list | tuple) and any(isinstance(part, DatasetValue) for part in source):
        return [unwrapped(part) for part in source]
    return source


# Keywords of a call instead of those of a dataset.
OF_CALLS = frozenset({"threads", "progress", "batch_size", "batch_bytes"})
OF_PLACES = frozenset({"storage_options", "filesystem"})
_OF_SOURCES = frozenset({"split", "allow_missing_shards"})  # which each dataset has of its own
_OF_FILES = _OF_SOURCES | OF_PLACES  # by which they were found
_OF_TARGETS = frozenset({"compression"}) | OF_PLACES  # where a call writes files, too
_WRITE_FIRST = "pass a dataset without it, or write its rows first with tfr.write_tfrecord(dataset, path)"
_OTHERWISE = {  # by call: how it reads some rows
    "open_random": "records.select(filters) finds those that meet a condition",
    "read_earth_engine": "an image has all patches",
}


def datasets_in(source: object) -> list[Any]:
    """The datasets, and the pieces of them, in what a call reads."""
    parts = source if isinstance(source, list | tuple) else [source]
    return [part for part in map(unwrapped, parts) if isinstance(part, Configured)]


def refuse_stated(dataset: Any, call: str, names: Set[str]) -> None:
    """Raise ValueError for keywords stated by a dataset and not taken by a call."""
    advice = _OTHERWISE.get(call, _WRITE_FIRST)
    if "filters" in names and dataset.chooses_rows:
        raise ValueError(f"{call} works on whole files, and takes no selection ({dataset.chooses_rows}): {advice}")
    if "columns" in names and dataset.chooses_columns:
        raise ValueError(f"{call} works on whole records, and columns of the dataset are selected: {advice}")
    for name in sorted(dataset.stated.changes.keys() & names - OF_SELECTION - OF_CALLS):
        if name == "compression" and call in OF_PLAIN_FILES:
            if dataset.stated.compression is None:
                continue
            advice = "only plain files have records by number; tfr.convert(dataset, target) writes them"
        if name == "on_error" and call in REPORTS_ALL and dataset.stated.damage.hands_over:
            continue
        raise ValueError(f"{call} takes no {name}= of a dataset: {advice}")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The keywords of all calls that take a path; construction from keywords, and checks that several classes share."""

    storage_options: Mapping[str, Any] | None = None
    filesystem: Any = None

    internal: ClassVar[frozenset[str]] = frozenset()  # fields that are not keywords

    def changed(self, **changes: Any) -> Self:
        """A copy with other values, unchecked, as checked values imply them."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **changes)
        return new

    @classmethod
    def from_keywords(
        cls, keywords: Mapping[str, Any], call: Callable[..., Any] | None = None, source: object = None, **decided: Any
    ) -> Self:
        """Options from a call's keywords, and from the datasets in the `source` that it reads.

        `call` is the public function: keywords that its signature does not have are refused. Without it, all are valid.
        `decided` are those that the call decides, where the caller does not.

        TypeError for a keyword that does not exist, or a value of a wrong type; ValueError for a value out of range, or
        one of a dataset that the caller gives again, with another value.
        """
        if keywords:
            option_names = cls.__dataclass_fields__.keys() - cls.internal
            shown = option_names if call is None else _signature(call).parameters
            for name in keywords:
                if name not in option_names or (name not in shown and name not in _WITHOUT_SAMPLE):
                    raise unknown_keyword(name, option_names, call)
            storage = keywords.get("storage_options")
            if storage is not None and not {kind.__name__ for kind in type(storage).__mro__}.isdisjoint(_FILESYSTEMS):
                if keywords.get("filesystem") is not None:
                    raise ValueError("storage_options= is a filesystem: leave out filesystem=")
                keywords = {**keywords, "storage_options": None, "filesystem": storage}
        if source is not None and not isinstance(source, str | os.PathLike) and (datasets := datasets_in(source)):
            if "columns" in cls.__dataclass_fields__ and isinstance(source, list | tuple):
                common = _common_columns(source)
                if common is not None and keywords.get("columns") is not None:
                    raise ValueError("datasets of a list select columns: tfr.dataset([…]).select(…) selects of these")
                decided = {**decided, "columns": common}
            return cls._from_datasets(datasets, keywords, call, decided, is_list=isinstance(source, list | tuple))
        return cls(**{**decided, **keywords})

    @classmethod
    def of_call(cls, call: Callable[..., Any], arguments: Mapping[str, Any], source: object = None, **own: Any) -> Self:
        """Options from the arguments of a call, its ``locals()``, and from the datasets in the `source`."""
        return cls.from_keywords(cls.stated_keywords(call, arguments), call, source, **own)

    @classmethod
    def stated_keywords(cls, call: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Keywords of these options stated by the caller of a call, from the call's ``locals()``.

        That is any value but the default, and the default if it was written and is not None. The others are left to a
        dataset.
        """
        running, written = WRITTEN.get()
        if running is not getattr(call, "__wrapped__", None):
            written = ()
        keywords = {}
        for name, default in _defaults(cls, call):  # type: ignore[arg-type]  # whose hash is that of its instances, to mypy
            value = arguments[name]
            is_default = value is default or (isinstance(default, str) and value == default)  # of equal texts, too
            if not is_default or (name in written and value is not None):
                keywords[name] = value
        return keywords

    @classmethod
    def _from_datasets(
        cls,
        datasets: Sequence[Any],
        keywords: Mapping[str, Any],
        call: Callable[..., Any] | None,
        own: Mapping[str, Any],
        *,
        is_list: bool,
    ) -> Self:
        """Options common to all datasets, with the ones belonging to a call."""
        if call is not None and (refused := REFUSED.get(call.__name__)) is not None:
            for dataset in datasets:
                refuse_stated(dataset, call.__name__, refused)
        first = datasets[0]
        writes = issubclass(cls, TransferOptions)
        names = {f.name for f in fields(first.stated)} & {f.name for f in fields(cls)} - cls.internal
        names -= OF_SELECTION | (_OF_TARGETS if writes else frozenset())
        if writes and "check_crc" in cls.__dataclass_fields__:
            names |= {"compression"}  # that of what is read
        values = {name: getattr(first.stated, name) for name in names}
        reads = "reading" in cls.__dataclass_fields__
        compared = first.stated.__dataclass_fields__.keys() - OF_SELECTION - OF_PLACES if reads else values.keys()
        check_equal([dataset.stated for dataset in datasets], sorted(compared - OF_CALLS - _OF_SOURCES))
        if writes:
            values["source_storage"] = first.stated.storage
        if reads:
            values["reading"] = first.stated
        options = cls(**{**values, **own, **keywords})
        is_fixed = not all(dataset.is_as_stated and not (is_list and dataset.chooses_rows) for dataset in datasets)
        for name in sorted(keywords.keys() & values.keys() - OF_CALLS):
            is_binding = is_fixed or name in _OF_FILES or values[name] != getattr(type(first.stated), name)
            if getattr(options, name) != values[name] and is_binding:
                raise differing(name, call)
        return options

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what differs from the defaults."""
        return partial(type(self), **self.changes), ()

    @property
    def changes(self) -> dict[str, Any]:
        """Options with other values than the defaults."""
        values = {f: getattr(self, f.name) for f in fields(self)}
        return {f.name: value for f, value in values.items() if value is not f.default}

    @property
    def storage(self) -> StorageOptions:
        return StorageOptions(self.storage_options, self.filesystem)

    def __post_init__(self) -> None:
        if self.storage_options is not None:
            self._check_mapping("storage_options", "{'anon': True}", " or a filesystem of fsspec or pyarrow")

    def _check_integer(self, name: str, least: int, most: int | None = None, *, optional: bool = False) -> None:
        object.__setattr__(self, name, check_integer(name, getattr(self, name), least, most, optional=optional))

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

    def _check_mapping(self, name: str, example: str, other: str = "") -> None:
        value = getattr(self, name)
        if not isinstance(value, Mapping | None):
            raise TypeError(f"{name}={value!r}: expected a dict such as {example}{other}")
        for key in value or ():
            if not isinstance(key, str):
                raise TypeError(f"{name} has the key {key!r}: expected names, as in {example}")


@dataclass(frozen=True, kw_only=True)
class RecordOptions(Options):
    """Keywords of calls that read or write files of records."""

    compression: Compression | None = "infer"
    threads: int | None = None
    progress: ProgressLike = False

    @property
    def thread_count(self) -> int:
        return cpu_count() if self.threads is None else self.threads

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.compression, str | None):
            raise TypeError(f"compression={self.compression!r}: expected a name or None")
        self._check_integer("threads", 1, optional=True)
        object.__setattr__(self, "progress", check_progress(self.progress))


@dataclass(frozen=True, kw_only=True)
class TransferOptions(Options):
    """Options of calls that read files and write others; a keyword of storage holds for both by default."""

    source_storage: StorageOptions | None = None  # of a dataset that is read

    internal: ClassVar[frozenset[str]] = frozenset({"source_storage"})

    @property
    def storage(self) -> StorageOptions:
        return StorageOptions(self.storage_options, self.filesystem, of_both=True)

    @property
    def source(self) -> StorageOptions:
        """The storage of the files that are read."""
        return self.storage if self.source_storage is None else self.source_storage

    @property
    def target(self) -> StorageOptions:
        """The storage of the files that are written."""
        return self.storage


def _common_columns(parts: Sequence[Any]) -> tuple[str, ...] | None:
    """The columns that are selected of all datasets of a list; None if all columns of each are."""
    datasets = datasets_in(parts)
    names = {tuple(dataset.schema.names) for dataset in datasets}  # first: a filter may need columns that are left out
    chosen = [dataset.chooses_columns for dataset in datasets]
    if any(chosen) and (not all(chosen) or len(names) > 1 or len(datasets) < len(parts)):
        raise ValueError("the parts of a list have other columns selected: tfr.dataset([…]).select(…) selects of all")
    return add_path_column(names.pop(), datasets[0].stated.include_file_paths) if any(chosen) else None


def add_path_column(names: tuple[str, ...], paths: str | None) -> tuple[str, ...]:
    """The ``columns=`` selecting a dataset's columns, without the column of paths if the names lack it."""
    return names if paths is None or paths in names else (*names, paths, f"!{paths}")


def check_equal(options: Sequence[Options], names: Iterable[str]) -> None:
    """Raise ValueError if datasets read together differ in one of these options."""
    first, *later_options = options
    for later in later_options:
        for name in names:
            if getattr(later, name) != getattr(first, name):
                advice = f"open them with the same, tfr.dataset(path, {name}=…)"
                raise ValueError(f"the datasets differ in {name}=: {advice}")


def differing(name: str, call: Callable[..., Any] | None = None) -> ValueError:
    """The error for a keyword that a dataset decides, of which the call states another value."""
    reason = f"{name}= differs from that of the dataset, which says how its files are read"
    return ValueError(f"{'' if call is None else f'{call.__name__}: '}{reason}: tfr.dataset(path, {name}=…)")


def check_names(name: str, value: object) -> list[str]:
    """The names of columns, at least one, that a keyword takes alone or in a sequence."""
    names = [value] if isinstance(value, str) else list(value) if isinstance(value, Iterable) else []
    if not names or not all(isinstance(item, str) for item in names):
        raise ValueError(f"{name}={value!r}: expected one or several names of columns")
    return names


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    if value not in choices:
        none = "None, " if None in choices else ""
        shown = ", ".join(repr(choice) for choice in choices if choice is not None)
        raise ValueError(f"{name}={value!r}: expected one of {none}{shown}")


def check_mode(value: object, modes: Sequence[str] = get_args(FileMode)) -> None:
    """Raise ValueError for a `mode` unknown to a call; modes of ``open`` get a hint."""
    if isinstance(value, str) and (meant := _MODES_OF_FILES.get(value)) in modes:
        advice = f"did you mean mode={meant!r}? Valid modes: {', '.join(modes)}"
        raise ValueError(f"mode={value!r}: {advice}")
    if value is not None and value not in modes:
        reason = f"mode={value!r}: expected one of {', '.join(map(repr, (None, *modes)))}"
        raise ValueError(f"{reason}; {NO_APPEND}" if value in ("append", *_MODES_OF_FILES) else reason)


def check_progress(value: object) -> ProgressLike:
    """Return a `progress`, flags of NumPy as bool; TypeError for what is none."""
    if callable(value):
        return value
    if type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"progress={value!r}: expected True, False or a function")
    return bool(value)
