"""Images and sounds among the sampled rows, with their labels and boxes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.output.to_python import cell
from tfrecord_io.display import byte_size, short
from tfrecord_io.reports.statistics.png import is_picture, png_of
from tfrecord_io.reports.statistics.thumbnails import Thumbnail, image_mime, thumbnail
from tfrecord_io.schema.field import IMAGE_KEY

CAPTIONS = ("label/text", "class/text", "caption", "label", "class", "class/label", "filename")
_MOST_CAPTIONS = 2
_MOST_BOXES = 50
_AUDIO_BYTES = 384 << 10  # of one sound
_AXES = ("ymin", "xmin", "ymax", "xmax")


@dataclass(frozen=True, slots=True)
class Box:
    """A box in parts of the image's height and width, within 0 and 1."""

    ymin: float
    xmin: float
    ymax: float
    xmax: float
    label: str = ""


@dataclass(frozen=True, slots=True)
class MediaSample:
    """An image or a sound; without `data`, `problem` says why there is none."""

    mime: str
    data: bytes | None = field(repr=False)
    note: str
    captions: tuple[tuple[str, str], ...]
    boxes: tuple[Box, ...] = ()
    problem: str | None = None
    pixelated: bool = False  # so small that its pixels are to be seen

    def to_dict(self) -> dict[str, Any]:
        shown = {name: getattr(self, name) for name in ("mime", "note", "problem")}
        boxes = [[box.ymin, box.xmin, box.ymax, box.xmax, box.label] for box in self.boxes]
        return {**shown, "captions": dict(self.captions), "boxes": boxes}


@dataclass(frozen=True, slots=True)
class Gallery:
    """Images or sounds of one feature."""

    feature: str
    kind: str  # "image" or "audio"
    samples: tuple[MediaSample, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"feature": self.feature, "kind": self.kind, "samples": [sample.to_dict() for sample in self.samples]}


Row = dict[str, Any]  # the values of a record by feature, as of `cell`


def row_values(row: pa.RecordBatch, columns: Sequence[tuple[pa.Field, pa.Array]]) -> Row:
    """The values of a batch of one row, whose structs are taken apart into `columns`."""
    return {column.name: cell(array, 0, column) for column, array in columns}


def galleries(rows: Sequence[Row], fields: Sequence[pa.Field]) -> Iterator[Gallery]:
    """The images and the sounds of each feature that has some."""
    for column in fields:
        values = [(row, _first(row.get(column.name))) for row in rows]
        present = [(row, value, note) for row, (value, note) in values if value is not None]
        kind = _kind(column, [value for _, value, _ in present])
        if kind == "image":
            images = tuple(_image(row, column.name, value, note) for row, value, note in present)
            yield Gallery(column.name, kind, images)
        elif kind == "audio":
            yield Gallery(column.name, kind, tuple(_sound(row, column.name, value, n) for row, value, n in present))


def _first(value: Any) -> tuple[Any, str]:
    """A value, or the first of a list of bytes or of pictures, and which one it is."""
    if isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1:
        items = [item for item in value if item is not None]
        return (items[0], f"the first of {len(value):,}") if items else (None, "")
    is_bytes = isinstance(value, np.ndarray) and value.dtype == np.uint8 and len(value) > 0
    if is_bytes and not is_picture(value.shape) and is_picture(value.shape[1:]):
        return value[0], f"the first of {len(value):,}"
    return value, ""


def _kind(column: pa.Field, values: Sequence[Any]) -> str | None:
    """ "image" or "audio", if the first bytes or the shape of at least half of the values are like that."""
    declared = IMAGE_KEY in (column.metadata or {}) or column.name.endswith("image/encoded")
    if not values:
        return None
    if declared and all(isinstance(value, bytes) for value in values):
        return "image"
    for kind, matches in (("image", _is_image), ("audio", lambda value: audio_mime(value) is not None)):
        if 2 * sum(map(matches, values)) >= len(values):
            return kind
    return None


def _is_image(value: Any) -> bool:
    if isinstance(value, bytes):
        return image_mime(value) is not None
    return isinstance(value, np.ndarray) and value.dtype == np.uint8 and is_picture(value.shape)


def audio_mime(value: Any) -> str | None:
    """The media type of encoded sound by its first bytes; None for anything else.

    >>> audio_mime(b"fLaC..."), audio_mime(b"text")
    ('audio/flac', None)
    """
    if not isinstance(value, bytes):
        return None
    if value[:4] == b"RIFF" and value[8:12] == b"WAVE":
        return "audio/wav"
    magics = ((b"fLaC", "audio/flac"), (b"OggS", "audio/ogg"), (b"ID3", "audio/mpeg"))
    frames = tuple((bytes((0xFF, second)), "audio/mpeg") for second in (0xFB, 0xF3, 0xF2))  # MPEG 1 and 2, layer 3
    return next((mime for magic, mime in (*magics, *frames) if value.startswith(magic)), None)


