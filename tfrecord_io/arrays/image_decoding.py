"""Decoding images into arrays, by Pillow on several threads: it decodes without the GIL."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfrecord_io.arrow.output.to_numpy import Dense, Ragged, Rows
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.background import ordered
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import MissingDependencyError, SchemaError
from tfrecord_io.format.magic import looks_like
from tfrecord_io.options.expansion import Expansion
from tfrecord_io.schema.composite import declared_image
from tfrecord_io.schema.field import IMAGE_KEY
from tfrecord_io.schema.types import is_bytes

_FORMATS = ("JPEG", "PNG", "WEBP")  # a closed list: some of Pillow's formats run other programs
_CHANNELS = {"L": 1, "RGB": 3, "RGBA": 4}
_VALUE_MODES = ("L", "LA", "RGB", "RGBA", "I;16", "I")  # Pillow's modes whose pixels are values, not palette indices
_MODES_16_BIT = ("I;16", "I")  # of a PNG; converting them, Pillow would clip values to 255
_PNG, _DEPTH, _COLOUR = b"\x89PNG", 24, 25  # magic, and the offsets of a PNG's bit depth and colour type


@dataclass(frozen=True, slots=True)
class ImageDecoder:
    """Decodes the images of a column; see `tfrecord_io.image`."""

    feature: str
    mode: str  # "RGB", "L", "RGBA" or "unchanged"
    resize: tuple[int, int] | None = None  # to (height, width)
    shape: tuple[int | None, ...] | None = None  # (height, width, channels) required of each image

    @classmethod
    def for_field(cls, field: pa.Field) -> Self | None:
        """The decoder for a field made by `tfrecord_io.image`, None for any other field.

        SchemaError if the metadata is damaged.
        """
        metadata = field.metadata or {}
        if IMAGE_KEY not in metadata:
            return None
        if not is_bytes(field.type):
            reason = f"the metadata declares an image, but the column is of {field.type}"
            raise SchemaError(reason, feature=field.name, expected="binary", got=str(field.type))
        return cls(field.name, *declared_image(metadata, field.name))

    @property
    def size(self) -> tuple[int, ...] | None:
        """The shape of every array, if it is known in advance."""
        channels = _CHANNELS.get(self.mode)
        if channels is None:
            return None
        if self.resize is not None:
            return (*self.resize, channels)
        return None if self.shape is None or None in self.shape else self.shape  # type: ignore[return-value]

    def refuse_expansion(self, arrays: Sequence[pa.Array], expansion: Expansion) -> None:
        """Refuse images whose arrays `expansion` has no room for, if their size is known in advance.

        Raises
        ------
        RowFault
            Of the first row without room, numbered through all arrays.
        """
        if self.size is None:
            return
        rows, own = sum(map(len, arrays)), math.prod(self.size)
        fitting = expansion.room // own
        expansion.add(sum(pc.sum(pc.binary_length(array)).as_py() or 0 for array in arrays))
        if not expansion.take(rows * own):
            reason = f"{rows} images of {self.size}, as the file declares them, take {rows * own} bytes"
            advice = f"{expansion.advice(rows * own)}, or declare the column by schema="
            raise RowFault(
                min(fitting, rows - 1),
                expansion.excess(reason),
                feature=self.feature,
                expected=expansion.room,
                got=rows * own,
                advice=advice,
                of_memory=True,
            )

    def rows(self, encoded: Sequence[bytes | None], threads: int) -> Rows:
        """Decode the images of a column to uint8 [height, width, channels]; with "unchanged" to objects of any dtype.

        The RowFault it may raise is that of the first image that cannot be decoded.
        """
        decode = partial(self._decode, _pillow(self.feature))
        present = np.fromiter((data is not None for data in encoded), np.bool_, len(encoded))
        images = [(row, data) for row, data in enumerate(encoded) if data is not None]
        valid = None if present.all() else present
        if self.size is not None:
            stacked = np.zeros((len(encoded), *self.size), np.uint8)
            for row, pixels in _map(decode, images, threads):
                stacked[row] = pixels
            return Dense(stacked, valid)
        decoded = [pixels for _, pixels in _map(decode, images, threads)]
        if self.mode == "unchanged":
            cells = np.full(len(encoded), None, object)
            for (row, _), pixels in zip(images, decoded, strict=True):
                cells[row] = pixels
            return Dense(cells)
        shapes = np.array([pixels.shape for pixels in decoded], np.int64).reshape(-1, 3)
        flat = np.concatenate([np.empty(0, np.uint8), *(pixels.reshape(-1) for pixels in decoded)])
        return Ragged.of_present(flat, shapes.prod(axis=1), valid, shapes)

    def _decode(self, pillow: Any, item: tuple[int, bytes]) -> tuple[int, Array]:
        row, data = item
        fault = partial(RowFault, row, feature=self.feature)
        try:
            with pillow.open(io.BytesIO(data), formats=_FORMATS) as image:
                limit = pillow.MAX_IMAGE_PIXELS
                if limit is not None and image.width * image.height > limit:
                    size = f"{image.width}×{image.height}"
                    reason = f"its {size} pixels are more than PIL.Image.MAX_IMAGE_PIXELS, {limit}"
                    raise fault(reason, expected=limit, got=image.width * image.height)
                if self.mode == "unchanged" and _loses_bits(data):
                    reason = "its PNG has 16 bits in each of several channels, of which only 8 can be decoded"
                    reason += ': tfr.image(mode="RGB") takes the upper 8'
                    raise fault(reason, expected="8 bits, or one channel", got="16 bits")
                pixels = self._pixels(pillow, image)
        except (RowFault, MemoryError):
            raise
        except pillow.UnidentifiedImageError as error:
            form = looks_like(data)
            reason = f"its {len(data)} bytes cannot be identified as a JPEG, PNG or WebP image"
            reason = reason if form is None else f"{reason}; they look like {form}"
            raise fault(reason, expected="JPEG, PNG or WebP") from error
        except Exception as error:  # Pillow's decoders raise exceptions of any type, some with the image's bytes
            reason = f"its {len(data)} bytes are not an image that can be decoded ({type(error).__name__})"
            raise fault(reason, expected="JPEG, PNG or WebP") from None
        if self.shape is not None and self.resize is None and not _fits(pixels.shape, self.shape):
            reason = f"expected an image of shape {self.shape}, got {pixels.shape}"
            raise fault(reason, expected=self.shape, got=pixels.shape)
        return row, pixels

    def _pixels(self, pillow: Any, image: Any) -> Array:
        if self.mode == "unchanged":
            if image.mode not in _VALUE_MODES:
                image = image.convert(_value_mode(image))
        elif image.mode != self.mode:
            if image.mode in _MODES_16_BIT:  # take the upper 8 bits, as TensorFlow's ``decode_png`` does
                image = pillow.fromarray((np.asarray(image) >> 8).astype(np.uint8))
            image = image.convert(self.mode)
        if self.resize is not None:
            image = image.resize(self.resize[::-1], pillow.Resampling.BILINEAR)
        pixels = np.array(image)
        return pixels if pixels.ndim == 3 else pixels[:, :, None]


def _pillow(feature: str) -> Any:
    try:
        import PIL.Image
    except ImportError as error:
        reason = "decoding images needs the package pillow"
        raise MissingDependencyError(reason, feature=feature, advice="pip install 'tfrecord_io[image]'") from error
    return PIL.Image


def _map(
    decode: Callable[[tuple[int, bytes]], tuple[int, Array]], images: list[tuple[int, bytes]], threads: int
) -> Iterator[tuple[int, Array]]:
    """Row and pixels of each image, in order."""
    return ordered((partial(decode, image) for image in images), min(threads, len(images)), "images")


def _loses_bits(data: bytes) -> bool:
    """Whether this is a PNG with several channels of 16 bits, of which Pillow returns the upper 8."""
    return data.startswith(_PNG) and data[_DEPTH : _DEPTH + 1] == b"\x10" and data[_COLOUR : _COLOUR + 1] != b"\0"


def _value_mode(image: Any) -> str:
    """The mode to convert an image to, so that its pixels are values: a palette's are indices of colours."""
    if image.mode == "P":
        return "RGBA" if "transparency" in image.info else "RGB"
    return {"1": "L", "PA": "RGBA", "La": "LA", "RGBa": "RGBA"}.get(image.mode, "RGB")


def _fits(shape: tuple[int, ...], declared: tuple[int | None, ...]) -> bool:
    return len(shape) == len(declared) and all(b in (None, a) for a, b in zip(shape, declared, strict=True))


def stack_equal(cells: Array) -> Array:
    """Stack the arrays in an object array if they have the same dtype and shape; else return the object array."""
    types = {None if cell is None else (cell.dtype, cell.shape) for cell in cells}
    if len(types) == 1 and None not in types:
        with suppress(ValueError):
            return np.stack(cells.tolist())
    return cells
