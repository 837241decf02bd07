"""Columns of encoded images, and of lists of them, as rows of pixels: decoded on several threads, without the GIL."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import cache, partial
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from tfrecord_io.base import ColumnLayout, Expansion, needs, ordered, printable
from tfrecord_io.bytes import TIFF_MAGIC, Array, looks_like
from tfrecord_io.columns import (
    BITS_PER_SAMPLE,
    CONTAIN,
    CROP,
    DEPTH,
    EXIF_FIRST,
    IMAGE_FORMATS,
    IMAGE_KEY,
    INDEX,
    KNOWN_FORMATS,
    MODE_OF,
    NEAREST,
    ORIENTATION,
    PAD,
    PNG,
    QUARTER_TURNED,
    TURNS,
    Dense,
    ImageForm,
    Ragged,
    RawImages,
    RowFault,
    Rows,
    bits_of,
    is_bytes,
    is_list_like,
    list_lengths,
    orientation_of,
    pillow,
    scatter,
    tiff_form,
)
from tfrecord_io.errors import DecodeError, MissingDependencyError, SchemaError

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
# Why images are objects, and what else to declare.
NO_COMMON_TYPE = ('images of mode "unchanged" have no type in common', 'declare tfr.image(mode="RGB"), "L" or "RGBA"')
_DIFFERENT_SIZES = "its images have different sizes", "declare tfr.list_(tfr.image(resize=(height, width)))"
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
            if data[:4] in TIFF_MAGIC:
                return row, self._check_shape(self._tiff(data, fault), fault)
            form = looks_like(data)
            reason = f"its {len(data)} bytes cannot be identified as a {KNOWN_FORMATS} image"
            reason = reason if form is None else f"{reason}; they look like {form}"
            raise fault(reason, expected=KNOWN_FORMATS) from error
        except Exception as error:  # Pillow's decoders raise exceptions of any type, some with the image's bytes
            raise _undecodable(data, error, fault) from None
        return row, self._check_shape(pixels, fault)

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
            raise fault(reason, expected="8 or 16 bits", got=of, hint='declare tfr.image(mode="unchanged")')

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
        image = self._convert_mode(image, data)
        if orientation in TURNS:
            image = image.transpose(self.pillow.Transpose[TURNS[orientation]])
        pixels = np.asarray(image if form.resize is None else resize_image(image, form, size or image.size))
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


def resize_image(image: Any, form: ImageForm, size: tuple[int, int]) -> Any:
    """An image of Pillow resized as the form says; `size` is that of the image before a draft of it was made."""
    import PIL.Image
    from PIL import ImageOps

    assert form.resize is not None
    kinds, fit, (height, width) = PIL.Image.Resampling, form.fit, form.resize
    resample = kinds.NEAREST if form.resample == NEAREST else kinds.BILINEAR
    if fit == CROP:
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
    padded = PIL.Image.new(image.mode, (width, height), 0)
    padded.paste(image, (round((width - inner[0]) / 2), round((height - inner[1]) / 2)))
    return padded


def check_pixel_count(height: int, width: int) -> None:
    """Raise DecodeError for more pixels than `PixelReader` decodes."""
    limit = pillow("reading the sizes of images").MAX_IMAGE_PIXELS
    if limit is not None and height * width > limit:
        reason = f"its {width}×{height} pixels are more than PIL.Image.MAX_IMAGE_PIXELS, {limit}"
        raise DecodeError(reason, expected=limit, got=height * width)


def check_pixels(data: bytes, feature: str) -> None:
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
        PixelReader.from_form(feature, ImageForm(mode="unchanged")).read((0, data))
    except Exception as error:  # Pillow's decoders raise exceptions of any type, some with the image's bytes
        raise _undecodable(data, error, partial(RowFault, 0, feature=feature)) from None


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
    """True if Pillow returns other values: the upper 8 of 16 bits of several channels, or integers of another sign."""
    if data.startswith(PNG):
        return data[DEPTH : DEPTH + 1] == b"\x10" and data[_COLOUR : _COLOUR + 1] != b"\0"
    if image.format != "TIFF":
        return False
    bits, formats = (image.tag_v2.get(tag, (1,)) for tag in (BITS_PER_SAMPLE, _SAMPLE_FORMAT))
    return (len(bits) > 1 and max(bits) > 8) or (max(bits), max(formats)) in _MISREAD


def _is_signed(image: Any) -> bool:
    """True if it is a TIFF of signed integers."""
    return image.format == "TIFF" and _SIGNED in image.tag_v2.get(_SAMPLE_FORMAT, ())


def _value_mode(image: Any) -> str:
    """The mode to convert an image to, so that its pixels are values: a palette's are indices of colours."""
    if image.mode == "P":
        return "RGBA" if "transparency" in image.info else "RGB"
    return {"1": "L", "PA": "RGBA", "La": "LA", "RGBa": "RGBA"}.get(image.mode, "RGB")