def _image(row: Row, name: str, value: Any, note: str) -> MediaSample:
    captions = _captions(row, name)
    if isinstance(value, bytes):
        made = thumbnail(value)
        size = [f"{made.width} × {made.height}"] if made.width is not None else []
        notes = [*size, made.mime.removeprefix("image/").upper() if size == [] else "", byte_size(len(value)), note]
    elif isinstance(value, np.ndarray) and value.dtype == np.uint8 and is_picture(value.shape):
        made = Thumbnail(png_of(value), "image/png", value.shape[1], value.shape[0])
        notes = [" × ".join(map(str, value.shape)), "uint8", note]
    else:
        made, notes = Thumbnail(None, problem=f"cannot be shown: {type(value).__name__}"), [note]
    small = made.width is not None and max(made.width, made.height or 0) <= 96
    text = ", ".join(part for part in notes if part)
    return MediaSample(made.mime, made.data, text, captions, _boxes(row, name), made.problem, small)


def _sound(row: Row, name: str, value: Any, note: str) -> MediaSample:
    mime, captions = audio_mime(value), _captions(row, name)
    size = byte_size(len(value)) if isinstance(value, bytes) else ""
    text = ", ".join(part for part in (size, note) if part)
    if mime is None:
        return MediaSample("", None, text, captions, problem="cannot be decoded: not a known format of sound")
    if len(value) > _AUDIO_BYTES:
        return MediaSample(mime, None, text, captions, problem=f"larger than {byte_size(_AUDIO_BYTES)}, not embedded")
    return MediaSample(mime, value, text, captions)


def _captions(row: Row, name: str) -> tuple[tuple[str, str], ...]:
    """The labels of a record: those beside the feature first."""
    folder = name.rpartition("/")[0]
    wanted = [f"{folder}/{ending}" for ending in CAPTIONS if folder] + list(CAPTIONS)
    found: list[tuple[str, str]] = []
    for key in dict.fromkeys(wanted):
        value = row.get(key)
        if value is None or key == name or len(found) == _MOST_CAPTIONS:
            continue
        if isinstance(value, str | bytes | bool | int | float) or (isinstance(value, np.ndarray) and value.size <= 4):
            plain = value.tolist() if isinstance(value, np.ndarray) else value
            found.append((key, short(_text(plain), 60)))
    return tuple(found)


def _text(value: Any) -> Any:
    """Bytes that are text as text, also in lists."""
    if isinstance(value, list):
        return [_text(item) for item in value]
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def _boxes(row: Row, name: str) -> tuple[Box, ...]:
    """``image/object/bbox/ymin`` … next to ``image/encoded``, or ``objects/bbox`` of TFDS, with their labels."""
    folder = name.rpartition("/")[0]
    base = f"{folder}/object" if folder else "image/object"
    axes = [_floats(row.get(f"{base}/bbox/{axis}")) for axis in _AXES]
    if not any(axes):
        base = f"{folder}/objects" if folder else "objects"
        axes = _columns(row.get(f"{base}/bbox"))
    if not all(len(axis) == len(axes[0]) for axis in axes):
        return ()
    labels: list[Any] = []
    for key in ("class/text", "class/label", "label"):
        value = row.get(f"{base}/{key}")
        labels = labels or (np.atleast_1d(value).tolist() if value is not None else [])
    boxes: list[Box] = []
    for i, ends in enumerate(zip(*axes, strict=True)):
        if len(boxes) < _MOST_BOXES and all(map(math.isfinite, ends)):
            label = short(_text(labels[i]), 40) if i < len(labels) else ""
            ymin, xmin, ymax, xmax = (min(1.0, max(0.0, end)) for end in ends)
            boxes.append(Box(min(ymin, ymax), min(xmin, xmax), max(ymin, ymax), max(xmin, xmax), label))
    return tuple(boxes)


def _columns(value: Any) -> list[list[float]]:
    """The four columns of a list of boxes ``[ymin, xmin, ymax, xmax]``; empty for anything else."""
    boxes = [] if value is None else [_floats(box) for box in np.atleast_1d(value)]
    if not boxes or any(len(box) != len(_AXES) for box in boxes):
        return [[] for _ in _AXES]
    return [list(axis) for axis in zip(*boxes, strict=True)]


def _floats(value: Any) -> list[float]:
    """The numbers of a feature; none of anything else."""
    if value is None:
        return []
    values = np.atleast_1d(value)
    return values.astype(float).tolist() if values.ndim == 1 and values.dtype.kind in "fiu" else []
