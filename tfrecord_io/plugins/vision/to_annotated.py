"""Annotated images of TFRecord files as folders in the layouts of COCO, Pascal VOC and YOLO."""

from __future__ import annotations

import json
import math
import os
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any, ClassVar
from xml.sax.saxutils import escape

import numpy as np
import pyarrow as pa

from tfrecord_io.base import ExportOptions
from tfrecord_io.columns import ImageHeader
from tfrecord_io.errors import DecodeError
from tfrecord_io.kit import check_choice, open_output, printable
from tfrecord_io.plugins.vision.annotated_images import OBJECT, StatedClass
from tfrecord_io.plugins.vision.annotated_rows import (
    NUMBERS,
    AnnotatedRecords,
    AnnotatedRow,
    DetectedObject,
    KeyPoint,
    pixels_of,
    shortest,
)
from tfrecord_io.plugins.vision.masks_and_keypoints import check_segmentation, encode_mask, mask_of_png
from tfrecord_io.plugins.vision.pascal_voc import ANNOTATIONS, CORNERS, JPEG_IMAGES, SETS, check_image_set
from tfrecord_io.plugins.vision.to_folder import NewFile, write_files
from tfrecord_io.plugins.vision.vision_rows import COCO, VOC, YOLO
from tfrecord_io.plugins.vision.yolo import DATA, IMAGES, LABELS
from tfrecord_io.read import CallSource
from tfrecord_io.store import NewFolder, Output
from tfrecord_io.typing import FilesLike, Path, WriteReport

INSTANCES = "instances.json"
_PART = 1 << 20  # characters of annotations that are written at once
_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters not allowed in XML
_MOST_PAIRS = 1 << 22  # of corners, whose distances are computed
_YOLO_SUFFIXES = (".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")  # of files that Ultralytics reads
_EDGE = 1e-5  # a box this little beyond an edge is rounded to the edge
NamedContents = list[tuple[str, Any]]  # names and contents: bytes, or a buffer


def to_coco(source: FilesLike, target: Path, **keywords: Any) -> WriteReport:
    """Write annotated images as a folder with ``instances.json`` and ``images``: the twin of `formats.open_coco`."""
    return _write(source, target, _Coco, **keywords)


def to_pascal_voc(source: FilesLike, target: Path, *, image_set: str = "trainval", **keywords: Any) -> WriteReport:
    """Write annotated images as a folder in the layout of Pascal VOC: the twin of `formats.open_voc`.

    `image_set` is the name of the image set that lists all images.
    """
    check_image_set(image_set)
    return _write(source, target, partial(_Voc, image_set=image_set), **keywords)


def to_yolo(source: FilesLike, target: Path, **keywords: Any) -> WriteReport:
    """Write annotated images as a folder in the layout of YOLO: the twin of `formats.open_yolo`.

    Without ``class_names``, the files are read twice: classes are numbered from 0 in the order of their labels, or of
    their names without labels.
    """
    return _write(source, target, _Yolo, **keywords)


def _write(
    source: FilesLike,
    target: Path,
    make: Callable[..., _Target],
    *,
    class_names: Sequence[str] | None = None,
    columns: Sequence[str] | str | None = None,
    images: str | None = None,
    check_sizes: bool = True,
    **keywords: Any,
) -> WriteReport:
    """Write to a folder that does not exist or is empty; a local one appears when it is complete.

    `class_names` are those of the labels 1, 2, …, where the records have no ``image/object/class/text``. With `images`
    "none", annotations alone are written. EncodeError: a name leads out of the folder, an id comes twice, an object
    lacks a value, or its position is not a fraction of the image; there is no image, or with `check_sizes` one of
    another size than stated.
    """
    check_choice("images", images, (None, "none"))
    check_choice("check_sizes", check_sizes, (False, True))
    options = CallSource(source).options(ExportOptions, **keywords)
    read: Any = source
    if not isinstance(source, list | tuple) and CallSource(source).datasets:  # reads the types that images need
        found = CallSource(source).found_files(options)
        overrides = found.options.schema_overrides
        read, options = list(found.sources), options.changed(schema_overrides=overrides, **found.selection.choices)
    with_images = {"needs_images": images is None, "check_sizes": check_sizes}
    rows = AnnotatedRecords.plan(read, options, columns, class_names, **with_images)
    name = os.fspath(target)
    if (other_format := Output.OtherFormat.of_path(name)) is not None and other_format.is_known:
        reason = "annotated images are written to a folder, and this is the name of a file"
        raise ValueError(f"'{printable(name)}': {reason}")
    with ExitStack() as opened:
        folder = opened.enter_context(NewFolder.begin(name, options.target))
        written = opened.enter_context(make(rows, folder, options))
        threads = folder.writing_threads(options.thread_count)
        write_files(folder, _files(rows, written, folder), threads)
        written.finish()
    rows.warn(written.title, written.columns)
    return WriteReport(name, rows.count, bytes=folder.bytes, compression=None, columns=rows.columns, rounded={})


