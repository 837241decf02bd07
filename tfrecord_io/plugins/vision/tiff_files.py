"""TIFF files of arrays, of any number of channels and of 8 to 64 bits: satellite bands, depth, microscopy.

Tests: tests/plugins/vision/test_tiff_files.py.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from tfrecord_io.columns import Column
from tfrecord_io.kit import Array, RowFault, needs

_COLOURS = 3  # channels of a picture in colour
_MOST_CHANNELS = 65535


class TiffFiles(NamedTuple):
    """A column of arrays [height, width] or [height, width, channels], of which TIFF files are made."""

    field: pa.Field

    def files(self, array: pa.Array) -> Iterator[pa.Buffer | None]:
        """The content of each file, None where null; RowFault for an array that is not an image."""
        for row, values in enumerate(Column(self.field).cells(array)):
            if values is not None and not _is_image(values):
                reason = f"its array of {values.dtype} has the shape {values.shape}"
                expected = "numbers [height, width] or [height, width, channels], of which TIFF files are made"
                raise RowFault(row, reason, feature=self.field.name, expected=expected)
            yield None if values is None else pa.py_buffer(encode_tiff(values))


def _is_image(values: Array) -> bool:
    """True if TIFF can hold an array, and readers agree about it."""
    is_sized = values.size and values.ndim in (2, 3) and values.shape[2:] <= (_MOST_CHANNELS,)
    return bool(is_sized) and values.dtype.kind in "iuf"


def encode_tiff(values: Array) -> bytes:
    """A TIFF of an array [height, width] or [height, width, channels], without a loss and not compressed."""
    with needs("tiff", "TIFF files of arrays"):
        import tifffile
    channels = values.shape[2] if values.ndim > 2 else 1
    is_colour = channels == _COLOURS and values.dtype.kind == "u"
    more = channels - (_COLOURS if is_colour else 1)
    file = io.BytesIO()
    tifffile.imwrite(
        file,
        values if channels > 1 else values.reshape(values.shape[:2]),
        photometric="rgb" if is_colour else "minisblack",
        planarconfig="contig" if channels > 1 else None,
        extrasamples=["unspecified"] * more or None,
        metadata=None,
        software=False,
    )
    return file.getvalue()
