"""Images and sounds in the values of rows, with their labels, masks, boxes and key points."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tfrecord_io.columns import Column, ImageForm, ImageHeader, PixelReader, RawImages
from tfrecord_io.kit import RowFault, byte_size, short

CAPTIONS = ("label/text", "class/text", "caption", "label", "class", "class/label", "filename")
_MOST_CAPTIONS = 2
_MOST_BOXES = 50
_MOST_POINTS = 500
_MASK_COLOURS = ((255, 99, 71), (64, 156, 255), (80, 200, 120), (255, 200, 0), (186, 104, 255), (0, 206, 209))
_MASK_ALPHA = 120
_OUTSIDE = 0.01  # of the image: a box may be so far outside it
_AUDIO_BYTES = 384 << 10  # of one sound
_AXES = ("ymin", "xmin", "ymax", "xmax")
SIDE = 320  # pixels of the longer side; larger images are thinned out
MOST_BYTES = 192 << 10  # of an image to embed as it is
_TIFF = "image/tiff"  # browsers do not show TIFF
_MIMES = {
    "a PNG image": "image/png",
    "a JPEG image": "image/jpeg",
    "a GIF image": "image/gif",
    "a WebP image": "image/webp",
    "a BMP image": "image/bmp",
    "a TIFF image": _TIFF,
}


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
    """An image or a sound; `problem` says why `data` is missing."""

    mime: str
    data: bytes | None = field(repr=False)
    note: str
    captions: tuple[tuple[str, str], ...]
    boxes: tuple[Box, ...] = ()
    points: tuple[tuple[float, float], ...] = ()  # key points: x and y in parts of the image
    mask: bytes | None = field(default=None, repr=False)  # of all objects, as a PNG to lay over the image
    problem: str | None = None
    pixelated: bool = False  # small: pixels are shown as squares

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


def galleries(rows: Sequence[Row], fields: Sequence[pa.Field]) -> Iterator[Gallery]:
    """The images and the sounds of each feature that has some."""
    for column in fields:
        raw = RawImages.from_field(column)
        values = [(row, *_first(row, column.name, raw)) for row in rows]
        present = [(row, value, note) for row, value, note in values if value is not None]
        kind = _kind(column, [value for _, value, _ in present]) if raw is None else "image" if present else None
        if kind is not None:
            sample = partial(_sample, kind, column, raw, box_forms_of(fields))
            yield Gallery(column.name, kind, tuple(sample(*part) for part in present))


def box_forms_of(fields: Iterable[pa.Field]) -> dict[str, str]:
    """The format of boxes, by column."""
    return {column.name: (column.metadata or {}).get(Column.BOXES_KEY, b"REL_YXYX").decode() for column in fields}


def media_of(
    row: Row, column: pa.Field, box_forms: Mapping[str, str], side: int = SIDE
) -> tuple[str, MediaSample] | None:
    """ "image" or "audio", and what the value of a column shows; None if it is neither."""
    raw = RawImages.from_field(column)
    value, note = _first(row, column.name, raw)
    kind = None if value is None else "image" if raw is not None else _kind(column, [value])
    return (
        None
        if kind is None
        else (kind, _sample(kind, column, raw, box_forms, row=row, value=value, note=note, side=side))
    )


def _sample(
    kind: str,
    column: pa.Field,
    raw: RawImages | None,
    box_forms: Mapping[str, str],
    row: Row,
    value: Any,
    note: str,
    side: int = SIDE,
) -> MediaSample:
    if kind == "audio":
        return _sound(row, column.name, value, note)
    form = ImageForm.from_metadata(column.metadata, column.name) or ImageForm()
    return _image(row, column.name, value=value, note=note, orient=form.orient, box_forms=box_forms, raw=raw, side=side)


def _first(row: Row, name: str, raw: RawImages | None = None) -> tuple[Any, str]:
    """A value, or the first of a list of bytes, of pictures or of channels, and a text that names its place."""
    value = row.get(name)
    if raw is not None:
        if value is None or not raw.in_lists:
            return value, ""
        return (value[0], f"the first of {len(value):,}") if len(value) else (None, "")
    if isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1:
        items = [item for item in value if item is not None]
        return (items[0], f"the first of {len(value):,}") if items else (None, "")
    if not isinstance(value, np.ndarray) or value.dtype != np.uint8 or not len(value) or is_picture(value.shape):
        return value, ""
    axis = _channel_axis(row, name, value.shape)
    if axis is not None and is_picture((channel := value.take(0, axis)).shape):
        return channel, f"channel 1 of {value.shape[axis]}"
    return (value[0], f"the first of {len(value):,}") if is_picture(value.shape[1:]) else (value, "")


def _channel_axis(row: Row, name: str, shape: tuple[int, ...]) -> int | None:
    """The axis that a companion states to be the channels of one picture, or its name says; None of frames.

    >>> _channel_axis({"channels": 6}, "x", (6, 20, 20)), _channel_axis({}, "bands", (20, 30, 6))
    (0, 2)
    >>> _channel_axis({}, "x", (6, 20, 20))  # frames
    """
    if len(shape) != 3:
        return None
    folder = name.rpartition("/")[0]
    keys = (f"{name}/channels", f"{name}_channels", f"{folder}/channels", "channels", "bands", "depth")
    stated = [row.get(key) for key in keys]
    axes = [axis for axis in (2, 0) if any(type(value) is int and value == shape[axis] for value in stated)]
    is_named = any(word in name.lower() for word in ("channel", "band", "image/encoded"))
    axes += [axis for axis in (2, 0) if is_named and shape[axis] == min(shape)]
    return axes[0] if axes else None


def _kind(column: pa.Field, values: Sequence[Any]) -> str | None:
    """ "image" or "audio", if the first bytes or the shape of at least half of the values are like that."""
    declared = ImageForm.KEY in (column.metadata or {}) or column.name.endswith("image/encoded")
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


def _image(
    row: Row,
    name: str,
    value: Any,
    note: str,
    orient: bool,
    box_forms: Mapping[str, str],
    raw: RawImages | None,
    side: int,
) -> MediaSample:
    captions = _captions(row, name)
    if raw is not None:
        preview = _raw_thumbnail(raw, value, side)
        layout = raw.form.layout if raw.form.has_channels_first else ""
        notes = [" × ".join(map(str, value.shape)), str(value.dtype), layout, note]
    elif isinstance(value, bytes):
        folder = name.rpartition("/")[0]
        stated_size = (row.get(f"{folder}/height"), row.get(f"{folder}/width"))
        preview = thumbnail(value, orient=orient, stated_size=stated_size, side=side)
        size = [f"{preview.width} × {preview.height}"] if preview.width is not None else []
        notes = [*size, preview.mime.removeprefix("image/").upper() if size == [] else "", byte_size(len(value)), note]
    elif isinstance(value, np.ndarray) and value.dtype == np.uint8 and is_picture(value.shape):
        preview = Thumbnail(png_of(value, side), "image/png", value.shape[1], value.shape[0])
        notes = [" × ".join(map(str, value.shape)), "uint8", note]
    else:
        preview, notes = Thumbnail(None, problem=f"cannot be shown: {type(value).__name__}"), [note]
    small = preview.width is not None and max(preview.width, preview.height or 0) <= 96
    text = ", ".join(part for part in notes if part)
    boxes = _boxes(row, name, box_forms, (preview.height, preview.width))
    return MediaSample(
        preview.mime,
        preview.data,
        note=text,
        captions=captions,
        boxes=boxes,
        points=_points(row, name),
        mask=_masks(row, name, side),
        problem=preview.problem,
        pixelated=small,
    )


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
    """The labels of a record: those next to the feature first."""
    folder = name.rpartition("/")[0]
    wanted = [f"{folder}/{ending}" for ending in CAPTIONS if folder] + list(CAPTIONS)
    captions: list[tuple[str, str]] = []
    for key in dict.fromkeys(wanted):
        value = row.get(key)
        if value is None or key == name or len(captions) == _MOST_CAPTIONS:
            continue
        if isinstance(value, str | bytes | bool | int | float) or (isinstance(value, np.ndarray) and value.size <= 4):
            plain = value.tolist() if isinstance(value, np.ndarray) else value
            captions.append((key, short(_text(plain), 60)))
    return tuple(captions)


def _text(value: Any) -> Any:
    """Bytes that are text as text, also in lists."""
    if isinstance(value, list):
        return [_text(item) for item in value]
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def _boxes(row: Row, name: str, forms: Mapping[str, str], size: tuple[int | None, int | None]) -> tuple[Box, ...]:
    """``image/object/bbox/ymin`` … next to ``image/encoded``, or ``objects/bbox`` of TFDS, with their labels."""
    folder = name.rpartition("/")[0]
    base = f"{folder}/object" if folder else "image/object"
    axes = [_floats(row.get(f"{base}/bbox/{axis}")) for axis in _AXES]
    if not any(axes):
        base = f"{folder}/objects" if folder else "objects"
        axes = _columns(row.get(f"{base}/bbox"), forms.get(f"{base}/bbox", ""), size)
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
            boxes.append(Box(min(ymin, ymax), min(xmin, xmax), ymax=max(ymin, ymax), xmax=max(xmin, xmax), label=label))
    return tuple(boxes)


def _columns(value: Any, form: str, size: tuple[int | None, int | None]) -> list[list[float]]:
    """The ends of each axis, within 0 and 1, of a list of boxes in a format of TFDS; empty for anything else.

    Boxes of a format that is not stated, such as ``[x, y, width, height]`` in pixels, are not within 0 and 1.
    """
    boxes = [] if value is None else [_floats(box) for box in np.atleast_1d(value)]
    if any(len(box) != len(_AXES) for box in boxes):
        return [[] for _ in _AXES]
    boxes = [_ends(box, form, size) for box in boxes]
    if not boxes or any(not box or min(box) < -_OUTSIDE or max(box) > 1 + _OUTSIDE for box in boxes):
        return [[] for _ in _AXES]
    return [list(axis) for axis in zip(*boxes, strict=True)]


def _ends(box: list[float], form: str, size: tuple[int | None, int | None]) -> list[float]:
    """A box as ``[ymin, xmin, ymax, xmax]`` in parts of the image's size; empty if its format is unknown."""
    order = form.removeprefix("REL_")
    if order == "XYWH":
        box = [box[0], box[1], box[0] + box[2], box[1] + box[3]]
    if order in ("XYWH", "XYXY"):
        box = [box[1], box[0], box[3], box[2]]
    height, width = (1, 1) if form.startswith("REL_") else size
    if order not in ("XYWH", "XYXY", "YXYX") or not height or not width:
        return []
    return [box[0] / height, box[1] / width, box[2] / height, box[3] / width]


