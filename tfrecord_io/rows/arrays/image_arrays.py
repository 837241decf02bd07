"""Columns of encoded images, and of lists of them, as rows of pixels: decoded on several threads, without the GIL."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from tfrecord_io.base import Expansion, ordered
from tfrecord_io.bytes import Array
from tfrecord_io.columns import (
    ArrayBuffers,
    Column,
    Dense,
    ImageForm,
    PixelReader,
    Ragged,
    RawImages,
    RowFault,
    TensorLists,
    pillow,
)
from tfrecord_io.errors import DecodeError, SchemaError
from tfrecord_io.rows.arrays.array_options import ColumnLayout
from tfrecord_io.rows.arrays.shared_images import Groups, decode_shared, encoded_bytes

# Why images are objects, and what else to declare.
NO_COMMON_TYPE = ('images of mode "unchanged" have no type in common', 'declare tfr.image(mode="RGB"), "L" or "RGBA"')


@dataclass(frozen=True, slots=True)
class ImageDecoder:
    """Decodes a column of images, or of lists of images; see `tfrecord_io.image`."""

    feature: str  # the name of the column
    form: ImageForm  # the form of the pixels
    in_lists: bool = False  # its rows are lists of images
    shared: Groups | None = None  # what cells may have keys of

    @classmethod
    def from_field(cls, field: pa.Field) -> Self | None:
        """The decoder for a field made by `tfrecord_io.image`, or of lists of such, None for any other field.

        SchemaError if the metadata is damaged.
        """
        if ImageForm.KEY not in (field.metadata or {}):
            return None
        in_lists = Column(field.type).is_list
        if not Column(field.type.value_type if in_lists else field.type).is_bytes:
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

    @property
    def common_form(self) -> tuple[np.dtype[Any], tuple[int | None, ...]] | None:
        """The dtype and the shape of each image, None where it may vary; None of images without a dtype in common."""
        return (self.dtype, self.size or self._axes) if self.form.channels else None

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
            [ArrayBuffers(array).lengths if self.in_lists else np.ones(len(array), np.int64) for array in arrays]
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
        if self.shared is not None:
            return sum(encoded_bytes(self.shared, self.feature, array) for array in arrays)
        return sum(pc.sum(pc.binary_length(array)).as_py() or 0 for array in arrays)

    def _cells(self, array: pa.Array) -> list[Any]:
        """The decoded part of each image, None where null."""
        cells: list[Any] = array.to_pylist()
        return cells

    def rows(self, array: pa.Array, threads: int, layout: ColumnLayout) -> Dense | Ragged:
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

    def _lists(self, array: pa.Array, threads: int, layout: ColumnLayout) -> Dense | Ragged:
        counts, encoded = ArrayBuffers(array).lengths, array.flatten()
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
                return Dense.from_present(values, valid)
            decoded = [pixels for _, pixels in self._decode_images(images, threads)]
        except RowFault as fault:
            row = int(ends.searchsorted(fault.row, side="right"))
            fault.reason = f"image {fault.row - int(ends[row] - counts[row])} of its list: {fault.reason}"
            fault.row = row
            raise
        return self._group_by_list(decoded, present, valid, layout)

    def _group_by_list(
        self, decoded: list[Array], counts: Array, valid: Array | None, layout: ColumnLayout
    ) -> Dense | Ragged:
        """The images of any size, of which each list has so many.

        Lists that are padded or cut are `TensorLists`; else a list of one size is an array, and others are objects.
        """
        if layout.ragged in ("pad", "offsets") and self.form.mode != "unchanged":
            sizes = np.array([pixels.shape for pixels in decoded], np.int64).reshape(-1, 3)
            steps = Ragged.from_present(sizes, counts, valid)
            return TensorLists(_flat(decoded, self.dtype), steps, self._axes, valid)
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
            self._check_layout(layout, row, *NO_COMMON_TYPE)
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
        if self.shared is not None:
            return decode_shared(self.shared, self.feature, images, read=read, threads=threads)
        return ordered((partial(read, image) for image in images), min(threads, len(images)), "images")

    def _reader(self) -> Callable[[tuple[int, Any]], tuple[int, Array]]:
        """The decoder of a numbered image; threads may share it."""
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
        raw, mode = images.form, ImageForm.MODES_BY_CHANNELS.get(images.channels, "unchanged")
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
        """The number of an image and its resized pixels in the order of the layout; RowFault if it is not an image."""
        row, stored = item
        pixels = self.images.image(row, stored)
        height, width, channels = pixels.shape
        is_8_bit = pixels.dtype.itemsize == 1
        planes = [pixels] if is_8_bit and channels > 1 else [pixels[:, :, at] for at in range(channels)]
        planes = [np.ascontiguousarray(plane if is_8_bit else plane.astype(np.float32)) for plane in planes]
        resized = [np.asarray(self.form.resize_image(module.fromarray(plane), (width, height))) for plane in planes]
        image = np.dstack(resized)
        if not is_8_bit:
            image = np.rint(image).astype(self.dtype)
        return row, image.transpose(self.images.form.stored_axes((0, 1, 2)))


def image_decoder(field: pa.Field) -> ImageDecoder | None:
    """The decoder of a column whose arrays are made of images; SchemaError if the metadata is damaged."""
    if field.metadata is None:  # as of columns without a schema, of which there may be thousands
        return None
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
