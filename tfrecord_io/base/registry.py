"""Tables of what the package can be extended by: a row has all facts of one thing, and other packages may add rows.

Another package adds a row by an entry point of the registry's group, which loads to the row::

    [project.entry-points."tfrecord_io.compressions"]
    bzip2 = "its_package:ROW"

The plugins of this package are in the table `OWN`, which works in a source tree, too. Their rows are loaded where those
of the core have no answer, then those of other packages, and all where names are listed: programs that use the core
alone do not wait for them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from operator import attrgetter
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeGuard, TypeVar

if TYPE_CHECKING:
    from tfrecord_io.errors import MissingDependencyError

PACKAGE = "tfrecord_io"
ADAPTERS, COMMANDS, FORMATS, FRAMES, NAMES, SCHEMAS = (
    f"{PACKAGE}.{kind}" for kind in ("adapters", "commands", "formats", "frames", "names", "schemas")
)

_BROWSE, _ENGINES, _REPORT, _TENSORFLOW, _VISION = (
    f"{PACKAGE}.plugins.{plugin}" for plugin in ("browse", "engines", "report", "tensorflow", "vision")
)
OWN: dict[str, dict[str, str]] = {
    ADAPTERS: {
        "dask": f"{_ENGINES}.engine_rows:DASK",
        "daft": f"{_ENGINES}.engine_rows:DAFT",
        "beam": f"{_ENGINES}.engine_rows:BEAM",
        "ray": f"{_ENGINES}.engine_rows:RAY",
        "spark": f"{_ENGINES}.engine_rows:SPARK",
        "earth_engine": f"{_VISION}.vision_rows:EARTH_ENGINE",
    },
    COMMANDS: {"browse": f"{_BROWSE}.browse_command:browse", "report": f"{_REPORT}.report_command:report"},
    FORMATS: {
        "tar": f"{_VISION}.vision_rows:TAR",
        "coco": f"{_VISION}.vision_rows:COCO",
        "voc": f"{_VISION}.vision_rows:VOC",
        "yolo": f"{_VISION}.vision_rows:YOLO",
        "lerobot": f"{_VISION}.vision_rows:LEROBOT",
        "images": f"{_VISION}.vision_rows:IMAGES",
        "files": f"{_VISION}.vision_rows:FILES",
        "elwc": f"{_TENSORFLOW}.tensorflow_rows:ELWC",
        "array_record": f"{_TENSORFLOW}.tensorflow_rows:ARRAY_RECORD",
        "tfds": f"{_TENSORFLOW}.tensorflow_rows:TFDS",
    },
    FRAMES: {  # by package and class: what writes them
        "dask.DataFrame": f"{_ENGINES}.dask:write_frame",
        "daft.DataFrame": f"{_ENGINES}.daft:write_frame",
        "ray.Dataset": f"{_ENGINES}.ray:write_frame",
    },
    NAMES: {
        "register_spark": f"{_ENGINES}.spark:register_spark",
        "beam.ReadTable": f"{_ENGINES}.beam:ReadTable",
        "beam.ReadAllTables": f"{_ENGINES}.beam:ReadAllTables",
        "beam.WriteTable": f"{_ENGINES}.beam:WriteTable",
        "browse": f"{_BROWSE}.browse_server:browse",
        "typing.BrowseServer": f"{_BROWSE}.browse_server:BrowseServer",
        "report": f"{_REPORT}.dataset_report:report",
        "typing.DatasetReport": f"{_REPORT}.dataset_report:DatasetReport",
        "formats.open_coco": f"{_VISION}.coco:open_coco",
        "formats.open_voc": f"{_VISION}.pascal_voc:open_voc",
        "formats.open_yolo": f"{_VISION}.yolo:open_yolo",
        "formats.open_file_folder": f"{_VISION}.from_folder:open_file_folder",
        "formats.open_image_folder": f"{_VISION}.from_folder:open_image_folder",
        "formats.write_file_folder": f"{_VISION}.to_folder:write_file_folder",
        "formats.write_image_folder": f"{_VISION}.to_folder:write_image_folder",
        "formats.read_earth_engine": f"{_VISION}.earth_engine:read_earth_engine",
        "formats.write_earth_engine": f"{_VISION}.earth_engine:write_earth_engine",
        "formats.open_elwc": f"{_TENSORFLOW}.from_elwc:open_elwc",
        "formats.write_elwc": f"{_TENSORFLOW}.to_elwc:write_elwc",
        "formats.read_events": f"{_TENSORFLOW}.event_files:read_events",
        "formats.write_tfds": f"{_TENSORFLOW}.write_tfds:write_tfds",
    },
    SCHEMAS: {
        "saved": f"{PACKAGE}.read.saving_schema",
        "feature_description": f"{_TENSORFLOW}.feature_description",
        "tfds": f"{_TENSORFLOW}.tfds",
        "tfx": f"{_TENSORFLOW}.tfx",
        "tfx_validation": f"{_TENSORFLOW}.tfx_validation",
    },
}


class Point(NamedTuple):
    """An entry that a package adds to a group."""

    name: str
    value: str  # where it is: ``module:name``, or a module
    package: str = PACKAGE  # the name of the distribution

    def load(self) -> Any:
        """The object; its module is imported.

        MissingDependencyError if it is of a plugin of this package that was removed from the installation.
        """
        from tfrecord_io.errors import MissingDependencyError  # not at the top: it imports this room

        try:
            module, _, names = self.value.partition("[")[0].strip().partition(":")  # without extras
            target: Any = import_module(module)
            return attrgetter(names)(target) if names else target
        except ModuleNotFoundError as error:
            plugin = ".".join(self.value.split(".")[:3])
            if self.package != PACKAGE or not (error.name or "").startswith(plugin):
                raise
            reason = f"{self.name!r} is of {plugin}, which this installation does not have"
            raise MissingDependencyError(reason, hint=f"install {PACKAGE} again") from error

    @staticmethod
    def own_points(group: str) -> list[Point]:
        """Points of the plugins of this package."""
        return [Point(name, value) for name, value in OWN.get(group, {}).items()]

    @staticmethod
    def others(group: str) -> list[Point]:
        """Points of other packages, in the order of their names. All packages are asked again once one is installed."""
        return [*_other_points(group, tuple((path, _modification_time(path)) for path in sys.path))]

    @staticmethod
    def load_own(group: str, name: str) -> Any:
        """Load the object of a point of this package; MissingDependencyError if its plugin was removed."""
        return Point(name, OWN[group][name]).load()

    @staticmethod
    def find(group: str, name: str) -> Point | None:
        """The first of this name; other packages are asked where this one has none."""
        return next((p for points in (Point.own_points, Point.others) for p in points(group) if p.name == name), None)


def _modification_time(folder: str) -> int | None:
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return None


@lru_cache(maxsize=64)
def _other_points(group: str, _folders: tuple[tuple[str, int | None], ...]) -> list[Point]:
    from importlib.metadata import entry_points  # takes longer to import than to use

    points = [Point(p.name, p.value, "" if p.dist is None else p.dist.name) for p in entry_points(group=group)]
    return sorted((p for p in points if p.package.replace("-", "_") != PACKAGE), key=lambda p: (p.package, p.name))


_SUFFIX = re.compile(r"\.[a-z_]\w*")  # not ".tfrecord-00000-of-00008"


class Registered(Protocol):
    """The fact that a registry needs of each row.

    Rows may have `aliases`, other names in lower case, and `suffixes` of file names, in lower case with their dot.
    """

    @property
    def name(self) -> str: ...


R = TypeVar("R", bound=Registered)


class Registry(Generic[R]):
    """Rows of one class, by name, alias and suffix; iterates over those of this package, then those of others.

    The name of a row whose plugin was removed is a `MissingDependencyError`. `kind` is what a row is, for messages, and
    `row_class` what one of another package has to be an instance of. `core` are the rows of this package, without those
    of its plugins; or what returns them, called when a row is first looked up. `group` is that of the entry points.

    >>> from types import SimpleNamespace as Shape
    >>> round = Shape(name="circle", aliases=("round",), suffixes=(".o",))
    >>> shapes = Registry("shape", Shape, (round,), "tfrecord_io.shapes")
    >>> shapes.names(), shapes["ROUND"] is round, shapes.of_path("a/b.O") is round, shapes.without_suffix("b.o")
    (('circle',), True, True, 'b')
    >>> shapes["square"]
    Traceback (most recent call last):
    ValueError: unknown shape 'square'; expected 'circle'
    """

    # Suffixes of TFRecord files: no row has them, so names of such files never load the rows of other packages.
    RECORD_SUFFIXES: ClassVar = (
        ".tfrecord",
        ".tfrecords",
        ".tfrec",
        ".tf_record",
        ".tfr",
        ".record",
        ".records",
        "_tfrecord",
    )
    # Of files that may be TFRecord: written where a caller names one, or read by a shard number. In a directory,
    # content decides, as MXNet has other files of records, and a "config.example" is text.
    POSSIBLE_RECORD_SUFFIXES: ClassVar = (".rec", ".example")
    WRITTEN_SUFFIXES: ClassVar = (*RECORD_SUFFIXES, *POSSIBLE_RECORD_SUFFIXES)

    def __init__(
        self, kind: str, row_class: type[Any], core: tuple[R, ...] | Callable[[], tuple[R, ...]], group: str
    ) -> None:
        self.kind, self.group = kind, group
        self._row_class = row_class
        self._lock = RLock()
        self._core: tuple[R, ...] | None = None
        self._make_core = core if callable(core) else lambda: core
        self._loaded: dict[Callable[[str], list[Point]], tuple[R, ...]] = {}
        self._removed: dict[str, Point] = {}  # those of plugins that are not there
        self._by_name: dict[str, R] = {}
        self._by_suffix: dict[str, R] = {}
        if not callable(core):
            self._add_core()

    @property
    def core(self) -> tuple[R, ...]:
        """Rows of the core of this package, without the rows of its plugins."""
        return self._add_core() if self._core is None else self._core

    def _add_core(self) -> tuple[R, ...]:
        with self._lock:
            if self._core is None:
                rows = self._make_core()
                for row in rows:
                    if (duplicate := self._add(row)) is not None:
                        raise ValueError(f"two rows have {duplicate!r}")
                self._core = rows
            return self._core

    def __iter__(self) -> Iterator[R]:
        yield from self.core
        for points in (Point.own_points, Point.others):
            yield from self._load_rows(points)

    @property
    def own(self) -> tuple[R, ...]:
        """Rows of this package: of the core and of its plugins."""
        return (*self.core, *self._load_rows(Point.own_points))

    def get(self, name: str) -> R | None:
        """The row of this name or alias, in any case; None if it is unknown."""
        return self._find(self._by_name, name.lower())

    def __getitem__(self, name: str) -> R:
        """As `get`; ValueError, with the names, if it is unknown."""
        if (row := self.get(name)) is None:
            raise ValueError(f"unknown {self.kind} {name!r}; expected {', '.join(map(repr, self.names()))}")
        return row

    def has(self, name: object) -> TypeGuard[str]:
        """True if `name` is the name of a row: not an alias, and in no other case."""
        row = self.get(name) if isinstance(name, str) else None
        return row is not None and row.name == name

    def of_path(self, path: str) -> R | None:
        """The row whose suffix a path has, in any case; None if it has none."""
        return self._find_suffix(os.path.splitext(path)[1])

    def without_suffix(self, path: str) -> str:
        """The path without the suffix of a row; the path if it has none."""
        stem, dot, suffix = path.rpartition(".")
        return path if self._find_suffix(dot + suffix) is None else stem

    def names(self) -> tuple[str, ...]:
        """All names, without aliases."""
        return tuple(row.name for row in self)

    def suffixes(self) -> tuple[str, ...]:
        """All suffixes of all rows."""
        return tuple(suffix for row in self for suffix in _suffixes(row))

    def _find_suffix(self, suffix: str) -> R | None:
        suffix = suffix.lower()
        if suffix in self.RECORD_SUFFIXES or not _SUFFIX.fullmatch(suffix):
            return self._by_suffix.get(suffix)
        return self._find(self._by_suffix, suffix)

    def _find(self, table: dict[str, R], key: str) -> R | None:
        """The row of a name or a suffix."""
        self._add_core()
        for points in (Point.own_points, Point.others):
            if (row := table.get(key)) is not None:
                return row
            self._load_rows(points)
        row, removed = table.get(key), self._removed.get(key.removeprefix("."))
        return removed.load() if row is None and removed is not None else row

    def _add(self, row: R) -> str | None:
        """Add a row; if one of its names or suffixes is taken, nothing is added, and that is returned."""
        names, suffixes = (row.name.lower(), *getattr(row, "aliases", ())), _suffixes(row)
        for keys, table in ((names, self._by_name), (suffixes, self._by_suffix)):
            if (double := next((key for key in keys if key in table), None)) is not None:
                return double
        self._by_name.update(dict.fromkeys(names, row))
        self._by_suffix.update(dict.fromkeys(suffixes, row))
        return None

    def _load_rows(self, points: Callable[[str], list[Point]]) -> tuple[R, ...]:
        """The rows of plugins, or of other packages, which are loaded once.

        No row can have a name or suffix of those before it: the core is added first, and those of other packages last.
        """
        left_out: list[str] = []
        with self._lock:  # two threads would each find the rows of the other taken
            if points not in self._loaded:
                self._loaded[points], left_out = self._load(points(self.group))
        if left_out:
            from tfrecord_io.base.messages.caller_warnings import warn  # every program imports this module

            for text in left_out:
                warn(text, RuntimeWarning)
        return self._loaded[points]

    def _load(self, points: list[Point]) -> tuple[tuple[R, ...], list[str]]:
        """Add the rows of points; return the rows, and a warning for each point left out."""
        from tfrecord_io.errors import MissingDependencyError  # not at the top: it imports this room

        rows, left_out = [], []
        for point in points:
            try:
                row, reason = self._row(point)
            except MissingDependencyError:  # of a plugin that is not there
                self._removed[point.name] = point
                continue
            if reason is None:
                rows.append(row)
            elif point.package == PACKAGE:
                raise ValueError(f"{point.value!r}: {reason}")
            else:
                what = f"the {self.kind} {point.name!r} of the package {point.package!r}"
                left_out.append(f"{what} is left out: {reason}")
        return tuple(rows), left_out

    def _row(self, point: Point) -> tuple[Any, str | None]:
        """The row of a point, which is added; or the reason why it is not."""
        try:
            row = point.load()
        except Exception as error:  # of another package, which may raise anything: this one goes on without it
            if point.package == PACKAGE:
                raise
            from tfrecord_io.base.messages.display import printable

            return None, f"{point.value!r} cannot be loaded ({type(error).__name__}: {printable(error)})"
        if not isinstance(row, self._row_class):
            return None, f"{point.value!r} is a {type(row).__name__}, not a {self._row_class.__name__}"
        duplicate = self._add(row)
        return row, None if duplicate is None else f"{duplicate!r} is taken"


def _suffixes(row: Registered) -> tuple[str, ...]:
    suffixes: tuple[str, ...] = getattr(row, "suffixes", ())
    return suffixes


def listed(word: str, *names: str) -> str:
    """Names as in a sentence.

    >>> listed("and", "circle", "square", "heart")
    'circle, square and heart'
    """
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


@contextmanager
def needs(
    extra: str,
    what: str = "",
    *,
    requirement: str = "",
    hint: str = "",
    hint_cli: str = "",
    path: str | None = None,
    feature: str | None = None,
) -> Iterator[None]:
    """Name the extra that installs a library in the ImportError of the block.

    `what` needs the library, if that is not the caller as a whole; `requirement` is installed instead of an extra of
    this package. The hints are other ways out, besides the installation.

    >>> with needs("polars"):
    ...     import absent_module
    Traceback (most recent call last):
    tfrecord_io.errors.MissingDependencyError: absent_module cannot be imported (No module named 'absent_module'); ...
    """
    from tfrecord_io.errors import MissingDependencyError  # not at the top: it imports this room

    try:
        yield
    except MissingDependencyError:  # of what is imported
        raise
    except ImportError as error:
        raise missing_error(
            error, extra, what, requirement=requirement, hint=hint, hint_cli=hint_cli, path=path, feature=feature
        ) from error


def missing_error(
    error: ImportError,
    extra: str,
    what: str = "",
    *,
    requirement: str = "",
    hint: str = "",
    hint_cli: str = "",
    path: str | None = None,
    feature: str | None = None,
) -> MissingDependencyError:
    """The error of `needs` for an import that has failed."""
    from tfrecord_io.errors import MissingDependencyError  # not at the top: it imports this room

    name = error.name or getattr(error.__cause__, "name", None) or requirement or extra
    library = name.partition(".")[0]
    reason = f"{what} needs {library}, which cannot be imported" if what else f"{library} cannot be imported"
    of_extra = f"[{extra.replace('_', '-')}]"
    install = f"pip install '{requirement or PACKAGE + of_extra}'"
    if not requirement:
        install += f", in a clone '.{of_extra}'"
    hints = [f"{install}; {other}" if other else install for other in (hint, hint_cli or hint)]
    return MissingDependencyError(f"{reason} ({error})", path=path, feature=feature, hint=hints[0], hint_cli=hints[1])
