"""What the header of an encoded image states, and its orientation, which is taken out without touching a pixel."""

from __future__ import annotations

import io
import re
import struct
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tfrecord_io.arrow.image_pixels import (
    EXIF_FIRST,
    IMAGE_FORMATS,
    KNOWN_FORMATS,
    ORIENTATION,
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
_XMP = re.compile(rb"""(tiff:Orientation(?:=["']|>))[2-8]""")
_SHORT = 3  # the type of the value of an orientation
_PNG = b"\x89PNG\r\n\x1a\n"


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
    if name != "png" or not _PNG_METADATA.isdisjoint(type_ for type_, _, _ in _png_chunks(data)):  # else it is loaded
        header = replace(header, orientation=orientation_of(image))
    return header


def without_orientation(data: bytes) -> bytes | None:
    """An image whose metadata states no orientation but 1: the same pixels as stored; None if it cannot be taken out.

    The value is replaced where it stands, so nothing is encoded again and nothing moves.
    """
    images = pillow("reading the orientation of images")
    try:
        changed = _without_orientation(data, images)
        with images.open(io.BytesIO(changed), formats=IMAGE_FORMATS) as image:
            if image.format not in EXIF_FIRST:
                image.load()
            return changed if orientation_of(image) == 1 else None
    except MemoryError:
        raise
    except Exception:  # of damaged images, of any type
        return None


def _without_orientation(data: bytes, images: Any) -> bytes:
    changed = bytearray(_XMP.sub(rb"\g<1>1", data))
    with images.open(io.BytesIO(data), formats=IMAGE_FORMATS) as image:
        if image.format not in EXIF_FIRST:
            image.load()
        exif = data if image.format == "TIFF" else image.info.get("exif", b"").removeprefix(b"Exif\0\0")
    at = data.find(exif) if exif else -1
    if at >= 0:
        _set_upright(changed, at)
    if data.startswith(_PNG):
        for _, begin, end in list(_png_chunks(changed)):
            if end + 4 <= len(changed):  # else it is truncated
                changed[end : end + 4] = zlib.crc32(changed[begin:end]).to_bytes(4)
    return bytes(changed)


def _set_upright(data: bytearray, at: int) -> None:
    """Set the orientation of EXIF data, which has the form of a TIFF and begins at a place, to 1."""
    order = {b"II": "<", b"MM": ">"}.get(bytes(data[at : at + 2]))
    if order is None:
        return
    (first,) = struct.unpack_from(f"{order}I", data, at + 4)
    (count,) = struct.unpack_from(f"{order}H", data, at + first)
    for entry in range(at + first + 2, at + first + 2 + 12 * count, 12):
        tag, type_ = struct.unpack_from(f"{order}HH", data, entry)
        if tag == ORIENTATION and type_ == _SHORT:
            struct.pack_into(f"{order}H", data, entry + 8, 1)


def _png_chunks(data: bytes | bytearray) -> Iterator[tuple[bytes, int, int]]:
    """The type of each chunk of a PNG, and where type and content begin and end, before the checksum."""
    at = len(_PNG)
    while at + 12 <= len(data):
        end = at + 8 + int.from_bytes(data[at : at + 4])
        yield bytes(data[at + 4 : at + 8]), at + 4, end
        at = end + 4
