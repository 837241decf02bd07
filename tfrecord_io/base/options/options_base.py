"""Base classes of options: construction from keywords, storage, threads."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, cast

from tfrecord_io.base.options.selection import Selection
from tfrecord_io.typing import UNSET, Compression, ProgressLike, StorageLike

_MODES_OF_FILES = {"w": "overwrite", "wb": "overwrite", "w+": "overwrite", "a": "append", "ab": "append", "x": "error"}
_FILESYSTEMS = ("AbstractFileSystem", "FileSystem")  # of fsspec and pyarrow: what ``storage_options=`` may be, too
T = TypeVar("T")
MIB = 1 << 20
INT64_MAX = 2**63 - 1  # the kernel counts records and bytes in 64 bits


def cpu_count() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_integer(name: str, value: Any, least: int, most: int | None = None, *, optional: bool = False) -> Any:
    """Convert to `int`, as NumPy's overflow. TypeError if it is not an integer, ValueError if it is out of range."""
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


class _Storage(NamedTuple):
    storage_options: Mapping[str, Any] | None = None
    filesystem: Any = None
    of_both: bool = False  # of a source and a target, of which one may be local: options are for the other


class StorageOptions(_Storage):
    """How paths are accessed: the keyword `storage_options` of a call, or its `filesystem`."""

    __slots__ = ()

    DEFAULT: ClassVar[StorageOptions]

    @property
    def keywords(self) -> dict[str, Any]:
        """As keywords of `Options`."""
        return {"storage_options": self.storage_options, "filesystem": self.filesystem}

    @property
    def given(self) -> Any:
        """As the one keyword ``storage_options=`` of a public call."""
        return self.storage_options if self.filesystem is None else self.filesystem


StorageOptions.DEFAULT = StorageOptions()  # local paths, and URLs without options


def _separate_filesystem(keywords: dict[str, Any]) -> dict[str, Any]:
    """Keywords with a filesystem passed as ``storage_options=`` moved to ``filesystem=``."""
    storage = keywords["storage_options"]
    if {kind.__name__ for kind in type(storage).__mro__}.isdisjoint(_FILESYSTEMS):
        return keywords
    if keywords.get("filesystem") is not None:
        raise ValueError("storage_options= is a filesystem: leave out filesystem=")
    return {**keywords, "storage_options": None, "filesystem": storage}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, init=False)
