"""Images with the labels of a folder in the layout of YOLO: boxes, polygons or key points."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from tfrecord_io.apps.file_formats.array_files.array_stream import ArrayStream
from tfrecord_io.base import StorageOptions
from tfrecord_io.columns import ImageHeader
from tfrecord_io.errors import DecodeError
from tfrecord_io.kit import check_choice, check_keywords, for_cli, needs, printable
from tfrecord_io.plugins.vision.annotated_images import (
    FRACTIONS,
    MOST_BYTES,
    AnnotatedImage,
    AnnotationOptions,
    Objects,
    Reading,
    StatedClass,
    is_fraction,
    read_annotations,
)
from tfrecord_io.plugins.vision.masks_and_keypoints import MOST_KEYPOINTS, Shape, ShapeColumns, pixels_in
from tfrecord_io.store import Directory, Entry, FileSystem, Folder, Source
from tfrecord_io.typing import InvalidBoxes, Masks, OnFileError, Path, StorageLike

IMAGES, LABELS, DATA, CLASSES = "images", "labels", "data.yaml", "classes.txt"
_YAML = (".yaml", ".yml")
_YAML_BYTES = 1 << 20
_NO_IMAGES = (".txt", ".yaml", ".yml", ".cache", ".md")  # may be next to images
_MOST_CLASSES = 100_000
_ROUNDED = 1e-5  # coordinates are rounded in text: a value this little beyond an edge is on the edge


@check_keywords
def open_yolo(
    path: Path,
    images: Path | None = None,
    *,
    image_set: str | None = None,
    class_names: Sequence[str] | None = None,
    masks: Masks | None = None,
    invalid_boxes: InvalidBoxes = "skip",
    check_sizes: bool = True,
    orient: bool | None = None,
    shuffle_seed: int | None = None,
    on_error: OnFileError = "raise",
    threads: int | None = None,
    storage_options: StorageLike | None = None,
) -> ArrayStream:
    """Read images with the labels of YOLO as a stream of record batches, with a row for each image.

    >>> import os
    >>> import tfrecord_io as tfr
    >>> from PIL import Image
    >>> os.makedirs("coco8/images"), os.makedirs("coco8/labels")
    (None, None)
    >>> Image.new("RGB", (40, 20)).save("coco8/images/1.jpg")
    >>> _ = open("coco8/labels/1.txt", "w").write("1 0.5 0.5 0.5 0.5\\n")
    >>> table = tfr.formats.open_yolo("coco8", class_names=["cat", "dog"]).read_all()
    >>> rows = table.to_pylist()
    >>> (
    ...     rows[0]["image/object/bbox/xmin"],
    ...     rows[0]["image/object/class/text"],
    ...     rows[0]["image/object/class/label"],
    ... )
    ([0.25], ['dog'], [2])

    Parameters
    ----------
    path : str or PathLike
        A folder, local or in a bucket, with the folders ``images`` and ``labels``; or the ``data.yaml`` in it. The
        labels of ``images/a/1.jpg`` are in ``labels/a/1.txt``, those of ``train/images/1.jpg`` in
        ``train/labels/1.txt``, and those of an image that is not in a folder ``images`` next to it: a line
        ``class x y width height`` for each object, as fractions of the image with x and y in the centre,
        ``class x y x y x y …`` with the corners of a polygon, or, if ``data.yaml`` has ``kpt_shape``, a box and key
        points. An image without this file has no objects.
    images : str or PathLike, optional
        The folder of the images, instead of ``images`` in `path`. Unless it is in `path` and itself in a folder
        ``images``, the labels are in ``labels``, or in `path` itself.
    image_set : str, optional
        ``"train"``, ``"val"`` or ``"test"``: the images that ``data.yaml`` names so, a folder or a text file with
        their paths; else those in ``images/<image_set>`` or ``<image_set>/images``.
    class_names : sequence of str, optional
        The names of the classes 0, 1, …; by default ``names`` of ``data.yaml``, or the lines of ``classes.txt``. Their
        labels are 1, 2, …, as the Object Detection API keeps 0 for the background.
    masks : {"json", "png"}, optional
        Whether polygons are read, and as what: as in `open_coco`. The box of an object with a polygon is around it.
    invalid_boxes, check_sizes, orient, shuffle_seed, on_error, threads
        As in `open_coco`. YOLO turns photos: by default the boxes are those of the turned picture. An edge beyond the
        image by at most 0.00001 is rounded, and placed on the image's.
    storage_options
        As in `tfrecord_io.read_table`.

    Returns
    -------
    ArrayStream
        With the columns of `open_coco`, except ``is_crowd`` and ``area``. ``image/source_id`` is the file name. All
        labels are read first, and held in memory.

    Raises
    ------
    DecodeError
        A line is not a label, or its class has no name; file and line are named. A path leads out of the folder. Or an
        image is damaged.
    FileNotFoundError
        There are no images, or no names of classes, or no image has a file of labels.
    MissingDependencyError
        The package pillow is not installed, or pyyaml, where there is a ``data.yaml``.
    """
    options = AnnotationOptions(
        invalid_boxes=invalid_boxes,
        check_sizes=check_sizes,
        orient=orient,
        shuffle_seed=shuffle_seed,
        on_error=on_error,
        threads=threads,
        storage_options=storage_options,
    )
    check_choice("masks", masks, (None, *get_args(Masks)))
    ImageHeader.pillow("reading the sizes of images")
    if (
        image_set is not None
        and (wrong := "it has a slash" if "/" in image_set else Directory.name_fault(image_set)) is not None
    ):
        raise ValueError(f"image_set={image_set!r}: expected the name of a set, such as 'train'; {wrong}")
    dataset = _Dataset.open(os.fspath(path), options.storage)
    names = list(class_names) if class_names is not None else dataset.class_names()
    labels = _Labels(names, dataset.keypoints())
    folder = os.fspath(images) if images is not None else None
    images_of_set = dataset.images(folder, image_set)
    annotated = [labels.read(image, content) for image, content in _contents(images_of_set, options)]
    _warn_of_labels(images_of_set)
    shapes = ShapeColumns(masks, labels.keypoints[0])
    classes = [StatedClass(number, name) for number, name in enumerate(names, start=1)]
    return Reading(options, {}, kind="object", classes=classes, shapes=shapes).open(annotated, images_of_set.folder)


class _Images(NamedTuple):
    """Images, and where their labels are."""

    folder: str  # the names are relative to it
    names: list[str]
    labels: Directory  # the folder with the labels
    files: list[str]  # the label files, below it
    path: str  # of the file with the list


class _Dataset(NamedTuple):
    """A folder, and what ``data.yaml`` in it says."""

    path: str
    root: Directory
    storage: StorageOptions
    data: Mapping[str, Any]
    source: str  # the path of `data`

    @classmethod
    def open(cls, path: str, storage: StorageOptions) -> _Dataset:
        """Find the folder, and read ``data.yaml`` in it: it also says whether lines have polygons or key points."""
        folder, name = os.path.split(path) if path.lower().endswith(_YAML) else (path, "")
        root = Directory.find(folder or ".", storage)
        entry = root.fs.entry(root.join(name or DATA))
        if entry is None and name:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        source = f"{folder.rstrip('/') or '.'}/{name or DATA}"
        data = {} if entry is None else _load_yaml(root.fs, entry, source)
        return cls(folder or ".", root, storage=storage, data=data, source=source)

    def _entry(self, name: str) -> Entry | None:
        """The file or folder of this name below the folder."""
        return self.root.fs.entry(self.root.join(name))

    def class_names(self) -> list[str]:
        """The names of the classes, in the order of their numbers."""
        if "names" in self.data:
            return _names(self.data["names"], self.source)
        for place in ("", f"{LABELS}/"):
            if (entry := self._entry(f"{place}{CLASSES}")) is not None:
                text = _text(self.root.fs, entry, MOST_BYTES)
                names = [line.strip() for line in text.rstrip().splitlines()]
                if "" in names:
                    reason = f"line {names.index('') + 1} is empty, so the classes after it have no certain number"
                    path = self.root.fs.display_path(entry.name)
                    raise DecodeError(reason, path=path, expected="a name in each line", hint="remove or fill it")
                return names
        reason = f"it has no {DATA} with 'names' and no {CLASSES}; {{}} gives the names of the classes"
        error = FileNotFoundError(errno.ENOENT, reason.format("class_names="), self.path)
        raise for_cli(error, reason.format("--class-names"))

    def keypoints(self) -> tuple[int, int]:
        """The number of key points of an object, and of values of each."""
        shape = self.data.get("kpt_shape")
        if shape is None:
            return 0, 0
        is_shape = isinstance(shape, list) and len(shape) == 2 and all(map(_is_index, shape))
        if not is_shape or not 0 < int(shape[0]) <= MOST_KEYPOINTS or int(shape[1]) not in (2, 3):
            raise DecodeError("'kpt_shape' is not [points, 2 or 3]", path=self.source, expected="[17, 3]", got=shape)
        return int(shape[0]), int(shape[1])

    def images(self, images: str | None, image_set: str | None) -> _Images:
        """The images of a set, and their label files."""
        place = None if images is not None else self._place(image_set)
        if place is not None and place.endswith(".txt"):
            return self._images_of_list(place)
        images = images or (f"{self.path.rstrip('/')}/{place}" if place else self.path)
        folder = Folder.list_images(images, self.storage)
        if not folder.files:
            text = f"the folder has no {', '.join(Folder.IMAGE_SUFFIXES)} files"
            text = text if image_set else f"{text}; image_set= names another folder"
            raise FileNotFoundError(errno.ENOENT, text, images)
        non_images = [file for file in folder.other_files if not file.name.lower().endswith(_NO_IMAGES)]
        folder.warn_of_others("not an image", non_images)
        names = [file.name for file in folder.files]
        place = self._path_below(folder, names) if place is None else place
        if place is not None:
            labels, files = _label_files(place, names)
        else:
            labels = LABELS if self._entry(LABELS) is not None else ""
            files = [_label_name(name) for name in names]
        below = Directory.from_filesystem(self.root.fs, self.root.join(labels))
        return _Images(images, names, labels=below, files=files, path=images)

    def _path_below(self, images: Folder, names: Sequence[str]) -> str | None:
        """The path of a folder of images below this one; None outside of it, or without a folder ``images``."""
        root = self.root.fs.display_path(self.root.name).rstrip("/") + "/"
        path = images.files[0].entry.name.removesuffix(names[0])
        place = images.fs.display_path(path.rstrip("/")).removeprefix(root)
        is_below = images.fs.display_path(path).startswith(root)
        return place if is_below and IMAGES in f"{place}/{names[0]}".split("/") else None

    def _place(self, image_set: str | None) -> str:
        """The folder of the images of a set, relative to the dataset's folder."""
        if image_set is None:
            return IMAGES if self._entry(IMAGES) is not None else ""
        place: Any = self.data.get(image_set)
        if place in (None, ""):
            places = (f"{IMAGES}/{image_set}", f"{image_set}/{IMAGES}")
            image_place = next((candidate for candidate in places if self._entry(candidate) is not None), None)
            if image_place is None:
                reason = f"no such image set: no '{places[0]}', no '{places[1]}', and '{image_set}' is not in {DATA}"
                raise FileNotFoundError(errno.ENOENT, reason, self.path)
            return image_place
        if not isinstance(place, str):
            raise DecodeError(f"'{image_set}' is not one path", path=self.source, expected="a path", got=place)
        place = place.removeprefix("../")  # of exports whose data.yaml was meant to be one level deeper
        if (wrong := Directory.leads_out(place)) is not None:
            raise self._leads_out(f"'{image_set}'", wrong, place)
        return place

    def _images_of_list(self, place: str) -> _Images:
        """The images that a text file names, relative to the folder."""
        entry, shown = self._entry(place), f"{self.path.rstrip('/')}/{place}"
        if entry is None:
            raise FileNotFoundError(errno.ENOENT, "no such list of images", shown)
        lines = _text(self.root.fs, entry, MOST_BYTES).splitlines()
        names = [line.strip() for line in lines if line.strip()]
        for name in names:
            if (reason := Directory.leads_out(name)) is not None:
                raise self._leads_out("a path", reason, name, shown)
        if not names or len(set(names)) < len(names):
            raise DecodeError("the list of images is empty" if not names else "it has an image twice", path=shown)
        files = [_label_name(_labels_folder(name)) for name in names]
        return _Images(self.path, names, labels=self.root, files=files, path=shown)

    def _leads_out(self, what: str, reason: str, place: str, path: str | None = None) -> DecodeError:
        text = f"{what} does not stay below the folder: {reason}"
        return DecodeError(text, path=path or self.source, expected="a relative path", got=place, hint="correct it")