def _files(rows: AnnotatedRecords, target: _Target, folder: NewFolder) -> Iterator[NewFile]:
    """The files of each image."""
    for row in rows:
        files = target.add(row)
        if row.content is not None:
            files = [(f"{target.images}/{row.name}", target.image(row, row.content)), *files]
            folder.bytes += row.content.size
        for name, content in files:
            yield name, content, partial(row.error, feature="image/filename", advice=NUMBERS)


class _Target(AbstractContextManager["_Target"]):
    """A folder of annotated images being written; a context manager."""

    title: ClassVar[str]
    images: ClassVar[str]  # the folder of the images
    columns: ClassVar[frozenset[str]]  # of objects in this format, besides boxes and classes

    def __init__(self, rows: AnnotatedRecords, folder: NewFolder, options: ExportOptions) -> None:
        self._folder, self._rows, self._names = folder, rows, rows.names

    def __exit__(self, *error: object) -> None:
        return None

    @abstractmethod
    def add(self, row: AnnotatedRow) -> NamedContents:
        """Take an image; returns the files of its annotations."""

    def image(self, row: AnnotatedRow, content: pa.Buffer) -> Any:
        """The file of an image."""
        return content

    @abstractmethod
    def finish(self) -> None:
        """Write the files about all images."""


class _Coco(_Target):
    """``images``, and ``instances.json``, whose annotations are written as they come."""

    title, images = COCO.title, IMAGES
    columns = frozenset(
        {"is_crowd", "area", "segmentation", "mask", "annotation_id", "score", "attributes", "class/supercategory"}
        | {f"keypoint/{name}" for name in "x y num visibility text".split()}
    )

    def __init__(self, rows: AnnotatedRecords, folder: NewFolder, options: ExportOptions) -> None:
        super().__init__(rows, folder, options)
        self._output = open_output(folder.table(INSTANCES), options.target)
        self._images: list[str] = []
        self._ids: set[int] = set()
        self._numbered: bool | None = None  # True if ids are positions of images, and not ids of the records
        self._annotations: list[str] = []
        self._size = self._count = 0
        self._keypoints: dict[int, list[str]] = {}  # their names, by category
        self._has_names = f"{OBJECT}keypoint/text" in rows.columns
        self._groups: dict[int, str] = {}  # the supercategories
        self._annotation_ids: set[int] = set()

    def __enter__(self) -> _Coco:
        self._output.__enter__()
        self._output.write(b'{"info": {}, "licenses": [], "annotations": [')
        return self

    def __exit__(self, *error: Any) -> None:
        self._output.__exit__(*error)

    def add(self, row: AnnotatedRow) -> NamedContents:
        id_ = self._id(row)
        image = {"id": id_, "file_name": row.name, "width": row.width, "height": row.height}
        self._images.append(json.dumps(image))
        for object_ in row.objects:
            self._count += 1
            self._annotations.append(json.dumps(self._annotation(object_, row, id_)))
            self._size += len(self._annotations[-1])
            if self._size > _PART:
                self._flush()
        return []

    def _id(self, row: AnnotatedRow) -> int:
        """The id of an image: ``image/source_id`` if the first image's is a number, else the image's position."""
        source_id = row.source_id
        number = int(source_id) if source_id is not None and re.fullmatch(r"-?[0-9]{1,18}", source_id) else None
        if self._numbered is None:
            self._numbered = number is None or str(number) != source_id
        if self._numbered:
            number = row.number + 1
        advice = "columns='!image/source_id' numbers the images"
        if number is None:
            text = f"the id '{printable(source_id)}' is not an integer, as that of the first image is"
            raise row.error(text, "image/source_id", advice)
        if number in self._ids:
            raise row.error(f"two images have the id {number}", "image/source_id", advice)
        self._ids.add(number)
        return number

    def _annotation(self, object_: DetectedObject, row: AnnotatedRow, image: int) -> dict[str, Any]:
        category = self._names.category(object_, row, self._rows)
        x, width = _length(object_.xmin, object_.xmax, row.width)
        y, height = _length(object_.ymin, object_.ymax, row.height)
        if width < 0 or height < 0:
            text = (
                f"the box of object {object_.number} of {row.text} ends before it begins: it is {width}×{height} pixels"
            )
            raise row.error(text, f"{OBJECT}bbox/{'xmax' if width < 0 else 'ymax'}")
        area, annotation_id = object_.get("area"), object_.get("annotation_id")
        id_ = self._count if annotation_id is None else int(annotation_id)
        if id_ in self._annotation_ids:
            advice = "columns='!image/object/annotation_id' numbers the annotations"
            raise row.error(f"two annotations have the id {id_}", f"{OBJECT}annotation_id", advice)
        self._annotation_ids.add(id_)
        annotation: dict[str, Any] = {"id": id_, "image_id": image, "category_id": category}
        annotation |= {"bbox": [x, y, width, height], "area": width * height if area is None else shortest(area)}
        annotation["iscrowd"] = row.flag(object_, "is_crowd")
        if (score := object_.get("score")) is not None:
            annotation["score"] = shortest(score)
        if attributes := object_.get("attributes"):
            annotation["attributes"] = _json(attributes, "attributes", object_, row)
        if (group := object_.get("class/supercategory")) and self._groups.setdefault(category, group) != group:
            both = f"'{printable(self._groups[category], 80)}' and '{printable(group, 80)}'"
            raise row.error(f"the label {category} has two supercategories, {both}", f"{OBJECT}class/supercategory")
        if (segmentation := _segmentation(object_, row)) is not None:
            annotation["segmentation"] = segmentation
        if points := _drop_padding(object_.keypoints) if self._has_names else object_.keypoints:
            places = [(pixels_of(p.x, row.width), pixels_of(p.y, row.height), p.visibility) for p in points]
            annotation["keypoints"] = [value for place in places for value in place]
            labelled = object_.get("keypoint/num")
            annotation["num_keypoints"] = sum(p.visibility > 0 for p in points) if labelled is None else labelled
            names = [p.name for p in points]
            if any(names) and self._keypoints.setdefault(category, names) != names:
                both = printable(f"{self._keypoints[category]} and {names}", 160)
                raise row.error(
                    f"key points of the label {category} have two lists of names, {both}", f"{OBJECT}keypoint/text"
                )
        return annotation

    def _flush(self) -> None:
        if self._annotations:
            before = ",\n" if self._count > len(self._annotations) else "\n"
            self._output.write((before + ",\n".join(self._annotations)).encode())
        self._annotations, self._size = [], 0

    def finish(self) -> None:
        self._flush()
        categories: list[str] = []
        names, stated_classes = self._names.seen, {class_.id: class_ for class_ in self._names.stated_classes}
        names |= self._names.classes_without_objects(names)
        for id_, name in sorted(names.items()):
            class_ = stated_classes.get(id_)
            class_ = class_ if class_ is not None and class_.name == name else StatedClass(id_, name)
            places, group_name = self._keypoints.get(id_, class_.keypoints), self._groups.get(id_, class_.supercategory)
            points = {"keypoints": [*places], "skeleton": []} if places else {}
            group = {"supercategory": group_name} if group_name else {}
            categories.append(json.dumps({"id": id_, "name": name, **group, **points}))
        for name, members in (("images", self._images), ("categories", categories)):
            self._output.write(f'],\n"{name}": [\n'.encode())
            self._output.write(",\n".join(members).encode())
        self._output.write(b"]}\n")


