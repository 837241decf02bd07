"""The metadata of a column of encoded images: how its bytes become arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tfrecord_io.errors import SchemaError
from tfrecord_io.schema.default_values import CONVERSION_ERRORS
from tfrecord_io.schema.field import IMAGE_KEY, SHAPE_KEY, Field
from tfrecord_io.schema.shapes import as_shape
from tfrecord_io.schema.tensor_types import Shape

MODES = ("RGB", "L", "RGBA", "unchanged")
_CHANNELS = {"RGB": 3, "L": 1, "RGBA": 4}
_MODE_OF = {channels: mode for mode, channels in _CHANNELS.items()}
_MAX_SIDE = 2**16  # pixels


def image_metadata(mode: str | None, resize: tuple[int, int] | None, shape: Shape | None) -> dict[bytes, bytes]:
    """The metadata of an image column; without a mode it follows from the channels of the shape.

    SchemaError if the mode is unknown, or mode, size and shape contradict each other.
    """
    if shape is not None and len(shape) != 3:
        raise SchemaError(f"an image has the shape (height, width, channels), not {shape}", expected=3, got=len(shape))
    channels = None if shape is None else shape[2]
    mode = mode or _MODE_OF.get(channels or 3, "unchanged")
    if not isinstance(mode, str) or mode not in MODES:
        raise SchemaError(f"unknown image mode {mode!r}", expected=MODES, got=mode)
    metadata = {"mode": mode} if resize is None else {"mode": mode, "resize": _size(resize)}
    if channels not in (None, _CHANNELS.get(mode, channels)):
        reason = f"the mode {mode!r} has {_CHANNELS[mode]} channels, the shape has {channels}"
        raise SchemaError(reason, expected=_CHANNELS[mode])
    return {IMAGE_KEY: json.dumps(metadata).encode()}


def declared_image(metadata: Mapping[bytes, bytes], column: str) -> tuple[str, tuple[int, int] | None, Shape | None]:
    """Mode, size and shape in the metadata of an image column; SchemaError if it is damaged."""
    try:
        declared, shape = json.loads(metadata[IMAGE_KEY]), json.loads(metadata.get(SHAPE_KEY, b"null"))
        mode, resize, shape = declared["mode"], declared.get("resize"), None if shape is None else as_shape(shape)
        image_metadata(mode, resize, shape)
    except (*CONVERSION_ERRORS, SchemaError) as error:
        raise SchemaError("its metadata is damaged: tfrecord_io.image", feature=column) from error
    return mode, None if resize is None else tuple(_size(resize)), shape  # type: ignore[return-value]


def is_image(field: Field) -> bool:
    """Whether `tfrecord_io.image` made the field."""
    return IMAGE_KEY in field.metadata


def image_keywords(field: Field) -> dict[str, Any]:
    """The arguments of `tfrecord_io.image` besides the shape that are not the default."""
    if not is_image(field):
        return {}
    mode, resize, _ = declared_image(field.metadata, field.column)
    default_mode = json.loads(image_metadata(None, None, field.shape)[IMAGE_KEY])["mode"]
    keywords: dict[str, Any] = {} if mode == default_mode else {"mode": mode}
    return keywords if resize is None else {**keywords, "resize": resize}


def _size(resize: tuple[int, int]) -> list[int]:
    try:
        height, width = (int(side) for side in resize)
    except (TypeError, ValueError, OverflowError):
        reason = f"resize={resize!r}: expected (height, width)"
        raise SchemaError(reason, expected="(height, width)", got=resize) from None
    if not (0 < height <= _MAX_SIDE and 0 < width <= _MAX_SIDE):
        reason = f"resize={resize!r}: expected sides from 1 to {_MAX_SIDE}"
        raise SchemaError(reason, expected=f"1 to {_MAX_SIDE}", got=resize)
    return [height, width]
