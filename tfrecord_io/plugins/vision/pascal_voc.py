"""Images with the annotations of a folder in the layout of Pascal VOC."""

from __future__ import annotations

import errno
import json
import os
import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

import pyarrow as pa

from tfrecord_io.apps.file_formats.array_files.array_stream import ArrayStream
from tfrecord_io.base import StorageOptions
from tfrecord_io.errors import DecodeError
from tfrecord_io.kit import check_keywords, printable, warn
from tfrecord_io.plugins.vision.annotated_images import (
    MOST_BYTES,
    AnnotatedImage,
    AnnotationOptions,
    Objects,
    Reading,
    StatedClass,
    read_annotations,
)
from tfrecord_io.plugins.vision.masks_and_keypoints import MOST_DIGITS, pixels_in
from tfrecord_io.plugins.vision.vision_rows import VOC
from tfrecord_io.store import Directory, Entry, Folder, Source
from tfrecord_io.typing import InvalidBoxes, OnFileError, Path, StorageLike

ANNOTATIONS, JPEG_IMAGES = VOC.folders
SETS = "ImageSets/Main"
_SUFFIX = ".xml"
_COLUMNS = {"difficult": pa.int64(), "truncated": pa.int64(), "view": pa.string()}
_OPTIONAL = {"occluded": (pa.int64(), 0), "part": (pa.string(), "[]")}  # where any object states them; and the default
_READ = {  # elements that are in the columns, or about the file of the image
    "annotation": {"filename", "size", "object", "folder", "path", "source", "owner", "segmented"},
    "object": {"name", "pose", "difficult", "truncated", "occluded", "bndbox", "part"},
    "part": {"name", "bndbox"},
}
CORNERS = ("xmin", "ymin", "xmax", "ymax")
_INTEGER = re.compile("[+-]?[0-9]+")  # Python's int takes other digits, and underscores
_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,15})(\.[0-9]{1,16})?")
_MOST_LEVELS = 64


