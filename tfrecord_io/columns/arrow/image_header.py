"""Read facts from the header of an encoded image: format, size, mode, channels, bits and orientation.

Bytes go in, an `ImageHeader` comes out; pixels are not decoded.

Tests: tests/rows/arrays/test_image_arrays.py and tests/plugins/vision/test_annotated_images_turned_photos.py.
"""

from __future__ import annotations

import io
import re
import struct
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tfrecord_io.base import needs
from tfrecord_io.bytes import ForeignFile
from tfrecord_io.errors import DecodeError

IMAGE_FORMATS = tuple(
    name.upper() for name in ForeignFile.IMAGES
)  # a closed list: some of Pillow's formats run other programs
KNOWN_FORMATS = "JPEG, PNG, GIF, BMP, WebP or TIFF"
EXIF_FIRST = ("JPEG", "MPO", "TIFF")  # formats whose orientation is known before pixels are loaded
DEPTH = 24  # the offset of a PNG's bit depth
BITS_PER_SAMPLE, ORIENTATION = 0x102, 0x112  # tags of TIFF and of EXIF data
_EXTRA_SAMPLES, _UNSPECIFIED = 0x152, 0  # a tag of TIFF: what the channels after those of colour are
_WIDTH, _LENGTH, _SAMPLES = 0x100, 0x101, 0x115
_TRANSPOSES = "FLIP_LEFT_RIGHT ROTATE_180 FLIP_TOP_BOTTOM TRANSPOSE ROTATE_270 TRANSVERSE ROTATE_90".split()
TURNS = dict(enumerate(_TRANSPOSES, 2))  # what undoes an orientation, as a name in PIL.Image.Transpose
QUARTER_TURNED = (5, 6, 7, 8)  # orientations that swap height and width
_CHANNELS = {"1": 1, "P": 1, "I": 1, "F": 1, "LA": 2, "La": 2, "PA": 2, "RGBA": 4, "RGBa": 4, "CMYK": 4, "RGBX": 4}
_PNG_METADATA = {b"eXIf", b"tEXt", b"zTXt", b"iTXt"}  # chunks that can have an orientation
PNG = b"\x89PNG\r\n\x1a\n"
_XMP = re.compile(rb"""(tiff:Orientation(?:=["']|>))[2-8]""")
_SHORT = 3  # the type of the value of an orientation


