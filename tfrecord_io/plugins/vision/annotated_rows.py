"""Read records with the features of TensorFlow's Object Detection API as images with objects."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tfrecord_io.base import ExportOptions
from tfrecord_io.bytes import ShapeSource
from tfrecord_io.columns import ImageHeader, Projection
from tfrecord_io.errors import DecodeError, EncodeError, FeatureNotFoundError
from tfrecord_io.kit import printable, warn
from tfrecord_io.plugins.vision.annotated_images import FRACTIONS, LABEL, OBJECT, StatedClass, classes_of, is_fraction
from tfrecord_io.plugins.vision.folder_files import LeftOut
from tfrecord_io.plugins.vision.to_folder import (
    file_suffix,
    image_contents,
    named_as_image,
    raw_images_of,
    row_error,
    schema_to_choose_from,
)
from tfrecord_io.read import CallSource
from tfrecord_io.store import Directory, Folder
from tfrecord_io.typing import Reader

_BOX = ("bbox/xmin", "bbox/xmax", "bbox/ymin", "bbox/ymax")
_BY_CORNER = ("bbox/xmin", "bbox/ymin", "bbox/xmax", "bbox/ymax")
_LABEL, _CLASS = LABEL, "class/text"
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
_DERIVED = {"image/format", "image/key/sha256"}  # of the image, and the features that state the size of raw pixels
NUMBERS = "columns='!image/filename' numbers the images"
_NAMES = "class_names= (--class-names) gives the names of the labels 1, 2, …"
_ALONE = 'images="none" writes annotations without images'
_ALONE_CLI = "--images none writes annotations without images"
_UNSEEN = "check_sizes=False writes the stated size, whatever the image"
_UNSEEN_CLI = "--no-check-sizes writes the stated size, whatever the image"


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
    states_size: bool  # else the size of the stored pixels
    content: pa.Buffer | None  # of the file
    header: ImageHeader | None  # of the content, if it was looked at
    objects: list[DetectedObject]
    reader: Reader

    @property
    def text(self) -> str:
        """The record in a message."""
        return f"image '{printable(self.name, 80)}'"

    def error(self, reason: str, feature: str | None = None, advice: str | None = None) -> EncodeError:
        return row_error(self.reader, self.number, reason=reason, feature=feature, advice=advice)

    def flag(self, object_: DetectedObject, name: str) -> int:
        """A value that is 0 or 1, by default 0."""
        value = object_.get(name) or 0
        if value not in (0, 1):
            feature = f"{OBJECT}{name}"
            advice = f"columns={f'!{feature}'!r} leaves the column out"
            raise self.error(f"the value of object {object_.number} is {value}, expected 0 or 1", feature, advice)
        return int(value)


@dataclass(slots=True)
class AnnotatedRecords:
    """The records of files that annotated images are made of; an iterator, once."""

    source: Any
    options: ExportOptions  # with the columns, and their types
    names: ClassNames
    other_columns: list[str]  # columns that say something else
    needs_images: bool  # else annotations alone are written
    check_sizes: bool
    image: str  # the column of images
    left_out: LeftOut = field(default_factory=lambda: LeftOut("objects", 0))
    count: int = 0  # of the records that have been read

    @classmethod
    def plan(
        cls,
        source: Any,
        options: ExportOptions,
        columns: Any,
        class_names: Sequence[str] | None,
        *,
        needs_images: bool = True,
        check_sizes: bool = True,
    ) -> AnnotatedRecords:
        """Find the columns, and the classes that their schema states.

        Raises
        ------
        FeatureNotFoundError
            The columns of images, boxes or classes are missing.
        """
        schema = schema_to_choose_from(source, options)
        selected_names = schema.names
        if columns is not None:
            projection = Projection(columns)
            projection.check(schema.names)
            selected_names = projection.order(schema.names)
        raw = raw_images_of(schema)
        image = next((name for name in (_ENCODED, *raw) if name in selected_names), _ENCODED)
        types: dict[str, Any] = {**_IMAGE, image: None if image in raw else pa.binary()}
        types = {**types, **{f"{OBJECT}{name}": pa.list_(type_) for name, type_ in _OBJECTS.items()}}
        used = [name for name in types if name in selected_names]
        needed = [[f"{OBJECT}{name}"] for name in _BOX] + [[OBJECT + _LABEL, OBJECT + _CLASS]]
        for names in [[image], *needed] if needs_images else needed:
            if not set(names) & set(used):
                reason = f"no column '{names[-1]}', which annotated images have"
                has = f"it has: {', '.join(schema.names)}"
                hint, hint_cli = (f"{_ALONE}; {has}", f"{_ALONE_CLI}; {has}") if names == [_ENCODED] else (has, has)
                raise FeatureNotFoundError(reason, feature=names[-1], hint=hint, hint_cli=hint_cli)
        declared = {name: types[name] for name in used if types[name] is not None}
        overrides = {**declared, **(options.schema_overrides or {})} if options.schema is None else None
        options = replace(options, columns=tuple(used), schema_overrides=overrides)
        derived = (
            _DERIVED if image not in raw else {*_DERIVED, *ShapeSource.stated_by(image, schema.field(image).metadata)}
        )
        other_columns = [name for name in selected_names if name not in types and name not in derived]
        at = schema.get_field_index(OBJECT + _LABEL)
        stated_classes = classes_of(schema.field(at)) if at >= 0 and class_names is None else []
        return cls(
            source,
            options,
            names=ClassNames(class_names, stated_classes),
            other_columns=other_columns,
            needs_images=needs_images,
            check_sizes=check_sizes,
            image=image,
        )

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.options.columns or ())

    def __iter__(self) -> Iterator[AnnotatedRow]:
        with CallSource(self.source).open(self.options) as reader:
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
        with CallSource(self.source).open(options) as reader:
            for batch in reader:
                of_labels, of_names = (
                    batch.column(name).to_pylist() if name in columns else [None] * len(batch)
                    for name in (OBJECT + _LABEL, OBJECT + _CLASS)
                )
                for labels, names in zip(of_labels, of_names, strict=True):
                    yield from itertools.zip_longest(labels or (), names or ())

    def warn(self, title: str, held_columns: frozenset[str]) -> None:
        """Warn of what the files of a format do not hold."""
        possible = _OBJECTS.keys() - held_columns - _NEVER_LOST
        lost = self.other_columns + [name for name in self.columns if name.removeprefix(OBJECT) in possible]
        if lost:
            warn(f"{title} files do not hold these columns, left out: {printable(', '.join(lost), 400)}", UserWarning)
        self.left_out.warn(title)

    def error(self, reason: str, advice: str) -> EncodeError:
        return EncodeError(reason, path=printable(self.source), hint=advice)

    def _rows(self, batch: pa.RecordBatch, reader: Reader) -> Iterator[AnnotatedRow]:
        plain = {name: batch.column(name).to_pylist() for name in batch.schema.names if name != self.image}
        contents: Iterable[pa.Buffer | None] = [None] * len(batch)
        if self.image in batch.schema.names:
            raw = raw_images_of(batch.schema).get(self.image)
            contents = image_contents(batch.column(self.image), raw, reader, self.count)
        for at, content in enumerate(contents):
            values = {name: column[at] for name, column in plain.items()}
            row = self.count
            content = content if content is not None and content.size else None
            if content is None and self.needs_images:
                raise row_error(reader, row, reason="it has no image bytes", feature=self.image, advice=_ALONE)
            name = values.get(_NAME)
            if name is None:
                name = f"{row:08d}{'.jpg' if content is None else file_suffix(content)}"
            if (wrong := Directory.name_fault(name)) is not None:
                text = f"the name '{printable(name)}' of a file cannot be used: {wrong}"
                raise row_error(reader, row, reason=text, feature=_NAME, advice=NUMBERS)
            name = name if content is None else named_as_image(name, content)
            height, width, header = self._size(values, content, reader)
            source_id = values.get(_ID)
            if isinstance(source_id, bytes | list):
                raise row_error(
                    reader,
                    row,
                    reason="the id is not text",
                    feature=_ID,
                    advice=f"columns={f'!{_ID}'!r} numbers the images",
                )
            source_id = None if source_id is None else str(source_id)
            objects = self._objects(values, reader, f"image '{printable(name, 80)}'")
            self.left_out.total += len(objects)
            states_size = bool(values.get(_HEIGHT) and values.get(_WIDTH))
            content = content if self.needs_images else None
            yield AnnotatedRow(
                number=row,
                name=name,
                source_id=source_id,
                height=height,
                width=width,
                states_size=states_size,
                content=content,
                header=header,
                objects=objects,
                reader=reader,
            )
            self.count += 1

    def _size(
        self, values: Mapping[str, Any], content: pa.Buffer | None, reader: Reader
    ) -> tuple[int, int, ImageHeader | None]:
        """The height and width of an image, which the record and the header of the image agree on, and that header."""
        height, width = values.get(_HEIGHT) or None, values.get(_WIDTH) or None
        if not all(side is None or 0 < side < 2**31 for side in (height, width)):
            raise row_error(reader, self.count, f"an image of {height}×{width} pixels", _HEIGHT)
        if height is not None and width is not None and (content is None or not self.check_sizes):
            return height, width, None
        if content is None:
            raise row_error(reader, self.count, "there is neither an image nor its size", _HEIGHT)
        path, record = reader.origin(self.count)
        try:
            header = ImageHeader.read(content.to_pybytes(), path or "", self.image)
        except DecodeError as error:
            are_known = None not in (height, width)
            raise DecodeError(
                error.reason,
                path=path,
                record=record,
                feature=self.image,
                expected=error.expected,
                got=error.got,
                hint=_with_alternative(error.hint, _UNSEEN) if are_known else None,
                hint_cli=_with_alternative(error.hint_cli or error.hint, _UNSEEN_CLI) if are_known else None,
            ) from None
        stored, turned = (header.height, header.width), header.turned_size
        if not self.check_sizes:
            return height or stored[0], width or stored[1], header
        for size in (stored, turned):
            if height in (None, size[0]) and width in (None, size[1]):
                return *size, header
        text = f"the image has {stored[1]}×{stored[0]} pixels, "
        text += f"or {turned[1]}×{turned[0]} turned by its EXIF orientation, " if turned != stored else ""
        text += f"but the record states {width or '?'}×{height or '?'}, so its boxes may be of another image"
        feature = _HEIGHT if height not in (None, stored[0]) else _WIDTH
        excluded = [f"!{_HEIGHT}", f"!{_WIDTH}"]
        raise row_error(
            reader,
            self.count,
            reason=text,
            feature=feature,
            advice=f"{_UNSEEN}, or columns={excluded!r} takes the size of the image",
            advice_cli=f"{_UNSEEN_CLI}, or --columns '{','.join(excluded)}' takes the size of the image",
            expected=stored,
            got=(height, width),
        )

    def _objects(self, values: Mapping[str, Any], reader: Reader, image: str) -> list[DetectedObject]:
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
        object_points = self._points(points, count, reader)
        self._check_fractions(columns, object_points, reader, image)
        rows = zip(zip(*columns.values(), strict=True), zip(*map(columns.get, _BOX), strict=True), strict=True)
        return [
            DetectedObject(number, dict(zip(columns, row, strict=True)), object_points[number], *box)
            for number, (row, box) in enumerate(rows)
        ]

    def _check_fractions(
        self, columns: Mapping[str, Any], points: list[list[KeyPoint]], reader: Reader, image: str
    ) -> None:
        """Refuse boxes and labelled key points that are pixels, not fractions of an image."""
        wrong = None
        for number, box in enumerate(zip(*map(columns.get, _BY_CORNER), strict=True)):
            side = next((side for side, value in zip(_BY_CORNER, box, strict=True) if not is_fraction(value)), None)
            if side is not None:
                wrong = side, f"'{side}' of object {number} of {image} is {box[_BY_CORNER.index(side)]}"
                break
        for number, places in enumerate(points):
            for point in places:
                if wrong is None and point.visibility and not (is_fraction(point.x) and is_fraction(point.y)):
                    side = "keypoint/y" if is_fraction(point.x) else "keypoint/x"
                    place = point.y if is_fraction(point.x) else point.x
                    wrong = side, f"a key point of object {number} of {image} is at {place}"
        if wrong is None:
            return
        size = _WIDTH if wrong[0].rpartition("/")[2] in ("x", "xmin", "xmax") else _HEIGHT
        expected = f"a fraction from {FRACTIONS[0]} to {FRACTIONS[1]}"
        reason = f"{wrong[1]}, expected {expected}: it looks like pixels"
        advice = f"divide it by '{size}' when the records are written"
        raise row_error(reader, self.count, reason=reason, feature=OBJECT + wrong[0], advice=advice, expected=expected)

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
    """The names and numbers of classes: as the caller gives them, or as the schema and the records state them."""

    class_names: Sequence[str] | None
    stated_classes: Sequence[StatedClass] = ()  # of the schema, including classes without objects
    seen: dict[int, str] = field(default_factory=dict)  # by label
    numbered: list[str] = field(default_factory=list)  # in the order of `index`
    _indices: dict[Any, int] = field(default_factory=dict)  # by label, or by name as they are given
    _labels: dict[str, int] | None = None  # of the names, once all records have been read for them
    stated_names: dict[int, str] = field(init=False)  # by label

    def __post_init__(self) -> None:
        self.stated_names = {class_.id: class_.name for class_ in self.stated_classes}
        if self.class_names is None:
            return
        Folder.check_class_names(self.class_names)
        if "" in self.class_names:
            raise ValueError("class_names= has an empty name")

    def text(self, object_: DetectedObject, row: AnnotatedRow) -> str:
        """The name of the class of an object."""
        if (name := object_.get(_CLASS)) is not None:
            if not name:
                raise row.error(f"the class of object {object_.number} has an empty name", OBJECT + _CLASS)
            return str(name)
        label = object_.get(_LABEL)
        if label is None:
            raise row.error(f"object {object_.number} has no class", OBJECT + _LABEL)
        if self.class_names is None:
            if label in self.stated_names:
                return self.stated_names[label]
            raise row.error(f"the label {label} has no name", OBJECT + _CLASS, _NAMES)
        if not 1 <= label <= len(self.class_names):
            raise row.error(
                f"the label {label} is not one of the {len(self.class_names)} of class_names=", OBJECT + _LABEL
            )
        return self.class_names[label - 1]

    def category(self, object_: DetectedObject, row: AnnotatedRow, rows: AnnotatedRecords) -> int:
        """The label of an object, which always has the same name.

        Without one, the number of its name: that of `class_names`, or of the sorted names of all records.
        """
        name, label = self.text(object_, row), object_.get(_LABEL)
        if label is None:
            if self.class_names is not None and name not in self.class_names:
                raise row.error(f"the class '{printable(name, 80)}' is not among the given names", OBJECT + _CLASS)
            label = self.class_names.index(name) + 1 if self.class_names else self._label_of(name, rows)
        if self.seen.setdefault(label, name) != name:
            names = f"'{printable(self.seen[label], 80)}' and '{printable(name, 80)}'"
            raise row.error(f"the label {label} has two names, {names}", OBJECT + _CLASS)
        return int(label)

    def number_all(self, rows: AnnotatedRecords) -> None:
        """Number the classes from 0: as they are given, or in the order of their labels."""
        if self.class_names is not None:
            self.numbered = [*self.class_names]
            self._indices = {name: at for at, name in enumerate(self.class_names)}
            return
        names = self._all_names(rows)
        if unnamed := [label for label, name in names.items() if name is None]:
            raise rows.error(f"the label {unnamed[0]} has no name", _NAMES)
        self.numbered = [name for name in names.values() if name is not None]
        self._indices = {label: at for at, label in enumerate(names)}

    def index(self, object_: DetectedObject, row: AnnotatedRow, rows: AnnotatedRecords) -> int:
        """The number of the class of an object, after `number_all`."""
        name, key = self.text(object_, row), object_.get(_LABEL)
        if self.class_names is not None:
            key = name
        elif key is None:
            key = self._label_of(name, rows)
        if key not in self._indices:
            raise row.error(f"the class '{printable(name, 80)}' is not among the given names", OBJECT + _CLASS)
        if self.numbered[self._indices[key]] != name:
            names = f"'{printable(self.numbered[self._indices[key]], 80)}' and '{printable(name, 80)}'"
            raise row.error(f"the label {key} has two names, {names}", OBJECT + _CLASS)
        return self._indices[key]

    def classes_without_objects(self, names: Mapping[int, str | None]) -> dict[int, str]:
        """Stated classes without objects, except names that objects use with another label."""
        stated_names = self.stated_names if self.class_names is None else dict(enumerate(self.class_names, start=1))
        used_names = {
            name for label, name in names.items() if label not in stated_names or self.class_names is not None
        }
        return {
            label: name for label, name in stated_names.items() if names.get(label) is None and name not in used_names
        }

    def _label_of(self, name: str, rows: AnnotatedRecords) -> int:
        """The label of a name that an object has without one."""
        if self._labels is None:
            self._all_names(rows)
        assert self._labels is not None
        return self._labels[name]

    def _all_names(self, rows: AnnotatedRecords) -> dict[int, str | None]:
        """The name of each label, in order, of all records and of the schema; None where none states it.

        A name without a label has the label that it has elsewhere, or one of the first numbers that no label is, in the
        order of the names: the same whatever the order of the records.
        """
        names: dict[int, str | None] = {}
        unlabelled: set[str] = set()
        for label, name in rows.classes():
            if label is not None and names.get(label) is None:
                names[label] = name
            elif label is None and name:  # of objects with neither, `text` raises the error
                unlabelled.add(name)
        names |= self.classes_without_objects(names)
        labels = {name: label for label, name in sorted(names.items(), reverse=True) if name is not None}
        unused = (number for number in itertools.count(1) if number not in names)
        labels |= {name: next(unused) for name in sorted(unlabelled - labels.keys())}
        self._labels = labels
        return dict(sorted((names | {label: name for name, label in labels.items()}).items()))


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


def _with_alternative(hint: str | None, alternative: str) -> str:
    return f"{hint}, or {alternative}" if hint else alternative
