"""Images with the boxes of objects, as a stream of record batches with the features of TensorFlow's detection API."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, get_args

import numpy as np
import pyarrow as pa

from tfrecord_io.apps.file_formats.array_files.array_stream import ArrayStream
from tfrecord_io.base import OnDamage, StorageOptions
from tfrecord_io.columns import ImageHeader, row_batches
from tfrecord_io.errors import DecodeError, SchemaError
from tfrecord_io.kit import check_choice, for_cli, printable, warn
from tfrecord_io.plugins.vision.folder_files import FolderOptions, LeftOut, shuffle_files
from tfrecord_io.plugins.vision.masks_and_keypoints import Shape, ShapeColumns
from tfrecord_io.store import Directory, Entry, FileSystem, Folder
from tfrecord_io.typing import InvalidBoxes, Path

T = TypeVar("T")
MOST_BYTES = 16 << 20  # of a file of annotations


def read_annotations(
    files: Iterable[tuple[T, str, Entry | None]], fs: FileSystem, threads: int | None
) -> Iterator[tuple[T, bytes]]:
    """The content of each file of annotations, by a key and its path in messages; empty where an entry is missing.

    Raises
    ------
    DecodeError
        A file is too large.
    """

    def check(size: int | None, path: str) -> None:
        if (size or 0) > MOST_BYTES:
            reason = f"annotations of {size:,} bytes"
            raise DecodeError(reason, path=path, expected=f"at most {MOST_BYTES:,} bytes", got=size)

    def checked_files() -> Iterator[tuple[tuple[T, str], FileSystem, Entry | None]]:
        for key, path, entry in files:
            check(None if entry is None else entry.size, path)
            yield (key, path), fs, entry

    with closing(Folder.read_files(checked_files(), threads, [fs])) as contents:
        for (key, path), content in contents:
            check(len(content or b""), path)
            yield key, content or b""


class Objects(NamedTuple):
    """The objects of an image, as columns: `names` for messages, `boxes` in pixels, and `values` of each."""

    names: list[Any]  # of the annotation, or the number of the object
    boxes: list[tuple[float, float, float, float]]  # xmin, ymin, xmax, ymax
    values: list[tuple[Any, ...]]  # of the columns after the boxes

    def add(self, name: Any, box: tuple[float, float, float, float], values: tuple[Any, ...]) -> None:
        self.names.append(name)
        self.boxes.append(box)
        self.values.append(values)


@dataclass(slots=True)
class BoxRule:
    """Rule for boxes that are empty or beyond their image, and the number of boxes left out."""

    invalid: InvalidBoxes
    boxes: int = 0
    left_out: int = 0
    first: str = field(default="", init=False)  # the first box left out

    def normalize(
        self, objects: Objects, height: int, width: int, kind: str, image: str, path: str
    ) -> tuple[list[Any], ...]:
        """The columns xmin, xmax, ymin and ymax, from 0 to 1, and those of the values.

        Raises
        ------
        DecodeError
            A box is invalid, and such boxes are errors.
        """
        rows = []
        self.boxes += len(objects.boxes)
        for name, box, values in zip(*objects, strict=True):
            placed: Sequence[float] = box
            if self.invalid != "keep" and not _is_inside(box, height, width):
                where = f"the box of {kind} {name} of {image}"
                if self.invalid == "raise":
                    reason = f"{where} is empty or beyond the image"
                    expected = f"0 <= xmin < xmax <= {width} and 0 <= ymin < ymax <= {height}"
                    advice = 'invalid_boxes="skip" or "clip" accepts it'
                    advice_cli = "--invalid-boxes skip or clip accepts it"
                    raise DecodeError(reason, path=path, expected=expected, got=box, hint=advice, hint_cli=advice_cli)
                placed = max(box[0], 0.0), max(box[1], 0.0), min(box[2], float(width)), min(box[3], float(height))
                if self.invalid == "skip" or not _is_inside(placed, height, width):
                    self.left_out += 1
                    self.first = self.first or f"{where} in '{path}'"
                    continue
            xmin, ymin, xmax, ymax = placed
            rows.append((xmin / width, xmax / width, ymin / height, ymax / height, *values))
        return tuple(map(list, zip(*rows, strict=True)))


def _is_inside(box: Sequence[float], height: int, width: int) -> bool:
    xmin, ymin, xmax, ymax = box
    return 0 <= xmin < xmax <= width and 0 <= ymin < ymax <= height


OBJECT = "image/object/"
LABEL = "class/label"
CLASSES_KEY = b"tfrecord_io.classes"  # in the metadata of the column of labels: all classes, also those of no object
FRACTIONS = (-0.1, 1.1)  # range of fractions in boxes for trainers: TensorFlow takes larger numbers for pixels
_LEAST, _MOST = (float(np.float32(edge)) for edge in FRACTIONS)
_IMAGE = {
    "image/height": pa.int64(),
    "image/width": pa.int64(),
    "image/filename": pa.string(),
    "image/source_id": pa.string(),
    "image/key/sha256": pa.string(),
    "image/encoded": pa.binary(),
    "image/format": pa.string(),
}
_OBJECTS = {
    "bbox/xmin": pa.float32(),
    "bbox/xmax": pa.float32(),
    "bbox/ymin": pa.float32(),
    "bbox/ymax": pa.float32(),
    "class/text": pa.string(),
    LABEL: pa.int64(),
}


def is_fraction(place: float) -> bool:
    """True if a place on an axis can be a fraction of its length, and is not one in pixels.

    >>> is_fraction(1.05), is_fraction(320.0)
    (True, False)
    """
    return _LEAST <= place <= _MOST


class StatedClass(NamedTuple):
    """A class that a data set has, also if no object is of it."""

    id: int  # the label of its objects
    name: str
    supercategory: str = ""
    keypoints: Sequence[str] = ()  # their names


def add_classes(column: pa.Field, classes: Sequence[StatedClass]) -> pa.Field:
    """The column of labels, with all classes in its metadata."""
    class_rows = [
        {name: value for name, value in class_._asdict().items() if value or name == "id"} for class_ in classes
    ]
    return column.with_metadata({**(column.metadata or {}), CLASSES_KEY: json.dumps(class_rows).encode()})


def classes_of(column: pa.Field) -> list[StatedClass]:
    """The classes in the metadata of a column; none if there is no such metadata.

    Raises
    ------
    SchemaError
        The metadata is damaged.
    """
    text = (column.metadata or {}).get(CLASSES_KEY)
    if text is None:
        return []
    try:
        classes = [StatedClass(**members) for members in json.loads(text)]
        is_valid = all(
            isinstance(class_.id, int)
            and all(isinstance(name, str) for name in (class_.name, class_.supercategory, *class_.keypoints))
            for class_ in classes
        )
    except (TypeError, ValueError, RecursionError):
        is_valid = False
    if not is_valid:
        reason = f"its metadata is damaged: {CLASSES_KEY.decode()}"
        raise SchemaError(
            reason,
            feature=column.name,
            hint="class_names= names the classes",
            hint_cli="--class-names names the classes",
        )
    return classes


class AnnotatedImage(NamedTuple):
    """An image and its objects, as an annotation file states them."""

    name: str  # of its file, below the folder of images
    source_id: str
    height: int | None  # None: not stated
    width: int | None
    objects: Objects  # values: class, label, the `columns` of `Reading`, and a `Shape` if it has `shapes`
    path: str  # of the annotation file
    fractions: bool = False  # the boxes and shapes are fractions of the width and height
    unread: Sequence[str] = ()  # elements of the annotation without a column

    @property
    def text(self) -> str:
        """The image in a message."""
        return f"image '{printable(self.source_id)}'"


@dataclass(slots=True)
class TurnedImages:
    """Counts images whose boxes lie on the turned picture, after the EXIF orientation of the stored pixels."""

    orient: bool | None  # as stated by the caller
    images: int
    kept: int = field(default=0, init=False)  # the images that are turned
    unknown: int = field(default=0, init=False)  # images without a stated orientation
    first: list[str] = field(default_factory=lambda: ["", ""], init=False)  # of each of the two

    def is_of(self, image: AnnotatedImage, header: ImageHeader, path: str) -> bool:
        """True if the boxes of an image lie on the turned picture; fractions do, as YOLO turns photos."""
        if header.orientation == 1:
            return False
        is_turned = header.is_turned((image.height, image.width)) if self.orient is None else self.orient
        if is_turned is None and not image.fractions:
            self.unknown += 1
            self.first[1] = self.first[1] or path
        is_turned = image.fractions if is_turned is None else is_turned
        if is_turned:
            self.kept += 1
            self.first[0] = self.first[0] or path
        return is_turned

    def warn(self, path: str) -> None:
        """Warn of images that other readers would turn in another way."""
        text = f"{printable(path)}: {{:,}} of {self.images:,} images "
        if self.unknown:
            reason = "have an EXIF orientation, and no size that shows whether their boxes are of the turned picture: "
            reason += "they are taken as those of the stored pixels, and the orientation is taken out"
            reason += f"; orient=True takes them as those of the turned picture; the first: {self.first[1]}"
            warn(text.format(self.unknown) + reason, UserWarning)
        if self.kept:
            reason = "keep an EXIF orientation, as their boxes are those of the turned picture: tfr.image turns their "
            reason += f"pixels, but decoders of TensorFlow do not; the first: {self.first[0]}"
            warn(text.format(self.kept) + reason, UserWarning)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, init=False)
class AnnotationOptions(FolderOptions):
    """Keywords of calls that read images with annotations."""

    invalid_boxes: InvalidBoxes = "skip"
    check_sizes: bool = True
    orient: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("invalid_boxes", self.invalid_boxes, get_args(InvalidBoxes))
        check_choice("check_sizes", self.check_sizes, (False, True))
        check_choice("orient", self.orient, (None, False, True))


@dataclass(frozen=True, slots=True)
class Reading:
    """Options to read annotated images."""

    options: AnnotationOptions
    columns: Mapping[str, pa.DataType]  # of objects, besides the boxes and the classes
    kind: str  # the word for an object in the annotation file
    classes: Sequence[StatedClass]
    shapes: ShapeColumns | None = None

    def __post_init__(self) -> None:
        """Raise MissingDependencyError before anything is read."""
        ImageHeader.pillow("reading the sizes of images")

    def open(self, images: list[AnnotatedImage], folder: Path) -> ArrayStream:
        """The stream of the images, whose files are below a folder; none is opened yet."""
        fs, files, left_out = _find_files(images, folder, self.options.storage, self.options.on_error)
        if self.options.shuffle_seed is not None:
            files = shuffle_files(files, self.options.shuffle_seed)
        shapes = self.shapes.types if self.shapes else {}
        columns = {**_OBJECTS, **self.columns, **shapes}
        schema = pa.schema({**_IMAGE, **{f"{OBJECT}{name}": pa.list_(type_) for name, type_ in columns.items()}})
        at = schema.get_field_index(OBJECT + LABEL)
        schema = schema.set(at, add_classes(schema.field(at), self.classes))
        turned = TurnedImages(self.options.orient, len(files))
        batches = _Batches(self, fs, files=files, schema=schema, left_out=left_out, turned=turned).read()
        rows = None if self.options.damage.goes_on else len(files)
        return ArrayStream(schema, batches, rows, batches.close, num_files=len(files))


class _File(NamedTuple):
    """The file of an image."""

    image: AnnotatedImage
    entry: Entry

    @property
    def name(self) -> str:
        return self.image.name


@dataclass(slots=True)
class _Batches:
    """The batches of the images, and what is left out of them."""

    reading: Reading
    fs: FileSystem
    files: list[_File]
    schema: pa.Schema
    left_out: LeftOut  # images, at first those without a file
    turned: TurnedImages

    def read(self) -> Generator[pa.RecordBatch]:
        options = self.reading.options
        rule = BoxRule(options.invalid_boxes)
        files = ((file, self.fs, file.entry) for file in self.files)
        with closing(Folder.read_files(files, options.threads, [self.fs])) as contents:
            yield from row_batches(self._rows(contents, rule), self.schema)
        self.left_out.warn(self.files[0].image.path)
        self.turned.warn(self.files[0].image.path)
        if rule.left_out:
            text = f"{rule.left_out:,} of {rule.boxes:,} boxes left out, as they are empty or beyond their image, "
            warn(f"{text}the first: {rule.first}", UserWarning)

    def _rows(
        self, contents: Iterable[tuple[_File, bytes | None]], rule: BoxRule
    ) -> Iterator[tuple[tuple[Any, ...], int]]:
        """The rows of the images that can be read, and their sizes."""
        for file, content in contents:
            assert content is not None
            try:
                yield self._row(file, content, rule), len(content)
            except DecodeError as error:
                self.left_out.add_or_raise(error, self.reading.options.on_error)

    def _row(self, file: _File, content: bytes, rule: BoxRule) -> tuple[Any, ...]:
        image, path = file.image, self.fs.display_path(file.entry.name)
        header = ImageHeader.read(content, path)
        is_turned = self.turned.is_of(image, header, path)
        image_size = header.turned_size if is_turned else (header.height, header.width)
        height, width = image.height or image_size[0], image.width or image_size[1]
        if self.reading.options.check_sizes and (height, width) != image_size:
            reason = f"the image has {image_size[1]}×{image_size[0]} pixels, but '{printable(image.path)}' states "
            reason += f"{width}×{height} for {image.text}, so its boxes may be of another image"
            advice = 'on_error="skip" leaves it out; check_sizes=False uses the stated size'
            advice_cli = "--on-error skip leaves it out; --no-check-sizes uses the stated size"
            if image_size != header.turned_size == (height, width):
                advice = f"it is turned by its EXIF orientation {header.orientation}: orient=True uses that; {advice}"
                advice_cli = f"it is turned by its EXIF orientation {header.orientation}: --orient uses that; {advice}"
            size = image_size
            raise DecodeError(reason, path=path, expected=(height, width), got=size, hint=advice, hint_cli=advice_cli)
        if header.orientation != 1 and not is_turned:
            advice = 'on_error="skip" leaves it out; or remove the orientation from the file'
            advice_cli = "--on-error skip leaves it out; or remove the orientation from the file"
            content = header.remove_orientation(content, path, advice)
        size = (1, 1) if image.fractions else (height, width)
        columns = rule.normalize(image.objects, *size, self.reading.kind, image.text, image.path)
        shapes = self.reading.shapes
        if self.reading.options.invalid_boxes != "keep":
            self._check_points(image, *size)
        if not columns:
            columns = tuple([] for _ in range(len(self.schema) - len(_IMAGE)))
        elif shapes is not None:
            try:
                columns = *columns[:-1], *shapes.values(columns[-1], height, width, fractions=image.fractions)
            except ValueError as error:
                raise DecodeError(f"a mask of {image.text} cannot be used: {error}", path=image.path) from None
        key = hashlib.sha256(content).hexdigest()
        return height, width, image.name, image.source_id, key, content, header.format, *columns

    def _check_points(self, image: AnnotatedImage, height: int, width: int) -> None:
        """Refuse labelled key points far beyond the image."""
        if self.reading.shapes is None:
            return
        for name, values in zip(image.objects.names, image.objects.values, strict=True):
            shape: Shape = values[-1]
            where = f"{self.reading.kind} {name} of {image.text}"
            for x, y, visibility in zip(*(shape.keypoints[at::3] for at in range(3)), strict=True):
                if visibility and not (is_fraction(x / width) and is_fraction(y / height)):
                    expected = f"fractions of the width and height from {FRACTIONS[0]} to {FRACTIONS[1]}"
                    reason = f"a key point of {where} is far beyond the image, which has {width}×{height} pixels"
                    advice = 'invalid_boxes="keep" keeps it'
                    advice_cli = "--invalid-boxes keep keeps it"
                    raise DecodeError(
                        reason, path=image.path, expected=expected, got=(x, y), hint=advice, hint_cli=advice_cli
                    )


def _find_files(
    images: list[AnnotatedImage], folder: Path, storage: StorageOptions, on_error: str
) -> tuple[FileSystem, list[_File], LeftOut]:
    """The files of the images, and the images without one.

    Raises
    ------
    DecodeError
        A name leads out of the folder.
    FileNotFoundError
        A file does not exist, unless those are left out; all of them do not; or the folder does not.
    """
    root = Directory.find(os.fspath(folder), storage)
    fs = root.fs
    names = [_path_below(image, root) for image in images]
    start = f"{root.join('')}/"
    images = [image._replace(name=name.removeprefix(start)) for image, name in zip(images, names, strict=True)]
    entries = fs.entries(names)
    files, missing = [], []
    for image, path, entry in zip(images, names, entries, strict=True):
        if entry is None or entry.directory:
            missing.append((image, path))
        else:
            files.append(_File(image, entry))
    left_out = LeftOut("images", len(images))
    if not missing:
        return fs, files, left_out
    image, path = missing[0]
    if OnDamage.of(on_error).is_strict or not files:
        text = f"{image.text} of '{printable(image.path)}' does not exist"
        if len(missing) > 1:
            text += f"; {len(missing):,} of {len(images):,} images are missing"
        advice = "is images= the right folder?" if not files else 'on_error="skip" leaves such images out'
        error = FileNotFoundError(errno.ENOENT, f"{text}; {advice}", fs.display_path(path))
        advice_cli = "is --images the right folder?" if not files else "--on-error skip leaves such images out"
        raise for_cli(error, f"{text}; {advice_cli}")
    left_out.add(f"'{fs.display_path(path)}' does not exist", len(missing))
    return fs, files, left_out


def _path_below(image: AnnotatedImage, root: Directory) -> str:
    """The path of an image below a folder."""
    reason, name = Directory.leads_out(image.name), root.join(image.name)
    if reason is None and root.is_left_by(name):
        reason = "a link leads out of it"
    if reason is None:
        return name
    text = f"the file name of {image.text} does not stay below the folder of images: {reason}"
    raise DecodeError(text, path=image.path, expected="a relative path", got=image.name, hint="correct the name")
