"""Columns of encoded images, and of lists of them, as rows of pixels: decoded on several threads, without the GIL."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from tfrecord_io.arrow.buffers import list_lengths, scatter
from tfrecord_io.arrow.image_pixels import PixelReader
from tfrecord_io.arrow.output.to_numpy import Dense, Ragged, Rows
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.background import ordered
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import DecodeError, SchemaError, say
from tfrecord_io.options.arrays import ColumnLayout
from tfrecord_io.options.limits import Expansion
from tfrecord_io.schema.field import IMAGE_KEY
from tfrecord_io.schema.image_form import ImageForm
from tfrecord_io.schema.types import is_bytes, is_list_like
from tfrecord_io.value_class import value_class


@value_class
class ImageDecoder:
    """Decodes a column of images, or of lists of images; see `tfrecord_io.image`."""

    feature: str
    form: ImageForm
    in_lists: bool = False

    @classmethod
    def for_field(cls, field: pa.Field) -> Self | None:
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

    def padded_shape(self, length: int | None) -> tuple[int | None, ...]:
        """The shape of a padded row; None where it is that of the largest row of each batch."""
        size = self.size or (None, None, self.form.channels)
        if self.in_lists:
            return (length, *size)
        return size if self.size is not None else (length, *size[1:])

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
        own = math.prod(self.size)
        fitting = expansion.room // own
        encoded = (array.flatten() if self.in_lists else array for array in arrays)
        expansion.add(sum(pc.sum(pc.binary_length(array)).as_py() or 0 for array in encoded))
        images = int(counts.sum())
        if not expansion.take(images * own):
            reason = f"{images} images of {self.size}, as the file declares them, take {images * own} bytes"
            advice = expansion.advice(images * own) | say("declare the column with {schema=}")
            row = int(np.cumsum(counts).searchsorted(fitting, side="right"))
            raise RowFault(
                min(row, len(counts) - 1),
                expansion.excess(reason),
                feature=self.feature,
                expected=expansion.room,
                got=images * own,
                advice=advice,
                of_memory=True,
            )

    def rows(self, array: pa.Array, threads: int, layout: ColumnLayout) -> Rows:
        """Decode the images of a column to uint8 [height, width, channels]; with "unchanged" to objects of any dtype.

        Lists of images of one size become [images, height, width, channels]; a list of several sizes is an object array
        of images. The RowFault it may raise is that of the first image that cannot be decoded.
        """
        if self.in_lists:
            return self._lists(array, threads, layout)
        encoded = array.to_pylist()
        present = np.fromiter((data is not None for data in encoded), np.bool_, len(encoded))
        valid = None if present.all() else present
        images = [(row, data) for row, data in enumerate(encoded) if data is not None]
        if self.size is not None:
            return Dense(self._stacked(images, len(encoded), self.size, threads), valid)
        decoded = [pixels for _, pixels in self._decoded(images, threads)]
        if self.form.mode == "unchanged":
            return Dense(_objects([np.array(pixels) for pixels in decoded], present))
        shapes = np.array([pixels.shape for pixels in decoded], np.int64).reshape(-1, 3)
        return Ragged.of_present(_flat(decoded), shapes.prod(axis=1), valid, shapes)

    def _lists(self, array: pa.Array, threads: int, layout: ColumnLayout) -> Rows:
        counts, encoded = list_lengths(array), array.flatten()
        if layout.max_length is not None and not t.is_fixed_size_list(array.type):
            kept = Ragged.of_present(np.arange(len(encoded)), counts, None)
            kept = kept.truncated(layout.max_length, from_left=layout.from_left)
            counts, encoded = kept.lengths, encoded.take(pa.array(kept.values))
        ends = np.cumsum(counts)
        valid = np.asarray(array.is_valid()) if array.null_count else None
        if encoded.null_count:
            row = int(ends.searchsorted(int(np.asarray(encoded.is_null()).argmax()), side="right"))
            raise RowFault(
                row,
                "one of its images has no value, which an array cannot represent",
                feature=self.feature,
                expected="a value",
                advice="read it with read_table, which returns null" | say("exclude it with {columns=}"),
                error=DecodeError,
            )
        images = list(enumerate(encoded.to_pylist()))
        present = counts if valid is None else counts[valid]
        try:
            if self.size is not None:
                values = self._stacked(images, len(images), self.size, threads)
                if not t.is_fixed_size_list(array.type):
                    return Ragged.of_present(values, present, valid)
                values = values.reshape(len(present), array.type.list_size, *self.size)
                return Dense(values if valid is None else scatter(values, valid), valid)
            decoded = [pixels for _, pixels in self._decoded(images, threads)]
        except RowFault as fault:
            row = int(ends.searchsorted(fault.row, side="right"))
            fault.reason = f"image {fault.row - int(ends[row] - counts[row])} of its list: {fault.reason}"
            fault.row = row
            raise
        return self._by_list(decoded, present, valid, layout)

    def _by_list(self, decoded: list[Array], counts: Array, valid: Array | None, layout: ColumnLayout) -> Rows:
        """The images of any size, of which each list has so many."""
        ends = np.cumsum(counts).tolist()
        lists = [decoded[end - count : end] for end, count in zip(ends, counts.tolist(), strict=True)]
        kinds = [{(pixels.dtype, pixels.shape) for pixels in images} for images in lists]
        is_mixed = np.array([len(kind) > 1 for kind in kinds], np.bool_)
        if self.form.mode != "unchanged" and not is_mixed.any():
            none = (0, 0, self.form.channels)
            shapes = [(len(images), *(images[0].shape if images else none)) for images in lists]
            matrix = np.array(shapes, np.int64).reshape(-1, 4)
            return Ragged.of_present(_flat(decoded), matrix.prod(axis=1), valid, matrix)
        present = np.ones(len(lists), np.bool_) if valid is None else valid
        if is_mixed.any() and layout.ragged in ("pad", "offsets"):
            reason = say("its images have different sizes, which {ragged=} cannot represent", ragged=layout.ragged)
            row = int(np.flatnonzero(present)[int(is_mixed.argmax())])
            advice = say("declare tfr.list_({tfr.image(resize=(height, width))})")
            raise RowFault(row, reason, feature=self.feature, error=SchemaError, advice=advice)
        return Dense(_objects([_one_list(images) for images in lists], present))

    def _stacked(self, images: list[tuple[int, bytes]], count: int, size: tuple[int, ...], threads: int) -> Array:
        """Images of one size as one array; zeros where there is none."""
        stacked = np.zeros((count, *size), np.uint8)
        for at, pixels in self._decoded(images, threads):
            stacked[at] = pixels
        return stacked

    def _decoded(self, images: list[tuple[int, bytes]], threads: int) -> Iterator[tuple[int, Array]]:
        """The number of each image and its pixels, in order."""
        reader = PixelReader.for_column(self.feature, self.form)
        return ordered((partial(reader.read, image) for image in images), min(threads, len(images)), "images")


def _flat(decoded: Sequence[Array]) -> Array:
    return np.concatenate([np.empty(0, np.uint8), *(pixels.reshape(-1) for pixels in decoded)])


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
