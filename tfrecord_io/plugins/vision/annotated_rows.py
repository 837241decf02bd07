"""Records with the features of TensorFlow's Object Detection API, as images with objects: what targets are made of."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.image_header import image_header
from tfrecord_io.errors import DecodeError, EncodeError, FeatureNotFoundError, printable, warn
from tfrecord_io.file_formats.files_below import LeftOut, check_class_names
from tfrecord_io.options.write import ExportOptions
from tfrecord_io.plugins.vision.annotated_images import OBJECT
from tfrecord_io.plugins.vision.to_folder import file_suffix, row_error, schema_to_choose_from
from tfrecord_io.read.open_scan import open_path
from tfrecord_io.read.reader import Reader
from tfrecord_io.schema.column_selection import Projection
from tfrecord_io.storage.paths.safe_names import refused

_BOX = ("bbox/xmin", "bbox/xmax", "bbox/ymin", "bbox/ymax")
_LABEL, _CLASS = "class/label", "class/text"
_NEVER_LOST = {*_BOX, _LABEL, _CLASS, "area", "keypoint/num"}  # the last two can be computed
_POINTS = {
    "keypoint/x": pa.float32(),
    "keypoint/y": pa.float32(),
    "keypoint/visibility": pa.int64(),
    "keypoint/text": pa.string(),
}
_OBJECTS = {
    **dict.fromkeys(_BOX, pa.float32()),
    _LABEL: pa.int64(),
    _CLASS: pa.string(),
    **dict.fromkeys(("is_crowd", "difficult", "truncated", "occluded", "keypoint/num", "annotation_id"), pa.int64()),
    **dict.fromkeys(("area", "score"), pa.float32()),
    **dict.fromkeys(("view", "segmentation", "attributes", "part", "class/supercategory"), pa.string()),
    "mask": pa.binary(),
    **_POINTS,
}
_ENCODED, _NAME, _ID, _HEIGHT, _WIDTH = (
    f"image/{name}" for name in ("encoded", "filename", "source_id", "height", "width")
)
_IMAGE = {_ENCODED: pa.binary(), _NAME: pa.string(), _ID: None, _HEIGHT: pa.int64(), _WIDTH: pa.int64()}
_DERIVED = {"image/format", "image/key/sha256"}  # of the image
NUMBERS = "columns='!image/filename' numbers the images"
NUMBERS_CLI = "--columns '!image/filename' numbers the images"
_NAMES = "class_names= (--class-names) gives the names of the labels 1, 2, …"
_NAMES_CLI = "--class-names (--class-names) gives the names of the labels 1, 2, …"


class KeyPoint(NamedTuple):
    x: float  # fractions
    y: float
    visibility: int
    name: str


@dataclass(slots=True)
class DetectedObject:
    """An object of an image."""

    number: int  # in its image
    values: Mapping[str, Any]  # by column below ``image/object``
    keypoints: Sequence[KeyPoint]
    xmin: float  # fractions
    xmax: float
    ymin: float
    ymax: float

    def get(self, name: str) -> Any:
        """A value, or None if the record has none."""
        return self.values.get(name)


@dataclass(slots=True)
class AnnotatedRow:
    """A record."""

    number: int
    name: str  # of the file of its image
    source_id: str | None
    height: int
    width: int
    states_size: bool  # else it is that of the stored pixels
    content: pa.Buffer | None  # of the file
    objects: list[DetectedObject]
    reader: Reader

    @property
    def text(self) -> str:
        """The record in a message."""
        return f"image '{printable(self.name, 80)}'"

    def error(self, reason: str, feature: str | None = None, advice: str | None = None) -> EncodeError:
        return row_error(self.reader, self.number, reason, feature, advice)

    def flag(self, each: DetectedObject, name: str) -> int:
        """A value that is 0 or 1, by default 0."""
        value = each.get(name) or 0
        if value not in (0, 1):
            feature = f"{OBJECT}{name}"
            advice = f"columns={f'!{feature}'!r} leaves the column out"
            raise self.error(f"the value of object {each.number} is {value}, expected 0 or 1", feature, advice)
        return int(value)


@dataclass(slots=True)
class AnnotatedRecords:
    """The records of files that annotated images are made of; an iterator, once."""

    source: Any
    options: ExportOptions  # with the columns, and their types
    names: ClassNames
    others: list[str]  # columns that say something else
    left_out: LeftOut = field(default_factory=lambda: LeftOut("objects", 0))
    count: int = 0  # of the records that have been read

    @classmethod
    def plan(
        cls, source: Any, options: ExportOptions, columns: Any, class_names: Sequence[str] | None
    ) -> AnnotatedRecords:
        """Find the columns.

        Raises
        ------
        FeatureNotFoundError
            The columns of images, boxes or classes are missing.
        """
        schema = schema_to_choose_from(source, options)
        chosen = schema.names
        if columns is not None:
            projection = Projection(columns)
            projection.check(schema.names)
            chosen = projection.order(schema.names)
        types = {**_IMAGE, **{f"{OBJECT}{name}": pa.list_(type_) for name, type_ in _OBJECTS.items()}}
        used = [name for name in types if name in chosen]
        for names in ([_ENCODED], *([f"{OBJECT}{name}"] for name in _BOX), [OBJECT + _LABEL, OBJECT + _CLASS]):
            if not set(names) & set(used):
                reason = f"no column '{names[-1]}', which annotated images have"
                raise FeatureNotFoundError(reason, feature=names[-1], hint=f"it has: {', '.join(schema.names)}")
        declared = {name: types[name] for name in used if types[name] is not None}
        overrides = {**declared, **(options.schema_overrides or {})} if options.schema is None else None
        options = replace(options, columns=tuple(used), schema_overrides=overrides)
        others = [name for name in chosen if name not in types and name not in _DERIVED]
        return cls(source, options, ClassNames(class_names), others)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.options.columns or ())

    def __iter__(self) -> Iterator[AnnotatedRow]:
        with open_path(self.source, self.options) as reader:
            for batch in reader:
                yield from self._rows(batch, reader)

    def classes(self) -> Iterator[tuple[int | None, str | None]]:
        """The labels and names of all objects, which are read before the images."""
        columns = [name for name in (OBJECT + _LABEL, OBJECT + _CLASS) if name in self.columns]
        overrides = {name: (self.options.schema_overrides or {}).get(name) for name in columns}
        overrides = {name: type_ for name, type_ in overrides.items() if type_ is not None}
        options = replace(
            self.options, columns=tuple(columns), schema_overrides=overrides if self.options.schema is None else None
        )
        with open_path(self.source, options) as reader:
            for batch in reader:
                of_labels, of_names = (
                    batch.column(name).flatten().to_pylist() if name in columns else ()
                    for name in (OBJECT + _LABEL, OBJECT + _CLASS)
                )
                yield from itertools.zip_longest(of_labels, of_names)

    def warn(self, title: str, held: frozenset[str]) -> None:
        """Warn of what the files of a format do not hold."""
        possible = _OBJECTS.keys() - held - _NEVER_LOST
        lost = self.others + [name for name in self.columns if name.removeprefix(OBJECT) in possible]
        if lost:
            warn(f"{title} files do not hold these columns, left out: {printable(', '.join(lost), 400)}", UserWarning)
        self.left_out.warn(title)

    def error(self, reason: str, advice: str) -> EncodeError:
        return EncodeError(reason, path=printable(self.source), hint=advice)

    def _rows(self, batch: pa.RecordBatch, reader: Reader) -> Iterator[AnnotatedRow]:
        plain = {name: batch.column(name).to_pylist() for name in batch.schema.names if name != _ENCODED}
        for at, scalar in enumerate(batch.column(_ENCODED)):
            values = {name: column[at] for name, column in plain.items()}
            row, content = self.count, scalar.as_buffer()
            name = values.get(_NAME)
            if name is None:
                if content is None:
                    raise row_error(reader, row, "there is neither an image nor the name of one", _ENCODED)
                name = f"{row:08d}{file_suffix(content)}"
            if (wrong := refused(name)) is not None:
                text = f"the name '{printable(name)}' of a file cannot be used: {wrong}"
                raise row_error(reader, row, text, _NAME, NUMBERS)
            height, width = self._size(values, content, reader)
            source_id = values.get(_ID)
            if isinstance(source_id, bytes | list):
                raise row_error(reader, row, "the id is not text", _ID, f"columns={f'!{_ID}'!r} numbers the images")
            source_id = None if source_id is None else str(source_id)
            objects = self._objects(values, reader)
            self.left_out.total += len(objects)
            states_size = bool(values.get(_HEIGHT) and values.get(_WIDTH))
            yield AnnotatedRow(row, name, source_id, height, width, states_size, content, objects, reader)
            self.count += 1

    def _size(self, values: Mapping[str, Any], content: pa.Buffer | None, reader: Reader) -> tuple[int, int]:
        height, width = values.get(_HEIGHT), values.get(_WIDTH)
        if not height or not width:
            if content is None:
                raise row_error(reader, self.count, "there is neither an image nor its size", _HEIGHT)
            path, record = reader.origin(self.count)
            try:
                header = image_header(content.to_pybytes(), path or "", _ENCODED)
            except DecodeError as error:
                raise DecodeError(error.reason, path=path, record=record, feature=_ENCODED) from None
            height, width = header.height, header.width
        if not (0 < height < 2**31 and 0 < width < 2**31):
            raise row_error(reader, self.count, f"an image of {height}×{width} pixels", _HEIGHT)
        return height, width

    def _objects(self, values: Mapping[str, Any], reader: Reader) -> list[DetectedObject]:
        lists = {name.removeprefix(OBJECT): value or [] for name, value in values.items() if name.startswith(OBJECT)}
        count = len(lists[_BOX[0]])
        points = {name: lists.pop(name, []) for name in _POINTS}
        columns = {name: value for name, value in lists.items() if value or name in _BOX}
        for name, value in columns.items():
            if len(value) != count:
                text = f"{len(value)} values for {count} objects, whose number is that of 'bbox/xmin'"
                raise row_error(reader, self.count, text, f"{OBJECT}{name}")
        for name in (*_BOX, *_POINTS):
            if None in (columns if name in _BOX else points).get(name, ()):
                raise row_error(reader, self.count, "a value is missing in the list", f"{OBJECT}{name}")
        for name in (*_BOX, "area", "score"):
            if not all(value is None or math.isfinite(value) for value in columns.get(name, ())):
                raise row_error(reader, self.count, "a value is not finite", f"{OBJECT}{name}")
        each = self._points(points, count, reader)
        rows = zip(zip(*columns.values(), strict=True), zip(*map(columns.get, _BOX), strict=True), strict=True)
        return [
            DetectedObject(number, dict(zip(columns, row, strict=True)), each[number], *box)
            for number, (row, box) in enumerate(rows)
        ]

    def _points(self, points: Mapping[str, list[Any]], count: int, reader: Reader) -> list[list[KeyPoint]]:
        """The key points of each object."""
        x, y, visibility, names = points.values()
        total = len(x)
        if not total:
            return [[]] * count
        for name, values in points.items():
            if values and len(values) != total:
                text = f"{len(values)} values, 'keypoint/x' has {total}"
                raise row_error(reader, self.count, text, f"{OBJECT}{name}")
        if not count or total % count:
            text = f"{total} key points cannot be distributed among {count} objects"
            raise row_error(reader, self.count, text, f"{OBJECT}keypoint/x")
        if not y or not all(map(math.isfinite, (*x, *y))):
            raise row_error(reader, self.count, "a key point is not finite", f"{OBJECT}keypoint/x")
        if not set(visibility) <= {0, 1, 2}:
            raise row_error(reader, self.count, "a visibility is not 0, 1 or 2", f"{OBJECT}keypoint/visibility")
        rows = zip(x, y, visibility or [2] * total, names or [""] * total, strict=True)
        all_points = list(itertools.starmap(KeyPoint, rows))
        step = total // count
        return [all_points[at : at + step] for at in range(0, total, step)]


@dataclass(slots=True)
class ClassNames:
    """The names and numbers of classes."""

    given: Sequence[str] | None
    seen: dict[int, str] = field(default_factory=dict)  # by label
    numbered: list[str] = field(default_factory=list)  # in the order of `index`
    _labels: dict[Any, int] = field(default_factory=dict)  # from label, or name, to index

    def __post_init__(self) -> None:
        if self.given is None:
            return
        check_class_names(self.given)
        if "" in self.given:
            raise ValueError("class_names= has an empty name")

    def text(self, each: DetectedObject, row: AnnotatedRow) -> str:
        """The name of the class of an object."""
        if (name := each.get(_CLASS)) is not None:
            if not name:
                raise row.error(f"the class of object {each.number} has an empty name", OBJECT + _CLASS)
            return str(name)
        label = each.get(_LABEL)
        if label is None:
            raise row.error(f"object {each.number} has no class", OBJECT + _LABEL)
        if self.given is None:
            raise row.error(f"the label {label} has no name", OBJECT + _CLASS, _NAMES)
        if not 1 <= label <= len(self.given):
            raise row.error(f"the label {label} is not one of the {len(self.given)} of class_names=", OBJECT + _LABEL)
        return self.given[label - 1]

    def category(self, each: DetectedObject, row: AnnotatedRow) -> int:
        """The label of an object, which always has the same name; without one, the number of its name, from 1."""
        name, label = self.text(each, row), each.get(_LABEL)
        if label is None:
            if self.given is not None and name not in self.given:
                raise row.error(f"the class '{printable(name, 80)}' is not among class_names=", OBJECT + _CLASS)
            label = self.given.index(name) + 1 if self.given else self._labels.setdefault(name, len(self._labels) + 1)
        if self.seen.setdefault(label, name) != name:
            names = f"'{printable(self.seen[label], 80)}' and '{printable(name, 80)}'"
            raise row.error(f"the label {label} has two names, {names}", OBJECT + _CLASS)
        return int(label)

    def number_all(self, rows: AnnotatedRecords) -> None:
        """Number the classes from 0: as they are given, or in the order of their labels, or names."""
        if self.given is not None:
            self.numbered = [*self.given]
            self._labels = {name: at for at, name in enumerate(self.given)}
            return
        found: dict[Any, str | None] = {}
        for label, name in rows.classes():
            key = name if label is None else label
            if key is not None and found.get(key) is None:  # of objects with neither, `text` raises the error
                found[key] = name
        ordered = sorted(found, key=lambda key: (isinstance(key, str), key))
        if unnamed := [label for label in ordered if found[label] is None]:
            raise rows.error(f"the label {unnamed[0]} has no name", _NAMES)
        self.numbered = [name for label in ordered if (name := found[label]) is not None]
        self._labels = {label: at for at, label in enumerate(ordered)}

    def index(self, each: DetectedObject, row: AnnotatedRow) -> int:
        """The number of the class of an object, after `number_all`."""
        name = self.text(each, row)
        key = name if self.given is not None or each.get(_LABEL) is None else each.get(_LABEL)
        if key not in self._labels:
            raise row.error(f"the class '{printable(name, 80)}' is not among class_names=", OBJECT + _CLASS)
        if self.numbered[self._labels[key]] != name:
            names = f"'{printable(self.numbered[self._labels[key]], 80)}' and '{printable(name, 80)}'"
            raise row.error(f"the label {key} has two names, {names}", OBJECT + _CLASS)
        return self._labels[key]


def shortest(value: float) -> float:
    """A float32 as the number with the fewest digits that is rounded to it.

    >>> shortest(0.10000000149011612)
    0.1
    """
    return float(str(np.float32(value)))


def pixels_of(fraction: float, size: int) -> float:
    """A fraction of a size in pixels, with as few digits as give the same float32 when it is divided again.

    >>> pixels_of(0.3333333432674408, 30), pixels_of(0.2574687600135803, 640)
    (10, 164.78)
    """
    exact = fraction * size
    for digits in range(7):
        rounded = round(exact, digits)
        if np.float32(rounded / size) == np.float32(fraction):
            return int(rounded) if digits == 0 else rounded
    return exact