def _labels_folder(images: str) -> str:
    """The folder of labels: the last folder ``images`` of a path becomes ``labels``.

    >>> _labels_folder("a/images/train"), _labels_folder("images/x/images"), _labels_folder("photos")
    ('a/labels/train', 'images/x/labels', 'photos')
    """
    parts = images.split("/")
    if IMAGES in parts:
        parts[len(parts) - 1 - parts[::-1].index(IMAGES)] = LABELS
    return "/".join(parts)


def _label_files(place: str, names: Sequence[str]) -> tuple[str, list[str]]:
    """The folder of the labels of the images in a folder, and their names in it.

    >>> _label_files("images/train", ["1.jpg"]), _label_files("train", ["images/1.jpg"])
    (('labels/train', ['1.txt']), ('', ['train/labels/1.txt']))
    """
    if any(IMAGES in name.split("/") for name in names):
        return "", [_label_name(_labels_folder(f"{place}/{name}")) for name in names]
    return _labels_folder(place), [_label_name(name) for name in names]


def _label_name(name: str) -> str:
    return os.path.splitext(name)[0] + ".txt"


def _contents(images: _Images, options: AnnotationOptions) -> Iterator[tuple[tuple[str, str], bytes]]:
    """The name of each image with the path of its labels, and their content."""
    fs = images.labels.fs
    paths = [images.labels.join(file) for file in images.files]
    entries = fs.entries(paths)
    if not any(entries):
        reason = f"none of its {len(paths)} images has labels, the first in '{printable(fs.display_path(paths[0]))}'"
        advice = "pass the folder with 'images' and 'labels', or read images without objects by open_image_folder"
        raise FileNotFoundError(errno.ENOENT, f"{reason}; {advice}", images.path)

    def checked_files() -> Iterator[tuple[tuple[str, str], str, Entry | None]]:
        for name, path, entry in zip(images.names, paths, entries, strict=True):
            shown = fs.display_path(path)
            if entry is not None and images.labels.is_left_by(path):
                raise DecodeError("a link leads out of the folder of labels", path=shown, hint="copy the file")
            yield (name, shown), shown, None if entry is None or entry.directory else entry

    return read_annotations(checked_files(), fs, options.threads)