class Options:
    """The keywords of all calls that take a path; construction from keywords, and checks that several classes share.

    One constructor serves all subclasses: to generate one with 25 keywords takes longer than to import a module, and
    the first call of a process needs several classes.
    """

    storage_options: StorageLike | None = None
    filesystem: Any = None

    internal: ClassVar[frozenset[str]] = frozenset()  # fields that are not keywords
    _none_is_unset: ClassVar[frozenset[str]] = frozenset()  # keywords of which None says as little as UNSET

    @classmethod
    @cache
    def _defaults(cls) -> Mapping[str, Any]:
        """The value of each keyword where a caller states none."""
        return {field.name: field.default for field in fields(cls)}

    def __init__(self, **values: Any) -> None:
        defaults = self._defaults()
        if unknown := values.keys() - defaults.keys():
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(unknown))}")
        vars(self).update(defaults, **values)
        if values:  # the defaults are valid
            self.__post_init__()

    @classmethod
    def stated(cls, keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Select the keywords that a caller states: all but UNSET, and None where None is the default.

        A filesystem that was passed as ``storage_options=`` is that of ``filesystem=``.
        TypeError for a keyword that these options do not have.
        """
        defaults, none_is_unset, stated = cls._defaults(), cls._none_is_unset, dict[str, Any]()
        for name, value in keywords.items():
            if name not in defaults or name in cls.internal:
                from tfrecord_io.base.options.other_names import unknown_keyword  # for mistakes only

                raise unknown_keyword(name, defaults.keys() - cls.internal)
            if not (value is UNSET or (value is None and (defaults[name] is None or name in none_is_unset))):
                stated[name] = value
        return _separate_filesystem(stated) if "storage_options" in stated else stated

    @classmethod
    def from_keywords(cls, keywords: Mapping[str, Any]) -> Self:
        """Make options of the keywords that a call passes on, as `stated` selects them.

        TypeError for a keyword that does not exist, or a value of a wrong type; ValueError for a value out of range.
        """
        return cls(**cls.stated(keywords))

    def changed(self, **changes: Any) -> Self:
        """A copy with other values, unchecked, as checked values imply them."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **changes)
        return new

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what differs from the defaults."""
        return partial(type(self), **self.changes), ()

    @property
    def changes(self) -> dict[str, Any]:
        """Options with other values than the defaults."""
        defaults = self._defaults()
        return {name: getattr(self, name) for name in defaults if getattr(self, name) is not defaults[name]}

    @property
    def storage(self) -> StorageOptions:
        """How paths are accessed."""
        return StorageOptions(cast("Mapping[str, Any] | None", self.storage_options), self.filesystem)

    def __post_init__(self) -> None:
        if self.storage_options is not None:
            places = {"storage_options": self.storage_options, "filesystem": self.filesystem}
            for name, value in _separate_filesystem(places).items():
                object.__setattr__(self, name, value)
            self._check_mapping("storage_options", "{'anon': True}", " or a filesystem of fsspec or pyarrow")

    def _check_integer(self, name: str, least: int, most: int | None = None, *, optional: bool = False) -> None:
        value = getattr(self, name)
        if value is not getattr(type(self), name):  # the default is valid
            object.__setattr__(self, name, check_integer(name, value, least, most, optional=optional))

    def _check_flags(self, *names: str, other: tuple[object, ...] = ()) -> None:
        """Convert flags to bool, also those of NumPy; other types are errors, such as text."""
        for name in names:
            value = getattr(self, name)
            if value is getattr(type(self), name) or value in other:
                continue
            if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
                expected = "".join(f"{choice!r} or " for choice in other)
                raise TypeError(f"{name}={value!r}: expected {expected}True or False")
            object.__setattr__(self, name, bool(value))

    def _check_progress(self) -> None:
        """Convert flags of NumPy in `progress` to bool; TypeError for what is none."""
        value: Any = self.progress  # type: ignore[attr-defined]
        if not callable(value):
            if type(value).__name__ not in ("bool", "bool_"):
                raise TypeError(f"progress={value!r}: expected True, False or a function")
            object.__setattr__(self, "progress", bool(value))

    def _check_mapping(self, name: str, example: str, other: str = "") -> None:
        Selection.check_mapping(name, getattr(self, name), example, other)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, init=False)
class RecordOptions(Options):
    """Keywords of calls that read or write files of records."""

    compression: Compression | None = "infer"
    threads: int | None = None
    progress: ProgressLike = False

    @property
    def thread_count(self) -> int:
        """The number of threads: `threads`, by default one for each processor."""
        return cpu_count() if self.threads is None else self.threads

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.compression, str | None):
            raise TypeError(f"compression={self.compression!r}: expected a name or None")
        self._check_integer("threads", 1, optional=True)
        if self.progress is not False:
            self._check_progress()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, init=False)
class TransferOptions(Options):
    """Options of calls that read files and write others; a keyword of storage holds for both by default."""

    source_storage: StorageOptions | None = None  # of a dataset that is read

    internal: ClassVar[frozenset[str]] = frozenset({"source_storage"})

    @property
    def storage(self) -> StorageOptions:
        """How paths are accessed."""
        return super().storage._replace(of_both=True)

    @property
    def source(self) -> StorageOptions:
        """The storage of the files that are read."""
        return self.storage if self.source_storage is None else self.source_storage

    @property
    def target(self) -> StorageOptions:
        """The storage of the files that are written."""
        return self.storage


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Raise ValueError for the value of a keyword that is not among the choices; a mode of ``open`` gets a hint."""
    if value in choices:
        return
    names = [choice for choice in choices if choice is not None]
    if name == "mode" and isinstance(value, str) and (meant := _MODES_OF_FILES.get(value)) in names:
        advice = f"did you mean mode={meant!r}? Valid modes: {', '.join(map(str, names))}"
        raise ValueError(f"mode={value!r}: {advice}")
    none = "None, " if None in choices else ""
    reason = f"{name}={value!r}: expected one of {none}{', '.join(map(repr, names))}"
    if name == "mode" and value in ("append", *_MODES_OF_FILES):
        from tfrecord_io.base.options.other_names import NO_APPEND

        reason = f"{reason}; {NO_APPEND}"
    raise ValueError(reason)