def _drop_padding(points: Sequence[KeyPoint]) -> Sequence[KeyPoint]:
    """Drop the key points that pad an object to the largest number in the file: these have no names."""
    named = [number for number, point in enumerate(points, start=1) if point.name]
    if named:
        return points[: named[-1]]
    return points if any(point.visibility or point.x or point.y for point in points) else ()


def _json(text: str, name: str, object_: DetectedObject, row: AnnotatedRow) -> Any:
    """The value of JSON text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = f"the value of object {object_.number} is not JSON: {printable(error, 120)}"
        raise row.error(reason, f"{OBJECT}{name}", f"columns={f'!{OBJECT}{name}'!r} leaves it out") from None


def _segmentation(object_: DetectedObject, row: AnnotatedRow) -> Any:
    """The mask of an object in COCO's form; None if it has none."""
    try:
        if (text := object_.get("segmentation")) is not None:
            segmentation = json.loads(text)
            check_segmentation(segmentation, row.height, row.width)
            return segmentation
        if (png := object_.get("mask")) is not None:
            mask = mask_of_png(png, row.height, row.width)
            return encode_mask(mask) if mask.any() else None  # a list of images has one for each object
    except (ValueError, RecursionError) as error:
        feature = "image/object/segmentation" if object_.get("segmentation") is not None else "image/object/mask"
        raise row.error(
            f"the mask of object {object_.number} cannot be used: {printable(error, 120)}", feature
        ) from None
    return None


