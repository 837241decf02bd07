"""Tables of what the package can be extended by: a row has all facts of one thing, and other packages may add rows.

Another package adds a row by an entry point of the registry's group, which loads to the row::

    [project.entry-points."tfrecord_io.compressions"]
    bzip2 = "its_package:ROW"

Entry points are looked up where the rows of this package have no answer, and where all names are listed: programs that
use what this package has do not wait for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from threading import Lock
from typing import Any, Generic, Protocol, TypeGuard, TypeVar

from tfrecord_io.errors import printable, warn

# Of TFRecord files: no row has them, so that the names of such files never ask for those of other packages.
RECORD_SUFFIXES = (".tfrecord", ".tfrecords", ".tfrec", ".tf_record", ".record", ".records", "_tfrecord")
_SUFFIX = re.compile(r"\.[a-z_]\w*")  # not ".tfrecord-00000-of-00008"


class Row(Protocol):
    """What a registry needs to know of a row."""

    @property
    def name(self) -> str: ...

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names, in lower case."""
        ...

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Of file names, in lower case, with their dot."""
        ...


R = TypeVar("R", bound=Row)


class Registry(Generic[R]):
    """Rows of one class, by name, alias and suffix; iterates over those of this package, then those of others.

    Parameters
    ----------
    kind : str
        What a row is, for messages: "compression".
    row_class : type
        What a row of another package has to be an instance of.
    own : tuple of rows
        Those of this package.
    group : str
        Of the entry points: "tfrecord_io.compressions".

    Examples
    --------
    >>> from types import SimpleNamespace as Shape
    >>> round = Shape(name="circle", aliases=("round",), suffixes=(".o",))
    >>> shapes = Registry("shape", Shape, (round,), "tfrecord_io.shapes")
    >>> shapes.names(), shapes["ROUND"] is round, shapes.of_path("a/b.O") is round, shapes.without_suffix("b.o")
    (('circle',), True, True, 'b')
    >>> shapes["square"]
    Traceback (most recent call last):
    ValueError: unknown shape 'square'; expected 'circle'
    """

    def __init__(self, kind: str, row_class: type[Any], own: tuple[R, ...], group: str) -> None:
        self.kind, self.own, self.group = kind, own, group
        self._row_class = row_class
        self._lock = Lock()
        self._loaded: tuple[R, ...] | None = None
        self._by_name: dict[str, R] = {}
        self._by_suffix: dict[str, R] = {}
        for row in own:
            if (taken := self._add(row)) is not None:
                raise ValueError(f"two rows have {taken!r}")

    def __iter__(self) -> Iterator[R]:
        yield from self.own
        yield from self._others

    def get(self, name: str) -> R | None:
        """The row of this name or alias, in any case; None if there is none."""
        name = name.lower()
        row = self._by_name.get(name)
        return self._by_name.get(name) if row is None and self._others else row

    def __getitem__(self, name: str) -> R:
        """As `get`; ValueError, with the names, if there is none."""
        if (row := self.get(name)) is None:
            raise ValueError(f"unknown {self.kind} {name!r}; expected {', '.join(map(repr, self.names()))}")
        return row

    def has(self, name: object) -> TypeGuard[str]:
        """Whether it is the name of a row: not an alias, and in no other case."""
        row = self.get(name) if isinstance(name, str) else None
        return row is not None and row.name == name

    def of_path(self, path: str) -> R | None:
        """The row whose suffix a path has, in any case; None if it has none."""
        return self._of_suffix(os.path.splitext(path)[1])

    def without_suffix(self, path: str) -> str:
        """The path without the suffix of a row; the path if it has none."""
        stem, dot, suffix = path.rpartition(".")
        return path if self._of_suffix(dot + suffix) is None else stem

    def names(self) -> tuple[str, ...]:
        """All names, without aliases."""
        return tuple(row.name for row in self)

    def suffixes(self) -> tuple[str, ...]:
        """All suffixes of all rows."""
        return tuple(suffix for row in self for suffix in row.suffixes)

    def _of_suffix(self, suffix: str) -> R | None:
        suffix = suffix.lower()
        row = self._by_suffix.get(suffix)
        if row is not None or suffix in RECORD_SUFFIXES or not _SUFFIX.fullmatch(suffix):
            return row
        return self._by_suffix.get(suffix) if self._others else None

    def _add(self, row: R) -> str | None:
        """Add a row; if one of its names or suffixes is taken, nothing is added, and that is returned."""
        names = (row.name.lower(), *row.aliases)
        for taken, table in ((names, self._by_name), (row.suffixes, self._by_suffix)):
            if (double := next((each for each in taken if each in table), None)) is not None:
                return double
        self._by_name.update(dict.fromkeys(names, row))
        self._by_suffix.update(dict.fromkeys(row.suffixes, row))
        return None

    @property
    def _others(self) -> tuple[R, ...]:
        """The rows of other packages."""
        left_out: list[str] = []
        with self._lock:  # two threads would each find the rows of the other taken
            if self._loaded is None:
                self._loaded, left_out = self._load()
        for text in left_out:
            warn(text, RuntimeWarning)
        return self._loaded

    def _load(self) -> tuple[tuple[R, ...], list[str]]:
        """The rows of other packages, which are added, and of those that are left out what to warn of."""
        from importlib.metadata import entry_points  # takes longer to import than to use

        rows, left_out = [], []
        for point in sorted(entry_points(group=self.group), key=lambda point: (_distribution(point), point.name)):
            row, reason = self._row(point)
            if reason is None:
                rows.append(row)
            else:
                what = f"the {self.kind} {point.name!r} of the package {_distribution(point)!r}"
                left_out.append(f"{what} is left out: {reason}")
        return tuple(rows), left_out

    def _row(self, point: Any) -> tuple[Any, str | None]:
        """The row of an entry point, which is added; or the reason why it is not."""
        try:
            row = point.load()
        except Exception as error:  # of another package, which may raise anything: this one goes on without it
            return None, f"{point.value!r} cannot be loaded ({type(error).__name__}: {printable(error)})"
        if not isinstance(row, self._row_class):
            return None, f"{point.value!r} is a {type(row).__name__}, not a {self._row_class.__name__}"
        taken = self._add(row)
        return row, None if taken is None else f"{taken!r} is taken"


def _distribution(point: Any) -> str:
    return "" if point.dist is None else str(point.dist.name)


def listed(word: str, *names: str) -> str:
    """Names as in a sentence.

    >>> listed("and", "circle", "square", "heart")
    'circle, square and heart'
    """
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