def _warn_of_labels(images: _Images) -> None:
    """Warn of label files without an image, where a folder has nothing but labels."""
    labels = images.labels
    if LABELS not in labels.name.split("/"):
        return
    read = {*images.files, CLASSES}
    folder = Folder.list_below(labels, labels.fs.display_path(labels.name.rstrip("/")), (".txt",))
    folder.warn_of_others("without an image", [file for file in folder.files if file.name not in read])


class _Labels(NamedTuple):
    """Options to read lines of labels."""

    names: Sequence[str]
    keypoints: tuple[int, int]  # of an object, and values of each

    def read(self, image: tuple[str, str], content: bytes) -> AnnotatedImage:
        """The objects of an image.

        Raises
        ------
        DecodeError
            A line is none of a label.
        """
        name, path = image
        count, values_each = self.keypoints
        expected = "class x y width height, or class x y x y x y …"
        if count:
            expected = f"a class, a box, and {count} key points of {values_each} values"
        objects = Objects([], [], [])
        try:
            lines = content.decode("utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise DecodeError("not a file of labels", path=path, expected="numbers as text", got=error.reason) from None
        for number, line in enumerate(lines, start=1):
            words = line.split()
            if not words:
                continue
            try:
                label, box, shape = self._object(words)
            except ValueError as error:
                text = f"line {number}: {error}"
                raise DecodeError(text, path=path, expected=expected, got=printable(line, 80)) from None
            objects.add(number, box, (self.names[label], label + 1, shape))
        return AnnotatedImage(name, name, height=None, width=None, objects=objects, path=path, fractions=True)

    def _object(self, words: list[str]) -> tuple[int, tuple[float, float, float, float], Shape]:
        """The class, box and shape of a line; ValueError if it is none."""
        numbers: list[float] = []
        for word in words:
            if (number := pixels_in(word)) is None:
                raise ValueError(f"'{printable(word, 40)}' is not a number")
            numbers.append(number)
        label = numbers[0]
        if not label.is_integer() or not 0 <= label < len(self.names):
            raise ValueError(f"'{printable(words[0], 40)}' is not one of the {len(self.names)} classes, from 0")
        values = numbers[1:]
        count, values_each = self.keypoints
        if count:
            if len(values) != 4 + count * values_each:
                raise ValueError(f"it has {len(numbers)} numbers, expected {5 + count * values_each}")
            _check_fractions([*values[:4], *_labelled_coordinates(values[4:], values_each)])
            return int(label), _box(values[:4]), _points(values[4:], values_each)
        if len(values) == 4 or (len(values) >= 6 and len(values) % 2 == 0):
            _check_fractions(values)
        if len(values) == 4:
            x0, y0, x1, y1 = box = _box(values)
            corners = [x0, y0, x1, y0, x1, y1, x0, y1]
            return int(label), box, Shape([corners])
        if len(values) < 6 or len(values) % 2:
            raise ValueError(f"it has {len(numbers)} numbers")
        values = [_snap_to_edge(value) for value in values]
        around = min(values[0::2]), min(values[1::2]), max(values[0::2]), max(values[1::2])
        return int(label), around, Shape([values])


def _box(values: list[float]) -> tuple[float, float, float, float]:
    x, y, width, height = values
    corners = x - width / 2, y - height / 2, x + width / 2, y + height / 2
    x0, y0, x1, y1 = map(_snap_to_edge, corners)
    return x0, y0, x1, y1


def _snap_to_edge(value: float) -> float:
    return min(max(value, 0.0), 1.0) if -_ROUNDED <= value <= 1 + _ROUNDED else value


def _check_fractions(places: Sequence[float]) -> None:
    """Raise ValueError for places that are stated in pixels."""
    for place in places:
        if not is_fraction(place):
            expected = f"a fraction of the width or height from {FRACTIONS[0]} to {FRACTIONS[1]}"
            raise ValueError(f"{place} is not {expected}: it looks like pixels")


def _labelled_coordinates(values: list[float], size: int) -> Iterator[float]:
    """Coordinates of the labelled key points of an object; unlabelled points have no meaningful ones."""
    for at in range(0, len(values), size):
        if size == 2 or values[at + 2 : at + 3] != [0]:
            yield from values[at : at + 2]


def _points(values: list[float], values_each: int) -> Shape:
    x, y = values[0::values_each], values[1::values_each]
    visible = (
        values[2::values_each]
        if values_each == 3
        else [0.0 if place == (0, 0) else 2.0 for place in zip(x, y, strict=True)]
    )
    if not set(visible) <= {0.0, 1.0, 2.0}:
        raise ValueError("the visibility of a key point is not 0, 1 or 2")
    points = [value for point in zip(x, y, visible, strict=True) for value in point]
    return Shape(None, points, sum(value > 0 for value in visible))


def _text(fs: FileSystem, entry: Entry, limit: int) -> str:
    path = fs.display_path(entry.name)
    content = Source.from_entry(fs, entry).read(limit)
    if len(content) > limit:
        raise DecodeError(f"the file has more than {limit:,} bytes", path=path, expected=limit, got=entry.size)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DecodeError("not UTF-8", path=path, expected="text", got=error.reason) from None


# ---- data.yaml


def _load_yaml(fs: FileSystem, entry: Entry, path: str) -> Mapping[str, Any]:
    """The mapping of ``data.yaml``, all scalars as text: a class may be called ``no``, or 1."""
    with needs("yolo", f"reading {DATA}"):
        import yaml
    text = _text(fs, entry, _YAML_BYTES)
    try:
        data = yaml.load(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = printable(str(error).replace("\n", " "), 160) or type(error).__name__
        raise DecodeError(f"not valid YAML: {reason}", path=path, expected=f"a {DATA} of YOLO") from None
    if not isinstance(data, dict):
        raise DecodeError("the document is not a mapping", path=path, expected=f"a {DATA} of YOLO")
    return data


def _names(names: Any, path: str) -> list[str]:
    """The names of the classes, from a list or a mapping of their numbers."""
    expected = "a list of names, or a mapping 0: name, 1: name, …"
    if isinstance(names, dict) and names and all(map(_is_index, names)):
        by_number = {int(number): name for number, name in names.items()}
        names = [by_number.get(number) for number in range(len(by_number))]
    if not isinstance(names, list) or len(names) > _MOST_CLASSES:
        raise DecodeError("'names' are not the names of classes", path=path, expected=expected)
    if not all(isinstance(name, str) and name for name in names):
        raise DecodeError("'names' lack that of a class", path=path, expected=expected)
    return names


def _is_index(value: object) -> bool:
    return isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10