def _floats(value: Any) -> list[float]:
    """The numbers of a feature; none of anything else."""
    if value is None:
        return []
    values = np.atleast_1d(value)
    return values.astype(float).tolist() if values.ndim == 1 and values.dtype.kind in "fiu" else []


def _object_folder(name: str) -> str:
    folder = name.rpartition("/")[0]
    return f"{folder}/object" if folder else "image/object"


def _points(row: Row, name: str) -> tuple[tuple[float, float], ...]:
    """The key points that are labelled: ``image/object/keypoint/x`` … next to ``image/encoded``."""
    base = f"{_object_folder(name)}/keypoint"
    xs, ys, visibility = (_floats(row.get(f"{base}/{part}")) for part in ("x", "y", "visibility"))
    points = zip(xs, ys, visibility or [1.0] * len(xs), strict=False)
    return tuple((x, y) for x, y, seen in points if seen > 0 and 0 <= x <= 1 and 0 <= y <= 1)[:_MOST_POINTS]


def _masks(row: Row, name: str, side: int) -> bytes | None:
    """The masks of the objects, ``image/object/mask``, each in a colour, as one PNG; None if there are none."""
    masks = row.get(f"{_object_folder(name)}/mask")
    if not isinstance(masks, np.ndarray) or masks.dtype != object:
        return None
    try:
        import PIL.Image
    except ImportError:
        return None
    drawn: NDArray[Any] | None = None
    for at, data in enumerate(masks[:_MOST_BOXES]):
        if not isinstance(data, bytes):
            continue
        try:
            with PIL.Image.open(io.BytesIO(data), formats=["PNG"]) as image:
                image.thumbnail((side, side))
                inside = np.asarray(image.convert("L")) > 0
        except Exception:  # see `_thumbnail_by_pillow`
            continue
        drawn = np.zeros((*inside.shape, 4), np.uint8) if drawn is None else drawn
        if inside.shape == drawn.shape[:2]:
            drawn[inside] = (*_MASK_COLOURS[at % len(_MASK_COLOURS)], _MASK_ALPHA)
    return None if drawn is None else RawImages.png(drawn)