def _length(begin: float, end: float, size: int) -> tuple[float, float]:
    """The first pixel and the length of a side of a box, from which the same fractions are read."""
    first = pixels_of(begin, size)
    length = pixels_of(end, size) - first
    for digits in range(7):
        rounded = round(length, digits)
        last = first + rounded  # as it is computed when it is read: rounding must not lead beyond the image
        if np.float32(last / size) == np.float32(end) and (last <= size or end > 1):
            return first, int(rounded) if digits == 0 else rounded
    if first + length > size and end <= 1:
        length = size - first
        while first + length > size:  # at most twice: the difference was rounded
            length = math.nextafter(length, 0)
    return first, length


class _Voc(_Target):
    """``JPEGImages``, ``Annotations`` and an image set."""

    title, images = VOC.title, JPEG_IMAGES
    columns = frozenset({"difficult", "truncated", "view", "occluded", "part"})

    def __init__(self, rows: AnnotatedRecords, folder: NewFolder, options: ExportOptions, *, image_set: str) -> None:
        super().__init__(rows, folder, options)
        self._set = image_set
        self._stems: list[str] = []

    def add(self, row: AnnotatedRow) -> NamedContents:
        if "/" in row.name:
            text = f"the name '{printable(row.name)}' is in a folder, which the annotations of Pascal VOC have none of"
            raise row.error(text, "image/filename", NUMBERS)
        stem = os.path.splitext(row.name)[0]
        lines = ["<annotation>", f"  <folder>{JPEG_IMAGES}</folder>", "  " + _element("filename", row.name, row)]
        lines.append(f"  <size><width>{row.width}</width><height>{row.height}</height></size>")
        for object_ in row.objects:
            name = _element("name", self._names.text(object_, row), row)
            view = object_.get("view")
            corners = zip(
                ("xmin", "ymin", "xmax", "ymax"), (object_.xmin, object_.ymin, object_.xmax, object_.ymax), strict=True
            )
            box = [
                f"<{side}>{pixels_of(value, row.width if side[0] == 'x' else row.height)}</{side}>"
                for side, value in corners
            ]
            names = ("truncated", "difficult", *(() if object_.get("occluded") is None else ("occluded",)))
            flags = [f"<{flag}>{row.flag(object_, flag)}</{flag}>" for flag in names]
            pose = _element("pose", view, row) if view else ""
            lines.append(
                f"  <object>{name}{pose}{''.join(flags)}<bndbox>{''.join(box)}</bndbox>{_parts(object_, row)}</object>"
            )
        self._stems.append(stem)
        return [(f"{ANNOTATIONS}/{stem}.xml", "\n".join([*lines, "</annotation>\n"]).encode())]

    def finish(self) -> None:
        self._folder.write(f"{SETS}/{self._set}.txt", "".join(f"{stem}\n" for stem in self._stems).encode())


