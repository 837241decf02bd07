"""Pixels of encoded images, as `tfrecord_io.image` declares them: decoded, turned, converted and resized.

Tests: tests/rows/arrays/test_image_arrays.py and tests/apps/views/test_media.py.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from tfrecord_io.base import needs, printable
from tfrecord_io.bytes import Array, ForeignFile
from tfrecord_io.columns.arrow.image_header import (
    BITS_PER_SAMPLE,
    DEPTH,
    EXIF_FIRST,
    IMAGE_FORMATS,
    KNOWN_FORMATS,
    ORIENTATION,
    PNG,
    QUARTER_TURNED,
    TURNS,
    bits_of,
    check_pixel_count,
    has_more_channels,
    is_turned,
    orientation_of,
    pillow,
    tiff_form,
)
from tfrecord_io.columns.arrow.row_fault import RowFault
from tfrecord_io.columns.schema.image_form import INDEX, ImageForm
from tfrecord_io.errors import DecodeError, MissingDependencyError

_UNCHANGED_MODES = ("L", "LA", "RGB", "RGBA", "I;16", "I", "F")  # of Pillow, whose pixels are not palette indices
_INDEX_MODES = ("P", "L", "1")  # of Pillow, whose pixels can be numbers of classes
_COLOUR = 25  # the offset of a PNG's colour type
_TURNED: dict[int, Callable[[Array], Array]] = {  # by orientation, what `TURNS` is for images
    2: lambda p: p[:, ::-1],
    3: lambda p: p[::-1, ::-1],
    4: lambda p: p[::-1],
    5: lambda p: p.swapaxes(0, 1),
    6: lambda p: np.rot90(p, -1),
    7: lambda p: np.rot90(p, 2).swapaxes(0, 1),
    8: lambda p: np.rot90(p),
}
_SAMPLE_FORMAT = 0x153  # a tag of TIFF
_SIGNED = 2  # of `_SAMPLE_FORMAT`; 1, or none, is unsigned
_MISREAD = {(8, _SIGNED), (32, 1)}  # bits and sample formats of TIFFs that Pillow takes for those of the other sign
_DRAFT = 2  # a draft has at least so many times the sides asked for
_COLOURS = {"RGB": "RGB", "L": "GRAY"}  # of simplejpeg, by Pillow's mode


@dataclass(frozen=True, slots=True)
class PixelReader:
    """Decodes images of a column. Threads may share it."""

    feature: str
    form: ImageForm
    pillow: Any
    decode_jpeg: Callable[..., Array] | None

    @classmethod
    def from_form(cls, feature: str, form: ImageForm) -> PixelReader:
        """Make a reader that uses the installed libraries; MissingDependencyError without Pillow."""
        return cls(feature, form, pillow(f"decoding images ('{feature}')"), jpeg_decoder())

    @classmethod
    def check(cls, data: bytes, feature: str) -> None:
        """Decode all pixels of an image, in whatever mode they are; RowFault if they cannot be decoded.

        MissingDependencyError for a TIFF that Pillow does not know, without tifffile.
        """
        images = pillow(f"decoding images ('{feature}')")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of odd metadata
                with images.open(io.BytesIO(data), formats=IMAGE_FORMATS) as image:
                    image.load()
        except MemoryError:
            raise
        except images.UnidentifiedImageError:  # a TIFF, of which the header is readable
            cls.from_form(feature, ImageForm(mode="unchanged")).read((0, data))
        except Exception as error:  # Pillow's decoders raise exceptions of any type, some with the image's bytes
            raise _undecodable(data, error, partial(RowFault, 0, feature=feature)) from None

    def read(self, item: tuple[int, bytes]) -> tuple[int, Array]:
        """The number of an image and its pixels [height, width, channels], which may not be written to.

        RowFault if it cannot be decoded.
        """
        row, data = item
        fault = partial(RowFault, row, feature=self.feature, of_image=True)
        try:
            with self.pillow.open(io.BytesIO(data), formats=IMAGE_FORMATS) as image:
                self._refuse_size(image.height, image.width, fault)
                if self.form.mode == "unchanged" and image.format == "TIFF" and _changes_values(image, data):
                    pixels = self._tiff(data, fault)
                else:
                    self._refuse_loss(image, data, fault)
                    pixels = self._pixels(image, data)
        except (RowFault, MemoryError, MissingDependencyError):
            raise
        except self.pillow.UnidentifiedImageError as error:
            if data[:4] in ForeignFile.TIFF_MAGIC:
                return row, self._check_shape(self._tiff(data, fault), fault)
            form = ForeignFile.looks_like(data)
            reason = f"its {len(data)} bytes cannot be identified as a {KNOWN_FORMATS} image"
            reason = reason if form is None else f"{reason}; they look like {form}"
            raise fault(reason, expected=KNOWN_FORMATS) from error
        except Exception as error:  # Pillow's decoders raise exceptions of any type, some with the image's bytes
            raise _undecodable(data, error, fault) from None
        return row, self._check_shape(pixels, fault)

    @classmethod
    def shrink(
        cls, image: Any, data: bytes, side: int, *, orient: bool, stated_size: tuple[Any, Any]
    ) -> tuple[Any, bool]:
        """A small copy of an opened image, and True if it has transparency; RowFault if its pixels cannot be shown.

        With `orient` it is turned as its EXIF data says, unless the height and width that are stated are those of the
        stored pixels alone.
        """
        import PIL.Image as pillow

        width, height = image.size
        if image.format == "TIFF":  # Pillow turns it, and has values of more than 8 bits in several modes
            orient = orient and is_turned(stated_size, (height, width), orientation_of(image)) is not False
            reader = cls("", ImageForm(mode="RGB", orient=orient), pillow, decode_jpeg=None)
            image = pillow.fromarray(reader.read((0, data))[1])
        image.draft("RGB", (2 * side, 2 * side))  # decodes a large JPEG at a fraction of its size
        keeps_alpha = "A" in image.mode or "transparency" in image.info
        small = image.convert("RGBA" if keeps_alpha else "L" if image.mode in ("1", "L") else "RGB")
        orientation = orientation_of(small)
        if image.mode.startswith("I"):  # the upper 8 of 16 bits, as `tfrecord_io.image` takes
            small = pillow.fromarray((np.asarray(image) >> 8).astype(np.uint8))
        small.thumbnail((side, side))
        if orient and orientation in TURNS and is_turned(stated_size, (height, width), orientation) is not False:
            small = small.transpose(pillow.Transpose[TURNS[orientation]])
        return small, keeps_alpha

    def _refuse_size(self, height: int, width: int, fault: Callable[..., RowFault]) -> None:
        try:
            check_pixel_count(height, width)
        except DecodeError as error:
            raise fault(error.reason, expected=error.expected, got=error.got) from None

    def _check_shape(self, pixels: Array, fault: Callable[..., RowFault]) -> Array:
        shape = self.form.shape
        if shape is None or self.form.resize is not None:
            return pixels
        has_axes = len(shape) == pixels.ndim
        if not has_axes or not all(b in (None, a) for a, b in zip(pixels.shape, shape, strict=True)):
            reason = f"expected an image of shape {shape}, got {pixels.shape}"
            raise fault(reason, expected=shape, got=pixels.shape)
        return pixels

    def _tiff(self, data: bytes, fault: Callable[..., RowFault]) -> Array:
        """The pixels of a TIFF with channels that Pillow does not have, by tifffile."""
        tiff = tiff_form(data)
        if tiff is None:
            raise fault(f"its {len(data)} bytes are not a TIFF that can be decoded", expected=KNOWN_FORMATS)
        height, width, channels, bits = tiff
        has = f"its TIFF has {channels} channel{'s' * (channels > 1)} of {bits} bits"
        if self.form.mode != "unchanged" or self.form.resize is not None:
            reason = f"{has}, of which no {self.form.mode} image of 8 bits can be made"
            if self.form.mode == "unchanged":
                reason = f"{has}, which cannot be resized"
            advice = 'declare tfr.image(mode="unchanged"), without resize='
            raise fault(reason, expected="8 bits of 1, 3 or 4 channels", got=(channels, bits), hint=advice)
        self._refuse_size(height, width, fault)
        with needs("tiff", f"'{self.feature}': {has}, and their decoder"):
            import tifffile
        try:
            with tifffile.TiffFile(io.BytesIO(data)) as file:
                page = file.pages.first
                axes, pixels = page.axes, page.asarray()
                orientation = page.tags.valueof(ORIENTATION, 1)
        except MemoryError:
            raise
        except Exception as error:  # of any type, for damage and for compressions that it has no decoder of
            reason = f"{has}, which tifffile cannot decode ({type(error).__name__}: {printable(error, 120)})"
            raise fault(reason) from None
        if axes not in ("YX", "YXS", "SYX"):
            raise fault(f"{has}, on axes {axes}", expected="one page of height, width and channels", got=axes)
        pixels = np.moveaxis(pixels, 0, 2) if axes == "SYX" else pixels.reshape(*pixels.shape[:2], -1)
        if self.form.orient and orientation in _TURNED:
            pixels = _TURNED[orientation](pixels)
        return np.ascontiguousarray(pixels)

    def _refuse_loss(self, image: Any, data: bytes, fault: Callable[..., RowFault]) -> None:
        if self.form.mode == "unchanged":
            if _changes_values(image, data):
                reason = f"its {image.format} has 16 bits in each of several channels, of which only 8 can be decoded"
                reason += ': tfr.image(mode="RGB") takes the upper 8'
                raise fault(reason, expected="8 bits, or one channel", got="16 bits")
        elif self.form.mode == INDEX:
            if image.mode not in _INDEX_MODES or _is_signed(image):
                got = f"{image.mode}, of {bits_of(image, data)} bits{' with a sign' * _is_signed(image)}"
                expected = "a palette, or grey of at most 8 bits"
                reason = f"its pixels are not numbers of classes: expected {expected}, got {got}"
                raise fault(reason, expected=expected, got=got)
        elif image.mode == "F" or (image.mode == "I" and image.format != "PNG") or _is_signed(image):
            of = "floats" if image.mode == "F" else "integers of 32 bits, or with a sign"
            reason = f"its pixels are {of}, which have no 8 bits to take"
            hint, hint_cli = (
                'declare tfr.image(mode="unchanged")',
                'declare the mode "unchanged" of the image by --type',
            )
            raise fault(reason, expected="8 or 16 bits", got=of, hint=hint, hint_cli=hint_cli)

    def _pixels(self, image: Any, data: bytes) -> Array:
        form, mode = self.form, image.mode
        if image.format not in EXIF_FIRST:
            image.load()  # looking up the orientation does it too, but then an error would be lost
        orientation = orientation_of(image) if form.orient or image.format == "TIFF" else 1
        is_plain = mode == form.mode and form.resize is None and orientation == 1
        if is_plain and image.format == "JPEG" and mode in _COLOURS and self.decode_jpeg is not None:
            try:
                return self.decode_jpeg(data, _COLOURS[mode])
            except ValueError:
                pass  # damaged: what Pillow makes of it counts
        size = None
        if form.draft and form.resize is not None and image.format == "JPEG":
            step = -1 if orientation in QUARTER_TURNED else 1
            size, (height, width) = image.size[::step], form.resize[::step]
            image.draft(None, (_DRAFT * width, _DRAFT * height))
        image.load()
        if image.format == "TIFF":  # Pillow has applied it
            orientation = 1 if form.orient else {6: 8, 8: 6}.get(orientation, orientation)
        is_int16 = form.mode == "unchanged" and _is_signed(image) and bits_of(image, data) == 16  # Pillow has int32
        image = self._convert_mode(image, data)
        if orientation in TURNS:
            image = image.transpose(self.pillow.Transpose[TURNS[orientation]])
        pixels = np.asarray(image if form.resize is None else form.resize_image(image, size or image.size))
        pixels = pixels.astype(np.int16) if is_int16 else pixels
        return pixels if pixels.ndim == 3 else pixels[:, :, None]

    def _convert_mode(self, image: Any, data: bytes) -> Any:
        """Convert an image to the mode that is asked for."""
        mode, bits = self.form.mode, bits_of(image, data)
        if mode == INDEX:
            step = 1  # grey of 2 or 4 bits is stretched to 255 by Pillow
            if image.mode == "L" and bits < 8:
                step = 255 // (2**bits - 1)
            return self.pillow.fromarray(np.asarray(image).astype(np.uint8) // step)
        if image.mode == mode:
            return image
        of_other_order = image.mode.startswith("I;16") and image.mode != "I;16"
        if of_other_order or (image.mode == "I" and image.format == "PNG"):  # which older versions of Pillow return
            image = self.pillow.fromarray(np.asarray(image).astype(np.uint16))
        if mode == "unchanged":
            return image if image.mode in _UNCHANGED_MODES else image.convert(_value_mode(image))
        if image.mode == "I;16":  # take the upper 8 bits, as TensorFlow's ``decode_png`` does
            image = self.pillow.fromarray((np.asarray(image) >> (bits - 8)).astype(np.uint8))
        return image.convert(mode)


def _undecodable(data: bytes, error: Exception, fault: Callable[..., RowFault]) -> RowFault:
    reason = f"its {len(data)} bytes are not an image that can be decoded ({type(error).__name__})"
    return fault(reason, expected=KNOWN_FORMATS)


@cache
def jpeg_decoder() -> Callable[..., Array] | None:
    """The decoder of simplejpeg, if it is installed, and gives Pillow's pixels: both use libjpeg-turbo."""
    try:
        from simplejpeg import decode_jpeg
    except ImportError:
        return None
    from PIL import features

    return decode_jpeg if features.check_feature("libjpeg_turbo") else None


def _changes_values(image: Any, data: bytes) -> bool:
    """True if Pillow returns other values: the upper 8 of 16 bits, integers of another sign, or fewer channels."""
    if data.startswith(PNG):
        return data[DEPTH : DEPTH + 1] == b"\x10" and data[_COLOUR : _COLOUR + 1] != b"\0"
    if image.format != "TIFF":
        return False
    bits, formats = (image.tag_v2.get(tag, (1,)) for tag in (BITS_PER_SAMPLE, _SAMPLE_FORMAT))
    return has_more_channels(image) or (len(bits) > 1 and max(bits) > 8) or (max(bits), max(formats)) in _MISREAD


def _is_signed(image: Any) -> bool:
    """True if it is a TIFF of signed integers."""
    return image.format == "TIFF" and _SIGNED in image.tag_v2.get(_SAMPLE_FORMAT, ())


def _value_mode(image: Any) -> str:
    """The mode to convert an image to, so that its pixels are values: a palette's are indices of colours."""
    if image.mode == "P":
        return "RGBA" if "transparency" in image.info else "RGB"
    return {"1": "L", "PA": "RGBA", "La": "LA", "RGBa": "RGBA"}.get(image.mode, "RGB")
