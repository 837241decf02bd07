"""Convert masks and key points of objects between the forms of COCO, columns, and PNG images; without pycocotools."""

from __future__ import annotations

import io
import json
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tfrecord_io.columns import ImageHeader
from tfrecord_io.typing import Masks

_UPSAMPLED = 5  # COCO places the corners of a polygon on a grid of this many points for each pixel
_MOST_PIXELS = 1 << 28  # of a mask, which is drawn
_MOST_POINTS = 1 << 22  # of the grid, on the edges of a polygon
_MOST_COORDINATE = 2**31
MOST_KEYPOINTS = 1000  # of an object: all objects of a file have as many values
MOST_DIGITS = 40  # of a number
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")  # Python's float takes other digits, and "_"


def number_below(value: Any, maximum: float) -> float | None:
    """A number whose absolute value is less; None if a value is none."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < maximum:
        return float(value)  # NaN is never less
    return None


def pixels(value: Any) -> float | None:
    """A coordinate, or None if a value is not one."""
    return number_below(value, _MOST_COORDINATE)


def pixels_in(text: str) -> float | None:
    """The coordinate, in pixels or as a fraction, that a text states; None if it states none."""
    return pixels(float(text)) if len(text) <= MOST_DIGITS and _NUMBER.fullmatch(text) else None


class Shape(NamedTuple):
    """Mask and key points of an object in an annotation, in pixels, or as fractions in YOLO files."""

    segmentation: Any = None  # checked by `check_segmentation`; None: no mask
    keypoints: Sequence[float] = ()  # x, y and visibility (0, 1, 2) of each
    labelled: int = 0  # number of key points that are labelled
    names: Sequence[str] = ()  # of the key points


@dataclass(frozen=True, slots=True)
class ShapeColumns:
    """Which columns have the shapes of objects."""

    masks: Masks | None
    keypoints: int = 0  # the most of an object
    named: bool = False  # True if the key points have names

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The columns, by name below ``image/object``."""
        types: dict[str, pa.DataType] = {}
        if self.masks is not None:
            types |= {"segmentation": pa.string()} if self.masks == "json" else {"mask": pa.binary()}
        if self.keypoints:
            types |= {"keypoint/x": pa.float32(), "keypoint/y": pa.float32()}
            types |= {"keypoint/visibility": pa.int64(), "keypoint/num": pa.int64()}
        return types | ({"keypoint/text": pa.string()} if self.named else {})

    def values(self, shapes: Sequence[Shape], height: int, width: int, *, fractions: bool) -> list[list[Any]]:
        """The values of the columns for the objects of an image; ValueError for a mask that cannot be drawn."""
        columns: list[list[Any]] = []
        if self.masks is not None:
            segmentations = [
                _scale_to_pixels(shape.segmentation, height, width, fractions=fractions) for shape in shapes
            ]
            columns.append([self._mask(segmentation, height, width) for segmentation in segmentations])
        if self.keypoints:
            points = [_pad(shape.keypoints, 3 * self.keypoints, 0) for shape in shapes]
            x, y = (1, 1) if fractions else (width, height)
            columns.append([value / x for values in points for value in values[0::3]])
            columns.append([value / y for values in points for value in values[1::3]])
            columns.append([int(value) for values in points for value in values[2::3]])
            columns.append([shape.labelled for shape in shapes])
        if self.named:
            columns.append([name for shape in shapes for name in _pad(shape.names, self.keypoints, "")])
        return columns

    def _mask(self, segmentation: Any, height: int, width: int) -> str | bytes:
        if self.masks == "json":
            check_segmentation(segmentation, height, width)
            if isinstance(segmentation, Mapping):
                segmentation = {name: segmentation[name] for name in ("size", "counts")}
            return json.dumps(segmentation or [], separators=(",", ":"))
        return png_of(draw(segmentation, height, width))


def _pad(values: Sequence[Any], length: int, value: Any) -> list[Any]:
    return [*values, *[value] * (length - len(values))]


def _scale_to_pixels(segmentation: Any, height: int, width: int, *, fractions: bool) -> Any:
    if not fractions or not segmentation:
        return segmentation
    return [[value * (height if at % 2 else width) for at, value in enumerate(part)] for part in segmentation]