def _parts(object_: DetectedObject, row: AnnotatedRow) -> str:
    """The parts of an object, such as head and hands: ``[{"name": …, "bndbox": {"xmin": …, …}}, …]``."""
    text = object_.get("part")
    parts = _json(text, "part", object_, row) if text else []
    elements = []
    for part in parts if isinstance(parts, list) else [None]:
        box = part.get("bndbox") if isinstance(part, dict) else None
        name = part.get("name") if isinstance(part, dict) else None
        if not isinstance(name, str) or not isinstance(box, dict) or not box.keys() <= {*CORNERS}:
            raise row.error(f"a part of object {object_.number} is not a name with a box", f"{OBJECT}part")
        corners = "".join(_element(side, str(value), row) for side, value in box.items())
        elements.append(f"<part>{_element('name', name, row)}<bndbox>{corners}</bndbox></part>")
    return "".join(elements)


def _element(name: str, text: str, row: AnnotatedRow) -> str:
    if (wrong := _XML.search(text)) is not None or text.strip() != text or not text:
        what = f"the character U+{ord(wrong[0]):04X}" if wrong else "white space around it, or nothing"
        raise row.error(f"'{printable(text, 80)}' has {what}, which XML cannot hold as the element '{name}'")
    return f"<{name}>{escape(text)}</{name}>"