def _raw_thumbnail(raw: RawImages, value: NDArray[Any], side: int) -> Thumbnail:
    """A small copy of raw pixels; of 16 bits the upper 8."""
    try:
        pixels = raw.image(0, value)
    except RowFault as fault:
        return Thumbnail(None, problem=f"cannot be shown: {fault}")
    shown = pixels if pixels.dtype == np.uint8 else (pixels >> 8).astype(np.uint8)
    return Thumbnail(png_of(shown, side), "image/png", pixels.shape[1], pixels.shape[0])


def png_of(pixels: NDArray[Any], side: int = SIDE) -> bytes:
    """A PNG of uint8 [height, width] or [height, width, channels]; each n-th pixel of a large one.

    >>> png_of(np.zeros((2, 3), np.uint8))[:8]
    b'\\x89PNG\\r\\n\\x1a\\n'
    """
    pixels = pixels if pixels.ndim == 3 else pixels[:, :, None]
    step = max(1, -(-max(pixels.shape[:2]) // side))
    return RawImages.png(pixels[::step, ::step])


def is_picture(shape: tuple[int, ...]) -> bool:
    """True if a uint8 tensor of this shape is shown as a picture.

    >>> is_picture((28, 28)), is_picture((32, 32, 3)), is_picture((4,)), is_picture((100, 2, 7))
    (True, True, False, False)
    """
    if len(shape) not in (2, 3) or (len(shape) == 3 and not 1 <= shape[2] <= 4):
        return False
    return all(4 <= side <= 8192 for side in shape[:2])


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """An image to show, and the size of the original; `problem` says why `data` is missing."""

    data: bytes | None
    mime: str = ""
    width: int | None = None
    height: int | None = None
    problem: str | None = None


def image_mime(data: bytes) -> str | None:
    """The media type of an encoded image by its first bytes; None for anything else.

    >>> image_mime(b"GIF89a..."), image_mime(b"text")
    ('image/gif', None)
    """
    return _MIMES.get(ImageHeader.looks_like(data[:18]) or "")


def thumbnail(
    data: bytes, *, orient: bool = True, stated_size: tuple[Any, Any] = (None, None), side: int = SIDE
) -> Thumbnail:
    """A small copy of an encoded image of untrusted content, as its boxes are drawn on it.

    With `orient` it is turned as its EXIF data says, unless the height and width that are stated are those of the
    stored pixels alone.
    """
    mime = image_mime(data)
    if mime is None:
        form = ImageHeader.looks_like(data)
        return Thumbnail(None, problem=f"cannot be decoded: {f'looks like {form}' if form else 'not a known format'}")
    try:
        import PIL.Image
    except ImportError:
        if len(data) <= MOST_BYTES and mime != _TIFF:
            return Thumbnail(data, mime)
        return Thumbnail(None, problem=f"{byte_size(len(data))}: thumbnails need the package pillow")
    return _thumbnail_by_pillow(PIL.Image, data, orient=orient, stated_size=stated_size, side=side)


def _thumbnail_by_pillow(pillow: Any, data: bytes, orient: bool, stated_size: tuple[Any, Any], side: int) -> Thumbnail:
    try:
        with pillow.open(io.BytesIO(data), formats=ImageHeader.FORMATS) as image:
            width, height = image.size
            limit = pillow.MAX_IMAGE_PIXELS
            if limit is not None and width * height > limit:
                problem = f"not decoded: {width} × {height} pixels are more than PIL.Image.MAX_IMAGE_PIXELS, {limit}"
                return Thumbnail(None, width=width, height=height, problem=problem)
            small, keeps_alpha = PixelReader.shrink(image, data, side, orient=orient, stated_size=stated_size)
    except MemoryError:
        raise
    except RowFault as fault:
        return Thumbnail(None, problem=f"cannot be shown: {fault}")
    except Exception as error:  # Pillow's decoders raise exceptions of any type, some with the image's bytes
        return Thumbnail(None, problem=f"cannot be decoded: {type(error).__name__}")
    is_lossless = keeps_alpha or max(small.size) <= side // 4
    out = io.BytesIO()
    small.save(out, "PNG" if is_lossless else "JPEG", **({} if is_lossless else {"quality": 80}))
    return Thumbnail(out.getvalue(), "image/png" if is_lossless else "image/jpeg", width, height)