# ---- COCO's forms of a mask: polygons, or the lengths of runs of 0 and 1, column by column


def check_segmentation(segmentation: Any, height: int | None = None, width: int | None = None) -> None:
    """Raise ValueError, with the reason as a clause, if it is not a mask of an image of this size."""
    if not segmentation and segmentation in (None, []):
        return
    if isinstance(segmentation, Mapping):
        counts_of(segmentation, height, width)
    elif not isinstance(segmentation, list) or not all(map(_is_polygon, segmentation)):
        raise ValueError("it is neither polygons [[x, y, x, y, x, y, …], …] nor a run-length encoded mask")


def _is_polygon(part: Any) -> bool:
    return isinstance(part, list) and len(part) >= 6 and len(part) % 2 == 0 and None not in map(pixels, part)


def counts_of(mask: Mapping[str, Any], height: int | None = None, width: int | None = None) -> list[int]:
    """The lengths of the runs of an encoded mask, ``{"size": [height, width], "counts": …}``; ValueError if it is none.

    >>> counts_of({"size": [2, 3], "counts": "132"})
    [1, 3, 2]
    """
    size, counts = mask.get("size"), mask.get("counts")
    if not isinstance(size, list) or len(size) != 2 or not all(type(side) is int and side > 0 for side in size):
        raise ValueError("the 'size' of the run-length encoded mask is not [height, width]")
    if height is not None and size != [height, width]:
        raise ValueError(f"the 'size' of the run-length encoded mask is not [{height}, {width}], that of the image")
    counts = decode_counts(counts) if isinstance(counts, str) else counts
    if not isinstance(counts, list) or not all(type(count) is int and count >= 0 for count in counts):
        raise ValueError("the 'counts' of the run-length encoded mask are not lengths of runs")
    if sum(counts) != size[0] * size[1]:
        raise ValueError(f"the 'counts' of the run-length encoded mask do not add up to its {size[0]}×{size[1]} pixels")
    return counts


def decode_counts(text: str) -> list[int]:
    """The lengths of runs from COCO's text: six bits in each character, the lowest first; ValueError if it is not that.

    From the fourth on, a number is the difference to the one before the last.
    """
    counts: list[int] = []
    value = shift = 0
    for character in text:
        bits = ord(character) - 48
        if not 0 <= bits < 64 or shift > 60:
            raise ValueError("the 'counts' of the run-length encoded mask are not text of COCO")
        value |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:
            value -= 1 << shift
        counts.append(value + counts[-2] if len(counts) > 2 else value)
        value = shift = 0
    if shift:
        raise ValueError("the 'counts' of the run-length encoded mask are truncated")
    return counts


def encode_counts(counts: Sequence[int]) -> str:
    """The text of lengths of runs, as pycocotools writes it.

    >>> encode_counts([1, 3, 2]), decode_counts(encode_counts([9, 100, 3, 40, 1]))
    ('132', [9, 100, 3, 40, 1])
    """
    text = []
    for at, count in enumerate(counts):
        value = count - counts[at - 2] if at > 2 else count
        more = True
        while more:
            bits = value & 31
            value >>= 5
            more = value != (-1 if bits & 16 else 0)
            text.append(chr(48 + bits + (32 if more else 0)))
    return "".join(text)


def encode_mask(mask: np.ndarray) -> dict[str, Any]:
    """A mask, an array [height, width] that is not 0 inside, run-length encoded."""
    pixels = np.concatenate([[0], np.ravel(mask.T != 0), [2]])
    ends = np.flatnonzero(np.diff(pixels.astype(np.int8)))  # the first run counts zeros, perhaps none
    counts: list[int] = np.diff(ends, prepend=0).tolist()
    return {"size": [*mask.shape], "counts": encode_counts(counts or [mask.size])}


