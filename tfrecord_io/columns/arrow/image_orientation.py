"""Remove the orientation of a photo from its metadata, where it stands.

Tests: tests/plugins/vision/test_annotated_images_turned_photos.py.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from typing import Any

from tfrecord_io.columns.arrow.image_header import (
    EXIF_FIRST,
    IMAGE_FORMATS,
    ORIENTATION,
    PNG,
    orientation_of,
    pillow,
    png_chunks,
)
from tfrecord_io.errors import DecodeError

_XMP = re.compile(rb"""(tiff:Orientation(?:=["']|>))[2-8]""")
_SHORT = 3  # the type of the value of an orientation


def remove_orientation(content: bytes, orientation: int, path: str | None, advice: str) -> bytes:
    """Remove the EXIF orientation of a photo with boxes on the stored pixels; DecodeError if that is impossible.

    The value is replaced where it stands, so nothing is encoded again and nothing moves.
    """
    images = pillow("reading the orientation of images")
    try:
        changed = _drop_orientation(content, images)
        with images.open(io.BytesIO(changed), formats=IMAGE_FORMATS) as image:
            if image.format not in EXIF_FIRST:
                image.load()
            if orientation_of(image) == 1:
                return changed
    except MemoryError:
        raise
    except Exception:  # of damaged images, of any type
        pass
    reason = f"its orientation {orientation}, which boxes in stored pixels need to lose, "
    reason += "is in a part of its metadata that cannot be changed"
    raise DecodeError(reason, path=path, expected=1, got=orientation, hint=advice)


def _drop_orientation(data: bytes, images: Any) -> bytes:
    changed = bytearray(_XMP.sub(rb"\g<1>1", data))
    with images.open(io.BytesIO(data), formats=IMAGE_FORMATS) as image:
        if image.format not in EXIF_FIRST:
            image.load()
        exif = data if image.format == "TIFF" else image.info.get("exif", b"").removeprefix(b"Exif\0\0")
    at = data.find(exif) if exif else -1
    if at >= 0:
        _set_upright(changed, at)
    if data.startswith(PNG):
        for _, begin, end in list(png_chunks(changed)):
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