@dataclass(frozen=True, slots=True)
class ImageHeader:
    """The form of an encoded image, as stored: an orientation in its metadata is not applied."""

    FORMATS: ClassVar[tuple[str, ...]] = IMAGE_FORMATS  # of Pillow, in which images are opened
    SUFFIXES: ClassVar = ForeignFile.IMAGES  # of file names, by the name of the format
    TIFF_MAGIC: ClassVar = ForeignFile.TIFF_MAGIC  # the first bytes of such files

    format: str  # a key of `ForeignFile.IMAGES`
    height: int
    width: int
    mode: str = "RGB"  # of Pillow; of a TIFF that it does not know "TIFF"
    channels: int = 3  # 1 of a palette
    bits: int = 8  # of a value; of an index, if there is a palette
    orientation: int = 1  # 1 to 8, as in EXIF data

    @staticmethod
    def pillow(purpose: str) -> Any:
        """The module PIL.Image; MissingDependencyError that names the purpose if it is not installed."""
        return pillow(purpose)

    @staticmethod
    def looks_like(head: bytes) -> str | None:
        """Name the format of a file by its first bytes, a key of `SUFFIXES` for an image; None if unknown."""
        return ForeignFile.looks_like(head)

    @property
    def has_palette(self) -> bool:
        """True if its pixels are numbers of colours."""
        return self.mode in ("P", "PA")

    @property
    def turned_size(self) -> tuple[int, int]:
        """The height and width of the picture that the orientation makes of it."""
        return turned_size((self.height, self.width), self.orientation)

    def is_turned(self, stated: tuple[int | None, int | None]) -> bool | None:
        """True if a stated height and width are those of that picture; see the function."""
        return is_turned(stated, (self.height, self.width), self.orientation)

    def check_size(self) -> None:
        """Raise DecodeError for more pixels than Pillow decodes."""
        check_pixel_count(self.height, self.width)

    def remove_orientation(self, content: bytes, path: str | None, advice: str) -> bytes:
        """Remove the EXIF orientation of a photo with this header; DecodeError, with the advice, if that is impossible.

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
        reason = f"its orientation {self.orientation}, which boxes in stored pixels need to lose, "
        reason += "is in a part of its metadata that cannot be changed"
        raise DecodeError(reason, path=path, expected=1, got=self.orientation, hint=advice)

    @classmethod
    def read(cls, data: bytes, path: str, feature: str | None = None) -> ImageHeader:
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
            limit = images.MAX_IMAGE_PIXELS
            raise DecodeError(reason, path=path, feature=feature, expected=limit, hint=advice) from error
        except MemoryError:
            raise
        except Exception as error:  # Pillow's readers raise exceptions of any type, some with the image's bytes
            tiff = tiff_form(data)
            if tiff is None:
                form = ForeignFile.looks_like(data)
                reason = f"its {len(data)} bytes are not an image of a known format"
                reason = reason if form is None else f"{reason}; they look like {form}"
                got = type(error).__name__
                raise DecodeError(reason, path=path, feature=feature, expected=KNOWN_FORMATS, got=got) from None
            header = ImageHeader("tiff", *tiff[:2], "TIFF", *tiff[2:])
        if header.height < 1 or header.width < 1:
            reason = f"its header declares {header.width}×{header.height} pixels"
            raise DecodeError(
                reason, path=path, feature=feature, expected=KNOWN_FORMATS, got=(header.height, header.width)
            )
        return header


def check_pixel_count(height: int, width: int) -> None:
    """Raise DecodeError for more pixels than Pillow decodes."""
    limit = pillow("reading the sizes of images").MAX_IMAGE_PIXELS
    if limit is not None and height * width > limit:
        reason = f"its {width}×{height} pixels are more than PIL.Image.MAX_IMAGE_PIXELS, {limit}"
        raise DecodeError(reason, expected=limit, got=height * width)


def _header(image: Any, data: bytes) -> ImageHeader:
    name = "jpeg" if image.format == "MPO" else image.format.lower()  # a JPEG followed by others
    channels = 1 if image.mode.startswith("I;16") else _CHANNELS.get(image.mode, len(image.mode))
    header = ImageHeader(
        name, image.height, width=image.width, mode=image.mode, channels=channels, bits=bits_of(image, data)
    )
    if name == "tiff":  # of which Pillow states the size of the turned picture
        tiff = tiff_form(data)
        header = header if tiff is None else replace(header, height=tiff[0], width=tiff[1])
        if tiff is not None and has_more_channels(image):
            header = replace(header, channels=tiff[2])
    if name != "png" or not _PNG_METADATA.isdisjoint(type_ for type_, _, _ in png_chunks(data)):  # else it is loaded
        header = replace(header, orientation=orientation_of(image))
    return header


def has_more_channels(image: Any) -> bool:
    """True if a TIFF has channels of no stated meaning, which Pillow leaves out."""
    return _UNSPECIFIED in image.tag_v2.get(_EXTRA_SAMPLES, ())


def png_chunks(data: bytes | bytearray) -> Iterator[tuple[bytes, int, int]]:
    """The type of each chunk of a PNG, and where type and content begin and end, before the checksum."""
    at = len(PNG)
    while at + 12 <= len(data):
        end = at + 8 + int.from_bytes(data[at : at + 4])
        yield bytes(data[at + 4 : at + 8]), at + 4, end
        at = end + 4


def pillow(purpose: str) -> Any:
    """The module PIL.Image; MissingDependencyError that names the purpose if it is not installed."""
    with needs("image", purpose):
        import PIL.Image
    return PIL.Image


def orientation_of(image: Any) -> int:
    """1 to 8, as the EXIF data or XMP states; 1 if neither states it or can be read."""
    try:
        orientation = image.getexif().get(ORIENTATION, 1)
    except MemoryError:
        raise
    except Exception:  # as of damaged images, of any type
        return 1
    return orientation if orientation in TURNS else 1


def turned_size(stored: tuple[int, int], orientation: int) -> tuple[int, int]:
    """The height and width of the picture that an orientation makes of stored pixels."""
    height, width = stored
    return (width, height) if orientation in QUARTER_TURNED else (height, width)


def is_turned(stated: tuple[Any, Any], stored: tuple[int, int], orientation: int) -> bool | None:
    """True if a height and width are those of the turned picture, and not of the stored pixels; None: of both, or none.

    >>> is_turned((2, 3), (3, 2), 6), is_turned((3, 2), (3, 2), 6), is_turned((3, 2), (3, 2), 1)
    (True, False, None)
    """
    turned = turned_size(stored, orientation)
    return None if turned == stored or stated not in (turned, stored) else stated == turned


def tiff_form(data: bytes) -> tuple[int, int, int, int] | None:
    """The height, width, channels and bits that the header of a TIFF states; None if it states none."""
    from PIL.TiffImagePlugin import ImageFileDirectory_v2

    file = io.BytesIO(data)
    try:
        tags = ImageFileDirectory_v2(file.read(16 if data[2:3] == b"+" or data[3:4] == b"+" else 8))
        file.seek(tags.next)
        tags.load(file)
        bits = tags.get(BITS_PER_SAMPLE, (1,))
        return int(tags[_LENGTH]), int(tags[_WIDTH]), int(tags.get(_SAMPLES, 1)), int(max(bits))
    except MemoryError:
        raise
    except Exception:  # as of damaged images, of any type
        return None


def bits_of(image: Any, data: bytes) -> int:
    """Bits of a value of an opened image, as the header states; a palette's values are indices."""
    if image.format == "PNG":
        return data[DEPTH]
    if image.format == "TIFF":
        return max(image.tag_v2.get(BITS_PER_SAMPLE, (1,)))
    return {"1": 1, "I": 32, "F": 32}.get(image.mode, 16 if image.mode.startswith("I;16") else 8)


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