@check_keywords
def open_voc(
    path: Path,
    images: Path | None = None,
    *,
    image_set: str | None = None,
    class_names: Sequence[str] | None = None,
    invalid_boxes: InvalidBoxes = "skip",
    check_sizes: bool = True,
    orient: bool | None = None,
    shuffle_seed: int | None = None,
    on_error: OnFileError = "raise",
    threads: int | None = None,
    storage_options: StorageLike | None = None,
) -> ArrayStream:
    """Read images with the boxes of Pascal VOC annotations as a stream of record batches, with a row for each image.

    The columns are the features that ``create_pascal_tf_record.py`` of TensorFlow's Object Detection API writes.

    >>> import os
    >>> import tfrecord_io as tfr
    >>> from PIL import Image
    >>> os.mkdir("labelled")
    >>> Image.new("RGB", (40, 20)).save("labelled/1.jpg")
    >>> box = "<bndbox><xmin>10</xmin><ymin>5</ymin><xmax>30</xmax><ymax>15</ymax></bndbox>"
    >>> with open("labelled/1.xml", "w") as file:
    ...     _ = file.write(
    ...         "<annotation><filename>1.jpg</filename>"
    ...         f"<object><name>dog</name>{box}</object></annotation>"
    ...     )
    >>> _ = tfr.write_tfrecord(tfr.formats.open_voc("labelled"), "labelled.tfrecord")
    >>> table = tfr.read_table(
    ...     "labelled.tfrecord", columns=["image/object/bbox/x*", "image/object/class/*"]
    ... )
    >>> table.to_pylist()  # doctest: +NORMALIZE_WHITESPACE
    [{'image/object/bbox/xmin': [0.25], 'image/object/bbox/xmax': [0.75],
      'image/object/class/text': ['dog'], 'image/object/class/label': [1]}]

    Parameters
    ----------
    path : str or PathLike
        A folder, local or in a bucket, with the folders ``Annotations`` (``.xml`` files) and ``JPEGImages``, such as
        ``VOCdevkit/VOC2012``; or one with the ``.xml`` files and the images.
    images : str or PathLike, optional
        The folder that the ``filename`` in an annotation is relative to and stays in; by default ``JPEGImages`` in
        `path`, or `path` if that has the ``.xml`` files. The elements ``folder`` and ``path`` are not used.
    image_set : str, optional
        Only the annotations that ``ImageSets/Main/<image_set>.txt`` in `path` names, in its order: "train", "val".
    class_names : sequence of str, optional
        The classes, which have the labels 1, 2, …; another class is an error. By default the sorted names of all
        annotations, also of those that are not in `image_set`, so that training and test images have the same labels.
        For VOC, these are the labels of ``pascal_label_map.pbtxt``.
    invalid_boxes, check_sizes, orient, shuffle_seed, on_error, threads
        As in `open_coco`. The script keeps invalid boxes. A size of 0, or none, is that of the image.
    storage_options
        As in `tfrecord_io.read_table`.

    Returns
    -------
    ArrayStream
        With the columns of `open_coco`, except ``is_crowd`` and ``area``, and ``image/object/difficult``,
        ``image/object/truncated`` (0 or 1; 0 if not stated) and ``image/object/view`` (the pose, "Unspecified" if not
        stated). If any object states them: ``image/object/occluded``, and ``image/object/part``, the JSON of its parts,
        such as ``[{"name": "head", "bndbox": {"xmin": 1, …}}]`` in pixels. Other elements are named in a warning.
        ``image/source_id`` is the file name. Coordinates are divided by the size as they are, counted from 1.
        All annotations are read first, and held in memory.

    Raises
    ------
    DecodeError
        An annotation is not well-formed, has a DOCTYPE, lacks a value, names a class that is not in `class_names`, or a
        file that leads out of the folder or that another annotation names; it is named. Or an image is damaged.
    FileNotFoundError
        The folder has no annotations, or an image or the image set does not exist.
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
    if class_names is not None:
        Folder.check_class_names(class_names)
    folder = _find(os.fspath(path), options.storage)
    files, files_of_set = folder.files(), None
    if image_set is not None:
        files_of_set = folder.image_set(image_set, files)
        files = files if class_names is None else files_of_set
    paths = [folder.root.fs.display_path(entry.name) for entry in files]
    contents = read_annotations(zip(paths, paths, files, strict=True), folder.root.fs, options.threads)
    annotated = [parse_annotation(content, path) for path, content in contents]
    names = class_names
    if names is None:
        names = sorted({name for image in annotated for name, *_ in image.objects.values})
    labels = {name: number for number, name in enumerate(names, start=1)}
    if files_of_set is not None and files is not files_of_set:
        by_path = {image.path: image for image in annotated}
        annotated = [by_path[folder.root.fs.display_path(entry.name)] for entry in files_of_set]
    for image in annotated:
        _number_classes(image, labels)
    of_images: dict[str, str] = {}
    for image in annotated:
        if (first_path := of_images.setdefault(image.name, image.path)) != image.path:
            reason = f"the image '{printable(image.name)}' is also that of '{printable(first_path)}'"
            raise DecodeError(reason, path=image.path, got=image.name, hint="correct 'filename' in one of them")
    columns = _COLUMNS | _optional_columns(annotated)
    if images is None and files_of_set is None:
        folder.warn_of_images(annotated, options.storage)
    classes = [StatedClass(label, name) for name, label in labels.items()]
    return Reading(options, columns, "object", classes).open(annotated, folder.images if images is None else images)


class _Folder(NamedTuple):
    """Folders of annotations and images."""

    path: str
    root: Directory
    annotations: Folder  # at any depth
    images: str  # a path or URL

    def files(self) -> list[Entry]:
        """The annotation files, in natural order; those in folders are left out with a warning."""
        files = [file.entry for file in self.annotations.files if file.top is None]
        if not files:
            reason = f"neither it nor '{ANNOTATIONS}' in it has {_SUFFIX} files"
            raise FileNotFoundError(errno.ENOENT, reason, self.path)
        in_folders = [file for file in self.annotations.files if file.top is not None]
        self.annotations.warn_of_others("in a folder", in_folders, path=self.path)
        return files

    def warn_of_images(self, annotated: Sequence[AnnotatedImage], storage: StorageOptions) -> None:
        """Warn of images that no annotation names."""
        try:
            folder = Folder.list_images(self.images, storage)
        except FileNotFoundError:
            return  # without a folder of images, reading them says so
        named = {posixpath.normpath(image.name) for image in annotated}
        unnamed = [file for file in folder.files if file.name not in named]
        folder.warn_of_others("without an annotation", unnamed)

    def image_set(self, name: str, files: list[Entry]) -> list[Entry]:
        """The annotation files that a text file of an image set names."""
        check_image_set(name)
        fs = self.root.fs
        entry = fs.entry(self.root.join(f"{SETS}/{name}.txt"))
        if entry is None:
            raise FileNotFoundError(errno.ENOENT, f"no such image set in {SETS}", f"{self.path}/{SETS}/{name}.txt")
        path = fs.display_path(entry.name)
        by_name = {file.basename[: -len(_SUFFIX)]: file for file in files}
        files_of_set: dict[str, Entry] = {}
        content = Source.from_entry(fs, entry).read(MOST_BYTES)
        for number, line in enumerate(content.decode("utf-8-sig", "replace").splitlines(), start=1):
            name = line.strip()
            if not name:
                continue
            name = name if name in by_name else name.split()[0]  # a flag may follow
            if name not in by_name:
                reason = f"line {number}: no annotation '{printable(name, 80)}{_SUFFIX}'"
                raise DecodeError(reason, path=path, got=name)
            files_of_set[name] = by_name[name]
        if not files_of_set or len(content) > MOST_BYTES:
            raise DecodeError("the image set is empty" if not files_of_set else "the image set is too large", path=path)
        return list(files_of_set.values())


def check_image_set(name: str) -> None:
    """Raise ValueError if it cannot be the name of an image set."""
    if (wrong := "it has a slash" if "/" in name else Directory.name_fault(name)) is not None:
        raise ValueError(f"image_set={name!r}: expected the name of a file in {SETS}, such as 'train'; {wrong}")


def _find(path: str, storage: StorageOptions) -> _Folder:
    root = Directory.find(path, storage)
    inside = root.fs.entry(root.join(ANNOTATIONS))
    if inside is None or not inside.directory:
        return _Folder(path, root, annotations=Folder.list_files(path, storage, (_SUFFIX,)), images=path)
    top = path.rstrip("/")
    return _Folder(
        path,
        root,
        annotations=Folder.list_files(f"{top}/{ANNOTATIONS}", storage, (_SUFFIX,)),
        images=f"{top}/{JPEG_IMAGES}",
    )


def _optional_columns(annotated: Sequence[AnnotatedImage]) -> dict[str, pa.DataType]:
    """Columns of elements that only some objects have; the rest get the default. Warns of elements without a column."""
    width = len(_COLUMNS) + 2  # values before the optional ones
    rows = [values for image in annotated for values in image.objects.values]
    is_present = [any(row[width + at] is not None for row in rows) for at in range(len(_OPTIONAL))]
    for image in annotated:
        values = image.objects.values
        for at, row in enumerate(values):
            optional = zip(row[width:], _OPTIONAL.values(), is_present, strict=True)
            more = (default if value is None else value for value, (_, default), is_chosen in optional if is_chosen)
            values[at] = *row[:width], *more
    unread = dict.fromkeys(name for image in annotated for name in image.unread)
    if unread:
        names = printable(", ".join(unread), 400)
        path = printable(next(image.path for image in annotated if image.unread))
        warn(f"{path}: left out, as no column holds it, here or in other annotations: {names}", UserWarning)
    return {
        name: type_ for (name, (type_, _)), is_chosen in zip(_OPTIONAL.items(), is_present, strict=True) if is_chosen
    }


def _number_classes(image: AnnotatedImage, labels: Mapping[str, int]) -> None:
    values = image.objects.values
    for at, (name, *numbers) in enumerate(values):
        if name not in labels:
            reason = f"object {image.objects.names[at]}: the class '{printable(name, 80)}' is not among the given names"
            raise DecodeError(
                reason,
                path=image.path,
                expected=list(labels),
                got=name,
                hint="add it to class_names=",
                hint_cli="add it to --class-names",
            )
        values[at] = name, labels[name], *numbers


def parse_annotation(content: bytes, path: str) -> AnnotatedImage:
    """The image of an annotation file; the values of its objects are class, difficult, truncated, view, and those
    of the optional columns, or None.

    Raises
    ------
    DecodeError
        It is not an annotation: not well-formed, or a value is missing or no number.
    """
    root = parse_xml(content, path)
    if root.tag != "annotation":
        raise DecodeError(
            f"the root element is '{printable(root.tag, 80)}'", path=path, expected="annotation", got=root.tag
        )
    name = _text(root, "filename", path, "the annotation")
    size = _child(root, "size", path, "the annotation")
    height, width = (None if size is None else _size(size, axis, path) for axis in ("height", "width"))
    objects = Objects([], [], [])
    for number, element in enumerate(root.findall("object")):
        where = f"object {number}"
        values = (
            _text(element, "name", path, where),
            _flag(element, "difficult", path, where),
            _flag(element, "truncated", path, where),
            _text(element, "pose", path, where, default="Unspecified"),
            None if element.find("occluded") is None else _flag(element, "occluded", path, where),
            _parts(element, path, where),
        )
        box = _child(element, "bndbox", path, where)
        if box is None:
            raise _error("has no 'bndbox'", path, where, "bndbox")
        xmin, ymin, xmax, ymax = (_number(box, corner, path, where) for corner in CORNERS)
        objects.add(number, (xmin, ymin, xmax, ymax), values)
    parents = [("annotation", [root]), ("object", root.findall("object")), ("part", root.findall("object/part"))]
    unread = [
        f"{child.tag} of {kind}s"
        for kind, elements in parents
        for element in elements
        for child in element
        if child.tag not in _READ[kind] and (len(child) or (child.text or "").strip())
    ]
    return AnnotatedImage(
        name, name, height=height, width=width, objects=objects, path=path, unread=tuple(dict.fromkeys(unread))
    )


def _parts(element: Element, path: str, where: str) -> str | None:
    """The parts of an object, such as head and hands, as JSON; None if it has none."""
    parts = []
    for part in element.findall("part"):
        box = _child(part, "bndbox", path, f"a part of {where}")
        corners = (
            {}
            if box is None
            else {side: box.findtext(side, "").strip() for side in CORNERS if box.find(side) is not None}
        )
        numbers = {side: json.loads(text) if _JSON_NUMBER.fullmatch(text) else text for side, text in corners.items()}
        parts.append({"name": _text(part, "name", path, f"a part of {where}"), "bndbox": numbers})
    return json.dumps(parts) if parts else None


def _number(box: Element, name: str, path: str, where: str) -> float:
    text = _text(box, name, path, where)
    number = pixels_in(text)
    if number is None:
        raise _error(f"'{name}' is '{printable(text, 40)}'", path, where=where, expected="a number of pixels", got=text)
    return number


def _size(size: Element, name: str, path: str) -> int | None:
    """A height or width; None if it is not stated."""
    value = _integer(size, name, path, "the size")
    if not 0 <= value < 2**31:
        raise _error(f"'{name}' is {value}", path, where="the size", expected="a number of pixels", got=value)
    return value or None


def _flag(element: Element, name: str, path: str, where: str) -> int:
    value = _integer(element, name, path, where)
    if value not in (0, 1):
        raise _error(f"'{name}' is {value}", path, where=where, expected="0 or 1", got=value)
    return value


def _integer(element: Element, name: str, path: str, where: str) -> int:
    text = _text(element, name, path, where, default="0")
    if not _INTEGER.fullmatch(text):
        raise _error(f"'{name}' is '{printable(text, 40)}'", path, where=where, expected="an integer", got=text)
    return int(text[:MOST_DIGITS])


def _text(element: Element, name: str, path: str, where: str, default: str | None = None) -> str:
    """The text of a child without white space around it."""
    child = _child(element, name, path, where)
    text = "" if child is None else (child.text or "").strip()
    if text:
        return text
    if default is None:
        raise _error(f"has no '{name}'", path, where, name)
    return default


def _child(element: Element, name: str, path: str, where: str) -> Element | None:
    """The only child of this name, or None."""
    children = element.findall(name)
    if len(children) > 1:
        raise _error(f"has {len(children)} elements '{name}'", path, where=where, expected="one", got=len(children))
    return children[0] if children else None


def _error(reason: str, path: str, where: str, expected: Any, got: Any = None) -> DecodeError:
    return DecodeError(f"{where} {reason}", path=path, expected=expected, got=got, hint=f"expected {expected}")


def parse_xml(content: bytes, path: str) -> Element:
    """The root element of an XML document.

    Raises
    ------
    DecodeError
        It is not well-formed, has a DOCTYPE or is too deep.
    """
    builder = TreeBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MOST_LEVELS:
            raise _xml_error(f"elements are nested more than {_MOST_LEVELS} levels deep", parser, path)
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    def refuse(*_: object) -> NoReturn:
        reason = "it has a DOCTYPE, which may define entities that expand without limit"
        raise _xml_error(reason, parser, path, advice="remove the DOCTYPE: annotations need none")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise _xml_error(f"not well-formed XML: {expat.ErrorString(error.code)}", parser, path) from None
    except (LookupError, ValueError) as error:  # of a declared encoding that does not exist
        if isinstance(error, DecodeError):
            raise
        raise _xml_error(f"not readable as XML: {printable(error, 100)}", parser, path) from None
    return builder.close()


def _xml_error(reason: str, parser: expat.XMLParserType, path: str, advice: str | None = None) -> DecodeError:
    where = f"line {parser.ErrorLineNumber}, column {parser.ErrorColumnNumber + 1}"
    return DecodeError(f"{reason} ({where})", path=path, expected="XML", hint=advice)
