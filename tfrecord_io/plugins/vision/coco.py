"""Images with the annotations of a COCO file."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from typing import Any, NoReturn, get_args

import pyarrow as pa

from tfrecord_io.apps.file_formats.array_files.array_stream import ArrayStream
from tfrecord_io.base import StorageOptions
from tfrecord_io.columns import ImageHeader
from tfrecord_io.errors import DecodeError
from tfrecord_io.kit import check_choice, check_keywords, printable, warn
from tfrecord_io.plugins.vision.annotated_images import AnnotatedImage, AnnotationOptions, Objects, Reading, StatedClass
from tfrecord_io.plugins.vision.folder_files import LeftOut
from tfrecord_io.plugins.vision.masks_and_keypoints import (
    MOST_KEYPOINTS,
    Shape,
    ShapeColumns,
    check_segmentation,
    number_below,
    pixels,
)
from tfrecord_io.store import Location, Source
from tfrecord_io.typing import InvalidBoxes, Masks, OnFileError, Path, StorageLike

_EXPECTED = "a COCO file of object annotations, such as instances_train2017.json"
_COLUMNS = {"is_crowd": pa.int64(), "area": pa.float32()}
_OPTIONAL = {  # only in some files
    "annotation_id": pa.int64(),
    "score": pa.float32(),
    "attributes": pa.string(),
    "class/supercategory": pa.string(),
}
_MOST_BYTES = 2**31 - 1  # of a file
_MOST_SCORE = 2.0**127  # of a float32
_MOST_AREA = 2**63
_READ = {  # keys stored in columns, or only about the image file
    "images": {"id", "file_name", "height", "width", "license", "flickr_url", "coco_url", "date_captured"},
    "categories": {"id", "name", "supercategory", "keypoints"},
    "annotations": {"id", "image_id", "category_id", "bbox", "area", "iscrowd", "segmentation", "keypoints"}
    | {"num_keypoints", "score", "attributes"},
}


@check_keywords
def open_coco(
    annotations: Path,
    images: Path,
    *,
    masks: Masks | None = None,
    invalid_boxes: InvalidBoxes = "skip",
    check_sizes: bool = True,
    orient: bool | None = None,
    shuffle_seed: int | None = None,
    on_error: OnFileError = "raise",
    threads: int | None = None,
    storage_options: StorageLike | None = None,
) -> ArrayStream:
    """Read images with the boxes of a COCO file as a stream of record batches, with a row for each image.

    The columns are the features that ``create_coco_tf_record.py`` of TensorFlow's Object Detection API writes.

    >>> import json, os
    >>> import tfrecord_io as tfr
    >>> from PIL import Image
    >>> os.mkdir("pets")
    >>> Image.new("RGB", (40, 20)).save("pets/1.jpg")
    >>> coco = {
    ...     "images": [{"id": 7, "file_name": "1.jpg", "width": 40, "height": 20}],
    ...     "categories": [{"id": 18, "name": "dog"}],
    ...     "annotations": [
    ...         {
    ...             "id": 1,
    ...             "image_id": 7,
    ...             "category_id": 18,
    ...             "bbox": [10, 5, 20, 10],
    ...             "area": 150,
    ...         }
    ...     ],
    ... }
    >>> json.dump(coco, open("instances.json", "w"))
    >>> _ = tfr.write_tfrecord(
    ...     tfr.formats.open_coco("instances.json", images="pets"), "pets.tfrecord"
    ... )
    >>> table = tfr.read_table(
    ...     "pets.tfrecord", columns=["image/object/bbox/x*", "image/object/class/*"]
    ... )
    >>> table.to_pylist()  # doctest: +NORMALIZE_WHITESPACE
    [{'image/object/bbox/xmin': [0.25], 'image/object/bbox/xmax': [0.75],
      'image/object/class/text': ['dog'], 'image/object/class/label': [18]}]

    Parameters
    ----------
    annotations : str or PathLike
        The JSON file with ``images``, ``annotations`` and ``categories``, such as ``instances_train2017.json``.
    images : str or PathLike
        The folder, local or in a bucket, that the ``file_name`` of an image is relative to and stays in.
    masks : {"json", "png"}, optional
        Whether masks are read: "json" as they are, the text of COCO's polygons or run-length encoded mask for each
        object, in ``image/object/segmentation``; "png" as images of 0 and 1 in ``image/object/mask``, as the script
        writes them, pixel by pixel those of pycocotools.
    invalid_boxes : {"skip", "clip", "keep", "raise"}
        What becomes of a box whose width or height is not positive, or which is partly beyond the image: it is left
        out, with a warning; cut off at the image's edges, or left out if nothing remains; kept as it is; or a
        DecodeError, of which `on_error` decides.
    check_sizes : bool, default True
        Whether an image whose size is not the stated one is an error, of which `on_error` decides. False: the stated
        ``height`` and ``width`` are used, unseen.
    orient : bool, optional
        Of photos with an EXIF orientation: whether boxes, masks and key points are those of the turned picture (True),
        or of the pixels as stored (False), as for pycocotools and torchvision. By default the stated size decides;
        where it cannot, as of square photos, they are those of the stored pixels, with a warning. Pixels follow: those
        of the turned picture keep their orientation, which `tfrecord_io.image` applies; of the others it is taken out
        of the metadata, so that no reader turns them. The pixels are not encoded again.
    shuffle_seed : int, optional
        Read the images in a random order, which depends on their names and the seed alone. By default in the order of
        the file.
    on_error : {"raise", "skip"}
        Whether an image that does not exist, is damaged or has another size than stated ends the stream, or is left
        out, with a warning; and so an annotation whose image is not in the file.
    threads : int, optional
        Number of threads that read images; by default the number of CPU cores, and 16 in a bucket.
    storage_options
        As in `tfrecord_io.read_table`.

    Returns
    -------
    ArrayStream
        For `tfrecord_io.write_tfrecord` or any consumer of Arrow streams, with the columns ``image/height``,
        ``image/width`` (int64), ``image/filename``, ``image/source_id`` (the id as text), ``image/key/sha256`` (in
        hexadecimal), ``image/encoded`` (the bytes of the file, see `orient`), ``image/format`` ("jpeg", "png", …), and
        lists with a value for each object: ``image/object/bbox/xmin``, ``xmax``, ``ymin``, ``ymax`` (float32, as a
        fraction of the width or height), ``image/object/class/text``, ``image/object/class/label`` (the id of the
        category), ``image/object/is_crowd`` (0 or 1) and ``image/object/area`` (float32, in pixels). An image without
        objects has empty lists. Without ``iscrowd``, an object is none (0); without ``area``, it has that of its box.
        If the file states them: ``image/object/annotation_id`` (int64), ``image/object/score`` (float32),
        ``image/object/attributes`` (JSON) and ``image/object/class/supercategory``; ids and scores that not all
        annotations have, and other keys, are named in a warning. If there are key points: ``image/object/keypoint/x``,
        ``y`` (float32 fractions), ``visibility`` (0, 1, 2) and ``text`` (the name), with as many values for each object
        as the most have, and ``image/object/keypoint/num``, how many of an object are labelled. Memory holds the
        annotations, without masks that are not read, and a few dozen megabytes of images.

    Raises
    ------
    DecodeError
        The file is not one of COCO annotations, has an id of an image or category twice, names an unknown one, or a
        file name leads out of the folder; the annotation is named. Or an image is damaged.
    FileNotFoundError
        The file, the folder or an image does not exist.
    MissingDependencyError
        The package pillow is not installed.
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
    path = os.fspath(annotations)
    check_choice("masks", masks, (None, *get_args(Masks)))
    ImageHeader.pillow("reading the sizes of images")
    document = _load(path, options.storage, with_masks=masks is not None)
    coco = _Coco(path, document, with_masks=masks is not None)
    annotated = coco.images(skip_unknown=options.damage.goes_on)
    shapes = ShapeColumns(masks, coco.most_keypoints, coco.has_names)
    coco.warn()
    return Reading(options, _COLUMNS | coco.columns, kind="annotation", classes=coco.classes(), shapes=shapes).open(
        annotated, images
    )


