"""What plugins of this package and other packages add to it, by group.

A point is a name and where its object is. Another package declares its points in its ``pyproject.toml``; a public name
may be one of the package, or of its module ``formats``::

    [project.entry-points."tfrecord_io.names"]
    "formats.read_lance" = "its_package:read_lance"

`OWN` has those of the plugins in ``tfrecord_io/plugins/``, as ``pyproject.toml`` has. They are read here: a source
tree that is only on the path has no entry points, and a plugin that was removed is still known by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from operator import attrgetter
from typing import Any, NamedTuple

from tfrecord_io.errors import MissingDependencyError

PACKAGE = "tfrecord_io"
ADAPTERS, COMMANDS, FORMATS, FRAMES, NAMES, SCHEMAS = (
    f"{PACKAGE}.{kind}" for kind in ("adapters", "commands", "formats", "frames", "names", "schemas")
)

_ENGINES, _REPORT, _TENSORFLOW, _VISION = (
    f"{PACKAGE}.plugins.{plugin}" for plugin in ("engines", "report", "tensorflow", "vision")
)
OWN: dict[str, dict[str, str]] = {
    ADAPTERS: {
        "dask": f"{_ENGINES}.engine_rows:DASK",
        "daft": f"{_ENGINES}.engine_rows:DAFT",
        "ray": f"{_ENGINES}.engine_rows:RAY",
        "spark": f"{_ENGINES}.engine_rows:SPARK",
        "earth_engine": f"{_VISION}.vision_rows:EARTH_ENGINE",
    },
    COMMANDS: {"report": f"{_REPORT}.report_command:report"},
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
        "feature_description": f"{_TENSORFLOW}.feature_description",
        "tfds": f"{_TENSORFLOW}.tfds",
        "tfx": f"{_TENSORFLOW}.tfx",
    },
}


class Point(NamedTuple):
    """What a package adds to a group.

    Attributes
    ----------
    name : str
    value : str
        Where it is: ``module:name``, or a module.
    package : str
        The name of the distribution.
    """

    name: str
    value: str
    package: str = PACKAGE

    def load(self) -> Any:
        """The object; its module is imported.

        Raises
        ------
        MissingDependencyError
            It is of a plugin of this package that was removed from the installation.
        """
        try:
            module, _, names = self.value.partition("[")[0].strip().partition(":")  # without extras
            found: Any = import_module(module)
            return attrgetter(names)(found) if names else found
        except ModuleNotFoundError as error:
            plugin = ".".join(self.value.split(".")[:3])
            if self.package != PACKAGE or not (error.name or "").startswith(plugin):
                raise
            reason = f"{self.name!r} is of {plugin}, which this installation does not have"
            raise MissingDependencyError(reason, advice=f"install {PACKAGE} again") from error


def own_points(group: str) -> list[Point]:
    """Those of the plugins of this package."""
    return [Point(name, value) for name, value in OWN.get(group, {}).items()]


def other_points(group: str) -> list[Point]:
    """Those of other packages, in the order of their names."""
    from importlib.metadata import entry_points  # takes longer to import than to use

    found = [Point(p.name, p.value, "" if p.dist is None else p.dist.name) for p in entry_points(group=group)]
    return sorted((p for p in found if p.package.replace("-", "_") != PACKAGE), key=lambda p: (p.package, p.name))


def load_point(group: str, name: str) -> Any:
    """What a point of this package has.

    Raises
    ------
    MissingDependencyError
        Its plugin was removed.
    """
    return Point(name, OWN[group][name]).load()


def find_point(group: str, name: str) -> Point | None:
    """The first of this name; other packages are asked where this one has none."""

    def of_name(points: Iterable[Point]) -> Point | None:
        return next((point for point in points if point.name == name), None)

    return of_name(own_points(group)) or of_name(other_points(group))
