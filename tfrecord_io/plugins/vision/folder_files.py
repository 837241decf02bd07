"""The files of a folder of images: the table next to them, the order in which they are read, and those left out.

Tests: tests/plugins/vision/test_from_folder.py and tests/plugins/vision/test_annotated_rows.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tfrecord_io.base import OnDamage
from tfrecord_io.errors import DamagedDataWarning, TFRecordError
from tfrecord_io.kit import Options, printable, warn
from tfrecord_io.typing import OnError, OnFileError

TABLE_NAME = "metadata.csv"  # of the table that is written next to the files of a folder


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, init=False)
class FolderOptions(Options):
    """Keywords of calls that make a row of each file of a folder."""

    threads: int | None = None
    shuffle_seed: int | None = None
    on_error: OnFileError = "raise"

    @property
    def damage(self) -> OnDamage:
        """The treatment of damaged files."""
        return OnDamage.of(self.on_error)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_integer("threads", 1, optional=True)
        OnDamage.check(self.on_error, OnDamage.is_of_files, advice="")
        self._check_integer("shuffle_seed", 0, optional=True)


class Named(Protocol):
    """A file, or an object with the name of a file."""

    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


def shuffle_files(files: Sequence[N], seed: int) -> list[N]:
    """The files in an order that depends on their names and the seed alone."""
    return sorted(
        files, key=lambda file: hashlib.sha256(f"{seed}/{file.name}".encode("utf-8", "surrogateescape")).digest()
    )


@dataclass(slots=True)
class LeftOut:
    """Number of images, files or annotations left out, with the reason for the first.

    >>> left_out = LeftOut("images", 1200)
    >>> left_out.add("'a.png' is damaged")
    >>> str(left_out)
    "1 of 1,200 images left out, the first: 'a.png' is damaged"
    """

    kind: str
    total: int
    count: int = 0
    first: str = ""

    def add(self, reason: object, count: int = 1) -> None:
        self.first = self.first or str(reason)
        self.count += count

    def add_or_raise(self, error: TFRecordError, on_error: OnError) -> None:
        """Leave out what an error is about, or raise it: as `on_error` says."""
        if OnDamage.of(on_error).is_strict:
            if error.hint is None:
                error.set_hint('on_error="skip" leaves it out', "--on-error skip leaves it out")
            raise error
        self.add(error)

    def __str__(self) -> str:
        return f"{self.count:,} of {self.total:,} {self.kind} left out, the first: {self.first}"

    def warn(self, path: str) -> None:
        """Warn, if anything is left out."""
        if self.count:
            warn(f"{printable(path)}: {self}", DamagedDataWarning)
