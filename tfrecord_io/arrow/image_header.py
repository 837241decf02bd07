"""What the header of an encoded image states."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tfrecord_io.arrow.image_pixels import (
    IMAGE_FORMATS,
    KNOWN_FORMATS,
    bits_of,
    is_turned,
    orientation_of,
    pillow,
    tiff_form,
    turned_size,
)
from tfrecord_io.errors import DecodeError
from tfrecord_io.format.foreign_files import looks_like
from tfrecord_io.value_class import value_class

_CHANNELS = {"1": 1, "P": 1, "I": 1, "F": 1, "LA": 2, "La": 2, "PA": 2, "RGBA": 4, "RGBa": 4, "CMYK": 4, "RGBX": 4}
_PNG_METADATA = {b"eXIf", b"tEXt", b"zTXt", b"iTXt"}  # chunks that can have an orientation
PNG = b"\x89PNG\r\n\x1a\n"


@value_class
class ImageHeader:
    """The form of an encoded image, as stored: an orientation in its metadata is not applied."""

    format: str  # a key of `IMAGES`
    height: int
    width: int
    mode: str = "RGB"  # of Pillow; of a TIFF that it does not know "TIFF"
    channels: int = 3  # 1 of a palette
    bits: int = 8  # of a value; of an index, if there is a palette
    orientation: int = 1  # 1 to 8, as in EXIF data

    @property
    def has_palette(self) -> bool:
        """Whether its pixels are numbers of colours."""
        return self.mode in ("P", "PA")

    @property
    def turned_size(self) -> tuple[int, int]:
        """The height and width of the picture that the orientation makes of it."""
        return turned_size((self.height, self.width), self.orientation)

    def is_turned(self, stated: tuple[int | None, int | None]) -> bool | None:
        """Whether a stated height and width are those of that picture; see `image_pixels.is_turned`."""
        return is_turned(stated, (self.height, self.width), self.orientation)


def image_header(data: bytes, path: str, feature: str | None = None) -> ImageHeader:
    """The header of an image; pixels are not decoded.

    DecodeError if it is not an image of a known format, or declares more pixels than Pillow accepts.
    """
    images = pillow("reading the sizes of images")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", images.DecompressionBombWarning)  # nothing is decoded
            with images.open(io.BytesIO(data), formats=IMAGE_FORMATS) as image:
                header = _header(image, data)
    except images.DecompressionBombError as error:
        reason = "its header declares more pixels than twice PIL.Image.MAX_IMAGE_PIXELS"
        advice = "raise that limit if the image is genuine"
        most = images.MAX_IMAGE_PIXELS
        raise DecodeError(reason, path=path, feature=feature, expected=most, advice=advice) from error
    except MemoryError:
        raise
    except Exception as error:  # Pillow's readers raise exceptions of any type, some with the image's bytes
        known = tiff_form(data)
        if known is None:
            form = looks_like(data)
            reason = f"its {len(data)} bytes are not an image of a known format"
            reason = reason if form is None else f"{reason}; they look like {form}"
            got = type(error).__name__
            raise DecodeError(reason, path=path, feature=feature, expected=KNOWN_FORMATS, got=got) from None
        header = ImageHeader("tiff", *known[:2], "TIFF", *known[2:])
    if header.height < 1 or header.width < 1:
        reason = f"its header declares {header.width}×{header.height} pixels"
        raise DecodeError(reason, path=path, feature=feature, expected=KNOWN_FORMATS, got=(header.height, header.width))
    return header


def _header(image: Any, data: bytes) -> ImageHeader:
    name = "jpeg" if image.format == "MPO" else image.format.lower()  # a JPEG followed by others
    channels = 1 if image.mode.startswith("I;16") else _CHANNELS.get(image.mode, len(image.mode))
    header = ImageHeader(name, image.height, image.width, image.mode, channels, bits_of(image, data))
    if name == "tiff":  # of which Pillow states the size of the turned picture
        known = tiff_form(data)
        header = header if known is None else replace(header, height=known[0], width=known[1])
    if name != "png" or not _PNG_METADATA.isdisjoint(type_ for type_, _, _ in png_chunks(data)):  # else it is loaded
        header = replace(header, orientation=orientation_of(image))
    return header


def png_chunks(data: bytes | bytearray) -> Iterator[tuple[bytes, int, int]]:
    """The type of each chunk of a PNG, and where type and content begin and end, before the checksum."""
    at = len(PNG)
    while at + 12 <= len(data):
        end = at + 8 + int.from_bytes(data[at : at + 4])
        yield bytes(data[at + 4 : at + 8]), at + 4, end
        at = end + 4