def _load(path: str, storage: StorageOptions, *, with_masks: bool) -> Any:
    """The document, without masks unless they are read."""
    fs, name = Location.of(path, storage)
    entry = fs.entry(name)
    if entry is None or entry.directory:
        raise OSError(errno.ENOENT if entry is None else errno.EISDIR, "expected a COCO file", path)
    content = Source.from_entry(fs, entry).read(_MOST_BYTES)
    if len(content) > _MOST_BYTES:
        raise DecodeError("the file is larger than 2 GiB", path=path, expected=_EXPECTED, hint="split its images")
    try:
        hook = None if with_masks else _drop_segmentation
        return json.loads(content, object_hook=hook, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        form = ImageHeader.looks_like(content)
        reason = f"not valid JSON: {printable(error, 100)}" + (f"; it looks like {form}" if form is not None else "")
        raise DecodeError(reason, path=path, expected=_EXPECTED) from None


def _drop_segmentation(fields: dict[str, Any]) -> dict[str, Any]:
    """An object of the document without its polygons, which are most of the file."""
    fields.pop("segmentation", None)
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


class _Coco:
    """The lists of a COCO document, and the checks of their members."""

    def __init__(self, path: str, document: Any, *, with_masks: bool) -> None:
        self._path, self._with_masks = path, with_masks
        self.most_keypoints = 0  # of an object
        self.has_names = False  # True if key points have names
        for name in ("images", "annotations", "categories"):
            if not isinstance(document, dict) or not isinstance(document.get(name), list):
                raise self._error(f"no list '{name}'", expected=_EXPECTED)
        self._document: dict[str, list[Any]] = document
        self._unread = {  # keys without a column
            f"{key} of {name}": None
            for name, read in _READ.items()
            for entry in document[name]
            if isinstance(entry, dict)
            for key, value in entry.items()
            if key not in read and value not in (None, [], {})
        }
        self.columns = {name: _OPTIONAL[name] for name, is_stated in self._find_stated_columns().items() if is_stated}

    def _find_stated_columns(self) -> dict[str, bool]:
        """Which of the optional columns the file has values for."""
        annotations = [annotation for annotation in self._document["annotations"] if isinstance(annotation, dict)]
        columns = {}
        for name, key, is_valid in (("annotation_id", "id", _is_int64), ("score", "score", _is_score)):
            objects = [annotation for annotation in annotations if annotation.get(key) is not None]
            columns[name] = (
                bool(objects) and len(objects) == len(annotations) and all(is_valid(e[key]) for e in objects)
            )
            if objects and not columns[name]:
                self._unread[f"{key} of annotations, which not all have as a number"] = None
        columns["attributes"] = any(annotation.get("attributes") for annotation in annotations)
        categories = [category for category in self._document["categories"] if isinstance(category, dict)]
        columns["class/supercategory"] = any(category.get("supercategory") for category in categories)
        return columns

    def warn(self) -> None:
        """Warn of what has no column."""
        if self._unread:
            names = printable(", ".join(self._unread), 400)
            warn(f"{printable(self._path)}: left out, as no column holds it: {names}", UserWarning)

    def images(self, *, skip_unknown: bool) -> list[AnnotatedImage]:
        """The images with their objects, in the order of the file."""
        images: dict[int | str, AnnotatedImage] = {}
        for at, image in enumerate(self._document["images"]):
            id_ = self._id(image, "id", f"image {at}")
            if id_ in images:
                raise self._error("two images have this id", got=id_, advice="ids of images must differ")
            where = f"image {printable(id_)}"
            height, width = (self._size(image, axis, where) for axis in ("height", "width"))
            name = self._text(image, "file_name", where)
            images[id_] = AnnotatedImage(
                name, str(id_), height=height, width=width, objects=Objects([], [], []), path=self._path
            )
        if not images:
            raise self._error("no images", expected=_EXPECTED)
        self._add_objects(images, skip_unknown=skip_unknown)
        return list(images.values())

    def _add_objects(self, images: Mapping[int | str, AnnotatedImage], *, skip_unknown: bool) -> None:
        categories = self._categories()
        names = self._names_of_categories("keypoints", [], "are not names", "a list of text")
        supercategories = self._names_of_categories("supercategory", "", "is not a name", "text")
        annotations = self._document["annotations"]
        left_out = LeftOut("annotations", len(annotations))
        for at, annotation in enumerate(annotations):
            id_ = annotation.get("id", at) if isinstance(annotation, dict) else at
            where = f"annotation {printable(id_, 40)}"
            image = images.get(self._id(annotation, "image_id", where))
            if image is None:
                text = f"{where}: no image has the id {printable(annotation['image_id'], 40)}"
                if not skip_unknown:
                    raise self._error(text, advice='on_error="skip" leaves such annotations out')
                left_out.add(text)
                continue
            category = self._id(annotation, "category_id", where)
            if category not in categories:
                raise self._error(f"{where}: no category has the id {printable(category, 40)}", got=category)
            box = self._box(annotation, where)
            size = annotation.get("area")
            size = abs(annotation["bbox"][2] * annotation["bbox"][3]) if size is None else size
            area = number_below(size, _MOST_AREA)
            if area is None or area < 0:
                raise self._error(f"{where}: 'area' is not one", expected="a number of pixels", got=size)
            crowd = annotation.get("iscrowd")
            if crowd not in (None, 0, 1):
                raise self._error(f"{where}: 'iscrowd' is not a flag", expected="0 or 1", got=crowd)
            attributes = annotation.get("attributes")
            optional = {
                "annotation_id": annotation.get("id"),
                "score": annotation.get("score"),
                "attributes": "" if attributes is None else json.dumps(attributes, ensure_ascii=True),
                "class/supercategory": supercategories[category],
            }
            values = categories[category], category, int(crowd or 0), area, *(optional[name] for name in self.columns)
            image.objects.add(id_, box, (*values, self._shape(annotation, names[category], where)))
            annotations[at] = None  # no longer needed
        left_out.warn(self._path)

    def classes(self) -> list[StatedClass]:
        """All categories, also those of no object."""
        names = self._categories()
        points = self._names_of_categories("keypoints", [], "are not names", "a list of text")
        groups = self._names_of_categories("supercategory", "", "is not a name", "text")
        return [StatedClass(int(id_), name, groups[id_], points[id_]) for id_, name in names.items()]

    def _categories(self) -> dict[int | str, str]:
        categories: dict[int | str, str] = {}
        for at, category in enumerate(self._document["categories"]):
            id_ = self._id(category, "id", f"category {at}")
            if not isinstance(id_, int):
                raise self._error(f"category {at}: the id is not an integer", expected="an integer", got=id_)
            if id_ in categories:
                raise self._error("two categories have this id", got=id_, advice="ids of categories must differ")
            categories[id_] = self._text(category, "name", f"category {id_}")
        return categories

    def _names_of_categories(self, key: str, nothing: Any, refusal: str, expected: str) -> dict[int | str, Any]:
        """The text, or the list of texts, that each category has under a key; `nothing` where it has none."""
        names = {}
        for category in self._document["categories"]:
            texts_of_key = category.get(key) or nothing
            texts = [texts_of_key] if nothing == "" else texts_of_key
            if not isinstance(texts, list) or not all(isinstance(name, str) and _is_unicode(name) for name in texts):
                where = f"category {printable(category['id'], 40)}"
                raise self._error(f"{where}: '{key}' {refusal}", expected=expected, got=texts_of_key)
            names[category["id"]] = texts_of_key
        return names

    def _shape(self, annotation: Mapping[str, Any], names: list[str], where: str) -> Shape:
        """The mask and the key points of an object."""
        segmentation = annotation.get("segmentation") if self._with_masks else None
        try:
            check_segmentation(segmentation)
        except ValueError as error:
            raise self._error(f"{where}: 'segmentation' is not one: {error}") from None
        points, labelled = annotation.get("keypoints"), annotation.get("num_keypoints")
        if points is None or points == []:
            return Shape(segmentation)
        is_list = isinstance(points, list) and len(points) % 3 == 0 and None not in map(pixels, points)
        if not is_list or len(points) > 3 * MOST_KEYPOINTS or not set(points[2::3]) <= {0, 1, 2}:
            expected = f"[x, y, visibility, …] in pixels, visibility 0, 1 or 2, of at most {MOST_KEYPOINTS} points"
            raise self._error(f"{where}: 'keypoints' are not points", expected=expected, got=points)
        if names and 3 * len(names) != len(points):
            raise self._error(f"{where}: 'keypoints' has {len(points) // 3} points, its category {len(names)} names")
        if labelled is None:
            labelled = sum(value > 0 for value in points[2::3])
        if isinstance(labelled, bool) or not isinstance(labelled, int) or not 0 <= labelled <= len(points) // 3:
            expected = f"0 to {len(points) // 3}"
            raise self._error(f"{where}: 'num_keypoints' is not a number of them", expected=expected, got=labelled)
        self.most_keypoints = max(self.most_keypoints, len(points) // 3)
        self.has_names |= bool(names)
        return Shape(segmentation, points, labelled, names)

    def _box(self, annotation: Mapping[str, Any], where: str) -> tuple[float, float, float, float]:
        box = annotation.get("bbox")
        if not isinstance(box, list) or len(box) != 4 or None in map(pixels, box):
            expected = "[x, y, width, height] in pixels"
            raise self._error(f"{where}: 'bbox' is not a box", expected=expected, got=box)
        x, y, width, height = box  # as they are: integers are added exactly
        return float(x), float(y), float(x + width), float(y + height)

    def _id(self, fields: Any, name: str, where: str) -> int | str:
        value: Any = fields.get(name) if isinstance(fields, dict) else None
        if not (_is_int64(value) or (isinstance(value, str) and _is_unicode(value))):
            got = fields.get(name) if isinstance(fields, dict) else type(fields).__name__
            raise self._error(f"{where} has no valid '{name}'", expected="an integer or text", got=got)
        return value

    def _size(self, image: Mapping[str, Any], name: str, where: str) -> int | None:
        value = image.get(name)
        if value is None:
            return None  # the image's id is used
        number = pixels(value)
        if number is None or number < 1 or not number.is_integer():
            raise self._error(f"{where}: '{name}' is not a size", expected="a positive number of pixels", got=value)
        return int(number)

    def _text(self, fields: Mapping[str, Any], name: str, where: str) -> str:
        value = fields.get(name)
        if not isinstance(value, str) or not value or not _is_unicode(value):
            raise self._error(f"{where} has no valid '{name}'", expected="text", got=value)
        return value

    def _error(self, reason: str, *, expected: Any = None, got: Any = None, advice: str | None = None) -> DecodeError:
        if got is not None:
            reason += f": {printable(repr(got), 80)}"
        if expected is not None:
            reason += f"; expected {expected}"
        return DecodeError(reason, path=self._path, expected=expected, got=got, hint=advice)


def _is_int64(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _is_score(value: Any) -> bool:
    return number_below(value, _MOST_SCORE) is not None


def _is_unicode(text: str) -> bool:
    """True if text is without lone surrogates, which JSON can state and no file holds."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