def draw(segmentation: Any, height: int, width: int) -> np.ndarray:
    """The mask of an object as an array [height, width] of 0 and 1, pixel by pixel that of pycocotools.

    Raises
    ------
    ValueError
        It is not a mask of an image of this size.
    """
    if height * width > _MOST_PIXELS:
        raise ValueError(f"a mask of {height}×{width} pixels is too large to be drawn")
    check_segmentation(segmentation, height, width)
    pixels = np.zeros(height * width, np.uint8)
    parts = [segmentation] if isinstance(segmentation, Mapping) else segmentation or []
    for part in parts:
        counts = counts_of(part) if isinstance(part, Mapping) else _counts_of_polygon(part, height, width)
        pixels |= np.repeat((np.arange(len(counts)) & 1).astype(np.uint8), counts)
    return pixels.reshape(width, height).T


def _counts_of_polygon(polygon: Sequence[float], height: int, width: int) -> list[int]:
    """The lengths of the runs inside a polygon, as ``rleFrPoly`` of pycocotools counts them."""
    corners = np.trunc(np.asarray(polygon, np.float64).reshape(-1, 2) * _UPSAMPLED + 0.5).astype(np.int64)
    following = np.roll(corners, -1, axis=0)
    if np.abs(following - corners).max(axis=1).sum() > _MOST_POINTS:
        raise ValueError(f"a polygon is too large to be drawn in an image of {height}×{width} pixels")
    edges = [_edge(*begin, *end) for begin, end in zip(corners.tolist(), following.tolist(), strict=True)]
    u, v = np.concatenate(edges, axis=1)
    turns = np.flatnonzero(u[1:] != u[:-1]) + 1
    x = (np.where(u[turns] < u[turns - 1], u[turns], u[turns] - 1) + 0.5) / _UPSAMPLED - 0.5
    y = np.ceil(np.clip((np.minimum(v[turns], v[turns - 1]) + 0.5) / _UPSAMPLED - 0.5, 0, height))
    inside = (np.floor(x) == x) & (x >= 0) & (x <= width - 1)
    starts = np.sort((x[inside] * height + y[inside]).astype(np.int64))
    starts, times = np.unique(np.append(starts, height * width), return_counts=True)
    odd = (times % 2 == 1) | (starts == height * width)  # an edge that is crossed twice is none
    runs: list[int] = np.diff(starts[odd], prepend=0).tolist()
    return runs


def _edge(x0: int, y0: int, x1: int, y1: int) -> np.ndarray:
    """The points of the grid on an edge, [2, points]."""
    dx, dy = abs(x1 - x0), abs(y1 - y0)
    flip = (dx >= dy and x0 > x1) or (dx < dy and y0 > y1)
    if flip:
        x0, y0, x1, y1 = x1, y1, x0, y0
    steps = np.arange(max(dx, dy) + 1)
    if dx >= dy:
        points = x0 + steps, np.trunc(y0 + ((y1 - y0) / dx if dx else 0) * steps + 0.5).astype(np.int64)
    else:
        points = np.trunc(x0 + (x1 - x0) / dy * steps + 0.5).astype(np.int64), y0 + steps
    both = np.stack(points)
    return both[:, ::-1] if flip else both


def png_of(mask: np.ndarray) -> bytes:
    """A mask as a PNG image of 0 and 1, as ``create_coco_tf_record.py`` stores it."""
    file = io.BytesIO()
    ImageHeader.pillow("writing masks").fromarray(np.ascontiguousarray(mask)).save(file, "PNG")
    return file.getvalue()


def mask_of_png(data: bytes, height: int, width: int) -> np.ndarray:
    """A mask that is stored as a PNG image; ValueError, with the reason as a clause, if it is none of this size."""
    images = ImageHeader.pillow("reading masks")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", images.DecompressionBombWarning)
            with images.open(io.BytesIO(data), formats=("PNG",)) as image:
                if (image.height, image.width) != (height, width):
                    raise ValueError(f"it has {image.height}×{image.width} pixels, the image {height}×{width}")
                return np.asarray(image.convert("L") if image.mode not in ("L", "1") else image)
    except (MemoryError, ValueError):
        raise
    except Exception as error:  # Pillow's readers raise exceptions of any type
        raise ValueError(f"it is not a PNG image ({type(error).__name__})") from None
