"""One encoded image as an array of pixels: by Pillow, or by simplejpeg where that gives the same in less time."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import MissingDependencyError, printable, say
from tfrecord_io.format.foreign_files import IMAGES, TIFF_MAGIC, looks_like
from tfrecord_io.schema.image_form import CONTAIN, CROP, INDEX, NEAREST, PAD, ImageForm
from tfrecord_io.value_class import value_class

IMAGE_FORMATS = tuple(name.upper() for name in IMAGES)  # a closed list: some of Pillow's formats run other programs
KNOWN_FORMATS = "JPEG, PNG, GIF, BMP, WebP or TIFF"
_UNCHANGED_MODES = ("L", "LA", "RGB", "RGBA", "I;16", "I", "F")  # of Pillow, whose pixels are not palette indices
_INDEX_MODES = ("P", "L", "1")  # of Pillow, whose pixels can be numbers of classes
_PNG, _DEPTH, _COLOUR = b"\x89PNG", 24, 25  # magic, and the offsets of a PNG's bit depth and colour type
_BITS_PER_SAMPLE, ORIENTATION = 0x102, 0x112  # tags of TIFF and of EXIF data
_TRANSPOSES = "FLIP_LEFT_RIGHT ROTATE_180 FLIP_TOP_BOTTOM TRANSPOSE ROTATE_270 TRANSVERSE ROTATE_90".split()
TURNS = dict(enumerate(_TRANSPOSES, 2))  # what undoes an orientation, as a name in PIL.Image.Transpose
_TURNED: dict[int, Callable[[Array], Array]] = {  # the same for arrays
    2: lambda p: p[:, ::-1],
    3: lambda p: p[::-1, ::-1],
    4: lambda p: p[::-1],
    5: lambda p: p.swapaxes(0, 1),
    6: lambda p: np.rot90(p, -1),
    7: lambda p: np.rot90(p, 2).swapaxes(0, 1),
    8: lambda p: np.rot90(p),
}
_WIDTH, _LENGTH, _SAMPLES, _SAMPLE_FORMAT = 0x100, 0x101, 0x115, 0x153  # tags
_SIGNED = 2  # of `_SAMPLE_FORMAT`; 1, or none, is unsigned
_MISREAD = {(8, _SIGNED), (32, 1)}  # bits and sample formats of TIFFs that Pillow takes for those of the other sign
EXIF_FIRST = ("JPEG", "MPO", "TIFF")  # formats whose orientation is known before pixels are loaded
_QUARTER_TURNED = (5, 6, 7, 8)  # orientations that swap height and width
_DRAFT = 2  # a draft has at least so many times the sides asked for
_COLOURS = {"RGB": "RGB", "L": "GRAY"}  # of simplejpeg, by Pillow's mode


@value_class
class PixelReader:
    """Decodes images of a column. Threads may share it."""

    feature: str
    form: ImageForm
    pillow: Any
    decode_jpeg: Callable[..., Array] | None

    @classmethod
    def for_column(cls, feature: str, form: ImageForm) -> PixelReader:
        """With the installed libraries; MissingDependencyError without Pillow."""
        return cls(feature, form, pillow(f"decoding images ('{feature}')"), jpeg_decoder())

    def read(self, item: tuple[int, bytes]) -> tuple[int, Array]:
        """The number of an image and its pixels [height, width, channels], which may not be written to.

        RowFault if it cannot be decoded.
        """
        row, data = item
        fault = partial(RowFault, row, feature=self.feature)
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
            if data[:4] in TIFF_MAGIC:
                return row, self._checked(self._tiff(data, fault), fault)
            form = looks_like(data)
            reason = f"its {len(data)} bytes cannot be identified as a {KNOWN_FORMATS} image"
            reason = reason if form is None else f"{reason}; they look like {form}"
            raise fault(reason, expected=KNOWN_FORMATS) from error
        except Exception as error:  # Pillow's decoders raise exceptions of any type, some with the image's bytes
            reason = f"its {len(data)} bytes are not an image that can be decoded ({type(error).__name__})"
            raise fault(reason, expected=KNOWN_FORMATS) from None
        return row, self._checked(pixels, fault)

    def _refuse_size(self, height: int, width: int, fault: Callable[..., RowFault]) -> None:
        limit = self.pillow.MAX_IMAGE_PIXELS
        if limit is not None and height * width > limit:
            reason = f"its {width}×{height} pixels are more than PIL.Image.MAX_IMAGE_PIXELS, {limit}"
            raise fault(reason, expected=limit, got=height * width)

    def _checked(self, pixels: Array, fault: Callable[..., RowFault]) -> Array:
        shape = self.form.shape
        if shape is not None and self.form.resize is None and not _fits(pixels.shape, shape):
            reason = f"expected an image of shape {shape}, got {pixels.shape}"
            raise fault(reason, expected=shape, got=pixels.shape)
        return pixels

    def _tiff(self, data: bytes, fault: Callable[..., RowFault]) -> Array:
        """The pixels of a TIFF with channels that Pillow does not have, by tifffile."""
        known = tiff_form(data)
        if known is None:
            raise fault(f"its {len(data)} bytes are not a TIFF that can be decoded", expected=KNOWN_FORMATS)
        height, width, channels, bits = known
        has = f"its TIFF has {channels} channel{'s' * (channels > 1)} of {bits} bits"
        if self.form.mode != "unchanged" or self.form.resize is not None:
            reason = f"{has}, of which no {self.form.mode} image of 8 bits can be made"
            if self.form.mode == "unchanged":
                reason = f"{has}, which cannot be resized"
            advice = say('declare {tfr.image(mode="unchanged")}, without {resize=}')
            raise fault(reason, expected="8 bits of 1, 3 or 4 channels", got=(channels, bits), advice=advice)
        self._refuse_size(height, width, fault)
        try:
            import tifffile
        except ImportError as error:
            reason = f"{has}, which are read by the package tifffile ('{self.feature}')"
            raise MissingDependencyError(reason, advice="pip install 'tfrecord_io[tiff]'") from error
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
                reason += say(': {tfr.image(mode="RGB")} takes the upper 8')
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
            raise fault(reason, expected="8 or 16 bits", got=of, advice=say('declare {tfr.image(mode="unchanged")}'))

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
            step = -1 if orientation in _QUARTER_TURNED else 1
            size, (height, width) = image.size[::step], form.resize[::step]
            image.draft(None, (_DRAFT * width, _DRAFT * height))
        image.load()
        if image.format == "TIFF":  # Pillow has applied it
            orientation = 1 if form.orient else {6: 8, 8: 6}.get(orientation, orientation)
        image = self._converted(image, data)
        if orientation in TURNS:
            image = image.transpose(self.pillow.Transpose[TURNS[orientation]])
        pixels = np.asarray(image if form.resize is None else self._resized(image, size or image.size, *form.resize))
        return pixels if pixels.ndim == 3 else pixels[:, :, None]

    def _converted(self, image: Any, data: bytes) -> Any:
        """In the mode that is asked for."""
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

    def _resized(self, image: Any, size: tuple[int, int], height: int, width: int) -> Any:
        """Resized; `size` is that of the image before a draft of it was made."""
        kinds, fit = self.pillow.Resampling, self.form.fit
        resample = kinds.NEAREST if self.form.resample == NEAREST else kinds.BILINEAR
        if fit == CROP:
            from PIL import ImageOps

            return ImageOps.fit(image, (width, height), resample)
        if fit not in (CONTAIN, PAD):
            return image.resize((width, height), resample)
        own_width, own_height = size
        if own_width * height > own_height * width:
            inner = width, max(1, round(own_height / own_width * width))
        else:
            inner = max(1, round(own_width / own_height * height)), height
        image = image.resize(inner, resample)
        if fit == CONTAIN or inner == (width, height):
            return image
        padded = self.pillow.new(image.mode, (width, height), 0)
        padded.paste(image, (round((width - inner[0]) / 2), round((height - inner[1]) / 2)))
        return padded


def pillow(purpose: str) -> Any:
    """The module PIL.Image; MissingDependencyError that names the purpose if it is not installed."""
    try:
        import PIL.Image
    except ImportError as error:
        reason = f"{purpose} needs the package pillow"
        raise MissingDependencyError(reason, advice="pip install 'tfrecord_io[image]'") from error
    return PIL.Image


@cache
def jpeg_decoder() -> Callable[..., Array] | None:
    """The decoder of simplejpeg, if it is installed, and gives Pillow's pixels: both use libjpeg-turbo."""
    try:
        from simplejpeg import decode_jpeg
    except ImportError:
        return None
    from PIL import features

    return decode_jpeg if features.check_feature("libjpeg_turbo") else None


