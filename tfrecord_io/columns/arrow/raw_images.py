"""Pixels without a header as images: the arrays of a column [height, width, channels], and PNG files of them.

`tfrecord_io.image` of a `tfrecord_io.tensor` declares such a column.

Tests: tests/columns/arrow/test_raw_images.py and tests/laws/test_raw_images.py.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from tfrecord_io.bytes import Array
from tfrecord_io.columns.arrow.row_fault import RowFault
from tfrecord_io.columns.arrow.tensor_values import column_to_cells
from tfrecord_io.columns.schema.image_form import CHW, MODE_OF, ORDER, RawImageForm
from tfrecord_io.columns.schema.tensor_types import element_and_shape, is_any_tensor
from tfrecord_io.columns.schema.types import is_list_like

COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # of PNG, by number of channels: grey, grey and alpha, RGB, RGBA
_FILTER_UP = 2  # a line stores its difference from the line above


class RawImages(NamedTuple):
    """A column of raw pixels, or of lists of them."""

    field: pa.Field  # of tensors
    form: RawImageForm
    in_lists: bool = False

    @classmethod
    def from_field(cls, field: pa.Field) -> Self | None:
        """The raw images of a field; None for any other field, SchemaError if its tensors are not images."""
        form = RawImageForm.from_metadata(field.metadata, field.name)
        in_lists = is_list_like(field.type)
        type_ = field.type.value_type if in_lists else field.type
        if form is None or not is_any_tensor(type_):  # no record had one, from which the type follows
            return None
        images = cls(pa.field(field.name, type_, metadata=field.metadata), form, in_lists)
        form.check(images.dtype.name, element_and_shape(images.field)[1], field.name)
        return images

    @staticmethod
    def png(pixels: Array) -> bytes:
        """A PNG of uint8 or uint16 pixels [height, width, channels] of 1 to 4 channels, without a loss."""
        return encode_png(pixels)

    @property
    def dtype(self) -> np.dtype[Any]:
        """uint8 or uint16."""
        return element_and_shape(self.field)[0].dtype

    @property
    def channels(self) -> int:
        """Number of channels of each image; 0 if images differ in it."""
        return self.form.image_axes(element_and_shape(self.field)[1])[2] or 0

    def cells(self, array: pa.Array) -> list[Array | None]:
        """The arrays of a column of tensors in the order of the layout, None where null; views where possible."""
        arrays: list[Array | None] = column_to_cells(array, self.field).tolist()
        return arrays

    def image(self, row: int, pixels: Array) -> Array:
        """An array in the order of the layout as [height, width, channels]; a RowFault if it is none."""
        image = pixels.transpose(1, 2, 0) if self.form.layout == CHW else pixels
        fault = partial(RowFault, row, feature=self.field.name, got=pixels.shape)
        if image.shape[2] not in MODE_OF:
            reason = f"its pixels of shape {pixels.shape} have {image.shape[2]} channels in the layout "
            reason += f"{self.form.layout}: an image has 1, 3 or 4"
            raise fault(reason, expected=(1, 3, 4), hint=ORDER)
        if not image.size:
            raise fault(f"its shape {pixels.shape} has no pixels", expected="sides of 1 pixel or more")
        return image

    def files(self, array: pa.Array) -> Iterator[pa.Buffer | None]:
        """The images of a column of tensors as PNG files, None where null; RowFault for one that is not an image."""
        for row, pixels in enumerate(self.cells(array)):
            yield None if pixels is None else pa.py_buffer(encode_png(self.image(row, pixels)))


def encode_png(pixels: Array) -> bytes:
    """A PNG of uint8 or uint16 pixels [height, width, channels] of 1 to 4 channels, without a loss.

    >>> encode_png(np.zeros((2, 3, 1), np.uint8))[:8]
    b'\\x89PNG\\r\\n\\x1a\\n'
    """
    height, width, channels = pixels.shape
    bits = 8 * pixels.dtype.itemsize
    lines = np.ascontiguousarray(pixels.astype(pixels.dtype.newbyteorder(">"))).view(np.uint8).reshape(height, -1)
    filtered = np.empty((height, 1 + lines.shape[1]), np.uint8)
    filtered[:, 0] = _FILTER_UP
    filtered[0, 1:] = lines[0]
    np.subtract(lines[1:], lines[:-1], out=filtered[1:, 1:])
    header = struct.pack(">IIBBBBB", width, height, bits, COLOUR_TYPES[channels], 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n"
    for name, data in ((b"IHDR", header), (b"IDAT", zlib.compress(filtered.tobytes(), 6)), (b"IEND", b"")):
        png += struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return png
