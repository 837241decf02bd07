"""One annotation file of Pascal VOC."""

from __future__ import annotations

import re
from typing import Any
from xml.etree.ElementTree import Element

from tfrecord_io.errors import DecodeError, printable
from tfrecord_io.file_formats.object_detection.annotated_images import AnnotatedImage
from tfrecord_io.file_formats.object_detection.objects import Objects, pixels
from tfrecord_io.file_formats.object_detection.safe_xml import parse_xml

_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_MOST_DIGITS = 40  # of a number
_INTEGER = re.compile("[+-]?[0-9]+")  # Python's int and float take other digits, and underscores
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def parse_annotation(content: bytes, path: str) -> AnnotatedImage:
    """The image of an annotation file; the values of its objects are class, difficult, truncated and view.

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
        )
        objects.add(number, _box(element, path, where), values)
    return AnnotatedImage(name, name, height, width, objects, path)


def _box(element: Element, path: str, where: str) -> tuple[float, float, float, float]:
    box = _child(element, "bndbox", path, where)
    if box is None:
        raise _error("has no 'bndbox'", path, where, "bndbox")
    xmin, ymin, xmax, ymax = (_number(box, corner, path, where) for corner in _CORNERS)
    return xmin, ymin, xmax, ymax


def _number(box: Element, name: str, path: str, where: str) -> float:
    text = _text(box, name, path, where)
    is_number = len(text) <= _MOST_DIGITS and _NUMBER.fullmatch(text)
    number = pixels(float(text)) if is_number else None
    if number is None:
        raise _error(f"'{name}' is '{printable(text, 40)}'", path, where, "a number of pixels", text)
    return number


def _size(size: Element, name: str, path: str) -> int | None:
    """A height or width; None if it is not stated."""
    value = _integer(size, name, path, "the size", default="0")
    if not 0 <= value < 2**31:
        raise _error(f"'{name}' is {value}", path, "the size", "a number of pixels", value)
    return value or None


def _flag(element: Element, name: str, path: str, where: str) -> int:
    value = _integer(element, name, path, where, default="0")
    if value not in (0, 1):
        raise _error(f"'{name}' is {value}", path, where, "0 or 1", value)
    return value


def _integer(element: Element, name: str, path: str, where: str, default: str) -> int:
    text = _text(element, name, path, where, default)
    if not _INTEGER.fullmatch(text):
        raise _error(f"'{name}' is '{printable(text, 40)}'", path, where, "an integer", text)
    return int(text[:_MOST_DIGITS])


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
    """The only child of this name; None if there is none."""
    children = element.findall(name)
    if len(children) > 1:
        raise _error(f"has {len(children)} elements '{name}'", path, where, "one", len(children))
    return children[0] if children else None


def _error(reason: str, path: str, where: str, expected: Any, got: Any = None) -> DecodeError:
    return DecodeError(f"{where} {reason}", path=path, expected=expected, got=got, advice=f"expected {expected}")