def orientation_of(image: Any) -> int:
    """1 to 8, as the EXIF data or XMP states; 1 where there is none, or it cannot be read."""
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
    return (width, height) if orientation in _QUARTER_TURNED else (height, width)


def is_turned(stated: tuple[Any, Any], stored: tuple[int, int], orientation: int) -> bool | None:
    """Whether a height and width are those of the turned picture, and not of the stored pixels; None: of both, or none.

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
        bits = tags.get(_BITS_PER_SAMPLE, (1,))
        return int(tags[_LENGTH]), int(tags[_WIDTH]), int(tags.get(_SAMPLES, 1)), int(max(bits))
    except MemoryError:
        raise
    except Exception:  # as of damaged images, of any type
        return None


def bits_of(image: Any, data: bytes) -> int:
    """Of a value of an opened image, as its header states; a palette's values are indices."""
    if image.format == "PNG":
        return data[_DEPTH]
    if image.format == "TIFF":
        return max(image.tag_v2.get(_BITS_PER_SAMPLE, (1,)))
    return {"1": 1, "I": 32, "F": 32}.get(image.mode, 16 if image.mode.startswith("I;16") else 8)


def _changes_values(image: Any, data: bytes) -> bool:
    """Whether Pillow returns other values: the upper 8 of 16 bits of several channels, or integers of another sign."""
    if data.startswith(_PNG):
        return data[_DEPTH : _DEPTH + 1] == b"\x10" and data[_COLOUR : _COLOUR + 1] != b"\0"
    if image.format != "TIFF":
        return False
    bits, formats = (image.tag_v2.get(tag, (1,)) for tag in (_BITS_PER_SAMPLE, _SAMPLE_FORMAT))
    return (len(bits) > 1 and max(bits) > 8) or (max(bits), max(formats)) in _MISREAD


def _is_signed(image: Any) -> bool:
    """Whether it is a TIFF of signed integers."""
    return image.format == "TIFF" and _SIGNED in image.tag_v2.get(_SAMPLE_FORMAT, ())


def _value_mode(image: Any) -> str:
    """The mode to convert an image to, so that its pixels are values: a palette's are indices of colours."""
    if image.mode == "P":
        return "RGBA" if "transparency" in image.info else "RGB"
    return {"1": "L", "PA": "RGBA", "La": "LA", "RGBa": "RGBA"}.get(image.mode, "RGB")


def _fits(shape: tuple[int, ...], declared: tuple[int | None, ...]) -> bool:
    return len(shape) == len(declared) and all(b in (None, a) for a, b in zip(shape, declared, strict=True))
