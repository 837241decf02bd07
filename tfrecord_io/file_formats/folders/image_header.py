"""Format and size of encoded images, from their headers, by Pillow."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from typing import Any

from tfrecord_io.errors import DecodeError, MissingDependencyError
from tfrecord_io.format.magic import looks_like

SUFFIXES = {"jpeg": (".jpg", ".jpeg", ".jpe"), "png": (".png",), "gif": (".gif",), "bmp": (".bmp",), "webp": (".webp",)}
IMAGE_SUFFIXES = tuple(suffix for suffixes in SUFFIXES.values() for suffix in suffixes)
_FORMATS = tuple(name.upper() for name in SUFFIXES)  # a closed list: some of Pillow's formats run other programs


@dataclass(frozen=True, slots=True)
class ImageHeader:
    """The format and size of an encoded image, as stored: an orientation in its metadata is not applied."""

    format: str  # a key of `SUFFIXES`
    height: int
    width: int


def pillow() -> Any:
    """The module PIL.Image."""
    try:
        import PIL.Image
    except ImportError as error:
        reason = "reading the sizes of images needs the package pillow"
        raise MissingDependencyError(reason, advice="pip install 'tfrecord_io[image]'") from error
    return PIL.Image


def image_header(data: bytes, path: str, feature: str | None = None) -> ImageHeader:
    """The header of an image; pixels are not decoded.

    Raises
    ------
    DecodeError
        It is not an image of a known format, or declares more pixels than Pillow accepts.
    """
    images = pillow()
    expected = "JPEG, PNG, GIF, BMP or WebP"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", images.DecompressionBombWarning)  # nothing is decoded
            with images.open(io.BytesIO(data), formats=_FORMATS) as image:
                header = ImageHeader(image.format.lower(), image.height, image.width)
    except images.DecompressionBombError as error:
        reason = "its header declares more pixels than twice PIL.Image.MAX_IMAGE_PIXELS"
        advice = "raise that limit if the image is genuine"
        raise DecodeError(
            reason, path=path, feature=feature, expected=images.MAX_IMAGE_PIXELS, advice=advice
        ) from error
    except MemoryError:
        raise
    except Exception as error:  # Pillow's readers raise exceptions of any type, some with the image's bytes
        form = looks_like(data)
        reason = f"its {len(data)} bytes are not an image of a known format"
        reason = reason if form is None else f"{reason}; they look like {form}"
        raise DecodeError(reason, path=path, feature=feature, expected=expected, got=type(error).__name__) from None
    if header.height < 1 or header.width < 1:
        reason = f"its header declares {header.width}×{header.height} pixels"
        raise DecodeError(reason, path=path, feature=feature, expected=expected, got=(header.height, header.width))
    return header