@dataclass(frozen=True, slots=True)
class ImageDecoder:
    """Decodes a column of images, or of lists of images; see `tfrecord_io.image`."""

    feature: str
    form: ImageForm
    in_lists: bool = False

    @classmethod
    def from_field(cls, field: pa.Field) -> Self | None:
        """The decoder for a field made by `tfrecord_io.image`, or of lists of such, None for any other field.

        SchemaError if the metadata is damaged.
        """
        if IMAGE_KEY not in (field.metadata or {}):
            return None
        in_lists = is_list_like(field.type)
        if not is_bytes(field.type.value_type if in_lists else field.type):
            reason = f"the metadata declares an image, but the column is of {field.type}"
            raise SchemaError(reason, feature=field.name, expected="binary", got=str(field.type))
        form = ImageForm.from_metadata(field.metadata, field.name)
        assert form is not None
        return cls(field.name, form, in_lists)

    @property
    def size(self) -> tuple[int, ...] | None:
        """The shape of every image, if it is known in advance."""
        return self.form.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of arrays whose images have one."""
        return np.dtype(np.uint8)

    @property
    def _axes(self) -> tuple[int | None, ...]:
        """The shape of an image, None where it may vary."""
        return (None, None, self.form.channels)

    def padded_shape(self, length: int | None) -> tuple[int | None, ...]:
        """The shape of a padded row; None where it is that of the largest row of each batch."""
        size = self.size or self._axes
        if self.in_lists:
            return (length, *size)
        return size if size[0] is not None else (length, *size[1:])

    def refuse_expansion(self, arrays: Sequence[pa.Array], expansion: Expansion) -> None:
        """Refuse images whose arrays `expansion` has no room for, if their size is known in advance.

        Raises
        ------
        RowFault
            Of the first row without room, numbered through all arrays.
        """
        if self.size is None:
            return
        counts = np.concatenate(
            [list_lengths(array) if self.in_lists else np.ones(len(array), np.int64) for array in arrays]
        )
        image_bytes = math.prod(self.size) * self.dtype.itemsize
        fitting = expansion.room // image_bytes
        expansion.add(self._stored_bytes(array.flatten() if self.in_lists else array for array in arrays))
        images = int(counts.sum())
        if not expansion.take(images * image_bytes):
            reason = f"{images} images of {self.size}, as the file declares them, take {images * image_bytes} bytes"
            advice = f"{expansion.advice(images * image_bytes)}, or declare the column with schema="
            advice_cli = f"{expansion.advice(images * image_bytes)}, or declare the column with --type"
            row = int(np.cumsum(counts).searchsorted(fitting, side="right"))
            raise RowFault(
                min(row, len(counts) - 1),
                expansion.excess(reason),
                feature=self.feature,
                expected=expansion.room,
                got=images * image_bytes,
                hint=advice,
                hint_cli=advice_cli,
                of_memory=True,
            )

    def _stored_bytes(self, arrays: Iterable[pa.Array]) -> int:
        """Bytes of the images of columns as they are stored."""
        return sum(pc.sum(pc.binary_length(array)).as_py() or 0 for array in arrays)

    def _cells(self, array: pa.Array) -> list[Any]:
        """What is decoded of each image, None where null."""
        cells: list[Any] = array.to_pylist()
        return cells

    def rows(self, array: pa.Array, threads: int, layout: ColumnLayout) -> Rows:
        """Decode the images of a column to uint8 [height, width, channels]; with "unchanged" to objects of any dtype.

        Lists of images of one size become [images, height, width, channels]; a list of several sizes is an object array
        of images. The RowFault it may raise is that of the first image that cannot be decoded.
        """
        if self.in_lists:
            return self._lists(array, threads, layout)
        encoded = self._cells(array)
        present = np.fromiter((data is not None for data in encoded), np.bool_, len(encoded))
        valid = None if present.all() else present
        images = [(row, data) for row, data in enumerate(encoded) if data is not None]
        if self.size is not None:
            return Dense(self._stack_images(images, len(encoded), self.size, threads), valid)
        if self.form.mode == "unchanged":
            if images:
                self._check_layout(layout, images[0][0], *NO_COMMON_TYPE)
            return Dense(_objects([np.array(pixels) for _, pixels in self._decode_images(images, threads)], present))
        decoded = [pixels for _, pixels in self._decode_images(images, threads)]
        shapes = np.array([pixels.shape for pixels in decoded], np.int64).reshape(-1, 3)
        return Ragged.from_present(_flat(decoded, self.dtype), shapes.prod(axis=1), valid, shapes)

    def _lists(self, array: pa.Array, threads: int, layout: ColumnLayout) -> Rows:
        counts, encoded = list_lengths(array), array.flatten()
        if layout.max_length is not None and not t.is_fixed_size_list(array.type):
            kept = Ragged.from_present(np.arange(len(encoded)), counts, None)
            kept = kept.truncate(layout.max_length, from_left=layout.from_left)
            counts, encoded = kept.lengths, encoded.take(pa.array(kept.values))
        ends = np.cumsum(counts)
        valid = np.asarray(array.is_valid()) if array.null_count else None
        if encoded.null_count:
            row = int(ends.searchsorted(int(np.asarray(encoded.is_null()).argmax()), side="right"))
            raise RowFault(
                row,
                "one of its images has no value, and an array cannot mark missing values",
                feature=self.feature,
                expected="a value",
                hint="read it with read_table, which returns null, or exclude it with columns=",
                hint_cli="read it with read_table, which returns null, or exclude it with --columns",
                error=DecodeError,
            )
        images = list(enumerate(self._cells(encoded)))
        present = counts if valid is None else counts[valid]
        try:
            if self.size is not None:
                values = self._stack_images(images, len(images), self.size, threads)
                if not t.is_fixed_size_list(array.type):
                    return Ragged.from_present(values, present, valid)
                values = values.reshape(len(present), array.type.list_size, *self.size)
                return Dense(values if valid is None else scatter(values, valid), valid)
            decoded = [pixels for _, pixels in self._decode_images(images, threads)]
        except RowFault as fault:
            row = int(ends.searchsorted(fault.row, side="right"))
            fault.reason = f"image {fault.row - int(ends[row] - counts[row])} of its list: {fault.reason}"
            fault.row = row
            raise
        return self._group_by_list(decoded, present, valid, layout)

    def _group_by_list(self, decoded: list[Array], counts: Array, valid: Array | None, layout: ColumnLayout) -> Rows:
        """The images of any size, of which each list has so many."""
        ends = np.cumsum(counts).tolist()
        lists = [decoded[end - count : end] for end, count in zip(ends, counts.tolist(), strict=True)]
        kinds = [{(pixels.dtype, pixels.shape) for pixels in images} for images in lists]
        is_mixed = np.array([len(kind) > 1 for kind in kinds], np.bool_)
        if self.form.mode != "unchanged" and not is_mixed.any():
            none = tuple(axis or 0 for axis in self._axes)
            shapes = [(len(images), *(images[0].shape if images else none)) for images in lists]
            matrix = np.array(shapes, np.int64).reshape(-1, 4)
            return Ragged.from_present(_flat(decoded, self.dtype), matrix.prod(axis=1), valid, matrix)
        present = np.ones(len(lists), np.bool_) if valid is None else valid
        if lists:
            row = int(np.flatnonzero(present)[int(is_mixed.argmax())])
            self._check_layout(layout, row, *(_DIFFERENT_SIZES if is_mixed.any() else NO_COMMON_TYPE))
        return Dense(_objects([_one_list(images) for images in lists], present))

    def _check_layout(self, layout: ColumnLayout, row: int, reason: str, advice: str) -> None:
        """Raise a fault if images that can only be objects are to become one array."""
        if layout.ragged in ("pad", "offsets"):
            reason = f"{reason}, which ragged={layout.ragged!r} cannot represent"
            raise RowFault(row, reason, feature=self.feature, error=SchemaError, hint=advice)

    def _stack_images(self, images: list[tuple[int, Any]], count: int, size: tuple[int, ...], threads: int) -> Array:
        """Images of one size as one array; zeros where one is missing."""
        stacked = np.zeros((count, *size), self.dtype)
        for at, pixels in self._decode_images(images, threads):
            stacked[at] = pixels
        return stacked

    def _decode_images(self, images: list[tuple[int, Any]], threads: int) -> Iterator[tuple[int, Array]]:
        """The number of each image and its pixels, in order."""
        read = self._reader()
        return ordered((partial(read, image) for image in images), min(threads, len(images)), "images")

    def _reader(self) -> Callable[[tuple[int, Any]], tuple[int, Array]]:
        """What decodes a numbered image; threads may share it."""
        return PixelReader.from_form(self.feature, self.form).read


@dataclass(frozen=True, slots=True)
class RawImageDecoder(ImageDecoder):
    """Resizes a column of raw pixels, or of lists of them; those of one channel count are arrays of one dtype."""

    _: KW_ONLY
    images: RawImages

    @classmethod
    def from_field(cls, field: pa.Field) -> Self | None:
        """The decoder for raw pixels that are resized, None for any other field."""
        images = RawImages.from_field(field)
        if images is None or images.form.resize is None:
            return None
        raw, mode = images.form, MODE_OF.get(images.channels, "unchanged")
        form = ImageForm(mode=mode, resize=raw.resize, fit=raw.fit, resample=raw.resample)
        return cls(field.name, form, images.in_lists, images=images)

    @property
    def size(self) -> tuple[int, ...] | None:
        size = self.form.size
        return None if size is None else self.images.form.stored_axes(size)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.images.dtype

    @property
    def _axes(self) -> tuple[int | None, ...]:
        return self.images.form.stored_axes((None, None, self.images.channels))

    def _stored_bytes(self, arrays: Iterable[pa.Array]) -> int:
        return sum(array.nbytes for array in arrays)

    def _cells(self, array: pa.Array) -> list[Any]:
        return self.images.cells(array)

    def _reader(self) -> Callable[[tuple[int, Any]], tuple[int, Array]]:
        return partial(self._resize, pillow(f"resizing images ('{self.feature}')"))

    def _resize(self, module: Any, item: tuple[int, Array]) -> tuple[int, Array]:
        """The number of an image and its resized pixels in the order of the layout; RowFault if it is no image."""
        row, stored = item
        pixels = self.images.image(row, stored)
        height, width, channels = pixels.shape
        is_8_bit = pixels.dtype.itemsize == 1
        planes = [pixels] if is_8_bit and channels > 1 else [pixels[:, :, at] for at in range(channels)]
        planes = [np.ascontiguousarray(plane if is_8_bit else plane.astype(np.float32)) for plane in planes]
        resized = [np.asarray(resize_image(module.fromarray(plane), self.form, (width, height))) for plane in planes]
        image = np.dstack(resized)
        if not is_8_bit:
            image = np.rint(image).astype(self.dtype)
        return row, image.transpose(self.images.form.stored_axes((0, 1, 2)))


def image_decoder(field: pa.Field) -> ImageDecoder | None:
    """The decoder of a column whose arrays are made of images; SchemaError if the metadata is damaged."""
    return ImageDecoder.from_field(field) or RawImageDecoder.from_field(field)


def _flat(decoded: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    return np.concatenate([np.empty(0, dtype), *(pixels.reshape(-1) for pixels in decoded)])


def _one_list(images: Sequence[Array]) -> Array:
    """Images stacked if they have one dtype and shape, else as objects."""
    return stack_equal(_objects([np.array(pixels) for pixels in images], np.ones(len(images), np.bool_)))


def _objects(values: Sequence[Array], present: Array) -> Array:
    """An array of objects, with None where none is present."""
    cells = np.full(len(present), None, object)
    for row, value in zip(np.flatnonzero(present), values, strict=True):
        cells[row] = value
    return cells


def stack_equal(cells: Array) -> Array:
    """Stack the arrays in an object array if they have the same dtype and shape; else return the object array."""
    types = {None if cell is None else (cell.dtype, cell.shape) for cell in cells}
    if len(types) == 1 and None not in types:
        with suppress(ValueError):
            return np.stack(cells.tolist())
    return cells