class _Yolo(_Target):
    """``images``, ``labels`` and ``data.yaml``."""

    title, images = YOLO.title, IMAGES
    columns = frozenset({"segmentation"} | {f"keypoint/{name}" for name in "x y num visibility".split()})

    def __init__(self, rows: AnnotatedRecords, folder: NewFolder, options: ExportOptions) -> None:
        super().__init__(rows, folder, options)
        self._names.number_all(rows)
        self._has_masks = "image/object/segmentation" in rows.columns
        self._has_points = "image/object/keypoint/x" in rows.columns
        self._points: int | None = None  # of each object
        if self._has_masks and self._has_points:
            raise rows.error(
                f"{self.title} files hold either masks or key points",
                "columns='!image/object/segmentation' writes key points",
            )

    def add(self, row: AnnotatedRow) -> NamedContents:
        if not row.name.lower().endswith(_YOLO_SUFFIXES) or IMAGES in row.name.split("/")[:-1]:
            text = f"{self.title} finds no image by the name '{printable(row.name)}': its suffix is not one of "
            text += f"{', '.join(_YOLO_SUFFIXES)}, or it is in another folder '{IMAGES}'"
            raise row.error(text, "image/filename", f"encode it as one of these, or {NUMBERS}")
        lines = []
        for object_ in row.objects:
            words = self._words(object_, row)
            if words is None:
                self._rows.left_out.add(f"{row.text} has an object whose mask is run-length encoded, not polygons")
            else:
                lines.append(" ".join([str(self._names.index(object_, row, self._rows)), *map(_text, words)]))
        return [(f"{LABELS}/{os.path.splitext(row.name)[0]}.txt", "".join(f"{line}\n" for line in lines).encode())]

    def image(self, row: AnnotatedRow, content: pa.Buffer) -> Any:
        """The file, without an orientation if the boxes are those of the stored pixels: YOLO turns photos."""
        if not row.states_size:
            return content
        data, (path, record) = content.to_pybytes(), row.reader.origin(row.number)
        try:
            header = row.header or ImageHeader.read(data, "")
        except DecodeError:
            return content  # not an image to turn
        if header.is_turned((row.height, row.width)) is not False:
            return content
        try:
            return header.remove_orientation(data, path, "store the image without it")
        except DecodeError as error:
            error.record, error.feature = record, "image/encoded"
            raise

    def _words(self, object_: DetectedObject, row: AnnotatedRow) -> Sequence[float] | None:
        """The numbers of a line after the class; None if YOLO cannot hold them."""
        sides = [(object_.xmin, object_.xmax), (object_.ymin, object_.ymax)]
        if not all(-_EDGE <= begin < end <= 1 + _EDGE for begin, end in sides):
            text = f"the box of object {object_.number} is empty or beyond the image, which {self.title} refuses"
            raise row.error(text, "image/object/bbox/xmin")
        (x, width), (y, height) = (_centre_and_length(max(begin, 0.0), min(end, 1.0)) for begin, end in sides)
        if self._has_masks:
            return self._polygon(object_, row)
        if not self._has_points:
            return x, y, width, height
        count = len(object_.keypoints)
        if self._points not in (None, count):
            text = f"object {object_.number} has {count} key points, those before {self._points}"
            raise row.error(text, "image/object/keypoint/x")
        self._points = count
        points = (value for p in object_.keypoints for value in (shortest(p.x), shortest(p.y), p.visibility))
        return x, y, width, height, *points

    def _polygon(self, object_: DetectedObject, row: AnnotatedRow) -> Sequence[float] | None:
        segmentation = _segmentation(object_, row)
        if segmentation == [] or segmentation is None:  # a line of a box would be one of another kind
            x0, x1, y0, y1 = map(shortest, (object_.xmin, object_.xmax, object_.ymin, object_.ymax))
            return x0, y0, x1, y0, x1, y1, x0, y1
        if not isinstance(segmentation, list):
            return None
        polygon = _join_polygons([np.reshape(part, (-1, 2)) for part in segmentation]) / (row.width, row.height)
        return [round(min(max(value, 0.0), 1.0), 12) for value in polygon.ravel().tolist()]

    def finish(self) -> None:
        lines = [f"train: {IMAGES}", f"val: {IMAGES}"]
        if self._points:
            lines.append(f"kpt_shape: [{self._points}, 3]")
        lines += ["names:" if self._names.numbered else "names: []"]
        lines += (f"  {at}: {_quote(name)}" for at, name in enumerate(self._names.numbered))
        self._folder.write(DATA, "".join(f"{line}\n" for line in lines).encode())


def _join_polygons(parts: list[np.ndarray]) -> np.ndarray:
    """Polygons as one: there and back on the shortest line between two corners, which has no area."""
    polygon, *other_parts = parts
    for part in other_parts:
        at = there = 0
        if len(polygon) * len(part) <= _MOST_PAIRS:
            distances = ((polygon[:, None] - part[None]) ** 2).sum(axis=2)
            at, there = map(int, np.unravel_index(distances.argmin(), distances.shape))
        polygon = np.concatenate([polygon[: at + 1], part[there:], part[: there + 1], polygon[at:]])
    return polygon


def _quote(text: str) -> str:
    """Text in YAML."""
    plain = (c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in text)
    return f'"{"".join(plain)}"'


def _text(value: float) -> str:
    return str(value) if value != int(value) else str(int(value))


def _centre_and_length(begin: float, end: float) -> tuple[float, float]:
    """The centre and the length of a side, with as few digits as give the same float32 edges."""
    centre, length = (begin + end) / 2, end - begin
    edges = np.float32(begin), np.float32(end)
    for digits in range(4, 10):
        x, width = round(centre, digits), round(length, digits)
        if (np.float32(x - width / 2), np.float32(x + width / 2)) == edges:
            return x, width
    return centre, length
