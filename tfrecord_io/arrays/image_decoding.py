"""Encoded images as arrays, by Pillow, on several threads: it decodes without the interpreter's lock."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.output.ragged import Ragged
from tfrecord_io.arrow.output.to_numpy import Dense, Rows
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import MissingDependencyError
from tfrecord_io.schema.field import IMAGE_KEY, SHAPE_KEY

_FORMATS = ("JPEG", "PNG", "WEBP")  # a closed list: Pillow knows formats that run other programs
_CHANNELS = {"L": 1, "RGB": 3, "RGBA": 4}
_AS_THEY_ARE = ("L", "LA", "RGB", "RGBA", "I;16", "I")  # Pillow's modes whose pixels are their values
_SIXTEEN_BITS = ("I;16", "I")  # of a PNG; Pillow would clip them to 255
_PNG, _DEPTH, _COLOUR = b"\x89PNG", 24, 25  # where a PNG says bits and channels


@dataclass(frozen=True, slots=True)
class Images:
    """How the images of a column are decoded; see `tfrecord_io.image`.

    Attributes
    ----------
    feature : str
    mode : {"RGB", "L", "RGBA", "unchanged"}
    resize : tuple of int, optional
        (height, width)
    shape : tuple of int or None, optional
        (height, width, channels) that each image has to have.
    """

    feature: str
    mode: str
    resize: tuple[int, int] | None = None
    shape: tuple[int | None, ...] | None = None

    @classmethod
    def of(cls, field: pa.Field) -> Self | None:
        """Of a field that `tfrecord_io.image` made; None of any other."""
        metadata = field.metadata or {}
        if IMAGE_KEY not in metadata:
            return None
        said = json.loads(metadata[IMAGE_KEY])
        shape = json.loads(metadata.get(SHAPE_KEY, b"null"))
        resize = said.get("resize")
        return cls(
            field.name, said["mode"], None if resize is None else tuple(resize), None if shape is None else tuple(shape)
        )

    @property
    def size(self) -> tuple[int, ...] | None:
        """The shape of every array, where it is known beforehand."""
        channels = _CHANNELS.get(self.mode)
        if channels is None:
            return None
        if self.resize is not None:
            return (*self.resize, channels)
        return None if self.shape is None or None in self.shape else self.shape  # type: ignore[return-value]

    def rows(self, encoded: Sequence[bytes | None], threads: int) -> Rows:
        """The arrays: uint8, [height, width, channels]; with "unchanged" objects, each of its own dtype.

        Raises
        ------
        RowFault
            An image cannot be decoded; of several the first.
        MissingDependencyError
            Pillow is not installed.
        """
        decoder = _Decoder(self)
        valid = np.fromiter((data is not None for data in encoded), np.bool_, len(encoded))
        present = [(row, data) for row, data in enumerate(encoded) if data is not None]
        some_missing = None if valid.all() else valid
        if self.size is not None:
            whole = np.zeros((len(encoded), *self.size), np.uint8)
            for row, pixels in _each(decoder, present, threads):
                whole[row] = pixels
            return Dense(whole, some_missing)
        found = [pixels for _, pixels in _each(decoder, present, threads)]
        if self.mode == "unchanged":
            cells = np.full(len(encoded), None, object)
            for (row, _), pixels in zip(present, found, strict=True):
                cells[row] = pixels
            return Dense(cells)
        shapes = np.array([pixels.shape for pixels in found], np.int64).reshape(-1, 3)
        flat = np.concatenate([np.empty(0, np.uint8), *(pixels.reshape(-1) for pixels in found)])
        return Ragged.of_present(flat, shapes.prod(axis=1), some_missing, shapes)


def _each(decoder: _Decoder, encoded: list[tuple[int, bytes]], threads: int) -> Iterator[tuple[int, Array]]:
    """Row and pixels of each image, in order."""
    if threads == 1 or len(encoded) <= 1:
        yield from map(decoder, encoded)
        return
    with ThreadPoolExecutor(min(threads, len(encoded)), thread_name_prefix="tfrecord_io images") as pool:
        try:
            yield from pool.map(decoder, encoded)
        finally:
            pool.shutdown(cancel_futures=True)


class _Decoder:
    """Decodes one image."""

    def __init__(self, images: Images) -> None:
        try:
            import PIL.Image
        except ImportError as error:
            reason = "images are decoded by the package pillow"
            raise MissingDependencyError(
                reason, feature=images.feature, advice="pip install 'tfrecord_io[image]'"
            ) from error
        self._pillow: Any = PIL.Image
        self._images = images

    def __call__(self, item: tuple[int, bytes]) -> tuple[int, Array]:
        row, data = item
        try:
            with self._pillow.open(io.BytesIO(data), formats=_FORMATS) as image:
                self._refuse_bomb(image)
                if self._images.mode == "unchanged" and _loses_bits(data):
                    reason = "its PNG has 16 bits in each of several channels, of which only 8 can be decoded"
                    raise self._error(
                        row, f'{reason}: mode="RGB" takes the upper 8', "8 bits, or one channel", "16 bits"
                    )
                pixels = self._pixels(image)
        except RowFault:
            raise
        except MemoryError:
            raise
        except self._pillow.UnidentifiedImageError as error:
            reason = f"its {len(data)} bytes are no image: they begin with {data[:8]!r}"
            raise self._error(row, reason, "JPEG, PNG or WebP", data[:8]) from error
        except Exception as error:  # Pillow's decoders raise whatever their format makes them
            reason = f"its {len(data)} bytes are no image that can be decoded: {type(error).__name__}: {error}"
            raise self._error(row, reason, "JPEG, PNG or WebP") from error
        shape = self._images.shape
        if shape is not None and self._images.resize is None and not _fits(pixels.shape, shape):
            raise self._error(row, f"expected an image of shape {shape}, got {pixels.shape}", shape, pixels.shape)
        return row, pixels

    def _refuse_bomb(self, image: Any) -> None:
        most = self._pillow.MAX_IMAGE_PIXELS
        if most is not None and image.width * image.height > most:
            raise ValueError(f"{image.width}×{image.height} pixels are more than PIL.Image.MAX_IMAGE_PIXELS, {most}")

    def _pixels(self, image: Any) -> Array:
        mode, resize = self._images.mode, self._images.resize
        if mode == "unchanged":
            if image.mode not in _AS_THEY_ARE:
                image = image.convert(_nearest(image))
        elif image.mode != mode:
            image = (self._upper_bits(image) if image.mode in _SIXTEEN_BITS else image).convert(mode)
        if resize is not None:
            image = image.resize((resize[1], resize[0]), self._pillow.Resampling.BILINEAR)
        pixels = np.array(image)
        return pixels if pixels.ndim == 3 else pixels[:, :, None]

    def _upper_bits(self, image: Any) -> Any:
        """The upper 8 bits of 16, as TensorFlow's ``decode_png`` gives them."""
        return self._pillow.fromarray((np.asarray(image) >> 8).astype(np.uint8))

    def _error(self, row: int, reason: str, expected: object, got: object = None) -> RowFault:
        return RowFault(row, reason, feature=self._images.feature, expected=expected, got=got)


def _loses_bits(data: bytes) -> bool:
    """Whether this is a PNG of several channels of 16 bits, of which Pillow gives the upper 8."""
    return data.startswith(_PNG) and data[_DEPTH : _DEPTH + 1] == b"\x10" and data[_COLOUR : _COLOUR + 1] != b"\0"


def _nearest(image: Any) -> str:
    """The mode in which an image's values are those that are seen: palettes hold numbers of colours."""
    if image.mode == "P":
        return "RGBA" if "transparency" in image.info else "RGB"
    return {"1": "L", "PA": "RGBA", "La": "LA", "RGBa": "RGBA"}.get(image.mode, "RGB")


def _fits(shape: tuple[int, ...], declared: tuple[int | None, ...]) -> bool:
    return len(shape) == len(declared) and all(said in (None, size) for size, said in zip(shape, declared, strict=True))


def stack_equal(cells: Array) -> Array:
    """One array of the arrays in an object array, where they have one dtype and shape; else the object array."""
    kinds = {None if cell is None else (cell.dtype, cell.shape) for cell in cells}
    if len(kinds) == 1 and None not in kinds:
        with suppress(ValueError):
            return np.stack(cells.tolist())
    return cells
