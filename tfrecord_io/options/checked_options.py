"""What options of all calls share: construction from keywords, storage, threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self, get_args

from tfrecord_io.options.keyword_names import keywords_of, unknown_keyword
from tfrecord_io.typing import Compression, OnErrorName, Overwrite, ProgressLike

_WITHOUT_SAMPLE = frozenset({"sample", "on_new"})  # valid in every read: one that returns all rows infers from them all
INT64_MAX = 2**63 - 1  # the kernel counts records and bytes in 64 bits


def cpu_count() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


class Options:
    """Construction from keywords, and the checks that several classes share."""

    internal: ClassVar[frozenset[str]] = frozenset()  # fields that are not keywords
    compression: Compression | None
    threads: int | None
    progress: ProgressLike
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
                    raise unknown_keyword(name, valid, call, keywords[name])
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
        check_integer("threads", self.threads, 1, optional=True)
        object.__setattr__(self, "progress", check_progress(self.progress))

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


def check_integer(name: str, value: object, least: int, most: int | None = None, *, optional: bool = False) -> None:
    """Raise TypeError or ValueError for what is no integer, or out of range."""
    if optional and value is None:
        return
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}={value!r}: expected an integer")
    if value.__index__() < least:
        raise ValueError(f"{name}={value!r}: expected at least {least}")
    if most is not None and value.__index__() > most:
        raise ValueError(f"{name}={value!r}: expected at most {most}")


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    if value not in choices:
        raise ValueError(f"{name}={value!r}: expected one of {', '.join(map(repr, choices))}")


def check_on_error(value: object, names: Sequence[str] = get_args(OnErrorName)) -> None:
    """Raise ValueError for an `on_error` that does not exist."""
    if value not in names and not (callable(value) and "skip" in names):
        others = " or a function that takes the error" if "skip" in names else ""
        raise ValueError(f"on_error={value!r}: expected one of {', '.join(map(repr, names))}{others}")


def raises(on_error: object) -> bool:
    """Whether a read ends with an error where data is damaged."""
    return on_error == "raise"


def stops(on_error: object) -> bool:
    """Whether a read ends with a warning where data is damaged."""
    return on_error == "stop"


def leaves_out(on_error: object) -> bool:
    """Whether a read goes on behind damaged data: always, or if a callable accepts the error."""
    return not raises(on_error) and not stops(on_error)


def check_overwrite(value: object) -> None:
    """Raise TypeError for an `overwrite` that does not exist."""
    if value not in (None, True, False, *get_args(Overwrite)):
        raise TypeError(f"overwrite={value!r}: expected None, True, False or 'in_place'")


def check_progress(value: object) -> ProgressLike:
    """Return a `progress`, flags of NumPy as bool; TypeError for what is none."""
    if callable(value):
        return value
    if type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"progress={value!r}: expected True, False or a function")
    return bool(value)


def check_ratio(value: object) -> None:
    """Raise TypeError or ValueError for a `max_decompression_ratio` that is none."""
    if isinstance(value, bool) or not isinstance(value, Real | None):
        raise TypeError(f"max_decompression_ratio={value!r}: expected a number or None")
    if value is not None and not float(value) >= 1:
        raise ValueError(f"max_decompression_ratio={value!r}: expected at least 1")
