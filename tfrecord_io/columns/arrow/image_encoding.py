"""Arrays that a writer stores as encoded images: ``column_encoding={"image": "jpeg"}``.

A column of uint8 tensors becomes one of bytes that is declared as `tfrecord_io.image`, so arrays are read back.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.base import cpu_count, ordered
from tfrecord_io.bytes import Array
from tfrecord_io.columns.arrow.image_header import pillow
from tfrecord_io.columns.arrow.raw_images import RawImages
from tfrecord_io.columns.arrow.row_fault import errors_of_rows
from tfrecord_io.columns.arrow.tensor_values import column_to_tensors
from tfrecord_io.columns.schema.field_makers import image, tensor
from tfrecord_io.columns.schema.image_form import CHANNELS, ImageForm, image_form
from tfrecord_io.columns.schema.schema import Schema
from tfrecord_io.columns.schema.tensor_types import (
    element_and_shape,
    image_encodings,
    is_any_tensor,
    no_column_to_encode,
)
from tfrecord_io.columns.schema.type_names import logical_name
from tfrecord_io.columns.schema.types import is_bytes
from tfrecord_io.errors import EncodeError

_EXPECTED = "uint8 arrays [height, width] or [height, width, channels]"
_Saved = tuple[str, dict[str, Any], tuple[int, ...]]
_SAVED: dict[str, _Saved] = {  # Pillow's name and options, and the channels it has
    "jpeg": ("JPEG", {"quality": 95}, (1, 3)),
    "png": ("PNG", {}, (1, 3, 4)),
    "webp": ("WEBP", {"lossless": True}, (1, 3, 4)),
}
_MATRIX, _IMAGE = 2, 3  # dimensions
_DEEP = "images of 16 bits have 1 channel here: leave the encoding out, and raw pixels are written as they are"


def arrays_schema(schema: Schema, encodings: Mapping[str, str] | None) -> Schema:
    """Schema that data is cast to before it is encoded: arrays, instead of the images that it declares.

    >>> arrays_schema(Schema({"x": image(mode="L")}), {"x": "png"})["x"].type_name
    'tensor<uint8>[?,?,1]'
    """
    chosen, fields = image_encodings(encodings), []
    for field in schema:
        form = image_form(field) if field.feature in chosen and is_bytes(field.type) else None
        if form is not None:
            axes = (None, None, form.channels or None) if form.shape is None or form.resize else form.shape
            arrays = tensor("uint8", axes, feature=field.feature, required=field.required)
            field = arrays.named(field.column)
        fields.append(field)
    return Schema(fields, schema.metadata) if chosen else schema


def declare_images(schema: pa.Schema, encodings: Mapping[str, str] | None) -> pa.Schema:
    """Declare arrays that are stored as images as image columns, in the schema of the written data.

    EncodeError if a column does not hold images, FeatureNotFoundError if it does not exist.
    """
    for column, name in image_encodings(encodings).items():
        at = schema.get_field_index(column)
        if at < 0:
            raise no_column_to_encode(column)
        field = schema.field(at)
        declared = ImageForm.from_metadata(field.metadata, column) if is_bytes(field.type) else None
        if declared is None:
            schema = schema.set(at, _image_field(field, name))
    return schema


def encoded_images(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, encodings: Mapping[str, str] | None, begin: int
) -> Iterator[pa.RecordBatch]:
    """The batches with images instead of arrays, of the schema by `declare_images`; `begin` is the first row."""
    encoders = []
    for column, name in image_encodings(encodings).items():
        kind, options, possible = _SAVED[name]
        at = schema.get_field_index(column)
        form = ImageForm.from_metadata(schema.field(at).metadata, column)
        channels = possible if form is None or not form.channels else (form.channels,)
        encoders.append((at, (kind, options, channels)))
    for batch in batches:
        columns = list(batch.columns)
        for at, saved in encoders:
            columns[at] = _encode_images(columns[at], batch.schema.field(at), saved, begin)
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
        begin += len(batch)


def _image_field(field: pa.Field, name: str) -> pa.Field:
    """The field of the images that arrays become."""
    got = logical_name(field.type, field.metadata)
    if not is_any_tensor(field.type):
        advice = "leave it out, if its values are encoded already" if is_bytes(field.type) else None
        reason = f'the encoding "{name}" is for {_EXPECTED}, not for {got}'
        raise EncodeError(reason, feature=field.name, expected=_EXPECTED, got=got, hint=advice)
    element, axes = element_and_shape(field)
    raw = RawImages.from_field(field)
    axes = axes if raw is None else raw.form.image_axes(axes)
    channels = 1 if len(axes) == _MATRIX else axes[-1]
    possible = _SAVED[name][2]
    is_deep_grey = raw is not None and element.name == "uint16" and channels == 1 and name == "png"
    has_dtype = element.name == "uint8" or is_deep_grey
    if not has_dtype or len(axes) not in (_MATRIX, _IMAGE) or channels not in (None, *possible):
        expected = f"{_EXPECTED} of {' or '.join(map(str, possible))} channels"
        reason = f'the encoding "{name}" is for {expected}, not for {got}'
        raise EncodeError(reason, feature=field.name, expected=expected, got=got, hint=_DEEP if raw else None)
    shape = (*axes[:2], channels or CHANNELS["RGB"])  # arrays of other channels are refused then
    keywords = {} if raw is None else {name: value for name, value in raw.form.keywords().items() if name != "layout"}
    mode = "unchanged" if is_deep_grey else None
    return image(shape, mode, required=not field.nullable or None, **keywords).named(field.name).to_arrow()


def _encode_images(array: pa.Array, field: pa.Field, saved: _Saved, begin: int) -> pa.Array:
    """The tensors of a column as encoded images; EncodeError with the row of one that cannot be encoded."""
    with errors_of_rows(begin, field.name):
        tensors = column_to_tensors(array, field)
    rows = np.arange(len(array)) if tensors.valid is None else np.flatnonzero(tensors.valid)
    raw, dtype = RawImages.from_field(field), tensors.element.dtype
    order = np.arange(tensors.rank) if raw is None else raw.form.image_axes((0, 1, 2))
    pixels = (
        tensors.data[tensors.offsets[at] : tensors.offsets[at + 1]].view(dtype).reshape(shape).transpose(order)
        for at, shape in enumerate(tensors.shape_matrix)
    )
    encode = partial(_one, pillow(f"encoding images ('{field.name}')"), field.name, saved)
    tasks = (partial(encode, begin + int(row), cell) for row, cell in zip(rows, pixels, strict=True))
    files: list[bytes | None] = [None] * len(array)
    for row, data in zip(rows, ordered(tasks, min(cpu_count(), max(1, len(rows))), "images"), strict=True):
        files[row] = data
    return pa.array(files, pa.binary())


def _one(images: Any, feature: str, saved: _Saved, row: int, pixels: Array) -> bytes:
    kind, options, possible = saved
    channels = pixels.shape[2] if pixels.ndim == _IMAGE else 1
    fault = partial(EncodeError, feature=feature, record=row, got=pixels.shape)
    if channels not in possible or not pixels.size:
        expected = f"{' or '.join(map(str, possible))} channels, and sides of 1 pixel or more"
        advice = f'declare others with schema={{"{feature}": tfr.tensor("uint8", (None, None, channels)), …}}'
        reason = f"its array of shape {pixels.shape} does not fit: expected {expected}"
        raise fault(reason, expected=expected, hint=advice)
    plain = np.ascontiguousarray(pixels[:, :, 0] if pixels.ndim == _IMAGE and channels == 1 else pixels)
    buffer = io.BytesIO()
    try:
        images.fromarray(plain).save(buffer, kind, **options)
    except MemoryError:
        raise
    except Exception as error:  # of any type, such as for sides that the format cannot state
        reason = f"its array of shape {pixels.shape} cannot be encoded as {kind} ({type(error).__name__}: {error})"
        raise fault(reason) from None
    return buffer.getvalue()
