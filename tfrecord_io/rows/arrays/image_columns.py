"""Decoded images in Arrow: columns of nested lists of pixels, for libraries whose tables have no arrays.

Tests: tests/laws/test_raw_images.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import ScanOptions
from tfrecord_io.columns import ArrayBuffers, Dense, Ragged, RowFault, offsets_of
from tfrecord_io.errors import SchemaError
from tfrecord_io.read import Reader, RowFaultPolicy
from tfrecord_io.rows.arrays.array_options import ColumnLayout
from tfrecord_io.rows.arrays.image_arrays import NO_COMMON_TYPE, ImageDecoder, RawImageDecoder, image_decoder

Passes = Callable[[RowFault], bool]  # whether the row of a fault may be left out
_ROWS = 64  # decoded at a time: pixels take many times the bytes of an encoded image


class ImageColumns:
    """The columns of images in tables of a schema, whose pixels are lists of uint8 [height, width, channels].

    Where the size of images is known, the lists have a fixed length. SchemaError if images have no common type: their
    mode is "unchanged".
    """

    def __init__(self, schema: pa.Schema, threads: int) -> None:
        decoders = ((at, image_decoder(field)) for at, field in enumerate(schema))
        self._decoders = {at: decoder for at, decoder in decoders if decoder is not None}
        self._threads = threads
        for decoder in self._decoders.values():
            if not decoder.form.channels:
                reason, advice = NO_COMMON_TYPE
                advice += '; or tfr.scalar("binary"), which is not decoded'
                raise SchemaError(reason, feature=decoder.feature, hint=advice)

            if isinstance(decoder, RawImageDecoder) and decoder.size is None and decoder.images.form.has_channels_first:
                reason = 'images of several sizes are not lists of the layout "CHW"'
                raise SchemaError(reason, feature=decoder.feature, hint='declare fit="pad", "crop" or "stretch"')

    def __bool__(self) -> bool:
        return bool(self._decoders)

    def __contains__(self, column: str) -> bool:
        return any(decoder.feature == column for decoder in self._decoders.values())

    def decode(self, table: pa.Table) -> pa.Table:
        """The table with pixels; RowFault if an image cannot be decoded."""
        for at, decoder in self._decoders.items():
            pixels = self._pixels(table.column(at).combine_chunks(), decoder)
            table = table.set_column(at, pa.field(table.schema.field(at).name, pixels.type), pixels)
        return table

    def decode_all(self, tables: Iterator[pa.Table], batches: Any, options: ScanOptions) -> Iterator[pa.Table]:
        """Decode the tables of a read, which are made of `batches`; those of a `Reader` have its ``on_error``."""
        reader = batches if isinstance(batches, Reader) else None
        policy = RowFaultPolicy(reader, options.on_error)
        for table in tables:
            for part in self._parts(table, policy.leave_out):
                if isinstance(part, RowFault):
                    policy.end(part)
                    return
                yield part
            policy.first_row += len(table)
        policy.warn_of_left_out()

    def _parts(self, table: pa.Table, passes: Passes) -> Iterator[pa.Table | RowFault]:
        """The decoded table in parts, without the rows whose fault `passes`; one that does not is the last item."""
        for begin in range(0, max(len(table), 1), _ROWS):
            for part in self._fitting(table.slice(begin, _ROWS), begin, passes):
                yield part
                if isinstance(part, RowFault):
                    return

    def _fitting(self, table: pa.Table, first: int, passes: Passes) -> Iterator[pa.Table | RowFault]:
        def make(begin: int, end: int) -> pa.Table:
            return self.decode(table.slice(begin, end - begin))

        def passes_here(fault: RowFault) -> bool:
            return passes(fault.renumber(first + fault.row))

        for _, _, part in RowFaultPolicy.fitting_parts(len(table), make, passes_here):
            yield part.renumber(first + part.row) if isinstance(part, RowFault) else part

    def _pixels(self, array: pa.Array, decoder: ImageDecoder) -> pa.Array:
        if not decoder.in_lists:
            rows = decoder.rows(array, self._threads, ColumnLayout())
            return _images_of_one_shape(rows) if isinstance(rows, Dense) else _varying(rows, decoder.form.channels)
        is_fixed = t.is_fixed_size_list(array.type)
        missing = array.is_null() if array.null_count else None
        if is_fixed:
            size = array.type.list_size
            images = array.values.slice(array.offset * size, len(array) * size)
            offsets = np.arange(len(array) + 1) * size
        else:
            images, offsets = array.flatten(), offsets_of(ArrayBuffers(array).lengths)
        with RowFault.count_lists(offsets):
            inner = self._pixels(images, replace(decoder, in_lists=False))
        if is_fixed:
            return pa.FixedSizeListArray.from_arrays(inner, size, mask=missing)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), inner, mask=missing)


def _images_of_one_shape(rows: Dense) -> pa.Array:
    """Images of one shape."""
    pixels: pa.Array = pa.array(np.ascontiguousarray(rows.values).reshape(-1))
    height, width, channels = rows.values.shape[1:]
    for length in (channels, width):
        pixels = pa.FixedSizeListArray.from_arrays(pixels, length)
    missing = None if rows.valid is None else pa.array(~rows.valid)
    return pa.FixedSizeListArray.from_arrays(pixels, height, mask=missing)


def _varying(rows: Ragged, channels: int) -> pa.Array:
    """Images of several shapes, but the same channels."""
    assert rows.shapes is not None
    heights, widths = rows.shapes[:, 0], rows.shapes[:, 1]

    pixels = pa.FixedSizeListArray.from_arrays(pa.array(rows.values), channels)
    lines = pa.LargeListArray.from_arrays(pa.array(offsets_of(np.repeat(widths, heights))), pixels)
    missing = None if rows.valid is None else pa.array(~rows.valid)
    return pa.LargeListArray.from_arrays(pa.array(offsets_of(heights)), lines, mask=missing)
